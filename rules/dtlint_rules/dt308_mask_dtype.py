"""DT308: a mask is of a dtype with which it does not mask, or is turned around as numbers are."""

from __future__ import annotations

import ast
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix, Severity
from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.values import Array, Items, Tensor
from dtlint.rule import Finding, Rule
from dtlint_rules._assignments import source_of
from dtlint_rules._fixes import operand_text
from dtlint_rules._masks import is_mask, is_named_mask
from dtlint_rules._names import last_name, names_in
from dtlint_rules._needs import TORCH
from dtlint_rules._operands import BOOL, INTEGRAL, called, cast_fix, certain, listed, origin_note, settled, tensor_op
from dtlint_rules._parts import receiver
from dtlint_rules._refusals import refused
from dtlint_rules._subjects import Operand, operand
from dtlint_rules._texts import short
from dtlint_rules._within import parents_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call, Flow, Lookup, Operation
    from dtlint.infer.facts import ModuleFacts
    from dtlint.infer.values import Value
    from dtlint.source.place import Place

__all__ = ["MaskDtype"]

_BOOL_ALONE = {
    **dict.fromkeys(("masked_fill", "masked_fill_", "masked_select", "masked_scatter", "masked_scatter_"), (1, "mask")),
    "where": (0, "condition"),
}
"""Ops that take a bool mask, and its place. `torch.where` still takes uint8, with a warning."""
_ATTENTION = {
    "nn.functional.scaled_dot_product_attention": ((3, "attn_mask"),),
    "nn.MultiheadAttention": ((3, "key_padding_mask"), (5, "attn_mask")),
    "nn.TransformerEncoderLayer": ((1, "src_mask"), (2, "src_key_padding_mask")),
    "nn.TransformerEncoder": ((1, "mask"), (2, "src_key_padding_mask")),
    **dict.fromkeys(
        ("nn.TransformerDecoderLayer", "nn.TransformerDecoder"),
        ((2, "tgt_mask"), (3, "memory_mask"), (4, "tgt_key_padding_mask"), (5, "memory_key_padding_mask")),
    ),
}
"""Attention, whose masks are bool, or floating and then added to the scores."""

_OF_BYTES = (".byte", "uint8", "ByteTensor")
"""What makes the masks of before torch 1.2, which were of bytes."""


