"""DT410: positions counted in half."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix
from dtlint.dtypes.dtype import LOW_PRECISION
from dtlint.infer.names import path_of
from dtlint.rule import Finding, Rule
from dtlint_rules._counted import counted_in_half
from dtlint_rules._fixes import respell
from dtlint_rules._needs import TORCH
from dtlint_rules._uses import Use, is_callers, is_half, is_settled, maker, number_at, uses

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable

    from dtlint.infer.facts import ModuleFacts
    from dtlint.source.place import Place

__all__ = ["LowPrecisionPositions"]

_EXACT = 256
"""bfloat16 has every whole number up to here, float16 those up to 2048."""


class LowPrecisionPositions(Rule):
    """Positions are counted in the dtype of the data, which may be half.

    ## What it does
    Reports `torch.arange` beyond the whole numbers that its half dtype has, 2048 in float16 and 256 in bfloat16, and
    counts in half up to what is not known that are lifted to float32 later, too late to help.

    Conditional, and so reported with `--preview` only: counts of whole numbers up to what is not known in half, and counts
    that are made in, or at once cast to, the dtype of another tensor, `dtype=x.dtype`, `.to(x.dtype)`, `.type_as(x)`, in
    functions that take a sine or a cosine.

    ## Why it matters
    bfloat16 has every whole number up to 256 and float16 up to 2048; behind that, neighbours are the same number.
    `torch.arange(2048, dtype=torch.bfloat16)` holds 641 different values, so that the tokens of a long text share
    positions, and `torch.arange(100000, dtype=torch.float16)` holds 34,480 times inf. The frequencies of a rotary or
    sinusoidal encoding lose their digits in the same way, and so do angles: between 512 and 1024 those of bfloat16 lie
    4 radians apart. Nothing says so but the quality of what comes out.

    ## Example
    ```python
    import torch

    def rotary(x: torch.Tensor, inv_freq: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(x.shape[1], device=x.device, dtype=x.dtype)
        angles = torch.outer(positions, inv_freq)
        return angles.cos()
    ```

    ## Use instead
    ```python
    import torch

    def rotary(x: torch.Tensor, inv_freq: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(x.shape[1], device=x.device, dtype=torch.promote_types(x.dtype, torch.float32))
        angles = torch.outer(positions, inv_freq)
        return angles.cos()
    ```

    ## Fix safety
    The fix counts in float32, or in float64 where that is asked for. It is unsafe: what is computed from the positions
    becomes float32 too, and has to be cast to the dtype of the data at the end. There is no fix in functions that multiply
    matrices or call layers, which raise for float32 beside half weights.

    ## References
    - [torch.arange](https://docs.pytorch.org/docs/stable/generated/torch.arange.html)
    """

    code, name = "DT410", "low-precision-positions"
    fix = Applicability.UNSAFE
    triggers = (".arange",)
    needs = (TORCH,)

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        told = set()
        waved = {facts.around.scope(use.node) for use in uses(facts, "sin", "cos", "polar")}
        for finding in counted_in_half(facts):
            told.add(finding.node)
            yield finding
        multiplied = {facts.around.scope(use.node) for use in uses(facts, "matmul", "mm", "bmm", "einsum", "linear")}
        for use in uses(facts, "arange", "to", "type_as", "half", "bfloat16"):
            counted = use if use.name == "arange" else maker(facts, use.nodes[0]) if use.nodes else None
            if counted is None or counted.name != "arange" or not _is_far(facts, counted) or use.node in told:
                continue
            result, dtype = use.result, use.keywords.get("dtype", (None, None))[0]
            half = is_half(result)
            scope = facts.around.scope(use.node)
            if (half or (is_callers(result) and scope in waved)) and not is_settled(facts, use.node):
                yield Finding(
                    use.node,
                    "Positions are counted in half, or may be: bfloat16 is exact to 256 only, float16 to 2048",
                    help="Count in float32, and cast what is computed from the positions",
                    conditional=True,
                    fix=partial(_widened, dtype) if dtype is not None and scope not in multiplied else None,
                )


def _widened(given: ast.expr, place: Place) -> Fix:
    """The fix that counts in float32, or in float64 where that may be asked for."""
    if (path_of(given) or "").rpartition(".")[2] in LOW_PRECISION | {"half"}:
        return respell(place, given, "torch.float32", "Count in float32")
    promote, first = place.spelled("torch.promote_types")
    float32, second = place.spelled("torch.float32")
    edit = place.replace(given, f"{promote}({place.text(given)}, {float32})")
    return Fix("Count in float32", (edit, *dict.fromkeys((*first, *second))), Applicability.UNSAFE)


def _is_far(facts: ModuleFacts, count: Use) -> bool:
    """Is it not known to end early?"""
    ends = [number_at(facts, node) for node in count.nodes[:2]]
    return bool(ends) and len(count.nodes) < 3 and not all(end is not None and abs(end) <= _EXACT for end in ends)
