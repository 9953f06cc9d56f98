"""The order of keys in dicts is the same inside and after a program as without it. A function that
stacks `d.values()`, or zips them with numbers, depends on it.
"""

from collections import namedtuple

import numpy as np
import pytest

import isomorph as iso

Pair = namedtuple("Pair", "first second")


def nest(backend, scale=1.0):
    make = lambda x: iso.convert(np.asarray([x * scale, -x], np.float32), backend)
    inner = [{"y": make(3.0), "b": make(4.0)}]
    pair = Pair({"k": make(5.0), "d": make(6.0)}, make(7.0))
    return {"z": make(1.0), "a": {"q": make(2.0), "c": inner}, "m": pair}


def turned(x):
    """The nest with the keys of its dicts in reverse order."""
    if isinstance(x, dict):
        return {key: turned(x[key]) for key in reversed(x)}
    if isinstance(x, Pair):
        return Pair(*map(turned, x))
    return list(map(turned, x)) if isinstance(x, list) else x


def keys(x):
    """The keys of a nest, in their order."""
    if isinstance(x, dict):
        return [(key, keys(value)) for key, value in x.items()]
    return [keys(value) for value in x] if isinstance(x, list | tuple) else None


def walked(x):
    """The arrays of a nest, in the order of its keys."""
    if isinstance(x, dict):
        return [y for value in x.values() for y in walked(value)]
    return [y for value in x for y in walked(value)] if isinstance(x, list | tuple) else [x]


def weighted(x):
    """Depends on the order."""
    return sum(i * y for i, y in enumerate(walked(x), 1))


def total(x):
    return iso.namespace(*walked(x)).sum(weighted(x) ** 2)


PROGRAMS = {
    "as it is": lambda x: x,
    "doubled": lambda x: {key: x[key] for key in ("z", "m", "a")},
    "beside": lambda x: (weighted(x), {"y": weighted(x), "b": [x]}),
    "gradient": lambda x: iso.grad(total)(x),
    "mapped": lambda x: iso.vmap(lambda x: {"w": weighted(x), "b": x})(x),
    "scan": lambda x: iso.scan(lambda c, y: (c, {"w": weighted(y), "b": y}), x, x),
    "a program inside": lambda x: iso.jit(lambda x: {"w": weighted(x), "b": x})(x),
}


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_keeps_the_order(backend, name, compiled):
    """Of this call, also if another one had the same keys in another order."""
    func = PROGRAMS[name]
    program = iso.jit(func) if compiled else func
    calls = [(way(nest(backend)), func(way(nest("numpy")))) for way in (lambda x: x, turned)]
    assert keys(calls[0][0]) != keys(calls[1][0])
    for given, wanted in 3 * calls:  # a framework may take another way from the second call on
        found = program(given)
        assert keys(found) == keys(wanted)
        for x, y in zip(walked(found), walked(wanted), strict=True):
            np.testing.assert_allclose(iso.to_numpy(x), y, rtol=1e-5)


def test_keywords_in_another_order(backend):
    program = iso.jit(lambda **kw: weighted(kw))
    x, y = nest(backend)["z"], nest(backend)["a"]["q"]
    for given in ({"x": x, "y": y}, {"y": y, "x": x}, {"x": x, "y": y}):
        wanted = weighted(list(map(iso.to_numpy, given.values())))
        np.testing.assert_allclose(iso.to_numpy(program(**given)), wanted)


def test_other_arguments_and_other_shapes(backend):
    func = lambda x, n, *, more: {"w": n * weighted(x), "b": more, "a": x}
    program = iso.jit(func, static="n")
    for scale in (1.0, 2.0):
        for n in (1, 3):
            given, more = nest(backend, scale), {"y": nest(backend)["z"], "e": nest(backend)["m"]}
            found = program(given, n, more=more)
            wanted = func(
                nest("numpy", scale), n, more={"y": nest("numpy")["z"], "e": nest("numpy")["m"]}
            )
            assert keys(found) == keys(wanted)
            np.testing.assert_allclose(iso.to_numpy(found["w"]), wanted["w"], rtol=1e-6)


def test_verified_programs(backend):
    program = iso.jit(lambda x: {"w": weighted(x), "b": x}, verify=True)
    for _ in range(2):
        assert keys(program(nest(backend))) == keys({"w": 0.0, "b": nest("numpy")})


def test_a_step_keeps_the_order(backend):
    """In the loss, in aux and in the state, also if a new shape is compiled later."""
    loss = lambda v, x: (total(v) * iso.namespace(x).sum(x), {"w": weighted(v), "b": v})
    step = iso.train_step(loss, iso.optimizers.sgd(0.0), has_aux=True)
    state = step.init(nest(backend))
    wanted = weighted(nest("numpy"))
    for rows in (1, 1, 2):
        state, (_, aux) = step(state, iso.convert(np.ones(rows, np.float32), backend))
        assert keys(state.model) == keys(nest("numpy"))
        assert keys(aux) == keys({"w": 0.0, "b": nest("numpy")})
        np.testing.assert_allclose(iso.to_numpy(aux["w"]), wanted, rtol=1e-6)


@pytest.mark.parametrize("compiled", [True, False])
def test_one_step_for_models_of_two_orders(backend, compiled):
    """The loss of each is that of its own order, at the first step and at later ones."""
    loss = lambda v, x: total(v) * iso.namespace(x).sum(x)
    step = iso.train_step(loss, iso.optimizers.sgd(0.0), compiled=compiled)
    x = iso.convert(np.ones(1, np.float32), backend)
    states = [step.init(way(nest(backend))) for way in (lambda v: v, turned)]
    wanted = [float(total(way(nest("numpy")))) for way in (lambda v: v, turned)]
    assert wanted[0] != wanted[1]
    for _ in range(3):
        for place, way in enumerate((lambda v: v, turned)):
            states[place], value = step(states[place], x)
            np.testing.assert_allclose(float(value), wanted[place], rtol=1e-6)
            assert keys(states[place].model) == keys(way(nest("numpy")))
