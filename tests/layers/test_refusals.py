"""What layers refuse: the same message on every backend, before a framework sees the arrays."""

import re
from pathlib import Path

import numpy as np
import pytest

import isomorph as iso
from isomorph.core.dispatch import names

LAYERS = Path(iso.__file__).parent


def of(backend, *shape, dtype=np.float32):
    return iso.convert(np.ones(shape, dtype), backend)


def attend(a, **kw):
    return iso.scaled_dot_product_attention(a(2, 4, 6), a(2, 5, 6), a(2, 5, 3), **kw)


def heads(a, **kw):
    return iso.multi_head_attention(a(2, 4, 6), **{"num_heads": 2, **kw})


def lstm(a, x=(2, 3, 4), h=(2, 5), c=(2, 5), kernel=(4, 20), recurrent=(5, 20), **kw):
    return iso.lstm_update(a(*x), a(*h), a(*c), a(*kernel), a(*recurrent), **kw)


# A call with arrays of ones, and the facts of its message; "…" is any text between two facts.
REFUSED = {
    "empty": (
        lambda a: iso.conv2d(a(1, 4, 4, 3), a(3, 3, 3, 2), 1, 0, dilations=(1, 2)),
        "conv2d: needed padded sizes of at least…[3, 5], got [4, 4]…x [1, 4, 4, 3]",
    ),
    "cropped": (
        lambda a: iso.conv_general_dilated(a(1, 4, 4, 3), a(3, 3, 3, 2), 1, -1),
        "conv_general_dilated: needed padded sizes of at least…[3, 3], got [2, 2]…x [1, 4, 4, 3]",
    ),
    "channels": (
        lambda a: iso.conv3d(a(1, 4, 4, 4, 3), a(2, 2, 2, 4, 2), 1, 0),
        "conv3d: needed filters [*k, in/groups, out] with in = 3, the channels of x, and out "
        "divisible by groups = 1, got filters [2, 2, 2, 4, 2] and x [1, 4, 4, 4, 3]",
    ),
    "depthwise": (
        lambda a: iso.depthwise_conv2d(a(1, 4, 4, 3), a(2, 2, 4, 1), 1, 0),
        "depthwise_conv2d: needed x of 4 axes and filters [k, k, in] or [k, k, in, multiplier] "
        "with…channels…got [1, 4, 4, 3] and [2, 2, 4, 1]",
    ),
    "groups": (
        lambda a: iso.conv_general_dilated(
            a(1, 4, 4, 4), a(2, 2, 2, 3), 1, 0, feature_group_count=2
        ),
        "conv_general_dilated: needed filters [*k, in/groups, out] with in = 4, the channels of x, "
        "and out divisible by groups = 2, got filters [2, 2, 2, 3] and x [1, 4, 4, 4]",
    ),
    "groups_transposed": (
        lambda a: iso.conv_general_transpose(
            a(1, 4, 4, 4), a(2, 2, 4, 1), 1, 0, feature_group_count=3
        ),
        "conv_general_transpose: needed filters [*k, in, out/groups] with in = 4, the channels of "
        "x, and divisible by groups = 3, got filters [2, 2, 4, 1] and x [1, 4, 4, 4]",
    ),
    "output_shape": (
        lambda a: iso.conv2d_transpose(
            a(2, 4, 4, 3), a(3, 3, 3, 2), 2, "VALID", output_shape=(9, 11)
        ),
        "conv2d_transpose: needed output sizes from 9 to 10, 9 to 10…x [2, 4, 4, 3], got [9, 11]",
    ),
    "output_shape_below": (
        lambda a: iso.conv1d_transpose(a(2, 4, 3), a(3, 3, 2), 3, "SAME", output_shape=(9,)),
        "conv1d_transpose: needed output sizes from 10 to 12…x [2, 4, 3], got [9]",
    ),
    "filters_dtype": (
        lambda a: iso.conv1d(a(2, 4, 3), a(3, 3, 2, dtype=np.float64), 1, 0),
        "conv1d: needed x, filters and bias of the same dtype, got float32, float64",
    ),
    "mask": (
        lambda a: attend(a, mask=a(3, 5, dtype=bool)),
        "scaled_dot_product_attention: needed mask that broadcasts to [2, 4, 5], got [3, 5]",
    ),
    "mask_longer": (
        lambda a: attend(a, mask=a(1, 2, 4, 5, dtype=bool)),
        "scaled_dot_product_attention: needed mask that broadcasts to [2, 4, 5], got [1, 2, 4, 5]",
    ),
    "mask_dtype": (
        lambda a: attend(a, mask=a(4, 5, dtype=np.int32)),
        "scaled_dot_product_attention: needed mask boolean or float32…got int32",
    ),
    "attention_mask": (
        lambda a: heads(a, attention_mask=a(3, 4, dtype=bool)),
        "multi_head_attention: needed attention_mask that broadcasts to [2, 2, 4, 4], got [3, 4]",
    ),
    "padding_mask": (
        lambda a: heads(a, key_padding_mask=a(2, 3, dtype=bool)),
        "multi_head_attention: needed key_padding_mask [2, 4], got [2, 3]",
    ),
    "heads": (
        lambda a: heads(a, num_heads=4),
        "multi_head_attention: needed num_heads that divides the 6 features, got 4",
    ),
    "no_heads": (
        lambda a: heads(a, num_heads=0),
        "multi_head_attention: needed num_heads that divides the 6 features, got 0",
    ),
    "query_groups": (
        lambda a: iso.grouped_query_attention(a(5, 4, 6), a(2, 4, 6), a(2, 4, 6)),
        "grouped_query_attention: needed as many heads in value as in key, and a number that "
        "divides…query, got 5…query, 2…key and 2…value",
    ),
    "features": (
        lambda a: iso.scaled_dot_product_attention(a(4, 6), a(4, 5), a(4, 5)),
        "scaled_dot_product_attention: needed query [..., L, F], key [..., S, F] and value [..., "
        "S, V], got [4, 6], [4, 5] and [4, 5]",
    ),
    "prob": (
        lambda a: iso.dropout(a(3), 1.0, rng=a(2, dtype=np.uint32)),
        "dropout: needed prob as a number…0 <= prob < 1, got 1.0;…name it in static=",
    ),
    "dropout_p": (
        lambda a: attend(a, dropout_p=-0.5),
        "scaled_dot_product_attention: needed 0 <= dropout_p < 1, got -0.5",
    ),
    "dropout_of_heads": (
        lambda a: heads(a, dropout=1.0, training=True),
        "multi_head_attention: needed 0 <= dropout < 1, got 1.0",
    ),
    "noise_shape": (
        lambda a: iso.dropout(a(3, 4), 0.5, rng=a(2, dtype=np.uint32), noise_shape=(3, 2)),
        "dropout: needed noise_shape with None, 1 or its size for each axis of [3, 4], got [3, 2]",
    ),
    "integers_dropped": (
        lambda a: iso.dropout(a(3, dtype=np.int32), 0.5, rng=a(2, dtype=np.uint32)),
        "dropout: needed x as floats, got int32",
    ),
    "linear": (
        lambda a: iso.linear(a(2, 4), a(3, 5)),
        "linear: needed x [*outer, *inner, in] and weight [*outer, out, in], got [2, 4] and [3, 5]",
    ),
    "linear_bias": (
        lambda a: iso.linear(a(2, 4), a(3, 4), bias=a(4)),
        "linear: needed bias [*outer, out], [3], got [4]",
    ),
    "linear_bias_that_would_broadcast": (
        lambda a: iso.linear(a(2, 4), a(3, 4), bias=a(1)),
        "linear: needed bias [*outer, out], [3], got [1]",
    ),
    "linear_bias_for_each_row": (
        lambda a: iso.linear(a(2, 4), a(3, 4), bias=a(2, 3)),
        "linear: needed bias [*outer, out], [3], got [2, 3]",
    ),
    "linear_bias_dtype": (
        lambda a: iso.linear(a(2, 5, 4), a(3, 4), bias=a(3, dtype=np.float64)),
        "linear: needed x, weight and bias of the same dtype, got float32, float32, float64",
    ),
    "linear_of_no_axes": (
        lambda a: iso.linear(a(), a(3, 4)),
        "linear: needed x [*outer, *inner, in] and weight [*outer, out, in], got [] and [3, 4]",
    ),
    "linear_vector": (
        lambda a: iso.linear(a(2, 4), a(4)),
        "linear: needed x [*outer, *inner, in] and weight [*outer, out, in], got [2, 4] and [4]",
    ),
    "linear_dtypes": (
        lambda a: iso.linear(a(2, 4), a(3, 4, dtype=np.float64)),
        "linear: needed x, weight and bias of the same dtype, got float32, float64",
    ),
    "linear_number": (
        lambda a: iso.linear(1.0, a(3, 4)),
        "linear: needed arrays as x, weight and bias, got float and {array} and NoneType",
    ),
    "list": (
        lambda a: iso.linear([1.0, 2.0], a(3, 2)),
        f"no backend handles builtins.list: needed an array of {', '.join(names()[:-1])} or "
        f"{names()[-1]}",
    ),
    "attention_number": (
        lambda a: iso.scaled_dot_product_attention(a(2, 3), 1.0, a(2, 3)),
        "scaled_dot_product_attention: needed arrays as query, key and value, got {array} and "
        "float and {array}",
    ),
    "dropout_word": (
        lambda a: attend(a, dropout_p="0.5"),
        "scaled_dot_product_attention: needed 0 <= dropout_p < 1, got '0.5'",
    ),
    "half_heads": (
        lambda a: heads(a, num_heads=2.0),
        "multi_head_attention: needed num_heads that divides the 6 features, got 2.0",
    ),
    "noise_number": (
        lambda a: iso.dropout(a(3), 0.5, rng=a(2, dtype=np.uint32), noise_shape=3),
        "dropout: needed noise_shape with None, 1 or its size for each axis of [3], got 3",
    ),
    "dims": (
        lambda a: iso.conv_general_dilated(a(1, 4, 3), a(2, 3, 2), 1, 0, dims=[1]),
        "conv_general_dilated: needed dims as 1, 2 or 3, got [1]",
    ),
    "half_dims": (
        lambda a: iso.conv_general_transpose(a(1, 4, 3), a(2, 3, 2), 1, 0, dims=1.0),
        "conv_general_transpose: needed dims as 1, 2 or 3, got 1.0",
    ),
    "kernel": (
        lambda a: lstm(a, kernel=(3, 20)),
        "lstm_update: needed kernel [in, 4·out], [4, 20], got [3, 20]",
    ),
    "recurrent": (
        lambda a: lstm(a, recurrent=(5, 15)),
        "lstm_update: needed recurrent_kernel [out, 4·out], got [5, 15]",
    ),
    "state": (
        lambda a: lstm(a, c=(3, 5)),
        "lstm_update: needed init_c [*batch, out], [2, 5], got [3, 5]",
    ),
    "no_steps": (
        lambda a: lstm(a, x=(2, 0, 4)),
        "lstm_update: needed x [*batch, time, in] …at least one step, got [2, 0, 4]",
    ),
    "recurrent_bias": (
        lambda a: lstm(a, recurrent_bias=a(5)),
        "lstm_update: needed recurrent_bias [4·out], [20], got [5]",
    ),
    "window": (
        lambda a: iso.max_pool(a(1, 4, 3), 5),
        "max_pool: needed padded sizes of at least the window [5], got [4]…x [1, 4, 3]",
    ),
    "norm_groups": (
        lambda a: iso.group_norm(a(2, 3, 4), 3),
        "group_norm: needed groups that divide the 4 channels, got 3",
    ),
}


