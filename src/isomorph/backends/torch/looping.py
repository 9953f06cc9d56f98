"""Branches and loops in torch. Torch has operations for them. Its compiler supports these
operations, but `torch.func.grad` supports none of them, and `vmap` does not support `while_loop`.

So each is a function with a custom rule, whose backward pass is again such an operation. This gives
gradients of any order, and programs with one body, where a Python loop would give one copy per
step. Only the gradient of a compiled `while_loop` raises. The operations need every tensor they use
as an operand: captured tensors are found first, and constants created inside are moved out of the
traced graph afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import Any

import torch
from torch.fx import GraphModule

from ...gradients.captured import hoist
from ...gradients.custom import custom_vjp, unseen
from . import private
from .private import (
    FakeTensor,
    add_batch_dim,
    get_proxy_mode,
    get_unwrapped,
    is_batchedtensor,
    is_functorch_wrapped_tensor,
    peek_interpreter_stack,
    unwrap_batched,
)

WHILE_LOOP: Any = private.while_loop  # looked up here, because Dynamo cannot look it up
ENDLESS = (
    "while_loop: the gradient of a compiled loop needed a number of steps known beforehand; use "
    "iso.fori_loop with Python numbers as bounds, or iso.scan, or differentiate it without iso.jit"
)


def is_traced() -> bool:
    """Whether a program is being traced."""
    return get_proxy_mode() is not None


def is_mapped(x: Any) -> bool:
    """Whether `x` has one value for each example of a vmap."""
    while isinstance(x, torch.Tensor) and is_functorch_wrapped_tensor(x):
        if is_batchedtensor(x):
            return True
        x = get_unwrapped(x)
    return False


# ---- without a compiler --------------------------------------------------------------------------


def masked(xp: Any, goes_on: Callable, body: Callable, arrays: tuple) -> tuple:
    """`Backend.while_loop`. Under vmap it runs until the last example ends; examples that have
    ended keep their values.
    """
    active = goes_on(*arrays)
    while _any(active):
        arrays = xp.cond(active, body, lambda *a: a, arrays) if is_mapped(active) else body(*arrays)
        active = active & goes_on(*arrays)
    return arrays


def _any(x: Any) -> bool:
    while isinstance(x, torch.Tensor) and is_functorch_wrapped_tensor(x):
        x = get_unwrapped(x)
    return bool(x.any()) if isinstance(x, torch.Tensor) else x


def compiled_cond(pred: torch.Tensor, true: Any, false: Any, arrays: tuple) -> tuple:
    """`Backend.cond`, by operations that torch.compile can read."""
    _check_transforms("cond")
    for func in (true, false):
        func(*arrays)  # only for its checks: the result is not used in the program
    return torch.cond(pred, _fresh(true.plain), _fresh(false.plain), arrays)


def compiled_while(goes_on: Callable, body: Callable, arrays: tuple) -> tuple:
    """`Backend.while_loop`, by operations that torch.compile can read."""
    _check_transforms("while_loop")
    first = tuple(x.clone() for x in arrays)
    return WHILE_LOOP(goes_on, _fresh(body), first)


def is_transformed() -> bool:
    return peek_interpreter_stack() is not None


is_transformed._dynamo_marked_constant = True  # pyright: ignore


def _check_transforms(name: str) -> None:
    if is_transformed():
        raise NotImplementedError(
            f"{name}: torch.compile cannot transform it with grad or vmap; compile the whole "
            "function with iso.jit"
        )


# ---- in a traced program, or mapped over examples ------------------------------------------------


def cond(xp: Any, pred: torch.Tensor, true: Callable, false: Callable, arrays: tuple) -> tuple:
    """`Backend.cond` in a traced program, or, if nothing is traced, under a vmap that has one
    `pred` per example.
    """
    held, made = hoist((true, false), every=True)
    n = len(held)
    one, other = (lambda *a, k=k: made(a[:n])[k](*a[n:]) for k in (0, 1))  # pyright: ignore
    return _cond(xp, pred, one, other, (*held, *arrays))


def _cond(xp: Any, pred: Any, true: Callable, false: Callable, args: tuple) -> tuple:
    def run(pred: Any, *args: Any) -> tuple:
        if is_traced():
            return tuple(private.cond_op(pred, _fresh(true), _fresh(false), _apart(args)))
        both = zip(true(*args), false(*args))
        return tuple(torch.where(pred, one, other) for one, other in both)

    def back(saved: tuple, upstream: tuple) -> tuple:
        pred, *args = saved
        floats = [i for i, x in enumerate(args) if xp.is_float(x.dtype)]
        seeds = [g for g in upstream if xp.is_float(g.dtype)]
        one, other = (_pull(xp, func, len(args), floats) for func in (true, false))
        found = dict(zip(floats, _cond(xp, pred, one, other, (*args, *seeds))))
        return None, *(found.get(i) for i in range(len(args)))

    def forth(*args: Any) -> tuple:
        if is_traced():  # tensors used besides the arguments are found in the graph
            return run(*args), args
        try:
            return unseen("cond", xp, run, args), args
        except RuntimeError as error:  # a tensor of another torch.func level
            if "INTERNAL ASSERT" not in str(error):
                raise
            raise TypeError(
                "cond: a function uses an array of the transform around it that is neither an "
                "argument nor captured in its closure; pass it as an operand"
            ) from error

    return custom_vjp(run, forth, back)(pred, *args)


def _pull(xp: Any, func: Callable, n: int, floats: list[int]) -> Callable[..., tuple]:
    """The pullback of `func`, which takes `n` arrays, to the arrays at the positions `floats`. It
    is a function of all arrays, followed by the gradients of the floating-point outputs.
    """

    def pull(*both: Any) -> tuple:
        def chosen(*given: Any) -> tuple[tuple, tuple]:
            full = list(both[:n])
            for i, x in zip(floats, given):
                full[i] = x
            return tuple(y for y in func(*full) if xp.is_float(y.dtype)), ()

        return xp.vjp(chosen, tuple(both[i] for i in floats), True)[1](both[n:])

    return pull


def while_loop(xp: Any, goes_on: Callable, body: Callable, arrays: tuple) -> tuple:
    """`Backend.while_loop` in a traced program."""
    held, made = hoist((goes_on, body), every=True)

    def run(held: Sequence[Any], arrays: Sequence[Any]) -> tuple:
        return _while(
            lambda held, *a: made(held)[0](*a), lambda held, *a: made(held)[1](*a), held, arrays
        )

    def back(saved: tuple, upstream: tuple) -> tuple:
        raise NotImplementedError(ENDLESS)

    return custom_vjp(run, lambda *args: (run(*args), ()), back)(held, arrays)


def _while(goes_on: Callable, body: Callable, held: Sequence[Any], arrays: Sequence[Any]) -> tuple:
    if any(map(is_batchedtensor, (*held, *arrays))):
        return _while_mapped(goes_on, body, held, arrays)
    n = len(arrays)
    first = [x.clone(memory_format=torch.contiguous_format) for x in arrays]

    def holds(*a: Any) -> Any:
        found = goes_on(a[n:], *a[:n])
        return found.clone() if isinstance(found, torch.Tensor) else torch.full((), found)

    step = _fresh(lambda *a: body(a[n:], *a[:n]))
    return tuple(private.while_loop_op(holds, step, tuple(first), _apart(held)))


def _while_mapped(
    goes_on: Callable, body: Callable, held: Sequence[Any], arrays: Sequence[Any]
) -> tuple:
    """A loop under vmap, run at the level below it: one loop for all examples together, until the
    last one ends.
    """

    def truth(held: Any, *arrays: Any) -> torch.Tensor:
        found = goes_on(held, *arrays)
        return found if isinstance(found, torch.Tensor) else torch.full((), found)

    with Below(held, arrays) as below:
        (known, first), each = below.parts, below.each

        def step(held: Any, active: Any, *arrays: Any) -> tuple:
            new = each(body, held, *arrays)
            shown = [active.reshape(-1, *[1] * (y.ndim - 1)) for y in new]
            kept = [torch.where(m, y, x) for m, y, x in zip(shown, new, arrays)]
            return active & each(truth, held, *kept), *kept

        begin = each(truth, known, *first)
        outs = _while(lambda held, active, *_: active.any(), step, known, (begin, *first))
    return below.mapped(outs[1:], 0)


class Below:
    """Enters the level below a vmap, where the examples are an ordinary axis: the first axis of the
    carry and the second axis of `rows`. Captured tensors have it first, or not at all.
    """

    def __init__(self, held: Sequence[Any], carry: Sequence[Any], rows: Sequence[Any] = ()):
        self.level = private.retrieve_current_functorch_interpreter()
        self.given = held, carry, rows

    def __enter__(self) -> Below:
        n = self.level.level()
        held, carry, rows = ([unwrap_batched(x, n) for x in part] for part in self.given)
        size = next(x.shape[a] for x, a in (*held, *carry, *rows) if a is not None)
        self.lowered = self.level.lower()
        self.lowered.__enter__()
        wide: Any = lambda x, axis, at: (
            x.unsqueeze(at).expand(*x.shape[:at], size, *x.shape[at:])
            if axis is None
            else x.movedim(axis, at)
        )
        self.axes = tuple(None if axis is None else 0 for _, axis in held)
        known = tuple(x if axis is None else x.movedim(axis, 0) for x, axis in held)
        self.parts = known, tuple(wide(*x, 0) for x in carry)
        self.rows = tuple(wide(*x, 1) for x in rows)
        return self

    def __exit__(self, *error: Any) -> None:
        self.lowered.__exit__(*error)

    def each(self, func: Callable, held: Any, *args: Any) -> Any:
        """`func(held, *args)` for each example."""
        axes = (self.axes, *(0,) * len(args))
        return torch.func.vmap(func, axes)(tuple(held), *args)

    def mapped(self, tensors: Sequence[Any], axis: int) -> tuple:
        """Tensors of this level, whose axis `axis` counts examples, as tensors of the vmap."""
        return tuple(add_batch_dim(y, axis, self.level.level()) for y in tensors)


def unrolls(lower: Any, upper: Any) -> bool:
    """Whether a loop between these bounds runs as a Python loop."""
    if torch.compiler.is_compiling():
        return type(lower) is type(upper) is int
    return not (is_traced() or is_mapped(lower) or is_mapped(upper))


def fori_loop(xp: Any, lower: Any, upper: Any, body: Callable, arrays: tuple) -> tuple:
    """`Backend.fori_loop` in a traced program or under vmap: a scan if the bounds are Python ints,
    else a while loop.
    """
    device = arrays[0].device if arrays else None
    if type(lower) is type(upper) is int:
        n = max(0, upper - lower)
        numbers = torch.arange(lower, lower + n, device=device)
        step = lambda carry, row: (body(*row, *carry), ())
        return xp.scan(step, arrays, (numbers,), n)[0] if n else arrays
    start = torch.full((), lower, device=device) if type(lower) is int else lower
    return xp.while_loop(
        lambda i, *_: i < upper,
        lambda i, *a: (i + 1, *body(i, *a)),
        (start.to(torch.int64), *arrays),
    )[1:]


def scan(
    xp: Any, step: Callable, carry: tuple, xs: tuple, n: int, reverse: bool
) -> tuple[tuple, tuple]:
    """`Backend.scan` in a traced program."""
    held, made = hoist(step, every=True)
    if not xs:  # torch's operation needs rows
        xs = (torch.zeros(n),)
        known = lambda held, carry, row: made(held)(carry, ())
    else:
        known = lambda held, carry, row: made(held)(carry, row)
    return _scan(xp, known, tuple(held), carry, xs, reverse)


def _scan(
    xp: Any, step: Callable, held: tuple, carry: tuple, xs: tuple, reverse: bool
) -> tuple[tuple, tuple]:
    """A scan with `step(held, carry, x) -> (carry, ys)`. Its backward pass is a scan too: from the
    last row to the first, over the stored carries with which the steps began.
    """

    def keeping(held: tuple, carry: tuple, x: tuple) -> tuple:
        after, ys = step(held, carry, x)
        return after, (*carry, *ys)

    def run(held: tuple, carry: tuple, xs: tuple) -> tuple:
        return _raw_scan(step, held, carry, xs, reverse)

    def forth(held: tuple, carry: tuple, xs: tuple) -> tuple:
        last, both = _raw_scan(keeping, held, carry, xs, reverse)
        k = len(carry)
        return (last, both[k:]), (held, carry, xs, both[:k])

    def back(saved: tuple, upstream: tuple) -> tuple:
        held, carry, xs, carries = saved
        h, c, x = len(held), len(carry), len(xs)
        if any(map(xp.is_watched, (*held, *carry, *xs))):  # higher order: carries depend on these
            carries = _scan(xp, keeping, held, carry, xs, reverse)[1][:c]
        is_float = lambda x: xp.is_float(x.dtype)
        floats = [i for i, y in enumerate((*held, *carry, *xs)) if is_float(y)]
        n_held, n_carry = (sum(map(is_float, part)) for part in (held, carry))
        seeds = [[g for g in part if is_float(g)] for part in upstream]

        def flat(*a: Any) -> tuple:
            after, ys = step(a[:h], a[h : h + c], a[h + c :])
            return *after, *ys

        pull = _pull(xp, flat, h + c + x, floats)

        def pulled(held: tuple, state: tuple, row: tuple) -> tuple:
            sums, after = state[:n_held], state[n_held:]
            grads = pull(*held, *row[: c + x], *after, *row[c + x :])
            sums = tuple(total + g for total, g in zip(sums, grads))
            return (*sums, *grads[n_held : n_held + n_carry]), grads[n_held + n_carry :]

        zeros = [xp.zeros_like(y) for y in held if is_float(y)]
        state, rows = _scan(
            xp, pulled, held, (*zeros, *seeds[0]), (*carries, *xs, *seeds[1]), not reverse
        )
        found = dict(zip(floats, (*state, *rows)))
        grads = [found.get(i) for i in range(h + c + x)]
        filled = [g if g is not None else y for g, y in zip(grads, (*held, *carry, *xs))]
        return tuple(filled[:h]), tuple(filled[h : h + c]), tuple(filled[h + c :])

    return custom_vjp(run, forth, back)(held, carry, xs)


def _raw_scan(
    step: Callable, held: tuple, carry: tuple, xs: tuple, reverse: bool
) -> tuple[tuple, tuple]:
    if any(map(is_batchedtensor, (*held, *carry, *xs))):
        with Below(held, carry, xs) as below:
            known, first = below.parts
            over = lambda held, carry, row: below.each(step, held, carry, row)
            last, ys = _raw_scan(over, known, first, below.rows, reverse)
        return below.mapped(last, 0), below.mapped(ys, 1)
    c, x = len(carry), len(xs)
    like = xs[0]
    first = [y.clone(memory_format=torch.contiguous_format) for y in carry]
    first = first or [like.new_zeros(())]  # torch's operation needs a carry, and a result
    n_ys = 0

    def combine(*a: Any) -> list:
        nonlocal n_ys
        after, ys = step(a[-len(held) :] if held else (), a[:c], a[len(first) : len(first) + x])
        n_ys = len(ys)
        after = after or (a[0],)
        ys = ys or (after[0].new_zeros(()),)
        return [y.clone(memory_format=torch.contiguous_format) for y in (*after, *ys)]

    rows = [torch.flip(y, (0,)) if reverse else y for y in xs]
    outs = private.scan_op(combine, first, list(_apart(rows)), _apart(held))
    last, ys = outs[:c], outs[len(first) : len(first) + n_ys]
    return tuple(last), tuple(torch.flip(y, (0,)) if reverse else y for y in ys)


def _fresh(func: Callable) -> Callable[..., tuple]:
    """`func` with its results copied to new memory, as torch's operations require."""
    return lambda *a: tuple(y.clone(memory_format=torch.contiguous_format) for y in func(*a))


