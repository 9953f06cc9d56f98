"""Traced integers as indices of `iso.at`: one program serves all values."""

import numpy as np
import pytest

import isomorph as iso
from oracles import numpy_of

X = np.sin(1.0 + np.arange(60.0)).reshape(5, 4, 3)
HOWS = ("set", "add", "multiply", "min", "max")
COMPILED = pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)

# An index made from a number, and the shape of what it selects.
INDICES = {
    "a number": (lambda p: p, (4, 3)),
    "in a tuple": (lambda p: (p,), (4, 3)),
    "of the second axis": (lambda p: (slice(None), p), (5, 3)),
    "of the last": (lambda p: (..., p), (5, 4)),
    "two": (lambda p: (p, p - 1), (3,)),
    "three": (lambda p: (p, p - 1, p - 1), ()),
    "beside a slice": (lambda p: (slice(1, 4), p, slice(None, None, 2)), (3, 2)),
    "with a new axis": (lambda p: (None, p, slice(None), None), (1, 4, 1, 3)),
    "a slice": (lambda p: slice(p, p + 2), (2, 4, 3)),
    "a slice before": (lambda p: slice(p - 1, p + 1), (2, 4, 3)),
    "a slice of one": (lambda p: (slice(None), slice(p, p + 1)), (5, 1, 3)),
    "a slice of none": (lambda p: slice(p, p), (0, 4, 3)),
    "a slice and a number": (lambda p: (slice(p, 2 + p), p), (2, 3)),
    "two slices": (lambda p: (slice(p - 1, p), slice(p - 1, p + 1)), (1, 2, 3)),
    "a span": (lambda p: iso.span(p, 3), (3, 4, 3)),
    "a span and a number": (lambda p: (p, iso.span(p - 1, 2)), (2, 3)),
    "an array": (lambda p: p + iso.namespace(p).arange(2), (2, 4, 3)),
    "of two axes": (lambda p: p - iso.namespace(p).asarray([[0, 1], [1, 0]]), (2, 2, 4, 3)),
    "a span beside an array": (lambda p: (iso.span(p, 2), np.array([0, 2, 1])), (2, 3, 3)),
}
VALUES = (1, 2)  # both fit every index


def plain(index):
    """The index with spans replaced by slices."""
    one = lambda i: slice(i.start, i.start + i.length) if isinstance(i, iso.span) else i
    return tuple(map(one, index)) if isinstance(index, tuple) else one(index)


def expected(index, value, how):
    """The expected result, by NumPy alone."""
    y, index = X.copy(), plain(index)
    if how == "set":
        y[index] = value
    else:
        ufunc = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}
        ufunc[how].at(y, index, value)
    return y


def program(make, traces):
    """Every operation at an index, with gradients, as one function of arrays and a number."""

    def loss(x, value, p):
        place, xp = iso.at(x)[make(p)], iso.namespace(x)
        outs = [place.get(), *(getattr(place, how)(value) for how in HOWS)]
        total = sum(xp.sum(xp.sin(y * (i + 1.0))) for i, y in enumerate(outs))
        return total, outs

    def run(x, value, p):
        traces.append(1)
        (_, outs), grads = iso.value_and_grad(loss, argnums=(0, 1), has_aux=True)(x, value, p)
        return outs, grads

    return run


def check(backend, name, compiled):
    make, shape = INDICES[name]
    value = np.cos(np.arange(float(np.prod(shape)))).reshape(shape)
    to = lambda x: iso.convert(x, backend)
    traces, sure = [], []
    run = program(make, traces)
    run = iso.jit(run) if compiled else run
    for p in VALUES:
        outs, grads = run(to(X), to(value), to(np.array(p)))
        index = make(np.array(p))
        wanted = [X[plain(index)], *(expected(index, value, how) for how in HOWS)]
        for got, y in zip(outs, wanted, strict=True):
            np.testing.assert_allclose(numpy_of(got), y, rtol=1e-12, atol=1e-12, err_msg=name)
        _, slopes = program(make, sure)(X, value, np.array(p))  # NumPy
        for got, g in zip(grads, slopes, strict=True):
            np.testing.assert_allclose(numpy_of(got), g, rtol=1e-9, atol=1e-11, err_msg=name)
    if compiled:
        assert len(traces) == 1


# These cover what the others are made of; torch takes half a minute for each.
BASIC = ["a number", "two", "two slices", "a slice and a number", "a span and a number",
         "with a new axis"]  # fmt: skip
