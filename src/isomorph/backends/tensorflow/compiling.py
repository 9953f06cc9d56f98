"""Compiled programs in TensorFlow: one concrete function per shape and dtype of the arguments.

XLA compiles it, unless it contains something that XLA lacks: calls into Python, determinants,
complex solutions, eigenvalues and singular values in float64 (XLA's are accurate to 1e-8 and 1e-6),
the gradient of a loop with an unknown number of steps, vectorized loops, and whatever else XLA
refuses. On a CPU, convolutions are not compiled by XLA either. With TensorFlow's own kernels a step
of a ResNet takes a fifth less time, and depthwise and 3-d convolutions take a seventh of the time
or less; some convolutions with few channels take up to a tenth more.

The option `reduce_retracing` is not used: it forgets sizes after the second shape, and then
`x.shape[0]` is None where every other framework has a number. XLA compiles per shape anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import tensorflow as tf

from . import dtypes
from .kernels import Eager

LACKING = {
    "EagerPyFunc",
    "Eig",
    "LogMatrixDeterminant",
    "MatrixDeterminant",
    "PyFunc",
    "PyFuncStateless",
    "TensorListScatterIntoExistingList",
    "Where",  # its size is the number of true elements: XLA fails to broadcast it
}
COMPLEX = {tf.complex64.as_datatype_enum, tf.complex128.as_datatype_enum}
LACKING_FOR = {  # for these dtypes XLA has no kernel, or one with half the digits
    "MatrixInverse": COMPLEX,
    "MatrixSolve": COMPLEX,
    "SelfAdjointEigV2": {*COMPLEX, tf.float64.as_datatype_enum},
    "Svd": {*COMPLEX, tf.float64.as_datatype_enum},
}
REFUSED = ("unsupported operations when trying to compile", "must be a compile-time constant")
LOOPS = {"While", "StatelessWhile"}
CONVOLUTIONS = ("Conv2D", "Conv3D", "DepthwiseConv2d")  # and their gradients
# How much of the traced program goes to XLA; for programs of others this is unknown (None).
ALL, PARTS, NONE = "all", "parts", "none"
SHARE: ContextVar[str | None] = ContextVar("isomorph.tensorflow.share", default=None)
VARIANT = tf.variant.as_datatype_enum


def _register_gradient() -> None:
    """Register a gradient for the operation that is XLA's gradient of a slice. TensorFlow has none,
    and without it nothing with a concatenation could be differentiated three times, or by `hvp`.
    """

    def gradient(op: Any, grad: Any) -> tuple:
        whole, part, start = op.inputs
        sizes = [tf.shape(x, out_type=start.dtype) for x in (whole, part)]
        around = tf.stack([start, sizes[0] - sizes[1] - start], axis=1)
        rest = tf.pad(tf.zeros_like(part, tf.bool), around, constant_values=True)
        return tf.where(rest, grad, tf.zeros_like(grad)), tf.slice(grad, start, sizes[1]), None

    with suppress(KeyError):  # it is registered already
        tf.RegisterGradient("XlaDynamicUpdateSlice")(gradient)


_register_gradient()


def program(
    func: Callable[..., tuple], arrays: Sequence[Any], given: Sequence[bool]
) -> Callable[..., Any]:
    """The program that computes `func`, a function of tensors, for tensors like `arrays`. Where a
    result fits into a donated variable (`given` is True), it is assigned to the variable, and the
    variable is returned.
    """
    slots = [i for i, (x, yes) in enumerate(zip(arrays, given)) if yes and is_variable(x)]
    if slots:
        return _assigning(func, arrays, slots)
    run = _function(func, [spec(x) for x in arrays])
    if all(type(x) is Eager for x in arrays):
        return run
    return lambda *arrays: run(*(dtypes.tensor(x) for x in arrays))


def _function(func: Callable[..., tuple], specs: list[Any]) -> Callable[..., Any]:
    run = concrete(func, specs, ALL)
    if _is_beyond_xla(run.graph):
        return concrete(func, specs, NONE)
    if _is_slow_by_xla(run.graph):
        return concrete(func, specs, PARTS)
    return Compiled(run, lambda: concrete(func, specs, NONE))


class Compiled:
    """A program that XLA compiles at the first call. If XLA refuses it then, it is made again
    without XLA: nothing has been computed yet.
    """

    def __init__(self, run: Callable[..., Any], without: Callable[[], Any]) -> None:
        self.run, self.without = run, without
        self.is_made = False

    def __call__(self, *arrays: Any) -> Any:
        if self.is_made:
            return self.run(*arrays)
        try:
            outs = self.run(*arrays)
        except (tf.errors.InvalidArgumentError, tf.errors.UnimplementedError) as error:
            is_refused = isinstance(error, tf.errors.UnimplementedError)
            if not (is_refused or any(words in str(error) for words in REFUSED)):
                raise
            self.run = self.without()
            outs = self.run(*arrays)
        self.is_made = True
        return outs


def concrete(func: Callable[..., tuple], specs: list[Any], share: str) -> Any:
    token = SHARE.set(share)
    try:
        xla = True if share == ALL else None
        return tf.function(func, autograph=False, jit_compile=xla).get_concrete_function(*specs)
    finally:
        SHARE.reset(token)


def by_xla() -> bool:
    """Whether XLA compiles the whole program that is being traced."""
    return SHARE.get() == ALL


def by_kernels(x: Any) -> bool:
    """Whether results computed from `x` come from TensorFlow's own kernels."""
    return type(x) is Eager or SHARE.get() in (PARTS, NONE)


def compiles_parts() -> bool:
    """Whether XLA compiles only parts of the program that is being traced: those without
    convolutions.
    """
    return SHARE.get() == PARTS


