"""Every layer in float16 and bfloat16: value and gradient are those of float32, within the rounding
of the narrow dtype. float32 itself is compared with other libraries elsewhere.
"""

import numpy as np
import pytest

import isomorph as iso
from examples import TOPICS, arrays_of, may
from examples.measuring import measured
from isomorph.core.dispatch import load
from oracles import numpy_of

NARROW = ("float16", "bfloat16")
EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
# How many roundings of its largest element a result may be off. Sums have few terms here, and
# where they could cancel out, the terms are positive.
ROUNDINGS = 12


# The examples of layers and activations, as NumPy arrays.
LAYERS = {
    name: entry for topic in ("activations", "layers") for name, entry in TOPICS[topic].items()
    if entry.order and may(entry, "half")
}  # fmt: skip


def close(found, wanted, narrow, what):
    found, wanted = (np.asarray(y, np.float64) for y in (found, wanted))
    assert np.isfinite(found).all(), what
    scale = np.abs(wanted).max()
    off = np.abs(found - wanted).max() / (EPSILON[narrow] * (scale or 1.0))
    assert off <= ROUNDINGS, f"{what}: {off:.1f} roundings off"


@pytest.mark.parametrize("narrow", NARROW)
@pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)
@pytest.mark.parametrize("name", LAYERS)
def test_a_narrow_dtype_gives_the_numbers_of_float32(backend, xp, name, narrow):
    dtype = load(backend).narrow(narrow)
    arrays = arrays_of(LAYERS[name])
    given = [xp.astype(xp.asarray(x.astype(np.float32)), dtype) for x in arrays]
    wide = [xp.astype(x, xp.float32) for x in given]  # the same numbers
    both = measured(name)
    both = iso.jit(both) if backend == "jax" else both  # eagerly JAX compiles each operation
    outs, slopes = both(*given)
    wanted, expected = both(*wide)
    widened = lambda x: numpy_of(xp.astype(x, xp.float32))
    for number, (a, b) in enumerate(zip([*outs, *slopes], [*wanted, *expected], strict=True)):
        if name not in WIDER or number >= len(outs):
            assert a.dtype == dtype
        close(widened(a), widened(b), narrow, f"result {number} of {len(outs)}, then gradients")


WIDER = ("cross_entropy, counted", "Mean")  # sums are float32
