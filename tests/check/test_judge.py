"""Which rule is told of which event."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

import pytest

from dtlint.check import audience
from dtlint.check.audience import expect
from dtlint.check.judge import judge
from dtlint.check.screen import Text
from dtlint.infer.events import Assign, Call, Discard, Operation, Reference
from dtlint.rule import Finding, Rule
from dtlint.source.file import Source

TEXT = """\
import torch
from torch.nn.functional import softmax as normalise
x = torch.zeros(3)
x.half()
normalise(x)
unknown(x)
(lambda *y: x)()
"""


class Every(Rule):
    code, name = "DT391", "every"

    def on_call(self, call: Call) -> Iterator[Finding]:
        yield Finding(call.node, ast.unparse(call.node))


class Some(Every):
    code, name = "DT392", "some"
    calls = frozenset({"half", "softmax"})


def told(*rules: type[Rule], text: str = TEXT) -> dict[str, list[str]]:
    source = Source.from_bytes(text.encode(), "a.py")
    judged = judge(ast.parse(text), source, Text(text), rules)
    return {
        rule.code: [suspicion.finding.message for suspicion in judged.suspicions if type(suspicion.rule) is rule]
        for rule in rules
    }


def test_a_rule_hears_of_the_calls_that_it_names_and_of_all_where_it_names_none() -> None:
    assert told(Some, Every) == {
        "DT391": ["torch.zeros(3)", "x.half()", "normalise(x)", "unknown(x)", "(lambda *y: x)()"],
        "DT392": ["x.half()", "normalise(x)"],
    }
    assert told(Some) == {"DT392": ["x.half()", "normalise(x)"]}


ALIASED = """\
import torch

class Trainer:
    scaler_class = torch.cuda.amp.GradScaler

    def __init__(self):
        self.project = torch.nn.Linear(3, 3)

    def fit(self, x):
        scaler = self.scaler_class()
        return scaler.scale(self.project(x))
"""


def hearing(*names: str) -> type[Rule]:
    return type("Hearing", (Every,), {"calls": frozenset(names)})


@pytest.mark.parametrize("names", [("GradScaler",), ("scaler_class",), ("GradScaler", "scaler_class")])
def test_a_call_by_an_alias_is_told_once_by_its_name_and_by_the_alias(names: tuple[str, ...]) -> None:
    assert told(hearing(*names), text=ALIASED) == {"DT391": ["self.scaler_class()"]}


def test_a_layer_that_is_called_is_told_as_a_call_of_it() -> None:
    assert told(hearing("__call__"), text=ALIASED) == {"DT391": ["self.project(x)"]}


@pytest.mark.parametrize(
    "form, heard",
    [
        ("torch.", ["torch.zeros(3)", "x.half()", "normalise(x)"]),
        ("*max*", ["normalise(x)"]),
        ("*AL*", ["x.half()", "normalise(x)"]),
        ("", ["unknown(x)", "(lambda *y: x)()"]),
    ],
)
def test_a_rule_may_name_a_package_a_part_of_a_name_or_what_is_not_known(form: str, heard: list[str]) -> None:
    assert told(hearing(form)) == {"DT391": heard}


BINDING = """\
def f(self, x, i):
    n = 3
    self.dtype = x.dtype
    y = x[i]
    x[i] = y
    z: int = 4
