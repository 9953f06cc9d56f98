"""Every public function of NumPy, called on traced values through `isomorph.numpy`: it
differentiates rightly, or has no floating result, or raises and names a remedy. None loses the
gradient without a word.

The arguments are the first of `GUESSES` that NumPy itself accepts, unless `ARGUMENTS` has some.
"""

import inspect
import warnings

import numpy as np
import pytest

import isomorph as iso
import isomorph.numpy as inp
from isomorph.backends.numpy.traced import Traced
from oracles import central_gradient

pytestmark = pytest.mark.parametrize("backend", ["numpy"], indirect=True)

V = np.array([0.55, 0.3, 0.8])
M = np.array([[2.1, 0.3, 0.4], [0.2, 1.8, 0.5], [0.6, 0.1, 2.5]])
WHERE = {"": (np, inp), "linalg.": (np.linalg, inp.linalg), "fft.": (np.fft, inp.fft),
         "emath.": (np.emath, inp.emath)}  # fmt: skip
REMEDIES = ("iso.", "isomorph.", "np.stack", "use the result", "use a float dtype", "plain")
# fmt: off
GUESSES = (
    lambda f, x: f(x),
    lambda f, x: f(x, x[::-1] * 1.5),
    lambda f, x: f(x, 1),
    lambda f, x: f([x, x * 2]),
    lambda f, x: f(x, (0,), (0,)),
    lambda f, x: f(x, 0, 0),
)
# Functions that need other arguments; some differentiate only with respect to some of them.
ARGUMENTS = {
    "apply_along_axis": (lambda f, x: f(lambda v: v * v[0], 0, x), M),
    "apply_over_axes": (lambda f, x: f(np.sum, x, [0]), M),
    "arange": (lambda f, x: f(x[0], 4.0, x[1]), V),
    "acosh": (lambda f, x: f(x), V + 2),
    "arccosh": (lambda f, x: f(x), V + 2),
    "corrcoef": (lambda f, x: f(x), M),
    "intersect1d": (lambda f, x: f(x, x[:2]), V),
    "asarray_chkfinite": (lambda f, x: f([x, x]), V),
    "array": (lambda f, x: f([[x[0], 1.0], [x[1], x[2]]]), V),
    "average": (lambda f, x: f(x, weights=x * x), V),
    "bincount": (lambda f, x: f(np.array([0, 2, 0]), x), V),
    "bmat": (lambda f, x: f([[x, x]]), M),
    "block": (lambda f, x: f([[x, x], [x * 2, x]]), M),
    "broadcast_to": (lambda f, x: f(x, (2, 3)), V),
    "busday_offset": None, "busday_count": None, "is_busday": None, "busdaycalendar": None,
    "choose": (lambda f, x: f(np.array([0, 1, 0]), [x, x * 2]), V),
    "clip": (lambda f, x: f(x, 0.4, 0.6), V),
    "column_stack": (lambda f, x: f([[x[0], x[1]], x[:2]]), V),
    "compress": (lambda f, x: f([True, False, True], x), V),
    "concat": (lambda f, x: f([x, [x[0], 2.0]]), V),
    "concatenate": (lambda f, x: f([x, [x[0], 2.0]]), V),
    "copyto": (lambda f, x: f(np.zeros(3), x), V),
    "cross": (lambda f, x: f(x, x[::-1] ** 2), V),
    "delete": (lambda f, x: f(x, 1), V),
    "dsplit": (lambda f, x: f(np.reshape(x, (1, 1, 3)), 3), V),
    "digitize": (lambda f, x: f(x, [0.1, 0.6]), V),
    "einsum": (lambda f, x: f("ij,jk->ik", x, x), M),
    "einsum_path": (lambda f, x: f("ij,jk->ik", x, x), M),
    "astype": (lambda f, x: f(x, np.complex128) * 2j, V),
    "empty_like": None, "fft.fftfreq": (lambda f, x: f(4, x[0]), V),
    "fft.rfftfreq": (lambda f, x: f(4, x[0]), V), "ix_": (lambda f, x: f(x, [0, 1]), V),
    "polyfit": (lambda f, x: f(np.arange(3.0), x, 1), V),
    "emath.arccos": (lambda f, x: f(x * 2), V), "emath.logn": (lambda f, x: f(2, x), V),
    "emath.sqrt": (lambda f, x: np.imag(f(-x)) + np.real(f(-x + 1j)), V),
    "extract": (lambda f, x: f([True, False, True], x), V),
    "fill_diagonal": (lambda f, x: f(np.zeros((3, 3)), x), V),
    "fromfunction": (lambda f, x: f(lambda i, j: i * x[0] + j * x[1], (2, 3)), V),
    "fromiter": (lambda f, x: f((v * v for v in x), float), V),
    "frompyfunc": (lambda f, x: f(lambda v: v * v, 1, 1)(x), V),
    "full": (lambda f, x: f((2, 3), x), V), "full_like": (lambda f, x: f(np.zeros((2, 3)), x), V),
    "histogram": (lambda f, x: f(x, np.array([0.0, 0.4, 1.0])), V),
    "insert": (lambda f, x: f(x, 1, x[0] ** 2), V),
    "interp": (lambda f, x: f(x, [0.0, 0.5, 1.0], x), V),
    "kaiser": (lambda f, x: f(5, x[0]), V),
    "linspace": (lambda f, x: f(x[0], x[1], 4), V),
    "logspace": (lambda f, x: f(x[0], x[1], 4), V),
    "geomspace": (lambda f, x: f(x[0], x[1], 4), V),
    "linalg.eig": (lambda f, x: np.real(f(x)[0]), M),
    "linalg.eigh": (lambda f, x: f(x + x.T)[0], M),
    "linalg.eigvalsh": (lambda f, x: f(x + x.T), M),
    "linalg.cholesky": (lambda f, x: f(x + x.T), M),
    "linalg.matrix_power": (lambda f, x: f(x, 3), M),
    "linalg.multi_dot": (lambda f, x: f([x, x * 2, x]), M),
    "linalg.svd": (lambda f, x: f(x)[1], M),
    "linalg.qr": (lambda f, x: np.abs(f(x)[1]), M),
    "linalg.tensorsolve": (lambda f, x: f(x, V), M),
    "linalg.tensorinv": (lambda f, x: f(x, 1), M),
    "linalg.cond": (lambda f, x: f(x), M),
    "fft.irfftn": (lambda f, x: f(x), M), "fft.irfft2": (lambda f, x: f(x), M),
    "histogram2d": (lambda f, x: f(x, x), V), "histogramdd": (lambda f, x: f([x, x]), V),
    "ldexp": (lambda f, x: f(x, 2), V),
    "may_share_memory": (lambda f, x: f(x, x), V), "shares_memory": (lambda f, x: f(x, x), V),
    "pad": (lambda f, x: f(x, 1, "reflect"), V),
    "partition": (lambda f, x: f(x, 1), V), "percentile": (lambda f, x: f(x, 30.0), V),
    "piecewise": (lambda f, x: f(x, [x > 0.5], [np.sin, np.cos]), V),
    "place": (lambda f, x: f(np.zeros(3), [True] * 3, x), V),
    "put": (lambda f, x: f(np.zeros(3), [0, 1], x), V),
    "put_along_axis": (lambda f, x: f(np.zeros(3), np.array([0, 1]), x[:2], 0), V),
    "putmask": (lambda f, x: f(np.zeros(3), [True] * 3, x), V),
    "quantile": (lambda f, x: f(x, 0.3), V), "nanquantile": (lambda f, x: f(x, 0.3), V),
    "ravel_multi_index": None, "unravel_index": None,
    "repeat": (lambda f, x: f(x, 2), V), "require": (lambda f, x: f([x, x]), V),
    "resize": (lambda f, x: f(x, (2, 4)), V), "roll": (lambda f, x: f(x, 1), V),
    "rollaxis": (lambda f, x: f(x, 1), M), "moveaxis": (lambda f, x: f(x, 0, 1), M),
    "reshape": (lambda f, x: f(x, (3, 1)), V),
    "select": (lambda f, x: f([np.array([True, False, False])], [x], x * 2), V),
    "searchsorted": (lambda f, x: f(np.sort(x), 0.4), V),
    "split": (lambda f, x: f(x, 3), V), "array_split": (lambda f, x: f(x, 2), V),
    "sum": (lambda f, x: f([x[0], x[1]]), V), "max": (lambda f, x: f([x[0], x[1]]), V),
    "swapaxes": (lambda f, x: f(x, 0, 1), M), "tile": (lambda f, x: f(x, 2), V),
    "take": (lambda f, x: f(x, [0, 2]), V),
    "take_along_axis": (lambda f, x: f(x, np.array([0, 2]), 0), V),
    "tensordot": (lambda f, x: f(x, x, 1), M), "transpose": (lambda f, x: f(x), M),
    "vander": (lambda f, x: f(x, 3), V),
    "where": (lambda f, x: f(V > 0.5, x, [x[0], 1.0, x[2]]), V),
    "vectorize": (lambda f, x: f(lambda a, b: a * b if a > 0.5 else b)(x, x[::-1]), V),
    "ndenumerate": (lambda f, x: sum(v * i[0] for i, v in f(x)), V),
    "r_": (lambda f, x: f[x, 1:4, x[0]], V), "c_": (lambda f, x: f[x, x * 2], V),
    "mgrid": None, "ogrid": None, "s_": None, "index_exp": None,
}
# fmt: on
# What reads or writes files and memory, sets options or describes types: it computes nothing.
NOTHING = """
    frombuffer nested_iters fromfile fromregex fromstring from_dlpack genfromtxt load loadtxt save
    savetxt savez savez_compressed get_include get_printoptions set_printoptions printoptions
    getbufsize setbufsize geterr seterr geterrcall seterrcall info show_config show_runtime test
    datetime_as_string datetime_data typename mintypecode isdtype issubdtype promote_types
    broadcast_shapes base_repr binary_repr format_float_positional format_float_scientific
"""


