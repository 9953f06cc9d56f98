"""Programs that eager loops and transforms keep: compiled once for the same code, never stale, and
left alone where a function has effects or sees what cannot be read.
"""

import gc
import random
import time
import types
import weakref
from contextvars import ContextVar
from functools import partial
from threading import Thread
from typing import NamedTuple

import numpy as np
import pytest
from frameworks import enable_x64, jax, tf

import isomorph as iso
from isomorph.compile import kept_programs
from isomorph.core.dispatch import load
from oracles import central_gradient, numpy_of

COMPILED = pytest.mark.parametrize("backend", ["jax", "tensorflow"], indirect=True)
LONG = 20  # steps: enough for a program at the first call
SCALE, TABLE, WEIGHTS = 2.0, {"a": [1.0, 2.0]}, None
SETTINGS = types.ModuleType("settings")
SETTINGS.scale = 2.0


class State(NamedTuple):
    x: object
    n: object


@pytest.fixture
def made(backend, monkeypatch):
    """A list of the programs that were traced."""
    for recent in (kept_programs.RUNS, kept_programs.FAMILIES, kept_programs.SEEN):
        recent.clear()
    found, xp = [], load(backend)
    trace = xp.kept_program

    def noted(func, arrays):
        program = trace(func, arrays)
        found.append(program)
        return program

    monkeypatch.setattr(xp, "kept_program", noted, raising=False)
    return found


