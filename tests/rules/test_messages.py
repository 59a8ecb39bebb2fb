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
