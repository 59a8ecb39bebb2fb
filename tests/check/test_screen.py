"""The first look at a file: each word is found where it stands, whatever stands around it, and only there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from dtlint import RuntimeRule, discover
from dtlint.check import file
from dtlint.check.file import check_source
from dtlint.check.screen import Text, code_of, triggered
from dtlint.config import Settings
from dtlint.document import document
from dtlint.rule import Rule
from dtlint.source.file import Source

RULES = [rule for rule in discover().values() if not issubclass(rule, RuntimeRule)]
FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
# What stands under projects/ says something as a project only. To fixtures that one rule alone judges,
# tests/rules/conftest.py holds the screen.
PROGRAMS = {
    path.relative_to(FIXTURES).as_posix(): text
    for path in sorted(FIXTURES.glob("*/*.py"))
    if "\n# rules: all\n" in (text := path.read_text()) or not path.parent.name.startswith("dt")
} | {
    f"{rule.code} {number}": text
    for rule in RULES
    for number, text in enumerate((*document(rule).example, *document(rule).instead))
}


class Heard(Rule):
    code, name = "DT999", "heard"

    def on_facts(self, facts):  # type: ignore[no-untyped-def]
        return ()


def rule_with(*words: str, needs: tuple[tuple[str, ...], ...] = ()) -> type[Rule]:
    return type("Made", (Heard,), {"triggers": words, "needs": needs})


def is_awake(text: str, *words: str, needs: tuple[tuple[str, ...], ...] = ()) -> bool:
    rule = rule_with(*words, needs=needs)
    return triggered([rule], Text(text)) == [rule]


@pytest.mark.parametrize(
    "word, text",
    [
        (".half", "y = x.half()"),
        (".half", "y = (x\n     .half())"),
        (".half", "y = x. \\\n half()"),
        (".half", "y = (x.  # in half\n     half())"),
        (".half", "from torch import half"),
        (".half", "from torch import (\n    float,  # a comment (with\n    half as h,\n)"),
        (".half", "from torch import float, \\\n    half"),
        (".half", "from .import half"),
        (".half", "from torch import *\ny = half"),
        (".half", "y = myself.half()"),
        (".half", "y = self.x.half()"),
        ("self.half", "y = self.half()"),
        ("half", "f(half=True)"),
        ("half", "x.half"),
        ("half", "self.half"),
        ("half", "y = 'half'"),
        ("half", "model\f.half\x0b()"),
        ('"float16', "y = np.zeros(3, 'float16')"),
        ('"torch', 'y = x.type("torch.HalfTensor")'),
        ("*mask*", "attn_masks = 1"),
        ("*mask*", "x.masked_fill_(y, 1)"),
        ("256", "n = x * 256"),
        ("1e-8", "eps = 1e-8"),
        ("1e-8", "eps = 5.5E-08"),
        ("1e9", "big = -1e9"),
        ("1e9", "big = 2.5E+9"),
        ("1e12", "big = 1.e12"),
        ("1e-5", "eps = 1.e-5"),
        ("1e-8", "eps = .5e-8"),
        ("1e5", "big = 1_0e5"),
        ("1e-5", "1e-5"),
        ("]=", "x[0]  = 1"),
        ("**8", "n = 2 ** 8"),
        ('dtype":int', "kwargs = {'dtype': int}"),
        ("straße", "y = straße"),
    ],
)
def test_a_word_is_found_where_it_stands(word: str, text: str) -> None:
    assert is_awake(text, word)
    assert is_awake(f"import torch\n\n\ndef f(x):\n    {text}\n", word)
    assert not is_awake("import torch\n", word)


@pytest.mark.parametrize(
    "word, text",
    [
        (".half", "half = 1  # the other half."),
        (".half", "y = self.half()"),
        (".half", "y = x.half_of_it"),
        (".half", "from .models import *\ny = half"),
        ("self.half", "y = x.half()"),
        ("half", "y = x.halfway, behalf"),
        ('"float16', "y = torch.float16"),
        ("256", "y = 2560"),
        ("1e-8", "eps = 1e-80"),
        ("1e-8", "eps = 1e8"),
        ("1e8", "eps = 1e-8"),
        ("]=", "x[0]"),
    ],
)
def test_a_word_is_not_found_where_something_like_it_stands(word: str, text: str) -> None:
    assert not is_awake(text, word)


def test_one_word_of_each_group_has_to_stand_in_the_file() -> None:
    needs = (("torch",), (".half", "bfloat16"))
    assert is_awake("import torch\nx.data = x.half()", ".data", needs=needs)
    assert is_awake("import torch\nx.data = x.to(torch.bfloat16)", ".data", needs=needs)
    assert not is_awake("import torch\nx.data = x.float()", ".data", needs=needs)
    assert not is_awake("import numpy\nx.data = x.half()", ".data", needs=needs)
    assert not is_awake("import torch\ny = x.half()", ".data", needs=needs)
    assert is_awake("import torch\ny = x.half()", needs=needs)


def test_a_rule_without_words_judges_every_file_and_one_without_handlers_none() -> None:
    every = rule_with()
    assert triggered([every, Rule], Text("x = 1\n")) == [every]
    assert triggered([every, Rule], Text("")) == [every]


@pytest.mark.parametrize(
    "text, kept",
    [
        ('"""One.\nhalf\nTwo."""\nx = 1', '"""One.\nTwo."""\nx = 1'),
        ('class A:\n    def f(self):\n        """\n        half\n        """\n        y\n', None),
        ('"""One."""\nx = 1', '"""One."""\nx = 1'),
        ('y = 1; """a\nhalf\nb"""; z = 2\n', 'y = 1; """a\nb"""; z = 2\n'),
        ('x = """a\nhalf\nb"""\n', 'x = """a\nhalf\nb"""\n'),
        ('"""a\r\nhalf\r\nb"""\r\nx = 1\r\n', '"""a\r\nb"""\r\nx = 1\r\n'),
        ('"""a\rhalf\rb"""\rx = 1\r', '"""a\rhalf\rb"""\rx = 1\r'),
        ('"""a\x0c\nhalf\nb"""\nx = 1', '"""a\x0c\nb"""\nx = 1'),
    ],
)
def test_what_stands_inside_a_docstring_is_no_code(text: str, kept: str | None) -> None:
    expected = text.replace("        half\n", "") if kept is None else kept
    assert code_of(text, ast.parse(text)) == expected


def test_code_beside_docstrings_is_never_lost() -> None:
    for text in PROGRAMS.values():
        try:
            tree = ast.parse(text)
        except SyntaxError:  # a fixture of what cannot be read
            continue
        left = ast.parse(code_of(text, tree))
        for node in (*ast.walk(tree), *ast.walk(left)):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                node.value.value = None
        assert ast.dump(left) == ast.dump(tree)


def test_there_are_programs() -> None:
    assert len(PROGRAMS) > 2 * len(RULES)


@pytest.mark.parametrize("name", PROGRAMS)
def test_without_the_screen_the_same_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source.from_bytes(PROGRAMS[name].encode(), "program.py")
    screened = check_source(source, RULES, Settings())
    monkeypatch.setattr(file, "triggered", lambda rules, text: [rule for rule in rules if rule.asks()])
    assert check_source(source, RULES, Settings()).diagnostics == screened.diagnostics
