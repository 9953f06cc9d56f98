"""What is differentiated in test_numpy_rules.py: (name, function of arrays, the arrays), by topic.

Arrays are drawn from a fixed stream; `R` real, `Z` complex, `P` positive. Functions without a unique answer (eigenvectors up
to a phase) are tested through what does not depend on the choice.
"""

# ruff: noqa: E501  (a case is one line)

from zlib import crc32

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view


def _rng(*key):
    return np.random.default_rng(crc32(repr(key).encode()))


def R(*shape, key=0):
    return _rng("R", shape, key).standard_normal(shape)


def P(*shape, key=0):
    return _rng("P", shape, key).uniform(0.5, 2.0, shape)


def Z(*shape, key=0):
    rng = _rng("Z", shape, key)
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def holed(x, *places):
    """x with zeros at these flat positions."""
    x = x.copy()
    for i in places:
        x.flat[i] = 0
    return x


MASK = np.array([[True, False, True, True], [False, True, True, False], [True, True, False, True]])
NANS = np.where(MASK, R(3, 4), np.nan)

SHAPING = [
    ("reshape", lambda x: np.reshape(x, (4, -1)), R(2, 3, 4)),
    ("reshape F", lambda x: np.reshape(x, (4, -1), order="F"), R(2, 3, 4)),
    ("reshape A of a transpose", lambda x: np.reshape(x.T, (4, -1), order="A"), R(2, 6)),
    ("ravel F", lambda x: np.ravel(x, "F"), R(2, 3)),
    ("ravel K", lambda x: np.ravel(x.T, order="K"), R(2, 3)),
    ("flatten", lambda x: x.flatten("F"), R(2, 3)),
    ("squeeze", lambda x: np.squeeze(x, 1), R(2, 1, 3, 1)),
    ("expand_dims", lambda x: np.expand_dims(x, (0, 2)), R(2, 3)),
    ("transpose", lambda x: np.transpose(x, (2, 0, -2)), R(2, 3, 4)),
    ("permute_dims", lambda x: np.permute_dims(x, (1, 2, 0)), R(2, 3, 4)),
    ("swapaxes", lambda x: np.swapaxes(x, 0, -1), R(2, 3, 4)),
    ("moveaxis", lambda x: np.moveaxis(x, (0, 1), (-1, 0)), R(2, 3, 4)),
    ("rollaxis", lambda x: (np.rollaxis(x, 2), np.rollaxis(x, 0, 3), np.rollaxis(x, 1, -1)), R(2, 3, 4)),
    ("matrix_transpose", lambda x: np.matrix_transpose(x), R(2, 3, 4)),
    ("linalg.matrix_transpose", lambda x: np.linalg.matrix_transpose(x), Z(2, 3, 4)),
    ("broadcast_to", lambda x: np.broadcast_to(x, (2, 3, 4)), R(3, 1)),
    ("broadcast_arrays", lambda x, y: np.broadcast_arrays(x, y, np.ones((2, 1, 1))), R(3, 1), R(4)),
    ("flip", lambda x: (np.flip(x), np.flip(x, 1), np.fliplr(x), np.flipud(x)), R(2, 3)),
    ("rot90", lambda x: (np.rot90(x), np.rot90(x, 2, (1, 2)), np.rot90(x, 3, (2, 0))), R(2, 3, 4)),
    ("roll", lambda x: (np.roll(x, 2), np.roll(x, (1, -2), (0, 1)), np.roll(x, 1, 1)), R(3, 4)),
    ("tile", lambda x: (np.tile(x, 3), np.tile(x, (2, 1, 2))), R(2, 3)),
    ("repeat", lambda x: (np.repeat(x, 2), np.repeat(x, 3, 1), np.repeat(x, [2, 0, 1], -1)), R(2, 3)),
    ("pad", lambda x: (np.pad(x, 1), np.pad(x, ((0, 1), (2, 0)), constant_values=3)), R(3, 4)),
    ("pad edge", lambda x: np.pad(x, ((0, 1), (2, 3)), "edge"), R(3, 4)),
    ("pad reflect", lambda x: np.pad(x, ((2, 1), (2, 5)), "reflect"), R(3, 4)),
    ("pad symmetric wrap", lambda x: (np.pad(x, 2, "symmetric"), np.pad(x, (5, 6), mode="wrap")), R(3, 4)),
    ("pad by dict", lambda x: np.pad(x, {-1: (1, 2)}), R(3, 4)),
    ("atleast", lambda x, y: (*np.atleast_1d(x, y), *np.atleast_2d(x, y), *np.atleast_3d(x, y)), R(), R(3)),
    ("atleast_3d of a matrix", lambda x: np.atleast_3d(x), R(2, 3)),
    ("meshgrid", lambda x, y, z: np.meshgrid(x, y, z), R(2), R(3), R(4)),
    ("meshgrid ij", lambda x, y: (*np.meshgrid(x, y, indexing="ij"), *np.meshgrid(x, y, sparse=True)), R(2), R(3)),
    ("diag", lambda x, y: (np.diag(x, -1), np.diag(y), np.diag(y, 2), np.diagflat(y, 1)), R(3), R(3, 4)),
    ("diagonal", lambda x: (np.diagonal(x, 1), np.diagonal(x, -1, 2, 0), np.diagonal(x, 9)), R(3, 4, 2)),
    ("linalg.diagonal", lambda x: (np.linalg.diagonal(x, offset=1), np.linalg.diagonal(x, offset=-2)), Z(3, 4, 2)),
    ("trace", lambda x: (np.trace(x), np.trace(x, 1, 2, 1), np.linalg.trace(x, offset=-1)), R(3, 4, 2)),
    ("tril triu", lambda x: (np.tril(x, -1), np.triu(x, 1)), R(2, 3, 3)),
    ("resize", lambda x: (np.resize(x, (2, 7)), np.resize(x, 2)), R(2, 3)),
    ("astype", lambda x: x.astype(np.complex128) * (1 + 2j), R(3)),
    ("copy", lambda x: np.copy(x) * x, R(3)),
    ("full_like", lambda x: np.full_like(x, np.sum(x * x), shape=(2, 3)), R(3)),
    ("trim_zeros", lambda x: np.trim_zeros(x * [0, 0, 1, 1, 0, 1, 0]), R(7)),
]  # fmt: skip

