"""Makes the generated pages of the site: `python -m docs_build`, which `make docs` runs.

`api.py` writes the API pages from docstrings (docs/api, not kept in git); `support.py` and
`measured.py` write pages with data of the repository, and their pictures, which are kept.
"""

from pathlib import Path

from . import api, measured, support

DOCS = Path(__file__).parents[1] / "docs"


def kept() -> dict[str, str]:
    """The generated pages and pictures that are in git, by their paths under docs."""
    return {**support.pages(), **measured.pages()}


def pages() -> dict[str, str]:
    """The text of every generated page and picture."""
    return {**api.pages(), **kept()}


def write() -> None:
    """Write the pages that changed."""
    for path, text in pages().items():
        file = DOCS / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists() or file.read_text("utf-8") != text:
            file.write_text(text, "utf-8")
