"""Conversion between frameworks, and functional updates of parts of arrays."""

import re

import numpy as np
import pytest
from devices import run_on_jax_devices
from frameworks import torch

import isomorph as iso
from isomorph.backends.vocabulary import DTYPES as STANDARD
from oracles import central_gradient, kind_of, numpy_of, verbs_of

DTYPES = [*STANDARD, "float16"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_convert_keeps_values_dtype_and_nest(backend, xp, dtype):
    values = (np.arange(6).reshape(2, 3) % 2).astype(dtype)
    nest = {
        "a": [values, None],
        "b": (values[:, ::-1], "text", 3),
        "c": values[0, 0],
        "d": values[:0],
    }
    there = iso.convert(nest, backend)
    for got, sent in (
        (there["a"][0], values),
        (there["b"][0], values[:, ::-1]),
        (there["d"], values[:0]),
    ):
        assert kind_of(got) == backend
        assert re.findall(r"\w+", str(got.dtype))[-1] == dtype
        np.testing.assert_array_equal(numpy_of(got), sent)
    assert there["a"][1] is None
    assert there["b"][1:] == ("text", 3)
    back = iso.to_numpy(there)
    assert back["a"][0].dtype == values.dtype
    np.testing.assert_array_equal(back["b"][0], values[:, ::-1])


@pytest.mark.parametrize("target", ["to_np", "to_jx", "to_tf", "to_pt"])
def test_convert_between_every_pair(backend, xp, target):
    name = {"to_np": "numpy", "to_jx": "jax", "to_tf": "tensorflow", "to_pt": "torch"}[target]
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    x = xp.asarray(values)
    cases = [(x, values), (x[0, ...], values[0]), (x[:, 1, :], values[:, 1])]
    cases += [
        (x[0, 0, 0], values[0, 0, 0]),
        (xp.permute_dims(x, (2, 0, 1)), values.transpose(2, 0, 1)),
        (x[:0, ...], values[:0]),
        (x > 3, values > 3),
    ]
    for sent, expected in cases:
        got = iso.convert(sent, name)
        assert kind_of(got) == name
        assert tuple(got.shape) == expected.shape
        np.testing.assert_array_equal(numpy_of(got), expected)


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
def test_numpy_has_no_bfloat16(backend, xp):
    with pytest.raises(TypeError, match="got 'bfloat16'"):
        verbs_of(xp).dtype("bfloat16")


@pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)
def test_bfloat16_travels(backend, xp):
    pytest.importorskip("ml_dtypes")  # NumPy has no bfloat16 of its own
    x = xp.asarray([1.0, 2.5], dtype=verbs_of(xp).dtype("bfloat16"))
    y = iso.to_numpy(x)
    assert y.dtype.name == "bfloat16"
    np.testing.assert_array_equal(y.astype(np.float32), [1.0, 2.5])
    assert iso.convert(y, backend).dtype == x.dtype


def test_read_only_memory_is_not_handed_out_for_writing(backend, xp):
    fixed = np.ones(3)
    fixed.flags.writeable = False
    got = iso.convert(fixed, backend)
    np.testing.assert_array_equal(numpy_of(got), [1.0, 1.0, 1.0])
    if backend == "torch":
        got += 1
    np.testing.assert_array_equal(fixed, [1.0, 1.0, 1.0])


def test_unknown_target_raises(backend, xp):
    with pytest.raises(ValueError, match="no backend is called 'mxnet'"):
        iso.convert(xp.ones(2), "mxnet")


ROW = np.array([2, 0, 2])
MASK = np.array([[True, False, True, False], [False] * 4, [True] * 4])
INDICES = {
    "int": 1,
    "negative": -1,
    "slice": slice(1, None),
    "backwards": (slice(None, None, -2), slice(None, 0, -1)),
    "ellipsis": (Ellipsis, 2),
    "new-axis": (None, slice(None), 1),
    "mask": MASK,
    "rows": ROW,
    "pairs": (ROW, np.array([1, 1, 3])),
    "rows-and-slice": (ROW, slice(0, 3, 2)),
    "slice-and-columns": (slice(0, 2), ROW),
    "backwards-and-columns": (slice(None, None, -1), ROW),
    "empty": (slice(0, 0),),
}


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
def test_at_get_means_what_numpy_means(backend, xp, index):
    values = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(numpy_of(iso.at(xp.asarray(values))[index].get()), values[index])


@pytest.mark.takes("XLA compiles it")
@pytest.mark.parametrize("how", ["set", "add", "multiply", "min", "max"])
@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
def test_at_updates_a_copy_as_numpy_would(backend, xp, index, how):
    if how == "set":  # no repeated position
        parts = index if isinstance(index, tuple) else (index,)
        index = tuple(np.array([2, 0, 1]) if i is ROW else i for i in parts)
    values = np.arange(12.0).reshape(3, 4)
    new = np.linspace(-2.0, 5.0, values[index].size).reshape(values[index].shape)
    expected = values.copy()
    if how == "set":
        expected[index] = new
    else:
        getattr(np, {"min": "minimum", "max": "maximum"}.get(how, how)).at(expected, index, new)
    x = xp.asarray(values)
    got = getattr(iso.at(x)[index], how)(xp.asarray(new))
    # repeated factors may multiply in another order: one rounding each
    np.testing.assert_allclose(numpy_of(got), expected, rtol=4e-16 if how == "multiply" else 0)
    np.testing.assert_array_equal(numpy_of(x), values)
    scalar = getattr(iso.at(x)[index], how)(3.0)
    assert tuple(scalar.shape) == values.shape


