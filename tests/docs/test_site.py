"""The built site: its links and anchors, in a real browser at two sizes, and its search, all from
files and without a network.
"""

import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
from browsing import axe, launched, watched

import docs_build

from .blocks import ROOT

WIDE, PHONE = (1280, 1000), (390, 844)
PARTS = ("docs", "benchmarks/results")  # the pages, and what they include
# A page of every kind: text, code, wide tables, signatures. The others wait for make test-all.
QUICK = ("index.html", "tutorials/gradients.html", "support.html", "api/custom.html")
OTHERS = (
    "quickstart.html", "compare.html", "examples/index.html", "benchmarks.html",
    "benchmarks/h200.html", "scoreboard.html", "api/index.html",
)  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as `make docs` does, in a copy of the pages."""
    here = tmp_path_factory.mktemp("built")
    for part in PARTS:
        ignored = shutil.ignore_patterns("api") if part == "docs" else None
        shutil.copytree(ROOT / part, here / part, ignore=ignored)
    for file in (ROOT / "mkdocs.yml", *ROOT.glob("*.md")):
        shutil.copy(file, here)
    (here / "pytest-scoreboard").mkdir()
    shutil.copy(ROOT / "pytest-scoreboard/README.md", here / "pytest-scoreboard")
    for path, text in docs_build.pages().items():
        (here / "docs" / path).parent.mkdir(exist_ok=True)
        (here / "docs" / path).write_text(text, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict", "--clean"],
        cwd=here, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No issues found" in done.stdout + done.stderr
    return here / "site"


class Links(HTMLParser):
    """The links, pictures, scripts and anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loaded, self.anchors = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.anchors |= {found[word] for word in ("id", "name") if found.get(word)}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag in ("img", "script", "iframe", "source") and found.get("src"):
            self.loaded.append(found["src"])
        elif tag == "link" and found.get("rel") not in ("canonical",):
            self.loaded.append(found["href"])


def test_links_lead_somewhere(site):
    pages = {path: Links(path.read_text("utf-8")) for path in site.rglob("*.html")}
    pages = {path: found for path, found in pages.items() if path.name != "404.html"}
    assert len(pages) > 40
    wrong, seen = [], 0
    for path, found in pages.items():
        for link in (*found.links, *found.loaded):
            target, anchor = urldefrag(link)
            if urlsplit(target).scheme:
                continue
            seen += 1
            there = (path.parent / unquote(target)).resolve() if target else path
            if there.is_dir():
                there /= "index.html"
            if not there.exists():
                wrong.append(f"{path.relative_to(site)}: {link}")
            elif anchor and there in pages and "=" not in anchor:  # the board's anchors are states
                known = unquote(anchor) in pages[there].anchors
                wrong += [] if known else [f"{path.relative_to(site)}: {link} has no such place"]
    assert seen > 2000
    assert wrong == []


def test_nothing_comes_from_another_host(site):
    for path in site.rglob("*.html"):
        for link in Links(path.read_text("utf-8")).loaded:
            assert not urlsplit(link).scheme, f"{path.relative_to(site)} loads {link}"
            assert not link.startswith("//")


def test_relative_links_of_files_that_are_not_pages():
    for path in ROOT.glob("*.md"):
        for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text("utf-8")):
            target = urldefrag(link)[0]
            if target and not urlsplit(link).scheme:
                assert (path.parent / target).exists(), f"{path.name}: {link}"


@pytest.fixture(scope="module")
def browser():
    with launched() as found:
        yield found


WAYS = {
    "wide": (WIDE, "light"), "phone": (PHONE, "light"), "dark phone": (PHONE, "dark"),
    "dark": (WIDE, "dark"),
}  # fmt: skip


@pytest.mark.takes("a browser opens the site")
@pytest.mark.parametrize(
    ("way", "name"),
    [
        *((way, name) for way in ("wide", "phone") for name in QUICK),
        ("dark phone", QUICK[0]),
        *(
            pytest.param(way, name, marks=pytest.mark.slow)
            for way in ("wide", "phone", "dark")
            for name in OTHERS
        ),
    ],
)
def test_pages_can_be_read(browser, site, way, name):
    (width, height), scheme = WAYS[way]
    context = browser.new_context(
        viewport={"width": width, "height": height}, offline=True, color_scheme=scheme
    )
    page = watched(context)
    page.goto((site / name).as_uri())
    page.wait_for_selector("html.js")
    assert page.locator("h1").first.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.wrong == []
    assert all(url.startswith(("file:", "data:")) for url in page.asked), page.asked
    assert axe(page) == []
    context.close()


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_search_works_from_files(browser, site, size):
    width, height = size
    context = browser.new_context(viewport={"width": width, "height": height}, offline=True)
    page = watched(context)
    page.goto((site / "index.html").as_uri())
    page.wait_for_selector("html.js")
    page.keyboard.press("Control+k")
    for typed, place, anchor in (
        ("value_and_grad", "api/gradients.html", "iso.value_and_grad"),
        ("iso.special.gammaln", "api/special.html", "iso.special.gammaln"),
        ("hessian", "api/gradients.html", "iso.hessian"),
    ):
        page.get_by_placeholder("Search").fill(typed)
        found = page.locator(f'a[href*="{place}"][href$="#{anchor}"]:visible').first
        found.wait_for(timeout=5000)
    found.click()
    page.wait_for_url(re.compile(f"{place}.*#{anchor}$"), timeout=5000)
    assert "second derivatives" in page.locator("article").inner_text()
    assert page.wrong == []
    assert all(url.startswith(("file:", "data:")) for url in page.asked)
    context.close()
