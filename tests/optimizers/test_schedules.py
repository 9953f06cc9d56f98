"""Schedules of Python numbers and of arrays."""

import numpy as np
import pytest
from frameworks import optax, torch

import isomorph as iso
from oracles import kind_of, numpy_of

o = iso.optimizers
SCHEDULES = {
    "constant": lambda: o.constant(0.3),
    "cosine": lambda: o.cosine(0.3, 40, end=0.1),
    "warmup": lambda: o.warmup(0.3, 20, start=0.1),
    "warmup_cosine": lambda: o.warmup_cosine(0.3, 20, 50, start=0.1, end=0.05),
    "warmup_then": lambda: o.warmup(0.3, 20, then=lambda step: 0.3 / (1 + step)),
    "step": lambda: o.step(0.3, 7, factor=0.5),
    "multistep": lambda: o.step(0.3, [5, 10], factor=0.5),
    "piecewise": lambda: o.step(0.3, {5: 0.5, 10: 4.0}),
    "one_cycle": lambda: o.one_cycle(0.3, 60),
}


def rates_by_torch(make, steps):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.3)
    schedule = make(optimizer)
    rates = []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return rates


@pytest.mark.parametrize("name", SCHEDULES)
def test_an_array_gives_what_a_number_gives(name, backend, xp):
    schedule = SCHEDULES[name]()
    eager = [schedule(t) for t in range(70)]
    assert all(type(x) is float for x in eager)
    for t in range(0, 70, 3):
        for dtype in (xp.float64, xp.float32, xp.int32):
            got = schedule(xp.asarray(t, dtype=dtype))
            assert kind_of(got) == backend
            assert tuple(got.shape) == ()
            assert got.dtype == (xp.float64 if dtype == xp.float64 else xp.float32)
            digits = 1e-12 if dtype == xp.float64 else 1e-5
            np.testing.assert_allclose(float(numpy_of(got)), eager[t], rtol=digits, atol=1e-9)


def test_schedules_are_those_of_torch_and_optax():
    steps, rates = 60, torch.optim.lr_scheduler
    cases = [
        (o.cosine(0.3, 60, end=0.1), lambda p: rates.CosineAnnealingLR(p, 60, eta_min=0.1)),
        (o.step(0.3, 7, factor=0.5), lambda p: rates.StepLR(p, 7, gamma=0.5)),
        (o.step(0.3, [5, 10]), lambda p: rates.MultiStepLR(p, [5, 10])),
        (
            o.one_cycle(0.3, 61, rising=0.4, start=10.0, end=100.0),
            lambda p: rates.OneCycleLR(p, 0.3, total_steps=61, pct_start=0.4, div_factor=10.0,
                                       final_div_factor=100.0, cycle_momentum=False),
        ),
        (o.warmup(0.3, 20, start=0.1), lambda p: rates.LinearLR(p, 1 / 3, 1.0, 20)),
        (
            o.warmup(0.3, 20, start=0.1, then=o.step(0.3, 7)),
            lambda p: rates.SequentialLR(
                p, [rates.LinearLR(p, 1 / 3, 1.0, 20), rates.StepLR(p, 7)], [20]
            ),
        ),
    ]  # fmt: skip
    for ours, theirs in cases:
        got = [ours(t) for t in range(steps)]
        np.testing.assert_allclose(got, rates_by_torch(theirs, steps), rtol=1e-10, atol=1e-15)
    optaxs = [
        (o.warmup_cosine(0.3, 10, 40, end=0.01),
         optax.warmup_cosine_decay_schedule(0.0, 0.3, 10, 40, 0.01)),
        (o.cosine(0.3, 20, end=0.03), optax.cosine_decay_schedule(0.3, 20, alpha=0.1)),
    ]  # fmt: skip
    for ours, theirs in optaxs:
        # optax computes in float32 here
        values = [float(theirs(t)) for t in range(steps)]
        np.testing.assert_allclose([ours(t) for t in range(steps)], values, rtol=1e-5, atol=1e-7)


def test_all_schedules_compile(backend, xp):
    made = {name: make() for name, make in SCHEDULES.items()}
    run = iso.jit(lambda step: {name: schedule(step) for name, schedule in made.items()})
    for t in (0, 9, 33):
        got = run(xp.asarray(t, dtype=xp.float64))
        for name, rate in got.items():
            np.testing.assert_allclose(float(numpy_of(rate)), made[name](t), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: o.constant(-1.0), ValueError, "optimizers.constant: needed rate to be 0 or more"),
        (lambda: o.constant("0.1"), TypeError, "needed a number as rate, got str"),
        (lambda: o.cosine(0.1, 0), ValueError, "needed steps >= 1, got 0"),
        (lambda: o.cosine(0.1, 2.5), TypeError, "needed an int as steps, got float"),
        (lambda: o.warmup(0.1, 5, start=-1), ValueError, "needed start to be 0 or more"),
        (lambda: o.warmup(0.1, 5, then=0.1), TypeError, "needed a schedule as then, got float"),
        (lambda: o.warmup_cosine(0.1, 9, 9), ValueError, "needed more steps than warmup_steps"),
        (lambda: o.step(0.1, 0), ValueError, "needed at >= 1"),
        (lambda: o.step(0.1, {3: -1.0}), ValueError, "needed at[3] to be 0 or more"),
        (lambda: o.step(0.1, "3"), TypeError, "needed an int, ints or a dict as at, got str"),
        (lambda: o.one_cycle(0.1, 10, rising=1.5), ValueError, "needed the rate to rise"),
        (lambda: o.one_cycle(0.1, 10, start=0.0), ValueError, "needed start and end above 0"),
        (lambda: o.cosine(0.1, 5)(-1), ValueError, "needed step >= 0, got -1"),
        (lambda: o.cosine(0.1, 5)("1"), TypeError, "needed a step, got a str"),
    ],
)
def test_bad_schedules_say_what_was_needed(make, error, words):
    import re

    with pytest.raises(error, match=re.escape(words)):
        make()


def test_a_step_has_no_axes(backend, xp):
    with pytest.raises(TypeError, match="needed a number or a 0-d array as step, got .*shape"):
        o.cosine(0.1, 5)(xp.zeros(2))
