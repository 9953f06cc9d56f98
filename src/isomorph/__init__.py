"""isomorph: gradients for the arrays you already have.

Write a function once over `iso.namespace(x)`; run and differentiate it on NumPy, JAX, TensorFlow
and PyTorch, the caller's own arrays in, the same kind out.
"""

from importlib import import_module as _import
from typing import TYPE_CHECKING, Any

# The subpackage is imported first, so that `iso.backends` is the function of that name.
from . import backends as _backends  # noqa: F401
from . import random as random
from .compiling import jit
from .creation import arange, asarray, eye, full, linspace, ones, zeros
from .default_backend import use_backend
from .dispatch import prepare as _prepare
from .flow import cond, fori_loop, scan, while_loop
from .gradients.batching import vmap
from .gradients.checking import check_gradients
from .gradients.checkpointing import checkpoint
from .gradients.custom import bind_custom_gradient_function, custom_vjp
from .gradients.execute import execute_with_gradients
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
from .indexing import at, span
from .installed import backends
from .layers.activation import (
    elu,
    gelu,
    hardswish,
    leaky_relu,
    log_softmax,
    logsumexp,
    mish,
    relu,
    sigmoid,
    silu,
    softmax,
    softplus,
)
from .layers.attention import grouped_query_attention, scaled_dot_product_attention
from .layers.conv import (
    conv1d,
    conv1d_transpose,
    conv2d,
    conv2d_transpose,
    conv3d,
    conv3d_transpose,
    conv_general_dilated,
    conv_general_transpose,
    depthwise_conv2d,
)
from .layers.dropout import dropout
from .layers.embedding import embedding
from .layers.heads import multi_head_attention
from .layers.linear import linear
from .layers.loss import binary_cross_entropy, cross_entropy, huber, kl_divergence, mae, mse
from .layers.norm import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    local_response_norm,
    rms_norm,
)
from .layers.pooling import adaptive_avg_pool, adaptive_max_pool, avg_pool, max_pool
from .layers.position import local_window_mask, rotary_embedding
from .layers.recurrent import gru_update, lstm_update
from .means import Mean
from .moving import convert, to_numpy
from .namespaces import namespace
from .version import __version__ as __version__

if TYPE_CHECKING:
    from . import export as export
    from . import optimizers as optimizers
    from .modules import initializers as initializers
    from .modules.conv import (
        Conv1D,
        Conv1DTranspose,
        Conv2D,
        Conv2DTranspose,
        Conv3D,
        Conv3DTranspose,
        DepthwiseConv2D,
    )
    from .modules.initializers import use_key
    from .modules.layers import (
        Activation,
        AdaptiveAvgPool,
        AdaptiveMaxPool,
        AvgPool,
        BatchNorm,
        Dropout,
        Embedding,
        Flatten,
        GroupNorm,
        LayerNorm,
        Linear,
        LocalResponseNorm,
        MaxPool,
        RMSNorm,
        Sequential,
    )
    from .modules.module import Module, summary
    from .modules.sequence import GRU, LSTM, MultiHeadAttention
    from .modules.state import State
    from .optimizers.pairs import Optimizer, apply_updates, chain
    from .optimizers.updates import (
        adam_step,
        adam_update,
        gradient_descent_update,
        lamb_update,
        lars_update,
        optimizer_update,
    )
    from .training import metrics as metrics
    from .training.checkpoint import load, save
    from .training.evaluating import evaluate
    from .training.fitting import Fit, NonFiniteError, fit
    from .training.replacing import CheckpointError
    from .training.stepping import TrainState, train_step


_prepare()

