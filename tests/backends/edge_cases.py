"""Edge inputs of every function of the vocabulary: NaN, infinities, signed zeros, ties, empty
arrays, out-of-range values, the largest and the smallest numbers.

A case has a function name, the name of its edge, a call and the arrays to call it with. Floats
among the arrays take the dtype under test. A case that states no expected values is compared with
NumPy's results.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

NAN, INF = math.nan, math.inf


class Case(NamedTuple):
    name: str  # function name, with its extension; "iso." comes before isomorph's own
    edge: str
    call: Callable  # takes the namespace and the arrays
    inputs: Any  # arrays or nested lists, or a function that makes them from np.finfo(dtype)
    values: Any = None  # expected results as a function of the inputs; None: NumPy's
    slopes: Any = None  # expected derivative as a function of the inputs; False: no derivative
    twice: bool = False  # also compare second derivatives
    raises: str | None = None  # the expected kind of error
    lost: bool = False  # a matrix that is not finite: each result shows it, or an error is raised
    elementwise: bool = False  # each result depends only on the inputs at the same position
    hermitian: bool = False  # only one triangle of the matrix is read


def at(name: str, edge: str, inputs: Any, *args: Any, **kw: Any) -> Case:
    """The function of that name with extra arguments."""
    options = {k: kw.pop(k) for k in [*kw] if k not in Case._fields}

    def call(xp, *arrays):
        func = xp
        for word in name.split("."):
            func = getattr(func, word)
        return func(*arrays, *args, **options)

    return Case(name, edge, call, inputs, **kw)


# All kinds of numbers, for functions of one and of two arguments.


def specials(f: np.finfo) -> list[float]:
    far = [float(f.max), float(f.tiny)]
    near = [1.0, 0.5, 2.0, 30.0]
    return [NAN, INF, -INF, 0.0, -0.0, *near, *(-x for x in near), *far, *(-x for x in far)]


def pairs(f: np.finfo) -> tuple:
    some = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0]
    far = [float(f.max), float(f.tiny), -float(f.max), -float(f.tiny), 1.0, -2.0]
    first = [*np.repeat(some, len(some)), *np.repeat(far, len(far))]
    return first, [*np.tile(some, len(some)), *np.tile(far, len(far))]


def denormals(f: np.finfo) -> list[float]:
    least = float(f.smallest_subnormal)
    return [least, -least, 1000 * least, -1000 * least]


UNARY = [
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "conj", "cos", "cosh", "exp",
    "expm1", "floor", "isfinite", "isinf", "isnan", "log", "log1p", "log2", "log10",
    "negative", "positive", "real", "reciprocal", "round", "sign", "signbit", "sin", "sinh",
    "square", "sqrt", "tan", "tanh", "trunc",
]  # fmt: skip
BINARY = [
    "add", "atan2", "copysign", "divide", "equal", "floor_divide", "greater", "greater_equal",
    "hypot", "less", "less_equal", "logaddexp", "maximum", "minimum", "multiply", "nextafter",
    "not_equal", "pow", "remainder", "subtract",
]  # fmt: skip
COMPLEX = ["abs", "sign", "exp", "log", "sqrt", "square", "conj", "real", "imag", "sin", "tanh"]
COMPLEX_EDGES = [0j, 1 + 0j, -1 + 0j, 1j, -1j, 0.5 - 0.5j]
INFINITE = [complex(INF, 0), complex(-INF, 1), complex(0, INF), complex(NAN, 0)]


def complex_pairs(*numbers: complex) -> tuple:
    return np.repeat(numbers, len(numbers)), np.tile(numbers, len(numbers))


def elementwise() -> list[Case]:
    one = lambda f: (specials(f),)
    few = lambda f: (denormals(f),)
    two = lambda f: (denormals(f), [1.0, 1.0, -2.0, float(f.smallest_subnormal)])
    each = {"elementwise": True}
    return [
        *(at(name, "specials", one, **each) for name in UNARY),
        *(at(name, "specials", pairs, twice=name == "logaddexp", **each) for name in BINARY),
        *(at(name, "denormals", few, **each) for name in ("abs", "sqrt", "log", "sign", "sinh")),
        *(at(name, "denormals", two, **each) for name in ("add", "divide", "maximum", "less")),
        *(at(name, "empty", ([],)) for name in ("abs", "log", "isnan")),
        *(at(name, "empty", ([], [1.0])) for name in ("add", "pow", "maximum", "less")),
        at("erf", "specials", one, values=lambda x: np.vectorize(math.erf)(x), **each),
        at("erf", "empty", ([],), values=lambda x: x),
        *(at(name, "complex", (COMPLEX_EDGES,), **each) for name in COMPLEX),
        *(
            at(name, "complex infinite", (INFINITE,), slopes=False)
            for name in ("abs", "exp", "log", "sqrt", "conj", "real", "imag")
        ),
        at("pow", "complex", complex_pairs(0j, 1 + 0j, 2 + 0j, 1 + 1j), **each),
        at("multiply", "complex", complex_pairs(0j, 1 + 0j, 1j), **each),
        at("divide", "complex", complex_pairs(1 + 0j, 1j, 2 - 1j), **each),
    ]


def raised(x: float, n: float) -> float:
    """x to the power n by the C library: Python's own power raises at poles."""
    if x == 0 and n < 0:
        return math.copysign(INF, x) if n % 2 else INF
    return NAN if -INF < x < 0 and n % 1 else math.pow(x, n)


