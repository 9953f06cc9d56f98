"""The API pages: every public name of isomorph with its signature, docstring and example."""

from __future__ import annotations

import inspect
import re
import tomllib
import types
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import isomorph as iso

TOPICS = Path(__file__).with_name("api.toml")
BESIDE = ("frontends.jax.lax",)  # public, but not an attribute of isomorph
WIDTH = 88
SHOWN = re.compile(r"`iso\.([\w.]+)(\([^`]*\))?`")


class Name(NamedTuple):
    """A public name: as it is written (`iso.special.gamma`), where it is from, and what it is."""

    said: str
    home: str  # the public submodule that lists it, or the module where it is written
    thing: Any


def public() -> Iterator[Name]:
    """Every public name of isomorph and of its public submodules."""
    for word in iso.__all__:
        thing = getattr(iso, word)
        if isinstance(thing, types.ModuleType):
            for inner in thing.__all__:
                yield Name(f"iso.{word}.{inner}", word, getattr(thing, inner))
        else:
            yield Name(f"iso.{word}", thing.__module__.removeprefix("isomorph."), thing)
    for path in BESIDE:
        module = import_module(f"isomorph.{path}")
        for inner, thing in vars(module).items():
            if inner[0] != "_" and getattr(thing, "__module__", "") == module.__name__:
                yield Name(f"isomorph.{path}.{inner}", path, thing)


def topics() -> list[dict[str, Any]]:
    return tomllib.loads(TOPICS.read_text("utf-8"))["page"]


def placed() -> dict[str, list[Name]]:
    """The names of every page. A name whose module has no page raises."""
    names, pages = list(public()), {}
    homes = {home: topic["file"] for topic in topics() for home in topic["modules"]}
    for name in names:
        if name.home not in homes:
            raise LookupError(f"{name.said}: needed a page in {TOPICS.name} with {name.home!r}")
    for topic in topics():
        rank = {home: i for i, home in enumerate(topic["modules"])}
        found = [name for name in names if name.home in rank]
        pages[topic["file"]] = sorted(found, key=lambda name: rank[name.home])
    return pages


def signature(said: str, thing: Any) -> str:
    """The call as Python code, on one line or with a line for each parameter."""
    word = said.rpartition(".")[2]
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return word
    if isinstance(thing, type):
        found = found.replace(return_annotation=inspect.Signature.empty)
    given = [p for p in found.parameters.values() if p.name != "self"]
    found = found.replace(parameters=given)
    line = f"{word}{found}"
    line = re.sub(r": '([^']*)'", r": \1", re.sub(r"-> '([^']*)'", r"-> \1", line))
    if len(line) <= WIDTH:
        return line
    parts, depth, start = [], 0, len(word) + 1
    end = line.rindex(")", 0, line.rfind(" -> ") + 1 or None)
    for i in range(start, end):
        depth += (line[i] in "([{") - (line[i] in ")]}")
        if line[i] == "," and not depth:
            parts.append(line[start:i].strip())
            start = i + 1
    parts.append(line[start:end].strip())
    return f"{line[: len(word) + 1]}\n" + "".join(f"    {p},\n" for p in parts) + line[end:]


def text_of(thing: Any) -> str:
    """The docstring as Markdown: examples become blocks, names become links."""
    lines, out, inside = inspect.cleandoc(thing.__doc__ or "").splitlines(), [], False
    for line in lines:
        if line.startswith(">>>") and not inside:
            out.append("```pycon")
            inside = True
        elif inside and not line.strip():
            out.append("```")
            inside = False
        out.append(line if inside else linked(line))
    return "\n".join([*out, "```"] if inside else out)


@cache
def places() -> dict[str, str]:
    """The page of every name."""
    return {name.said: file for file, names in placed().items() for name in names}


def linked(line: str) -> str:
    def link(match: re.Match[str]) -> str:
        said = f"iso.{match[1]}"
        return f"[{match[0]}]({places()[said]}.md#{said})" if said in places() else match[0]

    powers = re.sub(r"(?<=\w)\*\*(?=\w)(?=[^`]*(?:`[^`]*`[^`]*)*$)", r"\\*\\*", line)  # not bold
    return SHOWN.sub(link, powers)


def members(name: Name) -> Iterator[tuple[str, Any]]:
    """What a class has of its own, with docstrings; or those that the table of topics lists."""
    listed = tomllib.loads(TOPICS.read_text("utf-8"))["members"].get(name.said)
    for word, member in vars(name.thing).items():
        plain = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        told = plain.__doc__ and (callable(plain) or isinstance(plain, property))
        if word[0] != "_" and told and (listed is None or word in listed):
            yield word, plain


def entry(name: Name) -> str:
    parts = [f"## {name.said} {{ #{name.said} }}"]
    parts += [f"```python\n{signature(name.said, name.thing)}\n```", text_of(name.thing)]
    if isinstance(name.thing, type):
        for word, member in members(name):
            said = f"{name.said}.{word}"
            parts.append(f"### {said.removeprefix('iso.')} {{ #{said} }}")
            if not isinstance(member, property):
                parts.append(f"```python\n{signature(said, member)}\n```")
            parts.append(text_of(member))
    return "\n\n".join(parts)


def first_sentence(thing: Any) -> str:
    paragraph = inspect.cleandoc(thing.__doc__ or "").partition("\n\n")[0].replace("\n", " ")
    short = re.split(r"(?<=[.;:]) (?=[A-Z`])|: |; ", paragraph)[0].rstrip(".:;")
    return short.replace("|", "\\|")


def pages() -> dict[str, str]:
    """The text of every API page, by its path under docs."""
    found = {}
    names = placed()
    index = ["# API", "", "Every public name, by topic.", ""]
    index += ["In all examples, `np` is NumPy and `iso` is isomorph.", ""]
    for topic in topics():
        file, title = topic["file"], topic["title"]
        index += [f"## [{title}]({file}.md)", "", "| name | what it is |", "|---|---|"]
        for name in names[file]:
            link = f"[`{name.said}`]({file}.md#{name.said})"
            index.append(f"| {link} | {first_sentence(name.thing)} |")
        index.append("")
        body = "\n\n".join(entry(name) for name in names[file])
        found[f"api/{file}.md"] = f"# {title}\n\n{linked(topic['text'].strip())}\n\n{body}\n"
    found["api/index.md"] = "\n".join(index)
    return found
