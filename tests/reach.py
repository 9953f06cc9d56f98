"""Which tests a change can reach: `make test-changed`, or `pytest --changed=REV`.

A change of a file reaches the files that import it, and those that import them. Imports are read
from the text: of sources, of programs in strings (for other processes), and of pages whose code is
run. To parse every file takes five times as long, and does not show what is in strings.

* Late imports count, imports for types do not.
* `import isomorph as iso` reaches nothing, `iso.linalg.solve` the module that defines it. The same
  holds for all `FACADES`: packages that import their modules in order to show their names.
  `getattr(iso, name)` and `iso.__all__` reach everything public.
* What a module registers is imported by the registry: after `AROUND.append(AGAIN.get)`, by the
  module that defines `AROUND`.
* Backends and engines are loaded by name (`LOADS`). A test with a backend in its id runs on that
  one; any other test on those that its file mentions, or a file of the tests that it imports.
* A string that names a file, a folder (`"docs/migrate"`) or a pattern (`"*.md"`) is an import. A
  data file that no string names is imported by the files beside it.
* Files in `EVERYTHING` reach all tests.

Not seen: that a module fails when it is imported. Most modules are imported with isomorph, so the
first test shows it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from argparse import ArgumentTypeError
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path
from posixpath import basename, dirname, join, normpath
from typing import Any

ROOT = Path(__file__).parents[1]
BACKENDS = ("numpy", "jax", "tensorflow", "torch")
EVERYTHING = (
    "pyproject.toml", "constraints.txt", "src/isomorph/__init__.py", "src/isomorph/__init__.pyi",
    "src/isomorph/compile/program_cache.py", "tests/conftest.py", "tests/frameworks.py",
    "tests/oracles.py",
    *(f"tests/examples/{path.name}" for path in Path(__file__).parent.glob("examples/*.py")),
)  # fmt: skip
# conftest.py uses these for an option alone
FOR_OPTIONS = {f"tests/{name}.py" for name in ("devices", "memory", "reach", "sampling", "verbs")}
# where modules are imported from, after the folder of the file that imports them
BOARD = "pytest-scoreboard"
SOURCES = ("src/", f"{BOARD}/src/")
ROOTS = ("src", f"{BOARD}/src", "tests", f"{BOARD}/tests", "", "examples", "examples/adapters")
OURS = "src/isomorph"
PUBLIC = f"{OURS}/__init__.py"
FACADES = {
    PUBLIC, f"{OURS}/linalg/__init__.py", f"{OURS}/optimizers/__init__.py",
    f"{OURS}/special/__init__.py",
}  # fmt: skip
LOADS = {  # who loads a module by the name of a backend
    f"{OURS}/core/dispatch.py": f"{OURS}/backends/{{}}/__init__.py",
    f"{OURS}/distribute/__init__.py": f"{OURS}/distribute/engines/{{}}.py",
}
COMMAND = f"{OURS}/cli/command.py"
COMMANDS = {  # what the command line imports for a command
    "bench": "benchmarks/__main__.py", "doctor": f"{OURS}/cli/installed.py",
    "launch": f"{OURS}/distribute/launch.py", "plot": f"{OURS}/training/reporting.py",
    "scoreboard": f"{BOARD}/src/pytest_scoreboard/command.py",
}  # fmt: skip
# Tests of which each, whatever its backend, runs on all that its file mentions.
BETWEEN = ("tests/arrays/test_conversion.py", "tests/export/")
MENTIONS = {  # of a backend; a test that mentions none runs on NumPy
    "numpy": re.compile(""),
    "jax": re.compile(r"\b(?:jax|jnp)\b"),
    "tensorflow": re.compile(r"\b(?:tensorflow|tf|keras)\b"),
    "torch": re.compile(r"\btorch\b"),
}
OF_ALL = re.compile(r"\b(?:BACKENDS|OWN|ABSENT|FRAMEWORKS)\b|\b(?:names|backends)\(\)")

FOR_TYPES = re.compile(r"^([ \t]*)if TYPE_CHECKING:\n(?:\1[ \t]+[^\n]*\n|[ \t]*\n)*", re.M)
COMMENT = re.compile(r"#[^\n\"']*$", re.M)
IMPORT = re.compile(
    r"(?:^|[;\"'])[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n;\"'\\]*)"
    r"|import[ \t]+([^\n;\"'\\]*))", re.M,
)  # fmt: skip
WORD = re.compile(r"[\"']([\w./*!\[\]-]+)[\"']")
REGISTERED = re.compile(r"^(\w+)\.(?:append|add|extend)\(", re.M)
BY_NAME = ("import_module", "__import__", "spec_from_file", "ours(", '"-m"')
BY_PREFIX = re.compile(r"import_module\(f\"isomorph\.([\w.]*)\{")
EVERY_NAME = re.compile(r"\b(?:getattr|hasattr|vars|dir)\(iso(?:morph)?[,)]")
RUNS_PAGES = re.compile(r"```python|(?<![.\w])(?:exec|eval)\(|\brun_page\b")


def git(*words: str, root: Path = ROOT) -> str:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True)
    if done.returncode:
        raise ValueError(done.stderr.strip())
    return done.stdout


def paths(*words: str, root: Path) -> set[str]:
    """The paths that a command of git prints."""
    return {*git(*words, "-z", root=root).split("\0")} - {""}


def listed(names: str) -> list[tuple[str, str]]:
    """`(a, b as c)` as [("a", "a"), ("b", "c")]."""
    items = [item.split() for item in names.strip("() \t").split(",")]
    return [(item[0], item[-1]) for item in items if len(item) in (1, 3)]


def above(path: str) -> list[str]:
    """The folders of a file, the nearest first; the root is not one of them."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[:n]) for n in range(len(parts), 0, -1)]


