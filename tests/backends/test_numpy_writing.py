"""Arrays written in place while a function is differentiated: values are those of plain NumPy,
gradients those of central differences, at every order and under every transform. What is not
possible is refused with a sentence that says what to write.
"""

import copy
import gc
import pickle
import threading
import tracemalloc

import numpy as np
import pytest

import isomorph as iso
import isomorph.numpy as inp
from oracles import central_gradient

pytestmark = pytest.mark.parametrize("backend", ["numpy"], indirect=True)

X = np.array([1.1, 1.7, 0.6])


def thrice(a):
    a *= 3


def through_names(np, x):
    y = np.exp(x)
    first = y
    y /= y.sum()
    return (first**2).sum()


def through_a_name(np, x):
    y = x * 1.0
    z = y
    y += 1
    return (z**2).sum()


def through_a_part(np, x):
    y = x * 1.0
    z = y[:2]
    y += x
    z *= 2
    return (z * y[1:]).sum()


def through_another_shape(np, x):
    y = x * 1.0
    z = y.ravel()
    z += 1
    return (y**2).sum()


def through_an_argument(np, x):
    y = x * 1.0
    thrice(y)
    return (y**2).sum()


def into_the_argument(np, x):
    z = x[:2]
    x *= 2
    z += 1
    return (x**2).sum()


def from_itself(np, x):
    y = x * 1.0
    y[1:] = y[:-1] * 2
    y[1:] = y[:-1]
    y[0] += x[2]
    return (y**2).sum()


def twice_at_one_place(np, x):
    y = np.outer(x, x)
    y[[0, 0], [1, 1]] = x[:2]
    y.T[1] = x**2
    y.flat[3] = x[0] * 5
    np.fill_diagonal(y, x**3)
    z = y[1:, ::-1]
    z[0] += x
    return (y**2).sum()


def by_functions(np, x):
    y = x * 1.0
    y[y > 1.5] = y[0] * 2
    y[0], y[2] = y[2], y[0]
    np.add.at(y, [0, 0, 1], x)
    np.multiply.at(y, [2, 2], x[:2])
    np.exp(y * 0.1, out=y[...])
    np.sum(np.outer(y, x), axis=0, out=y)
    np.add(y, 1.0, out=y, where=y > 2.0)
    y.sort()
    np.put(y, [0, -1], x[1])
    np.place(y, [True, False, True], [x[0], x[2]])
    return (y**2 * x).sum()


def numbers_are_rebound(np, x):
    y = x * 1.0
    t = y[0]
    t += 1
    total = 0.0
    for i in range(3):
        total += x[i]
    return (y**2).sum() * t * total


def like_a_traced_one(np, x):
    a, b, c = np.zeros_like(x), np.full_like(x, 0.5), np.empty_like(x)
    a[1:] = x[:2]
    b += a
    c[...] = b[::-1]
    c[0] = 1.0
    return (a * b * c).sum() + (c**2).sum()


def complex_numbers(np, x):
    y = x * (1 + 2j)
    y[1:] = y[:-1] * x[0]
    y *= 1j
    return (abs(y) ** 2).sum()


def filled(np, x):
    b, v = np.zeros((3, 3)), np.ones(3)
    c = b.T
    b[0, 0] = 5.0
    c[1] = x
    np.copyto(b[2], x * 2)
    v -= x
    r = np.empty(4)
    r[0] = 1.0
    for i in range(3):
        r[i + 1] = r[i] * x[i] + np.sin(r[i])
    d = np.array([x[0], 2.0, x[1]])
    d[1] *= x[2]
    return (c * b).sum() + (v**2).sum() + r.sum() + (np.asarray(d) ** 2).sum()


def rows_of_a_buffer(np, x):
    b = np.zeros((3, 2))
    rows = [b[i] for i in range(3)]
    for i, row in enumerate(rows):
        row += x[i] * (i + 1)
    b[0], b[1] = b[1], b[0]
    return (b**2).sum() + rows[2].sum() ** 2


