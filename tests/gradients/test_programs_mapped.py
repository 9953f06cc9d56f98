"""`vmap` over programs that use every name: each example gives the same as alone, with
derivatives.
"""

import warnings

import numpy as np
import pytest
from compiled_programs import INPUTS, measured
from compiled_table import TABLE

import isomorph as iso
from isomorph.backends.numpy import mapped
from isomorph.core.tree import flatten
from oracles import numpy_of, verbs_of

TORCH = pytest.mark.parametrize("backend", ["torch"], indirect=True)
OTHERS = pytest.mark.parametrize("backend", ["jax", "tensorflow"], indirect=True)
V = np.arange(12.0).reshape(4, 3) + 1
MASK, ROWS, PLACE = np.cos(V) > 0, np.array([0, 2]), np.array(1)
MATRICES = np.stack([np.eye(3) * 2 + 0.1 * k for k in range(4)])
IMAGE = np.sin(np.arange(32.0)).reshape(1, 4, 4, 2)
FILTERS = np.cos(np.arange(54.0)).reshape(3, 3, 2, 3)
HOWS = ("set", "add", "multiply", "min", "max")


def solve(a, b):
    return iso.namespace(a).linalg.solve(a, b)


def attend(x, y):
    return iso.scaled_dot_product_attention(x[None], y[None], y[None])


def convolve(x, w):
    return iso.conv2d(x, w, 1, "SAME")


def update(how, value=0.5):
    return lambda x, index: getattr(iso.at(x)[index], how)(value)


PAIRS = {
    "solve a matrix": (solve, MATRICES[1], V.T),
    "solve matrices and a vector": (solve, MATRICES, V[0]),
    "solve matrices and a matrix": (solve, MATRICES, V.T),
    "solve a matrix and matrices": (solve, MATRICES[1], np.stack([V.T] * 2)),
    "vecdot of columns": (lambda a, b: iso.namespace(a).vecdot(a, b, axis=-2), V, np.cos(V)),
    "span": (lambda x, i: iso.at(x)[iso.span(i, 2)].get(), V, PLACE),
    "set a span": (lambda x, i: iso.at(x)[iso.span(i, 2)].set(0.5), V, PLACE),
    "attention": (attend, V, np.cos(V)),
    "convolution": (convolve, IMAGE, FILTERS),
    "pooled": (lambda x, w: iso.max_pool(convolve(x, w), 2, 2, "VALID"), IMAGE, FILTERS),
    **{f"{how} by mask": (update(how), V, MASK) for how in HOWS},
    **{f"{how} rows by mask": (update(how), V, MASK[:, 0]) for how in ("set", "add", "max")},
    **{f"{how} rows": (update(how), V, ROWS) for how in HOWS},
    **{f"{how} a row": (update(how), V, PLACE) for how in ("set", "multiply")},
}  # fmt: skip


def compare(found, alone):
    """Compare the mapped results with those of each example alone."""
    found, alone = flatten(found)[0], list(alone)
    assert all(len(got) == len(alone) for got in found)
    for row, sure in enumerate(alone):
        for got, wanted in zip(found, flatten(sure)[0], strict=True):
            got, wanted = numpy_of(got)[row], numpy_of(wanted)
            assert got.dtype == wanted.dtype
            sizes = np.abs(wanted[np.isfinite(wanted)])
            scale = max(sizes.max(initial=0), 1e-2) if wanted.dtype.kind in "fc" else 0
            np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-9 * scale)


def check(backend, name):
    program = TABLE[name]
    func = measured(program)
    examples = [iso.convert(INPUTS[program.input] * size, backend) for size in (1.0, 0.9)]
    with warnings.catch_warnings():  # about operations that torch maps with a loop
        warnings.simplefilter("ignore")
        compare(iso.vmap(func)(iso.namespace(examples[0]).stack(examples)), map(func, examples))


@TORCH
@pytest.mark.parametrize("name", TABLE)
def test_torch_maps_every_program(backend, name):
    check(backend, name)


TEST = "a Python if, while, and, or of a mapped value, or iso.cond"
ROW_BY_ROW = {  # what NumPy does not compute for all examples at once
    **{name: {TEST} for name in ("halve", "branch", "switch")},
    "hosted": {"iso.host_function"},
    "searches": {"numpy.searchsorted"},
}


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
@pytest.mark.parametrize("name", TABLE)
def test_numpy_maps_every_program(backend, name):
    mapped.NOTED.clear()
    check(backend, name)
    assert ROW_BY_ROW.get(name, set()) == mapped.NOTED


@pytest.mark.slow
@OTHERS
@pytest.mark.parametrize("name", TABLE)
def test_the_others_map_every_program(backend, name):
    check(backend, name)


