"""DT801: a comment that suppresses nothing."""

from __future__ import annotations

from dtlint.diagnostic import Applicability, Severity
from dtlint.rule import Rule

__all__ = ["UnusedSuppression"]


class UnusedSuppression(Rule):
    """Comment suppresses a rule of dtlint that finds nothing there.

    ## What it does
    Reports codes of dtlint in `# noqa: DT101`, `# dtlint: ignore[DT101]` and `# dtlint: file-ignore[DT101]` that
    silence no finding, and codes that name no rule. A prefix, such as `# noqa: DT1`, is reported and stays: a selection
    takes one, a suppression names the very rules. Comments that look like suppressions and are none, such as
    `# dtlint: ignore(DT101)`, `# dtlint: disable=DT101` and `# noqa: model-half`, silence nothing and are reported with
    what to write instead. Codes of other linters, a bare `# noqa` or `# dtlint: ignore` and codes of rules that did not
    run are left alone.

    ## Why it matters
    A suppression that is no longer needed hides the next real finding on its line. One with a mistyped code never
    worked, and its author believes that it does.

    ## Example
    ```python
    import torch

    x = torch.ones(3)  # noqa: DT101
    ```

    ## Use instead
    ```python
    import torch

    x = torch.ones(3)
    ```

    ## Fix safety
    The fix is safe: it deletes only the codes that suppress nothing, and the comment if it says nothing else.

    ## References
    - Ruff's [unused-noqa](https://docs.astral.sh/ruff/rules/unused-noqa/), which knows nothing of dtlint's codes:
      list them under its `lint.external` setting.
    """

    code, name = "DT801", "unused-suppression"
    severity = Severity.WARNING
    fix = Applicability.SAFE
    triggers = ("noqa", "dtlint:")
