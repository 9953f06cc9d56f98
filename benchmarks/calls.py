"""The cost of a public call compared with the native one: `iso.namespace(x).tanh(x)` against
`np.tanh(x)`, and so on.

Each backend has its own process, because Keras fixes its backend at import. A dash means that a
peer has no way to make the call.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

from .tables import Table
from .timing import installed, minima

BACKENDS = ("numpy", "jax", "tensorflow", "torch")
PEERS = ("array-api-compat", "autoray", "EagerPy", "Keras ops")
HEAD = ["backend", "call", "native µs", "isomorph over native", "budget", "met", *PEERS]


def run() -> Table:
    """The table of all four backends."""
    rows = []
    for name in filter(installed, BACKENDS):
        env = os.environ | {
            "KERAS_BACKEND": name,
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "OMP_NUM_THREADS": "1",
        }
        done = subprocess.run(
            [sys.executable, "-m", __name__, name],
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stderr)
        rows += [
            line.split("\t") for line in done.stdout.splitlines() if line.startswith(f"{name}\t")
        ]
    return Table(HEAD, rows)


def natives(name: str) -> dict[str, Callable]:
    """The framework's own way to make each call."""
    if name == "numpy":
        import numpy as np

        return {
            "tanh(x)": lambda x, y: np.tanh(x),
            "sum(x)": lambda x, y: np.sum(x),
            "sum(x, axis=1)": lambda x, y: np.sum(x, axis=1),
            "reshape(x, (-1,))": lambda x, y: np.reshape(x, (-1,)),
            "add(x, y)": lambda x, y: np.add(x, y),
            "maximum(x, y)": lambda x, y: np.maximum(x, y),
            "matmul(x, y)": lambda x, y: np.matmul(x, y),
            "concat([x, y])": lambda x, y: np.concat([x, y]),
        }
    if name == "jax":
        import jax.numpy as jnp

        return {
            "tanh(x)": lambda x, y: jnp.tanh(x),
            "sum(x)": lambda x, y: jnp.sum(x),
            "sum(x, axis=1)": lambda x, y: jnp.sum(x, axis=1),
            "reshape(x, (-1,))": lambda x, y: jnp.reshape(x, (-1,)),
            "add(x, y)": lambda x, y: jnp.add(x, y),
            "maximum(x, y)": lambda x, y: jnp.maximum(x, y),
            "matmul(x, y)": lambda x, y: jnp.matmul(x, y),
            "concat([x, y])": lambda x, y: jnp.concat([x, y]),
        }
    if name == "tensorflow":
        import tensorflow as tf

        return {
            "tanh(x)": lambda x, y: tf.tanh(x),
            "sum(x)": lambda x, y: tf.reduce_sum(x),
            "sum(x, axis=1)": lambda x, y: tf.reduce_sum(x, axis=1),
            "reshape(x, (-1,))": lambda x, y: tf.reshape(x, (-1,)),
            "add(x, y)": lambda x, y: tf.add(x, y),
            "maximum(x, y)": lambda x, y: tf.maximum(x, y),
            "matmul(x, y)": lambda x, y: tf.matmul(x, y),
            "concat([x, y])": lambda x, y: tf.concat([x, y], 0),
        }
    import torch

    torch.set_num_threads(1)
    return {
        "tanh(x)": lambda x, y: torch.tanh(x),
        "sum(x)": lambda x, y: torch.sum(x),
        "sum(x, axis=1)": lambda x, y: torch.sum(x, 1),
        "reshape(x, (-1,))": lambda x, y: torch.reshape(x, (-1,)),
        "add(x, y)": lambda x, y: torch.add(x, y),
        "maximum(x, y)": lambda x, y: torch.maximum(x, y),
        "matmul(x, y)": lambda x, y: torch.matmul(x, y),
        "concat([x, y])": lambda x, y: torch.cat([x, y]),
    }


def ours() -> dict[str, Callable]:
    from isomorph import namespace

    return {
        "tanh(x)": lambda x, y: namespace(x).tanh(x),
        "sum(x)": lambda x, y: namespace(x).sum(x),
        "sum(x, axis=1)": lambda x, y: namespace(x).sum(x, axis=1),
        "reshape(x, (-1,))": lambda x, y: namespace(x).reshape(x, (-1,)),
        "add(x, y)": lambda x, y: namespace(x, y).add(x, y),
        "maximum(x, y)": lambda x, y: namespace(x, y).maximum(x, y),
        "matmul(x, y)": lambda x, y: namespace(x, y).matmul(x, y),
        "concat([x, y])": lambda x, y: namespace(x, y).concat([x, y]),
    }


