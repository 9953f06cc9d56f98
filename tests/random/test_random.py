"""`iso.random`: the numbers of `jax.random` on every backend, and their distributions.

Draws with a fixed key are fixed, so no test of a distribution passes or fails by chance.
"""

import doctest
import statistics

import numpy as np
import pytest
from frameworks import enable_x64, jax
from scipy import stats

import isomorph as iso
from isomorph.backends.composed import Backend
from isomorph.core.dispatch import load
from isomorph.meanings import random as draws
from isomorph.random import distributions
from oracles import kind_of, numpy_of, same_but_for_digits

SEED = 20240521
COMPILED = pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)


def key_of(backend, seed=SEED):
    return iso.random.key(seed, backend=backend)


def native(seed=SEED):
    """The same key made by JAX."""
    return jax.random.PRNGKey(seed)


def bits_of(x):
    """The bits of an array: tells -0.0 from 0.0 and compares NaNs."""
    x = np.ascontiguousarray(numpy_of(x))
    return x.view(f"u{x.itemsize}") if x.dtype != bool else x


def same_bits(got, wanted, dtype):
    assert numpy_of(got).dtype == dtype
    np.testing.assert_array_equal(bits_of(got), bits_of(np.asarray(wanted, dtype)))


# Equality with JAX.

EXACT = {
    "split": (lambda k: iso.random.split(k, 5), lambda k: jax.random.split(k, 5), np.uint32),
    "fold_in": (
        lambda k: iso.random.fold_in(k, 2**32 - 1),
        lambda k: jax.random.fold_in(k, 2**32 - 1),
        np.uint32,
    ),
    "bits": (
        lambda k: iso.random.bits(k, (3, 7)),
        lambda k: jax.random.bits(k, (3, 7), "uint32"),
        np.uint32,
    ),
    "uniform": (
        lambda k: iso.random.uniform(k, (3, 7)),
        lambda k: jax.random.uniform(k, (3, 7), "float32"),
        np.float32,
    ),
    "bernoulli": (
        lambda k: iso.random.bernoulli(k, 0.3, (3, 7)),
        lambda k: jax.random.bernoulli(k, np.float32(0.3), (3, 7)),
        bool,
    ),
    "permutation": (
        lambda k: iso.random.permutation(k, 2000),  # uses two rounds of sorting
        lambda k: jax.random.permutation(k, 2000),
        np.int64,
    ),
}
WIDE = {
    "bits": (
        lambda k: iso.random.bits(k, (3, 7), dtype="uint64"),
        lambda k: jax.random.bits(k, (3, 7), "uint64"),
        np.uint64,
    ),
    "short": (
        lambda k: iso.random.bits(k, (3, 7), dtype="uint8"),
        lambda k: jax.random.bits(k, (3, 7), "uint8"),
        np.uint8,
    ),
    "uniform": (
        lambda k: iso.random.uniform(k, (3, 7), dtype="float64"),
        lambda k: jax.random.uniform(k, (3, 7), "float64"),
        np.float64,
    ),
}


@pytest.mark.parametrize("seed", [0, 7, 2**31, 2**32 - 1, 2**40 + 3, 2**63 - 1, -1])
def test_keys_are_those_of_jax(backend, seed):
    with enable_x64(True):  # otherwise JAX ignores half of the seed
        wanted = np.asarray(jax.random.PRNGKey(seed))
    key = key_of(backend, seed)
    assert kind_of(key) == backend
    same_bits(key, wanted, np.uint32)


def test_a_key_lives_where_creation_lives(backend):
    with iso.use_backend(backend):
        assert kind_of(iso.random.key(0)) == backend
    assert kind_of(iso.random.key(0)) == "numpy"


@pytest.mark.parametrize("name", EXACT)
def test_draws_are_those_of_jax(backend, name):
    call, oracle, dtype = EXACT[name]
    got = call(key_of(backend))
    assert isinstance(got, load(backend).arrays)
    same_bits(got, oracle(native()), dtype)


