"""Programs that are no longer referenced are freed: isomorph does not keep them alive."""

import gc
import weakref
from collections import Counter

import numpy as np
import pytest

import isomorph as iso


@pytest.fixture(autouse=True)
def only_what_is_new():
    """Ignore all objects that existed before."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def left_after(count, x):
    """Objects that remain after `count` new programs, by type."""
    for _ in range(count):
        iso.jit(lambda x: iso.namespace(x).sum(x * 2.0 + 1.0))(x)
        iso.jit(iso.grad(lambda x: iso.namespace(x).sum(x**2)))(x)
    gc.collect()
    return Counter(type(x).__qualname__ for x in gc.get_objects())


@pytest.mark.parametrize("backend", ["numpy", "jax", "tensorflow"], indirect=True)
def test_fresh_programs_leave_nothing_behind(backend):
    x = iso.convert(np.ones((4, 3), np.float32), backend)
    before = left_after(4, x)
    after = left_after(10, x)
    # a framework may keep a weak reference or two per program, but no functions, graphs, arrays or
    # programs
    small = {"ReferenceType", "weakref", "builtin_function_or_method"}
    more = {kind: n - before[kind] for kind, n in after.items() if kind not in small}
    assert {kind: n for kind, n in more.items() if n >= 10} == {}


@pytest.mark.takes("torch compiles C++")
@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_fresh_programs_leave_nothing_of_ours_behind(backend):
    """Inductor keeps the text and shapes of each program, as it does for torch.compile. Nothing of
    ours stays: no array, no graph and no function of the caller.
    """
    x = iso.convert(np.ones((4, 3), np.float32), backend)
    functions = []

    def program():
        def fun(x):
            return iso.namespace(x).sum(x * 2.0 + 1.0)

        functions.append(weakref.ref(fun))
        return fun

    def left(count):
        for _ in range(count):
            iso.jit(program())(x)
            iso.jit(iso.grad(program()))(x)
        gc.collect()
        kinds = Counter(type(x) for x in gc.get_objects())
        return {kind: n for kind, n in kinds.items() if counts(kind)}

    def counts(kind):
        heavy = {"Tensor", "Parameter", "FakeTensor", "GraphModule", "Graph", "Node"}
        library = str(kind.__module__).partition(".")[0]
        return library == "isomorph" or (library == "torch" and kind.__qualname__ in heavy)

    before = left(2)
    assert before, "nothing was counted"
    after = left(4)
    assert {kind: n for kind, n in after.items() if n - before.get(kind, 0) >= 3} == {}
    assert len(functions) == 12
    assert sum(fun() is not None for fun in functions) <= 1  # at most the last one
