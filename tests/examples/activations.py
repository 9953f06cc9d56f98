"""Activations and losses, each with the same in plain NumPy."""

import math

import numpy as np
import scipy.special

from .entries import Function, R, each, ints, named

logistic = scipy.special.expit
softplus = lambda x: np.logaddexp(0, x)


def softmax(x, axis=-1):
    powers = np.exp(x)
    return powers / powers.sum(axis, keepdims=True)


def log_softmax(x, axis=-1):
    return x - np.log(np.exp(x).sum(axis, keepdims=True))


def tanh_gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def hard(x):
    return x * np.clip(x + 3, 0, 6) / 6


FUNCTIONS = {
    "relu": each(named("relu"), lambda x: np.maximum(x, 0)),
    "leaky_relu": each(lambda iso, x: iso.leaky_relu(x, alpha=0.2),
                       lambda x: np.where(x > 0, x, 0.2 * x)),
    "elu": each(lambda iso, x: iso.elu(x, alpha=1.3),
                lambda x: np.where(x > 0, x, 1.3 * np.expm1(x))),
    "gelu": each(named("gelu"), lambda x: x * scipy.special.ndtr(x)),
    "gelu, approximate": each(lambda iso, x: iso.gelu(x, approximate=True), tanh_gelu),
    "silu": each(named("silu"), lambda x: x * logistic(x)),
    "softplus": each(named("softplus"), softplus),
    "mish": each(named("mish"), lambda x: x * np.tanh(softplus(x))),
    "hardswish": each(named("hardswish"), hard, (-4.0, 4.1)),
    "sigmoid": each(named("sigmoid"), logistic),
    "softmax": Function(named("softmax"), (R,), softmax),
    "log_softmax": Function(lambda iso, x: iso.log_softmax(x, axis=0), (R,),
                            lambda x: log_softmax(x, 0)),
    "logsumexp": Function(lambda iso, x: iso.logsumexp(x, axis=-1), (R,),
                          lambda x: np.log(np.exp(x).sum(-1))),
}  # fmt: skip

# Losses.

LABELS = np.array([2, 0, 5, 1])
ONE_HOT = np.eye(6)[LABELS]
FOUR = dict.fromkeys(("large", "empty", "device"), "its call makes four labels")


def smoothed(x):
    return -np.mean(((0.9 * ONE_HOT + 0.1 / 6) * log_softmax(x)).sum(-1))


def huber(x, y, delta=0.7):
    far = np.abs(x - y)
    return np.mean(np.where(far <= delta, far**2 / 2, delta * (far - delta / 2)))


def binary(x, p):
    return np.mean(softplus(x) - p * x)


FUNCTIONS |= {
    "mse": Function(named("mse"), (R, R), lambda x, y: np.mean((x - y) ** 2)),
    "mae": Function(named("mae"), (R, R), lambda x, y: np.mean(np.abs(x - y)),
                    (None, (1.0, 3.0))),
    "huber": Function(lambda iso, x, y: iso.huber(x, y, delta=0.7), (R, R), huber,
                      (None, (-2.0, 2.0))),
    "binary_cross_entropy": Function(named("binary_cross_entropy"), (R, R), binary,
                                     (None, (0.1, 0.9))),
    "kl_divergence": Function(named("kl_divergence"), (R, R),
                              lambda x, p: np.mean(scipy.special.xlogy(p, p) - p * x),
                              ((-3.0, -0.5), (0.1, 0.9))),
    "cross_entropy": Function(lambda iso, x: iso.cross_entropy(x, ints(x, LABELS)), (R,),
                              lambda x: -np.mean((ONE_HOT * log_softmax(x)).sum(-1)),
                              but=FOUR),
    "cross_entropy, smoothed": Function(
        lambda iso, x: iso.cross_entropy(x, ints(x, LABELS), label_smoothing=0.1), (R,), smoothed,
        but=FOUR),
    "cross_entropy, ignored": Function(
        lambda iso, x: iso.cross_entropy(x, ints(x, LABELS), ignore_index=5), (R,),
        lambda x: -np.mean((ONE_HOT * log_softmax(x)).sum(-1)[[0, 1, 3]]), but=FOUR),
    "cross_entropy, of probabilities": Function(
        lambda iso, x, p: iso.cross_entropy(x, p, reduction="none"), (R, R),
        lambda x, p: -(p * log_softmax(x)).sum(-1), (None, (0.1, 0.9))),
    "cross_entropy, counted": Function(
        lambda iso, x: iso.cross_entropy(x, ints(x, LABELS), ignore_index=0, reduction="counted"),
        (R,), lambda x: [-(ONE_HOT * log_softmax(x)).sum(-1)[[0, 2, 3]].sum(), 3.0],
        but={**FOUR, "borders": "a Mean, which is no array"}),
    "Mean": Function(lambda iso, x: iso.Mean(iso.namespace(x).sum(x * x), 3.0).value, (R,),
                     lambda x: np.sum(x * x) / 3),
}  # fmt: skip
