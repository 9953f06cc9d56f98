"""Where torch and array-api-compat differ from NumPy or lose a gradient: values are compared with
NumPy, gradients with finite differences.
"""

import itertools
import math

import numpy as np
import pytest
from frameworks import torch

import isomorph as iso
from isomorph.core import tree
from oracles import central_gradient, numpy_of

pytestmark = pytest.mark.parametrize("backend", ["torch"], indirect=True)

X = np.array([0.7, 1.3, 2.1])
BESIDE = np.array([0.1, 0.4, 1.9])


# Conversion


@pytest.mark.parametrize("target", ["to_np", "to_jx", "to_tf"])
def test_lazy_signs_are_resolved_before_an_array_leaves(backend, target):
    name = {"to_np": "numpy", "to_jx": "jax", "to_tf": "tensorflow"}[target]
    z = torch.tensor([1 + 2j, 3 - 4j], dtype=torch.complex64)
    np.testing.assert_array_equal(np.asarray(iso.convert(z.conj().imag, name)), [-2.0, 4.0])
    np.testing.assert_array_equal(np.asarray(iso.convert(z.conj(), name)), [1 - 2j, 3 + 4j])


# Functions that take tensors where others take numbers

MASK = np.array([True, False, True])
FROM_TENSORS = {
    "asarray": lambda xp, x, c: xp.asarray(x),
    "asarray-copy": lambda xp, x, c: xp.asarray(x, copy=True),
    "asarray-list": lambda xp, x, c: xp.asarray([x[0] * 2, x[1], 3.0]),
    "asarray-nest": lambda xp, x, c: xp.asarray([(x, x * x), [c, x]]),
    "asarray-deep": lambda xp, x, c: xp.asarray([[1, x[0]], [x[1], 2.5]]),
    "linspace": lambda xp, x, c: xp.linspace(x[0], x[1], 5),
    "linspace-stop": lambda xp, x, c: xp.linspace(0, x[1], 5),
    "linspace-start": lambda xp, x, c: xp.linspace(x[1], 3, 4, endpoint=False),
    "linspace-one": lambda xp, x, c: xp.linspace(x[1], x[2], 1),
    "linspace-arrays": lambda xp, x, c: xp.linspace(x, x * x, 3),
    "arange-start": lambda xp, x, c: xp.arange(x[0], 4.0, 0.5),
    "arange-step": lambda xp, x, c: xp.arange(0.0, 4.0, x[0]),
    "full": lambda xp, x, c: xp.full((2, 2), x[0]),
    "full-like": lambda xp, x, c: xp.full_like(c, x[0]),
    "pad": lambda xp, x, c: xp.pad(x, ((1, 2),), constant_values=2.0),
    "pad-constant": lambda xp, x, c: xp.pad(c, ((1, 2),), constant_values=x[0]),
    "clip": lambda xp, x, c: xp.clip(c, x[0], x[1]),
    "clip-mixed": lambda xp, x, c: xp.clip(c, 0.2, x[1]),
    "clip-arrays": lambda xp, x, c: xp.clip(c, x, 3.0),
    "where": lambda xp, x, c: xp.where(xp.asarray(MASK), x[0], 2.0),
    "where-second": lambda xp, x, c: xp.where(xp.asarray(MASK), 1.0, x),
    "meshgrid": lambda xp, x, c: xp.multiply(*xp.meshgrid(x, x)),
    "take": lambda xp, x, c: xp.take(x, xp.asarray([0, 2, -1])),
    "repeat": lambda xp, x, c: xp.repeat(x, 2),
    "remainder": lambda xp, x, c: xp.remainder(x, 0.4),
    "remainder-number": lambda xp, x, c: xp.remainder(7.5, x),
    "floor-divide": lambda xp, x, c: xp.floor_divide(x, 0.4) + x,
    "floor-divide-number": lambda xp, x, c: xp.floor_divide(7.5, x) + x,
    "unique-values": lambda xp, x, c: xp.unique_values(xp.flip(x)),
    "unique-counts": lambda xp, x, c: xp.unique_counts(xp.concat([x, c])).values,
    "unique-inverse": lambda xp, x, c: xp.unique_inverse(x).values,
    "unique-all": lambda xp, x, c: xp.unique_all(xp.flip(x)).values,
    "einsum": lambda xp, x, c: xp.einsum("i,j->ij", x, xp.ones(2, dtype=xp.float32)),
    "update-with-a-list": lambda xp, x, c: iso.at(c)[1:].set([x[0], 2 * x[1]]),
}


