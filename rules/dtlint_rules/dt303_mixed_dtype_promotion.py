"""DT303: one of two values is cast to the dtype of a tensor that it meets, and the other is not."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.reach import Reach
from dtlint.infer.survey import facts
from dtlint.infer.values import Tensor, Trait
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._assignments import assignments
from dtlint_rules._effects import FACTORIES, JOINING, NO_TENSOR
from dtlint_rules._effects import TORCH as TORCH_PACKAGES
from dtlint_rules._flags import cast_flags, casts_flags, is_scaled, is_uncast
from dtlint_rules._functions import own_nodes
from dtlint_rules._half import half_at, place_in
from dtlint_rules._masks import is_mask
from dtlint_rules._meanings import counts, is_device, is_setting
from dtlint_rules._names import last_name
from dtlint_rules._needs import TORCH, attributes
from dtlint_rules._origin import Kind
from dtlint_rules._origins import origins_of
from dtlint_rules._parts import below, keyword, receiver
from dtlint_rules._provenance import follows, may_be_cast
from dtlint_rules._regions import is_off
from dtlint_rules._sinks import RAISING, escapes
from dtlint_rules._statements import statements
from dtlint_rules._texts import as_operand
from dtlint_rules._widths import is_open
from dtlint_rules._within import parents_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeGuard

    from dtlint.infer.events import Call, End, Flow, Operation
    from dtlint_rules._origin import Origin, Roots
    from dtlint_rules._origins import Origins

__all__ = ["MixedDtypePromotion"]

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)


class MixedDtypePromotion(Rule):
    """One of two values is cast to the dtype of the tensor that both meet, and the other is not.

    ## What it does
    Reports five forms of one oversight:

    - a value that one branch of an `if` casts to `x.dtype`, and the other branch leaves as it is;
    - of two attributes of one object, such as a mean and a standard deviation, one is cast to `x.dtype` and the other is
      not, in one computation with `x`;
    - a table kept on `self` that is moved to `x.device`, and not cast to `x.dtype`, before it meets `x` in arithmetic,
      a convolution or another product;
    - a mask, a comparison or a one-hot tensor that is cast to float32 by hand and multiplied with what the function is
      given, `x * (labels == other).float()`, where the product is returned or goes into a layer, in a module or in code
      for half, that does not switch autocast off;
    - of two operands that are computed in the same steps, one is cast to float32 on the way, and the other is not:
      `cls_score.float().sigmoid() * obj_score.sigmoid()`.

    ## Why it matters
    Arithmetic, `torch.cat` and `torch.stack` promote: one float32 operand with dimensions makes the result float32,
    with no word, although somebody took care to prevent it at the other place. It is noticed layers later, where half
    weights raise.

    ## Example
    ```python
    import torch


    def standardise(stats: torch.nn.BatchNorm1d, x: torch.Tensor) -> torch.Tensor:
        mean = stats.running_mean.to(x.device, x.dtype)
        std = stats.running_var.sqrt()
        return (x - mean) / std
    ```

    ## Use instead
    ```python
    import torch


    def standardise(stats: torch.nn.BatchNorm1d, x: torch.Tensor) -> torch.Tensor:
        mean = stats.running_mean.to(x.device, x.dtype)
        std = stats.running_var.sqrt().to(x.device, x.dtype)
        return (x - mean) / std
    ```

    ## References
    - [Type promotion](https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc)
    - [torch.result_type](https://docs.pytorch.org/docs/stable/generated/torch.result_type.html)
    """

    code, name = "DT303", "mixed-dtype-promotion"
    calls = frozenset({"to", "type_as", "type", *FACTORIES})
    triggers = (".dtype", "self.dtype", ".type_as", ".to", ".float")
    needs = (TORCH, attributes((*calls, "float")))
    operators = frozenset(_ARITHMETIC)

    def __init__(self) -> None:
        self.casting: dict[ast.AST, Flow] = {}
        """The functions that cast something, and the first place where they do."""
        self.moved: dict[ast.AST, list[ast.Call]] = {}
        """By function, what is moved to the device of a tensor, and keeps its dtype."""

    def on_call(self, call: Call) -> Iterable[Finding]:
        flow = call.flow
        if flow.function is None or not call.method:
            return ()
        scope = flow.scope
        moved = call.method == "to" and _is_moved(call)
        if scope not in self.casting and (moved or _names_dtype_of(call.node)):
            self.casting[scope] = place_in(flow)
        if moved and call.node not in self.moved.setdefault(scope, []):
            self.moved[scope].append(call.node)
        return ()

    def on_operation(self, operation: Operation) -> Iterable[Finding]:
        node = operation.node
        if not isinstance(node, ast.BinOp) or not (
            isinstance(node.left, ast.Call) and isinstance(node.right, ast.Call)
        ):
            return ()
        return _of_steps(node, operation)

    def on_end(self, end: End) -> Iterable[Finding]:
        scope = end.node
        place, moved = self.casting.pop(scope, None), self.moved.pop(scope, ())
        found: list[Finding] = []
        masks = facts(scope).floats and end.flow.function is not None and casts_flags(scope)
        if masks and _is_meant_for_half(end.flow) and not _switches_autocast_off(scope):
            found += _of_masks(end)
        if place is not None:
            found += _of_casts(end, place, moved)
        return found


def _of_casts(end: End, place: Flow, moved: Iterable[ast.Call]) -> Iterable[Finding]:
    """What a function casts to the dtype of something, and what it leaves as it is."""
    scope = end.node
    casts = [call for call in facts(scope).telling if follows(call)]
    if not (casts or moved) or _is_kernel(scope):
        return ()
    branches = [node for node in statements(scope) if isinstance(node, ast.If) and _may_part(node)]
    operate = bool(moved) or (_takes_attribute(casts, scope) and _has_siblings(scope))
    found = list(_judged(end, branches, operate, moved)) if branches or operate else []
    return found if found and half_at(place, dtype=None) is not None else ()


def _is_kernel(scope: ast.AST) -> bool:
    """Is a function compiled for a GPU, `@triton.jit`? Who writes kernels chooses the width of each step."""
    return any(last_name(part) in ("jit", "kernel", "prim_func") for part in getattr(scope, "decorator_list", ()))


def _judged(end: End, branches: list[ast.If], operate: bool, moved: Iterable[ast.Call]) -> Iterator[Finding]:
    """The findings of the branches that may cast differently, and, where anything may be found there, of what meets."""
    origins = origins_of(end.node)
    for statement in branches:
        yield from _of_branches(statement, origins, end.node)
    seen: set[ast.AST] = set()
    for node in reversed(origins.of) if operate else ():
        operands, factors = _operands(node), _factors(node) if moved else []
        found = [*_of_siblings(operands, origins, end.node), *_of_tables(operands, origins, moved)] if operands else []
        if found and not escapes(node, end.node, end.flow.tree):
            found = []
        for finding in (*found, *(_of_tables(factors, origins, moved, raises=True) if factors else ())):
            if finding.node not in seen:
                seen.add(finding.node)
                yield finding


# -- a mask is cast to float32 by hand --------------------------------------------------------------------------------


def _of_masks(end: End) -> Iterator[Finding]:
    """`x * (labels == other).float()`, which comes out of the function or goes into a layer."""
    origins = origins_of(end.node)
    told: set[ast.expr] = set()
    for node in reversed(list(filter(_is_operation, origins.of))):
        sides = _multiplied(node)
        for mask, other in (sides, sides[::-1]) if sides else ():
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and not is_scaled(mask, end.node):
                continue
            cast = cast_flags(mask, end.node)
            if cast is None or cast in told or not is_uncast(other, origins[other]):
                continue
            if _is_summed(node, end.node) or not escapes(node, end.node, end.flow.tree):
                continue
            told.add(cast)
            yield Finding(
                cast,
                f"A mask has no digits to keep: as float32 it promotes `{ast.unparse(other)}` to float32 if that is half",
                help=f"Cast it to the dtype of what it meets: `.to({as_operand(other)}.dtype)`",
                notes=((node, "it meets that here"),) if node.lineno != cast.lineno else (),
            )


def _is_summed(node: ast.expr, scope: ast.AST) -> bool:
    """Is a product added up where it stands, as in the mean over tokens? A sum is well kept in float32."""
    around = parents_in(scope)
    parent = around.get(node)
    if isinstance(parent, ast.Attribute):
        return parent.attr in _ADDING_UP
    return (
        isinstance(parent, ast.Call)
        and last_name(parent) in _ADDING_UP
        and bool(parent.args)
        and parent.args[0] is node
    )


_ADDING_UP = frozenset({"sum", "mean"})


def _is_meant_for_half(place: Flow) -> bool:
    """Does half reach a function for a reason: it casts something to a dtype that it is given, it is a method of a
    module, or it is one of no class, and the file asks for half?"""
    reached, owner = half_at(place, dtype=None), place.function.owner if place.function is not None else None
    if reached is None:
        return False
    meant = reached.level > Reach.LIBRARY if owner is None else owner.is_module
    return meant or any(map(follows, facts(place.scope).telling))


def _switches_autocast_off(scope: ast.AST) -> bool:
    """Does a function run itself, or a part of it, in float32 on purpose?"""
    entered = (node.items for node in statements(scope) if isinstance(node, (ast.With, ast.AsyncWith)))
    contexts = [item.context_expr for items in entered for item in items]
    return any(map(is_off, (*contexts, *getattr(scope, "decorator_list", ()))))


def _is_operation(node: ast.AST) -> TypeGuard[ast.BinOp | ast.Call]:
    return isinstance(node, (ast.BinOp, ast.Call))


def _multiplied(node: ast.BinOp | ast.Call) -> tuple[ast.expr, ast.expr] | None:
    """The two factors of a product, or what is added up: `x * mask`, `x.mul(mask)`, `scores + (1.0 - mask) * -1e4`."""
    if isinstance(node, ast.BinOp):
        return (node.left, node.right) if isinstance(node.op, (ast.Mult, ast.Add)) else None
    if last_name(node) in ("mul", "multiply") and node.args:
        held = receiver(node)
        of_torch = held is not None and path_of(held) in TORCH_PACKAGES
        given = node.args if of_torch or held is None else [held, *node.args]
        return (given[0], given[1]) if len(given) == 2 else None
    return None


# -- one branch casts -------------------------------------------------------------------------------------------------


def _of_branches(node: ast.If, origins: Origins, scope: ast.AST) -> Iterator[Finding]:
    one, two = _last_bound(node.body), _last_bound(node.orelse)
    for name in one.keys() & two.keys():
        for cast, plain in ((one[name], two[name]), (two[name], one[name])):
            tensor = _cast_to(origins[cast.value])
            if tensor is None or not _is_foreign(origins[plain.value], tensor) or _has_dtype_of(plain.value):
                continue
            if _is_made_like(plain.value, tensor):
                continue
            if not _is_cast_call(cast.value) and not _is_of_torch(origins[plain.value]):
                continue  # where one branch makes it, the other may have been given it in that dtype
            if not _is_used_uncast(name, node, scope, origins):
                continue
            by_itself = isinstance(cast.value, ast.Call) and name in {part.id for part in _names(cast.value)}
            where = cast.value if by_itself else plain.value
            yield Finding(
                where,
                f"`{name}` has the dtype of `{tensor}` only where this branch is taken: the other leaves it as it is"
                if by_itself
                else f"`{name}` has the dtype of `{tensor}` by the other branch, and not by this one",
                help="Cast it behind the `if`" if by_itself else f"Cast it here, too: `.to({tensor}.dtype)`",
                notes=((plain.value if by_itself else cast.value, "the other branch"),),
            )


def _may_part(statement: ast.If) -> bool:
    """Does an `if` bind a name to what may be cast in one branch, and to something else that has a dtype in the other?"""
    if not statement.orelse:
        return False
    one, two = _last_bound(statement.body), _last_bound(statement.orelse)
    values = [(one[name].value, two[name].value) for name in one.keys() & two.keys()]
    return any(
        (may_be_cast(value) and not isinstance(other, _WITHOUT_DTYPE))
        or (may_be_cast(other) and not isinstance(value, _WITHOUT_DTYPE))
        for value, other in values
    ) and not _has_dtype_of(statement.test)


_WITHOUT_DTYPE = (ast.Constant, ast.JoinedStr, ast.Compare, ast.BoolOp, ast.Dict)


def _last_bound(block: list[ast.stmt]) -> dict[str, ast.Assign]:
    """The last assignment of each name among the statements of a block."""
    return {
        statement.targets[0].id: statement
        for statement in block
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
    }


def _cast_to(roots: Roots) -> str | None:
    """The tensor to whose dtype a value is cast, on each path."""
    text = next(iter(roots)).text if roots else ""
    if not text.endswith(".dtype") or not all(origin.kind == Kind.CAST and origin.text == text for origin in roots):
        return None
    base = text.removesuffix(".dtype")
    return base if base.replace(".", "").isidentifier() and base != "torch" else None


def _is_foreign(roots: Roots, tensor: str) -> bool:
    """Does a value come from elsewhere, without a cast: not from that tensor either?"""
    if not roots or any(origin.kind == Kind.CAST or counts(origin) for origin in roots):
        return False
    return not any(_is_of(origin, tensor) or _is_owned(origin, tensor) for root in roots for origin in root.closure())


def _is_made_like(node: ast.expr, tensor: str) -> bool:
    """`torch.zeros_like(h)`, `h.new_zeros(n)`, of `h`."""
    if not isinstance(node, ast.Call) or keyword(node, "dtype") is not None:
        return False
    name, held = last_name(node), receiver(node)
    like = node.args[0] if name.endswith("_like") and node.args else held if name.startswith("new_") else None
    return like is not None and path_of(like) == tensor


def _is_owned(origin: Origin, tensor: str) -> bool:
    """Does a part of the model that the tensor belongs to compute it: `attn.to_k(x)`, for `attn.to_q.weight`?"""
    owner = _owner(origin.text)
    return origin.kind == Kind.CALLED and owner == _owner(tensor) and owner not in ("torch", origin.text)


def _owner(path: str) -> str:
    parts = path.split(".")
    return ".".join(parts[:2] if parts[0] == "self" else parts[:1])


def _is_cast_call(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and last_name(node) in ("to", "type", "type_as")


def _is_of_torch(roots: Roots) -> bool:
    """Does a function of torch make a value, which is told no dtype?"""
    return all(
        root.kind == Kind.MADE or (root.kind == Kind.CALLED and root.text.startswith("torch.")) for root in roots
    )


def _meets(roots: Roots, tensor: str) -> bool:
    return any(_is_of(root, tensor) for root in roots)


def _is_of(origin: Origin, tensor: str) -> bool:
    return origin.kind == Kind.GIVEN and (origin.text == tensor or origin.text.startswith(f"{tensor}."))


def _has_dtype_of(node: ast.expr) -> bool:
    return any(map(_is_named_dtype, nodes([node])))


def _is_named_dtype(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr.endswith("dtype")
    if isinstance(node, ast.Name):
        return node.id.endswith("dtype")
    return isinstance(node, ast.keyword) and node.arg is not None and node.arg.endswith("dtype")


def _is_used_uncast(name: str, branch: ast.If, scope: ast.AST, origins: Origins) -> bool:
    """Does it go into arithmetic or a call behind the `if`, before anybody casts it?"""
    end = branch.end_lineno or branch.lineno
    later = sorted(
        (node for node in nodes([scope]) if isinstance(node, (ast.BinOp, ast.Call)) and node.lineno > end),
        key=lambda node: (node.lineno, -node.col_offset),
    )
    for node in later:
        if isinstance(node, ast.Call):
            receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
            if isinstance(receiver, ast.Name) and receiver.id == name:
                if origins.told(node) is not None:
                    return False
                continue
            given: list[ast.expr] = _operands(node)
        else:
            given = [node.left, node.right]
        if any(isinstance(part, ast.Name) and part.id == name for part in given):
            return True
    return False


# -- one of two siblings is cast --------------------------------------------------------------------------------------


def _of_siblings(operands: list[ast.expr], origins: Origins, scope: ast.AST) -> Iterator[Finding]:
    for cast in operands:
        tensor = _cast_to(origins[cast])
        if tensor is None or not any(path_of(other) == tensor or _meets(origins[other], tensor) for other in operands):
            continue
        cast_from = [inner for root in origins[cast] for inner in root.of if inner.kind == Kind.GIVEN]
        of_tensor = frozenset(root for other in operands if path_of(other) == tensor for root in origins[other])
        for other in operands if len(cast_from) == 1 else ():
            roots = origins[other]
            if len(roots) != 1 or roots & of_tensor or not _is_foreign(roots, tensor):
                continue
            (root,), (sibling,) = roots, cast_from
            if root.kind != Kind.GIVEN or not _are_siblings(root.text, sibling.text):
                continue
            place = _where_bound(other, scope)
            yield Finding(
                place,
                f"`{sibling.text}` is cast to the dtype of `{tensor}`, and `{root.text}` is not: it promotes `{tensor}` to its own",
                help=f"Cast it, too: `.to({tensor}.dtype)`",
                notes=((next(iter(origins[cast])).node, f"`{sibling.text}` is cast here"),),
            )


_PAIRS = (
    *({"mean", "std"}, {"mean", "var"}, {"scale", "shift"}, {"scale", "bias"}, {"weight", "bias"}, {"cos", "sin"}),
    *({"gamma", "beta"}, {"scale", "zero"}, {"min", "max"}, {"alpha", "beta"}, {"alpha", "sigma"}),
)

_PAIRED = frozenset[str]().union(*_PAIRS)


def _are_siblings(one: str, other: str) -> bool:
    """Are two paths attributes of one object that go together: `bn.running_mean` and `bn.running_var`?"""
    family, _, name = one.rpartition(".")
    if one == other or not family or family != other.rpartition(".")[0]:
        return False
    words, others = set(name.lower().split("_")), set(other.rpartition(".")[2].lower().split("_"))
    return family != "self" or any(pair <= words | others and not pair <= words & others for pair in _PAIRS)


def _takes_attribute(casts: Iterable[ast.Call], scope: ast.AST) -> bool:
    """May one of some casts be of an attribute that another can be the sibling of: where it stands, or by a name that is
    bound to it?"""
    called = {call.func for call in facts(scope).calls}
    queue = [part for cast in casts for part in _what_is_cast(cast)]
    asked: set[str] = set()
    while queue:
        node = queue.pop()
        if node is None:
            return True  # taken apart: what it was is not told
        for part in nodes([node]):
            kind = type(part)
            if kind in _IN_FAMILIES:
                if part not in called and _may_have_sibling(_text_of(part)):  # type: ignore[arg-type]  # it is one of these
                    return True
            elif kind is ast.Name and part.id not in asked:  # type: ignore[attr-defined]
                asked.add(part.id)  # type: ignore[attr-defined]
                queue += [value for _, value in assignments(scope).get(part.id, ())]  # type: ignore[attr-defined]
    return False


def _may_have_sibling(path: str | None) -> bool:
    """May `_are_siblings` say yes to a path and another one?"""
    family, _, name = (path or "").rpartition(".")
    return family not in _PACKAGES and (family != "self" or not _PAIRED.isdisjoint(name.lower().split("_")))


_PACKAGES = frozenset({"", "torch", "nn", "torch.nn", "np", "numpy", "math"})
"""What no tensor is an attribute of, and what has no attributes."""


def _what_is_cast(cast: ast.Call) -> list[ast.expr | None]:
    """The receiver of a method that casts, and what another function is given besides the dtype."""
    held: list[ast.expr | None] = [cast.func.value] if isinstance(cast.func, ast.Attribute) else []
    if _is_cast_call(cast):
        return held
    return [*held, *cast.args, *(keyword.value for keyword in cast.keywords if keyword.arg != "dtype")]


def _has_siblings(scope: ast.AST) -> bool:
    """Does a function use two attributes, or items of attributes, that are siblings?"""
    families: dict[str, set[str]] = {"self": set()}
    called = {call.func for call in facts(scope).calls}
    for node in own_nodes(scope):
        if type(node) not in _IN_FAMILIES or node in called:
            continue
        if (path := _text_of(node)) is None:  # type: ignore[arg-type]  # it is one of these
            continue
        family = path.rpartition(".")[0]
        if family in _PACKAGES:
            continue
        paths = families.setdefault(family, set())
        paths.add(path)
        if family != "self" and len(paths) > 1:
            return True
    return _hold_siblings(families["self"])


_IN_FAMILIES = frozenset({ast.Attribute, ast.Subscript})


def _hold_siblings(paths: set[str]) -> bool:
    """Are two attributes of `self` siblings? Of anything else, any two are."""
    words = {word for path in paths for word in path.removeprefix("self.").lower().split("_")}
    return any(pair <= words for pair in _PAIRS) and any(_are_siblings(one, other) for one in paths for other in paths)


def _text_of(node: ast.Attribute | ast.Subscript) -> str | None:
    """An attribute or an item, as origins call it; None for what is no tensor."""
    if isinstance(node, ast.Attribute):
        path = path_of(node) if node.attr not in NO_TENSOR else None
        return path if path is not None and not is_setting(path) else None
    if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        path = path_of(node.value)
        return None if path is None else f"{path}[{node.slice.value!r}]"
    return None


def _where_bound(node: ast.expr, scope: ast.AST) -> ast.expr:
    """The value that a name was bound to last, before it is used there; the expression itself where it is no name."""
    if not isinstance(node, ast.Name):
        return node
    before = [value for line, value in assignments(scope).get(node.id, ()) if line < node.lineno]
    return before[-1] if before and before[-1] is not None else node


# -- a table is moved and not cast ------------------------------------------------------------------------------------


def _is_moved(call: Call) -> bool:
    """Is it `self.table.to(x.device)`, of what is no weight of a module?"""
    path = _table_of(call.node)
    of_self = (
        path is not None and path.startswith("self.") and path.count(".") == 1
    )  # a part of a model is cast with it
    if not of_self or len(call.node.args) + len(call.node.keywords) != 1:
        return False
    if isinstance(call.receiver, Tensor) and call.receiver.traits & (Trait.PARAMETER | Trait.BUFFER):
        return False
    device = call.argument_node(0, "device")
    return (
        isinstance(device, ast.Attribute)
        and device.attr == "device"
        and path_of(device) != "self.device"
        and is_device(device)
    )


def _table_of(moved: ast.Call) -> str | None:
    """What is moved: `self.kernel` of `self.kernel.expand(c, 1, -1, -1).to(x.device)`."""
    held = receiver(moved)
    return None if held is None else path_of(below(held, _FORMS))


_FORMS = frozenset({"expand", "expand_as", "repeat", "unsqueeze", "squeeze", "view", "reshape", "clone", "contiguous"})


def _factors(node: ast.AST) -> list[ast.expr]:
    """The two operands of a product that does not promote: `F.conv2d(x, kernel)`."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right] if isinstance(node.op, ast.MatMult) else []
    of_torch = isinstance(node, ast.Call) and last_name(node) in RAISING - {"einsum"} and len(node.args) > 1
    return node.args[:2] if of_torch and isinstance(node, ast.Call) else []


def _of_tables(
    operands: list[ast.expr], origins: Origins, moved: Iterable[ast.Call], *, raises: bool = False
) -> Iterator[Finding]:
    """Of what was moved to the device of a tensor and meets it: in a product, which raises, by whatever name."""
    for call in moved:
        device = call.args[0] if call.args else call.keywords[0].value
        assert isinstance(device, ast.Attribute)
        table, tensor = _table_of(call), path_of(device.value)
        if tensor is None or table is None:
            continue
        with_table = [node for node in operands if {root.text for root in origins[node]} == {table}]
        of_tensor = origins[device.value] if raises else frozenset()
        with_tensor = [node for node in operands if _meets(origins[node], tensor) or of_tensor & origins[node]]
        if with_table and with_tensor and not any(counts(root) for node in with_tensor for root in origins[node]):
            yield Finding(
                call,
                f"`{table}` is moved to the device of `{tensor}`, and keeps its dtype: a half `{tensor}` is promoted to that, or the op raises",
                help=f"Cast it with the move: `.to(device={tensor}.device, dtype={tensor}.dtype)`",
                notes=((with_table[0], f"it meets `{tensor}` here"),),
            )


# -- one of two that are computed alike is cast -----------------------------------------------------------------------


def _of_steps(node: ast.BinOp, operation: Operation) -> Iterator[Finding]:
    """`a.float().unsqueeze(0).sigmoid() * b.unsqueeze(0).sigmoid()`"""
    sides = [(node.left, operation.left, *_steps(node.left)), (node.right, operation.right, *_steps(node.right))]
    for (wide, _, base, steps), (plain, value, other, rest) in (sides, sides[::-1]):
        cast = [step for step in steps if step == _TO_FLOAT]
        if len(cast) != 1 or not rest or _TO_FLOAT in rest or [step for step in steps if step != _TO_FLOAT] != rest:
            continue
        if not _are_alike(path_of(base), path_of(other)) or is_mask(base):
            continue
        flow = operation.flow
        if not is_open(value, origins_of(flow.scope)[other]) or half_at(flow, value, dtype=None) is None:
            continue
        yield Finding(
            plain,
            f"`{ast.unparse(base)}` is cast to float32 before the same steps, and `{ast.unparse(other)}` is not: these run "
            "in half, and only their result is promoted",
            help=f"Cast it, too: `{ast.unparse(other)}.float()`",
            notes=((wide, f"`{ast.unparse(base)}` is cast here"),),
        )


_TO_FLOAT = ("float", "")


def _steps(node: ast.expr) -> tuple[ast.expr, list[tuple[str, str]]]:
    """The expression that a chain of methods begins with, and the methods, last first, with their arguments."""
    steps = []
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        given = ", ".join(map(ast.unparse, (*node.args, *(keyword.value for keyword in node.keywords))))
        steps.append((node.func.attr, given))
        node = node.func.value
    return node, steps


def _are_alike(one: str | None, other: str | None) -> bool:
    """Are two names, by a word that they share, of things of one kind: `cls_preds` and `obj_preds`, `q` and `k`?"""
    if one is None or other is None or one == other:
        return False
    words, others = set(_WORDS.findall(one.lower())), set(_WORDS.findall(other.lower()))
    return bool(words & others) or max(map(len, words | others), default=2) == 1


_WORDS = re.compile(r"[a-z]+|\d+")


# -- what meets -------------------------------------------------------------------------------------------------------


def _operands(node: ast.AST) -> list[ast.expr]:
    """The tensors that meet in a sum, a product or a joining function."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, _ARITHMETIC):
        left, right = _terms(node.left), _terms(node.right)
        return [*left, *right]
    if isinstance(node, ast.Call) and last_name(node) in JOINING:
        given = [
            item
            for argument in node.args
            for item in (argument.elts if isinstance(argument, (ast.List, ast.Tuple)) else [argument])
        ]
        receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
        return given if receiver is None or path_of(receiver) in ("torch", "th", "F") else [receiver, *given]
    return []


def _terms(node: ast.expr) -> list[ast.expr]:
    """What an expression adds up and multiplies; itself where it does not."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, _ARITHMETIC):
        return [*_terms(node.left), *_terms(node.right)]
    return [node]


def _names(node: ast.AST) -> Iterator[ast.Name]:
    return (part for part in ast.walk(node) if isinstance(part, ast.Name))


def _names_dtype_of(node: ast.Call) -> bool:
    """Does a cast name the dtype of something: `.to(x.dtype)`, `.to(dtype)`, `.type_as(x)`?"""
    to_tensor = last_name(node) == "to" and len(node.args) == 1 and isinstance(node.args[0], ast.Name)
    return last_name(node) == "type_as" or _has_dtype_of(node) or (to_tensor and not is_device(node.args[0]))
