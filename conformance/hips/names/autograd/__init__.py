"""The names of HIPS autograd over isomorph, so that its test suite and examples run on it.

`autograd.numpy` and `autograd.scipy` are `isomorph.numpy` and `isomorph.scipy`. The operators are
in `operators.py`, on `iso.vjp` and `iso.jvp`. What has nothing to do with differentiation is taken
from a checkout of autograd, whose path is in the environment variable HIPS_AUTOGRAD: its checks of
gradients (`test_util`), its optimizers, its flattening of nests.
"""

import importlib
import os
import sys

import isomorph.numpy
import isomorph.scipy

__path__ = [*__path__, os.path.join(os.environ["HIPS_AUTOGRAD"], "autograd")]
numpy, scipy = isomorph.numpy, isomorph.scipy
for _name in (
    "numpy", "numpy.linalg", "numpy.fft", "numpy.random",
    "scipy", "scipy.special", "scipy.stats", "scipy.linalg", "scipy.signal", "scipy.integrate",
):  # fmt: skip
    sys.modules[f"{__name__}.{_name}"] = importlib.import_module(f"isomorph.{_name}")
for _name in (
    "norm", "t", "beta", "gamma", "chi2", "poisson", "dirichlet", "multivariate_normal",
):  # fmt: skip
    sys.modules[f"{__name__}.scipy.stats.{_name}"] = getattr(scipy.stats, _name)

from .builtins import dict, isinstance, list, tuple, type
from .core import primitive
from .operators import (
    checkpoint,
    deriv,
    elementwise_grad,
    grad,
    grad_and_aux,
    grad_named,
    hessian,
    hessian_tensor_product,
    hessian_vector_product,
    holomorphic_grad,
    jacobian,
    make_ggnvp,
    make_hvp,
    make_jvp,
    make_vjp,
    multigrad_dict,
    tensor_jacobian_product,
    value_and_grad,
    vector_jacobian_product,
)