class Reach:
    """The files of the repository, and who uses whom. `changed` may be files that are gone: others
    may still name them.
    """

    def __init__(self, root: Path = ROOT, changed: Iterable[str] = ()):
        self.root = root
        self.files = paths("ls-files", "-co", "--exclude-standard", root=root) | {*changed}
        self.named, self.below = defaultdict(set), defaultdict(set)
        for path in self.files:
            self.named[basename(path)].add(path)
            for folder in above(path):
                self.below[folder].add(path)
        self.texts, self.places, self.backends = {}, {}, {}
        # path -> the files that use it and all that it imports, and those that use it alone
        self.users, self.readers = defaultdict(set), defaultdict(set)
        for path in sorted(self.files):
            if path.endswith(".py") or (path.endswith(".md") and "```python" in self.text(path)):
                Source(self, path).record()
        for path in self.files - self.users.keys() - self.readers.keys():
            if not path.endswith(".py"):
                self.users[path] = self.beside(path)

    def text(self, path: str) -> str:
        if path not in self.texts:
            file = self.root / path
            self.texts[path] = file.read_text("utf-8", "replace") if file.is_file() else ""
        return self.texts[path]

    def beside(self, path: str) -> set[str]:
        """The modules in the nearest folder above a file that has any."""
        folders = ({p for p in self.below[f] if dirname(p) == f and p.endswith(".py")}
                   for f in above(path))  # fmt: skip
        return next(filter(None, folders), set())

    def module(self, name: str, folder: str) -> str | None:
        """The file of an imported module, or None if it is not ours."""
        stem = name.lstrip(".")
        dots = len(name) - len(stem)
        for _ in range(dots - 1):
            folder = dirname(folder)
        here = () if folder.startswith(SOURCES) and not dots else (folder,)
        for root in here if dots else (*here, *ROOTS):
            place = "/".join(filter(None, (root, *stem.split("."))))
            for file in (f"{place}.py", f"{place}/__init__.py"):
                if file in self.files:
                    return file
        return None

    def taken(self, module: str, name: str) -> set[str]:
        """The files behind a name that is taken from a module."""
        shown = self.shown(module) if module in FACADES else {}
        if shown.get(name):
            return shown[name]
        inside = None
        if basename(module) == "__init__.py":
            inside = self.module(f".{name}", dirname(module))
        if inside or module not in FACADES:
            return {inside or module}
        return shown.get("*") or self.whole(module)

    def shown(self, facade: str) -> dict[str, set[str]]:
        """The names of a facade, and the files that define them; `*` for names not listed."""
        if facade not in self.places:
            stub = f"{facade}i" if f"{facade}i" in self.files else facade
            found = self.places[facade] = defaultdict(set)
            for module, names, _ in IMPORT.findall(COMMENT.sub("", self.text(stub))):
                file = self.module(module, dirname(facade)) if module else None
                for name, word in listed(names) if file else ():
                    found[word] |= {file} if name == "*" else self.taken(file, name)
        return self.places[facade]

    def whole(self, facade: str) -> set[str]:
        """Everything that a facade shows."""
        found = {path for paths in self.shown(facade).values() for path in paths} - {facade}
        return found.union(*(self.whole(path) for path in found & FACADES))

    def reached(self, changed: Iterable[str], backends: Iterable[str]) -> set[str]:
        """The files that a change reaches where these backends are loaded."""
        loaders = {path.format(name): who for who, path in LOADS.items() for name in backends}
        found = set(changed).union(*(self.readers[path] for path in changed))
        ahead = list(found)
        while ahead:
            path = ahead.pop()
            new = self.users[path] | ({loaders[path]} if path in loaders else set())
            ahead += new - found
            found |= new
        return found

    def runs_on(self, path: str) -> frozenset[str]:
        """The backends that a file of tests mentions, or a file of the tests that it imports."""
        if path not in self.backends:
            seen, ahead = {path}, [path]
            while ahead:
                new = self.uses[ahead.pop()] - seen
                seen |= new
                ahead += new
            texts = list(map(self.text, seen))
            said = lambda pattern: any(map(pattern.search, texts))
            found = (name for name in BACKENDS if said(OF_ALL) or said(MENTIONS[name]))
            self.backends[path] = frozenset(found)
        return self.backends[path]

    @cached_property
    def uses(self) -> dict[str, set[str]]:
        """What each file of the tests imports, other than sources."""
        found = defaultdict(set)
        for path, users in self.users.items():
            if path.endswith((".py", ".md")) and not path.startswith(SOURCES):
                for user in users if path not in EVERYTHING else ():
                    found[user].add(path)
        return found


