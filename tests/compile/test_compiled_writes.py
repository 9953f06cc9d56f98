"""In-place writes in compiled torch programs: those that Inductor loses, and those that we avoid.

Inductor 2.13 has seven bugs (`torch/inductor/repairs.py`). When it reshapes the loops of two
operations to fuse them, it forgets that a third one wrote what they read. It overwrites complex
arrays that are still read. It writes all rows of an expanded array into one. It computes from an
array after an operator has overwritten it. It reads an array while it writes to it. It writes one
result over another. On a GPU, a part of a kernel reads what another part computes. Every way to
write is compared with eager execution; canaries tell whether the compiler still has the bugs.
"""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from compiled_programs import INPUTS
from compiled_table import TABLE
from frameworks import older, ours, proxy_tensor, torch

import isomorph as iso
from isomorph.core import tree

pytestmark = pytest.mark.parametrize("backend", ["torch"], indirect=True)

compiling, repairs = ours("torch.compiling"), ours("torch.inductor.repairs")
N = 5
PLACES, ONES = torch.arange(N), torch.ones(N, dtype=torch.float64)
POINTS = torch.from_numpy(np.random.default_rng(0).normal(size=(N, N)))
zeros = lambda: torch.zeros(N, N, dtype=torch.float64)


@pytest.fixture(autouse=True)
def on_the_device(backend, monkeypatch):
    """With `--device`, the arrays of this file lie there."""
    for name in ("PLACES", "ONES", "POINTS", "ROWS", "LINE", "NEXT", "NUMBERS"):
        monkeypatch.setitem(globals(), name, globals()[name].to(torch.get_default_device()))


def groups(names, size):
    """The names in groups for small programs, and all of them in one."""
    names = list(names)
    few = [names[i : i + size] for i in range(0, len(names), size)]
    return {"all": names} | {", ".join(group): group for group in few}


def filled(write):
    x = zeros()
    write(x)
    return x


# The identity matrix, in every way to write it.
WRITES = {
    "diagonal filled in place": lambda: filled(lambda x: x.diagonal().fill_(1)),
    "diagonal copied in place": lambda: filled(lambda x: x.diagonal().copy_(ONES)),
    "set in place": lambda: filled(lambda x: x.__setitem__((PLACES, PLACES), 1.0)),
    "diagonal_scatter": lambda: torch.diagonal_scatter(zeros(), ONES),
    "as_strided_scatter": lambda: torch.as_strided_scatter(zeros(), ONES, (N,), (N + 1,)),
    "index_put": lambda: zeros().index_put((PLACES, PLACES), ONES),
    "index_put accumulated": lambda: zeros().index_put((PLACES, PLACES), ONES, accumulate=True),
    "scatter": lambda: zeros().scatter(1, PLACES[:, None], 1.0),
    "scatter_add": lambda: zeros().scatter_add(1, PLACES[:, None], ONES[:, None]),
    "scatter_reduce": lambda: zeros().scatter_reduce(1, PLACES[:, None], ONES[:, None], "amax"),
    "index_add": lambda: zeros().view(-1).index_add(0, PLACES * (N + 1), ONES).view(N, N),
    "index_copy": lambda: zeros().view(-1).index_copy(0, PLACES * (N + 1), ONES).view(N, N),
    "iso.at": lambda: iso.at(zeros())[PLACES, PLACES].add(1.0),
    "xp.eye": lambda: iso.namespace(ONES).eye(N, dtype=torch.float64),
    "xp.eye of an offset": lambda: iso.namespace(ONES).eye(N + 1, N, k=-1, dtype=torch.float64)[1:],
}


def energy(x, unit):
    d2 = torch.sum((x[:, None, :] - x[None, :, :]) ** 2, -1)
    return torch.sum(torch.sin(torch.linalg.cholesky(torch.exp(-d2) + 0.1 * unit())))


def off(found, expected):
    """The largest difference; NaN if there is one."""
    return float(np.max([float((a - b).abs().max()) for a, b in zip(found, expected, strict=True)]))


