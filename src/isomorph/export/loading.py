"""The state dict of a torch module as the variables and state of ours: which name goes where, and
in which order of axes. What is not certain by name and class is not guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import tree
from ..conversion import to_numpy
from ..dispatch import backend_of, find_backend
from ..modules.conv import Conv, DepthwiseConv2D
from ..modules.holding import gather, look
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
from ..modules.skeleton import chain_of
from ..modules.state import value_of
from ..modules.walk import CONSTANT, MODULE, own
from .ordering import Order, orders, turn_of

if TYPE_CHECKING:
    from ..array_types import X

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
    """The weight `[channels·multiplier, 1, height, width]` of a convolution with one group a
    channel as `[height, width, channels, multiplier]`.

    >>> iso.export.depthwise_weight(np.ones((6, 1, 5, 7)), 3).shape
    (5, 7, 3, 2)
    """
    if w.ndim != 4 or w.shape[1] != 1 or w.shape[0] % channels:
        return w  # its shape is reported
    return w.reshape(channels, -1, *w.shape[2:]).transpose(2, 3, 0, 1)


def recurrent_weight(w: X, /) -> X:
    """The weight `[gates·out, in]` of an LSTM or GRU as `[in, gates·out]`; the gates keep their
    order.

    >>> iso.export.recurrent_weight(np.ones((8, 3))).shape
    (3, 8)
    """
    return w.T


Turn = Callable[[Any], Any]
PLAIN = {"w": "weight", "b": "bias"}
NORM = {**PLAIN, "mean": "running_mean", "variance": "running_var"}
HEADS = {
    "in_w": "in_proj_weight", "in_b": "in_proj_bias", "q_w": "q_proj_weight",
    "k_w": "k_proj_weight", "v_w": "v_proj_weight", "out_w": "out_proj.weight",
    "out_b": "out_proj.bias", "key": None,
}  # fmt: skip
STEPS = {
    "kernel": "weight_ih_l0", "recurrent_kernel": "weight_hh_l0", "bias": "bias_ih_l0",
    "recurrent_bias": "bias_hh_l0",
}  # fmt: skip
# What torch calls the arrays of our layers; None is what it does not have.
KNOWN: tuple[tuple[Any, Mapping[str, str | None]], ...] = (
    ((Linear, Embedding, LayerNorm, GroupNorm, RMSNorm, Conv, DepthwiseConv2D), PLAIN),
    (BatchNorm, NORM),
    (MultiHeadAttention, HEADS),
    (Recurrent, STEPS),
    (Dropout, {"key": None}),
)
COUNTER = "num_batches_tracked"
PASSED = ""  # the goal of a name that is passed over


class Home(NamedTuple):
    """Where the array of a torch name goes."""

    chain: str
    turn: Turn | None
    doubt: str = ""  # what is not known of its order


def torch_names(model: Module, /) -> dict[str, str]:
    """The names in the state dict of a torch module of the same form, and the key chain each goes
    to. An array that the model has in two places has two names.

    >>> iso.export.torch_names(iso.BatchNorm(2))
    {'running_mean': 'mean', 'running_var': 'variance', 'weight': 'w', 'bias': 'b'}
    """
    return {name: home.chain for name, home in _homes(model).items()}


def _homes(model: Any) -> dict[str, Home]:
    if not isinstance(model, Module):
        raise TypeError(f"{NAME}: needed an iso.Module, got {type(model).__name__}")
    chains = {id(x): chain for chain, x in _leaves(model).items()}
    homes: dict[str, Home] = {}
    known_orders = orders(model)

    def walk(module: Any, prefix: str, above: tuple[int, ...]) -> None:
        known = next((names for cls, names in KNOWN if isinstance(module, cls)), {})
        for local, _, _, kind, x in own(module):
            if kind == MODULE:
                # torch numbers the layers of a Sequential without a word before
                is_numbered = isinstance(module, Sequential) and local[0] == "layers"
                kept = local[1:] if is_numbered else local
                if id(x) not in above:
                    walk(x, f"{prefix}{_dotted(kept)}.", (*above, id(x)))
            elif id(x) in chains:
                name = known.get(local[0], _dotted(local))
                order = known_orders.get(id(module), Order())
                if name is not None and local[0] in order.keys:
                    turn = _turn(module, local[0]) or turn_of(order)
                    homes[prefix + name] = Home(chains[id(x)], turn, order.doubt)
                elif name is not None:
                    homes[prefix + name] = Home(chains[id(x)], _turn(module, local[0]))

    walk(model, "", (id(model),))
    return homes


def _dotted(path: tuple) -> str:
    return ".".join(map(str, path))


def _turn(module: Any, key: Any) -> Turn | None:
    """What puts the axes of a torch array into our order; None where they are the same."""
    if isinstance(module, Conv) and key == "w":
        return transpose_weight if module.transposed else conv_weight
    if isinstance(module, DepthwiseConv2D) and key == "w":
        return lambda w: depthwise_weight(w, module.w.shape[2])
    if isinstance(module, Recurrent) and "kernel" in key:
        return recurrent_weight
    return None


def load(model: Any, state_dict: Mapping[str, Any], names: Any) -> Any:
    """The meaning of `from_torch_state_dict`."""
    expected = _homes(model)
    required = {home.chain: home for home in expected.values()}
    leaves = _leaves(model)
    found: dict[str, tuple[str, Any]] = {}
    unknown, wrong, unsure = [], [], []
    for name, x in state_dict.items():
        chain, turn, doubt = _goal(name, names, expected, required)
        if chain is PASSED:
            continue
        if chain not in leaves:
            unknown.append(name if chain is None else f"{name} for {chain}")
            continue
        unsure += [f"{name} for {chain}: {doubt}"] * bool(doubt)
        trouble, values = _fitting(name, x, turn, chain, value_of(leaves[chain]))
        if not trouble and chain in found and not (found[chain][1] == values).all():
            trouble = f"{name} and {found[chain][0]} differ and are one array, {chain}"
        wrong += [trouble] * bool(trouble)
        found.setdefault(chain, (name, values))
    missing = [
        f"{' or '.join(n for n, home in expected.items() if home.chain == chain)} for {chain}"
        for chain in required
        if chain not in found
    ]
    if missing or unknown or wrong or unsure:
        said = (
            ("nothing as", missing), ("unknown names", unknown), ("what does not fit", wrong),
            ("what may be in another order, as torch's channels are first and ours last", unsure),
        )  # fmt: skip
        listed = "; ".join(f"{what}: {', '.join(these)}" for what, these in said if these)
        fix = "; say where names go with names={torch name: key chain}"
        if unsure:
            fix += (
                ", and in which order with names={torch name: (key chain, function)}, lambda w: "
                "iso.export.flat_weight(w, channels) after an image that was flattened with its "
                "channels last, lambda w: w otherwise"
            )
        raise ValueError(f"{NAME}: needed the arrays of {type(model).__name__}, got {listed}{fix}")
    _set(model, {chain: values for chain, (_, values) in found.items()})
    return model


def _goal(
    name: str, names: Any, expected: dict[str, Home], required: dict[str, Home]
) -> tuple[str | None, Turn | None, str]:
    """The key chain that a torch name goes to, None where nobody knows, what turns its axes, and
    what is not known of its order.
    """
    if names is not None and (callable(names) or name in names):
        goal: Any = names(name) if callable(names) else names[name]
        if goal is None:
            return PASSED, None, ""
        if isinstance(goal, str):
            return required.get(goal, Home(goal, None))
        return *goal, ""  # who gives a function knows the order
    if name in expected:
        return expected[name]
    return (PASSED if name.rpartition(".")[2] == COUNTER else None), None, ""


def _fitting(name: str, x: Any, turn: Turn | None, chain: str, old: Any) -> tuple[str, Any]:
    """What is wrong with an array for its place, and its values in our order of axes."""
    if find_backend(x) is None:
        return f"{name} is a {type(x).__name__}", x
    given = to_numpy(x)
    # a weight of another number of axes cannot be turned; its shape says enough
    values = given if turn is None or given.ndim != len(old.shape) else turn(given)
    shape, need = list(values.shape), list(old.shape)
    if shape == need:
        return "", values
    became = "" if shape == list(given.shape) else f", for us {shape},"
    return f"{name} {list(given.shape)}{became} for {chain} {need}", values


def _leaves(model: Any) -> dict[str, Any]:
    """What the model has at each key chain that can be set."""
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
        return xp.astype(xp.from_numpy(values[chain].copy(), xp.device_of(old)), old.dtype)

    variables, state, _ = map(new, gather(model))
    if variables:
        model.v = variables
    if state:
        model.state = state
