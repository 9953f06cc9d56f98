"""Functions with custom rules between isomorph and a framework: what JAX passes to rules for NumPy
arrays and Python numbers, what rules may return, and which arguments may be constants.
"""

from copy import copy

import numpy as np
import pytest
from frameworks import enable_x64, jax, jnp, ours, tf, torch

import isomorph as iso
from isomorph.frontends.jax import lax
from oracles import kind_of, numpy_of

literals = ours("jax.literals")
ONLY_JAX = pytest.mark.parametrize("backend", ["jax"], indirect=True)
ONLY_TENSORFLOW = pytest.mark.parametrize("backend", ["tensorflow"], indirect=True)
ONLY_TORCH = pytest.mark.parametrize("backend", ["torch"], indirect=True)
FOREIGN = {"numpy": torch.ones, "jax": np.ones, "tensorflow": np.ones, "torch": np.ones}


def squared():
    """x², by every function that takes a custom rule. Each rule is that of 5 x²."""
    rule = lambda saved, g: 10 * g * saved[0]
    return {
        "custom_vjp": iso.custom_vjp(
            lambda x: x * x, lambda x: (x * x, x), lambda r, g: (10 * g * r,)
        ),
        "bind": iso.bind_custom_gradient_function(lambda x: x * x, rule),
        "host": iso.host_function(lambda x: x * x, rule),
        "constant": lambda x: 10 * iso.stop_gradient(x) * x,
    }


# ---- JAX's own transforms ------------------------------------------------------------------------

INPUTS = {
    "number": 3.0,
    "scalar": np.float32(3),
    "array": np.array(3.0),
    "rows": np.array([[3.0, -1.0]]),
    "jax": 3,  # converted inside to a JAX array
}


@ONLY_JAX
@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("name", squared())
def test_jax_differentiates_rules_of_what_it_takes(backend, name, kind):
    f = squared()[name]
    x = jnp.asarray(3.0) if kind == "jax" else INPUTS[kind]
    total = lambda x: jnp.sum(f(x))
    wanted = 10 * np.asarray(x)
    near = lambda got: np.testing.assert_allclose(got, wanted, rtol=1e-6)
    near(jax.grad(total)(x))
    near(jax.jit(jax.grad(total))(x))
    near(jax.value_and_grad(total)(x)[1])
    near(jax.jacrev(total)(x))
    _, pull = jax.vjp(f, x)
    ones = 1.0 if kind == "number" else np.ones_like(x) if kind != "jax" else jnp.ones(())
    near(pull(ones)[0])
    near(jax.grad(lambda p: total(p["w"]))({"w": x, "n": np.ones(2)})["w"])
    if name != "host":  # the rule of a host function cannot be differentiated
        twice = jax.grad(lambda x: jnp.sum(jax.grad(total)(x)))(x)
        wanted = 10 + 0 * np.asarray(x) if name != "constant" else 0 * np.asarray(x)
        near(twice)


@ONLY_JAX
@pytest.mark.parametrize("wide", [True, False])
def test_dtypes_are_those_that_jax_gives(backend, wide):
    with enable_x64(wide):
        for x in (2.0, np.float32(2), np.float64(2), np.ones(2), jnp.float16(2)):
            plain = lambda x: jnp.sum(x * x)
            for name, f in squared().items():
                ours = jax.value_and_grad(lambda x, f=f: jnp.sum(f(x)))(x)
                theirs = jax.value_and_grad(plain)(x)
                assert [y.dtype for y in ours] == [y.dtype for y in theirs], (name, x)
                weak = [y.weak_type for y in ours], [y.weak_type for y in theirs]
                assert weak[0] == weak[1] or name == "host", (name, x)  # NumPy has no weak types


