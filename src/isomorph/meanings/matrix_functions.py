"""Functions of square matrices: exponential, square root and logarithm. Values only: their
derivatives are those of `linalg/functions.py`, which do not look inside.

The exponential is a quotient of polynomials (Padé) of a fraction of the matrix, squared again and
again (Higham 2005, Al-Mohy and Higham 2009). Roots are found by the product form of Denman's and
Beavers' iteration, scaled by determinants (Higham 2008, chapter 6), which needs no eigenvalues; the
logarithm takes roots until the matrix is near the identity, and a quadrature of Gauss and Legendre
there. Hermitian matrices go through their eigenvalues, which need not be positive and definite.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

# Degree, coefficients and the largest norm for which the quotient is exact to the last digit, by
# the number of bits of a real number (Higham 2005, tables 2.3 and 2.1).
PADE = {
    64: (
        5.371920351148152,
        [
            64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800,
            129060195264000, 10559470521600, 670442572800, 33522128640, 1323241920, 40840800,
            960960, 16380, 182, 1,
        ],
    ),
    32: (3.925724783138660, [17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1]),
}  # fmt: skip
# Nodes and weights of Gauss and Legendre on [0, 1]; eight are exact to 1e-16 for norms up to NEAR.
NEAR = 0.25
NODES = (
    0.019855071751231884, 0.10166676129318664, 0.2372337950418355, 0.4082826787521751,
    0.5917173212478249, 0.7627662049581645, 0.8983332387068134, 0.9801449282487681,
)  # fmt: skip
WEIGHTS = (
    0.05061426814518813, 0.11119051722668724, 0.15685332293894363, 0.181341891689181,
    0.181341891689181, 0.15685332293894363, 0.11119051722668724, 0.05061426814518813,
)  # fmt: skip
MOST_STEPS = 40  # of one root: an eigenvalue near the negative axis costs a step for each bit


def expm(xp: Any, a: Any) -> Any:
    """The exponential."""
    if 0 in a.shape:
        return a
    finite, a = _finite(xp, a)
    largest, coefficients = PADE[64 if xp.finfo(a.dtype).bits == 64 else 32]
    halvings = _halvings(xp, a, largest, len(coefficients) - 1)
    # two steps, because the power of 2 itself may be too small for a number
    half, two = xp.floor(halvings / 2), xp.full_like(halvings, 2)
    small = a * _each(xp, xp.pow(two, -half), a)
    small = small * _each(xp, xp.pow(two, half - halvings), a)
    odd, even = _polynomials(xp, small, coefficients)
    found = xp.linalg.solve(even - odd, even + odd)

    def square(left: Any, x: Any) -> tuple[Any, Any]:
        return left - 1, xp.where(left[..., None, None] > 0, xp.matmul(x, x), x)

    goes_on = lambda left, x: xp.any(left > 0)
    found = xp.while_loop(goes_on, square, (halvings, found))[1]
    return _but_finite(xp, finite, found)


def _halvings(xp: Any, a: Any, largest: float, degree: int) -> Any:
    """How often a matrix is halved. Its norm alone would halve it too often if its powers are small
    beside the powers of the norm, as for a large triangle above a small diagonal; squaring as often
    loses digits. So the norms of powers decide (Al-Mohy and Higham 2009). Everything is of size 1,
    beside its binary logarithm: powers may be too large or too small for numbers.
    """
    once, unit = _sized(xp, a)
    logs, powers = {1: once}, {1: unit}  # by exponent
    for n, i, j in ((2, 1, 1), (4, 2, 2), (6, 4, 2), (8, 4, 4), (10, 6, 4)):
        more, powers[n] = _sized(xp, xp.matmul(powers[i], powers[j]))
        logs[n] = logs[i] + logs[j] + more
    each = [logs[n] / n for n in ((6, 8, 10) if degree > 7 else (4, 6, 8))]
    size = xp.minimum(xp.maximum(each[0], each[1]), xp.maximum(each[1], each[2]))
    zero = xp.zeros_like(size)
    found = xp.maximum(xp.ceil(size - math.log2(largest)), zero)
    # the first term that the quotient leaves out must be small for the sizes of all entries
    rest, row = _sized(xp, xp.sum(xp.abs(unit), axis=-2, keepdims=True))
    for _ in range(2 * degree):
        more, row = _sized(xp, xp.matmul(row, xp.abs(unit)))
        rest = rest + more
    eps = float(xp.finfo(a.dtype).eps)
    term = math.factorial(degree) ** 2 / math.factorial(2 * degree)
    term = math.log2(2 * term / math.factorial(2 * degree + 1) / eps)
    more = (rest + term) / (2 * degree) + once - found
    return found + xp.maximum(xp.ceil(more), zero)


def _sized(xp: Any, a: Any) -> tuple[Any, Any]:
    """The binary logarithm of the norm, and the matrices over their norms."""
    norm = _norm(xp, a)
    there = norm > 0
    norm = xp.where(there, norm, xp.ones_like(norm))
    return xp.where(there, xp.log2(norm), xp.full_like(norm, -1e6)), a / _each(xp, norm, a)


def _polynomials(xp: Any, a: Any, coefficients: list[int]) -> tuple[Any, Any]:
    """The odd and the even part of the numerator; the denominator is their difference."""
    scaled = [c / coefficients[0] for c in coefficients]
    square = xp.matmul(a, a)
    powers = [_eye(xp, a), square]
    for _ in range(2):
        powers.append(xp.matmul(powers[-1], square))
    parts = []
    for first in (1, 0):
        own = scaled[first::2]
        part = _sum(powers, own[:4])
        if len(own) > 4:  # the rest has the sixth power as a factor
            part = part + xp.matmul(powers[3], _sum(powers[1:], own[4:]))
        parts.append(part)
    return xp.matmul(a, parts[0]), parts[1]


def _sum(matrices: list[Any], numbers: list[float]) -> Any:
    return sum(c * m for c, m in zip(numbers[1:], matrices[1:])) + numbers[0] * matrices[0]


def sqrtm(xp: Any, a: Any) -> Any:
    """The principal square root; NaN if it is not found."""
    if 0 in a.shape:
        return a
    finite, a = _finite(xp, a)
    hermitian = _is_hermitian(xp, a)
    found, _ = _roots(xp, a, finite & ~hermitian, lambda x: _norm(xp, x) >= 0)
    found = xp.where(hermitian[..., None, None], _spectral(xp, a, hermitian, _root), found)
    return _but_finite(xp, finite, found)


def logm(xp: Any, a: Any) -> Any:
    """The principal logarithm; NaN if it is not found."""
    if 0 in a.shape:
        return a
    finite, a = _finite(xp, a)
    hermitian = _is_hermitian(xp, a)
    is_near = lambda x: _norm(xp, x - _eye(xp, x)) <= NEAR
    near, count = _roots(xp, a, finite & ~hermitian & ~is_near(a), is_near)
    eye = _eye(xp, a)
    rest = near - eye
    numbers = lambda given: xp.reshape(
        xp.asarray(given, dtype=rest.dtype, device=xp.device_of(a)), (-1, *[1] * len(a.shape))
    )
    safe = xp.where((_norm(xp, rest) <= NEAR)[..., None, None], rest, xp.zeros_like(rest))
    parts = xp.linalg.solve(eye + numbers(NODES) * safe, xp.broadcast_to(safe, (8, *safe.shape)))
    found = xp.sum(numbers(WEIGHTS) * parts, axis=0)
    found = found * _each(xp, xp.pow(xp.full_like(count, 2), count), a)
    found = xp.where(xp.isnan(rest), rest, found)
    found = xp.where(hermitian[..., None, None], _spectral(xp, a, hermitian, _log), found)
    return _but_finite(xp, finite, found)


def _roots(xp: Any, a: Any, active: Any, is_enough: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Square roots of the `active` matrices, repeated until `is_enough` of the root; and how many
    were taken. NaN for a matrix whose iteration does not converge.
    """
    n = a.shape[-1]
    none = xp.zeros_like(_norm(xp, a))
    rounding = n * float(xp.finfo(a.dtype).eps)

    def step(a: Any, m: Any, x: Any, count: Any, steps: Any, active: Any) -> tuple:
        eye, zeros = _eye(xp, a), xp.zeros_like(steps)
        log = xp.linalg.slogdet(m)[1]
        fine = active & xp.isfinite(log)
        safe = xp.where(fine[..., None, None], m, eye)
        inverse = xp.linalg.inv(safe)
        far = _norm(xp, safe - eye) > 0.01
        scale = xp.exp(xp.where(fine & far, -log / (2 * n), zeros))
        by, square = _each(xp, scale, a), _each(xp, scale * scale, a)
        inverse = inverse / square
        x_new = 0.5 * by * (x + xp.matmul(x, inverse))
        m_new = 0.5 * eye + 0.25 * (safe * square + inverse)
        rest = _norm(xp, m_new - eye)
        found = fine & (rest <= rounding)
        failed = active & ~found & (~fine | ~xp.isfinite(rest) | (steps >= MOST_STEPS))
        done = failed | (found & is_enough(x_new))
        show = lambda mask: mask[..., None, None]
        a = xp.where(show(found), x_new, a)
        a = xp.where(show(failed), xp.full_like(a, math.nan), a)
        m = xp.where(show(found), x_new, xp.where(show(fine), m_new, m))
        x = xp.where(show(fine), x_new, x)
        count = xp.where(found, count + 1, count)
        steps = xp.where(found, zeros, steps + 1)
        return a, m, x, count, steps, active & ~done

    goes_on = lambda *state: xp.any(state[-1])
    state = xp.while_loop(goes_on, step, (a, a, a, none, none, active))
    return state[0], state[3]


