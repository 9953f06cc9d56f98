"""Traced calls of distributions, for several files of tests."""

import numpy as np

import isomorph as iso
import isomorph.scipy as isp


def traced(name, method, x, shapes, loc=0.0, scale=1.0, *, fixed=False):
    """The value, and the gradients for x, loc, scale and, unless they are `fixed`, the shapes."""
    kept = {}

    def call(v):
        own = shapes if fixed else [v[i + 3] for i in range(len(shapes))]
        y = getattr(getattr(isp.stats, name), method)(v[0], *own, loc=v[1], scale=v[2])
        kept["y"] = iso.stop_gradient(y)
        return y

    with np.errstate(all="ignore"):
        gradient = iso.grad(call)(np.array([x, loc, scale, *([] if fixed else shapes)]))
    return kept["y"], gradient
