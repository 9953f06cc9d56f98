"""Load the state dict of a torch module into one of ours: where each name goes, and in which order
of axes. If the name and the class do not decide it, it is an error, not a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..arrays.conversion import to_numpy
from ..core import tree
from ..core.dispatch import backend_of, find_backend
from ..modules.contents import CONSTANT, MODULE, chain_of, gather, look, own
from ..modules.conv import Conv, DepthwiseConv2D
from ..modules.layers import (
    BatchNorm,
    Dropout,
    Embedding,
    GroupNorm,
    LayerNorm,
    Linear,
    RMSNorm,
    Sequential,
)
from ..modules.module import Module
from ..modules.sequence import MultiHeadAttention, Recurrent
from ..modules.state import value_of
from .ordering import Order, orders, turn_of

if TYPE_CHECKING:
    from ..types.array_types import X

NAME = "from_torch_state_dict"


def conv_weight(w: X, /) -> X:
    """A convolution's weight `[out, in, *kernel]` as `[*kernel, in, out]`.

    >>> iso.export.conv_weight(np.ones((8, 3, 5, 7))).shape
    (5, 7, 3, 8)
    """
    return w.transpose((*range(2, w.ndim), 1, 0))


def transpose_weight(w: X, /) -> X:
    """A transposed convolution's weight `[in, out, *kernel]` as `[*kernel, in, out]`.

    >>> iso.export.transpose_weight(np.ones((3, 8, 5, 7))).shape
    (5, 7, 3, 8)
    """
    return w.transpose((*range(2, w.ndim), 0, 1))


def depthwise_weight(w: X, channels: int, /) -> X:
    """The weight `[channels·multiplier, 1, height, width]` of a convolution with one group per
    channel, as `[height, width, channels, multiplier]`.

    >>> iso.export.depthwise_weight(np.ones((6, 1, 5, 7)), 3).shape
    (5, 7, 3, 2)
    """
    if w.ndim != 4 or w.shape[1] != 1 or w.shape[0] % channels:
        return w  # `load` reports the shape
    return w.reshape(channels, -1, *w.shape[2:]).transpose(2, 3, 0, 1)


def recurrent_weight(w: X, /) -> X:
    """The weight `[gates·out, in]` of an LSTM or GRU as `[in, gates·out]`; the gates keep their
    order.

    >>> iso.export.recurrent_weight(np.ones((8, 3))).shape
    (3, 8)
    """
    return w.T


Turn = Callable[[Any], Any]  # puts a torch array into our order of axes
PLAIN = {"w": "weight", "b": "bias"}
NORM = {**PLAIN, "mean": "running_mean", "variance": "running_var"}
ATTENTION = {
    "in_w": "in_proj_weight", "in_b": "in_proj_bias", "q_w": "q_proj_weight",
    "k_w": "k_proj_weight", "v_w": "v_proj_weight", "out_w": "out_proj.weight",
    "out_b": "out_proj.bias", "key": None,
}  # fmt: skip
RECURRENT = {
    "kernel": "weight_ih_l0", "recurrent_kernel": "weight_hh_l0", "bias": "bias_ih_l0",
    "recurrent_bias": "bias_hh_l0",
}  # fmt: skip
# The torch names of the arrays of our layers; None for arrays that torch does not have.
KNOWN: tuple[tuple[Any, Mapping[str, str | None]], ...] = (
    ((Linear, Embedding, LayerNorm, GroupNorm, RMSNorm, Conv, DepthwiseConv2D), PLAIN),
    (BatchNorm, NORM),
    (MultiHeadAttention, ATTENTION),
    (Recurrent, RECURRENT),
    (Dropout, {"key": None}),
)
COUNTER = "num_batches_tracked"
IGNORED = "\0"  # the target of a torch name that is ignored; no key chain is that


class Target(NamedTuple):
    """Where the array of a torch name goes: the key chain, and how to reorder it."""

    chain: str
    turn: Turn | None
    doubt: str = ""  # why its order is uncertain


def torch_names(model: Module, /) -> dict[str, str]:
    """The names in the state dict of a torch module of the same structure, and their key chains
    here. An array in two places of the model has two names.

    >>> iso.export.torch_names(iso.BatchNorm(2))
    {'running_mean': 'mean', 'running_var': 'variance', 'weight': 'w', 'bias': 'b'}
    """
    return {name: target.chain for name, target in _targets("torch_names", model).items()}


def _targets(function: str, model: Any) -> dict[str, Target]:
    if not isinstance(model, Module):
        raise TypeError(f"{function}: needed an iso.Module, got {type(model).__name__}")
    chains = {id(x): chain for chain, x in _leaves(model).items()}
    targets: dict[str, Target] = {}
    known_orders = orders(model)

    def walk(module: Any, prefix: str, above: tuple[int, ...]) -> None:
        known = next((names for cls, names in KNOWN if isinstance(module, cls)), {})
        for local, _, _, kind, x in own(module):
            if kind == MODULE:
                # in torch, the layers of a Sequential have no "layers." before the number
                is_numbered = isinstance(module, Sequential) and local[0] == "layers"
                kept = local[1:] if is_numbered else local
                if id(x) not in above:
                    walk(x, f"{prefix}{_dotted(kept)}.", (*above, id(x)))
            elif id(x) in chains:
                name = known.get(local[0], _dotted(local))
                order = known_orders.get(id(module), Order())
                if name is not None and local[0] in order.keys:
                    turn = _turn(module, local[0]) or turn_of(order)
                    targets[prefix + name] = Target(chains[id(x)], turn, order.doubt)
                elif name is not None:
                    targets[prefix + name] = Target(chains[id(x)], _turn(module, local[0]))

    walk(model, "", (id(model),))
    return targets


def _dotted(path: tuple) -> str:
    return ".".join(map(str, path))


def _turn(module: Any, key: Any) -> Turn | None:
    """A function that puts the axes of a torch array into our order; None if they are the same."""
    if isinstance(module, Conv) and key == "w":
        return transpose_weight if module.transposed else conv_weight
    if isinstance(module, DepthwiseConv2D) and key == "w":
        return lambda w: depthwise_weight(w, module.w.shape[2])
    if isinstance(module, Recurrent) and "kernel" in key:
        return recurrent_weight
    return None


def load(model: Any, state_dict: Mapping[str, Any], names: Any) -> Any:
    """The implementation of `from_torch_state_dict`."""
    expected = _targets(NAME, model)
    required = {target.chain: target for target in expected.values()}
    leaves = _leaves(model)
    found: dict[str, tuple[str, Any]] = {}
    unknown, wrong, unsure = [], [], []
    for name, x in state_dict.items():
        chain, turn, doubt = _target_of(name, names, expected, required)
        if chain == IGNORED:
            continue
        if chain not in leaves:
            unknown.append(name if chain is None else f"{name} for {chain}")
            continue
        unsure += [f"{name} for {chain}: {doubt}"] * bool(doubt)
        trouble, values = _check_fit(name, x, turn, chain, value_of(leaves[chain]))
        if not trouble and chain in found and not (found[chain][1] == values).all():
            trouble = f"{name} and {found[chain][0]} differ, but here are one array, {chain}"
        wrong += [trouble] * bool(trouble)
        found.setdefault(chain, (name, values))
    missing = [
        f"{' or '.join(n for n, target in expected.items() if target.chain == chain)} for {chain}"
        for chain in required
        if chain not in found
    ]
    if missing or unknown or wrong or unsure:
        said = (
            ("missing", missing), ("unknown names", unknown), ("arrays that do not fit", wrong),
            ("arrays of uncertain order, as torch's channels are first and ours last", unsure),
        )  # fmt: skip
        listed = "; ".join(f"{what}: {', '.join(these)}" for what, these in said if these)
        fix = "; map names with names={torch name: key chain}"
        if unsure:
            fix += (
                ", and reorder with names={torch name: (key chain, function)}: the function is "
                "lambda w: iso.export.flat_weight(w, channels) after an image that is flattened "
                "with channels last, and lambda w: w otherwise"
            )
        raise ValueError(f"{NAME}: needed the arrays of {type(model).__name__}; {listed}{fix}")
    _set(model, {chain: values for chain, (_, values) in found.items()})
    return model


def _target_of(
    name: str, names: Any, expected: dict[str, Target], required: dict[str, Target]
) -> tuple[str | None, Turn | None, str]:
    """The key chain of a torch name (None if unknown), the function that reorders it, and why its
    order is uncertain.
    """
    if names is not None and (callable(names) or name in names):
        target: Any = names(name) if callable(names) else names[name]
        if target is None:
            return IGNORED, None, ""
        if isinstance(target, str):
            return required.get(target, Target(target, None))
        return *target, ""  # the user chose the order
    if name in expected:
        return expected[name]
    return (IGNORED if name.rpartition(".")[2] == COUNTER else None), None, ""


def _check_fit(name: str, x: Any, turn: Turn | None, chain: str, old: Any) -> tuple[str, Any]:
    """What is wrong with an array for a key chain, and its values in our order of axes."""
    if find_backend(x) is None:
        return f"{name} is a {type(x).__name__}", x
    given = to_numpy(x)
    # with another number of axes it cannot be reordered; the error shows its shape
    values = given if turn is None or given.ndim != len(old.shape) else turn(given)
    shape, need = list(values.shape), list(old.shape)
    if shape == need:
        return "", values
    became = "" if shape == list(given.shape) else f", reordered {shape},"
    return f"{name} {list(given.shape)}{became} for {chain} {need}", values


def _leaves(model: Any) -> dict[str, Any]:
    """The arrays and array states of a model, by key chain."""
    seen, found = look(model), {}
    for nest in seen.skeleton.nests[:CONSTANT]:
        for path, number in zip(nest.routes, nest.numbers):
            x = seen.leaves[number]
            if find_backend(value_of(x)) is not None:
                found[chain_of(path)] = x
    return found


def _set(model: Any, values: dict[str, Any]) -> None:
    def new(nest: Any) -> Any:
        leaves, form = tree.flatten(nest)
        return tree.unflatten(form, map(like, tree.paths(nest), leaves))

    def like(chain: str, old: Any) -> Any:
        if chain not in values:
            return old
        xp = backend_of(old)
        return xp.astype(xp.from_numpy(values[chain].copy(), xp.placement(old)), old.dtype)

    variables, state, _ = map(new, gather(model))
    if variables:
        model.v = variables
    if state:
        model.state = state
