"""Gradients of edge cases by finite differences, wherever the function is smooth."""

import numpy as np
from edge_running import CASES, attempt, leaves, made, outcome, weighed, weights

import isomorph as iso
from isomorph.core.dispatch import load

STEP = 1e-6
NEAR = 1e6  # a larger number absorbs the step; a nonzero one must be well above the step
STEEP = 1e5  # a steeper slope is taken for a jump


def smooth_gradients(number):
    """Compare NumPy's float64 derivatives with differences: (how many, the mismatches)."""
    case, inputs = CASES[number], made(number, "float64")
    got = outcome("numpy", number, "float64")
    if not isinstance(got.grad, list) or case.edge == "denormals":
        return 0, []
    with np.errstate(all="ignore"):
        count, wrong = _compared(case, "grad", _weighed_values(case), inputs, got.grad)
        if isinstance(got.twice, list):
            more, also = _compared(case, "twice", _weighed_gradients(number), inputs, got.twice)
            count, wrong = count + more, wrong + also
    return count, wrong


def _weighed_values(case):
    xp = load("numpy")

    def values(*arrays):
        found = attempt(lambda: leaves(case.call(xp, *arrays)))
        if isinstance(found, Exception):
            return None
        floats = [y for y in found if y.dtype.kind in "fc"]
        return [np.real(np.conj(weights(y.shape, y.dtype.name)) * y) for y in floats]

    return values


def _weighed_gradients(number):
    case, xp = CASES[number], load("numpy")
    places = tuple(i for i, x in enumerate(made(number, "float64")) if x.dtype.kind in "fc")
    scalar = lambda *arrays: weighed(xp, leaves(case.call(xp, *arrays)))

    def gradients(*arrays):
        found = attempt(lambda: iso.grad(scalar, argnums=places)(*arrays))
        if isinstance(found, Exception):
            return None
        return [np.real(np.conj(weights(y.shape, y.dtype.name)) * y) for y in found]

    return gradients


def _compared(case, what, func, inputs, grads):
    """Compare each derivative with its difference quotient, where the two one-sided ones agree."""
    base = func(*inputs)
    whole = base is not None and all(np.isfinite(y).all() for y in base)
    near = [(np.abs(x) < NEAR) & ((x == 0) | (np.abs(x) > 10 * STEP)) for x in inputs]
    calm = whole and all(n.all() or np.isnan(x[~n]).all() for n, x in zip(near, inputs))
    if base is None or not (case.elementwise or calm):
        return 0, []
    floats = [i for i, x in enumerate(inputs) if x.dtype.kind in "fc"]
    count, wrong = 0, []
    for place, grad in zip(floats, grads):
        slope = _slopes(case, func, inputs, place, base)
        if case.hermitian:
            slope = (slope + np.conj(np.swapaxes(slope, -1, -2))) / 2
        sure = np.isfinite(slope)
        if case.elementwise:
            sure &= np.logical_and.reduce([n for n in near if n.shape == sure.shape])
        count += int(sure.sum())
        # differences with step 1e-6 are good to about six digits for a function of size one
        bad = sure & ~(np.abs(slope - grad) <= 1e-5 * (1 + np.abs(slope)))
        for i in np.argwhere(bad)[:3]:
            here = tuple(i)
            wrong.append(f"[{case.edge}] {what} {place} at {here}: {slope[here]}, got {grad[here]}")
    return count, wrong


def _slopes(case, func, inputs, place, base):
    """Difference quotients for one input; NaN where not smooth. A complex input: both parts."""
    x = inputs[place]
    slope = _real_slopes(case, func, inputs, place, base, 1.0)
    if x.dtype.kind == "c":
        slope = slope + 1j * _real_slopes(case, func, inputs, place, base, 1j)
    return np.where(np.isfinite(x), slope, np.nan)


def _real_slopes(case, func, inputs, place, base, along):
    x = inputs[place]

    def moved(step):
        other = list(inputs)
        other[place] = x + step
        return func(*other)

    if case.elementwise:
        return _quotient(base, moved(STEP * along), moved(-STEP * along), sum)
    found = np.full(x.shape, np.nan)
    for i in np.ndindex(x.shape):
        if np.isfinite(x[i]):
            step = np.zeros_like(x)
            step[i] = STEP * along
            found[i] = _quotient(base, moved(step), moved(-step), _total)
    return found


def _total(parts):
    return sum(float(np.sum(y)) for y in parts)


def _quotient(base, high, low, total):
    if high is None or low is None:
        return np.nan
    up, down = (total(high) - total(base)) / STEP, (total(base) - total(low)) / STEP
    middle = (up + down) / 2
    smooth = (np.abs(middle) < STEEP) & (np.abs(up - down) <= 1e-3 * (1 + np.abs(middle)))
    return np.where(smooth, middle, np.nan)