@pytest.mark.parametrize("name", WIDE)
def test_wide_and_narrow_draws_are_those_of_jax(backend, name):
    call, oracle, dtype = WIDE[name]
    with enable_x64(True):
        wanted = np.asarray(oracle(native()))
    same_bits(call(key_of(backend)), wanted, dtype)


@COMPILED
def test_compiled_draws_are_the_same(backend):
    """One program for all draws, because compiling takes long."""

    def program(key, number):
        calls = EXACT | ({"wide": WIDE["uniform"], "long": WIDE["bits"]})
        drawn = {name: call(key) for name, (call, _, _) in calls.items()}
        drawn["folded"] = iso.random.fold_in(key, number)
        drawn["normal"] = iso.random.normal(key, 500)
        drawn["between"] = iso.random.uniform(key, 500, minval=-0.3, maxval=1.7)
        drawn["truncated"] = iso.random.truncated_normal(key, 50, lower=1.0)
        return drawn

    xp = load(backend)
    got = iso.jit(program)(key_of(backend), xp.asarray(5))
    wanted = program(key_of("numpy"), 5)
    assert len(wanted) == 12
    for name, x in got.items():
        assert kind_of(x) == backend
        if name in ("normal", "truncated"):
            same_but_for_digits(x, wanted[name])
        else:
            same_bits(x, wanted[name], wanted[name].dtype)


def test_a_range_is_that_of_jax_up_to_rounding(backend):
    """JAX rounds once more or once less when compiled: one unit in the last place."""
    got = numpy_of(iso.random.uniform(key_of(backend), 1000, minval=-1.3, maxval=2.7))
    wanted = jax.random.uniform(native(), (1000,), "float32", np.float32(-1.3), np.float32(2.7))
    np.testing.assert_array_max_ulp(got, np.asarray(wanted), 1)
    same_bits(got, iso.random.uniform(key_of("numpy"), 1000, minval=-1.3, maxval=2.7), np.float32)


def test_a_range_leaves_its_end_out(backend):
    """Between two adjacent floats only the lower one can be drawn."""
    low, high = 1.0, float(np.nextafter(np.float32(1), np.float32(2)))
    got = numpy_of(iso.random.uniform(key_of(backend), 100, minval=low, maxval=high))
    np.testing.assert_array_equal(got, np.ones(100, np.float32))


def test_a_large_draw_is_made_of_the_same_numbers(backend):
    """Beyond one block, and in JAX compiled: number i does not depend on the size of the draw."""
    n = 300_000
    got = iso.random.bits(key_of(backend), n)
    same_bits(got, jax.random.bits(native(), (n,), "uint32"), np.uint32)
    assert np.array_equal(numpy_of(iso.random.bits(key_of(backend), 5)), numpy_of(got)[:5])
    drawn = iso.random.normal(key_of(backend), n)
    same_but_for_digits(drawn, iso.random.normal(key_of("numpy"), n))


def test_every_way_to_the_words_is_the_same(backend):
    """The definition over the vocabulary, each backend's own version, and Python integers agree."""
    xp = load(backend)
    counts = np.array([0, 1, 2, 77, 2**31, 2**32 - 1, 5, 6, 7, 8], np.uint32)
    key = key_of(backend, -3)
    wanted = np.array([draws.hashed(*numpy_of(key).tolist(), n) for n in counts.tolist()]).T
    given = xp.astype(xp.asarray(counts.astype(np.int64)), getattr(xp, xp.word))
    ways = [xp.words] if backend == "torch" else [xp.words, lambda *a: Backend.words(xp, *a)]
    for way in ways:
        np.testing.assert_array_equal(np.stack([numpy_of(x) for x in way(key, given)]), wanted)


