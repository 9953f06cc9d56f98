"""The masks of multi-head attention: `mask`, where True attends, and torch's two, where True
excludes. Compared with loops over examples, heads, queries and keys in float64 NumPy.
"""

import numpy as np
import pytest

import isomorph as iso
from isomorph.core.dispatch import load
from oracles import central_gradient, counted, numpy_of

N, HEADS, L, S, E = 2, 3, 4, 5, 6
RNG = np.random.default_rng(0)
Q, K = RNG.normal(size=(N, L, E)), RNG.normal(size=(N, S, E))
W, B = RNG.normal(size=(3 * E, E)) / 2, RNG.normal(size=3 * E)
OUT_W, OUT_B = RNG.normal(size=(E, E)) / 2, RNG.normal(size=E)


def looped(q, k, mask, w=W, extra=(), causal=False):
    """Multi-head attention, one number at a time. `mask` has the full shape: True attends, floats
    are added. `extra` are more keys and values, of E each, that every query attends to.
    """
    depth = E // HEADS
    out = np.zeros((N, L, E))
    for n in range(N):
        rows = [q[n] @ w[:E].T + B[:E]]
        rows += [k[n] @ w[i * E : (i + 1) * E].T + B[i * E : (i + 1) * E] for i in (1, 2)]
        for key, value in extra:
            rows[1] = np.concatenate([rows[1], key[None]])
            rows[2] = np.concatenate([rows[2], value[None]])
        for h in range(HEADS):
            part = slice(h * depth, (h + 1) * depth)
            for i in range(L):
                scores = []
                for j in range(len(rows[1])):
                    score = rows[0][i, part] @ rows[1][j, part] / np.sqrt(depth)
                    if j < S and causal and j > i:
                        score = -np.inf
                    elif j < S and mask.dtype == bool:
                        score = score if mask[n, h, i, j] else -np.inf
                    elif j < S:
                        score += mask[n, h, i, j]
                    scores.append(score)
                scores = np.array(scores)
                if np.isinf(scores).all():
                    continue
                weights = np.exp(scores - scores.max())
                out[n, i, part] = weights / weights.sum() @ rows[2][:, part]
    return out @ OUT_W.T + OUT_B


def call(to, q, k, w=None, **kw):
    return iso.multi_head_attention(
        q, key=k, num_heads=HEADS, in_proj_weights=to(W) if w is None else w, in_proj_bias=to(B),
        out_proj_weights=to(OUT_W), out_proj_bias=to(OUT_B), **kw,
    )  # fmt: skip


SHAPES = [
    (L, S), (1, S), (S,), (L, 1), (HEADS, L, S), (HEADS, 1, S), (N, 1, L, S), (N, 1, 1, S),
    (1, HEADS, L, S), (N, HEADS, L, S), (N, HEADS, 1, 1),
]  # fmt: skip


def drawn(shape, kind):
    rng = np.random.default_rng(len(shape) * 100 + sum(shape))
    return rng.random(shape) < 0.6 if kind == "bool" else rng.normal(size=shape)


