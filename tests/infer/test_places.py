"""On which device tensors are, as the program asks for it, and what autocast does with them there."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.infer.test_program import HEAD, hold

PROGRAMS = {
    "what is made on the CPU is there until it is moved": """
        def lowered(x):
            return x.half() if x.is_cuda else x.double()

        x = torch.ones(2, 2)
        y = lowered(x)  # float64
        y = lowered((x + 1).softmax(-1))  # float64
        y = lowered(nn.Linear(2, 2)(x))  # float64
        y = lowered(x.cuda())  # float16
        y = lowered(x.cuda() + 1)  # float16
        y = lowered(x.cuda().cpu())  # float64
        y = lowered(x.to(torch.device("cuda", 0)))  # float16
        y = lowered(torch.zeros(2, device="cuda:1"))  # float16
        y = lowered(torch.zeros(2, device=x.device))  # float64
        y.sum()
    """,
    "by the name of the device": """
        x = torch.ones(2, device=torch.device("cpu"))
        if x.device.type == "cuda":
            x = x.half()
        else:
            x = x.double()
        x.sum()  # float64
    """,
    "where it is moved by what is not known, it may be anywhere": """
        device = "cuda" if torch.cuda.is_available() else "cpu"
        x = torch.ones(2).to(device)
        y = x.half() if x.is_cuda else x.double()  # float16|float64
        x = torch.ones(2) + unknown()
        y = x.half() if x.is_cuda else x.double()  # float16|float64
        x = torch.ones(2).cuda() if unknown() else torch.ones(2)
        y = x.half() if x.is_cuda else x.double()  # float16|float64
        x = torch.tensor([unknown()])
        y = torch.ones(2).half() if x.is_cuda else torch.ones(2).double()  # float64
        y.sum()
    """,
    "weights move with their module": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = nn.Parameter(torch.ones(2))
                self.register_buffer("shift", torch.ones(2))
                self.plain = torch.ones(2)

        net = Net()
        net.cuda()
        x = torch.ones(2)
        y = x.half() if net.scale.is_cuda else x.double()  # float16|float64
        y = x.half() if net.shift.is_cuda else x.double()  # float16|float64
        y = x.half() if net.plain.is_cuda else x.double()  # float64
        y.sum()
    """,
    "a default device": """
        x = torch.ones(2)
        y = x.half() if x.is_cuda else x.double()  # float64
        with torch.device(unknown()):
            x = torch.ones(2)
        y.sum()
    """,
    "a region for CUDA changes what is there, and nothing on the CPU; without CUDA it stays off": """
        fc = nn.Linear(2, 2)
        x = torch.ones(2, 2)
        c = x.cuda()
        z = x.to(unknown("device")).float()
        with torch.autocast("cuda", torch.bfloat16):
            y = fc(x)  # float32
            y = x @ x  # float32
            y = fc(c)  # bfloat16
            y = fc(z)  # bfloat16
            with torch.autocast("cpu", torch.float16):
                y = x @ x  # float16|float32
                y = c @ c  # bfloat16|float32
            with torch.autocast("cpu", enabled=False):
                y = c @ c  # bfloat16|float32
                y = z @ z  # bfloat16|float32
        with torch.autocast("cpu", torch.bfloat16):
            y = fc(x)  # bfloat16
            y = c @ c  # float32
        y.sum()
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_known_where_tensors_are(name: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(HEAD + textwrap.dedent(PROGRAMS[name]))
    hold(program)


def test_whoever_calls_a_library_may_have_set_another_default_device(tmp_path: Path) -> None:
    library = tmp_path / "library.py"
    library.write_text(
        HEAD
        + "def make():\n    x = torch.ones(2)\n    return x.half() if x.is_cuda else x.double()  # float16|float64\n"
    )
    hold(library)
