"""Suite "Stateful API/modules": what a module is, row by row."""

import numpy as np
import pytest

import isomorph as iso
from modules.perceptron import (
    RATE,
    SIZES,
    Keyed,
    Listed,
    Plain,
    T,
    X,
    array,
    by_hand,
    made,
    start,
    trained,
    trained_by_hand,
)
from oracles import numpy_of

pytestmark = pytest.mark.whole
compiles = pytest.mark.takes("torch compiles kernels of C++, each for a second")

TEN = 10


def same(x, y):
    """Check that nests of arrays are equal to the last bit."""
    if isinstance(y, dict):
        assert list(x) == list(y)
        for key in y:
            same(x[key], y[key])
    else:
        np.testing.assert_array_equal(iso.to_numpy(x), iso.to_numpy(y))


def compiled(net):
    """The model returned by a compiled program: equal to the input, but a different object."""
    again = iso.jit(lambda net: net)(net)
    assert again is not net
    same(again.v, net.v)
    return again


def check_training(build, backend, keys, compiled):
    """Ten steps: the losses fall, agree with the chain rule by hand, and start from jax.random's
    numbers.
    """
    net = made(backend, build)
    parts = [_at(net.v, key) for key in keys]
    for part, expected in zip(parts, start()):
        assert set(part) == {"w", "b"}
        np.testing.assert_allclose(iso.to_numpy(part["w"]), expected["w"], rtol=1e-6)
    losses, grads = trained(net, TEN, compiled)
    expected, first = trained_by_hand(TEN)
    assert np.all(np.diff(losses) < 0)
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    for key, by in zip(keys, first):
        for name in ("w", "b"):
            got = _at(grads, key)[name]
            assert np.any(got != 0)
            np.testing.assert_allclose(got, by[name], rtol=1e-4, atol=1e-6)


def _at(nest, chain):
    for key in chain:
        nest = nest[key]
    return nest


@compiles
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_module_training(backend, compiled):
    check_training(Plain, backend, [("linear0",), ("linear1",), ("linear2",)], compiled)


@compiles
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_module_w_list_training(backend, compiled):
    check_training(Listed, backend, [("layers", 0), ("layers", 1), ("layers", 2)], compiled)


@compiles
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_module_w_dict_training(backend, compiled):
    keys = [("layers", f"layer{i}") for i in range(3)]
    check_training(Keyed, backend, keys, compiled)


class Twice(iso.Module):
    """One layer under two names, and one array in two layers."""

    def __init__(self):
        self.first = iso.Linear(3, 3, key=0)
        self.again = self.first
        self.tied = iso.Linear(3, 3, key=1)
        self.tied.w = self.first.w

    def forward(self, x):
        return self.tied(self.again(self.first(x)))


