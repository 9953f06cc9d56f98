"""Ways to misuse a module, found by trying: each is refused, or does what it looks like."""

import copy
import sys
import threading
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import isomorph as iso
from isomorph.core import tree
from modules.perceptron import array, made
from oracles import numpy_of

X = np.random.default_rng(1).uniform(-1, 1, (4, 3)).astype(np.float32)


def test_functions_that_hold_a_module(backend, xp):
    class Method(iso.Module):
        def __init__(self):
            self.w = xp.asarray(np.ones(2))
            self.f = self.scaled  # its own bound method is rebound too

        def scaled(self, x):
            return xp.sum(self.w * x)

        def forward(self, x):
            return self.f(x)

    class Closure(Method):
        def __init__(self):
            super().__init__()
            self.f = lambda x: xp.sum(self.w * x)

    class Hidden(Method):
        def __init__(self):
            super().__init__()
            self.f = partial(Method())

    x = xp.asarray(np.array([1.0, 2.0]))
    net = Method()
    zero = {"w": xp.zeros(2, dtype=xp.float64)}
    assert float(net(x, v=zero)) == 0.0
    np.testing.assert_array_equal(numpy_of(iso.grad(lambda v: net(x, v=v))(net.v)["w"]), [1, 2])
    np.testing.assert_array_equal(numpy_of(iso.grad(lambda m: m(x))(net).v["w"]), [1, 2])
    for build in (Closure, Hidden):
        with pytest.raises(TypeError, match="at f that contains a module"):
            build()(x, v=zero)


def test_the_mode_counts_inside_a_call_too(backend, xp):
    class Half(iso.Module):
        def __init__(self):
            self.left, self.right = iso.Linear(3, 1, key=0), iso.Linear(3, 1, key=1)

        def forward(self, x):
            with iso.gradient_tracking(False):
                left = self.left(x)
            return xp.sum(left + self.right(x))

    net, x = made(backend, Half), array(backend, X)
    for grads in (
        iso.grad(lambda v: net(x, v=v))(net.v), iso.grad(lambda m: m(x))(net).v,
        iso.grad(lambda v: net.apply(v, net.state, x)[0])(net.v),
    ):  # fmt: skip
        np.testing.assert_array_equal(numpy_of(grads["left"]["w"]), np.zeros((1, 3)))
        np.testing.assert_allclose(numpy_of(grads["right"]["w"]), X.sum(0)[None], rtol=1e-5)


def test_settings_that_change_in_place_compile_anew(backend):
    class Set(iso.Module):
        def __init__(self):
            self.config, self.on, self.rate = SimpleNamespace(scale=2.0), {1}, float("nan")
            self.zero, self.traces = 0.0, []

        def forward(self, x):
            TRACES.append(1)
            sign = -1.0 if str(self.zero) == "-0.0" else 1.0
            return x * (self.config.scale * len(self.on) * sign)

    TRACES = []
    net, x = made(backend, Set), array(backend, np.ones(2, np.float32))
    run = iso.jit(lambda net, x: net(x))
    for _ in range(3):
        assert numpy_of(run(net, x)).tolist() == [2.0, 2.0]
    if backend != "numpy":
        assert len(TRACES) <= 2  # NaN equals itself as a setting
    net.config.scale = 3.0
    assert numpy_of(run(net, x)).tolist() == [3.0, 3.0]
    net.on.add(2)
    assert numpy_of(run(net, x)).tolist() == [6.0, 6.0]
    net.zero = -0.0
    assert numpy_of(run(net, x)).tolist() == [-6.0, -6.0]


def test_keys_that_look_alike_stay_apart(backend, xp):
    class Alike(iso.Module):
        def __init__(self):
            self.d = {1: xp.asarray(np.ones(1)), "1": xp.asarray(np.ones(1))}
            self.e = {"a/b": xp.asarray(np.ones(1)), "a": {"b": xp.asarray(np.ones(1))}}

        def forward(self):
            return self.d[1] + 10 * self.d["1"]

    net = Alike()
    number = lambda n: xp.asarray(np.full(1, n))
    nest = {"d": {1: number(5.0), "1": number(7.0)}}
    nest["e"] = {"a/b": number(2.0), "a": {"b": number(3.0)}}
    net.v = nest
    assert [float(net.d[1][0]), float(net.d["1"][0])] == [5.0, 7.0]
    assert [float(net.e["a/b"][0]), float(net.e["a"]["b"][0])] == [2.0, 3.0]
    assert float(net(v=net.v)[0]) == 75.0


