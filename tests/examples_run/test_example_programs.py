"""The programs of examples/, in their short form, on every backend.

Each is compared with its run on NumPy, and with an oracle of its own: closed forms, SciPy's solvers
of the same problem, plain NumPy with finite differences.

Tolerances: what is computed in float64 agrees with NumPy to 1e-9, since a few dozen steps enlarge
rounding by a few digits; the autoencoder is in float32, and its sums of 64 pixels and 8 steps agree
to 1e-4. Solvers of SciPy stop at about √ε of the best value: 1e-5 of a standard error is far above
that.
"""

import re
import subprocess
import sys
from functools import cache
from importlib import import_module
from itertools import product
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import optimize, stats

import isomorph as iso

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "examples"))

NAMES = (
    "autoencoder", "characters", "gaussian_process", "graph", "likelihood", "oscillator",
    "physics_informed", "sinkhorn",
)  # fmt: skip
CLOSE = 1e-9
# Compiling for torch takes far longer than running a short form. JAX compiles each operation of an
# eager program, and TensorFlow traces each call of `vmap` and `scan`. A host function of a compiled
# JAX program is called from threads without the tests' 64 bits.
COMPILED = {
    "numpy": (),
    "jax": set(NAMES) - {"sinkhorn"},
    "tensorflow": {"likelihood", "oscillator", "physics_informed", "characters"},
    "torch": (),
}


@cache
def on_numpy(name):
    return import_module(name).run("numpy", quick=True)


def ran(name, backend):
    """The example and its result, compared with the one of NumPy."""
    example = import_module(name)
    result = example.run(backend, quick=True, compiled=name in COMPILED[backend])
    close = 1e-4 if name == "autoencoder" else CLOSE
    for entry, value in result.items():
        wanted = on_numpy(name)[entry]
        if isinstance(value, dict):
            assert list(value) == list(wanted)
            value, wanted = (np.array(list(x.values())) for x in (value, wanted))
        if isinstance(value, str):
            assert value == wanted
        else:
            scale = max(1.0, float(np.max(np.abs(wanted))))
            np.testing.assert_allclose(value, wanted, rtol=close, atol=close * scale, err_msg=entry)
    return example, result


def slopes(func, x, h=1e-4):
    """The derivative of func, a number or a vector, by central differences of fourth order: the
    axes of x come last.
    """
    x = np.asarray(x, float)
    columns = []
    for i in np.ndindex(x.shape):
        step = np.zeros(x.shape)
        step[i] = h
        near, far = (func(x + k * step) - func(x - k * step) for k in (1, 2))
        columns.append((8 * near - far) / (12 * h))
    return np.reshape(np.stack(columns, axis=-1), (*np.shape(columns[0]), *x.shape))


def test_gaussian_process(backend):
    example, result = ran("gaussian_process", backend)
    x, y, new = result["x"], result["y"], result["new"]
    rbf = lambda p, a, b: np.exp(2 * p[0] - (a[:, None] - b) ** 2 / 2 * np.exp(-2 * p[1]))

    def misfit(p):
        noisy = rbf(p, x, x) + np.exp(2 * p[2]) * np.eye(len(x))
        return -stats.multivariate_normal.logpdf(y, np.zeros(len(x)), noisy)

    found = np.array([result["found"][name] for name in ("size", "length", "noise")])
    guess = list(example.GUESS.values())
    np.testing.assert_allclose(result["values"][0], misfit(guess), rtol=1e-10)
    np.testing.assert_allclose(result["found"]["misfit"], misfit(found), rtol=1e-10)
    hessian = slopes(lambda p: slopes(misfit, p, 1e-3), found, 1e-3)
    errors = np.sqrt(np.diag(np.linalg.inv(hessian)))
    np.testing.assert_allclose(result["errors"], errors, rtol=1e-5)  # differences of differences
    assert np.all(np.abs(found - list(example.TRUE.values())) < 3 * errors)
    inverse = np.linalg.inv(rbf(found, x, x) + np.exp(2 * found[2]) * np.eye(len(x)))
    across = rbf(found, x, new)
    np.testing.assert_allclose(result["mean"], across.T @ inverse @ y, rtol=1e-8, atol=1e-8)
    variance = np.exp(2 * found[0]) - np.sum(across * (inverse @ across), axis=0)
    np.testing.assert_allclose(result["deviation"] ** 2, variance, rtol=1e-6, atol=1e-9)


