"""TensorFlow. The array API namespace is our own, in the modules of this package: no public library
has one.
"""

from __future__ import annotations

import os

import numpy as np
import tensorflow as tf

from ...core.contract import Price
from ...meanings.special.smooth import called as smooth
from .. import hosting
from ..explaining import DECIDES, INDEX, LEAVES, NUMBER, add, explained
from . import (
    bitwise,
    compiling,
    convolution,
    creation,
    dtypes,
    elementwise,
    fft,
    indexing,
    keeping,
    kernels,
    linalg,
    looping,
    manipulation,
    private,
    random,
    searching,
    statistics,
)
from .kernels import Eager, ops
from .layers import Layers

IMPERATIVE = private.ALL.first("imperative_grad")
UNROLLED = 32  # examples of a vmap that become parts of a graph, one by one


class TensorFlow(Layers):
    name = "tensorflow"
    arrays = (tf.Tensor, tf.Variable, tf.IndexedSlices)

    def vjp(xp, func, leaves, once=False, has_aux=True):
        # A copy of each leaf: watching one tensor twice would give the sum of both gradients to
        # each.
        leaves = [ops.Identity(input=dtypes.tensor(x)) for x in leaves]
        with tf.GradientTape(persistent=not once, watch_accessed_variables=False) as tape:
            tape.watch(leaves)
            outs, aux = func(*leaves)
            ends = [dtypes.tensor(y) for y in outs]

        def pullback(cotangents):
            grads = _gradients(tape, ends, leaves, [dtypes.tensor(c) for c in cotangents])
            # None means zeros; gather gives indexed slices
            return tuple(
                [tf.zeros_like(x) if g is None else dtypes.tensor(g) for x, g in zip(leaves, grads)]
            )

        return outs, pullback, aux

    def custom_call(xp, rule, arrays):
        @tf.custom_gradient
        def call(*arrays):
            outs, residuals = rule.fwd(*arrays)
            return outs, lambda *upstream: rule.bwd(residuals, upstream, arrays)

        return call(*(tf.convert_to_tensor(x) for x in arrays))

    def smooth(xp, function, arrays):
        # the tape of a caller may differentiate a graph as a whole
        wanted = [not isinstance(x, Eager) or xp.is_watched(x) for x in arrays]
        return (
            smooth(xp, function, arrays, wanted) if any(wanted) else xp.special(function, *arrays)
        )

    def map_rows(xp, func, *rows):
        if rows[0].shape[0] == 0:
            return super().map_rows(func, *rows)
        # a result that is a tensor from outside must become part of the graph
        run = lambda parts: tuple(map(tf.identity, func(*parts)))
        run = tf.autograph.experimental.do_not_convert(run)
        whole = lambda *rows: tf.vectorized_map(run, rows, warn=False)
        if not tf.executing_eagerly():
            return whole(*rows)
        # On its own, an eager tf.vectorized_map also traces a new tf.function at each call, and
        # warns about it from the fifth on, although the caller cannot change it.
        rows = tuple(map(tf.convert_to_tensor, rows))
        specs = [tf.TensorSpec(r.shape, r.dtype) for r in rows]
        return tf.function(whole, autograph=False).get_concrete_function(*specs)(*rows)

    def vmap(xp, func, *rows):
        specs = [tf.TensorSpec(r.shape[1:], r.dtype) for r in rows]
        traced = tf.function(func, autograph=False).get_concrete_function(*specs)
        graph = traced.graph
        one_by_one = compiling.has_rules(graph) or compiling.has_kept_values(graph)
        if rows[0].shape[0] == 0 or not one_by_one:
            return xp.map_rows(func, *rows)
        # tf.vectorized_map loses custom rules when it is differentiated as a whole, and tf.map_fn
        # those of second derivatives
        n = rows[0].shape[0]
        if tf.executing_eagerly() or (n is not None and n <= UNROLLED):
            each = [func(*parts) for parts in zip(*map(tf.unstack, rows))]
            return tuple(map(tf.stack, zip(*each)))
        kinds = tuple(tf.TensorSpec(y.shape, y.dtype) for y in traced.outputs)
        run = tf.autograph.experimental.do_not_convert(lambda parts: func(*parts))
        return tf.map_fn(run, rows, fn_output_signature=kinds)

    def keep_programs(xp, folder):
        # read when the first program is compiled
        flags, flag = "TF_XLA_FLAGS", "--tf_xla_persistent_cache_directory="
        place = folder / f"tensorflow-{tf.__version__}"
        others = [x for x in os.environ.get(flags, "").split() if not x.startswith(flag)]
        os.environ[flags] = " ".join([*others, f"{flag}{place}"])

    def host_call(xp, host, arrays):
        if all(isinstance(dtypes.tensor(x), Eager) for x in arrays):
            return super().host_call(host, arrays)
        kinds = [(tuple(x.shape), x.dtype.as_numpy_dtype) for x in arrays]
        examples = hosting.like(host, kinds)

        def call(*values):
            return hosting.results(host.func(*values), examples)

        given = [tf.as_dtype(y.dtype) for y in examples]
        outs = tf.numpy_function(call, arrays, given, stateful=False)
        return tuple(tf.ensure_shape(y, like.shape) for y, like in zip(outs, examples))

    def compile(xp, func, arrays, given):
        return compiling.program(explained(xp, func), arrays, given)

    def keeps_programs(xp):
        return keeping.keeps_programs()

    def kept_signature(xp, arrays):
        return keeping.signature(arrays)

    def kept_program(xp, func, arrays):
        return keeping.program(func, arrays)

    def compiles_parts(xp):
        return compiling.compiles_parts()

    def compiled_part(xp, func, arrays):
        return compiling.compiled_part(func, arrays)

    def slot(xp, x, compiled):
        return tf.Variable(x, trainable=False) if compiled else x

    def check_given(xp, arrays, given):
        compiling.check_given(arrays, given)

    def signature(xp, arrays):
        return compiling.signature(arrays)

    def is_tracing(xp, arrays):
        # also if a tape records: a compiled loop cannot return what its gradient needs
        values = list(map(compiling.watched, arrays))
        return any(type(x) is not Eager for x in values) or kernels.is_watched(*values)

    def is_watched(xp, x):
        return kernels.is_watched(compiling.watched(x))

    def explain(xp, error):
        said = str(error)
        if isinstance(error, tf.errors.OperatorNotAllowedInGraphError) and "`bool`" in said:
            add(error, DECIDES)
        elif "Cannot convert a symbolic" in said or "SymbolicTensor" in str(error.__cause__):
            add(error, LEAVES)  # NumPy appends its own text about a sequence to TensorFlow's
        elif isinstance(error, (TypeError, AttributeError)):
            if any(words in said for words in WORDS):
                add(error, INDEX)
            elif "argument must be" in said and "SymbolicTensor" in said:  # float(x), int(x)
                add(error, NUMBER)

    def is_local(xp, x):
        return compiling.is_tracing([x])  # a tensor that a tape has seen is like any other

    def at_hand(xp, x):
        return random.at_hand(x)

    def dropout(xp, x, key, prob, scale, shape):
        if None in shape:
            shape = random.sizes(x, shape)
        return super().dropout(x, key, prob, scale, shape)

    def quick(xp, key, shape, dtype, normal):
        return random.quick(key, shape, dtype, normal)

    def stop_gradient(xp, x, preserve_type=True):
        stopped = tf.stop_gradient(x)
        if preserve_type and isinstance(x, tf.Variable) and tf.executing_eagerly():
            return tf.Variable(stopped, trainable=x.trainable)  # a graph cannot create a variable
        return stopped

    def to_numpy(xp, x):
        values = dtypes.tensor(x)
        if not isinstance(values, Eager):
            raise TypeError(
                "to_numpy: needed a tensor with values, got a symbolic one; call it "
                "outside of tf.function"
            )
        if kernels.is_watched(values):
            if kernels.should_record is None:
                raise TypeError(
                    f"to_numpy: needed to know if a tape is watching, as the gradient would be "
                    f"lost, and TensorFlow {tf.__version__} does not tell; use another version"
                )
            kind = ", preserve_type=False" if isinstance(x, tf.Variable) else ""
            raise TypeError(
                f"to_numpy: needed a tensor no tape is watching, got {values.dtype.name} of shape "
                f"{tuple(values.shape)} under differentiation; its gradient would be lost; use "
                f"iso.stop_gradient(x{kind}) first"
            )
        if values.dtype is tf.string:
            return np.asarray(values.numpy(), object)
        if values.dtype in HANDLES:
            raise TypeError(f"to_numpy: needed numbers or strings, got {values.dtype.name}")
        return np.asarray(values.numpy())  # a 0-d tensor gives a scalar

    def lend(xp, x):
        x = dtypes.tensor(x)
        # DLPack aborts the process on strings; to_numpy raises for symbolic or watched tensors.
        if x.dtype not in dtypes.ANY or not isinstance(x, Eager) or kernels.is_watched(x):
            return None
        return x

    def from_numpy(xp, x, device=None):
        with tf.device(device):
            return tf.convert_to_tensor(x)

    def price(xp, x):
        return Price(1.3, 0.11, 8e-3, 1.6e-3, 2.6e-11)

    def runs_ahead(xp, x):
        return "CPU" not in x.device

    def device(xp, name):
        # a tensor's own device has a full name, with its job
        is_full = isinstance(name, str) and name.startswith("/")
        return name if is_full else super().device(name)

    def devices(xp):
        return [d.name.removeprefix("/physical_device:") for d in tf.config.list_physical_devices()]

    def cond(xp, pred, true, false, arrays):
        if compiling.is_tracing([pred]):
            return tf.cond(pred, lambda: true(*arrays), lambda: false(*arrays))
        return super().cond(pred, true, false, arrays)

    def while_loop(xp, goes_on, body, arrays):
        if tf.executing_eagerly():
            return super().while_loop(goes_on, body, arrays)
        return looping.while_loop(goes_on, body, arrays)

    def fori_loop(xp, lower, upper, body, arrays):
        if tf.executing_eagerly():
            return super().fori_loop(lower, upper, body, arrays)
        return looping.fori_loop(xp, lower, upper, body, arrays)

    def scan(xp, step, carry, xs, n, reverse=False):
        if tf.executing_eagerly() or n == 0:
            return super().scan(step, carry, xs, n, reverse)
        return looping.scan(step, carry, xs, n, reverse)

    def index_get(xp, x, index):
        return indexing.index_get(x, index)

    def unpackable(xp, x):
        return random.unpackable(x)

    def index_update(xp, x, index, value, how):
        return indexing.index_update(xp, x, index, value, how)

    def distance(xp, start, stop):
        return indexing.distance(start, stop)

    def is_float(xp, dtype):
        return dtype.is_floating or dtype.is_complex

    def conv(xp, x, w, bias, plan):
        if not convolution.takes(x, plan):
            return super().conv(x, w, bias, plan)
        return convolution.conv(xp, x, w, bias, plan)

    def conv_transpose(xp, x, w, bias, plan):
        plain = plan.groups == max(plan.dilations) == 1 and min(map(min, plan.pads)) >= 0
        if not plain or not convolution.takes(x, plan):
            return super().conv_transpose(x, w, bias, plan)
        return convolution.transposed(xp, x, w, bias, plan)

    def narrow(xp, name):
        return {"float16": tf.float16, "bfloat16": tf.bfloat16}.get(name)


# Parts of errors about tensors as indices, which have no class of their own.
WORDS = (
    "are valid indices, got <tf.Tensor",
    "must be integers or slices, not Symbolic",
    "'SymbolicTensor' object cannot be interpreted as an integer",
    "object has no attribute '__index__'",
)
HANDLES = (tf.resource, tf.variant)  # NumPy has no values for these


def _gradients(tape: tf.GradientTape, ends: list, leaves: list, cotangents: list) -> list:
    """`tape.gradient` for lists of tensors, without its handling of nests, which takes a third of
    the time of a small function.
    """
    if IMPERATIVE is None or not hasattr(tape, "_tape"):
        return tape.gradient(ends, leaves, cotangents)
    return IMPERATIVE(tape._tape, ends, leaves, cotangents, leaves)


backend = TensorFlow(
    dtypes,
    creation,
    elementwise,
    bitwise,
    manipulation,
    searching,
    statistics,
    linalg,
    linalg=[linalg],
    fft=[fft],
)
