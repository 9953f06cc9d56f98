"""Find the arrays whose order differs from torch's because of the channels of images.

Channels are first in torch and, by default, last here. So a flattened image has another order, and
the weights of the layers after it must be reordered. A `Sequential` is followed layer by layer.
What a user's own `forward` does is unknown. If the widths of its layers allow a flattened image,
their order is marked as uncertain, and not guessed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from ..modules.contents import MODULE, is_module, own
from ..modules.conv import Conv, DepthwiseConv2D
from ..modules.layers import (
    Activation,
    AdaptiveAvgPool,
    AdaptiveMaxPool,
    AvgPool,
    BatchNorm,
    Dropout,
    Embedding,
    Flatten,
    GroupNorm,
    LayerNorm,
    Linear,
    LocalResponseNorm,
    MaxPool,
    RMSNorm,
    Sequential,
)
from ..modules.sequence import MultiHeadAttention, Recurrent

if TYPE_CHECKING:
    from ..types.array_types import X

ADAPTIVE = (AdaptiveMaxPool, AdaptiveAvgPool)
# Functions that keep the order of features, by name, if they belong to one of ROOTS.
KEEPING = frozenset((
    "abs", "celu", "cos", "elu", "erf", "exp", "gelu", "hard_swish", "hardswish", "hardtanh",
    "leaky_relu", "log_sigmoid", "log_softmax", "mish", "relu", "relu6", "selu", "sigmoid", "silu",
    "sin", "softmax", "softplus", "softsign", "square", "swish", "tanh",
))  # fmt: skip
ROOTS = ("isomorph", "jax", "keras", "numpy", "tensorflow", "torch")
# What passes between layers: unknown; in torch's order; a channels-last image; that, flattened.
UNKNOWN, SAME, IMAGE, FLAT = range(4)
OURS = f"{Linear.__module__.rpartition('.')[0]}."


class Flow(NamedTuple):
    """What is known about the input of a layer."""

    kind: int = UNKNOWN
    channels: int | None = None  # of an image, or of what may be one
    pixels: int | None = None  # numbers per channel
    dims: int | None = None  # spatial axes of an image
    makers: tuple = ()  # the layers that made these features


class Order(NamedTuple):
    """How the arrays of a layer differ from torch's."""

    channels: int | None = None  # of the flattened image that they apply to
    is_image: bool = False  # they apply to an image
    doubt: str = ""  # why the order is uncertain
    keys: frozenset = frozenset(("w", "b", "mean", "variance"))  # the arrays concerned