BASIC_BY_XLA = [*BASIC, "of the last", "a slice before", "a span beside an array", "an array"]
COMPILED_NAMES = {"jax": BASIC_BY_XLA, "tensorflow": BASIC_BY_XLA, "torch": BASIC}
CELLS = [
    pytest.param(backend, name, marks=() if name in names else pytest.mark.slow)
    for backend, names in COMPILED_NAMES.items()
    for name in INDICES
]


@pytest.mark.parametrize("name", INDICES)
def test_as_they_are(backend, name):
    check(backend, name, compiled=False)


@pytest.mark.parametrize(("backend", "name"), CELLS, indirect=["backend"])
def test_compiled_one_program_for_all_values(backend, name):
    check(backend, name, compiled=True)


@pytest.mark.parametrize("compiled", [False, True])
def test_filling_an_output_in_a_loop(backend, compiled):
    xs = iso.convert(np.arange(1.0, 7.0), backend)
    traces = []

    def total(xs):
        traces.append(1)
        xp = iso.namespace(xs)

        def body(i, out):
            return iso.at(out)[i].set(iso.at(xs)[i].get() ** 2 + iso.at(out)[i - 1].get())

        return xp.sum(iso.fori_loop(0, 6, body, xp.zeros_like(xs)) ** 2)

    both = iso.value_and_grad(total)
    value, grad = (iso.jit(both) if compiled else both)(xs)
    sums = np.cumsum(np.arange(1.0, 7.0) ** 2)
    np.testing.assert_allclose(float(value), np.sum(sums**2), rtol=1e-12)
    slope = [2 * x * np.sum(2 * sums[i:]) for i, x in enumerate(np.arange(1.0, 7.0))]
    np.testing.assert_allclose(numpy_of(grad), slope, rtol=1e-12)
    assert len(traces) == 1


