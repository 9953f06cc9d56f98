"""`iso.vmap` on NumPy beside the same program batched by hand on the same tape, and beside the vmap
of JAX and torch, for information.

By hand, per-example gradients are those of a sum over examples that each have parameters of their
own: stacked matrices, or, for a convolution, groups of channels.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

import isomorph as iso
from isomorph.core import tree

from .tables import Table
from .timing import within

BUDGET = 1.5
POINTS, WIDTH = 33, 32
EXAMPLES, FEATURES, HIDDEN, CLASSES = 64, 32, 64, 10
IMAGES, SIDE, CHANNELS, FILTERS = 16, 12, 3, 8


class Program(NamedTuple):
    mapped: Callable[..., Any]  # by vmap
    by_hand: Callable[..., Any]
    args: tuple


def run(seconds: float = 2.0) -> Table:
    rows = []
    peers = [name for name in ("jax", "torch") if find_spec(name) is not None]
    for name, program in programs().items():
        ours, hand = _results(program.mapped(*program.args)), program.by_hand(*program.args)
        for a, b in zip(ours, _results(hand), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)
        calls = {
            "ours": lambda p=program: p.mapped(*p.args),
            "by hand": lambda p=program: p.by_hand(*p.args),
        }
        found = within(calls, seconds)
        found |= within({peer: _theirs(program, peer) for peer in peers}, seconds / 2)
        ratio = found["ours"] / found["by hand"]
        rows.append([
            name, f"{1e6 * found['ours']:.0f}", f"{1e6 * found['by hand']:.0f}", f"{ratio:.2f}x",
            f"{BUDGET}x", "yes" if ratio <= BUDGET else "NO",
            *(f"{1e6 * found[peer]:.0f}" if peer in found else "" for peer in ("jax", "torch")),
        ])  # fmt: skip
    head = ["program, float32", "vmap µs", "by hand µs", "ratio", "budget", "met"]
    return Table([*head, "JAX compiled µs", "torch µs"], rows)


def _results(nest: Any) -> list[Any]:
    return tree.flatten(nest)[0]


def _theirs(program: Program, backend: Any) -> Callable[[], Any]:
    """The same program by the vmap of another framework; compiled for JAX."""
    args = iso.convert(program.args, backend)
    func = iso.jit(program.mapped) if backend == "jax" else program.mapped

    def call() -> Any:
        for y in _results(func(*args)):
            if hasattr(y, "block_until_ready"):
                y.block_until_ready()

    return call


def programs() -> dict[str, Program]:
    rng = np.random.default_rng(0)
    array = lambda *shape: (rng.standard_normal(shape) / 2).astype(np.float32)
    sizes = [(1, WIDTH), (WIDTH, WIDTH), (WIDTH, WIDTH), (WIDTH, 1)]
    net = [(array(*size), array(size[1])) for size in sizes]
    points = np.linspace(0.0, 1.0, POINTS, dtype=np.float32)[:, None]
    mlp = [(array(FEATURES, HIDDEN), array(HIDDEN)), (array(HIDDEN, CLASSES), array(CLASSES))]
    labels = np.arange(EXAMPLES) % CLASSES
    filters = [
        (array(3, 3, CHANNELS, FILTERS), array(FILTERS)),
        (array(3, 3, FILTERS, FILTERS), array(FILTERS)),
    ]
    last = array((SIDE // 4) ** 2 * FILTERS, CLASSES)
    images = array(IMAGES, SIDE, SIDE, CHANNELS)
    return {
        f"physics-informed network, {POINTS} points, by {name}": Program(
            iso.value_and_grad(_loss(way)), iso.value_and_grad(_loss_by_hand(name)), (net, points)
        )
        for name, way in SECOND.items()
    } | {
        f"gradients of {EXAMPLES} examples, MLP": Program(
            iso.vmap(iso.grad(classified), in_axes=(None, 0, 0)),
            _per_example(classified_by_hand), (mlp, array(EXAMPLES, FEATURES), labels),
        ),
        f"gradients of {IMAGES} images, convolutions": Program(
            iso.vmap(iso.grad(seen), in_axes=(None, 0, 0)),
            _per_example(seen_by_hand), ({"conv": filters, "last": last}, images, labels[:IMAGES]),
        ),
        f"Hessians of {EXAMPLES} examples in the inputs, MLP": Program(
            iso.vmap(iso.hessian(total), in_axes=(0, None)), _hessians_by_hand,
            (array(EXAMPLES, 4), [(array(4, HIDDEN), array(HIDDEN)), *mlp[1:]]),
        ),
    }  # fmt: skip


def network(p: Any, x: Any) -> Any:
    xp = iso.namespace(x)
    for w, b in p[:-1]:
        x = xp.tanh(x @ w + b)
    w, b = p[-1]
    return (x @ w + b)[..., 0]


# The second derivative of the network of one point, in three ways.
SECOND: dict[str, Callable[[Any, Any], Any]] = {
    "nested gradients": lambda p, x: iso.grad(
        lambda x: iso.grad(lambda x: network(p, x))(x)[0]
    )(x)[0],
    "hessian": lambda p, x: iso.hessian(lambda x: network(p, x))(x)[0, 0],
    "hvp": lambda p, x: iso.hvp(
        lambda x: network(p, x), (x,), (iso.namespace(x).ones_like(x),)
    )[0][0],
}  # fmt: skip


def _loss(second: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def loss(p: Any, points: Any) -> Any:
        xp = iso.namespace(points)
        bent = iso.vmap(second, in_axes=(None, 0))(p, points)
        return xp.mean((bent + xp.sin(points[:, 0])) ** 2)

    return loss


def _loss_by_hand(name: str) -> Callable[[Any, Any], Any]:
    """The same for all points at once: points do not depend on each other, so the derivative of a
    sum over points has the derivative of each.
    """

    def loss(p: Any, points: Any) -> Any:
        sums = lambda x: np.sum(network(p, x))
        if name == "hvp":
            bent = iso.hvp(sums, (points,), (np.ones_like(points),))[0][:, 0]
        else:
            slope = iso.grad(sums)
            bent = iso.grad(lambda x: np.sum(slope(x)))(points)[:, 0]
        return np.mean((bent + np.sin(points[:, 0])) ** 2)

    return loss


def classified(p: Any, x: Any, label: Any) -> Any:
    xp = iso.namespace(x)
    (w, b), (v, c) = p
    scores = xp.tanh(x @ w + b) @ v + c
    return _cross_entropy(xp, scores, label)


def _cross_entropy(xp: Any, scores: Any, label: Any) -> Any:
    top = xp.max(scores, axis=-1, keepdims=True)
    total = xp.log(xp.sum(xp.exp(scores - top), axis=-1)) + top[..., 0]
    at = xp.astype(xp.arange(scores.shape[-1]) == label[..., None], scores.dtype)
    return total - xp.sum(scores * at, axis=-1)


def classified_by_hand(p: Any, x: Any, labels: Any) -> Any:
    """The losses of all examples, each with parameters of its own."""
    (w, b), (v, c) = p
    scores = np.matmul(np.tanh(np.matmul(x[:, None], w) + b[:, None]), v)[:, 0] + c
    return np.sum(_cross_entropy(np, scores, labels))


def _per_example(losses: Callable[..., Any]) -> Callable[..., Any]:
    """The gradients of a sum over examples in parameters that are repeated for each."""

    def gradients(p: Any, x: Any, labels: Any) -> Any:
        each = tree.map(lambda a: np.broadcast_to(a, (len(x), *a.shape)).copy(), p)
        return iso.grad(losses)(each, x, labels)

    return gradients


def seen(p: Any, image: Any, label: Any) -> Any:
    xp = iso.namespace(image)
    x = image[None]
    for w, b in p["conv"]:
        x = iso.avg_pool(xp.tanh(iso.conv2d(x, w, 1, "SAME") + b), 2, 2, "VALID")
    return _cross_entropy(xp, xp.reshape(x, (-1,)) @ p["last"], label)


def seen_by_hand(p: Any, images: Any, labels: Any) -> Any:
    n = len(images)
    x = np.moveaxis(images, 0, 2)
    for w, b in p["conv"]:
        side, _, _, channels = x.shape
        x = np.reshape(x, (1, side, side, n * channels))
        w = np.reshape(np.moveaxis(w, 0, -2), (*w.shape[1:4], n * w.shape[4]))
        y = np.tanh(
            iso.conv_general_dilated(x, w, 1, "SAME", feature_group_count=n) + np.reshape(b, -1)
        )
        y = iso.avg_pool(y, 2, 2, "VALID")
        x = np.reshape(y, (side // 2, side // 2, n, -1))
    rows = np.reshape(np.moveaxis(x, 2, 0), (n, 1, -1))
    return np.sum(_cross_entropy(np, np.matmul(rows, p["last"])[:, 0], labels))


def total(x: Any, p: Any) -> Any:
    xp = iso.namespace(x)
    (w, b), (v, c) = p
    return xp.sum(xp.tanh(x @ w + b) @ v + c)


def _hessians_by_hand(x: Any, p: Any) -> Any:
    slope = iso.grad(lambda x: total(x, p))
    rows = [iso.grad(lambda x, i=i: np.sum(slope(x)[:, i]))(x) for i in range(x.shape[1])]
    return np.stack(rows, 1)


if __name__ == "__main__":
    print(run().markdown)
