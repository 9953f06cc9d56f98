"""Values that compiled torch programs compute again instead of keeping them: the programs give the
same numbers as before, step by step, and hold less memory at a time.
"""

import numpy as np
import pytest
from compiled_programs import INPUTS
from compiled_table import TABLE
from frameworks import functional, ours, proxy_tensor, torch

import isomorph as iso
from isomorph.core import tree

pytestmark = pytest.mark.parametrize("backend", ["torch"], indirect=True)

recomputing, repairs = ours("torch.inductor.recomputing"), ours("torch.inductor.repairs")
LIMITS = {name: getattr(recomputing, name) for name in ("SMALL", "PART", "WORTH")}


@pytest.fixture(autouse=True)
def every_size(monkeypatch):
    """Small arrays count too."""
    monkeypatch.setattr(recomputing, "SMALL", 0)
    monkeypatch.setattr(recomputing, "PART", 10**9)
    monkeypatch.setattr(recomputing, "WORTH", 10.0)  # as often as it can be done


def traced(func, *arrays):
    trace = proxy_tensor.make_fx(func, tracing_mode="fake", _allow_non_fake_inputs=True)
    return trace(*arrays)


def saved(func, *arrays):
    """The program before and after."""
    before, after = traced(func, *arrays), traced(func, *arrays)
    recomputing.save_memory(after.graph)
    after.graph.lint()
    after.recompile()
    return before, after


def most(graph):
    """The largest number of bytes that a program holds."""
    return max(recomputing.Lives(graph.graph).held())


def count(graph, word):
    return sum(word in str(node.target) for node in graph.graph.nodes if node.users)


def drawn(*shape):
    return torch.tensor(np.random.default_rng(len(shape)).normal(size=shape))


def block(x, w1, w2, scale, shift):
    y = torch.nn.functional.layer_norm(x, x.shape[-1:], scale, shift)
    return x + torch.nn.functional.gelu(y @ w1) @ w2


def deep(x, w1, w2, scale, shift, blocks=8):
    for _ in range(blocks):
        x = block(x, w1, w2, scale, shift)
    return torch.sum(torch.sin(x))


ARRAYS = lambda: (drawn(32, 16), drawn(16, 64) / 4, drawn(64, 16) / 8, drawn(16), drawn(16) + 1)


