"""Edges compiled: what the cases of `edge_running` give as they are, they give compiled, in value
and gradient; an error of the values may become NaN, for a program cannot look at them.

`make test` compiles a drawn sample, several to a program; ISOMORPH_SEED=number draws it again.
"""

import os
import random
import warnings

import numpy as np
import pytest
from edge_running import CASES, differing, leaves, made, plain, shown, weighed

import isomorph as iso
from isomorph.dispatch import load
from oracles import numpy_of

COMPILED = pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)
SEED = int(os.environ.get("ISOMORPH_SEED", random.SystemRandom().randrange(10**6)))
SAMPLE = {"jax": 48, "tensorflow": 96, "torch": 32}
BATCH = 16


def measured(xp, number):
    """Values and gradients of a case, as one function of its arrays."""
    case = CASES[number]

    def scalar(*arrays):
        outs = leaves(case.call(xp, *arrays))
        return weighed(xp, outs), [xp.stop_gradient(y, False) for y in outs]

    def whole(*arrays):
        places = tuple(i for i, x in enumerate(arrays) if xp.is_float(x.dtype))
        outs = leaves(case.call(xp, *arrays))
        if case.slopes is False or not places or not any(xp.is_float(y.dtype) for y in outs):
            return [outs]
        (_, outs), grads = iso.value_and_grad(scalar, argnums=places, has_aux=True)(*arrays)
        return [outs, list(grads)]

    return whole


def run(func, *args):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return func(*args)


def eager(backend, number):
    """What a case gives as it is; None where that is an error."""
    xp = load(backend)
    arrays = [xp.from_numpy(x) for x in made(number, "float64")]
    try:
        return run(measured(xp, number), *arrays)
    except Exception:
        return None


def compiled(backend, numbers):
    xp = load(backend)
    funcs = {str(n): measured(xp, n) for n in numbers}
    inputs = {str(n): [xp.from_numpy(x) for x in made(n, "float64")] for n in numbers}
    return run(iso.jit(lambda inputs: {n: f(*inputs[n]) for n, f in funcs.items()}), inputs)


def check(backend, numbers):
    expected = {n: eager(backend, n) for n in numbers}
    numbers = [n for n in numbers if expected[n] is not None]
    found = compiled(backend, numbers)
    return [
        f"{CASES[n].name} [{CASES[n].edge}] {what}: as it is {shown(wanted)}\n    compiled {shown(got)}"
        for n in numbers
        for what, wanted, got in zip(("value", "grad"), map(arrays, expected[n]), map(arrays, found[str(n)]))
        if differing(wanted, got, "float64") is not None
    ]


def arrays(nest):
    return [np.array(numpy_of(plain(x))) for x in nest]


@pytest.mark.slow
@COMPILED
@pytest.mark.parametrize("number", range(len(CASES)))
def test_every_case_alone(backend, number):
    assert check(backend, [number]) == []
