"""Programs of `isomorph.numpy` beside the same programs of plain NumPy."""

import numpy as np

import isomorph as iso
import isomorph.numpy as inp
from oracles import central_gradient


def same_as_plain_numpy(program, x):
    """Assert that `program(np, x)` with `isomorph.numpy` has the value that it has with NumPy, and
    the gradient by differences of that. What it writes into `x` is not seen. Returns the gradient.
    """
    plain = lambda x: program(np, x.copy())
    value, grad = iso.value_and_grad(lambda x: program(inp, x))(x)
    np.testing.assert_allclose(value, plain(x), rtol=1e-13)
    slopes = central_gradient(plain, x)
    np.testing.assert_allclose(grad, slopes, rtol=0, atol=1e-7 * max(1.0, abs(slopes).max()))
    return grad
