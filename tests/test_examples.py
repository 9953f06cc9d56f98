"""Every example of the table, on every backend: values, compiled values and gradients of every
public name against plain NumPy, and what else holds for all of them.
"""

import warnings

import numpy as np
import pytest

import isomorph as iso
from examples import (
    BACKENDS,
    LEFT_OUT,
    MAY_NOT,
    SAME,
    TABLE,
    arrays_of,
    groups_of,
    larger,
    may,
    name_in,
    public,
)  # fmt: skip
from examples.measuring import (
    GRADIENT,
    HOST,
    NARROW,
    Failures,
    close,
    joined,
    known,
    measured,
    quickly,
    run,
    wanted,
    weighed,
)  # fmt: skip
from oracles import as_users_have_it, numpy_of

SLOW = pytest.mark.slow
GROUPS = [
    pytest.param(backend, group, id=f"{backend}-{group}")
    for backend in BACKENDS
    for group in groups_of(backend)
]


def given(backend, arrays, dtype=np.float64):
    return [iso.convert(np.asarray(x, dtype), backend) for x in arrays]


def derived(backend, name, word="gradient"):
    """Whether an example is differentiated on a backend."""
    return TABLE[name].order and may(TABLE[name], word, backend)


def program(backend, names, with_gradients=True):
    """The parts of a program: values, and gradients where there are any."""
    plain = lambda name: lambda *arrays: [run(name)(*arrays), []]
    sloped = lambda name: with_gradients and slopes(backend, name)
    return {name: (measured if sloped(name) else plain)(name) for name in names}


def slopes(backend, name):
    """Whether a program has the gradients of an example."""
    return name not in SAME and derived(backend, name, "compiled gradient")


@pytest.mark.takes("a compiler takes long for a program of all names of a group")
@pytest.mark.whole
@pytest.mark.parametrize(("backend", "group"), GROUPS, indirect=["backend"])
def test_every_example_eager_and_compiled(backend, group):
    """Values eager and compiled, and gradients: all names of a group in one program. JAX, which
    compiles each eager operation, differentiates in the program, with XLA's quick settings: the
    next test has those of users, as TensorFlow has here. The names of namespaces are the
    frameworks' own: here they run eagerly. What fails is named.
    """
    names, failures = groups_of(backend)[group], Failures()
    inputs = {name: given(backend, arrays_of(TABLE[name])) for name in names}
    for name in names:
        failures.of(name, "eager", valued, backend, name, inputs[name])
    ours = [name for name in names if not name.startswith("xp.")]
    for name in ours if backend != "jax" else ():
        if derived(backend, name):
            failures.of(name, "gradient", sloped, name, inputs[name])
    can = [name for name in ours if may(TABLE[name], "compiled", backend)]
    if can:
        check_program(backend, can, inputs, failures, backend == "jax", quickly)
    failures.tell()


@pytest.mark.takes("a compiler takes long for a program of all names of a group")
@pytest.mark.parametrize(("backend", "group"), GROUPS, indirect=["backend"])
def test_values_and_gradients_of_a_group_in_one_program(backend, group):
    can = [n for n in groups_of(backend)[group] if may(TABLE[n], "compiled", backend)]
    inputs, failures = {n: given(backend, arrays_of(TABLE[n])) for n in can}, Failures()
    if can:
        check_program(backend, can, inputs, failures, True, as_users_have_it)
    failures.tell()


def check_program(backend, names, inputs, failures, with_gradients, as_compiled):
    found, raised = joined(backend, program(backend, names, with_gradients), inputs, as_compiled)
    for name, (values, grads) in found.items():
        failures.of(name, "compiled", close, values, wanted(name)[0])
        if with_gradients and slopes(backend, name):
            failures.of(name, "compiled gradient", close, grads, wanted(name)[1], GRADIENT)
    failures.extend(f"{name}, compiled: {error!r}"[:900] for name, error in raised.items())


def sloped(name, arrays):
    close(measured(name)(*arrays)[1], wanted(name)[1], GRADIENT)


def valued(backend, name, arrays):
    kind = "numpy" if name in HOST else backend
    close(run(name)(*arrays), wanted(name)[0], backend=kind)


# JAX compiles each eager operation by itself: there, all that is asked of a name is one program.
NAMES = [(backend, name) for backend in BACKENDS for name in TABLE]


def asked(backend, name):
    """What is asked of one example: name -> (function, arrays, expected results, error)."""
    entry, arrays, found = TABLE[name], arrays_of(TABLE[name]), {}
    if derived(backend, name, "compiled gradient" if backend == "jax" else "gradient"):
        gradients = lambda *a: measured(name)(*a)[1]
        found["gradients"] = gradients, arrays, wanted(name)[1], GRADIENT
    if may(entry, "float32", backend):
        narrow = [x.astype(np.float32) for x in arrays]
        found["float32"] = run(name), narrow, wanted(name)[0], NARROW
    if arrays and not entry.within and may(entry, "zeros", backend):
        found["zeros"] = expected(name, [np.zeros_like(x) for x in arrays])
    if arrays and may(entry, "empty", backend):
        first = arrays[0].shape
        found["no examples"] = expected(name, [x[:0] if x.shape == first else x for x in arrays])
    return found


