"""Functions with a custom derivative. The given rule is used in every mode."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from threading import local
from typing import TYPE_CHECKING, Any

from ..core import tree
from ..core.dispatch import NUMBERS, backend_of, check_callable, find_backend
from .calls import arrays_of
from .transforms import stop_gradient

if TYPE_CHECKING:
    from ..core.contract import Contract
    from ..types.array_types import P, R, X


def custom_vjp(
    func: Callable[P, R],
    fwd: Callable[..., tuple[Any, X]],
    bwd: Callable[[X, Any], Any],
) -> Callable[P, R]:
    """`func` with a custom backward rule.

    `fwd(*args)` returns `(func(*args), residuals)`; `bwd(residuals, upstream)` returns a tuple with
    one gradient per argument, each a nest like the argument, or None for zeros. Outputs and
    gradients are arrays of the arguments' framework: a Python float, or an array of another
    framework, raises, because its gradient would be lost. Integers, strings and None among the
    outputs are kept, and residuals may be anything. Gradients flow to the arguments only: values
    that the functions capture are constants. For higher orders, the rule is used for the output
    again, while the residuals and the code of the rule are differentiated as usual. `fwd` may call
    the function that `custom_vjp` returned.

    >>> clipped = iso.custom_vjp(
    ...     np.exp, lambda x: (np.exp(x), np.exp(x)), lambda y, g: (np.clip(g * y, -1.0, 1.0),)
    ... )
    >>> iso.grad(lambda x: np.sum(clipped(x)))(np.array([-1.0, 5.0]))
    array([0.36787944, 1.        ])
    """
    for role, given in (("func", func), ("fwd", fwd), ("bwd", bwd)):
        if not callable(given):
            raise TypeError(f"custom_vjp: needed {role} as a function, got {type(given).__name__}")
    return ruled("custom_vjp", func, fwd, bwd)


def ruled(
    name: str, func: Callable, fwd: Callable, bwd: Callable, has_aux: bool = False
) -> Callable[..., Any]:
    """`custom_vjp`, with `name` in its error messages. With `has_aux` the output is `(out, aux)`;
    aux may be anything, and no gradient flows through it.
    """
    # for a call by `fwd` itself: `fwd` runs again only if that call is differentiated
    later = (lambda *args: (func(*args), args)), (lambda args, g: bwd(fwd(*args)[1], g))

    @wraps(func)
    def call(*args: Any) -> Any:
        leaves, form = tree.flatten(args)
        arrays = [x for x in leaves if find_backend(x) is not None]
        if not arrays:
            return func(*args)
        pair = later if any(rule is fwd for rule in RUNNING.rules) else (fwd, bwd)
        rule = Rule(name, backend_of(*arrays), func, *pair, leaves, form, has_aux)
        outs = rule.backend.custom_call(rule, tuple(arrays))
        return rule.rebuild_out(outs)

    return call


class Running(local):
    """The forward rules that run in this thread."""

    rules: tuple[Callable, ...] = ()


RUNNING = Running()


class Rule:
    """One call of a function with a custom rule, as functions of flat arrays, which a backend
    calls.
    """

    def __init__(
        self, name: str, backend: Contract, func: Callable, fwd: Callable, bwd: Callable,
        leaves: list, form: Any, has_aux: bool,
    ):  # fmt: skip
        self.name, self.has_aux = name, has_aux
        self.backend, self.plain, self.forward, self.backward = backend, func, fwd, bwd
        self.leaves, self.form = leaves, form
        self.where = [i for i, x in enumerate(leaves) if find_backend(x) is not None]
        self.rebuild_out: Callable = lambda outs: outs
        self.rebuild_residuals: Callable = lambda arrays: arrays

    def _args(self, arrays: tuple) -> Any:
        full = list(self.leaves)
        for i, x in zip(self.where, arrays):
            full[i] = x
        return tree.unflatten(self.form, full)

    def func(self, *arrays: Any) -> tuple:
        """The outputs of the function."""
        return self._outputs(self.plain(*self._args(arrays)))

    def _outputs(self, out: Any) -> tuple:
        check_outputs(self.name, self.backend, out[0] if self.has_aux else out)
        outs, self.rebuild_out = arrays_of(self.backend, out)
        return outs

    def fwd(self, *arrays: Any) -> tuple[tuple, tuple]:
        """The outputs and the arrays among the residuals."""
        before, RUNNING.rules = RUNNING.rules, (*RUNNING.rules, self.forward)
        try:
            both = self.forward(*self._args(arrays))
        finally:
            RUNNING.rules = before
        if not isinstance(both, tuple) or len(both) != 2:
            raise TypeError(
                f"{self.name}: needed fwd to return (output, residuals), got {type(both).__name__}"
            )
        outs = self._outputs(both[0])
        residuals, self.rebuild_residuals = arrays_of(self.backend, both[1])
        return outs, residuals

    def bwd(self, residuals: tuple, upstream: tuple, arrays: tuple) -> tuple:
        """One gradient per array: zeros if the rule returned None for it; None if the array is not
        of floating point.
        """
        given = self.backward(self.rebuild_residuals(residuals), self.rebuild_out(upstream))
        args = self._args(arrays)
        if not isinstance(given, tuple) or len(given) != len(args):
            came = f"{len(given)}" if isinstance(given, tuple) else f"a {type(given).__name__}"
            raise ValueError(
                f"{self.name}: needed bwd to return a tuple of {len(args)} gradients, one per "
                f"argument, got {came}"
            )
        grads: list[Any] = []
        for place, (arg, nest) in enumerate(zip(args, given)):
            grads += self._gradients(place, arg, nest)
        return tuple(grads)

    def _gradients(self, place: int, arg: Any, nest: Any) -> list[Any]:
        leaves, form = tree.flatten(arg)
        if nest is None:
            given = [None] * len(leaves)
        else:
            given, given_form = tree.flatten(nest)
            if given_form != form:
                raise ValueError(
                    f"{self.name}: needed bwd to return a nest like argument {place}, {form}, "
                    f"got {given_form}"
                )
        named = lambda i: tree.paths(arg)[i] and f", leaf {tree.paths(arg)[i]}"
        where = lambda i: f"argument {place}{named(i)}"
        return [
            self._gradient(x, g, partial(where, i))
            for i, (x, g) in enumerate(zip(leaves, given))
            if find_backend(x) is not None
        ]

    def _gradient(self, x: Any, g: Any, where: Callable[[], str]) -> Any:
        """A gradient that the rule returned for the array `x`, in the dtype of `x`."""
        xp = self.backend
        if not xp.is_float(x.dtype):
            return None
        if g is None:
            return xp.zeros_like(x)
        if type(g) in NUMBERS and not len(x.shape):
            g = xp.asarray(g, device=xp.device_of(x))
        elif type(g) not in NUMBERS and find_backend(g) is not xp:
            raise TypeError(
                f"{self.name}: needed bwd to return {xp.name} arrays, like the arguments, got a "
                f"{_kind(g)} for {where()}"
            )
        if tuple(getattr(g, "shape", ())) != tuple(x.shape):
            raise ValueError(
                f"{self.name}: needed bwd to return shape {tuple(x.shape)} for {where()}, "
                f"got {tuple(getattr(g, 'shape', ()))}"
            )
        if g.dtype == x.dtype:
            return g
        if xp.is_complex(g.dtype) and not xp.is_complex(x.dtype):
            g = xp.real(g)
        return xp.astype(g, x.dtype)


def check_outputs(name: str, backend: Contract, out: Any) -> None:
    """Raise if the output of a function with a custom rule has a leaf that is not allowed."""
    for i, y in enumerate(tree.flatten_whole(out)[0]):
        own = find_backend(y)
        if own is backend or (own is None and not isinstance(y, (float, complex))):
            continue
        path = tree.paths(out, whole=True)[i]
        at = f" at {path}" if path else ""
        raise TypeError(
            f"{name}: needed {backend.name} arrays as output, like the arguments, got a "
            f"{_kind(y)}{at}, whose gradient would be lost; compute it with iso.namespace(x), or "
            "inside iso.host_function"
        )


def _kind(x: Any) -> str:
    """The name of the type of `x`; for an array, with its module."""
    kind = type(x)
    return kind.__name__ if find_backend(x) is None else f"{kind.__module__}.{kind.__qualname__}"


def bind_custom_gradient_function(
    func: Callable[P, R], custom_grad_func: Callable[[Any, Any], Any], /
) -> Callable[P, R]:
    """`func` whose backward rule is `custom_grad_func((x, ret), upstream)`.

    With several arguments, `x` is the tuple of them and the rule returns a tuple of gradients.

    >>> f = iso.bind_custom_gradient_function(np.sin, lambda saved, g: 10 * g * np.cos(saved[0]))
    >>> iso.grad(lambda x: np.sum(f(x)))(np.array([0.0]))
    array([10.])
    """
    check_callable("bind_custom_gradient_function", func)
    check_callable("bind_custom_gradient_function", custom_grad_func)

    def fwd(*args: Any) -> tuple[Any, Any]:
        ret = func(*args)  # pyright: ignore[reportCallIssue]
        return ret, (args, ret)

    def bwd(saved: Any, upstream: Any) -> Any:
        args, ret = saved
        if len(args) == 1:
            return (custom_grad_func((args[0], ret), upstream),)
        return custom_grad_func((args, ret), upstream)

    return ruled("bind_custom_gradient_function", func, fwd, bwd)


def unseen(name: str, xp: Any, func: Callable, args: tuple) -> Any:
    """`func(*args)`, hidden from differentiation. Raises if `func` uses an array under
    differentiation that is not an argument, because its gradient would be lost.
    """
    out, seen = xp.run_unseen(func, stop_gradient(args, preserve_type=False))
    if seen:
        raise TypeError(
            f"{name}: the function uses an array under differentiation that is neither an argument "
            "nor captured in its closure; pass it as an argument"
        )
    return out


def gradients_of(xp: Any, func: Callable, args: tuple, upstream: Any) -> tuple:
    """The gradients of `func(*args)` for the gradient `upstream` of its output: one nest per
    argument. Leaves that are not floating-point arrays appear in it unchanged.
    """
    leaves, form = tree.flatten(args)
    wanted = [i for i, x in enumerate(leaves) if find_backend(x) is xp and xp.is_float(x.dtype)]

    def flat(*given: Any) -> tuple[tuple, tuple]:
        full = list(leaves)
        for i, x in zip(wanted, given):
            full[i] = x
        outs = tree.flatten(func(*tree.unflatten(form, full)))[0]
        return tuple(y for y in outs if find_backend(y) is xp and xp.is_float(y.dtype)), ()

    _, pullback, _ = xp.vjp(flat, tuple(leaves[i] for i in wanted), True)
    seeds = [g for g in tree.flatten(upstream)[0] if find_backend(g) is xp and xp.is_float(g.dtype)]
    found = dict(zip(wanted, pullback(tuple(seeds))))
    return tree.unflatten(form, [found.get(i, x) for i, x in enumerate(leaves)])
