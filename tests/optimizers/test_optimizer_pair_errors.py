"""What an optimizer refuses, and its messages."""

import re

import numpy as np
import pytest
from frameworks import torch

import isomorph as iso
from oracles import verbs_of

o = iso.optimizers
MAKE = [
    (lambda: o.sgd(-0.1), ValueError, "optimizers.sgd: needed lr to be 0 or more, got -0.1"),
    (lambda: o.sgd(float("nan")), ValueError, "needed lr to be 0 or more, got nan"),
    (lambda: o.sgd(0.1, momentum=1.0), ValueError, "needed momentum to be 0 or more and below 1"),
    (lambda: o.sgd(0.1, nesterov=True), ValueError, "nesterov needed a momentum above 0"),
    (lambda: o.sgd(0.1, weight_decay=-1), ValueError, "needed weight_decay to be 0 or more"),
    (lambda: o.adam(0.1, beta1=1.0), ValueError, "optimizers.adam: needed beta1 to be 0 or more"),
    (lambda: o.adam(0.1, beta2=-0.1), ValueError, "needed beta2 to be 0 or more and below 1"),
    (lambda: o.adam(0.1, epsilon=-1e-8), ValueError, "needed epsilon to be 0 or more"),
    (lambda: o.adam(0.1, beta1="x"), TypeError, "needed a number as beta1, got str"),
    (lambda: o.adamw(0.1, weight_decay=-1), ValueError, "optimizers.adamw: needed weight_decay"),
    (lambda: o.rmsprop(0.1, decay=1.5), ValueError, "optimizers.rmsprop: needed decay to be 0"),
    (lambda: o.lion(0.1, beta2=1.0), ValueError, "optimizers.lion: needed beta2 to be 0 or more"),
    (lambda: o.lars(0.1, trust_coefficient=-1), ValueError, "needed trust_coefficient to be 0"),
    (lambda: o.lamb(0.1, max_trust_ratio=-1), ValueError, "needed max_trust_ratio to be 0 or more"),
    (lambda: o.clip_by_value(0.0), ValueError, "needed a limit above 0, got 0.0"),
    (lambda: o.clip_by_norm(-1.0), ValueError, "needed limit to be 0 or more, got -1.0"),
    (lambda: o.clip_by_global_norm("1"), TypeError, "needed a number as limit, got str"),
    (lambda: o.add_decayed_weights(-1.0), ValueError, "needed rate to be 0 or more, got -1.0"),
    (lambda: o.scale("2"), TypeError, "needed a number or a 0-d array as factor, got a str"),
    (lambda: o.scale(float("inf")), ValueError, "needed a finite factor, got inf"),
    (lambda: o.scale_by_schedule(0.1), TypeError, "needed a schedule, got a float"),
    (lambda: o.ema(1.0), ValueError, "needed decay to be 0 or more and below 1, got 1.0"),
    (lambda: o.accumulate(o.sgd(0.1), every=0), ValueError, "needed every as an int >= 1"),
    (lambda: o.accumulate(0.1, every=2), TypeError, "needed an Optimizer, got a float"),
    (lambda: iso.chain(o.sgd(0.1), 3), TypeError, "needed an Optimizer as argument 1, got a int"),
    (lambda: o.masked(3, "*"), TypeError, "optimizers.masked: needed an Optimizer, got a int"),
]


@pytest.mark.parametrize(
    ("make", "error", "words"), MAKE, ids=[f"case{i}" for i in range(len(MAKE))]
)
def test_bad_numbers_are_refused_when_it_is_made(make, error, words):
    with pytest.raises(error, match=re.escape(words)):
        make()


OPTIMIZERS = [
    lambda: o.sgd(0.1, momentum=0.9), lambda: o.adam(0.1), lambda: o.adamw(0.1),
    lambda: o.rmsprop(0.1), lambda: o.lion(0.1), lambda: o.lars(0.1), lambda: o.lamb(0.1),
    lambda: o.clip_by_global_norm(1.0), lambda: o.clip_by_norm(1.0), lambda: o.clip_by_value(1.0),
    lambda: o.scale(2.0), lambda: o.scale_by_schedule(o.constant(1.0)), lambda: o.freeze("a"),
    lambda: o.masked(o.sgd(0.1), "a"), lambda: o.accumulate(o.sgd(0.1), every=2),
]  # fmt: skip


