"""Optimizers by other libraries and by the papers' formulas in plain loops; nests to run them on,
and the checks of every row of the suite.
"""

import math

import numpy as np
from frameworks import enable_x64, jax, jnp, optax, torch

import isomorph as iso
from isomorph import (
    adam_update,
    gradient_descent_update,
    lamb_update,
    lars_update,
    optimizer_update,
)
from isomorph.scoreboard import comparing
from oracles import central_gradient, compiled, kind_of, numpy_of, verbs_of

rng = np.random.default_rng(7)
STEPS, LR, EPSILON = 100, 0.05, 1e-7
WALK = 20  # steps of the rows; after them both moments still differ from their bias corrections
SHAPES = [(3, 2), (2,), (), (4,)]
draw = lambda: [np.asarray(rng.standard_normal(shape)) for shape in SHAPES]
W, M, WEIGHTS = draw(), draw(), [draw() for _ in range(3)]
V = [np.asarray(rng.uniform(0.5, 1.5, shape)) for shape in SHAPES]
GRADIENTS = [draw() for _ in range(STEPS)]
ZEROS = [np.zeros(shape) for shape in SHAPES]
DIRECTION = [draw()[0], draw()[0], np.asarray(0.3), draw()[0], draw()[0]]  # for (w, g, lr, m, v)
# float32: some roundings of values of order one; float64: the same, with a large margin
TOLERANCE = {"float32": {"rtol": 1e-5, "atol": 1e-5}, "float64": {"rtol": 1e-10, "atol": 1e-11}}


# Nests, flattened and rebuilt by hand.


def nest(a, b, c, d):
    return {"layers": [{"w": a, "b": b}, None], "rest": (c, [d])}


def parts(n):
    assert n["layers"][1] is None
    assert type(n["rest"]) is tuple
    return [n["layers"][0]["w"], n["layers"][0]["b"], n["rest"][0], n["rest"][1][0]]


def arrays(xp, leaves, dtype="float64"):
    return nest(*(xp.asarray(x, dtype=verbs_of(xp).dtype(dtype)) for x in leaves))


def assert_close(got, expected, dtype="float64"):
    for x, y in zip(parts(got), expected, strict=True):
        assert tuple(x.shape) == np.shape(y)
        np.testing.assert_allclose(numpy_of(x), y, **TOLERANCE[dtype])


# The papers' formulas for one float64 array, elementwise.


def elementwise(func, *xs):
    out = np.zeros_like(xs[0])
    for i in np.ndindex(out.shape):
        out[i] = func(*(float(x[i]) for x in xs))
    return out


def length(x):
    return math.sqrt(sum(float(e) ** 2 for e in x.reshape(-1)))


def descent(w, g, lr, m, v, t):
    return (elementwise(lambda w, g: w - lr * g, w, g),)


def adam(g, m, v, t, beta1=0.9, beta2=0.999):
    m = elementwise(lambda m, g: beta1 * m + (1 - beta1) * g, m, g)
    v = elementwise(lambda v, g: beta2 * v + (1 - beta2) * g**2, v, g)
    hat = lambda m, v: (m / (1 - beta1**t)) / (math.sqrt(v / (1 - beta2**t)) + EPSILON)
    return elementwise(hat, m, v), m, v


def adam_paper(w, g, lr, m, v, t, **betas):
    u, m, v = adam(g, m, v, t, **betas)
    return elementwise(lambda w, u: w - lr * u, w, u), m, v


def lars_paper(w, g, lr, m, v, t, decay=0.0):
    rate = 1.0
    if length(w) > 0 and length(g) > 0:
        rate = length(w) / (length(g) + decay * length(w))
    return (elementwise(lambda w, g: w - lr * rate * (g + decay * w), w, g),)


def lamb_paper(w, g, lr, m, v, t, decay=0.0, cap=10.0):
    u, m, v = adam(g, m, v, t)
    u = elementwise(lambda u, w: u + decay * w, u, w)
    ratio = min(length(w) / length(u), cap) if length(w) > 0 and length(u) > 0 else 1.0
    return elementwise(lambda w, u: w - lr * ratio * u, w, u), m, v


# Our functions with one signature: (w, g, lr, m, v, step) -> a tuple of nests.


def ours_descent(w, g, lr, m, v, t, stop_gradients=True):
    return (gradient_descent_update(w, g, lr, stop_gradients=stop_gradients),)


