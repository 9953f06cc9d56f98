"""Modules as text: the tree in `repr`, and the table of `iso.summary`."""

from __future__ import annotations

from math import prod
from time import perf_counter
from typing import Any

from ..core import tree
from ..core.dispatch import dtype_of, find_backend
from .contents import CONSTANT, STATE, VARIABLE, is_module, kind_of, own
from .state import value_of


def outline(module: Any) -> str:
    """The tree of modules with their settings and the shapes of their arrays.

    A shared object is shown at its first place; the other places refer to that.
    """
    lines: list[str] = []
    seen: dict[int, str] = {}

    def show(node: Any, name: str, path: str, indent: str) -> None:
        seen[id(node)] = path or "the top"
        settings = [
            f"{key}={value!r}"
            for key, value in vars(node).items()
            if type(value) in (int, float, bool, str) and key[:1] != "_"
        ]
        label = f"{name}: " if name else ""
        lines.append(f"{indent}{label}{type(node).__name__}({', '.join(settings)})")
        for step in own(node):
            key, x = "/".join(map(str, step.path)), step.value
            here = f"{path}/{key}" if path else key
            if id(x) in seen:
                lines.append(f"{indent}  {key}: the same as {seen[id(x)]}")
            elif is_module(x):
                show(x, key, here, indent + "  ")
            else:
                seen[id(x)] = here
                lines.append(f"{indent}  {key}: {described(x, key in node._frozen)}")

    show(module, "", "", "")
    return "\n".join(lines)


def described(x: Any, frozen: bool) -> str:
    """An array or state as text: dtype, shape and kind."""
    kind, value = kind_of(x), value_of(x)
    word = {STATE: " state", CONSTANT: " constant"}.get(kind, " frozen" if frozen else "")  # type: ignore[arg-type]
    if not hasattr(value, "shape"):
        return f"{value!r}{word}"
    return f"{dtype_of(value)} {list(value.shape)}{word}"


class Watch:
    """Records the calls, times and outputs of modules, for `summary`."""

    def __init__(self) -> None:
        self.rows: dict[int, list[Any]] = {}  # calls, seconds, output

    def enter(self, module: Any, args: tuple, kw: dict[str, Any]) -> Any:
        row = self.rows.setdefault(id(module), [0, 0.0, None])
        start = perf_counter()
        out = _finished(module.forward(*args, **kw))
        row[1] += perf_counter() - start
        row[0], row[2] = row[0] + 1, out
        return out


def _finished(out: Any) -> Any:
    """Wait until a result is computed: some frameworks return earlier."""
    for x in tree.flatten(out)[0]:
        getattr(x, "block_until_ready", lambda: None)()
    return out


def table(watch: Watch, copies: list[tuple[str, Any]], total: int) -> str:
    """One line for each module: its class, output, parameters, calls and time."""
    head = ["module", "output", "parameters", "bytes", "calls", "ms"]
    rows = []
    variables = lambda copy: [step.value for step in own(copy) if step.kind == VARIABLE]
    unique = {id(x): x for _, copy in copies for x in variables(copy)}
    for name, copy in copies:
        calls, seconds, out = watch.rows.get(id(copy), [0, 0.0, None])
        held = variables(copy)
        rows.append([
            f"{name or 'the whole'}: {type(copy).__name__}",
            _shapes(out) if calls else "not called",
            f"{sum(prod(x.shape) for x in held):,}",
            f"{sum(_bytes(x) for x in held):,}",
            str(calls),
            f"{seconds * 1e3:.2f}" if calls else "",
        ])  # fmt: skip
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    sides = ["<", "<", ">", ">", ">", ">"]
    line = lambda row: "  ".join(f"{c:{s}{w}}" for c, s, w in zip(row, sides, widths)).rstrip()
    rule = "  ".join("-" * w for w in widths)
    held = sum(prod(x.shape) for x in unique.values())
    kept = f", {held - total:,} of them frozen" if held != total else ""
    last = f"parameters: {held:,}{kept}; the time of a module includes its submodules"
    return "\n".join([line(head), rule, *map(line, rows), rule, last])


def _shapes(out: Any) -> str:
    found = [f"{list(x.shape)}" for x in tree.flatten(out)[0] if find_backend(x) is not None]
    return ", ".join(found) or type(out).__name__


def _bytes(x: Any) -> int:
    each = x.dtype.itemsize if hasattr(x.dtype, "itemsize") else x.dtype.size
    return prod(x.shape) * each
