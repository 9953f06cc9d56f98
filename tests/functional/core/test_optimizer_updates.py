"""The optimizer updates, against torch.optim, optax and the papers' formulas in plain loops."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import tensorflow as tf
import torch

import isomorph as iso
from isomorph import (
    adam_step,
    adam_update,
    gradient_descent_update,
    lamb_update,
    lars_update,
    optimizer_update,
)
from oracles import central_gradient, kind_of, numpy_of

rng = np.random.default_rng(7)
STEPS, LR, EPSILON = 100, 0.05, 1e-7
SHAPES = [(3, 2), (2,), (), (4,)]
draw = lambda: [np.asarray(rng.standard_normal(shape)) for shape in SHAPES]
W, M, WEIGHTS = draw(), draw(), [draw() for _ in range(3)]
V = [np.asarray(rng.uniform(0.5, 1.5, shape)) for shape in SHAPES]
GRADIENTS = [draw() for _ in range(STEPS)]
ZEROS = [np.zeros(shape) for shape in SHAPES]
# float32: a hundred roundings of values of order one; float64: the same with room to spare
TOLERANCE = {"float32": {"rtol": 1e-5, "atol": 1e-5}, "float64": {"rtol": 1e-10, "atol": 1e-11}}


# Nests, taken apart and put together by hand.


def nest(a, b, c, d):
    return {"layers": [{"w": a, "b": b}, None], "rest": (c, [d])}


def parts(n):
    assert n["layers"][1] is None
    assert type(n["rest"]) is tuple
    return [n["layers"][0]["w"], n["layers"][0]["b"], n["rest"][0], n["rest"][1][0]]


def arrays(xp, leaves, dtype="float64"):
    return nest(*(xp.asarray(x, dtype=xp.dtype(dtype)) for x in leaves))


def assert_close(got, expected, dtype="float64"):
    for x, y in zip(parts(got), expected, strict=True):
        assert tuple(x.shape) == np.shape(y)
        np.testing.assert_allclose(numpy_of(x), y, **TOLERANCE[dtype])


# The papers' formulas for one float64 array, element by element.


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


# Our functions in one form: (w, g, lr, m, v, step) -> a tuple of nests.


def ours_descent(w, g, lr, m, v, t, stop_gradients=True):
    return (gradient_descent_update(w, g, lr, stop_gradients=stop_gradients),)


def ours_optimizer(w, g, lr, m, v, t, stop_gradients=True):
    return (optimizer_update(w, g, lr, stop_gradients=stop_gradients),)


def ours_step(w, g, lr, m, v, t, stop_gradients=False):
    return adam_step(g, m, v, t, epsilon=EPSILON)


def ours_adam(w, g, lr, m, v, t, **options):
    return adam_update(w, g, lr, m, v, t, epsilon=EPSILON, **options)


def ours_lars(w, g, lr, m, v, t, **options):
    return (lars_update(w, g, lr, **options),)


def ours_lamb(w, g, lr, m, v, t, **options):
    return lamb_update(w, g, lr, m, v, t, epsilon=EPSILON, **options)


# Trajectories of a hundred steps, by other libraries and by the papers.


def by_torch(make):
    """The float64 parameters after a hundred steps of a torch optimizer."""
    params = [torch.tensor(w, dtype=torch.float64, requires_grad=True) for w in W]
    optimizer = make(params)
    for gradient in GRADIENTS:
        for p, g in zip(params, gradient):
            p.grad = torch.tensor(g, dtype=torch.float64)
        optimizer.step()
    return [p.detach().numpy() for p in params]


def by_optax(transform):
    """The float64 parameters after a hundred steps of an optax transformation."""
    with jax.enable_x64(True):
        params = [jnp.asarray(w) for w in W]
        state, update = transform.init(params), jax.jit(transform.update)
        for gradient in GRADIENTS:
            updates, state = update([jnp.asarray(g) for g in gradient], state, params)
            params = optax.apply_updates(params, updates)
        return [np.asarray(p) for p in params]


def by_paper(rule):
    state = list(zip(W, ZEROS, ZEROS))
    for t, gradient in enumerate(GRADIENTS, 1):
        for i, (w, m, v) in enumerate(state):
            w, *moments = rule(w, gradient[i], LR, m, v, t)
            state[i] = (w, *(moments or (m, v)))
    return [w for w, _, _ in state]


def by_us(update, xp, dtype, lr, step=int):
    w, m, v = (arrays(xp, x, dtype) for x in (W, ZEROS, ZEROS))
    for t, gradient in enumerate(GRADIENTS, 1):
        w, *moments = update(w, arrays(xp, gradient, dtype), lr, m, v, step(t))
        m, v = moments or (m, v)
    return w


# Compiled and differentiated.


def compiled(backend, func):
    """The function under the framework's own compiler; NumPy has none."""
    if backend == "jax":
        return jax.jit(func)
    if backend == "tensorflow":
        return tf.function(func, jit_compile=True, autograph=False)
    return torch.compile(func, fullgraph=True, backend="aot_eager")


