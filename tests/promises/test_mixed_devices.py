"""Arrays on two devices in one call: the error names both and says how to move them.

JAX runs in another process with two CPU devices. On torch the second device is the meta device,
which has no memory, or the CPU if `--device` chose another one.
"""

from itertools import product
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from devices import run_on_jax_devices
from frameworks import jax, torch

import isomorph as iso
from isomorph.core.dispatch import backend_of, load

CALLS = {
    "linear": lambda a, b: iso.linear(a(2, 3), b(4, 3)),
    "linear, bias": lambda a, b: iso.linear(a(2, 3), a(4, 3), bias=b(4)),
    "conv2d": lambda a, b: iso.conv2d(a(1, 5, 5, 3), b(3, 3, 3, 4), 1, "SAME"),
    "attention": lambda a, b: iso.scaled_dot_product_attention(a(1, 2, 4), b(1, 2, 4), b(1, 2, 4)),
    "layer_norm": lambda a, b: iso.layer_norm(a(2, 3), weight=b(3)),
    "batch_norm": lambda a, b: iso.batch_norm(a(2, 3), b(3), b(3)),
    "mse": lambda a, b: iso.mse(a(2, 3), b(2, 3)),
    "cross_entropy": lambda a, b: iso.cross_entropy(a(2, 3), b(2, 3)),
    "module": lambda a, b: iso.Linear(3, 4, v={"w": b(4, 3), "b": b(4)})(a(2, 3)),
}
TRANSFORMS = {
    "grad": lambda f, a, b: iso.grad(f)(a, b),
    "value_and_grad": lambda f, a, b: iso.value_and_grad(f)(a, b),
    "jit": lambda f, a, b: iso.jit(f)(a, b),
}


def makers(backend):
    """Two functions that make arrays of a shape, each on its own device."""
    if backend == "jax":
        places = jax.devices("cpu")[:2]
        return [lambda *s, d=d: jax.device_put(np.ones(s, np.float32), d) for d in places]
    places = ["cpu", "meta" if torch.empty(0).is_cpu else torch.empty(0).device]
    return [lambda *s, d=d: torch.ones(s, device=d) for d in places]


def loss(model, x, t):
    return iso.mse(model(x), t)


def check_calls(backend):
    first, second = makers(backend)
    for call in CALLS.values():
        for a, b in ((first, second), (second, first)):
            with pytest.raises(ValueError, match="arrays on 2 devices in one call") as caught:
                call(a, b)
            assert_names_both(backend, caught, a(1), b(1))
        call(first, first)
        call(second, second)


def check_transforms(backend):
    first, second = makers(backend)
    total = lambda a, b: iso.namespace(a).sum(a * b)
    for run in TRANSFORMS.values():
        with pytest.raises((RuntimeError, ValueError), match=r"on different devices; .*iso\.conv"):
            run(total, first(3), second(3))


def check_training(backend):
    first, second = makers(backend)
    model = iso.Linear(3, 4, v={"w": first(4, 3), "b": first(4)})
    data = [(second(2, 3), second(2, 4))]
    with pytest.raises(ValueError, match="a model and a batch of fit: .*iso.convert") as caught:
        iso.fit(model, data, loss, iso.optimizers.sgd(0.1))
    assert_names_both(backend, caught, first(1), second(1))
    with pytest.raises(ValueError, match="a model and a batch of evaluate: .*iso.convert"):
        iso.evaluate(model, data, {"loss": loss})
    found = iso.evaluate(model, [(first(2, 3), first(2, 4))], {"loss": loss})
    assert found["loss"] == 9  # a row of ones gives 3 + 1; (4 - 1)²


def check_saving(backend):
    """A file is loaded to the device of the template, wherever it was saved."""
    first, second = makers(backend)
    places = [first] if str(load(backend).fixed_device(second(1))) == "meta" else [first, second]
    with TemporaryDirectory() as folder:
        for a, b in product(places, places):
            model = iso.Linear(3, 4, v={"w": a(4, 3) * 2, "b": a(4)})
            iso.save(f"{folder}/model", model, step=a(1))
            like = iso.Linear(3, 4, v={"w": b(4, 3), "b": b(4)})
            found, named = iso.load(f"{folder}/model", like, step=b(1))
            device = load(backend).device_of
            for x in (found.v["w"], found.v["b"], named["step"]):
                assert device(x) == device(b(1))
            assert float(found(b(1, 3))[0, 0]) == 7  # 3 products of 2, and 1


def assert_names_both(backend, caught, *arrays):
    for x in arrays:
        assert str(load(backend).fixed_device(x)) in str(caught.value)


CHECKS = [check_calls, check_transforms, check_training, check_saving]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_two_devices_raise(backend, check, monkeypatch):
    monkeypatch.setattr(type(load(backend)), "has_devices", staticmethod(lambda: True))
    check(backend)


@pytest.mark.host_only("another process, on the host")
@pytest.mark.takes("another process, which imports JAX")
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("backend", ["jax"], indirect=True)
def test_two_devices_raise_on_jax(backend, check):
    code = f"import test_mixed_devices as t; t.{check.__name__}('jax')"
    run_on_jax_devices(2, __file__, code)


@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_one_number_may_be_on_the_host(backend, monkeypatch):
    monkeypatch.setattr(type(load(backend)), "has_devices", staticmethod(lambda: True))
    x, number = makers(backend)[1](3), torch.ones((), device="cpu")
    assert backend_of(x, number) is backend_of(number, x) is load(backend)
    with pytest.raises(ValueError, match="arrays on 2 devices"):
        backend_of(x, number[None])
