"""`iso.switch`: one of several branches, chosen by a number."""

import numpy as np
import pytest
from frameworks import ours

import isomorph as iso
from oracles import numpy_of

X = np.array([0.4, 1.5, 2.0])
# value and derivative of each branch
LAWS = [
    (np.sin, np.cos),
    (lambda x: x * x, lambda x: 2 * x),
    (np.exp, np.exp),
    (lambda x: 3 * x, lambda x: 3 + 0 * x),
    (np.sqrt, lambda x: 0.5 / np.sqrt(x)),
]


def branches(xp):
    return [xp.sin, lambda x: x * x, xp.exp, lambda x: 3 * x, xp.sqrt]


def switched(xp, count):
    return lambda i, x: iso.switch(i, branches(xp)[:count], x)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_branch_of_the_index_clamped(backend, xp, count):
    run = switched(xp, count)
    for i in (-9, 0, count // 2, count - 1, 99):
        value, slope = LAWS[min(max(i, 0), count - 1)]
        for number in (i, xp.asarray(np.array(i))):
            np.testing.assert_allclose(numpy_of(run(number, xp.asarray(X))), value(X), rtol=1e-14)
            found = iso.grad(lambda x, number=number: xp.sum(run(number, x)))(xp.asarray(X))
            np.testing.assert_allclose(numpy_of(found), slope(X), rtol=1e-14)


@pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)
def test_compiled_with_an_index_that_is_not_known(backend, xp, monkeypatch):
    if backend == "torch":  # its branches are subgraphs of the graph, which is run as it is
        monkeypatch.setattr(ours("torch.private"), "inductor_compile", lambda graph, *_: graph)
    program = iso.jit(lambda i, x: iso.value_and_grad(lambda x: xp.sum(switched(xp, 5)(i, x)))(x))
    for i in (-1, 0, 1, 2, 3, 4, 7):
        value, slope = LAWS[min(max(i, 0), 4)]
        total, found = program(xp.asarray(np.array(i)), xp.asarray(X))
        np.testing.assert_allclose(numpy_of(total), np.sum(value(X)), rtol=1e-14)
        np.testing.assert_allclose(numpy_of(found), slope(X), rtol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_compiled_by_inductor(backend, xp):
    program = iso.jit(lambda i, x: iso.switch(i, branches(xp)[:3], x))
    for i in (0, 2):
        found = program(xp.asarray(np.array(i)), xp.asarray(X))
        np.testing.assert_allclose(numpy_of(found), LAWS[i][0](X), rtol=1e-14)


def test_mapped_over_indices(backend, xp):
    numbers = np.array([2, 0, 1])
    found = iso.vmap(switched(xp, 3))(xp.asarray(numbers), xp.asarray(np.stack([X] * 3)))
    sure = np.stack([LAWS[i][0](X) for i in numbers])
    np.testing.assert_allclose(numpy_of(found), sure, rtol=1e-14)


def test_only_one_branch_is_computed(backend, xp):
    ran = []

    def noted(name):
        return lambda x: (ran.append(name), x)[1]

    iso.switch(xp.asarray(np.array(1)), [noted("a"), noted("b"), noted("c")], xp.asarray(X))
    assert ran == ["b"]


def test_nests_and_numbers(backend, xp):
    one = lambda d, n: {"y": d["x"] * n}
    two = lambda d, n: {"y": d["x"] + n}
    for i, sure in ((0, X * 2), (1, X + 2)):
        found = iso.switch(xp.asarray(np.array(i)), (one, two), {"x": xp.asarray(X)}, 2.0)
        np.testing.assert_allclose(numpy_of(found["y"]), sure)
    assert iso.switch(1, [lambda n: n, lambda n: n + 1], 3) == 4


def test_what_is_refused(backend, xp):
    x, i = xp.asarray(X), xp.asarray(np.array(0))
    with pytest.raises(TypeError, match="switch: needed a list of at least one function"):
        iso.switch(i, [], x)
    with pytest.raises(TypeError, match=r"switch: needed branches\[1\] as a function, got int"):
        iso.switch(i, [xp.sin, 3], x)
    with pytest.raises(TypeError, match="switch: needed index as an integer, got float64"):
        iso.switch(x[0], [xp.sin, xp.cos], x)
    with pytest.raises(TypeError, match="switch: needed index without axes"):
        iso.switch(xp.asarray(np.array([0])), [xp.sin, xp.cos], x)
    if backend == "numpy":
        return
    uneven = iso.jit(lambda i, x: iso.switch(i, [xp.sin, xp.cos, xp.sum], x))
    with pytest.raises(TypeError, match="switch: needed all functions to return"):
        uneven(i, x)
