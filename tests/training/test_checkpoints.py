"""A checkpoint saved on one backend loads bit for bit on another, or not at all."""

import sys
from collections import OrderedDict, defaultdict, namedtuple

import numpy as np
import optree
import pytest
from frameworks import enable_x64, torch
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import isomorph as iso
from oracles import kind_of

Moments = namedtuple("Moments", "mean square")
WORDS = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "float32", "float64", "complex64", "complex128",
)  # fmt: skip
BACKENDS = ("numpy", "jax", "tensorflow", "torch")
rng = np.random.default_rng(5)


def bits(word, shape):
    """Numbers of a dtype from random bits, including NaN and subnormals."""
    if word == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    dtype = np.dtype(word)
    return np.frombuffer(rng.bytes(dtype.itemsize * int(np.prod(shape))), dtype).reshape(shape)


VALUES = {word: [bits(word, (3, 5)), bits(word, ()), bits(word, (0, 2))] for word in WORDS}


def moved(nest, name):
    with enable_x64(True):
        return iso.convert(optree.tree_map(np.array, nest), name)


def same_bits(x, y):
    """Whether two arrays have the same dtype, shape and bytes."""
    x, y = iso.to_numpy(x), iso.to_numpy(y)
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


@pytest.mark.parametrize("source", BACKENDS, ids=[f"from_{name}" for name in BACKENDS])
def test_every_backend_loads_what_every_other_saved(source, backend, tmp_path):
    with enable_x64(True):
        saved = moved(VALUES, source)
        iso.save(tmp_path / "a", saved)
        like = moved(optree.tree_map(np.zeros_like, VALUES), backend)
        for got in (iso.load(tmp_path / "a", like), iso.load(tmp_path / "a", backend=backend)):
            assert {kind_of(x) for x in optree.tree_leaves(got)} == {backend}
            assert optree.tree_structure(got) == optree.tree_structure(VALUES)
            for x, y in zip(optree.tree_leaves(got), optree.tree_leaves(saved), strict=True):
                assert same_bits(x, y)
        plain = iso.load(tmp_path / "a")
        for x, y in zip(optree.tree_leaves(plain), optree.tree_leaves(VALUES), strict=True):
            assert same_bits(x, y)


def test_bfloat16_between_those_that_have_it(backend, xp, tmp_path, monkeypatch):
    pytest.importorskip("ml_dtypes")
    values = np.array([1.5, -0.0, np.inf, 3e38, 1e-40], np.float32)
    rounded = torch.tensor(values).to(torch.bfloat16)
    iso.save(tmp_path / "a", rounded)
    with safe_open(tmp_path / "a", "pt") as file:
        assert torch.equal(file.get_tensor("array"), rounded.cpu())
    got = iso.load(tmp_path / "a", backend=backend)
    assert str(got.dtype).endswith("bfloat16") or got.dtype.name == "bfloat16"
    assert iso.to_numpy(got).tobytes() == rounded.view(torch.int16).cpu().numpy().tobytes()
    iso.save(tmp_path / "b", got)
    assert torch.equal(iso.load(tmp_path / "b", rounded), rounded)
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)  # as if not installed
    if backend == "torch":
        assert torch.equal(iso.load(tmp_path / "b", backend="torch"), rounded)
    else:
        with pytest.raises(iso.CheckpointError, match="needed the package ml_dtypes"):
            iso.load(tmp_path / "b")


def nest_of(array):
    return {
        "layers": [{"w": array([1.0, 2.0]), 3: array([3.0]), -1: None}, (), {}],
        "state": Moments(array([4.0]), (array([5.0]), [None])),
        "epoch": 12, "big": -(10**50), "rate": 0.1, "odd": float("-inf"), "done": True,
        "z": 1 - 2j, "name": "ünï \ud800 \"quoted\" / \n", "": {"": array([6.0])},
        "layers/0/w": array([7.0]), "__metadata__": array([8.0]), "isomorph.checksum": array([9.0]),
    }  # fmt: skip


def plain(nest):
    """The nest with arrays as lists of numbers."""
    is_leaf = lambda x: not isinstance(x, (dict, list, tuple))
    return optree.tree_map(
        lambda x: iso.to_numpy(x).tolist() if hasattr(x, "shape") else x, nest, is_leaf=is_leaf
    )


