"""NumPy arrays in every kind of memory, differentiated. Results are right for arguments and for
constants, to the second order, and the arrays stay writeable exactly as before.
"""

import array
import ctypes
import mmap
import tempfile
from contextlib import suppress
from multiprocessing import shared_memory

import numpy as np
import pytest
from frameworks import jnp, tf, torch
from scipy import optimize

import isomorph as iso

ONLY = pytest.mark.parametrize("backend", ["numpy"], indirect=True)
SIX = np.linspace(0.5, 3.0, 6)
KEPT = []  # owners of memory, kept alive while a test runs


@pytest.fixture(autouse=True)
def released():
    yield
    for owner in KEPT:
        with suppress(BufferError):  # an array still uses it
            owner.close()
        if hasattr(owner, "unlink"):
            owner.unlink()
    KEPT.clear()


class Sub(np.ndarray):
    pass


class Interface:
    """An object that tells NumPy only where its memory is."""

    def __init__(self, x):
        self.x, self.__array_interface__ = x, x.__array_interface__


def filled(x):
    """Write the six numbers into an array and return it."""
    x[...] = SIX
    return x


def locked(x):
    x.flags.writeable = False
    return x


def mapped():
    file = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `released`)
    file.write(SIX.tobytes())
    file.flush()
    KEPT.append(file)
    return file


def shared():
    block = shared_memory.SharedMemory(create=True, size=48)
    KEPT.append(block)
    return filled(np.ndarray(6, buffer=block.buf))


def view_of_locked_owner():
    owner = SIX.copy()
    view = owner[:]
    owner.flags.writeable = False
    return view


def structured():
    return filled(np.zeros(6, [("a", "i4"), ("b", "f8")])["b"])


MEMORY = {
    "its own": lambda: SIX.copy(),
    "a view": lambda: filled(np.zeros(12)[3:9]),
    "a view of a view": lambda: filled(np.zeros(12)[3:][:6]),
    "every second": lambda: filled(np.zeros(12)[::2]),
    "backwards": lambda: filled(np.zeros(6)[::-1]),
    "a column": lambda: filled(np.zeros((6, 2))[:, 1]),
    "in Fortran's order": lambda: np.asfortranarray(SIX.reshape(2, 3)),
    "transposed": lambda: SIX.reshape(2, 3).copy().T,
    "broadcast": lambda: np.broadcast_to(SIX[:3].copy(), (2, 3)),
    "read-only": lambda: locked(SIX.copy()),
    "a view of what is read-only": view_of_locked_owner,
    "memory-mapped": lambda: np.memmap(mapped(), np.float64, "r+"),
    "memory-mapped, read-only": lambda: np.memmap(mapped(), np.float64, "r"),
    "memory-mapped, plain": lambda: np.asarray(np.memmap(mapped(), np.float64, "r+")),
    "mmap": lambda: np.frombuffer(mmap.mmap(mapped().fileno(), 48)),
    "shared": shared,
    "ctypes": lambda: filled(np.ctypeslib.as_array((ctypes.c_double * 6)())),
    "a pointer": lambda: np.ctypeslib.as_array(
        ctypes.cast((ctypes.c_double * 6)(*SIX), ctypes.POINTER(ctypes.c_double)), (6,)
    ),
    "array.array": lambda: np.frombuffer(array.array("d", SIX)),
    "bytearray": lambda: np.frombuffer(bytearray(SIX.tobytes())),
    "bytes": lambda: np.frombuffer(SIX.tobytes()),
    "memoryview": lambda: np.asarray(memoryview(bytearray(SIX.tobytes())).cast("d")),
    "every second of a memoryview": lambda: np.asarray(
        memoryview(bytearray(np.repeat(SIX, 2).tobytes())).cast("d")[::2]
    ),
    "a capsule": lambda: np.from_dlpack(SIX.copy()),
    "a view of a capsule": lambda: np.from_dlpack(np.repeat(SIX, 2))[::2],
    "an address": lambda: np.asarray(Interface(SIX.copy())),
    "a tensor of torch": lambda: torch.tensor(SIX).numpy(),
    "a view of a tensor": lambda: torch.tensor(SIX.reshape(2, 3)).numpy()[:, 1:],
    "a tensor by DLPack": lambda: np.from_dlpack(torch.tensor(SIX)),
    "to_numpy": lambda: iso.to_numpy(torch.tensor(SIX)),
    "convert": lambda: iso.convert(torch.tensor(SIX), "numpy"),
    "an array of JAX": lambda: np.asarray(jnp.asarray(SIX)),
    "an array of JAX by DLPack": lambda: np.from_dlpack(jnp.asarray(SIX)),
    "a tensor of TensorFlow": lambda: tf.constant(SIX).numpy(),
    "memory of TensorFlow": lambda: np.asarray(memoryview(tf.constant(SIX))),
    "a subclass": lambda: SIX.copy().view(Sub),
    "a view of a subclass": lambda: np.asarray(SIX.copy().view(Sub)),
    "a field": structured,
    "the other order of bytes": lambda: SIX.astype(">f8"),
    "not aligned": lambda: filled(np.frombuffer(bytearray(49), np.float64, offset=1)),
    "float32": lambda: filled(np.zeros(6, np.float32)),
    "float32 of torch": lambda: torch.tensor(SIX, dtype=torch.float32).numpy(),
    "no axes": lambda: np.array(0.5),
    "no axes, of torch": lambda: torch.tensor(0.5, dtype=torch.float64).numpy(),
    "empty": lambda: np.zeros((0, 3)),
}


