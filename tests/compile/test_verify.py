"""`jit(verify=True)` compares each program with the eager function. Right programs pass at the cost
of one extra run; wrong ones raise and say where. The tests make faulty compilers.
"""

import numpy as np
import pytest

import isomorph as iso
from isomorph.compile.verifying import difference
from isomorph.core import tree
from isomorph.core.dispatch import load
from oracles import kind_of, numpy_of

COMPILED = ["jax", "tensorflow", "torch"]
compilers = pytest.mark.parametrize("backend", COMPILED, indirect=True)


def arrays(backend, *values):
    return [iso.convert(np.asarray(x, np.float32), backend) for x in values]


def spoil(monkeypatch, backend, change):
    """Replace the compiler by one whose programs return `change(leaf number, output)`."""
    xp = load(backend)
    verb = "jit" if backend == "jax" else "compile"
    honest = getattr(xp, verb)

    def compiler(*args):
        program = honest(*args)

        def run(*args, **kw):
            leaves, form = tree.flatten_whole(program(*args, **kw))
            return tree.unflatten(form, [change(i, y) for i, y in enumerate(leaves)])

        return run

    monkeypatch.setattr(xp, verb, compiler)


@compilers
def test_the_first_call_of_each_program_runs_the_function_too(backend):
    runs = []

    def f(x, k):
        xp = iso.namespace(x)
        if not load(backend).is_local(x):
            runs.append(tuple(x.shape))  # an eager run: it has values
        return {"a": xp.sin(x) * k, "b": [xp.sum(x), xp.argmax(x), 3]}

    (x,) = arrays(backend, [0.0, 0.5, 1.0])
    run = iso.jit(f, verify=True)
    out = run(x, 2.0)
    assert kind_of(out["a"]) == backend
    np.testing.assert_allclose(numpy_of(out["a"]), 2 * np.sin([0, 0.5, 1]), rtol=1e-6)
    assert runs == [(3,)]
    run(x, 5.0)
    assert runs == [(3,)]
    run(x[:2], 5.0)
    assert runs == [(3,), (2,)]


@compilers
def test_a_wrong_program_raises_and_names_the_output(backend, monkeypatch):
    spoil(monkeypatch, backend, lambda i, y: y * 10 if i == 1 else y)

    def model(x):
        return {"fine": x + 1, "wrong": x * 2}

    (x,) = arrays(backend, [1.0, -4.0])
    # without verify, silently wrong
    np.testing.assert_allclose(numpy_of(iso.jit(model)(x)["wrong"]), [20, -80])
    with pytest.raises(ArithmeticError) as error:
        iso.jit(model, verify=True)(x)
    message = str(error.value)
    for word in ("model", backend, "at wrong", "off by 72", "compiled -80", "uncompiled -8"):
        assert word in message


@compilers
@pytest.mark.parametrize("change", ["nan", "zero", "small"])
def test_what_is_not_rounding_is_wrong(backend, monkeypatch, change):
    change = {
        "nan": lambda i, y: y / (y - y),
        "zero": lambda i, y: y - y,
        "small": lambda i, y: y * 1.001,  # √ε of float32 is 3.5e-4
    }[change]
    spoil(monkeypatch, backend, change)
    (x,) = arrays(backend, [1.0, -4.0])
    with pytest.raises(ArithmeticError, match="verify"):
        iso.jit(lambda x: x * 3, verify=True)(x)


@compilers
def test_rounding_is_not_wrong(backend, monkeypatch):
    spoil(monkeypatch, backend, lambda i, y: y * (1 + 1e-5))
    (x,) = arrays(backend, [1.0, -4.0, np.inf])
    out = iso.jit(lambda x: x * 3, verify=True)(x)
    np.testing.assert_allclose(numpy_of(out), [3, -12, np.inf], rtol=2e-5)


@compilers
def test_donated_arguments_are_copied_first(backend):
    v, x = arrays(backend, [1.0, 2.0], [3.0, 4.0])
    step = iso.jit(lambda v, x: v - 0.5 * x, donate=0, verify=True)
    for expected in ([-0.5, 0.0], [-2.0, -2.0]):
        v = step(v, x)
        np.testing.assert_allclose(numpy_of(v), expected)


@compilers
def test_inside_of_something_else_nothing_is_verified(backend):
    (x,) = arrays(backend, [1.0, 2.0])
    inner = iso.jit(lambda x: x**3, verify=True)
    total = lambda x: iso.namespace(x).sum(inner(x))
    for run in (iso.grad(total), iso.jit(iso.grad(total), verify=True)):
        np.testing.assert_allclose(numpy_of(run(x)), [3.0, 12.0], rtol=1e-6)


@pytest.mark.takes("torch compiles C++")
def test_static_arguments_and_modules(backend):
    with iso.use_backend(backend), iso.use_key(0):
        net = iso.Sequential(iso.Linear(2, 3), iso.Activation("silu"), iso.Dropout(0.5))
    (x,) = arrays(backend, np.ones((4, 2)))
    run = iso.jit(lambda net, x, n: net(x) * n, static="n", verify=True)
    for n in (2, 3):
        got = numpy_of(run(net, x, n))
        np.testing.assert_allclose(got, n * numpy_of(run(net, x, 1)), rtol=1e-5)


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
def test_without_a_compiler_the_function_runs_once(backend):
    runs = []
    iso.jit(lambda x: runs.append(1) or x, verify=True)(np.ones(2))
    assert runs == [1]


WIDE = 2**53
DIFFERENCES = {
    "equal": ([1.0, 2.0], [1.0, 2.0], "float64", 0.0),
    "float64": ([1.0, 2.0], [1.0, 2.0 + 1e-6], "float64", 1e-6),
    "complex128": ([1j], [1j + 1e-6], "complex128", 1e-6),
    "nan beside a number": ([np.nan], [1.0], "float64", np.inf),
    "other sign of infinity": ([np.inf], [-np.inf], "float64", np.inf),
    "large integers": ([WIDE + 1], [WIDE], "int64", 1.0),
    "truth": ([True, False], [True, True], "bool", 1.0),
}


@pytest.mark.parametrize("case", DIFFERENCES)
@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
def test_differences_that_rounding_cannot_explain(backend, case):
    x, y, dtype, off = DIFFERENCES[case]
    found = difference(np.asarray(x, dtype), np.asarray(y, dtype), 1.0, "")
    assert found.off == pytest.approx(off, rel=1e-6)
    assert (found.off > found.allowed) == (off > 0)


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
def test_rounding_is_measured_by_the_largest_values(backend):
    same = lambda x, y, dtype, scale: (
        (found := difference(np.array(x, dtype), np.array(y, dtype), scale, "")).off
        <= found.allowed
    )
    assert same([1e6, 1.0], [1e6, 1.0 + 1e-3], "float64", 1.0)  # beside a large value
    assert not same([1.0], [1.0 + 1e-3], "float64", 1.0)
    assert same([0.0], [1e-12], "float64", 1.0)  # cancellation inside the function
    assert not same([0.0], [1e-12], "float64", 1e-3)
    assert same([1.0], [1.0002], "float32", 1.0)
    assert not same([1.0], [1.0006], "float32", 1.0)
    assert not same(np.zeros(2), np.zeros(3), "float64", 1.0)
