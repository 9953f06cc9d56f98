"""Read `ledger.toml`: the cells that raise and the cells that lose a gradient."""

import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path

LEDGER = tomllib.loads(Path(__file__).with_name("ledger.toml").read_text())


def raising(backend, case, transform):
    """The error message that a cell must raise; None if its result must be right."""
    cell = f"{case.removesuffix(':0')} {transform}"
    for entry in LEDGER.get(backend, []):
        if not any(fnmatch(cell, pattern) for pattern in entry.get("cells", [])):
            continue
        if not any(fnmatch(cell, pattern) for pattern in entry.get("but", [])):
            return entry["raises"]
    return None


def losing(backend):
    """The ways to extract a value from a differentiation that lose its gradient."""
    return {way for entry in LEDGER.get(backend, []) for way in entry.get("lost", [])}


def says(words, error):
    return re.search(words, str(error)) is not None


def patterns():
    """Every cell pattern, with its backend."""
    return [
        (backend, pattern)
        for backend, entries in LEDGER.items()
        for entry in entries
        for pattern in (*entry.get("cells", []), *entry.get("but", []))
    ]