def test_a_deep_network_holds_less(backend):
    arrays = ARRAYS()
    step = lambda *arrays: torch.func.grad_and_value(deep, argnums=(0, 1, 2, 3, 4))(*arrays)
    before, after = saved(step, *arrays)
    assert most(after) < 0.8 * most(before)
    # the last one is needed again before most memory is in use
    assert (count(before, "aten.gelu.default"), count(after, "aten.gelu.default")) == (8, 15)
    grads, value = after(*arrays)
    wanted, loss = torch.func.grad_and_value(deep, argnums=(0, 1, 2, 3, 4))(*arrays)
    assert torch.equal(value, loss)
    for a, b in zip(grads, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.takes("torch compiles C++")
def test_compiled_with_all_its_passes(backend, monkeypatch):
    """The same through `iso.jit`, with arrays large enough that it happens."""
    arrays = [drawn(256, 64), drawn(64, 256) / 8, drawn(256, 64) / 16, drawn(64), drawn(64) + 1]
    step = iso.value_and_grad(lambda a: deep(*a, blocks=3))
    sizes = []

    def watched(graph):
        sizes.append(len(graph.nodes))
        recomputing.save_memory(graph)
        sizes.append(len(graph.nodes))

    monkeypatch.setattr(ours("torch.compiling"), "save_memory", watched)
    value, grads = iso.jit(step)(arrays)
    assert sizes[1] > sizes[0] + 8
    loss, wanted = step(arrays)
    np.testing.assert_allclose(value, loss, rtol=1e-12)
    for a, b in zip(grads, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)


# Every fourth; `make test-all` runs all.
NAMES = [
    pytest.param(name, marks=pytest.mark.slow if i % 4 else ()) for i, name in enumerate(TABLE)
]


@pytest.mark.parametrize("name", NAMES)
def test_every_program_gives_the_same_numbers(backend, name):
    """Run by Python, operation by operation: no compiler stands between."""
    program = TABLE[name]
    x = torch.tensor(INPUTS[program.input])
    leaves = lambda x: tree.flatten(program.func(iso, iso.namespace(x), x))[0]
    before, after = saved(leaves, x)
    for a, b in zip(after(x), before(x), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12, equal_nan=True)


class Watching(torch.fx.Interpreter):
    """Runs a program, and looks which arrays each operation changes."""

    def call_function(self, target, args, kwargs):
        arrays = [x for x in tree.flatten((args, kwargs))[0] if isinstance(x, torch.Tensor)]
        before = [x.clone() for x in arrays]
        told = {x.data_ptr() for x in repairs.written(target, args, kwargs) if x is not None}
        out = super().call_function(target, args, kwargs)
        for x, old in zip(arrays, before, strict=True):
            same = torch.equal(torch.nan_to_num(x), torch.nan_to_num(old))
            assert same or x.data_ptr() in told, target
        return out


@pytest.mark.parametrize("name", NAMES)
def test_operations_write_what_they_are_known_to_write(backend, name):
    program = TABLE[name]
    x = torch.tensor(INPUTS[program.input])
    leaves = lambda x: tree.flatten(program.func(iso, iso.namespace(x), x))[0]
    Watching(traced(leaves, x)).run(x)


def normalized(x, mean, var, w):
    """Running statistics that are used again when less memory is in use."""
    y, m, v = iso.batch_norm(x, mean, var, training=True)
    grads = torch.func.grad(lambda w: torch.sum(torch.tanh(y @ w / 100) ** 2))(w)
    return grads, m * 2.0, v * 2.0


def overwritten(x, mean, var, w):
    """What was computed from statistics before a layer of torch overwrites them."""
    old, centre, spread = torch.sin(mean), mean.clone(), var.clone()
    y = functional.batch_norm(x, centre, spread, training=True)
    grads = torch.func.grad(lambda w: torch.sum(torch.tanh(y @ w / 100) ** 2))(w)
    return grads, old + centre, torch.cos(spread) + old


@pytest.mark.parametrize("func", [normalized, overwritten])
def test_statistics_that_a_layer_overwrites(backend, func):
    x, mean, w = drawn(8, 200) + 3, drawn(200), drawn(200, 16)
    arrays = x, mean, torch.ones_like(mean), w
    wanted = func(*arrays)
    Watching(traced(func, *arrays)).run(*arrays)
    for a, b in zip(saved(func, *arrays)[1](*arrays), wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def turned(x, w1, w2, scale, shift):
    """A layer whose input is in another order in memory than its result."""
    x = torch.sin(x).transpose(0, 1)
    for _ in range(4):
        x = block(x, w1, w2, scale, shift)
    return torch.sum(torch.sin(x))


def test_layer_norm_of_another_order_in_memory(backend):
    arrays = drawn(6, 5, 16), *ARRAYS()[1:]
    step = lambda *arrays: torch.func.grad_and_value(turned, argnums=(0, 1, 2, 3, 4))(*arrays)
    before, after = saved(step, *arrays)
    assert most(after) < most(before)
    for a, b in zip(tree.flatten(after(*arrays))[0], tree.flatten(step(*arrays))[0], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)


def late(x, w):
    """`y` is needed at the beginning and at the end; in between, more memory is in use."""
    y = torch.sin(x)
    z = (y @ w) @ torch.cat([w, w, w], 1)
    return torch.sum(z @ z.T, 1) @ y


def test_what_is_there_is_enough(backend):
    x, w = drawn(16, 16), drawn(16, 16) + 1
    before, after = saved(late, x, w)
    assert (count(before, "aten.sin"), count(after, "aten.sin")) == (1, 2)
    assert torch.equal(after(x, w), before(x, w))
    # `x` itself is computed, and needed by nothing else: then keeping `y` costs no more
    hidden = lambda x, w: late(x @ w, w)
    before, after = saved(hidden, x, w)
    assert count(after, "aten.sin") == 1
    assert torch.equal(after(x, w), before(x, w))


def test_what_was_overwritten_is_not_read_again(backend):
    def overwriting(x, w):
        start = x.clone()
        y = torch.sin(start)
        z = (y @ w) @ torch.cat([w, w, w], 1)
        start.add_(1)
        return torch.sum(z @ z.T, 1) @ y + start.sum(0)

    x, w = drawn(16, 16), drawn(16, 16) + 1
    before, after = saved(overwriting, x, w)
    assert count(after, "aten.sin") == 1
    assert torch.equal(after(x, w), before(x, w))


@pytest.mark.parametrize(
    "func",
    [
        lambda x: torch.bernoulli(torch.sigmoid(x)),
        lambda x: torch.special.gammainc(x * x, x * x + 1),
        lambda x: torch.cumsum(x, 0),
    ],
    ids=["drawn", "costly", "a sum"],
)
def test_what_is_not_cheap_or_drawn_is_kept(backend, func):
    def kept(x, w):
        y = func(x)
        z = (y @ w) @ torch.cat([w, w, w], 1)
        return torch.sum(z @ z.T, 1) @ y

    before, after = saved(kept, drawn(16, 16), drawn(16, 16) + 1)
    assert len(after.graph.nodes) == len(before.graph.nodes)


def test_results_and_views_and_chains(backend):
    def several(x, w):
        y = torch.sin(x)
        turned = torch.exp(y).T  # a view, of a value that is computed from another one
        z = (turned @ w) @ torch.cat([w, w, w], 1)
        total = torch.sum(z @ z.T, 1)
        return total @ turned, total @ torch.tanh(turned * 2), y

    x, w = drawn(16, 16), drawn(16, 16) + 1
    before, after = saved(several, x, w)
    assert (count(after, "aten.exp"), count(after, "aten.sin")) == (2, 1)  # `y` is a result
    for a, b in zip(after(x, w), before(x, w), strict=True):
        assert torch.equal(a, b)


def test_programs_with_sparse_arrays(backend):
    """Such arrays have no memory of their own that could be counted."""
    x = drawn(5, 5)
    np.testing.assert_allclose(iso.jit(lambda x: x.to_sparse() @ x)(x), x @ x, rtol=1e-12)


def test_small_sizes_are_kept(backend, monkeypatch):
    for name, limit in LIMITS.items():
        monkeypatch.setattr(recomputing, name, limit)
    before, after = saved(late, drawn(16, 16), drawn(16, 16) + 1)
    assert len(after.graph.nodes) == len(before.graph.nodes)
    big = drawn(100, 100)
    assert count(saved(late, big, big)[1], "aten.sin") == 2


def test_what_saves_little_is_kept(backend, monkeypatch):
    """`y` is a hundredth of what is in use when most memory is."""

    def little(x, w):
        y = torch.sin(x)
        z = (y @ w) @ torch.cat([w] * 100, 1)
        return torch.sum(z @ z.T, 1) @ y

    arrays = drawn(16, 16), drawn(16, 16) + 1
    assert count(saved(little, *arrays)[1], "aten.sin") == 2
    monkeypatch.setattr(recomputing, "WORTH", LIMITS["WORTH"])
    before, after = saved(little, *arrays)
    assert len(after.graph.nodes) == len(before.graph.nodes)
    assert most(after) == most(before)
