"""DT304: a tensor that is made after another has not its dtype, and meets it."""

from __future__ import annotations

import ast
import re
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix
from dtlint.infer.around import around, parents
from dtlint.infer.names import path_of
from dtlint.infer.values import Constant, Number, Tensor, Trait
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._assignments import assignments
from dtlint_rules._half import half_at
from dtlint_rules._names import last_name
from dtlint_rules._origins import FACTORIES, JOINING, Kind, counts, origins_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call, End
    from dtlint.source.place import Place
    from dtlint_rules._origins import Origin, Origins, Roots

__all__ = ["FactoryDefaultDtype"]

_HELPERS = frozenset({"randn_tensor", "rand_tensor"})
"""What libraries call their own `torch.randn` for any device; with `dtype=` like it."""
_NOISE = frozenset({"randn", "rand", *_HELPERS})
_MIXERS = re.compile(r"noise|noisy|q_sample|mix|lerp|blend|interpolate", re.IGNORECASE)
"""Names of functions that add up what they are given."""
_PRODUCTS = frozenset({"conv1d", "conv2d", "conv3d", "linear", "grid_sample"})
_RECURRENT = re.compile(r"(?:^|_)(?:lstm|gru|rnn|cells?)\d*$", re.IGNORECASE)
"""Names of recurrent layers, whose states have to be of the dtype of their input."""
_SUMS = re.compile(
    r"loss|total|accum|(?:^|_)(?:acc|sum|count|hist|metrics?|stats?|cost|scores?|example|dummy)(?:$|_|\d)",
    re.IGNORECASE,
)
"""Names of what is added up, in float32 for good reason, and of inputs to try a model with."""


class FactoryDefaultDtype(Rule):
    """A tensor that is made in the shape, or on the device, of another has the default dtype, and then meets it.

    ## What it does
    Reports a factory without `dtype=` (`torch.randn`, `torch.zeros`, `torch.full`, `torch.where(mask, 1.0, 0.0)`) that
    takes its shape or its device from a tensor, where the result is then added to, multiplied with, concatenated to or
    written into that tensor or what is computed from it; and noise in the shape that a model is configured for that goes
    into the model uncast.

    ## Why it matters
    The factory gives float32, whatever the tensor is. With a half tensor the result of arithmetic is float32 from there on,
    at twice the memory, until a layer with half weights raises "mat1 and mat2 must have the same dtype". With a float64
    tensor digits are lost.

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

    ## References
    - [torch.randn: dtype](https://docs.pytorch.org/docs/stable/generated/torch.randn.html)
    - [torch.randn_like](https://docs.pytorch.org/docs/stable/generated/torch.randn_like.html)
    """

    code, name = "DT304", "factory-default-dtype"
    fix = Applicability.UNSAFE
    triggers = ("torch.", "randn_tensor")
    calls = frozenset({*FACTORIES, *_HELPERS, "where"})

    def __init__(self) -> None:
        self.made: dict[ast.AST, list[ast.Call]] = {}
        """By the function that runs them, the factories that are told no dtype."""

    def on_call(self, call: Call) -> Iterable[Finding]:
        if call.flow.function is None or not call.complete or "dtype" in call.keywords or "out" in call.keywords:
            return ()
        if _is_defaulted(call) and not _SUMS.search(_bound_to(call)) and half_at(call.flow, dtype=None) is not None:
            known = self.made.setdefault(call.flow.scope, [])
            if call.node not in known:
                known.append(call.node)
        return ()

    def on_end(self, end: End) -> Iterator[Finding]:
        factories = self.made.pop(end.node, None)
        if factories:
            origins = origins_of(end.node)
            for factory in factories:
                meeting = _meeting(factory, origins, end.node, end.flow.tree)
                if meeting is not None:
                    yield meeting


def _is_defaulted(call: Call) -> bool:
    name = last_name(call.node)
    if name in _HELPERS:
        return not call.target.startswith("torch.") and len(call.node.args) < 4
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


def _meeting(factory: ast.Call, origins: Origins, scope: ast.AST, tree: ast.Module) -> Finding | None:
    """Where a factory's tensor meets one that it was made after."""
    after = {
        origin: part for part, roots in _made_after(factory, origins, tree) for origin in roots if not counts(origin)
    }
    noise = last_name(factory) in _NOISE
    if not after and not noise:
        return None
    for node in nodes([scope]):
        if isinstance(node, ast.BinOp) and not isinstance(node.op, (ast.Mod, ast.FloorDiv)):
            operands: list[ast.expr] = [node.left, node.right]
        elif isinstance(node, ast.Call) and (last_name(node) in JOINING or last_name(node) in _PRODUCTS):
            operands = _joined(node)
        elif isinstance(node, ast.Call) and _RECURRENT.search(last_name(node)):
            operands = _flat(node.args)
        elif isinstance(node, ast.Call) and noise:
            model = _configured(node, factory, origins, scope)
            if model is not None:
                return _into_model(factory, node, model)
            operands = list(node.args) if _MIXERS.search(last_name(node)) else []
        else:
            continue
        if not _is_in(factory, operands, origins) or _is_settled(node, origins, scope, tree):
            continue
        for operand in operands:
            origin = next((origin for origin in _told(origins[operand], factory) if origin in after), None)
            if origin is not None and not _is_in(factory, [operand], origins):
                return _finding(factory, node, operand, after[origin])
    return None


