"""POT (Python Optimal Transport) over isomorph: one backend for NumPy, JAX, TensorFlow and PyTorch.

POT has a class of about 400 lines per framework. After `install()` this one class takes arrays of
all four, and NumPy has gradients too.
"""

import numpy as np
import ot.backend
from scipy.sparse import issparse

import isomorph as iso

# Methods that are functions of the namespace, by the same name; and by another one.
SAME = [
    "abs", "atan2", "conj", "einsum", "exp", "floor", "imag", "isfinite", "isinf", "isnan", "log",
    "matmul", "maximum", "minimum", "real", "reshape", "sign", "sqrt", "tile", "where",
]  # fmt: skip
OTHER = {"arccos": "acos", "power": "pow"}
# Methods along an axis, with their default and their name in the namespace.
ALONG = {
    **{name: (None, name) for name in ("any", "argmax", "argmin", "flip", "max", "mean", "min")},
    **{name: (None, name) for name in ("prod", "std", "sum")},
    "concatenate": (0, "concat"), "sort": (-1, "sort"), "stack": (0, "stack"),
    "unsqueeze": (0, "expand_dims"),
}  # fmt: skip
MATRICES = ["det", "eigh", "inv", "outer", "qr", "slogdet", "solve", "trace"]
OURS = {
    "allclose": iso.allclose, "diag": iso.diag, "median": iso.median,
    "nan_to_num": iso.nan_to_num, "searchsorted": iso.searchsorted, "sqrtm": iso.linalg.sqrtm,
}  # fmt: skip


def namespace(*args):
    """The namespace of the first array among arguments, or in a list of arrays."""
    for x in args:
        x = x[0] if isinstance(x, (list, tuple)) and len(x) else x
        if hasattr(x, "dtype"):
            return iso.namespace(x)
    return iso.namespace(np.zeros(0))


def like(x):
    """The namespace for new arrays, and the keywords that make them like `x`."""
    if x is None:
        return iso.namespace(np.zeros(0)), {}
    return iso.namespace(x), {"dtype": x.dtype, "device": iso.device_of(x)}