JOINING = [
    ("concatenate", lambda x, y: np.concatenate([x, np.ones((1, 3)), y], 0), R(2, 3), R(1, 3)),
    ("concat axis None", lambda x, y: np.concat((x, y), axis=None), R(2, 3), R(4)),
    ("concatenate one traced array", lambda x: np.concatenate(x, 1), R(2, 3, 4)),
    ("stack", lambda x, y: (np.stack([x, y], 1), np.stack((y, x), -1)), R(2, 3), R(2, 3, key=1)),
    ("vstack", lambda x, y: (np.vstack([x, y]), np.hstack([x, x]), np.dstack([x, x])), R(3), R(2, 3)),
    ("hstack of matrices", lambda x, y: (np.hstack([x, y]), np.dstack([x, x])), R(2, 3), R(2, 4)),
    ("column_stack", lambda x, y: np.column_stack([x, y, x]), R(3), R(3, 2)),
    ("split", lambda x: (*np.split(x, 2, 1), *np.split(x, [1, 3], 1), *np.array_split(x, 3, 1)), R(2, 4)),
    ("hsplit", lambda x: (*np.hsplit(x, 3), *np.vsplit(x, 2), *np.dsplit(x, [1])), R(2, 3, 4)),
    ("unstack", lambda x: (*np.unstack(x), *np.unstack(x, axis=-1)), R(2, 3)),
    ("append", lambda x, y: (np.append(x, y), np.append(x, y, 0), np.append(x, 2.0)), R(2, 3), R(1, 3)),
    ("insert", lambda x, y: (np.insert(x, 1, y, 1), np.insert(x, [0, 3], 2.0, axis=1)), R(2, 3), R(2)),
    ("insert flat", lambda x, y: (np.insert(x, [5, 1], y), np.insert(x, slice(0, 2), y), np.insert(x, np.array([1, 0, 0, 1, 0, 0], bool), y), np.insert(x, [1], y)), R(2, 3), R(2)),
    ("block", lambda x, y: (np.block([[x, y], [y, x]]), np.block([x, x]), np.block([y[0], y[0]])), R(2, 2), R(2, 2, key=1)),
]  # fmt: skip

