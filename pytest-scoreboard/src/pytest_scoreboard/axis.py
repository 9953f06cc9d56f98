"""Which parameter of a test names its backend.

It is the one that the project's settings or the command line name. Without such a name, it is the
parameter whose values are array libraries in at least half of the tests that have it; and if there
is no such parameter, one with a usual name. A parameter may belong to a test or to a fixture.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

USUAL = (
    "backend", "backends", "xp", "framework", "fw", "array_module", "nx", "library", "lib",
    "array_namespace", "array_api", "backend_name", "namespace",
)  # fmt: skip
LIBRARIES = (
    "numpy", "np", "torch", "pytorch", "jax", "jnp", "tensorflow", "tf", "cupy", "dask",
    "array_api_strict", "autograd", "mxnet", "mlx", "ndonnx", "paddle", "sparse", "cubed", "keras",
)  # fmt: skip
# "numpy", "jax.numpy", "torch:gpu", "NumpyBackend", "Backend.TORCH_GPU"
LIBRARY = re.compile(rf"(?:\w*backend\.)?(?:{'|'.join(LIBRARIES)})(?:$|[^a-z]|backend)")


def name_of(value: Any) -> str:
    """A short name for the value of a parameter."""
    if isinstance(value, (str, int, float, bool)) or value is None:
        return str(value)
    return str(getattr(value, "__name__", None) or getattr(value, "name", None) or value)[:80]


def is_library(value: Any) -> bool:
    """Whether a value is an array library, or its name.

    >>> is_library("torch"), is_library("numpy_like"), is_library("torchlight"), is_library(3)
    (True, True, False, False)
    """
    return LIBRARY.match(name_of(value).lower()) is not None


class Axis:
    """The choice for one run of the tests."""

    def __init__(self, given: str = "") -> None:
        self.given = given
        self.tests: Counter[str] = Counter()  # parameter -> tests that have it
        self.libraries: dict[str, set[str]] = {}  # parameter -> values that are array libraries
        self.hits: Counter[str] = Counter()  # parameter -> tests whose value is one
        self.chosen: Counter[str] = Counter()

    def learn(self, parameters: Iterable[dict[str, Any]]) -> None:
        """Count, for each parameter, the tests that have it and those where it is a library."""
        for params in parameters:
            for name, value in params.items():
                self.tests[name] += 1
                if is_library(value):
                    self.hits[name] += 1
                    self.libraries.setdefault(name, set()).add(name_of(value))

    def of(self, params: dict[str, Any]) -> str:
        """The parameter that names the backend of one test; '' if there is none."""
        if self.given:
            return self.given if self.given in params else ""
        likely = [name for name in params if 2 * self.hits[name] >= self.tests[name] > 0]
        usual = [name for name in USUAL if name in (likely or params)]
        rest = sorted(likely, key=lambda name: (-len(self.libraries[name]), name))
        found = next(iter(usual + rest), "")
        self.chosen[found] += bool(found)
        return found

    def explained(self) -> list[str]:
        """Sentences about what was chosen and why, or what was looked for."""
        if self.given:
            return [] if self.tests[self.given] else [self._advice(f"called {self.given}")]
        said = []
        for name, count in sorted(self.chosen.items()):
            if count and name != USUAL[0]:
                values = ", ".join(sorted(self.libraries.get(name, ())))
                why = f"its values are array libraries ({values})" if values else "by its name"
                said.append(f"backends are the values of {name}: {why}, in {count} tests")
        if not any(self.chosen.values()):
            looked = f"with array libraries as values, or called {' or '.join(USUAL)}"
            return [self._advice(looked)]
        return said

    def _advice(self, looked: str) -> str:
        seen = ", ".join(sorted(self.tests)) or "none"
        return (
            f"no test has a parameter {looked}: name the backend's with --scoreboard-axis NAME "
            f"(parameters seen: {seen})"
        )
