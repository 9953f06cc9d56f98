"""`iso.special`, each with SciPy's function, and `iso.linalg`, each by SciPy or its definition."""

import numpy as np
import scipy.linalg
import scipy.special

import isomorph as iso

from .activations import log_softmax, softmax
from .entries import Function, M, R, V, each, named
from .namespace import LAPACK, NAMES, PLUS, symmetric

S = scipy.special
SOME, INSIDE, LARGE = (0.4, 1.6), (0.1, 0.9), (1.2, 3.0)
WHOLE = ("erf", "erfc", "erfcx", "expit", "i0", "i0e", "i1", "i1e", "log_expit", "log_ndtr", "ndtr",
         "sinc")  # fmt: skip
POSITIVE = ("digamma", "entr", "gamma", "gammaln")
BETWEEN = ("erfinv", "logit", "ndtri")
OF_TWO = ("beta", "betaln", "binom", "gammainc", "gammaincc", "kl_div", "rel_entr", "xlog1py",
          "xlogy")  # fmt: skip
ONCE = ("gammainc", "gammaincc")  # no second derivative in the parameter
OF_ORDER = ("iv", "ive", "jv", "yv", "zeta")
# What XLA compiles for seconds to minutes under JAX's and TensorFlow's own transforms.
LONG = {"beta", "betainc", "betaln", "binom", "gammainc", "gammaincc", "iv", "ive", "jv",
        "polygamma", "yv", "zeta"}  # fmt: skip


def theirs(name):
    return getattr(np, name) if name == "sinc" else getattr(S, name)


def ours(name):
    return named(f"special.{name}")


def of_order(name):
    """A function of order 1.5."""
    return lambda iso, x: getattr(iso.special, name)(1.5, x), lambda x: theirs(name)(1.5, x)


def weighted_logsumexp(x, b):
    return np.log(np.abs((b * np.exp(x)).sum()))


FUNCTIONS = {
    **{name: each(ours(name), theirs(name)) for name in WHOLE},
    **{name: each(ours(name), theirs(name), SOME) for name in POSITIVE},
    **{name: each(ours(name), theirs(name), INSIDE) for name in BETWEEN},
    **{name: each(ours(name), theirs(name), SOME, INSIDE, n=2, order=1 if name in ONCE else 2)
       for name in OF_TWO},
    **{name: each(*of_order(name), LARGE) for name in OF_ORDER},
    "betainc": each(ours("betainc"), S.betainc, SOME, LARGE, INSIDE, n=3, order=1),
    "multigammaln": each(lambda iso, x: iso.special.multigammaln(x, 2),
                         lambda x: S.gammaln(x) + S.gammaln(x - 0.5) + np.log(np.pi) / 2, LARGE),
    "polygamma": each(lambda iso, x: iso.special.polygamma(2, x), lambda x: S.polygamma(2, x),
                      SOME),
    "logsumexp": Function(lambda iso, x, b: iso.special.logsumexp(x, b=b, return_sign=True)[0],
                          (V, V), weighted_logsumexp),
    "softmax": Function(ours("softmax"), (R,), softmax),
    "log_softmax": Function(ours("log_softmax"), (R,), log_softmax),
}  # fmt: skip
FUNCTIONS = {f"special.{name}": entry for name, entry in FUNCTIONS.items()}


# No eigenvalue of M + PLUS is near the negative axis, or near another one.

LINALG = {
    name.removeprefix("linalg."): entry
    for name, entry in NAMES.items()
    if name.startswith("linalg.") and name.removeprefix("linalg.") in iso.linalg.__all__
}


def unpivoted(a):
    """L and U of P a = L U, by elimination."""
    _, low, high = scipy.linalg.lu(a)
    return [low, high]


def sylvester(a, q):
    """The solution of a x + x aᵀ = q."""
    eye = np.eye(len(a))
    return np.linalg.solve(np.kron(eye, a) + np.kron(a, eye), q.T.ravel()).reshape(q.shape).T