def test_freezing_knows_every_name_and_changes_nothing_when_it_fails(backend):
    class Tied(iso.Module):
        def __init__(self):
            self.first = iso.Linear(2, 2, key=0)
            self.second = iso.Linear(2, 2, key=1)
            self.second.w = self.first.w
            self.again = [self.first]

        def forward(self, x):
            return self.second(self.first(x))

    net = made(backend, Tied)
    net.freeze("second/w")
    assert {k: list(p) for k, p in net.v.items()} == {"first": ["b"], "second": ["b"]}
    net.unfreeze("again/0/w")
    assert sorted(net.v["first"]) == ["b", "w"]
    with pytest.raises(ValueError, match="freeze: needed a pattern that matches one of"):
        net.freeze("first/b", "nope")
    assert sorted(net.v["first"]) == ["b", "w"]

    class Listed(iso.Module):
        def __init__(self):
            self.ws = [iso.Linear(1, 1, key=0).w, iso.Linear(1, 1, key=1).w]

    listed = made(backend, Listed)
    listed.freeze("ws/1")
    assert (list(listed.v["ws"]), list(listed.state["ws"])) == ([0], [1])


def test_what_is_lent_to_a_call_is_what_was_asked_for(backend, xp):
    class Net(iso.Module):
        def __init__(self):
            self.w, self.ids = xp.asarray(np.ones(2)), xp.asarray(np.array([1, 0]))

        def forward(self):
            return self.w

    net = Net()
    with pytest.raises(KeyError, match="unexpected keys: ids"):
        net(v={"w": net.w, "ids": net.w})
    with pytest.raises(KeyError, match="missing keys: w"):
        net(v={})
    with pytest.raises(TypeError, match="Net: needed an array for w, got float"):
        net.v = {"w": 2.0}
    with pytest.raises(TypeError, match="needed a nest of variables as v, got float"):
        net.v = 2.0


def test_other_variables_are_used_whatever_another_thread_does(backend):
    """A setter replaces arrays while other threads call with their own, without the fast path."""
    net = made(backend, lambda: iso.Sequential(iso.Linear(1, 1, key=0), iso.Linear(1, 1, key=1)))
    net.freeze("layers/1/b")  # turns the fast path off
    x = array(backend, np.ones((1, 1), np.float32))
    big = {"layers": {
        0: {"w": x * 1e6, "b": x[0] * 0}, 1: {"w": x * 1e6},
    }}  # fmt: skip
    small = net.v
    wrong, stop = [], threading.Event()

    def change():
        while not stop.is_set():
            net.v = {"layers": {k: {n: p * 1 for n, p in part.items()}
                                for k, part in small["layers"].items()}}  # fmt: skip

    def call():
        for _ in range(60):
            if abs(float(net(x, v=big)[0, 0]) - 1e12) > 1e7:
                wrong.append(1)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=change), *(threading.Thread(target=call) for _ in "ab")]
        for t in threads:
            t.start()
        for t in threads[1:]:
            t.join()
    finally:
        stop.set()
        sys.setswitchinterval(before)
    threads[0].join()
    assert wrong == []


