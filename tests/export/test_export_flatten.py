"""Images that torch flattens with channels first: torch models are loaded into ours, whose channels
are last. Both compute the same, or loading is refused until the user states the order.
"""

from functools import partial

import numpy as np
import pytest
from frameworks import torch

import isomorph as iso
from export.test_export_loading import filled
from export.training import array, made
from isomorph.core import tree

nn = torch.nn
load = iso.export.from_torch_state_dict


def sequential(*pairs):
    """Our Sequential and torch's with the same layers, newly made."""
    ours = lambda: iso.Sequential(*(one() for one, _ in pairs))
    theirs = lambda: nn.Sequential(*(other() for _, other in pairs))
    return ours, theirs


def pair(ours, theirs):
    return ours, theirs


relu = pair(lambda: iso.relu, nn.ReLU)
flatten = pair(iso.Flatten, nn.Flatten)
pool = pair(lambda: iso.MaxPool(2), lambda: nn.MaxPool2d(2))
drop = pair(lambda: iso.Dropout(0.5), lambda: nn.Dropout(0.5))
linear = lambda n, m: pair(lambda: iso.Linear(n, m), lambda: nn.Linear(n, m))
conv = lambda n, m: pair(lambda: iso.Conv2D(n, m, 3), lambda: nn.Conv2d(n, m, 3, padding=1))
norm = lambda n: pair(lambda: iso.BatchNorm(n), lambda: nn.BatchNorm2d(n))
flat_norm = lambda n: pair(lambda: iso.BatchNorm(n), lambda: nn.BatchNorm1d(n))
nested = lambda *pairs: sequential(*pairs)

