"""The contract of a backend: its arrays, the names of the vocabulary, and fifteen verbs.

A backend is one subclass of `Backend` in `composed.py`, and one instance of it. The public
functions find it by the type of an array (`dispatch.py`) and call its methods. Every method that is
not a verb of this file is composed from the verbs and the vocabulary, and may be overridden where
the framework has something better. A verb that a framework cannot supply is named in `lacks` with
the reason, which users read in the error. `checks.py` has a test of each verb for any backend.

Throughout, `xp` is the backend itself, whose attributes include the vocabulary: `xp.tanh` is the
framework's own `tanh`. `iso.namespace` returns `xp.namespace`, the vocabulary alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, cast

from .vocabulary import FFT, LINALG, VOCABULARY, Names

if TYPE_CHECKING:
    from ..types.standard import Namespace

Leaves = tuple[Any, ...]
Pullback = Callable[[Leaves], Leaves]


class Price(NamedTuple):
    """What compiling a training step costs and saves, in seconds, by the arrays and numbers of the
    model. `benchmarks/waits.py` measures it.
    """

    program: float  # to compile it
    program_array: float  # and more for each array of the model
    step: float  # saved in each step
    step_array: float  # and more for each array
    step_number: float  # and for each number of the model and each row of the batch


class Contract(Names):
    """One framework: its arrays, its vocabulary and its verbs."""

    name: str
    arrays: tuple[type, ...]  # the types of its arrays
    refused: tuple[type, ...] = ()  # types that look like arrays, but compute something else
    lacks: Mapping[str, str] = {}  # the verbs it cannot supply -> the reason
    namespace: Namespace  # returned by iso.namespace
    linalg: Names
    fft: Names
    __array_api_version__ = "2024.12"

    def __init__(xp, *sources: Any, linalg: Sequence[Any], fft: Sequence[Any]):
        """Each name of the vocabulary is a method of the class, or else comes from the first of the
        `sources` (mostly modules) that has it.
        """
        title = f"isomorph.{xp.name}"
        super().__init__(title, [n for n in VOCABULARY if not hasattr(type(xp), n)], sources)
        xp.linalg = Names(f"{title}.linalg", LINALG, linalg)
        xp.fft = Names(f"{title}.fft", FFT, fft)
        wanted = (*VOCABULARY, "linalg", "fft", "__array_api_version__")
        xp.namespace = cast(Any, Names(title, wanted, [xp], ", einsum, erf and pad"))

    def __repr__(xp) -> str:
        return f"<the backend {xp.name}>"

    # Differentiation. `func` takes the leaves one by one and returns a tuple of outputs and a tuple
    # of auxiliary arrays.

    def vjp(
        xp,
        func: Callable[..., tuple[Leaves, Leaves]],
        leaves: Leaves,
        once: bool = False,
        has_aux: bool = True,
    ) -> tuple[Leaves, Pullback, Leaves]:
        """Run `func` on the leaves; return its outputs, the pullback from gradients of outputs to
        gradients of leaves, and the aux arrays.

        The pullback of complex arrays is the conjugate transpose of the Jacobian. `once` promises
        that it is called at most once, `has_aux=False` that there are no aux arrays.
        """
        xp._lacks("vjp")

    def custom_call(xp, rule: Any, arrays: Leaves) -> Leaves:
        """Call a function with a custom backward rule: `rule.func(*arrays) -> outs`,
        `rule.fwd(*arrays) -> (outs, residuals)`, `rule.bwd(residuals, upstream, arrays) -> grads`.
        """
        xp._lacks("custom_call")

    def stop_gradient(xp, x: Any, preserve_type: bool = True) -> Any:
        """The same values, detached from differentiation; a variable gives a new variable."""
        xp._lacks("stop_gradient")

    def is_watched(xp, x: Any) -> bool:
        """Whether `x` is being differentiated."""
        xp._lacks("is_watched")

    # Compiling. A backend whose framework takes nests itself supplies `jit` (see `composed.py`)
    # instead of the first two.

    def compile(
        xp, func: Callable[..., Leaves], arrays: Sequence[Any], given: Sequence[bool]
    ) -> Callable[..., Any]:
        """The program that computes `func` for arrays like `arrays`; `func` is traced now. Results
        may reuse the memory of arrays that are `given` away: True for each such array, or empty for
        none.
        """
        xp._lacks("compile")

    def signature(xp, arrays: Sequence[Any]) -> Hashable:
        """Everything that a program compiled for `arrays` depends on."""
        xp._lacks("signature")

    def is_tracing(xp, arrays: Sequence[Any]) -> bool:
        """Whether another transform or compiler is tracing."""
        xp._lacks("is_tracing")

    # Values and devices.

    def to_numpy(xp, x: Any) -> Any:
        """A NumPy array with the values of `x`, sharing its memory if possible."""
        xp._lacks("to_numpy")

    def from_numpy(xp, x: Any, device: Any = None) -> Any:
        """An array of this backend with the values of the NumPy array `x`, sharing memory if
        possible.
        """
        xp._lacks("from_numpy")

    def at_hand(xp, x: Any) -> Any:
        """A NumPy array of the values, if that costs nothing and nothing is traced; else None."""
        xp._lacks("at_hand")

    def devices(xp) -> list[str]:
        """The names of the devices that arrays of this backend can be on."""
        xp._lacks("devices")

    # NumPy's indexing.

    def index_get(xp, x: Any, index: Any) -> Any:
        """`x[index]`."""
        xp._lacks("index_get")

    def index_update(xp, x: Any, index: Any, value: Any, how: str) -> Any:
        """A copy of `x` with `x[index]` set to, or combined with, `value`; `how`: set, add,
        multiply, min or max.
        """
        xp._lacks("index_update")

    # Dtypes and random numbers.

    def narrow(xp, name: str) -> Any:
        """The dtype float16 or bfloat16, which the standard does not have; None if the backend does
        not have it either.
        """
        xp._lacks("narrow")

    def quick(xp, key: Any, shape: tuple, dtype: Any, normal: bool) -> Any:
        """Uniform numbers in [0, 1), or normal ones, from the framework's own generator."""
        xp._lacks("quick")

    def _lacks(xp, verb: str) -> NoReturn:
        why = f": {xp.lacks[verb]}" if verb in xp.lacks else ""
        raise NotImplementedError(f"backend {xp.name} has no {verb}{why}")
