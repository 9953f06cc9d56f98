"""The programs of the README and of the site's start page run as printed, on every backend."""

import re

import numpy as np
from docs.blocks import ROOT, blocks
from optree import tree_leaves as leaves

import isomorph as iso
from oracles import central_gradient, kind_of, numpy_of

README = ROOT / "README.md"
START = ROOT / "docs" / "index.md"


def programs(path):
    return [block.code for block in blocks(path) if block.language == "python"]


def check_loss(names):
    x = np.array([0.1, 0.9])
    # central differences with step 1e-6 of a function of size 1
    np.testing.assert_allclose(
        iso.grad(names["loss"])(x), central_gradient(names["loss"], x), rtol=1e-7
    )


def check_energy(names, backend, xp):
    x = np.array([0.1, 0.9, -0.4])
    got = iso.grad(names["energy"])(xp.asarray(x))
    assert kind_of(got) == backend
    np.testing.assert_allclose(numpy_of(got), 2 * np.tanh(x) / np.cosh(x) ** 2, rtol=1e-12)


def test_the_readme_is_short():
    text = README.read_text("utf-8")
    assert text.count("\n") <= 100
    assert len(programs(README)) == 3
    for said in ("make demo", "make test", "pip install", "<!-- scoreboard -->", ".svg"):
        assert said in text


def test_readme_programs(backend, xp, tmp_path):
    names = {}
    for block in programs(README):
        ones = "np.ones((8, 3))"
        block = block.replace(f"x = {ones}", f"x = iso.convert({ones}, {backend!r})")
        if backend == "torch":  # Inductor takes too long; other tests compile with it
            block = block.replace("resume=True", "resume=True, compiled=False")
        exec(block, names)
    check_loss(names)
    check_energy(names, backend, xp)
    x = np.ones((8, 3))
    slope = 2 * np.tanh(x) / np.cosh(x) ** 2
    assert kind_of(names["gradient"]) == kind_of(names["each"]) == backend
    # float64, and one formula per element
    np.testing.assert_allclose(numpy_of(names["gradient"]), slope, rtol=1e-12)
    np.testing.assert_allclose(numpy_of(names["each"]), slope, rtol=1e-12)
    np.testing.assert_allclose(float(names["value"]), 24 * np.tanh(1) ** 2, rtol=1e-12)
    # two epochs of two steps on NumPy and one here are as three on NumPy
    begun = names["train"]("numpy", 2, tmp_path / "net")
    done = names["train"](backend, 3, tmp_path / "net")
    whole = names["train"]("numpy", 3, tmp_path / "other")
    assert (begun.steps, done.steps, whole.steps) == (4, 6, 6)
    got, wanted = done.model.v, whole.model.v
    for leaf, other in zip(leaves(got), leaves(wanted), strict=True):
        assert kind_of(leaf) == backend
        # weights near 1 after six steps in float32, each with rounding errors of about 1e-7
        np.testing.assert_allclose(numpy_of(leaf), other, atol=1e-5)
    assert float(done.losses[-1]) < float(begun.losses[0])


def test_programs_of_the_start_page(backend, xp):
    found = programs(START)
    assert len(found) == 4
    names = {}
    ones = "np.ones((8, 4), np.float32)"
    for block in found:
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
    check_energy(names, backend, xp)
    check_loss(names)
