"""DT508: quantized tensors and the quantization of torch.ao, which torchao replaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.diagnostic import Severity
from dtlint.rule import Finding, Rule
from dtlint_rules._imports import imports
from dtlint_rules._needs import TORCH, attributes
from dtlint_rules._releases import is_for_some_releases

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts

__all__ = ["LegacyQuantizedDtype"]

_MAKERS = frozenset(
    f"torch.{name}"
    for name in ("quantize_per_tensor", "quantize_per_tensor_dynamic", "quantize_per_channel", "dequantize")
)
_DTYPES = frozenset(f"torch.{name}" for name in ("qint8", "quint8", "qint32", "quint4x2", "quint2x4"))
_PACKAGES = ("torch.ao.quantization.", "torch.quantization.", "torch.ao.nn.quantized.", "torch.nn.quantized.")


class LegacyQuantizedDtype(Rule):
    """Quantization by `torch.ao` and the quantized dtypes, which torchao replaces.

    ## What it does
    Reports `torch.quantize_per_tensor` and its kin, the dtypes `torch.qint8`, `quint8` and `qint32`, and functions of
    `torch.ao.quantization` and `torch.quantization`: each name once in a file. Files that import torchao are left alone:
    they know the one beside the other.

    ## Why it matters
    torch 2.13 warns that both are deprecated and will be removed. Few operators know the quantized dtypes, and
    `torch.compile` and export do not. torchao stores int8 with its scale in a tensor subclass that they understand.

    ## Example
    ```python
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(8, 8))
    small = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)
    ```

    ## Use instead
    ```python
    import torch

    def shrink(model: torch.nn.Module) -> None:
        from torchao.quantization import Int8WeightOnlyConfig, quantize_

        quantize_(model, Int8WeightOnlyConfig())
    ```

    ## References
    - [torchao: quantization](https://docs.pytorch.org/ao/stable/quantization_overview.html)
    - [Deprecation of torch.ao.quantization](https://github.com/pytorch/ao/issues/2259)
    """

    code, name, severity = "DT508", "legacy-quantized-dtype", Severity.INFO
    since = (2, 8)
    triggers = (*attributes((*_MAKERS, *_DTYPES)), ".quantization", ".quantized")
    needs = (TORCH,)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        if "torchao" in imports(facts.tree):
            return
        told: set[str] = set()
        made: set[ast.stmt] = set()
        for call in facts.calls(*_MAKERS, *_PACKAGES):
            if is_for_some_releases(facts, call.node):
                continue
            made.add(facts.around.statement(call.node))  # its dtype needs no report of its own
            if call.name not in told:
                told.add(call.name)
                message = f"`{call.name}` is deprecated and will be removed"
                yield Finding(call.node, message, help="Use `torchao.quantization.quantize_`")
        for node, name in facts.names(*_DTYPES):
            if name not in told and not is_for_some_releases(facts, node) and facts.around.statement(node) not in made:
                told.add(name)
                message = f"`{name}` is deprecated with torch's quantized tensors, and will be removed"
                yield Finding(node, message, help="Store torch.int8 with a scale")
