"""A small instance of every module class, called with parts of a vector. The same key gives the
same weights on every backend.
"""

from functools import cache, partial

import numpy as np
from border_functions import cut, ints

import isomorph as iso
from examples import LAYERS
from oracles import name_of


class Scaled(iso.Module):
    """A user-defined module."""

    def __init__(self):
        self.scale = iso.asarray([0.5, -1.5, 2.0])

    def forward(self, x):
        return x * self.scale


# How to make the module, and the shape of its input.
MODULES = {
    **{name: (partial(e.make, iso), e.shape) for name, e in LAYERS.items()},
    "Activation": (lambda: iso.Activation("gelu"), (4, 6)),
    "AdaptiveAvgPool": (lambda: iso.AdaptiveAvgPool((3, 4)), (1, 4, 6, 1)),
    "AdaptiveMaxPool": (lambda: iso.AdaptiveMaxPool((3, 4)), (1, 4, 6, 1)),
    "AvgPool": (lambda: iso.AvgPool(2, 1), (1, 4, 6, 1)),
    "BatchNorm": (lambda: iso.BatchNorm(3), (8, 3)),
    "Conv1D": (lambda: iso.Conv1D(2, 3, 3), (2, 6, 2)),
    "Conv1DTranspose": (lambda: iso.Conv1DTranspose(2, 3, 3, 2), (2, 6, 2)),
    "Conv2D": (lambda: iso.Conv2D(2, 3, 3), (1, 4, 3, 2)),
    "Conv2DTranspose": (lambda: iso.Conv2DTranspose(2, 2, 2, 2), (1, 4, 3, 2)),
    "Conv3D": (lambda: iso.Conv3D(2, 2, 2), (1, 3, 2, 2, 2)),
    "Conv3DTranspose": (lambda: iso.Conv3DTranspose(2, 2, 2), (1, 3, 2, 2, 2)),
    "DepthwiseConv2D": (lambda: iso.DepthwiseConv2D(2, 2), (1, 4, 3, 2)),
    "Dropout": (lambda: iso.Dropout(0.4), (4, 6)),
    "Embedding": (lambda: iso.Embedding(4, 3), None),
    "Flatten": (lambda: iso.Flatten(), (4, 3, 2)),
    "GRU": (lambda: iso.GRU(3, 2), (2, 4, 3)),
    "GroupNorm": (lambda: iso.GroupNorm(4, 2), (2, 3, 4)),
    "LSTM": (lambda: iso.LSTM(3, 2), (2, 4, 3)),
    "LayerNorm": (lambda: iso.LayerNorm(6), (4, 6)),
    "Linear": (lambda: iso.Linear(6, 3), (4, 6)),
    "MaxPool": (lambda: iso.MaxPool(2), (1, 4, 6, 1)),
    "Module": (Scaled, (8, 3)),
    "MultiHeadAttention": (lambda: iso.MultiHeadAttention(4, 2), (2, 3, 4)),
    "RMSNorm": (lambda: iso.RMSNorm(6), (4, 6)),
    "Sequential": (
        lambda: iso.Sequential(iso.Linear(6, 4), iso.Activation("relu"), iso.Linear(4, 2)),
        (4, 6),
    ),
}


@cache
def module(name, backend):
    """The module of a backend, in float64."""
    with iso.use_backend(backend, dtype="float64"), iso.use_key(3):
        return MODULES[name][0]()


def called(name):
    """A function of one vector that calls a module with part of it. The module's state stays
    unchanged.
    """
    shape = MODULES[name][1]

    def call(x):
        made = module(name, name_of(iso.namespace(x)))
        if shape is None:  # ids have no gradient: differentiate the weights
            weights = {"w": cut(x)(4, 3)}
            return made(ints(x, [2, 0, 2]), v=weights)
        out, _ = made.apply(made.v, made.state, cut(x)(*shape))
        return out

    return call


def check_names():
    """Check that every module class is listed here."""
    classes = {
        name
        for name in iso.__all__
        if isinstance(getattr(iso, name), type) and issubclass(getattr(iso, name), iso.Module)
    }
    assert classes == set(MODULES), classes ^ set(MODULES)
    return np.array(sorted(classes))
