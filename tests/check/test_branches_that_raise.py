"""A branch of another module that only raises is not read for the sake of a call, unless it may leave something behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint import discover
from dtlint.check.run import run
from dtlint.config import Configuration

if TYPE_CHECKING:
    from pathlib import Path

RULES = {code: rule for code, rule in discover().items() if rule.asks()}


def found(folder: Path, **files: str) -> list[tuple[str, str]]:
    """The file and the code of each finding."""
    for name, text in files.items():
        (folder / f"{name}.py").write_text("import torch\n" + text, encoding="utf-8")
    outcome = run(sorted(folder.glob("*.py")), Configuration(isolated=True).settings_for, RULES)
    assert outcome.errors == []
    return [(one.location.path.rpartition("/")[2], one.code) for one in outcome.diagnostics if not one.conditional]


CHECK = """
def checked(x, n):
    if n > 3:
        shown = x @ torch.zeros(3, 3, dtype=torch.half)
        raise ValueError(f"{n} is too many: {shown}")
    return x
"""
USE = """
from lib import checked


def use(n: int):
    return checked(torch.zeros(3, 3, dtype=torch.float32), n)
"""


def test_a_call_is_not_blamed_for_what_its_error_is_made_of(tmp_path: Path) -> None:
    assert found(tmp_path, lib=CHECK, main=USE) == []


def test_what_the_call_does_otherwise_is_followed(tmp_path: Path) -> None:
    multiplying = CHECK.replace("return x", "return x @ torch.zeros(3, 3, dtype=torch.half)")
    assert found(tmp_path, lib=multiplying, main=USE) == [("main.py", "DT301")]


def test_the_branch_is_read_in_its_own_module(tmp_path: Path) -> None:
    own = CHECK.replace("x @", "torch.zeros(3, 3, dtype=torch.float32) @")
    assert found(tmp_path, lib=own, main=USE) == [("lib.py", "DT301")]


SHRINK = """
def shrink(net, n):
    if n > 3:
        net.half()
        raise ValueError(n)
"""
UNCAUGHT = """
from lib import shrink


def use(n: int):
    net = torch.nn.Linear(3, 3)
    shrink(net, n)
    return net(torch.zeros(3, 3, dtype=torch.half))
"""
CAUGHT = """
from lib import shrink


def use(n: int):
    net = torch.nn.Linear(3, 3)
    try:
        shrink(net, n)
    except ValueError:
        pass
    return net(torch.zeros(3, 3, dtype=torch.half))
"""


def test_what_it_changes_is_known_where_the_error_is_caught(tmp_path: Path) -> None:
    assert found(tmp_path, lib=SHRINK, main=CAUGHT) == []
    assert found(tmp_path, lib=SHRINK, main=UNCAUGHT) == [("main.py", "DT302")]


def test_a_generator_may_have_given_something_before(tmp_path: Path) -> None:
    steps = """
def steps(n):
    if n > 3:
        yield torch.zeros(3, 3, dtype=torch.half)
        raise ValueError(n)
    yield torch.zeros(3, 3, dtype=torch.float32)
"""
    use = """
from lib import steps


def use(n: int):
    return next(steps(n)) @ torch.zeros(3, 3, dtype=torch.half)
"""
    assert found(tmp_path, lib=steps, main=use) == []