# Functions of integers, bits or dates, for which there are no floating arguments.
INTEGERS = """
    bartlett bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or
    bitwise_right_shift bitwise_xor blackman can_cast diag_indices empty eye gcd hamming hanning
    identity indices invert isnat lcm left_shift mask_indices ones packbits right_shift tri
    tril_indices triu_indices unpackbits zeros"""
# Functions that raise on traced values: they change an array, need plain memory, or have no rule.
RAISE = """asmatrix bmat copyto fill_diagonal frompyfunc histogram2d histogram_bin_edges
    histogramdd i0 kaiser place polydiv put put_along_axis putmask"""


def names():
    for prefix, (theirs, _) in WHERE.items():
        for name in dir(theirs):
            thing = getattr(theirs, name, None)
            known = callable(thing) and not isinstance(thing, type) and not inspect.ismodule(thing)
            named = name in ("vectorize", "ndenumerate", "r_", "c_")
            if not name.startswith("_") and (known or named) and name not in NOTHING.split():
                yield prefix + name


def floats(y):
    """The floating-point arrays in a result, traced or not."""
    if isinstance(y, (list, tuple)):
        return [part for each in y for part in floats(each)]
    if type(y) is not Traced and not isinstance(y, (np.ndarray, np.generic, float)):
        return []
    return [y] if type(y) is Traced or np.asarray(y).dtype.kind in "fc" else []


