"""Matrix products and contractions."""

from math import prod
from typing import Any

import numpy as np

from ..tape import composed, constant, rule
from ..traced import TRACED, floating, no_rule, record
from .elementwise import conj
from .shaping import arrayed, axes_of

constant(np.einsum_path)


def adjoint(x):
    """The conjugate transpose, over the last two axes."""
    return np.swapaxes(conj(x), -1, -2)


def gram(a, g):
    """adjoint(a) @ g summed over the leading axes, as one matrix product instead of a stack."""
    rows = prod(a.shape[:-1])
    return adjoint(np.reshape(a, (rows, a.shape[-1]))) @ np.reshape(g, (rows, g.shape[-1]))


def turned(b, g):
    """The product of each matrix of a stack with its vector of `g`."""
    return np.matmul(b, g) if b.ndim == 2 and g.ndim == 1 else np.matmul(b, g[..., None])[..., 0]


@rule(np.matmul, np.linalg.matmul)
def matmul(y, a, b, **kw):
    if kw:
        no_rule(np.matmul, " with axes= or other keywords")
    a, b = arrayed(a), arrayed(b)
    if a.ndim == 1 and b.ndim == 1:
        return lambda g: g * conj(b), lambda g: g * conj(a)
    if b.ndim == 1:
        to_b = lambda g: adjoint(a) @ g if a.ndim == 2 else gram(a, g[..., None])[:, 0]
        return lambda g: g[..., None] * conj(b), to_b
    if a.ndim == 1:
        # the tape sums over the stack
        return lambda g: turned(conj(b), g), lambda g: conj(a)[:, None] * g[..., None, :]
    if b.ndim == 2:
        return lambda g: g @ adjoint(b), lambda g: gram(a, g)
    return lambda g: g @ adjoint(b), lambda g: adjoint(a) @ g


@composed(np.dot)
def dot(a, b, out=None):
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return np.multiply(arrayed(a), arrayed(b))
    a, b = arrayed(a), arrayed(b)
    return np.matmul(a, b) if b.ndim <= 2 else np.tensordot(a, b, (-1, -2))


@composed(np.inner)
def inner(a, b, /):
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return np.multiply(arrayed(a), arrayed(b))
    return np.tensordot(a, b, (-1, -1))[()]


@composed(np.outer)
def outer(a, b, out=None):
    return np.ravel(a)[:, None] * np.ravel(b)


@composed(np.linalg.outer)
def linalg_outer(x1, x2, /):
    if np.ndim(x1) != 1 or np.ndim(x2) != 1:
        raise ValueError(
            f"numpy.linalg.outer: needed vectors, got shapes {np.shape(x1)} and {np.shape(x2)}"
        )
    return np.outer(x1, x2)


@composed(np.vecdot, np.linalg.vecdot)
def vecdot(x1, x2, /, *, axis=-1):
    return np.sum(conj(arrayed(x1)) * x2, axis)


@composed(np.vdot)
def vdot(a, b, /):
    return np.matmul(conj(np.ravel(a)), np.ravel(b))


def matvec(x1, x2, /):
    return np.matmul(x1, arrayed(x2)[..., None])[..., 0]


def vecmat(x1, x2, /):
    return np.matmul(conj(arrayed(x1))[..., None, :], x2)[..., 0, :]


if hasattr(np, "matvec"):  # from NumPy 2.2 on
    composed(np.matvec)(matvec)
    composed(np.vecmat)(vecmat)


def contracted(a, b, axes):
    return np.tensordot(a, b, axes)


@rule(contracted)
def _contracted(y, a, b, axes):
    over_a, over_b = axes
    free_a = [i for i in range(a.ndim) if i not in over_a]
    free_b = [i for i in range(b.ndim) if i not in over_b]

    def back_a(g):  # d has the free axes of a, then the summed axes in the order of b
        d = np.tensordot(g, conj(b), (range(len(free_a), g.ndim), free_b))
        return np.transpose(d, np.argsort(free_a + [over_a[i] for i in np.argsort(over_b)]))

    def back_b(g):
        d = np.tensordot(conj(a), g, (free_a, range(len(free_a))))
        return np.transpose(d, np.argsort([over_b[i] for i in np.argsort(over_a)] + free_b))

    return back_a, back_b


@composed(np.tensordot, np.linalg.tensordot)
def tensordot(a, b, axes: Any = 2):
    a, b = arrayed(a), arrayed(b)
    if np.ndim(axes) == 0 and not isinstance(axes, (tuple, list)):
        n = int(axes)
        axes = list(range(a.ndim - n, a.ndim)), list(range(n))
    over_a, over_b = (
        axes_of(tuple(i) if np.ndim(i) else int(i), x.ndim) for i, x in zip(axes, (a, b))
    )
    return record(contracted, a, b, (list(over_a), list(over_b)))


