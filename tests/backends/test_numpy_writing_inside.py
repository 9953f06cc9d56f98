"""What a transform inside of another gives back is apart: a write into one of its results changes
no other, and no argument. Beside it stands the same by hand, in plain NumPy.
"""

import numpy
import pytest

import isomorph as iso
import isomorph.numpy as inp
from oracles import central_gradient

pytestmark = pytest.mark.parametrize("backend", ["numpy"], indirect=True)
X = numpy.array([1.1, 1.7, 0.6, 1.3])
W = numpy.arange(1.0, 5.0)


def mixed(*arrays):
    """A number in which every element of the arrays counts."""
    return sum((inp.sin(a * (k + 1.0)) * W).sum() for k, a in enumerate(arrays))


def gradients_of_a_sum(x):
    a, b = iso.grad(lambda a, b: (a + b).sum(), argnums=(0, 1))(x, x * 2)
    a *= 2.0
    return mixed(a * x, b, x)


def by_hand_gradients_of_a_sum(x):
    return mixed(2 * x, numpy.ones(4), x)


def pullback_of_an_identity(x):
    v = x * 1.0
    _, pull = iso.vjp(lambda a: a, x)
    (g,) = pull(v)
    g[1] = 5.0
    (h,) = pull(v)
    v *= 2.0
    return mixed(g, h, v)


def by_hand_pullback_of_an_identity(x):
    g = x.copy()
    g[1] = 5.0
    return mixed(g, x, 2 * x)


def pullback_of_two_outputs(x):
    outs, pull = iso.vjp(lambda a: (a, a + 1.0), x)
    v = x**2
    (g,) = pull((v, v))
    g += 1.0
    outs[0][0] = 3.0
    return mixed(g, v, *outs, x)


def by_hand_pullback_of_two_outputs(x):
    first = x.copy()
    first[0] = 3.0
    return mixed(2 * x**2 + 1, x**2, first, x + 1, x)


def values_and_tangents(x):
    v = x * 3.0
    (y, z), (s, t) = iso.jvp(lambda a: (a, a + 0.0), (x,), (v,))
    y += 1.0
    s *= 2.0
    return mixed(y, z, s, t, v, x)


def by_hand_values_and_tangents(x):
    return mixed(x + 1, x, 6 * x, 3 * x, 3 * x, x)


def outputs_of_a_map(x):
    rows = x.reshape(2, 2) * 1.0
    a, b = iso.vmap(lambda row: (row, row))(rows)
    a[0] = 7.0
    rows *= 2.0
    return mixed(a.ravel(), b.ravel(), rows.ravel())


def by_hand_outputs_of_a_map(x):
    a = x.copy()
    a[:2] = 7.0
    return mixed(a, x, 2 * x)


def a_value_beside_its_gradient(x):
    (value, same), g = iso.value_and_grad(lambda a: ((a**2).sum(), a), has_aux=True)(x)
    same *= 2.0
    g[0] = value
    return mixed(same, g, x)


def by_hand_a_value_beside_its_gradient(x):
    g = 2 * x
    g[0] = (x**2).sum()
    return mixed(2 * x, g, x)


def computed_again(x):
    y = x * 1.0
    z = iso.checkpoint(lambda a: a)(y)
    part = iso.checkpoint(lambda a: a[1:])(y)
    z += 1.0
    part *= 3.0
    return mixed(y, z) + mixed(inp.concatenate([part, y[:1]]))


def by_hand_computed_again(x):
    return mixed(x, x + 1) + mixed(numpy.append(3 * x[1:], x[0]))


def a_buffer_computed_again(x):
    def twice(a):
        b = inp.zeros(4)
        b[:2] = a[:2]
        b[2:] = a[2:] ** 2
        return b

    y = iso.checkpoint(twice)(x)
    y[0] *= x[3]
    z = iso.checkpoint(lambda a: inp.ones(4))(x)
    z *= x
    return mixed(y, z)


def by_hand_a_buffer_computed_again(x):
    y = numpy.append(x[:2], x[2:] ** 2)
    y[0] *= x[3]
    return mixed(y, x)


def filled_with_thrice(a):
    b = inp.zeros(4)
    b[...] = a * 3.0
    return b


THRICE = iso.custom_vjp(
    filled_with_thrice, lambda a: (filled_with_thrice(a), None), lambda _, g: (g * 3.0,)
)
ITSELF = iso.custom_vjp(lambda a: a, lambda a: (a, None), lambda _, g: (g,))


def rules_of_ones_own(x):
    y = x * 1.0
    a, b = THRICE(y), ITSELF(y)
    a[0] = 2.0
    b *= x
    return mixed(y, a, b)


def by_hand_rules_of_ones_own(x):
    a = 3 * x
    a[0] = 2.0
    return mixed(x, a, x * x)


def some_elements_only(x):
    y = inp.ones(4) * x[3]
    inp.sqrt(x - 1.2, out=y, where=x > 1.2)
    inp.divide(1.0, inp.where(x > 1, x, 0.0), out=y, where=x > 1.4)
    return mixed(y)


def by_hand_some_elements_only(x):
    y = numpy.where(x > 1.2, numpy.sqrt(numpy.abs(x - 1.2)), x[3])
    return mixed(numpy.where(x > 1.4, 1 / x, y))


INSIDE = {name: f for name, f in list(globals().items()) if f"by_hand_{name}" in globals()}


@pytest.mark.parametrize("name", INSIDE)
def test_value_gradient_and_map_are_those_by_hand(backend, name):
    inside, by_hand = INSIDE[name], globals()[f"by_hand_{name}"]
    value, grad = iso.value_and_grad(inside)(X)
    numpy.testing.assert_allclose(value, by_hand(X), rtol=1e-13)
    slopes = central_gradient(by_hand, X)
    numpy.testing.assert_allclose(grad, slopes, rtol=0, atol=1e-7)
    numpy.testing.assert_allclose(inside(X), by_hand(X), rtol=1e-13)
    rows = numpy.stack([X, X + 0.04])
    wanted = [by_hand(row) for row in rows]
    numpy.testing.assert_allclose(iso.vmap(inside)(rows), wanted, rtol=1e-13)
    wanted = [central_gradient(by_hand, row) for row in rows]
    numpy.testing.assert_allclose(iso.vmap(iso.grad(inside))(rows), wanted, rtol=0, atol=1e-7)
    numpy.testing.assert_allclose(
        iso.grad(lambda rows: iso.vmap(inside)(rows).sum())(rows), wanted, rtol=0, atol=1e-7
    )
    numpy.testing.assert_allclose(iso.jvp(inside, (X,), (W,))[1], slopes @ W, rtol=0, atol=1e-6)