def _spectral(xp: Any, a: Any, hermitian: Any, func: Callable[..., Any]) -> Any:
    """The function of the eigenvalues of the matrices that are Hermitian."""
    safe = xp.where(hermitian[..., None, None], a, _eye(xp, a))
    values, vectors = xp.linalg.eigh(safe)
    values = func(xp, values, a.dtype)
    adjoint = xp.matrix_transpose(xp.conj(vectors) if xp.is_complex(a.dtype) else vectors)
    return xp.matmul(vectors * values[..., None, :], adjoint)


def _root(xp: Any, values: Any, dtype: Any) -> Any:
    size = xp.abs(values)
    least = xp.max(size, axis=-1, keepdims=True) * (
        values.shape[-1] * float(xp.finfo(values.dtype).eps)
    )
    zero = xp.zeros_like(values)
    root = xp.sqrt(size)
    if xp.is_complex(dtype):  # a small negative number may be a rounded zero
        positive = xp.where(values > 0, root, zero)
        return _parts(xp, positive, xp.where(values < -least, root, zero), dtype)
    nan = xp.full_like(values, math.nan)
    return xp.where(values > 0, root, xp.where(values < -least, nan, zero))


def _log(xp: Any, values: Any, dtype: Any) -> Any:
    log = xp.log(xp.abs(values))
    if xp.is_complex(dtype):
        turn = xp.where(values < 0, xp.full_like(values, math.pi), xp.zeros_like(values))
        return _parts(xp, log, turn, dtype)
    return xp.where(values < 0, xp.full_like(values, math.nan), log)


