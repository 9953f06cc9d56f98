"""The same programs in plain float64 NumPy: every formula is written out, and derivatives use the
complex step. Only the initial values and the random numbers come from isomorph.

The complex step, Im f(x + ih) / h, has no subtraction and so no cancellation: it is as accurate as
the formula. Formulas must be analytic: no conjugates, no absolute values.
"""

import learning_programs as learning
import numpy as np
import science_programs as science
from scipy.special import erf

import isomorph as iso
from isomorph.core import tree


def flat(nest):
    """The numbers of a nest by their paths, in NumPy."""
    values = iso.to_numpy(nest)
    return dict(zip(tree.paths(values, whole=True), tree.flatten_whole(values)[0]))


def start(dtype, key, make):
    """The variables of a new module, in float64."""
    with iso.use_backend("numpy", dtype=dtype), iso.use_key(key):
        return wide(flat(make().v))


def wide(nest):
    return {k: np.asarray(x, np.float64) for k, x in nest.items()}


def rounded(dtype, *arrays):
    """The inputs of a program, rounded to its dtype."""
    return [x.astype(dtype).astype(np.float64) for x in arrays]


def slopes(func, v, step=1e-30):
    """The gradient of an analytic function of a dict of arrays."""
    grads = {}
    for name, x in v.items():
        grads[name] = np.zeros(x.shape)
        for i in np.ndindex(x.shape):
            moved = np.array(x, complex)
            moved[i] += 1j * step
            grads[name][i] = np.imag(func({**v, name: moved})) / step
    return grads


class Adam:
    """Adam, or AdamW with a decay."""

    def __init__(self, rate, beta1=0.9, decay=0.0):
        self.rate, self.beta1, self.decay = rate, beta1, decay
        self.n, self.m, self.s = 0, {}, {}

    def __call__(self, v, grads):
        self.n += 1
        after = {}
        for k, g in grads.items():
            self.m[k] = self.beta1 * self.m.get(k, 0) + (1 - self.beta1) * g
            self.s[k] = 0.999 * self.s.get(k, 0) + 0.001 * g**2
            mean, square = self.m[k] / (1 - self.beta1**self.n), self.s[k] / (1 - 0.999**self.n)
            after[k] = v[k] - self.rate * (mean / (np.sqrt(square) + 1e-8) + self.decay * v[k])
        return after


def linear(v, name, x):
    return x @ v[f"{name}/w"].T + v[f"{name}/b"]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def cross_entropy(logits, labels):
    """The mean over the rows."""
    chosen = np.stack([row[label] for row, label in zip(logits, labels)])
    return np.mean(np.log(np.sum(np.exp(logits), axis=-1)) - chosen)


def listed(name, values):
    return {f"{name}/{i}": x for i, x in enumerate(values)}


def named(name, v):
    return {f"{name}/{k}": x for k, x in v.items()}


# ---- models that learn ---------------------------------------------------------------------------


def vae(dtype):
    v, (pixels,) = start(dtype, 0, learning.VAE), rounded(dtype, learning.PIXELS)
    key, descend, losses = iso.random.key(3), Adam(1e-2), []

    def loss(v):
        hidden = linear(v, "encoder", x)
        hidden = hidden * sigmoid(hidden)
        mean, log_var = linear(v, "mean", hidden), linear(v, "log_var", hidden)
        hidden = linear(v, "decoder/layers/0", mean + np.exp(log_var / 2) * noise)
        p = sigmoid(linear(v, "decoder/layers/2", hidden * sigmoid(hidden)))
        missed = -np.sum(x * np.log(p) + (1 - x) * np.log(1 - p))
        return (missed + 0.5 * np.sum(mean**2 + np.exp(log_var) - 1 - log_var)) / 4

    for i in range(6):
        x = pixels[4 * (i % 3) :][:4]
        key, drawn = iso.random.split(key)
        noise = iso.random.normal(drawn, (4, 2), dtype=dtype).astype(np.float64)
        losses.append(loss(v))
        v = descend(v, slopes(loss, v))
    return {**listed("losses", losses), **named("v", v), "key": key}