@compiles
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_module_training_with_duplicate(backend, compiled):
    net = made(backend, Twice)
    assert {k: set(part) for k, part in net.v.items()} == {"first": {"w", "b"}, "tied": {"b"}}
    assert net.tied.w is net.first.w
    x = array(backend, X.astype(np.float32))
    xp = iso.namespace(x)
    step = iso.value_and_grad(lambda v, x: xp.sum(net(x, v=v) ** 2))
    value, grads = (iso.jit(step) if compiled else step)(net.v, x)
    # y = ((x·Aᵀ + a)·Aᵀ + a)·Aᵀ + c: three uses of A, two of a
    own = iso.to_numpy(net.v)
    a, first, last = (np.asarray(z, np.float64) for z in (
        own["first"]["w"], own["first"]["b"], own["tied"]["b"]
    ))  # fmt: skip
    x0 = X.astype(np.float32).astype(np.float64)
    x1 = x0 @ a.T + first
    x2 = x1 @ a.T + first
    y = x2 @ a.T + last
    d3 = 2 * y
    d2 = d3 @ a
    d1 = d2 @ a
    grads = iso.to_numpy(grads)
    np.testing.assert_allclose(float(value), np.sum(y**2), rtol=1e-5)
    summed = d3.T @ x2 + d2.T @ x1 + d1.T @ x0
    np.testing.assert_allclose(grads["first"]["w"], summed, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(grads["first"]["b"], (d1 + d2).sum(0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(grads["tied"]["b"], d3.sum(0), rtol=1e-4, atol=1e-5)
    net.v = iso.gradient_descent_update(net.v, array_nest(backend, grads), RATE)
    assert net.first is net.again
    assert net.tied.w is net.first.w
    np.testing.assert_allclose(iso.to_numpy(net.tied.w), a - RATE * grads["first"]["w"], rtol=1e-5)


def array_nest(backend, nest):
    return iso.convert(nest, backend)


def test_module_w_partial_v(backend):
    whole = made(backend, Plain).v
    chosen = array(backend, np.full((4, 3), 7.0, np.float32))
    net = made(backend, lambda: Plain(v={"linear0": {"w": chosen}}, with_partial_v=True))
    same(net.v["linear0"]["w"], chosen)
    same(net.v["linear0"]["b"], np.zeros(4, np.float32))
    np.testing.assert_allclose(iso.to_numpy(net.v["linear2"]["w"]), start()[2]["w"], rtol=1e-6)
    full = {k: {n: x + 1 for n, x in part.items()} for k, part in whole.items()}
    same(made(backend, lambda: Plain(v=full)).v, full)
    with pytest.raises(KeyError) as error:
        made(backend, lambda: Plain(v={"linear0": {"w": chosen}}))
    assert "missing keys: linear0/b, linear1/b, linear1/w" in str(error.value)
    with pytest.raises(KeyError, match="unexpected keys: linear0/c"):
        made(backend, lambda: Plain(v={"linear0": {"c": chosen}}, with_partial_v=True))
    wrong = array(backend, np.ones((2, 2), np.float32))
    needed = r"Plain: needed a float.* \[4, 3\] for linear0/w, got (torch\.)?float32 \[2, 2\]"
    with pytest.raises(ValueError, match=needed):
        made(backend, lambda: Plain(v={"linear0": {"w": wrong}}, with_partial_v=True))
    x = array(backend, X.astype(np.float32))
    once = iso.jit(lambda v, x: net(x, v=v))(net.v, x)
    np.testing.assert_allclose(numpy_of(once), numpy_of(net(x)), rtol=1e-5, atol=1e-6)
    with pytest.raises(KeyError, match="missing keys: linear1/b"):
        net(x, v={"linear0": whole["linear0"]})
    with pytest.raises(KeyError, match="unexpected keys: extra"):
        net(x, v={**whole, "extra": wrong})


class Nothing(iso.Module):
    def __init__(self):
        self.some = None
        self.linear = iso.Linear(3, 2, bias=False, key=0)
        self.more = [None, {"a": None}]

    def forward(self, x):
        assert self.some is None
        assert self.more == [None, {"a": None}]
        return self.linear(x)


def test_module_w_none_attribute(backend):
    net = made(backend, Nothing)
    assert list(net.v) == ["linear"]
    assert list(net.v["linear"]) == ["w"]
    x = array(backend, X.astype(np.float32))
    w = iso.to_numpy(net.v["linear"]["w"])
    np.testing.assert_allclose(iso.to_numpy(net(x)), X @ w.T, rtol=1e-5, atol=1e-6)
    xp = iso.namespace(x)
    step = iso.jit(iso.grad(lambda v, x: xp.sum(net(x, v=v))))
    net.v = iso.gradient_descent_update(net.v, step(net.v, x), 0.5)
    moved = w - 0.5 * np.broadcast_to(X.sum(0), w.shape)
    np.testing.assert_allclose(iso.to_numpy(net.v["linear"]["w"]), moved, rtol=1e-5, atol=1e-6)


class Named(iso.Module):
    def __init__(self):
        self._linear0 = iso.Linear(*SIZES[0], key=0)
        self._linear1 = iso.Linear(*SIZES[1], key=1)
        self._linear2 = iso.Linear(*SIZES[2], key=2)

    def _create_variables(self):
        return {"x": self._linear0.v, "y": {"z": self._linear1.v, "w": self._linear2.w}}

    def forward(self, x):
        xp = iso.namespace(x)
        return self._linear2(xp.tanh(self._linear1(xp.tanh(self._linear0(x)))))


@compiles
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_with_custom_var_structure(backend, compiled):
    net = made(backend, Named)
    assert {k: sorted(part) for k, part in net.v.items()} == {"x": ["b", "w"], "y": ["w", "z"]}
    assert net.v["y"]["w"] is net._linear2.w
    x, t = (array(backend, z.astype(np.float32)) for z in (X, T))
    xp = iso.namespace(x)
    step = iso.value_and_grad(lambda v: xp.mean((net(x, v=v) - t) ** 2))
    value, grads = (iso.jit(step) if compiled else step)(net.v)
    loss, by = by_hand(start(np.float64))
    np.testing.assert_allclose(float(value), loss, rtol=1e-5)
    for got, want in (
        (grads["x"]["w"], by[0]["w"]), (grads["y"]["z"]["b"], by[1]["b"]),
        (grads["y"]["w"], by[2]["w"]),
    ):  # fmt: skip
        np.testing.assert_allclose(iso.to_numpy(got), want, rtol=1e-4, atol=1e-6)
    before = iso.to_numpy(net._linear2.w)
    net.v = iso.gradient_descent_update(net.v, grads, RATE)
    np.testing.assert_allclose(
        iso.to_numpy(net._linear2.w), before - RATE * by[2]["w"], rtol=1e-4, atol=1e-6
    )
    assert float(step(net.v)[0]) < loss


class Inner(iso.Module):
    def __init__(self, key):
        self.linear = iso.Linear(2, 2, key=key)
        self.parts = {"a": [iso.Linear(2, 2, key=key + 1)]}

    def forward(self, x):
        return self.parts["a"][0](self.linear(x))


class Outer(iso.Module):
    def __init__(self):
        self.blocks = []  # filled after assignment
        for i in range(2):
            self.blocks.append(Inner(10 * i))
        self.head = iso.Linear(2, 1, key=5)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def test_top_variables(backend):
    net = made(backend, Outer)
    inner = net.blocks[1]
    deep = inner.parts["a"][0]
    same(deep.top_v(), net.v)
    assert deep.top_v()["head"]["w"] is net.head.w
    same(deep.top_v(depth=0), {"w": deep.w, "b": deep.b})
    assert deep.top_v(depth=1)["linear"]["w"] is inner.linear.w
    assert list(deep.top_v(depth=1)) == ["linear", "parts"]
    same(deep.top_v(depth=2), net.v)
    same(deep.top_v(depth=9), net.v)
    there = compiled(net)
    same(there.blocks[1].parts["a"][0].top_v(), net.v)
    assert there.blocks[1].linear.top_v()["head"]["w"] is there.head.w


def test_top_module(backend):
    net = made(backend, Outer)
    deep = net.blocks[0].parts["a"][0]
    assert deep.top_mod() is net
    assert deep.top_mod(depth=0) is deep
    assert deep.top_mod(depth=1) is net.blocks[0]
    assert deep.top_mod(depth=2) is net
    assert deep.top_mod(depth=7) is net
    assert net.top_mod() is net
    there = compiled(net)
    assert there.blocks[0].parts["a"][0].top_mod() is there
    assert there.blocks[0].parts["a"][0].top_mod(depth=1) is there.blocks[0]
    other = made(backend, lambda: iso.Sequential(net))
    assert deep.top_mod() is other


def test_v_with_top_v_key_chains(backend):
    net = made(backend, Outer)
    deep = net.blocks[1].parts["a"][0]
    nest = deep.v_with_top_v_key_chains()
    assert list(nest) == ["blocks"]
    assert nest["blocks"][1]["parts"]["a"][0]["w"] is deep.w
    assert nest["blocks"][1]["parts"]["a"][0]["b"] is deep.b
    flat = deep.v_with_top_v_key_chains(flatten_key_chains=True)
    assert set(flat) == {"blocks/1/parts/a/0/w", "blocks/1/parts/a/0/b"}
    assert flat["blocks/1/parts/a/0/w"] is deep.w
    near = deep.v_with_top_v_key_chains(depth=1, flatten_key_chains=True)
    assert set(near) == {"parts/a/0/w", "parts/a/0/b"}
    assert near["parts/a/0/b"] is deep.b
    assert deep.v_with_top_v_key_chains(depth=0)["w"] is deep.w
    assert net.v_with_top_v_key_chains()["head"]["w"] is net.head.w
    again = compiled(net)
    there = again.blocks[1].parts["a"][0]
    flat = there.v_with_top_v_key_chains(flatten_key_chains=True)
    assert flat["blocks/1/parts/a/0/b"] is there.b


def test_module_depth(backend):
    first = made(backend, Outer)
    for net in (first, compiled(first)):
        inner = net.blocks[0]
        parts = (net, net.head, inner, inner.linear, inner.parts["a"][0])
        assert [m.mod_depth() for m in parts] == [0, 1, 1, 2, 2]


def test_module_height(backend):
    first = made(backend, Outer)
    for net in (first, compiled(first)):
        assert [m.mod_height() for m in (net, net.blocks[1], net.head)] == [2, 1, 0]


def test_sub_modules(backend):
    net = made(backend, Outer)
    first, second = net.blocks
    ends = net.sub_mods(show_v=False)
    assert ends["blocks"][0]["linear"] is first.linear
    assert ends["blocks"][1]["parts"]["a"][0] is second.parts["a"][0]
    assert ends["head"] is net.head
    shown = net.sub_mods()
    assert shown["blocks"][1]["linear"]["w"] is second.linear.w
    assert net.sub_mods(depth=1, show_v=False) == {"blocks": {0: first, 1: second},
                                                   "head": net.head}  # fmt: skip
    assert net.sub_mods(depth=1)["blocks"][0]["parts"]["a"][0]["b"] is first.parts["a"][0].b
    flat = net.sub_mods(flatten_key_chains=True, show_v=False)
    assert flat == {
        "blocks/0/linear": first.linear, "blocks/0/parts/a/0": first.parts["a"][0],
        "blocks/1/linear": second.linear, "blocks/1/parts/a/0": second.parts["a"][0],
        "head": net.head,
    }  # fmt: skip
    assert net.head.sub_mods() == {}
    there = compiled(net)
    assert there.sub_mods(show_v=False)["blocks"][1]["linear"] is there.blocks[1].linear
    same(there.sub_mods(), net.sub_mods())


def affine(layer, x):
    """A linear layer in NumPy."""
    return x @ np.asarray(iso.to_numpy(layer.w), np.float64).T + iso.to_numpy(layer.b)


class Shared(iso.Module):
    """`twice` is called twice, the second time inside `block`."""

    def __init__(self):
        self.twice = iso.Linear(2, 2, key=0)
        self.block = Inner(1)

    def forward(self, x):
        return self.block(self.twice(self.twice(x)))


def expected_rets(net, x):
    once = affine(net.twice, x)
    again = affine(net.twice, once)
    linear = affine(net.block.linear, again)
    last = affine(net.block.parts["a"][0], linear)
    return {
        "twice": [once, again], "block/linear": [linear], "block/parts/a/0": [last],
        "block": [last],
    }  # fmt: skip


def test_module_track_submod_rets(backend):
    net = made(backend, Shared)
    x = array(backend, X[:, :2].astype(np.float32))
    y = net(x, track_submod_rets=True)
    expected = expected_rets(net, X[:, :2].astype(np.float32))
    assert set(net.submod_rets) == set(expected)
    for chain, wanted in expected.items():
        assert len(net.submod_rets[chain]) == len(wanted)
        for got, want in zip(net.submod_rets[chain], wanted):
            assert type(got) is np.ndarray
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(iso.to_numpy(y), expected["block"][0], rtol=1e-5, atol=1e-6)
    net(x, track_submod_rets=True, submod_depth=1)
    assert set(net.submod_rets) == {"twice", "block"}
    net(x, track_submod_rets=True, submods_to_track=[net.block.linear, "twice"])
    assert set(net.submod_rets) == {"twice", "block/linear"}
    with pytest.raises(ValueError, match="submods_to_track: needed submodules of"):
        net(x, track_submod_rets=True, submods_to_track=["other"])
    # the recorded values are copies, also when differentiated, and use the given variables
    doubled = dict(net.v)
    doubled["twice"] = {n: 2 * p for n, p in net.v["twice"].items()}

    def loss(v):
        return iso.namespace(x).sum(net(x, v=v, track_submod_rets=True))

    iso.grad(loss)(doubled)
    there = compiled(net)
    there(x, track_submod_rets=True)
    np.testing.assert_allclose(
        net.submod_rets["twice"][0], 2 * expected["twice"][0], rtol=1e-5, atol=1e-6
    )


def test_module_track_submod_call_order(backend):
    net = made(backend, Shared)
    x = array(backend, X[:, :2].astype(np.float32))
    net(x, track_submod_call_order=True)
    order = net.submod_call_order
    assert list(order) == ["twice_0", "twice_1", "block_0"]
    assert list(order["block_0"]) == ["block/linear_0", "block/parts/a/0_0"]
    assert order["twice_0"]["w"] is net.twice.w
    assert order["twice_1"]["b"] is net.twice.b
    assert order["block_0"]["block/linear_0"]["w"] is net.block.linear.w
    net(x, track_submod_call_order=True, submod_depth=1)
    assert list(net.submod_call_order) == ["twice_0", "twice_1", "block_0"]
    assert net.submod_call_order["block_0"]["linear"]["w"] is net.block.linear.w
    other = dict(net.v)
    other["twice"] = {n: p + 1 for n, p in net.v["twice"].items()}
    iso.jit(lambda x: net(x, v=other, track_submod_call_order=True))(x)
    same(net.submod_call_order["twice_0"]["w"], other["twice"]["w"])


def test_module_check_submod_rets(backend):
    net = made(backend, Shared)
    x = array(backend, X[:, :2].astype(np.float32))
    y = net(x, track_submod_rets=True)
    rets = net.submod_rets
    same(net(x, expected_submod_rets=rets), y)
    exact = expected_rets(net, X[:, :2].astype(np.float32))
    net(x, expected_submod_rets={"twice": {"val": exact["twice"], "atol": 1e-5, "rtol": 1e-5}})
    off = {"twice": [rets["twice"][0], rets["twice"][1] + np.float32(0.25)]}
    with pytest.raises(ValueError, match="twice, call 1: the largest error is 0.25") as error:
        net(x, expected_submod_rets=off)
    assert "atol 1e-08 and rtol 1e-05" in str(error.value)
    net(x, expected_submod_rets={"twice": {"val": off["twice"], "atol": 0.3}})
    with pytest.raises(ValueError, match="twice, call 1: the largest error is 0.25"):
        net(x, expected_submod_rets={"twice": {"val": off["twice"], "atol": 0.2, "rtol": 0.0}})
    with pytest.raises(ValueError, match="twice: needed 1 calls, got 2"):
        net(x, expected_submod_rets={"twice": rets["twice"][:1]})
    doubled = {k: {n: 2 * z for n, z in p.items()} if k == "twice" else p for k, p in net.v.items()}
    step = iso.jit(lambda v, x: net(x, v=v))  # records of a compiled program, compared with rets
    np.testing.assert_allclose(numpy_of(step(net.v, x)), rets["block"][0], rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="twice, call 0: the largest error is"):
        net(x, v=doubled, expected_submod_rets=rets)
    with pytest.raises(KeyError, match="needed key chains of submodules .*, got other"):
        net(x, expected_submod_rets={"other": [rets["twice"][0]]})
    spoiled = rets["block"][0].copy()
    spoiled[0, 0] = np.nan
    with pytest.raises(ValueError, match="block, call 0"):
        net(x, expected_submod_rets={"block": [spoiled]})
    with pytest.raises(ValueError, match="block, call 0: needed shape"):
        net(x, expected_submod_rets={"block": [rets["block"][0][:1]]})
