"""Scientific models, written once for all four backends, as a user would.

A program takes the name of a backend, a dtype and whether to compile, and returns its final
numbers. Nothing in it asks which backend it runs on.
"""

import numpy as np
from learning_programs import numbers

import isomorph as iso


def compiler(compiled):
    return iso.jit if compiled else lambda func: func


# ---- physics-informed network: the heat equation u_t = u_xx --------------------------------------

INSIDE = np.random.default_rng(4).uniform(0, 1, (6, 2))  # positions and times
AT_START = np.linspace(0, 1, 5)


class Heat(iso.Module):
    def __init__(self):
        self.first, self.second = iso.Linear(2, 5), iso.Linear(5, 5)
        self.head = iso.Linear(5, 1)

    def forward(self, point):
        xp = iso.namespace(point)
        return self.head(xp.tanh(self.second(xp.tanh(self.first(point)))))[0]


def residual(model, point):
    du = iso.grad(model)(point)
    return du[1] - iso.hessian(model)(point)[0, 0]


def heat_loss(model, inside, start):
    xp = iso.namespace(inside)
    inner = iso.vmap(lambda point: residual(model, point))(inside)
    places = xp.stack([start, xp.zeros_like(start)], axis=-1)
    outer = iso.vmap(model)(places) - xp.sin(xp.pi * start)
    return xp.mean(inner**2) + xp.mean(outer**2)


def physics_network(backend, dtype, compiled):
    with iso.use_backend(backend, dtype=dtype), iso.use_key(4):
        model = Heat()
    points = iso.convert((INSIDE.astype(dtype), AT_START.astype(dtype)), backend)
    step = iso.train_step(heat_loss, iso.optimizers.adam(1e-2), compiled=compiled)
    state, losses = step.init(model), []
    for _ in range(3):
        state, loss = step(state, *points)
        losses.append(loss)
    final = heat_loss(state.model, *points)
    return {"losses": losses, "final": final, "v": state.model.v}


# ---- ordinary differential equation: Runge-Kutta in loops, parameters by gradient descent --------

TRUE = {"rate": 0.3, "spring": 1.7}
SAMPLES, INNER, STEP = 5, 4, 0.1


def slope(p, y):
    """A damped spring: y is position and velocity."""
    xp = iso.namespace(y)
    return xp.stack([y[1], -p["spring"] * y[0] - p["rate"] * y[1]])


def runge_kutta(f, y, h):
    a = f(y)
    b = f(y + h / 2 * a)
    c = f(y + h / 2 * b)
    d = f(y + h * c)
    return y + h / 6 * (a + 2 * b + 2 * c + d)


def trajectory(p, start):
    """Position and velocity at each sample, `INNER` steps apart."""
    f = lambda y: slope(p, y)

    def sample(y, _):
        y = iso.fori_loop(0, INNER, lambda i, y: runge_kutta(f, y, STEP), y)
        return y, y

    return iso.scan(sample, start, length=SAMPLES)[1]


def ode_loss(p, start, seen):
    return iso.mse(trajectory(p, start)[:, 0], seen)


def ode_seen():
    """The exact solution of the spring, at the samples."""
    rate, spring = TRUE["rate"], TRUE["spring"]
    t = STEP * INNER * np.arange(1, SAMPLES + 1)
    w = np.sqrt(spring - rate**2 / 4)
    return np.exp(-rate / 2 * t) * (np.cos(w * t) + rate / 2 / w * np.sin(w * t))


def ode_fit(backend, dtype, compiled):
    with iso.use_backend(backend, dtype=dtype):
        p = {"rate": iso.asarray(0.1), "spring": iso.asarray(1.2)}
        start = iso.asarray([1.0, 0.0])
    seen = iso.convert(ode_seen().astype(dtype), backend)
    jit = compiler(compiled)
    step = jit(iso.value_and_grad(ode_loss))
    first = jit(trajectory)(p, start)
    losses, grads = [], []
    for _ in range(4):
        loss, grad = step(p, start, seen)
        p = {name: p[name] - 0.3 * grad[name] for name in p}
        losses.append(loss)
        grads.append(grad)
    return {"trajectory": first, "losses": losses, "grads": grads, "p": p}


# ---- Gaussian process: marginal likelihood, hyperparameters by gradient descent, prediction ------

PLACES = np.linspace(-2, 2, 10)
HEIGHTS = np.sin(2 * PLACES) + 0.1 * numbers(6, 10)
NEW = np.array([-1.3, 0.2, 2.5])


def kernel(p, a, b):
    xp = iso.namespace(a)
    return xp.exp(p["size"] - 0.5 * (a[:, None] - b[None, :]) ** 2 * xp.exp(-2 * p["length"]))


def covariance(p, x):
    xp = iso.namespace(x)
    return kernel(p, x, x) + xp.exp(p["noise"]) * xp.eye(x.shape[0], dtype=x.dtype)


def solved(low, y):
    """The solution of low·lowᵀ·z = y."""
    xp = iso.namespace(low)
    return xp.linalg.solve(xp.matrix_transpose(low), xp.linalg.solve(low, y))


