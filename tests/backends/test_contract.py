"""Every backend passes the contract checks that any backend can run."""

import inspect

import numpy as np
import pytest

from isomorph.backends.checks import CHECKS, LACKING
from isomorph.backends.composed import Backend
from isomorph.backends.contract import Contract
from isomorph.backends.numpy import special
from isomorph.core.dispatch import load

VERBS = [n for n, f in vars(Contract).items() if inspect.isfunction(f) and not n.startswith("_")]


def complaint(check, xp):
    """The failure message of a check on a backend, or "" if it passes."""
    try:
        check(xp)
    except AssertionError as error:
        return f"it says {error}"
    return ""


@pytest.mark.parametrize("verb", CHECKS)
def test_the_contract_is_kept(backend, verb):
    assert complaint(CHECKS[verb], load(backend)) == ""


def test_every_verb_has_a_meaning_and_a_check():
    assert len(VERBS) == 15
    assert set(CHECKS) - {"vocabulary"} == set(LACKING) == set(VERBS)
    assert all(getattr(Contract, verb).__doc__ for verb in VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_that_is_not_supplied_is_seen(verb):
    """A backend that lacks a verb fails its check. One that gives a reason passes."""
    forgets = {verb: getattr(Contract, verb)}
    if verb in ("compile", "signature"):  # NumPy's own `jit` does not use them
        forgets["jit"] = Backend.jit
    without = lambda **more: type("Without", (type(load("numpy")),), forgets | more)(
        np, special, linalg=[np.linalg], fft=[np.fft]
    )
    with pytest.raises(NotImplementedError, match=f"backend numpy has no {verb}$"):
        CHECKS[verb](without())
    CHECKS[verb](without(lacks={verb: "nobody wrote it"}))


WRONG = {  # one wrong implementation of each verb
    "vjp": lambda xp, func, leaves, *more: (
        *func(*leaves)[:1],
        lambda up: leaves,
        func(*leaves)[1],
    ),
    "custom_call": lambda xp, rule, arrays: (arrays[0] * arrays[0],),
    "stop_gradient": lambda xp, x, preserve_type=True: x + 1,
    "is_watched": lambda xp, x: False,
    "compile": lambda xp, func, arrays, given: func,
    "signature": lambda xp, arrays: (),
    "is_tracing": lambda xp, arrays: True,
    "to_numpy": lambda xp, x: np.asarray(x, np.float64),
    "from_numpy": lambda xp, x, device=None: np.asarray(x).astype(np.float32),
    "at_hand": lambda xp, x: x + 1,
    "devices": lambda xp: ["cpu", "cpu"],
    "index_get": lambda xp, x, index: x[index][::-1] if np.ndim(x[index]) else x[index],
    "index_update": lambda xp, x, index, value, how: x.__setitem__(index, value) or x,
    "narrow": lambda xp, name: np.float16,
    "quick": lambda xp, key, shape, dtype, normal: np.full(shape, 0.5, np.float32),
}


@pytest.mark.parametrize("verb", WRONG)
def test_a_verb_that_is_wrong_is_seen(verb):
    wrong = {verb: WRONG[verb]}
    if verb in ("compile", "signature"):  # NumPy's own `jit` does not use them
        wrong |= {"jit": Backend.jit, "compile": WRONG["compile"]}
    made = type("Wrong", (type(load("numpy")),), wrong)(
        np, special, linalg=[np.linalg], fft=[np.fft]
    )
    assert complaint(CHECKS[verb], made)


def test_a_vocabulary_that_lacks_a_word_is_seen():
    made = type(load("numpy"))(np, linalg=[np.linalg], fft=[np.fft])  # lacks `erf`
    assert "has no erf" in complaint(CHECKS["vocabulary"], made)
