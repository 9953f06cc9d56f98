"""`jit`: the same results compiled, one program per form of the arguments, on all backends."""

import math
import threading

import numpy as np
import pytest
from frameworks import enable_x64, forward_ad, tf, torch

import isomorph as iso
from isomorph.core import tree
from oracles import kind_of, numpy_of

X = np.array([0.5, 1.5, -2.0])
COMPILED = pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)


def counting(func):
    """The function, and a record of how often Python ran it."""
    runs = []

    def counted(*args, **kw):
        runs.append(1)
        return func(*args, **kw)

    return counted, runs


def test_nests_numbers_and_keywords(backend, xp):
    def func(p, n, *, scale):
        return {"a": [p["x"] * n + scale, None], "sum": xp.sum(p["x"])}

    out = iso.jit(func)({"x": xp.asarray(X)}, 2.0, scale=1.0)
    np.testing.assert_allclose(numpy_of(out["a"][0]), 2 * X + 1, rtol=1e-15)
    assert out["a"][1] is None
    np.testing.assert_allclose(float(out["sum"]), 0.0, atol=1e-15)
    assert kind_of(out["a"][0]) == kind_of(xp.asarray(X))


@COMPILED
def test_one_program_per_shape_and_dtype_not_per_value(backend, xp):
    func, runs = counting(lambda x, n: xp.sum(x) * n)
    compiled = iso.jit(func)
    for n in (1.0, 2.0, 3.5):
        np.testing.assert_allclose(float(compiled(xp.asarray(X + n), n)), np.sum(X + n) * n, 1e-12)
    assert len(runs) == 1
    np.testing.assert_allclose(float(compiled(xp.asarray(X[:2]), 2.0)), 4.0, rtol=1e-15)
    assert len(runs) == 2
    y = compiled(xp.asarray(X, dtype=xp.float32), 2.0)
    assert y.dtype == xp.float32  # the number is weakly typed, as in eager code
    assert len(runs) == 3


@COMPILED
def test_sizes_are_known_for_every_shape(backend, xp):
    mean = iso.jit(lambda x: xp.sum(x) / x.shape[0])
    for n in (1, 2, 3):  # TensorFlow alone would drop them after the second
        np.testing.assert_allclose(float(mean(xp.asarray(X[:n]))), np.mean(X[:n]), rtol=1e-15)


@pytest.mark.parametrize("static", ["power", 1, ["power"], (1,)])
def test_static_arguments(backend, xp, static):
    def func(x, power, *, flag=False):
        return x**2 if power == "two" else -x

    compiled = iso.jit(func, static=static)
    x = xp.asarray(X)
    np.testing.assert_allclose(numpy_of(compiled(x, "two")), X**2)
    np.testing.assert_allclose(numpy_of(compiled(x, power="one")), -X)
    np.testing.assert_allclose(numpy_of(compiled(x, power="two")), X**2)


def test_static_values_of_equal_worth_are_not_the_same(backend, xp):
    compiled = iso.jit(lambda x, n: x * (2 if n is True else 3), static="n")
    np.testing.assert_allclose(numpy_of(compiled(xp.asarray(X), True)), 2 * X)
    np.testing.assert_allclose(numpy_of(compiled(xp.asarray(X), 1)), 3 * X)


def test_static_in_the_middle_and_by_keyword(backend, xp):
    func = lambda a, how, b, *, sign: (a - b if how == "minus" else a + b) * sign
    compiled = iso.jit(func, static=["how", "sign"])
    a, b = xp.asarray(X), xp.asarray(X + 1)
    np.testing.assert_allclose(numpy_of(compiled(a, "minus", b, sign=-1)), np.ones(3))
    np.testing.assert_allclose(numpy_of(compiled(a, how="plus", b=b, sign=1)), 2 * X + 1)


