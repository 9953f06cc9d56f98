"""Optimizers as (init, update) pairs, each with the result of a hundred float64 steps by another
library or by the paper's formula in a plain loop.
"""

from functools import cache, partial

import numpy as np
from frameworks import enable_x64, jnp, optax, torch

import isomorph as iso

from .optimizer_oracles import GRADIENTS, LR, STEPS, W, arrays, by_optax, by_torch, length

o = iso.optimizers


def by_torch_with(make_schedule):
    """Gradient descent with one of torch's learning rate schedules."""
    params = [torch.tensor(w, dtype=torch.float64, requires_grad=True) for w in W]
    optimizer = torch.optim.SGD(params, lr=LR)
    schedule = make_schedule(optimizer)
    for gradient in GRADIENTS:
        for p, g in zip(params, gradient):
            p.grad = torch.tensor(g)
        optimizer.step()
        schedule.step()
    return [p.detach().cpu().numpy() for p in params]


def by_torch_groups(make):
    """torch parameters of which only the first decays."""

    def groups(params):
        decaying, rest = {"params": params[:1]}, {"params": params[1:], "weight_decay": 0.0}
        return make([decaying, rest])

    return by_torch(groups)


def by_torch_clipped(clip):
    params = [torch.tensor(w, dtype=torch.float64, requires_grad=True) for w in W]
    optimizer = torch.optim.SGD(params, lr=LR)
    for gradient in GRADIENTS:
        for p, g in zip(params, gradient):
            p.grad = torch.tensor(g)
        clip(params)
        optimizer.step()
    return [p.detach().cpu().numpy() for p in params]


def by_tensors_own_norm(limit):
    """Gradient descent with each gradient clipped to its own norm."""
    ws = [w.copy() for w in W]
    for gradient in GRADIENTS:
        for i, g in enumerate(gradient):
            ws[i] = ws[i] - LR * g * min(1.0, limit / length(g))
    return ws


def lars_by_paper(decay, momentum, eta):
    ws, ms = [w.copy() for w in W], [np.zeros_like(w) for w in W]
    for gradient in GRADIENTS:
        for i, g in enumerate(gradient):
            rate = eta * length(ws[i]) / (length(g) + decay * length(ws[i]))
            ms[i] = momentum * ms[i] + LR * rate * (g + decay * ws[i])
            ws[i] = ws[i] - ms[i]
    return ws


def lamb_by_paper(decay, cap, epsilon):
    ws, ms, vs = [w.copy() for w in W], [0.0] * len(W), [0.0] * len(W)
    for t, gradient in enumerate(GRADIENTS, 1):
        for i, g in enumerate(gradient):
            ms[i], vs[i] = 0.9 * ms[i] + 0.1 * g, 0.999 * vs[i] + 0.001 * g**2
            u = ms[i] / (1 - 0.9**t) / (np.sqrt(vs[i] / (1 - 0.999**t)) + epsilon) + decay * ws[i]
            ws[i] = ws[i] - LR * min(length(ws[i]) / length(u), cap) * u
    return ws


def by_rates_of(schedule):
    """Gradient descent with the rates of an optax schedule, which would use float32 at integer
    steps.
    """
    ws = [w.copy() for w in W]
    with enable_x64(True):
        for t, gradient in enumerate(GRADIENTS):
            rate = float(schedule(jnp.asarray(float(t))))
            ws = [w - rate * g for w, g in zip(ws, gradient)]
    return ws


def accumulated_by_optax():
    with enable_x64(True):  # optax checks the available dtypes when it is created
        return by_optax(optax.MultiSteps(optax.adam(LR), 3, accumulator_dtype=jnp.float64))


def piecewise(params):
    return torch.optim.lr_scheduler.MultiStepLR(params, [10, 25, 60], gamma=0.3)


sgd, adam, rms = torch.optim.SGD, torch.optim.Adam, torch.optim.RMSprop
rates = torch.optim.lr_scheduler
by_rule = lambda transform: partial(by_optax, transform)
by_rate = lambda schedule: partial(by_rates_of, schedule)
by_class = lambda cls, **options: partial(by_torch, partial(cls, lr=LR, **options))
norms = torch.nn.utils

