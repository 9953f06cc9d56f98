"""Details of recurrent layers: GRU, kernels against the composed form, compilation to one loop,
errors.
"""

from functools import partial

import numpy as np
import pytest
from frameworks import jax, proxy_tensor, tf, torch

import isomorph as iso
from isomorph.backends.composed import Backend
from isomorph.core.dispatch import load
from oracles import numpy_of

from .sequence_oracles import check, drawn, torch_recurrent


def arrays_of(gates, time=3, batch=(2,), size=3, out=4):
    states = [(*batch, out)] * (2 if gates == 4 else 1)
    wide = gates * out
    return drawn(gates, (*batch, time, size), *states, (size, wide), (out, wide), (wide,), (wide,))


def lstm(*arrays, time_major=False):
    hs, (h, c) = iso.lstm_update(
        *arrays[:5], bias=arrays[5], recurrent_bias=arrays[6], time_major=time_major
    )
    return hs, h, c


def gru(*arrays, time_major=False):
    return iso.gru_update(
        *arrays[:4], bias=arrays[4], recurrent_bias=arrays[5], time_major=time_major
    )


def test_gru_update(backend, xp):
    reference = torch_recurrent(torch.nn.GRU, 3)
    check(xp, gru, reference, arrays_of(3), second=False, compiled=True)
    check(xp, gru, reference, arrays_of(3))
    arrays = arrays_of(3)
    turned = [np.moveaxis(arrays[0], 0, 1), *arrays[1:]]
    hs, h = gru(*map(xp.asarray, turned), time_major=True)
    ours, last = gru(*map(xp.asarray, arrays))
    np.testing.assert_allclose(numpy_of(hs), numpy_of(ours).swapaxes(0, 1), rtol=1e-12)
    np.testing.assert_allclose(numpy_of(h), numpy_of(last), rtol=1e-12)


