"""The states of a cell: one table with the stored number, the word, the glyph, how bad it is and
whether it needs action. Colours come from the page's style sheet.
"""

from __future__ import annotations

from typing import NamedTuple


class State(NamedTuple):
    code: int  # in the database; -1 and -2 mean that there is no row
    word: str
    glyph: str
    rank: int  # the highest of several wins
    red: bool  # needs action
    badge: str  # the colour of its badge in Markdown


STATES = (
    State(0, "passed", "✓", 1, False, "success"),
    State(1, "failed", "✗", 9, True, "red"),
    State(2, "error", "!", 10, True, "red"),
    State(3, "skipped", "–", 3, False, "lightgrey"),
    State(4, "xfailed", "x", 4, False, "yellow"),
    State(5, "xpassed", "?", 7, True, "orange"),
    State(6, "crashed", "☠", 12, True, "red"),
    State(7, "timeout", "T", 11, True, "red"),
    State(8, "not collected", "∅", 8, True, "red"),
    State(9, "hollow", "○", 6, True, "blueviolet"),
    State(10, "not sampled", "…", 0, False, "lightgrey"),
    State(-1, "not run", "·", 5, False, "lightgrey"),
    State(-2, "missing", "□", 2, False, "lightgrey"),
)
BY_CODE = {state.code: state for state in STATES}
BY_WORD = {state.word: state for state in STATES}
# as tables show them: from best to worst, and last what a sample left out
SHOWN = sorted(STATES, key=lambda state: state.rank or len(STATES))
PASSED, FAILED, ERROR, SKIPPED, XFAILED, XPASSED, CRASHED, TIMEOUT, UNCOLLECTED, HOLLOW = range(10)
NOT_SAMPLED = 10
NOT_RUN, MISSING = -1, -2


def worst(codes: list[int]) -> int:
    """The state that represents several.

    >>> BY_CODE[worst([PASSED, HOLLOW, PASSED])].word
    'hollow'
    """
    return max(codes, key=lambda code: BY_CODE[code].rank, default=MISSING)


def red(code: int) -> bool:
    return BY_CODE[code].red