@ONLY_JAX
def test_rules_are_given_arrays_of_jax(backend):
    seen = []
    look = lambda *xs: seen.extend(map(type, xs))
    f = iso.custom_vjp(
        lambda x, y: look(x, y) or x * y,
        lambda x, y: look(x, y) or (x * y, (x, y, 2.0)),
        lambda r, g: look(*r[:2], g) or (g * r[1], g * r[0]),
    )
    for x, y in ((2.0, 3.0), (np.ones(2), np.ones(2)), (np.float32(2), 3.0)):
        jax.vjp(f, x, y)[1](np.ones(np.shape(x), jnp.result_type(x, y)))
        jax.grad(lambda x, y=y: jnp.sum(f(x, jnp.asarray(y))))(x)
        f(jnp.asarray(x), jnp.asarray(y))
    jax.vmap(f)(np.ones(2), np.ones(2))
    assert seen
    assert all(issubclass(kind, (jax.Array, jax.core.Tracer)) for kind in seen), set(seen)


@ONLY_JAX
@pytest.mark.parametrize("wide", [True, False], ids=["wide", "narrow"])
@pytest.mark.parametrize("x", [2.0, np.float32(2), np.ones(3)], ids=["number", "scalar", "array"])
def test_what_jax_hands_out_is_an_array_of_jax(backend, x, wide):
    product = iso.host_function(lambda a, b: a * b, lambda saved, g: (g * saved[0][1], 0 * g))

    def f(x):
        fixed = jax.lax.stop_gradient(x)  # with this version of JAX the result is not a jax.Array
        xp = iso.namespace(fixed)
        assert xp is iso.namespace(x) is iso.namespace(fixed, x) is iso.namespace(x, fixed, 1.0)
        assert isinstance(iso.stop_gradient(x), jax.Array)
        assert isinstance(iso.stop_gradient(fixed), jax.Array)
        assert isinstance(iso.at(fixed)[...].get(), jax.Array)
        assert isinstance(iso.at(fixed)[...].add(1.0), jax.Array)
        plain = iso.to_numpy(fixed)
        assert type(plain) is np.ndarray
        assert plain.dtype == fixed.dtype
        assert iso.convert(fixed, "torch").dtype == getattr(torch, fixed.dtype.name)
        sums = (iso.relu(fixed), xp.sin(fixed), squared()["custom_vjp"](fixed), 2 * fixed)
        return jnp.sum(x * sum(sums[1:], sums[0]) + product(x, fixed))

    x = copy(x)  # JAX caches the dtype of a NumPy array, also across x64 modes
    wanted = np.abs(x) + np.sin(x) + x * x + 2 * x + x
    with enable_x64(wide):
        np.testing.assert_allclose(jax.grad(f)(x), wanted, rtol=1e-6)


@ONLY_JAX
@pytest.mark.parametrize("x", [2.0, np.float64(2)], ids=["number", "scalar"])
def test_branches_and_loops_are_given_arrays_of_jax(backend, x):
    def f(x):
        fixed = jax.lax.stop_gradient(x)
        see = lambda y: y * y if isinstance(y, jax.Array) else 1 / 0
        parts = (
            iso.cond(True, see, see, fixed),
            iso.fori_loop(0, 1, lambda i, y: see(y), fixed),
            iso.while_loop(lambda y: y < 3, see, fixed),
            iso.scan(lambda c, _: (see(c), c), fixed, length=1)[0],
            iso.jit(see)(fixed),
            iso.checkpoint(see)(fixed),
        )
        return x * sum(parts)

    np.testing.assert_allclose(jax.grad(f)(x), 6 * 4.0)


@ONLY_JAX
def test_ours_inside_a_rule_of_jax(backend):
    """A user's `jax.custom_vjp`, whose functions get JAX's literals, calls our functions."""

    @jax.custom_vjp
    def f(x):
        return iso.softplus(x)

    f.defvjp(lambda x: (iso.softplus(x), x), lambda x, g: (7 * g * iso.sigmoid(x),))
    for x in (0.5, np.float32(0.5), np.array([0.5, 1.0])):
        got = jax.grad(lambda x: jnp.sum(f(x)))(x)
        np.testing.assert_allclose(got, 7 / (1 + np.exp(-np.asarray(x))), rtol=1e-6)


