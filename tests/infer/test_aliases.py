"""Containers that have several names: what changes one changes what the others name.

As in `test_program`, each comment says what the expression before it is.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.infer.test_program import HEAD, hold

PROGRAMS = {
    "a slice of a list is given other items": """
        xs = [torch.ones(1), torch.ones(1)]
        xs[1:] = [torch.ones(1).half()]
        y = xs[1]  # float16|float32
    """,
    "a list that is in another": """
        row = [torch.ones(1)]
        table = [row, row]
        row[0] = torch.ones(1).half()
        y = table[1][0]  # float16
        rows = [[torch.ones(1)] for _ in range(2)]
        for row in rows:
            row[0] = row[0].half()
        y = rows[0][0]  # float16|float32
    """,
    "a dict that is in another": """
        state = {"model": {"weight": torch.ones(1)}}
        for part in state.values():
            for name in ("weight",):
                part[name] = part[name].half()
        y = state["model"]["weight"]  # float16
        model = state["model"]
        model["weight"] = torch.ones(1).int()
        y = model["weight"].abs()  # int32
        y = state["model"]["weight"]  # int32
        model.update(weight=torch.ones(1).bool())
        y = state["model"]["weight"]  # bool
        state["model"]["weight"] = torch.ones(1).double()
        y = state["model"]["weight"]  # float64
    """,
    "a list in a dict that a function fills": """
        log = {"loss": []}

        def add(name, value):
            log[name].append(value)

        log["loss"].append(torch.ones(1))
        y = log["loss"][-1]  # float32
        add("loss", torch.ones(1).half())
        y = log["loss"][-1]  # float16
    """,
    "lists of a global that a function changes, whatever it makes of them": """
        words = [["man", "women"], ["black", "white"]]

        def batch(size):
            for pair in words:
                for i in range(2):
                    pair[i] = pair[i] + "P" * (size - len(pair[i]))
            return torch.ones(size)  # float32

        y = batch(5)  # float32
    """,
    "a dict that takes another in": """
        settings = {"weight": torch.ones(1)}
        same = settings
        settings |= {"weight": torch.ones(1).half()}
        y = same["weight"]  # float16
    """,
    "a default is made once for all calls": """
        def first(x, seen=[]):
            seen.append(x)
            return seen[0]

        def plain(x, seen=[]):
            return x

        y = first(torch.ones(1))
        y = first(torch.ones(1).half())
        y.abs()  # float32
        y = plain(torch.ones(1).half())  # float16
    """,
    "a dict of a class is that of all its instances, and of the module": """
        settings = {"dtype": torch.float16}

        class Maker:
            settings = settings

            def widen(self):
                self.settings["dtype"] = torch.float64

        one, other = Maker(), Maker()
        y = torch.ones(1, dtype=settings["dtype"])  # float16
        one.widen()
        y = torch.ones(1, dtype=settings["dtype"])  # float64
        y = torch.ones(1, dtype=other.settings["dtype"])  # float64
    """,
    "a tensor that is given other data has them under all its names": """
        def halve(tensor):
            tensor.data = tensor.data.half()

        x, whole = torch.ones(1), torch.arange(2)
        same = x
        x.data = x.data.double()
        y = same  # float32|float64
        y = whole  # int64
        held = {"weight": torch.ones(1)}
        for weight in held.values():
            weight.data = weight.half()
        y = held["weight"]  # float16|float32
        z = torch.ones(1)
        halve(z)
        y = z  # float16|float32
    """,
    "a mode that only looks": """
        class Count(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                result = func(*args, **(kwargs or {}))
                return result

        with Count():
            y = torch.ones(2)  # float32
    """,
    "what stands behind a loop is reached by a break without its `else`": """
        def settle(x, turns):
            for _ in range(turns):
                if x.sum() > 100:
                    x = x.double()
                    break
            else:
                x = x.half()
            return x  # float16|float64

        settle(torch.ones(1), int(open("turns").read()))
    """,
    "a test is asked before each turn": """
        x = torch.ones(2).half()
        while x.sum() < 10 and not (
            x  # float16|float32|float64
        ).isnan().any():
            x = x.float() if unknown() else x.double()
        y = x  # float16|float32|float64
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_has_several_names_changes_under_all(name: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(HEAD + textwrap.dedent(PROGRAMS[name]) + "y = torch.ones(1)\ny.sum()\n")
    hold(program)
