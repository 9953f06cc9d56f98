"""What training reports: the log, the printed lines, the progress bar, the plot."""

import os
import pty
import re
import select
import sys

import numpy as np
import pytest

import isomorph as iso
from isomorph.cli.command import main
from isomorph.training.reporting import plot_logs, read_log
from trainings import ADAMW, child, entropy, lines, network, quick, table


def trained(backend, **kw):
    return iso.fit(
        network(backend), table(backend), entropy, ADAMW, 2, batch_size=8,
        validation=table(backend), metrics={"accuracy": iso.metrics.accuracy}, **{**quick(), **kw},
    )  # fmt: skip


def test_the_log_has_every_step_and_epoch(backend, tmp_path):
    got = trained(backend, log=tmp_path / "log", name="first try")
    log = lines(tmp_path / "log")
    assert log[0] == {"event": "start", "step": 0, "name": "first try", "backend": backend}
    steps = [r for r in log if r["event"] == "step"]
    assert [(r["step"], r["epoch"]) for r in steps] == [
        (1, 1),
        (2, 1),
        (3, 1),
        (4, 2),
        (5, 2),
        (6, 2),
    ]
    assert [r["loss"] for r in steps] == got.losses
    seconds = [r["seconds"] for r in steps]
    assert seconds == sorted(seconds)
    epochs = [r for r in log if r["event"] == "epoch"]
    assert [{k: v for k, v in r.items() if k != "event"} for r in epochs] == got.history
    assert list(epochs[0]["validation"]) == ["loss", "accuracy"]
    assert [r["event"] for r in log] == ["start", *["step"] * 3, "epoch", *["step"] * 3, "epoch"]


def test_going_on_nothing_is_there_twice(backend, tmp_path):
    """Resuming repeats no record, also if the kill came between the log and the checkpoint."""
    log = tmp_path / "log"
    data = table(backend)
    fit = lambda epochs, **kw: iso.fit(
        network(backend), data, entropy, ADAMW, epochs, batch_size=8, log=log, resume=True,
        checkpoint=tmp_path / "c", save_every=1, **quick(), **kw,
    )  # fmt: skip
    fit(9, steps=4)
    assert lines(log)[-1]["event"] == "end"  # the end by steps, not by epoch
    with open(log, "a") as file:  # records that a killed run wrote after its checkpoint
        file.write('{"event": "step", "step": 5, "epoch": 2, "loss": 9}\n')
        file.write('{"event": "step", "step": 6, "epoch": 2, "loss": 9}\n')
        file.write('{"event": "epoch", "step": 4, "epoch": 2, "loss": 9}\n{"event": "st')
    got = fit(3)
    found = lines(log)
    assert [r["step"] for r in found if r["event"] == "step"] == list(range(1, 10))
    assert [r["epoch"] for r in found if r["event"] == "epoch"] == [1, 2, 3]
    assert [r["loss"] for r in found if r["event"] == "step"] == got.losses
    assert [r["event"] for r in found].count("end") == 0


def test_numbers_that_json_has_not_are_words(backend, xp, tmp_path):
    loss = lambda v, x: xp.sum(v * x) + xp.sum(xp.where(x > 0, 0 * x, x - xp.nan))
    iso.fit(
        xp.zeros(1), xp.ones((2, 1)), loss, ADAMW, validation=xp.zeros((2, 1)),
        metrics={"far": lambda v, x: xp.sum(x) + xp.inf}, log=tmp_path / "log", **quick(),
    )  # fmt: skip
    assert lines(tmp_path / "log")[-1]["validation"] == {"loss": "nan", "far": "inf"}


def test_a_file_that_is_no_log_is_left_alone(backend, tmp_path):
    (tmp_path / "thesis").write_text("Chapter 1")
    with pytest.raises(FileExistsError, match="fit: needed a log .*got .*thesis"):
        trained(backend, log=tmp_path / "thesis")
    assert (tmp_path / "thesis").read_text() == "Chapter 1"
    (tmp_path / "log").write_text('{"event": "sta')  # killed right at the start
    trained(backend, log=tmp_path / "log")
    assert len(lines(tmp_path / "log")) == 9


def test_lines_where_there_is_no_terminal(backend, capsys, monkeypatch):
    monkeypatch.setattr("isomorph.training.reporting.EVERY", 1e9)  # however slow this machine is
    trained(backend, progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    number = r"[\d.e-]+"
    line = f"epoch {{}}/2: loss {number}; validation: loss {number}, accuracy {number}\n"
    assert re.fullmatch(line.format(1) + line.format(2), shown.err)
    trained(backend, progress=False)
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "")


