"""torch's own backward pass through attention: leaves of every kind, twice; checkpoints; memory."""

import gc
import weakref

import numpy as np
import pytest
from frameworks import torch

import isomorph as iso
from oracles import numpy_of

from .sequence_oracles import drawn, torch_attention

pytestmark = pytest.mark.parametrize("backend", ["torch"], indirect=True)

LEAVES = {  # shapes of query, key and value, those that are differentiated, mask, whether a kernel
    "short": ([(1, 2, 5, 4)] * 3, "qkv", False, False),
    "kernel": ([(2, 4, 80, 8)] * 3, "qkv", False, True),
    "with a mask": ([(2, 4, 80, 8)] * 3, "qkv", True, True),
    "one argument": ([(2, 4, 80, 8)] * 3, "k", False, True),
    "fewer heads": ([(2, 4, 80, 8), (2, 1, 80, 8), (1, 1, 80, 8)], "qkv", False, True),
    "three axes": ([(8, 80, 8)] * 3, "qkv", False, False),  # the result of the kernel is reshaped
}


@pytest.mark.parametrize(
    ("name", "dtype"), [*((n, "float64") for n in LEAVES), ("kernel", "float32")]
)
def test_torch_backward_reaches_leaves_twice(backend, name, dtype):
    shapes, wanted, masked, by_kernel = LEAVES[name]
    mask = np.random.default_rng(18).random((80, 80)) > 0.4 if masked else None
    ours = lambda *x: iso.scaled_dot_product_attention(
        *x, mask=None if mask is None else torch.tensor(mask)
    )
    found = []
    for call in (ours, lambda *x: torch_attention(*x, mask)):
        kept = getattr(torch, dtype if call is ours else "float64")
        arrays = [torch.tensor(x, dtype=kept) for x in drawn(17, *shapes)]
        leaves = [x.requires_grad_() for x, letter in zip(arrays, "qkv") if letter in wanted]
        y = call(*arrays)
        if call is ours and not (y.is_cuda and dtype == "float64"):  # CUDA has no such kernel
            assert ("ScaledDotProduct" in type(y.grad_fn).__name__) == by_kernel
        grads = torch.autograd.grad(y.sin().sum(), leaves, create_graph=True)
        sum((g * g).sum() for g in grads).backward()
        found.append([*grads, *(x.grad.clone() for x in leaves)])
        call(*arrays).sin().sum().backward()  # another backward pass adds the first-order gradient
        found[-1] += [x.grad for x in leaves]
    rtol, atol = (1e-9, 1e-11) if dtype == "float64" else (1e-4, 1e-5)
    for ours, wanted in zip(*found):
        np.testing.assert_allclose(numpy_of(ours), numpy_of(wanted), rtol=rtol, atol=atol)


def test_inside_a_checkpoint_of_torch(backend):
    """There, what was saved can be read only once."""
    from torch.utils.checkpoint import checkpoint

    found = []
    for call in (lambda x: checkpoint(attend, x, use_reentrant=False), attend):
        x = torch.tensor(drawn(17, (2, 4, 80, 8))[0], requires_grad=True)
        (g,) = torch.autograd.grad(call(x).sin().sum(), x, create_graph=True)
        found.append(torch.autograd.grad((g * g).sum(), x)[0])
    np.testing.assert_allclose(numpy_of(found[0]), numpy_of(found[1]), rtol=1e-10, atol=1e-12)


def attend(x):
    return iso.scaled_dot_product_attention(x, x * 2, x.sin())


def test_what_attention_saved_is_freed(backend):
    """At once, without the garbage collector, and while the result is still there."""
    gc.collect()
    gc.disable()
    try:
        x = torch.ones(2, 4, 80, 8, requires_grad=True)
        query = x * 1
        seen = weakref.ref(query)
        y = iso.scaled_dot_product_attention(query, x, x)
        del query
        assert seen() is not None  # the backward pass needs it
        y.sum().backward()
        assert seen() is None
        result = weakref.ref(y)
        del y
        assert result() is None
    finally:
        gc.enable()
