"""Settings: where they come from, what they select, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtlint.config import ConfigError, Configuration, Selection, Settings
from dtlint.rule import Rule, RuntimeRule
from dtlint.source.patterns import PatternError


def rule(
    code: str, name: str, *, default: bool = True, since: tuple[int, int] = (0, 0), base: type[Rule] = Rule
) -> type[Rule]:
    return type(code, (base,), {"code": code, "name": name, "default": default, "since": since})


RULES = {
    made.code: made
    for made in (
        rule("DT101", "model-half"),
        rule("DT102", "type-inplace"),
        rule("DT103", "chatty", default=False),
        rule("DT201", "backward-in-autocast"),
        rule("DT501", "deprecated-amp-api", since=(2, 4)),
        rule("DT802", "unreadable-file"),
        rule("DT901", "overflow", base=RuntimeRule),
    )
}


def codes(settings: Settings, path: str | None = None) -> list[str]:
    return [rule.code for rule in settings.enabled(RULES, settings.root / path if path else None)]


def selected(*layers: Selection) -> list[str]:
    return codes(Settings(selections=layers))


def write(directory: Path, text: str, name: str = "dtlint.toml") -> Settings:
    (directory / name).write_text(text)
    return Settings.load(directory / name)


def test_the_default_is_every_static_rule_that_is_on() -> None:
    assert codes(Settings()) == ["DT101", "DT102", "DT201", "DT501", "DT802"]


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(select=("DT1",)), ["DT101", "DT102", "DT103", "DT802"]),
        (Selection(select=("model-half",)), ["DT101", "DT802"]),
        (Selection(select=("ALL",)), ["DT101", "DT102", "DT103", "DT201", "DT501", "DT802"]),
        (Selection(select=("ALL",), ignore=("DT8", "DT1")), ["DT201", "DT501"]),
        (Selection(select=("DT101",), ignore=("DT1",)), ["DT101", "DT802"]),
        (Selection(select=("DT1",), ignore=("DT101", "chatty")), ["DT102", "DT802"]),
        (Selection(select=("DT101",), ignore=("DT101", "DT802")), []),
        (Selection(extend_select=("DT103",)), ["DT101", "DT102", "DT103", "DT201", "DT501", "DT802"]),
        (Selection(select=()), ["DT802"]),
    ],
)
def test_the_longest_selector_decides(selection: Selection, expected: list[str]) -> None:
    assert selected(selection) == expected


def test_the_command_line_comes_after_the_file() -> None:
    file = Selection(select=("DT101", "DT201"), ignore=("DT102",))
    assert selected(file, Selection(ignore=("DT1",))) == ["DT201", "DT802"]
    assert selected(file, Selection(select=("DT102",))) == ["DT102", "DT802"]
    assert selected(file, Selection(extend_select=("DT102",))) == ["DT101", "DT102", "DT201", "DT802"]


def test_a_newer_target_is_not_told_of_older_torch() -> None:
    assert Settings().concerned((2, 5)) and Settings(target_torch=(2, 4)).concerned((2, 5))
    assert not Settings(target_torch=(2, 5)).concerned((2, 5))
    assert not Settings().concerned((2, 4)) and Settings(target_torch=(2, 3)).concerned((2, 4))
    assert Settings(target_torch=(9, 9)).concerned(None)


def test_an_older_target_does_not_get_newer_advice() -> None:
    assert "DT501" in codes(Settings(target_torch=(2, 4)))
    assert "DT501" not in codes(Settings(target_torch=(2, 3)))


def test_a_file_sets_everything(tmp_path: Path) -> None:
    settings = write(
        tmp_path,
        """
        select = ["DT1", "DT2"]
        ignore = ["type-inplace"]
        exclude = ["old/"]
        extend-exclude = ["*_pb2.py"]
        force-exclude = true
        target-torch = "2.10"
        [per-file-ignores]
        "tests/**" = ["DT101"]
        "gen.py" = ["ALL"]
        """,
    )
    assert codes(settings) == ["DT101", "DT103", "DT201", "DT802"]
    assert codes(settings, "tests/a/b.py") == ["DT103", "DT201", "DT802"]
    assert codes(settings, "deep/gen.py") == []
    assert codes(settings, "src/a.py") == codes(settings)
    assert (settings.exclude, settings.extend_exclude) == (("old/",), ("*_pb2.py",))
    assert settings.force_exclude and settings.target_torch == (2, 10) and settings.root == tmp_path


def test_a_negated_pattern_ignores_everywhere_else(tmp_path: Path) -> None:
    settings = write(tmp_path, "[per-file-ignores]\n'!src/**' = ['DT1']\n")
    assert codes(settings, "src/a.py") == ["DT101", "DT102", "DT201", "DT501", "DT802"]
    assert codes(settings, "tests/a.py") == ["DT201", "DT501", "DT802"]


def test_a_malformed_pattern_is_refused_where_it_is_asked(tmp_path: Path) -> None:
    settings = write(tmp_path, "[per-file-ignores]\n'build\\' = ['DT1']\n")
    with pytest.raises(PatternError, match=r"dtlint\.toml: per-file-ignores has 'build"):
        codes(settings, "a.py")


def test_the_nearest_file_wins_and_dtlint_toml_wins_beside_it(tmp_path: Path) -> None:
    inner = tmp_path / "pkg" / "sub"
    inner.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[tool.dtlint]\nselect = ["DT1"]\n')
    (inner / "pyproject.toml").write_text('[project]\nname = "dtlint-user"\n')
    assert codes(Settings.discover(inner / "a.py")) == ["DT101", "DT102", "DT103", "DT802"]
    (tmp_path / "dtlint.toml").write_text('select = ["DT2"]\n')
    assert codes(Settings.discover(inner)) == ["DT201", "DT802"]
    (inner / "pyproject.toml").write_text('[tool]\ndtlint.select = ["DT5"]\n')
    assert codes(Settings.discover(inner / "a.py")) == ["DT501", "DT802"]


def test_isolated_and_config_take_the_place_of_the_search(tmp_path: Path) -> None:
    (tmp_path / "dtlint.toml").write_text('select = ["DT1"]\n')
    other = tmp_path / "other.toml"
    other.write_text('select = ["DT2"]\n')
    assert len(codes(Configuration(isolated=True).settings_for(tmp_path))) == 5
    assert codes(Configuration(other).settings_for(tmp_path)) == ["DT201", "DT802"]
    assert Configuration(other, target_torch=(2, 1), force_exclude=True).settings_for(tmp_path).target_torch == (2, 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("slect = []", "no setting 'slect'; did you mean 'select'?"),
        ("select = 'DT1'", "select must be a list of strings"),
        ("ignore = [1]", "ignore must be a list of strings"),
        ("target-torch = 2.10", "target-torch must be a string"),
        ("target-torch = 'new'", "target-torch is 'new', which is no torch release"),
        ("force-exclude = 1", "force-exclude must be true or false"),
        ("per-file-ignores = []", "per-file-ignores must be a table"),
        ("per-file-ignores = {'a.py' = 'DT1'}", "per-file-ignores must have a list of codes for 'a.py', like"),
        ("select = [", "not valid TOML"),
        (
            "tool.dtlint.preview = true",
            "there is no setting 'tool'; here the settings stand alone, without [tool.dtlint]",
        ),
    ],
)
def test_a_wrong_setting_is_refused_by_name(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        write(tmp_path, text)
    assert words in str(caught.value) and "dtlint.toml" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("select = ['DT5001']", "select has 'DT5001', which names no rule; did you mean 'DT501'?"),
        ("ignore = ['model-hlaf']", "did you mean 'model-half'?"),
        ("extend-select = ['E501']", "extend-select has 'E501'"),
        ("[per-file-ignores]\n'a.py' = ['DT7']", "per-file-ignores.'a.py' has 'DT7'"),
        ("select = ['']", "names no rule"),
        ("select = ['DT101', 'DT901']", "select has 'DT901', which judges a trace; use `dtlint trace` for it"),
        ("extend-select = ['DT9']", "extend-select has 'DT9', which judges a trace"),
        ("ignore = ['DT901']", "ignore has 'DT901', which judges a trace; a comment on its line silences it"),
        ("per-file-ignores = {'a.py' = ['DT9']}", "per-file-ignores.'a.py' has 'DT9', which judges a trace"),
    ],
)
def test_a_code_that_does_not_exist_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        write(tmp_path, text).enabled(RULES)
    assert words in str(caught.value) and "dtlint.toml" in str(caught.value)


def test_a_file_that_was_named_is_read_though_it_does_not_speak_of_dtlint(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text("x = [\n")
    with pytest.raises(ConfigError, match="is not valid TOML"):
        Settings.load(file)
    assert Settings.discover(tmp_path).selections == (), "one that lies about is others' to judge"


def test_a_missing_configuration_file_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        Settings.load(tmp_path / "none.toml")


def test_preview_turns_the_opt_in_rules_on() -> None:
    assert codes(Settings(preview=True)) == ["DT101", "DT102", "DT103", "DT201", "DT501", "DT802"]
    assert codes(Settings(preview=True, selections=(Selection(select=("DT2",)),))) == ["DT201", "DT802"]


def test_a_baseline_lies_beside_the_configuration_that_names_it(tmp_path: Path) -> None:
    assert write(tmp_path, 'baseline = "known.json"').baseline == tmp_path / "known.json"
    with pytest.raises(ConfigError, match="baseline must be a path"):
        write(tmp_path, "baseline = 1")