@composed(np.kron)
def kron(a, b):
    a, b = arrayed(a), arrayed(b)
    n = max(a.ndim, b.ndim)
    a = np.reshape(a, (1,) * (n - a.ndim) + a.shape)
    b = np.reshape(b, (1,) * (n - b.ndim) + b.shape)
    spread = np.expand_dims(a, tuple(range(1, 2 * n, 2))) * np.expand_dims(
        b, tuple(range(0, 2 * n, 2))
    )
    return np.reshape(spread, tuple(i * j for i, j in zip(a.shape, b.shape)))


@composed(np.cross)
def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = np.moveaxis(arrayed(a), axisa, -1), np.moveaxis(arrayed(b), axisb, -1)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise NotImplementedError(
            "numpy.cross: no derivative rule except for vectors of 3, "
            f"got {a.shape[-1]} and {b.shape[-1]}"
        )
    x, y, z = a[..., 0], a[..., 1], a[..., 2]
    u, v, w = b[..., 0], b[..., 1], b[..., 2]
    return np.moveaxis(np.stack([y * w - z * v, z * u - x * w, x * v - y * u], -1), -1, axisc)


TRACED[np.linalg.cross] = lambda x1, x2, /, *, axis=-1: np.cross(x1, x2, axis=axis)

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def summed(*operands, terms, result, optimize=False):
    return np.einsum(",".join(terms) + "->" + result, *operands, optimize=optimize)


@rule(summed)
def _summed(y, *operands, terms, result, optimize=False):
    """The rule of einsum, if no letter occurs twice in a term. The gradient of an operand is the
    contraction of `g` with the other operands, broadcast over the letters that only it has."""

    def back(place, g):
        others = [conj(x) for i, x in enumerate(operands) if i != place]
        theirs = [t for i, t in enumerate(terms) if i != place]
        found = {letter for t in (result, *theirs) for letter in t}
        mine = terms[place]
        spec = ",".join([result, *theirs]) + "->" + "".join(c for c in mine if c in found)
        d = np.einsum(spec, g, *others, optimize=bool(others))
        return np.expand_dims(d, tuple(i for i, c in enumerate(mine) if c not in found))

    return tuple(lambda g, i=i: back(i, g) for i in range(len(operands)))


def _spell(operands):
    """The subscripts and arrays of einsum for operands with lists of numbers:
    (a, [0, 1], b, [1, 2], [0, 2]) gives ("ab,bc->ac", [a, b])."""

    def word(sublist):
        return "".join("..." if i is Ellipsis else LETTERS[i] for i in sublist)

    pairs = len(operands) // 2
    spec = ",".join(word(operands[2 * i + 1]) for i in range(pairs))
    if len(operands) % 2:
        spec += "->" + word(operands[-1])
    return spec, list(operands[: 2 * pairs : 2])


@composed(np.einsum)
def einsum(*operands, out=None, optimize: Any = False, dtype=None, **kw):
    floating("einsum", dtype)
    spec, arrays = (operands[0], operands[1:]) if type(operands[0]) is str else _spell(operands)
    arrays = [arrayed(x) if dtype is None else arrayed(x).astype(dtype) for x in arrays]
    given, arrow, result = spec.replace(" ", "").partition("->")
    terms = given.split(",")
    if len(terms) != len(arrays):
        raise ValueError(
            f"numpy.einsum: needed {len(terms)} operands for {spec!r}, got {len(arrays)}"
        )
    unused = [c for c in LETTERS if c not in spec]
    hidden = [
        x.ndim - len(t.replace("...", "")) if "..." in t else 0 for t, x in zip(terms, arrays)
    ]
    dots = "".join(unused[: max(hidden)])
    terms = [t.replace("...", dots[len(dots) - n :]) for t, n in zip(terms, hidden)]
    letters = given.replace(",", "").replace("...", "")
    if not arrow:
        result = dots + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    result = result.replace("...", dots)
    for i, term in enumerate(terms):
        terms[i], arrays[i] = _diagonals(term, arrays[i])
    return record(summed, *arrays, terms=tuple(terms), result=result, optimize=optimize)


def _diagonals(term, x) -> tuple[str, Any]:
    """A term of einsum and its array, with diagonals taken until each letter occurs once."""
    for letter in dict.fromkeys(term):
        while term.count(letter) > 1:
            i = term.index(letter)
            j = term.index(letter, i + 1)
            x = np.diagonal(x, 0, i, j)
            term = term[:i] + term[i + 1 : j] + term[j + 1 :] + letter
    return term, x
