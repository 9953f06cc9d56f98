"""Reverse-mode differentiation for plain NumPy.

NumPy passes every function called on a `Traced` value to us. We compute the value with NumPy
itself, and store in a node how a gradient flows back to the arguments. The pullback of `vjp` visits
the nodes from the output back, the newest first.

Higher orders are nested calls: each `vjp` has its own tape, with a higher level than the tapes
around it. An operation belongs to the highest level among its arguments, and its values may
themselves be traced at a lower level, or mapped: `vmap` takes part in the same levels (`mapped`).
Rules call NumPy, so the second derivative is the first derivative of the rule. Calls share nothing
but the counter of levels, so threads, recursion and exceptions are safe. Only arrays of the caller
that a rule will read again are read-only while the function runs (`hold`).

To save memory, a node keeps only what its rule needs: `elementwise` rules name the values they
need, and other rules are closures made in the forward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from heapq import heappop, heappush
from inspect import signature
from operator import itemgetter
from typing import Any

import numpy

from .adding import At, Slot, add_at, add_mapped_at, can_take, cast, unbroadcast
from .buffers import Buffer, bare, made
from .custom_mapped import custom_mapped
from .holding import Tape, memory, snapshot
from .layouts import laid_out
from .levels import LIFTED, OPEN, RUNNING, newest
from .mapped import Mapped, batched, call, one, two
from .storage import ACTIVE, Finished, Rest, apart, bottom, lent, refuse, seen, shares
from .traced import TRACED, Traced, concrete, is_traced, no_rule

np: Any = numpy  # its type stubs do not know traced values
ndarray = numpy.ndarray
SEQUENCES = (list, tuple)  # NumPy takes the list in x * [1, 2] as an array, and so do the rules
GIVEN = (list, tuple, Buffer)


# A node is a tuple, the cheapest object: (order, partials, saved, parents, shape, dtype).
# `partials` is either a tuple with one function per argument, called with the gradient and the
# `saved` values, or one function of the gradient that returns the gradients of all arguments.
# `parents` has a pair (position of the argument, its node) for each traced argument.
Node = tuple[Any, ...]


def elementwise(func: Callable, *partials: Callable | None) -> None:
    """Register the derivative of an elementwise `func`: one of `partials` per argument. A partial
    takes the gradient `g`, and those of `y` (the output), `a` and `b` (the arguments) that it has
    as parameters, the same for all partials of a function. The tape undoes broadcasting.
    """
    needs = [list(signature(p).parameters)[1:] for p in partials if p is not None]
    if any(n != needs[0] for n in needs):
        raise TypeError(f"elementwise: partials of {func.__name__} name different arguments")
    keep = _keeper(["yab".index(name) for name in needs[0]])
    keeps_a, keeps_b = "a" in needs[0], "b" in needs[0]

    def unary(a: Any) -> Any:
        tape = a.tape
        x = a.value
        y = one(func, x) if type(x) in LIFTED else func(x)
        return Traced(
            y, tape, (_next(tape), partials, keep((y, x)), ((0, a.node),), y.shape, y.dtype)
        )

    def binary(a: Any, b: Any) -> Any:
        # an attribute of a traced value is slow
        first: Any = a.tape if type(a) is Traced else None
        second: Any = b.tape if type(b) is Traced else None
        if first is second:
            tape, x, z = first, a.value, b.value
            y = two(func, x, z) if type(x) in LIFTED or type(z) in LIFTED else func(x, z)
            saved, parents = keep((y, x, z)), ((0, a.node), (1, b.node))
        elif first is None or (second is not None and second.level > first.level):
            tape, x = second, b.value
            if tape.changed:
                tape.check(a)
            if type(a) in GIVEN:
                a = _given(a, keeps_a)
            elif keeps_a:
                a = tape.hold(a)
            y = two(func, a, x) if type(x) in LIFTED or type(a) in LIFTED else func(a, x)
            saved, parents = keep((y, a, x)), ((1, b.node),)
        else:
            tape, x = first, a.value
            if tape.changed:
                tape.check(b)
            if type(b) in GIVEN:
                b = _given(b, keeps_b)
            elif keeps_b:
                b = tape.hold(b)
            y = two(func, x, b) if type(x) in LIFTED or type(b) in LIFTED else func(x, b)
            saved, parents = keep((y, x, b)), ((0, a.node),)
        return Traced(y, tape, (_next(tape), partials, saved, parents, y.shape, y.dtype))

    TRACED[func] = unary if len(partials) == 1 else binary


def _given(x: Any, keeps: bool) -> Any:
    """A list, or an array that may be written later, as a plain array."""
    if type(x) is not Buffer:
        return np.asarray(x)
    return x.value.copy(order="K") if keeps else x.value


def _keeper(picks: list[int]) -> Callable[[tuple], tuple]:
    """A function that selects, from (output, *arguments), the values to save."""
    if len(picks) > 1:
        return itemgetter(*picks)
    return (lambda values: (values[picks[0]],)) if picks else (lambda values: ())


def rule(*funcs: Callable) -> Callable[[Callable], Callable]:
    """Decorates the rule of `funcs`, a function `maker(y, *args, **kwargs)`. It gets the output and
    the arguments, and returns a tuple with one function of `g` per argument (None if there is no
    derivative), or one function of `g` that returns all gradients as a tuple. Its parameters after
    `y` have the names that NumPy uses.
    """

    def register(maker: Callable) -> Callable:
        for func in funcs:
            TRACED[func] = partial(_record, func, maker)
        return maker

    return register


def primitive(func: Callable) -> Callable:
    """A function of our own that acts like one of NumPy's: it has a rule for traced arguments."""

    @wraps(func)
    def call(*args: Any, **kw: Any) -> Any:
        top = newest(args)
        if top is None:
            return func(*args, **kw)
        return (
            batched(top.tape, call, args, kw) if type(top) is Mapped else TRACED[call](*args, **kw)
        )

    return call


