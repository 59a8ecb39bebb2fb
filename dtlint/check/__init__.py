"""The static half: screen, infer, rules, findings confirmed, fixes; over many files with workers and a cache."""

from __future__ import annotations
