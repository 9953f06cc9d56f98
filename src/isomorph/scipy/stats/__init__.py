"""`scipy.stats`: densities and distribution functions with gradients."""

from typing import Any

import scipy.stats

from . import continuous, discrete, multivariate

theirs: Any = scipy.stats
OURS = {
    name: getattr(part, name)
    for part in (continuous, discrete, multivariate)
    for name in part.__all__
}


def __getattr__(name: str) -> Any:
    return OURS[name] if name in OURS else getattr(theirs, name)


def __dir__() -> list[str]:
    return dir(theirs)