INDEXING = [
    ("slice", lambda x: x[1:, ::-2] * x[0, 1], R(3, 4)),
    ("ellipsis and newaxis", lambda x: x[..., None, 1], R(3, 4)),
    ("integer arrays", lambda x: x[[0, 0, 2], [1, 1, 3]] ** 2, R(3, 4)),
    ("mask", lambda x: x[MASK] ** 2, R(3, 4)),
    ("iteration", lambda x: sum(i * row**2 for i, row in enumerate(x)), R(3, 4)),
    ("take", lambda x: (np.take(x, [5, 0, 0]), np.take(x, [[1, -1]], 1), np.take(x, [7, -9], 0, mode="wrap"), np.take(x, [77, 3], mode="clip")), R(3, 4)),
    ("take_along_axis of one row of indices", lambda x: np.take_along_axis(x, np.array([[1, 0, 1]]), 1), R(4, 3)),
    ("take_along_axis of one column", lambda x: np.take_along_axis(x, np.array([[1], [2]]), 0), R(3, 4)),
    ("take_along_axis", lambda x: np.take_along_axis(x, np.array([[1, 1, 0]]).T, 1), R(3, 4)),
    ("take_along_axis None", lambda x: np.take_along_axis(x, np.array([1, 1, 9]), None), R(3, 4)),
    ("delete", lambda x: (np.delete(x, 1, 1), np.delete(x, [0, 5]), np.delete(x, slice(0, 2), 0)), R(3, 4)),
    ("compress", lambda x: (np.compress([True, False, True], x, 1), np.compress([1, 0, 1], x)), R(3, 4)),
    ("extract", lambda x: np.extract(MASK, x), R(3, 4)),
    ("select", lambda x: np.select([x < -0.5, x < 0.5], [x**2, np.sin(x)], 7.0), R(3, 4)),
    ("choose", lambda x, y: np.choose([[0, 1, 1], [1, 0, 1]], [x, y]), R(2, 3), R(3)),
    ("piecewise", lambda x: np.piecewise(x, [x < -0.5, x > 0.5], [np.exp, lambda v: v**2, 3.0]), R(3, 4)),
    ("where", lambda x: np.where(MASK, x, np.sin(x)), R(3, 4)),
    ("where on itself", lambda x: np.where(x, 1 / x, x), P(3, 4)),
    ("sliding windows", lambda x: (sliding_window_view(x, (2, 3)), sliding_window_view(x, 2, 1), sliding_window_view(x, (2, 2), (1, 1))), R(3, 4)),
    ("sliding windows of two axes", lambda x: sliding_window_view(x, (2, 1), axis=(-1, 0)), R(2, 3, 4)),
    ("apply_along_axis", lambda x: np.apply_along_axis(lambda v: v[:2] * v[2], 1, x), R(2, 3, 2)),
    ("apply_over_axes", lambda x: np.apply_over_axes(np.sum, x**2, [0, 2]), R(2, 3, 2)),
]  # fmt: skip

