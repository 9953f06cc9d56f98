"""Special functions of real arrays, element by element, as SciPy defines them, with derivatives, on
every backend, eager and compiled.

Derivatives are right to second order in the main argument, and to first order in parameters such as
the `a` of `gammainc(a, x)`. The order of a Bessel function has no derivative here: asking for it
raises. Integers become the default floating dtype, half precision is computed in float32, and
arguments broadcast.
"""

from .bessel import i0 as i0
from .bessel import i0e as i0e
from .bessel import i1 as i1
from .bessel import i1e as i1e
from .bessel import iv as iv
from .bessel import ive as ive
from .bessel import jv as jv
from .bessel import yv as yv
from .errors import erf as erf
from .errors import erfc as erfc
from .errors import erfcx as erfcx
from .errors import erfinv as erfinv
from .errors import log_ndtr as log_ndtr
from .errors import ndtr as ndtr
from .errors import ndtri as ndtri
from .gamma import beta as beta
from .gamma import betainc as betainc
from .gamma import betaln as betaln
from .gamma import binom as binom
from .gamma import digamma as digamma
from .gamma import gamma as gamma
from .gamma import gammainc as gammainc
from .gamma import gammaincc as gammaincc
from .gamma import gammaln as gammaln
from .gamma import multigammaln as multigammaln
from .gamma import polygamma as polygamma
from .gamma import zeta as zeta
from .logarithms import entr as entr
from .logarithms import expit as expit
from .logarithms import kl_div as kl_div
from .logarithms import log_expit as log_expit
from .logarithms import log_softmax as log_softmax
from .logarithms import logit as logit
from .logarithms import logsumexp as logsumexp
from .logarithms import rel_entr as rel_entr
from .logarithms import sinc as sinc
from .logarithms import softmax as softmax
from .logarithms import xlog1py as xlog1py
from .logarithms import xlogy as xlogy

__all__ = sorted(name for name, x in globals().items() if callable(x))  # pyright: ignore


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
