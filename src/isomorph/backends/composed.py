"""Composed methods: every method of a backend beyond its contract, written once over the vocabulary
and the fifteen verbs, here or in the module of its topic, from which this class's body imports it.

A fast path is an override in a class of the backend. So `Torch.conv is not Backend.conv` says that
torch has one; it must agree with `Backend.conv(xp, ...)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from ..core import tree
from ..core.contract import Contract, Leaves, Price, Pullback
from ..core.dispatch import load
from ..core.vocabulary import DTYPES
from ..meanings.adam import AdamStep
from . import windows


def _dtype_name(dtype: Any) -> str:
    """The name of a dtype given as a type of Python or NumPy."""
    try:
        return np.dtype(dtype).name
    except TypeError:
        return str(dtype)


class Backend(Contract):
    """One framework, with everything that follows from its contract."""

    # Layers: their formulas over the vocabulary.

    from ..meanings.activation import (
        elu,
        gelu,
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
    from ..meanings.attention import attention
    from ..meanings.bisection import bisected
    from ..meanings.conv import conv, conv_transpose
    from ..meanings.dropout import dropout
    from ..meanings.embedding import take_rows
    from ..meanings.linear import linear, linear_at_once, thirds
    from ..meanings.loss import cross_entropy, label_scores, picked

    # Linear algebra: values, and `lu` and `solve_triangular` with their derivatives.
    from ..meanings.matrix_functions import expm, logm, sqrtm
    from ..meanings.norm import batch_norm, layer_norm, rms_norm
    from ..meanings.pivoting import pivoted
    from ..meanings.pooling import adaptive_pool, pool
    from ..meanings.recurrent import gru, lstm
    from ..meanings.special.smooth import called as smooth
    from ..meanings.triangular import solve_triangular
    from .factors import lu

    def special(xp, function: Any, *arrays: Any) -> Any:
        """The values of a `Smooth` function: by its own kernel, or by one of the framework that is
        as accurate.
        """
        return function.kernel(xp, *arrays)

    def eig(xp, a: Any) -> tuple[Any, Any]:
        """Eigenvalues and eigenvectors of finite square matrices, in a complex dtype; by NumPy if
        the framework has none.
        """
        found = np.linalg.eig(xp.to_numpy(a))
        kind = np.result_type(found[0], np.complex64)
        return tuple(xp.from_numpy(y.astype(kind), xp.device_of(a)) for y in found)

    def keep_programs(xp, folder: Path) -> None:
        """Keep compiled programs in a subfolder of `folder` for other processes: `iso.cache`."""

    def has_quick_steps(xp) -> bool:
        """Whether products step by step in a loop cost less than one product of all steps."""
        return False

    # Differentiation.

    def vjp_alone(
        xp,
        func: Callable[..., tuple[Leaves, Leaves]],
        leaves: Leaves,
        once: bool = False,
        has_aux: bool = True,
    ) -> tuple[Leaves, Pullback, Leaves]:
        """`vjp` for callers who differentiate neither the results nor captured arrays."""
        return xp.vjp(func, leaves, once, has_aux)

    def map_rows(xp, func: Callable[..., Leaves], *rows: Any) -> Leaves:
        """Call `func` with the first row of each array, then with the second rows, and so on, and
        stack the results; used for pullbacks.
        """
        results = [func(*row) for row in zip(*map(xp.unstack, rows))]
        if not results:  # no rows: a row of zeros shows the shapes of the results
            empty = lambda shape, x: xp.zeros(shape, dtype=x.dtype, device=xp.device_of(x))
            shaped = func(*(empty(tuple(r.shape)[1:], r) for r in rows))
            return tuple(empty((0, *x.shape), x) for x in shaped)
        return tuple(xp.stack(parts) for parts in zip(*results))

    def vmap(xp, func: Callable[..., Leaves], *rows: Any) -> Leaves:
        """`map_rows` for any function. The results can be differentiated."""
        return xp.map_rows(func, *rows)

    def host_call(xp, host: Any, arrays: Leaves) -> Leaves:
        """Call a function of NumPy arrays: `host.func(*arrays) -> results`; while tracing,
        `hosting.like` gives the shapes and dtypes of the results.
        """
        values = [xp.to_numpy(xp.stop_gradient(x, False)) for x in arrays]
        device = xp.device_of(arrays[0]) if arrays else None
        # copies: the function may return the same buffer each time
        return tuple(xp.from_numpy(np.array(y), device) for y in host.func(*values))

    def explain(xp, error: Exception) -> None:
        """Add to an error of the framework what to write instead, if it is known."""

    def is_local(xp, x: Any) -> bool:
        """Whether `x` is valid only inside the transform or compiler that made it."""
        return xp.is_watched(x)

    def run_unseen(xp, func: Callable, args: tuple) -> tuple[Any, bool]:
        """`func(*args)` for arguments that are not differentiated, and whether it used another
        array that is.
        """
        out = func(*args)
        found = (x for x in tree.flatten(out)[0] if isinstance(x, xp.arrays))
        return out, any(map(xp.is_watched, found))

    # Compiling: `jit` as a whole if a framework takes nests itself, else the three verbs it needs.
    from ..compile.compiling import traced as jit

    def keeps_programs(xp) -> bool:
        """Whether eager loops and transforms are compiled here and now; see `kept_programs`."""
        return False

    def compiles_loops(xp) -> bool:
        """Whether an eager loop is compiled anyway, so that keeping its program costs nothing."""
        return False

    def kept_signature(xp, arrays: Sequence[Any]) -> Any:
        """What a kept program depends on, beyond `signature`."""
        return xp.signature(arrays)

    def kept_program(xp, func: Callable[..., Leaves], arrays: Sequence[Any]) -> Any:
        """The program that computes `func`, traced now; None if it would use arrays that are not
        its arguments.
        """
        return func

    def replay(xp) -> Callable[[], Any]:
        """A factory of contexts: from the second on, each draws the random numbers of the first
        again, if the framework draws them from a hidden state.
        """
        return nullcontext

    from ..gradients.checkpointing import recomputed as checkpoint
    from ..gradients.implicit import custom_linear_solve, custom_root

    def compiles_parts(xp) -> bool:
        """Whether a program is being traced in which some parts should be compiled separately, by
        `compiled_part`.
        """
        return False

    def compiled_part(xp, func: Callable[..., Sequence[Any]], arrays: Sequence[Any]) -> Any:
        """The results of `func` of arrays, compiled as a separate program inside another."""
        return func(*arrays)

    def slot(xp, x: Any, compiled: bool) -> Any:
        """The array in a form that training steps can read and overwrite fast, compiled or not, in
        memory of its own.
        """
        return x

    def without_denormals(xp, x: Any) -> Any:
        """`x` with zeros for denormal numbers, with which computing is slow."""
        return x

    def placed(xp, arrays: Sequence[Any], others: Sequence[Any]) -> Sequence[Any]:
        """The arrays, on the devices of what a program computes from them and `others`."""
        return arrays

    def check_given(xp, arrays: Sequence[Any], given: Sequence[bool]) -> None:
        """Raise if an array that is `given` away shares memory with another array."""

    # Branches and loops, on flat tuples of arrays.
    from ..flow import chosen as cond
    from ..flow import counted as fori_loop
    from ..flow import looped as scan
    from ..flow import repeated as while_loop

    def counter(xp, i: int, beside: Sequence[Any]) -> Any:
        """The number of a step, in the form in which the step uses it."""
        return xp.weak(i, beside)

    # Steps of training.

    from ..meanings.adam import adam

    def write_adam(
        xp, rows: Sequence[tuple[Any, Any, Any, Any]], numbers: AdamStep, owned: bool
    ) -> list[tuple[Any, Any, Any]] | None:
        """Adam's step with decoupled decay. Each row is a parameter, its gradient and its two
        moments; if they are `owned`, nothing else refers to them, and they may be overwritten, the
        gradient always. Returns each parameter and its moments after the step; or None, if there is
        no faster way than array by array, and then nothing was written.
        """
        return None

    def are_apart(xp, arrays: Iterable[Any], others: Iterable[Any]) -> bool:
        """Whether it is certain that the first share no memory with the others."""
        return False

    def row_reader(xp, x: Any, order: np.ndarray | None) -> Callable[[int, int], Any]:
        """The rows of `x` from one place in an order to another; without an order, from one row
        to another.
        """
        if order is None:
            return lambda begin, end: x[begin:end, ...]
        device = xp.device_of(x)
        return lambda begin, end: xp.take(x, xp.from_numpy(order[begin:end], device), axis=0)

    def are_finite(xp, arrays: Sequence[Any]) -> Any:
        """Whether all values of floating-point arrays are finite, as an array."""
        return reduce(xp.logical_and, [xp.all(xp.isfinite(x)) for x in arrays])

    def price(xp, x: Any) -> Price | None:
        """The price of compiling for the device of `x`; None if it always pays."""
        return None

    def runs_ahead(xp, x: Any) -> bool:
        """Whether a call returns before its results, computed from `x`, are complete."""
        return False

    def expect_repeats(xp) -> None:
        """Prepare for arrays of the same sizes being made and dropped many times."""

    # Random numbers, drawn with a key, two words of 32 bits.

    word = "uint32"  # the dtype in which words are computed

    from ..meanings.random import modulo, order, probit, words

    def draw(xp, meaning: Callable, key: Any, start: int, shape: tuple, *args: Any) -> Any:
        """The numbers that `meaning` draws, from number `start` on; by NumPy if the key's values
        can be read.
        """
        values = xp.at_hand(key)
        if values is None:
            drawn = meaning(xp, key, start, math.prod(shape), *args)
            return xp.reshape(drawn, (*shape, *drawn.shape[1:]))
        drawn = load("numpy").draw(meaning, values, start, shape, *args)
        return xp.from_numpy(drawn, xp.device_of(key))

    def unpackable(xp, x: Any) -> Any:
        """`x` in a form that can be unpacked along its first axis: `first, second = x`."""
        return x

    def is_inside(xp, x: Any, size: int) -> bool | None:
        """Whether all integers of `x` are in 0 … `size` - 1; None if that cannot be known without
        waiting for a device, or while a program is traced.
        """
        return None

    # Modules.

    def own(xp, x: Any) -> Any:
        """`x` for a caller who may change it in place: a copy, unless it cannot be changed."""
        return x

    # Moving arrays.

    def values(xp, x: Any) -> Any:
        """A NumPy copy of the values of `x`, also while it is differentiated; raises if they are
        not known yet.
        """
        return np.array(xp.to_numpy(xp.stop_gradient(x, False)))

    # Memory, as files hold it: `pack` and `unpack` an array, check `sums`; rows of several workers.
    from .memory import open_rows, pack, placed_rows, rows_from, sums, unpack

    def lend(xp, x: Any) -> Any:
        """`x` if another framework may take it over through DLPack; None if going through NumPy is
        better.
        """
        return x

    def borrow(xp, x: Any) -> Any:
        """An array of this backend on the memory of a foreign array, through DLPack; None if that
        is not possible.
        """
        try:
            return xp.from_dlpack(x)
        except (AttributeError, BufferError, TypeError, ValueError, RuntimeError):
            # one of the two cannot share this dtype, device or layout; the caller copies
            return None

    def from_host(xp, x: Any, device: Any = None) -> Any:
        """An array in the memory of the host is moved to `device`; without `device`, to where the
        framework makes new arrays. Other arrays stay where they are.
        """
        return x if device is None else xp.asarray(x, device=device)

    @staticmethod
    def has_devices() -> bool:
        """Whether arrays may be on several devices, so that `fixed_device` is worth asking."""
        return False

    def fixed_device(xp, x: Any) -> Any:
        """The device that all arrays used together with `x` must be on, or None if any will do."""
        return None

    def placement(xp, x: Any) -> Any:
        """Where an array of the shape of `x` is made to be placed as `x` is: its device, or how it
        is divided among several.
        """
        return xp.device_of(x)

    def renewed(xp, x: Any) -> Any:
        """The values of `x` in new memory, in row-major order, without a gradient."""
        flat = xp.reshape(xp.stop_gradient(x, False), (-1,))
        return xp.asarray(xp.reshape(flat, tuple(x.shape)), copy=True)

    def is_one_device(xp, arrays: list) -> bool:
        """Whether all these arrays are certainly on the same device: a check that costs little."""
        return False

    def device_of(xp, x: Any) -> Any:
        """The device of an array, as creation functions take it; None if there is no single one."""
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
        raise ValueError(
            f"device: needed a device of {xp.name} ({', '.join(xp.devices())}), got {name!r}"
        )

    def named_device(xp, name: str) -> Any:
        """The device for a name from `devices()`."""
        return name

    # NumPy's indexing.

    def window(xp, x: Any, start: Any, length: int, axis: int) -> Any:
        """`length` elements of an axis, from `start` on. `start` is an integer array without axes;
        its value is not known.
        """
        return windows.read(xp, x, start, length, axis)

    def put_window(xp, x: Any, part: Any, start: Any, axis: int) -> Any:
        """A copy of `x` with `part` in the places that `window` would read."""
        return windows.written(xp, x, part, start, axis)

    def integer(xp, x: Any) -> int | None:
        """The integer in an array without axes; None while it is not known."""
        found = xp.at_hand(x)
        return None if found is None else int(found[()])

    def distance(xp, start: Any, stop: Any) -> int | None:
        """The difference of two integers of a traced program, if it can be found, as for `p` and
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
            raise TypeError(f"dtype: needed a dtype of {xp.name} ({known}), got {name!r}")
        return dtype

    def native(xp, x: Any) -> Any:
        """`x` as an array of the framework, if it is an object that wraps one."""
        return x

    def weak(xp, x: Any, beside: Sequence[Any]) -> Any:
        """A Python number as an array on the device of the arrays `beside` it and, unless it is an
        integer, with the widest of their floating dtypes.
        """
        floats = [y for y in beside if xp.is_float(y.dtype)]
        device = xp.device_of(beside[0]) if beside else None
        if isinstance(x, int) or not floats:
            return xp.asarray(x, device=device)
        widest = max(floats, key=lambda y: xp.finfo(y.dtype).bits)
        dtype = xp.finfo(widest.dtype).dtype  # for a complex dtype, the dtype of its parts
        if isinstance(x, complex):
            dtype = xp.complex128 if dtype == xp.float64 else xp.complex64
        return xp.asarray(x, dtype=dtype, device=device)