REDUCTIONS = [
    ("sum", lambda x: (np.sum(x**2), np.sum(x, (0, -1)), np.sum(x, 1, keepdims=True), x.sum(axis=())), R(2, 3, 4)),
    ("sum where", lambda x: (np.sum(x**2, 1, where=MASK), np.sum(x, initial=3.0)), R(3, 4)),
    ("reshape in Fortran's order", lambda x: (np.reshape(x, (2, 3), order="F"), np.reshape(x, (3, -1), order="F")[0], x.reshape((1, 6), order="F"), np.reshape(x, (2, 3)).flatten("F")), R(6)),
    ("reshape of a matrix in Fortran's order", lambda x: (np.reshape(x, (3, 2, 2), order="F"), np.reshape(x, -1, order="F"), np.ravel(x, "F")), R(3, 4)),
    ("logaddexp.reduce", lambda x: (np.logaddexp.reduce(x), np.logaddexp.reduce(x, axis=(0, 2), keepdims=True), np.logaddexp.reduce(x, None, initial=0.3)), R(3, 4, 2)),
    ("hypot.reduce", lambda x: (np.hypot.reduce(x, 1), np.subtract.reduce(x), np.divide.reduce(x, -1, keepdims=True)), P(3, 4)),
    ("logaddexp.accumulate", lambda x: (np.logaddexp.accumulate(x), np.maximum.accumulate(x, 1), np.minimum.accumulate(x, -2), np.divide.accumulate(x)), P(3, 4)),
    ("add.reduce", lambda x: (np.add.reduce(x), np.multiply.reduce(x, 1), np.maximum.reduce(x), np.add.accumulate(x)), R(3, 4)),
    ("mean", lambda x: (np.mean(x**2), np.mean(x, (0, 2), keepdims=True), np.mean(x, axis=-1)), R(2, 3, 4)),
    ("mean where", lambda x: np.mean(x**2, 1, where=MASK), R(3, 4)),
    ("max", lambda x: (np.max(x, 0), np.min(x, (0, 2)), np.amax(x), np.amin(x, -1, keepdims=True)), R(2, 3, 4)),
    ("max where", lambda x: (np.max(x, 1, initial=0.3), np.min(x, 1, where=MASK, initial=9.0)), R(3, 4)),
    ("ptp", lambda x: (np.ptp(x, 1), np.ptp(x)), R(3, 4)),
    ("prod", lambda x: (np.prod(x), np.prod(x, 1), np.prod(x, (0, 2), keepdims=True)), R(2, 3, 4)),
    ("prod of one and none", lambda x: (np.prod(x[:1]), np.prod(x[:0]), np.prod(x, axis=())), R(3)),
    ("prod with a zero", lambda x: np.prod(x, 1), holed(R(3, 5), 2, 6, 8)),
    ("prod with zeros", lambda x: np.prod(x), holed(R(5), 0, 3)),
    ("prod where", lambda x: (np.prod(x, 1, where=MASK), np.prod(x, initial=2.5)), R(3, 4)),
    ("prod complex", lambda x: np.prod(x, 1), Z(2, 4)),
    ("cumsum", lambda x: (np.cumsum(x), np.cumsum(x, 1), np.cumsum(x, -2)), R(2, 3)),
    ("cumprod", lambda x: (np.cumprod(x), np.cumprod(x, 1), np.cumprod(x, 0)), R(2, 5)),
    ("cumprod with zeros", lambda x: np.cumprod(x, 1), holed(R(2, 6), 2, 4, 6)),
    ("cumprod complex", lambda x: np.cumprod(x, 0), Z(5, 2)),
    ("cumulative_sum", lambda x: (np.cumulative_sum(x, axis=1, include_initial=True), np.cumulative_sum(x, axis=0)), R(2, 3)),
    ("cumulative_prod", lambda x: np.cumulative_prod(x, include_initial=True), R(4)),
    ("var", lambda x: (np.var(x), np.var(x, 1, ddof=1), np.var(x, (0, 2), correction=0.5, keepdims=True)), R(2, 3, 4)),
    ("var where", lambda x: np.var(x, 1, where=MASK), R(3, 4)),
    ("var complex", lambda x: (np.var(x, 1), np.std(x)), Z(3, 4)),
    ("std", lambda x: (np.std(x), np.std(x, 1, ddof=1), np.std(x, (0, 2), correction=0.5, keepdims=True)), R(2, 3, 4)),
    ("std where", lambda x: np.std(x, 1, where=MASK, keepdims=True), R(3, 4)),
    ("nansum", lambda x: (np.nansum(x, 1) ** 2, np.nansum(x), np.nanprod(x, 1), np.nanprod(x)), NANS),
    ("nanmean", lambda x: (np.nanmean(x, 1) ** 2, np.nanvar(x, 1, ddof=1), np.nanstd(x, 0), np.nanstd(x)), NANS),
    ("nanmax", lambda x: (np.nanmax(x, 1), np.nanmin(x), np.nanmin(x, 0, keepdims=True)), NANS),
    ("nancumsum", lambda x: (np.nancumsum(x, 1), np.nancumprod(x, 0), np.nancumsum(x)), NANS),
    ("bincount", lambda w: np.bincount([0, 3, 0, 1], w, minlength=6), R(4)),
]  # fmt: skip

