"""What a traced NumPy value supports and refuses, and what the tape guarantees besides
derivatives.
"""

import gc
import pickle
import sys
import threading
import tracemalloc
import weakref

import numpy as np
import pytest

import isomorph as iso
from oracles import central_gradient

pytestmark = pytest.mark.parametrize("backend", ["numpy"], indirect=True)

X = np.linspace(0.5, 1.5, 6).reshape(2, 3)


def plain_program(x):
    """Ordinary NumPy code that does not mention isomorph."""
    y = np.concatenate([x, x.T.reshape(2, 3)], axis=0)
    y = np.where(y > 1, y**2, np.sin(y))
    a = np.einsum("ij,kj->ik", y, y) + 4 * np.eye(4)
    z = np.linalg.solve(a, y[:, 0])
    z -= z.mean()  # rebinds: a traced value never changes
    s = 0.0
    for row in y:
        s += row.sum() * row[::-1][0]
    return (z @ z) * s + np.abs(x).max(axis=0).prod() + x.std() + np.clip(x, 0.65, 1.25).sum()


def test_a_plain_numpy_program_differentiates_unchanged(backend):
    got = iso.grad(plain_program)(X)
    np.testing.assert_allclose(got, central_gradient(plain_program, X), rtol=1e-6)


def test_second_order_of_a_plain_program(backend):
    half = lambda x: np.sum(iso.grad(plain_program)(x) ** 2) / 2
    np.testing.assert_allclose(iso.grad(half)(X), central_gradient(half, X), rtol=1e-5)


def test_without_gradients_nothing_is_ours(backend, xp):
    assert xp.tanh is np.tanh
    assert xp.linalg.solve is np.linalg.solve
    assert plain_program(X).tobytes() == iso.value_and_grad(plain_program)(X)[0].tobytes()


def test_float32_stays_float32(backend):
    x = X.astype(np.float32)
    value, grad = iso.value_and_grad(
        lambda x: np.mean(np.exp(x) * np.sqrt(2) ** 0 + x @ x.T @ x / 3)
    )(x)
    assert value.dtype == np.float64  # np.sqrt(2) is a float64 scalar, and NumPy promotes
    assert grad.dtype == np.float32
    value, grad = iso.value_and_grad(lambda x: np.mean(np.exp(x) * 2.0 + x @ x.T @ x / 3))(x)
    assert (value.dtype, grad.dtype) == (np.float32, np.float32)


def test_gradients_are_fresh_writable_arrays(backend):
    c = np.ones((2, 3))
    gx, gy = iso.grad(lambda x, y: np.sum(x + y) + np.sum(x * 0), argnums=(0, 1))(X, c)
    gx += 1
    np.testing.assert_array_equal(gy, np.ones((2, 3)))
    gy += 1
    np.testing.assert_array_equal(c, np.ones((2, 3)))
    u = np.ones(3)
    (g,) = iso.vjp(lambda x: x, np.zeros(3))[1](u)
    g += 1
    np.testing.assert_array_equal(u, np.ones(3))


def refuses(match, f, x=X, error=TypeError):
    with pytest.raises(error, match=match):
        iso.grad(f)(x)
    np.testing.assert_array_equal(
        iso.grad(lambda x: np.sum(x * x))(X), 2 * X
    )  # the next call works


def test_a_missing_rule_is_named(backend):
    missing = NotImplementedError
    refuses(
        r"^numpy\.i0: no derivative rule.*stop_gradient", lambda x: np.i0(x)[0, 0], error=missing
    )
    refuses(
        r"^numpy\.polydiv: no derivative", lambda x: np.polydiv(x[0], x[1])[0][0], error=missing
    )
    refuses(r"^numpy\.add\.reduceat: no", lambda x: np.add.reduceat(x[0], [0, 1])[0], error=missing)
    refuses(r"^numpy\.exp with where=", lambda x: np.sum(np.exp(x, where=X > 1)), error=missing)


