"""A file that is replaced as a whole or not at all.

It is written beside the old one under another name, made safe on the disk, and only then given the
name. Whoever dies on the way leaves a file that the next one removes; a lock tells it from one that
is still being written.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

try:
    import fcntl
except ImportError:  # where there are no such locks, an open file cannot be removed either
    fcntl = None

END = ".partial"


class CheckpointError(ValueError):
    """A checkpoint that could not be written whole, or that is not whole, or not like what it
    should be loaded into; nothing has been changed or loaded.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     iso.load(file.name)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    isomorph.training.replacing.CheckpointError: load: needed a safetensors file, got 0 bytes in ...
    """


@contextmanager
def replacing(path: Path) -> Iterator[int]:
    """A descriptor to write to, whose file takes the place of `path` when the block ends well."""
    check_regular("save", path)
    path = Path(os.path.realpath(path))  # what a link points to is replaced, not the link
    _remove_left(path)
    partial, file = _begin(path)
    try:
        try:
            yield file
            if path.exists():
                os.chmod(partial, path.stat().st_mode & 0o777)
            os.fsync(file)
            os.replace(partial, path)
        finally:
            os.close(file)
    except BaseException as error:
        with suppress(FileNotFoundError):
            os.unlink(partial)
        if isinstance(error, OSError):
            kept = "the file that was there is unchanged" if path.exists() else "nothing is there"
            raise CheckpointError(
                f"save: {path} could not be written: {error.strerror or error}; {kept}"
            ) from error
        raise
    _sync(path.parent)


def check_regular(function: str, path: Path) -> None:
    """Raise where there is something else than a file: a folder, a pipe, a device, a link that
    leads to itself.
    """
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise CheckpointError(f"{function}: {path} is a link that leads to itself") from None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, f"{function}: needed the name of a file", str(path))
    if not stat.S_ISREG(mode):
        kind = next((word for is_kind, word in OTHERS if is_kind(mode)), "no file")
        raise CheckpointError(f"{function}: needed the name of a file, got {kind} at {path}")


OTHERS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def _begin(path: Path) -> tuple[Path, int]:
    """A new file beside `path`, locked."""
    while True:
        partial = path.with_name(f".{path.name}.{token_hex(8)}{END}")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        file = os.open(partial, flags, 0o666)
        if fcntl is not None:
            with suppress(OSError):  # a disk without locks: there nobody takes it away either
                fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file).st_nlink:  # nobody took it for left behind before it was locked
            return partial, file
        os.close(file)


def _remove_left(path: Path) -> None:
    """Remove what others began and did not end; who is still at it holds a lock."""
    begin = f".{path.name}."
    for name in os.listdir(path.parent):
        if not (name.startswith(begin) and name.endswith(END)):
            continue
        token = name[len(begin) : -len(END)]
        if len(token) != 16 or not set(token) <= set("0123456789abcdef"):
            continue  # that of another file, whose name begins alike
        left = path.with_name(name)
        with suppress(OSError):
            file = os.open(left, os.O_RDWR)
            try:
                if fcntl is not None:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(left)
            finally:
                os.close(file)
            if fcntl is None:
                os.unlink(left)


def _sync(folder: Path) -> None:
    """Make the new name safe on the disk, where folders can be opened."""
    if fcntl is None:
        return
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a disk that has no such thing
            raise
    finally:
        os.close(file)
