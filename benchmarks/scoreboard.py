"""The scoreboard at a large size: 10,000 tests by 8 backends in the database and in the page, and
the time that the plugin adds to a run of 8,000 tests.
"""

from __future__ import annotations

import html
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from pytest_scoreboard.board import Board
from pytest_scoreboard.config import Config
from pytest_scoreboard.page import render
from pytest_scoreboard.store import Result, Store

from .tables import Part, Table

TESTS, SUITES, BACKENDS = 10_000, 100, [f"backend{i}" for i in range(8)]
RUNS = 4


def run() -> list[Part]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        size, text, board = database(path)
        return [size, page(path, text, board), overhead(path)]


def database(path: Path) -> tuple[Table, str, Board]:
    """Bytes per cell and run, over the runs after the first, with results in random order."""
    file = path / "board.db"
    sizes = []
    rng = random.Random(1)
    with Store(file) as store:
        for number in range(RUNS):
            start = f"2026-11-{number + 1:02}T00:00:00Z"
            run = store.begin(f"run{number}", "ci", started=start)
            job = store.job(run, "main", {"python": "3.11"}, url="https://ci.example/1")
            cells = [
                Result(f"test_{i % SUITES}.py", f"test_{i}", "", f"test_{i % SUITES}.py",
                       backend, "", backend, int(rng.random() < 0.002), 1, rng.expovariate(20),
                       rng.randrange(1, 20), rng.expovariate(0.1), None)
                for i in range(TESTS) for backend in BACKENDS
            ]  # fmt: skip
            for i in range(0, len(cells), 1000):  # as they arrive from several workers
                part = cells[i : i + 1000]
                rng.shuffle(part)
                store.add(run, job, part)
                store.db.commit()
            store.finish(run, job, True, 0, start)
            store.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            sizes.append(file.stat().st_size)
        began = time.perf_counter()
        board = Board.load(store, RUNS, Config())
        text = render(store, board)
        took = time.perf_counter() - began
    each = (sizes[-1] - sizes[0]) / (RUNS - 1) / (TESTS * len(BACKENDS))
    return (
        Table(
            ["10,000 tests x 8 backends", "measured", "budget", "met"],
            [
                ["bytes a cell and run in the database", f"{each:.1f}", "25", _met(each <= 25)],
                ["seconds to render the page", f"{took:.1f}", "-", "-"],
                ["megabytes of the page", f"{len(text) / 1e6:.2f}", "-", "-"],
            ],
        ),
        text,
        board,
    )


# By the page's own clock, from the start of the navigation. Our page is usable when its script has
# ended and a suite has been opened and painted; a plain table, when it is loaded and painted.
USABLE = """
const painted = () => requestAnimationFrame(() => requestAnimationFrame(() => {
  window.usable = performance.now();
}));
addEventListener("load", () => {
  if (!document.getElementById("board")) return painted();
  const look = () => {
    if (!document.body.dataset.ready) return setTimeout(look, 1);
    document.querySelector("tr.suite a").click();
    painted();
  };
  look();
});
"""


def page(path: Path, text: str, board: Board) -> Table:
    """Seconds until a reader can search and open a suite, and those of one table of all cells."""
    from playwright.sync_api import sync_playwright

    ours, plain = path / "ours.html", path / "plain.html"
    ours.write_text(text, "utf-8")
    rows = "".join(
        f"<tr><th>{html.escape(name)}</th>"
        + "".join(f'<td class="c{cell.state}">{cell.state}</td>' for cell in row.cells.values())
        + "</tr>\n"
        for suite in board.suites for row in suite.rows for name in [row.name]
    )  # fmt: skip
    plain.write_text(f"<!doctype html><meta charset=utf-8><table>{rows}</table>", "utf-8")
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        raise RuntimeError("the page's benchmark needs a browser: apt-get install chromium")
    best = {"ours": float("inf"), "plain": float("inf")}
    with sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for _ in range(7):
            for name, file in (("ours", ours), ("plain", plain)):
                tab = browser.new_page()
                tab.add_init_script(USABLE)
                tab.goto(file.as_uri())
                while not (took := tab.evaluate("window.usable")):
                    time.sleep(0.02)
                best[name] = min(best[name], took / 1000)
                tab.close()
        browser.close()
    share = best["ours"] / best["plain"]
    return Table(
        ["80,000 cells in Chromium", "seconds until usable", "share", "budget", "met"],
        [
            ["the page, a suite opened", f"{best['ours']:.2f}", f"{share:.2f}", "0.20",
             _met(share < 0.2)],
            ["one plain table", f"{best['plain']:.2f}", "1", "", ""],
        ],
    )  # fmt: skip


WORK = """
import numpy as np, pytest
A = np.random.default_rng(0).standard_normal((64, 64))
@pytest.fixture(params=["a", "b", "c", "d"])
def backend(request): return request.param
@pytest.mark.parametrize("n", range(2000))
def test_it(backend, n):
    x = A + n
    y = np.linalg.solve(x @ x.T + np.eye(64), x)
    assert y.shape == (64, 64)
    np.testing.assert_allclose(y, y + 0, rtol=1e-12)
"""
NOTHING = """
import pytest
@pytest.mark.parametrize("backend", ["a", "b", "c", "d"])
@pytest.mark.parametrize("n", range(2000))
def test_it(backend, n): assert n >= 0
"""


def overhead(path: Path, rounds: int = 10) -> Table:
    """CPU seconds of a run of 8,000 tests, without and with the plugin, which take turns at running
    first: the minima, and the median over pairs of neighbouring runs.
    """
    rows = []
    for label, body in (("a 64 x 64 solve, an assert, a comparison", WORK), ("an assert", NOTHING)):
        folder = path / label.replace(" ", "-")
        folder.mkdir()
        (folder / "test_it.py").write_text(body)
        times: dict[bool, list[float]] = {False: [], True: []}
        for number in range(rounds):
            for on in (number % 2 == 0, number % 2 == 1):
                times[on].append(_cpu(folder, on))
        without, with_it = min(times[False]), min(times[True])
        share = with_it / without - 1
        pairs = [b / a - 1 for a, b in zip(times[False], times[True], strict=True)]
        rows.append([
            label, f"{without:.1f}", f"{with_it:.1f}", f"{(with_it - without) / 8000 * 1e6:.0f}",
            f"{100 * share:.1f} %", f"{100 * median(pairs):.1f} %", "5 %", _met(share < 0.05),
        ])  # fmt: skip
    head = ["8,000 tests", "without s", "with s", "µs a test", "overhead", "median of pairs",
            "budget", "met"]  # fmt: skip
    return Table(head, rows)


def _cpu(folder: Path, on: bool) -> float:
    """User and system seconds of a run, with one BLAS thread: idle threads would count as work."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "pytest", "-qp", "no:cacheprovider",
         "-p", "pytest_scoreboard.plugin",
         *(["--scoreboard"] if on else []), "test_it.py"],
        cwd=folder, check=True, stdout=subprocess.DEVNULL,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _met(good: bool) -> str:
    return "yes" if good else "NO"
