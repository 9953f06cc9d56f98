"""A damped oscillator, fitted through its differential equation: x″ = −stiffness·x − damping·x′.

The equation is solved by Runge-Kutta steps in `iso.scan`, and the Jacobian of the whole solution
goes into Gauss-Newton steps. Four numbers come out with their errors: stiffness, damping, and where
and how fast the motion began.

What it stands for: geomstats has such steps as loops in Python (`geomstats.integrator.integrate`,
`rk4_step`) for its geodesics, and takes derivatives through them by one module per framework
(`geomstats/_backend/{autograd,pytorch}/autodiff.py`); on its NumPy backend there are none.
"""

from __future__ import annotations

from pictures import GREY, Plot
from running import main, numbers

import isomorph as iso

NAMES = ("stiffness", "damping", "position", "velocity")
TRUE, GUESS = (4.0, 0.3, 1.0, 0.0), (3.4, 0.1, 0.8, 0.2)
NOISE = 0.05


def slope(theta, state):
    """The derivative of position and velocity in time."""
    xp = iso.namespace(state)
    return xp.stack([state[1], -theta[0] * state[0] - theta[1] * state[1]])


def runge_kutta(theta, state, h):
    """One step of the classical method of fourth order."""
    a = slope(theta, state)
    b = slope(theta, state + h / 2 * a)
    c = slope(theta, state + h / 2 * b)
    d = slope(theta, state + h * c)
    return state + h / 6 * (a + 2 * b + 2 * c + d)


def positions(theta, count, h):
    """The positions at the times 0, h, … (count − 1)·h."""

    def step(state, _):
        return runge_kutta(theta, state, h), state[0]

    return iso.scan(step, theta[2:], length=count)[1]


def gauss_newton(theta, seen, h):
    """One step towards the least squares, and the errors of the parameters."""
    xp = iso.namespace(theta)
    misses = lambda theta: (positions(theta, seen.shape[0], h) - seen) / NOISE
    miss, jacobian = misses(theta), iso.jacfwd(misses)(theta)
    across = xp.matrix_transpose(jacobian)
    covariance = xp.linalg.inv(xp.matmul(across, jacobian))
    after = theta - xp.matmul(covariance, xp.matmul(across, miss))
    return after, xp.sqrt(xp.linalg.diagonal(covariance)), xp.sum(miss**2)


def run(backend, quick=False, compiled=True):
    count, h, rounds = (30, 0.25, 6) if quick else (200, 0.05, 8)
    with iso.use_backend(backend, dtype="float64"):
        noise = iso.random.normal(iso.random.key(1), count)
        seen = positions(iso.asarray(TRUE), count, h) + NOISE * noise
        theta = iso.asarray(GUESS)
    step = iso.jit(gauss_newton, static="h") if compiled else gauss_newton
    squares = []
    for _ in range(rounds):
        theta, errors, square = step(theta, seen, h=h)
        squares.append(numbers(square))
    theta, errors = numbers(theta), numbers(errors)
    first, fitted = (
        positions(iso.convert(iso.asarray(p, dtype="float64"), backend), count, h)
        for p in (GUESS, theta)
    )
    found = dict(zip(NAMES, map(float, theta))) | {"squares": squares[-1]}
    curves = numbers({"seen": seen, "first": first, "fitted": fitted})
    return {"found": found, "theta": theta, "errors": errors, "squares": squares, "h": h, **curves}


def picture(result):
    times = result["h"] * numbers(iso.arange(len(result["seen"])))
    plot = Plot("A damped oscillator", (0, float(times[-1])), (-1.2, 1.2), "time", "position")
    plot.points(times, result["seen"], GREY, "data", 2)
    plot.line(times, result["first"], "#d1570a", "first guess", "5 4", 1.5)
    plot.line(times, result["fitted"], name="fitted")
    return plot.svg()


if __name__ == "__main__":
    main(__doc__, run, picture, "oscillator.svg")