def flat_weight(w: X, channels: int, /, *, axis: int = -1) -> X:
    """Reorder an axis from `channels·sizes`, an image flattened by torch, to our order
    `sizes·channels`. For the weight `[out, in]` of a linear layer after a flattened image, or with
    `axis=0` for a linear layer whose outputs are reshaped into an image.

    >>> iso.export.flat_weight(np.arange(6), 2)
    array([0, 3, 1, 4, 2, 5])
    """
    if not w.ndim or w.shape[axis] % channels:
        return w  # `load` reports the shape
    axis %= w.ndim
    apart = (*w.shape[:axis], channels, w.shape[axis] // channels, *w.shape[axis + 1 :])
    return w.reshape(apart).swapaxes(axis, axis + 1).reshape(w.shape)


def turn_of(order: Order) -> Callable[[Any], Any] | None:
    """A function that puts an array into our order; None if nothing changes."""
    if order.is_image:
        return lambda w: w.transpose((*range(1, w.ndim), 0))
    return None if order.channels is None else lambda w: flat_weight(w, order.channels or 1)


def orders(model: Any) -> dict[int, Order]:
    """The order of the arrays of each layer that takes features, by id of the layer."""
    walk = Walk()
    walk.follow(model, Flow(), ())
    for module, width in walk.norms:
        if width in walk.doubted:
            walk.note(module, Order(doubt=walk.doubted[width]))
    return walk.orders


class Walk:
    """A walk over a model: a `Sequential` in order of calls, others in order of attributes."""

    def __init__(self) -> None:
        self.orders: dict[int, Order] = {}
        self.images: list[int] = []  # channels of the channels-last images so far
        self.widths: set[int] = set()  # of the features so far
        self.doubted: dict[int, str] = {}  # widths of uncertain order, and why
        self.norms: list[tuple[Any, int]] = []  # norms of unknown inputs, and their widths

    def note(self, module: Any, order: Order) -> None:
        old = self.orders.setdefault(id(module), order)
        if old != order:
            both = "it takes a flattened image in one place and other features in another"
            doubt = old.doubt or order.doubt or both
            self.orders[id(module)] = Order(doubt=doubt, keys=old.keys | order.keys)

    def follow(self, module: Any, flow: Flow, above: tuple[int, ...]) -> Flow:
        """The output of a module or function with the input `flow`."""
        if not is_module(module):
            return flow if keeps_order(module) else _unknown(flow)
        if id(module) in above:
            return _unknown(flow)
        above = (*above, id(module))
        if _is_ours(getattr(type(module), "forward", None)):
            if isinstance(module, Sequential):
                for layer in module.layers:
                    flow = self.follow(layer, flow, above)
                return flow
            for cls, way in WAYS:
                if isinstance(module, cls):
                    return way(self, module, flow)
        for step in own(module):
            if step.kind == MODULE:
                self.follow(step.value, Flow(), above)
        if isinstance(module, Conv | DepthwiseConv2D | Linear):  # a subclass with its own forward
            way = Walk.linear if isinstance(module, Linear) else Walk.convolution
            way(self, module, Flow())
        return _unknown(flow)

    def function(self, module: Any, flow: Flow) -> Flow:
        return flow if keeps_order(module.function) else _unknown(flow)

    def unchanged(self, module: Any, flow: Flow) -> Flow:
        return flow

    def convolution(self, module: Any, flow: Flow) -> Flow:
        if _is_channels_first(module):
            return Flow(SAME)
        if isinstance(module, DepthwiseConv2D):
            into, out, dims = module.w.shape[2], module.w.shape[2] * module.w.shape[3], 2
        else:
            groups, dims = module.groups, module.dims
            into, out = module.w.shape[-2:]
            into, out = (into, out * groups) if module.transposed else (into * groups, out)
        self.image(flow, into)
        self.images.append(out)
        return Flow(IMAGE, out, dims=dims)

    def pool(self, module: Any, flow: Flow) -> Flow:
        if _is_channels_first(module):
            return Flow(SAME)
        self.image(flow, None)
        dims = flow.dims if flow.kind == IMAGE else None
        pixels = None
        if isinstance(module, ADAPTIVE):
            sizes = [module.size] * (dims or 1) if isinstance(module.size, int) else module.size
            is_known = dims is not None or module.size == 1 or sizes is module.size
            pixels = prod(sizes) if is_known and None not in sizes else None
        return Flow(IMAGE, None if flow.kind == SAME else flow.channels, pixels, dims)

    def image(self, flow: Flow, channels: int | None) -> None:
        """This layer needs an image. An unknown function may have made it from features."""
        for maker in flow.makers if flow.kind == UNKNOWN else ():
            n = maker.w.shape[0] if isinstance(maker, Linear) else _width(maker)
            if channels is None or n is None or (n > channels and n % channels == 0):
                of = "" if channels is None else f" of {channels} channels"
                self.note(maker, Order(doubt=f"its outputs may be made into an image{of}"))

    def linear(self, module: Any, flow: Flow) -> Flow:
        out, n = module.w.shape
        self.features(module, flow, n)
        self.widths.add(out)
        if flow.kind == IMAGE:
            return flow._replace(channels=out)
        return Flow(SAME, makers=(module,))

    def norm(self, module: Any, flow: Flow) -> Flow:
        n = _width(module)
        if flow.kind == FLAT:
            self.features(module, flow, n)
            is_moved = flow.pixels != 1 and flow.channels not in (1, n)
            if isinstance(module, GroupNorm) and module.groups > 1 and is_moved:
                self.note(module, Order(doubt="its groups have other features than torch's"))
                return _unknown(flow)
        elif isinstance(module, LayerNorm) and len(module.shape) > 1:
            whole = flow.kind == IMAGE and len(module.shape) - 1 == flow.dims
            self.note(module, Order(is_image=whole))
        elif flow.kind == UNKNOWN and n is not None:
            self.norms.append((module, n))
        elif flow.kind == SAME and flow.makers:
            return flow._replace(makers=(*flow.makers, module))
        is_channels = isinstance(module, BatchNorm | GroupNorm) and not _is_channels_first(module)
        if is_channels and flow.kind in (UNKNOWN, IMAGE):
            self.image(flow, n)
            return flow._replace(channels=n or flow.channels, makers=())
        return flow

    def neighbours(self, module: Any, flow: Flow) -> Flow:
        """A norm over neighbouring channels: the order must be torch's, or that of a channels-last
        image.
        """
        alike = flow.kind == SAME or (flow.kind == IMAGE and not _is_channels_first(module))
        return flow if alike else _unknown(flow)

    def flatten(self, module: Any, flow: Flow) -> Flow:
        if flow.kind in (SAME, FLAT):
            return flow
        if module.keep > 1:
            is_kept = flow.kind == IMAGE and flow.dims is not None and module.keep > flow.dims
            return flow if is_kept else _unknown(flow)
        known = flow.kind == IMAGE or flow.channels is not None
        return Flow(FLAT, flow.channels, flow.pixels) if known else _unknown(flow)

    def tokens(self, module: Any, flow: Flow) -> Flow:
        """Layers whose outputs have the same order in torch."""
        if isinstance(module, Recurrent):
            self.widths.add(module.out_features)
        else:
            w = module.w if isinstance(module, Embedding) else module.out_w
            self.widths.add(w.shape[-1])
        return Flow(SAME)

    def features(self, module: Any, flow: Flow, n: int | None) -> None:
        """Note the order of a layer with `n` input features, which may be a flattened image."""
        doubt, channels = "", None
        if flow.kind == FLAT and flow.pixels != 1:
            channels = flow.channels
            if channels is None and n and flow.pixels and n % flow.pixels == 0:
                channels = n // flow.pixels
            if channels is None or n is None:
                doubt = "an image of an unknown number of channels was flattened before it"
            elif channels in (1, n) or n % channels:
                channels = None
        elif flow.kind == UNKNOWN and n not in self.widths and n not in self.images:
            possible = [c for c in self.images if 1 < c < (n or 0) and (n or 0) % c == 0]
            if possible:
                doubt = f"its inputs may be a flattened image of {possible[-1]} channels"
                self.doubted[n or 0] = doubt
        keys = frozenset("w") if isinstance(module, Linear) else Order().keys  # not b
        self.note(module, Order(None if doubt else channels, doubt=doubt, keys=keys))


WAYS: tuple[tuple[Any, Callable[[Walk, Any, Flow], Flow]], ...] = (
    (Activation, Walk.function),
    (Dropout, Walk.unchanged),
    ((Conv, DepthwiseConv2D), Walk.convolution),
    ((MaxPool, AvgPool, *ADAPTIVE), Walk.pool),
    (Linear, Walk.linear),
    ((BatchNorm, GroupNorm, LayerNorm, RMSNorm), Walk.norm),
    (LocalResponseNorm, Walk.neighbours),
    (Flatten, Walk.flatten),
    ((Embedding, MultiHeadAttention, Recurrent), Walk.tokens),
)


def keeps_order(function: Any) -> bool:
    """Whether a function is known to keep the order of features."""
    while isinstance(function, partial):
        function = function.func
    root = (getattr(function, "__module__", None) or "").partition(".")[0]
    return root in ROOTS and getattr(function, "__name__", "") in KEEPING


def _is_ours(forward: Any) -> bool:
    """Whether a `forward` is defined by a layer of isomorph."""
    return (getattr(forward, "__module__", None) or "").startswith(OURS)


def _unknown(flow: Flow) -> Flow:
    """An unknown flow; it still names the layers that made the features."""
    return Flow(makers=flow.makers)


def _is_channels_first(module: Any) -> bool:
    """Whether the channels of a layer's images are first, as in torch."""
    return module.data_format in ("channel_first", "NCHW")


def _width(module: Any) -> int | None:
    """The number of features or channels of a norm, if known."""
    if isinstance(module, BatchNorm):
        return module.mean.value.shape[0]
    if isinstance(module, LayerNorm):
        return module.shape[-1] if len(module.shape) == 1 else None
    return None if module.w is None else module.w.shape[0]
