"""`numpy.linalg`, all of it NumPy's own."""

from typing import Any

import numpy.linalg


def __getattr__(name: str) -> Any:
    return getattr(numpy.linalg, name)


def __dir__() -> list[str]:
    return dir(numpy.linalg)


__all__ = numpy.linalg.__all__  # pyright: ignore
