"""`vmap` on NumPy: all examples at once where that is possible, and row by row, as a plain loop
would, where it is not.

Expected values come from a Python loop over the examples. Sums of a batch are added in another
order: 1e-12 of numbers around 1 allows for that.
"""

import logging
from threading import Thread

import numpy as np
import pytest

import isomorph as iso
from isomorph.backends.numpy import mapped
from isomorph.core import tree

pytestmark = pytest.mark.parametrize("backend", ["numpy"], indirect=True)
RNG = np.random.default_rng(3)
X = RNG.standard_normal((5, 3))
W = RNG.standard_normal((3, 4))
B = RNG.standard_normal(4)


@pytest.fixture(autouse=True)
def unnoted():
    """Forget what was said already: each note is logged once."""
    mapped.NOTED.clear()


def rows(func, *arrays):
    each = [tree.flatten(func(*row))[0] for row in zip(*arrays, strict=True)]
    return [np.stack(part) for part in zip(*each, strict=True)]


def agree(found, wanted, tolerance=1e-12):
    for got, sure in zip(tree.flatten(found)[0], wanted, strict=True):
        assert (got.shape, got.dtype) == (sure.shape, sure.dtype)
        np.testing.assert_allclose(got, sure, rtol=tolerance, atol=tolerance)


def counted(func):
    calls = []

    def call(*args):
        calls.append(1)
        return func(*args)

    return call, calls


def net(p, x):
    return np.sum(np.tanh(x @ p["w"] + p["b"]) ** 2)


P = {"w": W, "b": B}
ONCE = {
    "per-example gradients": lambda x: iso.grad(net)(P, x),
    "gradients in the input": lambda x: iso.grad(net, argnums=1)(P, x),
    "hessian": iso.hessian(lambda x: net(P, x)),
    "hvp": lambda x: iso.hvp(lambda x: net(P, x), (x,), (np.ones(3),)),
    "jac": iso.jac(lambda x: np.tanh(x @ W)),
    "jacfwd": iso.jacfwd(lambda x: np.tanh(x @ W)),
    "gradient of a gradient": lambda x: iso.grad(lambda x: iso.grad(lambda x: net(P, x))(x)[0])(x),
    "map inside": lambda x: iso.vmap(lambda w: np.sum(x) * w)(B),
    "mapped twice": lambda x: iso.vmap(lambda a: x * a)(x),
    "gradient of a map inside": iso.grad(lambda x: np.sum(iso.vmap(lambda b: x * b)(B) ** 2)),
    "scan": lambda x: iso.scan(lambda c, y: (c * y + 1, c), x[0], x),
    "fori_loop": lambda x: iso.fori_loop(0, 3, lambda i, v: np.sin(v) * (i + 1), x),
    "checkpoint": iso.grad(lambda x: iso.checkpoint(lambda x: net(P, x))(x)),
    "update by a mapped index": lambda x: iso.at(x)[np.argmax(x)].set(0.0),
    "read at a mapped index": lambda x: iso.at(W)[np.argmax(x)].get(),
    "row after a slice": lambda x: iso.at(np.outer(x, x))[:, np.argmax(x)].get(),
    "negative steps": lambda x: x[::-1][:2],
    "new axes": lambda x: x[None, :, None] * x[:, None],
    "separate indices": lambda x: (x[:, None, None] * np.ones((2, 4)))[[0, 2], :, [1, 3]],
    "an ellipsis": lambda x: (x[:, None] * np.ones(4))[..., [0, 3]],
    "a plain mask": lambda x: x[np.array([True, False, True])],
    "list": lambda x: x * [1.0, 2.0, 3.0],
    "reflected list": lambda x: [1.0, 2.0, 3.0] - x,
    "stacked numbers": lambda x: np.stack([x[0], x[1] * 2.0, np.float64(3.0)]),
    "unpacked": lambda x: (lambda a, b, c: a * b - c)(*x),
    "in place": lambda x: in_place(x),
    "mixed dtypes": lambda x: x.astype(np.float32) * np.float32(2) + np.arange(3, dtype=np.int8),
    "solve": lambda x: np.linalg.solve(np.outer(x, x) + np.eye(3), x),
    "solve with one matrix": lambda x: np.linalg.solve(np.eye(3) * 2 + 0.1, x),
    "lstm": lambda x: lstm(np.outer(x, x)),
    "softmax": lambda x: iso.softmax(np.outer(x, x), axis=0),
    "gradient through an lstm": iso.grad(lambda x: np.sum(lstm(np.outer(x, x))[0])),
    "layer_norm": lambda x: iso.layer_norm(np.outer(x, x), weight=np.arange(3.0)),
    "linear": lambda x: iso.linear(x, W.T, bias=B),
    "gradient of a softmax": iso.jac(lambda x: iso.softmax(iso.relu(x))),
}  # fmt: skip


