"""A module exported as `torch.nn.Module` supports what torch does with its own modules."""

import copy
import io

import numpy as np
import pytest
from frameworks import older, torch
from modules.perceptron import RATE, Listed, Plain

import isomorph as iso
from export.training import ADAM, STEPS, T32, X32, Counting, Tied, check, made

TORCH = pytest.mark.parametrize("backend", ["torch"], indirect=True)  # torch compiles it


def exported(backend, build, *args, **kw):
    return iso.export.to_torch(made(backend, build, *args, **kw))


def test_parameters_are_named_by_their_key_chains(backend):
    net = exported(backend, Plain)
    names = {f"linear{i}.{n}" for i in range(3) for n in "wb"}
    assert {name for name, _ in net.named_parameters()} == names == set(net.state_dict())
    listed = exported(backend, Listed)
    assert "layers.0.w" in dict(listed.named_parameters())
    own = iso.to_numpy(made(backend, Plain).v)
    for name, x in net.named_parameters():
        assert isinstance(x, torch.nn.Parameter)
        layer, _, key = name.partition(".")
        np.testing.assert_array_equal(x.detach().cpu().numpy(), own[layer][key])


@pytest.mark.parametrize("kind", ["sgd", "adam"])
def test_torch_optim_trains_it(backend, kind):
    model = made(backend, Plain)
    before = copy.deepcopy(iso.to_numpy(model.v))
    net = iso.export.to_torch(model)
    betas = (ADAM["beta1"], ADAM["beta2"])
    optimizer = (
        torch.optim.SGD(net.parameters(), RATE)
        if kind == "sgd"
        else torch.optim.Adam(net.parameters(), ADAM["rate"], betas, ADAM["epsilon"])
    )
    x, t, losses = torch.tensor(X32), torch.tensor(T32), []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(net(x), t)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    check(kind, losses)
    for layer, part in iso.to_numpy(model.v).items():  # the source model is unchanged
        for key, values in part.items():
            np.testing.assert_array_equal(values, before[layer][key])
    back = net.to_isomorph()
    torch.testing.assert_close(back(x), net(x).detach(), rtol=0, atol=0)
    assert not np.array_equal(back.v["linear0"]["w"].cpu().numpy(), before["linear0"]["w"])


def test_state_is_in_buffers_and_changes_in_train_mode_only(backend):
    net = exported(backend, iso.BatchNorm, 3, momentum=0.5)
    assert {name for name, _ in net.named_buffers()} == {"mean", "variance"}
    mean, x = net.mean, torch.tensor(X32)
    net(x).sum().backward()
    assert net.mean is mean  # updated in place, like torch's own layers
    np.testing.assert_allclose(mean.cpu().numpy(), 0.5 * X32.mean(0), rtol=1e-5)
    np.testing.assert_allclose(
        net.variance.cpu().numpy(), 0.5 + 0.5 * X32.var(0, ddof=1), rtol=1e-5
    )
    kept = mean.clone()
    assert net.eval() is net
    y = net(x)
    assert torch.equal(net.mean, kept)
    expected = (X32 - kept.cpu().numpy()) / np.sqrt(net.variance.cpu().numpy() + 1e-5)
    np.testing.assert_allclose(y.detach().cpu().numpy(), expected, rtol=1e-4, atol=1e-6)


def test_state_of_every_kind_is_kept(backend):
    model = made(backend, Counting)
    net = iso.export.to_torch(model)
    assert set(net.state_dict()) == {"w", "total", "seen.last"}
    assert {name for name, _ in net.named_buffers()} == {"total", "seen.last", "order"}
    for step in (1.0, 2.0):
        net.zero_grad()
        net(torch.full((2,), step)).backward()
    # the total is 1, then 1·w + 2; the loss Σ (t·w + x)·w has the slope 2·t·w + x
    torch.testing.assert_close(net.w.grad, torch.full((2,), 4.0))
    torch.testing.assert_close(net.total, torch.full((2,), 3.0))
    torch.testing.assert_close(net.seen.last, torch.full((2,), 2.0))
    back = net.to_isomorph()
    assert back.seen.value["calls"] == 2
    assert model.seen.value["calls"] == 0
    assert back.order.tolist() == [1, 0]


