"""The derivative of each NumPy function, by topic. Importing a module here registers its rules with the tape."""

from . import (
    calculus, elementwise, fft, indexing, joining, linalg, norms, polynomials, products, reductions, shaping, sorting, special,
    statistics,
)  # fmt: skip

__all__ = [
    "calculus", "elementwise", "fft", "indexing", "joining", "linalg", "norms", "polynomials", "products", "reductions",
    "shaping", "sorting", "special", "statistics",
]  # fmt: skip
