"""Details of modules: state, threads, exceptions, copies, freezing, conversion, use as a nest."""

import copy
import gc
import pickle
import threading
import weakref
from collections import OrderedDict, namedtuple

import numpy as np
import pytest
from conftest import BACKENDS

import isomorph as iso
from modules.perceptron import Plain, array, made
from modules.test_modules import Named, Shared
from oracles import kind_of, numpy_of

X = np.random.default_rng(0).uniform(-1, 1, (4, 3)).astype(np.float32)


class Counter(iso.Module):
    def __init__(self, zero):
        self.w = iso.namespace(zero).ones_like(zero)
        self.sum = iso.State(zero)
        self.calls = iso.State(0)

    def forward(self, x):
        xp = iso.namespace(x)
        self.sum.value = self.sum.value + xp.sum(iso.stop_gradient(x))
        self.calls.value += 1
        return xp.sum(self.w * x) + self.sum.value


def test_state_stays_in_a_plain_call_and_is_returned_by_apply(backend):
    net = Counter(array(backend, np.float32(0)))
    x = array(backend, X)
    ones = array(backend, np.ones(2, np.float32))
    net(ones)
    net(ones)
    assert float(net.state["sum"]) == 4.0
    assert net.state["calls"] == 2
    out, state = net.apply(net.v, net.state, ones)
    assert (float(out), float(state["sum"]), state["calls"]) == (8.0, 6.0, 3)
    assert float(net.state["sum"]) == 4.0  # the module is unchanged
    net(ones, v=net.v)
    assert net.calls.value == 2
    net.state = state
    assert (net.calls.value, float(net.sum.value)) == (3, 6.0)
    assert list(net.v) == ["w"]
    assert float(net.v["w"]) == 1.0
    assert kind_of(net.sum.value) == backend
    assert x.shape == (4, 3)


def test_a_variable_without_axes_stays_one(backend):
    net = Counter(array(backend, np.float32(0)))
    for _ in range(2):
        net.v = iso.gradient_descent_update(net.v, net.v, 0.5)  # NumPy gives scalars for these
        assert list(net.v) == ["w"]
    assert float(net.w) == 0.25
    assert list(iso.gradient_descent_update(net, net, 0.5).v) == ["w"]


def test_state_is_threaded_through_compiled_gradients(backend):
    net = Counter(array(backend, np.float32(0)))
    x = array(backend, np.array([1.0, 2.0], np.float32))

    def loss(v, state, x):
        return net.apply(v, state, x)

    step = iso.jit(iso.value_and_grad(loss, has_aux=True))
    state = net.state
    for turn in (1, 2, 3):
        (value, state), grads = step(net.v, state, x)
        assert float(value) == 3.0 + 3.0 * turn
        assert float(state["sum"]) == 3.0 * turn
        assert int(state["calls"]) == turn
        assert float(grads["w"]) == 3.0


def test_state_never_leaks_what_a_compiler_or_a_differentiation_made(backend):
    net = Counter(array(backend, np.float32(0)))
    x = array(backend, X)
    with pytest.raises(RuntimeError, match="State: cannot set a value during .*; use module.apply"):
        iso.jit(lambda x: net(x))(x)
    assert float(net.sum.value) == 0.0

    class Leaky(Counter):
        def forward(self, x):
            self.sum.value = iso.namespace(x).sum(x)
            return self.sum.value * self.w

    net = Leaky(array(backend, np.float32(0)))
    if backend == "tensorflow":  # on TensorFlow's tape it is an ordinary tensor
        assert float(iso.grad(lambda x: net(x))(x)[0, 0]) == 1.0
        assert float(net.sum.value) == pytest.approx(float(np.sum(X)), abs=1e-6)
    else:
        with pytest.raises(RuntimeError, match="invalid afterwards; use module.apply"):
            iso.grad(lambda x: net(x))(x)
        assert float(net.sum.value) == 0.0


