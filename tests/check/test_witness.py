"""The witness of a finding: where the dtypes come from; under an assumption the steps from what a function is given."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from dtlint import RuntimeRule, discover
from dtlint.check.cache import decode, encode
from dtlint.check.file import check_source
from dtlint.config import Settings
from dtlint.dtypes.assumption import parse_assumption
from dtlint.source.file import Source

if TYPE_CHECKING:
    from dtlint.diagnostic import Diagnostic

RULES = [rule for rule in discover().values() if not issubclass(rule, RuntimeRule) and rule.default]
IMPORTS = "import torch\nfrom torch import nn\n"


def under(text: str, name: str) -> list[Diagnostic]:
    settings = Settings(supports=(parse_assumption(name),))
    source = Source.from_bytes((IMPORTS + textwrap.dedent(text)).encode(), "a.py")
    return check_source(source, RULES, settings).diagnostics


def steps(text: str, name: str = "half") -> list[tuple[int, str]]:
    """The lines of the only finding's witness, with what is said of each."""
    (one,) = under(text, name)
    assert decode(encode([one])) == [one]
    notes = [note for note in one.notes if note.step is not None]
    assert [note.step for note in notes] == list(range(1, len(notes) + 1))
    assert {note.location.span.line for note in notes} <= {line for line, _ in one.lines}
    return [(note.location.span.line, note.message) for note in notes]


def test_the_operands_of_two_dtypes_each_have_their_way() -> None:
    text = """
        def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            scores = (q @ k.transpose(-1, -2)).float().softmax(-1)
            return scores @ v
    """
    assert steps(text) == [
        (4, "`q` is given in float16"),
        (4, "`v` is given in float16"),
        (5, "float16 becomes float32 here"),
        (5, "`scores` is float32"),
    ]


def test_a_call_that_leads_there_is_a_step_between_the_functions() -> None:
    text = """
        def _inverse(matrix: torch.Tensor) -> torch.Tensor:
            return torch.linalg.inv(matrix)


        def solved(x: torch.Tensor) -> torch.Tensor:
            scaled = x * 2
            return _inverse(scaled)
    """
    assert steps(text) == [
        (8, "`x` is given in float16"),
        (9, "`scaled` is float16"),
        (10, "called here, with `matrix` in float16"),
    ]


def test_a_method_is_called_on_its_object() -> None:
    text = """
        class Solver:
            def _inverse(self, matrix: torch.Tensor) -> torch.Tensor:
                return torch.linalg.inv(matrix)

            def solve(self, x: torch.Tensor) -> torch.Tensor:
                return self._inverse(matrix=x)
    """
    assert steps(text) == [(8, "`x` is given in float16"), (9, "called here, with `matrix` in float16")]


def test_weights_and_other_tensors_of_a_module_are_shown_where_it_gets_them() -> None:
    text = """
        class Head(nn.Module):
            def __init__(self, width: int) -> None:
                super().__init__()
                self.fc = nn.Linear(width, width)
                self.shift = torch.ones(width)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                shifted = x + self.shift
                return self.fc(shifted)
    """
    assert steps(text) == [
        (7, "`self.fc` has float16 weights"),
        (8, "`self.shift` is float32"),
        (11, "`shifted` is float32"),
    ]


def test_a_factory_that_is_told_the_dtype_of_an_input_leads_to_that() -> None:
    text = """
        def bounds(x: torch.Tensor) -> torch.Tensor:
            options = {"dtype": x.dtype, "device": x.device}
            low = torch.zeros(3, **options)
            low[0] = -1e9
            return low
    """
    assert steps(text) == [(4, "`x` is given in float16"), (6, "`low` is float16")]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("for one in x:\n        y = torch.linalg.inv(one)\n    return y", [(4, "`x` is given in float16")]),
        (
            "a, b = x.chunk(2)\n    return torch.linalg.inv(b)",
            [(4, "`x` is given in float16"), (5, "`b` is float16")],
        ),
        ("x += 1\n    return torch.linalg.inv(x)", [(4, "`x` is given in float16")]),
        ("return torch.linalg.inv(torch.ones(3, 3, dtype=torch.half) * x)", [(4, "`x` is given in float16")]),
    ],
)
def test_whatever_binds_a_variable_is_gone_behind(body: str, expected: list[tuple[int, str]]) -> None:
    found = steps(f"\ndef function(x: torch.Tensor) -> torch.Tensor:\n    {body}\n")
    assert [one for one in found if one in expected] == expected


