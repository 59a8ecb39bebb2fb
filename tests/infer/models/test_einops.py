"""einops keeps the dtypes of tensors: each program's variables are compared with what einops documents."""

from __future__ import annotations

import textwrap

from tests.infer.programs import known

PROGRAM = """
    from einops import einsum, rearrange, reduce, repeat
    from einops.layers.torch import Rearrange, Reduce
    I = torch.ones(2, 2, dtype=torch.int32)
    a = rearrange(H, "a -> a 1")
    b = repeat(D, "a -> a b", b=2)
    c = reduce(H, "a -> 1", "mean")
    d = reduce(I, "a b -> a", "max")
    e = reduce(I, "a b -> a", "sum")
    f = einsum(D, D, "a, b -> a b")
    net = nn.Sequential(Rearrange("a -> a 1"), Reduce("a b -> a", "sum"))
    g = net(H)
    h = rearrange([H, H], "b a -> a b")
"""


def test_einops() -> None:
    found = known(textwrap.dedent(PROGRAM))
    assert found['rearrange(H, "a -> a 1")'] == "float16"
    assert found['repeat(D, "a -> a b", b=2)'] == "float64"
    assert found['reduce(H, "a -> 1", "mean")'] == "float16"
    assert found['reduce(I, "a b -> a", "max")'] == "int32"
    assert 'reduce(I, "a b -> a", "sum")' not in found
    assert found['einsum(D, D, "a, b -> a b")'] == "float64"
    assert found["net(H)"] == "float16"
    assert found['rearrange([H, H], "b a -> a b")'] == "float16"


SHAPES = """
    from einops import rearrange, reduce, repeat
    from einops.layers.torch import Rearrange
    scale = torch.tensor(2.0, dtype=torch.float64)
    wide = torch.ones(4, 4, 4, 4)
    a = rearrange(wide, "b c (h p) w -> b (c h) p w") * D[:1]
    b = reduce(wide, "b c h w -> ", "sum") * H
    c = Rearrange("b ... -> ... b")(wide) * scale
    d = repeat(scale, "-> b c", b=2, c=2) * S
"""


def test_patterns_say_how_many_dimensions_there_are() -> None:
    found = known(textwrap.dedent(SHAPES))
    assert found['rearrange(wide, "b c (h p) w -> b (c h) p w") * D[:1]'] == "float64"
    assert found['reduce(wide, "b c h w -> ", "sum") * H'] == "float16"
    assert found['Rearrange("b ... -> ... b")(wide) * scale'] == "float32"
    assert found['repeat(scale, "-> b c", b=2, c=2) * S'] == "float64"