def numbers() -> list[Case]:
    """Functions that take a Python number, bounds or integers as their other argument."""
    some = [NAN, INF, -INF, 0.0, -0.0, 1.5, -3.0]
    whole = np.array([0, 1, -1, 7, -(2**63), 2**63 - 1])
    return [
        *(
            Case(
                "pow", f"to {n!r}", lambda xp, x, n=n: xp.pow(x, n), (some,), twice=True,
                values=lambda x, n=n: np.array([raised(v, n) for v in x]), elementwise=True,
            )
            for n in (0, 0.0, 1, 2, -1, 0.5, 3.0)
        ),
        Case("pow", "operator to 0", lambda xp, x: x**0, (some,), twice=True, elementwise=True),
        Case("pow", "operator to 0.0", lambda xp, x: x**0.0, (some,), twice=True, elementwise=True),
        Case("pow", "of 0.0", lambda xp, x: xp.pow(0.0, x), ([0.0, 1.0, 2.0, NAN],)),
        at("clip", "bounds", (some,), -1.0, 1.0, elementwise=True),
        at("clip", "bounds the wrong way round", (some,), 2.0, 1.0, elementwise=True),
        at("clip", "no bounds", (some,), elementwise=True),
        at("clip", "infinite bounds", (some,), -INF, INF, elementwise=True),
        at("clip", "NaN as bound", (some, [NAN] * 7, [1.0] * 7), elementwise=True),
        at("clip", "arrays the wrong way round", ([0.0, 1.5, 3.0], [2.0] * 3, [1.0] * 3)),
        at("clip", "arrays", ([0.0, 1.5, 3.0], [1.0] * 3, [2.0] * 3)),
        at("clip", "integers the wrong way round", ([0, 5, 9],), 7, 3),
        at("clip", "empty", ([],), 0.0, 1.0),
        *(at(name, "integers", (whole,)) for name in ("abs", "negative", "sign", "square")),
        *(at(name, "integers", (whole[:4],)) for name in ("ceil", "floor", "trunc", "positive")),
        at("bitwise_invert", "ends of the range", (whole,)),
        *(
            at(name, "ends of the range", (whole, whole[::-1].copy()))
            for name in ("bitwise_and", "bitwise_or", "bitwise_xor")
        ),
        *(
            at(name, "by 0 and by 63", (whole, np.array([0, 63, 0, 63, 0, 63])))
            for name in ("bitwise_left_shift", "bitwise_right_shift")
        ),
        at("floor_divide", "integers", ([7, -7, 7, -7], [2, 2, -2, -2])),
        at("remainder", "integers", ([7, -7, 7, -7], [2, 2, -2, -2])),
        *(
            at(name, "all pairs", (np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)))
            for name in ("logical_and", "logical_or", "logical_xor")
        ),
        at("logical_not", "both", (np.array([False, True]),)),
        *(
            at(name, "empty", (np.array([], bool), np.array([], bool)))
            for name in ("logical_and", "logical_or", "logical_xor")
        ),
        Case(
            "where", "a NaN not taken",
            lambda xp, x, y: xp.where(x > 0, x, y), ([1.0, -1.0, NAN, INF], [NAN, 2.0, 3.0, -INF]),
        ),
        Case(
            "where", "an infinity not taken",
            lambda xp, x: xp.where(x == 0, 1.0, 1 / x), ([0.0, 2.0, -INF],),
        ),
        Case("where", "empty", lambda xp, x: xp.where(x > 0, x, 1.0), ([],)),
    ]  # fmt: skip


