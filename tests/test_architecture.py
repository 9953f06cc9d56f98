"""Rules for the source tree: who may name a framework, who may import whom, how large a file may
be.
"""

import ast
import importlib
import io
import pkgutil
import re
import tokenize
import types
from datetime import date
from functools import cache
from pathlib import Path

import pytest
from frameworks import ABSENT

import isomorph
from isomorph.backends.composed import Backend
from isomorph.backends.contract import Contract
from isomorph.backends.vocabulary import FFT, LINALG, VOCABULARY
from isomorph.core.dispatch import load

SOURCE = Path(isomorph.__file__).parent


@cache
def files():
    """All files of isomorph, parsed."""
    return {
        path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text())
        for path in (*SOURCE.rglob("*.py"), *SOURCE.rglob("*.pyi"))
    }


PACKAGES = {
    "numpy": {"numpy"},
    "jax": {"jax", "jaxlib"},
    "tensorflow": {"tensorflow", "keras"},
    "torch": {"torch", "array_api_compat"},
}
# Where a framework may be imported or named. NumPy counts as a framework like the others.
OPEN_ROOMS = ("backends/", "distribute/engines/", "export/", "frontends/")
# NumPy and SciPy under isomorph's names: they may name NumPy, and no other framework.
NUMPY_ROOMS = ("numpy/", "scipy/")
MAY_NAME = (*OPEN_ROOMS, "core/dispatch.py", "typing.py")
# What users of a framework tend to write, and what to write instead: it quotes framework names.
OF_HABITS = "modules/habits.py"
# the environment variables that launchers set; the number of processors
OF_LAUNCHERS = ("distribute/launchers.py", "distribute/launch.py")
# Words that give a framework away without its name.
DISGUISES = (
    "torch dynamo inductor functorch aten cuda cudnn autograd jax xla tensorflow tf keras cpu gpu"
)
# Who may import whom, from the bottom up. A room may import itself and what is listed. All unlisted
# files are doors: they may import everything but backends, of which they only know the contract.
TYPES = ("types/array_types.py", "types/standard.py", "typing.py")
GROUND = (
    *TYPES, "core/vocabulary.py", "core/contract.py", "core/dispatch.py", "core/code_readers.py",
)  # fmt: skip
MAY_IMPORT = {
    "types/array_types.py": (),
    "types/standard.py": ("types/array_types.py",),
    "typing.py": TYPES,
    "core/vocabulary.py": (),
    "core/code_readers.py": (),
    "version.py": (),
    "core/contract.py": ("core/vocabulary.py", *TYPES),
    "core/dispatch.py": GROUND,
    "meanings/": (*GROUND, "core/means.py"),
    "numpy/": ("backends/numpy/",),
    "scipy/": ("numpy/", "backends/numpy/", "core/tree.py", "gradients/custom.py", "linalg/"),
}
# What backends and composed functions may import besides themselves: no layers.
BELOW_BACKENDS = (
    *GROUND, "meanings/", "core/tree.py", "compile/compiling.py", "flow.py", "gradients/",
    "compile/slow_compilation.py", "core/keywords.py", "compile/processor.py", "version.py",
)  # fmt: skip
KNOWN_OF_BACKENDS = ("backends/__init__.py",)


def imported(path, tree):
    """Our files that a file imports, anywhere in it and for any purpose."""
    package = Path(path).parent
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package
            for _ in range(node.level - 1):
                base = base.parent
            base = base / (node.module or "").replace(".", "/")
            for alias in node.names:
                inside = [base / f"{alias.name}.py", base / alias.name / "__init__.py"]
                found = [p for p in inside if p.as_posix() in files()]
                found = found or [base.with_suffix(".py"), base / "__init__.py"]
                yield from (p.as_posix() for p in found if p.as_posix() in files())
        elif isinstance(node, ast.Import):
            assert not [a for a in node.names if a.name.startswith("isomorph")], path
        elif isinstance(node, ast.ImportFrom):
            assert not (node.module or "").startswith("isomorph"), path


