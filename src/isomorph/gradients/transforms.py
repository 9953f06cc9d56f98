"""The transforms `grad`, `vjp`, `jvp`, `jac` and so on, written once with the method `vjp` that
each backend has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from math import prod
from typing import TYPE_CHECKING, Any, Literal, overload

from ..compile.kept_programs import keeper, kept
from ..core import tree
from ..core.dispatch import check_callable, dtype_of, find_backend
from .calls import Pulled, check_argnums, like, pulled, rebuilt

if TYPE_CHECKING:
    from typing import Concatenate

    from ..types.array_types import P, R, T, Ts, X


@overload
def grad(
    func: Callable[Concatenate[X, P], Any], argnums: Literal[0] = 0, has_aux: Literal[False] = False
) -> Callable[Concatenate[X, P], X]: ...
@overload
def grad(
    func: Callable[Concatenate[X, P], tuple[Any, T]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
) -> Callable[Concatenate[X, P], tuple[X, T]]: ...
@overload
def grad(func: Callable[P, Any], argnums: int, has_aux: bool = False) -> Callable[P, Any]: ...
@overload
def grad(
    func: Callable[P, Any], argnums: Sequence[int], has_aux: bool = False
) -> Callable[P, tuple[Any, ...]]: ...
def grad(
    func: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The function that returns the gradient of a scalar `func`, a nest like the chosen argument.

    With several `argnums`, a tuple of gradients; with `has_aux`, `func` returns `(value, aux)` and
    the result is `(gradient, aux)`. For a complex argument z = x + iy the gradient is
    df/dx + i df/dy, on every backend.

    >>> iso.grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    both = _value_and_grad("grad", func, argnums, has_aux)

    @wraps(func)
    def gradient(*args: Any, **kw: Any) -> Any:
        value, grads = both(*args, **kw)
        return (grads, value[1]) if has_aux else grads

    return gradient


@overload
def value_and_grad(
    func: Callable[Concatenate[X, P], R], argnums: Literal[0] = 0, has_aux: bool = False
) -> Callable[Concatenate[X, P], tuple[R, X]]: ...
@overload
def value_and_grad(
    func: Callable[P, R], argnums: int, has_aux: bool = False
) -> Callable[P, tuple[R, Any]]: ...
@overload
def value_and_grad(
    func: Callable[P, R], argnums: Sequence[int], has_aux: bool = False
) -> Callable[P, tuple[R, tuple[Any, ...]]]: ...
def value_and_grad(
    func: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The function that returns `(value, gradient)` of a scalar `func`, running it once.

    With `has_aux`, `func` returns `(value, aux)` and the result is `((value, aux), gradient)`.

    >>> iso.value_and_grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    (np.float64(5.0), array([2., 4.]))
    """
    return wraps(func)(_value_and_grad("value_and_grad", func, argnums, has_aux))


def value_and_grad_alone(name: str, func: Callable[..., Any]) -> Callable[..., Any]:
    """`value_and_grad` with `has_aux=True`; error messages begin with `name`. A backend may compute
    it in a faster way, because the caller promises to differentiate neither the results nor with
    respect to arrays that `func` captures.
    """
    return _value_and_grad(name, func, 0, True, alone=True)


