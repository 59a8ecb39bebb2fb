"""DT308: a mask is of a dtype with which it does not mask, or is turned around as numbers are."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix, Severity
from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.domain.values import Array, Const, Number, Tensor, Tuple
from dtlint.rule import Finding, Rule
from dtlint_rules._casting import BOOL, INTEGRAL, cast_fix, listed
from dtlint_rules._fixes import operand_text
from dtlint_rules._needs import TORCH
from dtlint_rules._refusals import Operand, finding, is_refused, once, operand, short_op, tensors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts, Operation
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
_BYTES = frozenset({"uint8"})
_BITWISE = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "bitwise_not": "~"}
_OF_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift, ast.Add, ast.Sub)


class MaskDtype(Rule):
    """A mask of integers is given where a bool one is needed, or a bool one is negated by arithmetic.

    ## What it does
    Reports `masked_fill`, `masked_select` and `torch.where` with a mask that is not bool; attention with a mask of
    integers, or with a bool mask that was cast to a floating dtype; `1 - mask` and `-mask` of a bool tensor; `~mask` of an
    integer one that holds zeros and ones; `&`, `|`, `^` and `~` of a floating one; and a number that is written into a
    tensor through an index of uint8, `x[mask.byte()] = 0`.

    Reported with `--preview` only, for it warns and computes what was meant: a tensor that is read with such an index,
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
    triggers = ("*mask*", "*ttention*", ".where", "~", "-(", "1-", "1.-", "1.0-", ".byte", "uint8", "ByteTensor")
    needs = (TORCH,)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for seen in once(facts.operations(lambda one: _wrong_mask(one) is not None)):
            mask = _wrong_mask(seen.what)
            assert mask is not None
            attention = short_op(seen.what) in _ATTENTION
            who = (
                "Attention takes bool or floating masks" if attention else f"`{short_op(seen.what)}` takes a bool mask"
            )
            yield finding(
                seen,
                mask.node,
                f"{who}: this one is {listed(mask.dtypes)} and raises",
                "Cast it with `.bool()`",
                fix=None if mask.node is None else partial(cast_fix, mask.node, "bool()", Applicability.SAFE),
            )
        for seen in once(facts.operations(_subtracts_bool)):
            node = seen.what.node
            turned = isinstance(node, ast.BinOp) and isinstance(node.left, ast.Constant) and node.left.value == 1
            help = "Invert a mask with `~`, or cast it first"
            yield finding(seen, None, "`-` raises for bool tensors", help, fix=partial(_turn, node) if turned else None)
        for seen in once(facts.operations(_is_bitwise_of_floats)):
            sign = _BITWISE[short_op(seen.what)]
            dtypes = next(one.dtypes for one in tensors(seen.what) if one.dtypes and one.dtypes <= FLOATING)
            text = f"`{sign}` raises for {listed(dtypes)} tensors"
            yield finding(seen, None, text, "Cast the mask first: `.bool()`")
        yield from self._added(facts)
        yield from self._turned(facts)
        yield from self._by_bytes(facts)

    def _added(self, facts: ModuleFacts) -> Iterator[Finding]:
        """Attention with a bool mask that was cast to floats: it is added to the scores."""
        for seen in once(facts.operations(lambda one: short_op(one) in _ATTENTION)):
            for mask in _masks(seen.what):
                made = facts.around.definition(mask.node) if mask.node is not None and not seen.behind else None
                cast = made.func if isinstance(made, ast.Call) else None
                of = facts.value(cast.value) if isinstance(cast, ast.Attribute) else None
                if mask.dtypes and mask.dtypes <= FLOATING and isinstance(of, Tensor) and of.dtypes == BOOL:
                    text = "Attention adds a floating mask to the scores: ones and zeros mask nothing"
                    one = finding(seen, mask.node, text, "Pass the bool mask, or one of 0 and -inf")
                    one.severity = Severity.WARNING
                    yield one

    def _turned(self, facts: ModuleFacts) -> Iterator[Finding]:
        """`~` of integers that are zeros and ones."""
        for seen in facts.evaluations(ast.UnaryOp):
            (value,) = seen.operands
            if not isinstance(seen.node.op, ast.Invert) or not isinstance(value, Tensor) or not value.dtypes:
                continue
            around = facts.around.parent(seen.node)
            of_bits = isinstance(around, (ast.BinOp, ast.AugAssign)) and isinstance(around.op, _OF_BITS)
            of_truths = (value.range.low, value.range.high) == (0.0, 1.0)
            if value.dtypes <= INTEGRAL - BOOL and of_truths and not of_bits:
                word = "254" if value.dtypes == _BYTES else "-2"
                yield Finding(
                    seen.node,
                    f"`~` flips the bits of the {listed(value.dtypes)} mask: 1 becomes {word}, which is true",
                    help="Cast the mask first: `~mask.bool()`",
                    severity=Severity.WARNING,
                    fix=partial(cast_fix, seen.node.operand, "bool()", Applicability.UNSAFE),
                )

    def _by_bytes(self, facts: ModuleFacts) -> Iterator[Finding]:
        """`x[mask.byte()]`."""
        told: set[ast.expr] = set()
        for seen in (*facts.evaluations(ast.Subscript), *facts.assignments()):
            if not isinstance(seen.node, ast.Subscript) or not isinstance(seen.operands[0], Tensor):
                continue  # to an array, and to a table, bytes are positions
            index, slices = seen.operands[1], seen.node.slice
            parts = [(slices, index)]
            if isinstance(slices, ast.Tuple) and isinstance(index, Tuple):
                parts = list(zip(slices.elts, index.items, strict=False))
            for node, value in parts:
                inverted = isinstance(node, ast.UnaryOp)  # is told where it is turned around
                if isinstance(value, Tensor) and value.dtypes == _BYTES and not inverted and node not in told:
                    told.add(node)
                    was_bool = (value.range.low, value.range.high) == (0.0, 1.0)
                    safe = Applicability.SAFE if was_bool else Applicability.UNSAFE
                    raising = isinstance(seen.node.ctx, ast.Store) and isinstance(seen.result, (Const, Number))
                    yield Finding(
                        node,
                        "Writing a number through a uint8 index raises: torch takes it for a mask"
                        if raising
                        else "Indexing with uint8 is deprecated: torch takes it for a mask",
                        help="Cast the mask with `.bool()`, or positions with `.long()`",
                        severity=Severity.WARNING,
                        conditional=not raising,
                        fix=partial(cast_fix, node, "bool()", safe),
                    )


