"""Private names of frameworks: each is used in one place and exists in the installed version. If
all of them were gone, namespaces, gradients and layers would still work.
"""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from frameworks import NOT_INSTALLED, ours

import isomorph as iso
from isomorph.backends.unpromised import Gone, Name, Names

SOURCE = Path(iso.__file__).parent
LISTS = {name: ours(f"{name}.private") for name in ("tensorflow", "torch")}
WORDS = [
    pytest.param(name, word, id=f"{name}-{word}")
    for name, module in LISTS.items()
    if name not in NOT_INSTALLED
    for word in module.NAMES
]


@pytest.mark.filterwarnings("ignore:.torch.jit.script")  # raised by torch itself
@pytest.mark.parametrize(("backend", "word"), WORDS, indirect=["backend"])
def test_each_is_there(backend, word):
    names = LISTS[backend].ALL
    if names.is_newer(word):
        pytest.skip(f"since version {names.names[word].since}")
    assert names.found(word) is not None
    assert names.names[word].use
    assert names.names[word].since


ROOTS = {"torch", "tf", "tensorflow", "jax", "jaxlib", "forward_ad"}


def private_uses(file):
    """Every `torch._name`, and every import from a module with such a name."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Attribute):
            names = [ast.unparse(node)]
        else:
            continue
        for name in names:
            root, *rest = name.split(".")
            hidden = [part for part in rest if part.startswith("_") and not part.endswith("__")]
            hidden += ["python"] * name.startswith("tensorflow.python")
            operation = name.startswith("torch.ops.aten.")  # operations of graphs are allowed
            if root in ROOTS and hidden and not operation:
                yield f"{file.relative_to(SOURCE)}:{node.lineno}: {name}"


@pytest.mark.takes("it reads every file of the package")
def test_they_are_named_in_private_alone():
    files = [file for file in SOURCE.rglob("*.py") if file.name != "private.py"]
    assert len(files) > 100
    found = [use for file in files for use in private_uses(file)]
    assert found == []


def test_the_hunt_finds_them(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "SOURCE", tmp_path)
    file = tmp_path / "file.py"
    for line in ("import torch._inductor", "from torch._C import x", "torch._C._nn.y(1)",
                 "from tensorflow.python.eager import record", "import jax._src.core"):  # fmt: skip
        file.write_text(line)
        assert len(list(private_uses(file))) >= 1, line
    file.write_text("import torch\nfrom jax.core import Tracer\ntorch.__version__\nself._torch.x")
    assert list(private_uses(file)) == []


def test_one_that_is_newer_than_the_framework_is_not_missed(recwarn):
    names = Names("numpy", "numpy 2", {"new": Name("json", "no_such_name", "speed", None, "999.1")})
    assert names.is_newer("new")
    module = {"__name__": "private"}
    assert callable(names.get(module, "new"))
    assert not recwarn.list
    with pytest.raises(Gone, match="speed: needed json.no_such_name"):
        module["new"]()
    old = Names("numpy", "numpy 2", {"old": Name("json", "no_such_name", "speed", None, "1.13")})
    assert not old.is_newer("old")
    with pytest.warns(UserWarning, match="speed: needed"):
        old.get(module, "old")


def test_one_that_is_gone_is_refused_with_a_sentence_or_has_something_in_its_place():
    table = {
        "needed": Name("json", "no_such_name", "writing files"),
        "asked": Name("no_such_module", "name", "a question", lambda: "careful"),
        "there": Name("json", "loads", "reading files"),
    }
    names, module = Names("json", "json 1 to 2", table), {"__name__": "mine"}
    says = r"writing files: needed json\.no_such_name, which json .*not have; .* json 1 to 2"
    with pytest.warns(UserWarning, match=says):
        gone = names.get(module, "needed")
    with pytest.raises(Gone, match=says):
        gone(1, key=2)
    with pytest.warns(UserWarning, match="a question: needed no_such_module"):
        assert names.get(module, "asked")() == "careful"
    assert names.get(module, "there")("[1]") == [1]
    assert module.keys() == {"__name__", "needed", "asked", "there"}  # looked up once
    with pytest.raises(AttributeError, match="module 'mine' has no attribute 'spam'"):
        names.get(module, "spam")
    assert names.first("needed", "there") is json.loads
    assert names.first("needed", "asked") is None


WITHOUT = """
import sys, warnings
import numpy as np
import {module}
warnings.simplefilter("ignore")
from importlib import import_module
unpromised = import_module("isomorph.backends.unpromised")
def gone(self, word):
    raise AttributeError(word)
