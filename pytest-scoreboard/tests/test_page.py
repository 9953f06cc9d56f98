"""The page in a real browser, opened from a file: reading, filters, opening, copying, reloading,
keyboard use, without scripts, accessibility, and hostile names.
"""

import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

pytest.importorskip("playwright")
from playwright.sync_api import expect

from pytest_scoreboard import markdown, states
from pytest_scoreboard.board import Board
from pytest_scoreboard.config import Config
from pytest_scoreboard.page import render
from pytest_scoreboard.store import Result, Store

from .browsing import axe, launched, watched

SETTINGS = Config(
    title="A board", columns=("numpy", "jax", "torch"), default_mode="eager", max_age="3d",
    suites={"tests/test_a.py": "First suite"}, absent={"numpy": {"jit": "it has no compiler"}},
)  # fmt: skip
OURS = Path(__file__).parents[2] / "docs" / "scoreboard" / "index.html"
HOSTILE = [
    "test_pipe|pipe\n| a | b |",
    "test_<script>document.title='owned'</script>",
    "test_<img src=x onerror=\"document.title='owned'\">",
    "test_rtl_\u202egnorw\u202c_\u2066",
    "test_quote'\"`*_[link](javascript:alert(1))",
    "test_long_" + "x" * 5000,
    "test_</script><script>document.title='owned'</script>",
]


def fill(store, age=timedelta(minutes=5)):
    """Two runs: one test regressed on torch, one was fixed, one is hollow."""
    then = datetime.now(UTC) - age
    for number, key in enumerate(("one", "two")):
        when = (then + timedelta(seconds=number)).strftime("%Y-%m-%dT%H:%M:%SZ")
        run = store.begin(key, "local", started=when, sha="0123456789abcdef")
        job = store.job(run, "main", {"python": "3.11", "versions": {"numpy": "2.4"}},
                        url="https://ci.example/1")  # fmt: skip
        for i in range(8):
            for backend in ("numpy", "jax", "torch"):
                state, detail = states.PASSED, None
                if number and i == 2 and backend == "torch":
                    state = states.FAILED
                    detail = (
                        "ValueError",
                        "ValueError: 3 is wrong",
                        "def test_2():\n>   boom\nE  3",
                    )
                if not number and i == 3 and backend == "jax":
                    state = states.FAILED
                if number and i == 4 and backend == "numpy":
                    state = states.HOLLOW
                for mode in ("eager",) if backend == "numpy" else ("eager", "jit"):
                    store.add(run, job, [Result(
                        "First suite", f"test_{i}", "", "tests/test_a.py", backend, mode, backend,
                        state, 1, 0.25, 3, 1.5, None, detail,
                    )])  # fmt: skip
        for i in range(3):
            store.add(run, job, [
                Result("test_b.py", f"test_b{i}", "", "test_b.py", "jax", "eager", "jax", 0)
            ])  # fmt: skip
        store.finish(run, job, True, 0, when)


@pytest.fixture(scope="module")
def browser():
    with launched() as found:
        yield found


@pytest.fixture(scope="module")
def tab(browser):
    return watched(browser.new_context(permissions=["clipboard-read", "clipboard-write"]))


@pytest.fixture
def page(tab):
    """An empty browser page that records its log and its network requests. It is the same in all
    tests: a new one takes longer than most of them.
    """
    tab.goto("about:blank")
    tab.emulate_media(color_scheme="light")
    resize(tab, WIDE)
    tab.asked.clear()
    tab.wrong.clear()
    return tab


def write(tmp_path, fill=fill, settings=SETTINGS, **kw):
    with Store(tmp_path / "board.db") as store:
        fill(store, **kw)
        text = render(store, Board.load(store, store.find("latest")["run"], settings))
    path = tmp_path / "index.html"
    path.write_text(text, "utf-8")
    return path


def visit(page, path, where=""):
    page.goto(path.as_uri() + where)
    page.wait_for_selector("body[data-ready]")


WIDE, PHONE = (1280, 1000), (390, 844)


def resize(page, size):
    page.set_viewport_size(dict(zip(("width", "height"), size)))


