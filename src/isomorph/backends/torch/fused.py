"""Torch's fast kernels, made to work with second derivatives, vmap and other transforms, which they
do not support themselves.

Outside of torch.func the kernel is part of autograd's graph, and `twice_differentiable` decides in
the backward pass: if that is differentiated as well, the gradient is that of the composed formula.
Inside
torch.func, `fused` runs the kernel below all levels, with a graph of its own, and uses that graph
for the backward pass. If the backward pass is differentiated or mapped, the composed formula is
used instead; also if a transform other than `grad` is active from the start.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from .private import (
    TransformType,
    current_node,
    get_interpreter_stack,
    has,
    len_torch_dispatch_stack,
    maybe_get_level,
    peek_interpreter_stack,
    saved_hooks,
    unwrap_if_dead,
)

Func = Callable[..., tuple]
HAS_CURRENT_NODE = has("current_node")


def fused(
    native: Func,
    composed: Func,
    arrays: Sequence[torch.Tensor],
    whole: tuple[Func, Func] | None = None,
    saved: tuple[str, ...] = (),
) -> tuple:
    """`native(*arrays)`, a kernel that takes and returns floating-point tensors. `composed`
    computes the same by a formula. `saved` are the names of the kernel's arguments in autograd's
    graph.

    `whole` is a pair of operations that a compiler uses instead of the kernel: `forward(*arrays)`
    and `back(arrays, upstream)`.
    """
    if is_foreign():
        return composed(*arrays)
    if len_torch_dispatch_stack() == 0:  # nothing is traced
        whole = None
    if not any(map(is_watched, arrays)):
        return whole[0](*arrays) if whole else native(*arrays)
    if whole is None and peek_interpreter_stack() is None:
        return twice_differentiable(native(*arrays), composed, arrays, saved)
    return Fused.apply(Call(native, composed, whole), *arrays)  # pyright: ignore


def is_foreign() -> bool:
    """Whether Dynamo, or a transform of torch.func other than `grad`, is active."""
    return torch.compiler.is_compiling() or is_more_than_grad()


def is_more_than_grad() -> bool:
    """Whether a transform of torch.func other than `grad` is active."""
    return any(s.key() != TransformType.Grad for s in get_interpreter_stack() or ())


def is_mapped() -> bool:
    """Whether a function is mapped over examples; False under Dynamo, which cannot trace this."""
    if torch.compiler.is_compiling() or peek_interpreter_stack() is None:
        return False
    return any(s.key().name == "Vmap" for s in get_interpreter_stack() or ())


def is_watched(x: torch.Tensor) -> bool:
    """Whether torch.func or autograd differentiates `x`."""
    return maybe_get_level(x) > 0 or (x.requires_grad and torch.is_grad_enabled())


def twice_differentiable(
    outs: tuple, composed: Func, arrays: Sequence[torch.Tensor], saved: tuple[str, ...]
) -> tuple:
    """The outputs of a kernel. Their gradients are the kernel's, or, if they will be differentiated
    themselves, those of the composed formula.

    If the last node of autograd's graph is the kernel itself, which has saved its arguments, a hook
    of that node is enough. It takes a tenth of the time of a node in Python. It reads what the
    kernel saved once more, which a checkpoint of torch does not allow. If torch.vmap maps the
    backward pass, it calls the kernel for one row after the other, and says so.
    """
    node = outs[0].grad_fn
    if not (HAS_CURRENT_NODE and saved and hasattr(type(node), saved[0])) or saved_hooks(True):
        return Twice.apply(composed, len(outs), *outs, *arrays)  # pyright: ignore

    def instead(slopes: tuple, grads: tuple) -> tuple | None:
        if not torch.is_grad_enabled() or grads[0] is None:
            return None
        node = current_node()  # with a reference of its own, the node would never be freed
        kept = [getattr(node, name) for name in saved]
        found = torch.func.vjp(composed, *kept)[1](grads[:1])  # pyright: ignore
        wanted = (None if own is None else g for own, g in zip(slopes, found))
        return *wanted, *slopes[len(saved) :]

    node.register_hook(instead)
    return outs


class Twice(torch.autograd.Function):
    """The outputs of a kernel. Their gradients go to the kernel, or, if they will be differentiated
    themselves, through the composed formula to its arguments.
    """

    @staticmethod
    # pyright: ignore[reportIncompatibleMethodOverride]
    def forward(ctx: Any, composed: Func, n: int, *both: torch.Tensor) -> tuple:
        ctx.composed = composed
        ctx.save_for_backward(*both[n:])
        ctx.set_materialize_grads(False)
        return tuple(y.detach() for y in both[:n])

    @staticmethod
    # pyright: ignore[reportIncompatibleMethodOverride]
    def backward(ctx: Any, *grads: Any) -> tuple:
        arrays = ctx.saved_tensors
        if not torch.is_grad_enabled() and peek_interpreter_stack() is None:  # nothing maps it
            return None, None, *grads, *(None for _ in arrays)
        used = [i for i, g in enumerate(grads) if g is not None]
        chosen = lambda *arrays: tuple(y for i, y in enumerate(ctx.composed(*arrays)) if i in used)
        slopes = torch.func.vjp(chosen, *arrays)[1](tuple(grads[i] for i in used))  # pyright: ignore
        return None, None, *(None for _ in grads), *slopes


class Call:
    """One call of a kernel: its arguments and results with autograd's graph between them."""

    ins: list[torch.Tensor]
    outs: tuple

    def __init__(self, native: Func, composed: Func, whole: tuple[Func, Func] | None):
        self.native, self.composed, self.whole = native, composed, whole


class Fused(torch.autograd.Function):
    @staticmethod
    # pyright: ignore[reportIncompatibleMethodOverride]
    def forward(call: Call, *arrays: torch.Tensor) -> tuple:
        if call.whole:
            call.outs = call.whole[0](*arrays)
            return call.outs
        with torch.enable_grad():
            call.ins = [x.detach().requires_grad_() for x in arrays]
            call.outs = call.native(*call.ins)
        return tuple(y.detach() for y in call.outs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: tuple) -> None:
        ctx.call = inputs[0]
        ctx.save_for_backward(*inputs[1:])
        ctx.set_materialize_grads(False)

    @staticmethod
    # pyright: ignore[reportIncompatibleMethodOverride]
    def backward(ctx: Any, *grads: Any) -> tuple:
        call: Call = ctx.call
        # these tensors may belong to a torch.func level that ended before the pullback was called
        arrays = tuple(map(unwrap_if_dead, ctx.saved_tensors))
        grads = tuple(g if g is None else unwrap_if_dead(g) for g in grads)
        used = [i for i, g in enumerate(grads) if g is not None]
        if not used:
            return None, *(None for _ in arrays)
        seeds = tuple(grads[i] for i in used)
        if any(map(is_watched, (*arrays, *seeds))):

            def chosen(*arrays: torch.Tensor) -> tuple:
                outs = call.composed(*arrays)
                return tuple(outs[i] for i in used)

            return None, *torch.func.vjp(chosen, *arrays)[1](seeds)  # pyright: ignore
        if call.whole:
            full = [torch.zeros_like(y) if g is None else g for g, y in zip(grads, call.outs)]
            return None, *call.whole[1](arrays, full)
        wanted = [i for i in range(len(arrays)) if ctx.needs_input_grad[i + 1]]
        found = torch.autograd.grad(
            [call.outs[i] for i in used], [call.ins[i] for i in wanted], seeds, retain_graph=True
        )
        placed: list[Any] = [None] * len(arrays)
        for i, g in zip(wanted, found):
            placed[i] = g
        return None, *placed
