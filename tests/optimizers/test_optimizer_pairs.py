"""Optimizers as pairs of pure functions, compared with other libraries over a hundred steps."""

import numpy as np
import optree
import pytest
from frameworks import enable_x64

import isomorph as iso
from oracles import kind_of, numpy_of, verbs_of

from .optimizer_oracles import GRADIENTS, LR, STEPS, W, arrays, assert_close, by_optax, nest, parts
from .pair_oracles import PAIRS, expected, o, run

# One of each kind: a program of all would take torch two minutes to compile.
COMPILED = (
    "nesterov", "adamw_mask", "rmsprop_centered", "lion", "lars", "lamb_capped", "clip_global",
    "accumulate", "masked", "warmup_cosine", "step", "piecewise", "one_cycle", "own_schedule",
)  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_a_hundred_steps_are_those_of_another_library(name, backend, xp):
    v, state = run(xp, PAIRS[name][0]())
    assert_close(v, expected(name))
    assert {kind_of(x) for x in optree.tree_leaves((v, state))} == {backend}


def test_a_hundred_compiled_steps_are_those_of_another_library(backend, xp):
    """Pairs of each kind in one program, compiled once: the step number is an array in the state.
    torch needs seconds per array, so most pairs have only the first leaf there.
    """
    traces, opts = [], {name: PAIRS[name][0]() for name in COMPILED}
    whole = {"clip_global", "masked"} if backend == "torch" else set(COMPILED)
    part = lambda n, name: n if name in whole else nest(parts(n)[0], None, None, None)

    def step(vs, grads, states):
        traces.append(1)
        after = {}
        for name, opt in opts.items():
            updates, state = opt.update(part(grads, name), states[name], vs[name])
            after[name] = iso.apply_updates(vs[name], updates), state
        return {n: v for n, (v, _) in after.items()}, {n: s for n, (_, s) in after.items()}

    compiled = iso.jit(step)
    vs = {name: part(arrays(xp, W), name) for name in opts}
    states = {name: opt.init(vs[name]) for name, opt in opts.items()}
    forms = optree.tree_structure(states)
    for gradient in GRADIENTS:
        vs, states = compiled(vs, arrays(xp, gradient), states)
    for name, v in vs.items():
        if name in whole:
            assert_close(v, expected(name))
        np.testing.assert_allclose(numpy_of(parts(v)[0]), expected(name)[0], rtol=1e-10, atol=1e-11)
    assert optree.tree_structure(states) == forms
    assert len(traces) == (STEPS if backend == "numpy" else 1)


@pytest.mark.parametrize("width", ["single", "half"])
def test_dtypes_are_kept(width, backend, xp):
    """Half precision is bfloat16. NumPy uses float16, whose range is too small for squares."""
    dtype = "float32" if width == "single" else "float16" if backend == "numpy" else "bfloat16"
    names = PAIRS if dtype != "float16" else ("sgd", "nesterov", "lion", "clip_global", "cosine")
    for name in names:
        if name == "clip_global" and dtype == "float16":
            opt = iso.chain(o.clip_by_global_norm(2.0), o.sgd(LR))
        else:
            opt = PAIRS[name][0]()
        v, state = run(xp, opt, dtype, steps=3)
        for x in optree.tree_leaves((v, state)):
            assert x.dtype in (verbs_of(xp).dtype(dtype), xp.int32)
            assert bool(xp.all(xp.isfinite(xp.astype(x, xp.float32))))
        counts = [x for x in optree.tree_leaves(state) if x.dtype == xp.int32]
        assert all(tuple(x.shape) == () for x in counts)


def test_the_average_of_weights(backend, xp):
    import jax
    import optax

    with enable_x64(True):
        theirs = optax.ema(0.9, debias=True)
        state = theirs.init([np.zeros_like(w) for w in W])
        for ws in GRADIENTS[:20]:
            mean, state = theirs.update([jax.numpy.asarray(w) for w in ws], state)
        debiased = [np.asarray(m) for m in mean]
    plain = [w.copy() for w in W]
    for ws in GRADIENTS[:20]:
        plain = [0.9 * m + (1 - 0.9) * w for m, w in zip(plain, ws)]
    for debias, values in ((True, debiased), (False, plain)):
        average = o.ema(0.9, debias=debias)
        for update in (average.update, iso.jit(average.update)):
            start = arrays(xp, W)
            state = average.init(start)
            for ws in GRADIENTS[:20]:
                mean, state = update(arrays(xp, ws), state)
            assert_close(mean, values)
            assert int(state["step"]) == 20
            if backend == "torch":
                break  # the big test above compiles such a program
    if backend == "numpy":  # the average keeps no reference to the weights' memory
        weights = np.zeros(2)
        state = o.ema(0.9, debias=False).init(weights)
        weights[...] = 7.0
        assert not state["mean"].any()


def test_rates_are_numbers_schedules_arrays_and_nests(backend, xp):
    wanted = [numpy_of(x) for x in parts(run(xp, o.adam(LR), steps=5)[0])]
    rate = xp.asarray(LR, dtype=xp.float64)
    rates = [LR, lambda step: LR, lambda step: rate, rate, np.float64(LR)]
    rates.append(arrays(xp, [np.full(w.shape, LR) for w in W]))
    for lr in rates:
        assert_close(run(xp, o.adam(lr), steps=5)[0], wanted)
    scaled = iso.chain(o.scale(xp.asarray(-0.125)))
    assert_close(run(xp, scaled)[0], expected("scale"))