@cache
def arrows():
    """The files that each file imports."""
    return {path: sorted(set(imported(path, tree)) - {path}) for path, tree in files().items()}


def circles(arrows):
    """The sets of files that all import each other, directly or not."""
    reached = {}

    def reach(path):
        seen, ahead = set(), list(arrows[path])
        while ahead:
            one = ahead.pop()
            if one not in seen:
                seen.add(one)
                ahead.extend(arrows[one])
        return seen

    for path in arrows:
        reached[path] = reach(path)
    return {
        frozenset(q for q in reached[path] if path in reached[q])
        for path in arrows
        if path in reached[path]
    }


def test_there_are_no_import_circles():
    """Late imports and type-only imports count; loading a backend by name does not."""
    assert circles({"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"]}) == {frozenset("abc")}
    assert sum(map(len, arrows().values())) > 500
    assert sorted(map(sorted, circles(arrows()))) == []


# The rooms, which are folders or files of the root, and the rooms that each may import.
ROOMS = {
    "__init__.py": "core",
    "__main__.py": "cli",
    "arrays": "core meanings types typing.py",
    "backends": "compile core flow.py gradients meanings typing.py version.py",
    "cli": "core distribute training typing.py version.py",
    "compile": "core types version.py",
    "core": "types typing.py",
    "distribute": "arrays core random typing.py",
    "export": "arrays core modules types typing.py",
    "flow.py": "compile core types",
    "frontends": "core gradients",
    "gradients": "compile core types",
    "layers": "core meanings random types typing.py",
    "linalg": "core gradients meanings types",
    "meanings": "core",
    "modules": "arrays compile core gradients layers meanings old_words random types typing.py",
    "numpy": "backends",
    "old_words": "core gradients meanings modules optimizers types",
    "optimizers": "core meanings types",
    "random": "arrays core gradients meanings types typing.py",
    "scipy": "backends core gradients linalg numpy",
    "scoreboard.py": "",
    "special": "core layers meanings types",
    "training": "arrays compile core distribute gradients layers modules optimizers random types "
    "typing.py version.py",
    "types": "",
    "typing.py": "types",
    "version.py": "",
}
# Rooms that still import each other.
KNOTS = {frozenset({"modules", "old_words"})}


def test_rooms_import_what_the_list_says():
    found = {room: set() for room in ROOMS}
    for path, targets in arrows().items():
        if path != "__init__.pyi":
            here = path.partition("/")[0]
            found[here] |= {target.partition("/")[0] for target in targets} - {here}
    assert found == {room: set(others.split()) for room, others in ROOMS.items()}
    assert circles(found) == KNOTS


def test_imports_have_one_direction():
    """Doors → dispatch → contract; composed → contract; backends → composed."""
    for path, targets in arrows().items():
        rooms = [room for room in MAY_IMPORT if path.startswith(room)]
        for target in targets:
            said = f"{path} imports {target}"
            if rooms:
                allowed = (max(rooms, key=len), *MAY_IMPORT[max(rooms, key=len)])
                assert target.startswith(allowed), said
            elif path.startswith("backends/"):  # a framework's backend, or shared code
                room = "/".join(path.split("/")[:2]) + "/"  # the framework's folder, if it is one
                shared = target.startswith("backends/") and target.count("/") == 1
                inside = shared or target.startswith(room)
                assert inside or target.startswith(BELOW_BACKENDS), said
            else:
                reaches = target.startswith("backends/") and target not in KNOWN_OF_BACKENDS
                assert not reaches, said
    assert "core/contract.py" in arrows()["core/dispatch.py"]
    assert "core/contract.py" in arrows()["backends/composed.py"]
    for room in MAY_IMPORT:
        assert any(path.startswith(room) for path in files()), f"{room} is gone"


def words(text):
    return set(re.findall("[a-z]+", re.sub("([a-z])([A-Z])", r"\1 \2", text).lower()))


