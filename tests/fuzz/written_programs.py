"""Random programs that write into arrays, through aliases and views, and read them again.

A program is a list of lines in terms of `x`, a vector. It is made line by line; what plain NumPy
refuses is left out. A transform of it, one of `TRANSFORMS`, is compared with the same lines in
plain NumPy: the value as it is, first and second derivatives by central differences.

    python tests/fuzz/written_programs.py 5000 --seed 3
"""

import argparse
import random
import sys
import warnings

import numpy

import isomorph as iso
import isomorph.numpy

# no two sums of up to two of each are equal, or one could come before the other when sorted
X = numpy.array([0.7119263, 1.3390857, 0.4457411, 1.9240739, 1.1038127, 0.8682951])
ROWS = numpy.stack([X, 1.01 * X, 0.97 * X])
WEIGHTS = numpy.array([0.7, -1.2, 0.4])  # of the rows
TANGENT = numpy.cos(1.3 * numpy.arange(X.size))
SHAPES = [(6,), (2, 3), (3, 3), (4,), (3,), (2, 3, 2), (1, 3), (5,)]
HELPERS = """
def thrice(a): a *= 3
def shifted(a, b): a += b; return a
def first_of(a): return a[0]
"""


class Program:
    """A program while it is made: its lines, and what its names stand for in plain NumPy."""

    def __init__(self, seed, plain=False):
        self.dice = random.Random(seed)
        self.plain = plain  # written for numpy, without arrays that only isomorph.numpy can make
        self.lines, self.env = [], environment(numpy, X.copy())
        self.arrays, self.numbers, self.count = ["x"], [], 0
        for line in range(self.dice.randint(5, 15)):
            self.extend(first=line == 0)

    def extend(self, first):
        for _ in range(30):
            kind = Program.made if first else self.dice.choice(KINDS)
            line = kind(self)
            if line and self.takes(line):
                return

    def takes(self, line):
        """Add a line if NumPy runs it, and its numbers stay small."""
        trial = Program.__new__(Program)
        trial.lines = [*self.lines, line]
        try:
            with warnings.catch_warnings(action="error"):  # a complex number in a real array
                env = run(trial.lines, numpy, X)
        except Exception:
            return False
        arrays = [x for x in env.values() if isinstance(x, (numpy.ndarray, numpy.inexact))]
        if not all(numpy.isfinite(x).all() and (numpy.abs(x) < 1e3).all() for x in arrays):
            return False
        self.lines, self.env = trial.lines, env
        names = [n for n in env if n not in BASE]
        self.arrays = [n for n in (*names, "x") if type(env[n]) is numpy.ndarray]
        self.numbers = [n for n in names if isinstance(env[n], numpy.floating)]
        return True

    # The parts of lines.

    def new(self):
        self.count += 1
        return f"v{self.count}"

    def array(self):
        return self.dice.choice(self.arrays)

    def number(self):
        options = [
            f"x[{self.dice.randrange(6)}]",
            f"{self.dice.uniform(0.3, 1.7):.3f}",
            "np.mean(x)",
            "x[3].copy()",
            f"np.sinc(x[{self.dice.randrange(6)}])",
            "np.interp(x[1], [0.0, 1.0, 2.0], [0.5, 0.7, 1.3])",
        ]
        return self.dice.choice(options + self.numbers)

    def like(self, shape):
        """An expression that broadcasts to a shape."""
        fits = [n for n in self.arrays if broadcasts(self.env[n].shape, shape)]
        if not fits or self.dice.random() < 0.3:
            return self.number()
        name = self.dice.choice(fits)
        forms = ("{}", "{} * 0.5", "np.sin({})", "{} + 0.1", "np.exp(-{})", "{} * {}")
        return self.dice.choice(forms).format(name, name)

    def index(self, shape):
        parts = []
        for n in shape[: self.dice.randint(1, max(1, len(shape)))] if all(shape) else ():
            i, j = sorted((self.dice.randint(0, n), self.dice.randint(0, n)))
            parts.append(self.dice.choice([
                f"{self.dice.randrange(n)}", f"{-1 - self.dice.randrange(n)}", f"{i}:{j}",
                f"{i}:", f":{j}", "::-1", "::2", ":", "...",
                f"[{self.dice.randrange(n)}, {self.dice.randrange(n)}]",
                f"[{self.dice.randrange(n)}, 0, 0]",
            ]))  # fmt: skip
        if parts.count("...") > 1:
            parts = [p if p != "..." else ":" for p in parts]
        if self.dice.random() < 0.1:
            parts = [f"np.arange({shape[0]}) % 2 == {self.dice.randint(0, 1)}"]
        if "..." not in parts and self.dice.random() < 0.1:
            parts.append("...")
        return ", ".join(parts) or "..."

    # Lines.

    def made(self):
        shape, v, a = self.dice.choice(SHAPES), self.new(), self.array()
        own = """{a} * 1.0; np.exp({a} * 0.3); np.outer(x[:3], x[3:]); {a}.copy(); np.copy({a})
            {a}.astype(float); np.zeros_like({a}); np.ones_like({a}); np.full_like({a}, 0.5)
            {a}.flatten(); {a} * (1.0 + 0.5j)"""
        ours = """np.zeros({s}); np.ones({s}); np.full({s}, 0.3); np.eye(3); np.arange(6.0)
            np.linspace(0.0, 1.0, {n}); np.array({a}); np.full({s}, {k}); np.array([{k}, {k}])
            np.empty({s}).FILL; np.zeros({s}, complex)
            np.zeros(()); np.array({k}); np.asarray({k}); np.full((), 0.4)"""
        form = self.dice.choice(forms(own if self.plain else f"{own}\n{ours}"))
        line = f"{v} = " + form.format(a=a, s=shape, n=shape[0], k=self.number())
        return line.replace(".FILL", f"; {v}.fill(0.2)")

    def seen(self):
        a, v = self.array(), self.new()
        shape = self.env[a].shape
        own = """{a}[{i}]; {a}.T; {a}.ravel(); {a}.reshape(-1); {a}[None]; {a}[::-1]; {a}; {a}[...]
            {a}.reshape(-1, 1); np.ravel({a}); np.transpose({a}); np.flip({a}); np.atleast_2d({a})
            np.expand_dims({a}, 0); np.squeeze({a}); {a}.squeeze(); np.swapaxes({a}, 0, -1)
            np.moveaxis({a}, 0, -1); np.diagonal({a}); np.broadcast_to({a}, (2, *{a}.shape))
            {a}.T.reshape(-1); {a}.swapaxes(0, -1); np.split({a}, 1)[0]; {a}.T.ravel()
            np.reshape({a}, {a}.shape[::-1]); {a}[1:].reshape(-1); np.fliplr({a}); np.rot90({a})
            {a}.real; np.real({a}); {a}.conj(); {a}.transpose(); {a}.diagonal()"""
        ours = "np.asarray({a}); np.asanyarray({a}); np.ascontiguousarray({a})"
        form = self.dice.choice(forms(own if self.plain else f"{own}\n{ours}"))
        return f"{v} = " + form.format(a=a, i=self.index(shape) if shape else "...")

    def assigned(self):
        a = self.array()
        if not self.env[a].size:
            return None
        i = self.index(self.env[a].shape) if self.env[a].ndim else self.dice.choice(["...", "()"])
        try:
            part = eval(f"a[{i}]", {**environment(numpy, X), "a": self.env[a]})
        except IndexError:
            return None
        e = self.like(numpy.shape(part))
        sign = self.dice.choice(["=", "=", "=", "+=", "*=", "-=", "/="])
        e = f"({e}) + 1.5" if sign == "/=" else e
        place = self.dice.choice(
            [f"{a}[{i}]"] * 5 + [f"{a}.T[0]", f"{a}.flat[{self.dice.randrange(part.size or 1)}]"]
        )
        return f"{place} {sign if '.flat' not in place else '='} {e}"

    def rebound(self):
        a = self.array()
        e = self.like(self.env[a].shape)
        sign = self.dice.choice(["+", "-", "*", "/", "+", "*", "**"])
        if sign == "**":
            return f"{a} **= 2" if (self.env[a] > 0).all() else None
        return f"{a} {sign}= {'(' + e + ') * 0.5 + 2.0' if sign == '/' else e}"

    def called(self):
        a = self.array()
        shape, e = self.env[a].shape, self.like(self.env[a].shape)
        n = max(self.env[a].size, 1)
        places = [self.dice.randrange(n) for _ in range(2)]
        return self.dice.choice([
            f"np.put({a}, {places}, {self.number()})", f"np.copyto({a}, {e})",
            f"np.copyto({a}, {e}, where=np.arange({shape[-1] if shape else 1}) % 2 == 0)",
            f"np.place({a}, np.arange({n}).reshape({shape}) % 3 == 0, {self.number()})",
            f"np.putmask({a}, np.arange({n}).reshape({shape}) % 2 == 0, {e})",
            f"np.fill_diagonal({a}, {self.number()})",
            f"np.add.at({a}, [0, 0, -1], {self.number()})",
            f"{a}.fill({self.number()})", f"{a}.sort()", f"{a}.put([0, -1], {self.number()})",
            f"np.add({e}, {self.number()}, out={a})", f"np.multiply({a}, {e}, out={a})",
            f"np.sin({a}, out={a})", f"np.exp(-{a}, out={a}[...])",
            f"np.sum({a} * {e}, axis=0, out={a}[0])", f"thrice({a})", f"shifted({a}, {e})",
            f"thrice({a}[0:1])", f"np.cumsum({a}, axis=0, out={a})",
            f"np.clip({a}, 0.05, 5.0, out={a})", f"np.mean({a}, axis=0, out={a}[0])",
            f"np.add({a}, {e}, {a})", f"np.multiply.accumulate({a}, out={a})",
            f"np.add.reduce({a}, 0, None, {a}[0])", f"{a}.sum(0, None, {a}[0])",
            f"{a}.clip(0.05, 5.0, {a})", f"np.max({a}, 0, {a}[-1])", f"{a}.cumsum(0, None, {a})",
            f"np.nan_to_num({a}, False)", f"{a}.real = {e}", f"{a}.flat = {self.number()}",
            f"np.dot({a}, np.ones({shape[-1:] * 2}), {a})", f"np.take({a}, [0, 0], 0, {a}[:2])",
            f"np.concatenate([x[3:] * 1.0, x[:3] * 2.0], 0, {a})",
            f"np.stack([x[:3], x[3:]], out={a})", f"np.matmul({a}, {a}, out={a})",
            f"np.einsum('...i->...i', {a}, out={a})", f"np.sqrt({a}, {a}, where={a} > 0.3)",
            f"np.negative({a}, {a}[::-1])", f"np.round({a}, 1, {a})",
            f"np.median({a}, 0, {a}[0])", f"{a}.partition(0)",
            f"np.put_along_axis({a}, {a} > 9, 0.5, -1)",
        ])  # fmt: skip

    def looped(self):
        a = self.array()
        if self.env[a].ndim < 1 or len(self.env[a]) < 2:
            return None
        n, e = len(self.env[a]), self.number()
        return self.dice.choice([
            f"for i in range(1, {n}): {a}[i] = 0.5 * {a}[i - 1] + {e}",
            f"for row in {a}: row *= {e}",
            f"for i in range({n}): {a}[i] += x[i % 6] * {a}[-1 - i]",
            f"{a}[0], {a}[1] = {a}[1], {a}[0]", f"{a}[1:] = {a}[:-1]", f"{a}[:-1] += {a}[1:]",
            f"{a}[::-1] = {a}",
        ])  # fmt: skip

    def counted(self):
        a = self.array()
        if self.numbers and self.dice.random() < 0.5:
            return f"{self.dice.choice(self.numbers)} {self.dice.choice('+-*')}= {self.number()}"
        if not self.env[a].size or not self.env[a].ndim:
            return None
        place = ", ".join(str(self.dice.randrange(n)) for n in self.env[a].shape if n)
        return f"{self.new()} = {a}[{place}]"

    def read(self):
        return f"total += np.sum(np.real(np.sin({self.array()})))"

    @property
    def text(self):
        return text_of(self.lines)