def composed(*funcs: Callable, always: bool = False) -> Callable[[Callable], Callable]:
    """Decorates a function that replaces `funcs` for traced values: it computes the same with other
    NumPy functions. Its results lie in memory as NumPy's do: see `laid_out`, also for `always`.
    """

    def register(body: Callable) -> Callable:
        for func in funcs:
            TRACED[func] = laid_out(func, body, always)
        return body

    return register


def constant(*funcs: Callable) -> None:
    """Register functions whose derivative is zero wherever it exists, or whose result is not a
    float. They are called on plain values.
    """
    for func in funcs:
        TRACED[func] = partial(_concretely, func)


def _concretely(func: Callable, *args: Any, **kw: Any) -> Any:
    return func(*[concrete(a) for a in args], **{k: concrete(v) for k, v in kw.items()})


def _record(func: Callable, maker: Callable, *args: Any, **kw: Any) -> Any:
    """Call `func` on the values of traced arguments, and record its backward functions."""
    tape: Any = None
    for a in args:
        if type(a) is Traced:
            of = a.tape
            if tape is None or of.level > tape.level:
                tape = of
    if kw:
        tape, args, kw = _positional(func, maker, tape, args, kw)
    values, parents, deeper = [], [], False
    for i, a in enumerate(args):
        kind = type(a)
        if kind is Traced and a.tape is tape:
            parents.append((i, a.node))
            a = a.value
            kind = type(a)
        if kind in LIFTED:
            deeper, a = True, snapshot(a)
        elif kind in GIVEN:
            a = _given(a, True) if kind is Buffer else bare(a)
        elif tape.changed:
            tape.check(a)
        values.append(a)
    y = call(func, *values, **kw) if deeper else func(*values, **kw)
    partials = maker(y, *values, **kw)
    if type(partials) is tuple:  # keep only the functions for traced arguments
        partials = tuple(partials[i] for i, _ in parents)
        parents = [(k, node) for k, (_, node) in enumerate(parents)]
        if None in partials:
            no_rule(func, " with respect to one of the arguments traced here")
    for i, x in enumerate(values):
        if isinstance(x, ndarray) and x is args[i]:
            _keep(tape, x, partials)
    if isinstance(y, tuple):
        return _several(y, tape, (_next(tape), partials, (), parents, len(y), None))
    out = Traced(y, tape, (_next(tape), partials, (), parents, y.shape, y.dtype))
    kind = type(y)
    if (kind is ndarray and (y.base is not None or y is values[0])) or kind in LIFTED:
        for i, a in enumerate(args):
            if type(a) is Traced and a.tape is tape and shares(y, values[i]):
                seen(out, a, func, i, args, kw)
                break
    return out


