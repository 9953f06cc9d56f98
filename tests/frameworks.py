"""The frameworks as tests import them: `from frameworks import jax, tf, torch`.

A framework that is not installed is replaced by a placeholder. Its attributes are placeholders too,
nothing is an instance of them, and a call skips the test; during collection a call gives another
placeholder. So every test module can be collected anywhere, and tests that need no missing
framework run.
"""

from contextlib import nullcontext
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec

import pytest

from isomorph.core.dispatch import load

BACKENDS = ("numpy", "jax", "tensorflow", "torch")
MISSING = "{} is not installed"
NOT_INSTALLED = tuple(name for name in BACKENDS if not find_spec(name))


class Missing:
    """The placeholder for something that is not installed."""

    running = False  # True once tests run, False during collection

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
    """The module of that name, or its placeholder."""
    return import_module(name) if find_spec(name.partition(".")[0]) else Missing(name)


def ours(name):
    """The module `isomorph.backends.<name>`, or a placeholder if its framework is missing."""
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


ABSENT = {  # all packages that tests import and that are missing
    root for root in (name.partition(".")[0] for name in MODULES.values()) if not find_spec(root)
}


def older(name, *than):
    """Whether an installed framework is older than a version: `older("torch", 2, 10)`."""
    if not find_spec(name):
        return False
    return tuple(int(part) for part in version(name).split(".")[: len(than)]) < than


def enable_x64(on):
    """A context with JAX's 64-bit types on or off; does nothing if JAX is not installed."""
    if "jax" in NOT_INSTALLED:
        return nullcontext()
    return import_module("jax").enable_x64(on)


def __getattr__(name):  # imports a framework when a test first uses it
    if name not in MODULES:
        raise AttributeError(name)
    return installed(MODULES[name])
