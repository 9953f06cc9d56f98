"""The full grid of convolutions: dims × layout × filter format × groups × stride × dilation ×
x_dilation × padding. Every run tests a sample; `slow` tests all.

Values and both gradients in float64, within 1e-10, are compared with naive loops and with
`jax.lax`. So is the composed form that backends inherit and may replace. The formats of one
convolution share the expected values and, on JAX, one program, because JAX compiles each. For the
same reason only every fourth of the sample is compared with `jax.lax`.
"""

import random
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from frameworks import BACKENDS, enable_x64, jax

import isomorph as iso
from isomorph.backends.composed import Backend
from isomorph.core.dispatch import load
from isomorph.meanings import conv_plan
from oracles import SEED, numpy_of

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
FORMATS = ("channel_last", "channel_first")
LAYOUTS = tuple(product(FORMATS, FORMATS))  # (x, filters)


class Point(NamedTuple):
    """A convolution, in any layout."""

    dims: int
    groups: int
    stride: int
    dilation: int
    x_dilation: int
    padding: str
    transposed: bool = False


AXES = ((1, 2, 3), (1, 2, 4), (1, 2, 3), (1, 2))
FORWARD = [Point(*p) for p in product(*AXES, (1, 2), PADDINGS)]
TRANSPOSED = [Point(*p, True) for p in product(*AXES, (1,), PADDINGS)]


def test_the_grid_is_large():
    assert len(set(FORWARD)) * len(LAYOUTS) == 2160
    assert len(set(TRANSPOSED)) * len(LAYOUTS) == 1080


# JAX compiles each of them.
SAMPLES = [
    pytest.param(backend, n, marks=pytest.mark.slow if backend == "jax" and n >= 5 else ())
    for backend in BACKENDS
    for n in range(20)
]


@pytest.mark.parametrize(("backend", "number"), SAMPLES, indirect=["backend"])
def test_a_sample_of_the_grid(backend, number):
    rng = random.Random(f"{SEED} {backend} {number}")
    for point in [*rng.sample(FORWARD, 2), rng.choice(TRANSPOSED)]:
        check(backend, point, [rng.choice(LAYOUTS)], asks_lax=number % 4 == 0)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_the_whole_grid(backend, dims, stride, padding):
    checked = 0
    for point in FORWARD + TRANSPOSED:
        if (point.dims, point.stride, point.padding) == (dims, stride, padding):
            checked += check(backend, point, LAYOUTS, asks_lax=True)
    assert checked == 72
    jax.clear_caches()


def check(backend, point, layouts, asks_lax):
    """Check one point of the grid; returns the number of calls checked."""
    x, w, c = _arrays(point)
    expected = [_loops(point), *([_lax(point)] if asks_lax else [])]
    calls, given = [], []
    for layout in layouts:
        of_x, of_w = _turns(point, layout)
        there = [iso.convert(a, backend) for a in (of_x(x), of_w(w), of_x(c))]
        calls.append((layout, "own", _public(point, layout)))
        given.append(there)
        if layout == layouts[0] or backend != "jax":  # JAX takes seconds to compile it
            calls.append((layout, "composed", _composed(backend, point, layout, *there[:2])))
            given.append(there)

    def run(given):
        return [_results(call, *there) for (_, _, call), there in zip(calls, given)]

    found = _compiled(run, given) if backend == "jax" else run(given)
    for (layout, way, _), results in zip(calls, found, strict=True):
        of_x, of_w = _turns(point, layout)
        message = f"{point} {layout} {way} ISOMORPH_SEED={SEED}"
        for wanted in expected:
            for a, b, of in zip(results, wanted, (of_x, of_x, of_w), strict=True):
                a, b = numpy_of(a), of(b)
                assert a.shape == b.shape, message
                np.testing.assert_allclose(a, b, rtol=0, atol=1e-10, err_msg=message)
    return len(layouts)


def _public(point, layout):
    """The call of the public function."""
    padding = _padding(point)
    options = {
        "dims": point.dims,
        "data_format": layout[0],
        "filter_format": layout[1],
        "dilations": point.dilation,
        "feature_group_count": point.groups,
    }
    if point.transposed:
        return lambda x, w: iso.conv_general_transpose(x, w, point.stride, padding, **options)
    options["x_dilations"] = point.x_dilation
    return lambda x, w: iso.conv_general_dilated(x, w, point.stride, padding, **options)