def _masks(operation: Operation) -> list[Operand]:
    """The masks of attention that are given."""
    places = _ATTENTION.get(short_op(operation), ())
    return [mask for position, name in places if (mask := operand(operation, position, name)) is not None]


def _wrong_mask(operation: Operation) -> Operand | None:
    """The mask that is not of a dtype that the op takes."""
    op = short_op(operation)
    if op in _BOOL_ALONE:
        position, name = _BOOL_ALONE[op]
        method_of_tensor = operation.op == "torch.Tensor.where"
        mask = operand(operation, position + method_of_tensor, name)
        if op == "where" and operand(operation, 1, "input") is None:
            return None  # the positions of what is not 0, of any dtype
        taken = BOOL | _BYTES if op == "where" else BOOL
        return mask if mask is not None and mask.dtypes and not mask.dtypes & taken else None
    return next((mask for mask in _masks(operation) if mask.dtypes and mask.dtypes <= INTEGRAL - BOOL), None)


def _subtracts_bool(operation: Operation) -> bool:
    """`1 - mask`, `mask - other`, `-mask`. An array of NumPy subtracts in its own way."""
    op = short_op(operation)
    if op == "neg":
        return is_refused(operation, "DT308")
    if op not in ("sub", "rsub", "sub_"):
        return False
    known = all(isinstance(value, (Tensor, Const, Number)) or _is_scalar(value) for value in operation.args)
    return known and any(one.dtypes == BOOL for one in tensors(operation))


def _is_scalar(value: object) -> bool:
    return isinstance(value, Array) and value.scalar is True


def _is_bitwise_of_floats(operation: Operation) -> bool:
    if short_op(operation) not in _BITWISE:
        return False
    given = tensors(operation)
    known = len(given) == len(operation.args) and all(one.dtypes for one in given)
    return known and any(one.dtypes <= FLOATING for one in given)


def _turn(node: ast.BinOp, place: Place) -> Fix | None:
    if place.text(node).count("#") != place.text(node.right).count("#"):
        return None
    turned = f"~{operand_text(place, node.right)}"
    return Fix("Turn the mask around with `~`", (place.replace(node, turned),), Applicability.SAFE)
