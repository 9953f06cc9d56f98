"""The layout of a checkpoint: a safetensors file with additional metadata.

Eight bytes with the header's length, a header in JSON, then the memory of the tensors. Under
`__metadata__` the header has two entries of ours: `isomorph`, with the structure of the nests and a
checksum of each tensor, and `isomorph.checksum`, the CRC-32 of the header itself with zeros in that
place. The checksum of a tensor is the CRC-32 of the CRC-32s of its 64 KiB blocks. The file is read
and written directly, not by the safetensors library: that holds loaded data twice, and a checksum
is known only after its tensor has been written.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable
from io import FileIO
from typing import Any, NamedTuple
from zlib import crc32

from ..core.default_backend import host
from .errors import CheckpointError

FORMAT = 1
OURS, CHECK = "isomorph", "isomorph.checksum"
TRUTHS = b"\x00\x01"
LONGEST = 100_000_000  # of a header, as in the safetensors library
CHUNK = 1 << 18  # bytes written and read at a time, small enough for the cache
# dtype names in the file: our names, and the bytes per number
CODES = {
    "BOOL": ("bool", 1), "U8": ("uint8", 1), "I8": ("int8", 1), "U16": ("uint16", 2),
    "I16": ("int16", 2), "F16": ("float16", 2), "BF16": ("bfloat16", 2), "U32": ("uint32", 4),
    "I32": ("int32", 4), "F32": ("float32", 4), "U64": ("uint64", 8), "I64": ("int64", 8),
    "F64": ("float64", 8), "C64": ("complex64", 8),
}  # fmt: skip
WORDS = {word: code for code, (word, _) in CODES.items() if word != "complex64"}
# a complex array is stored as a real one with one more axis, which every version of the library
# reads
PAIRS = {"complex64": "float32", "complex128": "float64"}


class Tensor(NamedTuple):
    """The place of a tensor in a file, its dtype and shape."""

    name: str
    word: str
    shape: tuple[int, ...]
    begin: int
    end: int


class Content(NamedTuple):
    """The contents of a file's header."""

    tensors: dict[str, Tensor]
    head: dict[str, Any] | None  # our metadata, if the file is one of ours
    start: int  # where the memory of the tensors starts


def write(file: int, head: dict[str, Any], tensors: Iterable[tuple[str, str, tuple, Any]]) -> None:
    """Write tensors `(name, word, shape, memory)`; `memory()` is called for one at a time."""
    held = sorted(tensors, key=lambda t: -_width(t[1]))  # widest first, so that each is aligned
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
    _write(file, memoryview(_head(head, checks, entries)))  # as long as the placeholder


def read(file: FileIO) -> Content:
    """The header of a file, completely checked."""
    path, size = file.name, os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8) or b"", "little")
    if size < 8 or not 2 <= length <= LONGEST:
        raise CheckpointError(f"load: needed a safetensors file, got {size} bytes in {path}")
    if length > size - 8:
        raise CheckpointError(
            f"load: needed a header of {length} bytes, got {size - 8} in {path}: cut short, or no "
            "safetensors file"
        )
    raw = bytearray(length)
    _read(file, memoryview(raw))
    try:
        entries = _parsed(raw)
        meta = entries.pop("__metadata__", {})
        if type(meta) is not dict or not all(type(word) is str for word in meta.values()):
            raise ValueError("__metadata__ is not a dict of strings")
        tensors = {name: _tensor(name, entry) for name, entry in entries.items()}
        _check_places(list(tensors.values()))
        head = _own(bytes(raw), meta, tensors) if OURS in meta or CHECK in meta else None
    except Unread as error:
        raise CheckpointError(f"load: {path}: {error}") from None
    except RecursionError:
        raise CheckpointError(
            f"load: the header of {path} is damaged: it is nested too deeply"
        ) from None
    except ValueError as error:
        raise CheckpointError(f"load: the header of {path} is damaged: {error}") from None
    position = max((tensor.end for tensor in tensors.values()), default=0)
    if 8 + length + position != size:
        raise CheckpointError(
            f"load: needed {8 + length + position} bytes, got {size} in {path}: the file is cut "
            "short, or longer than it was"
        )
    return Content(tensors, head, 8 + length)


class Unread(ValueError):
    """A valid file that this version cannot read: its format, or the dtype of a tensor."""


def _parsed(raw: bytes | bytearray | str) -> dict[str, Any]:
    """A dict from JSON: in UTF-8, with every key once."""
    text = raw if isinstance(raw, str) else raw.decode("utf-8")
    parsed = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse)
    if type(parsed) is not dict:
        raise ValueError("it is not a dict")
    return parsed


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} occurs twice")
    return found


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def fill(file: FileIO, content: Content, tensor: Tensor) -> Callable[[memoryview], None]:
    """The function that reads the memory of a tensor and checks it."""

    def into(memory: memoryview) -> None:
        file.seek(content.start + tensor.begin)
        check = _checked(memory, lambda chunk: _read(file, chunk, tensor))
        if content.head is not None and content.head["checks"].get(tensor.name) != check:
            raise CheckpointError(
                f"load: {tensor.name} in {file.name} is damaged: its checksum differs"
            )

    return into


