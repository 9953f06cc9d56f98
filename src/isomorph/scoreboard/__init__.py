"""The scoreboard: a matrix of tests by backends that cannot lie.

A pytest plugin (`pytest --scoreboard`), an SQLite file, a command (`isomorph scoreboard`), Markdown
tables and one static page, for any library whose tests are parametrized over backends. It uses
nothing of the rest of isomorph. A test can report more than passed or failed:

    from isomorph.scoreboard import comparing, record_error, record_mode

    record_error(got, expected, kind="gradient")  # the worst one is kept, in ulps
    record_mode("jit")  # this test ran compiled code
    with comparing("gradient"):  # comparisons in here are of gradients
        np.testing.assert_allclose(got, expected)
"""

from .tally import comparing, record_error, record_mode

__all__ = ["comparing", "record_error", "record_mode"]
