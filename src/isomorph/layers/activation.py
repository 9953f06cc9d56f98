"""Activations: each maps an array to one of the same shape.

Each is finite, with a finite gradient, for every finite input; at infinities it is the limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Never

from ..core.dispatch import backend_of
from ..core.keywords import refuse
from ..meanings import activation as meanings

if TYPE_CHECKING:
    from ..types.array_types import A


def relu(x: A, /) -> A:
    """max(x, 0); its derivative at 0 is 0.

    >>> iso.relu(np.array([-1.0, 2.0]))
    array([0., 2.])
    """
    return backend_of(x).relu(x)


def leaky_relu(x: A, /, *, alpha: float = 0.01) -> A:
    """x where it is positive, `alpha`·x elsewhere.

    >>> iso.leaky_relu(np.array([-1.0, 2.0]))
    array([-0.01,  2.  ])
    """
    return backend_of(x).leaky_relu(x, alpha)


def elu(x: A, /, *, alpha: float = 1.0) -> A:
    """x where it is positive, `alpha`·(eˣ − 1) elsewhere.

    >>> iso.elu(np.array([0.0, 2.0]))
    array([0., 2.])
    """
    return backend_of(x).elu(x, alpha)


def gelu(x: A, /, *, approximate: bool = False) -> A:
    """x·Φ(x), with Φ the normal distribution function; with `approximate`, by tanh as in GPT-2.

    >>> iso.gelu(np.array([0.0, 100.0]))
    array([  0., 100.])
    """
    return backend_of(x).gelu(x, approximate)


def silu(x: A, /) -> A:
    """x·sigmoid(x).

    >>> iso.silu(np.array([0.0, 100.0]))
    array([  0., 100.])
    """
    return backend_of(x).silu(x)


def softplus(x: A, /) -> A:
    """log(1 + eˣ).

    >>> iso.softplus(np.array([1000.0]))
    array([1000.])
    """
    return backend_of(x).softplus(x)


def mish(x: A, /) -> A:
    """x·tanh(softplus(x)).

    >>> iso.mish(np.array([0.0, 100.0]))
    array([  0., 100.])
    """
    return backend_of(x).mish(x)


def hardswish(x: A, /) -> A:
    """x·min(max(x + 3, 0), 6) / 6.

    >>> iso.hardswish(np.array([-4.0, 3.0]))
    array([0., 3.])
    """
    return meanings.hardswish(backend_of(x), x)


def sigmoid(x: A, /) -> A:
    """1 / (1 + e⁻ˣ).

    >>> iso.sigmoid(np.array([0.0, -1000.0]))
    array([0.5, 0. ])
    """
    return backend_of(x).sigmoid(x)


def softmax(x: A, /, *, axis: int = -1, **habits: Never) -> A:
    """eˣ over its sum along `axis`.

    >>> iso.softmax(np.array([0.0, 0.0]))
    array([0.5, 0.5])
    """
    if habits:
        refuse("softmax", habits)
    return backend_of(x).softmax(x, axis)


def log_softmax(x: A, /, *, axis: int = -1, **habits: Never) -> A:
    """The logarithm of `softmax`.

    >>> iso.log_softmax(np.array([0.0]))
    array([0.])
    """
    if habits:
        refuse("log_softmax", habits)
    return backend_of(x).log_softmax(x, axis)


def logsumexp(
    x: A,
    /,
    *,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
    **habits: Never,
) -> A:
    """log Σ eˣ along `axis`, or over all elements.

    >>> float(iso.logsumexp(np.array([1000.0])))
    1000.0
    """
    if habits:
        refuse("logsumexp", habits)
    return backend_of(x).logsumexp(x, axis, keepdims)
