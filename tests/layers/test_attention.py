"""Details of attention: masks of every shape, queries that attend to nothing, kernels against the
composed form, grouped heads, positions, errors.
"""

import numpy as np
import pytest
from frameworks import functional as F
from frameworks import torch

import isomorph as iso
from isomorph.backends.composed import Backend
from isomorph.core.dispatch import load
from oracles import numpy_of

from .dropout_oracles import kept, key_of
from .sequence_oracles import check, drawn, naive_attention, torch_attention

SHAPES = [
    ((4, 3), (5, 3), (5, 3)),
    ((3, 4, 2), (3, 4, 2), (3, 4, 2)),
    ((2, 3, 4, 8), (2, 3, 4, 8), (2, 3, 4, 8)),
    ((2, 1, 4, 3), (3, 5, 3), (2, 3, 5, 7)),
    ((2, 1, 2, 4, 3), (3, 1, 4, 3), (4, 3)),
]


def masks(length, keys, lead):
    rng = np.random.default_rng(length)
    some = rng.random((length, keys)) > 0.4
    some[1] = False
    added = np.where(some, rng.standard_normal((length, keys)), -np.inf)
    yield from (None, some, added, some[:1], some[:, :1], some[0])
    yield np.broadcast_to(added, (*lead, length, keys)).copy()


@pytest.mark.parametrize("shapes", SHAPES)
def test_every_mask_broadcasts_and_rows_of_nothing_are_zero(backend, xp, shapes):
    arrays = drawn(0, *shapes)
    q, k, v = map(xp.asarray, arrays)
    lead = np.broadcast_shapes(*(s[:-2] for s in shapes))
    for i, mask in enumerate(masks(shapes[0][-2], shapes[1][-2], lead)):
        causal = (i + len(shapes[0])) % 2 == 0  # each mask causal and not, over all shapes
        given = None if mask is None else xp.asarray(mask)
        wanted = naive_attention(*arrays, mask, causal)

        def run(q, k, v, mask, wanted, causal=causal):
            call = lambda q, k, v: iso.scaled_dot_product_attention(
                q, k, v, mask=mask, is_causal=causal
            )
            # the composed form, to compare with the kernel
            plain = lambda q, k, v: Backend.attention(
                load(backend), q, k, v, q.shape[-1] ** -0.5, mask, causal
            )
            return call(q, k, v), *(iso.vjp(f, q, k, v)[1](wanted) for f in (call, plain))

        if backend == "jax" and i:  # eagerly JAX would compile each operation for each shape
            run = iso.jit(run)
        found, grads, meant = run(q, k, v, given, xp.asarray(wanted))
        np.testing.assert_allclose(numpy_of(found), wanted, rtol=1e-11, atol=1e-14)
        for ours, theirs in zip(grads, meant, strict=True):
            assert np.isfinite(numpy_of(ours)).all()
            np.testing.assert_allclose(numpy_of(ours), numpy_of(theirs), atol=1e-12)


def test_a_row_of_nothing_has_no_gradient(backend, xp):
    q, k, v = map(xp.asarray, drawn(1, (2, 3, 4), (2, 5, 4), (2, 5, 4)))
    open_, shut = np.ones((3, 5), bool), np.zeros((3, 5))
    open_[1], shut[1] = False, -np.inf

    def loss(q, k, v, mask):
        return xp.sum(xp.sin(iso.scaled_dot_product_attention(q, k, v, mask=mask)))

    for mask in map(xp.asarray, (open_, shut)):
        dq, dk, dv = (numpy_of(g) for g in iso.grad(loss, (0, 1, 2))(q, k, v, mask))
        np.testing.assert_array_equal(dq[:, 1], 0)
        assert np.abs(dq[:, [0, 2]]).min() > 0
        # a query that attends to nothing is like no query
        rest = [0, 2]
        short = iso.grad(
            lambda q, k, v: xp.sum(xp.sin(iso.scaled_dot_product_attention(q, k, v))), (1, 2)
        )(xp.asarray(numpy_of(q)[:, rest]), k, v)
        np.testing.assert_allclose(dk, numpy_of(short[0]), atol=1e-14)
        np.testing.assert_allclose(dv, numpy_of(short[1]), atol=1e-14)
    none = iso.grad(loss)(q, k[:, :0], v[:, :0], xp.zeros((3, 0), dtype=q.dtype))
    np.testing.assert_array_equal(numpy_of(none), np.zeros((2, 3, 4)))


