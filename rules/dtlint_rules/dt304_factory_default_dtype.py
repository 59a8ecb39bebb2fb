"""DT304: a tensor that is made after another has not its dtype, and meets it."""

from __future__ import annotations

import ast
import re
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix
from dtlint.infer.names import path_of
from dtlint.infer.survey import facts
from dtlint.infer.values import Constant, Number, Tensor, Trait
from dtlint.infer.walk import SCOPES, nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._assignments import assignments, bound_once
from dtlint_rules._effects import FACTORIES, JOINING
from dtlint_rules._functions import own_nodes, parameters
from dtlint_rules._half import half_at, place_in
from dtlint_rules._layers import entered
from dtlint_rules._makers import DISTRIBUTIONS, made_by, makers_of, sampled
from dtlint_rules._meanings import counts
from dtlint_rules._names import last_name
from dtlint_rules._needs import TORCH, attributes
from dtlint_rules._origin import Kind, in_order
from dtlint_rules._origins import origins_of
from dtlint_rules._parts import below, given, keyword, receiver, root_of
from dtlint_rules._provenance import measures
from dtlint_rules._sinks import RAISING, escapes
from dtlint_rules._statements import statements
from dtlint_rules._texts import short
from dtlint_rules._widths import is_uncast
from dtlint_rules._within import parents_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeGuard

    from dtlint.infer.events import Call, End, Flow
    from dtlint.source.place import Place
    from dtlint_rules._origin import Origin, Roots
    from dtlint_rules._origins import Origins

__all__ = ["FactoryDefaultDtype"]

_HELPERS = frozenset({"randn_tensor", "rand_tensor"})
"""What libraries call their own `torch.randn` for any device; with `dtype=` like it."""
_NOISE = frozenset({"randn", "rand", *_HELPERS})
_OF_SHAPES = frozenset({"zeros", "ones", "empty", "rand", "randn"})
"""Factories that take sizes and nothing else by position."""
_MIXERS = re.compile(r"noise|noisy|q_sample|mix|lerp|blend|interpolate", re.IGNORECASE)
"""Names of functions that add up what they are given."""
_PLAIN = frozenset({"str", "int", "float", "bool", "Path", "os.PathLike", "SparseTensor", "np.ndarray"})
_PRODUCTS = frozenset({"conv1d", "conv2d", "conv3d", "linear", "grid_sample"})
_VIEWS = frozenset(
    {"view", "reshape", "permute", "transpose", "contiguous", "squeeze", "unsqueeze", "flatten", "t", "flip", "expand"}
)
"""Methods that give what a tensor holds."""
_RECURRENT = re.compile(r"(?:^|_)(?:lstm|gru|rnn|cells?)\d*$", re.IGNORECASE)
"""Names of recurrent layers, whose states have to be of the dtype of their input."""
_SUMS = re.compile(
    r"loss|total|accum|(?:^|_)(?:acc|sum|count|hist|metrics?|stats?|cost|scores?|example|dummy)(?:$|_|\d)",
    re.IGNORECASE,
)
"""Names of what is added up, in float32 for good reason, and of inputs to try a model with."""