@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_the_words_of_another_device(backend):
    """torch's version for devices without NumPy, run on the CPU."""
    import torch

    from isomorph.backends.torch.random import _on_device

    counts = torch.arange(2**32 - 20, 2**32)
    got = _on_device(key_of(backend, -3).to(torch.int64), counts)
    wanted = [draws.hashed(*key_of("numpy", -3).tolist(), n) for n in counts.tolist()]
    np.testing.assert_array_equal(got.cpu().numpy().T, wanted)


def test_numpy_has_the_quantiles_of_the_meaning(backend):
    xp = load(backend)
    p = np.concatenate([np.linspace(1e-4, 1 - 1e-4, 999), 10.0 ** -np.arange(5, 300, 7)])
    q, tail = xp.asarray(p - 0.5), xp.asarray(np.minimum(p, 1 - p))
    wanted = [statistics.NormalDist().inv_cdf(x) for x in p]
    for way in (xp.probit, lambda *a: Backend.probit(xp, *a)):
        # near the middle p itself has an absolute error of 1e-16
        np.testing.assert_allclose(numpy_of(way(q, tail)), wanted, rtol=3e-15, atol=3e-16)


# Distributions.

N = 20_000
LIKELY = 1e-3  # p-values below this fail; keys are fixed, so this never happens by chance


def kolmogorov(numbers, cdf):
    assert stats.kstest(np.asarray(numbers, np.float64), cdf).pvalue > LIKELY


def test_uniform_numbers(backend):
    x = numpy_of(iso.random.uniform(key_of(backend), N, minval=-2, maxval=3))
    assert x.min() >= -2
    assert x.max() < 3
    kolmogorov(x, stats.uniform(-2, 5).cdf)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal_numbers(backend, dtype):
    x = numpy_of(iso.random.normal(key_of(backend), N, dtype=dtype))
    assert x.dtype == dtype
    kolmogorov(x, stats.norm.cdf)
    assert abs(x.mean()) < 4 / N**0.5
    assert abs(x.var() - 1) < 4 * (2 / N) ** 0.5
    assert abs(stats.kurtosis(x)) < 4 * (24 / N) ** 0.5


def test_normal_numbers_are_those_of_jax_with_more_digits(backend):
    """JAX loses digits near 1, where its inverse of erf is steep: 6e-6 at 3.8."""
    got = numpy_of(iso.random.normal(key_of(backend), N))
    wanted = np.asarray(jax.random.normal(native(), (N,), "float32"))
    np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=1e-7)
    same_but_for_digits(got, iso.random.normal(key_of("numpy"), N))
    u = np.asarray(jax.random.uniform(native(), (N,), "float32"), np.float64) + 2.0**-25
    exact = np.array([statistics.NormalDist().inv_cdf(p) for p in u], np.float32)
    same_but_for_digits(got, exact)


@pytest.mark.parametrize(
    ("low", "high"), [(-2, 2), (-0.5, 3), (4, 5), (-np.inf, -6), (1, np.inf), (8, 9)]
)
def test_truncated_normal_numbers(backend, low, high):
    x = numpy_of(iso.random.truncated_normal(key_of(backend), 5000, lower=low, upper=high))
    assert x.min() >= np.float32(low)
    assert x.max() <= np.float32(high)
    kolmogorov(x, stats.truncnorm(low, high).cdf)
    wanted = iso.random.truncated_normal(key_of("numpy"), 5000, lower=low, upper=high)
    same_but_for_digits(x, wanted)


def test_truncated_normal_numbers_are_those_of_jax(backend):
    got = numpy_of(iso.random.truncated_normal(key_of(backend), (3, 7), lower=-1, upper=2))
    wanted = jax.random.truncated_normal(native(), -1, 2, (3, 7), "float32")
    np.testing.assert_allclose(got, np.asarray(wanted), rtol=1e-5, atol=1e-6)


