"""`scipy.signal`."""

from typing import Any

import scipy.signal as theirs


def __getattr__(name: str) -> Any:
    return getattr(theirs, name)


def __dir__() -> list[str]:
    return dir(theirs)
