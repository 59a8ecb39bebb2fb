"""DT101: a whole model cast to half, which is right neither for training nor, as a rule, for inference."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.diagnostic import Severity
from dtlint.dtypes.dtype import LOW_PRECISION
from dtlint.infer.domain.values import Ref
from dtlint.infer.names import path_of
from dtlint.rule import Finding, Rule
from dtlint_rules._cast_calls import are_exclusive, casts
from dtlint_rules._imports import is_a_test
from dtlint_rules._module_walks import root_of, walk_over
from dtlint_rules._needs import HALF_BY_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dtlint.infer.facts import Call, ModuleFacts
    from dtlint_rules._cast_calls import Cast

__all__ = ["ModelHalf"]


class ModelHalf(Rule):
    """Whole model cast to float16 or bfloat16.

    ## What it does
    Reports `.half()`, `.bfloat16()`, `.to(torch.float16)` and their like on a whole model: as a warning where the file
    shows that the model is trained, else as information. Single layers, casts of `self` inside a module, copies that
    are only made to be saved, for inference models whose norms are cast back in a loop, by `apply` or by a function of
    the file, and what tests make are left alone. A bfloat16 model that the file does not train is reported with
    `--preview` only: most large models are meant to run so.

    ## Why it matters
    Training needs more than a half dtype has. In float16, gradients below 3e-8 become 0, GradScaler refuses float16
    parameters, and the `eps=1e-8` of Adam becomes 0, so that a zero gradient gives NaN. In bfloat16, an update smaller
    than 1/512 of a weight leaves the weight unchanged: `1 - 1e-3` is 1. Autocast keeps weights and updates in float32
    and casts the operations that gain from it.

    In inference a float16 model overflows to inf beyond 65504 anywhere, and a bfloat16 model has 8 bits of precision
    everywhere; autocast computes sums, norms, softmax and losses in float32 (on CUDA). Where memory decides, a
    half model may still be right, so that this is information alone and does not fail a run.

    ## Example
    ```python
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)).half()
    optimizer = torch.optim.Adam(model.parameters())
    loss = model(torch.rand(4, 8).half()).sum()
    loss.backward()
    optimizer.step()
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(torch.rand(4, 8)).sum()
    loss.backward()
    optimizer.step()
    ```

    ## References
    - [Automatic mixed precision](https://docs.pytorch.org/docs/stable/amp.html)
    - [torch.nn.Module.half](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.half)
    """

    code, name = "DT101", "model-half"
    triggers = HALF_BY_NAME

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        if is_a_test(facts.tree) or facts.assumption is not None:  # then half is what was asked for
            return
        found = [one for one in casts(facts) if one.of == "module" and one.dtypes]
        wide = [one for one in casts(facts) if one.dtypes and not one.dtypes & LOW_PRECISION]
        for cast in found:
            model = _Model.of(facts, cast)
            if not cast.dtypes & LOW_PRECISION or model is None or _is_frozen(facts, model):
                continue
            back = [one for one in wide if model.is_meant(facts, one.subject) and _place(one.node) > _place(cast.node)]
            optimizer = _optimizer_of(facts, model, back)
            if optimizer is not None:
                yield _of_training(cast, optimizer)
            elif (
                model.whole
                and cast.dtypes <= LOW_PRECISION
                and not any(_undoes(facts, model, one) for one in back)
                and not _applies(facts, model)
                and not _hands_over(facts, model, wide)
                and not _saves(facts, cast)
                and not any("dtype" in ast.unparse(guard.test) for guard in facts.around.guards(cast.node))
            ):
                yield _of_inference(cast)


@dataclass(frozen=True, slots=True)
class _Model:
    """A module that is cast.

    Attributes:
        path: how it is written, without the methods that give it back: `model` of `model.cuda().eval()`.
        bound: the variable or attribute that the cast one is bound to: `model = Net().half()`.
        scope: where; for an attribute of `self` the class.
        whole: is it a model, not a layer?
    """

    node: ast.Call
    path: str
    bound: str
    scope: ast.AST
    whole: bool

    @classmethod
    def of(cls, facts: ModuleFacts, cast: Cast) -> _Model | None:
        """The model of a cast; None where it is a part of a module, or one of several in a loop."""
        root, owner = root_of(cast.subject), facts.around.owner(cast.node)
        path = path_of(_behind_methods(cast.subject)) or ""
        statement = facts.around.statement(cast.node)
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        bound = next(filter(None, map(path_of, targets)), path)
        of_self = bound.startswith("self.") or path == "self" or path.startswith("self.")
        if (
            ast.unparse(root).startswith("super(")
            or walk_over(facts, root) is not None
            or (of_self and owner is not None and _is_module_class(owner))
        ):
            return None
        scope = owner if of_self and owner is not None else facts.around.scope(cast.node)
        kind = cast.value.address.kind if isinstance(cast.value, Ref) else None
        layer = isinstance(kind, str) and kind not in _CONTAINERS
        part = kind is not None and not isinstance(kind, str) and _is_part(facts, kind.name)
        return cls(cast.node, path, bound, scope, not layer and not part and "." not in path.removeprefix("self."))

    def is_meant(self, facts: ModuleFacts, node: ast.expr) -> bool:
        """Is an expression this model, or does it come from a loop over its parts?"""
        walk = walk_over(facts, root_of(node))
        path = path_of(_behind_methods(node if walk is None else walk.subject))
        return path in (self.path, self.bound) and self.scope in (node, *facts.around.around(node))


_CONTAINERS = frozenset({"torch.nn.Module", "torch.nn.Sequential", "torch.nn.Transformer"})


def _behind_methods(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    return node


def _is_module_class(owner: ast.ClassDef) -> bool:
    """Does a class inherit from anything, nn.Module perhaps?"""
    return any((path_of(base) or "").rpartition(".")[2] not in ("object", "ABC", "Protocol") for base in owner.bases)


def _is_part(facts: ModuleFacts, name: str) -> bool:
    """Is a class of modules made in another one?"""
    owners = (facts.around.owner(call.node) for call in facts.calls(name))
    return any(owner is not None and _is_module_class(owner) for owner in owners)


def _is_frozen(facts: ModuleFacts, model: _Model) -> bool:
    """Is a part of it frozen? Who trains the rest may train it in float32."""
    calls = (call.node.func for call in facts.methods("requires_grad_"))
    frozen = [function.value for function in calls if isinstance(function, ast.Attribute)]
    for target in facts.assignments():
        if isinstance(target.node, ast.Attribute) and target.node.attr == "requires_grad":
            frozen.append(target.node.value)
    return any(model.is_meant(facts, one) for one in frozen)


def _place(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _undoes(facts: ModuleFacts, model: _Model, wide: Cast) -> bool:
    """Is a cast back of parts of the model, or of all of it before it was run in half?"""
    if walk_over(facts, root_of(wide.subject)) is not None:
        statement = facts.around.statement(wide.node)
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        return wide.of == "module" or any(isinstance(one, ast.Attribute) and one.attr == "data" for one in targets)
    return not any(
        isinstance(node, ast.Call)
        and _place(model.node) < _place(node) < _place(wide.node)
        and path_of(node.func) in (model.path, model.bound)
        for node in facts.around.within(model.scope)
    )


def _applies(facts: ModuleFacts, model: _Model) -> bool:
    """Does a function run over all parts of the model once it is half, as one that casts the norms back?"""
    return any(
        isinstance(call.node.func, ast.Attribute)
        and model.is_meant(facts, call.node.func.value)
        and _place(call.node) > _place(model.node)
        for call in facts.methods("apply")
    )


def _hands_over(facts: ModuleFacts, model: _Model, wide: Sequence[Cast]) -> bool:
    """Does a function of the file, which is given the model once it is half, cast back the parts of some classes?"""
    casting = {
        facts.around.function(one.node)
        for one in wide
        if any(
            isinstance(guard.test, ast.Call) and path_of(guard.test.func) == "isinstance"
            for guard in facts.around.guards(one.node)
        )
    }
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and _place(node) > _place(model.node)
        and any(model.is_meant(facts, one) for one in node.args)
        and not casting.isdisjoint(facts.around.definitions(node.func))
        for node in facts.around.within(model.scope)
    )


def _optimizer_of(facts: ModuleFacts, model: _Model, back: Sequence[Cast]) -> Call | None:
    """An optimizer that is given the parameters of a model, at once or by way of variables, while it is half."""
    function = facts.around.function(model.node)
    for call in facts.calls("torch.optim."):
        if not call.name.rpartition(".")[2][0].isupper() or are_exclusive(facts, model.node, call.node):
            continue
        if any(_place(one.node) < _place(call.node) for one in back):
            continue
        if function not in (None, facts.around.function(call.node)) and getattr(function, "name", "") != "__init__":
            continue  # methods are called in any order
        if _place(call.node) < _place(model.node) and not _is_trained_behind(facts, model.node):
            continue
        given = [*call.node.args, *(keyword.value for keyword in call.node.keywords)]
        for part in (part for one in given for part in facts.around.made_of(one)):
            if not isinstance(part, ast.Attribute) or part.attr not in ("parameters", "named_parameters"):
                continue
            if model.is_meant(facts, part.value):
                return call
    return None


def _is_trained_behind(facts: ModuleFacts, cast: ast.Call) -> bool:
    """May a step follow a cast that stands behind the optimizer: further on, in the same loop, or where others call?"""
    around, function = facts.around, facts.around.function(cast)
    loop = next((one for one in around.around(cast) if isinstance(one, (ast.For, ast.While))), None)
    steps = [call.node for call in facts.methods("step", "backward") if around.function(call.node) is function]
    return not steps or any(_place(one) > _place(cast) or loop in (*around.around(one),) for one in steps)


def _saves(facts: ModuleFacts, cast: Cast) -> bool:
    """Does the function write models out? Then half may be the format of the file."""
    scope = facts.around.scope(cast.node)
    return any(
        isinstance(node, ast.Attribute) and node.attr in _SAVING and facts.around.scope(node) is scope
        for node in facts.around.within(scope)
    )


_SAVING = frozenset({"save", "export", "trace", "script", "save_pretrained", "push_to_hub", "state_dict", "save_file"})
_ADAMS = frozenset({"Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop"})
"""Optimizers that divide by a root of gradients plus an eps, which is 1e-8 unless it is given."""


def _of_training(cast: Cast, by: Call) -> Finding:
    dtype = max(cast.dtypes & LOW_PRECISION)
    optimizer = "" if "eps" in by.keywords else by.name.rpartition(".")[2]
    if dtype == "float16":
        also = f"does the eps of {optimizer}, 1e-8" if optimizer in _ADAMS else "do updates below 1/4096 of a weight"
        message = f"Training with float16 weights: gradients below 3e-8 become 0, and so {also}"
    else:
        message = "Training with bfloat16 weights: updates below 1/512 of a weight are lost"
    return Finding(
        cast.node,
        message,
        help="Keep the weights in float32 and compute the loss under "
        f"`torch.autocast(device_type, dtype=torch.{dtype})`",
        notes=((by.node, "its parameters are trained here"),),
    )


def _of_inference(cast: Cast) -> Finding:
    dtype = max(cast.dtypes)
    effect = (
        "values beyond 65504 become inf, and those below 3e-8 become 0"
        if dtype == "float16"
        else "weights, norms and softmax keep 8 bits of precision"
    )
    return Finding(
        cast.node,
        f"The whole model computes in {dtype}: {effect}",
        help=f"Keep float32 weights, and run under `torch.autocast(device_type, dtype=torch.{dtype})`",
        severity=Severity.INFO,
        conditional=dtype == "bfloat16",
    )
