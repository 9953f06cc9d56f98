"""`cond`, `while_loop`, `fori_loop` and `scan`: the same results eager and compiled, compared with
plain Python loops and central differences.
"""

import math

import numpy as np
import pytest
from frameworks import tf, torch

import isomorph as iso
from oracles import central_gradient, kind_of, numpy_of

MODES = pytest.mark.parametrize("mode", ["eager", "jit"])
COMPILED = pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)
ROWS = np.array([[0.1, -0.4], [0.5, 0.2], [-0.3, 0.7], [0.9, 0.6]])
WEIGHTS = np.array([[0.5, -0.2], [0.3, 0.8]])


def in_mode(mode, func):
    return iso.jit(func) if mode == "jit" else func


def root(x):
    """The square root of positive x; elsewhere its derivative is 0, not NaN."""
    xp = iso.namespace(x)
    return iso.cond(x > 0, xp.sqrt, lambda x: 0.0 * x, x)


@MODES
def test_cond_computes_and_differentiates_one_branch(backend, xp, mode):
    both = in_mode(mode, iso.value_and_grad(root))
    for x in (4.0, 0.25, 0.0, -1.0):
        value, grad = both(xp.asarray(x))
        np.testing.assert_allclose(float(value), math.sqrt(max(x, 0.0)), rtol=1e-15)
        np.testing.assert_allclose(float(grad), 0.5 / math.sqrt(x) if x > 0 else 0.0, rtol=1e-14)
        assert kind_of(value) == backend
    second = in_mode(mode, iso.grad(iso.grad(root)))
    for x in (4.0, -1.0):
        wanted = -0.25 * x**-1.5 if x > 0 else 0.0
        np.testing.assert_allclose(float(second(xp.asarray(x))), wanted, rtol=1e-14)


@MODES
def test_cond_for_each_example(backend, xp, mode):
    x = xp.asarray([4.0, 0.0, -1.0], dtype=xp.float64)
    values, grads = in_mode(mode, iso.vmap(iso.value_and_grad(root)))(x)
    np.testing.assert_allclose(numpy_of(values), [2.0, 0.0, 0.0], rtol=1e-15)
    np.testing.assert_allclose(numpy_of(grads), [0.25, 0.0, 0.0], rtol=1e-15)


@MODES
def test_cond_of_nests_captured_arrays_and_modules(backend, xp, mode):
    with iso.use_backend(backend, dtype="float64"), iso.use_key(0):
        layer = iso.Linear(2, 3)

    def func(flag, layer, x):
        scale = xp.sum(x) * 2.0
        yes = lambda m, p: {"a": m(p["x"]) * scale, "b": [p["x"], None]}
        no = lambda m, p: {"a": -m(p["x"]), "b": [p["x"] * 0.0, None]}
        return iso.cond(flag > 0, yes, no, layer, {"x": x})

    x = ROWS[0]
    plain = numpy_of(layer.w) @ x + numpy_of(layer.b)
    run = in_mode(mode, func)
    out = run(xp.asarray(1), layer, xp.asarray(x))
    np.testing.assert_allclose(numpy_of(out["a"]), plain * 2 * x.sum(), rtol=1e-12)
    np.testing.assert_allclose(numpy_of(out["b"][0]), x)
    assert out["b"][1] is None
    out = run(xp.asarray(-1), layer, xp.asarray(x))
    np.testing.assert_allclose(numpy_of(out["a"]), -plain, rtol=1e-12)


def test_cond_of_a_python_bool_runs_one_function(backend, xp):
    x = xp.asarray([1.0, 2.0], dtype=xp.float64)
    for pred in (True, False, 1, 0.0):
        out = iso.cond(pred, lambda x: x * 2, lambda x: x[0], x)
        np.testing.assert_allclose(numpy_of(out), [2.0, 4.0] if pred else 1.0)
    assert iso.cond(False, lambda: 1, lambda: "no array says whose it is") == (
        "no array says whose it is"
    )
    np.testing.assert_allclose(numpy_of(iso.cond(True, lambda s: x * s, lambda s: x, 3)), [3, 6])


