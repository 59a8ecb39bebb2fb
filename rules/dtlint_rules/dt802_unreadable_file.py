"""DT802: a file that could not be checked."""

from __future__ import annotations

from dtlint.diagnostic import Severity
from dtlint.rule import Rule

__all__ = ["UnreadableFile"]


class UnreadableFile(Rule):
    """File cannot be read, or does not parse.

    ## What it does
    Reports a file that is no Python which this interpreter can parse: a syntax error, bytes that are not valid in the
    file's encoding, a null byte, UTF-16, a notebook whose JSON is broken. The other files are checked nevertheless, and
    of a notebook the cells that do parse; it is not fixed before all of them do. Cells that IPython runs without the
    indent of their first line are neither reported nor checked.
    A selection does not leave this rule out; `ignore = ["DT802"]` does.

    ## Why it matters
    Nothing else in the file was checked, so it must not pass for clean. Code for a newer Python than the one that runs
    dtlint is reported as well: run dtlint under the newest Python that the code is written for.

    ## Example
    ```python
    import torch

    x = torch.ones(3
    ```

    ## Use instead
    ```python
    import torch

    x = torch.ones(3)
    ```

    ## References
    - [PEP 263](https://peps.python.org/pep-0263/): how a file declares its encoding.
    """

    code, name = "DT802", "unreadable-file"
    severity = Severity.ERROR
