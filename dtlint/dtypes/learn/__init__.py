"""Learn the operator table from the installed torch: run every op over dtype combinations, and write what they do.

    python -m dtlint.dtypes.learn [--output FILE] [--only OP]...

A development tool: nothing imports it, and it needs the packages torch and expecttest. A full run takes some minutes.

An `op` is a public name of torch, with the forms that it can be called in (`schemas`, `signatures`) and the calls that
are made of it. Most come from the operator database that torch ships for its own tests (`database`), the others from
`modules`, `optimizers` and `extras`. Each call is asked again with other dtypes, with 0-dim tensors and Python numbers,
with `dtype=` and `out=` (`questions`); what torch answers (`run`) is observed (`observing`) and explained (`entry`, by
`dtlint.dtypes.explain`), and the rules are asked random questions (`audit`). `kernels` says what the CPU lacks,
`autocast` what autocast does. `learning` makes the table of all this, and `writing` its file.
"""

from __future__ import annotations
