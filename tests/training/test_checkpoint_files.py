"""A checkpoint file is always complete, either the old or the new one. Damaged files
are refused.
"""

import errno
import json
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import isomorph as iso

# A process with only NumPy forks children that save, kills them at random moments, and prints what
# it finds.
KILLS = """
import json, os, random, signal, sys, time
import numpy as np
import isomorph as iso

path, kills = sys.argv[1], int(sys.argv[2])
rng = random.Random(3)
found = {"kills": 0, "partial": 0, "last": 0, "broken": [], "versions": 0}


def nest(n):
    x = np.full(200_000, n, np.float64)
    return {"x": x, "twice": 2 * x, "n": n, "sum": np.asarray(x.sum())}


def save_for_ever(n):
    while True:
        n += 1
        iso.save(path, nest(n))


iso.save(path, nest(0))
for _ in range(kills):
    child = os.fork()
    if not child:
        try:
            save_for_ever(found["last"])
        finally:
            os._exit(1)
    time.sleep(rng.uniform(0.0, 0.03))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    found["kills"] += os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    found["partial"] += len(os.listdir(os.path.dirname(path))) > 1
    got = iso.load(path)
    n = got["n"]
    whole = (got["x"] == n).all() and (got["twice"] == 2 * n).all() and got["sum"] == 200_000 * n
    if not whole or n < found["last"]:
        found["broken"].append(n)
    found["versions"] += n > found["last"]
    found["last"] = n
iso.save(path, nest(found["last"]))
found["left"] = os.listdir(os.path.dirname(path))
print(json.dumps(found))
"""


def kill_while_saving(folder, kills):
    run = subprocess.run(
        [sys.executable, "-c", KILLS, str(folder / "model"), str(kills)],
        capture_output=True, text=True, timeout=280,
        env={**os.environ, "PYTHONPATH": str(Path(iso.__file__).parents[1])},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert found["kills"] == kills
    assert found["broken"] == []
    assert found["partial"] >= kills // 20  # enough kills fell into a save
    assert found["versions"] >= 5
    assert found["left"] == ["model"]  # the next save removes leftovers


@pytest.mark.takes("a process is killed again and again")
@pytest.mark.parametrize("backend", ["numpy"], indirect=True)  # the file format is the same for all
def test_killed_at_any_moment_it_is_the_old_or_the_new_one(backend, tmp_path):
    kill_while_saving(tmp_path, 200)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
def test_killed_a_thousand_times_it_is_the_old_or_the_new_one(backend, tmp_path):
    kill_while_saving(tmp_path, 1000)


def small(path, xp=np):
    iso.save(path, {"w": xp.asarray([1.0, 2.0, 3.0]), "k": {7: xp.asarray([4])}}, epoch=3)
    return Path(path).read_bytes()


def test_every_flipped_bit_is_seen(backend, xp, tmp_path):
    path = tmp_path / "a"
    raw = small(path, xp)
    rng = np.random.default_rng(1)
    positions = [(i, 1 << int(rng.integers(8))) for i in range(len(raw))]
    positions += [(i, 1 << k) for i in range(8) for k in range(8)]
    for i, bit in positions:
        path.write_bytes(raw[:i] + bytes([raw[i] ^ bit]) + raw[i + 1 :])
        with pytest.raises(iso.CheckpointError, match="load: "):
            iso.load(path)
    path.write_bytes(raw)
    assert iso.load(path)[1] == {"epoch": 3}


def test_every_cut_and_every_addition_is_seen(backend, xp, tmp_path):
    path = tmp_path / "a"
    raw = small(path, xp)
    for n in range(len(raw)):
        path.write_bytes(raw[:n])
        with pytest.raises(iso.CheckpointError, match="load: .*a"):
            iso.load(path)
    for more in (b"\0", raw):
        path.write_bytes(raw + more)
        with pytest.raises(iso.CheckpointError, match="cut short, or longer"):
            iso.load(path)


def test_a_flipped_byte_in_a_large_tensor_is_named(backend, xp, tmp_path):
    path = tmp_path / "a"
    values = np.random.default_rng(0).standard_normal(300_001)
    iso.save(path, {"small": xp.ones(3), "large": xp.asarray(values)})
    size = path.stat().st_size
    for back in (1, 7, 65_536, 1_000_003, 2_000_000):
        raw = bytearray(path.read_bytes())
        raw[size - back - 12] ^= 1  # both tensors are near the end
        (tmp_path / "b").write_bytes(raw)
        with pytest.raises(iso.CheckpointError, match="(large|small) in .*b is damaged"):
            iso.load(tmp_path / "b")


def head(entries, size=0):
    raw = json.dumps(entries).encode()
    return len(raw).to_bytes(8, "little") + raw + bytes(size)


def test_foreign_files_are_refused(backend, tmp_path):
    tensor = lambda **entry: {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **entry}}
    cases = {
        "empty": b"",
        "text": b"hello world, this is a text of some length",
        "pickle": pickle.dumps({"a": np.ones(3)}),
        "zip": b"PK\x03\x04" + bytes(100),
        "no json": (4).to_bytes(8, "little") + b"{{{{",
        "a list": head([1, 2]),
        "a number": head(12),
        "deep": (200_000).to_bytes(8, "little") + b"[" * 200_000,
        "no dtype": head({"a": {"shape": [2], "data_offsets": [0, 8]}}, 8),
        "another dtype": head(tensor(dtype="F9"), 8),
        "another size": head(tensor(shape=[3]), 8),
        "a negative size": head(tensor(shape=[-1, -2]), 8),
        "a fraction": head(tensor(shape=[2.0]), 8),
        "a hole": head(tensor(data_offsets=[8, 16]), 16),
        "an overlap": head({**tensor(), "b": tensor()["a"]}, 8),
        "not ours": head({"__metadata__": {"isomorph": "{}"}, **tensor()}, 8),
    }
    for name, raw in cases.items():
        path = tmp_path / name
        path.write_bytes(raw)
        with pytest.raises(iso.CheckpointError, match="load: "):
            iso.load(path, backend=backend)
    with pytest.raises(FileNotFoundError):
        iso.load(tmp_path / "nothing")