unpromised.Names.found = gone
import isomorph as iso
name = {name!r}
x = iso.convert(np.array([[0.5, 1.0, 2.0], [1.5, -1.0, 0.25]]), name)
xp = iso.namespace(x)
close = lambda a, b: np.testing.assert_allclose(np.asarray(a), b, rtol=1e-12, atol=1e-12)
n = np.array([[0.5, 1.0, 2.0], [1.5, -1.0, 0.25]])
close(xp.sum(xp.exp(x), axis=0), np.exp(n).sum(0))
close(xp.matmul(x, xp.matrix_transpose(x)), n @ n.T)
f = lambda x: xp.sum(xp.sin(x) * x)
value, slope = iso.value_and_grad(f)(x)
close(value, (np.sin(n) * n).sum())
close(slope, np.sin(n) + n * np.cos(n))
close(iso.hvp(f, (x,), (xp.ones_like(x),))[0], 2 * np.cos(n) - n * np.sin(n))
close(iso.grad(lambda x: xp.sum(iso.grad(f)(x)))(x), 2 * np.cos(n) - n * np.sin(n))
close(iso.jac(lambda x: x[:, 0] ** 2)(x)[1, 1, 0], 3.0)
labels = xp.asarray([2, 0])
close(iso.softmax(x, axis=1), np.exp(n) / np.exp(n).sum(1, keepdims=True))
p = np.exp(n) / np.exp(n).sum(1, keepdims=True)
close(iso.grad(lambda x: iso.cross_entropy(x, labels))(x), (p - np.eye(3)[[2, 0]]) / 2)
with iso.use_backend(name, dtype="float64"), iso.use_key(0):
    layers = iso.Linear(3, 4), iso.LayerNorm(4), iso.Activation("gelu"), iso.Linear(4, 3)
    model = iso.Sequential(*layers)
image = iso.convert(np.arange(32.0).reshape(1, 4, 4, 2), name)
pooled = iso.grad(lambda x: xp.sum(iso.max_pool(x, 2, 2, "VALID") ** 2))(image)
close(xp.sum(pooled), 2 * (10 + 11 + 14 + 15 + 26 + 27 + 30 + 31))
losses = []
loss_of = lambda m, x, y: iso.cross_entropy(m(x), y)
step = iso.train_step(loss_of, iso.optimizers.adam(1e-2), compiled=False)
state = step.init(model)
for _ in range(20):
    state, loss = step(state, x, labels)
    losses.append(float(loss))
assert losses[-1] < 0.7 * losses[0], losses
{more}
print("all is well")
"""
REFUSED = """
try:
    iso.jit(f)(x)
except NotImplementedError as error:
    said = str(error)
    assert "needed torch." in said and "isomorph was made for torch 2.10 to" in said, said
else:
    raise AssertionError("what needs them went on")
"""


@pytest.mark.takes("another process, which imports the framework")
@pytest.mark.parametrize(
    ("backend", "more"), [("torch", REFUSED), ("tensorflow", "")], indirect=["backend"]
)
def test_without_any_of_them_gradients_and_layers_live(backend, more):
    program = WITHOUT.format(module=backend, name=backend, more=more)
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert ran.stdout.strip() == "all is well"