def test_truth_values(backend):
    for p in (0.0, 1e-3, 0.5, 0.9, 1.0):
        count = int(numpy_of(iso.random.bernoulli(key_of(backend), p, N)).sum())
        assert stats.binomtest(count, N, p).pvalue > LIKELY
    p = load(backend).asarray(np.array([[0.0, 1.0, 0.25]] * N, np.float32))
    hits = numpy_of(iso.random.bernoulli(key_of(backend), p))
    assert hits.shape == (N, 3)
    assert hits[:, 0].sum() == 0
    assert hits[:, 1].sum() == N
    assert stats.binomtest(int(hits[:, 2].sum()), N, 0.25).pvalue > LIKELY


@pytest.mark.parametrize("n", [0, 1, 2, 5, 3000])
def test_permutations(backend, n):
    got = numpy_of(iso.random.permutation(key_of(backend), n))
    np.testing.assert_array_equal(np.sort(got), np.arange(n))
    np.testing.assert_array_equal(got, iso.random.permutation(key_of("numpy"), n))


def test_every_order_is_as_likely(backend):
    keys = numpy_of(iso.random.split(key_of(backend), 1200))
    xp = load(backend)
    orders = [tuple(numpy_of(iso.random.permutation(xp.asarray(k), 3))) for k in keys[:1200]]
    counts = [orders.count(o) for o in sorted(set(orders))]
    assert len(counts) == 6
    assert stats.chisquare(counts).pvalue > LIKELY


def test_an_array_in_random_order(backend):
    xp = load(backend)
    x = np.arange(24.0).reshape(2, 3, 4)
    for axis in (0, 1, -1):
        order = iso.random.permutation(key_of("numpy"), x.shape[axis])
        got = iso.random.permutation(key_of(backend), xp.asarray(x), axis=axis)
        np.testing.assert_array_equal(numpy_of(got), np.take(x, order, axis))
    weights = xp.asarray(np.arange(3.0))
    loss = lambda x: xp.sum(iso.random.permutation(key_of(backend), x) * weights)
    order = iso.random.permutation(key_of("numpy"), 3)
    wanted = np.zeros(3)
    wanted[order] = np.arange(3.0)
    np.testing.assert_array_equal(numpy_of(iso.grad(loss)(xp.asarray(x[0, 0, :3]))), wanted)


def test_choices(backend):
    xp = load(backend)
    p = np.array([[0.1, 0.2, 0.7], [0.5, 0.49, 0.01]])
    logits = np.log(p).astype(np.float32)
    got = numpy_of(iso.random.categorical(key_of(backend), xp.asarray(logits), shape=(N, 2)))
    assert got.shape == (N, 2)
    for row in range(2):
        counts = np.bincount(got[:, row], minlength=3)
        assert stats.chisquare(counts, N * p[row]).pvalue > LIKELY
    turned = xp.asarray(np.ascontiguousarray(logits.T))
    along = iso.random.categorical(key_of(backend), turned, axis=0, shape=(5, 2))
    wanted = jax.random.categorical(native(), logits.T, axis=0, shape=(5, 2))
    np.testing.assert_array_equal(numpy_of(along), np.asarray(wanted))
    wanted = jax.random.categorical(native(), logits, shape=(500, 2))
    first = iso.random.categorical(key_of(backend), xp.asarray(logits), shape=(500, 2))
    np.testing.assert_array_equal(numpy_of(first), np.asarray(wanted))


def test_split_keys_draw_numbers_that_have_nothing_in_common(backend):
    keys = iso.random.split(key_of(backend), 8)
    rows = np.stack([numpy_of(iso.random.normal(keys[i, :], 4000)) for i in range(8)])
    between = np.corrcoef(rows)[np.triu_indices(8, 1)]
    assert np.abs(between).max() < 4.5 / 4000**0.5
    assert np.unique(rows).size > 31_900  # 23 bits each: a few coincide by chance
    joined = np.concatenate([numpy_of(keys), numpy_of(key_of(backend))[None]])
    assert len({tuple(k) for k in joined}) == 9


