"""Merge shards into one file: the result does not depend on their order or on repetition."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .store import COUNT_LIMIT, Planned, Result, Store


def merge(out: str | Path, shards: Sequence[str | Path], join: str | None = None) -> int:
    """Put every run of `shards` into `out`; return the number of runs in it. With `join`, a run of
    `out`, their results become part of that run, as those of another machine or device are.
    """
    with Store(out) as into:
        mine = None if join is None else into.find(join)["run"]
        for path in shards:
            with Store(path, write=False) as shard:
                for run in shard.runs():
                    _copy(into, shard, run, _begun(into, run) if mine is None else mine)
        return len(into.runs())


def _begun(into: Store, run) -> int:
    """The run with the same key, created if it does not exist."""
    facts = {k: run[k] for k in ("sha", "branch", "dirty", "started", "note")}
    mine = into.begin(run["key"], run["kind"], 0 if run["run"] == 0 else None, **facts)
    # A run began with its first shard and ended with its last; where shards disagree, the order in
    # which they arrive must not decide.
    latest = ", ".join(
        f"{name} = nullif(max(coalesce({name}, ''), coalesce(:{name}, '')), '')"
        for name in ("finished", "sha", "branch")
    )
    into.db.execute(
        f"UPDATE run SET started = min(coalesce(started, :started), coalesce(:started, started)),"
        f" {latest}, dirty = max(dirty, :dirty), note = max(note, :note), kind = max(kind, :kind)"
        " WHERE run = :mine",
        {**dict(run), "mine": mine},
    )
    return mine


def _copy(into: Store, shard: Store, run, mine: int) -> None:
    jobs = {}
    for job in shard.jobs(run["run"]):
        jobs[job["job"]] = into.job(mine, job["key"])
        if job["facts"]:
            number = into.environment(job["facts"])
            into.db.execute(
                "UPDATE job SET environment = ? WHERE job = ? AND coalesce((SELECT facts FROM"
                " environment WHERE environment.environment = job.environment), '') < ?",
                (number, jobs[job["job"]], job["facts"]),
            )
        larger = ", ".join(  # of two known values
            f"{name} = coalesce(max({name}, :{name}), {name}, :{name})"
            for name in ("url", "exit", "planned", "complete")
        )
        into.db.execute(
            f"UPDATE job SET {larger} WHERE job = :mine", {**dict(job), "mine": jobs[job["job"]]}
        )
    for row in shard.results(run["run"]):
        detail = None
        if row["detail"] is not None:
            detail = shard.explain(row["detail"])
        into.add(mine, jobs[row["job"]], [Result(
            row["suite"], row["name"], row["variant"], row["file"], row["backend"], row["mode"],
            row["node"], row["state"], row["attempts"],
            None if row["duration"] is None else row["duration"] / 1e4, row["asserts"],
            ulps(row["value_error"]), ulps(row["gradient_error"]), detail,
        )])  # fmt: skip
    for table in ("layout", "remark", "broken"):
        rows = shard.db.execute(f"SELECT * FROM {table} WHERE run = ?", (run["run"],)).fetchall()
        for row in rows:
            values = dict(row) | {"run": mine}
            if table == "broken":
                values["detail"] = into.detail(*shard.explain(row["detail"]))
                into.db.execute(
                    "UPDATE broken SET detail = ?1 WHERE run = ?2 AND file = ?3 AND (SELECT digest"
                    " FROM detail WHERE detail = broken.detail) < (SELECT digest FROM detail"
                    " WHERE detail = ?1)",
                    (values["detail"], mine, row["file"]),
                )
            into.db.execute(
                f"INSERT OR IGNORE INTO {table} ({', '.join(values)}) "
                f"VALUES ({', '.join('?' * len(values))})",
                tuple(values.values()),
            )
    unheard = shard.db.execute(
        "SELECT job, suite, test.name, variant, file, backend.name AS backend, node FROM plan"
        " JOIN test USING (test) JOIN backend USING (backend) WHERE run = ?",
        (run["run"],),
    )
    for row in unheard.fetchall():
        into.plan(mine, jobs[row["job"]], [Planned(*tuple(row)[1:])])
    into.db.commit()


def ulps(milli: int | None) -> float | None:
    if milli is None:
        return None
    return float("inf") if milli >= COUNT_LIMIT else milli / 1000
