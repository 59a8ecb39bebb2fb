"""DT125: a dtype, a cast or a part of autocast that torch does not have."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix, Severity
from dtlint.infer.survey import scopes
from dtlint.infer.values import Dtype, External, Tensor
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._casts import CAST_METHODS, SHORT
from dtlint_rules._fixes import respell
from dtlint_rules._kept import kept
from dtlint_rules._known import is_looped_tensor
from dtlint_rules._meanings import written_dtype
from dtlint_rules._names import last_name
from dtlint_rules._needs import attributes
from dtlint_rules._no_methods import gives
from dtlint_rules._parts import receiver, same
from dtlint_rules._tried import is_tried

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dtlint.infer.events import Call, Reference
    from dtlint.source.place import Place

__all__ = ["NoSuchName"]

_DTYPES = SHORT | {
    **dict.fromkeys(("f16", "float_16"), "float16"),
    **dict.fromkeys(("bfloat", "bfloat_16"), "bfloat16"),
    **dict.fromkeys(("f32", "float_32"), "float32"),
    **dict.fromkeys(("f64", "float_64"), "float64"),
}
"""Names that others give to dtypes, and torch's own. Seen to be missing on torch 2.13."""
_SPELLED = {f"torch.{name}": f"torch.{dtype}" for name, dtype in _DTYPES.items()}
_MOVED = {
    "torch.cuda.autocast": '`torch.autocast("cuda")`',
    "torch.cuda.GradScaler": '`torch.amp.GradScaler("cuda")`',
    "torch.cuda.custom_fwd": '`torch.amp.custom_fwd(device_type="cuda")`',
    "torch.cuda.custom_bwd": '`torch.amp.custom_bwd(device_type="cuda")`',
    **{
        f"torch.amp.cuda.{name}": f"`torch.amp.{name}`, which is told the device"
        for name in ("autocast", "GradScaler", "custom_fwd", "custom_bwd")
    },
}
"""What looks like a part of autocast, and what there is in its place."""
_CASTS = frozenset(f"{method}_" for method in CAST_METHODS)
"""Casts in place, as the names of in-place methods are made."""
METHODS = {
    **dict.fromkeys(("fp16", "float16"), "half"),
    "bf16": "bfloat16",
    **dict.fromkeys(("fp32", "float32"), "float"),
    **dict.fromkeys(("fp64", "float64"), "double"),
    "int64": "long",
    "int32": "int",
    "int16": "short",
    "int8": "char",
    "uint8": "byte",
}
"""Dtypes by whose names no tensor has a method, and what the cast is called."""
_TOO = frozenset({"bfloat16", "half", "float", "double", "long", "int", "short", "bool"})
"""Dtypes by whose names tensors have methods."""
CALLED = _TOO | (METHODS.keys() - SHORT.keys())
"""Dtypes that are taken for functions: `np.float16(x)` is one."""