# The first of each kind; `make test-all` runs all.
FIRST = (
    "diagonal filled in place", "diagonal_scatter", "as_strided_scatter", "index_put", "scatter",
    "iso.at", "xp.eye",
)  # fmt: skip
SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    "write", [pytest.param(name, marks=() if name in FIRST else SLOW) for name in WRITES]
)
def test_what_is_written_is_read(backend, write):
    func = lambda x: energy(x, WRITES[write])
    expected = iso.value_and_grad(lambda x: energy(x, lambda: torch.eye(N, dtype=x.dtype)))(POINTS)
    assert off(iso.jit(iso.value_and_grad(func))(POINTS), expected) < 1e-12


def two_transforms(x):
    product = torch.fft.rfft(x) * torch.fft.rfft(torch.sin(x))
    return torch.sum(torch.fft.irfft(product, n=N) * torch.arange(float(N), dtype=x.dtype))


def second(x):
    return (iso.hvp(two_transforms, (x,), (torch.cos(x),))[0],)


def both(x):
    grad, value = torch.func.grad_and_value(lambda x: energy(x, WRITES["index_put"]))(x)
    return value, grad


@pytest.mark.takes("torch compiles C++")
def test_complex_arrays_are_not_overwritten(backend):
    step, along = 1e-6, torch.cos(POINTS)
    slope = lambda t: iso.grad(two_transforms)(POINTS + t * along)
    expected = (slope(step) - slope(-step)) / (2 * step)
    found = iso.jit(second)(POINTS)
    assert off(found, [expected]) < 1e-8
    assert off(found, second(POINTS)) < 1e-12


ROWS = torch.tensor([[0, 1, 1], [2, 2, 0]])
LINE = torch.arange(2)[:, None]


def expanded(x):
    """Writes into rows that share one row of memory."""
    part = x[:2, :3]
    zeros = x.new_zeros(3).expand(2, 3)
    return (
        zeros.index_put((LINE, ROWS), part, accumulate=True),
        torch.sin(x[0, :3]).expand(2, 3).index_put((LINE, ROWS[:, :2]), part[:, :2]),
        zeros.index_add(1, ROWS[0], part),
        zeros.index_copy(1, ROWS[1, 1:], part[:, 1:]),
        torch.func.vmap(lambda x, i: x.new_zeros(3).index_add(0, i, x))(part, ROWS),
    )


@pytest.mark.takes("torch compiles C++")
def test_rows_of_an_expanded_array_are_written_apart(backend):
    expected = np.zeros((2, 3))
    for i in range(2):
        np.add.at(expected[i], ROWS[i].numpy(force=True), POINTS[i, :3].numpy(force=True))
    wanted = torch.tensor(expected)
    assert off(expanded(POINTS)[:1], [wanted]) < 1e-15
    assert off(iso.jit(expanded)(POINTS), expanded(POINTS)) < 1e-15
    sums = lambda x, i: iso.at(torch.zeros(3, dtype=x.dtype))[i].add(x)
    found = iso.jit(iso.vmap(sums))(POINTS[:2, :3], ROWS)
    assert off([found], [wanted]) < 1e-15


@torch.library.custom_op("isomorph_tests::raise_all", mutates_args=("xs", "last"))
def raise_all(xs: list[torch.Tensor], by: float, last: torch.Tensor) -> None:
    for x in [*xs, last]:
        x.add_(by)


def overwritten(x):
    """Reads an array before and after operators write into copies of it."""
    product, second = x @ x, x.t() @ x
    half, corner = product / 2, product[:2, 1:] + second[0, 0]
    copy, last = product.clone(), second.clone()
    raise_all([copy], 1.0, last)
    again = copy.clone()
    raise_all([again], 2.0, torch.sin(x))
    return half, corner, copy, last, again, torch.sum(copy - again)


def raised(x):
    before, y = x.sum() / 2 + x[0, 0] * 3, x.clone()
    raise_all([y], 5.0, torch.cos(x))
    return before, y


def after_overwriting():
    product, second = POINTS @ POINTS, POINTS.T @ POINTS
    corner = product[:2, 1:] + second[0, 0]
    return product / 2, corner, product + 1, second + 1, product + 3, torch.tensor(-2.0 * N * N)


def after_raising():
    return POINTS.sum() / 2 + POINTS[0, 0] * 3, POINTS + 5