def recorded(tape: Tape, arrays: Sequence[Any], y: Any, backs: Any) -> Traced:
    """The traced value of `y`, which was computed from `arrays`. `backs` is a tuple with one
    function of the gradient per array, or one function that returns all gradients.
    """
    parents = []
    several = type(backs) is tuple
    partials = []
    for i, a in enumerate(arrays):
        if type(a) is Traced:
            parents.append((len(partials) if several else i, a.node))
            if several:
                partials.append(backs[i])
    node = (_next(tape), tuple(partials) if several else backs, (), parents, y.shape, y.dtype)
    return Traced(y, tape, node)


def _next(tape: Tape) -> int:
    if not tape.running:
        raise Finished(
            "a traced NumPy value was used after the differentiated function had returned; "
            "return it as an output or as aux instead of keeping it"
        )
    return next(tape.order)


def _keep(tape: Tape, x: ndarray, partials: Any) -> None:
    """Hold an array where one of the functions `partials` captures it."""
    kept: Any = None
    for partial_ in partials if type(partials) is tuple else (partials,):
        for cell in getattr(partial_, "__closure__", None) or ():
            held = cell.cell_contents
            listed = type(held) in SEQUENCES and any(part is x for part in held)
            if held is x or listed:
                kept = tape.hold(x) if kept is None else kept
                parts = [kept if part is x else part for part in held] if listed else ()
                cell.cell_contents = type(held)(parts) if listed else kept


def _several(outs: tuple, tape: Tape, whole: Node) -> Any:
    """One traced value for each of `outs`. In the backward pass the node `whole` collects the
    gradients of all outputs in one list, with None for outputs that are not used.
    """
    parts = [
        Traced(y, tape, (_next(tape), (partial(Slot, i),), (), ((0, whole),), y.shape, y.dtype))
        for i, y in enumerate(outs)
    ]
    return getattr(type(outs), "_make", tuple)(parts)


def _positional(
    func: Callable, maker: Callable, tape: Any, args: tuple, kw: dict
) -> tuple[Any, tuple, dict]:
    """Move traced keyword arguments to their positions, by the names in the function's rule."""
    if not any(type(v) is Traced for v in kw.values()):
        return tape, args, kw
    names = list(signature(maker).parameters)[1:]
    placed, kw = list(args), dict(kw)
    while len(placed) < len(names) and names[len(placed)] in kw:
        placed.append(kw.pop(names[len(placed)]))
    for word, value in kw.items():
        if type(value) is Traced:
            no_rule(func, f" with a traced argument {word}=")
    tapes = [a.tape for a in placed if type(a) is Traced]
    return max(tapes, key=lambda t: t.level), tuple(placed), kw


