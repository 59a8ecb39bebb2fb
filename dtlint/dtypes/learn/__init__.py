"""Learn the operator table from the installed torch: run every op over dtype combinations, and write what they do.

    python -m dtlint.dtypes.learn [--output FILE] [--only OP]...

A development tool: nothing imports it, and it needs the packages torch and expecttest. A full run takes some minutes.
The questions come from the operator database that torch ships for its own tests; each sample of it is asked again with
other dtypes, with 0-dim tensors and Python numbers, with `dtype=` and `out=`. `explain` finds the rules.
"""

from __future__ import annotations
