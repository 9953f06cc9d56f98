"""A physics-informed network: a network that obeys the heat equation u_t = κ·u_xx, and finds the
conductivity κ from a few measurements of the temperature.

The equation is written as on paper, with derivatives by `iso.grad`, and training differentiates
them again. The network is multiplied so that it is 0 at both ends and begins with sin πx: only the
equation and the measurements are left to learn.

What it stands for: DeepXDE takes its derivatives by branches on the framework
(`deepxde/gradients/gradients_reverse.py`, `gradients_forward.py`) and has a training step per
framework (`_compile_tensorflow`, `_compile_pytorch`, `_compile_jax` and others in
`deepxde/model.py`).
"""

from __future__ import annotations

import math

import numpy as np
from pictures import BLUE, GREEN, GREY, ORANGE, PURPLE, Plot
from running import main, numbers

import isomorph as iso

KAPPA = 0.2  # what is to be found
TIMES = (0.0, 0.2, 0.5, 1.0)


def exact(x, t):
    return np.exp(-KAPPA * np.pi**2 * t) * np.sin(np.pi * x)


class Temperature(iso.Module):
    """u(x, t) at places and times, both [n], and the unknown conductivity."""

    def __init__(self, width):
        self.first, self.second = iso.Linear(2, width), iso.Linear(width, width)
        self.head = iso.Linear(width, 1)
        self.log_kappa = iso.asarray(0.0)

    def forward(self, x, t):
        xp = iso.namespace(x)
        hidden = xp.tanh(self.first(xp.stack([2 * x - 1, 2 * t - 1], axis=-1)))
        hidden = xp.tanh(self.second(hidden))
        return xp.sin(math.pi * x) * (1 + t * self.head(hidden)[:, 0])


def derivative(u, argument):
    """The function that gives the derivative of u at each point. A value of u depends on its own
    point only, so these are the gradient of the sum.
    """
    return iso.grad(lambda x, t: iso.namespace(x).sum(u(x, t)), argument)


def residual(u, x, t):
    """u_t − κ·u_xx at each point: 0 where the equation holds."""
    kappa = iso.namespace(x).exp(u.log_kappa)
    u_t, u_xx = derivative(u, 1), derivative(derivative(u, 0), 0)
    return u_t(x, t) - kappa * u_xx(x, t)


def loss(u, x, t, seen_x, seen_t, seen):
    """How far the network is from the equation and from the measurements."""
    missed = residual(u, x, t)
    return iso.namespace(x).mean(missed**2) + 100 * iso.mse(u(seen_x, seen_t), seen)


def run(backend, quick=False, compiled=True):
    points, width, steps = (16, 6, 12) if quick else (150, 24, 1600)
    keys = iso.random.split(iso.random.key(0), 3)
    x, t = iso.random.uniform(keys[0], (2, points), dtype="float64")
    seen_x, seen_t = iso.random.uniform(keys[1], (2, 20), dtype="float64")
    seen = exact(seen_x, seen_t) + 0.01 * iso.random.normal(keys[2], 20, dtype="float64")
    data = iso.convert((x, t, seen_x, seen_t, seen), backend)
    with iso.use_backend(backend, dtype="float64"), iso.use_key(0):
        model = Temperature(width)
    rate = iso.optimizers.cosine(0.03, steps)
    step = iso.train_step(loss, iso.optimizers.adam(rate), compiled=compiled)
    state, losses = step.init(model), []
    for _ in range(steps):
        state, value = step(state, *data)
        losses.append(numbers(value))
    model = state.model
    places, times = np.meshgrid(np.linspace(0, 1, 21), TIMES)
    flat = iso.convert((places.ravel(), times.ravel()), backend)
    curves = numbers(model(*flat)).reshape(places.shape)
    error = float(np.max(np.abs(curves - exact(places, times))))
    found = {"loss": losses[-1], "kappa": math.exp(numbers(model.log_kappa)), "error": error}
    return {"found": found, "losses": losses, "x": places[0], "curves": curves}


def picture(result):
    plot = Plot("The heat equation, learned", (0, 1), (0, 1.1), "x", "temperature")
    for t, curve, colour in zip(TIMES, result["curves"], (GREY, BLUE, GREEN, PURPLE)):
        plot.line(result["x"], exact(result["x"], t), colour, f"exact, t = {t:g}")
        plot.points(result["x"], curve, ORANGE, None if t else "network", 2.5)
    return plot.svg()


if __name__ == "__main__":
    main(__doc__, run, picture, "physics_informed.svg")
