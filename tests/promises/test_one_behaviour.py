"""One behaviour where frameworks differ."""

import numpy as np
import pytest

import isomorph as iso
from isomorph.core.dispatch import load
from oracles import name_of, numpy_of

X = np.array([-1.0, 0.5, 3.0])
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


# Bounds of clip: positional or by name, one of them may be missing.

BOUNDS = {
    "low": (lambda xp, x: xp.clip(x, 0.2), [0.2, 0.5, 3.0], [0, 1, 1]),
    "low and none": (lambda xp, x: xp.clip(x, 0.2, None), [0.2, 0.5, 3.0], [0, 1, 1]),
    "none and high": (lambda xp, x: xp.clip(x, None, 1), [-1.0, 0.5, 1.0], [1, 1, 0]),
    "both": (lambda xp, x: xp.clip(x, 0.2, 1.0), [0.2, 0.5, 1.0], [0, 1, 0]),
    "min=": (lambda xp, x: xp.clip(x, min=0.2), [0.2, 0.5, 3.0], [0, 1, 1]),
    "max=": (lambda xp, x: xp.clip(x, max=1.0), [-1.0, 0.5, 1.0], [1, 1, 0]),
    "min= and max=": (lambda xp, x: xp.clip(x, min=0.2, max=1.0), [0.2, 0.5, 1.0], [0, 1, 0]),
    "low and max=": (lambda xp, x: xp.clip(x, 0.2, max=1.0), [0.2, 0.5, 1.0], [0, 1, 0]),
    "none": (lambda xp, x: xp.clip(x), [-1.0, 0.5, 3.0], [1, 1, 1]),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_clip_takes_its_bounds_in_every_form(xp, name):
    func, value, slope = BOUNDS[name]
    x = xp.asarray(X)
    np.testing.assert_array_equal(numpy_of(func(xp, x)), value)
    np.testing.assert_array_equal(numpy_of(iso.grad(lambda x: xp.sum(func(xp, x)))(x)), slope)


# Empty axes.


def ones(x, n):
    return load(name_of(iso.namespace(x))).from_numpy(np.ones(n))


EMPTY = {
    "softmax": (lambda x: iso.softmax(x), [(0,), (2, 0), (0, 3)]),
    "softmax of axis 0": (lambda x: iso.softmax(x, axis=0), [(0, 3), (2, 0)]),
    "log_softmax": (lambda x: iso.log_softmax(x), [(0,), (2, 0), (0, 3)]),
    "log_softmax of axis 0": (lambda x: iso.log_softmax(x, axis=0), [(0, 3), (2, 0)]),
    "layer_norm": (lambda x: iso.layer_norm(x), [(0,), (2, 0), (0, 3)]),
    "layer_norm of axis 0": (lambda x: iso.layer_norm(x, axis=0), [(0, 3)]),
    "layer_norm with weights": (
        lambda x: iso.layer_norm(x, weight=ones(x, 0), bias=ones(x, 0)), [(2, 0)],
    ),
    "rms_norm": (lambda x: iso.rms_norm(x), [(0,), (2, 0), (0, 3)]),
    "rms_norm with weights": (lambda x: iso.rms_norm(x, weight=ones(x, 0)), [(2, 0)]),
    "group_norm": (lambda x: iso.group_norm(x, 2), [(2, 0, 4), (0, 3, 4)]),
    "instance_norm": (lambda x: iso.instance_norm(x), [(2, 0, 4), (0, 3, 4)]),
    "batch_norm": (lambda x: iso.batch_norm(x, ones(x, 3), ones(x, 3))[0], [(0, 3), (2, 0, 3)]),
}  # fmt: skip


@pytest.mark.parametrize("name", EMPTY)
def test_nothing_gives_nothing_and_so_do_its_gradients(xp, name):
    func, shapes = EMPTY[name]
    for shape in shapes:
        x = xp.zeros(shape, dtype=xp.float64)
        value, pull = iso.vjp(func, x)
        assert tuple(func(x).shape) == tuple(value.shape) == shape
        assert value.dtype == x.dtype
        assert tuple(pull(value)[0].shape) == shape


def test_nothing_gives_nothing_compiled(xp):
    funcs = {name: func for name, (func, shapes) in EMPTY.items() if shapes[0] == (0,)}
    x = xp.zeros((2, 0), dtype=xp.float64)
    both = lambda x: [iso.value_and_grad(lambda x, f=f: xp.sum(f(x)))(x) for f in funcs.values()]
    found = iso.jit(lambda x: ([f(x) for f in funcs.values()], both(x)))(x)
    assert len(found[0]) == 4
    for y, (total, slope) in zip(*found):
        assert tuple(y.shape) == tuple(slope.shape) == (2, 0)
        assert float(total) == 0


@pytest.mark.parametrize("axis", [2, -3])
def test_an_axis_that_is_not_there_raises_also_of_nothing(xp, axis):
    for size in (0, 3):
        x = xp.zeros((2, size), dtype=xp.float64)
        for func in (iso.softmax, iso.log_softmax, iso.logsumexp):
            with pytest.raises((ValueError, IndexError)):
                func(x, axis=axis)


# Ids of every integer dtype.

TABLE = np.arange(600.0).reshape(300, 2)


@pytest.mark.parametrize("kind", INTEGERS)
def test_embedding_takes_every_integer(backend, xp, kind):
    to = load(backend).from_numpy
    ids, table = np.array([[2, 0], [120, 2]], kind), to(TABLE)
    wanted = TABLE[ids.astype(int)]
    layer = iso.Embedding(300, 2, v={"w": table})
    for found in (iso.embedding(to(ids), table), layer(to(ids))):
        np.testing.assert_array_equal(numpy_of(found), wanted)
    slope = iso.grad(lambda w: xp.sum(iso.embedding(to(ids), w) ** 2))(table)
    by_hand = np.zeros_like(TABLE)
    np.add.at(by_hand, ids.astype(int), 2 * wanted)
    np.testing.assert_array_equal(numpy_of(slope), by_hand)
    mapped = iso.vmap(lambda i: iso.embedding(i, table))(to(ids))
    np.testing.assert_array_equal(numpy_of(mapped), wanted)


@pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)
def test_embedding_takes_every_integer_compiled(backend, xp):
    to = load(backend).from_numpy
    ids = {kind: np.array([2, 0, 120], kind) for kind in INTEGERS}
    loss = lambda w, ids: sum(xp.sum(iso.embedding(i, w) ** 2) for i in ids.values())
    step = iso.jit(iso.value_and_grad(loss))
    value, slope = step(to(TABLE), {kind: to(i) for kind, i in ids.items()})
    by_hand = np.zeros_like(TABLE)
    by_hand[[2, 0, 120]] = 2 * 8 * TABLE[[2, 0, 120]]
    assert float(value) == 8 * (TABLE[[2, 0, 120]] ** 2).sum()
    np.testing.assert_array_equal(numpy_of(slope), by_hand)


