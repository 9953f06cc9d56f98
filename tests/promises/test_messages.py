"""Error messages end with what to write instead, and keep the type of the framework's error."""

import numpy as np
import pytest
from scipy import linalg, signal, special

import isomorph as iso
from isomorph.core.dispatch import load
from oracles import numpy_of

X = np.array([0.5, 1.5, 2.5])
COMPILED = pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)


def error_of(backend):
    """The error that the framework raises when Python code branches on a traced value."""
    if backend == "jax":
        import jax

        return jax.errors.TracerBoolConversionError
    if backend == "tensorflow":
        import tensorflow as tf

        return tf.errors.OperatorNotAllowedInGraphError
    return TypeError


# Branches on traced values.


def doubled(x):
    return x * 2 if iso.namespace(x).sum(x) > 0 else x


def grown(x):
    while iso.namespace(x).sum(x) < 10:
        x = x * 2
    return x


@COMPILED
@pytest.mark.parametrize(
    "func", [doubled, grown, iso.grad(lambda x: doubled(x)[0])], ids=("if", "while", "if in grad")
)
def test_compiled_a_value_that_decides_names_cond(backend, xp, func):
    with pytest.raises(error_of(backend), match=r"iso\.cond\(pred, true_fun") as caught:
        iso.jit(func)(xp.asarray(X))
    assert str(caught.value).splitlines()[-1].endswith("static=)")
    assert isinstance(caught.value, TypeError)


@COMPILED
def test_it_says_so_once_and_within_cond_too(backend, xp):
    inner = lambda x: iso.cond(x[0] > 0, doubled, lambda x: x, x)
    with pytest.raises(error_of(backend)) as caught:
        iso.jit(iso.grad(lambda x: xp.sum(inner(x))))(xp.asarray(X))
    assert str(caught.value).count("iso.cond(pred, true_fun") == 1


@COMPILED
def test_mapped_a_value_that_decides_names_cond(backend, xp):
    with pytest.raises((TypeError, RuntimeError), match=r"iso\.cond\(pred, true_fun"):
        iso.vmap(doubled)(xp.asarray(np.stack([X, X])))


@pytest.mark.parametrize("backend", ["jax"], indirect=True)  # the others run the loop step by step
def test_a_step_that_is_traced_by_itself_names_cond(backend, xp):
    step = lambda carry, x: (carry + x if x > 0 else carry, x)
    with pytest.raises(error_of(backend), match=r"iso\.cond"):
        iso.scan(step, xp.asarray(0.0), xp.asarray(X))


def test_where_nothing_is_compiled_a_value_decides(backend, xp):
    np.testing.assert_array_equal(numpy_of(doubled(xp.asarray(X))), 2 * X)
    slope = iso.grad(lambda x: xp.sum(doubled(x)))(xp.asarray(X))
    np.testing.assert_array_equal(numpy_of(slope), [2, 2, 2])


# An array where Python needs an index or a number.


@COMPILED
def test_compiled_an_array_as_an_index_names_at(backend, xp):
    i = xp.asarray(1)
    with pytest.raises(TypeError, match=r"iso\.at\(x\)\[i\]\.get\(\)"):
        iso.jit(lambda x, i: ["a", "b"][i] and x)(xp.asarray(X), i)
    with pytest.raises(TypeError, match=r"iso\.fori_loop to count"):
        iso.jit(lambda x, n: sum(x for _ in range(n)))(xp.asarray(X), i)


def test_what_is_differentiated_is_no_index_and_at_is_named(backend, xp):
    errors = (TypeError, IndexError, AttributeError)
    for func in (lambda x: xp.sum([x, x][x[0]]), lambda x: xp.sum(xp.asarray(X)[x[0]] * x)):
        with pytest.raises(errors, match=r"iso\.at\([ax]\)\[i\]\.get\(\)"):
            iso.grad(func)(xp.asarray(X))


