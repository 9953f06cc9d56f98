"""isomorph's transforms of functions written with a framework's own calls: its custom rules,
compiled functions, modules and transforms. Every custom rule is ten times the true derivative, so
that a dropped rule is noticed.
"""

import warnings
from fnmatch import fnmatch
from functools import cache
from inspect import signature

import numpy as np
import pytest
from border_ledger import patterns, raising, says
from border_transforms import check
from frameworks import older

import isomorph as iso

X = np.array([0.5, -1.2, 2.0])
U = np.array([1.0, -0.5, 0.3])


# ---- the frameworks' functions: x³, elementwise --------------------------------------------------


def of_jax():
    import jax
    import jax.numpy as jnp

    back = jax.custom_vjp(lambda x: x**3)
    back.defvjp(lambda x: (x**3, x), lambda x, g: (30 * x**2 * g,))
    forth = jax.custom_jvp(lambda x: x**3)
    forth.defjvp(lambda primals, tangents: (forth(*primals), 30 * primals[0] ** 2 * tangents[0]))
    zeroed = jax.custom_vjp(lambda x, n: x**3)  # its second argument has no gradient
    zeroed.defvjp(lambda x, n: (x**3, x), lambda x, g: (30 * x**2 * g, None))

    def stepped(x):
        return jax.lax.fori_loop(0, 3, lambda i, y: y * x, jnp.ones_like(x))

    return {
        "plain": lambda x: jnp.power(x, 3),
        "jax.custom_vjp": back,
        "jax.custom_jvp": forth,
        "jax.custom_vjp beside": lambda x: zeroed(x, 2),
        "jax.jit": jax.jit(lambda x: x**3),
        "jax.jit of a rule": jax.jit(back),
        "jax.checkpoint": jax.checkpoint(lambda x: x**3),
        "jax.vmap": lambda x: jax.vmap(lambda x: x**3)(x.reshape(-1)).reshape(x.shape),
        "jax.grad": lambda x: jax.grad(lambda y: jnp.sum(y**4) / 4)(x),
        "jax.lax.fori_loop": stepped,
        "jax.lax.scan": lambda x: jax.lax.scan(lambda c, _: (c * x, None), x, None, 2)[0],
        "jax.lax.cond": lambda x: jax.lax.cond(jnp.sum(x) > 9, lambda x: x, lambda x: x**3, x),
        "ours inside": jax.jit(lambda x: tenfold(x)),
    }


