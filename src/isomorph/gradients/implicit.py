"""Implicit functions, that is, solutions of equations. Their gradients are computed from the
equation, not from the steps that found the solution.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core import tree
from ..core.dispatch import find_backend
from .captured import hoist
from .custom import gradients_of, ruled, unseen
from .transforms import jvp, stop_gradient, vjp


def custom_linear_solve(
    xp: Any,
    matvec: Callable,
    b: Any,
    solve: Callable,
    transpose_solve: Callable | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """The x with matvec(x) = b, found by `solve(matvec, b)`. Its gradients come from the
    equation.
    """
    name = "custom_linear_solve"
    solvers = solve, solve if symmetric else transpose_solve

    def back(solvers: Any, apply: Callable, b: Any, x: Any, g: Any) -> tuple[Any, Any]:
        solve, transpose_solve = solvers
        if transpose_solve is None:
            raise TypeError(
                f"{name}: needed transpose_solve or symmetric=True for a gradient, got neither"
            )
        zero = tree.map(xp.zeros_like, b)
        turned = apply if symmetric else lambda v: vjp(apply, zero)[1](v)[0]
        found = custom_linear_solve(xp, turned, g, transpose_solve, solve, symmetric, has_aux)
        found = found[0] if has_aux else found
        return found, found

    return _solved(xp, name, ("b", "matvec(x)"), matvec, b, solvers, back, has_aux)


def custom_root(
    xp: Any,
    f: Callable,
    initial_guess: Any,
    solve: Callable,
    tangent_solve: Callable,
    has_aux: bool = False,
) -> Any:
    """The x with f(x) = 0, found by `solve(f, initial_guess)`. Its gradients come from the
    equation.
    """

    def back(solvers: Any, apply: Callable, guess: Any, x: Any, g: Any) -> tuple[Any, None]:
        along = lambda v: jvp(apply, (x,), (v,))[1]
        solved = lambda y: solvers[1](along, y)
        zero = tree.map(xp.zeros_like, g)
        return vjp(solved, zero)[1](g)[0], None  # the transpose of a linear function

    words, guess = ("the initial guess", "f(x)"), stop_gradient(initial_guess, preserve_type=False)
    solvers = solve, tangent_solve
    return _solved(xp, "custom_root", words, f, guess, solvers, back, has_aux)


def _solved(
    xp: Any, name: str, words: tuple[str, str], equation: Callable, begin: Any,
    solvers: tuple[Any, Any], back: Callable, has_aux: bool,
) -> Any:  # fmt: skip
    """`solve(equation, begin)`, with gradients from the equation: `back(solvers, equation, begin,
    x, g)` are the gradients with respect to minus the equation, and to `begin`. `words` name both
    in errors. The solvers are the solve and that of the gradient; no gradient flows through their
    steps, so what they capture is constant. It is an argument all the same: the gradient may be
    computed after a `vmap` in which it was captured.
    """
    captured, rebuild = hoist(equation)
    constants, restore = hoist(solvers)

    def found(captured: list, constants: list, begin: Any) -> Any:
        return restore(constants)[0](rebuild(captured), begin)

    def fwd(captured: list, constants: list, begin: Any) -> tuple:
        out = unseen(name, xp, found, (captured, constants, begin))
        x = _solution(name, words[0], begin, out, has_aux)
        _same(name, words[1], begin, _unseen_at(xp, rebuild, captured, x))
        return out, (captured, constants, begin, x)

    def bwd(saved: tuple, upstream: Any) -> tuple:
        captured, constants, begin, x = saved
        g = upstream[0] if has_aux else upstream
        if _watched(xp, (captured, begin)):  # for a higher order, x must depend on them again
            x = run(captured, constants, begin)
            x = x[0] if has_aux else x
        to_equation, to_begin = back(restore(constants), rebuild(captured), begin, x, g)
        minus = tree.map(lambda y: -y, to_equation)
        (grads, _) = gradients_of(
            xp, lambda captured, x: rebuild(captured)(x), (captured, x), minus
        )
        return grads, None, to_begin

    run = ruled(name, lambda *args: fwd(*args)[0], fwd, bwd, has_aux)
    return run(captured, stop_gradient(constants, preserve_type=False), begin)


def _watched(xp: Any, nest: Any) -> bool:
    return any(find_backend(x) is xp and xp.is_watched(x) for x in tree.flatten(nest)[0])


def _unseen_at(xp: Any, rebuild: Callable, captured: list, x: Any) -> Any:
    """The equation at its solution, evaluated to check which arrays it uses; `solve` may not have
    evaluated it.
    """
    at = lambda captured, x: rebuild(captured)(x)
    return unseen("custom_root, custom_linear_solve", xp, at, (captured, x))


def _solution(name: str, what: str, like: Any, out: Any, has_aux: bool) -> Any:
    """The solution that `solve` returned, without aux."""
    if has_aux and (not isinstance(out, tuple) or len(out) != 2):
        raise TypeError(
            f"{name}: has_aux=True needed solve to return (x, aux), got {type(out).__name__}"
        )
    x = out[0] if has_aux else out
    _same(name, f"the result of solve, like {what},", like, x)
    return x


def _same(name: str, what: str, like: Any, got: Any) -> None:
    """Check that the unknown and its equation have the same structure and shapes."""
    (wanted, form), (given, given_form) = tree.flatten(like), tree.flatten(got)
    shapes = [[tuple(getattr(y, "shape", ())) for y in ys] for ys in (wanted, given)]
    if form != given_form or shapes[0] != shapes[1]:
        raise ValueError(
            f"{name}: needed {what} as {form} of shapes {shapes[0]}, got {given_form} of shapes "
            f"{shapes[1]}"
        )
