"""Static dtype inference: one abstract interpretation in execution order over the syntax tree.

`interpret` walks a module and tells its listeners of events (calls, operators, casts thrown away, contexts entered),
each with the values of its parts as far as they are known. Whoever judges the program speaks of those.
"""

from __future__ import annotations

from dtlint.infer.interpreter import interpret

__all__ = ["interpret"]