OPTIONS = {
    "pad": lambda xp, x: xp.pad(x, ((1, 1), (0, 2)), constant_values=9.0),
    "pad with infinity": lambda xp, x: xp.pad(x, ((1, 0), (0, 0)), constant_values=-np.inf),
    "pad with what is computed": lambda xp, x: xp.pad(x, ((1, 0), (0, 0)), constant_values=x[0, 0]),
    "roll both axes": lambda xp, x: xp.roll(x, 1, axis=(0, 1)),
    "roll each": lambda xp, x: xp.roll(x, (1, -2), axis=(0, 1)),
    "sort": lambda xp, x: xp.sort(x, axis=0, descending=True),
    "cumulative_prod": lambda xp, x: xp.cumulative_prod(x, axis=1, include_initial=True),
    "searchsorted": lambda xp, x: xp.searchsorted(xp.sort(x[0]), x[1], side="right"),
    "irfft": lambda xp, x: xp.fft.irfft(xp.astype(x, xp.complex128), n=5, norm="ortho", axis=0),
    "diagonal": lambda xp, x: xp.linalg.diagonal(x, offset=-1),
    "var": lambda xp, x: xp.var(x, axis=0, correction=0.5, keepdims=True),
    "matrix_norm": lambda xp, x: xp.linalg.matrix_norm(x, ord="nuc", keepdims=True),
}


@pytest.mark.filterwarnings("ignore:torch.searchsorted")  # about a copy
@pytest.mark.parametrize("name", OPTIONS)
def test_options_that_are_not_the_usual_ones(backend, xp, name):
    rng = np.random.default_rng(3)
    examples = [xp.asarray(rng.normal(size=(3, 4))) for _ in range(2)]
    func = lambda x: OPTIONS[name](xp, x)
    both = xp.stack(examples)
    compare([iso.vmap(func)(both)], [[func(x)] for x in examples])
    if backend in ("jax", "tensorflow"):
        compare([iso.jit(iso.vmap(func))(both)], [[func(x)] for x in examples])
    for x in examples:
        by_numpy = OPTIONS[name](iso.namespace(numpy_of(x)), numpy_of(x))
        np.testing.assert_allclose(numpy_of(func(x)), by_numpy, rtol=1e-9, atol=1e-12)


def derived(func, x, y):
    """Value, gradient and second derivative with respect to the float arrays."""
    xp = iso.namespace(x)
    places = [i for i, a in enumerate((x, y)) if verbs_of(xp).is_float(a.dtype)]

    def total(*floats):
        given = [x, y]
        for i, a in zip(places, floats):
            given[i] = a
        return xp.sum(xp.sin(func(*given)))

    floats = tuple((x, y)[i] for i in places)
    grads = iso.grad(total, argnums=tuple(range(len(places))))(*floats)
    return func(x, y), grads, iso.hvp(total, floats, floats)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("backend", ["numpy", "torch"], indirect=True)
def test_one_of_two_or_both_are_mapped(backend, name):
    check_pair(backend, name)


@pytest.mark.slow
@OTHERS
@pytest.mark.parametrize("name", PAIRS)
def test_the_others_map_one_of_two_or_both(backend, name):
    check_pair(backend, name)


def check_pair(backend, name):
    func, *values = PAIRS[name]
    xp = iso.namespace(iso.convert(V, backend))
    x, y = (verbs_of(xp).from_numpy(v) for v in values)
    other, another = x * 0.9, shifted(xp, y)
    run = lambda x, y: derived(func, x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        xs, ys = xp.stack([x, other]), xp.stack([y, another])
        compare(iso.vmap(run)(xs, ys), [run(x, y), run(other, another)])
        compare(iso.vmap(run, in_axes=(0, None))(xs, y), [run(x, y), run(other, y)])
        compare(iso.vmap(run, in_axes=(None, 0))(x, ys), [run(x, y), run(x, another)])


def shifted(xp, y):
    """Other values of the same kind: another mask, other positions, other numbers."""
    if y.dtype == xp.bool:
        return ~y
    return y * 1.1 if verbs_of(xp).is_float(y.dtype) else (y + 1) % 3


@TORCH
def test_what_torch_cannot_map_is_said(backend):
    x = iso.convert(V, backend)
    for func in (lambda x: iso.at(x)[x > 3].get(), lambda x: iso.namespace(x).from_dlpack(x)):
        with pytest.raises(RuntimeError, match="vmap: torch cannot map .*; call it for each exam"):
            iso.vmap(func)(x)
    with pytest.raises(RuntimeError, match="an error of my own"):
        iso.vmap(lambda x: raising())(x)


def raising():
    raise RuntimeError("an error of my own")