# Creation, manipulation and joining.

GRID = [[NAN, 1.0, -0.0], [INF, -INF, 2.0]]
LARGE = [NAN, 1e300, -1e-300, -0.0]


def moving() -> list[Case]:
    grid, none = (GRID,), (np.zeros((0, 3)),)
    return [
        Case("arange", "nothing", lambda xp, x: xp.arange(3.0, 3.0, dtype=x.dtype), ([0.0],)),
        Case("arange", "the wrong way", lambda xp, x: xp.arange(3, 0, dtype=x.dtype), ([0.0],)),
        Case("arange", "down", lambda xp, x: xp.arange(3, 0, -1, dtype=x.dtype), ([0.0],)),
        Case("asarray", "numbers", lambda xp, x: xp.asarray([NAN, INF], dtype=x.dtype), ([0.0],)),
        at("asarray", "traced", grid),
        Case("empty", "of nothing", lambda xp, x: xp.empty((0, 2), dtype=x.dtype), ([0.0],)),
        at("empty_like", "of nothing", none),
        Case("eye", "of nothing", lambda xp, x: xp.eye(0, dtype=x.dtype), ([0.0],)),
        Case("eye", "diagonal outside", lambda xp, x: xp.eye(2, 3, k=5, dtype=x.dtype), ([0.0],)),
        Case("eye", "far outside", lambda xp, x: xp.eye(2, k=-(2**70), dtype=x.dtype), ([0.0],)),
        Case("eye", "diagonal below", lambda xp, x: xp.eye(2, 3, k=-2, dtype=x.dtype), ([0.0],)),
        at("from_dlpack", "nothing", (np.zeros((0,), np.int64),)),
        Case("full", "NaN", lambda xp, x: xp.full((2,), NAN, dtype=x.dtype), ([0.0],)),
        at("full_like", "infinity", grid, -INF),
        Case("linspace", "no points", lambda xp, x: xp.linspace(0, 1, 0, dtype=x.dtype), ([0.0],)),
        Case("linspace", "one point", lambda xp, x: xp.linspace(2, 3, 1, dtype=x.dtype), ([0.0],)),
        Case("linspace", "equal ends", lambda xp, x: xp.linspace(2, 2, 3, dtype=x.dtype), ([0.0],)),
        Case("linspace", "down", lambda xp, x: xp.linspace(2, -1, 4, dtype=x.dtype), ([0.0],)),
        at("meshgrid", "nothing", ([], [NAN, 1.0])),
        Case("ones", "of nothing", lambda xp, x: xp.ones((0, 2), dtype=x.dtype), ([0.0],)),
        at("ones_like", "NaN", grid),
        Case("zeros", "of nothing", lambda xp, x: xp.zeros((2, 0), dtype=x.dtype), ([0.0],)),
        at("zeros_like", "NaN", grid),
        at("tril", "specials above", grid),
        at("tril", "diagonal outside", grid, k=-5),
        at("triu", "specials below", grid),
        at("triu", "diagonal outside", grid, k=5),
        at("triu", "nothing", none),
        Case("astype", "to truth", lambda xp, x: xp.astype(x, xp.bool), grid),
        Case("astype", "to float32", lambda xp, x: xp.astype(x, xp.float32), (LARGE,)),
        at("broadcast_arrays", "nothing", ([], [1.0])),
        at("broadcast_arrays", "specials", (GRID, [1.0, NAN, INF])),
        at("broadcast_to", "to nothing", ([1.0],), (0,)),
        at("broadcast_to", "shapes that differ", ([1.0, 2.0],), (3,), raises="value"),
        Case("concat", "with nothing", lambda xp, *x: xp.concat(x), ([], [NAN, 1.0], [])),
        Case("concat", "no such axis", lambda xp, x: xp.concat([x], axis=2), grid, raises="value"),
        Case("stack", "nothings", lambda xp, *x: xp.stack(x), ([], [])),
        Case("stack", "shapes apart", lambda xp, *x: xp.stack(x), ([1.0], []), raises="value"),
        at("unstack", "nothing", none),
        Case("unstack", "specials", lambda xp, x: xp.unstack(x, axis=1), grid),
        at("expand_dims", "nothing", none, axis=0),
        at("expand_dims", "no such axis", ([1.0],), axis=4, raises="value"),
        at("flip", "specials", grid),
        at("flip", "nothing", none),
        at("moveaxis", "nothing", none, 0, 1),
        at("moveaxis", "no such axis", grid, 0, 3, raises="value"),
        at("permute_dims", "specials", grid, (1, 0)),
        at("permute_dims", "axes from the end", grid, (-1, 0)),
        at("repeat", "never", grid, 0, axis=1),
        Case("repeat", "0 times", lambda xp, x: xp.repeat(x, xp.asarray([2, 0]), axis=0), grid),
        at("reshape", "nothing", none, (3, 0)),
        at("reshape", "sizes that differ", grid, (5,), raises="value"),
        at("roll", "further than the size", ([1.0, NAN, 3.0],), 7),
        at("roll", "nothing", ([],), 2),
        at("squeeze", "nothing", (np.zeros((1, 0)),), axis=0),
        at("squeeze", "a size of 2", (np.zeros((2, 1)),), axis=0, raises="value"),
        at("tile", "never", grid, (0, 1)),
        at("tile", "specials", grid, (2, 1)),
        at("pad", "nothing", (np.zeros((0,)),), ((1, 2),)),
        at("pad", "with infinity", ([NAN, 1.0],), ((1, 1),), constant_values=-INF),
        at("pad", "by nothing", ([NAN, 1.0],), ((0, 0),)),
        at("matrix_transpose", "nothing", none),
        at("matrix_transpose", "a vector", ([1.0],), raises="value"),
    ]  # fmt: skip


