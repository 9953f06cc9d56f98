"""Errors in units in the last place."""

import pytest

np = pytest.importorskip("numpy")

from pytest_scoreboard import comparing  # noqa: E402
from pytest_scoreboard.tally import TALLY, Tally, ulps  # noqa: E402


@pytest.mark.parametrize(
    ("value", "reference", "error"),
    [
        (np.float32(1), 1 + 2.0**-22, 2.0),  # in ulps of the value, which is coarser
        (np.float64(1), np.float32(1) + np.spacing(np.float32(1)), 1.0),  # or of the reference
        (np.array([0.0, 1e-3]), np.array([2.0**-52, 1e-3]), 2.0**10),  # ulps of the largest element
        (np.array([2.0**-52]), np.array([0.0]), 1.0),  # for zeros, ulps of one
        (np.array([np.nan, 1.0]), np.array([np.nan, 1.0]), 0.0),
        (np.array([np.nan, 1.0]), np.array([1.0, 1.0]), float("inf")),
        (np.array([1.0, 1.0]), np.array([np.inf, 1.0]), float("inf")),
        (np.array([1 + 1j]), np.array([1 + 1j + 2.0**-52]), 1.0),
        (np.array([1, 2]), np.array([1, 3]), None),  # integers have no ulps
        ("text", "text", None),
        (np.zeros((2, 3)), np.ones((4, 5)), None),
    ],
)
def test_ulps(value, reference, error):
    assert ulps(value, reference) == error


def test_the_worst_error_is_kept_of_either_kind():
    tally = Tally()
    for steps in (1, 3, 2):
        tally.error(np.float64(1), 1 + steps * 2.0**-52, "value")
    tally.error(np.float64(1), 1.0, "gradient")
    assert tally.errors == {"value": 3.0, "gradient": 0.0}
    before = TALLY.kind
    with pytest.raises(KeyError), comparing("gradient"):
        assert TALLY.kind == "gradient"
        raise KeyError
    assert TALLY.kind == before