def _apart(tensors: Sequence[Any]) -> tuple:
    """The tensors, copied where they share memory or are not yet part of the trace."""
    seen: set[int] = set()
    found = []
    for x in tensors:
        bare = x
        while is_functorch_wrapped_tensor(bare):
            bare = get_unwrapped(bare)
        memory = private.storage_of(bare)
        foreign = not isinstance(bare, FakeTensor)
        found.append(x.clone() if foreign or memory in seen else x)
        seen.add(memory)
    return tuple(found)


# ---- the graph -----------------------------------------------------------------------------------


def _is_flow(node: Any) -> bool:
    return node.target in (private.cond_op, private.while_loop_op, private.scan_op)


@contextmanager
def inputs(graph: GraphModule, plain: list[torch.Tensor]) -> Iterator[list[torch.Tensor]]:
    """Example arguments for the compiler: placeholders of fixed sizes. In the context, the compiler
    finds programs in its cache on the disk and can, if the graph has branches or loops, express
    sizes that are not known.
    """
    flows = any(map(_is_flow, graph.graph.nodes))
    sizes = private.ShapeEnv(allow_scalar_outputs=flows, allow_dynamic_output_shape_ops=flows)
    mode = private.FakeTensorMode(allow_non_fake_inputs=True, shape_env=sizes)
    with private.tracing(private.TracingContext(mode)):
        yield [mode.from_tensor(x, static_shapes=True) for x in plain]