class Source:
    """The text of one file, and what it imports."""

    def __init__(self, reach: Reach, path: str):
        self.reach, self.path, self.folder = reach, path, dirname(path)
        self.text = COMMENT.sub("", FOR_TYPES.sub("", reach.text(path)))
        self.words = set(WORD.findall(self.text))
        self.names: dict[str, set[str]] = {}  # what imported names stand for

    def record(self) -> None:
        """Write down in `reach` whom this file uses."""
        users, readers = self.reach.users, self.reach.readers
        found = self.imports() | self.dotted()
        if self.path == "tests/conftest.py":
            found -= FOR_OPTIONS
        if self.path.endswith(".py"):
            found |= {*self.said(), *self.above()}
        alone = {*FACADES, COMMAND}
        pages = {file for file in found if file.endswith(".md")}
        if pages and not RUNS_PAGES.search(self.text):
            alone |= pages
        for file in found - {self.path}:
            (readers if file in alone else users)[file].add(self.path)
        for word in self.words & COMMANDS.keys() if COMMAND in found else ():
            users[COMMANDS[word]].add(self.path)
        for registry in REGISTERED.findall(self.text) if self.path.startswith(OURS) else ():
            for file in self.names.get(registry, ()):
                users[self.path].add(file)

    def imports(self) -> set[str]:
        found = set()
        for module, names, plain in IMPORT.findall(self.text):
            file = self.reach.module(module, self.folder) if module else None
            for name, word in listed(names) if file else ():
                self.names[word] = self.reach.taken(file, name)
                found |= {file, *self.names[word]} if file in FACADES else self.names[word]
            for name, word in listed(plain):
                file = self.reach.module(name, self.folder)
                if file:
                    whole = name if name != word else name.partition(".")[0]
                    self.names[word.partition(".")[0]] = {self.reach.module(whole, self.folder)}
                    found.add(file)
        packages = {f"{folder}/__init__.py" for file in found for folder in above(file)}
        return found | packages & self.reach.files

    def dotted(self) -> set[str]:
        """The files behind names such as `iso.linalg.solve`."""
        facades = {word: PUBLIC for word in ("iso",) if not self.path.startswith(SOURCES)}
        for word, files in self.names.items():
            facades |= dict.fromkeys([word], *(files & FACADES)) if files & FACADES else {}
        if not facades:
            return set()
        rest = IMPORT.sub("", self.text)
        chain = rf"(?<![\w.])({'|'.join(facades)})\b((?:\.\w+)*)"
        return set().union(*(
            self.behind(facades[word], names.split(".")[1:], rest)
            for word, names in set(re.findall(chain, rest))
        ))  # fmt: skip

    def behind(self, facade: str, names: list[str], text: str) -> set[str]:
        for name in names:
            if name.startswith("__") and name not in ("__all__", "__dict__"):
                return {facade}
            files = {facade} if name.startswith("__") else self.reach.taken(facade, name)
            if not files <= FACADES:
                return files
            (facade,) = files
        # `iso` alone is an argument of a function that uses its names
        if facade == PUBLIC and "__all__" not in text and not EVERY_NAME.search(text):
            return {facade}
        return {facade, *self.reach.whole(facade)}

    def said(self) -> Iterator[str]:
        """The files that strings name."""
        reach = self.reach
        if self.path in EVERYTHING or self.path in FOR_OPTIONS:
            return
        if self.path.startswith(SOURCES):
            yield from self.data()
            return
        for prefix in BY_PREFIX.findall(self.text):
            yield from (p for p in reach.below[normpath(join(OURS, *prefix.split(".")))]
                        if p.endswith(".py"))  # fmt: skip
        by_name = any(word in self.text for word in BY_NAME)
        for word in self.words:
            here = f"{self.folder}/{word}"
            named = reach.named.get(word.rpartition("/")[2], ())
            yield from (p for p in named if here not in named and f"/{p}".endswith(f"/{word}"))
            yield from (p for p in named if p == here)
            for folder in {word.strip("/"), here} & reach.below.keys() - {"src", "tests"}:
                yield from (p for p in reach.below[folder] if not p.endswith(".py"))
            if "*" in word and "." in word:
                yield from self.matched(word)
            if word.startswith("isomorph."):
                ends = [m.end() for m in re.finditer(r"\w+", word)][:0:-1]
                yield from [p for end in ends if (p := reach.module(word[:end], ""))][:1]
            elif by_name and word.replace(".", "").isidentifier():
                roots = (self.folder, f"{OURS}/backends") if "." in word else (self.folder,)
                yield from (p for root in roots if (p := reach.module(word, root)))
                if word == "isomorph":
                    yield from (f"{OURS}/__main__.py", COMMAND)

    def data(self) -> Iterator[str]:
        """The data of a package that a module of it names."""
        for path in self.reach.below[self.folder]:
            if not path.endswith(".py") and self.words & {basename(path), basename(dirname(path))}:
                yield path

    def matched(self, pattern: str) -> Iterator[str]:
        """The files of a pattern; Python's, only below src and folders that the text names."""
        if not pattern.endswith((".py", ".pyi")):
            yield from (p for p in self.reach.files if fnmatch(basename(p), basename(pattern)))
            return
        for top in {"src"} | set(re.findall(r"\w+", self.text)) & self.reach.below.keys():
            if top != "tests":
                yield from (p for p in self.reach.below[top] if p.endswith((".py", ".pyi")))

    def above(self) -> Iterator[str]:
        """Files that pytest loads with a test, and the stub of a module."""
        for folder in above(self.path):
            if (
                folder.startswith(("tests/", f"{BOARD}/tests"))
                and f"{folder}/conftest.py" in self.reach.files
            ):
                yield f"{folder}/conftest.py"
        if f"{self.path}i" in self.reach.files:
            yield f"{self.path}i"


