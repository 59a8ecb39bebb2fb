"""DT502, DT503, DT506 and DT509 beyond what their examples and fixtures show: what their fixes keep, and where they have none."""

from __future__ import annotations

from textwrap import dedent

import pytest

from dtlint import Applicability, Diagnostic, discover
from dtlint.check.file import check_source
from dtlint.check.fix import fix_source
from dtlint.config import Settings
from dtlint.source.file import Source

RULES = discover()


def found(code: str, text: str) -> list[Diagnostic]:
    checked = check_source(Source.from_bytes(dedent(text).encode(), "old.py"), [RULES[code]], Settings(preview=True))
    assert checked.crashes == []
    return checked.diagnostics


def fixed(code: str, text: str, applicability: Applicability = Applicability.UNSAFE) -> str:
    source = Source.from_bytes(dedent(text).encode(), "old.py")
    result = fix_source(source, [RULES[code]], Settings(preview=True), applicability)
    assert result.failed is None
    return result.source.text


@pytest.mark.parametrize(
    ("imports", "kind"),
    [
        ("import torch", "torch.LongTensor"),
        ("import torch as th", "th.LongTensor"),
        ("from torch import LongTensor", "LongTensor"),
        ("from torch import LongTensor as Ids", "Ids"),
    ],
)
def test_a_type_is_known_by_every_spelling(imports: str, kind: str) -> None:
    text = f"{imports}\ndef f(x):\n    return x.unsqueeze(0).type({kind})\n"
    assert "def f(x):\n    return x.unsqueeze(0).long()\n" in fixed("DT502", text)


def test_nested_casts_are_both_fixed() -> None:
    before = """\
        import torch
        def f(x, mask):
            return (x.type(torch.FloatTensor) * mask.type(torch.FloatTensor)).type(torch.DoubleTensor)
        """
    assert "return (x.float() * mask.float()).double()" in fixed("DT502", before)


def test_a_comment_inside_the_call_is_not_lost() -> None:
    before = """\
        import torch
        def f(x):
            return x.type(
                torch.FloatTensor  # on the CPU
            )
        """
    text = fixed("DT502", before)
    assert "return x.float(" in text
    assert "# on the CPU" in text


def test_a_type_that_is_chosen_by_device_is_left_alone() -> None:
    text = """\
        import torch
        FloatTensor = torch.cuda.FloatTensor if torch.cuda.is_available() else torch.FloatTensor
        def f(x):
            return x.type(FloatTensor)
        """
    assert found("DT502", text) == []


def test_a_constructor_of_something_that_is_no_tensor_is_left_alone() -> None:
    assert found("DT502", "import torch\ndef f(rows):\n    return torch.LongTensor(rows)\n") == []


@pytest.mark.parametrize("quote", ['"', "'"])
def test_a_type_string_is_fixed_with_either_quote(quote: str) -> None:
    text = f"def f(x):\n    return x.type({quote}torch.cuda.ByteTensor{quote})\n"
    assert fixed("DT503", text) == "def f(x):\n    return x.byte()\n"


def test_numpy_gets_a_dtype_under_the_name_it_goes_by() -> None:
    before = """\
        import numpy
        import torch
        labels = torch.from_numpy(numpy.random.randint(
            0, 10, size=len("abc"),  # as many as letters
        ))
        """
    after = """\
        import numpy
        import torch
        labels = torch.from_numpy(numpy.random.randint(
            0, 10, size=len("abc"), dtype=numpy.int64,  # as many as letters
        ))
        """
    assert fixed("DT506", before, Applicability.SAFE) == dedent(after)


def test_a_permutation_has_no_dtype_to_give() -> None:
    text = "import numpy as np\nimport torch\norder = torch.from_numpy(np.random.permutation(10))\n"
    assert [item.fix for item in found("DT506", text)] == [None]


def test_a_list_that_a_test_asks_for_is_no_tensor() -> None:
    text = """\
        import torch
        def f(ids: torch.Tensor):
            if isinstance(ids, list):
                ids = torch.LongTensor(ids)
            return ids
        """
    assert found("DT502", text) == []


def test_only_lists_that_are_written_out_are_rewritten() -> None:
    before = """\
        from torch import FloatTensor, LongTensor
        a = FloatTensor([1, -2])
        b = LongTensor(rows)
        c = FloatTensor(3)
        """
    text = fixed("DT509", before, Applicability.SAFE)
    assert "a = torch.tensor([1, -2], dtype=torch.float32)" in text
    assert "b = LongTensor(rows)" in text
    assert "c = FloatTensor(3)" in text
