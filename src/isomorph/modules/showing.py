"""A module in words: the tree of what it holds, and a table of what a call of it costs."""

from __future__ import annotations

from typing import Any

from ..dispatch import dtype_of
from .structure import CONSTANT, STATE, State, direct, is_module, kind_of


def outline(module: Any) -> str:
    """The tree of modules with their settings and the shapes of their arrays.

    What is met again is named by where it was met first.
    """
    lines: list[str] = []
    met: dict[int, str] = {}

    def show(node: Any, name: str, path: str, indent: str) -> None:
        met[id(node)] = path or "the top"
        settings = [
            f"{key}={value!r}"
            for key, value in vars(node).items()
            if type(value) in (int, float, bool, str) and key[:1] != "_"
        ]
        label = f"{name}: " if name else ""
        lines.append(f"{indent}{label}{type(node).__name__}({', '.join(settings)})")
        for local, x in direct(node):
            key = "/".join(map(str, local))
            here = f"{path}/{key}" if path else key
            if id(x) in met:
                lines.append(f"{indent}  {key}: the same as {met[id(x)]}")
            elif is_module(x):
                show(x, key, here, indent + "  ")
            else:
                met[id(x)] = here
                lines.append(f"{indent}  {key}: {described(x, key in node._frozen)}")

    show(module, "", "", "")
    return "\n".join(lines)


def described(x: Any, frozen: bool) -> str:
    """An array or state in words."""
    kind, value = kind_of(x), x.value if type(x) is State else x
    word = {STATE: " state", CONSTANT: " constant"}.get(kind, " frozen" if frozen else "")  # type: ignore[arg-type]
    if not hasattr(value, "shape"):
        return f"{value!r}{word}"
    return f"{dtype_of(value)} {list(value.shape)}{word}"
