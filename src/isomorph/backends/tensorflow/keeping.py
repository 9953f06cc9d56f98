"""Programs of eager loops and transforms (`kept_programs`): graphs of TensorFlow's own kernels.

They compute and raise as eager operations do, and a tape differentiates loops in them; what XLA
compiles cannot return what the gradient of a loop needs. TensorFlow's optimizer of graphs would
compute (x + a) - b as x + (a - b) and factor sums, which loses what the rounding of the first was
for. It is told not to, by a private name; where that is missing, no programs are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import tensorflow as tf

from .compiling import NONE, concrete, has_rules, spec, watched
from .kernels import is_watched
from .private import ALL

CONTEXT = ALL.first("eager_context")
OPTIONS = ALL.first("function_call_options")
OFF = 2  # of RewriterConfig.Toggle


def keeps_programs() -> bool:
    """Whether a call here and now may run as a graph."""
    return (
        tf.executing_eagerly()
        and not tf.config.functions_run_eagerly()
        and not tf.distribute.has_strategy()
        and CONTEXT is not None
        and OPTIONS is not None
    )


def signature(arrays: Sequence[Any]) -> tuple:
    """The kinds, shapes, dtypes and devices of the tensors, and whether a tape watches them."""
    return _are_watched(arrays), *[(type(x), tuple(x.shape), x.dtype, x.device) for x in arrays]


def program(func: Callable[..., tuple], arrays: Sequence[Any]) -> Callable[..., Any] | None:
    """The program, traced; None if it uses tensors that are not its arguments, or if a tape would
    differentiate it as a whole: TensorFlow then loses the second derivatives of custom rules.
    """
    with tf.device(None):  # where operations run is decided at each call, as it is eagerly
        run = concrete(func, [spec(x) for x in arrays], NONE)
    if run.captured_inputs or (_are_watched(arrays) and has_rules(run.graph)):
        return None

    def call(*arrays: Any) -> Any:
        context: Any = CONTEXT() if CONTEXT is not None else None
        usual = context.function_call_options
        context.function_call_options = _unfolded(usual.config_proto_serialized)
        try:
            return run(*arrays)
        finally:
            context.function_call_options = usual

    return call


def _are_watched(arrays: Sequence[Any]) -> bool:
    return is_watched(*map(watched, arrays))


@lru_cache(maxsize=16)
def _unfolded(settings: bytes) -> Any:
    """The same settings of graphs, without rewriting arithmetic."""
    config = tf.compat.v1.ConfigProto()
    config.ParseFromString(settings)
    config.graph_options.rewrite_options.constant_folding = OFF
    config.graph_options.rewrite_options.arithmetic_optimization = OFF
    return OPTIONS(config_proto=config) if OPTIONS is not None else None
