"""The error function, which NumPy lacks: the rational approximations of Sun's fdlibm (s_erf.c),
within 3 ulps in float64.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

import numpy

from .tape import primitive, rule

np: Any = numpy  # its type stubs do not know traced values

# Coefficients of numerators and denominators, the lowest power first, for |x| below 0.84375, 1.25,
# 1/0.35 and 6.
SMALL = (
    (1.28379167095512558561e-01, -3.25042107247001499370e-01, -2.84817495755985104766e-02,
     -5.77027029648944159157e-03, -2.37630166566501626084e-05),
    (1.0, 3.97917223959155352819e-01, 6.50222499887672944485e-02, 5.08130628187576562776e-03,
     1.32494738004321644526e-04, -3.96022827877536812320e-06),
)  # fmt: skip
NEAR_ONE = (
    (-2.36211856075265944077e-03, 4.14856118683748331666e-01, -3.72207876035701323847e-01,
     3.18346619901161753674e-01, -1.10894694282396677476e-01, 3.54783043256182359371e-02,
     -2.16637559486879084300e-03),
    (1.0, 1.06420880400844228286e-01, 5.40397917702171048937e-01, 7.18286544141962662868e-02,
     1.26171219808761642112e-01, 1.36370839120290507362e-02, 1.19844998467991074170e-02),
)  # fmt: skip
MIDDLE = (
    (-9.86494403484714822705e-03, -6.93858572707181764372e-01, -1.05586262253232909814e01,
     -6.23753324503260060396e01, -1.62396669462573470355e02, -1.84605092906711035994e02,
     -8.12874355063065934246e01, -9.81432934416914548592e00),
    (1.0, 1.96512716674392571292e01, 1.37657754143519042600e02, 4.34565877475229228821e02,
     6.45387271733267880336e02, 4.29008140027567833386e02, 1.08635005541779435134e02,
     6.57024977031928170135e00, -6.04244152148580987438e-02),
)  # fmt: skip
LARGE = (
    (-9.86494292470009928597e-03, -7.99283237680523006574e-01, -1.77579549177547519889e01,
     -1.60636384855821916062e02, -6.37566443368389627722e02, -1.02509513161107724954e03,
     -4.83519191608651397019e02),
    (1.0, 3.03380607434824582924e01, 3.25792512996573918826e02, 1.53672958608443695994e03,
     3.19985821950859553908e03, 2.55305040643316442583e03, 4.74528541206955367215e02,
     -2.24409524465858183362e01),
)  # fmt: skip
AT_ONE = 8.45062911510467529297e-01  # erf(1), rounded to float32


@primitive
def erf(x: Any, /) -> Any:
    """2/√π ∫₀ˣ e^(−t²) dt of a real array."""
    x = np.asarray(x)
    narrow = x.dtype in (np.float16, np.float32)
    wide = np.atleast_1d(x.astype(np.float32 if narrow else np.float64))
    size = np.abs(wide)
    out = np.sign(wide)  # for |x| >= 6; NaN stays
    for low, high, part in (
        (0.0, 0.84375, _small), (0.84375, 1.25, _near_one), (1.25, 1 / 0.35, _middle),
        (1 / 0.35, 6.0, _large),
    ):  # fmt: skip
        where = (size >= low) & (size < high)
        if where.any():
            found = wide[where]
            out[where] = part(found, np.abs(found))
    return np.reshape(out, x.shape).astype(x.dtype if x.dtype.kind == "f" else out.dtype)[()]


def _small(x: Any, size: Any) -> Any:
    return x + x * _ratio(SMALL, x * x)


def _near_one(x: Any, size: Any) -> Any:
    return np.copysign(AT_ONE + _ratio(NEAR_ONE, size - 1), x)


def _middle(x: Any, size: Any) -> Any:
    return np.copysign(1 - _tail(MIDDLE, size), x)


def _large(x: Any, size: Any) -> Any:
    return np.copysign(1 - _tail(LARGE, size), x)


def _tail(table: tuple, size: Any) -> Any:
    return np.exp(-size * size - 0.5625 + _ratio(table, 1 / (size * size))) / size


def _ratio(table: tuple, s: Any) -> Any:
    top, bottom = (_polynomial(c, s) for c in table)
    return top / bottom


def _polynomial(coefficients: tuple, s: Any) -> Any:
    total = coefficients[-1]
    for c in coefficients[-2::-1]:
        total = total * s + c
    return total


@rule(erf)
def _(y: Any, x: Any) -> Any:
    return (lambda g: g * (2 / sqrt(pi)) * np.exp(-x * x),)