def _composed(backend, point, layout, x, w):
    """The composed form that every backend inherits."""
    strides, pads = point.stride, _padding(point)
    if point.transposed:
        plan = conv_plan.transposed(
            "grid", point.dims, x, w, None, strides, pads, None, FORMATS, *layout, point.dilation,
            point.groups,
        )  # fmt: skip
    else:
        how = (
            "grid", point.dims, strides, pads, FORMATS, *layout, point.x_dilation, point.dilation,
            point.groups,
        )  # fmt: skip
        plan = conv_plan.forward(x, w, None, how)
    meaning, own = Backend.conv_transpose if point.transposed else Backend.conv, load(backend)
    return lambda x, w: meaning(own, x, w, None, plan)


def _results(func, x, w, c):
    def loss(x, w):
        y = func(x, w)
        return iso.namespace(y).sum(c * y), y

    (dx, dw), y = iso.grad(loss, argnums=(0, 1), has_aux=True)(x, w)
    return [y, dx, dw]


def _turns(point, layout):
    """How to turn x and the filters from channels last into the layout."""
    turned = (
        conv_oracles.filters_first_transposed if point.transposed else conv_oracles.filters_first
    )
    same = lambda a: a
    first = "channel_first"
    return conv_oracles.first if layout[0] == first else same, turned if layout[
        1
    ] == first else same


def _padding(point):
    padding = PADDINGS[point.padding]
    return padding if isinstance(padding, (str, int)) else padding[: point.dims]


def _case(point):
    """The convolution for the loops; for a transposed one, the convolution whose gradient it is."""
    n, sizes, k = point.dims, SIZES[point.dims], KERNELS[point.dims]
    each = lambda value: (value,) * n
    padding, strides, dilations = _padding(point), each(point.stride), each(point.dilation)
    pads = {"SAME": None, "VALID": each((0, 0)), 1: each((1, 1))}.get(padding, padding)
    if point.transposed:  # default output sizes, by the definition of each padding
        spans = [(a - 1) * point.dilation + 1 for a in k]
        sizes = tuple(
            a * point.stride + (0 if pads is None else max(span - point.stride, 0) - sum(pads[i]))
            for i, (a, span) in enumerate(zip(sizes, spans))
        )
    if pads is None:
        wide = tuple((a - 1) * point.x_dilation + 1 for a in sizes)
        pads = conv_oracles.same(wide, k, strides, dilations)
    return conv_oracles.Case(
        sizes, k, strides, pads, each(point.x_dilation), dilations, point.groups
    )


@cache
def _arrays(point):
    """x, the filters and a cotangent."""
    into, out, groups = 4, 8, point.groups
    case = _case(point)
    ends = (into, out // groups) if point.transposed else (into // groups, out)
    shapes = (2, *SIZES[point.dims], into), (*case.k, *ends)
    size = case.sizes if point.transposed else case.size
    return conv_oracles.drawn(0, *shapes, (2, *size, out))


@cache
def _loops(point):
    """Value and gradients by naive loops."""
    x, w, c = _arrays(point)
    case = _case(point)
    linear = conv_oracles.transposed(case) if point.transposed else conv_oracles.forward(case)
    return [linear.apply(x, w), linear.back_x(c, w), linear.back_w(x, c)]


@cache
def _lax(point):
    """Value and gradients by `jax.lax.conv_general_dilated`."""
    x, w, c = _arrays(point)
    case = _case(point)
    letters = "DHW"[3 - len(case.k) :]
    form = f"N{letters}C"

    def conv(x, w):
        return jax.lax.conv_general_dilated(
            x, w, case.strides, case.pads, case.x_dilations, case.dilations,
            (form, f"{letters}IO", form), case.groups,
        )  # fmt: skip

    def func(x, w):
        if not point.transposed:
            return conv(x, w)
        like = jax.ShapeDtypeStruct((x.shape[0], *case.sizes, w.shape[-1] * case.groups), x.dtype)
        w = jax.numpy.swapaxes(w, -1, -2)
        return jax.linear_transpose(lambda v: conv(v, w), like)(x)[0]

    def run(x, w, c):
        y, pull = jax.vjp(func, x, w)
        return y, *pull(c)

    with enable_x64(True):
        return [np.asarray(a) for a in _compiled(run, x, w, c)]


def _compiled(func, *args):
    """`func` compiled in a third of the usual time: a program that runs once need not be fast."""
    return jax.jit(func).lower(*args).compile({"xla_backend_optimization_level": 0})(*args)