def call_of(name):
    """How the function is called, and the value that is differentiated."""
    if name in ARGUMENTS:
        return ARGUMENTS[name]
    prefix = name[: name.index(".") + 1] if "." in name else ""
    theirs = getattr(WHERE[prefix][0], name.removeprefix(prefix))
    for guess in GUESSES:
        for x in (M, V) if prefix == "linalg." else (V, M):
            try:
                with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                    guess(theirs, x.copy())
            except Exception:
                continue
            return guess, x
    return None


CALLS = {name: call_of(name) for name in sorted(names())}
SMOOTH = [name for name in CALLS if CALLS[name] and name not in RAISE.split()]


def pair(name):
    """NumPy's function and ours."""
    prefix = name[: name.index(".") + 1] if "." in name else ""
    return (getattr(module, name.removeprefix(prefix)) for module in WHERE[prefix])


def total(call, func):
    """A scalar that depends on every floating number in the result."""

    def scalar(x):
        out = 0.0 * np.sum(x)
        for i, y in enumerate(floats(call(func, x))):
            weights = np.reshape(np.cos(np.arange(np.size(y)) + i), np.shape(y))
            out = out + np.sum(np.real(y) * weights)
            if np.iscomplexobj(y):
                out = out + np.sum(np.imag(y) * (weights + 1.5))
        return out

    return scalar


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SMOOTH)
def test_a_function_differentiates(backend, name):
    call, x = CALLS[name]
    theirs, ours = pair(name)
    plain, same = call(theirs, x.copy()), call(ours, x.copy())
    for a, b in zip(floats(plain), floats(same), strict=True):
        np.testing.assert_array_equal(a, b)
    gradient = iso.grad(total(call, ours))(x.copy())
    # central differences are right to about 1e-9 times the size of the values
    wanted = central_gradient(total(call, theirs), x)
    assert np.isfinite(wanted).all()
    np.testing.assert_allclose(gradient, wanted, rtol=1e-6, atol=1e-7)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", RAISE.split())
def test_a_function_without_a_rule_says_what_to_do(backend, name):
    call, x = CALLS[name]
    with pytest.raises((NotImplementedError, TypeError, ValueError)) as caught:
        _, ours = pair(name)
        iso.grad(total(call, ours))(x.copy())
    said = str(caught.value) + "".join(getattr(caught.value, "__notes__", ()))
    assert any(word in said for word in REMEDIES), said


def test_every_name_was_called_or_has_no_floating_arguments(backend):
    left = {name for name in CALLS if not CALLS[name]}
    without = {name for name in ARGUMENTS if ARGUMENTS[name] is None}
    assert left - without == set(INTEGERS.split())
    assert len(SMOOTH) > 300