def test_leaving_the_trace_is_refused(backend):
    refuses(r"float\(x\).*traced.*stop_gradient", lambda x: float(x[0, 0]))
    refuses(r"int\(x\)", lambda x: int(x[0, 0]))
    refuses("item", lambda x: x[0, 0].item())
    refuses("plain data.*np.stack", lambda x: np.sum(np.array([x[0, 0], x[0, 1]])))
    refuses("plain data", lambda x: np.sum(np.asarray(x)))


def test_writing_into_plain_arrays_is_refused(backend):
    def into_plain(x):
        y = np.zeros(3)
        y[:] = x[0]
        return np.sum(y)

    def add_to_plain(x):
        y = np.zeros((2, 3))
        y += x
        return np.sum(y)

    refuses(r"iso\.at\(a\)\[i\]\.set", into_plain)
    refuses(r"numpy\.add: in-place.*a = a \+ b", add_to_plain)
    refuses(r"out=", lambda x: np.sum(np.exp(x, out=np.zeros((2, 3)))))


def test_a_value_kept_beyond_its_function_is_the_number_that_it_was(backend):
    kept = []
    iso.grad(lambda x: kept.append(np.exp(x)) or np.sum(x))(X)
    (y,) = kept
    np.testing.assert_array_equal(np.asarray(y), np.exp(X))
    for found in (y + X, X + y, np.add(y, X), np.sum(y) * np.ones(1), np.stack([y, X]), y[0], -y):
        assert type(found) in (np.ndarray, np.float64)
    np.testing.assert_array_equal(y * 2, np.exp(X) * 2)
    np.testing.assert_array_equal(np.concatenate([y, X]), np.concatenate([np.exp(X), X]))
    np.testing.assert_allclose(iso.grad(lambda x: np.sum(x * y))(X), np.exp(X))
    assert float(y[0, 0]) == np.exp(X[0, 0])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(y)), np.exp(X))
    with pytest.raises(RuntimeError, match="after the .*function.* returned.*aux"):
        y[0] = 1.0


def test_branches_follow_the_values(backend):
    def f(x):
        total = 0.0
        for v in x:
            if v > 0.8:
                total = total + v**2
            elif v:
                total = total - v
        return total

    np.testing.assert_allclose(iso.grad(f)(np.array([0.5, 1.0, 0.0])), [-1.0, 2.0, 0.0])


def test_threads_inside_a_differentiated_function(backend):
    def f(x):
        parts = [None] * 8

        def work(i):
            parts[i] = iso.grad(lambda y: np.sum(y**3) * np.sum(x))(x) * i

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return np.sum(sum(parts))

    # f = 28 · 3 Σx² · Σx
    x = np.array([1.0, 2.0])
    np.testing.assert_allclose(iso.grad(f)(x), 84 * (2 * x * x.sum() + (x**2).sum()))


def test_deep_chains_do_not_exhaust_the_stack(backend):
    def f(x):
        for _ in range(20_000):
            x = x * 1.0001
        return np.sum(x)

    np.testing.assert_allclose(iso.grad(f)(np.ones(1)), [1.0001**20_000], rtol=1e-9)


