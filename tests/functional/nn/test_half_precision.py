"""Every layer in float16 and bfloat16: value and gradient are those of float32, within the rounding
of the narrow dtype. float32 itself is compared with other libraries elsewhere.
"""

import numpy as np
import pytest

import isomorph as iso
from isomorph.dispatch import load
from oracles import numpy_of

NARROW = ("float16", "bfloat16")
EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
# How many roundings of its largest element a result may be off. Sums have few terms here, and
# where they could cancel out, the terms are positive.
ROUNDINGS = 12


def sines(*shape, step=0.7, start=0.3):
    return np.sin(start + step * np.arange(int(np.prod(shape)))).reshape(shape)


X = sines(2, 6, 4)
IMAGE = sines(2, 6, 6, 4)
W = sines(5, 4, start=1.0)
MEAN, VARIANCE = sines(4, start=0.1), sines(4) ** 2 + 0.5
QKV = [sines(2, 6, 8, start=i) for i in range(3)]
GATES = [sines(2, 4, start=2.0), sines(2, 4, start=3.0)]
RECURRENT = [sines(4, 16, start=4.0) / 2, sines(4, 16, start=5.0) / 2]
LAYERS = {
    "linear": (lambda x, w: iso.linear(x, w), [X, W]),
    "conv1d": (lambda x, w: iso.conv1d(x, w, 1, "SAME"), [X, sines(3, 4, 2)]),
    "conv2d": (lambda x, w: iso.conv2d(x, w, 2, "SAME"), [IMAGE, sines(3, 3, 4, 2)]),
    "conv2d_transpose": (
        lambda x, w: iso.conv2d_transpose(x, w, 2, "SAME"), [IMAGE, sines(3, 3, 4, 2)]
    ),
    "depthwise_conv2d": (
        lambda x, w: iso.depthwise_conv2d(x, w, 1, "SAME"), [IMAGE, sines(3, 3, 4)]
    ),
    "max_pool": (lambda x: iso.max_pool(x, 2), [IMAGE]),
    "avg_pool": (lambda x: iso.avg_pool(x, 3, 1, "SAME"), [IMAGE**2 + 0.5]),
    "adaptive_avg_pool": (lambda x: iso.adaptive_avg_pool(x, 2), [IMAGE**2 + 0.5]),
    "layer_norm": (lambda x, w: iso.layer_norm(x, weight=w), [X, MEAN]),
    "rms_norm": (lambda x, w: iso.rms_norm(x, weight=w), [X, MEAN]),
    "group_norm": (lambda x: iso.group_norm(x, 2), [X]),
    "instance_norm": (lambda x: iso.instance_norm(x), [X]),
    "batch_norm": (lambda x, m, v: iso.batch_norm(x, m, v)[0], [X, MEAN, VARIANCE]),
    "batch_norm in training": (
        lambda x, m, v: iso.batch_norm(x, m, v, training=True)[0], [X, MEAN, VARIANCE]
    ),
    "local_response_norm": (lambda x: iso.local_response_norm(x, 3, alpha=0.5), [X]),
    "embedding": (lambda w: iso.embedding(iso.namespace(w).asarray([[0, 3], [3, 1]]), w), [W]),
    "attention": (lambda q, k, v: iso.scaled_dot_product_attention(q, k, v), QKV),
    "causal attention": (
        lambda q, k, v: iso.scaled_dot_product_attention(q, k, v, is_causal=True), QKV
    ),
    "multi_head_attention": (
        lambda x, w: iso.multi_head_attention(x, num_heads=2, in_proj_weights=w),
        [X, sines(12, 4)],
    ),
    "lstm_update": (
        lambda x, h, c, wi, wr: iso.lstm_update(x, h, c, wi, wr)[0], [X, *GATES, *RECURRENT]
    ),
    "rotary_embedding": (iso.rotary_embedding, [X]),
    "cross_entropy": (lambda x, t: iso.cross_entropy(x, t), [X, sines(2, 6, 4) ** 2 / 4]),
    "binary_cross_entropy": (
        lambda x, t: iso.binary_cross_entropy(x, t), [X, sines(2, 6, 4) ** 2]
    ),
    "mse": (lambda x, t: iso.mse(x, t), [X, sines(2, 6, 4, start=2.0)]),
    "mae": (lambda x, t: iso.mae(x, t), [X, sines(2, 6, 4, start=2.0)]),
    "huber": (lambda x, t: iso.huber(x, t), [X, sines(2, 6, 4, start=2.0)]),
    "softmax": (iso.softmax, [X]),
    "log_softmax": (iso.log_softmax, [X]),
    "logsumexp": (lambda x: iso.logsumexp(x, axis=-1), [X]),
    **{
        name: (lambda x, name=name: getattr(iso, name)(x), [3 * X])
        for name in (
            "relu", "leaky_relu", "elu", "gelu", "silu", "mish", "softplus", "sigmoid", "hardswish"
        )
    },
}  # fmt: skip


def close(found, wanted, narrow, what):
    found, wanted = (np.asarray(y, np.float64) for y in (found, wanted))
    assert np.isfinite(found).all(), what
    scale = np.abs(wanted).max()
    off = np.abs(found - wanted).max() / (EPSILON[narrow] * (scale or 1.0))
    assert off <= ROUNDINGS, f"{what}: {off:.1f} roundings off"


@pytest.mark.later_on("jax", narrow="bfloat16")  # it compiles each
@pytest.mark.parametrize("narrow", NARROW)
@pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)
@pytest.mark.parametrize("name", LAYERS)
def test_a_narrow_dtype_gives_the_numbers_of_float32(backend, xp, name, narrow):
    call, arrays = LAYERS[name]
    dtype = load(backend).narrow(narrow)
    given = [xp.astype(xp.asarray(x.astype(np.float32)), dtype) for x in arrays]
    wide = [xp.astype(x, xp.float32) for x in given]  # the same numbers

    def total(*arrays):
        y = call(*arrays)
        weights = xp.astype(xp.asarray(sines(*y.shape, step=1.3).astype(np.float32)), y.dtype)
        return xp.sum(y * weights), y

    both = iso.value_and_grad(total, argnums=tuple(range(len(given))), has_aux=True)
    both = iso.jit(both) if backend == "jax" else both  # eagerly JAX compiles each operation
    (_, y), slopes = both(*given)
    (_, wanted), expected = both(*wide)
    assert y.dtype == dtype
    widened = lambda x: numpy_of(xp.astype(x, xp.float32))
    close(widened(y), widened(wanted), narrow, "value")
    for number, (a, b) in enumerate(zip(slopes, expected)):
        assert a.dtype == dtype
        close(widened(a), widened(b), narrow, f"gradient {number}")
