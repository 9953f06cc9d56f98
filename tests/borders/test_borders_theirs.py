"""The frameworks' own transforms of our functions: JAX, TensorFlow and torch differentiate, map and
compile every example of the table, for every kind of input they take. Each result is right, or
raises as the ledger says; a silently wrong number fails.
"""

import importlib
import warnings
from fnmatch import fnmatch
from functools import cache

import numpy as np
import pytest
from border_ledger import patterns, raising, says
from border_transforms import THEIRS, Truth, check, inputs, total
from frameworks import NOT_INSTALLED

import isomorph as iso
from examples import TABLE, X, arrays_of, may, name_in, of_number, of_vector
from examples.measuring import GRADIENT, close, known, run, wanted, weighed
from examples.special import LONG
from isomorph.core.dispatch import load

FRAMEWORKS = ["jax", "tensorflow", "torch"]  # NumPy has no transforms
OWN = {"jax": "jax.numpy", "torch": "torch"}  # TensorFlow's namespace is entirely ours
ONE = np.array(0.7)
CASES = {
    **{case: of_vector for case, e in TABLE.items() if e.order and may(e, "borders")},
    **{f"{case}:0": of_number for case, e in TABLE.items()
       if e.order and e.each and may(e, "borders") and not case.startswith("xp.")},
}  # fmt: skip


def entry_of(case):
    return TABLE[case.removesuffix(":0")]


@cache
def truth_of(case):
    """Values by the example's own NumPy, and its gradient by differences."""
    entry, name = entry_of(case), case.removesuffix(":0")
    slopes = entry.slope and CASES[case](entry, entry.slope)
    slope = slopes and (lambda x: np.reshape(slopes(x), x.shape))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # NumPy about NaN
        return Truth(CASES[case](entry, known(name)), ONE if case.endswith(":0") else X, slope)


def found(xp, name):
    """The function of that name in a namespace, ours or a framework's own."""
    for part in name.removeprefix("xp.").split("."):
        xp = getattr(xp, part, None)
    return xp


def is_ours(backend, case):
    """Whether a case calls a function of ours, not just the framework's own."""
    if backend not in OWN or backend in NOT_INSTALLED or not case.startswith("xp."):
        return True
    name = name_in(case)
    return found(load(backend), name) is not found(importlib.import_module(OWN[backend]), name)


APPLYING = {backend: [c for c in CASES if is_ours(backend, c)] for backend in FRAMEWORKS}


def is_slow(backend, case, transform):
    """JAX compiles every operation, unless they are in a program; torch.compile takes a second."""
    long = case.removesuffix(":0").removeprefix("special.") in LONG and backend != "torch"
    apart = (backend, transform) == ("torch", "compile") and case not in TRACED
    return long or apart or (backend == "jax" and transform != "jit")


# rules break the graph but are used; the attention kernel asks for torch.func's levels
TRACED = ("custom_vjp", "checkpoint", "scaled_dot_product_attention", "xp.pow", "softmax")
GRID = [
    pytest.param(backend, case, transform, id=f"{backend}-{case}-{transform}",
                 marks=pytest.mark.slow if is_slow(backend, case, transform) else ())
    for backend in FRAMEWORKS
    for case in APPLYING[backend]
    for transform in THEIRS[backend]
    if transform != "compile" or not case.endswith(":0")
]  # fmt: skip


@pytest.mark.takes("TensorFlow traces and compiles it")
@pytest.mark.parametrize(("backend", "case", "transform"), GRID, indirect=["backend"])
def test_their_transforms_of_our_functions(backend, case, transform):
    """For every kind of input: right, or raises as the ledger says."""
    entry, truth = entry_of(case), truth_of(case)
    name = case.removesuffix(":0")
    func = CASES[case](entry, run(name))
    given = list(inputs(backend, transform, truth))
    for kind, x in given:
        words, what = raising(backend, case, transform), f"{case} under {transform} of a {kind}"
        try:
            with warnings.catch_warnings():  # raised by torch's import of its forward mode
                warnings.filterwarnings("ignore", message=".torch.jit.script")
                results = list(THEIRS[backend][transform](total(func), x, truth))
        except Exception as error:
            if words is None or not says(words, error):
                raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error
            continue
        assert words is None, (
            f"{what}: the ledger expects an error with {words!r}, but none came; remove it"
        )
        check(what, results)


# Layers and the like, all of whose arguments may be trained.
TRAINED = [name for name in CASES if name in TABLE and len(TABLE[name].shapes) > 1
           and not name.startswith(("xp.", "special.")) and not TABLE[name].each]  # fmt: skip
JAX = pytest.param("jax", marks=pytest.mark.slow)  # JAX has no variables


@pytest.mark.parametrize("backend", [JAX, "tensorflow", "torch"], indirect=True)
@pytest.mark.parametrize("name", TRAINED)
def test_every_argument_is_a_variable(backend, name):
    """Arguments are variables, leaves or, under JAX, NumPy arrays: the framework's own way back
    finds them.
    """
    arrays = arrays_of(TABLE[name])
    f = lambda leaves: weighed(iso.namespace(*leaves), run(name)(*leaves))
    close(gradients(backend, f, arrays), wanted(name)[1], GRADIENT)


def gradients(backend, f, values):
    """Gradients by the framework's own autodiff, with its own variables, of a function
    of a list.
    """
    if backend == "jax":
        import jax

        return jax.jit(jax.grad(f))(values)
    if backend == "torch":
        import torch

        leaves = [torch.nn.Parameter(torch.asarray(v)) for v in values]
        return torch.autograd.grad(f(leaves), leaves, materialize_grads=True)  # zeros if unused
    import tensorflow as tf

    leaves = [tf.Variable(v) for v in values]
    with tf.GradientTape() as tape:
        y = f(leaves)
    return [tf.convert_to_tensor(g) for g in tape.gradient(y, leaves, unconnected_gradients="zero")]


@pytest.mark.parametrize("backend", FRAMEWORKS, indirect=True)
def test_the_ledger_names_cells_that_there_are(backend):
    there = {
        f"{case.removesuffix(':0')} {transform}"
        for case in APPLYING[backend]
        for transform in THEIRS[backend]
    }
    unknown = [
        pattern
        for name, pattern in patterns()
        if name == backend and " iso." not in pattern
        if not any(fnmatch(cell, pattern) for cell in there)
    ]
    assert unknown == []
