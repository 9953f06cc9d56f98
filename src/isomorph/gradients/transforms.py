"""Differentiation, written once above the verb `vjp` that each backend supplies.

A call flattens the arguments to be differentiated, asks the arrays for their backend, runs the
function once and rebuilds nests of the same form. All checks of inputs and outputs are here, in one
wording for all backends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

from .. import tree
from ..dispatch import backend_of, find_backend, load

if TYPE_CHECKING:
    from ..backends.base import Backend


def grad(
    func: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The function that returns the gradient of a scalar `func`, in the form of the chosen
    argument.

    With several `argnums` a tuple of gradients; with `has_aux`, `func` returns `(value, aux)` and
    the result is `(gradient, aux)`. Of a complex argument z = x + iy the gradient is df/dx + i
    df/dy, on every backend.

    >>> iso.grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    both = _value_and_grad("grad", func, argnums, has_aux)

    @wraps(func)
    def gradient(*args: Any, **kw: Any) -> Any:
        value, grads = both(*args, **kw)
        return (grads, value[1]) if has_aux else grads

    return gradient


def value_and_grad(
    func: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The function that returns `(value, gradient)` of a scalar `func`, running it once.

    With `has_aux`, `func` returns `(value, aux)` and the result is `((value, aux), gradient)`.

    >>> iso.value_and_grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    (np.float64(5.0), array([2., 4.]))
    """
    return wraps(func)(_value_and_grad("value_and_grad", func, argnums, has_aux))


def _value_and_grad(
    name: str, func: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool
) -> Callable[..., Any]:
    check_callable(name, func)
    places = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    if not places or not all(isinstance(i, int) for i in places):
        raise TypeError(f"{name}: argnums needed an int or a sequence of ints, got {argnums!r}")

    def both(*args: Any, **kw: Any) -> Any:
        where = chosen_places(name, places, args)
        leaves, form = tree.flatten(tuple(args[i] for i in where))
        backend, leaves = settle(name, leaves, form, (args, kw))
        aux_box: list[Any] = []

        def flat(*leaves: Any) -> tuple[tuple, tuple]:
            full = list(args)
            for i, part in zip(where, tree.unflatten(form, leaves)):
                full[i] = part
            value = func(*full, **kw)
            if has_aux:
                value, aux = split_aux(name, value)
                arrays, rebuild = arrays_of(backend, aux)
                aux_box.append(rebuild)
            else:
                arrays = ()
            return (scalar(name, backend, value),), arrays

        (value,), pullback, arrays = backend.vjp(flat, leaves, once=True)
        grads = tree.unflatten(form, pullback((backend.ones_like(value),)))
        grads = grads[0] if isinstance(argnums, int) else grads
        return ((value, aux_box[-1](arrays)) if has_aux else value), grads

    return both


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """`(func(*primals), pullback)`: the pullback takes a nest like the output and gives one
    gradient per primal.

    With `has_aux`, `func` returns `(out, aux)` and the result is `(out, pullback, aux)`. The
    pullback of complex arrays is the conjugate transpose of the Jacobian, on every backend.

    >>> y, pullback = iso.vjp(np.sin, np.array([0.0, 0.0]))
    >>> pullback(np.array([1.0, 2.0]))
    (array([1., 2.]),)
    """
    check_callable("vjp", func)
    if not primals:
        raise TypeError("vjp: needed at least one argument to differentiate, got none")
    leaves, form = tree.flatten(primals)
    backend, leaves = settle("vjp", leaves, form, ())
    box: dict[str, Any] = {}

    def flat(*leaves: Any) -> tuple[tuple, tuple]:
        out = func(*tree.unflatten(form, leaves))
        arrays = ()
        if has_aux:
            out, aux = split_aux("vjp", out)
            arrays, box["aux"] = arrays_of(backend, aux)
        outs, box["out"] = tree.flatten(out)
        return tuple(floating("vjp", backend, y, p) for y, p in zip(outs, tree.paths(out))), arrays

    outs, pull, arrays = backend.vjp(flat, leaves)
    out_form = box["out"]

    def pullback(cotangent: Any) -> tuple[Any, ...]:
        given, form_given = tree.flatten(cotangent)
        if form_given != out_form:
            raise ValueError(
                f"pullback: needed a nest like the output, {out_form}, got {form_given}"
            )
        return tree.unflatten(form, pull(tuple(map(partial(_cotangent, backend), outs, given))))

    out = tree.unflatten(out_form, outs)
    return (out, pullback, box["aux"](arrays)) if has_aux else (out, pullback)


