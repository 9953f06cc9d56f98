"""The calls of `jit`: donated arguments, all kinds of numbers, and the warning about slow
compilation.
"""

import functools
import logging
import threading
import time

import numpy as np
import pytest

import isomorph as iso
from isomorph.compile import slow_compilation
from isomorph.compile.slow_compilation import PATIENCE
from oracles import kind_of, numpy_of

X = np.array([0.5, 1.5, -2.0])
COMPILED = pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)


def own(xp, x):
    """An array that owns its memory: torch would otherwise write into NumPy's."""
    return xp.asarray(np.array(x))


@pytest.mark.parametrize("donate", ["w", 0, ["w"], (0,)])
def test_donated_arguments(backend, xp, donate):
    step = iso.jit(lambda w, g: w - 0.5 * g, donate=donate)
    w, g = own(xp, X), xp.asarray(X + 1)
    new = step(w, g)
    np.testing.assert_allclose(numpy_of(new), X - 0.5 * (X + 1), rtol=1e-15)
    np.testing.assert_allclose(numpy_of(g), X + 1)
    if backend == "jax":  # the result took over its memory
        with pytest.raises(RuntimeError, match="Array has been deleted"):
            numpy_of(w)
    elif backend == "torch":
        assert w.data_ptr() == new.data_ptr()
    else:
        np.testing.assert_allclose(numpy_of(w), X)
    new = step(w=new, g=g)
    np.testing.assert_allclose(numpy_of(new), X - (X + 1), rtol=1e-15, atol=1e-15)


@pytest.mark.takes("torch compiles C++")
@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_what_is_shown_is_not_written_to(backend, xp):
    def func(a, b, c):
        # a is returned, as a view and whole; b serves two results; c matches no result's shape
        return {"passed": a, "view": a[1:], "one": b + 1, "two": b * 10, "sum": xp.sum(c)}

    a, b, c = own(xp, X), xp.asarray(X + 1), xp.asarray(np.ones((2, 2)))
    out = iso.jit(func, donate=(0, 1, 2))(a, b, c)
    np.testing.assert_allclose(numpy_of(out["passed"]), X)
    np.testing.assert_allclose(numpy_of(out["view"]), X[1:])
    np.testing.assert_allclose(numpy_of(out["one"]), X + 2)
    np.testing.assert_allclose(numpy_of(out["two"]), (X + 1) * 10)
    assert out["passed"].data_ptr() == a.data_ptr()
    assert b.data_ptr() in (out["one"].data_ptr(), out["two"].data_ptr())
    assert out["one"].data_ptr() != out["two"].data_ptr()
    np.testing.assert_allclose(numpy_of(c), 1.0)
    assert float(out["sum"]) == 4.0


def test_donated_arguments_that_change_places(backend, xp):
    swap = iso.jit(lambda a, b: (b, a), donate=(0, 1))
    both = iso.jit(lambda a, b: (b + 1, a + 2), donate=(0, 1))
    a, b = swap(own(xp, X), xp.asarray(X * 2))
    np.testing.assert_allclose(numpy_of(a), X * 2)
    np.testing.assert_allclose(numpy_of(b), X)
    a, b = both(a, b)  # each result goes where the other one's operand is
    np.testing.assert_allclose(numpy_of(a), X + 1)
    np.testing.assert_allclose(numpy_of(b), X * 2 + 2)


@pytest.mark.takes("torch compiles C++")
@pytest.mark.parametrize("which", ["a repeated row", "turned", "two arguments", "given away"])
@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_memory_that_cannot_be_given_away(backend, xp, which):
    step, w = iso.jit(lambda w, g: w - g, donate="w"), own(xp, X)
    if which == "a repeated row":
        row = xp.asarray([1.0]).expand(3)
        np.testing.assert_allclose(numpy_of(step(row, w)), 1 - X)
        np.testing.assert_allclose(numpy_of(row), 1.0)
    elif which == "turned":
        turned = xp.asarray(np.outer(X, X + 1)).T
        wanted = np.outer(X + 1, X) - np.eye(3)
        np.testing.assert_allclose(numpy_of(step(turned, xp.asarray(np.eye(3)))), wanted)
    elif which == "two arguments":
        with pytest.raises(ValueError, match="jit: .*donated .*share no memory"):
            step(w, w)
    else:
        step(w, own(xp, X))
        with pytest.raises(ValueError, match=r"shape \[3\] .*; pass a clone"):
            step(w, w)


@pytest.mark.takes("torch compiles C++")
@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_a_way_back_finds_donated_tensors_as_they_were(backend, xp):
    step = iso.jit(lambda w, g: w * w * g, donate="w")
    w = own(xp, X).requires_grad_()
    out = step(w, xp.asarray(X + 1))
    np.testing.assert_allclose(numpy_of(w), X)
    out.sum().backward()
    np.testing.assert_allclose(numpy_of(w.grad), 2 * X * (X + 1))