@pytest.mark.parametrize(
    ("backend", "name"),
    [cell for cell in CELLS if cell.values[0] != "torch"],
    indirect=["backend"],
)
def test_in_a_compiled_loop_where_no_index_is_a_constant(backend, name):
    """If XLA were asked for a constant index, it would refuse the loop, and TensorFlow would
    retrace it.
    """
    make, shape = INDICES[name]
    value = np.cos(np.arange(float(np.prod(shape)))).reshape(shape)
    traces = []

    def run(x, value, first):
        traces.append(1)
        xp = iso.namespace(x)

        def body(i, carry):
            out, total = carry
            place = iso.at(out)[make(first + i)]
            return place.add(value), total + xp.sum(xp.sin(place.get()))

        return iso.fori_loop(0, 2, body, (x, xp.sum(x) * 0))

    to = lambda x: iso.convert(x, backend)
    out, total = iso.jit(run)(to(X), to(value), to(np.array(1)))
    wanted, sines = X.copy(), 0.0
    for p in VALUES:
        index = plain(make(np.array(p)))
        sines += np.sin(wanted[index]).sum()
        np.add.at(wanted, index, value)
    np.testing.assert_allclose(numpy_of(out), wanted, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(float(total), sines, rtol=1e-11, atol=1e-12)
    assert len(traces) == 1


@pytest.mark.parametrize("start", [lambda p: p, lambda p: p - 1])
def test_slices_of_each_example(backend, start):
    """vmap with a different start for each example."""
    to = lambda x: iso.convert(x, backend)
    rows, places = X.reshape(5, 12), np.array([1, 5, 2, 9, 10])

    def run(row, p):
        slope = iso.grad(lambda x: iso.namespace(x).sum(iso.at(x)[start(p) : p + 2].get() ** 2))
        place = iso.at(row)[start(p) : p + 2]
        return place.get(), place.set(0.5), place.multiply(2.0), slope(row)

    found = [numpy_of(y) for y in iso.vmap(run)(to(rows), to(places))]
    for i, p in enumerate(places):
        for got, wanted in zip(found, run(rows[i], int(p)), strict=True):
            np.testing.assert_allclose(got[i], wanted, rtol=1e-12)


@pytest.mark.parametrize("backend", ["jax", "torch"], indirect=True)
def test_slices_whose_length_differs_are_refused(backend):
    """Also in nested maps, where two different indices may happen to be equal."""
    x, i = iso.convert(np.arange(9.0), backend), iso.convert(np.array([0, 1]), backend)
    with pytest.raises(TypeError, match=r"iso\.span\(start, length\)"):
        iso.vmap(lambda p: iso.at(x)[p : 2 * p + 1].get())(i)
    with pytest.raises(TypeError, match=r"iso\.span\(start, length\)"):
        iso.vmap(lambda p: iso.vmap(lambda q: iso.at(x)[q : p + 2].get())(i))(i)


@COMPILED
def test_a_mask_that_decides_a_size_is_right_or_says_what_to_write(backend):
    to = lambda x: iso.convert(x, backend)
    value = np.arange(float((X > 0).sum()))
    programs = {
        "add": (lambda x, v, p: iso.at(x)[x[:, 0, 0] > 0, p].add(2.0), X.copy()),
        "set": (lambda x, v, p: iso.at(x)[x > 0].set(v), X.copy()),
        "get": (lambda x, v, p: iso.at(x)[x > 0].get(), X[X > 0]),
    }
    programs["add"][1][X[:, 0, 0] > 0, 1] += 2.0
    programs["set"][1][X > 0] = value
    refused = {"jax": {"add", "set", "get"}, "tensorflow": set(), "torch": {"add", "get"}}
    for name, (func, wanted) in programs.items():
        args = to(X), to(value), to(np.array(1))
        if name in refused[backend]:
            with pytest.raises((TypeError, IndexError), match=r"xp\.where"):
                iso.jit(func)(*args)
        else:
            np.testing.assert_allclose(numpy_of(iso.jit(func)(*args)), wanted, rtol=1e-12)


@COMPILED
def test_a_cache_of_fixed_size(backend):
    """A key-value cache, filled one position at a time."""
    to = lambda x: iso.convert(x, backend)
    traces = []

    @iso.jit
    def step(cache, new, p):
        traces.append(1)
        return iso.at(cache)[:, p : p + 1].set(new), iso.at(cache)[:, iso.span(p, 1)].get()

    cache, wanted = to(np.zeros((2, 4, 3))), np.zeros((2, 4, 3))
    for p in range(4):
        new = np.full((2, 1, 3), p + 1.0)
        cache, before = step(cache, to(new), to(np.array(p)))
        np.testing.assert_array_equal(numpy_of(before), wanted[:, p : p + 1])
        wanted[:, p : p + 1] = new
        np.testing.assert_array_equal(numpy_of(cache), wanted)
    assert len(traces) == 1


@pytest.mark.parametrize("kind", ["int8", "uint8", "int32", "int64"])
def test_every_integer_counts_from_the_end(backend, kind):
    if kind.startswith("u"):
        numbers = [3]
    else:
        numbers = [3, -2]
    for p in numbers:
        place = iso.at(iso.convert(X, backend))[iso.convert(np.array(p, kind), backend)]
        np.testing.assert_array_equal(numpy_of(place.get()), X[p])


@pytest.mark.parametrize("backend", ["jax", "tensorflow"], indirect=True)
def test_what_does_not_fit_reads_nan_and_writes_nothing(backend):
    to = lambda x: iso.convert(x, backend)

    @iso.jit
    def run(x, whole, p):
        places = [iso.at(x)[p], iso.at(x)[iso.span(p, 2)]]
        return (
            [place.get() for place in places],
            [place.set(0.0) for place in places],
            iso.at(whole)[p].get(),
        )

    whole = np.arange(5)
    for p in (5, -6, 2**31 - 1):
        reads, writes, number = run(to(X), to(whole), to(np.array(p)))
        assert all(np.isnan(numpy_of(y)).all() for y in reads)
        for y in writes:
            np.testing.assert_array_equal(numpy_of(y), X)
        assert numpy_of(number) in whole


@pytest.mark.parametrize("backend", ["jax", "tensorflow"], indirect=True)
def test_a_slice_that_would_be_empty_does_not_fit(backend):
    """At p = 0 NumPy's `x[p - 1 : p]` is x[-1:0], which is empty: it is not the last row."""
    to = lambda x: iso.convert(x, backend)
    run = iso.jit(lambda x, p: (iso.at(x)[p - 1 : p].get(), iso.at(x)[p - 1 : p].set(0.0)))
    for p in (0, 1, 5, -1, -4):
        read, written = map(numpy_of, run(to(X), to(np.array(p))))
        wanted = X.copy()
        wanted[p - 1 : p] = 0.0
        np.testing.assert_array_equal(written, wanted)
        if p:
            np.testing.assert_array_equal(read, X[p - 1 : p])
        else:
            assert np.isnan(read).all()


@pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)
def test_a_cut_fraction_is_no_known_length(backend):
    """`int(p / 2 + 1)` may differ from `int(p / 2) + 1` by rounding."""
    x, p = iso.convert(X, backend), iso.convert(np.array(1), backend)

    def run(x, p):
        xp = iso.namespace(x)
        half = xp.astype(p, xp.float64) / 2
        first, last = (xp.astype(y, xp.int64) for y in (half, half + 1.0))
        return iso.at(x)[first:last].get()

    with pytest.raises(TypeError, match="needed a slice whose length is known"):
        iso.jit(run)(x, p)