@pytest.mark.parametrize("transform", ["grad", "vmap", "jit", "jac"])
def test_transforms_of_a_compiled_function(backend, xp, transform):
    square = iso.jit(lambda x: xp.sum(x**3))
    x = xp.asarray(X)
    if transform == "grad":
        np.testing.assert_allclose(numpy_of(iso.grad(square)(x)), 3 * X**2, rtol=1e-12)
        hess = iso.grad(lambda x: xp.sum(iso.grad(lambda x: square(x))(x)))(x)
        np.testing.assert_allclose(numpy_of(hess), 6 * X, rtol=1e-12)
    elif transform == "vmap":
        rows = np.stack([X, X + 1])
        np.testing.assert_allclose(numpy_of(iso.vmap(square)(xp.asarray(rows))), np.sum(rows**3, 1))
    elif transform == "jit":
        np.testing.assert_allclose(float(iso.jit(lambda x: square(x) * 2)(x)), 2 * np.sum(X**3))
    else:
        np.testing.assert_allclose(numpy_of(iso.jac(square)(x)), 3 * X**2, rtol=1e-12)


@COMPILED
def test_a_value_cannot_choose_the_code(backend, xp):
    x = xp.asarray(X)
    with pytest.raises(TypeError):
        iso.jit(lambda x: x if x[0] > 0 else -x)(x)
    with pytest.raises(TypeError):
        iso.jit(lambda x: x * float(x[0]))(x)


@COMPILED
def test_the_gradient_mode_is_part_of_the_key(backend, xp):
    class Times(iso.Module):
        def __init__(self):
            self.w = xp.asarray(X)

        def forward(self, x):
            return xp.sum(self.w * x)

    x, times = xp.asarray(X), Times()
    compiled = iso.jit(iso.grad(lambda x: times(x, v={"w": x})))
    np.testing.assert_allclose(numpy_of(compiled(x)), 2 * X, rtol=1e-12)
    with iso.gradient_tracking(False):
        np.testing.assert_allclose(numpy_of(compiled(x)), X, rtol=1e-12)
    np.testing.assert_allclose(numpy_of(compiled(x)), 2 * X, rtol=1e-12)


def test_bad_input(backend, xp):
    x = xp.asarray(X)
    with pytest.raises(TypeError, match="jit: needed a function, got int"):
        iso.jit(3)
    with pytest.raises(TypeError, match=r"got a str at argument 1; .*static="):
        iso.jit(lambda x, s: x)(x, "word")
    with pytest.raises(TypeError, match=r"got a str at argument p/a; .*static="):
        iso.jit(lambda x, p: x)(x, p={"a": "word"})
    with pytest.raises(TypeError, match="static .*positions or names.*, got"):
        iso.jit(lambda x: x, static=(1.5,))
    with pytest.raises(ValueError, match="static .*'flag'.* arguments are x"):
        iso.jit(lambda x: x, static="flag")
    with pytest.raises(TypeError, match="static argument 1 .*hashable, got a list"):
        iso.jit(lambda x, s: x, static=1)(x, [1])
    other = torch.ones(3) if backend != "torch" else np.ones(3)
    with pytest.raises(TypeError, match="arrays of 2 backends in one call"):
        iso.jit(lambda x, y: x)(x, other)


def test_errors_of_the_function_come_through(backend, xp):
    def broken(x):
        raise KeyError("mine")

    compiled = iso.jit(broken)
    for _ in range(2):  # twice: no half-built program is kept
        with pytest.raises(KeyError, match="mine"):
            compiled(xp.asarray(X))


def test_threads(backend, xp):
    compiled = iso.jit(iso.grad(lambda x: xp.sum(x**3)))
    got = {}

    def work(n):
        with enable_x64(True):
            got[n] = numpy_of(compiled(xp.asarray(X + n)))

    workers = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join(120)
    for n in range(4):
        np.testing.assert_allclose(got[n], 3 * (X + n) ** 2, rtol=1e-12)


