"""All private names of torch that this backend uses: for each its module, its purpose, and the
first version of torch in which it was seen.

Private names may disappear from torch. A missing name disables only what needs it: namespaces,
gradients and layers work without it, by a slower or stricter fallback, and anything else raises an
error that names the versions of torch it was made for.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import torch
from torch.autograd import forward_ad

from ..unpromised import Name, Names, is_there


def _is_without_memory(x: torch.Tensor) -> bool:
    """Whether torch.func has wrapped a tensor, found by public means: a wrapped tensor has no
    memory of its own.
    """
    try:
        x.data_ptr()
    except RuntimeError:
        return True
    return False


LAST = sys.maxsize  # the level of all wrapped tensors, if torch does not tell their levels
FUNC, TRACE, COMPILER = "torch._C._functorch", "torch.fx.experimental", "torch._inductor"
FAKE, LOOPS = "torch._subclasses.fake_tensor", "torch._higher_order_ops"
PYFUNC = "torch._functorch.pyfunctorch"
INSIDE = "reading values inside torch.func"
JOINED = "kernels compiled together"
REPAIRS = "iso.jit, which repairs Inductor"
LOOPING, COMPILED = "loops and branches, compiled or mapped", "iso.jit"
UNKNOWN: Any = type("Unknown", (), {})  # a type without instances
NO_ERROR: Any = type("NoError", (Exception,), {})

NAMES = {
    # What is active while something is computed.
    "is_functorch_wrapped_tensor": Name(
        FUNC, "is_functorch_wrapped_tensor", "tensors wrapped by torch.func", _is_without_memory
    ),
    "maybe_get_level": Name(
        FUNC,
        "maybe_get_level",
        "levels of torch.func",
        lambda x: LAST if _is_without_memory(x) else -1,
    ),
    "maybe_current_level": Name(FUNC, "maybe_current_level", "levels of torch.func", lambda: LAST),
    "is_gradtrackingtensor": Name(
        FUNC, "is_gradtrackingtensor", "differentiated tensors", lambda x: False
    ),
    "is_batchedtensor": Name(FUNC, "is_batchedtensor", "mapped tensors", lambda x: False),
    "maybe_get_bdim": Name(FUNC, "maybe_get_bdim", "mapped tensors", lambda x: -1),
    "peek_interpreter_stack": Name(
        FUNC, "peek_interpreter_stack", "whether torch.func runs", lambda: None
    ),
    "get_interpreter_stack": Name(
        FUNC, "get_interpreter_stack", "which transforms of torch.func run", lambda: ()
    ),
    "TransformType": Name(
        FUNC, "TransformType", "which transforms of torch.func run", SimpleNamespace(Grad=None)
    ),
    "unwrap_if_dead": Name(FUNC, "unwrap_if_dead", "levels that have ended", lambda x: x),
    "len_torch_dispatch_stack": Name(
        "torch._C", "_len_torch_dispatch_stack", "whether a trace runs", lambda: 0
    ),
    "is_any_autocast_enabled": Name(
        "torch._C", "_is_any_autocast_enabled", "programs under autocast", lambda: True
    ),
    "get_proxy_mode": Name(
        f"{TRACE}.proxy_tensor", "get_proxy_mode", "whether a program is traced", lambda: None
    ),
    "FakeTensor": Name(FAKE, "FakeTensor", "placeholders of a trace", UNKNOWN),
    "saved_hooks": Name(
        "torch._C._autograd",
        "_top_saved_tensors_default_hooks",
        "whether saved tensors may be read once only",
        lambda ignore_is_tracing: True,
    ),
    "current_node": Name(
        "torch._C", "_current_autograd_node", "the gradient of attention in fewer calls"
    ),
    # Kernels, each of which has a slower alternative.
    "cross_entropy_loss": Name("torch._C._nn", "cross_entropy_loss", "cross entropy in one call"),
    "fused_adamw": Name("torch", "_fused_adamw_", "Adam in one kernel"),
    # Inside torch.func.
    "get_unwrapped": Name(FUNC, "get_unwrapped", INSIDE),
    "temporarily_clear_interpreter_stack": Name(
        PYFUNC, "temporarily_clear_interpreter_stack", INSIDE
    ),
    "retrieve_current_functorch_interpreter": Name(
        PYFUNC, "retrieve_current_functorch_interpreter", LOOPING
    ),
    "add_batch_dim": Name(FUNC, "_add_batch_dim", LOOPING),
    "unwrap_batched": Name(FUNC, "_unwrap_batched", LOOPING),
    # Recurrent kernels in a program.
    "exclude_set": Name("torch._C", "_dispatch_tls_local_exclude_set", "compiled LSTM and GRU"),
    "include_set": Name("torch._C", "_dispatch_tls_local_include_set", "compiled LSTM and GRU"),
    "ForceDispatchKeyGuard": Name("torch._C", "_ForceDispatchKeyGuard", "compiled LSTM and GRU"),
    "DispatchKey": Name("torch._C", "DispatchKey", "compiled LSTM and GRU"),
    # Programs.
    "make_fx": Name(f"{TRACE}.proxy_tensor", "make_fx", COMPILED),
    "get_proxy_slot": Name(f"{TRACE}.proxy_tensor", "get_proxy_slot", COMPILED),
    "ShapeEnv": Name(f"{TRACE}.symbolic_shapes", "ShapeEnv", COMPILED),
    "GuardOnDataDependentSymNode": Name(
        f"{TRACE}.symbolic_shapes", "GuardOnDataDependentSymNode", COMPILED, NO_ERROR
    ),
    "DataDependentOutputException": Name(FAKE, "DataDependentOutputException", COMPILED, NO_ERROR),
    "DynamicOutputShapeException": Name(FAKE, "DynamicOutputShapeException", COMPILED, NO_ERROR),
    "FakeTensorMode": Name(FAKE, "FakeTensorMode", COMPILED),
    "unset_fake_temporarily": Name(FAKE, "unset_fake_temporarily", "iso.host_function compiled"),
    "TracingContext": Name("torch._guards", "TracingContext", COMPILED),
    "tracing": Name("torch._guards", "tracing", COMPILED),
    "inductor_compile": Name(COMPILER, "compile", COMPILED),
    "recompute_size_and_body": Name(
        f"{COMPILER}.scheduler", "SchedulerNode.recompute_size_and_body", REPAIRS
    ),
    "reinplace_inplaceable_ops": Name(
        f"{COMPILER}.fx_passes.post_grad", "reinplace_inplaceable_ops", REPAIRS
    ),
    "call_function": Name(f"{COMPILER}.graph", "GraphLowering.call_function", REPAIRS),
    "ExternKernel": Name(f"{COMPILER}.ir", "ExternKernel", REPAIRS),
    "can_fuse": Name(f"{COMPILER}.scheduler", "ForeachKernelSchedulerNode.can_fuse", REPAIRS),
    "dtype_handler": Name(
        f"{COMPILER}.dtype_propagation",
        "DtypePropagationOpsHandler.__init__",
        "a tenth of the time that a program takes to compile",
        None,
    ),
    "codegen_input_size_asserts": Name(
        f"{COMPILER}.codegen.wrapper",
        "PythonWrapperCodegen.codegen_input_size_asserts",
        "programs that check their arguments once",
        None,
    ),
    "build": Name(
        f"{COMPILER}.cpp_builder", "CppBuilder.build", "whole files of compiled programs", None
    ),
    "cpp_pybinding": Name(f"{COMPILER}.async_compile", "AsyncCompile.cpp_pybinding", JOINED, None),
    "async_wait": Name(f"{COMPILER}.async_compile", "AsyncCompile.wait", JOINED, None),
    "get_compile_threads": Name(
        f"{COMPILER}.async_compile", "get_compile_threads", JOINED, lambda: 1
    ),
    "CppPythonBindingsCodeCache": Name(
        f"{COMPILER}.codecache", "CppPythonBindingsCodeCache", JOINED, None
    ),
    "check_build": Name(
        f"{COMPILER}.cpu_vec_isa",
        "VecISA.check_build",
        "one look at the instructions of the processor instead of several",
        None,
    ),
    "probe_load": Name(
        f"{COMPILER}.cpu_vec_isa",
        "VecISA._probe_load",
        "programs of an earlier process without a new look at the processor",
        None,
        "2.13",
    ),
    "cond_op": Name(f"{LOOPS}.cond", "cond_op", LOOPING),
    "scan_op": Name(f"{LOOPS}.scan", "scan_op", LOOPING),
    "while_loop_op": Name(f"{LOOPS}.while_loop", "while_loop_op", LOOPING),
    "while_loop": Name(LOOPS, "while_loop", "iso.while_loop in torch.compile"),
}


NAMES = {word: name._replace(since=name.since or "2.6") for word, name in NAMES.items()}
ALL = Names("torch", "torch 2.10 to 2.15", NAMES)


def __getattr__(word: str) -> Any:
    """A private name of torch, looked up at its first use."""
    return ALL.get(globals(), word)


def has(word: str) -> bool:
    """Whether this version of torch has a name; without it, a slower alternative is used."""
    return is_there(globals().get(word) or __getattr__(word))


# Private attributes of public objects.


def forward_level() -> int:
    """The innermost open level of torch's own forward mode, counted from 0; -1 if none is open."""
    return getattr(forward_ad, "_current_level", -1)


def is_zero(x: torch.Tensor) -> bool:
    """Whether torch knows that a tensor is zero and stores it without memory."""
    ask = getattr(x, "_is_zerotensor", None)
    return ask is not None and ask()


def storage_of(x: torch.Tensor) -> int:
    """A number that identifies the memory of a tensor: equal for tensors that share it. It exists
    for placeholders of a trace too.
    """
    storage = x.untyped_storage()
    return getattr(storage, "_cdata", None) or id(storage)
