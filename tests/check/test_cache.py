"""Results found again, and what a cache must never do: fail, or give a wrong result."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dtlint.cache import LIFETIME
from dtlint.check import cache as module
from dtlint.check import file as check_file
from dtlint.check.cache import Cache, Known, decode, encode
from dtlint.check.job import Mode
from dtlint.check.run import Outcome, run
from dtlint.config import Configuration, Selection, Settings
from dtlint.diagnostic import Applicability, Diagnostic, Edit, Fix, Location, Note, Severity, Span
from dtlint.infer.domain.values import Tensor
from dtlint.rule import Finding, Rule
from dtlint_rules.dt801_unused_suppression import UnusedSuppression
from dtlint_rules.dt802_unreadable_file import UnreadableFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dtlint.infer.facts import ModuleFacts
    from dtlint.source.file import Source

RULES: dict[str, type[Rule]] = {rule.code: rule for rule in (UnusedSuppression, UnreadableFile)}

FULL = Diagnostic(
    "DT101",
    "model-half",
    Severity.INFO,
    "something",
    Location("a.ipynb", Span(1, 2, 3, 4), 5, 60),
    "do it",
    (Note(Location("b.py", Span(1, 0, 1, 1)), "here"),),
    Fix("mend", (Edit(Span(1, 2, 1, 2), "é\n"),), Applicability.UNSAFE, ("amp",)),
    ((1, "x"), (2, "y")),
    7,
)


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.py").write_text("x = 1  # noqa: DT802\n")


def check(mode: Mode | None = None, **options: object) -> Outcome:
    configuration = Configuration(isolated=True, **options)  # type: ignore[arg-type]
    return run([Path("a.py")], configuration.settings_for, RULES, mode=mode or Mode(), cache=Cache(Path.cwd(), RULES))


def forbid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_file, "check_source", lambda *_: pytest.fail("the file was checked again"))


def entries() -> list[Path]:
    return [path for path in Path(".dtlint_cache").rglob("*") if path.is_file() and len(path.parent.name) == 2]


def test_diagnostics_survive_json() -> None:
    plain = replace(FULL, notes=(), fix=None, lines=(), noqa_line=None)
    assert decode(encode([FULL, plain])) == [FULL, plain]


def test_a_second_run_checks_nothing_and_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    first = check()
    forbid(monkeypatch)
    assert check().diagnostics == first.diagnostics != []


def test_what_the_result_depends_on_is_in_the_key(tmp_path: Path) -> None:
    cache, settings = Cache(tmp_path, RULES), Settings(root=tmp_path)
    keys = {
        cache.key("x", "a.py", settings, ("DT801",)),
        cache.key("y", "a.py", settings, ("DT801",)),
        cache.key("x", "b.py", settings, ("DT801",)),
        cache.key("x", "a.py", settings, ("DT802",)),
        cache.key("x", "a.py", replace(settings, target_torch=(2, 4)), ("DT801",)),
    }
    assert len(keys) == 5
    assert cache.key("x", "a.py", Settings(root=tmp_path), ("DT801",)) in keys


def test_another_selection_is_another_result() -> None:
    assert len(check().diagnostics) == 1
    assert check(selection=Selection(ignore=("DT801",))).diagnostics == []
    assert len(entries()) == 2


def test_a_changed_rule_is_another_rule(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "own_rules"
    package.mkdir()
    (package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    import own_rules  # type: ignore[import-not-found]

    rule = type("Own", (Rule,), {"__module__": own_rules.__name__, "code": "DT199"})

    def key() -> str:
        return Cache(tmp_path, {"DT199": rule}).key("x", "a.py", Settings(root=tmp_path), ("DT199",))

    first = key()
    assert key() == first
    (package / "__init__.py").write_text("# changed\n")
    assert key() != first


def test_fixing_does_not_stop_at_a_known_result(monkeypatch: pytest.MonkeyPatch) -> None:
    check()
    assert check(Mode(fix=Applicability.SAFE)).fixed == 1
    assert check().diagnostics == []
    forbid(monkeypatch)
    assert check(Mode(fix=Applicability.SAFE)).diagnostics == []


@pytest.mark.parametrize("content", ["", "{", "[{}]", "[1]", "{}", '{"a": 1}', "null", "[[[[", "\x00"])
def test_a_broken_entry_is_done_without(content: str) -> None:
    first = check()
    (entry,) = entries()
    entry.write_text(content)
    assert check().diagnostics == first.diagnostics


def test_a_cache_that_cannot_be_written_is_done_without() -> None:
    Path(".dtlint_cache").write_text("in the way")
    assert len(check().diagnostics) == 1
    assert len(check().diagnostics) == 1


def test_git_and_backups_leave_it_alone() -> None:
    check()
    assert Path(".dtlint_cache/.gitignore").read_text().endswith("*\n")
    assert Path(".dtlint_cache/CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")


def test_what_is_old_or_too_much_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    check()
    (entry,) = entries()
    old = time.time() - LIFETIME - 60
    os.utime(entry, (old, old))
    cache = Cache(Path.cwd(), RULES)
    cache.prune()
    assert entry.exists(), "pruned a moment ago"
    os.utime(".dtlint_cache/pruned", (old, old))
    cache.prune()
    assert not entry.exists()

    monkeypatch.setattr(module, "CAPACITY", 2)
    cache = Cache(Path.cwd(), RULES)
    for name in "abc":
        cache.put(name * 40, Known([], []))
    os.utime(".dtlint_cache/pruned", (old, old))
    cache.prune()
    assert len(entries()) == 2


def test_a_file_that_a_rule_crashed_on_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object) -> None:
        raise KeyError("mistake")

    monkeypatch.setattr(check_file, "check_source", crash)
    assert check().errors
    assert entries() == []


class Doubles(Rule):
    """Tells of each call whose result is float64."""

    code, name = "DT391", "doubles"
    triggers = ("table",)

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        for call in facts.calls():
            if isinstance(call.result, Tensor) and call.result.dtypes == {"float64"}:
                yield Finding(call.node, "float64")


def found_in_user(
    monkeypatch: pytest.MonkeyPatch, names: Sequence[str] = ("maker", "other", "user")
) -> tuple[list[str], list[str]]:
    """The codes that are found in `user.py`, and the files that were checked anew."""
    files, anew = [Path(f"{name}.py") for name in names], list[str]()
    before = check_file.check_source

    def counted(source: Source, *others: Any) -> Any:
        anew.append(source.path)
        return before(source, *others)

    rules = {Doubles.code: Doubles}
    configuration = Configuration(isolated=True, selection=Selection(select=("DT391",)))
    with monkeypatch.context() as patch:
        patch.setattr(check_file, "check_source", counted)
        outcome = run(files, configuration.settings_for, rules, cache=Cache(Path.cwd(), rules))
    assert outcome.errors == []
    return [one.code for one in outcome.diagnostics if one.location.path == "user.py"], anew


def test_a_result_holds_as_long_as_what_it_rests_on(monkeypatch: pytest.MonkeyPatch) -> None:
    made = "import torch\n\n\ndef table(n):\n    return torch.zeros(n{})\n"
    Path("maker.py").write_text(made.format(", dtype=torch.float64"))
    Path("other.py").write_text("import torch\n\ntable = 1\n")
    Path("user.py").write_text("from maker import table\n\n\ndef use(x):\n    return table(3) + x\n")
    assert found_in_user(monkeypatch) == (["DT391"], ["maker.py", "other.py", "user.py"])
    assert found_in_user(monkeypatch) == (["DT391"], [])
    Path("other.py").write_text("import torch\n\ntable = 2\n")
    assert found_in_user(monkeypatch) == (["DT391"], ["other.py"])
    Path("maker.py").write_text(made.format(""))
    assert found_in_user(monkeypatch) == ([], ["maker.py", "user.py"])


def test_a_result_holds_as_long_as_what_the_signatures_rest_on_that_it_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `between.table` gives is found out for `earlier.py`, and is known when `user.py` is read."""
    made = "import torch\n\n\ndef table(n):\n    return torch.zeros(n{})\n"
    Path("maker.py").write_text(made.format(", dtype=torch.float64"))
    Path("between.py").write_text("import maker\n\n\ndef table(n):\n    return maker.table(n)\n")
    for name in ("earlier", "user"):
        Path(f"{name}.py").write_text("from between import table\n\n\ndef use(x):\n    return table(3) + x\n")
    names = "earlier", "maker", "user"
    assert found_in_user(monkeypatch, names) == (["DT391"], ["earlier.py", "maker.py", "user.py"])
    assert found_in_user(monkeypatch, names) == (["DT391"], [])
    Path("maker.py").write_text(made.format(""))
    assert found_in_user(monkeypatch, names) == ([], ["earlier.py", "maker.py", "user.py"])
