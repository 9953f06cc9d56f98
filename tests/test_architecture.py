"""The rooms: who may name a framework, who may import whom, how large a file may be."""

import ast
import importlib
import pkgutil
from pathlib import Path

import pytest
from frameworks import ABSENT

import isomorph
from isomorph.backends.composed import Backend
from isomorph.backends.vocabulary import FFT, LINALG, VOCABULARY
from isomorph.dispatch import load

SOURCE = Path(isomorph.__file__).parent
FILES = {
    path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text())
    for path in SOURCE.rglob("*.py")
}
PACKAGES = {
    "numpy": {"numpy"},
    "jax": {"jax", "jaxlib"},
    "tensorflow": {"tensorflow", "keras"},
    "torch": {"torch", "array_api_compat"},
}
# Where a framework may be imported or named; NumPy's room is its backend, like any other's.
OPEN_ROOMS = ("backends/", "distribute/", "export/", "frontends/")
# The scoreboard knows the assertions of other packages by name; it imports none of them.
MAY_NAME = (*OPEN_ROOMS, "dispatch.py", "scoreboard/")
# Doors ask dispatch, dispatch loads backends, backends import meanings: nothing else reaches into a
# backend.
OUTER = {"backends/", "dispatch.py", "__init__.py"}


def imports(tree):
    """(module, is it at run time) for every import in a file, relative ones with their dots."""
    typing_only = {
        node
        for top in ast.walk(tree)
        if isinstance(top, ast.If) and "TYPE_CHECKING" in ast.dump(top.test)
        for node in ast.walk(top)
    }  # fmt: skip
    for node in ast.walk(tree):
        if node in typing_only:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


def code_strings(tree):
    """Every string constant that is no docstring."""
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        and node.body and isinstance(node.body[0], ast.Expr)
    }  # fmt: skip
    return [
        n.value for n in ast.walk(tree)
        if isinstance(n, ast.Constant) and isinstance(n.value, str) and id(n) not in docs
    ]  # fmt: skip


def test_a_framework_is_imported_only_in_its_rooms(backend):
    seen = 0
    for path, tree in FILES.items():
        roots = {name.partition(".")[0] for name in imports(tree)}
        if roots & PACKAGES[backend]:
            seen += 1
            assert path.startswith(OPEN_ROOMS), f"{path} imports {roots & PACKAGES[backend]}"
    assert seen >= 1


def test_a_framework_is_named_only_where_it_may_be(backend):
    for path, tree in FILES.items():
        if path.startswith(MAY_NAME) or (backend == "numpy" and path == "home.py"):
            continue  # the default home is NumPy: the one name a door must know
        named = [s for s in code_strings(tree) if backend in s.lower().split()]
        assert not named, f"{path} names {backend}: {named}"
        names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        assert not names & PACKAGES[backend], f"{path} uses {names & PACKAGES[backend]}"


def test_a_backend_is_reached_through_dispatch_alone(backend):
    checked = 0
    for path, tree in FILES.items():
        if path.startswith(tuple(OUTER)):
            continue
        checked += 1
        reached = [
            m
            for m in imports(tree)
            if "backends" in m.split(".") and m.split(".")[-1] != "vocabulary"
        ]
        assert not reached, f"{path} imports {reached}"
    assert checked >= 5
    room = {p for p in FILES if p.startswith(f"backends/{backend}")}
    for path in room:
        others = [
            m
            for m in imports(FILES[path])
            if set(m.split(".")) & (set(PACKAGES) - {backend}) and m.startswith(".")
        ]
        assert not others, f"{path} imports another backend: {others}"


def test_every_override_exists_on_the_base_class(backend):
    cls = type(load(backend))
    added = [
        n
        for n in vars(cls)
        if not n.startswith("_") and not hasattr(Backend, n) and n not in VOCABULARY
    ]
    assert set(added) <= {"name", "arrays"}, f"only on {backend}: {added}"


def test_every_verb_is_supplied(backend):
    cls = type(load(backend))
    abstract = [
        name for name, value in vars(Backend).items()
        if callable(value) and "_lacks" in getattr(getattr(value, "__code__", None), "co_names", ())
    ]  # fmt: skip
    assert len(abstract) >= 7
    if "jit" in vars(cls):  # it takes nests itself
        abstract = [n for n in abstract if n not in ("compile", "signature")]
    assert [n for n in abstract if getattr(cls, n) is getattr(Backend, n)] == []


def test_every_name_of_the_vocabulary_is_there(backend):
    xp = load(backend)
    assert [n for n in VOCABULARY if not hasattr(xp, n)] == []
    assert [n for n in LINALG if not hasattr(xp.linalg, n)] == []
    assert [n for n in FFT if not hasattr(xp.fft, n)] == []


