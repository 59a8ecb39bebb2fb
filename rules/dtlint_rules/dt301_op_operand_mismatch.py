"""DT301: one operand of an op that does not promote was cast to float32, and the other was not."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix, Severity
from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.around import around
from dtlint.infer.names import path_of
from dtlint.infer.values import UNKNOWN, Tensor
from dtlint.infer.walk import SCOPES
from dtlint.rule import Finding, Rule
from dtlint_rules._assignments import bound_once
from dtlint_rules._effects import FLOAT32, WIDE
from dtlint_rules._einsum import contracts
from dtlint_rules._fixes import operand_text
from dtlint_rules._functions import parameters
from dtlint_rules._half import half_at
from dtlint_rules._halfcasts import half_named
from dtlint_rules._handed import is_handed_wide
from dtlint_rules._kept import kept
from dtlint_rules._layers import layers_of
from dtlint_rules._meanings import counts
from dtlint_rules._names import last_name, said
from dtlint_rules._needs import HALF_BY_NAME, TORCH
from dtlint_rules._origin import Kind
from dtlint_rules._origins import origins_of
from dtlint_rules._parts import root_of
from dtlint_rules._refusals import refused
from dtlint_rules._statements import statements
from dtlint_rules._texts import short
from dtlint_rules._widths import cast_to_float32, is_open, may_be_cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call, Flow, Operation
    from dtlint.infer.facts import ModuleFacts
    from dtlint.infer.values import Value
    from dtlint.source.place import Place
    from dtlint_rules._origin import Origin, Roots
    from dtlint_rules._origins import Origins

__all__ = ["OpOperandMismatch"]

_PRODUCTS = frozenset(
    {"matmul", "mm", "bmm", "mv", "dot", "vdot", "inner", "linear", "bilinear", "cdist", "tensordot", "grid_sample"}
    | {"baddbmm", "addmm", "addbmm", "addmv", "scaled_dot_product_attention", "lerp", "prelu"}
    | {"conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"}
)
"""Ops that raise where their operands differ in dtype, with how many there are."""
_OPERANDS = {"baddbmm": 3, "addmm": 3, "addbmm": 3, "addmv": 3, "scaled_dot_product_attention": 3, "bilinear": 3}
_NORMS = frozenset({"layer_norm", "group_norm", "batch_norm", "instance_norm"})
_WEIGHTS = {"layer_norm": 2, "group_norm": 2, "batch_norm": 3, "instance_norm": 3}
"""The position of a norm's weight. A half norm of float32 weights runs, and the other way round raises."""
_LAYERS = frozenset({"Linear", "Conv1d", "Conv2d", "Conv3d", "Embedding"})
_REARRANGING = frozenset({"map", "rearrange", "rearrange_many", "repeat", "repeat_many"})
"""Functions of einops, and of Python, that put in another form what they are given."""

_ASKS_DTYPE = re.compile(r"dtype|half|16|is_floating|isinstance|uint8|autocast")


class OpOperandMismatch(Rule):
    """One operand of a product or its kin is cast to float32, and another is left as the caller gives it.

    ## What it does
    Reports a matrix product, convolution, attention, `grid_sample`, `lerp` or norm of which one operand was cast to float32
    in the same function, and another is what the caller gives, or a weight of the module, as it is. An operand that is cast
    to a half dtype where it is given, `F.linear(x.half(), self.weight)`, is reported beside a tensor that the module keeps,
    and a cast that a setting asks for, `if upcast: q, k = q.float(), k.float()`, beside an operand that it leaves out.

    All of this is conditional, and reported with `--preview` only: it takes a half tensor, or half weights.

    ## Why it matters
    `torch.matmul`, `bmm`, `einsum`, `F.linear`, `F.layer_norm` and their kin do not promote: with a half operand beside the
    float32 one they raise "expected m1 and m2 to have the same dtype". In a float32 run nobody sees it.

    ## Example
    ```python
    import torch


    def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        scores = torch.matmul(query, key.transpose(-1, -2)).float().softmax(-1)
        return torch.matmul(scores, value)
    ```

    ## Use instead
    ```python
    import torch


    def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        scores = torch.matmul(query, key.transpose(-1, -2)).float().softmax(-1)
        return torch.matmul(scores.to(value.dtype), value)
    ```

    ## Fix safety
    The fix casts the float32 operand back to the dtype of the other. It is unsafe, for in half the op then rounds what was
    float32 until there: where the digits are needed, cast the other operand to float32 instead.

    ## References
    - [torch.matmul](https://docs.pytorch.org/docs/stable/generated/torch.matmul.html)
    - [Type promotion](https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc)
    """

    code, name, severity = "DT301", "op-operand-mismatch", Severity.WARNING
    fix = Applicability.UNSAFE
    triggers = (".float", "float32", *HALF_BY_NAME)
    needs = (TORCH,)
    calls = frozenset({*_PRODUCTS, *_NORMS, "einsum"})
    operators = frozenset({ast.MatMult})

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        return refused(facts, self.code)

    def on_call(self, call: Call) -> Iterable[Finding]:
        if not call.target.startswith("torch.") or not call.complete:
            return ()
        name = last_name(call.node)
        return _judge(call.node, call.flow, list(_operands(call)), name, weighted=name in _NORMS)

    def on_operation(self, operation: Operation) -> Iterable[Finding]:
        node = operation.node
        if not isinstance(node, ast.BinOp):
            return ()
        operands = [_Operand(node.left, operation.left), _Operand(node.right, operation.right)]
        return _judge(node, operation.flow, operands, "@", weighted=False)


