"""`scipy.integrate`."""

from typing import Any

import scipy.integrate as theirs


def __getattr__(name: str) -> Any:
    return getattr(theirs, name)


def __dir__() -> list[str]:
    return dir(theirs)