def peers(name: str) -> dict[str, dict[str, Callable]]:
    import autoray
    import eagerpy
    import keras
    from array_api_compat import array_namespace

    ops, do, wrap = keras.ops, autoray.do, eagerpy.astensor
    return {
        "array-api-compat": {
            "tanh(x)": lambda x, y: array_namespace(x).tanh(x),
            "sum(x)": lambda x, y: array_namespace(x).sum(x),
            "sum(x, axis=1)": lambda x, y: array_namespace(x).sum(x, axis=1),
            "reshape(x, (-1,))": lambda x, y: array_namespace(x).reshape(x, (-1,)),
            "add(x, y)": lambda x, y: array_namespace(x, y).add(x, y),
            "maximum(x, y)": lambda x, y: array_namespace(x, y).maximum(x, y),
            "matmul(x, y)": lambda x, y: array_namespace(x, y).matmul(x, y),
            "concat([x, y])": lambda x, y: array_namespace(x, y).concat([x, y]),
        },
        "autoray": {
            "tanh(x)": lambda x, y: do("tanh", x),
            "sum(x)": lambda x, y: do("sum", x),
            "sum(x, axis=1)": lambda x, y: do("sum", x, axis=1),
            "reshape(x, (-1,))": lambda x, y: do("reshape", x, (-1,)),
            "add(x, y)": lambda x, y: do("add", x, y),
            "maximum(x, y)": lambda x, y: do("maximum", x, y),
            "matmul(x, y)": lambda x, y: do("matmul", x, y),
            "concat([x, y])": lambda x, y: do("concatenate", [x, y]),
        },
        "EagerPy": {
            "tanh(x)": lambda x, y: wrap(x).tanh().raw,
            "sum(x)": lambda x, y: wrap(x).sum().raw,
            "sum(x, axis=1)": lambda x, y: wrap(x).sum(axis=1).raw,
            "reshape(x, (-1,))": lambda x, y: wrap(x).reshape((-1,)).raw,
            "add(x, y)": lambda x, y: (wrap(x) + wrap(y)).raw,
            "maximum(x, y)": lambda x, y: eagerpy.maximum(wrap(x), wrap(y)).raw,
            "matmul(x, y)": lambda x, y: eagerpy.matmul(wrap(x), wrap(y)).raw,
            "concat([x, y])": lambda x, y: eagerpy.concatenate([wrap(x), wrap(y)]).raw,
        },
        "Keras ops": {
            "tanh(x)": lambda x, y: ops.tanh(x),
            "sum(x)": lambda x, y: ops.sum(x),
            "sum(x, axis=1)": lambda x, y: ops.sum(x, axis=1),
            "reshape(x, (-1,))": lambda x, y: ops.reshape(x, (-1,)),
            "add(x, y)": lambda x, y: ops.add(x, y),
            "maximum(x, y)": lambda x, y: ops.maximum(x, y),
            "matmul(x, y)": lambda x, y: ops.matmul(x, y),
            "concat([x, y])": lambda x, y: ops.concatenate([x, y]),
        },
    }


def over(best: dict[str, float], who: str) -> str:
    if who not in best:
        return "-"
    extra = best[who] - best["native"]
    return f"{extra * 1e6:+.2f} µs ({best[who] / best['native']:.2f}x)"


def rows(name: str) -> list[list[str]]:
    import numpy as np

    import isomorph as iso

    x, y = iso.convert([np.ones((8, 8), np.float32), np.full((8, 8), 2, np.float32)], name)
    own, others, out = ours(), peers(name), []
    for call, native in natives(name).items():
        calls = {"native": lambda: native(x, y), "ours": lambda: own[call](x, y)}  # noqa: B023
        for peer, table_of in others.items():
            try:
                table_of[call](x, y)
            except Exception:  # the peer does not have this backend or function
                continue
            calls[peer] = lambda f=table_of[call]: f(x, y)
        best = minima(calls)
        extra, several = best["ours"] - best["native"], "y" in call
        if name in ("numpy", "torch"):
            budget, met = (1.0 if several else 0.5), extra * 1e6 <= (1.0 if several else 0.5)
            budget = f"{budget} µs"
        else:
            budget, met = "5 %", best["ours"] <= 1.05 * best["native"]
        out.append(
            [
                name,
                call,
                f"{best['native'] * 1e6:.2f}",
                over(best, "ours"),
                budget,
                "yes" if met else "NO",
            ]
            + [over(best, peer) for peer in PEERS]
        )
    return out


if __name__ == "__main__":
    for row in rows(sys.argv[1]):
        print("\t".join(row))