def disguised(source):
    """Names, strings and comments of a file, without docstrings, that give a framework away."""
    docs = {
        node.body[0].lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        and node.body and isinstance(node.body[0], ast.Expr)
    }  # fmt: skip
    kinds = (tokenize.NAME, tokenize.COMMENT, tokenize.STRING)
    return [
        f"{token.start[0]}: {token.string}"
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type in kinds
        and words(token.string) & set(DISGUISES.split())
        and not (token.type == tokenize.STRING and token.start[0] in docs)
    ]


@pytest.mark.takes("it reads all files")
def test_a_framework_in_disguise_is_seen():
    assert disguised("f._dynamo_marked_constant = True")
    assert disguised("x = 1  # Inductor is slow here")
    assert disguised('ahead = "cpu" in str(device)')
    assert not disguised('"""As in torch."""\nx = 1  # a compiler is slow here')
    for path in files():
        if not path.startswith((*MAY_NAME, OF_HABITS, *OF_LAUNCHERS)):
            assert disguised((SOURCE / path).read_text()) == [], path


def imports(tree):
    """(module, whether at run time) for every import in a file; relative ones keep their dots."""
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
    """Every string constant that is not a docstring."""
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
    for path, tree in files().items():
        roots = {name.partition(".")[0] for name in imports(tree)}
        if roots & PACKAGES[backend]:
            seen += 1
            rooms = (*OPEN_ROOMS, *(NUMPY_ROOMS if backend == "numpy" else ()))
            assert path.startswith(rooms), f"{path} imports {roots & PACKAGES[backend]}"
    assert seen >= 1


def test_a_framework_is_named_only_where_it_may_be(backend):
    for path, tree in files().items():
        if path.startswith(MAY_NAME) or (
            backend == "numpy" and path.startswith(("core/default_backend.py", *NUMPY_ROOMS))
        ):
            continue  # the default backend is NumPy: the one framework that a door must name
        named = [s for s in code_strings(tree) if backend in s.lower().split()]
        assert not named, f"{path} names {backend}: {named}"
        names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        assert not names & PACKAGES[backend], f"{path} uses {names & PACKAGES[backend]}"


def test_a_backend_imports_no_other(backend):
    room = {p for p in files() if p.startswith(f"backends/{backend}/")}
    assert room
    for path in room:
        others = [m for m in arrows()[path] if m.count("/") > 1 and m.startswith("backends/")]
        assert set(others) <= room, f"{path} imports another backend"


def test_every_override_exists_on_the_base_class(backend):
    mro = type(load(backend)).__mro__
    classes = mro[: mro.index(Backend)]
    assert sum(len(vars(cls)) for cls in classes) > 30
    added = [
        n
        for cls in classes
        for n in vars(cls)
        if not n.startswith("_") and not hasattr(Backend, n) and n not in VOCABULARY
    ]
    assert set(added) <= {"name", "arrays"}, f"only on {backend}: {added}"


def test_every_verb_is_supplied(backend):
    cls = type(load(backend))
    verbs = [name for name, value in vars(Contract).items() if callable(value) and name[0] != "_"]
    assert len(verbs) == 15
    if cls.jit is not Backend.jit:  # its jit takes nests itself
        verbs = [n for n in verbs if n not in ("compile", "signature")]
    assert [n for n in verbs if getattr(cls, n) is getattr(Contract, n)] == []


def test_every_name_of_the_vocabulary_is_there(backend):
    xp = load(backend)
    assert [n for n in VOCABULARY if not hasattr(xp, n)] == []
    assert [n for n in LINALG if not hasattr(xp.linalg, n)] == []
    assert [n for n in FFT if not hasattr(xp.fft, n)] == []


def test_a_namespace_has_the_vocabulary_and_nothing_else(backend):
    xp = load(backend).namespace
    shown = {name for name in dir(xp) if not name.startswith("_")}
    assert shown == {n for n in VOCABULARY if not n.startswith("_")} | {"linalg", "fft"}
    assert {n for n in dir(xp.linalg) if not n.startswith("_")} == set(LINALG)
    assert {n for n in dir(xp.fft) if not n.startswith("_")} == set(FFT)
    for verb in ("vjp", "write_adam", "conv", "name", "arrays"):
        with pytest.raises(AttributeError, match=f"has no '{verb}'"):
            getattr(xp, verb)


