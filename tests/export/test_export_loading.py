"""State dicts of torch's own layers, loaded into ours: the same outputs."""

import numpy as np
import pytest
from frameworks import torch

import isomorph as iso
from export.training import Tied, array, made

nn = torch.nn
FIRST = lambda x: x.movedim(-1, 1)  # channels first, as in torch
LAST = lambda y: y.movedim(1, -1)
SAME = lambda x: x

# our layer, torch's, the shape of x, x for torch, and which part of torch's result to compare
LAYERS = {
    "linear": (lambda: iso.Linear(3, 4), lambda: nn.Linear(3, 4), (2, 3), SAME, SAME),
    "unbiased": (
        lambda: iso.Linear(3, 4, bias=False), lambda: nn.Linear(3, 4, bias=False), (2, 3), SAME,
        SAME,
    ),
    "conv1d": (lambda: iso.Conv1D(2, 3, 3), lambda: nn.Conv1d(2, 3, 3, padding=1), (2, 5, 2),
               FIRST, LAST),
    "conv2d": (
        lambda: iso.Conv2D(4, 6, (3, 2), 2, "VALID", groups=2),
        lambda: nn.Conv2d(4, 6, (3, 2), 2, groups=2), (2, 7, 6, 4), FIRST, LAST,
    ),
    "conv3d": (lambda: iso.Conv3D(2, 3, 2, 1, "VALID"), lambda: nn.Conv3d(2, 3, 2),
               (2, 3, 4, 3, 2), FIRST, LAST),
    "conv2d_transpose": (
        lambda: iso.Conv2DTranspose(4, 6, 3, 2, "VALID", groups=2),
        lambda: nn.ConvTranspose2d(4, 6, 3, 2, groups=2), (2, 3, 4, 4), FIRST, LAST,
    ),
    "depthwise": (
        lambda: iso.DepthwiseConv2D(3, 3, 1, "VALID", multiplier=2),
        lambda: nn.Conv2d(3, 6, 3, groups=3), (2, 5, 4, 3), FIRST, LAST,
    ),
    "batch_norm": (lambda: iso.BatchNorm(3), lambda: nn.BatchNorm2d(3), (2, 4, 5, 3), FIRST, LAST),
    "layer_norm": (lambda: iso.LayerNorm((3, 4)), lambda: nn.LayerNorm((3, 4)), (2, 3, 4), SAME,
                   SAME),
    "group_norm": (lambda: iso.GroupNorm(4, 2), lambda: nn.GroupNorm(2, 4), (2, 5, 4), FIRST, LAST),
    "local_response_norm": (
        lambda: iso.Sequential(iso.Conv2D(3, 4, 3), iso.LocalResponseNorm(3, alpha=0.5),
                               iso.Flatten(), iso.Linear(48, 2)),
        lambda: nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.LocalResponseNorm(3, alpha=0.5),
                              nn.Flatten(), nn.Linear(48, 2)),
        (2, 4, 3, 3), FIRST, SAME,
    ),
    "rms_norm": (lambda: iso.RMSNorm(4, epsilon=1e-6), lambda: nn.RMSNorm(4, eps=1e-6), (2, 4),
                 SAME, SAME),
    "attention": (
        lambda: iso.MultiHeadAttention(8, 2),
        lambda: nn.MultiheadAttention(8, 2, batch_first=True), (2, 3, 8), lambda x: (x, x, x),
        lambda y: y[0],
    ),
    "lstm": (
        lambda: iso.LSTM(3, 4), lambda: nn.LSTM(3, 4, batch_first=True), (2, 5, 3), SAME,
        lambda y: (y[0], y[1][0][0], y[1][1][0]),
    ),
    "gru": (
        lambda: iso.GRU(3, 4), lambda: nn.GRU(3, 4, batch_first=True), (2, 5, 3), SAME,
        lambda y: (y[0], y[1][0]),
    ),
    "embedding": (lambda: iso.Embedding(5, 4), lambda: nn.Embedding(5, 4), None, SAME, SAME),
    "sequential": (
        lambda: iso.Sequential(
            iso.Linear(3, 4), iso.Dropout(0.1), iso.relu,
            iso.Sequential(iso.LayerNorm(4), iso.Linear(4, 2)),
        ),
        lambda: nn.Sequential(
            nn.Linear(3, 4), nn.Dropout(0.1), nn.ReLU(),
            nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 2)),
        ),
        (2, 3), SAME, SAME,
    ),
}  # fmt: skip


