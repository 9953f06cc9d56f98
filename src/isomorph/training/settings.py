"""What `fit` is given, and what its arrays may hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..core import tree
from ..core.dispatch import find_backend


def check_settings(
    epochs: Any, steps: Any, batch_size: Any, patience: Any, checkpoint: Any, save_every: Any,
    resume: bool, validation: Any, seed: Any,
) -> None:  # fmt: skip
    counts = {"epochs": epochs, "batch_size": batch_size}
    optional = {"steps": steps, "patience": patience, "save_every": save_every}
    counts |= {k: v for k, v in optional.items() if v is not None}
    for name, value in counts.items():
        if type(value) is not int or value < 1:
            raise ValueError(f"fit: needed {name} as an int >= 1, got {value!r}")
    if type(seed) is not int or not -(2**63) <= seed < 2**64:
        raise ValueError(f"fit: needed seed as an int of 64 bits, got {seed!r}")
    if patience is not None and validation is None:
        raise ValueError("fit: needed validation= for patience, got none")
    if checkpoint is None:
        if save_every is not None or resume:
            raise ValueError("fit: needed checkpoint=, a file, for save_every and resume, got none")
        return
    path = Path(checkpoint)
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"fit: needed an existing folder for the checkpoint, got {path.parent}"
        )
    if not resume and path.exists():
        raise FileExistsError(
            f"fit: needed a checkpoint file that does not exist, got {path}; continue with "
            "resume=True, or name another file"
        )


def first_bad(nest: Any) -> str | None:
    """The path of the first floating-point array with a value that is not finite."""
    for x, path in zip(tree.flatten(nest)[0], tree.paths(nest)):
        xp: Any = find_backend(x)
        if xp is not None and xp.is_float(x.dtype) and not bool(xp.all(xp.isfinite(x))):
            return path
    return None
