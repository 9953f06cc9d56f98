"""Transforms, loops, rules, draws and creation: what calls a function, or makes arrays."""

import numpy as np
import scipy.special

import isomorph as iso
from isomorph.frontends.jax import lax
from oracles import name_of

from .entries import Function, M, R, V, const, each, key_of
from .namespace import LAPACK

LOOP = {"xla": "a loop"}
# Rules that are not the true derivative, so that a test notices if one is dropped.
tenfold = iso.custom_vjp(lambda x: x * x, lambda x: (x * x, x), lambda r, g: (20 * g * r,))
bound = iso.bind_custom_gradient_function(lambda x: x**3, lambda saved, g: 10 * g * saved[0] ** 2)
hosted = iso.host_function(scipy.special.expit, lambda saved, g: 10 * g * saved[1] * (1 - saved[1]))
summed = lambda f: lambda x: iso.namespace(x).sum(f(x))
cube = lambda x: x * x * x


def ours(call):
    """A call that needs no isomorph as argument."""
    return lambda _, *arrays: call(*arrays)


def newton(x):
    """The root of y³ + y = x, by Newton's method."""
    xp = iso.namespace(x)

    def solve(f, y):  # in a loop: torch takes minutes to compile 30 steps
        return iso.fori_loop(0, 30, lambda _, y: y - f(y) / (3 * y * y + 1), y)

    f = lambda y: y**3 + y - x
    return lax.custom_root(f, xp.ones_like(x), solve, lambda g, y: y / g(xp.ones_like(y)))


def cardano(x):
    root = np.sqrt(x * x / 4 + 1 / 27)
    return np.cbrt(x / 2 + root) + np.cbrt(x / 2 - root)


def solved(a, b):
    """The solution of a linear system, by a function that multiplies by its matrix."""
    xp = iso.namespace(a)
    a = a + const(a, 3 * np.eye(4))

    def solve(f, b):
        eye = xp.eye(4, dtype=b.dtype)
        return xp.linalg.solve(xp.stack([f(eye[i]) for i in range(4)], axis=1), b)

    return lax.custom_linear_solve(lambda v: xp.matmul(a, v), b, solve, solve)


def looped(x):
    """Three times y·x + x, from x."""
    y = x
    for _ in range(3):
        y = y * x + x
    return y


def chained(x):
    opt = iso.chain(iso.optimizers.clip_by_global_norm(1.0), iso.optimizers.sgd(0.1))
    return opt.update(x, opt.init(x), x)[0] * x  # no gradient flows through the update


def clipped(x):
    return -0.1 * x / max(1, np.linalg.norm(x))


def adam(g, m, v):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    u = m / (1 - 0.9**3) / (np.sqrt(v / (1 - 0.999**3)) + 1e-7)
    return [u, m, v]


def adam_stepped(w, g, m, v):
    u, m, v = adam(g, m, v)
    return [w - 0.1 * u, m, v]


def lamb_stepped(w, g, m, v):
    u, m, v = adam(g, m, v)
    return [w - 0.1 * min(ratio(w, u), 10) * u, m, v]


def ratio(w, u):
    """How much longer w is than u; 1 if one of them is 0."""
    a, b = np.linalg.norm(w), np.linalg.norm(u)
    return a / b if a * b else 1.0


POSITIVE = (None, None, None, (0.5, 1.5))
FLOWING = {"stop_gradients": False}

