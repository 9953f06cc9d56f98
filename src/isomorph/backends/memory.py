"""Arrays as plain memory for files, and back.

Memory is little-endian and in row-major order. For dtypes that NumPy does not have, a backend views
its own memory as integers of the same width.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

BLOCK = 1 << 16  # bytes per sum
WORD = np.dtype("<u8")


def pack(xp: Any, x: Any) -> tuple[str, tuple[int, ...], memoryview]:
    """The name of an array's dtype, its shape, and its memory."""
    values = xp.to_numpy(x)
    word = values.dtype.name
    if values.dtype.hasobject or values.dtype.kind not in "biufcV" or values.dtype.names:
        raise TypeError(f"needed numbers or booleans, got {word} data")
    if values.dtype.byteorder == ">":
        values = values.astype(values.dtype.newbyteorder("<"))
    flat = np.ascontiguousarray(values).reshape(-1)
    return word, tuple(values.shape), flat.view(np.uint8).data


def unpack(
    xp: Any, word: str, shape: tuple[int, ...], fill: Callable[[memoryview], None], device: Any
) -> Any:
    """A new array of a dtype and shape; `fill` writes its memory."""
    values = np.empty(shape, _dtype(word))
    fill(values.reshape(-1).view(np.uint8).data)
    return xp.from_numpy(values, device)


def sums(xp: Any, data: memoryview) -> bytes:
    """The sum of the 64-bit words of each 64 KiB of memory: several times faster than CRC-32, and
    every changed byte changes one of the sums.
    """
    whole = len(data) // BLOCK * BLOCK
    rows = np.frombuffer(data[:whole], WORD).reshape(-1, BLOCK // WORD.itemsize)
    found = np.sum(rows, axis=1, dtype=WORD).tobytes()
    rest = bytes(data[whole:])
    if rest:
        rest += bytes(-len(rest) % WORD.itemsize)
        found += np.sum(np.frombuffer(rest, WORD), dtype=WORD).tobytes()
    return found


def _dtype(word: str) -> np.dtype:
    return bfloat16() if word == "bfloat16" else np.dtype(word).newbyteorder("<")


def bfloat16() -> np.dtype:
    """NumPy's bfloat16."""
    try:
        return np.dtype(import_module("ml_dtypes").bfloat16)
    except ImportError:
        raise TypeError(
            "NumPy itself has no bfloat16: needed the package ml_dtypes, or arrays of another "
            "framework as templates"
        ) from None


def open_rows(xp: Any, path: Any, dtype: Any, shape: tuple[int, ...]) -> Any:
    """A new .npy file as an array of the host, whose rows are written one after the other."""
    return np.lib.format.open_memmap(path, "w+", dtype, shape)


def placed_rows(xp: Any, rows: Any, begin: int, total: int) -> Any:
    """The memory of rows at their place among `total` rows of zeros, as words that can be added up
    without loss.
    """
    width = int(np.prod(rows.shape[1:])) * rows.itemsize
    flat = np.zeros(-(-total * width // 4) * 4, np.uint8)
    flat[begin * width : begin * width + rows.nbytes] = np.frombuffer(rows.tobytes(), np.uint8)
    return flat.view(np.int32)


def rows_from(xp: Any, words: Any, dtype: Any, shape: tuple[int, ...]) -> Any:
    """An array of the host from words of `placed_rows`."""
    flat = np.ascontiguousarray(words).view(np.uint8)
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return flat[:size].view(dtype).reshape(shape)