KINDS = [
    *[Program.made] * 2, *[Program.seen] * 5, *[Program.assigned] * 6, *[Program.rebound] * 3,
    *[Program.called] * 5, *[Program.looped] * 2, Program.counted, *[Program.read] * 2,
]  # fmt: skip


def forms(text):
    return [form.strip() for line in text.splitlines() for form in line.split(";")]


def broadcasts(shape, to):
    try:
        return numpy.broadcast_shapes(shape, to) == tuple(to)
    except ValueError:
        return False


def environment(np, x):
    env = {"np": np, "x": x, "total": 0.0}
    exec(HELPERS, env)
    return env


BASE = {*environment(numpy, X), "i", "row", "__builtins__"} - {"x"} | {"total", "x"}


def run(lines, np, x):
    """What the names of a program stand for in the end."""
    env = environment(np, x.copy() if isinstance(x, numpy.ndarray) else x)
    exec("\n".join(lines), env)
    return env


def value(lines, np, x):
    """One number that all names of a program change."""
    env = run(lines, np, x)
    names = [n for n in env if n not in BASE and n != "row"]
    total = env["total"]
    for k, name in enumerate([*names, "x"]):
        y = env[name]
        if callable(y) or y is None:
            continue
        weights = numpy.cos(numpy.arange(numpy.size(y)) + k).reshape(numpy.shape(y))
        y = numpy.real(y) + 0.3 * numpy.imag(y) if numpy.iscomplexobj(y) else y
        total = total + numpy.sum(y * weights)
    return total


