"""A fix that needs a newer torch than the project has to run on is no safe one, and says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtlint import discover
from dtlint.check.cache import Cache
from dtlint.check.job import Mode
from dtlint.check.run import run
from dtlint.config import Configuration
from dtlint.diagnostic import Applicability, Fix

RULES = discover()
SCALER = "import torch\nscaler = torch.cuda.amp.GradScaler()\n"


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(".git").mkdir()


def fix(text: str = SCALER, **options: object) -> Fix:
    Path("train.py").write_text(text)
    configuration = Configuration(**options)  # type: ignore[arg-type]
    outcome = run([Path("train.py")], configuration.settings_for, RULES, mode=Mode(), cache=Cache(Path.cwd(), RULES))
    assert outcome.errors == []
    (found,) = (diagnostic.fix for diagnostic in outcome.diagnostics if diagnostic.code == "DT501")
    assert found is not None
    return found


def test_it_is_safe_where_the_declared_torch_has_the_name() -> None:
    Path("requirements.txt").write_text("torch>=2.3\n")
    assert fix().applicability is Applicability.SAFE
    assert fix().message == 'Use `torch.amp.GradScaler("cuda")`'


def test_it_is_unsafe_where_an_older_torch_is_declared() -> None:
    Path("requirements.txt").write_text("torch>=1.13\n")
    assert fix().applicability is Applicability.UNSAFE
    assert fix().message == ('Use `torch.amp.GradScaler("cuda")`, which needs torch 2.3; requirements.txt allows 1.13')


def test_it_says_what_it_needs_where_nothing_is_declared() -> None:
    assert fix().applicability is Applicability.SAFE
    assert fix().message == 'Use `torch.amp.GradScaler("cuda")`, which needs torch 2.3'


def test_each_name_has_its_own_release() -> None:
    Path("requirements.txt").write_text("torch>=2.0\n")
    assert fix("import torch\nwith torch.cuda.amp.autocast():\n    pass\n").applicability is Applicability.SAFE
    assert fix("import torch\nprint(torch.get_autocast_gpu_dtype())\n").applicability is Applicability.UNSAFE


def test_the_target_wins_over_what_is_declared() -> None:
    Path("requirements.txt").write_text("torch>=1.13\n")
    assert fix(target_torch=(2, 4)).applicability is Applicability.SAFE
    Path("dtlint.toml").write_text('target-torch = "2.5"\n')
    assert fix().applicability is Applicability.SAFE


def test_a_result_is_not_found_again_under_another_declaration() -> None:
    """The cache lies beside the file, and is asked each time."""
    Path("requirements.txt").write_text("torch>=2.3\n")
    assert fix().applicability is Applicability.SAFE
    Path("requirements.txt").write_text("torch>=2.0\n")
    assert fix().applicability is Applicability.UNSAFE


def test_a_warning_of_what_only_an_older_torch_does_ends_with_the_declaration() -> None:
    text = "import torch\nassert torch.cuda.is_bf16_supported()\n"
    Path("train.py").write_text(text)

    def codes() -> list[str]:
        settings = Configuration().settings_for
        return [each.code for each in run([Path("train.py")], settings, RULES, mode=Mode(), cache=None).diagnostics]

    assert codes() == ["DT507"]
    Path("requirements.txt").write_text("torch>=2.5\n")
    assert codes() == []


def test_a_file_that_asks_for_the_release_may_run_on_older_ones() -> None:
    text = 'import torch\nif torch.__version__ >= "1.6":\n    scaler = torch.cuda.amp.GradScaler()\n'
    assert fix(text).applicability is Applicability.UNSAFE
