"""What Bessel functions of both kinds are made of: Debye's expansions, 1/Γ near 1, and sines of
multiples of π.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any

from .series import polynomial

# The coefficients of 1/Γ(1 + z) in powers of z.
RECIPROCAL = (
    1.0, 0.57721566490153286061, -0.65587807152025388108, -0.042002635034095235529,
    0.1665386113822914895, -0.042197734555544336748, -0.0096219715278769735621,
    0.0072189432466630995424, -0.0011651675918590651121, -0.00021524167411495097282,
    0.00012805028238811618615, -0.000020134854780788238656, -1.2504934821426706573e-6,
    1.1330272319816958824e-6, -2.0563384169776071035e-7, 6.1160951044814158179e-9,
    5.0020076444692229301e-9, -1.1812745704870201446e-9, 1.0434267116911005105e-10,
    7.782263439905071254e-12, -3.6968056186422057082e-12, 5.100370287454475979e-13,
    -2.0583260535665067832e-14, -5.3481225394230179824e-15, 1.2267786282382607902e-15,
)  # fmt: skip
# Debye's expansions are used where two exponentials differ by e^(2·FAR) or by 2·FAR radians: then
# the terms left out are below the rounding.
FAR = 32.0


def is_whole(xp: Any, v: Any) -> Any:
    return xp.floor(v) == v


def is_odd(xp: Any, v: Any) -> Any:
    half = v / 2
    return xp.logical_and(is_whole(xp, v), xp.floor(half) != half)


def turned(xp: Any, v: Any) -> tuple[Any, Any]:
    """cos(π·v) and sin(π·v), exact where they are 0 and ±1."""
    part = v - 2 * xp.floor(v / 2 + 0.5)  # exact, in [-1, 1]
    size = xp.abs(part)
    small = xp.where(size > 0.5, 1 - size, size)  # exact
    flat = small <= 0.25
    near, off = math.pi * small, math.pi * (0.5 - small)
    cosine = xp.where(flat, xp.cos(near), xp.sin(off))
    sine = xp.where(flat, xp.sin(near), xp.cos(off))
    return xp.where(size > 0.5, -cosine, cosine), xp.where(part < 0, -sine, sine)


def gamma_parts(xp: Any, z: Any) -> tuple[Any, Any]:
    """Two even functions of z, |z| ≤ 1/2: p and q with 1/Γ(1 + z) = p + z·q."""
    square = z * z
    return polynomial(RECIPROCAL[::2], square), polynomial(RECIPROCAL[1::2], square)


@cache
def _debye(n: int) -> list[list[list[float]]]:
    """The coefficients of the first n polynomials of Debye's expansions in p², without their factor
    p^k (DLMF 10.41.9): for each power, the lowest first, those of even k and those of odd k.
    """
    found = [[Fraction(1)]]
    for k in range(n - 1):
        # U' p²(1 − p²)/2 + ∫(1 − 5t²)U/8, for U = Σ u_j·p^(k + 2j)
        after = [Fraction(0)] * (k + 2)
        for j, u in enumerate(found[-1]):
            power = k + 2 * j
            after[j] += u * (Fraction(power, 2) + Fraction(1, 8 * (power + 1)))
            after[j + 1] -= u * (Fraction(power, 2) + Fraction(5, 8 * (power + 3)))
        found.append(after)
    full = [[float(u) for u in row] + [0.0] * (n - len(row)) for row in found]
    return [[[row[j] for row in full[i::2]] for i in (0, 1)] for j in range(n)]


def debye(xp: Any, w: Any, s: Any) -> tuple[Any, Any]:
    """Σ u_k(s)·r^k over even k and over odd k, without the factor r of the odd ones, in powers of
    w = r². Both arguments are negative where the functions oscillate.

    All polynomials are evaluated together, along two more axes: hundreds of operations written out
    would take a compiler minutes.
    """
    n = 16 if xp.finfo(w.dtype).bits == 64 else 8
    table = xp.asarray(_debye(n), dtype=w.dtype, device=xp.device_of(w))
    wide = xp.expand_dims(xp.expand_dims(s, axis=-1), axis=-1)
    total = table[n - 1, :, :] + 0 * wide
    for j in range(n - 2, -1, -1):
        total = total * wide + table[j, :, :]
    w = xp.expand_dims(w, axis=-1)
    found = total[..., n // 2 - 1]
    for i in range(n // 2 - 2, -1, -1):
        found = found * w + total[..., i]
    return found[..., 0], found[..., 1]


def counter(xp: Any, x: Any, start: float) -> Any:
    """A number that a loop counts with, beside x."""
    return xp.full((), start, dtype=x.dtype, device=xp.device_of(x))
