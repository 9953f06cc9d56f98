"""Eager programs over the whole vocabulary, in float64: gradients are compared with differences of
values, and second derivatives (forward over reverse) with differences of gradients.

Forward over reverse differentiates a rule where the incoming gradient is zero. A rule that inspects
the values of its gradient is wrong there, and nowhere else.
"""

import warnings

import numpy as np
import pytest
from compiled_programs import INPUTS, direction, measured
from compiled_table import TABLE

import isomorph as iso
from oracles import numpy_of

STEP = 1e-4

# Programs whose gradient is deliberately not the derivative, with the reason.
NOT_DERIVATIVES = {
    "casts": "values are rounded to float32",
    "own_rule": "a custom rule that is not the derivative",
    "transformed": "stop_gradient is part of it",
}
NAMES = [name for name in TABLE if TABLE[name].order and name not in NOT_DERIVATIVES]


def slope(above, below):
    """A directional derivative from the values one and two steps to both sides; error of order
    STEP⁴.
    """
    near, far = ((a - b) / (2 * t) for a, b, t in zip(above, below, (STEP, 2 * STEP)))
    return (4 * near - far) / 3


def check(backend, name):
    program, x = TABLE[name], INPUTS[TABLE[name].input]
    whole, first = measured(program), measured(program._replace(order=1))
    if backend == "jax":  # otherwise JAX would compile every operation for every shape
        whole = first = iso.jit(whole)
    run = lambda func, x: {
        key: numpy_of(y) for key, y in func(iso.convert(x, backend)).items() if key != "outputs"
    }
    along = direction(x.shape)
    with warnings.catch_warnings():  # a framework about its own compiler
        warnings.simplefilter("ignore")
        found = run(whole, x)
        above, below = (
            [run(first, x + sign * t * along) for t in (STEP, 2 * STEP)] for sign in (1, -1)
        )
    by_differences = lambda key: slope([y[key] for y in above], [y[key] for y in below])
    expected = by_differences("value")
    scale = max(np.abs(found["gradient"]).max(), 1e-2)
    np.testing.assert_allclose(
        np.sum(found["gradient"] * along), expected, rtol=0, atol=1e-7 * scale, err_msg=name
    )
    if program.order > 1:
        expected = by_differences("gradient")
        scale = max(np.abs(expected).max(), scale)
        np.testing.assert_allclose(
            found["second"], expected, rtol=0, atol=1e-7 * scale, err_msg=name
        )


SLOW = ("jax", "tensorflow")  # JAX compiles each, TensorFlow's eager mode is slow
CELLS = [
    pytest.param(backend, name, id=f"{backend}-{name}",
                 marks=pytest.mark.slow if backend in SLOW and number % 16 else ())
    for backend in ("numpy", "jax", "tensorflow", "torch") for number, name in enumerate(NAMES)
]  # fmt: skip


@pytest.mark.parametrize(("backend", "name"), CELLS, indirect=["backend"])
def test_every_program(backend, name):
    check(backend, name)
