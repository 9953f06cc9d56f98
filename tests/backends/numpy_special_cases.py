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
NAMED = {*" ".join(DOMAINS.values()).split(), *OF_TWO, *INVERSES, "_zeta"}  # _zeta: of psi
OTHERS = {name: len(PARTIALS[name]) for name in PARTIALS if name not in NAMED}
SPECIAL = [
    *[(f"special {n} {d.__name__}", getattr(scipy.special, n), d(3, 4)) for d, names in DOMAINS.items() for n in names.split()],
    ("special inverses", lambda x: (scipy.special.erfinv(x / 3), scipy.special.erfcinv(x / 3), scipy.special.ndtri(x / 3), scipy.special.logit(x / 3)), P(4)),
    *[(f"special {n}", getattr(scipy.special, n), P(3, 4), P(4)) for n in OF_TWO],
    *[(f"special {n}", getattr(scipy.special, n), *(P(3, 4) for _ in range(k))) for n, k in OTHERS.items()],
]  # fmt: skip