def test_gradients_reach_the_mask_and_the_scale(backend, xp):
    q, k, v, bias = drawn(2, (2, 3, 4), (2, 5, 4), (2, 5, 4), (3, 5))

    def reference(q, k, v, bias, scale):
        return torch.softmax(q @ k.mT * scale + bias, -1) @ v

    call = lambda q, k, v, bias, scale: iso.scaled_dot_product_attention(
        q, k, v, mask=bias, scale=scale
    )
    check(xp, call, reference, [q, k, v, bias, np.array(0.7)])


def test_other_derivatives_of_attention(backend, xp):
    """jvp, vmap and third order, where a kernel alone would fail."""
    arrays = drawn(3, (2, 2, 3, 4), (2, 2, 3, 4), (2, 2, 3, 4))
    q, k, v = map(xp.asarray, arrays)
    call = lambda q, k, v: iso.scaled_dot_product_attention(q, k, v, is_causal=True)
    reference = lambda q, k, v: torch_attention(q, k, v, causal=True)
    tensors = tuple(map(torch.tensor, arrays))
    wanted = torch.autograd.functional.jvp(reference, tensors, tensors[::-1])[1]
    np.testing.assert_allclose(
        numpy_of(iso.jvp(call, (q, k, v), (v, k, q))[1]), wanted.cpu().numpy(), atol=1e-12
    )
    mapped = iso.vmap(lambda q: call(q, k[0], v[0]))(q)
    np.testing.assert_allclose(
        numpy_of(mapped), naive_attention(arrays[0], arrays[1][0], arrays[2][0], causal=True)
    )
    small = [x[:1, :1] for x in arrays]
    jac = iso.jac(call)(*map(xp.asarray, small))
    wanted = torch.func.jacrev(reference)(*map(torch.tensor, small))
    np.testing.assert_allclose(numpy_of(jac), wanted.cpu().numpy(), atol=1e-12)

    def third(grad, total, f):
        one = grad(lambda q: total(f(q) ** 2))
        two = grad(lambda q: total(one(q) ** 2))
        return grad(lambda q: total(two(q) ** 2))

    ours = third(iso.grad, xp.sum, lambda q: call(q, k, v))(q)
    t = tensors
    wanted = third(torch.func.grad, torch.sum, lambda q: reference(q, *t[1:]))(t[0])
    np.testing.assert_allclose(numpy_of(ours), wanted.cpu().numpy(), rtol=1e-9, atol=1e-12)


def test_compiled_second_derivatives_of_attention(backend, xp):
    arrays = drawn(0, (2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 2))
    mask = np.random.default_rng(1).random((4, 6)) > 0.4
    mask[2] = False  # a query that attends to nothing
    call = lambda q, k, v: iso.scaled_dot_product_attention(
        q, k, v, mask=xp.asarray(mask), is_causal=True
    )
    reference = lambda q, k, v: torch_attention(q, k, v, mask, True)
    check(xp, call, reference, arrays, compiled=True)


@pytest.mark.parametrize("compiled", [False, True])
def test_long_sequences(backend, xp, compiled):
    """Long enough for torch's own kernel, which has no second derivative."""
    arrays = drawn(15, (2, 256, 4), (2, 256, 4), (2, 256, 4))
    arrays[1] *= 0.1
    mask = np.random.default_rng(16).random((256, 256)) > 0.4
    mask[2] = False
    given = xp.asarray(mask)
    call = lambda q, k, v: iso.scaled_dot_product_attention(q, k, v, mask=given, is_causal=True)
    reference = lambda q, k, v: torch_attention(q, k, v, mask, True)
    check(xp, call, reference, arrays, compiled=compiled and backend != "numpy")
    primals, tensors = tuple(map(xp.asarray, arrays)), tuple(map(torch.tensor, arrays))
    wanted = torch.autograd.functional.jvp(reference, tensors, tensors[::-1])[1]
    ours = iso.jvp(call, primals, primals[::-1])[1]
    np.testing.assert_allclose(numpy_of(ours), wanted.cpu().numpy(), atol=1e-12)
    mapped = iso.vmap(call)(*primals)
    np.testing.assert_allclose(numpy_of(mapped), numpy_of(call(*primals)), atol=1e-12)


