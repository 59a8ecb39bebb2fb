"""DT507: bfloat16 is chosen, or asked for, without a look at the hardware."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.diagnostic import Severity
from dtlint.infer.around import around
from dtlint.infer.names import path_of
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._assignments import assignments, bindings
from dtlint_rules._functions import defaults, own_nodes, parameters
from dtlint_rules._imports import is_a_test, writes_kernels
from dtlint_rules._kept import kept
from dtlint_rules._names import last_name, mentions, names, said
from dtlint_rules._parts import receiver, subject_of
from dtlint_rules._within import within

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Assign, Call, End

__all__ = ["HardwareDtypeCheck"]

_ASKING = {
    "torch.cuda.is_bf16_supported": "raises without CUDA before torch 2.5",
    "torch.cuda.get_device_capability": "raises without CUDA",
}
"""Questions about the GPU, and what they do where there is none."""
_UNTIL = {"torch.cuda.is_bf16_supported": (2, 5)}
"""The release from which on a question answers everywhere."""
_GUARDS = ("available", "cuda", "gpu", "device", "hip", "rocm", "nvidia", "bf16")
"""In names of a test that keeps the question from machines without CUDA."""
_CHECKS = frozenset(
    {"is_bf16_supported", "get_device_capability", "get_device_properties", "is_torch_bf16_gpu_available"}
)

_LOADING = frozenset({"from_pretrained", "from_single_file", "pipeline"})
"""What loads a model in a dtype that it is told."""
_HALF = re.compile(r"(?:^|_)(?:half|fp16)$")
"""How a switch for float16 is called."""


class HardwareDtypeCheck(Rule):
    """A half dtype is chosen without a look at the hardware, or the look raises where there is no CUDA.

    ## What it does
    Reports `torch.cuda.is_bf16_supported()` and comparisons of `torch.cuda.get_device_capability()` that no test for
    CUDA guards; and a setting `dtype = "bfloat16"` of a script for CUDA that picks the dtype of autocast by name, in a
    file that never asks what the GPU can do.

    As information, also float16 that is written out for a model in a program that falls back to the CPU, `model.half()`
    beside `device = "cuda" if torch.cuda.is_available() else "cpu"`, or that is given a device; and
    `half = device.type != "cpu"`. Files that import triton or another package of kernels run where there is a GPU, and are
    left alone.

    Conditional, and so reported with `--preview` only: half precision on any device but the CPU.

    ## Why it matters
    Both questions raise on a machine without CUDA, so that a script that would run on the CPU or on a Mac ends at its
    first line; `is_bf16_supported` does in releases before 2.5, and is left alone with `target-torch = "2.5"`. GPUs
    before Ampere have no bfloat16: V100 and T4 emulate it, at a fraction of the speed of float16, or refuse. float16 on
    a CPU is slow at best: in older releases of torch neither Linear nor convolutions have it there, "not implemented
    for 'Half'". And not all that is no CPU is good at it: GPUs of the GTX 16 series give NaN.

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
    triggers = ("is_bf16_supported", "get_device_capability", '"bfloat16', ".half", "float16", "half=")
    needs = (("is_bf16_supported", "get_device_capability", '"bfloat16', "*device*"),)
    calls = frozenset({*(name.rpartition(".")[2] for name in _ASKING), "half", *_LOADING})
    values = frozenset({ast.Compare, ast.Constant})

    def __init__(self) -> None:
        self.asked: list[tuple[ast.Call, str]] = []
        self.settings: list[ast.Assign] = []

    def on_call(self, call: Call) -> Iterable[Finding]:
        if call.target in _ASKING and not mentions(call.flow.conditions, _GUARDS):
            self.asked.append((call.node, call.target))
        elif (call.method == "half" or call.name in _LOADING) and not is_a_test(call.flow.tree):
            return _on_any_device(call)
        return ()

    def on_assign(self, assign: Assign) -> Iterable[Finding]:
        statement, value = assign.node, assign.expression
        if isinstance(value, ast.Compare) and _is_half_anywhere(assign):
            return (
                Finding(
                    value,
                    "Half is chosen on every device but the CPU, and not all of them support it",
                    help="Check the device: `torch.cuda.get_device_capability() >= (7, 0)`",
                    severity=Severity.INFO,
                    conditional=True,
                ),
            )
        if (
            assign.flow.function is None
            and isinstance(statement, ast.Assign)
            and isinstance(value, ast.Constant)
            and value.value == "bfloat16"
            and isinstance(assign.target, ast.Name)
            and "dtype" in assign.target.id
            and not assign.flow.conditions
        ):
            self.settings.append(statement)
        return ()

    def on_end(self, end: End) -> Iterator[Finding]:
        tree = end.flow.tree
        if end.flow.function is not None or (self.asked and (writes_kernels(tree) or is_a_test(tree))):
            return
        for node, target in self.asked:
            if not _is_guarded(node, tree) and (target.endswith("supported") or _decides(node, tree)):
                yield Finding(
                    node,
                    f"`{target.rpartition('.')[2]}` {_ASKING[target]}",
                    help="Check `torch.cuda.is_available()` first",
                    until=_UNTIL.get(target),
                )
        if self.settings and _CHECKS.isdisjoint(names(tree)) and _is_for_cuda(tree):
            for statement in self.settings:
                if _picks(tree, statement):
                    yield Finding(
                        statement,
                        "bfloat16 is the default for every GPU, but V100, T4 and older ones lack it",
                        help="Choose it if `torch.cuda.is_bf16_supported()`, else float16",
                        severity=Severity.INFO,
                    )