def parts(x):
    """`x` used elementwise, in a product, in a layer and through an index."""
    row = np.reshape(x, (1, -1))
    inner = np.matmul(row, np.swapaxes(row, 0, 1))[0, 0]
    layer = np.sum(iso.linear(row, np.exp(-row)) ** 2)
    return np.sum(np.sin(x) * x * x) + inner * np.tanh(inner) + layer + np.sum(row[:, ::2] ** 3)


def by_constant(w, x):
    row = np.reshape(x, (1, -1))
    product = np.sum(np.matmul(w * row, np.swapaxes(row, 0, 1)))
    return np.sum(np.exp(-w * x) * x) + product * product + np.sum(iso.linear(w * row, row) ** 3)


def derivatives(x):
    """Value, gradient and second derivatives, for the array and for a number beside it."""
    along = np.cos(np.arange(float(np.size(x)))).reshape(np.shape(x)).astype(np.float64)
    along = along.astype(np.asarray(x).dtype.newbyteorder("="))
    number = np.array(0.3, along.dtype)
    return [
        *iso.value_and_grad(parts)(x),
        iso.hvp(parts, (x,), (along,))[0],
        iso.grad(lambda x: np.sum(iso.grad(parts)(x) ** 2))(x),
        iso.grad(by_constant)(number, x),
        iso.grad(iso.grad(by_constant))(number, x),
    ]


@ONLY
@pytest.mark.parametrize("memory", MEMORY)
def test_differentiated_like_a_copy_and_writeable_as_before(backend, memory):
    x = MEMORY[memory]()
    plain = np.array(x, dtype=x.dtype.newbyteorder("="), subok=False)
    flags = str(x.flags)
    close = 1e-5 if x.dtype.itemsize == 4 else 1e-12
    found, expected = derivatives(x), derivatives(plain)
    assert len(found) == len(expected) == 6
    for got, wanted in zip(found, expected):
        assert np.shape(got) == np.shape(wanted)
        assert np.asarray(got).dtype == np.asarray(wanted).dtype
        np.testing.assert_allclose(got, wanted, rtol=close, atol=0)
    assert str(x.flags) == flags
    np.testing.assert_array_equal(x, plain)
    if x.flags.writeable:
        x[...] = 7.0
        assert (np.asarray(x) == 7.0).all()


