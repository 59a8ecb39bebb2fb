"""The page on monitoring: its programs run as they stand, where their framework is installed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "monitor-a-training-run.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
NEEDS = ["torch", "transformers", "lightning"]


def test_there_is_a_program_for_each_way() -> None:
    assert len(PROGRAMS) == len(NEEDS)


@pytest.mark.parametrize(("needs", "program"), [*zip(NEEDS, PROGRAMS, strict=True)], ids=NEEDS)
def test_programs_run(needs: str, program: str, tmp_path: Path) -> None:
    if find_spec(needs) is None:
        pytest.skip(f"{needs} is not installed")
    (tmp_path / "train.py").write_text(program)
    paths = os.pathsep.join([str(ROOT), str(ROOT / "rules")])
    done = subprocess.run(
        [sys.executable, "train.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "dtlint-monitor.jsonl").read_text().splitlines()
    assert len(lines) == (3 if needs == "torch" else 2)
    last = json.loads(lines[-1])
    assert not last["unseen"]
    assert done.stdout.split()[-3 if needs == "torch" else -2] == str(last["grad_norm"])


def test_every_field_is_told_of() -> None:
    pytest.importorskip("torch")
    from dataclasses import fields

    from dtlint.monitor import ModuleReading, Reading

    for field in (*fields(Reading), *fields(ModuleReading)):
        assert f"`{field.name}`" in PAGE, field.name
