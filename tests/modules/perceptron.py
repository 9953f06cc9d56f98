"""The network of the training tests, and its losses and gradients by hand in NumPy."""

import numpy as np
from frameworks import jax

import isomorph as iso
from oracles import name_of

SIZES = ((3, 4), (4, 4), (4, 2))  # (in, out) of three layers
RATE = 0.2
DATA = np.random.default_rng(0)
X = DATA.uniform(-1, 1, (5, 3))
T = DATA.uniform(-1, 1, (5, 2))


def made(backend, build, *args, **kw):
    """Build a module on a backend."""
    with iso.use_backend(backend):
        return build(*args, **kw)


def array(backend, x):
    with iso.use_backend(backend):
        return iso.namespace().asarray(np.asarray(x))


def forward(layers, x):
    """Three layers, tanh after the first two."""
    xp = iso.namespace(x)
    first, second, third = layers
    return third(xp.tanh(second(xp.tanh(first(x)))))


class Plain(iso.Module):
    def __init__(self, v=None, with_partial_v=False):
        self._linear0 = iso.Linear(*SIZES[0], key=0)
        self._linear1 = iso.Linear(*SIZES[1], key=1)
        self._linear2 = iso.Linear(*SIZES[2], key=2)
        super().__init__(v=v, with_partial_v=with_partial_v)

    def forward(self, x):
        return forward((self._linear0, self._linear1, self._linear2), x)


class Listed(iso.Module):
    def __init__(self):
        self._layers = [iso.Linear(*size, key=i) for i, size in enumerate(SIZES)]

    def forward(self, x):
        return forward(self._layers, x)


class Keyed(iso.Module):
    def __init__(self):
        self._layers = {f"layer{i}": iso.Linear(*size, key=i) for i, size in enumerate(SIZES)}

    def forward(self, x):
        return forward(self._layers.values(), x)


def start(dtype=np.float32):
    """The weights that keys 0, 1, 2 give with Glorot's formula, from jax.random."""
    found = []
    for i, (inside, out) in enumerate(SIZES):
        edge = np.sqrt(6 / (inside + out))
        key = jax.random.split(jax.random.PRNGKey(i))[0]
        w = jax.random.uniform(key, (out, inside), np.float32, -edge, edge)
        found.append({"w": np.asarray(w, dtype), "b": np.zeros(out, dtype)})
    return found


def by_hand(layers):
    """The mean squared error and its gradients, by the chain rule."""
    (w0, b0), (w1, b1), (w2, b2) = ((p["w"], p["b"]) for p in layers)
    a = np.tanh(X @ w0.T + b0)
    c = np.tanh(a @ w1.T + b1)
    error = c @ w2.T + b2 - T
    dy = 2 * error / error.size
    dc = (dy @ w2) * (1 - c**2)
    da = (dc @ w1) * (1 - a**2)
    pairs = ((da, X), (dc, a), (dy, c))
    return np.mean(error**2), [{"w": d.T @ x, "b": d.sum(0)} for d, x in pairs]


def trained_by_hand(steps):
    """The losses of gradient descent in float64, and the gradients of the first step."""
    layers, losses, first = start(np.float64), [], None
    for _ in range(steps):
        loss, grads = by_hand(layers)
        losses.append(loss)
        first = grads if first is None else first
        layers = [{k: p[k] - RATE * g[k] for k in p} for p, g in zip(layers, grads)]
    return np.array(losses), first


def trained(net, steps, compiled):
    """The losses of the same on `net.v`, and the gradients of the first step."""
    with iso.use_backend(backend_name(net)):
        xp = iso.namespace()
        x, t = xp.asarray(X.astype(np.float32)), xp.asarray(T.astype(np.float32))

    def step(v, x, t):
        loss = lambda v: xp.mean((net(x, v=v) - t) ** 2)
        value, grads = iso.execute_with_gradients(loss, v)
        return value, grads, iso.gradient_descent_update(v, grads, RATE)

    step = iso.jit(step) if compiled else step
    losses, first = [], None
    for _ in range(steps):
        loss, grads, net.v = step(net.v, x, t)
        losses.append(float(iso.to_numpy(loss)))
        first = iso.to_numpy(grads) if first is None else first
    return np.array(losses), first


def backend_name(net):
    return name_of(iso.namespace(*_leaves(net.v)))


def _leaves(nest):
    if isinstance(nest, dict):
        return [x for part in nest.values() for x in _leaves(part)]
    return [nest]