def torch_backward_twice(xp, w):
    cube = iso.bind_custom_gradient_function(lambda x: x**3, lambda s, g: 30 * g * s[0] ** 2)
    total, count = iso.jit(lambda w, n: (xp.sum(cube(w) * w), n + 1))(w, xp.asarray([1, 2]))
    assert count.tolist() == [2, 3]
    (grad,) = torch.autograd.grad(total, w, create_graph=True)
    np.testing.assert_allclose(numpy_of(grad), 31 * X**3, rtol=1e-12)
    (hess,) = torch.autograd.grad(grad.sum(), w)
    np.testing.assert_allclose(numpy_of(hess), 120 * X**2, rtol=1e-12)


def torch_captured(xp, w):
    with pytest.raises(TypeError, match="captures a tensor that requires gradients"):
        iso.jit(lambda x: x * w)(torch.ones(3, dtype=torch.float64))
    with torch.no_grad():
        out = iso.jit(lambda x: x * w)(torch.ones(3, dtype=torch.float64))
    np.testing.assert_allclose(numpy_of(out), X)


@pytest.mark.takes("torch compiles C++")
@pytest.mark.parametrize("check", [torch_backward_twice, torch_captured])
@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_torch_backward_goes_through_compiled_code(backend, xp, check):
    check(xp, torch.tensor(X, requires_grad=True))


def torch_layouts(x):
    compiled = iso.jit(lambda x: x * 2 + c)
    c = torch.ones(3, 3)
    np.testing.assert_allclose(numpy_of(compiled(x)), numpy_of(x) * 2 + 1)
    np.testing.assert_allclose(numpy_of(compiled(x.T)), numpy_of(x).T * 2 + 1)  # other strides
    c.add_(1)
    np.testing.assert_allclose(numpy_of(compiled(x)), numpy_of(x) * 2 + 2)


def torch_autocast(x):
    with torch.autocast(x.device.type, dtype=torch.bfloat16):
        assert iso.jit(lambda x: x @ x)(x).dtype == torch.bfloat16
    with pytest.raises(TypeError, match="got a placeholder of a trace"):
        iso.jit(iso.to_numpy)(x)


@pytest.mark.takes("torch compiles C++")
@pytest.mark.parametrize("check", [torch_layouts, torch_autocast])
@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_torch_layouts_modes_and_captured_tensors(backend, xp, check):
    check(torch.arange(9.0).reshape(3, 3))


@pytest.mark.parametrize("backend", ["tensorflow"], indirect=True)
def test_tensorflow_variables_and_tapes(backend, xp):
    v = tf.Variable(X)
    compiled = iso.jit(lambda v: xp.sum(v**3))
    np.testing.assert_allclose(float(compiled(v)), np.sum(X**3))
    v.assign(X + 1)
    np.testing.assert_allclose(float(compiled(v)), np.sum((X + 1) ** 3))
    with tf.GradientTape() as tape:
        y = compiled(v)
    np.testing.assert_allclose(tape.gradient(y, v).numpy(), 3 * (X + 1) ** 2, rtol=1e-12)
    inside = tf.function(lambda x: compiled(x) * 2, autograph=False)
    np.testing.assert_allclose(float(inside(tf.constant(X))), 2 * np.sum(X**3), rtol=1e-12)


def test_numbers_alone_belong_to_the_home_of_each_call(backend, xp):
    double = iso.jit(lambda s: s * 2.0)
    with iso.use_backend(backend):
        assert float(double(1.5)) == 3.0
    assert type(double(1.5)) is float  # back to NumPy, unchanged


def test_each_call_is_looked_at_again(backend, xp):
    """A call with arrays like the last one takes a short way, any other call does not."""
    total = iso.jit(lambda *args: [sum(tree.flatten(a)[0]) for a in args])
    x, there, here = xp.asarray(X), kind_of(xp.asarray(X)), kind_of(X)
    for _ in range(3):
        for args, wanted in [
            ([x], there),
            ([x, 2.0], there),
            ([{"b": x, "a": 1.0}, [x, x], (x,)], there),
            ([{"b": x, "a": {"c": x}}], there),
            ([X], here),
            ([[X, 2.0], {"a": X}], here),
            ([2.0], float),
            ([[2.0, 3], {}, []], float),
            ([x[:2]], there),
        ]:
            got = total(*args)
            sums = [sum(map(numpy_of, tree.flatten(a)[0])) for a in args]
            for y, expected in zip(got, sums, strict=True):
                np.testing.assert_allclose(numpy_of(y), expected, rtol=1e-15)
            assert (type(got[0]) if wanted is float else kind_of(got[0])) == wanted
    with pytest.raises(TypeError, match="arrays of 2 backends" if here != there else "got a str"):
        total(x, X if here != there else "x")
    with pytest.raises(TypeError, match="jit: needed arrays and numbers, got a str at argument"):
        total(x, [x, "x"])
    with pytest.raises(TypeError, match="jit: needed arrays and numbers, got a str at argument"):
        total({"a": x, "b": "x"}, x)


