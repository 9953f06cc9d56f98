"""Known differences between frameworks at edges, each with the reason to leave it.

The ledger is checked both ways: a difference that is not listed fails, and so does a listed one
that no longer occurs. Not so an entry that is `free`: a kernel decides there, and kernels differ
with the processor. Nothing is promised at such places but what `holds` says; what was seen there is
on a page of facts, docs/edges.md, which `edge_facts.py` writes.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from frameworks import older


class Entry(NamedTuple):
    backends: str  # backend names
    names: str  # function names
    edge: str  # a pattern of edge names
    what: str  # value, grad or twice
    reason: str
    at: Callable | None = None  # (inputs, expected values) -> positions; None: the whole result
    dtypes: str = "float32 float64"
    free: bool = False  # either outcome is right
    holds: Callable | None = None  # what is true of a free result all the same, at each position


# Positions, for cases in which each result belongs to the inputs at the same position.


def unknown(inputs, values):
    return np.isnan(values[0])


def zero(inputs, values):
    return inputs[0] == 0


def zeros(inputs, values):
    return values[0] == 0


def origin(inputs, values):
    return (inputs[0] == 0) & (inputs[1] == 0)


def equal(inputs, values):
    return inputs[0] == inputs[1]


def infinite(inputs, values):
    return np.any([np.isinf(x) for x in inputs], axis=0)


def squared(inputs, values):
    """Positions whose squares overflow or underflow."""
    sizes = [np.abs(x) for x in inputs]
    return np.any([(x > 1e30) | ((x > 0) & (x < 1e-30)) for x in sizes], axis=0)


def spread(inputs, values):
    """All positions of rows with an infinity or a very large number."""
    wide = ~np.isfinite(inputs[0]) | (np.abs(inputs[0]) > 1e30)
    return np.broadcast_to(wide.any(-1, keepdims=True), wide.shape)


def ties(inputs, values):
    """Positions that equal another one of their row; NaNs count as equal."""
    x = np.where(np.isnan(inputs[0]), np.pi, inputs[0])
    return (x[..., :, None] == x[..., None, :]).sum(-1) > 1


def alike(inputs, values):
    """All positions of matrices with equal singular values."""
    s = _singular_values(inputs[0])
    return _of_matrices(inputs[0], s[..., 0] - s[..., -1] < 1e-6)


def singular(inputs, values):
    """All positions of matrices with a singular value of 0, but not those of zeros."""
    s = _singular_values(inputs[0])
    return _of_matrices(inputs[0], (s[..., -1] < 1e-6) & (s[..., 0] > 1e-6))


def degenerate(inputs, values):
    return alike(inputs, values) | singular(inputs, values)


def _singular_values(x):
    return np.linalg.svd(x.astype(np.float64), compute_uv=False)


def _of_matrices(x, some):
    return np.broadcast_to(some[..., None, None], x.shape)


# What holds of a result that nothing more is promised of.


def is_zero(found):
    return found == 0


def is_finite(found):
    return np.isfinite(found)


def is_not_finite(found):
    return ~np.isfinite(found)


FREE = "piecewise linear; where the value is NaN, the framework chooses the derivative of a piece"
KINK = "the slope of |x| at 0, or of clip at its bound, is the framework's choice (gotchas.md)"
FLUSH = "XLA's and TensorFlow's CPU kernels flush denormal numbers to 0"
SIGN = "the sign of a zero"
STEEP = "the derivative is infinite: inf, NaN, or one of each in a complex number"
NULL = "vectors of equal singular values, and the signs of those of 0, are LAPACK's choice"
KERNEL = (
    "torch's kernel computes x·0 and x·x there; to avoid it would cost two more passes over "
    "memory, forward and backward"
)
OWN = "the operator ** is the framework's own; xp.pow is right"

LEDGER = [
    # Values.
    Entry("jax", "sign floor_divide remainder", "specials", "value", SIGN, zeros, free=True,
          holds=is_zero),
    Entry("torch", "remainder", "specials", "value", SIGN, zeros, free=True, holds=is_zero),
    Entry("jax tensorflow torch", "maximum minimum", "specials", "value",
          SIGN + ", of zeros of both signs", zeros, free=True, holds=is_zero),
    Entry("torch", "remainder", "specials", "value",
          "by a number so small that the quotient overflows", squared, free=True),
    Entry("jax tensorflow", "sqrt log sign divide less", "denormals", "value", FLUSH, free=True),
    Entry("numpy torch", "pow", "to 0.5", "value",
          "computed by a square root, which differs at -inf and -0.0", infinite),
    Entry("numpy torch", "pow", "to 0.5", "value", "the sign of a zero root", zero),
    Entry("torch", "std", "rows", "value", "computed in float64: no overflow", None, "float32"),
    Entry("jax", "fft.fft fft.ifft fft.irfft fft.hfft fft.fftn fft.ifftn fft.irfftn", "no*",
          "value", "JAX gives an empty result for an empty array"),
    # Piecewise linear functions.
    Entry("jax torch", "abs acosh", "specials", "grad", FREE, unknown, free=True),
    Entry("jax", "abs", "specials", "grad", KINK, zero),
    Entry("jax", "remainder", "specials", "grad", FREE, unknown, free=True),
    Entry("jax torch", "maximum minimum", "specials", "grad", FREE, unknown, free=True),
    Entry("jax tensorflow torch", "clip", "*", "grad", FREE, unknown, free=True),
    Entry("jax", "clip", "infinite bounds", "grad", KINK, infinite),
    Entry("torch", "max min", "no axes", "grad", FREE, unknown, free=True),
    Entry("jax tensorflow", "copysign", "specials", "grad", FREE, unknown, free=True),
    Entry("jax tensorflow", "copysign", "specials", "grad", KINK, zero),
    Entry("torch", "copysign", "specials", "grad", "a quotient of infinities",
          lambda inputs, values: np.isinf(inputs[0])),
    Entry("torch", "nextafter", "specials", "grad",
          "the neighbour of a number towards itself is the other argument", equal),
    Entry("jax", "nextafter", "specials", "grad", "JAX has no derivative, and raises"),
    *([
        Entry("torch", "nextafter", "specials", "grad", "no derivative before 2.13, and raises"),
    ] if older("torch", 2, 13) else []),
    Entry("numpy jax tensorflow torch", "iso.relu iso.leaky_relu iso.elu", "specials", "grad",
          FREE, unknown, free=True),
    Entry("jax", "iso.leaky_relu", "specials", "grad", KINK, zero),
    Entry("jax torch", "iso.mae", "specials", "grad", FREE, unknown, free=True),
    Entry("jax", "iso.mae", "equal", "grad", KINK, equal),
    Entry("torch", "linalg.vector_norm", "order 1", "grad", FREE,
          lambda inputs, values: np.isnan(inputs[0]), free=True),
    Entry("jax", "sort", "rows, descending", "grad",
          "JAX reverses the ascending order, and so the order of ties", ties),
    # Numbers whose squares or products overflow or underflow.
    Entry("torch", "atan2", "specials", "grad", "torch's choice at the origin", origin),
    Entry("jax tensorflow torch", "atan2", "specials", "grad", "squares overflow", squared),
    Entry("torch", "hypot", "specials", "grad", "a product overflows before the quotient",
          squared),
    Entry("jax", "divide", "specials", "grad", "the square of the divisor vanishes", squared),
    Entry("jax tensorflow", "abs sqrt divide maximum", "denormals", "grad", FLUSH, free=True),
    Entry("jax tensorflow torch", "sqrt log", "complex", "grad", STEEP, zero,
          free=True, holds=is_not_finite),
    Entry("torch", "pow", "complex", "grad", "0 to a complex power: torch gives 0, not NaN",
          lambda inputs, values: (inputs[0] == 0) & (inputs[1] == 1 + 1j)),
    Entry("torch", "pow", "to 0.5", "grad", "computed by a square root", lambda inputs, values:
          (inputs[0] == 0) | np.isinf(inputs[0])),
    Entry("tensorflow", "pow", "operator to 0*", "grad", OWN, lambda inputs, values:
          (inputs[0] == 0) | np.isnan(inputs[0])),
    Entry("tensorflow", "pow", "operator to 0*", "twice", OWN, lambda inputs, values:
          (inputs[0] == 0) | np.isnan(inputs[0])),
    Entry("jax", "pow", "operator to 0.0", "grad", OWN, lambda inputs, values:
          (inputs[0] == 0) | np.isnan(inputs[0])),
    Entry("jax", "pow", "operator to 0.0", "twice", OWN, lambda inputs, values:
          (inputs[0] == 0) | np.isnan(inputs[0])),
    Entry("jax tensorflow", "var", "rows", "grad", "through the mean: infinity minus infinity",
          spread),
    Entry("torch", "prod", "NaN", "grad", "torch divides the product by NaN or infinity"),
    Entry("jax torch", "cumulative_prod", "rows", "grad", "products of infinities in another order",
          spread),
    # Kernels.
    Entry("torch", "iso.gelu iso.silu iso.mish", "specials*", "value", KERNEL, squared, free=True),
    Entry("torch", "iso.gelu iso.silu iso.mish", "specials*", "grad", KERNEL, squared, free=True),
    Entry("jax", "linalg.det", "NaN", "grad",
          "a sum of products: an element that no NaN is multiplied with keeps its derivative"),
    # Matrices whose vectors are not unique.
    Entry("jax tensorflow torch", "linalg.svdvals", "equal, zero and singular", "grad", NULL,
          degenerate, free=True, holds=is_finite),
    Entry("jax tensorflow torch", "linalg.matrix_norm", "order nuc", "grad", NULL, singular,
          free=True, holds=is_finite),
    Entry("jax tensorflow torch", "linalg.matrix_norm", "order 2", "grad", NULL, alike,
          free=True, holds=is_finite),
    Entry("jax tensorflow torch", "linalg.matrix_norm", "order -2", "grad", NULL, degenerate,
          free=True, holds=is_finite),
    Entry("jax tensorflow torch", "linalg.eigh linalg.eigvalsh", "equal eigenvalues", "grad", NULL,
          alike, free=True, holds=is_finite),
    *(
        Entry("jax tensorflow torch", name, edge, what, NULL, alike, free=True, holds=is_finite)
        for name, edge in (
            ("linalg.eigh", "vectors of equal eigenvalues"), ("linalg.svd", "equal singular values")
        )
        for what in ("value", "grad")
    ),
]  # fmt: skip

# What differs on a GPU alone.
SPREADS = "what is not finite spreads to other elements"
ON_GPU = [
    Entry("torch", "hypot", "specials", "value", "the largest number overflows",
          lambda inputs, values: np.max(np.abs(inputs), 0) == np.finfo(inputs[0].dtype).max,
          "float64"),
    Entry("torch", "fft.ifft fft.irfft fft.hfft fft.rfft", "NaN", "value", SPREADS),
    Entry("torch", "fft.ifftn", "infinite", "value", SPREADS),
]  # fmt: skip
