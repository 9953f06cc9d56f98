"""JAX with its default 32-bit types: a separate column of the core suite.

Every program of the table, eager and compiled, with its gradient, is compared with NumPy in 64
bits. Programs that draw random numbers are compared in 32 bits, because draws depend on the dtype.
"""

import numpy as np
import pytest
from compiled_programs import INPUTS
from compiled_table import TABLE
from frameworks import enable_x64, jnp

import isomorph as iso
from isomorph.core.tree import flatten
from oracles import counted, numpy_of, verbs_of

DRAWN = {"draws", "rejections", "Linear", "Conv2D", "LSTM"}
LIMIT = 2e-4  # relative to the largest number
NAMES = list(TABLE)
PARTS = [NAMES[i : i + 3] for i in range(0, len(NAMES), 3)]  # JAX compiles a part as one program


@pytest.fixture
def column():
    """JAX with 32-bit types."""
    with enable_x64(False):
        yield "jax32"


def floats(xp, outs):
    return [y for y in outs if hasattr(y, "dtype") and verbs_of(xp).is_float(y.dtype)]


def run(name, x):
    """All outputs of a program, and the gradient of their sum."""
    program, xp = TABLE[name], iso.namespace(x)
    value = lambda x: flatten(program.func(iso, xp, x))[0]

    def total(x):
        real = lambda y: xp.real(y) + xp.imag(y) if verbs_of(xp).is_complex(y.dtype) else y
        return sum(xp.sum(xp.sin(real(y))) for y in floats(xp, value(x)))

    return value(x), iso.grad(total)(x) if program.order else x


def off(found, wanted):
    """The largest difference, relative to the largest number."""
    found, wanted = np.asarray(numpy_of(found)), np.asarray(wanted)
    assert found.shape == wanted.shape
    assert found.dtype.kind == wanted.dtype.kind
    if wanted.dtype.kind not in "fc":
        return 0.0 if np.array_equal(found, wanted) else np.inf
    assert found.dtype.itemsize <= (4 if found.dtype.kind == "f" else 8)
    there = np.isfinite(wanted)
    assert np.array_equal(np.isfinite(found), there)
    scale = max(np.abs(wanted[there]).max(initial=0), 1e-2)
    return np.abs(found[there] - wanted[there]).max(initial=0) / scale


def check(name, found, wanted):
    (outs, grad), (rights, slope) = found, wanted
    worst = max([off(y, right) for y, right in zip(outs, rights, strict=True)], default=0.0)
    assert worst <= LIMIT, f"{name} is off by {worst:.0e}"
    assert off(grad, slope) <= LIMIT, f"the gradient of {name} is off by {off(grad, slope):.0e}"


@pytest.mark.parametrize("part", [pytest.param(i, id=f"jax32-{i}") for i in range(len(PARTS))])
@pytest.mark.takes("XLA compiles it")
def test_every_program(column, part):
    names = PARTS[part]
    given = {name: INPUTS[TABLE[name].input] for name in names}
    xs = {name: jnp.asarray(x.astype(np.float32)) for name, x in given.items()}
    program, calls = counted(lambda xs: {name: run(name, xs[name]) for name in names})
    together = [program(xs) for _ in range(2)][1]
    assert len(calls) == 1
    with np.errstate(all="ignore"):
        for name in names:
            x = given[name]
            wanted = run(name, x.astype(np.float32) if name in DRAWN else x)
            check(name, run(name, xs[name]), wanted)
            check(f"{name}, compiled", together[name], wanted)