def test_half_precision_stays_finite(backend, xp):
    dtype = load(backend).narrow("bfloat16") or load(backend).dtype("float16")
    arrays = drawn(4, (2, 3, 8), (2, 5, 8), (2, 5, 8))
    q, k, v = (xp.astype(xp.asarray(x), dtype) for x in arrays)
    mask = np.ones((3, 5), bool)
    mask[1] = False
    call = lambda q: iso.scaled_dot_product_attention(q, k, v, mask=xp.asarray(mask))
    assert call(q).dtype == dtype
    wide = numpy_of(xp.astype(call(q), xp.float32))
    np.testing.assert_allclose(wide, naive_attention(*arrays, mask), atol=5e-2)
    grad = iso.grad(lambda q: xp.sum(xp.astype(call(q), xp.float32)))(q)
    assert np.isfinite(numpy_of(xp.astype(grad, xp.float32))).all()


def test_grouped_query_attention(backend, xp):
    q, k, v = drawn(5, (2, 6, 4, 3), (2, 2, 5, 3), (2, 2, 5, 3))
    mask = np.random.default_rng(6).random((6, 4, 5)) > 0.3
    call = lambda q, k, v: iso.grouped_query_attention(
        q, k, v, mask=xp.asarray(mask), is_causal=True
    )
    spread = lambda x: x.repeat_interleave(3, 1)
    reference = lambda q, k, v: torch_attention(q, spread(k), spread(v), mask, True)
    check(xp, call, reference, [q, k, v])
    plain = iso.grouped_query_attention(*map(xp.asarray, (q, k, v)), mask=xp.asarray(mask[0]))
    wanted = naive_attention(q, np.repeat(k, 3, 1), np.repeat(v, 3, 1), mask[0])
    np.testing.assert_allclose(numpy_of(plain), wanted, rtol=1e-11)
    mask = kept(5, 0.4, (2, 2, 3, 4, 5)).reshape(2, 6, 4, 5)
    shown = iso.grouped_query_attention(  # values that are the identity show the weights
        *map(xp.asarray, (q, k, np.eye(5)[None, None].repeat(2, 1))), scale=0.3, dropout_p=0.4,
        training=True, rng=key_of(backend, 5),
    )  # fmt: skip
    weights = naive_attention(q, np.repeat(k, 3, 1), np.eye(5), scale=0.3)
    np.testing.assert_allclose(numpy_of(shown), np.where(mask, weights / 0.6, 0), rtol=1e-11)
    with pytest.raises(ValueError, match="grouped_query_attention: needed as many heads in value"):
        iso.grouped_query_attention(*map(xp.asarray, (q[:, :5], k, v)))