def stop_gradient(nest: Any, /) -> Any:
    """The same values, through which no gradient flows; leaves that are no arrays stay.

    >>> iso.grad(lambda x: np.sum(iso.stop_gradient(x) * x))(np.array([1.0, 2.0]))
    array([1., 2.])
    """

    def stop(x: Any) -> Any:
        backend = find_backend(x)
        return x if backend is None else backend.stop_gradient(x)

    return tree.map(stop, nest)


# The checks, each in one wording for all backends.


def check_callable(name: str, func: Any) -> None:
    if not callable(func):
        raise TypeError(f"{name}: needed a function to differentiate, got {type(func).__name__}")


def chosen_places(name: str, places: tuple[int, ...], args: tuple) -> tuple[int, ...]:
    """The chosen positions, counted from the front."""
    n = len(args)
    for i in places:
        if not -n <= i < n:
            raise ValueError(
                f"{name}: argnums chose argument {i}, but {n} positional arguments came"
            )
    return tuple(i % n for i in places)


def settle(name: str, leaves: Sequence[Any], form: Any, beside: Any) -> tuple[Backend, tuple]:
    """The one backend of a call, and the leaves to differentiate as floating arrays of it."""
    arrays = [x for x in tree.flatten(beside)[0] if find_backend(x) is not None]
    arrays += [x for x in leaves if find_backend(x) is not None]
    backend = backend_of(*arrays) if arrays else load("numpy")
    if not leaves:
        raise TypeError(f"{name}: needed an array to differentiate, got an empty nest")
    settled = []
    for i, x in enumerate(leaves):
        if type(x) is float:
            x = backend.weak(x, arrays)
        if find_backend(x) is None or not backend.is_float(x.dtype):
            path = tree.paths(tree.unflatten(form, [0] * len(leaves)))[i]
            what = f"dtype {x.dtype}" if find_backend(x) is not None else f"a {type(x).__name__}"
            raise TypeError(
                f"{name}: needed floating-point arrays to differentiate, got {what} at "
                f"{_place(path)}; convert it to floating point, or leave it out through argnums"
            )
        settled.append(x)
    return backend, tuple(settled)


def _place(path: str) -> str:
    head, _, tail = path.partition("/")
    return f"chosen argument {head}" + (f", leaf {tail}" if tail else "")


def _cotangent(backend: Backend, y: Any, g: Any) -> Any:
    """The gradient given for output `y`: an array like it, or a number where it is a scalar."""
    if type(g) in (int, float, complex):
        g = backend.asarray(g, dtype=y.dtype, device=backend.device_of(y))
    if (
        backend_of(y, g).is_float(g.dtype)
        and g.dtype == y.dtype
        and tuple(g.shape) == tuple(y.shape)
    ):
        return g
    raise ValueError(
        f"pullback: needed an array like the output, {y.dtype} of shape {tuple(y.shape)}, "
        f"got {g.dtype} of shape {tuple(g.shape)}"
    )


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
    if backend.isdtype(value.dtype, "complex floating"):
        raise TypeError(
            f"{name}: needed a function with a real output, got {value.dtype}; "
            "take xp.real, xp.imag or xp.abs"
        )
    return value


def floating(name: str, backend: Backend, y: Any, path: str) -> Any:
    """An output to differentiate: a floating-point array of the call's backend; a Python number
    becomes one.
    """
    at = f" at output {path}" if path else ""
    if type(y) in (int, float):  # not NumPy's float64, which is a float too
        return backend.weak(float(y), ())
    own = find_backend(y)
    if own is None:
        raise TypeError(f"{name}: needed an array as output, got {type(y).__name__}{at}")
    if own is not backend:
        raise TypeError(
            f"{name}: {backend.name} arrays went in, an array of {own.name} came out{at}"
        )
    if not backend.is_float(y.dtype):
        raise TypeError(f"{name}: needed a floating-point output, got {y.dtype}{at}")
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
