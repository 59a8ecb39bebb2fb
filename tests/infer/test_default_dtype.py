"""The default dtype of a program, at each place: each comment says what the expression before it is."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.infer.test_program import HEAD, hold

ANY = "bfloat16|float16|float32|float64"
"""Nothing is known of the default dtype but that it is one."""

PROGRAMS = {
    "it holds until it is set again, and for what was made meanwhile": """
        x = torch.ones(2)  # float32
        torch.set_default_dtype(torch.bfloat16)
        x = torch.ones(2)  # bfloat16
        y = torch.arange(2) / 2  # bfloat16
        net = nn.Linear(2, 2)
        torch.set_default_dtype(torch.float32)
        x = torch.ones(2)  # float32
        x = net.weight  # bfloat16
        torch.set_default_tensor_type("torch.DoubleTensor")
        x = torch.ones(2)  # float64
        torch.set_default_tensor_type(torch.cuda.HalfTensor)
        x = torch.ones(2)  # float16
        x.to(torch.get_default_dtype())  # float16
    """,
    "a function that sets it sets it for its caller; one that sets it back does not": """
        def use(dtype):
            torch.set_default_dtype(dtype)

        def make(dtype):
            old = torch.get_default_dtype()
            torch.set_default_dtype(dtype)
            try:
                return torch.ones(2)
            finally:
                torch.set_default_dtype(old)

        use(torch.float64)
        x = make(torch.float16)  # float16
        x = torch.ones(2)  # float64
        use(unknown())
        x = torch.ones(2)  # bfloat16|float16|float32|float64
        x.sum()
    """,
    "on some paths only": """
        for i in range(3):
            x = torch.ones(2)  # float32|float64
            torch.set_default_dtype(torch.float64)
            x = torch.ones(2)  # float64
        torch.set_default_dtype(torch.float32)
        if unknown():
            torch.set_default_dtype(torch.float16)
            x = torch.ones(2)  # float16
        x = torch.ones(2)  # bfloat16|float16|float32|float64
        x.sum()
    """,
    "an exception comes anywhere on the way": """
        for i in range(3):
            try:
                torch.set_default_dtype(torch.float16)
                unknown()
                torch.set_default_dtype(torch.float32)
            except ValueError:
                x = torch.ones(2)  # bfloat16|float16|float32|float64
            else:
                x = torch.ones(2)  # float32
    """,
    "a class that sets it for a while": """
        class Using:
            def __init__(self, dtype):
                self.dtype = dtype

            def __enter__(self):
                self.old = torch.get_default_dtype()
                torch.set_default_dtype(self.dtype)
                return torch.ones(2)

            def __exit__(self, *error):
                torch.set_default_dtype(self.old)

        with Using(torch.float64) as made:
            made.sum()  # float64
        x = torch.ones(2)  # float32
        x.sum()
    """,
    "in a function that is read for anybody it is any that is ever set": """
        def hook():
            return torch.ones(2)  #

        register(hook)
        torch.set_default_dtype(torch.float64)
        x = torch.ones(2)  # float64
        x.sum()
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_default_dtype_is_known_where_it_is_used(name: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(HEAD + textwrap.dedent(PROGRAMS[name]).replace("# any", f"# {ANY}"))
    hold(program)


def test_a_module_sets_it_where_it_is_first_imported(tmp_path: Path) -> None:
    (tmp_path / "settings.py").write_text("import torch\ntorch.set_default_dtype(torch.float64)\n")
    program = tmp_path / "program.py"
    program.write_text(HEAD + "x = torch.ones(2)  # float32\nimport settings\nx = torch.ones(2)  # float64\nx.sum()\n")
    hold(program)


def test_a_module_of_the_program_sets_it_where_it_is_imported(tmp_path: Path) -> None:
    (tmp_path / "settings.py").write_text("import torch\ntorch.set_default_dtype(torch.float64)\n")
    (tmp_path / "between.py").write_text("import settings\nsize = 2\n")
    program = tmp_path / "program.py"
    program.write_text(
        HEAD + "import between\nx = torch.ones(2)  # float64\ny = torch.ones(between.size)  # float64\nx.sum()\n"
    )
    hold(program)