def ours_optimizer(w, g, lr, m, v, t, stop_gradients=True):
    return (optimizer_update(w, g, lr, stop_gradients=stop_gradients),)


def ours_adam(w, g, lr, m, v, t, **options):
    return adam_update(w, g, lr, m, v, t, epsilon=EPSILON, **options)


def ours_lars(w, g, lr, m, v, t, **options):
    return (lars_update(w, g, lr, **options),)


def ours_lamb(w, g, lr, m, v, t, **options):
    return lamb_update(w, g, lr, m, v, t, epsilon=EPSILON, **options)


# Steps by other libraries and by the papers.


def by_torch(make, steps=STEPS):
    """The float64 parameters after so many steps of a torch optimizer."""
    params = [torch.tensor(w, dtype=torch.float64, requires_grad=True) for w in W]
    optimizer = make(params)
    for gradient in GRADIENTS[:steps]:
        for p, g in zip(params, gradient):
            p.grad = torch.tensor(g, dtype=torch.float64)
        optimizer.step()
    return [p.detach().cpu().numpy() for p in params]


def by_optax(transform, steps=STEPS):
    """The float64 parameters after so many steps of an optax transformation."""
    with enable_x64(True):
        params = [jnp.asarray(w) for w in W]
        state, update = transform.init(params), jax.jit(transform.update)
        for gradient in GRADIENTS[:steps]:
            updates, state = update([jnp.asarray(g) for g in gradient], state, params)
            params = optax.apply_updates(params, updates)
        return [np.asarray(p) for p in params]


def by_paper(rule):
    state = list(zip(W, ZEROS, ZEROS))
    for t, gradient in enumerate(GRADIENTS[:WALK], 1):
        for i, (w, m, v) in enumerate(state):
            w, *moments = rule(w, gradient[i], LR, m, v, t)
            state[i] = (w, *(moments or (m, v)))
    return [w for w, _, _ in state]


def by_us(update, xp, dtype, lr, step=int):
    w, m, v = (arrays(xp, x, dtype) for x in (W, ZEROS, ZEROS))
    for t, gradient in enumerate(GRADIENTS[:WALK], 1):
        w, *moments = update(w, arrays(xp, gradient, dtype), lr, m, v, step(t))
        m, v = moments or (m, v)
    return w


# Compiled and differentiated.


def quick(backend, func):
    """`func`, compiled on JAX, which compiles each eager operation by itself."""
    return compiled(backend, func) if backend == "jax" else func


def slopes_by_us(xp, update, **options):
    """The gradients of a weighted sum of the results of an update for all its arrays, and the
    results.
    """
    columns = [[xp.asarray(c) for c in column] for column in WEIGHTS]

    def loss(w, g, lr, m, v, t):
        results = update(w, g, lr, m, v, t, **options)
        return sum(
            xp.sum(c * x)
            for result, weights in zip(results, columns)
            for c, x in zip(weights, together([result]))
        ), results

    return iso.grad(loss, argnums=(0, 1, 2, 3, 4), has_aux=True)


def firsts(w, g, lr, m, v):
    """The arguments with the first leaves alone."""
    w, g, m, v = (parts(x)[0] for x in (w, g, m, v))
    return w, g, lr, m, v


def with_gradients(xp, update):
    """The update; those gradients with and without `stop_gradients`; and, for the first leaf only,
    the derivatives of those along `DIRECTION`.
    """
    along = [xp.asarray(x) for x in DIRECTION]
    flow, stop = (slopes_by_us(xp, update, stop_gradients=how) for how in (False, True))

    def along_slopes(*args):
        return sum(xp.sum(d * x) for d, x in zip(along, flow(*args)[0]))

    curves = iso.grad(along_slopes, argnums=(0, 1, 2, 3, 4))

    def run(*args):
        flowing, results = flow(*args)
        return results, flowing, stop(*args)[0], curves(*firsts(*args[:-1]), args[-1])

    return run


def together(nests):
    """The leaves of nests and arrays, in one list."""
    return [x for n in nests for x in (parts(n) if isinstance(n, dict) else [n])]


def flat(leaves):
    return np.concatenate([np.reshape(numpy_of(x), -1) for x in leaves])


