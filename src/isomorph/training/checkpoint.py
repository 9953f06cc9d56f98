"""Checkpoints: nests of arrays with their structure, in one file that every framework reads and
that is replaced as a whole or not at all.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.default_backend import host
from ..core.dispatch import find_backend
from ..core.dispatch import load as load_backend
from ..version import __version__
from . import layout
from .atomic_write import atomic_write, check_regular
from .errors import CheckpointError
from .nest_json import build, check_node, describe, differences

if TYPE_CHECKING:
    from ..typing import BackendName

Name = str | os.PathLike[str]


def save(path: Name, /, *nests: Any, **named: Any) -> None:
    """Write nests to a file, for `load` on any backend.

    Nests are dicts (with str and int keys), lists and tuples of arrays, Python numbers, strings and
    None; a module is saved as the nest of all its arrays and state. The new file replaces an old
    one as a whole: whatever happens, one of the two exists. It is a safetensors file; its tensors
    are named by their keys, joined with `/`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     iso.save(f"{folder}/model", v={"w": np.ones(2)}, epoch=3)
    ...     iso.load(f"{folder}/model")
    {'v': {'w': array([1., 1.])}, 'epoch': 3}
    """
    if "backend" in named:
        raise ValueError("save: needed another name than backend, which is an argument of load")
    tensors: dict[str, tuple[Any, str, tuple]] = {}
    tree = {
        "nests": [
            describe(nest, str(i) if len(nests) > 1 or named else "", partial(_hold, tensors))
            for i, nest in enumerate(nests)
        ],
        "named": [[k, describe(nest, k, partial(_hold, tensors))] for k, nest in named.items()],
    }
    head = {"format": layout.FORMAT, "version": __version__, "tree": tree}
    stored = [
        (name, word, shape, partial(_memory, name, x)) for name, (x, word, shape) in tensors.items()
    ]
    with atomic_write(Path(path)) as file:
        layout.write(file, head, stored)


def load(path: Name, /, *like: Any, backend: BackendName | None = None, **named_like: Any) -> Any:
    """The contents of a file of `save`: one nest, or a tuple of several, or a dict of named ones;
    if there are both, a tuple that ends with the dict.

    `like` and `named_like` are templates: arrays become those of the template's backend and device,
    and a module comes back as a module. Structure, shapes and dtypes must be those of the file; the
    error names every difference. Templates must be given for all unnamed nests, and for the named
    ones that are wanted. Without templates, arrays are NumPy's, or those of `backend`. A file of
    the safetensors library loads as a dict of its tensors.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     iso.save(f"{folder}/model", {"w": np.ones(2)})
    ...     iso.load(f"{folder}/model", {"w": np.zeros(2)})
    {'w': array([1., 1.])}
    """
    given = bool(like or named_like)
    if given and backend is not None:
        raise ValueError(
            f"load: needed templates or a backend, got both; leave out backend={backend!r}"
        )
    home = host() if backend is None else load_backend(backend)
    check_regular("load", Path(path))
    with open(path, "rb", buffering=0) as file:
        content = layout.read(file)
        nests, named = _trees(content, file.name)
        if given:
            _check(content, nests, named, like, named_like, file.name)
            named = {k: x for k, x in named.items() if k in named_like}

        def array(node: Any, like: Any) -> Any:
            tensor = content.tensors[node["array"]]
            word, shape = _spec(content, node)
            xp = home if like is None else find_backend(like)
            device = None if like is None or xp is None else xp.placement(like)
            try:
                return (xp or home).unpack(word, shape, layout.fill(file, content, tensor), device)
            except CheckpointError:
                raise
            except (TypeError, ValueError, RuntimeError, OverflowError) as error:
                raise CheckpointError(f"load: {tensor.name} in {file.name}: {error}") from None

        likes = like if given else (None,) * len(nests)
        values = [build(node, y, array) for node, y in zip(nests, likes)]
        dicts = {k: build(node, named_like.get(k), array) for k, node in named.items()}
    if given:
        dicts = {k: dicts[k] for k in named_like}
    if not dicts and (values or not content.head):
        return values[0] if len(values) == 1 else tuple(values)
    return (*values, dicts) if values else dicts


def _hold(tensors: dict[str, tuple[Any, str, tuple]], path: str, x: Any) -> dict[str, str]:
    """The node of an array, which gets a unique name."""
    word, shape = _kind(path, x)
    base = name = path.encode("utf-8", "backslashreplace").decode() or "array"
    while name in tensors or name == "__metadata__":
        name = f"{base}#{len(tensors)}"
    tensors[name] = x, word, shape
    return {"array": name, "dtype": word}


def _kind(path: str, x: Any) -> tuple[str, tuple[int, ...]]:
    xp: Any = find_backend(x)
    word = getattr(x.dtype, "name", None) or str(x.dtype).rpartition(".")[2]
    if word not in layout.WORDS and word not in layout.PAIRS:
        raise TypeError(
            f"save: needed one of {', '.join((*layout.WORDS, *layout.PAIRS))}, got {word} of "
            f"{xp.name} as {path or 'the array'}"
        )
    return word, tuple(x.shape)


def _memory(name: str, x: Any) -> memoryview:
    xp: Any = find_backend(x)
    try:
        return xp.pack(x)[2]
    except (TypeError, RuntimeError) as error:  # inside a transform an array has no memory
        raise TypeError(f"save: {name}: needed an array with known values: {error}") from None


def _trees(content: layout.Content, path: str) -> tuple[list[Any], dict[str, Any]]:
    """The nodes of a file; a file of another library is a dict of its tensors."""
    if content.head is None:
        flat = [[name, {"array": name, "dtype": t.word}] for name, t in content.tensors.items()]
        return [{"dict": flat}], {}
    try:
        return _checked(content)
    except RecursionError:
        raise CheckpointError(f"load: the header of {path} is damaged: nested too deep") from None
    except ValueError as error:
        raise CheckpointError(f"load: the header of {path} is damaged: {error}") from None


def _checked(content: layout.Content) -> tuple[list[Any], dict[str, Any]]:
    """The nodes of a header of ours, all checked; each tensor must belong to one node."""
    tree = (content.head or {}).get("tree")
    if type(tree) is not dict or tree.keys() != {"nests", "named"}:
        raise ValueError("it has no tree of nests and named nests")
    nests, named = tree["nests"], tree["named"]
    check_node({"list": nests}, "", names := _Names(content.tensors))
    check_node({"dict": named}, "", names)
    if not all(type(name) is str for name, _ in named):
        raise ValueError("a nest has a name that is not a string")
    if names.left:
        raise ValueError(f"{next(iter(names.left))} belongs to no nest")
    return nests, dict(named)


class _Names:
    """Check that an array's node names a tensor of its dtype that no other node names."""

    def __init__(self, tensors: dict[str, layout.Tensor]):
        self.left = dict(tensors)

    def __call__(self, name: Any, word: Any, path: str) -> None:
        tensor = self.left.pop(name, None) if type(name) is str else None
        if tensor is None:
            raise ValueError(f"{path} has no tensor of its own: {name}")
        pair = layout.PAIRS.get(word) if type(word) is str else None
        if (word if pair is None else pair) != tensor.word or (pair and tensor.shape[-1:] != (2,)):
            raise ValueError(f"{path} is {word}, its tensor {tensor.word} of shape {tensor.shape}")


