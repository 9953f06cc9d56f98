"""One training step as one pure function: loss, gradients, optimizer and the state of the model,
compiled as a whole.

The arrays of a training are a nest of dicts, separate from their module, so that a step does not
walk over the module; the module is rebuilt when it is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from ..compile.compiling import has_compiler, jit
from ..core import tree
from ..core.dispatch import backend_of, check_callable, dtype_of, find_backend
from ..core.means import Mean
from ..distribute.world import World, bounds, digest_of, is_divided, rows_of, shapes_of
from ..gradients.transforms import value_and_grad_alone
from ..modules.contents import STATE, Held, Skeleton, gather, look
from ..modules.module import Module
from ..optimizers.pairs import Optimizer, Writing, check_pair, descended
from ..random import is_key
from .reducing import Reduced, digests
from .weighing import Part, averaged, counted, settled


class TrainState:
    """A training at one moment: `state.model` is the model, `state.optimizer` the state of the
    optimizer, `state.arrays` the nest of all arrays, which `iso.save` takes.

    >>> step = iso.train_step(lambda v, x: np.sum(v * x), iso.optimizers.sgd(1.0))
    >>> step.init(np.ones(2)).model
    array([1., 1.])
    """

    __slots__ = ("flags", "held", "is_new", "skeleton", "world")

    def __init__(
        self, arrays: Any, skeleton: Skeleton | None, is_new: bool = False,
        world: World | None = None, flags: Sequence[Any] = (),
    ):  # fmt: skip
        self.held, self.skeleton, self.is_new = arrays, skeleton, is_new
        self.world, self.flags = world, flags

    @property
    def arrays(self) -> dict[str, Any]:
        return nested(self.held)

    @property
    def model(self) -> Any:
        """The model, with copies of the arrays: a step may overwrite those of the state."""
        arrays = self.arrays if self.world is None else self.world.local(self.arrays)
        return built(self.skeleton, held(copied(arrays)))

    @property
    def optimizer(self) -> Any:
        return self.arrays["optimizer"]

    def __repr__(self) -> str:
        kind = "nest" if self.skeleton is None else repr(self.skeleton)
        return f"TrainState({kind}, {len(tree.flatten(self.arrays)[0])} arrays)"


class TrainStep:
    """See `train_step`."""

    def __init__(
        self, loss: Callable[..., Any], optimizer: Optimizer, has_aux: bool, compiled: bool,
        compute: str | None, accumulate: int, guard: bool, name: str = "train_step",
        world: World | None = None,
    ):  # fmt: skip
        check_callable(name, loss)
        check_pair(name, optimizer)
        if compute not in (None, "bfloat16", "float16"):
            raise ValueError(f'{name}: needed compute as "bfloat16" or "float16", got {compute!r}')
        if type(accumulate) is not int or accumulate < 1:
            raise ValueError(f"{name}: needed accumulate as an int >= 1, got {accumulate}")
        self.loss, self.pair, self.has_aux = loss, optimizer, has_aux
        self.compiled, self.compute, self.accumulate = compiled, compute, accumulate
        self.guard, self.name = guard, name
        self.world = check_world(name, world)
        if self.world is not None and self.world.is_global and not compiled:
            raise ValueError(
                f"{name}: needed compiled=True with {self.world}: only compiled programs divide "
                "the work, got compiled=False"
            )
        self._programs: list[tuple[Skeleton | None, Callable[..., Any]]] = []
        self._reduced: dict[Any, Reduced] = {}

    def init(self, model: Any) -> TrainState:
        """The state before the first step, with copies of the model's arrays."""
        if isinstance(model, Module):
            skeleton, parts = self._known(look(model).skeleton), gather(model)
        else:
            skeleton, parts = None, Held(model, {}, {})
        leaves: list[Any] = tree.flatten(parts.variables)[0]
        if not leaves:
            kind = type(model).__name__
            raise ValueError(
                f"{self.name}: needed a model with variables to train, got none in a {kind}; "
                "give a module with variables, or a nest of floating-point arrays"
            )
        for x, path in zip(leaves, tree.paths(parts.variables)):
            xp: Any = find_backend(x)
            if xp is None or not xp.is_float(x.dtype):
                found = f"a {type(x).__name__}" if xp is None else f"{dtype_of(x)} of {xp.name}"
                raise TypeError(
                    f"{self.name}: needed a module or a nest of floating-point arrays as model, "
                    f"got {found} at {path or 'the model'}"
                )
            if self.compute is not None and xp.narrow(self.compute) is None:
                raise ValueError(
                    f"{self.name}: needed a compute dtype that {xp.name} has, got "
                    f"{self.compute!r}; leave it out, or convert the model to another backend"
                )
        backend_of(leaves[0]).expect_repeats()
        optimizer = self.pair.init(parts.variables)
        return self.begun(copied({**parts._asdict(), "optimizer": optimizer}), skeleton)

    def begun(self, arrays: dict[str, Any], skeleton: Skeleton | None) -> TrainState:
        """A state of arrays that nothing else refers to."""
        slot = lambda x: x if (xp := find_backend(x)) is None else xp.slot(x, self.compiled)
        return TrainState(tree.map(slot, arrays), skeleton, is_new=True)

    def __call__(self, state: TrainState, /, *batch: Any) -> tuple[TrainState, Any]:
        state, value, _, aux = self.run(state, batch)
        return state, ((value, aux) if self.has_aux else value)

    def run(
        self, state: TrainState, batch: tuple, rows: Any = None, flags: Sequence[float] = (),
        total: int = 0, as_it_is: bool = False,
    ) -> tuple[TrainState, Any, Any, Any]:  # fmt: skip
        """The next state, the loss, the count of the loss (None for a scalar, which counts its
        rows) and its aux. With several workers, `rows` of the batch count (all by default), `total`
        is the number of rows of all, if known, and `state.flags` are the sums of their flags. A
        step `as_it_is` is not compiled.
        """
        if not isinstance(state, TrainState):
            raise TypeError(
                f"train_step: needed the state made by init, got a {type(state).__name__}; write "
                "state = step.init(model), then state, loss = step(state, *batch)"
            )
        if as_it_is:
            arrays, loss, count, aux, _ = self._one(state.skeleton, state.arrays, batch, ())
            return self.begun(arrays, state.skeleton), loss, count, aux
        if state.is_new:  # no step has placed its arrays on their device yet
            arrays, state.is_new = self._placed(state, batch), False
            is_whole = self.compiled and (self.world is None or self.world.is_global)
            state.held = flat(arrays) if is_whole else arrays
        world = self.world
        if world is None or world.is_global:
            given = (state.held, batch, flags) if len(flags) else (state.held, batch)
            program = self._program(state.skeleton)
            if world is None:
                arrays, loss, count, aux, flags = program(*given)
            else:
                if world.size > 1 and not total:  # `fit` has compared them
                    world.check_equal("shapes and dtypes of batches", [shapes_of(batch)])
                with world.dog.watching("a training step", program):
                    arrays, loss, count, aux, flags = program(*given)
                world.expect(loss)
            return TrainState(arrays, state.skeleton, world=world, flags=flags), loss, count, aux
        program = self._reduction(state.skeleton, batch)
        flags = flags or [0.0, *digests(batch, 0)]
        arrays, loss, count, aux, flags = program(state.arrays, batch, rows, flags, total)
        return TrainState(arrays, state.skeleton, world=world, flags=flags), loss, count, aux

    def _placed(self, state: TrainState, batch: tuple) -> dict[str, Any]:
        if self.world is None:
            return placed(state.arrays, batch)
        if self.world.size > 1:
            line = lambda x, path: (
                f"{path} {dtype_of(x)} {tuple(x.shape)}, checksum {digest_of(x)},"
            )
            lines = [line(x, path) for x, path in _arrays(state.arrays)]
            self.world.check_equal("model and optimizer (make models with the same key)", lines)
        return self.world.placed(state.arrays)

    def _reduction(self, skeleton: Skeleton | None, batch: tuple) -> Reduced:
        """The program for batches of such shapes: what it reduces is known when it is traced."""
        leaves, form = tree.flatten(batch)
        kind = lambda x: type(x) if find_backend(x) is None else (tuple(x.shape), dtype_of(x))
        key = (id(skeleton), form, tuple(map(kind, leaves)))
        found = self._reduced.get(key)
        if found is None:
            world: Any = self.world
            name = getattr(self.loss, "__qualname__", "")
            programs = partial(self._first, skeleton), self._last
            found = Reduced(world, self.compiled, *programs, frozen_leaves(skeleton), name)
            self._reduced[key] = found
        return found

    def _known(self, skeleton: Skeleton) -> Skeleton:
        """An equal skeleton that has a program, or this one."""
        for known, _ in self._programs:
            if known is not None and known == skeleton:
                return known
        return skeleton

    def _program(self, skeleton: Skeleton | None) -> Callable[..., Any]:
        for known, program in self._programs:
            if known is skeleton:
                return program

        def one(arrays: Any, batch: tuple, flags: Any = ()) -> tuple:
            if not isinstance(arrays, tree.Flat):
                return self._one(skeleton, arrays, batch, flags)
            new, *others = self._one(skeleton, arrays.nest, batch, flags)
            after = tree.Flat.of(new)
            if after.form == arrays.form:
                after.form = arrays.form  # the same object is compared faster
            return after, *others

        # so that the slow-compilation warning names the loss
        one.__qualname__ = getattr(self.loss, "__qualname__", one.__qualname__)
        program = jit(one, donate=0) if self.compiled else one
        self._programs.append((skeleton, program))
        return program

    def _one(self, skeleton: Skeleton | None, arrays: dict, batch: tuple, flags: Any) -> tuple:
        part, state, aux = self._first(skeleton, arrays, batch)
        new, loss, aux = self._last(arrays, part, state, aux)
        new = new if self.world is None else self.world.kept(new)
        sums = [backend_of(flags).sum(flags)] if find_backend(flags) is not None else []
        return new, loss, part.count, aux, sums

    def _first(self, skeleton: Skeleton | None, arrays: dict, batch: tuple) -> tuple:
        """The loss of a batch with its gradients, the state after it, and its aux."""
        old = held(arrays)
        xp: Any = backend_of(tree.flatten(old.variables)[0][0])
        objective = partial(self._objective, xp, skeleton, old)
        objective = value_and_grad_alone(self.name, objective)
        state, aux = old.state, None  # updated after every part

        is_own = self.world is not None and not self.world.is_global  # a part of the batch
        is_scalar = False

        def parts() -> Iterator[Part]:
            nonlocal state, aux, is_scalar
            for part in split(self.name, batch, self.accumulate, is_own):
                (loss, found), grads = objective(old.variables, state, part)
                state, aux, count = found
                if is_own and count is None:  # parts of unequal size
                    is_scalar, count = True, float(rows_of(self.name, part))
                yield Part(loss, grads, count)

        whole = averaged(xp, parts())
        return (whole._replace(count=None) if is_scalar else whole), state, aux

    def _last(self, arrays: dict, part: Part, state: Any, aux: Any) -> tuple:
        """The arrays after the update, the loss and aux."""
        old = held(arrays)
        xp: Any = backend_of(part.loss)
        after = part.loss, part.grads, arrays["optimizer"], old.variables, part.count
        # results may show the old parameters, and the gradient of one may be another one
        shown = filter(find_backend, tree.flatten((part, state, aux))[0])
        owned = isinstance(self.pair, Writing) and xp.are_apart(
            tree.flatten(old.variables)[0], shown
        )
        update = partial(self._after, xp, owned)
        loss, variables, optimizer, *good = as_one(xp, update, *after)
        new = {
            "variables": variables,
            "state": kept(xp, good[0], state, old.state) if good else state,
            "constants": old.constants,
            "optimizer": optimizer,
        }
        return new, loss, aux

    def _after(
        self, xp: Any, owned: bool, loss: Any, grads: Any, optimizer: Any, v: Any, count: Any
    ) -> tuple:
        """The steps after the gradients: returns loss, variables and optimizer state; and whether
        the step is valid, unless that is certain.
        """
        good = counted(xp, count)
        if self.guard:
            fine = xp.are_finite([loss, *tree.flatten(grads)[0]])
            good = fine if good is None else xp.logical_and(fine, good)
        known = None if good is None else xp.at_hand(good)
        if known is not None:
            if not known:
                return loss * math.nan, v, optimizer, good
            good = None
        # the old state is used up, unless the step may turn out invalid
        new = descended(self.pair, grads, optimizer, v, owned and good is None)
        if good is None:
            return loss, *new
        loss = xp.where(good, loss, loss * math.nan)
        return loss, *kept(xp, good, new, (v, optimizer)), good

    def _objective(
        self, xp: Any, skeleton: Skeleton | None, old: Held, v: Any, state: Any, batch: tuple
    ) -> tuple[Any, Any]:
        model = old._replace(
            variables=narrowed(xp, v, self.compute),
            state=lowered(xp, skeleton, state, self.compute),
        )
        model = built(skeleton, model)
        out = self.loss(model, *narrowed(xp, batch, self.compute))
        is_pair = isinstance(out, tuple) and len(out) == 2 and not isinstance(out, Mean)
        if self.has_aux and not is_pair:
            raise TypeError(
                f"train_step: needed a loss that returns (loss, aux), got a {type(out).__name__}"
            )
        value, aux = out if self.has_aux else (out, None)
        value, count = settled(self.name, xp, value)
        after = state if skeleton is None else gather(model).state
        if self.compute is not None:
            after = raised(xp, skeleton, after, state)
            value = xp.astype(value, xp.float32)
        return value, (after, aux, count)