PLAIN = [through_names, through_a_name, through_a_part, through_another_shape, through_an_argument,
         into_the_argument, from_itself, twice_at_one_place, by_functions, numbers_are_rebound,
         like_a_traced_one, complex_numbers]  # fmt: skip
PROGRAMS = [(np, f) for f in PLAIN] + [(inp, f) for f in (*PLAIN, filled, rows_of_a_buffer)]
EACH = pytest.mark.parametrize(
    ("space", "program"), PROGRAMS, ids=[f"{n.__name__} {f.__name__}" for n, f in PROGRAMS]
)


def alone(program):
    return lambda x: program(np, x.copy())


def slope(program, x):
    return central_gradient(alone(program), x)


@EACH
def test_values_and_gradients(backend, space, program):
    x = X.copy()
    value, grad = iso.value_and_grad(lambda x: program(space, x))(x)
    np.testing.assert_allclose(value, alone(program)(X), rtol=1e-13)
    np.testing.assert_allclose(grad, slope(program, X), rtol=1e-6, atol=1e-7)
    assert type(grad) is np.ndarray
    np.testing.assert_array_equal(x, X)


@EACH
def test_second_derivatives(backend, space, program):
    f = lambda x: program(space, x)
    along = np.array([0.3, -0.5, 0.8])
    wanted = (iso.grad(f)(X + 1e-5 * along) - iso.grad(f)(X - 1e-5 * along)) / 2e-5
    np.testing.assert_allclose(iso.hvp(f, (X,), (along,))[0], wanted, rtol=1e-6, atol=1e-6)


WAYS = {
    "jvp": (lambda f: iso.jvp(f, (X,), (np.ones(3),))[1], lambda g: g(X).sum()),
    "vmap": (lambda f: iso.vmap(f)(np.stack([X, X + 0.2])), None),
    "vmap of grad": (
        lambda f: iso.vmap(iso.grad(f))(np.stack([X, X + 0.2])),
        lambda g: np.stack([g(X), g(X + 0.2)]),
    ),
    "grad of vmap": (
        lambda f: iso.grad(lambda x: iso.vmap(f)(x).sum())(np.stack([X, X + 0.2])),
        lambda g: np.stack([g(X), g(X + 0.2)]),
    ),
    "cond": (
        lambda f: iso.grad(lambda x: iso.cond(True, f, lambda x: x.sum(), x))(X),
        lambda g: g(X),
    ),
    "scan": (
        lambda f: iso.grad(
            lambda x: iso.scan(lambda c, t: (c + f(x * t), c), 0 * x[0], np.array([1.0, 1.2]))[0]
        )(X),
        lambda g: g(X) + 1.2 * g(1.2 * X),
    ),
    "while_loop": (
        lambda f: iso.grad(
            lambda x: iso.while_loop(
                lambda s: s[0] < 2, lambda s: (s[0] + 1, s[1] + f(x * 1.0)), (0, 0 * x[0])
            )[1]
        )(X),
        lambda g: 2 * g(X),
    ),
    "checkpoint": (lambda f: iso.grad(lambda x: iso.checkpoint(f)(x * 1.0))(X), lambda g: g(X)),
}


