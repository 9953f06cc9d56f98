"""`isomorph.numpy` and `isomorph.scipy` as packages: what is theirs and what is ours, what raises,
and that NumPy and SciPy themselves are unchanged.
"""

import inspect
import os
import subprocess
import sys
import types

import numpy as np
import pytest
import scipy
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.signal
import scipy.special
import scipy.stats

import isomorph as iso
import isomorph.numpy as inp
import isomorph.scipy as isp
from isomorph.backends.numpy.replaced import REPLACED
from oracles import central_gradient

pytestmark = pytest.mark.parametrize("backend", ["numpy"], indirect=True)

X = np.array([0.3, 0.55, 0.8])
EYE = np.eye(3)


def test_names_are_numpys_and_most_objects_too(backend):
    assert set(dir(np)) <= set(dir(inp))
    names = [name for name in np.__all__ if not isinstance(getattr(np, name), types.ModuleType)]
    same = [name for name in names if getattr(inp, name) is getattr(np, name)]
    assert len(same) > 0.8 * len(names)
    for name in ("exp", "matmul", "ndarray", "float64", "pi", "stack_arrays", "newaxis"):
        if hasattr(np, name):
            assert getattr(inp, name) is getattr(np, name)
    assert vars(inp)["exp"] is np.exp
    assert type(inp.zeros(3)) is np.ndarray
    assert inp.random.default_rng is np.random.default_rng
    assert inp.fft.fft is np.fft.fft
    assert inp.linalg.LinAlgError is np.linalg.LinAlgError
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = inp.no_such_name


def test_submodules_can_be_imported(backend):
    import isomorph.numpy.fft as fft
    import isomorph.numpy.linalg as linalg
    import isomorph.numpy.random as random
    from isomorph.numpy import array, sin
    from isomorph.scipy.special import logsumexp

    assert (fft, linalg, random) == (inp.fft, inp.linalg, inp.random)
    assert (array, sin, logsumexp) == (inp.array, np.sin, isp.special.logsumexp)


def test_scipys_functions_are_scipys_where_they_differentiate(backend):
    assert isp.special.erf is scipy.special.erf
    assert isp.special.gammainc is scipy.special.gammainc
    assert isp.optimize.minimize is scipy.optimize.minimize
    assert isp.stats.pearsonr is scipy.stats.pearsonr


def test_the_list_for_messages_is_what_the_package_replaces(backend):
    for place, names in REPLACED.items():
        ours, theirs = getattr(isp, place), getattr(scipy, place)
        made = {
            name
            for name in dir(theirs)
            if not name.startswith("_") and getattr(ours, name) is not getattr(theirs, name)
        }
        assert made - {"quad"} == set(names.split()), place  # quad only refuses


@pytest.mark.parametrize(
    "build",
    [
        lambda np, x: np.array([[x[0], 1.0], [x[1], x[2]]]),
        lambda np, x: np.array([x, X], ndmin=3),
        lambda np, x: np.array(x, dtype=np.float32),
        lambda np, x: np.asarray([(x[0], 2), (3, x[1])], dtype=complex),
        lambda np, x: np.full((2, 3), x),
        lambda np, x: np.full_like(np.zeros((2, 2)), x[0]),
        lambda np, x: np.r_[x, 1:4, x[0], [x[1], 2]],
        lambda np, x: np.r_["0,2", x, [1, 2, 3], x],
        lambda np, x: np.r_["1,2,0", x, [1, 2, 3], x],
        lambda np, x: np.c_[x, [1, 2, 3], x],
        lambda np, x: np.append(x, [x[0], 2.0]),
        lambda np, x: np.hstack([[x[0], x[1]], x]),
        lambda np, x: np.vstack([[x[0], x[1]], [1, 2]]),
        lambda np, x: np.sum([x[0], x[1] ** 2]),
        lambda np, x: np.mean([[x[0], 1], [x[1] ** 2, 2]], axis=1),
        lambda np, x: np.linalg.norm((x[0], x[1])),
        lambda np, x: np.linalg.det([[x[0], x[1]], [x[2], x[0]]]),
        lambda np, x: np.dot([x[0], x[1]], [[1, x[2]], [2, 3]]),
        lambda np, x: np.where(X > 0.5, [x[0], x[1], 1.0], x),
        lambda np, x: np.vectorize(lambda a, b=2.0: (a * b, a + b))(x, b=x[::-1])[0],
        lambda np, x: np.fromiter((v * v for v in x), float, 2),
        lambda np, x: np.arange(x[0], 3.0, x[1]),
        lambda np, x: np.emath.sqrt(x - 0.5),
        lambda np, x: np.ix_(x, x)[0],
    ],
)
def test_values_shapes_and_gradients(backend, build):
    def total(np, x):
        y = build(np, x)
        weights = np.reshape(np.cos(np.arange(np.size(y))), np.shape(y))
        return np.sum(np.real(y) * weights) + np.sum(np.imag(y) * weights * 2)

    plain, ours = build(np, X), build(inp, X)
    assert (plain.shape, plain.dtype) == (ours.shape, ours.dtype)
    np.testing.assert_array_equal(plain, ours)
    seen = {}

    def traced(x):
        y = build(inp, x)
        seen["like"] = y.shape, y.dtype
        return total(inp, x)

    gradient = iso.grad(traced)(X)
    assert seen["like"] == (plain.shape, plain.dtype)
    # in float32, central differences with a step of 1e-2 are exact for linear functions, to 1e-5
    single = plain.dtype == np.float32
    wanted = central_gradient(lambda x: total(np, x), X, 1e-2 if single else 1e-6)
    np.testing.assert_allclose(gradient, wanted, rtol=2e-5 if single else 1e-6, atol=1e-8)