def gan(dtype):
    both = start(
        dtype, 1, lambda: iso.Sequential(learning.network(3, 4, 2), learning.network(2, 4, 1))
    )
    g, d = ({k[9:]: x for k, x in both.items() if k.startswith(f"layers/{i}")} for i in (0, 1))
    (real,) = rounded(dtype, learning.REAL)
    descend, out = (Adam(1e-2, 0.5), Adam(1e-2, 0.5)), {}

    def net(v, x):
        hidden = linear(v, "layers/0", x)
        return linear(v, "layers/2", np.where(hidden.real > 0, hidden, 0.2 * hidden))

    def critic_loss(d):
        return -np.mean(np.log(sigmoid(net(d, real)))) - np.mean(np.log(sigmoid(-net(d, made))))

    def generator_loss(g):
        return -np.mean(np.log(sigmoid(net(d, net(g, noise)))))

    for i, key in enumerate(iso.random.split(iso.random.key(5), 4)):
        noise = iso.random.normal(key, (8, 3), dtype=dtype).astype(np.float64)
        made = net(g, noise)
        out[f"losses/{i}/1"] = critic_loss(d)
        d = descend[1](d, slopes(critic_loss, d))
        out[f"losses/{i}/0"] = generator_loss(g)
        g = descend[0](g, slopes(generator_loss, g))
    return {**out, **named("generator", g), **named("critic", d)}


def graph_network(dtype):
    v, (x,) = start(dtype, 2, learning.GraphNet), rounded(dtype, learning.FEATURES)
    edges = list(zip(learning.SENDERS, learning.RECEIVERS))

    def one_round(v, name, x):
        sums = np.zeros((6, 4), complex)
        for a, b in edges:
            sums[b] += np.tanh(linear(v, name, np.concatenate([x[a], x[b]])))
        return sums

    def logits(v):
        return linear(v, "head", one_round(v, "second", one_round(v, "first", x)))

    loss = lambda v: cross_entropy(logits(v), learning.CLASSES)
    losses, trace = [], dict.fromkeys(v, 0)
    for _ in range(4):
        losses.append(loss(v).real)
        trace = {k: 0.9 * trace[k] + g for k, g in slopes(loss, v).items()}
        v = {k: v[k] - 0.1 * trace[k] for k in v}
    return {**listed("losses", losses), **named("v", v), "logits": logits(v).real}


def transformer(dtype):
    v, b = start(dtype, 3, learning.Transformer), "blocks/0"

    def turned(x):
        """Rotary embedding of features [..., position, 4], which pairs i with i + 2."""
        angle = np.arange(x.shape[-2])[:, None] * 10000.0 ** (-np.arange(2) / 2)
        one, two, cos, sin = x[..., :2], x[..., 2:], np.cos(angle), np.sin(angle)
        return np.concatenate([one * cos - two * sin, two * cos + one * sin], axis=-1)

    def normed(v, name, x):
        x = x - np.mean(x, axis=-1, keepdims=True)
        x = x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + 1e-5)
        return x * v[f"{name}/w"] + v[f"{name}/b"]

    def logits(v, tokens):
        x, size = v["embedding/w"][tokens], tokens.shape[1]
        heads = linear(v, f"{b}/qkv", normed(v, f"{b}/norm", x)).reshape(2, size, 3, 2, 4)
        q, k, value = np.moveaxis(heads, (2, 3), (0, 2))
        weights = np.tril(np.exp(turned(q) @ np.swapaxes(turned(k), -1, -2) / 2))
        y = weights @ value / np.sum(weights, axis=-1, keepdims=True)
        y = np.moveaxis(y, 1, 2).reshape(2, size, 8)
        x = x + linear(v, f"{b}/out", y)
        y = x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + 1e-6) * v[f"{b}/norm2/w"]
        y = linear(v, f"{b}/up", y)
        x = x + linear(v, f"{b}/down", y * (1 + erf(y / np.sqrt(2))) / 2)
        return linear(v, "head", normed(v, "norm", x))

    def loss(v):
        rows = logits(v, learning.TOKENS[:, :-1]).reshape(-1, 7)
        return cross_entropy(rows, learning.TOKENS[:, 1:].flat)

    losses, descend = [], Adam(1e-2, decay=0.01)
    for _ in range(3):
        losses.append(loss(v))
        v = descend(v, slopes(loss, v))
    whole, tokens = logits(v, learning.TOKENS), learning.TOKENS
    for _ in range(2):
        best = np.argmax(logits(v, tokens)[:, -1], axis=-1)
        tokens = np.concatenate([tokens, best[:, None]], axis=1)
    out = {"logits": whole, "whole": whole, "guesses": tokens[:, -2:]}
    return {**listed("losses", losses), **named("v", v), **out}


