"""Values that leave a differentiation: every framework treats `float(x)` of a differentiated array
as a constant. isomorph raises, unless the ledger says that the framework gives no way to notice.
"""

import math
import sys
import warnings

import numpy as np
import pytest
from border_ledger import LEDGER, losing
from frameworks import jax, ours, tf, torch

import isomorph as iso
from oracles import numpy_of, verbs_of

kernels = ours("tensorflow.kernels")
ONLY_TENSORFLOW = pytest.mark.parametrize("backend", ["tensorflow"], indirect=True)
ONLY_TORCH = pytest.mark.parametrize("backend", ["torch"], indirect=True)


def assigned(x):
    a = np.zeros(())
    a[()] = x
    return a.item()


WAYS = {
    "float": float,
    "int": int,
    "complex": lambda x: complex(x).real,
    "math": lambda x: math.fsum([x]),
    "item": lambda x: x.item(),
    "tolist": lambda x: x.tolist(),
    "method": lambda x: x.numpy().item(),
    "asarray": lambda x: np.asarray(x).item(),
    "array": lambda x: np.array(x).item(),
    "ufunc": lambda x: np.multiply(x, 1.0).item(),
    "assigned": assigned,
    "to_numpy": lambda x: iso.to_numpy(x).item(),
    "convert": lambda x: np.asarray(iso.convert(x, "numpy")).item(),
    "tensor": lambda x: torch.tensor([x]).item(),
}


def product(xp, way):
    """Σx² Σx, with one factor extracted as a number. The gradient at ones is 9, or 6 if
    it is lost.
    """
    return lambda x: xp.sum(x * x) * way(xp.sum(x))


def quiet(run):
    """Run without torch's warning, which comes once per process with the first extracted number."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run()


@pytest.mark.parametrize("way", WAYS)
def test_a_number_that_leaves_raises(backend, xp, way):
    x, func = xp.asarray(np.ones(3)), product(xp, WAYS[way])
    gradient = lambda: quiet(lambda: numpy_of(iso.grad(func)(x)))
    if way in losing(backend):
        # if this fails, remove the ledger entry
        np.testing.assert_allclose(gradient(), [6.0, 6.0, 6.0])
    else:
        with pytest.raises((TypeError, RuntimeError, ValueError, AttributeError)):
            gradient()


WORDS = {"numpy": "iso.stop_gradient", "torch": "iso.stop_gradient", "jax": "concrete value"}


@pytest.mark.parametrize("backend", ["numpy", "jax", "torch"], indirect=True)
def test_the_words_say_what_to_do(backend, xp):
    x = xp.asarray(np.ones(3))
    for way in ("float",) if backend == "jax" else ("float", "int", "item"):
        f = product(xp, WAYS[way])
        for transform in (
            *(iso.grad, iso.value_and_grad, iso.hessian, iso.jac),
            lambda f: lambda x: iso.execute_with_gradients(f, x),
            lambda f: lambda x: iso.vjp(f, x),
            lambda f: lambda x: iso.jvp(f, (x,), (x,)),
        ):
            with pytest.raises(TypeError, match=WORDS[backend]):
                quiet(lambda transform=transform, f=f: transform(f)(x))


def test_values_decide_and_are_shown(backend, xp):
    """Values may still be used for branches, constants and text."""
    text = []

    def f(x):
        total = xp.sum(x)
        text.append(f"{total}, {iso.stop_gradient(total):.2f}, {x!r}")
        twice = 2.0 if bool(total > 0) else 1.0
        scale = float(iso.stop_gradient(total)) if backend != "jax" else 3.0
        return twice * scale * xp.sum(x * x) if total != 0 else total

    got = iso.grad(f)(xp.asarray(np.ones(3)))
    np.testing.assert_allclose(numpy_of(got), [12.0] * 3)
    assert "3.00" in text[0]


def loss(model, x):
    xp = iso.namespace(x)
    return xp.sum(model["w"] * x) * float(xp.sum(model["w"]))


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "eager"])
def test_a_number_that_leaves_a_step_of_training(backend, xp, compiled):
    step = iso.train_step(loss, iso.optimizers.sgd(1.0), compiled=compiled)
    state = step.init({"w": xp.asarray(np.ones(3))})
    run = lambda: step(state, xp.asarray(np.ones(3)))
    if not compiled and "train_step" in losing(backend):
        moved = quiet(lambda: numpy_of(run()[0].model["w"]))
        # 1 - 6 would be right: then remove the ledger entry
        np.testing.assert_allclose(moved, 1 - 3.0)
    else:
        with pytest.raises(Exception, match="float|concrete|Tracer|data-dependent|symbolic"):
            quiet(run)


def test_the_ledger_names_ways_that_there_are(backend):
    lost = {way for entries in LEDGER.values() for e in entries for way in e.get("lost", [])}
    assert lost <= {*WAYS, "train_step"}
    assert losing(backend) <= lost
    assert all(e["reason"] for entries in LEDGER.values() for e in entries)


# ---- torch: isomorph replaces the kernel of `item` inside torch.func -----------------------------


@ONLY_TORCH
def test_torch_itself_gives_its_numbers(backend):
    """torch's own transforms, outside of isomorph's, are unchanged."""
    x = torch.tensor(2.0)
    slope = lambda f, x=x: quiet(lambda: torch.func.grad(f)(x).item())
    assert slope(lambda x: x * float(x)) == 2.0
    assert slope(lambda x: x * x.item() * int(x)) == 4.0
    assert slope(lambda x: x * torch.func.grad(lambda y: y * y.item())(x)) == 2.0
    assert quiet(lambda: torch.func.jvp(lambda x: x * x.item(), (x,), (x,))[1].item()) == 4.0
    assert torch.func.functionalize(lambda x: x * x.item())(x).item() == 4.0
    with pytest.raises(RuntimeError, match="vmap: It looks like you're .*calling .item\\(\\)"):
        torch.func.vmap(lambda x: x * x.item())(torch.ones(2))
    with pytest.raises(RuntimeError, match="a Tensor with 2 elements cannot be converted"):
        torch.func.grad(lambda x: x.sum() * x.item())(torch.ones(2))
    assert torch.func.vmap(lambda y: y * x.item())(torch.ones(2)).tolist() == [2.0, 2.0]
    sparse = torch.eye(1).to_sparse()
    assert slope(lambda x: x * sparse.item()) == 1.0
    assert slope(lambda x: x * torch.tensor(3).item() * torch.tensor(True).item()) == 3.0


@ONLY_TORCH
def test_levels_of_torch_and_of_isomorph(backend):
    """isomorph guards the values that it differentiates, at any depth. It leaves torch's alone."""
    x = torch.tensor(2.0)
    fails = lambda f: pytest.raises(TypeError, match="tensor that is not differentiated")
    with fails(0):
        quiet(lambda: iso.grad(lambda x: torch.func.grad(lambda y: y * x.item())(x))(x))
    with fails(0):
        quiet(lambda: torch.func.grad(lambda x: iso.grad(lambda y: y * y.item())(x))(x))
    with fails(0):
        iso.vmap(iso.grad(lambda x: x * x.item()))(torch.ones(2))
    with fails(0):
        iso.grad(lambda x: torch.func.grad(lambda y: y * (x * y).item())(x))(x)
    # torch differentiates the outer variable, not isomorph
    inner = lambda x: iso.grad(lambda y: y * y * x.detach().item())(x)
    assert torch.func.grad(inner)(x).item() == 4.0
    # a function that raised leaves no state behind
    assert quiet(lambda: torch.func.grad(lambda x: x * x.item())(x).item()) == 2.0