class Rough(Exception):
    """A program has no derivative at a point."""


class Plain:
    """The value and the derivatives of a program in plain NumPy."""

    def __init__(self, lines):
        self.value = lambda x: value(lines, numpy, x)

    def slope(self, x):
        return agreeing(lambda step: differences(self.value, x, step), 1e-5, 1e-6, 1e-4)

    def second(self, x, tangent):
        """The Hessian times a tangent."""

        def along(step):
            one, two = (differences(self.value, x + s * tangent, step) for s in (step, -step))
            return (one - two) / (2 * step)

        return agreeing(along, 5e-4, 1e-3, 1e-2)


def differences(func, x, step):
    found = []
    for i in range(x.size):
        e = numpy.zeros(x.size)
        e[i] = step
        found.append((func(x + e) - func(x - e)) / (2 * step))
    return numpy.array(found)


def agreeing(estimate, step, other, tolerance):
    """Central differences with one step, if another step says the same."""
    one, two = estimate(step), estimate(other)
    if not numpy.allclose(one, two, rtol=0, atol=tolerance * size(one)):
        raise Rough
    return one


def size(y):
    return max(1.0, numpy.abs(y).max())


# A transform takes `f`, the program for isomorph, and `p`, the same in plain NumPy, and returns
# triples (found, needed, by how much they may differ).


