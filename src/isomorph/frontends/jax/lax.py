"""The custom-gradient operators of `jax.lax`, with the same signatures and semantics, for the
arrays of every backend.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core import tree
from ...core.dispatch import backend_of, check_callable
from ...gradients import transforms


def stop_gradient(x: Any) -> Any:
    """The same values, without gradients. Leaves that are not arrays are not changed.

    >>> from isomorph.frontends.jax import lax
    >>> iso.grad(lambda x: np.sum(lax.stop_gradient(x) * x))(np.array([1.0, 2.0]))
    array([1., 2.])
    """
    return transforms.stop_gradient(x, preserve_type=False)


def custom_root(
    f: Callable[[Any], Any],
    initial_guess: Any,
    solve: Callable[[Callable, Any], Any],
    tangent_solve: Callable[[Callable, Any], Any],
    has_aux: bool = False,
) -> Any:
    """The x with f(x) = 0, found by `solve(f, initial_guess)`. Gradients come from the equation,
    not from the steps of `solve`.

    `tangent_solve(g, y)` returns the x with g(x) = y for a linear `g`, and is differentiated with
    respect to y. Arrays that `f` captures get gradients. With `has_aux`, `solve` and this function
    return `(x, aux)`.

    >>> from isomorph.frontends.jax import lax
    >>> newton = lambda f, x: x - f(x) / 4.0  # one step is enough here
    >>> root = lambda a: lax.custom_root(
    ...     lambda x: x * x - a, np.array(2.0), newton, lambda g, y: y / g(np.array(1.0))
    ... )
    >>> float(iso.grad(root)(np.array(4.0)))
    0.25
    """
    for word, given in (("f", f), ("solve", solve), ("tangent_solve", tangent_solve)):
        _check("custom_root", word, given)
    check_callable("custom_root", f)
    backend = _backend("custom_root", initial_guess)
    return backend.custom_root(f, initial_guess, solve, tangent_solve, has_aux)


def custom_linear_solve(
    matvec: Callable[[Any], Any],
    b: Any,
    solve: Callable[[Callable, Any], Any],
    transpose_solve: Callable[[Callable, Any], Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """The x with matvec(x) = b, found by `solve(matvec, b)`. Gradients come from the equation, not
    from the steps of `solve`.

    `transpose_solve(vecmat, g)` solves the transposed equation; with `symmetric`, `solve` does.
    `b` and the arrays that `matvec` captures get gradients. With `has_aux`, the solvers and this
    function return `(x, aux)`.

    >>> from isomorph.frontends.jax import lax
    >>> a = np.array([[2.0, 1.0], [0.0, 4.0]])
    >>> lax.custom_linear_solve(
    ...     lambda x: a @ x,
    ...     np.array([4.0, 4.0]),
    ...     lambda f, b: np.linalg.solve(a, b),
    ...     lambda f, b: np.linalg.solve(a.T, b),
    ... )
    array([1.5, 1. ])
    """
    _check("custom_linear_solve", "matvec", matvec)
    _check("custom_linear_solve", "solve", solve)
    if transpose_solve is not None:
        _check("custom_linear_solve", "transpose_solve", transpose_solve)
    check_callable("custom_linear_solve", matvec)
    backend = _backend("custom_linear_solve", b)
    return backend.custom_linear_solve(matvec, b, solve, transpose_solve, symmetric, has_aux)


def _check(name: str, word: str, given: Any) -> None:
    if not callable(given):
        raise TypeError(f"{name}: needed {word} as a function, got {type(given).__name__}")


def _backend(name: str, nest: Any) -> Any:
    leaves = tree.flatten(nest)[0]
    if not leaves:
        raise TypeError(f"{name}: needed at least one array, got an empty nest")
    return backend_of(*leaves)
