"""Files with changed contents and matching checksums: they load what was saved, or raise
CheckpointError.
"""

import json
import os
import random
import resource
import socket
import subprocess
from copy import deepcopy
from zlib import crc32

import numpy as np
import pytest

import isomorph as iso

ONLY = pytest.mark.parametrize("backend", ["numpy"], indirect=True)
SLOW = pytest.mark.slow
OURS, CHECK = "isomorph", "isomorph.checksum"
NEST = {
    "w": np.arange(6.0).reshape(2, 3),
    "mask": np.array([True, False, True]),
    "z": np.array([1 + 2j, 3j]),
    7: [1, 2.5, True, None, "word", 1 - 1j],
    "pair": (np.float32(1.5).reshape(()), {"empty": np.zeros((0, 3), np.int64)}),
}
ODD = [None, True, False, 0, -1, 1, 3, 2**70, 1.5, float("inf"), float("nan"), "", "w", "F8_E4M3"]
ODD += [
    "0x5",
    "nan",
    "0x1p+99999",
    [],
    {},
    [[]],
    [0, 0],
    {"list": 3},
    {"array": "w"},
    "F64",
    10**400,
]


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model"
    iso.save(path, NEST, {"again": np.ones(2)}, step=3, more=[np.zeros(1)])
    return path


def taken_apart(raw):
    """The header as a dict, our part of it, and the memory after it."""
    length = int.from_bytes(raw[:8], "little")
    head = json.loads(raw[8 : 8 + length])
    return head, json.loads(head["__metadata__"].pop(OURS)), raw[8 + length :]


def put_together(head, own, memory, dumps=json.dumps):
    """A file with a matching checksum."""
    head = {"__metadata__": {}, **head}
    if isinstance(head["__metadata__"], dict):
        meta = {CHECK: "0" * 8, OURS: dumps(own)}
        head["__metadata__"] = {**meta, **head["__metadata__"], CHECK: "0" * 8}
    return signed(dumps(head).encode("utf-8", "surrogatepass"), memory)


def signed(head, memory):
    place = head.find(f'"{CHECK}": "'.encode())
    if place >= 0:
        place += len(CHECK) + 5
        blank = head[:place] + b"0" * 8 + head[place + 8 :]
        # `read` expects no space there
        compact = blank.replace(f'"{CHECK}": "'.encode(), f'"{CHECK}":"'.encode(), 1)
        head = compact.replace(b'":"' + b"0" * 8, b'":"' + f"{crc32(compact):08x}".encode(), 1)
    return len(head).to_bytes(8, "little") + head + memory


