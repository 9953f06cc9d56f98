"""Activations, norms, losses and embedding: values, first and second derivatives, edge cases."""

import numpy as np
import pytest
from frameworks import functional as F
from frameworks import torch

import isomorph as iso
from oracles import kind_of, name_of, numpy_of

X = np.array([[-30.0, -2.5, -1.0, -0.3], [0.2, 1.0, 2.7, 30.0]])
BIG = np.array([-1e4, -800.0, 800.0, 1e4])

# ours, and torch's in float64
UNARY = {
    "relu": (iso.relu, F.relu),
    "leaky_relu": (lambda x: iso.leaky_relu(x, alpha=0.2), lambda x: F.leaky_relu(x, 0.2)),
    "elu": (lambda x: iso.elu(x, alpha=1.5), lambda x: F.elu(x, 1.5)),
    "gelu": (iso.gelu, F.gelu),
    "gelu_tanh": (
        lambda x: iso.gelu(x, approximate=True),
        lambda x: F.gelu(x, approximate="tanh"),
    ),
    "silu": (iso.silu, F.silu),
    "softplus": (iso.softplus, lambda x: torch.logaddexp(x, torch.zeros_like(x))),
    "mish": (iso.mish, F.mish),
    "hardswish": (iso.hardswish, lambda x: x * F.relu6(x + 3) / 6),
    "sigmoid": (iso.sigmoid, torch.sigmoid),
    "softmax": (lambda x: iso.softmax(x, axis=0), lambda x: torch.softmax(x, 0)),
    "log_softmax": (iso.log_softmax, lambda x: torch.log_softmax(x, -1)),
    "logsumexp": (
        lambda x: iso.logsumexp(x, axis=(0, 1), keepdims=True),
        lambda x: torch.logsumexp(x, (0, 1), keepdim=True),
    ),
}
names = pytest.mark.parametrize("name", UNARY)


def native(func, x, weights):
    """Value, gradient of the weighted sum, and gradient of the sum of its squares, by torch."""
    x = torch.tensor(x, requires_grad=True)
    y = func(x)
    (g,) = torch.autograd.grad((y * torch.tensor(weights)).sum(), x, create_graph=True)
    total = (g * g).sum()
    h = torch.autograd.grad(total, x)[0] if total.requires_grad else torch.zeros_like(x)
    return y.detach().cpu().numpy(), g.detach().cpu().numpy(), h.cpu().numpy()


@names
def test_values_and_gradients(backend, xp, name):
    ours, theirs = UNARY[name]
    weights = np.linspace(0.5, 1.5, 8).reshape(2, 4) if name != "logsumexp" else np.ones((1, 1))
    w = xp.asarray(weights)
    value, grad, hess = native(theirs, X, weights)
    x = xp.asarray(X)
    first = iso.grad(lambda x: xp.sum(ours(x) * w))
    np.testing.assert_allclose(numpy_of(ours(x)), value, rtol=1e-10, atol=1e-14)
    assert kind_of(ours(x)) == kind_of(x)
    np.testing.assert_allclose(numpy_of(first(x)), grad, rtol=1e-10, atol=1e-13)
    second = iso.grad(lambda x: xp.sum(first(x) ** 2))(x)
    np.testing.assert_allclose(numpy_of(second), hess, rtol=1e-9, atol=1e-12)
    narrow = ours(xp.asarray(X, dtype=xp.float32))
    assert narrow.dtype == xp.float32
    np.testing.assert_allclose(numpy_of(narrow), value, rtol=1e-5, atol=1e-7)


