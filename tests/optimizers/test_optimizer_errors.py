"""Bad input to the optimizers: each error names the function, what was needed and what came."""

import math

import numpy as np
import pytest

import isomorph as iso
from isomorph import (
    adam_step,
    adam_update,
    gradient_descent_update,
    lamb_update,
    lars_update,
    optimizer_update,
)

from .optimizer_oracles import ours_adam, ours_descent, ours_lamb, ours_lars, ours_optimizer


def test_nests_that_differ_are_told_apart_by_key_chain(backend, xp):
    x = xp.ones(2)
    w = {"layers": [{"w": x, "b": x}]}
    for update, name, grad in [
        (ours_optimizer, "optimizer_update", "effective_grad"),
        (ours_descent, "gradient_descent_update", "dcdw"),
        (ours_adam, "adam_update", "dcdw"),
        (ours_lars, "lars_update", "dcdw"),
        (ours_lamb, "lamb_update", "dcdw"),
    ]:
        for lacking in ({"w": x}, {"w": x, "b": None}):
            with pytest.raises(ValueError, match=f"^{name}: {grad} has no entry layers/0/b$"):
                update(w, {"layers": [lacking]}, 0.1, w, w, 1)
        for more in ([{"w": x, "b": x, "c": x}], [{"w": x, "b": x}, x]):
            place = "layers/0/c" if len(more) == 1 else "layers/1"
            message = f"^{name}: {grad} has an entry {place}, which w does not have$"
            with pytest.raises(ValueError, match=message):
                update(w, {"layers": more}, 0.1, w, w, 1)
        with pytest.raises(ValueError, match=f"^{name}: lr has no entry layers/0/w$"):
            update(w, w, {"layers": [{"b": 0.1}]}, w, w, 1)
    with pytest.raises(ValueError, match="mw .*layers/0/b.*layers/0/c"):
        adam_step(w, {"layers": [{"w": x, "c": x}]}, w, 1)
    with pytest.raises(ValueError, match="vw_tm1 has no entry layers/0/b, and.*layers/0/b/deep"):
        adam_update(w, w, 0.1, w, {"layers": [{"w": x, "b": {"deep": x}}]}, 1)
    with pytest.raises(ValueError, match=r"^lars_update: needed dcdw like w, .*\(.*\[.*"):
        lars_update((x, x), [x, x], 0.1)
    with pytest.raises(ValueError, match="^optimizer_update: needed effective_grad like w"):
        optimizer_update(x, [x], 0.1)


def test_shapes_that_differ_are_named(backend, xp):
    w, g = {"a": [xp.ones((2, 3))]}, {"a": [xp.ones((3,))]}
    message = r"^adam_update: needed shape \(2, 3\) like w in dcdw at a/0, got shape \(3,\)$"
    with pytest.raises(ValueError, match=message):
        adam_update(w, g, 0.1, w, w, 1)
    with pytest.raises(ValueError, match=r"vw at a/0, got shape \(3,\)"):
        adam_step(w, w, g, 1)
    with pytest.raises(ValueError, match=r"needed shape \(2, 3\) like w in dcdw, got shape \(3,\)"):
        lars_update(w["a"][0], g["a"][0], 0.1)
    with pytest.raises(
        ValueError, match=r"number, a 0-d array or shape \(2, 3\) as lr at a/0, got shape \(3,\)"
    ):
        lamb_update(w, w, xp.ones(3), w, w, 1)


def test_bad_numbers_raise(backend, xp):
    x = xp.ones(2)
    step = lambda t, **options: adam_step(x, x, x, t, **options)
    for t in (0, -3, np.int64(0)):
        message = f"^adam_step: needed step >= 1, got {int(t)}$"
        with pytest.raises(ValueError, match=message):
            step(t)
    for t, got in ((1.0, "float"), ("1", "str"), (None, "NoneType"), (x, r"shape \(2,\)")):
        message = f"^adam_step: needed an int or a 0-d array as step, got {got}$"
        with pytest.raises(TypeError, match=message):
            step(t)
    with pytest.raises(ValueError, match=r"^lars_update: needed lr to be 0 or more, got -0\.1$"):
        lars_update(x, x, -0.1)
    with pytest.raises(ValueError, match=r"needed lr at a to be 0 or more, got -1\.0$"):
        optimizer_update({"a": x}, {"a": x}, {"a": -1})
    with pytest.raises(ValueError, match="needed lr to be 0 or more, got nan"):
        optimizer_update(x, x, math.nan)
    with pytest.raises(TypeError, match="^optimizer_update: needed numbers or arrays as lr.*str"):
        optimizer_update({"a": x}, {"a": x}, {"a": "fast"})
    with pytest.raises(ValueError, match=r"needed beta1 to be 0 or more and below 1, got 1\.0$"):
        step(1, beta1=1.0)
    with pytest.raises(ValueError, match=r"needed epsilon to be 0 or more, got -1\.0$"):
        step(1, epsilon=-1.0)
    with pytest.raises(TypeError, match="^lars_update: needed a number as decay_lambda, got list$"):
        lars_update(x, x, 0.1, decay_lambda=[0.1])
    with pytest.raises(ValueError, match="^lamb_update: needed max_trust_ratio to be 0 or more"):
        lamb_update(x, x, 0.1, x, x, 1, max_trust_ratio=-1.0)


def test_leaves_that_are_no_floating_arrays_raise(backend, xp):
    x, n = xp.ones(2, dtype=xp.float32), xp.ones(2, dtype=xp.int32)
    with pytest.raises(TypeError, match="^optimizer_update: needed arrays, got float in w at a$"):
        optimizer_update({"a": 1.0}, {"a": x}, 0.1)
    with pytest.raises(TypeError, match="^adam_step: needed arrays, got str in vw$"):
        adam_step(x, x, "v", 1)
    with pytest.raises(TypeError, match="needed floating-point arrays, got .*int32.* in w at 1$"):
        lars_update([x, n], [x, n], 0.1)
    with pytest.raises(TypeError, match="needed .*float32.* like w in dcdw at 0, got .*float64"):
        gradient_descent_update([x], [xp.astype(x, xp.float64)], 0.1)


def test_arrays_of_two_frameworks_raise(backend, xp):
    other = "torch" if backend != "torch" else "numpy"
    with iso.use_backend(other):
        foreign = iso.ones(2)
        number, count = iso.asarray(0.1), iso.asarray(1)
    x = xp.ones(2)
    both = f"(?=.*{backend})(?=.*{other})"
    for bad in (
        lambda: optimizer_update([x], [foreign], 0.1),
        lambda: optimizer_update([x], [x], number),
        lambda: optimizer_update([x], [x], [number]),
        lambda: adam_step(x, x, foreign, 1),
        lambda: adam_step(x, x, x, count),
    ):
        with pytest.raises(TypeError, match=f"^(optimizer_update|adam_step): {both}"):
            bad()
