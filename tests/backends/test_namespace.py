"""Every namespace has the whole vocabulary, and every name means what the standard says.

On all four backends, elementwise functions and reductions are compared with plain Python numbers,
the other functions with results worked out by hand. Expected dtypes of the latter are NumPy's.
"""

import importlib
import itertools
import math

import numpy as np
import pytest
from namespace_elementwise import BINARY, DTYPES, REAL, SAMPLES, SPECIAL, UNARY
from namespace_examples import EXAMPLES, FFT_EXAMPLES, LINALG_EXAMPLES

from isomorph.backends import vocabulary
from oracles import name_of, numpy_of

ARRAYS = {
    "numpy": ("ndarray", "generic"),
    "jax": ("Array",),
    "tensorflow": ("Tensor",),
    "torch": ("Tensor",),
}
# A few units in the last place of the worst kernel (complex inverse functions in single precision).
TOLERANCE = {"float32": 1e-5, "complex64": 1e-5, "float64": 1e-12, "complex128": 1e-12}
REAL_PART = {"complex64": "float32", "complex128": "float64"}


def make(xp, values, dtype):
    return xp.asarray(values, dtype=getattr(xp, dtype))


def dtype_of(x):
    return numpy_of(x).dtype.name


def assert_array(backend, x, expected, dtype=None):
    """`x` is an array of the backend with these values, and with this dtype if one is given."""
    kinds = tuple(getattr(importlib.import_module(backend), kind) for kind in ARRAYS[backend])
    assert isinstance(x, kinds), f"needed an array of {backend}, got {type(x)}"
    got = numpy_of(x.resolve_conj() if backend == "torch" else x)
    assert dtype is None or got.dtype.name == dtype
    expected = np.array(expected)
    assert got.shape == expected.shape
    if got.dtype.kind in "biu":
        np.testing.assert_array_equal(got, expected.astype(got.dtype))  # integers wrap around
    else:
        near = TOLERANCE[got.dtype.name]
        np.testing.assert_allclose(got, expected, rtol=near, atol=near)


def cases(table):
    """One pytest case per dtype of each entry."""
    return [
        pytest.param(name, kind, dtype, id=f"{name}_{dtype}")
        for name, entry in table.items()
        for kind in entry.kinds
        for dtype in DTYPES[kind]
        if dtype != "int32"  # between the other two
    ]


def result_dtype(result, dtype):
    return {"same": dtype, "bool": "bool", "real": REAL_PART.get(dtype, dtype)}[result]


# The vocabulary


def test_namespace_has_every_name(xp):
    lacking = [
        *(word for word in vocabulary.VOCABULARY if not hasattr(xp, word)),
        *(f"linalg.{word}" for word in vocabulary.LINALG if not hasattr(xp.linalg, word)),
        *(f"fft.{word}" for word in vocabulary.FFT if not hasattr(xp.fft, word)),
    ]
    assert lacking == []


def test_every_function_has_an_example():
    tested = {*UNARY, *BINARY, *REDUCTIONS, *(row[0] for row in EXAMPLES), *vocabulary.DATA_TYPES}
    values = {*vocabulary.DTYPES, *vocabulary.CONSTANTS, *vocabulary.INSPECTION}
    assert set(vocabulary.VOCABULARY) - values - tested == set()
    assert set(vocabulary.LINALG) == {row[0] for row in LINALG_EXAMPLES}
    assert set(vocabulary.FFT) == {*(row[0] for row in FFT_EXAMPLES), "fftfreq", "rfftfreq"}


def test_an_unknown_name_is_refused_by_name(xp):
    with pytest.raises(AttributeError, match=f"isomorph.{name_of(xp)} has no 'fliplr'"):
        _ = xp.fliplr


def test_constants(xp):
    assert (xp.pi, xp.e, xp.inf, xp.newaxis) == (math.pi, math.e, math.inf, None)
    assert math.isnan(xp.nan)


# Elementwise functions