def filled(layer, dtype, seed=0):
    """A torch layer whose parameters and buffers differ from their initial values."""
    generator = torch.Generator(torch.get_default_device()).manual_seed(seed)
    layer = layer.to(dtype).eval()
    with torch.no_grad():
        for x in (*layer.parameters(), *layer.buffers()):
            if x.is_floating_point():
                x.uniform_(0.2, 1.0, generator=generator)
    return layer


def leaves(y):
    return [x for part in y for x in leaves(part)] if isinstance(y, (tuple, list)) else [y]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_computes_what_torch_does(backend, layer, dtype):
    ours, theirs, shape, turned, chosen = LAYERS[layer]
    with iso.use_backend(backend, dtype=dtype):
        model = ours().eval()
    other = filled(theirs(), getattr(torch, dtype))
    assert iso.export.from_torch_state_dict(model, other.state_dict()) is model
    if shape is None:
        x = np.array([[1, 4, 0]])
    else:
        x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    given = turned(torch.tensor(x))
    with torch.no_grad():
        expected = chosen(other(*given) if isinstance(given, tuple) else other(given))
    found = leaves(model(array(backend, x)))
    assert len(found) == len(leaves(expected))
    close = 1e-5 if dtype == "float32" else 1e-10
    for a, b in zip(found, leaves(expected)):
        np.testing.assert_allclose(iso.to_numpy(a), b.cpu().numpy(), rtol=close, atol=close)


class Block(iso.Module):
    def __init__(self):
        self._norm = iso.BatchNorm(3)
        self.layers = [iso.Linear(3, 3, key=0), iso.Linear(3, 3, key=1)]
        self.heads = {"a": iso.Linear(3, 2, key=2)}
        self.scale = iso.initializers.constant(1.0)(None, (2,))

    def forward(self, x):
        x = self._norm(x)
        for layer in self.layers:
            x = layer(x)
        return self.heads["a"](x) * self.scale


class TorchBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
        self.heads = nn.ModuleDict({"a": nn.Linear(3, 2)})
        self.scale = nn.Parameter(torch.ones(2))

    def forward(self, x):
        x = self.norm(x)
        for layer in self.layers:
            x = layer(x)
        return self.heads["a"](x) * self.scale


def test_a_module_of_ones_own_of_the_same_form(backend):
    model, other = made(backend, Block).eval(), filled(TorchBlock(), torch.float32)
    given = other.state_dict()
    assert set(iso.export.torch_names(model)) == set(given) - {"norm.num_batches_tracked"}
    iso.export.from_torch_state_dict(model, given)
    x = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    expected = other(torch.tensor(x)).detach().cpu().numpy()
    np.testing.assert_allclose(iso.to_numpy(model(array(backend, x))), expected, rtol=1e-5)
    kept = expected.copy()
    with torch.no_grad():  # the loaded model shares no memory with the source
        for p in other.parameters():
            p.zero_()
    np.testing.assert_allclose(iso.to_numpy(model(array(backend, x))), kept, rtol=1e-5)


def test_names_say_where_arrays_go(backend):
    build = lambda: iso.Sequential(iso.Conv1D(2, 3, 3, key=0), iso.Linear(3, 2, key=1))
    rng = np.random.default_rng(0)
    conv, bias, w, b = (
        rng.standard_normal(shape).astype(np.float32) for shape in ((3, 2, 3), (3,), (3, 2), (2,))
    )
    given = {"stem.kernel": conv, "stem.bias": bias, "1.weight": w, "1.bias": b, "steps": b}
    given = {name: torch.tensor(x) for name, x in given.items()}
    names = {
        "stem.kernel": "layers/0/w",  # a convolution's filters, so they are reordered
        "stem.bias": "layers/0/b",
        "1.weight": ("layers/1/w", np.transpose),  # stored transposed
        "steps": None,
    }

    def check(model):
        own = iso.to_numpy(model.v)["layers"]
        np.testing.assert_array_equal(own[0]["w"], conv.transpose(2, 1, 0))
        np.testing.assert_array_equal(own[0]["b"], bias)
        np.testing.assert_array_equal(own[1]["w"], w.T)
        np.testing.assert_array_equal(own[1]["b"], b)

    check(iso.export.from_torch_state_dict(made(backend, build), given, names))
    every = {**names, "1.bias": "layers/1/b"}
    check(iso.export.from_torch_state_dict(made(backend, build), given, every.__getitem__))