class NoSuchName(Rule):
    """A dtype, a cast or a part of autocast is named that torch does not have.

    ## What it does
    Reports `torch.fp16`, `torch.bf16`, `torch.fp32` and their kin; casts with a name that ends in `_`, such as
    `x.half_()` and `x.to_(torch.bfloat16)`, or that is a dtype's, `x.float16()`; a dtype that is called,
    `torch.long(x)`; and `torch.cuda.autocast`, `torch.cuda.GradScaler`,
    `torch.amp.cuda.custom_fwd` and their kin. Imports of such names, and code that asks first, by `hasattr` or by catching
    AttributeError, are left alone.

    ## Why it matters
    Each of them raises AttributeError where it is reached. Branches for half precision are the ones that nobody runs on
    the CPU of a test, so it is on the first GPU that the program dies. A tensor is never cast in place: there is no
    method for it under any name.

    ## Example
    ```python
    import torch


    def compress(x: torch.Tensor) -> torch.Tensor:
        return x.to(torch.bf16)
    ```

    ## Use instead
    ```python
    import torch


    def compress(x: torch.Tensor) -> torch.Tensor:
        return x.to(torch.bfloat16)
    ```

    ## Fix safety
    The fix writes the name of the dtype, or of the method that casts to it, as torch has it. It is safe: the code raises
    as it stands. Casts in place, dtypes that are called and parts of autocast are not rewritten.

    ## References
    - [torch.dtype](https://docs.pytorch.org/docs/stable/tensor_attributes.html#torch.dtype)
    - [torch.amp](https://docs.pytorch.org/docs/stable/amp.html)
    """

    code, name = "DT125", "no-such-name"
    severity = Severity.ERROR
    fix = Applicability.SAFE
    triggers = (
        *attributes((*_SPELLED, *_MOVED, *SHORT)),
        *attributes(_CASTS, of_self=True),
        # calls alone: the dtypes themselves stand in nearly every file
        *sorted(f".{name}(" for name in CALLED - _TOO),
        *sorted(f"{torch}.{name}(" for name in _TOO for torch in ("torch", "th")),
    )
    calls = _CASTS | METHODS.keys() | CALLED
    references = frozenset({*_SPELLED, *_MOVED})

    def on_reference(self, reference: Reference) -> Iterable[Finding]:
        name, node = reference.name, reference.node
        if not isinstance(node, ast.Attribute) or reference.flow.version_gated:
            return ()  # an import of it fails on the spot, or is caught
        if name in _MOVED:
            return (Finding(node, f"torch has no `{name}`: this raises AttributeError", help=f"Use {_MOVED[name]}"),)
        dtype = _SPELLED[name]
        return (
            Finding(
                node,
                f"torch has no `{name.removeprefix('torch.')}`: this raises AttributeError",
                help=f"Use `{dtype}`",
                fix=partial(respell, node=node, name=dtype, applicability=Applicability.SAFE),
            ),
        )

    def on_call(self, call: Call) -> Iterable[Finding]:
        """A cast by a name that it has not, of a tensor, or of something that is given a dtype of torch."""
        name = call.method
        if name not in _CASTS:
            return self._named_by_dtype(call)
        if not (_is_tensor(call) or _is_told(call)) or _is_there(call):
            return ()
        return (
            Finding(
                call.node,
                f"Tensors have no method `{name}`: this raises AttributeError",
                help=f"Use the result of `.{name[:-1]}({'...' if call.node.args else ''})`",
            ),
        )

    def _named_by_dtype(self, call: Call) -> Iterable[Finding]:
        """`x.float16()`, and `torch.float16(x)`."""
        name, held = call.method, call.receiver
        if isinstance(held, External) and held.name == "torch" and name in CALLED:
            if _is_there(call):
                return ()
            return (
                Finding(
                    call.node,
                    f"`torch.{name}` is a dtype, not a function: calling it raises TypeError",
                    help=f"Use `.to(torch.{name})`, or `torch.tensor(..., dtype=torch.{name})`",
                ),
            )
        if name not in METHODS or not isinstance(held, Tensor) or _is_there(call):
            return ()
        bare = not call.node.args and not call.node.keywords
        return (
            Finding(
                call.node,
                f"Tensors have no method `{name}`: this raises AttributeError",
                help=f"Use `.{METHODS[name]}()`" if bare else f"Use `.to(torch.{_DTYPES.get(name, name)}, ...)`",
                fix=partial(_renamed, name=METHODS[name]) if bare else None,
            ),
        )


def _renamed(place: Place, name: str) -> Fix:
    return Fix(f"Call it `{name}`", (place.rename_method(name),), Applicability.SAFE)


def _is_there(call: Call) -> bool:
    """May the name be there after all: because the file gives it to something, or asks for it, or because what is called
    is of a class of its own? Or is the call made to see whether it raises?"""
    flow, name = call.flow, call.method
    return (
        flow.version_gated
        or gives(flow.tree, name)
        or _is_asked_for(flow.tree, name)
        or is_tried(call, ("AttributeError", "TypeError"))
        or any(condition.holds and _is_of_class(receiver(call.node), condition.test) for condition in flow.conditions)
    )


@kept
def _is_asked_for(tree: ast.Module, name: str) -> bool:
    """Does a file ask whether there is such a name, `hasattr(x, "float32")`?"""
    return any(
        last_name(call) in ("hasattr", "getattr")
        and any(isinstance(given, ast.Constant) and given.value == name for given in call.args)
        for _, own in scopes(tree)
        for call in own.calls
    )


def _is_of_class(held: ast.expr | None, test: ast.expr) -> bool:
    """Does a test ask whether something is of a class that may have methods of its own, `isinstance(x, Rich)`?"""
    for node in nodes([test]):
        if isinstance(node, ast.Call) and last_name(node) == "isinstance" and len(node.args) == 2:
            if held is None or not same(node.args[0], held):
                continue
            asked = node.args[1]
            classes = asked.elts if isinstance(asked, ast.Tuple) else [asked]
            if any(last_name(each) not in _TENSORS for each in classes):
                return True
    return False


_TENSORS = frozenset({"Tensor", "Parameter"})


def _is_told(call: Call) -> bool:
    """Is a dtype of torch given, or what is spelled like one?"""
    if isinstance(call.argument(0, "dtype"), Dtype):
        return True
    node = call.argument_node(0, "dtype")
    return node is not None and written_dtype(node) is not None


def _is_tensor(call: Call) -> bool:
    """Is the method called on a tensor, or on what a loop takes from `model.parameters()`?"""
    owner = receiver(call.node)
    return isinstance(call.receiver, Tensor) or (owner is not None and is_looped_tensor(owner, call.flow))
