"""`iso.jit` refuses tensors whose memory is not their values: subclasses with operations of their
own, tensors that are divided among processes, sparse and nested ones; in any order with plain ones.
"""

import subprocess
import sys

import numpy as np
import pytest
from frameworks import torch

import isomorph as iso
from oracles import numpy_of

pytestmark = pytest.mark.parametrize("backend", ["torch"], indirect=True)
X = np.arange(1.0, 4.0)


def subclass():
    class Doubling(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            out = super().__torch_function__(func, types, args, kwargs or {})
            return out * 2 if func is torch.sin else out

    return torch.tensor(X).as_subclass(Doubling)


def wrapper():
    from torch.testing._internal.two_tensor import TwoTensor

    return TwoTensor(torch.tensor(X), torch.tensor(X) * 10)


KINDS = {
    "a subclass": (subclass, r"got a .*Doubling; pass x.as_subclass\(torch.Tensor\)"),
    "a wrapper": (wrapper, "got a TwoTensor; pass its inner tensors"),
    "sparse": (lambda: torch.tensor(X).to_sparse(), r"sparse_coo; pass x.to_dense\(\)"),
    "nested": (
        lambda: torch.nested.as_nested_tensor([torch.tensor(X), torch.tensor(X[:2])]),
        "a nested tensor; pass torch.nested.to_padded_tensor",
    ),
}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("name", KINDS)
def test_before_and_after_plain_ones(backend, name):
    make, words = KINDS[name]
    call = iso.jit(lambda x: torch.sin(x) + 1)
    for _ in range(2):
        with pytest.raises(TypeError, match=words):
            call(make())
        np.testing.assert_allclose(numpy_of(call(torch.tensor(X))), np.sin(X) + 1, rtol=1e-12)
    parameter = torch.nn.Parameter(torch.tensor(X))
    np.testing.assert_allclose(numpy_of(call(parameter)), np.sin(X) + 1, rtol=1e-12)


DIVIDED = """
import numpy as np, torch, torch.distributed as dist, isomorph as iso
from torch.distributed.tensor import DeviceMesh, Replicate, distribute_tensor
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
call = iso.jit(lambda x: torch.sin(x) + 1)
x = torch.arange(3.0)
divided = distribute_tensor(x, DeviceMesh("cpu", [0]), [Replicate()])
for _ in range(2):
    assert np.allclose(call(x), np.sin([0, 1, 2]) + 1)
    try:
        call(divided)
    except TypeError as error:
        assert "got a DTensor; pass x.to_local()" in str(error), error
    else:
        raise AssertionError("it did not raise")
print("done")
"""


@pytest.mark.takes("it starts another process")
@pytest.mark.host_only("another process, on the host")
def test_one_that_is_divided_among_processes(backend):
    """In another process: it ended with a segmentation fault."""
    done = subprocess.run(
        [sys.executable, "-c", DIVIDED], capture_output=True, text=True, timeout=120
    )
    assert done.stdout.strip() == "done", done.stderr


def test_errors_of_a_subclass_come_through(backend):
    class Broken(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func is torch.nn.functional.linear:
                raise AttributeError("no attribute 'mine'")
            return super().__torch_function__(func, types, args, kwargs or {})

    x, w = (torch.ones(shape).as_subclass(Broken) for shape in ((2, 4), (3, 4)))
    with pytest.raises(AttributeError, match="no attribute 'mine'"):
        iso.linear(x, w)