def test_a_line_now_and_then(backend, capsys, monkeypatch):
    monkeypatch.setattr("isomorph.training.reporting.EVERY", 0.0)
    trained(backend, progress=True)
    shown = capsys.readouterr().err.splitlines()
    assert len(shown) == 8
    for n, line in zip((1, 2, 3), shown):
        words = rf"epoch 1/2, step {n} of 6: loss [\d.]+"
        if n > 1:  # the first step may have been compiled
            words += r", [\d.e+]+ steps/s, \d+:\d\d left"
        assert re.fullmatch(words, line), line


def run_in_terminal(code, *args):
    """The output of a process on a pseudo-terminal."""
    outer, inner = pty.openpty()
    process = child(code, *args, stdin=inner, stderr=inner)
    os.close(inner)
    shown = b""
    while True:
        ready, _, _ = select.select([outer], [], [], 100)
        assert ready
        try:
            more = os.read(outer, 65536)
        except OSError:  # the other end is closed
            break
        if not more:
            break
        shown += more
    os.close(outer)
    process.communicate(timeout=60)
    assert process.returncode == 0, shown
    return shown.decode()


IN_TERMINAL = """
import sys
import isomorph as iso
from trainings import ADAMW, entropy, network, table
data = table(sys.argv[1])
batches = data if sys.argv[2] == "arrays" else ((data,) * 4).__iter__()
iso.fit(network(sys.argv[1]), batches, entropy, ADAMW, batch_size=6, compiled=False)
"""


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)  # the bar does not depend on arrays
@pytest.mark.takes("it starts a process on a terminal")
def test_a_bar_on_a_terminal(backend):
    shown = run_in_terminal(IN_TERMINAL, backend, "arrays")
    plain = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", shown)
    assert "4/4" in plain
    assert re.search(r"epoch 1/1  loss [\d.]+  [\d.e+]+ steps/s", plain)
    assert re.search(r"epoch 1/1: loss [\d.]+", plain)
    assert "\x1b[?25h" in shown  # the cursor is shown again
    endless = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", run_in_terminal(IN_TERMINAL, backend, "stream"))
    assert "4/?" in endless


def test_a_picture_of_logs(backend, tmp_path):
    for name in ("one", "two"):
        trained(backend, log=tmp_path / name, name=f"try {name}")
    for end, begin in (("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")):
        out = tmp_path / "pictures" / f"a.{end}"
        assert plot_logs([tmp_path / "one", tmp_path / "two"], out) == out
        assert out.read_bytes().startswith(begin)
    text = (tmp_path / "pictures" / "a.svg").read_text()
    assert "try one" in text
    assert "try two" in text
    assert "loss" in text


def test_the_command_plot(backend, tmp_path, capsys, monkeypatch):
    log, out = str(tmp_path / "log"), str(tmp_path / "a.svg")
    trained(backend, log=log)
    assert main(["plot", log, "-o", out]) == 0
    assert capsys.readouterr().out == f"{out}\n"
    assert (tmp_path / "a.svg").stat().st_size > 1000
    (tmp_path / "empty").write_text("")
    (tmp_path / "other").write_text('{"a": 1}\n3\n[]\n')
    missing = str(tmp_path / "missing")
    for args, words in (
        ([missing, "-o", out], f"isomorph plot: needed a log of fit, got no file {missing}\n"),
        ([str(tmp_path / "empty"), "-o", out], "plot: needed a log with steps, got 0 records in"),
        ([str(tmp_path / "other"), "-o", out], "plot: needed a log with steps, got 0 records in"),
        ([log, "-o", str(tmp_path / "a.odd")], "odd"),
    ):
        assert main(["plot", *args]) == 2
        shown = capsys.readouterr()
        assert words in shown.err
        assert shown.err.count("\n") == 1
        assert shown.out == ""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["plot", log, "-o", out]) == 2
    assert "isomorph plot: needed matplotlib; pip install" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["plot", log])
    assert ended.value.code == 2


def test_losses_below_zero_are_drawn(backend, xp, tmp_path):
    fit = lambda name, **kw: iso.fit(
        xp.zeros(1), xp.ones((3, 1)), lambda v, x: xp.sum(v), ADAMW, 3, batch_size=1,
        log=tmp_path / name, **quick(),
    )  # fmt: skip
    got = fit("log")
    assert min(got.losses) < 0
    assert plot_logs([tmp_path / "log"], tmp_path / "a.png").stat().st_size > 1000
    assert [r["loss"] for r in read_log(tmp_path / "log") if r["event"] == "step"] == got.losses
    with pytest.raises(ValueError, match="plot: needed at least one log of fit, got none"):
        plot_logs([], tmp_path / "b.png")
    assert np.isfinite(got.losses).all()
