"""A tensor of the default dtype that is to hold, or to stand for, what has the dtype of the tensor it was made after: that
is written into it by slices, or into the buffer that it is kept as, or returned in its place on the other path."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.survey import facts
from dtlint.infer.walk import SCOPES, nodes
from dtlint.rule import Finding
from dtlint_rules._assignments import bound_once
from dtlint_rules._effects import FACTORIES
from dtlint_rules._factories import fix_after, is_total, roots_told, says
from dtlint_rules._functions import own_nodes
from dtlint_rules._gathered import gathered
from dtlint_rules._meanings import counts
from dtlint_rules._names import last_name
from dtlint_rules._parts import below, given, keyword, receiver, root_of
from dtlint_rules._sinks import escapes
from dtlint_rules._statements import statements
from dtlint_rules._widths import is_uncast
from dtlint_rules._within import parents_at

if TYPE_CHECKING:
    from typing import TypeGuard

    from dtlint.infer.events import Flow
    from dtlint_rules._origin import Origin
    from dtlint_rules._origins import Origins

__all__ = ["filled"]

_VIEWS = frozenset(
    {"view", "reshape", "permute", "transpose", "contiguous", "squeeze", "unsqueeze", "flatten", "t", "flip", "expand"}
)
"""Methods that give what a tensor holds."""
_PRODUCTS = frozenset({"einsum", "matmul", "bmm", "baddbmm", "scaled_dot_product_attention"})


def filled(factory: ast.Call, after: dict[Origin, ast.expr | None], origins: Origins, place: Flow) -> Finding | None:
    """Where a factory's tensor takes in, or stands for, what has the dtype of one that it was made after."""
    return (
        _written(factory, after, origins, place)
        or _kept_for(factory, origins, place)
        or _returned(factory, after, origins, place)
        or _beside(factory, place)
        or gathered(factory, after, origins, place)
    )


def _written(factory: ast.Call, after: dict[Origin, ast.expr | None], origins: Origins, place: Flow) -> Finding | None:
    """Where the tensor that a factory was made after is written into its own, which is returned:
    `out = torch.zeros(n, device=x.device)`, `out[:k] = x`."""
    for node in statements(place.scope, SCOPES):
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if not isinstance(node, ast.Assign) or not isinstance(target, ast.Subscript):
            continue
        base = root_of(target)
        if not isinstance(base, ast.Name) or {origin.node for origin in origins[base]} != {factory}:
            continue
        if not _is_slice(target, place.scope):
            continue  # by a tensor it raises, which is the matter of DT305
        source = path_of(root_of(below(node.value, _VIEWS)))
        origin = next((origin for origin in roots_told(origins[node.value], factory) if origin in after), None)
        if origin is None or counts(origin) or (source != origin.text and not _is_product(node.value, place)):
            continue
        reads = (part for part in own_nodes(place.scope) if isinstance(part, ast.Name) and part.id == base.id)
        if any(escapes(part, place.scope, place.tree) for part in reads if isinstance(part.ctx, ast.Load)):
            return _into_it(factory, node, base.id, after[origin], origin)
    return None


def _is_slice(target: ast.Subscript, scope: ast.AST) -> bool:
    """Is it written by slices and numbers: `out[:, i]` and `out[2 * i + 1]`, in a loop over `i`?"""
    counters = {
        part.id
        for loop in statements(scope, SCOPES)
        if isinstance(loop, ast.For)
        and isinstance(loop.iter, ast.Call)
        and last_name(loop.iter) in ("range", "enumerate")
        for part in nodes([loop.target])
        if isinstance(part, ast.Name)
    }
    parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    return all(
        isinstance(part, (ast.Slice, ast.Constant))
        or (isinstance(part, ast.Name) and part.id in counters)
        or (
            isinstance(part, ast.BinOp) and any(each.id in counters for each in nodes([part]) if type(each) is ast.Name)
        )
        for part in parts
    )


def _is_product(node: ast.expr, place: Flow) -> bool:
    """Is it a product of matrices, at once or by name: `out[:, i:j] = einsum("b i j, b j d -> b i d", attn, v)`?"""
    made = bound_once(node.id, place.scope) if isinstance(node, ast.Name) else node
    if isinstance(made, ast.BinOp):
        return isinstance(made.op, ast.MatMult)
    return isinstance(made, ast.Call) and last_name(made) in _PRODUCTS


def _into_it(factory: ast.Call, node: ast.stmt, name: str, after: ast.expr | None, origin: Origin) -> Finding:
    told = path_of(after) if after is not None else None
    source = told or origin.text
    return Finding(
        factory,
        f"{says(factory)}: a half `{source}` written into `{name}` becomes float32",
        help=f"Pass `dtype={source}.dtype`",
        notes=((node, "it is written here"),),
        conditional=True,
        fix=fix_after(told) if told is not None else None,
    )