SORTING = [
    ("sort", lambda x: (np.sort(x), np.sort(x, 0, kind="stable"), np.sort(x, None)), R(3, 4)),
    ("sort complex", lambda x: (np.sort(x), np.sort_complex(x)), Z(4)),
    ("partition", lambda x: np.partition(x, 3), R(7)),
    ("median", lambda x: (np.median(x), np.median(x, 1), np.median(x, (0, 2), keepdims=True)), R(2, 3, 4)),
    ("quantile", lambda x: (np.quantile(x, 0.3), np.quantile(x, [0.1, 0.7], 1), np.percentile(x, 40, (0, 1), keepdims=True)), R(3, 4)),
    ("quantile q", lambda x, q: np.quantile(x, np.sin(q) ** 2, axis=0), R(5, 2), R(2)),
    ("quantile methods", lambda x: tuple(np.quantile(x, 0.37, 0, method=m) for m in ("lower", "higher", "nearest", "midpoint")), R(5, 2)),
    ("nanmedian", lambda x: (np.nanmedian(x, 1), np.nanmedian(x), np.nanquantile(x, [0.2, 0.6], 0), np.nanpercentile(x, 35.0)), NANS),
    ("unique", lambda x: (np.unique(x), np.unique(x, axis=0), np.unique_values(x), np.unique_all(x).values), R(3, 2)),
    ("sets", lambda x: (np.union1d(x, [9.0]), np.setdiff1d(x, [9.0]), np.setxor1d(x, [9.0]), np.intersect1d(x, x)), R(3)),
]  # fmt: skip

STATISTICS = [
    ("average", lambda x, w: (np.average(x, 1, w**2), np.average(x), np.average(x, 0)), R(2, 3), R(3)),
    ("average weights", lambda x, w: np.average(x, (0, 1), w**2, returned=True), R(2, 3, 4), R(2, 3)),
    ("cov", lambda x, y: (np.cov(x), np.cov(x, y), np.cov(x, rowvar=False, ddof=0), np.cov(x, bias=True)), R(2, 5), R(2, 5, key=1)),
    ("cov weights", lambda x, w: (np.cov(x, aweights=w**2), np.cov(x, fweights=[1, 2, 1, 3, 1])), R(2, 5), P(5)),
    ("cov complex", lambda x: np.cov(x), Z(2, 5)),
    ("corrcoef", lambda x: np.corrcoef(x)[0, 1:], R(3, 5)),
]  # fmt: skip

