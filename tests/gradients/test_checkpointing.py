"""`checkpoint`: the same gradients, recomputed from the arguments."""

import tracemalloc
from collections import OrderedDict, deque
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from frameworks import torch

import isomorph as iso
from oracles import central_gradient, numpy_of

X = np.array([0.5, 1.5, -2.0])
modes = pytest.mark.parametrize("mode", ["eager", "jit"])


def run(mode, func):
    return iso.jit(func) if mode == "jit" else func


def plain(x, w):
    return np.sum(np.sin(x * w) ** 2 * w)


@modes
def test_gradients_reach_arguments_and_captured_arrays(backend, xp, mode):
    def loss(x, w):
        inner = iso.checkpoint(lambda x: xp.sum(xp.sin(x * w) ** 2 * w))
        return inner(x)

    x, w = xp.asarray(X), xp.asarray(X + 0.3)
    both = iso.value_and_grad(loss, (0, 1))
    cross = lambda x: iso.grad(lambda w: xp.sum(iso.grad(loss)(x, w) * x))
    (value, (gx, gw)), mixed = run(mode, lambda x, w: (both(x, w), cross(x)(w)))(x, w)
    np.testing.assert_allclose(float(value), plain(X, X + 0.3), rtol=1e-12)
    np.testing.assert_allclose(numpy_of(gx), central_gradient(lambda x: plain(x, X + 0.3), X), 1e-7)
    np.testing.assert_allclose(numpy_of(gw), central_gradient(lambda w: plain(X, w), X + 0.3), 1e-7)
    inner = lambda w: np.sum(np.sin(2 * X * w) * w**2 * X)
    np.testing.assert_allclose(numpy_of(mixed), central_gradient(inner, X + 0.3), rtol=1e-6)


def test_the_function_runs_again_on_the_way_back(backend, xp):
    runs = []

    def counted(x):
        runs.append(1)
        return xp.sum(xp.sin(x))

    _, pullback = iso.vjp(iso.checkpoint(counted), xp.asarray(X))
    before = len(runs)
    (grad,) = pullback(xp.asarray(1.0, dtype=xp.float64))
    np.testing.assert_allclose(numpy_of(grad), np.cos(X), rtol=1e-14)
    # JAX traces the function once and reruns the trace
    assert len(runs) == before + (backend != "jax")


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
def test_nothing_between_is_kept(backend, xp):
    # ten layers that would each keep their input; tracemalloc only sees NumPy's memory
    x = np.ones(200_000)

    def deep(x):
        for _ in range(10):
            x = np.sin(x)
        return np.sum(x)

    def peak(func):
        tracemalloc.start()
        iso.grad(func)(x)
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size / x.nbytes

    chunk = iso.checkpoint(lambda x: np.sin(np.sin(x)))

    def chunked(x):
        for _ in range(5):
            x = chunk(x)
        return np.sum(x)

    assert peak(deep) > 11  # the input of every layer, and the gradient
    assert peak(chunked) < 10  # five inputs, and one chunk at a time


@modes
def test_nests_integers_flags_and_several_outputs(backend, xp, mode):
    def func(p, i, *, power):
        rows = xp.take(p["w"], i)
        return {"a": rows**power, "n": i, "s": [xp.sum(p["b"]) * p["k"]]}

    p = {"w": xp.asarray(X), "b": xp.asarray(X), "k": 2.0}
    i = xp.asarray([2, 0, 0])

    def loss(w, b):
        out = iso.checkpoint(func)({"w": w, "b": b, "k": 2.0}, i, power=3)
        return xp.sum(out["a"]) + out["s"][0]

    gw, gb = run(mode, iso.grad(loss, (0, 1)))(p["w"], p["b"])
    np.testing.assert_allclose(numpy_of(gw), [6 * 0.25, 0.0, 12.0], rtol=1e-12)
    np.testing.assert_allclose(numpy_of(gb), [2.0] * 3, rtol=1e-12)
    out = iso.checkpoint(func)(p, i, power=3)
    np.testing.assert_array_equal(numpy_of(out["n"]), [2, 0, 0])


class Model:
    def __init__(self, w):
        self.w = [w]

    def __call__(self, x):
        return x * self.w[0]

    def energy(self, x, scale=1.0):
        return scale * self(x) ** 2


