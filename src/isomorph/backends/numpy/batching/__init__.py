"""How each function works with an axis of examples in front, by topic. Importing a module registers
its rules.
"""

from . import elementwise, indexing, joining, layers, linalg, products, reductions, shaping

__all__ = [
    "elementwise",
    "indexing",
    "joining",
    "layers",
    "linalg",
    "products",
    "reductions",
    "shaping",
]