def test_all_of_them_compiled(backend, xp):
    """One program, because compiling takes long: values, first and second derivatives."""
    ends = {"logsumexp": (1, 1)}
    weights = {n: np.linspace(0.5, 1.5, 8).reshape(2, 4) for n in UNARY if n not in ends}
    weights |= {n: np.ones(shape) for n, shape in ends.items()}
    given = {n: xp.asarray(w) for n, w in weights.items()}

    def program(x, given):
        found = {}
        for name, w in given.items():
            first = iso.grad(lambda x, f=UNARY[name][0], w=w: xp.sum(f(x) * w))
            second = iso.grad(lambda x, first=first: xp.sum(first(x) ** 2))
            found[name] = UNARY[name][0](x), first(x), second(x)
        return found

    for name, results in iso.jit(program)(xp.asarray(X), given).items():
        for got, wanted in zip(results, native(UNARY[name][1], X, weights[name]), strict=True):
            np.testing.assert_allclose(numpy_of(got), wanted, 1e-10, 1e-12, err_msg=name)


@names
def test_large_inputs_give_finite_values_and_gradients(backend, xp, name):
    ours, _ = UNARY[name]
    if name in ("softmax", "logsumexp"):
        ours = {"softmax": iso.softmax, "logsumexp": iso.logsumexp}[name]
    value, grad = iso.value_and_grad(lambda x: xp.sum(ours(x)))(xp.asarray(BIG))
    assert np.isfinite(float(value))
    assert np.isfinite(numpy_of(grad)).all()


