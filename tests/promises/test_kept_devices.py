"""Arrays that our functions make inside are on the device of their arguments, whatever the default
device is. torch's meta device stands for an accelerator: it has no memory, but refuses to be mixed.
"""

import numpy as np
import pytest
from frameworks import torch
from layers.test_half_precision import LAYERS

import isomorph as iso
from examples import arrays_of, may
from examples.measuring import run
from isomorph.backends import windows
from isomorph.core import tree
from isomorph.core.dispatch import load

pytestmark = pytest.mark.parametrize("backend", ["torch"], indirect=True)


def there(x):
    return torch.tensor(np.asarray(x), dtype=torch.float32, device="meta")


def check(found):
    leaves = [x for x in tree.flatten(found)[0] if isinstance(x, torch.Tensor)]
    assert leaves
    assert {x.device.type for x in leaves if x.ndim} <= {"meta"}
    return leaves


@pytest.mark.parametrize("name", [name for name in LAYERS if may(LAYERS[name], "device")])
def test_layers(backend, name):
    call, given = run(name), [there(x) for x in arrays_of(LAYERS[name])]
    check(call(*given))
    total = lambda *arrays: sum(torch.sum(y) for y in call(*arrays))
    check(iso.value_and_grad(total, argnums=tuple(range(len(given))))(*given))
    if "pool" not in name:  # torch has no forward mode for its kernels
        check(iso.vmap(lambda x: call(x, *given[1:]))(torch.stack([given[0]] * 2)))


def key():
    return torch.zeros_like(iso.random.key(0, backend="torch"), device="meta")


RANDOM = {
    "uniform": lambda k: iso.random.uniform(k, (3,)),
    "normal": lambda k: iso.random.normal(k, (3,)),
    "bits": lambda k: iso.random.bits(k, (3,)),
    "truncated_normal": lambda k: iso.random.truncated_normal(k, (3,)),
    "bernoulli": lambda k: iso.random.bernoulli(k, 0.3, (3,)),
    "categorical": lambda k: iso.random.categorical(k, there([0.1, 0.2])),
    "permutation": lambda k: iso.random.permutation(k, 5),
    "split": lambda k: iso.random.split(k, 3),
    "fold_in": lambda k: iso.random.fold_in(k, 3),
    "dropout": lambda k: iso.dropout(there(np.ones(4)), 0.5, rng=k),
}


@pytest.mark.parametrize("name", RANDOM)
def test_random_numbers(backend, name):
    check(RANDOM[name](key()))


@pytest.mark.parametrize("name", ["sgd", "adam", "adamw", "lamb", "lars", "rmsprop", "lion"])
def test_optimizers(backend, name):
    optimizer = getattr(iso.optimizers, name)(0.1)
    params = {"w": there(np.ones((2, 3))), "b": there(np.ones(3))}
    state = optimizer.init(params)
    for _ in range(2):
        updates, state = optimizer.update(params, state, params)
        check(updates)
    assert all(x.device.type == "meta" for x in tree.flatten(state)[0] if x.ndim)


OTHERS = {
    "scan": lambda x: iso.scan(lambda c, y: (c + y, c * y), x[0], x),
    "scan without rows": lambda x: iso.scan(lambda c, _: (c * 2, c), x, None, 3),
    "fori_loop": lambda x: iso.fori_loop(0, 3, lambda i, c: c * 2, x),
    "at set": lambda x: iso.at(x)[1:].set(0.0),
    "at add": lambda x: iso.at(x)[[0, 1, 1]].add(1.0),
    "at min": lambda x: iso.at(x)[[0, 1, 1]].min(1.0),
    "at multiply": lambda x: iso.at(x)[[0, 1, 1]].multiply(2.0),
    "window": lambda x: windows.read(load("torch"), x, there(0).long(), 2, 0),
    "window set": lambda x: windows.written(load("torch"), x, x[:2], there(0).long(), 0),
    "hessian": lambda x: iso.hessian(lambda x: torch.sum(x**3))(x),
    "jac": lambda x: iso.jac(lambda x: x**2)(x),
    "jac without rows": lambda x: iso.jac(lambda x: x[:0])(x),
    "vmap over nothing": lambda x: iso.vmap(lambda x: x * 2)(x[:0]),
    "checkpoint": lambda x: iso.grad(iso.checkpoint(lambda x: torch.sum(torch.sin(x))))(x),
    "hvp": lambda x: iso.hvp(lambda x: torch.sum(x**3), (x,), (x,)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_transforms_and_loops(backend, name):
    check(OTHERS[name](there(np.ones((3, 2)))))
