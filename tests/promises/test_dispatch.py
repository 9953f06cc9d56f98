"""The array decides the backend: every kind of array is recognized, and nothing else is."""

import copy
import pickle
import subprocess
import sys
import threading
from importlib.metadata import EntryPoint

import numpy as np
import pytest
from frameworks import NOT_INSTALLED, enable_x64, jax, tf, torch

import isomorph as iso
from isomorph.core import dispatch
from oracles import kind_of, verbs_of

OWN = {
    "numpy": [np.ones(2), np.float32(1.0), np.ones(2).view(np.recarray)],
    "jax": [jax.numpy.ones(2)],
    "tensorflow": [tf.ones(2), tf.Variable([1.0])],
    "torch": [torch.ones(2), torch.nn.Parameter(torch.ones(2))],
}
NO_ARRAYS = {
    "numpy": np.dtype("float32"),
    "jax": jax.devices()[0],
    "tensorflow": tf.float32,
    "torch": torch.nn.Linear(1, 1),
}


def test_every_array_type_finds_its_namespace(backend, xp):
    for x in OWN[backend]:
        assert iso.namespace(x) is xp
        assert iso.namespace(1.0, None, x, True) is xp


def test_copies_and_pickles_of_a_namespace_are_the_namespace(backend, xp):
    for space in (xp, xp.linalg, xp.fft):
        for again in (pickle.loads(pickle.dumps(space)), copy.copy(space), copy.deepcopy(space)):
            assert again is space


def test_symbolic_and_traced_arrays_find_their_namespace(backend, xp):
    seen = []

    def f(x):
        seen.append(iso.namespace(x))
        return x.sum() if backend == "torch" else xp.sum(x)

    x = OWN[backend][0]
    iso.grad(f)(x)
    compiled = {"jax": jax.jit, "tensorflow": tf.function, "torch": torch.func.vmap}.get(backend)
    if compiled is not None:
        compiled(f)(x)
    iso.vjp(lambda x: iso.grad(f)(x), x)
    assert len(seen) == (2 if backend == "numpy" else 3)
    assert all(found is xp for found in seen)


def test_a_subclass_finds_its_namespace(backend, xp):
    bases = {"numpy": np.ndarray, "torch": torch.Tensor}
    if backend in bases:
        subclass = type("Mine", (bases[backend],), {})
        x = np.ones(2).view(subclass) if backend == "numpy" else torch.ones(2).as_subclass(subclass)
    else:  # neither framework lets users subclass its arrays
        x = OWN[backend][-1]
    assert iso.namespace(x) is xp


def test_what_is_no_array_raises_and_says_so(backend, xp):
    with pytest.raises(
        TypeError,
        match="no backend .*numpy, jax, tensorflow or torch",
    ):
        iso.namespace(NO_ARRAYS[backend])
    with pytest.raises(TypeError, match="no backend handles builtins.list"):
        iso.namespace([1.0], OWN[backend][0])
    with pytest.raises(TypeError, match="needed at least one array, got float$"):
        iso.namespace(1.0, None)


def test_two_frameworks_raise_and_both_are_named(backend, xp):
    others = [name for name in OWN if name != backend and name not in NOT_INSTALLED]
    if not others:
        pytest.skip("no other framework is installed")
    for other in others:
        with pytest.raises(TypeError, match=f"(?=.*{backend})(?=.*{other}).*iso.convert"):
            iso.namespace(OWN[backend][0], OWN[other][0])


def test_a_name_outside_the_vocabulary_raises_and_says_what_is_there(backend, xp):
    with pytest.raises(
        AttributeError, match=f"isomorph.{backend} has no 'frobnicate'.*array API standard"
    ):
        _ = xp.frobnicate
    with pytest.raises(AttributeError, match=f"isomorph.{backend}.linalg has no 'expm'"):
        _ = xp.linalg.expm


