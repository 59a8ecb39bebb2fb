"""What a round of a loop makes is told apart from what the rounds before it have made: programs compared with a run."""

from __future__ import annotations

import pytest

from tests.infer.programs import contradicted, known, loose, mistaken

pytest.importorskip("torch")

BLOCKS = """
    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2))
        def forward(self, x):
            return x * self.weight, x
    class Wide(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2).double())
        def forward(self, x):
            return x * self.weight
    class Block(nn.Module):
        def __init__(self, first):
            super().__init__()
            self.first = first
            self.layers = nn.ModuleList()
            self.layers.append(Plain())
            if not first:
                self.extra = H
            self.layers.append(Wide())
        def forward(self, x):
            x, y = self.layers[0](x)
            return self.layers[-1](y)
"""

PROGRAMS = {
    "a comprehension": """
        class Model(nn.Module):
            def __init__(self, n):
                super().__init__()
                self.blocks = nn.ModuleList([Block(i == 0) for i in range(n)])
            def forward(self, x):
                for block in self.blocks:
                    x = block(x)
                return self.blocks[-1](x)
        x = Model(2)(S)
        y = Model(100)(S)
    """,
    "a loop of which some rounds are left": """
        def blocks(n):
            made = []
            for i in range(n):
                block = Block(i == 0)
                if i == 3:
                    continue
                made.append(block)
                if i == 5:
                    break
            return made
        def last(n):
            for i in range(n):
                block = Block(i == 0)
                if i == 2:
                    return block
            return block
        x = blocks(3)[1](S)
        y = blocks(100)[1](S)
        z = last(100)(S)
        w = last(4)(S)
    """,
    "one round keeps what the one before has made": """
        def chain(n):
            kept = None
            for i in range(n):
                block = Block(False)
                if kept is not None:
                    kept.layers.append(block)
                    block.extra = D
                kept = block
            return kept
        def both(n):
            return [chain(2).extra * 1 for i in range(n)]
        a = chain(3).extra * 1
        b = chain(50).extra * 1
        c = both(3)[0]
    """,
    "a generator": """
        def blocks(n):
            for i in range(n):
                yield Block(i == 0)
        def run(n, x):
            for block in blocks(n):
                y = block(x)
            return y
        y = run(3, D)
        z = run(30, S)
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_known_is_what_runs(name: str) -> None:
    program = "\n".join((BLOCKS, PROGRAMS[name].replace("\n    ", "\n")))
    assert not contradicted(program)
    assert mistaken(program) == []
    assert loose(program).isdisjoint("wxyz")


def test_objects_of_several_rounds_are_several() -> None:
    """What is written to one of them may have been written to another."""
    program = """
        class Box:
            def __init__(self, x):
                self.x = x
        def boxes(n):
            return [Box(H) for _ in range(n)]
        several = boxes(3)
        several[0].x = D
        a = several[1].x * 1
        b = several[0].x * 1
    """
    assert not contradicted(program)
    assert known(program)["several[1].x * 1"] == "float16|float64"