def test_a_call_with_other_variables_leaves_nothing_behind_when_it_raises(backend):
    class Fails(iso.Module):
        def __init__(self):
            self.inner = iso.Linear(3, 3, key=0)
            self.seen = []

        def forward(self, x, fail):
            self.inner.w = self.inner.w * 2  # changes the copy
            self.seen.append(1)
            if fail:
                raise KeyError("stop")
            return self.inner(x)

    net = made(backend, Fails)
    before = numpy_of(net.inner.w).copy()
    x, other = array(backend, X), iso.convert({"inner": {"w": 2 * before, "b": X[0]}}, backend)
    with pytest.raises(KeyError, match="stop"):
        net(x, True, v=other)
    with pytest.raises(KeyError, match="stop"):
        net(x, True, track_submod_rets=True)
    np.testing.assert_array_equal(numpy_of(net.inner.w), before)
    assert net.seen == []
    y = net(x, False, v=other)
    np.testing.assert_allclose(numpy_of(y), X @ (4 * before).T + X[0], rtol=1e-5, atol=1e-6)


def test_threads_and_nested_calls_do_not_meet(backend):
    net = made(backend, Plain)
    x = array(backend, X)
    scaled = [
        {k: {n: p * f for n, p in part.items()} for k, part in net.v.items()}
        for f in (0.5, 1.0, 2.0, 3.0)
    ]
    alone = [numpy_of(net(x, v=v)) for v in scaled]
    found = [[] for _ in scaled]

    def work(i):
        for _ in range(20):
            found[i].append(numpy_of(net(x, v=scaled[i])))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for one, many in zip(alone, found):
        assert len(many) == 20
        for y in many:
            np.testing.assert_array_equal(y, one)
    assert len({a.tobytes() for a in alone}) == 4

    class Recursive(iso.Module):
        def __init__(self):
            self.linear = iso.Linear(3, 3, key=0)

        def forward(self, x, depth, v):
            return self.linear(x) if depth == 0 else self(x, depth - 1, v[1:], v=v[0])

    deep = made(backend, Recursive)
    w = numpy_of(deep.linear.w)
    vs = [
        iso.convert({"linear": {"w": w * f, "b": np.zeros(3, np.float32)}}, backend) for f in (2, 5)
    ]
    y = deep(x, 2, vs)
    np.testing.assert_allclose(numpy_of(y), X @ (5 * w).T, rtol=1e-5, atol=1e-6)


def test_the_gradient_mode_detaches_plain_calls_too(backend, xp):
    class Holder(iso.Module):
        def __init__(self, w):
            self.inner = [w]

        def forward(self, x):
            return xp.sum(self.inner[0] * x)

    x = xp.asarray(np.array([1.0, 2.0]))
    gradient = iso.grad(lambda w: Holder(w)(x))
    np.testing.assert_array_equal(numpy_of(gradient(x)), [1.0, 2.0])
    with iso.gradient_tracking(False):
        np.testing.assert_array_equal(numpy_of(gradient(x)), [0.0, 0.0])
    with iso.gradient_tracking(False), iso.gradient_tracking(True):
        np.testing.assert_array_equal(numpy_of(gradient(x)), [1.0, 2.0])


Pair = namedtuple("Pair", "left right")


def test_containers_of_every_kind_and_numbers_that_are_no_arrays(backend, xp):
    class Mixed(iso.Module):
        def __init__(self):
            self.pair = Pair(xp.asarray(np.ones(2)), (xp.asarray(np.zeros(2)), "text"))
            self.table = OrderedDict(b=xp.asarray(np.full(2, 3.0)), a=None)
            self.rate = np.float64(0.5)
            self.ids = xp.asarray(np.array([1, 0]))
            self.nested = {"deep": [[xp.asarray(np.full(2, 4.0))]]}

        def forward(self):
            total = self.pair.left + self.pair.right[0] + self.table["b"]
            return total * float(self.rate) + self.nested["deep"][0][0]

    net = Mixed()
    assert {k: sorted(v) for k, v in net.v.items()} == {
        "pair": [0, 1], "table": ["b"], "nested": ["deep"],
    }  # fmt: skip
    np.testing.assert_array_equal(numpy_of(net()), [6.0, 6.0])
    grads = iso.grad(lambda v: xp.sum(net(v=v)))(net.v)
    np.testing.assert_array_equal(numpy_of(grads["pair"][1][0]), [0.5, 0.5])
    np.testing.assert_array_equal(numpy_of(grads["nested"]["deep"][0][0]), [1.0, 1.0])
    net.v = iso.gradient_descent_update(net.v, grads, 2.0)
    assert type(net.pair) is Pair
    assert type(net.table) is OrderedDict
    assert net.pair.right[1] == "text"
    np.testing.assert_array_equal(numpy_of(net()), [2.5, 2.5])
    moved = iso.convert(net, "numpy")
    assert type(moved.pair) is Pair
    assert type(moved.ids) is np.ndarray
    # lists instead of numbered keys
    lists = {**net.v, "nested": {"deep": [[xp.asarray(np.zeros(2))]]}}
    np.testing.assert_array_equal(numpy_of(net(v=lists)), [0.5, 0.5])


