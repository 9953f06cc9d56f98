"""The full grid of convolutions: dims × layout × filter format × groups × stride × dilation ×
x_dilation × padding, a sample in every run, all of it under `slow`.

Values and both gradients, in float64 within 1e-10, against `jax.lax` (on JAX itself: against naive
loops), and what a backend does itself against the composed meaning it inherits. In the sample only
every fifth point asks JAX, which compiles each anew; the others are compared with the loops.
"""

import os
import random
from itertools import product
from typing import NamedTuple

import jax
import numpy as np
import pytest

import isomorph as iso
from isomorph.backends.base import Backend
from isomorph.dispatch import load
from isomorph.layers import canonical
from oracles import numpy_of

from . import conv_oracles

SIZES = {1: (7,), 2: (6, 5), 3: (4, 3, 4)}
KERNELS = {1: (3,), 2: (3, 2), 3: (2, 1, 2)}
PADDINGS = {
    "same": "SAME",
    "valid": "VALID",
    "int": 1,
    "pairs": ((1, 2), (0, 1), (2, 0)),
    "crop": ((-1, 2), (1, -1), (-1, 1)),
}


class Point(NamedTuple):
    """A place in the grid."""

    dims: int
    data_format: str
    filter_format: str
    groups: int
    stride: int
    dilation: int
    x_dilation: int
    padding: str
    transposed: bool = False


FORMATS = ("channel_last", "channel_first")
AXES = ((1, 2, 3), FORMATS, FORMATS, (1, 2, 4), (1, 2, 3), (1, 2))
FORWARD = [Point(*p) for p in product(*AXES, (1, 2), PADDINGS)]
TRANSPOSED = [Point(*p, True) for p in product(*AXES, (1,), PADDINGS)]
SEED = int(os.environ.get("CONV_SEED", random.randrange(1 << 30)))


def test_the_grid_is_large(backend):
    assert len(FORWARD) == 2160
    assert len(TRANSPOSED) == 1080


def test_a_sample_of_the_grid(backend):
    print(f"CONV_SEED={SEED}")
    rng = random.Random(f"{SEED} {backend}")
    count = 10 if backend == "jax" else 20  # which compiles each of them
    for i, point in enumerate(rng.sample(FORWARD, 2 * count) + rng.sample(TRANSPOSED, count)):
        check(backend, point, compiling=i % 5 == 0)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_the_whole_grid(backend, dims, stride, padding):
    checked = 0
    for point in FORWARD + TRANSPOSED:
        if (point.dims, point.stride, point.padding) == (dims, stride, padding):
            check(backend, point)
            checked += 1
    assert checked == 72
    jax.clear_caches()