def plain_scan(w, rows):
    """Carry a vector and a count; y is the carry before each step."""
    h, ys = np.array([0.5, -0.5]), []
    for row in rows:
        ys.append(h)
        h = np.tanh(w @ h + row)
    return h, np.array(ys)


def scanned(xp, w, rows):
    def step(carry, x):
        h = xp.tanh(xp.matmul(w, carry["h"]) + x["row"])
        return {"h": h, "n": carry["n"] + 1}, {"before": carry["h"]}

    first = {"h": xp.asarray([0.5, -0.5], dtype=w.dtype), "n": 0}
    return iso.scan(step, first, {"row": rows})


@MODES
def test_scan(backend, xp, mode):
    w, rows = xp.asarray(WEIGHTS), xp.asarray(ROWS)
    last, ys = in_mode(mode, lambda w, rows: scanned(xp, w, rows))(w, rows)
    h, before = plain_scan(WEIGHTS, ROWS)
    np.testing.assert_allclose(numpy_of(last["h"]), h, rtol=1e-14)
    np.testing.assert_allclose(numpy_of(ys["before"]), before, rtol=1e-14)
    assert int(last["n"]) == 4
    assert kind_of(ys["before"]) == kind_of(w)


@MODES
def test_gradients_of_scan(backend, xp, mode):
    """Gradients flow to the inputs and to what the step captures, to the second order."""

    def loss(w, rows):
        last, ys = scanned(xp, w, rows)
        return xp.sum(last["h"] ** 2) + xp.sum(ys["before"] ** 3)

    def plain(w, rows):
        h, ys = plain_scan(w, rows)
        return np.sum(h**2) + np.sum(ys**3)

    w, rows = xp.asarray(WEIGHTS), xp.asarray(ROWS)

    def all_of_them(w, rows):
        first = iso.grad(loss, argnums=(0, 1))(w, rows)
        squares = lambda w: xp.sum(iso.grad(loss)(w, rows) ** 2)
        return first, iso.grad(squares)(w)

    (to_w, to_rows), second = in_mode(mode, all_of_them)(w, rows)
    # central differences with step 1e-6 of functions of size 1
    wanted = central_gradient(lambda w: plain(w, ROWS), WEIGHTS)
    np.testing.assert_allclose(numpy_of(to_w), wanted, atol=1e-8)
    wanted = central_gradient(lambda rows: plain(WEIGHTS, rows), ROWS)
    np.testing.assert_allclose(numpy_of(to_rows), wanted, atol=1e-8)
    eager = lambda w: numpy_of(iso.grad(loss)(xp.asarray(w), rows))
    wanted = central_gradient(lambda w: np.sum(eager(w) ** 2), WEIGHTS)
    np.testing.assert_allclose(numpy_of(second), wanted, atol=1e-7)


@MODES
def test_scan_backwards_by_length_and_of_nothing(backend, xp, mode):
    def func(x):
        back = iso.scan(lambda c, x: (c + x, c), xp.zeros_like(x[0]), x, reverse=True)
        times = iso.scan(lambda c, _: (c * 2, None), x[0], None, 5)
        return back, times

    def empty(x):
        return iso.scan(lambda c, x: (c, (x * c, c)), xp.asarray(2.0, dtype=xp.float64), x[:0, :])

    x = xp.asarray([1.0, 2.0, 3.0], dtype=xp.float64)
    (total, ys), (power, nothing) = in_mode(mode, func)(x)
    assert float(total) == 6.0
    np.testing.assert_array_equal(numpy_of(ys), [5.0, 3.0, 0.0])
    assert (float(power), nothing) == (32.0, None)
    carry, ys = in_mode(mode, empty)(xp.asarray(ROWS))
    assert float(carry) == 2.0
    assert [tuple(y.shape) for y in ys] == [(0, 2), (0,)]