def test_a_span_that_does_not_fit(backend):
    x = iso.convert(np.arange(5.0), backend)
    np.testing.assert_array_equal(numpy_of(iso.at(x)[iso.span(-2, 2)].get()), [3.0, 4.0])
    for start, length in ((4, 2), (-6, 1), (0, 6)):
        with pytest.raises(IndexError, match="needed a span within 5 places"):
            iso.at(x)[iso.span(start, length)].get()
    with pytest.raises(ValueError, match="needed a length of at least 0"):
        iso.span(0, -1)


@pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)
def test_a_length_that_nobody_knows(backend):
    x, p, q = (iso.convert(y, backend) for y in (X, np.array(1), np.array(3)))
    for index in (
        lambda p, q: slice(p, q),
        lambda p, q: slice(p, None),
        lambda p, q: slice(None, q),
    ):
        with pytest.raises(TypeError, match=r"iso.at\(x\)\[iso.span\(start, length\)\]"):
            iso.jit(lambda x, p, q, index=index: iso.at(x)[index(p, q)].get())(x, p, q)
        np.testing.assert_array_equal(numpy_of(iso.at(x)[index(p, q)].get()), X[index(1, 3)])


@pytest.mark.parametrize(
    ("how", "zeros"), [("multiply", 0), ("multiply", 1), ("multiply", 2), ("min", 0), ("max", 0)]
)
def test_gradients_where_positions_repeat(backend, how, zeros):
    """Compared with differences of NumPy's results, to the second order, with zero factors."""
    where = np.array([0, 2, 2, 1, 2, 0])
    x, value = np.array([1.5, -0.5, 0.25, 3.0]), np.array([0.5, 2.0, 3.0, -1.0, 0.7, 1.1])
    value[1 : 1 + zeros] = 0.0
    ufunc = {"multiply": np.multiply, "min": np.minimum, "max": np.maximum}[how]
    weights = np.array([1.0, 2.0, -1.5, 0.5])

    def by_numpy(x, value):
        y = x.copy()
        ufunc.at(y, where, value)
        return np.sum(np.sin(y) * weights)

    def ours(x, value):
        xp = iso.namespace(x)
        index = xp.asarray(where)
        return xp.sum(xp.sin(getattr(iso.at(x)[index], how)(value)) * xp.asarray(weights))

    def differences(func, v, step=1e-6):
        units = np.eye(v.size)
        return np.array([(func(v + step * e) - func(v - step * e)) / (2 * step) for e in units]).T

    to = lambda v: (iso.convert(v[:4], backend), iso.convert(v[4:], backend))
    grad = lambda v: np.concatenate([numpy_of(g) for g in iso.grad(ours, argnums=(0, 1))(*to(v))])
    both = np.concatenate([x, value])
    found = grad(both)
    np.testing.assert_allclose(
        found, differences(lambda v: by_numpy(v[:4], v[4:]), both), atol=1e-8
    )
    along = np.cos(np.arange(10.0))
    hvp = iso.hvp(ours, to(both), to(along))
    slope = (grad(both + 1e-6 * along) - grad(both - 1e-6 * along)) / 2e-6
    np.testing.assert_allclose(np.concatenate([numpy_of(g) for g in hvp]), slope, atol=1e-7)


FACTORS = [0.5, 0.0, 3.0, 0.0, 0.7, 1.1]


def product_of_rows(where, x, value):
    xp = iso.namespace(x)
    return xp.sum(xp.sin(iso.at(x)[where].multiply(value)) * (1.0 + xp.cumulative_sum(x)))


