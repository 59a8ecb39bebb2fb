"""DT606: the two ways to set the precision of float32 products, against each other."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.infer.domain.values import Const, External
from dtlint.rule import Finding, Rule
from dtlint_rules._releases import is_for_some_releases, is_tried

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dtlint.infer.facts import Guard, ModuleFacts

__all__ = ["Float32PrecisionApis"]

_BACKENDS = "torch.backends."
_EVERY, _CUDA, _MATMUL, _CONV, _RNN = "", "cuda", "cuda.matmul", "cudnn.conv", "cudnn.rnn"
_NEW: dict[str, str] = {
    "fp32_precision": _EVERY,
    "cuda.matmul.fp32_precision": _MATMUL,
    "cudnn.fp32_precision": _CUDA,
    "cudnn.conv.fp32_precision": _CONV,
    "cudnn.rnn.fp32_precision": _RNN,
}
"""The setting that each writes. That of cuDNN as a whole is the one of all ops on CUDA, products among them."""
_ABOVE = {_MATMUL: (_CUDA, _EVERY), _CONV: (_CUDA, _EVERY), _RNN: (_CUDA, _EVERY)}
"""Where an op's setting is taken from that nobody wrote."""
_USUAL = {_MATMUL: False, _CONV: True, _RNN: True}
"""Is TF32 allowed where nothing is written at all?"""
_LEGACY = {"cuda.matmul.allow_tf32": (_MATMUL,), "cudnn.allow_tf32": (_CONV, _RNN)}
"""What a read of the old settings is held against, and a write of them writes, too."""
_GET = "get_float32_matmul_precision"
"""This one raises where products are in TF32 and it would say "highest", and not the other way round."""


@dataclass(frozen=True)
class _Step:
    """A write of a new setting ("new") or an old one ("legacy"), or a read of an old one ("read")."""

    node: ast.expr
    kind: str
    name: str
    value: object = None

    @property
    def at(self) -> tuple[int, int]:
        return self.node.lineno, self.node.col_offset


class Float32PrecisionApis(Rule):
    """The precision of float32 products is set in the new way, and read in the old one.

    ## What it does
    Reports `torch.get_float32_matmul_precision()` and reads of `allow_tf32` behind a write of `fp32_precision`, in the same
    function or among the statements of the module, where the old setting says something else by then.

    ## Why it matters
    From torch 2.9 on there are two APIs: `allow_tf32` and `torch.set_float32_matmul_precision`, and `fp32_precision` of
    each backend. Writes of the new one leave what the old one says, and reading that raises "you have used mix of the
    legacy and new APIs". So does `torch.backends.cudnn.allow_tf32` where convolutions and RNNs differ. torch.compile reads
    the old ones, too, up to torch 2.12.

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
        scopes: dict[ast.AST | None, list[_Step]] = {}
        for step in _steps(facts):
            if not is_for_some_releases(facts, step.node) and not is_tried(facts, step.node):
                scopes.setdefault(facts.around.function(step.node), []).append(step)
        own = sorted(scopes.pop(None, []), key=lambda one: one.at)
        yield from _judged(facts, own)
        for steps in scopes.values():  # the module's own statements have run by then
            before = [one for one in own if one.kind != "read" and not facts.around.guards(one.node)]
            yield from _judged(facts, [*before, *sorted(steps, key=lambda one: one.at)])


def _steps(facts: ModuleFacts) -> Iterator[_Step]:
    for one in facts.assignments():
        owner = one.operands[0] if one.operands else None
        if isinstance(one.node, ast.Attribute) and isinstance(owner, External):
            name = f"{owner.name}.{one.node.attr}".removeprefix(_BACKENDS)
            value = one.result.value if isinstance(one.result, Const) else None
            if name in _NEW or name in _LEGACY:
                yield _Step(one.node, "new" if name in _NEW else "legacy", name, value)
    for call in facts.calls("torch.set_float32_matmul_precision"):
        given = call.constant(0, "precision")
        yield _Step(call.node, "legacy", "cuda.matmul.allow_tf32", None if given is None else given != "highest")
    for call in facts.calls(f"torch.{_GET}"):
        yield _Step(call.node, "read", _GET)
    for part in facts.around.of_kind(ast.Attribute):
        if isinstance(part.ctx, ast.Load):
            owner = facts.value(part.value)
            name = f"{owner.name}.{part.attr}".removeprefix(_BACKENDS) if isinstance(owner, External) else ""
            if name in _LEGACY:
                yield _Step(part, "read", name)


def _judged(facts: ModuleFacts, steps: list[_Step]) -> Iterator[Finding]:
    """The reads that raise, each behind the writes that have certainly run, and with no other in between."""
    for read in steps:
        if read.kind != "read":
            continue
        held = set(map(_told, facts.around.guards(read.node)))
        written: dict[str, object] = {}
        old: dict[str, object] = {name: _USUAL[of[0]] for name, of in _LEGACY.items()}
        last: ast.expr | None = None
        for step in steps:
            if step.kind == "read" or step.node is read.node or _is_behind(facts, step, read):
                continue
            value = step.value if held.issuperset(map(_told, facts.around.guards(step.node))) else None
            if step.kind == "legacy":
                old[step.name] = value
                written.update(dict.fromkeys(_LEGACY[step.name], value))
            else:
                written[_NEW[step.name]] = _ALLOWS.get(value) if isinstance(value, str) else None
                last = step.node
        if last is not None and _raises(read.name, written, old):
            yield Finding(
                read.node,
                "Raises from torch 2.9 on: the setting was written as `fp32_precision`, and is read in the old way",
                help="Use `fp32_precision` for both",
                notes=((last, "written here"),),
            )


_ALLOWS = {"tf32": True, "ieee": False}


def _told(guard: Guard) -> tuple[str, bool]:
    return ast.dump(guard.test), guard.holds


def _is_behind(facts: ModuleFacts, step: _Step, read: _Step) -> bool:
    """Does a step of the same function come behind the read?"""
    return facts.around.function(step.node) is facts.around.function(read.node) and step.at > read.at


def _raises(name: str, written: Mapping[str, object], old: Mapping[str, object]) -> bool:
    """Does a read raise after what was written? Not where some of it is not known."""
    of = _LEGACY["cuda.matmul.allow_tf32" if name == _GET else name]
    now = [_in_force(one, written) for one in of]
    said = old["cuda.matmul.allow_tf32" if name == _GET else name]
    if None in now or (said is None and len(set(now)) == 1):
        return False
    if name == _GET:
        return now[0] is True and said is False
    return len(set(now)) > 1 or now[0] is not said


def _in_force(op: str, written: Mapping[str, object]) -> object:
    """Is TF32 allowed for an op's kind? None where that is not known."""
    for one in (op, *_ABOVE[op]):
        if one in written:
            return written[one]
    return _USUAL[op]