def plainly(backend, call):
    """The result of a call without kept programs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(load(backend), "keeps_programs", lambda: False, raising=False)
        return call()


def times(xp, x, steps=LONG):
    return xp.zeros((steps, *x.shape), dtype=x.dtype) + x


def by_scale(x):
    return x * SCALE


def test_newton_steps_of_a_mixture(backend, xp, made):
    """Twelve calls with new functions are two programs, and agree with NumPy."""

    def fitted(name):
        data = iso.convert(np.array([-2.1, -1.8, -2.4, 0.3, 1.2, 0.9, 1.7]), name)
        found = iso.convert(np.array([[-1.5, 1.2, 0.1], [-1.9, 0.8, -0.1]]), name)
        np_like = iso.namespace(data)

        def loss(p):
            rows = [
                -iso.softplus(s * p[2]) - 0.5 * (data - p[k]) ** 2 for k, s in enumerate((1, -1))
            ]
            return -np_like.mean(iso.logsumexp(np_like.stack(rows), axis=0))

        for _ in range(12):
            slopes, bends = iso.vmap(iso.grad(loss))(found), iso.vmap(iso.hessian(loss))(found)
            step = np_like.linalg.solve(
                bends + 0.3 * np_like.eye(3, dtype=bends.dtype), slopes[..., None]
            )
            found = found - step[..., 0]
        return numpy_of(found)

    # contracting steps: rounding errors of 2e-16 do not grow
    np.testing.assert_allclose(fitted(backend), fitted("numpy"), rtol=1e-12)
    assert len(made) == (2 if backend in ("jax", "tensorflow") else 0)


def test_gradient_of_a_scan(backend, xp, made):
    """Gradients reach the carry and what the step captures; a second call makes no program."""

    def loss(np_like, w, x):
        def step(c, row):
            c = np_like.sin(w * c) + row
            return c, c * c

        last, ys = iso.scan(step, x, np_like.stack([w * 0.1] * LONG))
        return np_like.sum(last) + np_like.sum(ys)

    def plain(wx):
        w, c, total = wx[:2], wx[2:], 0.0
        for _ in range(LONG):
            c = np.sin(w * c) + 0.1 * w
            total += np.sum(c * c)
        return np.sum(c) + total

    for values in ([0.5, 1.1, 0.3, -0.2], [0.4, 0.9, 0.2, 0.7]):
        w, x = (iso.convert(np.array(v), backend) for v in (values[:2], values[2:]))
        found = iso.grad(lambda w, x: loss(xp, w, x), argnums=(0, 1))(w, x)
        wanted = central_gradient(plain, np.array(values))
        # central differences of a function of size 10, with step 1e-6
        np.testing.assert_allclose(np.concatenate([*map(numpy_of, found)]), wanted, atol=1e-7)
    assert len(made) == (1 if backend in ("jax", "tensorflow") else 0)


def test_nested_transforms(backend, xp):
    """Derivatives of x⁴·w and of w·x²⁰, alone and inside each other, with two values each."""
    for scale in (1.0, 2.0):
        check_nested(backend, xp, scale)


def check_nested(backend, xp, scale):
    x, w = (iso.convert(scale * np.array(v), backend) for v in ([1.0, 2.0], [3.0, 5.0]))
    a, b = numpy_of(x), numpy_of(w)
    power = lambda x: xp.sum(x**4 * w)
    grown = lambda x: iso.scan(lambda c, _: (c * x, c), w, length=LONG)[0]  # w·x²⁰
    np.testing.assert_allclose(numpy_of(iso.hessian(power)(x)), np.diag(12 * a**2 * b))
    third = iso.grad(lambda x: xp.sum(iso.hessian(power)(x)))(x)
    np.testing.assert_allclose(numpy_of(third), 24 * a * b, rtol=1e-12)
    rows = xp.stack([x, 2 * x])
    many = iso.vmap(iso.hessian(power))(rows)
    np.testing.assert_allclose(numpy_of(many[1]), np.diag(48 * a**2 * b), rtol=1e-12)
    each = iso.vmap(lambda x: xp.sum(grown(x)))(rows)
    np.testing.assert_allclose(numpy_of(each)[0], np.sum(b * a**20), rtol=1e-12)
    slope = iso.grad(lambda x: xp.sum(iso.vmap(lambda x: xp.sum(grown(x)))(x)))(rows)
    np.testing.assert_allclose(numpy_of(slope)[0], 20 * b * a**19, rtol=1e-12)
    second = iso.grad(lambda x: xp.sum(iso.grad(lambda x: xp.sum(grown(x)))(x)))(x)
    np.testing.assert_allclose(numpy_of(second), 380 * b * a**18, rtol=1e-12)
    _, along = iso.jvp(grown, (x,), (w,))
    np.testing.assert_allclose(numpy_of(along), 20 * b * b * a**19, rtol=1e-12)
    to_w = iso.grad(lambda v: xp.sum(iso.vmap(lambda x: xp.sum(x * v) ** 3)(rows)))(w)
    wanted = 3 * (a @ b) ** 2 * a + 3 * (2 * a @ b) ** 2 * 2 * a
    np.testing.assert_allclose(numpy_of(to_w), wanted, rtol=1e-12)
    columns = iso.jacfwd(lambda x: x**3)(x)
    np.testing.assert_allclose(numpy_of(columns), np.diag(3 * a**2), rtol=1e-12)


def test_loops_of_each_kind(backend, xp, made):
    for start in (1.0, 3.0, 5.0):
        check_loops(backend, xp, start)
    assert len(made) == (3 if backend in ("jax", "tensorflow") else 0)


def check_loops(backend, xp, start):
    x = iso.convert(np.array([start, 2.0]), backend)
    doubled = iso.while_loop(lambda x: xp.sum(x) < 100, lambda x: x * 2, x)
    rounds = int(np.ceil(np.log2(100 / (start + 2.0))))
    np.testing.assert_allclose(numpy_of(doubled), numpy_of(x) * 2**rounds)
    summed = iso.fori_loop(0, LONG, lambda i, c: c + xp.astype(xp.asarray(i), x.dtype) * x, x)
    np.testing.assert_allclose(numpy_of(summed), numpy_of(x) * (1 + sum(range(LONG))))
    last, ns = iso.scan(lambda s, _: (State(s.x * 2, s.n + 1), s.n), State(x, 0), length=LONG)
    assert isinstance(last, State)
    assert int(last.n) == LONG
    np.testing.assert_allclose(numpy_of(ns), np.arange(LONG))


def _changes(backend, xp):
    """Pairs of a call and of what changes its result; each call makes its function anew."""
    x = iso.convert(np.array([1.0, 2.0]), backend)
    held, listed, named = {"scale": 2.0}, [2.0], {"w": x}
    host = np.array([2.0, 2.0])

    def with_default(y, by=listed):
        return y * by[0]

    def mapped(func):
        return lambda: iso.vmap(func)(x)

    def scaled(by):
        return lambda: iso.scan(lambda c, _: (c * by, None), x, length=LONG)[0]

    def set_global(value):
        global SCALE
        SCALE = value

    def set_array(value):
        global WEIGHTS
        WEIGHTS = iso.convert(np.array(value), backend)

    set_array(2.0)
    number = [2.0]
    return {
        "a global": (mapped(lambda y: y * SCALE), lambda: set_global(3.0)),
        "a global of a helper": (mapped(lambda y: by_scale(y)), lambda: set_global(5.0)),
        "a global array": (mapped(lambda y: y * WEIGHTS), lambda: set_array(3.0)),
        "a global nest": (mapped(lambda y: y * TABLE["a"][0]), lambda: TABLE["a"].insert(0, 7.0)),
        "a module": (mapped(lambda y: y * SETTINGS.scale), lambda: setattr(SETTINGS, "scale", 3.0)),
        "a dict": (mapped(lambda y: y * held["scale"]), lambda: held.update(scale=3.0)),
        "a default": (mapped(with_default), lambda: listed.insert(0, 3.0)),
        "an array in a dict": (
            mapped(lambda y: xp.sum(y * named["w"])), lambda: named.update(w=x * 3)
        ),
        "a NumPy array": (mapped(lambda y: y * float(host[0])), lambda: host.fill(3.0)),
        "a partial": (
            lambda: iso.vmap(partial(lambda k, y: y * k, number[0]))(x),
            lambda: number.insert(0, 3.0),
        ),
        "a number of a scan": (lambda: scaled(number[0])(), lambda: number.insert(0, 1.5)),
        "a sign of zero": (
            lambda: iso.vmap(lambda y, z=number[0] * 0: 1.0 / (y * z))(x),
            lambda: number.insert(0, -1.0),
        ),
    }  # fmt: skip


def test_what_changes_is_seen(backend, xp, made, monkeypatch):
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    monkeypatch.setitem(globals(), "TABLE", {"a": [1.0, 2.0]})
    monkeypatch.setattr(SETTINGS, "scale", 2.0)
    for what, (call, change) in _changes(backend, xp).items():
        with np.errstate(divide="ignore"):
            before, again = numpy_of(call()), numpy_of(call())
            np.testing.assert_array_equal(before, again, what)
            change()
            after = numpy_of(call())
            wanted = numpy_of(plainly(backend, call))
        np.testing.assert_allclose(after, wanted, rtol=1e-14, err_msg=what)
        assert not np.array_equal(before, after), what
    if backend in ("jax", "tensorflow"):
        assert len(made) > len(_changes(backend, xp))


class Scaled(NamedTuple):
    x: object

    def value(self):
        return self.x * SCALE


class Holder:
    scale = 2.0


def with_attribute(y):
    return y * with_attribute.scale


def caught(y):
    try:
        return y if float(y) > 0 else -y
    except Exception:
        return y * 100.0


@COMPILED
def test_what_cannot_be_read_is_not_kept(backend, xp, made, monkeypatch):
    """Methods, attributes of classes, functions and objects, context variables, and handlers of
    errors that only tracing raises.
    """
    x = iso.convert(np.array([1.0, 2.0]), backend)
    held, around = Holder(), ContextVar("around", default=2.0)
    calls = [
        lambda: iso.vmap(lambda y: Scaled(y).value())(x),
        lambda: iso.vmap(lambda y: y * Holder.scale)(x),
        lambda: iso.vmap(lambda y: y * held.scale)(x),
        lambda: iso.vmap(with_attribute)(x),
        lambda: iso.vmap(lambda y: y * around.get())(x),
    ]
    for value in (2.0, 3.0, 5.0):
        monkeypatch.setitem(globals(), "SCALE", value)
        monkeypatch.setattr(Holder, "scale", value)
        with_attribute.scale = value
        around.set(value)
        for call in calls:
            np.testing.assert_array_equal(numpy_of(call()), np.array([1.0, 2.0]) * value)
    bent = lambda: iso.hessian(lambda y: xp.sum(caught(y[0]) * y))(x)
    np.testing.assert_array_equal(numpy_of(bent()), numpy_of(plainly(backend, bent)))
    assert made == []


class Counter:
    def __init__(self):
        self.count = 0

    def seen(self, x):
        self.count += 1
        return x


CALLS = 0


def _effects(xp):
    """Functions of one array with an effect, and how often it happened."""
    log, table, counter, box = [], {}, Counter(), types.SimpleNamespace(n=0)
    count = 0

    def appends(x):
        log.append(1)
        return x

    def outer(x):
        nonlocal count
        count += 1
        return x

    def outermost(x):
        global CALLS
        CALLS += 1
        return x

    def sets(x):
        table[len(table)] = 1
        return x

    def attribute(x):
        box.n += 1
        return x

    return {
        "list": (appends, lambda: len(log)),
        "nonlocal": (outer, lambda: count),
        "global": (outermost, lambda: CALLS),
        "dict": (sets, lambda: len(table)),
        "attribute": (attribute, lambda: box.n),
        "method": (counter.seen, lambda: counter.count),
    }


@COMPILED
def test_effects_happen_as_without_programs(backend, xp, made, monkeypatch, capsys):
    """JAX traces a step once per call; TensorFlow runs it once per step."""
    x = iso.convert(np.ones(2), backend)
    found = []
    for how in (lambda call: call(), lambda call: plainly(backend, call)):
        monkeypatch.setitem(globals(), "CALLS", 0)
        counts = {}
        for what, (func, counted) in _effects(xp).items():
            for _ in range(2):
                how(lambda func=func: iso.scan(lambda c, _: (func(c), None), x, length=LONG))
                how(lambda func=func: iso.vmap(func)(x))
            counts[what] = counted()
        for _ in range(2):
            how(lambda: iso.scan(lambda c, _: (print("seen"), (c, None))[1], x, length=LONG))
        counts["print"] = capsys.readouterr().out.count("seen")
        found.append(counts)
    assert found[0] == found[1]
    assert min(found[0].values()) >= 2
    if backend == "tensorflow":
        assert found[0]["print"] == 2 * LONG
    assert not any(made)  # nothing was kept


@COMPILED
def test_what_is_drawn_or_measured_is_new_at_each_call(backend, xp, made):
    x = iso.convert(np.ones(2), backend)
    source, generator = random.Random(0), np.random.default_rng(0)
    functions = [
        lambda y: y * random.random(),
        lambda y: y * np.random.random(),  # noqa: NPY002
        lambda y: y * source.random(),
        lambda y: y * generator.random(),
        lambda y: y * (time.perf_counter() % 1.0),
    ]
    for func in functions:
        one, two = (numpy_of(iso.vmap(func)(x)) for _ in range(2))
        assert not np.array_equal(one, two)
    assert made == []


@COMPILED
def test_keys_are_arrays(backend, xp, made):
    """Another key draws other numbers with the same program, the same as without it."""
    for seed in range(3):
        with iso.use_backend(backend):
            key = iso.random.key(seed)
        call = lambda key=key: iso.scan(
            lambda k, _: (iso.random.fold_in(k, 1), iso.random.uniform(k, (3,))), key, length=LONG
        )[1]
        np.testing.assert_array_equal(numpy_of(call()), numpy_of(plainly(backend, call)))
    assert len(made) == 1


@COMPILED
def test_numbers_that_always_change_are_not_compiled_forever(backend, xp, made):
    """After some programs, only a number that comes again gets one."""
    x = iso.convert(np.array([1.0, 2.0]), backend)

    def call(i):
        found = iso.vmap(lambda y: y * (i + 0.5))(x)
        np.testing.assert_allclose(numpy_of(found), np.array([1.0, 2.0]) * (i + 0.5))

    for i in range(2 * kept_programs.AT_ONCE):
        call(i)
    assert len(made) == kept_programs.AT_ONCE
    for _ in range(3):
        call(kept_programs.AT_ONCE)
    assert len(made) == kept_programs.AT_ONCE + 1


@COMPILED
def test_programs_are_few_and_hold_no_arrays(backend, xp, made):
    for i in range(kept_programs.PROGRAMS + 5):
        kept_programs.RUNS.put(i, None)
    assert len(kept_programs.RUNS) == kept_programs.PROGRAMS
    big = iso.convert(np.ones(1000), backend)
    watched = weakref.ref(big)

    def call(big):
        step = lambda c, _: (c * 0.5 + big, None)
        bent = iso.hessian(lambda y: xp.sum(y * y * big[:2]))(big[:2])
        return iso.scan(step, big, length=LONG)[0], bent

    call(big)
    assert len(made) == 2
    assert all(made)
    del big
    gc.collect()
    assert watched() is None


@COMPILED
def test_errors_are_those_of_plain_calls(backend, xp, made):
    x = iso.convert(np.array([1.0, 2.0]), backend)

    def raises(c, _):
        raise KeyError("mine")

    def decides(c, _):
        return (c if c[0] > 0 else -c), None

    calls = [
        lambda: iso.scan(raises, x, length=LONG),
        lambda: iso.scan(decides, x, length=LONG),
        lambda: iso.scan(lambda c, _: (xp.concat([c, c]), None), x, length=LONG),
        lambda: iso.scan(lambda c, _: c, x, length=LONG),
        lambda: iso.vmap(lambda y: y if y > 0 else -y)(x),
        lambda: iso.vmap(lambda y: "text")(x),
        lambda: iso.vmap(lambda y: y, in_axes=3)(x),
        lambda: iso.hessian(lambda y: y)(x),
        lambda: iso.hessian(lambda y: xp.sum(y**3) if y[0] > 0 else xp.sum(y))(x),
        lambda: iso.vmap(lambda y: undefined(y))(x),  # noqa: F821
        lambda: iso.fori_loop(0, LONG, lambda i, c: c[:1], x),
        lambda: xp.linalg.inv(iso.vmap(lambda y: xp.linalg.inv(xp.ones((2, 2)) * y))(x)),
    ]
    for call in calls:
        for _ in range(2):
            assert told(call) == told(lambda call=call: plainly(backend, call))


def told(call):
    """The result of a call as text, or its error."""
    try:
        return "fine", str(numpy_of(iso.convert(call(), "numpy")))
    except Exception as error:
        return type(error).__name__, str(error).splitlines()[:1]


@COMPILED
def test_threads(backend, xp):
    x = iso.convert(np.array([1.0, 2.0]), backend)
    found = {}

    def work(i):
        with enable_x64(True):
            for _ in range(3):
                step = lambda c, _: (c * (1.0 + i % 2), None)
                found[i] = numpy_of(iso.scan(step, x, length=LONG)[0])

    threads = [Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(4):
        np.testing.assert_allclose(found[i], np.array([1.0, 2.0]) * (1.0 + i % 2) ** LONG)


@pytest.mark.parametrize("backend", ["jax"], indirect=True)
def test_64_bits_on_and_off(backend, xp):
    """The same code in both settings, in turns: a count of steps has the setting's own dtype."""
    found = []
    for on in (True, False, True, False):
        with enable_x64(on):
            x = jax.numpy.asarray([1.0, 2.0], dtype="float32")
            call = lambda x=x: iso.scan(
                lambda c, _: (c * 2, jax.numpy.arange(3) + 0.5), x, length=LONG
            )
            last, ys = call()
            wanted = plainly("jax", call)
            assert (last.dtype, ys.dtype) == (wanted[0].dtype, wanted[1].dtype)
            found.append(str(ys.dtype))
    assert found == ["float64", "float32"] * 2


