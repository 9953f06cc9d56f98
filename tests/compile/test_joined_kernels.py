"""Kernels of torch's compiler in common files: the same bits, fewer compilations."""

import json
import os
import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest
from frameworks import ours, torch

import isomorph as iso
from oracles import numpy_of

KINDS = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "bool")
SHAPES = ((19, 64), (33, 129), (7, 3))


@pytest.fixture
def files():
    return ours("torch.inductor.joined_kernels")


@pytest.fixture
def built(monkeypatch):
    """The files that are compiled, in empty caches."""
    builder, utils = (import_module(f"torch._inductor.{name}") for name in ("cpp_builder", "utils"))
    build, seen = builder.CppBuilder.build, []

    def counted(self):
        seen.append(self.get_target_file_path())
        build(self)

    monkeypatch.setattr(builder.CppBuilder, "build", counted)
    with utils.fresh_cache():
        yield seen


def many(xp, arrays):
    """A program of many kernels: a result for each array, none of which can share a loop."""
    found = []
    for x in arrays:
        y = xp.sort(x, axis=0)  # a kernel of torch's own, so that loops before and after it differ
        found.append(xp.where(y == x, y, x + y))
        found.append(xp.flip(xp.sort(found[-1], axis=1), axis=0))
    return found


def inputs():
    """Integers, whose products are exact in every kind of number."""
    draw = np.random.default_rng(3)
    for kind in KINDS:
        for shape in SHAPES:
            numbers = torch.from_numpy(draw.integers(0, 12, shape))
            yield numbers.to(getattr(torch, kind))


@pytest.mark.takes("torch compiles C++ twice, once with a file for each kernel")
@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_the_same_bits_from_fewer_files(backend, xp, built, files, monkeypatch):
    arrays = [x for x in inputs() if x.dtype is not torch.bool][::2]
    program = lambda *arrays: many(xp, arrays)
    wanted = program(*arrays)
    found = iso.jit(program)(*arrays)
    assert len(arrays) == 11
    kernels = [path for path in built if path.endswith(".main.so")]
    threads = ours("torch.private").get_compile_threads()
    assert 1 <= len(kernels) <= max(threads, 3)
    for got, sure in zip(found, wanted, strict=True):
        assert got.dtype is sure.dtype
        assert torch.equal(got, sure)
    monkeypatch.setattr(files, "PLAIN", files.re.compile("none is of this form"))
    before = len(kernels)
    apart = iso.jit(lambda *arrays: many(xp, arrays))(*arrays[:4])
    assert len([path for path in built if path.endswith(".main.so")]) - before >= 4
    assert all(map(torch.equal, apart, wanted))


@pytest.mark.parametrize("backend", ["torch"], indirect=True)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_number(backend, xp, kind):
    arrays = [x for x in inputs() if x.dtype is getattr(torch, kind)]
    program = lambda *arrays: [xp.sort(~x if kind == "bool" else x * x - x, axis=1) for x in arrays]
    for got, sure in zip(iso.jit(program)(*arrays), program(*arrays), strict=True):
        np.testing.assert_array_equal(numpy_of(got.double()), numpy_of(sure.double()))


@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_files_hold_each_kernel_once(backend, files, monkeypatch):
    threads = ours("torch.private")
    kernels = {
        f"k{i}": files.Kernel("<a>" if i % 5 else "<b>", "x" * (7 * i % 31), ()) for i in range(60)
    }
    for n in (1, 2, 16):
        monkeypatch.setattr(threads, "get_compile_threads", lambda n=n: n)
        found = files.files(kernels)
        assert sorted(name for names in found for name in names) == sorted(kernels)
        assert all(len({kernels[name].header for name in names}) == 1 for names in found)
        assert max(map(len, found)) <= files.MOST
        lengths = [sum(len(kernels[name].code) for name in names) for names in found]
        alike = [n for n, names in zip(lengths, found) if kernels[names[0]].header == "<a>"]
        assert max(alike) - min(alike) <= 31  # the longest kernel
        assert len(found) == {1: 3, 2: 4, 16: 28}[n]
    assert files.files({}) == []


