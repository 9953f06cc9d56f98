"""A convolutional network and a transformer, written once and trained from the same key on every
backend that is installed. One learns handwritten digits, the other the text of the licence.

Each is trained in float32 and in float64. A table shows how far the loss curves of the backends are
from NumPy's, and a plot shows all curves together.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("JAX_ENABLE_X64", "1")  # the demo also trains in float64
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("ONEDNN_JIT_PROFILE", "0")

import numpy as np

import isomorph as iso
from isomorph.training.reporting import plot_logs

HERE = Path(__file__).resolve().parent


class Digits(iso.Module):
    """Two convolutions, each followed by pooling, and one linear layer to the ten classes."""

    def __init__(self):
        self.first = iso.Conv2D(1, 16, 3, 1, "SAME")
        self.second = iso.Conv2D(16, 32, 3, 1, "SAME")
        self.pool = iso.MaxPool(2, 2, "VALID")
        self.dropout = iso.Dropout(0.1)
        self.head = iso.Linear(32 * 2 * 2, 10)

    def forward(self, images):
        x = self.pool(iso.relu(self.first(images)))
        x = self.pool(iso.relu(self.second(x)))
        return self.head(self.dropout(iso.namespace(x).reshape(x, (x.shape[0], -1))))


class Block(iso.Module):
    def __init__(self, width, heads):
        self.norm1, self.norm2 = iso.LayerNorm(width), iso.LayerNorm(width)
        self.attention = iso.MultiHeadAttention(width, heads)
        self.widen, self.narrow = iso.Linear(width, 4 * width), iso.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x), is_causal=True)
        return x + self.narrow(iso.gelu(self.widen(self.norm2(x))))


class Letters(iso.Module):
    """A small language model that predicts the next letter."""

    def __init__(self, letters, length, width=64, heads=4, blocks=2):
        self.letters, self.places = iso.Embedding(letters, width), iso.Embedding(length, width)
        self.blocks = [Block(width, heads) for _ in range(blocks)]
        self.norm, self.head = iso.LayerNorm(width), iso.Linear(width, letters)

    def forward(self, text):
        xp = iso.namespace(text)
        x = self.letters(text) + self.places(xp.arange(text.shape[1], dtype=text.dtype))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def loss(model, x, labels):
    return iso.cross_entropy(model(x), labels)


def digits():
    """1,797 pictures of 8 x 8; the last 297 are for validation."""
    from sklearn.datasets import load_digits

    found = load_digits()
    images, labels = found.images[..., None] / 16, found.target.astype(np.int32)
    return (images[:1500], labels[:1500]), (images[1500:], labels[1500:])


def letters(length=32):
    """The licence in pieces of 32 letters, each with the letters that follow; every eighth piece is
    for validation.
    """
    text = (HERE.parent / "LICENSE").read_text("utf-8")
    known = sorted(set(text))
    numbers = np.array([known.index(letter) for letter in text], np.int32)
    starts = np.arange(0, len(numbers) - length - 1, length // 2)
    pieces = np.stack([numbers[i : i + length + 1] for i in starts])
    held = np.arange(len(pieces)) % 8 == 7
    halves = [(p[:, :-1], p[:, 1:]) for p in (pieces[~held], pieces[held])]
    return len(known), halves[0], halves[1]


def tasks():
    """Name, function that makes the model, training and validation data, epochs, batch size."""
    count, some, others = letters()
    return [
        ("digits", Digits, *digits(), 8, 50),
        ("letters", lambda: Letters(count, 32), some, others, 5, 16),
    ]


def train(task, backend, dtype, folder, progress, compiled="auto"):
    """Train a model; return the result, its seconds, and the log."""
    name, make, data, held, epochs, size = task
    log = folder / f"{name}-{backend}-{dtype}.jsonl"
    with iso.use_backend(backend, dtype=dtype), iso.use_key(0):
        model = make()
    data, held = (moved(part, backend, dtype) for part in (data, held))
    began = time.monotonic()
    done = iso.fit(
        model, data, loss, iso.optimizers.adamw(2e-3), epochs, batch_size=size, drop_last=True,
        validation=held, metrics={"accuracy": iso.metrics.accuracy}, log=log, name=backend,
        progress=progress, compiled=compiled,
    )  # fmt: skip
    return done, time.monotonic() - began, log


def moved(arrays, backend, dtype):
    cast = lambda x: x.astype(dtype) if x.dtype.kind == "f" else x
    return tuple(iso.convert(cast(x), backend) for x in arrays)


def apart(losses, reference, steps=None):
    """The largest difference between two loss curves."""
    pairs = list(zip(losses, reference))[:steps]
    return max(abs(a - b) for a, b in pairs)


def show(task, backends, folder, progress):
    """Train on every backend and print the table. Return the path of the plot, and a message for
    every difference over its limit.
    """
    name = task[0]
    rows, logs, wrong = [], [], []
    wide = narrow = None
    for backend in backends:
        print(f"\n{name} on {backend}", file=sys.stderr)
        done, seconds, log = train(task, backend, "float32", folder, progress)
        exact = train(task, backend, "float64", folder, False)[0]
        wide, narrow = wide or exact, narrow or done
        logs.append(log)
        accuracy = done.history[-1]["validation"]["accuracy"]
        differences = (
            apart(done.losses, narrow.losses, 100), apart(done.losses, narrow.losses),
            apart(exact.losses, wide.losses),
        )  # fmt: skip
        off = accuracy - narrow.history[-1]["validation"]["accuracy"]
        for value, limit, what in (
            (differences[0], 1e-3, "losses of 100 steps in float32"),
            (differences[2], 1e-8, "losses in float64"), (abs(off), 0.005, "accuracy"),
        ):  # fmt: skip
            if value > limit:
                wrong.append(f"{name} on {backend}: {what} differ by {value:.1e}, over {limit:g}")
        rows.append([
            backend, f"{done.losses[-1]:.4f}", f"{100 * accuracy:.1f} %",
            *(f"{d:.1e}" for d in differences), f"{seconds:.1f}",
        ])  # fmt: skip
    head = [
        name, "final loss", "accuracy", "100 steps float32", "all float32", "all float64",
        "seconds",
    ]  # fmt: skip
    print(f"\n{table(head, rows)}")
    return plot_logs(logs, folder / f"{name}.svg"), wrong


def table(head, rows):
    widths = [max(len(line[i]) for line in [head, *rows]) for i in range(len(head))]
    cells = lambda line: "  ".join(
        c.ljust(w) if not i else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths))
    )
    return "\n".join([cells(head), cells(["-" * w for w in widths]), *map(cells, rows)])


def main():
    known = iso.backends()
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("backends", nargs="*", help="backends to train on (default: all installed)")
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for the pictures")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    given = parser.parse_args()
    names = [b for b in given.backends if b != "all"] or [b for b in known if known[b].installed]
    for name in names:
        if name not in known:
            parser.error(f"needed backends out of {', '.join(known)}, got {name}")
        if not known[name].installed:
            parser.error(f"{name} is not installed: make demo BACKENDS=all installs all four")
    names = ["numpy", *(name for name in names if name != "numpy")]
    began = time.monotonic()
    given.out.mkdir(parents=True, exist_ok=True)
    pictures, wrong = [], []
    for task in tasks():
        picture, failed = show(task, names, given.out, not given.quiet)
        pictures.append(picture)
        wrong += failed
    print("\nDifferences are the largest between a loss and NumPy's. Plots of the loss curves:")
    for picture in pictures:
        print(f"  {picture}")
    absent = [name for name in known if name not in names]
    if absent:
        print(f"Without {', '.join(absent)}: make demo BACKENDS=all installs and shows all four.")
    print(f"{time.monotonic() - began:.0f} s")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
