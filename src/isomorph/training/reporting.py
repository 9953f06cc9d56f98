"""Progress of a training: a bar on a terminal with rich, otherwise a line now and then, and a log
of JSON lines for plots.
"""

from __future__ import annotations

import errno
import json
import math
import os
import sys
import time
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

EVERY = 10.0  # seconds between plain lines
BEGIN = b'{"event": '  # how every line of a log begins


class Progress:
    """Loss, steps per second and time left, on standard error."""

    def __init__(self, shown: bool, total: int | None, done: int):
        self.shown, self.total, self.done, self.first = shown, total, done, done
        self.began = self.told = time.monotonic()
        self.is_warm = False  # whether a step of this run is done
        self.bar: Any = None
        if shown and sys.stderr is not None and sys.stderr.isatty():
            self.bar = _bar(total, done)

    def step(self, epoch: str, loss: float) -> None:
        self.done += 1
        if self.shown:
            self.show(epoch, loss)
        if not self.is_warm:  # the first step may have been compiled: its time tells nothing
            self.is_warm, self.began, self.first = True, time.monotonic(), self.done

    def show(self, epoch: str, loss: float) -> None:
        speed = f"{self.rate():.3g} steps/s" if self.is_warm else ""
        if self.bar is not None:
            text = f"epoch {epoch}  loss {loss:.4g}  {speed}".rstrip()
            self.bar.update(self.bar.task_ids[0], completed=self.done, description=text)
        elif time.monotonic() - self.told > EVERY:
            self.told = time.monotonic()
            of = "" if self.total is None else f" of {self.total}"
            left = f"{_clock(self.left())} left" if speed and self.total is not None else ""
            words = [f"epoch {epoch}, step {self.done}{of}: loss {loss:.4g}", speed, left]
            self.say(", ".join(filter(None, words)))

    def rate(self) -> float:
        """Steps per second, without the first one."""
        return (self.done - self.first) / max(time.monotonic() - self.began, 1e-9)

    def left(self) -> float:
        return max((self.total or self.done) - self.done, 0) / max(self.rate(), 1e-9)

    def say(self, line: str) -> None:
        if not self.shown:
            return
        if self.bar is not None:
            self.bar.console.print(line, highlight=False, markup=False)
        else:
            print(line, file=sys.stderr, flush=True)

    def stop(self) -> None:
        if self.bar is not None:
            self.bar.stop()
            self.bar = None


def _bar(total: int | None, done: int) -> Any:
    try:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )
    except ImportError:
        return None
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    bar = Progress(*columns, console=Console(file=sys.stderr))
    bar.add_task("compiling" if not done else "going on", total=total, completed=done)
    bar.start()
    return bar


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


class Log:
    """JSON lines: one per step and one per epoch. A resumed training drops the lines of steps that
    it will repeat.
    """

    def __init__(self, path: str | os.PathLike[str] | None, step: int, epoch: int, **facts: Any):
        self.file = None
        self.lines = True  # whether the file so far ends with a whole line
        if path is None:
            return
        self.path = path = Path(path)
        if not path.parent.is_dir():
            raise FileNotFoundError(f"fit: needed a folder for the log, got {path.parent}")
        found = read_log(path)
        if (
            not found
            and path.exists()
            and not path.read_bytes().startswith(BEGIN[: path.stat().st_size])
        ):
            raise FileExistsError(
                f"fit: needed a log or a new file name as log, got {path}, which is another file"
            )
        kept = [x for x in found if _is_before(x, step, epoch)] if step else []
        part = path.with_name(f"{path.name}.partial")
        part.write_text("".join(json.dumps(x) + "\n" for x in kept), "utf-8")
        part.replace(path)
        self.file = open(path, "ab", buffering=0)  # noqa: SIM115
        self.write("resume" if step else "start", step=step, **facts)

    def write(self, event: str, **facts: Any) -> None:
        """Write a line. If the disk refuses it, the training continues with a warning."""
        if self.file is None:
            return
        line = json.dumps({"event": event, **_plain(facts)}).encode() + b"\n"
        if not self.lines:
            line = b"\n" + line
        try:
            self.lines = self.file.write(line) == len(line)
            if not self.lines:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            warnings.warn(
                f"fit: the log {self.path} could not be written at {event} {facts.get('step')}, "
                f"the training continues: {error.strerror or error}",
                RuntimeWarning,
                stacklevel=3,
            )

    def close(self) -> None:
        if self.file is not None:
            self.file.close()


def _is_before(record: dict[str, Any], step: int, epoch: int) -> bool:
    """Whether a record is of a step or epoch that a resumed training has already done."""
    event = record["event"]
    if event == "epoch":
        return record["epoch"] <= epoch
    return event != "end" and record.get("step", 0) <= step


def read_log(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The records of a log, without lines that a kill or a full disk cut short."""
    if not Path(path).is_file():
        return []
    records = []
    for line in Path(path).read_text("utf-8", "replace").splitlines():
        try:
            found = json.loads(line)
        except (json.JSONDecodeError, RecursionError):
            continue
        if isinstance(found, dict) and "event" in found:
            records.append(found)
    return records


def _plain(x: Any) -> Any:
    """A value that JSON can hold: JSON has no NaN."""
    if isinstance(x, dict):
        return {k: _plain(y) for k, y in x.items()}
    return str(x) if isinstance(x, float) and not math.isfinite(x) else x


def plot_logs(paths: Iterable[str | os.PathLike[str]], out: str | os.PathLike[str]) -> Path:
    """Draw the losses of logs in one picture, in the format given by the name of `out` (svg, png,
    pdf). Needs matplotlib.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("plot: needed matplotlib; pip install 'isomorph[plot]'") from None
    figure = Figure(figsize=(8, 4.5))
    axes = figure.subplots()
    styles = ("-", "--", "-.", ":")
    lowest, drawn = math.inf, 0
    for i, path in enumerate(paths):
        if not Path(path).is_file():
            raise FileNotFoundError(f"plot: needed a log of fit, got no file {path}")
        records = read_log(path)
        steps = [r for r in records if r["event"] == "step"]
        if not steps:
            raise ValueError(f"plot: needed a log with steps, got {len(records)} records in {path}")
        name = next((r["name"] for r in records if r.get("name")), Path(path).stem)
        losses = [float(r["loss"]) for r in steps]
        lowest, drawn = min(lowest, *losses), drawn + 1
        axes.plot(
            [r["step"] for r in steps], losses, label=name,
            linestyle=styles[i % 4], linewidth=max(4 - i, 1), alpha=0.8,
        )  # fmt: skip
    if not drawn:
        raise ValueError("plot: needed at least one log of fit, got none")
    axes.set(xlabel="step", ylabel="loss")
    if 0 < lowest < math.inf:  # otherwise there is no finite loss
        axes.set_yscale("log")
    axes.legend()
    axes.grid(alpha=0.3)
    figure.tight_layout()
    out = Path(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out)
    return out
