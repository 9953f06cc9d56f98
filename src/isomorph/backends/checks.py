"""A test of each verb of the contract, for any backend; the expected values come from NumPy or a
closed form.

    from isomorph.backends.checks import CHECKS

    @pytest.mark.parametrize("verb", CHECKS)
    def test_the_contract(verb):
        CHECKS[verb](backend)

A verb that a backend lacks (`Contract.lacks`) must say so, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..core.vocabulary import FFT, LINALG, VOCABULARY
from .composed import Backend

CHECKS: dict[str, Callable[[Any], None]] = {}
X = np.array([[0.5, -1.5, 2.0], [1.0, 0.25, -3.0]], np.float32)


def verb(check: Callable[[Any], None]) -> Callable[[Any], None]:
    """The test of the verb with its name; for a verb that a backend lacks, a test of the error."""
    name = check.__name__

    @wraps(check)
    def run(xp: Any) -> None:
        if name not in xp.lacks:
            check(xp)
        else:
            said = refusal(LACKING[name], xp)
            for word in (xp.name, name, xp.lacks[name]):
                assert word in said, f"{name}: needed an error with {word!r}, got {said!r}"

    CHECKS[name] = run
    return run


def refusal(call: Callable[[Any], Any], xp: Any) -> str:
    """The message when a lacking verb is called."""
    try:
        call(xp)
    except NotImplementedError as error:
        return str(error)
    return ""


LACKING: dict[str, Callable[[Any], Any]] = {
    "vjp": lambda xp: xp.vjp(lambda x: ((x,), ()), (array(xp, X),)),
    "custom_call": lambda xp: xp.custom_call(None, (array(xp, X),)),
    "stop_gradient": lambda xp: xp.stop_gradient(array(xp, X)),
    "is_watched": lambda xp: xp.is_watched(array(xp, X)),
    "compile": lambda xp: xp.compile(lambda x: (x,), [array(xp, X)], []),
    "signature": lambda xp: xp.signature([array(xp, X)]),
    "is_tracing": lambda xp: xp.is_tracing([array(xp, X)]),
    "to_numpy": lambda xp: xp.to_numpy(xp.asarray(1.0)),
    "from_numpy": lambda xp: xp.from_numpy(X),
    "at_hand": lambda xp: xp.at_hand(array(xp, X)),
    "devices": lambda xp: xp.devices(),
    "index_get": lambda xp: xp.index_get(array(xp, X), 0),
    "index_update": lambda xp: xp.index_update(array(xp, X), 0, 1.0, "set"),
    "narrow": lambda xp: xp.narrow("float16"),
    "quick": lambda xp: xp.quick(array(xp, KEY), (2,), xp.float32, False),
}
KEY = np.array([1, 2], np.uint32)


def array(xp: Any, x: np.ndarray) -> Any:
    """An array of the backend, in its own memory."""
    return xp.reshape(xp.asarray(x.tolist(), dtype=getattr(xp, x.dtype.name)), x.shape)


def same(xp: Any, got: Any, wanted: Any, tolerance: float = 0.0) -> None:
    """Check that `got` is an array of the backend with these values, dtype and shape."""
    assert isinstance(got, xp.arrays), f"needed an array of {xp.name}, got {type(got).__name__}"
    values, wanted = xp.to_numpy(xp.stop_gradient(got, False)), np.asarray(wanted)
    assert values.shape == wanted.shape
    assert values.dtype == wanted.dtype
    np.testing.assert_allclose(values, wanted, rtol=tolerance, atol=tolerance)


def vocabulary(xp: Any) -> None:
    """Not a verb, but what everything is composed of."""
    for names, wanted in ((xp, VOCABULARY), (xp.linalg, LINALG), (xp.fft, FFT)):
        missing = [word for word in wanted if not hasattr(names, word)]
        assert not missing, f"{names.__name__} has no {', '.join(missing)}"
    assert not [word for word in VOCABULARY if not hasattr(xp.namespace, word)]


CHECKS["vocabulary"] = vocabulary


@verb
def vjp(xp: Any) -> None:
    def func(x: Any, y: Any) -> tuple:
        return (xp.sum(x * x * y), xp.exp(x)), (x + y,)

    y = np.cos(X)
    outs, pullback, aux = xp.vjp(func, (array(xp, X), array(xp, y)))
    same(xp, outs[0], np.sum(X * X * y), 1e-5)
    same(xp, outs[1], np.exp(X), 1e-5)
    same(xp, aux[0], X + y, 1e-6)
    seeds = np.array(2.0, np.float32), np.sin(X)
    gradients = pullback((array(xp, seeds[0]), array(xp, seeds[1])))
    same(xp, gradients[0], 4 * X * y + np.sin(X) * np.exp(X), 1e-5)
    same(xp, gradients[1], 2 * X * X, 1e-5)

    def slope(x: Any) -> tuple:  # second order: the gradient of a gradient
        out, back, _ = xp.vjp(lambda x: ((xp.sum(x * x * x),), ()), (x,))
        return (back((xp.ones_like(out[0]),))[0],), ()

    _, pullback, _ = xp.vjp(slope, (array(xp, X),))
    same(xp, pullback((array(xp, np.ones_like(X)),))[0], 6 * X, 1e-5)


@verb
def custom_call(xp: Any) -> None:
    rule = SimpleNamespace(
        func=lambda x: (x * x,),
        fwd=lambda x: ((x * x,), (x,)),
        bwd=lambda kept, upstream, arrays: (10 * kept[0] * upstream[0],),  # five times too large
    )
    same(xp, xp.custom_call(rule, (array(xp, X),))[0], X * X)
    if "vjp" not in xp.lacks:
        run = lambda x: (xp.custom_call(rule, (x,)), ())
        (out,), pullback, _ = xp.vjp(run, (array(xp, X),))
        same(xp, pullback((xp.ones_like(out),))[0], 10 * X)


@verb
def stop_gradient(xp: Any) -> None:
    same(xp, xp.stop_gradient(array(xp, X)), X)
    if "vjp" not in xp.lacks:
        run = lambda x: ((xp.sum(x * xp.stop_gradient(x)),), ())
        (out,), pullback, _ = xp.vjp(run, (array(xp, X),))
        same(xp, pullback((xp.ones_like(out),))[0], X)


@verb
def is_watched(xp: Any) -> None:
    assert xp.is_watched(array(xp, X)) is False
    if "vjp" not in xp.lacks:
        seen = []

        def func(x: Any) -> tuple:
            seen.extend([xp.is_watched(x), xp.is_watched(x * 2)])
            return (x,), ()

        xp.vjp(func, (array(xp, X),))
        assert seen == [True, True]


@verb
def compile(xp: Any) -> None:
    calls = []

    def func(x: Any, y: Any) -> tuple:
        calls.append(1)
        return x * y + 1, xp.sum(x)

    if type(xp).jit is not Backend.jit:
        program = xp.jit(func)
    else:
        program = xp.compile(func, [array(xp, X), array(xp, X)], [])
    ran = []
    for y in (X, np.cos(X), np.sin(X)):
        outs = program(array(xp, X), array(xp, y))
        ran.append(len(calls))
        same(xp, outs[0], X * y + 1, 1e-6)
        same(xp, outs[1], np.sum(X), 1e-6)
    if xp.jit(func) is not func:
        assert ran[0] == ran[-1], "the function ran again: nothing was compiled"


@verb
def signature(xp: Any) -> None:
    if type(xp).jit is not Backend.jit:  # only that uses it
        assert "signature" not in vars(type(xp)), "not used"
        return
    one, other = (xp.signature([array(xp, x)]) for x in (X, X + 1))
    assert hash(one) == hash(other)
    assert one == other
    assert one != xp.signature([array(xp, X[:1])])
    assert one != xp.signature([array(xp, X.astype(np.int32))])


@verb
def is_tracing(xp: Any) -> None:
    seen = []

    def func(x: Any) -> tuple:
        seen.append(xp.is_tracing([x]))
        return (x * 2,)

    assert xp.is_tracing([array(xp, X)]) is False
    if "compile" not in xp.lacks and type(xp).jit is Backend.jit:
        xp.compile(func, [array(xp, X)], [])
        assert seen
        assert all(seen)


@verb
def to_numpy(xp: Any) -> None:
    for x in (X, X > 0, X.astype(np.int32), np.float32(2.5), X[:0]):
        found = xp.to_numpy(array(xp, np.asarray(x)))
        assert isinstance(found, np.ndarray)
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(found, x)


@verb
def from_numpy(xp: Any) -> None:
    for x in (X, X > 0, X.astype(np.int32), np.array(2.5, np.float32), X[:0]):
        same(xp, xp.from_numpy(x), x)
    device = xp.device(xp.devices()[0])
    assert xp.device_of(xp.from_numpy(X, device)) == xp.device_of(xp.zeros(1, device=device))


@verb
def at_hand(xp: Any) -> None:
    found = xp.at_hand(array(xp, KEY))
    assert found is None or found.tolist() == KEY.tolist()


@verb
def devices(xp: Any) -> None:
    names = xp.devices()
    assert len(set(names)) == len(names) > 0
    places = [str(xp.device_of(xp.zeros(1, device=xp.device(name)))) for name in names]
    assert len(set(places)) == len(names), "two names for one device"
    for name in names:
        assert isinstance(name, str)
        made = xp.zeros(1, device=xp.device(name))
        assert xp.device_of(made) == xp.device_of(xp.zeros(1, device=xp.device_of(made)))


INDICES = (1, -1, (0, slice(None, None, 2)), (..., 0), slice(1, None), (None, 0, 1))


@verb
def index_get(xp: Any) -> None:
    for index in INDICES:
        same(xp, xp.index_get(array(xp, X), index), X[index])
    rows = np.array([1, 0, 1])
    same(xp, xp.index_get(array(xp, X), (array(xp, rows), 0)), X[rows, 0])
    same(xp, xp.index_get(array(xp, X), array(xp, X > 0)), X[X > 0])


@verb
def index_update(xp: Any) -> None:
    does = {
        "set": lambda old, new: new,
        "add": np.add,
        "multiply": np.multiply,
        "min": np.minimum,
        "max": np.maximum,
    }
    for how, func in does.items():
        for index in INDICES:
            wanted = X.copy()
            wanted[index] = func(wanted[index], np.float32(0.5))
            x = array(xp, X)
            same(xp, xp.index_update(x, index, xp.asarray(0.5, dtype=xp.float32), how), wanted)
            same(xp, x, X)  # the original is unchanged
    twice = xp.index_update(array(xp, X), array(xp, np.array([0, 0])), array(xp, X), "add")
    wanted = X.copy()
    np.add.at(wanted, np.array([0, 0]), X)  # a repeated position is added twice
    same(xp, twice, wanted, 1e-6)


@verb
def narrow(xp: Any) -> None:
    half = xp.narrow("float16")
    if half is not None:
        assert xp.to_numpy(xp.asarray([1.0, 65504.0], dtype=half)).dtype == np.float16
    assert xp.narrow("no such dtype") is None


@verb
def quick(xp: Any) -> None:
    key = array(xp, KEY)
    for normal, mean, deviation in ((False, 0.5, 12**-0.5), (True, 0.0, 1.0)):
        found = xp.quick(key, (100, 100), xp.float32, normal)
        assert isinstance(found, xp.arrays)
        values = xp.to_numpy(found)
        assert values.shape == (100, 100)
        assert values.dtype == np.float32
        assert abs(values.mean() - mean) < 0.05  # five standard errors
        assert abs(values.std() - deviation) < 0.05
        if not normal:
            assert values.min() >= 0
            assert values.max() < 1
        again = xp.quick(key, (100, 100), xp.float32, normal)
        np.testing.assert_array_equal(xp.to_numpy(again), values)
        other = xp.quick(array(xp, KEY + 1), (100, 100), xp.float32, normal)
        assert np.any(xp.to_numpy(other) != values), "another key draws the same numbers"
