"""A program that adds folders to `sys.path` imports from there."""

from __future__ import annotations

import ast
import textwrap
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


def test_a_file_of_a_package_imports_from_it(tmp_path: Path) -> None:
    files = {
        "net/__init__.py": "",
        "net/sizes.py": "def count(n: int):\n    return int(n)\n",
        "net/layers/__init__.py": "",
        "net/layers/wide.py": "def wide(x):\n    return x.double()\n",
        "net/models/__init__.py": "",
        "net/models/model.py": """
            import torch
            from net.sizes import count
            from ..layers.wide import wide
            from . import model as itself

            def use(x: torch.Tensor, n: int):
                y = wide(x)  # float64
                return torch.arange(3) + count(n)  # int64

            def other(x: torch.Tensor, n: int):
                return itself.use(x, n)  # int64
        """,
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    hold(tmp_path / "net" / "models" / "model.py")


def test_torch_is_known_by_name_though_it_lies_beside_the_program(tmp_path: Path) -> None:
    (tmp_path / "torch" / "nn").mkdir(parents=True)
    for name in ("torch/__init__.py", "torch/nn/__init__.py"):
        (tmp_path / name).touch()
    (tmp_path / "torch" / "nn" / "functional.py").write_text("def relu(x):\n    return x.double()\n")
    program = tmp_path / "run.py"
    program.write_text("import torch\nimport torch.nn.functional as F\nx = F.relu(torch.ones(2).half())  # float16\n")
    hold(program)