@pytest.mark.parametrize(("name", "kind", "dtype"), cases(UNARY))
def test_unary(backend, xp, name, kind, dtype):
    entry = UNARY[name]
    values = entry.real if kind == "f" else SAMPLES[kind]
    expected = [entry.python(v) for v in values]
    out = getattr(xp, name)(make(xp, values, dtype))
    assert_array(backend, out, expected, result_dtype(entry.result, dtype))


@pytest.mark.parametrize("name", UNARY)
def test_unary_of_one_number(backend, xp, name):
    entry = UNARY[name]
    dtype = DTYPES[entry.kinds[-1]][-1]
    value = SAMPLES[entry.kinds[-1]][0] if entry.real is REAL else entry.real[-1]
    value = complex(value) if dtype.startswith("complex") else value
    out = getattr(xp, name)(make(xp, value, dtype))
    assert_array(backend, out, entry.python(value), result_dtype(entry.result, dtype))


@pytest.mark.parametrize(("name", "kind", "dtype"), cases(BINARY))
def test_binary_broadcasts(backend, xp, name, kind, dtype):
    entry = BINARY[name]
    first, second = (given.get(kind, SAMPLES[kind]) for given in (entry.first, entry.second))
    expected = [[entry.python(v, w) for w in second] for v in first]
    column, row = make(xp, [[v] for v in first], dtype), make(xp, second, dtype)
    out = getattr(xp, name)(column, row)
    assert_array(backend, out, expected, result_dtype(entry.result, dtype))


@pytest.mark.parametrize(("name", "values", "expected"), SPECIAL)
def test_special_values(backend, xp, name, values, expected):
    with np.errstate(all="ignore"):
        out = getattr(xp, name)(*(make(xp, [v], "float32") for v in values))
    assert_array(backend, out, [expected])
    assert (
        isinstance(expected, bool)
        or math.copysign(1, out[0]) == math.copysign(1, expected)
        or out[0] != out[0]
    )


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_elementwise_of_no_elements(backend, xp, name):
    entry = (UNARY | BINARY)[name]
    dtype = DTYPES[entry.kinds[-1]][-1]
    empty = xp.zeros((0, 3), dtype=getattr(xp, dtype))
    out = getattr(xp, name)(*[empty] * (1 if name in UNARY else 2))
    assert_array(backend, out, np.zeros((0, 3)), result_dtype(entry.result, dtype))


# Reductions

REDUCTIONS = {
    "all": ("bif", all, "bool"),
    "any": ("bif", any, "bool"),
    "argmax": ("if", lambda v: v.index(max(v)), "int64"),
    "argmin": ("if", lambda v: v.index(min(v)), "int64"),
    "count_nonzero": ("bif", lambda v: sum(x != 0 for x in v), "int64"),
    "max": ("iuf", max, None),
    "mean": ("fc", lambda v: sum(v) / len(v), None),
    "min": ("iuf", min, None),
    "prod": ("ifc", math.prod, "wide"),
    "std": ("f", lambda v: math.sqrt(variance(v)), None),
    "sum": ("ifc", sum, "wide"),
    "var": ("f", lambda v: variance(v), None),
}
BLOCK = np.array([[[3, 0, 1], [2, 5, 4]], [[1, 1, 0], [0, 2, 6]]])
AXES = [None, 0, -1, (0, 2), (-3, -2, -1)]


def variance(values, correction=0):
    mean = sum(values) / len(values)
    return sum((v - mean) ** 2 for v in values) / (len(values) - correction)


