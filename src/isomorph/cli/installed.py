"""What is installed here: the frameworks, their versions and their devices."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ..core.dispatch import load, names

if TYPE_CHECKING:
    from ..typing import BackendName


@dataclass(frozen=True)
class Installed:
    """A backend on this machine. Reading `devices` imports its framework; the other attributes do
    not.
    """

    name: str
    version: str | None

    @property
    def installed(self) -> bool:
        return self.version is not None

    @property
    def devices(self) -> tuple[str, ...]:
        return tuple(load(self.name).devices()) if self.installed else ()


def backends() -> dict[BackendName, Installed]:
    """Every backend by name, with `.installed`, `.version` and `.devices`.

    >>> iso.backends()["numpy"].devices
    ('cpu',)
    """
    return {name: Installed(name, _version(name)) for name in names()}


def _version(name: str) -> str | None:
    from importlib.metadata import (  # a third of the import time of isomorph
        PackageNotFoundError,
        version,
    )

    if find_spec(name) is None:
        return None
    try:
        return version(name)
    except PackageNotFoundError:  # installed under another name, like nightly builds
        return "unknown version"