def spots(tree):
    """Every (container, key) of a tree of dicts and lists."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, x in [*items]:
        yield tree, key
        if isinstance(x, (dict, list)):
            yield from spots(x)


def changed(draw, trees):
    """Make one to three changes somewhere in the trees."""
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        places = [spot for tree in trees for spot in spots(tree)]
        holder, key = draw.choice(places)
        how = draw.choice(["odd", "odd", "remove", "swap", "rename", "nudge", "wrap", "twin"])
        other, its_key = draw.choice(places)
        if how == "remove":
            del holder[key]
        elif how == "swap":
            holder[key] = json.loads(json.dumps(other[its_key]))
        elif how == "rename" and isinstance(holder, dict):
            holder[draw.choice(["w", "dict", "array", "dtype", "x", "list", "int"])] = holder.pop(
                key
            )
        elif how == "nudge" and type(holder[key]) is int:
            holder[key] += draw.choice([-8, -1, 1, 8, 2**40])
        elif how == "wrap":
            holder[key] = draw.choice(
                [[holder[key]], {"list": [holder[key]]}, {"dict": holder[key]}]
            )
        elif how == "twin" and isinstance(holder, list):
            holder.insert(key, json.loads(json.dumps(holder[key])))
        else:
            holder[key] = deepcopy(draw.choice(ODD))


def loaded(path, like=()):
    """Whether a file loads; errors other than CheckpointError propagate."""
    try:
        iso.load(path, *like)
    except iso.CheckpointError:
        return False
    return True


@ONLY
@pytest.mark.parametrize("part", [0, *(pytest.param(i, marks=SLOW) for i in (1, 2, 3))])
@pytest.mark.takes("hundreds of files")
def test_structural_changes_with_forged_checksums(backend, saved, part):
    raw, draw = saved.read_bytes(), random.Random(part)
    counts = [0, 0]
    for _ in range(2500):
        head, own, memory = taken_apart(raw)
        changed(draw, (head, own) if draw.random() < 0.7 else (own,))
        saved.write_bytes(put_together(head, own, memory))
        counts[loaded(saved)] += 1
        loaded(saved, (NEST, {"again": np.ones(2)}))
    assert counts[0] > 2000
    assert counts[1] > 0  # a changed key is still a valid nest


@ONLY
@pytest.mark.takes("hundreds of files")
def test_changed_bytes_with_forged_checksums(backend, saved):
    raw, draw = saved.read_bytes(), random.Random(1)
    length = int.from_bytes(raw[:8], "little")
    counts = [0, 0]
    for _ in range(2000):
        head = bytearray(
            raw[8 : 8 + length].replace(f'"{CHECK}":"'.encode(), f'"{CHECK}": "'.encode())
        )
        for _ in range(draw.choice([1, 1, 2, 5])):
            head[draw.randrange(len(head))] = draw.choice(b'{}[]",:0129ew\\ \xff\x00')
        saved.write_bytes(signed(bytes(head), raw[8 + length :]))
        counts[loaded(saved)] += 1
    assert counts[0] > 1800
    assert counts[1] > 0


@ONLY
def test_unchanged_it_loads(backend, saved):
    """The tools above do not damage a file by themselves."""
    head, own, memory = taken_apart(saved.read_bytes())
    saved.write_bytes(put_together(head, own, memory))
    first, second, named = iso.load(saved)
    assert tuple(first) == tuple(NEST)
    assert named["step"] == 3
    np.testing.assert_array_equal(first["w"], NEST["w"])
    np.testing.assert_array_equal(second["again"], 1.0)


def one(path, entry, memory=b"\0" * 16, name="w"):
    head = json.dumps({name: entry} if entry else {}).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head + memory)


ENTRY = {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}


@ONLY
def test_what_is_wrong_is_said(backend, tmp_path):
    path = tmp_path / "file"
    told = lambda words: pytest.raises(iso.CheckpointError, match=words)

    one(path, {**ENTRY, "dtype": "F8_E4M3", "shape": [16]})
    with told("w has dtype F8_E4M3, needed one of BOOL") as error:
        iso.load(path)
    assert "damaged" not in str(error.value)

    two = {"a": ENTRY, "b": {**ENTRY, "data_offsets": [8, 24]}}
    head = json.dumps(two).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head + b"\0" * 24)
    with told("a and b overlap"):
        iso.load(path)

    head = json.dumps({"a": ENTRY, "b": {**ENTRY, "data_offsets": [24, 40]}}).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head + b"\0" * 40)
    with told("unused bytes between a and b"):
        iso.load(path)

    head = json.dumps({"w": ENTRY})
    twice = f"{head[:-1]}, {head[1:]}".encode()
    path.write_bytes(len(twice).to_bytes(8, "little") + twice + b"\0" * 16)
    with told("the key 'w' occurs twice"):
        iso.load(path)

    wide = head.encode("utf-16")
    path.write_bytes(len(wide).to_bytes(8, "little") + wide + b"\0" * 16)
    with told("damaged: 'utf-8' codec"):
        iso.load(path)

    one(path, {"dtype": "BOOL", "shape": [16], "data_offsets": [0, 16]}, b"\0\1" * 7 + b"\2\1")
    with told("a boolean is not 0 or 1"):
        iso.load(path)

    one(path, {"dtype": "F64", "shape": [0, 2**62, 2**62], "data_offsets": [0, 0]}, b"")
    with told("w in "):
        iso.load(path)

    one(path, {**ENTRY, "shape": [1] * 70 + [2]})
    with told("w in "):
        iso.load(path)

    deep = b"[" * 50_000
    path.write_bytes(len(deep).to_bytes(8, "little") + deep)
    with told("nested too deep|damaged"):
        iso.load(path)


@ONLY
def test_a_tensor_that_no_nest_holds_or_two_hold(backend, saved):
    head, own, memory = taken_apart(saved.read_bytes())
    nodes = own["tree"]["named"]
    nodes[1] = ["more", {"list": []}]
    saved.write_bytes(put_together(head, own, memory))
    with pytest.raises(iso.CheckpointError, match="more/0 belongs to no nest"):
        iso.load(saved)
    nodes[1] = ["more", {"list": [{"array": "more/0", "dtype": "float64"}] * 2}]
    saved.write_bytes(put_together(head, own, memory))
    with pytest.raises(iso.CheckpointError, match="more/1 has no tensor of its own"):
        iso.load(saved)


@ONLY
@pytest.mark.parametrize("function", ["save", "load"])
def test_what_is_no_file_is_refused(backend, tmp_path, function):
    run = iso.load if function == "load" else lambda path: iso.save(path, np.ones(2))
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(iso.CheckpointError, match=f"{function}: needed a file name, got a pipe"):
        run(path)
    assert path.is_fifo()

    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(iso.CheckpointError, match="is a link that points to itself"):
        run(loop)
    assert loop.is_symlink()

    with pytest.raises(iso.CheckpointError, match="got a device"):
        run("/dev/null")
    link = tmp_path / "link"
    link.symlink_to("/dev/full")
    with pytest.raises(iso.CheckpointError, match="got a device"):
        run(link)

    folder = os.getcwd()
    os.chdir(tmp_path)  # the path of a socket must be short
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("socket")
            with pytest.raises(iso.CheckpointError, match="got a socket"):
                run("socket")
    finally:
        os.chdir(folder)
    with pytest.raises(IsADirectoryError, match="needed a file name"):
        run(tmp_path)


@ONLY
def test_links_to_files_are_followed(backend, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    for value in (1.0, 2.0):
        iso.save(tmp_path / "link", np.full(2, value))
        assert (tmp_path / "link").is_symlink()
        np.testing.assert_array_equal(iso.load(tmp_path / "target"), value)


@ONLY
def test_a_nest_that_holds_itself_is_named(backend, tmp_path):
    nest = {"a": [np.ones(2), {}]}
    nest["a"][1]["back"] = nest["a"]
    with pytest.raises(ValueError, match="needed a nest without cycles, got .* at a/1/back"):
        iso.save(tmp_path / "file", nest)
    assert not [*tmp_path.iterdir()]
    shared = [np.ones(2)]
    iso.save(tmp_path / "file", [shared, shared])  # sharing is not a cycle
    assert len(iso.load(tmp_path / "file")) == 2


@ONLY
def test_no_room_for_the_file(backend, tmp_path):
    """The old file stays, and nothing else is left."""
    iso.save(tmp_path / "model", np.arange(3.0))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, before[1]))
    try:
        with pytest.raises(iso.CheckpointError, match="the old file is unchanged"):
            iso.save(tmp_path / "model", np.zeros(100_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    np.testing.assert_array_equal(iso.load(tmp_path / "model"), np.arange(3.0))


@ONLY
def test_a_full_disk(backend, tmp_path):
    """The old file stays, and nothing else is left."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    try:
        mounted = subprocess.run(command, capture_output=True, timeout=20).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("cannot mount a small disk here")
    try:
        iso.save(disk / "model", np.arange(3.0))
        with pytest.raises(iso.CheckpointError, match="the old file is unchanged"):
            iso.save(disk / "model", np.zeros(100_000))
        assert [path.name for path in disk.iterdir()] == ["model"]
        np.testing.assert_array_equal(iso.load(disk / "model"), np.arange(3.0))
    finally:
        subprocess.run(["umount", str(disk)], check=True, timeout=20)
