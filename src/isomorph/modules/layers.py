"""Layers as modules: linear, embedding, norms, dropout, pooling, activations, and Sequential. Each
holds its arrays under short names and calls the function of its name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from .. import random
from ..arrays.namespaces import namespace
from ..layers import activation, norm, pooling
from ..layers.dropout import dropout
from ..layers.embedding import embedding
from ..layers.linear import linear
from . import initializers
from .initializers import Initializer, new_key
from .layer import Layer
from .state import State

if TYPE_CHECKING:
    from ..types.array_types import A
    from ..typing import ActivationName, Format, Key, Padding, PerAxis


def sizes(name: str, **given: Any) -> None:
    """Check that sizes are integers >= 1."""
    for what, size in given.items():
        if type(size) is not int or size < 1:
            raise ValueError(f"{name}: needed {what} as an int >= 1, got {size!r}")


def filled(value: float, shape: Any) -> Any:
    """An array filled with one number, on the default backend."""
    return initializers.constant(value)(None, shape)


class Linear(Layer):
    """x·wᵀ + b: `w` is `[out, in]`, `b` `[out]`.

    As in every layer, `key` is an integer or a key of `iso.random`; the weights are drawn from it.
    Without it, the key comes from the enclosing `iso.use_key`; without that too, the weights are
    random and differ each time.

    >>> layer = iso.Linear(3, 2, key=0)
    >>> {name: x.shape for name, x in layer.v.items()}
    {'w': (2, 3), 'b': (2,)}
    >>> layer(np.ones((5, 3), np.float32)).shape
    (5, 2)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        bias: bool = True,
        key: Key | None = None,
        w_init: Initializer | None = None,
        b_init: Initializer | None = None,
        v: Any = None,
        with_partial_v: bool = False,
    ):
        sizes("Linear", in_features=in_features, out_features=out_features)
        keys = random.split(new_key(key))
        fans = (in_features, out_features)
        draw = initializers.glorot() if w_init is None else w_init
        self.w = draw(keys[0, ...], (out_features, in_features), fans=fans)
        start = initializers.zeros() if b_init is None else b_init
        self.b = start(keys[1, ...], (out_features,), fans=fans) if bias else None
        super().__init__(v=v, with_partial_v=with_partial_v)

    def forward(self, x: A) -> A:
        return linear(x, self.w, bias=self.b)


class Embedding(Layer):
    """The rows of `w`, `[rows, width]`, for integer ids.

    >>> iso.Embedding(10, 4, key=0)(np.array([[1, 2]])).shape
    (1, 2, 4)
    """

    def __init__(
        self,
        rows: int,
        width: int,
        *,
        key: Key | None = None,
        w_init: Initializer | None = None,
        v: Any = None,
        with_partial_v: bool = False,
    ):
        sizes("Embedding", rows=rows, width=width)
        draw = initializers.normal(1.0) if w_init is None else w_init
        self.w = draw(new_key(key), (rows, width), fans=(rows, width))
        super().__init__(v=v, with_partial_v=with_partial_v)

    def forward(self, ids: A) -> A:
        return embedding(ids, self.w)


class Dropout(Layer):
    """Elements of x set to zero with probability `prob` while training; the others are scaled up.

    The key is state: each call uses a new one.

    >>> layer = iso.Dropout(0.5, key=0)
    >>> layer(np.ones(4)).tolist(), layer(np.ones(4)).tolist()
    ([2.0, 2.0, 0.0, 2.0], [2.0, 2.0, 2.0, 0.0])
    >>> layer.eval()(np.ones(4))
    array([1., 1., 1., 1.])
    """

    def __init__(
        self,
        prob: float,
        *,
        noise_shape: Sequence[int | None] | None = None,
        key: Key | None = None,
    ):
        if not isinstance(prob, (int, float)) or not 0 <= prob < 1:
            raise ValueError(f"Dropout: needed 0 <= prob < 1, got {prob!r}")
        self.prob, self.noise_shape = prob, noise_shape
        self.key = State(new_key(key))

    def forward(self, x: A) -> A:
        if not self.training or not self.prob:
            return x
        keys = random.split(self.key.value)
        self.key.value = keys[0, ...]
        return dropout(x, self.prob, rng=keys[1, ...], noise_shape=self.noise_shape)


class LayerNorm(Layer):
    """x normalised over its last axes, whose shape is `shape`, then times `w` plus `b`.

    >>> iso.LayerNorm(2, epsilon=0.0)(np.array([1.0, 3.0], np.float32))
    array([-1.,  1.], dtype=float32)
    """

    def __init__(
        self,
        shape: int | tuple[int, ...],
        *,
        epsilon: float = 1e-5,
        affine: bool = True,
        v: Any = None,
        with_partial_v: bool = False,
    ):
        self.shape = (shape,) if isinstance(shape, int) else tuple(shape)
        sizes("LayerNorm", **{f"size {i}": n for i, n in enumerate(self.shape)})
        self.epsilon = epsilon
        self.w = filled(1.0, self.shape) if affine else None
        self.b = filled(0.0, self.shape) if affine else None
        super().__init__(v=v, with_partial_v=with_partial_v)

    def forward(self, x: A) -> A:
        axes = tuple(range(-len(self.shape), 0))
        return norm.layer_norm(x, weight=self.w, bias=self.b, axis=axes, epsilon=self.epsilon)


