# ruff: noqa: E501
"""The table of programs: name, input, how often it is differentiated, the program."""

import compiled_programs as p
from compiled_programs import INPUTS, Program, const, cplx, ints, spd, whole

import examples

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
    ("comparisons", "r", 0, lambda iso, xp, x: [xp.equal(x, x), xp.not_equal(x, 1.0), xp.less(x, 0.1), xp.less_equal(x, x), xp.greater(x, 0.1), xp.greater_equal(x, x)]),
    ("truths", "r", 0, lambda iso, xp, x: [xp.logical_and(x > 0, x < 1), xp.logical_or(x > 1, x < 0), xp.logical_xor(x > 0, x > 1), xp.logical_not(x > 0)]),
    ("kinds", "r", 0, lambda iso, xp, x: [xp.isfinite(x / (x - x[0])), xp.isinf(1 / (x - x[0])), xp.isnan((x - x[0]) / (x - x[0])), xp.signbit(x)]),
    ("bits", "v", 0, lambda iso, xp, x: [f(whole(xp, x * 50), ints(xp, 3, 1, 2, 5, 6, 7)) for f in (xp.bitwise_and, xp.bitwise_or, xp.bitwise_xor)]),
    ("shifts", "v", 0, lambda iso, xp, x: [xp.bitwise_left_shift(whole(xp, x * 50), ints(xp, 1)), xp.bitwise_right_shift(whole(xp, x * 50), ints(xp, 1)), xp.bitwise_invert(whole(xp, x * 50))]),
    ("nextafter", "v", 0, lambda iso, xp, x: xp.nextafter(x, x + 1)),
    ("where", "r", 2, lambda iso, xp, x: xp.where(x > 0, xp.sqrt(xp.where(x > 0, x, 1.0)), x * x)),
    ("softmax_by_hand", "r", 2, lambda iso, xp, x: xp.exp(x - xp.max(x, axis=1, keepdims=True)) / xp.sum(xp.exp(x), axis=1, keepdims=True)),
    ("polynomial", "m", 2, lambda iso, xp, x: x**3 - 2 * x**2 + 1 / (x * x + 1)),
    ("broadcast_mix", "t", 2, lambda iso, xp, x: x * x[:, :1] + x[:1] * x[..., :1] - xp.sum(x, axis=1, keepdims=True)),
    ("long_chain", "r", 2, lambda iso, xp, x: xp.tanh(xp.sin(xp.exp(-x * x) + x) * xp.cos(x) + xp.sum(xp.tanh(x), axis=0))),
]
CREATION = [
    ("eye_added", "m", 2, lambda iso, xp, x: xp.sin(x + xp.eye(4, dtype=x.dtype)) @ x),
    ("eye_offset", "m", 2, lambda iso, xp, x: xp.matmul(x, xp.eye(4, 3, k=-1, dtype=x.dtype)) + xp.sum(x)),
    ("zeros_ones", "r", 2, lambda iso, xp, x: x * xp.ones((3, 5), dtype=x.dtype) + xp.zeros((3, 1), dtype=x.dtype) + xp.ones_like(x) * xp.sin(x) + xp.zeros_like(x)),
    ("fulls", "r", 2, lambda iso, xp, x: xp.full((3, 5), 2.0, dtype=x.dtype) * x + xp.full_like(x, 3.0) * xp.cos(x)),
    ("full_of_a_value", "v", 2, lambda iso, xp, x: xp.full((3,), x[0] * x[1]) + xp.full_like(x[:3], x[2])),
    ("empties", "v", 0, lambda iso, xp, x: [xp.zeros_like(xp.empty((2,), dtype=x.dtype)), xp.zeros_like(xp.empty_like(x))]),
    ("aranges", "v", 2, lambda iso, xp, x: xp.arange(6, dtype=x.dtype) * x + xp.arange(0.0, 3.0, 0.5, dtype=x.dtype) * xp.sin(x)),
    ("linspaces", "v", 2, lambda iso, xp, x: xp.linspace(0.0, 1.0, 6, dtype=x.dtype) * x + xp.linspace(x[0], x[1], 6)),
    ("meshgrids", "v", 2, lambda iso, xp, x: xp.meshgrid(x[:2], xp.sin(x))[1] * xp.meshgrid(x[:2], x, indexing="ij")[0][0, 0]),
    ("triangles", "m", 2, lambda iso, xp, x: xp.tril(x * x) + xp.triu(xp.sin(x), k=1)),
    ("asarrays", "v", 2, lambda iso, xp, x: xp.asarray([x[0], x[1] * 2, 3.0]) * xp.asarray([1.0, 2.0, 3.0], dtype=x.dtype)),
    ("casts", "v", 1, lambda iso, xp, x: xp.astype(xp.astype(x, xp.float32) * 2, x.dtype) + x),
    ("created", "v", 2, p.created),
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
    ("counts", "r", 0, lambda iso, xp, x: [xp.count_nonzero(x > 0, axis=1), xp.all(x > -9, axis=0), xp.any(x > 1)]),
    ("normalised", "r", 2, lambda iso, xp, x: (x - xp.mean(x, axis=1, keepdims=True)) / xp.std(x, axis=1, keepdims=True)),
    ("log_sum_exp", "r", 2, lambda iso, xp, x: xp.log(xp.sum(xp.exp(x), axis=1)) + xp.sum(x)),
]
ORDER = [
    ("sorts", "r", 2, lambda iso, xp, x: xp.sort(x, axis=1) * xp.sort(xp.sin(x), axis=0, descending=True)),
    ("argsorts", "r", 2, lambda iso, xp, x: xp.take_along_axis(x * x, xp.argsort(x, axis=1), axis=1)),
    ("places", "r", 0, lambda iso, xp, x: [xp.argmax(x, axis=1), xp.argmin(x), xp.argsort(x, axis=0)]),
    ("searches", "v", 0, lambda iso, xp, x: xp.searchsorted(xp.sort(x), xp.sin(x))),
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
    ("ranks", "m", 0, lambda iso, xp, x: xp.linalg.matrix_rank(x)),
    ("pseudo_inverses", "r", 2, lambda iso, xp, x: xp.linalg.pinv(x)),
    ("qr", "m", 2, lambda iso, xp, x: xp.linalg.qr(x)[1] ** 2),
    ("singular_values", "r", 2, lambda iso, xp, x: xp.linalg.svdvals(x)),
    ("svd", "m", 1, lambda iso, xp, x: (lambda u, s, v: (u * s) @ v)(*xp.linalg.svd(x))),
    ("complex_solve", "m", 2, lambda iso, xp, x: xp.real(xp.linalg.solve(cplx(xp, spd(xp, x)), cplx(xp, x)))),
    ("whitened", "m", 2, lambda iso, xp, x: xp.linalg.solve(xp.linalg.cholesky(spd(xp, x)), x - xp.mean(x, axis=0))),
]
FFT = [
    ("fft", "r", 2, lambda iso, xp, x: xp.abs(xp.fft.fft(cplx(xp, x)) + 3)),
    ("ifft", "r", 2, lambda iso, xp, x: xp.real(xp.fft.ifft(cplx(xp, x), axis=0)) * xp.sum(x)),
    ("fftn", "r", 2, lambda iso, xp, x: xp.imag(xp.fft.fftn(cplx(xp, x)) * xp.fft.ifftn(cplx(xp, x * x)))),
    ("rfft", "r", 2, lambda iso, xp, x: xp.fft.irfft(xp.fft.rfft(x) * xp.fft.rfft(xp.sin(x)), n=5)),
    ("rfftn", "m", 2, lambda iso, xp, x: xp.fft.irfftn(xp.fft.rfftn(x) ** 2, s=(4, 4), axes=(0, 1))),
    ("hfft", "v", 2, lambda iso, xp, x: xp.fft.hfft(cplx(xp, x)) * xp.sum(x) + xp.real(xp.fft.ihfft(x))[0]),
    ("shifts_of_spectra", "r", 2, lambda iso, xp, x: xp.fft.fftshift(x, axes=1) * xp.fft.ifftshift(xp.sin(x))),
    ("frequencies", "v", 2, lambda iso, xp, x: x * xp.astype(xp.fft.fftfreq(6), x.dtype) + xp.astype(xp.sum(xp.fft.rfftfreq(6)), x.dtype) * xp.sin(x)),
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
LAYERS = [
    ("activations", "r", 2, p.activations),
    ("losses", "r", 2, p.losses),
    ("norms", "t", 2, p.norms),
    ("batch_norm", "t", 2, p.batch_norm),
    ("poolings", "i", 2, p.poolings),
    ("convolutions", "i", 2, p.convolutions),
    ("transposed_convolutions", "i", 2, p.transposes),
    ("general_convolutions", "i", 2, p.general),
    ("attention", "t", 2, p.attention),
    ("heads", "t", 2, p.heads),
    ("positions", "t", 2, p.positions),
    ("lstm", "t", 2, p.lstm),
    ("gru", "t", 2, p.gru),
    ("linear", "r", 2, lambda iso, xp, x: iso.linear(x, const(xp, 2, 5), bias=x[0, :2])),
    ("embedding", "r", 2, lambda iso, xp, x: iso.embedding(ints(xp, 0, 2, 2), x) * xp.sum(x)),
]
ARRAYS = [
    ("ordered", "r", 2, p.ordered),
    ("without_nan", "r", 2, p.without_nan),
    ("segments", "r", 2, p.segments),
    ("counted", "v", 2, p.counts),
    ("sampled", "v", 2, p.sampled),
]
MODULES = [
    ("Linear", "r", 2, p.modules(lambda iso: iso.Sequential(iso.Linear(5, 4), iso.Activation("gelu"), iso.LayerNorm(4), iso.RMSNorm(4)))),
    ("Conv2D", "i", 2, p.modules(lambda iso: iso.Sequential(iso.Conv2D(4, 6, 3), iso.GroupNorm(6, 2), iso.MaxPool(2), iso.AvgPool(3), iso.Flatten()))),
    ("Conv1D", "t", 2, p.modules(lambda iso: iso.Sequential(iso.Conv1D(4, 3, 2), iso.Conv1DTranspose(3, 2, 2)))),
    ("Transposes", "i", 2, p.modules(lambda iso: iso.Sequential(iso.DepthwiseConv2D(4, 3), iso.Conv2DTranspose(4, 2, 3), iso.AdaptiveAvgPool(2)))),
    ("BatchNorm", "i", 2, p.modules(lambda iso: iso.Sequential(iso.BatchNorm(4), iso.AdaptiveMaxPool(2)).eval())),
    ("Embedding", "r", 2, p.embedded),
    ("Heads", "t", 2, p.modules(lambda iso: iso.MultiHeadAttention(4, 2))),
    ("LSTM", "t", 2, p.modules(lambda iso: iso.LSTM(4, 3, recurrent_init=iso.initializers.glorot()))),
    ("GRU", "t", 2, p.modules(lambda iso: iso.GRU(4, 3, recurrent_init=iso.initializers.glorot()))),
    ("Conv3D", "i", 2, lambda iso, xp, x: p.modules(lambda iso: iso.Sequential(iso.Conv3D(2, 2, 2), iso.Conv3DTranspose(2, 2, 2)))(iso, xp, xp.reshape(x, (2, 6, 6, 2, 2)))),
]
OPTIMIZERS = [
    ("adam_update", "r", 2, p.adam_update),
    ("update_steps", "r", 2, p.steps),
    ("sgd", "r", 2, p.optimizer(lambda o: o.sgd(0.1, momentum=0.9, nesterov=True, weight_decay=0.1))),
    ("adam", "r", 2, p.optimizer(lambda o: o.adam(o.cosine(0.1, 10)))),
    ("adamw", "r", 2, p.optimizer(lambda o: o.adamw(o.warmup_cosine(0.1, 2, 10)))),
    ("lamb", "r", 2, p.optimizer(lambda o: o.lamb(o.one_cycle(0.1, 10), weight_decay=0.1))),
    ("lars", "r", 2, p.optimizer(lambda o: o.lars(o.step(0.1, 2)))),
    ("lion", "r", 1, p.optimizer(lambda o: o.lion(o.warmup(0.1, 2)))),
    ("rmsprop", "r", 2, p.optimizer(lambda o: o.rmsprop(o.constant(0.1), momentum=0.9, centered=True))),
]
CHAINS = [
    ("clipped", "r", 2, lambda iso, xp, x: p.pair(iso, xp, x, iso.chain(iso.optimizers.clip_by_global_norm(0.5), iso.optimizers.clip_by_norm(0.4), iso.optimizers.clip_by_value(0.3), iso.optimizers.scale(-0.1)))),
    ("decayed", "r", 2, lambda iso, xp, x: p.pair(iso, xp, x, iso.chain(iso.optimizers.add_decayed_weights(0.1), iso.optimizers.ema(0.9), iso.optimizers.scale_by_schedule(iso.optimizers.cosine(0.1, 9)), iso.optimizers.scale(-1.0)))),
    ("frozen", "r", 2, lambda iso, xp, x: p.pair(iso, xp, x, iso.chain(iso.optimizers.freeze("b"), iso.optimizers.masked(iso.optimizers.scale(-0.5), "w")))),
    ("accumulated", "r", 2, lambda iso, xp, x: p.pair(iso, xp, x, iso.optimizers.accumulate(iso.optimizers.sgd(0.1), every=2))),
]
EXAMPLES = [
    *[(f"example of {name}", "t", 2, p.example(*e[:2])) for name, e in examples.FUNCTIONS.items()],
    *[(f"example of {name}", "t", 2, p.example_layer(*e[:2])) for name, e in examples.LAYERS.items()],
    *[(f"example of {name}", "t", 0, p.optimizer(e.make)) for name, e in examples.PAIRS.items()],
]
# fmt: on

TABLE = {
    name: Program(func, input, order)
    for part in (
        ELEMENTWISE, CREATION, SHAPES, REDUCTIONS, ORDER, INDEXING, LINALG, FFT, FLOW, RULES, LAYERS,
        ARRAYS, MODULES, OPTIMIZERS, CHAINS, EXAMPLES,
    )
    for name, input, order, func in part
}  # fmt: skip
assert {program.input for program in TABLE.values()} <= set(INPUTS)
