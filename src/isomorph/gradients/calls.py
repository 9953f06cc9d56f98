"""One call of a function that is differentiated: the steps before and after it, shared by all
transforms.

The chosen arguments are flattened, their arrays determine the backend, the function runs once, and
nests of the same structure are rebuilt. All checks of inputs and outputs are here, so that the
messages are the same for all backends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from ..core import tree
from ..core.default_backend import home
from ..core.dispatch import BACKENDS, backend_of, dtype_of, find_backend

if TYPE_CHECKING:
    from ..core.contract import Contract, Pullback


class Pulled(NamedTuple):
    """The result of running a function to differentiate it: the leaves of its output, and the
    pullback to the leaves of its input. `in_form` is None in the usual case, in which one argument
    was chosen and is an array.
    """

    backend: Contract
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
    alone: bool = False,
) -> Pulled:
    """Run `func(*args, **kw)` and return what is needed to differentiate it with respect to the
    arguments at `places`. `one_scalar` needs a scalar output, `once` promises that the pullback is
    called at most once, and `alone` promises that nothing else is differentiated, neither captured
    arrays nor the result.
    """
    where = chosen_places(name, places, args)
    chosen = tuple([args[i] for i in where])
    if len(chosen) == 1 and BACKENDS.get(type(chosen[0])) is not None:
        leaves, form = chosen, None
    else:
        leaves, form = tree.flatten(chosen)
    beside = (args, kw) if kw or len(args) > len(where) else None
    backend, leaves = settle(name, leaves, lambda: arguments(args, where), beside)
    after: dict[str, Any] = {}

    def flat(*leaves: Any) -> tuple[tuple, tuple]:
        full = list(args)
        for i, part in zip(where, rebuilt(form, leaves)):
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
        for i, y in enumerate(outs):
            if not is_floating(backend, y):
                refuse_output(name, backend, y, tree.paths(out)[i])
        return tuple(outs), arrays

    verb = backend.vjp_alone if alone else backend.vjp
    try:
        outs, pullback, arrays = verb(flat, leaves, once, has_aux)
    except Exception as error:
        backend.explain(error)
        raise
    aux = after["aux"](arrays) if has_aux else None
    return Pulled(backend, outs, after.get("form"), pullback, leaves, form, aux)


def rebuilt(form: Any, leaves: Sequence[Any]) -> tuple:
    """The chosen arguments, one by one, rebuilt from leaves."""
    return tuple(leaves) if form is None else tree.unflatten(form, leaves)


def check_argnums(name: str, argnums: int | Sequence[int]) -> tuple[int, ...]:
    """The chosen positions as a tuple."""
    places = (argnums,) if isinstance(argnums, int) else argnums
    if not isinstance(places, Sequence) or not places or any(type(i) is not int for i in places):
        raise TypeError(f"{name}: argnums needed an int or a sequence of ints, got {argnums!r}")
    return tuple(places)


def chosen_places(name: str, places: tuple[int, ...], args: tuple) -> tuple[int, ...]:
    """The chosen positions, with negative ones counted from the end."""
    n = len(args)
    if len(places) == 1 and 0 <= places[0] < n:
        return places
    for i in places:
        if not -n <= i < n:
            raise ValueError(
                f"{name}: argnums chose argument {i}, but the call has {n} positional arguments"
            )
    where = tuple(i % n for i in places)
    if len(set(where)) != len(where):
        raise ValueError(f"{name}: argnums needed each argument once, got {places}")
    return where


def settle(
    name: str, leaves: Sequence[Any], paths: Callable[[], list[str]], beside: Any = None
) -> tuple[Contract, tuple]:
    """The one backend of a call, and the leaves to differentiate, as floating-point arrays of that
    backend.

    `paths` returns the names of the leaves, for error messages. `beside` is a nest of everything
    that the function is called with, if that is more than the leaves.
    """
    around = leaves if beside is None else tree.flatten(beside)[0]
    found = {}  # a dict and not a set: compilers that read code do not support sets of objects
    for kind in {type(x) for x in around}:
        backend = BACKENDS.find(kind)
        if backend is not None:
            found[backend.name] = backend
    if len(found) == 1 and leaves:  # nearly every call: no further checks
        (backend,) = found.values()
        usual = (backend.float32, backend.float64)
        if all([BACKENDS.get(type(x)) is backend and x.dtype in usual for x in leaves]):  # noqa: C419
            return backend, tuple(leaves)
    arrays = [x for x in around if find_backend(x) is not None]
    backend = backend_of(*arrays) if arrays else home().backend
    if not leaves:
        raise TypeError(f"{name}: needed an array to differentiate, got an empty nest")
    leaves = [backend.weak(x, arrays) if type(x) in (float, complex) else x for x in leaves]
    for i, x in enumerate(leaves):
        if not is_floating(backend, x):
            what = (
                f"dtype {dtype_of(x)}" if find_backend(x) is not None else f"a {type(x).__name__}"
            )
            raise TypeError(
                f"{name}: needed floating-point arrays to differentiate, got {what} at "
                f"{paths()[i]}; convert it to floating point, or leave it out"
            )
    return backend, tuple(leaves)


def like(backend: Contract, name: str, what: str, y: Any, g: Any) -> Any:
    """`g`, a gradient or tangent for the array `y`, checked to have its shape and dtype. If `y` is
    0-d, `g` may be a number.
    """
    if type(g) in (int, float, complex):
        g = backend.asarray(g, dtype=y.dtype, device=backend.device_of(y))
    alike = backend_of(y, g) and tuple(g.shape) == tuple(y.shape)
    if alike and (g.dtype == y.dtype or dtype_of(g) == dtype_of(y)):
        return g  # perhaps with another byte order
    raise ValueError(
        f"{name}: needed an array like the {what}, {dtype_of(y)} of shape {tuple(y.shape)}, "
        f"got {dtype_of(g)} of shape {tuple(g.shape)}"
    )


def arguments(args: tuple, where: tuple[int, ...]) -> list[str]:
    """Names of the leaves of the chosen arguments, for messages."""
    chains = [(i, chain) for i in where for chain in tree.paths(args[i])]
    return [f"argument {i}" + (f", leaf {chain}" if chain else "") for i, chain in chains]


def split_aux(name: str, result: Any) -> tuple[Any, Any]:
    if not isinstance(result, tuple) or len(result) != 2:
        raise TypeError(
            f"{name}: has_aux=True needed func to return (output, aux), got {type(result).__name__}"
        )
    return result


def scalar(name: str, backend: Contract, value: Any) -> Any:
    """The output of a function to differentiate, checked to be a scalar, real and
    floating-point.
    """
    floats = (backend.float32, backend.float64)
    usual = BACKENDS.get(type(value)) is backend and value.dtype in floats
    if usual and not len(value.shape):
        return value
    if not is_floating(backend, value):
        refuse_output(name, backend, value, "")
    if len(value.shape):
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


def is_floating(backend: Contract, x: Any) -> bool:
    """Whether `x` can be differentiated: a floating-point array of this backend."""
    return find_backend(x) is backend and backend.is_float(x.dtype)


def refuse_output(name: str, backend: Contract, y: Any, path: str) -> NoReturn:
    """Raise an error that says why an output cannot be differentiated."""
    at = f" at output {path}" if path else ""
    own = find_backend(y)
    if own is None:
        left = "; a Python number has no gradient" if type(y) in (int, float, complex) else ""
        raise TypeError(f"{name}: needed an array as output, got {type(y).__name__}{at}{left}")
    if own is not backend:
        raise TypeError(
            f"{name}: needed {backend.name} arrays as output, like the input, got {own.name}{at}"
        )
    raise TypeError(f"{name}: needed a floating-point output, got {dtype_of(y)}{at}")


def arrays_of(backend: Contract, nest: Any) -> tuple[tuple, Callable[[Sequence[Any]], Any]]:
    """The arrays among the leaves of an aux nest, and a function that rebuilds the nest with other
    arrays (no longer traced) in their places.
    """
    leaves, form = tree.flatten_whole(nest)
    where = [i for i, x in enumerate(leaves) if find_backend(x) is backend]

    def rebuild(arrays: Sequence[Any]) -> Any:
        full = list(leaves)
        for i, x in zip(where, arrays):
            full[i] = x
        return tree.unflatten(form, full)

    return tuple(leaves[i] for i in where), rebuild
