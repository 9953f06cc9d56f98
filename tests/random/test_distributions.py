"""Draws of `isomorph.random.distributions`: their distributions, against SciPy, with fixed keys;
the same numbers on every backend, eager, compiled and mapped; and their derivatives.
"""

import numpy as np
import pytest
from frameworks import ours
from scipy import stats

import isomorph as iso
from oracles import central_gradient, numpy_of

COUNT = 20_000
# The keys are fixed, so that nothing here depends on chance; 1 in 1000 is a p-value that a right
# distribution gives for one key in a thousand.
RARE = 1e-3

CONTINUOUS = {
    "exponential": (lambda r, k: r.exponential(k, COUNT), stats.expon()),
    "gumbel": (lambda r, k: r.gumbel(k, COUNT), stats.gumbel_r()),
    **{
        f"gamma_{a}": (lambda r, k, a=a: r.gamma(k, a, COUNT), stats.gamma(a))
        for a in (0.2, 1.0, 2.5, 300.0)
    },
    "gamma_float64": (lambda r, k: r.gamma(k, 0.7, COUNT, dtype="float64"), stats.gamma(0.7)),
    "gamma_array": (lambda r, k: r.gamma(k, np.full(COUNT, 4.0)), stats.gamma(4.0)),
    "normal": (
        lambda r, k: r.multivariate_normal(k, np.ones(1), np.full((1, 1), 4.0), COUNT)[:, 0],
        stats.norm(1.0, 2.0),
    ),
}
WHOLE = {
    "randint": (lambda r, k: r.randint(k, COUNT, -3, 4), stats.randint(-3, 4)),
    "choice": (lambda r, k: r.choice(k, 5, COUNT), stats.randint(0, 5)),
    "choice_p": (
        lambda r, k: r.choice(k, 4, COUNT, p=np.array([0.1, 0.0, 0.6, 0.3])),
        stats.rv_discrete(values=(range(4), [0.1, 0.0, 0.6, 0.3])),
    ),
    **{
        f"poisson_{lam}": (lambda r, k, lam=lam: r.poisson(k, lam, COUNT), stats.poisson(lam))
        for lam in (0.4, 6.0, 9.99, 10.0, 37.0, 2000.0)
    },
    "poisson_float64": (
        lambda r, k: r.poisson(k, np.array(1e6), COUNT, dtype="int64"),
        stats.poisson(1e6),
    ),
}


def key_of(backend, seed=11):
    return iso.random.key(seed, backend=backend)


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)  # the others give the same numbers
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions(backend, name):
    draw, law = CONTINUOUS[name]
    x = draw(iso.random, key_of(backend)).astype(float)
    assert x.shape == (COUNT,)
    assert stats.kstest(x, law.cdf).pvalue > RARE
    # five standard errors of the mean
    assert abs(x.mean() - law.mean()) < 5 * law.std() / np.sqrt(COUNT)


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
@pytest.mark.parametrize("name", WHOLE)
def test_distributions_of_integers(backend, name):
    draw, law = WHOLE[name]
    x = draw(iso.random, key_of(backend))
    low, high = law.ppf([0.002, 0.998]).astype(int)
    edges = np.unique(np.linspace(low, high, 25).astype(int))[:-1]
    counts = np.histogram(x, [-np.inf, *(edges + 0.5), np.inf])[0]
    expected = np.diff([0.0, *law.cdf(edges), 1.0]) * COUNT
    assert expected.sum() == pytest.approx(COUNT)
    there = expected > 0
    assert not counts[~there].any()
    assert stats.chisquare(counts[there], expected[there]).pvalue > RARE
    assert abs(x.mean() - law.mean()) < 5 * law.std() / np.sqrt(COUNT)


