"""`isomorph bench` with fake benchmarks: nothing here measures time."""

import json
import re
import sys
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import benchmarks
from benchmarks import command
from benchmarks.report import Report, Section
from benchmarks.tables import Bar, Line, Table, markdown
from isomorph.cli import command as door

MODULES = sorted(
    ".".join(path.relative_to(Path(benchmarks.__path__[0]).parent).with_suffix("").parts)
    for path in Path(benchmarks.__path__[0]).rglob("[!_]*.py")
)
PEERS = {"autograd", "autoray", "eagerpy", "equinox", "flax"}
HEAD = ["backend", "call", "native ms", "ratio", "budget", "met"]


def fast(backend):
    return Table(
        HEAD,
        [[backend, "<b>tanh</b> & co", "2.00", "0.97x", "1.02x", "yes"],
         [backend, "sum", "1.00", "1.50x", "1.02x", "NO"],
         [backend, "abs", "1.00", "1.10x", "-", "-"]],
    )  # fmt: skip


def grown(backend):
    rows = [[backend, f"{n} blocks", f"{10 * n}.0"] for n in (1, 2, 4)]
    return Table(["backend", "size", "step ms"], rows, lines=("size", "step ms"))


class Read(HTMLParser):
    """Text by tag, and every attribute that occurs."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.found, self.words, self.open = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.open.append(tag)
        self.found += [(tag, key, value) for key, value in attrs]

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        self.words.append((self.open[-1] if self.open else "", data))

    def text(self, tag):
        return [data.strip() for where, data in self.words if where == tag and data.strip()]


@pytest.fixture
def made(monkeypatch, backend):
    """Replace the real benchmarks by fake ones."""

    def make(**runs):
        own = {}
        for name, run in runs.items():
            module = ModuleType(f"benchmarks.{name}")
            module.run = run
            monkeypatch.setitem(sys.modules, module.__name__, module)
            own[name] = command.Benchmark(f"The {name} table")
        monkeypatch.setattr(command, "BENCHMARKS", own)
        return own

    return make


def test_every_module_can_be_imported(backend):
    """Including those that this machine cannot run because it has no GPU."""
    assert "benchmarks.gpt2" in MODULES
    own = [m for m in MODULES if not m.endswith("_peers") or m.endswith(f"{backend}_peers")]
    for name in own:
        try:
            assert import_module(name).__doc__, name
        except ModuleNotFoundError as error:
            if error.name not in PEERS:  # `make bench` installs these, the tests do not
                raise


def test_tables_are_printed_and_written(made, backend, tmp_path, capsys):
    note = f"Note: {backend} <i>rests</i>"
    made(fast=lambda: [fast(backend), note], growth=lambda: grown(backend))
    folder = tmp_path / "deep" / "folder"
    assert command.main(["-o", str(folder)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "## The fast table" in out
    assert re.search(rf"^\| {backend} +\| sum +\|", out, re.M)
    assert note in out
    data = json.loads((folder / "bench.json").read_text("utf-8"))
    assert data["schema"] == 1
    first, second = data["sections"]
    assert first["tables"] == [{"head": HEAD, "rows": fast(backend).rows}]
    assert first["notes"] == [note]
    assert second["name"] == "growth"
    assert data["versions"]["numpy"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", data["started"])
    assert sorted(p.name for p in folder.iterdir()) == ["bench.html", "bench.json"]


def test_the_page_stands_alone_and_can_be_read(made, backend, tmp_path, capsys):
    made(fast=lambda: fast(backend), growth=lambda: grown(backend))
    assert command.main(["-o", str(tmp_path)]) == 0
    text = (tmp_path / "bench.html").read_text("utf-8")
    page = Read(text)
    # no markup from cells either
    assert not {"script", "link", "img", "iframe", "b", "i"} & set(page.tags)
    assert not [v for _, key, v in page.found if key in ("src", "href") and not v.startswith("#")]
    assert not [key for _, key, _ in page.found if key == "style" or key.startswith("on")]
    policy = next(v for tag, key, v in page.found if tag == "meta" and (v or "")[:7] == "default")
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    said = [v for tag, key, v in page.found if tag == "svg" and key == "aria-label"]
    assert len(said) == 2
    assert "3 ratios from 0.97 to 1.5, 1 over their budget" in said[0]
    assert f"{backend}, blocks: 10 at 1, 40 at 4" in said[1]
    assert page.tags.count("table") == 2
    cells = page.text("td") + page.text("th")
    for row in fast(backend).rows:
        assert set(row) <= set(cells)
    assert "1 of 2 rows with a budget" in " ".join(page.text("p"))


def test_bars_are_as_long_as_their_ratios(backend):
    found = fast(backend).bars()
    assert found[1] == Bar(f"{backend}, sum", 1.5, 1.02, False)
    assert found[2] == Bar(f"{backend}, abs", 1.1, None, None)
    page = Report("here", {}, "now", [Section("fast", "Fast", [fast(backend)])]).html()
    widths = [float(w) for w in re.findall(r'<rect [^>]*width="([\d.]+)"', page)]
    assert [w / widths[0] for w in widths] == pytest.approx(
        [1, 1.5 / 0.97, 1.1 / 0.97], abs=2e-3
    )  # rounded to a tenth of a pixel


def test_linear_growth_is_a_straight_line(backend):
    assert grown(backend).series() == [
        Line(f"{backend}, blocks", [(1.0, 10.0), (2.0, 20.0), (4.0, 40.0)])
    ]
    page = Report("here", {}, "now", [Section("growth", "Growth", [grown(backend)])]).html()
    points = re.search(r'points="([^"]+)"', page)[1]
    (x0, y0), (x1, y1), (x2, y2) = [map(float, p.split(",")) for p in points.split()]
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert y1 - y0 == pytest.approx(y2 - y1, abs=0.2)
    assert y2 < y0  # larger values are higher up


def test_markdown_has_one_row_a_line(backend):
    lines = markdown([Table(["a", "b"], [[backend, "x|y"]]), "a note"]).splitlines()
    assert lines[2] == f"| {backend} | x\\|y |"
    assert lines[-1] == "a note"
    with pytest.raises(ValueError, match="needed 2 cells in a row"):
        Table(["a", "b"], [[backend]])


def test_an_unknown_name_is_refused(made, backend, tmp_path, capsys):
    made(fast=lambda: fast(backend))
    assert command.main(["fast", backend, "-o", str(tmp_path / "new")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"isomorph bench: needed names of fast, got {backend}\n"
    assert not (tmp_path / "new").exists()


def test_a_folder_that_cannot_be_written_is_refused_before_anything_runs(
    made, backend, tmp_path, capsys
):
    ran = []
    made(fast=lambda: ran.append(1) or fast(backend))
    file = tmp_path / "file"
    file.write_text(backend)
    for folder in (file, file / "below"):
        assert command.main(["-o", str(folder)]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith(f"isomorph bench: needed a folder to write to, got {folder}: ")
        assert err.count("\n") == 1
    assert ran == []


def test_what_is_not_installed_is_left_out_and_named(made, backend, tmp_path, capsys, monkeypatch):
    own = made(fast=lambda: fast(backend), peer=lambda: fast(backend))
    own["peer"] = own["peer"]._replace(needs=("no_such_package",))
    assert command.main(["-o", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    wanted = "peer is left out: needed no_such_package; pip install 'isomorph[bench]'"
    assert err == f"isomorph bench: {wanted}\n"
    assert "The fast table" in out
    assert "The peer table" not in out
    assert json.loads((tmp_path / "bench.json").read_text())["left_out"] == [wanted]
    assert "needed no_such_package" in (tmp_path / "bench.html").read_text()
    assert command.main(["peer"]) == 2
    own["fast"] = own["fast"]._replace(some=("jax", "tensorflow", "torch"))
    monkeypatch.setattr(command, "installed", lambda name: name not in ("jax", "torch"))
    assert command.main(["fast"]) == 0
    assert "No rows of jax, torch, not installed" in capsys.readouterr().err
    monkeypatch.setattr(command, "installed", lambda name: False)
    assert command.main(["fast"]) == 2
    assert "needed one of jax, tensorflow, torch" in capsys.readouterr().err


def test_one_that_fails_costs_no_other(made, backend, tmp_path, capsys):
    def broken():
        raise RuntimeError(f"Traceback\n  lines\n{backend} fell over")

    made(broken=broken, fast=lambda: fast(backend))
    assert command.main(["-o", str(tmp_path)]) == 1
    assert f"Failed: RuntimeError: {backend} fell over" in capsys.readouterr().out
    first, second = json.loads((tmp_path / "bench.json").read_text())["sections"]
    assert first["failed"] == f"RuntimeError: {backend} fell over"
    assert second["tables"]


def test_what_was_measured_before_an_interrupt_is_kept(made, backend, tmp_path, capsys):
    def stopped():
        raise KeyboardInterrupt

    made(fast=lambda: fast(backend), long=stopped)
    assert command.main(["-o", str(tmp_path)]) == 130
    assert "stopped before long was done" in capsys.readouterr().err
    (section,) = json.loads((tmp_path / "bench.json").read_text())["sections"]
    assert section["name"] == "fast"


def test_quick_reaches_those_that_know_it(made, backend, capsys):
    seen = []
    made(sized=lambda quick=False: seen.append(quick) or fast(backend), fast=lambda: fast(backend))
    assert command.main(["--quick"]) == 0
    assert command.main([]) == 0
    assert seen == [True, False]


def test_every_benchmark_is_a_module_with_a_title(backend):
    folder = command.Path(command.__file__).parent
    for name, benchmark in command.BENCHMARKS.items():
        assert benchmark.title
        assert (folder / f"{name}.py").exists() or (folder / name / "__init__.py").exists()
        assert command.missing(benchmark._replace(needs=(), some=(backend,))) is None


def test_the_door_says_what_is_missing(backend, monkeypatch, capsys):
    monkeypatch.setattr(door, "find_spec", lambda name: None)
    assert door.main(["bench", backend]) == 2
    assert capsys.readouterr().err.startswith("isomorph bench: needed the package ")


def test_the_door_hands_on_arguments_and_the_exit_status(backend, monkeypatch):
    seen = []

    class Done:
        returncode = 7

    monkeypatch.setattr(door, "find_spec", lambda name: name)
    monkeypatch.setattr(door.subprocess, "run", lambda args, check: seen.append(args) or Done)
    assert door.main(["bench", backend, "--quick"]) == 7
    assert seen == [[sys.executable, "-m", "isomorph_benchmarks", backend, "--quick"]]
