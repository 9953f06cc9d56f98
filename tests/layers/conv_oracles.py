"""Convolutions by naive loops in float64 NumPy, and the checks that compare with them.

A convolution is linear in x and in the filters. So three loops over the same pairs of positions
give it and both its gradients; a second derivative is two first ones, and the transposed
convolution is the gradient with respect to x. `check` takes one convolution and a curved loss;
`check_all` takes several and compiles them as one program.
"""

from itertools import product
from typing import NamedTuple

import numpy as np

import isomorph as iso
from isomorph.scoreboard import comparing
from oracles import kind_of, numpy_of


class Case(NamedTuple):
    """A convolution of x `[batch, *sizes, in]` with filters `[*k, in/groups, out]`."""

    sizes: tuple
    k: tuple
    strides: tuple
    pads: tuple
    x_dilations: tuple
    dilations: tuple
    groups: int = 1

    def pairs(self, size):
        """(position in the output, in the filter, in x) wherever x is not padding."""
        for o in product(*map(range, size)):
            for k in product(*map(range, self.k)):
                p = [
                    a * s + b * d - low
                    for a, s, b, d, (low, _) in zip(o, self.strides, k, self.dilations, self.pads)
                ]
                inside = all(
                    a % d == 0 and 0 <= a // d < n
                    for a, d, n in zip(p, self.x_dilations, self.sizes)
                )
                if inside:
                    yield o, k, tuple(a // d for a, d in zip(p, self.x_dilations))

    @property
    def size(self):
        """The sizes of the output."""
        return tuple(
            ((n - 1) * e + 1 + low + high - ((k - 1) * d + 1)) // s + 1
            for n, e, (low, high), k, d, s in zip(
                self.sizes, self.x_dilations, self.pads, self.k, self.dilations, self.strides
            )
        )

    def shares(self, into, out):
        """(channels of x, channels of the output) of each group."""
        a, b = into // self.groups, out // self.groups
        return [(slice(i * a, i * a + a), slice(i * b, i * b + b)) for i in range(self.groups)]

    def conv(self, x, w):
        y = np.zeros((x.shape[0], *self.size, w.shape[-1]))
        for o, k, p in self.pairs(self.size):
            for a, b in self.shares(x.shape[-1], w.shape[-1]):
                y[(slice(None), *o, b)] += x[(slice(None), *p, a)] @ w[(*k, slice(None), b)]
        return y

    def back_x(self, g, w):
        x = np.zeros((g.shape[0], *self.sizes, w.shape[-2] * self.groups))
        for o, k, p in self.pairs(g.shape[1:-1]):
            for a, b in self.shares(x.shape[-1], w.shape[-1]):
                x[(slice(None), *p, a)] += g[(slice(None), *o, b)] @ w[(*k, slice(None), b)].T
        return x

    def back_w(self, x, g):
        w = np.zeros((*self.k, x.shape[-1] // self.groups, g.shape[-1]))
        for o, k, p in self.pairs(g.shape[1:-1]):
            for a, b in self.shares(x.shape[-1], g.shape[-1]):
                w[(*k, slice(None), b)] += x[(slice(None), *p, a)].T @ g[(slice(None), *o, b)]
        return w


def same(sizes, k, strides, dilations):
    """SAME padding, by its definition."""
    spans = [a + (a - 1) * (d - 1) for a, d in zip(k, dilations)]
    totals = [max((-(-n // s) - 1) * s + span - n, 0) for n, s, span in zip(sizes, strides, spans)]
    return tuple((t // 2, t - t // 2) for t in totals)


class Linear(NamedTuple):
    """A function that is linear in x and in w, with its two adjoints, on NumPy arrays."""

    apply: object  # (x, w) -> y
    back_x: object  # (upstream, w) -> gradient of x
    back_w: object  # (x, upstream) -> gradient of w


def forward(case):
    return Linear(case.conv, case.back_x, case.back_w)


def transposed(case):
    """The transposed convolution; its x is the output of the case, filters are `[*k, in,
    out/groups]`, `sizes` is the output.
    """
    turn = lambda w: np.swapaxes(w, -1, -2)
    return Linear(
        lambda x, w: case.back_x(x, turn(w)),
        lambda u, w: case.conv(u, turn(w)),
        lambda x, u: turn(case.back_w(u, x)),
    )


def first(x):
    """Move channels first."""
    return np.ascontiguousarray(np.moveaxis(x, -1, 1))


def filters_first(w):
    """`[*k, a, b]` as `[b, a, *k]`, the format of a convolution's filters."""
    return np.ascontiguousarray(np.transpose(w, (w.ndim - 1, w.ndim - 2, *range(w.ndim - 2))))


def filters_first_transposed(w):
    """`[*k, a, b]` as `[a, b, *k]`, the format of a transposed convolution's filters."""
    return np.ascontiguousarray(np.moveaxis(w, (-2, -1), (0, 1)))


PLAIN = (lambda x: x, lambda w: w)  # the layouts that the call takes


def check(backend, call, linear, x, w, bias=True, forms=PLAIN, second=False, compiled=False):
    """Compare `call(x, w, bias)` and its gradients on a backend with the loops: float64 within
    1e-10, float32 within 1e-5 of the largest value. The loss is ½ Σ c·y².

    With `second`, also the gradient of Σ r · (gradient of x), for x and for w. With `compiled`, all
    of it eager and compiled.
    """
    rng = np.random.default_rng(1)
    of_x, of_w = forms
    y = linear.apply(x, w)
    b = [rng.standard_normal(y.shape[-1])] if bias else []
    y = y + b[0] if bias else y
    c, r = rng.standard_normal(y.shape), rng.standard_normal(x.shape)
    u, through = c * y, c * linear.apply(r, w)
    grads = [of_x(linear.back_x(u, w)), of_w(linear.back_w(x, u))]
    grads += [u.sum(tuple(range(u.ndim - 1)))] if bias else []
    expected = [of_x(y), np.sum(c * y * y) / 2, *grads]
    again = [
        of_x(linear.back_x(through, w)),
        of_w(linear.back_w(r, u) + linear.back_w(x, through)),
    ]

    def loss(x, w, c, *b):
        y = call(x, w, b[0] if b else None)
        return iso.namespace(x).sum(c * y * y) / 2, y

    def first_order(c, r, x, w, *b):
        given = (0, 1, *([3] if b else []))
        (total, y), grads = iso.value_and_grad(loss, argnums=given, has_aux=True)(x, w, c, *b)
        return [y, total, *grads]

    def along(x, w, c, r, *b):
        grad, _ = iso.grad(loss, has_aux=True)(x, w, c, *b)
        return iso.namespace(x).sum(r * grad)

    def both_orders(c, r, x, w, *b):
        found = first_order(c, r, x, w, *b)
        return [*found, *iso.grad(along, argnums=(0, 1))(x, w, c, r, *b)]

    # JAX compiles each eager operation by itself: one first-order run is enough
    eager = (lambda f: f) if compiled or backend != "jax" else iso.jit
    for dtype, tolerance in ((np.float64, 1e-10), (np.float32, 1e-5)):
        arrays = [iso.convert(np.asarray(a, dtype), backend) for a in (of_x(c), of_x(r), of_x(x))]
        arrays += [iso.convert(np.asarray(a, dtype), backend) for a in (of_w(w), *b)]
        if dtype is np.float32:
            quick = iso.jit if backend == "jax" else lambda f: f
            compare(quick(first_order)(*arrays), expected, backend, dtype, tolerance)
        elif second and backend != "jax":
            compare(eager(both_orders)(*arrays), expected + again, backend, dtype, tolerance)
        else:
            compare(eager(first_order)(*arrays), expected, backend, dtype, tolerance)
        if compiled and dtype is np.float64:
            wanted = expected + again if second else expected
            run = iso.jit(both_orders if second else first_order)
            compare(run(*arrays), wanted, backend, dtype, tolerance)
    assert compiled or not second


class Example(NamedTuple):
    """A call `(x, w, bias)`, what it is to compute, and arrays with channels last."""

    call: object
    linear: Linear
    x: np.ndarray
    w: np.ndarray
    bias: bool = True
    forms: tuple = PLAIN


def arrays_of(example):
    """x, w, random numbers like the output and like x, and perhaps a bias, as the call takes them;
    and the expected results of `derivatives_of`.
    """
    linear, x, w = example.linear, example.x, example.w
    of_x, of_w = example.forms
    rng = np.random.default_rng(1)
    y = linear.apply(x, w)
    b = [rng.standard_normal(y.shape[-1])] if example.bias else []
    c, r = rng.standard_normal(y.shape), rng.standard_normal(x.shape)
    first = [of_x(linear.back_x(c, w)), of_w(linear.back_w(x, c))]
    first += [c.sum(tuple(range(c.ndim - 1)))] if b else []
    second = [of_w(linear.back_w(r, c)), of_x(linear.apply(r, w))]
    return [of_x(x), of_w(w), of_x(c), of_x(r), *b], [of_x(sum(b, y)), *first, *second]


def derivatives_of(example, second=True):
    """A function that returns y, the gradients of Σ c·y, and those of Σ r·(its gradient for x) for
    w and for c. A loss without squares needs no loops of its own in a program: torch compiles each
    for more than a second.
    """

    def run(x, w, c, r, *b):
        xp = iso.namespace(x)

        def loss(x, w, c, *b):
            y = example.call(x, w, b[0] if b else None)
            return xp.sum(c * y), y

        def along(w, c):
            return xp.sum(r * iso.grad(loss, has_aux=True)(x, w, c, *b)[0])

        grads, y = iso.grad(loss, (0, 1, 3) if b else (0, 1), has_aux=True)(x, w, c, *b)
        return [y, *grads, *(iso.grad(along, (0, 1))(w, c) if second else ())]

    return run


def check_all(backend, examples):
    """Compare values, gradients of all arguments, and second derivatives with the loops: float64
    within 1e-10, float32 within 1e-5 of the largest value. All are eager, and one program computes
    the first example again (on torch without its second derivatives, which would compile twice as
    long: test_conv_curved.py does that). JAX compiles each eager operation by itself, so there only
    the values are eager, and the program computes everything.
    """
    problems = [arrays_of(example) for example in examples]
    kept = ((np.float64, 1e-10), (np.float32, 1e-5))
    given = [
        [[iso.convert(np.asarray(a, dtype), backend) for a in arrays] for arrays, _ in problems]
        for dtype, _ in kept
    ]

    def everything(given):
        runs = map(derivatives_of, examples)
        return [run(*arrays) for run, arrays in zip(runs, given)]

    if backend == "jax":
        found = iso.jit(lambda given: [everything(arrays) for arrays in given])(given)
        for example, (x, w, _, _, *b), (_, expected) in zip(examples, given[0], problems):
            y = example.call(x, w, b[0] if b else None)
            compare([y], expected[:1], backend, np.float64, 1e-10)
    else:
        found = [everything(arrays) for arrays in given]
        second = backend != "torch"
        first = iso.jit(derivatives_of(examples[0], second))(*given[0][0])
        expected = problems[0][1] if second else problems[0][1][:-2]
        compare(first, expected, backend, np.float64, 1e-10, values=1)
    for results, (dtype, tolerance) in zip(found, kept):
        for ours, (_, expected) in zip(results, problems, strict=True):
            compare(ours, expected, backend, dtype, tolerance, values=1)


def compare(found, expected, backend, dtype, tolerance, values=2):
    """Compare results with the expected ones; the first are values, the others gradients."""
    assert len(found) == len(expected)
    for i, (a, b) in enumerate(zip(found, expected)):
        assert kind_of(a) == backend or backend == "numpy"
        a, b = numpy_of(a), np.asarray(b)
        assert a.shape == b.shape
        assert a.dtype == dtype
        scale = max(1.0, float(np.abs(b).max(initial=0)))
        with comparing("value" if i < values else "gradient"):
            np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * scale)


def drawn(seed, *shapes):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape) for shape in shapes]