def train_step(
    loss: Callable[..., Any], optimizer: Optimizer, /, *, has_aux: bool = False,
    compiled: bool = True, compute: str | None = None, accumulate: int = 1, guard: bool = False,
    distribute: World | None = None,
) -> TrainStep:  # fmt: skip
    """One training step, compiled as a whole: `state = step.init(model)`, then
    `state, loss = step(state, *batch)`, and `state.model` at the end.

    `loss(model, *batch)` returns a 0-d array, or an `iso.Mean` if parts of a batch have unequal
    weights (the step then returns its value); with `has_aux` it returns `(loss, aux)`, and so does
    the step. The model is a module, whose state (running statistics, dropout keys) is updated too,
    or a nest of arrays. Do not use a state again after passing it to a step. With `compute`,
    "bfloat16" or "float16", variables and floating-point batches are cast to that dtype for the
    loss and its gradients, while the stored variables keep theirs. With `accumulate`, a batch is
    split into that many parts with equally many rows, whose gradients are averaged: with equal
    weights for a scalar loss, by their counts for a `Mean`. A step whose counts are all 0, and with
    `guard` one whose loss or gradients are not finite, changes nothing and returns NaN; only random
    keys advance: state that is uint32 of shape (2,), as `iso.random.key` makes it.

    With `distribute`, a world of `iso.distribute.init`, all its processes make each step together:
    `step(state, *world.share(batch))`, where each computes with its rows. The loss must be a mean.
    Loss, gradients, state, and in aux the floating-point scalars and each `iso.Mean` are averaged
    as if they came from one process; other arrays of aux are those of this process.

    >>> step = iso.train_step(lambda v, x: np.sum((v["w"] - x) ** 2), iso.optimizers.sgd(0.25))
    >>> state = step.init({"w": np.zeros(2)})
    >>> for _ in range(2):
    ...     state, loss = step(state, np.array([1.0, 2.0]))
    >>> state.model, float(loss)
    ({'w': array([0.75, 1.5 ])}, 1.25)
    """
    return TrainStep(
        loss, optimizer, has_aux, compiled, compute, accumulate, guard, world=distribute
    )


