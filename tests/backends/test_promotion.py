"""Operations on two arrays of different dtypes, one of them perhaps 0-d. The result has the dtype
of the standard's table and NumPy's values, or the framework refuses.
"""

import numpy as np
import pytest
from frameworks import torch

import isomorph as iso
from isomorph.core.dispatch import load
from oracles import numpy_of

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = [
    (a, b)
    for a in SIGNED + UNSIGNED
    for b in SIGNED + UNSIGNED
    # other pairs with uint64 have no common dtype
    if "uint64" not in (a, b) or {a, b} <= set(UNSIGNED)
]
FLOATS = [(a, b) for a in ("float32", "float64") for b in ("float32", "float64")]
FEW = [("int64", "uint16"), ("uint8", "uint32"), ("uint64", "uint16"), ("float64", "float32")]
ELEMENTWISE = (
    "add", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "equal", "floor_divide", "greater", "greater_equal", "less", "less_equal", "maximum",
    "minimum", "multiply", "not_equal", "pow", "remainder", "subtract",
)  # fmt: skip
TWO = {name: lambda xp, x, y, name=name: getattr(xp, name)(x, y) for name in ELEMENTWISE} | {
    "result_type": lambda xp, x, y: xp.zeros((1,), dtype=xp.result_type(x, y)),
    "where": lambda xp, x, y: xp.where(xp.asarray([True, False]), x, y),
    "where of one": lambda xp, x, y: xp.where(xp.asarray(False), x, y),
    "tensordot of all": lambda xp, x, y: xp.tensordot(x, y, axes=0),
}
VECTORS = {
    "clip": lambda xp, x, y: xp.clip(x, y, None),
    "concat": lambda xp, x, y: xp.concat([x, y]),
    "cross": lambda xp, x, y: xp.linalg.cross(x, y),
    "diff": lambda xp, x, y: xp.diff(x, prepend=y, append=y),
    "einsum": lambda xp, x, y: xp.einsum("i,i->", x, y),
    "matmul": lambda xp, x, y: xp.matmul(x, y),
    "outer": lambda xp, x, y: xp.linalg.outer(x, y),
    "stack": lambda xp, x, y: xp.stack([x, y]),
    "tensordot": lambda xp, x, y: xp.tensordot(x, y, axes=1),
    "vecdot": lambda xp, x, y: xp.vecdot(x, y),
}
NAMES = (*TWO, *VECTORS)


def values(dtype):
    """The largest number, or one that only this dtype can hold, and small ones."""
    if dtype.startswith("float"):
        return np.array([1e30 if dtype == "float64" else 2.5, 0.1, 3], dtype)
    return np.array([min(np.iinfo(dtype).max, 2**50 + 1), 3, 2], dtype)


def cases(what, pair):
    x, y = map(values, pair)
    if what == "pow" or "shift" in what:  # too large an argument is undefined
        y = np.array([3, 2], pair[1])
    if what in VECTORS:
        return [(x, y[::-1].copy())]  # not parallel
    return [(x[:2], y[:2]), (x[0], y[:2]), (x[:2], y[0])]


WIDE = ("uint16", "uint32", "uint64")  # torch lacks many kernels for these
NEEDS_NONE = {"concat", "result_type", "stack", "where", "where of one"}


def may_refuse(backend, what, x, y):
    """Whether a framework may lack a kernel: only torch, for wide unsigned results."""
    return backend == "torch" and what not in NEEDS_NONE and np.result_type(x, y).name in WIDE


def wanted_of(call, x, y):
    with np.errstate(all="ignore"):
        try:
            return np.asarray(call(load("numpy"), x, y))
        except TypeError:  # bitwise operations of floats
            return None


def compare(got, wanted):
    got = numpy_of(got)
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    rtol = 1e-6 if wanted.dtype == np.float32 else 1e-14
    np.testing.assert_allclose(got, wanted, rtol=rtol)


def check(backend, what, x, y):
    call = {**TWO, **VECTORS}[what]
    wanted = wanted_of(call, x, y)
    if wanted is None:
        return
    if (backend, what) == ("tensorflow", "clip") and wanted.dtype != x.dtype:
        return  # keeps the dtype of x, as the standard says; the others promote
    try:
        got = call(load(backend), *(iso.convert(np.asarray(z), backend) for z in (x, y)))
    except NotImplementedError as error:
        if may_refuse(backend, what, x, y) and "not implemented for 'UInt" in str(error):
            return
        raise
    compare(got, wanted)


@pytest.mark.parametrize("what", NAMES)
@pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)
def test_numbers_and_dtypes_of_two(backend, what):
    pairs = FEW if backend == "jax" else INTEGERS + FLOATS  # JAX compiles each pair
    for pair in pairs:
        for x, y in cases(what, pair):
            check(backend, what, x, y)


# three names in one program
@pytest.mark.takes("torch compiles C++")
@pytest.mark.parametrize("names", [NAMES[i : i + 3] for i in range(0, len(NAMES), 3)], ids=",".join)
@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_a_program_promotes_as_eager_code_does(backend, names):
    """Where eager code is refused, a program may work, but it never gives other values."""
    calls = {
        (what, pair, i): (x, y)
        for what in names
        for pair in (("int64", "uint16"), ("uint8", "uint32"))
        for i, (x, y) in enumerate(cases(what, pair))
        if not may_refuse(backend, what, x, y)
    }
    given = {k: [iso.convert(np.asarray(z), backend) for z in xy] for k, xy in calls.items()}
    xp = load(backend)
    found = iso.jit(
        lambda given: {k: {**TWO, **VECTORS}[k[0]](xp, x, y) for k, (x, y) in given.items()}
    )(given)
    for key, (x, y) in calls.items():
        compare(found[key], wanted_of({**TWO, **VECTORS}[key[0]], x, y))


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_python_numbers_beside_wide_integers(backend, dtype):
    """Also numbers that the dtype cannot hold: torch alone would truncate them."""
    xp, x = load(backend), np.array([np.iinfo(dtype).max, 3], dtype)
    t = iso.convert(x, backend)
    for number in (2, -1, -7, 70_000):
        for name in ("divide", "equal", "not_equal", "copysign", "atan2"):
            wanted = getattr(np, name)(x.astype(np.float64), number)
            np.testing.assert_allclose(numpy_of(getattr(xp, name)(t, number)), wanted, rtol=1e-6)
            wanted = getattr(np, name)(number, x.astype(np.float64))
            np.testing.assert_allclose(numpy_of(getattr(xp, name)(number, t)), wanted, rtol=1e-6)
    for call in (
        lambda: xp.multiply(t, -1),
        lambda: xp.where(t == t, t, -1),
        lambda: xp.multiply(t, 2**70),
    ):
        with pytest.raises(OverflowError):
            call()
    compare(xp.multiply(t, 1), x)
    compare(
        xp.where(iso.convert(np.array([True, False]), backend), t, 1),
        np.where([1, 0], x, 1).astype(dtype),
    )


@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_devices_stay_apart(backend):
    x = torch.empty(2, dtype=torch.int64, device="meta")
    with pytest.raises(RuntimeError, match="meta"):
        load(backend).add(x, torch.ones(2, dtype=torch.uint16))