@pytest.mark.parametrize("backend", ["jax", "tensorflow"], indirect=True)  # torch's kernels raise
# every uint8 is a valid id here
@pytest.mark.parametrize("kind", [k for k in INTEGERS if k != "uint8"])
def test_compiled_an_id_that_is_no_row_is_nan_in_every_integer(backend, kind):
    to = load(backend).from_numpy
    stray = -1 if kind.startswith("int") else np.iinfo(kind).max
    found = iso.jit(iso.embedding)(to(np.array([stray, 1], kind)), to(TABLE))
    np.testing.assert_array_equal(numpy_of(found), [[np.nan, np.nan], TABLE[1]])


@pytest.mark.parametrize("kind", INTEGERS)
def test_take_and_labels_are_of_every_integer(backend, xp, kind):
    to = load(backend).from_numpy
    places = to(np.array([2, 0], kind))
    logits = to(np.array([[0.0, 1.0, 2.0], [3.0, 1.0, 0.5]]))
    np.testing.assert_array_equal(numpy_of(xp.take(logits, places, axis=1)), [[2, 0], [0.5, 3]])
    logs = np.log(np.exp([[0.0, 1.0, 2.0], [3.0, 1.0, 0.5]]).sum(1))
    wanted = (logs - [2.0, 3.0]).mean()
    np.testing.assert_allclose(float(iso.cross_entropy(logits, places)), wanted, rtol=1e-14)


@pytest.mark.parametrize("backend", ["jax", "tensorflow"], indirect=True)
def test_compiled_take_and_labels_are_of_every_unsigned_integer(backend, xp):
    to = load(backend).from_numpy
    logits = np.array([[0.0, 1.0, 2.0], [3.0, 1.0, 0.5]])
    kinds = [k for k in INTEGERS if k.startswith("u")]

    def both(x, *places):
        losses = [iso.cross_entropy(x, p) for p in places]
        return (
            [xp.take(x, p, axis=1) for p in places],
            losses,
            [xp.take(x, p + 250, axis=1) for p in places],
        )

    taken, losses, beyond = iso.jit(both)(to(logits), *(to(np.array([2, 0], k)) for k in kinds))
    wanted = (np.log(np.exp(logits).sum(1)) - [2.0, 3.0]).mean()
    for rows, loss, none in zip(taken, losses, beyond):
        np.testing.assert_array_equal(numpy_of(rows), [[2, 0], [0.5, 3]])
        np.testing.assert_allclose(float(loss), wanted, rtol=1e-14)
        assert np.isnan(numpy_of(none)).all()