def test_oscillator(backend):
    """Runge-Kutta's step of a linear equation is the exponential series up to the fourth power."""
    example, result = ran("oscillator", backend)
    seen, h = result["seen"], result["h"]

    def positions(theta):
        a = h * np.array([[0.0, 1.0], [-theta[0], -theta[1]]])
        step = np.eye(2) + a + a @ a / 2 + a @ a @ a / 6 + a @ a @ a @ a / 24
        state, all_ = theta[2:], []
        for _ in seen:
            all_.append(state[0])
            state = step @ state
        return np.array(all_)

    misses = lambda theta: (positions(theta) - seen) / example.NOISE
    best = optimize.least_squares(misses, example.TRUE, xtol=1e-15, ftol=1e-15, gtol=1e-15)
    jacobian = slopes(misses, best.x)
    errors = np.sqrt(np.diag(np.linalg.inv(jacobian.T @ jacobian)))
    assert np.all(np.abs(result["theta"] - best.x) < 1e-5 * errors)
    np.testing.assert_allclose(result["errors"], errors, rtol=1e-5)  # of the step before the last
    assert np.all(np.abs(result["theta"] - example.TRUE) < 3 * errors)
    np.testing.assert_allclose(result["fitted"], positions(result["theta"]), atol=1e-12)


def test_sinkhorn(backend):
    example, result = ran("sinkhorn", backend)
    x, y = result["paths"][0], result["y"]
    n = len(x)
    costs = lambda x: np.sum((x[:, None] - y) ** 2, axis=-1)
    # the exact plan as a linear program: every row and column of it has the sum 1/n
    sums = np.concatenate([np.kron(np.eye(n), np.ones(n)), np.kron(np.ones(n), np.eye(n))])
    best = optimize.linprog(costs(x).ravel(), A_eq=sums, b_eq=np.full(2 * n, 1 / n))
    np.testing.assert_allclose(result["found"]["exact"], best.fun, rtol=1e-9)
    plan = best.x.reshape(n, n)
    slope = 2 * np.sum(plan[:, :, None] * (x[:, None] - y), axis=1)
    np.testing.assert_allclose(result["slope"], slope, atol=1e-9)

    def plain(x, epsilon, rounds=10):
        """Sinkhorn's method as it was published, without logarithms."""
        kernel, v = np.exp(-costs(x) / epsilon), np.ones(n)
        for _ in range(rounds):
            u = 1 / n / (kernel @ v)
            v = 1 / n / (kernel.T @ u)
        return np.sum(u[:, None] * kernel * v * costs(x))

    wanted = [plain(x, epsilon) for epsilon in example.EPSILONS]
    np.testing.assert_allclose(result["table"], wanted, rtol=1e-9)
    moved = x - 0.1 * n / 2 * slopes(lambda x: plain(x, 0.1), x)
    np.testing.assert_allclose(result["paths"][1], moved, atol=1e-8)  # differences