def with_gradients(xp, update):
    """The update, and the gradients of a weighted sum of its results, by all its arrays."""

    columns = [[xp.asarray(c) for c in column] for column in WEIGHTS]

    def loss(w, g, lr, m, v, t, options):
        results = update(w, g, lr, m, v, t, **options)
        return sum(
            xp.sum(c * x)
            for result, weights in zip(results, columns)
            for c, x in zip(weights, parts(result))
        )

    slopes = iso.grad(loss, argnums=(0, 1, 2, 3, 4))

    def both(w, g, lr, m, v, t):
        flowing = slopes(w, g, lr, m, v, t, {"stop_gradients": False})
        stopped = slopes(w, g, lr, m, v, t, {"stop_gradients": True})
        return update(w, g, lr, m, v, t), flowing, stopped

    return both


def flat(leaves):
    return np.concatenate([np.reshape(numpy_of(x), -1) for x in leaves])


def slopes_of(paper, w, g, lr, m, v, t):
    """The gradient of that weighted sum by (w, g, lr, m, v), by differences of the paper's rule."""
    start = np.concatenate([flat(w), flat(g), [lr], flat(m), flat(v)])

    def loss(x):
        given, position = [], 0
        for shapes in (SHAPES, SHAPES, [()], SHAPES, SHAPES):
            given.append([])
            for shape in shapes:
                size = math.prod(shape)
                given[-1].append(x[position : position + size].reshape(shape))
                position += size
        w, g, (rate,), m, v = given
        results = [paper(*leaf, t) for leaf in zip(w, g, [rate] * len(SHAPES), m, v)]
        return sum(
            np.sum(c * x)
            for weights, column in zip(WEIGHTS, zip(*results))
            for c, x in zip(weights, column)
        )

    return central_gradient(loss, start)


def check(backend, xp, update, paper, oracles, stops=True):
    """An update against its paper and other libraries' trajectories, eager and compiled, with the
    gradients that flow through it, and the zeros where they are stopped.
    """
    expected = {"paper": by_paper(paper), **oracles}
    for dtype in ("float32", "float64"):
        got = by_us(update, xp, dtype, LR)
        assert {kind_of(x) for x in parts(got)} == {backend}
        assert all(x.dtype == xp.dtype(dtype) for x in parts(got))
        for values in expected.values():
            assert_close(got, values, dtype)

    w, g, m, v = (arrays(xp, x) for x in (W, GRADIENTS[0], M, V))
    lr, count = xp.asarray(LR, dtype=xp.float64), lambda t: xp.asarray(t)
    slopes = slopes_of(paper, W, GRADIENTS[0], LR, M, V, 3)
    whole = with_gradients(xp, update)
    ways = [whole] if backend == "numpy" else [whole, compiled(backend, whole)]
    for run in ways:
        _, flowing, stopped = run(w, g, lr, m, v, count(3))
        together = lambda nests: np.concatenate(
            [flat(parts(x) if isinstance(x, dict) else [x]) for x in nests]
        )
        # central differences with step 1e-6 are good to about 1e-9
        np.testing.assert_allclose(together(flowing), slopes, rtol=1e-6, atol=1e-8)
        assert np.abs(slopes).max() > 0.1
        if stops:
            assert not together(stopped).any()
    if backend != "numpy":
        got = by_us(lambda *args: run(*args)[0], xp, "float64", lr, count)
        assert_close(got, expected["paper"])


