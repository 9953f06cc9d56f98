"""Compile a function with the compiler of the framework of its arrays.

Frameworks with a compiler trace the function once per structure, shape and dtype of its arguments,
by running it on placeholder arrays. NumPy has no compiler and runs the function directly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from functools import wraps
from inspect import Parameter, signature
from threading import get_ident
from typing import TYPE_CHECKING, Any

from ..core import tree
from ..core.default_backend import HOME, home
from ..core.dispatch import BACKENDS, NUMBERS, backend_of, check_callable, find_backend
from ..core.gradient_mode import MODES, is_on
from .kept_programs import STOPS
from .recompiling import Reasons
from .slow_compilation import Notice, end, name_of, noticed
from .verifying import AS_IT_IS, Arguments, arguments, check

if TYPE_CHECKING:
    from ..core.contract import Contract
    from ..types.array_types import P, R


# Whether a function given to `jit` is running: only its result may outlive the call.
TRACING: ContextVar[bool] = ContextVar("isomorph.tracing", default=False)
# Whether the modules that are taken apart now are arguments of `jit`, which looked at them before.
LOOKED_AT: ContextVar[bool] = ContextVar("isomorph.looked_at", default=False)
INSIDE = {  # of a nest
    dict: dict.values, list: iter, tuple: iter, tree.Flat: lambda x: x.leaves
}  # fmt: skip
SCALARS = set(NUMBERS)
NO_KEYS: list[Any] = []
STOPS.extend((TRACING.get, AS_IT_IS.get))  # loops inside a program are parts of it


def jit(
    func: Callable[P, R],
    *,
    static: int | str | Sequence[int | str] = (),
    donate: int | str | Sequence[int | str] = (),
    verify: bool = False,
) -> Callable[P, R]:
    """`func`, compiled by the framework of the arrays it is called with, once for every new
    structure, shape and dtype of the arguments.

    Arguments and results are nests of arrays and numbers. A number is passed as an array, so a new
    value does not compile again; arguments named in `static`, by position or name, reach `func`
    unchanged, and each new value of them compiles again. `func` must be pure: its side effects
    happen only while it is traced, and the framework decides whether captured arrays are read at
    that time or at each call. A traced value cannot decide which Python code runs: `if x > 0`
    raises. Inside another transform or compiled function, `func` runs uncompiled as a part of it.
    NumPy has no compiler: `func` itself is called, with numbers unchanged.

    Arguments named in `donate` must not be used after the call; results may reuse their memory, so
    that an updated parameter is held once, not twice. JAX does this, and raises if a donated array
    is used again. Torch writes results into donated tensors of the same shape, and TensorFlow into
    donated variables, unless gradients will flow back through the call. Tensors of TensorFlow and
    arrays of NumPy are left unchanged.

    With `verify`, the first call of each program also runs `func` uncompiled, on copies of donated
    arguments. If the two differ by more than rounding, an ArithmeticError names the output and the
    largest difference. Rounding is √ε of the largest value of an output plus ε^¾ of the largest
    value of the call, where ε is 2⁻⁵² for float64, 2⁻²³ for float32, 2⁻¹⁰ for float16 and 2⁻⁷ for
    bfloat16; integers, infinities and NaNs must be equal. A compiler can be wrong.

    At level DEBUG, the logger `isomorph` gets a line for each program, with what is new about it.

    >>> iso.jit(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    np.float64(5.0)
    """
    check_callable("jit", func)
    places, names = _named(func, "static", static)
    donated = _donated(places, names, *_named(func, "donate", donate))
    whole = Compiled(func, places, names, donated, verify)

    @wraps(func)
    def compiled(*args: Any, **kw: Any) -> Any:
        # Most calls end here, after a microsecond or two: the arguments are arrays and numbers, or
        # nests of them, as in the last call.
        arrays, program, backend, modes, home, order = whole.last
        plain, keys = False, NO_KEYS
        for x in args:
            if type(x) in arrays:
                plain = True
            elif type(x) not in SCALARS:
                keys = []
                plain = _has_arrays(args, arrays, keys)
                break
        if AS_IT_IS.get():
            return func(*args, **kw)
        decided = MODES.get() is modes and HOME.get() is home and keys == order
        if kw or not plain or not decided:
            return whole.call(args, kw)
        try:
            out = program(*args)
        except BaseException as error:
            whole.fail(backend, error)
            raise
        if whole.after or whole.notices or whole.traced:
            return whole.finish(out, backend, (), args, kw)
        return out

    return compiled


class Compiled:
    """A function given to `jit`, its programs, and what is known of the running calls."""

    def __init__(
        self, func: Callable[..., Any], places: set[int], names: set[str],
        donated: tuple[tuple[int, ...], tuple[str, ...]], verify: bool,
    ):  # fmt: skip
        self.func, self.verify = func, verify
        self.places, self.names = places, names  # of static arguments
        self.donated = donated  # positions and names
        self.programs: dict[Any, Callable] = {}
        self.reasons = Reasons(func)
        self.notices: dict[int, Notice] = {}  # of compilations, by thread
        self.traced: set[int] = set()  # the threads in which a program was just traced
        self.after: Callable[[Any], Any] | None = None  # what must be done to results, if anything
        # The types of arrays in calls without keywords and modules, their program, and what decided
        # it.
        self.last: tuple = (frozenset(), None, None, None, None, [])

    def call(self, args: tuple, kw: dict[str, Any]) -> Any:
        """A call of any kind, with the program that serves it."""
        fixed, token, before = (), None, None
        if self.places or self.names:
            fixed, args, kw = _split(self.places, self.names, args, kw)
        leaves, form = tree.flatten_whole((args, kw))
        backend = _speaker(leaves, args, kw)
        order = tree.key_order((args, kw))
        key = (backend.name, is_on(), HOME.get(), fixed, tuple(order))
        program = self.programs.get(key)
        if program is None:
            program = self.programs[key] = self._program(backend, fixed, order)
        is_plain = not (kw or self.places or self.names or self.verify)
        kinds = frozenset(map(type, leaves)) - SCALARS if is_plain else frozenset()
        if kinds and all(BACKENDS.get(kind) is backend for kind in kinds):
            known = kinds | self.last[0] if self.last[1] is program else kinds
            self.last = known, program, backend, MODES.get(), HOME.get(), order
        if form.namespace:  # there are modules
            token = LOOKED_AT.set(True)
        if self.verify:
            before = arguments(backend, args, kw, _given(args, kw, *self.donated))
        try:
            out = program(*args, **kw)
        except BaseException as error:
            self.fail(backend, error)
            raise
        finally:
            if token is not None:
                LOOKED_AT.reset(token)
        return self.finish(out, backend, fixed, args, kw, before)

    def _program(self, backend: Contract, fixed: tuple, order: list) -> Callable[..., Any]:
        plain = self._body(fixed)
        if not has_compiler(backend):
            return plain

        def traced(*args: Any, **kw: Any) -> Any:
            self.traced.add(get_ident())
            args, kw = tree.ordered((args, kw), iter(order))
            return plain(*args, **kw)

        traced.__qualname__ = plain.__qualname__
        return backend.jit(traced, *self.donated, self)

    def _body(self, fixed: tuple) -> Callable[..., Any]:
        """The function, of its arguments that are not static, with `TRACING` set while it runs. It
        gets its own copies of modules among its arguments, also where nothing is compiled.
        """
        names = {place: x for place, _, x in fixed if isinstance(place, str)}
        places = [(place, x) for place, _, x in fixed if isinstance(place, int)]

        def body(*args: Any, **kw: Any) -> Any:
            token, looked_at = TRACING.set(True), LOOKED_AT.get()
            try:
                args, kw = tree.renewed((args, kw))
                LOOKED_AT.set(False)  # the function may change what it likes
                full = list(args)
                for place, x in places:  # in increasing order, so that each lands at its position
                    full.insert(place, x)
                out = self.func(*full, **kw, **names)
            finally:
                TRACING.reset(token)
            out = tree.renewed(out)
            LOOKED_AT.set(looked_at)
            return out

        body.__qualname__ = name_of(self.func)
        return body

    def begin(self, backend: Contract) -> None:
        """Told by a framework that compiles within a call: it traces the function now."""
        if get_ident() not in self.notices and not TRACING.get():
            self.notices[get_ident()] = Notice(self.func, backend.name)

    def fail(self, backend: Contract, error: BaseException) -> None:
        """After a call that raised."""
        end(self.notices, False)
        self.traced.discard(get_ident())
        if isinstance(error, Exception):
            backend.explain(error)

    def finish(
        self, out: Any, backend: Contract, fixed: tuple, args: tuple, kw: dict[str, Any],
        before: Arguments | None = None,
    ) -> Any:  # fmt: skip
        """The result of a call. The first one of a program is looked at, unless it is a part of
        another program.
        """
        if self.after:
            out = self.after(out)
        if self.notices:
            end(self.notices, True)
        if get_ident() in self.traced:
            self.traced.discard(get_ident())
            if not TRACING.get():
                self.reasons.tell(backend.name, fixed, args, kw)
            if before is not None:
                check(backend, self._body(fixed), before, out)
        return out


def has_compiler(backend: Contract) -> bool:
    return backend.jit(has_compiler) is not has_compiler


def traced(
    xp: Any,
    func: Callable[..., Any],
    places: Sequence[int] = (),
    names: Sequence[str] = (),
    whole: Compiled | None = None,
) -> Callable[..., Any]:
    """`jit` in terms of `xp.compile`, which takes a flat function and arrays: one program per
    structure and `xp.signature` of the arguments.

    `places` and `names` are the donated arguments, which a program may overwrite. `whole` is for
    frameworks that compile within a call, or whose results need something done to them.
    """
    programs: dict[Any, tuple[Callable, Callable, list]] = {}

    def run(*args: Any, **kw: Any) -> Any:
        leaves, form = tree.flatten_whole((args, kw))
        arrays = _arrays(xp, leaves)
        if xp.is_tracing(arrays):
            return func(*args, **kw)
        key = (form, xp.signature(arrays))
        found = programs.get(key)
        if found is None:
            given = _given(args, kw, places, names)
            if any(map(xp.is_watched, arrays)):  # the backward pass will need them unchanged
                given = []
            xp.check_given(arrays, given)
            with noticed(func, xp.name):
                program, rebuild = _program(xp, func, form, arrays, given)
                outs = program(*arrays)  # some programs compile at this call
            programs[key] = program, rebuild, given
            return rebuild(outs)
        program, rebuild, given = found
        if given:
            xp.check_given(arrays, given)
        return rebuild(program(*arrays))

    return run


def _given(args: tuple, kw: dict[str, Any], places: Sequence[int], names: Sequence[str]) -> list:
    """For every leaf of a call, whether it is donated."""
    if not places and not names:
        return []
    marks = (
        tuple(tree.map_whole(lambda _, yes=i in places: yes, x) for i, x in enumerate(args)),
        {k: tree.map_whole(lambda _, yes=k in names: yes, x) for k, x in kw.items()},
    )
    return tree.flatten_whole(marks)[0]


def _program(xp: Any, func: Callable, form: Any, arrays: Sequence[Any], given: list) -> tuple:
    after: dict[str, Any] = {}

    def flat(*arrays: Any) -> tuple:
        args, kw = tree.unflatten(form, arrays)
        out = func(*args, **kw)
        leaves, after["form"] = tree.flatten_whole(out)
        for x, path in zip(leaves, tree.paths(out, whole=True)):
            if find_backend(x) is not xp and type(x) not in NUMBERS:
                at = f" at {path}" if path else ""
                raise TypeError(
                    f"jit: needed {xp.name} arrays and numbers as output, got a "
                    f"{type(x).__name__}{at}"
                )
        return tuple(xp.asarray(x) if type(x) in NUMBERS else x for x in leaves)

    flat.__qualname__ = name_of(func)
    program = xp.compile(flat, arrays, given)
    out_form = after["form"]
    return program, lambda outs: tree.unflatten(out_form, outs)


def _arrays(xp: Any, leaves: list[Any]) -> list[Any]:
    """The leaves, with numbers made into arrays."""
    if SCALARS.isdisjoint(map(type, leaves)):
        return leaves
    arrays = [x for x in leaves if type(x) not in NUMBERS]
    return [xp.weak(x, arrays) if type(x) in NUMBERS else x for x in leaves]


def _speaker(leaves: list[Any], args: tuple, kw: dict[str, Any]) -> Contract:
    """The one backend of a call's arrays; the default backend if there are no arrays."""
    found = {BACKENDS.get(kind) for kind in set(map(type, leaves)).difference(NUMBERS)}
    only = found.pop() if len(found) == 1 else None
    if only is not None:
        return only
    arrays = [x for x in leaves if type(x) not in NUMBERS]
    for x in arrays:
        if find_backend(x) is None:
            place = next(i for i, leaf in enumerate(leaves) if leaf is x)
            named = [
                f"argument {path}" for path in (*tree.paths(args, True), *tree.paths(kw, True))
            ]
            raise TypeError(
                f"jit: needed arrays and numbers, got a {type(x).__name__} at {named[place]}; "
                "name the argument in static="
            )
    return backend_of(*arrays) if arrays else home().backend


def _has_arrays(parts: Iterable[Any], arrays: frozenset[type], keys: list) -> bool | None:
    """Whether there are arrays of these types, also in nests, whose keys are added in the order of
    `tree.key_order`; None if there is something else than such arrays and numbers.
    """
    seen: bool | None = False
    for x in parts:
        kind = type(x)
        if kind in arrays:
            seen = True
        elif kind in INSIDE:
            if kind is dict:
                keys += x
            inside = _has_arrays(INSIDE[kind](x), arrays, keys)
            if inside is None:
                return None
            seen |= inside
        elif kind not in SCALARS:
            return None
    return seen


def _named(func: Callable, word: str, chosen: Any) -> tuple[set[int], set[str]]:
    """The positions and the names of the arguments chosen as static or donated. Where the signature
    tells, each argument is listed under both.
    """
    given = tuple(chosen) if isinstance(chosen, Iterable) else (chosen,)
    given = (chosen,) if isinstance(chosen, str) else given
    if any(type(s) not in (int, str) for s in given):
        raise TypeError(f"jit: {word} needed positions or names of arguments, got {chosen!r}")
    if not given:
        return set(), set()
    try:
        known = list(signature(func).parameters.values())
    except (TypeError, ValueError):  # a builtin without a signature
        known = []
    order = [p.name for p in known if p.kind is not Parameter.KEYWORD_ONLY]
    places, names = set(), set()
    for s in given:
        if isinstance(s, str):
            names.add(s)
            if s in order:
                places.add(order.index(s))
            elif known and not any(p.name == s or p.kind is Parameter.VAR_KEYWORD for p in known):
                listed = ", ".join(p.name for p in known)
                raise ValueError(f"jit: {word} names {s!r}, but the arguments are {listed}")
        elif s < 0:
            raise ValueError(f"jit: {word} needed positions counted from 0, got {s}")
        else:
            places.add(s)
            names |= {order[s]} if s < len(order) else set()
    return places, names


def _donated(
    fixed: set[int], fixed_names: set[str], places: set[int], names: set[str]
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The donated arguments, by position after the static ones are removed."""
    both = [*sorted(fixed & places), *sorted(fixed_names & names)]
    if both:
        raise ValueError(f"jit: donate needed arrays, got the static argument {both[-1]!r}")
    shifted = tuple(sorted(i - sum(f < i for f in fixed) for i in places))
    return shifted, tuple(sorted(names))


def _split(
    places: set[int], names: set[str], args: tuple, kw: dict[str, Any]
) -> tuple[tuple, tuple, dict[str, Any]]:
    """The static arguments of a call with their positions, and the other arguments."""
    fixed = [(i, x) for i, x in enumerate(args) if i in places]
    fixed += [(k, x) for k, x in sorted(kw.items()) if k in names]
    for place, x in fixed:
        try:
            hash(x)
        except TypeError:
            raise TypeError(
                f"jit: needed static argument {place} to be hashable, got a {type(x).__name__}"
            ) from None
    marked = tuple((place, _typed(x), x) for place, x in fixed)
    args = tuple(x for i, x in enumerate(args) if i not in places)
    return marked, args, {k: x for k, x in kw.items() if k not in names}


def _typed(x: Any) -> Any:
    """A key that separates equal values which a function may treat differently: 1, 1.0 and True,
    0.0 and -0.0.
    """
    if isinstance(x, (tuple, frozenset)):
        return type(x), tuple(map(_typed, x))
    return (type(x), repr(x)) if isinstance(x, (float, complex)) else type(x)
