"""Second derivatives through `vmap`, of every public function, layer and loss: what a loop over the
examples gives. Kernels of frameworks have batching rules of their own, of which some are wrong.
"""

import numpy as np
import pytest
from frameworks import torch

import isomorph as iso
from examples import BACKENDS, TABLE, arrays_of, groups_of, may
from examples.measuring import Failures, run, weighed
from oracles import numpy_of

EXAMPLES, NEAR = 3, 1e-9
# torch cannot map `torch.fft.ihfft(x).imag`: it raises
LEFT_OUT = {("torch", "xp.fft.ihfft")}


def names_of(backend, group):
    return [
        name
        for name in groups_of(backend)[group]
        if TABLE[name].order > 1 and not TABLE[name].slope and arrays_of(TABLE[name])
        and may(TABLE[name], "gradient", backend) and may(TABLE[name], "mapped", backend)
        and (backend, name) not in LEFT_OUT
    ]  # fmt: skip


GROUPS = [
    pytest.param(backend, group, id=f"{backend}-{group}",
                 marks=() if backend in ("numpy", "torch") else pytest.mark.slow)
    for backend in BACKENDS
    for group in groups_of(backend)
    if names_of(backend, group)
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # an inner step may leave the domain
@pytest.mark.filterwarnings("ignore:There is a performance drop")  # of torch
@pytest.mark.takes("second derivatives of every name, example by example")
@pytest.mark.parametrize(("backend", "group"), GROUPS, indirect=["backend"])
def test_second_derivatives_through_vmap(backend, xp, group):
    failures = Failures()
    for name in names_of(backend, group):
        arrays = arrays_of(TABLE[name])
        rows = [np.stack([x * (1 + 0.01 * k) for k in range(EXAMPLES)]) for x in arrays]
        along = [np.sin(2.0 + np.arange(x.size)).reshape(x.shape) for x in arrays]
        rows, along = iso.convert((rows, along), backend)
        failures.of(name, "hvp of each example", hvp_of_each, xp, name, rows, along)
        failures.of(name, "gradient of an inner step", inner_step, xp, name, rows)
    failures.tell()


def hvp_of_each(xp, name, rows, along):
    func = lambda *arrays: weighed(xp, run(name)(*arrays))
    each = lambda *arrays: iso.hvp(func, arrays, tuple(along))
    same(iso.vmap(each)(*rows), [each(*(x[k, ...] for x in rows)) for k in range(EXAMPLES)])


def inner_step(xp, name, rows):
    func = lambda *arrays: weighed(xp, run(name)(*arrays))
    places = tuple(range(len(rows)))

    def after(*arrays):
        grads = iso.grad(func, places)(*arrays)
        return func(*(x - 1e-3 * g for x, g in zip(arrays, grads, strict=True)))

    found = iso.grad(lambda *rows: xp.sum(iso.vmap(after)(*rows)), places)(*rows)
    each = iso.grad(after, places)
    same(found, [each(*(x[k, ...] for x in rows)) for k in range(EXAMPLES)])


def same(found, one_by_one):
    for got, parts in zip(found, zip(*one_by_one, strict=True), strict=True):
        sure = np.stack([numpy_of(part) for part in parts])
        scale = max(1.0, np.abs(sure).max(initial=0.0))
        np.testing.assert_allclose(numpy_of(got), sure, rtol=0, atol=NEAR * scale)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_layer_norm_keeps_its_precision_under_vmap(backend, xp, dtype):
    draw = np.random.default_rng(1)
    x, w = (iso.convert(draw.normal(2.0, 1.0, n), backend) for n in ((5, 64), 64))
    sure = numpy_of(iso.layer_norm(x, weight=w))
    narrow = [p.to(getattr(torch, dtype)) for p in (x, w)]
    found = iso.vmap(lambda x: iso.layer_norm(x, weight=narrow[1]))(narrow[0])
    assert found.dtype == narrow[0].dtype
    near = 4 * {"float16": 2.0**-11, "bfloat16": 2.0**-8}[dtype]
    np.testing.assert_allclose(numpy_of(found.double()), sure, atol=near * np.abs(sure).max())
