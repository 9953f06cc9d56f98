"""Expected losses for training an export: the same network by hand in float64, and by
our own loop.
"""

from itertools import count

import numpy as np
from modules.perceptron import RATE, Plain, T, X, by_hand, start, trained_by_hand

import isomorph as iso

STEPS = 10
ADAM = {"rate": 0.02, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-10}
CLOSE = {"rtol": 1e-5}  # float32 sums over at most 20 numbers, in ten steps
X32, T32 = X.astype(np.float32), T.astype(np.float32)


def made(backend, build, *args, **kw):
    with iso.use_backend(backend):
        return build(*args, **kw)


def array(backend, x):
    return iso.convert(np.asarray(x), backend)


def adam_by_hand():
    """The losses of Adam by the formulas of Kingma and Ba, in float64."""
    layers, losses = start(np.float64), []
    m, v = ([{k: np.zeros_like(x) for k, x in p.items()} for p in layers] for _ in range(2))
    b1, b2 = ADAM["beta1"], ADAM["beta2"]
    for t in range(1, STEPS + 1):
        loss, grads = by_hand(layers)
        losses.append(loss)
        for p, g, mean, square in zip(layers, grads, m, v):
            for k in p:
                mean[k] = b1 * mean[k] + (1 - b1) * g[k]
                square[k] = b2 * square[k] + (1 - b2) * g[k] ** 2
                root = np.sqrt(square[k] / (1 - b2**t)) + ADAM["epsilon"]
                p[k] = p[k] - ADAM["rate"] * mean[k] / (1 - b1**t) / root
    return np.array(losses)


def by_our_loop(kind):
    """The losses of our gradients and updates on NumPy."""
    net = made("numpy", Plain)
    loss = lambda v: np.mean((net(X32, v=v) - T32) ** 2)
    losses, moments, steps = [], None, count(1)
    for _ in range(STEPS):
        value, grads = iso.value_and_grad(loss)(net.v)
        losses.append(float(value))
        if kind == "sgd":
            net.v = iso.gradient_descent_update(net.v, grads, RATE)
        else:
            zeros = {k: {n: 0 * x for n, x in part.items()} for k, part in net.v.items()}
            moments = moments or (zeros, zeros)
            settings = {k: ADAM[k] for k in ("beta1", "beta2", "epsilon")}
            net.v, *moments = iso.adam_update(
                net.v, grads, ADAM["rate"], *moments, next(steps), **settings
            )
    return np.array(losses)


def check(kind, losses):
    """The losses of an export equal those by hand and those of our loop, and they fall."""
    by = trained_by_hand(STEPS)[0] if kind == "sgd" else adam_by_hand()
    assert len(losses) == STEPS
    assert np.all(np.diff(losses) < 0)
    np.testing.assert_allclose(losses, by, **CLOSE)
    np.testing.assert_allclose(losses, by_our_loop(kind), **CLOSE)


class Tied(iso.Module):
    """One array in two layers, and one layer under two names."""

    def __init__(self):
        self.first = iso.Linear(3, 3, key=0)
        self.again = self.first
        self.tied = iso.Linear(3, 3, key=1)
        self.tied.w = self.first.w

    def forward(self, x):
        return self.tied(self.again(self.first(x)))


class Counting(iso.Module):
    """All kinds of state: an array, a nest with one, a number, and an array of integers."""

    def __init__(self):
        self.w = iso.initializers.constant(1.0)(None, (2,))
        self.total = iso.State(iso.initializers.constant(0.0)(None, (2,)))
        self.seen = iso.State({"last": iso.initializers.constant(0.0)(None, (2,)), "calls": 0})
        self.order = iso.asarray([1, 0])

    def forward(self, x):
        self.total.value = self.total.value * self.w + x
        self.seen.value = {"last": x, "calls": self.seen.value["calls"] + 1}
        xp = iso.namespace(x)
        return xp.sum(self.total.value * self.w) + 0 * xp.sum(xp.astype(self.order, x.dtype))