@EACH
@pytest.mark.parametrize("way", WAYS)
def test_under_transforms(backend, space, program, way):
    run, wanted = WAYS[way]
    given = X.copy()
    f = lambda x: program(space, x)
    if way == "checkpoint" and program is into_the_argument:
        with pytest.raises(ValueError, match="read-only"):
            run(f)
        return
    if wanted is None:
        expected = np.stack([alone(program)(X), alone(program)(X + 0.2)])
    else:
        expected = wanted(lambda x: slope(program, x))
    np.testing.assert_allclose(run(f), expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(X, given)


# Views: which there are, NumPy says.

SEEN = {
    "part": lambda np, x: x[1:], "step": lambda np, x: x[::-2], "column": lambda np, x: x[:, 1],
    "element rows": lambda np, x: x[[0, 1]], "mask": lambda np, x: x[np.arange(4) > 1],
    "new axis": lambda np, x: x[None], "T": lambda np, x: x.T, "ravel": lambda np, x: x.ravel(),
    "ravel F": lambda np, x: x.ravel("F"), "reshape": lambda np, x: x.reshape(6, 4),
    "reshape of T": lambda np, x: x.T.reshape(-1), "T of reshape": lambda np, x: x.reshape(-1).T,
    "flatten": lambda np, x: x.flatten(), "copy": lambda np, x: x.copy(),
    "np.copy": lambda np, x: np.copy(x), "astype": lambda np, x: x.astype(float),
    "swapaxes": lambda np, x: x.swapaxes(0, 1), "moveaxis": lambda np, x: np.moveaxis(x, 0, 1),
    "squeeze": lambda np, x: np.squeeze(x[None]), "expand": lambda np, x: np.expand_dims(x, 1),
    "flip": lambda np, x: np.flip(x), "fliplr": lambda np, x: np.fliplr(x),
    "flipud": lambda np, x: np.flipud(x), "rot90": lambda np, x: np.rot90(x),
    "roll": lambda np, x: np.roll(x, 1), "tile": lambda np, x: np.tile(x, (1, 1)),
    "repeat": lambda np, x: np.repeat(x, 1), "repeat rows": lambda np, x: np.repeat(x, 1, axis=0),
    "split": lambda np, x: np.split(x, 2)[1], "array_split": lambda np, x: np.array_split(x, 3)[0],
    "hsplit": lambda np, x: np.hsplit(x, 2)[0], "rollaxis": lambda np, x: np.rollaxis(x, 1),
    "atleast_3d": lambda np, x: np.atleast_3d(x), "real": lambda np, x: x.real,
    "conj": lambda np, x: x.conj(), "np.conj": lambda np, x: np.conj(x), "pos": lambda np, x: +x,
    "diagonal": lambda np, x: np.diagonal(x), "diag": lambda np, x: np.diag(x),
    "broadcast": lambda np, x: np.broadcast_to(x, (2, 4, 6)),
    "matrix_transpose": lambda np, x: np.matrix_transpose(x),
    "take": lambda np, x: np.take(x, [0], 0), "take one": lambda np, x: np.take(x, 1, 0),
    "compress": lambda np, x: np.compress([True, False], x, 0),
    "tril": lambda np, x: np.tril(x), "where": lambda np, x: np.where(True, x, x),
    "concatenate": lambda np, x: np.concatenate([x]), "stack": lambda np, x: np.stack([x]),
    "pad": lambda np, x: np.pad(x, 0), "clip": lambda np, x: np.clip(x, -9, 9),
    "sort": lambda np, x: np.sort(x), "abs": lambda np, x: abs(x),
    "unstack": lambda np, x: np.unstack(x)[0], "delete": lambda np, x: np.delete(x, 0, 0),
    "resize": lambda np, x: np.resize(x, (4, 6)), "nan_to_num": lambda np, x: np.nan_to_num(x),
    "asarray": lambda np, x: np.asarray(x), "array": lambda np, x: np.array(x),
    "ascontiguousarray": lambda np, x: np.ascontiguousarray(x),
    "asfortranarray": lambda np, x: np.asfortranarray(x),
    "contiguous part": lambda np, x: np.ascontiguousarray(x[:, 1:]),
    "einsum": lambda np, x: np.einsum("ij->ji", x), "cumsum": lambda np, x: np.cumsum(x[:, :1], 1),
    "average": lambda np, x: np.mean(x[None], 0), "max": lambda np, x: np.max(x[None], 0),
}  # fmt: skip
STATES = {
    "fresh": lambda np, x: x * 1.0,
    "written": lambda np, x: part_written(x * 1.0),
    "in Fortran's order": lambda np, x: (x.T * 1.0).T,
    "a column of a larger one": lambda np, x: np.stack([x, x], axis=-1)[..., 0],
}


def part_written(y):
    y[0, 0] = y[1, 1]
    return y


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", SEEN)
def test_what_is_a_view_is_a_view(backend, name, state):
    """A write into the array is seen by the result of a function just if it is so in NumPy, and a
    write into the result by the array.
    """
    if name in ("unstack", "matrix_transpose") and not hasattr(np, name):
        pytest.skip(f"NumPy has no {name}")
    x = np.cos(np.arange(24.0)).reshape(4, 6)
    weights = np.sin(np.arange(24.0)).reshape(4, 6)

    def run(space, x, back):
        y = STATES[state](space, x)
        z = SEEN[name](space, y)
        if back:
            z[...] *= 2
        y *= 3
        y[1] += 1
        scale = np.cos(np.arange(float(np.size(z)))).reshape(np.shape(z))
        return (y * weights).sum() + (z * z * scale).sum()

    for back in (False, True):
        f = lambda x, back=back: run(inp, x, back)
        plain = lambda x, back=back: run(np, x.copy(), back)
        if back and not SEEN[name](np, STATES[state](np, x)).flags.writeable:
            with pytest.raises(ValueError, match="read-only"):
                plain(x)
            with pytest.raises(ValueError, match="read-only"):
                iso.grad(f)(x)
            continue
        value, grad = iso.value_and_grad(f)(x)
        np.testing.assert_allclose(value, plain(x), rtol=1e-12)
        np.testing.assert_allclose(grad, central_gradient(plain, x), rtol=1e-5, atol=1e-6)


# What is refused.


def written_outside(x, w):
    w[0] = x[0]
    return w.sum()


def inner_into_outer(x):
    b = inp.zeros(3)

    def inner(t):
        b[0] = t[0]
        return (b * t).sum()

    return iso.grad(inner)(x).sum()


def handed_out(x):
    b = inp.zeros(3)
    c = np.asarray(b)
    b[0] = x[0]
    return b.sum() + c.sum()


def captured_and_written(x):
    own = np.ones(3)

    def inner(w):
        w += 1
        return (w * own).sum()

    return iso.grad(inner)(own).sum() + x.sum()


def leaving(how):
    def run(x):
        b = inp.zeros(3)
        b[:] = x
        how(b)
        return b.sum()

    return run


REFUSED = {
    "made outside": (lambda x: written_outside(x, np.ones(3)), r"isomorph\.numpy.*np\.array"),
    "a plain copy": (lambda x: written_outside(x, np.ones(3) * 2), r"isomorph\.numpy.*np\.array"),
    "a level outside": (inner_into_outer, r"innermost.*shape \(3,\).*isomorph\.numpy"),
    "handed out": (handed_out, r"handed out.*write before"),
    "captured": (captured_and_written, r"shape \(3,\).*copy.*use the argument"),
    "integers": (lambda x: written_outside(x, inp.zeros(3, int)), "gradient would be lost"),
    "booleans": (lambda x: written_outside(x, inp.zeros(3, bool)), "gradient would be lost"),
    "complex into real": (lambda x: written_outside(x * 1j, inp.zeros(3)).real, "dtype=complex"),
    "part of a complex": (lambda x: written_outside(x, (x * 1j).real), "re \\+ 1j"),
    "asarray": (leaving(np.asarray), "plain data"),
    "memoryview": (leaving(memoryview), "bytes-like"),
    "view": (leaving(lambda b: b.view(np.ndarray)), "plain data"),
    "float": (leaving(lambda b: float(b[0])), "gradient would be lost"),
    "pickle": (leaving(pickle.dumps), "gradient would be lost"),
    "dlpack": (leaving(np.from_dlpack), "plain data|__dlpack"),
    "plain out": (lambda x: np.exp(x, out=np.zeros(3)).sum(), "out=.*isomorph"),
    "plain sum": (lambda x: thrice_plus(np.ones(3), x), r"a \+ b"),
}


def thrice_plus(w, x):
    w += x
    return w.sum()


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused_and_says_what_to_write(backend, name):
    run, words = REFUSED[name]
    with pytest.raises(
        (TypeError, ValueError, AttributeError, RuntimeError, BufferError), match=words
    ):
        iso.grad(run)(X)


def test_a_plain_array_that_a_rule_reads_is_locked_and_says_so(backend):
    def run(x):
        w = np.ones(3)
        y = x * w * x
        w[0] = 2
        return y.sum()

    with pytest.raises(ValueError, match="read-only\nisomorph: .*np.array"):
        iso.grad(run)(X)


@pytest.mark.parametrize(
    "read", [np.multiply, np.matmul, lambda x, w: np.where(X > 1, x * w, w * x)]
)
def test_a_write_through_an_older_view_comes_too_late(backend, read):
    def run(x):
        w = np.ones(3)
        older = w[:2]
        y = read(x, w) * x
        older[0] = 5.0
        return (y * np.ones(3)).sum()

    plain = lambda x: run(x.copy())
    np.testing.assert_allclose(iso.grad(run)(X), central_gradient(plain, X), rtol=1e-6)


def test_an_argument_is_not_changed_through_an_older_view(backend):
    given = X.copy()
    older = given[:1]

    def run(x):
        y = x * x
        older[0] = 9.0
        return y.sum()

    np.testing.assert_allclose(iso.grad(run)(given), 2 * X)


# Buffers are arrays.


def test_outside_of_a_transform_arrays_are_numpys(backend):
    made = (inp.zeros(3), inp.ones(3), inp.empty(3), inp.full(3, 1.0), inp.array([1.0]), inp.eye(2),
            inp.zeros_like(X), inp.linspace(0, 1, 3), inp.arange(3.0), inp.copy(X))  # fmt: skip
    assert {type(x) for x in made} == {np.ndarray}
    found = []

    def elsewhere(x):
        thread = threading.Thread(target=lambda: found.append(type(inp.zeros(3))))
        thread.start()
        thread.join()
        return x.sum()

    iso.grad(elsewhere)(X)
    assert found == [np.ndarray]


def test_a_buffer_computes_like_an_array(backend):
    def run(x):
        b = inp.ones(3)
        assert int(b.sum()) == 3
        assert float(b[0]) == 1.0
        assert b.shape == (3,)
        assert len(b) == 3
        assert b.dtype == np.float64
        assert type(np.asarray(b)) is np.ndarray
        np.testing.assert_array_equal(np.linalg.solve(np.eye(3), b), np.ones(3))
        np.testing.assert_array_equal(copy.deepcopy(b), np.ones(3))
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(b)), np.ones(3))
        assert (b[b > 0] == 1).all()
        assert iso.softmax(b).shape == (3,)
        b.fill(2.0)
        b[1:] *= 2
        assert b.tolist() == [2.0, 4.0, 4.0]
        assert [float(y) for y in b] == b.tolist()
        return (b * x).sum()

    np.testing.assert_array_equal(iso.grad(run)(X), [2.0, 4.0, 4.0])


