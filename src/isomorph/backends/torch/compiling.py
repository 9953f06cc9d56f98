"""Compiled programs in torch. The function runs once on placeholders (`make_fx`), with its
transforms and custom rules. The recorded operations go to torch's compiler as one graph.

`torch.compile` of the function itself is not used: its reader of bytecode, Dynamo, silently drops a
custom backward rule inside `torch.func`. Here, as in JAX, tracing runs the function, so what works
eagerly also works compiled. A call costs a third of one through `torch.compile`, because its
program is found by one key.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from threading import Lock
from typing import Any
from uuid import uuid4

import torch
from torch.fx.node import map_arg

from ...compile.slow_compilation import noticed
from . import looping, private
from .caller import Caller
from .inductor import program_files
from .inductor.joined_kernels import joined_kernels
from .inductor.recomputing import save_memory
from .inductor.repairs import owner_of, repaired, replaced
from .private import is_any_autocast_enabled, len_torch_dispatch_stack, peek_interpreter_stack

HOST = "isomorph.host.default"  # the operator of `hosting`
TRACING = Lock()  # only one thread traces at a time
PLAIN = {torch.Tensor, torch.nn.Parameter}  # types whose memory a program can read


def program(func: Callable[..., tuple], arrays: Sequence[torch.Tensor]) -> Callable[..., Any]:
    """The program that computes `func`, a function of tensors, for tensors like `arrays`."""
    if torch.is_grad_enabled() and any(x.requires_grad for x in arrays):
        return Attached(func, arrays)
    return compiled(func, arrays)


def compiled(func: Callable[..., tuple], arrays: Sequence[torch.Tensor]) -> Callable[..., Any]:
    plain = [x.detach().resolve_conj().resolve_neg() for x in arrays]
    try:
        with TRACING:
            run, captured = _traced(func, plain)
    except (private.GuardOnDataDependentSymNode, private.DataDependentOutputException) as error:
        raise TypeError(
            "jit: the value of a tensor cannot decide which Python code runs, or become a Python "
            "number: it is not known while the function is traced; use xp.where, or name the "
            "argument in static="
        ) from error
    except AttributeError as error:
        if "_tensor_constant" not in str(error):
            raise
        raise TypeError(
            "jit: a function of iso.cond or of a loop uses a tensor that is neither its argument "
            "nor captured in its closure, and that is also used outside of it; pass it as an "
            "operand"
        ) from error
    except private.DynamicOutputShapeException as error:
        raise TypeError(
            "jit: the shape of a result cannot depend on the values of a tensor; use xp.where "
            "instead of a mask as index"
        ) from error
    return _guarded(run, captured, any(map(_has_bits, arrays)))


def _traced(func: Callable[..., tuple], plain: list[torch.Tensor]) -> tuple[Callable, list]:
    """The program, and the tensors that it captures."""
    graph = private.make_fx(func, tracing_mode="fake", _allow_non_fake_inputs=True)(*plain)
    looping.lift(graph)
    fold_numbers(graph)
    save_memory(graph.graph)
    graph.recompile()
    captured = [attrgetter(n.target)(graph) for n in graph.graph.nodes if n.op == "get_attr"]
    captured = [x for x in captured if isinstance(x, torch.Tensor)]
    _check(captured)
    with torch.no_grad(), warnings.catch_warnings():
        # torch's warnings about its own code, and that complex numbers are not faster
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        warnings.filterwarnings("ignore", category=FutureWarning)
        warnings.filterwarnings("ignore", message="Torchinductor does not support code generation")
        with (
            looping.inputs(graph, plain) as examples,
            repaired(_own_tag(graph)),
            checked_once(),
            program_files.kept(),
            joined_kernels(),
        ):
            options = {
                "layout_optimization": not _has_turned_images(graph),
                # this pass would move recomputed values back to where they were computed first
                "reorder_for_locality": False,
                # Pairs of operations that read one array, such as a learning rate, are candidates
                # for one loop. Neighbours are enough, and a large network compiles a fifth faster.
                "max_fusion_buffer_group_pairwise_attempts": 8,
                "optimize_scatter_upon_const_tensor": not _sets_wide_numbers(graph),
            }
            return private.inductor_compile(graph, examples, options), captured


@contextmanager
def checked_once() -> Iterator[None]:
    """Programs compiled inside the block do not look at the sizes of their arguments, which
    `signature` has done: it costs a microsecond for each. What other kernels return is checked, and
    so is what the bodies of branches and loops are given.
    """
    if not private.has("codegen_input_size_asserts"):
        yield
        return
    owner, name = owner_of("codegen_input_size_asserts")
    written = vars(owner)[name]
    with replaced(owner, name, lambda self: None if type(self) is owner else written(self)):
        yield


def _own_tag(graph: torch.fx.GraphModule) -> str:
    """A tag that no other program has if this one calls host functions: the graph names them by
    numbers, and the shapes of their results are not in the key of torch's disk cache.
    """
    bodies = [body for body in graph.modules() if isinstance(body, torch.fx.GraphModule)]
    calls = (str(n.target) == HOST for body in bodies for n in body.graph.nodes)
    return uuid4().hex if any(calls) else ""


def fold_numbers(graph: torch.fx.GraphModule) -> None:
    """Conjugate complex numbers that are written in the program. Their derivatives conjugate them
    as if they were tensors, which Inductor refuses on a GPU.
    """
    ops = torch.ops.aten
    bodies = [body for body in graph.modules() if isinstance(body, torch.fx.GraphModule)]
    for node in [node for body in bodies for node in body.graph.nodes]:
        if node.target in (ops._conj.default, ops.clone.default) and type(node.args[0]) is complex:
            conjugated = node.target is ops._conj.default
            number = node.args[0].conjugate() if conjugated else node.args[0]
            instead = lambda n, node=node, number=number: number if n is node else n
            for user in [user for user in node.users if user.op != "output"]:
                user.args = map_arg(user.args, instead)
                user.kwargs = map_arg(user.kwargs, instead)
            if not node.users:
                node.graph.erase_node(node)
    for body in bodies:
        body.recompile()


def _has_turned_images(graph: torch.fx.GraphModule) -> bool:
    """Whether a convolution has images with channels last. They already have the memory order that
    kernels need. The compiler assumes that channels are second in memory, and would transpose them.
    """
    ops = torch.ops.aten
    return any(
        n.target is ops.convolution.default and n.args[0].target is ops.permute.default
        for n in graph.graph.nodes
    )


def _sets_wide_numbers(graph: torch.fx.GraphModule) -> bool:
    """Whether a program writes a number into places of a float64 array. If the array is constant,
    torch 2.10 rounds the number to float32.
    """
    target = torch.ops.aten.scatter.value
    return any(
        n.target is target and n.meta["val"].dtype is torch.float64 for n in graph.graph.nodes
    )


def reusing(func: Callable[..., tuple], given: Sequence[bool]) -> Callable[..., tuple]:
    """`func`, whose results are written into donated arguments (`given` is True) where possible."""
    if not any(given):
        return func

    def call(*arrays: torch.Tensor) -> tuple:
        return reuse([x for x, yes in zip(arrays, given) if yes], func(*arrays))

    call.__qualname__ = func.__qualname__
    return call


def reuse(donated: Sequence[torch.Tensor], outs: tuple) -> tuple:
    """The outputs, each written into the first free donated tensor of the same shape, dtype and
    device, unless it is a donated tensor itself. The compiler turns the copy into an update in
    place. All outputs are computed before any of them is written.
    """
    shown = {private.storage_of(y) for y in outs}  # memory that is returned may not be overwritten
    given = {private.storage_of(x) for x in donated}
    # an expanded or otherwise not dense tensor cannot be overwritten directly
    whole = [x for x in donated if is_whole(x)]
    free = [x for x in whole if private.storage_of(x) not in shown]
    result = []
    for y in outs:
        fits = private.storage_of(y) not in given
        match = next((i for i, x in enumerate(free) if fits and _is_like(x, y)), None)
        result.append(y if match is None else free.pop(match).copy_(y))
    return tuple(result)


def is_whole(x: torch.Tensor) -> bool:
    """Whether a tensor is dense in memory, in the order of its axes or with its last axis first."""
    return x.is_contiguous() or (x.ndim > 0 and x.movedim(-1, 0).is_contiguous())


def in_order(x: torch.Tensor) -> torch.Tensor:
    """A view of a tensor that `is_whole`, with its axes in the order of its memory."""
    return x if x.is_contiguous() else x.movedim(-1, 0)


def check_given(arrays: Sequence[torch.Tensor], given: Sequence[bool]) -> None:
    """Raise if a donated tensor begins at the same address as another argument. The compiler does
    not check that; tensors that overlap in another way are not detected.
    """
    places = [x.data_ptr() for x in arrays]
    if len(set(places)) == len(places):
        return
    for i, yes in enumerate(given):
        if yes and places[i] and places.count(places[i]) > 1:
            raise ValueError(
                "jit: needed donated tensors that share no memory with another argument, got one "
                f"of shape {list(arrays[i].shape)} that does; pass a clone of it"
            )


def _is_like(x: torch.Tensor, y: torch.Tensor) -> bool:
    return x.shape == y.shape and x.dtype == y.dtype and x.device == y.device


def _guarded(run: Callable, captured: list, bits: bool) -> Callable[..., Any]:
    """The program with the checks that are needed before each run."""
    if not captured and not bits:
        return run

    def guarded(*arrays: torch.Tensor) -> Any:
        _check(captured)
        return run(*(x.resolve_conj().resolve_neg() for x in arrays))

    return guarded


def _check(captured: list) -> None:
    if torch.is_grad_enabled() and any(x.requires_grad for x in captured):
        raise TypeError(
            "jit: the function captures a tensor that requires gradients, but this tensor would "
            "get no gradient; pass it as an argument, or detach it"
        )


def _has_bits(x: torch.Tensor) -> bool:
    """Whether the memory of a tensor holds its negative or its conjugate instead of its values."""
    return x.is_neg() or x.is_conj()


def is_tracing() -> bool:
    """Whether torch.func, torch.compile, a dispatch mode or torch's forward mode is active: then
    the running code is part of what they trace.
    """
    return is_transformed() or len_torch_dispatch_stack() > 0


def is_transformed() -> bool:
    """Whether torch.func, torch.compile or torch's forward mode is active."""
    return (
        peek_interpreter_stack() is not None
        or torch.compiler.is_compiling()
        or private.forward_level() >= 0
    )


