"""Edges of `iso.random`: ranges beyond 32 bits, chances that do not suffice, parameters that do not
fit into a dtype, half precision, and draws that are all rejected.
"""

import numpy as np
import pytest
from frameworks import enable_x64, jax
from scipy import stats

import isomorph as iso
from isomorph.core.dispatch import load
from isomorph.meanings import rejection
from oracles import numpy_of

RARE = 1e-3  # keys are fixed: a right distribution gives such a p-value for one key in a thousand


def key_of(backend, seed=5):
    return iso.random.key(seed, backend=backend)


def half(backend, values):
    xp = load(backend)
    return xp.astype(xp.asarray(np.asarray(values, np.float32)), xp.narrow("float16"))


def test_choices_among_more_than_32_bits(backend, xp):
    n = 2**33 + 11
    found = numpy_of(iso.random.choice(key_of(backend), n, 3000))
    assert found.dtype == np.int64
    assert found.min() >= 0
    assert found.max() < n
    assert stats.kstest(found / n, stats.uniform.cdf).pvalue > RARE
    edge = numpy_of(iso.random.choice(key_of(backend), 2**31, 3000))
    assert edge.min() >= 0
    assert stats.kstest(edge / 2**31, stats.uniform.cdf).pvalue > RARE
    with pytest.raises(ValueError, match=r"random.choice: needed at most 2\*\*47 elements"):
        iso.random.choice(key_of(backend), 2**47 + 1)


@pytest.mark.parametrize("backend", ["jax"], indirect=True)
def test_choices_that_32_bits_cannot_count(backend):
    with enable_x64(False):
        key = key_of(backend)
        assert iso.random.choice(key, 2**31, 4).dtype == jax.numpy.int32
        with pytest.raises(ValueError, match="no more than indices of int32 can count"):
            iso.random.choice(key, 2**31 + 1)
        with pytest.raises(TypeError, match="random.poisson: needed a dtype of at most 32 bits"):
            iso.random.poisson(key, 3.0, dtype="int64")


def test_chances_must_suffice(backend, xp):
    key, choice = key_of(backend), iso.random.choice
    p = lambda *values: xp.asarray(np.array(values))
    for call, words in {
        lambda: choice(key, 3, 2, p=p(0.0, 1.0, 0.0), replace=False): "at least 2 .* got 1",
        lambda: choice(key, 3, 2, p=p(0.0, 0.0, 0.0)): "at least 1 elements .* got 0",
        lambda: choice(key, 3, 2, p=p(0.5, -0.1, 0.6)): "needed p finite and at least 0",
        lambda: choice(key, 3, 2, p=p(0.5, np.nan, 0.6)): "needed p finite and at least 0",
        lambda: choice(key, 3, 2, p=p(0.5, np.inf, 0.6)): "needed p finite and at least 0",
    }.items():  # fmt: skip
        with pytest.raises(ValueError, match=f"random.choice: .*{words}"):
            call()
    found = numpy_of(choice(key, 3, 2, p=p(0.0, 1.0, 2.0), replace=False))
    assert sorted(found.tolist()) == [1, 2]
    assert numpy_of(choice(key, 3, 0, p=p(0.0, 0.0, 0.0))).shape == (0,)


@pytest.mark.parametrize("backend", ["jax", "tensorflow"], indirect=True)
def test_chances_that_cannot_be_read(backend, xp):
    """In a compiled program nothing is raised, but what is chosen is there."""

    def both(key, p):
        return iso.random.choice(key, 3, 4, p=p), iso.random.choice(key, 3, 2, p=p, replace=False)

    many, two = iso.jit(both)(key_of(backend), xp.asarray(np.zeros(3)))
    assert set(numpy_of(many).tolist()) <= {0, 1, 2}
    assert len(set(numpy_of(two).tolist()) & {0, 1, 2}) == 2


# the greatest integer that a dtype and float32 have
GREATEST = {
    "int8": 127, "uint8": 255, "int16": 32767, "uint16": 65535, "int32": 2**31 - 128,
    "uint32": 2**32 - 256, "int64": 2**63 - 2**39, "uint64": 2**64 - 2**40,
}  # fmt: skip


