"""Keywords that functions of other libraries have, and what they are called here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

LOGITS = "cross entropies take logits, never probabilities: leave it out"
WEIGHED = 'write reduction="none", and weigh what comes'
REDUCED = 'write reduction="mean", "sum" or "none"'

WORDS = {
    "from_logits": LOGITS,
    "weight": WEIGHED,
    "pos_weight": WEIGHED,
    "sample_weight": WEIGHED,
    "class_weight": WEIGHED,
    "size_average": REDUCED,
    "reduce": REDUCED,
    "dim": "write axis=",
    "keepdim": "write keepdims=",
    "eps": "write epsilon=",
    "inplace": "nothing is changed in place: leave it out",
}


def refuse(name: str, given: Mapping[str, Any]) -> NoReturn:
    """Say that a function has no such keyword, and what to write instead where that is known."""
    word = next(iter(given))
    other = f"; {WORDS[word]}" if word in WORDS else ""
    raise TypeError(f"{name}: got an unexpected keyword argument {word!r}{other}")