FUNCTIONS = {
    # derivatives of x³, or of its sum
    "grad": each(lambda iso, x: iso.grad(summed(cube))(x), lambda x: 3 * x**2),
    "value_and_grad": each(lambda iso, x: iso.value_and_grad(summed(cube))(x),
                           lambda x: [np.sum(x**3), 3 * x**2]),
    "vjp": each(lambda iso, x: iso.vjp(cube, x)[1](x)[0], lambda x: 3 * x**3),
    "jvp": each(lambda iso, x: iso.jvp(cube, (x,), (x,))[1], lambda x: 3 * x**3),
    "hvp": each(lambda iso, x: iso.hvp(summed(cube), (x,), (x,))[0], lambda x: 6 * x**2),
    "execute_with_gradients": each(
        lambda iso, x: list(iso.execute_with_gradients(summed(cube), x, retain_grads=True)),
        lambda x: [np.sum(x**3), 3 * x**2]),
    "jac": Function(lambda iso, x: iso.jac(cube)(x), ((6,),), lambda x: np.diag(3 * x**2)),
    "jacrev": Function(lambda iso, x: iso.jacrev(cube)(x), ((6,),), lambda x: np.diag(3 * x**2)),
    "jacfwd": Function(lambda iso, x: iso.jacfwd(cube)(x), ((6,),), lambda x: np.diag(3 * x**2)),
    "value_and_jac": Function(lambda iso, x: iso.value_and_jac(cube)(x), ((6,),),
                              lambda x: [x**3, np.diag(3 * x**2)]),
    "hessian": Function(lambda iso, x: iso.hessian(summed(cube))(x), ((6,),),
                        lambda x: np.diag(6 * x)),
    "vmap": Function(lambda iso, x: iso.vmap(lambda r: r * iso.namespace(r).sum(r))(x), (R,),
                     lambda x: x * x.sum(1, keepdims=True)),
    "checkpoint": each(ours(iso.checkpoint(lambda x: iso.namespace(x).sin(x) ** 2)),
                       lambda x: np.sin(x) ** 2),
    "jit": each(ours(iso.jit(lambda x: iso.namespace(x).sin(x) * x)), lambda x: np.sin(x) * x),
    "namespace": each(lambda iso, x: iso.namespace(x).exp(x), np.exp),
    "asarray": each(lambda iso, x: iso.asarray(x) * x, lambda x: x * x),
    # rules
    "stop_gradient": each(lambda iso, x: iso.stop_gradient(x) * x, lambda x: x * x,
                          slope=lambda x: x, order=1),
    "lax.stop_gradient": each(lambda iso, x: lax.stop_gradient(x) * x, lambda x: x * x,
                              slope=lambda x: x, order=1),
    "custom_vjp": each(ours(tenfold), lambda x: x * x, slope=lambda x: 20 * x, order=1),
    "custom_vjp, its gradient": each(lambda iso, x: iso.grad(summed(tenfold))(x), lambda x: 20 * x,
                                     slope=lambda x: 20 + 0 * x, order=1),
    "custom_vjp, mapped": Function(ours(iso.vmap(tenfold)), (R,), lambda x: x * x,
                                   slope=lambda x: 20 * x, order=1),
    "bind_custom_gradient_function": each(ours(bound), lambda x: x**3,
                                          slope=lambda x: 10 * x**2, order=1),
    "host_function": each(ours(hosted), scipy.special.expit, order=1,
                          slope=lambda x: 10 * scipy.special.expit(x) * scipy.special.expit(-x),
                          but={"mapped": "iso.host_function", "xla": "a call of Python",
                               "jax compiled": "in larger programs JAX calls back from a thread "
                               "of its own, without 64 bits: tests/gradients/test_host.py"}),
    "lax.custom_root": each(ours(newton), cardano, order=1, but={"xla": "a loop"}),
    "lax.custom_linear_solve": Function(ours(solved), (M, (4,)), order=1, but=LAPACK,
                                        wanted=lambda a, b: np.linalg.solve(a + 3 * np.eye(4), b)),
    # loops and branches
    "cond": each(lambda iso, x: iso.cond(True, lambda x: x * x, lambda x: x, x), lambda x: x * x),
    "cond, of a value": each(
        lambda iso, x: iso.cond(iso.namespace(x).sum(x * x) > 0, cube, lambda x: x, x),
        lambda x: x**3,
        but={"mapped": "a Python if, while, and, or of a mapped value, or iso.cond"}),
    "switch": each(lambda iso, x: iso.switch(1, [lambda x: x, cube], x), lambda x: x**3),
    "while_loop": each(
        lambda iso, x: iso.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1] * c[1]),
                                      (0, x))[1],
        lambda x: x**4, but=LOOP | {"jax compiled gradient": "a number of steps it does not know"}),
    "fori_loop": each(lambda iso, x: iso.fori_loop(0, 3, lambda i, y: y * x + x, x), looped,
                      but=LOOP),
    "scan": each(lambda iso, x: iso.scan(lambda c, _: (c * x, c * c), x, length=2),
                 lambda x: [x**3, np.stack([x**2, x**4])], but=LOOP),
    "scan, of rows": Function(lambda iso, x: iso.scan(lambda c, r: (c * r, c + r), x[0], x[1:]),
                              (R,), lambda x: [np.prod(x, 0), np.cumprod(x, 0)[:-1] + x[1:]],
                              but=LOOP | {"empty": "its first row"}),
    # steps of optimizers
    "optimizer_update": each(lambda iso, w, g: iso.optimizer_update(w, g, 0.1, **FLOWING),
                             lambda w, g: w - 0.1 * g, n=2),
    "gradient_descent_update": each(
        lambda iso, w, g: iso.gradient_descent_update(w, g, 0.1, **FLOWING),
        lambda w, g: w - 0.1 * g, n=2),
    "adam_step": each(lambda iso, *a: iso.adam_step(*a, 3), adam, *POSITIVE[1:], n=3),
    "adam_update": each(lambda iso, w, g, m, v: iso.adam_update(w, g, 0.1, m, v, 3, **FLOWING),
                        adam_stepped, *POSITIVE, n=4),
    "lars_update": each(
        lambda iso, w, g: iso.lars_update(w, g, 0.1, **FLOWING),
        lambda w, g: w - 0.1 * ratio(w, g) * g, n=2),
    "lamb_update": each(lambda iso, w, g, m, v: iso.lamb_update(w, g, 0.1, m, v, 3, **FLOWING),
                        lamb_stepped, *POSITIVE, n=4),
    "apply_updates": each(lambda iso, x: iso.apply_updates({"w": x}, {"w": x * x})["w"] * x,
                          lambda x: x * (x + x * x), slope=lambda x: x + x * x, order=1),
    "chain": each(ours(chained), lambda x: clipped(x) * x, slope=clipped, order=1),
}  # fmt: skip

