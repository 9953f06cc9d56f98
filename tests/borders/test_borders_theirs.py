"""The frameworks' own transforms of our functions: JAX, TensorFlow and torch differentiate, map and
compile every public function that computes with arrays, for every kind of input they take. Each
result is right, or raises as the ledger says; a silently wrong number fails.

`make test` draws some cells of each function by a seed, `make test-all` runs all of them.
"""

import importlib
import random
import warnings
from fnmatch import fnmatch
from functools import cache

import border_modules
import border_names
import border_topics
import numpy as np
import pytest
from border_functions import GRADIENTS, SCALARS, VECTORS, X
from border_ledger import patterns, raising, says
from border_transforms import SEED, THEIRS, Truth, check, inputs, total
from frameworks import NOT_INSTALLED

import isomorph as iso
from isomorph.dispatch import load
from isomorph.frontends.jax import lax
from oracles import central_gradient

FRAMEWORKS = ["jax", "tensorflow", "torch"]  # NumPy has no transforms
OWN = {"jax": "jax.numpy", "torch": "torch"}  # TensorFlow's namespace is entirely ours
DRAWS = {"jax": 1, "tensorflow": 1, "torch": 3}  # cells drawn per case; JAX compiles each
SLOW = {("torch", "compile")}  # a second each; some are drawn below
ONE = np.array(0.7)


def names_of(case):
    """The public name that a case calls."""
    word = case.removesuffix(":0")
    known = {*public(), *border_names.all_names()}
    word = word.removeprefix("xp.")
    while word not in known:  # variants such as gelu_approximate, at.get
        word = word[: max(word.rfind("_"), word.rfind("."))]
    return word


def is_of(module, thing):
    """Whether a module itself defines a function that it exports."""
    return getattr(thing, "__module__", None) == module.__name__ and thing.__name__[0] != "_"


@cache
def public():
    """Every public function and class."""
    return (
        *(name for name in iso.__all__ if callable(getattr(iso, name))),
        *(f"lax.{name}" for name, thing in vars(lax).items() if is_of(lax, thing)),
        *(f"random.{name}" for name in iso.random.__all__),
        *(f"special.{name}" for name in iso.special.__all__),
        *(f"linalg.{name}" for name in iso.linalg.__all__),
    )


LEFT_OUT = {
    "a type, or an error": [
        "CheckpointError", "Fit", "NonFiniteError", "Optimizer", "State", "TrainState",
    ],
    "creates arrays, or sets defaults": [
        "arange", "eye", "full", "linspace", "ones", "zeros", "use_backend", "use_key", "backends",
        "local_window_mask", "random.key",
    ],
    "differentiates and compiles by itself": [
        "check_gradients", "evaluate", "fit", "predict", "train_step",
    ],
    "leaves the framework: see test_borders_leaving.py": ["convert", "to_numpy"],
    "tells where an array is": ["device_of"],
    "reads or writes files, or prints": ["cache", "load", "save", "summary"],
    "a setting, which decides whether a module's variables are detached": [
        "gradient_tracking", "set_with_grads", "unset_with_grads", "with_grads",
    ],
    "the same function as without `special.`": ["special.log_softmax", "special.softmax"],
    "returns integers or bools": [
        "allclose", "isclose", "logical_right_shift", "nanargmax", "nanargmin", "one_hot",
        "searchsorted", "linalg.matrix_rank", "random.bernoulli", "random.bits",
        "random.categorical", "random.fold_in", "random.poisson", "random.randint", "random.split",
    ],
}  # fmt: skip


def cases():
    """name -> (function of one array, input, its gradient if differences do not give it)."""
    found = {}
    for name, func in (SCALARS | VECTORS).items():
        found[name] = func, X, GRADIENTS.get(name)
        if name in SCALARS:
            found[f"{name}:0"] = func, ONE, GRADIENTS.get(name)
    for name, func in border_topics.TOPICS.items():
        found[name] = func, X, None
    for name in border_modules.MODULES:
        found[name] = border_modules.called(name), X, None
    for name in border_names.NAMES:
        gradient = (lambda x: 0 * x) if name == "pow_zero" else None
        found[f"xp.{name}"] = border_names.called(name), X, gradient
    return found


