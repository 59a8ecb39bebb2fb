"""DT502: tensor types of before torch 0.4, where they move the tensor, raise, or lose whole numbers."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix, Severity
from dtlint.dtypes.dtype import LEGACY_TENSORS
from dtlint.infer.domain.values import Const, Device, External, Tensor, Tuple, Unknown, choices
from dtlint.rule import Finding, Rule
from dtlint_rules._legacy import METHODS, TensorType, as_tensor, cast_by_method, is_list, tensor_type
from dtlint_rules._names import names_in
from dtlint_rules._needs import LEGACY, TORCH
from dtlint_rules._releases import is_tried

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.domain.values import Value
    from dtlint.infer.facts import Call, ModuleFacts
    from dtlint.source.place import Place

__all__ = ["LegacyConstructor"]

_CONSTRUCTORS = tuple(f"torch.{package}{name}" for name in (*LEGACY_TENSORS, "Tensor") for package in ("", "cuda."))
_FLOATS = frozenset({"torch.Tensor", "torch.FloatTensor"})
_ON = {"the CPU": "cpu", "CUDA": "cuda"}


class LegacyConstructor(Rule):
    """A legacy tensor type is used where it does more than to choose a dtype.

    ## What it does
    Reports `x.type(torch.FloatTensor)` and the like, unless `x` is on that device already; `isinstance(x,
    torch.FloatTensor)` of an argument or a part of one; legacy constructors that are given a tensor,
    `torch.LongTensor(index)`, a device that is not their own, `torch.LongTensor(index, device=device)`, or a dtype,
    `torch.Tensor(data, dtype=dtype)`; and `torch.Tensor` of whole numbers beyond 2**24. As information, it reports
    constructors of `torch.cuda` that are given a list, `torch.cuda.IntTensor([0])`. The other uses are those of
    `legacy-tensor`, DT509.

    ## Why it matters
    A legacy type is a dtype and a device. `x.type(torch.FloatTensor)` moves a tensor of the GPU to the CPU, and the
    next operation with its neighbours raises. `isinstance(x, torch.ByteTensor)` is False for the same bytes on a GPU,
    and the branch behind it is not taken there. `torch.LongTensor(x)` takes only a tensor that is int64 and on the CPU
    already, and raises TypeError for every other; told a device but the CPU it raises, too, and told a dtype it always
    does. `torch.Tensor` holds float32, in which 16777217 is 16777216. The constructors of `torch.cuda` know no other
    device, and torch warns that they "are no longer recommended".

    ## Example
    ```python
    import torch

    def masked(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return x * mask.type(torch.FloatTensor)
    ```

    ## Use instead
    ```python
    import torch

    def masked(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return x * mask.float()
    ```

    ## Fix safety
    The fix of `x.type(...)` is unsafe because the tensor stays where it is. That of a list of numbers for a constructor
    that is told a device or a dtype, `torch.tensor([1.0], device=device, dtype=torch.float32)`, is unsafe because it begins
    to work; for a constructor of `torch.cuda` it should keep value, dtype and device, but has not been tried on a GPU. The
    other forms have none.

    ## References
    - [torch.Tensor.type](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.type.html)
    - [torch.Tensor](https://docs.pytorch.org/docs/stable/tensors.html)
    """

    code, name = "DT502", "legacy-constructor"
    fix = Applicability.UNSAFE
    triggers = (".type", "Tensor(", "Tensoras", *LEGACY)
    needs = (TORCH,)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for call in facts.methods("type"):
            yield from _cast(call, facts)
        for call in facts.calls("builtins.isinstance"):
            yield from _asked(call, facts)
        for call in facts.calls(*_CONSTRUCTORS):
            yield from _made(call, facts)


def _cast(call: Call, facts: ModuleFacts) -> Iterator[Finding]:
    """`x.type(torch.FloatTensor)`, of what may be on another device."""
    kind = tensor_type(call.argument(0, "dtype")) if len(call.args) == 1 else None
    if kind is None or isinstance(call.args[0], Const) or facts.around.is_discarded(call.node):
        return  # strings are DT503's, and what is thrown away DT104's
    receiver, method = call.receiver, METHODS.get(kind.dtype)
    is_there = isinstance(receiver, Tensor) and receiver.device == _ON[kind.device]
    if method is not None and isinstance(receiver, (Tensor, Unknown)) and not is_there:
        yield Finding(
            call.node,
            f"`{kind.name}` also moves the tensor to {kind.device}",
            help=f"Use `.{method}()`",
            fix=partial(cast_by_method, call.node, method),
        )


def _asked(call: Call, facts: ModuleFacts) -> Iterator[Finding]:
    """`isinstance(x, torch.ByteTensor)` of an argument, or of a part of one; who demands the type may well mean the device,
    too."""
    subject, asked = call.argument_node(0, ""), call.argument(1, "")
    if subject is None or asked is None or _is_demanded(call.node, facts):
        return
    if not _is_given(facts, subject):
        return  # what the function makes or loads itself can be on the CPU for certain
    classes = asked.items if isinstance(asked, Tuple) else (asked,)
    known = [kind for one in classes if (kind := tensor_type(one)) is not None]
    others = [one for one in classes if tensor_type(one) is None]
    if not known or any(kind.device != "the CPU" for kind in known):
        return
    if all(isinstance(one, External) and one.name.startswith("builtins.") for one in others):
        yield Finding(
            call.node,
            f"`{known[0].name}` is {known[0].dtype} on the CPU only: this is False on other devices",
            help=f"Use `{ast.unparse(subject)}.dtype == torch.{known[0].dtype}`",
        )


def _is_given(facts: ModuleFacts, node: ast.AST, seen: frozenset[ast.AST] = frozenset()) -> bool:
    """Does the caller give it: an argument, or what an argument holds, `batch["mask"]`, `batch.get("mask")`?"""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        if isinstance(node, ast.Call):
            if not isinstance(node.func, ast.Attribute) or node.func.attr not in ("get", "pop"):
                return False
            node = node.func
        node = node.value
    if not isinstance(node, ast.Name):
        return False
    found = facts.around.definitions(node)
    seen |= {node}
    return bool(found) and all(
        isinstance(one, ast.arg) or one in seen or _is_given(facts, one, seen | {one}) for one in found
    )


def _is_demanded(node: ast.Call, facts: ModuleFacts) -> bool:
    """Is it asserted, `if not isinstance(...): raise`, or one of the types that were demanded above?"""
    statement = facts.around.statement(node)
    if any(guard.holds and "isinstance" in names_in(guard.test) for guard in facts.around.guards(node)):
        return True
    negated = isinstance(facts.around.parent(node), ast.UnaryOp)
    return isinstance(statement, ast.Assert) or (
        negated and isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Raise)
    )


def _made(call: Call, facts: ModuleFacts) -> Iterator[Finding]:
    """A constructor that raises, that is of CUDA alone, or that rounds what it is given."""
    name, node, kind = call.name, call.node, tensor_type(External(call.name))
    given = call.args[0] if len(call.args) == 1 else None
    device = call.keywords.get("device")
    if "dtype" in call.keywords:
        yield Finding(
            node,
            f"`{name}` takes no dtype: this raises TypeError",
            help=f"Use `torch.tensor(..., dtype={ast.unparse(_given(node, 'dtype'))})`, or `torch.empty` of sizes",
            severity=Severity.ERROR,
            fix=partial(_as_function, node) if _is_data(node) else None,
        )
    elif device is not None and device != Const(None):
        yield from _told_device(call, kind, device, facts)
    elif kind is not None and isinstance(given, Tensor) and given.dtypes:
        if given.device != _ON[kind.device] or given.dtypes != {kind.dtype}:
            yield Finding(
                node,
                f"`{name}` raises unless the tensor is {kind.dtype} and on {kind.device} already",
                help=f"Use `.to(torch.{kind.dtype})`, or the tensor itself",
            )
    elif name in _FLOATS and len(node.args) == 1 and (number := _beyond_float32(node.args[0])) is not None:
        yield Finding(node, f"{number} is not exact in float32", help="Use `torch.tensor(...)`, which keeps integers")
    elif kind is not None and kind.device == "CUDA" and len(node.args) == 1 and _is_data(node):
        yield Finding(
            node,
            f"`{kind.name}` is deprecated, and works on CUDA only",
            help=f"Use `torch.tensor(..., dtype=torch.{kind.dtype}, device=...)`",
            severity=Severity.INFO,
            fix=partial(_as_tensor, node, kind.dtype, "cuda") if is_list(node) else None,
        )


def _told_device(call: Call, kind: TensorType | None, device: Value, facts: ModuleFacts) -> Iterator[Finding]:
    """`torch.LongTensor(lengths, device=device)`: it raises for any device but its own."""
    own, types = _ON[kind.device] if kind is not None else "cpu", {_type(one) for one in choices(device)}
    told = _given(call.node, "device")
    asks = any(not set(names_in(told)).isdisjoint(names_in(guard.test)) for guard in facts.around.guards(call.node))
    if types == {own} or is_tried(facts, call.node) or (None in types and asks):
        return
    certain = own not in types and None not in types
    if kind is None and any(facts.calls("torch.set_default_tensor_type", "torch.set_default_device")):
        return
    yield Finding(
        call.node,
        f"`{call.name}` is told a device that is not its own: this raises"
        if certain
        else f"`{call.name}` raises for every device but {'CUDA' if own == 'cuda' else 'the CPU'}",
        help="Use `torch.tensor(..., dtype=..., device=...)`, or `torch.empty` of sizes",
        severity=Severity.ERROR if certain else Severity.WARNING,
        fix=partial(_as_tensor, call.node, "float32" if kind is None else kind.dtype, "")
        if is_list(call.node)
        else None,
    )


def _type(device: Value) -> str | None:
    if isinstance(device, Const):
        return device.value.partition(":")[0] if isinstance(device.value, str) else "cuda"
    return device.type if isinstance(device, Device) else None


def _given(node: ast.Call, name: str) -> ast.expr:
    return next(keyword.value for keyword in node.keywords if keyword.arg == name)


def _is_data(node: ast.Call) -> bool:
    """Is the argument data for certain, and neither a size nor a tensor, which `torch.tensor` warns of?"""
    return len(node.args) == 1 and isinstance(node.args[0], (ast.List, ast.Tuple, ast.ListComp))


def _as_function(node: ast.Call, place: Place) -> Fix:
    function, imports = place.spelled("torch.tensor")
    return Fix(f"Use `{function}`", (place.replace(node.func, function), *imports), Applicability.UNSAFE)


def _as_tensor(node: ast.Call, dtype: str, device: str, place: Place) -> Fix:
    made = as_tensor(node, dtype, place, device=device)
    return Fix(made.message, made.edits, Applicability.UNSAFE)


def _beyond_float32(node: ast.expr) -> int | None:
    """A whole number in a list that float32 rounds."""
    numbers = (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))
    listed = isinstance(node, (ast.List, ast.Tuple))
    return next((one for one in numbers if listed and type(one) is int and _is_rounded(one)), None)


def _is_rounded(number: int) -> bool:
    """Has it more than the 24 bits of float32, from its first to its last?"""
    return bool(number) and (abs(number) // (number & -number)).bit_length() > 24
