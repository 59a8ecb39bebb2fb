"""The documentation says what the program does: its generated parts and pictures are current, and it names every option."""

from __future__ import annotations

import json
import re
import shlex
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from pictures import PICTURES, draw
from readme import PART, made

from dtlint.cli import COMMANDS, main
from dtlint.config import KEYS
from dtlint.report import FORMATS

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {path.name: path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md"))}
EVERYTHING = "\n".join([README, *PAGES.values()])
PARTS = [(name, part) for name, text in PAGES.items() for part in PART.finditer(text)]


def pinned_torch() -> bool:
    """Is the torch here that one which the README's trace was made with?"""
    if not find_spec("torch"):
        return False
    return f"torch=={version('torch').partition('+')[0]}\n" in (ROOT / "constraints.txt").read_text(encoding="utf-8")


def measured(text: str) -> str:
    """The text without what differs from run to run and from machine to machine: times, rates, and bars around them."""
    text = re.sub(r"={5,}", "=====", text)
    return re.sub(r"\d+(\.\d+)?(?= ?(ms|s|min)\b)", "#", text)


@pytest.mark.parametrize("part", [part for _, part in PARTS], ids=[f"{page}: {part['what']}" for page, part in PARTS])
def test_generated_parts_are_current(part: re.Match[str]) -> None:
    if part["what"].startswith(("dtlint trace", "pytest")) and not pinned_torch():
        pytest.skip("needs the torch of constraints.txt")
    assert measured(part["body"]) == measured(made(part, DOCS)), "run `make docs`"


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_current(name: str) -> None:
    where, command, columns = PICTURES[name]
    if f"rich=={version('rich')}\n" not in (ROOT / "constraints.txt").read_text(encoding="utf-8"):
        pytest.skip("needs the rich of constraints.txt")
    if command.startswith("dtlint trace") and not pinned_torch():
        pytest.skip("needs the torch of constraints.txt")
    assert (DOCS / "images" / name).read_text(encoding="utf-8") == draw(where, command, columns), "run `make docs`"
    assert f"docs/images/{name}" in README


def test_the_readme_is_short() -> None:
    assert README.count("\n") <= 150


def test_the_two_commands_come_first() -> None:
    first = README.index("make demo")
    assert first < README.index("make test") < README.index("pip install")


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub and MkDocs make them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(("folder", "text"), [(ROOT, README), *((DOCS, text) for text in PAGES.values())])
def test_links_lead_somewhere(folder: Path, text: str) -> None:
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", prose):
        if link.startswith("http"):
            continue
        name, _, anchor = link.partition("#")
        target = folder / name
        assert target.is_file(), f"there is no {link}"
        assert folder == ROOT or DOCS in target.resolve().parents, f"{link} leads out of the site"
        if anchor:
            assert anchor in anchors(target.read_text(encoding="utf-8")), f"there is no heading {link}"


def test_every_page_is_in_the_index_and_on_the_site() -> None:
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for name in PAGES:
        assert f": {name}\n" in site, f"mkdocs.yml does not list {name}"
        assert name == "index.md" or f"({name})" in PAGES["index.md"], f"docs/index.md does not link to {name}"


@pytest.mark.parametrize("name", [*KEYS, *FORMATS, *(f"dtlint {command}" for command in COMMANDS)])
def test_it_names_every_setting_format_and_command(name: str) -> None:
    assert re.search(rf"`{re.escape(name)}\b", EVERYTHING), f"the documentation does not mention `{name}`"


def named(option: str) -> bool:
    """Does the documentation mention an option, in code or in a command?"""
    return re.search(rf"{re.escape(option)}(?![\w-])", EVERYTHING) is not None


@pytest.mark.parametrize("command", COMMANDS)
def test_it_names_every_option(command: str) -> None:
    loaded: click.Command = import_module(f"dtlint.cli.{command}").command
    options = [name for parameter in loaded.params for name in parameter.opts if name.startswith("--")]
    assert [name for name in options if not named(name)] == []


def shown_commands() -> list[str]:
    """The commands of dtlint in the code blocks of consoles and settings, without what follows behind a pipe."""
    blocks = re.findall(r"```(\w*)\n(.*?)```", EVERYTHING, re.DOTALL)
    text = "\n".join(block for language, block in blocks if language in ("console", "yaml", "bash"))
    lines = re.findall(r"^[-$ ]*(?:run: )?(dtlint [a-z]+[^\n]*)", text, re.MULTILINE)
    return sorted({re.split(r" [|>] ", line)[0] for line in lines if line.split()[1] in COMMANDS})


@pytest.mark.parametrize("shown", shown_commands())
def test_commands_that_are_shown_have_options_that_exist(shown: str) -> None:
    _, name, *arguments = shlex.split(shown, comments=True)
    command: click.Command = import_module(f"dtlint.cli.{name}").command
    command.make_parser(click.Context(command, **command.context_settings)).parse_args(arguments)


def test_its_snippets_are_valid() -> None:
    yaml = pytest.importorskip("yaml")
    blocks = re.findall(r"```yaml\n(.*?)```", EVERYTHING, re.DOTALL)
    assert len(blocks) >= 3
    for block in blocks:
        assert yaml.safe_load(block)


def test_its_task_for_an_editor_reads_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.py").write_text("x = 1  # noqa: DT999\n")
    (block,) = re.findall(r"```json\n(\{\n  \"version\": \"2.0.0\".*?)```", PAGES["editors.md"], re.DOTALL)
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
    (block,) = (
        block for block in re.findall(r"```yaml\n(.*?)```", PAGES["editors.md"], re.DOTALL) if "lint-command" in block
    )
    tool = yaml.safe_load(block)["tools"]["dtlint"]
    text = "x = 1  # noqa: DT999\n"
    commands = (tool["lint-command"], tool["format-command"])
    lint, mend = (shlex.split(command.replace("${INPUT}", "src/a b.py"))[1:] for command in commands)
    assert CliRunner().invoke(main, lint, input=text).stdout.startswith("src/a b.py:1:16: DT801 ")
    assert CliRunner().invoke(main, mend, input=text).stdout == "x = 1\n"


def test_its_example_of_a_configuration_is_accepted(tmp_path: Path) -> None:
    from dtlint.config import Settings
    from dtlint.rule import discover

    (block,) = re.findall(r"```toml\n(\[tool\.dtlint\].*?)```", PAGES["configuration.md"], re.DOTALL)
    (tmp_path / "pyproject.toml").write_text(block)
    (tmp_path / "src" / "kernels").mkdir(parents=True)
    (tmp_path / "src" / "kernels" / "attention.py").touch()
    settings = Settings.load(tmp_path / "pyproject.toml")
    assert settings.enabled(discover())
    for key in KEYS:
        assert re.search(rf"\n(# )?{key} = ", block) or f"\n[tool.dtlint.{key}]" in block


def test_it_invents_no_address() -> None:
    hosts = set(re.findall(r"https?://([^/\s)\"'`]+)", EVERYTHING))
    assert hosts <= {"example.com", "pre-commit.com", "no-color.org", "ui.perfetto.dev"}


def test_its_example_of_a_rule_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dtlint import Applicability
    from dtlint.check.fix import fix_source
    from dtlint.config import Settings
    from dtlint.document import document, required
    from dtlint.source.file import Source

    (block,) = re.findall(r'```python\n("""DT390.*?\n)```\n<!-- end -->', PAGES["add-a-rule.md"], re.DOTALL)
    (tmp_path / "dt390_double_cast.py").write_text(block)
    monkeypatch.syspath_prepend(tmp_path)
    from dt390_double_cast import DoubleCast  # type: ignore[import-not-found]

    text = document(DoubleCast)
    assert required(DoubleCast.fix) <= text.sections.keys()
    source = Source.from_bytes(text.example[0].encode(), "example.py")
    fixed = fix_source(source, [DoubleCast], Settings(), Applicability.UNSAFE)
    assert fixed.source.text == text.instead[0]
