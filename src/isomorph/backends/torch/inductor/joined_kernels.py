"""The C++ kernels of a program, compiled in as few files as there are processors.

Inductor compiles each kernel as a library of its own: 1.6 s on a core of 2.5 GHz, of which 1.3 s go
into headers, Python bindings and linking. Kernels in one file share those.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

from .. import private
from .repairs import owner_of, replaced

NEEDED = ("cpp_pybinding", "async_wait", "CppPythonBindingsCodeCache")
# A kernel of the usual form: torch's header, then one function in C.
PLAIN = re.compile(r'\s*(#include [^\n]*cpp_prefix\.h[>"])\n(.*extern "C" .*)', re.DOTALL)
OUTSIDE = ["#include <Python.h>", "#include <sstream>", "#include <cstdlib>", "#include <cerrno>"]
MOST = 24  # kernels of a file: a longer one takes much memory to compile


class Kernel(NamedTuple):
    """A kernel that is not compiled yet."""

    header: str
    code: str
    argtypes: Sequence[str]

    def part(self, entry: str) -> str:
        """The kernel in a namespace of its own, with Python bindings of that name."""
        bindings = private.CppPythonBindingsCodeCache
        values = [
            f"parse_arg<{kind.replace('const ', '')}>(args, {place})"
            for place, kind in enumerate(self.argtypes)
        ]
        suffix = bindings.suffix_template.format(
            arg_len=len(values), extra_parse_arg="", entry_func=entry,
            call_entry_func=bindings.call_entry_function.format(", ".join(values)),
        )  # fmt: skip
        return f"namespace {entry} {{\n{self.code}\n{suffix}\n}}"


@contextmanager
def joined_kernels() -> Iterator[None]:
    """Kernels of programs that are compiled or loaded inside the block are joined."""
    if not all(map(private.has, NEEDED)):
        yield
        return
    (owner, single), (_, wait) = map(owner_of, NEEDED[:2])
    compile_one, wait_for_others = vars(owner)[single], vars(owner)[wait]

    def cpp_pybinding(self: Any, argtypes: Sequence[str], source_code: str) -> Any:
        plain = PLAIN.fullmatch(source_code)
        if plain is None or source_code.count("#include") + source_code.count('extern "C"') > 2:
            return compile_one(self, argtypes, source_code)
        return Kernel(plain[1], plain[2].replace('extern "C"', "", 1), argtypes)

    def wait_for_all(self: Any, scope: dict[str, Any]) -> None:
        kernels = {name: x for name, x in scope.items() if type(x) is Kernel}
        # alone, Inductor compiles when the library is asked for: `submit` would wait for itself
        submit = self.submit if private.get_compile_threads() > 1 else None
        begun = [
            (names, library([kernels[name] for name in names], submit)) for names in files(kernels)
        ]
        wait_for_others(self, scope)
        for names, functions in begun:
            scope.update(zip(names, functions()))

    with replaced(owner, single, cpp_pybinding), replaced(owner, wait, wait_for_all):
        yield


def files(kernels: dict[str, Kernel]) -> list[list[str]]:
    """The names of the kernels of each file; the files are about equally long."""
    by_header: dict[str, list[str]] = {}
    for name in sorted(kernels, key=lambda name: -len(kernels[name].code)):
        by_header.setdefault(kernels[name].header, []).append(name)
    found = []
    for names in by_header.values():
        n = max(min(private.get_compile_threads(), len(names)), -(-len(names) // MOST))
        found += [names[i::n] for i in range(n)]
    return found


def library(kernels: Sequence[Kernel], submit: Callable | None) -> Callable[[], list[Any]]:
    """Begin to compile a file; what is returned waits for the functions of its kernels."""
    bindings = private.CppPythonBindingsCodeCache
    entries = [f"kernel_{number}" for number in range(len(kernels))]

    class Library(bindings):
        cache: ClassVar[dict[str, Any]] = {}

        @staticmethod
        def _load_library_inner(path: str, key: str) -> Any:
            return SimpleNamespace(path=path, key=key)

    parts = [kernel.part(entry) for kernel, entry in zip(kernels, entries)]
    load = Library.load_async("\n".join([kernels[0].header, *OUTSIDE, *parts]), submit_fn=submit)

    def functions() -> list[Any]:
        built, found = load(), []
        for entry in entries:
            module = type("Module", (bindings,), {"entry_function": entry})
            found.append(getattr(module._load_library_inner(built.path, built.key), entry))
        return found

    return functions