@pytest.mark.parametrize("name", FROM_TENSORS)
def test_value_is_numpys_and_no_gradient_is_lost(backend, name):
    def f(x):
        xp = iso.namespace(x)
        y = FROM_TENSORS[name](xp, x, xp.asarray(BESIDE))
        assert str(y.dtype).endswith("float64")
        weights = np.linspace(0.5, 1.5, math.prod(y.shape)).reshape(tuple(y.shape))
        return xp.sum(xp.sin(y * xp.asarray(weights)))

    x = torch.tensor(X)
    assert float(f(x)) == pytest.approx(float(f(X)), rel=1e-14)
    expected = central_gradient(f, X)
    np.testing.assert_allclose(numpy_of(iso.grad(f)(x)), expected, rtol=1e-6, atol=1e-8)
    leaf = torch.tensor(X, requires_grad=True)  # also with torch's own autograd
    f(leaf).backward()
    np.testing.assert_allclose(numpy_of(leaf.grad), expected, rtol=1e-6, atol=1e-8)


def test_asarray_of_tensors_beside_numbers_takes_the_tensors_dtype(backend, xp):
    x = torch.tensor([1.0, 2.0], dtype=torch.float16)
    assert xp.asarray([x[0], 2.5]).dtype is torch.float16
    assert xp.asarray([x[0], 2], dtype=torch.float64).dtype is torch.float64
    assert xp.asarray([torch.tensor(1), 2.5]).dtype is torch.get_default_dtype()
    assert xp.asarray([x[0], torch.tensor(1.0, dtype=torch.float64)]).dtype is torch.float64
    assert xp.asarray([torch.tensor([1, 2]), np.array([3, 4])]).tolist() == [[1, 2], [3, 4]]
    assert xp.asarray(x) is x
    assert xp.asarray(x, copy=True).data_ptr() != x.data_ptr()


def test_asarray_refuses_what_does_not_stack(backend, xp):
    x = torch.tensor(X)
    with pytest.raises(ValueError, match="items of the same shape"):
        xp.asarray([x, x[0]])
    with pytest.raises(ValueError, match="copy=False"):
        xp.asarray([x, x], copy=False)
    with pytest.raises(ValueError, match="copy=False"):
        xp.asarray(x, dtype=torch.float32, copy=False)


def test_linspace_of_tensors_ends_exactly_at_its_ends(backend, xp):
    y = xp.linspace(torch.tensor(0.1), torch.tensor(0.7), 7)
    assert y.dtype is torch.float32
    assert y[0] == torch.tensor(0.1)
    assert y[-1] == torch.tensor(0.7)


PAD_WIDTHS = {
    "one": 1,
    "one-alone": (2,),
    "pair": (1, 2),
    "row": ((1, 2),),
    "rows": ((1, 2), (0, 3)),
    "lists": [[1], [2]],
    "array": np.array([[1, 2], [3, 4]]),
    "int32": np.int64(2),
}


@pytest.mark.parametrize("widths", PAD_WIDTHS.values(), ids=PAD_WIDTHS)
@pytest.mark.parametrize("constant", [0, 1.5])
def test_pad_takes_every_form_of_widths(backend, xp, widths, constant):
    a = np.arange(6.0).reshape(2, 3)
    got = xp.pad(torch.tensor(a), widths, constant_values=constant)
    np.testing.assert_array_equal(numpy_of(got), np.pad(a, widths, constant_values=constant))


@pytest.mark.parametrize(
    "widths", [(1, 2, 3), ((1, 2),) * 3, -1, 1.5, (), ((1, 2), 3), ((1, 2, 3), (1, 2, 3))], ids=str
)
def test_pad_refuses_other_widths(backend, xp, widths):
    with pytest.raises(ValueError, match=r"pad: needed widths .* of 2 axes"):
        xp.pad(torch.ones(2, 3), widths)


def test_einsum_promotes(backend, xp):
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.linspace(0, 1, 3)
    got = xp.einsum("ij,j->i", torch.tensor(a), torch.tensor(b))
    assert got.dtype is torch.float64
    np.testing.assert_allclose(numpy_of(got), np.einsum("ij,j->i", a, b), rtol=1e-15)


# Indexing

