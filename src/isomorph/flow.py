"""Branches and loops that depend on a value, with JAX's meaning on every backend.

Without a compiler they are Python's own `if`, `while` and `for`, which any tape differentiates; a
backend with a compiler has its own versions for compiled programs. The public functions take
nests; backends get flat tuples of arrays, so that no framework's own pytrees matter.

Called eagerly, a loop on JAX or TensorFlow keeps its program (`kept_programs`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .compile.kept_programs import kept
from .core import tree
from .core.default_backend import home
from .core.dispatch import NUMBERS, backend_of, dtype_of, find_backend

if TYPE_CHECKING:
    from .types.array_types import R, X

LONG = 16  # steps of a loop that is worth a program at its first call


def cond(pred: Any, true_fun: Callable[..., R], false_fun: Callable[..., R], *operands: Any) -> R:
    """`true_fun(*operands)` if `pred` is true, else `false_fun(*operands)`: only one of the two is
    computed, and differentiated.

    `pred` is one boolean: a Python one or an array without axes; a number is true unless it is 0.
    Operands are nests of arrays and numbers. Both functions return the same nest with the same
    shapes and dtypes; where nothing is compiled, only the one that runs is checked. Under `vmap`
    with a `pred` for each example, both are computed and one is selected.

    >>> root = lambda x: iso.cond(x > 0, np.sqrt, lambda x: 0.0 * x, x)
    >>> iso.grad(root)(np.array(4.0)), iso.grad(root)(np.array(0.0))
    (array(0.25), array(0.))
    """
    _functions("cond", true_fun=true_fun, false_fun=false_fun)
    arrays, form, xp = _settled("cond", "operand", operands, pred)
    holds = _truth("cond", "pred", xp, pred)
    if type(holds) is bool and all(type(x) in NUMBERS for x in tree.flatten_whole(operands)[0]):
        return (true_fun if holds else false_fun)(*operands)  # no array, no backend to ask
    found: dict[str, tuple] = {}
    true = Branch("true_fun", true_fun, xp, form, found)
    false = Branch("false_fun", false_fun, xp, form, found)
    if type(holds) is bool:
        ys = (true if holds else false)(*arrays)
    else:
        ys = xp.cond(holds, true, false, arrays)
    return tree.unflatten(next(iter(found.values()))[0], ys)


def switch(index: Any, branches: Sequence[Callable[..., R]], *operands: Any) -> R:
    """`branches[index](*operands)`: only this one is computed, and differentiated. An index below 0
    is taken for 0, one beyond the end for the last.

    `index` is a Python integer or an integer array without axes. Otherwise as `cond`, of which it
    is made: a compiled program chooses between two halves of the branches until one is left.

    >>> iso.switch(2, [np.sin, np.cos, np.sqrt], np.array(4.0))
    np.float64(2.0)
    """
    if not isinstance(branches, (list, tuple)) or not branches:
        raise TypeError(f"switch: needed a list of at least one function, got {branches!r}")
    _functions("switch", **{f"branches[{i}]": func for i, func in enumerate(branches)})
    arrays, form, xp = _settled("switch", "operand", operands, index)
    _check_integer("switch", "index", xp, index)
    last, known = len(branches) - 1, type(index) is int
    if known and all(type(x) in NUMBERS for x in tree.flatten_whole(operands)[0]):
        return branches[min(max(index, 0), last)](*operands)  # no array, no backend to ask
    found: dict[str, tuple] = {}
    one = [
        Branch(f"branches[{i}]", func, xp, form, found, "switch") for i, func in enumerate(branches)
    ]
    if known or last == 0:
        ys = one[min(max(index, 0), last) if known else 0](*arrays)
    else:
        ys = Halves(xp, one)(index, *arrays)
    return tree.unflatten(next(iter(found.values()))[0], ys)


def while_loop(cond_fun: Callable[[X], Any], body_fun: Callable[[X], Any], init: X) -> X:
    """`value = body_fun(value)`, starting from `init`, repeated while `cond_fun(value)` is true;
    the last value.

    `init` is a nest of arrays and numbers; `body_fun` returns a nest of the same structure, shapes
    and dtypes. Gradients flow where nothing is compiled, and through TensorFlow's graphs. JAX and
    compiled torch programs do not know the number of steps and raise when a gradient is needed; use
    `fori_loop` with Python numbers as bounds, or `scan`.

    >>> iso.while_loop(lambda x: x < 100, lambda x: x * 2, np.array(3.0))
    np.float64(192.0)
    """
    _functions("while_loop", cond_fun=cond_fun, body_fun=body_fun)
    arrays, form, xp = _settled("while_loop", "leaf", init)
    nest = (cond_fun, body_fun, tree.unflatten(form, arrays))
    return kept(xp, _while_loop, nest, at_once=xp.compiles_loops())


def _while_loop(cond_fun: Callable, body_fun: Callable, init: Any) -> Any:
    arrays, form, xp = _settled("while_loop", "leaf", init)
    carry = Carry("while_loop", "body_fun", xp, form, arrays)

    def goes_on(*arrays: Any) -> Any:
        return _truth("while_loop", "cond_fun's result", xp, cond_fun(carry.nest(arrays)))

    arrays = xp.while_loop(goes_on, lambda *a: carry.leaves(body_fun(carry.nest(a))), arrays)
    return carry.nest(arrays)


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, X], Any], init: X) -> X:
    """`value = body_fun(i, value)`, starting from `init`, for every `i` from `lower` up to `upper`,
    which is left out; the last value.

    The bounds are Python numbers or integer arrays without axes; `i` is an integer array, or a
    Python number on NumPy. `body_fun` returns a nest with the structure, shapes and dtypes of
    `init`. With Python numbers as bounds it is differentiable everywhere, else like `while_loop`.

    >>> iso.fori_loop(0, 3, lambda i, x: x * 2 + i, np.array(1.0))
    np.float64(12.0)
    """
    _functions("fori_loop", body_fun=body_fun)
    arrays, form, xp = _settled("fori_loop", "leaf", init, lower, upper)
    for word, bound in (("lower", lower), ("upper", upper)):
        _check_integer("fori_loop", word, xp, bound)
    known = type(lower) is type(upper) is int
    at_once = xp.compiles_loops() or (known and upper - lower >= LONG)
    return kept(xp, _fori_loop, (lower, upper, body_fun, tree.unflatten(form, arrays)), at_once)


def _fori_loop(lower: Any, upper: Any, body_fun: Callable, init: Any) -> Any:
    arrays, form, xp = _settled("fori_loop", "leaf", init, lower, upper)
    carry = Carry("fori_loop", "body_fun", xp, form, arrays)
    step = lambda i, *a: carry.leaves(body_fun(i, carry.nest(a)))
    return carry.nest(xp.fori_loop(lower, upper, step, arrays))


def scan(
    step: Callable[[X, Any], tuple[Any, R]],
    carry: X,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
) -> tuple[X, R]:
    """`carry, y = step(carry, x)` for each row x of `xs`, in order or in `reverse`; the last carry,
    and the y of all rows, stacked in the order of the rows.

    `xs` is a nest of arrays with a leading axis of one size, or None with `length` if a step needs
    no x. The carry keeps its structure, shapes and dtypes. A compiled program has one body, not one
    per step. With no rows at all, `step` runs once on ones, outside the program, to find y's shape.

    Eager loops on JAX and TensorFlow are compiled and kept for later calls with the same code, also
    `while_loop`, `fori_loop`, `vmap` and Jacobians. Arrays that `step` captures are passed to the
    program; numbers and globals that it uses are compared at each call, so a changed one counts. A
    step that prints, writes to an outer variable, list or object, or uses objects of a class runs
    as it is: TensorFlow runs it at each row, and JAX traces it at each call.

    >>> iso.scan(lambda total, x: (total + x, total), np.array(0.0), np.array([1.0, 2.0, 3.0]))
    (np.float64(6.0), array([0., 1., 3.]))
    """
    _functions("scan", step=step)
    n_carry = len(tree.flatten_whole(carry)[0])
    arrays, form, xp = _settled("scan", "leaf", {"carry": carry, "xs": xs})
    n = _length(arrays[n_carry:], tree.paths(xs, whole=True), length)
    nest = (step, tree.unflatten(form, arrays), n, reverse)
    return kept(xp, _scan, nest, xp.compiles_loops() or n is None or n >= LONG)


def _scan(step: Callable, both: dict[str, Any], n: int, reverse: bool) -> tuple[Any, Any]:
    arrays, _, xp = _settled("scan", "leaf", both)
    carry, xs = both["carry"], both["xs"]
    n_carry = len(tree.flatten_whole(carry)[0])
    state, rows = arrays[:n_carry], arrays[n_carry:]
    x_form, after = tree.flatten_whole(xs)[1], {}
    kept = Carry("scan", "step", xp, tree.flatten_whole(carry)[1], state)

    def flat(state: Sequence[Any], row: Sequence[Any]) -> tuple[tuple, tuple]:
        both = step(kept.nest(state), tree.unflatten(x_form, row))
        if not isinstance(both, tuple) or len(both) != 2:
            raise TypeError(f"scan: needed step to return (carry, y), got {type(both).__name__}")
        ys, after["form"] = _outputs("scan", xp, both[1], state)
        return kept.leaves(both[0]), ys

    state, ys = xp.scan(flat, state, rows, n, reverse)
    return kept.nest(state), tree.unflatten(after["form"], ys)


# ---- the same in plain Python, for backends and cases without an operation of their own ----------


def chosen(xp: Any, pred: Any, true: Callable, false: Callable, arrays: tuple) -> tuple:
    """`cond` as a Python `if`."""
    return true(*arrays) if bool(pred) else false(*arrays)


def repeated(xp: Any, goes_on: Callable, body: Callable, arrays: tuple) -> tuple:
    """`while_loop` as a Python loop."""
    while bool(goes_on(*arrays)):
        arrays = body(*arrays)
    return arrays


def counted(xp: Any, lower: Any, upper: Any, body: Callable, arrays: tuple) -> tuple:
    """`fori_loop` as a Python loop."""
    for i in range(int(lower), int(upper)):
        arrays = body(xp.counter(i, arrays), *arrays)
    return arrays


def looped(
    xp: Any, step: Callable, carry: tuple, xs: tuple, n: int, reverse: bool = False
) -> tuple[tuple, tuple]:
    """`scan` as a Python loop. Carries, rows and outputs are flat tuples of arrays:
    `step(carry, x) -> (carry, ys)`.
    """
    if n == 0:
        row = tuple(xp.ones(x.shape[1:], dtype=x.dtype, device=xp.device_of(x)) for x in xs)
        ys = step(carry, row)[1]
        return carry, tuple(
            xp.zeros((0, *y.shape), dtype=y.dtype, device=xp.device_of(y)) for y in ys
        )
    rows = list(zip(*(xp.unstack(x) for x in xs))) if xs else [()] * n
    found = []
    for row in reversed(rows) if reverse else rows:
        carry, ys = step(carry, row)
        found.append(ys)
    if reverse:
        found.reverse()
    return carry, tuple(xp.stack(ys) for ys in zip(*found))


# ---- checks --------------------------------------------------------------------------------------


class Branch:
    """One function of a `cond`, on flat arrays; it records in `found` what it returned."""

    def __init__(
        self, word: str, func: Callable, xp: Any, form: Any, found: dict[str, tuple],
        name: str = "cond",
    ):  # fmt: skip
        self.word, self.func, self.xp, self.form, self.found = word, func, xp, form, found
        self.name = name

    def __call__(self, *arrays: Any) -> tuple:
        ys, form = self._run(arrays)
        self.found[self.word] = form, [(tuple(y.shape), dtype_of(y)) for y in ys]
        first = next(iter(self.found))
        if first != self.word:
            _check_branches(self.name, self.found, first, self.word)
        return ys

    def plain(self, *arrays: Any) -> tuple:
        """The same without recording, for a compiler that allows no side effects."""
        return self._run(arrays)[0]

    def _run(self, arrays: Sequence[Any]) -> tuple[tuple, Any]:
        return _outputs(self.name, self.xp, self.func(*tree.unflatten(self.form, arrays)), arrays)


class Halves:
    """Some functions of a `switch`, on an index and flat arrays: a `cond` over two halves."""

    def __init__(self, xp: Any, branches: Sequence[Any], first: int = 0):
        self.xp, self.branches, self.first = xp, branches, first

    def __call__(self, index: Any, *arrays: Any) -> tuple:
        return self._run(lambda branch: branch, index, arrays)

    def plain(self, index: Any, *arrays: Any) -> tuple:
        """The same without recording; see `Branch`."""
        return self._run(lambda branch: branch.plain, index, arrays)

    def _run(self, chosen: Callable, index: Any, arrays: tuple) -> tuple:
        if len(self.branches) == 1:
            return chosen(self.branches[0])(*arrays)
        half = len(self.branches) // 2
        low = Halves(self.xp, self.branches[:half], self.first)
        high = Halves(self.xp, self.branches[half:], self.first + half)
        return self.xp.cond(index < self.first + half, low, high, (index, *arrays))


class Carry:
    """The values that a loop passes from step to step; structure, shapes and dtypes are fixed."""

    def __init__(self, name: str, who: str, xp: Any, form: Any, arrays: Sequence[Any]):
        self.name, self.who, self.xp, self.form = name, who, xp, form
        self.kinds = [(tuple(x.shape), x.dtype, dtype_of(x)) for x in arrays]

    def nest(self, arrays: Sequence[Any]) -> Any:
        return tree.unflatten(self.form, arrays)

    def leaves(self, nest: Any) -> tuple:
        """The arrays of a nest that a step returned, checked."""
        leaves, form = tree.flatten_whole(nest)
        if form != self.form:
            self._refuse_form(nest, form)
        return tuple(
            x
            if getattr(x, "dtype", None) == dtype and tuple(x.shape) == shape
            else self._taken(nest, i, x)
            for i, (x, (shape, dtype, _)) in enumerate(zip(leaves, self.kinds))
        )

    def _taken(self, nest: Any, i: int, x: Any) -> Any:
        """A leaf that is not simply like the one before: a number, or an array of unknown size."""
        shape, dtype, word = self.kinds[i]
        if type(x) in NUMBERS and not shape and _fits(self.xp, x, dtype):
            return self.xp.asarray(x, dtype=dtype)
        path = tree.paths(nest, whole=True)[i]
        at = f" at {path}" if path else ""
        if find_backend(x) is None:
            came = f"a {type(x).__name__}"
        else:
            if x.dtype == dtype and _alike(tuple(x.shape), shape):
                return x
            came = f"{dtype_of(x)} of shape {tuple(x.shape)}"
        raise TypeError(
            f"{self.name}: needed {self.who} to return {word} of shape {shape}{at}, like its "
            f"input, got {came}; cast or reshape it, or start with such an array"
        )

    def _refuse_form(self, nest: Any, form: Any) -> None:
        like = self.nest(range(len(self.kinds)))
        wanted, given = tree.paths(like, whole=True), tree.paths(nest, whole=True)
        lost = [path for path in wanted if path not in given]
        new = [path for path in given if path not in wanted]
        if lost or new:
            changes = [f"without {path or 'the array'}" for path in lost]
            changes += [f"with the extra {path or 'array'}" for path in new]
            came = "one " + ", ".join(changes)
        else:
            came = str(form)
        raise TypeError(
            f"{self.name}: needed {self.who} to return a nest like its input, "
            f"{self.form}, got {came}"
        )


def _functions(name: str, **given: Any) -> None:
    for word, func in given.items():
        if not callable(func):
            raise TypeError(f"{name}: needed {word} as a function, got {type(func).__name__}")


def _settled(name: str, what: str, nest: Any, *beside: Any) -> tuple[tuple, Any, Any]:
    """The leaves of a nest as arrays, its structure, and the one backend of these arrays and of
    those in `beside`.
    """
    leaves, form = tree.flatten_whole(nest)
    for i, x in enumerate(leaves):
        if type(x) not in NUMBERS and find_backend(x) is None:
            path = tree.paths(nest, whole=True)[i]
            at = f" at {what} {path}" if path else ""
            raise TypeError(f"{name}: needed arrays and numbers, got a {type(x).__name__}{at}")
    arrays = [x for x in (*leaves, *beside) if find_backend(x) is not None]
    xp = backend_of(*arrays) if arrays else home().backend
    return tuple(_array(xp, x, arrays) for x in leaves), form, xp


def _outputs(name: str, xp: Any, nest: Any, beside: Sequence[Any]) -> tuple[tuple, Any]:
    """The leaves of a function's output, as arrays, and its structure."""
    leaves, form = tree.flatten_whole(nest)
    for i, y in enumerate(leaves):
        if type(y) not in NUMBERS and find_backend(y) is not xp:
            path = tree.paths(nest, whole=True)[i]
            at = f" at {path}" if path else ""
            raise TypeError(
                f"{name}: needed {xp.name} arrays and numbers as output, got a "
                f"{type(y).__name__}{at}"
            )
    return tuple(_array(xp, y, beside) for y in leaves), form