def _parts(xp: Any, real: Any, imaginary: Any, dtype: Any) -> Any:
    return xp.astype(real, dtype) + xp.astype(imaginary, dtype) * 1j


# What all of them need.


def _eye(xp: Any, a: Any) -> Any:
    return xp.eye(a.shape[-1], dtype=a.dtype, device=xp.device_of(a))


def _norm(xp: Any, a: Any) -> Any:
    """The largest sum of sizes in a column."""
    return xp.max(xp.sum(xp.abs(a), axis=-2), axis=-1)


def _each(xp: Any, number: Any, a: Any) -> Any:
    """A real number for each matrix, to be multiplied with all of it."""
    number = number if number.dtype == a.dtype else xp.astype(number, a.dtype)
    return number[..., None, None]


def _is_hermitian(xp: Any, a: Any) -> Any:
    turned = xp.matrix_transpose(xp.conj(a) if xp.is_complex(a.dtype) else a)
    return xp.all(a == turned, axis=(-2, -1))


def _finite(xp: Any, a: Any) -> tuple[Any, Any]:
    """Which matrices are finite, and the identity instead of each other one."""
    finite = xp.all(xp.isfinite(a), axis=(-2, -1))
    return finite, xp.where(finite[..., None, None], a, _eye(xp, a))


def _but_finite(xp: Any, finite: Any, y: Any) -> Any:
    return xp.where(finite[..., None, None], y, xp.full_like(y, math.nan))
