"""Run an edge case on one backend, and compare two outcomes."""

import warnings
from functools import cache
from typing import Any, NamedTuple

import edge_cases
import edge_layers
import edge_matrices
import numpy as np
from edge_cases import Case

import isomorph as iso
from isomorph.core.dispatch import load
from oracles import numpy_of

CASES = [*edge_cases.CASES, *edge_matrices.CASES, *edge_layers.CASES]
WIDE = {"float32": "complex64", "float64": "complex128"}
# Relative to the larger of the number and 1: a few roundings by the kernels of four frameworks. A
# second derivative divides by differences of singular values once more.
CLOSE = {"float64": 1e-10, "float32": 5e-5}
CLOSE_TWICE = {"float64": 1e-9, "float32": 2e-3}
ERRORS = {"index": IndexError, "value": ValueError, "matrix": np.linalg.LinAlgError}


class Outcome(NamedTuple):
    """Arrays, an exception, or None where there is nothing to differentiate."""

    value: Any
    recorded: Any  # the value again, computed while differentiating
    grad: Any
    twice: Any


@cache
def made(number: int, dtype: str) -> list[np.ndarray]:
    """The arrays to call a case with."""
    inputs = CASES[number].inputs
    found = [np.asarray(x) for x in (inputs(np.finfo(dtype)) if callable(inputs) else inputs)]
    kinds = {"f": dtype, "c": WIDE[dtype]}
    with np.errstate(all="ignore"):
        return [x.astype(kinds.get(x.dtype.kind, x.dtype)) for x in found]


def weights(shape: tuple, dtype: str) -> np.ndarray:
    """A different weight for each position, so that nothing cancels out."""
    n = np.arange(int(np.prod(shape)))
    w = 1.25 + 0.5 * np.cos(1.0 + 2.0 * n)
    if dtype.startswith("complex"):
        w = w + 1j * (0.75 + 0.5 * np.sin(n))
    return w.reshape(shape).astype(dtype)


def leaves(y: Any) -> list:
    return [x for part in y for x in leaves(part)] if isinstance(y, (tuple, list)) else [y]


def numpy_dtype(x: Any) -> str:
    word = x.dtype.name if hasattr(x.dtype, "name") else str(x.dtype)
    return word.removeprefix("torch.")


def weighed(xp: Any, arrays: list) -> Any:
    """The real part of the weighted sum of all floating-point numbers."""
    total = 0.0
    for y in arrays:
        if xp.is_float(y.dtype):
            w = xp.from_numpy(weights(tuple(y.shape), numpy_dtype(y)))
            part = xp.sum(xp.conj(w) * y) if xp.is_complex(y.dtype) else xp.sum(w * y)
            total = total + (xp.real(part) if xp.is_complex(y.dtype) else part)
    return total


def attempt(func: Any) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # NumPy warns about NaN, torch about too few numbers
        try:
            return [np.array(numpy_of(x)) for x in func()]
        except Exception as error:
            return error


def outcome(backend: str, number: int, dtype: str) -> Outcome:
    case, xp = CASES[number], load(backend)
    arrays = [xp.from_numpy(x) for x in made(number, dtype)]
    values = attempt(lambda: map(plain, leaves(case.call(xp, *arrays))))
    places = tuple(i for i, x in enumerate(arrays) if xp.is_float(x.dtype))
    floats = not isinstance(values, Exception) and any(y.dtype.kind in "fc" for y in values)
    if case.slopes is False or not places or not floats:
        return Outcome(values, None, None, None)

    def scalar(*arrays):
        outs = leaves(case.call(xp, *arrays))
        return weighed(xp, outs), [xp.stop_gradient(y, False) for y in outs]

    both = iso.value_and_grad(scalar, argnums=places, has_aux=True)
    kept = []

    def first():
        (_, outs), grads = both(*arrays)
        kept.extend(plain(y) for y in outs)
        return map(plain, grads)

    grad = attempt(first)
    if not case.twice:
        return Outcome(values, attempt(lambda: kept) or None, grad, None)

    def slope(*arrays):
        return weighed(xp, list(both(*arrays)[1]))

    twice = attempt(lambda: map(plain, iso.grad(slope, argnums=places)(*arrays)))
    return Outcome(values, attempt(lambda: kept) or None, grad, twice)


def plain(x: Any) -> Any:
    return x.resolve_conj() if hasattr(x, "resolve_conj") else x


@cache
def reference(number: int, dtype: str) -> Outcome:
    """NumPy's outcome, replaced where the case states its own."""
    case, inputs = CASES[number], made(number, dtype)
    found = outcome("numpy", number, dtype)
    value, grad = found.value, found.grad
    if case.values is not None:
        value = [np.asarray(y, dtype) for y in leaves(case.values(*inputs))]
    if case.slopes:
        grad = [(case.slopes(x) * weights(x.shape, dtype)).astype(x.dtype) for x in inputs]
    return Outcome(value, value if found.recorded is not None else None, grad, found.twice)


def kind(error: Exception) -> str:
    """The kind of an error: frameworks use different types for the same mistake."""
    if "LinAlg" in type(error).__name__ or "not invertible" in str(error):
        return "matrix"
    if isinstance(error, IndexError):
        return "index"
    if isinstance(error, (AttributeError, NameError, AssertionError)):
        return f"a mistake of ours: {error!r}"
    return "derivative" if isinstance(error, NotImplementedError) else "value"