def reduced(python, block, axis, keepdims):
    """The reduction of a NumPy block, by a function of a list of Python numbers."""
    axes = range(block.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    axes = {a % block.ndim for a in axes}
    shape = [1 if a in axes else n for a, n in enumerate(block.shape)]
    groups = {place: [] for place in np.ndindex(*shape)}
    for place in np.ndindex(*block.shape):
        kept = tuple(0 if a in axes else i for a, i in enumerate(place))
        groups[kept].append(block[place].item())
    out = np.array([python(values) for values in groups.values()])
    return out.reshape(shape if keepdims else [n for a, n in enumerate(shape) if a not in axes])


@pytest.mark.parametrize("keepdims", [False, True], ids=["", "keepdims"])
@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(backend, xp, name, axis, keepdims):
    kinds, python, dtype_out = REDUCTIONS[name]
    if name.startswith("arg") and isinstance(axis, tuple):
        axis = 1  # these functions take one axis
    dtypes = [ONE_OF[kind] for kind in kinds]
    for dtype in dtypes[-1:] if keepdims else dtypes:
        block = BLOCK.astype(dtype)
        out = getattr(xp, name)(xp.asarray(block), axis=axis, keepdims=keepdims)
        wide = "int64" if dtype.startswith("int") else dtype
        expected_dtype = wide if dtype_out == "wide" else dtype_out or dtype
        assert_array(backend, out, reduced(python, block, axis, keepdims), expected_dtype)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "all", "any"])
def test_reduction_over_no_axis_changes_no_value(backend, xp, name):
    block = np.array([[1.0, 2.0], [3.0, 4.0]])
    out = getattr(xp, name)(xp.asarray(block), axis=())
    assert_array(backend, out, block)


@pytest.mark.parametrize("correction", [1, 0.5])
def test_correction_of_variance(backend, xp, correction):
    values = [1.0, 4.0, 2.5]
    x = make(xp, values, "float64")
    assert_array(backend, xp.var(x, correction=correction), variance(values, correction))
    assert_array(
        backend, xp.std(x, axis=0, correction=correction), math.sqrt(variance(values, correction))
    )


def test_reductions_of_no_elements(backend, xp):
    empty = make(xp, np.zeros((0, 3)), "float32")
    assert_array(backend, xp.sum(empty, axis=0), [0, 0, 0], "float32")
    assert_array(backend, xp.prod(empty), 1, "float32")
    assert_array(backend, xp.all(empty, axis=0), [True] * 3, "bool")
    assert_array(backend, xp.any(empty), False, "bool")
    assert_array(backend, xp.sum(empty, axis=1, keepdims=True), np.zeros((0, 1)), "float32")


@pytest.mark.parametrize("name", ["max", "min", "sum", "prod", "mean", "std"])
def test_reductions_pass_nan_on(backend, xp, name):
    out = getattr(xp, name)(make(xp, [[1.0, math.nan], [2.0, 3.0]], "float64"), axis=1)
    got = numpy_of(out)
    assert got.shape == (2,)
    assert math.isnan(got[0])
    assert math.isfinite(got[1])


def test_sums_in_a_given_dtype(backend, xp):
    x = make(xp, [100, 100], "int8")
    assert_array(backend, xp.sum(x, dtype=xp.float32), 200, "float32")
    assert_array(backend, xp.prod(x, dtype=xp.int32), 10000, "int32")
    assert_array(backend, xp.cumulative_sum(x, dtype=xp.float64), [100, 200], "float64")


# Everything else: examples

# One dtype of each kind and both widths: JAX compiles every call again for each dtype.
ONE_OF = {"b": "bool", "i": "int32", "u": "uint8", "f": "float32", "c": "complex128"}

ROWS = [
    pytest.param(call, expected, ONE_OF[kind], id=f"{prefix}{name}_{number}_{ONE_OF[kind]}")
    for prefix, table in (("", EXAMPLES), ("linalg.", LINALG_EXAMPLES), ("fft.", FFT_EXAMPLES))
    for number, (name, kinds, call, expected) in enumerate(table)
    for kind in kinds
]


def parts(out):
    return list(out) if isinstance(out, (tuple, list)) else [out]


