"""PyTorch. Its namespace is that of array-api-compat; functions that are called often go directly
to torch (`names`).
"""

from __future__ import annotations

import os
from typing import Any

from . import loading  # noqa: F401 (imports torch itself, before anything else does)

# isort: split
import array_api_compat.torch as compat
import array_api_compat.torch.fft as fft
import array_api_compat.torch.linalg as compat_linalg
import numpy as np
import torch

from ...core.code_readers import reader
from ...core.contract import Price
from ...core.dispatch import dtype_of
from ..explaining import DECIDES, DEVICES, INDEX, LEAVES, add
from ..memory import bfloat16
from . import (
    attention,
    compiling,
    convolution,
    creation,
    hosting,
    indexing,
    linalg,
    looping,
    names,
    private,
    random,
    reading,
    recurrent,
    writing,
)
from .caller import Caller
from .custom import Custom, Escapes, Replay
from .layers import Layers
from .pointwise import KERNELS, Pointwise, long_kernel
from .private import (
    FakeTensor,
    get_unwrapped,
    is_functorch_wrapped_tensor,
    is_gradtrackingtensor,
    maybe_get_level,
    peek_interpreter_stack,
)

HAS_CUDA = torch.backends.cuda.is_built()
# Parts of torch's errors about tensors as indices.
WORDS = ("can be converted to an index", "tensors used as indices must be")
NUMPYS = (
    "numpy() on Tensor that requires grad",
    "numpy() is not supported for tensor subclasses",
    "device type tensor to numpy",
)

APART = (
    "all tensors to be on the same device",
    "found two different devices",
    "is not on the expected device",
)

# Parts of torch's errors about an operation that it cannot map.
NOT_MAPPED = (
    "Batching rule not implemented",
    "Cannot access data pointer of Tensor that doesn't have storage",
    "vmap over",
    "vmap: It looks like",
    "vmap: We do not",
)


@reader
def _tell(func: Any, instead: Any) -> None:
    if instead is None:
        func._dynamo_marked_constant = True
    else:
        func._torchdynamo_inline = instead


