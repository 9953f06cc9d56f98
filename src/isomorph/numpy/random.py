"""`numpy.random`, all of it NumPy's own."""

from typing import Any

import numpy.random


def __getattr__(name: str) -> Any:
    return getattr(numpy.random, name)


def __dir__() -> list[str]:
    return dir(numpy.random)


__all__ = numpy.random.__all__  # pyright: ignore
