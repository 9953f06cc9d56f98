"""The files that torch's compiler writes and reads again, in this process or in another one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import get_ident
from typing import Any

from ....compile.processor import processor
from .. import private
from .repairs import owner_of, replaced


@contextmanager
def kept() -> Iterator[None]:
    """Programs are compiled or loaded inside the block with files that are whole, and with what an
    earlier process has found out about the processor.
    """
    better = {"build": written_whole, "check_build": first_that_works, "probe_load": asked_once}
    with ExitStack() as stack:
        for word, changed in better.items():
            if private.has(word):
                owner, name = owner_of(word)
                stack.enter_context(replaced(owner, name, changed(getattr(owner, name))))
        yield


def written_whole(build: Any) -> Any:
    """A function that compiles a library into another file and renames it. If the process ends in
    between, there is no half library, which would end every later process that loads it.
    """

    def run(self: Any) -> None:
        whole, told = self.get_target_file_path(), self._output
        part = f"{whole}.{os.getpid()}-{get_ident()}.part"
        self._output = told.replace(whole, part)
        try:
            build(self)
            if part in self._output:
                os.replace(part, whole)
        finally:
            self._output = told
            Path(part).unlink(missing_ok=True)

    return run


def first_that_works(check: Any) -> Any:
    """A function that tells whether a program for some instructions of the processor can be
    compiled and loaded. Torch asks for all that the processor has, the widest first, 2.5 s each,
    and takes the first that works: a compiler that knows it knows the narrower ones too.
    """
    works: set[str] = set()

    def run(self: Any, code: str) -> bool:
        if code not in works and check(self, code):
            works.add(code)
        return code in works

    return run


def asked_once(probe: Any) -> Any:
    """A function that tells whether a library for some instructions of the processor can be loaded,
    and remembers it in a file beside it. Torch starts another Python for each set of instructions
    in every process: a second and more before the first step.
    """

    def run(self: Any, path: str) -> bool:
        told = Path(f"{path}.{processor()}.loads")
        if told.exists():
            return True
        loads = probe(self, path)
        if loads:
            told.touch()
        return loads

    return run