# the others accept such an index
@pytest.mark.parametrize("backend", ["tensorflow"], indirect=True)
def test_tensors_that_take_no_arrays_as_indices_name_at(backend, xp):
    rows = xp.asarray([0, 1])
    for transform in (iso.grad, iso.jit):
        with pytest.raises(TypeError, match=r"iso\.at\(x\)\[i\]\.get\(\)"):
            transform(lambda x: xp.sum(x[rows]))(xp.asarray(X))
    slope = iso.grad(lambda x: xp.sum(iso.at(x)[rows].get()))(xp.asarray(X))
    np.testing.assert_array_equal(numpy_of(slope), [1, 1, 0])


OTHERS = {"numpy": "torch", "jax": "torch", "tensorflow": "torch", "torch": "jax"}


def test_an_index_of_another_framework_names_both(backend, xp):
    """An index array of another framework raises, except NumPy's integers."""
    other = OTHERS[backend]
    place = iso.at(xp.asarray(X))[load(other).from_numpy(np.array([1]))]
    for use in (place.get, lambda: place.set(0.0)):
        with pytest.raises(TypeError, match=f"arrays of 2 backends in one call: .*{other}"):
            use()
    np.testing.assert_array_equal(numpy_of(iso.at(xp.asarray(X))[np.array([1])].get()), X[1:2])


FILLS = {
    "one": lambda a, x: a.__setitem__(1, x[0]),
    "some": lambda a, x: a.__setitem__(slice(0, 2), x[:2]),
    "all": lambda a, x: a.__setitem__(slice(None), x),
    "fill": lambda a, x: a.fill(x[0]),
}


@pytest.mark.parametrize("fill", FILLS.values(), ids=FILLS)
@pytest.mark.parametrize(
    ("transform", "backend"),
    # TensorFlow's own tape does not notice: see `assigned` in tests/borders/ledger.toml
    [("grad", "jax"), ("grad", "torch"), ("jit", "jax"), ("jit", "tensorflow"), ("jit", "torch")],
    indirect=["backend"],
)
@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")
def test_a_value_put_into_an_array_of_numpys_names_at(backend, xp, transform, fill):
    def func(x):
        a = np.zeros(3)
        fill(a, x)
        return xp.sum(x) + a.sum()

    with pytest.raises(Exception, match=r"iso\.at\(.\)\[i\]\.set\(.\)") as caught:
        getattr(iso, transform)(func)(xp.asarray(X))
    assert isinstance(caught.value, (TypeError, ValueError, RuntimeError))


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
@pytest.mark.parametrize("fill", FILLS.values(), ids=FILLS)
def test_a_traced_value_put_into_an_array_names_at(backend, fill):
    def func(x):
        a = np.zeros(3)
        fill(a, x)
        return a.sum()

    with pytest.raises((TypeError, ValueError), match=r"iso\.at\(a\)\[i\]\.set\(x\)") as caught:
        iso.grad(func)(X)
    # the message itself says so, not only its cause
    assert "gradient would be lost" in str(caught.value)


# SciPy functions.


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
@pytest.mark.parametrize("name", ["struve", "owens_t", "eval_legendre"])
def test_a_special_function_without_a_rule_is_scipys(backend, name):
    func = getattr(special, name)
    args = [1.0] * (func.nin - 1)
    with pytest.raises(NotImplementedError, match=f"^scipy.special.{name}: no derivative rule"):
        iso.grad(lambda x: func(*args, x).sum())(X)


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
def test_other_functions_of_scipy_are_named_too(backend):
    cases = {
        "scipy.linalg.expm": lambda x: linalg.expm(np.outer(x, x)).sum(),
        "scipy.linalg.solve": lambda x: linalg.solve(np.outer(x, x) + np.eye(3), x).sum(),
        "scipy.signal.convolve": lambda x: signal.convolve(x, x).sum(),
    }
    for name, func in cases.items():
        said = f"^{name}: no derivative rule; use isomorph.{name}; a traced NumPy value"
        with pytest.raises(TypeError, match=said):
            iso.grad(func)(X)


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
def test_functions_of_numpy_keep_their_names(backend):
    odd = np.frompyfunc(lambda a: a, 1, 1)
    cases = {
        r"^numpy\.subtract\.reduceat: no": lambda x: np.subtract.reduceat(x, [0, 2]).sum(),
        r"^numpy\.sin: in-place result": lambda x: np.sin(x, out=np.zeros(3)).sum(),
        r"^<lambda> \(vectorized\): no derivative rule": lambda x: odd(x).sum(),
    }
    for says, func in cases.items():
        with pytest.raises((NotImplementedError, TypeError), match=says):
            iso.grad(func)(X)