@pytest.mark.parametrize("options", ["self", "cross", "biases", "zeros", "both", "static"])
def test_options_of_multi_head_attention(backend, xp, options):
    n, length, keys, width, heads = 2, 4, 5, 6, 2
    q, k, v, w, wo, b, bo = drawn(
        7, (n, length, width), (n, keys, width), (n, keys, width), (18, 6), (6, 6), (18,), (6,)
    )
    k, v = (q, q) if options == "self" else (k, v)
    keys = k.shape[1]
    extra = {}
    if options in ("biases", "both"):
        extra |= dict(zip(("bias_k", "bias_v"), drawn(8, (1, 1, 6), (1, 1, 6))))
    if options in ("zeros", "both"):
        extra["add_zero_attn"] = True
    if options == "static":
        extra |= dict(zip(("static_k", "static_v"), drawn(9, (4, keys, 3), (4, keys, 3))))
    rng = np.random.default_rng(10)
    flat, full = rng.random((length, keys)) > 0.5, rng.random((n * heads, length, keys)) > 0.5
    padding = rng.random((n, keys)) > 0.5
    for x in (flat, full, padding):
        x[..., 0] = False
    added = rng.standard_normal((length, keys))
    causal = ~np.tri(length, keys, dtype=bool)
    cases = [
        (flat, padding, False), (full, None, False), (added, padding, False), (None, None, True),
        (added, np.where(padding, -np.inf, 0.0), False), (flat, padding, True),
    ]  # fmt: skip
    t = lambda x: torch.tensor(x) if isinstance(x, np.ndarray) else x
    a = lambda x: xp.asarray(x) if isinstance(x, np.ndarray) else x
    given = [a(q), a(q) if k is q else a(k), a(v)]
    if k is q:
        given = [given[0]] * 3
    for mask, pads, is_causal in cases:
        theirs = mask if not is_causal else causal if mask is None else mask | causal
        if theirs is not None and pads is not None and theirs.dtype != pads.dtype:
            pads_there = np.where(pads, -np.inf, 0.0)  # torch warns about masks of two kinds
        else:
            pads_there = pads
        wanted, weights = F.multi_head_attention_forward(
            *(t(x).movedim(0, 1) for x in (q, k, v)), width, heads, t(w), t(b),
            t(extra.get("bias_k")), t(extra.get("bias_v")), extra.get("add_zero_attn", False), 0.0,
            t(wo), t(bo), key_padding_mask=t(pads_there), attn_mask=t(theirs),
            static_k=t(extra.get("static_k")), static_v=t(extra.get("static_v")),
            average_attn_weights=False,
        )  # fmt: skip
        masked = {"attention_mask": a(mask), "key_padding_mask": a(pads), "is_causal": is_causal}
        call = lambda q, k, v, masked=masked, **kw: iso.multi_head_attention(
            q, key=k, value=v, num_heads=heads, in_proj_weights=a(w), in_proj_bias=a(b),
            out_proj_weights=a(wo), out_proj_bias=a(bo), **{n: a(x) for n, x in extra.items()},
            **masked, **kw,
        )  # fmt: skip
        y, found = call(*given, return_attention_weights=True, average_attention_weights=False)
        np.testing.assert_allclose(numpy_of(y), wanted.movedim(0, 1).cpu().numpy(), atol=1e-12)
        np.testing.assert_allclose(numpy_of(found), weights.cpu().numpy(), atol=1e-12)
        np.testing.assert_allclose(numpy_of(call(*given)), numpy_of(y), atol=1e-12)
    if options == "cross":
        turned = call(*(xp.moveaxis(x, 0, 1) for x in given), batch_first=False)
        np.testing.assert_allclose(numpy_of(turned), numpy_of(y).swapaxes(0, 1), atol=1e-12)


def test_multi_head_attention_without_a_batch_and_with_dropout(backend, xp):
    q, w = drawn(11, (4, 6), (18, 6))
    plain = iso.multi_head_attention(xp.asarray(q), num_heads=2, in_proj_weights=xp.asarray(w))
    batch = iso.multi_head_attention(
        xp.asarray(q[None]), num_heads=2, in_proj_weights=xp.asarray(w)
    )
    np.testing.assert_allclose(numpy_of(plain), numpy_of(batch)[0], rtol=1e-12)
    heads = [x.reshape(4, 2, 3).swapaxes(0, 1) for x in np.split(q @ w.T, 3, axis=-1)]
    np.testing.assert_allclose(
        numpy_of(plain), naive_attention(*heads).swapaxes(0, 1).reshape(4, 6), rtol=1e-11
    )
    y, weights = iso.multi_head_attention(
        xp.asarray(q), num_heads=2, in_proj_weights=xp.asarray(w), dropout=0.5, training=True,
        rng=key_of(backend, 3), return_attention_weights=True, average_attention_weights=False,
    )  # fmt: skip
    expected = naive_attention(heads[0], heads[1], np.eye(4))
    expected = np.where(kept(3, 0.5, (1, 2, 4, 4))[0], expected / 0.5, 0)
    np.testing.assert_allclose(numpy_of(weights), expected, rtol=1e-11)
    wanted = (expected @ heads[2]).swapaxes(0, 1).reshape(4, 6)
    np.testing.assert_allclose(numpy_of(y), wanted, rtol=1e-11, atol=1e-13)