# Draws with the key 5. What JAX has too was drawn by JAX 0.10; the others, whose algorithms are
# ours, are the numbers that every backend and version must give again.
DRAWN = {
    "uniform": [0.634340617068121, 0.04716389088541528, 0.836893662441414, 0.6844151475737681],
    "normal": [0.3433718077169161, -1.6729975326208553, 0.9817710060103099, 0.4800811308371194],
    "truncated_normal": [0.32716401958890906, -1.4926222081852167, 0.9213453022670939,
                         0.4566097351569714],
    "exponential": [1.0060530266293406, 0.04831236376391374, 1.8133529132211392,
                    1.1533276872768692],
    "gumbel": [0.7870860216630391, -1.1164936934226324, 1.7256444640935666, 0.9697162858692016],
}  # fmt: skip
OF_KEY = {
    "bernoulli": (lambda iso, k: iso.random.bernoulli(k, 0.5, (6,)),
                  [True, False, False, True, False, False]),
    "bits": (lambda iso, k: iso.random.bits(k, (4,)),
             [2003086470, 3955154020, 3160280976, 408371909]),
    "categorical": (lambda iso, k: iso.random.categorical(k, const_of(k, np.linspace(-1, 1, 6))),
                    2),
    "fold_in": (lambda iso, k: iso.random.fold_in(k, 7), [1394159668, 1590028285]),
    "key": (lambda iso, k: k, [0, 5]),
    "randint": (lambda iso, k: iso.random.randint(k, (6,), -3, 9), [7, 1, -1, 7, -2, -3]),
    "split": (lambda iso, k: iso.random.split(k), [[2724472204, 3573582090],
                                                   [202567368, 3886822060]]),
}  # fmt: skip
ORDER = [10, 17, 20, 9, 14, 0, 2, 4, 16, 12, 8, 1, 3, 22, 23, 5, 7, 11, 6, 15, 21, 19, 13, 18]
FIXED = {"large": "its draws are known in one size", "empty": "its draws are known in one size"}
STRICT = {**FIXED, "float32": "its draws are known in float64", "half": "as float32"}


def const_of(key, values):
    return iso.namespace(key).asarray(values)


def drawn(name):
    draw = lambda x: getattr(iso.random, name)(key_of(x), (4,), dtype="float64")
    return Function(ours(lambda x: x * draw(x)), ((4,),), lambda x: x * DRAWN[name], but=STRICT)


