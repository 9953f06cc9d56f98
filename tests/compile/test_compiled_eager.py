"""Programs over the whole vocabulary give the same compiled as eager: values, gradients and second
derivatives, in float64.

`make test-all` compiles each program by itself. `make test` compiles by themselves only those that
Inductor once got wrong, and some of the others together.
"""

import warnings

import numpy as np
import pytest
from compiled_programs import INPUTS, LARGE, measured
from compiled_table import TABLE

import isomorph as iso
from isomorph.core import tree
from oracles import as_users_have_it, numpy_of

COMPILERS = ["jax", "tensorflow", "torch"]
COMPILED = pytest.mark.parametrize("backend", COMPILERS, indirect=True)
SLOW = pytest.mark.slow
ALONE = ["gaussian_process", "kernel_cholesky", "kernel_scatter"]
# Inductor takes minutes for the second derivative of an unrolled loop.
MINUTES = {("torch", name) for name in ("LSTM",)}

# In larger programs JAX calls back from its own thread, where the 64-bit context is off: batched
# with others, this one raises.
SMALL_ONLY = {("jax", "hosted")}

# Programs that TensorFlow compiles without XLA, and then all others of the same batch too: they get
# a batch of their own.
NO_XLA = [
    "determinants", "slogdets", "eigenvalues", "eigenvectors", "pseudo_inverses",
    "singular_values", "svd", "complex_solve",
]  # fmt: skip
UNKNOWN_LENGTH = ["power_iteration", "newton", "reverse_scan", "hosted", "LSTM"]
BESIDE_NONE = {("tensorflow", name) for name in [*NO_XLA, *UNKNOWN_LENGTH]}


def compare(name, backend, found, expected):
    paths = tree.paths(expected)
    found, expected = tree.flatten(found)[0], tree.flatten(expected)[0]
    assert len(found) == len(expected) == len(paths) >= 1
    for got, wanted, path in zip(found, expected, paths):
        got, wanted = numpy_of(got), numpy_of(wanted)
        assert got.shape == wanted.shape
        assert got.dtype == wanted.dtype
        if wanted.dtype.kind in "biu":
            np.testing.assert_array_equal(got, wanted, err_msg=f"{name}: {path}")
        else:
            scale = max(np.abs(wanted).max(initial=0), 1e-2)
            np.testing.assert_allclose(
                got, wanted, rtol=0, atol=1e-9 * scale, err_msg=f"{name}: {path}"
            )


def run(backend, names, order=2, inputs=INPUTS):
    """Compile the programs as one, differentiated so often, and compare each with its eager
    results.
    """
    inputs = {name: iso.convert(x, backend) for name, x in inputs.items()}
    programs = {name: TABLE[name]._replace(order=min(order, TABLE[name].order)) for name in names}
    funcs = {name: measured(program) for name, program in programs.items()}

    def every(inputs):
        return {name: func(inputs[TABLE[name].input]) for name, func in funcs.items()}

    with warnings.catch_warnings():  # a framework about its own compiler
        warnings.simplefilter("ignore")
        found = as_users_have_it(backend, iso.jit(every))(inputs)
        expected = every(inputs)
    for name in names:
        compare(name, backend, found[name], expected[name])


@pytest.mark.takes("torch compiles C++")
@pytest.mark.parametrize(
    ("backend", "name"),
    [
        pytest.param(backend, name, id=f"{backend}-{name}",
                     marks=() if backend == "torch" or name == "kernel_cholesky" else SLOW)
        for backend in COMPILERS for name in ALONE
    ],
    indirect=["backend"],
)  # fmt: skip
def test_programs_that_were_wrong(backend, name):
    """The bugs were torch's."""
    run(backend, [name])


def parts(sizes, names, left_out):
    """Programs of all kinds to compile together; all but one part of each backend are slow."""
    for backend, size in sizes.items():
        some = [name for name in names if (backend, name) not in left_out]
        count = -(-len(some) // size)
        for number in range(count):
            marks = SLOW if number else ()
            yield pytest.param(backend, some[number::count], id=f"{backend}-{number}", marks=marks)


TOGETHER = [*parts({"jax": 4, "tensorflow": 6, "torch": 2}, TABLE,
                   {*BESIDE_NONE, *MINUTES, *SMALL_ONLY})]  # fmt: skip


@pytest.mark.takes("XLA compiles it")
@pytest.mark.parametrize(("backend", "names"), TOGETHER, indirect=["backend"])
def test_programs_together(backend, names):
    run(backend, names)


ONE_SIZE = {
    "LSTM", "Linear", "add_rows", "aranges", "broadcasts", "crosses", "diagonal_set",
    "kernel_cholesky", "kernel_gather", "kernel_scatter", "masked", "power_iteration",
    "rejections", "repeats", "reshapes", "scattered_segments",
}  # fmt: skip
# the examples have their own: test_examples.py
ANY_SIZE = [name for name in TABLE if name not in ONE_SIZE and TABLE[name].input != "e"]
LARGE_TOGETHER = [*parts({"jax": 8, "tensorflow": 12, "torch": 4}, ANY_SIZE,
                         {*BESIDE_NONE, *SMALL_ONLY})]  # fmt: skip


@pytest.mark.takes("XLA compiles it")
@pytest.mark.parametrize(("backend", "names"), LARGE_TOGETHER, indirect=["backend"])
def test_large_arrays_together(backend, names):
    run(backend, names, 1, LARGE)


@pytest.mark.slow
@COMPILED
@pytest.mark.parametrize("name", ANY_SIZE)
def test_every_program_with_large_arrays(backend, name):
    run(backend, [name], 1, LARGE)


@pytest.mark.takes("XLA compiles it")
@pytest.mark.parametrize("backend", ["tensorflow"], indirect=True)
@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=SLOW if part % 2 else ()) for part in range(8)]
)
def test_what_xla_lacks(backend, part):
    run(backend, NO_XLA[part::8])


@pytest.mark.slow
@COMPILED
@pytest.mark.parametrize("name", TABLE)
def test_every_program_alone(backend, name):
    run(backend, [name])