def check_world(name: str, world: Any) -> World | None:
    """The world, or None if there is only one worker."""
    if world is None or isinstance(world, World):
        return None if world is None or world.shares == 1 else world
    raise TypeError(
        f"{name}: needed distribute as the world of iso.distribute.init(), got a "
        f"{type(world).__name__}"
    )


def _arrays(nest: Any) -> list[tuple[Any, str]]:
    both = zip(tree.flatten(nest)[0], tree.paths(nest))
    return [(x, path) for x, path in both if find_backend(x) is not None]


def held(arrays: dict[str, Any]) -> Held:
    return Held(*(arrays[name] for name in Held._fields))


def built(skeleton: Skeleton | None, parts: Held) -> Any:
    """The model: a module, or the nest of its variables."""
    return parts.variables if skeleton is None else skeleton.filled(parts)


def flat(arrays: dict[str, Any]) -> Any:
    """The arrays as a program takes them: each step passes its leaves to the next."""
    found = (find_backend(x) for x in tree.flatten(arrays)[0])
    xp: Any = next(filter(None, found))
    return tree.Flat.of(arrays) if has_compiler(xp) else arrays


def nested(arrays: Any) -> dict[str, Any]:
    """The arrays of `flat` again."""
    return arrays.nest if isinstance(arrays, tree.Flat) else arrays