# Imported at first use, since most programs need little of it; by module.
_LATER = {
    "modules.initializers": "use_key",
    "modules.conv": (
        "Conv1D Conv1DTranspose Conv2D Conv2DTranspose Conv3D Conv3DTranspose DepthwiseConv2D"
    ),
    "modules.layers": (
        "Activation AdaptiveAvgPool AdaptiveMaxPool AvgPool BatchNorm Dropout Embedding "
        "Flatten GroupNorm LayerNorm Linear LocalResponseNorm MaxPool RMSNorm Sequential"
    ),
    "modules.module": "Module summary",
    "modules.sequence": "GRU LSTM MultiHeadAttention",
    "modules.state": "State",
    "optimizers.pairs": "Optimizer apply_updates chain",
    "optimizers.updates": (
        "adam_step adam_update gradient_descent_update lamb_update lars_update optimizer_update"
    ),
    "training.checkpoint": "load save",
    "training.evaluating": "evaluate",
    "training.fitting": "Fit NonFiniteError fit",
    "training.replacing": "CheckpointError",
    "training.stepping": "TrainState train_step",
}
_MODULES = {
    "export": "export",
    "optimizers": "optimizers",
    "initializers": "modules.initializers",
    "metrics": "training.metrics",
}
_PLACES = {name: module for module, names in _LATER.items() for name in names.split()}


_RECIPES = ("adam", "adamw", "lamb", "lars", "lion", "rmsprop", "sgd")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        found: Any = _import(f"{__name__}.{_MODULES[name]}")
    elif name in _PLACES:
        found = getattr(_import(f"{__name__}.{_PLACES[name]}"), name)
    else:
        other = f"; write iso.optimizers.{name}(lr)" if name in _RECIPES else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{other}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """What is public."""
    plumbing = [name for name in globals() if name.startswith("__")]
    return [*__all__, "random", *_MODULES, *plumbing]


__all__ = [
    "GRU",
    "LSTM",
    "Activation",
    "AdaptiveAvgPool",
    "AdaptiveMaxPool",
    "AvgPool",
    "BatchNorm",
    "CheckpointError",
    "Conv1D",
    "Conv1DTranspose",
    "Conv2D",
    "Conv2DTranspose",
    "Conv3D",
    "Conv3DTranspose",
    "DepthwiseConv2D",
    "Dropout",
    "Embedding",
    "Fit",
    "Flatten",
    "GroupNorm",
    "LayerNorm",
    "Linear",
    "LocalResponseNorm",
    "MaxPool",
    "Mean",
    "Module",
    "MultiHeadAttention",
    "NonFiniteError",
    "Optimizer",
    "RMSNorm",
    "Sequential",
    "State",
    "TrainState",
    "adam_step",
    "adam_update",
    "adaptive_avg_pool",
    "adaptive_max_pool",
    "apply_updates",
    "arange",
    "asarray",
    "at",
    "avg_pool",
    "backends",
    "batch_norm",
    "binary_cross_entropy",
    "bind_custom_gradient_function",
    "chain",
    "check_gradients",
    "checkpoint",
    "cond",
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "conv_general_dilated",
    "conv_general_transpose",
    "convert",
    "cross_entropy",
    "custom_vjp",
    "depthwise_conv2d",
    "dropout",
    "elu",
    "embedding",
    "evaluate",
    "execute_with_gradients",
    "eye",
    "fit",
    "fori_loop",
    "full",
    "gelu",
    "grad",
    "gradient_descent_update",
    "gradient_tracking",
    "group_norm",
    "grouped_query_attention",
    "gru_update",
    "hardswish",
    "hessian",
    "host_function",
    "huber",
    "hvp",
    "instance_norm",
    "jac",
    "jit",
    "jvp",
    "kl_divergence",
    "lamb_update",
    "lars_update",
    "layer_norm",
    "leaky_relu",
    "linear",
    "linspace",
    "load",
    "local_response_norm",
    "local_window_mask",
    "log_softmax",
    "logsumexp",
    "lstm_update",
    "mae",
    "max_pool",
    "mish",
    "mse",
    "multi_head_attention",
    "namespace",
    "ones",
    "optimizer_update",
    "relu",
    "rms_norm",
    "rotary_embedding",
    "save",
    "scaled_dot_product_attention",
    "scan",
    "set_with_grads",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "span",
    "stop_gradient",
    "summary",
    "to_numpy",
    "train_step",
    "unset_with_grads",
    "use_backend",
    "use_key",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
    "with_grads",
    "zeros",
]
