"""Random programs in the vocabulary of the array API, differentiated twice on every backend.

A program is a list of steps over one to three float64 arrays; each step applies a function of the
table `OPS` to earlier values. Programs are drawn together with their NumPy values, to avoid kinks
and large numbers. No expected value comes from the code under test: the value is NumPy's, the
gradient comes from differences of NumPy's values, and the second derivative from differences of the
gradient that was just checked.
"""

import math
import os
from collections import Counter
from collections.abc import Callable
from itertools import product
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest
from frameworks import jax
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import isomorph as iso
from oracles import kind_of, numpy_of

# Programs per function of the table, which is their last step. Fewer where each must be compiled or
# operations are slow, and in `make test`. The smallest number still makes more than 200 programs.
WHOLE = os.environ.get("ISOMORPH_XLA") == "full"  # make test-all
PROGRAMS = {"numpy": 8 if WHOLE else 4, "torch": 5 if WHOLE else 3, "tensorflow": 2, "jax": 2}
LARGEST = 30.0  # bound on all values of a program
AWAY = 0.03  # distance of values from kinks: many difference steps
STEP = 5e-4
# a fitting matrix away from kinks is rare
RARE = [HealthCheck.too_slow, HealthCheck.filter_too_much]
SETTINGS = {"derandomize": True, "deadline": None, "database": None, "suppress_health_check": RARE}


# How to draw options, from a random.Random and the arrays.

one_of = lambda *choices: lambda draw, *arrays: (draw.choice(choices),)
an_axis = lambda draw, x: (draw.randrange(-x.ndim, x.ndim),)
an_axis_and_a_flag = lambda draw, x: (*an_axis(draw, x), draw.random() < 0.5)
an_order = lambda draw, x: (tuple(draw.sample(range(x.ndim), x.ndim)),)
a_shape = lambda draw, x: (draw.choice([(-1,), (1, *x.shape), x.shape[::-1], (x.size, 1)]),)
two_rows = lambda draw, x, y: (np.array(draw.sample(range(len(x)), 2)),)


def some_axes(draw, x):
    """All axes, one, several or none; and keepdims."""
    axes = [None, *range(-x.ndim, x.ndim), tuple(range(x.ndim)), tuple(range(1, x.ndim))]
    return draw.choice(axes), draw.random() < 0.5


def a_mask(draw, x, *others):
    shape = np.broadcast_shapes(x.shape, *(y.shape for y in others))
    return (np.array(draw.choices([True, False], k=math.prod(shape))).reshape(shape),)


def places(draw, x):
    (axis,) = an_axis(draw, x)
    return np.array(draw.choices(range(x.shape[axis]), k=draw.randint(1, 4))), axis