@pytest.mark.takes("torch compiles C++")
@pytest.mark.parametrize(
    ("func", "wanted", "donate"),
    [(overwritten, after_overwriting, ()), (raised, after_raising, (0,))],
    ids=["overwritten", "raised"],
)
def test_what_reads_comes_before_an_operator_that_writes(backend, func, wanted, donate):
    assert off(func(POINTS), wanted()) < 1e-12
    given = POINTS.clone()
    found = iso.jit(func, donate=donate)(given)
    assert off(found, wanted()) < 1e-12
    if donate:  # written in place
        assert found[1].data_ptr() == given.data_ptr()


LONG = 1000  # much longer than what a processor reads at a time
NEXT = torch.roll(torch.arange(LONG), -1)
NUMBERS = torch.from_numpy(np.random.default_rng(1).normal(size=LONG))

# What is written depends on the array that it is written to: itself, a view, something computed.
FROM_ITSELF = {
    "all": lambda y: iso.at(y)[NEXT].set(y),
    "to the right": lambda y: iso.at(y)[1:].set(y[:-1]),
    "to the left": lambda y: iso.at(y)[:-1].set(y[1:]),
    "means": lambda y: iso.at(y)[1:-1].set((y[2:] + y[:-2]) / 2),
    "sums": lambda y: iso.at(y)[NEXT].add(y),
    "sums of a part": lambda y: iso.at(y)[1:].add(y[:-1]),
    "products": lambda y: iso.at(y)[1:].multiply(y[:-1]),
    "largest": lambda y: iso.at(y)[NEXT].max(y),
    "doubled": lambda y: iso.at(y)[NEXT].set(2 * y),
    "turned": lambda y: iso.at(y)[::2].set(torch.flip(y[1::2], (0,))),
    "taken": lambda y: iso.at(y)[NEXT].set(y[NEXT]),
    "one for many": lambda y: iso.at(y)[y > 1].set(y[0]),
    "one times many": lambda y: iso.at(y)[y > 1].multiply(y[-1] * 2),
    "places": lambda y: iso.at(y)[(y * 1000).long() % LONG].set(1.0),
    "places and numbers": lambda y: iso.at(y)[(y * 1000).long() % LONG].add(y * 2),
    "twice": lambda y: iso.at(iso.at(y)[1:].set(y[:-1]))[0].set(y[-1]),
    "columns": lambda y: iso.at(y.reshape(20, 50))[:, 1:].set(y.reshape(20, 50)[:, :-1]),
    "one row": lambda y: iso.at(y.reshape(20, 50))[1:].set(y.reshape(20, 50)[0]),
    "transposed": lambda y: iso.at(y[:400].reshape(20, 20))[...].set(y[:400].reshape(20, 20).T),
    "index_copy": lambda y: torch.index_copy(y, 0, NEXT, y),
    "slice_scatter": lambda y: torch.slice_scatter(y, y[:-1], 0, 1, LONG),
}


def from_itself(x, names=tuple(FROM_ITSELF)):
    """Each case in an array of its own, made by a kernel of torch."""
    return [
        func(torch.cumsum(x + 0.1 * i, 0) if i % 2 else torch.mv(torch.diag(x + i), x))
        for i, (name, func) in enumerate(FROM_ITSELF.items())
        if name in names
    ]


WRITTEN = groups(FROM_ITSELF, 2)


@pytest.mark.takes("torch compiles C++")
@pytest.mark.parametrize("names", WRITTEN.values(), ids=WRITTEN)
def test_what_is_written_is_computed_from_the_old_values(backend, names):
    before = torch.mv(torch.diag(NUMBERS), NUMBERS)
    assert off(from_itself(NUMBERS, ["all"]), [torch.roll(before, 1)]) < 1e-15
    found = iso.jit(lambda x: from_itself(x, names))(NUMBERS)
    assert off(found, from_itself(NUMBERS, names)) < 1e-12


@pytest.mark.slow
def test_gradients_of_what_is_computed_from_the_old_values(backend):
    total = lambda x: sum(torch.sum(torch.sin(y)) for y in from_itself(x))
    found, wanted = iso.jit(iso.grad(total))(NUMBERS), iso.grad(total)(NUMBERS)
    assert off([found], [wanted]) < 1e-9 * float(wanted.abs().max())