# ---- TensorFlow: whether a tape is watching ------------------------------------------------------


@ONLY_TENSORFLOW
def test_a_version_that_has_moved_the_question(backend, monkeypatch):
    private = ours("tensorflow.private")
    words = ("should_record_backprop", "should_record_of_c")
    for word in words:
        assert private.ALL.first(*words) is not None
        monkeypatch.setitem(sys.modules, private.NAMES[word].module, None)
    assert private.ALL.first(*words) is None


@ONLY_TENSORFLOW
def test_where_tapes_cannot_be_asked_nothing_is_lost(backend, xp, monkeypatch):
    x = tf.constant([[2.0, 0.0], [0.0, 0.0]], tf.float64)
    assert not verbs_of(xp).is_watched(x)
    assert not kernels.recorded(x)
    monkeypatch.setattr(kernels, "should_record", None)
    assert kernels.recorded(x)
    assert verbs_of(xp).is_watched(x)
    assert verbs_of(xp).is_watched(tf.Variable(1.0))
    assert verbs_of(xp).is_watched(tf.Variable(1.0, trainable=False))
    with pytest.raises(TypeError, match="to_numpy: needed to know .*a tape is watching"):
        iso.to_numpy(x)
    with pytest.raises(TypeError, match="to_numpy: needed to know .*a tape is watching"):
        iso.convert(x, "torch")
    # isomorph replaces kernels with a wrong derivative: det of a singular matrix, powers of zero
    det = iso.grad(xp.linalg.det)(x)
    np.testing.assert_allclose(det, [[0.0, 0.0], [0.0, 2.0]], atol=1e-12)
    power = iso.grad(lambda x: xp.sum(xp.pow(x, tf.constant(1.0, tf.float64))))(x)
    np.testing.assert_allclose(power, np.ones((2, 2)))
    compiled = iso.jit(lambda x: xp.sum(x * x))(x)
    np.testing.assert_allclose(compiled, 4.0)


def test_data_does_not_leave_their_transforms(backend, xp):
    """`to_numpy` and `convert` inside the framework's own differentiation."""
    f = lambda x: xp.sum(x * xp.asarray(iso.to_numpy(x)))
    g = lambda x: xp.sum(x * xp.asarray(np.asarray(iso.convert(x, "numpy"))))
    x = xp.asarray(np.ones(3))
    if backend == "numpy":
        run = lambda f: iso.grad(f)(x)
    elif backend == "jax":
        run = lambda f: jax.grad(f)(x)
    elif backend == "torch":
        run = lambda f: torch.func.grad(f)(x)
    else:

        def run(f):
            with tf.GradientTape() as tape:
                tape.watch(x)
                return tape.gradient(f(x), x)

    for func in (f, g):
        with pytest.raises(Exception, match="gradient|Tracer|storage|traced"):
            run(func)
