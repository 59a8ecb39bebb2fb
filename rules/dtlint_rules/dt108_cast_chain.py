"""DT108: a cast of a cast, of which the first does nothing, or rounds what the second was to keep."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Edit, Fix, Severity, Span
from dtlint.dtypes.dtype import DTYPES, FLOATING, LOW_PRECISION
from dtlint.rule import Finding, Rule
from dtlint_rules._cast_calls import casts
from dtlint_rules._needs import attributes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts
    from dtlint.source.place import Place

__all__ = ["CastChain"]

_METHODS = ("to", "type", "half", "float", "double", "bfloat16")


class CastChain(Rule):
    """A floating tensor cast twice in a row.

    ## What it does
    Reports `x.float().half()`, `x.float().to(torch.float32)` and `x.double().to(torch.bfloat16)`: a cast to a
    floating dtype that is directly followed by one to the same or a narrower floating dtype. `x.half().float()`
    rounds the values first, which is what fake quantization and tests of precision do on purpose, and is left alone,
    and so is every chain that goes through an integer.

    ## Why it matters
    The first cast copies the tensor, at twice or four times the memory of the result, and changes nothing: each value
    of the result is what the second cast alone gives, up to the last bit. Where the first cast was meant to give a
    computation more precision, that computation has been lost from between the two.

    This is a matter of memory and tidiness, not of wrong results, and so it is not on by default.

    ## Example
    ```python
    import torch

    x = torch.randn(4)
    y = x.float().half()
    ```

    ## Use instead
    ```python
    import torch

    x = torch.randn(4)
    y = x.half()
    ```

    ## Fix safety
    The fix removes the first cast. It is unsafe, for a value that is rounded once instead of twice may differ in its
    last bit.

    ## References
    - [torch.Tensor.to](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html)
    """

    code, name = "DT108", "cast-chain"
    severity = Severity.INFO
    fix = Applicability.UNSAFE
    default = False
    triggers = (").half(", ").float(", ").bfloat16(", ").double(", ").to(", ").type(")
    needs = (attributes(_METHODS),)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        plain = [one for one in casts(facts, *_METHODS) if one.plain and one.of != "module" and len(one.dtypes) == 1]
        known = {one.node: min(one.dtypes) for one in plain if one.dtypes <= FLOATING}
        for node, dtype in known.items():
            assert isinstance(node.func, ast.Attribute)
            inner = node.func.value
            first = known.get(inner) if isinstance(inner, ast.Call) else None
            if first is None or DTYPES[first].bits < DTYPES[dtype].bits or {first, dtype} == LOW_PRECISION:
                continue
            what = f"The cast to {first} is undone at once by the cast to {dtype}"
            yield Finding(
                node,
                f"{f'The tensor is cast to {dtype} twice' if first == dtype else what}: the first only makes a copy",
                help=f"Cast to {dtype} alone",
                notes=((inner, f"cast to {first} here"),),
                fix=partial(_without_first, inner),
            )


def _without_first(inner: ast.expr, place: Place) -> Fix | None:
    assert isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute)
    whole, kept = place.source.span(inner), place.source.span(inner.func.value)
    gap = Span(kept.end_line, kept.end_column, whole.end_line, whole.end_column)
    text = place.between(gap)
    if "#" in text or text.lstrip().startswith(")"):
        return None  # a comment would be lost, or a parenthesis stand alone
    return Fix("Remove the first cast", (Edit(gap, ""),), Applicability.UNSAFE)