A = np.arange(24.0).reshape(2, 3, 4)
KINDS = {
    "int": 1,
    "negative": -2,
    "int32": np.int32(1),
    "array-of-no-axes": np.array(1),
    "outside": 7,
    "outside-below": -9,
    "all": slice(None),
    "backwards": slice(None, None, -1),
    "backwards-by-two": slice(5, None, -2),
    "slice-of-int64": slice(np.int64(0), np.int64(2)),
    "new-axis": None,
    "ellipsis": Ellipsis,
    "true": True,
    "false": False,
    "true-of-no-axes": np.True_,
    "array-of-truth": np.array(True),
    "list": [0, 1, 1],
    "tuple": (0, 1),
    "range": range(2),
    "empty-list": [],
    "empty": np.array([], np.int64),
    "int8": np.array([0, -1, 1], np.int8),
    "uint8": np.array([0, 1, 1], np.uint8),
    "uint16": np.array([1, 0, 1], np.uint16),
    "uint64": np.array([1, 0], np.uint64),
    "two-axes": np.array([[0, 1], [1, 0]]),
    "outside-list": [0, 7],
    "mask-of-two": np.array([True, False]),
    "mask-list": [True, False],
    "mask-of-three": [True, False, True],
    "mask-of-four": [True, False, True, True],
    "mask-of-two-axes": A[:, :, 0] % 5 < 2,
    "mask-of-all": A % 5 < 2,
    "float": 1.5,
    "floats": np.array([1.0]),
    "text": "a",
}
FEW = ["int", "all", "backwards", "new-axis", "ellipsis", "true", "list", "uint8", "mask-of-two"]
UFUNC = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}


def updated(index, value, how):
    """NumPy's result of the update; None if a position is set twice."""
    y = A.copy()
    if how == "set":
        places = np.arange(A.size).reshape(A.shape)[index]
        if np.unique(places).size != places.size:
            return None
        y[index] = value
    else:
        UFUNC[how].at(y, index, value)
    return y


def hold(index):
    """`index` means the same in torch and NumPy, or both raise IndexError."""
    x = torch.tensor(A)
    try:
        expected = A[index]
    except IndexError:
        with pytest.raises(IndexError):
            iso.at(x)[index].get()
        for how in ("set", "add"):
            with pytest.raises(IndexError):
                getattr(iso.at(x)[index], how)(1.0)
        return
    got = iso.at(x)[index].get()
    assert tuple(got.shape) == expected.shape, index
    np.testing.assert_array_equal(numpy_of(got), expected)
    value = np.linspace(1.0, 20.0, expected.size).reshape(expected.shape)
    for how in ("set", *UFUNC):
        if (after := updated(index, value, how)) is not None:
            got = getattr(iso.at(x)[index], how)(torch.tensor(value))
            # what is repeated may be combined in another order: one rounding each
            np.testing.assert_allclose(
                numpy_of(got), after, rtol=4e-16 * (how in ("add", "multiply"))
            )
    np.testing.assert_array_equal(numpy_of(x), A)


@pytest.mark.parametrize("first", KINDS)
def test_index_means_what_numpy_means(backend, first):
    hold((KINDS[first],))
    if first != "tuple":
        hold(KINDS[first])
    for second in KINDS.values():
        hold((KINDS[first], second))


@pytest.mark.parametrize("first", FEW)
def test_index_of_three_and_four_parts_means_what_numpy_means(backend, first):
    for rest in itertools.product(FEW, repeat=2):
        hold((KINDS[first], *(KINDS[name] for name in rest)))
    for rest in itertools.product(["int", "all", "ellipsis", "list"], repeat=3):
        hold((KINDS[first], *(KINDS[name] for name in rest)))


def test_a_number_beside_arrays_counts_as_an_array(backend):
    got = iso.at(torch.tensor(A))[0, :, np.array([0, 1])].get()
    assert tuple(got.shape) == (2, 3)
    got = iso.at(torch.tensor(A))[torch.tensor(0), :, torch.tensor([0, 1])].get()
    np.testing.assert_array_equal(numpy_of(got), A[0, :, np.array([0, 1])])


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int32, torch.int64])
def test_tensor_of_integers_is_no_mask(backend, dtype):
    places = torch.tensor([0, 1, 1], dtype=dtype)
    got = iso.at(torch.tensor(X))[places].get()
    np.testing.assert_array_equal(numpy_of(got), X[[0, 1, 1]])
    got = iso.at(torch.tensor(X))[[places[0], places[1]]].get()
    np.testing.assert_array_equal(numpy_of(got), X[[0, 1]])


def test_index_of_another_framework_is_refused(backend):
    import jax.numpy as jnp

    for call in (lambda place: place.get(), lambda place: place.set(1.0)):
        with pytest.raises(TypeError, match="iso.convert"):
            call(iso.at(torch.tensor(X))[jnp.asarray([0, 1])])


@pytest.mark.parametrize("how", ["set", "add", "multiply"])
def test_value_may_have_leading_axes_of_one_element(backend, how):
    value = np.array([[[5.0, 6.0]]])
    for index in (slice(1, None), np.array([2, 0])):
        expected = X.copy()
        if how == "set":
            expected[index] = value
        else:
            UFUNC[how].at(expected, index, value[0, 0])
        got = getattr(iso.at(torch.tensor(X))[index], how)(torch.tensor(value))
        np.testing.assert_array_equal(numpy_of(got), expected)
        with pytest.raises(ValueError, match=r"broadcasts to .*shape \(2,\)"):
            getattr(iso.at(torch.tensor(X))[index], how)(torch.ones(3, 2))