# The rows.


def test_optimizer_update(backend, xp):
    sgd = by_torch(lambda params: torch.optim.SGD(params, lr=LR))
    check(backend, xp, ours_optimizer, descent, {"torch": sgd, "optax": by_optax(optax.sgd(LR))})


def test_gradient_descent_update(backend, xp):
    sgd = by_torch(lambda params: torch.optim.SGD(params, lr=LR))
    check(backend, xp, ours_descent, descent, {"torch": sgd, "optax": by_optax(optax.sgd(LR))})


def test_adam_step(backend, xp):
    def walk(w, g, lr, m, v, t, stop_gradients=True):
        u, m, v = adam_step(g, m, v, t, epsilon=EPSILON)
        return optimizer_update(w, u, lr, stop_gradients=False), m, v

    torchs = by_torch(lambda params: torch.optim.Adam(params, lr=LR, eps=EPSILON))
    optaxs = by_optax(optax.adam(LR, eps=EPSILON))
    check(backend, xp, walk, adam_paper, {"torch": torchs, "optax": optaxs}, stops=False)
    g, m, v = (arrays(xp, x) for x in (GRADIENTS[0], M, V))
    for got, column in zip(
        adam_step(g, m, v, 5, beta1=0.7, beta2=0.9, epsilon=EPSILON),
        zip(*(adam(*leaf, 5, beta1=0.7, beta2=0.9) for leaf in zip(GRADIENTS[0], M, V))),
        strict=True,
    ):
        assert_close(got, column)


def test_adam_update(backend, xp):
    torchs = by_torch(lambda params: torch.optim.Adam(params, lr=LR, eps=EPSILON))
    optaxs = by_optax(optax.adam(LR, eps=EPSILON))
    check(backend, xp, ours_adam, adam_paper, {"torch": torchs, "optax": optaxs})
    betas = {"beta1": 0.7, "beta2": 0.9}
    got = by_us(partial(ours_adam, **betas), xp, "float64", LR)
    wanted = by_torch(lambda p: torch.optim.Adam(p, lr=LR, betas=(0.7, 0.9), eps=EPSILON))
    assert_close(got, wanted)
    assert_close(got, by_paper(partial(adam_paper, **betas)))


def test_lars_update(backend, xp):
    # optax's λ is another rule's: its rate is ‖w‖ / ‖g + λw‖
    same = optax.lars(LR, weight_decay=0.0, trust_coefficient=1.0, eps=0.0, momentum=0.0)
    assert_close(by_us(ours_lars, xp, "float64", LR), by_optax(same))
    decayed = partial(ours_lars, decay_lambda=0.3)
    check(backend, xp, decayed, partial(lars_paper, decay=0.3), {})


def test_lamb_update(backend, xp):
    uncapped = partial(ours_lamb, max_trust_ratio=math.inf)
    assert_close(by_us(uncapped, xp, "float64", LR), by_optax(optax.lamb(LR, eps=EPSILON)))
    same = optax.lamb(LR, eps=EPSILON, weight_decay=0.3)
    got = by_us(partial(uncapped, decay_lambda=0.3), xp, "float64", LR)
    assert_close(got, by_optax(same))
    # ratios on both sides of the cap, which is reached
    capped = partial(ours_lamb, decay_lambda=0.3, max_trust_ratio=2.0)
    paper = partial(lamb_paper, decay=0.3, cap=2.0)
    once = [paper(w, g, LR, m, v, 3)[0] for w, g, m, v in zip(W, GRADIENTS[0], M, V)]
    free = [lamb_paper(w, g, LR, m, v, 3, 0.3)[0] for w, g, m, v in zip(W, GRADIENTS[0], M, V)]
    assert 0 < sum(np.array_equal(x, y) for x, y in zip(once, free)) < len(SHAPES)
    check(backend, xp, capped, paper, {})


