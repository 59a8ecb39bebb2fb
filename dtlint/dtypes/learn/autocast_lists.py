"""The ops of each autocast policy by device, as the dispatcher and the header in torch's wheel have them."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["KEYS", "autocast_lists", "registered"]

POLICIES = {
    "LOWER_PRECISION_FP": "lower",
    "FP32": "fp32",
    "FP32_SET_OPT_DTYPE": "fp32_set_opt_dtype",
    "DIFFERENT_REDISPATCH_SIGNATURE": "fp32_append_dtype",
    "PROMOTE": "promote",
}
"""The lists AT_FORALL_* of ATen/autocast_mode.h and the policy of each."""

BESIDE_HEADER = {
    "cuda": {"binary_cross_entropy": "banned", "cudnn_convolution": "lower", "cudnn_convolution_transpose": "lower"},
    "xpu": {"binary_cross_entropy": "banned"},
    "mps": {"_mps_convolution": "lower", "batch_norm": "fp32"},
}
"""Ops that are registered beside the header's lists, in aten/src/ATen/autocast_mode.cpp."""

KEYS = {"cpu": "AutocastCPU", "cuda": "AutocastCUDA", "mps": "AutocastMPS", "xpu": "AutocastXPU"}
"""The dispatch key of each device's autocast."""


def registered(device: str) -> frozenset[str]:
    """The aten ops that a device's autocast takes part in, as the dispatcher has them."""
    names = torch._C._dispatch_get_registrations_for_dispatch_key(KEYS[device])
    return frozenset(name.removeprefix("aten::").partition(".")[0] for name in names if name.startswith("aten::"))


def _header_policies() -> dict[str, str]:
    """The policy of each op in the lists of the header in torch's wheel."""
    text = (Path(torch.__file__).parent / "include/ATen/autocast_mode.h").read_text()
    found: dict[str, str] = {}
    for name, body in re.findall(r"#define AT_FORALL_(\w+)\(_\)((?:.*\\\n)*.*\n)", text):
        for op in re.findall(r"_\((?:ADD_NS\()?(\w+)", body) if name in POLICIES else ():
            found.setdefault(op, POLICIES[name])
    return found


def autocast_lists(observed_on_cpu: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The ops of each policy by device. mps casts where the others set the optional dtype."""
    header = _header_policies()
    lists: dict[str, dict[str, str]] = {}
    for device in KEYS:
        by_policy: dict[str, set[str]] = defaultdict(set)
        for op in registered(device):
            if device == "cpu":
                policy = observed_on_cpu.get(op)
            else:
                policy = header.get(op) or BESIDE_HEADER[device].get(op)
                policy = "fp32" if device == "mps" and policy == "fp32_set_opt_dtype" else policy
            by_policy[policy or "unknown"].add(op)
        lists[device] = {policy: " ".join(sorted(ops)) for policy, ops in sorted(by_policy.items())}
    return lists
