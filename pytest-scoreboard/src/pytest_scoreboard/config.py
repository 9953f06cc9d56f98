"""A project's settings for its board, in `[tool.scoreboard]` of its pyproject.toml. All are
optional. `[tool.isomorph.scoreboard]` is read too: the board was a part of isomorph.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Config:
    """The settings, with their defaults."""

    title: str = ""
    database: str = ".scoreboard/board.db"
    ledger: str = "scoreboard.toml"
    axis: str = ""  # the parameter or fixture that names the backend; '' means that it is found
    reference: str = ""
    columns: tuple[str, ...] = ()
    suites: dict[str, str] = field(default_factory=dict)  # test file -> title
    default_mode: str = ""  # the mode of a test that declares none
    modes: dict[str, str] = field(default_factory=dict)  # value of a parameter -> mode
    observed: tuple[str, ...] = ()  # modes that count only if record_mode reported them
    absent: dict[str, dict[str, str]] = field(default_factory=dict)  # backend -> mode -> why
    helpers: tuple[str, ...] = ()  # "module:function", the project's own assertions
    seeds: str = ""  # a folder of tables, which `scoreboard import seeds` records as run 0
    expected: str = ""  # "seeds": rows of run 0 are expected in every run
    moved: str = ""  # a TOML file: the old names of files of tests, and their new ones
    max_age: str = "30d"
    root: Path = field(default_factory=Path.cwd)

    def path(self, name: str) -> Path:
        return self.root / name

    def moves(self) -> dict[str, str]:
        """The new names of files of tests, by their old names."""
        if not self.moved:
            return {}
        path = self.path(self.moved)
        try:
            said = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, tomllib.TOMLDecodeError) as error:
            raise ValueError(f"moved: needed a file of old and new names: {error}") from error
        if wrong := [old for old, new in said.items() if not isinstance(new, str)]:
            raise ValueError(f"{path}: needed a name for {', '.join(wrong)}")
        return said


def read(root: Path) -> Config:
    """The settings of the project whose pyproject.toml is in `root` or above it."""
    for folder in (root, *root.parents):
        file = folder / "pyproject.toml"
        if file.is_file():
            try:
                said = tomllib.loads(file.read_text(encoding="utf-8"))
            except tomllib.TOMLDecodeError as error:
                raise ValueError(f"{file}: {error}") from error
            tools = said.get("tool", {})
            earlier = tools.get("isomorph", {}).get("scoreboard", {})
            return _checked(file, folder, tools.get("scoreboard", earlier))
    return Config(root=root)


def _checked(file: Path, root: Path, said: dict[str, Any]) -> Config:
    known = {f.name for f in fields(Config)} - {"root"}
    if unknown := sorted(set(said) - known):
        raise ValueError(
            f"{file}: [tool.scoreboard] needed keys among {', '.join(sorted(known))}; "
            f"got {', '.join(unknown)}"
        )
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in said.items()}
    usual = Config(root=root)
    for name, value in values.items():
        kind = type(getattr(usual, name))
        if type(value) is not kind:
            word = {str: "a string", tuple: "a list", dict: "a table"}[kind]
            raise ValueError(
                f"{file}: [tool.scoreboard] needed {word} for {name}, got {said[name]!r}"
            )
    return Config(root=root, **values)


def seconds(text: str) -> float:
    """The seconds of an age such as "3d".

    >>> seconds("3d"), seconds("90m")
    (259200.0, 5400.0)
    """
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
    try:
        age = float(text[:-1]) * units[text[-1:]]
    except (KeyError, ValueError):
        age = -1.0
    if not 0 <= age < float("inf"):
        raise ValueError(f"age: needed a number and s, m, h, d or w, got {text!r}")
    return age
