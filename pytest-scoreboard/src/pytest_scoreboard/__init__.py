"""A board of tests by backends that cannot lie.

A pytest plugin (`pytest --scoreboard`), an SQLite file, a command (`scoreboard`), Markdown tables
and one static page, for any library whose tests are parametrized over backends. A test can report
more than passed or failed:

    from pytest_scoreboard import comparing, record_error, record_mode

    record_error(got, expected, kind="gradient")  # the worst one is kept, in ulps
    record_mode("jit")  # this test ran compiled code
    with comparing("gradient"):  # comparisons in here are of gradients
        np.testing.assert_allclose(got, expected)
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .tally import comparing, record_error, record_mode

__all__ = ["comparing", "record_error", "record_mode"]


def __getattr__(name: str) -> Any:
    """The functions of `tally`, imported late: pytest imports the package in every run."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import tally

    return getattr(tally, name)
