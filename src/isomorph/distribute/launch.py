"""`isomorph launch`: several processes of one script on this machine. The first that fails ends
all, and is named with its last lines.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

from ..core.dispatch import OWN
from .launchers import LOOPBACK

KEPT = 20  # lines of each process
GRACE = 5.0  # seconds between asking a process to end and ending it
# Under mpiexec, a shell beside each process writes its output to a pipe of its own, and notes who
# failed first.
BESIDE = """
"$@" > "$0/out.$PMI_RANK" 2>&1 & p=$!
echo $p > "$0/pid.$PMI_RANK"
wait $p; s=$?
rm -f "$0/pid.$PMI_RANK"
[ $s -eq 0 ] || echo "$PMI_RANK $s" >> "$0/failed"
exit $s
"""


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="isomorph launch",
        description="Run a script in several processes on this machine; in the script, "
        "iso.distribute.init() joins them.",
    )
    parser.add_argument("--workers", type=int, required=True, metavar="N")
    parser.add_argument("--backend", choices=OWN, help="needed for NumPy, which uses mpiexec")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    asked = parser.parse_args(list(argv))
    if asked.workers < 1:
        parser.error(f"needed --workers as a number >= 1, got {asked.workers}")
    if not Path(asked.script).is_file():
        parser.error(f"needed a script that exists, got {asked.script}")
    command = [sys.executable, "-u", asked.script, *asked.arguments]
    environment = {**os.environ, **_common(asked.workers, asked.backend)}
    with TemporaryDirectory(prefix="isomorph-") as folder:
        environment["ISOMORPH_LAUNCH"] = folder
        if asked.backend == OWN[0]:
            return _by_mpi(command, asked.workers, environment, Path(folder))
        ports = _free_ports(1 + asked.workers)
        made = [
            (command, {**environment, **_variables(rank, asked.workers, ports)})
            for rank in range(asked.workers)
        ]
        return _Job(made).run()


def _common(workers: int, backend: str | None) -> dict[str, str]:
    found = {} if backend is None else {"ISOMORPH_BACKEND": backend}
    if "OMP_NUM_THREADS" not in os.environ:  # so that the processes do not crowd each other out
        found["OMP_NUM_THREADS"] = str(max(1, (os.cpu_count() or 1) // workers))
    return found


def _variables(rank: int, size: int, ports: Sequence[int]) -> dict[str, str]:
    """What torchrun sets too."""
    return {
        "RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank),
        "LOCAL_WORLD_SIZE": str(size), "MASTER_ADDR": LOOPBACK, "MASTER_PORT": str(ports[0]),
        "ISOMORPH_PORTS": ",".join(map(str, ports[1:])),
    }  # fmt: skip


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind((LOOPBACK, 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def _by_mpi(command: list[str], workers: int, environment: dict[str, str], folder: Path) -> int:
    beside = Path(sys.executable).parent / "mpiexec"
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
    if mpiexec is None:
        print(
            "isomorph launch: needed mpiexec for NumPy, got none; pip install mpi4py mpich",
            file=sys.stderr,
        )
        return 2
    of_others = ("PMI", "MPI_LOCAL", "OMPI_")  # of an mpiexec that started this process
    clean = {k: v for k, v in environment.items() if not k.startswith(of_others)}
    for rank in range(workers):
        os.mkfifo(folder / f"out.{rank}")
    started = [mpiexec, "-n", str(workers), "sh", "-c", BESIDE, str(folder), *command]
    return _MpiJob([(started, clean)], folder, workers).run()


class _Job:
    """Processes that live and end together."""

    def __init__(self, made: list[tuple[list[str], dict[str, str]]]):
        self.last: dict[int, deque[str]] = {}
        self.lock = threading.Lock()
        self.asked = False  # whether the user wants the job to end
        self.until = math.inf  # when it ends in any case
        self.processes = [
            subprocess.Popen(
                command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, errors="replace", start_new_session=True,
            )
            for command, environment in made
        ]  # fmt: skip
        self.ended: list[tuple[int, int]] = []  # rank and status, in the order of their ends
        self.readers = [
            threading.Thread(target=self._read, args=(rank, process.stdout), daemon=True)
            for rank, process in self._outputs(self.processes)
        ]
        for rank in range(len(self.processes)):
            threading.Thread(target=self._watch, args=(rank,), daemon=True).start()

    def _outputs(self, processes: list[Any]) -> list[tuple[int, Any]]:
        return list(enumerate(processes))

    def run(self) -> int:
        before = {n: signal.signal(n, self._note) for n in (signal.SIGINT, signal.SIGTERM)}
        for reader in self.readers:
            reader.start()
        try:
            failed = self._wait()
        finally:
            self._end()
            for number, handler in before.items():
                signal.signal(number, handler)
            for reader in self.readers:
                reader.join(2)
        if failed is None:
            return 0
        if self.asked:
            return 130
        return self._report(*failed)

    def _note(self, number: int, frame: Any) -> None:
        """Pass Ctrl-C on, so that a training ends after its step; the second time end at once."""
        if self.asked or number == signal.SIGTERM:
            self.until = min(self.until, time.monotonic() + GRACE)
            self._signal(signal.SIGTERM)
        else:
            self._signal(signal.SIGINT)
        self.asked = True

    def _signal(self, number: int) -> None:
        for process in self.processes:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, number)

    def _wait(self) -> tuple[int, int] | None:
        """The first process that failed and its status, or None when all have ended well."""
        while True:
            states = [process.returncode for process in self.processes]
            failed = self._failed(states)
            if failed is not None:
                return failed
            if len(self.ended) == len(self.processes):
                return None
            if time.monotonic() > self.until:
                return -1, 1
            time.sleep(0.05)

    def _failed(self, states: list[int | None]) -> tuple[int, int] | None:
        """The first one that failed: the others notice it after its end, and may fail of it."""
        return next((pair for pair in self.ended if pair[1]), None)

    def _watch(self, rank: int) -> None:
        self.ended.append((rank, self.processes[rank].wait()))

    def _end(self) -> None:
        self._signal(signal.SIGTERM)
        until = min(self.until, time.monotonic() + GRACE)
        while time.monotonic() < until and any(p.returncode is None for p in self.processes):
            time.sleep(0.05)
        self._signal(signal.SIGKILL)
        for process in self.processes:
            process.wait()

    def _read(self, rank: int, stream: IO[str]) -> None:
        for line in stream:
            with self.lock:
                self.last.setdefault(rank, deque(maxlen=KEPT)).append(line)
                sys.stdout.write(f"[{rank}] {line}" if rank >= 0 else line)
                sys.stdout.flush()

    def _report(self, rank: int, status: int) -> int:
        how = f"status {status}"
        if status < 0:
            with suppress(ValueError):
                how = f"signal {signal.Signals(-status).name}"
        lines = "".join(f"  {line}" for line in self.last.get(rank, ()))
        who = "a process" if rank < 0 else f"rank {rank}"
        shown = f"; its last lines:\n{lines}" if lines else ""
        print(f"isomorph launch: {who} ended with {how}{shown}", file=sys.stderr, flush=True)
        return status if status > 0 else 128 - status


class _MpiJob(_Job):
    """One mpiexec, and the pipes of the processes that it starts."""

    def __init__(self, made: list[tuple[list[str], dict[str, str]]], folder: Path, workers: int):
        self.folder, self.workers = folder, workers
        super().__init__(made)
        self.readers += [
            threading.Thread(target=self._pipe, args=(rank,), daemon=True)
            for rank in range(workers)
        ]

    def _outputs(self, processes: list[Any]) -> list[tuple[int, Any]]:
        return [(-1, processes[0])]  # what mpiexec itself says

    def _pipe(self, rank: int) -> None:
        with open(self.folder / f"out.{rank}", errors="replace") as stream:
            self._read(rank, stream)

    def _end(self) -> None:
        super()._end()
        # mpiexec has ended some shells, and not what they had started
        for file in self.folder.glob("pid.*"):
            with suppress(ProcessLookupError, ValueError):
                os.kill(int(file.read_text()), signal.SIGKILL)
        for rank in range(self.workers):  # a pipe that nobody wrote to: its reader waits
            with suppress(OSError):
                os.close(os.open(self.folder / f"out.{rank}", os.O_WRONLY | os.O_NONBLOCK))

    def _failed(self, states: list[int | None]) -> tuple[int, int] | None:
        failed = self.folder / "failed"
        if failed.exists() and (words := failed.read_text().split()[:2])[1:]:
            rank, status = map(int, words)
            return rank, 128 - status if status > 128 else status  # of a shell: 128 + the signal
        return (-1, states[0]) if states[0] else None