@MODES
def test_a_module_is_carried_and_the_one_given_stays(backend, xp, mode):
    with iso.use_backend(backend, dtype="float64"), iso.use_key(0):
        layer = iso.Linear(2, 2)

    def step(layer, x):
        y = layer(x)
        layer.w = layer.w * 0.5
        return layer, y

    w, b = numpy_of(layer.w).copy(), numpy_of(layer.b).copy()
    last, ys = in_mode(mode, lambda layer, xs: iso.scan(step, layer, xs))(layer, xp.asarray(ROWS))
    wanted = [w * 0.5**i @ x + b for i, x in enumerate(ROWS)]
    np.testing.assert_allclose(numpy_of(ys), wanted, rtol=1e-13)
    assert type(last) is iso.Linear
    np.testing.assert_allclose(numpy_of(last.w), w / 16, rtol=1e-15)
    np.testing.assert_array_equal(numpy_of(layer.w), w)


@COMPILED
def test_a_compiled_loop_has_one_body(backend, xp):
    runs = []

    def step(c, x):
        runs.append(1)
        return c + x, c

    total, _ = iso.jit(lambda x: iso.scan(step, xp.zeros_like(x[0]), x))(xp.ones(1000))
    assert float(total) == 1000.0
    seen = len(runs)
    iso.jit(lambda x: iso.fori_loop(0, 1000, lambda i, c: step(c, 1)[0], x))(xp.zeros(()))
    assert seen < 20
    assert len(runs) < 40


@MODES
def test_fori_loop(backend, xp, mode):
    def polynomial(x):
        step = lambda i, v: v * x + xp.astype(xp.asarray(i), x.dtype)
        return iso.fori_loop(1, 6, step, x)

    def plain(x):
        v = x
        for i in range(1, 6):
            v = v * x + i
        return v

    def func(x, n):
        square = lambda i, v: v * v
        none = iso.fori_loop(3, 1, lambda i, v: v + 1, x)
        bounds = iso.fori_loop(n - 1, n + 2, lambda i, v: (v[0] * 2, v[1] + i), (x, n * 0))
        return iso.value_and_grad(polynomial)(x), none, bounds, iso.fori_loop(0, 2, square, x)

    (value, grad), none, (eight, total), fourth = in_mode(mode, func)(
        xp.asarray(1.1, dtype=xp.float64), xp.asarray(4)
    )
    np.testing.assert_allclose(float(value), plain(1.1), rtol=1e-14)
    np.testing.assert_allclose(float(grad), central_gradient(plain, 1.1), rtol=1e-8)
    np.testing.assert_allclose([float(none), float(eight), float(fourth)], [1.1, 8.8, 1.1**4])
    assert int(total) == 3 + 4 + 5


def doubled(x):
    """x, tripled until it is at least 100."""
    return iso.while_loop(lambda v: v < 100, lambda v: v * 3, x)


@MODES
def test_while_loop(backend, xp, mode):
    def func(x, n):
        collatz = lambda c: (
            iso.cond(c[0] % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, c[0]), c[1] + 1
        )  # fmt: skip
        return doubled(x), iso.while_loop(lambda c: c[0] != 1, collatz, (n, 0))

    value, (one, steps) = in_mode(mode, func)(xp.asarray(2.0, dtype=xp.float64), xp.asarray(27))
    assert float(value) == 162.0
    assert (int(one), int(steps)) == (1, 111)  # the known length of the Collatz sequence
    values = in_mode(mode, iso.vmap(doubled))(xp.asarray([2.0, 60.0, 500.0], dtype=xp.float64))
    np.testing.assert_array_equal(numpy_of(values), [162.0, 180.0, 500.0])


@MODES
def test_gradients_of_while_loop(backend, xp, mode):
    run = in_mode(mode, iso.grad(doubled))
    if backend == "jax" or (backend == "torch" and mode == "jit"):
        with pytest.raises(NotImplementedError, match="while_loop.*use iso.fori_loop with Python"):
            run(xp.asarray(2.0, dtype=xp.float64))
    else:
        np.testing.assert_allclose(float(run(xp.asarray(2.0, dtype=xp.float64))), 81.0, rtol=1e-15)
        second = in_mode(mode, iso.grad(iso.grad(lambda x: doubled(x) ** 2)))
        np.testing.assert_allclose(
            float(second(xp.asarray(2.0, dtype=xp.float64))), 2 * 81.0**2, rtol=1e-14
        )