def _spec(content: layout.Content, node: dict[str, str]) -> tuple[str, tuple[int, ...]]:
    """Dtype and shape of a saved array: a complex array has one more axis in the file."""
    word, shape = node["dtype"], content.tensors[node["array"]].shape
    ours = content.head is not None and word in layout.PAIRS
    return word, shape[:-1] if ours else shape


def _check(
    content: layout.Content, nests: list, named: dict, like: tuple, named_like: dict, path: str
) -> None:
    spec = partial(_spec, content)
    several = len(nests) > 1 or (content.head is not None and bool(content.head["tree"]["named"]))
    found = []
    if len(nests) != len(like):
        found.append(f"needed {len(like)} nests without a name, got {len(nests)}")
    for i, (node, y) in enumerate(zip(nests, like)):
        found += differences(node, y, str(i) if several else "", spec)
    for name, y in named_like.items():
        if name in named:
            found += differences(named[name], y, name, spec)
        else:
            found.append(f"{name}: missing")
    if named.keys() >= {"train", "record"}:  # those of `fit`
        if like and not nests:
            found.append("it is a checkpoint of iso.fit: iso.fit with resume=True gives its model")
        if any(line.startswith("train/optimizer") for line in found):
            found.append("it was written with another optimizer or schedule")
    if found:
        raise CheckpointError(f"load: {path} does not fit the template:\n  " + "\n  ".join(found))
