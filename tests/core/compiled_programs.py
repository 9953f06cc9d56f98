"""Programs over the whole vocabulary whose compiled results must equal their eager ones.

A program takes the package, the namespace and one float64 array, and returns a nest of arrays. It
does more than one call, so that a compiler has something to fuse. The number beside it says how
often it is differentiated: twice, once or not at all.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from examples import parts
from oracles import name_of


def inputs(seed, *shapes):
    """Arrays for programs: a vector, a square matrix, rows, a tensor and images."""
    rng = np.random.default_rng(seed)
    return {name: rng.uniform(-1.5, 1.5, shape) for name, shape in zip("vmrti", shapes)}


INPUTS = inputs(7, 6, (4, 4), (3, 5), (2, 3, 4), (2, 6, 6, 4))
# A compiler computes many elements at a time and divides the work among threads, but not for the
# few elements of INPUTS. Sizes that are no multiples leave a remainder.
LARGE = inputs(11, 1037, (37, 37), (35, 67), (5, 19, 23), (3, 18, 18, 4))


class Program(NamedTuple):
    func: Callable[..., Any]
    input: str
    order: int


def spd(xp, x):
    """A symmetric matrix with eigenvalues of at least 1."""
    return xp.matmul(x, xp.matrix_transpose(x)) + xp.eye(x.shape[-1], dtype=x.dtype)


def cplx(xp, x):
    wide = xp.complex128 if width(x) == 64 else xp.complex64
    return xp.astype(x, wide) * (1 + 0.5j) + 1j * xp.astype(xp.cos(x), wide)


def width(x):
    """The bits of the numbers of `x`: 64, or 32 where JAX has its default."""
    return 64 if "float64" in str(x.dtype) else 32


def whole(xp, x):
    """`x` as integers of the same width."""
    return xp.astype(x, xp.int64 if width(x) == 64 else xp.int32)


def const(xp, *shape):
    """A constant array, with other numbers for each shape."""
    n = int(np.prod(shape))
    return xp.asarray(np.sin(1.0 + 1.7 * np.arange(n)).reshape(shape))


def ints(xp, *values):
    return xp.asarray(np.array(values))


def key(iso, xp, seed=3):
    return xp.asarray(np.array([0, seed], np.uint32))


# Programs that take several lines.


def gaussian_process(iso, xp, x):
    """The original bug, which gave -87 instead of -8.7."""
    q, l = x[0] - 2.0, x[1] * 0.3
    at = xp.linspace(-3.0, 3.0, 20, dtype=x.dtype)[:, None]
    y = xp.sin(at)[:, 0]
    d2 = xp.sum((at[:, None, :] - at[None, :, :]) ** 2, axis=-1)
    k = xp.exp(-0.5 * d2 * xp.exp(l)) + xp.exp(q) * xp.eye(20, dtype=x.dtype)
    low = xp.linalg.cholesky(k)
    fit = xp.sum(y * xp.linalg.solve(k, y[:, None])[:, 0])
    return fit + xp.sum(xp.log(xp.linalg.diagonal(low)))


def kernel_cholesky(iso, xp, x):
    """A smaller version of that bug."""
    d2 = xp.sum((x[:, None, :] - x[None, :, :]) ** 2, axis=-1)
    return xp.sum(xp.sin(xp.linalg.cholesky(xp.exp(-d2) + 0.1 * xp.eye(4, dtype=x.dtype))))


def kernel_scatter(iso, xp, x):
    """The same with a diagonal added by index."""
    d2 = xp.sum((x[:, None, :] - x[None, :, :]) ** 2, axis=-1)
    at = xp.arange(4)
    noise = iso.at(xp.zeros((4, 4), dtype=x.dtype))[at, at].add(0.1)
    return xp.sum(xp.sin(xp.linalg.cholesky(xp.exp(-d2) + noise)))


def kernel_gather(iso, xp, x):
    """Rows taken twice, so that gradients are scattered, together with a reduction."""
    rows = xp.take(x, ints(xp, 0, 2, 2, 1), axis=0)
    d2 = xp.sum((rows[:, None, :] - x[None, :, :]) ** 2, axis=-1)
    return xp.exp(-d2) * xp.sum(rows, axis=-1)


def attention(iso, xp, x):
    q, k, v = x, xp.sin(x), xp.cos(x)
    mask = xp.asarray(np.array([[True, False, True]] * 3))
    return [
        iso.scaled_dot_product_attention(q, k, v, scale=0.5),
        iso.scaled_dot_product_attention(q, k, v, mask=mask),
        iso.scaled_dot_product_attention(q, k, v, is_causal=True),
    ]


def heads(iso, xp, x):
    kw = {"num_heads": 2, "in_proj_weights": const(xp, 12, 4)}
    return [
        iso.multi_head_attention(x, out_proj_weights=const(xp, 4, 4), **kw),
        iso.multi_head_attention(x, return_attention_weights=True, **kw),
    ]


def lstm(iso, xp, x):
    h, c = xp.zeros((2, 5), dtype=x.dtype), xp.ones((2, 5), dtype=x.dtype)
    return iso.lstm_update(x, h, c, const(xp, 4, 20), const(xp, 5, 20))


def gru(iso, xp, x):
    h = xp.zeros((2, 5), dtype=x.dtype)
    return iso.gru_update(x, h, const(xp, 4, 15), const(xp, 5, 15))


def batch_norm(iso, xp, x):
    mean, var = xp.zeros(4, dtype=x.dtype), xp.ones(4, dtype=x.dtype)
    return iso.batch_norm(x, mean, var, training=True)


def power_iteration(iso, xp, x):
    def body(i, state):
        y = xp.matmul(x, state)
        return y / xp.linalg.vector_norm(y)

    return iso.fori_loop(0, 5, body, xp.ones(4, dtype=x.dtype))


def newton(iso, xp, x):
    def step(y, _):
        y = y - (y * y * y - x - 3.0) / (3 * y * y)
        return y, xp.sum(y)

    return iso.scan(step, xp.ones_like(x) * 1.5, xp.arange(6))


def halve(iso, xp, x):
    goes_on = lambda s: xp.sum(s[0] * s[0]) > 0.1
    return iso.while_loop(goes_on, lambda s: (s[0] / 2, s[1] + 1), (x, xp.asarray(0)))


def branch(iso, xp, x):
    return iso.cond(xp.sum(x) > 0, lambda x: xp.sin(x) * x, lambda x: xp.cos(x) - x, x) + iso.cond(
        xp.sum(x) > 100, lambda x: x * 2, lambda x: x * x, x
    )


def switched(iso, xp, x):
    place = xp.argmax(x)
    return iso.switch(place, [lambda x: xp.sin(x) * x, lambda x: x**3, lambda x: xp.cos(x) - x], x)


def own_rule(iso, xp, x):
    ten = iso.custom_vjp(
        lambda x: xp.sin(x), lambda x: (xp.sin(x), x), lambda r, g: (10 * g * xp.cos(r),)
    )
    bound = iso.bind_custom_gradient_function(lambda x: x * x, lambda saved, g: 3 * g * saved[0])
    return ten(x) + bound(x)


def hosted(iso, xp, x):
    return iso.host_function(np.cbrt, lambda saved, g: g / (3 * saved[1] ** 2))(x * x + 1.0)


def pair(iso, xp, x, optimizer):
    """Three steps of an optimizer."""
    v = {"w": x, "b": xp.sum(x, axis=0)}
    state = optimizer.init(v)
    for _ in range(3):
        grads = {"w": xp.sin(v["w"]) + x, "b": v["b"] * v["b"] + 1}
        updates, state = optimizer.update(grads, state, v)
        v = iso.apply_updates(v, updates)
    return v


def optimizer(make):
    return lambda iso, xp, x: pair(iso, xp, x, make(iso.optimizers))


def adam_update(iso, xp, x):
    zero = xp.zeros_like(x)
    w, m, v = iso.adam_update(x, xp.sin(x) + 2.0, 0.1, zero, zero + 0.1, 2, stop_gradients=False)
    return w, iso.adam_step(xp.cos(x) + 2.0, m, v, 3)


def steps(iso, xp, x):
    g = xp.sin(x) + 2.0
    zero = xp.zeros_like(x)
    return [
        iso.gradient_descent_update(x, g, 0.1, stop_gradients=False),
        iso.optimizer_update(x, g, 0.2, stop_gradients=False),
        iso.lars_update(x + 3, g, 0.1, stop_gradients=False),
        iso.lamb_update(x + 3, g, 0.1, zero, zero + 0.1, 2, stop_gradients=False)[0],
    ]


def draws(iso, xp, x):
    k = key(iso, xp)
    one, two = iso.random.split(k)[0], iso.random.fold_in(k, 5)
    return [
        x[0] * iso.random.uniform(one, (3,), dtype=f"float{width(x)}"),
        x[1] * iso.random.normal(two, (3,), dtype=f"float{width(x)}"),
        iso.random.truncated_normal(k, (3,), lower=-1.0, dtype=f"float{width(x)}") + x[2],
        iso.random.bernoulli(k, 0.5, (4,)),
        iso.random.bits(k, (4,)),
        iso.random.permutation(k, 5),
        iso.random.categorical(k, xp.stack([x, -x])),
        iso.dropout(x, 0.5, rng=k),
        iso.random.randint(k, (4,), -3, 9),
        iso.random.choice(k, x, (3,)),
        x[3] * iso.random.exponential(one, (3,), dtype=f"float{width(x)}"),
        x[4] * iso.random.gumbel(one, (3,), dtype=f"float{width(x)}"),
    ]


def rejections(iso, xp, x):
    k = key(iso, xp)
    root = xp.reshape(x[:4], (2, 2))
    cov = spd(xp, root)
    return [
        x[0] * iso.random.gamma(k, 2.0, (3,), dtype=f"float{width(x)}"),
        iso.random.poisson(k, 3.0, (3,)),
        iso.random.multivariate_normal(k, x[4:], cov, (2,)),
    ]


def ordered(iso, xp, x):
    hole = xp.where(x > 1.2, xp.full_like(x, float("nan")), x)
    return [
        iso.median(x, axis=1), iso.quantile(x, [0.3, 0.8], axis=0), iso.nanmedian(hole),
        iso.nanquantile(hole, 0.3, axis=0), *iso.top_k(x, 2), iso.cumulative_max(x, axis=1),
        iso.cumulative_min(x, axis=0), iso.searchsorted(xp.sort(x), xp.sin(x)),
    ]  # fmt: skip


def without_nan(iso, xp, x):
    hole = xp.where(x > 1.2, xp.full_like(x, float("nan")), x)
    names = "nansum nanprod nanmean nanvar nanstd nanmin nanmax nanargmin nanargmax"
    return [getattr(iso, name)(hole, axis=1) for name in names.split()] + [
        iso.nan_to_num(hole), iso.isclose(hole, x), iso.allclose(x, x),
    ]  # fmt: skip


def segments(iso, xp, x):
    ids = ints(xp, 0, 7, 0)
    names = "segment_sum segment_mean segment_max segment_min segment_softmax"
    return [getattr(iso, name)(x, ids, 1) for name in names.split()]


def counts(iso, xp, x):
    return [
        iso.bincount(ints(xp, 0, 2, 2, 9, 1, 0), x, length=3),
        iso.histogram(const(xp, 6), 3, weights=x)[0],
        iso.one_hot(ints(xp, 1, 5), 3),
        iso.logical_right_shift(ints(xp, -1, 5), 3),
        iso.at(x)[ints(xp, 1, 99, 1)].add(x[:3], mode="drop"),
    ]


def sampled(iso, xp, x):
    return [
        iso.interp(x, xp.linspace(-2.0, 2.0, 6, dtype=x.dtype), x),
        iso.trapezoid(x, xp.sin(x)), iso.convolve(x, x[:3], "same"), iso.correlate(x, x[:3]),
        iso.diag(x, 1), iso.cdist(xp.reshape(x, (3, 2)), xp.reshape(xp.cos(x), (3, 2))),
    ]  # fmt: skip


def transformed(iso, xp, x):
    f = lambda x: xp.sum(xp.sin(x) * x)
    value, g = iso.value_and_grad(f)(x)
    out, pull = iso.vjp(xp.tanh, x)
    return [
        value, g, iso.grad(f)(x), out, pull(x)[0],
        iso.jvp(xp.sin, (x,), (x,))[1],
        iso.jac(lambda x: x[:2] * xp.sum(x))(x),
        iso.hessian(lambda x: xp.sum(x**3))(x),
        iso.jacrev(lambda x: x[:2] * xp.sum(x))(x),
        iso.jacfwd(lambda x: x[:2] * xp.sum(x))(x),
        iso.value_and_jac(lambda x: x[:2] * xp.sum(x))(x),
        iso.hvp(f, (x,), (x,))[0],
        iso.vmap(lambda r: r * r)(x),
        iso.vmap(iso.grad(lambda r: r**3))(x),
        iso.execute_with_gradients(f, x)[1],
        iso.stop_gradient(x) * x,
        iso.checkpoint(lambda x: xp.exp(xp.sin(x)))(x),
        iso.jit(lambda x: x * 2)(x),
    ]  # fmt: skip


def modules(make):
    """A module created inside: creation is part of the program."""

    def run(iso, xp, x):
        with iso.use_backend(name_of(xp), dtype=f"float{width(x)}"), iso.use_key(3):
            net = make(iso)
        return net(x)

    return run


def example(call, shapes):
    """A function of `examples.py`."""
    return lambda iso, xp, x: call(iso, *parts(xp, x, shapes))


def example_layer(make, shape):
    """A module of `examples.py`."""
    return lambda iso, xp, x: modules(make)(iso, xp, parts(xp, x, [shape])[0])


def embedded(iso, xp, x):
    with iso.use_backend(name_of(xp), dtype=f"float{width(x)}"), iso.use_key(3):
        rows = iso.Embedding(4, 5)
    return rows(ints(xp, 3, 0, 3)) * x


def losses(iso, xp, x):
    labels = ints(xp, 0, 4, 2)
    p = iso.softmax(xp.cos(x))
    return [
        iso.cross_entropy(x, labels),
        iso.cross_entropy(x, labels, ignore_index=4, label_smoothing=0.1),
        iso.cross_entropy(x, p, reduction="none"),
        iso.binary_cross_entropy(x, iso.sigmoid(xp.cos(x))),
        iso.mse(x, xp.cos(x)),
        iso.mae(x, xp.cos(x) + 9.0),
        iso.huber(x, xp.cos(x) * 3, delta=0.7),
        iso.kl_divergence(iso.log_softmax(x), p),
        iso.cross_entropy(x, labels, ignore_index=0, reduction="counted"),
        iso.Mean(xp.sum(x * x), 3.0).value,
    ]


def poolings(iso, xp, x):
    return [
        iso.max_pool(x, 2, 2, "VALID"),
        iso.max_pool(x, 3, 2, "SAME"),
        iso.avg_pool(x, 3, 2, "SAME"),
        iso.adaptive_avg_pool(x, 4),
        iso.adaptive_max_pool(x, 4),
    ]


def convolutions(iso, xp, x):
    image, line, cube = x, x[:, 0], xp.reshape(x, (2, 6, 3, 2, 4))
    return [
        iso.conv2d(image, const(xp, 3, 3, 4, 2), 2, "SAME"),
        iso.conv1d(line, const(xp, 3, 4, 2), 1, "VALID"),
        iso.conv3d(cube, const(xp, 2, 2, 2, 4, 2), 1, "SAME"),
        iso.depthwise_conv2d(image, const(xp, 3, 3, 4), 1, "SAME"),
    ]


def transposes(iso, xp, x):
    image, line, cube = x[:, :3, :3], x[:, 0], xp.reshape(x, (2, 6, 3, 2, 4))[:, :2]
    return [
        iso.conv2d_transpose(image, const(xp, 3, 3, 4, 2), 2, "SAME"),
        iso.conv1d_transpose(line, const(xp, 3, 4, 2), 2, "SAME"),
        iso.conv3d_transpose(cube, const(xp, 2, 2, 2, 4, 2), 1, "SAME"),
    ]


def general(iso, xp, x):
    return [
        iso.conv_general_dilated(
            x, const(xp, 3, 3, 2, 4), 1, "SAME", dims=2, dilations=2, feature_group_count=2
        ),
        iso.conv_general_transpose(x[:, :3, :3], const(xp, 3, 3, 4, 2), 1, "SAME", dims=2),
    ]


def positions(iso, xp, x):
    mask = iso.local_window_mask(3, left=1, backend=name_of(xp))
    few, many = x[:, None], xp.stack([xp.sin(x), xp.cos(x)], axis=1)
    return [
        iso.rotary_embedding(x),
        iso.grouped_query_attention(many, few, few, mask=mask),
    ]


def norms(iso, xp, x):
    return [
        iso.layer_norm(x), iso.rms_norm(x), iso.group_norm(x, 2), iso.instance_norm(x),
    ]  # fmt: skip


def activations(iso, xp, x):
    names = "relu elu gelu silu mish hardswish sigmoid softmax log_softmax softplus leaky_relu"
    return [getattr(iso, name)(x * 1.3 + 0.1) for name in names.split()] + [
        iso.gelu(x, approximate=True), iso.logsumexp(x, axis=-1),
    ]  # fmt: skip


def created(iso, xp, x):
    with iso.use_backend(name_of(xp), dtype=f"float{width(x)}"):
        made = [
            iso.zeros((2,)), iso.ones((2,)), iso.full((2,), 3.0), iso.arange(2.0),
            iso.linspace(0.0, 1.0, 2), iso.eye(2)[0], iso.asarray([1.0, 2.0]),
        ]  # fmt: skip
    return xp.stack(made) * x[:2]
