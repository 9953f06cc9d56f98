"""The code blocks of Markdown pages, and how they are run.

A page's ```python blocks run in order in one namespace. The title in a block's fence says more:
"each backend" runs it four times, with `backend` set to a name; "not run: why" does not run it.
"""

import re
from pathlib import Path
from typing import NamedTuple

from frameworks import BACKENDS

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^( *)(```+|~~~+)(.*)$")
EACH, NOT_RUN = "each backend", "not run:"


class Block(NamedTuple):
    """A fenced block: where its code begins, and what its fence says."""

    path: Path
    line: int
    language: str
    title: str
    code: str

    @property
    def runs(self):
        return self.language == "python" and not self.title.startswith(NOT_RUN)

    def run(self, names):
        code = compile("\n" * (self.line - 1) + self.code, str(self.path), "exec")
        for backend in BACKENDS if self.title == EACH else (None,):
            if backend is not None:
                names["backend"] = backend
            exec(code, names)


def blocks(path):
    """Every fenced block of a page."""
    found, opened, code = [], None, []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        fence = FENCE.match(line)
        if opened is None and fence:
            opened, code = (fence[2], len(fence[1]), number + 1, fence[3].strip()), []
        elif opened and fence and fence[2].startswith(opened[0]) and not fence[3].strip():
            language, _, rest = opened[3].partition(" ")
            title = re.search(r'title="([^"]*)"', rest)
            text = "\n".join(code) + "\n"
            found.append(Block(path, opened[2], language, title[1] if title else "", text))
            opened = None
        elif opened:
            code.append(line[opened[1] :] if line[: opened[1]].isspace() else line)
    assert opened is None, f"{path}: the block at line {opened[2]} has no end"
    return found


def run_page(path, names=None):
    """Run a page, and return its namespace."""
    names = {"__name__": "page"} if names is None else names
    for block in blocks(path):
        if block.runs:
            block.run(names)
    return names