def test_what_cannot_be_found_or_told_apart_is_refused(backend, xp):
    class Hidden(iso.Module):
        def __init__(self):
            self.layers = {iso.Linear(1, 1, key=0)}

    class Same(iso.Module):
        def __init__(self):
            self.w = xp.asarray(np.ones(1))
            self._w = xp.asarray(np.ones(1))

    class Blank(iso.Module):
        pass

    with pytest.raises(TypeError, match="Hidden: needed modules and arrays in lists, tuples or"):
        made(backend, Hidden).v  # noqa: B018
    with pytest.raises(ValueError, match="attributes w and _w both give the key 'w'"):
        Same().v  # noqa: B018
    with pytest.raises(NotImplementedError, match="Blank: needed a method forward"):
        Blank()(1)
    with pytest.raises(AttributeError, match="Blank has no attribute 'other'"):
        Blank().other  # noqa: B018
    other = next(b for b in BACKENDS if b != backend)
    net = made(backend, lambda: iso.Linear(3, 2, key=0))
    with pytest.raises(TypeError, match="arrays of 2 backends in one call"):
        made(
            backend,
            lambda: iso.Linear(
                3, 2, key=0, v=iso.convert({"w": net.w}, other), with_partial_v=True
            ),
        )


def test_a_module_is_a_nest(backend, xp):
    class Net(iso.Module):
        def __init__(self):
            self.one = iso.Linear(3, 2, key=0)
            self.two = self.one
            self.norm = iso.BatchNorm(2)
            self.ids = xp.asarray(np.array([0, 1]))

        def forward(self, x):
            return self.norm(self.two(x))

    net = made(backend, Net)
    x = array(backend, X)

    def loss(model, x):
        y = model(x)
        return xp.sum(xp.tanh(y) * x[:, :2] ** 2), model

    def parts(v):
        return xp.sum(xp.tanh(net.apply(v, net.state, x)[0]) * x[:, :2] ** 2)

    expected = iso.grad(parts)(net.v)
    assert np.abs(numpy_of(expected["one"]["w"])).max() > 0.05
    for run in (lambda f: f, iso.jit):
        (_, after), grads = run(iso.value_and_grad(loss, has_aux=True))(net, x)
        assert type(grads) is Net
        assert grads.one is grads.two
        for name in ("w", "b"):
            np.testing.assert_allclose(
                numpy_of(grads.v["one"][name]), numpy_of(expected["one"][name]), rtol=1e-4,
                atol=1e-5,
            )  # fmt: skip
        assert after.one is after.two
        mean = numpy_of(after.state["norm"]["mean"])
        y = X @ numpy_of(net.one.w).T
        np.testing.assert_allclose(mean, 0.1 * y.mean(0), rtol=1e-4, atol=1e-6)
        assert np.all(numpy_of(net.state["norm"]["mean"]) == 0)
        np.testing.assert_array_equal(numpy_of(after.ids), [0, 1])
        after(x)  # the result is an independent module: its state advances
        assert not np.allclose(numpy_of(after.state["norm"]["mean"]), mean)
        after.extra = iso.Linear(2, 2, key=1)
        assert "extra" in after.v
    _, by_path = iso.execute_with_gradients(
        lambda xs: loss(xs["net"], x)[0], {"net": net}, xs_grad_idxs=[["net", "one", "w"]]
    )
    np.testing.assert_allclose(
        numpy_of(by_path), numpy_of(expected["one"]["w"]), rtol=1e-4, atol=1e-5
    )
    moved = iso.gradient_descent_update(net, grads, 0.5)
    np.testing.assert_allclose(
        numpy_of(moved.one.w), numpy_of(net.one.w) - 0.5 * numpy_of(grads.one.w), rtol=1e-5
    )
    assert moved.two is moved.one