# the layers, and the shape of x with channels last
FORMS = {
    "of the issue": (sequential(conv(3, 4), norm(4), flatten, linear(80, 5)), (2, 4, 5, 3)),
    "one dimension": (sequential(
        pair(lambda: iso.Conv1D(3, 4, 3), lambda: nn.Conv1d(3, 4, 3, padding=1)), flatten,
        linear(24, 5)), (2, 6, 3)),
    "three dimensions": (sequential(
        pair(lambda: iso.Conv3D(2, 3, 2, 1, "VALID"), lambda: nn.Conv3d(2, 3, 2)), flatten,
        linear(18, 4)), (2, 2, 3, 4, 2)),
    "pools, activations, dropout": (sequential(
        conv(3, 4), relu, pool, pair(lambda: iso.Activation("silu"), nn.SiLU), drop, conv(4, 6),
        pair(lambda: iso.AvgPool(2), lambda: nn.AvgPool2d(2)), flatten, drop, linear(12, 5), relu,
        linear(5, 12), relu, linear(12, 2)), (2, 8, 4, 3)),
    "functions of frameworks": (sequential(
        conv(3, 4), pair(lambda: iso.namespace().tanh, nn.Tanh), flatten,
        pair(lambda: partial(iso.leaky_relu, alpha=0.1), lambda: nn.LeakyReLU(0.1)),
        linear(24, 5)), (2, 2, 3, 3)),
    "adaptive pool": (sequential(
        conv(3, 4), pair(lambda: iso.AdaptiveAvgPool((2, 3)), lambda: nn.AdaptiveAvgPool2d((2, 3))),
        flatten, linear(24, 5)), (2, 5, 6, 3)),
    "adaptive pool of who knows what": (sequential(
        pair(lambda: iso.AdaptiveMaxPool((2, 2)), lambda: nn.AdaptiveMaxPool2d((2, 2))),
        flatten, linear(12, 5)), (2, 5, 6, 3)),
    "one pixel": (sequential(
        conv(3, 4), pair(lambda: iso.AdaptiveAvgPool(1), lambda: nn.AdaptiveAvgPool2d(1)), flatten,
        linear(4, 5)), (2, 5, 6, 3)),
    "one pixel of who knows how many channels": (sequential(
        pair(lambda: iso.AdaptiveAvgPool(1), lambda: nn.AdaptiveAvgPool2d(1)), flatten,
        flat_norm(3), linear(3, 5)), (2, 5, 6, 3)),
    "one channel": (sequential(conv(3, 1), flatten, linear(20, 5)), (2, 4, 5, 3)),
    "norms after it": (sequential(
        conv(3, 4), flatten, flat_norm(24), relu,
        pair(lambda: iso.LayerNorm(24), lambda: nn.LayerNorm(24)), drop,
        pair(lambda: iso.RMSNorm(24, epsilon=1e-6), lambda: nn.RMSNorm(24, eps=1e-6)),
        pair(lambda: iso.GroupNorm(24, 1), lambda: nn.GroupNorm(1, 24)),
        linear(24, 24), flat_norm(24), linear(24, 3)), (2, 2, 3, 3)),
    "groups of one pixel": (sequential(
        conv(3, 4), pair(lambda: iso.AdaptiveAvgPool(1), lambda: nn.AdaptiveAvgPool2d(1)), flatten,
        pair(lambda: iso.GroupNorm(4, 2), lambda: nn.GroupNorm(2, 4)), linear(4, 3)), (2, 2, 3, 3)),
    "nested": (sequential(
        nested(nested(conv(3, 4), norm(4), relu), nested(conv(4, 6), relu, pool)),
        nested(flatten, nested(drop, linear(36, 7)), relu), linear(7, 2)), (2, 4, 6, 3)),
    "flattened twice": (sequential(conv(3, 4), flatten, flatten, linear(24, 5)), (2, 2, 3, 3)),
    "a norm first": (sequential(norm(3), flatten, linear(18, 5)), (2, 2, 3, 3)),
    "groups of an image": (sequential(
        conv(3, 4), pair(lambda: iso.GroupNorm(4, 2), lambda: nn.GroupNorm(2, 4)), flatten,
        linear(24, 5)), (2, 2, 3, 3)),
    "a norm of the whole image": (sequential(
        conv(3, 4), pair(lambda: iso.LayerNorm((2, 3, 4)), lambda: nn.LayerNorm((4, 2, 3))),
        flatten, linear(24, 5)), (2, 2, 3, 3)),
    "a cubic one": (sequential(
        conv(3, 4), pair(lambda: iso.LayerNorm((4, 4, 4)), lambda: nn.LayerNorm((4, 4, 4))), relu,
        flatten, linear(64, 5)), (2, 4, 4, 3)),
    "depthwise": (sequential(
        pair(lambda: iso.DepthwiseConv2D(3, 3, 1, "VALID", multiplier=2),
             lambda: nn.Conv2d(3, 6, 3, groups=3)), flatten, linear(36, 5)), (2, 4, 5, 3)),
    "transposed": (sequential(
        pair(lambda: iso.Conv2DTranspose(4, 6, 3, 2, "VALID", groups=2),
             lambda: nn.ConvTranspose2d(4, 6, 3, 2, groups=2)), flatten, linear(270, 5)),
        (2, 2, 4, 4)),
    "grouped": (sequential(
        pair(lambda: iso.Conv2D(4, 6, 3, groups=2),
             lambda: nn.Conv2d(4, 6, 3, padding=1, groups=2)), flatten, linear(36, 5)),
        (2, 2, 3, 4)),
}  # fmt: skip


def compared(backend, model, other, shape, first=False):
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    given = torch.tensor(x)
    with torch.no_grad():
        expected = other(given if first or x.ndim < 3 else given.movedim(-1, 1))
    if expected.ndim > 2:
        expected = expected.movedim(1, -1)
    found = iso.to_numpy(model(array(backend, x)))
    np.testing.assert_allclose(found, expected.cpu().numpy(), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("form", FORMS)
def test_a_sequential_computes_what_torch_does(backend, form):
    (ours, theirs), shape = FORMS[form]
    model, other = made(backend, ours).eval(), filled(theirs(), torch.float32)
    compared(backend, load(model, other.state_dict()), other, shape)


def test_names_say_where_and_the_order_is_ours(backend):
    """A user-given key chain still gets our channel order."""
    (ours, theirs), shape = FORMS["norms after it"]
    model, other = made(backend, ours).eval(), filled(theirs(), torch.float32)
    given = {f"net.{k}": x for k, x in other.state_dict().items()}
    chains = iso.export.torch_names(model)
    names = {k: chains.get(k.removeprefix("net.")) for k in given}
    compared(backend, load(model, given, names), other, shape)
    compared(backend, load(made(backend, ours).eval(), given, names.get), other, shape)


def test_channels_that_are_first_need_nothing(backend):
    ours = lambda: iso.Sequential(
        iso.Conv2D(3, 4, 3, data_format="NCHW"), iso.BatchNorm(4, data_format="channel_first"),
        iso.relu, iso.MaxPool(2, data_format="channel_first"), iso.Flatten(), iso.Linear(24, 5),
    )  # fmt: skip
    theirs = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(24, 5),
    )  # fmt: skip
    model, other = made(backend, ours).eval(), filled(theirs, torch.float32)
    compared(backend, load(model, other.state_dict()), other, (2, 3, 4, 6), first=True)