CALCULUS = [
    ("diff", lambda x: (np.diff(x), np.diff(x, 2, 0), np.diff(x, prepend=0.0, append=x[:, :2])), R(3, 4)),
    ("ediff1d", lambda x: (np.ediff1d(x), np.ediff1d(x, to_begin=[1.0], to_end=x[0])), R(3, 4)),
    ("trapezoid", lambda y, x: (np.trapezoid(y), np.trapezoid(y, x, axis=0), np.trapezoid(y, dx=0.3)), R(3, 4), R(3)),
    ("trapezoid x", lambda y, x: np.trapezoid(y, x), R(3, 4), R(3, 4, key=1)),
    ("gradient", lambda x: (*np.gradient(x), np.gradient(x, 0.5, axis=1, edge_order=2), *np.gradient(x, 2.0, 0.5)), R(3, 4)),
    ("gradient coordinates", lambda x, t: (np.gradient(x, t**2, axis=1), np.gradient(x, t, axis=1, edge_order=2)), R(3, 4), np.cumsum(P(4))),
    ("gradient of two", lambda x: np.gradient(x, 2.0), R(2)),
    ("interp", lambda x, t, f: np.interp(x, t, f, left=-1.0), 3 * R(9), np.cumsum(P(5)), R(5)),
    ("interp period", lambda x, t, f: np.interp(x, t, f, period=4.0), 3 * R(9), np.cumsum(P(5)), R(5)),
    ("linspace", lambda a, b: (np.linspace(a, b, 5), np.linspace(a, b, 4, endpoint=False, axis=-1), np.geomspace(a**2, b**2, 4), np.logspace(a, b, 3)), R(2), R(2, key=1)),
    ("unwrap", lambda x: np.unwrap(x), 5 * R(6)),
]  # fmt: skip

UNARY = {  # domain: the functions tested on it
    R: "negative positive absolute fabs exp exp2 expm1 square sin cos tan sinh cosh tanh arcsinh arctan degrees "
       "radians rad2deg deg2rad sinc real imag conjugate nan_to_num angle sign floor unwrap",
    P: "log log2 log10 log1p sqrt cbrt reciprocal",
    Z: "negative positive absolute exp exp2 expm1 log log2 log10 log1p sqrt square reciprocal sin cos tan sinh cosh "
       "tanh arcsin arccos arctan arcsinh arccosh arctanh real imag conjugate angle sign",
}  # fmt: skip
BINARY = {
    R: "add subtract multiply divide maximum minimum fmax fmin logaddexp logaddexp2 arctan2 hypot copysign",
    P: "power float_power remainder fmod divide",
    Z: "add subtract multiply divide power",
}
ELEMENTWISE = [
    *[(f"{n} {d.__name__}", getattr(np, n), d(3, 4)) for d, names in UNARY.items() for n in names.split()],
    *[(f"{n} {d.__name__}", getattr(np, n), d(3, 4), d(4)) for d, names in BINARY.items() for n in names.split()],
    ("arcs", lambda x: (np.arcsin(x / 3), np.arccos(x / 3), np.arctanh(x / 3), np.arccosh(x + 2)), P(3, 4)),
    ("operators", lambda x, y: (-x + 2 * y - 1, (1 - x) / y, 2 / x, x % y, abs(x), x**2, 2**x, x**-1, +x), P(3), P(2, 3)),
    ("complex numbers", lambda x: (x * (1 + 2j), (1 - 2j) / x, x ** (1 + 1j), (2 + 1j) ** x, x**0.5), P(3)),
    ("powers of zero", lambda x: (x**2, x**1, x**0, x**3.0, np.power(x, [[0], [1], [2]])), holed(R(4), 1, 2)),
    ("power scalar", lambda x, p: x**p, P(3), R()),
    ("clip", lambda x: (np.clip(x, -0.5, 0.5), x.clip(max=0.1), np.clip(x, x[0] - 1, None)), R(3, 4)),
    ("divmod", lambda x, y: (*np.divmod(x, y), *np.modf(x), np.frexp(x)[0], np.ldexp(x, 3)), 3 * P(3, 4), P(4)),
    ("real_if_close", lambda x: (np.real_if_close(x), np.real_if_close(x * (1 + 0j)), np.real_if_close(x * 1j)), R(3)),
    ("lists", lambda x: (x * [1, 2], [1.0, 2.0] / x, np.arctan2(x, [1, 2]), x ** [2, 3], np.where([1, 0], x, [3, 4])), P(3, 2)),
    ("ufunc dtype", lambda x: np.multiply(x, x, dtype=np.float64), R(3)),
]  # fmt: skip