def test_five_seconds(page, tmp_path):
    """The first screen says in words: is it fresh and complete, what regressed, and where."""
    path = write(tmp_path)
    visit(page, path)
    assert page.locator("#fresh").inner_text() == "Fresh"
    assert page.locator("#complete").inner_text() == "Complete"
    assert "5 minutes ago" in page.locator("header").inner_text()
    verdict = page.locator(".verdict").inner_text()
    assert "2 cells got worse since run 1, on numpy, torch." in verdict
    assert "test_2 passed → failed" in verdict
    assert "1 fixed" in verdict
    assert shares(page) == {
        "suite": ["numpy 2.4", "jax", "torch"],
        "all 2 suites": [
            "87 % 7 of 8, 1 hollow", "100 % 11 of 11", "87 % 7 of 8, 1 failed",
        ],
        "First suite": ["87 % 7 of 8, 1 hollow", "100 % 8 of 8", "87 % 7 of 8, 1 failed"],
        "test_b.py": ["", "100 % 3 of 3", ""],
    }  # fmt: skip
    tones = [td.get_attribute("class") for td in page.locator("#all td").all()]
    assert tones == ["share hollow", "share good", "share bad"]
    for width, height in (WIDE, PHONE):
        resize(page, (width, height))
        for seen in ("#fresh", ".verdict", "#all"):
            box = page.locator(seen).bounding_box()
            assert box["y"] + box["height"] < height
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.asked == [path.as_uri()]
    assert page.wrong == []


def shares(page):
    """The rows of the matrix that are shown, as text."""
    return {
        re.sub(r"\s+", " ", head.inner_text()).strip(): [
            re.sub(r"\s+", " ", cell.inner_text()).strip() for cell in cells if cell.is_visible()
        ]
        for row in page.locator("thead tr, tr.suite").all()
        if row.is_visible()
        for head, *cells in [row.locator("th, td").all()]
    }


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
@pytest.mark.parametrize("board", ["a board", "ours"])
def test_it_fits_the_screen(page, tmp_path, board, size):
    """A screenshot of each is kept in the folder that SCOREBOARD_ARTIFACTS names."""
    path = write(tmp_path) if board == "a board" else OURS
    resize(page, size)
    visit(page, path)
    assert page.locator("#board").bounding_box()["y"] < 0.65 * size[1]
    assert page.locator("#all").bounding_box()["y"] < size[1]
    artifacts = Path(os.environ.get("SCOREBOARD_ARTIFACTS") or tmp_path)
    artifacts.mkdir(parents=True, exist_ok=True)
    name = f"{board.replace(' ', '-')}-{'phone' if size == PHONE else 'wide'}"
    page.screenshot(path=artifacts / f"{name}.png")
    page.locator("tr.suite a").first.click()
    expect(page.locator("tr.test").first).to_be_visible()
    page.screenshot(path=artifacts / f"{name}-open.png", full_page=board == "a board")
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    assert (artifacts / f"{name}-open.png").stat().st_size > 20_000
    wide = (
        "[...document.querySelectorAll('td b, td .top, thead th')]"
        ".filter(e => e.scrollWidth > e.clientWidth + 1 && e.offsetParent)"
    )
    assert page.evaluate(f"{wide}.map(e => e.innerText)") == []


def test_old_and_incomplete_say_so(page, tmp_path):
    visit(page, write(tmp_path, age=timedelta(days=4)))
    assert page.locator("#fresh").inner_text() == "Stale"
    assert "4 days ago" in page.locator("header").inner_text()
    with Store(tmp_path / "board.db") as store:
        store.db.execute("UPDATE job SET complete = 0")
        store.db.commit()
        text = render(store, Board.load(store, 2, SETTINGS))
    (tmp_path / "other.html").write_text(text)
    visit(page, tmp_path / "other.html")
    assert page.locator("#complete").inner_text() == "Incomplete"
    assert "it did not finish" in page.locator("header").inner_text()
    assert page.locator(".verdict.bad").count() == 1