def normals(mean, root):
    xp = iso.namespace(mean)
    cov = xp.matmul(root, xp.matrix_transpose(root)) + const(mean, np.eye(3))
    return iso.random.multivariate_normal(key_of(mean), mean, cov, 2)


NORMALS = np.array([*DRAWN["normal"][:3], DRAWN["normal"][3], -0.8095067717630415,
                    -0.7504117841557009]).reshape(2, 3)  # fmt: skip
DRAWS = {
    **{name: drawn(name) for name in DRAWN},
    **{name: Function(lambda _, x, call=call: call(iso, key_of(x)), (R,),
                      lambda x, found=found: np.array(found), order=0, but=FIXED)
       for name, (call, found) in OF_KEY.items()},
    "poisson": Function(lambda iso, x: iso.random.poisson(key_of(x), 3.0, (6,)), (R,), order=0,
                        wanted=lambda x: np.array([3, 6, 4, 1, 5, 4]),
                        but={**FIXED, "xla": "a loop"}),
    "gamma": Function(ours(lambda x: x * iso.random.gamma(key_of(x), 2.0, (3,), dtype="float64")),
                      ((3,),), but={**STRICT, "xla": "a loop"},
                      wanted=lambda x: x * np.array([2.1504206277596944, 0.3054720658697245,
                                                     3.282567310686039])),
    "choice": Function(ours(lambda x: iso.random.choice(key_of(x), x, (6,))), (V,), but=FIXED,
                       wanted=lambda x: x[[10, 4, 14, 22, 1, 0]]),
    "permutation": Function(ours(lambda x: iso.random.permutation(key_of(x), x)), (V,), but=FIXED,
                            wanted=lambda x: x[ORDER]),
    "multivariate_normal": Function(
        ours(normals), ((3,), (3, 3)), but=STRICT,
        wanted=lambda m, a: m + NORMALS @ np.linalg.cholesky(a @ a.T + np.eye(3)).T),
}  # fmt: skip
FUNCTIONS |= {f"random.{name}": entry for name, entry in DRAWS.items()}

# Creation: arrays of no array. They are multiplied by one, so that it says which backend.


def created(name, *args):
    def call(iso, x):
        with iso.use_backend(name_of(iso.namespace(x)), dtype=x.dtype):
            return getattr(iso, name)(*args) * x

    return call


FUNCTIONS |= {
    name: Function(created(name, *args), ((4,),), wanted=lambda x, y=y: y * x, but=FIXED)
    for name, args, y in (
        ("arange", (4.0,), np.arange(4)), ("linspace", (0.0, 1.0, 4), np.linspace(0, 1, 4)),
        ("zeros", (4,), 0), ("ones", (4,), 1), ("full", (4, 3.0), 3), ("eye", (4,), np.eye(4)),
    )
}  # fmt: skip
FUNCTIONS |= {
    "local_window_mask": Function(
        lambda iso, x: iso.local_window_mask(
            4, 6, left=1, backend=name_of(iso.namespace(x))), (R,),
        lambda x: np.tri(4, 6, dtype=bool) & ~np.tri(4, 6, -2, dtype=bool), order=0, but=FIXED),
    "to_numpy": Function(lambda iso, x: iso.to_numpy(x), (R,), lambda x: x, order=0,
                         but={"compiled": "it reads values", "mapped": "it reads values"}),
    "convert": Function(lambda iso, x: iso.convert(x, "numpy"), (R,), lambda x: x, order=0,
                        but={"compiled": "it reads values", "mapped": "it reads values"}),
}  # fmt: skip

LEFT_OUT = {
    "a type, or an error": [
        "CheckpointError", "Fit", "NonFiniteError", "Optimizer", "State", "TrainState",
    ],
    "differentiates and compiles by itself": [
        "check_gradients", "evaluate", "fit", "predict", "train_step",
    ],
    "tells where an array is": ["device_of"],
    "reads or writes files, or prints": ["cache", "load", "save", "summary"],
    "a mode or a setting, computes nothing": [
        "backends", "gradient_tracking", "set_with_grads", "unset_with_grads", "use_backend",
        "use_key", "with_grads",
    ],
}  # fmt: skip