def _array(xp: Any, x: Any, beside: Sequence[Any]) -> Any:
    return xp.weak(x, beside) if type(x) in NUMBERS else xp.native(x)


def _truth(name: str, what: str, xp: Any, x: Any) -> Any:
    """One boolean: a Python one, or an array of this backend without axes."""
    if type(x) in (bool, int, float):
        return bool(x)
    if find_backend(x) is None:
        raise TypeError(f"{name}: needed {what} as one boolean, got a {type(x).__name__}")
    if find_backend(x) is not xp:
        backend_of(x, xp.zeros(()))  # raises, and names both
    if len(x.shape):
        raise TypeError(
            f"{name}: needed {what} as one boolean, got {dtype_of(x)} of shape {tuple(x.shape)}; "
            "reduce it with xp.all or xp.any, or use xp.where for each element"
        )
    return x if xp.isdtype(x.dtype, "bool") else x != 0


def _check_branches(name: str, found: dict[str, tuple], first: str, second: str) -> None:
    (form, kinds), (other, others) = found[first], found[second]
    said = "both functions" if name == "cond" else "all functions"
    if form != other:
        raise TypeError(
            f"{name}: needed {said} to return the same structure, got {form} from {first} and "
            f"{other} from {second}"
        )
    paths = tree.paths(tree.unflatten(form, range(len(kinds))), whole=True)
    for path, one, two in zip(paths, kinds, others):
        if one[1] != two[1] or not _alike(one[0], two[0]):
            at = f" at {path}" if path else ""
            raise TypeError(
                f"{name}: needed {said} to return the same shape and dtype{at}, got {one[1]} "
                f"of shape {one[0]} from {first} and {two[1]} of shape {two[0]} from {second}"
            )