def is_right(case: Case, error: Any) -> bool:
    """Whether `error` is of the kind that the case asks for."""
    if not isinstance(error, Exception):
        return False
    return case.raises in (kind(error), "value") and kind(error) != "derivative"


def shows_loss(case: Case, found: Any) -> bool:
    """Whether `found` shows that the matrices of a case are not finite: an error, or in each result
    something for each matrix that is not finite.
    """
    if isinstance(found, Exception):
        return kind(found) in ("matrix", "derivative")
    count = len(case.inputs[0]) if np.ndim(case.inputs[0]) > 2 else 1
    return all((~np.isfinite(x)).reshape(count, -1).any(1).all() for x in found)


def difference(case, what, expected, got, dtype):
    """How an outcome is wrong: None, positions, or a description."""
    if case.raises:
        if what != "value" or is_right(case, got.value):
            return None
        return differing(ERRORS[case.raises](case.raises), got.value, dtype)
    if what != "value" and isinstance(got.value, Exception):
        return None  # the value's own check reports it
    wanted, found = getattr(expected, what), getattr(got, what)
    if case.lost:
        told = found is None or shows_loss(case, found)
        return None if told else f"needed an error or NaN, got {shown(found)}"
    if what == "recorded" and (wanted is None or found is None):
        return None  # no gradient was computed
    signs = what == "value" and case.elementwise and not case.name.startswith("iso.")
    return differing(wanted, found, dtype, signs, twice=what == "twice")


def without(apart, entry, inputs, values, found):
    """The part of a difference that a ledger entry does not explain, and whether it
    explains any.
    """
    if apart is None:
        return None, False
    if entry.at is None or isinstance(apart, str):
        return (None, True) if entry.at is None else (apart, False)
    with np.errstate(all="ignore"):
        places = entry.at(inputs, values)
    sure = [entry.holds(y) if entry.holds else np.ones(y.shape, bool) for y in found]
    fits = [places & ok if x.shape == places.shape else x & False for x, ok in zip(apart, sure)]
    hit = any((x & fit).any() for x, fit in zip(apart, fits))
    left = [x & ~fit for x, fit in zip(apart, fits)]
    return (left if any(x.any() for x in left) else None), hit


def differing(expected: Any, got: Any, dtype: str, signs: bool = False, twice: bool = False) -> Any:
    """None if two outcomes agree. Otherwise the positions that differ, one array per part, or a
    description if they differ as a whole.
    """
    if expected is None or got is None:
        return None if expected is got else f"needed {shown(expected)}, got {shown(got)}"
    if isinstance(expected, Exception) or isinstance(got, Exception):
        return _errors(expected, got)
    shapes = [x.shape for x in expected], [x.shape for x in got]
    kinds = [_sort(x) for x in expected], [_sort(x) for x in got]
    if shapes[0] != shapes[1] or kinds[0] != kinds[1]:
        return f"needed {shapes[0]} {kinds[0]}, got {shapes[1]} {kinds[1]}"
    near = CLOSE_TWICE if twice else CLOSE
    apart = [~_close(x, y, near, dtype, signs) for x, y in zip(expected, got)]
    return apart if any(x.any() for x in apart) else None


def _sort(x: np.ndarray) -> str:
    """The dtype of floats, but only the kind of integers: frameworks choose their width."""
    return x.dtype.name if x.dtype.kind in "fc" else x.dtype.kind


def _errors(expected: Any, got: Any) -> str | None:
    words = [kind(x) if isinstance(x, Exception) else None for x in (expected, got)]
    if words[0] == words[1]:
        return None
    # a matrix without a decomposition: an error, or nothing finite where no error can be raised
    arrays = [x for x in (expected, got) if not isinstance(x, Exception)]
    if "matrix" in words and len(arrays) == 1 and _is_lost(arrays[0]):
        return None
    return f"needed {shown(expected)}, got {shown(got)}"


def _is_lost(arrays: list) -> bool:
    """Whether some matrix, perhaps of a stack, has nothing finite except the zeros of a
    triangle.
    """
    lost = [~np.isfinite(x) for x in arrays]
    empty = [x | (y == 0) for x, y in zip(lost, arrays)]
    whole = [x.reshape(-1, *x.shape[-2:]).all((1, 2)) if x.ndim > 1 else x.all() for x in empty]
    return all(x.any() for x in lost) and all(np.any(x) for x in whole)


def _close(x: Any, y: Any, near: dict, dtype: str, signs: bool) -> Any:
    if x.dtype.kind in "biu":
        return x == y
    if x.dtype.kind == "c":
        parts = ((x.real, y.real), (x.imag, y.imag))
        return np.logical_and(*(_close(a, b, near, dtype, False) for a, b in parts))
    rough = near["float32" if x.dtype == np.float32 else dtype]
    with np.errstate(all="ignore"):
        same = np.isclose(y, x, rtol=rough, atol=rough, equal_nan=True)
    return same & ~(signs & (x == 0) & (y == 0) & (np.signbit(x) != np.signbit(y)))


def shown(x: Any) -> str:
    if isinstance(x, Exception):
        return f"{type(x).__name__}: {str(x)[:80]}"
    return "nothing" if x is None else " | ".join(str(y).replace("\n", "") for y in x)
