"""A distribution of one variable: how formulas for its standard form become SciPy's methods.

The values are SciPy's own, or better where SciPy loses digits in a tail. The derivatives follow
from the density: that of the distribution function is the density, that of its logarithm the
difference of two logarithms, that of a quantile one over the density. So no tail cancels.

Outside of the support the result is constant, and so its gradient is 0. An edge of the support
belongs to it, and has the derivative from inside, if the density there is not 0; otherwise the
gradient at the edge is 0. At an infinite variable the gradient is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from ...backends.numpy.nested import holds_traced
from ...backends.numpy.tape import primitive, rule, vjp
from ...backends.numpy.traced import Traced, concrete
from ...numpy.creation import asarray
from ..replacing import Wrapped, refuse
from .tails import log_share

np: Any = numpy  # its type stubs do not know traced values

Formula = Callable[..., Any]
LOGARITHMS = {"logpdf": "pdf", "logpmf": "pmf", "logcdf": "cdf", "logsf": "sf"}
REST = {"cdf": "sf", "sf": "cdf"}
QUANTILES = {"ppf": "cdf", "isf": "sf"}
LOG_HALF = -0.6931471805599453
FIRST = ("x", "k", "q")  # how SciPy calls the first argument


class Distribution(Wrapped):
    """SciPy's distribution `theirs`. Its methods that are among `formulas`, or follow from them,
    take traced values. A formula has the standard variable, then the shape parameters.

    Of a continuous distribution only "logpdf" is needed. "cdf", "sf", "logcdf" and "logsf" give
    the derivatives in the shape parameters; so does "falls", the logarithms of what the
    distribution function loses with each of them. The logarithms of shares are also the values, and
    so is what `values` has.
    """

    def __init__(
        self, theirs: Any, low: float, high: float, formulas: dict[str, Formula],
        values: dict[str, Formula] | None = None,
    ) -> None:  # fmt: skip
        self._theirs = theirs
        self.__module__ = "isomorph.scipy.stats"
        self._low, self._high = low, high
        self._formulas, self._values = formulas, values or {}
        self._discrete = "logpmf" in formulas
        self._shapes = [word.strip() for word in (theirs.shapes or "").split(",") if word.strip()]
        self._words = [*self._shapes, "loc", *([] if self._discrete else ["scale"])]

    def __call__(self, *args: Any, **kw: Any) -> Frozen:
        return Frozen(self, args, kw)

    def __repr__(self) -> str:
        return f"isomorph.scipy.stats.{self._theirs.name}"

    def __reduce__(self) -> str:
        return self._theirs.name  # a name in `__module__`: the formulas have none of their own

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
        x, *shapes = (_wide(a) for a in args)
        given = dict(zip(self._words, shapes)) | {word: _wide(v) for word, v in kw.items()}
        # SciPy checks the arguments, and its NaNs are ours
        found = plain(concrete(x), **{word: concrete(v) for word, v in given.items()})
        rest = [given[word] for word in self._shapes]
        if self._discrete:
            y = self._counted(name, x, given.get("loc", 0.0), rest, found)
        else:
            y = self._continuous(name, x, given, rest, found)
        unknown = np.isnan(found)
        return np.where(unknown, np.nan, y) if np.any(unknown) else y

    # ---- continuous distributions

    def _continuous(
        self, name: str, x: Any, given: dict[str, Any], shapes: list[Any], found: Any
    ) -> Any:
        loc, scale = given.get("loc", 0.0), given.get("scale", 1.0)
        if name in QUANTILES:
            self._check_shapes(name, shapes)
            with np.errstate(all="ignore"):
                known = (found - concrete(loc)) / concrete(scale)
            standard = self._standard(name, known, x, shapes)
            return loc + scale * standard if len({"loc", "scale"} & set(given)) else standard
        known = np.asarray(concrete(x), float)
        finite = np.isfinite(known)
        z = (np.where(finite, x, 0.0) - loc) / scale if not np.all(finite) else (x - loc) / scale
        plain = np.asarray(concrete(z))
        inside = (plain >= self._low) & (plain <= self._high) & finite
        if name in ("pdf", "logpdf"):
            logarithm = found if name == "logpdf" else np.log(np.maximum(found, 0.0))
            inside = inside & ((plain > self._low) & (plain < self._high) | (logarithm > -np.inf))
        if not np.all(inside):
            z = np.where(inside, z, self._middle())
        if name in ("pdf", "logpdf"):
            y = self._formulas["logpdf"](z, *shapes)
            y = y - np.log(scale) if "scale" in given else y
            y = np.exp(y) if name == "pdf" else y
        else:
            self._check_shapes(name, shapes)
            y = self._standard(name, found, z, shapes)
        return y if np.all(inside) else np.where(inside, y, found)

    def _middle(self) -> float:
        """A place inside the support."""
        if np.isinf(self._low):
            return 0.0 if np.isinf(self._high) else self._high - 1
        return self._low + 1 if np.isinf(self._high) else (self._low + self._high) / 2

    def _check_shapes(self, name: str, shapes: list[Any]) -> None:
        """Refuse a traced shape parameter if no formula has its derivative."""
        for word, s in zip(self._shapes, shapes):
            if type(s) is Traced and not self._partials(name):
                refuse(f"stats.{self._theirs.name}.{name}", f" with respect to {word}")

    def _standard(self, name: str, found: Any, z: Any, shapes: list[Any]) -> Any:
        """A method of the standard form, at `z` inside the support. SciPy has `found`."""
        z, *shapes = np.broadcast_arrays(z, *shapes) if shapes else (asarray(z),)
        return _evaluate(self, name, np.broadcast_to(found, z.shape), z, *shapes)

    def _value(self, name: str, found: Any, z: Any, shapes: tuple) -> Any:
        """The value at plain arrays."""
        if name in self._values:
            return np.asarray(self._values[name](z, *shapes))
        if name in ("logcdf", "logsf"):
            if name in self._formulas:
                return np.asarray(self._formulas[name](z, *shapes))
            own = LOGARITHMS[name]
            share, rest = (self._plain(each, z, shapes) for each in (own, REST[own]))
            return np.where(share > 0, log_share(share, rest), found)
        return found

    def _plain(self, name: str, z: Any, shapes: tuple) -> Any:
        own = self._values[name] if name in self._values else getattr(self._theirs, name)
        return np.asarray(own(z, *shapes))

    def _slope(self, name: str, y: Any, z: Any, shapes: tuple) -> Any:
        """The derivative in the standard variable."""
        density = self._formulas["logpdf"]
        if name in QUANTILES:
            logs = density(y, *shapes)
            # at an end of the support, where a formula has no value, the density is 0
            slope = np.exp(-np.where(np.isnan(concrete(logs)), -np.inf, logs))
        elif name in LOGARITHMS:
            none = concrete(y) == -np.inf
            slope = np.where(none, 0.0, np.exp(density(z, *shapes) - np.where(none, 0.0, y)))
        else:
            slope = np.exp(density(z, *shapes))
        return -slope if name in ("sf", "logsf", "isf") else slope

    def _partials(self, name: str) -> list[tuple[str, int]]:
        """The formulas that give the derivative of the share of `name` in a shape parameter, with
        their signs. For a logarithm it may be that of the logarithm itself.
        """
        share = _share(name)
        if name in LOGARITHMS and name in self._formulas:
            return [(name, 1)]
        choices = [(share, 1), (REST[share], -1), ("falls", -1 if share == "cdf" else 1)]
        return [c for c in choices if c[0] in self._formulas]

    def _pull(self, name: str, y: Any, z: Any, shapes: tuple, i: int, g: Any) -> Any:
        """The gradient for the shape parameter number i."""
        partials = self._partials(name)
        more, by = None, 0.0  # where the share is more than a half; a factor, as a logarithm
        if name in QUANTILES:  # the share stays the same, so the variable moves against it
            ends = (concrete(z) <= 0) | (concrete(z) >= 1)
            more = concrete(z) > 0.5
            g = np.where(ends, 0.0, -g if name == "ppf" else g)
            z = np.where(ends, self._middle(), y)
            by = -self._formulas["logpdf"](z, *shapes)
        elif name in LOGARITHMS:
            none = concrete(y) == -np.inf
            more = concrete(y) > LOG_HALF
            g = np.where(none, 0.0, g)
            by = 0.0 if partials[0][0] == name else -np.where(none, 0.0, y)
        else:
            more = concrete(y) > 0.5
        if partials[0][0] == "falls":
            return g * partials[0][1] * np.exp(self._formulas["falls"](z, *shapes)[i] + by)
        g = g * np.exp(by)

        def pulled(formula: str, g: Any) -> Any:
            def share(s: Any) -> Any:
                return (self._formulas[formula](z, *shapes[:i], s, *shapes[i + 1 :]),), ()

            return vjp(share, [shapes[i]])[1]((g,))[0]

        (formula, sign), *others = partials
        if not others or not np.any(more):
            return pulled(formula, g * sign)
        # the smaller of the two shares has the digits of the derivative
        (rest, turned), *_ = others
        near, far = np.where(more, 0.0, g * sign), np.where(more, g * turned, 0.0)
        return pulled(formula, near) + pulled(rest, far)

    # ---- discrete distributions

    def _counted(self, name: str, k: Any, loc: Any, shapes: list[Any], found: Any) -> Any:
        """A method of a discrete distribution: a formula inside the support, constant outside."""
        if type(k) is Traced or type(loc) is Traced:
            refuse(
                f"stats.{self._theirs.name}.{name}", " in the counted variable or loc",
                "use iso.stop_gradient for it",
            )  # fmt: skip
        formula = self._discrete_formula(name)
        z = np.asarray(k - loc, float)
        inside = (z >= self._low) & (z <= self._high) & np.isfinite(z)
        if name in ("pmf", "logpmf"):
            inside = inside & (z == np.floor(z))
        if np.all(inside):
            return formula(z, *shapes)
        return np.where(inside, formula(np.where(inside, z, self._low), *shapes), found)

    def _discrete_formula(self, name: str) -> Formula:
        known = self._formulas
        if name in known:
            return known[name]
        if name == "pmf":
            return lambda *args: np.exp(known["logpmf"](*args))
        if name in ("logcdf", "logsf"):
            share = LOGARITHMS[name]
            return lambda *args: log_share(known[share](*args), known[REST[share]](*args))
        return refuse(f"stats.{self._theirs.name}.{name}")


def _share(name: str) -> str:
    """ "cdf" or "sf", of which `name` is the logarithm or the inverse."""
    return QUANTILES.get(name, LOGARITHMS.get(name, name))


def _wide(a: Any) -> Any:
    """An array of at least 64 bits, in which SciPy computes."""
    x = asarray(a)
    return x.astype(np.float64) if x.dtype in (np.float16, np.float32) else x


@primitive
def _evaluate(own: Any, name: str, found: Any, z: Any, *shapes: Any) -> Any:
    with np.errstate(all="ignore"):
        return own._value(name, found, z, shapes)


@rule(_evaluate)
def _(y, own, name, found, z, *shapes):
    def back(i):
        return lambda g: own._pull(name, y, z, shapes, i, g)

    along = lambda g: g * own._slope(name, y, z, shapes)
    return (None, None, None, along, *map(back, range(len(shapes))))


class Frozen:
    """A distribution with its parameters, `norm(loc, scale)`."""

    def __init__(self, distribution: Any, args: tuple, kw: dict[str, Any]) -> None:
        self._distribution, self._given = distribution, (args, kw)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_given" not in vars(self):  # as in `Wrapped`
            raise AttributeError(f"'Frozen' object has no attribute {name!r}")
        args, kw = self._given
        if name in vars(type(self._distribution)):
            method = getattr(self._distribution, name)
            if name == "entropy":
                return lambda: method(*args, **kw)
            return lambda x: method(x, *args, **kw)
        return getattr(self._distribution._theirs(*args, **kw), name)