@pytest.mark.parametrize("kind", ["bool", "float"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_mask_says_who_is_attended_to(backend, shape, kind):
    to = load(backend).from_numpy
    mask = drawn(shape, kind)
    wanted = looped(Q, K, np.broadcast_to(mask, (N, HEADS, L, S)))
    found = call(to, to(Q), to(K), mask=to(mask))
    np.testing.assert_allclose(numpy_of(found), wanted, rtol=1e-11, atol=1e-12)
    again, weights = call(
        to, to(Q), to(K), mask=to(mask), return_attention_weights=True,
        average_attention_weights=False,
    )  # fmt: skip
    np.testing.assert_allclose(numpy_of(again), wanted, rtol=1e-11, atol=1e-12)
    if kind == "bool":
        whole = np.broadcast_to(mask, (N, HEADS, L, S))
        assert (numpy_of(weights)[~whole] == 0).all()


@pytest.mark.parametrize("kind", ["bool", "float"])
def test_what_is_added_to_the_keys_is_never_masked(backend, kind):
    to = load(backend).from_numpy
    key, value = RNG.normal(size=E), RNG.normal(size=E)
    zeros = np.zeros(E)
    for shape in ((L, S), (L, 1), (N, 1, 1, S)):
        for causal in (False, True):
            mask = drawn(shape, kind)
            whole = np.broadcast_to(mask, (N, HEADS, L, S))
            wanted = looped(Q, K, whole, extra=[(key, value), (zeros, zeros)], causal=causal)
            found = call(
                to, to(Q), to(K), mask=to(mask), bias_k=to(key), bias_v=to(value),
                add_zero_attn=True, is_causal=causal,
            )  # fmt: skip
            np.testing.assert_allclose(numpy_of(found), wanted, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("kind", ["bool", "float"])
def test_a_mask_may_be_causal_besides(backend, kind):
    to = load(backend).from_numpy
    mask = drawn((N, 1, L, S), kind)
    wanted = looped(Q, K, np.broadcast_to(mask, (N, HEADS, L, S)), causal=True)
    found = call(to, to(Q), to(K), mask=to(mask), is_causal=True)
    np.testing.assert_allclose(numpy_of(found), wanted, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("kind", ["bool", "float"])
def test_gradients_with_a_mask(backend, xp, kind):
    to = load(backend).from_numpy
    mask = drawn((N, 1, L, S), kind)
    # a query that attends to nothing, or to everything
    mask[0, 0, 1] = False if kind == "bool" else -1e3
    weigh = RNG.normal(size=(N, L, E))
    loss = lambda q, k, w, mask: xp.sum(call(to, q, k, w, mask=mask) * to(weigh))
    arrays = (Q, K, W, mask)
    places = (0, 1, 2) if kind == "bool" else (0, 1, 2, 3)
    found = iso.grad(loss, places)(*map(to, arrays))
    for i, slope in zip(places, found):

        def value(x, i=i):
            q, k, w, m = (x if j == i else a for j, a in enumerate(arrays))
            return (looped(q, k, np.broadcast_to(m, (N, HEADS, L, S)), w) * weigh).sum()

        wanted = central_gradient(value, arrays[i])
        # differences of sums of this size are good to 1e-7
        np.testing.assert_allclose(numpy_of(slope), wanted, rtol=1e-6, atol=2e-7)


def test_the_module_takes_the_same_masks(backend):
    to = load(backend).from_numpy
    v = {"in_w": to(W), "in_b": to(B), "out_w": to(OUT_W), "out_b": to(OUT_B)}
    with iso.use_backend(backend, dtype="float64"):
        layer = iso.MultiHeadAttention(E, HEADS, v=v)
    mask = drawn((N, 1, L, S), "bool")
    wanted = looped(Q, K, np.broadcast_to(mask, (N, HEADS, L, S)))
    for masks in ({"mask": mask}, {"attention_mask": ~mask[:, 0]}):
        found = layer(to(Q), to(K), **{word: to(m) for word, m in masks.items()})
        np.testing.assert_allclose(numpy_of(found), wanted, rtol=1e-11, atol=1e-12)


def test_torchs_masks_keep_their_meaning(backend):
    to = load(backend).from_numpy
    masks, padding = drawn((L, S), "bool"), drawn((N, S), "bool")
    wanted = looped(Q, K, np.broadcast_to(~masks & ~padding[:, None, None], (N, HEADS, L, S)))
    found = call(to, to(Q), to(K), attention_mask=to(masks), key_padding_mask=to(padding))
    np.testing.assert_allclose(numpy_of(found), wanted, rtol=1e-11, atol=1e-12)
    both = ~masks & ~padding[:, None, None]
    same = call(to, to(Q), to(K), mask=to(both))
    np.testing.assert_allclose(numpy_of(same), wanted, rtol=1e-11, atol=1e-12)


def test_without_a_batch(backend):
    to = load(backend).from_numpy
    for shape in ((L, S), (HEADS, L, S)):
        mask = drawn(shape, "bool")
        wanted = looped(Q, K, np.broadcast_to(mask, (N, HEADS, L, S)))[0]
        found = call(to, to(Q[0]), to(K[0]), mask=to(mask))
        np.testing.assert_allclose(numpy_of(found), wanted, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)
def test_compiled_with_a_mask(backend):
    to = load(backend).from_numpy
    mask = drawn((N, 1, L, S), "bool")
    wanted = looped(Q, K, np.broadcast_to(mask, (N, HEADS, L, S)))
    program, calls = counted(lambda q, k, m: call(to, q, k, mask=m))
    for _ in range(2):
        found = program(to(Q), to(K), to(mask))
        np.testing.assert_allclose(numpy_of(found), wanted, rtol=1e-11, atol=1e-12)
    assert len(calls) == 1


@pytest.mark.parametrize("word", ["attention_mask", "key_padding_mask"])
def test_the_two_ways_are_not_mixed(backend, word):
    to = load(backend).from_numpy
    other = to(np.zeros((L, S) if word == "attention_mask" else (N, S), bool))
    mask = to(np.ones((L, S), bool))
    with iso.use_backend(backend, dtype="float64"):
        layer = iso.MultiHeadAttention(E, HEADS, key=0)
    says = "needed mask, where True attends, or attention_mask and key_padding_mask, where True ex"
    for use in (lambda **kw: call(to, to(Q), to(K), **kw), lambda **kw: layer(to(Q), to(K), **kw)):
        with pytest.raises(ValueError, match=f"multi_head_attention: {says}cludes, got both"):
            use(mask=mask, **{word: other})


def test_a_mask_that_does_not_fit_is_refused(backend):
    to = load(backend).from_numpy
    with pytest.raises(ValueError, match=r"needed mask that broadcasts to \[2, 3, 4, 5\], got \[2"):
        call(to, to(Q), to(K), mask=to(np.ones((N, L, S), bool)))
    with pytest.raises(TypeError, match="needed mask boolean or float64.* got int"):
        call(to, to(Q), to(K), mask=to(np.ones((L, S), np.int64)))
