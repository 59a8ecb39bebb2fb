"""The name that the table has for a dtype of torch, and the dtype of a name: `torch.float16` is "float16"."""

from __future__ import annotations

from typing import cast

import torch

__all__ = ["name_of", "torch_dtype"]


def name_of(dtype: torch.dtype) -> str:
    """The dtype's name in the table."""
    return str(dtype).removeprefix("torch.")


def torch_dtype(name: str) -> torch.dtype:
    """The dtype of a name in the table."""
    return cast("torch.dtype", getattr(torch, name))
