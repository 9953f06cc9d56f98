"""Expected results of attention and recurrent layers: naive NumPy loops, formulas, and torch layers
in float64, with derivatives by torch's autograd.
"""

import numpy as np
from frameworks import torch

import isomorph as iso
from isomorph.core import tree
from isomorph.scoreboard import comparing
from oracles import name_of, numpy_of


def drawn(seed, *shapes):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape) for shape in shapes]


def naive_attention(q, k, v, mask=None, causal=False, scale=None):
    """Attention, one query and one key at a time; zeros if a query attends to nothing."""
    lead = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    length, keys = q.shape[-2], k.shape[-2]
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    q, k, v = (np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (q, k, v))
    mask = np.ones((length, keys), bool) if mask is None else mask
    mask = np.broadcast_to(mask, (*lead, length, keys))
    out = np.zeros((*lead, length, v.shape[-1]))
    for at in np.ndindex(*lead, length):
        weights = np.zeros(keys)
        for s in range(keys):
            here = mask[(*at, s)]
            if (causal and s > at[-1]) or here is np.False_:
                continue
            added = 0.0 if mask.dtype == bool else here
            weights[s] = np.exp(q[at] @ k[(*at[:-1], s)] * scale + added)
        if weights.sum() > 0:
            out[at] = weights / weights.sum() @ v[at[:-1]]
    return out


def torch_attention(q, k, v, mask=None, causal=False, scale=None):
    """The formula, which torch can differentiate to any order; the mask is boolean."""
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    keep = torch.ones(scores.shape[-2:], dtype=torch.bool)
    keep = keep if mask is None else keep & torch.as_tensor(mask)
    keep = keep.tril() if causal else keep
    powers = torch.exp(scores) * keep  # safe, because the scores of the tests are small
    total = powers.sum(-1, keepdim=True)
    return powers / torch.where(total > 0, total, 1.0) @ v


def torch_recurrent(kind, gates, time_major=False):
    """torch.nn.LSTM or GRU as a function of our arguments: the outputs and the last states."""

    def call(x, *rest):
        *states, kernel, recurrent, bias, recurrent_bias = rest
        layer = kind(x.shape[-1], recurrent.shape[0], batch_first=not time_major)
        weights = {
            "weight_ih_l0": kernel.T.contiguous(), "weight_hh_l0": recurrent.T.contiguous(),
            "bias_ih_l0": bias, "bias_hh_l0": recurrent_bias,
        }  # fmt: skip
        first = tuple(h[None] for h in states)
        first = first if gates == 4 else first[0]
        hs, last = torch.func.functional_call(layer.double(), weights, (x, first))
        return hs, *(h[0] for h in (last if gates == 4 else (last,)))

    return call


def derivatives(func, arrays, second=True):
    """Outputs, gradients of the sum of their sines, and the gradient of the sum of squares of
    those, for the first argument.
    """
    leaves = [torch.tensor(x, requires_grad=True) for x in arrays]
    outs = func(*leaves)
    outs = outs if isinstance(outs, tuple) else (outs,)
    grads = torch.autograd.grad(sum(torch.sin(y).sum() for y in outs), leaves, create_graph=True)
    found = [[x.detach().cpu().numpy() for x in outs], [x.detach().cpu().numpy() for x in grads]]
    if second:
        total = sum((g * g).sum() for g in grads)
        found.append([torch.autograd.grad(total, leaves[0])[0].cpu().numpy()])
    return found


def program(xp, func, n, second=True):
    """The same for a function of ours, as one function that can be compiled."""

    def loss(*arrays):
        outs = tree.flatten(func(*arrays))[0]
        return sum(xp.sum(xp.sin(y)) for y in outs), outs

    every = iso.grad(loss, tuple(range(n)), has_aux=True)

    def squared(*arrays):
        grads, outs = every(*arrays)
        return sum(xp.sum(g * g) for g in grads), (outs, list(grads))

    def run(*arrays):
        if not second:
            grads, outs = every(*arrays)
            return [outs, list(grads)]
        again, found = iso.grad(squared, has_aux=True)(*arrays)
        return [*found, [again]]

    return run


def check(xp, func, reference, arrays, second=True, compiled=False, rtol=1e-10):
    """Compare values and derivatives of `func` with those of `reference`, a function of torch
    tensors.

    With `compiled`, also compiled (`compiled="first"`: without second derivatives), and values and
    first derivatives in float32 within 1e-5. JAX compiles each eager operation by itself, so there
    only values are eager, and derivatives always compiled.
    """
    with torch.device("cpu"):  # on a GPU torch's recurrent layers have no second derivative
        expected = derivatives(reference, arrays, second)
    given = [xp.asarray(x) for x in arrays]
    narrow = [xp.asarray(x.astype(np.float32)) for x in arrays] if compiled else []
    run, first = (program(xp, func, len(given), orders) for orders in (second, False))
    # on a GPU the tanh of cuDNN is an approximation
    near = 1e-4 if compiled and getattr(narrow[0], "is_cuda", False) else 1e-5
    if name_of(xp) == "jax":
        values = lambda *arrays: [tree.flatten(func(*arrays))[0]]
        both = lambda given, narrow: (run(*given), first(*narrow) if compiled else [])
        wide, short = iso.jit(both)(given, narrow)
        results = [(values(*given), xp.float64, rtol), (wide, xp.float64, rtol)]
    else:
        results = [(run(*given), xp.float64, rtol)]
        if compiled:
            whole = first if compiled == "first" else run
            results.append((iso.jit(whole)(*given), xp.float64, rtol))
            short = first(*narrow)
    if compiled:
        results.append((short, xp.float32, near))
    for found, dtype, tolerance in results:
        for order, (ours, theirs) in enumerate(zip(found, expected)):
            assert len(ours) == len(theirs)
            for y, wanted in zip(ours, theirs):
                assert y.dtype == dtype
                scale = max(1.0, np.abs(wanted).max())
                with comparing("gradient" if order else "value"):
                    np.testing.assert_allclose(
                        numpy_of(y), wanted, tolerance, tolerance * scale, err_msg=f"order {order}"
                    )