def test_likelihood(backend):
    example, result = ran("likelihood", backend)
    counts = result["counts"]
    x = np.linspace(0.025, 0.975, 20)
    signal, background = 40 * np.exp(-(((x - 0.6) / 0.08) ** 2) / 2), 200 * np.exp(-2 * x)
    tilt = 0.1 * (2 * x - 1)

    def misfit(theta):
        rates = theta[0] * signal + 1.1 ** theta[1] * (1 + theta[2] * tilt) * background
        poisson = stats.poisson.logpmf(counts, rates)
        return -np.sum(poisson) - np.sum(stats.norm.logpdf(theta[1:]))

    theta = result["theta"]
    best = optimize.minimize(misfit, example.TRUE, method="Nelder-Mead", options={"xatol": 1e-9})
    assert np.all(np.abs(theta - best.x) < 1e-5)
    np.testing.assert_allclose(slopes(misfit, theta), 0, atol=1e-6)
    # the Hessian by hand: rates are m·s + a^p·(1 + q·t)·b
    power = 1.1 ** theta[1] * background
    sides = np.stack([signal, np.log(1.1) * power * (1 + theta[2] * tilt), power * tilt])
    second = np.zeros((3, 3, 20))
    second[1, 1], second[1, 2] = np.log(1.1) * sides[1], np.log(1.1) * sides[2]
    second[2, 1] = second[1, 2]
    rates = theta[0] * signal + power * (1 + theta[2] * tilt)
    hessian = (sides * counts / rates**2) @ sides.T + second @ (1 - counts / rates)
    covariance = np.linalg.inv(hessian + np.diag([0.0, 1.0, 1.0]))
    np.testing.assert_allclose(result["covariance"], covariance, rtol=1e-9)
    for strength, above in zip(result["strengths"], result["above"]):
        rest = optimize.minimize(lambda p, m=strength: misfit(np.array([m, *p])), theta[1:])
        np.testing.assert_allclose(above, 2 * (rest.fun - misfit(theta)), atol=1e-6)
    chance = stats.norm.sf(result["found"]["significance"])
    np.testing.assert_allclose(result["found"]["p-value"], chance, rtol=1e-8)
    assert abs(theta[0] - 1) < 3 * result["found"]["error"]


def test_physics_informed(backend):
    """The first loss, from the weights in plain NumPy, with derivatives by differences."""
    example, result = ran("physics_informed", backend)
    with iso.use_backend("numpy", dtype="float64"), iso.use_key(0):
        v = example.Temperature(6).v

    def u(x, t):
        hidden = np.stack([2 * x - 1, 2 * t - 1], axis=-1)
        for layer in ("first", "second"):
            hidden = np.tanh(hidden @ v[layer]["w"].T + v[layer]["b"])
        head = hidden @ v["head"]["w"][0] + v["head"]["b"][0]
        return np.sin(np.pi * x) * (1 + t * head)

    keys = iso.random.split(iso.random.key(0), 3)
    x, t = iso.random.uniform(keys[0], (2, 16), dtype="float64")
    seen_x, seen_t = iso.random.uniform(keys[1], (2, 20), dtype="float64")
    seen = example.exact(seen_x, seen_t) + 0.01 * iso.random.normal(keys[2], 20, dtype="float64")
    h = 1e-3
    u_t = (8 * (u(x, t + h) - u(x, t - h)) - u(x, t + 2 * h) + u(x, t - 2 * h)) / (12 * h)
    u_xx = 16 * (u(x + h, t) + u(x - h, t)) - u(x + 2 * h, t) - u(x - 2 * h, t) - 30 * u(x, t)
    first = np.mean((u_t - u_xx / (12 * h * h)) ** 2)  # kappa begins with 1
    first += 100 * np.mean((u(seen_x, seen_t) - seen) ** 2)
    np.testing.assert_allclose(result["losses"][0], first, rtol=1e-7)
    assert result["losses"][-1] < result["losses"][0] / 2


def test_autoencoder(backend):
    ran("autoencoder", backend)
    bound_is_exact_where_the_decoder_is_linear(backend)


def bound_is_exact_where_the_decoder_is_linear(backend):
    """With x = W·z + b + noise and the true posterior as encoder, log p(x, z) − log q(z|x) is log
    p(x) at every z: a normal distribution of x.
    """
    example = import_module("autoencoder")
    rng = np.random.default_rng(0)
    w = np.linalg.qr(rng.normal(size=(5, 2)))[0] * np.array([1.5, 0.7])  # columns at right angles
    b, x = rng.normal(size=5), rng.normal(size=(3, 5))
    spread = 1 / (1 + np.sum(w**2, axis=0) / example.NOISE**2)  # the variance of z, given x
    back = spread[:, None] * w.T / example.NOISE**2
    with iso.use_backend(backend, dtype="float64"), iso.use_key(0):
        model = example.Autoencoder(iso.Linear(5, 4), iso.Linear(2, 5))
    model.encoder.v = iso.convert(
        {
            "w": np.concatenate([back, np.zeros((2, 5))]),
            "b": np.concatenate([-back @ b, np.log(spread) / 2]),
        },
        backend,
    )
    model.decoder.v = iso.convert({"w": w, "b": b}, backend)
    bound = example.negative_bound(model, iso.convert(x, backend))
    covariance = w @ w.T + example.NOISE**2 * np.eye(5)
    wanted = -np.mean(stats.multivariate_normal.logpdf(x, b, covariance))
    np.testing.assert_allclose(float(iso.to_numpy(bound)), wanted, rtol=1e-10)


