"""Checks that a test writes without `assert`: a branch that raises AssertionError or calls
`pytest.fail`. A call that counts is put after such a statement, so it counts only if it was reached
and the check held.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .tally import TALLY

ALIAS = "@scoreboard_held"  # not a name that a program can have


def held() -> None:
    """A check held."""
    TALLY.asserts += 1


held._dynamo_marked_constant = True  # pyright: ignore  # see tally.record_mode


def instrument(module: ast.Module) -> None:
    """Put the counting calls into a module, in place.

    >>> tree = ast.parse("if x < 0:\\n    raise AssertionError(x)")
    >>> instrument(tree)
    >>> [type(node).__name__ for node in tree.body]
    ['ImportFrom', 'If', 'Expr']
    """
    if sum(map(_count_after, [*_bodies(module)])):
        place = _after_header(module.body)
        names = [ast.alias("held", ALIAS)]
        module.body.insert(place, ast.ImportFrom(__name__, names, 0, lineno=1, col_offset=0))
        ast.fix_missing_locations(module)


def _bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """All lists of statements in a tree."""
    for inner in ast.walk(node):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(inner, name, None)
            if isinstance(body, list):  # not the expression of a lambda
                yield body


def _count_after(body: list[ast.stmt]) -> int:
    """Put a call after each compound statement that has a failing branch of its own; return how
    many there are.
    """
    places = [i for i, statement in enumerate(body) if _may_fail(statement)]
    for i in reversed(places):
        call = ast.Expr(ast.Call(ast.Name(ALIAS, ast.Load()), [], []))
        body.insert(i + 1, ast.copy_location(call, body[i]))
    return len(places)


def _may_fail(statement: ast.stmt) -> bool:
    if not isinstance(statement, (ast.If, ast.Try, ast.For, ast.While, ast.Match)):
        return False
    parts = [statement.body] if not isinstance(statement, ast.Match) else []
    parts += [getattr(statement, name, []) for name in ("orelse", "finalbody")]
    parts += [part.body for name in ("handlers", "cases") for part in getattr(statement, name, [])]
    return any(_fails(inner) for part in parts for inner in part)


def _fails(statement: ast.stmt) -> bool:
    """Whether a statement is `raise AssertionError(...)` or a call such as `pytest.fail(...)`."""
    if isinstance(statement, ast.Raise):
        raised = statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
        return isinstance(raised, ast.Name) and raised.id == "AssertionError"
    call = statement.value if isinstance(statement, ast.Expr) else None
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "fail"
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id in ("pytest", "self")
    )


def _after_header(body: list[ast.stmt]) -> int:
    """The place after a module's docstring and its imports from `__future__`."""
    place = 0
    for statement in body:
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        is_future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if not (is_future or (is_text and place == 0)):
            break
        place += 1
    return place
