"""Move arrays from one framework to another, whole nests at a time; memory is shared where both
sides allow it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

from ..core import tree
from ..core.default_backend import home
from ..core.dispatch import backend_of, find_backend, load

if TYPE_CHECKING:
    from ..types.array_types import N, Shaped, Unknown
    from ..typing import BackendName

M = TypeVar("M", bound=tree.Node)


@overload
def to_numpy(nest: Unknown, /) -> Any: ...
@overload
def to_numpy(nest: Shaped, /) -> N: ...
@overload
def to_numpy(nest: M, /) -> M: ...
@overload
def to_numpy(nest: Any, /) -> Any: ...
def to_numpy(nest: Any, /) -> Any:
    """The nest with every array as a NumPy array, sharing memory where that is possible; leaves
    that are not arrays are kept.

    The result is plain data, without gradients.

    >>> iso.to_numpy({"a": np.ones(2)})
    {'a': array([1., 1.])}
    """
    return tree.map_whole(_to_numpy, nest)


def _to_numpy(x: Any) -> Any:
    backend = find_backend(x)
    return x if backend is None else backend.to_numpy(x)


def number_of(x: Any) -> float:
    """A number, or the element of a 0-d array."""
    backend = find_backend(x)
    return float(x if backend is None else backend.to_numpy(x))


@overload
def convert(nest: M, backend: BackendName, /, *, device: Any = None) -> M: ...
@overload
def convert(nest: Any, backend: BackendName, /, *, device: Any = None) -> Any: ...
def convert(nest: Any, backend: Any, /, *, device: Any = None) -> Any:
    """The nest with every array moved to another backend; leaves that are not arrays are kept.

    Without a device, an array on an accelerator stays there, and an array in the memory of the host
    goes to the device of the enclosing `use_backend`, or to the framework's default device. DLPack
    is used where both frameworks can share the memory, otherwise a copy. Where memory is shared,
    writing into one array in place changes the other.

    >>> iso.convert([np.ones(2)], "numpy")
    [array([1., 1.])]
    """
    target = load(backend)
    asked = target.device(device)
    usual = home(backend).device

    def move(x: Any) -> Any:
        source = find_backend(x)
        if source is None:
            return x
        if source is target:
            return x if asked is None else target.asarray(x, device=asked)
        lent = source.lend(x)
        borrowed = None if lent is None else target.borrow(lent)
        if borrowed is None:
            values = source.to_numpy(x)
            if values.dtype.kind in "OSU":
                raise TypeError(
                    f"convert: needed numbers or booleans, got {values.dtype.name} data"
                )
            return target.from_numpy(values, usual if asked is None else asked)
        if asked is None:
            return target.from_host(borrowed, usual)
        is_there = target.device_of(borrowed) == asked
        return borrowed if is_there else target.asarray(borrowed, device=asked)

    return tree.map_whole(move, nest)


def device_of(x: Any, /) -> Any:
    """The device of an array, in the form in which `iso.zeros(..., device=...)` and the other
    functions that make arrays take it. None if there is no single one, or if a traced program
    decides it: it is safe to ask, and quick, anywhere.

    >>> iso.device_of(np.ones(2))
    'cpu'
    """
    found = backend_of(x).device_of(x)
    return None if found == "" else found  # empty in a graph whose devices are not chosen yet
