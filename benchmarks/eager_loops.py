"""Loops and transforms called eagerly: each backend over NumPy. Programs are kept from the first
call, so the second call is the one with a budget. Each backend has a process of its own.

Two programs: twelve Newton steps that fit a mixture of two normal distributions from three starts,
by `vmap` of `grad` and of `hessian`; and the gradient of an orbit, by `grad` of a `scan` of 100
steps of the fourth-order Runge-Kutta method. Both make new functions at every call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

import isomorph as iso

from .tables import Table
from .timing import each_backend

BACKENDS = ("numpy", "jax", "tensorflow", "torch")
BUDGETS = {"jax": 5.0, "tensorflow": 5.0}
NEWTON_STEPS, STARTS, POINTS, ORBIT_STEPS = 12, 3, 200, 100


def newton(backend: Any) -> Any:
    """The fitted parameters from each start: two means, two logarithms of scales, one logit."""
    rng = np.random.default_rng(0)
    drawn = np.concatenate([rng.normal(-2, 0.5, POINTS // 2), rng.normal(1, 1, POINTS // 2)])
    first = np.array([-1.8, 1.2, -0.5, 0.1, 0.0]) + 0.1 * rng.normal(size=(STARTS, 5))
    data, found = (iso.convert(x.astype(np.float32), backend) for x in (drawn, first))
    xp = iso.namespace(data)

    def loss(p: Any) -> Any:
        parts = [
            weight - p[2 + k] - 0.5 * ((data - p[k]) * xp.exp(-p[2 + k])) ** 2
            for k, weight in enumerate((-iso.softplus(-p[4]), -iso.softplus(p[4])))
        ]
        return -xp.mean(iso.logsumexp(xp.stack(parts), axis=0)) + 0.01 * xp.sum(p**2)

    for _ in range(NEWTON_STEPS):
        slopes, bends = iso.vmap(iso.grad(loss))(found), iso.vmap(iso.hessian(loss))(found)
        damped = bends + 0.3 * xp.eye(5, dtype=bends.dtype)
        found = found - xp.linalg.solve(damped, slopes[..., None])[..., 0]
    return found


def orbit(backend: Any) -> Any:
    """The gradient of the distance after 100 steps, with respect to the start and the mass."""
    start = iso.convert(np.array([1.0, 0.0, 0.0, 1.1], np.float32), backend)
    mass = iso.convert(np.array(1.0, np.float32), backend)
    xp = iso.namespace(start)

    def distance(start: Any, mass: Any) -> Any:
        def slope(y: Any) -> Any:
            away = y[:2] / xp.sum(y[:2] ** 2) ** 1.5
            return xp.concat([y[2:], -mass * away])

        def step(y: Any, _: Any) -> tuple[Any, Any]:
            one = slope(y)
            two = slope(y + 0.01 * one)
            three = slope(y + 0.01 * two)
            four = slope(y + 0.02 * three)
            y = y + (0.02 / 6) * (one + 2 * two + 2 * three + four)
            return y, y[:2]

        last, path = iso.scan(step, start, length=ORBIT_STEPS)
        return xp.sum(last[:2] ** 2) + xp.mean(path**2)

    return iso.grad(distance, argnums=(0, 1))(start, mass)


PROGRAMS: dict[str, Callable[[Any], Any]] = {"mixture, Newton": newton, "orbit, gradient": orbit}


def run() -> Table:
    found = {(name, title): times for name, title, *times in each_backend(__name__, BACKENDS)}
    rows = []
    for (name, title), (first, second) in found.items():
        base = float(found["numpy", title][1])
        ratio, budget = float(second) / base, BUDGETS.get(name)
        rows.append([
            f"{name} {title}", f"{1e3 * float(first):.0f}", f"{1e3 * float(second):.1f}",
            f"{ratio:.2f}x", f"{budget}x" if budget else "",
            "" if budget is None else "yes" if ratio <= budget else "NO",
        ])  # fmt: skip
    head = ["program", "first call ms", "second call ms", "over NumPy", "budget", "met"]
    return Table(head, rows)


def measured(name: str) -> None:
    """Print for each program the time of the first call, and the best of three later ones."""
    for title, program in PROGRAMS.items():
        times = []
        for _ in range(4):
            start = perf_counter()
            np.asarray(iso.convert(program(name), "numpy")[0])
            times.append(perf_counter() - start)
        print("\t".join([name, title, f"{times[0]:.5f}", f"{min(times[1:]):.5f}"]))


if __name__ == "__main__":
    measured(sys.argv[1])