def test_seams(backend, xp):
    zero = xp.asarray([0.0], dtype=xp.float64)
    slope = lambda f: float(iso.grad(lambda x: xp.sum(f(x)))(zero)[0])
    curve = lambda f: float(
        iso.grad(lambda x: xp.sum(iso.grad(lambda x: xp.sum(f(x)))(x)))(zero)[0]
    )
    assert (slope(iso.relu), slope(iso.sigmoid), slope(iso.softplus)) == (0.0, 0.25, 0.5)
    np.testing.assert_allclose([curve(iso.sigmoid), curve(iso.softplus)], [0.0, 0.25], atol=1e-15)
    np.testing.assert_array_equal(numpy_of(iso.leaky_relu(zero - 1)), [-0.01])
    # the slope is not rounded to 1 yet
    far = iso.grad(lambda x: xp.sum(iso.softplus(x)))(zero + 21)
    np.testing.assert_allclose(numpy_of(far), 1 / (1 + np.exp(-21.0)), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_not_a_number_shows(backend, xp, dtype):
    nan = xp.asarray(np.array([np.nan, 1.0], dtype))
    infinite = numpy_of(iso.softmax(xp.asarray(np.array([-np.inf, 1.0, 1.0], dtype))))
    np.testing.assert_array_equal(infinite, np.array([0.0, 0.5, 0.5], dtype))
    for name, (f, _) in (UNARY | {"softmax": (iso.softmax, None)}).items():
        value = f(nan) if name != "logsumexp" else iso.logsumexp(nan)
        if name in ("softmax", "log_softmax", "logsumexp"):  # one of the three is enough
            assert np.isnan(numpy_of(value)).all(), name
            continue
        grad = iso.grad(lambda x, f=f: xp.sum(f(x)))(nan)
        np.testing.assert_array_equal(np.isnan(numpy_of(value)), [True, False], err_msg=name)
        assert np.isfinite(numpy_of(grad)[1]), name


def test_logsumexp_of_infinities(backend, xp):
    x = xp.asarray([[-np.inf, -np.inf], [np.inf, 1.0], [0.0, -np.inf]])
    got = numpy_of(iso.logsumexp(x, axis=1))
    np.testing.assert_array_equal(got, [-np.inf, np.inf, 0.0])
    np.testing.assert_allclose(float(iso.logsumexp(xp.asarray(X))), np.log(np.exp(X).sum()))


RNG = np.random.default_rng(0)
IMAGE = RNG.normal(size=(2, 5, 3, 4)) * 2 + 1  # channels last
SCALE, SHIFT = RNG.normal(size=4), RNG.normal(size=4)


def compare(xp, ours, theirs, *arrays):
    """Compare values and the gradients of every argument with torch in float64."""
    tensors = [torch.tensor(a, requires_grad=True) for a in arrays]
    y = theirs(*tensors)
    weights = RNG.normal(size=tuple(y.shape))
    grads = torch.autograd.grad((y * torch.tensor(weights)).sum(), tensors)
    given = [xp.asarray(a) for a in arrays]
    np.testing.assert_allclose(
        numpy_of(ours(*given)), y.detach().cpu().numpy(), rtol=1e-10, atol=1e-12
    )
    w = xp.asarray(weights)
    places = tuple(range(len(given)))
    derived = iso.grad(lambda *a: xp.sum(ours(*a) * w), places)
    # eagerly JAX compiles each operation
    found = (iso.jit(derived) if name_of(xp) == "jax" else derived)(*given)
    for g, expected in zip(found, grads):
        np.testing.assert_allclose(numpy_of(g), expected.cpu().numpy(), rtol=1e-9, atol=1e-11)


first = lambda t: t.movedim(-1, 1)
last = lambda t: t.movedim(1, -1)


def test_norms(backend, xp):
    ours = lambda x, w, b: iso.layer_norm(x, weight=w, bias=b)
    compare(xp, ours, lambda x, w, b: F.layer_norm(x, (4,), w, b), IMAGE, SCALE, SHIFT)
    both = RNG.normal(size=(3, 4))
    ours = lambda x, w: iso.layer_norm(x, weight=w, axis=(2, 3), epsilon=1e-3)
    compare(xp, ours, lambda x, w: F.layer_norm(x, (3, 4), w, eps=1e-3), IMAGE, both)
    ours = lambda x, w: iso.layer_norm(x, weight=w, axis=1)
    turned = lambda x, w: F.layer_norm(x.movedim(1, -1), (5,), w).movedim(-1, 1)
    compare(xp, ours, turned, IMAGE, RNG.normal(size=5))
    ours = lambda x, w: iso.rms_norm(x, weight=w)
    compare(xp, ours, lambda x, w: F.rms_norm(x, (4,), w, eps=1e-6), IMAGE, SCALE)
    ours = lambda x, w, b: iso.group_norm(x, 2, weight=w, bias=b)
    theirs = lambda x, w, b: last(F.group_norm(first(x), 2, w, b))
    compare(xp, ours, theirs, IMAGE, SCALE, SHIFT)
    ours = lambda x, w: iso.group_norm(x, 5, weight=w, data_format="channel_first")
    compare(xp, ours, lambda x, w: F.group_norm(x, 5, w), IMAGE, RNG.normal(size=5))
    ours = lambda x, w, b: iso.instance_norm(x, weight=w, bias=b)
    theirs = lambda x, w, b: last(F.instance_norm(first(x), weight=w, bias=b))
    compare(xp, ours, theirs, IMAGE, SCALE, SHIFT)


def test_norms_with_an_epsilon_and_axes_of_their_own(backend, xp):
    e = 0.3
    ours = lambda x, w: iso.rms_norm(x, weight=w, axis=(1, 2), epsilon=e)
    turned = lambda x: x.movedim(-1, 1)
    theirs = lambda x, w: last(F.rms_norm(turned(x), (5, 3), w, eps=e))
    compare(xp, ours, theirs, IMAGE, RNG.normal(size=(5, 3)))
    ours = lambda x: iso.group_norm(x, 2, epsilon=e)
    compare(xp, ours, lambda x: last(F.group_norm(first(x), 2, eps=e)), IMAGE)
    ours = lambda x: iso.instance_norm(x, epsilon=e, data_format="channel_first")
    compare(xp, ours, lambda x: F.instance_norm(x, eps=e), IMAGE)
    ours = lambda x: iso.layer_norm(x, axis=(0, 2), epsilon=e)

    def by_hand(x):
        centred = x - x.mean((0, 2), keepdim=True)
        return centred / torch.sqrt((centred**2).mean((0, 2), keepdim=True) + e)

    compare(xp, ours, by_hand, IMAGE)
    mean, var = np.zeros(4), np.ones(4)
    for training in (True, False):
        ours = lambda x, t=training: iso.batch_norm(
            x, xp.asarray(mean), xp.asarray(var), training=t, epsilon=e
        )[0]
        theirs = lambda x, t=training: last(
            F.batch_norm(first(x), torch.tensor(mean), torch.tensor(var), training=t, eps=e)
        )
        compare(xp, ours, theirs, IMAGE)


@pytest.mark.slow
def test_norms_and_losses_compiled(backend, xp):
    """One program: values, gradients, and for some the gradient of the sum of their squares."""
    x, scale = RNG.normal(size=(2, 3, 4)), RNG.normal(size=4)
    zero, one = np.zeros(4), np.ones(4)
    hard = np.array([[0, 3, 1], [2, -1, 3]])
    norm = lambda x, w: F.batch_norm(
        first(x), torch.tensor(zero), torch.tensor(one), w, training=True
    )
    pairs = {
        "layer": (lambda x, w: iso.layer_norm(x, weight=w), lambda x, w: F.layer_norm(x, (4,), w)),
        "rms": (
            lambda x, w: iso.rms_norm(x, weight=w),
            lambda x, w: F.rms_norm(x, (4,), w, eps=1e-6),
        ),
        "group": (
            lambda x, w: iso.group_norm(x, 2, weight=w),
            lambda x, w: last(F.group_norm(first(x), 2, w)),
        ),
        "batch": (
            lambda x, w: iso.batch_norm(
                x, xp.asarray(zero), xp.asarray(one), weight=w, training=True
            )[0],
            lambda x, w: last(norm(x, w)),
        ),
        "cross": (
            lambda x, w: iso.cross_entropy(
                x * w, xp.asarray(hard), ignore_index=-1, label_smoothing=0.1
            ),
            lambda x, w: F.cross_entropy(
                first(x * w), torch.tensor(hard), ignore_index=-1, label_smoothing=0.1
            ),
        ),
        "binary": (
            lambda x, w: iso.binary_cross_entropy(x * w, xp.asarray(x**0)),
            lambda x, w: F.binary_cross_entropy_with_logits(x * w, torch.ones_like(x)),
        ),
        "huber": (
            lambda x, w: iso.huber(x * w, x * 0, delta=0.5),
            lambda x, w: F.huber_loss(x * w, x * 0, delta=0.5),
        ),
    }

    def derived(name, grad, total, f, x, w):
        loss = lambda x, w: total(f(x, w) ** 2)
        again = lambda x, w: sum(total(g**2) for g in grad(loss, (0, 1))(x, w))
        second = [grad(again, 0)(x, w)] if name in ("layer", "batch", "cross") else []
        return [f(x, w), *grad(loss, (0, 1))(x, w), *second]

    def program(x, w):
        return {n: derived(n, iso.grad, xp.sum, ours, x, w) for n, (ours, _) in pairs.items()}

    found = iso.jit(program)(xp.asarray(x), xp.asarray(scale))
    for name, (_, theirs) in pairs.items():
        given = torch.tensor(x), torch.tensor(scale)
        wanted = derived(name, torch.func.grad, torch.sum, theirs, *given)
        for a, b in zip(found[name], wanted, strict=True):
            np.testing.assert_allclose(numpy_of(a), b, 1e-10, 1e-10, err_msg=name)


@pytest.mark.parametrize("data_format", ["channel_last", "channel_first"])
def test_batch_norm(backend, xp, data_format):
    image = IMAGE if data_format == "channel_last" else IMAGE.transpose(0, 3, 1, 2)
    to, back = (first, last) if data_format == "channel_last" else (lambda t: t, lambda t: t)
    mean, var = RNG.normal(size=4), RNG.uniform(1, 2, size=4)
    for training in (True, False):

        def theirs(x, w, b, training=training):
            args = torch.tensor(mean), torch.tensor(var), w, b, training
            return back(F.batch_norm(to(x), *args))

        ours = lambda x, w, b, training=training: iso.batch_norm(
            x, xp.asarray(mean), xp.asarray(var), weight=w, bias=b, training=training,
            data_format=data_format,
        )[0]  # fmt: skip
        compare(xp, ours, theirs, image, SCALE, SHIFT)
    m, v = torch.tensor(mean), torch.tensor(var)
    F.batch_norm(to(torch.tensor(image)), m, v, training=True, momentum=0.3)
    given = xp.asarray(image), xp.asarray(mean), xp.asarray(var)
    options = {"training": True, "momentum": 0.3, "data_format": data_format}
    _, new_mean, new_var = iso.batch_norm(*given, **options)
    np.testing.assert_allclose(numpy_of(new_mean), m.cpu().numpy(), rtol=1e-12)
    np.testing.assert_allclose(numpy_of(new_var), v.cpu().numpy(), rtol=1e-12)
    same = iso.batch_norm(*given, data_format=data_format)
    np.testing.assert_array_equal(numpy_of(same[1]), mean)
    np.testing.assert_array_equal(numpy_of(same[2]), var)
    # no gradient flows through the running statistics
    kept = lambda x: sum(xp.sum(part) for part in iso.batch_norm(x, *given[1:], **options)[1:])
    np.testing.assert_array_equal(
        numpy_of(iso.grad(lambda x: kept(x) + 0 * xp.sum(x))(given[0])), 0
    )


LOGITS = RNG.normal(size=(3, 5, 4)) * 3
HARD = np.array([[0, 3, 1, 1, 2], [2, 2, 0, 1, 3], [3, 0, 0, 2, 1]])


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy(backend, xp, reduction):
    turned = lambda x: x.movedim(-1, 1)
    for smoothing in (0.0, 0.1):
        for ignored in (None, 1):
            o = {"label_smoothing": smoothing, "reduction": reduction}
            o |= {} if ignored is None else {"ignore_index": ignored}
            ours = lambda x, o=o: iso.cross_entropy(x, xp.asarray(HARD), **o)
            theirs = lambda x, o=o: F.cross_entropy(turned(x), torch.tensor(HARD), **o)
            compare(xp, ours, theirs, LOGITS)
    soft = RNG.dirichlet(np.ones(4), size=(3, 5))
    ours = lambda x, p: iso.cross_entropy(x, p, label_smoothing=0.2, reduction=reduction)
    theirs = lambda x, p: (
        F.cross_entropy(turned(x), turned(p), label_smoothing=0.2, reduction=reduction)
        * (5 * 3 / 15)
    )
    compare(xp, ours, theirs, LOGITS, soft)
    ours = lambda x: iso.cross_entropy(x, xp.asarray(HARD), axis=1, reduction=reduction)
    theirs = lambda x: F.cross_entropy(x, torch.tensor(HARD), reduction=reduction)
    compare(xp, ours, theirs, LOGITS.transpose(0, 2, 1))


def test_labels_that_do_not_count(backend, xp):
    """Ignored labels need not be valid classes. If all are ignored, the mean is over nothing."""
    labels = np.where(HARD == 1, -100, HARD)
    ours = lambda x: iso.cross_entropy(x, xp.asarray(labels), ignore_index=-100)
    theirs = lambda x: F.cross_entropy(first(x), torch.tensor(labels), ignore_index=-100)
    compare(xp, ours, theirs, LOGITS)
    none = xp.asarray(np.full((3, 5), -100))
    with np.errstate(invalid="ignore"):
        assert np.isnan(numpy_of(iso.cross_entropy(xp.asarray(LOGITS), none, ignore_index=-100)))
    for wrong in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="needed label_smoothing from 0 to 1, got"):
            iso.cross_entropy(xp.asarray(LOGITS), xp.asarray(HARD), label_smoothing=wrong)