def test_results_leave_as_plain_arrays(backend):
    def run(x):
        b, c = inp.zeros(3), inp.ones(2)
        b[:2] = x[1:]
        return b.sum(), {"written": b, "part": b[1:], "plain": c, "view": c[:1]}

    (_, aux), _ = iso.value_and_grad(run, has_aux=True)(X)
    assert {type(x) for x in aux.values()} == {np.ndarray}
    np.testing.assert_array_equal(aux["written"], [1.7, 0.6, 0.0])
    np.testing.assert_array_equal(aux["part"], [0.6, 0.0])


def test_a_python_number_is_rebound_and_an_array_without_axes_is_written(backend):
    def run(a):
        before = a
        a += 1
        return before * a

    for given in (2.0, np.float64(2.0), np.array(2.0), np.array([2.0])):
        value, grad = iso.value_and_grad(lambda a: np.sum(run(a)))(given)
        wanted = (9.0, 6.0) if isinstance(given, np.ndarray) else (6.0, 5.0)
        assert (float(value), float(np.sum(grad))) == wanted, given


def test_lists_that_hold_traced_numbers_are_written(backend):
    def run(np, x):
        a, b = np.zeros((2, 2)), x * 1.0
        a[0] = [x[0], 2.0]
        a[:] = [[x[0], 1.0], [2.0, x[1]]]
        b[1:] = [x[0], 3.0]
        return (a**2).sum() + (b**2).sum()

    wanted = central_gradient(lambda x: run(np, x), X)
    np.testing.assert_allclose(iso.grad(lambda x: run(inp, x))(X), wanted, rtol=1e-6, atol=1e-7)