def reinforce(dtype):
    policy, out = np.zeros((5, 2)), {}
    for i, key in enumerate(iso.random.split(iso.random.key(11), 3)):
        chances = np.exp(policy) / np.sum(np.exp(policy), axis=-1, keepdims=True)
        states, actions, rewards = (np.zeros((4, 6), kind) for kind in (int, int, float))
        for walk, own in enumerate(iso.random.split(key, 4)):
            place = 2
            for t, moment in enumerate(iso.random.split(own, 6)):
                action = int(iso.random.categorical(moment, policy[place].astype(dtype)))
                states[walk, t], actions[walk, t] = place, action
                place = min(max(place + (1 if action else -1), 0), 4)
                rewards[walk, t] = place == 4
        to_go = np.stack([rewards[:, t:].sum(axis=1) for t in range(6)], axis=1)
        advantage = to_go - to_go.mean(axis=0)
        grad, loss = np.zeros((5, 2)), 0.0
        for place, action, a in zip(states.flat, actions.flat, advantage.flat):
            loss -= a * np.log(chances[place, action]) / 4
            grad[place] -= a * (np.eye(2)[action] - chances[place]) / 4
        seen = {"states": states, "actions": actions, "return": rewards.sum(axis=1).mean()}
        out |= named(f"steps/{i}", {"loss": loss, "grad": grad, "policy": policy, **seen})
        policy = policy - 0.5 * grad
    return {**out, "policy": policy}


# ---- scientific models ---------------------------------------------------------------------------


def physics_network(dtype):
    v = start(dtype, 4, science.Heat)
    inside, begin = rounded(dtype, science.INSIDE, science.AT_START)

    def loss(v):
        w, w2, out = v["first/w"], v["second/w"], v["head/w"][0]
        a = np.tanh(linear(v, "first", inside))
        b = np.tanh(linear(v, "second", a))
        da, db = 1 - a**2, 1 - b**2  # the derivative of tanh
        one = (da * w[:, 0]) @ w2.T
        two = (-2 * a * da * w[:, 0] ** 2) @ w2.T
        u_xx = (-2 * b * db * one**2 + db * two) @ out
        u_t = (db * ((da * w[:, 1]) @ w2.T)) @ out
        outer = np.tanh(linear(v, "first", np.stack([begin, 0 * begin], axis=-1)))
        outer = linear(v, "head", np.tanh(linear(v, "second", outer)))[:, 0]
        return np.mean((u_t - u_xx) ** 2) + np.mean((outer - np.sin(np.pi * begin)) ** 2)

    losses, descend = [], Adam(1e-2)
    for _ in range(3):
        losses.append(loss(v))
        v = descend(v, slopes(loss, v))
    return {**listed("losses", losses), **named("v", v), "final": loss(v)}


def ode_fit(dtype):
    """For a linear equation y' = My, a Runge-Kutta step is the exponential of hM to the fourth
    power.
    """
    p = {k: np.asarray(x, dtype).astype(np.float64) for k, x in (("rate", 0.1), ("spring", 1.2))}
    (seen,) = rounded(dtype, science.ode_seen())

    def trajectory(p):
        m = science.STEP * np.array([[0, 1], [-p["spring"], -p["rate"]]])
        one = np.eye(2) + m + m @ m / 2 + m @ m @ m / 6 + m @ m @ m @ m / 24
        power = lambda n: np.linalg.matrix_power(one, n * science.INNER)
        return np.stack([power(n) @ [1.0, 0.0] for n in range(1, science.SAMPLES + 1)])

    loss = lambda p: np.mean((trajectory(p)[:, 0] - seen) ** 2)
    out = {"trajectory": trajectory(p)}
    for i in range(4):
        grads = slopes(loss, p)
        out |= {f"losses/{i}": loss(p), **named(f"grads/{i}", grads)}
        p = {k: p[k] - 0.3 * grads[k] for k in p}
    return {**out, **named("p", p)}


