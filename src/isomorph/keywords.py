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
    "use_bias": "write bias=",
    "units": "write in_features and out_features",
    "filters": "write in_channels and out_channels",
    "p": "write prob, or the number alone",
    "rate": "write prob, or the number alone",
    "stride": "write strides=",
    "dilation": "write dilations=",
    "batch_first": "write time_major=, which is its opposite",
    "return_sequences": "all steps are returned: leave it out",
    "normalized_shape": "write shape, or the numbers alone",
    "elementwise_affine": "write affine=",
    "num_embeddings": "write rows",
    "embedding_dim": "write width",
    "input_dim": "write rows, or in_features",
    "output_dim": "write width, or out_features",
    "embed_dim": "write width",
    "kernel_initializer": "write w_init=",
    "bias_initializer": "write b_init=",
    "device": "arrays are made where iso.use_backend says",
    "dtype": "write with iso.use_backend(name, dtype=...): around it",
    "weight_decay": "take adamw, or join iso.optimizers.add_decayed_weights with iso.chain",
    "inplace": "nothing is changed in place: leave it out",
}


def refuse(name: str, given: Mapping[str, Any]) -> NoReturn:
    """Say that a function has no such keyword, and what to write instead where that is known."""
    word = next(iter(given))
    other = f"; {WORDS[word]}" if word in WORDS else ""
    raise TypeError(f"{name}: got an unexpected keyword argument {word!r}{other}")


def explained(name: str, init: Any, given: Mapping[str, Any], error: TypeError) -> None:
    """Refuse the keyword of which Python has said that a layer of ours does not take it."""
    said = str(error)
    if (
        init.__module__.startswith(f"{__package__}.")
        and "__init__() got an unexpected keyword argument" in said
    ):
        word = said.rpartition(" ")[2].strip("'")
        if word in given:
            refuse(name, {word: given[word]})


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
