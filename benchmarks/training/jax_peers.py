"""Training steps on JAX as users write them: `jax.jit` of a whole step with optax, Flax NNX and
Equinox.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from flax import nnx

from .cases import DECAY, RATE, Case, strides


def rule(case: Case) -> Any:
    return optax.adam(RATE) if case.rule == "adam" else optax.adamw(RATE, weight_decay=DECAY)


def mean_loss(logits: Any, y: Any) -> Any:
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


def arrays(nest: Any) -> Any:
    return jax.tree.map(jnp.asarray, nest)


def dense(x: Any, p: Any) -> Any:
    return x @ p[0] + p[1]


# Plain functions of pytrees.


def layer_norm(x: Any, p: Any) -> Any:
    mean = jnp.mean(x, -1, keepdims=True)
    variance = jnp.mean((x - mean) ** 2, -1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * p[0] + p[1]


def mlp(params: Any, state: Any, x: Any) -> tuple[Any, Any]:
    for p in params[:-1]:
        x = jax.nn.relu(dense(x, p))
    return dense(x, params[-1]), state


def own_attention(q: Any, k: Any, v: Any) -> Any:
    length = q.shape[1]
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
    keep = jnp.tril(jnp.ones((length, length), bool))
    weights = jax.nn.softmax(jnp.where(keep, scores, -1e30), axis=-1)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v)


def gpt(params: Any, state: Any, ids: Any, heads: int, attention: Callable) -> tuple[Any, Any]:
    x = params["words"][ids] + params["places"]
    for p in params["blocks"]:
        parts = dense(layer_norm(x, p["before"]), p["qkv"])
        q, k, v = jnp.split(parts.reshape(*x.shape[:2], 3 * heads, -1), 3, axis=2)
        x = x + dense(attention(q, k, v).reshape(x.shape), p["out"])
        x = x + dense(jax.nn.gelu(dense(layer_norm(x, p["after"]), p["up"])), p["down"])
    return layer_norm(x, params["norm"]) @ params["head"], state


def conv(x: Any, w: Any, stride: int = 1) -> Any:
    pad = w.shape[0] // 2
    return jax.lax.conv_general_dilated(
        x, w, (stride, stride), [(pad, pad)] * 2, dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def batch_norm(x: Any, p: Any, old: Any) -> tuple[Any, Any]:
    mean = jnp.mean(x, (0, 1, 2))
    variance = jnp.mean(x * x, (0, 1, 2)) - mean * mean
    n = x.size // x.shape[-1]
    new = [0.9 * old[0] + 0.1 * mean, 0.9 * old[1] + 0.1 * variance * (n / (n - 1))]
    scale = jax.lax.rsqrt(variance + 1e-5) * p[0]
    return (x - mean) * scale + p[1], jax.lax.stop_gradient(new)


def resnet(params: Any, state: Any, x: Any, steps: list[int]) -> tuple[Any, Any]:
    new: list[Any] = []

    def norm(x: Any, p: Any) -> Any:
        y, found = batch_norm(x, p, state[len(new)])
        new.append(found)
        return y

    x = jax.nn.relu(norm(conv(x, params["stem"]), params["norm"]))
    for p, stride in zip(params["blocks"], steps):
        y = jax.nn.relu(norm(conv(x, p["conv1"], stride), p["norm1"]))
        y = norm(conv(y, p["conv2"]), p["norm2"])
        x = norm(conv(x, p["short"], stride), p["short_norm"]) if "short" in p else x
        x = jax.nn.relu(x + y)
    return dense(jnp.mean(x, (1, 2)), params["head"]), new


def statistics(weights: Any) -> list:
    """The means and variances of the norms, in the order in which they are used."""
    found = [weights["norm"]]
    for b in weights["blocks"]:
        found += [b[name] for name in ("norm1", "norm2", "short_norm") if name in b]
    return [[jnp.zeros(p[0].shape), jnp.ones(p[0].shape)] for p in found]


def plain(case: Case, attention: Callable = own_attention) -> Callable[[], Any]:
    weights = case.weights()
    params, state = arrays(weights), None
    forward: Callable = mlp
    if case.kind == "gpt":
        forward = partial(gpt, heads=case.heads, attention=attention)
    elif case.kind == "resnet":
        forward, state = partial(resnet, steps=strides(weights)), statistics(weights)
    pair, x, y = rule(case), jnp.asarray(case.x), jnp.asarray(case.y)

    def objective(params: Any, state: Any, x: Any, y: Any) -> Any:
        logits, state = forward(params, state, x)
        return mean_loss(logits, y), state

    @partial(jax.jit, donate_argnums=0)
    def step(held: Any, x: Any, y: Any) -> Any:
        params, state, opt = held
        (value, state), grads = jax.value_and_grad(objective, has_aux=True)(params, state, x, y)
        updates, opt = pair.update(grads, opt, params)
        return (optax.apply_updates(params, updates), state, opt), value

    held = (params, state, pair.init(params))

    def run() -> Any:
        nonlocal held
        held, value = step(held, x, y)
        jax.block_until_ready(held)
        return value

    return run


# Flax NNX.


class FlaxMLP(nnx.Module):
    def __init__(self, weights: Any, rngs: Any):
        self.layers = nnx.List([flax_dense(p, rngs) for p in weights])

    def __call__(self, x):
        for layer in self.layers[:-1]:
            x = nnx.relu(layer(x))
        return self.layers[-1](x)


def flax_dense(p: Any, rngs: Any) -> Any:
    layer = nnx.Linear(*p[0].shape, rngs=rngs)
    layer.kernel[...], layer.bias[...] = jnp.asarray(p[0]), jnp.asarray(p[1])
    return layer


def flax_conv(w: Any, stride: int, rngs: Any) -> Any:
    size, pad = w.shape[0], w.shape[0] // 2
    layer = nnx.Conv(
        w.shape[2], w.shape[3], (size, size), stride, padding=[(pad, pad)] * 2, use_bias=False,
        rngs=rngs,
    )  # fmt: skip
    layer.kernel[...] = jnp.asarray(w)
    return layer


class FlaxResidual(nnx.Module):
    def __init__(self, p: Any, stride: int, rngs: Any):
        norm = lambda: nnx.BatchNorm(p["norm1"][0].size, momentum=0.9, epsilon=1e-5, rngs=rngs)
        self.conv1, self.norm1 = flax_conv(p["conv1"], stride, rngs), norm()
        self.conv2, self.norm2 = flax_conv(p["conv2"], 1, rngs), norm()
        self.has_short = "short" in p
        if self.has_short:
            self.short, self.short_norm = flax_conv(p["short"], stride, rngs), norm()

    def __call__(self, x):
        y = self.norm2(self.conv2(nnx.relu(self.norm1(self.conv1(x)))))
        return nnx.relu(y + (self.short_norm(self.short(x)) if self.has_short else x))


class FlaxResNet(nnx.Module):
    def __init__(self, weights: Any, rngs: Any):
        self.stem = flax_conv(weights["stem"], 1, rngs)
        width = weights["norm"][0].size
        self.norm = nnx.BatchNorm(width, momentum=0.9, epsilon=1e-5, rngs=rngs)
        steps = strides(weights)
        blocks = [FlaxResidual(p, s, rngs) for p, s in zip(weights["blocks"], steps)]
        self.blocks, self.head = nnx.List(blocks), flax_dense(weights["head"], rngs)

    def __call__(self, x):
        x = nnx.relu(self.norm(self.stem(x)))
        for block in self.blocks:
            x = block(x)
        return self.head(jnp.mean(x, (1, 2)))


class FlaxBlock(nnx.Module):
    def __init__(self, p: Any, heads: int, rngs: Any):
        width = p["before"][0].size
        norm = lambda: nnx.LayerNorm(width, epsilon=1e-5, rngs=rngs)
        self.before, self.after = norm(), norm()
        self.attention = nnx.MultiHeadAttention(heads, width, decode=False, rngs=rngs)
        for i, name in enumerate(("query", "key", "value")):
            layer = getattr(self.attention, name)
            part = p["qkv"][0][:, i * width : (i + 1) * width]
            layer.kernel[...] = jnp.asarray(part.reshape(layer.kernel[...].shape))
        out = self.attention.out
        out.kernel[...] = jnp.asarray(p["out"][0].reshape(out.kernel[...].shape))
        self.up, self.down = flax_dense(p["up"], rngs), flax_dense(p["down"], rngs)

    def __call__(self, x, keep):
        x = x + self.attention(self.before(x), mask=keep)
        return x + self.down(nnx.gelu(self.up(self.after(x))))


class FlaxGPT(nnx.Module):
    def __init__(self, weights: Any, heads: int, rngs: Any):
        words, places = weights["words"], weights["places"]
        self.words = nnx.Embed(*words.shape, rngs=rngs)
        self.words.embedding[...] = jnp.asarray(words)
        self.places = nnx.Param(jnp.asarray(places))
        self.blocks = nnx.List([FlaxBlock(p, heads, rngs) for p in weights["blocks"]])
        self.norm = nnx.LayerNorm(words.shape[1], epsilon=1e-5, rngs=rngs)
        self.head = nnx.Linear(*weights["head"].shape, use_bias=False, rngs=rngs)
        self.head.kernel[...] = jnp.asarray(weights["head"])

    def __call__(self, ids):
        x = self.words(ids) + self.places[...]
        keep = nnx.make_causal_mask(ids)
        for block in self.blocks:
            x = block(x, keep)
        return self.head(self.norm(x))


def flax(case: Case) -> Callable[[], Any]:
    weights, rngs = case.weights(), nnx.Rngs(0)
    if case.kind == "mlp":
        model: Any = FlaxMLP(weights, rngs)
    elif case.kind == "resnet":
        model = FlaxResNet(weights, rngs)
    else:
        model = FlaxGPT(weights, case.heads, rngs)
    optimizer = nnx.Optimizer(model, rule(case), wrt=nnx.Param)
    x, y = jnp.asarray(case.x), jnp.asarray(case.y)

    @partial(nnx.jit, donate_argnums=(0, 1))
    def step(model, optimizer, x, y):
        value, grads = nnx.value_and_grad(lambda m: mean_loss(m(x), y))(model)
        optimizer.update(model, grads)
        return value

    cached = nnx.cached_partial(step, model, optimizer)

    def run() -> Any:
        return jax.block_until_ready(cached(x, y))

    return run


# Equinox.


def eqx_dense(p: Any, bias: bool = True) -> Any:
    w, b = p if bias else (p, None)
    layer = eqx.nn.Linear(*w.shape, use_bias=bias, key=jax.random.key(0))
    layer = eqx.tree_at(lambda l: l.weight, layer, jnp.asarray(w.T))
    return eqx.tree_at(lambda l: l.bias, layer, jnp.asarray(b)) if bias else layer


class EquinoxMLP(eqx.Module):
    layers: list

    def __call__(self, x, state):
        for layer in self.layers[:-1]:
            x = jax.nn.relu(layer(x))
        return self.layers[-1](x), state


def eqx_conv(w: Any, stride: int) -> Any:
    size = w.shape[0]
    layer = eqx.nn.Conv2d(
        w.shape[2], w.shape[3], size, stride, size // 2, use_bias=False, key=jax.random.key(0)
    )
    return eqx.tree_at(lambda l: l.weight, layer, jnp.asarray(w.transpose(3, 2, 0, 1)))


def eqx_norm(p: Any) -> Any:
    return eqx.nn.BatchNorm(p[0].size, axis_name="batch", eps=1e-5, momentum=0.9, mode="batch")


class EquinoxResidual(eqx.Module):
    conv1: Any
    norm1: Any
    conv2: Any
    norm2: Any
    short: Any
    short_norm: Any

    def __init__(self, p: Any, stride: int):
        self.conv1, self.norm1 = eqx_conv(p["conv1"], stride), eqx_norm(p["norm1"])
        self.conv2, self.norm2 = eqx_conv(p["conv2"], 1), eqx_norm(p["norm2"])
        self.short = eqx_conv(p["short"], stride) if "short" in p else None
        self.short_norm = eqx_norm(p["short_norm"]) if "short" in p else None

    def __call__(self, x, state):
        y, state = self.norm1(self.conv1(x), state)
        y, state = self.norm2(self.conv2(jax.nn.relu(y)), state)
        if self.short is not None:
            x, state = self.short_norm(self.short(x), state)
        return jax.nn.relu(x + y), state


class EquinoxResNet(eqx.Module):
    stem: Any
    norm: Any
    blocks: list
    head: Any

    def __init__(self, weights: Any):
        self.stem, self.norm = eqx_conv(weights["stem"], 1), eqx_norm(weights["norm"])
        self.blocks = [EquinoxResidual(p, s) for p, s in zip(weights["blocks"], strides(weights))]
        self.head = eqx_dense(weights["head"])

    def __call__(self, x, state):  # one image, [3, height, width]
        x, state = self.norm(self.stem(x), state)
        x = jax.nn.relu(x)
        for block in self.blocks:
            x, state = block(x, state)
        return self.head(jnp.mean(x, (1, 2))), state


class EquinoxBlock(eqx.Module):
    before: Any
    after: Any
    attention: Any
    up: Any
    down: Any

    def __init__(self, p: Any, heads: int):
        width = p["before"][0].size
        self.before, self.after = eqx.nn.LayerNorm(width), eqx.nn.LayerNorm(width)
        biases = {f"use_{n}_bias": True for n in ("query", "key", "value", "output")}
        attention = eqx.nn.MultiheadAttention(heads, width, **biases, key=jax.random.key(0))
        parts = [p["qkv"][0][:, i * width : (i + 1) * width] for i in range(3)]
        names = ("query_proj", "key_proj", "value_proj", "output_proj")
        for name, w in zip(names, [*parts, p["out"][0]]):
            layer = eqx_dense([w, w[0] * 0])
            attention = eqx.tree_at(lambda a, name=name: getattr(a, name), attention, layer)
        self.attention, self.up, self.down = attention, eqx_dense(p["up"]), eqx_dense(p["down"])

    def __call__(self, x, keep):
        y = jax.vmap(self.before)(x)
        x = x + self.attention(y, y, y, keep)
        return x + jax.vmap(self.down)(jax.nn.gelu(jax.vmap(self.up)(jax.vmap(self.after)(x))))


class EquinoxGPT(eqx.Module):
    words: Any
    places: Any
    blocks: list
    norm: Any
    head: Any

    def __init__(self, weights: Any, heads: int):
        self.words = eqx.nn.Embedding(weight=jnp.asarray(weights["words"]))
        self.places = jnp.asarray(weights["places"])
        self.blocks = [EquinoxBlock(p, heads) for p in weights["blocks"]]
        self.norm = eqx.nn.LayerNorm(weights["words"].shape[1])
        self.head = eqx_dense(weights["head"], bias=False)

    def __call__(self, ids, state):  # one example
        x = jax.vmap(self.words)(ids) + self.places
        keep = jnp.tril(jnp.ones((ids.size, ids.size), bool))
        for block in self.blocks:
            x = block(x, keep)
        return jax.vmap(self.head)(jax.vmap(self.norm)(x)), state


def equinox(case: Case) -> Callable[[], Any]:
    weights, x, state = case.weights(), case.x, None
    if case.kind == "mlp":
        model: Any = EquinoxMLP([eqx_dense(p) for p in weights])
    elif case.kind == "resnet":
        model, x = EquinoxResNet(weights), case.x.transpose(0, 3, 1, 2)
        model, state = eqx.nn.make_with_state(lambda: model)()
    else:
        model = EquinoxGPT(weights, case.heads)
    pair, x, y = rule(case), jnp.asarray(x), jnp.asarray(case.y)

    def objective(model: Any, state: Any, x: Any, y: Any) -> Any:
        each = jax.vmap(model, in_axes=(0, None), out_axes=(0, None), axis_name="batch")
        logits, state = each(x, state)
        return mean_loss(logits, y), state

    @eqx.filter_jit(donate="all-except-first")
    def step(data: Any, held: Any) -> Any:
        model, state, opt = held
        found = eqx.filter_value_and_grad(objective, has_aux=True)(model, state, *data)
        (value, state), grads = found
        updates, opt = pair.update(grads, opt, eqx.filter(model, eqx.is_array))
        return (eqx.apply_updates(model, updates), state, opt), value

    held = (model, state, pair.init(eqx.filter(model, eqx.is_array)))

    def run() -> Any:
        nonlocal held
        held, value = step((x, y), held)
        return jax.block_until_ready(value)

    return run


def peers(case: Case) -> dict[str, Callable[[], Callable[[], Any]]]:
    found = {"jax.jit + optax": lambda: plain(case)}
    if case.kind == "gpt":
        native = partial(jax.nn.dot_product_attention, is_causal=True)
        found["jax.jit + optax, dot_product_attention"] = lambda: plain(case, native)
    return {**found, "Flax NNX": lambda: flax(case), "Equinox": lambda: equinox(case)}