def test_tokens_and_rows_need_nothing(backend):
    ours = lambda: iso.Sequential(iso.Embedding(7, 4), iso.Flatten(), iso.Linear(20, 3))
    theirs = filled(
        nn.Sequential(nn.Embedding(7, 4), nn.Flatten(), nn.Linear(20, 3)), torch.float32
    )
    model = load(made(backend, ours), theirs.state_dict())
    ids = np.arange(10).reshape(2, 5) % 7
    expected = theirs(torch.tensor(ids)).detach().cpu().numpy()
    np.testing.assert_allclose(iso.to_numpy(model(array(backend, ids))), expected, rtol=1e-5)
    ours = lambda: iso.Sequential(iso.Flatten(), iso.Linear(20, 3))
    theirs = filled(nn.Sequential(nn.Flatten(), nn.Linear(20, 3)), torch.float32)
    compared(backend, load(made(backend, ours), theirs.state_dict()), theirs, (2, 4, 5), first=True)


# ---- unknown orders ------------------------------------------------------------------------------


class Lenet(iso.Module):
    """A module that flattens inside its forward."""

    def __init__(self):
        self.conv, self.norm = iso.Conv2D(3, 4, 3), iso.BatchNorm(4)
        self.flat_norm, self.first, self.last = (
            iso.BatchNorm(24),
            iso.Linear(24, 5),
            iso.Linear(5, 2),
        )

    def forward(self, x):
        x = iso.relu(self.norm(self.conv(x)))
        x = self.flat_norm(iso.namespace(x).reshape(x, (x.shape[0], -1)))
        return self.last(iso.relu(self.first(x)))


class TorchLenet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.flat_norm, self.first, self.last = (
            nn.BatchNorm1d(24),
            nn.Linear(24, 5),
            nn.Linear(5, 2),
        )

    def forward(self, x):
        x = torch.relu(self.norm(self.conv(x)))
        return self.last(torch.relu(self.first(self.flat_norm(x.flatten(1)))))


class Vgg(iso.Module):
    """Two Sequentials with unknown code between them."""

    def __init__(self):
        self.features = iso.Sequential(iso.Conv2D(3, 4, 3), iso.relu, iso.MaxPool(2))
        self.flatten, self.classifier = (
            iso.Flatten(),
            iso.Sequential(iso.Dropout(0.5), iso.Linear(8, 5)),
        )

    def forward(self, x):
        return self.classifier(self.flatten(self.features(x)))


