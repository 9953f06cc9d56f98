"""A door to `pytest_scoreboard`, a distribution of its own in this repository."""

try:
    from pytest_scoreboard import comparing, record_error, record_mode
except ModuleNotFoundError as error:
    raise ImportError(
        "isomorph.scoreboard: needed the package pytest_scoreboard, found none; "
        "pip install ./pytest-scoreboard in a checkout of isomorph"
    ) from error

__all__ = ["comparing", "record_error", "record_mode"]