@pytest.mark.parametrize(("call", "expected", "dtype"), ROWS)
def test_example(backend, xp, call, expected, dtype):
    with np.errstate(all="ignore"):  # NumPy's complex det warns on aarch64 for any matrix
        outs = parts(out := call(xp, lambda values: make(xp, values, dtype)))
        numpys = parts(call(np, lambda values: np.asarray(values, dtype=dtype)))
    wanted = expected if isinstance(out, (tuple, list)) else [expected]
    assert len(outs) == len(wanted)
    for got, value, numpys_own in zip(outs, wanted, numpys):
        assert_array(backend, got, value, numpys_own.dtype.name)


def test_descending_order(backend, xp):
    x = make(xp, [3, 1, 3, 2], "int32")
    assert_array(backend, xp.sort(x, descending=True), [3, 3, 2, 1], "int32")
    assert_array(backend, xp.argsort(x, descending=True, stable=True), [0, 2, 3, 1], "int64")


def test_frequencies(backend, xp):
    assert_array(backend, xp.fft.fftfreq(4, d=0.5), [0, 0.5, -1, -0.5])
    assert_array(backend, xp.fft.rfftfreq(4), [0, 0.25, 0.5])


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
def test_numpys_frequencies_take_no_dtype(backend, xp):
    with pytest.raises(TypeError, match="dtype"):  # the framework's own function
        xp.fft.fftfreq(4, dtype=xp.float32)


@pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)
def test_frequencies_of_a_dtype(backend, xp):
    for dtype in ("float32", "float64"):
        out = xp.fft.fftfreq(5, dtype=getattr(xp, dtype))
        assert_array(backend, out, [0, 0.2, 0.4, -0.4, -0.2], dtype)
        assert_array(backend, xp.fft.rfftfreq(3, dtype=getattr(xp, dtype)), [0, 1 / 3], dtype)


def test_shapes_of_no_elements(backend, xp):
    empty = make(xp, np.zeros((0, 3)), "float64")
    assert_array(backend, xp.reshape(empty, (3, 0)), np.zeros((3, 0)))
    assert_array(backend, xp.concat([empty, make(xp, [[1, 2, 3]], "float64")]), [[1, 2, 3]])
    assert_array(backend, xp.matmul(xp.permute_dims(empty, (1, 0)), empty), np.zeros((3, 3)))
    assert_array(backend, xp.stack([empty, empty]), np.zeros((2, 0, 3)))
    assert_array(backend, xp.sort(empty, axis=0), np.zeros((0, 3)))
    assert_array(backend, xp.flip(empty), np.zeros((0, 3)))


# Dtypes

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float32", "float64", "complex64", "complex128"]


def promoted(first, second):
    """The standard's promotion of integers, or of floating dtypes; None if undefined."""
    if first in FLOATS:
        double = bool({first, second} & {"float64", "complex128"})
        if "complex" in first + second:
            return "complex128" if double else "complex64"
        return "float64" if double else "float32"
    size = lambda name: int(name.lstrip("uint"))
    if first.startswith("u") == second.startswith("u"):
        return max(first, second, key=size)
    unsigned, signed = sorted((first, second), key=lambda name: name.startswith("i"))
    if size(unsigned) < size(signed):
        return signed
    return f"int{2 * size(unsigned)}" if size(unsigned) < 64 else None


PAIRS = [
    (a, b)
    for group in (INTEGERS, FLOATS)
    for a, b in itertools.product(group, group)
    if promoted(a, b)
]


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_promotion(backend, xp, first, second):
    name = promoted(first, second)
    assert xp.result_type(getattr(xp, first), getattr(xp, second)) == getattr(xp, name)
    if not {first, second} & {"uint16", "uint32", "uint64"}:  # torch has few kernels for these
        out = xp.add(make(xp, [1, 2], first), make(xp, 1, second))  # 0-d arrays promote alike
        assert_array(backend, out, [2, 3], name)
        assert_array(
            backend, xp.multiply(make(xp, [1, 2], first), make(xp, [3, 4], second)), [3, 8], name
        )


