"""Static dtype inference: one abstract interpretation in execution order over the syntax tree.

`interpreter.interpret` walks a module and tells its listeners of `events` (calls, operators, casts thrown away,
contexts entered), each with the `values` of its parts as far as they are known. Rules speak of events and values
alone, so importing those does not load the interpreter.
"""

from __future__ import annotations
