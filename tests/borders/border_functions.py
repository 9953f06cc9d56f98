"""One call of every public function that computes with arrays, as a function of one vector.

Each takes `x`, 24 numbers of any framework, and returns arrays. All its arguments are made from
constants and parts of `x`, so that gradients flow to every argument. The functions in `SCALARS`
take one number instead.
"""

from functools import partial

import numpy as np
import scipy.special

import isomorph as iso
from examples import FUNCTIONS
from isomorph.frontends.jax import lax
from oracles import name_of

N = 24
X = np.cos(1.7 * np.arange(N)) * 0.8 + 0.05  # all different, none at a kink
KEY = np.array([3, 7], np.uint32)


def const(x, values):
    """Constant values as an array with the framework and dtype of `x`."""
    xp = iso.namespace(x)
    return xp.asarray(np.asarray(values, np.float64), dtype=x.dtype)


def ints(x, values):
    return iso.namespace(x).asarray(np.asarray(values, np.int64))


def key_of(x):
    """A random key of the framework of `x`."""
    name = name_of(iso.namespace(x))
    return iso.random.key(5, backend=name)


class cut:
    """Cut `x` into arrays of the given shapes, one after the other. At its end, start again with
    scaled values.
    """

    def __init__(self, x):
        self.x, self.place, self.xp = x, 0, iso.namespace(x)

    def __call__(self, *shape):
        n = int(np.prod(shape))
        parts, scale = [], 1.0
        while n:
            m = min(n, N - self.place)
            parts.append(self.x[self.place : self.place + m] * scale)
            self.place, n = (self.place + m) % N, n - m
            scale *= 0.7
        return self.xp.reshape(self.xp.concat(parts), shape)


# ---- elementwise functions -----------------------------------------------------------------------

tenfold = iso.custom_vjp(
    lambda x: x * x, lambda x: (x * x, x), lambda r, g: (20 * g * r,)
)  # not the true derivative, so that a test notices if the rule is dropped
bound = iso.bind_custom_gradient_function(lambda x: x**3, lambda saved, g: 10 * g * saved[0] ** 2)
hosted = iso.host_function(scipy.special.expit, lambda saved, g: 10 * g * saved[1] * (1 - saved[1]))
square = lambda x: x * x * x

SCALARS = {
    "relu": iso.relu,
    "leaky_relu": lambda x: iso.leaky_relu(x - 0.5, alpha=0.2),
    "elu": lambda x: iso.elu(x - 0.5, alpha=1.3),
    "gelu": iso.gelu,
    "gelu_approximate": lambda x: iso.gelu(x, approximate=True),
    "silu": iso.silu,
    "softplus": iso.softplus,
    "mish": iso.mish,
    "hardswish": iso.hardswish,
    "sigmoid": iso.sigmoid,
    "logsumexp": iso.logsumexp,
    "huber": lambda x: iso.huber(x * 3, const(x, 0.1) + x * 0, reduction="none"),
    "mse": lambda x: iso.mse(x, const(x, 0.1) + x * 0, reduction="none"),
    "Mean": lambda x: iso.Mean(iso.namespace(x).sum(x * x), 3.0).value,
    "mae": lambda x: iso.mae(x * x, const(x, 5.0) + x * 0, reduction="none"),
    "binary_cross_entropy": lambda x: iso.binary_cross_entropy(
        x, const(x, 0.3) + 0.1 * x, reduction="none"
    ),
    "kl_divergence": lambda x: iso.kl_divergence(-x * x, x * x / 9, reduction="none"),
    "checkpoint": iso.checkpoint(lambda x: iso.namespace(x).sin(x) ** 2),
    "custom_vjp": tenfold,
    "bind_custom_gradient_function": bound,
    "host_function": hosted,
    "stop_gradient": lambda x: iso.stop_gradient(x) * x,
    "lax.stop_gradient": lambda x: lax.stop_gradient(x) * x,
    "cond": lambda x: iso.cond(True, lambda x: x * x, lambda x: x, x),
    "cond_of_a_value": lambda x: iso.cond(
        iso.namespace(x).sum(x * x) > 0, lambda x: x**3, lambda x: x, x
    ),
    "while_loop": lambda x: iso.while_loop(
        lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1] * c[1]), (0, x)
    )[1],
    "fori_loop": lambda x: iso.fori_loop(0, 3, lambda i, y: y * x + x, x),
    "scan": lambda x: iso.scan(lambda c, _: (c * x, c * c), x, length=2),
    "jit": iso.jit(lambda x: iso.namespace(x).sin(x) * x),
    "namespace": lambda x: iso.namespace(x).exp(x),
    "asarray": lambda x: iso.asarray(x) * x,
    "optimizer_update": lambda x: iso.optimizer_update(x, x * x, 0.1, stop_gradients=False),
    "gradient_descent_update": lambda x: iso.gradient_descent_update(
        x, x * x, 0.1, stop_gradients=False
    ),
    "adam_step": lambda x: iso.adam_step(x * x, x * 0.3, x * x + 1, 3),
    "adam_update": lambda x: iso.adam_update(
        x, x * x, 0.1, x * 0.3, x * x + 1, 3, stop_gradients=False
    ),
    "apply_updates": lambda x: iso.apply_updates({"w": x}, {"w": x * x})["w"] * x,
    "random.uniform": lambda x: x * iso.random.uniform(key_of(x), (), dtype="float64"),
    "random.normal": lambda x: x * iso.random.normal(key_of(x), (), dtype="float64"),
    "random.truncated_normal": lambda x: (
        x * iso.random.truncated_normal(key_of(x), (), dtype="float64")
    ),
}