# Where the formulas have corners.


def gradients_at(xp, update, w, g):
    """The gradients by w and by g of the sum of the new parameters."""
    loss = lambda w, g: xp.sum(update(w, g, stop_gradients=False))
    return [numpy_of(x) for x in iso.grad(loss, argnums=(0, 1))(xp.asarray(w), xp.asarray(g))]


def test_lars_rate_is_one_where_a_norm_is_zero(backend, xp):
    update = lambda w, g, **options: lars_update(w, g, 0.1, decay_lambda=0.5, **options)
    zero, some = np.zeros(2), np.array([3.0, 4.0])
    for w, g, expected in [
        (zero, some, [-0.3, -0.4]),
        (some, zero, [3.0 - 0.15, 4.0 - 0.2]),
        (zero, zero, [0.0, 0.0]),
    ]:
        got = numpy_of(update(xp.asarray(w), xp.asarray(g)))
        np.testing.assert_allclose(got, expected, rtol=1e-12)
        dw, dg = gradients_at(xp, update, w, g)
        np.testing.assert_allclose(dw, 1 - 0.1 * 0.5, rtol=1e-12)  # the rate is constant there
        np.testing.assert_allclose(dg, -0.1, rtol=1e-12)


def test_lamb_ratio_is_one_where_a_norm_is_zero(backend, xp):
    zero, some = np.zeros(2), np.array([3.0, 4.0])
    m, v = xp.asarray(zero), xp.asarray(zero)

    def update(w, g, **options):
        return lamb_update(w, g, 0.1, m, v, 1, epsilon=1.0, max_trust_ratio=0.5, **options)[0]

    adams = some / (some + 1)  # the first step of Adam with ε = 1
    got = numpy_of(update(xp.asarray(zero), xp.asarray(some)))
    np.testing.assert_allclose(got, -0.1 * adams, rtol=1e-12)
    got = numpy_of(update(xp.asarray(some), xp.asarray(zero)))
    np.testing.assert_array_equal(got, some)
    for w, g in [(zero, some), (some, zero), (zero, zero)]:
        dw, dg = gradients_at(xp, update, w, g)
        np.testing.assert_allclose(dw, 1.0, rtol=1e-12)
        np.testing.assert_allclose(dg, -0.1 / (np.abs(g) + 1) ** 2, rtol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_adam_has_finite_gradients_at_zero(backend, xp, dtype):
    zero = xp.zeros(2, dtype=xp.dtype(dtype))
    got = iso.grad(lambda g: xp.sum(adam_step(g, zero, zero, 1)[0]))(zero)
    np.testing.assert_allclose(numpy_of(got), 1e7, rtol=1e-5)  # m̂ / ε with m̂ = g
    new = lambda g: xp.sum(adam_update(zero, g, 0.5, zero, zero, 1, stop_gradients=False)[0])
    np.testing.assert_allclose(numpy_of(iso.grad(new)(zero)), -0.5e7, rtol=1e-5)


def test_the_guard_at_zero_changes_no_value(backend, xp):
    # second moments around the guard, (ε · 2⁻²⁶)² ≈ 2e-30 in float32
    v = xp.asarray(10.0 ** np.arange(-40, 3), dtype=xp.float32)
    m, g = xp.ones_like(v), xp.zeros_like(v)
    guarded = adam_update(g, g, 1.0, m, v, 10**6, stop_gradients=False)[0]
    plain = adam_update(g, g, 1.0, m, v, 10**6)[0]
    np.testing.assert_array_equal(numpy_of(guarded), numpy_of(plain))
    assert np.isfinite(numpy_of(plain)).all()


def test_second_order_gradients_through_the_updates(backend, xp):
    w0, g0 = W[0], GRADIENTS[0][0]
    m, v, c = xp.asarray(M[0]), xp.asarray(V[0]), xp.asarray(WEIGHTS[0][0])
    w = xp.asarray(w0)
    for update in (
        lambda g: adam_update(w, g, 1.0, m, v, 2, beta2=0.5, stop_gradients=False)[0],
        lambda g: lars_update(w, g, 1.0, decay_lambda=0.1, stop_gradients=False),
        lambda g: lamb_update(w, g, 1.0, m, v, 2, beta2=0.5, stop_gradients=False)[0],
    ):
        slope = iso.grad(lambda g, update=update: xp.sum(c * update(g)))
        along = lambda g, slope=slope: xp.sum(xp.asarray(WEIGHTS[1][0]) * slope(g))
        expected = central_gradient(lambda g, along=along: along(xp.asarray(g)), g0)
        got = numpy_of(iso.grad(along)(xp.asarray(g0)))
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-8)
        assert np.abs(expected).max() > 0.01


