"""One call of a function to be differentiated: what every transform does before and after.

The chosen arguments are flattened, their arrays say which backend speaks, the function runs once,
and nests of the same form are rebuilt. All checks of inputs and outputs are here, in one wording
for all backends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import tree
from ..dispatch import backend_of, dtype_of, find_backend, prepare
from ..home import home

if TYPE_CHECKING:
    from ..backends.base import Backend, Pullback


class Pulled(NamedTuple):
    """A function that was run: the leaves of its output, and the way back to the leaves of its
    input.
    """

    backend: Backend
    outs: tuple
    out_form: Any
    pullback: Pullback
    ins: tuple
    in_form: Any
    aux: Any


def pulled(
    name: str,
    func: Callable[..., Any],
    places: tuple[int, ...],
    args: tuple,
    kw: dict[str, Any],
    *,
    one_scalar: bool = False,
    has_aux: bool = False,
    once: bool = False,
) -> Pulled:
    """Run `func(*args, **kw)`, to be differentiated with respect to the arguments at `places`."""
    where = chosen_places(name, places, args)
    leaves, form = tree.flatten(tuple(args[i] for i in where))
    backend, leaves = settle(name, leaves, lambda: arguments(args, where), (args, kw))
    after: dict[str, Any] = {}

    def flat(*leaves: Any) -> tuple[tuple, tuple]:
        full = list(args)
        for i, part in zip(where, tree.unflatten(form, leaves)):
            full[i] = part
        out = func(*full, **kw)
        arrays = ()
        if has_aux:
            out, aux = split_aux(name, out)
            arrays, after["aux"] = arrays_of(backend, aux)
        if one_scalar:
            return (scalar(name, backend, out),), arrays
        outs, after["form"] = tree.flatten(out)
        if not outs:
            raise TypeError(f"{name}: needed an array as output, got {type(out).__name__}")
        paths = tree.paths(out)
        return tuple(floating(name, backend, y, path) for y, path in zip(outs, paths)), arrays

    outs, pullback, arrays = backend.vjp(flat, leaves, once)
    aux = after["aux"](arrays) if has_aux else None
    return Pulled(backend, outs, after.get("form"), pullback, leaves, form, aux)


def check_argnums(name: str, argnums: int | Sequence[int]) -> tuple[int, ...]:
    """The chosen positions as a tuple."""
    places = (argnums,) if isinstance(argnums, int) else argnums
    if not isinstance(places, Sequence) or not places or any(type(i) is not int for i in places):
        raise TypeError(f"{name}: argnums needed an int or a sequence of ints, got {argnums!r}")
    return tuple(places)


def check_callable(name: str, func: Any) -> None:
    if not callable(func):
        raise TypeError(f"{name}: needed a function to differentiate, got {type(func).__name__}")
    prepare()


def chosen_places(name: str, places: tuple[int, ...], args: tuple) -> tuple[int, ...]:
    """The chosen positions, counted from the front."""
    n = len(args)
    for i in places:
        if not -n <= i < n:
            raise ValueError(
                f"{name}: argnums chose argument {i}, but {n} positional arguments came"
            )
    where = tuple(i % n for i in places)
    if len(set(where)) != len(where):
        raise ValueError(f"{name}: argnums needed each argument once, got {places}")
    return where


def settle(
    name: str, leaves: Sequence[Any], paths: Callable[[], list[str]], beside: Any
) -> tuple[Backend, tuple]:
    """The one backend of a call, and the leaves to differentiate as floating arrays of it.

    `paths` gives the key chains of the leaves, should one have to be named.
    """
    arrays = [x for x in tree.flatten(beside)[0] if find_backend(x) is not None]
    arrays += [x for x in leaves if find_backend(x) is not None]
    backend = backend_of(*arrays) if arrays else home().backend
    if not leaves:
        raise TypeError(f"{name}: needed an array to differentiate, got an empty nest")
    settled = []
    for i, x in enumerate(leaves):
        if type(x) is float:
            x = backend.weak(x, arrays)
        if find_backend(x) is None or not backend.is_float(x.dtype):
            what = (
                f"dtype {dtype_of(x)}" if find_backend(x) is not None else f"a {type(x).__name__}"
            )
            raise TypeError(
                f"{name}: needed floating-point arrays to differentiate, got {what} at "
                f"{paths()[i]}; convert it to floating point, or leave it out"
            )
        settled.append(x)
    return backend, tuple(settled)


def like(backend: Backend, name: str, what: str, y: Any, g: Any) -> Any:
    """A gradient or tangent given for the array `y`: one like it, or a number where it is 0-d."""
    if type(g) in (int, float, complex):
        g = backend.asarray(g, dtype=y.dtype, device=backend.device_of(y))
    if backend_of(y, g) and g.dtype == y.dtype and tuple(g.shape) == tuple(y.shape):
        return g
    raise ValueError(
        f"{name}: needed an array like the {what}, {dtype_of(y)} of shape {tuple(y.shape)}, "
        f"got {dtype_of(g)} of shape {tuple(g.shape)}"
    )


def arguments(args: tuple, where: tuple[int, ...]) -> list[str]:
    """The leaves of the chosen arguments, in words."""
    chains = [(i, chain) for i in where for chain in tree.paths(args[i])]
    return [f"argument {i}" + (f", leaf {chain}" if chain else "") for i, chain in chains]


def split_aux(name: str, result: Any) -> tuple[Any, Any]:
    if not isinstance(result, tuple) or len(result) != 2:
        raise TypeError(
            f"{name}: has_aux=True needed func to return (output, aux), got {type(result).__name__}"
        )
    return result


def scalar(name: str, backend: Backend, value: Any) -> Any:
    """The value of a function to differentiate: one real floating number."""
    value = floating(name, backend, value, "")
    if tuple(value.shape) != ():
        raise TypeError(
            f"{name}: needed a function with a scalar output, got shape {tuple(value.shape)}; "
            "reduce it, for example with xp.sum, or use iso.vjp for arrays"
        )
    if backend.is_complex(value.dtype):
        raise TypeError(
            f"{name}: needed a function with a real output, got {dtype_of(value)}; "
            "take xp.real, xp.imag or xp.abs"
        )
    return value


def floating(name: str, backend: Backend, y: Any, path: str) -> Any:
    """An output to differentiate: a floating-point array of the call's backend."""
    at = f" at output {path}" if path else ""
    own = find_backend(y)
    if own is None:
        left = "; a Python number carries no gradient" if type(y) in (int, float, complex) else ""
        raise TypeError(f"{name}: needed an array as output, got {type(y).__name__}{at}{left}")
    if own is not backend:
        raise TypeError(
            f"{name}: {backend.name} arrays went in, an array of {own.name} came out{at}"
        )
    if not backend.is_float(y.dtype):
        raise TypeError(f"{name}: needed a floating-point output, got {dtype_of(y)}{at}")
    return y


def arrays_of(backend: Backend, nest: Any) -> tuple[tuple, Callable[[Sequence[Any]], Any]]:
    """The arrays of an aux nest, and the function that puts (untraced) arrays back among its other
    leaves.
    """
    leaves, form = tree.flatten(nest)
    where = [i for i, x in enumerate(leaves) if find_backend(x) is backend]

    def rebuild(arrays: Sequence[Any]) -> Any:
        full = list(leaves)
        for i, x in zip(where, arrays):
            full[i] = x
        return tree.unflatten(form, full)

    return tuple(leaves[i] for i in where), rebuild