@pytest.mark.parametrize("backend", ["tensorflow"], indirect=True)
def test_donated_variables_hold_the_results(backend, xp):
    import tensorflow as tf

    def func(w, n, kept, g):
        return {"w": w - g, "n": n + 1, "kept": kept, "was": w * 2, "sum": xp.sum(g)}

    step = iso.jit(func, donate=(0, 1, 2))
    w, n, kept = tf.Variable(X), tf.Variable(3, dtype=tf.uint32), tf.Variable(X * 5)
    for times in (1, 2, 3):
        out = step(w, n, kept, xp.asarray(X + 1))
        assert out["w"] is w
        assert out["n"] is n
        assert out["kept"] is kept
        np.testing.assert_allclose(w.numpy(), X - times * (X + 1), rtol=1e-14, atol=1e-14)
        np.testing.assert_allclose(
            numpy_of(out["was"]), 2 * (X - (times - 1) * (X + 1)), rtol=1e-14, atol=1e-14
        )
        assert n.numpy() == 3 + times
        np.testing.assert_array_equal(kept.numpy(), X * 5)
    other = tf.Variable(X * 7)  # the same program, another variable
    assert step(other, n, kept, tf.Variable(X))["w"] is other
    np.testing.assert_allclose(other.numpy(), X * 6)
    with pytest.raises(ValueError, match=r"jit: .*donated variable .*not also"):
        step(w, n, kept, w)
    with tf.GradientTape() as tape:  # the backward pass needs the old value
        out = step(w, n, kept, xp.asarray(X))["was"]
    np.testing.assert_allclose(tape.gradient(out, w), np.full(3, 2.0))


@pytest.mark.parametrize("backend", ["tensorflow"], indirect=True)
def test_variables_that_change_places(backend, xp):
    import tensorflow as tf

    a, b = tf.Variable(X), tf.Variable(X * 2)
    both = iso.jit(lambda a, b: (b + 1, a + 2), donate=(0, 1))
    one, two = both(a, b)
    np.testing.assert_allclose(numpy_of(one), X * 2 + 1)
    np.testing.assert_allclose(numpy_of(two), X + 2)
    assert {id(one), id(two)} == {id(a), id(b)}


@pytest.mark.parametrize("backend", ["tensorflow"], indirect=True)
def test_a_variable_is_one_result_only(backend, xp):
    import tensorflow as tf

    twice = iso.jit(lambda a: (a, a), donate=0)
    a = tf.Variable(X)
    one, two = twice(a)
    assert one is a
    assert two is not a
    np.testing.assert_array_equal(numpy_of(two), X)
    pair = iso.jit(lambda a, b: (a, a), donate=(0, 1))
    b = tf.Variable(X * 3)
    one, two = pair(*pair(a, b))
    assert one is a
    assert two is b
    np.testing.assert_array_equal(b.numpy(), X)


def test_donated_beside_static_arguments(backend, xp):
    func = lambda how, keep, w: w + keep if how == "plus" else w - keep
    step = iso.jit(func, static=0, donate=2)
    keep, w = xp.asarray(X), xp.asarray(X * 3)
    np.testing.assert_allclose(numpy_of(step("plus", keep, w)), X * 4)
    # the argument after the static one is not donated
    np.testing.assert_allclose(numpy_of(keep), X)
    if backend == "jax":
        assert w.is_deleted()
    with pytest.raises(ValueError, match="jit: donate .*arrays, got .*static .*'how'"):
        iso.jit(func, static="how", donate=("how",))
    with pytest.raises(ValueError, match="jit: donate .*'v'.* arguments are how, keep"):
        iso.jit(func, donate="v")
    with pytest.raises(TypeError, match="jit: donate .*positions or names.*, got"):
        iso.jit(func, donate=1.5)
    with pytest.raises(ValueError, match="jit: donate .*positions .*, got -1"):
        iso.jit(func, donate=-1)


def test_a_static_argument_that_is_only_a_keyword(backend, xp):
    compiled = iso.jit(lambda x, *, how: x * 2 if how == "twice" else x, static="how")
    np.testing.assert_allclose(numpy_of(compiled(xp.asarray(X), how="twice")), X * 2)
    np.testing.assert_allclose(numpy_of(compiled(xp.asarray(X), how="once")), X)


@COMPILED
def test_no_value_of_a_number_compiles_anew(backend, xp):
    runs = []

    def func(x, p, *, flag):
        runs.append(1)
        return xp.where(flag, x * p["scale"], xp.astype(p["n"], x.dtype) + x)

    compiled = iso.jit(func)
    for n, scale, flag in ((1, 0.5, True), (2, -3.0, False), (-7, 0.0, True)):
        got = compiled(xp.asarray(X), {"n": n, "scale": scale}, flag=flag)
        np.testing.assert_allclose(numpy_of(got), X * scale if flag else X + n, rtol=1e-15)
    assert len(runs) == 1


@COMPILED
def test_while_and_loops_over_a_value_raise_too(backend, xp):
    def until(x):
        while xp.sum(x) < 10:
            x = x * 2
        return x

    with pytest.raises(TypeError):
        iso.jit(until)(xp.asarray(X + 3))
    with pytest.raises(TypeError):
        iso.jit(lambda x: x * (1 if xp.all(x > 0) and x[0] > 1 else 2))(xp.asarray(X))