def base(rev: str, root: Path = ROOT) -> str:
    """The commit that `--changed=REV` compares with. An empty REV is HEAD if something is not
    committed, else the commit before.
    """
    try:
        rev = rev or ("HEAD" if git("status", "--porcelain", root=root) else "HEAD~1")
        git("merge-base", rev, "HEAD", root=root)
        return rev
    except (OSError, ValueError) as error:
        why = str(error)
    try:
        there = " ".join(git("branch", "--format=%(refname:short)", root=root).split())
    except (OSError, ValueError):
        there = "none, since git finds no repository here"
    raise ArgumentTypeError(f"needed a commit, tag or branch ({there}), got {rev!r}: {why}")


def changes(rev: str, root: Path = ROOT) -> set[str]:
    """The files that differ from those of a commit, or are new or gone. A branch that went on is
    taken where this one left it.
    """
    start = git("merge-base", rev, "HEAD", root=root).strip()
    words = ("--name-only", "--no-renames", "--no-ext-diff", "--relative", start)
    new = paths("ls-files", "-o", "--exclude-standard", root=root)
    return paths("diff", *words, root=root) | new


class Change:
    """Changed files, and the tests that they reach."""

    def __init__(self, changed: set[str], reach: Reach | None = None):
        self.changed, self.reach = changed, reach or Reach(changed=changed)
        self.everything = not changed.isdisjoint(EVERYTHING)
        self.by_backends = {}

    def reaches(self, path: str, backends: Iterable[str] = ()) -> bool:
        """Whether a test in a file can see the change if it runs on these backends. Without any, it
        runs on those that the file mentions, and needs no fixture.
        """
        used = frozenset(backends) or self.reach.runs_on(path)
        if used not in self.by_backends:
            self.by_backends[used] = self.reach.reached(self.changed, used)
        found = self.by_backends[used]
        return self.everything or path in found or (bool(backends) and "tests/conftest.py" in found)

    def kept(self, items: list, backend_of: Callable[[Any], str | None]) -> list:
        """The items that can see the change. One with a backend in its id runs on that backend, and
        on those that its file mentions and that no other item of the same test has.
        """
        test = lambda item: item.nodeid.partition("[")[0]
        own = defaultdict(set)
        for item in items:
            own[test(item)].add(backend_of(item))
        kept = []
        for item in items:
            path, name = item.path.relative_to(ROOT).as_posix(), backend_of(item)
            others = set() if path.startswith(BETWEEN) else own[test(item)]
            if self.reaches(path, {name, *self.reach.runs_on(path) - others} if name else ()):
                kept.append(item)
        return kept