def test_captured_in_objects_partials_defaults_and_each_other(backend, xp):
    x = xp.asarray(X)

    def loss(w):
        model = Model(w)

        def with_default(x, w=w):
            return x * w

        def again(x, depth=2):  # captures itself
            return again(x, depth - 1) * w if depth else x

        parts = [
            iso.checkpoint(model)(x),  # w
            iso.checkpoint(model.energy)(x),  # w²x²
            iso.checkpoint(partial(model.energy, scale=w))(x),  # w³x²
            iso.checkpoint(with_default)(x),  # wx
            iso.checkpoint(again)(x),  # w²x
        ]
        return sum(xp.sum(part) for part in parts)

    grad = iso.grad(loss)(xp.asarray(X + 3))
    w = X + 3
    by_hand = X + 2 * w * X**2 + 3 * w**2 * X**2 + X + 2 * w * X
    np.testing.assert_allclose(numpy_of(grad), by_hand, rtol=1e-12)


@pytest.mark.parametrize("backend", ["numpy", "tensorflow", "torch"], indirect=True)
def test_what_cannot_be_found_raises(backend, xp):
    hidden = {}  # like a global for the function

    def loss(w):
        hidden["w"] = w
        return xp.sum(iso.checkpoint(eval("lambda x: x * hidden['w']", {"hidden": hidden}))(w * 2))

    with pytest.raises(TypeError, match="argument.*captured in its closure"):
        iso.grad(loss)(xp.asarray(X))


def test_no_arrays_no_ceremony(backend, xp):
    assert iso.checkpoint(lambda n: n + 1)(2) == 3
    with pytest.raises(TypeError, match="checkpoint: needed a function"):
        iso.checkpoint(3)


@dataclass(slots=True)
class Slot:
    w: object


class Single(Model):
    def __copy__(self):
        return self


def test_captured_in_slots_deques_and_functions_with_attributes(backend, xp):
    x = xp.asarray(X)

    def loss(w):
        slot, queue, table = Slot(w), deque([w]), OrderedDict(w=w)

        def scaled(x):
            return x * w * scaled.factor

        scaled.factor = 2.0
        parts = [
            iso.checkpoint(lambda x: x * slot.w)(x),
            iso.checkpoint(lambda x: x * queue[0])(x),
            iso.checkpoint(lambda x: x * table["w"])(x),
            iso.checkpoint(scaled)(x),
        ]
        return sum(xp.sum(part) for part in parts)

    np.testing.assert_allclose(numpy_of(iso.grad(loss)(xp.asarray(X + 3))), 5 * X, rtol=1e-12)


@pytest.mark.parametrize("backend", ["numpy", "tensorflow", "torch"], indirect=True)
def test_an_object_that_cannot_be_copied_is_left_alone(backend, xp):
    held = Single(xp.asarray(X))
    before = held.w[0]
    grad = iso.grad(lambda x: xp.sum(iso.checkpoint(lambda x: held(x))(x)))(xp.asarray(X))
    np.testing.assert_allclose(numpy_of(grad), X)
    assert held.w[0] is before

    def loss(w):
        held.w = [w]
        return xp.sum(iso.checkpoint(lambda x: held(x))(w * 2))

    with pytest.raises(TypeError, match="argument.*captured in its closure"):
        iso.grad(loss)(xp.asarray(X))


def test_words_and_flags_pass_through(backend, xp):
    def func(x, how, *, flag):
        return {"y": x * 2 if flag and how == "twice" else x, "how": how}

    out = iso.checkpoint(func)(xp.asarray(X), "twice", flag=True)
    np.testing.assert_allclose(numpy_of(out["y"]), 2 * X)
    assert out["how"] == "twice"


@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_torch_draws_the_same_numbers_again(backend, xp):
    def drop(x):
        return (x * x * torch.rand(3, dtype=torch.float64)).sum()

    x = torch.ones(3, dtype=torch.float64)
    value, grad = iso.value_and_grad(iso.checkpoint(drop))(x)
    np.testing.assert_allclose(float(grad.sum()), 2 * float(value), rtol=1e-12)
    after = torch.rand(1)
    assert not torch.equal(after, torch.rand(1))  # the generator advanced