class Torch(Layers):
    name = "torch"
    arrays = (torch.Tensor, torch.nn.Parameter)

    def vjp(xp, func, leaves, once=False, has_aux=True) -> Any:
        # torch.func, not autograd.grad: it can be nested, and captured tensors keep gradients.
        func = reading.guarded(func)
        if has_aux:
            outs, pull, aux = torch.func.vjp(func, *leaves, has_aux=True)  # pyright: ignore
            return outs, lambda cotangents: _owned(pull(cotangents), cotangents), aux

        # One tensor, not a tuple: torch.func spends more time on nests than on a small function.
        def bare(*leaves):
            outs, _ = func(*leaves)
            return outs[0] if len(outs) == 1 else outs

        out, pull = torch.func.vjp(bare, *leaves)  # pyright: ignore
        if isinstance(out, tuple):
            return out, lambda cotangents: _owned(pull(cotangents), cotangents), ()
        return (out,), lambda cotangents: _owned(pull(cotangents[0]), cotangents), ()

    def vjp_alone(xp, func, leaves, once=False, has_aux=True) -> Any:
        # with autograd's own graph: torch.func does additional work for each operation
        if compiling.is_tracing():
            return xp.vjp(func, leaves, once, has_aux)
        own = [x.detach().requires_grad_() for x in leaves]
        with torch.enable_grad():
            outs, aux = func(*own)

        def pull(cotangents):
            if not any(y.requires_grad for y in outs):
                return tuple(map(torch.zeros_like, own))
            found = torch.autograd.grad(
                outs, own, cotangents, allow_unused=True, materialize_grads=True
            )
            return _owned(found, cotangents)

        bare = lambda arrays: tuple(x.detach() for x in arrays)
        return bare(outs), pull, bare(aux)

    def adam(
        xp, g, m, v, beta1, rest1, beta2, rest2, epsilon, fix1, fix2, floor=0.0
    ) -> tuple[Any, Any, Any]:
        if floor or compiling.is_tracing() or g.requires_grad or m.requires_grad:
            return super().adam(
                g, m, v, beta1, rest1, beta2, rest2, epsilon, fix1, fix2, floor=floor
            )
        # the same formula in half the memory: new arrays cost more than arithmetic
        m = (m * beta1).add_(g * rest1)
        square = g * g
        v = (v * beta2).add_(square.mul_(rest2))
        torch.mul(v, fix2, out=square)
        return (m * fix1).div_(square.sqrt_().add_(epsilon)), m, v

    def write_adam(xp, rows, numbers, owned):
        return writing.adam(rows, numbers, owned)

    def are_apart(xp, arrays, others):
        return writing.are_apart(arrays, others)

    def row_reader(xp, x, order):
        if order is None or type(x) is not torch.Tensor:
            return super().row_reader(x, order)
        places = torch.from_numpy(order).to(x.device)
        return lambda begin, end: x.index_select(0, places[begin:end])

    def are_finite(xp, arrays):
        # infinity and NaN do not vanish in a sum, which is one kernel instead of five
        if random.is_at_hand(arrays[0]):
            total: Any = sum(x.sum() for x in arrays)
            found = torch.isfinite(total)
            if found:
                return found
        return super().are_finite(arrays)

    def price(xp, x):
        if x.device.type == "cpu":  # its own kernels are faster at large products
            return Price(12.0, 0.45, 3e-4, 1e-4, -3e-11)
        return Price(9.0, 0.25, 3e-3, 2.5e-4, 0.0)

    def runs_ahead(xp, x):
        return x.device.type != "cpu"

    def slot(xp, x, compiled):
        return convolution.laid_out(x)

    def custom_call(xp, rule, arrays):
        if torch.compiler.is_compiling():  # torch 2.13 silently drops the rule there
            raise NotImplementedError(
                "custom_vjp: a function with its own derivative cannot be traced by torch.compile, "
                "which would drop its rule; compile it with iso.jit"
            )
        rule.caller = Caller.of(arrays)
        return Custom.apply(rule, *arrays)[: rule.n_outs]

    def keep_programs(xp, folder):
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder / f"torch-{torch.__version__}")

    def special(xp, function, *arrays):
        kernel = KERNELS.get(function.name)
        if kernel is not None:
            return kernel(*arrays)
        if function.is_long and (looping.is_traced() or torch.compiler.is_compiling()):
            return long_kernel(function.kernel.__module__, function.name, list(arrays))
        return super().special(function, *arrays)

    def smooth(xp, function, arrays):
        if torch.compiler.is_compiling():
            return super().smooth(function, arrays)
        watching = torch.is_grad_enabled()
        for x in arrays:  # `is_watched` of each, without a call: kernels are short
            if maybe_get_level(x) > 0 or (watching and x.requires_grad):
                return Pointwise.apply(xp, function, *arrays)
        kernel = KERNELS.get(function.name)  # `special`, without a call where there is one
        return xp.special(function, *arrays) if kernel is None else kernel(*arrays)

    def map_rows(xp, func, *rows):
        if not rows[0].shape[0]:
            return super().map_rows(func, *rows)
        try:
            return tuple(map(_whole, torch.func.vmap(func)(*rows)))
        except RuntimeError as error:
            if not any(words in str(error) for words in NOT_MAPPED):
                raise
            raise RuntimeError(
                "vmap: torch cannot map one of the operations in this function: "
                f"{str(error).partition('. ')[0]}; call it for each example and stack the results"
            ) from error

    def host_call(xp, host, arrays):
        if any(is_functorch_wrapped_tensor(x) or isinstance(x, FakeTensor) for x in arrays):
            return hosting.call(xp, host, arrays)
        return super().host_call(host, arrays)

    def compile(xp, func, arrays, given):
        try:
            return compiling.program(compiling.reusing(func, given), arrays)
        except Exception as error:
            xp.explain(error)
            raise

    def check_given(xp, arrays, given):
        compiling.check_given(arrays, given)

    def signature(xp, arrays):
        return compiling.signature(arrays)

    def is_tracing(xp, arrays):
        return compiling.is_tracing()

    def is_watched(xp, x):
        return maybe_get_level(x) > 0 or (x.requires_grad and torch.is_grad_enabled())

    def explain(xp, error):
        said = str(error)
        if isinstance(error, TypeError) and "cannot decide which Python code runs" in said:
            add(error, INDEX, DECIDES)  # the error does not say what the tensor was used for
        elif isinstance(error, RuntimeError) and "data-dependent control flow" in said:
            add(error, DECIDES)
        elif any(words in said for words in NUMPYS):
            add(error, LEAVES)
        elif isinstance(error, (TypeError, IndexError)) and any(words in said for words in WORDS):
            add(error, INDEX)
        elif isinstance(error, RuntimeError) and any(words in said for words in APART):
            add(error, DEVICES)

    def is_local(xp, x):
        inside = is_functorch_wrapped_tensor(x) or isinstance(x, FakeTensor)
        return inside or x.grad_fn is not None  # such a tensor keeps its graph alive

    def own(xp, x):
        return x.clone()

    def run_unseen(xp, func, args):
        escapes = Escapes()
        with escapes:  # not `with … as`: torch.compile does not know the value of such a context
            out = func(*args)
        return out, escapes.found

    word = "int64"

    def words(xp, key, counts):
        return random.words(key, counts)

    def draw(xp, meaning, key, start, shape, *args):
        if random.is_traced(key):
            return random.traced(meaning, key, start, shape, args)
        return super().draw(meaning, key, start, shape, *args)

    def at_hand(xp, x):
        return random.at_hand(x)

    def quick(xp, key, shape, dtype, normal):
        return random.quick(key, shape, dtype, normal)

    def replay(xp):
        return Replay()

    def stop_gradient(xp, x, preserve_type=True):
        if not preserve_type or not x.is_leaf or not x.requires_grad or _is_transformed(x):
            return x.detach()
        fresh = x.detach().clone().requires_grad_()
        return torch.nn.Parameter(fresh) if isinstance(x, torch.nn.Parameter) else fresh

    def to_numpy(xp, x):
        if isinstance(x, FakeTensor):
            raise TypeError(
                "to_numpy: needed a tensor with values, got a placeholder of a trace; call it "
                "outside of compiled code, or through iso.host_function"
            )
        if peek_interpreter_stack() is None:
            return _to_numpy(x)
        with private.temporarily_clear_interpreter_stack():  # tensors of torch.func have no memory
            return _to_numpy(_unwrapped(x))

    def values(xp, x):
        with private.temporarily_clear_interpreter_stack():
            while is_gradtrackingtensor(x):
                x = get_unwrapped(x)
            if is_functorch_wrapped_tensor(x):
                raise TypeError("values: needed one tensor, got one per example of a vmap")
            return super().values(x)

    def from_numpy(xp, x, device=None):
        x = np.asarray(x)
        if x.dtype.name == "bfloat16":
            return xp.from_numpy(x.view(np.int16), device).view(torch.bfloat16)
        if not x.flags.writeable or any(s < 0 for s in x.strides) or not x.dtype.isnative:
            x = np.array(x, x.dtype.newbyteorder("="))  # torch cannot share this byte order
        return xp.from_host(torch.from_numpy(x), device)

    @staticmethod
    def has_devices():
        # torch.compile traces new tensors as if there were no default device
        return HAS_CUDA and torch.cuda.is_initialized() and not torch.compiler.is_compiling()

    def fixed_device(xp, x):
        return None if x.is_cpu and not x.ndim else x.device  # a 0-d CPU tensor fits every device

    def is_one_device(xp, arrays):
        device = arrays[0].device
        return all([x.device == device for x in arrays])  # noqa: C419 - a third of the time

    def from_host(xp, x, device=None):
        if device is None:
            device = torch.empty(0).device  # a tenth of the time of get_default_device
        return x.to(device) if x.is_cpu else x

    def pack(xp, x):
        if x.dtype is not torch.bfloat16:
            return super().pack(x)
        return "bfloat16", *super().pack(x.view(torch.int16))[1:]

    def unpack(xp, word, shape, fill, device):
        if word != "bfloat16":
            return super().unpack(word, shape, fill, device)
        return super().unpack("int16", shape, fill, device).view(torch.bfloat16)

    def lend(xp, x):
        return _filled(x.detach()).resolve_conj().resolve_neg()  # DLPack has no conj and neg bits

    def devices(xp):
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        return [
            "cpu",
            *(f"cuda:{i}" for i in range(count)),
            *(["mps"] if torch.backends.mps.is_available() else []),
        ]

    def attention(xp, query, key, value, scale, mask, is_causal):
        if torch.compiler.is_compiling():  # Dynamo supports neither levels nor the type of a number
            return super().attention(query, key, value, scale, mask, is_causal)
        meaning = super().attention
        if mask is None and type(scale) is float and attention.is_plain(query, key, value):
            return attention.plain(meaning, query, key, value, scale, is_causal)
        return attention.attention(xp, meaning, query, key, value, scale, mask, is_causal)

    def lstm(xp, *arrays):
        return recurrent.recurrent("lstm", super().lstm, arrays)

    def gru(xp, *arrays):
        return recurrent.recurrent("gru", super().gru, arrays)

    def cond(xp, pred, true, false, arrays):
        if torch.compiler.is_compiling():
            return looping.compiled_cond(pred, true, false, arrays)
        if looping.is_traced() or looping.is_mapped(pred):
            return looping.cond(xp, pred, true, false, arrays)
        return super().cond(pred, true, false, arrays)

    def while_loop(xp, goes_on, body, arrays):
        if torch.compiler.is_compiling():
            return looping.compiled_while(goes_on, body, arrays)
        if looping.is_traced():
            return looping.while_loop(xp, goes_on, body, arrays)
        return looping.masked(xp, goes_on, body, arrays)

    def fori_loop(xp, lower, upper, body, arrays):
        if looping.unrolls(lower, upper):
            return super().fori_loop(lower, upper, body, arrays)
        return looping.fori_loop(xp, lower, upper, body, arrays)

    def scan(xp, step, carry, xs, n, reverse=False):
        if n and not torch.compiler.is_compiling() and looping.is_traced():
            return looping.scan(xp, step, carry, xs, n, reverse)
        return super().scan(step, carry, xs, n, reverse)

    def bisected(xp, x, values, side, dtype):
        # in steps, Inductor repeats each in the next ones, and compiles for half a minute
        if x.dtype not in (torch.float32, torch.float64, torch.int32, torch.int64):
            return super().bisected(x, values, side, dtype)
        if not x.is_floating_point():
            return torch.searchsorted(x.contiguous(), values.contiguous(), side=side)
        unknown = torch.isnan(x)  # torch does not find NaN
        count = (~unknown).sum(-1, keepdim=True)
        filled = torch.where(unknown, torch.inf, x).contiguous()
        places = torch.searchsorted(filled, values.contiguous(), side=side)
        last = count if side == "left" else torch.full_like(count, x.shape[-1])
        return torch.where(torch.isnan(values), last, torch.minimum(places, count))

    def index_get(xp, x, index):
        return indexing.get(x, index)

    def index_update(xp, x, index, value, how):
        return indexing.update(xp, x, index, value, how)

    def integer(xp, x):
        # torch.func, while it differentiates, wraps everything that is computed
        while is_gradtrackingtensor(x):
            x = get_unwrapped(x)
        if x.is_cpu or random.is_traced(x) or is_functorch_wrapped_tensor(x):
            return super().integer(x)
        return int(x)  # waits for the device, as torch's own indexing does

    def distance(xp, start, stop):
        return indexing.distance(start, stop)

    def is_float(xp, dtype):
        return dtype.is_floating_point or dtype.is_complex

    def conv(xp, x, w, bias, plan):
        dtype = x.dtype
        if dtype.is_floating_point or dtype.is_complex:
            return convolution.conv(xp, x, w, bias, plan)
        return super().conv(x, w, bias, plan)  # torch has no integer convolutions

    def conv_transpose(xp, x, w, bias, plan):
        if min(map(min, plan.pads)) < 0 or not xp.is_float(x.dtype):
            return super().conv_transpose(x, w, bias, plan)
        return convolution.transposed(x, w, bias, plan)

    def narrow(xp, name):
        return {"float16": torch.float16, "bfloat16": torch.bfloat16}.get(name)


