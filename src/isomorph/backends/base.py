"""What a backend is: one class, whose instance *is* the namespace `xp` handed to users.

The vocabulary is taken name by name from the framework (or from our own module where the framework
has none) as plain attributes, so `xp.tanh` costs what the framework's own `tanh` costs. Verbs, the
things the array API standard does not have, are methods that each backend supplies. What can be
composed is written once, here or in the room of its topic and imported into this class's body; a
fast path is an override in the backend's own file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import nullcontext
from typing import Any, NoReturn

import numpy as np

from .. import tree
from ..layers.activation import Activations
from ..layers.loss import Losses
from ..layers.norm import Norms
from ..layers.pooling import Pools
from . import windows
from .vocabulary import DTYPES, FFT, LINALG, VOCABULARY

Leaves = tuple[Any, ...]
Pullback = Callable[[Leaves], Leaves]


class Names:
    """A bag of names gathered from several places; the first place that has a name gives it."""

    def __init__(self, name: str, wanted: Iterable[str], sources: Sequence[Any]):
        self.__name__ = name
        for word in wanted:
            if hasattr(type(self), word):  # the class says it better than any source
                continue
            for source in sources:
                if hasattr(source, word):
                    setattr(self, word, getattr(source, word))
                    break

    def __repr__(self) -> str:
        return f"<{self.__name__}>"

    def __getattr__(self, word: str) -> Any:  # reached only when the name is not there
        raise AttributeError(
            f"{self.__name__} has no {word!r}: it holds the names of the array API standard "
            "2024.12; for more, call the framework on the array itself"
        )


def _dtype_name(dtype: Any) -> str:
    """The name of a dtype given as Python's or NumPy's type."""
    try:
        return np.dtype(dtype).name
    except TypeError:
        return str(dtype)


class Backend(Activations, Norms, Losses, Pools, Names):
    """The namespace of one framework, and the verbs that differentiate and move its arrays."""

    name: str
    arrays: tuple[type, ...]  # what counts as an array here
    refused: tuple[type, ...] = ()  # and what looks like one, but means something else
    __array_api_version__ = "2024.12"

    linalg: Names
    fft: Names

    def __init__(self, *sources: Any, linalg: Sequence[Any], fft: Sequence[Any]):
        super().__init__(f"isomorph.{self.name}", VOCABULARY, sources)
        self.linalg = Names(f"{self.__name__}.linalg", LINALG, linalg)
        self.fft = Names(f"{self.__name__}.fft", FFT, fft)

    # Differentiation. `func` takes the leaves one by one and returns a tuple of outputs and a tuple
    # of auxiliary arrays.

    def vjp(
        xp,
        func: Callable[..., tuple[Leaves, Leaves]],
        leaves: Leaves,
        once: bool = False,
        has_aux: bool = True,
    ) -> tuple[Leaves, Pullback, Leaves]:
        """Run `func` on the leaves; give its outputs, the map from output to leaf gradients, and
        the aux arrays.

        The pullback of complex arrays is the conjugate transpose of the Jacobian. `once` promises
        that it is called at most once, `has_aux=False` that there are no aux arrays.
        """
        xp._lacks("vjp")

    def vjp_alone(
        xp,
        func: Callable[..., tuple[Leaves, Leaves]],
        leaves: Leaves,
        once: bool = False,
        has_aux: bool = True,
    ) -> tuple[Leaves, Pullback, Leaves]:
        """`vjp` where nobody differentiates the results, nor `func` by anything but the leaves."""
        return xp.vjp(func, leaves, once, has_aux)

    def custom_call(xp, rule: Any, arrays: Leaves) -> Leaves:
        """Call a function that has its own backward rule: `rule.func(*arrays) -> outs`,
        `rule.fwd(*arrays) -> (outs, residuals)`, `rule.bwd(residuals, upstream, arrays) -> grads`.
        """
        xp._lacks("custom_call")

    def map_rows(xp, func: Callable[..., Leaves], *rows: Any) -> Leaves:
        """The results of `func` for each row of all `rows`, stacked; of a pullback, say."""
        results = [func(*(r[i] for r in rows)) for i in range(rows[0].shape[0])]
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

    def stop_gradient(xp, x: Any, preserve_type: bool = True) -> Any:
        """The same values, cut off from differentiation; a fresh variable for a variable."""
        xp._lacks("stop_gradient")

    def is_watched(xp, x: Any) -> bool:
        """Whether a differentiation is recording what becomes of `x`."""
        xp._lacks("is_watched")

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
    from ..compile import traced as jit

    def replay(xp) -> Callable[[], Any]:
        """Makes contexts of which the second and later ones draw the random numbers of the first
        again, where the framework draws them from a hidden state.
        """
        return nullcontext

    from ..gradients.hidden import custom_linear_solve, custom_root
    from ..gradients.hidden import recomputed as checkpoint

    def compile(
        xp, func: Callable[..., Leaves], arrays: Sequence[Any], given: Sequence[bool]
    ) -> Callable[..., Any]:
        """The program that computes `func` for arrays like `arrays`; `func` is traced now. Results
        may be in the memory of those that are `given` away: all, or none where it is empty.
        """
        xp._lacks("compile")

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

    def signature(xp, arrays: Sequence[Any]) -> Hashable:
        """All that a program made for `arrays` depends on."""
        xp._lacks("signature")

    def is_tracing(xp, arrays: Sequence[Any]) -> bool:
        """Whether another transform or compiler is looking on."""
        xp._lacks("is_tracing")

    # Branches and loops, of flat tuples of arrays.
    from ..flow import chosen as cond
    from ..flow import counted as fori_loop
    from ..flow import looped as scan
    from ..flow import repeated as while_loop

    def counter(xp, i: int, beside: Sequence[Any]) -> Any:
        """The number of a step, as the step computes with it."""
        return xp.weak(i, beside)

    # Layers: what is not in one of the classes above.

    from ..layers.attention import attention, attention_weights
    from ..layers.conv import conv, conv_transpose
    from ..layers.dropout import dropped as dropout
    from ..layers.embedding import rows as take_rows
    from ..layers.heads import thirds
    from ..layers.linear import product as linear
    from ..layers.position import rotate_pairs
    from ..layers.recurrent import gru, lstm
    from ..optimizers.updates import adam

    def write_adam(
        xp, ws: Sequence[Any], gs: Sequence[Any], ms: Sequence[Any], vs: Sequence[Any],
        step: int, lr: float, beta1: float, beta2: float, epsilon: float, decay: float,
    ) -> bool:  # fmt: skip
        """Adam's step with decoupled decay, written over parameters, moments and, if need be,
        gradients, which nobody else holds; or False, and nothing was written.
        """
        return False

    def expect_repeats(xp) -> None:
        """Arrays of the same sizes will be made and dropped again and again."""

    def has_quick_steps(xp) -> bool:
        """Whether products of the steps of a loop cost less than one product of all of them."""
        return False

    # Random numbers, drawn with a key, two words of 32 bits.

    word = "uint32"  # the dtype in which words are computed with

    from ..draws import fold_in, order, probit, words

    def draw(xp, meaning: Callable, key: Any, start: int, shape: tuple, *args: Any) -> Any:
        """An array of the numbers from `start` on that `meaning` draws; by NumPy where the key has
        its values.
        """
        values = xp.at_hand(key)
        if values is None:
            drawn = meaning(xp, key, start, math.prod(shape), *args)
            return xp.reshape(drawn, (*shape, *drawn.shape[1:]))
        from .numpy import backend as host

        return xp.from_numpy(host.draw(meaning, values, start, shape, *args), xp.device_of(key))

    def unpackable(xp, x: Any) -> Any:
        """`x`, which can be taken apart along its first axis: `first, second = x`."""
        return x

    def outline(xp, meaning: Callable, *args: Any) -> np.ndarray:
        """A draw of nothing, in NumPy: what its numbers are like."""
        from .numpy import backend as host

        return host.draw(meaning, np.zeros(2, np.uint32), 0, (0,), *args)

    def at_hand(xp, x: Any) -> Any:
        """A NumPy array of the values, where that costs nothing and no one is looking on; else
        None.
        """
        xp._lacks("at_hand")

    def is_inside(xp, x: Any, size: int) -> bool | None:
        """Whether all integers of `x` are from 0 to less than `size`; None where that cannot be
        told without waiting for a device, or while a program is traced.
        """
        return None

    def quick(xp, key: Any, shape: tuple, dtype: Any, normal: bool) -> Any:
        """Uniform numbers of [0, 1), or normal ones, of the framework's own generator."""
        xp._lacks("quick")

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

    def to_numpy(xp, x: Any) -> Any:
        """A NumPy array with the values of `x`, sharing its memory where that is possible."""
        xp._lacks("to_numpy")

    def from_numpy(xp, x: Any, device: Any = None) -> Any:
        """An array of this backend with the values of the NumPy array `x`, sharing memory where
        that is possible.
        """
        xp._lacks("from_numpy")

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

    def devices(xp) -> list[str]:
        """The names of the devices arrays of this backend can live on."""
        xp._lacks("devices")

    # Indexing with NumPy's meaning.

    def index_get(xp, x: Any, index: Any) -> Any:
        """`x[index]`."""
        xp._lacks("index_get")

    def index_update(xp, x: Any, index: Any, value: Any, how: str) -> Any:
        """A copy of `x` with `x[index]` set to, or combined with, `value`; `how`: set, add,
        multiply, min or max.
        """
        xp._lacks("index_update")

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
            raise TypeError(f"dtype: {xp.name} has {', '.join(DTYPES)} and float16, got {name!r}")
        return dtype

    def narrow(xp, name: str) -> Any:
        """The dtype called float16 or bfloat16, which the standard does not have; None where there
        is none.
        """
        xp._lacks("narrow")

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

    def _lacks(xp, verb: str) -> NoReturn:
        raise NotImplementedError(f"backend {xp.name} has no {verb}")
