"""Names of the standard whose result has another dtype or type in `jax.numpy`, or whose derivative
is wrong there.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.custom_derivatives import SymbolicZero
from jax.dtypes import canonicalize_dtype

from .. import edges
from ..limits import FloatInfo

erf = jax.scipy.special.erf


# Taking by index: JAX moves indices out of bounds to the edge, or returns NaN.


def take(x, indices, /, *, axis=None):
    """`jnp.take`. An index out of bounds raises if its value can be read now. Otherwise the result
    is NaN, or for an array of integers the nearest element.
    """
    if axis is None and x.ndim != 1:
        raise ValueError(f"take: needed an axis for {x.ndim} dimensions, got None")
    size = x.shape[axis or 0]
    mode = _bounded("take", x, indices, size)
    if mode is None:
        return jnp.take(x, _wide(indices), axis=axis)
    return jnp.take(x, _counted(indices, size, mode), axis=axis, mode=mode)


def take_along_axis(x, indices, /, *, axis=-1):
    """`jnp.take_along_axis`, with the same rules for indices out of bounds as `take`."""
    size = x.shape[axis]
    mode = _bounded("take_along_axis", x, indices, size)
    if mode is None:
        return jnp.take_along_axis(x, _wide(indices), axis=axis)
    return jnp.take_along_axis(x, _counted(indices, size, mode), axis=axis, mode=mode)


def _wide(indices):
    """Indices in a dtype of at least 32 bits. JAX adds the size of the axis to a negative index in
    the dtype of the index, which may be too narrow for it.
    """
    return counting(indices) if isinstance(indices, jax.Array) else indices


def counting(indices):
    """Integers in a dtype that holds every size. Narrow ones become int32. The others keep their
    dtype: uint64 promoted with a signed dtype would become a float.
    """
    return indices.astype(jnp.int32) if indices.dtype.itemsize < 4 else indices


def _bounded(function, x, indices, size):
    """None if all indices are known to be in bounds; else JAX's mode for those that are not."""
    found = span(indices)
    if found is None:
        return "fill" if jnp.issubdtype(x.dtype, jnp.inexact) else "clip"
    if found[0] < -size or found[1] >= size:
        wrong = found[0] if found[0] < -size else found[1]
        raise IndexError(f"{function}: needed indices from {-size} to {size - 1}, got {wrong}")
    return None


def _counted(indices, size, mode):
    """The indices, with negative ones counted from the start. Those out of bounds are moved to the
    edge, or with the mode "fill" to one beyond it.
    """
    wide = counting(indices)
    if jnp.issubdtype(wide.dtype, jnp.signedinteger):
        wide = jnp.where(wide < 0, wide + size, wide)
    if mode == "clip":
        return jnp.clip(wide, 0, size - 1)
    return jnp.where((wide < 0) | (wide > size), size, wide)


def span(indices):
    """The minimum and maximum of an array of integers on a CPU, (0, -1) if it is empty; None while
    it is traced, or if a device would have to be waited for.
    """
    if isinstance(indices, Tracer):
        return None
    if isinstance(indices, jax.Array):
        if any(device.platform != "cpu" for device in indices.devices()):
            return None
        indices = np.asarray(indices)
    return (int(indices.min()), int(indices.max())) if indices.size else (0, -1)


def pad(x, widths, /, mode="constant", *, constant_values=0):
    """`jnp.pad` with a constant."""
    edges.check_mode(mode)
    return jnp.pad(x, widths, constant_values=constant_values)


def permute_dims(x, /, axes):
    """`jnp.permute_dims`, also with negative axes, which JAX refuses."""
    return jnp.transpose(x, axes)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """`jnp.cumulative_prod`, with integers widened as in `prod`."""
    if dtype is None and jnp.issubdtype(x.dtype, jnp.integer):
        signed = jnp.issubdtype(x.dtype, jnp.signedinteger)
        dtype = canonicalize_dtype(np.int64 if signed else np.uint64)
    return jnp.cumulative_prod(x, axis=axis, dtype=dtype, include_initial=include_initial)


def searchsorted(x1, x2, /, *, side="left", sorter=None):
    """`jnp.searchsorted`, with positions in the same dtype as all other indices."""
    places = jnp.searchsorted(x1, x2, side=side, sorter=sorter)
    return places.astype(canonicalize_dtype(np.int64))


