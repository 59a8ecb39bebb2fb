"""DT508: quantized tensors and the quantization of torch.ao, which torchao replaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.diagnostic import Severity
from dtlint.rule import Finding, Rule
from dtlint_rules._imports import imports
from dtlint_rules._needs import TORCH, attributes

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call, End, Reference

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
    references = _DTYPES
    needs = (TORCH,)

    def __init__(self) -> None:
        self.told: set[str] = set()
        self.named: list[tuple[ast.expr, str]] = []
        self.lines: set[int] = set()
        """Lines with a call that has been reported, where its dtype needs no report of its own."""

    def on_call(self, call: Call) -> Iterable[Finding]:
        return self._made(call, call.target) if call.target in _MAKERS or call.target.startswith(_PACKAGES) else ()

    def _made(self, call: Call, name: str) -> Iterator[Finding]:
        if call.flow.version_gated or "torchao" in imports(call.flow.tree):
            return
        self.lines.update(range(call.node.lineno, (call.node.end_lineno or call.node.lineno) + 1))
        if name not in self.told:
            self.told.add(name)
            yield Finding(
                call.node, f"`{name}` is deprecated and will be removed", help="Use `torchao.quantization.quantize_`"
            )

    def on_reference(self, reference: Reference) -> Iterable[Finding]:
        if not reference.flow.version_gated:
            self.named.append((reference.node, reference.name))
        return ()

    def on_end(self, end: End) -> Iterator[Finding]:
        if end.flow.function is not None or "torchao" in imports(end.flow.tree):
            return
        for node, name in self.named:
            if name not in self.told and node.lineno not in self.lines:
                self.told.add(name)
                yield Finding(
                    node,
                    f"`{name}` is deprecated with torch's quantized tensors, and will be removed",
                    help="Store torch.int8 with a scale",
                )
