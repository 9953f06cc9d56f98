"""Makes the generated pages of the site: `python -m docs_build`, which `make docs` runs.

`api.py` writes the API pages from docstrings (docs/api, not kept in git); `support.py` and
`measured.py` write pages with data of the repository, and their pictures, which are kept.
"""

from pathlib import Path

from . import api, measured, support

DOCS = Path(__file__).parents[1] / "docs"
README = DOCS.parent / "README.md"


def kept() -> dict[str, str]:
    """The generated pages and pictures that are in git, by their paths under docs."""
    return {**support.pages(), **measured.pages()}


def pages() -> dict[str, str]:
    """The text of every generated page and picture."""
    return {**api.pages(), **kept()}


def readme(text: str) -> str:
    """The README with the totals of the benchmarks between its marks."""
    start, end = "<!-- benchmarks -->", "<!-- /benchmarks -->"
    head, tail = text.split(start)[0], text.split(end)[1]
    return f"{head}{start}{measured.headline()}{end}{tail}"


def write() -> None:
    """Write the pages that changed, and the totals in the README."""
    README.write_text(readme(README.read_text("utf-8")), "utf-8")
    for path, text in pages().items():
        file = DOCS / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists() or file.read_text("utf-8") != text:
            file.write_text(text, "utf-8")