@dataclass(slots=True)
class _Operand:
    node: ast.expr
    value: Value


def _operands(call: Call) -> Iterator[_Operand]:
    """The operands of an op that have to be of one dtype."""
    name = last_name(call.node)
    receiver = call.node.func.value if isinstance(call.node.func, ast.Attribute) else None
    given = [_Operand(node, value) for node, value in zip(call.node.args, call.args, strict=False)]
    if call.target.startswith("torch.Tensor.") and receiver is not None:
        given.insert(0, _Operand(receiver, call.receiver))
    if name == "einsum":
        yield from given[1:] if contracts(call.node) else ()
    elif name in _NORMS:
        weight = call.argument_node(_WEIGHTS[name], "weight")
        yield from given[:1]
        if weight is not None:
            yield _Operand(weight, call.argument(_WEIGHTS[name], "weight") or UNKNOWN)
    else:
        yield from given[: _OPERANDS.get(name, 2)]


def _judge(node: ast.expr, flow: Flow, operands: list[_Operand], name: str, weighted: bool) -> Iterable[Finding]:
    if len(operands) < 2 or flow.function is None or flow.autocast is not None:
        return
    if (narrowed := _narrowed(node, flow, operands, name)) is not None:
        yield narrowed
        return
    if not may_be_cast(flow.scope, *(operand.value for operand in operands)):
        return
    origins = origins_of(flow.scope)
    casts = [cast_to_float32(operand.value, origins[operand.node]) for operand in operands]
    if not any(casts) and not weighted and not flow.conditions and not _has_weights(operands, origins):
        casts = [_cast_on_a_path(origins[operand.node], flow) for operand in operands]
    if not any(casts) or (weighted and casts[0] is None):
        return
    for wide, cast in zip(operands, casts, strict=True):
        for other, also in zip(operands, casts, strict=True):
            if cast is None or also is not None:
                continue
            roots = origins[other.node]
            known = origins[wide.node]
            if roots & known and all(origin.kind == Kind.GIVEN for origin in known):
                continue  # it was made of the other, which is float32 where it is given: it has met that before
            if not (
                is_open(other.value, roots)
                or _is_of_layers(other.value, roots, flow)
                or _come_of_one(origins[wide.node], other.value, roots)
            ):
                continue
            if roots and all(origin.kind == Kind.GIVEN and is_handed_wide(origin.text, flow) for origin in roots):
                continue
            given = other.value if isinstance(other.value, Tensor) else UNKNOWN
            if half_at(flow, given, dtype=None) is None and not _casts_back(flow.scope):
                continue
            yield _finding(node, name, wide, cast, other, weighted)
            return


def _has_weights(operands: list[_Operand], origins: Origins) -> bool:
    """Is an operand kept by the module? What is cast for it under a test may be an image of bytes."""
    return any(
        origin.kind == Kind.GIVEN and origin.text.startswith("self.")
        for operand in operands
        for origin in origins[operand.node]
    )


def _cast_on_a_path(roots: Roots, flow: Flow) -> ast.expr | None:
    """The cast to float32 by which an operand is that under a test, and as it was under none: `if upcast: q = q.float()`."""
    casts = [origin for origin in roots if origin.kind == Kind.CAST and origin.text in FLOAT32]
    if len(casts) != 1 or len(roots) < 2:
        return None
    before = {origin for made in casts[0].of for origin in made.closure()}
    if any(origin is not casts[0] and origin not in before for origin in roots):
        return None
    inside = takewhile(lambda part: part is not flow.scope, around(casts[0].node, flow.tree))
    tests = [part.test for part in inside if isinstance(part, ast.If)]
    cast = path_of(root_of(casts[0].node))
    known = {name for test in tests for name in said(test)}
    asks = any(_ASKS_DTYPE.search(name) or name == cast for name in known)
    return casts[0].node if len(tests) == 1 and not asks else None


@kept
def _casts_back(scope: ast.AST) -> bool:
    """Does a function return what it casts back to the dtype that it noted of what it was given: `dtype = x.dtype`,
    `return y.to(dtype)`? It is written for half, whatever the rest of the file says."""
    for node in statements(scope, SCOPES):
        cast = node.value if isinstance(node, ast.Return) else None
        if not isinstance(cast, ast.Call) or last_name(cast) not in ("to", "type") or len(cast.args) != 1:
            continue
        noted = bound_once(cast.args[0].id, scope) if isinstance(cast.args[0], ast.Name) else cast.args[0]
        base = path_of(noted.value) if isinstance(noted, ast.Attribute) and noted.attr == "dtype" else None
        if base in {parameter.arg for parameter in parameters(scope)}:
            return True
    return False


