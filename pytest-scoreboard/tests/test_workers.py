"""With pytest-xdist, what the workers saw reaches the process that writes. One run with two
workers, of projects that other files run alone.
"""

import pytest

from . import test_own_checks, test_states, test_trouble
from .conftest import needs

CONFTEST = """
def pytest_collection_modifyitems(config, items):
    left = [item for item in items if "left_out" in item.name]
    items[:] = [item for item in items if item not in left]
    config.hook.pytest_deselected(items=left)
    config.hook.pytest_scoreboard_left_out(items=left, seed=7)
"""
CRASH = """
import os, pytest
@pytest.mark.parametrize("backend", ["numpy", "jax"])
def test_crashed(backend):
    if backend == "jax":
        os._exit(9)
    assert True
"""
SAMPLE = """
import pytest
@pytest.mark.parametrize("backend", ["numpy", "jax"])
@pytest.mark.parametrize("which", ["drawn", "left_out"])
def test_some(backend, which): assert backend
"""


def run(project, monkeypatch):
    """A run with two workers, whose output is `project.done`."""
    project.file("conftest.py", CONFTEST)
    project.file("mylib/__init__.py", "")
    project.file("mylib/testing.py", test_own_checks.LIBRARY)
    test_states.write(project, "tests/")
    project.file("tests/test_own.py", test_own_checks.TESTS)
    project.file("tests/test_axis.py", test_trouble.FOUND["nx"])
    project.file("tests/test_crash.py", CRASH)
    project.file("tests/test_sample.py", SAMPLE)
    path = project.file("tests/test_skip.py", test_trouble.ONE)
    tmp = project.file("tmp/file", "").parent
    monkeypatch.setenv("TMPDIR", str(tmp))
    assert project.run("tests/test_skip.py").ret == 0
    path.write_text(f"import pytest\npytest.importorskip('no_such')\n{test_trouble.ONE}")
    project.done = project.run("-p", "xdist", "-n", 2, *test_states.OPTIONS, "tests")


@needs("numpy", "xdist", "pytest_timeout", "pytest_rerunfailures")
@pytest.mark.takes("it starts workers")
def test_what_workers_saw_arrives(project, monkeypatch):
    run(project, monkeypatch)
    check_every_state(project)
    check_a_worker_that_crashed(project)
    check_every_kind_of_check(project)
    check_the_axis_that_the_workers_found(project)
    check_a_file_skipped_as_a_whole(project)
    check_what_a_sample_left_out(project)
    check_the_slowest_tests_of_all_workers(project)
    check_no_folder_is_left_behind(project)


def check_every_state(project):
    test_states.check(project, project.done, "tests/", 17 + 1 + 2 + 1)


def check_a_worker_that_crashed(project):
    assert project.states(file="tests/test_crash.py") == {
        ("test_crashed", "", "jax"): "crashed",
        ("test_crashed", "", "numpy"): "passed",
    }


def check_every_kind_of_check(project):
    test_own_checks.check_kinds(project.states(file="tests/test_own.py"))


def check_the_axis_that_the_workers_found(project):
    libraries = {key[2] for key in project.states(file="tests/test_axis.py")}
    assert libraries == {"numpy", "torch"}
    said = (
        "backends are the values of nx: its values are array libraries (numpy, torch), in 4 tests"
    )
    assert said in project.done.stdout.lines


def check_a_file_skipped_as_a_whole(project):
    assert project.states(file="tests/test_skip.py") == {
        ("test_it", "", b): "skipped" for b in "ab"
    }


def check_what_a_sample_left_out(project):
    assert project.states(file="tests/test_sample.py") == {
        ("test_some", which, backend): word
        for which, word in (("drawn", "passed"), ("left_out", "not sampled"))
        for backend in ("numpy", "jax")
    }
    ((cells,),) = project.query(
        "SELECT count(*) FROM (SELECT DISTINCT test, backend FROM result JOIN cell USING (cell)"
        " WHERE run = 2)"
    )
    assert f"sampled: {cells - 2} of {cells} (seed 7)" in project.done.stdout.lines


def check_the_slowest_tests_of_all_workers(project):
    lines = project.done.stdout.lines
    first = lines.index("slowest tests:") + 1
    shown = [line.split() for line in lines[first : first + 10] if " s  tests/" in line]
    seconds = {name: float(s) for s, _, name in shown}
    assert list(seconds.values()) == sorted(seconds.values(), reverse=True)
    assert seconds["tests/test_it.py::test_timeout[jax]"] > 0.5


def check_no_folder_is_left_behind(project):
    assert (project.path / "tmp" / "file").exists()
    assert not list((project.path / "tmp").glob("scoreboard-*"))
