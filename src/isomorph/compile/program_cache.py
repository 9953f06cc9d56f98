"""Compiled programs that stay on the disk, so that the next process need not compile them again.

The frameworks have caches of their own, which are off (JAX, TensorFlow) or in a folder that the
system empties (torch). Here they get one folder. What another processor or another version has
compiled is not used: each has a subfolder.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import warnings
from pathlib import Path

from ..core import dispatch
from ..version import __version__
from . import slow_compilation
from .processor import processor


def cache(folder: str | os.PathLike[str]) -> Path:
    """Keep compiled programs in a folder, and take from there what was compiled before, by this
    process or another one. It returns the subfolder for this processor and these versions. Call it
    before the first program is compiled.

    Everything in the folder is run as code, without a check: use a folder that only you can write.

    A program is found again if the same operations are compiled for the same shapes and dtypes, on
    the same kind of processor, with the same versions. Nothing is ever deleted: remove the folder
    when it is too large.

    >>> import tempfile
    >>> folder = iso.cache(tempfile.mkdtemp())
    >>> folder.is_dir()
    True
    """
    top = Path(folder).expanduser().absolute()
    top.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.name == "posix" and top.stat().st_mode & 0o022:
        warnings.warn(
            f"cache: others can write in {top}, and what is in it is run as code; "
            f"run chmod go-w {top}",
            stacklevel=2,
        )
    python = "".join(map(str, sys.version_info[:2]))
    mine = top / f"{platform.machine()}-{processor()}" / f"isomorph-{__version__}-py{python}"
    mine.mkdir(mode=0o700, parents=True, exist_ok=True)
    slow_compilation.TIMES = Times(mine / "times.json")
    dispatch.on_load("programs", lambda backend: backend.keep_programs(mine))
    return mine


class Times(dict[str, float]):
    """How many seconds compilations took, by function, in a file that other processes read."""

    def __init__(self, path: Path):
        self.path = path
        try:
            super().__init__(json.loads(path.read_text()))
        except (OSError, ValueError):  # there is none yet, or it is damaged
            super().__init__()

    def __setitem__(self, what: str, seconds: float) -> None:
        super().__setitem__(what, seconds)
        part = self.path.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(self))
        part.replace(self.path)