def finfo(type, /):
    """`jnp.finfo` in Python floats; of a dtype or an array."""
    limits = jnp.finfo(getattr(type, "dtype", type))
    return FloatInfo(
        limits.bits,
        float(limits.eps),
        float(limits.max),
        float(limits.min),
        float(limits.smallest_normal),
        limits.dtype,
    )


def acosh(x, /):
    """`jnp.acosh` with the right derivative for complex numbers: left of the imaginary axis JAX's
    has the wrong sign.
    """
    return _acosh(x) if jnp.iscomplexobj(x) else jnp.acosh(x)


@jax.custom_jvp
def _acosh(z):
    return jnp.acosh(z)


@_acosh.defjvp
def _acosh_jvp(primals, tangents):
    (z,), (dz,) = primals, tangents
    return _acosh(z), dz / (jnp.sqrt(z - 1) * jnp.sqrt(z + 1))


def logaddexp(x1, x2, /):
    """`jnp.logaddexp`, with the derivative ½ for each of two equal infinities, where JAX's is NaN,
    or 1 for each.
    """
    return _logaddexp(x1, x2)


@jax.jit
def _logaddexp(x1, x2):
    both = jnp.result_type(x1, x2)
    if not jnp.issubdtype(both, jnp.floating):
        return jnp.logaddexp(x1, x2)
    x1, x2 = jnp.broadcast_arrays(jnp.astype(x1, both), jnp.astype(x2, both))
    return edges.logaddexp(jnp, x1, x2)


def hypot(x1, x2, /):
    """`jnp.hypot`, with a derivative that does not overflow and is 0 at the origin. JAX's squares
    the numbers, which overflows, and is not 0 there.
    """
    return _compiled_hypot(x1, x2)


@jax.custom_jvp
def _hypot(x, y):
    return jnp.hypot(x, y)


