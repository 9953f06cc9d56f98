"""The device axis of the suite: `pytest --device NAME` (`devices.py`, `conftest.py`)."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import conftest
import devices
import pytest
from frameworks import torch

HERE = Path(__file__).parent


def call(counts, monkeypatch):
    """Run the hook around a test between whose begin and end the device counted these numbers."""
    monkeypatch.setattr(devices, "allocations", lambda backend, device: counts.pop(0))
    config = SimpleNamespace(getoption=lambda name: "cuda")
    hook = conftest.pytest_runtest_call(SimpleNamespace(config=config, nodeid="test_it[torch]"))
    next(hook)
    with pytest.raises(StopIteration):
        hook.send(None)


def test_a_test_that_makes_no_array_on_the_device_fails(monkeypatch):
    call([3, 4], monkeypatch)
    call([None, None], monkeypatch)  # a device that does not count
    with pytest.raises(pytest.fail.Exception, match="no array was made on cuda"):
        call([3, 3], monkeypatch)


@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_arrays_are_made_there_with_full_precision(backend, monkeypatch):
    """The device "meta" stands for an accelerator."""
    only = lambda backend, name: torch.device(name) if backend == "torch" else None
    monkeypatch.setattr(devices, "device_of", only)
    before = torch.backends.cudnn.allow_tf32
    with devices.made_on("torch", "meta"):
        assert torch.ones(1).device.type == "meta"
        assert not torch.backends.cudnn.allow_tf32
        assert not torch.backends.cuda.matmul.allow_tf32
    assert torch.ones(1).device.type == "cpu"
    assert torch.backends.cudnn.allow_tf32 == before


def test_every_reason_names_tests_that_are_there():
    for name in (*devices.HOST_ONLY, *devices.UNCOUNTED):
        file, _, test = name.partition("[")[0].partition("::")
        assert f"def {test}" in (HERE / file).read_text() if test else (HERE / file).is_file(), name


@pytest.mark.takes("it starts pytest")
def test_an_unknown_device_is_refused():
    run = [sys.executable, "-m", "pytest", "--device", "nowhere", str(HERE / "test_devices.py")]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120, cwd=HERE.parent)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--device: needed a device of" in done.stderr
    assert "got 'nowhere'" in done.stderr
