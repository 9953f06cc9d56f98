"""isomorph: gradients for the arrays you already have.

Write a function once over `iso.namespace(x)`; run and differentiate it on NumPy, JAX, TensorFlow
and PyTorch, the caller's own arrays in, the same kind out.
"""

# The package is bound first, so that the function of that name is what `iso.backends` means.
from . import backends as _backends  # noqa: F401
from .gradients.transforms import grad, stop_gradient, value_and_grad, vjp
from .home import arange, asarray, eye, full, linspace, namespace, ones, use_backend, zeros
from .indexing import at
from .inventory import backends
from .moving import convert, to_numpy

__version__ = "0.1.0"

__all__ = [
    "arange",
    "asarray",
    "at",
    "backends",
    "convert",
    "eye",
    "full",
    "grad",
    "linspace",
    "namespace",
    "ones",
    "stop_gradient",
    "to_numpy",
    "use_backend",
    "value_and_grad",
    "vjp",
    "zeros",
]