class TorchVgg(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.classifier = nn.Sequential(nn.Dropout(0.5), nn.Linear(8, 5))

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


double = pair(lambda: lambda x: x * 2, lambda: Doubled())


class Doubled(nn.Module):
    def forward(self, x):
        return x * 2


class Shaped(nn.Module):
    def forward(self, x):
        return x.reshape(-1, 4, 2, 3)


shaped = pair(lambda: lambda x: iso.namespace(x).reshape(x, (-1, 2, 3, 4)), Shaped)
FLAT = lambda channels: lambda w: iso.export.flat_weight(w, channels)
ROWS = lambda channels: lambda w: iso.export.flat_weight(w, channels, axis=0)

# our model, torch's, the shape of x, the refused names, and what the user must state
UNSURE = {
    "reshaped in a forward": (
        Lenet, TorchLenet, (2, 2, 3, 3), "first.weight for first/w: its inputs may be a flattened "
        "image of 4 channels",
        {"first.weight": ("first/w", FLAT(4)), "flat_norm.weight": ("flat_norm/w", FLAT(4)),
         "flat_norm.bias": ("flat_norm/b", FLAT(4)),
         "flat_norm.running_mean": ("flat_norm/mean", FLAT(4)),
         "flat_norm.running_var": ("flat_norm/variance", FLAT(4))}),
    "flattened in a forward": (
        Vgg, TorchVgg, (2, 2, 4, 3), "classifier.1.weight for classifier/layers/1/w: its inputs ma",
        {"classifier.1.weight": ("classifier/layers/1/w", FLAT(4))}),
    "after a function": (
        *sequential(conv(3, 4), double, flatten, linear(24, 5)), (2, 2, 3, 3),
        "3.weight for layers/3/w: its inputs may be a flattened image of 4 channels",
        {"3.weight": ("layers/3/w", FLAT(4))}),
    "before a function": (
        *sequential(conv(3, 4), flatten, double, linear(24, 5)), (2, 2, 3, 3),
        "3.weight for layers/3/w: its inputs may be", {"3.weight": ("layers/3/w", FLAT(4))}),
    "a pool of who knows how many channels": (
        *sequential(pool, flatten, linear(18, 5)), (2, 4, 6, 3), "2.weight for layers/2/w: an image"
        " of an unknown number of channels", {"2.weight": ("layers/2/w", FLAT(3))}),
    "made into an image": (
        *sequential(linear(3, 24), flat_norm(24), relu, shaped, conv(4, 2)), (5, 3),
        "0.weight for layers/0/w: its outputs may be made into an image of 4 channels",
        {"0.weight": ("layers/0/w", ROWS(4)), "0.bias": ("layers/0/b", ROWS(4)),
         "1.weight": ("layers/1/w", ROWS(4)), "1.bias": ("layers/1/b", ROWS(4)),
         "1.running_mean": ("layers/1/mean", ROWS(4)),
         "1.running_var": ("layers/1/variance", ROWS(4))}),
}  # fmt: skip


@pytest.mark.parametrize("case", UNSURE)
def test_what_is_not_known_is_refused_until_it_is_said(backend, case):
    ours, theirs, shape, said, names = UNSURE[case]
    model, other = made(backend, ours).eval(), filled(theirs(), torch.float32)
    with pytest.raises(ValueError, match="from_torch_state_dict: needed the arrays of") as error:
        load(model, other.state_dict())
    message = str(error.value)
    assert said in message
    assert "torch's channels are first and ours last" in message
    assert "iso.export.flat_weight(w, channels)" in message
    for name, (chain, _) in names.items():  # exactly those names are mentioned
        assert f"{name} for {chain}: " in message
    assert message.count(" for ") == len(names), message
    for left in names:  # a single one that is not stated is refused too
        some = {k: x for k, x in names.items() if k != left}
        with pytest.raises(ValueError, match=f"{left} for "):
            load(model, other.state_dict(), some)
    compared(backend, load(model, other.state_dict(), names), other, shape)


def test_a_layer_of_two_places_is_refused(backend):
    """One layer used twice: after an image and after features."""

    def build():
        shared = iso.Linear(24, 24)
        return iso.Sequential(iso.Conv2D(3, 4, 3), iso.Flatten(), shared, iso.relu, shared)

    shared = nn.Linear(24, 24)
    theirs = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), shared, nn.ReLU(), shared)
    with pytest.raises(ValueError, match="2.weight for layers/2/w: .*flattened image in on"):
        load(made(backend, build), theirs.state_dict())


def test_groups_of_a_flattened_image_are_refused(backend):
    """No order of the weights tells which numbers make a group."""
    ours = lambda: iso.Sequential(
        iso.Conv2D(3, 4, 3), iso.Flatten(), iso.GroupNorm(24, 2), iso.Linear(24, 5)
    )
    theirs = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.GroupNorm(2, 24), nn.Linear(24, 5))
    with pytest.raises(ValueError, match="its groups have other features") as error:
        load(made(backend, ours), theirs.state_dict())
    for name in ("2.weight for layers/2/w", "2.bias for layers/2/b", "3.weight for layers/3/w"):
        assert f"{name}: " in str(error.value)


def test_some_axes_alone_are_flattened(backend):
    """Flattened rows of an image have no torch order. Flattened channels need no change."""
    given = {"0.weight": torch.ones(4, 3, 3, 3), "0.bias": torch.ones(4)}
    given |= {"2.weight": torch.ones(5, 8), "2.bias": torch.ones(5)}
    build = lambda keep, n: iso.Sequential(iso.Conv2D(3, 4, 3), iso.Flatten(keep), iso.Linear(n, 5))
    with pytest.raises(ValueError, match="2.weight for layers/2/w: .*may be a flattened"):
        load(made(backend, build, 2, 8), given)
    model = made(backend, build, 3, 4)
    load(model, {**given, "2.weight": torch.arange(20.0).reshape(5, 4)})
    assert iso.to_numpy(model.layers[2].w).ravel().tolist() == list(range(20))


