"""`vmap`: a function of one example, applied to a batch."""

from collections import OrderedDict

import numpy as np
import pytest
from frameworks import tf

import isomorph as iso
from oracles import kind_of, numpy_of

ROWS = np.linspace(-1.0, 2.0, 12).reshape(4, 3)
W = np.array([0.5, -1.0, 2.0])
modes = pytest.mark.parametrize("mode", ["eager", "jit"])


def run(mode, func):
    return iso.jit(func) if mode == "jit" else func


@modes
def test_per_example_gradients(backend, xp, mode):
    def loss(p, x, y):
        return (xp.sum(xp.tanh(p["w"] * x)) + p["b"] - y) ** 2

    per_example = iso.vmap(iso.grad(loss), in_axes=(None, 0, 0))
    p = {"w": xp.asarray(W), "b": xp.asarray(0.3, dtype=xp.float64)}
    y = ROWS[:, 0]
    grads = run(mode, per_example)(p, xp.asarray(ROWS), xp.asarray(y))
    outer = 2 * (np.sum(np.tanh(W * ROWS), 1) + 0.3 - y)
    np.testing.assert_allclose(numpy_of(grads["b"]), outer, rtol=1e-12)
    expected = outer[:, None] * ROWS / np.cosh(W * ROWS) ** 2
    np.testing.assert_allclose(numpy_of(grads["w"]), expected, rtol=1e-12)
    assert kind_of(grads["w"]) == kind_of(p["w"])


def test_axes(backend, xp):
    x = xp.asarray(ROWS)
    dot = lambda d, x, s: xp.sum(d["w"] * x) * s
    got = iso.vmap(dot, in_axes=({"w": None}, 0, None))({"w": xp.asarray(W)}, x, 2.0)
    np.testing.assert_allclose(numpy_of(got), 2 * ROWS @ W, rtol=1e-14)
    columns = xp.asarray(ROWS[:, 0])
    got = iso.vmap(dot, in_axes=({"w": None}, 1, None))({"w": columns}, x, 2.0)
    np.testing.assert_allclose(numpy_of(got), 2 * ROWS[:, 0] @ ROWS, rtol=1e-14)
    got = iso.vmap(lambda x: x * 2, in_axes=-1)(x)
    np.testing.assert_allclose(numpy_of(got), 2 * ROWS.T)
    a, b = iso.vmap(lambda x: (x, xp.sum(x)), out_axes=(1, 0))(x)
    np.testing.assert_allclose(numpy_of(a), ROWS.T)
    np.testing.assert_allclose(numpy_of(b), ROWS.sum(1))


def test_nested_and_beside_what_is_not_mapped(backend, xp):
    x, w = xp.asarray(ROWS), xp.asarray(W)
    outer = iso.vmap(lambda a: iso.vmap(lambda b: a * b + 1.0)(w))(xp.asarray(ROWS[:, 0]))
    np.testing.assert_allclose(numpy_of(outer), np.outer(ROWS[:, 0], W) + 1)
    one, two = iso.vmap(lambda x: (1.5, xp.sum(w)))(x)  # the same for every example
    np.testing.assert_allclose(numpy_of(one), [1.5] * 4)
    np.testing.assert_allclose(numpy_of(two), [1.5] * 4)
    flagged = iso.vmap(lambda x, *, power: x**power)(x, power=2)
    np.testing.assert_allclose(numpy_of(flagged), ROWS**2)


@modes
def test_differentiated_as_a_whole_to_what_it_captures(backend, xp, mode):
    x = xp.asarray(ROWS)
    total = lambda w: xp.sum(iso.vmap(lambda row: xp.sum(row * w) ** 2)(x))
    first = iso.grad(total)
    second = iso.grad(lambda w: xp.sum(first(w)))
    g, h = run(mode, lambda w: (first(w), second(w)))(xp.asarray(W))
    np.testing.assert_allclose(numpy_of(g), 2 * ROWS.T @ (ROWS @ W), rtol=1e-12)
    np.testing.assert_allclose(numpy_of(h), 2 * ROWS.T @ ROWS.sum(1), rtol=1e-12)


def test_no_examples(backend, xp):
    out = iso.vmap(lambda x: {"s": xp.sum(x), "x": x})(xp.asarray(ROWS[:0]))
    assert tuple(out["s"].shape) == (0,)
    assert tuple(out["x"].shape) == (0, 3)


def test_bad_input(backend, xp):
    x, w = xp.asarray(ROWS), xp.asarray(W)
    same = lambda *a: a[0]
    cases = [
        (ValueError, "same size, got 4 at argument 0, 3 at argument 1", {}, (x, w)),
        (ValueError, r"axis 3 for argument 0, which has shape \(4, 3\)", {"in_axes": 3}, (x,)),
        (TypeError, "argument 1, got a float; give it the axis None", {}, (x, 2.0)),
        (ValueError, "needed an argument to map over", {"in_axes": None}, (x,)),
        (ValueError, "one entry per argument, 1, got 2", {"in_axes": (0, 0)}, (x,)),
        (ValueError, "out_axes needed ints and None in a nest", {"out_axes": (0, 0)}, (x,)),
        (
            ValueError,
            "out_axes needed an axis of an output of 2 axes, got 5",
            {"out_axes": 5},
            (x,),
        ),
    ]
    for kind, match, options, args in cases:
        with pytest.raises(kind, match=match):
            iso.vmap(same, **options)(*args)
    with pytest.raises(TypeError, match=f"needed {backend} arrays as output, got str"):
        iso.vmap(lambda x: "word")(x)
    with pytest.raises(TypeError, match="vmap: needed a function"):
        iso.vmap(3)


def test_ordered_dicts_keep_their_order(backend, xp):
    square = np.arange(9.0).reshape(3, 3)
    d = OrderedDict(b=xp.asarray(square), a=xp.asarray(square))
    got = iso.vmap(lambda d: xp.sum(d["b"]), in_axes=({"b": 0, "a": 1},))(d)
    np.testing.assert_allclose(numpy_of(got), square.sum(1))
    swap = lambda x: OrderedDict(b=x, a=x)
    out = iso.vmap(swap, out_axes={"b": 0, "a": 1})(xp.asarray(ROWS))
    assert (tuple(out["b"].shape), tuple(out["a"].shape)) == ((4, 3), (3, 4))


@pytest.mark.parametrize("backend", ["tensorflow"], indirect=True)
def test_variables(backend, xp):
    got = iso.vmap(lambda x: xp.sum(x))(tf.Variable(ROWS))
    np.testing.assert_allclose(numpy_of(got), ROWS.sum(1))


@pytest.mark.parametrize("backend", ["tensorflow"], indirect=True)
def test_tensorflow_does_not_warn_of_what_the_caller_cannot_change(backend, caplog):
    """No warnings about retracing at eager calls, nor about operations that run row by row."""
    x, places = tf.constant(ROWS), tf.constant([[0, 1], [2, 2]])
    tf.get_logger().addHandler(caplog.handler)
    try:
        for _ in range(7):
            grads = iso.vmap(iso.grad(lambda x: tf.reduce_sum(x**3)))(x)
        counts = iso.vmap(lambda i: iso.at(tf.zeros(3))[i].add(1.0))(places)
    finally:
        tf.get_logger().removeHandler(caplog.handler)
    np.testing.assert_allclose(grads.numpy(), 3 * ROWS**2, rtol=1e-14)
    assert counts.numpy().tolist() == [[1, 1, 0], [0, 0, 2]]
    assert [record.getMessage() for record in caplog.records if record.name == "tensorflow"] == []
