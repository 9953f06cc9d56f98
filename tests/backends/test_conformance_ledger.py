"""Every entry of `conformance/ledger.toml` gives an example that fails: an expression that should
be true and is not, or raises. When one becomes true, the framework was fixed, and the entry can go.
"""

import math
import operator
import os
import re
import tomllib
from pathlib import Path

import pytest
from frameworks import BACKENDS, NOT_INSTALLED, enable_x64

from isomorph.core.dispatch import load

LEDGER = tomllib.loads((Path(__file__).parents[2] / "conformance/ledger.toml").read_text())
MAY_FAIL = [
    pytest.param(
        name,
        example,
        group["says"],
        id=f"{name}-{test.rpartition('::')[2]}",
        marks=[
            pytest.mark.skipif(
                "xla" in group and os.environ.get("ISOMORPH_XLA") == "quick",
                reason="only fails with XLA's default settings",
            ),
        ],
    )
    for name in BACKENDS
    for group in LEDGER.get(name, [])
    for test, example in group.get("may_fail", {}).items()
    if "holds" not in group
]
BY_KERNEL = [
    pytest.param(name, group["holds"], id=f"{name}-{number}")
    for name in BACKENDS
    for number, group in enumerate(LEDGER.get(name, []))
    if "holds" in group
]


def holds(name, example):
    xp = load(name).namespace
    array = lambda dtype, *values: xp.asarray(values or [2], dtype=getattr(xp, dtype))
    scalar = lambda dtype: xp.asarray(2, dtype=getattr(xp, dtype))
    names = {"xp": xp, "array": array, "scalar": scalar, "math": math, "operator": operator}
    with enable_x64(True):
        return bool(eval(example, names))


@pytest.mark.parametrize(("name", "example", "says"), MAY_FAIL)
def test_what_may_fail_does(name, example, says):
    try:
        held = holds(name, example)
    except (AttributeError, NameError, SyntaxError):
        raise  # the example is wrong, not the framework
    except Exception as error:
        assert re.search(says, f"{type(error).__name__}: {error}")  # noqa: PT017
    else:
        assert not held


@pytest.mark.parametrize(("name", "example"), BY_KERNEL)
def test_what_a_kernel_does_not_decide(name, example):
    assert holds(name, example)


@pytest.mark.parametrize("name", [name for name in BACKENDS if name not in NOT_INSTALLED])
def test_an_example_that_holds_is_seen(name):
    assert holds(name, "xp.sum(xp.asarray([1, 2])) == 3")


def test_every_line_has_a_reason():
    for name in BACKENDS:
        for group in LEDGER.get(name, []):
            assert group["reason"]
            assert bool(group.get("tests")) != bool(group.get("may_fail"))
            assert ("may_fail" in group) == ("says" in group)
