"""`scipy.linalg`."""

from typing import Any

import scipy.linalg as theirs


def __getattr__(name: str) -> Any:
    return getattr(theirs, name)


def __dir__() -> list[str]:
    return dir(theirs)
