"""Functions that exist only in NumPy, SciPy or C, as part of a program on any backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple

from ..core import tree
from ..core.dispatch import backend_of, check_callable, find_backend
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
    the tuple of them and `vjp` returns a tuple of gradients, where None is zeros. `vjp` itself
    cannot be differentiated, as forward mode and second derivatives need: for them, write the rule
    with `custom_vjp`, as in the second example. The arrays are copies, so `func` may write to them.
    A Python number stays one, except as an argument of `iso.jit`. A compiler needs the shapes and
    dtypes of the results beforehand. They are those of the results of `like`; without `like`,
    `func` itself is called while compiling, with arrays of ones like the arguments.

    >>> from math import erf
    >>> curve = iso.host_function(
    ...     np.vectorize(erf), lambda saved, g: g * 2 / np.pi**0.5 * np.exp(-(saved[0] ** 2))
    ... )
    >>> iso.grad(lambda x: np.sum(curve(x)))(np.array([0.0]))
    array([1.12837917])

    The rule keeps the argument, and calls the function that is being defined:

    >>> host = iso.host_function(np.sqrt)
    >>> root = iso.custom_vjp(host, lambda x: (host(x), x), lambda x, g: (g / (2 * root(x)),))
    >>> iso.grad(iso.grad(root))(np.array(4.0))
    array(-0.03125)
    """
    for role, given in (("func", func), ("vjp", vjp), ("like", like)):
        if not callable(given) and (given is not None or role == "func"):
            raise TypeError(
                f"host_function: needed {role} as a function, got {type(given).__name__}"
            )
    check_callable("host_function", func)
    forward = _on_host(func, like or func)
    if vjp is None:
        none = f"host_function: {_name(func)} was given no vjp; give vjp=, or use iso.custom_vjp"
        return wraps(func)(_final(forward, none))

    def rule(saved: Any, upstream: Any) -> Any:
        back = lambda saved, upstream: _checked(vjp(saved, upstream), saved[0])
        like = lambda saved, upstream: saved[0]
        once = (
            f"host_function: the vjp of {_name(func)} cannot be differentiated, as forward mode "
            "and second derivatives need; use iso.vjp or iso.jacrev, or write the rule with "
            "iso.custom_vjp"
        )
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
        raise NotImplementedError(why)

    return ruled("host_function", call, lambda *args: (call(*args), None), bwd)


def _checked(given: Any, x: Any) -> Any:
    """Gradients in the form of the arguments. None is zeros, and integers have no gradient."""
    several = isinstance(x, tuple)
    if several and isinstance(given, tuple) and len(given) == len(x):
        given = tuple([tree.map(_zeros, a) if g is None else g for g, a in zip(given, x)])
    form, given_form = tree.flatten(x)[1], tree.flatten(given)[1]
    if given_form != form:
        many = f"a tuple of {len(x)} gradients, each" if several else "a gradient"
        got = (
            f"a tuple of {len(given)}" if isinstance(given, tuple) else f"a {type(given).__name__}"
        )
        raise ValueError(f"host_function: needed vjp to return {many} like its argument, got {got}")
    return tree.map(lambda g, a: g if _is_float(a) else _zeros(a), given, x)


def _zeros(x: Any) -> Any:
    backend = find_backend(x)
    return 0.0 if backend is None else backend.zeros_like(x)


def _is_float(x: Any) -> bool:
    backend = find_backend(x)
    return backend is None or backend.is_float(x.dtype)


def _cast(grad: Any, x: Any) -> Any:
    """A gradient in the dtype of its array."""
    backend = find_backend(x)
    if backend is None or grad.dtype == x.dtype:
        return grad
    return backend.astype(grad, x.dtype)


def _name(func: Callable) -> str:
    return getattr(func, "__name__", type(func).__name__)
