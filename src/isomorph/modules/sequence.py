"""Layers over sequences as modules: multi-head attention, LSTM, GRU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import random
from ..core.dispatch import backend_of
from ..layers.heads import multi_head_attention
from ..layers.recurrent import gru_update, lstm_update
from . import initializers
from .initializers import Initializer, new_key
from .layers import filled, sizes
from .module import Module
from .state import State

if TYPE_CHECKING:
    from ..typing import Key


class MultiHeadAttention(Module):
    """Multi-head attention over `width` features; see `iso.multi_head_attention`.

    Holds `in_w` `[3·width, width]` and `in_b` for query, key and value, or `q_w`, `k_w` and `v_w`
    if keys or values have other widths, and `out_w` and `out_b`. Masks are as in that function:
    True in a boolean `mask` is attended to, True in `attention_mask` and `key_padding_mask` is not.

    >>> layer = iso.MultiHeadAttention(8, 2, key=0)
    >>> layer(np.ones((1, 5, 8), np.float32), is_causal=True).shape
    (1, 5, 8)
    """

    def __init__(
        self,
        width: int,
        num_heads: int,
        *,
        key_width: int | None = None,
        value_width: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        batch_first: bool = True,
        key: Key | None = None,
        w_init: Initializer | None = None,
        v: Any = None,
        with_partial_v: bool = False,
    ):
        widths = (key_width or width, value_width or width)
        sizes(
            "MultiHeadAttention", width=width, num_heads=num_heads, key_width=widths[0],
            value_width=widths[1],
        )  # fmt: skip
        if width % num_heads:
            raise ValueError(
                f"MultiHeadAttention: needed num_heads that divides {width}, got {num_heads}"
            )
        self.num_heads, self.dropout, self.batch_first = num_heads, dropout, batch_first
        draw = initializers.glorot() if w_init is None else w_init
        keys = random.split(new_key(key), 5)
        self.in_w = self.q_w = self.k_w = self.v_w = None
        if widths == (width, width):
            self.in_w = draw(keys[0, ...], (3 * width, width), fans=(width, width))
        else:
            self.q_w = draw(keys[0, ...], (width, width), fans=(width, width))
            self.k_w = draw(keys[1, ...], (width, widths[0]), fans=(widths[0], width))
            self.v_w = draw(keys[2, ...], (width, widths[1]), fans=(widths[1], width))
        self.in_b = filled(0.0, (3 * width,)) if bias else None
        self.out_w = draw(keys[3, ...], (width, width), fans=(width, width))
        self.out_b = filled(0.0, (width,)) if bias else None
        self.key = State(keys[4, ...]) if dropout else None
        super().__init__(v=v, with_partial_v=with_partial_v)

    def forward(
        self,
        query: Any,
        key: Any = None,
        value: Any = None,
        *,
        mask: Any = None,
        attention_mask: Any = None,
        key_padding_mask: Any = None,
        is_causal: bool = False,
        return_attention_weights: bool = False,
        average_attention_weights: bool = True,
    ) -> Any:
        rng = None
        if self.key is not None and self.training:
            keys = random.split(self.key.value)
            self.key.value, rng = keys[0, ...], keys[1, ...]
        return multi_head_attention(  # pyright: ignore[reportCallIssue]
            query, key=key, value=value, num_heads=self.num_heads, mask=mask,
            attention_mask=attention_mask, key_padding_mask=key_padding_mask,
            in_proj_weights=self.in_w, q_proj_weights=self.q_w, k_proj_weights=self.k_w,
            v_proj_weights=self.v_w, in_proj_bias=self.in_b, out_proj_weights=self.out_w,
            out_proj_bias=self.out_b, is_causal=is_causal, dropout=self.dropout,
            training=rng is not None, batch_first=self.batch_first, rng=rng,
            return_attention_weights=return_attention_weights,  # pyright: ignore[reportArgumentType]
            average_attention_weights=average_attention_weights,
        )  # fmt: skip


class Recurrent(Module):
    """The common part of LSTM and GRU: `kernel` `[in, gates·out]`, `recurrent_kernel` `[out,
    gates·out]`, `bias` and `recurrent_bias` `[gates·out]`.
    """

    gates: int

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        bias: bool = True,
        time_major: bool = False,
        key: Key | None = None,
        w_init: Initializer | None = None,
        recurrent_init: Initializer | None = None,
        v: Any = None,
        with_partial_v: bool = False,
    ):
        sizes(type(self).__name__, in_features=in_features, out_features=out_features)
        self.out_features, self.time_major = out_features, time_major
        keys = random.split(new_key(key))
        many = self.gates * out_features
        draw = initializers.glorot() if w_init is None else w_init
        again = initializers.orthogonal() if recurrent_init is None else recurrent_init
        self.kernel = draw(keys[0, ...], (in_features, many), fans=(in_features, out_features))
        fans = (out_features, out_features)
        self.recurrent_kernel = again(keys[1, ...], (out_features, many), fans=fans)
        self.bias = filled(0.0, (many,)) if bias else None
        self.recurrent_bias = filled(0.0, (many,)) if bias else None
        super().__init__(v=v, with_partial_v=with_partial_v)

    def start(self, x: Any) -> Any:
        """Zeros as the state before the first step."""
        xp = backend_of(x, self.kernel)
        shape = tuple(x.shape)
        batch = shape[1:-1] if self.time_major else shape[:-2]
        if None not in batch:
            return xp.zeros((*batch, self.out_features), dtype=x.dtype, device=xp.device_of(x))
        # the batch has an unknown size: build zeros from one number of each example
        one = x[0, ..., :1] if self.time_major else x[..., 0, :1]
        width = (self.out_features,)
        return xp.zeros_like(one) + xp.zeros(width, dtype=x.dtype, device=xp.device_of(x))


class LSTM(Recurrent):
    """A long short-term memory, gates i, f, g, o: `(hs, (h, c))` for x `[batch, time, in]`; starts
    from zeros unless `(h, c)` is given.

    >>> hs, (h, c) = iso.LSTM(3, 4, key=0)(np.ones((2, 5, 3), np.float32))
    >>> hs.shape, h.shape, c.shape
    ((2, 5, 4), (2, 4), (2, 4))
    """

    gates = 4

    def forward(self, x: Any, state: tuple[Any, Any] | None = None) -> tuple[Any, tuple[Any, Any]]:
        h, c = (self.start(x), self.start(x)) if state is None else state
        return lstm_update(
            x, h, c, self.kernel, self.recurrent_kernel, bias=self.bias,
            recurrent_bias=self.recurrent_bias, time_major=self.time_major,
        )  # fmt: skip


class GRU(Recurrent):
    """A gated recurrent unit, gates r, z, n: `(hs, h)` for x `[batch, time, in]`; starts from zeros
    unless `h` is given.

    >>> hs, h = iso.GRU(3, 4, key=0)(np.ones((2, 5, 3), np.float32))
    >>> hs.shape, h.shape
    ((2, 5, 4), (2, 4))
    """

    gates = 3

    def forward(self, x: Any, state: Any = None) -> tuple[Any, Any]:
        h = self.start(x) if state is None else state
        return gru_update(
            x, h, self.kernel, self.recurrent_kernel, bias=self.bias,
            recurrent_bias=self.recurrent_bias, time_major=self.time_major,
        )  # fmt: skip