@MODES
def test_loops_for_each_example(backend, xp, mode):
    def func(w, n):
        total = lambda w: xp.sum(scanned(xp, w, xp.asarray(ROWS))[0]["h"])
        return iso.value_and_grad(total)(w), iso.fori_loop(0, n, lambda i, v: v * 2, n)

    ws = np.stack([WEIGHTS, -WEIGHTS])
    (values, grads), powers = in_mode(mode, iso.vmap(func))(xp.asarray(ws), xp.asarray([3, 1]))
    plain = lambda w: np.sum(plain_scan(w, ROWS)[0])
    np.testing.assert_allclose(numpy_of(values), [plain(w) for w in ws], rtol=1e-13)
    wanted = [central_gradient(plain, w) for w in ws]
    np.testing.assert_allclose(numpy_of(grads), wanted, atol=1e-8)
    np.testing.assert_array_equal(numpy_of(powers), [24, 2])


@MODES
def test_loops_within_loops(backend, xp, mode):
    def func(xs):
        def step(c, x):
            grow = lambda v: iso.cond(v > limit, lambda v: v + 1.0, lambda v: v * 2.0, v)
            return iso.while_loop(lambda v: v < x, grow, c), c

        limit = xs[0] * 2.0
        return iso.scan(step, xs[0], xs)

    def plain(xs):
        c, ys = xs[0], []
        for x in xs:
            ys.append(c)
            while c < x:
                c = c + 1 if c > 2 * xs[0] else c * 2
        return c, ys

    xs = [1.0, 5.0, 3.0, 9.5]
    last, ys = in_mode(mode, func)(xp.asarray(xs, dtype=xp.float64))
    wanted = plain(xs)
    assert float(last) == wanted[0]
    np.testing.assert_array_equal(numpy_of(ys), wanted[1])


@pytest.mark.takes("torch compiles C++")
@MODES
def test_dtypes_are_kept(backend, xp, mode):
    def func(x):
        made = iso.cond(xp.sum(x) > 0, lambda x: x * 2, lambda x: x, x)
        many = iso.scan(lambda c, row: (c * 0.5 + row, row * 2), x[0, :], x)
        # neither TensorFlow's operators nor the standard mix integer arrays with floats
        mixes = backend in ("numpy", "jax", "torch")
        times = (lambda i, v: v * i + 0.5) if mixes else (lambda i, v: v * 2.0)
        again = iso.fori_loop(0, 2, times, x)
        until = iso.while_loop(lambda c: c[1] < 3.0, lambda c: (c[0] * 2, c[1] + 1.0), (x, 0.0))
        return [made, *many, again, *until]

    out = in_mode(mode, func)(xp.asarray(ROWS, dtype=xp.float32))
    assert [x.dtype for x in out] == [xp.float32] * 6
    np.testing.assert_allclose(numpy_of(out[0]), ROWS.astype(np.float32) * 2)
    np.testing.assert_allclose(numpy_of(out[-2]), ROWS.astype(np.float32) * 8)


def test_a_carry_that_changes_is_named(backend, xp):
    x = xp.asarray([1.0, 2.0], dtype=xp.float64)
    said = lambda word: pytest.raises(TypeError, match=word)
    with said(r"scan: needed step to return float64 of shape \(2,\) at a, .* got "
              r"float64 of shape \(\)"):  # fmt: skip
        iso.scan(lambda c, x: ({"a": xp.sum(c["a"])}, x), {"a": x}, x)
    with said(
        r"while_loop: needed body_fun to return float64 of shape \(2,\) at 1, .* got float32"
    ):
        narrow = lambda c: (c[0], xp.astype(c[1], xp.float32))
        iso.while_loop(lambda c: c[0] > 0, narrow, (x[0], x))
    with said("fori_loop: needed body_fun to return a nest like .* got one "
              "without a, with .*b"):  # fmt: skip
        iso.fori_loop(0, 2, lambda i, c: {"b": c["a"]}, {"a": x})
    with said("while_loop: needed body_fun to return int.* got a float"):
        iso.while_loop(lambda c: c < 3, lambda c: 0.5, xp.asarray(1))
    with said(r"scan: needed step to return \(carry, y\), got"):
        iso.scan(lambda c, x: c, x, x)


