"""DT112: a module or an activation cast for one computation, and left in that dtype."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.rule import Finding, Rule
from dtlint_rules._cast_calls import casts
from dtlint_rules._needs import HALF_BY_NAME, attributes
from dtlint_rules._scalers import called_from

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts
    from dtlint.infer.surroundings import FunctionNode

__all__ = ["CastNotRestored"]


class CastNotRestored(Rule):
    """A module or an activation that is cast for one computation and not cast back.

    ## What it does
    Reports four forms.

    - A method upcasts a part of its object because that part is half (`if self.vae.dtype == torch.float16: ...`), and
      does not cast it back before it ends.
    - A function that evaluates casts the model that it is handed to half, and does not cast it back.
    - A program casts a model to half in the midst of its training, as for a checkpoint or an evaluation, casts it back
      nowhere, and steps its optimizer again.
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
    triggers = HALF_BY_NAME
    needs = (attributes(("to", "float", "double"), of_self=True),)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for seen in facts.events("trained weights cast"):
            if getattr(facts.around.parent(seen.node), "attr", "") == "state_dict":
                continue  # checkpoint-dtype tells of a cast that is made to save
            yield Finding(
                seen.node,
                "The model that is trained is cast to half in place and not cast back: the next step trains in half",
                help="Cast a copy, or the tensors of its `state_dict()`, or cast the model back",
                elsewhere=called_from(seen),
            )
        for node, path, function in _upcasts(facts):
            tests = [one for guard in facts.around.guards(node) for one in facts.around.made_of(guard.test)]
            if not any(path_of(one) == f"{path}.dtype" for one in tests) or not _asks_half(facts, node, path):
                continue
            later = [one for one in ast.walk(function) if isinstance(one, ast.Attribute) and _is_behind(one, node)]
            used = any((path_of(one) or "").startswith(f"{path}.") and one.attr not in _CASTING for one in later)
            cast_back = any(path_of(one.value) == path and one.attr in _CASTING for one in later)
            if used and not cast_back:
                yield Finding(
                    node,
                    f"`{path}` is cast to float32 in place for one computation and not cast back",
                    help=f"Cast `{path}` back to its dtype behind the computation",
                )


_CASTING = frozenset({"to", "half", "bfloat16", "float", "double", "type"})


def _upcasts(facts: ModuleFacts) -> Iterator[tuple[ast.Call, str, FunctionNode]]:
    """The calls that cast a part of `self` to float32, `self.vae.float()`, `self.upcast_vae()`, and the part."""
    by_method: dict[tuple[ast.ClassDef, str], str] = {}
    for cast in casts(facts):
        path, function, owner = path_of(cast.subject), facts.around.function(cast.node), facts.around.owner(cast.node)
        if owner is None or function is None or isinstance(function, ast.Lambda) or path is None:
            continue
        if path.startswith("self.") and cast.of != "tensor" and cast.dtypes == {"float32"}:
            by_method[owner, function.name] = path
            if facts.around.is_discarded(cast.node):
                yield cast.node, path, function
    for node in facts.around.of_kind(ast.Call) if by_method else ():
        if isinstance(node.func, ast.Attribute) and path_of(node.func.value) == "self":
            owner, function = facts.around.owner(node), facts.around.function(node)
            part = None if owner is None else by_method.get((owner, node.func.attr))
            if part is not None and function is not None:
                yield node, part, function


def _asks_half(facts: ModuleFacts, node: ast.Call, path: str) -> bool:
    """Does the cast stand behind a test that its part is half? `if x.dtype != torch.float32` makes sure of it for good."""
    for guard in facts.around.guards(node):
        for one in facts.around.made_of(guard.test):
            if isinstance(one, ast.Compare) and path_of(one.left) == f"{path}.dtype":
                asked = isinstance(one.ops[0], (ast.Eq, ast.Is, ast.In)) is guard.holds
                return asked and "float32" not in ast.unparse(one)
    return False


def _is_behind(node: ast.expr, call: ast.Call) -> bool:
    return (node.lineno, node.col_offset) > (call.end_lineno or call.lineno, call.end_col_offset or 0)
