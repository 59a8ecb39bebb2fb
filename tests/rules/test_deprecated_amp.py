"""DT501's fixes: whatever way the old names are reached, the fixed program does the same, and warns no more.

Every program is run as it was and as it is fixed, on the installed torch; both see a CUDA that is there as far as
autocast and GradScaler ask, and print what these were made with.
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from textwrap import dedent

import pytest

from dtlint import Applicability, Diagnostic, discover
from dtlint.check.file import check_source
from dtlint.check.fix import Fixed, fix_source
from dtlint.config import Settings
from dtlint.source.file import Source

RULE = discover()["DT501"]

FIXED = {
    "import torch": """
        import torch
        show(torch.cuda.amp.autocast(enabled=False))
        show(torch.cpu.amp.autocast(dtype=torch.bfloat16))
        show(torch.cuda.amp.GradScaler())
    """,
    "import torch as th": """
        import torch as th
        show(th.cuda.amp.autocast(dtype=th.bfloat16))
        show(th.cuda.amp.GradScaler(init_scale=2.0))
    """,
    "import torch.cuda.amp": """
        import torch.cuda.amp
        show(torch.cuda.amp.autocast())
    """,
    "import torch.cuda.amp as amp": """
        import torch.cuda.amp as amp
        show(amp.autocast(False))
        show(amp.GradScaler(4.0, 3.0))
    """,
    "import torch.cpu.amp as amp": """
        import torch.cpu.amp as amp
        show(amp.autocast(False))
        show(amp.GradScaler(4.0))
    """,
    "from torch import cuda": """
        from torch import cuda
        show(cuda.amp.autocast())
        print(cuda.is_available())
    """,
    "from torch.cuda import amp": """
        from torch.cuda import amp
        show(amp.autocast())
        show(amp.GradScaler())
    """,
    "from torch.cuda import amp as A": """
        from torch.cuda import amp as A
        with A.autocast():
            print(torch_state())
        print(torch_state())
    """,
    "from torch.cuda.amp import autocast": """
        from torch.cuda.amp import autocast
        with autocast():
            print(torch_state())
    """,
    "from torch.cuda.amp import autocast as ac, GradScaler": """
        import torch
        from torch.cuda.amp import autocast as ac, GradScaler
        show(ac(cache_enabled=False))
        show(GradScaler(enabled=False))
    """,
    "from torch.cuda.amp.autocast_mode import autocast": """
        from torch.cuda.amp.autocast_mode import autocast
        from torch.cuda.amp.grad_scaler import GradScaler
        show(autocast())
        show(GradScaler())
    """,
    "import of a parent under its own name": """
        import torch.cuda as tc
        show(tc.amp.GradScaler())
        print(tc.is_available())
    """,
    "decorator with parentheses": """
        import torch
        from torch.cuda.amp import autocast

        @autocast()
        def forward():
            return torch_state()

        print(forward())
    """,
    "custom_fwd and custom_bwd, bare": """
        import torch
        from torch.cuda.amp import custom_bwd, custom_fwd

        class Double(torch.autograd.Function):
            @staticmethod
            @custom_fwd
            def forward(ctx, x):
                print(torch_state())
                return x * 2

            @staticmethod
            @custom_bwd
            def backward(ctx, grad):
                print(torch_state())
                return grad * 2

        x = torch.ones(2, requires_grad=True)
        Double.apply(x).sum().backward()
        print(x.grad)
    """,
    "custom_fwd, called": """
        import torch

        class Double(torch.autograd.Function):
            @staticmethod
            @torch.cuda.amp.custom_fwd(cast_inputs=torch.float32)
            def forward(ctx, x):
                print(x.dtype, torch_state())
                return x * 2

            backward = staticmethod(torch.cuda.amp.custom_bwd(lambda ctx, grad: grad * 2))

        x = torch.ones(2, requires_grad=True)
        Double.apply(x).sum().backward()
        print(x.grad)
    """,
    "alias by assignment": """
        import torch
        ac = torch.cuda.amp.autocast
        show(ac(enabled=False))
    """,
    "alias of the module": """
        import torch
        amp = torch.cuda.amp
        show(amp.GradScaler())
    """,
    "functools.partial": """
        import functools
        import torch
        from torch.cuda.amp import GradScaler, autocast
        region = functools.partial(autocast, False, dtype=torch.bfloat16)
        show(region())
        show(functools.partial(GradScaler, 8.0)(enabled=False))
    """,
    "positional arguments": """
        import torch
        show(torch.cuda.amp.autocast((1 < 0), torch.bfloat16, False))
        show(torch.cpu.amp.autocast(False, torch.float16))
        show(torch.cuda.amp.GradScaler(2.0, 4.0, 0.25, 10, False))
    """,
    "a call over several lines, with comments": """
        import torch
        show(
            torch.cuda.amp.autocast(  # the region
                # off while we look for the leak
                enabled=False,  # for now
                dtype=torch.bfloat16,
            )
        )
        show(torch.cuda.amp.GradScaler(  # all defaults
        ))
    """,
    "nested in another call": """
        import torch
        show(torch.cuda.amp.autocast(enabled=torch.cuda.amp.GradScaler(enabled=False).is_enabled()))
    """,
    "import inside a function": """
        def region():
            from torch.cuda.amp import autocast
            print("making it")
            return autocast(False)

        show(region())
    """,
    "an optional import": """
        try:
            from torch.cuda.amp import GradScaler
            HAS_AMP = True
        except ImportError:
            HAS_AMP = False

        if HAS_AMP:
            show(GradScaler())
    """,
    "isinstance and annotations": """
        import torch
        from torch.cuda.amp import GradScaler

        def scale(scaler: GradScaler) -> float:
            return scaler.get_scale() if isinstance(scaler, (int, GradScaler)) else 1.0

        print(scale(GradScaler(init_scale=2.0, enabled=False)))
    """,
    "arguments in a dictionary": """
        import torch
        options = {"enabled": False}
        show(torch.cuda.amp.autocast(**options))
        show(torch.cuda.amp.GradScaler(*(2.0, 4.0), **options))
    """,
}
"""Programs of which nothing is left to report, by what they show."""

REPORTED = {
    "a class attribute": """
        from torch.cuda.amp import GradScaler

        class Trainer:
            scaler_class = GradScaler

            def __init__(self):
                self.scaler = self.scaler_class()

        show(Trainer().scaler)
    """,
    "a base class": """
        import torch

        class Scaler(torch.cuda.amp.GradScaler):
            pass
    """,
    "arguments in a list": """
        import torch
        options = [False]
        show(torch.cuda.amp.autocast(*options))
    """,
    "torch means something else": """
        from torch.cuda.amp import autocast
        torch = "the flame"
        show(autocast())
    """,
    "torch means something else in a function": """
        from torch.cuda.amp import autocast

        def region(torch):
            return autocast()
    """,
    "another default dtype": """
        import torch
        torch.set_autocast_dtype("cuda", torch.bfloat16)
        show(torch.cuda.amp.autocast())
    """,
}
"""Programs that are reported, and for which no edit is right."""


RUNNER = """
import contextlib, io, json, sys, warnings
import torch
torch.cuda.amp.common.amp_definitely_not_available = lambda: False
torch.cuda.is_bf16_supported = lambda *args, **options: True

