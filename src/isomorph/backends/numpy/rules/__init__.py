"""The derivative of each NumPy function, by topic. Importing a module registers its rules."""

from . import (
    calculus,
    elementwise,
    emath,
    fft,
    indexing,
    joining,
    linalg,
    norms,
    polynomials,
    products,
    reductions,
    shaping,
    sorting,
    special,
    statistics,
    windows,
)

__all__ = [
    "calculus",
    "elementwise",
    "emath",
    "fft",
    "indexing",
    "joining",
    "linalg",
    "norms",
    "polynomials",
    "products",
    "reductions",
    "shaping",
    "sorting",
    "special",
    "statistics",
    "windows",
]
