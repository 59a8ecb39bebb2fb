"""CUDA's autocast policies, as data: which overload of which operator is cast, and how.

The lists are those of the header in torch's wheel, so they are the installed version's own.
"""

from __future__ import annotations

import re

__all__ = ["BESIDE_HEADER", "HEADER", "WITH_DTYPE", "policies_of"]

HEADER = "include/ATen/autocast_mode.h"
"""Below the package torch."""

LISTS = {
    "LOWER_PRECISION_FP": "lower",
    "FP32": "fp32",
    "FP32_SET_OPT_DTYPE": "set_dtype",
    "DIFFERENT_REDISPATCH_SIGNATURE": "append_dtype",
    "PROMOTE": "promote",
}
"""The lists AT_FORALL_* and what they ask for."""

WITH_DTYPE = {"norm.Scalar": "norm.ScalarOpt_dtype", "norm.ScalarOpt_dim": "norm.ScalarOpt_dim_dtype"}
"""Overloads that take no dtype, and those that autocast calls instead: the list DIFFERENT_REDISPATCH_SIGNATURE."""

BESIDE_HEADER = {
    f"{op}.{overload}": "lower" for op in ("lstm", "gru", "rnn_tanh", "rnn_relu") for overload in ("input", "data")
}
"""On CUDA these run in cuDNN, whose `_cudnn_rnn` casts input, state and weights (ATen/cudnn/AutocastRNN.cpp).
The CPU has no such operator, so the cast stands where it is called from."""

_LIST = re.compile(r"#define AT_FORALL_(\w+)\(_\)((?:.*\\\n)*.*\n)")
_NAMED = re.compile(r'_\(ADD_NS\(\w+\),\s*\\?\s*"([\w.]+)"')
_PLAIN = re.compile(r"_\((\w+)(?:, (\w+))?\)")


def policies_of(header: str) -> dict[str, str]:
    """The policy of each overload, as `softmax.int` or `mm.default`, from the text of the header."""
    found: dict[str, str] = {}
    for name, body in _LIST.findall(header):
        policy = LISTS.get(name)
        if policy == "append_dtype":
            found.update((overload, policy) for overload in _NAMED.findall(body))
        elif policy is not None:
            found.update((f"{op}.{overload or 'default'}", policy) for op, overload in _PLAIN.findall(body))
    return found
