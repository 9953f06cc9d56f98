"""The type of a NumPy array that is differentiated, and the device of any array."""

import subprocess
import sys

import numpy as np
import pytest

import isomorph as iso
from isomorph.typing import TracedArray


def test_a_traced_array_is_one_and_no_other(backend, xp):
    seen = []

    def total(x):
        seen.append(isinstance(x, TracedArray))
        seen.append(isinstance(x, np.ndarray))
        return xp.sum(x * x)

    x = xp.asarray(np.ones(2))
    iso.grad(total)(x)
    total(x)
    assert seen == [backend == "numpy", False, False, backend == "numpy"]


def test_its_type_imports_no_framework():
    code = (
        "import sys; from isomorph.typing import TracedArray; "
        "print(sorted({'numpy', 'jax', 'torch', 'tensorflow'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.host_only("it asks for the device of the host")
def test_the_device_of_an_array(backend, xp):
    x = xp.asarray(np.ones(2))
    device = iso.device_of(x)
    assert "cpu" in str(device).lower()
    made = iso.zeros(2, backend=backend, device=device)
    assert iso.device_of(made) == device


@pytest.mark.host_only("it asks for the device of the host")
def test_the_device_of_a_traced_array(backend, xp):
    """That of the array under differentiation; None where a program has not chosen one yet: under
    `vmap` and `jit` on JAX, and in the graphs of TensorFlow.
    """
    seen = {}

    def total(x):
        seen[way] = iso.device_of(x)
        return xp.sum(x * xp.zeros(2, dtype=x.dtype, device=seen[way]) + x)

    x = xp.asarray(np.ones(2))
    for way, transform in (("grad", iso.grad), ("vmap", iso.vmap), ("jit", iso.jit)):
        if way != "jit" or backend in ("jax", "tensorflow"):
            transform(total)(x[None, :] if way == "vmap" else x)
    own = iso.device_of(x)
    assert "cpu" in str(own).lower()
    assert (
        seen
        == {
            "numpy": {"grad": own, "vmap": own},
            "jax": {"grad": own, "vmap": None, "jit": None},
            "tensorflow": {"grad": own, "vmap": None, "jit": None},
            "torch": {"grad": own, "vmap": own},
        }[backend]
    )


@pytest.mark.host_only("it asks for the device of the host")
def test_a_number_has_no_device(backend):
    with pytest.raises(TypeError, match="needed at least one array"):
        iso.device_of(1.0)


def test_the_gradient_of_a_complex_number(backend, xp):
    """A Python complex number is an array without axes, like a Python float."""
    x = xp.asarray(np.array([1.0, 2.0]))
    real = iso.grad(lambda a, x: xp.sum(a * x))(3.0, x)
    assert float(real) == 3.0
    found = iso.grad(lambda z, x: xp.sum(xp.real(z * z) * x))(2.0 + 1.0j, x)
    # of Re z² = a² - b² it is 2a - 2bi
    np.testing.assert_allclose(complex(found), 3 * (4.0 - 2.0j), rtol=1e-6)
