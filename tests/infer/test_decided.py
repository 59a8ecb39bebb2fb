"""What decides a dtype that the caller gives: each comment says it in the words of `dtlint infer`, an empty one that nothing
is said. Where torch is, each program is run with every dtype, inside autocast and outside, and the words have to hold.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from contextlib import nullcontext
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dtlint.infer.claims.reading import read

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

HEAD = "from contextlib import contextmanager\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n"

PROGRAMS = {
    "a function, which may be called in an autocast region": """
        def run(x: torch.Tensor):
            a = x * 0.5  # the dtype of `x`, if that is floating
            b = a.transpose(0, 1).reshape(4, 4).contiguous()  # the dtype of `x`, if that is floating
            c = a @ b  # the dtype of `x`, if that is floating, outside autocast
            d = c.exp()  # the dtype of `x`, if that is floating, outside autocast
            e = torch.cat([a, b])  # the dtype of `x`, if that is floating
            f = x.new_zeros(4, 4)  # the dtype of `x`
            g = torch.zeros_like(x)  # the dtype of `x`
            h = x.float().to(x.dtype)  # the dtype of `x`
            i = torch.where(x > 0, x, 0.0)  # the dtype of `x`, if that is floating
            j = a.softmax(-1)  # the dtype of `x`, if that is floating, outside autocast
            k = F.dropout(a, 0.1)  # the dtype of `x`, if that is floating
            m = a.mean(-1)  # the dtype of `x`, if that is floating
            n = torch.einsum("ij,jk->ik", a, b)  # the dtype of `x`, if that is floating, outside autocast
            o = F.layer_norm(a, (4,))  # the dtype of `x`, if that is floating, outside autocast
            p = a**2  # the dtype of `x`, if that is floating, outside autocast
            q = a.relu()  # the dtype of `x`, if that is floating
            r = F.gelu(a)  # the dtype of `x`, if that is floating
            s = a.sum()  # the dtype of `x`, if that is floating, outside autocast
            t = x + torch.zeros(4, 4, dtype=torch.float16)  # the dtype of `x` promoted with float16
            u = x + 1  # the dtype of `x`, unless that is bool
            w = 1.0 / a  # the dtype of `x`, if that is floating, outside autocast
            v = a.clamp(min=0)  # the dtype of `x`, if that is floating
    """,
    "two of them": """
        def run(x: torch.Tensor, y: torch.Tensor):
            a = x + y  # the dtypes of `x` and `y` promoted
            b = x * 0.5 + y  # the dtypes of `x` and `y` promoted, if all are floating
            c = a.to(y.dtype)  # the dtype of `y`
            d = x @ y  # the dtype of `x`, outside autocast
            g = y * x.mean()  #
            k = F.poisson_nll_loss(x, y)  #
            h = x.float()[0] + y  #
            i = x[0] + y  #
            j = torch.where(y > 0, y, x.min())  #
            e = x.type_as(y) * x  #
            f = (x + 1j) * 2  #
    """,
    "a module, which whoever has it may have cast": """
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.q = nn.Linear(4, 4)
                self.norm = nn.LayerNorm(4)
                self.table = nn.Embedding(4, 4)
                self.scale = nn.Parameter(torch.ones(4))
                self.steps = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
                self.register_buffer("mask", torch.ones(4, 4))

            def forward(self, x):
                h = self.norm(x)  # the dtype of `x`, outside autocast
                q = self.q(x)  # the dtype of `self.q.weight`, outside autocast
                s = q @ q.transpose(0, 1)  # the dtype of `self.q.weight`, outside autocast
                p = F.softmax(s, -1)  # the dtype of `self.q.weight`, outside autocast
                z = x + q  #
                e = self.table(torch.arange(4))  # the dtype of `self.table.weight`
                w = e * self.scale  # the dtypes of `self.scale` and `self.table.weight` promoted
                y = self.steps(x)  # the dtype of `self.steps[0].weight`, outside autocast
                m = q.masked_fill(self.mask > 0, 0.0)  # the dtype of `self.q.weight`, outside autocast
                o = nn.Linear(4, 4)(x)  # the dtype of `x`, outside autocast
                return z
    """,
    "whole numbers and truths": """
        def run(x: torch.Tensor):
            a = F.pad(x, (1, 1))  # the dtype of `x`, outside autocast
            b = x.clamp(0.5, 1.5)  # the dtype of `x`, if that is floating
            c = torch.clamp(x, 0)  # the dtype of `x`, unless that is bool
            d = x.div(2)  # the dtype of `x`, if that is floating
            e = nn.Sigmoid()(x)  # the dtype of `x`, if that is floating
            f = x.cumsum(0)  # the dtype of `x`, if that is floating, outside autocast
            g = x.flip(0)  # the dtype of `x`
            h = nn.Sequential(nn.Flatten(), nn.Tanh())(x)  # the dtype of `x`, if that is floating
    """,
    "names that stand for something else by then": """
        def run(x: torch.Tensor, y: torch.Tensor):
            kind = x.dtype
            a = y * x  # the dtypes of `x` as given and `y` as given promoted
            x, y = y, x
            b = y  # the dtype of `x` as given
            x = x.float()
            c = y * x.to(kind)  # the dtype of `x` as given
            d = torch.broadcast_tensors(x, y)[1]  # the dtype of `x` as given
    """,
    "a dtype, which may be left out": """
        def run(x: torch.Tensor, dtype=None):
            a = torch.zeros(3, dtype=dtype)  #
            b = x.sum(dtype=dtype)  #
            c = x.to(dtype or x.dtype)  #
    """,
    "a module that is changed where it is made, or by another class": """
        class Half(nn.Module):
            def forward(self, x):
                return x.half()

        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.steps = nn.Sequential(nn.Linear(4, 4))
                self.steps.append(Half())
                self.put = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
                self.put[1] = Half()
                self.hooked = nn.Linear(4, 4)
                self.hooked.register_forward_hook(lambda module, given, made: made.float())
                self.act = nn.ReLU()
                self.plain = nn.Linear(4, 4)

            def forward(self, x):
                a = self.steps(x)  #
                b = self.put(x)  #
                c = self.hooked(x)  #
                d = self.act(x)  #
                e = self.plain(x)  # the dtype of `self.plain.weight`, outside autocast

        class Narrow(Block):
            def __init__(self):
                super().__init__()
                self.act = Half()
    """,
    "what the caller may have set, or may have given": """
        @contextmanager
        def amp():
            with torch.autocast("cpu", dtype=torch.bfloat16):
                yield

        def run(x: torch.Tensor, low=0.5, high=None):
            a = torch.zeros(4, 4) + x  #
            b = torch.clamp(x, low, high)  #
            with amp():
                c = x @ x  #
    """,
    "a region of its own": """
        def run(x: torch.Tensor):
            with torch.autocast("cpu", enabled=False):
                a = x @ x  # the dtype of `x`, outside autocast
                b = a.sum(-1)  # the dtype of `x`, if that is floating, outside autocast
            with torch.autocast("cpu", dtype=torch.bfloat16):
                c = x.reshape(4, 4)  # the dtype of `x`
                d = x.reshape(4, 4) @ x  #
    """,
    "a function that another calls": """
        def half_of(v: torch.Tensor):
            return v * 0.5

        def scores_of(v: torch.Tensor):
            return v @ v

        def run(x: torch.Tensor):
            a = half_of(x)  # the dtype of `x`, if that is floating
            b = scores_of(a)  # the dtype of `x`, if that is floating, outside autocast
            with torch.autocast("cpu", enabled=False):
                c = scores_of(a)  # the dtype of `x`, if that is floating, outside autocast
    """,
}


def expected(source: str) -> dict[int, str]:
    return {number: line.partition("#")[2].strip() for number, line in enumerate(source.splitlines(), 1) if "#" in line}


def told(path: Path) -> dict[int, str]:
    """What is said of each value that is bound to a name."""
    reading = read(path, [path.parent])
    bound = (node for node in ast.walk(reading.tree) if isinstance(node, ast.Assign))
    return {node.lineno: reading.symbolic[node.value] for node in bound if node.value in reading.symbolic}


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_the_caller_decides_is_told(program: str, tmp_path: Path) -> None:
    path = tmp_path / "library.py"
    path.write_text(HEAD + textwrap.dedent(PROGRAMS[program]))
    said = told(path)
    assert {line: said.get(line, "") for line in expected(path.read_text())} == expected(path.read_text())


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_is_told_holds_for_every_caller(program: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "library.py"
    path.write_text(HEAD + textwrap.dedent(PROGRAMS[program]))
    said, held = told(path), set()
    for region in (None, torch.bfloat16, torch.float16):
        for given, run in _runs(path):
            context = nullcontext() if region is None else torch.autocast("cpu", dtype=region)
            with context, torch.no_grad():
                made = _bound_on_the_way(path, run)
            for line, dtype in made.items():
                if line in said and (wanted := _meant(said[line], given, region is not None)) is not None:
                    assert dtype == wanted, f"line {line}: {said[line]}, of {given} in {region}"
                    held.add(line)
    assert held == set(said)


def _runs(path: Path) -> Iterator[tuple[dict[str, Any], Any]]:
    """Calls of the program with tensors, and a module, of all kinds of dtypes; and what they are given, by its name."""
    import torch

    names: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    dtypes = (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int64, torch.int32, torch.bool)
    x, y = ([torch.ones(4, 4, dtype=dtype) for dtype in dtypes] for _ in range(2))
    if "Block" in names:
        for dtype in dtypes[:4]:
            block = names["Block"]().to(dtype)
            for one in x:
                yield {"x": one, "self": block}, lambda one=one, block=block: block(one)
    elif "y" not in signature(names["run"]).parameters:
        for one in x:
            yield {"x": one}, lambda one=one: names["run"](one)
    else:
        for one in x:
            for other in y:
                yield {"x": one, "y": other}, lambda one=one, other=other: names["run"](one, other)


def _bound_on_the_way(path: Path, run: Any) -> dict[int, Any]:
    """The dtypes of what each line binds to a name, as far as the program comes before torch refuses a dtype."""
    binding = {
        node.lineno: node.targets[0].id
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    made: dict[int, Any] = {}

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename != str(path):
            return None
        for line, name in binding.items():
            if (line < frame.f_lineno or event == "return") and name in frame.f_locals and line not in made:
                made[line] = getattr(frame.f_locals[name], "dtype", None)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    except RuntimeError:  # no kernel for this dtype, or two that do not agree
        pass
    finally:
        sys.settrace(before)
    return made


def _meant(said: str, given: dict[str, Any], in_region: bool) -> Any:
    """The dtype that the words mean; None where they say nothing of such a call."""
    import torch

    words = re.fullmatch(r"the dtypes? of (.+?)( promoted.*?)?(, (?:if|unless) .+?)?(, outside autocast)?", said)
    assert words is not None, said
    names, promoted, condition, outside = words.groups()
    tensors = [eval(name, dict(given)) for name in re.findall("`(.+?)`", names)]
    if outside and in_region:
        return None
    if condition and "floating" in condition and not all(tensor.is_floating_point() for tensor in tensors):
        return None
    if condition and "bool" in condition and any(tensor.dtype == torch.bool for tensor in tensors):
        return None
    tensors += [torch.ones(1, dtype=getattr(torch, name)) for name in re.findall(r"\b\w*float\d+", promoted or "")]
    made = tensors[0].flatten()[:1] if tensors[0].dim() else tensors[0]
    with torch.autocast("cpu", enabled=False):
        return sum((tensor.flatten()[:1] if tensor.dim() else tensor for tensor in tensors[1:]), made).dtype
