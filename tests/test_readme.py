"""The README's code runs as printed."""

import re
from pathlib import Path

import numpy as np

import isomorph as iso
from oracles import central_gradient, kind_of, numpy_of

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_readme_programs(backend, xp):
    blocks = re.findall(r"```python\n(.*?)```", README, re.S)
    assert len(blocks) == 4
    names = {}
    ones = "np.ones((8, 4), np.float32)"
    for block in blocks:
        block = block.replace(f"x = {ones}", f"x = iso.convert({ones}, {backend!r})")
        block = re.sub("points = (.*)", rf"points = iso.convert(\1, {backend!r})", block)
        block = block.replace('init(backend="numpy")', f"init(backend={backend!r})")
        if backend == "torch":  # Inductor takes too long; other tests compile with it
            block = block.replace("resume=True", "resume=True, compiled=False")
        exec(block.replace('use_backend("numpy")', f"use_backend({backend!r})"), names)
    done = names.pop("done")
    assert kind_of(done.model.hidden.w) == backend
    assert (done.steps, done.stopped, len(done.history)) == (10, "done", 5)
    assert done.history[-1]["validation"]["loss"] < done.losses[0] / 2
    # three steps of AdamW, about 1e-2 per weight each, lower the error of the weights of key 0
    net = names["net"]
    assert kind_of(net.hidden.w) == kind_of(names["error"]) == backend
    with iso.use_backend(backend), iso.use_key(0):
        before = names["Net"]()
    moved = np.abs(numpy_of(net.head.w) - numpy_of(before.head.w))
    assert 0.005 < moved.max() < 0.04
    assert float(names["error"]) < float(iso.mse(before(names["x"]), names["x"][:, :1]))
    x = np.array([0.1, 0.9, -0.4])
    got = iso.grad(names["energy"])(xp.asarray(x))
    assert kind_of(got) == backend
    np.testing.assert_allclose(numpy_of(got), 2 * np.tanh(x) / np.cosh(x) ** 2, rtol=1e-12)
    # central differences with step 1e-6 of a function of size 1
    np.testing.assert_allclose(
        iso.grad(names["loss"])(x[:2]), central_gradient(names["loss"], x[:2]), rtol=1e-7
    )
