"""The structure of nests as JSON, and nests rebuilt from it.

A node is None, or a dict with one entry that names its kind: `dict` (pairs of key and node),
`list`, `tuple`, `array` (the name of its tensor), or the type of a Python scalar. Keys of a dict
are strings and integers; a named tuple is stored as a tuple, and gets its type from the template
it is loaded into.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core import tree
from ..core.dispatch import dtype_of, find_backend

Node = Any
WRITE: dict[type, Callable[[Any], Any]] = {
    bool: bool,
    int: hex,  # decimal digits are limited in length
    float: float.hex,  # JSON has no NaN and infinity
    complex: lambda x: [x.real.hex(), x.imag.hex()],
    str: str,
}
READ: dict[str, Callable[[Any], Any]] = {
    "bool": bool,
    "int": lambda x: int(x, 16),
    "float": float.fromhex,
    "complex": lambda x: complex(*map(float.fromhex, x)),
    "str": str,
}


# A number that a program computed is an array without axes: each can be loaded as the other.
NUMBERS = (bool, int, float, complex)
KINDS = {
    "bool": ("bool",),
    "int": ("int", "uint"),
    "float": ("float", "bfloat"),
    "complex": ("complex",),
}


def _is_number(kind: str, word: str, shape: tuple[int, ...]) -> bool:
    """Whether an array of this dtype and shape can replace a Python number of that kind."""
    return kind in KINDS and shape == () and word.rstrip("0123456789") in KINDS[kind]


def _parts(x: Any) -> Any:
    """The part of an object that is saved: for a module the nest of all it holds, else itself."""
    return x.take_saved() if isinstance(x, tree.Node) else x


def describe(
    nest: Any, path: str, hold: Callable[[str, Any], Node], above: tuple[int, ...] = ()
) -> Node:
    """The node of a nest; `hold(path, array)` returns the node of an array. `above` are the nests
    that contain it.
    """
    if id(nest) in above:
        raise ValueError(f"save: needed a nest without cycles, got a cycle{at(path)}")
    if isinstance(nest, (dict, list, tuple)):
        above = (*above, id(nest))
    nest = _parts(nest)
    if nest is None:
        return None
    if type(nest) in WRITE:
        return {type(nest).__name__: WRITE[type(nest)](nest)}
    if isinstance(nest, dict):
        for key in nest:
            if type(key) not in (str, int):
                raise TypeError(
                    f"save: needed str or int as keys, got {key!r}, a {type(key).__name__}"
                    f"{at(path)}"
                )
        return {"dict": [[k, describe(x, join(path, k), hold, above)] for k, x in nest.items()]}
    if isinstance(nest, (list, tuple)):
        kind = "list" if isinstance(nest, list) else "tuple"
        return {kind: [describe(x, join(path, i), hold, above) for i, x in enumerate(nest)]}
    if find_backend(nest) is not None:
        return hold(path, nest)
    raise TypeError(
        f"save: needed arrays, numbers, strings, None and dicts, lists and tuples of them, got a "
        f"{type(nest).__name__}{at(path)}"
    )


def check_node(node: Any, path: str, names: Callable[[Any, Any, str], None]) -> None:
    """Raise ValueError if a node could not have come from `describe`; `names(name, dtype, path)`
    checks the node of an array.
    """
    if node is None:
        return
    where = path or "the nest"
    if type(node) is not dict:
        raise ValueError(f"{where} is not a node: {str(node)[:40]}")
    kinds = [kind for kind in node if kind != "dtype"]
    if len(kinds) != 1 or ("dtype" in node) != (kinds == ["array"]):
        raise ValueError(f"{where} is not a node: it has {', '.join(node) or 'nothing'}")
    kind, inner = kinds[0], node[kinds[0]]
    if kind == "array":
        names(inner, node["dtype"], where)
    elif kind in ("list", "tuple"):
        for i, child in enumerate(_listed(inner, where)):
            check_node(child, join(path, i), names)
    elif kind == "dict":
        pairs = [tuple(_listed(pair, where)) for pair in _listed(inner, where)]
        if any(len(pair) != 2 or type(pair[0]) not in (str, int) for pair in pairs):
            raise ValueError(f"{where} is not a dict of keys and nodes")
        if len(dict(pairs)) < len(pairs):
            raise ValueError(f"{where} has a key twice")
        for key, child in pairs:
            check_node(child, join(path, key), names)
    elif kind not in READ or not _is_written(kind, inner):
        raise ValueError(f"{where} is not a {kind}: {str(inner)[:40]}")


def _listed(x: Any, where: str) -> list:
    if type(x) is not list:
        raise ValueError(f"{where} is not a node: needed a list, got {str(x)[:40]}")
    return x


def _is_written(kind: str, inner: Any) -> bool:
    """Whether a scalar has the form in which `WRITE` writes it."""
    try:
        value = READ[kind](inner)
        return WRITE[type(value)](value) == inner and type(inner) is type(WRITE[type(value)](value))
    except (ValueError, TypeError, OverflowError):
        return False


def build(node: Node, like: Any, array: Callable[[Node, Any], Any]) -> Any:
    """The nest of a node, with the types of `like` where it is given; `array(node, like)` returns
    an array.
    """
    if node is None:
        return None
    ((kind, inner),) = ((k, x) for k, x in node.items() if k != "dtype")
    if isinstance(like, tree.Node):
        return like.put_saved(build(node, like.take_saved(), array))
    if kind == "dict":
        built = {k: build(x, None if like is None else like[k], array) for k, x in inner}
        # in the order of `like`, and with its type
        return built if like is None else _filled(like, {k: built[k] for k in like})
    if kind in ("list", "tuple"):
        likes = [None] * len(inner) if like is None else like
        items = [build(x, y, array) for x, y in zip(inner, likes, strict=True)]
        if hasattr(like, "_fields"):
            return type(like)(*items)
        return items if kind == "list" else tuple(items)
    if kind == "array":
        return type(like)(array(node, None)) if type(like) in NUMBERS else array(node, like)
    value = READ[kind](inner)
    if kind in KINDS and find_backend(like) is not None:
        return _array_like(value, like)
    return value


def _array_like(value: Any, like: Any) -> Any:
    """A number as an array without axes, of the backend and dtype of another."""
    xp: Any = find_backend(like)
    return xp.asarray(value, dtype=like.dtype, device=xp.placement(like))


def _filled(like: dict, built: dict) -> dict:
    if type(like) is dict:
        return built
    copy = like.copy()  # keeps other attributes of such a dict, for example a default
    copy.update(built)
    return copy


def differences(
    node: Node, like: Any, path: str, spec: Callable[[Node], tuple[str, tuple[int, ...]]]
) -> list[str]:
    """Every difference between a saved nest and the template it is loaded into; `spec` returns
    dtype and shape of a saved array.
    """
    like = _parts(like)
    needed, got = _kind(like), _saved(node)
    if needed is None:
        return [f"{path or 'the template'}: cannot load into a {type(like).__name__}"]
    if needed != got:
        if got == "array" and _is_number(needed, *spec(node)):
            return []
        if needed == "array" and _is_number(got, _word(like), tuple(like.shape)):
            return []
        return [f"{path or 'the whole'}: needed {_said(needed)}, got {_said(got)}"]
    found = []
    if needed == "dict":
        saved = dict(node["dict"])
        for key in like:
            if key not in saved:
                found.append(f"{join(path, key)}: missing{_other(key, saved)}")
        for key, child in saved.items():
            if key in like:
                found += differences(child, like[key], join(path, key), spec)
            else:
                found.append(f"{join(path, key)}: unexpected{_other(key, like)}")
    elif needed in ("list", "tuple"):
        saved = node[needed]
        for i, (child, y) in enumerate(zip(saved, like)):
            found += differences(child, y, join(path, i), spec)
        found += [f"{join(path, i)}: missing" for i in range(len(saved), len(like))]
        found += [f"{join(path, i)}: unexpected" for i in range(len(like), len(saved))]
    elif needed == "array":
        word, shape = spec(node)
        wanted = _word(like)
        if tuple(like.shape) != shape:
            found.append(f"{path or 'the array'}: needed shape {tuple(like.shape)}, got {shape}")
        if wanted != word:
            found.append(f"{path or 'the array'}: needed {wanted}, got {word}")
    return found


def _word(x: Any) -> str:
    return dtype_of(x).rpartition(".")[2]


def _kind(like: Any) -> str | None:
    if like is None:
        return "None"
    if type(like) in WRITE:
        return type(like).__name__
    for kind in (dict, list, tuple):
        if isinstance(like, kind):
            return kind.__name__
    return None if find_backend(like) is None else "array"


def _saved(node: Node) -> str:
    return "None" if node is None else next(k for k in node if k != "dtype")


def _said(kind: str) -> str:
    return kind if kind == "None" else f"{'an' if kind[0] in 'ai' else 'a'} {kind}"


def _other(key: Any, keys: Any) -> str:
    """A hint if the same key exists as another type."""
    twin = str(key) if isinstance(key, int) else int(key) if key.lstrip("-").isdecimal() else None
    return f" as {key!r}, but {twin!r} exists" if twin is not None and twin in keys else ""


def join(path: str, key: Any) -> str:
    return f"{path}/{key}" if path else str(key)


def at(path: str) -> str:
    return f" at {path}" if path else ""