def grad(f, p):
    y, slope = iso.value_and_grad(f)(X)
    return [same(y, p.value(X)), near(slope, p.slope(X))]


def same(found, needed):
    return found, needed, 1e-9 * size(needed)


def near(found, needed, of=None):
    """`needed` is a first derivative by differences, or a sum of derivatives, `of`."""
    return found, needed, 2e-4 * size(needed if of is None else of)


def jvp(f, p):
    y, tangent = iso.jvp(f, (X,), (TANGENT,))
    slope = p.slope(X)
    return [same(y, p.value(X)), near(tangent, slope @ TANGENT, slope)]


def vmap(f, p):
    return [same(iso.vmap(f)(ROWS), [p.value(x) for x in ROWS])]


def vmap_of_grad(f, p):
    return [near(iso.vmap(iso.grad(f))(ROWS), [p.slope(x) for x in ROWS])]


def grad_of_vmap(f, p):
    slopes = iso.grad(lambda rows: (iso.vmap(f)(rows) * WEIGHTS).sum())(ROWS)
    return [near(slopes, [w * p.slope(x) for w, x in zip(WEIGHTS, ROWS)])]


def second(f, p):
    (slope,) = iso.hvp(f, (X,), (TANGENT,))
    needed = p.second(X, TANGENT)
    return [(slope, needed, 2e-2 * size(needed))]


def inner_grad(f, p):
    """A gradient inside, of a function that captures the outer argument."""
    inner = lambda x: iso.grad(lambda y: f(x * y))(numpy.ones(X.size))
    y, slope = iso.value_and_grad(lambda x: numpy.sum(inner(x) * TANGENT))(X)
    first, more = p.slope(X), p.second(X, TANGENT * X)
    return [near(y, (TANGENT * X) @ first, first),
            (slope, TANGENT * first + more, 2e-2 * size(numpy.append(first, more)))]  # fmt: skip


