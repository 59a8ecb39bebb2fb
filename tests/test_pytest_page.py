"""The examples of the page on pytest run, and it names what can be expected."""

from __future__ import annotations

import re
import textwrap
from importlib.util import find_spec
from pathlib import Path

import pytest

from dtlint.trace.expect import EXPECTED

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = (DOCS / "pytest.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)

BEFORE = """
import pytest, torch
from torch import nn

@pytest.fixture
def model():
    return nn.Linear(2, 2)

@pytest.fixture
def batch():
    return torch.ones(3, 2)

"""

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")


def test_its_examples_pass(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(BEFORE + textwrap.dedent("\n".join(EXAMPLES)))
    result = pytester.runpytest_subprocess("-p", "dtlint.pytest_plugin", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=len(EXAMPLES))


def test_it_names_every_argument() -> None:
    assert [name for name in EXPECTED if f"`{name}=" not in PAGE] == []
