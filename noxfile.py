"""The core suite with other versions of the frameworks: `nox`, or `make versions`.

Each environment holds one framework beside NumPy, in the oldest version that is promised, in the
one that `constraints.txt` pins, or in the newest that the interpreter takes. Interpreters that are
not on this machine are reported as not run. What each ran is left in `.nox/results`.
"""

import glob
import os
from pathlib import Path

import nox

nox.options.default_venv_backend = "venv"
nox.options.error_on_missing_interpreters = False
os.environ["PATH"] += "".join(  # what pyenv has, if it is there
    f":{found}" for found in sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin")))
)

PINNED = dict(
    line.split("==") for line in Path("constraints.txt").read_text().split() if "==" in line
)
OLDEST = {"numpy": "2.1.0", "jax": "0.9.0", "tensorflow": "2.19.0", "torch": "2.8.0"}
WITH = {  # what else must be of its time
    ("jax", "oldest"): ["jaxlib==0.9.0"],
    ("jax", "pinned"): [f"jaxlib=={PINNED['jaxlib']}"],
}
TOOLS = [
    "hypothesis", "jinja2", "pytest", "pytest-rerunfailures", "pytest-timeout", "pytest-xdist",
    "rich", "safetensors", "scipy", "tabulate",
]  # fmt: skip
AGES = (("oldest", "3.11"), ("pinned", "3.11"), ("newest", "3.12"), ("newest", "3.13"))
FRAMEWORKS = ("numpy", "jax", "tensorflow", "torch")
ENVIRONMENTS = [(python, name, age) for name in FRAMEWORKS for age, python in AGES]
RESULTS = Path(".nox/results")


def wanted(framework, age):
    version = {"oldest": OLDEST, "pinned": PINNED}.get(age, {}).get(framework)
    first = framework if version is None else f"{framework}=={version}"
    return [first, *WITH.get((framework, age), [])]


@nox.session
@nox.parametrize(
    "python,framework,age",
    ENVIRONMENTS,
    ids=[f"{framework}-{age}-{python}" for python, framework, age in ENVIRONMENTS],
)
def core(session, framework, age):
    """The core suite with one framework beside NumPy."""
    session.install(*wanted(framework, age), *TOOLS)
    session.install("-e", ".")
    RESULTS.mkdir(parents=True, exist_ok=True)
    found = RESULTS / f"{framework}-{age}-{session.python}.xml"
    session.run(
        "python", "-m", "pytest", "--core", "-m", "not slow", "-n", "2", "--dist", "worksteal",
        "--ignore=tests/scoreboard", f"--junitxml={found}", *session.posargs,
    )  # fmt: skip
