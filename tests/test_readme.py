"""The README says what the program does: its generated parts are current, and it names every option there is."""

from __future__ import annotations

import json
import re
import shlex
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner
from readme import PART, generate

from dtlint.cli import COMMANDS, main
from dtlint.config import KEYS
from dtlint.report import FORMATS

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PARTS = {part["what"]: part["body"] for part in PART.finditer(README)}


def pinned_torch() -> bool:
    """Is the torch here that one which the README's trace was made with?"""
    if not find_spec("torch"):
        return False
    return f"torch=={version('torch').partition('+')[0]}\n" in (ROOT / "constraints.txt").read_text(encoding="utf-8")


def measured(text: str) -> str:
    """The text without what differs from run to run and from machine to machine: times and rates."""
    return re.sub(r"\d+(\.\d+)?(?= ?(ms|s|min)\b)", "#", text)


@pytest.mark.parametrize("what", PARTS)
def test_generated_parts_are_current(what: str) -> None:
    if what.startswith("dtlint trace") and not pinned_torch():
        pytest.skip("needs the torch of constraints.txt")
    assert measured(PARTS[what]) == measured(generate(what, ROOT)), "run `make docs`"


def test_it_shows_a_finding_a_trace_and_the_rules() -> None:
    assert "rules" in PARTS
    assert any(what.startswith("dtlint check ") for what in PARTS)
    assert any(what.startswith("dtlint trace ") for what in PARTS)


def test_the_two_commands_come_first() -> None:
    first = README.index("make demo")
    assert first < README.index("make test") < README.index("pip install")


@pytest.mark.parametrize("name", [*KEYS, *FORMATS, *(f"dtlint {command}" for command in COMMANDS)])
def test_it_names_every_setting_format_and_command(name: str) -> None:
    assert re.search(rf"`{re.escape(name)}\b", README), f"the README does not mention `{name}`"


def test_it_names_every_option_of_check() -> None:
    from dtlint.cli.check import command

    options = [name for parameter in command.params for name in parameter.opts if name.startswith("--")]
    assert [name for name in options if f"`{name}" not in README] == []


def test_its_snippets_are_valid() -> None:
    yaml = pytest.importorskip("yaml")
    blocks = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    assert len(blocks) >= 3
    for block in blocks:
        assert yaml.safe_load(block)


def test_its_task_for_an_editor_reads_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.py").write_text("x = 1  # noqa: DT999\n")
    (block,) = re.findall(r"```json\n(.*?)```", README, re.DOTALL)
    (task,) = json.loads(block)["tasks"]
    pattern = task["problemMatcher"]["pattern"]
    printed = CliRunner().invoke(main, task["command"].split()[1:]).output
    found = re.match(pattern["regexp"], printed, re.MULTILINE)
    assert found is not None
    told = {part: found[pattern[part]] for part in ("file", "line", "column", "code")}
    assert told == {"file": "a.py", "line": "1", "column": "16", "code": "DT801"}


def test_its_commands_for_an_editor_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    yaml = pytest.importorskip("yaml")
    monkeypatch.chdir(tmp_path)
    (block,) = (block for block in re.findall(r"```yaml\n(.*?)```", README, re.DOTALL) if "lint-command" in block)
    tool = yaml.safe_load(block)["tools"]["dtlint"]
    text = "x = 1  # noqa: DT999\n"
    commands = (tool["lint-command"], tool["format-command"])
    lint, mend = (shlex.split(command.replace("${INPUT}", "src/a b.py"))[1:] for command in commands)
    assert CliRunner().invoke(main, lint, input=text).stdout.startswith("src/a b.py:1:16: DT801 ")
    assert CliRunner().invoke(main, mend, input=text).stdout == "x = 1\n"


def test_its_example_of_a_configuration_is_accepted(tmp_path: Path) -> None:
    from dtlint.config import Settings
    from dtlint.rule import discover

    (block,) = re.findall(r"```toml\n(\[tool\.dtlint\].*?)```", README, re.DOTALL)
    (tmp_path / "pyproject.toml").write_text(block)
    (tmp_path / "src" / "kernels").mkdir(parents=True)
    (tmp_path / "src" / "kernels" / "attention.py").touch()
    settings = Settings.load(tmp_path / "pyproject.toml")
    assert settings.enabled(discover())
    for key in KEYS:
        assert re.search(rf"\n(# )?{key} = ", block) or f"\n[tool.dtlint.{key}]" in block


def test_it_invents_no_address() -> None:
    hosts = set(re.findall(r"https?://([^/\s)\"'`]+)", README))
    assert hosts <= {"example.com", "pre-commit.com", "no-color.org"}


def test_its_example_of_a_rule_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dtlint import Applicability
    from dtlint.check.fix import fix_source
    from dtlint.config import Settings
    from dtlint.document import document, required
    from dtlint.source.file import Source

    (block,) = re.findall(r'```python\n("""DT390.*?\n)```\n<!-- end -->', README, re.DOTALL)
    (tmp_path / "dt390_double_cast.py").write_text(block)
    monkeypatch.syspath_prepend(tmp_path)
    from dt390_double_cast import DoubleCast  # type: ignore[import-not-found]

    text = document(DoubleCast)
    assert required(DoubleCast.fix) <= text.sections.keys()
    source = Source.from_bytes(text.example[0].encode(), "example.py")
    fixed = fix_source(source, [DoubleCast], Settings(), Applicability.UNSAFE)
    assert fixed.source.text == text.instead[0]