def test_poisson_numbers_that_do_not_fit(backend, xp):
    key = key_of(backend)
    lam = xp.asarray(np.array([-1.0, np.nan, np.inf, 0.0, 1e30], np.float32))
    for dtype, most in GREATEST.items():
        found = numpy_of(iso.random.poisson(key, lam, dtype=dtype))
        wrong = most if dtype[0] == "u" else -1
        assert found.dtype == dtype
        assert found.tolist() == [wrong, wrong, wrong, 0, most], dtype
    wide = xp.asarray(np.array([1e18, 1e30]))
    found = numpy_of(iso.random.poisson(key, wide, dtype="int64")).tolist()
    assert abs(found[0] - 1e18) < 10 * 1e9  # ten standard deviations
    assert found[1] == 2**63 - 1024
    assert numpy_of(iso.random.poisson(key, wide, dtype="int32")).tolist() == [2**31 - 1] * 2
    for lam, dtype in ((100.0, "int8"), (2.0**31, "int32"), (70000.0, "uint16")):
        with pytest.raises(ValueError, match="random.poisson: needed lam so that draws fit into"):
            iso.random.poisson(key, lam, dtype=dtype)
    for lam in (np.nan, np.inf):
        with pytest.raises(TypeError, match="random.poisson: needed lam as a number"):
            iso.random.poisson(key, lam)


def test_parameters_that_a_dtype_does_not_have(backend, xp):
    key, r = key_of(backend), iso.random
    for call, words in {
        lambda: r.uniform(key, 2, maxval=1e39): "needed maxval within float32",
        lambda: r.uniform(key, 2, minval=-1e5, dtype="float16"): "needed minval within float16",
        lambda: r.uniform(key, 2, minval=1.0, maxval=1.0 + 1e-12): "differ in float32",
        lambda: r.gamma(key, 1e39, 2): "needed a within float32",
        lambda: r.bernoulli(key, xp.asarray(np.ones((3, 2))), (2,)): "a shape to which that of p",
    }.items():
        with pytest.raises(ValueError, match=words):
            call()
    # a shape parameter near 0 gives numbers near 0: below 1e-38 with a chance of 1 - 1e-38
    assert numpy_of(r.gamma(key, 1e-60, 3)).tolist() == [0.0, 0.0, 0.0]
    found = numpy_of(r.gamma(key, xp.asarray(np.array([np.inf, -0.0], np.float32))))
    assert found[0] == np.inf
    assert np.isnan(found[1])


def test_chances_in_half_precision(backend, xp):
    """They are not those of numbers with 11 bits, nor of sums that stop growing."""
    key = key_of(backend)
    few = float(np.float16(1e-4))
    ones = numpy_of(iso.random.bernoulli(key, half(backend, np.full(100_000, 1e-4)))).sum()
    assert stats.binomtest(int(ones), 100_000, few).pvalue > RARE
    chosen = numpy_of(iso.random.choice(key, 6000, 30_000, p=half(backend, np.full(6000, 1e-3))))
    counts = np.bincount(chosen, minlength=6000).reshape(30, -1).sum(1)
    assert stats.chisquare(counts).pvalue > RARE
    drawn = numpy_of(iso.random.categorical(key, half(backend, np.zeros((2000, 500)))))
    counts = np.bincount(drawn, minlength=500).reshape(10, -1).sum(1)
    assert stats.chisquare(counts).pvalue > RARE
    mean, cov = half(backend, [1.0, 2.0]), half(backend, np.eye(2))
    found = iso.random.multivariate_normal(key, mean, cov)
    wide = iso.random.multivariate_normal(
        key, xp.asarray(np.array([1.0, 2.0], np.float32)), xp.asarray(np.eye(2, dtype=np.float32))
    )
    assert found.dtype == mean.dtype
    np.testing.assert_array_equal(numpy_of(found), numpy_of(wide).astype(np.float16))


def test_the_first_accepted_proposal(backend, xp):
    """Where none is accepted, the given number, and not a proposal, which may not occur at all."""
    proposals = xp.asarray(np.array([[-1.0, 2.0, -3.0], [4.0, 5.0, -6.0], [7.0, 8.0, -9.0]]))
    accepted = xp.asarray(
        np.array([[False, True, False], [True, True, False], [True, False, False]])
    )
    found = rejection._first(load(backend), proposals, accepted, xp.asarray(np.full(3, 0.5)))
    assert numpy_of(found).tolist() == [4.0, 2.0, 0.5]
