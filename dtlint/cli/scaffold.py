"""The text of a new rule: a whole module that works, whose judgement is to be replaced."""

from __future__ import annotations

import re

__all__ = ["scaffold"]

TEMPLATE = '''"""{code}: a tensor cast to float64."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix, Severity
from dtlint.rule import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts


class {title}(Rule):
    """Tensor is cast to float64.

    ## What it does
    Reports `x.double()` where `x` is known to be a tensor.

    ## Why it matters
    Most GPUs compute in float64 at a small fraction of their float32 rate, and promotion spreads it.

    ## Example
    ```python
    import torch

    x = torch.zeros(3)
    y = x.double()
    ```

    ## Use instead
    ```python
    import torch

    x = torch.zeros(3)
    y = x.float()
    ```

    ## Fix safety
    Unsafe: the result is less precise.
    """

    code, name = "{code}", "{name}"
    severity = Severity.INFO
    fix = Applicability.UNSAFE
    triggers = (".double",)  # a file without a method of this name is not read,
    needs = (("torch",),)  # nor one that lacks all words of one of these groups

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for call in facts.calls("torch.Tensor.double"):
            yield Finding(
                call.node,
                "the tensor becomes float64",
                help="use `.float()` unless the computation needs the precision",
                fix=lambda place: Fix("Use `.float()`", (place.rename_method("float"),), Applicability.UNSAFE),
            )
'''


def scaffold(code: str, name: str) -> str:
    """The module of a rule of this code and name.

    Raises:
        ValueError: the code is not of the form DT123, or the name not of the form `double-cast`.
    """
    if re.fullmatch(r"DT[0-9]{3}", code) is None:
        raise ValueError(f"{code!r} is no code of a rule; write it like DT390")
    if re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) is None:
        raise ValueError(f"{name!r} is no name of a rule; write it in small letters with hyphens, like double-cast")
    title = "".join(word.capitalize() for word in name.split("-"))
    return TEMPLATE.format(code=code, name=name, title=title)