def negative_likelihood(p, x, y):
    xp = iso.namespace(x)
    low = xp.linalg.cholesky(covariance(p, x))
    fit = 0.5 * xp.vecdot(y, solved(low, y))
    size = xp.sum(xp.log(xp.linalg.diagonal(low)))
    return fit + size + 0.5 * x.shape[0] * float(np.log(2 * np.pi))


def predicted(p, x, y, new):
    """Mean and variance at new points."""
    xp = iso.namespace(x)
    low = xp.linalg.cholesky(covariance(p, x))
    across = kernel(p, x, new)
    mean = xp.matmul(xp.matrix_transpose(across), solved(low, y))
    variance = xp.exp(p["size"]) - xp.sum(xp.linalg.solve(low, across) ** 2, axis=0)
    return mean, variance


def gaussian_process(backend, dtype, compiled):
    with iso.use_backend(backend, dtype=dtype):
        p = {"size": iso.asarray(0.0), "length": iso.asarray(-0.5), "noise": iso.asarray(-2.0)}
    x, y, new = iso.convert(tuple(a.astype(dtype) for a in (PLACES, HEIGHTS, NEW)), backend)
    jit = compiler(compiled)
    step = jit(iso.value_and_grad(negative_likelihood))
    steps = []
    for _ in range(3):
        value, grad = step(p, x, y)
        steps.append({"value": value, "grad": grad, "p": p})
        p = {name: p[name] - 0.05 * grad[name] for name in p}
    mean, variance = jit(predicted)(p, x, y, new)
    return {"steps": steps, "p": p, "mean": mean, "variance": variance}


# ---- MAML: gradients through a step of gradient descent ------------------------------------------

TASKS = numbers(7, 3, 8, 2)  # three tasks of eight points; the last four are for testing
SLOPES = numbers(8, 3, 2)


def adapted(loss, v, x, y, rate):
    grads = iso.grad(loss)(v, x, y)
    return {name: v[name] - rate * grads[name] for name in v}


def meta_loss(loss, v, x, y, rate=0.1):
    """The mean over tasks of the loss after one step on the first half of each task."""

    def one(x, y):
        return loss(adapted(loss, v, x[:4], y[:4], rate), x[4:], y[4:])

    return iso.namespace(x).mean(iso.vmap(one)(x, y))


def small_network_loss(v, x, y):
    xp = iso.namespace(x)
    hidden = xp.tanh(xp.matmul(x, v["w"]) + v["b"])
    return iso.mse(xp.matmul(hidden, v["out"]), y)


def line_loss(v, x, y):
    return iso.mse(iso.namespace(x).matmul(x, v["w"]), y)


def maml(backend, dtype, compiled):
    start = {"w": numbers(9, 2, 4) * 0.5, "b": np.zeros(4), "out": numbers(10, 4) * 0.5}
    y = np.einsum("tni,ti->tn", TASKS, SLOPES)
    given = iso.convert({k: a.astype(dtype) for k, a in start.items()}, backend)
    x, y = iso.convert((TASKS.astype(dtype), y.astype(dtype)), backend)
    jit = compiler(compiled)
    step = jit(iso.value_and_grad(lambda v, x, y: meta_loss(small_network_loss, v, x, y)))
    v, losses = given, []
    for _ in range(3):
        loss, grads = step(v, x, y)
        v = {name: v[name] - 0.1 * grads[name] for name in v}
        losses.append(loss)
    line = {"w": given["out"][:2]}
    of_line = jit(iso.value_and_grad(lambda v, x, y: meta_loss(line_loss, v, x, y)))(line, x, y)
    return {"losses": losses, "v": v, "grads": grads, "line": of_line}


# ---- mixture of two normal distributions: Newton's method, standard errors by the Hessian --------

DRAWN = np.concatenate([numbers(11, 30) * 0.7 - 1.5, numbers(12, 20) * 0.5 + 1.0])
GUESS = np.array([0.3, -1.4, 1.1, -0.3, -0.6])  # logit of the weight, two means, two log widths


def mixture_loss(theta, x):
    """The negative log-likelihood."""
    xp = iso.namespace(theta)
    weights = xp.stack([-iso.softplus(-theta[0]), -iso.softplus(theta[0])])
    means, widths = theta[1:3], theta[3:5]
    z = (x[:, None] - means) * xp.exp(-widths)
    each = weights - widths - 0.5 * z**2 - 0.5 * float(np.log(2 * np.pi))
    return -xp.sum(iso.logsumexp(each, axis=-1))


def newton(theta, x):
    xp = iso.namespace(theta)
    value, grad = iso.value_and_grad(mixture_loss)(theta, x)
    return theta - xp.linalg.solve(iso.hessian(mixture_loss)(theta, x), grad), value


def standard_errors(theta, x):
    xp = iso.namespace(theta)
    return xp.sqrt(xp.linalg.diagonal(xp.linalg.inv(iso.hessian(mixture_loss)(theta, x))))


def mixture(backend, dtype, compiled):
    theta, x = iso.convert((GUESS.astype(dtype), DRAWN.astype(dtype)), backend)
    jit = compiler(compiled)
    step, values = jit(newton), []
    for _ in range(6):
        theta, value = step(theta, x)
        values.append(value)
    return {"values": values, "theta": theta, "errors": jit(standard_errors)(theta, x)}