def _is_half_anywhere(assign: Assign) -> bool:
    """`half = device.type != "cpu"`."""
    target, test = assign.target, assign.expression
    if not isinstance(assign.node, ast.Assign) or not isinstance(target, ast.Name):
        return False
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    other = test.comparators[0]
    return (
        _HALF.search(target.id) is not None
        and isinstance(test.ops[0], ast.NotEq)
        and isinstance(other, ast.Constant)
        and other.value == "cpu"
        and "device" in (path_of(test.left) or "")
    )


def _on_any_device(call: Call) -> Iterator[Finding]:
    """`model.half()`, or `pipeline(..., torch_dtype=torch.float16, device=device)`, on what may well be the CPU."""
    flow = call.flow
    if flow.conditions and not _is_on_by_default(call):
        return
    subject: ast.expr
    chosen: ast.expr
    if call.method == "half":
        if call.node.args or not isinstance(call.node.func, ast.Attribute):
            return
        cast = call.node.func.value
        subject = cast if (path_of(cast) or "").startswith("self.") else subject_of(cast)
        chosen = call.node
    else:
        half = next((part.value for part in call.node.keywords if part.arg in ("torch_dtype", "dtype")), None)
        if half is None or path_of(half) not in ("torch.float16", "torch.half"):
            return
        subject, chosen = call.node, half
    if any(isinstance(part, (ast.IfExp, ast.Lambda)) for part in within(call.node, flow)):
        return
    if not _may_be_cpu(call, subject):
        return
    yield Finding(
        chosen,
        "float16 is used on any device: on the CPU it is slow, or raises in older releases of torch",
        help='Use `torch.float16 if device.type == "cuda" else torch.float32`',
        severity=Severity.INFO,
    )


def _is_on_by_default(call: Call) -> bool:
    """Does the cast stand under a switch alone that is on unless the caller says otherwise, `if use_fp16:` of a parameter
    `use_fp16=True`, in a function that falls back to the CPU itself, and never asks for both together?"""
    flow = call.flow
    switch = flow.conditions[0].test if len(flow.conditions) == 1 and flow.conditions[0].holds else None
    if (
        call.method != "half"
        or flow.function is None
        or not isinstance(switch, ast.Name)
        or not _HALF.search(switch.id)
    ):
        return False
    given = {parameter.arg: default for parameter, default in defaults(flow.function.node.args)}
    on = given.get(switch.id)
    if not isinstance(on, ast.Constant) or on.value is not True or switch.id in assignments(flow.scope):
        return False
    return _falls_back_alone(flow.scope)