SCALARS |= {
    "switch": lambda x: iso.switch(1, [lambda x: x, lambda x: x * x * x], x),
    "nan_to_num": lambda x: iso.nan_to_num(x * x),
    "random.exponential": lambda x: x * iso.random.exponential(key_of(x), dtype="float64"),
    "random.gumbel": lambda x: x * iso.random.gumbel(key_of(x), dtype="float64"),
    "random.gamma": lambda x: x * iso.random.gamma(key_of(x), 2.0, dtype="float64"),
}

summed = lambda f: lambda x: iso.namespace(x).sum(f(x))
SCALARS |= {
    "grad": iso.grad(summed(square)),
    "value_and_grad": lambda x: iso.value_and_grad(summed(square))(x),
    "vjp": lambda x: iso.vjp(square, x)[1](x)[0],
    "jvp": lambda x: iso.jvp(square, (x,), (x,))[1],
    "hvp": lambda x: iso.hvp(summed(square), (x,), (x,))[0],
    "grad_of_a_rule": lambda x: iso.grad(summed(tenfold))(x),
    "execute_with_gradients": lambda x: iso.execute_with_gradients(
        summed(square), x, retain_grads=True
    )[1],
}

# ---- functions of vectors ------------------------------------------------------------------------


def newton(x):
    """The root of y³ + y = x, by Newton's method."""
    xp = iso.namespace(x)

    def solve(f, y):
        for _ in range(30):
            y = y - f(y) / (3 * y * y + 1)
        return y

    f = lambda y: y**3 + y - x
    return lax.custom_root(f, xp.ones_like(x), solve, lambda g, y: y / g(xp.ones_like(y)))


def solved(x):
    """The solution of a linear system whose matrix and right side are made from `x`."""
    xp, c = iso.namespace(x), cut(x)
    a, b = c(3, 3) + 3 * const(x, np.eye(3)), c(3)

    def solve(f, b):
        eye = xp.eye(3, dtype=b.dtype)
        columns = [f(eye[i]) for i in range(3)]
        return xp.linalg.solve(xp.stack(columns, axis=1), b)

    return lax.custom_linear_solve(lambda v: xp.matmul(a, v), b, solve, solve)


