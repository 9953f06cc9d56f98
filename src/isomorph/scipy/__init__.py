"""SciPy for code that is differentiated: `import isomorph.scipy as scipy`."""

from typing import Any

import scipy

from . import fft, integrate, interpolate, linalg, optimize, signal, special, stats


def __getattr__(name: str) -> Any:
    return getattr(scipy, name)