def draws(key, mean, cov, a, lam, p):
    r = iso.random
    keys = r.split(key, 8)
    return {
        "randint": r.randint(keys[0, ...], (40, 5), -7, 1000),
        "wide": r.randint(keys[0, ...], 40, -(2**40), 2**46, dtype="int64"),
        "exponential": r.exponential(keys[1, ...], 200),
        "gumbel": r.gumbel(keys[2, ...], (2, 100), dtype="float64"),
        "choice": r.choice(keys[3, ...], 9, 200),
        "choice_once": r.choice(keys[3, ...], mean, 3, replace=False),
        "choice_p": r.choice(keys[4, ...], 4, 200, p=p),
        "choice_p_once": r.choice(keys[4, ...], 4, 3, p=p, replace=False),
        "gamma": r.gamma(keys[5, ...], a, (100, 3)),
        "poisson": r.poisson(keys[6, ...], lam, (100, 4)),
        "normal": r.multivariate_normal(keys[7, ...], mean, cov, (50,)),
    }


ROOT = np.array([[1.0, 0.0, 0.0], [0.5, 2.0, 0.0], [-0.3, 0.2, 0.7]])
GIVEN = (
    np.array([1.0, -2.0, 0.5]), ROOT @ ROOT.T, np.array([0.3, 1.0, 8.0]),
    np.array([0.5, 9.0, 10.0, 400.0]), np.array([0.1, 0.2, 0.3, 0.4]),
)  # fmt: skip


def same(found, wanted):
    for name, sure in wanted.items():
        got = numpy_of(found[name])
        assert (got.shape, got.dtype) == (sure.shape, sure.dtype), name
        if sure.dtype.kind == "i":  # float64 parameters: no decision is close to rounding
            np.testing.assert_array_equal(got, sure, err_msg=name)
        else:  # a few last digits of float64, and one rounding of float32
            close = 2e-7 if sure.dtype == np.float32 else 1e-11
            np.testing.assert_allclose(got, sure, rtol=close, atol=close / 10, err_msg=name)


def test_all_backends_draw_the_same(backend, xp, monkeypatch):
    if backend == "torch":  # the graph of the program is run as it is; Inductor takes minutes
        monkeypatch.setattr(ours("torch.private"), "inductor_compile", lambda graph, *_: graph)
    wanted = draws(key_of("numpy"), *GIVEN)
    for name in ("choice_once", "choice_p_once"):
        assert len(set(wanted[name].tolist())) == 3, name
    given = [key_of(backend), *(xp.asarray(x) for x in GIVEN)]
    same(draws(*given), wanted)
    same(iso.jit(draws)(*given), wanted)


def test_the_covariance_of_a_multivariate_normal():
    """Of 20,000 draws, whose means and products are right to about 5/√20,000 = 0.035 times the
    variances; the factor is not symmetric, so a transposed one would be seen.
    """
    drawn = iso.random.multivariate_normal(key_of("numpy"), *GIVEN[:2], (20_000,))
    np.testing.assert_allclose(np.mean(drawn, axis=0), GIVEN[0], atol=0.035 * 2.1)
    np.testing.assert_allclose(np.cov(drawn.T), GIVEN[1], atol=0.05 * 4.3)


def test_choices_without_replacement_have_their_chances():
    """Ordered pairs of 4 elements: the second is drawn by the chances that are left."""
    p = np.array([0.1, 0.2, 0.3, 0.4])
    keys = iso.random.split(key_of("numpy"), 4000)
    pairs = [iso.random.choice(key, 4, 2, p=p, replace=False) for key in keys]
    found = np.bincount([4 * int(i) + int(j) for i, j in pairs], minlength=16)
    chances = p[:, None] * p / (1 - p[:, None]) * (1 - np.eye(4))
    some = chances.ravel() > 0
    assert not found[~some].any()
    assert stats.chisquare(found[some], 4000 * chances.ravel()[some]).pvalue > RARE


def test_mapped_over_keys(backend, xp):
    keys = iso.random.split(key_of(backend), 3)
    lam = xp.asarray(np.array([4.0, 30.0]))

    def some(key):
        r = iso.random
        return r.randint(key, 4, 0, 99), r.gamma(key, 2.0, 4), r.poisson(key, lam)

    found = iso.vmap(some)(keys)
    for i in range(3):
        for got, sure in zip(found, some(keys[i, ...]), strict=True):
            np.testing.assert_allclose(numpy_of(got)[i], numpy_of(sure), rtol=2e-6)


