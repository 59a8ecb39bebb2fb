"""Under an assumption public functions are held to the dtypes that it names: what breaks there, and not in float32, is reported."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dtlint import Applicability, RuntimeRule, discover
from dtlint.check.file import check_source
from dtlint.check.run import run
from dtlint.config import ConfigError, Configuration, Settings
from dtlint.dtypes.assumption import ASSUMPTIONS, parse_assumption
from dtlint.source.file import Source

if TYPE_CHECKING:
    from dtlint.diagnostic import Diagnostic

RULES = [rule for rule in discover().values() if not issubclass(rule, RuntimeRule) and rule.default]


def check(text: str, *names: str) -> list[Diagnostic]:
    settings = Settings(supports=tuple(map(parse_assumption, names)))
    checked = check_source(Source.from_bytes(textwrap.dedent(text).encode(), "a.py"), RULES, settings)
    assert checked.crashes == []
    return checked.diagnostics


def found(text: str, *names: str) -> list[tuple[str, int]]:
    return [(one.code, one.location.span.line) for one in check(text, *names)]


ATTENTION = """
import torch


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = (q @ k.transpose(-1, -2)).float().softmax(-1)
    return scores @ v
"""


def test_an_operator_that_refuses_two_dtypes_is_reported_with_the_assumption() -> None:
    assert check(ATTENTION) == []
    (one,) = check(ATTENTION, "half")
    assert (one.code, one.message) == ("DT301", "Under half: `@` raises for float32 and float16")


def test_what_is_reckoned_with_by_its_bits_is_no_floating_tensor() -> None:
    hashing = """
        import torch


        def hashed(keys: torch.Tensor) -> torch.Tensor:
            keys = keys ^ (keys >> 16)
            return keys * 2146121005
    """
    assert found(hashing, "half", "double") == []
    assert found(hashing.replace("keys ^ (keys >> 16)", "keys + 1"), "half", "double") == [("DT402", 7)]


def test_each_place_is_reported_once_whichever_assumptions_show_it() -> None:
    assert found(ATTENTION, "half", "bfloat16") == [("DT301", 7)]
    mask = """
        import torch


        def masked(x: torch.Tensor) -> torch.Tensor:
            return x.triu().masked_fill(x == 0, 1e39)
    """
    assert found(mask, "half", "bfloat16", "double") == []  # float32 ends before that, too


def test_a_fix_under_an_assumption_is_never_safe() -> None:
    (one,) = check(ATTENTION, "half")
    assert one.fix is None or one.fix.applicability is not Applicability.SAFE


def test_what_is_wrong_in_float32_as_well_is_no_matter_of_an_assumption() -> None:
    text = """
        import torch


        def look_up(table: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
            return torch.gather(table, 0, index)
    """
    assert check(text, "half", "bfloat16", "double", "mixed") == []


def test_weights_have_the_dtype_too_and_buffers_with_them() -> None:
    text = """
        import torch
        from torch import nn


        class Head(nn.Module):
            def __init__(self, width: int) -> None:
                super().__init__()
                self.fc = nn.Linear(width, width)
                self.register_buffer("scale", torch.ones(width))
                self.shift = torch.ones(width)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.fc(x * self.scale)

            def shifted(self, x: torch.Tensor) -> torch.Tensor:
                return self.fc(x + self.shift)
    """
    assert found(text, "half") == [("DT302", 17)]
    assert found(text, "mixed") == [("DT302", 14), ("DT302", 17)]
    assert found(text, "autocast") == []


@pytest.mark.parametrize(
    ("name", "body", "expected"),
    [
        ("half", "return x / x.pow(2).mean(-1, keepdim=True).sqrt()", ["DT408"]),
        ("bfloat16", "return x / x.pow(2).mean(-1, keepdim=True).sqrt()", []),
        ("half", "return (x / x.float().pow(2).mean(-1, keepdim=True).sqrt()).to(x.dtype)", []),
        ("half", "return x.masked_fill(x.isnan(), -1e9)", ["DT401"]),
        ("half", "return x.masked_fill(x.isnan(), torch.finfo(x.dtype).min)", []),
        ("bfloat16", "return x.masked_fill(x.isnan(), -1e9)", []),
        ("half", "return torch.linalg.inv(x)", ["DT311"]),
        ("half", "return torch.linalg.inv(x.float()).to(x.dtype)", []),
        ("double", "return torch.linalg.inv(x)", []),
        ("half", "if x.dtype == torch.float16:\n        x = x.float()\n    return torch.linalg.inv(x).half()", []),
        ("half", "return x * torch.ones(3)", ["DT317"]),
        ("double", "return x * torch.ones(3)", []),
        ("half", "return x * torch.ones(3, dtype=x.dtype)", []),
    ],
)
def test_what_breaks_and_the_guards_that_keep_it_from_breaking(name: str, body: str, expected: list[str]) -> None:
    text = f"import torch\n\n\ndef function(x: torch.Tensor) -> torch.Tensor:\n    {body}\n"
    assert [one.code for one in check(text, name)] == expected


def test_private_functions_are_judged_by_the_calls_in_view() -> None:
    text = """
        import torch


        def _inverse(x: torch.Tensor) -> torch.Tensor:
            return torch.linalg.inv(x)


        def solved(x: torch.Tensor) -> torch.Tensor:
            return _inverse(x.float()).to(x.dtype)
    """
    assert check(text, "half") == []


def test_numbers_indices_and_masks_stay_what_they_are() -> None:
    text = """
        import torch
        from torch import nn


        class Embed(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.table = nn.Embedding(8, 8)

            def forward(self, tokens, mask: torch.BoolTensor, count: int) -> torch.Tensor:
                return self.table(tokens).masked_fill(mask[..., None], 0.0)[:count]
    """
    assert check(text, "half", "bfloat16", "double") == []


@pytest.mark.parametrize(
    "function",
    [
        "def rotated(dim):\n    return torch.exp(torch.arange(0, dim // 2) * 0.5 / dim)",
        "def bands(count, lowest):\n    return torch.zeros(count, dtype=torch.float64) * lowest",
        "def starts(lengths):\n    return F.pad(torch.cumsum(lengths, dim=1).long(), (1, 0))",
        "def order(tasks: torch.Tensor):\n    return torch.arange(int(tasks.max().item()), dtype=tasks.dtype)",
        "def cut(x: torch.Tensor, ends: torch.Tensor):\n"
        "    return x[: ends[0]].sum(), torch.arange(9, dtype=ends.dtype) < 5",
    ],
)
def test_sizes_lengths_and_indices_are_no_floating_tensors_by_their_use(function: str) -> None:
    assert check(f"import torch\nimport torch.nn.functional as F\n\n\n{function}\n", "half", "double") == []


@pytest.mark.parametrize(
    "function",
    [
        "def logits(x):\n    return x.masked_fill(x > 0, -1e9)",
        "def normed(x, eps=1e-12):\n    return x / (x.norm(dim=-1, keepdim=True) + eps)",
        "def inverse(x):\n    return torch.linalg.inv(x)",
        "def whitened(x):\n    return _whitened(x)\n\n\ndef _whitened(y):\n    return torch.linalg.inv(y)",
        "class Gaussian:\n    def __init__(self, spread):\n        self.mean = torch.exp(spread)\n\n"
        "    def sample(self):\n        return self.mean + torch.randn(3)",
        "class Hook(Base):\n    def _normed(self, x: torch.Tensor):\n        return torch.linalg.inv(x)",
    ],
)
def test_parameters_without_annotations_are_judged_by_what_is_done_with_them(function: str) -> None:
    text = f"import torch\nimport torch.nn.functional as F\nfrom elsewhere import Base\n\n\n{function}\n"
    assert check(text) == []
    assert len(check(text, "half")) == 1


def test_masks_by_what_is_done_with_them_are_no_floating_tensors() -> None:
    text = """
        import torch


        def filled(x, mask, chosen, keep):
            x = torch.where(keep, x, x * 0)
            return x.masked_fill(~mask, 0.0).gather(1, chosen) + torch.zeros(2, dtype=mask.dtype)
    """
    assert check(text, "half", "double") == []


def test_what_pytest_calls_is_given_what_fixtures_say() -> None:
    text = """
        import pytest
        import torch


        @pytest.fixture
        def inverse(x):
            return torch.linalg.inv(x)


        class TestInverse:
            def test_inverse(self, x):
                assert torch.linalg.inv(x).dim() == 2


        def test_solve(x, y):
            assert torch.linalg.solve(x, y).dim() == 2


        def solved(x, y):
            return torch.linalg.solve(x, y)
    """
    assert len(check(text, "half")) == 4
    settings = Settings(supports=(parse_assumption("half"),))
    checked = check_source(
        Source.from_bytes(textwrap.dedent(text).encode(), "test_a.py", Path("test_a.py")), RULES, settings
    )
    assert [one.location.span.line for one in checked.diagnostics] == [21]


def test_a_loss_is_float32_by_choice_whatever_it_is_multiplied_with() -> None:
    text = """
import torch
import torch.nn.functional as F


def weighted(logits: torch.Tensor, labels: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return (F.cross_entropy(logits.float(), labels, reduction="none") * weight).sum()


def present(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return F.binary_cross_entropy_with_logits(logits.float(), target.float())


def doubled(logits: torch.Tensor) -> torch.Tensor:
    return logits.float() * 2
"""
    assert found(text, "half") == [("DT317", 15)]


TRAINER = """
import torch
from torch import nn


class Trainer:
    def __init__(self, rate: float = 1e-3):
        self.model = nn.Linear(4, 4)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=rate)
        self.scaler = torch.amp.GradScaler("cpu")

    def step(self) -> None:
        with torch.autocast("cpu", dtype=torch.float16):
            loss = self.model(torch.randn(2, 4)).float().pow(2).mean()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()


def main() -> None:
    Trainer().step()
"""


@pytest.mark.parametrize("name", ["half", "autocast", "double"])
def test_a_class_that_is_no_module_makes_its_models_for_itself(name: str) -> None:
    assert found(TRAINER, name) == []
    assert found(TRAINER.replace("class Trainer", "class Trainer(nn.Module)"), "double") == [("DT302", 14)]


def test_what_is_only_passed_on_as_a_dtype_or_a_device_is_no_tensor() -> None:
    text = """
        import torch
        from torch import nn


        class Rotary(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.register_buffer("rates", torch.ones(8))

            def forward(self, places, device, dtype):
                rates = self.rates[:, None].float().to(device)
                return (rates @ places[None, :].float()).cos().to(dtype=dtype)
    """
    assert check(text, "half", "double") == []
    assert found(text.replace(".to(device)", ".to(places)"), "half") == [("DT301", 13)]


def test_a_model_that_follows_its_input_into_half_is_what_was_asked_for() -> None:
    text = """
        import torch
        from torch import nn


        def scored(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
            model.to(x)
            return model(x)
    """
    assert check(text, "half", "bfloat16") == []


def test_a_result_of_a_dtype_that_the_author_chose_is_no_surprise() -> None:
    text = """
        import torch


        def angles(places: torch.Tensor, width: int) -> torch.Tensor:
            rates = torch.arange(0, width, 2, dtype=torch.float32)
            return (places[:, None] * rates).float()


        def totals(x: torch.Tensor) -> torch.Tensor:
            result = torch.zeros_like(x, dtype=torch.float32)
            return result
    """
    assert check(text, "half") == []
    assert found(text.replace(".float()", ""), "half") == [("DT317", 7)]


def test_an_assumption_is_told_once_though_two_contexts_show_it() -> None:
    text = """
        import torch


        def variance(values: torch.Tensor, weights: torch.Tensor, unbiased: bool = True) -> torch.Tensor:
            if unbiased:
                return values.sum() / (weights.sum() + 1e-8)
            return values.mean()


        def whitened(x: torch.Tensor, weights: torch.Tensor | None = None) -> torch.Tensor:
            spread = x.var() if weights is None else variance(x - x.mean(), weights)
            return (x - x.mean()) / spread


        def scored(x: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
            return whitened(x, weights=weights)
    """
    (one,) = [one for one in check(text, "half") if one.code == "DT403"]
    assert one.message == "Under half: 1e-08 is 0 in float16: adding it changes nothing"


def test_a_bound_that_is_zero_in_half_is_told_as_a_bound() -> None:
    text = """
        import torch


        def reciprocal(x: torch.Tensor) -> torch.Tensor:
            return 1 / x.abs().clamp(min=1e-12)
    """
    (one,) = check(text, "half")
    assert one.message == "Under half: 1e-12 is 0 in float16: the bound keeps nothing away from 0"


def test_a_list_that_is_made_an_array_is_no_tensor() -> None:
    text = "import numpy as np\nimport torch\n\n\ndef features(raw):\n    return torch.from_numpy(np.asarray(raw))\n"
    assert check(text, "bfloat16") == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("halff", "did you mean 'half'?"),
        ("int3", "torch has no such dtype; there are half, bfloat16, double, autocast, mixed, uint8, int-targets"),
        ("float12", "has 'float12', but torch has no such dtype"),
        ("int8", "has 'int8', which is no assumption; there are half, bfloat16"),
        ("float32", "is what is checked without an assumption"),
        ("autocast=cuda:float12", "torch has no dtype 'float12'; autocast for cuda"),
        ("autocast=mps", "autocast is for cuda or cpu, as in autocast=cuda:float16"),
        ("autocast=cuda:float12", "autocast for cuda takes float16 or bfloat16"),
        ("half=float16", "is no assumption"),
    ],
)
def test_an_assumption_that_does_not_exist_is_refused_with_what_there_is(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason.replace("?", r"\?")):
        parse_assumption(text)


def test_regions_by_device_and_dtype() -> None:
    assert parse_assumption("autocast").region == ("cuda", "float16")
    assert parse_assumption(" autocast=cpu ").region == ("cpu", "bfloat16")
    assert parse_assumption("autocast=cuda:bfloat16").region == ("cuda", "bfloat16")
    assert parse_assumption("autocast=cuda:half").region == ("cuda", "float16")
    assert parse_assumption("half") is ASSUMPTIONS["half"]
    assert parse_assumption("float16") is ASSUMPTIONS["half"]
    assert parse_assumption("torch.float64") is ASSUMPTIONS["double"]


def _project(root: Path, settings: str) -> Path:
    (root / "pyproject.toml").write_text(f"[tool.dtlint]\n{settings}\n")
    (root / "kernels").mkdir()
    for name in ("kernels/attention.py", "other.py"):
        (root / name).write_text(ATTENTION)
    return root


def _files(root: Path, configuration: Configuration) -> list[str]:
    files = sorted(root.rglob("*.py"))
    rules = {rule.code: rule for rule in RULES}
    outcome = run(files, configuration.settings_for, rules)
    assert outcome.errors == []
    return [one.location.path.rpartition("/")[2] for one in outcome.diagnostics]


def test_what_a_project_supports_stands_in_its_settings(tmp_path: Path) -> None:
    root = _project(tmp_path, 'supports = ["half"]')
    assert _files(root, Configuration()) == ["attention.py", "other.py"]
    assert _files(root, Configuration(assume=(ASSUMPTIONS["autocast"],))) == []


def test_and_by_path(tmp_path: Path) -> None:
    root = _project(tmp_path, 'per-file-supports = {"kernels/*" = ["bfloat16"]}')
    assert _files(root, Configuration()) == ["attention.py"]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ('supports = ["halff"]', "supports has 'halff', which is no assumption; did you mean 'half'"),
        ('supports = "half"', "supports must be a list of assumptions"),
        ('per-file-supports = {"nowhere/*" = ["half"]}', "has 'nowhere/.*', which matches no Python file"),
        ('per-file-supports = ["half"]', "per-file-supports must be a table"),
    ],
)
def test_wrong_settings_are_refused(tmp_path: Path, settings: str, reason: str) -> None:
    root = _project(tmp_path, settings)
    with pytest.raises(ConfigError, match=reason):
        Configuration().settings_for(root)


def test_numbers_that_are_given_by_default_are_taken_for_what_is_given() -> None:
    text = """
        import torch
        from torch import nn


        class Norm(nn.Module):
            def __init__(self, eps: float = 1e-8) -> None:
                super().__init__()
                self.eps = eps

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return x / (x.abs().mean() + self.eps).sqrt()


        def masked(x: torch.Tensor, mask: torch.BoolTensor, fill: float = -1e32, slope: float = 0.0) -> torch.Tensor:
            if slope > 0:
                x = torch.linalg.inv(x)
            return x.masked_fill(mask, fill)
    """
    assert found(text, "half") == [("DT403", 12), ("DT311", 17), ("DT401", 18)]
    assert found(text, "bfloat16") == [("DT311", 17)]
    assert found(text) == []


def test_what_is_used_as_an_index_is_one_and_what_follows_is_judged() -> None:
    text = """
        import torch
        import torch.nn.functional as F
        from torch import nn


        class Embed(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.table = nn.Embedding(8, 8)

            def forward(self, tokens):
                return torch.linalg.inv(self.table(tokens))

            def declared(self, tokens: torch.LongTensor) -> torch.Tensor:
                return torch.linalg.inv(self.table(tokens * 2))

            def passed_on(self, tokens):
                return torch.linalg.inv(self._looked_up(tokens))

            def _looked_up(self, tokens):
                return self.table(tokens)


        def gathered(x: torch.Tensor, where: torch.Tensor) -> torch.Tensor:
            return torch.linalg.inv(x.gather(1, where))


        def loss(x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            return torch.linalg.inv(x) + F.nll_loss(x, labels)
    """
    assert found(text, "half") == [*(("DT311", line) for line in (13, 16, 19, 26, 30)), ("DT407", 30)]
    assert found(text, "double") == []


def test_an_image_of_uint8_meets_weights_that_are_not() -> None:
    text = """
        import torch
        from torch import nn


        class Net(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.conv = nn.Conv2d(3, 8, 3)

            def forward(self, image: torch.Tensor) -> torch.Tensor:
                return self.conv(image)

            def scaled(self, image: torch.Tensor) -> torch.Tensor:
                return self.conv(image / 255)
    """
    assert found(text, "uint8") == [("DT302", 12)]
    assert check(text) == []


def test_what_forward_is_given_is_a_tensor_though_nothing_says_so() -> None:
    text = """
        import torch
        from elsewhere import Base


        class Layer(Base):
            def forward(self, x):
                return torch.linalg.inv(x)

            def solve(self, x):
                return x
    """
    assert found(text, "half") == [("DT311", 8)]


def test_a_loss_may_be_float32_whatever_it_is_of() -> None:
    text = """
        import torch
        import torch.nn.functional as F

        def contrastive(a: torch.Tensor, b: torch.Tensor):
            logits = a @ b.T
            return F.cross_entropy(logits.float(), torch.arange(len(a), device=a.device))
    """
    assert check(text, "half") == []


def test_what_is_given_has_dimensions_so_that_a_norm_in_float32_reaches_the_layer_behind() -> None:
    text = """
        import torch
        from torch import nn

        class Norm(nn.Module):
            def __init__(self, width: int) -> None:
                super().__init__()
                self.weight = nn.Parameter(torch.ones(width))

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                h = x.float()
                h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)
                return self.weight * h

        class Block(nn.Module):
            def __init__(self, width: int) -> None:
                super().__init__()
                self.norm, self.out = Norm(width), nn.Linear(width, width)

            def forward(self, x):
                return self.out(self.norm(x))
    """
    assert found(text, "half") == [("DT317", 13), ("DT302", 21)]


def test_what_stands_behind_an_operator_that_raises_is_judged_as_if_it_were_mended() -> None:
    text = """
        import torch


        def root(x: torch.Tensor) -> torch.Tensor:
            return torch.linalg.cholesky(x)


        def solved(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            lower = root(x)
            z = torch.linalg.solve_triangular(lower, y, upper=False)
            return z @ torch.ones(3)
    """
    assert found(text, "half") == [("DT311", 6), ("DT311", 11), ("DT301", 12)]
    assert found(text, "double") == [("DT301", 12)]


def test_what_is_not_declared_is_a_tensor_where_torch_takes_nothing_else() -> None:
    text = """
        import torch


        def determinant(x):
            return torch.slogdet(x)


        def projected(x, y):
            return (x - y) @ torch.eye(3)


        def decomposed(x):
            if x.shape[-1] > 3:
                return torch.linalg.qr(x.cpu())
            return torch.linalg.qr(x.transpose(0, 1).flip(0))
    """
    assert found(text, "half") == [("DT311", 6), ("DT301", 10), ("DT311", 15), ("DT311", 16)]


def test_where_the_dtype_was_left_is_told_through_calls_loops_and_containers() -> None:
    text = """
        import torch


        def _cast(x: torch.Tensor) -> torch.Tensor:
            return x.float()


        def _both(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return _cast(x), y


        def similarity(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            x, y = _both(x, y)
            total = x.sum(-1)
            for _ in range(3):
                total = total + 1
            return total.reshape(-1)[0]


        def stacked(x: torch.Tensor) -> torch.Tensor:
            parts = [x * torch.arange(3.0), torch.ones(3)]
            return torch.stack(parts)


        def restored(x: torch.Tensor) -> torch.Tensor:
            return (_cast(x) * 2).to(x.dtype)
    """
    assert found(text, "half") == [("DT317", 6), ("DT317", 22)]
    assert found(text, "bfloat16") == [("DT317", 6), ("DT317", 22)]


def test_a_buffer_of_another_dtype_that_is_written_into_leaves_the_dtype_where_that_happens() -> None:
    text = """
        import torch


        def means(x: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
            made, other = torch.zeros(count), torch.zeros(count)
            for place in range(count):
                made[place] = x[place].mean()
            return made, other


        def total(x: torch.Tensor) -> torch.Tensor:
            sums = torch.zeros(3)
            sums += x.sum(0)
            return sums
    """
    assert found(text, "half") == [("DT317", 8), ("DT317", 14)]
    assert found(text, "double") == [("DT317", 8), ("DT317", 14)]


def test_a_dtype_that_is_left_on_one_path_is_told_unless_it_may_be_a_cast_that_is_undone() -> None:
    text = """
        import torch


        def scaled(x: torch.Tensor, weighted: bool) -> torch.Tensor:
            if weighted:
                x = x * torch.linspace(0, 1, x.shape[-1])
            return x + 1


        def wide(x: torch.Tensor, upcast: bool) -> torch.Tensor:
            before = x.dtype
            if upcast:
                x = x.float()
            x = x.exp()
            if upcast:
                x = x.to(before)
            return x
    """
    assert found(text, "half") == [("DT317", 7)]


def test_a_private_method_that_is_given_nothing_gives_what_its_object_holds() -> None:
    text = """
        import torch
        from torch import nn


        class Mixing(nn.Module):
            def __init__(self, count: int) -> None:
                super().__init__()
                self.entries = nn.Parameter(torch.zeros(count))

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                lower, upper = self._factors()
                return torch.linalg.inv(lower) @ x

            def _factors(self):
                lower = self.entries.new_zeros(3, 3)
                return lower, lower.mT
    """
    assert found(text, "half") == [("DT311", 13)]


@pytest.mark.parametrize("name", [*ASSUMPTIONS])
def test_a_file_without_functions_of_its_own_is_read_under_each_assumption(name: str) -> None:
    assert found("import torch\n\nprint(torch.cuda.is_available(), torch.zeros(3))\n", name) == []


@pytest.mark.parametrize(
    "function",
    [
        "def unravel(indices, shape):\n    return torch.unravel_index(indices, shape)",
        "def noise(x, device=None):\n    if device is None:\n        device = 'cuda'\n    return torch.randn(4, device=device)",
        "def draw(shape=torch.Size([])):\n    return torch.rand(shape).double().float()",
        "def picture(array):\n    return torch.Tensor(array[:, :, None].transpose((2, 0, 1)))",
        "def column(x):\n    if isinstance(x, list):\n        x = x[0]\n    return torch.tensor(x, dtype=torch.float)",
    ],
)
def test_what_is_no_tensor_is_not_taken_for_a_floating_one(function: str) -> None:
    assert found(f"import torch\n\n\n{function}\n", "half") == []


def test_a_tensor_that_may_have_no_dimensions_is_not_said_to_promote() -> None:
    text = """
        import torch
        from torch import nn


        class Attention(nn.Module):
            def __init__(self, settings):
                super().__init__()
                self.query = nn.Linear(8, 8)
                self.scaling = torch.sqrt(torch.as_tensor(settings["scale"]).float())

            def forward(self, x):
                scores = self.query(x) / self.scaling
                return scores @ x.transpose(-1, -2)
    """
    assert found(text, "half") == []


def test_what_numbers_alone_are_given_to_leaves_no_dtype() -> None:
    text = """
        import numpy as np
        import torch


        def positions(length: int, augment: bool):
            places = 1.0 * torch.arange(length)
            return (places + np.random.uniform(-1, 1, size=[length]) if augment else places).cos().float()
    """
    assert found(text, "double") == []


def test_what_is_written_into_a_tensor_takes_its_dtype() -> None:
    text = """
        import torch


        def add_noise(waves):
            out = waves.clone()
            out[0, :8] = waves.abs().mean() * torch.rand(8, device=waves.device)
            return out
    """
    assert found(text, "half") == []


@pytest.mark.parametrize(("pairs", "expected"), [("zip(fake, real)", []), ("range(1000)", [("DT412", 8)])])
def test_a_total_over_what_a_function_is_given_has_a_few_rounds(pairs: str, expected: list[tuple[str, int]]) -> None:
    text = f"""
        import torch


        def agreement(fake, real):
            total = fake.new_zeros(())
            for _ in {pairs}:
                total += (fake * real).mean()
            return total
    """
    assert found(text, "half") == expected


def test_cuda_compares_with_bounds_in_float32() -> None:
    text = "import torch\n\n\ndef bounded(x: torch.Tensor):\n    return x{}.clamp(min=-1e6)\n"
    assert [(one.code, one.severity.value) for one in check(text.format(""), "half")] == [("DT402", "info")]
    assert [(one.code, one.severity.value) for one in check(text.format(".cpu()"), "half")] == [("DT402", "warning")]
    assert check(text.format(".cuda()"), "half") == []


def test_a_helper_that_fails_in_float32_for_one_caller_fails_in_half_for_another() -> None:
    text = """
        import torch


        def _mm(a, b):
            return a @ b


        def rotate(x: torch.Tensor):
            return _mm(x, torch.eye(4))


        def project(x: torch.Tensor):
            return _mm(x, torch.ones(4, 4, dtype=torch.float64))
    """
    assert [code for code, _ in found(text, "half")] == ["DT301"]


def test_a_function_inside_another_works_on_what_that_is_given() -> None:
    text = """
        import torch


        def outer(x: torch.Tensor):
            def at(i: int):
                return x[i] * torch.ones(4)
            return torch.stack([at(i) for i in range(4)])
    """
    assert [code for code, _ in found(text, "half")] == ["DT317"]