def test_checkpoint_takes_modules_and_refuses_changing_state(backend):
    class Deep(iso.Module):
        def __init__(self):
            self.block = iso.Sequential(iso.Linear(3, 3, key=0), iso.namespace(X).tanh)
            self.last = iso.Linear(3, 1, key=1)

        def forward(self, x):
            xp = iso.namespace(x)
            return xp.sum(self.last(xp.tanh(iso.checkpoint(self.block.layers[0])(x))))

    class Plain(Deep):
        def forward(self, x):
            xp = iso.namespace(x)
            return xp.sum(self.last(xp.tanh(self.block.layers[0](x))))

    net, plain, x = made(backend, Deep), made(backend, Plain), array(backend, X)
    expected = iso.grad(lambda v: plain(x, v=v))(plain.v)
    for grads in (
        iso.grad(lambda v: net(x, v=v))(net.v),
        iso.grad(lambda v: net.apply(v, net.state, x)[0])(net.v),
    ):
        np.testing.assert_allclose(
            numpy_of(grads["block"]["layers"][0]["w"]),
            numpy_of(expected["block"]["layers"][0]["w"]), rtol=1e-5, atol=1e-6,
        )  # fmt: skip
    drop = made(backend, lambda: iso.Dropout(0.5, key=0))
    xp = iso.namespace(x)
    with pytest.raises(RuntimeError, match="State: cannot set a value inside iso.checkpoint"):
        iso.grad(lambda x: xp.sum(iso.checkpoint(lambda x: drop(x))(x)))(x)


def test_checkpoint_of_a_module_that_is_differentiated(backend):
    net, x = made(backend, lambda: iso.Linear(3, 2, key=0)), array(backend, X)
    square = lambda y: iso.namespace(y).sum(y * y)
    expected = iso.grad(lambda net: square(net(x)))(net)
    for call in (
        lambda net: iso.checkpoint(net)(x),
        lambda net: iso.checkpoint(net.forward)(x),
        lambda net: iso.checkpoint(lambda x: net(x))(x),
        lambda net: iso.checkpoint(lambda net, x: net(x))(net, x),
    ):
        found = iso.grad(lambda net, call=call: square(call(net)))(net)
        for a, b in zip(tree.flatten(found)[0], tree.flatten(expected)[0], strict=True):
            np.testing.assert_allclose(numpy_of(a), numpy_of(b), rtol=1e-6)
    step = iso.train_step(
        lambda net, x: square(iso.checkpoint(net)(x)), iso.optimizers.sgd(0.5), compiled=False
    )
    state, _ = step(step.init(net), x)
    want = numpy_of(net.w) - 0.5 * numpy_of(expected.v["w"])
    np.testing.assert_allclose(numpy_of(state.model.w), want, rtol=1e-5, atol=1e-6)


def test_copies_can_be_shown_and_copied_and_errors_are_their_own(backend):
    class Talks(iso.Module):
        def __init__(self):
            self.inner = iso.Linear(3, 1, key=0)

        @property
        def scale(self):
            return self.typo

        def forward(self, x):
            assert "inner: Linear" in repr(self)
            twin = copy.deepcopy(self.inner)
            assert twin.top_mod() is twin
            return self.inner(x)

    net, x = made(backend, Talks), array(backend, X)
    assert net(x, v=net.v).shape == (4, 1)
    with pytest.raises(AttributeError, match="Talks has no attribute 'typo'"):
        net.scale  # noqa: B018
    copy.copy(net)
    assert net.inner.top_mod() is net  # a shallow copy does not adopt the submodules
    with pytest.raises(TypeError, match="Slots: needed plain attributes in a module, got"):

        class Slots(iso.Module):
            __slots__ = ("w",)


