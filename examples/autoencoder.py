"""A variational autoencoder: pictures of a spot of light become two numbers each, and from two
numbers it draws new pictures. Nobody told it that a spot has two coordinates.

The bound on the likelihood is log p(x|z) + log p(z) − log q(z|x) at one random z per picture. Its
key is a part of the model's state, so all four backends draw the same numbers, and `iso.fit` does
the rest.

What it stands for: random numbers that are written once per framework and differ between them
(`geomstats/_backend/{numpy,autograd,pytorch}/random.py`, `rand` and `randn` of the classes in
`ot.backend` of POT), and tables of optimizers per framework (`deepxde/optimizers/*/optimizers.py`).
"""

from __future__ import annotations

import math

import numpy as np
from pictures import images
from running import main, numbers

import isomorph as iso

SIDE, NOISE = 8, 0.1  # pixels; the standard deviation of a pixel


def spots(places):
    """Pictures [n, SIDE·SIDE] of spots at places [n, 2] between 0 and 1."""
    xp = iso.namespace(places)
    pixels = (xp.arange(SIDE, dtype=places.dtype) + 0.5) / SIDE
    light = xp.exp(-(((pixels - places[..., None]) / 0.15) ** 2) / 2)  # [n, 2, SIDE]
    return xp.reshape(light[:, 1, :, None] * light[:, 0, None, :], (places.shape[0], SIDE * SIDE))


def network(before, width, after):
    return iso.Sequential(
        iso.Linear(before, width), iso.silu, iso.Linear(width, width), iso.silu,
        iso.Linear(width, after),
    )  # fmt: skip


class Autoencoder(iso.Module):
    def __init__(self, encoder, decoder, key=7):
        self.encoder, self.decoder = encoder, decoder
        self.key = iso.State(iso.random.key(key))

    def forward(self, x):
        """Pictures drawn again, the numbers z that were drawn for them, and how: the mean and the
        logarithm of the deviation.
        """
        xp = iso.namespace(x)
        half = self.encoder(x)
        mean, log_deviation = half[:, : half.shape[1] // 2], half[:, half.shape[1] // 2 :]
        keys = iso.random.split(self.key.value)
        self.key.value = keys[0]
        noise = iso.random.normal(keys[1], mean.shape, dtype=mean.dtype)
        z = mean + xp.exp(log_deviation) * noise
        return self.decoder(z), z, mean, log_deviation


def log_normal(x, mean, log_deviation):
    """The logarithm of the density of independent normal numbers, summed over the last axis."""
    xp = iso.namespace(x)
    each = ((x - mean) * xp.exp(-log_deviation)) ** 2 / 2 + log_deviation + math.log(math.tau) / 2
    return -xp.sum(each, axis=-1)


def negative_bound(model, x):
    """At least −log p(x), on average over pictures and draws."""
    xp = iso.namespace(x)
    again, z, mean, log_deviation = model(x)
    noise = xp.full_like(again, math.log(NOISE))
    zero = xp.zeros_like(z)
    joint = log_normal(x, again, noise) + log_normal(z, zero, zero)
    return xp.mean(log_normal(z, mean, log_deviation) - joint)


def run(backend, quick=False, compiled=True):
    count, size, width, epochs = (32, 8, 12, 2) if quick else (1000, 50, 64, 60)
    with iso.use_backend(backend), iso.use_key(0):
        places, noise = iso.random.split(iso.random.key(0))
        clean = spots(iso.random.uniform(places, (count, 2), minval=0.15, maxval=0.85))
        data = clean + NOISE * iso.random.normal(noise, clean.shape)
        pixels = SIDE * SIDE
        model = Autoencoder(network(pixels, width, 4), network(2, width, pixels))
        across = iso.linspace(-1.6, 1.6, 7)
    done = iso.fit(
        model, (data,), negative_bound, iso.optimizers.adam(2e-3), epochs,
        batch_size=size, compiled=compiled, progress=False,
    )  # fmt: skip
    xp = iso.namespace(across)
    grid = xp.reshape(xp.stack(xp.meshgrid(across, across, indexing="xy"), axis=-1), (49, 2))
    drawn = xp.reshape(done.model.decoder(grid), (49, SIDE, SIDE))
    again = done.model(data)[0]
    found = {"bound": done.history[-1]["loss"], "error": numbers(xp.sqrt(iso.mse(again, clean)))}
    return {"found": found, "losses": np.array(done.losses), "drawn": numbers(drawn)}


def picture(result):
    return images("Pictures drawn from a grid of two numbers", result["drawn"], 7)


if __name__ == "__main__":
    main(__doc__, run, picture, "autoencoder.svg")
