"""Custom backward rules in torch, by an `autograd.Function` that works in every transform of
torch.func, also in nested ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ...core import tree
from .private import (
    get_unwrapped,
    is_functorch_wrapped_tensor,
    len_torch_dispatch_stack,
    maybe_current_level,
    maybe_get_level,
    unwrap_if_dead,
)


class Custom(torch.autograd.Function):
    """The operation of one `Rule`: returns its outputs, then the residuals that are not inputs."""

    generate_vmap_rule = True

    @staticmethod
    # pyright: ignore[reportIncompatibleMethodOverride]
    def forward(rule: Any, *arrays: torch.Tensor) -> tuple:
        if len(set(map(id, arrays))) < len(arrays):  # the same tensor twice: make them two inputs
            arrays = tuple(x.view_as(x) for x in arrays)
        outs, residuals = rule.caller.run(rule.fwd, *arrays)
        places = _places(arrays, residuals)
        rule.n_outs, rule.places = len(outs), places
        outs = [y.view_as(y) if any(y is x for x in arrays) else y for y in outs]
        kept = [r for r, place in zip(residuals, places) if place is None]
        return *outs, *(r.clone() if any(r is y for y in outs) else r for r in kept)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: tuple) -> None:
        rule, *arrays = inputs
        ctx.rule, ctx.n_arrays = rule, len(arrays)
        ctx.save_for_backward(*arrays, *output)
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*(r for r in output if not _is_float(r)))

    @staticmethod
    # pyright: ignore[reportIncompatibleMethodOverride]
    def backward(ctx: Any, *grads: Any) -> tuple:
        rule, n = ctx.rule, ctx.rule.n_outs
        # these tensors may belong to a torch.func level that ended before the pullback was called
        saved = tuple(map(unwrap_if_dead, ctx.saved_tensors))
        grads = tuple(g if g is None else unwrap_if_dead(g) for g in grads)
        arrays, output = saved[: ctx.n_arrays], saved[ctx.n_arrays :]
        kept = iter(output[n:])
        residuals = tuple(next(kept) if p is None else arrays[p] for p in rule.places)
        upstream = tuple(torch.zeros_like(y) if g is None else g for y, g in zip(output, grads[:n]))
        total = list(rule.caller.run(rule.bwd, residuals, upstream, arrays))
        # a second derivative also needs the gradients of the residuals
        if any(g is not None for g in grads[n:]):
            total = _add_residuals(rule, arrays, output[n:], grads[n:], total)
        return None, *total


def _places(arrays: tuple, residuals: tuple) -> list:
    """For each residual: the position of the input that is the same tensor, or None. Such a
    residual is saved as an input, so that second derivatives reach it.
    """
    return [next((i for i, x in enumerate(arrays) if x is r), None) for r in residuals]


def _add_residuals(rule: Any, arrays: tuple, kept: tuple, grads: tuple, total: list) -> list:
    floats = [i for i, x in enumerate(arrays) if _is_float(x)]

    def residuals_of(*given: torch.Tensor) -> tuple:
        full = list(arrays)
        for i, x in zip(floats, given):
            full[i] = x
        found = rule.caller.run(rule.fwd, *full)[1]
        return tuple(r for r, place in zip(found, rule.places) if place is None and _is_float(r))

    seeds = tuple(
        torch.zeros_like(r) if g is None else g for r, g in zip(kept, grads) if _is_float(r)
    )
    _, pull = torch.func.vjp(residuals_of, *(arrays[i] for i in floats))  # pyright: ignore
    for i, extra in zip(floats, pull(seeds)):
        total[i] = total[i] + extra
    return total


def _is_float(x: torch.Tensor) -> bool:
    return x.is_floating_point() or x.is_complex()


# Reading these attributes does not use the values of a tensor; rebuilding a module reads them.
METADATA = {
    getattr(torch.Tensor, name).__get__
    for name in ("device", "dtype", "is_leaf", "layout", "ndim", "requires_grad", "shape")
}


class Escapes(TorchFunctionMode):
    """Sets `found` if an operation uses a tensor whose gradient would be lost: a tensor that
    requires gradients, or one that is differentiated by a torch.func level above the running one.
    Inside a custom function, torch silently treats such tensors as constants.
    """

    found = False

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: Any = None
    ) -> Any:
        if func not in METADATA:
            for x in tree.flatten((args, kwargs))[0]:
                if isinstance(x, torch.Tensor) and _escaped(x, maybe_current_level() or 0):
                    self.found = True
        return func(*args, **(kwargs or {}))


def _escaped(x: torch.Tensor, level: int) -> bool:
    """Whether a torch.func level above `level`, or plain autograd, needs a gradient of `x`."""
    x = unwrap_if_dead(x)
    while is_functorch_wrapped_tensor(x):
        if maybe_get_level(x) <= level:
            return False
        if x.requires_grad:
            return True
        x = get_unwrapped(x)
    return x.requires_grad


class Replay:
    """Contexts for running a function again. Each starts with the state that torch's random
    generators had at the start of the first one.
    """

    def __init__(self) -> None:
        self.states: Any = None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        if len_torch_dispatch_stack():  # tracing: the compiler manages the generators
            yield
        elif self.states is None:
            self.states = torch.get_rng_state(), _gpu_states()
            yield
        else:
            with torch.random.fork_rng():
                torch.set_rng_state(self.states[0])
                if self.states[1]:
                    torch.cuda.set_rng_state_all(self.states[1])
                yield


def _gpu_states() -> list[torch.Tensor]:
    return torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