def test_train_and_eval_reach_the_model_inside(backend):
    build = lambda: iso.Sequential(iso.Dropout(0.5, key=0), iso.BatchNorm(3), iso.relu)
    net = exported(backend, build)

    def flags():
        model = net.to_isomorph()
        return [m.training for m in (model, *model.layers[:2])]

    assert net.training
    assert flags() == [True, True, True]
    assert not net.eval().training
    assert flags() == [False, False, False]
    assert torch.equal(net(torch.zeros(2, 3)), torch.zeros(2, 3))
    getattr(net.train().layers, "1").eval()  # eval mode for one layer only, to keep its statistics
    assert flags() == [True, True, False]
    assert not iso.export.to_torch(made(backend, build).eval()).training


def test_dropout_draws_what_the_model_draws(backend):
    model = made(backend, iso.Dropout, 0.5, key=3)
    net = iso.export.to_torch(model)
    ones = torch.ones(40)
    first, second = net(ones), net(ones)
    assert not torch.equal(first, second)
    with iso.use_backend("numpy"):
        source = iso.Dropout(0.5, key=3)
    np.testing.assert_array_equal(first.cpu().numpy(), source(np.ones(40, np.float32)))
    np.testing.assert_array_equal(second.cpu().numpy(), source(np.ones(40, np.float32)))


def test_state_dicts_go_from_one_export_to_another(backend):
    build = lambda key: iso.Sequential(iso.Linear(3, 4, key=key), iso.BatchNorm(4))
    one, other = (exported(backend, build, key) for key in (0, 1))
    x = torch.tensor(X32)
    one(x)
    assert not torch.equal(one.eval()(x), other.eval()(x))
    assert str(other.load_state_dict(one.state_dict())) == "<All keys matched successfully>"
    assert torch.equal(one(x), other(x))
    with pytest.raises(RuntimeError, match="Missing key"):
        other.load_state_dict({"layers.0.w": torch.ones(4, 3)})


def test_dtype_and_device_move(backend):
    net = exported(backend, lambda: iso.Sequential(iso.Linear(3, 4, key=0), iso.BatchNorm(4)))
    net.to(torch.float64)
    assert {x.dtype for x in net.state_dict().values()} == {torch.float64}
    assert net(torch.tensor(X32).double()).dtype == torch.float64
    net.to("meta")
    assert net(torch.empty(5, 3, dtype=torch.float64, device="meta")).device.type == "meta"


def test_what_is_shared_is_one_parameter(backend):
    net = exported(backend, Tied)
    assert {name for name, _ in net.named_parameters()} == {"first.w", "first.b", "tied.b"}
    x = torch.tensor(X32)
    (net(x) ** 2).sum().backward()
    a, b, c = (p.detach().double().cpu().numpy() for p in (net.first.w, net.first.b, net.tied.b))
    x1 = X32 @ a.T + b
    x2 = x1 @ a.T + b
    d3 = 2 * (x2 @ a.T + c)
    d2 = d3 @ a
    d1 = d2 @ a
    expected = d3.T @ x2 + d2.T @ x1 + d1.T @ X32
    np.testing.assert_allclose(net.first.w.grad.cpu().numpy(), expected, rtol=1e-4, atol=1e-5)


def test_frozen_arrays_are_buffers(backend):
    net = exported(backend, lambda: iso.Linear(3, 2, key=0).freeze("w"))
    assert [name for name, _ in net.named_parameters()] == ["b"]
    assert [name for name, _ in net.named_buffers()] == ["w"]
    assert set(net.state_dict()) == {"w", "b"}
    assert list(net.to_isomorph().v) == ["b"]


def test_torch_may_put_other_tensors_in_place(backend):
    net = exported(backend, iso.Linear, 3, 2, key=0)
    x = torch.tensor(X32)
    swapped = {"w": torch.zeros(2, 3), "b": torch.tensor([1.0, 2.0])}
    y = torch.func.functional_call(net, swapped, (x,))
    assert torch.equal(y, torch.tensor([[1.0, 2.0]]).expand(5, 2))
    params = dict(net.named_parameters())

    def loss(params, x):
        return torch.func.functional_call(net, params, (x,)).sum()

    each = torch.func.vmap(torch.func.grad(loss), (None, 0))(params, x)
    torch.testing.assert_close(each["w"], x[:, None].expand(5, 2, 3))

    class Double(torch.nn.Module):
        def forward(self, w):
            return 2 * w

    before = net(x)
    torch.nn.utils.parametrize.register_parametrization(net, "w", Double())
    torch.testing.assert_close(net(x), 2 * before)  # the bias is 0