def test_bad_input(backend, xp):
    x = xp.asarray([1.0, 2.0], dtype=xp.float64)
    same = lambda *a: a[-1]
    other = torch.ones(2) if backend != "torch" else np.ones(2)
    both = "arrays of 2 backends in one call: .*" + ("torch" if backend != "torch" else "numpy")
    said = lambda word, kind=TypeError: pytest.raises(kind, match=word)
    with said(r"cond: needed pred as one boolean, got bool of shape \(2,\); reduce it with xp.all"):
        iso.cond(x > 0, same, same, x)
    with said("cond: needed pred as one boolean, got a str"):
        iso.cond("yes", same, same, x)
    with said("cond: needed true_fun as a function, got int"):
        iso.cond(True, 1, same, x)
    with said("cond: needed arrays and numbers, got a str at operand 1/a"):
        iso.cond(True, same, same, x, {"a": "word"})
    with said("cond: needed .* arrays and numbers as output, got a str at a"):
        iso.cond(x[0] > 0, lambda x: {"a": "word"}, lambda x: {"a": "word"}, x)
    with said(both):
        iso.cond(True, same, same, x, other)
    with said(both):
        iso.cond(other[0] > 0, same, same, x)
    with said(both):
        iso.while_loop(lambda c: True, same, (x, other))
    with said(both):
        iso.scan(lambda c, x: (c, x), x, other)
    with said("while_loop: needed cond_fun's result as one boolean, got bool of shape"):
        iso.while_loop(lambda x: x < 3, same, x)
    with said("fori_loop: needed upper as an integer, got a float"):
        iso.fori_loop(0, 1.5, same, x)
    with said("fori_loop: needed lower as an integer, got float64"):
        iso.fori_loop(x[0], 2, same, x)
    with said(r"scan: needed arrays with a leading axis, got shape \(\) for xs at 1"):
        iso.scan(lambda c, x: (c, x), x, (x, x[0]))
    with said("scan: needed the same number of steps .*got 3 for length, 2 for xs", ValueError):
        iso.scan(lambda c, x: (c, x), x, x, 3)
    with said("scan: needed xs, or length .* got neither"):
        iso.scan(lambda c, x: (c, x), x)
    with said("scan: needed length as a number of steps, got -1"):
        iso.scan(lambda c, x: (c, x), x, None, -1)


@COMPILED
def test_branches_that_differ_are_refused_where_both_are_seen(backend, xp):
    x = xp.asarray([1.0, 2.0], dtype=xp.float64)
    with pytest.raises(TypeError, match=r"cond: needed .* same structure, got"):
        iso.jit(lambda x: iso.cond(x[0] > 0, lambda x: (x,), lambda x: x, x))(x)
    message = r"same shape and dtype at a, got float64 of shape \(2,\) .*true_fun and float64 of "
    with pytest.raises(TypeError, match=message):
        wide, narrow = lambda x: {"a": x * 2}, lambda x: {"a": x[0] * 2}
        iso.jit(lambda x: iso.cond(x[0] > 0, wide, narrow, x))(x)


def test_numbers_alone_belong_to_the_home(backend, xp):
    with iso.use_backend(backend):
        out = iso.while_loop(lambda c: c[0] < 10, lambda c: (c[0] + 1, c[1] * 2.0), (0, 1.0))
    assert kind_of(out[1]) == backend
    assert (int(out[0]), float(out[1])) == (10, 1024.0)


GLOBAL = torch.tensor([2.0, 3.0], dtype=torch.float64)
HIDDEN: dict = {}


def lifts_constants(xp, x):
    def func(x):
        made = lambda x: x * torch.tensor([2.0, 5.0], dtype=torch.float64)
        step = lambda i, x: iso.cond(x[0] > 0, made, lambda x: x * GLOBAL, x)
        return iso.fori_loop(0, 2, step, x) + GLOBAL

    compiled = iso.jit(func)
    np.testing.assert_allclose(numpy_of(compiled(x)), [6.0, 53.0])
    np.testing.assert_allclose(numpy_of(compiled(-x)), [-4.0 + 2, -18.0 + 3])