class RMSNorm(Layer):
    """x divided by its root mean square over the last axis, then times `w`.

    >>> iso.RMSNorm(2, epsilon=0.0)(np.array([3.0, -3.0], np.float32))
    array([ 1., -1.], dtype=float32)
    """

    def __init__(
        self, width: int, *, epsilon: float = 1e-6, v: Any = None, with_partial_v: bool = False
    ):
        sizes("RMSNorm", width=width)
        self.epsilon = epsilon
        self.w = filled(1.0, (width,))
        super().__init__(v=v, with_partial_v=with_partial_v)

    def forward(self, x: A) -> A:
        return norm.rms_norm(x, weight=self.w, epsilon=self.epsilon)


class BatchNorm(Layer):
    """Each channel normalised by the statistics of the batch while training, else by the running
    statistics, which are state; then times `w` plus `b`.

    >>> layer = iso.BatchNorm(1, momentum=0.5)
    >>> y = layer(np.array([[1.0], [3.0]], np.float32))
    >>> layer.state
    {'mean': array([1.], dtype=float32), 'variance': array([1.5], dtype=float32)}
    """

    data_format: Format

    def __init__(
        self,
        channels: int,
        *,
        momentum: float = 0.1,
        epsilon: float = 1e-5,
        affine: bool = True,
        data_format: Format = "channel_last",
        v: Any = None,
        with_partial_v: bool = False,
    ):
        sizes("BatchNorm", channels=channels)
        self.momentum, self.epsilon, self.data_format = momentum, epsilon, data_format
        self.mean, self.variance = State(filled(0.0, (channels,))), State(filled(1.0, (channels,)))
        self.w = filled(1.0, (channels,)) if affine else None
        self.b = filled(0.0, (channels,)) if affine else None
        super().__init__(v=v, with_partial_v=with_partial_v)

    def forward(self, x: A) -> A:
        y, mean, variance = norm.batch_norm(
            x, self.mean.value, self.variance.value, weight=self.w, bias=self.b,
            training=self.training, momentum=self.momentum, epsilon=self.epsilon,
            data_format=self.data_format,
        )  # fmt: skip
        if self.training:
            self.mean.value, self.variance.value = mean, variance
        return y


class GroupNorm(Layer):
    """Each example normalised over its sizes and over each of `groups` groups of channels; then
    times `w` plus `b`.

    >>> layer = iso.GroupNorm(4, 2, epsilon=0.0)
    >>> layer(np.array([[1.0, 3.0, 2.0, 6.0]], np.float32)).tolist()
    [[-1.0, 1.0, -1.0, 1.0]]
    """

    data_format: Format

    def __init__(
        self,
        channels: int,
        groups: int,
        *,
        epsilon: float = 1e-5,
        affine: bool = True,
        data_format: Format = "channel_last",
        v: Any = None,
        with_partial_v: bool = False,
    ):
        sizes("GroupNorm", channels=channels, groups=groups)
        self.groups, self.epsilon, self.data_format = groups, epsilon, data_format
        self.w = filled(1.0, (channels,)) if affine else None
        self.b = filled(0.0, (channels,)) if affine else None
        super().__init__(v=v, with_partial_v=with_partial_v)

    def forward(self, x: A) -> A:
        return norm.group_norm(
            x, self.groups, weight=self.w, bias=self.b, epsilon=self.epsilon,
            data_format=self.data_format,
        )  # fmt: skip


class LocalResponseNorm(Layer):
    """x divided by a power of the mean square over `size` neighbouring channels; see
    `iso.local_response_norm`.

    >>> layer = iso.LocalResponseNorm(2, alpha=2.0, beta=1.0, k=0.0)
    >>> layer(np.array([[1.0, 2.0, 4.0]]))
    array([[1. , 0.4, 0.2]])
    """

    data_format: Format

    def __init__(
        self,
        size: int,
        *,
        alpha: float = 1e-4,
        beta: float = 0.75,
        k: float = 1.0,
        data_format: Format = "channel_last",
    ):
        sizes("LocalResponseNorm", size=size)
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k
        self.data_format = data_format

    def forward(self, x: A) -> A:
        return norm.local_response_norm(
            x, self.size, alpha=self.alpha, beta=self.beta, k=self.k, data_format=self.data_format
        )


