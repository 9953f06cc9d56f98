"""Run the core suite with other versions of the frameworks: `nox`, or `make versions`.

Each environment has one framework beside NumPy: the oldest supported version, the version pinned in
`constraints.txt`, or the newest version for the interpreter. The last session writes the results to
`docs/versions.md`; if an interpreter is not on this machine, its row says "not run".
`nox -s 'core(torch-newest-3.13)' table` runs one environment and keeps the rows of the others.
"""

import glob
import json
import os
import platform
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

import nox

nox.options.default_venv_backend = "venv"
nox.options.error_on_missing_interpreters = False
nox.options.sessions = ["core", "table"]
os.environ["PATH"] += "".join(  # interpreters of pyenv, if there are any
    f":{found}" for found in sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin")))
)

OLDEST = {"numpy": "2.1.0", "jax": "0.9.0", "tensorflow": "2.19.0", "torch": "2.10.0"}
OLDEST_BESIDE = ["optree==0.16.0", "array-api-compat==1.16.0"]
SCOREBOARD = "./pytest-scoreboard"  # tests/conftest.py and the oracles need it
TOOLS = [
    SCOREBOARD, "hypothesis", "pytest-rerunfailures", "pytest-timeout", "pytest-xdist", "rich",
    "safetensors", "scipy",
]  # fmt: skip
AGES = (("oldest", "3.11"), ("pinned", "3.12"), ("newest", "3.13"), ("newest", "3.14"))
FRAMEWORKS = ("numpy", "jax", "tensorflow", "torch")
ENVIRONMENTS = [(python, name, age) for name in FRAMEWORKS for age, python in AGES]
RESULTS = Path(".nox/results")
TABLE = Path("docs/versions.md")


def wanted(framework, age):
    """The requirements for pip: the framework, and packages that must fit its version."""
    if age == "pinned":
        return [framework, "-c", "constraints.txt"]
    if age == "newest":
        return [framework]
    version = OLDEST[framework]
    beside = [f"jaxlib=={version}"] if framework == "jax" else []
    return [f"{framework}=={version}", *beside, *OLDEST_BESIDE]


