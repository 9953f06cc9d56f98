"""The problem that every engine solves, alone and together: tokens through an embedding, a
convolution, attention and a layer norm. Imported by the processes that tests start.
"""

import numpy as np

import isomorph as iso
from isomorph.core import tree

WORDS, LENGTH, WIDTH, CLASSES, IGNORED = 11, 6, 8, 3, -1


class Net(iso.Module):
    def __init__(self):
        self.embedding = iso.Embedding(WORDS, WIDTH)
        self.conv = iso.Conv1D(WIDTH, WIDTH, 3)
        self.norm = iso.LayerNorm(WIDTH)
        self.attention = iso.MultiHeadAttention(WIDTH, 2)
        self.out = iso.Linear(WIDTH, CLASSES)

    def forward(self, tokens):
        x = self.conv(self.embedding(tokens))
        n = self.norm(x)
        return self.out(x + self.attention(n, n, n))


class Normed(iso.Module):
    """Running statistics and dropout: what is not the same on every engine."""

    def __init__(self, prob=0.5):
        self.embedding = iso.Embedding(WORDS, WIDTH)
        self.norm = iso.BatchNorm(WIDTH)
        self.dropout = iso.Dropout(prob)
        self.out = iso.Linear(WIDTH, CLASSES)

    def forward(self, tokens):
        return self.out(self.dropout(self.norm(self.embedding(tokens))))


def made(backend, kind=Net):
    with iso.use_backend(backend), iso.use_key(0):
        return kind()


def data(rows, seed=1):
    """Tokens and labels, of which about half are ignored, more of them in the later rows."""
    rng = np.random.default_rng(seed)
    tokens = rng.integers(0, WORDS, (rows, LENGTH)).astype(np.int32)
    labels = rng.integers(0, CLASSES, (rows, LENGTH)).astype(np.int32)
    drop = rng.random((rows, LENGTH)) < np.linspace(0.1, 0.9, rows)[:, None]
    return tokens, np.where(drop, IGNORED, labels).astype(np.int32)


def plain_loss(model, tokens, labels):
    """A scalar: every row has the same weight."""
    xp = iso.namespace(tokens)
    return iso.cross_entropy(model(tokens), xp.where(labels < 0, xp.zeros_like(labels), labels))


def counted_loss(model, tokens, labels):
    """A mean over the labels that are not ignored: rows have unequal weights."""
    return iso.cross_entropy(model(tokens), labels, ignore_index=IGNORED, reduction="counted")


LOSSES = {"plain": plain_loss, "counted": counted_loss}
OPTIMIZERS = {
    "sgd": lambda: iso.optimizers.sgd(0.1),
    "adamw": lambda: iso.optimizers.adamw(1e-2),
}


def flat(model):
    """All variables of a model by path, as NumPy arrays."""
    v = iso.to_numpy(model.v if isinstance(model, iso.Module) else model)
    return dict(zip(tree.paths(v), tree.flatten(v)[0]))


def stepped(backend, world, loss, optimizer, rows, steps, **options):
    """Losses and variables after some steps."""
    step = iso.train_step(LOSSES[loss], OPTIMIZERS[optimizer](), distribute=world, **options)
    state = step.init(made(backend))
    losses = []
    for number in range(steps):
        batch = iso.convert(data(rows, number), backend)
        state, value = step(state, *(batch if world is None else world.share(batch)))
        losses.append(float(iso.to_numpy(value)))
    return losses, flat(state.model)
