"""Programs of the kinds that people wrote and could not differentiate, because they fill arrays:
unchanged, with `isomorph.numpy` as `np`. The values are those of plain NumPy, the gradients those
of differences of plain NumPy.
"""

import numpy
import pytest
from plain_numpy import same_as_plain_numpy

import isomorph as iso
import isomorph.numpy as inp
from oracles import central_gradient

pytestmark = pytest.mark.parametrize("backend", ["numpy"], indirect=True)


def block_in_a_matrix(np, x):
    big = np.zeros((5, 5))
    big[1:3, 2:4] = x[:4].reshape(2, 2)
    big[4] = x[0]
    return (big @ big.T).sum() + np.trace(big)


def one_result_after_the_other(np, x):
    rows, found = x.reshape(3, 4), np.zeros(3)
    for i in range(3):
        found[i] = np.sum(rows[i] * rows[0]) / (1 + found[i - 1] ** 2)
    return np.sum(np.sin(found))


def steps_of_a_pendulum(np, x):
    path = np.empty((30, 2))
    path[0] = x[:2]
    for t in range(29):
        angle, speed = path[t]
        path[t + 1, 0] = angle + 0.1 * speed
        path[t + 1, 1] = speed - 0.1 * (x[2] * np.sin(angle) + x[3] * speed)
    return np.mean(path[:, 0] ** 2) + path[-1, 1]


def all_paths_through_a_lattice(np, x):
    """The logarithm of the sum over all paths, by dynamic programming in a chart."""
    score, chart = x.reshape(4, 3), np.full((5, 3), -np.inf)
    chart[0, 0] = 0.0
    for t in range(4):
        for s in range(3):
            chart[t + 1, s] = np.logaddexp.reduce(chart[t]) + score[t, s]
    return np.logaddexp.reduce(chart[-1])


def three_bands_and_a_solution(np, x):
    n = 6
    bands = np.zeros((n, n))
    places = np.arange(n - 1)
    bands[places, places + 1] = -x[:5]
    bands[places + 1, places] = x[5:10]
    np.fill_diagonal(bands, 3 + x[:n] ** 2)
    return np.linalg.solve(bands, np.ones(n)) @ np.arange(n)


def a_triangle_and_its_likelihood(np, x):
    root = np.zeros((4, 4))
    root[np.tril_indices(4)] = x[:10]
    root[np.diag_indices(4)] = np.exp(root.diagonal())
    white = np.linalg.solve(root, x[8:12])
    return np.log(root.diagonal()).sum() + white @ white / 2


def heat_in_a_rod(np, x):
    heat = np.array(x)
    for _ in range(8):
        heat[1:-1] += 0.2 * (heat[2:] - 2 * heat[1:-1] + heat[:-2])
        heat[0], heat[-1] = heat[1], 0.0
    return np.sum(heat**2) + heat[3]


def pieces_by_masks(np, x):
    y = np.empty_like(x)
    low, high = x < 0, x >= 0
    y[low] = np.expm1(x[low])
    y[high] = x[high] ** 2
    y[np.abs(x) > 1.2] *= 0.5
    return (y * np.arange(len(y))).sum()


def a_filter_whose_product_is_complex(np, x):
    turns = np.exp(1j * np.linspace(0, 3, 10))
    gain = turns + 1.0
    for angle in x[:3]:
        pole = 0.5 * np.exp(1j * angle)
        gain /= (turns - pole) * (turns - np.conj(pole))
    return np.mean(np.abs(gain))


def sums_of_groups(np, x):
    sums, count = np.zeros(4), np.zeros(4)
    group = np.array([0, 2, 1, 2, 0, 3, 3, 1, 2, 2, 0, 1])
    np.add.at(sums, group, x)
    np.add.at(count, group, 1)
    sums /= count
    far = x - sums[group]
    return np.sum(far**2) + np.prod(sums)


def turned_by_three_angles(np, x):
    whole = np.eye(3)
    for axis, angle in enumerate(x[:3]):
        turn, (i, j) = np.eye(3), [k for k in range(3) if k != axis]
        turn[i, i] = turn[j, j] = np.cos(angle)
        turn[i, j], turn[j, i] = -np.sin(angle), np.sin(angle)
        whole = whole @ turn
    return np.linalg.norm(whole @ x[3:6] - x[6:9])


def sorted_and_weighed(np, x):
    y = x * 1.0
    y.sort()
    best = y[-3:]
    best *= np.array([1.0, 2.0, 3.0])
    y[0], y[1] = y[1], y[0]
    return (y * np.arange(1.0, len(y) + 1)).sum()


PROGRAMS = (
    block_in_a_matrix, one_result_after_the_other, steps_of_a_pendulum,
    all_paths_through_a_lattice, three_bands_and_a_solution, a_triangle_and_its_likelihood,
    heat_in_a_rod, pieces_by_masks, a_filter_whose_product_is_complex, sums_of_groups,
    turned_by_three_angles, sorted_and_weighed,
)  # fmt: skip
X = numpy.cos(2.3 * numpy.arange(12.0)) * 1.4


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_value_and_derivatives_are_those_of_plain_numpy(backend, program):
    ours, given = lambda x: program(inp, x), X.copy()
    slopes = same_as_plain_numpy(program, given)
    assert type(slopes) is numpy.ndarray
    assert (given == X).all()
    scale = max(1.0, abs(slopes).max())
    along = numpy.sin(numpy.arange(12.0))
    curve = iso.jvp(iso.grad(ours), (X,), (along,))[1]
    turned = iso.jvp(ours, (X,), (along,))[1]
    numpy.testing.assert_allclose(turned, slopes @ along, rtol=0, atol=1e-6 * scale)
    step = 1e-5
    differences = (iso.grad(ours)(X + step * along) - iso.grad(ours)(X - step * along)) / (2 * step)
    scale = max(1.0, abs(differences).max())
    numpy.testing.assert_allclose(curve, differences, rtol=0, atol=1e-6 * scale)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_all_examples_at_once(backend, program):
    rows = numpy.stack([X, X[::-1], X * 0.7])
    value, grad = iso.vmap(iso.value_and_grad(lambda x: program(inp, x)))(rows)
    plain = lambda x: program(numpy, x.copy())
    for i, row in enumerate(rows):
        numpy.testing.assert_allclose(value[i], plain(row), rtol=1e-12)
        slopes = central_gradient(plain, row)
        scale = max(1.0, abs(slopes).max())
        numpy.testing.assert_allclose(grad[i], slopes, rtol=0, atol=1e-7 * scale)
