"""What the cast rules DT101 to DT106 say beyond where they say it: severities, causes, fixes, and figures that hold."""

from __future__ import annotations

import textwrap

import pytest

from dtlint import Applicability, Diagnostic, Severity, discover
from dtlint.check.file import check_source
from dtlint.check.fix import fix_source
from dtlint.config import Settings
from dtlint.source.file import Source

CASTS = [rule for code, rule in discover().items() if code in ("DT101", "DT103", "DT104", "DT105", "DT106")]
HEAD = "import torch\nfrom torch import nn\n"


def source_of(text: str) -> Source:
    return Source.from_bytes((HEAD + textwrap.dedent(text)).encode(), "example.py")


def found(text: str) -> list[Diagnostic]:
    checked = check_source(source_of(text), CASTS, Settings(preview=True))
    assert list(checked.crashes) == []
    return checked.diagnostics


def codes(text: str) -> list[str]:
    return [diagnostic.code for diagnostic in found(text)]


def fixed(text: str) -> str:
    result = fix_source(source_of(text), CASTS, Settings(preview=True), Applicability.UNSAFE)
    assert result.failed is None
    return result.source.text.removeprefix(HEAD)


NET = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 2)
"""


@pytest.mark.parametrize("cast", ["model.half()", "if args.half: model.half()"])
def test_half_for_inference_is_always_reported(cast: str) -> None:
    (diagnostic,) = found(
        f"""
        def classify(images, args):
            model = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).eval()
            {cast}
            return model(images)
        """
    )
    assert (diagnostic.code, diagnostic.severity, diagnostic.conditional) == ("DT101", Severity.INFO, False)


def test_a_trained_half_model_is_a_warning_that_shows_the_optimizer() -> None:
    (diagnostic,) = found(NET + "    net = Net().half()\n    opt = torch.optim.SGD(net.parameters(), lr=1.0)\n")
    assert diagnostic.severity is Severity.WARNING
    assert [note.message for note in diagnostic.notes] == ["its parameters are trained here"]
    assert "Adam" not in diagnostic.message


def test_a_half_model_that_only_runs_is_information() -> None:
    (diagnostic,) = found(NET + "    net = Net().eval().half()\n    net(torch.rand(2).half())\n")
    assert diagnostic.severity is Severity.INFO
    assert "autocast" in diagnostic.help


@pytest.mark.parametrize("optimizer", ["Adam", "RMSprop"])
def test_an_optimizer_is_blamed_for_its_eps_unless_one_is_given(optimizer: str) -> None:
    body = NET + f"    net = Net().half()\n    opt = torch.optim.{optimizer}(net.parameters(){{}})\n"
    assert f"the eps of {optimizer}, 1e-8" in found(body.format(""))[0].message
    assert "eps" not in found(body.format(", eps=1e-4"))[0].message


def test_what_is_undone_before_training_was_no_training_in_half() -> None:
    text = NET + "    net = Net().half()\n    net(x)\n    net.float()\n    opt = torch.optim.SGD(net.parameters())\n"
    assert [diagnostic.severity for diagnostic in found(text)] == [Severity.INFO]


@pytest.mark.parametrize("first", ["fit", "infer"])
def test_the_order_in_which_methods_stand_proves_nothing(first: str) -> None:
    fit = "        def fit(self):\n            return torch.optim.SGD(self.net.parameters())\n"
    infer = "        def infer(self, x):\n            return self.net.half()(x)\n"
    methods = fit + infer if first == "fit" else infer + fit
    trainer = f"    class Trainer:\n        def __init__(self):\n            self.net = Net()\n{methods}"
    assert [diagnostic.severity for diagnostic in found(NET + trainer)] == [Severity.INFO]


def test_optimizers_of_other_packages_may_keep_float32_weights() -> None:
    text = (
        "    from apex.optimizers import FusedAdam\n"
        + NET
        + "    net = Net().half()\n    opt = FusedAdam(net.parameters())\n"
    )
    assert [diagnostic.severity for diagnostic in found(text)] == [Severity.INFO]


def test_a_dtype_that_is_a_setting_is_not_commented_upon() -> None:
    assert codes(NET + "    net = Net().to(torch.half if fast else torch.float32)\n") == []


@pytest.mark.parametrize(
    "cast",
    [
        "x.char()",
        "x.type(torch.int8)",
        "x.type('torch.CharTensor')",
        "x.to('cpu', torch.int8)",
        "x.to(dtype=torch.int8)",
    ],
)
def test_every_spelling_of_an_int8_cast_is_seen(cast: str) -> None:
    assert codes(f"x = torch.randn(4)\ny = {cast}\n") == ["DT103"]


def test_the_figures_of_the_int8_rule_hold() -> None:
    torch = pytest.importorskip("torch")
    from dtlint_rules.dt103_bare_int8_cast import _BECOMES

    claims = {"int8": [(200.0, -56)], "uint8": [(300.0, 44), (-1.0, 255)], "int16": [(40000.0, -25536)]}
    assert claims.keys() == _BECOMES.keys()
    for name, pairs in claims.items():
        values = torch.tensor([value for value, _ in pairs] + [0.9, float("nan")])
        assert values.to(getattr(torch, name)).tolist() == [result for _, result in pairs] + [0, 0]
        assert all(f"{value} becomes {result}" in _BECOMES[name] for value, result in pairs)


@pytest.mark.parametrize(("dtype", "part"), [("float16", 4096), ("bfloat16", 512)])
def test_the_figures_of_the_training_rule_hold(dtype: str, part: int) -> None:
    torch = pytest.importorskip("torch")
    weights = torch.linspace(1, 1.99, 200).to(getattr(torch, dtype))
    for sign in (1, -1):
        assert torch.equal(weights + sign * weights / (part * 1.01), weights)
    assert not torch.equal(weights + weights * 4 / part, weights)
    assert torch.tensor(2.9e-8).to(torch.float16) == 0 != torch.tensor(3.1e-8).to(torch.float16)
    assert torch.tensor(1e-8, dtype=torch.float16) == 0


def test_a_discarded_cast_in_parentheses_is_assigned_before_them() -> None:
    assert fixed("x = torch.rand(2)\n(x\n .half())\n") == "x = torch.rand(2)\nx = (x\n .half())\n"


@pytest.mark.parametrize("statement", ["xs[0].half()", "nn.Linear(1, 1).weight.half()", "for x in xs:\n    x.half()"])
def test_a_discarded_cast_stays_where_assigning_would_not_help(statement: str) -> None:
    text = f"xs = torch.rand(2)\n{statement}\n"
    assert codes(text) == ["DT104"]
    assert fixed(text) == text


OUTER = """\
bank = torch.rand(2)
def f():
    {}
    class A:
        {}
