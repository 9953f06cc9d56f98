"""Special functions of 100,000 numbers over the framework's own: SciPy's for NumPy, torch.special,
jax.scipy.special and tf.math. Where ours are composed, their time stands beside the native one
without a budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from inspect import isfunction
from typing import Any

import numpy as np

import isomorph as iso
from isomorph.backends.numpy.special import scipy_kernel

from .tables import Table
from .timing import within

SIZE = 100_000
PLUS, REAL, CHANCE = (0.1, 20.0), (-5.0, 5.0), (0.01, 0.99)
# The ranges of the arguments.
FUNCTIONS = {
    "gammaln": (PLUS,), "gamma": (PLUS,), "digamma": (PLUS,), "zeta": ((1.5, 9.0), PLUS),
    "beta": (PLUS, PLUS), "betaln": (PLUS, PLUS), "betainc": (PLUS, PLUS, CHANCE),
    "gammainc": (PLUS, PLUS), "gammaincc": (PLUS, PLUS), "erf": (REAL,), "erfc": (REAL,),
    "erfcx": (REAL,), "erfinv": ((-0.99, 0.99),), "ndtr": (REAL,), "log_ndtr": (REAL,),
    "ndtri": (CHANCE,), "expit": (REAL,), "logit": (CHANCE,), "log_expit": (REAL,),
    "xlogy": (PLUS, PLUS), "xlog1py": (PLUS, PLUS), "entr": (PLUS,), "rel_entr": (PLUS, PLUS),
    "kl_div": (PLUS, PLUS), "i0": (REAL,), "i0e": (REAL,), "i1": (REAL,), "i1e": (REAL,),
    "iv": (PLUS, PLUS), "ive": (PLUS, PLUS), "jv": (PLUS, PLUS), "yv": (PLUS, PLUS),
    "sinc": (REAL,), "binom": (PLUS, PLUS),
}  # fmt: skip
# What the frameworks call them, where it is another name.
OTHER = {
    "tensorflow": {
        "gammaln": "lgamma", "gammainc": "igamma", "gammaincc": "igammac", "expit": "sigmoid",
        "log_expit": "log_sigmoid", "i0": "bessel_i0", "i0e": "bessel_i0e", "i1": "bessel_i1",
        "i1e": "bessel_i1e",
    },
}  # fmt: skip
PEERS = {
    "numpy": "scipy.special",
    "jax": "jax.scipy.special",
    "tensorflow": "tensorflow.math",
    "torch": "torch.special",
}
BUDGETS = {"numpy": 1.2, "torch": 1.05}


def run(seconds: float = 0.4) -> Table:
    rows = []
    for backend, name, ours, theirs, native in _calls():
        found = within({"ours": ours, "theirs": theirs}, seconds)
        ratio = found["ours"] / found["theirs"]
        budget = BUDGETS.get(backend) if native else None
        rows.append([
            f"{backend} {name}", "native" if native else "composed", f"{1e6 * found['ours']:.0f}",
            f"{1e6 * found['theirs']:.0f}", f"{ratio:.2f}x", f"{budget}x" if budget else "",
            "" if budget is None else "yes" if ratio <= budget else "NO",
        ])  # fmt: skip
    head = ["function", "kernel", "ours µs", "framework's own µs", "ratio", "budget", "met"]
    return Table(head, rows)


def _calls() -> Iterator[tuple[str, str, Callable[[], Any], Callable[[], Any], bool]]:
    rng = np.random.default_rng(0)
    for backend, place in PEERS.items():
        if find_spec(place.partition(".")[0]) is None:
            continue
        peers = import_module(place)
        for name, ranges in FUNCTIONS.items():
            peer = getattr(peers, OTHER.get(backend, {}).get(name, name), None)
            if peer is None:
                continue
            arrays = _arrays(rng, backend, ranges)
            ours = getattr(iso.special, name)
            if backend in ("jax", "tensorflow"):
                ours, peer = iso.jit(ours), iso.jit(peer)
            native = _is_native(backend, name)
            yield backend, name, _waited(ours, arrays), _waited(peer, arrays), native


def _arrays(rng: np.random.Generator, backend: Any, ranges: tuple) -> list[Any]:
    dtype = np.float32 if backend == "jax" else np.float64  # JAX computes in 32 bits by default
    return [
        iso.convert(rng.uniform(low, high, SIZE).astype(dtype), backend) for low, high in ranges
    ]


def _is_native(backend: str, name: str) -> bool:
    """Whether the framework's function itself is called."""
    if backend == "numpy":
        return scipy_kernel(name) is not None
    if backend != "torch":
        return False
    from isomorph.backends.torch.pointwise import KERNELS  # pyright: ignore

    return name in KERNELS and not isfunction(KERNELS[name])


def _waited(function: Callable[..., Any], arrays: list[Any]) -> Callable[[], Any]:
    """A call that returns when the result is computed."""

    def call() -> Any:
        y = function(*arrays)
        return y.block_until_ready() if hasattr(y, "block_until_ready") else y

    return call