def test_nests_come_back_as_they_were(backend, xp, tmp_path):
    nest = nest_of(xp.asarray)
    iso.save(tmp_path / "a", nest)
    got = iso.load(tmp_path / "a", nest_of(lambda x: xp.zeros(len(x), dtype=xp.asarray(x).dtype)))
    assert plain(got) == plain(nest)
    assert type(got["state"]) is Moments
    assert list(got) == list(nest)
    assert {kind_of(x) for x in optree.tree_leaves(got) if hasattr(x, "shape")} == {backend}
    free = iso.load(tmp_path / "a")
    assert type(free["state"]) is tuple
    assert {**plain(free), "state": 0} == {**plain(nest), "state": 0}
    assert type(free["done"]) is bool
    assert type(free["epoch"]) is int
    nan = iso.asarray([1.0])
    iso.save(tmp_path / "b", [float("nan"), nan])
    assert np.isnan(iso.load(tmp_path / "b")[0])


def test_dicts_of_other_types_keep_them(backend, xp, tmp_path):
    default = defaultdict(list, {"b": xp.ones(1), "a": xp.zeros(1)})
    order = OrderedDict(z=xp.ones(2), a=1)
    iso.save(tmp_path / "a", [default, order])
    got = iso.load(tmp_path / "a", [default, order])
    assert got[0].default_factory is list
    assert type(got[1]) is OrderedDict
    assert list(got[1]) == ["z", "a"]
    assert iso.load(tmp_path / "a")[1]["a"] == 1


def test_one_several_and_named_nests(backend, xp, tmp_path):
    x, y, z = xp.asarray([1.0]), xp.asarray([2.0]), xp.asarray([3.0])
    path = tmp_path / "a"
    iso.save(path, [x])
    assert plain(iso.load(path)) == [[1.0]]
    assert plain(iso.load(path, [y])) == [[1.0]]
    iso.save(path, x, {"a": y})
    assert plain(list(iso.load(path))) == [[1.0], {"a": [2.0]}]
    assert plain(list(iso.load(path, z, {"a": z}))) == [[1.0], {"a": [2.0]}]
    iso.save(path, v=x, step=7)
    assert plain(iso.load(path)) == {"v": [1.0], "step": 7}
    assert plain(iso.load(path, v=z)) == {"v": [1.0]}  # only what was asked for
    assert iso.load(path, step=0) == {"step": 7}
    iso.save(path, x, y, rest=z)
    assert plain(list(iso.load(path))) == [[1.0], [2.0], {"rest": [3.0]}]
    assert plain(list(iso.load(path, z, z, rest=x))) == [[1.0], [2.0], {"rest": [3.0]}]
    iso.save(path)
    assert iso.load(path) == {}
    with pytest.raises(ValueError, match="another name than backend"):
        iso.save(path, backend=x)
    with pytest.raises(ValueError, match="got both"):
        iso.load(path, z, backend="numpy")


def test_every_difference_is_named(backend, xp, tmp_path):
    ones = lambda *shape: xp.ones(shape, dtype=xp.float32)
    iso.save(tmp_path / "a", {
        "w": ones(2, 3), "b": ones(3), "gone": ones(1), "k": {1: ones(1)}, "l": [ones(1), ones(1)],
        "n": None, "s": 3, "t": (ones(1),), "d": {},
    })  # fmt: skip
    like = {
        "w": ones(3, 2), "b": xp.ones(3, dtype=xp.float64), "new": {"x": ones(1)},
        "k": {"1": ones(1)}, "l": [ones(1)], "n": ones(1), "s": 3.0, "t": [ones(1)], "d": None,
    }  # fmt: skip
    with pytest.raises(iso.CheckpointError) as raised:
        iso.load(tmp_path / "a", like)
    lines = set(str(raised.value).split("\n  ")[1:])
    assert lines == {
        "w: needed shape (3, 2), got (2, 3)",
        "b: needed float64, got float32",
        "gone: unexpected",
        "new: missing",
        "k/1: missing as '1', but 1 exists",
        "k/1: unexpected as 1, but '1' exists",
        "l/1: unexpected",
        "n: needed an array, got None",
        "s: needed a float, got an int",
        "t: needed a list, got a tuple",
        "d: needed None, got a dict",
    }
    assert "load: " in str(raised.value)
    assert isinstance(raised.value, ValueError)
    with pytest.raises(iso.CheckpointError, match="needed 2 nests without a name, got 1"):
        iso.load(tmp_path / "a", like, like)
    with pytest.raises(iso.CheckpointError, match="more: missing"):
        iso.load(tmp_path / "a", like, more=1)


