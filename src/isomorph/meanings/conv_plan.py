"""The arguments of a convolution in normal form, `Plan`, and all error messages about them.

Ints become one per axis, padding becomes (low, high) pairs, formats become two flags, and the sizes
of the result are computed; a backend's convolution repeats no checks.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any, NamedTuple, SupportsIndex

from ..core.code_readers import read_as
from ..core.dispatch import dtype_of
from .shapes import GENERAL, Pairs, Sizes, is_first, other_side, pairs, remembered, shape_of, spread

FORMATS = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}


class Plan(NamedTuple):
    """A convolution without its arrays. For a transposed convolution: the convolution that it is
    the gradient of.
    """

    strides: Sizes
    pads: Pairs  # negative numbers crop
    x_dilations: Sizes
    dilations: Sizes
    groups: int
    first: bool  # x and the result are [batch, channels, *sizes], else [batch, *sizes, channels]
    filters_first: bool  # filters are [out, in/groups, *k], else [*k, in/groups, out]
    size: Sizes  # of the result
    filters: Sizes  # the shape of the filters
    # Strides, padding and dilations, each as one number if it is the same for all axes; None if
    # padding differs between the two ends, or is negative.
    alike: tuple[int | Sizes, int | Sizes, int | Sizes] | None


def plan_of(
    strides: Sizes,
    pads: Pairs,
    x_dilations: Sizes,
    dilations: Sizes,
    groups: int,
    first: bool,
    filters_first: bool,
    size: Sizes,
    filters: Sizes,
) -> Plan:
    """The plan, with the fields that follow from the arguments."""
    alike = None
    if not any(low != high or low < 0 for low, high in pads):
        ends = tuple([low for low, _ in pads])
        one = lambda s: s[0] if all(type(i) is int and i == s[0] for i in s) else s
        alike = one(strides), one(ends), one(dilations)
    return Plan(
        strides, pads, x_dilations, dilations, groups, first, filters_first, size, filters, alike
    )


PLAN_OF = remembered(plan_of)


def _ints(
    name: str, n: int, strides: Any, padding: Any, formats: Any, data: Any, filters: Any,
    x_dilations: Any, dilations: Any, groups: Any,
) -> tuple:  # fmt: skip
    """The same with tuples of ints: 1.0 would find the plan for 1."""
    return (
        name, n, spread(name, "strides", strides, n), pairs(name, padding, n), formats, data,
        filters, spread(name, "x_dilations", x_dilations, n),
        spread(name, "dilations", dilations, n), _groups(name, groups),
    )  # fmt: skip


def _forward(x: Any, filters: Any, bias: Any, how: tuple) -> Plan:
    name, n, strides, padding, formats, *rest = how
    data_format, filter_format, x_dilations, dilations, groups = rest
    shape, kernel, bias_shape = _shapes(name, x, filters, bias)
    shape, kernel = _axes(name, n, shape, kernel)
    strides = spread(name, "strides", strides, n)
    dilations = spread(name, "dilations", dilations, n)
    x_dilations = spread(name, "x_dilations", x_dilations, n)
    first = is_first(name, "data_format", data_format, formats)
    filters_first = is_first(name, "filter_format", filter_format, GENERAL)
    groups = _groups(name, groups)
    if filters_first:
        out, fewer, k = kernel[0], kernel[1], kernel[2:]
    else:
        out, fewer, k = kernel[-1], kernel[-2], kernel[:-2]
    channels, sizes = (shape[1], shape[2:]) if first else (shape[-1], shape[1:-1])
    if channels != fewer * groups or out % groups or 0 in (channels, out):
        form = "[out, in/groups, *k]" if filters_first else "[*k, in/groups, out]"
        other = shape[-1] if first else shape[1]
        turn = other_side(shape, other == fewer * groups != channels, first, formats)
        raise ValueError(
            f"{name}: needed filters {form} with in = {channels}, the channels of x, and out "
            f"divisible by groups = {groups}, got filters {list(kernel)} and x {list(shape)}{turn}"
        )
    _bias(name, bias_shape, out)
    _known(name, shape, sizes, kernel, k)
    spans = tuple([(i - 1) * d + 1 for i, d in zip(k, dilations)])
    sizes = tuple([(i - 1) * d + 1 for i, d in zip(sizes, x_dilations)])
    pads = pairs(name, padding, n)
    if pads == "SAME":
        size = tuple([-(-i // s) for i, s in zip(sizes, strides)])
        pads = _same(size, strides, spans, sizes)
    else:
        pads = ((0, 0),) * n if pads == "VALID" else pads
        room = [i + low + high - j for i, (low, high), j in zip(sizes, pads, spans)]
        if min(room) < 0:
            raise ValueError(
                f"{name}: needed padded sizes of at least the dilated filters {list(spans)}, got "
                f"{[i + j for i, j in zip(room, spans)]} for x {list(shape)}"
            )
        size = tuple([r // s + 1 for r, s in zip(room, strides)])
    return plan_of(
        strides, pads, x_dilations, dilations, groups, first, filters_first, size, kernel
    )


def _planner(most: int = 4096) -> Callable[[Any, Any, Any, tuple], Plan]:
    plans: dict[tuple, Plan] = {}

    def forward(x: Any, filters: Any, bias: Any, how: tuple) -> Plan:
        """The plan of a convolution. `how` are the function's name, the number of convolved axes,
        strides, padding, both names of data formats, data format, filter format, dilations of x
        and of the filters, and groups.
        """
        _, _, strides, padding, _, _, _, x_dilations, dilations, groups = how
        if not (
            type(strides) is type(x_dilations) is type(dilations) is type(groups) is int
            and (type(padding) is int or type(padding) is str)
        ):
            how = _ints(*how)
        key = plan = None
        try:
            key = how, x.shape, filters.shape, None if bias is None else bias.shape
            dtype = x.dtype
            if filters.dtype is dtype and (bias is None or bias.dtype is dtype):
                plan = plans.get(key)
        except (AttributeError, TypeError):  # not an array; a size without a value has no hash
            key = None
        if plan is None:
            plan = _forward(x, filters, bias, how)
            if key is not None:
                if len(plans) >= most:
                    plans.clear()
                plans[key] = plan
        return plan

    return read_as(forward, _forward)


forward = _planner()


def transposed(
    name: str,
    n: int,
    x: Any,
    filters: Any,
    bias: Any,
    strides: Any,
    padding: Any,
    output_shape: Any,
    formats: tuple[str, str],
    data_format: str,
    filter_format: str,
    dilations: Any,
    groups: int,
) -> Plan:
    """The plan of the convolution whose gradient with respect to its input is computed; `size` is
    the size of that input, which is the result here.
    """
    shape, kernel, bias_shape = _shapes(name, x, filters, bias)
    strides = spread(name, "strides", strides, n)
    dilations = spread(name, "dilations", dilations, n)
    if type(padding) is not str:
        padding = pairs(name, padding, n)
    plan = _TRANSPOSED if output_shape is None else _transposed  # output_shape may not be hashable
    return plan(
        name, n, shape, kernel, bias_shape, strides, padding, output_shape, formats, data_format,
        filter_format, dilations, _groups(name, groups),
    )  # fmt: skip


def _transposed(
    name: str,
    n: int,
    shape: Any,
    kernel: Any,
    bias_shape: Any,
    strides: Sizes,
    padding: Any,
    output_shape: Any,
    formats: tuple[str, str],
    data_format: str,
    filter_format: str,
    dilations: Sizes,
    groups: int,
) -> Plan:
    shape, kernel = _axes(name, n, shape, kernel)
    first = is_first(name, "data_format", data_format, formats)
    filters_first = is_first(name, "filter_format", filter_format, GENERAL)
    if filters_first:
        into, fewer, k = kernel[0], kernel[1], kernel[2:]
    else:
        into, fewer, k = kernel[-2], kernel[-1], kernel[:-2]
    channels, sizes = (shape[1], shape[2:]) if first else (shape[-1], shape[1:-1])
    if channels != into or into % groups or 0 in (into, fewer):
        form = "[in, out/groups, *k]" if filters_first else "[*k, in, out/groups]"
        other = shape[-1] if first else shape[1]
        turn = other_side(shape, other == into != channels, first, formats)
        raise ValueError(
            f"{name}: needed filters {form} with in = {channels}, the channels of x, and divisible "
            f"by groups = {groups}, got filters {list(kernel)} and x {list(shape)}{turn}"
        )
    _bias(name, bias_shape, fewer * groups)
    _known(name, shape, sizes, kernel, k)
    spans = tuple([(i - 1) * d + 1 for i, d in zip(k, dilations)])
    pads = pairs(name, padding, n)
    if pads == "SAME":
        size = tuple([i * s for i, s in zip(sizes, strides)])
        least = [(i - 1) * s + 1 for i, s in zip(sizes, strides)]
    else:
        given = ((0, 0),) * n if pads == "VALID" else pads
        lost = [low + high for low, high in given]
        size = tuple([i * s + max(j - s, 0) - p for i, s, j, p in zip(sizes, strides, spans, lost)])
        least = [(i - 1) * s + j - p for i, s, j, p in zip(sizes, strides, spans, lost)]
    most = [i + s - 1 for i, s in zip(least, strides)]
    if output_shape is not None:
        size = _wanted(name, output_shape, shape, fewer * groups, first, n)
    if any(not max(low, 1) <= i <= high for i, low, high in zip(size, least, most)):
        ranges = ", ".join(f"{max(low, 1)} to {high}" for low, high in zip(least, most))
        raise ValueError(
            f"{name}: needed output sizes from {ranges} for x {list(shape)}, got {list(size)}"
        )
    if pads == "SAME":
        pads = _same(sizes, strides, spans, size)
    elif pads == "VALID":
        pads = ((0, 0),) * n
    ones = (1,) * n
    return plan_of(strides, pads, ones, dilations, groups, first, filters_first, size, kernel)


_TRANSPOSED = remembered(_transposed)


def rank(name: str, dims: Any) -> int:
    """The number of axes that are convolved."""
    if type(dims) is int and dims in FORMATS:
        return dims
    if not isinstance(dims, SupportsIndex) or dims not in FORMATS:
        raise ValueError(f"{name}: needed dims as 1, 2 or 3, got {dims!r}")
    return int(dims)


def _shapes(name: str, x: Any, filters: Any, bias: Any) -> tuple[Any, Any, Any]:
    """The shapes of arrays, which must have the same dtype."""
    shape, kernel = shape_of(name, "x", x), shape_of(name, "filters", filters)
    dtype, found = x.dtype, filters.dtype
    one = found is dtype or found == dtype
    if bias is None:
        bias_shape = None
    else:
        bias_shape, found = shape_of(name, "bias", bias), bias.dtype
        one = one and (found is dtype or found == dtype)
    if not one:
        listed = ", ".join(dtype_of(a) for a in (x, filters, bias) if a is not None)
        raise TypeError(f"{name}: needed x, filters and bias of the same dtype, got {listed}")
    return shape, kernel, bias_shape


def _axes(name: str, n: int, shape: Any, kernel: Any) -> tuple[tuple, tuple]:
    shape, kernel = tuple(shape), tuple(kernel)
    if len(shape) != n + 2 or len(kernel) != n + 2:
        raise ValueError(
            f"{name}: needed x and filters with {n + 2} axes, got {list(shape)} and {list(kernel)}"
        )
    return shape, kernel


def _bias(name: str, shape: Any, out: int) -> None:
    if shape is not None and tuple(shape) != (out,):
        raise ValueError(f"{name}: needed bias [out], {[out]}, got {list(shape)}")


def _groups(name: str, groups: Any) -> int:
    if not hasattr(groups, "__index__") or index(groups) < 1:
        raise ValueError(f"{name}: needed feature_group_count as a positive int, got {groups!r}")
    return int(index(groups))


def _known(name: str, shape: tuple, sizes: tuple, kernel: tuple, k: tuple) -> None:
    if None in sizes or 0 in sizes or 0 in k:
        raise ValueError(
            f"{name}: needed x and filters with known sizes of at least 1, got {list(shape)} and "
            f"{list(kernel)}"
        )


def _same(out: Sizes, strides: Sizes, spans: Sizes, sizes: Sizes) -> Pairs:
    """The padding that turns `sizes` into `out`; an odd one is added at the high end."""
    found = []
    for o, s, j, i in zip(out, strides, spans, sizes):
        total = max((o - 1) * s + j - i, 0)
        found.append((total // 2, total - total // 2))
    return tuple(found)


def _wanted(
    name: str, output_shape: Any, shape: tuple, channels: int, first: bool, n: int
) -> Sizes:
    """The sizes from an output shape, which may include batch and channels."""
    try:
        given: Any = tuple([i if i is None else index(i) for i in output_shape])
    except TypeError:
        given = ()
    if len(given) == n and None not in given:
        return given
    if len(given) == n + 2:
        batch, sizes = given[0], given[2:] if first else given[1:-1]
        deep = given[1] if first else given[-1]
        fits = shape[0] is None or batch in (None, -1, shape[0])
        if fits and deep == channels and None not in sizes:
            return sizes
    full = ["batch", channels, *["size"] * n] if first else ["batch", *["size"] * n, channels]
    raise ValueError(
        f"{name}: needed output_shape as {n} sizes or as "
        f"[{', '.join(map(str, full))}] for x {list(shape)}, got {output_shape!r}"
    )