# Results that may take the memory of an argument, whose elements they need in another order.
IN_OTHER_ORDER = {
    "transposed": lambda a: a.reshape(10, 100).T.reshape(-1),
    "axes turned": lambda a: a.reshape(10, 10, 10).permute(2, 0, 1).reshape(-1),
    "reversed": lambda a: torch.flip(a, (0,)),
    "rolled": lambda a: torch.roll(a, 1),
    "rolled and added": lambda a: a + torch.roll(a, 1),
    "transposed and added": lambda a: a.reshape(10, 100).T.reshape(-1) + 1,
    "taken": lambda a: a[NEXT],
    "set": FROM_ITSELF["all"],
    "set to the right": FROM_ITSELF["to the right"],
    "places": FROM_ITSELF["places"],
}
DONATED = groups(IN_OTHER_ORDER, 3)


def in_other_order(xs, names):
    return [IN_OTHER_ORDER[name](x) for name, x in zip(names, xs)]


def swap(xs, _):
    a, b = xs
    return [b.reshape(10, 100).T.reshape(-1) + 0, a.reshape(10, 100).T.reshape(-1)]


@pytest.mark.takes("torch compiles C++")
@pytest.mark.parametrize(
    ("func", "names"),
    [*((in_other_order, names) for names in DONATED.values()), (swap, "ab")],
    ids=[*DONATED, "swap"],
)
def test_donated_memory_is_read_before_it_is_written(backend, func, names):
    given = [NUMBERS * (i + 1) for i in range(len(names))]
    xs = [x.clone() for x in given]
    found = iso.jit(lambda xs: func(xs, names), donate=0)(xs)
    assert off(found, func(given, names)) < 1e-15
    assert [y.data_ptr() for y in found] == [x.data_ptr() for x in xs]


def crossed(a, b):
    """Operators that write into copies of two arrays and read both."""
    copies = [a.clone(), b.clone()]
    add_all(copies, [b, a])
    return tuple(copies)


@torch.library.custom_op("isomorph_tests::add_all", mutates_args=("xs",))
def add_all(xs: list[torch.Tensor], ys: list[torch.Tensor]) -> None:
    for x, y in zip(xs, ys):
        x.add_(y)


def counted_up(a, b):
    copies = [a.clone(), b.clone()]
    raise_all(copies[:1], 1.0, copies[1])
    return copies[1], copies[0]


# Two results, of which the first takes the memory of `a`, and the second is computed from `a`.
set_first = lambda x: iso.at(x)[:10].set(0.5)
CROSSWISE = {
    "computed": lambda a, b: (b * 2, set_first(a)),
    "set": lambda a, b: (iso.at(b)[:10].set(1.0), set_first(a)),
    "set by index": lambda a, b: (b + 1, iso.at(a)[NEXT[:10]].set(7.0)),
    "doubled": lambda a, b: (set_first(a) * 2, set_first(a)),
    "set twice": lambda a, b: (b + 1, iso.at(set_first(a))[5:20].add(3.0)),
    "a view": lambda a, b: (b + 1, set_first(a).reshape(10, 100)),
    "by an operator": counted_up,
    "by an operator of torch": lambda a, b: tuple(torch._foreach_add([a, b], 1.0))[::-1],
    "unchanged": lambda a, b: (a, iso.at(b)[:10].set(1.0) + b),
}


def pair(name):
    """New arrays, with other numbers for each name."""
    i = list(CROSSWISE).index(name)
    return NUMBERS * (i + 1), torch.sin(NUMBERS + i)


@pytest.mark.takes("torch compiles C++")
@pytest.mark.parametrize("name", [*CROSSWISE, "all"])
def test_one_result_is_not_written_over_another(backend, name):
    """Each alone, and all in one program."""
    if name == "all":
        func = lambda pairs: [y for f, two in zip(CROSSWISE.values(), pairs) for y in f(*two)]
        given = lambda: [[pair(name) for name in CROSSWISE]]
    else:
        func, given = CROSSWISE[name], lambda: pair(name)
    assert off(iso.jit(func, donate=0)(*given()), func(*given())) < 1e-15


def crossed_by_torch(a, b):
    return tuple(torch._foreach_add([a, b], [b, a]))


DONATE = pytest.mark.parametrize("donate", [(), (0, 1)], ids=["nothing donated", "both donated"])


