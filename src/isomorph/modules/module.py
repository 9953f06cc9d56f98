"""A module: attributes and a `forward`. Nothing is registered: a walk finds what a module holds.

A call with other variables, with detached variables or with tracking runs on a temporary copy of
the module. So nothing has to be restored afterwards, even if the call raises, and calls in threads,
nested calls and compiled code do not interfere.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from functools import wraps
from math import prod
from types import FunctionType
from typing import TYPE_CHECKING, Any, Self, overload

from ..core import keywords, tree
from ..core.dispatch import backend_of, dtype_of, find_backend
from ..core.gradient_mode import MODES, is_off, is_on
from . import showing
from .calling import Called, Forward, P, R
from .contents import (
    CONTAINERS,
    MODULE,
    PLAIN,
    STATE,
    VARIABLE,
    Base,
    Held,
    Rest,
    assign,
    called_with,
    chain_of,
    copied,
    detached,
    forget,
    gather,
    is_module,
    look,
    matched,
    own,
    own_array,
    parent_of,
    put,
    set_slot,
    submodules,
    taken,
    walk,
)
from .habits import said
from .state import value_of


class Module(Base, Called):
    """A function with variables: set layers and arrays as attributes in `__init__`, and write the
    computation in `forward`.

    `v` is the nest (pytree) of the floating-point arrays. Its keys are attribute names without one
    leading `_`, and positions or keys of lists, tuples and dicts. None is skipped, and a shared
    array appears once. `module(x)` calls `forward(x)`. `module(x, v=other)` computes with other
    variables and does not change the module; assigning to `v` does. A module is a nest itself:
    gradients can be taken with respect to it, and `jit`, `convert` and `save` accept it.

    >>> class Net(iso.Module):
    ...     def __init__(self):
    ...         self.w = np.array([1.0, 2.0])
    ...
    ...     def forward(self, x):
    ...         return np.sum(self.w * x)
    >>> net = Net()
    >>> float(net(np.ones(2))), float(net(np.ones(2), v={"w": np.zeros(2)}))
    (3.0, 0.0)
    >>> iso.grad(lambda v: net(np.ones(2), v=v))(net.v)
    {'w': array([1., 1.])}
    """

    __slots__ = ("submod_call_order", "submod_rets")

    training = True
    names_its_variables = False

    def __init_subclass__(cls, **kw: Any) -> None:
        super().__init_subclass__(**kw)
        if vars(cls).get("__slots__"):
            raise TypeError(f"{cls.__name__}: needed plain attributes in a module, got __slots__")
        for word in ("v", "state"):
            if word in vars(cls):
                raise TypeError(f"{cls.__name__}: an attribute cannot be named {word}")
        cls.names_its_variables = cls._create_variables is not Module._create_variables
        if "__init__" in vars(cls):
            cls.__init__ = _with_parents(cls.__init__)

    def __new__(cls, *args: Any, **kw: Any) -> Self:
        self = object.__new__(cls)
        set_slot(self, "_call", None)
        set_slot(self, "_snapshot", None)
        set_slot(self, "_parent", None)
        set_slot(self, "_frozen", frozenset())
        return self

    def __init__(self, *, v: Any = None, with_partial_v: bool = False):
        """Set the variables to `v`: all of them, or only those in `v` if `with_partial_v` is True.
        If your own `__init__` takes `v`, call this at its end.
        """
        if v is not None:
            self._assign(v, with_partial_v)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in METHODS:
            raise AttributeError(f"{type(self).__name__}: {TAKEN.format(name)}")
        # `super()`, because compilers that read code take `object.__setattr__` for this method
        super().__setattr__(name, value)
        if type(value) not in PLAIN and name not in RESERVED:
            forget(self)
            _set_parents(self, value)

    def _missing(self, name: str) -> Any:
        if name == "_frozen":  # a copy has that of its original
            return self._call[0]._frozen
        if name in ("_parent", "_snapshot"):
            return None
        found = getattr(type(self), name, None)
        if isinstance(found, property):  # the property raised: raise that error again
            return found.__get__(self)
        if name == "forward":
            raise NotImplementedError(f"{type(self).__name__}: needed a method forward, got none")
        if name in ("submod_rets", "submod_call_order"):
            raise AttributeError(f"{name}: needed a finished call with track_{name}=True, got none")
        raise AttributeError(said(type(self).__name__, name))

    if not TYPE_CHECKING:  # a misspelt attribute is an error
        __getattr__ = _missing

    # Calling.

    @overload
    def __call__(self: Forward[P, R], *args: P.args, **kw: P.kwargs) -> R: ...
    @overload
    def __call__(self: Forward[..., R], *args: Any, v: Any, **kw: Any) -> R: ...
    @overload
    def __call__(self, *args: Any, track_submod_rets: bool, **kw: Any) -> Any: ...
    @overload
    def __call__(self, *args: Any, track_submod_call_order: bool, **kw: Any) -> Any: ...
    @overload
    def __call__(self, *args: Any, expected_submod_rets: Any, **kw: Any) -> Any: ...
    def __call__(self, *args: Any, v: Any = None, **kw: Any) -> Any:
        """Call `forward`. With `v`, use these variables and do not change state: see `apply`.

        The keywords `track_submod_rets` and so on, which record what submodules return, are
        described in `old_words/tracking.py`.
        """
        for word in kw:
            if word in RECORDING:
                from ..old_words.tracking import recorded

                return recorded(self, args, v, kw)
        call = self._call  # of a copy: its original, the frame that records calls, and its parent
        lent = v is not None
        if not lent:
            if call is None:
                if not MODES.get() or is_on():
                    return self.forward(*args, **kw)
            elif call[1] is None:
                if not is_off():
                    return self.forward(*args, **kw)
            else:
                return call[1].enter(self, args, kw)
        return copied(self, called_with(self, v), lent=lent).forward(*args, **kw)

    def apply(self, v: Any, state: Any, /, *args: Any, **kw: Any) -> tuple[Any, Any]:
        """`(forward(*args, **kw), new state)`, computed with these variables and this state; the
        module does not change. If there is state, compile and differentiate this function.

        >>> norm = iso.BatchNorm(1, momentum=0.5)
        >>> y, state = norm.apply(norm.v, norm.state, np.array([[1.0], [3.0]], np.float32))
        >>> state["mean"], norm.state["mean"]
        (array([1.], dtype=float32), array([0.], dtype=float32))
        """
        new = copied(self, detached(v), state)
        out = new.forward(*args, **kw)
        return out, gather(new).state

    # Contents.

    @property
    def v(self) -> dict[str, Any]:
        """The nest of the variables. Assign a nest with the same keys to change them."""
        return gather(self).variables

    @v.setter
    def v(self, new: Any) -> None:
        self._assign(new, False)

    @property
    def state(self) -> dict[str, Any]:
        """The nest of what is not trained: values of `State`, and frozen arrays."""
        return gather(self).state

    @state.setter
    def state(self, new: Any) -> None:
        name, skeleton = type(self).__name__, look(self).skeleton
        _check_nest(name, "state", new)
        leaves: list[Any] = [None] * len(skeleton.kinds)
        skeleton.put(leaves, STATE, new, f"{name}, state")
        assign(self, {n: value_of(leaves[n]) for n in skeleton.nests[STATE].numbers})

    def _create_variables(self) -> dict[str, Any]:
        """Override this to choose the keys of `v`: return a nest of arrays that are attributes of
        the module.
        """
        raise NotImplementedError

    def _assign(self, new: Any, partly: bool) -> None:
        name = type(self).__name__
        _check_nest(name, "v", new)
        nest, old = look(self).skeleton.nests[VARIABLE], dict(zip(*_flat(gather(self).variables)))
        given = dict(zip(*_flat(new)))
        numbers = dict(zip(nest.routes, nest.numbers))
        found: dict[int, Any] = {}
        for path in matched(name, nest.routes, given, partly):
            x, shape = given[path], tuple(old[path].shape)
            xp = find_backend(x)
            if xp is None:
                raise TypeError(
                    f"{name}: needed an array for {chain_of(path)}, got {type(x).__name__}"
                )
            if tuple(x.shape) != shape or not xp.is_float(x.dtype):
                raise ValueError(
                    f"{name}: needed a floating-point array {list(shape)} for {chain_of(path)}, "
                    f"got {dtype_of(x)} {list(x.shape)}"
                )
            found[numbers[path]] = own_array(xp, x, any(x is y for y in found.values()))
        if old:  # raises if there are two backends
            backend_of(*(found.get(numbers[path], x) for path, x in old.items()))
        assign(self, found)

    # A module as a nest.

    def take_trained(self) -> tuple[Iterable[Any], Any, Iterable[Any]]:
        skeleton, values = taken(self)
        held = skeleton.held(values)
        keys = tuple(held.variables)
        return held.variables.values(), Rest(skeleton, held, keys), keys

    @staticmethod
    def put_trained(rest: Any, parts: Iterable[Any]) -> Any:
        held = rest.held._replace(variables=dict(zip(rest.keys, parts)))
        return rest.skeleton.filled(held)

    def take_whole(self) -> tuple[Iterable[Any], Any, Iterable[Any]]:
        skeleton, values = taken(self)
        return [values[n] for n in skeleton.order], skeleton, skeleton.chains

    @staticmethod
    def put_whole(rest: Any, parts: Iterable[Any]) -> Any:
        return rest.refilled(parts)

    def take_saved(self) -> dict:
        whole: dict = {}
        for nest in gather(self):
            _merge(whole, nest, type(self).__name__)
        return whole

    def put_saved(self, nest: dict) -> Self:
        skeleton, values = taken(self)
        return skeleton.filled(Held(*(_select(part, nest) for part in skeleton.held(values))))

    def part(self, key: Any) -> Any:
        return self.v[key]

    def __getstate__(self) -> Any:
        return self.__dict__, self._frozen

    def __setstate__(self, state: Any) -> None:
        attributes, frozen = state
        self.__dict__.update(attributes)
        set_slot(self, "_frozen", frozen)
        for value in attributes.values():
            _set_parents(self, value, orphans=True)

    # Parents and submodules.

    def top_mod(self, depth: int | None = None) -> Module:
        """The root of this module, or its ancestor `depth` levels up (the root if there are fewer
        levels).
        """
        here, steps = self, 0
        while depth is None or steps < depth:
            above = parent_of(here)
            if above is None:
                break
            here, steps = above, steps + 1
        return here

    def top_v(self, depth: int | None = None) -> dict[str, Any]:
        """The variables of `top_mod(depth)`."""
        return self.top_mod(depth).v

    def v_with_top_v_key_chains(
        self, depth: int | None = None, flatten_key_chains: bool = False
    ) -> dict[str, Any]:
        """The variables of this module under its path in `top_mod(depth)`. `flatten_key_chains`
        gives a flat dict, keyed by key chains such as "encoder/w".
        """
        path = _path(self.top_mod(depth), self)
        own = self.v
        if flatten_key_chains:
            chains = ["/".join([*map(str, path), chain]) for chain in tree.paths(own)]
            return dict(zip(chains, tree.flatten(own)[0]))
        nest: dict = {}
        if not path:
            return own
        put(nest, path, own)
        return nest

    def mod_depth(self) -> int:
        """The number of ancestors."""
        above = parent_of(self)
        return 0 if above is None else 1 + above.mod_depth()

    def mod_height(self) -> int:
        """The number of levels of submodules."""
        return max((level for _, _, level in submodules(self)), default=0)

    def sub_mods(
        self, depth: int | None = None, flatten_key_chains: bool = False, show_v: bool = True
    ) -> dict[str, Any]:
        """The nest of submodules, at most `depth` levels down. Its leaves are the variables of the
        lowest modules, or with `show_v=False` these modules. `flatten_key_chains` gives a flat
        dict, keyed by key chains.
        """
        nest: dict = {}
        for path, sub, level in submodules(self):
            if depth is not None and level > depth:
                continue
            if level == depth or not any(step.kind == MODULE for step in own(sub)):
                shown = sub.v if show_v else sub
                if flatten_key_chains:
                    nest["/".join(map(str, path))] = shown
                else:
                    put(nest, path, shown)
        return nest

    # Training.

    def train(self, mode: bool = True) -> Self:
        """Set `training` here and in every submodule. If true, dropout drops, and batch norm uses
        the statistics of the batch.

        >>> iso.Dropout(0.5).train(False)(np.ones(2))
        array([1., 1.])
        """
        for sub in [self, *(sub for _, sub, _ in submodules(self))]:
            if sub.training is not mode:  # what is written is a setting, which programs depend on
                sub.training = mode
        return self

    def eval(self) -> Self:
        """`train(False)`."""
        return self.train(False)

    def freeze(self, *patterns: str) -> Self:
        """Stop training the variables that match a pattern such as "encoder/*/w": they move from
        `v` to `state`. A pattern matches a key chain or the start of one.

        >>> net = iso.Linear(2, 1).freeze("w")
        >>> list(net.v), list(net.state)
        (['b'], ['w'])
        """
        return self._set_frozen("freeze", patterns, True)

    def unfreeze(self, *patterns: str) -> Self:
        """Put frozen variables back into `v`: all, or those that match a pattern."""
        return self._set_frozen("unfreeze", patterns or ("*",), False)

    def _set_frozen(self, name: str, patterns: tuple[str, ...], frozen: bool) -> Self:
        owners = [self, *(sub for _, sub, _ in submodules(self))]
        for sub in owners:
            if sub.names_its_variables:
                raise TypeError(
                    f"{name}: needed modules without _create_variables, got {type(sub).__name__}; "
                    "remove the arrays from the nest that it returns instead"
                )
        steps = [step for step in walk(self, every=True) if step.kind == VARIABLE]
        chains = [(chain_of(step.path), step.value) for step in steps]
        for pattern in patterns:
            if not any(_matches(chain, pattern) for chain, _ in chains):
                listed = ", ".join(chain for chain, _ in chains)
                raise ValueError(
                    f"{name}: needed a pattern that matches one of {listed}, got {pattern!r}"
                )
        marked = {id(x) for chain, x in chains if any(_matches(chain, p) for p in patterns)}
        for sub in owners:
            found = {chain_of(step.path) for step in own(sub) if id(step.value) in marked}
            set_slot(sub, "_frozen", sub._frozen | found if frozen else sub._frozen - found)
        return self

    @property
    def num_params(self) -> int:
        """The number of trained parameters: the sizes of all arrays in `v`."""
        return sum(prod(x.shape) for x in tree.flatten(self.v)[0])

    def __repr__(self) -> str:
        return showing.outline(self)


def summary(module: Module, /, *args: Any, **kw: Any) -> str:
    """A table of one call `module(*args, **kw)`: the output, parameters, number of calls and time
    of each submodule. The module does not change.

    >>> net = iso.Sequential(iso.Linear(3, 4, key=0), iso.relu, iso.Linear(4, 1, key=1))
    >>> print(iso.summary(net, np.ones((2, 3), np.float32)).splitlines()[3][:41])
    layers/0: Linear       [2, 4]          16
    """
    if not is_module(module):
        raise TypeError(f"summary: needed a module, got {type(module).__name__}")
    watch = showing.Watch()
    copy = copied(module, frame=watch)
    watch.enter(copy, args, kw)
    below = [("/".join(map(str, path)), sub) for path, sub, _ in submodules(copy)]
    return showing.table(watch, [("", copy), *below], module.num_params)


def _set_parents(parent: Module, value: Any, orphans: bool = False) -> None:
    """Set the parent of each module in an attribute; with `orphans`, if it has no parent yet."""
    if is_module(value):
        found = [value]
    elif isinstance(value, CONTAINERS):
        found = [step.value for step in walk(value, below=False) if step.kind == MODULE]
    else:
        return
    for module in found:
        if orphans and parent_of(module) is not None:
            continue
        here: Any = parent
        while here is not None and here is not module:  # an ancestor is not a child
            here = parent_of(here)
        if here is None:
            set_slot(module, "_parent", weakref.ref(parent))


def _path(root: Module, module: Module) -> tuple:
    """The path from a module to one of its submodules."""
    return next((path for path, sub, _ in submodules(root) if sub is module), ())


# Keywords of a call that record it (`old_words/tracking.py`).
RECORDING = frozenset((
    "track_submod_rets", "submod_depth", "submods_to_track", "track_submod_call_order",
    "expected_submod_rets",
))  # fmt: skip
RESERVED = frozenset((*Base.__slots__, *Module.__slots__))
METHODS = {k for k, x in vars(Module).items() if isinstance(x, FunctionType) and k[0] != "_"}
TAKEN = "an attribute cannot be named {}, which is a method of modules"


def _with_parents(init: Callable[..., None]) -> Callable[..., None]:
    """`init`, and then set parents again: modules may have been added to lists late."""

    @wraps(init)
    def __init__(self: Module, *args: Any, **kw: Any) -> None:
        try:
            init(self, *args, **kw)
        except TypeError as error:
            keywords.explained(type(self).__name__, init, kw, error)
            raise
        for value in vars(self).values():
            if type(value) not in PLAIN:
                _set_parents(self, value)

    return __init__


def _matches(chain: str, pattern: str) -> bool:
    """Whether a pattern matches a key chain or the start of one."""
    keys = chain.split("/")
    return any(fnmatchcase("/".join(keys[: n + 1]), pattern) for n in range(len(keys)))


def _flat(nest: Any) -> tuple[list[tuple], list[Any]]:
    return tree.routes(nest), tree.flatten(nest)[0]


def _check_nest(name: str, word: str, new: Any) -> None:
    """Raise if `v` or `state` is not set to a nest. Most often the user wanted an attribute of that
    name.
    """
    if is_module(new) or not isinstance(new, dict):
        what = "variables" if word == "v" else "state"
        raise TypeError(
            f"{name}: needed a nest of {what} as {word}, got {type(new).__name__}; an attribute "
            f"cannot be named {word}"
        )


def _merge(whole: dict, nest: dict, name: str) -> None:
    """Add the leaves of `nest` to `whole`, which has other keys."""
    for key, x in nest.items():
        if isinstance(x, dict) and isinstance(whole.get(key, {}), dict):
            _merge(whole.setdefault(key, {}), x, f"{name}, {key}")
        elif key in whole:
            raise ValueError(f"{name}: two attributes have the key {key!r}; rename one")
        else:
            whole[key] = x


def _select(like: Any, nest: Any) -> Any:
    """The part of `nest` with the keys of `like`."""
    return {k: _select(x, nest[k]) for k, x in like.items()} if isinstance(like, dict) else nest