def _kept_for(factory: ast.Call, origins: Origins, place: Flow) -> Finding | None:
    """Where a tensor is written into one that is kept for it, in its shape: `self.frames = torch.zeros(n, *x.shape)`,
    `self.frames[0].copy_(x)`."""
    statement = parents_at(factory, place).get(factory)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if not isinstance(target, (ast.Attribute, ast.Subscript)):
        return None
    buffer = ast.unparse(target)
    measured = {ast.unparse(part.value): part.value for part in nodes(given(factory)) if _is_shape(part)}
    for node in statements(place.scope, SCOPES) if measured else ():
        written = _write(node, buffer)
        tensor = measured.get(ast.unparse(written)) if written is not None else None
        if tensor is not None and origins[tensor] and not any(map(counts, origins[tensor])):
            text = ast.unparse(tensor)
            return Finding(
                factory,
                f"{says(factory)}: a half `{text}` written into `{buffer}` becomes float32",
                help=f"Pass `dtype={text}.dtype`",
                notes=((node, "it is written here"),),  # type: ignore[arg-type]  # a statement of the function
                conditional=True,
                fix=fix_after(text),
            )
    return None


def _is_shape(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and node.attr == "shape"


def _write(node: ast.AST, buffer: str) -> ast.expr | None:
    """What a statement writes into a slice of a buffer: `buffer[i] = x`, `buffer[0].copy_(x)`."""
    if isinstance(node, ast.Assign):
        target, value = node.targets[0], node.value
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and last_name(node.value) == "copy_":
        held = receiver(node.value)
        if held is None or len(node.value.args) != 1:
            return None
        target, value = held, node.value.args[0]
    else:
        return None
    while isinstance(target, ast.Subscript):
        target = target.value
        if ast.unparse(target) == buffer:
            return value
    return None


def _returned(factory: ast.Call, after: dict[Origin, ast.expr | None], origins: Origins, place: Flow) -> Finding | None:
    """Where one path returns it, and another what is computed from the tensor that it was made after:
    `if not keep.any(): return torch.zeros(0, x.shape[1], device=x.device)`, `return x[keep] * scale`."""
    known, node = parents_at(factory, place), factory
    while isinstance(method := known.get(node), ast.Attribute) and isinstance(call := known.get(method), ast.Call):
        if method.attr not in _VIEWS | {"to", "cuda", "requires_grad_"}:
            return None
        node = call
    if not isinstance(known.get(node), ast.Return) or is_total(getattr(place.scope, "name", "")):
        return None
    for other in statements(place.scope, SCOPES):
        value = other.value if isinstance(other, ast.Return) else None
        if value is None or value is node or not is_uncast(value, origins[value]):
            continue
        origin = next((origin for origin in roots_told(origins[value], factory) if origin in after), None)
        if origin is None or "mask" in origin.text:
            continue
        told = path_of(direct) if (direct := after[origin]) is not None else None
        return Finding(
            factory,
            f"{says(factory)}, but the other path returns the dtype of `{told or origin.text}`",
            help=f"Pass `dtype={told or origin.text}.dtype`",
            notes=((value, "the other path"),),
            conditional=True,
            fix=fix_after(told) if told is not None else None,
        )
    return None


def _beside(factory: ast.Call, place: Flow) -> Finding | None:
    """Where it is filled by slices, and another factory of the function is told the dtype of the tensor that this one has
    only the last dimensions and the device of: `out = torch.zeros(shape, dtype=x.dtype, device=x.device)`,
    `part = torch.empty(n, *x.shape[2:], device=x.device)`, `part[:k] = y`."""
    statement = parents_at(factory, place).get(factory)
    name = path_of(statement.targets[0]) if isinstance(statement, ast.Assign) else None
    device = path_of(keyword(factory, "device") or factory) or ""
    tensor = device.removesuffix(".device")
    if last_name(factory) not in ("zeros", "empty") or name is None or tensor == device or "mask" in name:
        return None
    others = (part for part in facts(place.scope).calls if last_name(part) in FACTORIES)
    told = next((part for part in others if path_of(keyword(part, "dtype") or part) == f"{tensor}.dtype"), None)
    if told is None or not any(_has_last_of(part, tensor) for part in factory.args):
        return None
    written = _writes(name, place.scope)
    if not written or any(isinstance(node, ast.AugAssign) for node in written):
        return None
    return Finding(
        factory,
        f"{says(factory)}, but holds rows of `{tensor}`, whose dtype `{last_name(told)}` takes in line {told.lineno}",
        help=f"Pass `dtype={tensor}.dtype`",
        notes=((told, f"made in the dtype of `{tensor}`"), (written[0], "filled here")),
        conditional=True,
        fix=fix_after(tensor),
    )


def _has_last_of(size: ast.expr, tensor: str) -> bool:
    """Does a size take the last dimensions of a tensor, with all that is in its rows: `x.shape`, `*x.shape[2:]`?"""
    size = size.value if isinstance(size, ast.Starred) else size
    if isinstance(size, (ast.Tuple, ast.List)):
        return any(_has_last_of(part, tensor) for part in size.elts)
    if isinstance(size, ast.Subscript):
        if not isinstance(size.slice, ast.Slice) or size.slice.upper is not None:
            return False
        size = size.value
    return path_of(size) == f"{tensor}.shape"


def _writes(name: str, scope: ast.AST) -> list[ast.Assign | ast.AugAssign]:
    """The statements that write into a tensor, or add to it."""
    return [
        node
        for node in statements(scope, SCOPES)
        if isinstance(node, (ast.Assign, ast.AugAssign))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if path_of(target.value if isinstance(target, ast.Subscript) else target) == name
        if isinstance(target, ast.Subscript) or isinstance(node, ast.AugAssign)
    ]
