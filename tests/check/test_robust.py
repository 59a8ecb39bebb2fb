"""Whatever is thrown at it, a check ends: no crash, no lost comment, no file that does not parse any more."""

from __future__ import annotations

import ast
import io
import json
import random
import signal
import tokenize
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dtlint import RuntimeRule, discover
from dtlint.check.file import Checked, check_source
from dtlint.check.fix import fix_source
from dtlint.cli import main
from dtlint.config import Settings
from dtlint.diagnostic import Applicability
from dtlint.infer.facts import ModuleFacts
from dtlint.rule import Finding, Rule
from dtlint.source.file import Source, UnreadableSource

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
# What stands under projects/ says something as a project only, and what one rule alone judges is too short to mutate.
PROGRAMS = [
    path
    for path in sorted(FIXTURES.glob("*/*.py"))
    if not path.parent.name.startswith("dt") or "\n# rules: all\n" in path.read_text(encoding="utf-8")
]


class Nosy(Rule):
    """Hears everything of every file, so that the whole of it is interpreted, and suspects every call."""

    code, name = "DT799", "nosy"

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for call in facts.calls():
            yield Finding(call.node, "a call")


RULES = [*(rule for rule in discover().values() if not issubclass(rule, RuntimeRule)), Nosy]

steady = settings(
    derandomize=True,
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def parses(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def comments(text: str) -> list[str]:
    found = tokenize.generate_tokens(io.StringIO(text).readline)
    return sorted(token.string for token in found if token.type == tokenize.COMMENT and "noqa" not in token.string)


def crashes(checked: Checked) -> list[str]:
    """What went wrong, but for the limit that dtlint tells of itself: how deep it follows depends on the Python."""
    return [crash for crash in checked.crashes if "nested deeper than dtlint can follow" not in crash]


def hold(data: bytes, path: str = "program.py") -> None:
    """Check and fix a file, and hold the result against what dtlint promises."""
    try:
        source = Source.from_bytes(data, path)
    except UnreadableSource:
        return
    checked = check_source(source, RULES, Settings())
    assert crashes(checked) == []
    fixed = fix_source(source, RULES, Settings(), Applicability.UNSAFE)
    assert crashes(fixed.checked) == []
    assert fixed.failed is None
    if fixed.applied:
        assert parses(fixed.source.text)
        assert comments(fixed.source.text) == comments(source.text)
        Source.from_bytes(fixed.source.encode(), path)
    else:
        assert fixed.source.encode() == data


@steady
@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    hold(data)


@steady
@given(st.text(alphabet="torch.nhalfx=()[]{}:,#\"'\\\n\r\t \x0c@é😀01", max_size=200))
@example("import torch\rx = torch.ones(2)\rx.half()\r")
@example("\ufeffimport torch")
@example("x = 1\\")
def test_any_text(text: str) -> None:
    hold(text.encode())


def mutated(text: str, seed: int) -> str:
    """The program with a few of its lines deleted, doubled, swapped, indented or cut."""
    dice = random.Random(seed)
    lines = text.splitlines(keepends=True)
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(lines))
        line = lines[at]
        lines[at] = dice.choice(
            ["", line * 2, lines[dice.randrange(len(lines))], "    " + line, line[: dice.randrange(len(line) + 1)]]
        )
    return dice.choice(["", "", "\n" * 3]) + "".join(lines).replace("\n", dice.choice(["\n", "\n", "\r\n"]))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_mutated_programs(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for seed in range(6):
        hold(mutated(text, seed).encode())


@pytest.mark.parametrize(
    "text",
    [
        "import torch\nx = " + "(" * 300 + "torch.ones(1)" + ")" * 300,
        "import torch\nx = " + "-" * 5000 + "1",
        "import torch\nx = torch.ones(1)" + ".clone()" * 3000 + ".half()\nx.half()",
        "import torch\n" + "".join(" " * depth + "if x:\n" for depth in range(90)) + " " * 90 + "y = x.half()",
        "import torch\nx = [" + "1.0, " * 10_000 + "]\ntorch.tensor(x).to(torch.int8)",
        "import torch\n" + "def f(x):\n    return f(x.half())\n" * 500,
        "import torch\ndef f():\n    return g()\ndef g():\n    return f()\nf().half()",
        "import torch\nclass A(A): pass\nclass B(C): pass\nclass C(B): pass\nA().half()",
        "print 'Python 2'\nimport torch\n",
        "import torch\nx = 10 ** 10 ** 10\ny = 'a' * 10 ** 10\nz = 1 << 10 ** 10",
        "import torch\n" + "for i in x:\n" * 1 + "    " + "for j in i: " * 0 + "pass",
        "match x:\n    case {'a': [1, *rest], **others} if torch: rest.half()\n",
        "import torch\nwith torch.autocast('cuda') as a, b as (c, *d): (yield a).half()",
        "import torch\nx: torch.Tensor\n(x).half()\nx[0].half\ndel x\nx.half()",
        "import torch\nasync def f():\n    async with torch.autocast('cuda'):\n        async for x in y: await x.half()",
        "import torch\ndef f(x):\n    return x.dtype == {} or x.dtype == f'' or x.dtype == 'float16'",
    ],
    ids=lambda text: text[:30].replace("\n", " "),
)
def test_unkind_programs(text: str) -> None:
    hold(text.encode())


LONG = {
    "strings joined by +": "s = " + " + ".join(f'"a{number}"' for number in range(700)) + "\nx.half()\n",
    "elif": "def f(k):\n    if k:\n        pass\n"
    + "".join(f"    elif k == {number}:\n        return {number}\n" for number in range(400))
    + "    x.half()\n",
    "methods on methods": "def f():\n    y" + ".a()" * 300 + "\n    x.half()\n",
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG.keys())
def test_what_python_can_parse_is_followed_however_long_it_is(text: str) -> None:
    source = Source.from_bytes(("import torch\nx = torch.randn(3)\n" + text).encode(), "long.py")
    checked = check_source(source, [discover()["DT104"], discover()["DT802"]], Settings())
    assert [found.code for found in checked.diagnostics] == ["DT104"]
    assert checked.crashes == []


def test_sequences_that_are_made_around_one_another_in_a_loop_are_followed() -> None:
    """One object stands for all of them, and so holds itself."""
    text = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, widths):
        super().__init__()
        block = nn.Identity()
        for width in widths:
            block = nn.Sequential(nn.Linear(width, width), block)
        self.net = block

    def forward(self, x):
        torch.ones(3).half()
        return self.net(x)
"""
    checked = check_source(Source.from_bytes(text.encode(), "net.py"), [discover()["DT104"]], Settings())
    assert [found.code for found in checked.diagnostics] == ["DT104"]
    assert checked.crashes == []


def test_a_finding_in_a_statement_too_deep_for_libcst_is_reported_without_a_fix() -> None:
    def check(depth: int, arguments: str) -> Checked:
        text = "import torch\nx = torch.randn(3)" + ".clone()" * depth + f".type({arguments}, inplace=True)\n"
        return check_source(Source.from_bytes(text.encode(), "deep.py"), [discover()["DT102"]], Settings())

    parenthesized = "(torch.float16)"
    assert [found.fix is not None for found in check(3, parenthesized).diagnostics] == [True]
    deep = check(600, parenthesized)  # the call of a method is two nodes, one inside the other
    assert [found.fix is not None for found in deep.diagnostics] == [False]
    assert deep.crashes == []
    plain = check(600, "torch.float16")  # ast alone says where the arguments stand
    assert [found.fix is not None for found in plain.diagnostics] == [True]


def test_what_is_too_deep_is_said_to_be_so_and_costs_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dtlint.check.file._DEEPEST", 1000)
    text = "import torch\nx = torch.randn(3)\nx.half()\n" + "y" + ".a()" * 1200 + "  # noqa: DT104\n"
    rules = [discover()[code] for code in ("DT104", "DT801", "DT802")]
    checked = check_source(Source.from_bytes(text.encode(), "deep.py"), rules, Settings())
    assert [found.code for found in checked.diagnostics] == ["DT104"]
    assert checked.crashes == [
        "deep.py: the code is nested deeper than dtlint can follow; what it found elsewhere is reported"
    ]


def test_long_nested_loops_take_bounded_time() -> None:
    body = "".join("    " * depth + f"for i{depth} in range(3):\n" for depth in range(15))
    hold(("import torch\n" + body + "    " * 15 + "x = torch.ones(i0).half()\n").encode())


def test_a_class_inside_a_method_that_it_inherits_is_read_once() -> None:
    text = """
import torch

class Module(torch.nn.Module):
    @classmethod
    def wrapping(cls, made):
        class Wrapper(Module):
            def __init__(self):
                super().__init__()
                self.inner = made()

            def forward(self, x):
                x = torch.randn(3)
                x.half()
                return self.inner(x)

        return Wrapper
"""
    checked = check_source(Source.from_bytes(text.encode(), "module.py"), [discover()["DT104"]], Settings())
    assert [found.location.span.line for found in checked.diagnostics] == [14]
    assert checked.crashes == []


def test_reading_a_file_is_broken_off_in_the_end_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dtlint.infer.interproc.file_reading.STEPS", 1000)
    body = "".join("    " * depth + f"for i{depth} in range(3):\n" for depth in range(15))
    body += "".join("    " * 15 + f"y{number} = x + {number}\n" for number in range(100))
    text = f"import torch\nx = torch.randn(3)\nx.half()\n{body}x.half()\n"
    checked = check_source(Source.from_bytes(text.encode(), "loops.py"), [discover()["DT104"]], Settings())
    assert [found.location.span.line for found in checked.diagnostics] == [3]
    assert checked.crashes == [
        "loops.py: reading the code takes too long; what dtlint found until it stopped is reported"
    ]


class Endless(Rule):
    """Never comes to an end."""

    code, name = "DT798", "endless"

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        while True:
            pass
        yield Finding(facts.tree.body[0], "never")


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="nothing can be stopped here")
def test_a_rule_that_does_not_end_is_stopped_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dtlint.check.patience.SECONDS", 0.2)
    source = Source.from_bytes(b"import torch\nx = torch.randn(3)\nx.half()\n", "endless.py")
    checked = check_source(source, [Endless, discover()["DT104"]], Settings())
    assert [found.code for found in checked.diagnostics] == ["DT104"]
    assert checked.crashes == [
        "internal error: DT798 endless crashed on endless.py: TooLong: it took too long; please report it"
    ]
    assert signal.getsignal(signal.SIGVTALRM) == signal.SIG_DFL


DOUBLING = {
    "tuples": ("a, b = (x, x), (x, x)", "if k:\n    a, b = (a, b), (b, a)\nelse:\n    a, b = (b, a), (a, b)"),
    "lists": ("a, b = [x], [x]", "if k:\n    a = [a, b]\nelse:\n    b = [b, a]"),
    "dicts": ("a, b = {}, {}", "if k:\n    a = {1: a, 2: b}\nelse:\n    b = {1: b, 2: a}"),
    "modules": (
        "a, b = nn.Linear(2, 2), nn.ReLU()",
        "if k:\n    a = nn.Sequential(a, b)\nelse:\n    b = nn.Sequential(b, a)",
    ),
}


@pytest.mark.parametrize(("begin", "double"), DOUBLING.values(), ids=DOUBLING.keys())
def test_values_that_double_line_by_line_do_not_grow_for_ever(begin: str, double: str) -> None:
    lines = ["import torch", "from torch import nn", "x = torch.randn(3)", begin, *[double] * 40, "x.half()"]
    source = Source.from_bytes("\n".join(lines).encode(), "doubling.py")
    checked = check_source(source, [discover()["DT104"]], Settings())
    assert [found.code for found in checked.diagnostics] == ["DT104"]
    assert checked.crashes == []


def test_functions_that_call_each_other_twice_are_read_once() -> None:
    lines = ["import torch", "x = torch.randn(3)"]
    lines += [f"def f{number}(x):\n    return f{number + 1}(x) + f{number + 1}(x.half())" for number in range(40)]
    lines += ["def f40(x):\n    return x * 2", "y = f0(x)", "x.half()"]
    checked = check_source(Source.from_bytes("\n".join(lines).encode(), "twice.py"), [discover()["DT104"]], Settings())
    assert [found.code for found in checked.diagnostics] == ["DT104"]


def test_the_last_expression_of_a_cell_is_displayed_not_discarded() -> None:
    cells = ["import torch\nx = torch.ones(2)\nx.half()", "x.half()\nx.half()"]
    notebook = {
        "cells": [
            {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": cell}
            for cell in cells
        ],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    source = Source.from_bytes(json.dumps(notebook).encode(), "cells.ipynb")
    checked = check_source(source, [discover()["DT104"]], Settings())
    assert [(found.location.cell, found.location.span.line) for found in checked.diagnostics] == [(2, 1)]


@pytest.mark.parametrize("beside", ["pkg.py", "pkg.ipynb"])
def test_a_file_beside_a_package_of_its_name_is_not_taken_for_it(tmp_path: Path, beside: str) -> None:
    code = "import numpy as np\nimport torch\nx = torch.rand(3) * torch.from_numpy(np.ones(3))\n"
    files = {
        "pkg/__init__.py": "table = {}\ndef register(cls):\n    table[cls] = cls\n    return cls\nfrom . import sub\n",
        "pkg/sub.py": f"import pkg\n{code}@pkg.register\nclass Net(torch.nn.Module): ...\n",
        "pkg.py": code,
    }
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": [code]}
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    if beside == "pkg.ipynb":
        files[beside] = json.dumps(notebook)
        del files["pkg.py"]
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    checked = CliRunner().invoke(main, ["check", "--no-cache", "--isolated", "--output-format", "json", str(tmp_path)])
    assert sorted(Path(found["filename"]).name for found in json.loads(checked.stdout)) == sorted([beside, "sub.py"])
    assert "internal error" not in checked.output