def test_filter_open_read_copy_reload(page, tmp_path):
    path = write(tmp_path)
    visit(page, path)
    assert page.locator("#found").inner_text() == "11 tests in 2 suites"
    assert page.locator("tr.test").count() == 0  # rows are only built when a suite is opened
    page.get_by_role("link", name="First suite", exact=True).click()
    expect(page.locator("tr.test")).to_have_count(8)
    cell = page.locator("tr.test", has_text="test_1").locator("button").nth(1)
    assert "eager ✓ · jit ✓" in cell.inner_text()
    assert "1.5 ulp" in cell.inner_text()
    assert (
        "no jit" in page.locator("tr.test", has_text="test_1").locator("button").first.inner_text()
    )
    page.get_by_label("failing").check()
    assert page.locator("tr.test").all_inner_texts()[0].startswith("test_2")
    assert page.locator("tr.test").count() == 2
    page.get_by_label("Search").fill("_2")
    expect(page.locator("tr.test")).to_have_count(1)
    page.locator("button.cell.bad").click()
    dialog = page.locator("dialog")
    assert ">   boom" in dialog.inner_text()
    assert "ValueError: 3 is wrong" in dialog.inner_text()
    assert "it has no compiler" not in dialog.inner_text()
    page.get_by_role("button", name="Copy command").click()
    page.get_by_role("button", name="Copied").wait_for()
    command = page.evaluate("navigator.clipboard.readText()")
    assert command == "pytest 'tests/test_a.py::test_2[torch]'"
    assert dialog.get_by_role("link").get_attribute("href") == "https://ci.example/1"
    page.reload()
    page.wait_for_selector("body[data-ready]")
    assert page.locator("dialog[open]").count() == 1
    assert ">   boom" in page.locator("dialog").inner_text()
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0
    assert page.get_by_label("Search").input_value() == "_2"
    assert page.get_by_label("failing").is_checked()
    assert page.locator("tr.test").count() == 1
    page.get_by_label("Search").fill("")
    page.get_by_label("failing").uncheck()
    page.get_by_role("radio", name="jit").check()
    row = page.locator("tr.test", has_text="test_1")
    expect(page.locator("tr.test")).to_have_count(8)
    assert "not run" in row.locator("button").first.inner_text()
    assert page.wrong == []


def test_keyboard_alone(page, tmp_path):
    visit(page, write(tmp_path))
    page.keyboard.press("/")
    page.keyboard.type("test_2")
    expect(page.locator("#found")).to_have_text("1 test in 1 suite")
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('tr.suite') !== null"):
            break
    page.keyboard.press("ArrowRight")  # to its share, which opens it as well
    assert "100 %" in page.evaluate("document.activeElement.innerText")
    page.keyboard.press("Enter")
    page.wait_for_selector("tr.test")
    page.keyboard.press("ArrowDown")
    assert "passed" in page.evaluate("document.activeElement.innerText")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert "failed" in page.evaluate("document.activeElement.innerText")
    page.keyboard.press("Enter")
    assert page.locator("dialog[open]").count() == 1
    assert page.evaluate("document.activeElement.id") == "cell-title"
    page.keyboard.press("Escape")
    # focus is back where it was
    assert "failed" in page.evaluate("document.activeElement.innerText")


