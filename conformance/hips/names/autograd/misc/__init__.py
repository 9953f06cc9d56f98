"""autograd's helpers for nests and optimizers, from the checkout."""

import os

__path__ = [*__path__, os.path.join(os.environ["HIPS_AUTOGRAD"], "autograd", "misc")]

from .flatten import flatten


def const_graph(fun, *args, **kw):
    """autograd's replay of its own graph; isomorph's tape is not replayed."""
    raise NotImplementedError("const_graph: isomorph has no graph of this kind")
