"""The API pages show every public name, once, with its signature and an example."""

import re
from collections import Counter

import isomorph as iso
from docs_build import api


def test_every_public_name_is_on_one_page_with_an_example():
    names = [name.said for name in api.public()]
    assert len(names) == len(set(names)) > 300
    pages = {p: t for p, t in api.pages().items() if p != "api/index.md"}
    headings = Counter(
        said for text in pages.values() for said in re.findall(r"^## \S+ \{ #(\S+) \}$", text, re.M)
    )
    assert headings == Counter(names)
    for text in pages.values():
        for part in re.split(r"^## ", text, flags=re.M)[1:]:
            assert "```pycon\n>>> " in part, f"{part.split()[0]} has no example"
            assert len(part) > 80


def test_signatures_are_shown_as_they_are_called():
    def short(x, /, *, axis: "int | None" = None) -> "float": ...

    assert api.signature("iso.short", short) == ("short(x, /, *, axis: int | None = None) -> float")
    wide = api.signature("iso.fit", iso.fit)
    assert wide.startswith("fit(\n    model: Any,\n    data: Any,\n")
    assert wide.endswith("\n) -> Fit")
    assert all(len(line) <= api.WIDTH for line in wide.splitlines())