def test_gradients_of_all_that_multi_head_attention_takes(backend, xp):
    """Two extra keys, keys of another array, an additive mask; then one array for query, key and
    value.
    """
    q, k, w, wo, b, bo, key, value, mask = drawn(
        18, (2, 3, 4), (2, 3, 4), (12, 4), (4, 4), (12,), (4,), (1, 1, 4), (1, 1, 4), (3, 3)
    )

    def reference(*arrays, own=False):
        q, k, w, wo, b, bo, *more = arrays
        key, value, mask = (*more, None, None, None)[:3]
        k = q if own else k
        y, weights = F.multi_head_attention_forward(
            *(x.movedim(0, 1) for x in (q, k, k)), 4, 2, w, b, key, value, not own, 0.0, wo, bo,
            attn_mask=mask, need_weights=True,
        )  # fmt: skip
        return y.movedim(0, 1), weights

    names = ["in_proj_weights", "out_proj_weights", "in_proj_bias", "out_proj_bias", "bias_k"]
    names += ["bias_v", "attention_mask"]

    def call(q, k, *rest, own=False):
        return iso.multi_head_attention(
            q, key=None if own else k, num_heads=2, add_zero_attn=not own,
            return_attention_weights=True, **dict(zip(names, rest)),
        )  # fmt: skip

    check(xp, call, reference, [q, k, w, wo, b, bo, key, value, mask])
    alone = lambda f: lambda q, *rest: f(q, None, *rest, own=True)
    check(xp, alone(call), alone(reference), [q, w, wo, b, bo])


def test_static_keys_and_values_have_gradients(backend, xp):
    q, k, v = drawn(19, (2, 3, 4), (4, 5, 2), (4, 5, 2))

    def reference(q, k, v):
        heads = q.reshape(2, 3, 2, 2).movedim(2, 1)
        y = torch_attention(heads, k.reshape(2, 2, 5, 2), v.reshape(2, 2, 5, 2), scale=0.4)
        return y.movedim(1, 2).reshape(2, 3, 4)

    call = lambda q, k, v: iso.multi_head_attention(
        q, num_heads=2, static_k=k, static_v=v, scale=0.4
    )
    check(xp, call, reference, [q, k, v])


def test_multi_head_attention_without_projections(backend, xp):
    """Only biases, a mask per sample, and queries that attend to nothing."""
    q, b, bo = drawn(20, (3, 4, 6), (18,), (6,))
    open_ = np.random.default_rng(21).random((3, 4, 4)) > 0.4
    open_[1, 2] = False
    y, weights = iso.multi_head_attention(
        xp.asarray(q), num_heads=2, attention_mask=xp.asarray(~open_), in_proj_bias=xp.asarray(b),
        out_proj_bias=xp.asarray(bo), return_attention_weights=True,
    )  # fmt: skip
    heads = [(q + part).reshape(3, 4, 2, 3).swapaxes(1, 2) for part in np.split(b, 3)]
    wanted = naive_attention(*heads, open_[:, None]).swapaxes(1, 2).reshape(3, 4, 6) + bo
    np.testing.assert_allclose(numpy_of(y), wanted, rtol=1e-11)
    np.testing.assert_array_equal(numpy_of(y)[1, 2], bo)
    shown = naive_attention(*heads[:2], np.eye(4), open_[:, None]).mean(1)
    np.testing.assert_allclose(numpy_of(weights), shown, rtol=1e-11, atol=1e-15)
    np.testing.assert_array_equal(numpy_of(weights)[1, 2], 0)