@pytest.mark.takes("torch compiles C++")
@DONATE
@pytest.mark.parametrize("func", [crossed, crossed_by_torch])
def test_operators_that_write_what_they_read(backend, func, donate):
    a, b = NUMBERS, torch.cos(NUMBERS)
    found = iso.jit(func, donate=donate)(a.clone(), b.clone())
    assert off(found, (a + b, a + b)) < 1e-15


def in_parts(a, b):
    """Operations on lists of arrays, each of which reads what several parts of a kernel compute."""
    both, turned = torch._foreach_add([a, b], 1.0), torch.sin(a)
    crossed = torch._foreach_mul(both, [both[1], both[0]])
    shared = torch._foreach_add(crossed, [turned, turned])
    later = torch.cos(shared[0]) + shared[1]
    return *shared, *torch._foreach_sub([later, a], [b, later])


@pytest.mark.takes("torch compiles C++")
@DONATE
def test_parts_of_a_kernel_wait_for_each_other(backend, donate):
    """On a GPU the parts run at the same time; a run on a CPU says nothing about that. What is not
    yet there is often there in tests: the memory still holds what the last call has computed,
    hence new numbers in each call.
    """
    program = iso.jit(lambda a, b: in_parts(a, b), donate=donate)
    for i in range(3):
        a = torch.tensor(np.random.default_rng(i).normal(size=4 * LONG))
        b = torch.cos(a)
        wanted = in_parts(a, b)
        np.testing.assert_allclose(
            wanted[0].numpy(force=True),
            (1 + a.numpy(force=True)) * (1 + b.numpy(force=True)) + np.sin(a.numpy(force=True)),
            rtol=1e-12,
        )
        assert off(program(a.clone(), b.clone()), wanted) < 1e-12


# The bugs of Inductor as they are reported, each with a program that shows it.
REPORTS = sorted((Path(__file__).parents[2] / "docs/upstream").glob("inductor-*.md"))
ON_CPU = [path for path in REPORTS if "-on-a-gpu-" not in path.stem]
IN_EVERY_RUN = "inductor-reads-before-it-is-written"


def reported(path):
    """The function of a report, and its arguments."""
    code = re.search(r"^```python.*?\n(.*?)^expected = ", path.read_text(), re.S | re.M)[1]
    names = {"__name__": path.stem}
    exec(compile(code, path, "exec"), names)
    return names["func"], names["args"]


def test_every_report_has_a_repair(backend):
    assert sorted(row.report for row in repairs.REPAIRS if row.report) == [p.stem for p in REPORTS]


@pytest.mark.takes("torch compiles C++")
@pytest.mark.skipif(
    older("torch", 2, 13) or not older("torch", 2, 14),
    reason="seen in torch 2.13, the first gone in 2.15",
)
@pytest.mark.parametrize(
    "report",
    [
        pytest.param(path, id=path.stem, marks=() if path.stem == IN_EVERY_RUN else SLOW)
        for path in ON_CPU
    ]
    + [pytest.param(None, id="complex arrays", marks=SLOW)],
)
def test_inductor_still_has_its_errors(backend, report):
    """A canary: if this fails, torch has fixed the bug; its repair and its report can go."""
    func, args = reported(report) if report else (second, [POINTS])
    given = lambda: [x.clone() for x in args]
    wanted = [x.clone() for x in func(*given())]
    graph = proxy_tensor.make_fx(func, tracing_mode="fake", _allow_non_fake_inputs=True)(*given())
    assert off(graph(*given()), wanted) < 1e-12
    held = lambda: [getattr(*part) for part in repairs.parts().values()]
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # torch warns about itself
        original = held()
        assert off(torch._inductor.compile(graph, given())(*given()), wanted) > 1e-3
        with repairs.repaired():
            assert not set(held()) & set(original)
            assert off(torch._inductor.compile(graph, given())(*given()), wanted) < 1e-12
    assert held() == original


@pytest.mark.takes("torch compiles C++")
def test_what_a_kernel_returns_is_checked(backend):
    """Programs do not look at their arguments again, but at the layout of what kernels return: one
    that is not as it was said would be read in the wrong order.
    """
    with torch.library._scoped_library("isomorph_tests", "FRAGMENT") as library:
        library.define("turned(Tensor x) -> Tensor")
        library.impl("turned", lambda x: x.t().contiguous().t(), "CompositeExplicitAutograd")
        torch.library.register_fake(
            "isomorph_tests::turned", lambda x: torch.empty_like(x), lib=library
        )
        program = iso.jit(lambda x: torch.ops.isomorph_tests.turned(x) * 2 + 1)
        with pytest.raises(AssertionError, match="wrong|stride"):
            program(POINTS)