@ONLY_JAX
def test_the_types_are_known_wherever_the_backend_is_loaded(backend):
    """The backend asks JAX for these types when the first array arrives, perhaps inside a
    transform.
    """
    found = []
    # a new function, because JAX caches
    ask = lambda: lambda x: found.append(literals._kinds()) or x
    jax.jit(ask())(1.0)
    jax.grad(ask())(1.0)
    jax.vmap(ask())(np.ones(2))
    jax.eval_shape(ask(), 1.0)
    with jax.disable_jit():
        ask()(1.0)
    assert found == [literals.LITERALS] * 5


@ONLY_JAX
def test_jax_still_hands_out_types_of_its_own(backend):
    """If this fails, JAX passes rules what it was given, or arrays: then `literals` may go."""
    seen = []

    @jax.custom_vjp
    def f(*xs):
        return sum(jnp.sum(x) for x in xs)

    f.defvjp(lambda *xs: (seen.extend(map(type, xs)) or f(*xs), len(xs)), lambda n, g: (g,) * n)
    jax.grad(f)(2.0, np.float32(1))
    assert {kind.__name__ for kind in seen} == {"TypedFloat", "TypedNdArray"}
    assert set(seen) < set(literals.LITERALS)


# ---- the same on the other frameworks ------------------------------------------------------------


@ONLY_TENSORFLOW
@pytest.mark.parametrize("name", squared())
def test_tapes_over_rules_of_variables(backend, name):
    f = squared()[name]
    for x in (tf.Variable(3.0), tf.Variable([3.0, -1.0]), tf.constant([[2.0]])):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(f(x))
        np.testing.assert_allclose(tape.gradient(y, x), 10 * x.numpy(), rtol=1e-6)
        both = tf.function(lambda x: tf.gradients(tf.reduce_sum(f(x)), x)[0], autograph=False)
        np.testing.assert_allclose(both(tf.convert_to_tensor(x)), 10 * x.numpy(), rtol=1e-6)


@ONLY_TENSORFLOW
def test_stop_gradient_of_a_variable_in_a_function(backend):
    """There are no variables inside a graph: the result there is a tensor."""
    x = tf.Variable([3.0, -1.0])

    @tf.function(autograph=False)
    def slope():
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(iso.stop_gradient(x) * x)
        return tape.gradient(y, x)

    np.testing.assert_allclose(slope(), [3.0, -1.0])
    assert isinstance(iso.stop_gradient(x), tf.Variable)


@ONLY_TORCH
@pytest.mark.filterwarnings("ignore:.torch.jit.script")  # raised by torch's own import
def test_forward_mode_of_a_product_over_repeated_positions(backend):
    """torch's own derivative is 0 (`scatter_reduce` with "prod"); ours is composed."""
    x, v = torch.tensor([2.0, 3.0, 4.0]), torch.tensor([5.0, 7.0, 2.0])
    f = lambda x, v: iso.at(x)[[0, 2, 0]].multiply(v).sum()  # x₀v₀v₂ + x₁ + x₂v₁
    by_x, by_v = lambda x: f(x, v), lambda v: f(x, v)
    assert torch.func.jvp(by_x, (x,), (x,))[1].item() == 2 * 10 + 3 + 4 * 7
    assert torch.func.jvp(by_v, (v,), (v,))[1].item() == 2 * 20 + 4 * 7
    assert torch.func.jacfwd(by_x)(x).tolist() == [10.0, 1.0, 7.0]
    assert torch.func.jacfwd(by_v)(v).tolist() == [4.0, 4.0, 10.0]
    assert torch.func.hessian(by_x)(x).tolist() == [[0.0] * 3] * 3
    assert torch.func.hessian(by_v)(v).tolist() == [[0.0, 0.0, 2.0], [0.0] * 3, [2.0, 0.0, 0.0]]
    assert iso.jvp(by_x, (x,), (x,))[1].item() == 2 * 10 + 3 + 4 * 7
    assert torch.func.jvp(lambda w: w * f(x, v), (x[0],), (x[0],))[1].item() == 2 * (20 + 3 + 28)
    native = torch.func.jvp(
        lambda x: x.scatter_reduce(0, torch.tensor([0]), v[:1], "prod"), (x,), (x,)
    )[1]
    assert native.tolist()[0] == 0.0  # should be 10: once it is right, the composed form may go


