"""What a change can reach (`make test-changed`): ten planted changes, with lists made by hand, and
changes of a small repository.
"""

import ast
import subprocess
from argparse import ArgumentTypeError
from functools import cache
from posixpath import dirname

import pytest
from reach import ROOT, Change, Reach, base, changes

BOARD = "scoreboard/"  # the tests and the source of its distribution
# file -> what a change of it must reach, and what it must not; with a backend: its cells alone
PLANTED = {
    "layers/pooling.py": (
        "layers/test_pooling.py modules/test_modules.py compile/test_compiled_eager.py "
        "export/test_export_torch.py docs/test_blocks_of_pages.py test_architecture.py",
        "special/test_bessel.py linalg/test_linalg_values.py optimizers/test_schedules.py "
        "scoreboard/test_page.py arrays/test_conversion.py",
    ),
    "meanings/activation.py": (
        "layers/test_activations.py compile/test_compile.py special/test_bessel.py:torch "
        "training/test_fit.py:jax modules/test_modules.py backends/test_numpy_rules.py",
        "scoreboard/test_page.py scoreboard/test_samples.py",
    ),
    "backends/numpy/rules/linalg.py": (
        "backends/test_numpy_rules.py linalg/test_linalg_gradients.py:numpy dropin/test_dropin.py "
        "gradients/test_gradients.py:numpy test_readme.py:numpy",
        "linalg/test_linalg_gradients.py:torch gradients/test_gradients.py:jax "
        "training/test_fit.py:tensorflow scoreboard/test_page.py",
    ),
    "backends/torch/inductor/repairs.py": (
        "compile/test_compile.py:torch training/test_fit.py:torch special/test_bessel.py:torch "
        "backends/test_torch_edges.py compile/test_recompiling.py:torch "
        "docs/test_blocks_of_pages.py",
        "compile/test_compile.py:jax training/test_fit.py:numpy special/test_bessel.py:tensorflow "
        "backends/test_numpy_rules.py scoreboard/test_page.py",
    ),
    "backends/jax/__init__.py": (
        "layers/test_layers.py:jax backends/test_jax_edges.py promises/test_jax_32_bits.py "
        "distribute/test_engines.py:jax export/test_export_jax.py",
        "layers/test_layers.py:torch training/test_fit.py:numpy scoreboard/test_states.py",
    ),
    "scoreboard/board.py": (
        "scoreboard/test_page.py scoreboard/test_columns.py scoreboard/test_door.py "
        "scoreboard/test_keeping.py docs/test_library_project.py test_architecture.py",
        "compile/test_compile.py layers/test_layers.py training/test_fit.py "
        "special/test_bessel.py distribute/test_engines.py backends/test_torch_edges.py "
        "test_readme.py docs/test_blocks_of_pages.py",
    ),
    "training/fitting.py": (
        "training/test_fit.py training/test_fit_resume.py training/test_unequal_parts.py "
        "training/test_demo.py distribute/test_engines.py docs/test_blocks_of_pages.py "
        "test_readme.py programs/test_programs.py",
        "special/test_bessel.py linalg/test_linalg_values.py layers/test_layers.py "
        "flow/test_flow.py training/test_checkpoints.py scoreboard/test_page.py",
    ),
    "optimizers/schedules.py": (
        "optimizers/test_schedules.py optimizers/test_optimizer_pairs.py "
        "compile/test_compiled_eager.py promises/test_messages.py docs/test_blocks_of_pages.py",
        "special/test_bessel.py special/test_gamma_family.py linalg/test_linalg_values.py "
        "flow/test_flow.py layers/test_layers.py scoreboard/test_page.py",
    ),
    "distribute/launch.py": (
        "distribute/test_engines.py distribute/test_failures.py distribute/test_init.py",
        "training/test_fit.py layers/test_layers.py compile/test_compile.py "
        "special/test_bessel.py scoreboard/test_page.py test_readme.py",
    ),
    "core/dispatch.py": (
        "promises/test_dispatch.py layers/test_layers.py special/test_bessel.py:jax "
        "training/test_fit.py:torch backends/test_numpy_rules.py distribute/test_engines.py",
        "scoreboard/test_page.py scoreboard/test_keeping.py scoreboard/test_numbers.py",
    ),
}


@cache
def graph():
    return Reach()


def sees(change, test):
    """Whether the test of a backend, or else any test of a file, is reached."""
    file, _, backend = test.partition(":")
    path = f"tests/{file}"
    if file.startswith(BOARD):
        path = f"pytest-scoreboard/tests/{file.removeprefix(BOARD)}"
    assert (ROOT / path).exists(), path
    if backend:
        return change.reaches(path, [backend])
    return change.reaches(path)


@pytest.mark.parametrize("path", PLANTED)
def test_a_planted_change_reaches_what_it_must_and_no_more(path):
    file = f"src/isomorph/{path}"
    if path.startswith(BOARD):
        file = f"pytest-scoreboard/src/pytest_scoreboard/{path.removeprefix(BOARD)}"
    assert (ROOT / file).exists()
    change = Change({file}, graph())
    must, must_not = map(str.split, PLANTED[path])
    assert [test for test in must if not sees(change, test)] == []
    assert [test for test in must_not if sees(change, test)] == []