class MaxPool(Layer):
    """The largest number in each window; see `iso.max_pool`.

    >>> iso.MaxPool(2)(np.array([[[1.0], [3.0], [2.0], [0.0]]])).tolist()
    [[[3.0], [2.0]]]
    """

    padding: Padding
    data_format: Format

    def __init__(
        self,
        window: PerAxis,
        strides: PerAxis | None = None,
        padding: Padding = 0,
        *,
        data_format: Format = "channel_last",
    ):
        self.window, self.strides, self.padding = window, strides, padding
        self.data_format = data_format

    def forward(self, x: A) -> A:
        return pooling.max_pool(
            x, self.window, self.strides, self.padding, data_format=self.data_format
        )


class AvgPool(Layer):
    """The mean of each window; see `iso.avg_pool`.

    >>> iso.AvgPool(2)(np.array([[[1.0], [3.0], [2.0], [0.0]]])).tolist()
    [[[2.0], [1.0]]]
    """

    padding: Padding
    data_format: Format

    def __init__(
        self,
        window: PerAxis,
        strides: PerAxis | None = None,
        padding: Padding = 0,
        *,
        data_format: Format = "channel_last",
        count_include_pad: bool = False,
    ):
        self.window, self.strides, self.padding = window, strides, padding
        self.data_format, self.count_include_pad = data_format, count_include_pad

    def forward(self, x: A) -> A:
        return pooling.avg_pool(
            x, self.window, self.strides, self.padding, data_format=self.data_format,
            count_include_pad=self.count_include_pad,
        )  # fmt: skip


class AdaptiveMaxPool(Layer):
    """The maximum in each of `size` windows; see `iso.adaptive_max_pool`.

    >>> iso.AdaptiveMaxPool(2)(np.array([[[1.0], [3.0], [2.0]]])).tolist()
    [[[3.0], [3.0]]]
    """

    data_format: Format

    def __init__(self, size: PerAxis, *, data_format: Format = "channel_last"):
        self.size, self.data_format = size, data_format

    def forward(self, x: A) -> A:
        return pooling.adaptive_max_pool(x, self.size, data_format=self.data_format)


class AdaptiveAvgPool(Layer):
    """The mean of each of `size` windows; see `iso.adaptive_avg_pool`.

    >>> iso.AdaptiveAvgPool(2)(np.array([[[1.0], [3.0], [2.0]]])).tolist()
    [[[2.0], [2.5]]]
    """

    data_format: Format

    def __init__(self, size: PerAxis, *, data_format: Format = "channel_last"):
        self.size, self.data_format = size, data_format

    def forward(self, x: A) -> A:
        return pooling.adaptive_avg_pool(x, self.size, data_format=self.data_format)


DOORS = activation.__name__
ACTIVATIONS = [
    n for n, f in vars(activation).items() if getattr(f, "__module__", "") == DOORS and n[0] != "_"
]


class Activation(Layer):
    """A function of one array, or the name of an activation, as a module; keywords are passed on to
    the function.

    >>> iso.Activation(iso.leaky_relu, alpha=0.5)(np.array([-2.0, 1.0]))
    array([-1.,  1.])
    """

    def __init__(self, function: Callable[..., Any] | ActivationName, **settings: Any):
        if isinstance(function, str):
            if function not in ACTIVATIONS:
                listed = ", ".join(ACTIVATIONS)
                raise ValueError(f"Activation: needed one of {listed}, got {function!r}")
            function = getattr(activation, function)
        if not callable(function):
            raise TypeError(f"Activation: needed a function, got {type(function).__name__}")
        self.function, self.settings = function, settings

    def forward(self, x: A) -> A:
        return self.function(x, **self.settings)


class Flatten(Layer):
    """Joins all axes after the first `keep` into one.

    >>> iso.Flatten()(np.ones((2, 3, 4))).shape
    (2, 12)
    """

    def __init__(self, keep: int = 1):
        sizes("Flatten", keep=keep)
        self.keep = keep

    def forward(self, x: A) -> A:
        shape = tuple(x.shape)
        kept = (-1 if n is None else n for n in shape[: self.keep])  # None: a batch of unknown size
        return namespace(x).reshape(x, (*kept, prod(shape[self.keep :])))


class Sequential(Layer):
    """Modules and functions of one argument, called one after the other.

    >>> net = iso.Sequential(iso.Linear(3, 4, key=0), iso.relu, iso.Linear(4, 1, key=1))
    >>> net(np.ones((2, 3), np.float32)).shape
    (2, 1)
    >>> list(net.v["layers"])
    [0, 2]
    """

    def __init__(self, *layers: Callable[..., Any], v: Any = None, with_partial_v: bool = False):
        for i, layer in enumerate(layers):
            if not callable(layer):
                raise TypeError(
                    f"Sequential: needed modules and functions, got {type(layer).__name__} at {i}"
                )
        self.layers = list(layers)
        super().__init__(v=v, with_partial_v=with_partial_v)

    def forward(self, x: A) -> A:
        for layer in self.layers:
            x = layer(x)
        return x

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, i: int) -> Callable[..., Any]:
        return self.layers[i]