@pytest.mark.parametrize("keys", [1, 3, 15, 16, 17, 40])
def test_not_a_number_in_queries_and_keys(backend, keys):
    """A query that is NaN gives NaN, and so does a key for all that attend to it; torch's kernel
    gives zeros for few keys. Zeros that are true stay.
    """
    rng = np.random.default_rng(keys)
    q, k, v = (rng.normal(size=(2, 2, keys, 4)).astype(np.float32) for _ in range(3))
    q[0, 0, keys // 2] = np.nan
    k[0, 1, keys // 3] = np.nan
    v[1] = 0
    for is_causal in (False, True):
        found = numpy_of(
            iso.scaled_dot_product_attention(
                *(iso.convert(x, backend) for x in (q, k, v)), is_causal=is_causal
            )
        )
        bad = np.zeros((2, 2, keys), bool)
        bad[0, 0, keys // 2] = True
        bad[0, 1, keys // 3 if is_causal else 0 :] = True
        np.testing.assert_array_equal(np.isnan(found), np.repeat(bad[..., None], 4, -1))
        np.testing.assert_array_equal(found[1], 0)
        scores = np.einsum("bhif,bhjf->bhij", q, k) / 2
        if is_causal:
            scores = np.where(np.tri(keys, dtype=bool), scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        want = np.einsum("bhij,bhjv->bhiv", weights / weights.sum(-1, keepdims=True), v)
        # float32: sums of up to 40 products
        np.testing.assert_allclose(found[~bad], want[~bad], rtol=1e-5, atol=1e-6)


def test_what_is_not_a_number_shows(backend, xp):
    """A NaN among the values reaches every query that may attend to it, and no other sample."""
    arrays = drawn(22, (2, 4, 3), (2, 5, 3), (2, 5, 2))
    arrays[2][0, 3, 1] = np.nan
    for lead in (lambda x: x, lambda x: x[:, None]):  # torch's kernel needs four axes
        q, k, v = (xp.asarray(lead(x)) for x in arrays)
        y = numpy_of(iso.scaled_dot_product_attention(q, k, v)).reshape(2, 4, 2)
        np.testing.assert_array_equal(np.isnan(y[0]), [[False, True]] * 4)
        assert np.isfinite(y[1]).all()
        grad = iso.grad(lambda q, k=k, v=v: xp.sum(iso.scaled_dot_product_attention(q, k, v)))(q)
        grad = numpy_of(grad).reshape(2, 4, 3)
        assert np.isnan(grad[0]).all()
        assert np.isfinite(grad[1]).all()


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary_embedding(backend, xp, interleaved):
    (x,) = drawn(12, (2, 5, 6))
    positions = np.array([3, 0, 7, 1, 2])
    wanted = np.empty_like(x)
    for i in range(3):
        a, b = (2 * i, 2 * i + 1) if interleaved else (i, i + 3)
        turn = np.exp(1j * positions * 100.0 ** (-2 * i / 6)) * (x[..., a] + 1j * x[..., b])
        wanted[..., a], wanted[..., b] = turn.real, turn.imag
    call = lambda x, p: iso.rotary_embedding(x, positions=p, base=100.0, interleaved=interleaved)
    np.testing.assert_allclose(
        numpy_of(call(xp.asarray(x), xp.asarray(positions))), wanted, atol=1e-13
    )
    counted = iso.rotary_embedding(xp.asarray(x), base=100.0, interleaved=interleaved)
    np.testing.assert_array_equal(numpy_of(counted), numpy_of(call(xp.asarray(x), xp.arange(5))))
    # products only depend on the distance
    q, k = map(xp.asarray, drawn(13, (1, 6), (1, 6)))
    at = lambda i, j: float(numpy_of(xp.sum(call(q, xp.asarray([i])) * call(k, xp.asarray([j])))))
    assert at(2, 5) == pytest.approx(at(11, 14), rel=1e-10)
    # a rotation keeps lengths, so the gradient of half the squared length is x itself
    grad = iso.grad(lambda x: 0.5 * xp.sum(iso.rotary_embedding(x, interleaved=interleaved) ** 2))
    np.testing.assert_allclose(numpy_of(grad(xp.asarray(x))), x, atol=1e-13)
    with pytest.raises(ValueError, match="rotary_embedding: needed x .* with F even, got"):
        iso.rotary_embedding(xp.asarray(x[..., :5]))
    with pytest.raises(ValueError, match="rotary_embedding: needed positions that broadcast"):
        call(xp.asarray(x), xp.asarray(positions[:3]))


def test_local_window_mask(backend, xp):
    mask = iso.local_window_mask(5, 7, left=2, right=1, backend=backend)
    wanted = [[-2 <= j - i <= 1 for j in range(7)] for i in range(5)]
    np.testing.assert_array_equal(numpy_of(mask), wanted)
    square = iso.local_window_mask(4, left=1, backend=backend)
    np.testing.assert_array_equal(numpy_of(square), np.tri(4) - np.tri(4, k=-2) > 0)
    with pytest.raises(ValueError, match="local_window_mask: needed left >= 0, got -1"):
        iso.local_window_mask(3, left=-1)


def test_wrong_arguments_of_attention(backend, xp):
    x = xp.asarray(drawn(14, (2, 4, 6))[0])
    single = xp.astype(x, xp.float32)
    attend, many = iso.scaled_dot_product_attention, iso.multi_head_attention
    words = "scaled_dot_product_attention: needed"
    with pytest.raises(ValueError, match=f"{words} query .* got .2, 4, 6., .2, 4, 5."):
        attend(x, x[..., :5], x)
    with pytest.raises(ValueError, match=f"{words} leading axes that broadcast"):
        attend(x, xp.stack([x[0, ...]] * 3), xp.stack([x[0, ...]] * 3))
    with pytest.raises(ValueError, match=f"{words} mask that broadcasts to .2, 4, 4., got .3, 4."):
        attend(x, x, x, mask=xp.ones((3, 4), dtype=xp.bool))
    with pytest.raises(TypeError, match=f"{words} mask boolean or .*float64.* got .*int"):
        attend(x, x, x, mask=xp.ones((4, 4), dtype=xp.int32))
    with pytest.raises(
        TypeError, match=f"{words} arrays of the same real floating dtype, got query"
    ):
        attend(x, single, x)
    for p in (-0.1, 1.0, float("nan")):
        with pytest.raises(ValueError, match=f"{words} 0 <= dropout_p < 1"):
            attend(x, x, x, dropout_p=p)
    with pytest.raises(ValueError, match=f"{words} a key as rng"):
        attend(x, x, x, dropout_p=0.5, training=True)
    words = "multi_head_attention: needed"
    w = xp.ones((18, 6), dtype=x.dtype)
    for message, kw in {
        "num_heads that divides the 6 features, got 4": {"num_heads": 4},
        "in_proj_weights .3E, E. for the 6 features of query": {"in_proj_weights": w[:, :5]},
        "in_proj_weights, or q_, k_ and v_proj_weights, got both": {
            "in_proj_weights": w, "q_proj_weights": w},
        "all of q_, k_ and v_proj_weights or none, got some": {"q_proj_weights": w},
        "in_proj_bias .18., got .6.": {"in_proj_weights": w, "in_proj_bias": w[0, :]},
        "out_proj_weights .18, 6., got": {"out_proj_weights": w[:, :5]},
        "both bias_k and bias_v, or neither, got one": {"bias_k": w[0, :]},
        "static_k and static_v": {"static_k": x, "static_v": x},
        "key_padding_mask .2, 4., got .2, 3.": {"key_padding_mask": xp.ones((2, 3)) > 0},
        "attention_mask that broadcasts to": {"attention_mask": xp.ones((3, 4)) > 0},
        "the same batch size, got 2 in query and 1": {"key": x[:1, ...], "value": x[:1, ...]},
        "value of 6 features, got 5": {"value": x[..., :5]},
    }.items():  # fmt: skip
        with pytest.raises(ValueError, match=f"{words} {message}"):
            many(x, **{"num_heads": 2, **kw})
    with pytest.raises(TypeError, match=f"{words} arrays of the same real floating dtype"):
        many(x, num_heads=2, in_proj_weights=xp.astype(w, xp.float32))