@pytest.mark.takes("it starts another process")
def test_import_loads_no_framework(backend):
    code = f"""
import sys
FRAMEWORKS = {{"jax", "jaxlib", "tensorflow", "torch"}}
import isomorph as iso
from isomorph.core import dispatch
assert not set(sys.modules) & FRAMEWORKS, "import isomorph imported a framework"
iso.backends()
assert not set(sys.modules) & FRAMEWORKS, "backends() imported a framework"
import {backend}
own = set(sys.modules) & FRAMEWORKS  # TensorFlow imports JAX by itself
with iso.use_backend({backend!r}):
    x = iso.ones(3)
iso.grad(lambda x: iso.namespace(x).sum(x))(x)
assert iso.backends()[{backend!r}].installed, "a package hides the function"
print("beyond", sorted(set(sys.modules) & FRAMEWORKS - own))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "beyond []"


def test_creation_goes_home(backend, xp):
    with iso.use_backend(backend, dtype="float32") as within:
        assert within is xp
        assert iso.namespace() is xp
        made = [
            iso.zeros(2),
            iso.ones((2,)),
            iso.full(2, 1.5),
            iso.arange(0.0, 2.0),
            iso.linspace(0.0, 1.0, 2),
        ]
        made += [iso.eye(2), iso.asarray([1.0, 2.0])]
        for x in made:
            assert kind_of(x) == backend
            assert x.dtype == xp.float32
        assert not verbs_of(xp).is_float(iso.arange(3).dtype)
        assert not verbs_of(xp).is_float(iso.full(2, 3).dtype)
        assert not verbs_of(xp).is_float(iso.asarray([1, 2]).dtype)
        assert iso.zeros(1, dtype="float64").dtype == xp.float64
        assert kind_of(iso.zeros(1, backend="numpy")) == "numpy"
        assert iso.asarray(np.ones(2)).dtype == np.float64  # an existing array keeps its dtype
        assert kind_of(iso.asarray(np.ones(2), backend=backend)) == backend
        with pytest.raises(KeyError), iso.use_backend("numpy"):
            assert kind_of(iso.ones(1)) == "numpy"
            raise KeyError
        assert kind_of(iso.ones(1)) == backend
    assert kind_of(iso.ones(1)) == "numpy"


def test_home_is_seen_by_its_own_thread_alone(backend, xp):
    seen = []
    with iso.use_backend(backend):
        thread = threading.Thread(target=lambda: seen.append(kind_of(iso.ones(1))))
        thread.start()
        thread.join()
    assert seen == ["numpy"]


def test_bad_homes_raise(backend, xp):
    with pytest.raises(ValueError, match="no backend .*'cupy'.*numpy, jax, tensorflow, torch"):
        with iso.use_backend("cupy"):
            pass
    with pytest.raises(TypeError, match="use_backend: needed a floating dtype, got 'int32'"):
        with iso.use_backend(backend, dtype="int32"):
            pass
    with pytest.raises(TypeError, match=f"dtype: .* of {backend} .bool, int8.*got 'float31'"):
        iso.zeros(2, dtype="float31", backend=backend)


def test_dtypes_are_taken_by_name_or_type(backend, xp):
    for dtype in ("float32", np.float32, np.dtype("float32"), xp.float32):
        assert iso.zeros(1, dtype=dtype, backend=backend).dtype == xp.float32
    assert iso.zeros(1, dtype=float, backend=backend).dtype == xp.float64
    assert iso.zeros(1, dtype=bool, backend=backend).dtype == xp.bool
    with pytest.raises(TypeError, match=f"dtype: .* of {backend} .*got 3"):
        iso.zeros(1, dtype=3, backend=backend)
    with iso.use_backend(backend, dtype="float32"):
        assert iso.asarray([1 + 2j]).dtype in (xp.complex64, xp.complex128)


def test_devices_are_checked_in_one_wording(backend, xp):
    assert kind_of(iso.zeros(2, device="cpu", backend=backend)) == backend
    with iso.use_backend(backend, device="cpu"):
        assert kind_of(iso.ones(2)) == backend
    for wrong in ("cuda:77", "cpu:7", "toaster"):
        with pytest.raises(ValueError, match=f"(?i)device: .* of {backend} .*cpu.*got '{wrong}'"):
            iso.zeros(2, device=wrong, backend=backend)


def test_backends_and_doctor_tell_what_is_installed(backend, capfd):
    from isomorph.cli.command import main

    found = iso.backends()[backend]
    assert found.installed
    assert found.version.partition("+")[0] == sys.modules[backend].__version__.partition("+")[0]
    assert any("cpu" in d.lower() for d in found.devices)
    assert main(["doctor"]) == 0
    out = capfd.readouterr().out
    assert any(line.startswith(backend) and found.version in line for line in out.splitlines())


def registering(monkeypatch, **values):
    """Register backends of fake packages; a name may have several values."""
    entries = [EntryPoint(n, v, dispatch.GROUP) for n, vs in values.items() for v in vs.split()]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: entries)
    monkeypatch.setattr(dispatch, "REGISTERED", {})


def test_two_backends_of_one_name_are_refused(monkeypatch):
    registering(monkeypatch, foo="one:backend two:backend")
    with pytest.raises(ImportError, match="'foo' .*one:backend .*two:backend"):
        dispatch.load("foo")
    registering(monkeypatch, numpy="other:backend")
    with pytest.raises(ImportError, match="'numpy' .*isomorph .*other"):
        dispatch.names()


def test_what_is_registered_is_a_backend_of_that_name(monkeypatch):
    registering(monkeypatch, foo="math:pi", bar="isomorph.backends.numpy:backend")
    assert dispatch.names()[-2:] == ("bar", "foo")
    for name, got in (("foo", "3.14"), ("bar", "<the backend numpy>")):
        with pytest.raises(TypeError, match=f"'{name}': needed .*composed.Backend .*got {got}"):
            dispatch.load(name)
        assert name not in dispatch.LOADED


@pytest.mark.takes("another process, which imports torch and Dynamo")
@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_the_first_call_may_be_compiled(backend):
    # Dynamo cannot trace the import of a backend: import it before
    code = """
import torch, isomorph as iso
def f(x): xp = iso.namespace(x); return xp.sum(x**3)
def g(x): return iso.grad(lambda y: iso.namespace(y).sum(iso.grad(f)(y)))(x)
print(torch.compile(g, fullgraph=True, backend="aot_eager")(torch.tensor([1.0, 2.0])).tolist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[6.0, 12.0]", done.stderr


@pytest.mark.parametrize("backend", ["jax"], indirect=True)
@pytest.mark.parametrize("word", ["float64", "complex128"])
def test_a_dtype_that_jax_would_narrow_is_refused(backend, word):
    """Without 64-bit types, JAX makes float32 of float64, and only warns."""
    with enable_x64(False):
        for make in (
            lambda: iso.zeros(2, dtype=word, backend=backend),
            lambda: iso.asarray([1.0], dtype=np.dtype(word), backend=backend),
            lambda: iso.asarray(iso.ones(2, backend=backend), dtype=word),
        ):
            with pytest.raises(TypeError, match=f"dtype: JAX has no {word} here; turn on 64-bit"):
                make()
        if word == "float64":
            with (
                pytest.raises(TypeError, match="JAX has no float64"),
                iso.use_backend(backend, dtype=word),
            ):
                iso.ones(2)
        assert iso.zeros(2, backend=backend).dtype == np.float32
    with enable_x64(True):
        assert iso.zeros(2, dtype=word, backend=backend).dtype == np.dtype(word)