def signature(arrays: Sequence[torch.Tensor]) -> tuple:
    """The key of a compiled program: everything it depends on in its arguments and in torch's
    global settings.
    """
    state: tuple = (torch.is_grad_enabled(), torch.get_default_dtype())
    if is_any_autocast_enabled():
        kinds = ("cpu", "cuda")
        state += tuple((torch.is_autocast_enabled(k), torch.get_autocast_dtype(k)) for k in kinds)
    layouts = [x.layout for x in arrays]
    if not PLAIN.issuperset(map(type, arrays)) or layouts.count(torch.strided) < len(layouts):
        for x in arrays:
            check_plain(x)
    try:
        return state, *[  # no function per tensor: there may be hundreds
            (x.shape, x.stride(), x.dtype, x.device, x.requires_grad, x.is_neg() or x.is_conj())
            for x in arrays
        ]
    except RuntimeError:  # a nested tensor has no shape
        for x in arrays:
            check_plain(x)
        raise


def check_plain(x: torch.Tensor) -> None:
    """Raise for a tensor whose memory is not its values in order: a subclass with operations of its
    own, such as DTensor, or a sparse or nested tensor. A program would read past the end of its
    memory, or leave out what its class adds.
    """
    if type(x) in PLAIN and x.layout is torch.strided and not x.is_nested:
        return
    if type(x) not in PLAIN:
        what = f"a {type(x).__qualname__}"
        parts = "its inner tensors" if hasattr(x, "__tensor_flatten__") else None
        plain = "x.to_local()" if hasattr(x, "to_local") else parts or "x.as_subclass(torch.Tensor)"
        remedy = f"{plain}, or compile with torch.compile"
    elif x.is_nested:
        what, remedy = "a nested tensor", "torch.nested.to_padded_tensor(x, 0.0)"
    else:
        what, remedy = f"one of layout {x.layout}", "x.to_dense()"
    raise TypeError(f"jit: needed tensors of torch itself and dense, got {what}; pass {remedy}")


