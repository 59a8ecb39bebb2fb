"""What torch's exceptions say of dtypes, and how the CPU says that it has no kernel of one."""

from __future__ import annotations

import re

from dtlint.dtypes.explain import Error

__all__ = ["error_of", "lacks_kernel"]

_SPEAKS_OF_DTYPES = re.compile(
    r"dtype|scalar ?type|not implemented for|data type|[Ii]nteger|[Ii]ntegral|[Ff]loat|complex|[Bb]ool|Half|\bLong\b|\bInt\b|\bByte\b|Double"
    r"|type promotion|Promotion|real-valued|can't be cast",
)
"""Words of the messages in which torch refuses a dtype."""

_SPEAKS_OF_VALUES = re.compile(
    r"without overflow|singular|positive-definite|out of (?:bounds|range)|[Ii]ndex \S+ is|must be in the range|shape|sizes?\b"
    r"|dimension|negative|converge|broadcast|elements|non-zero|storage|ZeroDivision|invalid combination of arguments|must be Tensor"
    r"|got an unexpected|INTERNAL ASSERT|probability|argument '\w+' must be|argument '\w+' \(position \d+\) must be|missing"
    r"|only be converted|doesn't apply to|between 0 and|strictly|stride|as a weight|is only supported on",
)
"""Words of those that name a dtype, and refuse a shape, a value or a way to call."""

_LACKS_KERNEL = re.compile(r"not implemented for|Low precision dtypes not supported|Unsupported dtype")
"""How the CPU says that it has no kernel of a dtype: the dispatch macros, torch.linalg, torch.fft."""

LONG = 240
"""A message of more letters than this is not taken to speak of dtypes."""


def error_of(error: BaseException) -> Error | None:
    """What the exception says of dtypes; None when it speaks of something else."""
    text = next(iter(str(error).strip().splitlines()), "").strip()
    if isinstance(error, NotImplementedError) and text.startswith("Could not run"):
        return None
    if not _SPEAKS_OF_DTYPES.search(text) or _SPEAKS_OF_VALUES.search(text) or len(text) > LONG:
        return None
    return Error(re.sub(r"^\w*Error: ", "", text))


def lacks_kernel(error: Error) -> bool:
    """Does the CPU say that it has no kernel of a dtype?"""
    return bool(_LACKS_KERNEL.search(error.message))
