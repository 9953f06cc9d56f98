"""The layout of a checkpoint: a safetensors file that says more about itself.

Eight bytes of length, a head in JSON, the memory of the tensors one after the other. Under
`__metadata__` the head has two entries of ours: `isomorph`, with the structure of the nests and a
check of each tensor, and `isomorph.checksum`, the CRC-32 of the head itself with zeros in that
place. The check of a tensor is the CRC-32 of the sums of each 64 KiB of it. Read and written
directly, not by the library: that holds what it loads twice, and a check is known only when its
tensor has been written.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable
from io import FileIO
from typing import Any, NamedTuple
from zlib import crc32

from ..home import host
from .replacing import CheckpointError

FORMAT = 1
OURS, CHECK = "isomorph", "isomorph.checksum"
LONGEST = 100_000_000  # of a head, as the library has it
CHUNK = 1 << 18  # written and read at a time, while it is in the cache
# names of dtypes in the file: ours, and how many bytes each number has
CODES = {
    "BOOL": ("bool", 1), "U8": ("uint8", 1), "I8": ("int8", 1), "U16": ("uint16", 2),
    "I16": ("int16", 2), "F16": ("float16", 2), "BF16": ("bfloat16", 2), "U32": ("uint32", 4),
    "I32": ("int32", 4), "F32": ("float32", 4), "U64": ("uint64", 8), "I64": ("int64", 8),
    "F64": ("float64", 8), "C64": ("complex64", 8),
}  # fmt: skip
WORDS = {word: code for code, (word, _) in CODES.items() if word != "complex64"}
# a complex array is stored as real ones with one more axis: no version of the library misses these
PAIRS = {"complex64": "float32", "complex128": "float64"}


class Tensor(NamedTuple):
    """Where in a file a tensor lies, and what it is."""

    name: str
    word: str
    shape: tuple[int, ...]
    begin: int
    end: int


class Content(NamedTuple):
    """What the head of a file says."""

    tensors: dict[str, Tensor]
    head: dict[str, Any] | None  # ours, if it is one of ours
    start: int  # of the memory


def write(file: int, head: dict[str, Any], tensors: Iterable[tuple[str, str, tuple, Any]]) -> None:
    """Write tensors `(name, word, shape, memory)`, where `memory()` is asked for one at a time."""
    held = sorted(tensors, key=lambda t: -_width(t[1]))  # so that each lies at a multiple of it
    entries, position = {}, 0
    for name, word, shape, _ in held:
        stored = (*shape, 2) if word in PAIRS else shape
        size = math.prod(shape) * _width(word)
        offsets = [position, position + size]
        code = WORDS[PAIRS.get(word, word)]
        entries[name] = {"dtype": code, "shape": list(stored), "data_offsets": offsets}
        position += size
    checks = dict.fromkeys(entries, "0" * 8)
    blank = _head(head, checks, entries)
    _write(file, memoryview(blank))
    for name, _, _, memory in held:
        checks[name] = _checked(memory(), lambda chunk: _write(file, chunk))
    os.lseek(file, 0, os.SEEK_SET)
    _write(file, memoryview(_head(head, checks, entries)))  # as long as the blank one


def read(file: FileIO) -> Content:
    """The head of a file, every part of which has been checked."""
    path, size = file.name, os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8) or b"", "little")
    if size < 8 or not 2 <= length <= LONGEST:
        raise CheckpointError(f"load: needed a safetensors file, got {size} bytes in {path}")
    if length > size - 8:
        raise CheckpointError(
            f"load: needed a head of {length} bytes, got {size - 8} in {path}: cut short, or no "
            "safetensors file"
        )
    raw = bytearray(length)
    _read(file, memoryview(raw), "its head")
    try:
        entries = json.loads(raw)
        meta = entries.pop("__metadata__", {})
        tensors = {name: _tensor(name, entry) for name, entry in entries.items()}
        head = _own(bytes(raw), meta) if OURS in meta or CHECK in meta else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"load: the head of {path} is damaged: {error}") from None
    position = 0
    for tensor in sorted(tensors.values(), key=lambda t: (t.begin, t.end)):
        if tensor.begin != position:
            raise CheckpointError(f"load: the head of {path} is damaged: it leaves bytes out")
        position = tensor.end
    if 8 + length + position != size:
        raise CheckpointError(
            f"load: needed {8 + length + position} bytes, got {size} in {path}: the file is cut "
            "short, or has been added to"
        )
    return Content(tensors, head, 8 + length)


def fill(file: FileIO, content: Content, tensor: Tensor) -> Callable[[memoryview], None]:
    """What reads the memory of a tensor, and checks it."""

    def into(memory: memoryview) -> None:
        file.seek(content.start + tensor.begin)
        check = _checked(memory, lambda chunk: _read(file, chunk, tensor.name))
        if content.head is not None and content.head["checks"].get(tensor.name) != check:
            raise CheckpointError(
                f"load: {tensor.name} in {file.name} is damaged: its check differs"
            )

    return into


def _checked(memory: memoryview, move: Callable[[memoryview], None]) -> str:
    """The check of memory, each chunk of it after it has been written or read."""
    check, sums = 0, host().sums
    for at in range(0, len(memory), CHUNK):
        chunk = memory[at : at + CHUNK]
        move(chunk)
        check = crc32(sums(chunk), check)
    return f"{check:08x}"


def _read(file: FileIO, chunk: memoryview, what: str) -> None:
    while len(chunk):
        count = file.readinto(chunk)
        if not count:
            raise CheckpointError(f"load: {file.name} is cut short in {what}")
        chunk = chunk[count:]


def _write(file: int, chunk: memoryview) -> None:
    while len(chunk):
        chunk = chunk[os.write(file, chunk) :]


def _head(head: dict[str, Any], checks: dict[str, str], entries: dict[str, Any]) -> bytes:
    """The first bytes of a file, up to the memory."""
    own = json.dumps({**head, "checks": checks}, separators=(",", ":"))
    whole = {"__metadata__": {OURS: own, CHECK: "0" * 8}, **entries}
    raw = json.dumps(whole, separators=(",", ":")).encode()
    raw += b" " * (-len(raw) % 8)
    if len(raw) > LONGEST:
        raise CheckpointError(f"save: needed a head of {LONGEST} bytes at most, got {len(raw)}")
    return len(raw).to_bytes(8, "little") + _signed(raw, f"{crc32(raw):08x}")


def _signed(raw: bytes, check: str) -> bytes:
    """A head with another checksum in its place."""
    place = f'"{CHECK}":"'.encode()  # in no string: there every quote has a backslash
    before, found, after = raw.partition(place)
    return before + found + check.encode() + after[8:]


def _own(raw: bytes, meta: dict[str, str]) -> dict[str, Any]:
    """Our part of a head, which must be the one that was written."""
    if meta[CHECK] != f"{crc32(_signed(raw, '0' * 8)):08x}":
        raise ValueError("its checksum differs")
    head = json.loads(meta[OURS])
    if head["format"] != FORMAT:
        raise ValueError(
            f"needed format {FORMAT}, got {head['format']}; it was made by isomorph "
            f"{head['version']}"
        )
    return head


def _tensor(name: str, entry: dict[str, Any]) -> Tensor:
    code, shape, (begin, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
    if code not in CODES:
        raise ValueError(f"{name} is of dtype {code}, needed one of {', '.join(CODES)}")
    word, width = CODES[code]
    if not all(type(n) is int and n >= 0 for n in (*shape, begin, end)):
        raise ValueError(f"{name} has shape {shape} at {begin} to {end}")
    if math.prod(shape) * width != end - begin:
        raise ValueError(f"{name} of shape {shape} and {code} has {end - begin} bytes")
    return Tensor(name, word, shape, begin, end)


def _width(word: str) -> int:
    return 2 * _width(PAIRS[word]) if word in PAIRS else CODES[WORDS[word]][1]
