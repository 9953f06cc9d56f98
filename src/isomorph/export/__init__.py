"""A module as a native object of the frameworks around, and torch's weights in a module.

Each function imports its framework when it is called. An export holds copies: training it leaves
the model it was made of as it was.

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
    """What is public."""
    return [*__all__, *(name for name in globals() if name.startswith("__"))]


def to_torch(model: Module, /) -> TorchExported:
    """The model as a `torch.nn.Module`: its variables are parameters, named by their key chains
    with dots, its state and frozen arrays are buffers.

    In train mode a call writes new state into the buffers. Integer arrays that are no state are
    buffers that `state_dict` leaves out; state that is no array is kept beside. `train` and `eval`
    reach the model inside, and `to_isomorph()` gives it back with the present values.

    >>> net = iso.export.to_torch(iso.Sequential(iso.Linear(3, 2, key=0), iso.relu))
    >>> {name: tuple(x.shape) for name, x in net.named_parameters()}
    {'layers.0.b': (2,), 'layers.0.w': (2, 3)}
    """
    from .torch import Exported

    return Exported(model)


def to_keras(model: Module, /, **settings: Any) -> KerasExported:
    """The model as a `keras.Layer`: its variables are trainable weights, its state and frozen
    arrays are not trainable. `settings` are those of a layer, such as `name`.

    Keras must run on TensorFlow. As for Keras' own layers, a call trains the model, and writes new
    state, where `training` is true, as in `fit`, and only there. `to_isomorph()` gives the model
    with the present values.

    >>> layer = iso.export.to_keras(iso.Linear(3, 2, key=0), name="head")
    >>> [weight.path for weight in layer.trainable_weights]
    ['head/b', 'head/w']
    """
    from .keras import Exported

    return Exported(model, **settings)


def to_jax(model: Module, /) -> JaxExported:
    """The model as a pair for JAX: `params`, a nest of arrays, and pure functions of it.

    `exported(params, *args)` computes a model without state; `exported.apply(params, state, *args)`
    gives `(out, new state)` of any, beginning with `exported.state`. Whether the model is training
    is settled when it is exported: export `model.eval()` too where both are needed.

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
    """The model itself, its variables and state set to a torch state dict, which is copied and
    cast to the model's dtypes.

    Without `names` both must have the same form: equal paths, the layers of a `Sequential` by
    number. `torch_names(model)` shows what is expected. `weight` and `bias` are `w` and `b`,
    `running_mean` and `running_var` are `mean` and `variance`; `num_batches_tracked` is passed
    over, and so are keys of dropout. Weights of convolutions and recurrent layers are put into our
    order of axes; those of linear layers, embeddings, norms and attention are equal in both, and
    arrays of your own modules are taken as they are.

    Channels of images are first in torch and last here, unless `data_format` says otherwise. Where
    a `Sequential` flattens an image of more than one pixel, the linear layer and the norms after it
    are put into our order too; where a forward of your own may do so, or a function that is not
    known, they are refused until `names` has a function for them, such as `flat_weight`. Features
    that such a forward makes into an image are not noticed.

    `names` says of torch names where they go: a key chain such as "encoder/w"; a pair of a key
    chain and a function of the NumPy array, in place of our reordering; or None, to pass over it.
    A dict adds to what is expected anyway, a function is asked for every name. All that is missing,
    unknown, of another shape or in doubt is listed in one error.

    >>> layer = iso.Linear(2, 1, key=0)
    >>> given = {"weight": np.array([[1.0, 2.0]]), "offset": np.array([3.0])}
    >>> iso.export.from_torch_state_dict(layer, given, {"offset": "b"}).v
    {'w': array([[1., 2.]], dtype=float32), 'b': array([3.], dtype=float32)}
    """
    return load(model, state_dict, names)
