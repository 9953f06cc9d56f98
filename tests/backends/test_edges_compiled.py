"""Edge cases compiled: the cases of `edge_running` give the same values and gradients compiled as
eager, in float64. Cases that raise eagerly are left out: a program cannot look at its values.

Several cases are compiled to a program; `make test-all` also compiles each case by itself. Where
nothing is promised (the entries of the ledger that are free), compiled and eager results may
differ.
"""

import warnings
from fnmatch import fnmatch

import numpy as np
import pytest
from edge_ledger import LEDGER
from edge_running import (
    CASES,
    differing,
    leaves,
    made,
    plain,
    shown,
    shows_loss,
    weighed,
    without,
)

import isomorph as iso
from isomorph.core.dispatch import load
from oracles import as_users_have_it, numpy_of

# The size of the result depends on the values: no program of fixed shapes.
SIZES = {"nonzero", "unique_all", "unique_counts", "unique_inverse", "unique_values"}

# Cases that a framework cannot compile, with part of its message.
CANNOT = {
    ("torch", "linalg.svd", "complex"): "cannot decide which Python code runs",
    ("torch", "linalg.det", "NaN"): "contained non-finite values",
    ("torch", "from_dlpack", "nothing"): "Cannot access data pointer",
    ("torch", "repeat", "0 times"): "cannot decide which Python code runs",
    ("jax", "from_dlpack", "nothing"): "must have __dlpack__",
    ("jax", "repeat", "0 times"): "Abstract tracer value",
}
# Cases that differ when compiled, with the reason to leave them so; checked both ways.
OTHERWISE = {
    ("tensorflow", "divide", "specials"): "products of the largest numbers in another order",
    ("torch", "acosh", "specials"): "Inductor squares x, which overflows beyond 1e154",
    ("torch", "floor_divide", "specials"): "Inductor divides infinities directly",
    ("torch", "remainder", "specials"): "Inductor computes x - y·⌊x/y⌋, NaN for an infinite y",
    ("torch", "pow", "to 0.5"): "a square root, whose derivative differs at -0.0 and -inf",
    ("torch", "prod", "NaN"): "a NaN makes all of it NaN eagerly, but not compiled",
}


def key(backend, number):
    return backend, CASES[number].name, CASES[number].edge


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
        warnings.simplefilter("ignore")  # about NaN, or by the compiler about itself
        return func(*args)


def inputs(xp, number):
    return [xp.from_numpy(x) for x in made(number, "float64")]


# Cases that raise eagerly, though NumPy does not.
RAISES = {
    *(("torch", "linalg.slogdet", edge) for edge in ("zero", "singular")),
    *(("tensorflow", "linalg.slogdet", edge) for edge in ("zero", "singular")),
    ("jax", "nextafter", "specials"),
}


def raises(backend, number):
    """Whether a case raises eagerly, or may."""
    case = CASES[number]
    return bool(case.raises) or case.lost or key(backend, number) in RAISES


def eager(backend, number):
    """The eager results of a case."""
    xp = load(backend)
    return run(measured(xp, number), *inputs(xp, number))


def compiled(backend, numbers):
    xp = load(backend)
    funcs = {str(n): measured(xp, n) for n in numbers}
    program = iso.jit(lambda inputs: {n: f(*inputs[n]) for n, f in funcs.items()})
    return run(as_users_have_it(backend, program), {str(n): inputs(xp, n) for n in numbers})


def apart(backend, numbers):
    """The cases whose compiled results differ, each with both results."""
    wanted = {n: None if CASES[n].lost else eager(backend, n) for n in numbers}
    arrays = lambda nest: [np.array(numpy_of(plain(x))) for x in nest]
    got, found = compiled(backend, numbers), {}
    for n in numbers:
        parts = [arrays(part) for part in got[str(n)]]
        if CASES[n].lost:
            if not all(shows_loss(CASES[n], part) for part in parts):
                found[n] = f"needed NaN, compiled {[shown(part) for part in parts]}"
            continue
        sure = [arrays(part) for part in wanted[n]]
        for what, x, y in zip(("value", "grad"), sure, parts):
            where = differing(x, y, "float64")  # signs of zeros are not compared
            for entry in free(backend, CASES[n], what):
                where, _ = without(where, entry, made(n, "float64"), sure[0], y)
            if where is not None:
                found[n] = f"{what}: eager {shown(x)}\n    compiled {shown(y)}"
    return found