def test_binary_cross_entropy_of_large_logits(backend, xp):
    logits, labels = np.array([-2000.0, 2000.0, 2000.0]), np.array([1.0, 0.0, 1.0])
    f = lambda x: iso.binary_cross_entropy(x, xp.asarray(labels), reduction="sum")
    value, grad = iso.value_and_grad(f)(xp.asarray(logits))
    assert float(value) == 4000.0
    np.testing.assert_array_equal(numpy_of(grad), [-1.0, 1.0, 0.0])


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_other_losses(backend, xp, reduction):
    p, y = RNG.uniform(-2, 2, (3, 4)), RNG.uniform(-2, 2, (3, 4))
    r = {"reduction": reduction}
    compare(xp, lambda p, y: iso.mse(p, y, **r), lambda p, y: F.mse_loss(p, y, **r), p, y)
    compare(xp, lambda p, y: iso.mae(p, y, **r), lambda p, y: F.l1_loss(p, y, **r), p, y)
    ours = lambda p, y: iso.huber(p, y, delta=0.7, **r)
    compare(xp, ours, lambda p, y: F.huber_loss(p, y, delta=0.7, **r), p, y)
    labels = RNG.uniform(size=(3, 4))
    ours = lambda p, y: iso.binary_cross_entropy(p * 100, y, **r)
    theirs = lambda p, y: F.binary_cross_entropy_with_logits(p * 100, y, **r)
    compare(xp, ours, theirs, p, labels)
    wanted = RNG.dirichlet(np.ones(4), size=3)
    ours = lambda p: iso.kl_divergence(iso.log_softmax(p), xp.asarray(wanted), **r)
    # torch warns because its mean is over all elements
    part = 12 if reduction == "mean" else 1
    rest = {"reduction": "none" if reduction == "none" else "sum"}
    theirs = lambda p: F.kl_div(torch.log_softmax(p, -1), torch.tensor(wanted), **rest) / part
    compare(xp, ours, theirs, p)