def test_a_rate_can_be_an_argument_of_a_compiled_step(backend, xp):
    step = iso.jit(lambda v, g, s, lr: o.sgd(lr).update(g, s, v)[0])
    v, g = arrays(xp, W), arrays(xp, GRADIENTS[0])
    state = o.sgd(0.1).init(v)
    for lr in (0.5, 0.25):
        got = step(v, g, state, xp.asarray(lr))
        assert_close(got, [-lr * x for x in GRADIENTS[0]])


def test_states_can_be_moved_to_another_backend(backend, xp):
    opt = o.accumulate(o.adamw(o.cosine(LR, 50), mask="layers/*"), every=2)
    v, state = run(xp, opt, steps=5)
    with iso.use_backend("numpy"):
        host = iso.namespace()
    v, state = iso.to_numpy(v), iso.to_numpy(state)
    for gradient in GRADIENTS[5:9]:
        updates, state = opt.update(arrays(host, gradient), state, v)
        v = iso.apply_updates(v, updates)
    assert_close(v, parts(iso.to_numpy(run(xp, opt, steps=9)[0])))


def test_masks_by_function_pattern_and_nest_agree(backend, xp):
    v, g = arrays(xp, W), arrays(xp, [np.zeros_like(w) for w in W])
    bools = nest(True, False, False, False)
    for mask in ("*/w", ["*/w"], bools, lambda path, x: x.ndim == 2, lambda path, x: "w" in path):
        opt = o.add_decayed_weights(0.5, mask=mask)
        got = opt.update(g, opt.init(v), v)[0]
        assert_close(got, [0.5 * W[0], *(np.zeros_like(w) for w in W[1:])])


def test_no_gradient_flows_through_an_update(backend, xp):
    opt = o.adamw(0.1)

    def loss(x):
        v = {"w": x}
        updates, state = opt.update({"w": x * x}, opt.init(v), v)
        after = iso.apply_updates(v, updates)["w"]
        return xp.sum(after + state[0]["mean"]["w"] + state[0]["square"]["w"]) + 0.0 * xp.sum(x)

    assert not numpy_of(iso.grad(loss)(xp.asarray([1.0, 2.0]))).any()


def test_trainable_torch_parameters_do_not_grow_a_graph(backend, xp):
    x = xp.asarray([1.0, 2.0])
    if backend == "torch":
        x = x.requires_grad_()
    opt = o.sgd(0.1, momentum=0.9, weight_decay=0.1)
    updates, state = opt.update([x * x], opt.init([x]), [x])
    results = optree.tree_leaves((iso.apply_updates([x], updates), updates, state))
    assert len(results) == 3
    assert not any(getattr(y, "requires_grad", False) for y in results)


def test_complex_parameters_descend(backend, xp):
    z = np.array([3.0 + 4.0j, 0.5j])
    v = [xp.asarray(z)]
    opt = iso.chain(o.clip_by_global_norm(1.0), o.sgd(0.5))
    got = opt.update(v, opt.init(v), v)[0][0]
    np.testing.assert_allclose(numpy_of(got), -0.5 * z / np.linalg.norm(z), rtol=1e-12)


def test_clipping_passes_small_zero_and_broken_gradients(backend, xp):
    v = [xp.zeros(2), xp.zeros(1)]
    for clip in (o.clip_by_norm(1.0), o.clip_by_global_norm(1.0), o.clip_by_value(1.0)):
        zero = clip.update(v, (), v)[0]
        assert not any(numpy_of(x).any() for x in zero)
        small = [xp.asarray([0.25, -0.5]), xp.asarray([0.125])]
        for x, y in zip(clip.update(small, (), v)[0], small):
            np.testing.assert_array_equal(numpy_of(x), numpy_of(y))
    broken = [xp.asarray([np.nan, 1.0]), xp.asarray([1.0])]
    got = o.clip_by_global_norm(1.0).update(broken, (), v)[0]
    assert all(np.isnan(numpy_of(x)).all() for x in got)  # NaN is passed on, not hidden
    half = [
        xp.asarray([300.0, 400.0], dtype=verbs_of(xp).dtype("float16"))
    ]  # their squares overflow float16
    got = o.clip_by_global_norm(1.0).update(half, (), half)[0][0]
    # one unit in the last place of float16
    np.testing.assert_allclose(numpy_of(got), [0.6, 0.8], rtol=1e-3)


def test_empty_nests_have_states_too(backend, xp):
    with iso.use_backend(backend):
        for make in (lambda: o.adam(0.1), lambda: iso.chain(o.clip_by_global_norm(1.0), o.lamb(1))):
            opt = make()
            updates, _ = opt.update({}, opt.init({}), {})
            assert updates == {}


def test_accumulating_once_is_the_pair_itself(backend, xp):
    once, plain = (
        run(xp, opt, steps=5)[0] for opt in (o.accumulate(o.adam(LR), every=1), o.adam(LR))
    )
    assert_close(once, [numpy_of(x) for x in parts(plain)])


def test_every_public_name_has_an_executed_example():
    assert len(set(o.__all__)) == len(o.__all__) >= 23
    for name in o.__all__:
        assert ">>>" in getattr(o, name).__doc__, name


def test_by_optax_is_an_oracle_that_moves():
    import optax

    assert not np.allclose(by_optax(optax.sgd(LR))[0], W[0])