def in_place(x):
    h = x * 2.0
    same, part = h, h[1:]
    h += 1.0
    h *= x
    return same, part, h


def lstm(x):
    w = [np.sin(np.arange(n * 8.0)).reshape(n, 8) for n in (3, 2)]
    return iso.lstm_update(x, np.zeros(2), np.zeros(2), *w)


@pytest.mark.parametrize("name", ONCE)
def test_at_once(backend, name):
    func, calls = counted(ONCE[name])
    agree(iso.vmap(func)(X), rows(ONCE[name], X))
    assert (len(calls), mapped.NOTED) == (1, set())


def test_axes(backend):
    f = lambda a, b, c: (a * np.sum(b) + c, a @ W)
    c = np.arange(5.0)
    agree(iso.vmap(f, in_axes=(1, None, 0))(X.T, B, c), rows(lambda a, c: f(a, B, c), X, c))
    found = iso.vmap(f, in_axes=(-1, None, 0), out_axes=(1, -1))(X.T, B, c)
    agree(found, [y.T for y in rows(lambda a, c: f(a, B, c), X, c)])
    one = iso.vmap(f, in_axes=(None, None, 0))(X[0], B, c)
    agree(one, rows(lambda c: f(X[0], B, c), c))
    agree(iso.vmap(lambda x: x * 2)(X[:1]), [X[:1] * 2])


def test_gradients_around_a_map(backend):
    def mapped_loss(w):
        return np.sum(iso.vmap(lambda x: iso.grad(lambda x: np.sum(np.tanh(x @ w)))(x))(X) ** 2)

    def loss(w):
        return sum(np.sum(iso.grad(lambda x: np.sum(np.tanh(x @ w)))(x) ** 2) for x in X)

    agree(iso.value_and_grad(mapped_loss)(W), iso.value_and_grad(loss)(W))
    agree(iso.hvp(mapped_loss, (W,), (W,)), iso.hvp(loss, (W,), (W,)))
    assert set() == mapped.NOTED


def test_custom_rules_apply_in_every_order(backend):
    tenfold = iso.custom_vjp(np.sin, lambda x: (np.sin(x), x), lambda x, g: (10 * g * np.cos(x),))
    inside = iso.vmap(iso.grad(lambda x: np.sum(tenfold(x))))
    agree(inside(X), [10 * np.cos(X)])
    around = iso.grad(lambda x: np.sum(iso.vmap(tenfold)(x)))
    agree(around(X), [10 * np.cos(X)])
    shared = iso.grad(lambda w: np.sum(iso.vmap(lambda x: np.sum(tenfold(w)) * x)(X)))
    agree(shared(W), [10 * np.cos(W) * np.sum(X)])
    twice = iso.custom_vjp(lambda x, w: x * w, lambda x, w: (x * w, (x, w)),
                           lambda r, g: (2 * g * r[1], 3 * g * r[0]))  # fmt: skip
    gx, gw = iso.grad(lambda x, w: np.sum(iso.vmap(twice, in_axes=(0, None))(x, w)), (0, 1))(
        X, X[0]
    )
    agree((gx, gw), [np.broadcast_to(2 * X[0], X.shape), 3 * X.sum(0)])
    assert set() == mapped.NOTED


