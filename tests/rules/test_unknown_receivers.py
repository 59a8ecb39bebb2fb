"""A fix is safe on what is known to be a tensor; a class of somebody else's may have a method of the same name."""

from __future__ import annotations

import pytest

from dtlint.diagnostic import Applicability
from tests.rules.bench import Bench

BENCH = Bench("DT100", "DT599", "import numpy as np\nimport torch\nimport torch.nn.functional as F\n")

KNOWN = {
    "DT102": "def f(x: torch.Tensor):\n    return x.type(torch.float16, inplace=True)\n",
    "DT107": "def f():\n    return np.zeros(3).astype(torch.float32)\n",
    "DT417": "def f(x: torch.Tensor):\n    return x.softmax(-1).log()\n",
    "DT309": "def f(x: torch.Tensor):\n    return x.int().mean()\n",
}
UNKNOWN = {
    "DT102": "def f(x):\n    return x.type(torch.float16, inplace=True)\n",
    "DT107": "def f(x):\n    return x.astype(torch.float32)\n",
    "DT417": "def f(x):\n    return x.softmax(-1).log()\n",
}


def applicability(code: str, text: str) -> Applicability:
    (found,) = BENCH.found(code, text)
    assert found.fix is not None
    return found.fix.applicability


@pytest.mark.parametrize(("code", "text"), KNOWN.items(), ids=KNOWN)
def test_it_is_safe_on_a_tensor(code: str, text: str) -> None:
    assert applicability(code, text) is Applicability.SAFE


@pytest.mark.parametrize(("code", "text"), UNKNOWN.items(), ids=UNKNOWN)
def test_it_is_unsafe_on_what_is_not_known(code: str, text: str) -> None:
    assert applicability(code, text) is Applicability.UNSAFE
