"""The version of isomorph; files record the version that wrote them."""

__version__ = "0.1.0"
