"""Every backend keeps the contract, by the tests that any backend can run."""

import inspect

import numpy as np
import pytest

from isomorph.backends.checks import CHECKS, LACKING
from isomorph.backends.composed import Backend
from isomorph.backends.contract import Contract
from isomorph.backends.numpy import special
from isomorph.dispatch import load

VERBS = [n for n, f in vars(Contract).items() if inspect.isfunction(f) and not n.startswith("_")]


@pytest.mark.parametrize("verb", CHECKS)
def test_the_contract_is_kept(backend, verb):
    CHECKS[verb](load(backend))


def test_every_verb_has_a_meaning_and_a_check():
    assert len(VERBS) == 15
    assert set(CHECKS) == set(LACKING) == set(VERBS)
    assert all(getattr(Contract, verb).__doc__ for verb in VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_that_is_not_supplied_is_seen(verb):
    """A backend that forgets one fails its check; one that says why passes."""
    forgets = {verb: getattr(Contract, verb)}
    if verb in ("compile", "signature"):  # NumPy's `jit` does without
        forgets["jit"] = Backend.jit
    without = lambda **more: type("Without", (type(load("numpy")),), forgets | more)(
        np, special, linalg=[np.linalg], fft=[np.fft]
    )
    with pytest.raises(NotImplementedError, match=f"backend numpy has no {verb}$"):
        CHECKS[verb](without())
    CHECKS[verb](without(lacks={verb: "nobody wrote it"}))


@pytest.mark.parametrize("verb", ["vjp", "stop_gradient", "to_numpy", "index_get", "quick"])
def test_a_verb_that_is_wrong_is_seen(verb):
    """Of each group one that gives what it should not."""
    wrong = {
        "vjp": lambda xp, func, leaves, *more: (*func(*leaves)[:1], lambda up: leaves, ()),
        "stop_gradient": lambda xp, x, preserve_type=True: x + 1,
        "to_numpy": lambda xp, x: np.asarray(x, np.float64),
        "index_get": lambda xp, x, index: x[index][::-1] if np.ndim(x[index]) else x[index],
        "quick": lambda xp, key, shape, dtype, normal: np.full(shape, 0.5, np.float32),
    }
    made = type("Wrong", (type(load("numpy")),), {verb: wrong[verb]})(
        np, special, linalg=[np.linalg], fft=[np.fft]
    )
    with pytest.raises((AssertionError, IndexError)):
        CHECKS[verb](made)