def _value_and_grad(
    name: str, func: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool,
    alone: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    check_callable(name, func)
    places = check_argnums(name, argnums)

    def both(*args: Any, **kw: Any) -> Any:
        run = pulled(
            name, func, places, args, kw, one_scalar=True, has_aux=has_aux, once=True, alone=alone
        )
        (value,) = run.outs
        grads = rebuilt(run.in_form, run.pullback((run.backend.ones_like(value),)))
        grads = grads[0] if isinstance(argnums, int) else grads
        return ((value, run.aux) if has_aux else value), grads

    return both


@overload
def vjp(
    func: Callable[..., R], *primals: *Ts, has_aux: Literal[False] = False
) -> tuple[R, Callable[[Any], tuple[*Ts]]]: ...
@overload
def vjp(
    func: Callable[..., tuple[R, T]], *primals: *Ts, has_aux: Literal[True]
) -> tuple[R, Callable[[Any], tuple[*Ts]], T]: ...
def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """`(func(*primals), pullback)`: the pullback takes a nest like the output and returns one
    gradient per primal.

    With `has_aux`, `func` returns `(out, aux)` and the result is `(out, pullback, aux)`. The
    pullback of complex arrays is the conjugate transpose of the Jacobian, on every backend.

    >>> y, pullback = iso.vjp(np.sin, np.array([0.0, 0.0]))
    >>> pullback(np.array([1.0, 2.0]))
    (array([1., 2.]),)
    """
    check_callable("vjp", func)
    if not primals:
        raise TypeError("vjp: needed at least one argument to differentiate, got none")
    run = pulled("vjp", func, tuple(range(len(primals))), primals, {}, has_aux=has_aux)

    def pullback(cotangent: Any) -> tuple[Any, ...]:
        given, form = tree.flatten(cotangent)
        if form != run.out_form:
            raise ValueError(f"pullback: needed a nest like the output, {run.out_form}, got {form}")
        given = tuple(
            like(run.backend, "pullback", "output", y, g) for y, g in zip(run.outs, given)
        )
        return rebuilt(run.in_form, run.pullback(given))

    out = tree.unflatten(run.out_form, run.outs)
    return (out, pullback, run.aux) if has_aux else (out, pullback)


def jvp(func: Callable[..., R], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[R, R]:
    """`(func(*primals), tangent)`: the directional derivative along `tangents`, one per primal.

    It is computed by differentiating the pullback, which is linear. So custom backward rules are
    used here too.

    >>> iso.jvp(np.sin, (np.array([0.0, 0.0]),), (np.array([1.0, 2.0]),))
    (array([0., 0.]), array([1., 2.]))
    """
    check_callable("jvp", func)
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError("jvp: needed primals and tangents as tuples, one entry per argument")
    places = tuple(range(len(primals)))
    run = pulled("jvp", func, places, tuple(primals), {})
    along, form = tree.flatten(tuple(tangents))
    wanted = tree.flatten(tuple(primals))[1]
    if form != wanted:
        raise ValueError(f"jvp: needed tangents like the primals, {wanted}, got {form}")
    along = tuple(like(run.backend, "jvp", "primal", x, t) for x, t in zip(run.ins, along))
    zeros = tuple(run.backend.zeros_like(y) for y in run.outs)
    _, transposed, _ = run.backend.vjp(lambda *u: (run.pullback(u), ()), zeros, True)
    unflatten = lambda ys: tree.unflatten(run.out_form, ys)
    return unflatten(run.outs), unflatten(transposed(along))


def jac(
    func: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[P, Any]:
    """The function that returns the Jacobian: for every pair of leaves an array of shape
    `out.shape + x.shape`, nested like the outputs, then like the chosen inputs. It is computed row
    by row, with the pullback; `jacrev` is the same, `jacfwd` computes it column by column. Eager
    calls on JAX and TensorFlow keep their programs; see `scan`.

    With `has_aux`, `func` returns `(out, aux)` and the result is `(jacobian, aux)`.

    >>> iso.jac(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    return _jac("jac", func, argnums, has_aux)


def jacrev(
    func: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[P, Any]:
    """`jac` under the name it has elsewhere: one backward pass per element of the output.

    >>> iso.jacrev(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    return _jac("jacrev", func, argnums, has_aux)


def jacfwd(
    func: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[P, Any]:
    """The Jacobian as `jac` returns it, computed column by column, one `jvp` per element of the
    chosen inputs: faster if these are fewer than those of the output. Inputs must be real; outputs
    may be complex.

    >>> iso.jacfwd(lambda x: x * np.array([1.0, 2.0, 3.0]))(np.array(2.0))
    array([1., 2., 3.])
    """
    return _jac("jacfwd", func, argnums, has_aux, by_columns=True)


def value_and_jac(
    func: Callable[P, R], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[P, tuple[R, Any]]:
    """The function that returns `(value, jacobian)`, running `func` once; see `jac`.

    With `has_aux`, `func` returns `(out, aux)` and the result is `((out, aux), jacobian)`.

    >>> iso.value_and_jac(lambda x: x**2)(np.array([1.0, 2.0]))[0]
    array([1., 4.])
    """
    return _jac("value_and_jac", func, argnums, has_aux, with_value=True)


def _jac(
    name: str, func: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool = False,
    by_columns: bool = False, with_value: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    check_callable(name, func)
    places = check_argnums(name, argnums)

    choice = (name, places, isinstance(argnums, int), has_aux, by_columns, with_value)

    @wraps(func)
    def jacobian(*args: Any, **kw: Any) -> Any:
        call, xp = (func, choice, args, kw), keeper((args, kw))
        return _jacobian(*call) if xp is None else kept(xp, _jacobian, call)

    return jacobian


def _jacobian(func: Callable[..., Any], choice: tuple, args: tuple, kw: dict[str, Any]) -> Any:
    name, places, is_one, has_aux, by_columns, with_value = choice
    run = pulled(name, func, places, args, kw, has_aux=has_aux)
    blocks = []
    for leaves in _columns(name, run) if by_columns else _all_rows(name, run):
        grads = rebuilt(run.in_form, leaves)
        blocks.append(grads[0] if is_one else grads)
    found = tree.unflatten(run.out_form, blocks)
    if not with_value:
        return (found, run.aux) if has_aux else found
    out = tree.unflatten(run.out_form, run.outs)
    return ((out, run.aux) if has_aux else out), found


def _all_rows(name: str, run: Pulled) -> list[list[Any]]:
    """For every output, its derivatives with respect to every leaf."""
    for y in run.outs:
        if run.backend.is_complex(y.dtype):
            raise TypeError(f"{name}: needed real outputs, got {dtype_of(y)}; use iso.vjp")
    return [_rows(run, place, y) for place, y in enumerate(run.outs)]


def _columns(name: str, run: Pulled) -> list[list[Any]]:
    """The same by columns: the pullback is linear, and its own pullback is called once per element
    of every leaf.
    """
    xp = run.backend
    for x in run.ins:
        if xp.is_complex(x.dtype):
            raise TypeError(f"{name}: needed real inputs, got {dtype_of(x)}; use iso.jvp")
    zeros = tuple(xp.zeros_like(y) for y in run.outs)
    _, transposed, _ = xp.vjp(lambda *u: (run.pullback(u), ()), zeros)
    found: list[list[Any]] = [[] for _ in run.outs]
    for place, x in enumerate(run.ins):
        shape = tuple(x.shape)

        def push(column: Any, place: int = place) -> tuple:
            ins = enumerate(run.ins)
            return transposed(tuple(column if i == place else xp.zeros_like(z) for i, z in ins))

        for outs, columns in zip(found, xp.map_rows(push, _basis(xp, x))):
            last = xp.moveaxis(columns, 0, -1)
            outs.append(xp.reshape(last, (*tuple(columns.shape)[1:], *shape)))
    return found


def _basis(xp: Any, x: Any) -> Any:
    """For each element of `x` an array of its shape, with a 1 there and 0 elsewhere."""
    size = prod(tuple(x.shape))
    return xp.reshape(xp.eye(size, dtype=x.dtype, device=xp.device_of(x)), (size, *x.shape))


def _rows(run: Pulled, place: int, y: Any) -> list[Any]:
    """The derivatives of the output `y` with respect to every leaf: the pullback is called once per
    element of `y`.
    """
    xp, shape = run.backend, tuple(y.shape)

    def pull(row: Any) -> tuple:
        return run.pullback(
            tuple(row if i == place else xp.zeros_like(u) for i, u in enumerate(run.outs))
        )

    rows = xp.map_rows(pull, _basis(xp, y))
    return [xp.reshape(r, (*shape, *tuple(r.shape)[1:])) for r in rows]


def hessian(func: Callable[P, Any], argnums: int | Sequence[int] = 0) -> Callable[P, Any]:
    """The function that returns the matrix of second derivatives of a scalar `func`.

    The result has, for every pair of leaves x and y of the chosen inputs, an array of shape
    `x.shape + y.shape`: a nest like the chosen inputs, in which each leaf is such a nest again.

    >>> iso.hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
    array([[4., 2.],
           [2., 0.]])
    """
    return wraps(func)(_jac("hessian", grad(func, argnums), argnums))


@overload
def hvp(func: Callable[..., Any], primals: tuple[*Ts], tangents: Sequence[Any]) -> tuple[*Ts]: ...
@overload
def hvp(
    func: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Any, ...]: ...
def hvp(func: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The Hessian of a scalar `func` at `primals` times `tangents`, one nest per primal.

    >>> iso.hvp(lambda x: np.sum(x**3), (np.array([1.0, 2.0]),), (np.array([1.0, 1.0]),))
    (array([ 6., 12.]),)
    """
    check_callable("hvp", func)
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError("hvp: needed primals and tangents as tuples, one entry per argument")
    places = tuple(range(len(primals)))
    return jvp(grad(func, places), primals, tangents)[1]


@overload
def stop_gradient(nest: T, /, *, preserve_type: Literal[True] = True) -> T: ...
@overload
def stop_gradient(nest: Any, /, *, preserve_type: bool) -> Any: ...
def stop_gradient(nest: Any, /, *, preserve_type: bool = True) -> Any:
    """The same values, through which no gradient flows; leaves that are not arrays are kept.

    With `preserve_type`, a variable, or a tensor that requires gradients, becomes a new one of the
    same type, unless a program is being compiled. Otherwise the result is a plain array.

    >>> iso.grad(lambda x: np.sum(iso.stop_gradient(x) * x))(np.array([1.0, 2.0]))
    array([1., 2.])
    """

    def stop(x: Any) -> Any:
        backend = find_backend(x)
        if backend is None:
            return x
        return backend.stop_gradient(x, preserve_type)

    return tree.map(stop, nest)