def expected(name, arrays):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # NumPy about means of nothing
        return run(name), arrays, known(name)(*arrays), 1e-11


@pytest.mark.parametrize(("backend", "name"), NAMES, indirect=["backend"])
def test_an_example_alone(backend, name):
    """Gradients eager, float32 kept, at zero, and without examples; on JAX in one program."""
    parts, failures = asked(backend, name), Failures()
    arrays = {what: [iso.convert(x, backend) for x in part[1]] for what, part in parts.items()}
    every = lambda arrays: {what: parts[what][0](*arrays[what]) for what in arrays}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        together = backend == "jax" and may(TABLE[name], "compiled", backend)
        found = (iso.jit if together else lambda f: f)(every)(arrays)
    for what, (_, _, sure, near) in parts.items():
        dtype = np.float32 if what == "float32" else None
        failures.of(name, what, close, found[what], sure, near, None, dtype)
    failures.tell()
    assert parts


TWICE = [
    pytest.param(backend, name, marks=SLOW if backend == "jax" else ())
    for backend, name in NAMES
    if TABLE[name].order > 1 and not TABLE[name].slope and derived(backend, name)
]


@pytest.mark.parametrize(("backend", "name"), TWICE, indirect=["backend"])
@pytest.mark.takes("frameworks take derivatives of derivatives")
def test_second_derivatives_of_an_example(backend, xp, name):
    """Along one direction, against differences of fourth order of the example's own NumPy."""
    arrays, step = arrays_of(TABLE[name]), 2e-3
    along = [np.sin(2.0 + np.arange(x.size)).reshape(x.shape) for x in arrays]
    moved = lambda t: weighed(np, known(name)(*(x + t * d for x, d in zip(arrays, along))))
    ends = [moved(k * step) for k in (-2, -1, 0, 1, 2)]
    curve = np.dot([-1, 16, -30, 16, -1], ends) / (12 * step**2)
    total = lambda *a: weighed(xp, run(name)(*a))
    slopes = lambda *a: iso.hvp(total, tuple(a[: len(arrays)]), tuple(a[len(arrays) :]))
    both = [iso.convert(x, backend) for x in (*arrays, *along)]
    found = (iso.jit if backend == "jax" else lambda f: f)(slopes)(*both)
    got = sum(np.sum(numpy_of(h) * d) for h, d in zip(found, along, strict=True))
    np.testing.assert_allclose(got, curve, rtol=2e-5, atol=2e-5 * max(1.0, abs(ends[2])))


MANY = [
    pytest.param(backend, group, id=f"{backend}-{group}", marks=() if few else SLOW)
    for backend in BACKENDS[1:]
    for group in groups_of(backend)
    for few in [group in ("activations", "elementwise")]
]


@pytest.mark.parametrize(("backend", "group"), MANY, indirect=["backend"])
def test_large_arrays_compiled(backend, group):
    """Compilers compute many elements at a time: with many, compiled gives what eager gives, and
    with gradients. Those of one size are left out.
    """
    can = [name for name in groups_of(backend)[group]
           if may(TABLE[name], "large") and may(TABLE[name], "compiled", backend)]  # fmt: skip
    if not can:
        pytest.skip("all of its examples have one size")
    inputs = {name: given(backend, larger(TABLE[name])) for name in can}
    parts, failures = program(backend, can), Failures()
    found, raised = joined(backend, parts, inputs)
    for name, (values, grads) in found.items():
        sure = [[numpy_of(x) for x in part] for part in parts[name](*inputs[name])]
        failures.of(name, "value", close, values, sure[0], 1e-9)
        if slopes(backend, name):
            failures.of(name, "gradient", close, grads, sure[1], 1e-9)
    failures.extend(f"{name}, compiled: {error!r}"[:900] for name, error in raised.items())
    failures.tell()


UNCOMPILED = [
    (backend, name)
    for backend, name in NAMES
    if backend != "numpy" and "compiled" in TABLE[name].but
]


@pytest.mark.takes("torch compiles C++")
@pytest.mark.parametrize(("backend", "name"), UNCOMPILED, indirect=["backend"])
def test_what_may_not_be_compiled_raises(backend, name):
    arrays = given(backend, arrays_of(TABLE[name]))
    with pytest.raises(Exception, match=r"\w"):
        iso.jit(run(name))(*arrays)


def test_every_public_name_has_an_example_or_a_reason():
    named = {name_in(case) for case in TABLE}
    left = [name for names in LEFT_OUT.values() for name in names]
    assert set(public()) - named - set(left) == set(), "no example"
    assert named & set(left) == set(), "left out, but has an example"
    assert {*named, *left} - set(public()) == set(), "no such name"
    assert len(left) == len(set(left))
    facts = {word for entry in TABLE.values() for word in entry.but}
    known = {*MAY_NOT, *(f"{backend} {word}" for backend in BACKENDS for word in MAY_NOT)}
    assert facts <= known, "unknown words"
    cases = [name for names in groups_of("numpy").values() for name in names]
    assert sorted(cases) == sorted(TABLE), "each is in one group"