# Images with channels in the wrong position.

IMAGES = {
    "conv2d": lambda x, w, c: iso.conv2d(x, w((3, 3, 3, 4)), 1, "SAME"),
    "conv2d_transpose": lambda x, w, c: iso.conv2d_transpose(x, w((3, 3, 3, 4)), 1, "SAME"),
    "depthwise_conv2d": lambda x, w, c: iso.depthwise_conv2d(x, w((3, 3, 3)), 1, "SAME"),
    "batch_norm": lambda x, w, c: iso.batch_norm(x, w((3,)), w((3,))),
    "group_norm": lambda x, w, c: iso.group_norm(x, 3, weight=w((3,))),
    "instance_norm": lambda x, w, c: iso.instance_norm(x, weight=w((3,))),
    "max_pool": lambda x, w, c: iso.max_pool(x, 4),
    "avg_pool": lambda x, w, c: iso.avg_pool(x, 4),
    "adaptive_avg_pool": lambda x, w, c: iso.adaptive_avg_pool(x, 4),
    "Conv2D": lambda x, w, c: iso.Conv2D(3, 4, 3)(x),
    "Conv2DTranspose": lambda x, w, c: iso.Conv2DTranspose(3, 4, 3)(x),
    "DepthwiseConv2D": lambda x, w, c: iso.DepthwiseConv2D(3, 3)(x),
    "BatchNorm": lambda x, w, c: iso.BatchNorm(3)(x),
    "GroupNorm": lambda x, w, c: iso.GroupNorm(3, 3)(x),
    "MaxPool": lambda x, w, c: iso.MaxPool(4)(x),
}


@pytest.mark.parametrize("name", IMAGES)
def test_channels_on_the_other_side_are_seen(backend, xp, name):
    with iso.use_backend(backend, dtype="float32"):
        make = lambda shape: xp.ones(shape, dtype=xp.float32)
        says = r"x \[2, 3, 32, 32\] looks as if its channels were first: write data_format="
        with pytest.raises(ValueError, match=says) as caught:
            IMAGES[name](make((2, 3, 32, 32)), make, None)
        assert '"NCHW"' in str(caught.value) or '"channel_first"' in str(caught.value)
        IMAGES[name](make((2, 32, 32, 3)), make, None)  # the right layout works


def test_and_channels_that_are_last_where_first_ones_were_said(backend, xp):
    x, w = xp.ones((2, 32, 32, 3)), xp.ones((3, 3, 3, 4))
    says = r'channels were last: write data_format="NHWC", or xp.moveaxis\(x, -1, 1\)'
    with pytest.raises(ValueError, match=says):
        iso.conv2d(x, w, 1, "SAME", data_format="NCHW")
    with pytest.raises(ValueError, match=r'channels were last: write data_format="channel_last"'):
        iso.batch_norm(x, xp.ones(3), xp.ones(3), data_format="channel_first")


def test_other_sizes_that_do_not_fit_are_not_taken_for_that(backend, xp):
    x = xp.ones((2, 8, 8, 5))
    for call in (
        lambda: iso.conv2d(x, xp.ones((3, 3, 3, 4)), 1, "SAME"),
        lambda: iso.batch_norm(x, xp.ones(3), xp.ones(3)),
        lambda: iso.max_pool(x, 9),
    ):
        with pytest.raises(ValueError, match="needed") as caught:
            call()
        assert "looks as if" not in str(caught.value)


# Names from other libraries.

