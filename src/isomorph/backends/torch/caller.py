"""What a custom rule in torch needs from its caller: the default device and the context variables,
such as the default backend. On a GPU, torch runs backward passes in a thread of its own, which has
neither of them; and torch.func runs a forward pass without the default device.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextvars import Context, copy_context
from functools import partial
from typing import Any

import torch


class Caller:
    """A thread, with its context and its default device."""

    def __init__(self, context: Context | None = None) -> None:
        self.context = context
        if context is not None:
            self.thread = threading.get_ident()
            self.device = torch.empty(0).device  # a tenth of the time of get_default_device

    @staticmethod
    def of(arrays: Iterable[torch.Tensor]) -> Caller:
        """The running thread. If torch runs rules for these tensors in the same thread anyway, it
        is `STAYS`, which restores nothing.
        """
        if torch.compiler.is_compiling() or all(x.is_cpu for x in arrays):
            return STAYS
        return Caller(copy_context())

    def run(self, func: Callable[..., Any], *args: Any) -> Any:
        """`func` as the caller would run it."""
        if self.context is None:
            return func(*args)
        if self.thread != threading.get_ident():
            func = partial(self.context.copy().run, func)
        if torch.empty(0).device == self.device:
            return func(*args)
        with self.device:
            return func(*args)


STAYS = Caller()
