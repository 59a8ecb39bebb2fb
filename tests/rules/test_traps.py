"""The traps in which fixes and findings of other linters were caught, each with the test that dtlint is not."""

from __future__ import annotations

import pytest

from dtlint import Applicability, discover
from dtlint.check.file import check_source
from dtlint.check.fix import fix_source
from dtlint.config import Settings
from dtlint.source.file import Source

AMP, TYPE = discover()["DT501"], discover()["DT102"]


def fixed(text: str) -> str:
    result = fix_source(
        Source.from_bytes(text.encode(), "a.py"), [AMP, TYPE], Settings(preview=True), Applicability.UNSAFE
    )
    assert result.failed is None
    return result.source.text


def found(text: str) -> list[str]:
    checked = check_source(Source.from_bytes(text.encode(), "a.py"), [AMP, TYPE], Settings(preview=True))
    assert checked.crashes == []
    return [diagnostic.code for diagnostic in checked.diagnostics]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import torch as th\nth.cuda.amp.autocast()\n", 'import torch as th\nth.amp.autocast("cuda")\n'),
        ("from torch.cuda import amp\namp.autocast()\n", 'import torch\ntorch.amp.autocast("cuda")\n'),
        ("from torch.cuda.amp import autocast as ac\nac()\n", 'import torch\ntorch.amp.autocast("cuda")\n'),
        (
            "import torch\nscaler = torch.cuda.amp.GradScaler\ns = scaler()\n",
            'import torch\nscaler = torch.cuda.amp.GradScaler\ns = torch.amp.GradScaler("cuda")\n',
        ),
    ],
)
def test_an_alias_is_followed_and_the_fix_is_spelled_so_that_it_runs(before: str, after: str) -> None:
    assert fixed(before) == after


def test_a_fix_inside_another_is_applied_too() -> None:
    before = "import torch\nx = torch.zeros(2)\ny = x.type(torch.half, inplace=True).type(torch.float, inplace=True)\n"
    assert fixed(before) == "import torch\nx = torch.zeros(2)\ny = x.to(torch.half).to(torch.float)\n"


def test_arguments_that_are_passed_on_stay_behind_what_the_fix_adds() -> None:
    before = "import torch\n\ndef make(*args, **kwargs):\n    return torch.cuda.amp.GradScaler(*args, **kwargs)\n"
    after = 'import torch\n\ndef make(*args, **kwargs):\n    return torch.amp.GradScaler("cuda", *args, **kwargs)\n'
    assert fixed(before) == after


def test_arguments_that_are_not_seen_get_the_benefit_of_the_doubt() -> None:
    text = "import torch\n\ndef cast(x: torch.Tensor, **options):\n    return x.type(torch.half, **options)\n"
    assert found(text) == []


def test_a_fallback_for_an_older_torch_is_left_alone() -> None:
    text = "try:\n    from torch.amp import GradScaler\nexcept ImportError:\n    from torch.cuda.amp import GradScaler\nscaler = GradScaler()\n"
    assert found(text) == []
    assert fixed(text) == text


def test_a_statement_over_several_lines_keeps_its_form() -> None:
    before = "import torch\nscaler = (\n    torch.cuda.amp.GradScaler(\n        init_scale=2.0,\n        enabled=True,\n    )\n)\n"
    assert fixed(before) == (
        'import torch\nscaler = (\n    torch.amp.GradScaler(\n        "cuda",\n        init_scale=2.0,\n        enabled=True,\n    )\n)\n'
    )


def test_a_suppression_on_any_line_of_the_statement_counts() -> None:
    assert found("import torch\nscaler = torch.cuda.amp.GradScaler(\n    enabled=True,\n)  # noqa: DT501\n") == []


def test_comments_inside_a_call_stay() -> None:
    before = "import torch\ns = torch.cuda.amp.GradScaler(  # scales\n    enabled=True,  # always\n)\n"
    after = 'import torch\ns = torch.amp.GradScaler(  # scales\n    "cuda",\n    enabled=True,  # always\n)\n'
    assert fixed(before) == after


def test_the_comment_of_an_argument_that_goes_stays_or_nothing_is_fixed() -> None:
    head = "import torch\nx = torch.zeros(2)\n"
    assert fixed(head + "x = x.type(\n    torch.half,\n    inplace=True,  # at once\n)\n") == (
        head + "x = x.to(\n    torch.half,  # at once\n)\n"
    )
    text = head + "x = x.type(\n    torch.half,  # the dtype\n    inplace=True,  # at once\n)\n"
    assert found(text) == ["DT102"]
    assert fixed(text) == text


def test_fixes_that_overlap_are_all_applied_or_wait_for_the_next_round() -> None:
    before = "import torch\nwith torch.cuda.amp.autocast(), torch.cuda.amp.autocast(enabled=False): f(torch.cuda.amp.GradScaler())\n"
    after = fixed(before)
    assert "cuda.amp" not in after
    assert found(after) == []
    compile(after, "a.py", "exec")


def test_an_import_that_only_the_old_name_used_goes_with_it() -> None:
    assert fixed("import torch\nfrom torch.cuda import amp\ns = amp.GradScaler()\n") == (
        'import torch\ns = torch.amp.GradScaler("cuda")\n'
    )


def test_an_import_that_something_else_uses_stays() -> None:
    assert "from torch.cuda import amp" in fixed(
        "import torch\nfrom torch.cuda import amp\ns = amp.GradScaler()\nprint(amp)\n"
    )
