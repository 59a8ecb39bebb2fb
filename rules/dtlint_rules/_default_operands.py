"""A tensor of the default dtype that meets the tensor it was made after: in arithmetic and what joins tensors, which promote
that one, in a product, which raises, in place of a layer's bias, or in a model."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.rule import Finding
from dtlint_rules._assignments import assignments
from dtlint_rules._buffers import is_whole
from dtlint_rules._effects import JOINING, TORCH, UNTOLD
from dtlint_rules._factories import MAKERS, fix_after, into_model, is_in, is_noise, made_after, roots_told, says
from dtlint_rules._half import is_of_any_float
from dtlint_rules._meanings import names_dtype
from dtlint_rules._names import last_name
from dtlint_rules._origin import Kind
from dtlint_rules._parts import given, receiver
from dtlint_rules._sinks import RAISING, escapes
from dtlint_rules._subjects import flat, joined
from dtlint_rules._texts import as_operand, short
from dtlint_rules._within import parents_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dtlint.infer.events import Flow
    from dtlint_rules._origin import Origin
    from dtlint_rules._origins import Origins

__all__ = ["meeting"]

_MIXERS = re.compile(r"noise|noisy|q_sample|mix|lerp|blend|interpolate", re.IGNORECASE)
"""Names of functions that add up what they are given."""
_PRODUCTS = frozenset({"conv1d", "conv2d", "conv3d", "linear", "grid_sample"})
_SOLVERS = frozenset({"triangular_solve", "cholesky_solve", "lu_solve", "solve", "lstsq", "quantile", "nanquantile"})
"""Functions that half does not have, and that take tensors of float32 or of float64, but not of both."""
_OF_TORCH_ALONE = frozenset({"solve", "lstsq", "tensordot", "inner", "cdist"})
"""Those of them whose names other packages have as well, and that are no methods of tensors for the most part."""
_ALIKE = frozenset({"tensordot", "inner", "cdist", "vdot"})
_REFUSING = RAISING | _SOLVERS | _ALIKE | {"grid_sample", "lerp"}
_RECURRENT = re.compile(r"(?:^|_)(?:lstm|gru|rnn|cells?)\d*$", re.IGNORECASE)
"""Names of recurrent layers, whose states have to be of the dtype of their input."""


def meeting(
    factory: ast.Call,
    after: dict[Origin, ast.expr | None],
    operations: Sequence[ast.BinOp | ast.Call],
    origins: Origins,
    place: Flow,
    *,
    half: bool,
) -> Finding | None:
    """Where a factory's tensor meets one that it was made after: what raises first, and then what promotes. Where no half
    gets to, float64 does, and only what raises tells of it."""
    noise, instead = is_noise(factory), _instead(factory, origins, place)
    sizes = {path for argument in flat(factory.args) if (path := path_of(argument)) is not None}
    promoted: Finding | None = None
    for node in operations:
        operands = _operands(node, noise)
        if (
            operands is None
            or not is_in(factory, operands, origins)
            or _is_cast_before(factory, node, operations, origins)
        ):
            continue
        if noise and isinstance(node, ast.Call) and (model := _configured(node, factory, origins, place.scope)):
            return into_model(factory, node, model)
        if instead is not None and _raises(node) and len({origin for part in operands for origin in origins[part]}) > 1:
            return _in_place_of(factory, node, instead)
        for operand in operands if _joins(node) else ():
            origin = next((origin for origin in roots_told(origins[operand], factory) if origin in after), None)
            if origin is None or is_in(factory, [operand], origins) or is_whole(origin.text, place):
                continue
            if _is_number(operand, sizes):
                continue
            if _raises(node):
                if _is_of_half(node, half=half) or (
                    _is_alone(factory, operands, origins) and _is_as_given(operand, origins) and is_of_any_float(place)
                ):
                    return _finding(factory, node, operand, after[origin], half=half)
                continue
            if (
                half
                and promoted is None
                and not _is_padding(factory, operand)
                and escapes(node, place.scope, place.tree)
            ):
                promoted = _finding(factory, node, operand, after[origin], half=half)
    return promoted


def _is_number(operand: ast.expr, sizes: set[str]) -> bool:
    """Is it made of sizes of the factory's tensor: `width**0.5`, of `torch.randn(2, width) / width**0.5`?"""
    names = {part.id for part in ast.walk(operand) if isinstance(part, ast.Name)}
    return bool(names) and names <= sizes


def _is_cast_before(
    factory: ast.Call, node: ast.expr, operations: Sequence[ast.BinOp | ast.Call], origins: Origins
) -> bool:
    """Is a name that holds a factory's tensor cast to the dtype of another on the way, `rotation.to(turn.dtype)`, if only
    where a loop runs?"""
    return any(
        isinstance(cast, ast.Call)
        and factory.lineno < cast.lineno < node.lineno
        and isinstance(held := receiver(cast), ast.Name)
        and (last_name(cast) == "type_as" or (last_name(cast) == "to" and any(map(names_dtype, given(cast)))))
        and is_in(factory, [held], origins)
        for cast in operations
    )