# Undefined operations raise.


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap", "symmetric", "empty", "bogus"])
def test_pad_has_one_mode(xp, mode):
    x = xp.asarray(X)
    with pytest.raises(ValueError, match=f"pad: needed mode 'constant', got '{mode}'"):
        xp.pad(x, (1, 1), mode)
    with pytest.raises(ValueError, match=f"pad: needed mode 'constant', got '{mode}'"):
        iso.grad(lambda x: xp.sum(xp.pad(x, (1, 1), mode=mode)))(x)
    same = xp.pad(x, (1, 1), mode="constant", constant_values=7.0)
    np.testing.assert_array_equal(numpy_of(same), [7, *X, 7])


@pytest.mark.parametrize(
    "name",
    ["Any", "Never", "annotations", "backend_of", "refuse", "__doc__", "_x", "tanh", ""],
)
def test_an_activation_by_name_is_one(name):
    with pytest.raises(ValueError, match="Activation: needed one of relu, leaky_relu, elu, gelu, "):
        iso.Activation(name)


def test_every_activation_has_its_name(xp):
    names = ("relu", "leaky_relu", "elu", "gelu", "silu", "softplus", "mish", "hardswish",
             "sigmoid", "softmax", "log_softmax", "logsumexp")  # fmt: skip
    x = xp.asarray(X)
    for name in names:
        wanted = numpy_of(getattr(iso, name)(x))
        np.testing.assert_array_equal(numpy_of(iso.Activation(name)(x)), wanted)
    with pytest.raises(ValueError, match=f"needed one of {', '.join(names)}, got 'swish'"):
        iso.Activation("swish")


THINGS = {
    "array": lambda xp: xp.ones(2),
    "submodule": lambda xp: iso.Linear(2, 1),
    "submodules": lambda xp: [iso.Linear(2, 1)],
    "int": lambda xp: 3,
    "float": lambda xp: 0.5,
    "none": lambda xp: None,
    "state": lambda xp: iso.State(0),
}


@pytest.mark.parametrize("thing", THINGS)
@pytest.mark.parametrize("word", ["v", "state"])
def test_an_attribute_cannot_have_the_name_of_a_nest(backend, xp, word, thing):
    with iso.use_backend(backend):
        value = THINGS[thing](xp)

        class Net(iso.Module):
            def __init__(self):
                setattr(self, word, value)

        kind = type(value).__name__
        with pytest.raises(TypeError, match=f"got {kind}; an attribute cannot be named {word}"):
            Net()


@pytest.mark.parametrize("word", ["v", "state"])
def test_nor_can_one_of_a_class(word):
    with pytest.raises(TypeError, match=f"Net: an attribute cannot be named {word}"):
        type("Net", (iso.Module,), {word: 3})


def test_variables_of_another_module_are_taken_from_its_v(backend, xp):
    with iso.use_backend(backend):
        one, other = iso.Linear(2, 1, key=0), iso.Linear(2, 1, key=1)
    with pytest.raises(TypeError, match="needed a nest of variables as v, got Linear"):
        one.v = other
    one.v = other.v
    np.testing.assert_array_equal(numpy_of(one.w), numpy_of(other.w))


# The axes that a product sums over must have equal sizes: an axis of size 1 does not broadcast.

SUMMED = {
    "vecdot": lambda xp, x, y: xp.vecdot(x, y[0]),
    "linalg.vecdot": lambda xp, x, y: xp.linalg.vecdot(y, x),
    "vecdot, axis": lambda xp, x, y: xp.vecdot(x[:, None], y, axis=-2),
    "tensordot": lambda xp, x, y: xp.tensordot(x, y, axes=1),
    "tensordot, axes": lambda xp, x, y: xp.tensordot(y, x, axes=((1,), (0,))),
    "tensordot, an axis": lambda xp, x, y: xp.tensordot(y, x, axes=(-1, 0)),
    "linalg.tensordot": lambda xp, x, y: xp.linalg.tensordot(y, x, axes=1),
    "matmul": lambda xp, x, y: xp.matmul(x[None], y),
    "cross": lambda xp, x, y: xp.linalg.cross(x, y[0]),
}


@pytest.mark.parametrize("dtype", ["float64", "int64"])
@pytest.mark.parametrize("name", SUMMED)
def test_an_axis_that_is_summed_does_not_broadcast(backend, xp, name, dtype):
    x, y = iso.convert([np.ones(1, dtype), np.ones((2, 2), dtype)], backend)
    product = name.partition(",")[0].removeprefix("linalg.")
    ours = backend in ("tensorflow", "torch") and product in ("vecdot", "tensordot")
    wanted = ValueError if ours else (ValueError, TypeError, RuntimeError)
    with pytest.raises(wanted, match=product if ours else None):
        SUMMED[name](xp, x, y)
    if name != "cross":  # equal sizes work
        two = iso.convert(np.ones(2, dtype), backend)
        assert np.all(numpy_of(SUMMED[name](xp, two, y)) == 2)
