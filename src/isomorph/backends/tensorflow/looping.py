"""Loops that are one loop in a graph, with derivatives of every order, and that XLA compiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf


def while_loop(goes_on: Callable, body: Callable, arrays: tuple, n: int | None = None) -> tuple:
    """`Backend.while_loop` inside a graph; `n` is the number of steps, if it is known."""
    return tuple(
        tf.while_loop(
            lambda *a: tf.convert_to_tensor(goes_on(*a)),
            lambda *a: list(body(*a)),
            list(map(tf.convert_to_tensor, arrays)),
            maximum_iterations=n,
        )
    )


def fori_loop(xp: Any, lower: Any, upper: Any, body: Callable, arrays: tuple) -> tuple:
    """`Backend.fori_loop` inside a graph. For a gradient XLA needs to know the number of steps."""
    known = type(lower) is type(upper) is int
    start = xp.counter(lower, arrays) if type(lower) is int else lower
    if type(upper) is not int:
        start, upper = tf.cast(start, tf.int64), tf.cast(upper, tf.int64)
    _, *arrays = while_loop(  # pyright: ignore
        lambda i, *_: i < upper,
        lambda i, *a: (i + 1, *body(i, *a)),
        (start, *arrays),
        max(0, upper - lower) if known else None,
    )
    return tuple(arrays)


def scan(
    step: Callable, carry: tuple, xs: tuple, n: int | None, reverse: bool
) -> tuple[tuple, tuple]:
    """`Backend.scan` inside a graph. XLA needs to know the number of steps beforehand."""
    xs = tuple(map(tf.convert_to_tensor, xs))
    count = tf.shape(xs[0])[0] if n is None else n
    # a step whose results are not used or computed: it only shows their shapes and dtypes
    likes = step(carry, tuple(x[0] for x in xs))[1]
    given = [tf.TensorArray(x.dtype, size=count, element_shape=x.shape[1:]).unstack(x) for x in xs]
    taken = [tf.TensorArray(y.dtype, size=count, element_shape=y.shape) for y in likes]

    def body(t: Any, carry: list, taken: list) -> tuple:
        at = count - 1 - t if reverse else t
        carry, ys = step(tuple(carry), tuple(part.read(at) for part in given))
        return t + 1, list(carry), [a.write(at, y) for a, y in zip(taken, ys)]

    first = list(map(tf.convert_to_tensor, carry))
    _, last, taken = tf.while_loop(
        lambda t, *_: t < count, body, (tf.constant(0), first, taken), maximum_iterations=n
    )
    return tuple(last), tuple(a.stack() for a in taken)