def test_a_view_that_was_kept_is_the_number_that_it_was(backend):
    kept = []

    def run(x):
        y = x * 1.0
        kept.append(y[1:])
        y += 1
        return y.sum()

    iso.grad(run)(X)
    np.testing.assert_array_equal(kept[0] + 0, X[1:] + 1)


RULE = iso.custom_vjp(lambda x: x, lambda x: (x, ()), lambda _, g: (g,))


@pytest.mark.parametrize("what", [iso.stop_gradient, RULE], ids=["stop_gradient", "a rule"])
def test_what_shares_memory_is_read_only_inside_and_writeable_after(backend, what):
    def inside(x):
        y = np.exp(x)
        z = iso.stop_gradient(y)
        z += 1  # what exp's rule reads
        return (y * z).sum()

    with pytest.raises(ValueError, match="read-only"):
        iso.grad(inside)(X)
    (_, aux), _ = iso.value_and_grad(lambda x: (x.sum(), what(x * 2)), has_aux=True)(X)
    assert aux.flags.writeable


CONSTANTS = {
    "linear": lambda np, x, k: iso.linear(x[None], k),
    "attention": lambda np, x, k: iso.scaled_dot_product_attention(x[None] * 2.0, k, k),
    "interp": lambda np, x, k: np.interp(x, np.cumsum(abs(k[0])), k[1]),
    "solve": lambda np, x, k: np.linalg.solve(k + 3 * np.eye(3), x),
    "convolve": lambda np, x, k: np.convolve(x, k[0]),
    "einsum": lambda np, x, k: np.einsum("ij,j->i", k, x) * x,
    "where": lambda np, x, k: np.where(x > 1, x * k, k * x * x),
    "power": lambda np, x, k: np.power(x, k),
    "stack": lambda np, x, k: np.stack([x, k[0]]) * np.concatenate([x, k[0]]).reshape(2, 3),
    "polyval": lambda np, x, k: np.polyval(k[0], x),
    "softmax": lambda np, x, k: iso.softmax(k * x) * k,
    "cross": lambda np, x, k: np.cross(x, k) + np.tensordot(x, k, 1),
    "average": lambda np, x, k: np.average(x, weights=abs(k[0])) + np.trapezoid(x, k[0]),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_a_constant_may_be_written_after_it_was_read(backend, name):
    """Arrays of `isomorph.numpy`, which a rule reads again: it has the old numbers."""
    numbers = np.cos(np.arange(9.0)).reshape(3, 3)

    def run(np, x):
        k = np.array(numbers)
        y = CONSTANTS[name](np, x, k)
        k[:] = 7.0
        return (y**2).sum() + (k * x).sum()

    wanted = central_gradient(lambda x: run(np, x), X)
    np.testing.assert_allclose(iso.grad(lambda x: run(inp, x))(X), wanted, rtol=1e-6, atol=1e-7)


def test_the_dtype_of_the_array_stays(backend):
    def run(x):
        b = inp.zeros(3, dtype=np.float32)
        b[:] = x
        b *= x
        assert b.dtype == np.float32
        return b.sum()

    grad = iso.grad(run)(X)
    assert grad.dtype == np.float64
    np.testing.assert_allclose(grad, 2 * X, rtol=1e-6)


@pytest.mark.takes("memory is watched")
def test_a_loop_that_fills_an_array_takes_memory_for_its_numbers_only(backend):
    def peak(n):
        x = np.cos(np.arange(float(n)))

        def run(x):
            r = inp.zeros((n, 4))
            r[0] = x[0]
            for i in range(1, n):
                r[i] = np.tanh(r[i - 1] * 0.5) + x[i]
            return (r * r).sum()

        gc.collect()
        tracemalloc.start()
        iso.grad(run)(x)
        held = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return held

    peak(20)
    assert peak(320) < 6 * peak(80)
