"""Programs over the whole vocabulary give the same compiled as eager: values, gradients and second
derivatives, in float64.

`make test-all` compiles each program by itself. `make test` compiles by themselves only those that
Inductor once got wrong, and part of a sample of all, several to a program. ISOMORPH_SEED=number
draws another sample.
"""

import random
import warnings

import numpy as np
import pytest
from compiled_programs import INPUTS, LARGE
from compiled_table import LAYERS, RULES, TABLE

import isomorph as iso
from isomorph import tree
from isomorph.backends.vocabulary import CONSTANTS, DTYPES, FFT, LINALG, VOCABULARY
from oracles import SEED, as_users_have_it, numpy_of

COMPILED = pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)
SLOW = pytest.mark.slow
ALONE = ["gaussian_process", "kernel_cholesky", "kernel_scatter"]
BATCHES = 2
SAMPLE = {"jax": 8, "tensorflow": 12, "torch": 4}
# Inductor takes minutes for the second derivative of an unrolled loop.
MINUTES = {("torch", name) for name in ("lstm", "gru", "LSTM", "GRU")}

# In larger programs JAX calls back from its own thread, where the 64-bit context is off: batched
# with others, this one raises.
SMALL_ONLY = {("jax", "hosted")}

# Programs that TensorFlow compiles without XLA, and then all others of the same batch too: they get
# a batch of their own.
NO_XLA = [
    "determinants", "slogdets", "eigenvalues", "eigenvectors", "ranks", "pseudo_inverses",
    "singular_values", "svd", "complex_solve",
]  # fmt: skip
UNKNOWN_LENGTH = [
    "power_iteration",
    "newton",
    "reverse_scan",
    "hosted",
    "lstm",
    "gru",
    "LSTM",
    "GRU",
]
BESIDE_NONE = {("tensorflow", name) for name in [*NO_XLA, *UNKNOWN_LENGTH]}

# Names that no program over arrays can use, or whose result sizes depend on values.
NOT_DRAWN = {
    **dict.fromkeys([*DTYPES, *CONSTANTS], "not a function"),
    **dict.fromkeys(
        ["__array_namespace_info__", "can_cast", "finfo", "iinfo", "isdtype", "result_type"],
        "about dtypes, computes nothing",
    ),
    **dict.fromkeys(
        ["nonzero", "unique_all", "unique_counts", "unique_inverse", "unique_values"],
        "its size depends on values: no program of fixed shapes",
    ),
    "from_dlpack": "a traced array has no memory",
}
NOT_COMPILED = {
    **dict.fromkeys(
        ["CheckpointError", "Fit", "Module", "NonFiniteError", "Optimizer", "State", "TrainState"],
        "a class that computes nothing",
    ),
    **dict.fromkeys(
        [
            "backends",
            "check_gradients",
            "evaluate",
            "fit",
            "load",
            "predict",
            "save",
            "summary",
            "train_step",
        ],
        "compiles by itself, or needs values",
    ),
    **dict.fromkeys(["convert", "to_numpy"], "reads values, which a trace lacks"),
    **dict.fromkeys(
        ["gradient_tracking", "set_with_grads", "unset_with_grads", "with_grads"],
        "a mode, computes nothing",
    ),
    "namespace": "every program begins with it",
    "cache": "sets where programs are kept, computes nothing",
    "device_of": "tells where an array is, computes nothing",
    "Dropout": "its key is state, which a program would lose",
}


def direction(shape):
    """A different number at each position, so that swapped or reversed results are noticed."""
    return np.sin(2.0 + np.arange(np.prod(shape))).reshape(shape)


def measured(program):
    """Outputs, value, gradient and a second derivative of a program, as one function."""

    def total(x):
        xp = iso.namespace(x)
        outs = tree.flatten(program.func(iso, xp, x))[0]
        result = xp.sum(x * 0.0)
        for y in outs:
            if xp.isdtype(y.dtype, "complex floating"):
                y = xp.real(y) + 2 * xp.imag(y)
            if xp.isdtype(y.dtype, "real floating"):
                size = int(np.prod(tuple(y.shape)))
                weights = np.cos(1.0 + np.arange(size)).reshape(tuple(y.shape))
                result = result + xp.sum(xp.astype(y, xp.float64) * xp.asarray(weights))
        return result, outs

    def whole(x):
        if not program.order:
            return {"outputs": total(x)[1]}
        (value, outs), grad = iso.value_and_grad(total, has_aux=True)(x)
        found = {"outputs": outs, "value": value, "gradient": grad}
        if program.order > 1:
            along = iso.namespace(x).asarray(direction(tuple(x.shape)))
            found["second"] = iso.hvp(lambda x: total(x)[0], (x,), (along,))[0]
        return found

    return whole


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


@pytest.mark.later_on("jax", "tensorflow", name="gaussian_process")  # the bug was torch's
@pytest.mark.later_on("jax", "tensorflow", name="kernel_scatter")
@COMPILED
@pytest.mark.parametrize("name", ALONE)
def test_programs_that_were_wrong(backend, name):
    run(backend, [name])