# Indices.


def indices() -> list[Case]:
    row, table = [1.0, NAN, 3.0], [[1.0, 2.0, 3.0], [4.0, NAN, 6.0]]

    def taken(edge, x, where, axis=0, raises=None):
        where = np.array(where, np.int64)
        return Case(
            "take", edge, lambda xp, x, i: xp.take(x, i, axis=axis), (x, where), raises=raises
        )

    def along(edge, x, where, axis=0, raises=None):
        where = np.array(where, np.int64)
        return Case(
            "take_along_axis", edge, lambda xp, x, i: xp.take_along_axis(x, i, axis=axis),
            (x, where), raises=raises,
        )  # fmt: skip

    return [
        taken("twice", row, [0, 0, 2]),
        taken("from the back", row, [-1, -3]),
        taken("none", row, []),
        taken("beyond the end", row, [0, 3], raises="index"),
        taken("before the start", row, [-4], raises="index"),
        taken("far beyond", row, [2**40], raises="index"),
        taken("beyond the second axis", table, [5], 1, raises="index"),
        taken("of nothing", np.zeros((0,)), [0], raises="index"),
        along("twice", row, [0, 0, 2]),
        along("from the back", row, [-1, -3]),
        along("none", row, []),
        along("beyond the end", row, [0, 3], raises="index"),
        along("before the start", row, [-4], raises="index"),
        along("beyond the last axis", table, [[0], [3]], 1, raises="index"),
        along("before the last axis", table, [[0], [-4]], -1, raises="index"),
        along("beyond, inside the table", table, [[4, 0, 0]], 0, raises="index"),
    ]