def test_every_file_is_imported_by_another(backend):
    load(backend)
    reached = {
        "__init__.py",
        "command.py",
        "scoreboard/watching.py",
        "scoreboard/recorder.py",
    }  # the package and its command line are where people come in, and pytest into the scoreboard
    for path, tree in FILES.items():
        package = Path(path).parent
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.level:
                base = package
                for _ in range(node.level - 1):
                    base = base.parent
                stems = [base / (node.module or "").replace(".", "/")]
                stems += [stems[0] / alias.name for alias in node.names]
                for stem in stems:
                    reached |= {f"{stem.as_posix()}.py", (stem / "__init__.py").as_posix()}
    reached |= {f"{parent.as_posix()}/__init__.py" for p in FILES for parent in Path(p).parents}
    reached |= {
        f"backends/{backend}.py",
        f"backends/{backend}/__init__.py",
    }  # by dispatch, at run time
    mine = {
        p
        for p in FILES
        if not p.startswith("backends/") or p.startswith(f"backends/{backend}") or p.count("/") == 1
    }
    others = {f"backends/{n}.py" for n in PACKAGES}
    assert mine - reached - others == set()


def test_the_scoreboard_stands_alone(backend):
    """It uses nothing of the rest, and of the rest only the command line knows it."""
    seen = 0
    for path, tree in FILES.items():
        for node in ast.walk(tree):
            if path.startswith("scoreboard/"):
                seen += 1
                names = [
                    alias.name for alias in getattr(node, "names", []) if hasattr(alias, "name")
                ]
                if isinstance(node, ast.Import):
                    assert not [n for n in names if n.startswith("isomorph")], path
                elif isinstance(node, ast.ImportFrom):
                    assert node.level < 2, path
                    assert not (node.module or "").startswith(("isomorph", backend)), path
            elif isinstance(node, ast.ImportFrom) and "scoreboard" in (node.module or ""):
                assert path == "command.py"
    assert seen > 1000


def test_no_file_is_long_and_each_says_what_it_is_for():
    for path, tree in FILES.items():
        lines = (SOURCE / path).read_text().count("\n")
        assert lines <= 500, f"{path} has {lines} lines"
        if lines:
            assert ast.get_docstring(tree), f"{path} does not say what it is for"


# Tables filled while their modules are imported, and the handles that hold state by design.
FILLED = {"TRACED", "LATE"}
HANDLES = {"BACKENDS", "HOME", "HOSTED", "KEYS", "LEVELS", "MODES", "TALLY", "TRACING"}
CHANGES = {"append", "add", "update", "pop", "clear", "setdefault", "extend", "remove", "insert"}


def test_no_module_keeps_state():
    """Nothing at module level is changed from inside a function, but the handles above."""
    for path, tree in FILES.items():
        for node in ast.walk(tree):
            keeps = isinstance(node, (ast.Global, ast.Nonlocal))
            assert not keeps, f"{path}:{getattr(node, 'lineno', 0)} keeps state"
        tops = (
            {
                target.id
                for node in tree.body
                if isinstance(node, (ast.Assign, ast.AnnAssign))
                for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
                if isinstance(target, ast.Name)
            }
            - HANDLES
            - FILLED
        )
        for function in ast.walk(tree):
            if not isinstance(function, (ast.FunctionDef, ast.Lambda)):
                continue
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    changed = node.func.value if node.func.attr in CHANGES else None
                elif isinstance(node, ast.Subscript) and isinstance(node.ctx, (ast.Store, ast.Del)):
                    changed = node.value
                else:
                    continue
                name = changed.id if isinstance(changed, ast.Name) else None
                own = {
                    n.id
                    for n in ast.walk(function)
                    if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
                }
                assert name not in tops - own, f"{path}:{node.lineno} changes {name}"


def test_public_names_are_listed_typed_and_documented():
    assert len(set(isomorph.__all__)) == len(isomorph.__all__)  # the linter keeps their order
    for name in isomorph.__all__:
        thing = getattr(isomorph, name)
        assert thing.__doc__, name
        assert ">>>" in thing.__doc__, f"{name} has no executed example"
        code = getattr(thing, "__wrapped__", thing)
        if hasattr(code, "__annotations__") and not isinstance(code, type):
            assert "return" in code.__annotations__, f"{name} has no return type"


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)  # it needs no extra
def test_examples_in_docstrings_run(backend):
    import doctest

    import numpy as np

    ran, left = 0, 0
    runner = doctest.DocTestRunner()
    for module in pkgutil.walk_packages(isomorph.__path__, "isomorph."):
        if module.name.startswith("isomorph.backends"):
            continue
        try:
            found = importlib.import_module(module.name)
        except ImportError as error:
            if not any(name in str(error) for name in ABSENT):
                raise
            left += 1
            continue
        names = {"iso": isomorph, "np": np}
        for example in doctest.DocTestFinder().find(found, extraglobs=names):
            asked = " ".join(part.source for part in example.examples)
            if any(name in asked for name in ABSENT):
                left += 1
            else:
                assert runner.run(example).failed == 0
                ran += len(example.examples)
    assert ran >= len(isomorph.__all__) - 5 * left
    assert bool(left) <= bool(ABSENT)


def test_what_the_core_suite_names_is_there():
    from conftest import CORE

    for part in CORE:
        path, _, name = part.partition("::")
        file = Path(__file__).parent / path
        assert file.exists()
        assert not name or f"def {name}(" in file.read_text()
