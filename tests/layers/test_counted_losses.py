"""Losses as a total and a count: every loss with reductions has this one, eager, compiled and under
the frameworks' own transforms. Also: means of narrow floats are summed in a wider dtype.
"""

import inspect

import numpy as np
import pytest
from frameworks import functional as F
from frameworks import torch

import isomorph as iso
from isomorph.core.dispatch import load
from oracles import compiled, numpy_of

RNG = np.random.default_rng(11)
P, Y = RNG.uniform(-2, 2, (3, 4)), RNG.uniform(0.1, 0.9, (3, 4))
LOGITS = RNG.normal(size=(3, 5, 4)) * 3
HARD = np.array([[0, 3, 1, 1, 2], [2, 2, 0, 1, 3], [3, 0, 0, 2, 1]])
SOFT = RNG.dirichlet(np.ones(4), size=(3, 5))
t = torch.tensor
turned = lambda x: t(x).movedim(-1, 1)

# our arguments and keywords, the sum by torch, and the count
CASES = {
    "mse": (iso.mse, (P, Y), {}, lambda: F.mse_loss(t(P), t(Y), reduction="sum"), 12),
    "mae": (iso.mae, (P, Y), {}, lambda: F.l1_loss(t(P), t(Y), reduction="sum"), 12),
    "huber": (iso.huber, (P, Y), {"delta": 0.7},
              lambda: F.huber_loss(t(P), t(Y), delta=0.7, reduction="sum"), 12),
    "binary": (iso.binary_cross_entropy, (P, Y), {},
               lambda: F.binary_cross_entropy_with_logits(t(P), t(Y), reduction="sum"), 12),
    "kl": (iso.kl_divergence, (P, Y), {}, lambda: F.kl_div(t(P), t(Y), reduction="sum"), 12),
    "hard": (iso.cross_entropy, (LOGITS, HARD), {},
             lambda: F.cross_entropy(turned(LOGITS), t(HARD), reduction="sum"), 15),
    "smooth": (iso.cross_entropy, (LOGITS, HARD), {"label_smoothing": 0.1}, lambda: F.cross_entropy(
        turned(LOGITS), t(HARD), label_smoothing=0.1, reduction="sum"), 15),
    "soft": (iso.cross_entropy, (LOGITS, SOFT), {},
             lambda: F.cross_entropy(turned(LOGITS), turned(SOFT), reduction="sum"), 15),
    "first": (iso.cross_entropy, (LOGITS.transpose(2, 0, 1), HARD), {"axis": 0},
              lambda: F.cross_entropy(turned(LOGITS), t(HARD), reduction="sum"), 15),
    "one row": (iso.cross_entropy, (LOGITS[0, 0], HARD[0, 0]), {},
                lambda: F.cross_entropy(t(LOGITS[0, 0]), t(HARD[0, 0]), reduction="sum"), 1),
    "ignored": (iso.cross_entropy, (LOGITS, HARD), {"ignore_index": 1}, lambda: F.cross_entropy(
        turned(LOGITS), t(HARD), ignore_index=1, reduction="sum"), 11),
    "smooth and ignored": (
        iso.cross_entropy, (LOGITS, HARD), {"ignore_index": 0, "label_smoothing": 0.2},
        lambda: F.cross_entropy(turned(LOGITS), t(HARD), ignore_index=0, label_smoothing=0.2,
                                reduction="sum"), 11),
    "all ignored": (iso.cross_entropy, (LOGITS, 0 * HARD), {"ignore_index": 0}, lambda: t(0.0), 0),
}  # fmt: skip


BACKENDS = ("numpy", "jax", "tensorflow", "torch")
NARROW = [
    (b, d) for b in BACKENDS for d in ("float16", "bfloat16") if (b, d) != ("numpy", "bfloat16")
]


def test_every_loss_is_here():
    named = [getattr(iso, name) for name in iso.__all__]
    takes = lambda f: inspect.isfunction(f) and "reduction" in inspect.signature(f).parameters
    assert {f for f in named if takes(f)} == {case[0] for case in CASES.values()}


def counted(loss, args, kw):
    def func(*arrays):
        return loss(*arrays, **kw, reduction="counted")

    return func


@pytest.mark.parametrize("case", CASES)
def test_total_and_count_are_torchs(backend, xp, case):
    loss, args, kw, total, count = CASES[case]
    given = [xp.asarray(np.asarray(x)) for x in args]
    func = counted(loss, args, kw)
    torch._dynamo.reset()  # torch compiles a function of the same name at most eight times
    runs = [func, compiled(backend, func)]
    if backend != "torch" and case in ("mse", "ignored"):  # the training tests use Inductor
        runs.append(iso.jit(func))
    for run in runs:
        found = run(*given)
        assert type(found) is iso.Mean
        assert float(found.total) == pytest.approx(float(total()), rel=1e-12)
        assert float(found.count) == count
        assert float(found.value) == pytest.approx(float(total()) / (count or np.nan), nan_ok=True)


@pytest.mark.parametrize("case", CASES)
def test_the_gradient_of_its_value_is_that_of_the_mean(backend, xp, case):
    """The gradient is 0 where nothing counts."""
    loss, args, kw, _, count = CASES[case]
    given = [xp.asarray(np.asarray(x)) for x in args]
    found = iso.grad(lambda *a: counted(loss, args, kw)(*a).value)(*given)
    if not count:
        np.testing.assert_array_equal(numpy_of(found), 0)
        return
    wanted = iso.grad(lambda *a: loss(*a, **kw))(*given)
    np.testing.assert_allclose(numpy_of(found), numpy_of(wanted), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("ignored", [None, 0])
@pytest.mark.parametrize(("backend", "narrow"), NARROW, indirect=["backend"])
def test_means_of_narrow_numbers_are_summed_wide(backend, xp, narrow, ignored):
    """5000 equal losses of 20.25: their sum overflows float16, and bfloat16 cannot count them."""
    dtype = load(backend).narrow(narrow)
    rows = np.zeros((5001, 2), np.float32) + np.array([20.25, 0], np.float32)
    logits, labels = xp.astype(xp.asarray(rows), dtype), np.ones(5001, int)
    kw = {} if ignored is None else {"ignore_index": ignored}
    labels[0] = 1 if ignored is None else ignored
    for run in (lambda f: f, iso.jit) if backend != "torch" else (lambda f: f,):
        mean = run(lambda x, y: iso.cross_entropy(x, y, **kw))(logits, xp.asarray(labels))
        assert (float(mean), mean.dtype) == (20.25, dtype)
        found = run(lambda x, y: iso.cross_entropy(x, y, **kw, reduction="counted"))(
            logits, xp.asarray(labels)
        )
        assert float(found.count) == (5001 if ignored is None else 5000)
        assert found.total.dtype == xp.float32
        assert float(found.value) == pytest.approx(20.25, rel=2e-7)  # a GPU adds in another order
        root = xp.astype(xp.asarray(rows[:, :1] * 0 + 4.5), dtype)
        square = run(lambda x: iso.mse(x, 0 * x))(root)
        assert (float(square), square.dtype) == (20.25, dtype)


@pytest.mark.parametrize("backend", ["tensorflow"], indirect=True)
def test_a_batch_of_unknown_size_is_counted(backend):
    import tensorflow as tf

    unknown = tf.TensorSpec((None, 3), tf.float64)
    func = tf.function(
        lambda x: iso.mse(x, 0 * x, reduction="counted"), input_signature=[unknown], autograph=False
    )
    for n in (2, 5):
        found = func(tf.ones((n, 3), tf.float64) * 2)
        assert (float(found.total), float(found.count)) == (12.0 * n, 3 * n)
