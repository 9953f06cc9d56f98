"""The results of `finfo` and `iinfo`: the fields of the standard as Python numbers, and a dtype."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class FloatInfo:
    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: Any


@dataclass(frozen=True)
class IntInfo:
    bits: int
    max: int
    min: int
    dtype: Any
