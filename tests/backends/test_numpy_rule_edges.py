"""Delicate derivatives: ties, zeros, constants, refusals, third order, other frameworks'
conventions. Also: which functions have a rule at all.
"""

# ruff: noqa: E501  (a case is one line)

import inspect

import numpy as np
import pytest
import scipy.special
from frameworks import torch
from numpy_linalg_cases import herm, positive
from numpy_rule_cases import P, R, Z, holed

import isomorph as iso
from isomorph.backends.numpy.traced import TRACED, Traced
from isomorph.backends.vocabulary import (
    ELEMENTWISE,
    FFT,
    INDEXING,
    LAYERS,
    LINALG,
    MANIPULATION,
    MATRICES,
    SEARCHING,
    SETS,
    STATISTICS,
)
from oracles import central_gradient

pytestmark = pytest.mark.parametrize("backend", ["numpy"], indirect=True)


def grad(f, *xs):
    return iso.grad(f, argnums=tuple(range(len(xs))))(*xs) if len(xs) > 1 else iso.grad(f)(*xs)


# Known gaps: every function that takes float arrays and has no rule, with the reason.
GAPS = {
    "i0": "its derivative, of order 1, is not in NumPy; scipy.special.i0 has a rule",
    "polydiv": "the length of its result depends on the values",
    "histogram2d": "counts are constant, edges are not; np.histogram takes given edges",
    "histogramdd": "as histogram2d",
    "histogram_bin_edges": "edges depend on counts of data",
    "packbits": "integers only",
    "unpackbits": "integers only",
}
DATES = {"busday_count", "busday_offset", "datetime_as_string", "is_busday"}


def test_every_differentiable_name_of_the_standard_has_a_rule(backend):
    names = [
        *ELEMENTWISE,
        *MANIPULATION,
        *SEARCHING,
        *SETS,
        *STATISTICS,
        *MATRICES,
        *LAYERS,
        *INDEXING,
    ]
    names += [
        "astype",
        "can_cast",
        "result_type",
        "full_like",
        "linspace",
        "meshgrid",
        "ones_like",
        "tril",
        "triu",
        "zeros_like",
        "empty_like",
    ]
    xp = iso.namespace(np.ones(1))  # erf is ours, not NumPy's
    missing = [n for n in names if (getattr(np, n, None) or getattr(xp, n)) not in TRACED]
    missing += [n for n in LINALG if getattr(np.linalg, n) not in TRACED]
    missing += [n for n in FFT if getattr(np.fft, n) not in TRACED and "freq" not in n]
    assert missing == []


@pytest.mark.parametrize("module", [np, np.linalg, np.fft], ids=["main", "linalg", "fft"])
def test_every_function_has_a_rule_or_is_a_known_gap(backend, module):
    def reaches_us(func):
        return isinstance(func, np.ufunc) or type(func).__name__ == "_ArrayFunctionDispatcher"

    public = [n for n in dir(module) if not n.startswith("_") and reaches_us(getattr(module, n))]
    assert len(public) > 15
    missing = {n for n in public if getattr(module, n) not in TRACED}
    assert missing == ({*GAPS, *DATES} if module is np else set())


def test_a_gap_raises_and_is_named(backend):
    for name in ("i0", "histogram_bin_edges"):
        with pytest.raises(NotImplementedError, match=rf"numpy\.{name}: no derivative rule"):
            grad(lambda x, name=name: np.sum(getattr(np, name)(x)), P(3))


