"""Recurrent layers. The loop is `xp.scan`. If the framework has loops, its compiled program has one
body and not one per step.
"""

from __future__ import annotations

from typing import Any


def lstm(
    xp: Any,
    x: Any,
    h: Any,
    c: Any,
    kernel: Any,
    recurrent: Any,
    bias: Any,
    recurrent_bias: Any,
    time_major: bool,
) -> tuple[Any, Any, Any]:
    """The formula of `iso.lstm_update`."""
    n = recurrent.shape[0]

    def step(carry: tuple, row: tuple) -> tuple:
        h, c = carry
        gates = own(*row) + xp.matmul(h, recurrent)
        i, f, o = (xp.sigmoid(gates[..., k * n : (k + 1) * n]) for k in (0, 1, 3))
        c = f * c + i * xp.tanh(gates[..., 2 * n : 3 * n])
        h = o * xp.tanh(c)
        return (h, c), (h,)

    rows, own = _projected(xp, x, kernel, joint(bias, recurrent_bias), time_major)
    (h, c), (hs,) = xp.scan(step, (h, c), (rows,), rows.shape[0])
    return turned(xp, hs, time_major, 0, -2), h, c


def gru(
    xp: Any,
    x: Any,
    h: Any,
    kernel: Any,
    recurrent: Any,
    bias: Any,
    recurrent_bias: Any,
    time_major: bool,
) -> tuple[Any, Any]:
    """The formula of `iso.gru_update`."""
    n = recurrent.shape[0]

    rows, own = _projected(xp, x, kernel, bias, time_major)

    def step(carry: tuple, row: tuple) -> tuple:
        (h,) = carry
        gates, added = own(*row), xp.matmul(h, recurrent)
        added = added if recurrent_bias is None else added + recurrent_bias
        both = xp.sigmoid(gates[..., : 2 * n] + added[..., : 2 * n])
        r, z = both[..., :n], both[..., n:]
        new = xp.tanh(gates[..., 2 * n :] + r * added[..., 2 * n :])
        h = new + z * (h - new)
        return (h,), (h,)

    (h,), (hs,) = xp.scan(step, (h,), (rows,), rows.shape[0])
    return turned(xp, hs, time_major, 0, -2), h


def joint(bias: Any, recurrent_bias: Any) -> Any:
    """The sum of two biases, each of which may be None; None if both are."""
    if bias is None or recurrent_bias is None:
        return recurrent_bias if bias is None else bias
    return bias + recurrent_bias


def turned(xp: Any, x: Any, time_major: bool, source: int, target: int) -> Any:
    """`x` with the time axis moved from `source` to `target`, unless time is already first."""
    return x if time_major or len(x.shape) == 2 else xp.moveaxis(x, source, target)


def _projected(xp: Any, x: Any, kernel: Any, bias: Any, time_major: bool) -> tuple[Any, Any]:
    """The rows of the loop, time first, and a function from a row to the inputs of its gates.
    Usually the product with the kernel is computed for all steps at once, before the loop. If
    `xp.has_quick_steps()`, the rows are x itself, and each step computes its own product.
    """

    def gates(x: Any) -> Any:
        y = xp.matmul(x, kernel)
        return y if bias is None else y + bias

    x = turned(xp, x, time_major, -2, 0)
    return (x, gates) if xp.has_quick_steps() else (gates(x), lambda row: row)