def _checked(memory: memoryview, move: Callable[[memoryview], None]) -> str:
    """The checksum of memory, updated after each chunk was written or read."""
    check, sums = 0, host().sums
    for at in range(0, len(memory), CHUNK):
        chunk = memory[at : at + CHUNK]
        move(chunk)
        check = crc32(sums(chunk), check)
    return f"{check:08x}"


def _read(file: FileIO, chunk: memoryview, tensor: Tensor | None = None) -> None:
    whole = chunk
    what = "its head" if tensor is None else tensor.name
    while len(chunk):
        count = file.readinto(chunk)
        if not count:
            raise CheckpointError(f"load: {file.name} is cut short in {what}")
        chunk = chunk[count:]
    if tensor is not None and tensor.word == "bool" and bytes(whole).strip(TRUTHS):
        raise CheckpointError(f"load: {what} in {file.name} is damaged: a boolean is not 0 or 1")


def _write(file: int, chunk: memoryview) -> None:
    while len(chunk):
        chunk = chunk[os.write(file, chunk) :]


def _head(head: dict[str, Any], checks: dict[str, str], entries: dict[str, Any]) -> bytes:
    """The first bytes of a file, up to the memory of the tensors."""
    own = json.dumps({**head, "checks": checks}, separators=(",", ":"))
    whole = {"__metadata__": {OURS: own, CHECK: "0" * 8}, **entries}
    raw = json.dumps(whole, separators=(",", ":")).encode()
    raw += b" " * (-len(raw) % 8)
    if len(raw) > LONGEST:
        raise CheckpointError(f"save: needed a header of {LONGEST} bytes at most, got {len(raw)}")
    return len(raw).to_bytes(8, "little") + _signed(raw, f"{crc32(raw):08x}")


def _signed(raw: bytes, check: str) -> bytes:
    """A header with another checksum in its place."""
    place = f'"{CHECK}":"'.encode()  # never inside a string, where a quote has a backslash
    before, found, after = raw.partition(place)
    return before + found + check.encode() + after[8:]


def _own(raw: bytes, meta: dict[str, str], tensors: dict[str, Tensor]) -> dict[str, Any]:
    """Our part of a header, checked against its checksum."""
    if meta.get(CHECK) != f"{crc32(_signed(raw, '0' * 8)):08x}":
        raise ValueError("its checksum differs")
    head = _parsed(meta.get(OURS, ""))
    if head.get("format") != FORMAT or type(head["format"]) is not int:
        raise Unread(
            f"needed format {FORMAT}, got {head.get('format')}; it was written by isomorph "
            f"{head.get('version')}"
        )
    checks: Any = head.get("checks")
    if type(checks) is not dict or checks.keys() != tensors.keys():
        raise ValueError("the checksums do not match its tensors")
    return head


def _tensor(name: str, entry: Any) -> Tensor:
    if type(entry) is not dict or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"{name} needs dtype, shape and data_offsets, and has {entry}")
    code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if type(shape) is not list or type(offsets) is not list or len(offsets) != 2:
        raise ValueError(
            f"{name} needs a list as shape and two offsets, and has {shape}, {offsets}"
        )
    if not all(type(n) is int and n >= 0 for n in (*shape, *offsets)):
        raise ValueError(f"{name} needs sizes and offsets >= 0, and has {shape}, {offsets}")
    if type(code) is not str:
        raise ValueError(f"{name} needs a string as dtype, and has {code}")
    if code not in CODES:
        raise Unread(f"{name} has dtype {code}, needed one of {', '.join(CODES)}")
    word, width = CODES[code]
    if math.prod(shape) * width != offsets[1] - offsets[0]:
        size = f"the wrong size, {offsets[1] - offsets[0]} bytes"
        raise ValueError(f"{name} of shape {tuple(shape)} and dtype {code} has {size}")
    return Tensor(name, word, tuple(shape), *offsets)


def _check_places(tensors: list[Tensor]) -> None:
    """Check that tensors lie one after the other."""
    before = Tensor("the head", "", (), 0, 0)
    for tensor in sorted(tensors, key=lambda t: (t.begin, t.end)):
        if tensor.begin < before.end:
            raise ValueError(f"{before.name} and {tensor.name} overlap")
        if tensor.begin > before.end:
            raise ValueError(f"unused bytes between {before.name} and {tensor.name}")
        before = tensor


def _width(word: str) -> int:
    return 2 * _width(PAIRS[word]) if word in PAIRS else CODES[WORDS[word]][1]