def slopes_of(paper, start, t, leaves=SHAPES, step=1e-6):
    """The gradient of that weighted sum at the flat (w, g, lr, m, v), by differences of the paper's
    rule.
    """

    def loss(x):
        given, position = [], 0
        for shapes in (leaves, leaves, [()], leaves, leaves):
            given.append([])
            for shape in shapes:
                size = math.prod(shape)
                given[-1].append(x[position : position + size].reshape(shape))
                position += size
        w, g, (rate,), m, v = given
        results = [paper(*leaf, t) for leaf in zip(w, g, [rate] * len(leaves), m, v)]
        return sum(
            np.sum(c * x)
            for weights, column in zip(WEIGHTS, zip(*results))
            for c, x in zip(weights, column)
        )

    return central_gradient(loss, start, step)


def curves_of(paper, start, t, step=1e-4):
    """The derivative of those slopes along `DIRECTION`, for the first leaf only, by differences.
    The longer step keeps the rounding errors of both small.
    """
    along = step * flat(DIRECTION)
    high, low = (slopes_of(paper, start + d, t, SHAPES[:1], step) for d in (along, -along))
    return (high - low) / (2 * step)


def check(backend, xp, update, paper, oracles, stops=True):
    """Check an update against its paper and other libraries, with first and second derivatives
    through it, and zeros where they are stopped; and values and first derivatives compiled.
    """
    expected = {"paper": by_paper(paper), **oracles}
    # JAX compiles each eager operation by itself: there float32 values are eager, the rest compiled
    for dtype in ("float32",) if backend == "jax" else ("float32", "float64"):
        got = by_us(update, xp, dtype, LR)
        assert {kind_of(x) for x in parts(got)} == {backend}
        assert all(x.dtype == verbs_of(xp).dtype(dtype) for x in parts(got))
        for values in expected.values():
            assert_close(got, values, dtype)

    if backend == "jax":
        check_compiled(backend, xp, update, paper, expected, stops)
    else:
        check_derivatives(with_gradients(xp, update), xp, paper, stops)
    if backend in ("tensorflow", "torch"):
        brief = slopes_by_us(xp, update, stop_gradients=False)
        check_first_leaf(compiled(backend, brief), xp, paper)


def arguments(xp):
    w, g, m, v = (arrays(xp, x) for x in (W, GRADIENTS[0], M, V))
    return w, g, xp.asarray(LR, dtype=xp.float64), m, v


def check_derivatives(run, xp, paper, stops):
    _, flowing, stopped, curving = run(*arguments(xp), xp.asarray(3))
    slopes = slopes_of(paper, flat([*W, *GRADIENTS[0], LR, *M, *V]), 3)
    curves = curves_of(paper, flat([W[0], GRADIENTS[0][0], LR, M[0], V[0]]), 3)
    assert min(np.abs(slopes).max(), np.abs(curves).max()) > 0.1
    with comparing("gradient"):
        # central differences with step 1e-6 are good to about 1e-9
        np.testing.assert_allclose(flat(together(flowing)), slopes, rtol=1e-6, atol=1e-8)
        # with step 1e-4, of slopes with the same step: good to 1e-8 times the third derivative
        np.testing.assert_allclose(flat(curving), curves, rtol=1e-5, atol=1e-6)
    if stops:
        assert not flat(together(stopped)).any()


def check_first_leaf(run, xp, paper):
    """Values and first derivatives for one leaf: torch reads a program with all of them, twice
    differentiated, for half a minute.
    """
    slopes, results = run(*firsts(*arguments(xp)), xp.asarray(3))
    leaf = W[0], GRADIENTS[0][0], LR, M[0], V[0]
    for got, expected in zip(results, paper(*leaf, 3), strict=True):
        np.testing.assert_allclose(numpy_of(got), expected, **TOLERANCE["float64"])
    with comparing("gradient"):
        expected = slopes_of(paper, flat(leaf), 3, SHAPES[:1])
        np.testing.assert_allclose(flat(slopes), expected, rtol=1e-6, atol=1e-8)


def check_compiled(backend, xp, update, paper, expected, stops=True):
    """The same of a compiled program for all leaves, and its steps."""
    run = compiled(backend, with_gradients(xp, update))
    check_derivatives(run, xp, paper, stops)
    lr = xp.asarray(LR, dtype=xp.float64)
    got = by_us(lambda *args: run(*args)[0], xp, "float64", lr, xp.asarray)
    for values in expected.values():
        assert_close(got, values)