class Isomorph(ot.backend.Backend):
    __name__ = "isomorph"
    __type__ = object
    __type_list__ = (np.array(1, dtype=np.float32), np.array(1, dtype=np.float64))

    def __init__(self):
        self.random = np.random.RandomState()

    # Moving arrays.

    def _to_numpy(self, a):
        return np.asarray(a) if isinstance(a, (int, float)) else iso.to_numpy(iso.stop_gradient(a))

    def _from_numpy(self, a, type_as=None):
        if type_as is None:
            return a
        xp, kw = like(type_as)
        return xp.asarray(a, **kw)

    def _detach(self, a):
        return iso.stop_gradient(a)

    def set_gradients(self, val, inputs, grads):
        grads = tuple(iso.stop_gradient(g) for g in grads)
        value = iso.stop_gradient(val)
        attach = iso.custom_vjp(
            lambda value, grads, *inputs: value + 0.0,
            lambda value, grads, *inputs: (value + 0.0, grads),
            lambda grads, g: (None, None, *(g * d for d in grads)),
        )
        return attach(value, grads, *inputs)

    def copy(self, a):
        return namespace(a).asarray(a, copy=True)

    def dtype_device(self, a):
        return a.dtype, str(iso.device_of(a))

    def assert_same_dtype_device(self, a, b):
        assert self.dtype_device(a) == self.dtype_device(b)

    def bitsize(self, type_as):
        return namespace(type_as).finfo(type_as.dtype).bits

    def device_type(self, type_as):
        return str(iso.device_of(type_as))

    def is_floating_point(self, a):
        return namespace(a).isdtype(a.dtype, "real floating")

    def issparse(self, a):
        return issparse(a)

    def todense(self, a):
        return a.toarray() if issparse(a) else a

    # New arrays.

    def zeros(self, shape, type_as=None):
        return self.full(shape, 0.0, type_as)

    def ones(self, shape, type_as=None):
        return self.full(shape, 1.0, type_as)

    def full(self, shape, fill_value, type_as=None):
        xp, kw = like(type_as)
        return xp.full(shape, fill_value, **kw)

    def eye(self, N, M=None, type_as=None):
        xp, kw = like(type_as)
        return xp.eye(N, M, **kw)

    def arange(self, stop, start=0, step=1, type_as=None):
        return like(type_as)[0].arange(start, stop, step)

    def linspace(self, start, stop, num, type_as=None):
        xp, kw = like(type_as)
        return xp.linspace(start, stop, num, **kw)

    def seed(self, seed=None):
        self.random = np.random.RandomState(seed)

    def rand(self, *size, type_as=None):
        return self._from_numpy(self.random.rand(*size), type_as)

    def randn(self, *size, type_as=None):
        return self._from_numpy(self.random.randn(*size), type_as)

    def randperm(self, size, type_as=None):
        return like(type_as)[0].asarray(self.random.permutation(size))

    # Functions whose arguments differ.

    def argsort(self, a, axis=-1):
        return namespace(a).argsort(a, axis=axis)

    def sort2(self, a, axis=-1):
        xp = namespace(a)
        order = xp.argsort(a, axis=axis)
        return xp.take_along_axis(a, order, axis=axis), order

    def clip(self, a, a_min=None, a_max=None):
        return namespace(a).clip(a, a_min, a_max)

    def cumsum(self, a, axis=None):
        xp = namespace(a)
        return xp.cumulative_sum(a if axis is not None else xp.reshape(a, (-1,)), axis=axis or 0)

    def dot(self, a, b):
        xp = namespace(a, b)
        return a * b if 0 in (a.ndim, b.ndim) else xp.tensordot(a, b, axes=([-1], [-2 % b.ndim]))

    def norm(self, a, axis=None, keepdims=False):
        return namespace(a).linalg.vector_norm(a, axis=axis, keepdims=keepdims)

    def pinv(self, a, hermitian=False):
        return namespace(a).linalg.pinv(a)

    def kl_div(self, p, q, mass=False, eps=1e-16, axis=None):
        xp = namespace(p, q)
        value = xp.sum(p * xp.log(p / q + eps), axis=axis)
        return value + xp.sum(q - p, axis=axis) if mass else value

    def logsumexp(self, a, axis=None, keepdims=False):
        return iso.logsumexp(a, axis=axis, keepdims=keepdims)

    def meshgrid(self, a, b):
        return namespace(a).meshgrid(a, b)

    def repeat(self, a, repeats, axis=None):
        return namespace(a).repeat(a, repeats, axis=axis)

    def squeeze(self, a, axis=None):
        found = [i for i, n in enumerate(a.shape) if n == 1] if axis is None else axis
        return namespace(a).squeeze(a, axis=tuple(found) if axis is None else axis)

    def take_along_axis(self, arr, indices, axis):
        return namespace(arr).take_along_axis(arr, indices, axis=axis)

    def transpose(self, a, axes=None):
        return namespace(a).permute_dims(a, axes or tuple(range(a.ndim))[::-1])

    def unique(self, a, return_inverse=False):
        xp = namespace(a)
        if not return_inverse:
            return xp.unique_values(a)
        found = xp.unique_inverse(a)
        return found.values, found.inverse_indices

    def zero_pad(self, a, pad_width, value=0):
        return namespace(a).pad(a, pad_width, constant_values=value)

    def array_equal(self, a, b):
        return a.shape == b.shape and bool(namespace(a).all(a == b))


def method(room, name):
    def call(self, *args, **kw):
        xp = namespace(*args, *kw.values())
        return getattr(xp.linalg if room == "linalg" else xp, name)(*args, **kw)

    return call


def along(default, name):
    def call(self, a, axis=default, **kw):
        return getattr(namespace(a), name)(a, axis=axis, **kw)

    return call


for own, found in ALONG.items():
    setattr(Isomorph, own, along(*found))
for own, name in {**dict(zip(SAME, SAME)), **OTHER}.items():
    setattr(Isomorph, own, method("", name))
for name in MATRICES:
    setattr(Isomorph, name, method("linalg", name))
for name, found in OURS.items():
    setattr(Isomorph, name, staticmethod(found))


def install():
    """Let POT use this backend for every array."""
    ot.backend._BACKEND_IMPLEMENTATIONS[:] = [Isomorph]
