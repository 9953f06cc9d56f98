"""Programs whose compiled results must equal their eager ones: mixes of functions, and the examples
of the table, a few to a program.

A program takes the package, the namespace and one float64 array, and returns a nest of arrays. It
does more than one call, so that a compiler has something to fuse. The number beside it says how
often it is differentiated: twice, once or not at all.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import isomorph as iso
from examples import BACKENDS, GROUPS, TABLE, X, may, of_vector
from examples.measuring import run
from isomorph.core import tree
from oracles import name_of


def inputs(seed, *shapes):
    """Arrays for programs: a vector, a square matrix, rows, a tensor and images."""
    rng = np.random.default_rng(seed)
    return {name: rng.uniform(-1.5, 1.5, shape) for name, shape in zip("vmrti", shapes)}


INPUTS = {**inputs(7, 6, (4, 4), (3, 5), (2, 3, 4), (2, 6, 6, 4)), "e": X}  # e: for examples
# A compiler computes many elements at a time and divides the work among threads, but not for the
# few elements of INPUTS. Sizes that are no multiples leave a remainder.
LARGE = inputs(11, 1037, (37, 37), (35, 67), (5, 19, 23), (3, 18, 18, 4))


class Program(NamedTuple):
    func: Callable[..., Any]
    input: str
    order: int


def spd(xp, x):
    """A symmetric matrix with eigenvalues of at least 1."""
    return xp.matmul(x, xp.matrix_transpose(x)) + xp.eye(x.shape[-1], dtype=x.dtype)


def cplx(xp, x):
    wide = xp.complex128 if width(x) == 64 else xp.complex64
    return xp.astype(x, wide) * (1 + 0.5j) + 1j * xp.astype(xp.cos(x), wide)


def width(x):
    """The bits of the numbers of `x`: 64, or 32 where JAX has its default."""
    return 64 if "float64" in str(x.dtype) else 32


def ints(xp, *values):
    return xp.asarray(np.array(values))


def key(iso, xp, seed=3):
    return xp.asarray(np.array([0, seed], np.uint32))


# Programs that take several lines.


def gaussian_process(iso, xp, x):
    """The original bug, which gave -87 instead of -8.7."""
    q, l = x[0] - 2.0, x[1] * 0.3
    at = xp.linspace(-3.0, 3.0, 20, dtype=x.dtype)[:, None]
    y = xp.sin(at)[:, 0]
    d2 = xp.sum((at[:, None, :] - at[None, :, :]) ** 2, axis=-1)
    k = xp.exp(-0.5 * d2 * xp.exp(l)) + xp.exp(q) * xp.eye(20, dtype=x.dtype)
    low = xp.linalg.cholesky(k)
    fit = xp.sum(y * xp.linalg.solve(k, y[:, None])[:, 0])
    return fit + xp.sum(xp.log(xp.linalg.diagonal(low)))


def kernel_cholesky(iso, xp, x):
    """A smaller version of that bug."""
    d2 = xp.sum((x[:, None, :] - x[None, :, :]) ** 2, axis=-1)
    return xp.sum(xp.sin(xp.linalg.cholesky(xp.exp(-d2) + 0.1 * xp.eye(4, dtype=x.dtype))))


def kernel_scatter(iso, xp, x):
    """The same with a diagonal added by index."""
    d2 = xp.sum((x[:, None, :] - x[None, :, :]) ** 2, axis=-1)
    at = xp.arange(4)
    noise = iso.at(xp.zeros((4, 4), dtype=x.dtype))[at, at].add(0.1)
    return xp.sum(xp.sin(xp.linalg.cholesky(xp.exp(-d2) + noise)))


def kernel_gather(iso, xp, x):
    """Rows taken twice, so that gradients are scattered, together with a reduction."""
    rows = xp.take(x, ints(xp, 0, 2, 2, 1), axis=0)
    d2 = xp.sum((rows[:, None, :] - x[None, :, :]) ** 2, axis=-1)
    return xp.exp(-d2) * xp.sum(rows, axis=-1)


def power_iteration(iso, xp, x):
    def body(i, state):
        y = xp.matmul(x, state)
        return y / xp.linalg.vector_norm(y)

    return iso.fori_loop(0, 5, body, xp.ones(4, dtype=x.dtype))


def newton(iso, xp, x):
    def step(y, _):
        y = y - (y * y * y - x - 3.0) / (3 * y * y)
        return y, xp.sum(y)

    return iso.scan(step, xp.ones_like(x) * 1.5, xp.arange(6))


def halve(iso, xp, x):
    goes_on = lambda s: xp.sum(s[0] * s[0]) > 0.1
    return iso.while_loop(goes_on, lambda s: (s[0] / 2, s[1] + 1), (x, xp.asarray(0)))


def branch(iso, xp, x):
    return iso.cond(xp.sum(x) > 0, lambda x: xp.sin(x) * x, lambda x: xp.cos(x) - x, x) + iso.cond(
        xp.sum(x) > 100, lambda x: x * 2, lambda x: x * x, x
    )


def switched(iso, xp, x):
    place = xp.argmax(x)
    return iso.switch(place, [lambda x: xp.sin(x) * x, lambda x: x**3, lambda x: xp.cos(x) - x], x)


def own_rule(iso, xp, x):
    ten = iso.custom_vjp(
        lambda x: xp.sin(x), lambda x: (xp.sin(x), x), lambda r, g: (10 * g * xp.cos(r),)
    )
    bound = iso.bind_custom_gradient_function(lambda x: x * x, lambda saved, g: 3 * g * saved[0])
    return ten(x) + bound(x)


def hosted(iso, xp, x):
    return iso.host_function(np.cbrt, lambda saved, g: g / (3 * saved[1] ** 2))(x * x + 1.0)


def draws(iso, xp, x):
    k = key(iso, xp)
    one, two = iso.random.split(k)[0], iso.random.fold_in(k, 5)
    return [
        x[0] * iso.random.uniform(one, (3,), dtype=f"float{width(x)}"),
        x[1] * iso.random.normal(two, (3,), dtype=f"float{width(x)}"),
        iso.random.truncated_normal(k, (3,), lower=-1.0, dtype=f"float{width(x)}") + x[2],
        iso.random.bernoulli(k, 0.5, (4,)),
        iso.random.bits(k, (4,)),
        iso.random.permutation(k, 5),
        iso.random.categorical(k, xp.stack([x, -x])),
        iso.dropout(x, 0.5, rng=k),
        iso.random.randint(k, (4,), -3, 9),
        iso.random.choice(k, x, (3,)),
        x[3] * iso.random.exponential(one, (3,), dtype=f"float{width(x)}"),
        x[4] * iso.random.gumbel(one, (3,), dtype=f"float{width(x)}"),
    ]


def rejections(iso, xp, x):
    k = key(iso, xp)
    root = xp.reshape(x[:4], (2, 2))
    cov = spd(xp, root)
    return [
        x[0] * iso.random.gamma(k, 2.0, (3,), dtype=f"float{width(x)}"),
        iso.random.poisson(k, 3.0, (3,)),
        iso.random.multivariate_normal(k, x[4:], cov, (2,)),
    ]


def transformed(iso, xp, x):
    f = lambda x: xp.sum(xp.sin(x) * x)
    value, g = iso.value_and_grad(f)(x)
    out, pull = iso.vjp(xp.tanh, x)
    return [
        value, g, iso.grad(f)(x), out, pull(x)[0],
        iso.jvp(xp.sin, (x,), (x,))[1],
        iso.jac(lambda x: x[:2] * xp.sum(x))(x),
        iso.hessian(lambda x: xp.sum(x**3))(x),
        iso.jacrev(lambda x: x[:2] * xp.sum(x))(x),
        iso.jacfwd(lambda x: x[:2] * xp.sum(x))(x),
        iso.value_and_jac(lambda x: x[:2] * xp.sum(x))(x),
        iso.hvp(f, (x,), (x,))[0],
        iso.vmap(lambda r: r * r)(x),
        iso.vmap(iso.grad(lambda r: r**3))(x),
        iso.execute_with_gradients(f, x)[1],
        iso.stop_gradient(x) * x,
        iso.checkpoint(lambda x: xp.exp(xp.sin(x)))(x),
        iso.jit(lambda x: x * 2)(x),
    ]  # fmt: skip


def modules(make):
    """A module created inside: creation is part of the program."""

    def run(iso, xp, x):
        with iso.use_backend(name_of(xp), dtype=f"float{width(x)}"), iso.use_key(3):
            net = make(iso)
        return net(x)

    return run


def joined(names):
    """Several examples of the table as one program of the same numbers."""
    calls = [of_vector(TABLE[name], run(name)) for name in names]
    return lambda iso, xp, x: [call(x) for call in calls]


def plain(entry):
    """Whether an example may do all that is asked of a program."""
    words = ("compiled", "float32", "mapped", "xla", "compiled gradient")
    return entry.slope is None and all(may(entry, w, b) for w in words for b in BACKENDS)


def of_examples(size=8):
    """The examples of what is ours, except special functions and matrices, a few to a program."""
    for topic, names in GROUPS.items():
        if topic in ("special", "linalg", "fft", "elementwise", "namespace", "random"):
            continue
        for order in (0, 1, 2):
            some = [n for n in names if TABLE[n].order == order and plain(TABLE[n])]
            for start in range(0, len(some), size):
                yield f"{topic} {order}.{start // size}", "e", order, joined(some[start:][:size])


EXAMPLES = [*of_examples()]


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