def test_filters_of_each_example(backend):
    image = RNG.standard_normal((4, 1, 5, 5, 2))
    filters = RNG.standard_normal((4, 3, 3, 2, 3))
    loss = lambda w, x: np.sum(np.tanh(iso.conv2d(x, w, 1, "SAME")))
    both = iso.grad(loss, (0, 1))
    agree(iso.vmap(both)(filters, image), rows(both, filters, image))
    agree(
        iso.vmap(both, in_axes=(None, 0))(filters[0], image),
        rows(lambda x: both(filters[0], x), image),
    )
    agree(
        iso.vmap(both, in_axes=(0, None))(filters, image[0]),
        rows(lambda w: both(w, image[0]), filters),
    )
    around = lambda run: iso.grad(lambda w: np.sum(run(w)[0] ** 2))(filters)
    agree(
        around(lambda w: iso.vmap(both)(w, image)),
        [around(lambda w: [np.stack([both(a, b)[0] for a, b in zip(w, image)])])],
    )
    assert set() == mapped.NOTED


def test_keys_of_each_example(backend):
    keys = iso.random.split(iso.random.key(7, backend="numpy"), 4)
    for draw in (
        lambda k: iso.random.normal(k, (3,)),
        lambda k: iso.random.uniform(iso.random.split(k, 2)[1], (2, 2)),
        lambda k: iso.random.permutation(k, 5),
    ):
        agree(iso.vmap(draw)(keys), rows(draw, keys), 0)


def test_jacobians_of_many_rows(backend):
    """They are computed some rows at a time, and differentiated as a whole."""
    w = RNG.standard_normal((70, 3))
    slope = (1 - np.tanh(w @ X[0]) ** 2)[:, None] * w
    agree(iso.jac(lambda x: np.tanh(w @ x))(X[0]), [slope])
    agree(iso.jacfwd(lambda x: np.tanh(w @ x))(X[0]), [slope])
    around = iso.grad(lambda x: np.sum(iso.jac(lambda x: np.tanh(w @ x))(x) ** 2))(X[0])
    step = lambda x: np.sum(((1 - np.tanh(w @ x) ** 2)[:, None] * w) ** 2)
    agree(around, [iso.grad(step)(X[0])])
    assert set() == mapped.NOTED


def test_a_rule_that_needs_values_in_a_jacobian(backend):
    rule = lambda x, g: (2 * g if g[0] > 0 else g,)
    doubled = iso.custom_vjp(np.sin, lambda x: (np.sin(x), x), rule)
    agree(iso.jac(doubled)(X[0]), [np.diag([2.0, 1.0, 1.0])])
    assert len(mapped.NOTED) == 1


# ---- row by row ----------------------------------------------------------------------------------

ALONE = {
    "if": lambda x: x if x[0] > 0 else -x,
    "float": lambda x: np.full(2, float(x[0])),
    "item": lambda x: x * x[0].item(),
    "asarray": lambda x: np.asarray(x) * 2,
    "assigned": lambda x: assigned(x),
    "assigned to": lambda x: assigned_to(x.copy()),
    "a mask": lambda x: np.sum(x[x > 0]),
    "cond": lambda x: iso.cond(x[0] > 0, lambda x: x, lambda x: -x, x),
    "while_loop": lambda x: iso.while_loop(lambda v: np.sum(v) < 9, lambda v: v * v + 1, x),
    "plain indexed": lambda x: W[np.argmax(x)],
    "added in place to a plain array": lambda x: added(x),
    "sorted in place": lambda x: sorted_in_place(x),
    "unique": lambda x: np.unique(np.sign(x)).sum(),
    "gradient of if": lambda x: iso.grad(lambda x: np.sum(x**2) if x[0] > 0 else np.sum(x))(x),
}


def assigned(x):
    out = np.zeros(3)
    out[1] = x[0]
    return out


def assigned_to(x):
    x[0] = 7.0
    return x


def added(x):
    out = np.ones(3)
    out += x
    return out


def sorted_in_place(x):
    x = x.copy()
    x.sort()
    return x


