"""Training steps on TensorFlow as users write them: variables and a tape in one
`tf.function(jit_compile=True)`, Adam by hand or by Keras; convolutions also without XLA, which is
faster on a CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from .cases import DECAY, RATE, Case, strides


def dense(x: Any, p: Any) -> Any:
    if len(x.shape) == 2:
        return tf.matmul(x, p[0]) + p[1]
    return tf.reshape(
        tf.matmul(tf.reshape(x, (-1, x.shape[-1])), p[0]) + p[1], (*x.shape[:-1], p[0].shape[-1])
    )


def layer_norm(x: Any, p: Any) -> Any:
    mean, variance = tf.nn.moments(x, -1, keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, p[1], p[0], 1e-5)


def mlp(params: Any, state: Any, x: Any, case: Case) -> Any:
    for p in params[:-1]:
        x = tf.nn.relu(dense(x, p))
    return dense(x, params[-1])


def gpt(params: Any, state: Any, ids: Any, case: Case) -> Any:
    x = tf.gather(params["words"], ids) + params["places"]
    n, length, width = x.shape
    keep = tf.linalg.band_part(tf.ones((length, length), tf.bool), -1, 0)
    for p in params["blocks"]:
        parts = dense(layer_norm(x, p["before"]), p["qkv"])
        parts = tf.reshape(parts, (n, length, 3, case.heads, width // case.heads))
        q, k, v = tf.unstack(tf.transpose(parts, (2, 0, 3, 1, 4)))
        scores = tf.matmul(q, k, transpose_b=True) * (width // case.heads) ** -0.5
        y = tf.matmul(tf.nn.softmax(tf.where(keep, scores, -1e30)), v)
        y = tf.reshape(tf.transpose(y, (0, 2, 1, 3)), (n, length, width))
        x = x + dense(y, p["out"])
        y = tf.nn.gelu(dense(layer_norm(x, p["after"]), p["up"]), approximate=True)
        x = x + dense(y, p["down"])
    return dense(layer_norm(x, params["norm"]), [params["head"], 0.0])


def resnet(params: Any, state: Any, x: Any, case: Case) -> Any:
    left = iter(state)

    def conv(x: Any, w: Any, stride: int = 1) -> Any:
        pad = w.shape[0] // 2
        if stride == 1:
            return tf.nn.conv2d(x, w, 1, "SAME")
        return tf.nn.conv2d(tf.pad(x, [[0, 0], [pad, pad], [pad, pad], [0, 0]]), w, stride, "VALID")

    def norm(x: Any, p: Any) -> Any:
        y, *found = tf.compat.v1.nn.fused_batch_norm(x, *p, epsilon=1e-5, is_training=True)
        for old, new in zip(next(left), found):
            old.assign(0.9 * old + 0.1 * new)
        return y

    x = tf.nn.relu(norm(conv(x, params["stem"]), params["norm"]))
    for p, stride in zip(params["blocks"], strides(params)):
        y = tf.nn.relu(norm(conv(x, p["conv1"], stride), p["norm1"]))
        y = norm(conv(y, p["conv2"]), p["norm2"])
        if "short" in p:
            x = norm(conv(x, p["short"], stride), p["short_norm"])
        x = tf.nn.relu(x + y)
    return dense(tf.reduce_mean(x, (1, 2)), params["head"])


FORWARD = {"mlp": mlp, "resnet": resnet, "gpt": gpt}


def statistics(weights: Any) -> list:
    found = [weights["norm"]]
    for b in weights["blocks"]:
        found += [b[name] for name in ("norm1", "norm2", "short_norm") if name in b]
    return [[tf.Variable(tf.zeros_like(p[0])), tf.Variable(tf.ones_like(p[0]))] for p in found]


def step(case: Case, by_hand: bool, xla: bool = True) -> Callable[[], Any]:
    weights = case.weights()
    params = tf.nest.map_structure(tf.Variable, weights)
    state = statistics(weights) if case.kind == "resnet" else []
    leaves, x, y = tf.nest.flatten(params), tf.constant(case.x), tf.constant(case.y)
    forward = FORWARD[case.kind]
    update = adam(case, leaves) if by_hand else keras_adam(case, leaves)

    @tf.function(jit_compile=xla or None, autograph=False)
    def run(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            logits = forward(params, state, x, case)
            value = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
        update([tf.convert_to_tensor(g) for g in tape.gradient(value, leaves)])
        return value

    return lambda: run(x, y).numpy()


def adam(case: Case, leaves: list) -> Callable[[list], None]:
    first = [tf.Variable(tf.zeros_like(p)) for p in leaves]
    second = [tf.Variable(tf.zeros_like(p)) for p in leaves]
    t = tf.Variable(0.0)
    decay = DECAY if case.rule == "adamw" else 0.0

    def update(grads: list) -> None:
        t.assign_add(1.0)
        down, wide = 1 - 0.9**t, 1 - 0.999**t
        for p, m, v, g in zip(leaves, first, second, grads):
            m.assign(0.9 * m + 0.1 * g)
            v.assign(0.999 * v + 0.001 * g * g)
            p.assign_sub(RATE * (m / down / (tf.sqrt(v / wide) + 1e-8) + decay * p))

    return update


def keras_adam(case: Case, leaves: list) -> Callable[[list], None]:
    import keras

    if case.rule == "adam":
        optimizer: Any = keras.optimizers.Adam(RATE, epsilon=1e-8)
    else:
        optimizer = keras.optimizers.AdamW(RATE, weight_decay=DECAY, epsilon=1e-8)
    optimizer.build(leaves)
    return lambda grads: optimizer.apply_gradients(zip(grads, leaves))


def peers(case: Case) -> dict[str, Callable[[], Callable[[], Any]]]:
    found = {
        "tf.function + Adam by hand": lambda: step(case, True),
        "tf.function + Keras Adam": lambda: step(case, False),
    }
    if case.kind == "resnet":
        found["tf.function without XLA + Keras Adam"] = lambda: step(case, False, xla=False)
    return found
