"""DT507: the hardware is asked for bfloat16 where there may be no CUDA."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.rule import Finding, Rule
from dtlint_rules._imports import is_a_test, writes_kernels
from dtlint_rules._names import said
from dtlint_rules._releases import all_guards, is_tried

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import Call, ModuleFacts

__all__ = ["HardwareDtypeCheck"]

_ASKING = {
    "torch.cuda.is_bf16_supported": "raises without CUDA before torch 2.5",
    "torch.cuda.get_device_capability": "raises without CUDA",
}
"""Questions about the GPU, and what they do where there is none."""
_UNTIL = {"torch.cuda.is_bf16_supported": (2, 5)}
"""The release from which on a question answers everywhere."""
_OF_CUDA = ("available", "cuda", "gpu", "device", "hip", "rocm", "nvidia", "bf16")
"""What a test speaks of that keeps the question from machines without CUDA."""


class HardwareDtypeCheck(Rule):
    """The GPU is asked what it can do where there may be none, and the question raises.

    ## What it does
    Reports `torch.cuda.is_bf16_supported()` and comparisons of `torch.cuda.get_device_capability()` that no test for
    CUDA guards, and that choose a dtype or a path. Files that import triton or another package of kernels run where there
    is a GPU, and are left alone; so are questions about a device that the caller names, and functions that are
    called for CUDA by their names.

    ## Why it matters
    Both questions raise on a machine without CUDA, so that a script that would run on the CPU or on a Mac ends at its
    first line; `is_bf16_supported` does in releases before 2.5, and is left alone with `target-torch = "2.5"`.

    ## Example
    ```python
    import torch

    dtype = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    ```

    ## Use instead
    ```python
    import torch

    supported = torch.cuda.is_available() and torch.cuda.is_bf16_supported()
    dtype = torch.bfloat16 if supported else torch.float16
    ```

    ## References
    - [torch.cuda.is_bf16_supported](https://docs.pytorch.org/docs/stable/generated/torch.cuda.is_bf16_supported.html)
    - [pytorch#132303](https://github.com/pytorch/pytorch/issues/132303)
    """

    code, name = "DT507", "hardware-dtype-check"
    triggers = ("is_bf16_supported", "get_device_capability")

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        if writes_kernels(facts.tree) or is_a_test(facts.tree):
            return
        for call in facts.calls(*_ASKING):
            if not call.args and not _is_guarded(call, facts) and _decides(call, facts):
                yield Finding(
                    call.node,
                    f"`{call.name.rpartition('.')[2]}` {_ASKING[call.name]}",
                    help="Check `torch.cuda.is_available()` first",
                    until=_UNTIL.get(call.name),
                )


def _is_guarded(call: Call, facts: ModuleFacts) -> bool:
    """Does a test around the question, or its function's name or another line of it, speak of CUDA?"""
    if is_tried(facts, call.node) or any(_speaks_of_cuda(guard.test) for guard in all_guards(facts, call.node)):
        return True
    function = facts.around.function(call.node)
    name = getattr(function, "name", "").lower()
    return "cuda" in name or "gpu" in name or (function is not None and "is_available" in said(function))


def _speaks_of_cuda(test: ast.expr) -> bool:
    words = " ".join(said(test)).lower()
    return any(word in words for word in _OF_CUDA)


def _decides(call: Call, facts: ModuleFacts) -> bool:
    """Is a capability compared, so that something is chosen by it? Whether bfloat16 is supported is asked for that alone."""
    return call.name.endswith("supported") or isinstance(
        next((one for one in facts.around.around(call.node) if isinstance(one, (ast.Compare, ast.stmt))), None),
        ast.Compare,
    )