def checkpoint(f, p):
    return grad(iso.checkpoint(f), p)


def cond(f, p):
    return grad(lambda x: iso.cond(numpy.sum(x) > 0, f, numpy.sum, x), p)


def while_loop(f, p):
    step = lambda s: (s[0] + 1, s[1], s[2] + f(s[1] * 1.0))
    last = lambda x: iso.while_loop(lambda s: s[0] < 2, step, (0, x, numpy.sum(x)))[2]
    y, slope = iso.value_and_grad(last)(X)
    return [same(y, X.sum() + 2 * p.value(X)), near(slope, 1 + 2 * p.slope(X))]


def scan(f, p):
    steps = numpy.array([1.0, 1.02])
    total = lambda x: numpy.sum(iso.scan(lambda x, k: (x, f(x * k)), x, steps)[1])
    y, slope = iso.value_and_grad(total)(X)
    slopes = numpy.stack([k * p.slope(k * X) for k in steps])
    return [same(y, sum(p.value(k * X) for k in steps)), near(slope, slopes.sum(0), slopes)]


TRANSFORMS = [
    grad, jvp, vmap, vmap_of_grad, grad_of_vmap, second, inner_grad, checkpoint, cond, while_loop,
    scan,
]  # fmt: skip


def transform_of(program):
    """The transform of a program. Arrays without axes are taken for numbers under `vmap`."""
    arrays = [x for x in program.env.values() if isinstance(x, numpy.ndarray)]
    numbers = any(x.ndim == 0 for x in arrays)
    fits = [t for t in TRANSFORMS if not (numbers and "vmap" in t.__name__)]
    return program.dice.choice(fits)


def text_of(lines):
    return "\n".join(lines)


def outcome(lines, plain=False, transform=grad):
    """`right`, `rough` (no derivative there), or why it is wrong or refused."""
    np, before = numpy if plain else isomorph.numpy, (X.copy(), ROWS.copy())
    plainly = Plain(lines)
    plainly.value(X)  # raises if it is not a program
    try:
        triples = transform(lambda x: value(lines, np, x), plainly)
    except Rough:
        return "rough", ""
    except Exception as error:
        return "refused" if is_ours(error) else "broken", f"{type(error).__name__}: {error}"
    if not all(map(numpy.array_equal, before, (X, ROWS))):
        X[:], ROWS[:] = before
        return "wrong", "the caller's array was changed"
    for found, needed, apart in triples:
        if not isinstance(found, numpy.ndarray | numpy.floating):
            return "wrong", f"a result of {type(found)}"
        if numpy.shape(found) != numpy.shape(needed) or numpy.abs(found - needed).max() > apart:
            return "wrong", f"{found}, needed {needed}"
    return "right", ""


def is_ours(error):
    """Whether an error is our sentence, which says what to write instead."""
    words = ("isomorph", "needed plain operands", "gradient would be lost")
    return any(word in str(error) for word in words)


def shrunk(lines, kind, plain=False, transform=grad):
    """The lines without those that a failure does not need."""
    for i in reversed(range(len(lines))):
        fewer = [*lines[:i], *lines[i + 1 :]]
        try:
            same = outcome(fewer, plain, transform)[0] == kind
        except Exception:
            continue
        if same:
            lines = fewer
    return lines


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plain", action="store_true", help="programs of plain numpy")
    given = parser.parse_args()
    kinds = {}
    for seed in range(given.seed * 10**6, given.seed * 10**6 + given.count):
        program = Program(seed, given.plain)
        transform = transform_of(program)
        kind, _ = outcome(program.lines, given.plain, transform)
        kinds[kind] = kinds.get(kind, 0) + 1
        if kind in ("wrong", "broken") or (kind == "refused" and not given.plain):
            lines = shrunk(program.lines, kind, given.plain, transform)
            why = outcome(lines, given.plain, transform)[1]
            print(f"--- {kind} by {transform.__name__}, seed {seed}\n{text_of(lines)}\n{why}\n")
            sys.stdout.flush()
    print(kinds)
    return 1 if kinds.keys() & {"wrong", "broken"} else 0


if __name__ == "__main__":
    sys.exit(main())