NAMES = {
    "parameters": "module.v is the nest of trained arrays",
    "named_parameters": "module.v",
    "state_dict": r"module.v .*iso\.save\(path, module\)",
    "load_state_dict": r"iso\.load\(path, module\) .*iso\.export\.from_torch_state_dict",
    "weight": "named w and b",
    "bias": "named w and b",
    "to": r'iso\.convert\(module, "torch", device=None\)',
    "cuda": r"iso\.convert",
    "zero_grad": r"iso\.grad and iso\.value_and_grad return them",
    "requires_grad_": r"module\.freeze",
    "register_buffer": r"iso\.State",
    "children": r"module\.sub_mods",
    "trainable_variables": "module.v",
    "fit": r"iso\.fit\(module, data, loss, optimizer, epochs\)",
    "compile": r"iso\.jit\(module\), iso\.train_step\(loss, optimizer\)",
    "evaluate": r"iso\.evaluate\(module, data, metrics\)",
    "predict": r"module\.eval\(\)\(x\)",
    "summary": r"iso\.summary\(module, x\)",
    "save": r"iso\.save\(path, module\)",
    "init": r"module\.apply\(v, state, x\)",
}


class Net(iso.Module):
    def __init__(self):
        self.inner = iso.LayerNorm(2)

    def forward(self, x):
        return self.inner(x)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_another_library_says_what_it_is_here(backend, name):
    with iso.use_backend(backend):
        net = Net()
    assert not hasattr(net, name)
    with pytest.raises(AttributeError, match=f"Net has no attribute '{name}'; .*{NAMES[name]}"):
        getattr(net, name)
    with pytest.raises(AttributeError, match="Net has no attribute 'nonsense'$"):
        getattr(net, "nonsense")  # noqa: B009


def test_what_the_advice_says_works(backend, xp, tmp_path):
    with iso.use_backend(backend):
        net = Net()
    assert net.train() is net.eval() is net
    assert list(iso.convert(net, "numpy", device=None).v["inner"]) == ["w", "b"]
    iso.save(tmp_path / "net", net)
    loaded = iso.load(tmp_path / "net", net)
    np.testing.assert_array_equal(numpy_of(loaded.inner.w), numpy_of(net.inner.w))
    assert list(net.sub_mods(show_v=False)) == ["inner"]


def test_a_module_that_has_such_a_name_keeps_it(backend):
    with iso.use_backend(backend):
        layer = iso.LSTM(2, 3)
    assert tuple(layer.bias.shape) == (12,)
    net = type("Mine", (Net,), {"fit": lambda self: "own"})()
    assert net.fit() == "own"


@pytest.mark.parametrize("name", ["adam", "adamw", "sgd", "lion"])
def test_optimizers_are_where_they_are(name):
    with pytest.raises(AttributeError, match=rf"write iso\.optimizers\.{name}\(lr\)"):
        getattr(iso, name)
    assert callable(getattr(iso.optimizers, name))


LAYERS = [
    (lambda **kw: iso.LayerNorm(3, **kw), "LayerNorm", "eps", "write epsilon="),
    (lambda **kw: iso.BatchNorm(3, **kw), "BatchNorm", "eps", "write epsilon="),
    (lambda **kw: iso.Linear(3, 4, **kw), "Linear", "use_bias", "write bias="),
    (lambda **kw: iso.Conv2D(3, 4, 3, **kw), "Conv2D", "stride", "write strides="),
    (lambda **kw: iso.Conv2D(3, 4, 3, **kw), "Conv2D", "dilation", "write dilations="),
    (lambda **kw: iso.Dropout(0.5, **kw), "Dropout", "p", "write prob"),
    (lambda **kw: iso.LSTM(3, 4, **kw), "LSTM", "batch_first", "write time_major="),
    (lambda **kw: iso.Embedding(3, 4, **kw), "Embedding", "embedding_dim", "write width"),
]


