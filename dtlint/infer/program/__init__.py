"""The whole-program half: a script is followed from its first line through every function, class and import.

`machine.Program` reads a module as Python would run it; the other modules each hold one idea of that reading: what a
call reads again (`functions`, `following`), what an object is (`objects`, `instances`, `containers`), what code that
is not seen may do to it (`turns`, `promises`), and what can be told at the end (`claims`, `why`).
"""

from __future__ import annotations
