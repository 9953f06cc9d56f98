"""What torch needs on a GPU, tested without one."""

from concurrent.futures import ThreadPoolExecutor
from importlib import import_module

import numpy as np
import pytest
from frameworks import torch

import isomorph as iso
from oracles import numpy_of

pytestmark = pytest.mark.parametrize("backend", ["torch"], indirect=True)


def room(name):
    return import_module(f"isomorph.backends.torch.{name}")


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "int64", "uint64"])
def test_a_product_of_integers_from_digits(backend, dtype):
    """CUDA has no products of integers. Those that exceed the dtype wrap around as on a CPU."""
    linalg = room("linalg")
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    rng = np.random.default_rng(0)
    a, b = (rng.integers(low, high, s, dtype, endpoint=True) for s in ((3, 2, 4), (3, 4, 5)))
    wanted = np.matmul(a, b)
    assert not np.array_equal(wanted, np.matmul(a.astype(float), b.astype(float)))  # they wrap
    got = linalg.product_of_digits(torch.matmul, *map(torch.tensor, (a, b)), 4)
    np.testing.assert_array_equal(numpy_of(got), wanted)
    assert numpy_of(got).dtype == dtype
    for terms in (linalg.EXACT, linalg.EXACT + 8):  # digits of 16 bits, and of 8
        full = np.full(terms, high, dtype)
        exact = linalg.product_of_digits(torch.matmul, *[torch.tensor(full)] * 2, terms)
        assert int(numpy_of(exact)) == int(np.sum(full * full, dtype=dtype))


@pytest.mark.takes("torch compiles C++")
def test_every_product_of_integers(backend, monkeypatch):
    linalg = room("linalg")
    monkeypatch.setattr(linalg, "_needs_digits", lambda x1, x2: True)
    # an odd sum above 2**53: digits of 16 bits would round it
    a = np.full(linalg.EXACT + 101, 2**16 - 1, dtype=np.int64)
    got = linalg.matmul(torch.tensor(a), torch.tensor(a))
    assert int(got) == (2**16 - 1) ** 2 * (linalg.EXACT + 101)
    x = torch.arange(-4, 9, dtype=torch.int32)
    for got in (
        linalg.tensordot(x, x, axes=1),
        linalg.vecdot(x, x),
        linalg.einsum("i,i->", x, x),
    ):
        assert (int(got), got.dtype) == (sum(i * i for i in range(-4, 9)), torch.int32)


def test_a_backward_pass_in_another_thread_has_what_the_caller_has(backend):
    """As on a GPU: the default backend and torch's default device."""

    Caller = room("caller").Caller

    def backward(x):
        return iso.zeros(2).device.type, torch.ones(1).device.type, x

    with iso.use_backend("torch", device=torch.device("meta")):
        with torch.device("meta"):
            caller = Caller.of([torch.ones(2)])
            here = Caller.of([torch.ones(2, device="cpu")])
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(caller.run, backward, 3).result() == ("meta", "meta", 3)
        assert type(pool.submit(here.run, lambda: iso.zeros(2)).result()) is np.ndarray
    assert type(caller.run(lambda: iso.zeros(2))) is np.ndarray  # the same thread: as it is


def test_an_index_of_the_host_is_checked_for_another_device(backend):
    x = torch.ones(3, 4, device="meta")
    for wrong in ([0, 7], np.array([-4]), torch.tensor([3], device="cpu")):
        for at in (wrong, (wrong, 1)):
            with pytest.raises(IndexError, match="is out of bounds for axis 0 with size 3"):
                iso.at(x)[at].get()
            with pytest.raises(IndexError, match="is out of bounds for axis 0 with size 3"):
                iso.at(x)[at].add(1.0)
            with pytest.raises(IndexError, match="is out of bounds for axis 0 with size 3"):
                iso.grad(lambda x, at=at: iso.at(x)[at].get().sum())(x)
    assert tuple(iso.at(x)[[0, -3, 2]].get().shape) == (3, 4)