# name: (ours, the other library's)
PAIRS = {
    "sgd": (lambda: o.sgd(LR), by_class(sgd)),
    "momentum": (lambda: o.sgd(LR, momentum=0.9), by_class(sgd, momentum=0.9)),
    "nesterov": (
        lambda: o.sgd(LR, momentum=0.9, nesterov=True, weight_decay=0.1),
        by_class(sgd, momentum=0.9, nesterov=True, weight_decay=0.1),
    ),
    "adam": (lambda: o.adam(LR), by_class(adam)),
    "adam_betas": (
        lambda: o.adam(LR, beta1=0.5, beta2=0.8, epsilon=1e-3),
        by_class(adam, betas=(0.5, 0.8), eps=1e-3),
    ),
    "adam_penalty": (
        lambda: iso.chain(o.add_decayed_weights(0.2), o.adam(LR)),
        by_class(adam, weight_decay=0.2),
    ),
    "adamw": (lambda: o.adamw(LR, weight_decay=0.3), by_class(torch.optim.AdamW, weight_decay=0.3)),
    "adamw_mask": (
        lambda: o.adamw(LR, weight_decay=0.3, mask="layers/*/w"),
        partial(by_torch_groups, partial(torch.optim.AdamW, lr=LR, weight_decay=0.3)),
    ),
    "rmsprop": (lambda: o.rmsprop(LR), by_class(rms)),
    "rmsprop_centered": (
        lambda: o.rmsprop(LR, decay=0.9, momentum=0.5, centered=True, weight_decay=0.1),
        by_class(rms, alpha=0.9, momentum=0.5, centered=True, weight_decay=0.1),
    ),
    "rmsprop_optax": (
        lambda: o.rmsprop(LR, decay=0.9, epsilon=1e-4),
        by_rule(optax.rmsprop(LR, decay=0.9, eps=1e-4, eps_in_sqrt=False)),
    ),
    "lion": (
        lambda: o.lion(LR, weight_decay=0.1),
        by_rule(optax.lion(LR, b1=0.9, b2=0.99, weight_decay=0.1)),
    ),
    "lars": (
        lambda: o.lars(LR, weight_decay=0.1, trust_coefficient=0.5),
        partial(lars_by_paper, 0.1, 0.9, 0.5),
    ),
    "lars_optax": (
        lambda: iso.chain(o.add_decayed_weights(0.1), o.lars(LR)),
        by_rule(optax.lars(LR, weight_decay=0.1)),
    ),
    "lamb": (
        lambda: o.lamb(LR, weight_decay=0.1, max_trust_ratio=float("inf")),
        by_rule(optax.lamb(LR, weight_decay=0.1)),
    ),
    "lamb_capped": (
        lambda: o.lamb(LR, weight_decay=0.1, max_trust_ratio=0.7),
        partial(lamb_by_paper, 0.1, 0.7, 1e-6),
    ),
    "clip_value": (
        lambda: iso.chain(o.clip_by_value(0.5), o.sgd(LR)),
        partial(by_torch_clipped, lambda ps: norms.clip_grad_value_(ps, 0.5)),
    ),
    "clip_norm": (
        lambda: iso.chain(o.clip_by_norm(0.7), o.sgd(LR)),
        partial(by_tensors_own_norm, 0.7),
    ),
    "clip_global": (
        lambda: iso.chain(o.clip_by_global_norm(2.0), o.adam(LR)),
        by_rule(optax.chain(optax.clip_by_global_norm(2.0), optax.adam(LR))),
    ),
    "scale": (lambda: iso.chain(o.scale(-0.5), o.scale(0.25)), by_rule(optax.scale(-0.125))),
    "accumulate": (
        lambda: o.accumulate(o.adam(LR), every=3),
        accumulated_by_optax,
    ),
    "masked": (
        lambda: iso.chain(
            o.masked(o.sgd(LR), ["layers/*", "rest/0"]), o.masked(o.scale(-0.02), "rest/1/*")
        ),
        by_rule(
            optax.multi_transform(
                {"a": optax.sgd(LR), "b": optax.scale(-0.02)}, ["a", "a", "a", "b"]
            )
        ),
    ),
    "freeze": (
        lambda: iso.chain(o.sgd(LR), o.freeze({"layers": [{"w": True, "b": False}, None],
                                               "rest": (False, [True])})),
        by_rule(
            optax.multi_transform(
                {"a": optax.sgd(LR), "b": optax.set_to_zero()}, ["b", "a", "a", "b"]
            )
        ),
    ),
    "cosine": (
        lambda: o.sgd(o.cosine(LR, STEPS, end=0.01)),
        partial(by_torch_with, lambda p: rates.CosineAnnealingLR(p, STEPS, eta_min=0.01)),
    ),
    "cosine_ends": (
        lambda: o.sgd(o.cosine(LR, 40, end=0.01)),
        by_rate(optax.cosine_decay_schedule(LR, 40, alpha=0.01 / LR)),
    ),
    "warmup": (
        lambda: o.sgd(o.warmup(LR, 30, start=0.01)),
        by_rate(optax.linear_schedule(0.01, LR, 30)),
    ),
    "warmup_torch": (
        lambda: o.sgd(o.warmup(LR, 30, start=LR / 3)),
        partial(by_torch_with, lambda p: rates.LinearLR(p, 1 / 3, 1.0, 30)),
    ),
    "warmup_cosine": (
        lambda: o.sgd(o.warmup_cosine(LR, 20, 80, start=0.001, end=0.002)),
        by_rate(optax.warmup_cosine_decay_schedule(0.001, LR, 20, 80, 0.002)),
    ),
    "step": (
        lambda: o.sgd(o.step(LR, 7, factor=0.8)),
        partial(by_torch_with, lambda p: rates.StepLR(p, 7, gamma=0.8)),
    ),
    "multistep": (
        lambda: o.sgd(o.step(LR, [10, 25, 60], factor=0.3)),
        partial(by_torch_with, piecewise),
    ),
    "piecewise": (
        lambda: o.sgd(o.step(LR, {10: 0.5, 25: 3.0})),
        by_rate(optax.piecewise_constant_schedule(LR, {10: 0.5, 25: 3.0})),
    ),
    "one_cycle": (
        lambda: o.sgd(o.one_cycle(LR, STEPS + 1)),
        partial(by_torch_with, lambda p: rates.OneCycleLR(p, LR, total_steps=STEPS + 1,
                                                          cycle_momentum=False)),
    ),
    "constant": (lambda: o.sgd(o.constant(LR), momentum=0.9), by_class(sgd, momentum=0.9)),
    "own_schedule": (
        lambda: iso.chain(o.scale_by_schedule(lambda step: 0.9**step), o.scale(-1.0)),
        by_rule(optax.chain(optax.scale_by_schedule(lambda n: 0.9**n), optax.scale(-1.0))),
    ),
}  # fmt: skip


@cache
def expected(name):
    return PAIRS[name][1]()


def run(xp, opt, dtype="float64", steps=STEPS):
    """Parameters and state after steps of our pair."""
    v = arrays(xp, W, dtype)
    state = opt.init(v)
    for gradient in GRADIENTS[:steps]:
        updates, state = opt.update(arrays(xp, gradient, dtype), state, v)
        v = iso.apply_updates(v, updates)
    return v, state
