"""The derivative of each NumPy function, by topic. Importing a module here registers its rules with the tape."""

from . import elementwise, indexing, products, reductions, shaping

__all__ = ["elementwise", "indexing", "products", "reductions", "shaping"]
