"""DT606: the two ways to set the precision of float32 products, against each other."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.domain.values import Const, External
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._releases import is_for_some_releases, is_tried

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts

__all__ = ["Float32PrecisionApis"]

_BACKENDS = "torch.backends."
_MATMUL, _CUDNN = "matmul", "cudnn"
_NEW = {
    "fp32_precision": (_MATMUL, _CUDNN),
    "cuda.matmul.fp32_precision": (_MATMUL,),
    "cudnn.fp32_precision": (_CUDNN,),
    "cudnn.conv.fp32_precision": (_CUDNN,),
    "cudnn.rnn.fp32_precision": (_CUDNN,),
}
_LEGACY = {"cuda.matmul.allow_tf32": _MATMUL, "cudnn.allow_tf32": _CUDNN}


class Float32PrecisionApis(Rule):
    """The precision of float32 products is set in the new way, and read in the old one.

    ## What it does
    Reports `torch.get_float32_matmul_precision()` and reads of `allow_tf32` behind a write of `fp32_precision`, in the same
    function or among the statements of the module, where the old setting says something else by then.

    ## Why it matters
    From torch 2.9 on there are two APIs: `allow_tf32` and `torch.set_float32_matmul_precision`, and `fp32_precision` of
    each backend. Writes of the new one leave what the old one says, and reading that raises "you have used mix of the
    legacy and new APIs". torch.compile reads it, too, up to torch 2.12.

    ## Example
    ```python
    import torch

    torch.backends.cuda.matmul.fp32_precision = "tf32"
    precision = torch.get_float32_matmul_precision()
    ```

    ## Use instead
    ```python
    import torch

    torch.backends.cuda.matmul.fp32_precision = "tf32"
    precision = torch.backends.cuda.matmul.fp32_precision
    ```

    ## References
    - [TensorFloat-32](https://docs.pytorch.org/docs/stable/notes/cuda.html#tensorfloat-32-tf32-on-ampere-and-later-devices)
    """

    code, name = "DT606", "float32-precision-apis"
    triggers = ("fp32_precision",)
    needs = (("allow_tf32", "set_float32_matmul_precision", "get_float32_matmul_precision"),)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        scopes: dict[ast.AST | None, list[tuple[int, int, ast.expr, str, str, object]]] = {}
        for node, kind, name, value in _steps(facts):
            if not is_for_some_releases(facts, node) and not is_tried(facts, node) and not facts.around.guards(node):
                steps = scopes.setdefault(facts.around.function(node), [])
                steps.append((node.lineno, node.col_offset, node, kind, name, value))
        own = sorted(scopes.pop(None, []), key=lambda one: one[:2])
        yield from _judged(own)
        for steps in scopes.values():  # the module's own statements have run by then
            yield from _judged([*(one for one in own if one[3] != "read"), *sorted(steps, key=lambda one: one[:2])])


def _steps(facts: ModuleFacts) -> Iterator[tuple[ast.expr, str, str, object]]:
    """Writes and reads of the settings: "new", "legacy" with what is written, "read"."""
    for one in facts.assignments():
        owner = one.operands[0] if one.operands else None
        if isinstance(one.node, ast.Attribute) and isinstance(owner, External):
            name = f"{owner.name}.{one.node.attr}".removeprefix(_BACKENDS)
            value = one.result.value if isinstance(one.result, Const) else None
            if name in _NEW or name in _LEGACY:
                yield one.node, "new" if name in _NEW else "legacy", name, value
    for call in facts.calls("torch.set_float32_matmul_precision"):
        given = call.constant(0, "precision")
        yield call.node, "legacy", "cuda.matmul.allow_tf32", None if given is None else given != "highest"
    for call in facts.calls("torch.get_float32_matmul_precision"):
        yield call.node, "read", "cuda.matmul.allow_tf32", None
    for part in nodes([facts.tree]):
        if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Load):
            owner = facts.value(part.value)
            name = f"{owner.name}.{part.attr}".removeprefix(_BACKENDS) if isinstance(owner, External) else ""
            if name in _LEGACY:
                yield part, "read", name, None


def _judged(steps: list[tuple[int, int, ast.expr, str, str, object]]) -> Iterator[Finding]:
    """A run of the steps in order: what each backend does, and what the old setting says of it."""
    old: dict[str, object] = {_MATMUL: False, _CUDNN: True}
    new: dict[str, tuple[object, ast.expr] | None] = {_MATMUL: None, _CUDNN: None}
    for _, _, node, kind, name, value in steps:
        if kind == "new":
            for backend in _NEW[name]:
                new[backend] = (value == "tf32" if value in ("tf32", "ieee") else None, node)
        elif kind == "legacy":
            old[_LEGACY[name]], new[_LEGACY[name]] = value, None  # it writes both
        else:
            written = new[_LEGACY[name]]
            said = old[_LEGACY[name]]
            if written is not None and None not in (written[0], said) and written[0] is not said:
                yield Finding(
                    node,
                    "Raises from torch 2.9 on: the setting was written as `fp32_precision`, and is read in the old way",
                    help="Use `fp32_precision` for both",
                    notes=((written[1], "written here"),),
                )