def _check_integer(name: str, word: str, xp: Any, number: Any) -> None:
    if type(number) is int:
        return
    if find_backend(number) is not xp or not xp.isdtype(number.dtype, "integral"):
        came = (
            dtype_of(number) if find_backend(number) is not None else f"a {type(number).__name__}"
        )
        raise TypeError(f"{name}: needed {word} as an integer, got {came}")
    if len(number.shape):
        raise TypeError(f"{name}: needed {word} without axes, got shape {tuple(number.shape)}")


def _length(rows: Sequence[Any], paths: Sequence[str], length: int | None) -> Any:
    """The number of steps; None where a TensorFlow graph does not know it."""
    if length is not None and (type(length) is not int or length < 0):
        raise TypeError(f"scan: needed length as a number of steps, got {length!r}")
    sizes: dict[Any, str] = {} if length is None else {length: "length"}
    for x, path in zip(rows, paths):
        at = f"xs at {path}" if path else "xs"
        if not len(x.shape):
            raise TypeError(f"scan: needed arrays with a leading axis, got shape () for {at}")
        if x.shape[0] is not None:
            sizes.setdefault(x.shape[0], at)
    if len(sizes) > 1:
        listed = ", ".join(f"{size} for {at}" for size, at in sizes.items())
        raise ValueError(f"scan: needed the same number of steps everywhere, got {listed}")
    if not sizes and not rows:
        raise TypeError("scan: needed xs, or length if a step needs no x, got neither")
    return next(iter(sizes), None)


def _alike(one: tuple, two: tuple) -> bool:
    """Whether two shapes may be equal; None is a size that a graph does not know."""
    return len(one) == len(two) and all(a == b or None in (a, b) for a, b in zip(one, two))


def _fits(xp: Any, number: Any, dtype: Any) -> bool:
    """Whether a Python number may be used as an array of a dtype."""
    if type(number) is bool:
        return xp.isdtype(dtype, "bool")
    if type(number) is int:
        return xp.isdtype(dtype, "integral") or xp.is_float(dtype)
    return xp.is_float(dtype) and (type(number) is float or xp.is_complex(dtype))
