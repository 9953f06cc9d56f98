"""Compiled programs in TensorFlow: one concrete function per shape and dtype of the arguments, by
XLA unless it calls into Python.

Not `reduce_retracing`: it forgets sizes after the second shape, and then `x.shape[0]` is None where
every other framework has a number. XLA compiles per shape anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from . import dtypes
from .kernels import Eager

HOST = {"PyFunc", "PyFuncStateless", "EagerPyFunc"}  # XLA has none of these


def program(func: Callable[..., tuple], arrays: Sequence[Any]) -> Callable[..., Any]:
    """What computes `func`, a function of tensors, for tensors like `arrays`."""
    values = [dtypes.tensor(x) for x in arrays]
    specs = [tf.TensorSpec(x.shape, x.dtype) for x in values]
    run = tf.function(func, autograph=False, jit_compile=True).get_concrete_function(*specs)
    if _calls_python(run.graph):
        run = tf.function(func, autograph=False).get_concrete_function(*specs)
    if all(type(x) is Eager for x in arrays):
        return run
    return lambda *arrays: run(*(dtypes.tensor(x) for x in arrays))


def has_rules(graph: Any) -> bool:
    """Whether a graph has operations with a backward rule of their own."""
    return any(
        n.attr["_gradient_op_type"].s for n in _nodes(graph) if "_gradient_op_type" in n.attr
    )


def _calls_python(graph: Any) -> bool:
    return any(node.op in HOST for node in _nodes(graph))


def _nodes(graph: Any) -> list[Any]:
    """The operations of a graph and of the functions it calls."""
    definition = graph.as_graph_def()
    return [*definition.node, *(n for f in definition.library.function for n in f.node_def)]


def is_tracing(arrays: Sequence[Any]) -> bool:
    """Whether the arrays are the symbols of a graph."""
    return any(type(x) is not Eager and type(dtypes.tensor(x)) is not Eager for x in arrays)


def signature(arrays: Sequence[Any]) -> tuple:
    """What a program is made for."""
    return tuple([(type(x), _shape(x), x.dtype) for x in arrays])


def _shape(x: Any) -> tuple:
    return x._shape_tuple() if type(x) is Eager else tuple(x.shape)  # a fifth of the time
