"""The device axis: `pytest --device cuda` makes the arrays of the suite on that device.

The frameworks' own default device is set around each test, so arrays that a test makes without a
word about devices lie there. A test during which nothing was allocated on the device fails: it
would prove nothing. Matrix products and convolutions have full precision, as on a CPU.

Where an index out of bounds ends the CUDA context, nothing works in that process afterwards: the
process ends, and pytest-xdist starts another and says which test it was.
"""

import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

from frameworks import NOT_INSTALLED, jax, torch

from isomorph.core.dispatch import load

BACKENDS = ("jax", "torch")  # those that can be told where to make arrays, and asked what they made

# Tests that make no arrays on a device, or cannot pass there, and why.
HOST_ONLY = {
    "cli/test_bench_command.py": "the benchmarks' command line",
    "gradients/test_checkpointing.py::test_no_arrays_no_ceremony": "a call without arrays",
    "promises/test_contracts.py::test_a_backend_that_is_not_there_is_named": "no arrays",
    "compile/test_compiled_writes.py::test_every_report_has_a_repair": "no arrays",
    "compile/test_joined_kernels.py": "C++ kernels",
    "compile/test_compiled_writes.py::test_inductor_still_has_its_errors": "bugs of C++ programs",
    "gradients/test_transforms.py::test_eight_threads": "a default device is a thread's own",
    "compile/test_compile.py::test_threads": "a default device is a thread's own",
    "modules/test_module_details.py::test_threads": "a default device is a thread's own",
    "training/test_checkpoint_files.py::test_threads": "a default device is a thread's own",
    "backends/test_four_of_a_kind.py::test_the_four_agree[jax-from_dlpack": "from the host",
    "backends/test_conformance_ledger.py": "a ledger of processors",
    "backends/test_contract.py::test_the_contract_is_kept[jax-signature": "shapes and dtypes",
    **dict.fromkeys(
        (f"backends/test_contract.py::test_the_contract_is_kept[{n}-vocabulary" for n in BACKENDS),
        "names",
    ),
    "backends/test_edges_compiled.py::test_cases_that_differ": "a ledger of processors",
    "promises/test_narrow_and_repeated.py::test_what_is_out_of_bounds_raises": "indices "
    "are checked where they can be read without waiting; torch ends the process instead",
    "training/test_step_writing.py::test_the_memory_of_the_state": "on a GPU the number of the "
    "step is not known without waiting, and arrays are made anew",
    "training/test_unequal_parts.py::test_an_optimizer_that_writes": "on a GPU its arrays are new",
    "promises/test_dispatch.py": "which backend an array has, not what it computes",
    "gradients/test_host.py::test_without_arrays_it_is_called_as_it_is": "a call without arrays",
    "promises/test_import_order.py": "imports in other processes",
    "promises/test_kept_devices.py": "arrays on a device of their own, without memory",
    "promises/test_one_behaviour.py::test_an_attribute_cannot_have_the_name": "no arrays",
    "promises/test_properties.py::test_random_programs_are_many": "what is drawn, not computed",
    "compile/test_program_cache.py": "programs of other processes, on the host",
    "promises/test_public_names.py": "names",
    "random/test_random_edges.py::test_chances_must_suffice": "probabilities are checked where "
    "they can be read without waiting",
    "compile/test_recomputing.py": "a pass for programs on a CPU; on a GPU it changes nothing",
    "docs/test_generated_pages.py": "pages",
    "gradients/test_vmap.py::test_no_examples": "a map over nothing",
    "gradients/test_gradients.py::test_with_grads": "a mode",
    "training/test_checkpoint_files.py::test_foreign_files_are_refused": "files",
    "training/test_checkpoints.py::test_jax_without_64_bits_does_not_round": "an error",
    "training/test_fit_resume.py": "training in other processes, on the host",
    "arrays/test_conversion.py::test_convert_uses_the_default_device_of_jax": "another process",
    "backends/test_promotion.py::test_python_numbers_beside_wide_integers": "torch has no "
    "arithmetic of uint16, uint32 and uint64 on a GPU",
    "backends/test_private_names.py": "names of the framework, and other processes",
    "test_architecture.py": "files and imports",
    "test_devices.py": "the axis itself",
    "backends/test_torch_accelerators.py": "what a GPU needs, tested without one",
    "backends/test_torch_zeros.py::test_a_zero_of_torch_itself": "a tensor without memory",
    **dict.fromkeys(
        (
            f"borders/test_borders_theirs.py::test_their_transforms_of_our_functions[torch-{name}"
            for name in (
                "custom_vjp-compile",
                "checkpoint-compile",
                "scaled_dot_product_attention-compile",
                "xp.pow-compile",
                "softmax-compile",
            )
        ),
        "torch.compile cannot trace functions of NumPy under a default device",
    ),
    **dict.fromkeys(
        (
            f"borders/test_borders_sizes.py::test_sizes_that_change_are_no_matter[{name}"
            for name in ("linear-", "layer_norm-", "batch_norm-", "heads-", "embedding-")
        ),
        "torch.compile traces new tensors as if there were no default device",
    ),
    "flow/test_flow.py::test_torch_lifts_constants": "it captures a tensor of the host",
}
NO_ARRAYS, EMPTY = "dtypes and names, no arrays", "an empty array takes no memory"
# Tests that run there, though nothing is allocated.
UNCOUNTED = {
    "backends/test_contract.py::test_the_contract_is_kept[signature": NO_ARRAYS,
    "backends/test_contract.py::test_the_contract_is_kept[vocabulary": NO_ARRAYS,
    "backends/test_four_of_a_kind.py::test_every_name_was_drawn": NO_ARRAYS,
    "backends/test_four_of_a_kind.py::test_the_four_agree[torch-from_dlpack": "memory of the host",
    "backends/test_namespace.py::test_an_unknown_name": NO_ARRAYS,
    "backends/test_namespace.py::test_can_cast": NO_ARRAYS,
    "backends/test_namespace.py::test_constants": NO_ARRAYS,
    "backends/test_namespace.py::test_elementwise_of_no_elements": EMPTY,
    "backends/test_namespace.py::test_inspection": NO_ARRAYS,
    "backends/test_namespace.py::test_kinds_of_dtypes": NO_ARRAYS,
    "backends/test_namespace.py::test_limits_of": NO_ARRAYS,
    "backends/test_namespace.py::test_namespace_has_every_name": NO_ARRAYS,
    "backends/test_namespace.py::test_promotion": NO_ARRAYS,
    "borders/test_borders_leaving.py::test_the_ledger": NO_ARRAYS,
    "borders/test_borders_ours.py::test_the_ledger": NO_ARRAYS,
    "borders/test_borders_theirs.py::test_the_ledger": NO_ARRAYS,
    "promises/test_contracts.py::test_devices_are_kept": "the device is torch's meta device",
    "gradients/test_gradient_edges.py::test_gradient_at_an_edge[empty_": EMPTY,
    "promises/test_kept_devices.py": "the device is torch's meta device",
    "promises/test_one_behaviour.py::test_nothing_gives_nothing": EMPTY,
}
WARNINGS = (  # advice of torch about a GPU
    "ignore:TensorFloat32 tensor cores",
    r"ignore:\s*Online softmax is disabled",
    "ignore:RNN module weights are not part of single contiguous chunk",  # of oracles
    "ignore:`torch.jit.script_method` is deprecated",
    "ignore:Attempting to run cuBLAS, but there was no current CUDA context",
)