def chained(x):
    opt = iso.chain(iso.optimizers.clip_by_global_norm(1.0), iso.optimizers.sgd(0.1))
    return opt.update(x, opt.init(x), x)[0] * x  # no gradient flows through the update


def recurrent(update, gates, states):
    def call(x, kernel, inner, bias, *state):
        return update(x, *state, kernel, inner, bias=bias)

    wide = gates * 3
    return parts(call, (2, 4, 2), (2, wide), (3, wide), (wide,), *[(2, 3)] * states)


def heads(x, w_in, w_out, b_in, b_out):
    return iso.multi_head_attention(
        x, num_heads=2, in_proj_weights=w_in, out_proj_weights=w_out, in_proj_bias=b_in,
        out_proj_bias=b_out, is_causal=True,
    )  # fmt: skip


def parts(func, *shapes):
    """`func` of parts of `x` with these shapes."""

    def call(x):
        c = cut(x)
        return func(*(c(*shape) for shape in shapes))

    call.func, call.shapes = func, shapes
    return call


def labels(x, *shape):
    return ints(x, np.arange(np.prod(shape)).reshape(shape) % 3)


def drawn_normal(mean, root):
    xp = iso.namespace(mean)
    cov = xp.matmul(root, xp.matrix_transpose(root)) + const(mean, np.eye(3))
    return iso.random.multivariate_normal(key_of(mean), mean, cov, 2)


def holed(x):
    """`x` with NaN at two places, from which nothing may come."""
    xp = iso.namespace(x)
    holes = const(x, np.isin(np.arange(24).reshape(4, 6), (3, 17)) * 1.0) > 0.5
    return xp.where(holes, xp.full_like(x, float("nan")), x)


IDS = [0, 2, 0, 7]
ARRAYS = {
    **{
        name: parts(getattr(iso, name), (4, 6))
        for name in ("median",)
    },
    **{
        name: parts(lambda x, name=name: getattr(iso, name)(holed(x)), (4, 6))
        for name in (
            "nanmax", "nanmean", "nanmedian", "nanmin", "nanprod", "nanstd", "nansum", "nanvar",
        )
    },
    **{
        name: parts(lambda x, name=name: getattr(iso, name)(x, ints(x, IDS), 3)[0, ...], (4, 6))
        for name in (
            "segment_max", "segment_mean", "segment_min", "segment_softmax", "segment_sum",
        )
    },
    "bincount": parts(lambda w: iso.bincount(ints(w, IDS), w, length=3), (4,)),
    "cdist": parts(iso.cdist, (4, 3), (2, 3)),
    "convolve": parts(iso.convolve, (7,), (3,)),
    "correlate": parts(iso.correlate, (7,), (3,)),
    "cumulative_max": parts(lambda x: iso.cumulative_max(x, axis=1), (4, 6)),
    "cumulative_min": parts(lambda x: iso.cumulative_min(x, axis=1), (4, 6)),
    "diag": parts(lambda x: iso.diag(x, 1), (5,)),
    "diag_of": parts(iso.diag, (4, 6)),
    "histogram": parts(
        lambda w: iso.histogram(const(w, [0.1, 0.7, 0.2, 0.9]), 3, weights=w)[0], (4,)
    ),
    "interp": parts(
        lambda x, y: iso.interp(x, const(x, [-1.0, 0.02, 0.31, 1.5]), y), (5,), (4,)
    ),
    "nanquantile": parts(lambda x: iso.nanquantile(holed(x), 0.3, axis=0), (4, 6)),
    "quantile": parts(lambda x: iso.quantile(x, [0.3, 0.8], axis=0), (4, 6)),
    "top_k": parts(lambda x: iso.top_k(x, 2).values, (4, 6)),
    "trapezoid": parts(iso.trapezoid, (4, 6), (6,)),
}  # fmt: skip