def an_index(draw, x):
    """Integers, slices with any step, new axes and an ellipsis."""
    ways = lambda n: (draw.randrange(-n, n), slice(None, None, -1), slice(n // 2, None))
    index = [draw.choice(ways(n)) for n in x.shape[: draw.randint(1, x.ndim)]]
    return ((*index, *draw.choice([(), (None,), (...,), (..., None)])),)


# Whether a function applies.

always = lambda *arrays: True
axes = lambda n: lambda x: x.ndim >= n
vectors = lambda x, y: x.ndim == y.ndim == 1
square = lambda x: x.ndim >= 2 and x.shape[-1] == x.shape[-2]
long = lambda x: x.ndim >= 1 and len(x) >= 2
alike = lambda x, y: x.shape == y.shape
long_pair = lambda x, y: alike(x, y) and long(x)
joined = lambda x, y: x.ndim >= 1 and x.ndim == y.ndim and x.shape[1:] == y.shape[1:]
broadcast = lambda x, y: all(n == m or 1 in (n, m) for n, m in zip(x.shape[::-1], y.shape[::-1]))


def multiply(x, y):
    """Whether matmul accepts the two arrays."""
    if not x.ndim or not y.ndim or x.shape[-1] != y.shape[-2 if y.ndim > 1 else 0]:
        return False
    return broadcast(np.empty(x.shape[:-2]), np.empty(y.shape[:-2]))


# Distance from a kink: the smallest absolute value counts.

smooth = lambda *given: math.inf
length = lambda x, y: np.hypot(x, y) / 5
norm_kinks = lambda x, ord: np.append(ties(np.abs(x)), x)
eigenvalue_ties = lambda x: ties(np.linalg.eigvalsh(x + np.swapaxes(x, -1, -2))) / 5
singular_values = lambda x: np.append(np.linalg.svdvals(x), np.zeros((*x.shape[:-2], 1)), -1)
singular_value_ties = lambda x: ties(singular_values(x)) / 2


def ties(x, axis: Any = -1, *rest) -> Any:
    """Differences of neighbours in sorted order, along one axis or several."""
    over = range(x.ndim) if axis is None else np.atleast_1d(axis).astype(int) % max(x.ndim, 1)
    kept = [n for i, n in enumerate(x.shape) if i not in over]
    lanes = np.moveaxis(x, list(over), range(-len(over), 0))
    return np.diff(np.sort(lanes.reshape(*kept, -1), -1), axis=-1)


def jumps(x, y=1.0):
    part = np.mod(x / y, 1.0)
    return np.minimum(part, 1 - part)


# Functions of several lines.


def positive(xp, x):
    """A matrix with eigenvalues of at least 1."""
    return xp.matmul(x, xp.matrix_transpose(x)) + xp.eye(x.shape[-2], dtype=x.dtype)


def logsumexp(xp, x, axis, keepdims):
    top = xp.max(x, axis=axis, keepdims=True)
    total = top + xp.log(xp.sum(xp.exp(x - top), axis=axis, keepdims=True))
    return total if keepdims else xp.squeeze(total, axis=axis)


def softmax(xp, x, axis):
    e = xp.exp(x - xp.max(x, axis=axis, keepdims=True))
    return e / xp.sum(e, axis=axis, keepdims=True)


def complex_parts(xp, z):
    return xp.real(z * xp.conj(z)) * xp.abs(z + 3.0) / 4 + xp.imag(z)


def reduction(name, gap=smooth):
    call = lambda xp, x, axis, keepdims: getattr(xp, name)(x, axis=axis, keepdims=keepdims)
    return Op(call, always, some_axes, gap)


class Op(NamedTuple):
    """`apply(xp, *arrays, *options)`, how to draw options, when it applies, and its kinks."""

    apply: Callable[..., Any]
    fits: Callable[..., Any] = always
    options: Callable[..., tuple] = lambda draw, *arrays: ()
    gap: Callable[..., Any] = smooth


# fmt: off
ONE = {
    "acos": Op(lambda xp, x: xp.acos(0.8 * xp.tanh(x))),
    "acosh": Op(lambda xp, x: xp.acosh(x * x + 1.5)),
    "asin": Op(lambda xp, x: xp.asin(0.8 * xp.tanh(x))),
    "asinh": Op(lambda xp, x: xp.asinh(x)),
    "atan": Op(lambda xp, x: xp.atan(x)),
    "atanh": Op(lambda xp, x: xp.atanh(0.8 * xp.tanh(x))),
    "cos": Op(lambda xp, x: xp.cos(x)),
    "cosh": Op(lambda xp, x: xp.cosh(x / 3)),
    "exp": Op(lambda xp, x: xp.exp(x / 2)),
    "expm1": Op(lambda xp, x: xp.expm1(x / 2)),
    "log": Op(lambda xp, x: xp.log(x * x + 0.5)),
    "log10": Op(lambda xp, x: xp.log10(x * x + 0.5)),
    "log1p": Op(lambda xp, x: xp.log1p(x * x)),
    "log2": Op(lambda xp, x: xp.log2(x * x + 0.5)),
    "negative": Op(lambda xp, x: xp.negative(x) + xp.positive(x) * 0.5),
    "complex": Op(lambda xp, x: complex_parts(xp, xp.exp(xp.astype(x, xp.complex128) * 1j))),
    "operators": Op(lambda xp, x: (1 - x) / (2 + x * x) - 1 / (x * x + 1) + -x + 2**x),
    "pow": Op(lambda xp, x: xp.pow(x * x + 0.5, 0.7)),
    "power": Op(lambda xp, x: x**3 / 3),
    "reciprocal": Op(lambda xp, x: xp.reciprocal(x * x + 0.5)),
    "sin": Op(lambda xp, x: xp.sin(x)),
    "sinh": Op(lambda xp, x: xp.sinh(x / 3)),
    "sqrt": Op(lambda xp, x: xp.sqrt(x * x + 0.5)),
    "square": Op(lambda xp, x: xp.square(x) / 2),
    "tan": Op(lambda xp, x: xp.tan(xp.sin(x))),
    "tanh": Op(lambda xp, x: xp.tanh(x)),

    "abs": Op(lambda xp, x: xp.abs(x), gap=lambda x: x),
    "ceil": Op(lambda xp, x: xp.sin(x) * xp.ceil(x) + xp.trunc(x), gap=jumps),
    "clip": Op(lambda xp, x: xp.clip(x, -0.5, 0.8), gap=lambda x: (x + 0.5) * (x - 0.8)),
    "floor": Op(lambda xp, x: x * xp.floor(x), gap=jumps),
    "meshgrid": Op(lambda xp, x: xp.meshgrid(x, xp.sin(x))[0] ** 2, lambda x: x.ndim == 1),
    "round": Op(lambda xp, x: x * (x - xp.round(x)), gap=lambda x: jumps(x + 0.5)),
    "sign": Op(lambda xp, x: xp.sign(x) * x * x, gap=lambda x: x),
    "where_safe": Op(lambda xp, x: xp.where(x > 0, xp.sqrt(xp.where(x > 0, x, 1.0)), -x),
                     gap=lambda x: x / 5),

    "at": Op(lambda xp, x, i: iso.at(x)[i].get(), axes(1), an_index),
    "broadcast_to": Op(lambda xp, x: xp.broadcast_to(x, (2, *x.shape))),
    "expand_dims": Op(lambda xp, x, axis: xp.expand_dims(x, axis=axis), options=one_of(0, -1)),
    "flip": Op(lambda xp, x, axis: xp.flip(x, axis=axis), axes(1), an_axis),
    "matrix_transpose": Op(lambda xp, x: xp.matrix_transpose(x), axes(2)),
    "moveaxis": Op(lambda xp, x: xp.moveaxis(x, 0, -1), axes(2)),
    "pad": Op(lambda xp, x: xp.pad(x, (1, 0)), axes(1)),
    "permute_dims": Op(lambda xp, x, order: xp.permute_dims(x, order), axes(2), an_order),
    "repeat": Op(lambda xp, x, axis: xp.repeat(x, 2, axis=axis), axes(1), an_axis),
    "reshape": Op(lambda xp, x, shape: xp.reshape(x, shape), always, a_shape),
    "roll": Op(lambda xp, x, axis: xp.roll(x, 1, axis=axis), axes(1), an_axis),
    "slice": Op(lambda xp, x: x[1:] - x[:-1] * x[-1], long),
    "squeeze": Op(lambda xp, x: xp.squeeze(x, axis=0), lambda x: x.ndim >= 1 and len(x) == 1),
    "take": Op(lambda xp, x, i, axis: xp.take(x, xp.asarray(i), axis=axis), axes(1), places),
    "take_along_axis": Op(
        lambda xp, x, axis: xp.take_along_axis(x, xp.argsort(x, axis=axis), axis=axis),
        axes(1), an_axis, ties),
    "tile": Op(lambda xp, x: xp.tile(x, (2, 1))),
    "tril": Op(lambda xp, x, k: xp.tril(x, k=k) + xp.triu(x) / 2, axes(2), one_of(-1, 0, 1)),
    "unstack": Op(lambda xp, x: sum(xp.unstack(x * x, axis=0)), axes(1)),
    "where_number": Op(lambda xp, x, mask: xp.where(xp.asarray(mask), x, 0.5), always, a_mask),

    "cumulative_prod": Op(
        lambda xp, x, axis, first: xp.cumulative_prod(x, axis=axis, include_initial=first),
        axes(1), an_axis_and_a_flag),
    "cumulative_sum": Op(
        lambda xp, x, axis, first: xp.cumulative_sum(x, axis=axis, include_initial=first),
        axes(1), an_axis_and_a_flag),
    "diff": Op(lambda xp, x: xp.diff(x, axis=0), long),
    "logsumexp": Op(logsumexp, axes(1), an_axis_and_a_flag, ties),
    "max": reduction("max", ties),
    "mean": reduction("mean"),
    "min": reduction("min", ties),
    "prod": reduction("prod"),
    "softmax": Op(softmax, axes(1), an_axis, ties),
    "sort": Op(lambda xp, x, axis, down: xp.sort(x, axis=axis, descending=down),
               axes(1), an_axis_and_a_flag, ties),
    "std": reduction("std", lambda x, axis, keepdims: np.std(x, axis) / 5),
    "sum": reduction("sum"),
    "var": reduction("var"),
    "vector_norm": Op(lambda xp, x, ord: xp.linalg.vector_norm(x, ord=ord, axis=-1),
                      axes(1), one_of(1, 2, 3, 2.5, math.inf, -math.inf), norm_kinks),

    "cholesky": Op(lambda xp, x: xp.linalg.cholesky(positive(xp, x)), axes(2)),
    "cross": Op(lambda xp, x: xp.linalg.cross(x, xp.cos(x)), lambda x: x.shape[-1:] == (3,)),
    "det": Op(lambda xp, x: xp.linalg.det(x), square),
    "diagonal": Op(lambda xp, x: xp.linalg.diagonal(x) + xp.linalg.trace(x)[..., None], axes(2)),
    "eigvalsh": Op(lambda xp, x: xp.linalg.eigvalsh(x + xp.matrix_transpose(x)),
                   square, gap=eigenvalue_ties),
    "einsum": Op(lambda xp, x: xp.einsum("...ij,...kj->...ik", x, xp.sin(x)), axes(2)),
    "fft": Op(lambda xp, x: complex_parts(xp, xp.fft.fft(xp.astype(x, xp.complex128))), axes(1)),
    "inv": Op(lambda xp, x: xp.linalg.inv(positive(xp, x)), axes(2)),
    "matrix_norm": Op(lambda xp, x: xp.linalg.matrix_norm(x), axes(2), gap=np.max),
    "matrix_power": Op(lambda xp, x: xp.linalg.matrix_power(x, 3), square),
    "pinv": Op(lambda xp, x: xp.linalg.pinv(x), axes(2), gap=lambda x: np.linalg.svdvals(x) / 9),
    "slogdet": Op(lambda xp, x: xp.linalg.slogdet(positive(xp, x))[1], axes(2)),
    "svdvals": Op(lambda xp, x: xp.linalg.svdvals(x), axes(2), gap=singular_value_ties),
}
TWO = {
    "add": Op(lambda xp, x, y: x + xp.add(y, x) / 2, broadcast),
    "atan2": Op(lambda xp, x, y: xp.atan2(x, y), broadcast, gap=length),
    "concat": Op(lambda xp, x, y: xp.concat([x, y, x * 2], axis=0), joined),
    "copysign": Op(lambda xp, x, y: xp.copysign(x, y), broadcast, gap=lambda x, y: x * y),
    "divide": Op(lambda xp, x, y: xp.divide(x, y * y + 0.5), broadcast),
    "hypot": Op(lambda xp, x, y: xp.hypot(x, y), broadcast, gap=length),
    "logaddexp": Op(lambda xp, x, y: xp.logaddexp(x, y), broadcast),
    "matmul": Op(lambda xp, x, y: xp.matmul(x, y), multiply),
    "maximum": Op(lambda xp, x, y: xp.maximum(x, y), broadcast, gap=lambda x, y: x - y),
    "minimum": Op(lambda xp, x, y: xp.minimum(x, y * y), broadcast, gap=lambda x, y: x - y * y),
    "multiply": Op(lambda xp, x, y: xp.multiply(x, y) - x * 0.5, broadcast),
    "outer": Op(lambda xp, x, y: xp.linalg.outer(x, y), vectors),
    "pow_both": Op(lambda xp, x, y: xp.pow(x * x + 0.5, xp.sin(y)), broadcast),
    "remainder": Op(lambda xp, x, y: xp.remainder(x, y * y + 1), broadcast,
                    gap=lambda x, y: jumps(x, y * y + 1)),
    "rows_add": Op(lambda xp, x, y, i: iso.at(x)[i].add(y[:2]), long_pair, two_rows),
    "rows_multiply": Op(lambda xp, x, y, i: iso.at(x)[i].multiply(y[:2]), long_pair, two_rows),
    "rows_set": Op(lambda xp, x, y, i: iso.at(x)[i].set(y[:2]), long_pair, two_rows),
    "solve": Op(lambda xp, x, y: xp.linalg.solve(positive(xp, x), y),
                lambda x, y: x.ndim == 2 and y.ndim in (1, 2) and len(x) == len(y)),
    "stack": Op(lambda xp, x, y, axis: xp.stack([x, y], axis=axis), alike, one_of(0, -1)),
    "subtract": Op(lambda xp, x, y: xp.subtract(x, y) * y, broadcast),
    "tensordot": Op(lambda xp, x, y: xp.tensordot(x, y, axes=1),
                    lambda x, y: multiply(x, y) and y.ndim <= 2),
    "vecdot": Op(lambda xp, x, y: xp.vecdot(x, y),
                 lambda x, y: x.ndim and y.ndim and x.shape[-1] == y.shape[-1] and broadcast(x, y)),
    "where": Op(lambda xp, x, y, mask: xp.where(xp.asarray(mask), x, y), broadcast, a_mask),
}
# fmt: on
OPS = ONE | TWO
NAMES = sorted(OPS)


class Program(NamedTuple):
    """Steps (name, operand positions, options) over leaves; a call computes the function of the
    leaves.
    """

    leaves: list[np.ndarray]
    steps: list[tuple[str, tuple[int, ...], tuple]]

    def __call__(self, *leaves):
        xp = iso.namespace(*leaves)
        values = list(leaves)
        for name, places, options in self.steps:
            values.append(OPS[name].apply(xp, *(values[i] for i in places), *options))
        used = {i for _, places, _ in self.steps for i in places}
        total = 0.0
        for y in (y for i, y in enumerate(values) if i not in used):  # every step contributes
            weights = np.cos(1.0 + np.arange(math.prod(y.shape))).reshape(tuple(y.shape))
            total = total + xp.sum(y * xp.asarray(weights))
        return total

    def moved(self, t, along):
        return [x + t * v.reshape(x.shape) for x, v in zip(self.leaves, along)]


def drawn(wanted, first_seed, seeds):
    """A program that ends in the function `wanted`. Its leaves and each step come from separate
    numbers, so that Hypothesis can remove steps when it shrinks.
    """
    draw = Random(f"{wanted} {first_seed}")
    first = tuple(draw.choices([1, 2, 3, 3], k=draw.choice([0, 1, 2, 2, 3])))
    shapes = [first]
    for _ in range(draw.randint(0, 2)):  # these broadcast against the first
        narrow = tuple(draw.choice([n, n, 1]) for n in first)
        shapes.append(narrow[draw.randint(0, len(first)) :])
    fill = lambda n: np.array([draw.uniform(-1.5, 1.5) for _ in range(n)])
    leaves = [fill(math.prod(shape)).reshape(shape) for shape in shapes]
    program = Program(leaves, [])
    values = list(leaves)
    for seed in (*seeds, None):
        draw = Random(f"{wanted} {first_seed} {seed}")
        name = wanted if seed is None else draw.choice(NAMES)
        operands = product(range(len(values)), repeat=2 if name in TWO else 1)
        fitting = [i for i in operands if OPS[name].fits(*(values[k] for k in i))]
        taken = bool(fitting) and take(program, values, name, draw.choice(fitting), draw)
        assume(taken or seed is not None)
    return program


def take(program, values, name, places, draw):
    """Add a step unless it comes close to a kink or makes too many or too large values."""
    op, arrays = OPS[name], [values[i] for i in places]
    options = op.options(draw, *arrays)
    if np.abs(op.gap(*arrays, *options)).min(initial=math.inf) < AWAY:
        return False
    y = np.asarray(op.apply(iso.namespace(arrays[0]), *arrays, *options))
    if not 0 < y.size <= 36 or np.abs(y).max() > LARGEST:
        return False
    values.append(y)
    program.steps.append((name, places, options))
    return True


def slope(func):
    """The derivative of `func` at 0 from four values, with an error of order STEP⁴; and how far the
    two central differences disagree.
    """
    near, far = ((func(t) - func(-t)) / (2 * t) for t in (STEP, 2 * STEP))
    return (4 * near - far) / 3, np.abs(near - far).max(initial=0)


def gradient_by_differences(program):
    """The flat gradient with respect to all elements of all leaves."""
    sizes = [x.size for x in program.leaves]
    units = [np.split(e, np.cumsum(sizes)[:-1]) for e in np.eye(sum(sizes))]
    return np.array([slope(lambda t, e=e: program(*program.moved(t, e))) for e in units]).T


def compare(backend, program):
    expected, apart = gradient_by_differences(program)
    scale = np.abs(expected).max()
    # Central differences that disagree by 1e-4 are good to about the square of that. Only the
    # oracle is asked. Checked per element: a large one must not hide a pole near a small one.
    sizes = np.maximum(np.abs(expected), 1e-2 * scale)
    assume(scale > 1e-2 and np.all(apart < 1e-4 * sizes))
    with iso.use_backend(backend):
        asarray = iso.namespace().asarray
    flat = lambda arrays: np.concatenate([numpy_of(a).ravel() for a in arrays])
    both = iso.value_and_grad(program, tuple(range(len(program.leaves))))
    along = [np.sin(1.0 + np.arange(x.size)).reshape(x.shape) for x in program.leaves]
    hvp = lambda *xs: iso.hvp(program, xs, [asarray(v) for v in along])
    if backend == "jax":  # eagerly JAX would compile every function for every shape
        quick = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
        whole = jax.jit(lambda *xs, run=(both, hvp): [f(*xs) for f in run], compiler_options=quick)
        both, hvp = (lambda *xs: whole(*xs)[0]), (lambda *xs: whole(*xs)[1])

    leaves = [asarray(x) for x in program.leaves]
    value, grads = both(*leaves)
    for g, x in zip(grads, leaves, strict=True):
        assert (kind_of(g), type(g)) == (backend, type(x))
        assert (g.dtype, g.shape) == (x.dtype, x.shape)
    np.testing.assert_allclose(float(value), program(*program.leaves), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(flat(grads), expected, rtol=1e-6, atol=1e-7 * scale)

    expected, _ = slope(lambda t: flat(both(*map(asarray, program.moved(t, along)))[1]))
    scale = max(scale, np.abs(expected).max())
    np.testing.assert_allclose(flat(hvp(*leaves)), expected, rtol=1e-6, atol=1e-7 * scale)


def programs(name):
    """Programs that end in the function of that name."""
    seeds = st.integers(0, 2**20)  # with more bits Hypothesis prefers small numbers
    return st.builds(drawn, st.just(name), seeds, st.lists(seeds, min_size=2, max_size=4))


def cells():
    """One test per function, because JAX compiles every program. In `make test`, JAX and TensorFlow
    only test every fourth function as the last step, a different quarter each. All functions occur
    as inner steps.
    """
    quick = {"jax": 0, "tensorflow": 2}
    for backend in ("numpy", "jax", "tensorflow", "torch"):
        for i, name in enumerate(NAMES):
            left = backend in quick and i % 4 != quick[backend]
            yield pytest.param(backend, name, marks=pytest.mark.slow if left else ())


@pytest.mark.takes("JAX compiles each operation")
@pytest.mark.parametrize(("backend", "name"), list(cells()), indirect=["backend"])
def test_random_programs_differentiate_twice(backend, name):
    ran = []

    def every(program):
        compare(backend, program)
        ran.append(program.steps[-1][0])

    settings(max_examples=PROGRAMS[backend], **SETTINGS)(given(programs(name))(every))()
    assert set(ran) == {name}
    assert len(ran) >= PROGRAMS[backend]


def test_random_programs_are_many_and_of_every_rank(backend):
    steps, ranks = Counter(), Counter()

    def every(program):
        steps.update(name for name, _, _ in program.steps)
        ranks.update(x.ndim for x in program.leaves)

    for name in NAMES:
        settings(max_examples=PROGRAMS[backend], **SETTINGS)(given(programs(name))(every))()
    assert set(steps) == set(OPS)
    assert len(NAMES) * PROGRAMS[backend] >= 200
    assert all(ranks[n] >= 10 for n in (0, 1, 2, 3))
