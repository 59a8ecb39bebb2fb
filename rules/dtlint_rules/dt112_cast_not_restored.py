"""DT112: a module or an activation cast for one computation, and left in that dtype."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import LOW_PRECISION
from dtlint.infer.around import around
from dtlint.infer.conditions import atoms, exclusive
from dtlint.infer.names import path_of
from dtlint.infer.survey import facts
from dtlint.infer.values import Module
from dtlint.infer.walk import SCOPES
from dtlint.rule import Finding, Rule
from dtlint_rules._assignments import bindings
from dtlint_rules._casts import CAST_METHODS
from dtlint_rules._functions import parameters
from dtlint_rules._half import half_at
from dtlint_rules._layers import entered
from dtlint_rules._names import last_name, names_in
from dtlint_rules._needs import HALF_BY_NAME, attributes
from dtlint_rules._parts import bound_to, subject_of
from dtlint_rules._statements import statements

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call, Condition, End, Flow

__all__ = ["CastNotRestored"]

_ASKING = re.compile(r"\.dtype (==|in|is) |upcast|== torch\.(float16|half|bfloat16)")
"""What stands in the test of a cast that is made for one computation only. `if x.dtype != torch.float32` makes sure of
it for good."""
_CASTERS = re.compile(
    r"^_*(upcast|downcast|cast|to|half|float|double|bfloat16|cuda|cpu)(_|$)|^__init__$|^set_|^load|^from_|^setup"
)
"""Functions whose task it is to cast, or to make the object ready."""
_EVALUATIONS = re.compile(
    r"^(val|valid|validate|validation|test|evaluate|eval|inference|predict)(_|$)|_(val|eval|evaluate)$"
)
_EVALUATION = "evaluation"
"""What a function with such a name casts a model for."""
_INTEGERS = re.compile(r"mask|label|target|index|indices|ids|image|img|seg|depth|length")
"""How integer tensors are called, which are cast to become floating, and not to become wider."""

_IN_FLOAT32 = frozenset(
    {f"torch.nn.functional.{name}" for name in ("interpolate", "grid_sample", "upsample", "fold", "unfold")}
    | {f"torch.fft.{name}" for name in ("irfft", "irfft2", "irfftn")}
    | {f"torch.linalg.{name}" for name in ("solve", "inv", "pinv")}
)
"""Functions that activations are cast to float32 for, because some dtype or device lacks them or does them badly, and
that give back an activation."""


_LAYERS = frozenset({"__call__", "checkpoint"})
"""The names of calls that run layers."""


class CastNotRestored(Rule):
    """A module or an activation that is cast for one computation and not cast back.

    ## What it does
    Reports three forms.

    - A method upcasts a part of its object because that part is half (`if self.vae.dtype == torch.float16: ...`), and
      does not cast it back before it ends.
    - A function that evaluates casts the model that it is handed to half, and does not cast it back.
    - In a module, an activation takes a detour over float32 (`x = F.interpolate(x.float(), ...)`), and goes on into a
      layer without the cast back; or it is cast on one path only, `if mask is not None: x = x.float().masked_fill(mask,
      0)`, and goes into a layer with weights that gets it uncast on the other.

    Conditional, and so reported with `--preview` only: a float32 activation that goes into a layer, and a cast for
    an evaluation.

    ## Why it matters
    `Module.to` casts in place: what was upcast for one call is float32 for every later one, at twice the memory, and
    the code that asked for its dtype before hands it half tensors. A model that validation leaves in half goes on
    training in half. And where a float32 activation meets a half layer, torch raises `mat1 and mat2 must have the
    same dtype`; only autocast hides it.

    ## Example
    ```python
    import torch

    class Pipeline:
        def decode(self, latents):
            if self.vae.dtype == torch.float16 and self.vae.config.force_upcast:
                self.vae.to(dtype=torch.float32)
                latents = latents.float()
            return self.vae.decode(latents)
    ```

    ## Use instead
    ```python
    import torch

    class Pipeline:
        def decode(self, latents):
            needs_upcasting = self.vae.dtype == torch.float16 and self.vae.config.force_upcast
            if needs_upcasting:
                self.vae.to(dtype=torch.float32)
                latents = latents.float()
            image = self.vae.decode(latents)
            if needs_upcasting:
                self.vae.to(dtype=torch.float16)
            return image
    ```

    ## References
    - [torch.nn.Module.to](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.to)
    """

    code, name = "DT112", "cast-not-restored"
    triggers = (*attributes(CAST_METHODS, of_self=True), "*upcast_*")
    needs = ((*HALF_BY_NAME, ".float", "float32", "*upcast_*"),)
    calls = frozenset({*CAST_METHODS, *(name.rpartition(".")[2] for name in _IN_FLOAT32), "*upcast_*", *_LAYERS, ""})

    def __init__(self) -> None:
        self.left: dict[tuple[ast.AST, str], _Left] = {}
        """Casts of modules that have not been undone, by scope and path."""
        self.detours: dict[tuple[ast.AST, str], ast.stmt] = {}
        """Activations that have taken a detour over float32, and not been cast since."""
        self.on_one_path: dict[ast.AST, dict[ast.Assign, str]] = {}
        """By function, detours that are taken on one path only, with the names of the activations."""
        self.wide: set[ast.Call] = set()
        """Casts to float32 that are written out."""

    def on_call(self, call: Call) -> Iterable[Finding]:
        if call.target in _IN_FLOAT32:
            first = call.argument_node(0, "input")
            if isinstance(first, ast.Call) and first in self.wide:
                self._lifted(call)
            return ()
        if call.method in _CASTS and isinstance(call.node.func, ast.Attribute):
            is_cast, dtypes = call.cast
            if is_cast or call.method == "to":
                self._cast(call, call.node.func.value, dtypes)
        elif (
            call.method.startswith("upcast_")
            and path_of(call.node.func) == f"self.{call.method}"
            and not call.node.args
        ):
            self._module_cast(call, f"self.{call.method.removeprefix('upcast_')}", "float32")
        elif self.detours:
            return self._layer(call)
        return ()

    def _lifted(self, call: Call) -> None:
        """`x = F.interpolate(x.float(), ...)`, in a module."""
        flow, first = call.flow, call.node.args[0] if call.node.args else None
        if first is None or not _in_module(flow) or flow.autocast is not None:
            return
        name = path_of(subject_of(first))
        for target in bound_to(call.node, flow.statement):
            if isinstance(target, ast.Name) and name is not None and not _INTEGERS.search(f"{name} {target.id}"):
                self.detours[flow.scope, target.id] = flow.statement

    def on_end(self, end: End) -> Iterable[Finding]:
        detours = self.on_one_path.pop(end.flow.scope, {})
        if not self.left and not detours:
            return ()
        return [*self._not_restored(end.flow.scope), *_entering(detours, end.flow)]

    def _not_restored(self, scope: ast.AST) -> Iterator[Finding]:
        for key in [key for key in self.left if key[0] is scope]:
            left = self.left.pop(key)
            yield Finding(
                left.node,
                f"`{key[1]}` is cast to {left.dtype} in place for {left.why} and not cast back",
                help=f"Cast `{key[1]}` back before the function ends, in `finally` if the code between may raise",
                conditional=left.why == _EVALUATION,
            )

    def _cast(self, call: Call, given: ast.expr, dtypes: frozenset[str] | None) -> None:
        path, scope = path_of(given), call.flow.scope
        subject = path_of(subject_of(given))
        if subject is not None:
            self.detours.pop((scope, subject), None)
        left = self.left.get((scope, path)) if path is not None else None
        if left is not None and path is not None:
            if not exclusive(left.conditions, call.flow.conditions):
                del self.left[scope, path]
        elif dtypes == _FLOAT32:
            if path is not None and call.flow.statement is _statement_of(call):
                self._module_cast(call, path, "float32")
            else:
                self.wide.add(call.node)
                self._on_one_path(call, path)
        elif dtypes is not None and dtypes <= LOW_PRECISION and path is not None:
            self._evaluated_in(call, path, next(iter(dtypes)))

    def _on_one_path(self, call: Call, name: str | None) -> None:
        """`if mask is not None: x = x.float().masked_fill(mask, 0)`, in a module: without a mask `x` keeps its dtype."""
        statement, flow = call.flow.statement, call.flow
        if not isinstance(statement, ast.Assign) or name is None or not flow.conditions or not _in_module(flow):
            return
        target, value = statement.targets[0], statement.value
        if flow.autocast is not None or not isinstance(target, ast.Name) or target.id != name or value is call.node:
            return
        held = flow.conditions[-1]
        if not _asks_for_none(held) or _INTEGERS.search(name) or _root_of_arithmetic(value) is not call.node:
            return
        if half_at(flow, dtype=None) is not None:
            self.on_one_path.setdefault(flow.scope, {})[statement] = name

    def _module_cast(self, call: Call, path: str, dtype: str) -> None:
        function = call.flow.function
        name = getattr(function.node, "name", "") if function is not None else ""
        if not path.startswith("self.") or not name or _CASTERS.search(name) or not _is_module(call):
            return
        tests = [part.test for part in atoms(call.flow.conditions) if part.holds]
        if any(_ASKING.search(ast.unparse(test)) for test in tests):
            self.left[call.flow.scope, path] = _Left(call.node, dtype, "one computation", list(call.flow.conditions))

    def _evaluated_in(self, call: Call, path: str, dtype: str) -> None:
        function = call.flow.function
        name = getattr(function.node, "name", "") if function is not None else ""
        if call.flow.statement is not _statement_of(call) or not _EVALUATIONS.search(name):
            return
        if (
            isinstance(call.receiver, Module)
            and "." not in path
            and function is not None
            and any(parameter.arg == path for parameter in parameters(function.node))
        ):
            self.left[call.flow.scope, path] = _Left(call.node, dtype, _EVALUATION, list(call.flow.conditions))

    def _layer(self, call: Call) -> Iterator[Finding]:
        """The finding where an activation goes into a layer."""
        scope = call.flow.scope
        for argument in call.node.args:
            statement = self.detours.get((scope, argument.id)) if isinstance(argument, ast.Name) else None
            if statement is None or not _is_layer(call):
                continue
            assert isinstance(argument, ast.Name)
            if _is_bound_between(argument.id, statement, call):
                continue
            del self.detours[scope, argument.id]
            yield Finding(
                statement,
                f"`{argument.id}` stays float32, and the next layer raises if its weights are half",
                help="Cast the result back to the dtype of the input",
                notes=((call.node, "the layer"),),
                conditional=True,
            )


_KEEPING = frozenset({"masked_fill", "masked_fill_", "mul", "mul_", "add", "sub", "div", "clamp", "softmax", "pow"})
"""Methods that compute in the dtype of their tensor, with anything that is given here."""
_WITH_WEIGHTS = re.compile(r"(?:^|_)(?:\w*conv\w*|linear|proj\w*|\w*proj|fc|lstm|gru|rnn|dense|w|out)\d*$")
"""Names of layers that raise where what they get is not of the dtype of their weights."""


def _asks_for_none(held: Condition) -> bool:
    """Does a branch run where something is given: `mask is not None`? Other tests may be of the dtype to compute in."""
    test = held.test
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.comparators[0], ast.Constant):
        return False
    return held.holds and isinstance(test.ops[0], ast.IsNot) and test.comparators[0].value is None


def _root_of_arithmetic(node: ast.expr) -> ast.expr:
    """What arithmetic and methods of tensors begin with: `x.float()` of `x.float().masked_fill(mask, 0)` and of
    `x.float() * mask`."""
    while True:
        if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.MatMult):
            node = node.left
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPING:
            node = node.func.value
        else:
            return node


def _entering(detours: dict[ast.Assign, str], flow: Flow) -> Iterator[Finding]:
    """Where activations that were cast on one path go into a layer with weights, as they come out of it."""
    owner = flow.function.owner if flow.function is not None else None
    calls = sorted(facts(flow.scope).calls, key=lambda call: call.lineno) if detours and owner is not None else []
    for statement, name in detours.items():
        for call in calls:
            path = path_of(call.func) or ""
            if call.lineno <= statement.lineno or not call.args or path_of(call.args[0]) != name:
                continue
            if _is_bound(name, statement.lineno, call.lineno, flow.scope) or _is_cast_back(
                name, calls, statement, call
            ):
                break
            if not _is_passed(statement, call, flow):
                continue
            if owner is not None and path.startswith("self.") and _has_weights(path, owner.node):
                yield Finding(
                    statement,
                    f"`{name}` is float32 on this branch, and `{path}` raises if its weights are half",
                    help="Remove the cast, or cast the result back to the dtype of the input",
                    notes=((call, "the layer"),),
                    conditional=True,
                )
                break


def _is_passed(statement: ast.Assign, call: ast.Call, flow: Flow) -> bool:
    """Does every path through a statement pass a call behind it, as far as branches go, and in no autocast?"""
    above = {id(part) for part in around(statement, flow.tree)}
    child: ast.AST = call
    for part in around(call, flow.tree):
        if isinstance(part, (ast.With, ast.AsyncWith)) and any("autocast" in names_in(item) for item in part.items):
            return False
        if isinstance(part, _BRANCHING) and (
            id(part) not in above or (isinstance(part, ast.If) and child in part.orelse)
        ):
            return False
        child = part
    inner = {id(part) for part in around(call, flow.tree)}
    return not any(
        isinstance(node, _LEAVING) and statement.lineno < node.lineno <= call.lineno and id(node) not in inner
        for node in statements(flow.scope, SCOPES)
    )


_BRANCHING = (ast.If, ast.IfExp, ast.BoolOp, ast.Try, ast.Match, ast.For, ast.AsyncFor, ast.While, *SCOPES)
_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def _is_cast_back(name: str, calls: list[ast.Call], statement: ast.Assign, layer: ast.Call) -> bool:
    between = (call for call in calls if statement.lineno < call.lineno < layer.lineno)
    return any(last_name(call) in _CASTS and path_of(subject_of(call)) == name for call in between)


def _has_weights(path: str, owner: ast.ClassDef) -> bool:
    """Is it a layer that refuses another dtype than that of its weights, by what the class makes, or by its name?"""
    if path in entered(owner):
        return True
    return path.count(".") == 1 and _WITH_WEIGHTS.search(path.rpartition(".")[2]) is not None


_FLOAT32 = frozenset({"float32"})
_CASTS = frozenset({"to", "type", "type_as", "float", "half", "bfloat16", "double"})


@dataclass(slots=True)
class _Left:
    """A cast of a module that is still in force."""

    node: ast.Call
    dtype: str
    why: str
    conditions: list[Condition]


def _is_bound_between(name: str, first: ast.stmt, call: Call) -> bool:
    """Does the function bind a name anew behind a statement, before a call?"""
    return _is_bound(name, first.lineno, call.flow.statement.lineno, call.flow.scope)


def _is_bound(name: str, first: int, last: int, scope: ast.AST) -> bool:
    return any(
        first < node.lineno < last and any(bound == name for bound, _ in bindings(node))
        for node in statements(scope, SCOPES)
        if isinstance(node, ast.stmt)
    )


def _statement_of(call: Call) -> ast.stmt | None:
    """The statement that the call is, if it is one of its own, be it as `x.half() if half else x.float()`."""
    statement = call.flow.statement
    if not isinstance(statement, ast.Expr):
        return None
    value = statement.value
    branches = (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,)
    return statement if any(branch is call.node for branch in branches) else None


def _is_module(call: Call) -> bool:
    """A statement of its own casts a module, or does nothing; the name of a method says it."""
    return isinstance(call.receiver, Module) or _statement_of(call) is not None or call.method.startswith("upcast_")


def _in_module(flow: Flow) -> bool:
    return flow.function is not None and flow.function.owner is not None and flow.function.owner.is_module


def _is_layer(call: Call) -> bool:
    """Is a layer called: a module, an attribute of `self` that is no method, or the variable of a loop over layers?"""
    if call.target:
        return call.target in ("torch.nn.Module.__call__", "torch.utils.checkpoint.checkpoint")
    function, flow = call.node.func, call.flow
    if isinstance(function, ast.Name):
        return any(
            isinstance(part, ast.Name) and part.id == function.id
            for loop in flow.loops
            for part in ast.walk(loop.node.target)
        )
    path = path_of(function) or ""
    owner = flow.function.owner if flow.function is not None else None
    return path.startswith("self.") and path.count(".") == 1 and owner is not None and owner.method(path[5:]) is None
