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
    name, solve = "custom_linear_solve", _constant(solve)
    if symmetric:
        transpose_solve = solve

    def back(apply: Callable, b: Any, x: Any, g: Any) -> tuple[Any, Any]:
        if transpose_solve is None:
            raise TypeError(
                f"{name}: needed transpose_solve or symmetric=True for a gradient, got neither"
            )
        zero = tree.map(xp.zeros_like, b)
        turned = apply if symmetric else lambda v: vjp(apply, zero)[1](v)[0]
        found = custom_linear_solve(xp, turned, g, transpose_solve, solve, symmetric, has_aux)
        found = found[0] if has_aux else found
        return found, found

    return _solved(xp, name, ("b", "matvec(x)"), matvec, b, solve, back, has_aux)


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

    def back(apply: Callable, guess: Any, x: Any, g: Any) -> tuple[Any, None]:
        along = lambda v: jvp(apply, (x,), (v,))[1]
        solved = lambda y: tangent_solve(along, y)
        zero = tree.map(xp.zeros_like, g)
        return vjp(solved, zero)[1](g)[0], None  # the transpose of a linear function

    words, guess = ("the initial guess", "f(x)"), stop_gradient(initial_guess, preserve_type=False)
    return _solved(xp, "custom_root", words, f, guess, _constant(solve), back, has_aux)


def _solved(
    xp: Any, name: str, words: tuple[str, str], equation: Callable, begin: Any, solve: Callable,
    back: Callable, has_aux: bool,
) -> Any:  # fmt: skip
    """`solve(equation, begin)`, with gradients from the equation: `back(equation, begin, x, g)` are
    the gradients with respect to minus the equation, and to `begin`. `words` name both in errors.
    """
    captured, rebuild = hoist(equation)

    def found(captured: list, begin: Any) -> Any:
        return solve(rebuild(captured), begin)

    def fwd(captured: list, begin: Any) -> tuple:
        out = unseen(name, xp, found, (captured, begin))
        x = _solution(name, words[0], begin, out, has_aux)
        _same(name, words[1], begin, _unseen_at(xp, rebuild, captured, x))
        return out, (captured, begin, x)

    def bwd(saved: tuple, upstream: Any) -> tuple:
        captured, begin, x = saved
        g = upstream[0] if has_aux else upstream
        if _watched(xp, (captured, begin)):  # for a higher order, x must depend on them again
            x = run(captured, begin)
            x = x[0] if has_aux else x
        to_equation, to_begin = back(rebuild(captured), begin, x, g)
        minus = tree.map(lambda y: -y, to_equation)
        (grads, _) = gradients_of(
            xp, lambda captured, x: rebuild(captured)(x), (captured, x), minus
        )
        return grads, to_begin

    run = ruled(name, lambda *args: fwd(*args)[0], fwd, bwd, has_aux)
    return run(captured, begin)


def _constant(solve: Callable) -> Callable:
    """The solver with its captured arrays as constants: no gradient flows through its steps."""
    captured, rebuild = hoist(solve)
    return rebuild(stop_gradient(captured, preserve_type=False))


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