# Draws under transforms.


def test_a_number_in_an_array_is_that_number(backend):
    number = iso.convert(np.asarray(7), backend)
    folded = (iso.random.fold_in(key_of(backend), n) for n in (number, 7))
    np.testing.assert_array_equal(*map(numpy_of, folded))


def test_one_draw_for_each_of_many_keys(backend):
    keys = iso.random.split(key_of(backend), 3)
    got = iso.vmap(lambda key: iso.random.uniform(key, (4,)))(keys)
    wanted = [iso.random.uniform(k, 4) for k in iso.random.split(key_of("numpy"), 3)]
    same_bits(got, np.stack(wanted), np.float32)
    numbers = load(backend).asarray(np.arange(3))
    folded = iso.vmap(lambda n: iso.random.fold_in(key_of(backend), n))(numbers)
    same_bits(folded, numpy_of(keys), np.uint32)


def test_a_draw_is_a_constant_to_gradients(backend):
    xp = load(backend)
    key = key_of(backend)
    func = lambda x: xp.sum(x**2 * iso.random.normal(key, (3,), dtype="float64"))
    noise = iso.random.normal(key_of("numpy"), 3, dtype="float64")
    x = np.array([1.0, 2.0, -3.0])
    got = numpy_of(iso.grad(func)(xp.asarray(x)))
    np.testing.assert_allclose(got, 2 * x * noise, rtol=1e-14)
    second = numpy_of(iso.hessian(func)(xp.asarray(x)))
    np.testing.assert_allclose(second, np.diag(2 * noise), rtol=1e-14)


@pytest.mark.parametrize("draw", ["uniform", "normal", "bernoulli"])
def test_quick_draws(backend, draw):
    func = getattr(iso.random, draw)
    args = (0.5, N) if draw == "bernoulli" else (N,)
    x = func(key_of(backend), *args, exact=False)
    assert kind_of(x) == backend
    np.testing.assert_array_equal(numpy_of(x), numpy_of(func(key_of(backend), *args, exact=False)))
    other = numpy_of(func(key_of(backend, 1), *args, exact=False))
    x = numpy_of(x)
    assert np.mean(x == other) < 0.6
    if draw == "bernoulli":
        assert stats.binomtest(int(x.sum()), N).pvalue > LIKELY
        chances = load(backend).asarray(np.full(N, 0.5, np.float32))
        each = numpy_of(func(key_of(backend), chances, exact=False))
        assert stats.binomtest(int(each.sum()), N).pvalue > LIKELY
        exact = numpy_of(func(key_of(backend), chances))
        # JAX uses the same generator for both
        assert np.mean(each == exact) < 0.6 or backend == "jax"
    elif draw == "uniform":
        wide = numpy_of(func(key_of(backend), N, minval=-2, maxval=3, exact=False))
        assert wide.min() >= -2
        kolmogorov(wide, stats.uniform(-2, 5).cdf)
        kolmogorov(x, stats.uniform.cdf)
    else:
        kolmogorov(x, stats.norm.cdf)


# Dtypes and bad input.


def test_the_dtype_is_asked_for_or_that_of_the_home(backend):
    key, xp = key_of(backend), load(backend)
    assert iso.random.normal(key).dtype == xp.float32
    with iso.use_backend(backend, dtype="float64"):
        assert iso.random.uniform(key).dtype == xp.float64
    half = iso.random.uniform(key, 1000, dtype="float16")
    assert half.dtype == xp.narrow("float16")
    whole = numpy_of(iso.random.uniform(key, 1000))
    # rounded down, so never 1
    np.testing.assert_array_equal(numpy_of(half), np.floor(whole * 1024) / 1024)
    if backend != "numpy":
        assert iso.random.normal(key, 2, dtype="bfloat16").dtype == xp.narrow("bfloat16")