def written(graph):
    """The operations of a graph that write in place, and the kind of node that they write to."""
    return [
        (str(node.target), node.args[0].op)
        for node in graph.graph.nodes
        if node.op == "call_function"
        and isinstance(node.target, torch._ops.OpOverload)
        and node.target._schema.is_mutable
    ]


# Writes inside torch's own operations.
CROSS_ENTROPY = ("aten.masked_fill_.Scalar", "call_function")  # torch's own, after a log_softmax


@pytest.mark.parametrize("name", TABLE)
def test_nothing_of_ours_writes_in_place_while_it_is_traced(backend, name):
    program = TABLE[name]
    leaves = lambda x: tree.flatten(program.func(iso, iso.namespace(x), x))[0]
    x = torch.tensor(INPUTS[program.input])
    graph = proxy_tensor.make_fx(leaves, tracing_mode="fake", _allow_non_fake_inputs=True)(x)
    assert len(graph.graph.nodes) > 2
    has_losses = any("log_softmax" in str(node.target) for node in graph.graph.nodes)
    assert set(written(graph)) <= ({CROSS_ENTROPY} if has_losses else set())


def test_the_gradient_of_a_largest_is_traced_without_writes(backend):
    """The only gradient of ours that sums over many positions."""
    pooled = lambda x: iso.grad(lambda x: (iso.max_pool(x, 3, 1, 1) ** 2).sum())(x)
    x = torch.tensor(INPUTS["i"])
    graph = proxy_tensor.make_fx(pooled, tracing_mode="fake", _allow_non_fake_inputs=True)(x)
    assert any("slice_scatter" in str(node.target) for node in graph.graph.nodes)
    assert written(graph) == []


@pytest.mark.takes("torch compiles C++")
def test_only_donated_inputs_are_written_to_and_last(backend):
    step = compiling.reusing(lambda w, x: (w - 0.1 * x.sum(0) * w, w * x[0]), [True, False])
    w, x = torch.ones(3), torch.ones(2, 3)
    graph = proxy_tensor.make_fx(step, tracing_mode="fake")(w, x)
    assert written(graph) == [("aten.copy_.default", "placeholder")]
    *_, last, output = graph.graph.nodes
    assert (str(last.target), output.op) == ("aten.copy_.default", "output")
    new, product = iso.jit(lambda w, x: (w - 0.1 * x.sum(0) * w, w * x[0]), donate=0)(w, x * 3)
    np.testing.assert_allclose(new.numpy(force=True), [0.4] * 3, rtol=1e-6)
    np.testing.assert_allclose(product.numpy(force=True), [3.0] * 3, rtol=1e-6)  # the old w
    assert new.data_ptr() == w.data_ptr()


def test_complex_numbers_in_a_program_stay_numbers(backend):
    """Derivatives conjugate them as if they were tensors, which Inductor refuses on a GPU."""
    turned = lambda x: torch.exp(x.to(torch.complex128) * (1 + 0.5j) + 1j * x.cos())
    step = lambda c, x: (c + turned(x).real, c)
    total = lambda x: turned(x).real.sum() + iso.scan(step, x[0] * 0.0, x)[0]
    second = lambda x: iso.hvp(total, (x,), (x + 1,))[0]
    x = torch.linspace(-1, 1, 5, dtype=torch.float64)
    graph = proxy_tensor.make_fx(second, tracing_mode="fake")(x)
    bodies = [body for body in graph.modules() if isinstance(body, torch.fx.GraphModule)]
    nodes = lambda: [node for body in bodies for node in body.graph.nodes]
    single = lambda: [str(n.target) for n in nodes() if [complex] == [*map(type, n.args)]]
    assert "aten._conj.default" in single()
    compiling.fold_numbers(graph)
    assert single() == []
    wanted = torch.autograd.functional.hvp(total, x, x + 1)[1]
    assert off([graph(x)], [wanted]) < 1e-12 * float(wanted.abs().max())