def torch_state():
    return torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda"), torch.is_autocast_cache_enabled()

def show(it):
    if isinstance(it, torch.amp.autocast):
        print("autocast", it.device, it._enabled, it.fast_dtype, it._cache_enabled)
    else:
        factors = [it.get_scale, it.get_growth_factor, it.get_backoff_factor, it.get_growth_interval]
        print("scaler", it._device, *(get() for get in factors if it.is_enabled()))

ran = []
for program in json.load(sys.stdin):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(compile(program, "program.py", "exec"), {"__name__": "program", "show": show, "torch_state": torch_state})
    ran.append([printed.getvalue(), sum(issubclass(one.category, FutureWarning) for one in caught)])
json.dump(ran, sys.stdout)
"""


def checked(text: str) -> list[Diagnostic]:
    result = check_source(Source.from_bytes(text.encode(), "program.py"), [RULE], Settings(preview=True))
    assert result.crashes == []
    return result.diagnostics


def codes(text: str) -> list[str]:
    return [diagnostic.code for diagnostic in checked(text)]


def fixed(text: str, path: str = "program.py") -> Fixed:
    result = fix_source(Source.from_bytes(text.encode(), path), [RULE], Settings(preview=True), Applicability.UNSAFE)
    assert result.failed is None
    return result


@pytest.fixture(scope="module")
def runs() -> dict[str, tuple[list[object], list[object]]]:
    """What each program printed, and how often it warned, before and after its fix."""
    if find_spec("torch") is None:
        pytest.skip("torch is not installed")
    before = [dedent(text) for text in FIXED.values()]
    after = [fixed(text).source.text for text in before]
    done = subprocess.run(
        [sys.executable, "-c", RUNNER], input=json.dumps(before + after), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    ran = json.loads(done.stdout)
    return dict(zip(FIXED, zip(ran[: len(before)], ran[len(before) :], strict=True), strict=True))


@pytest.mark.parametrize("name", FIXED)
def test_the_fixed_program_does_the_same_and_warns_no_more(
    name: str, runs: dict[str, tuple[list[object], list[object]]]
) -> None:
    (printed, warned), (printed_after, warned_after) = runs[name]
    assert printed, "the program shows what it makes"
    assert warned, "the old names warn"
    assert (printed_after, warned_after) == (printed, 0)


@pytest.mark.parametrize("name", sorted(FIXED.keys() - {"alias by assignment"}))
def test_nothing_is_left_to_report(name: str) -> None:
    assert fixed(dedent(FIXED[name])).checked.diagnostics == []


def test_an_alias_is_reported_where_it_is_called() -> None:
    (called,) = checked("import torch\nac = torch.cuda.amp.autocast\nac()\n")
    assert called.location.span.line == 3
    assert called.fix is not None


@pytest.mark.parametrize("text", ['f"{autocast()}"', 'f"{isinstance(x, autocast)}"'])
def test_a_fix_brings_no_quotes_into_an_f_string(text: str) -> None:
    (found,) = checked(f"from torch.cuda.amp import autocast\nprint({text})\n")
    assert found.fix is None


def test_the_import_of_a_class_attribute_stays() -> None:
    text = (
        "import torch\nclass Trainer:\n    from torch.cuda.amp import autocast\n    if True:\n"
        "        from torch.cuda.amp import GradScaler\n    region = autocast(enabled=False)\n"
        "    scaler = GradScaler()\n"
    )
    after = fixed(text).source.text
    assert "from torch.cuda.amp import autocast" in after
    assert "from torch.cuda.amp import GradScaler" in after
    assert 'torch.amp.autocast("cuda", enabled=False)' in after


@pytest.mark.parametrize("name", REPORTED)
def test_what_no_edit_mends_is_reported_and_left(name: str) -> None:
    text = dedent(REPORTED[name])
    assert codes(text) == ["DT501"]
    assert fixed(text).source.text == text


def test_imports_go_and_come_as_they_are_needed() -> None:
    text = dedent("""\
        import os

        from torch.cuda import (
            amp,  # mixed precision
            is_available,
        )
        from torch.cuda.amp import (
            GradScaler,
            autocast,
        )

        with autocast(), amp.autocast():
            print(os.getpid(), is_available(), GradScaler)
        """)
    assert fixed(text).source.text == dedent("""\
        import os

        import torch
        from torch.cuda import (
            amp,  # mixed precision
            is_available,
        )
        from torch.cuda.amp import (
            GradScaler,
        )

        with torch.amp.autocast("cuda"), torch.amp.autocast("cuda"):
            print(os.getpid(), is_available(), GradScaler)
        """)


@pytest.mark.parametrize(
    "kept",
    [
        "from torch.cuda.amp import autocast  # needed by the tests",
        "from torch.cuda.amp import autocast as autocast",
        "from torch.cuda.amp import autocast\n__all__ = ['autocast']",
    ],
)
def test_an_import_that_others_may_need_stays(kept: str) -> None:
    result = fixed(f"import torch\n{kept}\nautocast()\n")
    assert result.source.text == f'import torch\n{kept}\ntorch.amp.autocast("cuda")\n'


def test_a_package_exports_what_it_imports() -> None:
    text = "import torch\nfrom torch.cuda.amp import autocast\nautocast()\n"
    assert "import autocast" in fixed(text, "package/__init__.py").source.text
    assert "import autocast" not in fixed(text, "package/module.py").source.text


def test_windows_line_ends_stay() -> None:
    text = (
        "from torch.cuda.amp import (\r\n    GradScaler,\r\n    autocast,\r\n)\r\nautocast()\r\nprint(GradScaler)\r\n"
    )
    assert fixed(text).source.text == (
        "import torch\r\nfrom torch.cuda.amp import (\r\n    GradScaler,\r\n)\r\n"
        'torch.amp.autocast("cuda")\r\nprint(GradScaler)\r\n'
    )


def test_a_notebook_is_fixed_over_its_cells() -> None:
    cells = [["%matplotlib inline\n", "from torch.cuda.amp import autocast"], ["with autocast():\n", "    pass"]]
    notebook = {
        "cells": [
            {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": lines}
            for lines in cells
        ],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    result = json.loads(fixed(json.dumps(notebook), "train.ipynb").source.data)
    assert ["".join(cell["source"]) for cell in result["cells"]] == [
        "%matplotlib inline\nimport torch",
        'with torch.amp.autocast("cuda"):\n    pass',
    ]


def test_the_message_names_the_successor() -> None:
    (diagnostic,) = checked("import torch\ntorch.cpu.amp.GradScaler(2.0)\n")
    assert diagnostic.message == "`torch.cpu.amp.GradScaler` is deprecated since torch 2.4"
    assert diagnostic.help == 'Use `torch.amp.GradScaler("cpu")`'
    assert diagnostic.fix is not None
    assert diagnostic.fix.applicability is Applicability.SAFE