def lift(graph: GraphModule) -> None:
    """Find tensors that the functions of branches and loops hold as constants, and pass them as
    operands instead.
    """
    for node in filter(_is_flow, list(graph.graph.nodes)):
        names = [n.target for n in node.args if isinstance(n, torch.fx.Node) and n.op == "get_attr"]
        subs = [attrgetter(str(name))(graph) for name in names]
        subs = [sub for sub in subs if isinstance(sub, GraphModule)]
        for sub in subs:
            lift(sub)
            _drop_checks(sub)
        for sub in subs:
            for inner in [n for n in sub.graph.nodes if n.op == "get_attr"]:
                value = attrgetter(str(inner.target))(sub)
                if isinstance(value, torch.Tensor):
                    _lift_one(graph, node, subs, sub, inner, value)
        for sub in subs:
            sub.recompile()
    graph.recompile()


def _drop_checks(sub: GraphModule) -> None:
    """Remove checks for singular matrices: they would be effects, which the compiler fails to order
    inside branches and loops. There the inverse of a singular matrix is inf or NaN. A Cholesky
    factor that does not exist becomes NaN: the kernel leaves finite numbers of it.
    """
    aten = torch.ops.aten
    for node in list(sub.graph.nodes):
        if node.target is not aten._linalg_check_errors.default:
            continue
        info: Any = node.args[0]
        found = info.args[0]
        if found.target is aten.linalg_cholesky_ex.default:
            factor = next(user for user in found.users if user.args[1] == 0)
            with sub.graph.inserting_before(node):
                wrong = sub.graph.call_function(aten.ne.Scalar, (info, 0))
                for _ in range(2):
                    wrong = sub.graph.call_function(aten.unsqueeze.default, (wrong, -1))
                marked = sub.graph.call_function(
                    aten.masked_fill.Scalar, (factor, wrong, float("nan"))
                )
            factor.replace_all_uses_with(marked, lambda user, marked=marked: user is not marked)
        sub.graph.erase_node(node)


def _lift_one(
    graph: GraphModule, node: Any, subs: list, owner: GraphModule, inner: Any, value: torch.Tensor
) -> None:
    if isinstance(value, FakeTensor):
        raise TypeError(
            "jit: a function of iso.cond or of a loop uses a tensor of the function around it that "
            "is neither its argument nor captured in its closure; pass it as an operand"
        )
    name = f"_lifted_{sum(n.op == 'get_attr' for n in graph.graph.nodes)}"
    graph.register_buffer(name, value)
    with graph.graph.inserting_before(node):
        outer = graph.graph.get_attr(name)
    *rest, operands = node.args
    node.args = (*rest, (*operands, outer))
    for sub in subs:
        last = [n for n in sub.graph.nodes if n.op == "placeholder"]
        at = sub.graph.inserting_after(last[-1]) if last else sub.graph.inserting_before()
        with at:
            added = sub.graph.placeholder(f"lifted_{len(last)}")
            added.meta = dict(inner.meta)
        if sub is owner:
            inner.replace_all_uses_with(added)
            sub.graph.erase_node(inner)
