"""Functions that call torch directly where that is enough, and those that array-api-compat lacks.

Two tensors of the same dtype need no promotion (`promotion`), and a reduction of floating-point
numbers needs no wider dtype, so both steps of array-api-compat are skipped.
"""

from __future__ import annotations

from typing import Any

import array_api_compat.torch as compat
import torch

from ...meanings.special.errors import FIRST, SMALL, ratio
from .. import edges
from ..limits import FloatInfo, IntInfo
from .fused import is_foreign
from .linalg import einsum as einsum
from .linalg import matmul as matmul
from .linalg import tensordot as tensordot
from .linalg import vecdot as vecdot
from .private import len_torch_dispatch_stack
from .promotion import differentiated, direct, evened, is_wide, promoted
from .promotion import result_type as result_type

add = direct("add")
atan2 = direct("atan2")
bitwise_and = direct("bitwise_and")
bitwise_left_shift = direct("bitwise_left_shift")
bitwise_or = direct("bitwise_or")
bitwise_right_shift = direct("bitwise_right_shift")
bitwise_xor = direct("bitwise_xor")
copysign = direct("copysign")
divide = direct("divide")
equal = direct("equal")
greater = direct("greater")
greater_equal = direct("greater_equal")
less = direct("less")
less_equal = direct("less_equal")
logical_and = direct("logical_and")
logical_or = direct("logical_or")
logical_xor = direct("logical_xor")
maximum = direct("maximum")
minimum = direct("minimum")
multiply = direct("multiply")
nextafter = direct("nextafter")
not_equal = direct("not_equal")
subtract = direct("subtract")


def floor_divide(x1, x2, /):
    """`floor_divide` with the derivative 0; `torch.floor_divide` has no derivative."""
    return torch.div(*promoted(x1, x2), rounding_mode="floor")


def remainder(x1, x2, /):
    """`torch.remainder`, also with a derivative for a Python number and a tensor, which torch's
    own does not have.
    """
    return torch.remainder(*promoted(x1, x2))


# Torch's compiler cannot promote these unsigned dtypes, even if both operands have the same one.
SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}


def where(condition, x1, x2, /):
    """`torch.where`. Wide unsigned integers, which the compiler does not support there, are
    selected as signed integers with the same bits.
    """
    if is_wide(x1) or is_wide(x2):
        x1, x2 = promoted(x1, x2)
    if not (isinstance(x1, torch.Tensor) and isinstance(x2, torch.Tensor) and x1.dtype is x2.dtype):
        return compat.where(condition, x1, x2)
    signed = SIGNED.get(x1.dtype)
    if signed is None:
        return torch.where(condition, x1, x2)
    return torch.where(condition, x1.view(signed), x2.view(signed)).view(x1.dtype)


def concat(arrays, /, *, axis=0):
    return compat.concat(evened(*arrays), axis=axis)


def stack(arrays, /, *, axis=0):
    return torch.stack(evened(*arrays), axis)


def clip(x, /, min=None, max=None):
    x, min, max = evened(x, min, max)
    return compat.clip(x, min, max)


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None):
    x, prepend, append = evened(x, prepend, append)
    return compat.diff(x, axis=axis, n=n, prepend=prepend, append=append)


torch_pow = direct("pow")


def pow(x1, x2, /):
    """`torch.pow`. It also has second derivatives at 0**0, where 1 is used as the base, and powers
    of a complex zero; torch has neither.
    """
    y = torch_pow(x1, x2)
    if not isinstance(x1, torch.Tensor) or not isinstance(x2, torch.Tensor):
        return y
    if y.is_complex():
        return _complex_pow(*promoted(x1, x2))
    if not y.is_floating_point() or not differentiated(y):
        return y
    return torch_pow(torch.where((x1 == 0) & (x2 == 0), 1, x1), x2)


def _complex_pow(x1, x2):
    """Complex powers. A power of zero is 0, 1 or NaN; at the exponent 1 its derivative is 1."""
    zero = x1 == 0
    at_zero = torch.where(x2.real > 0, x1 * (x2 == 1), torch.where(x2 == 0, 1.0, torch.nan))
    return torch.where(zero, at_zero, torch_pow(torch.where(zero, 1.0, x1), x2))


def logaddexp(x1, x2, /):
    """`torch.logaddexp`, whose derivative at infinities is the limit; torch's is NaN."""
    x1, x2 = promoted(x1, x2)
    if differentiated(x1) or differentiated(x2):
        return edges.logaddexp(torch, *torch.broadcast_tensors(x1, x2))
    return torch.logaddexp(x1, x2)