@pytest.mark.takes("it starts another process")
def test_characters(backend):
    """Letter by letter with the cache gives the logits of the whole text at once."""
    example, result = ran("characters", backend)
    np.testing.assert_allclose(result["logits"], result["whole"], atol=1e-11)
    assert result["text"].startswith("the ")
    assert len(result["text"]) == example.PLACES
    all_ = {"the " + "".join(words) for words in product(*example.WORDS)}
    lengths = [len(sentence) for sentence in all_]
    assert np.isclose(result["found"]["entropy"], np.log(len(lengths)) / np.mean(lengths))
    assert result["losses"][-1] < result["losses"][0]


def test_graph(backend):
    example, result = ran("graph", backend)
    data = example.clusters(4, 1)
    apart = lambda x, i, j: np.sqrt(sum((x[i] - x[j]) ** 2))
    pair = lambda r: (1 - np.exp(-2 * (r - 1))) ** 2 - 1

    def energy(x):
        return sum(pair(apart(x, i, j)) for i in range(len(x)) for j in range(i))

    atoms = [np.flatnonzero(data["cluster"] == number) for number in range(4)]
    for number, own in enumerate(atoms):
        places = data["places"][own]
        np.testing.assert_allclose(data["energies"][number], energy(places), rtol=1e-12)
        np.testing.assert_allclose(data["forces"][own], -slopes(energy, places), atol=1e-7)
        np.testing.assert_allclose(np.sum(result["pulls"][own], axis=0), 0, atol=1e-10)
    with iso.use_backend(backend, dtype="float64"), iso.use_key(0):
        model = example.Energy(8)
    graph = iso.convert(data, backend)
    jit = iso.jit if backend == "jax" else lambda func: func  # JAX compiles each operation
    values, pulls = (iso.to_numpy(x) for x in jit(example.forces)(model, graph))
    energies = jit(lambda model, places: model(places, graph))
    at = lambda places: iso.to_numpy(energies(model, iso.convert(places, backend)))
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    np.testing.assert_allclose(at(data["places"] @ turn + 1.0), values, rtol=1e-10)
    way = np.random.default_rng(1).normal(size=data["places"].shape)
    down = slopes(lambda h: np.sum(at(data["places"] + h * way)), np.array(0.0))
    np.testing.assert_allclose(-np.sum(pulls * way), down, rtol=1e-7)


# ---- what is kept in docs/examples ---------------------------------------------------------------


def test_the_command(tmp_path):
    command = [sys.executable, str(ROOT / "examples" / "likelihood.py"), "numpy", "--quick"]
    done = subprocess.run(
        [*command, "--out", str(tmp_path)], capture_output=True, text=True, check=True, timeout=100
    )
    assert "| numpy" in done.stdout
    assert f"{on_numpy('likelihood')['found']['strength']:.5g}" in done.stdout
    assert ElementTree.parse(tmp_path / "likelihood.svg").getroot().tag.endswith("svg")


@pytest.mark.parametrize("name", NAMES)
def test_its_page(name):
    """A page shows the picture or table of the example, and code that is in it."""
    page = (ROOT / "docs" / "examples" / f"{name}.md").read_text("utf-8")
    source = (ROOT / "examples" / f"{name}.py").read_text("utf-8")
    assert f"python examples/{name}.py" in page
    shown = re.findall(r"```python[^\n]*\n(.*?)```", page, re.S)
    assert shown
    for block in shown:
        assert block in source
    if name != "characters":
        picture = ROOT / "docs" / "examples" / f"{name}.svg"
        assert f"({picture.name})" in page
        assert ElementTree.parse(picture).getroot().tag.endswith("svg")
        assert picture.stat().st_size < 60_000
    assert f"({name}.md)" in (ROOT / "docs" / "examples" / "index.md").read_text("utf-8")