def _narrowed(node: ast.expr, flow: Flow, operands: list[_Operand], name: str) -> Finding | None:
    """`F.linear(x.half(), self.weight)`: a half dtype that is written out, beside what the module keeps in any."""
    casts = [half_named(operand.node) for operand in operands]
    if not any(casts) or all(casts):
        return None
    for half, narrow in zip(casts, operands, strict=True):
        for other, also in zip(operands, casts, strict=True):
            if half is None or also is not None or not _is_kept(other, flow):
                continue
            open_ = ast.unparse(other.node)
            return Finding(
                node,
                f"`{name}` raises unless `{short(other.node)}` is {half}, as `{short(narrow.node)}` is",
                help=f"Cast to the other dtype: `.to({open_}.dtype)`",
                conditional=True,
            )
    return None


def _is_kept(operand: _Operand, flow: Flow) -> bool:
    """Is it a tensor of the module, or made of one by a function, of no dtype that is known or written out?"""
    value, roots = operand.value, origins_of(flow.scope)[operand.node]
    owner = flow.function.owner if flow.function is not None else None
    if owner is None or (isinstance(value, Tensor) and value.dtypes is not None and not value.dtypes >= FLOATING):
        return False
    reached = [origin for root in roots for origin in root.closure()]
    of_caller = {parameter.arg for parameter in parameters(flow.scope)} - {"self"}
    if len(roots) != 1 or any(origin.kind in (Kind.CAST, Kind.MADE) for origin in reached):
        return False
    given = [origin.text for origin in reached if origin.kind == Kind.GIVEN]
    return any(text.startswith("self.") for text in given) and of_caller.isdisjoint(
        text.partition(".")[0] for text in given
    )


def _is_of_layers(value: Value, roots: Roots, flow: Flow) -> bool:
    """Is it what layers of the module give, in the dtype of their weights, with no cast since?"""
    owner = flow.function.owner if flow.function is not None else None
    if owner is None or not owner.is_module:
        return False
    if any(map(_is_of_wide, roots)):
        return False
    if isinstance(value, Tensor) and value.dtypes is not None:
        return value.dtypes >= FLOATING and value.symbol is not None and not value.symbol.met and value.cast is None
    layers = layers_of(owner.node, _LAYERS)
    return bool(layers) and bool(roots) and all(_gives_weights(origin, layers) for origin in roots)


def _come_of_one(wide: Roots, value: Value, roots: Roots) -> bool:
    """Did one call give what was cast and the operand that was not, as `self.to_qkv(x).chunk(3)` does, whatever that is?"""
    if isinstance(value, Tensor) and value.dtypes is not None and not value.dtypes >= FLOATING:
        return False
    uncast = {origin for root in wide for made in root.of for origin in made.closure()}
    return bool(roots) and all(
        origin.kind == Kind.CALLED and origin in uncast and not _is_of_wide(origin) for origin in roots
    )


def _is_of_wide(origin: Origin) -> bool:
    """Was it made of what is cast to float32 or float64? A layer that takes float32 has float32 weights."""
    return any(part.kind == Kind.CAST and part.text in WIDE for part in origin.closure())


def _gives_weights(origin: Origin, layers: frozenset[str]) -> bool:
    """Has an origin the dtype of weights: what a layer gives, what is put in another form, a parameter of the module?"""
    if origin.kind == Kind.GIVEN:
        return origin.text.startswith("self.") and not counts(origin)
    if origin.kind != Kind.CALLED:
        return False
    if origin.text.rpartition(".")[2] in _REARRANGING:
        return bool(origin.of) and all(_gives_weights(inner, layers) for inner in origin.of)
    return origin.text in layers


def _finding(node: ast.expr, name: str, wide: _Operand, cast: ast.expr, other: _Operand, weighted: bool) -> Finding:
    shown, open_ = ast.unparse(wide.node), ast.unparse(other.node)
    path = path_of(other.node)
    return Finding(
        node,
        f"`{name}` raises if `{short(open_)}` is half: `{short(shown)}` is float32",
        help=f"Cast `{open_}` to float32 too" if weighted else f"Cast `{shown}` back: `.to({open_}.dtype)`",
        notes=((cast, "cast to float32 here"),) if cast.lineno != node.lineno else (),
        conditional=True,
        fix=partial(_fix, wide.node, path) if path is not None and not weighted else None,
    )


def _fix(wide: ast.expr, other: str, place: Place) -> Fix | None:
    edit = place.replace(wide, f"{operand_text(place, wide)}.to({other}.dtype)")
    return Fix(f"Cast it back to the dtype of `{other}`", (edit,), Applicability.UNSAFE)
