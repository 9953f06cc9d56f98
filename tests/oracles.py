"""Expected values that do not come from the code under test."""

import os
from collections import Counter
from functools import wraps

import numpy as np
from frameworks import jax, older

import isomorph as iso
from isomorph.core.dispatch import load
from isomorph.scoreboard import record_mode

# XLA's flags: (quick, a user's default). conftest.py says why.
XLA = {
    "xla_backend_optimization_level": (0, 3),
    "xla_llvm_disable_expensive_passes": (True, False),
    **({"xla_cpu_use_fusion_emitters": (False, True)} if older("jax", 0, 11) else {}),
}
QUICK_XLA = " ".join(f"--{name}={str(quick).lower()}" for name, (quick, _) in XLA.items())

# Tests that check a sample draw it with this seed. `make test` always takes the same one, so that
# a change is what breaks it; `make test-all` takes another one each time, and prints its seed.
SEED = int(os.environ.get("ISOMORPH_SEED", "0"))


def central_gradient(func, x, step=1e-6):
    """The gradient of a real scalar `func` at the float64 array `x`, by central differences (error
    about 1e-9).
    """
    x = np.asarray(x, np.float64)
    grad = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        high, low = x.copy(), x.copy()
        high[i] += step
        low[i] -= step
        grad[i] = (float(func(high)) - float(func(low))) / (2 * step)
    return grad


def numpy_of(x):
    """The values of an array of any framework, without isomorph."""
    return x.detach().cpu().numpy() if hasattr(x, "detach") else np.asarray(x)


def same_but_for_digits(got, wanted):
    """Random numbers with logarithms: they are computed in float64 and rounded to float32, so that
    another last bit of a logarithm is seen in one of millions.
    """
    got, wanted = numpy_of(got), numpy_of(wanted)
    assert got.dtype == wanted.dtype == np.float32
    np.testing.assert_array_max_ulp(got, wanted, 1)
    assert np.count_nonzero(got != wanted) <= 1 + got.size * 1e-6


RUNS = Counter()  # how often compiled programs ran, by compiler


def noted(compiler):
    """A compiler whose programs tell the scoreboard when they run: mode jit is observed, not
    claimed.
    """

    @wraps(compiler)
    def compile(*args, **kw):
        program = compiler(*args, **kw)

        @wraps(program)
        def run(*args, **kw):
            record_mode("jit")
            RUNS["programs"] += 1
            return program(*args, **kw)

        return run

    return compile


def compiled(backend, func):
    """`func` under the framework's own compiler; unchanged on NumPy."""
    if backend == "jax":
        import jax

        return noted(jax.jit)(func)
    if backend == "tensorflow":
        import tensorflow as tf

        return noted(tf.function)(func, jit_compile=True, autograph=False)
    # aot_eager traces whole graphs like inductor, but without its compile time
    if backend == "torch":
        import torch

        torch.compiler.reset()  # it counts compilations of a function over all tests
        return noted(torch.compile)(func, fullgraph=True, backend="aot_eager")
    return func


def counted(func):
    """`iso.jit(func)`, and a list that grows by one each time Python runs the function."""
    calls = []

    def call(*args):
        calls.append(1)
        return func(*args)

    return iso.jit(call), calls


def kind_of(x):
    """The framework of an array, from the module of its type."""
    return {"jaxlib": "jax"}.get(root := type(x).__module__.partition(".")[0], root)


def as_users_have_it(backend, program):
    """Compile with XLA's default flags, which conftest.py changes for speed."""
    if backend != "jax":
        return program
    return jax.jit(program, compiler_options={name: usual for name, (_, usual) in XLA.items()})


def name_of(xp):
    """The name of the backend with namespace `xp`."""
    return xp.__name__.removeprefix("isomorph.")


def verbs_of(xp):
    """The backend with namespace `xp`, including what users do not see."""
    return load(name_of(xp))
