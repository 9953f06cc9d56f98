"""Export to a `keras.Layer`, for Keras on TensorFlow. Its weights contain `tf.Variable`s, so that
`tf.GradientTape` finds them too.
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from ..modules.state import State
from .parts import Part, is_array, joined, leaves_again, spread, taken_apart

BACKEND = "tensorflow"


class Weights:
    """The Keras weights for one variable of the model or for one of its states. A state may be a
    nest, and then it has one weight per array.
    """

    def __init__(self, layer: Any, part: Part, trainable: bool):
        self.number, self.is_state = part.number, part.is_state
        leaves, self.form = spread(part.value, part.path)
        self.leaves = tuple(
            _weight(layer, path, x, trainable) if is_array(x) else x for path, x in leaves
        )

    def values(self) -> list[Any]:
        return [_tensor(x) if isinstance(x, keras.Variable) else x for x in self.leaves]

    def keep(self, given: list[Any], new: Any) -> None:
        leaves = leaves_again("to_keras", self.form, new, [is_array(x) for x in given])
        for weight, old, x in zip(self.leaves, given, leaves):
            if isinstance(weight, keras.Variable):
                if x is not old:
                    weight.assign(x)
            elif x is not old and x != old:
                raise TypeError(
                    f"to_keras: needed an array for state that changes, got a {type(x).__name__}, "
                    "whose first value a traced function keeps; use iso.State(iso.asarray(...))"
                )


class Exported(keras.Layer):
    """See `iso.export.to_keras`."""

    def __init__(self, model: Any, **settings: Any):
        if keras.backend.backend() != BACKEND:
            raise RuntimeError(
                f"to_keras: needed Keras to run on {BACKEND}, got {keras.backend.backend()}; set "
                f"KERAS_BACKEND={BACKEND} before Keras is imported"
            )
        form, variables, state, constants = taken_apart("to_keras", model, BACKEND)
        dtypes = {part.value.dtype.name for part in variables}
        if len(dtypes) == 1:
            settings.setdefault("dtype", dtypes.pop())
        elif dtypes:  # do not cast inputs to one of several dtypes
            settings.setdefault("autocast", False)
        super().__init__(**settings)
        self._isomorph = form
        self._isomorph_parts = tuple(
            Weights(self, part, each is variables) for each in (variables, state) for part in each
        )
        self._isomorph_constants = tuple(
            (part.number, tf.identity(part.value)) for part in constants
        )
        self.built = True

    def call(self, x: Any, *args: Any, training: bool | None = None, **kw: Any) -> Any:
        leaves: dict[int, Any] = dict(self._isomorph_constants)
        states = []
        for weights in self._isomorph_parts:
            given = weights.values()
            value = joined(weights.form, list(given))
            if weights.is_state:
                value = State(value, lent=True)
                states.append((weights, given, value))
            leaves[weights.number] = value
        model = self._isomorph.copy(leaves)
        model.train(bool(training))
        out = model.forward(x, *args, **kw)
        if training:
            for weights, given, state in states:
                weights.keep(given, state.value)
        return out

    def get_config(self) -> Any:
        raise NotImplementedError(
            "to_keras: an exported module has no config; save the weights with save_weights, or "
            "the computation with Model.export"
        )

    def to_isomorph(self) -> Any:
        """The model, with copies of the current values."""
        values = {number: tf.identity(x) for number, x in self._isomorph_constants}
        for weights in self._isomorph_parts:
            leaves = [
                tf.identity(x.value) if isinstance(x, keras.Variable) else x for x in weights.leaves
            ]
            values[weights.number] = joined(weights.form, leaves)
        return self._isomorph.filled(values)


def _weight(layer: Any, path: tuple, x: Any, trainable: bool) -> Any:
    return layer.add_weight(
        name=".".join(map(str, path)).replace("/", "."), shape=tuple(x.shape), dtype=x.dtype.name,
        initializer=lambda shape, dtype: tf.identity(x), trainable=trainable, autocast=trainable,
    )  # fmt: skip


def _tensor(weight: Any) -> Any:
    return tf.convert_to_tensor(weight.value)
