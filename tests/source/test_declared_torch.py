"""The oldest torch that a project declares: where it is written, and which of several declarations counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtlint.source.declared_torch import Declarations, Declared, oldest_allowed


def declared(directory: Path, **files: str) -> Declared | None:
    for name, text in files.items():
        (directory / name.replace("__", ".")).write_text(text)
    return Declarations().of(directory)


@pytest.mark.parametrize(
    ("specifier", "oldest"),
    [
        (">=2.1", (2, 1)),
        (">= 1.13.1, <3", (1, 13)),
        (">1.9,!=2.0.0", (1, 9)),
        ("==2.0.1+cu118", (2, 0)),
        ("==1.12.*", (1, 12)),
        ("~=2.2.0", (2, 2)),
        ("^2.3", (2, 3)),
        ("2.*", (2, 0)),
        (">=2.1,>=2.4", (2, 4)),
        ("^1.13 || ^2.0", (1, 13)),
        ("=1.12.1=py3.10_cuda11.3", (1, 12)),
        ("<2.0", (1, 0)),
        ("<3", None),
        ("!=2.5.0", None),
        ("*", None),
        ("", None),
        (">=2.0||*", None),
    ],
)
def test_a_specifier_allows_releases_from_one_on(specifier: str, oldest: tuple[int, int] | None) -> None:
    assert oldest_allowed(specifier) == oldest


PYPROJECTS = {
    "dependencies": '[project]\ndependencies = ["numpy", "torch >= 2.1, < 3; python_version < \'3.13\'"]',
    "extra": '[project]\noptional-dependencies = {gpu = ["torch[opt-einsum]>=2.1"], plot = ["matplotlib>=3"]}',
    "group": '[dependency-groups]\ndev = ["torch>=2.1", {include-group = "test"}]\ntest = []',
    "poetry": '[tool.poetry.dependencies]\npython = "^3.10"\ntorch = "^2.1"',
    "poetry table": '[tool.poetry.dependencies]\ntorch = {version = ">=2.1", source = "cpu"}',
    "poetry list": (
        "[tool.poetry.group.gpu.dependencies]\n"
        'torch = [{version = "2.4", platform = "linux"}, {version = "~2.1", platform = "darwin"}]'
    ),
    "python": '[project]\nrequires-python = ">=3.12"\ndependencies = ["torch>=1.8"]',
}


@pytest.mark.parametrize("text", PYPROJECTS.values(), ids=PYPROJECTS)
def test_pyproject_declares_it(text: str, tmp_path: Path) -> None:
    expected = (2, 2) if "3.12" in text else (2, 1)
    assert declared(tmp_path, pyproject__toml=text) == Declared(expected, "pyproject.toml")


SETUPS = {
    "list": 'setup(install_requires=["numpy", "torch>=1.9"])',
    "name": 'REQUIRED = ["torch>=1.9"]\nsetup(install_requires=REQUIRED)',
    "dict of extras": 'setup(extras_require={"gpu": ["torch>=1.9"], "all": ["torch"]})',
    "f-string": 'OLDEST = "1.9"\nsetup(install_requires=[f"torch>={OLDEST}"])',
    "sum": 'OLDEST = "1.9"\nsetup(install_requires=["torch>=" + OLDEST])',
    "text of lines": 'setup(install_requires="""\n    numpy\n    torch>=1.9\n""")',
    "environment": 'setup(install_requires=[os.environ.get("TORCH", "torch>=1.9")])',
}


@pytest.mark.parametrize("text", SETUPS.values(), ids=SETUPS)
def test_setup_py_declares_it_and_is_not_run(text: str, tmp_path: Path) -> None:
    text = f"raise SystemExit\n{text}\n"
    assert declared(tmp_path, setup__py=text) == Declared((1, 9), "setup.py")


def test_setup_cfg_declares_it(tmp_path: Path) -> None:
    text = "[options]\npython_requires = >=3.8\ninstall_requires =\n    numpy\n    torch>=1.10\n"
    assert declared(tmp_path, setup__cfg=text) == Declared((1, 10), "setup.cfg")


def test_requirements_declare_it(tmp_path: Path) -> None:
    assert declared(tmp_path, **{"requirements-gpu__txt": "-r base.txt\ntorch==1.13.1+cu117  # pinned\n"}) == Declared(
        (1, 13), "requirements-gpu.txt"
    )
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "core.txt").write_text("torch>=1.11\n")
    assert Declarations().of(tmp_path) == Declared((1, 11), "requirements/core.txt")


def test_a_wheel_declares_it(tmp_path: Path) -> None:
    line = "torch @ https://example.org/whl/cu118/torch-2.0.1%2Bcu118-cp310-cp310-linux_x86_64.whl\n"
    assert declared(tmp_path, requirements__txt=line) == Declared((2, 0), "requirements.txt")


def test_a_conda_environment_declares_it(tmp_path: Path) -> None:
    text = "dependencies:\n  - pytorch-cuda=11.7\n  - pytorch::pytorch=1.12\n  - pip:\n      - torchmetrics>=0.1\n"
    assert declared(tmp_path, environment__yml=text) == Declared((1, 12), "environment.yml")


@pytest.mark.parametrize(
    "line", ["torchvision>=0.9", "torch-scatter>=2.0", "pytorch-lightning>=1.5", "torch", "# torch>=1.0", "torch>=${T}"]
)
def test_other_packages_and_no_bound_declare_nothing(line: str, tmp_path: Path) -> None:
    assert declared(tmp_path, requirements__txt=f"{line}\n", setup__py=f"setup(install_requires=[{line!r}])") is None


def test_the_oldest_of_several_counts(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.6.0\n")
    assert declared(tmp_path, setup__py='setup(install_requires=["torch>=1.8"])') == Declared((1, 8), "setup.py")


def test_a_new_python_implies_a_torch_where_no_bound_says_more(tmp_path: Path) -> None:
    text = '[project]\nrequires-python = ">=3.13"\ndependencies = ["torch"]'
    assert declared(tmp_path, pyproject__toml=text) == Declared((2, 5), "pyproject.toml")
    assert declared(tmp_path, pyproject__toml=text.replace("3.13", "3.9")) is None


def test_the_nearest_declaration_counts_up_to_the_root_of_the_repository(tmp_path: Path) -> None:
    inner = tmp_path / "repository" / "examples" / "gan"
    inner.mkdir(parents=True)
    (tmp_path / "requirements.txt").write_text("torch>=1.0\n")
    (tmp_path / "repository" / ".git").mkdir()
    assert Declarations().of(inner) is None
    (tmp_path / "repository" / "requirements.txt").write_text("torch>=1.8\n")
    assert Declarations().of(inner) == Declared((1, 8), "requirements.txt")
    (inner.parent / "requirements.txt").write_text("torch>=2.2\n")
    assert Declarations().of(inner) == Declared((2, 2), "requirements.txt")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", "torch = ["),
        ("pyproject.toml", 'project = "torch"'),
        ("setup.py", "torch ="),
        ("requirements.txt", "\udcfftorch>=1.0"),
    ],
)
def test_a_broken_file_declares_nothing(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(text.encode(errors="surrogateescape"))
    assert Declarations().of(tmp_path) is None