def gaussian_process(dtype):
    x, y, new = rounded(dtype, science.PLACES, science.HEIGHTS, science.NEW)
    p = {k: np.asarray(a) for k, a in (("size", 0.0), ("length", -0.5), ("noise", -2.0))}

    def kernel(p, a, b):
        distance = np.subtract.outer(a, b) / np.exp(p["length"])
        return np.exp(p["size"]) * np.exp(-(distance**2) / 2)

    full = lambda p: kernel(p, x, x) + np.exp(p["noise"]) * np.eye(10)

    def log_det(k):
        """The log-determinant, by elimination."""
        total = 0
        for i in range(10):
            total, k = total + np.log(k[i, i]), k - np.outer(k[:, i], k[i]) / k[i, i]
        return total

    def value(p):
        k = full(p)
        return (y @ np.linalg.inv(k) @ y + log_det(k) + 10 * np.log(2 * np.pi)) / 2

    out = {}
    for i in range(3):
        grads = slopes(value, p)
        out |= {f"steps/{i}/value": value(p)}
        out |= {**named(f"steps/{i}/grad", grads), **named(f"steps/{i}/p", p)}
        p = {k: p[k] - 0.05 * grads[k] for k in p}
    across, inverse = kernel(p, new, x), np.linalg.inv(full(p))
    variance = np.diag(kernel(p, new, new) - across @ inverse @ across.T)
    return {**out, **named("p", p), "mean": across @ inverse @ y, "variance": variance}


def maml(dtype):
    rng = {"w": learning.numbers(9, 2, 4) * 0.5, "out": learning.numbers(10, 4) * 0.5}
    v = dict(zip(["w", "out", "b"], rounded(dtype, rng["w"], rng["out"], np.zeros(4))))
    y = np.einsum("tni,ti->tn", science.TASKS, science.SLOPES)
    xs, ys = rounded(dtype, science.TASKS, y)

    def error(v, x, y):
        hidden = np.tanh(x @ v["w"] + v["b"])
        return hidden, hidden @ v["out"] - y

    def loss(v):
        total = 0
        for x, y in zip(xs, ys):
            hidden, e = error(v, x[:4], y[:4])
            back = np.outer(e, v["out"]) * (1 - hidden**2) / 2  # 2/n = 1/2
            grads = {"w": x[:4].T @ back, "b": back.sum(axis=0), "out": hidden.T @ e / 2}
            after = {k: v[k] - 0.1 * grads[k] for k in v}
            total = total + np.mean(error(after, x[4:], y[4:])[1] ** 2) / len(xs)
        return total

    w, losses = v["out"][:2], []
    for _ in range(3):
        losses.append(loss(v))
        grads = slopes(loss, v)
        v = {k: v[k] - 0.1 * grads[k] for k in v}
    line, slope = 0.0, np.zeros(2)
    # for a linear model the step is linear, and the gradient through it is known
    for x, y in zip(xs, ys):
        shrink = np.eye(2) - 0.1 * x[:4].T @ x[:4] / 2
        e = x[4:] @ (shrink @ w + 0.1 * x[:4].T @ y[:4] / 2) - y[4:]
        line, slope = line + np.mean(e**2) / 3, slope + shrink @ x[4:].T @ e / 2 / 3
    out = {**named("v", v), **named("grads", grads), "line/0": line, "line/1/w": slope}
    return {**listed("losses", losses), **out}


def mixture(dtype):
    theta, x = rounded(dtype, science.GUESS, science.DRAWN)

    def parts(theta):
        weights = np.stack([sigmoid(theta[0]), sigmoid(-theta[0])])
        z = (x[:, None] - theta[1:3]) / np.exp(theta[3:5])
        return weights, z, weights * np.exp(-(z**2) / 2 - theta[3:5]) / np.sqrt(2 * np.pi)

    def score(theta):
        """The gradient, weighted by how likely each point belongs to each component."""
        weights, z, p = parts(theta)
        mine = p / p.sum(axis=1, keepdims=True)
        of_weight = np.sum(mine[:, 0] - weights[0])
        of_means = np.sum(mine * z / np.exp(theta[3:5]), axis=0)
        return -np.concatenate([[of_weight], of_means, np.sum(mine * (z**2 - 1), axis=0)])

    def hessian(theta):
        return np.stack([np.imag(score(theta + 1e-30j * e)) / 1e-30 for e in np.eye(5)])

    values = []
    for _ in range(6):
        values.append(-np.sum(np.log(parts(theta)[2].sum(axis=1))))
        theta = theta - np.linalg.solve(hessian(theta), score(theta))
    assert np.abs(score(theta)).max() < 1e-10  # Newton has converged
    errors = np.sqrt(np.diag(np.linalg.inv(hessian(theta))))
    return {**listed("values", values), "theta": theta, "errors": errors}
