"""Functions that exist only in NumPy, SciPy or C, as part of a program on any backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple

from .. import tree
from ..dispatch import backend_of, find_backend
from .calls import check_callable
from .custom import bind_custom_gradient_function, ruled


def host_function(
    func: Callable[..., Any],
    vjp: Callable[[Any, Any], Any] | None = None,
    *,
    like: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """`func`, which gets its arguments as NumPy arrays, as a function for every backend. Its NumPy
    results become arrays of the arguments' framework. It works in compiled code and under `vmap`
    too, and has a gradient if `vjp` is given.

    The gradient is `vjp((x, ret), upstream)`, also on NumPy arrays; with several arguments, `x` is
    the tuple of them and `vjp` returns a tuple of gradients. `vjp` itself cannot be differentiated:
    for second derivatives, write the rule with `custom_vjp` and `host_function`s. The arrays are
    copies, so `func` may write to them. A compiler needs the shapes and dtypes of the results
    beforehand. They are those of the results of `like`; without `like`, `func` itself is called
    while compiling, with arrays of ones like the arguments.

    >>> from math import erf
    >>> curve = iso.host_function(
    ...     np.vectorize(erf), lambda saved, g: g * 2 / np.pi**0.5 * np.exp(-(saved[0] ** 2))
    ... )
    >>> iso.grad(lambda x: np.sum(curve(x)))(np.array([0.0]))
    array([1.12837917])
    """
    for role, given in (("func", func), ("vjp", vjp), ("like", like)):
        if not callable(given) and (given is not None or role == "func"):
            raise TypeError(
                f"host_function: needed {role} as a function, got {type(given).__name__}"
            )
    check_callable("host_function", func)
    forward = _on_host(func, like or func)
    if vjp is None:
        return wraps(func)(_final(forward, f"host_function: {_name(func)} was given no vjp"))

    def rule(saved: Any, upstream: Any) -> Any:
        back = lambda saved, upstream: _checked(vjp(saved, upstream), saved[0])
        like = lambda saved, upstream: saved[0]
        once = f"host_function: the vjp of {_name(func)} cannot be differentiated"
        grads = _final(_on_host(back, like), once)(saved, upstream)
        return tree.map(_cast, grads, saved[0])

    return wraps(func)(bind_custom_gradient_function(forward, rule))


class Call(NamedTuple):
    """One call of a host function, as functions of flat arrays, which a backend calls."""

    func: Callable[..., list[Any]]  # NumPy arrays in, NumPy arrays or numbers out
    like: Callable[..., list[Any]]  # arrays of ones in, examples of the results out


def _on_host(func: Callable[..., Any], like: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        leaves, form = tree.flatten(args)
        where = [i for i, x in enumerate(leaves) if find_backend(x) is not None]
        if not where:
            return func(*args)
        after: dict[str, Any] = {}

        def flat(run: Callable, arrays: Sequence[Any]) -> list[Any]:
            full = list(leaves)
            for i, x in zip(where, arrays):
                full[i] = x
            outs, after["form"] = tree.flatten(run(*tree.unflatten(form, full)))
            return outs

        backend = backend_of(*(leaves[i] for i in where))
        host = Call(
            lambda *arrays: flat(func, [x.copy() for x in arrays]),
            lambda *arrays: flat(like, arrays),
        )
        outs = backend.host_call(host, tuple(leaves[i] for i in where))
        return tree.unflatten(after["form"], outs)

    return call


def _final(call: Callable[..., Any], why: str) -> Callable[..., Any]:
    """`call`, which raises if it is differentiated."""

    def bwd(saved: Any, upstream: Any) -> Any:
        raise NotImplementedError(f"{why}; give vjp=, or for higher orders iso.custom_vjp")

    return ruled("host_function", call, lambda *args: (call(*args), None), bwd)


def _checked(given: Any, x: Any) -> Any:
    form, given_form = tree.flatten(x)[1], tree.flatten(given)[1]
    if given_form != form:
        raise ValueError(
            f"host_function: needed vjp to return a nest like {form}, got {given_form}"
        )
    return given


def _cast(grad: Any, x: Any) -> Any:
    """A gradient in the dtype of its array."""
    backend = find_backend(x)
    if backend is None or grad.dtype == x.dtype:
        return grad
    return backend.astype(grad, x.dtype)


def _name(func: Callable) -> str:
    return getattr(func, "__name__", type(func).__name__)
