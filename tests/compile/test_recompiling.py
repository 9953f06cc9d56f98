"""`iso.jit` says in the log, at level DEBUG, why it compiles: what differs from its programs."""

import logging
from collections import Counter
from functools import partial

import numpy as np
import pytest

import isomorph as iso
from isomorph.compile import recompiling

X = np.array([0.5, 1.5, -2.0])
COMPILED = pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)


@pytest.fixture
def said(caplog, monkeypatch):
    monkeypatch.setattr(recompiling, "MADE", Counter())  # not those of other tests
    caplog.set_level(logging.DEBUG, "isomorph")

    def since():
        found = [r.getMessage() for r in caplog.records if r.name == "isomorph"]
        caplog.clear()
        return [line for line in found if ": compiled " in line and " in " not in line]

    return since


@COMPILED
def test_what_is_new_about_a_program(backend, xp, said):
    def scaled(p, k, power=1):
        return p["x"] ** power * k

    run = iso.jit(scaled, static="power")
    x = xp.asarray(X)
    head = f"isomorph: compiled scaled for {backend}: "
    run({"x": x}, 2.0)
    assert said() == [head + "first program of this iso.jit"]
    run({"x": x + 1}, 3.0)  # other values: the same program
    assert said() == []
    run({"x": x[:2]}, 2.0)
    assert said() == [head + "program 2 of this iso.jit: p/x is float64 [2], was float64 [3]"]
    run({"x": xp.asarray(X, dtype=xp.float32)}, 2.0)
    assert said() == [head + "program 3 of this iso.jit: p/x is float32 [3], was float64 [3]"]
    run({"x": x}, 2.0, power=2)
    assert said() == [head + "program 4 of this iso.jit: power is new, static 2 by keyword"]
    run({"x": x}, 2.0)
    assert said() == []


@pytest.mark.parametrize("backend", ["jax", "tensorflow"], indirect=True)  # torch compiles for long
def test_other_reasons(backend, xp, said):
    x = xp.asarray(X)
    run = iso.jit(lambda m, x: m(x))
    with iso.use_backend(backend, dtype="float64"), iso.use_key(0):
        model = iso.Dropout(0.5)
    run(model.train(), x)
    assert said()[0].endswith("first program of this iso.jit")
    run(model.eval(), x)
    assert "a module has other settings" in said()[0]
    with iso.use_backend(backend):
        run(model, x)
    assert said()[0].endswith(f"iso.use_backend is new, {backend}")
    assert said() == []


@pytest.mark.parametrize("backend", ["jax", "tensorflow"], indirect=True)
def test_a_jit_in_a_loop_is_told(backend, xp, said):
    for turn in range(3):
        iso.jit(lambda x: x * 2)(xp.asarray(X))
        (line,) = said()
        assert ("call it once" in line) == (turn > 0)


class Doubled:
    def __call__(self, x):
        return x * 2


@pytest.mark.parametrize("backend", ["jax", "tensorflow"], indirect=True)
def test_only_the_same_code_is_blamed(backend, xp, said):
    x = xp.asarray(X)
    first, second = (lambda x: xp.sum(x * x)), (lambda x: xp.sum(abs(x)))
    other = [iso.grad(first), iso.grad(second)]
    same = [partial(lambda k, x: x * k, k) for k in range(2)], [Doubled(), Doubled()]
    for pair, blamed in ((other, False), *((pair, True) for pair in same)):
        lines = []
        for func in pair:
            iso.jit(func)(x)
            lines += said()
        assert "call it once" not in lines[0]
        assert ("iso.jit was called once before for the same code" in lines[1]) == blamed
    for loss in (lambda v, x: xp.sum(v * x), lambda v, x: xp.sum(v + x)):
        step = iso.train_step(loss, iso.optimizers.sgd(0.1))
        step(step.init(x), x)
        assert not any("call it once" in line for line in said())


@pytest.mark.parametrize("backend", ["jax", "tensorflow"], indirect=True)
def test_a_new_module_trains_already(backend, xp, said):
    x = xp.asarray(X)
    with iso.use_backend(backend, dtype="float64"), iso.use_key(0):
        model = iso.Dropout(0.5)
    run = iso.jit(lambda m, x: m(x))
    run(model, x)
    assert len(said()) == 1
    run(model.train(), x)
    assert said() == []


@COMPILED
def test_a_part_of_another_program_and_a_failure_are_not_told(backend, xp, said):
    inner = iso.jit(lambda x: x * 2)
    outer = iso.jit(lambda x: inner(x) + 1)
    outer(xp.asarray(X))
    (line,) = said()
    assert line.startswith(f"isomorph: compiled <lambda> for {backend}: first program")
    broken = iso.jit(lambda x: x if x[0] > 0 else -x)
    with pytest.raises(TypeError):
        broken(xp.asarray(X))
    assert said() == []


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
def test_numpy_compiles_nothing(backend, said):
    iso.jit(np.sum)(X)
    assert said() == []
