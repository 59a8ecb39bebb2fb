"""A run over files: each for itself, whatever happens to another."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dtlint.check import file as check_file
from dtlint.check.hygiene import UNREADABLE_FILE, UNUSED_SUPPRESSION
from dtlint.check.job import NOQA, Mode
from dtlint.check.run import FEW, Outcome, run
from dtlint.config import Configuration
from dtlint.diagnostic import Applicability
from dtlint.infer.facts import ModuleFacts
from dtlint.rule import Finding, Rule
from dtlint.source.file import Source
from dtlint_rules.dt801_unused_suppression import UnusedSuppression
from dtlint_rules.dt802_unreadable_file import UnreadableFile

RULES: dict[str, type[Rule]] = {rule.code: rule for rule in (UnusedSuppression, UnreadableFile)}
BAD = "x = 1  # noqa: DT802\n"
"""One finding of DT801."""


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(**files: str | bytes) -> list[Path]:
    for name, content in files.items():
        Path(f"{name}.py").write_bytes(content if isinstance(content, bytes) else content.encode())
    return [Path(f"{name}.py") for name in files]


def check(files: list[Path], **options: Any) -> Outcome:
    return run(files, Configuration(isolated=True).settings_for, RULES, **options)


def told(outcome: Outcome) -> list[tuple[str, str]]:
    return [(diagnostic.location.path, diagnostic.code) for diagnostic in outcome.diagnostics]


def test_the_names_of_the_hygiene_rules_are_those_of_the_catalogue() -> None:
    assert (UnusedSuppression.code, UnusedSuppression.name) == UNUSED_SUPPRESSION
    assert (UnreadableFile.code, UnreadableFile.name) == UNREADABLE_FILE


def test_what_is_found_comes_in_the_order_of_the_paths() -> None:
    outcome = check(write(b=BAD, a="x = (\n", c="x = 1\n"))
    assert told(outcome) == [("a.py", "DT802"), ("b.py", "DT801")]
    assert (outcome.checked, outcome.errors) == (3, [])


@pytest.mark.parametrize(
    ("content", "words", "line"),
    [
        (b"x = '\xff'\n", "0xff", 1),
        (b"x = 1\n\0\n", "null byte", 2),
        ("x = 1".encode("utf-16"), "UTF-16", 1),
        (b"x = 1\ny = (\n", "never closed", 2),
        (b"if x:\ny = 1\n", "indented block", 2),
        (b"x = '\xe6\x97\xa5' 1\n", "", 1),
        (b"(" * 300 + b")" * 300, "", 1),
        (b"-" * 200_000 + b"1\n", "nested too deeply", 1),
    ],
)
def test_a_file_that_is_no_python_is_a_diagnostic(content: bytes, words: str, line: int) -> None:
    outcome = check(write(a=content))
    (diagnostic,) = outcome.diagnostics
    assert diagnostic.code == "DT802" and words in diagnostic.message and outcome.errors == []
    assert diagnostic.location.span.line == line


@pytest.mark.parametrize("content", [b"", b"\n", b"\x0c\nx = 1\n", b"x = 1\r\ny = 2\rz = 3\n", b"\xef\xbb\xbfx = 1"])
def test_odd_but_valid_files_are_clean(content: bytes) -> None:
    assert told(check(write(a=content))) == []


def test_a_file_that_vanishes_or_is_a_directory_is_a_diagnostic() -> None:
    Path("d.py").mkdir()
    outcome = check([Path("gone.py"), Path("d.py"), *write(a=BAD)])
    assert told(outcome) == [("a.py", "DT801"), ("d.py", "DT802"), ("gone.py", "DT802")]


def test_fixes_are_written_and_keep_everything_else() -> None:
    content = "# coding: latin-1\r\nx = 'é'  # noqa: DT802\r\ny = 2".encode("latin-1")
    (path,) = write(a=content)
    path.chmod(0o750)
    link = Path("link.py")
    link.symlink_to("a.py")
    outcome = check([link], mode=Mode(fix=Applicability.SAFE))
    assert (outcome.fixed, outcome.diagnostics) == (1, [])
    assert path.read_bytes() == content.replace(b"  # noqa: DT802", b"")
    assert link.is_symlink() and path.stat().st_mode & 0o777 == 0o750
    assert {entry.name for entry in Path().iterdir()} == {"a.py", "link.py"}


def test_a_file_without_fixes_is_not_written() -> None:
    (path,) = write(a="x = 1\r\n")
    before = path.stat()
    check([path], mode=Mode(fix=Applicability.SAFE, suppress=NOQA))
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


def test_a_difference_is_shown_and_nothing_written() -> None:
    (path,) = write(a=f"import torch\n{BAD}")
    outcome = check([path], mode=Mode(fix=Applicability.SAFE, write=False))
    assert outcome.differences == [
        "--- a.py\n+++ a.py\n@@ -1,2 +1,2 @@\n import torch\n-x = 1  # noqa: DT802\n+x = 1\n"
    ]
    assert path.read_text() == f"import torch\n{BAD}"


def test_a_file_that_cannot_be_written_is_reported_as_it_lies_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("dtlint.check.write.replace_file", refuse)
    outcome = check(write(a=BAD), mode=Mode(fix=Applicability.SAFE))
    assert told(outcome) == [("a.py", "DT801")] and outcome.fixed == 0
    assert outcome.errors == ["a.py: could not be written: Permission denied"]


def test_a_file_that_changes_meanwhile_is_not_overwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    (path,) = write(a=BAD)
    before = check_file.diagnose

    def meddle(source: Source, *others: Any, **named: Any) -> Any:
        path.write_text("y = 2\n")
        return before(source, *others, **named)

    monkeypatch.setattr("dtlint.check.fix.diagnose", meddle)
    outcome = check([path], mode=Mode(fix=Applicability.SAFE))
    assert path.read_text() == "y = 2\n" and outcome.fixed == 0
    assert "a.py" in outcome.errors[0] and "changed" in outcome.errors[0]


def crash_on(name: str, monkeypatch: pytest.MonkeyPatch, how: Any) -> None:
    before = check_file.check_source

    def crash(source: Source, *others: Any) -> Any:
        if source.path == name:
            how()
        return before(source, *others)

    monkeypatch.setattr(check_file, "check_source", crash)


def test_a_crash_names_the_file_and_the_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise TypeError("no such\nthing")

    crash_on("b.py", monkeypatch, fail)
    outcome = check(write(a=BAD, b=BAD, c=BAD))
    assert told(outcome) == [("a.py", "DT801"), ("c.py", "DT801")]
    assert outcome.errors == ["b.py: internal error: TypeError: no such thing; please report it"]


class Crashes(Rule):
    code, name = "DT390", "crashes"

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        raise KeyError("boom")


class CannotBegin(Rule):
    code, name = "DT391", "cannot-begin"

    def __init__(self) -> None:
        raise ValueError("boom\nand bang")

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        yield from ()


class FindsCalls(Rule):
    code, name = "DT392", "finds-calls"

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for call in facts.calls():
            yield Finding(call.node, "a call")


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        (Crashes, "internal error: DT390 crashes crashed on a.py: KeyError: 'boom'; please report it"),
        (
            CannotBegin,
            "internal error: DT391 cannot-begin crashed on a.py: ValueError: boom and bang; please report it",
        ),
    ],
)
def test_a_rule_that_crashes_is_named_and_the_others_go_on(rule: type[Rule], line: str) -> None:
    rules = {each.code: each for each in (rule, FindsCalls)}
    outcome = run(write(a="f()\n"), Configuration(isolated=True).settings_for, rules)
    assert (told(outcome), outcome.errors) == ([("a.py", "DT392")], [line])


@pytest.mark.parametrize("rule", [Crashes, CannotBegin])
@pytest.mark.parametrize("mode", [Mode(fix=Applicability.SAFE), Mode(fix=Applicability.SAFE, write=False)])
def test_what_a_crashed_rule_would_find_stays_suppressed(
    rule: type[Rule], mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = {each.code: each for each in (rule, UnusedSuppression)}
    monkeypatch.setattr("dtlint.check.hygiene._known", lambda: frozenset({*rules, "DT999"}))
    text = f"f()  # noqa: {rule.code}\n"
    outcome = run(write(a=text), Configuration(isolated=True).settings_for, rules, mode=mode)
    assert told(outcome) == [] and len(outcome.errors) == 1
    assert (Path("a.py").read_text(), outcome.differences) == (text, [])


def test_a_file_in_which_a_rule_crashed_is_not_written() -> None:
    rules = {each.code: each for each in (Crashes, FindsCalls, UnusedSuppression)}
    text = "f()\nx = 1  # noqa: DT392\n"
    for mode in (Mode(fix=Applicability.SAFE), Mode(suppress=NOQA)):
        outcome = run(write(a=text), Configuration(isolated=True).settings_for, rules, mode=mode)
        assert Path("a.py").read_text() == text
        assert told(outcome) == [("a.py", "DT392"), ("a.py", "DT801")]
        assert (outcome.fixed, outcome.added) == (0, 0) and "DT390" in outcome.errors[0]


def many() -> list[Path]:
    return write(**{f"m{number:03}": BAD * (number % 3) for number in range(FEW + 12)})


def test_many_files_give_what_few_give() -> None:
    files = many()
    alone, together = check(files, workers=1), check(files, workers=2)
    assert told(alone) == told(together)
    assert alone.diagnostics == together.diagnostics
    assert (together.checked, together.errors) == (len(files), [])


@pytest.mark.skipif(sys.platform != "linux", reason="a patched function reaches a worker only by fork")
@pytest.mark.parametrize("dealt", ["all at once", "one share after the other"])
def test_a_worker_that_dies_costs_one_file(monkeypatch: pytest.MonkeyPatch, dealt: str) -> None:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, wait

    # threads of a pool that has broken may end late, and then other processes are spawned
    monkeypatch.setattr("dtlint.check.workers._context", lambda rules: multiprocessing.get_context("fork"))
    if dealt != "all at once":
        submit = ProcessPoolExecutor.submit

        def submitted(pool: ProcessPoolExecutor, *work: Any) -> Any:
            future = submit(pool, *work)
            wait([future])
            return future

        monkeypatch.setattr(ProcessPoolExecutor, "submit", submitted)
    crash_on("m007.py", monkeypatch, lambda: os._exit(3))
    files = many()
    outcome = check(files, workers=2)
    assert outcome.errors == ["m007.py: internal error: the process that checked it died; please report it"]
    assert [path for path, _ in told(outcome)] == sorted(
        f"m{number:03}.py" for number in range(len(files)) for _ in range(number % 3) if number != 7
    )


def test_workers_can_be_spawned(monkeypatch: pytest.MonkeyPatch) -> None:
    import multiprocessing

    monkeypatch.setattr("dtlint.check.workers._context", lambda rules: multiprocessing.get_context("spawn"))
    files = many()
    assert len(check(files, workers=1).diagnostics) == len(check(files, workers=2).diagnostics) == len(files)


def test_suppressions_are_added_where_a_comment_can_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    from dtlint.source.annotate import suppressed

    text = 'f(\n    1,\n)\ng("""\n""")\nx = 1 + \\\n    2  # why\ny = 1  # noqa: F401 because\nz = 1  \n'
    source = Source.from_bytes(text.encode(), "a.py")
    added = suppressed(source, {2: {"DT102", "DT101"}, 4: {"DT101"}, 6: {"DT101"}, 8: {"DT101"}, 9: {"DT101"}}, NOQA)
    assert added.text == (
        'f(\n    1,  # noqa: DT101, DT102\n)\ng("""\n""")  # noqa: DT101\nx = 1 + \\\n    2  # why  # noqa: DT101\n'
        "y = 1  # noqa: F401, DT101 because\nz = 1  # noqa: DT101\n"
    )