# Numbers, dtypes and kinds of arrays.


def test_a_learning_rate_may_be_a_number_an_array_or_a_nest(backend, xp):
    w, g = arrays(xp, W), arrays(xp, GRADIENTS[0])
    step = lambda rates: [x - r * y for x, y, r in zip(W, GRADIENTS[0], rates)]
    array = partial(xp.asarray, dtype=xp.float64)
    for lr in (0.25, np.float64(0.25), np.float32(0.25), array(0.25)):
        assert_close(optimizer_update(w, g, lr), step([0.25] * 4))
    assert_close(optimizer_update(w, g, 1), step([1] * 4))
    each = nest(0.5, array(0.25), 0, array(V[3]))
    assert_close(optimizer_update(w, g, each), step([0.5, 0.25, 0.0, V[3]]))
    got = optimizer_update(w["layers"][0]["w"], g["layers"][0]["w"], array(V[0]))
    np.testing.assert_allclose(numpy_of(got), W[0] - V[0] * GRADIENTS[0][0], rtol=1e-12)
    assert_close(lars_update(w, g, each), [
        lars_paper(x, y, r, None, None, 1)[0]
        for x, y, r in zip(W, GRADIENTS[0], [0.5, 0.25, 0.0])
    ] + [W[3] - V[3] * length(W[3]) / length(GRADIENTS[0][3]) * GRADIENTS[0][3]])  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("stop", [True, False])
def test_dtype_and_device_are_kept(backend, xp, dtype, stop):
    w, g, m, v = (arrays(xp, x, dtype) for x in (W, GRADIENTS[0], M, V))
    # numbers of another dtype than the arrays'
    lr, t = xp.asarray(LR, dtype=xp.float64), xp.asarray(3, dtype=xp.int32)
    for update, paper in [
        (ours_descent, descent),
        (ours_adam, adam_paper),
        (partial(ours_lars, decay_lambda=0.1), partial(lars_paper, decay=0.1)),
        (partial(ours_lamb, decay_lambda=0.1), partial(lamb_paper, decay=0.1)),
    ]:
        for numbers in ((LR, 3), (lr, t)):
            results = update(w, g, numbers[0], m, v, numbers[1], stop_gradients=stop)
            rows = zip(W, GRADIENTS[0], [LR] * 4, M, V, [3] * 4)
            for result, column in zip(results, zip(*(paper(*row) for row in rows)), strict=True):
                for x, y, like in zip(parts(result), column, parts(w)):
                    assert kind_of(x) == backend
                    assert x.dtype == xp.dtype(dtype)
                    assert xp.device_of(x) == xp.device_of(like)
                    # a dozen roundings of values of order one
                    eps = 16 * float(np.finfo(dtype).eps)
                    np.testing.assert_allclose(numpy_of(x), y, rtol=eps, atol=eps)