def refuses(match, func, error):
    with pytest.raises(error, match=match):
        iso.grad(lambda x: np.sum(func(x)))(X)


def test_plain_numpy_is_unchanged_and_names_the_replacement(backend):
    refuses("import isomorph.numpy as np", lambda x: np.array([x[0], 1.0]), TypeError)
    refuses("import isomorph.numpy as np", lambda x: np.sum([x[0], 1.0]), TypeError)
    refuses("import isomorph.numpy as np", lambda x: np.full(3, x[0]), TypeError)
    refuses("import isomorph.numpy as np", lambda x: np.r_[x, 1], TypeError)
    refuses("iso.host_function", lambda x: np.i0(x), NotImplementedError)
    refuses("traced", lambda x: inp.require(x, requirements="W"), TypeError)
    refuses("floating-point dtype", lambda x: inp.full_like([1, 2], x[0]), TypeError)
    refuses("iso.vmap", lambda x: inp.vectorize(np.sum, signature="(n)->()")(x), Exception)


@pytest.mark.parametrize(
    ("name", "func"),
    [
        ("special.logsumexp", lambda x: scipy.special.logsumexp(x)),
        ("linalg.expm", lambda x: scipy.linalg.expm(np.diag(x))),
        ("linalg.solve_sylvester", lambda x: scipy.linalg.solve_sylvester(EYE, EYE, np.diag(x))),
        ("signal.convolve", lambda x: scipy.signal.convolve(x, x)),
        ("integrate.simpson", lambda x: scipy.integrate.simpson(x)),
        ("interpolate.interp1d", lambda x: scipy.interpolate.interp1d(X, x)(0.5)),
        ("fft.dct", lambda x: scipy.fft.dct(x)),
        ("stats", lambda x: scipy.stats.norm.logpdf(x)),
    ],
)  # fmt: skip
def test_plain_scipy_names_the_replacement(backend, name, func):
    refuses(f"isomorph.scipy.{name}", func, TypeError)


@pytest.mark.parametrize(
    ("match", "func"),
    [
        ("gammaincinv with respect to one of the", lambda x: isp.special.gammaincinv(x, 0.3)),
        ("jv with respect to one of the arguments", lambda x: isp.special.jv(x, 1.0)),
        ("stats.vonmises.cdf with respect to kappa", lambda x: isp.stats.vonmises.cdf(0.5, x)),
        ("stats.vonmises.isf with respect to kappa", lambda x: isp.stats.vonmises.isf(0.5, x)),
        ("stats.poisson.logpmf in the counted", lambda x: isp.stats.poisson.logpmf(x, 1.0)),
        ("coordinates x of the points", lambda x: isp.interpolate.CubicSpline(x, X)(0.5)),
        ("bc_type='periodic'", lambda x: isp.interpolate.CubicSpline(
            [0, 1, 2, 3], [x[0], x[1], x[2], x[0]], bc_type="periodic")(0.5)),
        ("PchipInterpolator for y", lambda x: isp.interpolate.PchipInterpolator([0, 1, 2], x)(1.0)),
        ("lfilter with zi=", lambda x: isp.signal.lfilter(x, 1.0, x, zi=X[:2])),
        ("quad in its bounds", lambda x: isp.integrate.quad(np.sin, 0, x[0])[0]),
        ("solve with assume_a", lambda x: isp.linalg.solve(np.diag(x), x, assume_a="banded")),
        ("eigh with a subset", lambda x: isp.linalg.eigh(np.diag(x), subset_by_index=(0, 1))[0]),
        ("comb with exact=True", lambda x: isp.special.comb(x, 1, exact=True)),
    ],
)  # fmt: skip
def test_what_has_no_rule_says_so(backend, match, func):
    refuses(match, func, NotImplementedError)