def test_gradients_must_be_like_the_parameters(backend, xp):
    v = {"a": xp.ones(2), "b": [xp.ones(3)]}
    for make in OPTIMIZERS:
        opt = make()
        state = opt.init(v)
        for grads, error, words in [
            ({"a": xp.ones(2)}, ValueError, "grads has no entry b/0"),
            ({**v, "c": xp.ones(1)}, ValueError, "grads has an entry c, which v does not have"),
            ({"a": xp.ones(2), "b": [xp.ones(4)]}, ValueError, "in grads at b/0, got shape (4,)"),
            ({"a": xp.ones(2), "b": [1.0]}, TypeError, "got float in grads at b/0"),
            ({"a": xp.ones(2), "b": [xp.ones(3, dtype=verbs_of(xp).dtype("float16"))]}, TypeError,
             "in grads at b/0, got "),
        ]:  # fmt: skip
            with pytest.raises(error, match=re.escape(words)):
                opt.update(grads, state, v)


def test_leaves_of_another_backend_are_named(backend, xp):
    v = {"a": xp.ones(2)}
    foreign = torch.ones(2) if backend != "torch" else np.ones(2, np.float32)
    for make in OPTIMIZERS:
        opt = make()
        with pytest.raises(TypeError, match=r"arrays of 2 backends in one call"):
            opt.update({"a": foreign}, opt.init(v), v)
    with pytest.raises(TypeError, match="apply_updates: arrays of 2 backends"):
        iso.apply_updates(v, {"a": foreign})
    state = o.sgd(0.1, momentum=0.9).init({"a": foreign})
    with pytest.raises(TypeError, match="optimizers.sgd: arrays of 2 backends"):
        o.sgd(0.1, momentum=0.9).update(v, state, v)


def test_parameters_must_be_floating_point_arrays(backend, xp):
    for make in (lambda: o.sgd(0.1), lambda: o.adam(0.1), lambda: o.ema(0.9)):
        with pytest.raises(TypeError, match="needed floating-point arrays, got .* in v at n"):
            make().init({"n": xp.asarray([1, 2])})
        with pytest.raises(TypeError, match="needed arrays, got str in v at n"):
            make().init({"n": "x"})
    z = {"z": xp.asarray([1.0 + 1.0j])}
    for make in (lambda: o.adam(0.1), lambda: o.rmsprop(0.1), lambda: o.lion(0.1)):
        with pytest.raises(TypeError, match="needed real floating-point arrays, got .* in v at z"):
            make().init(z)


def test_a_state_must_be_the_one_of_the_optimizer(backend, xp):
    v = {"a": xp.ones(2)}
    with pytest.raises(ValueError, match="a dict with step, mean, square, got a tuple"):
        o.adam(0.1).update(v, ((), ()), v)
    with pytest.raises(ValueError, match=r"a dict with trace, got \['step', 'mean', 'square'\]"):
        o.sgd(0.1, momentum=0.9).update(v, o.adam(0.1).init(v), v)
    with pytest.raises(ValueError, match="chain: needed the state made by init, a tuple of 2"):
        o.adam(0.1).update(v, (), v)
    with pytest.raises(ValueError, match="optimizers.sgd: trace has no entry b"):
        state = o.sgd(0.1, momentum=0.9).init(v)
        more = {**v, "b": xp.ones(1)}
        o.sgd(0.1, momentum=0.9).update(more, state, more)


def test_masks_must_fit(backend, xp):
    v = {"a": xp.ones(2), "b": {"w": xp.ones(1)}}
    for mask, error, words in [
        ("c*", ValueError, "mask 'c*' matches no path of v, which has a, b/w"),
        (["a", "w"], ValueError, "mask 'w' matches no path of v, which has a, b/w"),
        ({"a": True}, ValueError, "mask has no entry b/w"),
        ({"a": True, "b": {"w": 1}}, TypeError, "needed True or False as mask at b/w, got int"),
        ({"a": True, "b": True}, ValueError, "mask has no entry b/w"),
        (lambda path, x: None, TypeError, "needed True or False as mask at a, got NoneType"),
    ]:
        for make in (
            lambda mask: o.add_decayed_weights(0.1, mask=mask),
            lambda mask: o.adamw(0.1, mask=mask),
            lambda mask: o.masked(o.adam(0.1), mask),
            o.freeze,
        ):
            with pytest.raises(error, match=re.escape(words)):
                make(mask).init(v)


def test_rates_of_another_kind_are_refused(backend, xp):
    v = {"a": xp.ones(2)}
    for lr, error, words in [
        ("0.1", ValueError, "needed lr like v"),
        (lambda step: -1.0, ValueError, "needed lr to be 0 or more, got -1.0"),
        (lambda step: "x", ValueError, "needed lr like v"),
        (xp.ones(3), ValueError, "got shape (3,)"),
        (torch.ones(()) if backend != "torch" else np.ones(()), TypeError, "arrays of 2 backends"),
    ]:
        opt = o.sgd(lr)
        with pytest.raises(error, match=re.escape(words)):
            opt.update(v, opt.init(v), v)