def test_leaves_of_several_dtypes_stand_in_one_nest(backend, xp):
    kinds = ["float16", "float32", "float64"]
    make = lambda x: [xp.asarray(x, dtype=xp.dtype(kind)) for kind in kinds]
    lr, t = xp.asarray(0.5), xp.asarray(1)
    for new in lamb_update(make([2.0]), make([1.0]), lr, make([0.0]), make([0.0]), t):
        assert [x.dtype for x in new] == [xp.dtype(kind) for kind in kinds]
    # ‖w‖ = 2, u = 1 to within ε: w − 0.5 · 2 · 1
    got = lamb_update(make([2.0]), make([1.0]), lr, make([0.0]), make([0.0]), t)[0]
    np.testing.assert_allclose([float(x[0]) for x in got], 1.0, atol=2e-3)


def test_norms_of_half_precision_do_not_overflow(backend, xp):
    w = xp.full((5000,), 30.0, dtype=xp.dtype("float16"))  # the squares sum to 4.5e6
    g = xp.full((5000,), 2.0, dtype=xp.dtype("float16"))
    np.testing.assert_allclose(numpy_of(lars_update(w, g, 0.5)), 15.0, rtol=1e-3)
    new, _, _ = lamb_update(w, g, 0.5, w * 0, w * 0, 1, max_trust_ratio=100.0)
    np.testing.assert_allclose(numpy_of(new), 15.0, rtol=1e-3)


def test_the_first_correction_is_exact_in_float32(backend, xp):
    # 1 − 0.999¹ in float32 is wrong by 5e-5 when it is computed as a difference
    g, zero = xp.asarray([2.0], dtype=xp.float32), xp.zeros(1, dtype=xp.float32)
    got = adam_step(g, zero, zero, xp.asarray(1), epsilon=0.5)[0]
    np.testing.assert_allclose(numpy_of(got), 2 / 2.5, rtol=3e-7)
    plain = adam_step(g, zero, zero, xp.asarray(1), beta1=0.0, beta2=0.0, epsilon=0.5)[0]
    np.testing.assert_allclose(numpy_of(plain), 2 / 2.5, rtol=3e-7)


def test_variables_parameters_and_sparse_gradients_are_arrays(backend, xp):
    x, y = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[0.0, 0.0], [1.0, 1.0]])
    w, g = xp.asarray(x), xp.asarray(y)
    if backend == "tensorflow":
        w = tf.Variable(x)
        g = tf.IndexedSlices(tf.constant(y[1:]), tf.constant([1]), tf.constant([2, 2]))
    elif backend == "torch":
        w = torch.nn.Parameter(torch.tensor(x))
    before = numpy_of(w).copy()
    new = gradient_descent_update([w], [g], 0.5)[0]
    np.testing.assert_array_equal(numpy_of(new), x - 0.5 * y)
    np.testing.assert_array_equal(numpy_of(w), before)
    assert type(new) is type(xp.asarray(x))
    assert not getattr(new, "requires_grad", False)
    new, _, _ = lamb_update([w], [g], 0.5, [w], [w], 1)
    paper = lamb_paper(x, y, 0.5, x, x, 1)[0]
    np.testing.assert_allclose(numpy_of(new[0]), paper, rtol=1e-10)


