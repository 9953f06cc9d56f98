"""Keywords that functions of other libraries have, and what they are called here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from typing import Any, NoReturn, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

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
    "learning_rate": "write lr=, or the number alone",
    "betas": "write beta1= and beta2=",
    "beta_1": "write beta1=",
    "beta_2": "write beta2=",
    "b1": "write beta1=",
    "b2": "write beta2=",
    "alpha": "write decay=",
    "rho": "write decay=",
    "clipnorm": "join iso.optimizers.clip_by_norm to it with iso.chain",
    "global_clipnorm": "join iso.optimizers.clip_by_global_norm to it with iso.chain",
    "params": "an optimizer is told of parameters by init and update",
    "inplace": "nothing is changed in place: leave it out",
}


def refuse(name: str, given: Mapping[str, Any]) -> NoReturn:
    """Say that a function has no such keyword, and what to write instead where that is known."""
    word = next(iter(given))
    other = f"; {WORDS[word]}" if word in WORDS else ""
    raise TypeError(f"{name}: got an unexpected keyword argument {word!r}{other}")


def checked(func: Callable[P, R]) -> Callable[P, R]:
    """A function of `isomorph.optimizers` that says what its keywords are called."""
    names = {p.name for p in signature(func).parameters.values() if p.kind is not p.POSITIONAL_ONLY}

    @wraps(func)
    def call(*args: P.args, **kw: P.kwargs) -> R:
        if not kw.keys() <= names:
            others = {word: x for word, x in kw.items() if word not in names}
            refuse(f"optimizers.{func.__name__}", others)
        return func(*args, **kw)

    return call