def test_all_that_is_wrong_is_in_one_error(backend):
    model = made(backend, lambda: iso.Sequential(iso.Linear(3, 4), iso.Conv1D(2, 5, 3)))
    before = iso.to_numpy(model.v)
    given = {
        "0.weight": torch.ones(4, 2), "1.weight": torch.ones(4, 2, 3), "1.bias": 3.0,
        "2.weight": torch.ones(2), "moved": torch.ones(2),
    }  # fmt: skip
    with pytest.raises(ValueError, match="from_torch_state_dict: needed the arrays") as error:
        iso.export.from_torch_state_dict(model, given, {"moved": "layers/7/w"})
    said = str(error.value)
    assert "missing: 0.bias for layers/0/b" in said
    assert "unknown names: 2.weight, moved for layers/7/w" in said
    assert "0.weight [4, 2] for layers/0/w [4, 3]" in said
    assert "1.weight [4, 2, 3], reordered [3, 2, 4], for layers/1/w [3, 2, 5]" in said
    assert "1.bias is a float" in said
    for layer, part in iso.to_numpy(model.v)["layers"].items():  # nothing was changed
        for key, x in part.items():
            np.testing.assert_array_equal(x, before["layers"][layer][key])
    with pytest.raises(TypeError, match="needed an iso.Module, got dict"):
        iso.export.from_torch_state_dict({}, given)
    with pytest.raises(TypeError, match="torch_names: needed an iso.Module, got dict"):
        iso.export.torch_names({})


def test_an_empty_key_chain_is_unknown(backend):
    model = made(backend, lambda: iso.Linear(2, 2, key=0))
    given = {"weight": torch.ones(2, 2), "bias": torch.ones(2), "q": torch.ones(1)}
    with pytest.raises(ValueError, match="unknown names: q for"):
        iso.export.from_torch_state_dict(model, given, names={"q": ""})
    iso.export.from_torch_state_dict(model, given, names={"q": None})


def test_an_order_of_layers_is_not_guessed(backend):
    model = made(backend, lambda: iso.Sequential(iso.Linear(2, 2, key=0), iso.Linear(2, 2, key=1)))
    given = {f"{name}.{k}": torch.ones(2, 2) for name in ("a", "b") for k in ("weight",)}
    with pytest.raises(ValueError, match="unknown names: a.weight, b.weight"):
        iso.export.from_torch_state_dict(model, given)


def test_an_array_of_two_names(backend):
    model = made(backend, Tied)
    w, b = torch.arange(9.0).reshape(3, 3), torch.ones(3)
    given = {"first.weight": w, "first.bias": b, "tied.weight": w.clone(), "tied.bias": 2 * b}
    given |= {"again.weight": w, "again.bias": b}
    iso.export.from_torch_state_dict(model, given)
    np.testing.assert_array_equal(iso.to_numpy(model.tied.w), w.cpu().numpy())
    assert model.tied.w is model.first.w
    del given["again.weight"]  # one of the two names is enough
    iso.export.from_torch_state_dict(model, given)
    given["tied.weight"] = -w
    with pytest.raises(ValueError, match="tied.weight and first.weight differ, .* one array"):
        iso.export.from_torch_state_dict(model, given)


def test_frozen_arrays_are_set_too(backend):
    model = made(backend, lambda: iso.Linear(2, 2, key=0).freeze("w"))
    given = {"weight": torch.full((2, 2), 3.0), "bias": torch.ones(2)}
    iso.export.from_torch_state_dict(model, given)
    assert iso.to_numpy(model.state["w"]).tolist() == [[3.0, 3.0], [3.0, 3.0]]
    assert list(model.v) == ["b"]


class Scaled(iso.Linear):
    def __init__(self):
        super().__init__(2, 2, key=0)
        self.gain = iso.initializers.constant(1.0)(None, (2,))


def test_arrays_beside_those_of_a_layer_are_needed(backend):
    given = {"weight": torch.ones(2, 2), "bias": torch.ones(2)}
    with pytest.raises(ValueError, match="missing: gain for gain"):
        iso.export.from_torch_state_dict(made(backend, Scaled), given)
    model = iso.export.from_torch_state_dict(
        made(backend, Scaled), {**given, "gain": torch.zeros(2)}
    )
    assert iso.to_numpy(model.v["gain"]).tolist() == [0.0, 0.0]
