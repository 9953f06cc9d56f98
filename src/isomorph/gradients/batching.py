"""Apply a function of one example to all examples at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

from ..compile.kept_programs import keeper, kept
from ..core import tree
from ..core.dispatch import NUMBERS, backend_of, check_callable, find_backend

if TYPE_CHECKING:
    from ..types.array_types import P, R


def vmap(func: Callable[P, R], in_axes: Any = 0, out_axes: Any = 0) -> Callable[P, R]:
    """`func`, mapped over an extra axis of its array arguments; keyword arguments are not mapped.

    `in_axes` says which axis of an argument is mapped: one value for all arguments, or a tuple with
    one value per argument. A value is an int, None if the argument is not mapped, or a nest of
    these like the argument. `out_axes` says where the axis goes in the outputs: an int, or a nest
    of ints like the output. Eager calls on JAX and TensorFlow keep their programs; see `scan`.

    `func` runs once, on values that look like one example and hold all. On NumPy, a function that
    needs the values of one example (`if x > 0`, `float(x)`, `a[i] = x`) is started again and runs
    row by row, and the log says why. What it draws from `np.random` is otherwise the same for all
    examples: use `iso.random` with a key for each.

    >>> square = lambda w, x: np.sum((w * x) ** 2)
    >>> iso.vmap(iso.grad(square), in_axes=(None, 0))(np.array([1.0, 2.0]), np.eye(2))
    array([[2., 0.],
           [0., 4.]])
    """
    check_callable("vmap", func)

    @wraps(func)
    def mapped(*args: Any, **kw: Any) -> Any:
        call, xp = (func, in_axes, out_axes, args, kw), keeper(args)
        return _mapped(*call) if xp is None else kept(xp, _mapped, call)

    return mapped


def _mapped(func: Callable, in_axes: Any, out_axes: Any, args: tuple, kw: dict[str, Any]) -> Any:
    leaves, form = tree.flatten(args)
    axes = _axes(in_axes, args)
    arrays = [x for x in leaves if find_backend(x) is not None]
    where = [i for i, axis in enumerate(axes) if axis is not None]
    if not where:
        raise ValueError(f"vmap: needed an argument to map over, got in_axes={in_axes!r}")
    _check_sizes(leaves, axes, tree.paths(args))
    backend = backend_of(*arrays)
    rows = [backend.moveaxis(leaves[i], axes[i], 0) for i in where]
    after: dict[str, Any] = {}

    def flat(*parts: Any) -> tuple:
        full = list(leaves)
        for i, x in zip(where, parts):
            full[i] = x
        out = func(*tree.unflatten(form, full), **kw)
        outs, after["form"] = tree.flatten(out)
        after["axes"] = _spread("vmap", "out_axes", out_axes, out, "the output")
        return tuple(_output(backend, y, path) for y, path in zip(outs, tree.paths(out)))

    try:
        outs = backend.vmap(flat, *rows)
    except Exception as error:
        backend.explain(error)
        raise
    outs = [backend.moveaxis(y, 0, _placed(y, axis)) for y, axis in zip(outs, after["axes"])]
    return tree.unflatten(after["form"], outs)


def _axes(in_axes: Any, args: tuple) -> list[int | None]:
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise ValueError(
            f"vmap: in_axes needed one entry per argument, {len(args)}, got {len(in_axes)}"
        )
    return _spread("vmap", "in_axes", in_axes, args, "the arguments")


def _spread(name: str, word: str, axes: Any, nest: Any, what: str) -> list[Any]:
    """The axis of every leaf of `nest`. `axes` is a nest that may be less deep: an axis then counts
    for all leaves below it.
    """
    if axes is None or type(axes) is int:
        return [axes] * len(tree.flatten(nest)[0])
    pairs = None
    if isinstance(axes, dict) and isinstance(nest, dict) and set(axes) == set(nest):
        pairs = [(axes[k], nest[k]) for k in tree.keys(nest)]
    elif isinstance(axes, (list, tuple)) and isinstance(nest, (list, tuple)):
        pairs = list(zip(axes, nest)) if len(axes) == len(nest) else None
    if pairs is None:
        raise ValueError(f"{name}: {word} needed ints and None in a nest like {what}, got {axes!r}")
    return [axis for a, part in pairs for axis in _spread(name, word, a, part, what)]


def _check_sizes(leaves: Sequence[Any], axes: Sequence[int | None], paths: Sequence[str]) -> None:
    sizes: dict[int, str] = {}
    for x, axis, path in zip(leaves, axes, paths):
        if axis is None:
            continue
        if find_backend(x) is None:
            raise TypeError(
                f"vmap: needed an array to map over at argument {path}, got a {type(x).__name__}; "
                "give it the axis None in in_axes"
            )
        if not -len(x.shape) <= axis < len(x.shape):
            raise ValueError(
                f"vmap: in_axes has axis {axis} for argument {path}, which has shape "
                f"{tuple(x.shape)}"
            )
        sizes.setdefault(x.shape[axis], path)
    if len(sizes) > 1:
        listed = ", ".join(f"{size} at argument {path}" for size, path in sizes.items())
        raise ValueError(f"vmap: needed mapped axes of the same size, got {listed}")


def _output(backend: Any, y: Any, path: str) -> Any:
    if type(y) in NUMBERS:
        return backend.asarray(y)
    if find_backend(y) is not backend:
        at = f" at {path}" if path else ""
        raise TypeError(f"vmap: needed {backend.name} arrays as output, got {type(y).__name__}{at}")
    return y


def _placed(y: Any, axis: Any) -> int:
    n = len(y.shape)
    if type(axis) is not int or not -n <= axis < n:
        raise ValueError(f"vmap: out_axes needed an axis of an output of {n} axes, got {axis!r}")
    return axis
