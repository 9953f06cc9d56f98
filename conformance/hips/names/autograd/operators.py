"""autograd's operators, on its core. `argnum` chooses one argument, or several by a sequence."""

import inspect
import warnings

import numpy as np

import isomorph as iso

from . import core
from .core import vspace
from .wrap_util import unary_to_nary

make_vjp = unary_to_nary(core.make_vjp)
make_jvp = unary_to_nary(core.make_jvp)


def _one(name, ans):
    if vspace(ans).size != 1:
        raise TypeError(f"{name}: needed a real scalar output, got {vspace(ans)}")


@unary_to_nary
def grad(fun, x):
    """
    Returns a function which computes the gradient of a scalar function."""
    vjp, ans = core.make_vjp(fun, x)
    _one("grad", ans)
    return vjp(vspace(ans).ones())


@unary_to_nary
def value_and_grad(fun, x):
    """The value and the gradient."""
    vjp, ans = core.make_vjp(fun, x)
    _one("value_and_grad", ans)
    return ans, vjp(vspace(ans).ones())


@unary_to_nary
def grad_and_aux(fun, x):
    """The gradient of the first output, and the second output."""
    kept = {}

    def first(x):
        value, kept["aux"] = fun(x)
        return value

    g = grad(first)(x)
    return g, iso.stop_gradient(kept["aux"])


@unary_to_nary
def elementwise_grad(fun, x):
    """The sums of the columns of the Jacobian."""
    vjp, ans = core.make_vjp(fun, x)
    if vspace(ans).iscomplex:
        raise TypeError("elementwise_grad: needed a real output")
    return vjp(vspace(ans).ones())


@unary_to_nary
def deriv(fun, x):
    return core.make_jvp(fun, x)(vspace(x).ones())[1]


@unary_to_nary
def jacobian(fun, x):
    vjp, ans = core.make_vjp(fun, x)
    rows = [vjp(g) for g in vspace(ans).standard_basis()]
    return np.reshape(np.stack(rows), np.shape(ans) + np.shape(x))


@unary_to_nary
def holomorphic_grad(fun, x):
    if not vspace(x).iscomplex:
        warnings.warn("Input to holomorphic_grad is not complex", stacklevel=2)
    return grad(lambda x: np.real(fun(x)))(x)


def grad_named(fun, argname):
    return grad(fun, list(inspect.signature(fun).parameters).index(argname))


@unary_to_nary
def hessian(fun, x):
    return jacobian(jacobian(fun))(x)


@unary_to_nary
def make_hvp(fun, x):
    return core.make_vjp(grad(fun), x)


def hessian_tensor_product(fun, argnum=0):
    slope = grad(fun, argnum)

    def along(*args, **kw):
        *args, vector = args
        return np.tensordot(slope(*args, **kw), vector, np.ndim(vector))

    return grad(along, argnum)


def tensor_jacobian_product(fun, argnum=0):
    def along(*args, **kw):
        *args, vector = args
        return np.tensordot(vector, fun(*args, **kw), np.ndim(vector))

    return jacobian(along, argnum)


hessian_vector_product = hessian_tensor_product
vector_jacobian_product = tensor_jacobian_product


def make_ggnvp(f, g=lambda x: 0.5 * np.sum(x**2, axis=-1), f_argnum=0):
    """Products of the generalized Gauss-Newton matrix with vectors."""

    @unary_to_nary
    def maker(f, x):
        back, y = core.make_vjp(f, x)
        curve, _ = core.make_vjp(grad(g), y)
        push = core.make_jvp(f, x)
        return lambda v: back(curve(push(v)[1]))

    return maker(f, f_argnum)


def multigrad_dict(fun):
    """The gradients with respect to all arguments, by their names."""
    sig = inspect.signature(fun)

    def gradients(*args, **kw):
        given = sig.bind(*args, **kw)
        given.apply_defaults()

        def named(values):
            again = sig.bind_partial()
            again.arguments.update(values)
            return fun(*again.args, **again.kwargs)

        return grad(named)(dict(given.arguments))

    return gradients


def checkpoint(fun):
    """`fun`, computed again in the backward pass."""
    return iso.checkpoint(fun)
