"""One example of every public name that computes, with the same in plain NumPy; and a reason for
every other name.

Each example is tested on every backend: values, gradients, compiled, in float32, at zero, without
examples and with many (`test_examples.py`), in narrow dtypes (`layers/`), mapped and under
every framework's own transforms (`borders/`), and as an edge case (`backends/edge_layers.py`). A
variant has a comma in its name: "gelu, approximate".
"""

from functools import cache

import numpy as np

import isomorph as iso
from isomorph.backends import vocabulary
from isomorph.core import tree
from isomorph.frontends.jax import lax
from oracles import name_of

from . import activations, arrays, layers, modules, namespace, special, transforms
from .entries import (
    BACKENDS,
    MAY_NOT,
    Function,
    Layer,
    Pair,
    X,
    arrays_of,
    const,
    larger,
    may,
    of_number,
    of_vector,
    parts,
)  # fmt: skip

__all__ = [
    "BACKENDS",
    "FUNCTIONS",
    "GROUPS",
    "LAYERS",
    "LEFT_OUT",
    "MAY_NOT",
    "NAMES",
    "PAIRS",
    "SAME",
    "TABLE",
    "TOPICS",
    "Function",
    "Layer",
    "Pair",
    "X",
    "arrays_of",
    "const",
    "groups_of",
    "larger",
    "may",
    "name_in",
    "of_number",
    "of_vector",
    "parts",
    "public",
]  # fmt: skip

NAMES = namespace.NAMES
LAYERS = modules.LAYERS
PAIRS = modules.PAIRS
TOPICS = {
    "activations": activations.FUNCTIONS,
    "layers": layers.FUNCTIONS,
    "arrays": arrays.FUNCTIONS,
    "special": special.FUNCTIONS,
    "transforms": transforms.FUNCTIONS,
}
FUNCTIONS = {name: entry for part in TOPICS.values() for name, entry in part.items()}


@cache
def module(name):
    """A module with NumPy's arrays: those of a framework may be made while it traces a program, and
    could not be kept.
    """
    with iso.use_backend("numpy", dtype="float64"), iso.use_key(3):
        return LAYERS[name].make(iso)


def along(w):
    """Another number for each element of a variable."""
    return const(w, np.cos(1.0 + np.arange(int(np.prod(w.shape)))).reshape(tuple(w.shape)))


def layer(name, entry):
    """A layer as a function of its input and of a step of all its variables."""
    stepped = lambda v, by: tree.map(lambda w: w + along(w) * by[0], v)

    def call(_, x, by):
        xp = iso.namespace(x)
        made = iso.convert(module(name), name_of(xp))
        v = tree.map(lambda w: xp.astype(w, x.dtype), made.v)
        return made.apply(stepped(v, by), made.state, x)[0]

    def wanted(x, by):
        return entry.wanted(stepped(module(name).v, by), x)

    but = {"large": "its variables have one size"} | entry.but
    return Function(call, (entry.shape, (1,)), wanted, ((-0.75, 0.85), (0.2, 0.4)), but=but)


def pair(entry):
    """Three steps of an optimizer, as a function of a parameter and gradients."""

    def call(iso, w, *gradients):
        opt, v = entry.make(iso.optimizers), {"w": w}
        state = opt.init(v)
        for g in gradients:
            updates, state = opt.update({"w": g}, state, v)
            v = iso.apply_updates(v, updates)
        return v["w"]

    # no gradient flows through the steps
    return Function(call, ((4, 6),) * 4, lambda w, *g: entry.wanted(w, list(g)), order=0)


def of_namespace(entry):
    return entry._replace(call=lambda iso, *xs: entry.call(iso.namespace(xs[0]), *xs))


TABLE = {
    **FUNCTIONS,
    **{f"xp.{name}": of_namespace(entry) for name, entry in NAMES.items()},
    **{name: layer(name, entry) for name, entry in LAYERS.items()},
    **{f"optimizers.{name}": pair(entry) for name, entry in PAIRS.items()},
}


# The same function under two names: a program differentiates it once.
SAME = {name: f"xp.{name}" for name in TABLE if f"xp.{name}" in TABLE and "linalg." in name}


def name_in(case):
    """The public name of a case of the table."""
    return case.partition(",")[0]


# Names that have no example, and why.
LEFT_OUT = transforms.LEFT_OUT | {
    why: [f"xp.{name}" for name in names] for why, names in namespace.LEFT_OUT.items()
}


def public():
    """Every public name that could have an example."""
    is_of_lax = lambda thing: getattr(thing, "__module__", None) == lax.__name__
    return [
        *(name for name in iso.__all__ if callable(getattr(iso, name))),
        *(f"lax.{name}" for name, x in vars(lax).items() if is_of_lax(x) and name[0] != "_"),
        *(f"{part}.{name}" for part in ("special", "linalg", "random", "optimizers")
          for name in getattr(iso, part).__all__),
        *(f"xp.{name}" for name in vocabulary.VOCABULARY),
        *(f"xp.linalg.{name}" for name in vocabulary.LINALG),
        *(f"xp.fft.{name}" for name in vocabulary.FFT),
    ]  # fmt: skip


def groups_of(backend):
    """The names of each group on a backend. What XLA on TensorFlow lacks is apart."""
    found = {}
    for group, names in GROUPS.items():
        apart = {name: backend == "tensorflow" and not may(TABLE[name], "xla") for name in names}
        for word, lacking in ((group, False), (f"{group}_without_xla", True)):
            some = [name for name in names if apart[name] is lacking]
            if some:
                found[word] = some
    return found


def _groups():
    convolutions = [name for name in TABLE if "conv" in name.lower() and "convolve" not in name]
    elementwise = [name for name in TABLE if name.startswith("xp.") and TABLE[name].each]
    matrices = [name for name in TABLE if "linalg." in name and not name.startswith("lax")]
    of = lambda start: [name for name in TABLE if name.startswith(start)]
    found, seen = {}, set()
    for group, names in (
        ("convolutions", convolutions), ("elementwise", elementwise), ("linalg", matrices),
        ("fft", of("xp.fft.")), ("namespace", of("xp.")), ("optimizers", of("optimizers.")),
        ("random", of("random.")), ("modules", LAYERS), ("special", of("special.")),
        *TOPICS.items(),
    ):  # fmt: skip
        found.setdefault(group, []).extend(name for name in names if name not in seen)
        seen |= set(names)
    return found


GROUPS = _groups()