def custom(bound: Any, *arrays: Any) -> tuple:
    """Call a function with a custom backward rule: see `Backend.custom_call`."""
    top = newest(arrays)
    if top is None:
        return _apart_from(arrays, bound.func(*arrays))
    tape = top.tape
    if type(top) is Mapped:
        if any(map(is_traced, arrays)):
            return custom_mapped(tape, custom, bound, arrays)
        return _apart_from(arrays, bound.func(*arrays))
    values = tuple([_kept(a, tape) for a in arrays])
    inside = tuple([lent(x, tape) for x in values])
    outs, residuals = bound.fwd(*inside)
    outs = tuple([_given(y, True) if type(y) is Buffer else y for y in outs])
    for x, y in zip(values, inside):
        if type(y) is Traced and y.node is not x.node:
            why = "a function with a rule of its own, or one computed again by iso.checkpoint"
            refuse("x[i] = v", f"{why}, wrote into its argument", "; write into np.copy(x)")
    if any(map(is_traced, values)):
        outs = custom(bound, *values)  # an outer differentiation uses the custom rule too
    parents = [(i, a.node) for i, a in enumerate(arrays) if type(a) is Traced and a.tape is tape]
    likes = [(y.shape, y.dtype) for y in outs]

    def pullback(gs: list[Any]) -> tuple:
        full = tuple(np.zeros(*like) if g is None else g for g, like in zip(gs, likes))
        return bound.bwd(residuals, full, values)

    return _several(tuple(outs), tape, (_next(tape), pullback, (), parents, len(outs), None))


def _apart_from(arrays: Sequence[Any], outs: Sequence[Any]) -> tuple:
    """Outputs of a function with a rule of its own: no argument, and no part of one."""
    seen = {id(memory(bottom(a))) for a in arrays}
    bare = [y.value if type(y) is Buffer else y for y in outs]
    return tuple([made(apart(y, seen)) if type(y) in (ndarray, Mapped) else y for y in bare])


def vjp(func: Callable, leaves: Sequence[Any]) -> tuple[tuple, Callable, tuple]:
    """Run `func(*leaves) -> (outputs, aux)` on traced values. Return the outputs, the pullback and
    aux; the outputs and aux are no longer traced by this call.
    """
    tape = Tape()
    leaves, originals = [tape.hold(x) for x in leaves], leaves
    roots: list[Node] = [(next(tape.order), (), (), (), x.shape, x.dtype) for x in leaves]
    tape.given = {node[0]: x for node, x in zip(roots, originals) if isinstance(x, ndarray)}
    token = ACTIVE.set(tape)
    OPEN.append(tape)
    try:
        outs, aux = func(*[Traced(x, tape, node) for x, node in zip(leaves, roots)])
        outs, aux = (tuple([_shown(x, tape) for x in xs]) for xs in (outs, aux))
    finally:
        OPEN.remove(tape)
        ACTIVE.reset(token)
        tape.close()
    ends = [o.node if type(o) is Traced and o.tape is tape else None for o in outs]

    def pullback(cotangents: Sequence[Any]) -> tuple:
        grads = backward([(n, g) for n, g in zip(ends, cotangents) if n is not None])
        return _hand_out(leaves, [grads.get(node[0]) for node in roots], cotangents)

    return tuple(_lower(o, tape) for o in outs), pullback, tuple(_lower(a, tape) for a in aux)


def _shown(x: Any, tape: Tape) -> Any:
    """An output, read while a view can still be taken again."""
    if type(x) is Buffer:
        return x.value if x.tape is tape else x
    return snapshot(x) if type(x) is Traced and x.tape is tape else x


