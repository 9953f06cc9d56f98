"""Modules, each with the same from its variables in plain NumPy, and optimizers, each with the
steps of its paper.
"""

import math

import numpy as np

from isomorph import chain

from .activations import tanh_gelu
from .entries import Layer, Pair, R, T
from .layers import (
    HALO,
    IDS,
    adaptively,
    attended,
    convolved,
    depthwise,
    grouped,
    gru,
    lstm,
    normed,
    pooled,
    responses,
    rms,
    transposed,
)  # fmt: skip
from .transforms import ratio

IMAGE = (2, 4, 4, 2)
LOOP = {"xla": "its loop"}


def attending(v, x, count=2):
    """Attention with every head, of [batch, length, width]."""
    y = x @ v["in_w"].T + v["in_b"]
    split = lambda y: y.reshape(*x.shape[:2], count, x.shape[2] // count).swapaxes(1, 2)
    q, k, w = (split(part) for part in np.split(y, 3, axis=-1))
    return attended(q, k, w).swapaxes(1, 2).reshape(x.shape) @ v["out_w"].T + v["out_b"]


def perceptron(v, x):
    first, second = v["layers"][0], v["layers"][2]
    return np.maximum(x @ first["w"].T + first["b"], 0) @ second["w"].T + second["b"]


def batch_normed(v, x):
    return normed(x, (0, 1)) * v["w"] + v["b"]


def zero(gates, batch, out=4):
    """The states that a recurrent layer starts with."""
    return [np.zeros((batch, out))] * (2 if gates == 4 else 1)


def lstm_of(v, x):
    bias = v["bias"] + v["recurrent_bias"]
    return lstm(x, *zero(4, len(x)), v["kernel"], v["recurrent_kernel"], bias)


def gru_of(v, x):
    return gru(x, *zero(3, len(x)), *(v[key] for key in ("kernel", "recurrent_kernel", "bias",
                                                 "recurrent_bias")))  # fmt: skip


LAYERS = {
    "Activation": Layer(lambda iso: iso.Activation("gelu", approximate=True), R,
                        lambda v, x: tanh_gelu(x)),
    "AdaptiveAvgPool": Layer(lambda iso: iso.AdaptiveAvgPool((3, 4)), IMAGE,
                             lambda v, x: adaptively(x, (3, 4), np.mean)),
    "AdaptiveMaxPool": Layer(lambda iso: iso.AdaptiveMaxPool((3, 4)), IMAGE,
                             lambda v, x: adaptively(x, (3, 4), np.max)),
    "AvgPool": Layer(lambda iso: iso.AvgPool(2, 1), IMAGE, lambda v, x: pooled(x, 2, 1, np.mean)),
    "BatchNorm": Layer(lambda iso: iso.BatchNorm(4), T, batch_normed,
                       {"empty": "no variance without examples"}),
    "Conv1D": Layer(lambda iso: iso.Conv1D(4, 4, 2), T,
                    lambda v, x: convolved(x, v["w"], 1, ((0, 1),)) + v["b"]),
    "Conv1DTranspose": Layer(lambda iso: iso.Conv1DTranspose(4, 4, 2, 2), T,
                             lambda v, x: transposed(x, v["w"], 2, (0,), (6,)) + v["b"]),
    "Conv2D": Layer(lambda iso: iso.Conv2D(2, 4, 2, groups=2), IMAGE,
                    lambda v, x: convolved(x, v["w"], 1, HALO, groups=2) + v["b"]),
    "Conv2DTranspose": Layer(lambda iso: iso.Conv2DTranspose(2, 4, 2, 2), IMAGE,
                             lambda v, x: transposed(x, v["w"], 2, (0, 0), (8, 8)) + v["b"]),
    "Conv3D": Layer(lambda iso: iso.Conv3D(2, 4, 2, padding="VALID"), (1, 3, 3, 3, 2),
                    lambda v, x: convolved(x, v["w"], 1, ((0, 0),) * 3) + v["b"]),
    "Conv3DTranspose": Layer(lambda iso: iso.Conv3DTranspose(2, 4, 2, padding="VALID"),
                             (1, 3, 3, 3, 2),
                             lambda v, x: transposed(x, v["w"], 1, (0,) * 3, (4,) * 3) + v["b"]),
    "DepthwiseConv2D": Layer(lambda iso: iso.DepthwiseConv2D(2, 2), IMAGE,
                             lambda v, x: depthwise(x, v["w"][..., 0]) + v["b"]),
    "Dropout": Layer(lambda iso: iso.Dropout(0.4).eval(), R, lambda v, x: x),
    "Embedding": Layer(lambda iso: Rows(iso), R, lambda v, x: v["rows"]["w"][IDS] * x[:3],
                       {"empty": "three ids"}),
    "Flatten": Layer(lambda iso: iso.Flatten(), T, lambda v, x: x.reshape(len(x), 12)),
    "GRU": Layer(lambda iso: iso.GRU(4, 4, recurrent_init=iso.initializers.glorot()), T, gru_of,
                 LOOP),
    "GroupNorm": Layer(lambda iso: iso.GroupNorm(4, 2), T,
                       lambda v, x: grouped(x, 2) * v["w"] + v["b"]),
    "LSTM": Layer(lambda iso: iso.LSTM(4, 4, recurrent_init=iso.initializers.glorot()), T, lstm_of,
                  LOOP),
    "LayerNorm": Layer(lambda iso: iso.LayerNorm(6), R,
                       lambda v, x: normed(x, -1) * v["w"] + v["b"]),
    "Linear": Layer(lambda iso: iso.Linear(6, 4), R, lambda v, x: x @ v["w"].T + v["b"]),
    "LocalResponseNorm": Layer(
        lambda iso: iso.LocalResponseNorm(3, alpha=0.9, k=2.0, data_format="channel_first"), T,
        lambda v, x: np.moveaxis(responses(np.moveaxis(x, 1, -1), 3, 0.9, 0.75, 2.0), -1, 1)),
    "MaxPool": Layer(lambda iso: iso.MaxPool(2), IMAGE, lambda v, x: pooled(x, 2, 2, np.max)),
    "Module": Layer(lambda iso: Scaled(iso), R, lambda v, x: x * v["scale"]),
    "MultiHeadAttention": Layer(lambda iso: iso.MultiHeadAttention(4, 2), T, attending),
    "RMSNorm": Layer(lambda iso: iso.RMSNorm(6), R, lambda v, x: rms(x) * v["w"]),
    "Sequential": Layer(
        lambda iso: iso.Sequential(iso.Linear(6, 4), iso.Activation("relu"), iso.Linear(4, 4)), R,
        perceptron),
}  # fmt: skip


def Scaled(iso):
    """A user's own module."""

    class Scaled(iso.Module):
        def __init__(self):
            self.scale = iso.asarray([0.5, -1.5, 2.0, 1.0, -0.3, 0.8])

        def forward(self, x):
            return x * self.scale

    return Scaled()


def Rows(iso):
    """An embedding, whose ids have no gradient, times an array."""

    class Rows(iso.Module):
        def __init__(self):
            self.rows = iso.Embedding(4, 6)

        def forward(self, x):
            xp = iso.namespace(x)
            return self.rows(xp.asarray(np.array(IDS))) * x[:3]

    return Rows()


# Optimizers.


def descended(w, gradients, rates=(0.1, 0.1, 0.1), factor=1.0):
    for g, rate in zip(gradients, rates, strict=True):
        w = w - factor * rate * g
    return w


def of_rates(schedule):
    return lambda w, gradients: descended(w, gradients, [schedule(t) for t in range(3)])


def wave(start, end, part):
    return end + (start - end) / 2 * (1 + math.cos(math.pi * min(max(part, 0.0), 1.0)))


def cycle(t):
    """One cycle of 10 steps: up to 0.1 in the first three."""
    return wave(0.004, 0.1, t / 2) if t <= 2 else wave(0.1, 4e-7, (t - 2) / 7)


def clipped(shorten):
    return lambda w, gradients: descended(w, [shorten(g) for g in gradients])


def short(g, limit=0.7):
    return g * min(1.0, limit / np.linalg.norm(g))


def by_adam(decay=0.0, ratio=lambda w, u: 1.0, epsilon=1e-8):
    """Adam, AdamW or LAMB: what decays, and the trust ratio."""

    def run(w, gradients):
        m = v = 0.0
        for t, g in enumerate(gradients, 1):
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
            u = m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + epsilon) + decay * w
            w = w - 0.1 * ratio(w, u) * u
        return w

    return run