@pytest.mark.parametrize("backend", ["tensorflow"], indirect=True)
def test_arithmetic_is_not_rewritten(backend, made):
    """TensorFlow's optimizer of graphs would return 1, not the 0 that rounding leaves."""
    x = tf.constant([1.0, 2.5], tf.float32)
    found = iso.vmap(lambda y: (y + 1e8) - 1e8)(x)
    assert numpy_of(found).tolist() == [0.0, 0.0]
    assert len(made) == 1


@pytest.mark.parametrize("backend", ["tensorflow"], indirect=True)
def test_variables_are_read_and_written_at_each_call(backend, made):
    count, scale = tf.Variable(0.0), tf.Variable(2.0)

    def step(c, _):
        count.assign_add(1.0)
        return c * scale, None

    for value in (2.0, 1.5):
        scale.assign(value)
        last = iso.scan(step, tf.ones(2), length=LONG)[0]
        np.testing.assert_allclose(numpy_of(last), value**LONG * np.ones(2), rtol=1e-6)
    assert float(count) == 2 * LONG
    assert made == []


@pytest.mark.parametrize("backend", ["jax"], indirect=True)
def test_a_program_is_compiled_once(backend, made):
    """JAX itself compiles nothing at the second call, gradient included."""
    x = jax.numpy.ones(3)

    def call():
        step = lambda c, _: (jax.numpy.sin(c) * x, c)
        return iso.grad(lambda x: jax.numpy.sum(iso.scan(step, x, length=LONG)[0]))(x)

    call()
    compiled = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, *_, **__: compiled.append(event) if "backend_compile" in event else None
    )
    try:
        call()
        assert compiled == []
        iso.vmap(lambda y: y * 17.25)(x)
        assert compiled  # the listener listens
    finally:
        jax.monitoring.clear_event_listeners()
