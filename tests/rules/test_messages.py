"""What findings say of the code that they are about, and how severe they are."""

from __future__ import annotations

import pytest
from bench import Bench

from dtlint import Severity

bench = Bench(
    "DT101",
    "DT599",
    "import argparse\nimport math\nimport os\nimport sys\nimport numpy as np\nimport torch\n"
    "import torch.nn.functional as F\nfrom torch import Tensor, nn\n",
)


def test_the_dtype_of_what_is_computed_is_asked_for_in_brackets() -> None:
    (found,) = bench.found(
        "DT303",
        """
        class Loss(nn.Module):
            def weigh(self, logp: torch.Tensor, labels: torch.Tensor):
                return -logp * (labels > 0).float()
        """,
    )
    assert found.help is not None
    assert "`.to((-logp).dtype)`" in found.help


def test_a_narrow_index_that_may_be_one_number_is_a_warning() -> None:
    (found,) = bench.found("DT306", "def pick(x: Tensor, i: Tensor):\n    return x[i.to(torch.int8)]\n")
    assert (found.severity, "if it has dimensions" in found.message) == (Severity.WARNING, True)


def test_a_transform_on_the_cpu_is_told_of_the_cpu() -> None:
    text = "def spectrum(x: Tensor):\n    y = x{}\n    return torch.fft.fft(y)\n"
    (there,), (anywhere,) = (bench.found("DT311", text.format(moved)) for moved in (".cpu().detach()", ".detach()"))
    assert "on the CPU" in there.message and "CUDA" not in there.message
    assert "CUDA" in anywhere.message


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ("np.finfo(torch.tensor(0, dtype=x.dtype).numpy().dtype).min", "torch.finfo(x.dtype)"),
        ("torch.zeros(3, dtype=x.dtype).numpy()", ".float().numpy()"),
    ],
)
def test_limits_are_asked_of_torch_and_tensors_are_cast(made: str, told: str) -> None:
    (found,) = bench.found("DT313", f"def f(x):\n    return {made}\n")
    assert told in str(found.help)


def test_a_product_is_not_said_to_count() -> None:
    (found,) = bench.found("DT406", "x = torch.ones(300).bfloat16()\ntotal = x.prod()\n")
    assert found.message == "`prod` of a tensor that is bfloat16 gives the same: bfloat16 keeps 8 bits of it"


@pytest.mark.parametrize(
    ("given", "severity"),
    [
        ("'cuda'", Severity.ERROR),
        ("torch.device('cuda', 0)", Severity.ERROR),
        ("0", Severity.ERROR),
        ("device", Severity.WARNING),
        ("'cuda' if torch.cuda.is_available() else 'cpu'", Severity.WARNING),
    ],
)
def test_a_device_that_is_written_out_is_certain_to_raise(given: str, severity: Severity) -> None:
    text = f"def rows(ids, device):\n    return torch.LongTensor(ids, device={given})\n"
    assert [found.severity for found in bench.found("DT502", text)] == [severity]


@pytest.mark.parametrize(
    ("alias", "severity", "when"),
    [
        ("np.float", Severity.ERROR, "from NumPy 1.24 on"),
        ("np.float_", Severity.WARNING, "from NumPy 2.0 on"),
        ("np.bool", Severity.INFO, "in NumPy 1.24 to 1.26"),
    ],
)
def test_an_alias_raises_in_these_releases(alias: str, severity: Severity, when: str) -> None:
    (found,) = bench.found("DT510", f"x = np.zeros(3, dtype={alias})\n")
    assert (found.severity, found.message) == (severity, f"`{alias}` raises AttributeError {when}")
