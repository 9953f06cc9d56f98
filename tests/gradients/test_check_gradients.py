"""check_gradients passes right derivatives and names wrong ones."""

import numpy as np
import pytest

import isomorph as iso
from oracles import verbs_of

X = np.array([[0.5, 1.5, -0.7], [0.1, 0.9, 2.0]])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_right_derivatives_pass(backend, xp, dtype):
    x = xp.asarray(X, dtype=verbs_of(xp).dtype(dtype))
    f = lambda p, s: {"a": xp.tanh(p["w"]) * s, "b": [xp.sum(xp.exp(p["w"] / 3), axis=0)]}
    calls = []

    def counted(p, s):
        calls.append(1)
        return f(p, s)

    iso.check_gradients(counted, {"w": x}, xp.asarray(0.7, dtype=x.dtype))
    # two orders: four moves of each element of w and s, plus the value and the gradient
    assert len(calls) >= 2 * 4 * 7


def test_a_wrong_element_is_named(backend, xp):
    def wrong(saved, g):  # twice the derivative at one position
        bump = np.ones((2, 3))
        bump[1, 2] = 2.0
        return g * xp.cos(saved[0]) * xp.asarray(bump)

    f = iso.bind_custom_gradient_function(xp.sin, wrong)
    x = xp.asarray(X)
    message = r"order 1, argument 1, leaf 0, index \(1, 2\): .* off by .*; 1 elements are off"
    with pytest.raises(AssertionError, match=message):
        iso.check_gradients(lambda y, p: xp.sum(y) + f(p[0]), x, [x])


def test_a_wrong_second_derivative_is_found(backend, xp):
    # the first derivative is right, the second is lost
    frozen = lambda saved, g: g * iso.stop_gradient(xp.cos(saved[0]))
    f = iso.bind_custom_gradient_function(xp.sin, frozen)
    x = xp.asarray([0.5, 1.0])
    iso.check_gradients(f, x, order=1)
    with pytest.raises(AssertionError, match=r"order 2, argument 0, index \(1,\)"):
        iso.check_gradients(f, x, order=2)


def test_a_nan_derivative_is_off(backend, xp):
    f = iso.bind_custom_gradient_function(lambda x: x * 2, lambda saved, g: g * xp.nan)
    with pytest.raises(AssertionError, match="the derivative is nan"):
        iso.check_gradients(f, xp.asarray([1.0]), order=1)


def test_bad_input_raises(backend, xp):
    with pytest.raises(ValueError, match="needed an order of at least 1, got 0"):
        iso.check_gradients(xp.sin, xp.asarray([1.0]), order=0)
    with pytest.raises(TypeError, match="needed floating-point arrays.*argument 0"):
        iso.check_gradients(xp.sin, xp.asarray([1]))


def test_complex_arrays_are_checked_part_by_part(backend, xp):
    z = xp.asarray(np.array([0.5 - 0.3j, 1.5 + 0.2j]))
    iso.check_gradients(lambda z: z * z + xp.conj(z), z)
    iso.check_gradients(lambda z, x: xp.abs(z) * x, z, xp.asarray(np.array([0.3, 0.7])))


def test_a_wrong_part_is_named(backend, xp):
    z = xp.asarray(np.array([0.5 - 0.3j, 1.5 + 0.2j]))
    # the gradient of z² is g·conj(2z): its conjugate has a wrong imaginary part, and the negative
    # of its conjugate a wrong real part
    for part, sign in (("imaginary", 1), ("real", -1)):
        back = lambda z, g, sign=sign: (sign * xp.conj(g * xp.conj(2 * z)),)
        wrong = iso.custom_vjp(lambda z: z * z, lambda z: (z * z, z), back)
        words = rf"order 1, argument 0, index \(\d,\) {part} part"
        with pytest.raises(AssertionError, match=words):
            iso.check_gradients(wrong, z, order=1)
