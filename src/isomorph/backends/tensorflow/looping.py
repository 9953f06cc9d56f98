"""A loop that a graph has as one loop, with derivatives of every order, and XLA compiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from ... import tree


def scan(step: Callable, carry: Any, xs: Any) -> tuple[Any, Any]:
    """`Backend.scan` inside a graph. XLA wants to know the number of steps beforehand."""
    rows, x_form = tree.flatten(xs)
    state, c_form = tree.flatten(carry)
    n = rows[0].shape[0]
    count = tf.shape(rows[0])[0] if n is None else n
    # a step whose results nobody uses, and no program computes: it tells what they are
    likes, y_form = tree.flatten(step(carry, tree.unflatten(x_form, [x[0] for x in rows]))[1])
    given = [
        tf.TensorArray(x.dtype, size=count, element_shape=x.shape[1:]).unstack(x) for x in rows
    ]
    taken = [tf.TensorArray(y.dtype, size=count, element_shape=y.shape) for y in likes]

    def body(t: Any, state: list, taken: list) -> tuple:
        x = tree.unflatten(x_form, [part.read(t) for part in given])
        carry, y = step(tree.unflatten(c_form, state), x)
        ys = tree.flatten(y)[0]
        return t + 1, tree.flatten(carry)[0], [a.write(t, y) for a, y in zip(taken, ys)]

    _, state, taken = tf.while_loop(
        lambda t, *_: t < count, body, (tf.constant(0), state, taken), maximum_iterations=n
    )
    return tree.unflatten(c_form, state), tree.unflatten(y_form, [a.stack() for a in taken])