class Attached:
    """A compiled function of tensors, some of which require gradients. `backward` computes their
    gradients by a compiled pullback, which can be differentiated in the same way.
    """

    def __init__(self, func: Callable[..., tuple], arrays: Sequence[torch.Tensor]):
        self.func, self.run = func, compiled(func, arrays)
        self.wanted = [i for i, x in enumerate(arrays) if x.requires_grad]
        self.pullbacks: dict[Any, Callable] = {}
        self.n_floats = 0  # how many outputs have a gradient, known after the first run

    def __call__(self, *arrays: torch.Tensor) -> Any:
        return Node.apply(self, *arrays)

    def pullback(self, arrays: tuple, upstream: tuple) -> tuple:
        both = (*arrays, *upstream)
        key = signature(both)
        if key not in self.pullbacks:
            with noticed(self.func, "torch"):  # warns if the compilation is slow
                self.pullbacks[key] = program(self._pull, both)
        found = iter(self.pullbacks[key](*both))
        return tuple(next(found) if i in self.wanted else None for i in range(len(arrays)))

    def _pull(self, *both: torch.Tensor) -> tuple:
        def chosen(*given: torch.Tensor) -> tuple:
            full = list(both)
            for i, x in zip(self.wanted, given):
                full[i] = x
            return tuple(y for y in self.func(*full[:n]) if is_float(y))

        n = len(both) - self.n_floats
        _, pull = torch.func.vjp(chosen, *(both[i] for i in self.wanted))  # pyright: ignore
        return pull(both[n:])


class Node(torch.autograd.Function):
    @staticmethod
    # pyright: ignore[reportIncompatibleMethodOverride]
    def forward(ctx: Any, attached: Attached, *arrays: torch.Tensor) -> tuple:
        ctx.attached, ctx.caller = attached, Caller.of(arrays)
        ctx.save_for_backward(*arrays)
        outs = tuple(attached.run(*(x.detach() for x in arrays)))
        ctx.mark_non_differentiable(*(y for y in outs if not is_float(y)))
        ctx.outs = [is_float(y) for y in outs]
        attached.n_floats = sum(ctx.outs)
        return outs

    @staticmethod
    # pyright: ignore[reportIncompatibleMethodOverride]
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple:
        upstream = tuple(g for g, float_ in zip(grads, ctx.outs) if float_)
        return None, *ctx.caller.run(ctx.attached.pullback, ctx.saved_tensors, upstream)


def is_float(x: torch.Tensor) -> bool:
    return x.is_floating_point() or x.is_complex()
