"""Types of modules, for type checkers: a call has the arguments and the result of `forward`.
At run time `Called` is just `object`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol, TypeVar

    from ..types.array_types import P as P
    from ..types.array_types import R as R

    R_co = TypeVar("R_co", covariant=True)

    class Forward(Protocol[P, R_co]):
        """Any object with a `forward`."""

        def forward(self, *args: P.args, **kw: P.kwargs) -> R_co: ...

    class Called:
        forward: Callable[..., Any]
        submod_rets: dict[str, Any]
        submod_call_order: dict[str, Any]
else:
    Called, Forward, P, R = object, None, None, None