@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_a_kernel_of_another_form_is_compiled_by_itself(backend, files):
    """One with a helper or a header of its own is not moved into a namespace."""
    owner = import_module("torch._inductor.async_compile").AsyncCompile
    before = vars(owner)["cpp_pybinding"], vars(owner)["wait"]
    header = "#include <torch/csrc/inductor/cpp_prefix.h>\n"
    plain = header + 'extern "C"  void  kernel(float* out)\n{\n}\n'
    others = [
        plain.replace("\nextern", "\n#include <ATen/record_function.h>\nextern"),
        plain + 'extern "C" void other() {}\n',
        plain.replace(header, '#include "other.h"\n'),
        plain.replace('extern "C"', ""),
    ]
    alone = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, "cpp_pybinding", lambda self, types, code: alone.append(code))
        with files.joined_kernels():
            compile_ = vars(owner)["cpp_pybinding"]
            assert [compile_(None, ["float*"], code) for code in others] == [None] * 4
            kernel = compile_(None, ["float*"], "\n" + plain)
    assert alone == others
    assert kernel == files.Kernel(header.strip(), "  void  kernel(float* out)\n{\n}\n", ["float*"])
    assert (vars(owner)["cpp_pybinding"], vars(owner)["wait"]) == before


@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_an_error_of_the_compiler_reaches_the_caller(backend, xp, built, files, monkeypatch):
    part = files.Kernel.part
    monkeypatch.setattr(files.Kernel, "part", lambda self, entry: "#error no\n" + part(self, entry))
    with pytest.raises(Exception, match="error no"):
        iso.jit(lambda x: xp.tanh(x) * 2 + 1)(torch.ones(5, 3))
    monkeypatch.undo()
    assert float(iso.jit(lambda x: xp.sum(x * 2))(torch.ones(5, 3))) == 30


ALONE = """
import json, sys
import torch
import isomorph as iso
iso.cache(sys.argv[1])
from torch._inductor import cpp_builder
build, seen = cpp_builder.CppBuilder.build, []
path = cpp_builder.CppBuilder.get_target_file_path
cpp_builder.CppBuilder.build = lambda self: (seen.append(path(self)), build(self))[1]
x = torch.arange(35.0).reshape(7, 5)
found = iso.jit(lambda x: [torch.sort(torch.sin(x * n), 0)[0] + n for n in range(6)])(x)
sure = [torch.sort(torch.sin(x * n), 0)[0] + n for n in range(6)]
libraries = sum(name.endswith(".so") for name in seen)
print(json.dumps([libraries, max(float((a - b).abs().max()) for a, b in zip(found, sure))]))
"""


@pytest.mark.takes("it starts two processes")
@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_with_one_thread_and_found_by_the_next_process(backend, tmp_path):
    """With one compiling thread torch compiles when a kernel is asked for."""
    env = {k: v for k, v in os.environ.items() if "CACHE" not in k}
    found = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", ALONE, str(tmp_path / "programs")], capture_output=True,
            text=True, timeout=200, env=env | {"TORCHINDUCTOR_COMPILE_THREADS": "1"},
        )  # fmt: skip
        assert not done.returncode, done.stderr[-2000:]
        found.append(json.loads(done.stdout))
    assert all(error < 1e-6 for _, error in found)
    assert found[0][0] >= 1
    assert found[1][0] == 0


@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_instructions_are_tried_until_some_work(backend):
    asked = []
    check = lambda self, code: asked.append((self, code)) or self != "widest"
    tried = ours("torch.inductor.program_files").first_that_works(check)
    assert [tried(isa, "add") for isa in ("widest", "wide", "narrow")] == [False, True, True]
    assert tried("wide", "add in bfloat16")
    assert asked == [("widest", "add"), ("wide", "add"), ("wide", "add in bfloat16")]