def backward(seeds: Sequence[tuple[Node, Any]]) -> dict[int, Any]:
    """The gradients of the roots, by the `order` of their nodes. `seeds` are the nodes of the
    outputs with their gradients. A node is visited after all nodes that depend on it.
    """
    grads: dict[int, Any] = {}
    owned: set[int] = set()  # nodes whose gradient is a sum made here: it can be changed in place
    heap: list[Node] = []
    found: dict[int, Any] = {}

    def give(node: Node, d: Any) -> None:
        order, _, _, _, shape, dtype = node
        if d.shape != shape:
            d = unbroadcast(d, shape)
        if d.dtype != dtype:
            d = cast(d, dtype)
        held = grads.get(order)
        if held is None:
            grads[order] = d
            heappush(heap, node)
        elif order in owned and can_take(held, d):
            held += d  # of mapped numbers, a new value
            grads[order] = held
        else:
            grads[order] = total = held + d
            if type(total) is ndarray or (type(total) is Mapped and type(total.value) is ndarray):
                owned.add(order)
            else:
                owned.discard(order)

    def give_at(node: Node, part: At) -> None:
        order, _, _, _, shape, dtype = node
        buffer = grads.get(order)
        kinds = type(part.g), type(buffer)
        mapped = RUNNING and newest((part.index,)) is not None
        if mapped or kinds[0] in LIFTED or kinds[1] in LIFTED:
            if order in owned and can_take(buffer, part.g) and add_mapped_at(buffer, part):
                return
            give(node, scatter(part.g, part.index, shape))
            if type(getattr(grads[order], "value", None)) is ndarray:
                owned.add(order)
            return
        if order not in owned:  # there may be many slices of one array: all are added to one buffer
            if buffer is None:
                heappush(heap, node)
            grads[order] = np.zeros(shape, dtype) if buffer is None else np.array(buffer)
            owned.add(order)
        add_at(grads[order], part.index, part.g if part.g.dtype == dtype else cast(part.g, dtype))

    def give_rest(node: Node, g: Any, order: int, index: Any) -> None:
        if type(g) is not Traced and not isinstance(g, (ndarray, np.generic)):
            written = np.zeros(node[4], bool)
            written[index] = True
            give(node, np.where(written, 0.0, g))
            return
        if order not in owned or not isinstance(g, (ndarray, Traced)):
            g = np.array(g) if type(g) is not Traced else np.copy(g)
        g[index] = 0
        if node[0] in grads:
            give(node, g)
            return
        grads[node[0]] = g
        heappush(heap, node)
        owned.add(node[0])

    def give_slot(node: Node, part: Slot) -> None:
        if node[0] not in grads:
            grads[node[0]] = [None] * node[4]
            heappush(heap, node)
        grads[node[0]][part.place] = part.g

    with np.errstate(all="ignore"):  # a gradient that is inf or NaN is returned as it is
        for node, g in seeds:
            give(node, g)
        while heap:
            order, partials, saved, parents, _, _ = heappop(heap)
            g = grads.pop(order)
            if not parents:
                found[order] = g
            elif type(partials) is not tuple:
                partials = [lambda g, d=d: d for d in partials(g)]
            for place, parent in parents:
                d = partials[place](g, *saved)
                if type(d) is At:
                    give_at(parent, d)
                elif type(d) is Rest:
                    give_rest(parent, g, order, d.index)
                elif type(d) is Slot:
                    give_slot(parent, d)
                else:
                    give(parent, d)
    return found


@primitive
def scatter(g: Any, index: Any, shape: tuple[int, ...]) -> Any:
    """Zeros of `shape` with `g` added at `index`."""
    out = np.zeros(shape, g.dtype)
    add_at(out, index, g)
    return out


def _kept(x: Any, tape: Tape) -> Any:
    """The plain value of an argument that a rule reads again, and that may be written meanwhile."""
    if type(x) is Traced and x.tape is tape:
        return x.value
    return _given(x, True) if type(x) is Buffer else tape.hold(x)


def _lower(x: Any, tape: Tape) -> Any:
    return x.value if type(x) is Traced and x.tape is tape else x


def _hand_out(leaves: Sequence[Any], grads: list[Any], cotangents: Sequence[Any]) -> tuple:
    """The gradients for the caller, who may write into each: zeros where there is none."""
    seen = {id(memory(bottom(g))) for g in cotangents}
    out = []
    for x, g in zip(leaves, grads):
        if g is None:
            g = np.zeros_like(concrete(x))
        elif type(g) is Buffer:
            g = g.value
        elif type(g) not in LIFTED and isinstance(concrete(x), ndarray):
            g = np.asarray(g)
        out.append(made(apart(g, seen)))
    return tuple(out)