def hypot(x1, x2, /):
    """`torch.hypot`, whose derivative at the origin is 0, like that of a norm; torch's is 0/0."""
    x1, x2 = promoted(x1, x2)
    y = torch.hypot(x1, x2)
    if not differentiated(y):
        return y
    origin = y.detach() == 0
    return torch.where(origin, y.detach(), torch.hypot(torch.where(origin, 1.0, x1), x2))


HAS_MKL = torch.backends.mkl.is_available()


def erf(x, /):
    """`torch.erf`. In float32 on a CPU, Inductor's, and torch's own without MKL, have an error of
    eps whatever the value is: small numbers have no right digit, so they have another formula here.
    """
    if x.dtype is not torch.float32 or not x.is_cpu:
        return torch.erf(x)
    if HAS_MKL and not torch.compiler.is_compiling() and len_torch_dispatch_stack() == 0:
        return torch.erf(x)
    is_small = torch.abs(x) < FIRST
    small = torch.where(is_small, x, 0.0)
    return torch.where(is_small, small + small * ratio(SMALL, small * small), torch.erf(x))


def unstack(x, /, *, axis=0):
    """`torch.unbind`: one operation, whose derivative is also one operation and supports vmap."""
    return torch.unbind(x, axis)


moveaxis = torch.movedim  # torch.moveaxis, its alias, cannot be vmapped twice
# Looked up once: the budget of a call is half a microsecond.
torch_sum, torch_reshape = torch.sum, torch.reshape


def reshape(x, /, shape, *, copy=None):
    return torch_reshape(x, shape) if copy is None else compat.reshape(x, shape, copy=copy)


def roll(x, /, shift, *, axis=None):
    if isinstance(shift, int) and isinstance(axis, (tuple, list)):
        shift = (shift,) * len(axis)  # one number applies to every axis
    return torch.roll(x, shift, axis)  # pyright: ignore[reportArgumentType]


def sum(x, /, *, axis=None, dtype=None, keepdims=False):
    if dtype is None and x.dtype.is_floating_point:
        if axis is None and not keepdims:
            return torch_sum(x)
        if type(axis) is int:
            return torch_sum(x, axis, keepdims) if keepdims else torch_sum(x, axis)
    return compat.sum(x, axis=axis, dtype=dtype, keepdims=keepdims)


def prod(x, /, *, axis=None, dtype=None, keepdims=False):
    if dtype is None and x.dtype.is_floating_point:
        if axis is None and not keepdims:
            return torch.prod(x)
        if type(axis) is int:
            return torch.prod(x, axis, keepdims)
    return compat.prod(x, axis=axis, dtype=dtype, keepdims=keepdims)


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    if axis == ():  # no axes; torch takes () as all axes
        return var(x.unsqueeze(-1), axis=-1, correction=correction)
    if correction != 0 and not edges.is_left(x.shape, axis, correction):
        return torch.mean(x, axis, keepdim=keepdims) * torch.nan
    return torch.var(x, axis, correction=correction, keepdim=keepdims)


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    if axis == ():
        return std(x.unsqueeze(-1), axis=-1, correction=correction)
    if correction != 0 and not edges.is_left(x.shape, axis, correction):
        return torch.mean(x, axis, keepdim=keepdims) * torch.nan
    y = torch.std(x, axis, correction=correction, keepdim=keepdims)
    if not differentiated(y):
        return y
    # Equal numbers differ from their mean only by rounding, and a quotient of two rounding errors
    # is not a derivative. There the derivative is 0, like that of a norm at 0.
    eps = torch.finfo(torch.promote_types(x.dtype, torch.float32)).eps  # sums are at least float32
    center = torch.mean(x.detach(), axis, keepdim=keepdims)
    return torch.where(y.detach() <= 8 * eps * center.abs(), y.detach(), y)


def max(x, /, *, axis=None, keepdims=False):
    if axis == ():
        return x.clone()
    return torch.amax(x, () if axis is None else axis, keepdims)


def min(x, /, *, axis=None, keepdims=False):
    if axis == ():
        return x.clone()
    return torch.amin(x, () if axis is None else axis, keepdims)


def take(x, indices, /, *, axis=None):
    """`take` of array-api-compat, but an index out of bounds always raises an IndexError."""
    try:
        return compat.take(x, indices.long(), axis=axis)
    except (IndexError, RuntimeError) as error:
        if "out of" not in str(error) or "Dimension" in str(error):
            raise
        _beyond("take", indices, x.shape[axis or 0])


