"""Compiled programs in TensorFlow: one concrete function per shape and dtype of the arguments, by
XLA unless it has something that XLA lacks: calls into Python, the gradient of a loop whose number
of steps is not known, loops that were vectorized.

Not `reduce_retracing`: it forgets sizes after the second shape, and then `x.shape[0]` is None where
every other framework has a number. XLA compiles per shape anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from . import dtypes
from .kernels import Eager

HOST = {"PyFunc", "PyFuncStateless", "EagerPyFunc"}  # they call into Python
VARIANT = tf.variant.as_datatype_enum


def program(func: Callable[..., tuple], arrays: Sequence[Any]) -> Callable[..., Any]:
    """What computes `func`, a function of tensors, for tensors like `arrays`."""
    values = [dtypes.tensor(x) for x in arrays]
    specs = [tf.TensorSpec(x.shape, x.dtype) for x in values]
    run = tf.function(func, autograph=False, jit_compile=True).get_concrete_function(*specs)
    if _is_beyond_xla(run.graph):
        run = tf.function(func, autograph=False).get_concrete_function(*specs)
    if all(type(x) is Eager for x in arrays):
        return run
    return lambda *arrays: run(*(dtypes.tensor(x) for x in arrays))


def has_rules(graph: Any) -> bool:
    """Whether a graph has operations with a backward rule of their own."""
    return any(
        n.attr["_gradient_op_type"].s for n in _nodes(graph) if "_gradient_op_type" in n.attr
    )


def has_kept_values(graph: Any) -> bool:
    """Whether a graph has branches or loops that keep something for their gradient, which cannot
    be vectorized.
    """
    for n in _nodes(graph):
        if n.op == "TensorListPopBack":
            return True
        if n.op in ("If", "StatelessIf") and VARIANT in n.attr["Tout"].list.type:
            return True
    return False


def _is_beyond_xla(graph: Any) -> bool:
    """Whether a graph has operations that XLA has not."""
    for nodes in _scopes(graph):
        named = {n.name: n for n in nodes}
        for node in nodes:
            if node.op in HOST or node.op == "TensorListScatterIntoExistingList":
                return True
            if node.op == "TensorListReserve" and node.attr["element_dtype"].type == VARIANT:
                return True
            if node.op == "EmptyTensorList":  # a stack: XLA wants to know how high it grows
                size = named.get(node.input[1].partition(":")[0])
                if size is None or size.op != "Const":
                    return True
                if tf.make_ndarray(size.attr["value"].tensor) < 0:
                    return True
    return False


def _nodes(graph: Any) -> list[Any]:
    """The operations of a graph and of the functions it calls."""
    return [node for nodes in _scopes(graph) for node in nodes]


def _scopes(graph: Any) -> list[Any]:
    """The operations of a graph, and those of each function it calls."""
    definition = graph.as_graph_def()
    return [definition.node, *(f.node_def for f in definition.library.function)]


def is_tracing(arrays: Sequence[Any]) -> bool:
    """Whether the arrays are the symbols of a graph."""
    return any(type(x) is not Eager and type(dtypes.tensor(x)) is not Eager for x in arrays)


def signature(arrays: Sequence[Any]) -> tuple:
    """What a program is made for."""
    return tuple([(type(x), _shape(x), x.dtype) for x in arrays])


def _shape(x: Any) -> tuple:
    return x._shape_tuple() if type(x) is Eager else tuple(x.shape)  # a fifth of the time
