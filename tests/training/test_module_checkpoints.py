"""Models in checkpoints: complete, between frameworks, and with training that resumes
seamlessly.
"""

import numpy as np
import pytest
from conftest import BACKENDS

import isomorph as iso
from oracles import kind_of, numpy_of

DATA = np.random.default_rng(0)
X = DATA.uniform(-1, 1, (8, 3)).astype(np.float32)
T = DATA.uniform(-1, 1, (8, 2)).astype(np.float32)


class Net(iso.Module):
    def __init__(self, key):
        keys = iso.random.split(iso.random.key(key), 3)
        self.first = iso.Linear(3, 4, key=keys[0])
        self.norm = iso.BatchNorm(4)
        self.drop = iso.Dropout(0.2, key=keys[1])
        self.last = [iso.Linear(4, 2, key=keys[2])]
        self.tied, self.nothing = self.first, None
        self.ids = iso.arange(2, dtype="int32")

    def forward(self, x):
        xp = iso.namespace(x)
        return self.last[0](self.drop(xp.tanh(self.norm(self.tied(x)))))


def made(backend, key=0):
    with iso.use_backend(backend):
        return Net(key)


def steps(net, optimizer, state, n):
    """The losses of `n` steps, and the net and the optimizer's state after them."""
    xp = iso.namespace(net.first.w)
    x, t = xp.asarray(X), xp.asarray(T)

    def loss(v, held):
        y, held = net.apply(v, held, x)
        return xp.mean((y - t) ** 2), held

    losses = []
    for _ in range(n):
        (value, held), grads = iso.value_and_grad(loss, has_aux=True)(net.v, net.state)
        updates, state = optimizer.update(grads, state, net.v)
        net.v, net.state = iso.apply_updates(net.v, updates), held
        losses.append(float(value))
    return np.array(losses), state


@pytest.mark.parametrize("step", [1, 2, 3])
def test_training_goes_on_in_another_framework(backend, step, tmp_path):
    """All twelve ordered pairs: dropout, running statistics and Adam's moments move along."""
    target = BACKENDS[(BACKENDS.index(backend) + step) % 4]
    optimizer = iso.optimizers.adamw(0.05)
    alone = made("numpy")
    whole, _ = steps(alone, optimizer, optimizer.init(alone.v), 12)
    net = made(backend)
    begun, state = steps(net, optimizer, optimizer.init(net.v), 6)
    iso.save(tmp_path / "model", net, state, epoch=3)
    template = made(target, key=1)
    got, moments, named = iso.load(
        tmp_path / "model", template, optimizer.init(template.v), epoch=0
    )
    assert named == {"epoch": 3}
    assert type(got) is Net
    assert got.tied is got.first
    assert got.first.top_mod() is got
    assert {kind_of(x) for x in (got.first.w, got.norm.mean.value, got.ids)} == {target}
    np.testing.assert_array_equal(numpy_of(got.first.w), numpy_of(net.first.w))
    goes_on, _ = steps(got, optimizer, moments, 6)
    np.testing.assert_allclose(np.concatenate([begun, goes_on]), whole, rtol=1e-5)
    assert len(set(whole)) == 12


def test_frozen_or_not_the_file_is_the_same(backend, tmp_path):
    net = made(backend)
    net.freeze("first")
    iso.save(tmp_path / "model", net)
    template = made(backend, key=1)
    got = iso.load(tmp_path / "model", template)
    np.testing.assert_array_equal(numpy_of(got.v["first"]["w"]), numpy_of(net.first.w))
    assert "first" not in iso.load(tmp_path / "model", made(backend, key=1).freeze("first")).v
    plain = iso.load(tmp_path / "model")
    assert sorted(plain) == ["drop", "first", "ids", "last", "norm"]
    assert sorted(plain["norm"]) == ["b", "mean", "variance", "w"]


def test_a_checkpoint_of_another_model_names_every_path(backend, tmp_path):
    iso.save(tmp_path / "model", made(backend))

    class Wider(Net):
        def __init__(self, key):
            super().__init__(key)
            self.last[0] = iso.Linear(4, 3, key=key)
            self.extra = iso.Linear(1, 1, key=key)

    with iso.use_backend(backend):
        template = Wider(0)
    with pytest.raises(iso.CheckpointError) as raised:
        iso.load(tmp_path / "model", template)
    assert set(str(raised.value).split("\n  ")[1:]) == {
        "last/0/w: needed shape (3, 4), got (2, 4)", "last/0/b: needed shape (3,), got (2,)",
        "extra: missing",
    }  # fmt: skip