def free(backend, case, what):
    """The entries of the ledger that promise nothing of a case."""
    return [
        entry
        for entry in LEDGER
        if entry.free
        and entry.what == what
        and backend in entry.backends.split()
        and case.name in entry.names.split()
        and fnmatch(case.edge, entry.edge)
    ]


def check(backend, numbers):
    found = apart(backend, numbers)
    known = {n for n in numbers if key(backend, n) in OTHERWISE}
    told = [f"{key(backend, n)} {words}" for n, words in found.items() if n not in known]
    told += [f"{key(backend, n)} no longer differs" for n in known - set(found)]
    assert told == [], "\n".join(told)


def leaves_xla(backend, number):
    """Whether TensorFlow may compile a case without XLA. Then all cases of the same program lose
    XLA too, so these get a batch of their own.
    """
    return backend == "tensorflow" and CASES[number].name.startswith(("linalg.", "iso.conv"))


def parts():
    """Cases to compile together, a few to a program. What TensorFlow compiles without XLA is apart.
    `make test-all` compiles all of them, and each by itself.
    """
    for backend, size, quick in (("jax", 15, 8), ("tensorflow", 20, 8), ("torch", 5, 24)):
        can = [
            n for n, case in enumerate(CASES)
            if case.name not in SIZES and not raises(backend, n)
            and key(backend, n) not in CANNOT and key(backend, n) not in OTHERWISE
        ]  # fmt: skip
        number = 0
        for apart in (False, True):
            some = [n for n in can if leaves_xla(backend, n) is apart]
            for start in range(0, len(some), size):
                slow = [pytest.mark.slow] if number % quick else []
                yield pytest.param(backend, some[start : start + size], marks=slow,
                                   id=f"{backend}-{number}")  # fmt: skip
                number += 1


@pytest.mark.takes("XLA compiles it")
@pytest.mark.parametrize(("backend", "numbers"), [*parts()], indirect=["backend"])
def test_cases_compiled_together(backend, numbers):
    check(backend, numbers)


@pytest.mark.parametrize("backend", ["tensorflow", "torch"], indirect=True)
def test_cases_that_differ(backend):
    numbers = [n for n in range(len(CASES)) if key(backend, n) in OTHERWISE]
    assert len(numbers) == sum(name == backend for name, *_ in OTHERWISE)
    for apart in {leaves_xla(backend, n) for n in numbers}:
        check(backend, [n for n in numbers if leaves_xla(backend, n) is apart])


@pytest.mark.takes("XLA compiles it")
@pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)
def test_matrices_that_are_not_finite(backend):
    """torch's kernels raise in a program too, where they raise eagerly."""
    numbers = [n for n, case in enumerate(CASES) if case.lost]
    if backend == "torch":
        numbers = [n for n in numbers if gives_arrays(backend, n)]
    assert len(numbers) >= 3
    check(backend, numbers)


def gives_arrays(backend, number):
    try:
        eager(backend, number)
    except Exception:
        return False
    return True


# TensorFlow once computed these wrongly when compiled.
ONCE_WRONG = [
    ("linalg.cholesky", "complex"), ("max", "NaN"), ("min", "NaN"), ("iso.max_pool", "rows"),
    ("iso.max_pool", "plane, padded"), ("pow", "complex"),
]  # fmt: skip


@pytest.mark.takes("XLA compiles it")
@pytest.mark.parametrize("backend", ["jax", "tensorflow"], indirect=True)
def test_cases_that_were_wrong(backend):
    numbers = [n for n, case in enumerate(CASES) if (case.name, case.edge) in ONCE_WRONG]
    assert len(numbers) == len(ONCE_WRONG)
    for apart in (True, False):
        check(backend, [n for n in numbers if leaves_xla("tensorflow", n) is apart])


# Without cases whose result sizes depend on values, and without those that raise eagerly:
# test_four_of_a_kind.py checks those.
ALONE = [
    (backend, number)
    for number, case in enumerate(CASES)
    for backend in ("jax", "tensorflow", "torch")
    if case.name not in SIZES and not raises(backend, number)
]


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "number"), ALONE, indirect=["backend"])
def test_every_case_alone(backend, number):
    if key(backend, number) in CANNOT:
        with pytest.raises(Exception, match=CANNOT[key(backend, number)]):
            compiled(backend, [number])
    else:
        check(backend, [number])


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
def test_the_ledger_names_cases(backend):
    cases = {(case.name, case.edge) for case in CASES}
    assert {(name, edge) for _, name, edge in [*OTHERWISE, *CANNOT]} <= cases
