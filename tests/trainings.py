"""A small training run with everything that must survive a kill: dropout, batch norm, AdamW."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import isomorph as iso
from isomorph.core import tree
from oracles import QUICK_XLA, numpy_of

ADAMW = iso.optimizers.adamw(3e-2)


def quick():
    """Options of a silent run without a compiler: most tests here are not about compilation."""
    return {"compiled": False, "progress": False}


class Net(iso.Module):
    def __init__(self):
        self.first = iso.Linear(3, 8)
        self.norm = iso.BatchNorm(8)
        self.drop = iso.Dropout(0.25)
        self.last = iso.Linear(8, 2)

    def forward(self, x):
        return self.last(self.drop(iso.silu(self.norm(self.first(x)))))


def network(backend):
    with iso.use_backend(backend), iso.use_key(7):
        return Net()


def table(backend, examples=22):
    """Points and labels that are linearly separable."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((examples, 3)).astype(np.float32)
    return iso.convert((x, (x.sum(1) > 0).astype(np.int64)), backend)


def entropy(model, x, labels):
    return iso.cross_entropy(model(x), labels)


def leaves(model):
    """All numbers of a model as NumPy arrays, including its state."""
    if isinstance(model, iso.Module):
        model = {"v": model.v, "state": model.state}
    return [numpy_of(x) for x in tree.flatten(model)[0]]


def same_bits(a, b):
    a, b = leaves(a), leaves(b)
    assert len(a) == len(b) > 0
    for x, y in zip(a, b):
        assert x.dtype == y.dtype
        assert x.tobytes() == y.tobytes()


def lines(path):
    """The records of a log; every line must be strict JSON."""

    def refuse(word):
        raise ValueError(f"{word} is not JSON")

    return [json.loads(x, parse_constant=refuse) for x in Path(path).read_text().splitlines()]


def child(code, *args, **kw):
    """Run code in another process that can import isomorph and this file."""
    paths = [str(Path(iso.__file__).parents[1]), str(Path(__file__).parent)]
    kw = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **kw}
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    if "jax" in args and os.environ.get("ISOMORPH_XLA") == "quick":
        env["XLA_FLAGS"] = QUICK_XLA
    return subprocess.Popen([sys.executable, "-c", code, *map(str, args)], text=True, env=env, **kw)
