"""A pytest plugin for `run.py`: every test starts from its own fixed seed.

`--derandomize` fixes what Hypothesis draws inside a test, but the suite's special cases draw one
example outside, shuffled by Python's global generator.
"""

import random

import pytest


def pytest_runtest_setup(item: pytest.Item) -> None:
    random.seed(item.nodeid)