def test_every_file_is_imported_by_another(backend):
    load(backend)
    reached = {
        "__init__.py",
        "__init__.pyi",
        "__main__.py",
        "cli/command.py",
        "backends/checks.py",
        "backends/contract.py",
        "backends/vocabulary.py",
        "scoreboard.py",
        "numpy/__init__.pyi",
        *(p for p in files() if p.startswith("distribute/engines/")),  # loaded by name
    }  # entry points: the package, its command line, the checks for other packages, and pytest
    reached |= {target for targets in arrows().values() for target in targets}
    reached |= {f"{parent.as_posix()}/__init__.py" for p in files() for parent in Path(p).parents}
    reached.add(f"backends/{backend}/__init__.py")  # loaded by dispatch, at run time
    mine = {
        p
        for p in files()
        if not p.startswith("backends/") or p.startswith(f"backends/{backend}") or p.count("/") == 1
    }
    assert mine - reached == set()


def test_the_scoreboard_has_two_doors():
    """It is a distribution of its own: the command and the old name of the package import it."""
    importing = {
        path
        for path, tree in files().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and "scoreboard" in (node.module or "")
    }
    assert importing == {"cli/command.py", "scoreboard.py"}


def test_every_file_says_what_it_is_for():
    for path, tree in files().items():
        if (SOURCE / path).read_text():
            assert ast.get_docstring(tree), f"{path} does not say what it is for"


# Tables filled while modules are imported, and handles that hold state by design.
FILLED = {"TRACED", "BATCHED", "LATE", "TOLD", "READERS", "REGISTERS", "CHECKS"}
HANDLES = {
    "BACKENDS",
    "NAMESPACES",
    "FAMILIES",
    "HOME",
    "HOSTED",
    "KEYS",
    "LEVELS",
    "LOADED",
    "MADE",
    "MODES",
    "NOTED",
    "ON_LOAD",
    "REGISTERED",
    "RUNNING",
    "RUNS",
    "SEEN",
    "TIMES",
    "TRACING",
}
CHANGES = {"append", "add", "update", "pop", "clear", "setdefault", "extend", "remove", "insert"}


@pytest.mark.takes("it reads every file of the package")
def test_no_module_keeps_state():
    """Functions change nothing at module level, except the handles above."""
    named = {n.id for tree in files().values() for n in ast.walk(tree) if isinstance(n, ast.Name)}
    assert named >= FILLED | HANDLES
    for path, tree in files().items():
        for node in ast.walk(tree):
            keeps = isinstance(node, ast.Global)
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
    assert len(set(isomorph.__all__)) == len(isomorph.__all__)
    for name in isomorph.__all__:
        thing = getattr(isomorph, name)
        assert thing.__doc__, name
        if isinstance(thing, types.ModuleType):
            continue
        assert ">>>" in thing.__doc__, f"{name} has no executed example"
        code = getattr(thing, "__wrapped__", thing)
        if hasattr(code, "__annotations__") and not isinstance(code, type):
            assert "return" in code.__annotations__, f"{name} has no return type"


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)  # it needs no extra
@pytest.mark.takes("it runs all of them")
def test_examples_in_docstrings_run(backend):
    import doctest

    import numpy as np

    ran, left = 0, 0
    runner = doctest.DocTestRunner()
    for module in pkgutil.walk_packages(isomorph.__path__, "isomorph."):
        if module.name.startswith(("isomorph.backends", "isomorph.__main__")):
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


def test_the_newest_release_in_the_changelog_is_this_version():
    text = (Path(__file__).parent.parent / "CHANGELOG.md").read_text()
    first, *releases = re.findall(r"^## (.+)$", text, re.M)
    assert first == "Unreleased"
    found = [re.fullmatch(r"(\d+\.\d+\.\d+) \((\d{4}-\d\d-\d\d)\)", line) for line in releases]
    assert found
    assert all(found), releases
    dates = [date.fromisoformat(match[2]) for match in found]
    assert dates == sorted(dates, reverse=True)
    assert found[0][1] == isomorph.version.__version__