def _made_after(factory: ast.Call, origins: Origins, tree: ast.Module) -> Iterator[tuple[ast.expr | None, Roots]]:
    """What a factory's shape and device are taken of, each with the expression where it stands in the call itself."""
    known = parents(tree)
    moves: list[ast.expr] = []
    method = known.get(factory)
    while isinstance(method, ast.Attribute) and isinstance(call := known.get(method), ast.Call):
        moves += [*call.args, *(keyword.value for keyword in call.keywords)]
        method = known.get(call)
    if last_name(factory) == "where":
        for part in ast.walk(factory.args[0]):
            if isinstance(part, (ast.Name, ast.Attribute)):
                yield None, origins[part]
    for argument in (*factory.args, *(keyword.value for keyword in factory.keywords), *moves):
        direct = argument.value if isinstance(argument, ast.Attribute) else None
        yield direct, origins.measured(argument)


def _joined(call: ast.Call) -> list[ast.expr]:
    """The tensors that a joining function or method takes."""
    given = call.args
    if given and isinstance(given[0], (ast.List, ast.Tuple)):
        return list(given[0].elts)
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
    return list(given) if receiver is None or path_of(receiver) in ("torch", "th", "F") else [receiver, *given]


_COMPARING = frozenset({"argsort", "argmax", "argmin", "topk", "sort"})


def _is_settled(node: ast.AST, origins: Origins, scope: ast.AST, tree: ast.Module) -> bool:
    """Does the dtype of the result not matter: only its order counts, or it is cast, or written into another tensor?"""
    for part in around(node, tree):
        if isinstance(part, ast.Compare) or (isinstance(part, ast.Call) and last_name(part) in (*_COMPARING, "copy_")):
            return True
        if isinstance(part, ast.Call) and origins.told(part) is not None:
            return True
        if isinstance(part, ast.stmt):
            target = part.targets[0] if isinstance(part, ast.Assign) else None
            name = target.id if isinstance(target, ast.Name) else None
            return isinstance(target, ast.Subscript) or (
                name is not None and _is_settled_next(name, part, origins, scope, tree)
            )
    return False


def _is_settled_next(name: str, statement: ast.stmt, origins: Origins, scope: ast.AST, tree: ast.Module) -> bool:
    """Is the first thing that becomes of a name below a statement a comparison, a cast, or a copy into another tensor?"""
    below = (
        node
        for node in nodes([scope])
        if isinstance(node, ast.Name) and node.id == name and node.lineno > (statement.end_lineno or statement.lineno)
    )
    first = min(below, key=lambda node: (node.lineno, node.col_offset), default=None)
    user = next(around(first, tree), None) if first is not None else None
    if isinstance(user, ast.Attribute):
        user = parents(tree).get(user)
    if isinstance(user, ast.Compare):
        return not isinstance(user.ops[0], (ast.Is, ast.IsNot))
    return isinstance(user, ast.Call) and (last_name(user) == "copy_" or origins.told(user) is not None)


def _flat(given: list[ast.expr]) -> list[ast.expr]:
    return [
        item for node in given for item in (_flat(node.elts) if isinstance(node, (ast.List, ast.Tuple)) else [node])
    ]


def _is_in(factory: ast.Call, operands: Iterable[ast.expr], origins: Origins) -> bool:
    return any(origin.node is factory for operand in operands for origin in origins[operand])


def _told(roots: Roots, factory: ast.Call) -> Iterator[Origin]:
    """What a tensor has its dtype from, and what that was computed from; not behind a cast to a dtype that is written out."""
    for origin in roots:
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


_SAYS = "`{name}` has no `dtype=`, so the tensor is of the default dtype, float32"


def _finding(factory: ast.Call, node: ast.expr, operand: ast.expr, after: ast.expr | None) -> Finding:
    met, given = ast.unparse(operand), path_of(after) if after is not None else None
    source = given or met
    return Finding(
        factory,
        f"{_SAYS.format(name=last_name(factory))}, and `{_short(met)}` is promoted to it if that is half",
        help=f"Pass `dtype={source}.dtype`" if len(source) < 40 else "Pass the dtype of the tensor that it meets",
        notes=((node, f"it meets `{_short(met)}` here"),) if node.lineno != factory.lineno else (),
        fix=partial(_fix, given) if given is not None and last_name(factory) != "where" else None,
    )


def _into_model(factory: ast.Call, node: ast.Call, model: str) -> Finding:
    return Finding(
        factory,
        f"{_SAYS.format(name=last_name(factory))}, and `{model}` raises if its weights are half",
        help=f"Pass the dtype of `{model}`",
        notes=((node, f"it goes into `{model}` here"),),
    )


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."


def _fix(tensor: str, place: Place) -> Fix | None:
    edit = place.append_argument(f"dtype={tensor}.dtype")
    return Fix(f"Make it in the dtype of `{tensor}`", (edit,), Applicability.UNSAFE)
