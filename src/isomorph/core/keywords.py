"""Keywords of other libraries, and their names here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from typing import Any, NoReturn, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

LOGITS = "cross entropies always take logits, never probabilities: leave it out"
WEIGHED = 'write reduction="none", and multiply the result by the weights'
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
    "learning_rate": "write lr=, or only the number",
    "betas": "write beta1= and beta2=",
    "beta_1": "write beta1=",
    "beta_2": "write beta2=",
    "b1": "write beta1=",
    "b2": "write beta2=",
    "alpha": "write decay=",
    "rho": "write decay=",
    "clipnorm": "use iso.chain(iso.optimizers.clip_by_norm(...), optimizer)",
    "global_clipnorm": "use iso.chain(iso.optimizers.clip_by_global_norm(...), optimizer)",
    "params": "pass parameters to the optimizer's init and update",
    "use_bias": "write bias=",
    "units": "write in_features and out_features",
    "filters": "write in_channels and out_channels",
    "p": "write prob, or only the number",
    "rate": "write prob, or only the number",
    "stride": "write strides=",
    "dilation": "write dilations=",
    "batch_first": "write time_major=, which is its opposite",
    "return_sequences": "all steps are returned: leave it out",
    "normalized_shape": "write shape, or only the numbers",
    "elementwise_affine": "write affine=",
    "num_embeddings": "write rows",
    "embedding_dim": "write width",
    "input_dim": "write rows, or in_features",
    "output_dim": "write width, or out_features",
    "embed_dim": "write width",
    "kernel_initializer": "write w_init=",
    "bias_initializer": "write b_init=",
    "device": "arrays are made on the device of the enclosing iso.use_backend",
    "dtype": "make it inside `with iso.use_backend(name, dtype=...):`",
    "weight_decay": "use adamw, or add iso.optimizers.add_decayed_weights with iso.chain",
    "inplace": "isomorph changes nothing in place: leave it out",
}


def refuse(name: str, given: Mapping[str, Any]) -> NoReturn:
    """Raise: the function has no such keyword; say what to write instead where that is known."""
    word = next(iter(given))
    other = f"; {WORDS[word]}" if word in WORDS else ""
    raise TypeError(f"{name}: got an unexpected keyword argument {word!r}{other}")


def explained(name: str, init: Any, given: Mapping[str, Any], error: TypeError) -> None:
    """Raise `refuse`'s message if `error` says that a layer does not take the keyword."""
    said = str(error)
    if (
        init.__module__.startswith(f"{__name__.partition('.')[0]}.")
        and "__init__() got an unexpected keyword argument" in said
    ):
        word = said.rpartition(" ")[2].strip("'")
        if word in given:
            refuse(name, {word: given[word]})


def checked(func: Callable[P, R]) -> Callable[P, R]:
    """A function of `isomorph.optimizers` whose error for an unknown keyword says what to write."""
    names = {p.name for p in signature(func).parameters.values() if p.kind is not p.POSITIONAL_ONLY}

    @wraps(func)
    def call(*args: P.args, **kw: P.kwargs) -> R:
        if not kw.keys() <= names:
            others = {word: x for word, x in kw.items() if word not in names}
            refuse(f"optimizers.{func.__name__}", others)
        return func(*args, **kw)

    return call