def select(config, items, backend_of) -> None:
    """Keep the tests that can see the change, and say how many they are."""
    rev = config.getoption("--changed")
    change = Change(changes(rev))
    kept = change.kept(items, backend_of)
    quick = config.option.markexpr == "not slow"
    all_, seeing = (
        sum(not quick or not item.get_closest_marker("slow") for item in some)
        for some in (items, kept)
    )
    what = f"{seeing:,} of {all_:,} tests"
    if seeing == all_:
        what = f"all {all_:,} tests: make test runs a sample of them"
    line = f"{len(change.changed)} files changed since {rev} reach {what}"
    worker = getattr(config, "workerinput", {"workerid": ""})["workerid"]
    if worker in ("", "gw0"):
        print(line, file=sys.stderr if worker else sys.stdout, flush=True)
    left = set(items) - set(kept)
    config.hook.pytest_deselected(items=list(left))
    items[:] = kept


def main(rev: str = "") -> int:
    """Say which test files a change reaches, without collecting tests."""
    try:
        rev = base(rev)
    except ArgumentTypeError as error:
        print(f"make test-changed BASE={rev}: {error}", file=sys.stderr)
        return 2
    change = Change(changes(rev))
    tests = sorted(p for p in change.reach.files if fnmatch(p, "*tests/*test_*.py"))
    found = [p for p in tests if change.reaches(p) or change.reaches(p, BACKENDS)]
    reached = f"{len(found)} of {len(tests)} files of tests"
    print(f"{len(change.changed)} files changed since {rev} reach {reached}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