class MaskDtype(Rule):
    """A mask of integers is given where a bool one is needed, or a bool one is negated by arithmetic.

    ## What it does
    Reports `masked_fill`, `masked_select` and `torch.where` with a mask that is not bool, and with `1 - mask`, which never
    is; attention with a mask of integers, or with a bool mask that was cast to a floating dtype; `1 - mask` and `-mask` of
    a bool tensor; `~mask` of an integer one, and `~` of a mask that is cast to one, `~padding_mask(ids).long()`; `&`, `|`,
    `^` and `~` of a floating one; and what is known as a tensor, and indexed with one of uint8,
    `x[mask.byte()]`.

    ## Why it matters
    Most of it raises: "masked_fill_ only supports boolean masks", "Subtraction, the `-` operator, with a bool tensor is
    not supported". The rest is silent: `~` of a uint8 1 is 254, which counts as true, and attention adds a floating mask
    to the scores, so that ones and zeros hide nothing. An index of uint8 is a mask to torch, not a list of positions, and
    deprecated: to read with it warns, and to write a number through it, `x[mask.byte()] = 0`, raises where the mask has
    dimensions.

    ## Example
    ```python
    import torch


    def hide(scores: torch.Tensor, tokens: torch.Tensor, pad: int) -> torch.Tensor:
        padding = (tokens == pad).long()
        return scores.masked_fill(padding, float("-inf"))
    ```

    ## Use instead
    ```python
    import torch


    def hide(scores: torch.Tensor, tokens: torch.Tensor, pad: int) -> torch.Tensor:
        padding = (tokens == pad).long()
        return scores.masked_fill(padding.bool(), float("-inf"))
    ```

    ## Fix safety
    The fix casts the mask with `.bool()`, or turns `1 - mask` into `~mask`. It is safe where the code raises without it,
    and unsafe where it ran with a wrong result.

    ## References
    - [torch.Tensor.masked_fill_](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.masked_fill_.html)
    - [scaled_dot_product_attention: attn_mask](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html)
    """

    code, name, severity = "DT308", "mask-dtype", Severity.ERROR
    fix = Applicability.SAFE
    triggers = ("*mask*", "*ttention*", ".where", "~", "-(", "1-", "1.-", "1.0-", *_OF_BYTES)
    needs = (TORCH,)
    calls = called((*_BOOL_ALONE, *_ATTENTION))
    operators = frozenset({ast.Sub, ast.USub, ast.Invert, ast.BitAnd, ast.BitOr, ast.BitXor})
    of_known = True
    of_any = frozenset({ast.Invert})
    hears_where = MappingProxyType({"on_lookup": _OF_BYTES})

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        return refused(facts, self.code)

    def on_call(self, call: Call) -> Iterator[Finding]:
        op = tensor_op(call)
        if not call.complete:
            return
        if op in _BOOL_ALONE:
            position, name = _BOOL_ALONE[op]
            mask = operand(call, position + (call.target == "torch.Tensor.where"), name)
            dtypes = settled(mask, call.flow) if mask is not None else None
            if mask is not None and dtypes and not dtypes & (BOOL | ({"uint8"} if op == "where" else BOOL)):
                yield _refused(mask, f"`{op}` takes a bool mask: this one is {listed(dtypes)} and raises")
            elif mask is not None and op != "where" and _is_turned_by_hand(mask.node) and not _is_bool(mask.value):
                yield Finding(
                    mask.node,
                    f"`{op}` takes a bool mask, and `{short(mask.node)}` is never one: this raises",
                    help="Invert the mask with `~`, or compare: `mask == 0`",
                )
            return
        for position, name in _ATTENTION.get(op, ()):
            mask = operand(call, position, name)
            dtypes = settled(mask, call.flow) if mask is not None else None
            if mask is None or not dtypes:
                continue
            if dtypes <= INTEGRAL - BOOL:
                yield _refused(
                    mask,
                    f"Attention takes bool or floating masks: `{name}` is {listed(dtypes)} and raises",
                )
            elif dtypes <= FLOATING and (cast := _cast_of_bool(mask, call.flow)) is not None:
                yield _added(mask, cast, name)

    def on_operation(self, operation: Operation) -> Iterator[Finding]:
        node, operator = operation.node, operation.operator
        if isinstance(operator, ast.Sub) and isinstance(node, ast.BinOp):
            left, right = _is_bool(operation.left), _is_bool(operation.right)
            if (left or right) and not (_is_array(operation.left) or _is_array(operation.right)):
                turned = right and isinstance(node.left, ast.Constant) and node.left.value == 1
                yield Finding(
                    node,
                    "`-` raises for bool tensors",
                    help="Invert a mask with `~`, or cast it first",
                    fix=partial(_turn, node) if turned else None,
                )
        elif isinstance(operator, ast.USub) and _is_bool(operation.right):
            yield Finding(
                node,
                "`-` raises for bool tensors",
                help="Invert a mask with `~`",
            )
        elif isinstance(operator, _BITWISE) and isinstance(node, (ast.BinOp, ast.AugAssign)):
            yield from _on_bitwise(operation, (operation.left, operation.right))
        elif isinstance(operator, ast.Invert) and isinstance(node, ast.UnaryOp):
            yield from _on_bitwise(operation, (operation.right,))
            dtypes = certain(operation.right)
            if dtypes is None and isinstance(node.operand, ast.Call) and _tells(node.operand):
                dtypes = settled(Operand(node.operand, operation.right), operation.flow)
            if not dtypes or not dtypes <= INTEGRAL - BOOL or _is_of_bits(node, operation.flow):
                return
            if _is_zeros_and_ones(node.operand, operation) or (
                dtypes == _BYTES and _is_subscript(node, operation.flow)
            ):
                word = "254" if dtypes == {"uint8"} else "-2"
                yield Finding(
                    node,
                    f"`~` flips the bits of the {listed(dtypes)} mask: 1 becomes {word}, which is true",
                    help="Cast the mask first: `~mask.bool()`",
                    severity=Severity.WARNING,
                    fix=partial(cast_fix, node.operand, "bool()", "Cast the mask to bool", Applicability.UNSAFE),
                )

    def on_lookup(self, lookup: Lookup) -> Iterator[Finding]:
        """`x[mask.byte()]`."""
        if not isinstance(lookup.base, Tensor):
            return  # to an array, and to a table, bytes are positions
        nodes = lookup.node.slice.elts if isinstance(lookup.node.slice, ast.Tuple) else [lookup.node.slice]
        values = lookup.index.items if isinstance(lookup.index, Items) and len(nodes) > 1 else (lookup.index,)
        for node, value in zip(nodes, values, strict=False):
            if certain(value) != _BYTES or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert)):
                continue  # `x[~mask]` is told where it is turned around
            was_bool = isinstance(value, Tensor) and value.cast is not None and value.cast.dtypes == BOOL
            yield _by_bytes(Operand(node, value), was_bool)


def _by_bytes(index: Operand, was_bool: bool) -> Finding:
    applicability = Applicability.SAFE if was_bool else Applicability.UNSAFE
    return Finding(
        index.node,
        "Indexing with uint8 is deprecated: torch takes it for a mask",
        help="Cast the mask with `.bool()`, or positions with `.long()`",
        severity=Severity.WARNING,
        notes=origin_note(index.value, index.node, "uint8 since here"),
        fix=partial(cast_fix, index.node, "bool()", "Cast the mask to bool", applicability),
    )


