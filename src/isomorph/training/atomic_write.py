"""Replace a file as a whole or not at all.

The new file is written next to the old one under another name, flushed to the disk, and only then
renamed. A process that dies meanwhile leaves a file that the next writer removes; a lock marks
files that are still being written.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

from .errors import CheckpointError

try:
    import fcntl
except ImportError:  # systems without such locks do not remove open files either
    fcntl = None

END = ".partial"


@contextmanager
def atomic_write(path: Path) -> Iterator[int]:
    """A descriptor to write to; its file replaces `path` if the block ends without an error."""
    check_regular("save", path)
    path = Path(os.path.realpath(path))  # replace the target of a link, not the link
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
            kept = "the old file is unchanged" if path.exists() else "there is no file"
            raise CheckpointError(
                f"save: {path} could not be written: {error.strerror or error}; {kept}"
            ) from error
        raise
    _sync(path.parent)


def check_regular(function: str, path: Path) -> None:
    """Raise unless it is a file: for a folder, a pipe, a device, a link that points to itself."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise CheckpointError(f"{function}: {path} is a link that points to itself") from None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, f"{function}: needed a file name", str(path))
    if not stat.S_ISREG(mode):
        kind = next((word for is_kind, word in OTHERS if is_kind(mode)), "no file")
        raise CheckpointError(f"{function}: needed a file name, got {kind} at {path}")


OTHERS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def _begin(path: Path) -> tuple[Path, int]:
    """A new file next to `path`, locked."""
    while True:
        partial = path.with_name(f".{path.name}.{token_hex(8)}{END}")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        file = os.open(partial, flags, 0o666)
        if fcntl is not None:
            with suppress(OSError):  # a disk without locks: nobody removes the file there
                fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file).st_nlink:  # not removed by another process before it was locked
            return partial, file
        os.close(file)


def _remove_left(path: Path) -> None:
    """Remove files that other processes began and left; running writers hold a lock."""
    begin = f".{path.name}."
    for name in os.listdir(path.parent):
        if not (name.startswith(begin) and name.endswith(END)):
            continue
        token = name[len(begin) : -len(END)]
        if len(token) != 16 or not set(token) <= set("0123456789abcdef"):
            continue  # belongs to another file, whose name begins the same
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
    """Write the folder, with the new file name, to the disk (fsync), where the system can."""
    if fcntl is None:
        return
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # not supported by this disk
            raise
    finally:
        os.close(file)
