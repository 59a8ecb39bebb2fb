"""DT312: float64 comes along with an array of NumPy, where its default is float64 and torch's is float32."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix
from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.domain.values import Array, Tensor, Unknown
from dtlint.rule import Finding, Rule
from dtlint_rules._needs import TORCH
from dtlint_rules._refusals import is_layer, is_refused, once, operand

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dtlint.infer.domain.values import Value
    from dtlint.infer.facts import Call, ModuleFacts, Operation
    from dtlint.source.place import Place

__all__ = ["NumpyFloat64Leak"]

_TAKING = ("torch.from_numpy", "torch.tensor", "torch.as_tensor", "torch.asarray")
"""Functions of torch that give a tensor the dtype of an array."""
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)
"""The operators that promote: `@` raises."""
_FLOAT64 = frozenset({"float64"})
_SPEAKING = frozenset({"float64", "double", "set_default_dtype", "set_default_tensor_type"})
"""Names by which a file shows that it computes in float64."""


class NumpyFloat64Leak(Rule):
    """A float64 array of NumPy becomes a tensor, which then meets float32 or goes into a layer.

    ## What it does
    Reports arithmetic of a floating tensor with a tensor that `torch.from_numpy`, `torch.tensor` or `torch.as_tensor`
    made of a float64 array, or with such an array itself; and a layer with weights that is called with one, or a module
    that hands it on to a layer. So, too, where the tensor is a buffer, a parameter or an attribute of a module, which
    meets the module's other weights. Files that speak of float64 themselves are left alone, and so is a layer of which
    DT302 says that it raises.

    Reported with `--preview` only, for it is slower and no more: a result that is cast back to float32 wherever it is
    used, `(x * window).float()`.

    ## Why it matters
    NumPy computes in float64 by default: `np.linspace(0, 1, 9)`, `pixels / 255.0`. Arithmetic promotes the other tensor,
    so that memory doubles and CUDA computes at a fraction of its speed, MPS raises, and the next layer raises "mat1 and
    mat2 must have the same dtype, but got Double and Float". A scalar such as `np.float64(2)` does no harm.

    ## Example
    ```python
    import numpy as np
    import torch


    def windowed(signal: torch.Tensor) -> torch.Tensor:
        window = torch.from_numpy(np.hanning(256))
        return signal.float() * window
    ```

    ## Use instead
    ```python
    import numpy as np
    import torch


    def windowed(signal: torch.Tensor) -> torch.Tensor:
        window = torch.from_numpy(np.hanning(256)).float()
        return signal.float() * window
    ```

    ## Fix safety
    The fix casts the new tensor to float32. It is unsafe, for digits are lost if float64 was meant.

    ## References
    - [torch.from_numpy](https://docs.pytorch.org/docs/stable/generated/torch.from_numpy.html)
    - [Type promotion](https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc)
    """

    code, name = "DT312", "numpy-float64-leak"
    fix = Applicability.UNSAFE
    triggers = ("numpy",)
    needs = (TORCH,)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        if any(node.attr in _SPEAKING for node in facts.around.of_kind(ast.Attribute)):
            return
        told: set[ast.AST] = set()
        held = _held(facts)
        for seen in facts.evaluations(ast.BinOp):
            for node, value, other in zip(
                (seen.node.left, seen.node.right), seen.operands, reversed(seen.operands), strict=True
            ):
                if not isinstance(seen.node.op, _ARITHMETIC) or seen.node in told or not _is_lifted(other):
                    continue
                one = _of_module(facts, held, seen.node, value)
                if one is not None and _of_module(facts, held, seen.node, other) is None and one.made not in told:
                    told.add(one.made)
                    yield _found_in_module(facts, one, seen.node, "makes what it meets float64")
                made = _leak(facts, node, value, held)
                if made is not None:
                    told.add(seen.node)
                    text = "This float64 comes from NumPy, and makes the result float64"
                    leak = _found(seen.node, made, value, text)
                    leak.conditional = _is_cast_back(facts, seen.node)
                    yield leak
        for call in once(facts.operations(is_layer)):
            given, weight = operand(call.what), next(iter(call.what.args), None)
            if call.behind or weight is None or given is None or given.node is None or given.value == weight:
                continue
            if is_refused(call.what, "DT302"):
                continue
            one = _of_module(facts, held, call.node, given.value)
            if one is not None and _of_module(facts, held, call.node, weight) is None and one.made not in told:
                told.add(one.made)
                name = call.what.op.rpartition(".")[2]
                yield _found_in_module(facts, one, call.node, f"reaches `{name}`, which raises for its float32 weights")
            made = _leak(facts, given.node, given.value, held)
            if made is not None and isinstance(weight, Tensor) and weight.dtypes != _FLOAT64:
                name = call.what.op.rpartition(".")[2]
                text = f"This float64 comes from NumPy: `{name}` raises for its float32 weights"
                yield _found(call.node, made, given.value, text)
                told.add(call.node)
        for call in facts.operations(is_layer):
            given, weight = operand(call.what), next(iter(call.what.args), None)
            if given is None or not isinstance(weight, Tensor) or weight.dtypes == _FLOAT64:
                continue
            passed = _passed(facts, call.what) if getattr(given.value, "dtypes", None) == _FLOAT64 else None
            if passed is not None and passed.call not in told:
                told.add(passed.call)
                name = call.what.op.rpartition(".")[2]
                text = (
                    f"This float64 comes from NumPy: `{name}`, which it is passed on to, raises for its float32 weights"
                )
                yield _found(passed.call, passed.made, facts.value(passed.given), text)


@dataclass(frozen=True, slots=True)
class _Passed:
    """A float64 of NumPy that a call hands on: the call, its argument, and where it came in."""

    call: ast.Call
    given: ast.expr
    made: ast.expr


def _passed(facts: ModuleFacts, operation: Operation) -> _Passed | None:
    """The float64 of NumPy that one of the calls which led to a layer was given."""
    for step in operation.calls:
        if step.module is not facts.module or not isinstance(step.node, ast.Call):
            continue
        for given in (*step.node.args, *(keyword.value for keyword in step.node.keywords)):
            made = _leak(facts, given, facts.value(given))
            if made is not None:
                return _Passed(step.node, given, made)
    return None


def _found(node: ast.expr, made: ast.expr, value: Value, text: str) -> Finding:
    return Finding(
        node,
        text,
        help="Cast it to float32: `.float()`, or `.astype(np.float32)` in NumPy",
        notes=((made, "float64 since here"),) if made.lineno != node.lineno else (),
        fix=partial(_fix, made) if isinstance(value, Tensor) else None,
    )


def _is_cast_back(facts: ModuleFacts, node: ast.expr, further: int = 4) -> bool:
    """Is a result cast to another floating dtype, or to one that is not known, before anything else but arithmetic, or wherever its name is read?"""
    around = facts.around
    at: ast.AST = node
    while True:
        inner, at = at, around.parent(at)  # type: ignore[assignment]
        if isinstance(at, ast.Call):
            value = facts.value(at)
            dtypes = value.dtypes if isinstance(value, (Tensor, Unknown)) else None
            method = at.func.attr if isinstance(at.func, ast.Attribute) and inner is at.func else ""
            if method in _CASTS and ((dtypes and dtypes <= FLOATING - _FLOAT64) or (method == "type" and not dtypes)):
                return True
            if not method and (dtypes != _FLOAT64 or inner not in at.args):
                return False
        elif isinstance(at, ast.Assign):
            (target, *others) = at.targets
            if others or not isinstance(target, ast.Name) or not further:
                return False
            reads = [
                one
                for one in around.within(around.scope(at))
                if isinstance(one, ast.Name) and one.id == target.id and isinstance(one.ctx, ast.Load)
                if at.value in around.definitions(one)
            ]
            return bool(reads) and all(_is_cast_back(facts, one, further - 1) for one in reads)
        elif not isinstance(at, (ast.BinOp, ast.UnaryOp, ast.Attribute)) and not (
            isinstance(at, ast.Subscript) and at.value is inner
        ):
            return False


_CASTS = frozenset({"float", "to", "type", "type_as", "half", "bfloat16"})


@dataclass(frozen=True, slots=True)
class _Held:
    """A float64 tensor that a class keeps.

    Attributes:
        made: the expression that brings it out of NumPy.
        kept: what is kept.
        kind: `buffer`, `parameter` or `attribute`.
    """

    made: ast.expr
    kept: ast.expr
    kind: str


def _held(facts: ModuleFacts) -> dict[tuple[ast.ClassDef, str], _Held]:
    """The float64 tensors of NumPy that classes keep, by class and by how the class calls them: `self.window`. What is bound
    in two ways is left out."""
    found: dict[tuple[ast.ClassDef, str], _Held | None] = {}
    kept: list[tuple[ast.AST, str, ast.expr, str]] = []
    for call in facts.calls("torch.nn.Module.register_buffer", "torch.nn.Module.register_parameter"):
        name, given = call.constant(0, "name"), call.argument_node(1, "tensor") or call.argument_node(1, "param")
        if isinstance(name, str) and given is not None:
            kept.append((call.node, f"self.{name}", given, "buffer"))
    for seen in facts.assignments():
        statement = facts.around.statement(seen.node)
        if isinstance(seen.node, ast.Attribute) and isinstance(statement, ast.Assign):
            kept.append((seen.node, ast.unparse(seen.node), statement.value, "attribute"))
    for node, path, given, kind in kept:
        owner = _class(facts, node)
        if owner is None or not path.startswith("self."):
            continue
        made = facts.around.definition(given)
        if (
            isinstance(made, ast.Call)
            and made.args
            and any(call.name == "torch.nn.Parameter" for call in facts.calls_at(made))
        ):
            given, kind = made.args[0], "parameter"
        source = _leak(facts, given, facts.value(given))
        here = found.get((owner, path))
        one = None if source is None else _Held(source, given, kind)
        found[owner, path] = one if (owner, path) not in found or (here is not None and here.made is source) else None
    return {key: one for key, one in found.items() if one is not None}


def _class(facts: ModuleFacts, node: ast.AST) -> ast.ClassDef | None:
    """The class in whose method a node stands."""
    return next((one for one in facts.around.around(node) if isinstance(one, ast.ClassDef)), None)


def _of_module(
    facts: ModuleFacts, held: Mapping[tuple[ast.ClassDef, str], _Held], node: ast.AST, value: Value
) -> _Held | None:
    """What makes a value float64, of what the class around a node keeps: as its caller may have it, the dtype of a weight is
    a symbol."""
    owner = _class(facts, node) if held else None
    symbol = value.symbol if isinstance(value, Tensor) and value.dtypes is None else None
    if owner is None or symbol is None:
        return None
    return next((held[owner, atom.text] for atom in symbol.of if (owner, atom.text) in held), None)


def _found_in_module(facts: ModuleFacts, one: _Held, node: ast.expr, happens: str) -> Finding:
    return Finding(
        one.made,
        f"This {one.kind} is float64, as it comes from NumPy, and {happens}",
        help="Cast it to float32: `.float()`, or `.astype(np.float32)` in NumPy",
        notes=((node, "they meet here"),),
        fix=partial(_fix, one.made) if isinstance(facts.value(one.made), Tensor) else None,
    )


def _leak(
    facts: ModuleFacts, node: ast.expr, value: Value, held: Mapping[tuple[ast.ClassDef, str], _Held] | None = None
) -> ast.expr | None:
    """Where NumPy's float64 comes in: an array, or the call that made a tensor of one, perhaps for an attribute."""
    if isinstance(value, Array):
        return node if value.dtypes == _FLOAT64 and value.scalar is False else None
    if not isinstance(value, Tensor) or value.dtypes != _FLOAT64 or value.rank == 0:
        return None
    for made in facts.around.made_of(node):
        if isinstance(made, ast.Call) and any(_takes_array(call) for call in facts.calls_at(made)):
            return made
        owner = _class(facts, node) if held and isinstance(made, ast.Attribute) else None
        if held and owner is not None and (owner, ast.unparse(made)) in held:
            return held[owner, ast.unparse(made)].made
    return None


def _takes_array(call: Call) -> bool:
    """Does it make a float64 tensor of an array?"""
    array = call.args[0] if call.name in _TAKING and call.args else None
    of_float64 = isinstance(call.result, Tensor) and call.result.dtypes == _FLOAT64
    return isinstance(array, Array) and array.scalar is False and of_float64 and "dtype" not in call.keywords


def _is_lifted(value: Value) -> bool:
    """Is it a floating tensor of fewer bits, or one whose dtype the program decides: weights, what a layer computes?"""
    if not isinstance(value, (Tensor, Unknown)) or (isinstance(value, Tensor) and value.rank == 0):
        return False
    if isinstance(value, Unknown):  # what was cast, `x.float()`, has operators for being a tensor
        return value.dtypes is not None and bool(value.dtypes) and value.dtypes <= FLOATING - _FLOAT64
    if value.dtypes is not None:
        return value.dtypes == FLOATING or value.dtypes <= FLOATING - _FLOAT64
    return value.symbol is not None and any(atom.floating for atom in value.symbol.of)


def _fix(made: ast.expr, place: Place) -> Fix:
    return Fix("Cast it to float32", (place.replace(made, f"{place.text(made)}.float()"),), Applicability.UNSAFE)
