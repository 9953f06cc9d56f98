"""Random keys and draws in compiled programs: the same numbers as eager."""

import numpy as np
import pytest

import isomorph as iso
from isomorph.core.tree import flatten
from oracles import counted, numpy_of


def unpacked(key, logits):
    first, second = iso.random.split(key)
    third, *rest = iso.random.split(second, 4)
    draws = [iso.random.uniform(k, (2,)) for k in iso.random.split(first, 3)]
    inner = [iso.random.bits(k, (2,)) for k in (third, *rest)]
    keys = iso.random.split(key)
    return draws, inner, keys, keys[0], iso.random.categorical(first, logits)


@pytest.mark.timeout(120)  # a draw from 512 once took minutes to compile
def test_keys_are_taken_apart_compiled_as_they_are(backend):
    key = iso.convert(iso.random.key(3), backend)
    logits = iso.convert(np.sin(np.arange(512.0, dtype=np.float32))[None], backend)
    program, calls = counted(unpacked)
    program(key, logits)
    found, sure = program(key, logits), unpacked(key, logits)
    assert backend == "numpy" or len(calls) == 1
    by_numpy = unpacked(iso.random.key(3), numpy_of(logits))
    flat = [[numpy_of(x) for x in flatten(nest)[0]] for nest in (found, sure, by_numpy)]
    assert [x.shape for x in flat[0]] == [(2,)] * 7 + [(2, 2), (2,), (1,)]
    for got, wanted, exact in zip(*flat, strict=True):
        np.testing.assert_array_equal(got, wanted)
        np.testing.assert_array_equal(got, exact)


@pytest.mark.parametrize("compiled", [False, True])
def test_keys_in_a_loop_and_a_gradient(backend, compiled):
    """Keys are split where a framework traces a function within a function."""

    def total(x, key):
        xp = iso.namespace(x)

        def body(i, carry):
            key, x = carry
            key, now = iso.random.split(key)
            return key, x * iso.random.uniform(now, (3,))

        return xp.sum(iso.fori_loop(0, 3, body, (key, x))[1])

    key, x = iso.random.key(1), np.array([1.0, 2.0, 3.0], np.float32)
    grad, calls = counted(iso.grad(total)) if compiled else (iso.grad(total), [1])
    factors = np.ones(3, np.float32)
    now = key
    for _ in range(3):
        now, drawn = iso.random.split(now)
        factors = factors * iso.random.uniform(drawn, (3,))
    found = grad(iso.convert(x, backend), iso.convert(key, backend))
    np.testing.assert_allclose(numpy_of(found), factors, rtol=1e-6)
    again = grad(iso.convert(x, backend), iso.convert(key, backend))
    np.testing.assert_array_equal(numpy_of(again), numpy_of(found))
    assert backend == "numpy" or len(calls) == 1
