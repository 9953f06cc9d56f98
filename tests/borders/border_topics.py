"""One call of every function of `iso.special` and `iso.linalg`, as a function of one vector; see
`border_functions`. What `iso.linalg` shares with the namespace is called as `border_names` does.
"""

import border_names
from border_functions import const, cut

import isomorph as iso

S, L = iso.special, iso.linalg


def positive(x):
    return x * x + 0.4


def fraction(x):
    """Numbers from 0.1 to 0.9."""
    return 0.5 + 0.45 * x


def matrix(x, rows=3, columns=3):
    """No eigenvalue is near the negative axis, or near another one."""
    c = cut(x)(rows, columns)
    return c + const(x, [[(i + 2.0) * (i == j) for j in range(columns)] for i in range(rows)])


def symmetric(x):
    a = matrix(x)
    return a @ iso.namespace(x).matrix_transpose(a)


SPECIAL = {
    **{
        name: getattr(S, name)
        for name in (
            "erf", "erfc", "erfcx", "expit", "i0", "i0e", "i1", "i1e", "log_expit", "log_ndtr",
            "ndtr", "sinc",
        )
    },
    **{
        name: lambda x, name=name: getattr(S, name)(positive(x))
        for name in ("digamma", "entr", "gamma", "gammaln")
    },
    **{
        name: lambda x, name=name: getattr(S, name)(fraction(x))
        for name in ("erfinv", "logit", "ndtri")
    },
    **{
        name: lambda x, name=name: getattr(S, name)(positive(x), fraction(x))
        for name in (
            "beta", "betaln", "binom", "gammainc", "gammaincc", "kl_div", "rel_entr", "xlog1py",
            "xlogy",
        )
    },
    **{
        name: lambda x, name=name: getattr(S, name)(1.5, positive(x))
        for name in ("iv", "ive", "jv", "yv", "zeta")
    },
    "betainc": lambda x: S.betainc(positive(x), 1.5 + x, fraction(x)),
    "multigammaln": lambda x: S.multigammaln(positive(x) + 1, 2),
    "polygamma": lambda x: S.polygamma(2, positive(x)),
    "logsumexp": lambda x: S.logsumexp(x[:12], b=x[12:], return_sign=True)[0],
}  # fmt: skip
LINALG = {
    "block_diag": lambda x: L.block_diag(matrix(x), matrix(x, 1, 4)),
    "cho_factor": lambda x: L.cho_factor(symmetric(x))[0],
    "cho_solve": lambda x: L.cho_solve(L.cho_factor(symmetric(x)), x[:3]),
    # what does not change with the order of eigenvalues
    "eig": lambda x: iso.namespace(x).sum(L.eig(matrix(x)).eigenvalues ** 3),
    "eigvals": lambda x: iso.namespace(x).sum(L.eigvals(matrix(x)) ** 3),
    "expm": lambda x: L.expm(matrix(x)),
    "kron": lambda x: L.kron(matrix(x), matrix(x, 2, 1)),
    "logdet": lambda x: L.logdet(matrix(x)),
    "logm": lambda x: L.logm(matrix(x)),
    "lstsq": lambda x: L.lstsq(matrix(x, 4, 3), x[:4]).x,
    "lu": lambda x: L.lu(matrix(x))[1:],
    "polar": lambda x: L.polar(matrix(x)),
    "solve_sylvester": lambda x: L.solve_sylvester(matrix(x), symmetric(x), matrix(x)),
    "solve_triangular": lambda x: L.solve_triangular(matrix(x), x[:3], lower=True),
    "sqrtm": lambda x: L.sqrtm(matrix(x)),
    "toeplitz": lambda x: L.toeplitz(x[:4], x[4:8]),
}
SHARED = {
    name: lambda x, call=call: call(iso, x)
    for name, call in border_names.NAMES.items()
    if name.startswith("linalg.")
}
TOPICS = (
    {f"special.{name}": func for name, func in SPECIAL.items()}
    | {f"linalg.{name}": func for name, func in LINALG.items()}
    | SHARED
)