def test_a_compiled_function_of_a_module_sees_its_settings(backend):
    net = made(backend, lambda: iso.Sequential(iso.Linear(3, 2, key=0), iso.Dropout(0.9, key=1)))
    x = array(backend, X)
    run = iso.jit(lambda net, x: net(x))
    dropped = numpy_of(run(net, x))
    assert (dropped == 0).sum() >= 3
    net.eval()
    expected = X @ numpy_of(net[0].w).T
    np.testing.assert_allclose(numpy_of(run(net, x)), expected, rtol=1e-5, atol=1e-6)
    net.train()
    np.testing.assert_array_equal(numpy_of(run(net, x)), dropped)  # the key is an argument


def test_a_model_stays_where_it_is(backend):
    net = made(backend, Plain)
    assert iso.convert(net, backend).v["linear0"]["w"] is net.v["linear0"]["w"]


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_model_moves_between_frameworks(backend, step):
    """All twelve ordered pairs, there and back."""
    target = BACKENDS[(BACKENDS.index(backend) + step) % 4]
    net = made(backend, lambda: iso.Sequential(iso.Linear(3, 4, key=0), iso.BatchNorm(4)))
    net.tied = net[0]
    net(array(backend, X))
    there = iso.convert(net, target)
    assert {kind_of(x) for x in (there[0].w, there[1].mean.value)} == {target}
    assert there.tied is there[0]
    for model in (net, there):
        model.eval()
    np.testing.assert_allclose(
        numpy_of(there(array(target, X))), numpy_of(net(array(backend, X))), rtol=1e-5, atol=1e-6
    )
    back = iso.convert(there, backend)
    for name in ("w", "b"):
        np.testing.assert_array_equal(
            numpy_of(back.v["layers"][0][name]), numpy_of(net.v["layers"][0][name])
        )
    assert there[0].top_mod() is there


def test_copies_know_whose_they_are_and_keep_nothing_alive(backend):
    net = made(backend, lambda: iso.Sequential(Plain(), iso.Dropout(0.5, key=0)))
    net.freeze("layers/0/linear1/w")
    for twin in (
        copy.deepcopy(net),
        pickle.loads(pickle.dumps(net)) if backend == "numpy" else net,
    ):
        assert twin[0].top_mod() is twin
        assert sorted(twin.v["layers"][0]) == sorted(net.v["layers"][0])
        assert list(twin.state["layers"][0]["linear1"]) == ["w"]
    twin = copy.deepcopy(net)
    twin[0]._linear0.b = twin[0]._linear0.b + 1
    assert np.all(numpy_of(net[0]._linear0.b) == 0)
    x = array(backend, X)
    kept = []

    class Spy(iso.Module):
        def forward(self, x):
            kept.append(weakref.ref(self))
            return x

    spied = iso.Sequential(Spy())
    gc.disable()
    try:
        spied(x, v={})
    finally:
        gc.enable()
    assert kept[0]() is None  # the copy is freed when the call ends, without garbage collection


def test_freezing_by_pattern(backend):
    net = made(backend, Plain)
    x = array(backend, X)
    net.freeze("linear[01]", "linear2/b")
    assert {k: list(part) for k, part in net.v.items()} == {"linear2": ["w"]}
    assert sorted(net.state) == ["linear0", "linear1", "linear2"]
    xp = iso.namespace(x)
    grads = iso.grad(lambda v: xp.sum(net(x, v=v)))(net.v)
    assert list(grads["linear2"]) == ["w"]
    assert net.num_params == 8
    new = {"linear2": {"w": net.v["linear2"]["w"] * 2}}
    np.testing.assert_allclose(numpy_of(net(x, v=new)), 2 * numpy_of(net(x)), rtol=1e-5)
    net.unfreeze("linear0/w")
    assert list(net.v["linear0"]) == ["w"]
    net.unfreeze()
    assert net.num_params == 12 + 4 + 16 + 4 + 8 + 2
    with pytest.raises(ValueError, match="freeze: needed a pattern .* one of linear0/w, "):
        net.freeze("encoder")