def pinned(words, **kinds):
    """The pattern of a message: its facts in order, with any text for "…" between them."""
    return re.compile(".+".join(map(re.escape, words.format(**kinds).split("…"))))


@pytest.mark.parametrize("name", REFUSED)
def test_the_words_of_a_refusal(backend, name):
    call, words = REFUSED[name]
    with pytest.raises((TypeError, ValueError)) as caught:
        call(lambda *shape, dtype=np.float32: of(backend, *shape, dtype=dtype))
    assert pinned(words, array=type(of(backend, 1)).__name__).fullmatch(str(caught.value))
    # raised by the layer itself, not deeper down
    frames = [entry.path for entry in caught.traceback]
    own = [path.relative_to(LAYERS) for path in map(Path, frames) if path.is_relative_to(LAYERS)]
    assert Path(frames[-1]).is_relative_to(LAYERS)
    plans = tuple(f"meanings/{name}.py" for name in ("shapes", "conv_plan", "heads_plan"))
    checks = ("layers/", "core/dispatch.py", *plans)
    assert all(path.as_posix().startswith(checks) for path in own)


@pytest.mark.parametrize("name", ["mask", "heads", "output_shape", "kernel", "prob"])
@pytest.mark.parametrize("backend", ["jax", "tensorflow"], indirect=True)
def test_a_refusal_while_compiled_says_the_same(backend, name):
    """torch's compiler wraps errors that are raised inside it."""
    call, words = REFUSED[name]
    with pytest.raises((TypeError, ValueError)) as caught:
        iso.jit(lambda: call(lambda *shape, dtype=np.float32: of(backend, *shape, dtype=dtype)))()
    assert pinned(words).search(str(caught.value))
