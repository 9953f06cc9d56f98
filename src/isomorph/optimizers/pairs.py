"""The pair of pure functions that makes an optimizer, and ways to combine pairs: chains, masks,
accumulation, averages.

`init` makes a state from parameters, `update` turns gradients into updates; clipping, decay and
learning rates are such pairs themselves. A state is a nest of dicts and tuples of arrays. It has
the dtype of the parameters (in float16 the squares of small gradients are 0: for Adam and similar
optimizers use bfloat16 or float32 parameters). Steps are counted by an int32 array of the backend,
so that programs are compiled only once. No gradient flows through an update: to differentiate a
step, use `iso.optimizer_update` and similar functions with `stop_gradients=False`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core import tree
from .lifting import Lift, number
from .masks import Mask, chosen

if TYPE_CHECKING:
    from ..types.array_types import T


class Optimizer(NamedTuple):
    """A pair of pure functions: `init(v)` returns a state, `update(grads, state, v)` returns
    `(updates, state)`, and `iso.apply_updates(v, updates)` the new parameters.

    >>> opt = iso.optimizers.sgd(0.1)
    >>> v = {"w": np.array([1.0, 2.0])}
    >>> updates, state = opt.update({"w": np.array([10.0, 0.0])}, opt.init(v), v)
    >>> iso.apply_updates(v, updates)
    {'w': array([0., 2.])}
    """

    init: Callable[[Any], Any]
    update: Callable[..., tuple[Any, Any]]


class Writing(Optimizer):
    """A pair with a faster way to its update: `into(grads, state, v, owned)` returns `(v, state)`
    after it, or None if the backend has none for these arrays. If the caller owns all of them, so
    that nothing else refers to them, they may be overwritten.
    """

    into: Callable[..., tuple[Any, Any] | None]

    def __new__(cls, pair: Optimizer, into: Callable[..., tuple[Any, Any] | None]) -> Writing:
        made = super().__new__(cls, *pair)
        made.into = into
        return made


def apply_updates(v: T, updates: Any, /) -> T:
    """The parameters after an update, v + updates.

    Both are nests of the same structure with floating-point arrays of the same shapes and dtypes.
    No gradient flows through the result.

    >>> iso.apply_updates([np.ones(2)], [np.array([0.5, -0.5])])
    [array([1.5, 0.5])]
    """
    lift = Lift("apply_updates", {"v": v, "updates": updates})
    return lift.nest(map(add, *lift.columns), True)


def chain(*transforms: Optimizer) -> Optimizer:
    """The pair that applies several in order: the first gets the gradients, each of the others the
    result of the one before. Its state is the tuple of their states.

    >>> opt = iso.chain(iso.optimizers.clip_by_global_norm(1.0), iso.optimizers.sgd(0.5))
    >>> v = np.zeros(2)
    >>> opt.update(np.array([3.0, 4.0]), opt.init(v), v)[0]
    array([-0.3, -0.4])
    """
    for i, transform in enumerate(transforms):
        check_pair("chain", transform, f" as argument {i}")

    def init(v: Any) -> tuple:
        return tuple([transform.init(v) for transform in transforms])

    def passed(pairs: Sequence[Optimizer], grads: Any, state: Any, v: Any) -> tuple[Any, list]:
        """The gradients after some of the pairs, and their states."""
        if not isinstance(state, tuple) or len(state) != len(transforms):
            got = f"{len(state)}" if isinstance(state, tuple) else f"a {type(state).__name__}"
            raise ValueError(
                f"chain: needed the state made by init, a tuple of {len(transforms)}, got {got}"
            )
        after = []
        for pair, old in zip(pairs, state):
            grads, new = pair.update(grads, old, v)
            after.append(new)
        return grads, after

    def update(grads: Any, state: tuple, v: Any) -> tuple[Any, tuple]:
        grads, after = passed(transforms, grads, state, v)
        return grads, tuple(after)

    if not transforms or not isinstance(transforms[-1], Writing):
        return Optimizer(init, update)
    *before, last = transforms

    def into(grads: Any, state: tuple, v: Any, owned: bool) -> tuple[Any, tuple]:
        grads, after = passed(before, grads, state, v)
        v, new = descended(last, grads, state[-1], v, False)  # the other states may refer to v
        return v, (*after, new)

    return Writing(Optimizer(init, update), into)


def descended(pair: Optimizer, grads: Any, state: Any, v: Any, owned: bool) -> tuple[Any, Any]:
    """The parameters and the state after an update. Arrays that are `owned` may be overwritten."""
    written = pair.into(grads, state, v, owned) if isinstance(pair, Writing) else None
    if written is not None:
        return written
    updates, state = pair.update(grads, state, v)
    return apply_updates(v, updates), state


def masked(opt: Optimizer, mask: Mask, /) -> Optimizer:
    """The pair that applies `opt` to the leaves that `mask` selects; the other gradients are not
    changed, and have no state.

    A mask is a pattern for the keys of a leaf joined with `/`, several patterns, a function of that
    path and the array, or a nest of bools like the parameters.

    >>> opt = iso.optimizers.masked(iso.optimizers.scale(0.0), "encoder/*")
    >>> v = {"encoder": {"w": np.ones(2)}, "head": np.ones(2)}
    >>> opt.update(v, opt.init(v), v)[0]
    {'encoder': {'w': array([0., 0.])}, 'head': array([1., 1.])}
    """
    check_pair("optimizers.masked", opt)

    def part(lift: Lift, column: list[Any], taken: list[bool]) -> Any:
        return tree.unflatten(lift.form, [x if yes else None for x, yes in zip(column, taken)])

    def init(v: Any) -> Any:
        lift = Lift("optimizers.masked", {"v": v})
        return opt.init(part(lift, lift.columns[0], chosen(lift, mask)))

    def update(grads: Any, state: Any, v: Any) -> tuple[Any, Any]:
        lift = Lift("optimizers.masked", {"v": v, "grads": grads})
        ws, gs = lift.columns
        taken = chosen(lift, mask)
        updates, state = opt.update(part(lift, gs, taken), state, part(lift, ws, taken))
        found = iter(tree.flatten(updates)[0])
        return lift.nest([next(found) if yes else g for g, yes in zip(gs, taken)], True), state

    return Optimizer(init, update)


def freeze(mask: Mask, /) -> Optimizer:
    """Sets the updates of the leaves that `mask` selects to 0; put it last in a chain. The mask is
    as in `masked`.

    >>> opt = iso.chain(iso.optimizers.sgd(1.0), iso.optimizers.freeze("encoder/*"))
    >>> v = {"encoder": {"w": np.ones(2)}, "head": np.ones(2)}
    >>> opt.update(v, opt.init(v), v)[0]
    {'encoder': {'w': array([0., 0.])}, 'head': array([-1., -1.])}
    """

    def init(v: Any) -> tuple:
        chosen(Lift("optimizers.freeze", {"v": v}), mask)
        return ()

    def update(grads: Any, state: tuple, v: Any) -> tuple[Any, tuple]:
        lift = Lift("optimizers.freeze", {"v": v, "grads": grads})
        zero, gs = lift.xp.zeros_like, lift.columns[1]
        stopped = [zero(g) if yes else g for g, yes in zip(gs, chosen(lift, mask))]
        return lift.nest(stopped, True), state

    return Optimizer(init, update)


def accumulate(opt: Optimizer, *, every: int) -> Optimizer:
    """The pair that passes the mean of `every` gradients to `opt` at each `every`-th call, and
    returns updates of 0 at the other calls. All gradients have the same weight; if batches have
    unequal weights, use `iso.train_step(..., accumulate=)`.

    >>> opt = iso.optimizers.accumulate(iso.optimizers.sgd(1.0), every=2)
    >>> v = np.zeros(1)
    >>> first, state = opt.update(np.array([1.0]), opt.init(v), v)
    >>> second, state = opt.update(np.array([3.0]), state, v)
    >>> first, second
    (array([0.]), array([-2.]))
    """
    name = "optimizers.accumulate"
    check_pair(name, opt)
    if not isinstance(every, Integral) or isinstance(every, bool) or every < 1:
        raise ValueError(f"{name}: needed every as an int >= 1, got {every!r}")

    def init(v: Any) -> dict[str, Any]:
        lift = Lift(name, {"v": v})
        return {"step": counter(lift), "mean": zeros(lift), "inner": opt.init(v)}

    def update(grads: Any, state: dict[str, Any], v: Any) -> tuple[Any, dict[str, Any]]:
        step, mean, inner = entries(name, state, "step", "mean", "inner")
        lift = Lift(name, {"v": v, "grads": grads, "mean": mean})
        xp = lift.xp
        share = lift.constant(1 / every)
        sums = [m + g * s for m, g, s in zip(lift.columns[2], lift.columns[1], share)]
        count = step + 1
        last = count >= every
        # opt runs at every call: a compiled program does not know which call is the last
        updates, after = opt.update(lift.nest(sums, True), inner, v)
        kept = lambda new, old: xp.where(last, new, old)
        return (
            tree.map(lambda u: kept(u, xp.zeros_like(u)), updates),
            {
                "step": xp.asarray(kept(xp.zeros_like(count), count)),
                "mean": lift.nest([kept(xp.zeros_like(m), m) for m in sums], True),
                "inner": tree.map(kept, after, inner),
            },
        )

    return Optimizer(init, update)


def ema(decay: float, *, debias: bool = True) -> Optimizer:
    """The pair that keeps an exponential moving average of weights: `update(v, state)` returns
    `(average, state)`.

    The average starts at 0 and is divided by the sum of its weights, 1 − decayᵗ; without `debias`
    it starts at the weights that `init` gets.

    >>> average = iso.optimizers.ema(0.9)
    >>> state = average.init(np.zeros(1))
    >>> mean, state = average.update(np.array([1.0]), state)
    >>> mean, state = average.update(np.array([2.0]), state)
    >>> np.round(mean, 4)
    array([1.5263])
    """
    name = "optimizers.ema"
    rate = number(name, "decay", decay, below=1)

    def init(v: Any) -> dict[str, Any]:
        lift = Lift(name, {"v": v})
        if debias:
            return {"step": counter(lift), "mean": zeros(lift)}
        copies = [lift.xp.asarray(x, copy=True) for x in lift.columns[0]]
        return {"step": counter(lift), "mean": lift.nest(copies, True)}

    def update(v: Any, state: dict[str, Any], _: Any = None) -> tuple[Any, dict[str, Any]]:
        step, mean = entries(name, state, "step", "mean")
        lift = Lift(name, {"v": v, "mean": mean})
        count, kept = tick(lift, step)
        old, new = lift.constant(rate), lift.constant(1 - rate)
        means = [m * a + x * b for x, m, a, b in zip(*lift.columns, old, new)]
        after = {"step": kept, "mean": lift.nest(means, True)}
        if not debias:
            return after["mean"], after
        (fixes,) = lift.corrections(count, rate)
        return lift.nest([m * fix for m, fix in zip(means, fixes)], True), after

    return Optimizer(init, update)


# The parts of states.


def zeros(lift: Lift) -> Any:
    """A nest of zeros like the first nest."""
    return lift.nest(map(lift.xp.zeros_like, lift.columns[0]), True)


def counter(lift: Lift) -> Any:
    """A step counter at 0: an int32 array on the devices of the first leaf, of which there may be
    several; so it is computed from that leaf.
    """
    xp, leaves = lift.xp, lift.columns[0]
    if not leaves:
        return xp.zeros((), dtype=xp.int32)
    return xp.zeros_like(xp.sum(leaves[0]), dtype=xp.int32)


def tick(lift: Lift, step: Any) -> tuple[Any, Any]:
    """The number of this step, counted from 1, as a Python int where that costs nothing; and as the
    array that is stored.
    """
    values = lift.xp.at_hand(step)
    kept = lift.xp.asarray(step + 1)
    return (kept if values is None else int(values) + 1), kept


def entries(name: str, state: Any, *keys: str) -> list[Any]:
    """The entries of a state made by `init`."""
    if not isinstance(state, dict) or set(state) != set(keys):
        got = list(state) if isinstance(state, dict) else f"a {type(state).__name__}"
        raise ValueError(
            f"{name}: needed the state made by init, a dict with {', '.join(keys)}, got {got}"
        )
    return [state[key] for key in keys]


def check_pair(name: str, opt: Any, where: str = "") -> None:
    if not isinstance(opt, Optimizer):
        raise TypeError(f"{name}: needed an Optimizer{where}, got a {type(opt).__name__}")
