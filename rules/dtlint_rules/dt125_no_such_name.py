"""DT125: a dtype, a cast or a part of autocast that torch does not have."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix, Severity
from dtlint.infer.domain.values import Dtype, Tensor
from dtlint.infer.names import path_of
from dtlint.rule import Finding, Rule
from dtlint_rules._casts import CAST_METHODS, SHORT
from dtlint_rules._fixes import respell
from dtlint_rules._module_walks import walk_over
from dtlint_rules._needs import attributes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import Call, ModuleFacts
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

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for node, name in facts.names(*_SPELLED, *_MOVED):
            if isinstance(node, ast.Attribute) and not _is_asked_for(facts, node, node.attr):
                yield _missing(node, name)
        for call in facts.methods(*_CASTS, *METHODS, *CALLED):
            if not _is_asked_for(facts, call.node, call.method):
                yield from _no_method(facts, call)


def _missing(node: ast.Attribute, name: str) -> Finding:
    if name in _MOVED:
        return Finding(node, f"torch has no `{name}`: this raises AttributeError", help=f"Use {_MOVED[name]}")
    dtype = _SPELLED[name]
    return Finding(
        node,
        f"torch has no `{name.removeprefix('torch.')}`: this raises AttributeError",
        help=f"Use `{dtype}`",
        fix=partial(respell, node=node, name=dtype, applicability=Applicability.SAFE),
    )


def _no_method(facts: ModuleFacts, call: Call) -> Iterator[Finding]:
    """`x.half_()`, `x.float16()` and `torch.float16(x)`."""
    name, bare, owner = call.method, not call.node.args and not call.node.keywords, call.node.func
    walk = walk_over(facts, owner.value) if isinstance(owner, ast.Attribute) else None
    is_tensor = isinstance(call.receiver, Tensor) or (walk is not None and walk.kind != "modules")
    if isinstance(facts.value(call.node.func), Dtype):
        yield Finding(
            call.node,
            f"`torch.{name}` is a dtype, not a function: calling it raises TypeError",
            help=f"Use `.to(torch.{name})`, or `torch.tensor(..., dtype=torch.{name})`",
        )
    elif name in _CASTS and (is_tensor or isinstance(call.argument(0, "dtype"), Dtype)):
        yield Finding(
            call.node,
            f"Tensors have no method `{name}`: this raises AttributeError",
            help=f"Use the result of `.{name[:-1]}({'' if bare else '...'})`",
        )
    elif name in METHODS and is_tensor:
        yield Finding(
            call.node,
            f"Tensors have no method `{name}`: this raises AttributeError",
            help=f"Use `.{METHODS[name]}()`" if bare else f"Use `.to(torch.{_DTYPES.get(name, name)}, ...)`",
            fix=partial(_renamed, name=METHODS[name]) if bare else None,
        )


def _renamed(place: Place, name: str) -> Fix:
    return Fix(f"Call it `{name}`", (place.rename_method(name),), Applicability.SAFE)


def _is_asked_for(facts: ModuleFacts, node: ast.expr, name: str) -> bool:
    """Does the file name it elsewhere, as in `hasattr(x, "float32")` and `def half_`, or does a test or a `try` see to it that
    it is there?"""
    for one in facts.around.around(node):
        if isinstance(one, ast.Try) and any(map(_catches, one.handlers)):
            return True
        if isinstance(one, ast.With) and any(word in ast.unparse(one.items[0]) for word in ("aises", "suppress")):
            return True
    for guard in facts.around.guards(node):
        test = guard.test
        of_class = isinstance(test, ast.Call) and path_of(test.func) == "isinstance" and len(test.args) == 2
        if "version" in ast.unparse(test) or (of_class and not ast.unparse(test).endswith(("Tensor)", "Parameter)"))):
            return True
    around = facts.around
    return (
        any(one.name == name for one in around.functions())
        or any(one.name == name for one in around.of_kind(ast.ClassDef))
        or any(one.value == name for one in around.of_kind(ast.Constant))
        or any(one.attr == name and isinstance(one.ctx, ast.Store) for one in around.of_kind(ast.Attribute))
    )


def _catches(handler: ast.ExceptHandler) -> bool:
    caught = "Exception" if handler.type is None else ast.unparse(handler.type)
    return any(name in caught for name in ("AttributeError", "TypeError", "Exception"))
