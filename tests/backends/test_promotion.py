"""Two arrays of different dtypes, one of them perhaps without axes: the result has the dtype that
the standard's table says and the numbers that NumPy has, or the framework says that it cannot.
"""

import numpy as np
import pytest

import isomorph as iso
from isomorph.dispatch import load
from oracles import numpy_of

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = [
    (a, b)
    for a in SIGNED + UNSIGNED
    for b in SIGNED + UNSIGNED
    if "uint64" not in (a, b) or {a, b} <= set(UNSIGNED)  # the others have no common dtype
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
    "concat": lambda xp, x, y: xp.concat([x, y]),
    "cross": lambda xp, x, y: xp.linalg.cross(x, y),
    "einsum": lambda xp, x, y: xp.einsum("i,i->", x, y),
    "matmul": lambda xp, x, y: xp.matmul(x, y),
    "outer": lambda xp, x, y: xp.linalg.outer(x, y),
    "stack": lambda xp, x, y: xp.stack([x, y]),
    "tensordot": lambda xp, x, y: xp.tensordot(x, y, axes=1),
    "vecdot": lambda xp, x, y: xp.vecdot(x, y),
}


def values(dtype):
    """The largest number, or one that only this dtype holds, and small ones."""
    if dtype.startswith("float"):
        return np.array([1e30 if dtype == "float64" else 2.5, 0.1, 3], dtype)
    return np.array([min(np.iinfo(dtype).max, 2**50 + 1), 3, 2], dtype)


def cases(what, pair):
    x, y = map(values, pair)
    if what == "pow" or "shift" in what:  # what is too large has no meaning
        y = np.array([3, 2], pair[1])
    if what in VECTORS:
        return [(x, y[::-1].copy())]  # not parallel
    return [(x[:2], y[:2]), (x[0], y[:2]), (x[:2], y[0])]


def check(backend, call, x, y):
    """Whether the framework could; if so, the results are NumPy's."""
    with np.errstate(all="ignore"):
        try:
            wanted = np.asarray(call(load("numpy"), x, y))
        except TypeError:  # bits of floating numbers
            return False
    try:
        got = call(load(backend), *(iso.convert(np.asarray(z), backend) for z in (x, y)))
    except (NotImplementedError, TypeError):
        return False  # it has no such kernel, and says so
    got = numpy_of(got)
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    rtol = 1e-6 if wanted.dtype == np.float32 else 1e-14
    np.testing.assert_allclose(got, wanted, rtol=rtol)
    return True


@pytest.mark.parametrize("what", [*TWO, *VECTORS])
@pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)
def test_numbers_and_dtypes_of_two(backend, what):
    call = {**TWO, **VECTORS}[what]
    pairs = FEW if backend == "jax" else INTEGERS + FLOATS  # each compiles there
    done = [check(backend, call, x, y) for pair in pairs for x, y in cases(what, pair)]
    assert sum(done) >= len(done) / 3


@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_a_program_promotes_as_eager_code_does(backend):
    x, y = np.array(70_000), np.array([1, 2], np.uint16)
    call = lambda x, y: (iso.namespace(x).multiply(x, y), iso.namespace(x).where(x > 0, x, y))
    got = iso.jit(call)(*(iso.convert(z, backend) for z in (x, y)))
    for out, wanted in zip(got, ([70_000, 140_000], [70_000, 70_000])):
        assert str(out.dtype) == "torch.int64"
        np.testing.assert_array_equal(numpy_of(out), wanted)
