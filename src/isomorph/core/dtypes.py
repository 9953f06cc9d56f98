"""The dtypes that functions of arrays compute in: that of indices, that of several arrays together,
and at least single precision for what is counted or summed.
"""

from __future__ import annotations

from typing import Any


def index_dtype(xp: Any) -> Any:
    """The dtype of indices: int64, or int32 where the framework is set to 32 bits."""
    return xp.__array_namespace_info__().default_dtypes()["indexing"]


def float_dtype(xp: Any) -> Any:
    """The dtype of floats that are made of integers."""
    return xp.__array_namespace_info__().default_dtypes()["real floating"]


def promoted(xp: Any, *arrays: Any) -> list[Any]:
    """The arrays in their common dtype."""
    first = arrays[0].dtype
    if all(x.dtype == first for x in arrays):
        return list(arrays)
    dtype = xp.result_type(*arrays)
    return [x if x.dtype == dtype else xp.astype(x, dtype) for x in arrays]


def widened(xp: Any, x: Any) -> Any:
    """`x`, or half precision as float32: float16 has no odd number above 2048, and nothing above
    65504, so that sums, counts and places would be wrong in it.
    """
    return xp.astype(x, xp.float32) if is_half(xp, x.dtype) else x


def is_half(xp: Any, dtype: Any) -> bool:
    """Whether a dtype is float16 or bfloat16."""
    return xp.is_float(dtype) and not xp.is_complex(dtype) and xp.finfo(dtype).bits < 32


def returned(xp: Any, x: Any, dtype: Any) -> Any:
    """A result in the dtype that it should have."""
    return x if x.dtype == dtype else xp.astype(x, dtype)
