"""DT416: arithmetic of small integers that leaves their range."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES, SMALL_INTEGERS
from dtlint.infer.names import path_of
from dtlint.infer.values import Constant, Tensor
from dtlint.rule import Finding, Rule
from dtlint_rules._assignments import assignments, source_of
from dtlint_rules._functions import parameters
from dtlint_rules._names import last_name, names_in, said
from dtlint_rules._needs import SMALL
from dtlint_rules._numbers import number_at
from dtlint_rules._parts import receiver, root_of, same
from dtlint_rules._squares import WIDE_INTEGERS, is_widened
from dtlint_rules._texts import short
from dtlint_rules._wrapping import wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Flow, Operation
    from dtlint.infer.facts import ModuleFacts
    from dtlint.infer.values import Value

__all__ = ["IntegerWraparound"]

_WORDS: dict[type[ast.AST], str] = {
    ast.Add: "sum",
    ast.Sub: "difference",
    ast.Mult: "product",
    ast.LShift: "shift",
    ast.Pow: "power",
}


class IntegerWraparound(Rule):
    """Arithmetic of uint8, int8 or int16 wraps around.

    ## What it does
    Reports the difference of two uint8 tensors, sums, products and shifts of small integers with numbers that lead
    out of their range, such as `pixels * 256`; and a wide number put together from bytes,
    `image[..., 0] * 256 + image[..., 1]`, where the bytes have not been cast to a wider dtype; and two ids put into one,
    `src << 32 | dst`, where tensors that are int32, or of which the function says so, have not been cast to int64.

    Conditional, and so reported with `--preview` only: tensors whose dtypes are not known.

    ## Why it matters
    A Python number does not widen a tensor of the same category: uint8 times 256 is uint8, and all of it is 0. So it is
    in NumPy 2. `3 - 5` is 254 in uint8, and the difference of two images is large where the second is a little
    brighter. There is no error and no warning.

    ## Example
    ```python
    import torch

    image = torch.zeros(4, 4, 3, dtype=torch.uint8)
    depth = image[..., 0] * 256 + image[..., 1]
    ```

    ## Use instead
    ```python
    import torch

    image = torch.zeros(4, 4, 3, dtype=torch.uint8)
    wide = image.to(torch.int32)
    depth = wide[..., 0] * 256 + wide[..., 1]
    ```

    ## References
    - [Type promotion](https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc)
    """

    code, name = "DT416", "integer-wraparound"
    triggers = (*SMALL, "256", "8", "<<32")
    needs = ((*SMALL, "]*", "]<<", "])*", "])<<", "<<32"), (*SMALL, "256", "**8", "<<8", "<<32"))
    operators = frozenset({*_WORDS})

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        return wrapped(facts)

    def on_operation(self, operation: Operation) -> Iterable[Finding]:
        node = operation.node
        if type(operation.operator) not in _WORDS or not isinstance(node, (ast.BinOp, ast.AugAssign)):
            return ()
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.LShift) and _is_by_32(operation.right):
            return _shifted(operation, node)
        left, right = _small(operation.left), _small(operation.right)
        if left or right:
            return self._wrapped(operation, node, node.op, left, right)
        if isinstance(node, ast.BinOp) and isinstance(operation.operator, ast.Add):
            return self._assembled(operation, node)
        return ()

    def _wrapped(
        self,
        operation: Operation,
        node: ast.BinOp | ast.AugAssign,
        operator: ast.operator,
        left: str | None,
        right: str | None,
    ) -> Iterator[Finding]:
        """Both are small integers, or one is and the other a number."""
        kind = left or right
        assert kind is not None
        info = DTYPES[kind]
        number = operation.right if left else operation.left
        if left and right:
            if left != right or not isinstance(operator, ast.Sub) or info.min < 0 or _is_ordered(node, operation.flow):
                return
            text = f"The difference of two {kind} tensors wraps around: 3 - 5 is {int(info.max) - 1}"
        elif isinstance(number, Constant) and type(number.value) is int:
            if not _leaves(operator, number.value, info.max, info.min):
                return
            word = _WORDS[type(operator)]
            text = f"The {word} with {number.value} stays {kind}, and wraps around at {int(info.max)}"
        else:
            return
        origins = [value.origin for value in (operation.left, operation.right) if isinstance(value, Tensor)]
        origin = next((origin for origin in origins if origin is not None), None)
        notes: tuple[tuple[ast.expr | ast.stmt, str], ...] = (
            ((origin, f"{kind} since here"),) if origin is not None else ()
        )
        yield Finding(node, text, help="Cast first: `.to(torch.int32)`, or `.float()`", notes=notes)

    def _assembled(self, operation: Operation, node: ast.BinOp) -> Iterator[Finding]:
        """`image[:, :, 1] * 2**8 + image[:, :, 2]`."""
        flow = operation.flow
        for product, low in ((node.left, node.right), (node.right, node.left)):
            if not isinstance(product, ast.BinOp) or not isinstance(product.op, (ast.Mult, ast.LShift)):
                continue
            factor = number_at(product.right, flow)
            if factor is None or factor.value != (8 if isinstance(product.op, ast.LShift) else 256):
                continue
            high = product.left
            if (
                not isinstance(high, ast.Subscript)
                or not isinstance(low, ast.Subscript)
                or not same(high.value, low.value)
            ):
                continue
            values = (operation.left, operation.right)
            if (
                same(high.slice, low.slice)
                or is_widened(high.value, flow, WIDE_INTEGERS)
                or any(map(_is_no_byte, values))
            ):
                continue
            if _is_made_of_ints(high.value) or _is_item_of_a_list(high.value, flow):
                continue
            yield Finding(
                product,
                f"In uint8 `{short(product)}` is 0",
                help="Cast first: `.to(torch.int32)`, or `.astype(np.int32)` in NumPy",
                conditional=True,
            )
            return


def _is_by_32(value: Value) -> bool:
    return isinstance(value, Constant) and value.value == _BITS


def _shifted(operation: Operation, node: ast.BinOp) -> Iterator[Finding]:
    """`src << 32 | dst`, of tensors that nobody has cast to int64."""
    value, flow = operation.left, operation.flow
    if isinstance(value, Tensor) and value.dtypes is not None:
        narrow = value.dtypes <= SMALL_INTEGERS | {"int32"}
    else:
        is_tensor = _is_given(node.left, flow) if isinstance(value, Tensor) else _is_item_of_tensors(node.left, flow)
        narrow = is_tensor and _SAYING_INT64.isdisjoint(names_in(flow.scope)) and _speaks_of_int32(flow.scope)
    if not narrow:
        return
    yield Finding(
        node,
        f"In int32 a shift by 32 leaves nothing of `{short(node.left)}`",
        help=f"Cast first: `{ast.unparse(node.left)}.long() << 32`",
        conditional=not isinstance(value, Tensor) or value.dtypes is None,
    )


def _speaks_of_int32(scope: ast.AST) -> bool:
    """Does a function say int32, in a name or a text? Ids are int64 for the most part."""
    return any("int32" in word or word == "IntTensor" for word in said(scope))


def _is_given(node: ast.expr, flow: Flow) -> bool:
    """Is it a parameter as the caller gives it? What a function computes, torch has mostly made int64 already."""
    own = root_of(node)
    given = {each.arg for each in parameters(flow.scope)}
    return isinstance(own, ast.Name) and own.id in given and own.id not in assignments(flow.scope)


def _is_item_of_tensors(node: ast.expr, flow: Flow) -> bool:
    """Is it an item of a parameter that is said to hold tensors: `edges: Tuple[Tensor, Tensor]`?"""
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
        return False
    said = [each.annotation for each in parameters(flow.scope) if each.arg == node.value.id and each.annotation]
    return (
        bool(said)
        and node.value.id not in assignments(flow.scope)
        and _HOLDS_TENSORS.match(ast.unparse(said[0])) is not None
    )


_BITS = 32
_SAYING_INT64 = frozenset({"int64", "long", "LongTensor"})
"""Names by which a function shows that it sees to the dtype."""
_HOLDS_TENSORS = re.compile(r"(?:typing\.)?(?:[Tt]uple|[Ll]ist|Sequence)\[(?:torch\.)?Tensor\b")
_GREATEST = frozenset({"max", "amax", "maximum"})
_LEAST = frozenset({"min", "amin", "minimum"})


def _is_ordered(node: ast.BinOp | ast.AugAssign, flow: Flow) -> bool:
    """Is what is subtracted never the greater: the maximum of it and others less it, or a maximum less a minimum?"""
    if not isinstance(node, ast.BinOp):
        return False
    greater, less = _chosen(node.left, flow, _GREATEST), _chosen(node.right, flow, _LEAST)
    if any(same(of, other) for of in greater for other in (node.right, *less)):
        return True
    rests = [value for of in less if isinstance(of, ast.Name) for _, value in assignments(flow.scope).get(of.id, ())]
    return any(
        isinstance(rest, ast.BinOp) and isinstance(rest.op, ast.Sub) and same(rest.left, node.left) for rest in rests
    )


def _chosen(node: ast.expr, flow: Flow, names: frozenset[str]) -> list[ast.expr]:
    """What a maximum or minimum is taken of: `x` of `x.max(dim=1).values`, `x` and `y` of `torch.maximum(x, y)`."""
    made = source_of(node, flow) or node
    while isinstance(made, (ast.Attribute, ast.Subscript)):
        made = made.value
    if not isinstance(made, ast.Call) or last_name(made) not in names:
        return []
    held = receiver(made)
    return [*made.args, *([held] if held is not None and path_of(held) not in ("torch", "th") else [])]


def _is_item_of_a_list(node: ast.expr, flow: Flow) -> bool:
    """Is it what a loop takes of a list that the module writes out: `for i, colour in enumerate(COLOURS)`?"""
    if not isinstance(node, ast.Name):
        return False
    for loop in reversed(flow.loops):
        if node.id in names_in(loop.node.target):
            lists = [value for name in names_in(loop.node.iter) for _, value in assignments(flow.tree).get(name, ())]
            return any(isinstance(value, (ast.List, ast.Tuple)) for value in lists)
    return False


def _small(value: Value) -> str | None:
    """The small integer dtype that a tensor certainly has."""
    if not isinstance(value, Tensor) or value.dtypes is None or len(value.dtypes) != 1:
        return None
    (dtype,) = value.dtypes
    return dtype if dtype in SMALL_INTEGERS else None


def _leaves(operator: ast.operator, number: int, top: float, bottom: float) -> bool:
    """Does the operation with that number lead out of the dtype for most values?"""
    if isinstance(operator, ast.Mult):
        return abs(number) > top
    if isinstance(operator, ast.LShift):
        return number >= 8
    return not bottom <= number <= top


def _is_no_byte(value: Value) -> bool:
    return isinstance(value, Tensor) and value.dtypes is not None and not value.dtypes & SMALL_INTEGERS


def _is_made_of_ints(node: ast.expr) -> bool:
    """Is it `bytes`, `struct.unpack` or a list, whose items are Python's ints?"""
    name = last_name(node).lower()
    path = (path_of(node) or "").lower()
    return isinstance(node, ast.Call) or any(
        word in name or word in path for word in ("byte", "buf", "data", "header", "argv")
    )