def by_lars(w, gradients):
    m = 0.0
    for g in gradients:
        a, b = np.linalg.norm(w), np.linalg.norm(g)
        rate = 0.5 * a / (b + 0.1 * a) if a * b else 1.0
        m = 0.9 * m + 0.1 * rate * (g + 0.1 * w)
        w = w - m
    return w


def by_lion(w, gradients):
    m = 0.0
    for g in gradients:
        w = w - 0.1 * (np.sign(0.9 * m + 0.1 * g) + 0.1 * w)
        m = 0.99 * m + 0.01 * g
    return w


def by_rmsprop(w, gradients):
    v = mean = m = 0.0
    for g in gradients:
        v, mean = 0.99 * v + 0.01 * g**2, 0.99 * mean + 0.01 * g
        m = 0.9 * m + g / (np.sqrt(v - mean**2) + 1e-8)
        w = w - 0.1 * m
    return w


def by_nesterov(w, gradients):
    m = 0.0
    for g in gradients:
        g = g + 0.1 * w
        m = 0.9 * m + g
        w = w - 0.1 * (g + 0.9 * m)
    return w


def decayed(w, gradients):
    for g in gradients:
        w = w - 0.1 * (g + 0.3 * w)
    return w


def averaged(w, gradients):
    m = 0.0
    for t, g in enumerate(gradients, 1):
        m = 0.9 * m + 0.1 * g
        w = w - 0.1 * m / (1 - 0.9**t)
    return w