def test_gradients_of_multivariate_normal(backend, xp):
    mean, cov = GIVEN[:2]
    weights = np.sin(np.arange(12)).reshape(4, 3)

    def total(mean, cov):
        space = iso.namespace(mean)
        key = key_of(space.__name__.removeprefix("isomorph."))
        x = iso.random.multivariate_normal(key, mean, (cov + space.matrix_transpose(cov)) / 2, 4)
        return space.sum(x * space.asarray(weights))

    found = iso.grad(total, (0, 1))(xp.asarray(mean), xp.asarray(cov))
    np.testing.assert_allclose(
        numpy_of(found[0]), central_gradient(lambda m: total(m, cov), mean), rtol=1e-7
    )
    np.testing.assert_allclose(
        numpy_of(found[1]), central_gradient(lambda c: total(mean, c), cov), rtol=1e-6, atol=1e-8
    )


def test_gamma_has_no_derivative_and_says_so(backend, xp):
    a = xp.asarray(np.array([2.0, 3.0]))
    total = lambda a, b: xp.sum(iso.random.gamma(key_of(backend), a) * b)
    with pytest.raises(NotImplementedError, match=r"random.gamma: no derivative .*stop_gradient"):
        iso.grad(total)(a, a)
    found = iso.grad(total, 1)(a, a)  # of what it is multiplied with there is one
    np.testing.assert_allclose(
        numpy_of(found), numpy_of(iso.random.gamma(key_of(backend), a)), rtol=1e-12
    )
    stopped = iso.grad(lambda a: total(iso.stop_gradient(a), a))(a)
    np.testing.assert_allclose(numpy_of(stopped), numpy_of(found), rtol=1e-12)
    with pytest.raises(NotImplementedError, match=r"random.gamma: no derivative"):
        iso.jit(iso.grad(total))(a, a)


def test_gradient_of_choice(backend, xp):
    a = xp.asarray(np.arange(4.0))
    found = iso.grad(lambda a: xp.sum(iso.random.choice(key_of(backend), a, 50)))(a)
    chosen = numpy_of(iso.random.choice(key_of(backend), 4, 50))
    np.testing.assert_array_equal(numpy_of(found), np.bincount(chosen, minlength=4))


def test_parameters_out_of_range(backend, xp):
    key = key_of(backend)
    bad = xp.asarray(np.array([-1.0, np.nan, 0.0, 2.0]))
    np.testing.assert_array_equal(
        np.isnan(numpy_of(iso.random.gamma(key, bad))), [True, True, True, False]
    )
    found = numpy_of(iso.random.poisson(key, bad))
    assert found[:3].tolist() == [-1, -1, 0]
    assert found[3] >= 0
    r = iso.random
    empty = [r.randint(key, 0, 0, 5), r.gamma(key, 1.0, (0, 2)), r.poisson(key, 50.0, (0,))]
    assert [tuple(x.shape) for x in empty] == [(0,), (0, 2), (0,)]
    for call, words in {
        lambda: r.randint(key, 2, 5, 5): "needed low < high",
        lambda: r.randint(key, 2, 0, 300, dtype="uint8"): "within uint8",
        lambda: r.randint(key, 2, 0, 2**48, dtype="int64"): r"2\*\*47",
        lambda: r.choice(key, 3, 4, replace=False): "at most 3 elements",
        lambda: r.choice(key, 3, 4, p=xp.asarray(np.ones(2))): r"shape \(3,\)",
        lambda: r.gamma(key, -1.0): "positive a",
        lambda: r.gamma(key, bad, (3,)): "needed a shape to which that of a",
        lambda: r.poisson(key, -1.0): "at least 0",
        lambda: r.multivariate_normal(key, bad, bad): r"mean \[..., d\]",
    }.items():
        with pytest.raises(ValueError, match=words):
            call()
    for call, words in {
        lambda: r.randint(key, 2, 0.0, 5): "as integers",
        lambda: r.randint(key, 2, 0, 5, dtype="float32"): "an integer dtype",
        lambda: r.choice(key, 0): "at least 1",
        lambda: r.poisson(key, 1.0, dtype="float32"): "an integer dtype",
    }.items():
        with pytest.raises(TypeError, match=words):
            call()
