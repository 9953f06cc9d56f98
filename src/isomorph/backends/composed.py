"""What is composed: every method that a backend has beyond its contract, written once over the
vocabulary and the fifteen verbs, here or in the room of its topic, from which this class's body
imports it.

A fast path is an override in a class of the backend. So `Torch.conv is not Backend.conv` says that
torch has one, and `Backend.conv(xp, ...)` is what it must agree with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from .. import tree
from ..dispatch import load
from ..meanings.adam import AdamStep
from . import windows
from .contract import Contract, Leaves, Pullback
from .vocabulary import DTYPES


def _dtype_name(dtype: Any) -> str:
    """The name of a dtype given as Python's or NumPy's type."""
    try:
        return np.dtype(dtype).name
    except TypeError:
        return str(dtype)


class Backend(Contract):
    """One framework, with all that follows of its contract."""

    # Layers: what they compute, in the words of the vocabulary.

    from ..meanings.activation import (
        elu,
        gelu,
        hardswish,
        leaky_relu,
        log_softmax,
        logsumexp,
        mish,
        relu,
        sigmoid,
        silu,
        softmax,
        softplus,
    )
    from ..meanings.attention import attention, attention_weights
    from ..meanings.conv import conv, conv_transpose
    from ..meanings.dropout import dropout
    from ..meanings.embedding import take_rows
    from ..meanings.linear import linear, thirds
    from ..meanings.loss import cross_entropy, label_scores, picked, reduced
    from ..meanings.norm import batch_norm, group_norm, layer_norm, local_response_norm, rms_norm
    from ..meanings.pooling import adaptive_pool, pool
    from ..meanings.position import rotate_pairs
    from ..meanings.recurrent import gru, lstm

    def has_quick_steps(xp) -> bool:
        """Whether products of the steps of a loop cost less than one product of all of them."""
        return False

    # Differentiation.

    def vjp_alone(
        xp,
        func: Callable[..., tuple[Leaves, Leaves]],
        leaves: Leaves,
        once: bool = False,
        has_aux: bool = True,
    ) -> tuple[Leaves, Pullback, Leaves]:
        """`vjp` where nobody differentiates the results, nor `func` by anything but the leaves."""
        return xp.vjp(func, leaves, once, has_aux)

    def map_rows(xp, func: Callable[..., Leaves], *rows: Any) -> Leaves:
        """The results of `func` for each row of all `rows`, stacked; of a pullback, say."""
        results = [func(*row) for row in zip(*map(xp.unstack, rows))]
        if not results:  # no rows: the forms of the results are known from a row of zeros
            shaped = func(*(xp.zeros(tuple(r.shape)[1:], dtype=r.dtype) for r in rows))
            return tuple(xp.zeros((0, *x.shape), dtype=x.dtype) for x in shaped)
        return tuple(xp.stack(parts) for parts in zip(*results))

    def vmap(xp, func: Callable[..., Leaves], *rows: Any) -> Leaves:
        """`map_rows` of any function, which may be differentiated as a whole."""
        return xp.map_rows(func, *rows)

    def host_call(xp, host: Any, arrays: Leaves) -> Leaves:
        """Call a function of NumPy arrays: `host.func(*arrays) -> results`; where there are no
        values yet, `host_like` tells what it will give.
        """
        values = [xp.to_numpy(xp.stop_gradient(x, False)) for x in arrays]
        device = xp.device_of(arrays[0]) if arrays else None
        # copies: the function may hand out one buffer again and again
        return tuple(xp.from_numpy(np.array(y), device) for y in host.func(*values))

    def host_like(xp, host: Any, kinds: Sequence[tuple]) -> list[np.ndarray]:
        """Arrays like the results of a host function for arguments of `(shape, dtype)`."""
        return [np.asarray(y) for y in host.like(*(np.ones(*kind) for kind in kinds))]

    def host_results(xp, outs: Sequence[Any], likes: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The results of a host function, which a program expects to be like `likes`."""
        found = [np.asarray(y) for y in outs]
        kinds = [(y.shape, y.dtype.name) for y in found]
        wanted = [(y.shape, y.dtype.name) for y in likes]
        casts = lambda: all(
            np.can_cast(y.dtype, z.dtype, "same_kind") for y, z in zip(found, likes)
        )
        if [k[0] for k in kinds] != [k[0] for k in wanted] or not casts():
            raise ValueError(f"host_function: needed results like {wanted}, got {kinds}")
        # copies: they may not share memory with the arguments
        return [np.array(y, like.dtype) for y, like in zip(found, likes)]

    def explain(xp, error: Exception) -> None:
        """Add to an error of the framework what to write instead, where it is known."""

    def is_local(xp, x: Any) -> bool:
        """Whether `x` means something only inside the transform or compiler that made it."""
        return xp.is_watched(x)

    def run_unseen(xp, func: Callable, args: tuple) -> tuple[Any, bool]:
        """`func(*args)` for arguments nobody is watching, and whether it used an array that
        somebody is.
        """
        out = func(*args)
        found = (x for x in tree.flatten(out)[0] if isinstance(x, xp.arrays))
        return out, any(map(xp.is_watched, found))

    # Compiling: `jit` as a whole where a framework takes nests itself, else three verbs under it.
    from ..compiling import traced as jit

    def replay(xp) -> Callable[[], Any]:
        """Makes contexts of which the second and later ones draw the random numbers of the first
        again, where the framework draws them from a hidden state.
        """
        return nullcontext

    from ..gradients.checkpointing import recomputed as checkpoint
    from ..gradients.implicit import custom_linear_solve, custom_root

    def compiles_parts(xp) -> bool:
        """Whether a program is being traced of which some parts are better compiled by themselves,
        by `compiled_part`.
        """
        return False

    def compiled_part(xp, func: Callable[..., Sequence[Any]], arrays: Sequence[Any]) -> Any:
        """The results of `func` of arrays, computed as a program of their own in another."""
        return func(*arrays)

    def slot(xp, x: Any, compiled: bool) -> Any:
        """The array as steps of training can best read and write it again and again, compiled or
        not, in memory that is nobody else's.
        """
        return x

    def without_denormals(xp, x: Any) -> Any:
        """`x` with zeros for numbers so small that computing with them is slow."""
        return x

    def placed(xp, arrays: Sequence[Any], others: Sequence[Any]) -> Sequence[Any]:
        """The arrays, placed as those are that a program computes of them and of `others`."""
        return arrays

    def check_given(xp, arrays: Sequence[Any], given: Sequence[bool]) -> None:
        """Refuse arrays of which those `given` away have memory that others have too."""

    # Branches and loops, of flat tuples of arrays.
    from ..flow import chosen as cond
    from ..flow import counted as fori_loop
    from ..flow import looped as scan
    from ..flow import repeated as while_loop

    def counter(xp, i: int, beside: Sequence[Any]) -> Any:
        """The number of a step, as the step computes with it."""
        return xp.weak(i, beside)

    # Steps of training.

    from ..meanings.adam import adam

    def write_adam(xp, rows: Sequence[tuple[Any, Any, Any, Any]], numbers: AdamStep) -> bool:
        """Adam's step with decoupled decay. Each row is a parameter, its gradient and its two
        moments, which nobody else holds: they are written over, the gradient if need be; or False,
        and nothing was written.
        """
        return False

    def runs_ahead(xp, x: Any) -> bool:
        """Whether what is computed of `x` is still being computed when the call has returned."""
        return False

    def expect_repeats(xp) -> None:
        """Arrays of the same sizes will be made and dropped again and again."""

    # Random numbers, drawn with a key, two words of 32 bits.

    word = "uint32"  # the dtype in which words are computed with

    from ..meanings.random import fold_in, order, probit, words

    def draw(xp, meaning: Callable, key: Any, start: int, shape: tuple, *args: Any) -> Any:
        """An array of the numbers from `start` on that `meaning` draws; by NumPy where the key has
        its values.
        """
        values = xp.at_hand(key)
        if values is None:
            drawn = meaning(xp, key, start, math.prod(shape), *args)
            return xp.reshape(drawn, (*shape, *drawn.shape[1:]))
        drawn = load("numpy").draw(meaning, values, start, shape, *args)
        return xp.from_numpy(drawn, xp.device_of(key))

    def unpackable(xp, x: Any) -> Any:
        """`x`, which can be taken apart along its first axis: `first, second = x`."""
        return x

    def outline(xp, meaning: Callable, *args: Any) -> np.ndarray:
        """A draw of nothing, in NumPy: what its numbers are like."""
        return load("numpy").draw(meaning, np.zeros(2, np.uint32), 0, (0,), *args)

    def is_inside(xp, x: Any, size: int) -> bool | None:
        """Whether all integers of `x` are from 0 to less than `size`; None where that cannot be
        told without waiting for a device, or while a program is traced.
        """
        return None

    # Modules.

    def own(xp, x: Any) -> Any:
        """`x` for someone who may change it in place: a copy, where that can be done at all."""
        return x

    def adopt(xp, cls: type) -> None:
        """Hear of a class of nests of our own, where the framework has nests of its own."""

    # Moving arrays.

    def values(xp, x: Any) -> Any:
        """A NumPy copy of the values of `x`, also while it is differentiated; where there are none
        yet it raises.
        """
        return np.array(xp.to_numpy(xp.stop_gradient(x, False)))

    # Memory, as files hold it: `pack` and `unpack` an array, check `sums`.
    from .memory import pack, sums, unpack

    def lend(xp, x: Any) -> Any:
        """What another framework may take over through DLPack: `x`, or None where NumPy is the
        better way.
        """
        return x

    def borrow(xp, x: Any) -> Any:
        """An array of this backend on the memory of a foreign array, through DLPack; None where
        that cannot be.
        """
        try:
            return xp.from_dlpack(x)
        except (AttributeError, BufferError, TypeError, ValueError, RuntimeError):
            # a dtype, device or layout that one of the two cannot share; the caller copies
            return None

    def device_of(xp, x: Any) -> Any:
        """The device of an array, as creation functions take it."""
        return x.device

    def device(xp, name: Any) -> Any:
        """A device as creation functions take it, for a name such as "cpu" or "cuda:0"; None and
        device objects pass through.
        """
        if not isinstance(name, str):
            return name
        word = name.lower().replace("cuda", "gpu")
        for found in xp.devices():
            known = found.lower().replace("cuda", "gpu")
            if word in (known, known.partition(":")[0]):
                return xp.named_device(found)
        raise ValueError(f"device: {xp.name} has {', '.join(xp.devices())}, got {name!r}")

    def named_device(xp, name: str) -> Any:
        """The device of a name out of `devices()`."""
        return name

    # Indexing with NumPy's meaning.

    def window(xp, x: Any, start: Any, length: int, axis: int) -> Any:
        """`length` places of an axis from `start` on, an integer array without axes that is not
        known.
        """
        return windows.read(xp, x, start, length, axis)

    def put_window(xp, x: Any, part: Any, start: Any, axis: int) -> Any:
        """A copy of `x` in which `part` stands where `window` would read."""
        return windows.written(xp, x, part, start, axis)

    def integer(xp, x: Any) -> int | None:
        """The integer that an array without axes holds; None while it is not known."""
        found = xp.at_hand(x)
        return None if found is None else int(found[()])

    def distance(xp, start: Any, stop: Any) -> int | None:
        """How far apart two integers of a traced program are, where it can be seen: `p` and
        `p + 3`.
        """
        return None

    # Dtypes.

    def is_float(xp, dtype: Any) -> bool:
        """Whether arrays of this dtype can be differentiated: real or complex floating, of any
        width.
        """
        return xp.isdtype(dtype, ("real floating", "complex floating"))

    def is_complex(xp, dtype: Any) -> bool:
        """Whether numbers of this dtype have an imaginary part."""
        return xp.isdtype(dtype, "complex floating")

    def dtype(xp, name: Any) -> Any:
        """This backend's dtype for a name like "float32", or for Python's and NumPy's types; None
        and its own dtype objects pass through.
        """
        if name is None or (isinstance(name, type(xp.float32)) and not isinstance(name, type)):
            return name
        word = name if isinstance(name, str) else _dtype_name(name)
        dtype = getattr(xp, word) if word in DTYPES else xp.narrow(word)
        if dtype is None:
            narrow = [n for n in ("float16", "bfloat16") if xp.narrow(n) is not None]
            known = ", ".join((*DTYPES, *narrow))
            raise TypeError(f"dtype: {xp.name} has {known}, got {name!r}")
        return dtype

    def native(xp, x: Any) -> Any:
        """`x` itself, where that is not something that only stands for an array."""
        return x

    def weak(xp, x: Any, beside: Sequence[Any]) -> Any:
        """A Python number as an array that takes the device of the arrays beside it and, where it
        is no integer, the width of the widest floating one.
        """
        floats = [y for y in beside if xp.is_float(y.dtype)]
        device = xp.device_of(beside[0]) if beside else None
        if isinstance(x, int) or not floats:
            return xp.asarray(x, device=device)
        widest = max(floats, key=lambda y: xp.finfo(y.dtype).bits)
        dtype = xp.finfo(widest.dtype).dtype  # of a complex one the dtype of its parts
        if isinstance(x, complex):
            dtype = xp.complex128 if dtype == xp.float64 else xp.complex64
        return xp.asarray(x, dtype=dtype, device=device)
