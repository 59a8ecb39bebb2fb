"""What is shipped: the wheel, the metadata, and the versions that development uses."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from importlib import import_module
from importlib.metadata import entry_points, requires, version
from importlib.util import find_spec
from pathlib import Path

import pytest

import dtlint
from dtlint.rule import ENTRY_POINT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def name_of(requirement: str) -> str:
    """The distribution that a requirement names, normalized (PEP 503)."""
    return re.sub(r"[-_.]+", "-", re.split(r"[\s\[<>=!~;]", requirement, maxsplit=1)[0]).lower()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    if not find_spec("hatchling"):
        pytest.skip("hatchling, the build backend, is not installed")
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    (file,) = folder.glob("*.whl")
    return zipfile.ZipFile(file)


def test_the_wheel_holds_both_packages_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    top = {name.partition("/")[0] for name in wheel.namelist()}
    assert top == {"dtlint", "dtlint_rules", f"dtlint-{dtlint.__version__}.dist-info"}


@pytest.mark.parametrize("name", ["dtlint/py.typed", "dtlint_rules/py.typed", "dtlint/cli/__init__.py"])
def test_the_wheel_holds(wheel: zipfile.ZipFile, name: str) -> None:
    assert name in wheel.namelist()


def test_the_wheel_holds_every_module_and_every_table(wheel: zipfile.ZipFile) -> None:
    shipped = set(wheel.namelist())
    for package, folder in (("dtlint", ROOT / "dtlint"), ("dtlint_rules", ROOT / "rules" / "dtlint_rules")):
        for file in folder.rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                assert f"{package}/{file.relative_to(folder).as_posix()}" in shipped


def test_the_wheel_registers_the_command_and_the_catalogue(wheel: zipfile.ZipFile) -> None:
    text = wheel.read(f"dtlint-{dtlint.__version__}.dist-info/entry_points.txt").decode()
    assert "[console_scripts]\ndtlint = dtlint.cli:main" in text
    assert "[dtlint.rules]\ncatalogue = dtlint_rules" in text


def test_the_installed_version_is_the_one_that_the_package_states() -> None:
    assert version("dtlint") == dtlint.__version__


def test_the_catalogue_is_found_the_way_a_third_party_is() -> None:
    assert "dtlint_rules" in {entry.value for entry in entry_points(group=ENTRY_POINT)}


def test_the_plugin_is_where_pytest_looks_for_it() -> None:
    plugin = import_module(PROJECT["project"]["entry-points"]["pytest11"]["dtlint"])
    assert plugin.pytest_addoption
    assert "Framework :: Pytest" in PROJECT["project"]["classifiers"]


def test_the_base_install_is_small() -> None:
    base = {name_of(requirement) for requirement in requires("dtlint") or () if "extra ==" not in requirement}
    assert base == {"click", "libcst", "pathspec", "pyyaml", "rich", "tomli"}


def test_the_oldest_python_is_the_same_everywhere() -> None:
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert PROJECT["tool"]["mypy"]["python_version"] == oldest
    assert PROJECT["tool"]["ruff"]["target-version"] == f"py{oldest.replace('.', '')}"


CONSTRAINTS = [
    line for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if not line.startswith("#")
]


def test_every_direct_dependency_is_pinned() -> None:
    pinned = {name_of(line) for line in CONSTRAINTS}
    extras = PROJECT["project"]["optional-dependencies"]
    wanted = [*PROJECT["project"]["dependencies"], *extras["trace"], *extras["test"], *extras["dev"]]
    assert {name_of(requirement) for requirement in wanted} - {"dtlint"} <= pinned


@pytest.mark.parametrize("line", CONSTRAINTS)
def test_a_constraint_is_one_exact_public_version(line: str) -> None:
    """No local versions, no paths, no addresses: they would only hold on one machine."""
    assert re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9A-Za-z.]*(; python_version (<|>=) \"3\.\d+\")?", line)


def test_torch_is_the_release_that_the_project_is_verified_with() -> None:
    assert "torch==2.13.0" in CONSTRAINTS