VECTORS = {
    **{name: parts(partial(e.call, iso), *e.shapes) for name, e in FUNCTIONS.items()},
    "softmax": parts(iso.softmax, (4, 6)),
    "log_softmax": parts(lambda x: iso.log_softmax(x, axis=0), (4, 6)),
    "linear": parts(lambda x, w, b: iso.linear(x, w, bias=b), (2, 3), (4, 3), (4,)),
    "conv1d": parts(lambda x, w: iso.conv1d(x, w, 1, "SAME"), (2, 5, 2), (3, 2, 2)),
    "conv1d_transpose": parts(
        lambda x, w: iso.conv1d_transpose(x, w, 2, "SAME"), (2, 4, 2), (3, 2, 2)
    ),
    "conv2d": parts(
        lambda x, w, b: iso.conv2d(x, w, 2, 1, bias=b), (1, 5, 4, 2), (3, 3, 2, 2), (2,)
    ),
    "conv2d_transpose": parts(
        lambda x, w: iso.conv2d_transpose(x, w, 2, "VALID"), (1, 3, 2, 2), (2, 2, 2, 2)
    ),
    "conv3d": parts(lambda x, w: iso.conv3d(x, w, 1, 0), (1, 3, 3, 3, 1), (2, 2, 2, 1, 2)),
    "conv3d_transpose": parts(
        lambda x, w: iso.conv3d_transpose(x, w, 1, "VALID"), (1, 2, 2, 2, 1), (2, 2, 2, 1, 2)
    ),
    "conv_general_dilated": parts(
        lambda x, w: iso.conv_general_dilated(
            x, w, 1, 1, dilations=2, feature_group_count=2, x_dilations=2
        ),
        (1, 4, 4, 2),
        (2, 2, 1, 2),
    ),
    "conv_general_transpose": parts(
        lambda x, w: iso.conv_general_transpose(x, w, 2, "SAME", feature_group_count=2),
        (1, 2, 3, 2),
        (2, 2, 2, 1),
    ),
    "depthwise_conv2d": parts(
        lambda x, w: iso.depthwise_conv2d(x, w, 1, "SAME"), (1, 4, 3, 2), (2, 2, 2)
    ),
    "max_pool": parts(lambda x: iso.max_pool(x, 2, 2), (1, 4, 6, 1)),
    "avg_pool": parts(lambda x: iso.avg_pool(x, 3, 2, "SAME"), (1, 4, 6, 1)),
    "adaptive_max_pool": parts(lambda x: iso.adaptive_max_pool(x, (3, 4)), (1, 4, 6, 1)),
    "adaptive_avg_pool": parts(lambda x: iso.adaptive_avg_pool(x, (3, 4)), (1, 4, 6, 1)),
    "layer_norm": parts(lambda x, w, b: iso.layer_norm(x, weight=w, bias=b), (4, 4), (4,), (4,)),
    "rms_norm": parts(lambda x, w: iso.rms_norm(x, weight=w), (4, 5), (5,)),
    "group_norm": parts(lambda x: iso.group_norm(x, 2), (2, 3, 4)),
    "instance_norm": parts(iso.instance_norm, (2, 6, 2)),
    "batch_norm": parts(
        lambda x, w, b: iso.batch_norm(x, w * 0, w * 0 + 1, weight=w, bias=b, training=True)[0],
        (4, 3),
        (3,),
        (3,),
    ),
    "batch_norm_running": parts(
        lambda x, m, v, w, b: iso.batch_norm(x, m, v * v + 1, weight=w, bias=b)[0],
        (4, 3),
        *[(3,)] * 4,
    ),
    "scaled_dot_product_attention": parts(
        lambda q, k, v: iso.scaled_dot_product_attention(q, k, v, is_causal=True),
        (1, 2, 3, 4),
        (1, 2, 3, 4),
        (1, 2, 3, 4),
    ),
    "grouped_query_attention": parts(
        iso.grouped_query_attention, (1, 4, 3, 2), (1, 2, 3, 2), (1, 2, 3, 2)
    ),
    "multi_head_attention": parts(heads, (2, 3, 4), (12, 4), (4, 4), (12,), (4,)),
    "rotary_embedding": parts(iso.rotary_embedding, (3, 2, 4)),
    "lstm_update": recurrent(iso.lstm_update, 4, 2),
    "gru_update": recurrent(iso.gru_update, 3, 1),
    "embedding": parts(lambda w: iso.embedding(ints(w, [2, 0, 2]), w), (4, 6)),
    "dropout": parts(lambda x: iso.dropout(x, 0.4, rng=key_of(x)), (24,)),
    "cross_entropy": parts(
        lambda x: iso.cross_entropy(x, labels(x, 6), label_smoothing=0.1), (6, 3)
    ),
    "cross_entropy_plain": parts(lambda x: iso.cross_entropy(x, labels(x, 6)), (6, 3)),
    "cross_entropy_soft": parts(lambda x, p: iso.cross_entropy(x, p * p), (4, 3), (4, 3)),
    "at.get": lambda x: iso.at(x)[ints(x, [3, 1, 3])].get(),
    "at.set": lambda x: iso.at(x)[1:4].set(x[5:8] ** 2),
    "at.add": lambda x: iso.at(x)[ints(x, [3, 1, 3])].add(x[5:8] ** 2),
    "span": lambda x: iso.at(x)[iso.span(ints(x, [1, 2])[0], 3)].multiply(x[5:8]),
    "at.multiply": lambda x: iso.at(x)[ints(x, [3, 1, 2])].multiply(x[5:8]),
    "at.min": lambda x: iso.at(x)[2:5].min(x[5:8]),
    "at.max": lambda x: iso.at(x)[2:5].max(x[5:8]),
    "jac": lambda x: iso.jac(lambda y: y**3)(x[:3]),
    "hessian": lambda x: iso.hessian(lambda y: iso.namespace(y).sum(y**3) * y[0])(x[:3]),
    "vmap": parts(iso.vmap(lambda row: row * iso.namespace(row).sum(row)), (4, 6)),
    "vmap_of_a_rule": parts(iso.vmap(tenfold), (4, 6)),
    "jacrev": lambda x: iso.jacrev(lambda y: y**3)(x[:3]),
    "jacfwd": lambda x: iso.jacfwd(lambda y: y**3)(x[:3]),
    "value_and_jac": lambda x: iso.value_and_jac(lambda y: y**3)(x[:3]),
    "at.drop": lambda x: iso.at(x)[ints(x, [3, 99, 3])].add(x[5:8] ** 2, mode="drop"),
    "lax.custom_root": newton,
    "lax.custom_linear_solve": solved,
    "lars_update": parts(
        lambda w, g: iso.lars_update(w, g, 0.1, stop_gradients=False), (12,), (12,)
    ),
    "lamb_update": parts(
        lambda w, g, m: iso.lamb_update(w, g, 0.1, m, g * g + 1, 3, stop_gradients=False),
        *[(8,)] * 3,
    ),
    "chain": chained,
    **ARRAYS,
    "random.choice": parts(lambda x: iso.random.choice(key_of(x), x, 9), (24,)),
    "random.multivariate_normal": parts(drawn_normal, (3,), (3, 3)),
    "random.permutation": parts(lambda x: iso.random.permutation(key_of(x), x), (24,)),
    "scan_of_rows": lambda x: iso.scan(lambda c, r: (c * r, c + r), x[0], x[1:5]),
}

# Gradients that are by definition not those of finite differences.
GRADIENTS = {
    "custom_vjp": lambda x: 20 * x,
    "bind_custom_gradient_function": lambda x: 10 * x**2,
    "host_function": lambda x: 10 * scipy.special.expit(x) * (1 - scipy.special.expit(x)),
    "apply_updates": lambda x: x + x * x,  # no gradient flows through the result
    "chain": lambda x: -0.1 * x / max(1, np.linalg.norm(x)),
    "stop_gradient": lambda x: x,
    "lax.stop_gradient": lambda x: x,
    "grad_of_a_rule": lambda x: 20 + 0 * x,
    "vmap_of_a_rule": lambda x: 20 * x,
}
