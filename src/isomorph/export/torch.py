"""Export to a `torch.nn.Module`.

The arrays are registered parameters and buffers, and are looked up at every call. So the model uses
what torch puts there: by a parametrization, `functional_call` or a move to another device. Each
call runs on a temporary copy of the model, which Dynamo can trace.
"""

from __future__ import annotations

from typing import Any

import torch

from ..modules.state import State
from .parts import is_array, joined, leaves_again, spread, taken_apart


class Nest(torch.nn.Module):
    """Holds the arrays under one key of the model's variables and state."""

    def __init__(self, modules: list[Any]):
        super().__init__()
        self._isomorph_modules = modules  # their mode is set by `train`

    def train(self, mode: bool = True) -> Any:
        for module in self._isomorph_modules:
            module.training = mode
        return super().train(mode)


class Value:
    """One value of state: the names of its buffers, and its leaves that are not arrays."""

    def __init__(self, number: int, form: Any, names: list[tuple | None], others: list[Any]):
        self.number, self.form, self.names, self.others = number, form, names, others


class Exported(Nest):
    """See `iso.export.to_torch`."""

    def __init__(self, model: Any):
        form, variables, state, constants = taken_apart("to_torch", model, "torch")
        super().__init__(form.modules())
        self._isomorph = form
        self.training = form.nodes[0].training
        self._isomorph_arrays: list[tuple[int, tuple]] = []
        self._isomorph_state: list[Value] = []
        frozen = [part for part in state if not part.is_state]
        for part in variables:
            name = self._add(part.path, torch.nn.Parameter(own(part.value)))
            self._isomorph_arrays.append((part.number, name))
        for part in (*frozen, *constants):
            is_frozen = any(part is x for x in frozen)
            name = self._add(part.path, own(part.value), persistent=is_frozen)
            self._isomorph_arrays.append((part.number, name))
        for part in state:
            if part.is_state:
                leaves, shape = spread(part.value, part.path)
                names = [self._add(path, own(x)) if is_array(x) else None for path, x in leaves]
                others = [None if is_array(x) else x for _, x in leaves]
                self._isomorph_state.append(Value(part.number, shape, names, others))
        # The arrays may be another framework's, which uses their memory for others once they are
        # gone, and knows nothing of copies that a GPU has still to make.
        for device in {x.device for x in (*self.parameters(), *self.buffers()) if x.is_cuda}:
            torch.cuda.synchronize(device)

    def _add(self, path: tuple, x: torch.Tensor, persistent: bool = True) -> tuple:
        holder, names = self, tuple(map(str, path))
        for i, name in enumerate(names[:-1]):
            _check(names, "." in name or (hasattr(holder, name) and name not in holder._modules))
            if name not in holder._modules:
                holder.add_module(name, Nest(self._isomorph.modules(path[: i + 1])))
            holder = getattr(holder, name)
        _check(names, "." in names[-1] or hasattr(holder, names[-1]))
        if isinstance(x, torch.nn.Parameter):
            holder.register_parameter(names[-1], x)
        else:
            holder.register_buffer(names[-1], x, persistent)
        return names

    def _at(self, names: tuple) -> Any:
        return getattr(self._holder(names), names[-1])

    def _holder(self, names: tuple) -> Any:
        holder: Any = self
        for name in names[:-1]:
            holder = holder._modules[name]
        return holder

    def forward(self, *args: Any, **kw: Any) -> Any:
        leaves = {number: self._at(names) for number, names in self._isomorph_arrays}
        given = [self._values(value) for value in self._isomorph_state]
        states = []
        for value, parts in zip(self._isomorph_state, given):
            states.append(State(joined(value.form, list(parts)), lent=True))
            leaves[value.number] = states[-1]
        out = self._isomorph.copy(leaves).forward(*args, **kw)
        if self.training:
            for value, parts, state in zip(self._isomorph_state, given, states):
                self._keep(value, parts, state.value)
        return out

    def _values(self, value: Value) -> list[Any]:
        found = []
        for names, other in zip(value.names, value.others):
            x = other if names is None else self._at(names)
            # a copy: autograd needs the old values after the buffer has changed
            needs_copy = names is not None and self.training and x.is_floating_point()
            found.append(x.clone() if needs_copy else x)
        return found

    def _keep(self, value: Value, given: list[Any], new: Any) -> None:
        were_arrays = [names is not None for names in value.names]
        leaves = leaves_again("to_torch", value.form, new, were_arrays)
        for i, (names, old, x) in enumerate(zip(value.names, given, leaves)):
            if x is old:
                continue
            if names is None:
                value.others[i] = x
                continue
            holder, x = self._holder(names), x.detach()
            buffer = getattr(holder, names[-1])
            if buffer.shape == x.shape and buffer.dtype == x.dtype:
                with torch.no_grad():
                    buffer.copy_(x)
            else:
                setattr(holder, names[-1], x)

    def to_isomorph(self) -> Any:
        """The model, with copies of the current values."""
        found = {number: own(self._at(names)) for number, names in self._isomorph_arrays}
        for value in self._isomorph_state:
            leaves = [
                other if names is None else own(self._at(names))
                for names, other in zip(value.names, value.others)
            ]
            found[value.number] = joined(value.form, leaves)
        return self._isomorph.filled(found)


def own(x: torch.Tensor) -> torch.Tensor:
    return x.detach().clone()


def _check(names: tuple, is_bad: bool) -> None:
    if is_bad:
        raise ValueError(
            "to_torch: needed names without dots that torch.nn.Module does not use itself, got "
            f"{'/'.join(names)}; rename the attribute or key"
        )
