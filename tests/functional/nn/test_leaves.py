"""Trainable arrays of a framework, a `tf.Variable` or a torch leaf, as arguments of every layer:
the framework's own backward pass reaches them.
"""

import numpy as np
import pytest
from frameworks import tf, torch

import isomorph as iso
from oracles import name_of

from .conv_oracles import drawn
from .dropout_oracles import key_of

HARD = np.array([1, 0])
# a layer, and the shapes of its arguments
LAYERS = {
    "linear": (lambda x, w, b: iso.linear(x, w, bias=b), [(2, 3), (4, 3), (4,)]),
    "outer": (lambda x, w, b: iso.linear(x, w, bias=b), [(2, 5, 3), (2, 4, 3), (2, 4)]),
    "conv": (
        lambda x, w, b: iso.conv2d(x, w, 2, "SAME", bias=b),
        [(1, 4, 4, 2), (2, 2, 2, 3), (3,)],
    ),
    "first": (
        lambda x, w, b: iso.conv1d(x, w, 2, 2, dilations=2, x_dilations=2, data_format="NCW"),
        [(1, 2, 4), (3, 2, 3), (3,)],
    ),
    "groups": (
        lambda x, w, b: iso.conv_general_dilated(x, w, 1, 0, feature_group_count=2, bias=b),
        [(1, 4, 4, 4), (2, 2, 2, 4), (4,)],
    ),
    "depthwise": (
        lambda x, w: iso.depthwise_conv2d(x, w, 1, "SAME"),
        [(1, 4, 4, 2), (2, 2, 2)],
    ),
    "transpose": (
        lambda x, w, b: iso.conv3d_transpose(x, w, 2, "SAME", bias=b),
        [(1, 2, 2, 2, 2), (2, 2, 2, 2, 3), (3,)],
    ),
    "attention": (
        lambda q, k, v: iso.scaled_dot_product_attention(q, k, v, is_causal=True),
        [(2, 3, 4), (2, 3, 4), (2, 3, 4)],
    ),
    "masked": (
        lambda q, k, v, m: iso.grouped_query_attention(q, k, v, mask=m),
        [(4, 3, 2), (2, 3, 2), (2, 3, 2), (4, 3, 3)],
    ),
    "heads": (
        lambda x, w, b, o, m: iso.multi_head_attention(
            x, num_heads=2, in_proj_weights=w, in_proj_bias=b, out_proj_weights=o, attention_mask=m
        ),
        [(2, 3, 4), (12, 4), (12,), (4, 4), (3, 3)],
    ),
    "lstm": (
        lambda *a: iso.lstm_update(*a[:5], bias=a[5])[0],
        [(2, 3, 2), (2, 4), (2, 4), (2, 16), (4, 16), (16,)],
    ),
    "gru": (lambda *a: iso.gru_update(*a)[0], [(2, 3, 2), (2, 4), (2, 12), (4, 12)]),
    "layer_norm": (lambda x, w, b: iso.layer_norm(x, weight=w, bias=b), [(2, 3), (3,), (3,)]),
    "axis": (lambda x, w: iso.rms_norm(x, weight=w, axis=0), [(2, 3), (2,)]),
    "batch_norm": (
        lambda x, m, v, w: iso.batch_norm(x, m, v, weight=w, training=True)[0],
        [(4, 3), (3,), (3,), (3,)],
    ),
    "group_norm": (lambda x, w: iso.group_norm(x, 2, weight=w), [(2, 3, 4), (4,)]),
    "pool": (lambda x: iso.avg_pool(x, 2, 1, "SAME"), [(1, 4, 4, 2)]),
    "softmax": (iso.softmax, [(2, 3)]),
    "gelu": (iso.gelu, [(2, 3)]),
    "rotary": (iso.rotary_embedding, [(3, 4)]),
    "mse": (lambda x, y: iso.mse(x, y), [(2, 3), (2, 3)]),
    "cross_entropy": (
        lambda x: iso.cross_entropy(x, iso.namespace(x).asarray(HARD)), [(2, 3)]),
    "embedding": (lambda w: iso.embedding(iso.namespace(w).asarray(HARD), w), [(3, 2)]),
    "dropout": (
        lambda x: iso.dropout(x, 0.5, rng=key_of(name_of(iso.namespace(x)), 1)), [(3, 4)]),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("backend", ["tensorflow", "torch"], indirect=True)
def test_the_frameworks_own_way_back_finds_its_leaves(backend, name):
    layer, shapes = LAYERS[name]
    arrays = drawn(len(name), *shapes)
    total = lambda *a: iso.namespace(a[0]).sum(layer(*a) ** 2)
    # by NumPy's tape, which has no leaves
    wanted = iso.grad(lambda *a: np.sum(layer(*a) ** 2), tuple(range(len(arrays))))(*arrays)
    if backend == "tensorflow":
        leaves = [tf.Variable(x) for x in arrays]
        with tf.GradientTape() as tape:
            loss = total(*leaves)
        found = tape.gradient(loss, leaves, unconnected_gradients="zero")
        found = [tf.convert_to_tensor(g).cpu().numpy() for g in found]
    else:
        leaves = [torch.tensor(x, requires_grad=True) for x in arrays]
        total(*leaves).backward()
        found = [np.zeros(x.shape) if x.grad is None else x.grad.cpu().numpy() for x in leaves]
    for got, expected in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-11)
