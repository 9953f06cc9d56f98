"""NumPy for code that is differentiated: `import isomorph.numpy as np`.

Every public name of NumPy is here. Nearly all are NumPy's own objects, because NumPy passes their
calls on traced values to isomorph. Functions that convert their arguments to plain arrays first,
such as `np.array([x, y])`, or functions to which a list is often given, such as `np.sum([x, y])`,
are replaced by functions that keep the gradient. On plain arrays they return what NumPy returns.

>>> import isomorph.numpy as inp
>>> iso.grad(lambda x: np.sum(inp.array([x, x**2]) * np.array([3.0, 1.0])))(np.float64(2.0))
np.float64(7.0)
"""

from __future__ import annotations

from typing import Any

import numpy

from . import creation, fft, joining, linalg, loops, random
from .lists import LISTED, quick

OURS = {name: getattr(part, name) for part in (creation, joining, loops) for name in part.__all__}
OURS |= {**LISTED, "fft": fft, "linalg": linalg, "random": random}
OURS |= {
    name: quick(getattr(numpy, name, None), OURS[name])
    for name in (*creation.__all__, *joining.__all__, *LISTED)
}
OURS |= {name: creation.makes(OURS.get(name, getattr(numpy, name))) for name in creation.MADE}
__all__ = numpy.__all__  # pyright: ignore
globals().update({name: x for name, x in vars(numpy).items() if not name.startswith("_")} | OURS)


def __getattr__(name: str) -> Any:
    return getattr(numpy, name)  # what NumPy itself loads late


def __dir__() -> list[str]:
    return dir(numpy)