@nox.session
@nox.parametrize(
    "python,framework,age",
    ENVIRONMENTS,
    ids=[f"{framework}-{age}-{python}" for python, framework, age in ENVIRONMENTS],
)
def core(session, framework, age):
    """Run the core suite with one framework beside NumPy."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    name = f"{framework}-{age}-{session.python}"
    report, result = RESULTS / f"{name}.xml", RESULTS / f"{name}.json"
    found = {"date": str(date.today()), "machine": machine(), "commit": commit(session)}
    found |= {"version": "", "numpy": "", "ended": 1}
    report.unlink(missing_ok=True)
    try:  # one call, so that the requirements also apply to the package's dependencies
        session.install(*wanted(framework, age), *TOOLS, "-e", ".")
        asked = f"from importlib.metadata import version as v; print(v({framework!r}), v('numpy'))"
        version, numpy = session.run("python", "-c", asked, silent=True).split()
        found |= {"version": version, "numpy": numpy}
        verbs = ["--verbs"] if age == "pinned" else []  # every verb must be used
        session.run(
            "python", "-m", "pytest", "--core", *verbs, "-m", "not slow", "-n", "2", "--dist",
            "worksteal", "--ignore=tests/docs", "tests", f"--junitxml={report}",
            *session.posargs,
        )  # fmt: skip
        found["ended"] = 0
    finally:
        result.write_text(json.dumps(found | counted(report), indent=1))


ARTEFACTS = ("whl", "tar.gz")


@nox.session(venv_backend="none")
@nox.parametrize("framework", FRAMEWORKS)
@nox.parametrize("artefact", ARTEFACTS)
def release(session, artefact, framework):
    """Install what `make release` built, with NumPy alone or with one framework, and run the
    README's programs and a part of the tests with it.
    """
    (built,) = Path("dist").glob(f"isomorph-*.{artefact}")
    extra = "" if framework == "numpy" else f"[{framework}]"
    with TemporaryDirectory() as folder:
        python = f"{folder}/bin/python"
        session.run("python", "-m", "venv", folder)
        asked = [f"isomorph{extra} @ file://{built.resolve()}", *TOOLS, "-c", "constraints.txt"]
        session.run(python, "-m", "pip", "install", "-q", *asked)
        where = "import isomorph; assert 'site-packages' in isomorph.__file__, isomorph.__file__"
        session.run(python, "-c", where)
        session.run(python, "-m", "pytest", "-m", "not slow", "-n", "2", *RELEASED)


@nox.session(venv_backend="none")
@nox.parametrize("artefact", ARTEFACTS)
def scoreboard(session, artefact):
    """Install what `make release` built of the scoreboard, alone, and run its tests with it."""
    (built,) = Path("dist").glob(f"pytest_scoreboard-*.{artefact}")
    with TemporaryDirectory() as folder:
        python = f"{folder}/bin/python"
        session.run("python", "-m", "venv", folder)
        session.run(python, "-m", "pip", "install", "-q", built.resolve(), "-c", "constraints.txt")
        with session.chdir("pytest-scoreboard"):
            session.run(python, "-m", "pytest")


# The part of the suite that a release is tested with: it takes a minute or two.
RELEASED = (
    "tests/test_readme.py", "tests/modules", "tests/promises/test_dispatch.py",
    "tests/compile/test_compile.py", "tests/arrays/test_conversion.py",
    "tests/training/test_fit.py",
)  # fmt: skip


def commit(session):
    """The commit that was run, and whether files differed from it."""
    said = session.run("git", "describe", "--always", "--dirty", external=True, silent=True)
    return said.strip()


def counted(report):
    """The counts of outcomes in a JUnit file; zeros if the run wrote no file."""
    if not report.exists():
        return {"tests": 0, "failures": 0, "errors": 0, "skipped": 0, "seconds": 0.0}
    suite = ElementTree.parse(report).getroot().find("testsuite")
    said = {word: int(suite.get(word)) for word in ("tests", "failures", "errors", "skipped")}
    return {**said, "seconds": float(suite.get("time"))}


def machine():
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"


@nox.session(venv_backend="none")
def table(session):
    """Write `docs/versions.md` from the results of the environments in `.nox/results`."""
    rows = []
    for python, framework, age in ENVIRONMENTS:
        found = RESULTS / f"{framework}-{age}-{python}.json"
        if not found.exists():
            rows.append(f"| {framework} | {age} | | {python} | | not run | | |")
            continue
        result = json.loads(found.read_text())
        red = result["failures"] + result["errors"]
        green = result["tests"] - red - result["skipped"]
        said = f"{green:,} passed, {red or 'none'} failed, {result['skipped']:,} left out"
        if not result["tests"]:
            said = "the run broke off"
        elif result["ended"] and not red:
            said += ", and not every verb was used"
        minutes, seconds = divmod(round(result["seconds"]), 60)
        rows.append(
            f"| {framework} | {age} | {result['version']} | {python} | {result['numpy']} | {said} "
            f"in {minutes}:{seconds:02} | {result['date']}, {result['commit']} | "
            f"{result['machine']} |"
        )
    TABLE.write_text(HEAD + "\n".join(rows) + "\n")


HEAD = """# Versions

`make versions` (`noxfile.py`) writes this page. For each row it makes an environment with one
framework beside NumPy and runs the core suite (`pytest --core`) in it. The framework is the oldest
supported version (with the oldest optree and array-api-compat), the pinned one that all tests run
with (`constraints.txt`), or the newest on the package index. Tests that need another framework are
left out and counted. In the pinned rows, every verb of the backends must have been used, eagerly
and in a compiled program (`--verbs`). "Not run" means that the machine does not have that version
of Python, or that the row was not requested.

| framework | age | version | Python | NumPy | core suite | when | machine |
|---|---|---|---|---|---|---|---|
"""