@pytest.mark.parametrize("how", ["set", "add", "multiply"])
@pytest.mark.parametrize(
    "index", [INDICES[k] for k in ("slice", "mask", "backwards", "pairs")], ids=str
)
def test_at_differentiates(backend, xp, index, how):
    values = np.linspace(0.5, 1.5, 12).reshape(3, 4)
    if how != "add" and isinstance(index, tuple) and index[0] is ROW:
        index = (np.array([2, 0, 1]), index[1])
    new = np.linspace(0.2, 0.9, values[index].size).reshape(values[index].shape)

    def f(x, v):
        xp = iso.namespace(x)
        return xp.sum(xp.sin(getattr(iso.at(x)[index], how)(v)) ** 2)

    gx, gv = iso.grad(f, argnums=(0, 1))(xp.asarray(values), xp.asarray(new))
    np.testing.assert_allclose(
        numpy_of(gx), central_gradient(lambda x: f(x, new), values), rtol=1e-6, atol=1e-8
    )
    np.testing.assert_allclose(
        numpy_of(gv), central_gradient(lambda v: f(values, v), new), rtol=1e-6, atol=1e-8
    )
    # second order: d/dx sum(grad²) against central differences of the same
    half = lambda x: iso.namespace(x).sum(iso.grad(f)(x, iso.namespace(x).asarray(new)) ** 2)
    got = numpy_of(iso.grad(half)(xp.asarray(values)))
    np.testing.assert_allclose(got, central_gradient(half, values), rtol=1e-5, atol=1e-7)


def test_at_adds_repeated_positions_repeatedly(backend, xp):
    got = iso.at(xp.zeros(3))[np.array([1, 1, 2])].add(
        xp.asarray([1.0, 2.0, 4.0], dtype=xp.zeros(1).dtype)
    )
    np.testing.assert_array_equal(numpy_of(got), [0.0, 3.0, 4.0])


def test_at_takes_lists_and_refuses_what_does_not_fit(backend, xp):
    x = xp.asarray([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(numpy_of(iso.at(x)[:2].set([5, 6.5])), [5.0, 6.5, 3.0])
    whole = xp.asarray([1, 2, 3])
    np.testing.assert_array_equal(numpy_of(iso.at(whole)[0].add(True)), [2, 2, 3])
    for array, value in ((whole, 2.7), (x, 1j), (xp.asarray([True]), 3)):
        with pytest.raises(TypeError, match=r"at\(x\)\[index\]\.set: needed a value that fits"):
            iso.at(array)[0].set(value)
    with pytest.raises(TypeError, match="needed a number or an array, got None"):
        iso.at(x)[0].set(None)
    with pytest.raises(IndexError):
        iso.at(x)[7].set(1.0)
    with pytest.raises(IndexError):
        iso.at(x)[7].get()
    other = "torch" if backend != "torch" else "numpy"
    with pytest.raises(TypeError, match=f"(?=.*{backend})(?=.*{other})"):
        iso.at(x)[0].set(iso.convert(x, other)[0])


def test_sorting_knows_descending(backend, xp):
    tied = xp.asarray([[3.0, 1.0, 2.0, 3.0]])
    np.testing.assert_array_equal(numpy_of(xp.sort(tied, descending=True)), [[3.0, 3.0, 2.0, 1.0]])
    np.testing.assert_array_equal(numpy_of(xp.argsort(tied, descending=True)), [[0, 3, 2, 1]])
    x = xp.asarray([[4.0, 1.0, 2.0, 3.0]])
    weights = xp.asarray([1.0, 10.0, 100.0, 1000.0])
    g = iso.grad(lambda x: xp.sum(xp.sort(x, descending=True) * weights))(x)
    np.testing.assert_array_equal(numpy_of(g), [[1.0, 1000.0, 100.0, 10.0]])


@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_convert_uses_the_default_device(backend):
    """The device "meta" stands for an accelerator: it has no memory, but arrays can be on it."""
    x, meta = np.ones(2, np.float32), torch.device("meta")
    with meta:
        assert iso.convert(x, "torch").device == meta
        assert iso.convert(x, "torch", device="cpu").device.type == "cpu"
        here = torch.ones(2, device="cpu")
        assert iso.convert(here, "torch") is here
    with iso.use_backend("torch", device=meta):
        assert iso.convert([x], "torch")[0].device == meta
        assert iso.convert(x, "torch", device="cpu").device.type == "cpu"
    assert iso.convert(x, "torch").device == torch.get_default_device()


SECOND = """
import jax, numpy as np, isomorph as iso
first, second = jax.devices("cpu")
x = np.ones(2, np.float32)
assert iso.convert(x, "jax").devices() == {first}
with jax.default_device(second):
    assert iso.convert(x, "jax").devices() == {second}
with iso.use_backend("jax", device="cpu:1"):
    assert iso.convert(x, "jax").devices() == {second}
    assert iso.convert(x, "jax", device="cpu:0").devices() == {first}
"""


@pytest.mark.takes("it starts another process")
@pytest.mark.parametrize("backend", ["jax"], indirect=True)
def test_convert_uses_the_default_device_of_jax(backend):
    run_on_jax_devices(2, __file__, SECOND)
