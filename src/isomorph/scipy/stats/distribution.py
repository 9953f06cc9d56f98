"""A distribution of one variable: how a formula for its standard form becomes SciPy's methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from ...backends.numpy.nested import holds_traced
from ...backends.numpy.traced import Traced, concrete
from ...numpy.creation import asarray
from ..replacing import refuse

np: Any = numpy  # its type stubs do not know traced values

Formula = Callable[..., Any]
LOGARITHMS = {"logpdf": "pdf", "logpmf": "pmf", "logcdf": "cdf", "logsf": "sf"}
REST = {"cdf": "sf", "sf": "cdf"}
FIRST = ("x", "k", "q")  # how SciPy calls the first argument


class Distribution:
    """SciPy's distribution `theirs`. Its methods that are among `formulas`, or follow from them,
    take traced values. A formula has the standard variable, then the shape parameters.
    """

    def __init__(self, theirs: Any, low: float, high: float, formulas: dict[str, Formula]) -> None:
        self._theirs = theirs
        self._low, self._high = low, high
        self._formulas = formulas
        self._discrete = "logpmf" in formulas
        shapes = [word.strip() for word in (theirs.shapes or "").split(",") if word.strip()]
        self._words = [*shapes, "loc", *([] if self._discrete else ["scale"])]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._theirs, name)

    def __call__(self, *args: Any, **kw: Any) -> Frozen:
        return Frozen(self, args, kw)

    def __repr__(self) -> str:
        return f"isomorph.scipy.stats.{self._theirs.name}"

    # fmt: off
    def logpdf(self, *args: Any, **kw: Any) -> Any: return self._method("logpdf", args, kw)
    def pdf(self, *args: Any, **kw: Any) -> Any: return self._method("pdf", args, kw)
    def logpmf(self, *args: Any, **kw: Any) -> Any: return self._method("logpmf", args, kw)
    def pmf(self, *args: Any, **kw: Any) -> Any: return self._method("pmf", args, kw)
    def logcdf(self, *args: Any, **kw: Any) -> Any: return self._method("logcdf", args, kw)
    def cdf(self, *args: Any, **kw: Any) -> Any: return self._method("cdf", args, kw)
    def logsf(self, *args: Any, **kw: Any) -> Any: return self._method("logsf", args, kw)
    def sf(self, *args: Any, **kw: Any) -> Any: return self._method("sf", args, kw)
    def ppf(self, *args: Any, **kw: Any) -> Any: return self._method("ppf", args, kw)
    def isf(self, *args: Any, **kw: Any) -> Any: return self._method("isf", args, kw)
    # fmt: on

    def _method(self, name: str, args: tuple, kw: dict[str, Any]) -> Any:
        plain = getattr(self._theirs, name)
        if not any(map(holds_traced, (*args, *kw.values()))):
            return plain(*args, **kw)
        kw = dict(kw)
        if not args:
            args = tuple(kw.pop(word) for word in FIRST if word in kw)
        x, *shapes = (asarray(a) for a in args)
        given = dict(zip(self._words, shapes)) | {word: asarray(v) for word, v in kw.items()}
        # SciPy checks the arguments, and its NaNs are ours
        found = plain(concrete(x), **{word: concrete(v) for word, v in given.items()})
        if self._discrete and (type(x) is Traced or type(given.get("loc")) is Traced):
            refuse(
                f"stats.{self._theirs.name}.{name}", " in the counted variable or loc",
                "use iso.stop_gradient for it",
            )  # fmt: skip
        rest = [given[word] for word in self._words if word not in ("loc", "scale")]
        loc, scale = given.get("loc", 0.0), given.get("scale", 1.0)
        if name in ("ppf", "isf"):
            q = x if name == "ppf" else 1 - x
            return self._known(found, loc + scale * self._formula("ppf")(q, *rest))
        z = (x - loc) / scale if not self._discrete else x - loc
        y = self._inside(name, z, rest)
        if "scale" in given and name in ("pdf", "logpdf"):
            y = y / scale if name == "pdf" else y - np.log(scale)
        return self._known(found, y)

    def _known(self, found: Any, y: Any) -> Any:
        return np.where(np.isnan(found), np.nan, y) if np.any(np.isnan(found)) else y

    def _inside(self, name: str, z: Any, shapes: list[Any]) -> Any:
        """The formula where `z` is in the support, and a constant outside."""
        plain = np.asarray(concrete(z))
        inside = (plain >= self._low) & (plain <= self._high)
        density = name in ("pdf", "logpdf", "pmf", "logpmf")
        if self._discrete and density:
            inside = inside & (plain == np.floor(plain))
        if np.all(inside):
            return self._formula(name)(z, *shapes)
        if np.isinf(self._low):
            safe = 0.0 if np.isinf(self._high) else self._high
        else:
            safe = self._low + 1 if np.isinf(self._high) else (self._low + self._high) / 2
        y = self._formula(name)(np.where(inside, z, safe), *shapes)
        if density:
            outside: Any = 0.0
        else:
            outside = np.where(
                plain < self._low, name in ("sf", "logsf"), name in ("cdf", "logcdf")
            )
        if name in LOGARITHMS:
            with np.errstate(divide="ignore"):
                outside = np.log(np.asarray(outside, float))
        return np.where(inside, y, outside)

    def _formula(self, name: str) -> Formula:
        known = self._formulas
        if name in known:
            return known[name]
        logarithm = {plain: log for log, plain in LOGARITHMS.items()}.get(name)
        if logarithm in known:
            return lambda *args: np.exp(known[logarithm](*args))
        if name in LOGARITHMS and LOGARITHMS[name] in (
            *known,
            *(REST[k] for k in REST if k in known),
        ):
            return lambda *args: np.log(self._formula(LOGARITHMS[name])(*args))
        if name in REST and REST[name] in known:
            return lambda *args: 1 - known[REST[name]](*args)
        return refuse(f"stats.{self._theirs.name}.{name}")


class Frozen:
    """A distribution with its parameters, `norm(loc, scale)`."""

    def __init__(self, distribution: Any, args: tuple, kw: dict[str, Any]) -> None:
        self._distribution, self._given = distribution, (args, kw)

    def __getattr__(self, name: str) -> Any:
        args, kw = self._given
        if name in vars(type(self._distribution)):
            method = getattr(self._distribution, name)
            if name == "entropy":
                return lambda: method(*args, **kw)
            return lambda x: method(x, *args, **kw)
        return getattr(self._distribution._theirs(*args, **kw), name)
