"""The frameworks' own transforms. Each runs a function and gives values, gradients or a directional
derivative, to be compared with NumPy's.
"""

import warnings

import numpy as np

import isomorph as iso
from oracles import central_gradient, numpy_of, verbs_of


class Truth:
    """Value and gradient of a function at `x`, in NumPy: by differences, or as the function defines
    it.
    """

    def __init__(self, func, x, gradient=None):
        self.x = np.asarray(x, np.float64)
        self.value = total(func)(self.x)
        self.along = np.cos(np.arange(self.x.size) + 1.0).reshape(self.x.shape)
        self.rows = np.stack([self.x, self.x + 0.03])
        self.values = np.stack([total(func)(row) for row in self.rows])
        if gradient is None:
            self.gradient = central_gradient(total(func), self.x, 1e-5)
        else:
            self.gradient = gradient(self.x) * weights(self.x.size).reshape(self.x.shape)


def weights(n):
    return np.sin(1.3 * np.arange(n) + 0.4) + 1.2


def total(func):
    """One number from all floating-point outputs of `func`, each with its own weight."""

    def scalar(x):
        out = func(x)
        outs = out if isinstance(out, (tuple, list)) else [out]
        outs = [y for part in outs for y in (part if isinstance(part, tuple) else [part])]
        xp = iso.namespace(*outs)
        sums = []
        for y in [y for y in outs if verbs_of(xp).is_float(y.dtype)]:
            halves = [xp.real(y), 0.7 * xp.imag(y)] if verbs_of(xp).is_complex(y.dtype) else [y]
            for half in halves:
                flat = xp.reshape(half, (-1,))
                w = xp.asarray(weights(int(np.prod(half.shape))), dtype=flat.dtype)
                sums.append(xp.sum(flat * w))
        return sum(sums[1:], sums[0])

    return scalar


# ---- JAX: each takes the scalar function, the input as given, and the truth ----------------------


def jax_grad(f, x, truth):
    import jax

    yield jax.grad(f)(x), truth.gradient


def jax_vjp(f, x, truth):
    import jax

    y, pull = jax.vjp(f, x)
    one = 1.0 if isinstance(x, float) else np.ones(()) if isinstance(x, np.ndarray) else y * 0 + 1
    yield y, truth.value
    yield pull(one)[0], truth.gradient


def jax_jacrev(f, x, truth):
    import jax
    import jax.numpy as jnp

    rows = jax.jacrev(lambda x: jnp.stack([f(x), -3 * f(x)]))(x)
    yield rows, np.stack([truth.gradient, -3 * truth.gradient])


def jax_jvp(f, x, truth):
    import jax

    along = truth.along.item() if isinstance(x, float) else truth.along
    along = along if isinstance(x, (float, np.ndarray)) else jax.numpy.asarray(along)
    y, slope = jax.jvp(f, (x,), (along,))
    yield y, truth.value
    yield slope, np.sum(truth.gradient * truth.along)


def jax_vmap(f, x, truth):
    import jax
    import jax.numpy as jnp

    rows = truth.rows if isinstance(x, (float, np.ndarray)) else jnp.asarray(truth.rows)
    yield jax.vmap(f)(rows), truth.values
    yield jax.vmap(jax.grad(f))(rows)[0], truth.gradient


def jax_jit(f, x, truth):
    import jax

    y, g = jax.jit(jax.value_and_grad(f))(x)
    yield y, truth.value
    yield g, truth.gradient


# ---- TensorFlow ----------------------------------------------------------------------------------


def tape(f, x, truth):
    import tensorflow as tf

    with tf.GradientTape() as watching:
        if not isinstance(x, tf.Variable):
            watching.watch(x)
        y = f(x)
    yield y, truth.value
    # the gradient of gather is IndexedSlices
    yield tf.convert_to_tensor(watching.gradient(y, x)), truth.gradient


def tf_function(f, x, truth):
    import tensorflow as tf

    @tf.function(autograph=False)
    def both(x):
        with tf.GradientTape() as watching:
            if not isinstance(x, tf.Variable):
                watching.watch(x)
            y = f(x)
        return y, tf.convert_to_tensor(watching.gradient(y, x))

    y, g = both(x)
    yield y, truth.value
    yield g, truth.gradient


# ---- torch ---------------------------------------------------------------------------------------


def autograd(f, x, truth):
    import torch

    x = x if isinstance(x, torch.nn.Parameter) else x.clone().requires_grad_()
    y = f(x)
    yield y, truth.value
    yield torch.autograd.grad(y, x)[0], truth.gradient


def func_grad(f, x, truth):
    import torch

    g, y = torch.func.grad_and_value(f)(x)
    yield y, truth.value
    yield g, truth.gradient


def func_vjp(f, x, truth):
    import torch

    y, pull = torch.func.vjp(f, x)
    yield pull(torch.ones_like(y))[0], truth.gradient


def func_jacrev(f, x, truth):
    import torch

    rows = torch.func.jacrev(lambda x: torch.stack([f(x), -3 * f(x)]))(x)
    yield rows, np.stack([truth.gradient, -3 * truth.gradient])


def func_jvp(f, x, truth):
    import torch

    y, slope = torch.func.jvp(f, (x,), (torch.asarray(truth.along),))
    yield y, truth.value
    yield slope, np.sum(truth.gradient * truth.along)


def func_vmap(f, x, truth):
    import torch

    rows = torch.asarray(truth.rows)
    yield torch.func.vmap(f)(rows), truth.values
    yield torch.func.vmap(torch.func.grad(f))(rows)[0], truth.gradient


def compiled(f, x, truth):
    import torch

    torch.compiler.reset()
    x = x if isinstance(x, torch.nn.Parameter) else x.clone().requires_grad_()
    with warnings.catch_warnings():  # Dynamo warns about itself where the graph breaks
        warnings.simplefilter("ignore")
        y = torch.compile(f, backend="aot_eager")(x)
    yield y, truth.value
    yield torch.autograd.grad(y, x)[0], truth.gradient


THEIRS = {
    "jax": {
        "grad": jax_grad,
        "vjp": jax_vjp,
        "jacrev": jax_jacrev,
        "jvp": jax_jvp,
        "vmap": jax_vmap,
        "jit": jax_jit,
    },
    "tensorflow": {"tape": tape, "function": tf_function},
    "torch": {
        "autograd": autograd,
        "grad": func_grad,
        "vjp": func_vjp,
        "jacrev": func_jacrev,
        "jvp": func_jvp,
        "vmap": func_vmap,
        "compile": compiled,
    },
}


def inputs(backend, transform, truth):
    """The forms in which a transform takes the numbers `truth.x`."""
    x = truth.x
    if backend == "jax":
        import jax.numpy as jnp

        yield "array", jnp.asarray(x)
        yield "numpy", x
        if not x.ndim and transform != "vmap":
            yield "number", x.item()
    elif backend == "tensorflow":
        import tensorflow as tf

        yield "tensor", tf.constant(x)
        yield "variable", tf.Variable(x)
        if transform == "function":
            yield "numpy", x
    else:
        import torch

        yield "tensor", torch.asarray(x)
        yield "parameter", torch.nn.Parameter(torch.asarray(x))


def check(what, found):
    """Compare the results of a transform with NumPy's."""
    assert found
    for got, wanted in found:
        assert got is not None, f"{what}: no gradient"
        near = 2e-6 * (1 + np.abs(wanted).max())
        np.testing.assert_allclose(numpy_of(got), wanted, rtol=2e-6, atol=near, err_msg=what)
