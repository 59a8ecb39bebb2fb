"""A program that adds folders to `sys.path` imports from there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from dtlint.infer.interproc.search_path import search_path
from tests.infer.test_program import hold

SAID = {
    "sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))": "lib",
    "sys.path.insert(0, str(Path(__file__).resolve().parent.parent / 'lib'))": "lib",
    "sys.path.append(os.path.dirname(__file__) + '/../lib')": "lib",
    "sys.path.append('..')": ".",
    "sys.path.append(os.path.join(os.pardir, 'lib'))": "lib",
    "ROOT = Path(__file__).parents[1]\nif str(ROOT) not in sys.path:\n    sys.path.insert(0, str(ROOT))": ".",
    "sys.path.append(Path(__file__).absolute().parent.parent.joinpath('lib', 'more').as_posix())": "lib/more",
}
UNKNOWN = (
    "sys.path.append(os.environ['LIB'])",
    "sys.path.append(Path(sys.argv[1]))",
    "sys.path.append(Path(__file__).parents[99])",
    "def later():\n    sys.path.append('..')",
)


def added(source: str, program: Path) -> list[Path]:
    found = search_path(ast.parse(f"import os, sys\nfrom pathlib import Path\n{source}"), program)
    return [*found.before, *found.behind]


@pytest.mark.parametrize("source", SAID)
def test_what_is_made_of_the_own_path_is_known(source: str, tmp_path: Path) -> None:
    assert added(source, tmp_path / "scripts" / "run.py") == [tmp_path / SAID[source]]


@pytest.mark.parametrize("source", UNKNOWN)
def test_what_the_run_decides_is_left_out(source: str, tmp_path: Path) -> None:
    assert added(source, tmp_path / "scripts" / "run.py") == []


def test_modules_are_found_there(tmp_path: Path) -> None:
    for name, dtype in (("lib/helpers.py", "half"), ("scripts/own.py", "double"), ("scripts/helpers.py", "int")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"import torch\n\n\ndef make():\n    return torch.ones(2).{dtype}()\n")
    program = tmp_path / "scripts" / "run.py"
    program.write_text(
        "import sys\n"
        "from pathlib import Path\n"
        "sys.path.insert(0, str(Path(__file__).parent.parent / 'lib'))\n"
        "import helpers, own\n"
        "x = helpers.make()  # float16\n"
        "y = own.make()  # float64\n"
        "y.sum()\n"
    )
    hold(program)