@COMPILED
@pytest.mark.parametrize("part", [0, *(pytest.param(i, marks=SLOW) for i in range(1, BATCHES))])
def test_a_sample_of_programs(backend, part):
    names = [name for name in TABLE if (backend, name) not in {*BESIDE_NONE, *MINUTES, *SMALL_ONLY}]
    drawn = random.Random(SEED).sample(names, SAMPLE[backend])[part::BATCHES]
    print(f"ISOMORPH_SEED={SEED}: {', '.join(drawn)}")
    run(backend, drawn)


ONE_SIZE = {
    "Conv1D", "Conv3D", "Embedding", "GRU", "Heads", "LSTM", "Linear", "add_rows", "aranges",
    "attention", "batch_norm", "bits", "broadcasts", "convolutions", "counted", "crosses",
    "diagonal_set", "eye_added", "eye_offset", "frequencies", "fulls", "gru", "heads",
    "kernel_cholesky", "kernel_gather", "kernel_scatter", "linear", "linspaces", "losses", "lstm",
    "masked", "norms", "positions", "power_iteration", "rejections", "repeats", "reshapes",
    "sampled", "scattered_segments", "segments", "transposed_convolutions", "zeros_ones",
}  # fmt: skip
ANY_SIZE = [name for name in TABLE if name not in ONE_SIZE]


@COMPILED
def test_a_sample_of_large_arrays(backend):
    names = [n for n in ANY_SIZE if (backend, n) not in {*BESIDE_NONE, *SMALL_ONLY}]
    drawn = random.Random(SEED).sample(names, SAMPLE[backend])
    print(f"ISOMORPH_SEED={SEED}: {', '.join(drawn)}")
    run(backend, drawn, 1, LARGE)


@pytest.mark.slow
@COMPILED
@pytest.mark.parametrize("name", ANY_SIZE)
def test_every_program_with_large_arrays(backend, name):
    run(backend, [name], 1, LARGE)


@pytest.mark.parametrize("backend", ["tensorflow"], indirect=True)
@pytest.mark.parametrize("part", [0, pytest.param(1, marks=SLOW)])
def test_what_xla_lacks(backend, part):
    drawn = random.Random(SEED).sample(NO_XLA, len(NO_XLA))[part::2]
    print(f"ISOMORPH_SEED={SEED}: {', '.join(drawn)}")
    run(backend, drawn)


@pytest.mark.left_to_core
@COMPILED
@pytest.mark.parametrize("part", [RULES, LAYERS], ids=["rules", "layers"])
def test_every_function_of_ours_in_a_program(backend, part):
    """Without derivatives, so that other framework versions can be tried in minutes."""
    names = [name for name, *_ in part]
    alone = [name for name in names if (backend, name) in {*BESIDE_NONE, *SMALL_ONLY}]
    run(backend, [name for name in names if name not in alone], order=0)
    for name in alone:
        run(backend, [name], order=0)


@pytest.mark.slow
@COMPILED
@pytest.mark.parametrize("name", TABLE)
def test_every_program_alone(backend, name):
    run(backend, [name])


class Recorder:
    """A namespace that records the names it was asked for."""

    def __init__(self, wrapped, prefix, seen):
        self._wrapped, self._prefix, self._seen = wrapped, prefix, seen

    def __getattr__(self, name):
        found = getattr(self._wrapped, name)
        if name in ("linalg", "fft", "random", "optimizers") and self._prefix != "fft.":
            return Recorder(found, f"{self._prefix}{name}.", self._seen)
        self._seen.add(self._prefix + name)
        return found


def public(module):
    return [name for name in module.__all__ if callable(getattr(module, name))]


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
def test_every_name_is_drawn(backend):
    """Run eagerly, the programs use every name."""
    seen = set()
    xp = iso.namespace(iso.convert(INPUTS["v"], backend))
    for program in TABLE.values():
        x = iso.convert(INPUTS[program.input], backend)
        with np.errstate(all="ignore"):  # one program asks for infinity
            program.func(Recorder(iso, "iso.", seen), Recorder(xp, "", seen), x)
    wanted = {name for name in VOCABULARY if name not in NOT_DRAWN}
    wanted |= {f"linalg.{name}" for name in LINALG} | {f"fft.{name}" for name in FFT}
    wanted |= {f"iso.{name}" for name in public(iso) if name not in NOT_COMPILED}
    wanted |= {f"iso.random.{name}" for name in iso.random.__all__ if name != "key"}
    wanted |= {f"iso.optimizers.{name}" for name in iso.optimizers.__all__}
    print(f"{len(TABLE)} programs draw {len(wanted & seen)} of {len(wanted)} names")
    assert len(TABLE) >= 150
    assert not wanted - seen, f"no program uses {sorted(wanted - seen)}"
    assert set(NOT_DRAWN) <= set(VOCABULARY), "a reason for an unknown name"
    assert not {f"iso.{name}" for name in NOT_COMPILED} & seen, "excluded, but used"
