"""`scipy.interpolate`."""

from typing import Any

import scipy.interpolate as theirs


def __getattr__(name: str) -> Any:
    return getattr(theirs, name)


def __dir__() -> list[str]:
    return dir(theirs)
