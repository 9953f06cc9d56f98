"""Apply a rule for one array to nests of arrays.

`Lift` finds the backend once per call, checks that the nests have the same leaves, gives every
number the dtype of its array, and rebuilds nests of the results. Checks run on all leaves at once
where possible; single leaves are examined only for an error message.

Numbers become 0-d arrays once per call: every framework multiplies an array by a 0-d array in half
the time of a Python number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any, NoReturn

from ..core import tree
from ..core.default_backend import home
from ..core.dispatch import BACKENDS, backend_of, dtype_of, find_backend


class Lift:
    """The leaves of a call's nests side by side; the other nests must be like the first.

    A column has one entry per leaf.
    """

    def __init__(self, name: str, nests: dict[str, Any]):
        self.name, self.nests = name, nests
        self.first, *others = nests
        leaves, self.form = tree.flatten(nests[self.first])
        self.columns = [leaves, *(self.like(key, nests[key]) for key in others)]
        self.xp = self._backend()
        self.shapes = [x.shape for x in self.columns[0]]
        self.dtypes = [x.dtype for x in self.columns[0]]
        self.kinds = set(self.dtypes)
        self.devices = self._devices()
        for key, column in zip(others, self.columns[1:]):
            if [x.shape for x in column] != self.shapes:
                self._check_shapes(key, column)
            if [x.dtype for x in column] != self.dtypes:
                self._refuse_dtypes(key, column)
        for kind in self.kinds:
            if not self.xp.is_float(kind):
                self.refuse("floating-point", kind)

    def apply(
        self, rule: Callable[..., tuple[Any, ...]], numbers: Sequence[Any], stop: bool, count: int
    ) -> tuple[Any, ...]:
        """Apply `rule(xp, *arrays, *numbers)`, which returns `count` arrays, to each leaf; return
        `count` nests. With `stop`, no gradient flows through them.
        """
        results = map(partial(rule, self.xp), *self.columns, *numbers)
        return tuple([self.nest(c, stop) for c in list(zip(*results)) or [()] * count])

    def nest(self, column: Iterable[Any], stop: bool) -> Any:
        """The nest of a column; with `stop`, no gradient flows through it."""
        return tree.unflatten(self.form, map(self.xp.stop_gradient, column) if stop else column)

    # Numbers. A Python number takes the dtype of its array, an array is cast to it.

    def each(self, make: Callable[[Any], Any]) -> list[Any]:
        """A column with `make(dtype)` for each leaf; `make` is called once per dtype."""
        made = {kind: make(kind) for kind in self.kinds}
        if len(made) == 1:
            return [*made.values()] * len(self.dtypes)
        return [made[dtype] for dtype in self.dtypes]

    def constant(self, value: float) -> list[Any]:
        """A column that repeats one number, as 0-d arrays if they are float32 or float64 and on
        the device of the leaves, else as a Python number.
        """
        return self.each(lambda dtype: self._array(value, dtype))

    def _array(self, value: float, dtype: Any) -> Any:
        xp = self.xp
        if not self.devices or dtype not in (xp.float32, xp.float64):
            return value
        made = xp.asarray(value, dtype=dtype)
        return made if self.devices == {xp.device_of(made)} else value

    def counts(self) -> bool:
        """Whether a 0-d result of this backend is also a Python number, as `np.float64` is. Then
        Python can compare it, much faster than a 0-d array.
        """
        return isinstance(self.xp.sum(self.xp.asarray(0.0)), Real)

    def rates(self, lr: Any, plain: bool = False) -> list[Any]:
        """The column of learning rates: numbers, 0-d arrays, or arrays of the leaves' shapes. With
        `plain`, a number stays a number.
        """
        if isinstance(lr, Real):
            rate = number(self.name, "lr", lr)
            return [rate] * len(self.dtypes) if plain else self.constant(rate)
        if find_backend(lr) is not None:
            self._same_backend(lr)
            column: list[Any] = self.each(lambda dtype: cast(self.xp, lr, dtype))
        else:
            column = [
                number(self.name, f"lr{self.at(i)}", rate) if isinstance(rate, Real)
                else cast(self.xp, self._same_backend(rate), self.dtypes[i])
                for i, rate in enumerate(self.like("lr", lr))
            ]  # fmt: skip
        for i, rate in enumerate(column):
            if type(rate) is not float and len(rate.shape) and not agree(rate, self.columns[0][i]):
                raise ValueError(
                    f"{self.name}: needed a number, a 0-d array or shape {shown(self.shapes[i])} "
                    f"as lr{self.at(i)}, got shape {shown(rate.shape)}"
                )
        return column

    def corrections(self, step: Any, *betas: float) -> list[list[Any]]:
        """The columns of 1 / (1 − βᵗ), one for each β: multiplying an array is much cheaper than
        dividing it.
        """
        if isinstance(step, Integral):
            if step < 1:
                raise ValueError(f"{self.name}: needed step >= 1, got {step}")
            return [self.constant(1 / (1 - beta ** int(step))) for beta in betas]
        if isinstance(step, Real) or find_backend(step) is None or len(step.shape):
            shape = getattr(step, "shape", None)
            got = type(step).__name__ if shape is None else f"shape {shown(shape)}"
            raise TypeError(f"{self.name}: needed an int or a 0-d array as step, got {got}")
        self._same_backend(step)

        def correction(beta: float, dtype: Any) -> Any:
            # 1 / (1 − βᵗ) = (1 − coth(½ t log β)) / 2: 1 − 0.999 in float32 loses three of seven
            # digits. Not with expm1: a compiler would compute that slow function for every element
            # of every array.
            xp = self.xp
            t = cast(xp, step, xp.float64 if dtype == xp.float64 else xp.float32)
            half = math.log(beta) / 2 if beta else -math.inf
            return cast(xp, 0.5 - 0.5 / xp.tanh(t * half), dtype)

        return [self.each(partial(correction, beta)) for beta in betas]

    # The checks.

    def like(self, key: str, nest: Any) -> list[Any]:
        """The leaves of a nest with the same structure as the first."""
        try:
            return self.form.flatten_up_to(nest)  # no sorting: a fifth of flatten's time
        except ValueError:
            self._refuse_form(key, nest)

    def refuse(self, needed: str, kind: Any) -> NoReturn:
        """Raise, naming the first leaf of dtype `kind`."""
        i = self.dtypes.index(kind)
        raise TypeError(
            f"{self.name}: needed {needed} arrays, got {kind} in {self.first}{self.at(i)}"
        )

    def at(self, i: int) -> str:
        """Where leaf `i` is, to be appended to the name of a nest."""
        path = tree.paths(self.nests[self.first])[i]
        return f" at {path}" if path else ""

    def _backend(self) -> Any:
        """The one backend of all leaves; without leaves, the default backend."""
        types = {type(x) for column in self.columns for x in column}
        try:
            found = [BACKENDS[kind] for kind in types]
        except TypeError:  # a leaf is not an array; named below
            found = [None]
        if None in found:
            self._refuse_leaf()
        if any(xp is not found[0] for xp in found):
            self._mixed(*(x for column in self.columns for x in column))
        xp: Any = found[0] if found else home().backend
        if not all(hasattr(kind, "__mul__") for kind in types):  # a sparse gradient, made dense
            self.columns = [[xp.asarray(x) for x in column] for column in self.columns]
        return xp

    def _devices(self) -> set[Any]:
        """The devices of the leaves of the first nest. The set is empty while a compiler traces:
        then numbers stay Python numbers, which the compiler keeps as constants.
        """
        leaves = self.columns[0]
        return set() if self.xp.is_tracing(leaves) else set(map(self.xp.device_of, leaves))

    def _refuse_form(self, key: str, nest: Any) -> NoReturn:
        first = self.first
        wanted, came = tree.paths(self.nests[first]), tree.paths(nest)
        missing = [path for path in wanted if path not in came]
        extra = [path for path in came if path not in wanted]
        if "" in (*wanted, *came) or not missing + extra:
            form = tree.flatten(nest)[1]
            raise ValueError(f"{self.name}: needed {key} like {first}, {self.form}, got {form}")
        has_more = f"has an entry {extra[0]}, which {first} does not have" if extra else ""
        if not missing:
            raise ValueError(f"{self.name}: {key} {has_more}")
        also = f", and {has_more}" if extra else ""
        raise ValueError(f"{self.name}: {key} has no entry {missing[0]}{also}")

    def _refuse_leaf(self) -> NoReturn:
        for key, column in zip(self.nests, self.columns):
            if tree.paths(self.nests[key]) != tree.paths(self.nests[self.first]):
                self._refuse_form(key, self.nests[key])  # a nest or None where an array should be
            for i, x in enumerate(column):
                if find_backend(x) is None:
                    raise TypeError(
                        f"{self.name}: needed arrays, got {type(x).__name__} in {key}{self.at(i)}"
                    )
        raise AssertionError("a leaf is not an array, but all of them are arrays")

    def _same_backend(self, x: Any) -> Any:
        """`x`, checked to be an array of this call's backend."""
        if find_backend(x) is None:
            raise TypeError(f"{self.name}: needed numbers or arrays as lr, got {type(x).__name__}")
        if self.columns[0] and BACKENDS[type(x)] is not self.xp:
            self._mixed(self.columns[0][0], x)
        return x

    def _mixed(self, *arrays: Any) -> None:
        try:
            backend_of(*arrays)
        except TypeError as error:
            raise TypeError(f"{self.name}: {error}") from None

    def _check_shapes(self, key: str, column: list[Any]) -> None:
        for i, (x, y) in enumerate(zip(self.columns[0], column)):
            if not agree(x, y):
                raise ValueError(
                    f"{self.name}: needed shape {shown(x.shape)} like {self.first} in "
                    f"{key}{self.at(i)}, got shape {shown(y.shape)}"
                )

    def _refuse_dtypes(self, key: str, column: list[Any]) -> NoReturn:
        i = [x.dtype == y.dtype for x, y in zip(self.columns[0], column)].index(False)
        raise TypeError(
            f"{self.name}: needed {dtype_of(self.columns[0][i])} like {self.first} in "
            f"{key}{self.at(i)}, got {dtype_of(column[i])}"
        )


def number(name: str, what: str, x: Any, below: float = math.inf) -> float:
    """A number >= 0 as a Python float."""
    if not isinstance(x, Real):
        raise TypeError(f"{name}: needed a number as {what}, got {type(x).__name__}")
    value = float(x)
    if not value >= 0 or (value >= below and below < math.inf):
        limit = "" if below == math.inf else f" and below {below}"
        raise ValueError(f"{name}: needed {what} to be 0 or more{limit}, got {value}")
    return value


def cast(xp: Any, x: Any, dtype: Any) -> Any:
    """An array cast to a dtype."""
    if x.dtype == dtype:
        return x
    return xp.astype(xp.reshape(x, x.shape), dtype)  # reshape: astype takes no scalars


def agree(x: Any, y: Any) -> bool:
    """Whether two arrays have the same shape, as far as their sizes are known."""
    try:
        one, two = tuple(x.shape), tuple(y.shape)
    except ValueError:  # not even the number of axes is known
        return True
    return len(one) == len(two) and all(n == m for n, m in zip(one, two) if None not in (n, m))


def shown(shape: Any) -> str:
    try:
        return str(tuple(shape))
    except ValueError:
        return "unknown"