@pytest.mark.parametrize("backend", ["jax"], indirect=True)
def test_without_64_bits_draws_are_the_same(backend):
    with enable_x64(False):
        key = key_of(backend)
        wanted = iso.random.normal(key_of("numpy"), 300_000)
        same_but_for_digits(iso.random.normal(key, 300_000), wanted)
        same_but_for_digits(iso.jit(lambda k: iso.random.normal(k, 40))(key), wanted[:40])
        with pytest.raises(TypeError, match="JAX has no float64 here"):
            iso.random.uniform(key, dtype="float64")


BAD = {
    "key_float": (lambda k: iso.random.key(1.5), "random.key: needed an integer, got 1.5"),
    "key_large": (lambda k: iso.random.key(2**64), "random.key: needed an integer of 64 bits"),
    "not_a_key": (lambda k: iso.random.split([1, 2]), "random.split: needed a key"),
    "key_shape": (lambda k: iso.random.bits(iso.random.split(k, 3)), "uint32 of shape (3, 2)"),
    "split_none": (lambda k: iso.random.split(k, 0), "random.split: needed the number of keys"),
    "split_float": (lambda k: iso.random.split(k, 2.0), "at least 1, got 2.0"),
    "fold_negative": (lambda k: iso.random.fold_in(k, -1), "from 0 to 2**32 - 1, got -1"),
    "fold_float": (lambda k: iso.random.fold_in(k, 1.0), "random.fold_in: needed an integer"),
    "negative": (
        lambda k: iso.random.uniform(k, (2, -1)),
        "integers >= 0, got (2, -1)",
    ),
    "half": (lambda k: iso.random.normal(k, (2.5,)), "random.normal: needed a shape"),
    "unknown": (lambda k: iso.random.normal(k, (None, 2)), "random.normal: needed a shape"),
    "huge": (lambda k: iso.random.bits(k, (2**17, 2**17)), "at most 2**32 numbers"),
    "range": (lambda k: iso.random.uniform(k, minval=2, maxval=1), "minval < maxval, got 2.0"),
    "nan": (lambda k: iso.random.uniform(k, minval=np.nan), "needed minval as a number"),
    "bounds": (lambda k: iso.random.truncated_normal(k, lower=3), "lower < upper, got 3.0"),
    "beyond": (
        lambda k: iso.random.truncated_normal(k, lower=40, upper=50),
        "lower <= 35",
    ),
    "chance": (lambda k: iso.random.bernoulli(k, 1.5), "needed p from 0 to 1, got 1.5"),
    "integers": (lambda k: iso.random.normal(k, dtype="int32"), "needed a real floating dtype"),
    "signed": (lambda k: iso.random.bits(k, dtype="int32"), "random.bits: needed one of uint8"),
    "permuted": (lambda k: iso.random.permutation(k, -1), "random.permutation: needed a number"),
    "logits": (lambda k: iso.random.categorical(k, [0.0, 1.0]), "needed logits as floats"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(backend, name):
    call, words = BAD[name]
    with pytest.raises((TypeError, ValueError)) as caught:
        call(key_of(backend))
    assert words in str(caught.value)


def test_arrays_of_another_backend_are_refused(backend):
    other = "numpy" if backend == "torch" else "torch"
    with pytest.raises(TypeError, match="arrays of 2 backends"):
        iso.random.permutation(key_of(backend), load(other).ones(3))


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)  # NumPy needs no extra package
def test_every_function_has_an_example_that_runs(backend):
    names = iso.random.__all__
    assert sorted(names) == names
    for name in names:
        func = getattr(iso.random, name)
        assert ">>>" in func.__doc__
        assert "return" in func.__annotations__
    modules = (iso.random, distributions)
    found = [doctest.testmod(part, extraglobs={"iso": iso, "np": np}) for part in modules]
    assert [each.failed for each in found] == [0, 0]
    assert sum(each.attempted for each in found) > len(names)
