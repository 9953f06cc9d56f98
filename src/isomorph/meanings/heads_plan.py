"""Multi-head attention before anything is computed: its arguments in normal form (`Arrays` and
`Scoring`), what follows from their shapes (`HeadsPlan`), and all error messages about shapes.

The shapes of masks are checked later, against the shape of the scores, in `layers/heads.py`.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from .shapes import Sizes, known

NAME = "multi_head_attention"


class Arrays(NamedTuple):
    """The arrays to project and the weights; None if not given. Also used for their shapes."""

    query: Any
    key: Any
    value: Any
    in_proj_weights: Any
    q_proj_weights: Any
    k_proj_weights: Any
    v_proj_weights: Any
    out_proj_weights: Any
    in_proj_bias: Any
    out_proj_bias: Any
    bias_k: Any
    bias_v: Any
    static_k: Any
    static_v: Any


class Scoring(NamedTuple):
    """The scale of the products of queries and keys, and their masks."""

    scale: Any  # None for 1/√D
    mask: Any  # True attends
    attention_mask: Any  # True excludes
    key_padding_mask: Any
    is_causal: bool


class HeadsPlan(NamedTuple):
    """Everything known about a call of multi-head attention except its arrays. While the batch
    size N is not known, it is None, and -1 in the shapes for `reshape`.
    """

    batched: bool
    batch_first: bool
    one: bool  # query, key and value are the same array
    scores: tuple  # shape of the scores, [N, heads, L, S], without added keys
    width: int  # E
    depth: int  # D
    split_query: Sizes  # [N, L, heads, D]
    split_key: Sizes  # [N, S, heads, D], where S counts bias_k; also for values
    joined: Sizes  # [N, L, E]
    adds_zero: bool  # an additional key and value of zeros
    extra: int  # how many keys are added
    weighs: bool  # whether weights are returned too
    averages: bool  # whether they are averaged over the heads


def shapes_of(arrays: Arrays) -> Arrays:
    """The shapes of query, key and value, which must agree, and of the other arrays."""
    q, k, v = tuple(arrays.query.shape), tuple(arrays.key.shape), tuple(arrays.value.shape)
    alike = len(q) == len(k) == len(v) in (2, 3)
    if not alike or k[:-1] != v[:-1]:
        raise ValueError(
            f"{NAME}: needed query [N, L, E], key [N, S, K] and value [N, S, V], or all without N, "
            f"got {list(q)}, {list(k)} and {list(v)}"
        )
    return Arrays(q, k, v, *[None if x is None else tuple(x.shape) for x in arrays[3:]])


def plan_of(
    shapes: Arrays,
    one: bool,
    heads: Any,
    batch_first: bool,
    adds_zero: bool,
    weighs: bool,
    averages: bool,
) -> HeadsPlan:
    """The plan for `shapes_of` some arrays; not cached."""
    batched = len(shapes.query) == 3
    n, length = _sizes(shapes.query, batched, batch_first)
    others, keys = _sizes(shapes.key, batched, batch_first)
    width = _width(shapes)
    _check_heads(heads, width)
    if n != others and None not in (n, others):
        raise ValueError(
            f"{NAME}: needed the same batch size, got {n} in query and {others} in key and value"
        )
    _check_features(shapes, width)
    _check_weights(shapes, width)
    depth, extra, split_keys = width // heads, 0, keys
    if shapes.bias_k is not None or shapes.bias_v is not None:
        _check_biases(shapes, width)
        extra = 1
    if shapes.static_k is not None or shapes.static_v is not None:
        keys = _static_keys(shapes, n, heads, depth)
    else:
        split_keys = keys + extra  # a TypeError if their number is not known
    batch, others = known((n, others))
    return HeadsPlan(
        batched, batch_first, one, (n, heads, length, keys), width, depth,
        (batch, length, heads, depth), (others, split_keys, heads, depth), (batch, length, width),
        adds_zero, extra + 1 if adds_zero else extra, weighs, averages,
    )  # fmt: skip


def four_axes(shape: tuple, scores: tuple) -> tuple:
    """The shape of a three-axis `attention_mask` with an axis for heads, of size 1 if it has no
    heads; other shapes are returned unchanged.
    """
    if len(shape) != 3:
        return shape
    n, heads = scores[:2]
    per_head = n is not None and shape[0] == n * heads
    return (n, int(heads), *shape[1:]) if per_head else (shape[0], 1, *shape[1:])


# ---- checks of shapes ----------------------------------------------------------------------------


def check_shape(word: str, shape: tuple | None, wanted: tuple) -> None:
    """Check a shape (None: not given) against the one wanted; unknown sizes fit any."""
    if shape is None or shape == wanted:
        return
    if len(shape) != len(wanted) or any(
        a != b and None not in (a, b) for a, b in zip(shape, wanted)
    ):
        raise ValueError(f"{NAME}: needed {word} {list(wanted)}, got {list(shape)}")


def _sizes(shape: tuple, batched: bool, batch_first: bool) -> tuple:
    """N and the length of a sequence."""
    if not batched:
        return 1, shape[0]
    return (shape[0], shape[1]) if batch_first else (shape[1], shape[0])


def _width(shapes: Arrays) -> int:
    """E, the features of all heads together."""
    features, whole = shapes.query[-1], shapes.in_proj_weights
    first = shapes.q_proj_weights
    missing = (first, shapes.k_proj_weights, shapes.v_proj_weights).count(None)
    if whole is not None:
        if missing < 3:
            raise ValueError(
                f"{NAME}: needed in_proj_weights, or q_, k_ and v_proj_weights, got both"
            )
        rows = whole[0]
        if len(whole) != 2 or rows % 3 or whole[1] != features:
            raise ValueError(
                f"{NAME}: needed in_proj_weights [3E, E] for the {features} features of query, "
                f"got {list(whole)}"
            )
        return rows // 3
    if missing == 3:
        return features
    if missing:
        raise ValueError(f"{NAME}: needed all of q_, k_ and v_proj_weights or none, got some")
    return first[0]


def _check_heads(heads: Any, width: int) -> None:
    whole = hasattr(heads, "__index__") and not isinstance(heads, bool)
    if not whole or heads < 1 or width % heads:
        raise ValueError(
            f"{NAME}: needed num_heads that divides the {width} features, got {heads!r}"
        )


def _check_features(shapes: Arrays, width: int) -> None:
    """Check that the features of query, key and value fit their weights."""
    wanted = width if shapes.in_proj_weights is None else shapes.query[-1]
    for role, shape, word, weights in (
        ("query", shapes.query, "q_proj_weights", shapes.q_proj_weights),
        ("key", shapes.key, "k_proj_weights", shapes.k_proj_weights),
        ("value", shapes.value, "v_proj_weights", shapes.v_proj_weights),
    ):
        if weights is not None:
            check_shape(word, weights, (width, shape[-1]))
        elif shape[-1] != wanted:
            raise ValueError(
                f"{NAME}: needed {role} of {wanted} features, got {shape[-1]}; for other "
                "numbers of features give q_, k_ and v_proj_weights"
            )


def _check_weights(shapes: Arrays, width: int) -> None:
    """Check the weights of the output projection, and the biases of all projections."""
    check_shape("in_proj_bias", shapes.in_proj_bias, (3 * width,))
    rows = width
    if shapes.out_proj_weights is not None:
        rows = shapes.out_proj_weights[0]
        check_shape("out_proj_weights", shapes.out_proj_weights, (rows, width))
    check_shape("out_proj_bias", shapes.out_proj_bias, (rows,))


def _check_biases(shapes: Arrays, width: int) -> None:
    """Check the additional key and value."""
    _check_pair("bias_k", shapes.bias_k, "bias_v", shapes.bias_v)
    for word, shape in (("bias_k", shapes.bias_k), ("bias_v", shapes.bias_v)):
        if prod(shape) != width:
            raise ValueError(f"{NAME}: needed {word} of {width} elements, got {list(shape)}")


def _static_keys(shapes: Arrays, n: Any, heads: int, depth: int) -> int:
    """The number of static keys, which replace the projected ones."""
    _check_pair("static_k", shapes.static_k, "static_v", shapes.static_v)
    if shapes.bias_k is not None:
        raise ValueError(f"{NAME}: needed bias_k or static_k, got both")
    for shape in (shapes.static_k, shapes.static_v):
        if len(shape) != 3 or shape[0] != n * heads or shape[2] != depth:
            raise ValueError(
                f"{NAME}: needed static_k and static_v [N·num_heads, S, D], "
                f"{[n * heads, 'S', depth]}, got {list(shape)}"
            )
    return shapes.static_k[1]


def _check_pair(a: str, first: Any, b: str, second: Any) -> None:
    if (first is None) != (second is None):
        raise ValueError(f"{NAME}: needed both {a} and {b}, or neither, got one")