def test_sizes_may_be_unknown_while_compiling(backend, xp):
    def update(w, g, lr, step):
        return lamb_update([w], [g], lr, [g], [g], step)[0][0]

    if backend == "tensorflow":
        rows = tf.TensorSpec([None, 2], tf.float64)
        number = tf.TensorSpec([], tf.float64)
        full = tf.TensorSpec([3, 2], tf.float64)
        update = tf.function(update, input_signature=[full, rows, number, number])
    g = np.abs(GRADIENTS[0][0])
    got = update(*map(xp.asarray, (W[0], g)), xp.asarray(LR, dtype=xp.float64),
                 xp.asarray(2.0, dtype=xp.float64))  # fmt: skip
    np.testing.assert_allclose(numpy_of(got), lamb_paper(W[0], g, LR, g, g, 2)[0], rtol=1e-10)


def test_complex_parameters_descend(backend, xp):
    w, g = xp.asarray([1.0 + 2.0j]), xp.asarray([2.0 - 2.0j])
    for lr in (0.5, xp.asarray(0.5)):
        np.testing.assert_allclose(numpy_of(optimizer_update(w, g, lr)), [3.0j], atol=1e-12)
    for update in (ours_adam, ours_lars, ours_lamb):
        with pytest.raises(TypeError, match="needed real floating-point arrays, got .*complex"):
            update(w, g, 0.1, g, g, 1)


def test_a_nest_without_arrays_stays(backend, xp):
    assert optimizer_update({"a": [None]}, {"a": [None]}, 0.1) == {"a": [None]}
    assert adam_update([], [], xp.asarray(0.1), [], [], xp.asarray(1)) == ([], [], [])


# Bad input: each error names the function, what was needed and what came.


def test_nests_that_differ_are_told_apart_by_key_chain(backend, xp):
    x = xp.ones(2)
    w = {"layers": [{"w": x, "b": x}]}
    for update, name, grad in [
        (ours_optimizer, "optimizer_update", "effective_grad"),
        (ours_descent, "gradient_descent_update", "dcdw"),
        (ours_adam, "adam_update", "dcdw"),
        (ours_lars, "lars_update", "dcdw"),
        (ours_lamb, "lamb_update", "dcdw"),
    ]:
        for lacking in ({"w": x}, {"w": x, "b": None}):
            with pytest.raises(ValueError, match=f"^{name}: {grad} has no entry layers/0/b$"):
                update(w, {"layers": [lacking]}, 0.1, w, w, 1)
        for more in ([{"w": x, "b": x, "c": x}], [{"w": x, "b": x}, x]):
            place = "layers/0/c" if len(more) == 1 else "layers/1"
            message = f"^{name}: {grad} has an entry {place}, which w does not have$"
            with pytest.raises(ValueError, match=message):
                update(w, {"layers": more}, 0.1, w, w, 1)
        with pytest.raises(ValueError, match=f"^{name}: lr has no entry layers/0/w$"):
            update(w, w, {"layers": [{"b": 0.1}]}, w, w, 1)
    with pytest.raises(ValueError, match="mw has no entry layers/0/b, and has an entry layers/0/c"):
        adam_step(w, {"layers": [{"w": x, "c": x}]}, w, 1)
    with pytest.raises(ValueError, match="vw_tm1 has no entry layers/0/b, and.*layers/0/b/deep"):
        adam_update(w, w, 0.1, w, {"layers": [{"w": x, "b": {"deep": x}}]}, 1)
    with pytest.raises(ValueError, match=r"^lars_update: needed dcdw like w, .*\(.*\[.*"):
        lars_update((x, x), [x, x], 0.1)
    with pytest.raises(ValueError, match="^optimizer_update: needed effective_grad like w"):
        optimizer_update(x, [x], 0.1)


def test_shapes_that_differ_are_named(backend, xp):
    w, g = {"a": [xp.ones((2, 3))]}, {"a": [xp.ones((3,))]}
    message = r"^adam_update: needed shape \(2, 3\) like w in dcdw at a/0, got shape \(3,\)$"
    with pytest.raises(ValueError, match=message):
        adam_update(w, g, 0.1, w, w, 1)
    with pytest.raises(ValueError, match=r"vw at a/0, got shape \(3,\)"):
        adam_step(w, w, g, 1)
    with pytest.raises(ValueError, match=r"needed shape \(2, 3\) like w in dcdw, got shape \(3,\)"):
        lars_update(w["a"][0], g["a"][0], 0.1)
    with pytest.raises(
        ValueError, match=r"number, a 0-d array or shape \(2, 3\) as lr at a/0, got shape \(3,\)"
    ):
        lamb_update(w, w, xp.ones(3), w, w, 1)


