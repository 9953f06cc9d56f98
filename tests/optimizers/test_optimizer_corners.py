"""Corner cases of the optimizers' formulas, and the kinds of numbers and arrays they accept."""

from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest
from frameworks import jax, tf, torch

import isomorph as iso
from isomorph import (
    adam_step,
    adam_update,
    gradient_descent_update,
    lamb_update,
    lars_update,
    optimizer_update,
)
from oracles import central_gradient, kind_of, numpy_of, verbs_of

from .optimizer_oracles import (
    GRADIENTS,
    LR,
    WEIGHTS,
    M,
    V,
    W,
    adam_paper,
    arrays,
    assert_close,
    descent,
    lamb_paper,
    lars_paper,
    length,
    nest,
    ours_adam,
    ours_descent,
    ours_lamb,
    ours_lars,
    parts,
)


def gradients_at(xp, update, w, g):
    """The gradients of the sum of the new parameters, for w and for g."""
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

    adams = some / (some + 1)  # Adam's first step with ε = 1
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
    zero = xp.zeros(2, dtype=verbs_of(xp).dtype(dtype))
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
    # numbers whose dtype differs from the arrays'
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
                    assert x.dtype == verbs_of(xp).dtype(dtype)
                    assert verbs_of(xp).device_of(x) == verbs_of(xp).device_of(like)
                    # a dozen roundings of values of order one
                    eps = 16 * float(np.finfo(dtype).eps)
                    np.testing.assert_allclose(numpy_of(x), y, rtol=eps, atol=eps)


def test_leaves_of_several_dtypes_stand_in_one_nest(backend, xp):
    kinds = ["float16", "float32", "float64"]
    make = lambda x: [xp.asarray(x, dtype=verbs_of(xp).dtype(kind)) for kind in kinds]
    lr, t = xp.asarray(0.5), xp.asarray(1)
    for new in lamb_update(make([2.0]), make([1.0]), lr, make([0.0]), make([0.0]), t):
        assert [x.dtype for x in new] == [verbs_of(xp).dtype(kind) for kind in kinds]
    # ‖w‖ = 2, u = 1 to within ε: w − 0.5 · 2 · 1
    got = lamb_update(make([2.0]), make([1.0]), lr, make([0.0]), make([0.0]), t)[0]
    np.testing.assert_allclose([float(x[0]) for x in got], 1.0, atol=2e-3)


def test_norms_of_half_precision_do_not_overflow(backend, xp):
    w = xp.full((5000,), 30.0, dtype=verbs_of(xp).dtype("float16"))  # the squares sum to 4.5e6
    g = xp.full((5000,), 2.0, dtype=verbs_of(xp).dtype("float16"))
    # one unit in the last place of float16 is 1e-3, relatively
    np.testing.assert_allclose(numpy_of(lars_update(w, g, 0.5)), 15.0, rtol=1e-3)
    new, _, _ = lamb_update(w, g, 0.5, w * 0, w * 0, 1, max_trust_ratio=100.0)
    np.testing.assert_allclose(numpy_of(new), 15.0, rtol=1e-3)


def test_the_first_correction_is_exact_in_float32(backend, xp):
    # computed as a difference, 1 − 0.999¹ in float32 is wrong by 5e-5
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


def test_leaves_under_differentiation_may_stand_beside_others(backend, xp):
    w, g, m, v = ([xp.asarray(x) for x in column] for column in (W, GRADIENTS[0], M, V))
    rows = list(zip(W, GRADIENTS[0], [LR] * 4, M, V, [2] * 4))
    for update, paper in ((ours_lars, lars_paper), (ours_lamb, lamb_paper)):
        first = lambda x, update=update: update([x, *w[1:]], g, LR, m, v, 2)[0][0]
        slope = iso.grad(lambda x, first=first: xp.sum(first(x) * x))(w[0])
        # no gradient flows through the update, so the slope is the update itself
        np.testing.assert_allclose(numpy_of(slope), paper(*rows[0])[0], rtol=1e-10)
        rest = update([w[0] * 1, *w[1:]], g, LR, m, v, 2)[0][1:]
        for x, row in zip(rest, rows[1:], strict=True):
            np.testing.assert_allclose(numpy_of(x), paper(*row)[0], rtol=1e-10)


def test_it_does_not_matter_where_new_arrays_are_made(backend, xp):
    elsewhere = {
        "numpy": nullcontext,
        "jax": lambda: jax.default_device(jax.devices()[-1]),
        "tensorflow": lambda: tf.device("CPU:0"),
        "torch": lambda: torch.device("meta"),
    }[backend]
    w, g, m, v = (arrays(xp, x) for x in (W, GRADIENTS[0], M, V))
    for update, paper in (
        (ours_descent, descent),
        (ours_adam, adam_paper),
        (ours_lamb, lamb_paper),
    ):
        with elsewhere():
            got = update(w, g, LR, m, v, 3)[0]
        rows = zip(W, GRADIENTS[0], [LR] * 4, M, V, [3] * 4)
        assert_close(got, [paper(*row)[0] for row in rows])
