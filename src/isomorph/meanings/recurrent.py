"""Recurrent layers. The loop is `xp.scan`, which compiles to one body, not one per step, where the
framework has such a loop.
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
    """The meaning of `lstm_update`."""
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
    """The meaning of `gru_update`."""
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
    """Two biases that are only ever added, as one; None if there are none."""
    if bias is None or recurrent_bias is None:
        return recurrent_bias if bias is None else bias
    return bias + recurrent_bias


def turned(xp: Any, x: Any, time_major: bool, source: int, target: int) -> Any:
    """`x` with the time axis moved between the caller's position and the front."""
    return x if time_major or len(x.shape) == 2 else xp.moveaxis(x, source, target)


def _projected(xp: Any, x: Any, kernel: Any, bias: Any, time_major: bool) -> tuple[Any, Any]:
    """The inputs of the loop, time first, and the function from a row of them to its gates: either
    products of all steps with the kernel, or the steps themselves.
    """

    def gates(x: Any) -> Any:
        y = xp.matmul(x, kernel)
        return y if bias is None else y + bias

    x = turned(xp, x, time_major, -2, 0)
    return (x, gates) if xp.has_quick_steps() else (gates(x), lambda row: row)