def chained(o, *pairs):
    return chain(*pairs, o.scale(-0.1))


PAIRS = {
    "sgd": Pair(lambda o: o.sgd(0.1), descended),
    "sgd, nesterov": Pair(lambda o: o.sgd(0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
                          by_nesterov),
    "adam": Pair(lambda o: o.adam(0.1), by_adam()),
    "adamw": Pair(lambda o: o.adamw(0.1, weight_decay=0.3), by_adam(0.3)),
    "lamb": Pair(lambda o: o.lamb(0.1, weight_decay=0.1),
                 by_adam(0.1, lambda w, u: min(ratio(w, u), 10), 1e-6)),
    "lars": Pair(lambda o: o.lars(0.1, weight_decay=0.1, trust_coefficient=0.5), by_lars),
    "lion": Pair(lambda o: o.lion(0.1, weight_decay=0.1), by_lion),
    "rmsprop": Pair(lambda o: o.rmsprop(0.1, momentum=0.9, centered=True), by_rmsprop),
    "constant": Pair(lambda o: o.sgd(o.constant(0.1)), descended),
    "cosine": Pair(lambda o: o.sgd(o.cosine(0.1, 4)), of_rates(lambda t: wave(0.1, 0, t / 4))),
    "warmup": Pair(lambda o: o.sgd(o.warmup(0.1, 2)), of_rates(lambda t: 0.05 * t)),
    "warmup_cosine": Pair(lambda o: o.sgd(o.warmup_cosine(0.1, 1, 4)),
                          of_rates(lambda t: wave(0.1, 0, (t - 1) / 3) if t else 0.0)),
    "step": Pair(lambda o: o.sgd(o.step(0.1, 2, factor=0.5)),
                 of_rates(lambda t: 0.1 * 0.5 ** (t // 2))),
    "one_cycle": Pair(lambda o: o.sgd(o.one_cycle(0.1, 10)), of_rates(cycle)),
    "clip_by_global_norm": Pair(lambda o: chained(o, o.clip_by_global_norm(0.7)), clipped(short)),
    "clip_by_norm": Pair(lambda o: chained(o, o.clip_by_norm(0.7)), clipped(short)),
    "clip_by_value": Pair(lambda o: chained(o, o.clip_by_value(0.3)),
                          clipped(lambda g: np.clip(g, -0.3, 0.3))),
    "scale": Pair(lambda o: chained(o, o.scale(0.5)),
                  lambda w, gradients: descended(w, gradients, factor=0.5)),
    "scale_by_schedule": Pair(
        lambda o: chain(o.scale_by_schedule(o.cosine(0.1, 4)), o.scale(-1.0)),
        of_rates(lambda t: wave(0.1, 0, t / 4))),
    "add_decayed_weights": Pair(lambda o: chained(o, o.add_decayed_weights(0.3)), decayed),
    "ema": Pair(lambda o: chained(o, o.ema(0.9)), averaged),
    "freeze": Pair(lambda o: chain(o.sgd(0.1), o.freeze("w")), lambda w, gradients: w),
    "masked": Pair(lambda o: chain(o.masked(o.scale(0.5), "w"), o.scale(-0.1)),
                   lambda w, gradients: descended(w, gradients, factor=0.5)),
    "accumulate": Pair(lambda o: o.accumulate(o.sgd(0.1), every=2),
                       lambda w, gradients: w - 0.05 * (gradients[0] + gradients[1])),
}  # fmt: skip