CASES = cases()
truth_of = cache(lambda case: Truth(*CASES[case]))


def is_ours(backend, case):
    """Whether a case calls a function of ours, not just the framework's own."""
    if backend not in OWN or backend in NOT_INSTALLED or not case.startswith("xp."):
        return True
    name = names_of(case)
    own = border_names.found(importlib.import_module(OWN[backend]), name)
    return border_names.found(load(backend), name) is not own


def cells(backend, case):
    """(transform, kind of input) of every cell of a case, except slow ones."""
    truth = truth_of(case)
    return [
        (name, kind)
        for name in THEIRS[backend]
        if (backend, name) not in SLOW
        for kind, _ in inputs(backend, name, truth)
    ]


def run(backend, case, transform, kind):
    """Run one cell: it is right, or raises as the ledger says."""
    func, truth = CASES[case][0], truth_of(case)
    if case in border_modules.MODULES:
        border_modules.module(case, backend)  # create it outside of the transform
    x = dict(inputs(backend, transform, truth))[kind]
    words, what = raising(backend, case, transform), f"{case} under {transform} of a {kind}"
    found = []
    try:
        with warnings.catch_warnings():  # raised by torch's import of its forward mode
            warnings.filterwarnings("ignore", message=".torch.jit.script")
            found = list(THEIRS[backend][transform](total(func), x, truth))
    except Exception as error:
        if words is None or not says(words, error):
            raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error
        return
    assert words is None, (
        f"{what}: the ledger expects an error with {words!r}, but none came; remove it"
    )
    check(what, found)


def params(backend, chosen):
    return [pytest.param(backend, case, id=f"{backend}-{case}") for case in chosen]


def one_of_each(backend, chosen):
    """One case of every name, drawn by the seed: JAX compiles and TensorFlow traces each."""
    of = {}
    for case in chosen:
        of.setdefault((case.startswith("xp."), names_of(case)), []).append(case)
    return [random.Random(f"{SEED} {backend} {name}").choice(same) for name, same in of.items()]


# Compiling these takes seconds to a minute each; they are not drawn, but run in full.
LONG = {
    ("jax", "tensorflow"): [
        "special.beta", "special.betainc", "special.betaln", "special.binom", "special.gammainc",
        "special.gammaincc", "special.iv", "special.ive", "special.jv", "special.polygamma",
        "special.yv", "special.zeta",
    ],
}  # fmt: skip


def is_long(backend, case):
    return any(backend in names and case in cases for names, cases in LONG.items())


APPLYING = {backend: [c for c in CASES if is_ours(backend, c)] for backend in FRAMEWORKS}
EVERY = [param for backend in FRAMEWORKS for param in params(backend, APPLYING[backend])]
DRAWN = [
    param
    for backend in FRAMEWORKS
    for param in params(
        backend,
        APPLYING[backend]
        if backend == "torch"
        else one_of_each(backend, [c for c in APPLYING[backend] if not is_long(backend, c)]),
    )
]


@pytest.mark.parametrize(("backend", "case"), DRAWN, indirect=["backend"])
def test_theirs_over_ours(backend, case):
    draw, every = random.Random(f"{SEED} {backend} {case}"), cells(backend, case)
    if backend == "jax" and len(CASES[case][1].shape) and draw.random() < 0.85:
        # one program instead of one per operation
        every = [cell for cell in every if cell[0] == "jit"]
    drawn = draw.sample(every, min(DRAWS[backend], len(every)))
    for transform, kind in drawn:
        run(backend, case, transform, kind)
    assert drawn


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "case"), EVERY, indirect=["backend"])
def test_theirs_over_ours_in_full(backend, case):
    for transform, kind in cells(backend, case):
        run(backend, case, transform, kind)
    assert cells(backend, case)