# ---- no image, or not flattened by the layers ----------------------------------------------------


class Residual(iso.Module):
    """The last image has one pixel, by a mean or a pool; the first has as many numbers."""

    def __init__(self):
        self.stem, self.norm = iso.Conv2D(3, 4, 3), iso.BatchNorm(4)
        self.blocks = [iso.Conv2D(4, 8, 3), iso.Conv2D(8, 16, 3)]
        self.pool, self.flatten = iso.AdaptiveAvgPool(1), iso.Flatten()
        self.fc, self.head = iso.Linear(16, 32), iso.Linear(32, 2)


class Patches(iso.Module):
    """A convolution, then tokens whose widths are multiples of its channels."""

    def __init__(self):
        self.patch, self.norm = iso.Conv2D(3, 8, 2, 2), iso.LayerNorm(8)
        self.attention = iso.MultiHeadAttention(8, 2)
        self.mlp = iso.Sequential(iso.Linear(8, 32), iso.gelu, iso.Linear(32, 8))
        self.head = iso.Linear(8, 5)


class Dense(iso.Module):
    """Norms over several concatenated images."""

    def __init__(self):
        self.first, self.second = iso.Conv2D(3, 4, 3), iso.Conv2D(4, 4, 3)
        self.norm, self.third = iso.BatchNorm(8), iso.Conv2D(8, 6, 3)
        self.fc = iso.Linear(6, 2)


class Timed(iso.Module):
    """Time features that are added to channels."""

    def __init__(self):
        self.time = [iso.Linear(16, 64), iso.Linear(64, 64)]
        self.down, self.shift = iso.Conv2D(3, 8, 3), iso.Linear(64, 16)
        self.up = iso.Conv2DTranspose(8, 3, 3)


class Rows(iso.Module):
    """Concatenated features, without an image."""

    def __init__(self):
        self.one, self.norm = iso.Linear(5, 8), iso.BatchNorm(8)
        self.two, self.both = iso.Linear(5, 8), iso.Linear(16, 3)


class First(iso.Module):
    """Channels first: flattened as in torch."""

    def __init__(self):
        self.conv, self.fc = iso.Conv2D(3, 4, 3, data_format="NCHW"), iso.Linear(24, 5)


@pytest.mark.parametrize("cls", [Residual, Patches, Dense, Timed, Rows, First])
def test_no_false_alarm(backend, cls):
    """All arrays arrive unchanged, except for the axes of filters."""
    model = made(backend, cls)
    names = iso.export.torch_names(model)

    def values():
        nests = [iso.to_numpy(nest) for nest in (model.v, model.state)]
        return {
            path: x for nest in nests for path, x in zip(tree.paths(nest), tree.flatten(nest)[0])
        }

    rng = np.random.default_rng(0)
    wanted = {path: rng.standard_normal(x.shape).astype(np.float32) for path, x in values().items()}
    assert set(wanted) == set(names.values())
    given = {}
    for name, chain in names.items():
        x = wanted[chain]
        if x.ndim == 4:  # filters
            x = x.transpose((2, 3, 0, 1) if chain.startswith("up") else (3, 2, 0, 1))
        given[name] = torch.tensor(x.copy())
    load(model, given)
    for path, x in values().items():
        np.testing.assert_array_equal(x, wanted[path], err_msg=path)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_flat_weight_is_the_order_of_axes(axis):
    x = np.arange(24.0).reshape(6, 4) if axis == 0 else np.arange(24.0).reshape(4, 6)
    got = iso.export.flat_weight(x, 2, axis=axis)
    # an image of 2 channels and 3 pixels along the other axis
    rows = x.T if axis == 0 else x
    wanted = np.stack([row.reshape(2, 3).T.ravel() for row in rows])
    np.testing.assert_array_equal(got, wanted.T if axis == 0 else wanted)


def test_the_other_way_the_model_computes_itself(backend):
    """`to_torch` exports the model's own computation, so no order changes."""
    ours = lambda: iso.Sequential(iso.Conv2D(3, 4, 3), iso.Flatten(), iso.Linear(24, 5))
    model = made(backend, ours)
    x = np.random.default_rng(0).standard_normal((2, 2, 3, 3)).astype(np.float32)
    found = iso.export.to_torch(model)(torch.tensor(x)).detach().cpu().numpy()
    np.testing.assert_allclose(found, iso.to_numpy(model(array(backend, x))), rtol=1e-5, atol=1e-6)