@pytest.mark.parametrize("name", ALONE)
def test_row_by_row(backend, name, caplog):
    with caplog.at_level(logging.WARNING, "isomorph"):
        for _ in range(2):
            agree(iso.vmap(ALONE[name])(X), rows(ALONE[name], X))
    said = [r.getMessage() for r in caplog.records]
    assert len(said) == len(set(said)) >= 1  # each reason is said once
    assert all("row by row" in message for message in said)
    around = iso.vmap(iso.vmap(ALONE[name]))(np.stack([X, X[::-1]]))
    agree(around, [np.stack([*rows(ALONE[name], X), *rows(ALONE[name], X[::-1])])])


def test_an_argument_changed_in_place_is_a_copy(backend):
    def change(x):
        x += 1.0
        return x

    given = X.copy()
    agree(iso.vmap(change)(given), [X + 1.0])
    np.testing.assert_array_equal(given, X)
    given.flags.writeable = False
    agree(iso.vmap(change)(given), [X + 1.0])


def test_a_host_function_runs_for_each_example(backend):
    host, calls = counted(lambda x: np.cumsum(x) * 2)
    func = iso.host_function(host)
    agree(iso.vmap(lambda x: func(x * 2))(X), rows(lambda x: np.cumsum(x * 2) * 2, X))
    assert len(calls) == len(X)
    assert {"iso.host_function"} == mapped.NOTED


def test_what_stops_a_map_passes_through_handlers_of_errors(backend):
    def guarded(x):
        try:
            return x if x[0] > 0 else -x
        except Exception:
            return x * 0

    agree(iso.vmap(guarded)(X), rows(lambda x: x if x[0] > 0 else -x, X))


def test_errors_show_the_shapes_of_one_example(backend):
    with pytest.raises(ValueError, match=r"shapes \(3,\) \(2,\)"):
        iso.vmap(lambda x: x + np.ones(2))(X)
    with pytest.raises(ValueError, match="mine"):
        iso.vmap(lambda x: raised())(X)
    with pytest.raises(ValueError, match=r"shape \(5,3\) into shape \(3,\)"):
        iso.vmap(lambda x: iso.at(x)[:].set(X))(X)  # five rows are not one


def raised():
    raise ValueError("mine")


def test_a_value_kept_after_the_map_says_so(backend):
    kept = []
    iso.vmap(lambda x: kept.append(x) or x)(X)
    with pytest.raises(BaseException, match="after its vmap had returned"):
        float(kept[0][0])


def test_results_are_arrays_of_their_own(backend):
    given = X.copy()
    same, again, part, shared = iso.vmap(lambda x: (x, x, x[:2], W))(given)
    for y in (same, again, part, shared):
        assert y.flags.writeable
        y[...] = 0.0
    np.testing.assert_array_equal(given, X)
    assert W.any()


def test_an_array_that_changes_before_the_pullback_reads_it(backend):
    held = X.copy()

    def loss(w, x):
        y = np.sum(w * x)
        held[0, 0] = 9.0  # refused for all examples at once; rows are copied before
        return y

    agree(iso.vmap(iso.grad(loss), in_axes=(None, 0))(np.ones(3), held), [X])


def test_threads(backend):
    found = {}
    run = lambda n: found.__setitem__(n, iso.vmap(iso.grad(lambda x: net(P, x)))(X * n))
    threads = [Thread(target=run, args=(n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n in range(1, 5):
        agree(found[n], rows(iso.grad(lambda x: net(P, x)), X * n))


def test_no_examples(backend):
    empty = X[:0]
    assert iso.vmap(iso.grad(lambda x: net(P, x)))(empty).shape == (0, 3)
    assert iso.vmap(iso.grad(net), in_axes=(None, 0))(P, empty)["w"].shape == (0, 3, 4)
    assert iso.vmap(lambda x: np.reshape(x, -1))(np.zeros((4, 0, 3))).shape == (4, 0)
    assert iso.vmap(lambda x: np.sum(x, 0))(np.zeros((4, 0, 3))).shape == (4, 3)
