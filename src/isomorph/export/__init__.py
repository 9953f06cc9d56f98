"""Export modules to torch, Keras and JAX, and load torch's weights into modules.

Each function imports its framework when it is called. An export holds copies of the arrays:
training it does not change the original model.

>>> net = iso.Sequential(iso.Linear(3, 4, key=0), iso.relu, iso.Linear(4, 1, key=1))
>>> sorted(iso.export.torch_names(net))
['0.bias', '0.weight', '2.bias', '2.weight']
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..modules.module import Module
from .loading import (
    conv_weight,
    depthwise_weight,
    load,
    recurrent_weight,
    torch_names,
    transpose_weight,
)
from .ordering import flat_weight

if TYPE_CHECKING:
    from .jax import Exported as JaxExported
    from .keras import Exported as KerasExported
    from .torch import Exported as TorchExported

__all__ = [
    "conv_weight",
    "depthwise_weight",
    "flat_weight",
    "from_torch_state_dict",
    "recurrent_weight",
    "to_jax",
    "to_keras",
    "to_torch",
    "torch_names",
    "transpose_weight",
]


def __dir__() -> list[str]:
    """The public names."""
    return [*__all__, *(name for name in globals() if name.startswith("__"))]


def to_torch(model: Module, /) -> TorchExported:
    """The model as a `torch.nn.Module`. Variables become parameters, named by their key chains with
    dots; state and frozen arrays become buffers.

    In train mode a call writes new state into the buffers. Constants, such as integer arrays,
    become buffers that are not in `state_dict`. State that is not an array is kept, but not as a
    buffer. `train` and `eval` also set the mode of the model inside. `to_isomorph()` returns the
    model with the current values.

    >>> net = iso.export.to_torch(iso.Sequential(iso.Linear(3, 2, key=0), iso.relu))
    >>> {name: tuple(x.shape) for name, x in net.named_parameters()}
    {'layers.0.b': (2,), 'layers.0.w': (2, 3)}
    """
    from .torch import Exported

    return Exported(model)


def to_keras(model: Module, /, **settings: Any) -> KerasExported:
    """The model as a `keras.Layer`. Variables become trainable weights; state and frozen arrays
    become weights that are not trainable. `settings` are those of a layer, such as `name`.

    Keras must run on TensorFlow. As with Keras' own layers, a call uses train mode and writes new
    state only if `training` is true, as in `fit`. `to_isomorph()` returns the model with the
    current values.

    >>> layer = iso.export.to_keras(iso.Linear(3, 2, key=0), name="head")
    >>> [weight.path for weight in layer.trainable_weights]
    ['head/b', 'head/w']
    """
    from .keras import Exported

    return Exported(model, **settings)


def to_jax(model: Module, /) -> JaxExported:
    """The model for JAX: `params`, a nest of arrays, and pure functions of it.

    `exported(params, *args)` calls a model without state. `exported.apply(params, state, *args)`
    calls any model and returns `(out, new state)`; the first state is `exported.state`. Train or
    eval mode is fixed by the export: if you need both, export `model.eval()` too.

    >>> exported = iso.export.to_jax(iso.Linear(3, 2, key=0))
    >>> x = iso.convert(np.ones((5, 3), np.float32), "jax")
    >>> exported(exported.params, x).shape
    (5, 2)
    """
    from .jax import Exported

    return Exported(model)


def from_torch_state_dict(
    model: Module,
    state_dict: Mapping[str, Any],
    names: Mapping[str, Any] | Callable[[str], Any] | None = None,
) -> Module:
    """Set the variables and state of a model to a torch state dict, and return the model. The
    arrays are copied and cast to the model's dtypes.

    Without `names`, both models must have the same structure: equal paths, with numbers for the
    layers of a `Sequential`. `torch_names(model)` shows the expected names. `weight` and `bias` are
    our `w` and `b`; `running_mean` and `running_var` are `mean` and `variance`.
    `num_batches_tracked` is ignored, and our random keys for dropout stay. Weights of convolutions
    and recurrent layers are transposed to our order of axes. Those of linear layers, embeddings,
    norms and attention are equal in both. Arrays of your own modules are not reordered.

    Channels of images are first in torch and last here, unless `data_format` says otherwise. If a
    `Sequential` flattens an image of more than one pixel, the weights of the linear layer and the
    norms after it are reordered too. If your own `forward`, or an unknown function, may flatten an
    image, these weights are refused until `names` has a function for them, such as `flat_weight`.
    It is not detected if such a `forward` reshapes features into an image.

    `names` maps torch names to a key chain such as "encoder/w"; to a pair of a key chain and a
    function of the NumPy array, which replaces our reordering; or to None, to ignore the array. A
    dict adds to the expected names; a function is called for every name. One error lists all arrays
    that are missing, unknown, of the wrong shape or of uncertain order.

    >>> layer = iso.Linear(2, 1, key=0)
    >>> given = {"weight": np.array([[1.0, 2.0]]), "offset": np.array([3.0])}
    >>> iso.export.from_torch_state_dict(layer, given, {"offset": "b"}).v
    {'w': array([[1., 2.]], dtype=float32), 'b': array([3.], dtype=float32)}
    """
    return load(model, state_dict, names)