"""


@pytest.mark.parametrize(
    "targets, values, heard",
    [
        (None, None, ["n = 3", "self.dtype = x.dtype", "y = x[i]", "x[i] = y", "z: int = 4"]),
        ({ast.Subscript}, None, ["x[i] = y"]),
        (None, {ast.Constant}, ["n = 3", "z: int = 4"]),
        ({ast.Subscript}, {ast.Subscript}, ["y = x[i]", "x[i] = y"]),
    ],
)
@pytest.mark.parametrize("among_others", [False, True])
def test_a_rule_hears_of_a_binding_by_its_target_or_by_what_is_bound(
    targets: set[type[ast.AST]] | None, values: set[type[ast.AST]] | None, heard: list[str], among_others: bool
) -> None:
    class Binding(Rule):
        code, name = "DT393", "binding"

        def on_assign(self, assign: Assign) -> Iterator[Finding]:
            yield Finding(assign.node, ast.unparse(assign.node))

    class Chosen(Binding):
        code = "DT394"

    Chosen.targets = None if targets is None else frozenset(targets)
    Chosen.values = None if values is None else frozenset(values)
    rules = (Chosen, Binding) if among_others else (Chosen,)
    assert told(*rules, text=BINDING)["DT394"] == heard


class Naming(Rule):
    code, name = "DT395", "naming"

    def on_reference(self, reference: Reference) -> Iterator[Finding]:
        yield Finding(reference.node, reference.name)


class NamingSome(Naming):
    code = "DT396"
    references = frozenset({"torch.nn.functional.softmax"})


def test_a_rule_hears_of_the_names_that_it_asks_for() -> None:
    assert told(NamingSome, Naming) == {
        "DT395": ["torch", "torch.zeros", "torch.nn.functional.softmax"],
        "DT396": ["torch.nn.functional.softmax"],
    }
    assert told(NamingSome) == {"DT396": ["torch.nn.functional.softmax"]}


class Thrown(Rule):
    code, name = "DT397", "thrown"

    def on_discard(self, discard: Discard) -> Iterator[Finding]:
        yield Finding(discard.node, ast.unparse(discard.call.node))


def test_what_is_thrown_away_comes_with_its_call_though_nobody_hears_of_that() -> None:
    text = "def f(x):\n    g(x.half())\n    return x\n\nf(1).cpu()\nx + 1\n'text'\n"
    assert told(Thrown, text=text) == {"DT397": ["g(x.half())", "f(1).cpu()"]}


def test_a_rule_is_told_of_what_is_thrown_away_by_the_calls_that_it_asks_for() -> None:
    class Cpu(Thrown):
        calls = frozenset({"cpu"})

    text = "import torch\n\nx = torch.ones(2)\nx.cpu()\nx.half()\ny = x.cpu()\n"
    assert told(Cpu, text=text) == {"DT397": ["x.cpu()"]}
    assert told(Thrown, text=text) == {"DT397": ["x.cpu()", "x.half()"]}


def test_nobody_is_told_of_the_question_for_none() -> None:
    class Compared(Rule):
        code, name = "DT396", "compared"

        def on_operation(self, operation: Operation) -> Iterator[Finding]:
            yield Finding(operation.node, ast.unparse(operation.node))

    text = "def f(x, y):\n    return x is None or y is not None or x == None or x is y\n"
    assert told(Compared, text=text) == {"DT396": ["x == None", "x is y"]}


def test_a_handler_may_be_of_use_only_where_a_word_stands() -> None:
    class Where(Every):
        hears_where: ClassVar = {"on_call": ("half",)}

    assert told(Where, text="import torch\nx.half()\n") == {"DT391": ["x.half()"]}
    assert told(Where, text="import torch\nx.float()\n") == {"DT391": []}


OPERATED = """\
import torch

def f(a, n):
    a + n
    torch.zeros(3) * a
    -torch.ones(2)
"""


@pytest.mark.parametrize(
    "of_known, heard",
    [(False, ["a + n", "torch.zeros(3) * a", "-torch.ones(2)"]), (True, ["torch.zeros(3) * a", "-torch.ones(2)"])],
)
def test_a_rule_may_hear_only_of_operators_on_known_dtypes(of_known: bool, heard: list[str]) -> None:
    class Operated(Rule):
        code, name = "DT398", "operated"

        def on_operation(self, operation: Operation) -> Iterator[Finding]:
            yield Finding(operation.node, ast.unparse(operation.node))

    Operated.of_known = of_known
    assert told(Operated, text=OPERATED) == {"DT398": heard}


def test_of_some_operators_it_hears_even_so() -> None:
    class Turned(Rule):
        code, name = "DT390", "turned"
        of_known, of_any = True, frozenset({ast.Invert})

        def on_operation(self, operation: Operation) -> Iterator[Finding]:
            yield Finding(operation.node, ast.unparse(operation.node))

    text = "import torch\n\ndef f(a, n):\n    a + n\n    ~a\n    -a\n"
    assert told(Turned, text=text) == {"DT390": ["~a"]}


def test_what_is_found_out_about_calls_is_kept_for_rules_that_were_expected() -> None:
    one, other = hearing("half"), hearing("softmax")
    expect([one, other])
    told(one)
    known = audience._latest[Call]
    assert known
    told(other)
    assert audience._latest[Call] is known
    told(hearing("zeros"))
    assert audience._latest[Call] is not known