"""


@pytest.mark.parametrize("statement", ["bank.half()", "bank.type(torch.half, inplace=True)"])
def test_assigning_does_not_make_a_local_variable_of_an_outer_one(statement: str) -> None:
    rules = [discover()[code] for code in ("DT102", "DT104")]

    def fix(declared: str) -> str:
        lines = [declared + statement] * 2
        source = source_of(OUTER.format(*lines))
        return fix_source(source, rules, Settings(preview=True), Applicability.UNSAFE).source.text

    assert fix("") == HEAD + OUTER.format(*[statement] * 2)
    assert fix("bank = torch.rand(2); ").count("; bank = bank.") == 2


@pytest.mark.parametrize("attribute", ["T", "mT", "H", "grad", "data", "computed"])
def test_a_computed_attribute_is_not_assigned(attribute: str) -> None:
    text = f"x = torch.rand(2)\nx.{attribute}.type(torch.half, inplace=True)\n"
    text += "class A:\n    @property\n    def computed(self):\n        return x\n"
    result = fix_source(source_of(text), [discover()["DT102"]], Settings(preview=True), Applicability.UNSAFE)
    assert result.source.text == HEAD + text
    assert [diagnostic.code for diagnostic in result.checked.diagnostics] == ["DT102"]


def test_a_parameter_is_not_replaced_by_a_tensor() -> None:
    text = "layer = nn.Linear(1, 1)\nlayer.weight.type(torch.half, inplace=True)\n"
    result = fix_source(source_of(text), [discover()["DT102"]], Settings(preview=True), Applicability.UNSAFE)
    assert result.source.text == HEAD + text


def test_a_model_that_is_cast_back_before_it_runs_is_no_half_model() -> None:
    body = NET + "    net = Net()\n    net.half()\n"
    assert codes(body + "    net.float()\n    net(x)\n") == []
    assert codes(body + "    net(x)\n    net.float()\n") == ["DT101"]


CAST_BACK = [
    "for n, p in net.named_parameters():\n    if 'norm' in n:\n        p.data = p.data.float()\n",
    "for m in net.modules():\n    if isinstance(m, nn.LayerNorm):\n        m.to(dtype=torch.float32)\n",
    "for m in net.modules():\n    if isinstance(m, nn.LayerNorm):\n        m.weight.data = m.weight.data.float()\n",
]
NOT_CAST_BACK = [
    "for m in net.modules():\n    m.half()\n",
    "for m in other.modules():\n    m.float()\n",
    "for n, p in net.named_parameters():\n    q = p.data.float()\n    print(n, q.norm())\n",
]
NORMED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.norm = nn.Linear(2, 2), nn.LayerNorm(2)
net, other = Net(), nn.Sequential(nn.Linear(2, 2))
"""


