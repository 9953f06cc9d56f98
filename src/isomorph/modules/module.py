"""A module: attributes and a `forward`. Nothing is registered; what it holds is found when asked.

A call that needs other variables, detached ones, or to be watched runs on a copy of the module,
made for that call. So nothing has to be put back afterwards, whatever happens inside, and calls in
threads, in each other and in compiled code cannot meet.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from functools import wraps
from math import prod
from types import FunctionType
from typing import TYPE_CHECKING, Any, Self, overload

from .. import keywords, tree
from ..dispatch import backend_of, dtype_of, find_backend
from ..gradients.mode import MODES, is_off, variables, with_grads
from . import showing, tracking
from .calling import Called, Forward, P, R
from .copying import (
    How,
    Rest,
    Skeleton,
    Unusual,
    bound,
    copied,
    own_array,
    replace,
    set_slot,
    substitutes,
)
from .habits import said
from .structure import (
    PLAIN,
    Held,
    State,
    chain_of,
    check_nest,
    chosen,
    direct,
    gather,
    is_module,
    matched,
    merge,
    occurrences,
    origin_of,
    parent_of,
    put,
    submodules,
)


class Module(Called):
    """A function with variables: set layers and arrays as attributes in `__init__`, and say in
    `forward` what is computed.

    `v` is the nest of the floating-point arrays, keyed by attribute (one leading `_` dropped); a
    list, tuple or dict contributes its positions or keys, None nothing, and what is bound twice
    appears once. `module(x)` is `forward(x)`; `module(x, v=other)` computes with other variables
    and leaves the module as it was. Assigning to `v` changes the module. A module is a nest itself:
    gradients can be taken with respect to it, and `jit`, `convert` and `save` take it whole.

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

    __slots__ = ("__dict__", "__weakref__", "_call", "_frozen", "_parent", "submod_call_order",
                 "submod_rets")  # fmt: skip

    training = True
    names_its_variables = False

    def __init_subclass__(cls, **kw: Any) -> None:
        super().__init_subclass__(**kw)
        if vars(cls).get("__slots__"):
            raise TypeError(f"{cls.__name__}: needed plain attributes in a module, got __slots__")
        for word in ("v", "state"):
            if word in vars(cls):
                raise TypeError(f"{cls.__name__}: an attribute cannot be called {word}")
        cls.names_its_variables = cls._create_variables is not Module._create_variables
        if "__init__" in vars(cls):
            cls.__init__ = _adopting(cls.__init__)

    def __new__(cls, *args: Any, **kw: Any) -> Self:
        self = object.__new__(cls)
        set_slot(self, "_call", None)
        set_slot(self, "_parent", None)
        set_slot(self, "_frozen", frozenset())
        return self

    def __init__(self, *, v: Any = None, with_partial_v: bool = False):
        """To be called last by an `__init__` that takes `v`: variables in the place of those just
        made; all of them, or some `with_partial_v`.
        """
        if v is not None:
            self._assign(v, with_partial_v)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in METHODS:
            raise AttributeError(f"{type(self).__name__}: {TAKEN.format(name)}")
        # by `super()`: to a compiler that reads code `object.__setattr__` is this method
        super().__setattr__(name, value)
        if type(value) not in PLAIN and name not in Module.__slots__:
            _adopt(self, value)

    def _missing(self, name: str) -> Any:
        if name == "_frozen":  # of a copy
            return origin_of(self)._frozen
        if name == "_parent":
            return None
        found = getattr(type(self), name, None)
        if isinstance(found, property):  # which raised: say why, not that it is missing
            return found.__get__(self)
        if name == "forward":
            raise NotImplementedError(f"{type(self).__name__}: needed a method forward, got none")
        if name in ("submod_rets", "submod_call_order"):
            raise AttributeError(
                f"{name}: there is none before a call with track_{name}=True has returned"
            )
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
    def __call__(
        self, *args: Any, v: Any = None, track_submod_rets: bool = False,
        submod_depth: int | None = None, submods_to_track: Iterable[Any] | None = None,
        track_submod_call_order: bool = False, expected_submod_rets: Any = None, **kw: Any,
    ) -> Any:  # fmt: skip
        """`forward`, with other variables where `v` is given.

        With `track_submod_rets`, `submod_rets` holds afterwards what each module below returned,
        with `track_submod_call_order`, `submod_call_order` the tree of calls; `submod_depth` and
        `submods_to_track`, modules or key chains, say for which. With `expected_submod_rets`, what
        they return is compared with an earlier `submod_rets`. State is not changed where `v` is
        given: see `apply`.
        """
        call = self._call  # of a copy: what it is a copy of, and what its calls report to
        watched = track_submod_rets or track_submod_call_order or expected_submod_rets is not None
        if v is None and not watched:
            if call is None:
                if not MODES.get() or with_grads():
                    return self.forward(*args, **kw)
            elif call[1] is None:
                if not is_off():
                    return self.forward(*args, **kw)
            else:
                return call[1].enter(self, args, kw)
        lent = v is not None
        if lent or call is None or is_off():
            v = variables(v if lent else self.v)
        if not watched:
            return self._copied(v, How(lent=lent)).forward(*args, **kw)
        frame = tracking.Frame(
            track_submod_rets, submod_depth, submods_to_track, track_submod_call_order,
            expected_submod_rets,
        )  # fmt: skip
        return frame.run(self, self._copied(v, How(frame, lent)), args, kw)

    def apply(self, v: Any, state: Any, /, *args: Any, **kw: Any) -> tuple[Any, Any]:
        """`(forward(*args, **kw), new state)`, computed with the variables and the state given;
        the module is left as it was. What to compile and differentiate where there is state.

        >>> norm = iso.BatchNorm(1, momentum=0.5)
        >>> y, state = norm.apply(norm.v, norm.state, np.array([[1.0], [3.0]], np.float32))
        >>> state["mean"], norm.state["mean"]
        (array([1.], dtype=float32), array([0.], dtype=float32))
        """
        new = self._exchanged(variables(v), state, How())
        out = new.forward(*args, **kw)
        return out, gather(new).state

    def _copied(self, v: Any, how: How) -> Any:
        """A copy for one call, with other variables unless `v` is None."""
        if v is None:
            return copied(origin_of(self), self, {}, how)
        try:
            return bound(self, v, how.frame, how.lent)
        except Unusual:
            return self._exchanged(v, None, how)

    def _exchanged(self, v: Any, state: Any, how: How) -> Any:
        """A copy with other variables, and other state where it is given, the general way."""
        # what is walked over twice must not change meanwhile, in another thread
        still = copied(self, self, {}, How(lent=False, free=True)) if self._call is None else self
        held = gather(still, raw=True)
        memo = substitutes(held.variables, v, type(self).__name__)
        if state is not None:
            memo |= substitutes(held.state, state, f"{type(self).__name__}, state")
        return copied(origin_of(still), still, memo, how)

    # What it holds.

    @property
    def v(self) -> dict[str, Any]:
        """The nest of the variables; assigning one of the same form changes the module."""
        return gather(self).variables

    @v.setter
    def v(self, new: Any) -> None:
        self._assign(new, False)

    @property
    def state(self) -> dict[str, Any]:
        """The nest of what is held but not trained: values of `State`, and frozen arrays."""
        return gather(self).state

    @state.setter
    def state(self, new: Any) -> None:
        check_nest(type(self).__name__, "state", new)
        own = gather(self, raw=True).state
        found = substitutes(own, new, f"{type(self).__name__}, state")
        found = {i: x.value if type(x) is State else x for i, x in found.items()}
        replace(origin_of(self), self, found)

    def _create_variables(self) -> dict[str, Any]:
        """To be overridden by a module that wants other keys in `v`: the nest of arrays that its
        attributes hold.
        """
        raise NotImplementedError

    def _assign(self, new: Any, partly: bool) -> None:
        name = type(self).__name__
        check_nest(name, "v", new)
        own = gather(self, raw=True).variables
        leaves, paths = tree.flatten(own)[0], tree.routes(own)
        given = dict(zip(tree.routes(new), tree.flatten(new)[0]))
        wanted = set(matched(name, paths, given, partly))
        memo: dict[int, Any] = {}
        for path, old in zip(paths, leaves):
            if path not in wanted:
                continue
            x = given[path]
            xp = find_backend(x)
            if xp is None:
                raise TypeError(
                    f"{name}: needed an array for {chain_of(path)}, got {type(x).__name__}"
                )
            if tuple(x.shape) != tuple(old.shape) or not xp.is_float(x.dtype):
                raise ValueError(
                    f"{name}: needed {list(old.shape)} of floats for {chain_of(path)}, "
                    f"got {dtype_of(x)} {list(x.shape)}"
                )
            memo[id(old)] = own_array(xp, x, any(x is y for y in memo.values()))
        if leaves:
            backend_of(*(memo.get(id(x), x) for x in leaves))  # one backend, or it raises
        replace(origin_of(self), self, memo)

    # A module as a nest.

    def take_trained(self) -> tuple[Iterable[Any], Any, Iterable[Any]]:
        held = gather(self)
        keys = tuple(held.variables)
        return held.variables.values(), Rest(Skeleton(self), held, keys), keys

    @staticmethod
    def put_trained(rest: Any, parts: Iterable[Any]) -> Any:
        held = rest.held._replace(variables=dict(zip(rest.keys, parts)))
        return rest.skeleton.filled(held)

    def take_whole(self) -> tuple[Iterable[Any], Any, Iterable[Any]]:
        return gather(self), Skeleton(self), Held._fields

    @staticmethod
    def put_whole(rest: Any, parts: Iterable[Any]) -> Any:
        return rest.filled(Held(*parts))

    def take_saved(self) -> dict:
        whole: dict = {}
        for nest in gather(self):
            merge(whole, nest, type(self).__name__)
        return whole

    def put_saved(self, nest: dict) -> Self:
        held = gather(self)
        return Skeleton(self).filled(Held(*(chosen(part, nest) for part in held)))

    def part(self, key: Any) -> Any:
        return self.v[key]

    def __getstate__(self) -> Any:
        return self.__dict__, self._frozen

    def __setstate__(self, state: Any) -> None:
        attributes, frozen = state
        self.__dict__.update(attributes)
        set_slot(self, "_frozen", frozen)
        for value in attributes.values():
            _adopt(self, value, orphans=True)

    # Where it stands among modules.

    def top_mod(self, depth: int | None = None) -> Module:
        """The root above this module, or the ancestor `depth` levels up, the root if there are
        fewer.
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
        """Its own variables under their path in `top_mod(depth)`; keyed by whole key chains with
        `flatten_key_chains`.
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
        """How many modules there are above this one."""
        above = parent_of(self)
        return 0 if above is None else 1 + above.mod_depth()

    def mod_height(self) -> int:
        """How many modules there are below this one, on the longest way down."""
        return max((level for _, _, level in submodules(self)), default=0)

    def sub_mods(
        self, depth: int | None = None, flatten_key_chains: bool = False, show_v: bool = True
    ) -> dict[str, Any]:
        """The nest of modules below this one, `depth` levels at most: at its ends the variables of
        the modules there, or, without `show_v`, the modules; keyed by whole key chains with
        `flatten_key_chains`.
        """
        nest: dict = {}
        for path, sub, level in submodules(self, depth):
            if level == depth or not any(is_module(x) for _, x in direct(sub)):
                shown = sub.v if show_v else sub
                if flatten_key_chains:
                    nest["/".join(map(str, path))] = shown
                else:
                    put(nest, path, shown)
        return nest

    # What is trained, and how.

    def train(self, mode: bool = True) -> Self:
        """Set `training` here and in every module below: dropout drops, batch norm takes the
        statistics of the batch.

        >>> iso.Dropout(0.5).train(False)(np.ones(2))
        array([1., 1.])
        """
        for sub in [self, *(sub for _, sub, _ in submodules(self))]:
            sub.training = mode
        return self

    def eval(self) -> Self:
        """`train(False)`."""
        return self.train(False)

    def freeze(self, *patterns: str) -> Self:
        """Take the variables whose key chain, or a beginning of it, matches a pattern such as
        "encoder/*/w" out of `v`, and so out of training; they are in `state` then.

        >>> net = iso.Linear(2, 1).freeze("w")
        >>> list(net.v), list(net.state)
        (['b'], ['w'])
        """
        return self._mark("freeze", patterns, True)

    def unfreeze(self, *patterns: str) -> Self:
        """Put frozen variables back into `v`: all, or those that match."""
        return self._mark("unfreeze", patterns or ("*",), False)

    def _mark(self, name: str, patterns: tuple[str, ...], frozen: bool) -> Self:
        owners = [self, *(sub for _, sub, _ in submodules(self))]
        for sub in owners:
            if sub.names_its_variables:
                raise TypeError(
                    f"{name}: {type(sub).__name__} names its variables itself; leave them out of "
                    "_create_variables instead"
                )
        chains = [(chain_of(path), x) for path, x in occurrences(self)]
        for pattern in patterns:
            if not any(_matches(chain, pattern) for chain, _ in chains):
                listed = ", ".join(chain for chain, _ in chains)
                raise ValueError(f"{name}: needed a pattern for some of {listed}, got {pattern!r}")
        marked = {id(x) for chain, x in chains if any(_matches(chain, p) for p in patterns)}
        for sub in owners:
            own = {chain_of(local) for local, x in direct(sub) if id(x) in marked}
            set_slot(sub, "_frozen", sub._frozen | own if frozen else sub._frozen - own)
        return self

    @property
    def num_params(self) -> int:
        """How many numbers are trained."""
        return sum(prod(x.shape) for x in tree.flatten(self.v)[0])

    def __repr__(self) -> str:
        return showing.outline(self)