# Rows of four: searching, sorting, sets, sums, products, extremes, variances.

ROWS = {
    "NaN": [2.0, NAN, 1.0, 3.0],
    "several NaN": [NAN, 1.0, NAN, INF],
    "infinity": [1.0, INF, 2.0, 0.5],
    "both infinities": [INF, 1.0, -INF, 0.0],
    "minus infinity": [1.0, -INF, -INF, 2.0],
    "ties": [2.0, 1.0, 2.0, 1.0],
    "equal": [3.0, 3.0, 3.0, 3.0],
    "zeros": [0.0, -0.0, 0.0, -0.0],
    "one zero": [2.0, 0.0, 3.0, -1.0],
    "two zeros": [2.0, 0.0, 0.0, 3.0],
    "only NaN": [NAN, NAN, NAN, NAN],
}
FLAT = ("NaN", "ties", "equal", "zeros", "two zeros")  # also without an axis


def rows(f: np.finfo) -> tuple:
    return ([*ROWS.values(), [float(f.max), float(f.max), 1.0, 1.0]],)


def searching() -> list[Case]:
    found = []
    for name in ("argmax", "argmin"):
        found += [at(name, "rows", rows, axis=1)]
        found += [at(name, edge, (ROWS[edge],)) for edge in FLAT]
        found += [
            at(name, "empty", ([],), raises="value"),
            at(name, "no columns", (np.zeros((2, 0)),), axis=1, raises="value"),
            at(name, "no rows", (np.zeros((0, 2)),), axis=1),
            at(name, "integers at both ends", (np.array([-(2**63), 2**63 - 1]),)),
        ]
    for name in ("sort", "argsort"):
        found += [at(name, "rows", rows), at(name, "rows, descending", rows, descending=True)]
        found += [at(name, "empty", ([],))]
    for name in ("unique_all", "unique_counts", "unique_inverse", "unique_values"):
        few = ROWS if name == "unique_all" else FLAT
        found += [at(name, edge, (ROWS[edge],)) for edge in few]
        found += [at(name, "empty", ([],))]
    return [
        *found,
        at("count_nonzero", "specials", (GRID,)),
        at("count_nonzero", "empty", ([],)),
        at("nonzero", "specials", (GRID,)),
        at("nonzero", "empty", ([],)),
        at("nonzero", "of one number", (np.array(1.0),), raises="value"),
        at("searchsorted", "specials", ([-INF, 0.0, 1.0, INF], [-INF, INF, 0.5, -0.0])),
        at("searchsorted", "NaN is last", ([0.0, 1.0, INF, NAN], [NAN, INF, -INF, 0.5])),
        at(
            "searchsorted", "NaN, right", ([0.0, INF, NAN, NAN], [NAN, INF, 2.0, 0.0]), side="right"
        ),
        at(
            "searchsorted",
            "ties, right",
            ([1.0, 1.0, 2.0, 2.0], [1.0, 2.0, 0.0, 3.0]),
            side="right",
        ),
        at("searchsorted", "in nothing", ([], [1.0, NAN])),
        at("searchsorted", "for nothing", ([1.0], [])),
    ]


