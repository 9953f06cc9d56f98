"""A Python number beside a float64 array keeps all its digits on every backend. NumPy gives the
expected result.
"""

import numpy as np
import pytest

import isomorph as iso
from oracles import name_of, numpy_of

V = np.array([0.5, 1.1, 3.3])
N = 0.7
PAIRS = (
    "add", "subtract", "multiply", "divide", "pow", "maximum", "minimum", "atan2", "hypot",
    "copysign", "logaddexp", "remainder", "floor_divide", "nextafter",
)  # fmt: skip
HOWS = ("set", "add", "multiply", "min", "max")

FUNCTIONS = {
    **{f"{name} with": lambda xp, x, f=name: getattr(xp, f)(x, N) for name in PAIRS},
    **{f"{name} of": lambda xp, x, f=name: getattr(xp, f)(N, x) for name in PAIRS},
    "where it is not": lambda xp, x: xp.where(x > 1, x, N),
    "where it is": lambda xp, x: xp.where(x > 1, N, x),
    "clip": lambda xp, x: xp.clip(x, N, 2.3),
    "full": lambda xp, x: xp.full((3,), N, dtype=xp.float64),
    "full_like": lambda xp, x: xp.full_like(x, N),
    "asarray": lambda xp, x: xp.asarray([N, [N][0]], dtype=xp.float64),
    "iso.asarray": lambda xp, x: iso.asarray([N], dtype="float64", backend=name_of(xp)),
    "iso.full": lambda xp, x: iso.full(2, N, dtype="float64", backend=name_of(xp)),
    "arange": lambda xp, x: xp.arange(N, 3.1, 0.3, dtype=xp.float64),
    "linspace": lambda xp, x: xp.linspace(N, 3.1, 5, dtype=xp.float64),
    "pad": lambda xp, x: xp.pad(x, ((1, 1),), constant_values=N),
    "var": lambda xp, x: xp.var(x, correction=N),
    "std": lambda xp, x: xp.std(x, correction=N),
    "vector_norm": lambda xp, x: xp.linalg.vector_norm(x, ord=N),
    **{f"at {how}": lambda xp, x, how=how: getattr(iso.at(x)[1], how)(N) for how in HOWS},
    **{
        f"at {how} lists": lambda xp, x, how=how: getattr(iso.at(x)[:2], how)([N, 0.3])
        for how in HOWS
    },
    **{
        f"at {how} in an array of places": lambda xp, x, how=how: getattr(
            iso.at(x)[xp.asarray([0, 0, 2])], how
        )(N)
        for how in HOWS[1:]
    },
    **{
        f"at {how} a mask": lambda xp, x, how=how: getattr(iso.at(x)[x > 1], how)(N) for how in HOWS
    },
    "at set a span": lambda xp, x: iso.at(x)[iso.span(xp.asarray(1), 2)].set([N, N]),
    "leaky_relu": lambda xp, x: iso.leaky_relu(-x, alpha=N),
    "elu": lambda xp, x: iso.elu(-x, alpha=N),
    "huber": lambda xp, x: iso.huber(x, x * 0, delta=N),
    "layer_norm": lambda xp, x: iso.layer_norm(x, epsilon=N),
    "rms_norm": lambda xp, x: iso.rms_norm(x, epsilon=N),
    "cond": lambda xp, x: iso.cond(True, lambda x: x * N, lambda x: x, x),
    "fori_loop": lambda xp, x: iso.fori_loop(0, 3, lambda i, c: c * N + x, xp.zeros_like(x)),
    "scan": lambda xp, x: iso.scan(lambda c, a: (c * N + a, c), x[0] * 0, x)[1],
    "cross_entropy": lambda xp, x: iso.cross_entropy(
        xp.reshape(x, (1, -1)), xp.asarray([1]), label_smoothing=N
    ),
    "grad": lambda xp, x: iso.grad(lambda x: xp.sum(N * x))(x),
    "gradient_descent_update": lambda xp, x: iso.gradient_descent_update(x, x, N),
    **{
        f"optimizers.{name}": lambda xp, x, name=name: stepped(name, x)
        for name in ("sgd", "adam", "adamw", "lion", "rmsprop", "lamb", "lars")
    },
    "clip_by_value": lambda xp, x: iso.optimizers.clip_by_value(N).update(x, (), x)[0],
}


def stepped(name, x):
    optimizer = getattr(iso.optimizers, name)(iso.optimizers.cosine(N, 100))
    state = optimizer.init(x)
    for _ in range(2):
        updates, state = optimizer.update(x, state, x)
    return updates


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)
def test_a_number_keeps_its_digits(backend, xp, name):
    found = numpy_of(FUNCTIONS[name](xp, xp.asarray(V)))
    wanted = np.asarray(FUNCTIONS[name](iso.namespace(V), V))
    assert found.dtype == wanted.dtype == np.float64
    np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-15)


def test_a_number_put_into_an_array_is_that_number(backend, xp):
    """The same without NumPy: the number that goes in comes out."""
    for how, right in (("set", N), ("add", 1.0 + N), ("multiply", N), ("min", N), ("max", 1.0)):
        found = numpy_of(getattr(iso.at(xp.ones((3,), dtype=xp.float64))[1], how)(N))
        assert found.tolist() == [1.0, right, 1.0]
    narrow = iso.at(xp.zeros((2,), dtype=xp.float32))[0].set(N)
    assert numpy_of(narrow)[0] == np.float32(N)
    complex_ = iso.at(xp.zeros((2,), dtype=xp.complex128))[0].set(N)
    assert numpy_of(complex_)[0] == N


def test_a_number_that_does_not_fit_is_refused(backend, xp):
    with pytest.raises((OverflowError, RuntimeError), match=r"out of bounds|without overflow"):
        iso.at(xp.zeros((2,), dtype=xp.int8))[0].set(300)
