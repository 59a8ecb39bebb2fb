"""How arguments meet parameters."""

from __future__ import annotations

from tests.infer.programs import known


def test_a_keyword_that_may_not_be_there_rules_no_call_out() -> None:
    program = """
        import json
        import random
        def make(dtype=torch.half):
            return torch.ones(2, dtype=dtype)
        def made(**given):
            if random.random() < 0.5:
                given.setdefault("size", json.loads("3"))
            return make(**given)
        y = made(dtype=torch.float64)
        y.sum()
    """
    assert known(program)["make(**given)"] == "float64"


def test_a_keyword_that_may_not_be_there_leaves_what_is_given_by_position() -> None:
    program = """
        import json, random
        def f(dtype=torch.half):
            return torch.ones(2, dtype=dtype)
        given = {}
        if random.random() < 0.5:
            given["dtype"] = torch.float64
        y = f(torch.float32, **given)
        z = f(**given)
        y.sum()
    """
    found = known(program)
    assert found["f(torch.float32, **given)"] == "float32"
    assert found["f(**given)"] == "float16|float64"


def test_a_keyword_that_is_written_rules_a_call_out_whatever_it_is() -> None:
    program = """
        import json
        class Plain(nn.Module):
            def forward(self, x):
                return x.double()
        class Masked(nn.Module):
            def forward(self, x, mask=None):
                return x.half()
        net = Masked() if json.loads("1") else Plain()
        y = net(torch.ones(2), mask=json.loads("null"))
        y.sum()
    """
    assert known(program)['net(torch.ones(2), mask=json.loads("null"))'] == "float16"