def statistics() -> list[Case]:
    found = []
    for name in ("max", "min", "mean", "sum", "prod", "var", "std", "all", "any"):
        found += [at(name, "rows", rows, axis=1)]
        found += [at(name, edge, (ROWS[edge],)) for edge in FLAT]
        found += [at(name, "no rows", (np.zeros((0, 2)),), axis=1)]
        found += [at(name, "no axes", (GRID,), axis=())]
        raises = "value" if name in ("max", "min") else None
        found += [at(name, "empty", ([],), raises=raises)]
        found += [at(name, "no columns", (np.zeros((2, 0)),), axis=1, raises=raises)]
    for name in ("var", "std"):
        found += [
            at(name, f"correction {k} of 4", ([1.0, 2.0, 4.0, 4.0],), correction=k)
            for k in (1, 3.5, 4, 4.0, 4.5, 5, 10)
        ]
        found += [
            at(name, "correction of equal numbers", (ROWS["equal"],), correction=4),
            at(name, "correction of rows", (rows), correction=5, axis=1),
            at(name, "correction of no axes", (GRID,), correction=1, axis=()),
        ]
    for name in ("cumulative_sum", "cumulative_prod"):
        found += [at(name, "rows", rows, axis=1)]
        found += [at(name, "empty with a start", ([],), include_initial=True)]
        found += [at(name, "without an axis", (GRID,), raises="value")]
    zeros = ([ROWS[edge] for edge in ("zeros", "one zero", "two zeros")],)
    return [
        *found,
        at("prod", "zeros", zeros, axis=1, twice=True),
        at("cumulative_prod", "zeros", zeros, axis=1, twice=True),
        at("diff", "rows", rows),
        at("diff", "of one", ([1.0],)),
        at("diff", "empty", ([],)),
        at("diff", "further than the size", ([1.0, 2.0],), n=3),
    ]


def products() -> list[Case]:
    rows, columns = np.zeros((2, 0)), np.zeros((0, 3))
    special = ([[NAN, 1.0], [0.0, INF]], [[1.0, 0.0], [2.0, INF]])
    apart = ([[1.0, 2.0]], [[1.0], [2.0], [3.0]])
    wide = np.array([[0.5, -1.0, 2.0], [3.0, 0.25, -0.75]])
    cases = []
    for name in ("matmul", "linalg.matmul"):
        cases += [at(name, "over nothing", (rows, columns)), at(name, "specials", special)]
        cases += [at(name, "sizes that differ", apart, raises="value")]
    for name in ("tensordot", "linalg.tensordot"):
        cases += [at(name, "over nothing", (rows, columns), axes=1)]
        cases += [
            at(name, "specials", special, axes=1),
            at(name, "no axes", ([1.0], [NAN]), axes=0),
        ]
    for name in ("vecdot", "linalg.vecdot"):
        cases += [at(name, "over nothing", (rows, rows)), at(name, "specials", special)]
        cases += [at(name, "sizes that differ", ([1.0, 2.0], [1.0, 2.0, 3.0]), raises="value")]
    einsum = lambda edge, form, *x, **kw: Case(
        "einsum", edge, lambda xp, *arrays: xp.einsum(form, *arrays), x, **kw
    )
    return [
        *cases,
        einsum("over nothing", "ij,jk->ik", rows, columns),
        einsum("specials", "ij,jk->ik", *special),
        einsum("a diagonal", "ii->i", special[0]),
        einsum("sizes that differ", "ij,jk->ik", *apart, raises="value"),
        einsum("one for all", "ij,ij->ij", wide, wide[:1]),
        einsum("one for all of a sum", "ij,ij->j", wide[:1], wide),
        einsum("one for all, summed", "ij,jk->ik", wide, wide[:1]),
        einsum("one for all of three", "ij,ij,kj->ik", wide, wide[:, :1], wide[:1]),
        einsum("one for all, of any axes", "...ij,...j,i->...", wide[None], wide[:1], wide[0, :1]),
        einsum("one for all of a diagonal", "ii,ij->j", wide[:1, :1], wide),
    ]


CASES = [
    *elementwise(), *numbers(), *moving(), *indices(), *searching(), *statistics(), *products(),
]  # fmt: skip