@pytest.mark.parametrize("backend", ["tensorflow"], indirect=True)
@pytest.mark.parametrize("order", [pytest.param(n, marks=pytest.mark.slow) for n in (1, 2)])
def test_products_of_as_many_factors_as_the_graph_is_given(backend, order):
    import tensorflow as tf

    x, where = np.array([1.5, -0.5, 0.25, 3.0]), np.array([0, 2, 2, 1, 2, 0])
    signature = [tf.TensorSpec([None], d) for d in (tf.int64, tf.float64, tf.float64)]

    def derived(where, x, value):
        func = lambda x, value: product_of_rows(where, x, value)
        if order == 1:
            return iso.grad(func, argnums=(0, 1))(x, value)
        return iso.hvp(func, (x, value), (x * 0.5, value * 0.5 + 1.0))

    run = tf.function(derived, input_signature=signature)
    for count in (6, 5, 3, 1, 0):
        value, at = np.array(FACTORS[:count]), where[:count]
        for got, y in zip(run(at, x, value), derived(at, x, value), strict=True):
            np.testing.assert_allclose(numpy_of(got), y, rtol=1e-12, atol=1e-13)


@pytest.mark.filterwarnings("ignore:.torch.jit.script")  # raised by torch's own import
# raised by torch's rule for vmap
@pytest.mark.filterwarnings("ignore:torch.searchsorted.*non-contiguous")
@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_products_under_the_transforms_of_torch(backend):
    import torch

    x, value = torch.tensor([1.5, -0.5, 0.25, 3.0]).double(), torch.tensor(FACTORS).double()
    where = torch.tensor([0, 2, 2, 1, 2, 0])
    func = lambda x, value: product_of_rows(where, x, value)
    slopes = torch.func.jacrev(func, argnums=(0, 1))(x, value)
    for got, g in zip(torch.func.jacfwd(func, argnums=(0, 1))(x, value), slopes, strict=True):
        np.testing.assert_allclose(got.cpu().numpy(), g.cpu().numpy(), rtol=1e-12, atol=1e-13)
    rows = torch.stack([where, where.flip(0)])
    mapped = torch.func.vmap(lambda where: product_of_rows(where, x, value))(rows)
    apart = [product_of_rows(row, x, value) for row in rows]
    np.testing.assert_allclose(mapped.cpu().numpy(), torch.stack(apart).cpu().numpy(), rtol=1e-12)
    by_numpy = iso.grad(lambda x, v: product_of_rows(where.cpu().numpy(), x, v), argnums=(0, 1))
    for got, g in zip(slopes, by_numpy(x.cpu().numpy(), value.cpu().numpy()), strict=True):
        np.testing.assert_allclose(got.cpu().numpy(), g, rtol=1e-12, atol=1e-13)


def test_the_determinant_of_nothing(backend):
    x = iso.convert(np.zeros((2, 0, 0)), backend)
    det = lambda x: iso.namespace(x).sum(iso.namespace(x).linalg.det(x))
    value, grad = iso.value_and_grad(det)(x)
    assert float(value) == 2.0
    assert tuple(grad.shape) == (2, 0, 0)
    assert tuple(iso.hvp(det, (x,), (x,))[0].shape) == (2, 0, 0)


@pytest.mark.takes("TensorFlow traces and compiles it")
@pytest.mark.parametrize("backend", ["tensorflow"], indirect=True)
def test_the_determinant_of_a_size_that_a_graph_is_given(backend):
    import tensorflow as tf

    det = lambda x: iso.namespace(x).sum(iso.namespace(x).linalg.det(x))
    unknown = tf.TensorSpec([None, None], tf.float64)
    run = tf.function(lambda x: iso.grad(det)(x), input_signature=[unknown])
    for x, cofactors in (
        ([[2.0, 1.0], [0.5, 3.0]], [[3.0, -0.5], [-1.0, 2.0]]),
        ([[1.0, 2.0], [2.0, 4.0]], [[4.0, -2.0], [-2.0, 1.0]]),
        ([[3.0]], [[1.0]]),
    ):
        np.testing.assert_allclose(run(np.array(x)), cofactors, rtol=1e-12)


def test_a_mask_with_more_slices_than_axes_behind_it(backend):
    x, mask = (iso.convert(y, backend) for y in (np.zeros((2, 3)), np.array([True, False])))
    np.testing.assert_array_equal(
        numpy_of(iso.at(x)[mask, :, ...].add(1.0)), [[1.0] * 3, [0.0] * 3]
    )
    with pytest.raises(IndexError):
        iso.at(x)[mask, :, :].set(1.0)