@pytest.mark.parametrize("time_major", [False, True])
def test_second_derivatives_of_a_compiled_lstm(backend, xp, time_major):
    arrays = arrays_of(4)
    arrays[0] = np.moveaxis(arrays[0], 0, 1) if time_major else arrays[0]
    call = partial(lstm, time_major=time_major)
    check(xp, call, torch_recurrent(torch.nn.LSTM, 4, time_major), arrays, compiled=True)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_the_kernel_is_the_meaning(backend, xp, kind):
    """In float32, where torch uses another kernel; with two batch axes, with one bias."""
    call = {"lstm": lstm, "gru": gru}[kind]
    arrays = arrays_of(4 if kind == "lstm" else 3, time=7, batch=(2, 3))
    arrays = [xp.asarray(x.astype(np.float32)) for x in arrays]
    n = len(arrays)
    plain = lambda *a: getattr(Backend, kind)(load(backend), *a, False)
    for given in (arrays, [*arrays[:-2], None, arrays[-1]], [*arrays[:-2], None, None]):
        chosen = tuple(i for i in range(n) if given[i] is not None)

        def loss(call, *args, given=given, chosen=chosen):
            full = list(given)
            for i, x in zip(chosen, args):
                full[i] = x
            return sum(xp.sum(xp.sin(y)) for y in call(*full))

        there = [given[i] for i in chosen]
        quick = iso.jit if backend == "jax" else lambda f: f  # eagerly JAX compiles each operation
        ours = quick(iso.grad(lambda *a: loss(call, *a), tuple(range(len(there)))))(*there)
        theirs = quick(iso.grad(lambda *a: loss(plain, *a), tuple(range(len(there)))))(*there)
        # on a GPU the tanh of cuDNN is an approximation
        near = 1e-5 if getattr(there[0], "is_cuda", False) else 1e-6
        for a, b in zip(call(*given), plain(*given)):
            np.testing.assert_allclose(numpy_of(a), numpy_of(b), rtol=1e-5, atol=near)
        for a, b in zip(ours, theirs):
            np.testing.assert_allclose(numpy_of(a), numpy_of(b), rtol=1e-4, atol=10 * near)
    compiled = iso.jit(iso.value_and_grad(lambda *a: loss(call, *a), (0, 1)))
    value, grads = compiled(*there)
    np.testing.assert_allclose(numpy_of(value), numpy_of(loss(plain, *there)), rtol=1e-5)
    for a, b in zip(grads, theirs):
        np.testing.assert_allclose(numpy_of(a), numpy_of(b), rtol=1e-4, atol=10 * near)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_other_derivatives_of_a_recurrence(backend, xp, kind):
    call, gates = {"lstm": (lstm, 4), "gru": (gru, 3)}[kind]
    reference = torch_recurrent({"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[kind], gates)
    arrays = arrays_of(gates, time=2, size=2, out=2)
    given = tuple(map(xp.asarray, arrays))
    with torch.device("cpu"):  # on a GPU torch's recurrent layers have no second derivative
        tensors = tuple(map(torch.tensor, arrays))
        wanted = torch.autograd.functional.jvp(reference, tensors, tensors)[1]
        of_x = lambda x: reference(x, *tensors[1:])[0]
        jacobian = torch.autograd.functional.jacobian(of_x, tensors[0])
    for ours, theirs in zip(iso.jvp(call, given, given)[1], wanted):
        np.testing.assert_allclose(numpy_of(ours), theirs.cpu().numpy(), atol=1e-12)
    jac = iso.jac(lambda x: call(x, *given[1:])[0])(given[0])
    np.testing.assert_allclose(numpy_of(jac), jacobian.numpy(), atol=1e-12)
    mapped = iso.vmap(lambda x: call(x, *(h[0] for h in given[1 : gates - 1]), *given[gates - 1 :]))
    hs = numpy_of(mapped(given[0])[0])
    np.testing.assert_allclose(hs[0], numpy_of(call(*given)[0])[0], rtol=1e-12)


def test_a_recurrence_compiles_to_one_loop(backend, xp):
    """The program for a hundred steps is no longer than that for ten."""
    sizes = []
    for time in (10, 100):
        arrays = [xp.asarray(x) for x in arrays_of(4, time=time)]
        if backend == "jax":
            sizes.append(len(jax.jit(lstm).lower(*arrays).as_text().splitlines()))
        elif backend == "tensorflow":
            graph = tf.function(lstm, autograph=False).get_concrete_function(*arrays).graph
            definition = graph.as_graph_def()
            inner = sum(len(f.node_def) for f in definition.library.function)
            sizes.append(len(definition.node) + inner)
        elif backend == "torch":  # one operation, and one for its derivative
            back = iso.grad(lambda *a: xp.sum(lstm(*a)[0]), tuple(range(7)))
            sizes.append(len(proxy_tensor.make_fx(back, tracing_mode="fake")(*arrays).graph.nodes))
        else:  # one operation of the tape
            traced = []
            iso.grad(lambda x, a=arrays, t=traced: (t.append(lstm(x, *a[1:])[0]), t[0].sum())[1])(
                arrays[0]
            )
            sizes.append(-traced[0].node[0])
    assert sizes[0] == sizes[1]
    assert sizes[0] > 0


def test_wrong_arguments_of_a_recurrence(backend, xp):
    x, h, c, kernel, recurrent, bias, _ = map(xp.asarray, arrays_of(4))
    for message, args, kw in (
        ("x .*batch, time, in., got .3.", (x[0, 0, :], h, c, kernel, recurrent), {}),
        ("x .*at least one step", (x[:, :0, :], h, c, kernel, recurrent), {}),
        ("kernel .in, 4·out., .3, 16., got .2, 16.", (x, h, c, kernel[:2, :], recurrent), {}),
        ("recurrent_kernel .out, 4·out., got", (x, h, c, kernel, recurrent[:3, :]), {}),
        ("init_h .*batch, out., .2, 4., got .1, 4.", (x, h[:1, :], c, kernel, recurrent), {}),
        ("init_c .*batch, out., .2, 4., got .1, 4.", (x, h, c[:1, :], kernel, recurrent), {}),
        ("bias .4·out., .16., got .3.", (x, h, c, kernel, recurrent), {"bias": bias[:3]}),
    ):
        with pytest.raises(ValueError, match=f"lstm_update: needed {message}"):
            iso.lstm_update(*args, **kw)
    with pytest.raises(
        TypeError, match="lstm_update: needed arrays of the same real floating dtype"
    ):
        iso.lstm_update(x, h, c, xp.astype(kernel, xp.float32), recurrent)
    with pytest.raises(ValueError, match="gru_update: needed recurrent_kernel .out, 3·out."):
        iso.gru_update(x, h, kernel, recurrent)
