"""float32 as users get it on a GPU: the frameworks may round factors to TF32, which has 10 bits.
Our layers are then as near to float64 as the framework's own. (The rest of the suite has full
precision: `tests/devices.py`.)
"""

from contextlib import contextmanager

import numpy as np
import pytest
from frameworks import functional as F
from frameworks import jax, torch

import isomorph as iso
from isomorph.core.dispatch import load
from oracles import numpy_of

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="a CPU has no TF32"),
    pytest.mark.parametrize("backend", ["jax", "torch"], indirect=True),
]
RNG = np.random.default_rng(0)
X, W = RNG.standard_normal((32, 256)), RNG.standard_normal((128, 256))
IMAGE, FILTERS = RNG.standard_normal((4, 16, 16, 32)), RNG.standard_normal((3, 3, 32, 64))
TF32 = 2.0**-10  # one rounding of a factor


def theirs_of_torch(name, x, w):
    if name == "linear":
        return F.linear(x, w)
    y = F.conv2d(x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), padding=1)
    return y.permute(0, 2, 3, 1)


def theirs_of_jax(name, x, w):
    if name == "linear":
        return x @ w.T
    form = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=form)


@contextmanager
def rounding(backend, precision):
    """The framework's setting, as users set it."""
    if backend == "jax":
        with jax.default_matmul_precision(precision):
            yield
        return
    parts = torch.backends.cuda.matmul, torch.backends.cudnn
    before = [part.allow_tf32 for part in parts]
    for part in parts:
        part.allow_tf32 = precision != "highest"
    try:
        yield
    finally:
        for part, was in zip(parts, before):
            part.allow_tf32 = was


@pytest.mark.parametrize("name", ["linear", "conv2d"])
def test_as_near_as_the_framework(backend, name):
    ours = iso.linear if name == "linear" else lambda x, w: iso.conv2d(x, w, 1, "SAME")
    arrays = (X, W) if name == "linear" else (IMAGE, FILTERS)
    theirs = {"torch": theirs_of_torch, "jax": theirs_of_jax}[backend]
    place = "cuda" if backend == "torch" else "gpu"
    to = lambda x, dtype: load(backend).from_numpy(x.astype(dtype), load(backend).device(place))
    exact = numpy_of(ours(*(to(x, np.float64) for x in arrays)))
    given = [to(x, np.float32) for x in arrays]
    scale = np.abs(exact).max()
    for precision in ("highest", "tensorfloat32"):
        with rounding(backend, precision):
            found, native = ours(*given), theirs(name, *given)
        off, native_off = (np.abs(numpy_of(y) - exact).max() / scale for y in (found, native))
        assert off <= 2 * native_off + 1e-7
        assert off <= (1e-6 if precision == "highest" else TF32)
