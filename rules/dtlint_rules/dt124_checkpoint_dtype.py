"""DT124: a checkpoint whose dtype becomes that of the model in training."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import LOW_PRECISION
from dtlint.infer.names import path_of
from dtlint.rule import Finding, Rule
from dtlint_rules._cast_calls import casts
from dtlint_rules._module_walks import root_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts
    from dtlint_rules._cast_calls import Cast

__all__ = ["CheckpointDtype"]


class CheckpointDtype(Rule):
    """A model cast to half in place to be saved, or loaded in the dtype of the file and then trained.

    ## What it does
    Reports `torch.save(model.half().state_dict(), path)` if the model is trained further: in a loop, or in a function that
    is handed the model. And
    `model.load_state_dict(state, assign=True)` where an optimizer is then made over the model's parameters, and
    nothing casts the model in between.

    ## Why it matters
    `Module.half` casts in place. What was meant for the file happens to the model: after the first checkpoint,
    training goes on in float16, gradients below 6e-8 become 0, and GradScaler raises `Attempting to unscale FP16
    gradients`. Where the model is cast back, `model.float()`, each weight has lost all but 11 bits of it.

    `load_state_dict` copies into the parameters that are there, in their dtype; with `assign=True` the parameters of
    the file take their place, and a file saved in half makes a half model of it.

    ## Example
    ```python
    import torch
    from torch import nn

    def train(model: nn.Module, batches, optimizer):
        for step, batch in enumerate(batches):
            model(batch).sum().backward()
            optimizer.step()
            torch.save(model.half().state_dict(), f"step{step}.pt")
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn

    def train(model: nn.Module, batches, optimizer):
        for step, batch in enumerate(batches):
            model(batch).sum().backward()
            optimizer.step()
            state = model.state_dict()
            state = {key: value.half() if value.is_floating_point() else value for key, value in state.items()}
            torch.save(state, f"step{step}.pt")
    ```

    ## References
    - [torch.nn.Module.half](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.half)
    - [torch.nn.Module.load_state_dict](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.load_state_dict)
    """

    code, name = "DT124", "checkpoint-dtype"
    triggers = (".half", "self.half", ".bfloat16", "self.bfloat16", "assign")
    needs = (("state_dict", "load_state_dict", ".save", "save"),)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        known = list(casts(facts))
        for cast in known:
            path = path_of(cast.subject)
            if path is not None and cast.dtypes and cast.dtypes <= LOW_PRECISION and _is_saved(facts, cast):
                yield from _saved(facts, cast, path)
        yield from _assigned(facts, known)


_SAVERS = ("torch.save", "safetensors.torch.save_file", "safetensors.torch.save_model")


def _is_saved(facts: ModuleFacts, cast: Cast) -> bool:
    """Is it `torch.save(model.half().state_dict(), path)`?"""
    parent = facts.around.parent(cast.node)
    saved = {call.node for call in facts.calls(*_SAVERS)}
    return getattr(parent, "attr", "") == "state_dict" and any(one in saved for one in facts.around.around(cast.node))


def _saved(facts: ModuleFacts, cast: Cast, path: str) -> Iterator[Finding]:
    """The model of a checkpoint that is trained further: in a loop, or by who has handed it in."""
    root, loops = root_of(cast.subject), list(facts.around.loops(cast.node))
    made = list(facts.around.definitions(root)) if isinstance(root, ast.Name) else []
    back = [
        one
        for one in facts.around.within(facts.around.scope(cast.node))
        if isinstance(one, ast.Attribute) and one.attr in ("float", "to") and path_of(one.value) == path
        if one.lineno > cast.node.lineno
    ]
    of_its_own = any(one is loop or loop in facts.around.around(one) for one in made for loop in loops)
    copied = any(isinstance(one, ast.Call) and ast.unparse(one.func).endswith("copy") for one in made)
    handed = [type(one) for one in made] == [ast.arg] and not back
    if of_its_own or copied or not (loops or handed):
        return
    fate = "casting back does not restore the weights" if back else "after the save it goes on in half"
    yield Finding(
        cast.node,
        f"`{path}` itself is cast to half, in place: {fate}",
        help="Cast a copy, `copy.deepcopy(model).half()`, or the tensors of the state dict",
    )


def _assigned(facts: ModuleFacts, known: list[Cast]) -> Iterator[Finding]:
    """`model.load_state_dict(state, assign=True)`, and an optimizer over the parameters before anything casts the model."""
    for load in facts.methods("load_state_dict"):
        function = load.node.func
        path = path_of(function.value) if isinstance(function, ast.Attribute) else None
        scope = facts.around.scope(load.node)
        if path is None or load.constant(None, "assign") is not True:
            continue
        for made in facts.calls("torch.optim."):
            lines = range(load.node.lineno, made.node.lineno)
            trained = any(path_of(one) == f"{path}.parameters" for part in made.node.args for one in ast.walk(part))
            cast = any(path_of(one.subject) == path and one.node.lineno in lines for one in known)
            if trained and not cast and facts.around.scope(made.node) is scope and made.node.lineno > load.node.lineno:
                yield Finding(
                    load.node,
                    "With `assign=True` the model is trained in the dtype of the file",
                    help="Cast the model to float32 after loading, or load without `assign=True`",
                    notes=((made.node, "its parameters are trained here"),),
                )
                break