def test_a_finding_without_an_assumption_has_no_steps() -> None:
    text = "import torch\nx = torch.ones(3, dtype=torch.half)\nx.half()\ny = torch.zeros(3).half() @ torch.ones(3)\n"
    found = check_source(Source.from_bytes(text.encode(), "a.py"), RULES, Settings()).diagnostics
    assert found
    assert all(note.step is None for one in found for note in one.notes)


def origins(text: str) -> list[tuple[int, str]]:
    """The lines of the notes of the only finding without an assumption, with what is said of each."""
    source = Source.from_bytes((IMPORTS + textwrap.dedent(text)).encode(), "a.py")
    (one,) = check_source(source, RULES, Settings()).diagnostics
    return [(note.location.span.line, note.message) for note in one.notes]


def test_operands_of_two_dtypes_are_shown_where_they_are_made() -> None:
    text = """
        def mixed(n: int) -> torch.Tensor:
            w = torch.zeros(n, dtype=torch.float64)
            x = torch.ones(n, dtype=torch.float32)
            return (w * 2) @ x
    """
    assert origins(text) == [(5, "`w` is float64"), (6, "`x` is float32")]


def test_a_comparison_is_where_a_mask_comes_from() -> None:
    text = """
        def accuracy(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            right = logits.argmax(-1) == labels
            return right.mean()
    """
    assert origins(text) == [(5, "`right` is bool")]


def test_an_attribute_is_shown_where_the_class_sets_it() -> None:
    text = """
        class Scaled:
            def __init__(self) -> None:
                self.scale = torch.ones(3, dtype=torch.float64)

            def scaled(self, n: int) -> torch.Tensor:
                return torch.zeros(n, dtype=torch.float32) @ self.scale
    """
    assert origins(text) == [(6, "`self.scale` is float64")]


def test_weights_whose_dtype_callers_decide_have_no_origin() -> None:
    text = """
        def apply(layer: nn.Linear, values) -> torch.Tensor:
            x = values.double()
            net = nn.Linear(4, 4)
            return net(x)
    """
    assert origins(text) == [(5, "`x` is float64")]


def test_the_steps_lead_through_the_call_that_the_finding_is_about() -> None:
    text = """
        import functools
        import torch.nn.functional as F
        def l1_loss(predictions, targets):
            loss = functools.partial(F.l1_loss, reduction="none")
            return compute(loss, predictions, targets)
        def mse_loss(predictions, targets):
            loss = functools.partial(F.mse_loss, reduction="none")
            return compute(loss, predictions, targets)
        def compute(loss_fn, predictions, targets):
            loss = loss_fn(predictions, targets)
            return loss.mean()
    """
    (line, said), *_ = steps(text)
    assert (line, said) == (9, "`predictions` is given in float16")


def test_a_call_with_another_dtype_in_the_file_is_told_at_that_call() -> None:
    text = """
        class Layer(nn.Module):
            def __init__(self):
                super().__init__()
                self.attention = nn.MultiheadAttention(8, 2)
            def forward(self, x: torch.Tensor, past: torch.Tensor):
                return self._block(x, past)
            def _block(self, x, past):
                keys = torch.cat([past, x], dim=1)
                return self.attention(x, keys, keys)[0]
        class Encoder(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = Layer()
            def forward(self, x: torch.Tensor):
                x = x + torch.arange(8, device=x.device) / 8
                return self.layer(x, torch.zeros_like(x))
    """
    (one,) = under(text, "half")
    assert (one.code, one.location.span.line) == ("DT302", 19)
    assert steps(text)[0] == (18, "`x` is float32")