def test_static_values_are_told_apart_within_nests(backend, xp):
    x = xp.asarray(X)
    signed = iso.jit(lambda x, s: x * math.copysign(1.0, s), static=1)
    np.testing.assert_allclose(numpy_of(signed(x, 0.0)), X)
    np.testing.assert_allclose(numpy_of(signed(x, -0.0)), -X)
    kinds = iso.jit(lambda x, s: x * (2 if type(s[0]) is int else 3), static=1)
    np.testing.assert_allclose(numpy_of(kinds(x, (1,))), 2 * X)
    np.testing.assert_allclose(numpy_of(kinds(x, (1.0,))), 3 * X)


def test_numbers_keep_the_precision_of_the_widest_array(backend, xp):
    narrow, wide = xp.asarray(X, dtype=xp.float32), xp.asarray(X)
    got = iso.jit(lambda a, b, s: b * s)(narrow, wide, 0.1)
    np.testing.assert_array_equal(numpy_of(got), X * 0.1)
    turn = iso.jit(lambda b, z: xp.real(xp.astype(b, xp.complex128) * z))
    np.testing.assert_allclose(numpy_of(turn(wide, 0.1 + 0.2j)), X * 0.1, rtol=1e-15)


@pytest.mark.parametrize("backend", ["tensorflow", "torch"], indirect=True)
def test_outputs_are_arrays_and_numbers(backend, xp):
    _, number = iso.jit(lambda x: (x, 2.5))(xp.asarray(X))
    assert kind_of(number) == backend
    assert float(number) == 2.5
    for bad, kind in ((lambda x: {"a": {1, 2}}, "set at a"), (lambda x: "word", "str")):
        with pytest.raises(
            TypeError, match=f"{backend} arrays and numbers as output, got a {kind}"
        ):
            iso.jit(bad)(xp.asarray(X))


@pytest.mark.takes("torch compiles C++")
@pytest.mark.filterwarnings("ignore:.torch.jit")  # raised by torch's forward mode
@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_torch_sees_bits_tangents_and_captured_tensors(backend, xp):
    # a lazy negation: its memory holds 2 and 4
    negated = torch.tensor([1 + 2j, 3 + 4j]).conj().imag
    func = iso.jit(lambda x: x * 2 + 1)
    assert func(negated).tolist() == [-3.0, -7.0]
    assert func(torch.tensor([2.0, 4.0])).tolist() == [5.0, 9.0]
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.tensor(X), torch.ones(3, dtype=torch.float64))
        tangent = forward_ad.unpack_dual(iso.jit(lambda x: x * x)(dual)).tangent
    np.testing.assert_allclose(numpy_of(tangent), 2 * X)
    w = torch.ones(3, dtype=torch.float64)
    later = iso.jit(lambda x: x * w)
    np.testing.assert_allclose(numpy_of(later(torch.tensor(X))), X)
    w.requires_grad_()
    with pytest.raises(TypeError, match="captures a tensor that requires gradients"):
        later(torch.tensor(X))


@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_torch_says_what_cannot_be_traced(backend, xp):
    x = torch.tensor(X)
    with pytest.raises(TypeError, match="value of a tensor cannot decide"):
        iso.jit(lambda x: torch.ones(int(x[0].item())))(x)
    with pytest.raises(TypeError, match="shape .*cannot depend on .*values"):
        iso.jit(lambda x: torch.unique(x))(x)
