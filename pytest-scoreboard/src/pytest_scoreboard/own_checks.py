"""Checks that a test writes without `assert`: a branch that raises AssertionError or calls
`pytest.fail`, and calls of methods such as `backend.assert_same_dtype(x, y)`. A call that counts is
put after such a statement, so it counts only if it was reached and the check held.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from copy import deepcopy
from inspect import unwrap
from typing import Any

from .tally import ASSERTS, TALLY

ALIASES = {"held": "@scoreboard_held", "held_by": "@scoreboard_held_by"}  # no program's own names
CAMEL = re.compile(r"assert[A-Z]")


def held() -> None:
    """A check held."""
    TALLY.asserts += 1


def held_by(function: Any) -> None:
    """A call of an assertion returned. One of a test file counts by the assertions inside it, and
    one that is wrapped has counted itself.
    """
    plain = unwrap(getattr(function, "__func__", function))
    home = getattr(getattr(plain, "__code__", None), "co_filename", "")
    if not hasattr(function, "counts_assertions") and not home.startswith(TALLY.roots):
        TALLY.asserts += 1


held._dynamo_marked_constant = True  # pyright: ignore  # see tally.record_mode
held_by._dynamo_marked_constant = True  # pyright: ignore


def instrument(module: ast.Module) -> None:
    """Put the counting calls into a module, in place.

    >>> tree = ast.parse("if x < 0:\\n    raise AssertionError(x)")
    >>> instrument(tree)
    >>> [type(node).__name__ for node in tree.body]
    ['ImportFrom', 'If', 'Expr']
    """
    if sum(map(_count_after, [*_bodies(module)])):
        place = _after_header(module.body)
        names = [ast.alias(*pair) for pair in ALIASES.items()]
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
    """Put a call after each statement that is a check; return how many there are."""
    calls = [(i, _call_after(statement)) for i, statement in enumerate(body)]
    places = [(i, call) for i, call in calls if call is not None]
    for i, call in reversed(places):
        body.insert(i + 1, ast.copy_location(ast.Expr(call), body[i]))
    return len(places)


def _call_after(statement: ast.stmt) -> ast.Call | None:
    """The call that counts a statement if it is a compound one with a failing branch of its own, or
    calls an assertion of an object; else None.
    """
    if _may_fail(statement):
        return ast.Call(ast.Name(ALIASES["held"], ast.Load()), [], [])
    call = statement.value if isinstance(statement, ast.Expr) else None
    method = call.func if isinstance(call, ast.Call) else None
    if not isinstance(method, ast.Attribute) or not _is_assertion(method.attr):
        return None
    owner = method.value
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    if not isinstance(owner, ast.Name):  # evaluated again, a call might do something
        return None
    return ast.Call(ast.Name(ALIASES["held_by"], ast.Load()), [deepcopy(method)], [])


def _is_assertion(name: str) -> bool:
    """
    >>> [_is_assertion(name) for name in ("assert_same", "assertEqual", "np_assert", "assertive")]
    [True, True, True, False]
    """
    return bool(ASSERTS.search(name) or CAMEL.match(name))


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
