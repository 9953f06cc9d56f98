"""The scoreboard: a matrix of tests by backends that cannot lie.

A pytest plugin (`pytest --scoreboard`), an SQLite file, a command (`isomorph scoreboard`), Markdown
tables and one static page, for any library whose tests are parametrized over backends. Nothing of
the rest of isomorph is used here. A test can say more than passed or failed:

    from isomorph.scoreboard import comparing, record_error, record_mode

    record_error(got, expected, kind="gradient")  # the worst one is kept, in ulps
    record_mode("jit")  # this test ran compiled code
    with comparing("gradient"):  # what comparisons seen in here are of
        np.testing.assert_allclose(got, expected)
"""

from .tally import comparing, record_error, record_mode

__all__ = ["comparing", "record_error", "record_mode"]
