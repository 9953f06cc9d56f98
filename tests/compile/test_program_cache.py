"""`iso.cache`: another process finds compiled programs in a folder, and never those of another
function, of other captured arrays or of other host functions.
"""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from frameworks import ours, torch

import isomorph as iso
from isomorph.compile.processor import processor
from isomorph.compile.program_cache import Times

# Every run is a process of its own, as the frameworks read where programs are when they first
# compile. It prints what it computed; the shift makes the programs of two runs differ only in a
# captured array, in a host function, or in a number.
PROGRAM = """
import json, sys
import numpy as np
import isomorph as iso

backend, folder, shift = sys.argv[1], sys.argv[2], int(sys.argv[3])
print(iso.cache(folder))
x, captured = iso.convert((np.arange(3.0, dtype=np.float32), np.float32([shift])), backend)
xp = iso.namespace(x)
wide = lambda x: np.full((shift, 3), shift, np.float32)
host = iso.host_function(wide, like=wide)
found = {
    "captured": iso.jit(lambda x: xp.sin(x) + captured)(x),
    "number": iso.jit(lambda x: xp.cos(x) * shift)(x),
    "gradient": iso.jit(iso.grad(lambda x: xp.sum(xp.exp(x) * captured)))(x),
}
if backend != "tensorflow":  # its compiler has no calls to the host
    found["host"] = iso.jit(lambda x: xp.sum(host(x)) + x)(x)
print(json.dumps({k: iso.to_numpy(y).tolist() for k, y in found.items()}))
"""
X = np.arange(3.0)


def run(backend, folder, shift):
    """What a process computed with programs of this folder, and its subfolder."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, backend, str(folder), str(shift)],
        env={k: v for k, v in os.environ.items() if "CACHE" not in k},
        capture_output=True, text=True, timeout=400,
    )  # fmt: skip
    assert not done.returncode, done.stderr[-2000:]
    place, values = done.stdout.splitlines()[-2:]
    return json.loads(values), Path(place)


def files(place):
    """The files of compiled programs, with the time when they were written."""
    return {p: p.stat().st_mtime_ns for p in place.rglob("*") if p.is_file() and is_program(p)}


def is_program(path):
    return path.suffix in (".so", ".pb") or path.name.endswith("-cache")


@pytest.mark.takes("it starts another process")
@pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)
def test_another_process_finds_programs_and_never_wrong_ones(backend, tmp_path):
    written = []
    for shift in (2, 2, 3):
        found, place = run(backend, tmp_path / "programs", shift)
        wanted = {
            "captured": np.sin(X) + shift,
            "number": np.cos(X) * shift,
            "gradient": np.exp(X) * shift,
            "host": 3 * shift * shift + X,
        }
        for name, values in found.items():
            np.testing.assert_allclose(values, wanted[name], rtol=1e-6, err_msg=name)
        written.append(files(place))
    assert processor() in str(place)
    assert place.is_relative_to(tmp_path)
    if os.name == "posix":
        assert (tmp_path / "programs").stat().st_mode & 0o077 == 0
    first, second, third = written
    assert first  # programs were kept
    new = set(second) - set(first)
    assert not new or (
        backend == "torch" and len(new) <= 1
    )  # one with a host function is not shared
    assert set(third) > set(second)  # a number is part of a program
    assert all(second[p] == first[p] for p in first)


def test_a_folder_that_others_can_write_is_warned_of(tmp_path, monkeypatch):
    monkeypatch.setattr("isomorph.core.dispatch.ON_LOAD", {})
    monkeypatch.setattr("isomorph.core.dispatch.LOADED", {})
    monkeypatch.setattr("isomorph.compile.slow_compilation.TIMES", {})
    tmp_path.chmod(0o777)
    with pytest.warns(UserWarning, match="others can write in .* run as code"):
        place = iso.cache(tmp_path)
    assert place.is_relative_to(tmp_path)


def test_times_are_read_by_the_next_process(tmp_path):
    Times(tmp_path / "times.json")["loss for torch"] = 12.345
    assert Times(tmp_path / "times.json") == {"loss for torch": 12.345}
    (tmp_path / "times.json").write_text("{half")
    assert Times(tmp_path / "times.json") == {}


@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_what_a_processor_can_load_is_asked_once(backend, tmp_path):
    """Torch would start another Python for each set of instructions, in every process."""
    asked = []
    probe = lambda self, path: asked.append(path) or "good" in path
    paths = [str(tmp_path / part) for part in ("good.so", "bad.so")]
    for _ in range(3):
        loads = ours("torch.inductor.program_files").asked_once(probe)
        assert [loads(None, path) for path in paths] == [True, False]
    assert asked == [*paths, paths[1], paths[1]]  # what failed is tried again
    assert [p.name for p in tmp_path.iterdir()] == [f"good.so.{processor()}.loads"]


@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_no_half_library_stays_in_the_folder(backend, tmp_path, monkeypatch):
    """A library that was not written to its end would end every process that loads it."""
    builder = import_module("torch._inductor.cpp_builder")

    def compiled(command, cwd):
        path = Path(command.partition("-o ")[2].split()[0])
        path.write_text("half")
        if ended:
            raise KeyboardInterrupt
        path.write_text("whole")

    monkeypatch.setattr(builder, "run_compile_cmd", compiled)
    made = builder.CppBuilder("some", [str(tmp_path / "some.cpp")], output_dir=str(tmp_path),
                              BuildOption=builder.CppOptions())  # fmt: skip
    path, command = Path(made.get_target_file_path()), made.get_command_line()
    with ours("torch.inductor.program_files").kept():
        ended = True
        with pytest.raises(KeyboardInterrupt):
            made.build()
        assert not [p for p in tmp_path.iterdir() if p.is_file()]
        ended = False
        made.build()
    assert [p for p in tmp_path.iterdir() if p.is_file()] == [path]
    assert path.read_text() == "whole"
    assert made.get_command_line() == command


@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_compiled_programs_are_written_like_this(backend, monkeypatch):
    """`iso.jit` compiles inside of `kept`."""
    files, inside = ours("torch.inductor.program_files"), []
    kept, compile_ = files.kept, ours("torch.private").inductor_compile

    @contextmanager
    def entered():
        with kept():
            inside.append("entered")
            yield
            inside.append("left")

    def compiling(*args):
        inside.append("compiled")
        return compile_(*args)

    monkeypatch.setattr(files, "kept", entered)
    monkeypatch.setattr(ours("torch.private"), "inductor_compile", compiling)
    assert float(iso.jit(lambda x: x * 3)(torch.tensor(2.0))) == 6.0
    assert inside == ["entered", "compiled", "left"]