def test_rules_take_the_arguments_numpy_takes(backend):
    """The traced version of a function knows every keyword that NumPy's has, under the
    same name.
    """
    wrong = []
    for func, traced in TRACED.items():
        if (
            isinstance(func, np.ufunc)
            or not getattr(func, "__module__", "").startswith("numpy")
            or not hasattr(func, "_implementation")
        ):
            continue
        body = traced.args[-1] if hasattr(traced, "args") else traced
        own = inspect.signature(body).parameters if body is not func else {}
        if not own or any(p.kind is p.VAR_KEYWORD for p in own.values()):
            continue  # constant, or forwards its keywords
        names = [
            n
            for n, p in inspect.signature(func).parameters.items()
            if p.kind is not p.POSITIONAL_ONLY
        ]
        wrong += [
            f"{func.__name__}({n}=)" for n in names if n not in own and n not in ("kwargs", "args")
        ]
    assert set(wrong) <= {
        "real(val=)",
        "imag(val=)",
        "where(x=)",
        "where(y=)",
    }  # never passed by name


@pytest.mark.parametrize("order", [None, 1, 2, 3, 2.5, np.inf, -np.inf, "fro"], ids=str)
def test_norms_at_zero_have_a_zero_gradient(backend, order):
    if order != "fro":
        g = grad(lambda x: np.linalg.norm(x, order), np.zeros(3))
        np.testing.assert_array_equal(g, np.zeros(3))
        rows = np.stack([np.zeros(3), [1.0, 2.0, 3.0]])
        assert np.isfinite(grad(lambda x: np.sum(np.linalg.norm(x, order, axis=1)), rows)).all()
    if order in (None, 1, np.inf, -np.inf, "fro"):
        g = grad(lambda x: np.linalg.norm(x, order), np.zeros((2, 2)))
        np.testing.assert_array_equal(g, np.zeros((2, 2)))


def test_complex_modulus_at_zero(backend):
    np.testing.assert_array_equal(grad(lambda z: np.sum(np.abs(z)), np.zeros(2, complex)), [0, 0])
    np.testing.assert_array_equal(grad(lambda z: np.linalg.norm(z), np.zeros(2, complex)), [0, 0])


