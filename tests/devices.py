"""The device axis: `pytest --device cuda` makes the arrays of the suite on that device.

The frameworks' own default device is set around each test, so arrays that a test makes without a
word about devices lie there. A test during which nothing was allocated on the device fails: it
would prove nothing. Matrix products and convolutions have full precision, as on a CPU.
"""

from contextlib import ExitStack, contextmanager
from functools import cache

from frameworks import NOT_INSTALLED, jax, torch

from isomorph.dispatch import load

BACKENDS = ("jax", "torch")  # those that can be told where to make arrays, and asked what they made


@cache
def device_of(backend, name):
    """The device of a backend by its name, or None if the backend has no such device."""
    if backend not in BACKENDS or backend in NOT_INSTALLED:
        return None
    try:
        return load(backend).device(name)
    except ValueError:
        return None


@contextmanager
def made_on(backend, name):
    """Within the block, the framework makes its arrays on this device."""
    device = device_of(backend, name)
    with ExitStack() as stack:
        if backend == "jax":
            stack.enter_context(jax.default_device(device))
            stack.enter_context(jax.default_matmul_precision("highest"))
        else:
            for part in (torch.backends.cuda.matmul, torch.backends.cudnn):
                stack.callback(setattr, part, "allow_tf32", part.allow_tf32)
                part.allow_tf32 = False
            stack.enter_context(torch.device(device))
        yield


def allocations(backend, name):
    """How often memory of the device was allocated by now; None for a device that does not count,
    such as a CPU.
    """
    device = device_of(backend, name)
    if backend == "jax":
        counted = device.memory_stats()
        return None if counted is None else counted["num_allocs"]
    if torch.device(device).type != "cuda":
        return None
    return torch.cuda.memory_stats(device).get("allocation.all.allocated", 0)