READ_ONLY = {  # kinds that cannot be written
    "broadcast", "read-only", "memory-mapped, read-only", "bytes", "an array of JAX",
    "an array of JAX by DLPack", "memory of TensorFlow",
}  # fmt: skip


@ONLY
@pytest.mark.parametrize("memory", [name for name in MEMORY if name not in READ_ONLY])
def test_written_to_meanwhile_it_raises_or_does_not_matter(backend, memory):
    """A constant that a rule reads later is overwritten inside the function."""
    x = MEMORY[memory]()
    assert x.flags.writeable
    filled_inside(lambda: x, x)


def filled_inside(seen, whole):
    """The gradient of a function of `seen()` that overwrites `whole`: it is right, or refused."""
    wanted = np.sum(np.array(seen()) ** 2)

    def fills(w):
        x = seen()
        y = np.sum((w * x) * x)
        whole[...] = 0.0
        return y

    try:
        found = iso.grad(fills)(np.array(1.5))
    except ValueError as error:
        found = None if "read-only" in str(error) else error
    if found is not None:
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert whole.flags.writeable


VIEWS = {
    "a part": lambda x: x[1:4],
    "every second": lambda x: x[::2],
    "a column": lambda x: x.reshape(2, 3)[:, 1],
    "backwards": lambda x: x[::-1],
    "another shape": lambda x: x.reshape(3, 2).T,
    "repeated": lambda x: np.broadcast_to(x, (2, 6)),
    "a part, repeated": lambda x: np.broadcast_to(x[:2], (5, 2)),
    "read-only": lambda x: kept_from_writing(x[:]),
    "a window": lambda x: np.lib.stride_tricks.sliding_window_view(x, 2),
    "a window to write to": lambda x: np.lib.stride_tricks.as_strided(x, (4, 2), (8, 8)),
}
OWNERS = {
    "an array": lambda: SIX.copy(),
    "a subclass": lambda: filled(Sub(6)),
    "a tensor of torch": MEMORY["a tensor of torch"],
    "memory-mapped": MEMORY["memory-mapped"],
}


def kept_from_writing(x):
    x.flags.writeable = False
    return x


@ONLY
@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize("view", VIEWS)
def test_views_whose_owner_is_written_to(backend, view, owner):
    x = OWNERS[owner]()
    filled_inside(lambda: VIEWS[view](x), x)


@ONLY
def test_other_parts_of_a_buffer_may_be_written(backend):
    """A ring buffer of batches: others are filled while one batch is in use."""
    ring = np.zeros((4, 3))

    def loss(w):
        total = 0.0
        for i in range(4):
            ring[i] = i + 1.0
            total = total + np.sum(w * ring[i] * ring[i])
        return total

    np.testing.assert_allclose(iso.grad(loss)(np.array(2.0)), 3.0 * (1 + 4 + 9 + 16), rtol=1e-12)
    assert ring.flags.writeable


@ONLY
@pytest.mark.parametrize("solve", ["root", "fsolve", "leastsq"])
def test_jacobians_for_solvers_of_scipy(backend, solve):
    """Solvers pass their own buffers."""
    residual = lambda x: np.stack([x[0] ** 2 + x[1] - 3.0, x[0] - x[1] ** 2 + 1.0])
    seen = []

    def jacobian(x):
        writeable, found = x.flags.writeable, iso.jac(residual)(x)
        np.testing.assert_allclose(found, [[2 * x[0], 1.0], [1.0, -2 * x[1]]], rtol=1e-14)
        seen.append(x.flags.writeable == writeable)
        return found

    start = np.array([1.0, 1.0])
    if solve == "root":
        found = optimize.root(residual, start, jac=jacobian).x
    elif solve == "fsolve":
        found = optimize.fsolve(residual, start, fprime=jacobian)
    else:
        found = optimize.leastsq(residual, start, Dfun=jacobian)[0]
    np.testing.assert_allclose(residual(found), 0.0, atol=1e-8)
    assert seen
    assert all(seen)