def summary(module: Module, /, *args: Any, **kw: Any) -> str:
    """A table of what each module returns in `module(*args, **kw)`, what it holds itself, how often
    it is called and how long that takes; the module is left as it was.

    >>> net = iso.Sequential(iso.Linear(3, 4, key=0), iso.relu, iso.Linear(4, 1, key=1))
    >>> print(iso.summary(net, np.ones((2, 3), np.float32)).splitlines()[3][:41])
    layers/0: Linear       [2, 4]          16
    """
    if not is_module(module):
        raise TypeError(f"summary: needed a module, got {type(module).__name__}")
    watch = showing.Watch()
    copy = copied(origin_of(module), module, {}, How(watch))
    watch.enter(copy, args, kw)
    below = [("/".join(map(str, path)), sub) for path, sub, _ in submodules(copy)]
    return showing.table(watch, [("", copy), *below], module.num_params)


def _adopt(parent: Module, value: Any, orphans: bool = False) -> None:
    """Tell the modules in an attribute whose they are; `orphans`, those that are nobody's."""
    if is_module(value):
        if orphans and parent_of(value) is not None:
            return
        here: Any = parent
        while here is not None and here is not value:  # a module that its own part points back to
            here = parent_of(here)
        if here is None:
            set_slot(value, "_parent", weakref.ref(parent))
    elif isinstance(value, (list, tuple)):
        for x in value:
            _adopt(parent, x, orphans)
    elif isinstance(value, dict):
        for x in value.values():
            _adopt(parent, x, orphans)


def _path(root: Module, module: Module) -> tuple:
    """The path from a module down to one of those below it."""
    return next((path for path, sub, _ in submodules(root) if sub is module), ())


METHODS = {k for k, x in vars(Module).items() if isinstance(x, FunctionType) and k[0] != "_"}
TAKEN = "an attribute cannot be called {}, which is a method of modules"


def _adopting(init: Callable[..., None]) -> Callable[..., None]:
    """An `__init__` after which the modules in lists that were filled late know whose they are."""

    @wraps(init)
    def __init__(self: Module, *args: Any, **kw: Any) -> None:
        try:
            init(self, *args, **kw)
        except TypeError as error:
            keywords.explained(type(self).__name__, init, kw, error)
            raise
        for value in vars(self).values():
            if type(value) not in PLAIN:
                _adopt(self, value)

    return __init__


def _matches(chain: str, pattern: str) -> bool:
    """Whether a key chain, or what it begins with, is of a pattern."""
    keys = chain.split("/")
    return any(fnmatchcase("/".join(keys[: n + 1]), pattern) for n in range(len(keys)))
