"""A real browser for tests of pages, and the accessibility check."""

import os
import shutil
from contextlib import contextmanager

import pytest
from playwright.sync_api import sync_playwright


@contextmanager
def launched():
    """Chromium; without one the test fails."""
    path = (
        os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    )
    if path is None:
        pytest.fail("the page needs a browser: apt-get install chromium, or set CHROMIUM to one")
    with sync_playwright() as tool:
        found = tool.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()


def watched(context):
    """A new page that records its network requests (`asked`) and errors (`wrong`)."""
    page = context.new_page()
    page.asked, page.wrong = [], []
    page.on("request", lambda r: page.asked.append(r.url))
    page.on("pageerror", lambda e: page.wrong.append(str(e)))
    page.on("console", lambda m: page.wrong.append(m.text) if m.type == "error" else None)
    return page


def axe(page):
    """What axe finds wrong, as (rule, elements)."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page)
    assert len(found.response["passes"]) > 15
    return [(v["id"], [n["html"][:120] for n in v["nodes"]]) for v in found.response["violations"]]
