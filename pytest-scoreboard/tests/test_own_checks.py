"""What counts as an assertion beside `assert`; and a test that reached none is hollow."""

from .conftest import needs

LIBRARY = """
import subprocess

def assert_alike(x, y):
    if x != y:
        raise AssertionError

def xp_assert_equal(x, y):
    assert_alike(x, y)

def assertive(x):
    return x

class Backend:
    def assert_same(self, x, y):
        assert_alike(x, y)

def compile():
    subprocess.run(["true"], check=True)
    subprocess.check_call(["true"])
    subprocess.check_output(["true"])
    subprocess.run(["true"]).check_returncode()
"""
TESTS = """
from __future__ import annotations
import subprocess
from unittest import TestCase
import pytest
import mylib.testing
from mylib.testing import assertive, xp_assert_equal

def test_raises_by_itself():
    x = 3
    if x != 3:
        raise AssertionError("needed 3")

def test_raises_in_a_helper():
    helper(3)

def helper(x):
    for y in range(x):
        if y > 5:
            raise AssertionError

def test_fails_by_pytest():
    try:
        int("3")
    except ValueError:
        pytest.fail("no number")

def test_else_of_a_loop():
    for n in range(3):
        if n == 2:
            break
    else:
        pytest.fail("not found")

class TestOld(TestCase):
    def test_old(self):
        if 1 > 2:
            self.fail("no")

def test_checked_run():
    subprocess.run(["true"], check=True)

def test_check_call():
    subprocess.check_call(["true"])

def test_check_output():
    subprocess.check_output(["true"])

def test_check_returncode():
    subprocess.run(["true"]).check_returncode()

def test_assertion_of_a_library():
    xp_assert_equal(3, 3)

def test_assertion_by_its_module():
    mylib.testing.assert_alike(3, 3)

def test_assertion_of_an_object():
    backend = mylib.testing.Backend()
    backend.assert_same(3, 3)

class Own:
    def assert_nothing(self, x):
        return x == 3

    def assert_three(self, x):
        assert x == 3

def test_assertion_of_an_object_of_the_tests():
    own = Own()
    own.assert_three(3)

# Hollow:

def test_hollow_assertion_of_the_tests():
    own = Own()
    own.assert_nothing(4)

def test_hollow_object_not_reached():
    for backend in []:
        backend.assert_same(3, 3)

def test_hollow_returns_before_it():
    x = 3
    if x == 3:
        return
    if x != 3:
        raise AssertionError

def test_hollow_run_that_is_not_checked():
    subprocess.run(["false"])

def test_hollow_run_by_a_library():
    mylib.testing.compile()

def test_hollow_raises_another_error():
    if 1 > 2:
        raise ValueError

def test_hollow_by_a_similar_name():
    assertive(3)
"""
TORCH = """
def gradcheck(function, x): return True
gradgradcheck = gradcheck
"""
GRADIENTS = """
def test_of_torch():
    import torch.autograd
    torch.autograd.gradcheck(abs, 1.0)

def test_of_torch_twice():
    from torch.autograd import gradgradcheck
    gradgradcheck(abs, 1.0)
"""


def test_every_kind_of_check_counts(project):
    project.file("mylib/__init__.py", "")
    project.file("mylib/testing.py", LIBRARY)
    project.file("tests/test_it.py", TESTS)
    project.run("tests")
    check_kinds(project.states())


def check_kinds(states):
    found = {name.rpartition("::")[2]: state for (name, _, _), state in states.items()}
    assert len(found) == 20
    wanted = {name: "hollow" if "hollow" in name else "passed" for name in found}
    assert found == wanted


def test_a_failing_check_fails(project):
    text = TESTS.replace("x != 3", "x == 3").replace('int("3")', 'int("three")')
    project.file("mylib/__init__.py", "")
    project.file("mylib/testing.py", LIBRARY)
    project.file("tests/test_it.py", text)
    project.run("tests")
    found = {name: state for (name, _, _), state in project.states().items()}
    assert found["test_raises_by_itself"] == found["test_fails_by_pytest"] == "failed"


@needs("torch")
def test_checks_of_gradients_count(project):
    """In place of torch stands a small package with its names: importing torch takes seconds."""
    import torch

    assert callable(torch.autograd.gradcheck)
    assert callable(torch.autograd.gradgradcheck)
    project.file("torch/__init__.py", "")
    project.file("torch/autograd.py", TORCH)
    project.file("tests/test_it.py", GRADIENTS)
    project.run("tests")
    assert set(project.states().values()) == {"passed"}
    assert len(project.states()) == 2


COUNTED = """
import unittest
import numpy as np
import isomorph

def test_of_gradients():
    isomorph.check_gradients(np.sin, np.ones(2))

def test_by_module():
    np.testing.assert_allclose(1.0, 1.0)
    np.testing.assert_equal(2, 2)
    assert 3

class TestOld(unittest.TestCase):
    def test_old(self):
        self.assertEqual(1, 1)
        self.assertTrue(True)
"""


@needs("numpy")
def test_an_assertion_counts_once(project):
    project.file("isomorph.py", "def check_gradients(function, x): pass\n")
    project.file("test_it.py", COUNTED)
    project.run()
    counts = dict(
        project.query(
            "SELECT name, asserts FROM result JOIN cell USING (cell) JOIN test USING (test)"
        )
    )
    assert counts == {"test_of_gradients": 1, "test_by_module": 3, "TestOld::test_old": 2}
