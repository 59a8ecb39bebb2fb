"""DT104: a cast of a tensor whose result nobody keeps."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix
from dtlint.infer.domain.values import Tensor
from dtlint.infer.names import path_of
from dtlint.rule import Finding, Rule
from dtlint_rules._cast_calls import casts, dtype_name, is_weight
from dtlint_rules._module_walks import root_of, walk_over
from dtlint_rules._needs import CASTS
from dtlint_rules._texts import short

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dtlint.infer.facts import ModuleFacts
    from dtlint.source.place import Place
    from dtlint_rules._cast_calls import Cast

__all__ = ["CastResultDiscarded"]


class CastResultDiscarded(Rule):
    """The result of a tensor's cast is thrown away.

    ## What it does
    Reports a cast of a tensor that is a statement of its own, and a loop variable that is rebound to a cast and not
    used afterwards: `for p in model.parameters(): p = p.half()`. A module is cast in place, and left alone.

    Reported with `--preview` only, for nothing is lost: a cast to the dtype that the tensor has already.

    ## Why it matters
    A tensor's dtype is fixed when it is made: `x.half()` leaves `x` as it is and returns another tensor, which is lost
    here. `nn.Module.half()` is different, it casts the module in place; code moved from modules to tensors goes wrong
    without an error.

    ## Example
    ```python
    import torch

    x = torch.randn(4)
    x.half()
    ```

    ## Use instead
    ```python
    import torch

    x = torch.randn(4)
    x = x.half()
    ```

    ## Fix safety
    The fix assigns the result to the name or attribute that was cast. It is unsafe, for the program now really
    computes in the other dtype. There is none for a name of an outer scope, which the assignment would hide.

    ## References
    - [torch.Tensor.to](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html)
    - [torch.nn.Module.to](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.to)
    """

    code, name = "DT104", "cast-result-discarded"
    fix = Applicability.UNSAFE
    triggers = CASTS

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for cast in casts(facts):
            if cast.of != "tensor" or any(keyword.arg == "inplace" for keyword in cast.node.keywords):
                continue
            if not facts.around.is_discarded(cast.node):
                yield from _lost(facts, cast)
            elif not _made_for_its_effects(facts, cast.node):
                became = f" to {dtype_name(cast.dtype)}" if len(cast.dtypes) == 1 else ""
                yield Finding(
                    cast.node,
                    f"The result of the cast{became} is discarded: `{short(cast.subject)}` keeps its dtype",
                    help="Assign the result: tensors are never cast in place",
                    conditional=_changes_nothing(facts, cast),
                    fix=_assigning(facts, cast),
                )


def _changes_nothing(facts: ModuleFacts, cast: Cast) -> bool:
    """Has the tensor the dtype already that it is cast to, `zeros_like(x, dtype=q.dtype).to(q.dtype)`?"""
    value, result = facts.value(cast.subject), facts.value(cast.node)
    if not isinstance(value, Tensor) or not isinstance(result, Tensor) or value.dtypes != result.dtypes:
        return False
    return (
        value.symbol is not None and value.symbol == result.symbol if value.dtypes is None else len(value.dtypes) == 1
    )


def _lost(facts: ModuleFacts, cast: Cast) -> Iterator[Finding]:
    """`for p in model.parameters(): p = p.half()`."""
    statement = facts.around.statement(cast.node)
    walk = walk_over(facts, cast.subject)
    if walk is None or not isinstance(statement, ast.Assign) or statement.value is not cast.node:
        return
    if [path_of(target) for target in statement.targets] != [walk.variable]:
        return
    if any(cast.node in facts.around.definitions(name) for name in _reads(walk.loop, walk.variable)):
        return
    yield Finding(
        statement,
        f"Rebinding the loop variable `{walk.variable}` does not cast the {walk.kind} of `{short(walk.subject)}`",
        help=f"Cast the module itself, in place: `{short(walk.subject)}.to(dtype)`",
    )


def _reads(node: ast.AST, name: str) -> Iterator[ast.Name]:
    for one in ast.walk(node):
        if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load):
            yield one


def _made_for_its_effects(facts: ModuleFacts, node: ast.expr) -> bool:
    """Is the cast made to see what it raises, or how long it takes: in a `try`, under `pytest.raises`, again and again?"""
    repeated = any(path_of(loop.target) == "_" for loop in facts.around.loops(node) if not isinstance(loop, ast.While))
    return repeated or any(
        isinstance(one, ast.Try) or (isinstance(one, ast.With) and any(map(_expects, one.items)))
        for one in facts.around.around(node)
    )


def _expects(item: ast.withitem) -> bool:
    context = item.context_expr
    last = (path_of(context.func) or "").rpartition(".")[2] if isinstance(context, ast.Call) else ""
    return last in ("raises", "assertRaises", "assertRaisesRegex", "suppress", "warns", "assertWarns")


def _assigning(facts: ModuleFacts, cast: Cast) -> Callable[[Place], Fix | None] | None:
    subject = path_of(cast.subject)
    root = root_of(cast.subject)
    looped = isinstance(root, ast.Name) and any(
        isinstance(one, (ast.For, ast.AsyncFor)) for one in facts.around.definitions(root)
    )
    if subject is None or looped or is_weight(cast.value):  # a module refuses a tensor for its parameter
        return None

    def fix(place: Place) -> Fix | None:
        if not place.can_assign(cast.subject):
            return None
        edits = (place.insert_before(facts.around.statement(cast.node), f"{subject} = "),)
        return Fix(f"Assign the result: `{subject} = {ast.unparse(cast.node)}`", edits, Applicability.UNSAFE)

    return fix
