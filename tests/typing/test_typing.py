"""Type checking with pyright and mypy: right programs pass, and in wrong ones exactly the marked
lines are errors.
"""

import ast
import json
import re
import subprocess
import sys
import types
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import isomorph as iso
from isomorph import typing as iso_typing
from isomorph.backends import vocabulary
from isomorph.core.dispatch import OWN
from isomorph.layers.loss import REDUCTIONS
from isomorph.meanings.conv_plan import FORMATS
from isomorph.meanings.shapes import GENERAL
from isomorph.modules.layers import ACTIVATIONS
from isomorph.types import standard

HERE = Path(__file__).parent
FILES = ("programs.py", "mistakes.py")


def pyright():
    """(file, line, message) of every error."""
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run([*command, "-p", HERE], capture_output=True, text=True)
    said = json.loads(done.stdout)["generalDiagnostics"]
    return [
        (Path(x["file"]).name, x["range"]["start"]["line"] + 1, x["message"])
        for x in said
        if x["severity"] == "error"
    ]


def mypy(cache):
    """(file, line, message) of every error."""
    options = ["--config-file", HERE / "mypy.ini", "--cache-dir", cache, "--no-error-summary"]
    command = [sys.executable, "-m", "mypy", *options, *(HERE / name for name in FILES)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode < 2, done.stdout + done.stderr
    found = re.findall(r"^(.+?):(\d+): error: (.*)$", done.stdout, re.M)
    return [(Path(file).name, int(line), message) for file, line, message in found]


def marked():
    lines = (HERE / "mistakes.py").read_text().splitlines()
    return {n for n, line in enumerate(lines, 1) if line.endswith("# error")}


@pytest.mark.parametrize("checker", ["pyright", "mypy"])
@pytest.mark.takes("it runs type checkers")
def test_programs_pass_and_mistakes_are_seen(checker, tmp_path):
    errors = pyright() if checker == "pyright" else mypy(tmp_path)
    assert [e for e in errors if e[0] != "mistakes.py"] == []
    seen = {line: message for _, line, message in errors}
    assert len(marked()) > 75
    assert sorted(marked() - set(seen)) == [], "marked lines without an error"
    assert {n: seen[n] for n in sorted(set(seen) - marked())} == {}, (
        "errors in lines that are not marked"
    )


# Which public functions return Any, and why.
SOURCE = Path(iso.__file__).parent
ALIASES = {}  # type aliases that contain Any, by their definition
for file in SOURCE.rglob("*.py"):
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            ALIASES[node.targets[0].id] = node.value
MODULES = [name for name in iso.__all__ if isinstance(getattr(iso, name), types.ModuleType)]


def holds_any(annotation):
    """Whether a type contains Any, directly or through an alias."""
    names = {n.id for n in ast.walk(annotation) if isinstance(n, ast.Name)}
    texts = [n.value for n in ast.walk(annotation) if isinstance(n, ast.Constant)]
    words = names | {word for text in texts for word in re.findall(r"\w+", str(text))}
    known = [ALIASES[n] for n in words if n in ALIASES and ALIASES[n] is not annotation]
    return "Any" in words or any("Any" in ast.unparse(value) for value in known)


def is_overload(function):
    return any(ast.unparse(d).endswith("overload") for d in function.decorator_list)


def returning_any(body, names=None):
    """The public functions among statements whose return type contains Any in some overload."""
    found = {}
    for node in body:
        if isinstance(node, ast.FunctionDef) and (names is None or node.name in names):
            found.setdefault(node.name, []).append(node)
    for name, forms in found.items():
        told = [form for form in forms if is_overload(form)] or forms
        if any(form.returns is not None and holds_any(form.returns) for form in told):
            yield name


def body_of(thing):
    """The statements of the file that defines something."""
    return ast.parse(Path(sys.modules[thing.__module__].__file__).read_text()).body


def public_any():
    """The public functions, and methods of public classes, that return Any."""
    things = {name: getattr(iso, name) for name in iso.__all__ if name not in MODULES}
    for module in MODULES:
        names = getattr(iso, module).__all__
        things |= {f"{module}.{name}": getattr(getattr(iso, module), name) for name in names}
    for name, thing in things.items():
        if not isinstance(thing, type):
            if list(returning_any(body_of(thing), {thing.__name__})):
                yield name
            continue
        for cls in thing.__mro__:
            ours = cls.__module__.startswith("isomorph") and cls.__name__ != "Node"
            if ours and (cls is thing or not is_public(cls)):
                own = [n for n in body_of(cls) if getattr(n, "name", "") == cls.__name__]
                for method in returning_any(own[0].body):
                    if method[0] != "_" or method in ("__call__", "__getitem__", "__new__"):
                        yield f"{name}.{method}"


def is_public(cls):
    return getattr(iso, cls.__name__, None) is cls


@pytest.mark.takes("it reads all signatures")
def test_what_returns_any_has_a_reason():
    found = list(public_any())
    listed = [name for names in RETURNS_ANY.values() for name in names.split()]
    assert sorted(set(found) - set(listed)) == [], "returns Any, but is not listed"
    assert sorted(set(listed) - set(found)) == [], "listed, but does not return Any"
    assert len(listed) == len(set(listed))


RETURNS_ANY = {
    "whose array it is, the home or a name says when the program runs": """
        arange asarray eye full linspace ones zeros local_window_mask random.key
        initializers.constant initializers.glorot initializers.he initializers.lecun
        initializers.normal initializers.ones initializers.orthogonal
        initializers.truncated_normal initializers.uniform initializers.zeros""",
    "a nest with arrays of another framework in it; of a module or an array it is known": """
        convert to_numpy""",
    "a nest of what a module holds, whose keys are its attributes": """
        Module.v Module.state Module.top_v Module.v_with_top_v_key_chains Module.sub_mods
        Module.apply Module.part""",
    "with tracking; else it is what forward returns": "Module.__call__",
    "parts of a nest, for transforms": """
        Module.take_trained Module.put_trained Module.take_whole Module.put_whole""",
    "what was put into it": """
        Sequential.__getitem__ State.value TrainState.arrays TrainState.model Mean.value""",
    "a nest that the optimizer makes": "TrainState.optimizer",
    "with other argnums than 0, the gradient of an argument that is counted": """
        grad value_and_grad""",
    "nests twice over, of outputs and inputs": "jac jacfwd jacrev hessian value_and_jac",
    "a device, as the framework names it": "device_of",
    "with primals in a list; of a tuple it is known": "hvp",
    "the cotangent is given; what comes of it is known": "vjp",
    "without preserve_type, a plain array of a variable": "stop_gradient",
    "gradients in a form that paths choose": "execute_with_gradients",
    "the function knows NumPy's arrays alone, and is called with any": "host_function",
    "what is in a file": "load",
    "what the model returns": "predict",
    "a nest with NumPy's arrays in it": "distribute.World.fetch",
    "what an engine does with arrays of its framework; not for users": """
        distribute.World.cut distribute.World.exchange distribute.World.flags distribute.World.kept
        distribute.World.local distribute.World.means distribute.World.number
        distribute.World.packed distribute.World.placed distribute.World.program
        distribute.World.sum distribute.World.whole""",
    "an array, or with the weights of attention two": "MultiHeadAttention.forward",
    "a state may be left out: arrays of the kind of x": """
        LSTM.forward GRU.forward LSTM.start GRU.start""",
    "of a number a number, of an array an array": """
        optimizers.constant optimizers.cosine optimizers.one_cycle optimizers.step
        optimizers.warmup optimizers.warmup_cosine""",
}


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        (standard.Namespace, {*vocabulary.VOCABULARY, "linalg", "fft"}),
        (standard.Linalg, set(vocabulary.LINALG)),
        (standard.FFT, set(vocabulary.FFT)),
    ],
)
def test_the_types_of_a_namespace_have_its_names(typed, names):
    said = {*typed.__annotations__, *vars(typed)}
    plumbing = {name for name in said if name.startswith("_")} - {"__array_namespace_info__"}
    assert said - plumbing == names
    there = iso.namespace(np.ones(1))
    for name in names:
        part = {"Linalg": "linalg", "FFT": "fft"}.get(typed.__name__)
        assert hasattr(getattr(there, part) if part else there, name)


def test_the_words_of_types_are_those_that_are_taken():
    assert set(get_args(get_args(iso_typing.BackendName)[0])) == set(OWN)
    assert set(get_args(iso_typing.DTypeName)) == {*vocabulary.DTYPES, "float16", "bfloat16"}
    assert set(get_args(iso_typing.Format)) == set(GENERAL)
    formats = (iso_typing.Format1D, iso_typing.Format2D, iso_typing.Format3D)
    assert {n: set(get_args(f)) for n, f in enumerate(formats, 1)} == {
        n: set(pair) for n, pair in FORMATS.items()
    }
    assert {*get_args(iso_typing.Scalar), "counted"} == set(REDUCTIONS)
    assert set(get_args(iso_typing.ActivationName)) == set(ACTIVATIONS)
