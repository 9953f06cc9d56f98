"""SciPy, if it is installed, for code that is differentiated: `import isomorph.scipy as scipy`.

Its modules have the names of SciPy's. Functions that NumPy passes to isomorph, such as the ufuncs
of `scipy.special`, are SciPy's own objects. Functions that would convert a traced value to plain
data are replaced: on plain arrays they call SciPy's, on traced values they keep the gradient.
What has no replacement is SciPy's own, and raises for a traced value.

>>> import isomorph.scipy as isp
>>> iso.grad(lambda x: isp.special.logsumexp(x))(np.array([0.0, 0.0]))
array([0.5, 0.5])
"""

from typing import Any

try:
    import scipy
except ImportError as error:
    raise ImportError(
        "isomorph.scipy: needed SciPy, which is not installed; pip install scipy"
    ) from error

from . import fft, integrate, interpolate, linalg, optimize, signal, special, stats

__all__ = [
    "fft", "integrate", "interpolate", "linalg", "optimize", "signal", "special", "stats",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    return getattr(scipy, name)


def __dir__() -> list[str]:
    return sorted({*__all__, *dir(scipy)})
