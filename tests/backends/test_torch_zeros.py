"""Derivatives that are zero everywhere own memory like others: torch's own zeros do not."""

import numpy as np
import pytest
from frameworks import torch

import isomorph as iso

pytestmark = pytest.mark.parametrize("backend", ["torch"], indirect=True)
LINEAR = {
    "a product with a constant": lambda x: torch.sum(x * torch.arange(3.0)),
    "a sum": lambda x: torch.sum(x),
    "an element": lambda x: x[1],
    "nothing of it": lambda x: torch.sum(x.detach() ** 2),
}


@pytest.mark.parametrize("name", LINEAR)
def test_second_derivatives_of_what_is_linear(backend, name, tmp_path):
    func, x = LINEAR[name], torch.ones(3)
    total = lambda x: torch.sum(iso.grad(func)(x) * x.detach())
    found = {
        "grad of grad": iso.grad(total)(x),
        "hessian": iso.hessian(func)(x),
        "hvp": iso.hvp(func, (x,), (x,))[0],
        "jvp": iso.jvp(iso.grad(func), (x,), (x,))[1],
        "vjp": iso.vjp(iso.grad(func), x)[1](x)[0],
    }
    for word, zero in found.items():
        np.testing.assert_array_equal(zero.cpu().numpy(), 0.0, err_msg=word)
        np.testing.assert_array_equal(iso.to_numpy(zero), 0.0)
        zero += 1.0  # it can be written
    iso.save(tmp_path / "file", {word: zero - 1.0 for word, zero in found.items()})
    assert all((y == 0).all() for y in iso.load(tmp_path / "file").values())


def test_a_zero_of_torch_itself(backend, tmp_path):
    zero = torch._efficientzerotensor((2,))
    np.testing.assert_array_equal(iso.to_numpy(zero), 0.0)
    np.testing.assert_array_equal(np.asarray(iso.convert(zero, "jax")), 0.0)
    iso.save(tmp_path / "file", zero)
    np.testing.assert_array_equal(iso.load(tmp_path / "file"), 0.0)