def _on_bitwise(operation: Operation, operands: tuple[Value, ...]) -> Iterator[Finding]:
    """`&`, `|`, `^` and `~` of a floating mask."""
    for value in operands:
        dtypes = certain(value)
        if dtypes and dtypes <= FLOATING and len(dtypes) == 1:
            yield Finding(
                operation.node,
                f"`{_SIGNS[type(operation.operator)]}` raises for {listed(dtypes)} tensors",
                help="Cast the mask first: `.bool()`",
                notes=origin_note(value, operation.node, f"{listed(dtypes)} since here"),
            )
            return


_BYTES = frozenset({"uint8"})
_OF_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift, ast.Add, ast.Sub)
_BITWISE = (ast.BitAnd, ast.BitOr, ast.BitXor)
_SIGNS = {ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.Invert: "~"}


def _is_turned_by_hand(node: ast.expr) -> bool:
    """`1 - mask`."""
    return (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Sub)
        and isinstance(node.left, ast.Constant)
        and node.left.value == 1
    )


def _refused(mask: Operand, message: str) -> Finding:
    return Finding(
        mask.node,
        message,
        help="Cast it with `.bool()`",
        notes=origin_note(mask.value, mask.node, "made here"),
        fix=partial(cast_fix, mask.node, "bool()", "Cast the mask to bool", Applicability.SAFE),
    )


def _added(mask: Operand, cast: ast.expr, name: str) -> Finding:
    return Finding(
        mask.node,
        f"Attention adds a floating mask to the scores: ones and zeros in `{name}` mask nothing",
        help="Pass the bool mask, or one of 0 and -inf",
        severity=Severity.WARNING,
        notes=((cast, "cast from bool here"),) if cast.lineno != mask.node.lineno else (),
    )


def _cast_of_bool(mask: Operand, flow: Flow) -> ast.expr | None:
    """The cast from bool that a mask is as it stands, or that its name was bound to."""
    cast = mask.value.cast if isinstance(mask.value, Tensor) else None
    if cast is None or cast.dtypes != BOOL:
        return None
    return cast.node if cast.node in (mask.node, source_of(mask.node, flow)) else None


def _is_bool(value: Value) -> bool:
    return certain(value) == BOOL


def _is_array(value: Value) -> bool:
    """Is it an array of NumPy, which subtracts in its own way, and not a number of NumPy?"""
    return isinstance(value, Array) and not value.scalar


def _is_zeros_and_ones(node: ast.expr, operation: Operation) -> bool:
    cast = operation.right.cast if isinstance(operation.right, Tensor) else None
    return is_mask(node) or (isinstance(node, ast.Call) and _tells(node)) or (cast is not None and cast.dtypes == BOOL)


def _tells(cast: ast.Call) -> bool:
    """Is what is cast there ones and zeros, as it is written: `(x == pad).long()`, `make_mask(n).type(torch.long)`?"""
    given = receiver(cast)
    if isinstance(given, ast.Subscript) and isinstance(given.slice, ast.Constant):
        return is_named_mask(str(given.slice.value))
    return given is not None and (is_mask(given) or (isinstance(given, ast.Call) and is_named_mask(last_name(given))))


def _is_subscript(node: ast.expr, flow: Flow) -> bool:
    """`x[~m]` and `x[..., ~m, :]`, where bytes are a mask."""
    around = parents_at(node, flow)
    parent = around.get(node)
    if isinstance(parent, ast.Tuple):
        node, parent = parent, around.get(parent)
    return isinstance(parent, ast.Subscript) and parent.slice is node


def _is_of_bits(node: ast.expr, flow: Flow) -> bool:
    """Are bits meant by what is turned around: do they meet others, `x | ~mask.int()`, is it brought back by hand,
    `~mask + 2`, or does a name say so?"""
    parent = parents_at(node, flow).get(node)
    if isinstance(parent, (ast.BinOp, ast.AugAssign)) and isinstance(parent.op, _OF_BITS):
        return True
    if isinstance(parent, ast.Call) and last_name(parent).startswith("bitwise"):
        return True
    targets = flow.statement.targets if isinstance(flow.statement, ast.Assign) else []
    return any("bit" in word.lower() for part in (node, *targets) for word in names_in(part))


def _turn(node: ast.BinOp, place: Place) -> Fix | None:
    if place.text(node).count("#") != place.text(node.right).count("#"):
        return None
    turned = f"~{operand_text(place, node.right)}"
    return Fix("Turn the mask around with `~`", (place.replace(node, turned),), Applicability.SAFE)
