"""What facts tell of tests of a release, of sequences and of comparisons."""

from __future__ import annotations

import ast
from textwrap import dedent

from dtlint.check.reader import Reader
from dtlint.infer.domain.values import Const
from dtlint.infer.facts import ModuleFacts


def facts_of(text: str) -> ModuleFacts:
    return Reader().facts(ast.parse(dedent(text)), None)


def test_a_test_that_every_torch_in_use_passes_chooses_nothing() -> None:
    facts = facts_of("""
        import torch
        from packaging.version import parse

        if parse(torch.__version__) >= parse("1.6"):
            from torch.cuda.amp import autocast
        else:
            autocast = None
        newer = parse(torch.__version__) >= parse("99.0")
        with autocast():
            pass
    """)
    assert [(node.lineno, name) for node, name in facts.names("torch.cuda.amp.autocast")] == [
        (10, "torch.cuda.amp.autocast")
    ]
    values = {one.node.id: one.result for one in facts.assignments() if isinstance(one.node, ast.Name)}
    assert not isinstance(values["newer"], Const)


def test_items_are_told_of_tuples_and_of_lists_that_are_written_out() -> None:
    facts = facts_of("""
        kinds = ["half", "float"]
        print("half" in kinds, "half" in ("half",), "half" in unknown)
    """)
    asked = [facts.items(one.node.comparators[0]) for one in facts.evaluations(ast.Compare)]
    assert asked == [(Const("half"), Const("float")), (Const("half"),), None]


def test_the_dtype_of_anything_may_equal_a_name() -> None:
    facts = facts_of("""
        import torch

        def f(x, y: torch.Tensor):
            return x.dtype == "float32", y.half().dtype == "float16"
    """)
    results = [one.result for one in facts.evaluations(ast.Compare)]
    assert not isinstance(results[0], Const) and results[1] == Const(False)
