"""A matrix with a NaN gives NaN, wherever the NaN is, on every device. On a GPU cuSOLVER takes it
for a 0; there all of the result is NaN, and its gradient shows it; canaries watch the frameworks.
"""

import sys

import numpy as np
import pytest
from frameworks import jax, torch

import isomorph as iso
from isomorph.core.dispatch import load
from oracles import numpy_of

pytestmark = pytest.mark.parametrize("backend", ["jax", "torch"], indirect=True)
B = np.arange(1.0, 6.0)
CALLS = {
    "inv": lambda xp, a: xp.linalg.inv(a),
    "det": lambda xp, a: xp.linalg.det(a),
    "slogdet": lambda xp, a: xp.linalg.slogdet(a)[1],
    "solve": lambda xp, a: xp.linalg.solve(a, xp.asarray(B[: a.shape[-1]])),
    "solve of columns": lambda xp, a: xp.linalg.solve(a, xp.asarray(B[: a.shape[-1], None])),
}
ON_GPU = {
    "svdvals": lambda xp, a: xp.linalg.svdvals(a),
    "svd": lambda xp, a: xp.linalg.svd(a, full_matrices=False)[1],
    "pinv": lambda xp, a: xp.linalg.pinv(a),
    "matrix_norm": lambda xp, a: xp.linalg.matrix_norm(a, ord=2),
    "nuclear norm": lambda xp, a: xp.linalg.matrix_norm(a, ord="nuc"),
}


def matrices(n):
    """Regular matrices: one as it is, the others with a NaN each."""
    a = np.cos(np.arange(n * n, dtype=float)).reshape(n, n) + 3 * np.eye(n)
    stack = np.stack([a] * 5)
    for number, place in enumerate([(0, 0), (0, n - 1), (n - 1, 0), (n - 1, n - 1)], 1):
        stack[number][place] = np.nan
    return stack


def is_on_gpu(backend, x):
    return str(load(backend).device_of(x)).startswith("cuda")


@pytest.mark.parametrize("n", [2, 5])
@pytest.mark.parametrize("name", [*CALLS, *ON_GPU])
def test_a_nan_in_a_matrix_shows(backend, xp, name, n):
    call, stack = {**CALLS, **ON_GPU}[name], matrices(n)
    if name in ON_GPU and not is_on_gpu(backend, xp.asarray(stack)):
        pytest.skip("on a CPU LAPACK may raise instead")
    for given in (*stack, stack):
        if "solve" in name and given.ndim > 2:
            continue  # each matrix has its right-hand side
        lost = np.isnan(given).any((-2, -1))
        y = numpy_of(call(xp, xp.asarray(given)))
        total = lambda a: xp.sum(call(xp, a) ** 2)
        slope = numpy_of(iso.grad(total)(xp.asarray(given)))
        on_gpu = is_on_gpu(backend, xp.asarray(given))
        for found in (y, slope):
            flat = np.isnan(found).reshape(*lost.shape, -1)
            assert not flat[~lost].any()
            if on_gpu or found is y:
                assert (flat.all(-1) if on_gpu and found is y else flat.any(-1))[lost].all()
        with np.errstate(all="ignore"):
            wanted = call(np, np.where(np.isnan(given), 1.0, given))
        np.testing.assert_allclose(y[~lost], np.asarray(wanted)[~lost], rtol=1e-10)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", [*CALLS, *ON_GPU])
def test_what_marks_a_nan_changes_nothing_else(backend, xp, name, dtype, monkeypatch):
    """What runs on a GPU only, run here: the other matrices of a stack keep their numbers."""
    if backend == "torch" and not is_on_gpu(backend, xp.asarray(B)):
        pytest.skip("torch's tensors say themselves where they are")
    call, given = {**CALLS, **ON_GPU}[name], matrices(3)[[0, 1]]
    given = xp.asarray((given[:1] if "solve" in name else given).astype(dtype))
    total = lambda a: xp.sum(xp.abs(call(xp, a)) ** 2)
    good = given[:1]
    wanted = numpy_of(call(xp, good)), numpy_of(iso.grad(total)(good))
    if backend == "jax":
        home = sys.modules["isomorph.backends.jax.linalg"]
        monkeypatch.setattr(home, "_has_gpu", lambda: True)
    found = numpy_of(call(xp, given)), numpy_of(iso.grad(total)(given))
    for got, y in zip(found, wanted):
        np.testing.assert_allclose(got[:1], y, rtol=1e-9, atol=1e-12)
        assert np.isnan(got[1:]).all()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="the wrong kernel is for GPUs")
def test_the_frameworks_still_take_a_nan_for_zero_on_a_gpu(backend):
    """If this fails, `_keep_nan` of the backend is no longer needed."""
    a = np.array([[1.0, np.nan], [np.nan, 2.0]])
    if backend == "torch":
        found = torch.linalg.inv(torch.tensor(a, device="cuda"))
    else:
        found = jax.numpy.linalg.inv(jax.device_put(a, jax.devices("gpu")[0]))
    np.testing.assert_array_equal(numpy_of(found), [[1.0, 0.0], [0.0, 0.5]])