def test_layers_keep_their_settings(backend):
    """Compared with the functions, which have their own oracles."""
    x = array(backend, np.random.default_rng(0).uniform(-1, 1, (2, 6, 4)).astype(np.float32))
    xp = iso.namespace(x)
    with iso.use_backend(backend):
        norm, conv = iso.BatchNorm(4), iso.Conv1D(4, 6, 3, 1, "SAME", dilations=2, groups=2, key=0)
        attention, lstm = (
            iso.MultiHeadAttention(4, 2, key=1),
            iso.LSTM(4, 3, time_major=True, key=2),
        )
        layer = iso.LayerNorm(4, epsilon=0.5)
    norm(x)
    means = [numpy_of(s.value).copy() for s in (norm.mean, norm.variance)]
    y = numpy_of(norm.eval()(x))
    np.testing.assert_allclose(
        y, (numpy_of(x) - means[0]) / np.sqrt(means[1] + 1e-5), rtol=1e-4, atol=1e-5
    )
    want = iso.conv_general_dilated(
        x, conv.w, 1, "SAME", dims=1, feature_group_count=2, dilations=2, bias=conv.b
    )
    np.testing.assert_array_equal(numpy_of(conv(x)), numpy_of(want))
    one = iso.conv_general_dilated(x, conv.w, 1, "SAME", dims=1, feature_group_count=2)
    assert not np.allclose(numpy_of(want), numpy_of(one))
    padded = np.zeros((2, 6), bool)
    padded[:, 4:] = True
    masked = numpy_of(attention(x, key_padding_mask=xp.asarray(padded)))
    cut = numpy_of(attention(x, x[:, :4], x[:, :4]))
    np.testing.assert_allclose(masked, cut, rtol=1e-4, atol=1e-5)
    hs, _ = lstm(xp.permute_dims(x, (1, 0, 2)))
    rows = iso.LSTM(4, 3, v=lstm.v)(x)[0]
    np.testing.assert_allclose(
        numpy_of(hs).transpose(1, 0, 2), numpy_of(rows), rtol=1e-4, atol=1e-5
    )
    z = numpy_of(x)
    wide = (z - z.mean(-1, keepdims=True)) / np.sqrt(z.var(-1, keepdims=True) + 0.5)
    np.testing.assert_allclose(numpy_of(layer(x)), wide, rtol=1e-4, atol=1e-5)


def test_dropout_draws_anew_and_a_lent_state_is_its_own(backend):
    x = array(backend, np.ones((50,), np.float32))
    with iso.use_backend(backend):
        drop = iso.Dropout(0.5, key=0)
    first, second = numpy_of(drop(x)), numpy_of(drop(x))
    assert not np.array_equal(first, second)
    assert set(first.tolist()) == {0.0, 2.0}

    class Adds(iso.Module):
        def __init__(self, zero):
            self.total = iso.State(zero)

        def forward(self, x):
            self.total.value += x  # in place, where arrays are mutable
            return x

    zero = array(backend, np.zeros(2, np.float32))
    one = array(backend, np.ones(2, np.float32))
    net = Adds(zero)
    net(one, v={})
    net.apply({}, {"total": zero}, one)
    assert numpy_of(net.total.value).tolist() == numpy_of(zero).tolist() == [0.0, 0.0]


def test_a_block_of_keys_ends(backend):
    with iso.use_backend(backend), iso.use_key(3):
        iso.Linear(2, 2)
    outside = [numpy_of(made(backend, lambda: iso.Linear(2, 2)).w) for _ in range(2)]
    assert not np.array_equal(*outside)
    with iso.use_backend(backend), iso.use_key(3):
        iso.Linear(2, 2)
        following = iso.Linear(2, 2)
    assert not np.array_equal(outside[0], numpy_of(following.w))


def test_tracking_takes_nan_for_nan(backend):
    class Odd(iso.Module):
        def __init__(self):
            self.inner = iso.Activation(lambda x: x / x)

        def forward(self, x):
            return self.inner(x)

    net, x = Odd(), array(backend, np.array([0.0, 1.0], np.float32))
    with np.errstate(invalid="ignore"):
        net(x, track_submod_rets=True, submods_to_track="inner")
        assert np.isnan(net.submod_rets["inner"][0][0])
        net(x, expected_submod_rets=net.submod_rets)
        with pytest.raises(ValueError, match="inner, call 0"):
            net(x, expected_submod_rets={"inner": [np.zeros(2, np.float32)]})
        with pytest.raises(ValueError, match=r"needed a number, got shape \(2,\)"):
            net(x, expected_submod_rets={"inner": 1.0})


def test_variables_that_are_no_nest(backend):
    class Odd(iso.Module):
        def __init__(self):
            self.inner = iso.Activation(iso.relu)

        def forward(self, x):
            return self.inner(x)

    x = array(backend, np.ones(2, np.float32))
    with pytest.raises(TypeError, match="Odd: needed a nest of arrays by their keys, got "):
        Odd()(x, v=x)
