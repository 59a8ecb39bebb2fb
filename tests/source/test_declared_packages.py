"""The releases of frameworks that a project declares."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtlint.source.declared_packages import Packages, Releases, releases_of


@pytest.mark.parametrize(
    ("specifier", "oldest", "below"),
    [
        (">=4.40,<5", (4, 40), (5, 0)),
        ("==1.9.5", (1, 9), (1, 10)),
        ("==4.*", (4, 0), (5, 0)),
        ("^0.7", (0, 7), (0, 8)),
        ("^4.1", (4, 1), (5, 0)),
        ("~=2.1", (2, 1), (3, 0)),
        ("~=2.1.3", (2, 1), (2, 2)),
        ("<5.0.1", None, (5, 1)),
        ("<=0.10", None, (0, 11)),
        (">=5", (5, 0), None),
        ("!=4.3", None, None),
        ("", None, None),
    ],
)
def test_a_specifier_has_two_ends(
    specifier: str, oldest: tuple[int, int] | None, below: tuple[int, int] | None
) -> None:
    assert releases_of(specifier) == Releases(oldest, below)


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("requirements.txt", "peft==0.7.0  # for now\ntorch\n", Releases((0, 7), (0, 8))),
        ("requirements-dev.txt", "-r requirements.txt\npeft[all]>=0.9,<1; python_version > '3.9'\n", Releases((0, 9), (1, 0))),
        ("requirements.txt", "# peft==0.7\nnot-peft==0.7\npeft-extra==0.7\n", None),
        ("requirements.txt", "peft\n", Releases()),
        ("requirements.txt", "peft==0.7\npeft==0.9\n", Releases((0, 7), (0, 10))),
        ("requirements.txt", "peft @ git+https://example.com/peft\n", Releases()),
        ("pyproject.toml", '[project]\ndependencies = ["torch", "peft>=0.12"]\n', Releases((0, 12), None)),
        ("pyproject.toml", '[tool.poetry.dependencies]\npeft = "^0.9"\n', Releases((0, 9), (0, 10))),
        ("setup.py", 'setup(install_requires=["peft<0.11"])\n', Releases(None, (0, 11))),
        ("environment.yml", "dependencies:\n  - pip:\n    - peft==0.9.0\n", Releases((0, 9), (0, 10))),
    ],
)  # fmt: skip
def test_a_declaration_is_found(tmp_path: Path, name: str, text: str, found: Releases | None) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "src").mkdir()
    assert dict(Packages().of(tmp_path / "src")).get("peft") == found


def test_a_repository_ends_the_search(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("peft==0.7\n")
    (tmp_path / "own" / ".git").mkdir(parents=True)
    assert Packages().of(tmp_path / "own") == ()


def test_a_release_is_before_or_behind_another_only_if_all_allowed_ones_are() -> None:
    assert Releases((0, 7), (0, 11)).all_before((0, 11))
    assert not Releases((0, 7), (0, 12)).all_before((0, 11))
    assert not Releases((0, 7), None).all_before((0, 11))
    assert Releases((5, 0), None).all_from((5, 0))
    assert not Releases(None, (6, 0)).all_from((5, 0))