def take_along_axis(x, indices, /, *, axis=-1):
    """An index beyond the end raises; `torch.take_along_dim` wraps it around."""
    size = x.shape[axis]
    indices = indices.long()  # before the check: a narrow dtype may not hold the size
    places = torch.where(indices < 0, indices + size, indices)
    if x.shape != places.shape and x.ndim == places.ndim:
        axis %= x.ndim
        others = lambda y: (*y.shape[:axis], 1, *y.shape[axis + 1 :])
        batch = list(torch.broadcast_shapes(others(x), others(places)))
        spread = lambda y: y.expand(*batch[:axis], y.shape[axis], *batch[axis + 1 :])
        x, places = spread(x), spread(places)
    try:
        return torch.gather(x, axis, places)
    except RuntimeError as error:
        if "out of bounds" not in str(error):
            raise
        _beyond("take_along_axis", indices, size)


def _beyond(function, indices, size):
    """Raise an IndexError that names the allowed range and the first index out of bounds. Under
    vmap the indices cannot be read, and it names only the range.
    """
    indices = indices.long()
    wrong = () if is_foreign() else indices[(indices < -size) | (indices >= size)].tolist()
    came = f", got {wrong[0]}" if wrong else ""
    raise IndexError(f"{function}: needed indices from {-size} to {size - 1}{came}") from None


def searchsorted(x1, x2, /, *, side="left", sorter=None):
    """`searchsorted`, in which a NaN is greater than any number, as in sorting. Torch's own does
    not find NaN.
    """
    x1, x2 = promoted(x1, x2)
    if not x1.is_floating_point():
        return compat.searchsorted(x1, x2, side=side, sorter=sorter)  # pyright: ignore
    x1 = x1 if sorter is None else torch.index_select(x1, 0, sorter)
    unknown = torch.isnan(x1)
    count = (~unknown).sum()
    filled = torch.where(unknown, torch.inf, x1)
    places = compat.searchsorted(filled, x2, side=side)  # pyright: ignore
    last = count if side == "left" else x1.numel()
    return torch.where(torch.isnan(x2), last, torch.minimum(places, count))


def sign(x, /):
    """`sign`. array-api-compat assigns NaN in place; this does not, so it supports vmap and
    gradients.
    """
    if x.dtype.is_complex:
        return torch.sgn(x)
    if x.dtype.is_floating_point:
        return torch.where(torch.isnan(x), torch.nan, torch.sign(x))
    return torch.sign(x)


def broadcast_arrays(*arrays):
    return list(compat.broadcast_arrays(*arrays))


def meshgrid(*arrays, indexing: Any = "xy"):
    return list(compat.meshgrid(*arrays, indexing=indexing))


def unique_all(x, /):
    """`unique_all`. Each value is taken from `x` at its first position, so that gradients flow;
    `torch.unique` has no derivative.
    """
    values, inverse, counts = torch.unique(x.detach(), return_inverse=True, return_counts=True)
    counts = torch.where(torch.isnan(values), 1, counts)  # each NaN is a separate value
    places = torch.arange(x.numel(), device=x.device)
    first = torch.full_like(counts, x.numel()).scatter_reduce(
        0, inverse.reshape(-1), places, "amin"
    )
    return compat.UniqueAllResult(x.reshape(-1)[first], first, inverse, counts)


def unique_counts(x, /):
    found = unique_all(x)
    return compat.UniqueCountsResult(found.values, found.counts)


def unique_inverse(x, /):
    found = unique_all(x)
    return compat.UniqueInverseResult(found.values, found.inverse_indices)


def unique_values(x, /):
    return unique_all(x).values


def finfo(type, /):
    """`torch.finfo` of a dtype or of a tensor's dtype. Its `dtype` is a dtype, not a string."""
    limits = torch.finfo(getattr(type, "dtype", type))
    dtype = getattr(torch, limits.dtype)
    return FloatInfo(limits.bits, limits.eps, limits.max, limits.min, limits.smallest_normal, dtype)


def iinfo(type, /):
    """`torch.iinfo` of a dtype or of a tensor's dtype. Its `dtype` is a dtype, not a string."""
    dtype = getattr(type, "dtype", type)
    limits = torch.iinfo(dtype)
    return IntInfo(limits.bits, limits.max, limits.min, dtype)


class __array_namespace_info__(compat.__array_namespace_info__):
    def devices(self) -> Any:
        """The devices of this machine. array-api-compat tries every kind of device that torch
        knows, which causes warnings.
        """
        accelerator = torch.accelerator.current_accelerator()
        count = torch.accelerator.device_count() if accelerator else 0
        kind = accelerator.type if accelerator else ""
        return [torch.device("cpu"), *(torch.device(kind, i) for i in range(count))]