@pytest.mark.parametrize(
    "index", [(0, slice(None), [0, 1]), ([1], Ellipsis, 2), (True, 1)], ids=str
)
def test_index_differentiates(backend, index):
    def f(x):
        xp = iso.namespace(x)
        y = iso.at(x)[index].get()
        return xp.sum(xp.sin(iso.at(x)[index].set(y * y))) + xp.sum(xp.cos(y))

    got = iso.grad(f)(torch.tensor(A / 10))
    np.testing.assert_allclose(numpy_of(got), central_gradient(f, A / 10), rtol=1e-6, atol=1e-8)


# Gradients share no memory


def memory(x):
    return x.untyped_storage().data_ptr()


def test_gradients_may_be_written_to(backend):
    x = torch.tensor(X)
    g1, g2 = iso.grad(lambda a, b: (a + b).sum(), argnums=(0, 1))(x, x.clone())
    g1.mul_(2)
    assert (g1.tolist(), g2.tolist()) == ([2.0] * 3, [1.0] * 3)
    cases = {
        "sum": lambda a, b: a + b,
        "identity": lambda a, b: (a, b),
        "parts": lambda a, b: torch.cat([a, b]),
        "views": lambda a, b: (a.flip(0), b.reshape(3, 1)),
        "constant": lambda a, b: (a.sum().expand(3), b.sum()),
    }
    for f in cases.values():
        out, pullback = iso.vjp(f, x, x.clone())
        seeds = tree.map(torch.ones_like, out)
        grads = pullback(seeds)
        held = {memory(s) for s in tree.flatten(seeds)[0]}
        for g in grads:
            assert memory(g) not in held
            held.add(memory(g))
            before = [h.clone() for h in grads if h is not g]
            g.mul_(7)
            assert all(torch.equal(h, b) for h, b in zip((h for h in grads if h is not g), before))
        assert all(torch.equal(s, torch.ones_like(s)) for s in tree.flatten(seeds)[0])


def test_gradients_that_are_nobody_elses_are_not_copied(backend):
    x = torch.tensor(X)
    seen = []

    class Exp(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return torch.exp(x)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx, g):
            out = g * ctx.saved_tensors[0]
            inner = out
            while torch._C._functorch.is_functorch_wrapped_tensor(inner):
                inner = torch._C._functorch.get_unwrapped(inner)
            seen.append(memory(inner))
            return out

    got = iso.grad(lambda x: Exp.apply(x).sum())(x)
    np.testing.assert_allclose(numpy_of(got), np.exp(X), rtol=1e-15)
    assert memory(got) == seen[0]


def test_gradients_inside_gradients_keep_their_history(backend):
    def f(x):
        g1, g2 = iso.grad(lambda a, b: (a * a * b).sum(), argnums=(0, 1))(x, x)
        return (g1 * g2).sum()  # 2x² · x²: the gradient is 8x³

    np.testing.assert_allclose(numpy_of(iso.grad(f)(torch.tensor(X))), 8 * X**3, rtol=1e-14)


# Linear algebra


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("upper", [False, True], ids=["lower", "upper"])
def test_cholesky_gradient_is_hermitian(backend, kind, upper):
    rng = np.random.default_rng(7)
    draw = lambda: (
        rng.normal(size=(3, 3)) + (1j * rng.normal(size=(3, 3)) if kind == "complex" else 0)
    )
    m, weights, direction = draw(), draw(), draw()
    a = m @ m.conj().T + 3 * np.eye(3)
    direction = direction + direction.conj().T

    def f(a):
        xp = iso.namespace(a)
        return xp.sum(xp.real(xp.linalg.cholesky(a, upper=upper) * xp.asarray(weights)))

    got = numpy_of(iso.grad(f)(torch.tensor(a)))
    np.testing.assert_allclose(got, got.conj().T, rtol=0, atol=1e-16)
    step = 1e-6
    along = (f(a + step * direction) - f(a - step * direction)) / (2 * step)
    assert np.sum(np.real(got.conj() * direction)) == pytest.approx(along, rel=1e-6, abs=1e-8)
    np.testing.assert_allclose(got, iso.grad(f)(a), rtol=1e-12, atol=1e-14)


def test_cholesky_reads_the_lower_triangle(backend, xp):
    a = np.array([[4.0, 9j], [1 - 2j, 6.0]])
    got = xp.linalg.cholesky(torch.tensor(a))
    np.testing.assert_allclose(numpy_of(got), np.linalg.cholesky(a), rtol=1e-15)