def of_tensorflow():
    import keras
    import tensorflow as tf

    rule = tf.custom_gradient(lambda x: (x**3, lambda g: 30 * x**2 * g))
    layer = keras.layers.Lambda(lambda x: x**3, dtype="float64")

    def taped(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(x**4) / 4
        return tape.gradient(y, x)

    return {
        "plain": lambda x: tf.pow(x, 3.0),
        "tf.custom_gradient": rule,
        "tf.function": tf.function(lambda x: x**3, autograph=False),
        "tf.function of a rule": tf.function(lambda x: rule(x), autograph=False),
        "tf.function by XLA": tf.function(lambda x: x**3, autograph=False, jit_compile=True),
        "tf.recompute_grad": tf.recompute_grad(lambda x: x**3),
        "tf.GradientTape": taped,
        "tf.while_loop": lambda x: tf.while_loop(
            lambda i, y: i < 2, lambda i, y: (i + 1, y * x), (0, x)
        )[1],
        "keras layer": layer,
        "ours inside": tf.function(lambda x: tenfold(x), autograph=False),
    }


def of_torch():
    import torch

    class Rule(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x**3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            return 30 * ctx.saved_tensors[0] ** 2 * g

    class Old(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            return 30 * ctx.saved_tensors[0] ** 2 * g

    class Cube(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones((), dtype=torch.float64))

        def forward(self, x):
            return self.scale * x**3

    again = lambda x: torch.utils.checkpoint.checkpoint(lambda x: x**3, x, use_reentrant=False)
    return {
        "plain": lambda x: torch.pow(x, 3),
        "torch.autograd.Function": Rule.apply,
        "torch.autograd.Function of old": Old.apply,
        "torch.nn.Module": Cube(),
        "torch.func.grad": lambda x: torch.func.grad(lambda y: torch.sum(y**4) / 4)(x),
        "torch.func.vmap": lambda x: torch.func.vmap(lambda x: x**3)(x.reshape(-1)).reshape(
            x.shape
        ),
        "torch.utils.checkpoint": again,
        "torch.compile": torch.compile(lambda x: x**3, backend="aot_eager"),
    }


THEIRS = {"jax": of_jax, "tensorflow": of_tensorflow, "torch": of_torch}
RULES = (
    *("jax.custom_vjp", "jax.custom_jvp", "jax.custom_vjp beside", "jax.jit of a rule"),
    *("tf.custom_gradient", "tf.function of a rule", "ours inside"),
    *("torch.autograd.Function", "torch.autograd.Function of old"),
)
tenfold = iso.custom_vjp(lambda x: x**3, lambda x: (x**3, x), lambda x, g: (30 * x**2 * g,))


# ---- our transforms: their results for f, whose slope is s times that of x³ ----------------------

total = lambda f: lambda x: iso.namespace(x).sum(f(x))
both = lambda f: lambda x: iso.namespace(x).stack([total(f)(x), -3 * total(f)(x)])


def transforms(xp, x, u, s):
    """name -> (transform of f, expected result)."""
    one, slope, curve = xp.asarray(1.0, dtype=x.dtype), s * 3 * X**2, s * 6 * X
    executed = lambda f: iso.execute_with_gradients(lambda p: total(f)(p["x"]), {"x": x})[1]["x"]
    rows = xp.stack([x, 2 * x])
    return {
        "iso.grad": (lambda f: iso.grad(total(f))(x), slope),
        "iso.value_and_grad": (lambda f: iso.value_and_grad(total(f))(x)[0], np.sum(X**3)),
        "iso.vjp": (lambda f: iso.vjp(total(f), x)[1](one)[0], slope),
        "iso.jvp": (lambda f: iso.jvp(f, (x,), (u,))[1], slope * U),
        "iso.jac": (lambda f: iso.jac(both(f))(x), np.stack([slope, -3 * slope])),
        "iso.jacrev": (lambda f: iso.jacrev(both(f))(x), np.stack([slope, -3 * slope])),
        "iso.jacfwd": (lambda f: iso.jacfwd(both(f))(x), np.stack([slope, -3 * slope])),
        "iso.value_and_jac": (
            lambda f: iso.value_and_jac(both(f))(x)[1],
            np.stack([slope, -3 * slope]),
        ),
        "iso.hvp": (lambda f: iso.hvp(total(f), (x,), (u,))[0], curve * U),
        "iso.hessian": (lambda f: iso.hessian(total(f))(x), np.diag(curve)),
        "iso.execute_with_gradients": (executed, slope),
        "iso.checkpoint": (lambda f: iso.grad(iso.checkpoint(total(f)))(x), slope),
        "iso.cond": (lambda f: iso.grad(lambda x: iso.cond(True, total(f), total(f), x))(x), slope),
        "iso.switch": (
            lambda f: iso.grad(lambda x: iso.switch(1, [total(iso.relu), total(f)], x))(x),
            slope,
        ),
        "iso.scan": (
            lambda f: iso.grad(
                lambda x: iso.scan(lambda c, r: (c + total(f)(r), c), one * 0, x)[0]
            )(x),
            slope,
        ),
        "iso.fori_loop": (
            lambda f: iso.grad(total(lambda x: iso.fori_loop(0, 1, lambda i, y: f(y), x)))(x),
            slope,
        ),
        "iso.while_loop": (
            lambda f: iso.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, f(c[1])), (0, x))[1],
            X**3,
        ),
        "iso.custom_vjp": (
            lambda f: iso.grad(
                total(iso.custom_vjp(f, lambda x: (f(x), x), lambda r, g: (r * g,)))
            )(x),
            X,
        ),
        "iso.bind_custom_gradient_function": (
            lambda f: iso.grad(total(iso.bind_custom_gradient_function(f, lambda r, g: r[1] * g)))(
                x
            ),
            X**3,
        ),
        "iso.Activation": (lambda f: iso.grad(total(iso.Activation(f)))(x), slope),
        "iso.vmap": (lambda f: iso.vmap(f)(rows), np.stack([X**3, 8 * X**3])),
        "iso.vmap of grad": (lambda f: iso.vmap(iso.grad(total(f)))(rows)[0], slope),
        "iso.grad of vmap": (
            lambda f: iso.grad(lambda x: xp.sum(iso.vmap(f)(xp.stack([x, x]))))(x),
            2 * slope,
        ),
        "iso.jit": (lambda f: iso.jit(f)(x), X**3),
        "iso.jit of grad": (lambda f: iso.jit(iso.grad(total(f)))(x), slope),
    }


# They compute gradients themselves, or take functions of NumPy arrays.
LEFT_OUT = {"check_gradients", "fit", "train_step", "host_function", "Optimizer", "Sequential"}


def signatures(thing):
    """The parameter types of a function or class, as written."""
    try:
        return [str(p.annotation) for p in signature(thing).parameters.values()]
    except (TypeError, ValueError):  # modules and errors have no signature
        return []


NAMES = list(transforms(np, X, U, 1))  # with NumPy arrays, only to list the names
CALLS = {
    "jax": [
        *("plain", "jax.custom_vjp", "jax.custom_jvp", "jax.custom_vjp beside", "jax.jit"),
        *("jax.jit of a rule", "jax.checkpoint", "jax.vmap", "jax.grad", "jax.lax.fori_loop"),
        *("jax.lax.scan", "jax.lax.cond", "ours inside"),
    ],
    "tensorflow": [
        *("plain", "tf.custom_gradient", "tf.function", "tf.function of a rule"),
        *("tf.function by XLA", "tf.recompute_grad", "tf.GradientTape", "tf.while_loop"),
        *("keras layer", "ours inside"),
    ],
    "torch": [
        *("plain", "torch.autograd.Function", "torch.autograd.Function of old", "torch.nn.Module"),
        *("torch.func.grad", "torch.func.vmap", "torch.utils.checkpoint", "torch.compile"),
    ],
}
GRID = [
    pytest.param(
        backend, call, name, id=f"{backend}-{call}-{name}".replace(" ", "_"),
        # all transforms of functions with custom rules, a third of them of the others
        marks=() if call in RULES or (number + place) % 3 == 0 else pytest.mark.slow,
    )
    for backend, calls in CALLS.items()
    for number, call in enumerate(calls)
    for place, name in enumerate(NAMES)
]  # fmt: skip


@cache
def functions(backend):
    found = THEIRS[backend]()
    assert list(found) == CALLS[backend]
    return found


@pytest.mark.parametrize(("backend", "call", "name"), GRID, indirect=["backend"])
def test_our_transforms_of_their_functions(backend, xp, call, name):
    if call == "torch.utils.checkpoint" and "vmap" in name and older("torch", 2, 13):
        pytest.skip("torch's checkpoint cannot be mapped before 2.13")
    func = functions(backend)[call]
    table = transforms(xp, xp.asarray(X), xp.asarray(U), 10 if call in RULES else 1)
    transform, wanted = table[name]
    words, what = raising(backend, call, name), f"{name} of {call}"
    try:
        with warnings.catch_warnings():
            if call == "torch.compile":  # Dynamo warns about itself
                warnings.simplefilter("ignore")
            got = transform(func)
    except Exception as error:
        if words is None or not says(words, error):
            raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error
        return
    assert words is None, (
        f"{what}: the ledger expects an error with {words!r}, but none came; remove it"
    )
    check(what, [(got, wanted)])


@pytest.mark.parametrize("backend", ["tensorflow"], indirect=True)
@pytest.mark.parametrize("traced", [False, True], ids=["new", "traced"])
def test_checkpoint_of_a_function_that_tensorflow_compiles(backend, xp, traced):
    """Captured arrays are differentiated, though TensorFlow's programs hold the values of their
    trace.
    """
    import tensorflow as tf

    x = xp.asarray(X)

    def f(w):
        inner = tf.function(lambda x: w * x**3, autograph=False)
        if traced:
            inner(x)
        return xp.sum(iso.checkpoint(inner)(x) * w)

    w = xp.asarray(U)
    check("captured", [(iso.grad(f)(w), 2 * U * X**3)])
    check("again", [(iso.hvp(f, (w,), (w,))[0], 2 * U * X**3)])


@pytest.mark.parametrize("backend", list(CALLS), indirect=True)
def test_the_ledger_names_calls_that_there_are(backend):
    there = {f"{call} {name}" for call in CALLS[backend] for name in NAMES}
    taken = {
        name
        for name in iso.__all__
        for kind in signatures(getattr(iso, name))
        if "Callable" in kind
    }
    drawn = {word.removeprefix("iso.") for name in NAMES for word in name.split(" of ")[:1]}
    assert taken - drawn - LEFT_OUT == set(), "takes a function, but is not tested here"
    listed = [p for name, p in patterns() if name == backend and " iso." in p]
    assert [p for p in listed if not any(fnmatch(cell, p) for cell in there)] == []
