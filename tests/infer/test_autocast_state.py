"""Autocast's state at each place of a program, as the program itself asks for it."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.infer.test_program import HEAD, hold

PROGRAMS = {
    "a method behind a region is bound to its object": """
        class Noisy(nn.Module):
            @torch.autocast("cpu", enabled=False)
            def noisy(self, x, noise):
                return x + noise

        class Net(Noisy):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(3, 3)

            @torch.autocast("cpu", dtype=torch.bfloat16)
            def forward(self, x):
                y = self.noisy(x, noise=torch.rand(3))  # float32
                z = self.fc(super().noisy(y, y))  # bfloat16
                return z

        out = Net()(torch.rand(2, 3))  # bfloat16
        out.sum()
    """,
    "a function is read for the state in which it is called": """
        def ready(x):
            if torch.is_autocast_enabled("cpu"):
                return x.to(torch.get_autocast_dtype("cpu"))
            return x.double()

        x = torch.ones(2)
        y = ready(x)  # float64
        with torch.autocast("cpu", torch.float16):
            y = ready(x)  # float16|float64
            with torch.autocast("cpu", enabled=False):
                y = ready(x)  # float16|float64
        y = ready(x)  # float64
        y.sum()
    """,
    "each device has a state of its own, and without CUDA a region for it stays off": """
        x = torch.ones(2)
        with torch.autocast("cpu", torch.bfloat16):
            y = x.half() if torch.is_autocast_cpu_enabled() else x.double()  # float16|float64
            z = x.half() if torch.is_autocast_enabled() else x.double()  # float16|float64
        with torch.autocast("cuda", torch.bfloat16):
            y = x.half() if torch.is_autocast_cpu_enabled() else x.double()  # float16|float64
            z = x.half() if torch.is_autocast_enabled("cuda") else x.double()  # float16|float64
            with torch.autocast("cuda", enabled=False):
                w = x.half() if torch.is_autocast_enabled("cuda") else x.double()  # float16|float64
        y.sum()
    """,
    "a region of a device that is not known may be any": """
        x = torch.ones(2)
        with torch.autocast(unknown(), torch.bfloat16):
            y = x.half() if torch.is_autocast_cpu_enabled() else x.double()  # float16|float64
            y.sum()
    """,
    "a region that names no dtype keeps the one in force": """
        x, fc = torch.ones(2, 2), nn.Linear(2, 2)
        with torch.autocast("cpu"):
            y = fc(x)  # bfloat16
        with torch.autocast("cpu", dtype=torch.float16):
            with torch.autocast("cpu"):
                y = fc(x)  # float16
            with torch.cpu.amp.autocast():
                y = fc(x)  # bfloat16
            with torch.autocast("cpu", enabled=False), torch.autocast("cpu"):
                y = fc(x)  # float16
        with torch.autocast("cpu", dtype=torch.float32):
            y = fc(x)  # float32
        y.sum()
    """,
    "a function that is read for anybody may be called in any region": """
        def hook(x):
            if torch.is_autocast_enabled("cpu"):
                return torch.ones(2).half()
            return torch.ones(2)

        register(hook)
        y = hook(0)  # float32
        y.sum()
    """,
    "who sets the switch by hand": """
        x = torch.ones(2, 2)
        torch.set_autocast_enabled("cpu", unknown())
        y = x @ x  #
        z = x.half() if torch.is_autocast_enabled("cpu") else x.double()  # float16|float64
        z.sum()
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_autocast_is_known_where_it_is_asked_for(name: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(HEAD + textwrap.dedent(PROGRAMS[name]))
    hold(program)