@pytest.mark.parametrize("loop", CAST_BACK)
def test_a_model_whose_norms_are_cast_back_is_not_half_as_a_whole(loop: str) -> None:
    assert codes(NORMED + "net.half()\n" + loop) == []
    assert codes(NORMED + loop + "net.half()\n") == ["DT101"]


@pytest.mark.parametrize("loop", NOT_CAST_BACK)
def test_a_loop_that_casts_nothing_back_leaves_the_model_half(loop: str) -> None:
    assert codes(NORMED + "net.half()\n" + loop) == ["DT101"]


def test_the_int8_rule_wraps_on_a_cpu_only() -> None:
    (diagnostic,) = found("x = torch.randn(4).char()\n")
    assert "on a CPU wraps around" in diagnostic.message


def test_a_partial_cast_may_raise() -> None:
    (diagnostic,) = found(
        "for n, p in nn.Linear(2, 2).named_parameters():\n    if 'bias' in n:\n        p.data = p.data.half()\n"
    )
    assert "may raise" in diagnostic.message


MODEL = "model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))\n"
LOOP = f"{MODEL}for p in model.parameters():\n"


@pytest.mark.parametrize(
    ("cast", "instead"),
    [
        ("p.data.half()", "model.half()"),
        ("p.to(torch.bfloat16)", "model.to(torch.bfloat16)"),
        ("p.data.type(torch.float64)", "model.to(torch.float64)"),
        ("p.data.to('cuda', torch.half, non_blocking=True)", "model.to('cuda', torch.half, non_blocking=True)"),
    ],
)
def test_a_loop_over_parameters_becomes_one_call(cast: str, instead: str) -> None:
    assert fixed(f"{LOOP}    p.data = {cast}\n") == f"{MODEL}{instead}\n"


@pytest.mark.parametrize(
    "body",
    [
        "    # to save memory\n    p.data = p.data.half()\n",
        "    p.data = p.data.half()\n    print(p)\n",
        "    p.data = p.data.detach().half()\n",
        "    p.data = p.data.to(torch.half, copy=p.is_leaf)\n",
    ],
)
def test_a_loop_that_does_more_is_flagged_and_left(body: str) -> None:
    assert codes(LOOP + body) == ["DT105"]
    assert fixed(LOOP + body) == LOOP + body


def test_a_layer_without_buffers_is_cast_whole_by_such_a_loop() -> None:
    assert codes("model = nn.Linear(2, 2)\nfor p in model.parameters():\n    p.data = p.data.half()\n") == []


def test_a_partial_cast_is_not_also_a_cast_of_parameters() -> None:
    text = "for n, p in nn.Linear(2, 2).named_parameters():\n    if 'bias' in n:\n        p.data = p.data.half()\n"
    assert codes(text) == ["DT106"]
