"""Runs from elsewhere: a project's seed tables as run 0, tables in their form, JUnit files."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from . import markdown, states
from .config import Config
from .store import Planned, Result, Store

SEEDS = "seeds"


def seed_texts(folder: Path) -> dict[str, str]:
    """The seed tables as they are, by the title of their suite."""
    suites = _index(folder)["suites"]
    return {title: (folder / name).read_text("utf-8") for title, name in suites.items()}


def seeds(store: Store, folder: Path) -> int:
    """Record the tables of a folder as run 0; doing so again changes nothing. Its `index.toml` has
    a `note`, the file of each suite (`suites`), and tables `hollow`: greens known to be hollow.
    """
    index = _index(folder)
    run = store.begin(SEEDS, "seeds", 0, note=index.get("note"))
    for title, text in seed_texts(folder).items():
        markdown.keep(store, run, title, markdown.read(text))
    for known in index.get("hollow", ()):
        store.db.executemany(
            "INSERT OR REPLACE INTO remark VALUES (?, ?, ?, ?, 'hollow', ?)",
            [(known["suite"], t, known["backend"], run, known["reason"]) for t in known["tests"]],
        )
    store.db.commit()
    return run


def _index(folder: Path) -> dict[str, Any]:
    path = folder / "index.toml"
    try:
        index = tomllib.loads(path.read_text("utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"import seeds: needed an index in {path}: {error}") from error
    if not isinstance(index.get("suites"), dict):
        raise ValueError(f"import seeds: needed a table [suites] of titles and files in {path}")
    return index


def tables(store: Store, paths: Sequence[Path]) -> int:
    """Tables like the seeds, one file per suite, as one run."""
    texts = _texts(paths)
    run = store.begin(_key(texts), "import", note=", ".join(path.name for path in paths))
    for path, text in zip(paths, texts):
        with _naming(path):
            markdown.keep(store, run, path.stem, markdown.read(text))
    store.db.commit()
    return run


def junit(store: Store, paths: Sequence[Path], settings: Config, backends: Sequence[str]) -> int:
    """JUnit files as one run. The backend is searched among `backends` between the brackets of a
    test's name; JUnit has no hollow or unexpected passes.
    """
    try:
        from junitparser import Error, Failure, JUnitXml, Skipped
    except ImportError as error:
        raise ImportError("import: needed junitparser; pip install junitparser") from error
    kinds = ((Skipped, states.SKIPPED), (Error, states.ERROR), (Failure, states.FAILED))
    texts = _texts(paths)
    parsed: list[tuple[Path, list]] = []
    for path, text in zip(paths, texts):
        with _naming(path):
            found = JUnitXml.fromstring(text.encode())
            parsed.append((path, list(found) if isinstance(found, JUnitXml) else [found]))
    dates = [date for _, suites in parsed for suite in suites if (date := _date(suite.timestamp))]
    run = store.begin(
        _key(texts), "import", note=", ".join(path.name for path in paths),
        started=min(dates, default=None), finished=max(dates, default=None),
    )  # fmt: skip
    for path, suites in parsed:
        job = store.job(run, path.name, complete=1)
        for suite in suites:
            for case in suite:
                state, detail = states.PASSED, None
                for outcome in case.result:
                    state = next((code for kind, code in kinds if isinstance(outcome, kind)), state)
                    if outcome.type == "pytest.xfail":
                        state = states.XFAILED
                    detail = (outcome.type or "", outcome.message or "", outcome.text or "")
                who = _who(case.name or "", case.classname or "", settings, backends)
                with _naming(path):
                    result = Result(*who[:5], "", who.node, state, 1, case.time, detail=detail)
                store.add(run, job, [result])
    store.db.commit()
    return run


def _who(name: str, place: str, settings: Config, backends: Sequence[str]) -> Planned:
    test, _, rest = name.partition("[")
    node = rest.removesuffix("]")
    words = node.split("-")
    backend = next((b for b in backends if b in words), "")
    variant = "-".join(w for i, w in enumerate(words) if w != backend or i != words.index(backend))
    file = place.replace(".", "/") + ".py"
    return Planned(
        settings.suites.get(file, place), test, variant if backend else node, file, backend, node
    )


def _texts(paths: Sequence[Path]) -> list[str]:
    texts = []
    for path in paths:
        with _naming(path):
            texts.append(path.read_text("utf-8"))
    return texts


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Adds the name of a file to its errors."""
    try:
        yield
    except Exception as error:  # junitparser and the XML readers have their own exceptions
        if isinstance(error, ImportError):
            raise
        raise ValueError(f"import: {path}: {str(error).removeprefix('import: ')}") from error


def _date(text: str | None) -> str | None:
    """The date of a JUnit suite, in UTC; a date without a time zone is kept.

    >>> _date("2026-11-15T12:00:00.5+02:00")
    '2026-11-15T10:00:00Z'
    """
    try:
        date = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    date = date.astimezone(UTC) if date.tzinfo else date
    return date.strftime("%Y-%m-%dT%H:%M:%SZ")


def _key(texts: list[str]) -> str:
    return "import-" + hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