def refuses_what_is_hidden(xp, x):
    def hidden(x):
        HIDDEN["x"] = x * 2
        return iso.cond(x[0] > 0, lambda x: x * HIDDEN["x"], lambda x: x, x)

    np.testing.assert_allclose(numpy_of(hidden(x)), [2.0, 8.0])
    with pytest.raises(TypeError, match="argument.*captured in its closure"):
        iso.jit(hidden)(x)
    with pytest.raises(TypeError, match="an argument.*captured in its closure"):
        iso.vmap(iso.grad(lambda x: xp.sum(hidden(x))))(torch.stack([x, -x]))


def differentiates_what_is_captured(xp, x):
    w = x.clone().requires_grad_()
    iso.jit(lambda w: iso.scan(lambda c, _: (c * w, None), w, None, 2)[0])(w).sum().backward()
    np.testing.assert_allclose(numpy_of(w.grad), 3 * numpy_of(x) ** 2, rtol=1e-14)


@pytest.mark.takes("torch compiles C++")
@pytest.mark.parametrize(
    "check", [lifts_constants, refuses_what_is_hidden, differentiates_what_is_captured]
)
@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_torch_lifts_constants_and_refuses_what_is_hidden(backend, xp, check):
    check(xp, torch.tensor([1.0, 2.0], dtype=torch.float64))


def rows_and_what_is_captured(x, y):
    limit = x + 2.0
    return iso.scan(lambda c, x: (c + x, c * limit), x, torch.arange(3.0, device=x.device))


READ_BY_DYNAMO = {
    "cond": lambda x, y: [iso.cond(x > 0, lambda x: x * y, lambda x: x, x)],
    "while_loop": lambda x, y: [iso.while_loop(lambda v: v < 100, lambda v: v * 3, x + 0.5)],
    "fori_loop": lambda x, y: [iso.fori_loop(0, 3, lambda i, v: v * y + 1.0, x)],
    "scan": rows_and_what_is_captured,
}


@pytest.mark.parametrize("name", [*READ_BY_DYNAMO, "all", "gradients"])
@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_torch_compile_reads_them(backend, xp, name):
    """Each alone, all in one program, and backward through a compiled one."""
    read = lambda func: torch.compile(func, fullgraph=True, backend="aot_eager")
    every = lambda x, y: [v for func in READ_BY_DYNAMO.values() for v in func(x, y)]
    func = READ_BY_DYNAMO.get(name, root if name == "gradients" else every)
    compiled = read(func)
    for x in (2.0, -0.25):
        if name == "gradients":
            leaf = torch.tensor(x, requires_grad=True, dtype=torch.float64)
            compiled(leaf).backward()
            np.testing.assert_allclose(float(leaf.grad), 0.5 / math.sqrt(x) if x > 0 else 0.0)
        else:
            args = torch.tensor(x), torch.tensor(3.0)
            for got, wanted in zip(compiled(*args), func(*args), strict=True):
                np.testing.assert_allclose(numpy_of(got), numpy_of(wanted), rtol=1e-6)
    if name == "gradients":
        with pytest.raises(Exception, match="cond: torch.compile cannot transform it"):
            read(iso.grad(root))(torch.tensor(2.0))


@pytest.mark.takes("XLA compiles it")
@pytest.mark.parametrize("backend", ["tensorflow"], indirect=True)
def test_tensorflow_graphs_of_unknown_length(backend, xp):
    spec = tf.TensorSpec((None, 2), tf.float64)
    run = tf.function(lambda rows: scanned(xp, tf.constant(WEIGHTS), rows)[0]["h"], [spec])
    for n in (1, 3):
        wanted = plain_scan(WEIGHTS, ROWS[:n])[0]
        np.testing.assert_allclose(run(tf.constant(ROWS[:n])).numpy(), wanted, rtol=1e-14)
