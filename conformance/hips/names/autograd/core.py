"""autograd's core: pullbacks, pushforwards and functions with a rule, on `iso.vjp`, `iso.jvp` and
`iso.custom_vjp`.

autograd passes gradients without conjugation: the gradient of f at z = x + iy is df/dx - i df/dy.
isomorph's is the conjugate of that, so gradients are conjugated on their way in and out.
"""

from functools import wraps
from itertools import count

import numpy as np

import isomorph as iso

from .nests import flatten, floating, matched
from .spaces import VSpace, vspace
from .tracer import isbox


def make_vjp(fun, x):
    """`(pullback, fun(x))`."""
    leaves, rebuild = flatten(x)
    form = {}

    def flat(*leaves):
        out = fun(rebuild(leaves))
        outs, form["out"] = flatten(out)
        form["plain"] = out, [isbox(y) for y in outs]
        return tuple(map(floating, outs))

    if not leaves:
        y = fun(x)
        return lambda g: x, y
    outs, pullback = iso.vjp(flat, *map(floating, leaves))

    def vjp(g):
        given = [np.conjugate(matched(part, y)) for part, y in zip(flatten(g)[0], outs)]
        return rebuild([np.conjugate(d) for d in pullback(tuple(given))])

    plain, traced = form["plain"]
    return vjp, form["out"](outs) if any(traced) else plain


def make_jvp(fun, x):
    """The function of a tangent that returns `(fun(x), its tangent)`."""
    leaves, rebuild = flatten(x)
    leaves = list(map(floating, leaves))
    form = {}

    def flat(*leaves):
        outs, form["out"] = flatten(fun(rebuild(leaves)))
        return tuple(map(floating, outs))

    def jvp(v):
        along = [matched(part, leaf) for part, leaf in zip(flatten(v)[0], leaves)]
        outs, tangents = iso.jvp(flat, leaves, along)
        return form["out"](outs), form["out"](tangents)

    return jvp


RULES = {}  # a function made by `primitive` -> {argument number: maker of its pullback}
primitive_vjps = RULES


def primitive(func):
    """`func` with a rule, which `defvjp` gives."""

    @wraps(func)
    def call(*args, **kw):
        wanted = [i for i, a in enumerate(args) if any(map(isbox, flatten(a)[0]))]
        if not wanted:
            return func(*args, **kw)

        def plain(*args):
            outs, rebuild = flatten(func(*args, **kw))
            return rebuild(list(map(floating, outs)))

        def fwd(*args):
            y = plain(*args)
            return y, (y, args)

        def bwd(saved, g):
            ans, args = saved
            found = []
            for i in range(len(args)):
                if i not in wanted:
                    found.append(None)
                    continue
                d = rule_of(call, i)(i, ans, args, kw)(_each(np.conjugate, g))
                found.append(None if d is None else _each(np.conjugate, _like(d, args[i])))
            return tuple(found)

        return iso.custom_vjp(plain, fwd, bwd)(*args)

    return call


def rule_of(func, i):
    rules = RULES.get(func, {})
    rule = rules.get(i, rules.get(None))
    if rule is None:
        raise NotImplementedError(f"VJP of {func.__name__} wrt argnum {i} not defined")
    return rule


def _each(func, nest):
    leaves, rebuild = flatten(nest)
    return rebuild([func(x) for x in leaves])


def _like(d, x):
    given, rebuild = flatten(d)
    return rebuild([matched(part, floating(leaf)) for part, leaf in zip(given, flatten(x)[0])])


def defvjp(fun, *makers, argnums=None):
    def rule(maker):
        if maker is None:
            return lambda i, ans, args, kw: lambda g: None
        return lambda i, ans, args, kw: maker(ans, *args, **kw)

    numbers = count() if argnums is None else argnums
    RULES.setdefault(fun, {}).update({i: rule(maker) for i, maker in zip(numbers, makers)})


def defvjp_argnum(fun, maker):
    RULES[fun] = {None: maker}


def defvjp_argnums(fun, maker):
    def one(i, ans, args, kw):
        return lambda g: maker((i,), ans, args, kw)(g)[0]

    RULES[fun] = {None: one}


def defjvp(fun, *makers, **kw):
    """Ignored: `iso.jvp` differentiates the pullback."""


defjvp_argnum = defjvp_argnums = def_linear = defjvp