def test_kl_divergence_where_nothing_is_wanted(backend, xp):
    target = xp.asarray([0.0, 1.0])
    f = lambda q, p: iso.kl_divergence(q, p, reduction="sum")
    value, (gq, gp) = iso.value_and_grad(f, (0, 1))(xp.asarray([-1.0, -2.0]), target)
    assert float(value) == 2.0
    np.testing.assert_array_equal(numpy_of(gq), [0.0, -1.0])
    assert np.isfinite(numpy_of(gp)).all()


def test_embedding(backend, xp):
    table = RNG.normal(size=(6, 3))
    ids = np.array([[0, 5, 5], [1, 0, 5]])
    ours = lambda w: iso.embedding(xp.asarray(ids), w)
    compare(xp, ours, lambda w: F.embedding(torch.tensor(ids), w), table)


def test_linear_errors_and_others(backend, xp):
    x = xp.asarray(IMAGE)
    w = xp.asarray(SCALE)
    labels = xp.asarray([0, 1])
    cases = [
        (lambda: iso.linear(x, xp.asarray(np.ones((3, 5)))), r"\[\*outer, out, in\], got \[2"),
        (lambda: iso.linear(x, xp.asarray(np.ones((3, 4))), bias=w), r"bias .*\[3\], got \[4\]"),
        (lambda: iso.layer_norm(x, weight=w, axis=1), r"needed weight \[5\], got \[4\]"),
        (lambda: iso.layer_norm(x, axis=7), "layer_norm: needed axes of an array of 4 axes, got 7"),
        (lambda: iso.group_norm(x, 3), "needed groups that divide the 4 channels, got 3"),
        (lambda: iso.group_norm(x, 2, data_format="NHWC"), "needed data_format"),
        (lambda: iso.instance_norm(xp.asarray(np.ones((2, 3)))), "at least 3 axes"),
        (lambda: iso.cross_entropy(x, labels), r"integer labels \[2, 5, 3\] for logits"),
        (lambda: iso.mse(x, w), "needed two arrays of one shape"),
        (lambda: iso.mse(x, x, reduction="max"), "one of 'mean', 'sum', 'none'"),
        (lambda: iso.huber(x, x, delta=0.0), "needed a positive delta"),
        (lambda: iso.batch_norm(xp.asarray(np.ones((1, 4))), w, w, training=True), "more than one"),
    ]
    for call, match in cases:
        with pytest.raises(ValueError, match=match):
            call()
    with pytest.raises(TypeError, match="embedding: needed integer ids, got .*float64"):
        iso.embedding(w, x)