def placed(arrays: dict[str, Any], batch: tuple) -> dict[str, Any]:
    """The arrays of a state, on the devices of the results of its first step."""
    xp: Any = backend_of(tree.flatten(arrays["variables"])[0][0])
    leaves, form = tree.flatten(arrays)
    return tree.unflatten(form, xp.placed(leaves, tree.flatten(batch)[0]))


def copied(nest: Any) -> Any:
    """The same values in new memory, in row-major order: another memory order changes the last bits
    of results, and a file does not keep it.
    """
    return tree.map(lambda x: x if (xp := find_backend(x)) is None else xp.renewed(x), nest)


def narrowed(xp: Any, nest: Any, dtype: str | None) -> Any:
    """The nest with its floating-point arrays in a narrower dtype."""
    if dtype is None:
        return nest
    narrow = xp.narrow(dtype)
    is_float = lambda x: find_backend(x) is xp and xp.isdtype(x.dtype, "real floating")
    return tree.map(lambda x: xp.astype(x, narrow) if is_float(x) else x, nest)


def lowered(xp: Any, skeleton: Skeleton | None, state: Any, dtype: str | None) -> Any:
    """State with its frozen variables in a narrower dtype; other state is unchanged."""
    if dtype is None or skeleton is None:
        return state
    form, parts = by_place(skeleton, state)
    return tree.unflatten(form, [narrowed(xp, x, dtype) if frozen else x for frozen, x in parts])


