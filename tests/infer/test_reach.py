"""Can half reach this code? What a file says of it, and what a value says."""

from __future__ import annotations

import ast
import textwrap

import pytest

from dtlint.infer.events import Call, Event
from dtlint.infer.interpreter import interpret
from dtlint.infer.reach import Reach, Reached, reach, reach_of_file

FILES = {
    "a training script in float32": (
        Reach.NONE,
        """
        import torch
        model = torch.nn.Linear(3, 3)
        for batch in loader:
            loss = model(batch).sum()
            loss.backward()
        """,
    ),
    "functions on tensors, and nothing that runs": (
        Reach.LIBRARY,
        """
        import torch
        def normalize(x):
            return x / (x.norm() + 1e-8)
        """,
    ),
    "definitions and a main guard": (
        Reach.NONE,
        """
        import torch
        def normalize(x):
            return x / (x.norm() + 1e-8)
        if __name__ == "__main__":
            print(normalize(torch.ones(3)))
        """,
    ),
    "a cast": (Reach.ASKED, "def f(x):\n    return x.half()\n"),
    "a dtype that is named": (Reach.ASKED, "import torch\nkind = torch.bfloat16\n"),
    "half of NumPy is none of torch": (
        Reach.LIBRARY,
        "import numpy as np\ndef f(x):\n    return x.astype(np.float16)\n",
    ),
    "autocast": (Reach.ASKED, "import torch\nwith torch.autocast('cuda'):\n    pass\n"),
    "a scaler": (Reach.ASKED, "import torch\nscaler = torch.amp.GradScaler()\n"),
    "a parameter": (Reach.ASKED, "def f(x, dtype=None):\n    return x\n"),
    "an option": (Reach.ASKED, "parser.add_argument('--fp16', action='store_true')\n"),
    "a question": (Reach.ASKED, "import torch\ndef f(x):\n    return x.dtype == torch.float16\n"),
    "another question": (Reach.LIBRARY, "import torch\ndef f(x):\n    return x.dtype == torch.float64\n"),
    "the range of what is given": (Reach.ASKED, "import torch\ndef f(x):\n    return torch.finfo(x.dtype).min\n"),
}


@pytest.mark.parametrize(("level", "source"), FILES.values(), ids=FILES)
def test_files(level: Reach, source: str) -> None:
    assert reach_of_file(ast.parse(textwrap.dedent(source))).level is level


def reached(source: str) -> list[Reached]:
    """What `reach` says of each value that `asked` is called with."""
    found: list[Reached] = []

    def on_call(event: Event) -> None:
        assert isinstance(event, Call)
        if isinstance(event.node.func, ast.Name) and event.node.func.id == "asked":
            found.append(reach(event.flow, *event.args))

    interpret(ast.parse(textwrap.dedent(source)), {Call: on_call})
    return found


def test_what_is_known_of_a_value_decides() -> None:
    half, wide, promoted, given = reached("""
        import torch
        def f(x: torch.Tensor, fp16):
            asked(x.half())
            asked(x.float())
            asked(x + torch.zeros(3))
            asked(x)
    """)
    assert half.level is Reach.PROVED
    assert half.dtypes == {"float16"}
    assert wide.level is promoted.level is Reach.NONE
    assert (given.level, given.near) == (Reach.ASKED, True)


def test_a_weight_may_be_anything_and_proves_nothing() -> None:
    (found,) = reached("""
        import torch
        class Net(torch.nn.Module):
            def __init__(self):
                self.fc = torch.nn.Linear(3, 3)
            def forward(self, x):
                asked(self.fc(x))
    """)
    assert found.level is Reach.LIBRARY


def test_the_region_in_force_tells_which_half() -> None:
    (found,) = reached("""
        import torch
        with torch.autocast("cuda", dtype=torch.bfloat16):
            asked(unknown)
    """)
    assert (found.level, found.why) == (Reach.ASKED, "autocast is entered here")
    assert found.dtypes == {"bfloat16"}


def test_one_half_may_be_asked_for_alone() -> None:
    source = """
        import torch
        model.bfloat16()
        x.half()
        def f(x: torch.Tensor):
            asked(x.bfloat16(), x)
    """
    answers: list[Reached] = []

    def on_call(event: Event) -> None:
        assert isinstance(event, Call)
        if isinstance(event.node.func, ast.Name) and event.node.func.id == "asked":
            answers.extend(reach(event.flow, value, dtype="float16") for value in event.args)

    interpret(ast.parse(textwrap.dedent(source)), {Call: on_call})
    cast, given = answers
    assert cast.level is Reach.NONE
    assert given.node is not None
    assert (given.level, given.node.lineno) == (Reach.ASKED, 4)
    assert given.dtypes == {"float16"}


def test_the_evidence_that_stands_nearest_is_shown() -> None:
    (found,) = reached("""
        import torch
        def other(x):
            return x.half()
        def f(x, dtype):
            asked(x)
    """)
    assert found.near
    assert found.node is not None
    assert found.node.lineno == 5
