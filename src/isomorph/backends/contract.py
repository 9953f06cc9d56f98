"""What a backend must supply: its arrays, the names of the vocabulary, and fifteen verbs.

A backend is one class, of `Backend` in `composed.py`, and one instance of it. Doors find it by the
type of an array (`dispatch.py`) and call its methods; everything that is no verb of this file is
composed of these and of the vocabulary, and may be overridden by what the framework does better. A
verb that a framework has no way to supply is named in `lacks` with the reason, which is what its
users read. `checks.py` has a test of each verb that any backend can run.

Throughout, `xp` is the backend itself, whose attributes are the vocabulary too: `xp.tanh` is the
framework's own `tanh`. What users get from `iso.namespace` is `xp.namespace`, the vocabulary alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, cast

from .vocabulary import FFT, LINALG, VOCABULARY, Names

if TYPE_CHECKING:
    from ..standard import Namespace

Leaves = tuple[Any, ...]
Pullback = Callable[[Leaves], Leaves]


class Contract(Names):
    """One framework: its arrays, its vocabulary and its verbs."""

    name: str
    arrays: tuple[type, ...]  # what counts as an array here
    refused: tuple[type, ...] = ()  # and what looks like one, but means something else
    lacks: Mapping[str, str] = {}  # the verbs it cannot supply, and why
    namespace: Namespace  # what users get
    linalg: Names
    fft: Names
    __array_api_version__ = "2024.12"

    def __init__(xp, *sources: Any, linalg: Sequence[Any], fft: Sequence[Any]):
        """Each name of the vocabulary is a method of the class or else comes from the first of the
        `sources`, modules mostly, that has it.
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
        """Run `func` on the leaves; give its outputs, the map from output to leaf gradients, and
        the aux arrays.

        The pullback of complex arrays is the conjugate transpose of the Jacobian. `once` promises
        that it is called at most once, `has_aux=False` that there are no aux arrays.
        """
        xp._lacks("vjp")

    def custom_call(xp, rule: Any, arrays: Leaves) -> Leaves:
        """Call a function that has its own backward rule: `rule.func(*arrays) -> outs`,
        `rule.fwd(*arrays) -> (outs, residuals)`, `rule.bwd(residuals, upstream, arrays) -> grads`.
        """
        xp._lacks("custom_call")

    def stop_gradient(xp, x: Any, preserve_type: bool = True) -> Any:
        """The same values, cut off from differentiation; a fresh variable for a variable."""
        xp._lacks("stop_gradient")

    def is_watched(xp, x: Any) -> bool:
        """Whether a differentiation is recording what becomes of `x`."""
        xp._lacks("is_watched")

    # Compiling. A backend whose framework takes nests itself supplies `jit` (see `composed.py`) in
    # the place of the first two.

    def compile(
        xp, func: Callable[..., Leaves], arrays: Sequence[Any], given: Sequence[bool]
    ) -> Callable[..., Any]:
        """The program that computes `func` for arrays like `arrays`; `func` is traced now. Results
        may be in the memory of those that are `given` away: all, or none where it is empty.
        """
        xp._lacks("compile")

    def signature(xp, arrays: Sequence[Any]) -> Hashable:
        """All that a program made for `arrays` depends on."""
        xp._lacks("signature")

    def is_tracing(xp, arrays: Sequence[Any]) -> bool:
        """Whether another transform or compiler is looking on."""
        xp._lacks("is_tracing")

    # Values, and the devices they are on.

    def to_numpy(xp, x: Any) -> Any:
        """A NumPy array with the values of `x`, sharing its memory where that is possible."""
        xp._lacks("to_numpy")

    def from_numpy(xp, x: Any, device: Any = None) -> Any:
        """An array of this backend with the values of the NumPy array `x`, sharing memory where
        that is possible.
        """
        xp._lacks("from_numpy")

    def at_hand(xp, x: Any) -> Any:
        """A NumPy array of the values, where that costs nothing and no one is looking on; else
        None.
        """
        xp._lacks("at_hand")

    def devices(xp) -> list[str]:
        """The names of the devices arrays of this backend can live on."""
        xp._lacks("devices")

    # Indexing with NumPy's meaning.

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
        """The dtype called float16 or bfloat16, which the standard does not have; None where there
        is none.
        """
        xp._lacks("narrow")

    def quick(xp, key: Any, shape: tuple, dtype: Any, normal: bool) -> Any:
        """Uniform numbers of [0, 1), or normal ones, of the framework's own generator."""
        xp._lacks("quick")

    def _lacks(xp, verb: str) -> NoReturn:
        why = f": {xp.lacks[verb]}" if verb in xp.lacks else ""
        raise NotImplementedError(f"backend {xp.name} has no {verb}{why}")
