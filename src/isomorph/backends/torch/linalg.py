"""Linear algebra that torch computes faster, or differentiates differently from NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import array_api_compat.torch as compat
import array_api_compat.torch.linalg as native
import torch

from .fused import is_more_than_grad
from .private import is_functorch_wrapped_tensor, len_torch_dispatch_stack
from .promotion import alike, differentiated, direct, evened, promoted, result_type

_matmul = direct("matmul")
outer = alike(native.outer)
cross = alike(native.cross)


def cholesky(x, /, *, upper=False):
    """The Cholesky factor. For a complex matrix, torch's gradient also has a part that is not
    Hermitian. That part has no effect in Hermitian directions, and is removed here.
    """
    if x.is_complex():
        hermitian = (x + x.mH) / 2  # exactly x if x is Hermitian
        x = hermitian + (x - hermitian).detach()
    return torch.linalg.cholesky(x, upper=upper)


# CUDA has no products of integers. They are made of exact products of float64.
EXACT = 2**21  # how many products of two digits of 16 bits float64 can add without rounding


def matmul(x1, x2, /):
    if not _needs_digits(x1, x2):
        return _matmul(x1, x2)
    return product_of_digits(torch.matmul, *promoted(x1, x2), x1.shape[-1])


def product_of_digits(
    product: Callable[..., torch.Tensor], x1: torch.Tensor, x2: torch.Tensor, terms: int
) -> torch.Tensor:
    """A sum of products of integers, modulo the size of their dtype, as on a CPU. `product` gets
    the digits of the integers as float64, and adds at most `terms` products: digits are so short
    that no sum is rounded.
    """
    bits = 16 if terms <= EXACT else 8
    count = max(1, x1.dtype.itemsize * 8 // bits)
    digits = [
        [(x.long() >> bits * k & 2**bits - 1).double() for k in range(count)] for x in (x1, x2)
    ]
    pairs = [(i, j) for i in range(count) for j in range(count - i)]
    parts = (product(digits[0][i], digits[1][j]).long() * 2 ** (bits * (i + j)) for i, j in pairs)
    return sum(parts).to(x1.dtype)  # pyright: ignore


def _needs_digits(x1: torch.Tensor, x2: torch.Tensor) -> bool:
    """Whether both are integers on a GPU."""
    return getattr(x1, "is_cuda", False) and not any(
        x.is_floating_point() or x.is_complex() or x.dtype is torch.bool for x in (x1, x2)
    )


def einsum(subscripts, /, *operands):
    """`torch.einsum` of operands that may differ in dtype."""
    if len({x.dtype for x in operands}) > 1:
        dtype = result_type(*(x.dtype for x in operands))
        operands = [x.to(dtype) for x in operands]
    if len(operands) == 2 and _needs_digits(*operands):
        x1, x2 = operands
        at_most = max(x1.numel(), x2.numel()) ** 2
        return product_of_digits(partial(torch.einsum, subscripts), x1, x2, at_most)
    return torch.einsum(subscripts, *operands)


_tensordot = alike(compat.tensordot)


def tensordot(x1, x2, /, *, axes: Any = 2):
    """`tensordot`. Torch would broadcast a summed axis of size 1. This raises instead, as the
    standard and the other frameworks do.
    """
    if isinstance(axes, int):
        pairs = [*zip(x1.shape[x1.ndim - axes :], x2.shape[:axes])]
    else:
        first, second = axes = tuple([at] if isinstance(at, int) else list(at) for at in axes)
        pairs = [(x1.shape[i], x2.shape[j]) for i, j in zip(first, second)]
    if any(m != n for m, n in pairs):
        raise ValueError(
            f"tensordot: needed equal sizes along axes {axes}, got {x1.shape} and {x2.shape}"
        )
    if _needs_digits(x1, x2):
        product = partial(torch.tensordot, dims=axes)
        return product_of_digits(product, *promoted(x1, x2), math.prod(m for m, _ in pairs))
    return _tensordot(x1, x2, axes=axes)


def vecdot(x1, x2, /, *, axis=-1):
    """`vecdot`. array-api-compat uses matmul, which is thirty times slower on long vectors. Torch
    would broadcast a summed axis of size 1; this raises instead.
    """
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"vecdot: needed equal sizes along {axis}, got {x1.shape} and {x2.shape}")
    if x1.dtype is x2.dtype and x1.dtype.is_floating_point:
        return torch.linalg.vecdot(x1, x2, dim=axis)
    x1, x2 = evened(x1, x2)
    mapped = is_functorch_wrapped_tensor(x1) or is_functorch_wrapped_tensor(x2)
    if not (mapped or _needs_digits(x1, x2)):
        return compat.vecdot(x1, x2, axis=axis)
    product = x1.movedim(axis, -1).conj() * x2.movedim(axis, -1)  # vmap has no rule for moveaxis
    return torch.sum(product, -1, dtype=product.dtype)


# Solutions by LU factors and singular values. On a GPU cuSOLVER takes a NaN in a matrix for 0.


def _keep_nan(x: torch.Tensor, y: torch.Tensor, axes: int) -> torch.Tensor:
    """On a GPU, the result of a matrix with a NaN becomes NaN, and so does its gradient. `axes` is
    how many axes `y` has for each matrix.
    """
    if not x.is_cuda:
        return y
    lost = torch.isnan(x).any(-1).any(-1)
    factor = torch.ones_like(lost, dtype=x.dtype.to_real()).masked_fill(lost, torch.nan)
    return y * factor.reshape(factor.shape + (1,) * axes)


def inv(x, /):
    return _keep_nan(x, torch.linalg.inv(x), 2)


def slogdet(x, /):
    found = torch.linalg.slogdet(x)
    return type(found)([_keep_nan(x, y, 0) for y in found]) if x.is_cuda else found


def svd(x, /, *, full_matrices=True):
    found = torch.linalg.svd(x, full_matrices=full_matrices)
    if not x.is_cuda:
        return found
    return type(found)([_keep_nan(x, y, n) for y, n in zip(found, (2, 1, 2))])


def svdvals(x, /):
    return _keep_nan(x, torch.linalg.svdvals(x), 1)


def pinv(x, /, *, rtol=None):
    return _keep_nan(x, torch.linalg.pinv(x, rtol=rtol), 2)


def solve(x1, x2, /):
    return _keep_nan(x1, _solve(x1, x2), 1 if x2.ndim == 1 else 2)


def _solve(x1, x2):
    """Under vmap, torch misinterprets vectors and operands that need broadcasting: there all become
    matrices with the same batch.
    """
    if not (is_functorch_wrapped_tensor(x1) or is_functorch_wrapped_tensor(x2)):
        return native.solve(x1, x2)
    dtype = torch.result_type(x1, x2)
    matrix = (x2[:, None] if x2.ndim == 1 else x2).to(dtype)
    batch = torch.broadcast_shapes(x1.shape[:-2], matrix.shape[:-2])
    left = x1.to(dtype).expand(*batch, *x1.shape[-2:])
    y = torch.linalg.solve(left, matrix.expand(*batch, *matrix.shape[-2:]))
    return y[..., 0] if x2.ndim == 1 else y


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """`vector_norm`. Torch's gradient of the infinity norm is 0 if an element is NaN, so `amax` and
    `amin` are used here.
    """
    if not math.isinf(ord) or axis == () or not differentiated(x):
        return native.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)
    over = () if axis is None else axis
    return (torch.amax if ord > 0 else torch.amin)(torch.abs(x), over, keepdims)


def matrix_norm(x, /, *, keepdims=False, ord: Any = "fro"):
    """`matrix_norm`, whose gradient at a matrix of zeros is 0."""
    y = native.matrix_norm(x, keepdims=keepdims, ord=ord)  # pyright: ignore
    if ord in (2, -2, "nuc"):
        y = _keep_nan(x, y, 2 if keepdims else 0)
    if ord in ("fro", None) or not differentiated(x):
        return y
    some = torch.any((x != 0).flatten(-2), -1)
    return torch.where(some[..., None, None] if keepdims else some, y, 0)


def det(x, /):
    """The determinant. Torch's second derivative at a singular matrix is NaN, or wrong for a
    complex one, so `Det` has its own. In a trace and under vmap, where values cannot be read,
    torch's is used.
    """
    own = x.ndim < 2 or not differentiated(x) or _is_blind()
    return _keep_nan(x, torch.linalg.det(x) if own else Det.apply(x), 0)


def _is_blind() -> bool:
    """Whether a program is being traced, or a function is mapped over examples."""
    return len_torch_dispatch_stack() > 0 or is_more_than_grad()


class Det(torch.autograd.Function):
    @staticmethod
    # pyright: ignore[reportIncompatibleMethodOverride]
    def forward(x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.det(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: torch.Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> torch.Tensor:  # pyright: ignore
        (x,) = ctx.saved_tensors
        singular = _is_singular(x.detach())[..., None, None]
        if not singular.any():
            return grad[..., None, None] * (det(x)[..., None, None] * torch.linalg.inv(x)).mH
        eye = torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)
        safe = torch.where(singular, eye, x)
        regular = det(safe)[..., None, None] * torch.linalg.inv(safe)
        return grad[..., None, None] * torch.where(singular, _adjugate(x), regular).mH


def _is_singular(x: torch.Tensor) -> torch.Tensor:
    """Which matrices are singular in floating point. A matrix with a NaN is not."""
    inverse, wrong = torch.linalg.inv_ex(x)
    size = lambda y: y.abs().sum(-2).amax(-1) if y.shape[-1] else y.abs().sum((-2, -1))
    condition = size(x) * size(inverse) * x.shape[-1] * torch.finfo(x.dtype).eps
    return (wrong != 0) | (condition > 1)


def _adjugate(x: torch.Tensor) -> torch.Tensor:
    """The adjugate, as a polynomial in x (Faddeev and LeVerrier). It and its derivatives are exact
    even if singular values are equal or zero.
    """
    n = x.shape[-1]
    eye = torch.eye(n, dtype=x.dtype, device=x.device).expand(x.shape)
    m = eye
    for k in range(1, n):
        m = x @ m
        m = m - m.diagonal(dim1=-2, dim2=-1).sum(-1)[..., None, None] / k * eye
    return m if n % 2 else -m