def compiled_part(func: Callable[..., Any], arrays: Sequence[Any]) -> Any:
    """The results of `func`, compiled by XLA inside a program that XLA does not compile."""
    return concrete(func, [spec(x) for x in arrays], ALL)(*arrays)


def spec(x: Any) -> tf.TensorSpec:
    return tf.TensorSpec(x.shape, x.dtype)


def _assigning(func: Callable[..., tuple], arrays: Sequence[Any], slots: list[int]) -> Callable:
    places: list[int | None] = []  # for each result, the variable that holds it

    def body(*arrays: Any) -> tuple:
        values = [x.read_value() if i in slots else x for i, x in enumerate(arrays)]
        outs = func(*values)
        free = list(slots)

        def taken(fits: Callable[[Any], bool]) -> int | None:
            at = next((i for i in free if fits(values[i])), None)
            if at is not None:
                free.remove(at)
            return at

        places[:] = [taken(lambda x, y=y: x is y) for y in outs]  # unchanged variables
        for k, y in enumerate(outs):
            if places[k] is None:
                places[k] = at = taken(lambda x, y=y: x.shape == y.shape and x.dtype is y.dtype)
                if at is not None:
                    arrays[at].assign(y)
        return tuple(y for y, at in zip(outs, places) if at is None)

    body.__qualname__ = func.__qualname__
    whole = [x if i in slots else spec(x) for i, x in enumerate(arrays)]
    run = _function(body, whole)
    others = [i for i, x in enumerate(arrays) if i not in slots and type(x) is not Eager]

    def call(*arrays: Any) -> tuple:
        if others:
            arrays = tuple(dtypes.tensor(x) if i in others else x for i, x in enumerate(arrays))
        rest = iter(run(*arrays))
        return tuple(next(rest) if i is None else arrays[i] for i in places)

    return call


def check_given(arrays: Sequence[Any], given: Sequence[bool]) -> None:
    """Raise if a variable that is overwritten is also another argument."""
    places = [id(x) for x in arrays]
    if len(set(places)) == len(places):
        return
    for x, yes in zip(arrays, given):
        if yes and is_variable(x) and places.count(id(x)) > 1:
            raise ValueError(
                "jit: needed a donated variable that is not also another argument, got one of "
                f"shape {list(x.shape)} that is; pass its value, x + 0"
            )


def is_variable(x: Any) -> bool:
    return isinstance(x, tf.Variable)


def has_rules(graph: Any) -> bool:
    """Whether a graph has operations with custom backward rules."""
    return any(
        n.attr["_gradient_op_type"].s for n in _nodes(graph) if "_gradient_op_type" in n.attr
    )


def has_kept_values(graph: Any) -> bool:
    """Whether a graph has branches or loops that store values for their gradient. TensorFlow cannot
    vectorize such a graph.
    """
    for n in _nodes(graph):
        if n.op == "TensorListPopBack":
            return True
        if n.op in ("If", "StatelessIf") and VARIANT in n.attr["Tout"].list.type:
            return True
    return False


def _is_beyond_xla(graph: Any) -> bool:
    """Whether a graph has operations that XLA does not support."""
    for nodes in _scopes(graph):
        named = {n.name: n for n in nodes}
        for node in nodes:
            if node.op in LACKING:
                return True
            if node.op in LACKING_FOR and node.attr["T"].type in LACKING_FOR[node.op]:
                return True
            if node.op == "TensorListReserve" and node.attr["element_dtype"].type == VARIANT:
                return True
            if node.op == "EmptyTensorList":  # a stack: XLA needs its maximal size
                size = named.get(node.input[1].partition(":")[0])
                if size is None or size.op != "Const":
                    return True
                if tf.make_ndarray(size.attr["value"].tensor) < 0:
                    return True
    return False


def _is_slow_by_xla(graph: Any) -> bool:
    """Whether a graph has operations for which the CPU has better kernels. Programs with loops gain
    more from XLA, unless these operations are inside the loops.
    """
    if tf.config.list_physical_devices("GPU"):
        return False
    outer, *inner = [{n.op for n in nodes} for nodes in _scopes(graph)]
    convolves = lambda ops: any(op.startswith(CONVOLUTIONS) for op in ops)
    loops = any(LOOPS & ops for ops in (outer, *inner))
    return any(map(convolves, inner)) or (convolves(outer) and not loops)


def _nodes(graph: Any) -> list[Any]:
    """The operations of a graph and of the functions it calls, in one list."""
    return [node for nodes in _scopes(graph) for node in nodes]


def _scopes(graph: Any) -> list[Any]:
    """A list of operations for the graph itself, and one for each function it calls."""
    definition = graph.as_graph_def()
    return [definition.node, *(f.node_def for f in definition.library.function)]


def is_tracing(arrays: Sequence[Any]) -> bool:
    """Whether the arrays are the symbols of a graph."""
    for x in arrays:
        if type(x) is not Eager:
            handle = x.handle if is_variable(x) else dtypes.tensor(x)  # reading it takes longer
            if type(handle) is not Eager:
                return True
    return False


def watched(x: Any) -> Any:
    """What a tape watches."""
    if type(x) is Eager:
        return x
    is_read = not is_variable(x) or x.trainable
    return dtypes.tensor(x) if is_read else x.handle  # reading takes longer


def signature(arrays: Sequence[Any]) -> tuple:
    """The key of a compiled program: the type, shape and dtype of each array."""
    return tuple([(type(x), _shape(x), x.dtype) for x in arrays])


def _shape(x: Any) -> tuple:
    return x._shape_tuple() if type(x) is Eager else tuple(x.shape)  # a fifth of the time