def test_copies_and_files(backend):
    net = exported(backend, lambda: iso.Sequential(iso.Linear(3, 2, key=0), iso.BatchNorm(2)))
    x, file = torch.tensor(X32), io.BytesIO()
    twin = copy.deepcopy(net)
    torch.save(net, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    y = net(x)
    for other in (twin, loaded):
        assert torch.equal(other(x), y)
        assert torch.equal(other.state_dict()["layers.1.mean"], net.state_dict()["layers.1.mean"])
    twin(x)
    assert not torch.equal(twin.state_dict()["layers.1.mean"], net.state_dict()["layers.1.mean"])


class Taken(iso.Module):
    def __init__(self):
        self.parts = {"type": iso.ones((2,))}


class Dotted(iso.Module):
    def __init__(self):
        self.parts = {"a.b": iso.ones((2,))}


class Changing(iso.Module):
    def __init__(self):
        self.seen = iso.State(iso.ones((2,)))

    def forward(self, x):
        self.seen.value = (x, x)
        return x


def test_what_torch_cannot_hold_is_refused(backend):
    for build, name in ((Taken, "parts/type"), (Dotted, "parts/a.b")):
        with pytest.raises(ValueError, match=f"to_torch: needed names .* got {name}; rename"):
            exported(backend, build)
    with pytest.raises(TypeError, match="to_torch: needed an iso.Module, got function"):
        iso.export.to_torch(lambda x: x)
    with pytest.raises(TypeError, match="to_torch: needed state of the same structure"):
        exported(backend, Changing)(torch.ones(2))


def compiled_like_eager(net, x):
    """Compare forward, gradients and buffers of two training steps and of a call in eval mode."""
    twin = copy.deepcopy(net)
    torch._dynamo.reset()
    fast = torch.compile(net, fullgraph=True, backend="aot_eager")
    for _ in range(2):
        for each, module in ((fast, net), (twin, twin)):
            module.zero_grad()
            y = each(x)
            (y[0] if isinstance(y, tuple) else y).square().sum().backward()
        for (name, a), b in zip(net.named_parameters(), twin.parameters()):
            torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-5, msg=name)
        for a, b in zip(net.buffers(), twin.buffers()):
            torch.testing.assert_close(a, b)
    net.eval()
    a, b = fast(x), twin.eval()(x)
    torch.testing.assert_close(a, b)


ONE_GRAPH = pytest.mark.skipif(
    older("torch", 2, 13), reason="torch.compile cannot trace copies of modules before torch 2.13"
)


@ONE_GRAPH
def test_it_compiles_as_one_graph(backend):
    net = exported(backend, Plain)
    compiled_like_eager(net, torch.tensor(X32))
    assert all(p.grad is not None for p in net.parameters())


LAYERS = {
    "norm": (lambda: iso.Sequential(iso.Linear(4, 4, key=0), iso.LayerNorm(4), iso.gelu), (2, 4)),
    "attention": (lambda: iso.MultiHeadAttention(4, 2, key=0), (2, 3, 4)),
    "conv": (
        lambda: iso.Sequential(
            iso.Conv2D(4, 3, 3, key=0), iso.relu, iso.MaxPool(2), iso.Flatten(),
            iso.Linear(12, 2, key=1),
        ),
        (2, 4, 4, 4),
    ),
    "state": (
        lambda: iso.Sequential(iso.Linear(4, 4, key=0), iso.BatchNorm(4), iso.Dropout(0.5, key=1)),
        (6, 4),
    ),
    "lstm": (lambda: iso.LSTM(4, 3, key=0), (2, 3, 4)),
}  # fmt: skip


@TORCH
@ONE_GRAPH
@pytest.mark.parametrize("layer", LAYERS)
def test_layers_compile_as_one_graph(backend, layer):
    build, shape = LAYERS[layer]
    x = torch.tensor(np.random.default_rng(0).standard_normal(shape, np.float32))
    net = exported(backend, build)
    compiled_like_eager(net, x)
    assert all(p.grad is not None for p in net.parameters())


@TORCH
@ONE_GRAPH
def test_state_that_is_a_number_compiles(backend):
    net = exported(backend, Counting)
    fast = torch.compile(net, fullgraph=True, backend="aot_eager")
    for step in (1.0, 2.0):
        fast(torch.full((2,), step))
    torch.testing.assert_close(net.total, torch.full((2,), 3.0))
    assert net.to_isomorph().seen.value["calls"] == 2
