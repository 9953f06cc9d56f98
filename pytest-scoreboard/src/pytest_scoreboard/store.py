"""The SQLite file: one writer, rows that arrive in batches, runs found by number, key or `latest`.

Names are turned into numbers once and cached in dictionaries, so that a result costs one row of
small integers. A commit at least every second preserves the results of a killed run.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterable
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from .states import BY_CODE, NOT_SAMPLED

APPLICATION = 0x53424431  # 'SBD1', as in schema.sql
COUNT_LIMIT = 1 << 40  # an infinite error, in thousandths of an ulp
INSERT = "INSERT OR REPLACE INTO result VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
NUMBERED = {  # the key columns of a table, and its other columns
    "environment": (("facts",), ()),
    "backend": (("name",), ()),
    "test": (("suite", "name", "variant"), ("file",)),
    "cell": (("test", "backend", "mode"), ("node",)),
    "detail": (("digest",), ("kind", "message", "text")),
}
# A result of the test in the same row, in any mode; that a sample left it out is none.
RAN = (
    "SELECT 1 FROM cell AS own JOIN result AS ran ON ran.cell = own.cell AND ran.run = {0}.run"
    f" WHERE own.test = {{1}}.test AND own.backend = {{1}}.backend AND ran.state != {NOT_SAMPLED}"
)
ROOM = 1 << 28  # bytes up to which a file is vacuumed after every run


class Result(NamedTuple):
    """The result of one test on one backend in one mode."""

    suite: str
    name: str
    variant: str
    file: str
    backend: str
    mode: str
    node: str
    state: int
    attempts: int = 1
    duration: float | None = None  # seconds
    asserts: int | None = None
    value_error: float | None = None  # ulps
    gradient_error: float | None = None
    detail: tuple[str, str, str] | None = None  # kind, message, text


EMPTY = "]["  # the node of a test whose id is without a character: `test_it[]`


class Planned(NamedTuple):
    suite: str
    name: str
    variant: str
    file: str
    backend: str
    node: str


class Store:
    """An open scoreboard file."""

    def __init__(self, path: str | Path, write: bool = True) -> None:
        self.path = Path(path)
        if not write and not (self.path.is_file() and self.path.stat().st_size):
            raise FileNotFoundError(
                f"scoreboard: needed a database, found none at {path}; run pytest --scoreboard, or "
                "scoreboard import seeds"
            )
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self.db = sqlite3.connect(self.path, timeout=30, check_same_thread=False)
            self.db.row_factory = sqlite3.Row
            try:
                self._ready(write)
            except sqlite3.OperationalError:
                wal = self.path.with_name(self.path.name + "-wal")
                if write or (wal.exists() and wal.stat().st_size):
                    raise
                # A folder without write permission, like a CI artifact: read the file without
                # locks.
                self.db.close()
                self.db = sqlite3.connect(f"{self.path.absolute().as_uri()}?immutable=1", uri=True)
                self.db.row_factory = sqlite3.Row
                self._ready(write)
        except sqlite3.Error as error:
            raise ValueError(
                f"scoreboard: needed a database that can be opened, got {path}: {error}"
            ) from error
        self._known: dict[str, dict[Any, int]] = {}
        self._unfiled: set[int] | None = None  # tests whose file is unknown
        self._heard: dict[int, set[int]] = {}  # for runs begun here: cells that have a result

    def _ready(self, write: bool) -> None:
        """Create the tables of a new file; raise if the file is another program's or version's."""
        (version,), (owner,), (tables,) = (
            self.db.execute(question).fetchone()
            for question in (
                "PRAGMA user_version", "PRAGMA application_id", "SELECT count(*) FROM sqlite_master"
            )
        )  # fmt: skip
        if tables and owner != APPLICATION:
            raise ValueError(
                f"scoreboard: needed a scoreboard's database, got another program's: {self.path}"
            )
        if tables and version != 1:
            raise ValueError(f"scoreboard: needed schema 1, got schema {version} in {self.path}")
        if write:
            self.db.execute("PRAGMA journal_mode=WAL")
            self.db.execute("PRAGMA synchronous=NORMAL")
        if not tables:
            schema = (files("pytest_scoreboard") / "schema.sql").read_text("utf-8")
            self.db.executescript(f"BEGIN IMMEDIATE;\n{schema}\nCOMMIT;")

    def close(self) -> None:
        self.db.commit()
        self.db.close()

    def undo(self) -> None:
        """Discard everything since the last commit."""
        self.db.rollback()
        self._known.clear()
        self._unfiled = None

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self.undo()
        self.close()

    # Writing

    def begin(self, key: str, kind: str, number: int | None = None, **facts: Any) -> int:
        """The run with this key, created if it does not exist."""
        found = self.db.execute("SELECT run FROM run WHERE key = ?", (key,)).fetchone()
        if found:
            return found[0]
        names = ["run", "key", "kind", *facts]  # run 0 is reserved for the seeds
        made = self.db.execute(  # in one statement: another process may begin a run too
            f"INSERT INTO run ({', '.join(names)})"
            f" SELECT coalesce(?, max(run) + 1, 1){', ?' * (len(names) - 1)} FROM run WHERE true"
            " ON CONFLICT (key) DO NOTHING",
            (number, key, kind, *map(_utf8, facts.values())),
        )
        mine: int = self.db.execute("SELECT run FROM run WHERE key = ?", (key,)).fetchone()[0]
        if made.rowcount:
            self._heard[mine] = set()
        return mine

    def job(self, run: int, key: str, facts: dict[str, Any] | None = None, **more: Any) -> int:
        environment = None
        if facts:
            text = json.dumps(facts, sort_keys=True)
            environment = self.environment(text)
        self.db.execute(
            "INSERT INTO job (run, key, environment) VALUES (?, ?, ?) "
            "ON CONFLICT DO UPDATE SET environment = coalesce(excluded.environment, environment)",
            (run, key, environment),
        )
        for name, value in more.items():
            self.db.execute(
                f"UPDATE job SET {name} = ? WHERE run = ? AND key = ?", (value, run, key)
            )
        return self.db.execute(
            "SELECT job FROM job WHERE run = ? AND key = ?", (run, key)
        ).fetchone()[0]

    def add(self, run: int, job: int, results: Iterable[Result]) -> None:
        """Store results; of two for one cell the worse is kept, whichever came first."""
        results = _written(results)
        self._learn_tests([r[:4] for r in results])
        tests, backends = self._all("test"), self._all("backend")
        self._learn("backend", {(r.backend,): () for r in results})
        places = [(tests[r[:3]], backends[r.backend,], r.mode) for r in results]
        self._learn("cell", {place: (r.node,) for place, r in zip(places, results)})
        cells = self._all("cell")
        self.put(
            (
                run, cells[place], job, r.state, r.attempts,
                None if r.duration is None else round(r.duration * 1e4),
                r.asserts, _milli(r.value_error), _milli(r.gradient_error),
                self.detail(*r.detail) if r.detail else None,
            )
            for place, r in zip(places, results)
        )  # fmt: skip

    def put(self, rows: Iterable[tuple]) -> None:
        rows = sorted(rows, key=lambda row: row[1])
        new, again = [], []
        for row in rows:
            heard = self._heard.get(row[0])
            (again if heard is None or row[1] in heard or row[4] > 1 else new).append(row)
            if heard is not None:
                heard.add(row[1])
        made = self.db.executemany(
            INSERT.replace("REPLACE", "IGNORE"), [(*row[:4], *row[5:]) for row in new]
        )
        if new and made.rowcount < len(new):  # another process has stored a result for one of them
            again += new
        for row in again:
            old = self.db.execute(
                "SELECT result.run, result.cell, job, state, coalesce(attempts, 1), duration,"
                " asserts, value_error, gradient_error, detail FROM result LEFT JOIN retry"
                " USING (run, cell) WHERE result.run = ? AND result.cell = ?",
                row[:2],
            ).fetchone()
            if old is None or self._prefers(row, tuple(old)):
                self.db.execute(INSERT, (*row[:4], *row[5:]))
                if row[4] > 1 or (old and old[4] > 1):
                    self.db.execute(
                        "INSERT OR REPLACE INTO retry VALUES (?, ?, ?)", (*row[:2], row[4])
                    )

    def _prefers(self, new: tuple, old: tuple) -> bool:
        """Whether the first of two results for one cell is kept: the worse, then the larger
        numbers, then the job whose key comes last; so the order of arrival does not matter.
        """
        if new[2] == old[2] or _order(new) != _order(old):
            return _order(new) > _order(old)
        key = dict(
            self.db.execute("SELECT job, key FROM job WHERE job IN (?, ?)", (new[2], old[2]))
        )
        return key[new[2]] > key[old[2]]

    def plan(self, run: int, job: int, planned: Iterable[Planned]) -> None:
        planned = _written(planned)
        self._learn_tests([p[:4] for p in planned])
        self._learn("backend", {(p.backend,): () for p in planned})
        tests, backends = self._all("test"), self._all("backend")
        self.db.executemany(
            "INSERT OR IGNORE INTO plan VALUES (?, ?, ?, ?, ?)",
            [(run, job, tests[p[:3]], backends[p.backend,], p.node) for p in planned],
        )

    def place(self, planned: Iterable[Planned]) -> None:
        """Correct the file and the id of tests where they have changed since they were first seen:
        with these a test is run again.
        """
        planned = _written(planned)
        tests, backends = self._all("test"), self._all("backend")
        self.db.executemany(
            "UPDATE test SET file = ?1 WHERE test = ?2 AND file != ?1",
            {(p.file, tests[p[:3]]) for p in planned},
        )
        self.db.executemany(
            "UPDATE cell SET node = ?1 WHERE test = ?2 AND backend = ?3 AND node != ?1",
            [(p.node, tests[p[:3]], backends[p.backend,]) for p in planned],
        )

    def move(self, files: dict[str, str]) -> None:
        """Give tests of files that were moved their new file, and their suite if it has the name of
        its file. A test that is known under both names keeps two histories.
        """
        known = self.db.execute("SELECT file FROM test UNION SELECT suite FROM test").fetchall()
        for old in files.keys() & {row[0] for row in known}:
            for column in ("suite", "file"):
                self.db.execute(
                    f"UPDATE OR IGNORE test SET {column} = ? WHERE {column} = ?", (files[old], old)
                )

    def finish(self, run: int, job: int, complete: bool, exit: int, finished: str) -> None:
        """Close a job: plans that have a result are deleted, and the rows are sorted on disk, which
        takes a quarter less space.
        """
        heard = "" if complete else f" AND EXISTS ({RAN.format('plan', 'plan')})"
        self.db.execute(f"DELETE FROM plan WHERE run = ? AND job = ?{heard}", (run, job))
        self.db.execute(
            "UPDATE job SET complete = ?, exit = ? WHERE job = ?", (complete, exit, job)
        )
        self.db.execute(
            "UPDATE run SET finished = max(coalesce(finished, ''), ?) WHERE run = ?",
            (finished, run),
        )
        self.db.commit()
        if self.path.stat().st_size < ROOM:
            with suppress(sqlite3.OperationalError):  # another process is reading
                self.db.execute("VACUUM")

    def forget(self, run: int, job: int) -> None:
        """Delete a job without results, and its run if it has no other job."""
        self.db.execute("DELETE FROM job WHERE job = ?", (job,))
        self.db.execute(
            "DELETE FROM run WHERE run = ?1 AND NOT EXISTS (SELECT 1 FROM job WHERE run = ?1)",
            (run,),
        )
        self.db.commit()

    def detail(self, kind: str, message: str, text: str) -> int:
        kind, message, text = map(_utf8, (kind, message, text))
        digest = hashlib.sha256(f"{kind}\0{message}\0{text}".encode()).hexdigest()[:32]
        if (digest,) not in self._all("detail"):
            blob = zlib.compress(text.encode(), 6)
            self._learn("detail", {(digest,): (kind, message, blob)})
        return self._all("detail")[digest,]

    def environment(self, facts: str) -> int:
        self._learn("environment", {(facts,): ()})
        return self._all("environment")[facts,]

    def _learn_tests(self, tests: list[tuple]) -> None:
        files = {test[:3]: test[3:] for test in tests}
        if self._unfiled is None:
            rows = self.db.execute("SELECT test FROM test WHERE file = ''")
            self._unfiled = {row[0] for row in rows}
        self._learn("test", files)
        if not self._unfiled and "" not in {file for (file,) in files.values()}:
            return
        numbers = self._all("test")
        for test, (file,) in files.items():
            if not file:
                self._unfiled.add(numbers[test])
            elif numbers[test] in self._unfiled:  # known from a table, which has no file names
                self.db.execute("UPDATE test SET file = ? WHERE test = ?", (file, numbers[test]))
                self._unfiled.discard(numbers[test])

    def _learn(self, table: str, rows: dict[tuple, tuple]) -> None:
        """Give a number to every key that has none; `rows` maps keys to the other columns."""
        known = self._all(table)
        new = [(*key, *rest) for key, rest in rows.items() if key not in known]
        if new:
            key, rest = NUMBERED[table]
            columns = (*key, *rest)
            self.db.executemany(  # unless another process has inserted it by now
                f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) "
                f"VALUES ({', '.join('?' * len(columns))})",
                new,
            )
            self._read_numbers(table)

    def _all(self, table: str) -> dict[tuple, int]:
        """The number of every key of a table."""
        known = self._known.get(table)
        if known is None:
            known = self._known[table] = {}
            self._read_numbers(table)
        return known

    def _read_numbers(self, table: str) -> None:
        """Read the rows that were added since the last read."""
        known = self._known[table]
        last = next(reversed(known.values()), 0)
        cursor = self.db.cursor()
        cursor.row_factory = None
        columns = ", ".join((*NUMBERED[table][0], table))
        rows = cursor.execute(
            f"SELECT {columns} FROM {table} WHERE {table} > ? ORDER BY {table}", (last,)
        )
        known.update((row[:-1], row[-1]) for row in rows)

    # Reading

    def runs(self) -> list[sqlite3.Row]:
        """Every run, the oldest first; one without a date is older than all."""
        return self.db.execute(
            "SELECT * FROM run ORDER BY coalesce(started, ''), run, key"
        ).fetchall()

    def find(self, which: str | int) -> sqlite3.Row:
        """A run by number, key, `latest` or `previous`."""
        runs = self.runs()
        for row in runs:
            if str(row["run"]) == str(which) or row["key"] == which:
                return row
        places = {"latest": -1, "previous": -2}
        if which in places and len(runs) >= -places[str(which)]:
            return runs[places[str(which)]]
        if which in places:
            raise LookupError(f"scoreboard: there is no {which} run yet; runs: {len(runs)}")
        listed = ", ".join(str(row["run"]) for row in runs) or "none"
        raise LookupError(
            f"scoreboard: needed a run, latest or previous; got {which}; runs: {listed}"
        )

    def jobs(self, run: int) -> list[sqlite3.Row]:
        return self.db.execute(
            "SELECT job.*, environment.facts FROM job LEFT JOIN environment USING (environment) "
            "WHERE run = ? ORDER BY job.key",
            (run,),
        ).fetchall()

    def results(self, run: int) -> list[sqlite3.Row]:
        """Every result of a run; for a test that nothing ran, that a sample left it out."""
        return self.db.execute(
            "SELECT result.*, coalesce(attempts, 1) AS attempts,"
            " test.suite, test.name, test.variant, test.file, cell.mode, cell.node,"
            " backend.name AS backend, job.key AS job_key, job.url, detail.kind, detail.message"
            " FROM result JOIN cell USING (cell) JOIN test USING (test)"
            " JOIN backend ON backend.backend = cell.backend JOIN job ON job.job = result.job"
            " LEFT JOIN detail ON detail.detail = result.detail"
            " LEFT JOIN retry ON retry.run = result.run AND retry.cell = result.cell"
            f" WHERE result.run = ? AND (state != {NOT_SAMPLED}"
            f" OR NOT EXISTS ({RAN.format('result', 'cell')})) ORDER BY test.test, result.cell",
            (run,),
        ).fetchall()

    def planned(self, run: int) -> list[sqlite3.Row]:
        return self.db.execute(
            "SELECT test.suite, test.name, test.variant, test.file, backend.name AS backend,"
            " plan.node FROM plan JOIN test USING (test) JOIN backend USING (backend)"
            f" WHERE run = ? AND NOT EXISTS ({RAN.format('plan', 'plan')}) ORDER BY test.test",
            (run,),
        ).fetchall()

    def explain(self, detail: int) -> tuple[str, str, str]:
        """The contents of a detail: its kind, its message, its text."""
        row = self.db.execute(
            "SELECT kind, message FROM detail WHERE detail = ?", (detail,)
        ).fetchone()
        return row["kind"], row["message"], self.text(detail)

    def text(self, detail: int) -> str:
        row = self.db.execute("SELECT text FROM detail WHERE detail = ?", (detail,)).fetchone()
        return zlib.decompress(row[0]).decode()

    def history(self, suite: str, name: str) -> list[sqlite3.Row]:
        """Every result of a test, the newest last."""
        return self.db.execute(
            "SELECT result.*, run.sha, run.dirty, run.started, run.kind AS run_kind, cell.mode,"
            " test.variant, backend.name AS backend, job.environment, detail.message"
            " FROM result JOIN cell USING (cell) JOIN test USING (test)"
            " JOIN backend ON backend.backend = cell.backend JOIN run ON run.run = result.run"
            " JOIN job ON job.job = result.job LEFT JOIN detail ON detail.detail = result.detail"
            " WHERE test.suite = ? AND test.name = ?"
            " ORDER BY coalesce(run.started, ''), result.run, test.test, cell.cell",
            (suite, name),
        ).fetchall()


def _utf8(value: Any) -> Any:
    """Text that can be encoded: half a surrogate pair is escaped.

    >>> _utf8("a\\ud800")
    'a\\\\ud800'
    """
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return value


def _written(rows: Iterable[Any]) -> list[Any]:
    """Rows whose texts can be encoded."""
    rows = list(rows)
    try:
        "".join([x for row in rows for x in row if type(x) is str]).encode()
    except UnicodeEncodeError:
        return [type(row)(*map(_utf8, row)) for row in rows]
    return rows


def _milli(ulps: float | None) -> int | None:
    return None if ulps is None else round(min(ulps * 1000, COUNT_LIMIT))


def _order(row: tuple) -> tuple:
    """The rank of a state and its other values, without numbers that are internal to a file."""
    return (BY_CODE[row[3]].rank, *(-1 if x is None else x for x in row[4:9]))