@pytest.mark.parametrize(("make", "name", "word", "says"), LAYERS)
def test_a_keyword_of_another_library_says_so_in_layers(make, name, word, says):
    expected = f"^{name}: got an unexpected keyword argument '{word}'; {says}"
    with pytest.raises(TypeError, match=expected):
        make(**{word: 1})
    with pytest.raises(TypeError, match=f"^{name}: got an unexpected keyword argument 'spam'$"):
        make(spam=1)


def test_a_module_of_ones_own_keeps_pythons_words():
    class Mine(iso.Module):
        def __init__(self, size):
            self.layer = iso.Linear(size, 2, key=0)

    with pytest.raises(TypeError, match=r"Mine\.__init__\(\) got an unexpected keyword"):
        Mine(2, eps=1)


@pytest.mark.parametrize("name", ["eval", "train", "apply", "freeze", "unfreeze"])
def test_an_attribute_is_not_called_as_a_method_of_modules(name):
    for value in (1, np.ones(2), iso.Linear(2, 2, key=0), len):
        with pytest.raises(AttributeError, match=f"Net: an attribute cannot be named {name}, wh"):
            setattr(Net(), name, value)


KEYWORDS = [
    (iso.cross_entropy, "from_logits", "cross entropies .*logits, never probabilities"),
    (iso.binary_cross_entropy, "from_logits", "cross entropies .*logits, never probabilities"),
    (iso.cross_entropy, "weight", 'write reduction="none"'),
    (iso.mse, "size_average", 'write reduction="mean"'),
    (iso.mae, "reduce", 'write reduction="mean"'),
    (iso.huber, "sample_weight", 'write reduction="none"'),
    (iso.kl_divergence, "size_average", 'write reduction="mean"'),
    (iso.softmax, "dim", "write axis="),
    (iso.log_softmax, "dim", "write axis="),
    (iso.logsumexp, "keepdim", "write keepdims="),
    (iso.layer_norm, "eps", "write epsilon="),
    (iso.rms_norm, "eps", "write epsilon="),
    (iso.group_norm, "eps", "write epsilon="),
    (iso.instance_norm, "eps", "write epsilon="),
    (iso.batch_norm, "eps", "write epsilon="),
]


@pytest.mark.parametrize("name", ["adam", "adamw", "sgd", "lion", "rmsprop", "lamb", "lars"])
def test_the_learning_rate_is_called_lr(name):
    make = getattr(iso.optimizers, name)
    with pytest.raises(TypeError, match=f"{name}: .*'learning_rate'; write lr="):
        make(learning_rate=0.1)
    assert make(lr=0.1) is not None


@pytest.mark.parametrize(
    ("func", "word", "says"), KEYWORDS, ids=lambda x: getattr(x, "__name__", x)
)
def test_a_keyword_of_another_library_says_what_it_is_here(backend, xp, func, word, says):
    args = [xp.ones((2, 3))] * {"batch_norm": 3}.get(func.__name__, 1)
    if func.__module__.endswith("loss") or func is iso.group_norm:
        args = [*args, xp.ones((2, 3))] if func is not iso.group_norm else [*args, 1]
    expected = f"{func.__name__}: got an unexpected keyword argument '{word}'; {says}"
    with pytest.raises(TypeError, match=expected):
        func(*args, **{word: 1})
    with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'$"):
        func(*args, nonsense=1)


# Labels in programs that TensorFlow runs without XLA, such as those with convolutions.


@pytest.mark.parametrize("backend", ["jax", "tensorflow"], indirect=True)
@pytest.mark.parametrize("label", [3, -1])
def test_beside_a_convolution_a_label_that_is_no_class_is_nan(backend, label):
    to = load(backend).from_numpy
    x, w = to(np.ones((2, 4, 4, 1), np.float32)), to(np.ones((3, 3, 1, 3), np.float32))

    def loss(w, labels):
        y = iso.conv2d(x, w, 1, "SAME")
        return iso.cross_entropy(iso.namespace(y).mean(y, axis=(1, 2)), labels, reduction="none")

    found = numpy_of(iso.jit(loss)(w, to(np.array([0, label]))))
    assert np.isnan(found[1])
    np.testing.assert_allclose(found[0], np.log(3), rtol=1e-6)