def toeplitz(c, r):
    return np.array([[c[i - j] if i >= j else r[j - i] for j in range(len(r))]
                     for i in range(len(c))])  # fmt: skip


def polar(a):
    u, s, v = np.linalg.svd(a)
    return [u @ v, v.T @ np.diag(s) @ v]


def logged(a):
    """log a, by eigenvalues."""
    w, v = np.linalg.eig(a)
    return np.real(v * np.log(w) @ np.linalg.inv(v))


def rooted(a):
    w, v = np.linalg.eig(a)
    return np.real(v * np.sqrt(w + 0j) @ np.linalg.inv(v))


def raised(a):
    w, v = np.linalg.eig(a)
    return np.real(v * np.exp(w) @ np.linalg.inv(v))


ONE = LAPACK
BY_ROWS = LAPACK | {"mapped": "a Python if, while, and, or of a mapped value, or iso.cond"}
LINALG |= {
    "block_diag": Function(lambda iso, x, y: iso.linalg.block_diag(x, y), (M, R),
                           scipy.linalg.block_diag),
    "cho_factor": Function(lambda iso, x: iso.linalg.cho_factor(symmetric(iso, x))[0], (M,),
                           lambda x: np.linalg.cholesky(symmetric(np, x)).T, but=ONE),
    "cho_solve": Function(
        lambda iso, x, b: iso.linalg.cho_solve(iso.linalg.cho_factor(symmetric(iso, x)), b),
        (M, (4,)), lambda x, b: np.linalg.solve(symmetric(np, x), b), but=ONE),
    # what does not change with the order of eigenvalues
    "eig": Function(lambda iso, x: iso.namespace(x).sum(iso.linalg.eig(x).eigenvalues ** 3), (M,),
                    lambda x: np.trace(x @ x @ x) + 0j, (PLUS,), but=ONE),
    "eigvals": Function(lambda iso, x: iso.namespace(x).sum(iso.linalg.eigvals(x) ** 3), (M,),
                        lambda x: np.trace(x @ x @ x) + 0j, (PLUS,), but=ONE),
    "expm": Function(named("linalg.expm"), (M,), raised, (PLUS / 4,), but=BY_ROWS),
    "kron": Function(named("linalg.kron"), (M, (2, 4)), np.kron),
    "logdet": Function(named("linalg.logdet"), (M,), lambda x: np.log(np.linalg.det(x)), (PLUS,),
                       but=ONE),
    "logm": Function(named("linalg.logm"), (M,), logged, (PLUS,), but=BY_ROWS),
    "lstsq": Function(lambda iso, a, b: iso.linalg.lstsq(a, b).x, ((6, 4), (6,)),
                      lambda a, b: np.linalg.solve(a.T @ a, a.T @ b),
                      (np.eye(6, 4) * 3, None), but=ONE),
    "lu": Function(lambda iso, x: list(iso.linalg.lu(x)[1:]), (M,), unpivoted, (PLUS,), but=ONE),
    "polar": Function(lambda iso, x: list(iso.linalg.polar(x)), (M,), polar, (PLUS,), but=ONE),
    "solve_sylvester": Function(
        lambda iso, a, q: iso.linalg.solve_sylvester(a, iso.linalg.matrix_transpose(a), q), (M, M),
        sylvester, (PLUS, None), but=ONE),
    "solve_triangular": Function(
        lambda iso, a, b: iso.linalg.solve_triangular(a, b, lower=True), (M, (4,)),
        lambda a, b: np.linalg.solve(np.tril(a), b), (PLUS, None), but=ONE),
    "sqrtm": Function(named("linalg.sqrtm"), (M,), rooted, (PLUS,), but=BY_ROWS),
    "toeplitz": Function(named("linalg.toeplitz"), ((4,), (6,)), toeplitz,
                         but={"empty": "no first row"}),
}  # fmt: skip
FUNCTIONS |= {f"linalg.{name}": entry for name, entry in LINALG.items()}