class FactoryDefaultDtype(Rule):
    """A tensor that is made in the shape of another has the default dtype, and then meets it.

    ## What it does
    Reports a factory without `dtype=` (`torch.randn`, `torch.zeros`, `torch.full`, `torch.where(mask, 1.0, 0.0)`) that
    takes its shape or its device from a tensor, where the result is then added to, multiplied with, concatenated to or
    written into that tensor or what is computed from it; one that stands in for the missing bias of a layer in a
    product, `torch.zeros(n, device=conv.weight.device) if conv.bias is None else conv.bias`; one that a product of
    matrices is written into by slices; and noise in the shape that a model is configured for that goes into the model
    uncast.

    What a function of the file makes counts like a factory if it is handed `x.device` and no dtype, and so does what is
    drawn from `Uniform(0.9, 1.1)` in the shape of `x`. Besides, the rule reports a buffer for tensors that is made in
    the shape of the first of them, `self.frames = torch.zeros(n, *x.shape)`; a factory's tensor that goes into a layer
    of the module itself, or into a Sequential that begins with one; one that one path returns, where another returns
    what is computed from `x`; and one that is filled with rows of the shape of `x`, where another factory of the
    function is told `dtype=x.dtype`.

    ## Why it matters
    The factory gives float32, whatever the tensor is. With a half tensor the result of arithmetic is float32 from there
    on, at twice the memory, until a layer with half weights raises "mat1 and mat2 must have the same dtype". With a
    float64 tensor digits are lost.

    ## Example
    ```python
    import torch


    def jitter(x: torch.Tensor, scale: float) -> torch.Tensor:
        noise = torch.randn(x.shape, device=x.device)
        return x + scale * noise
    ```

    ## Use instead
    ```python
    import torch


    def jitter(x: torch.Tensor, scale: float) -> torch.Tensor:
        noise = torch.randn(x.shape, device=x.device, dtype=x.dtype)
        return x + scale * noise
    ```

    ## Fix safety
    The fix passes the dtype of the tensor that the shape or the device was taken of. It is unsafe: in half the values
    of the factory are rounded, numbers drawn at random are others than before, and that tensor may hold integers.

    ## References
    - [torch.randn: dtype](https://docs.pytorch.org/docs/stable/generated/torch.randn.html)
    - [torch.randn_like](https://docs.pytorch.org/docs/stable/generated/torch.randn_like.html)
    """

    code, name = "DT304", "factory-default-dtype"
    fix = Applicability.UNSAFE
    calls = frozenset({*FACTORIES, *_HELPERS, "where"})
    triggers = (
        *attributes(calls),
        *sorted(_HELPERS),
        *attributes(DISTRIBUTIONS),
        *sorted(DISTRIBUTIONS),
    )
    needs = (
        TORCH,
        (
            *attributes(("shape", "device", "size", "get_device", "rand", "randn", "where")),
            *("self.device", "len", *sorted(_HELPERS)),
        ),
    )

    def __init__(self) -> None:
        self.made: dict[ast.AST, dict[ast.Call, Flow]] = {}
        """By the function that runs them, the factories that are told no dtype, and where the program was then."""

    def on_call(self, call: Call) -> Iterable[Finding]:
        if call.flow.function is None or "dtype" in call.keywords or "out" in call.keywords:
            return ()
        if not call.complete and any(keyword.arg is None for keyword in call.node.keywords):
            return ()  # `*x.shape` may be there: no factory takes its dtype by position
        if not _is_defaulted(call) or _SUMS.search(_bound_to(call)):
            return ()
        self.made.setdefault(call.flow.scope, {}).setdefault(call.node, place_in(call.flow))
        return ()

    def on_end(self, end: End) -> Iterable[Finding]:
        factories = self.made.pop(end.node, {})
        if end.flow.function is None:
            return ()
        calls, names = facts(end.node).calls, facts(end.node).called
        if not names.isdisjoint(makers_of(end.flow.tree)):
            factories.update(dict.fromkeys(made_by(calls, end.node, end.flow.tree), end.flow))
        if not names.isdisjoint(DISTRIBUTIONS):
            factories.update(dict.fromkeys(sampled(end.node, calls), end.flow))
        return self._judged(factories, end) if factories else ()

    def _judged(self, made: dict[ast.Call, Flow], end: End) -> Iterator[Finding]:
        factories = {factory: place for factory, place in made.items() if _may_be_after(factory, place)}
        if not factories:
            return
        origins = origins_of(end.node)
        # From the last on, so that of those that begin at one place the outer comes first.
        operations = sorted((node for node in reversed(origins.of) if isinstance(node, _OPERATIONS)), key=_place_of)
        for factory, place in factories.items():
            meeting = _meeting(factory, operations, origins, place)
            if meeting is not None and half_at(place, dtype=None) is not None:
                yield meeting