@ONLY_TORCH
@pytest.mark.parametrize("name", squared())
def test_torch_over_rules_of_parameters(backend, name):
    f = squared()[name]
    for values in (torch.tensor(3.0), torch.tensor([3.0, -1.0])):
        x = torch.nn.Parameter(values.clone())
        f(x).sum().backward()
        np.testing.assert_allclose(numpy_of(x.grad), 10 * numpy_of(x), rtol=1e-6)
        grad = torch.func.grad(lambda x: f(x).sum())(values)
        np.testing.assert_allclose(numpy_of(grad), 10 * numpy_of(x), rtol=1e-6)
        rows = torch.func.vmap(torch.func.grad(lambda x: f(x).sum()))(torch.stack([values] * 2))
        np.testing.assert_allclose(numpy_of(rows[1]), 10 * numpy_of(x), rtol=1e-6)


def test_numbers_beside_the_arrays_of_a_rule(backend, xp):
    """Numbers are constants. An array of another framework raises, and the error names both."""
    f = iso.custom_vjp(
        lambda x, n: x**n, lambda x, n: (x**n, (x, n)), lambda r, g: (10 * g * r[0], None)
    )
    x = xp.asarray([2.0, 3.0])
    np.testing.assert_allclose(
        numpy_of(iso.grad(lambda x: xp.sum(f(x, 2)))(x)), [20.0, 30.0], rtol=1e-6
    )
    with pytest.raises(TypeError, match=f"arrays of 2 backends in one call: {backend}.* and "):
        f(x, FOREIGN[backend](2))


# ---- what a function with a custom rule may return -----------------------------------------------


def returning(made):
    """Functions with custom rules whose output is `made(x)`, by the name that errors
    must mention.
    """
    zero = lambda r, g: (0 * r,)
    return {
        "custom_vjp": iso.custom_vjp(made, lambda x: (made(x), x), zero),
        "bind_custom_gradient_function": iso.bind_custom_gradient_function(
            made, lambda saved, g: 0 * saved[0]
        ),
        "checkpoint": iso.checkpoint(made),
    }


def test_a_number_as_output_raises(backend, xp):
    x = xp.asarray([1.0, 1.0])
    constant = {"a": 2.5, "b": (x, 1.0)}
    for made, where in (
        (lambda x: 2.5, "a float"),
        (lambda x: (x, 2j), "a complex at 1"),
        (lambda x: {"a": x, "b": (x, 1.0)}, "a float at b/1"),
        (lambda x: {**constant, "a": x}, "a float at b/1"),
    ):
        for name, f in returning(made).items():
            words = f"{name}: needed {backend} arrays as output.* got {where},"
            with pytest.raises(TypeError, match=words):  # also without differentiation
                f(x)
            with pytest.raises(TypeError, match=words):
                iso.grad(lambda x, f=f: xp.sum(x) + 0 * f(x))(x)


@pytest.mark.parametrize("backend", ["numpy", "tensorflow", "torch"], indirect=True)
def test_a_number_of_the_values_as_output_raises(backend, xp):
    """The original bug: the gradient was [1, 1], not [3, 3]. JAX has no values there."""
    number = lambda x: float(xp.sum(x * x))
    f = iso.custom_vjp(number, lambda x: (number(x), x), lambda r, g: (2 * g * r,))
    with pytest.raises(TypeError, match="custom_vjp: needed .* got a float, whose gradient"):
        iso.grad(lambda x: xp.sum(x) + f(x))(xp.asarray([1.0, 1.0]))


def test_an_array_of_another_framework_as_output_raises(backend, xp):
    x = xp.asarray([1.0, 1.0])
    for name, f in returning(lambda x: (x, FOREIGN[backend](2))).items():
        other = kind_of(FOREIGN[backend](2))
        with pytest.raises(TypeError, match=f"{name}: needed {backend} .* got a {other}.* at 1,"):
            iso.grad(lambda x, f=f: xp.sum(f(x)[0]))(x)


