"""A damped oscillator, fitted through its differential equation: x″ = −stiffness·x − damping·x′.

The solution and its derivatives in the four unknowns (stiffness, damping, where and how fast the
motion began) are computed together by Runge-Kutta steps in one `iso.scan`: `iso.jac` of the
right-hand side says how the derivatives change. Gauss-Newton steps fit the unknowns to noisy data,
and give their errors.

What it stands for: geomstats has such steps as loops in Python (`geomstats.integrator.integrate`,
`rk4_step`) for its geodesics, and takes derivatives by one module per framework
(`geomstats/_backend/{autograd,pytorch}/autodiff.py`); with its NumPy backend there are none.
"""

from __future__ import annotations

from pictures import GREY, Plot
from running import main, numbers

import isomorph as iso

NAMES = ("stiffness", "damping", "position", "velocity")
TRUE, GUESS = (4.0, 0.3, 1.0, 0.0), (3.4, 0.1, 0.8, 0.2)
NOISE = 0.05


def slope(theta, state):
    """The derivative in time of position and velocity."""
    xp = iso.namespace(state)
    return xp.stack([state[1], -theta[0] * state[0] - theta[1] * state[1]])


def slopes(theta, rows):
    """The same for `rows` [5, 2]: the state, and its derivatives in each of the four unknowns."""
    xp = iso.namespace(rows)
    state, along = rows[0], rows[1:]
    by_theta, by_state = iso.jac(slope, (0, 1))(theta, state)  # [2, 4] and [2, 2]
    change = xp.matrix_transpose(by_theta) + xp.matmul(along, xp.matrix_transpose(by_state))
    return xp.concat([slope(theta, state)[None, :], change])


def runge_kutta(theta, rows, h):
    """One step of the classical method of fourth order."""
    a = slopes(theta, rows)
    b = slopes(theta, rows + h / 2 * a)
    c = slopes(theta, rows + h / 2 * b)
    d = slopes(theta, rows + h * c)
    return rows + h / 6 * (a + 2 * b + 2 * c + d)


def positions(theta, count, h):
    """Positions [count] at the times 0, h, 2·h …, and their derivatives [count, 4]."""
    xp = iso.namespace(theta)
    unknowns = xp.eye(4, dtype=theta.dtype)
    start = xp.concat([theta[None, 2:], unknowns[:, 2:]])  # it begins at the last two unknowns
    step = lambda rows, _: (runge_kutta(theta, rows, h), rows[:, 0])
    found = iso.scan(step, start, length=count)[1]
    return found[:, 0], found[:, 1:]


def gauss_newton(solve, theta, seen):
    """One step towards the least squares; the errors of the unknowns; the squares before it."""
    xp = iso.namespace(theta)
    found, jacobian = solve(theta)
    miss, jacobian = (found - seen) / NOISE, jacobian / NOISE
    across = xp.matrix_transpose(jacobian)
    covariance = xp.linalg.inv(xp.matmul(across, jacobian))
    after = theta - xp.matmul(covariance, xp.matmul(across, miss))
    return after, xp.sqrt(xp.linalg.diagonal(covariance)), xp.sum(miss**2)


def run(backend, quick=False, compiled=True):
    count, h, rounds = (20, 0.3, 7) if quick else (200, 0.05, 8)
    solve = lambda theta: positions(theta, count, h)
    solve = iso.jit(solve) if compiled else solve
    with iso.use_backend(backend, dtype="float64"):
        noise = iso.random.normal(iso.random.key(1), count)
        seen = solve(iso.asarray(TRUE))[0] + NOISE * noise
        theta = guess = iso.asarray(GUESS)
    squares = []
    for _ in range(rounds):
        theta, errors, square = gauss_newton(solve, theta, seen)
        squares.append(numbers(square))
    first, fitted = (solve(p)[0] for p in (guess, theta))
    theta = numbers(theta)
    found = dict(zip(NAMES, map(float, theta))) | {"squares": squares[-1]}
    kept = numbers({"errors": errors, "seen": seen, "first": first, "fitted": fitted})
    return {"found": found, "theta": theta, "squares": squares, "h": h, **kept}


def picture(result):
    times = result["h"] * numbers(iso.arange(len(result["seen"])))
    plot = Plot("A damped oscillator", (0, float(times[-1])), (-1.2, 1.2), "time", "position")
    plot.points(times, result["seen"], GREY, "data", 2)
    plot.line(times, result["first"], "#d1570a", "first guess", "5 4", 1.5)
    plot.line(times, result["fitted"], name="fitted")
    return plot.svg()


if __name__ == "__main__":
    main(__doc__, run, picture, "oscillator.svg")
