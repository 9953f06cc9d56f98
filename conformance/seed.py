"""A pytest plugin for `run.py`. It seeds Python's random generator for every test from the run's
seed and the test's name, and stops a test at the first example that fails.

`--hypothesis-seed` fixes what Hypothesis draws inside a test. But the suite's special cases draw
one example outside of Hypothesis, shuffled by Python's global generator. Searching for the smallest
example of each known failure would take most of the time of a run, so only `--shrink` does it.
"""

import os
import random

import pytest
from hypothesis import Phase, settings


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    if not os.environ.get("SUITE_SHRINK"):
        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("run", settings.default, phases=phases)
        settings.load_profile("run")


def pytest_runtest_setup(item: pytest.Item) -> None:
    random.seed(f"{os.environ['SUITE_SEED']} {item.nodeid}")