@pytest.mark.parametrize("value", [0.0, 0.1, 1e8, 1 / 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_std_of_equal_numbers_has_a_zero_gradient(backend, value, dtype):
    g = grad(
        lambda x: np.std(x) + np.sum(np.std(x.reshape(2, 5), 1, ddof=1)), np.full(10, value, dtype)
    )
    np.testing.assert_array_equal(g, np.zeros(10))
    assert g.dtype == dtype


def test_std_of_equal_numbers_among_nan_and_of_close_half_precision_numbers(backend):
    x = np.array([0.1, np.nan, 0.1, 0.1])
    np.testing.assert_array_equal(grad(lambda x: np.nanstd(x), x), np.zeros(4))
    close = np.array([1.0, 1.01, 1.0, 1.01], np.float16)  # ten units in the last place apart
    np.testing.assert_allclose(
        grad(lambda x: np.std(x), close), [-0.25, 0.25, -0.25, 0.25], rtol=0.01
    )


def test_ties_share(backend):
    x = np.array([[1.0, 3.0, 3.0], [3.0, 0.0, 3.0]])
    np.testing.assert_allclose(grad(lambda x: np.max(x), x), (x == 3) / 4)
    np.testing.assert_allclose(
        grad(lambda x: np.sum(np.max(x, (0, 1), keepdims=True)), x), (x == 3) / 4
    )
    np.testing.assert_allclose(
        grad(lambda x: np.sum(np.max(x, 1)), x), [[0, 0.5, 0.5], [0.5, 0, 0.5]]
    )
    np.testing.assert_allclose(
        grad(lambda x: np.sum(np.amin(x, 0, keepdims=True)), x), [[1, 0, 0.5], [0, 1, 0.5]]
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize(
    "name",
    [
        "sum",
        "mean",
        "max",
        "min",
        "prod",
        "var",
        "std",
        "ptp",
        "median",
        "cumsum",
        "cumprod",
        "sort",
        "nanmean",
        "nanstd",
    ],
)
def test_half_and_single_precision_stay(backend, dtype, name):
    x = P(3, 4).astype(dtype)
    wanted = np.sum(getattr(np, name)(x, axis=1)).dtype
    value, g = iso.value_and_grad(lambda x: np.sum(getattr(np, name)(x, axis=1)))(x)
    assert (value.dtype, g.dtype) == (wanted, dtype)
    eps = np.finfo(dtype).eps  # sums of four numbers of about 1: a few roundings each
    np.testing.assert_allclose(
        g,
        central_gradient(lambda x: np.sum(getattr(np, name)(x, axis=1)), x.astype(float)),
        rtol=60 * eps,
        atol=min(1e-3, 20 * eps),
    )  # a few dozen roundings


THIRD = [
    ("prod with zeros", lambda x: np.prod(x), holed(R(4), 0, 2)),
    (
        "cumprod with zeros",
        lambda x: np.sum(np.cumprod(x) * [1.0, 2.0, 3.0, 4.0, 5.0]),
        holed(R(5), 1, 3),
    ),
    ("solve", lambda x: np.sum(np.linalg.solve(x, x[0])), R(3, 3)),
    ("det singular", lambda x: np.linalg.det(x), np.ones((3, 3))),
    ("logdet", lambda x: np.linalg.slogdet(x)[1], R(3, 3)),
    (
        "eigh",
        lambda x: np.sum(np.linalg.eigh(herm(x))[0] ** 4) + np.linalg.eigvalsh(herm(x))[0] ** 3,
        R(3, 3),
    ),
    ("svd", lambda x: np.sum(np.linalg.svdvals(x) ** 3), R(3, 2)),
    ("qr", lambda x: np.sum(np.linalg.qr(x)[0] * [1.0, 2.0]), R(3, 2)),
    ("cholesky", lambda x: np.sum(np.linalg.cholesky(positive(x)) ** 3), R(2, 2)),
    ("pinv", lambda x: np.sum(np.linalg.pinv(x) ** 2), R(3, 2)),
    ("norm", lambda x: np.linalg.norm(x, 3) + np.linalg.norm(x), R(4)),
    ("std", lambda x: np.std(x) * np.var(x), R(4)),
    ("einsum", lambda x: np.einsum("ij,jk,ki->", x, x, np.sin(x)), R(3, 3)),
    ("fft", lambda x: np.sum(np.abs(np.fft.rfft(x)) ** 3), R(5)),
    ("erf", lambda x: np.sum(scipy.special.erf(x) * scipy.special.gammaln(x)), P(4)),
]


@pytest.mark.parametrize(("f", "x"), [pytest.param(f, x, id=name) for name, f, x in THIRD])
def test_third_order(backend, f, x):
    """The third derivative, compared with central differences (error about 1e-8) of the second."""
    v = R(*x.shape, key=3)
    first = lambda x: np.sum(iso.grad(f)(x) * v)
    second = lambda x: np.sum(iso.grad(first)(x) * v)
    third = np.sum(iso.grad(second)(x) * v)
    step = 1e-4
    at = [second(x + k * step * v) for k in (-2, -1, 1, 2)]
    wanted = (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * step)
    np.testing.assert_allclose(third, wanted, rtol=1e-6, atol=1e-6)


TORCH = [
    ("fft", lambda z: np.fft.fft(z, axis=0), lambda z: torch.fft.fft(z, dim=0)),
    ("irfft", lambda z: np.fft.irfft(z), lambda z: torch.fft.irfft(z)),
    ("solve", lambda z: np.linalg.solve(z, z[0]), lambda z: torch.linalg.solve(z, z[0])),
    ("inv", np.linalg.inv, torch.linalg.inv),
    ("det", np.linalg.det, torch.linalg.det),
    (
        "cholesky",
        lambda z: np.linalg.cholesky(positive(z)),
        lambda z: torch.linalg.cholesky(z @ z.mH + 0.5 * torch.eye(3)),
    ),
    ("pinv", np.linalg.pinv, torch.linalg.pinv),
    (
        "eigvals",
        lambda z: np.sum(np.linalg.eigvals(z) ** 3),
        lambda z: torch.sum(torch.linalg.eigvals(z) ** 3),
    ),
    ("svdvals", np.linalg.svdvals, torch.linalg.svdvals),
    ("qr", lambda z: np.linalg.qr(z)[1], lambda z: torch.linalg.qr(z)[1]),
    ("power", lambda z: z ** (0.5 + 1j), lambda z: z ** (0.5 + 1j)),
    (
        "matrix exponential terms",
        lambda z: np.linalg.matrix_power(z, 3),
        lambda z: torch.linalg.matrix_power(z, 3),
    ),
]


@pytest.mark.parametrize(("ours", "theirs"), [pytest.param(a, b, id=name) for name, a, b in TORCH])
def test_complex_gradients_follow_the_convention(backend, ours, theirs):
    """PyTorch has the same convention. Both compute in float64 in another order, so
    1e-9 is ample.
    """
    z = Z(3, 3)
    leaf = torch.tensor(z, requires_grad=True)
    torch.sum(torch.abs(theirs(leaf)) ** 2).backward()
    np.testing.assert_allclose(
        grad(lambda z: np.sum(np.abs(ours(z)) ** 2), z), leaf.grad.numpy(), rtol=1e-9, atol=1e-9
    )


def test_nothing_is_ignored_in_silence(backend):
    x = R(3)
    with pytest.raises(NotImplementedError, match="dtype=int64"):
        grad(lambda x: np.sum(x, dtype=np.int64), x)
    with pytest.raises(NotImplementedError, match=r"numpy\.sum with a traced argument initial="):
        grad(lambda x: np.sum(x, initial=x[0]), x)
    with pytest.raises(NotImplementedError, match=r"numpy\.histogram with traced weights"):
        grad(lambda x: np.sum(np.histogram([1, 2, 3], weights=x)[0]), x)
    with pytest.raises(NotImplementedError, match=r"numpy\.pad with mode='mean'"):
        grad(lambda x: np.sum(np.pad(x, 1, "mean")), x)
    with pytest.raises(NotImplementedError, match=r"numpy\.quantile with method='hazen'"):
        grad(lambda x: np.quantile(x, 0.3, method="hazen"), x)
    with pytest.raises(NotImplementedError, match=r"numpy\.linalg\.qr with mode='raw'"):
        grad(lambda x: np.sum(np.linalg.qr(x, "raw")[0]), R(2, 2))
    with pytest.raises(TypeError, match=r"numpy\.take: .*out=.* needed plain operands"):
        grad(lambda x: np.sum(np.take(x, [0], out=np.zeros(1))), x)
    for change in (
        lambda x: np.copyto(np.zeros(3), x),
        lambda x: np.put(np.zeros(3), [0], x[:1]),
        lambda x: np.place(np.zeros(3), x > 0, x),
        lambda x: np.fill_diagonal(np.zeros((3, 3)), x),
        lambda x: np.full(3, x[0]),
    ):
        with pytest.raises(TypeError, match=r"isomorph\.numpy|iso\.at"):
            grad(change, x)


def test_counts_of_given_bins_are_constant(backend):
    g = grad(lambda x: np.sum(x) * np.histogram(x, [-9.0, 0.0, 9.0])[0][0], R(4))
    np.testing.assert_array_equal(g, np.full(4, np.sum(R(4) < 0)))


def test_lstsq_gives_all_four_results(backend):
    a, b = R(5, 3), R(5)

    def f(a):
        x, residuals, rank, s = np.linalg.lstsq(a, b)
        assert rank == 3
        return np.sum(x) + residuals[0] + s[0]

    np.testing.assert_allclose(grad(f, a), central_gradient(f, a), rtol=1e-6)


def test_eigenvalues_alone_need_no_gap(backend):
    """Gradients through equal eigenvalues are finite. The sum of eigenvalues is the trace, whose
    gradient is known.
    """
    np.testing.assert_allclose(
        grad(lambda a: np.sum(np.linalg.eigvalsh(a)), np.eye(3)), np.eye(3), atol=1e-15
    )
    np.testing.assert_allclose(
        grad(lambda a: np.sum(np.linalg.svdvals(a)), np.eye(3)), np.eye(3), atol=1e-15
    )


METHODS = {
    "sum": (), "prod": (0,), "mean": (), "std": (), "var": (1,), "max": (0,), "min": (), "cumsum": (1,), "cumprod": (),
    "clip": (0.6, 1.1), "conj": (), "conjugate": (), "dot": (R(3),), "trace": (), "diagonal": (), "take": ([0, 3],),
    "compress": ([True, False],), "repeat": (2,), "ravel": ("F",), "flatten": (), "squeeze": (), "swapaxes": (0, 1),
    "copy": (), "reshape": (3, 2), "transpose": (1, 0), "astype": (np.float64,), "to_device": ("cpu",),
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_methods_are_numpys(backend, name):
    x, c = P(2, 3), None
    call = lambda x: getattr(x, name)(*METHODS[name])
    c = R(*np.shape(call(x)))
    v = R(2, 3)
    wanted = (
        np.sum(c * call(x + 1e-6 * v)) - np.sum(c * call(x - 1e-6 * v))
    ) / 2e-6  # error about 1e-9
    np.testing.assert_allclose(
        np.sum(grad(lambda x: np.sum(c * call(x)), x) * v), wanted, rtol=1e-7, atol=1e-7
    )


def test_attributes_are_numpys(backend):
    x = P(2, 3)
    seen = {}

    def f(x):
        for name in [
            "shape",
            "ndim",
            "size",
            "dtype",
            "itemsize",
            "nbytes",
            "device",
            "strides",
            "base",
        ]:
            seen[name] = getattr(x, name)
        assert x.flags.c_contiguous
        assert x[0, 0] in x
        assert isinstance(x.flat[3], Traced)
        assert [x.argmax(), x.argmin(), x.all(), x.any()] == [p.argmax(), p.argmin(), True, True]
        return np.sum(x.T @ x.mT.T) + np.sum(x.real) + np.sum(x.imag) + sum(x.flat)

    p = x
    assert np.isfinite(grad(f, x)).all()
    assert seen == {name: getattr(x, name) for name in seen}


def test_every_array_method_works_or_says_what_to_write(backend):
    inside = {
        "__array_finalize__",
        "__array_interface__",
        "__array_struct__",
        "__array_wrap__",
        "__buffer__",
        "__class_getitem__",
        "_set_dtype",
        "_set_shape",
    }
    missing = {n for n in dir(np.ndarray) if not hasattr(Traced, n)} - inside
    assert all(
        n.startswith(("__i", "__r")) or "shift" in n or n in ("__setstate__", "__dlpack_device__")
        for n in missing
    )
    for call in (
        lambda x: x.resize(4), lambda x: x.view(np.int64), lambda x: x.tobytes(), lambda x: x.data, lambda x: x.setflags(write=True),
    ):  # fmt: skip
        with pytest.raises(TypeError, match="not possible for a traced NumPy value: "):
            grad(call, R(3))


@pytest.mark.parametrize("lost", [3, 4])
@pytest.mark.parametrize("name", ["var", "std"])
def test_a_variance_of_nothing_left_has_no_derivative(backend, name, lost):
    """`np.var` gives NaN or infinity there and warns."""
    func = lambda x: getattr(np, name)(x, ddof=lost)
    with pytest.warns(RuntimeWarning):
        value, grad = iso.value_and_grad(func)(np.array([1.0, 2.0, 4.0]))
    assert not np.isfinite(value)
    assert np.isnan(grad).all()
    xp = iso.namespace(np.ones(1))
    with pytest.warns(RuntimeWarning):
        value, grad = iso.value_and_grad(lambda x: getattr(xp, name)(x, correction=lost))(
            np.array([1.0, 2.0, 4.0])
        )
    assert np.isnan(value)
    assert np.isnan(grad).all()