@cache
def device_of(backend, name):
    """The device of a backend by its name, or None if the backend has no such device."""
    if backend not in BACKENDS or backend in NOT_INSTALLED:
        return None
    try:
        return load(backend).device(name)
    except ValueError:
        return None


def about(name):
    """What the device is."""
    if (device := device_of("torch", name)) is not None and torch.device(device).type == "cuda":
        return torch.cuda.get_device_name(device)
    device = device_of("jax", name)
    return "" if device is None else device.device_kind


@contextmanager
def made_on(backend, name):
    """Within the block, the framework makes its arrays on this device, and so does the other one
    that has such a device: some tests move arrays between two.
    """
    with ExitStack() as stack:
        for other in BACKENDS:
            device = device_of(other, name if other == backend else ALIAS.get(name, name))
            if device is not None:
                stack.enter_context(FULL[other](device))
        yield


@contextmanager
def _torch_on(device):
    with ExitStack() as stack:
        for part in (torch.backends.cuda.matmul, torch.backends.cudnn):
            stack.callback(setattr, part, "allow_tf32", part.allow_tf32)
            part.allow_tf32 = False
        with torch.device(device):
            yield


@contextmanager
def _jax_on(device):
    with jax.default_device(device), jax.default_matmul_precision("highest"):
        yield


ALIAS = {"cuda": "gpu", "gpu": "cuda"}  # torch's name, JAX's name
FULL = {"jax": _jax_on, "torch": _torch_on}


def end_if_broken(backend, name):
    """End this process if the CUDA context of torch is no longer usable."""
    if backend == "torch" and torch.device(device_of("torch", name)).type == "cuda":
        try:
            torch.cuda.synchronize()
        except RuntimeError as error:
            print(f"the CUDA context ended: {error}", file=sys.stderr, flush=True)
            os._exit(70)


def allocations(backend, name):
    """How often memory of the device was allocated by now; None for a device that does not count,
    such as a CPU.
    """
    device = device_of(backend, name)
    if backend == "jax":
        counted = device.memory_stats()
        return None if counted is None else counted["num_allocs"]
    if torch.device(device).type != "cuda":
        return None
    torch.cuda.init()  # before it, torch counts nothing
    return torch.cuda.memory_stats(device).get("allocation.all.allocated", 0)


def run_on_jax_devices(count, file, code):
    """Run code in another process, where JAX has that many CPU devices and the modules beside
    `file` can be imported.
    """
    flags = {"XLA_FLAGS": f"--xla_force_host_platform_device_count={count}", "JAX_PLATFORMS": "cpu"}
    here = Path(file).parent
    paths = os.pathsep.join([str(here), str(here.parent), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **flags, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
