"""`isomorph bench` and `python -m benchmarks`: run all benchmarks, or those named, print their
tables, and write them to a folder as JSON and as a page.
"""

from __future__ import annotations

import argparse
import inspect
import sys
import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from .report import HTML, JSON, Report, Section, section_markdown
from .tables import parts
from .timing import installed


class Benchmark(NamedTuple):
    """A module beside this one with a function `run`, and the packages that it needs."""

    title: str
    needs: tuple[str, ...] = ()
    some: tuple[str, ...] = ()  # one of these is enough: the rows of missing ones are left out


EACH = ("jax", "tensorflow", "torch")
BENCHMARKS = {
    "imports": Benchmark("Import"),
    "calls": Benchmark(
        "Public call over native call, 8 x 8 float32", ("autoray", "eagerpy", "keras"), EACH
    ),
    "tape": Benchmark("NumPy tape", ("autograd", "torch")),
    "batching": Benchmark("vmap on NumPy over the same batched by hand", (), ("jax", "torch")),
    "gradients": Benchmark(
        "Gradients and optimizer updates over the framework's own", ("autograd",), EACH
    ),
    "eager_loops": Benchmark("Eager loops and transforms over NumPy", (), EACH),
    "layers": Benchmark("Layers over the framework's own", ("keras", "torch"), EACH),
    "layers_tiny": Benchmark(
        "Layers on tiny arrays: a call over the framework's own", ("keras", "torch"), EACH
    ),
    "jit_calls": Benchmark("Compiled calls on tiny arrays over the framework's own", (), EACH),
    "special": Benchmark("Special functions over the framework's own", ("scipy",), EACH),
    "modules": Benchmark("Modules over the framework's own", ("equinox", "keras", *EACH)),
    "training": Benchmark(
        "Training steps over the framework's own",
        ("autograd", "equinox", "flax", "keras", "optax"), EACH,
    ),
    "first": Benchmark(
        "The first training step, and that of a second process",
        ("equinox", "flax", "keras", "optax"), EACH,
    ),
    "small": Benchmark("Small networks, many steps, over loops by hand", ("optax",), EACH),
    "chains": Benchmark("Steps of small layers over the same by hand", ("optax",), EACH),
    "waits": Benchmark("Whether compiling pays", (), EACH),
    "memory": Benchmark("Peak memory of a training step", ("optax",), EACH),
    "distribute": Benchmark(
        "The reduction of a data parallel step over the engine's own all-reduce", (),
        ("mpi4py", "tensorflow", "torch"),
    ),
    "checkpoints": Benchmark("Checkpoints over the safetensors library", ("safetensors",)),
    "scoreboard": Benchmark("The scoreboard at size", ("jinja2", "playwright")),
}  # fmt: skip
INSTALL = "pip install 'isomorph[bench]'"


def main(argv: Sequence[str] | None = None, prog: str = "isomorph bench") -> int:
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Measure isomorph and its peers on this machine, print the tables, and write "
        "them as JSON and as a page.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(BENCHMARKS)}")
    parser.add_argument(
        "-o", metavar="FOLDER", dest="folder", type=Path, help=f"for {JSON} and {HTML}"
    )
    parser.add_argument("--quick", action="store_true", help="toy sizes where a benchmark has them")
    given = parser.parse_args(argv)
    unknown = [name for name in given.names if name not in BENCHMARKS]
    if unknown:
        return refuse(prog, f"needed names of {', '.join(BENCHMARKS)}, got {unknown[0]}")
    if given.folder is not None:
        if not installed("jinja2"):
            return refuse(prog, f"needed jinja2 to write a page; {INSTALL}")
        wrong = unwritable(given.folder)
        if wrong:
            return refuse(prog, f"needed a folder to write to, got {given.folder}: {wrong}")
    chosen = list(dict.fromkeys(given.names or BENCHMARKS))
    report, able = Report.begun(), []
    for name in chosen:
        lacking = missing(BENCHMARKS[name])
        if lacking is None:
            able.append(name)
        else:
            report.left_out.append(f"{name} is left out: needed {lacking}; {INSTALL}")
    partly = [name for name in EACH if not installed(name)]
    if able and partly and any(BENCHMARKS[name].some for name in able):
        report.left_out.append(f"No rows of {', '.join(partly)}, not installed; {INSTALL}")
    for line in report.left_out:
        print(f"{prog}: {line}", file=sys.stderr)
    if not able:
        return 2
    return measure(prog, report, able, given.folder, given.quick)


def measure(prog: str, report: Report, names: list[str], folder: Path | None, quick: bool) -> int:
    """Run the benchmarks. Results are written after each one, because a run takes long."""
    print(report.heading)
    try:
        for name in names:
            section = one(name, quick)
            report.sections.append(section)
            print(section_markdown(section), flush=True)
            if folder is not None:
                report.write(folder)
    except KeyboardInterrupt:
        print(f"{prog}: stopped before {name} was done", file=sys.stderr)
        return 130
    except OSError as error:
        return refuse(prog, f"needed a folder to write to, got {folder}: {error.strerror or error}")
    if folder is not None:
        print(f"\nWritten to {folder / JSON} and {folder / HTML}")
    return 1 if any(s.failed for s in report.sections) else 0


def one(name: str, quick: bool) -> Section:
    title = BENCHMARKS[name].title
    try:
        run = import_module(f".{name}", __package__).run
        sized = "quick" in inspect.signature(run).parameters
        return Section(name, title, parts(run(quick=True) if quick and sized else run()))
    except Exception as error:  # if one fails, the others still run
        lines = str(error).strip().splitlines()
        told = lines[-1] if lines else "no message"
        return Section(name, title, [], f"{type(error).__name__}: {told}")


def missing(benchmark: Benchmark) -> str | None:
    """The packages that a benchmark needs and that are missing, as text; None if it can run."""
    lacking = [name for name in benchmark.needs if not installed(name)]
    if lacking:
        return ", ".join(lacking)
    if benchmark.some and not any(map(installed, benchmark.some)):
        return f"one of {', '.join(benchmark.some)}"
    return None


def unwritable(folder: Path) -> str:
    """Why the folder cannot be written to; empty if it can."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return error.strerror or str(error)


def refuse(prog: str, message: str) -> int:
    print(f"{prog}: {message}", file=sys.stderr)
    return 2
