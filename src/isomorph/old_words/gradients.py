"""Run a function of one nest; return its output together with gradients chosen by paths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..core import tree
from ..core.dispatch import check_callable, find_backend
from ..gradients.calls import arrays_of, scalar, settle
from ..gradients.transforms import stop_gradient

if TYPE_CHECKING:
    from ..types.array_types import R, X

NestPath = Sequence[Any]


def execute_with_gradients(
    func: Callable[[X], R],
    xs: X,
    /,
    *,
    retain_grads: bool = False,
    xs_grad_idxs: Sequence[NestPath] | None = None,
    ret_grad_idxs: Sequence[NestPath] | None = None,
) -> tuple[R, Any]:
    """`(func(xs), gradients)`, running `func` once on the nest `xs`.

    `xs_grad_idxs` and `ret_grad_idxs` are lists of paths, such as `[[0], ["a", 1]]`, that choose
    the inputs and the outputs to differentiate; None means all. The chosen outputs must be scalars.

    The gradients are a nest like `xs`, with None at leaves that are not floating-point arrays. For
    one chosen input they are a nest like that input, for several a list of such nests. If there are
    several outputs, a dict has the gradients of each, keyed by its path joined with `/`. An array
    that is in `xs` twice is one variable: both places get the sum. The results cannot be
    differentiated further unless `retain_grads` is True.

    >>> iso.execute_with_gradients(lambda p: np.sum(p["w"] ** 2), {"w": np.array([1.0, 2.0])})
    (np.float64(5.0), {'w': array([2., 4.])})
    """
    name = "execute_with_gradients"
    check_callable(name, func)
    leaves, form = tree.flatten(xs)
    chosen = _chosen(name, "xs_grad_idxs", xs, xs_grad_idxs)
    wanted = [i for i in sorted(set().union(*chosen)) if _is_variable(leaves[i])]
    if xs_grad_idxs is not None:
        wanted = sorted(set().union(*chosen))  # inputs chosen by path must be differentiable
    owners = {id(leaves[i]): i for i in reversed(wanted)}  # the first place of each array
    roots = sorted(owners.values())

    def named() -> list[str]:
        paths = tree.paths(xs)
        return [f"xs/{paths[i]}" for i in roots]

    backend, variables = settle(name, [leaves[i] for i in roots], named, leaves)
    after: dict[str, Any] = {}

    def flat(*variables: Any) -> tuple[tuple, tuple]:
        values = dict(zip(roots, variables))
        full = [values[owners[id(x)]] if id(x) in owners else x for x in leaves]
        ret = func(tree.unflatten(form, full))
        outs = tree.flatten(ret)[0]
        picked = _chosen(name, "ret_grad_idxs", ret, ret_grad_idxs)
        places = sorted(set().union(*picked))
        if not places:
            raise TypeError(f"{name}: needed at least one output to differentiate, got none")
        paths = tree.paths(ret)
        after["paths"] = [paths[i] for i in places]
        arrays, after["ret"] = arrays_of(backend, ret)
        return tuple(scalar(name, backend, outs[i]) for i in places), arrays

    outs, pullback, arrays = backend.vjp(flat, variables)
    ret = after["ret"](arrays)
    grads = {}
    for place, path in enumerate(after["paths"]):
        seeds = [backend.zeros_like(y) for y in outs]
        seeds[place] = backend.ones_like(outs[place])
        found = dict(zip(roots, pullback(tuple(seeds))))
        spread = [found[owners[id(x)]] if id(x) in owners else None for x in leaves]
        grads[path] = _shown(xs, form, spread, xs_grad_idxs)
    grads = grads if len(grads) > 1 else next(iter(grads.values()))
    if not retain_grads:
        ret, grads = stop_gradient((ret, grads), preserve_type=False)
    return ret, grads


def _is_variable(x: Any) -> bool:
    backend = find_backend(x)
    return (backend is not None and backend.is_float(x.dtype)) or type(x) is float


def _chosen(
    name: str, argument: str, nest: Any, paths: Sequence[NestPath] | None
) -> list[set[int]]:
    """For each path, the positions of the leaves under it in the flattened nest."""
    leaves, form = tree.flatten(nest)
    if paths is None:
        return [set(range(len(leaves)))]
    numbered = tree.unflatten(form, range(len(leaves)))
    return [set(tree.flatten(_follow(name, argument, numbered, path))[0]) for path in paths]


def _follow(name: str, argument: str, nest: Any, path: NestPath) -> Any:
    if isinstance(path, str) or not isinstance(path, Sequence):
        raise TypeError(
            f"{name}: {argument} needed a list of paths such as [[0], ['a', 1]], got {path!r}"
        )
    here = nest
    for depth, key in enumerate(path):
        try:
            here = here.part(key) if isinstance(here, tree.Node) else here[key]
        except (KeyError, IndexError, TypeError):
            at = "/".join(map(str, path[:depth])) or "the nest"
            raise KeyError(
                f"{name}: {argument} has the path {list(path)}, but {at} has no {key!r}: "
                f"{_entries(here)}"
            ) from None
    return here


def _entries(nest: Any) -> str:
    if isinstance(nest, tree.Node):
        return f"its keys are {tree.keys(nest)}"
    if isinstance(nest, dict):
        return f"its keys are {sorted(nest, key=str)}"
    if isinstance(nest, (list, tuple)):
        return f"it has {len(nest)} entries"
    return "it is a leaf"


def _shown(xs: Any, form: Any, spread: list[Any], paths: Sequence[NestPath] | None) -> Any:
    """The gradients in the structure that the caller asked for."""
    whole = tree.unflatten(form, spread)
    if paths is None:
        return whole
    parts = [_follow("", "", whole, path) for path in paths]
    return parts[0] if len(parts) == 1 else parts