def raised(xp: Any, skeleton: Skeleton | None, state: Any, old: Any) -> Any:
    """State after a call with `lowered` state, in its original dtypes."""
    if skeleton is None:
        return state
    like = lambda x, y: xp.astype(x, y.dtype) if find_backend(x) is xp and x.dtype != y.dtype else x
    form, parts = by_place(skeleton, state)
    before = [y for _, y in by_place(skeleton, old)[1]]
    both = zip(parts, before)
    return tree.unflatten(form, [y if frozen else tree.map(like, x, y) for (frozen, x), y in both])


def by_place(skeleton: Skeleton, state: Any) -> tuple[Any, list[tuple[bool, Any]]]:
    """The state by its places in a module: whether each holds a frozen variable, and its value."""
    form, numbers, _ = skeleton.nests[STATE]
    is_frozen = [skeleton.kinds[n] != STATE for n in numbers]
    return form, list(zip(is_frozen, form.flatten_up_to(state)))


def frozen_leaves(skeleton: Skeleton | None) -> Callable[[Any], list[bool]]:
    """A function of the state: whether each of its leaves belongs to a frozen variable."""

    def found(state: Any) -> list[bool]:
        if skeleton is None:
            return [False] * len(tree.flatten(state)[0])
        parts = by_place(skeleton, state)[1]
        return [frozen for frozen, x in parts for _ in tree.flatten(x)[0]]

    return found


def kept(xp: Any, good: Any, new: Any, old: Any) -> Any:
    """The new arrays if `good`, else the old ones; keys are always the new ones."""
    value = xp.at_hand(good)
    if value is not None and value:
        return new
    pick = (lambda x, y: xp.where(good, x, y)) if value is None else (lambda x, y: y)
    # leaf by leaf, so that a compiler fuses it with the update
    return tree.map(lambda x, y: x if x is y or is_key(x) else pick(x, y), new, old)


def as_one(xp: Any, func: Callable[..., Any], *nests: Any) -> Any:
    """The function of the nests, as a separate program if `xp` compiles only such parts."""
    if not xp.compiles_parts():
        return func(*nests)
    arrays, form = tree.flatten(nests)
    after: list[Any] = []

    def flat(*arrays: Any) -> list:
        outs, out_form = tree.flatten(func(*tree.unflatten(form, arrays)))
        after.append(out_form)
        return outs

    outs = xp.compiled_part(flat, arrays)
    return tree.unflatten(after[-1], outs)


def split(name: str, batch: tuple, parts: int, is_uneven: bool = False) -> list[tuple]:
    """A batch in equal parts along the first axis, or in parts that differ by at most a row."""
    if parts == 1:
        return [batch]
    leaves, form = tree.flatten(batch)
    if is_uneven:
        rows = rows_of(name, batch)
        places = [slice(*bounds(rows, i, parts)) for i in range(min(parts, rows))]
        cuts = [[x[place] if is_divided(x) else x for x in leaves] for place in places]
        return [tree.unflatten(form, cut) for cut in cuts]
    cut = []
    for x, path in zip(leaves, tree.paths(batch)):
        size = x.shape[0] if getattr(x, "ndim", 0) else 0
        if not size or size % parts:
            raise ValueError(
                f"{name}: needed batches that can be cut into {parts} equal parts, got "
                f"{size} examples at {path}; use a batch_size divisible by {parts}, drop_last=True"
            )
        n = size // parts
        cut.append([x[i * n : (i + 1) * n] for i in range(parts)])
    return [tree.unflatten(form, column) for column in zip(*cut)]
