"""A module caches what it holds; every change is noticed, however it is made."""

import gc
import random
import weakref
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

import isomorph as iso
from isomorph.core import tree


class Pair(NamedTuple):
    left: object
    right: object


class Leaf(iso.Module):
    def __init__(self, value):
        self.w, self.scale = value, 1.0

    def forward(self, x):
        return x * self.w * self.scale


class Holder(iso.Module):
    """A module that computes with everything it holds now, so that a change changes its result."""

    def __init__(self, make):
        self.first, self.many = Leaf(make(2.0)), [Leaf(make(3.0)), make(4.0)]
        self.named, self.pair = {"a": Leaf(make(5.0))}, Pair(make(6.0), (Leaf(make(7.0)),))
        self.count, self.extra = iso.State(make(8.0)), SimpleNamespace(factor=1)
        self._hidden = make(9.0)

    def forward(self, x):
        parts = [*held(self).values(), *held(self, frozen=True).values()]
        return x * sum(parts[1:], parts[0]) * (self.extra.factor + self.first.scale)


def plain(value):
    return np.full(2, value)


def held(module, frozen=False):
    """The variables of a module by path, each once: a naive walk without a cache."""
    found, seen = {}, set()

    def visit(x, path, owner, local):
        if isinstance(x, iso.Module):
            if id(x) not in seen:
                seen.add(id(x))
                for key, y in vars(x).items():
                    visit(y, (*path, key.removeprefix("_")), x, (key.removeprefix("_"),))
        elif isinstance(x, dict):
            for key, y in x.items():
                visit(y, (*path, key), owner, (*local, key))
        elif isinstance(x, list | tuple):
            for i, y in enumerate(x):
                visit(y, (*path, i), owner, (*local, i))
        elif hasattr(x, "dtype") and "float" in str(x.dtype) and id(x) not in seen:
            seen.add(id(x))
            is_frozen = "/".join(map(str, local)) in owner._frozen
            if is_frozen is frozen:
                found["/".join(map(str, path))] = x

    visit(module, (), module, ())
    return found


def variables(module):
    return dict(zip(tree.paths(module.v), tree.flatten(module.v)[0]))


def swapped(net, make):
    left, (one, *others) = net.pair
    net.first, net.pair = one, Pair(left, (net.first, *others))


def renamed(net, make):
    net.named = {f"{key}x": value for key, value in net.named.items()}


def behind(net, make):
    vars(net)["first"] = Leaf(make(1.5))


def tied(net, make):
    net.many[1] = net.first.w


def untied(net, make):
    net.many[1] = make(2.5)


# Every way to change a module: attributes, containers, bypassing setattr, deep inside.
CHANGES = [
    lambda net, make: setattr(net.first, "scale", net.first.scale + 1),
    lambda net, make: setattr(net.first, "w", make(1.25)),
    lambda net, make: setattr(next(iter(net.named.values())), "w", make(0.75)),
    lambda net, make: net.many.append(Leaf(make(1.5))),
    lambda net, make: net.many.insert(0, make(0.5)),
    lambda net, make: net.many.pop() if len(net.many) > 2 else None,
    lambda net, make: net.many.reverse(),
    lambda net, make: net.named.update(new=make(1.75) if "new" in net.named else Leaf(make(2.0))),
    lambda net, make: net.named.pop("new", None),
    lambda net, make: setattr(net, "pair", Pair(make(1.125), (*net.pair.right, Leaf(make(0.875))))),
    lambda net, make: setattr(net.extra, "factor", net.extra.factor + 1),
    lambda net, make: net.freeze("first"),
    lambda net, make: net.unfreeze(),
    lambda net, make: setattr(net, "v", tree.map(lambda x: x + 1, net.v)),
    lambda net, make: setattr(net.first, "v", tree.map(lambda x: x + 1, net.first.v)),
    lambda net, make: delattr(net, "later") if hasattr(net, "later") else setattr(
        net, "later", [Leaf(make(3.5))]),
    swapped, renamed, behind, tied, untied,
]  # fmt: skip


def settings(net):
    return net.first.scale, net.extra.factor, list(net.named), len(net.many)


@pytest.mark.parametrize("seed", range(3))
def test_any_change_is_seen(backend, seed):
    draw = random.Random(seed)
    make = lambda value: iso.convert(plain(value), backend)
    net, x = Holder(make), make(1.0)
    for step in range(40):
        form, old = tree.flatten_whole(net)[1], settings(net)
        draw.choice(CHANGES)(net, make)
        wanted, found = held(net), variables(net)
        assert found.keys() == wanted.keys(), step
        assert all(found[path] is wanted[path] for path in wanted), step
        frozen = dict(zip(tree.paths(net.state), tree.flatten(net.state)[0]))
        assert all(frozen[path] is y for path, y in held(net, frozen=True).items()), step
        assert (tree.flatten_whole(net)[1] == form) <= (settings(net) == old), step
        expected = iso.to_numpy(net(x))
        other = net.apply(tree.map(lambda y: 2 * y, net.v), tree.map(lambda y: 2 * y, net.state), x)
        np.testing.assert_allclose(iso.to_numpy(other[0]), 2 * expected, rtol=1e-6)
        renewed = tree.renewed(net)
        np.testing.assert_allclose(iso.to_numpy(renewed(x)), expected, rtol=1e-6)
        assert variables(renewed).keys() == wanted.keys(), step
        assert all(variables(net)[path] is y for path, y in wanted.items()), step


def test_any_change_is_compiled(backend):
    if backend == "torch":
        pytest.skip("compiling for each change takes minutes; the test above covers the cache key")
    make = lambda value: iso.convert(plain(value), backend)
    net, x = Holder(make), make(1.0)
    run, traces = iso.jit(lambda net, x: traces.append(1) or net(x)), []
    for change in CHANGES:
        for _ in range(2):
            np.testing.assert_allclose(iso.to_numpy(run(net, x)), iso.to_numpy(net(x)), rtol=1e-6)
        change(net, make)
    if backend != "numpy":
        count = len(traces)
        # neither new arrays nor a module returned by a program cause a recompilation
        for _ in range(3):
            net.v = tree.map(lambda y: y + 1, net.v)
            run(net, x)
            run(tree.renewed(net), x)
        assert len(traces) <= count + 1


def test_what_is_replaced_is_let_go(backend):
    make = lambda value: iso.convert(plain(value), backend)
    net = Holder(make)
    assert net(make(1.0), v=net.v) is not None
    gone = [weakref.ref(net.first), weakref.ref(net.many[0])]
    net.first, net.many[0] = Leaf(make(1.0)), Leaf(make(2.0))
    assert len(net.v) == 5
    gc.disable()
    try:
        assert [ref() for ref in gone] == [None, None]
        whole = weakref.ref(net)
        net = None
        assert whole() is None
    finally:
        gc.enable()


class Ring(iso.Module):
    def __init__(self, make):
        self.w, self.again = make(2.0), [None]
        self.again[0], self.pair = self.again, (self.again, self)
        self.same = self.pair

    def forward(self, x):
        return x * self.w


def test_what_is_shared_stays_shared_and_circles_end(backend):
    make = lambda value: iso.convert(plain(value), backend)
    net = tree.renewed(Ring(make))
    assert net.again[0] is net.again
    assert net.pair is net.same
    assert net.pair[0] is net.again
    assert net.pair[1] is net
    assert list(net.v) == ["w"]
    other = net(make(3.0), v={"w": make(5.0)})
    np.testing.assert_array_equal(iso.to_numpy(other), plain(15.0))
