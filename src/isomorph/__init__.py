"""isomorph: gradients for the arrays you already have.

Write a function once over `iso.namespace(x)`; run and differentiate it on NumPy, JAX, TensorFlow
and PyTorch, the caller's own arrays in, the same kind out.
"""

# The package is bound first, so that the function of that name is what `iso.backends` means.
from . import backends as _backends  # noqa: F401
from .compile import jit
from .dispatch import prepare as _prepare
from .gradients.batching import vmap
from .gradients.checking import check_gradients
from .gradients.custom import bind_custom_gradient_function, custom_vjp
from .gradients.execute import execute_with_gradients
from .gradients.hidden import checkpoint
from .gradients.host import host_function
from .gradients.mode import gradient_tracking, set_with_grads, unset_with_grads, with_grads
from .gradients.transforms import (
    grad,
    hessian,
    hvp,
    jac,
    jvp,
    stop_gradient,
    value_and_grad,
    vjp,
)
from .home import arange, asarray, eye, full, linspace, namespace, ones, use_backend, zeros
from .indexing import at
from .inventory import backends
from .moving import convert, to_numpy
from .optimizers.updates import (
    adam_step,
    adam_update,
    gradient_descent_update,
    lamb_update,
    lars_update,
    optimizer_update,
)

__version__ = "0.1.0"

_prepare()

__all__ = [
    "adam_step",
    "adam_update",
    "arange",
    "asarray",
    "at",
    "backends",
    "bind_custom_gradient_function",
    "check_gradients",
    "checkpoint",
    "convert",
    "custom_vjp",
    "execute_with_gradients",
    "eye",
    "full",
    "grad",
    "gradient_descent_update",
    "gradient_tracking",
    "hessian",
    "host_function",
    "hvp",
    "jac",
    "jit",
    "jvp",
    "lamb_update",
    "lars_update",
    "linspace",
    "namespace",
    "ones",
    "optimizer_update",
    "set_with_grads",
    "stop_gradient",
    "to_numpy",
    "unset_with_grads",
    "use_backend",
    "value_and_grad",
    "vjp",
    "vmap",
    "with_grads",
    "zeros",
]
