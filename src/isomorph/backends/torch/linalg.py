"""Linear algebra that torch computes faster, or differentiates otherwise than NumPy."""

from __future__ import annotations

import array_api_compat.torch as compat
import torch


def cholesky(x, /, *, upper=False):
    """Of a complex matrix torch's gradient is Hermitian only up to a part that no Hermitian
    direction sees; here without it.
    """
    if x.is_complex():
        hermitian = (x + x.mH) / 2  # exactly x where x is Hermitian
        x = hermitian + (x - hermitian).detach()
    return torch.linalg.cholesky(x, upper=upper)


def vecdot(x1, x2, /, *, axis=-1):
    """array-api-compat goes through matmul, thirty times slower on long vectors."""
    if x1.dtype is x2.dtype and x1.dtype.is_floating_point:
        return torch.linalg.vecdot(x1, x2, dim=axis)
    return compat.vecdot(x1, x2, axis=axis)
