"""Initial values of layers: the formulas of the papers, and the same numbers on every backend."""

import numpy as np
import pytest

import isomorph as iso
from isomorph import initializers
from oracles import numpy_of, same_but_for_digits

SHAPE, FANS = (200, 300), (300, 200)
N = 200 * 300  # the standard error of the sample's standard deviation is 1 / √(2 N), 0.3 per cent


def drawn(backend, draw, shape=SHAPE, fans=FANS, key=0, dtype=None):
    with iso.use_backend(backend, dtype=dtype):
        return draw(iso.random.key(key), shape, fans=fans)


@pytest.mark.parametrize(
    ("draw", "deviation", "edge"),
    [
        (initializers.uniform(0.3), 0.3 / np.sqrt(3), 0.3),
        (initializers.normal(0.3), 0.3, None),
        (initializers.truncated_normal(0.3), 0.3 * 0.87962566, 0.6),
        (initializers.glorot(), np.sqrt(2 / 500), np.sqrt(6 / 500)),
        (initializers.glorot("normal"), np.sqrt(2 / 500), None),
        (initializers.glorot("truncated_normal", gain=2.0), 2 * np.sqrt(2 / 500), None),
        (initializers.he(), np.sqrt(2 / 300), None),
        (initializers.he("uniform"), np.sqrt(2 / 300), np.sqrt(6 / 300)),
        (initializers.lecun(), np.sqrt(1 / 300), None),
        (initializers.lecun("truncated_normal"), np.sqrt(1 / 300), 2 * np.sqrt(1 / 300) / 0.8796),
    ],
    ids=lambda x: "",
)
def test_deviation_mean_and_edges(backend, draw, deviation, edge):
    x = numpy_of(drawn(backend, draw))
    assert x.shape == SHAPE
    assert x.dtype == np.float32
    np.testing.assert_allclose(x.std(), deviation, rtol=0.015)  # five standard errors
    assert abs(x.mean()) < 5 * deviation / np.sqrt(N)
    if edge is not None:
        assert 0.99 * edge < np.abs(x).max() <= edge * (1 + 1e-6)
    same_but_for_digits(x, drawn("numpy", draw))
    assert not np.array_equal(x, numpy_of(drawn(backend, draw, key=1)))


def test_constants(backend):
    for draw, value in (
        (initializers.zeros(), 0.0), (initializers.ones(), 1.0), (initializers.constant(2.5), 2.5),
    ):  # fmt: skip
        x = numpy_of(drawn(backend, draw, (2, 3), dtype="float64"))
        assert x.dtype == np.float64
        np.testing.assert_array_equal(x, np.full((2, 3), value))


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (2, 3, 4), (5, 5)])
def test_orthogonal(backend, shape):
    x = numpy_of(drawn(backend, initializers.orthogonal(2.0), shape, dtype="float64"))
    flat = x.reshape(-1, shape[-1])
    small = flat.T @ flat if flat.shape[0] >= flat.shape[1] else flat @ flat.T
    np.testing.assert_allclose(small, 4 * np.eye(len(small)), atol=1e-12)
    narrow = drawn(backend, initializers.orthogonal(2.0), shape)
    np.testing.assert_array_equal(
        numpy_of(narrow), drawn("numpy", initializers.orthogonal(2.0), shape)
    )


def test_bad_input(backend):
    with pytest.raises(ValueError, match="glorot: needed uniform, normal or truncated_normal"):
        initializers.glorot("gauss")
    with pytest.raises(ValueError, match="normal: needed a scale above 0, got -1"):
        initializers.normal(-1)
    with pytest.raises(ValueError, match=r"orthogonal: needed at least two axes, got shape \(3,\)"):
        drawn(backend, initializers.orthogonal(), (3,))
    with pytest.raises(ValueError, match="Linear: needed out_features as an int >= 1, got 0"):
        iso.Linear(3, 0)
    with pytest.raises(ValueError, match="Conv2D: needed groups that divide 4 and 6 channels"):
        iso.Conv2D(4, 6, 3, groups=4)
    with pytest.raises(ValueError, match="Conv1D: needed data_format as one of NWC, NCW"):
        iso.Conv1D(4, 6, 3, data_format="NHWC")
    with pytest.raises(ValueError, match="MultiHeadAttention: needed num_heads that divides 6"):
        iso.MultiHeadAttention(6, 4)
    with pytest.raises(ValueError, match=r"Dropout: needed 0 <= prob < 1, got 1.0"):
        iso.Dropout(1.0)


def test_layers_draw_by_their_fans(backend):
    """Glorot's limit √(6 / (in + out)) with the fans of each layer; biases are zero."""
    with iso.use_backend(backend):
        layers = {
            iso.Linear(30, 50, key=0): (30, 50),
            iso.Conv2D(8, 16, (3, 5), key=0): (15 * 8, 15 * 16),
            iso.Conv1D(8, 16, 3, groups=2, key=0): (3 * 4, 3 * 8),
            iso.Conv2DTranspose(8, 16, 3, key=0): (9 * 8, 9 * 16),
            iso.DepthwiseConv2D(64, 3, multiplier=2, key=0): (9, 18),
        }
    for layer, fans in layers.items():
        edge, w = np.sqrt(6 / sum(fans)), numpy_of(layer.w)
        assert 0.9 * edge < np.abs(w).max() <= edge
        # at least 192 numbers: the standard error of a uniform sample's deviation is 3.2 per cent
        np.testing.assert_allclose(w.std(), edge / np.sqrt(3), rtol=0.12)
        np.testing.assert_array_equal(numpy_of(layer.b), np.zeros(layer.b.shape[0]))
