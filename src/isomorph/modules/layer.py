"""A module of one array that gives one, as type checkers see it; when a program runs, a module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .module import Module

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, overload

    from ..types.array_types import A, N, Unknown

    class Layer(Module):
        @overload
        def __call__(
            self, x: Unknown, /, *, v: Any = None, track_submod_rets: bool = False,
            submod_depth: int | None = None, submods_to_track: Iterable[Any] | None = None,
            track_submod_call_order: bool = False, expected_submod_rets: Any = None,
        ) -> Any: ...  # fmt: skip
        @overload
        def __call__(
            self, x: N, /, *, v: Any = None, track_submod_rets: bool = False,
            submod_depth: int | None = None, submods_to_track: Iterable[Any] | None = None,
            track_submod_call_order: bool = False, expected_submod_rets: Any = None,
        ) -> N: ...  # fmt: skip
        @overload
        def __call__(
            self, x: A, /, *, v: Any = None, track_submod_rets: bool = False,
            submod_depth: int | None = None, submods_to_track: Iterable[Any] | None = None,
            track_submod_call_order: bool = False, expected_submod_rets: Any = None,
        ) -> A: ...  # fmt: skip
        def __call__(self, x: Any, /, **kw: Any) -> Any: ...  # pyright: ignore[reportIncompatibleMethodOverride]
else:
    Layer = Module