DEEP = {
    "logsumexp": lambda x: isp.special.logsumexp(x * x),
    "betainc": lambda x: isp.special.betainc(1.3, 2.4, x),
    "norm": lambda x: isp.stats.norm.logcdf(x, x[0], x[1]),
    "gamma": lambda x: isp.stats.gamma.logpdf(x, x[::-1] + 1),
    "convolve": lambda x: isp.signal.convolve(x, x, "valid"),
    "correlate": lambda x: isp.signal.correlate(x, x[:2] ** 2),
    "CubicSpline": lambda x: isp.interpolate.CubicSpline([0, 0.5, 1], x**2)(x),
    "dct": lambda x: isp.fft.dct(x**2) ** 2,
    "expm": lambda x: isp.linalg.expm(np.outer(x, x)),
    "logm": lambda x: isp.linalg.logm(np.outer(x, x) + np.eye(3)),
    "sqrtm": lambda x: isp.linalg.sqrtm(np.outer(x, x) + np.eye(3)),
    "solve_triangular": lambda x: isp.linalg.solve_triangular(np.outer(x, x) + np.eye(3), x**2),
    "solve_sylvester": lambda x: isp.linalg.solve_sylvester(
        np.outer(x, x) + np.eye(3), np.eye(3), np.diag(x**2)
    ),
}


@pytest.mark.parametrize("name", DEEP)
def test_second_derivatives(backend, name):
    first = lambda x: np.sum(iso.grad(lambda x: np.sum(DEEP[name](x)))(x) * np.array([1.0, 2, 3]))
    np.testing.assert_allclose(iso.grad(first)(X), central_gradient(first, X), rtol=1e-5, atol=1e-6)


def test_outside_the_support_and_with_bad_parameters(backend):
    x = np.array([-1.0, 0.0, 0.5, 1.0, 2.0, np.nan])
    checked = 0
    for name, shapes in (("beta", (2.0, 3.0)), ("expon", ()), ("uniform", ()), ("lognorm", (0.5,)),
                         ("gamma", (2.0,)), ("rayleigh", ()), ("pareto", (2.0,))):  # fmt: skip
        ours, theirs = getattr(isp.stats, name), getattr(scipy.stats, name)
        for method in ("logpdf", "pdf", "cdf", "sf", "logcdf", "logsf"):
            for scale in (1.5, -1.0):
                kept = {}

                def total(s, kept=kept, ours=ours, shapes=shapes, method=method):
                    y = getattr(ours, method)(x, *shapes, 0.1, s)
                    kept["y"] = iso.stop_gradient(y)
                    return np.sum(y)

                with np.errstate(all="ignore"):
                    iso.grad(total)(np.float64(scale))
                    wanted = getattr(theirs, method)(x, *shapes, 0.1, scale)
                np.testing.assert_allclose(
                    kept["y"], wanted, rtol=1e-12, err_msg=f"{name} {method}"
                )
                # a scale that is not positive has no value, and the others have all but one
                assert np.sum(np.isnan(kept["y"])) == (len(x) if scale < 0 else 1)
                checked += 1
    assert checked == 7 * 6 * 2
    slope = iso.grad(lambda x: np.sum(isp.stats.beta.cdf(x, 2.0, 3.0)))(x[:-1])
    assert slope[0] == slope[-1] == 0  # a constant there, and not NaN


def test_triangular_solves_of_complex_matrices(backend):
    draw = np.random.default_rng(0)
    a = draw.standard_normal((3, 3)) + 1j * draw.standard_normal((3, 3)) + 3 * np.eye(3)
    b = draw.standard_normal(3) + 1j * draw.standard_normal(3)
    for trans in (0, 1, 2):
        for lower in (True, False):

            def total(p, trans=trans, lower=lower, s=isp):
                y = s.linalg.solve_triangular(p[:, :3], p[:, 3], trans, lower)
                return np.sum(np.real(y) * X) + np.sum(np.imag(y) * (X + 1))

            p = np.concatenate([a, b[:, None]], 1)
            gradient = iso.grad(total)(p)
            moved = lambda d, p=p, total=total: total(p + d, s=scipy)
            real = central_gradient(moved, np.zeros(p.shape))
            turned = central_gradient(lambda d, moved=moved: moved(1j * d), np.zeros(p.shape))
            np.testing.assert_allclose(gradient, real + 1j * turned, rtol=1e-6, atol=1e-8)


