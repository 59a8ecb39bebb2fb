"""DT305: what is written into a tensor by index has another dtype, and torch does not cast it."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix, Severity
from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.domain.values import TOP
from dtlint.rule import Finding, Rule
from dtlint_rules._casting import listed
from dtlint_rules._fixes import operand_text
from dtlint_rules._needs import KNOWN, TORCH, attributes
from dtlint_rules._refusals import WRITES, Operand, finding, if_half, is_refused, is_write, once, operand, short_op
from dtlint_rules._texts import short

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts, Operation, Sighting
    from dtlint.source.place import Place

__all__ = ["WriteDtypeMismatch"]


class WriteDtypeMismatch(Rule):
    """What is written by index has not the dtype of the tensor that it is written into.

    ## What it does
    Reports `scatter_`, `scatter_add_`, `index_add_`, `index_copy_`, `index_put_`, `masked_scatter_` and `out[index] = x`
    with a tensor or a list as index, where the two dtypes are known and differ.

    Conditional, and reported with `--preview` only: one side is float32, by a cast or a factory without `dtype=`, and the
    other has the dtype of what the caller gives.

    ## Why it matters
    Writing a slice casts, `out[:n] = x`; writing by index does not: "Index put requires the source and destination dtypes
    match", "scatter(): Expected self.dtype to be equal to src.dtype". In a float32 run nobody sees it; half inputs and
    autocast raise.

    ## Example
    ```python
    import torch


    def pool(x: torch.Tensor, index: torch.Tensor, groups: int) -> torch.Tensor:
        out = torch.zeros(groups, x.shape[1], device=x.device)
        return out.index_add_(0, index, x)
    ```

    ## Use instead
    ```python
    import torch


    def pool(x: torch.Tensor, index: torch.Tensor, groups: int) -> torch.Tensor:
        out = torch.zeros(groups, x.shape[1], device=x.device)
        return out.index_add_(0, index, x.to(out.dtype))
    ```

    ## Fix safety
    The fix casts what is written to the dtype of the tensor that it is written into. It is unsafe, for where that is half
    digits are lost, and sums of many terms with them: there, make the tensor in float32 instead.

    ## References
    - [Tensor.index_add_](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.index_add_.html)
    - [Tensor.scatter_](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.scatter_.html)
    """

    code, name, severity = "DT305", "write-dtype-mismatch", Severity.WARNING
    fix = Applicability.UNSAFE
    triggers = (*attributes(WRITES), *attributes(f"{name}_" for name in WRITES), "]=")
    needs = (TORCH, KNOWN)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for seen in once(facts.operations(lambda one: is_refused(one, self.code) or _differ(one))):
            into, written = _sides(seen.what)
            text = f"`{_name(seen.what)}` raises: what is written is {listed(written.dtypes)}, and the tensor {listed(into.dtypes)}"
            one = finding(seen, None, text, _HELP, fix=_fix(facts, seen, into, written))
            one.severity = Severity.ERROR
            yield one
        for seen, wide, other in if_half(facts, is_write, _sides):
            into, written = _sides(seen.what)
            text = f"`{_name(seen.what)}` of float32 and a tensor of the caller's dtype raises if that is half"
            if wide.node is not None and other.node is not None:
                text = f"`{_name(seen.what)}` raises if `{short(other.node)}` is half: `{short(wide.node)}` is float32"
            yield finding(seen, None, text, _HELP, fix=_fix(facts, seen, into, written), conditional=True)


_HELP = "Cast what is written to the dtype of the tensor"


def _name(operation: Operation) -> str:
    return "[...] =" if short_op(operation) == "__setitem__" else short_op(operation)


def _sides(operation: Operation) -> list[Operand]:
    """What is written into, and what is written."""
    found = operand(operation), operand(operation, *WRITES.get(short_op(operation).rstrip("_"), (2, "value")))
    return [one or Operand(None, TOP) for one in found]


def _differ(operation: Operation) -> bool:
    """Are the dtypes of both known, floating and others, where torch does not cast?"""
    if not is_write(operation) or short_op(operation) == "__setitem__":
        return False
    into, written = (one.dtypes for one in _sides(operation))
    return bool(into) and bool(written) and into <= FLOATING and written <= FLOATING and into.isdisjoint(written)


def _fix(facts: ModuleFacts, seen: Sighting[Operation], into: Operand, written: Operand) -> partial[Fix | None] | None:
    operation, node = seen.what, written.node
    if seen.behind:
        return None
    if short_op(operation) == "__setitem__":
        statement = facts.around.statement(operation.node)
        node = statement.value if isinstance(statement, ast.Assign) and operation.node in statement.targets else None
    return None if into.node is None or node is None else partial(_cast, into.node, node)


def _cast(into: ast.expr, written: ast.expr, place: Place) -> Fix | None:
    if not isinstance(into, (ast.Name, ast.Attribute)):
        return None
    edit = place.replace(written, f"{operand_text(place, written)}.to({place.text(into)}.dtype)")
    return Fix(f"Cast it to the dtype of `{place.text(into)}`", (edit,), Applicability.UNSAFE)
