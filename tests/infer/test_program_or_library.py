"""Is a file run, or a library?"""

from __future__ import annotations

import ast

import pytest

from dtlint.infer.interproc.program_or_library import runs_something


@pytest.mark.parametrize(
    ("statement", "runs"),
    [
        ("Net()(torch.ones(2))", True),
        ("Net().cuda().run()", True),
        ("print(Net()(torch.ones(2)))", True),
        ("lightning.Trainer(max_epochs=1).fit(model=Net())", True),
        ("logging.getLogger('net').setLevel(10)", False),
        ("register('net', Net)", False),
    ],
)
def test_a_file_that_runs_what_it_has_made_is_a_program(statement: str, runs: bool) -> None:

    assert runs_something(ast.parse(f"class Net: ...\n{statement}\n")) is runs