def test_many_slices_of_one_array_add_into_one_buffer(backend):
    x = np.ones((200, 1000))
    tracemalloc.start()
    g = iso.grad(lambda x: sum(np.sum(x[i] * i) for i in range(200)))(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(g, np.repeat(np.arange(200.0)[:, None], 1000, 1))
    assert peak < 4 * x.nbytes  # a dense gradient per slice would be 200 times the array


def test_what_no_rule_needs_is_let_go(backend):
    alive = []

    def f(x):
        y = np.exp(x)
        alive.append(weakref.ref(y.value))
        z = (y + 1.0) + 2.0
        alive.append(weakref.ref(z.value))
        return np.sum(z)

    gc.freeze()  # what there was before need not be searched
    _, pullback = iso.vjp(f, np.ones(3))
    gc.collect()
    gc.unfreeze()
    assert alive[0]() is not None  # exp's rule needs its output
    assert alive[1]() is None  # a sum keeps nothing
    np.testing.assert_allclose(pullback(1.0)[0], np.e * np.ones(3))


def test_array_of_traced_values_through_the_namespace(backend, xp):
    g = iso.grad(lambda x: xp.sum(xp.asarray([x[0], x[1] * 2])))(X)
    np.testing.assert_array_equal(g, [[1.0] * 3, [2.0] * 3])


def test_names_of_one_value_change_together(backend):
    def f(x):
        y = x
        y += 1.0  # this changes x too, which is a copy of the caller's array
        return np.sum(y * x)

    given = np.array([1.0])
    np.testing.assert_allclose(iso.grad(f)(given), [4.0])
    assert given == 1.0


def test_a_buffer_filled_anew_is_refused_or_right(backend):
    def product(x):
        w, total = np.zeros(3), 0.0
        for i in range(3):
            w[:] = 0
            w[i] = i + 1
            total = total + np.sum(x * w)
        return total

    def matrix(x):
        w = np.eye(3)
        y = x @ w
        w[:] = 0
        return np.sum(y)

    def mask(x):
        keep = np.array([True, False, False])
        y = np.where(keep, x, 0.0)
        keep[:] = False
        return np.sum(y)

    x = np.array([1.0, 2.0, 3.0])
    for f in (product, matrix, mask):  # torch refuses these too: the old values are gone
        with pytest.raises(ValueError, match="read-only"):
            iso.grad(f)(x)
        f(x)

    def indexed(x):
        index, total = np.zeros(1, int), 0.0
        for i in range(3):
            index[0] = i
            total = total + (i + 1) * np.sum(x[index])
        return total

    np.testing.assert_array_equal(iso.grad(indexed)(x), [1.0, 2.0, 3.0])

    def summed(x):
        w, total = np.zeros(3), 0.0
        for i in range(3):
            w[:] = i  # a sum's rule does not need its operand
            total = total + np.sum(x + w)
        return total

    np.testing.assert_array_equal(iso.grad(summed)(x), [3.0, 3.0, 3.0])


def test_views_of_held_arrays_are_released(backend):
    owner = np.ones((2, 3))
    view = owner[0]
    iso.grad(lambda x: np.sum(iso.grad(lambda y: np.sum(y * view) * np.sum(owner * x))(x)))(
        np.ones(3)
    )
    assert owner.flags.writeable
    assert view.flags.writeable


def test_arrays_are_writable_again_afterwards(backend):
    w, x = np.ones(3), np.ones(3)
    iso.grad(lambda x: np.sum(x * w))(x)

    def broken(x):
        raise RuntimeError(str(x * w))

    with pytest.raises(RuntimeError):
        iso.grad(broken)(x)
    assert w.flags.writeable
    assert x.flags.writeable


def test_matrices_and_masked_arrays_are_refused(backend):
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.matrix([[1.0, 2.0]])
    for odd in (matrix, np.ma.masked_array([1.0, 2.0], [True, False])):
        with pytest.raises(TypeError, match="needed floating-point arrays|no backend handles"):
            iso.grad(np.sum)(odd)


def test_formatting_shows_the_value(backend):
    shown = []
    iso.grad(lambda x: shown.append(f"{x[0]:.2f} {x}") or np.sum(x))(np.array([0.123, 1.0]))
    assert shown == ["0.12 [0.123 1.   ]"]


def test_a_cast_that_is_not_allowed_raises_as_numpys_does(backend):
    refuses(
        r"x\.astype: needed a cast that is safe, got one to float32",
        lambda x: np.sum(x.astype(np.float32, casting="safe")),
    )
    g = iso.grad(lambda x: np.sum(x.astype(np.float32, casting="same_kind")))(X)
    np.testing.assert_array_equal(g, np.ones((2, 3)))


def test_two_threads_that_hold_an_array_and_its_view_release_both(backend):
    owner = np.ones((2, 3))
    view = owner[0]
    troubles = []

    def work(constant):
        try:
            for _ in range(300):
                iso.grad(lambda x: np.sum(x * constant))(np.ones(3))
        except ValueError as error:
            troubles.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # let threads switch in the middle of a release
    try:
        threads = [threading.Thread(target=work, args=(c,)) for c in (owner, view, owner, view)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(before)
    assert not troubles
    assert owner.flags.writeable
    assert view.flags.writeable
