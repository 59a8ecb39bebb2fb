"""Which rule is told of which event."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtlint.check.judge import judge
from dtlint.infer.events import Call
from dtlint.rule import Finding, Rule
from dtlint.source.file import Source

TEXT = """\
import torch
from torch.nn.functional import softmax as normalise
x = torch.zeros(3)
x.half()
normalise(x)
unknown(x)
(lambda: x)()
"""


class Every(Rule):
    code, name = "DT391", "every"

    def on_call(self, call: Call) -> Iterator[Finding]:
        yield Finding(call.node, ast.unparse(call.node))


class Some(Every):
    code, name = "DT392", "some"
    calls = frozenset({"half", "softmax"})


def told(*rules: type[Rule]) -> dict[str, list[str]]:
    source = Source.from_bytes(TEXT.encode(), "a.py")
    judged = judge(ast.parse(TEXT), source, rules)
    return {
        rule.code: [suspicion.finding.message for suspicion in judged.suspicions if type(suspicion.rule) is rule]
        for rule in rules
    }


def test_a_rule_hears_of_the_calls_that_it_names_and_of_all_where_it_names_none() -> None:
    assert told(Some, Every) == {
        "DT391": ["torch.zeros(3)", "x.half()", "normalise(x)", "unknown(x)", "(lambda: x)()"],
        "DT392": ["x.half()", "normalise(x)"],
    }
    assert told(Some) == {"DT392": ["x.half()", "normalise(x)"]}
