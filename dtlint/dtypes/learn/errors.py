"""What torch's exceptions say of dtypes, and how the CPU says that it has no kernel of one."""

from __future__ import annotations

import re

from dtlint.dtypes.explain import Error

__all__ = ["LACKS_KERNEL", "error_of"]

_SPEAKS_OF_DTYPES = re.compile(
    r"dtype|scalar ?type|not implemented for|data type|[Ii]nteger|[Ii]ntegral|[Ff]loat|complex|[Bb]ool|Half|\bLong\b|\bInt\b|\bByte\b|Double"
    r"|type promotion|Promotion|real-valued|can't be cast",
)

_SPEAKS_OF_VALUES = re.compile(
    r"without overflow|singular|positive-definite|out of (?:bounds|range)|[Ii]ndex \S+ is|must be in the range|shape|sizes?\b"
    r"|dimension|negative|converge|broadcast|elements|non-zero|storage|ZeroDivision|invalid combination of arguments|must be Tensor"
    r"|got an unexpected|INTERNAL ASSERT|probability|argument '\w+' must be|argument '\w+' \(position \d+\) must be|missing"
    r"|only be converted|doesn't apply to|between 0 and|strictly|stride|as a weight|is only supported on",
)


def error_of(error: BaseException) -> Error | None:
    """What the exception says of dtypes; None when it speaks of something else."""
    text = next(iter(str(error).strip().splitlines()), "").strip()
    if isinstance(error, NotImplementedError) and text.startswith("Could not run"):
        return None
    if not _SPEAKS_OF_DTYPES.search(text) or _SPEAKS_OF_VALUES.search(text) or len(text) > 240:
        return None
    return Error(re.sub(r"^\w*Error: ", "", text))


LACKS_KERNEL = re.compile(r"not implemented for|Low precision dtypes not supported|Unsupported dtype")
"""How the CPU says that it has no kernel of a dtype: the dispatch macros, torch.linalg, torch.fft."""