@_hypot.defjvp
def _hypot_jvp(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    far = _hypot(x, y)
    safe = jnp.where(far == 0, 1, far)
    return far, x / safe * dx + y / safe * dy


@jax.jit
def _compiled_hypot(x1, x2):
    both = jnp.result_type(x1, x2)
    if not jnp.issubdtype(both, jnp.floating):
        return jnp.hypot(x1, x2)
    return _hypot(*jnp.broadcast_arrays(jnp.astype(x1, both), jnp.astype(x2, both)))


def sign(x, /):
    """`jnp.sign` (z/|z|) with its derivative for complex numbers, which in JAX is zero."""
    return _sign(x) if jnp.iscomplexobj(x) else jnp.sign(x)


@jax.custom_jvp
def _sign(z):
    return jnp.sign(z)


@_sign.defjvp
def _sign_jvp(primals, tangents):
    """Only a change along the unit circle counts; the derivative at zero is zero."""
    (z,), (dz,) = primals, tangents
    y = _sign(z)
    length = jnp.abs(jnp.where(z == 0, 1, z))
    around = (dz - y * jnp.real(jnp.conj(y) * dz)) / length
    return y, jnp.where(z == 0, 0, around)


def pow(x1, x2, /):
    """`jnp.pow`, with the derivative 0 at 0**0.0, because x**0.0 is constant; JAX computes 0 times
    inf.
    """
    if isinstance(x2, (int, float, complex)) and (x2 != 0 or isinstance(x2, int)):
        return jnp.pow(x1, x2)
    return _compiled_pow(x1, x2)


@jax.custom_jvp
def _pow(x, y):
    z = jnp.pow(x, y)
    if not jnp.iscomplexobj(z):
        return z
    return jnp.where((x == 0) & (jnp.real(y) > 0), 0, z)  # computed by logarithms it is NaN


def _pow_jvp(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    z = _pow(x, y)
    dz = jnp.zeros_like(z)
    if type(dx) is not SymbolicZero:  # x**0 is the constant 1, even for NaN
        constant = y == 0
        dz += dx * jnp.where(constant, 0, y * _pow(x, jnp.where(constant, 1, y - 1)))
    if type(dy) is not SymbolicZero:  # 0**y is constant; infinite for y < 0
        constant = (x == 0) & (jnp.real(y) >= 0)
        dz += dy * jnp.where(constant, 0, z * jnp.log(jnp.where(constant, 1, x)))
    return z, dz


_pow.defjvp(_pow_jvp, symbolic_zeros=True)


@jax.jit
def _compiled_pow(x1, x2):
    both = jnp.result_type(x1, x2)
    if jnp.issubdtype(both, jnp.inexact) and not jnp.issubdtype(jnp.result_type(x2), jnp.integer):
        return _pow(jnp.astype(x1, both), jnp.astype(x2, both))
    return jnp.pow(x1, x2)  # integers have the right derivative


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    """`jnp.var`. Where it would divide by 0 or a negative number, value and gradient are NaN; JAX's
    gradient is 0.
    """
    if correction == 0 or edges.is_left(x.shape, axis, correction):
        return jnp.var(x, axis, correction=correction, keepdims=keepdims)
    return jnp.mean(x, axis, keepdims=keepdims) * jnp.nan


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    """`jnp.std`, with the derivative 0 if all numbers are equal, like that of a norm at 0; JAX's is
    0/0.
    """
    if correction == 0 or edges.is_left(x.shape, axis, correction):
        return _compiled_std(x, axis, correction, keepdims)
    return jnp.mean(x, axis, keepdims=keepdims) * jnp.nan


@partial(jax.custom_jvp, nondiff_argnums=(1, 2, 3))
def _std(x, axis, correction, keepdims):
    return jnp.std(x, axis, correction=correction, keepdims=keepdims)


@_std.defjvp
def _std_jvp(axis, correction, keepdims, primals, tangents):
    y = _std(*primals, axis, correction, keepdims)
    var = partial(jnp.var, axis=axis, correction=correction, keepdims=keepdims)
    dv = jax.jvp(var, primals, tangents)[1]
    # Equal up to the rounding of their mean: a quotient of two rounding errors is not a derivative.
    center = jnp.abs(jnp.mean(jax.lax.stop_gradient(primals[0]), axis, keepdims=keepdims))
    flat = y <= 8 * jnp.finfo(jnp.promote_types(y.dtype, jnp.float32)).eps * center
    return y, jnp.where(flat, 0, dv / (2 * jnp.where(flat, 1, y)))


_compiled_std = jax.jit(_std, static_argnums=(1, 2, 3))


# Maximum and minimum: XLA drops the NaN of JAX's derivative next to a NaN.


def max(x, /, *, axis=None, keepdims=False):
    return _largest(x, axis, keepdims) if _is_traced(x) else jnp.max(x, axis, keepdims=keepdims)


def min(x, /, *, axis=None, keepdims=False):
    return -_largest(-x, axis, keepdims) if _is_traced(x) else jnp.min(x, axis, keepdims=keepdims)


def _is_traced(x):
    return isinstance(x, Tracer) and jnp.issubdtype(x.dtype, jnp.floating)


@partial(jax.custom_jvp, nondiff_argnums=(1, 2))
def _largest(x, axis, keepdims):
    return jnp.max(x, axis, keepdims=keepdims)


@_largest.defjvp
def _largest_jvp(axis, keepdims, primals, tangents):
    (x,), (dx,) = primals, tangents
    wide = _largest(x, axis, True)
    hit = jnp.astype(x == wide, x.dtype)
    share = jnp.where(jnp.isnan(wide), jnp.nan, hit / jnp.sum(hit, axis, keepdims=True))
    return _largest(x, axis, keepdims), jnp.sum(share * dx, axis, keepdims=keepdims)


class UniqueCounts(NamedTuple):
    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    values: Any
    inverse_indices: Any


def unique_all(x, /, *, size=None, fill_value=None):
    """Each value is taken from its first position, so that it can be differentiated."""
    x = jnp.asarray(x)
    found = jnp.unique_all(jax.lax.stop_gradient(x), size=size, fill_value=fill_value)
    taken = x.reshape(-1)[found.indices]
    return found._replace(values=jnp.where(found.counts > 0, taken, found.values))


def unique_counts(x, /, *, size=None, fill_value=None):
    found = unique_all(x, size=size, fill_value=fill_value)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x, /, *, size=None, fill_value=None):
    found = unique_all(x, size=size, fill_value=fill_value)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x, /, *, size=None, fill_value=None):
    return unique_all(x, size=size, fill_value=fill_value).values
