"""Nests of lists, tuples and dicts, with arrays and numbers as leaves."""

import numpy as np

import isomorph.numpy as inp

from .tracer import isbox


def flatten(nest):
    """The leaves of a nest, and the function that rebuilds it from other leaves."""
    if isinstance(nest, dict):
        keys, parts = list(nest), list(nest.values())
        build = lambda found: dict(zip(keys, found))
    elif isinstance(nest, (list, tuple)):
        parts, kind = list(nest), type(nest)
        build = kind._make if hasattr(kind, "_make") else kind
    else:
        return [nest], lambda leaves: leaves[0]
    pairs = [flatten(part) for part in parts]

    def rebuild(leaves):
        found, start = [], 0
        for own, again in pairs:
            found.append(again(leaves[start : start + len(own)]))
            start += len(own)
        return build(found)

    return [leaf for own, _ in pairs for leaf in own], rebuild


def floating(x):
    """A leaf as a floating-point array; a number becomes a NumPy scalar."""
    if isbox(x):
        return x
    y = np.asarray(x)
    if y.dtype.kind not in "fc":
        y = y.astype(np.float64)
    return y if isinstance(x, np.ndarray) else y[()]


def matched(g, y):
    """A gradient or tangent for the leaf `y`, in its dtype and shape."""
    g = inp.asarray(g)
    if g.dtype.kind == "c" and y.dtype.kind != "c":
        g = np.real(g)
    return np.reshape(g.astype(y.dtype), np.shape(y))