def test_what_all_tests_need_reaches_all():
    for path in ("pyproject.toml", "constraints.txt", "tests/conftest.py", "tests/oracles.py"):
        change = Change({path}, graph())
        assert all(
            sees(change, test) for test in ("scoreboard/test_page.py", "special/test_bessel.py")
        )
    nothing = Change({"LICENSE.txt", "docs/assets/new.svg"}, graph())
    assert not sees(nothing, "special/test_bessel.py")


FILES = {
    "src/isomorph/__init__.py": "from .tree import flatten\n",
    "src/isomorph/__init__.pyi": "from . import special as special\nfrom .tree import flatten\n",
    "src/isomorph/tree.py": "",
    "src/isomorph/special/__init__.py": "from .gamma import gamma as gamma\nfrom .erf import erf\n",
    "src/isomorph/special/gamma.py": "from ..tree import flatten\n",
    "src/isomorph/special/erf.py": "if TYPE_CHECKING:\n    from .gamma import gamma\n",
    "tests/test_gamma.py": "import isomorph as iso\n\nprint(iso.special.gamma)\n",
    "tests/test_erf.py": 'CODE = """\nimport isomorph as iso\niso.special.erf(1.0)\n"""\n',
    "tests/test_every.py": "import isomorph as iso\n\nall(hasattr(iso, n) for n in iso.__all__)\n",
    "tests/test_data.py": 'from helper import read\n\nread("values.npz")\n',
    "tests/helper.py": "",
    "tests/values.npz": "1",
    "notes.txt": "1",
}


class Repository:
    """A small repository with two commits; the second changed `gamma.py`."""

    def __init__(self, root):
        self.root = root
        self.git("init", "-q", "-b", "main")
        for path, text in FILES.items():
            self.write(path, text)
        self.commit("first")
        self.write("src/isomorph/special/gamma.py", FILES["src/isomorph/special/gamma.py"] + "1\n")
        self.commit("second")

    def git(self, *words):
        who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *who, *words], cwd=self.root, check=True, capture_output=True)

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def commit(self, subject):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", subject)

    def reached(self, rev=""):
        """The commit that is compared with, and the tests that the change reaches."""
        since = base(rev, self.root)
        changed = changes(since, self.root)
        change = Change(changed, Reach(self.root, changed))
        tests = [path.stem[5:] for path in (self.root / "tests").glob("test_*.py")]
        return since, {name for name in tests if change.reaches(f"tests/test_{name}.py")}


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path)


def test_what_is_compared_with_what(repository):
    """The last commit, then what is not committed yet, then a branch."""
    assert repository.reached() == ("HEAD~1", {"gamma", "every"})
    repository.write("src/isomorph/special/erf.py", "x = 1\n")
    assert repository.reached() == ("HEAD", {"erf", "every"})
    assert repository.reached("HEAD~1") == ("HEAD~1", {"gamma", "erf", "every"})
    repository.git("checkout", "-q", "-b", "topic")
    repository.commit("on a branch")
    repository.git("checkout", "-q", "main")
    repository.write("tests/values.npz", "2")
    repository.commit("meanwhile")
    repository.git("checkout", "-q", "topic")
    assert repository.reached("main") == ("main", {"erf", "every"})


def test_files_that_are_new_or_gone_or_have_another_name(repository):
    repository.write("tests/test_new.py", "")
    assert repository.reached() == ("HEAD", {"new"})
    repository.commit("new")
    (repository.root / "src/isomorph/special/gamma.py").unlink()
    assert repository.reached() == ("HEAD", {"gamma", "every"})
    repository.git("checkout", "-q", ".")
    repository.git("mv", "tests/helper.py", "tests/helpers.py")
    assert repository.reached() == ("HEAD", {"data"})
    repository.write("tests/test_data.py", "from helpers import read\n")
    repository.commit("renamed")
    assert repository.reached() == ("HEAD~1", {"data"})


def test_data_is_a_part_of_who_names_it(repository):
    repository.write("tests/values.npz", "2")
    assert repository.reached() == ("HEAD", {"data"})
    repository.commit("data")
    repository.write("notes.txt", "2")
    assert repository.reached() == ("HEAD", set())
    repository.write("src/isomorph/tree.py", "x = 1")
    assert repository.reached() == ("HEAD", {"gamma", "every"})


def test_a_wrong_commit_is_told_what_there_is(repository):
    with pytest.raises(ArgumentTypeError, match=r"branch \(main\).*got 'nonsense'"):
        repository.reached("nonsense")


@pytest.mark.slow
def test_imports_read_from_the_text_are_those_of_the_parser():
    """Late ones too, but not those for types."""
    missed, count = [], 0
    for path in graph().files:
        if not path.endswith(".py"):
            continue
        tree = ast.parse((ROOT / path).read_text("utf-8"))
        for_types = {
            node
            for top in ast.walk(tree)
            if isinstance(top, ast.If) and "TYPE_CHECKING" in ast.dump(top.test)
            for node in ast.walk(top)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node not in for_types:
                file = graph().module("." * node.level + (node.module or ""), dirname(path))
                for alias in node.names if file else ():
                    for target in graph().taken(file, alias.name) - {path}:
                        count += 1
                        known = graph().users[target] | graph().readers[target]
                        missed += [(path, target)] if path not in known else []
    assert count > 3000
    assert missed == []
