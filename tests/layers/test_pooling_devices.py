"""Pooling on every torch device of this machine: gradients are compared with the composed form. A
canary watches the wrong GPU kernel.
"""

import subprocess
import sys

import pytest
from frameworks import NOT_INSTALLED, torch
from frameworks import functional as F

import isomorph as iso
from isomorph.backends.composed import Backend
from isomorph.core.dispatch import load

pytestmark = pytest.mark.parametrize("backend", ["torch"], indirect=True)
WEIGHTS = torch.cos(torch.arange(2 * 9 * 9 * 3, dtype=torch.float64))
DEVICES = ["cpu"] if "torch" in NOT_INSTALLED else load("torch").devices()


def image(device):
    return (
        torch.sin(torch.arange(2 * 9 * 9 * 3, dtype=torch.float64)).reshape(2, 9, 9, 3).to(device)
    )


def gradient(pool, x):
    def total(x):
        y = pool(x)
        return (y * WEIGHTS[: y.numel()].reshape(y.shape).to(y.device)).sum()

    return iso.grad(total)(x)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("pads", ["VALID", "SAME", 1])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("pool", [iso.avg_pool, iso.max_pool])
def test_gradients_are_those_of_the_composed_meaning(
    backend, monkeypatch, device, pads, stride, pool
):
    x = image(device)
    run = lambda x: pool(x, 3, stride, pads)
    value, found = run(x), gradient(run, x)
    monkeypatch.setattr(type(load("torch")), "pool", Backend.pool)
    torch.testing.assert_close(value, run(x), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(found, gradient(run, x), rtol=1e-10, atol=1e-12)
    assert found.device == x.device


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("pool", [iso.avg_pool, iso.max_pool])
def test_one_channel_is_first_and_last(backend, monkeypatch, device, pool):
    """torch then takes any order of memory for either."""
    x = image(device)[..., :1]
    for run in (lambda x: pool(x, 2, 1, 1), lambda x: pool(x[:, :, 0], 3, 1, 1)):
        with monkeypatch.context() as patch:
            value, found = run(x), gradient(run, x)
            patch.setattr(type(load("torch")), "pool", Backend.pool)
            torch.testing.assert_close(value, run(x), rtol=1e-12, atol=1e-12)
            torch.testing.assert_close(found, gradient(run, x), rtol=1e-10, atol=1e-12)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="the wrong kernel is for GPUs")
def test_torchs_own_gradient_is_still_wrong_on_a_gpu(backend):
    """A canary: if this fails, torch has fixed its kernel, and `pooling.py` need not avoid it."""
    last = image("cuda").permute(0, 3, 1, 2)  # channels second in shape, last in memory
    pool = lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False)
    right = gradient(pool, last.contiguous())
    assert float((gradient(pool, last) - right).abs().max()) > 1e-3


MISALIGNED = """
import torch
x = torch.ones((1, 2, 1), dtype=torch.float64, device="cuda").permute(0, 2, 1)
torch.max_pool1d(x, 2, 2, 0)
torch.cuda.synchronize()
"""


@pytest.mark.skipif(not torch.cuda.is_available(), reason="the wrong kernel is for GPUs")
def test_torchs_own_maximum_is_still_misaligned_on_a_gpu(backend):
    """A canary, in a process of its own, which the error ends."""
    done = subprocess.run([sys.executable, "-c", MISALIGNED], capture_output=True, text=True)
    assert "misaligned address" in done.stderr
    x = torch.ones((1, 2, 1), dtype=torch.float64, device="cuda")
    assert float(iso.max_pool(x, 2).sum()) == 1.0