def _unwrapped(x: torch.Tensor) -> torch.Tensor:
    """The plain tensor inside the wrappers of torch.func. Raises if a wrapper belongs to a vmap, or
    if a gradient would be lost.
    """
    while is_functorch_wrapped_tensor(x):
        if not is_gradtrackingtensor(x):
            raise TypeError(
                "to_numpy: needed one tensor, got one per example of a vmap; call it outside "
                "of the mapped function, or through iso.host_function"
            )
        if x.requires_grad:
            raise TypeError(
                f"to_numpy: needed a tensor without gradient, got {dtype_of(x)} of shape "
                f"{tuple(x.shape)} under differentiation; its gradient would be lost; use "
                "iso.stop_gradient(x) first"
            )
        x = get_unwrapped(x)
    return x


def _to_numpy(x: torch.Tensor) -> np.ndarray:
    x = _filled(x.detach()).cpu().resolve_conj().resolve_neg()
    if x.dtype is torch.bfloat16:  # NumPy itself has no bfloat16
        return x.view(torch.int16).numpy().view(bfloat16())
    return x.numpy()


def _is_transformed(x: torch.Tensor) -> bool:
    """Whether `x` is a value inside a transform of torch.func. Such a value has `is_leaf`, but is
    not a leaf that the user made.
    """
    if torch.compiler.is_compiling():  # then the wrapper cannot be examined
        return looping.is_transformed()
    return is_functorch_wrapped_tensor(x)


