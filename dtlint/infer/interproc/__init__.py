"""Across functions and modules: imports, binding, calls and their summaries, classes, recursion, budgets."""