def _is_defaulted(call: Call) -> bool:
    name = last_name(call.node)
    if name in _HELPERS:
        return not call.target.startswith("torch.") and len(call.node.args) < 4
    if not call.complete:
        return name in _OF_SHAPES and call.target == f"torch.{name}"
    result = call.result
    if not call.target.startswith("torch.") or call.target.count(".") != 1 or not isinstance(result, Tensor):
        return False
    if name == "where":
        numbers = [value for value in call.args[1:] if isinstance(value, (Constant, Number))]
        return len(numbers) == 2 and Trait.DEFAULTED in result.traits
    return Trait.DEFAULTED in result.traits and result.zero_dim is not True


def _bound_to(call: Call) -> str:
    """The name that the running statement binds."""
    statement = call.flow.statement
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return " ".join(path_of(target) or "" for target in targets)


_OPERATIONS = (ast.BinOp, ast.Call)


def _meeting(
    factory: ast.Call, operations: list[ast.BinOp | ast.Call], origins: Origins, place: Flow
) -> Finding | None:
    """Where a factory's tensor meets one that it was made after."""
    after = {
        origin: part for part, roots in _made_after(factory, origins, place) for origin in roots if not counts(origin)
    }
    scope = place.scope
    plain = {parameter.arg for parameter in parameters(scope) if _is_plain(parameter.annotation)}
    after = {origin: part for origin, part in after.items() if not _is_of_plain(origin, plain)}
    noise = last_name(factory) in _NOISE
    if (layer := _own_layer(factory, operations, origins, place)) is not None:
        return _into_model(factory, layer, path_of(layer.func) or "")
    if not after and not noise:
        return None
    promoted: Finding | None = None
    instead = _instead(factory, origins, place)
    for node in operations:
        operands = _operands(node, noise)
        if operands is None or not _is_in(factory, operands, origins):
            continue
        if noise and isinstance(node, ast.Call) and (model := _configured(node, factory, origins, scope)) is not None:
            return _into_model(factory, node, model)
        if instead is not None and _raises(node) and len({origin for part in operands for origin in origins[part]}) > 1:
            return _in_place_of(factory, node, instead)
        for operand in operands if _joins(node) else ():
            origin = next((origin for origin in _told(origins[operand], factory) if origin in after), None)
            if origin is None or _is_in(factory, [operand], origins):
                continue
            if _raises(node):
                return _finding(factory, node, operand, after[origin])
            if promoted is None and not _is_padding(factory, operand) and escapes(node, scope, place.tree):
                promoted = _finding(factory, node, operand, after[origin])
    if promoted is not None or noise:
        return promoted
    return (
        _written(factory, after, origins, place)
        or _kept(factory, origins, place)
        or _returned(factory, after, origins, place)
        or _beside(factory, place)
    )


def _own_layer(
    factory: ast.Call, operations: list[ast.BinOp | ast.Call], origins: Origins, place: Flow
) -> ast.Call | None:
    """The layer of its module that a factory's tensor goes into: `self.project(torch.linspace(0, 1, n)[:, None])`."""
    owner = place.function.owner if place.function is not None else None
    if owner is None or not (owner.is_module or _runs(owner.node)) or _is_of_making(place.scope, owner.node):
        return None
    layers = entered(owner.node)
    for node in operations if layers else ():
        if isinstance(node, ast.Call) and node.args and path_of(node.func) in layers:
            roots = origins[node.args[0]]
            if roots and all(root.node is factory for root in roots):
                return node
    return None


def _is_of_making(scope: ast.AST, owner: ast.ClassDef) -> bool:
    """Is a method run while its module is made, in float32, to see what sizes come out: `self.conv(torch.zeros(1, *shape))`?"""
    name = getattr(scope, "name", "")
    made = next((node for node in owner.body if isinstance(node, ast.FunctionDef) and node.name == "__init__"), None)
    return made is not None and (scope is made or name in facts(made).called)


def _runs(owner: ast.ClassDef) -> bool:
    """Is a class a module by its looks, whose base is defined in another file: `class Generator(NeuralModule)`?"""
    return bool(owner.bases) and any(
        isinstance(node, ast.FunctionDef) and node.name == "forward" for node in owner.body
    )


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
    texts = {origin.text for _, roots in _made_after(factory, origins, place) for origin in roots}
    return other if texts & {f"{layer}.weight", f"{layer}.bias"} else None