def test_a_newer_format_is_refused_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr("isomorph.training.layout.FORMAT", 2)
    small(tmp_path / "a")
    monkeypatch.undo()
    with pytest.raises(iso.CheckpointError, match="needed format 1, got 2; .*isomorph"):
        iso.load(tmp_path / "a")


def test_a_full_disk_leaves_the_old_file(backend, xp, tmp_path, monkeypatch):
    raw = small(tmp_path / "a", xp)
    write, room = os.write, [300_000]

    def full(file, data):
        if len(data) > room[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        room[0] -= len(data)
        return write(file, data)

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(iso.CheckpointError, match="No space left on device; the old file is"):
        iso.save(tmp_path / "a", xp.zeros(100_000, dtype=xp.float64))
    room[0] = 0
    with pytest.raises(iso.CheckpointError, match="No space left on device; there is no file"):
        iso.save(tmp_path / "b", xp.zeros(1))
    monkeypatch.undo()
    assert (tmp_path / "a").read_bytes() == raw
    assert os.listdir(tmp_path) == ["a"]


LIMITED = """
import resource, sys
import numpy as np
import isomorph as iso
iso.save(sys.argv[1], np.ones(3))
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    iso.save(sys.argv[1], np.zeros(100_000))
except iso.CheckpointError as error:
    print(error)
print(iso.load(sys.argv[1]))
"""


# a real error of the operating system
@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
def test_a_file_the_system_cuts_off_leaves_the_old_one(backend, tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "a")],
        capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHONPATH": str(Path(iso.__file__).parents[1])},
    )  # fmt: skip
    assert "could not be written: File too large; the old file is unchanged" in run.stdout
    assert "[1. 1. 1.]" in run.stdout
    assert os.listdir(tmp_path) == ["a"]


def test_the_disk_has_the_bytes_before_the_name(tmp_path, monkeypatch):
    """For a power cut: write the file to disk, then rename it, then sync the folder."""
    calls, fsync, replace = [], os.fsync, os.replace

    def noted(file):
        calls.append("folder" if os.path.isdir(f"/proc/self/fd/{file}") else "file")
        fsync(file)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(os, "replace", lambda a, b: (calls.append("name"), replace(a, b)))
    small(tmp_path / "a")
    assert calls == ["file", "name", "folder"]


def test_an_interrupt_leaves_nothing_behind(tmp_path, monkeypatch):
    raw = small(tmp_path / "a")

    def interrupted(file):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        iso.save(tmp_path / "a", np.zeros(9))
    monkeypatch.undo()
    assert (tmp_path / "a").read_bytes() == raw
    assert os.listdir(tmp_path) == ["a"]


def test_what_is_left_behind_is_removed_and_nothing_else(tmp_path):
    left = tmp_path / ".a.0123456789abcdef.partial"
    kept = [
        ".a.b.0123456789abcdef.partial",
        ".a.partial",
        "a.partial",
        ".ab.0123456789abcdef.partial",
    ]
    for name in (left.name, *kept):
        (tmp_path / name).write_bytes(b"x")
    small(tmp_path / "a")
    assert sorted(os.listdir(tmp_path)) == sorted(["a", *kept])


def test_threads_save_to_one_name(backend, xp, tmp_path):
    path, errors = tmp_path / "a", []

    def save(n):
        try:
            for _ in range(10):
                iso.save(path, {"x": xp.full((5000,), float(n)), "n": n})
                got = iso.load(path)
                assert (got["x"] == got["n"]).all()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=save, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert os.listdir(tmp_path) == ["a"]


def test_links_and_modes_are_kept(tmp_path):
    (tmp_path / "real").mkdir()
    small(tmp_path / "real" / "a")
    os.chmod(tmp_path / "real" / "a", 0o640)
    (tmp_path / "link").symlink_to(tmp_path / "real" / "a")
    iso.save(tmp_path / "link", epoch=9)
    assert (tmp_path / "link").is_symlink()
    assert iso.load(tmp_path / "real" / "a") == {"epoch": 9}
    assert (tmp_path / "real" / "a").stat().st_mode & 0o777 == 0o640
    with pytest.raises(IsADirectoryError):
        iso.save(tmp_path / "real", epoch=1)
    with pytest.raises(FileNotFoundError):
        iso.save(tmp_path / "no" / "folder", epoch=1)


def test_memory_is_not_held_twice(backend, xp, tmp_path):
    """Loaded tensors own their memory and can be written."""
    iso.save(tmp_path / "a", xp.zeros(4))
    got = iso.load(tmp_path / "a")
    got[0] = 1.0
    assert got.flags.owndata or got.base.flags.owndata
    assert iso.load(tmp_path / "a").tolist() == [0.0] * 4