def on_devices(store):
    """Two variants of a test, also on a GPU, where another test did not run."""
    run = store.begin("k", "local", started=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    for device, tests in (("", "ab"), ("cuda", "a")):
        facts = {"python": "3.11", "versions": {"torch": "2.13"}, "device": device}
        job = store.job(run, f"j{device}", facts, complete=1)
        column = f"torch {device}".strip()
        for name in tests:
            for variant in "12":
                store.add(run, job, [
                    Result("s", f"test_{name}", variant, "t.py", column, "eager", variant, 0)
                ])  # fmt: skip


def test_switches_and_a_filter_that_is_cleared(page, tmp_path):
    visit(page, write(tmp_path, on_devices, Config(default_mode="eager")))
    first = shares(page)
    total = ["100 % 2 of 2; 4 variants", "100 % 1 of 1, 1 not run"]
    assert first["all 1 suite"] == total
    page.get_by_label("Search").fill("_b")
    expect(page.locator("#found")).to_have_text("1 test in 1 suite")
    assert shares(page)["s"] == ["100 % 1 of 1", "not run 1 not run"]
    page.get_by_label("Search").fill("")
    expect(page.locator("#found")).to_have_text("2 tests in 1 suite")
    again = shares(page)
    assert again.pop("all 1 suite") == total
    assert again["s"] == first["s"]
    page.get_by_role("checkbox", name="cuda").uncheck()
    assert shares(page)["suite"] == ["torch 2.13"]
    page.reload()
    page.wait_for_selector("body[data-ready]")
    assert not page.get_by_role("checkbox", name="cuda").is_checked()
    assert shares(page)["s"] == first["s"][:1]
    assert page.wrong == []


def sampled(store):
    """A test of which one of two variants was drawn on jax and none on torch, and one that was not
    drawn.
    """
    run = store.begin("k", "local", started=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    job = store.job(run, "main", {"python": "3.11", "seed": "7"}, complete=1)
    for name, variant, backend, mode, state in (
        ("test_a", "1", "jax", "eager", 0), ("test_a", "1", "jax", "jit", 0),
        ("test_a", "2", "jax", "eager", 10), ("test_a", "1", "torch", "eager", 10),
        ("test_a", "2", "torch", "eager", 10), ("test_b", "", "jax", "eager", 10),
    ):  # fmt: skip
        where = ("s", name, variant, "t.py", backend, mode, "")
        store.add(run, job, [Result(*where, state)])


def test_a_sample_is_told_from_the_rest(page, tmp_path):
    visit(page, write(tmp_path, sampled, Config(default_mode="eager")))
    assert page.locator("#complete").inner_text() == "Sampled"
    assert "Sampled: 1 of 5 (seed 7)." in page.locator("header").inner_text()
    verdict = page.locator(".verdict.warn .main").inner_text()
    assert verdict.endswith("nothing is red; sampled: 1 of 5 (seed 7).")
    first = {
        "suite": ["jax", "torch"],
        "all 1 suite": [
            "100 % 1 of 1, 1 not sampled; 1 of 3 variants",
            "not sampled 1 not sampled; 0 of 2 variants",
        ],
        "s": ["100 % 1 of 1, 1 not sampled", "not sampled 1 not sampled"],
    }
    assert shares(page) == first
    page.get_by_role("link", name="s", exact=True).click()
    cells = page.locator("button.cell")
    texts = [
        "✓ passed eager ✓ · jit ✓ · 1 of 2 variants", "… not sampled 0 of 2 variants",
        "… not sampled", "□ missing",
    ]  # fmt: skip
    assert [re.sub(r"\s+", " ", text) for text in cells.all_inner_texts()] == texts
    page.get_by_role("radio", name="jit").check()
    expect(cells.nth(1)).to_contain_text("not sampled")
    assert shares(page) == {**first, "all 1 suite": first["s"]}
    page.get_by_label("backends disagree").check()
    expect(page.locator("#found")).to_have_text("0 tests in 0 suites")
    page.get_by_label("backends disagree").uncheck()
    cells.first.click()
    assert "variants\n1 of 2" in page.locator("dialog").inner_text()
    assert page.wrong == []


def test_a_link_within_the_page_keeps_the_filters(page, tmp_path):
    visit(page, write(tmp_path))
    page.get_by_label("Search").fill("_2")
    expect(page.locator("#found")).to_have_text("1 test in 1 suite")
    page.locator('a[href="#red"]').click()
    assert page.get_by_label("Search").input_value() == "_2"
    assert page.locator("#found").inner_text() == "1 test in 1 suite"


@pytest.mark.parametrize(
    ("board", "scheme", "size"),
    [("a board", "light", WIDE), ("a board", "dark", PHONE), ("ours", "light", PHONE),
     ("ours", "dark", WIDE)],
    ids=["light-wide", "dark-phone", "ours-light-phone", "ours-dark-wide"],
)  # fmt: skip
def test_axe_finds_nothing(page, tmp_path, board, scheme, size):
    resize(page, size)
    page.emulate_media(color_scheme=scheme)
    visit(page, write(tmp_path) if board == "a board" else OURS)
    page.locator("tr.suite a").first.click()
    page.wait_for_selector("tr.test")
    # axe takes ten seconds for the hundreds of suites of ours, which differ by their words
    page.evaluate("[...document.querySelectorAll('#board tbody')].slice(5).map(e => e.remove())")
    assert axe(page) == []
    if board == "a board":
        page.locator("button.cell.bad").first.press("Enter")
        assert axe(page) == []


def test_without_javascript(browser, tmp_path):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(write(tmp_path).as_uri())
    text = page.locator("body").inner_text()
    assert "2 cells got worse since run 1, on numpy, torch." in text
    assert "2 red cells" in text
    assert "ValueError: 3 is wrong" in text
    assert "7 of 8, 1 failed" in text
    assert "Scripts are off" in text
    assert not page.locator("#tools").is_visible()
    context.close()


def hostile(store):
    run = store.begin("bad", "local", started=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    for i, name in enumerate(HOSTILE):
        url = ["javascript:alert(1)", "data:text/html,x", "https://ok.example/", None][i % 4]
        job = store.job(run, f"j{i}", url=url, complete=1)
        store.add(run, job, [
            Result(name, name, name, name, backend, "", name, states.FAILED, 1, 0.1, 1,
                   float("inf"), None, (name, name, name))
            for backend in ("numpy", name)
        ])  # fmt: skip


def test_hostile_names_do_no_harm(page, tmp_path):
    visit(page, write(tmp_path, hostile, Config()))
    for suite in page.locator("tr.suite th a").all():
        suite.click()
    page.wait_for_selector("tr.test")
    page.locator("button.cell.bad").nth(2).click()
    assert page.title() == "Scoreboard: run 1"
    assert page.locator("script").count() == 2
    assert page.locator("img").count() == 0
    assert page.wrong == []
    links = page.evaluate("[...document.links].map(a => a.href)")
    assert not [url for url in links if not url.startswith(("file:", "https://ok.example/"))]
    text = (tmp_path / "index.html").read_text()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy
    assert policy[1].startswith("default-src 'none'")
    assert "unsafe" not in policy[1]


def test_hostile_names_in_markdown(tmp_path):
    from markdown_it import MarkdownIt

    with Store(tmp_path / "board.db") as store:
        hostile(store)
        board = Board.load(store, 1, Config())
    written = markdown.write(board, tmp_path / "out")
    assert len(written) == len(HOSTILE) + 1
    for path in written:
        text = path.read_text()
        assert "\u202e" not in text
        assert "<script" not in text
        assert "javascript:" not in "".join(re.findall(r'href="([^"]*)"', text))
        html = MarkdownIt("commonmark").enable("table").render(text)
        assert "<script" not in html
        assert "onerror=" not in re.sub(r"&lt;.*?&gt;", "", html)
        tags = set(re.findall(r"<(\w+)", html))
        assert tags <= {"table", "thead", "tbody", "tr", "th", "td", "a", "img", "p", "h1", "ul",
                        "li", "strong", "em"}  # fmt: skip
        bars = {line.count("|") for line in text.splitlines() if line.startswith("|")}
        assert len(bars) == 1  # a hostile name made no column


def troubled(store):
    """Two runs: passed, then two variants failed and one passed after a retry; a bad URL."""
    for i, states_of in enumerate(([0, 0, 0], [1, 2, 0])):
        when = (datetime.now(UTC) - timedelta(hours=2 - i)).strftime("%Y-%m-%dT%H:%M:%SZ")
        run = store.begin(f"k{i}", "local", started=when)
        job = store.job(run, "main", complete=1, url="javascript:alert(1)")
        for n, state in enumerate(states_of):
            detail = ("E", f"message {n}", f"trace {n}") if state else None
            store.add(run, job, [
                Result("s", "test_a", str(n), "t.py", "jax", "", f"jax-{n}", state, 1 + (n == 2),
                       0.1, 1, float("inf"), 2.5, detail)
            ])  # fmt: skip


def test_a_cell_tells_its_variants_history_and_retries(page, tmp_path):
    visit(page, write(tmp_path, troubled, Config()))
    page.locator(".red-list a").first.click()
    text = re.sub(r"\s+", " ", page.locator("dialog").inner_text())
    assert "variants 3" in text
    assert "attempts 2: flaky" in text
    assert "history ✓ passed, ! error" in text
    assert "worst error ∞ ulp against the reference of gradients 2.5 ulp" in text
    assert "since run 1 regressed" in text
    assert "pytest 't.py::test_a[jax-1]'" in text  # the worst variant
    assert [part.inner_text() for part in page.locator("dialog summary").all()] == [
        "✗ failed 0",
        "! error 1",
    ]
    page.locator("dialog summary").first.click()
    expect(page.locator("dialog details pre").first).to_have_text("trace 0")
    assert "log" not in text
    assert page.locator("dialog a").count() == 0


def many(store):
    run = store.begin("many", "local", started=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    job = store.job(run, "main", complete=1)
    for backend in [*(f"backend{i}" for i in range(16)), "x" * 5000, ""]:
        store.add(run, job, [Result("s", "test_a", "", "t.py", backend, "", backend, 3)])
    store.add(run, job, [Result("other", "test_b", "", "u.py", "backend1", "", "", 0)])


def test_many_backends_and_a_long_one(page, tmp_path):
    """Words do not overlap, the page is no wider than the screen, and tests without a backend get
    one column if there are any.
    """
    visit(page, write(tmp_path, many, Config()))
    for suite in page.locator("tr.suite th a").all():
        suite.click()
    page.wait_for_selector("tr.test")
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    wide = (
        "[...document.querySelectorAll('td .top')].filter(e => e.scrollWidth > e.clientWidth + 1)"
    )
    assert page.locator("td .top").count() == 18 + 17
    assert page.evaluate(f"{wide}.length") == 0
    heads = page.locator("thead th").all_inner_texts()
    assert len(heads) == 19
    assert heads.count("no backend") == 1
    assert page.wrong == []


def test_only_web_addresses_become_links():
    assert markdown.link("https://a.b/c?d=1") == "https://a.b/c?d=1"
    for wrong in ("javascript:alert(1)", "data:x", "ftp://a", 'https://a"onclick=', "", None,
                  "https://a b", "//a.b"):  # fmt: skip
        assert markdown.link(wrong) == ""
