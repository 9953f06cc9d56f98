"""`scipy.optimize`, all of it SciPy's own: it calls a function on plain arrays. Pass
`jac=iso.grad(f)`, or `jac=True` with `iso.value_and_grad(f)`.
"""

from typing import Any

import scipy.optimize

theirs: Any = scipy.optimize


def __getattr__(name: str) -> Any:
    return getattr(theirs, name)


def __dir__() -> list[str]:
    return dir(theirs)