LAYERS = [case for case, func in VECTORS.items() if hasattr(func, "shapes")]


JAX = pytest.param("jax", marks=pytest.mark.slow)  # JAX has no variables


@pytest.mark.parametrize("backend", [JAX, "tensorflow", "torch"], indirect=True)
@pytest.mark.parametrize("case", LAYERS)
def test_every_argument_is_a_variable(backend, case):
    """A layer's arguments are variables, parameters or, under JAX, NumPy arrays."""
    func, shapes = VECTORS[case].func, VECTORS[case].shapes
    values = [np.cos(np.arange(np.prod(s)) * (1.3 + i)).reshape(s) for i, s in enumerate(shapes)]
    f = total(lambda arrays: func(*arrays))
    found = gradients(backend, f, values)
    assert len(found) == len(values)
    for place, got in enumerate(found):
        along = lambda x, place=place: f([*values[:place], x, *values[place + 1 :]])
        wanted = central_gradient(along, values[place], 1e-5)
        check(f"{case}, argument {place}", [(got, CUSTOM.get(case, 1) * wanted)])


CUSTOM = {"vmap_of_a_rule": 10}  # its rule is ten times the derivative


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
        return torch.autograd.grad(f(leaves), leaves)
    import tensorflow as tf

    leaves = [tf.Variable(v) for v in values]
    with tf.GradientTape() as tape:
        y = f(leaves)
    return [tf.convert_to_tensor(g) for g in tape.gradient(y, leaves)]


TRACED = [case for case in APPLYING["torch"] if not case.endswith(":0")]


@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_torch_compile_over_ours(backend):
    drawn = random.Random(f"{SEED} compile").sample(TRACED, 1)
    for case in drawn:
        run(backend, case, "compile", "tensor")
    # rules break the graph but are used; the attention kernel asks for torch.func's levels
    for case in ("custom_vjp", "checkpoint", "scaled_dot_product_attention"):
        run(backend, case, "compile", "parameter")
    assert drawn


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["torch"], indirect=True)
@pytest.mark.parametrize("case", TRACED)
def test_torch_compile_over_ours_in_full(backend, case):
    assert names_of(case)
    run(backend, case, "compile", "tensor")
    run(backend, case, "compile", "parameter")


@pytest.mark.parametrize("backend", FRAMEWORKS, indirect=True)
def test_every_name_is_drawn(backend, capsys):
    """A new function must be drawn here, or left out with a reason."""
    border_modules.check_names()
    drawn = {names_of(case) for case in CASES if not case.startswith("xp.")}
    left = {name for listed in LEFT_OUT.values() for name in listed}
    assert set(public()) - drawn - left == set(), "not tested"
    assert drawn & left == set(), "left out, but tested"
    assert left - set(public()) == set(), "left out, but does not exist"

    names = {names_of(case) for case in CASES if case.startswith("xp.")}
    silent = {name for listed in border_names.LEFT_OUT.values() for name in listed}
    assert set(border_names.all_names()) - names - silent == set(), "not tested"
    assert names & silent == set(), "left out, but tested"

    assert {names_of(p.values[1]) for p in DRAWN if p.values[0] == backend} == {
        names_of(case) for case in APPLYING[backend] if not is_long(backend, case)
    }
    cells_of = sum(len(cells(backend, case)) for case in APPLYING[backend])
    with capsys.disabled():
        print(
            f"\ntheirs over ours on {backend}: {len(drawn)} public names and {len(names)} of the "
            f"namespace in {len(APPLYING[backend])} calls, {cells_of} cells under "
            f"{', '.join(THEIRS[backend])}; {DRAWS[backend]} of each drawn with seed {SEED}"
        )


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