def check(backend, point, compiling=True):
    n, groups = point.dims, point.groups
    sizes, k = SIZES[n], KERNELS[n]
    padding = PADDINGS[point.padding]
    padding = padding if isinstance(padding, (str, int)) else padding[:n]
    into, out = 4, 8
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, *sizes, into))
    w = rng.standard_normal(
        (*k, *((into, out // groups) if point.transposed else (into // groups, out)))
    )
    strides, ones = (point.stride,) * n, (1,) * n
    dilations, x_dilations = (point.dilation,) * n, (point.x_dilation,) * n

    options = {
        "dims": n,
        "data_format": point.data_format,
        "filter_format": point.filter_format,
        "dilations": point.dilation,
        "feature_group_count": groups,
    }
    if point.transposed:
        turned = conv_oracles.filters_first_transposed
        ours = lambda x, w: iso.conv_general_transpose(x, w, point.stride, padding, **options)
    else:
        turned = conv_oracles.filters_first
        options["x_dilations"] = point.x_dilation
        ours = lambda x, w: iso.conv_general_dilated(x, w, point.stride, padding, **options)
    of_x = conv_oracles.first if point.data_format == "channel_first" else lambda x: x
    of_w = turned if point.filter_format == "channel_first" else lambda w: w

    spans = [(a - 1) * point.dilation + 1 for a in k]
    if point.transposed:  # the default sizes, by the definition of each padding
        kept = _pairs(padding, n)
        wide = tuple(
            a * point.stride + (0 if kept is None else max(span - point.stride, 0) - sum(kept[i]))
            for i, (a, span) in enumerate(zip(sizes, spans))
        )
        pads = kept or conv_oracles.same(wide, k, strides, dilations)
        case = conv_oracles.Case(wide, k, strides, pads, ones, dilations, groups)
        linear = conv_oracles.transposed(case)
    else:
        wide = tuple((a - 1) * point.x_dilation + 1 for a in sizes)
        pads = _pairs(padding, n) or conv_oracles.same(wide, k, strides, dilations)
        case = conv_oracles.Case(sizes, k, strides, pads, x_dilations, dilations, groups)
        linear = conv_oracles.forward(case)
    if backend == "jax" or not compiling:
        y = linear.apply(x, w)
        c = rng.standard_normal(y.shape)
        expected = [y, linear.back_x(c, w), linear.back_w(x, c)]
    else:
        c, expected = _lax(case, x, w, point.transposed, rng)
    expected = [of_x(expected[0]), of_x(expected[1]), of_w(expected[2])]

    arrays = [iso.convert(a, backend) for a in (of_x(c), of_x(x), of_w(w))]
    _compare(_results(backend, ours, *arrays), expected, point)

    if backend == "jax" and not compiling:
        return
    own = load(backend)
    make = canonical.transposed if point.transposed else canonical.forward
    rest = (None,) if point.transposed else ()
    end = () if point.transposed else (point.x_dilation,)
    plan = make(
        "grid", n, arrays[1], arrays[2], None, point.stride, padding, *rest, FORMATS,
        point.data_format, point.filter_format, *end, point.dilation, groups,
    )  # fmt: skip
    meaning = Backend.conv_transpose if point.transposed else Backend.conv
    composed = lambda x, w: meaning(own, x, w, None, plan)
    _compare(_results(backend, composed, *arrays), expected, point)


def _pairs(padding, n):
    """The padding as pairs, None for SAME."""
    if padding == "SAME":
        return None
    return ((0, 0),) * n if padding == "VALID" else ((1, 1),) * n if padding == 1 else padding


def _results(backend, func, c, x, w):
    def loss(x, w, c):
        y = func(x, w)
        return iso.namespace(y).sum(c * y), y

    both = iso.grad(loss, argnums=(0, 1), has_aux=True)
    both = iso.jit(both) if backend == "jax" else both  # which compiles every single call otherwise
    (dx, dw), y = both(x, w, c)
    return [y, dx, dw]


def _compare(found, expected, point):
    for a, b in zip(found, expected):
        a = numpy_of(a)
        assert a.shape == b.shape, f"{point} CONV_SEED={SEED}"
        message = f"{point} CONV_SEED={SEED}"
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-10, err_msg=message)


def _lax(case, x, w, transposed, rng):
    """A cotangent, and value and gradients for it by `jax.lax.conv_general_dilated`."""
    letters = "DHW"[3 - len(case.k) :]
    form = f"N{letters}C"

    def conv(x, w):
        return jax.lax.conv_general_dilated(
            x, w, case.strides, case.pads, case.x_dilations, case.dilations,
            (form, f"{letters}IO", form), case.groups,
        )  # fmt: skip

    def func(x, w):
        if not transposed:
            return conv(x, w)
        like = jax.ShapeDtypeStruct((x.shape[0], *case.sizes, w.shape[-1] * case.groups), x.dtype)
        w = jax.numpy.swapaxes(w, -1, -2)
        return jax.linear_transpose(lambda v: conv(v, w), like)(x)[0]

    with jax.enable_x64(True):
        shape = jax.eval_shape(func, x, w).shape
        c = rng.standard_normal(shape)

        @jax.jit
        def run(c, x, w):
            y, pull = jax.vjp(func, x, w)
            return y, *pull(c)

        return c, [np.asarray(a) for a in run(c, x, w)]
