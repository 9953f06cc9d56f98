"""The NumPy tape's derivatives at kinks, where there is a choice: the convention, by
exact values.
"""

import numpy as np
import pytest

import isomorph as iso

pytestmark = pytest.mark.parametrize("backend", ["numpy"], indirect=True)
same = np.testing.assert_array_equal


def both(f, a, b):
    return iso.grad(lambda a, b: np.sum(f(a, b)), argnums=(0, 1))(a, b)


def test_a_tie_gives_half_to_each(backend):
    a, b = np.array([1.0, 2.0, 3.0]), np.array([1.0, 5.0, 0.0])
    for f, first in ((np.maximum, [0.5, 0.0, 1.0]), (np.minimum, [0.5, 1.0, 0.0])):
        ga, gb = both(f, a, b)
        same(ga, first)
        same(gb, 1 - np.array(first))


def test_poles_of_the_usual_compositions_are_finite(backend):
    ga, gb = both(np.hypot, np.array([0.0, 3.0]), np.array([0.0, 4.0]))
    np.testing.assert_allclose(ga, [0.0, 0.6])
    np.testing.assert_allclose(gb, [0.0, 0.8])
    low = np.array([-np.inf, 0.0])
    ga, gb = both(np.logaddexp, low, low)
    same(ga, [0.5, 0.5])
    same(gb, [0.5, 0.5])


def test_clip_gives_the_gradient_to_what_was_taken(backend):
    x, low, high = np.array([-2.0, 0.5, 3.0]), np.full(3, -1.0), np.full(3, 1.0)
    f = lambda x, low, high: np.sum(np.clip(x, low, high) * np.array([1.0, 10.0, 100.0]))
    gx, glow, ghigh = iso.grad(f, argnums=(0, 1, 2))(x, low, high)
    same(gx, [0.0, 10.0, 0.0])
    same(glow, [1.0, 0.0, 0.0])
    same(ghigh, [0.0, 0.0, 100.0])


def test_kinks_of_one_argument(backend):
    at = lambda f, x: iso.grad(lambda x: np.sum(f(x)))(np.array(x))
    same(at(np.abs, [0.0, -2.0]), [0.0, -1.0])
    same(at(np.sign, [0.0, -2.0]), [0.0, 0.0])
    same(at(np.floor, [0.5]), [0.0])
    same(at(lambda x: np.nextafter(x, 9.0), [0.5]), [1.0])
    same(at(lambda x: x**0, [0.0, 2.0]), [0.0, 0.0])
    same(at(lambda x: np.power(0.0, x), [1.0, 2.0]), [0.0, 0.0])


def test_descending_order_along_an_axis_with_ties(backend, xp):
    x = np.array([[1, 5], [3, 5], [3, 2]])
    same(xp.argsort(x, axis=0, descending=True), [[1, 0], [2, 1], [0, 2]])
    same(xp.sort(x, axis=0, descending=True), [[3, 5], [3, 5], [1, 2]])