def test_bad_numbers_raise(backend, xp):
    x = xp.ones(2)
    step = lambda t, **options: adam_step(x, x, x, t, **options)
    for t in (0, -3, np.int64(0)):
        message = f"^adam_step: needed a step of 1 or more, got {int(t)}$"
        with pytest.raises(ValueError, match=message):
            step(t)
    for t, got in ((1.0, "float"), ("1", "str"), (None, "NoneType"), (x, r"shape \(2,\)")):
        message = f"^adam_step: needed an int or a 0-d array as step, got {got}$"
        with pytest.raises(TypeError, match=message):
            step(t)
    with pytest.raises(ValueError, match=r"^lars_update: needed lr to be 0 or more, got -0\.1$"):
        lars_update(x, x, -0.1)
    with pytest.raises(ValueError, match=r"needed lr at a to be 0 or more, got -1\.0$"):
        optimizer_update({"a": x}, {"a": x}, {"a": -1})
    with pytest.raises(ValueError, match="needed lr to be 0 or more, got nan"):
        optimizer_update(x, x, math.nan)
    with pytest.raises(TypeError, match="^optimizer_update: needed numbers or arrays as lr.*str"):
        optimizer_update({"a": x}, {"a": x}, {"a": "fast"})
    with pytest.raises(ValueError, match=r"needed beta1 to be 0 or more and below 1, got 1\.0$"):
        step(1, beta1=1.0)
    with pytest.raises(ValueError, match=r"needed epsilon to be 0 or more, got -1\.0$"):
        step(1, epsilon=-1.0)
    with pytest.raises(TypeError, match="^lars_update: needed a number as decay_lambda, got list$"):
        lars_update(x, x, 0.1, decay_lambda=[0.1])
    with pytest.raises(ValueError, match="^lamb_update: needed max_trust_ratio to be 0 or more"):
        lamb_update(x, x, 0.1, x, x, 1, max_trust_ratio=-1.0)


def test_leaves_that_are_no_floating_arrays_raise(backend, xp):
    x, n = xp.ones(2, dtype=xp.float32), xp.ones(2, dtype=xp.int32)
    with pytest.raises(TypeError, match="^optimizer_update: needed arrays, got float in w at a$"):
        optimizer_update({"a": 1.0}, {"a": x}, 0.1)
    with pytest.raises(TypeError, match="^adam_step: needed arrays, got str in vw$"):
        adam_step(x, x, "v", 1)
    with pytest.raises(TypeError, match="needed floating-point arrays, got .*int32.* in w at 1$"):
        lars_update([x, n], [x, n], 0.1)
    with pytest.raises(TypeError, match="needed .*float32.* like w in dcdw at 0, got .*float64"):
        gradient_descent_update([x], [xp.astype(x, xp.float64)], 0.1)


def test_arrays_of_two_frameworks_raise(backend, xp):
    other = "torch" if backend != "torch" else "numpy"
    with iso.use_backend(other):
        foreign = iso.ones(2)
        number, count = iso.asarray(0.1), iso.asarray(1)
    x = xp.ones(2)
    both = f"(?=.*{backend})(?=.*{other})"
    for bad in (
        lambda: optimizer_update([x], [foreign], 0.1),
        lambda: optimizer_update([x], [x], number),
        lambda: optimizer_update([x], [x], [number]),
        lambda: adam_step(x, x, foreign, 1),
        lambda: adam_step(x, x, x, count),
    ):
        with pytest.raises(TypeError, match=f"^(optimizer_update|adam_step): {both}"):
            bad()