def test_what_cannot_be_saved_is_named(backend, xp, tmp_path):
    x = xp.ones(2)
    for nest, words in [
        ({"a": [x, object()]}, "got a object at a/1"),
        ({"a": {2.5: x}}, "needed str or int as keys, got 2.5, a float at a"),
        ({True: x}, "got True, a bool"),
        ({"a": np.array(["x"])}, "got str.* of numpy as a"),
        ({"a": np.zeros(2, np.longdouble)}, "got (longdouble|float128) of numpy as a"),
        ({"a": {1, 2}}, "got a set at a"),
    ]:
        with pytest.raises(TypeError, match=words):
            iso.save(tmp_path / "a", nest)
    assert list(tmp_path.iterdir()) == []

    def inside(x):
        iso.save(tmp_path / "a", {"w": x})
        return xp.sum(x)

    for transform in (iso.grad, *([] if backend == "numpy" else [iso.jit])):
        with pytest.raises(TypeError, match="save: w: needed an array with known values"):
            transform(inside)(x)
        assert list(tmp_path.iterdir()) == []


def test_memory_in_any_order_is_saved_as_it_reads(backend, tmp_path):
    x = np.arange(24.0).reshape(2, 3, 4)
    cases = [x.T, x[:, ::-2], x[..., 1], np.asfortranarray(x), x.astype(">f8"), x[:0]]
    iso.save(tmp_path / "a", cases)
    for got, case in zip(iso.load(tmp_path / "a", backend=backend), cases, strict=True):
        np.testing.assert_array_equal(iso.to_numpy(got), case)
    if backend == "torch":
        z = torch.tensor([1 + 2j]).conj()
        iso.save(tmp_path / "b", [z, torch.arange(6.0).reshape(2, 3).T, z.imag])
        got = iso.load(tmp_path / "b")
        np.testing.assert_array_equal(got[0], [1 - 2j])
        np.testing.assert_array_equal(got[1], [[0, 3], [1, 4], [2, 5]])
        np.testing.assert_array_equal(got[2], [-2])


def test_the_library_reads_our_files_and_we_read_its(backend, xp, tmp_path):
    values = {"a": rng.standard_normal((2, 3)), "b": np.arange(4, dtype=np.int32)}
    iso.save(tmp_path / "ours", {"net": {k: xp.asarray(x) for k, x in values.items()}})
    for name, x in load_file(tmp_path / "ours").items():
        np.testing.assert_array_equal(x, values[name.removeprefix("net/")])
    save_file(values, tmp_path / "theirs", metadata={"format": "np"})
    got = iso.load(
        tmp_path / "theirs", {k: xp.zeros_like(xp.asarray(x)) for k, x in values.items()}
    )
    assert set(got) == {"a", "b"}
    for name, x in got.items():
        assert kind_of(x) == backend
        assert same_bits(x, values[name])
    if backend == "torch":
        from safetensors.torch import save_file as save_torch

        save_torch({"x.y": torch.ones(2, dtype=torch.bfloat16), "z": torch.tensor([1j])},
                   tmp_path / "torch")  # fmt: skip
        got = iso.load(tmp_path / "torch", backend="torch")
        assert torch.equal(got["x.y"], torch.ones(2, dtype=torch.bfloat16))
        assert torch.equal(got["z"], torch.tensor([1j]))


def test_jax_without_64_bits_does_not_round(backend, tmp_path):
    iso.save(tmp_path / "a", {"w": np.array([0.1])})
    with enable_x64(False):
        if backend == "jax":
            with pytest.raises(iso.CheckpointError, match="w in .*JAX has no float64 here"):
                iso.load(tmp_path / "a", backend="jax")
        else:
            assert iso.to_numpy(iso.load(tmp_path / "a", backend=backend)["w"])[0] == 0.1


def test_an_optimizer_goes_on_where_it_was(backend, xp, tmp_path):
    opt = iso.chain(
        iso.optimizers.clip_by_global_norm(1.0),
        iso.optimizers.accumulate(
            iso.optimizers.adamw(iso.optimizers.cosine(0.1, 20), mask="*w"), every=2
        ),
    )
    grads = [{"w": xp.asarray(rng.standard_normal((2, 2))), "b": xp.ones(2, dtype=xp.float64)}
             for _ in range(10)]  # fmt: skip

    def go(v, state, grads):
        for g in grads:
            updates, state = opt.update(g, state, v)
            v = iso.apply_updates(v, updates)
        return v, state

    start = {"w": xp.ones((2, 2), dtype=xp.float64), "b": xp.ones(2, dtype=xp.float64)}
    v, state = go(start, opt.init(start), grads[:5])
    iso.save(tmp_path / "a", v, state)
    resumed = go(*iso.load(tmp_path / "a", start, opt.init(start)), grads[5:])
    for x, y in zip(*map(optree.tree_leaves, (resumed, go(v, state, grads[5:]))), strict=True):
        assert same_bits(x, y)