def _in_place_of(factory: ast.Call, node: ast.expr, other: str) -> Finding:
    layer = other.rpartition(".")[0]
    return Finding(
        factory,
        f"{_says(factory)}, where it stands in for `{other}`, which has the dtype of `{layer}`",
        help=f"Pass `dtype={layer}.weight.dtype`",
        notes=((node, "here it meets what need not be float32"),),
        fix=partial(_fix, f"{layer}.weight"),
    )


def _written(factory: ast.Call, after: dict[Origin, ast.expr | None], origins: Origins, place: Flow) -> Finding | None:
    """Where the tensor that a factory was made after is written into its own, which is returned:
    `out = torch.zeros(n, device=x.device)`, `out[:k] = x`."""
    for node in statements(place.scope, SCOPES):
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if not isinstance(node, ast.Assign) or not isinstance(target, ast.Subscript):
            continue
        base = root_of(target)
        if not _is_slice(target, place.scope):
            continue  # by a tensor it raises, which is the matter of DT305
        if not isinstance(base, ast.Name) or {origin.node for origin in origins[base]} != {factory}:
            continue
        source = path_of(root_of(below(node.value, _VIEWS)))
        origin = next((origin for origin in _told(origins[node.value], factory) if origin in after), None)
        if origin is None or counts(origin) or (source != origin.text and not _is_product(node.value, place)):
            continue
        reads = (part for part in own_nodes(place.scope) if isinstance(part, ast.Name) and part.id == base.id)
        if any(escapes(part, place.scope, place.tree) for part in reads if isinstance(part.ctx, ast.Load)):
            return _into_it(factory, node, base.id, after[origin], origin)
    return None


def _kept(factory: ast.Call, origins: Origins, place: Flow) -> Finding | None:
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
                f"{_says(factory)}, and so is what `{text}` becomes where it is written into `{buffer}`",
                help=f"Pass `dtype={text}.dtype`",
                notes=((node, "it is written here"),),  # type: ignore[arg-type]  # a statement of the function
                fix=partial(_fix, text),
            )
    return None


