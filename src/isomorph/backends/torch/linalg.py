"""Linear algebra whose derivative is another one in torch than with NumPy."""

from __future__ import annotations

import torch


def cholesky(x, /, *, upper=False):
    """Of a complex matrix torch's gradient is Hermitian only up to a part that no Hermitian
    direction sees; here without it.
    """
    if x.is_complex():
        hermitian = (x + x.mH) / 2  # exactly x where x is Hermitian
        x = hermitian + (x - hermitian).detach()
    return torch.linalg.cholesky(x, upper=upper)
