"""`scipy.stats`."""

from typing import Any

import scipy.stats as theirs


def __getattr__(name: str) -> Any:
    return getattr(theirs, name)


def __dir__() -> list[str]:
    return dir(theirs)