def test_a_model_in_words(backend):
    net = made(backend, lambda: iso.Sequential(iso.Linear(3, 4, key=0), iso.BatchNorm(4)))
    net.tied = net[0]
    assert repr(net).splitlines() == [
        "Sequential()",
        "  layers/0: Linear()",
        "    w: float32 [4, 3]",
        "    b: float32 [4]",
        "  layers/1: BatchNorm(momentum=0.1, epsilon=1e-05, data_format='channel_last')",
        "    mean: float32 [4] state",
        "    variance: float32 [4] state",
        "    w: float32 [4]",
        "    b: float32 [4]",
        "  tied: the same as layers/0",
    ]
    text = iso.summary(net, array(backend, X)).splitlines()
    rows = {line.split(":")[0]: line.split()[2:] for line in text if ":" in line}
    assert rows["layers/0"][:5] == ["[4,", "4]", "16", "64", "1"]
    assert rows["layers/1"][:5] == ["[4,", "4]", "8", "32", "1"]
    assert text[-1].startswith("parameters: 24;")
    assert np.all(numpy_of(net.state["layers"][1]["mean"]) == 0)
    with pytest.raises(TypeError, match="summary: needed a module, got int"):
        iso.summary(3)


def test_keys_make_the_same_model_everywhere(backend):
    def build():
        with iso.use_key(7):
            return iso.Sequential(iso.Linear(3, 4), iso.Linear(4, 4), iso.Conv1D(2, 3, 3))

    net, plain = made(backend, build), build()
    for here, there in zip(net.layers, plain.layers):
        np.testing.assert_array_equal(numpy_of(here.w), there.w)
    assert not np.array_equal(plain[0].w.ravel()[:12], plain[1].w.ravel()[:12])
    # keys from system entropy
    one, two = made(backend, lambda: (iso.Linear(3, 4), iso.Linear(3, 4)))
    assert not np.array_equal(numpy_of(one.w), numpy_of(two.w))
    with iso.use_backend(backend, dtype="float64"):
        wide = iso.Linear(3, 4, key=0)
    assert numpy_of(wide.w).dtype == numpy_of(wide.b).dtype == np.float64
    with pytest.raises(TypeError, match="use_key: needed a key"), iso.use_key(0.5):
        pass


def test_one_array_given_for_two_variables_does_not_tie_them(backend):
    net = made(backend, lambda: iso.Sequential(iso.Linear(2, 2, key=0), iso.Linear(2, 2, key=1)))
    zero, bias = array(backend, np.zeros((2, 2), np.float32)), array(backend, np.ones(2, "f"))
    both = {"layers": {0: {"w": zero, "b": bias}, 1: {"w": zero, "b": bias}}}
    net(array(backend, np.ones((1, 2), np.float32)), v=both)
    net.v = both
    assert len(iso.to_numpy(net.v)["layers"][1]) == 2
    grads = iso.grad(lambda v: iso.namespace(zero).sum(net(zero, v=v)))(both)
    assert set(grads["layers"][1]) == {"w", "b"}


def test_a_custom_structure_holds_what_the_module_holds(backend):
    class Stray(Named):
        def _create_variables(self):
            return {"x": self._linear0.w * 1.0}

    class Double(Named):
        def _create_variables(self):
            return {"x": self._linear0.w, "y": self._linear0.w}

    with pytest.raises(TypeError, match="_create_variables: .* at x that is not"):
        made(backend, Stray).v  # noqa: B018
    with pytest.raises(ValueError, match="got the same array at x and y"):
        made(backend, Double).v  # noqa: B018


def test_tracking_of_values_in_compiled_code(backend):
    """A compiled call has no values: it raises and says so. Where nothing compiles, it works."""
    net = made(backend, Shared)
    x = array(backend, X[:, :2].astype(np.float32))
    call = iso.jit(lambda x: net(x, track_submod_rets=True))
    if backend == "numpy":
        call(x)
        assert len(net.submod_rets["twice"]) == 2
    else:
        with pytest.raises(RuntimeError, match="track_submod_rets: needed arrays with values"):
            call(x)
        with pytest.raises(AttributeError, match="submod_rets: needed a finished call with"):
            net.submod_rets  # noqa: B018