def test_convolve_over_some_axes(backend):
    draw = np.random.default_rng(0)
    a, b = draw.standard_normal((2, 3, 6)), draw.standard_normal((3, 4, 2))
    for mode in ("full", "valid", "same"):
        found = isp.signal.convolve(a, b, mode, axes=([2], [2]), dot_axes=([1], [0]))
        wanted = [
            [sum(scipy.signal.convolve(a[i, k], b[k, j], mode) for k in range(3)) for j in range(4)]
            for i in range(2)
        ]
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    swapped = isp.signal.convolve(b, a, "valid", axes=([2], [2]), dot_axes=([0], [1]))
    straight = isp.signal.convolve(a, b, "valid", axes=([2], [2]), dot_axes=([1], [0]))
    np.testing.assert_allclose(swapped, np.swapaxes(straight, 0, 1), rtol=1e-12)


PROGRAM = """
import numpy as np, scipy.special as special, isomorph as iso, isomorph.scipy as isp
x, c = np.array([0.3, 0.6]), np.array([2.0, 3.0])
for f in (
    special.erf, special.gammaln, special.digamma, special.expit, special.log_ndtr,
    lambda x: special.gammainc(c, x), lambda x: special.xlogy(c, x), lambda x: special.stdtr(c, x),
    lambda x: special.betainc(2.0, c, x), isp.special.logsumexp,
    lambda x: isp.stats.gamma.logpdf(x, c), lambda x: isp.stats.norm.cdf(x, c),
    lambda x: isp.signal.convolve(x, c), lambda x: isp.linalg.expm(x * np.eye(2)),
    lambda x: isp.fft.dct(x), lambda x: isp.integrate.simpson(x), isp.special.softmax,
    lambda x: isp.stats.multivariate_normal.logpdf(x, c, np.eye(2)),
):
    print(iso.grad(lambda x: np.sum(f(x) * 2.0))(x).tolist())
"""


@pytest.mark.takes("it starts another process")
def test_the_array_api_mode_of_scipy(backend):
    """SciPy reads the variable when it is imported, so this needs processes of its own."""
    said = []
    for mode in ("0", "1"):
        setting = os.environ | {"SCIPY_ARRAY_API": mode}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=setting, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr[-2000:]
        said.append(done.stdout)
    assert said[0] == said[1]
    assert len(said[0].splitlines()) == 18


def test_without_scipy_the_import_says_so(backend):
    code = "import sys; sys.modules['scipy'] = None; import isomorph.numpy; import isomorph.scipy"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "isomorph.scipy: needed SciPy, which is not installed; pip install scipy" in done.stderr


def test_replacements_keep_scipys_signatures(backend):
    """Where SciPy's function has one, ours accepts the same words."""
    unsigned, loose, checked = set(), set(), 0
    for place in ("special", "linalg", "signal", "integrate", "fft"):
        for name in REPLACED[place].split():
            theirs, ours = getattr(getattr(scipy, place), name), getattr(getattr(isp, place), name)
            try:
                words = set(inspect.signature(theirs).parameters)
            except ValueError:
                words = set()
                unsigned.add(name)
            body = inspect.getclosurevars(ours).nonlocals.get("body", ours)  # see `replaces`
            ours = inspect.signature(body).parameters
            if any(p.kind is p.VAR_KEYWORD for p in ours.values()):
                loose.add(name)
            else:
                assert words <= set(ours), (place, name, words - set(ours))
                checked += 1
    assert unsigned == set()
    # these take **kw, which are checked when they are called
    assert loose == {"eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq", "odeint"}
    for call in (isp.linalg.inv, isp.linalg.eigh, isp.linalg.eigvals):
        refuses(
            "unknown keywords asume_a", lambda x, f=call: f(np.diag(x), asume_a="sym"), TypeError
        )
    assert checked + len(loose) == sum(
        len(REPLACED[p].split()) for p in ("special", "linalg", "signal", "integrate", "fft")
    )
