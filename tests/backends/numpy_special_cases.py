"""SciPy's special ufuncs, differentiated in test_numpy_rules.py; SciPy belongs to the tests, not to the library."""

# ruff: noqa: E501  (a case is one line)

import scipy.special
from numpy_rule_cases import P, R, Z

from isomorph.backends.numpy.rules.special import PARTIALS

DOMAINS = {
    R: "erf erfc erfcx ndtr log_ndtr expit log_expit i0 i1 j0 j1 cosm1",
    P: "gammaln loggamma gamma psi digamma entr",
    Z: "erf erfc",
}
OF_TWO = ("xlogy", "xlog1py", "rel_entr", "kl_div")
INVERSES = ("erfinv", "erfcinv", "ndtri", "logit")
PART = ("ellipk", "ellipe", "ellipkm1")  # of numbers from 0 to 1
# What has no derivative for its first arguments: these, and whether the last one is below 1.
FIRST = {
    "gammainc": (1.7,), "gammaincc": (1.7,), "stdtr": (3.5,), "chdtr": (3.5,), "chdtrc": (3.5,),
    "fdtr": (3.5, 4.5), "fdtrc": (3.5, 4.5), "pdtr": (2,), "pdtrc": (2,), "expn": (2,),
    "hyp0f1": (1.7,), "hyp1f1": (0.4, 1.7), "iv": (1.5,), "ive": (1.5,), "jv": (1.5,),
    "yv": (1.5,), "yn": (2,), "kv": (1.5,), "kve": (1.5,),
}  # fmt: skip
FIRST_OF_PART = {
    "gammaincinv": (1.7,), "gammainccinv": (1.7,), "betainc": (1.3, 2.4), "betaincc": (1.3, 2.4),
    "betaincinv": (1.3, 2.4), "betainccinv": (1.3, 2.4), "stdtrit": (3.5,),
    "hyp2f1": (0.4, 1.2, 2.1),
}  # fmt: skip
NAMED = {*" ".join(DOMAINS.values()).split(), *OF_TWO, *INVERSES, "_zeta"}  # _zeta: of psi
NAMED |= {
    *PART,
    *FIRST,
    *FIRST_OF_PART,
    "ndtri_exp",
    "_lambertw",
    "wofz",
    "ellipkinc",
    "ellipeinc",
    "binom",
    "huber",
}
OTHERS = {name: len(PARTIALS[name]) for name in PARTIALS if name not in NAMED}


def after(name, first, scale=1.0):
    func = getattr(scipy.special, name)
    return lambda x: func(*first, x * scale)


SPECIAL = [
    *[(f"special {n} {d.__name__}", getattr(scipy.special, n), d(3, 4)) for d, names in DOMAINS.items() for n in names.split()],
    ("special inverses", lambda x: (scipy.special.erfinv(x / 3), scipy.special.erfcinv(x / 3), scipy.special.ndtri(x / 3), scipy.special.logit(x / 3)), P(4)),
    *[(f"special {n}", getattr(scipy.special, n), P(3, 4), P(4)) for n in OF_TWO],
    *[(f"special {n}", getattr(scipy.special, n), *(P(3, 4) for _ in range(k))) for n, k in OTHERS.items()],
    *[(f"special {n}", after(n, ()), P(4) / 3) for n in PART],
    *[(f"special {n}", after(n, first), P(4)) for n, first in FIRST.items()],
    *[(f"special {n}", after(n, first), P(4) / 3) for n, first in FIRST_OF_PART.items()],
    ("special ndtri_exp", after("ndtri_exp", (), -1.0), P(4)),
    ("special lambertw", lambda x: scipy.special.lambertw(x), P(4)),
    ("special wofz", scipy.special.wofz, Z(4)),
    ("special huber", lambda d, x: (scipy.special.huber(d, 9 * x), scipy.special.huber(d + 3, x)), P(4), P(4)),  # both sides of the kink
    ("special binom", lambda x, k: scipy.special.binom(x + 3, k), P(4), P(4)),
    ("special elliptic", lambda x: (scipy.special.ellipkinc(x, 0.3), scipy.special.ellipeinc(x, 0.3)), P(4)),
]  # fmt: skip
