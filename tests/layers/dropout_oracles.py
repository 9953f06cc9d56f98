"""The expected result of dropout, with the mask from JAX's own generator."""

import numpy as np
from frameworks import jax, jnp

import isomorph as iso


def kept(seed, prob, shape):
    """The mask of a key: bernoulli with the probability to be kept, in float32."""
    key = jnp.asarray(np.array([seed >> 32, seed & 0xFFFFFFFF], np.uint32))
    return np.asarray(jax.random.bernoulli(key, np.float32(1 - prob), shape))


def dropped(x, seed, prob, scale=True, shape=None):
    """Dropout of a NumPy array: one multiplication, rounded in its dtype."""
    factor = x.dtype.type(1 / (1 - prob) if scale else 1)
    return np.where(kept(seed, prob, x.shape if shape is None else shape), x * factor, 0)


def key_of(backend, seed):
    return iso.random.key(seed, backend=backend)
