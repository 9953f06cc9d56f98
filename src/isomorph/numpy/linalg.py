"""`numpy.linalg`, whose functions also take lists that hold traced values."""

from typing import Any

import numpy.linalg

from .lists import LISTED_LINALG


def __getattr__(name: str) -> Any:
    return LISTED_LINALG[name] if name in LISTED_LINALG else getattr(numpy.linalg, name)


def __dir__() -> list[str]:
    return dir(numpy.linalg)


__all__ = numpy.linalg.__all__  # pyright: ignore