@kept
def _falls_back_alone(scope: ast.AST) -> bool:
    """`self.device = "cuda" if torch.cuda.is_available() else "cpu"`, in a function that neither asks for the hardware
    elsewhere nor casts back."""
    own = own_nodes(scope)
    tests = [part for node in own if isinstance(node, ast.IfExp) and _is_fallback(node) for part in nodes([node.test])]
    asked = [node for node in own if isinstance(node, ast.Attribute) and node.attr in ("is_available", "float")]
    return bool(tests) and all(any(node is part for part in tests) for node in asked)


def _may_be_cpu(call: Call, subject: ast.expr) -> bool:
    """Is what is cast taken to a `device` that the program falls back to the CPU for, or that a caller names?"""
    flow = call.flow
    name = path_of(subject) if isinstance(subject, (ast.Name, ast.Attribute)) else None
    goes = _device_of(call.node)
    if goes is None and name is not None:
        goes = next((path for path in map(_device_of, _moves(flow.scope, name)) if path is not None), None)
    bound = next((name for name, value in bindings(flow.statement) if value is call.node), None)
    if goes is None and bound is not None:
        goes = next((path for path in map(_device_of, _moves(flow.scope, bound)) if path is not None), None)
    if goes is None:
        return False
    return any(parameter.arg == goes for parameter in parameters(flow.scope)) or _falls_back(flow.tree)


def _moves(scope: ast.AST, name: str) -> Iterator[ast.Call]:
    """The moves of what has a name in a function: `model.to(device)`."""
    for node in nodes([scope]):
        if isinstance(node, ast.Call) and last_name(node) == "to":
            subject = receiver(node) if "." in name else subject_of(node)
            if subject is not None and path_of(subject) == name:
                yield node


def _device_of(call: ast.Call) -> str | None:
    """The variable that names the device of `x.to(device)`, `pipeline(..., device=device)`."""
    for node in [
        *(call.args if last_name(call) == "to" else ()),
        *(part.value for part in call.keywords if part.arg == "device"),
    ]:
        path = path_of(node)
        if path is not None and path.rpartition(".")[2] in ("device", "DEVICE", "torch_device"):
            return path
    return None


@kept
def _falls_back(tree: ast.Module) -> bool:
    """`device = "cuda" if torch.cuda.is_available() else "cpu"`, anywhere in a module."""
    return any(map(_is_fallback, nodes([tree])))


def _is_fallback(node: ast.AST) -> bool:
    if not isinstance(node, ast.IfExp):
        return False
    words = [part.value for part in nodes([node.body, node.orelse]) if isinstance(part, ast.Constant)]
    return "cpu" in words and "is_available" in said(node.test)


def _is_guarded(node: ast.AST, tree: ast.Module) -> bool:
    """Does a test around the question, or one before it in the function, speak of CUDA or of a device?"""
    child = node
    for part in around(node, tree):
        if isinstance(part, ast.BoolOp) and any(_guards(value) for value in part.values if value is not child):
            return True
        if isinstance(part, ast.IfExp) and child is not part.test and _guards(part.test):
            return True
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return _guards(part, itself=node) or any(word in part.name.lower() for word in ("cuda", "gpu"))
        child = part
    return False


def _guards(test: ast.AST, itself: ast.AST | None = None) -> bool:
    asked = " ".join(said(itself)) if itself is not None else ""
    words = " ".join(said(test)).lower()
    if itself is None:
        return any(word in words for word in _GUARDS)
    return "is_available" in words and "is_available" not in asked


def _decides(node: ast.Call, tree: ast.Module) -> bool:
    """Is the capability compared, so that something is chosen by it?"""
    for part in around(node, tree):
        if isinstance(part, ast.Compare):
            return True
        if isinstance(part, ast.stmt):
            return False
    return False


def _is_for_cuda(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.Constant) and node.value == "cuda" for node in nodes([tree]))


def _picks(tree: ast.Module, statement: ast.Assign) -> bool:
    """Is the name the key of a table of torch's dtypes: `{"bfloat16": torch.bfloat16, ...}[dtype]`?"""
    target = statement.targets[0]
    assert isinstance(target, ast.Name)
    return any(
        isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Name)
        and node.slice.id == target.id
        and isinstance(node.value, (ast.Dict, ast.Name))
        for node in nodes([tree])
    )