def _returned(factory: ast.Call, after: dict[Origin, ast.expr | None], origins: Origins, place: Flow) -> Finding | None:
    """Where one path returns it, and another what is computed from the tensor that it was made after:
    `if not keep.any(): return torch.zeros(0, x.shape[1], device=x.device)`, `return x[keep] * scale`."""
    known, node = parents_at(factory, place), factory
    while isinstance(method := known.get(node), ast.Attribute) and isinstance(call := known.get(method), ast.Call):
        if method.attr not in _VIEWS | {"to", "cuda", "requires_grad_"}:
            return None
        node = call
    if not isinstance(known.get(node), ast.Return) or _SUMS.search(getattr(place.scope, "name", "")):
        return None
    for other in statements(place.scope, SCOPES):
        value = other.value if isinstance(other, ast.Return) else None
        if value is None or value is node or not is_uncast(value, origins[value]):
            continue
        origin = next((origin for origin in _told(origins[value], factory) if origin in after), None)
        if origin is None or "mask" in origin.text:
            continue
        told = path_of(direct) if (direct := after[origin]) is not None else None
        return Finding(
            factory,
            f"{_says(factory)}, where the other path returns what has the dtype of `{told or origin.text}`",
            help=f"Pass `dtype={told or origin.text}.dtype`",
            notes=((value, "the other path"),),
            fix=partial(_fix, told) if told is not None else None,
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
        f"{_says(factory)}, and `{last_name(told)}` in line {told.lineno} is told the dtype of `{tensor}`, whose rows these are",
        help=f"Pass `dtype={tensor}.dtype`",
        notes=((told, "that one is made in the dtype of the tensor"), (written[0], "it is filled here")),
        fix=partial(_fix, tensor),
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


def _is_product(node: ast.expr, place: Flow) -> bool:
    """Is it a product of matrices, at once or by name: `out[:, i:j] = einsum("b i j, b j d -> b i d", attn, v)`?"""
    made = bound_once(node.id, place.scope) if isinstance(node, ast.Name) else node
    if isinstance(made, ast.BinOp):
        return isinstance(made.op, ast.MatMult)
    return isinstance(made, ast.Call) and last_name(made) in _OF_MATRICES


_OF_MATRICES = frozenset({"einsum", "matmul", "bmm", "baddbmm", "scaled_dot_product_attention"})


def _is_plain(annotation: ast.expr | None) -> bool:
    """Is a parameter annotated as no tensor of torch: a path, a number, a matrix of another package?"""
    return annotation is not None and path_of(annotation) in _PLAIN


def _is_of_plain(origin: Origin, plain: set[str]) -> bool:
    """Is it such a parameter, or what a function makes of nothing else: `read(folder, name)`?"""
    if origin.kind == Kind.CALLED and origin.of:
        return all(_is_of_plain(inner, plain) for inner in origin.of)
    return origin.kind == Kind.GIVEN and origin.text in plain


def _place_of(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _operands(node: ast.expr, noise: bool) -> list[ast.expr] | None:
    """The expressions that meet in an operation, or go into a call; None if it is neither."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if not isinstance(node, ast.Call):
        return None
    if last_name(node) in JOINING or last_name(node) in _PRODUCTS:
        return _joined(node)
    return _flat(node.args) if noise or _joins(node) else None


def _joins(node: ast.expr) -> bool:
    """Are the operands of an operation promoted to one dtype, or refused?"""
    if isinstance(node, ast.BinOp):
        return not isinstance(node.op, (ast.Mod, ast.FloorDiv))
    name = last_name(node) if isinstance(node, ast.Call) else ""
    return name in JOINING or name in _PRODUCTS or any(known.search(name) for known in (_RECURRENT, _MIXERS))


def _raises(node: ast.expr) -> bool:
    """Does an operation refuse operands of two dtypes?"""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.MatMult)
    return last_name(node) in {*RAISING, "grid_sample"} or _RECURRENT.search(last_name(node)) is not None


def _is_padding(factory: ast.Call, operand: ast.expr) -> bool:
    """Is it one for each token, in front of a mask that says which tokens count? Such a mask holds integers or flags."""
    return last_name(factory) == "ones" and "mask" in ast.unparse(operand)


def _made_after(factory: ast.Call, origins: Origins, place: Flow) -> Iterator[tuple[ast.expr | None, Roots]]:
    """What a factory's shape and device are taken of, each with the expression where it stands in the call itself."""
    if last_name(factory) == "where":
        for part in ast.walk(factory.args[0]):
            if isinstance(part, (ast.Name, ast.Attribute)):
                yield None, origins[part]
    for argument in _given(factory, place):
        direct = argument.value if isinstance(argument, ast.Attribute) else None
        yield direct, origins.measured(argument)


def _given(factory: ast.Call, place: Flow) -> Iterator[ast.expr]:
    """What a factory is given, and the methods that are called on its result at once: `torch.zeros(n).to(x.device)`."""
    yield from given(factory)
    known = parents_at(factory, place)
    method = known.get(factory)
    while isinstance(method, ast.Attribute) and isinstance(call := known.get(method), ast.Call):
        yield from given(call)
        method = known.get(call)


def _may_be_after(factory: ast.Call, place: Flow) -> bool:
    """May a factory be made after a tensor, or is it noise? Ask it before origins are read."""
    if last_name(factory) == "where" or last_name(factory) in _NOISE:
        return True
    parts = list(nodes(_given(factory, place)))
    if any(map(measures, parts)):
        return True
    names, scope = {part.id for part in parts if isinstance(part, ast.Name)}, place.scope
    return bool(names & (assignments(scope).keys() | facts(scope).bound_inside)) if names else False


def _joined(call: ast.Call) -> list[ast.expr]:
    """The tensors that a joining function or method takes."""
    if call.args and isinstance(call.args[0], (ast.List, ast.Tuple)):
        return list(call.args[0].elts)
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
    return list(call.args) if receiver is None or path_of(receiver) in ("torch", "th", "F") else [receiver, *call.args]


def _flat(items: list[ast.expr]) -> list[ast.expr]:
    return [
        item for node in items for item in (_flat(node.elts) if isinstance(node, (ast.List, ast.Tuple)) else [node])
    ]


def _is_in(factory: ast.Call, operands: Iterable[ast.expr], origins: Origins) -> bool:
    return any(origin.node is factory for operand in operands for origin in origins[operand])


def _told(roots: Roots, factory: ast.Call) -> Iterator[Origin]:
    """What a tensor has its dtype from, and what that was computed from; not behind a cast to a dtype that is written out."""
    for origin in in_order(roots):
        if origin.node is factory or (origin.kind == Kind.CAST and origin.text.startswith("torch.")):
            continue
        yield origin
        if origin.kind == Kind.CALLED:
            yield from _told(origin.of, factory)


def _configured(call: ast.Call, factory: ast.Call, origins: Origins, scope: ast.AST) -> str | None:
    """The model that a call runs on a factory's tensor, where the shape of that is what the model is configured for."""
    model = path_of(call.func)
    if model is None or not call.args or not _is_in(factory, [call.args[0]], origins):
        return None
    spoken = list(factory.args)
    for name in [part.id for argument in factory.args for part in ast.walk(argument) if isinstance(part, ast.Name)]:
        spoken += [value for _, value in assignments(scope).get(name, ()) if value is not None]
    paths = (path_of(part) or "" for value in spoken for part in ast.walk(value) if isinstance(part, ast.Attribute))
    return model if any(path.startswith(f"{model}.") for path in paths) else None


def _is_slice(target: ast.Subscript, scope: ast.AST) -> bool:
    """Is it written by slices and numbers: `out[:, i]`, in a loop over `i`?"""
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
        isinstance(part, (ast.Slice, ast.Constant)) or (isinstance(part, ast.Name) and part.id in counters)
        for part in parts
    )


def _into_it(factory: ast.Call, node: ast.stmt, name: str, after: ast.expr | None, origin: Origin) -> Finding:
    told = path_of(after) if after is not None else None
    source = told if told is not None and origin.kind == Kind.CALLED else origin.text
    return Finding(
        factory,
        f"{_says(factory)}, and so is what `{source}` becomes where it is written into `{name}`",
        help=f"Pass `dtype={told or origin.text}.dtype`",
        notes=((node, "it is written here"),),
        fix=partial(_fix, told) if told is not None else None,
    )


_SAYS = "`{name}` has no `dtype=`, so the tensor is of the default dtype, float32"


_IS_MADE_BY = "`{name}` makes a tensor and is told no dtype, so that is of the default dtype, float32"


def _says(factory: ast.Call) -> str:
    """What is said of a factory, or of what calls one."""
    name = last_name(factory)
    return (_SAYS if name in FactoryDefaultDtype.calls else _IS_MADE_BY).format(name=name)


def _finding(factory: ast.Call, node: ast.expr, operand: ast.expr, after: ast.expr | None) -> Finding:
    met, told = ast.unparse(operand), path_of(after) if after is not None else None
    source = told or met
    op = "`@`" if isinstance(node, ast.BinOp) else f"`{last_name(node)}`"
    refused, promoted = f"{op} raises if `{short(met)}` is half", f"`{short(met)}` is promoted to it if that is half"
    return Finding(
        factory,
        f"{_says(factory)}, and {refused if _raises(node) else promoted}",
        help=f"Pass `dtype={source}.dtype`" if len(source) < 40 else "Pass the dtype of the tensor that it meets",
        notes=((node, f"it meets `{short(met)}` here"),) if node.lineno != factory.lineno else (),
        fix=partial(_fix, told)
        if told is not None and last_name(factory) in FactoryDefaultDtype.calls - {"where"}
        else None,
    )


def _into_model(factory: ast.Call, node: ast.Call, model: str) -> Finding:
    return Finding(
        factory,
        f"{_says(factory)}, and `{model}` raises if its weights are half",
        help=f"Pass the dtype of `{model}`",
        notes=((node, f"it goes into `{model}` here"),),
    )


def _fix(tensor: str, place: Place) -> Fix | None:
    edit = place.append_argument(f"dtype={tensor}.dtype")
    return Fix(f"Make it in the dtype of `{tensor}`", (edit,), Applicability.UNSAFE)
