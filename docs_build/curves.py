"""Draws docs/assets/curves.svg: the loss of one model, trained on every backend from the same key.

`python -m docs_build.curves` needs all four frameworks and takes a minute; `make docs` does not run
it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import isomorph as iso

PICTURE = Path(__file__).parents[1] / "docs" / "assets" / "curves.svg"
WIDTH, HEIGHT, LEFT, TOP, BASE, RIGHT = 720, 250, 56, 34, 214, 20
# The first is drawn widest and the last narrowest: of curves that lie on each other all are seen.
LINES = {
    "numpy": ("#9db8e8", 14),
    "jax": ("#f2b36b", 9),
    "tensorflow": ("#2c8a57", 5),
    "torch": ("#5b1f8a", 1.5),
}


def losses(backend: Any, steps: int = 120) -> list[float]:
    """A network of two layers learns a spiral of two arms, in float32."""
    with iso.use_backend(backend), iso.use_key(0):
        net = iso.Sequential(iso.Linear(2, 64), iso.Activation("gelu"), iso.Linear(64, 2))
    turn, arm = np.arange(256) / 40, np.arange(256) % 2
    points = (turn * np.array([np.cos(turn + np.pi * arm), np.sin(turn + np.pi * arm)])).T
    data = iso.convert((points.astype(np.float32), arm.astype(np.int32)), backend)
    loss = lambda net, x, labels: iso.cross_entropy(net(x), labels)
    done = iso.fit(
        net, data, loss, iso.optimizers.adam(2e-2), epochs=steps, steps=steps, batch_size=64,
        compiled=False, progress=False,
    )  # fmt: skip
    return [float(value) for value in done.losses]


def drawn(curves: dict[str, list[float]]) -> str:
    top = max(max(curve) for curve in curves.values())
    count = max(len(curve) for curve in curves.values())
    apart = max(
        abs(a - b) for curve in curves.values() for a, b in zip(curve, curves["numpy"], strict=True)
    )
    across = lambda i: round(LEFT + i / (count - 1) * (WIDTH - LEFT - RIGHT), 1)
    up = lambda y: round(BASE - y / top * (BASE - TOP), 1)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'font-family="sans-serif" font-size="13">',
        f"<title>Loss over {count} steps on {', '.join(curves)}; at most {apart:.1e} apart</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="6" fill="#fbfbfd"/>',
        f'<path d="M{LEFT} {TOP}V{BASE}H{WIDTH - RIGHT}" stroke="#8a8a96" fill="none"/>',
    ]
    for value in (0, round(top / 2, 1), round(top, 1)):
        out.append(
            f'<text x="{LEFT - 8}" y="{up(value) + 4}" text-anchor="end" fill="#33333d">{value:g}</text>'
        )
    out.append(
        f'<text x="{WIDTH - RIGHT}" y="{BASE + 22}" text-anchor="end" fill="#33333d">'
        f"loss of a batch over {count} steps, float32; the curves are at most {apart:.0e} apart</text>"
    )
    for i, (name, curve) in enumerate(curves.items()):
        ink, wide = LINES[name]
        points = " ".join(f"{across(k)},{up(y)}" for k, y in enumerate(curve))
        out.append(
            f'<polyline points="{points}" fill="none" stroke="{ink}" stroke-width="{wide}" '
            'stroke-linejoin="round" stroke-linecap="round"/>'
        )
        x = LEFT + 150 * i + 60
        out.append(
            f'<path d="M{x} 20h34" stroke="{ink}" stroke-width="{wide}"/>'
            f'<text x="{x + 42}" y="24" fill="#33333d">{name}</text>'
        )
    return "\n".join([*out, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(drawn({name: losses(name) for name in LINES}), "utf-8")
