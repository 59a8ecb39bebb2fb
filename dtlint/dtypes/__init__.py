"""Pure facts about dtypes: names, ranges, promotion. Imports nothing else of dtlint, and no torch."""

from __future__ import annotations