def _filled(x: torch.Tensor) -> torch.Tensor:
    """`x`, but as a tensor with memory if torch knows that it is zero and stores no memory."""
    if not private.is_zero(x):
        return x
    return torch.zeros(x.shape, dtype=x.dtype, device=x.device)


def _whole(x: torch.Tensor) -> torch.Tensor:
    """`x`, or a copy if it is expanded: elements that share memory must not be written to."""
    if torch.compiler.is_compiling() or 0 not in x.stride() or x.numel() < 2:
        return x
    return x.clone(memory_format=torch.contiguous_format)


def _owned(grads: tuple, cotangents: tuple) -> tuple:
    """The gradients as tensors that may be written to: not expanded, and sharing no memory with
    each other or with a cotangent. Inside torch.func and torch.compile they are never written to.
    """
    if torch.compiler.is_compiling():
        return grads
    held = set(map(_memory, cotangents))
    owned = []
    for g in grads:
        g = _filled(g)
        memory = _memory(g)
        if memory and (memory in held or (0 in g.stride() and g.numel() > 1)):
            g = g.clone(memory_format=torch.contiguous_format)
        held.add(memory)
        owned.append(g)
    return tuple(owned)


def _memory(x: torch.Tensor) -> int:
    """The address of a tensor's memory; 0 if it has none, or inside torch.func."""
    return 0 if is_functorch_wrapped_tensor(x) else private.storage_of(x)


backend = Torch(names, creation, compat, linalg=[linalg, compat_linalg], fft=[fft])
