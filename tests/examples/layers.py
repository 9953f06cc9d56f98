"""Norms, pools, convolutions, attention and recurrent layers, each with the same in loops."""

from itertools import product

import numpy as np

from .activations import logistic, softmax
from .entries import Function, M, R, T, const, ints, key_of, named

ONE_SIZE = {"large": "its groups, windows or weights have one size"}


def normed(x, axes, epsilon=1e-5):
    centred = x - x.mean(axes, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axes, keepdims=True) + epsilon)


def rms(x, axis=-1, epsilon=1e-6):
    return x / np.sqrt(np.mean(x * x, axis=axis, keepdims=True) + epsilon)


def grouped(x, groups):
    """Group norm of [batch, ..., channels]."""
    split = x.reshape(*x.shape[:-1], groups, x.shape[-1] // groups)
    axes = (*range(1, x.ndim - 1), x.ndim)
    return normed(split, axes).reshape(x.shape)


def responses(x, size, alpha, beta, k):
    """`iso.local_response_norm` over the last axis."""
    windows = [(max(i - size // 2, 0), i + (size + 1) // 2) for i in range(x.shape[-1])]
    sums = [np.sum(x[..., low:high] ** 2, axis=-1) for low, high in windows]
    return x / (k + alpha / size * np.stack(sums, axis=-1)) ** beta


def pooled(x, window, strides, reduce, low=0, high=0, fill=np.nan):
    """Pools of [batch, rows, columns, channels]; what is not there is no part of a window."""
    pad = [(0, 0), (low, high), (low, high), (0, 0)]
    x = np.pad(x, pad, constant_values=fill)
    counts = [(n - window) // strides + 1 for n in x.shape[1:3]]
    out = np.zeros((x.shape[0], *counts, x.shape[-1]))
    for i, j in product(*map(range, counts)):
        rows, columns = (slice(k * strides, k * strides + window) for k in (i, j))
        out[:, i, j] = reduce(x[:, rows, columns], axis=(1, 2))
    return out


def adaptively(x, sizes, reduce):
    out = np.zeros((x.shape[0], *sizes, x.shape[-1]))
    for i, j in product(*map(range, sizes)):
        spans = [(k * n // s, -(-(k + 1) * n // s)) for k, n, s in zip((i, j), x.shape[1:3], sizes)]
        rows, columns = (slice(*span) for span in spans)
        out[:, i, j] = reduce(x[:, rows, columns], axis=(1, 2))
    return out


def convolved(x, w, strides, pads, dilation=1, groups=1, x_dilation=1):
    """A convolution of [batch, *sizes, in] with [*k, in/groups, out], by loops over positions;
    `pads` are (low, high) of each axis.
    """
    if x_dilation > 1:
        spread = np.zeros((x.shape[0], *((n - 1) * x_dilation + 1 for n in x.shape[1:-1]),
                           x.shape[-1]))  # fmt: skip
        spread[(slice(None), *(slice(None, None, x_dilation) for _ in pads))] = x
        x = spread
    x = np.pad(x, [(0, 0), *pads, (0, 0)])
    k = w.shape[:-2]
    sizes = [(n - (m - 1) * dilation - 1) // strides + 1 for n, m in zip(x.shape[1:-1], k)]
    y = np.zeros((x.shape[0], *sizes, w.shape[-1]))
    into, out = w.shape[-2], w.shape[-1] // groups
    for at in product(*map(range, sizes)):
        for tap in product(*map(range, k)):
            place = tuple(a * strides + t * dilation for a, t in zip(at, tap))
            for g in range(groups):
                a, b = slice(g * into, (g + 1) * into), slice(g * out, (g + 1) * out)
                y[(slice(None), *at, b)] += x[(slice(None), *place, a)] @ w[(*tap, slice(None), b)]
    return y


def transposed(x, w, strides, lows, sizes, groups=1):
    """A transposed convolution with [*k, in, out/groups], by adding up what each position gives;
    `lows` are cut off in front.
    """
    k, out, into = w.shape[:-2], w.shape[-1], w.shape[-2] // groups
    whole = [(n - 1) * strides + m for n, m in zip(x.shape[1:-1], k)]
    y = np.zeros((x.shape[0], *(w + 9 for w in whole), out * groups))
    for at in product(*map(range, x.shape[1:-1])):
        for tap in product(*map(range, k)):
            place = tuple(a * strides + t for a, t in zip(at, tap))
            for g in range(groups):
                a, b = slice(g * into, (g + 1) * into), slice(g * out, (g + 1) * out)
                y[(slice(None), *place, b)] += x[(slice(None), *at, a)] @ w[(*tap, a, slice(None))]
    return y[(slice(None), *(slice(low, low + n) for low, n in zip(lows, sizes)))]


def depthwise(x, w):
    """With [*k, channels], each channel alone."""
    each = [convolved(x[..., c : c + 1], w[..., None, c : c + 1], 1, ((0, 1), (0, 1)))
            for c in range(x.shape[-1])]  # fmt: skip
    return np.concatenate(each, axis=-1)


def attended(q, k, v, causal=False):
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    keep = np.tril(np.ones(scores.shape[-2:])) if causal else 1
    powers = np.exp(scores) * keep
    return powers / powers.sum(-1, keepdims=True) @ v


def causal_heads(x, w_in, w_out, b_in, b_out, count=2):
    batch, length, width = x.shape
    split = lambda y: y.reshape(batch, length, count, width // count).swapaxes(1, 2)
    q, k, v = (split(y) for y in np.split(x @ w_in.T + b_in, 3, axis=-1))
    joined = attended(q, k, v, causal=True).swapaxes(1, 2).reshape(x.shape)
    return joined @ w_out.T + b_out


def rotated(x):
    half = x.shape[-1] // 2
    angle = np.arange(x.shape[-2])[:, None] * 10000.0 ** (-2 * np.arange(half) / x.shape[-1])
    z = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angle)
    return np.concatenate([z.real, z.imag], axis=-1)


def lstm(x, h, c, kernel, recurrent, bias):
    hs = []
    for t in range(x.shape[-2]):
        i, f, g, o = np.split(x[..., t, :] @ kernel + h @ recurrent + bias, 4, axis=-1)
        c = logistic(f) * c + logistic(i) * np.tanh(g)
        h = logistic(o) * np.tanh(c)
        hs.append(h)
    return [np.stack(hs, axis=-2), h, c]


def gru(x, h, kernel, recurrent, bias, recurrent_bias=0.0):
    hs = []
    for t in range(x.shape[-2]):
        sides = x[..., t, :] @ kernel + bias, h @ recurrent + recurrent_bias
        (r, z, n), (hr, hz, hn) = (np.split(y, 3, axis=-1) for y in sides)
        r, z = logistic(r + hr), logistic(z + hz)
        n = np.tanh(n + r * hn)
        h = (1 - z) * n + z * h
        hs.append(h)
    return [np.stack(hs, axis=-2), h]


def heads(iso, x, w_in, w_out, b_in, b_out):
    return iso.multi_head_attention(
        x, num_heads=2, in_proj_weights=w_in, out_proj_weights=w_out, in_proj_bias=b_in,
        out_proj_bias=b_out, is_causal=True,
    )  # fmt: skip


def trained(x, w, b):
    """Batch norm in training, with the means and variances 0 and 1 before."""
    axes = tuple(range(x.ndim - 1))
    n = x[..., 0].size
    mean, variance = x.mean(axes), x.var(axes) * n / (n - 1)
    return [normed(x, axes) * w + b, 0.1 * mean, 0.9 + 0.1 * variance]


def train(iso, x, w, b):
    return iso.batch_norm(x, const(x, [0.0] * 4), const(x, [1.0] * 4), weight=w, bias=b,
                          training=True)  # fmt: skip


IDS = [2, 0, 2]
# jax.random.bernoulli with the key 5 and the probability 0.6
KEPT = np.array([[1, 0, 0, 1, 0, 0], [1, 1, 1, 1, 1, 1], [0, 1, 0, 1, 1, 0], [0, 1, 0, 1, 1, 1]])
IMAGE, LINE, CUBE = (2, 4, 4, 2), (2, 4, 2), (1, 3, 3, 3, 2)
HALO = ((0, 1), (0, 1))
POSITIVE = (0.3, 1.3)
ALONE = ONE_SIZE | {"empty": "no variance without examples",
                    "device": "its call makes the statistics"}  # fmt: skip

FUNCTIONS = {
    "local_response_norm": Function(
        lambda iso, x: iso.local_response_norm(x, 3, alpha=0.9, beta=0.6, k=1.5), (R,),
        lambda x: responses(x, 3, 0.9, 0.6, 1.5)),
    "layer_norm": Function(lambda iso, x, w, b: iso.layer_norm(x, weight=w, bias=b),
                           (R, (6,), (6,)), lambda x, w, b: normed(x, -1) * w + b),
    "layer_norm, two axes": Function(lambda iso, x: iso.layer_norm(x, axis=(1, 2)), (T,),
                                     lambda x: normed(x, (1, 2))),
    "rms_norm": Function(lambda iso, x, w: iso.rms_norm(x, weight=w), (R, (6,)),
                         lambda x, w: rms(x) * w),
    "rms_norm, axis": Function(lambda iso, x, w: iso.rms_norm(x, weight=w, axis=0), (R, (4,)),
                               lambda x, w: rms(x, 0) * w[:, None],
                               but={"empty": "its weights are for each row"}),
    "group_norm": Function(lambda iso, x, w: iso.group_norm(x, 2, weight=w), (T, (4,)),
                           lambda x, w: grouped(x, 2) * w, but=ONE_SIZE),
    "instance_norm": Function(named("instance_norm"), (T,), lambda x: normed(x, 1)),
    "batch_norm": Function(
        lambda iso, x, m, v, w, b: iso.batch_norm(x, m, v, weight=w, bias=b)[0],
        (T, *[(4,)] * 4), lambda x, m, v, w, b: (x - m) / np.sqrt(v + 1e-5) * w + b,
        (None, None, POSITIVE, None, None)),
    "batch_norm, training": Function(lambda *a: train(*a)[0], (T, (4,), (4,)),
                                     lambda *a: trained(*a)[0], but=ALONE),
    "batch_norm, statistics": Function(lambda *a: train(*a)[1:], (T, (4,), (4,)),
                                       lambda *a: trained(*a)[1:], order=0, but=ALONE),
    "max_pool": Function(lambda iso, x: iso.max_pool(x, 2, 2), (IMAGE,),
                         lambda x: pooled(x, 2, 2, np.max)),
    "max_pool, padded": Function(lambda iso, x: iso.max_pool(x, 3, 2, "SAME"), (IMAGE,),
                                 lambda x: pooled(x, 3, 2, np.nanmax, 0, 1), but=ONE_SIZE),
    "avg_pool": Function(lambda iso, x: iso.avg_pool(x, 3, 2, "SAME"), (IMAGE,),
                         lambda x: pooled(x, 3, 2, np.nanmean, 0, 1), but=ONE_SIZE),
    "adaptive_max_pool": Function(lambda iso, x: iso.adaptive_max_pool(x, (3, 4)), (IMAGE,),
                                  lambda x: adaptively(x, (3, 4), np.max)),
    "adaptive_avg_pool": Function(lambda iso, x: iso.adaptive_avg_pool(x, (3, 4)), (IMAGE,),
                                  lambda x: adaptively(x, (3, 4), np.mean)),
    "linear": Function(lambda iso, x, w, b: iso.linear(x, w, bias=b), (R, (5, 6), (5,)),
                       lambda x, w, b: x @ w.T + b),
    "linear, of each": Function(
        lambda iso, x, w, b: iso.linear(x, w, bias=b), (T, (2, 4, 4), (2, 4)),
        lambda x, w, b: x @ w.swapaxes(1, 2) + b[:, None],
        but={"empty": "its weights are for each example"}),
    "embedding": Function(lambda iso, w: iso.embedding(ints(w, IDS), w), (R,), lambda w: w[IDS],
                          but={"empty": "the rows are the table"}),
    "dropout": Function(lambda iso, x: iso.dropout(x, 0.4, rng=key_of(x)), (R,),
                        lambda x: x * KEPT / 0.6, but=dict.fromkeys(("large", "empty", "device"),
                                          "its mask is of one size and from a key")),
    "scaled_dot_product_attention": Function(
        lambda iso, q, k, v: iso.scaled_dot_product_attention(q, k, v, is_causal=True),
        (T, T, T), lambda q, k, v: attended(q, k, v, causal=True)),
    "scaled_dot_product_attention, all": Function(
        named("scaled_dot_product_attention"), (T, T, T), attended),
    "grouped_query_attention": Function(
        lambda iso, q, k, v, m: iso.grouped_query_attention(q, k, v, mask=m),
        ((4, 3, 2), (2, 3, 2), (2, 3, 2), (4, 3, 3)),
        lambda q, k, v, m: softmax(q @ np.repeat(k, 2, 0).swapaxes(1, 2) / 2**0.5 + m)
        @ np.repeat(v, 2, 0),
        but=ONE_SIZE | {"edges": "scaled_dot_product_attention of fewer heads",
                        "empty": "no batch"}),
    "multi_head_attention": Function(
        heads, (T, (12, 4), M, (12,), (4,)), causal_heads,
        but=ONE_SIZE | {"edges": "products around scaled_dot_product_attention"}),
    "rotary_embedding": Function(named("rotary_embedding"), (T,), rotated),
    "lstm_update": Function(lambda iso, *a: iso.lstm_update(*a[:5], bias=a[5]),
                            (T, (2, 4), (2, 4), (4, 16), (4, 16), (16,)), lstm,
                            but=ONE_SIZE | {"xla": "its loop", "empty": "its states have a batch"}),
    "gru_update": Function(lambda iso, *a: iso.gru_update(*a[:4], bias=a[4]),
                           (T, (2, 4), (4, 12), (4, 12), (12,)), gru,
                           but=ONE_SIZE | {"xla": "its loop", "empty": "its states have a batch"}),
}  # fmt: skip

CONV = {"large": "its padding is of one size",
        "edges": "same code as conv2d: tests/layers/test_conv_*.py"}  # fmt: skip
FUNCTIONS |= {
    "conv1d": Function(lambda iso, x, w: iso.conv1d(x, w, 1, "SAME"), (LINE, (2, 2, 4)),
                       lambda x, w: convolved(x, w, 1, ((0, 1),)), but=CONV),
    "conv1d, dilated": Function(
        lambda iso, x, w, b: iso.conv1d(x, w, 2, 2, dilations=2, x_dilations=2, data_format="NCW",
                                        bias=b),
        (LINE, (3, 4, 2), (2,)),
        lambda x, w, b: convolved(x.swapaxes(1, 2), w, 2, ((2, 2),), 2,
                                  x_dilation=2).swapaxes(1, 2) + b[:, None], but=CONV),
    "conv2d": Function(lambda iso, x, w, b: iso.conv2d(x, w, 2, 1, bias=b),
                       (IMAGE, (2, 2, 2, 4), (4,)),
                       lambda x, w, b: convolved(x, w, 2, ((1, 1), (1, 1))) + b, but=CONV),
    "conv3d": Function(lambda iso, x, w: iso.conv3d(x, w, 1, 0), (CUBE, (2, 2, 2, 2, 4)),
                       lambda x, w: convolved(x, w, 1, ((0, 0),) * 3), but=CONV),
    "depthwise_conv2d": Function(lambda iso, x, w: iso.depthwise_conv2d(x, w, 1, "SAME"),
                                 (IMAGE, (2, 2, 2)), depthwise, but=CONV),
    "conv_general_dilated": Function(
        lambda iso, x, w, b: iso.conv_general_dilated(
            x, w, 1, 1, dilations=2, feature_group_count=2, x_dilations=2, bias=b),
        (IMAGE, (2, 2, 1, 4), (4,)),
        lambda x, w, b: convolved(x, w, 1, ((1, 1), (1, 1)), 2, 2, 2) + b, but=CONV),
    "conv1d_transpose": Function(
        lambda iso, x, w: iso.conv1d_transpose(x, w, 2, "SAME"), (LINE, (2, 2, 4)),
        lambda x, w: transposed(x, w, 2, (0,), (8,)), but=CONV),
    "conv2d_transpose": Function(
        lambda iso, x, w: iso.conv2d_transpose(x, w, 2, "VALID"), (IMAGE, (2, 2, 2, 4)),
        lambda x, w: transposed(x, w, 2, (0, 0), (8, 8)), but=CONV),
    "conv3d_transpose": Function(
        lambda iso, x, w, b: iso.conv3d_transpose(x, w, 1, "VALID", bias=b),
        (CUBE, (2, 2, 2, 2, 4), (4,)),
        lambda x, w, b: transposed(x, w, 1, (0,) * 3, (4,) * 3) + b, but=CONV),
    "conv_general_transpose": Function(
        lambda iso, x, w: iso.conv_general_transpose(x, w, 2, "SAME", feature_group_count=2),
        (IMAGE, (2, 2, 2, 2)), lambda x, w: transposed(x, w, 2, (0, 0), (8, 8), 2), but=CONV),
}  # fmt: skip
