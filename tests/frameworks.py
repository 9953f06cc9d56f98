"""The frameworks as tests name them: `from frameworks import jax, tf, torch`.

One that is not installed is a name all the same: its attributes are names too, nothing is an
instance of them, and calling one leaves the test out, or, while tests are still being collected,
gives such a name again. So every module of the tests is collected wherever the tests run, and what
needs no missing framework runs.
"""

from contextlib import nullcontext
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec

import pytest

from isomorph.dispatch import load

BACKENDS = ("numpy", "jax", "tensorflow", "torch")
MISSING = "{} is not installed"
NOT_INSTALLED = tuple(name for name in BACKENDS if not find_spec(name))


class Missing:
    """What stands for something that is not installed."""

    running = False  # whether tests are being run, not collected

    def __init__(self, name):
        self.name = name

    def __getattr__(self, item):
        if item.startswith("__"):
            raise AttributeError(item)
        return Missing(f"{self.name}.{item}")

    def __call__(self, *args, **kw):
        if not self.running:
            return self
        pytest.skip(MISSING.format(self.name.partition(".")[0]))

    __enter__ = __getitem__ = __call__
    __add__ = __radd__ = __mul__ = __rmul__ = __sub__ = __truediv__ = __neg__ = __call__

    def __exit__(self, *error): ...

    def __mro_entries__(self, bases):
        return ()

    def __instancecheck__(self, instance):
        return False

    def __repr__(self):
        return f"{self.name}, which is not installed"


def installed(name):
    """The module of that name, or what stands for it."""
    return import_module(name) if find_spec(name.partition(".")[0]) else Missing(name)


def ours(name):
    """`isomorph.backends.<name>`, whose first part is a framework's name, or what stands for it."""
    if not find_spec(name.partition(".")[0]):
        return Missing(name)
    return import_module(f"isomorph.backends.{name}") if "." in name else load(name)


MODULES = {
    "torch": "torch",
    "functional": "torch.nn.functional",
    "forward_ad": "torch.autograd.forward_ad",
    "proxy_tensor": "torch.fx.experimental.proxy_tensor",
    "jax": "jax",
    "jnp": "jax.numpy",
    "tf": "tensorflow",
    "keras": "keras",
    "optax": "optax",
    "ml_dtypes": "ml_dtypes",
    "strict": "array_api_strict",
}


ABSENT = {  # all that tests name and that is not there
    root for root in (name.partition(".")[0] for name in MODULES.values()) if not find_spec(root)
}


def older(name, *than):
    """Whether an installed framework is older than a version, `older("torch", 2, 10)`."""
    if not find_spec(name):
        return False
    return tuple(int(part) for part in version(name).split(".")[: len(than)]) < than


def enable_x64(on):
    """JAX with 64-bit types or without, in a context; nothing where JAX is not installed."""
    if "jax" in NOT_INSTALLED:
        return nullcontext()
    return import_module("jax").enable_x64(on)


def __getattr__(name):  # each is imported when a test names it
    if name not in MODULES:
        raise AttributeError(name)
    return installed(MODULES[name])