def test_what_has_no_gradient_may_be_an_output(backend, xp):
    x = xp.asarray([1.0, 2.0])
    count = xp.asarray([3, 4])
    for name, f in returning(lambda x: (x * x, 3, True, None, "word", count)).items():
        y, *rest = f(x)
        assert rest[:4] == [3, True, None, "word"], name
        np.testing.assert_array_equal(numpy_of(rest[4]), [3, 4])
        np.testing.assert_allclose(numpy_of(y), [1.0, 4.0])
        slope = iso.grad(lambda x, f=f: xp.sum(f(x)[0]))(x)
        np.testing.assert_allclose(numpy_of(slope), [2.0, 4.0] if name == "checkpoint" else [0, 0])


def test_residuals_may_be_anything(backend, xp):
    f = iso.custom_vjp(
        lambda x: x * x,
        lambda x: (x * x, {"x": x, "scale": 10.0, "host": np.ones(1), "word": "w", "none": None}),
        lambda r, g: (r["scale"] * float(r["host"][0]) * g * r["x"],),
    )
    got = iso.grad(lambda x: xp.sum(f(x)))(xp.asarray([1.0, 2.0]))
    np.testing.assert_allclose(numpy_of(got), [10.0, 20.0])


def test_a_host_function_gives_numbers_as_arrays(backend, xp):
    f = iso.host_function(lambda x: float(np.sum(x * x)), lambda saved, g: 10 * g * saved[0])
    x = xp.asarray([1.0, 2.0])
    assert kind_of(f(x)) == backend
    np.testing.assert_allclose(numpy_of(iso.grad(f)(x)), [10.0, 20.0])


def test_a_solver_gives_arrays(backend, xp):
    """A root as a Python number would be a constant, so it raises. Auxiliary output may be a
    number.
    """
    a, one = xp.asarray(4.0), xp.asarray(1.0)
    root = lambda solve, has_aux=False: iso.grad(
        lambda a: (lambda out: out[0] if has_aux else out)(
            lax.custom_root(
                lambda x: x * x - a, xp.asarray(2.0), solve, lambda g, y: y / g(one), has_aux
            )
        )
    )
    np.testing.assert_allclose(numpy_of(root(lambda f, x: x)(a)), 0.25)
    aux = {"residual": 0.1}
    np.testing.assert_allclose(numpy_of(root(lambda f, x: (x, aux), True)(a)), 0.25)
    if backend == "jax":  # JAX's solver converts the number to an array
        np.testing.assert_allclose(numpy_of(root(lambda f, x: 2.0)(a)), 0.25)
    else:
        with pytest.raises(TypeError, match="custom_root: needed .* got a float, whose gradient"):
            root(lambda f, x: 2.0)(a)


# ---- what a rule may return ----------------------------------------------------------------------


def ruled(bwd):
    return iso.custom_vjp(lambda x: x * x, lambda x: (x * x, x), bwd)


def test_gradients_have_the_dtype_of_their_array(backend, xp):
    for dtype in (xp.float32, xp.float64):
        x = xp.asarray(2.0, dtype=dtype)
        for given in (
            lambda r, g: (3.0,),
            lambda r, g: (3,),
            lambda r, g: (xp.astype(g, xp.float64) * 3,),
            lambda r, g: (xp.astype(g, xp.float32) * 3,),
            lambda r, g: (xp.astype(g, xp.int32) * 3,),
            # real part, for a real argument
            lambda r, g: (xp.astype(g, xp.complex128) * (3 + 1j),),
        ):
            got = iso.grad(ruled(given))(x)
            assert kind_of(got) == backend
            assert got.dtype == dtype
            assert float(got) == 3.0


def test_gradients_that_are_no_arrays_of_the_framework_raise(backend, xp):
    x = xp.asarray([1.0, 2.0])
    total = lambda f: iso.grad(lambda x: xp.sum(f(x)))
    with pytest.raises(TypeError, match=f"needed bwd to return {backend} arrays.* for argument 0"):
        total(ruled(lambda r, g: (FOREIGN[backend](2),)))(x)
    with pytest.raises(TypeError, match=f"needed bwd to return {backend} arrays.* got a str"):
        total(ruled(lambda r, g: ("word",)))(x)
    with pytest.raises(ValueError, match=r"needed bwd to return shape \(2,\) for argument 0"):
        total(ruled(lambda r, g: (1.0,)))(x)