def _operands(node: ast.expr, noise: bool) -> list[ast.expr] | None:
    """The expressions that meet in an operation, or go into a call; None if it is neither."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if not isinstance(node, ast.Call):
        return None
    if last_name(node) in JOINING or _is_product(node):
        return joined(node)
    return flat(node.args) if noise or _joins(node) else None


def _joins(node: ast.expr) -> bool:
    """Are the operands of an operation promoted to one dtype, or refused?"""
    if isinstance(node, ast.BinOp):
        return not isinstance(node.op, (ast.Mod, ast.FloorDiv))
    if not isinstance(node, ast.Call):
        return False
    name = last_name(node)
    return name in JOINING or _is_product(node) or any(known.search(name) for known in (_RECURRENT, _MIXERS))


def _is_product(node: ast.Call) -> bool:
    """Is it what is computed of several tensors, which have to be of one dtype?"""
    name = last_name(node)
    if name not in _PRODUCTS and name not in _SOLVERS and name not in _ALIKE:
        return False
    return name not in _OF_TORCH_ALONE or path_of(receiver(node) or node) in TORCH


def _raises(node: ast.expr) -> bool:
    """Does an operation refuse operands of two dtypes?"""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.MatMult)
    return last_name(node) in _REFUSING or _RECURRENT.search(last_name(node)) is not None


def _is_of_half(node: ast.expr, *, half: bool) -> bool:
    """May an operation be given half? Else it is float64 that it refuses beside float32."""
    return half and last_name(node) not in _SOLVERS


def _is_alone(factory: ast.Call, operands: Sequence[ast.expr], origins: Origins) -> bool:
    """Is the factory's tensor an operand by itself? What of float64 meets it before makes it float64."""
    return any({origin.node for origin in origins[operand]} == {factory} for operand in operands)


def _is_as_given(operand: ast.expr, origins: Origins) -> bool:
    """Has a tensor the dtype that the caller brings, with no cast and no factory in what it is computed of?"""
    return not any(part.kind in (Kind.CAST, Kind.MADE) for root in origins[operand] for part in root.closure())


def _is_padding(factory: ast.Call, operand: ast.expr) -> bool:
    """Is it one for each token, in front of a mask that says which tokens count? Such a mask holds integers or flags."""
    return last_name(factory) == "ones" and "mask" in ast.unparse(operand)


def _instead(factory: ast.Call, origins: Origins, place: Flow) -> str | None:
    """The attribute of a layer that a factory stands in for where it is None, made after another attribute of that layer:
    `torch.zeros(n, device=conv.weight.device) if conv.bias is None else conv.bias`."""
    choice = parents_at(factory, place).get(factory)
    if not isinstance(choice, ast.IfExp) or factory is choice.test:
        return None
    other = path_of(choice.orelse if choice.body is factory else choice.body) or ""
    layer, _, attribute = other.rpartition(".")
    if attribute not in ("weight", "bias") or not layer:
        return None
    texts = {origin.text for _, roots in made_after(factory, origins, place) for origin in roots}
    return other if texts & {f"{layer}.weight", f"{layer}.bias"} else None


def _in_place_of(factory: ast.Call, node: ast.expr, other: str) -> Finding:
    layer = other.rpartition(".")[0]
    return Finding(
        factory,
        f"{says(factory)}, but stands in for `{other}`, which has the dtype of `{layer}`",
        help=f"Pass `dtype={layer}.weight.dtype`",
        notes=((node, "used here"),),
        conditional=True,
        fix=fix_after(f"{layer}.weight"),
    )


def _configured(call: ast.Call, factory: ast.Call, origins: Origins, scope: ast.AST) -> str | None:
    """The model that a call runs on a factory's tensor, where the shape of that is what the model is configured for."""
    model = path_of(call.func)
    if model is None or not call.args or not is_in(factory, [call.args[0]], origins):
        return None
    spoken = list(factory.args)
    for name in [part.id for argument in factory.args for part in ast.walk(argument) if isinstance(part, ast.Name)]:
        spoken += [value for _, value in assignments(scope).get(name, ()) if value is not None]
    paths = (path_of(part) or "" for value in spoken for part in ast.walk(value) if isinstance(part, ast.Attribute))
    return model if any(path.startswith(f"{model}.") for path in paths) else None


def _finding(factory: ast.Call, node: ast.expr, operand: ast.expr, after: ast.expr | None, *, half: bool) -> Finding:
    met, told = ast.unparse(operand), path_of(after) if after is not None else None
    source = told or as_operand(operand)
    op = "`@`" if isinstance(node, ast.BinOp) else f"`{last_name(node)}`"
    dtype = "half" if _is_of_half(node, half=half) else "float64"
    refused, promoted = f"{op} raises if `{short(met)}` is {dtype}", f"a half `{short(met)}` is promoted"
    return Finding(
        factory,
        f"{says(factory)}: {refused if _raises(node) else promoted}",
        help=_help(factory, source),
        notes=((node, f"`{short(met)}` meets it here"),) if node.lineno != factory.lineno else (),
        conditional=True,
        fix=fix_after(told) if told is not None and last_name(factory) in MAKERS - UNTOLD - {"where"} else None,
    )


def _help(factory: ast.Call, source: str) -> str:
    dtype = f"`dtype={source}.dtype`" if len(source) < 40 else "the dtype of the other tensor"
    return f"Use `torch.tensor` or `torch.empty`, and pass {dtype}" if last_name(factory) in UNTOLD else f"Pass {dtype}"
