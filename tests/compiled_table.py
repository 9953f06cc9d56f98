# ruff: noqa: E501
"""The table of programs: name, input, how often it is differentiated, the program."""

import compiled_programs as p
from compiled_programs import INPUTS, Program, cplx, ints, spd

# fmt: off
ELEMENTWISE = [
    ("circle", "r", 2, lambda iso, xp, x: xp.acos(0.8 * xp.tanh(x)) + xp.asin(0.5 * xp.sin(x)) * xp.atan(x)),
    ("hyperbolic", "r", 2, lambda iso, xp, x: xp.acosh(x * x + 1.5) - xp.asinh(x) + xp.atanh(0.5 * xp.tanh(x))),
    ("cosh", "r", 2, lambda iso, xp, x: xp.cosh(x) / xp.sinh(x + 3) + xp.tan(0.5 * xp.cos(x))),
    ("exponentials", "r", 2, lambda iso, xp, x: xp.exp(x) + xp.expm1(x) * xp.log1p(x * x)),
    ("logarithms", "r", 2, lambda iso, xp, x: xp.log(x * x + 1) - xp.log2(x * x + 2) / xp.log10(x * x + 2)),
    ("logaddexp", "r", 2, lambda iso, xp, x: xp.logaddexp(x, xp.sin(x)) * xp.erf(x)),
    ("arithmetic", "r", 2, lambda iso, xp, x: xp.add(x, 1) * xp.subtract(x, 2) + xp.divide(x, xp.multiply(x, x) + 1)),
    ("powers", "r", 2, lambda iso, xp, x: xp.pow(x * x + 0.5, xp.sin(x)) + xp.sqrt(x * x + 1) + xp.square(x) + xp.reciprocal(x + 3)),
    ("signs", "r", 2, lambda iso, xp, x: xp.abs(x) * xp.sign(x) + xp.negative(x) * xp.positive(x) + xp.copysign(x * x, x)),
    ("rounding", "r", 2, lambda iso, xp, x: x * (xp.ceil(x) + xp.floor(x) + xp.round(x) + xp.trunc(x))),
    ("division", "r", 2, lambda iso, xp, x: xp.remainder(x * x, x * 0 + 0.7) + x * xp.floor_divide(x, 0.3)),
    ("angles", "r", 2, lambda iso, xp, x: xp.atan2(x, x * x + 0.5) * xp.hypot(x, xp.cos(x))),
    ("extremes", "r", 2, lambda iso, xp, x: xp.maximum(x, xp.cos(x)) * xp.minimum(x, 0.3) + xp.clip(x, -0.5, 0.8)),
    ("complex", "r", 2, lambda iso, xp, x: xp.real(xp.exp(cplx(xp, x))) + xp.imag(cplx(xp, x) * xp.conj(cplx(xp, x * 2))) + xp.abs(cplx(xp, x))),
    ("where", "r", 2, lambda iso, xp, x: xp.where(x > 0, xp.sqrt(xp.where(x > 0, x, 1.0)), x * x)),
    ("softmax_by_hand", "r", 2, lambda iso, xp, x: xp.exp(x - xp.max(x, axis=1, keepdims=True)) / xp.sum(xp.exp(x), axis=1, keepdims=True)),
    ("polynomial", "m", 2, lambda iso, xp, x: x**3 - 2 * x**2 + 1 / (x * x + 1)),
    ("broadcast_mix", "t", 2, lambda iso, xp, x: x * x[:, :1] + x[:1] * x[..., :1] - xp.sum(x, axis=1, keepdims=True)),
    ("long_chain", "r", 2, lambda iso, xp, x: xp.tanh(xp.sin(xp.exp(-x * x) + x) * xp.cos(x) + xp.sum(xp.tanh(x), axis=0))),
]
CREATION = [
    ("aranges", "v", 2, lambda iso, xp, x: xp.arange(6, dtype=x.dtype) * x + xp.arange(0.0, 3.0, 0.5, dtype=x.dtype) * xp.sin(x)),
    ("casts", "v", 1, lambda iso, xp, x: xp.astype(xp.astype(x, xp.float32) * 2, x.dtype) + x),
]
SHAPES = [
    ("reshapes", "t", 2, lambda iso, xp, x: xp.reshape(x * x, (6, 4)) + xp.reshape(xp.sin(x), (-1, 4))),
    ("permutes", "t", 2, lambda iso, xp, x: xp.permute_dims(x, (2, 0, 1)) * xp.sum(x) + xp.moveaxis(x, 2, 0) ** 2),
    ("flips", "t", 2, lambda iso, xp, x: xp.flip(x, axis=1) * x + xp.roll(x, 1, axis=2) * xp.roll(x, (1, 2), axis=(0, 1))),
    ("joins", "r", 2, lambda iso, xp, x: xp.concat([x, xp.sin(x), x[:1]], axis=0) * xp.sum(x)),
    ("stacks", "r", 2, lambda iso, xp, x: xp.stack([x, x * x], axis=1) + xp.expand_dims(xp.cos(x), axis=1)),
    ("unstacks", "t", 2, lambda iso, xp, x: sum(y * i for i, y in enumerate(xp.unstack(x * x, axis=2)))),
    ("squeezes", "r", 2, lambda iso, xp, x: xp.squeeze(x[:, :1], axis=1) * xp.sum(x, axis=1)),
    ("broadcasts", "v", 2, lambda iso, xp, x: xp.broadcast_to(x, (3, 6)) * xp.broadcast_arrays(x[:1], x * x)[0]),
    ("repeats", "r", 2, lambda iso, xp, x: xp.repeat(x, 2, axis=1)[:, ::2] * xp.tile(x, (2, 1))[:3]),
    ("pads", "r", 2, lambda iso, xp, x: xp.sin(xp.pad(x, ((1, 2), (0, 1)), constant_values=0.5))),
    ("transposes", "t", 2, lambda iso, xp, x: xp.matmul(xp.matrix_transpose(x), xp.linalg.matrix_transpose(xp.matrix_transpose(x)))),
]
REDUCTIONS = [
    ("sums", "t", 2, lambda iso, xp, x: xp.sum(x * x, axis=(0, 2)) + xp.mean(x, axis=(0, 2)) * xp.prod(x, axis=(0, 2))),
    ("spreads", "t", 2, lambda iso, xp, x: xp.var(x, axis=1, correction=1) + xp.std(x * x, axis=1)),
    ("largest", "t", 2, lambda iso, xp, x: xp.max(x, axis=2) * xp.min(x, axis=2) + xp.max(x)),
    ("cumulated", "r", 2, lambda iso, xp, x: xp.cumulative_sum(x, axis=1) * xp.cumulative_prod(x, axis=1, include_initial=True)[:, 1:]),
    ("differences", "r", 2, lambda iso, xp, x: xp.diff(x, axis=1) * xp.diff(x, axis=1, n=2)[:, :1]),
    ("normalised", "r", 2, lambda iso, xp, x: (x - xp.mean(x, axis=1, keepdims=True)) / xp.std(x, axis=1, keepdims=True)),
    ("log_sum_exp", "r", 2, lambda iso, xp, x: xp.log(xp.sum(xp.exp(x), axis=1)) + xp.sum(x)),
]
ORDER = [
    ("sorts", "r", 2, lambda iso, xp, x: xp.sort(x, axis=1) * xp.sort(xp.sin(x), axis=0, descending=True)),
    ("argsorts", "r", 2, lambda iso, xp, x: xp.take_along_axis(x * x, xp.argsort(x, axis=1), axis=1)),
    ("medians", "r", 2, lambda iso, xp, x: xp.sort(x, axis=1)[:, 2] * xp.sum(x)),
]
INDEXING = [
    ("spans", "m", 2, lambda iso, xp, x: iso.at(x)[iso.span(ints(xp, 1)[0], 2)].multiply(iso.at(x)[:, iso.span(ints(xp, 2)[0], 1)].get()[:2])),
    ("slices", "t", 2, lambda iso, xp, x: x[:, 1:] * x[:, :-1] + x[:, :1, ::2][..., :1]),
    ("takes", "r", 2, lambda iso, xp, x: xp.take(x, ints(xp, 2, 0, 0, 1), axis=0) * xp.sum(x, axis=0)),
    ("take_rows", "r", 2, lambda iso, xp, x: iso.at(x)[ints(xp, 2, 0, 0)].get() ** 2),
    ("pairs", "m", 2, lambda iso, xp, x: iso.at(x)[ints(xp, 0, 1, 1), ints(xp, 3, 2, 2)].get() * x[0, 0]),
    ("backwards", "t", 2, lambda iso, xp, x: iso.at(x)[:, ::-1].get() * x),
    ("set_slice", "r", 2, lambda iso, xp, x: iso.at(x * x)[:, 1:3].set(xp.sin(x[:, :2])) + xp.sum(x, axis=0)),
    ("add_rows", "r", 2, lambda iso, xp, x: iso.at(x)[ints(xp, 0, 0, 2)].add(xp.sin(x)) * xp.sum(x, axis=1, keepdims=True)),
    ("multiply_rows", "r", 2, lambda iso, xp, x: iso.at(x)[ints(xp, 0, 2)].multiply(xp.cos(x[:2])) * xp.sum(x)),
    ("max_rows", "r", 2, lambda iso, xp, x: iso.at(x)[ints(xp, 0, 2)].max(xp.cos(x[:2])) + iso.at(x)[0].min(0.1)),
    ("masked", "r", 2, lambda iso, xp, x: xp.where(xp.asarray(p.np.eye(3, 5, dtype=bool)), x * x, xp.sum(x))),
    ("diagonal_set", "m", 2, lambda iso, xp, x: xp.linalg.cholesky(spd(xp, iso.at(x)[xp.arange(4), xp.arange(4)].set(xp.sum(x, axis=0))))),
    ("scattered_segments", "v", 2, lambda iso, xp, x: iso.at(xp.zeros(3, dtype=x.dtype))[ints(xp, 0, 2, 0, 1, 2, 0)].add(x * x) * xp.sum(xp.sin(x))),
    ("kernel_gather", "m", 2, p.kernel_gather),
]
LINALG = [
    ("gaussian_process", "v", 2, p.gaussian_process),
    ("kernel_cholesky", "m", 2, p.kernel_cholesky),
    ("kernel_scatter", "m", 2, p.kernel_scatter),
    ("products", "m", 2, lambda iso, xp, x: xp.matmul(x, xp.sin(x)) + xp.linalg.matmul(x, x) @ x),
    ("contractions", "t", 2, lambda iso, xp, x: xp.tensordot(x, xp.sin(x), axes=((0, 1), (0, 1))) + xp.linalg.tensordot(x[0], x[1], axes=((0,), (0,)))),
    ("dots", "r", 2, lambda iso, xp, x: xp.vecdot(x, xp.cos(x)) * xp.linalg.vecdot(x, x)),
    ("einsums", "t", 2, lambda iso, xp, x: xp.einsum("bij,bkj->bik", x, xp.sin(x))),
    ("outers", "v", 2, lambda iso, xp, x: xp.linalg.outer(x, xp.sin(x)) + xp.sum(x)),
    ("crosses", "r", 2, lambda iso, xp, x: xp.linalg.cross(x[:, :3], xp.cos(x[:, 2:]))),
    ("cholesky", "m", 2, lambda iso, xp, x: xp.linalg.cholesky(spd(xp, x))),
    ("cholesky_upper", "m", 2, lambda iso, xp, x: xp.linalg.cholesky(spd(xp, x), upper=True)),
    ("determinants", "m", 2, lambda iso, xp, x: xp.linalg.det(x) * x[0]),
    ("slogdets", "m", 2, lambda iso, xp, x: xp.linalg.slogdet(spd(xp, x))[1] * x),
    ("diagonals", "m", 2, lambda iso, xp, x: xp.linalg.diagonal(x * x) * xp.linalg.trace(x)),
    ("eigenvalues", "m", 2, lambda iso, xp, x: xp.linalg.eigvalsh(x + xp.matrix_transpose(x))),
    ("eigenvectors", "m", 2, lambda iso, xp, x: xp.linalg.eigh(x + xp.matrix_transpose(x))[1] ** 2),
    ("inverses", "m", 2, lambda iso, xp, x: xp.linalg.inv(spd(xp, x)) @ x),
    ("solves", "m", 2, lambda iso, xp, x: xp.linalg.solve(spd(xp, x), xp.sin(x))),
    ("norms_of_matrices", "m", 2, lambda iso, xp, x: xp.linalg.matrix_norm(x) * xp.linalg.vector_norm(x, axis=0) + xp.linalg.matrix_norm(x, ord=1)),
    ("matrix_powers", "m", 2, lambda iso, xp, x: xp.linalg.matrix_power(x, 3) + xp.linalg.matrix_power(spd(xp, x), -1)),
    ("pseudo_inverses", "r", 2, lambda iso, xp, x: xp.linalg.pinv(x)),
    ("qr", "m", 2, lambda iso, xp, x: xp.linalg.qr(x)[1] ** 2),
    ("singular_values", "r", 2, lambda iso, xp, x: xp.linalg.svdvals(x)),
    ("svd", "m", 1, lambda iso, xp, x: (lambda u, s, v: (u * s) @ v)(*xp.linalg.svd(x))),
    ("complex_solve", "m", 2, lambda iso, xp, x: xp.real(xp.linalg.solve(cplx(xp, spd(xp, x)), cplx(xp, x)))),
    ("whitened", "m", 2, lambda iso, xp, x: xp.linalg.solve(xp.linalg.cholesky(spd(xp, x)), x - xp.mean(x, axis=0))),
]
FFT = [
    ("fftn", "r", 2, lambda iso, xp, x: xp.imag(xp.fft.fftn(cplx(xp, x)) * xp.fft.ifftn(cplx(xp, x * x)))),
    ("rfft", "r", 2, lambda iso, xp, x: xp.fft.irfft(xp.fft.rfft(x) * xp.fft.rfft(xp.sin(x)), n=5)),
    ("rfftn", "m", 2, lambda iso, xp, x: xp.fft.irfftn(xp.fft.rfftn(x) ** 2, s=(4, 4), axes=(0, 1))),
]
FLOW = [
    ("power_iteration", "m", 2, p.power_iteration),
    ("newton", "r", 2, p.newton),
    ("halve", "v", 0, p.halve),
    ("branch", "v", 2, p.branch),
    ("switch", "v", 2, p.switched),
    ("reverse_scan", "r", 2, lambda iso, xp, x: iso.scan(lambda c, r: (c * 0.5 + r, xp.sum(c * r)), x[0], x, reverse=True)),
]
RULES = [
    ("own_rule", "r", 2, p.own_rule),
    ("hosted", "r", 1, p.hosted),
    ("transformed", "v", 1, p.transformed),
    ("draws", "v", 1, p.draws),
    ("rejections", "v", 1, p.rejections),
]
MODULES = [
    ("Linear", "r", 2, p.modules(lambda iso: iso.Sequential(iso.Linear(5, 4), iso.Activation("gelu"), iso.LayerNorm(4), iso.RMSNorm(4)))),
    ("Conv2D", "i", 2, p.modules(lambda iso: iso.Sequential(iso.Conv2D(4, 6, 3), iso.GroupNorm(6, 2), iso.MaxPool(2), iso.AvgPool(3), iso.Flatten()))),
    ("LSTM", "t", 2, p.modules(lambda iso: iso.LSTM(4, 3, recurrent_init=iso.initializers.glorot()))),
]
# fmt: on

TABLE = {
    name: Program(func, input, order)
    for part in (
        ELEMENTWISE, CREATION, SHAPES, REDUCTIONS, ORDER, INDEXING, LINALG, FFT, FLOW, RULES,
        MODULES, p.EXAMPLES,
    )
    for name, input, order, func in part
}  # fmt: skip
assert {program.input for program in TABLE.values()} <= set(INPUTS)