def slow(x, seconds=0.3):
    time.sleep(seconds)
    return x * 2


def said_by(caplog):
    return [r.getMessage() for r in caplog.records if r.name == "isomorph"]


@COMPILED
def test_a_long_compilation_says_so_while_it_lasts(backend, xp, caplog, monkeypatch):
    monkeypatch.setattr(slow_compilation, "TIMES", {})  # not those of earlier runs
    heard = []

    def listening(x):
        for _ in range(200):  # during tracing: wait for the first warning
            if said_by(caplog):
                break
            time.sleep(0.05)
        heard.append(list(said_by(caplog)))
        return x * 2

    token = PATIENCE.set(0.05)
    try:
        compiled = iso.jit(listening)
        compiled(xp.asarray(X))
        first, *more, last = said_by(caplog)
        assert heard[0][0] == first
        assert first == f"isomorph: still compiling listening for {backend} after 0.05 s"
        # a line for each doubling of the time, however long it took
        assert more == [
            f"isomorph: still compiling listening for {backend} after {0.05 * 2**i:.3g} s"
            for i in range(1, len(more) + 1)
        ]
        assert last.startswith(f"isomorph: compiled listening for {backend} in ")
        levels = {r.levelno for r in caplog.records if r.name == "isomorph"}
        assert levels == {logging.WARNING}  # visible without any logging setup
        seconds = last.partition(" in ")[2]
        compiled(xp.asarray(X + 1))  # already compiled: no message
        assert said_by(caplog)[-1] == last
        caplog.clear()
        compiled(xp.asarray(X[:1]))  # another program of the same function
        assert said_by(caplog)[0] == f"{first}; it took {seconds} last time"
    finally:
        PATIENCE.reset(token)
    assert not [t for t in threading.enumerate() if t.name.startswith("isomorph compiling")]


def test_quick_and_silenced_compilations_say_nothing(backend, xp, caplog):
    iso.jit(functools.partial(slow, seconds=0.0))(xp.asarray(X))
    token = PATIENCE.set(0.05)
    logging.getLogger("isomorph").setLevel("ERROR")
    try:
        out = iso.jit(slow)(xp.asarray(X))
    finally:
        logging.getLogger("isomorph").setLevel("NOTSET")
        PATIENCE.reset(token)
    np.testing.assert_allclose(numpy_of(out), X * 2)
    assert said_by(caplog) == []


@COMPILED
def test_a_compilation_that_fails_says_so(backend, xp, caplog):
    def broken(x):
        time.sleep(0.2)
        raise KeyError("mine")

    token = PATIENCE.set(0.05)
    try:
        with pytest.raises(KeyError, match="mine"):
            iso.jit(broken)(xp.asarray(X))
    finally:
        PATIENCE.reset(token)
    assert "gave up compiling broken" in said_by(caplog)[-1]
    assert not [t for t in threading.enumerate() if t.name.startswith("isomorph compiling")]


def test_compiled_functions_within_one_another_speak_once(backend, xp, caplog):
    inner = iso.jit(slow)

    def outer(x):
        return inner(x) + 1

    token = PATIENCE.set(0.05)
    try:
        out = iso.jit(outer)(xp.asarray(X))
    finally:
        PATIENCE.reset(token)
    np.testing.assert_allclose(numpy_of(out), X * 2 + 1)
    words = [word for word in said_by(caplog) if "still" in word]
    assert bool(words) == (backend != "numpy")
    assert len(set(words)) == len(words)  # one line for each time
    assert all("outer" in word for word in words)


def test_nests_of_one_form_with_other_arrays(backend, xp):
    """Programs for dicts, lists and tuples are found by the types of what is in them."""
    scaled = iso.jit(lambda nest, y: [x * y for x in (nest["a"], nest["b"])])
    first = iso.jit(lambda pair: pair[0])
    two = np.asarray(2.0, X.dtype)
    for _ in range(2):
        for a, b, y, kind in (
            (xp.asarray(X), xp.asarray(X + 1), xp.asarray(two), backend),
            (X, X + 1, two, "numpy"),
            (xp.asarray(X), 3.0, 2.0, backend),
            (X, 3.0, 2.0, "numpy"),
            (3.0, xp.asarray(X), 2.0, backend),
        ):
            found = scaled({"a": a, "b": b}, y)
            assert {kind_of(x) for x in found if not isinstance(x, float)} == {kind}
            for x, want in zip(found, (a, b)):
                np.testing.assert_allclose(numpy_of(x), numpy_of(want) * 2, rtol=1e-6)
        if backend != "numpy":
            with pytest.raises(TypeError, match="numpy"):
                scaled({"a": xp.asarray(X), "b": X}, 2.0)
        for pair in ((xp.asarray(X), 1.0), [xp.asarray(X), 1.0], ([xp.asarray(X)], 1.0)):
            out = first(pair)
            assert isinstance(out, list) == isinstance(pair[0], list)
            np.testing.assert_allclose(numpy_of(out[0] if isinstance(out, list) else out), X)
        with pytest.raises(TypeError, match="needed arrays and numbers, got a str"):
            first((xp.asarray(X), "text"))
