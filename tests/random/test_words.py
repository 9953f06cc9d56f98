"""NumPy's own ways to make random numbers of words, against the plain formulas."""

import numpy as np
import pytest

import isomorph as iso
from isomorph.backends import random_words
from isomorph.core.dispatch import load
from isomorph.meanings import random as draws
from oracles import numpy_of

NUMPY = pytest.mark.parametrize("backend", ["numpy"], indirect=True)


@NUMPY
@pytest.mark.parametrize("span", [1, 2, 3, 100, 2**16 + 1, 2**31 + 11, 2**47])
def test_remainders_are_those_of_python(backend, span):
    first, second = np.random.default_rng(span).integers(0, 2**32, (2, 777), dtype=np.uint32)
    first[:3], second[:3] = (0, 2**32 - 1, 0), (0, 2**32 - 1, 2**32 - 1)
    known = [(int(x) * 2**32 + int(y)) % span for x, y in zip(first, second)]
    assert random_words.modulo(first, second, span).tolist() == known
    plain = draws.modulo(load("numpy"), first, second, span)
    assert plain.tolist() == known


@NUMPY
@pytest.mark.parametrize("count", [0, 1, 2, 1000, 20_011])
@pytest.mark.parametrize("most", [3, 2**32], ids=["ties", "words"])
def test_equal_words_keep_their_order(backend, count, most):
    words = np.random.default_rng(count).integers(0, most, count, dtype=np.uint32)
    order = random_words.order(words)
    assert order.tolist() == sorted(range(count), key=words.tolist().__getitem__)


@NUMPY
def test_tails_are_those_of_the_formula(backend):
    tail = np.concatenate([np.logspace(-16, -1.2, 999), 1.4e-11 * np.linspace(0.98, 1.02, 41)])
    for q in (0.5 - tail, tail - 0.5):
        np.testing.assert_array_equal(random_words.outer(q, tail), draws.outer(np, q, tail))


@pytest.mark.parametrize("n", [0, 1, 5, 1000])
def test_a_permutation_has_each_number_once_and_is_the_same_compiled(backend, n):
    key = iso.random.key(n, backend=backend)
    found = iso.random.permutation(key, n)
    assert sorted(numpy_of(found).tolist()) == list(range(n))
    compiled = iso.jit(lambda key: iso.random.permutation(key, n))(key)
    assert compiled.dtype == found.dtype
    np.testing.assert_array_equal(numpy_of(compiled), numpy_of(found))
    np.testing.assert_array_equal(
        numpy_of(found), iso.random.permutation(iso.random.key(n, backend="numpy"), n)
    )
