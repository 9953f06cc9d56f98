"""A module of one array that gives one, as type checkers see it; when a program runs, a module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .module import Module

if TYPE_CHECKING:
    from typing import Any, Unpack, overload

    from ..old_words.tracking import Recording
    from ..types.array_types import A, N, Unknown

    class Layer(Module):
        @overload
        def __call__(self, x: Unknown, /, *, v: Any = None, **kw: Unpack[Recording]) -> Any: ...
        @overload
        def __call__(self, x: N, /, *, v: Any = None, **kw: Unpack[Recording]) -> N: ...
        @overload
        def __call__(self, x: A, /, *, v: Any = None, **kw: Unpack[Recording]) -> A: ...
        def __call__(self, x: Any, /, **kw: Any) -> Any: ...  # pyright: ignore[reportIncompatibleMethodOverride]
else:
    Layer = Module