@pytest.mark.parametrize(
    ("dtype", "number"),
    [
        *(("int32", 2), ("uint8", 2), ("int64", 2), ("float32", 2), ("float32", 0.5)),
        *(
            ("float64", 0.5),
            ("complex64", 2),
            ("complex64", 0.5),
            ("complex64", 1j),
            ("complex128", 1j),
        ),
    ],
)
def test_python_numbers_take_the_dtype_of_the_array(backend, xp, dtype, number):
    x = make(xp, [1, 3], dtype)
    sums, products = [1 + number, 3 + number], [1 * number, 3 * number]
    for out in (xp.add(x, number), xp.add(number, x), x + number, number + x):
        assert_array(backend, out, sums, dtype)
    for out in (xp.multiply(x, number), x * number, number * x):
        assert_array(backend, out, products, dtype)
    assert_array(backend, xp.equal(x, 3), [False, True], "bool")
    assert xp.result_type(x, number) == x.dtype


def test_casts(backend, xp):
    x = make(xp, [1.75, -2.5, 0.0], "float64")
    assert_array(backend, xp.astype(x, xp.float32), [1.75, -2.5, 0.0], "float32")
    assert_array(backend, xp.astype(x, xp.int64), [1, -2, 0], "int64")
    assert_array(backend, xp.astype(x, xp.bool), [True, True, False], "bool")
    assert_array(backend, xp.astype(x, xp.complex64), [1.75, -2.5, 0], "complex64")


def test_kinds_of_dtypes(backend, xp):
    kinds = {
        "bool": ["bool"],
        "signed integer": ["int8", "int16", "int32", "int64"],
        "unsigned integer": ["uint8", "uint16", "uint32", "uint64"],
        "real floating": ["float32", "float64"],
        "complex floating": ["complex64", "complex128"],
        "integral": INTEGERS,
        "numeric": INTEGERS + FLOATS,
    }
    for kind, members in kinds.items():
        found = [d for d in vocabulary.DTYPES if xp.isdtype(getattr(xp, d), kind)]
        assert sorted(found) == sorted(members)
    assert xp.isdtype(xp.float32, (xp.float64, "real floating"))
    assert not xp.isdtype(xp.float32, xp.float64)


def test_can_cast(backend, xp):
    assert xp.can_cast(xp.int8, xp.int16)
    assert xp.can_cast(xp.float32, xp.complex128)
    assert not xp.can_cast(xp.float64, xp.int32)


@pytest.mark.parametrize(
    ("dtype", "digits", "bits"), [("float32", 23, 32), ("float64", 52, 64), ("complex64", 23, 32)]
)
def test_limits_of_floats(backend, xp, dtype, digits, bits):
    info = xp.finfo(getattr(xp, dtype))
    exponent = 2 ** (bits - digits - 2)
    assert (info.bits, info.eps) == (bits, 2.0**-digits)
    assert info.max == (2 - 2.0**-digits) * 2.0 ** (exponent - 1) == -info.min
    assert info.smallest_normal == 2.0 ** (2 - exponent)
    assert info.dtype == getattr(xp, REAL_PART.get(dtype, dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_limits_of_integers(backend, xp, dtype):
    info = xp.iinfo(getattr(xp, dtype))
    bits = int(dtype.lstrip("uint"))
    low, high = (
        (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    )
    assert (info.bits, info.min, info.max) == (bits, low, high)
    assert info.dtype == getattr(xp, dtype)


def test_inspection(backend, xp):
    info = xp.__array_namespace_info__()
    limited = {"uint16", "uint32", "uint64"}  # torch stores these, but has few kernels for them
    assert set(vocabulary.DTYPES) - limited <= set(info.dtypes()) <= set(vocabulary.DTYPES)
    assert set(info.dtypes(kind="real floating")) == {"float32", "float64"}
    assert {"boolean indexing", "data-dependent shapes"} <= set(info.capabilities())
    assert info.default_device() in info.devices()
    assert {"real floating", "complex floating", "integral", "indexing"} <= set(
        info.default_dtypes()
    )
