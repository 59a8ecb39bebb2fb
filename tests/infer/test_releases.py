"""How tests of torch's release come out on every torch in use, the oldest of which is 2.4."""

from __future__ import annotations

import ast

import pytest

from dtlint.infer.semantics.releases import always

TESTS = {
    'V(torch.__version__) >= V("1.6.0")': True,
    'torch.__version__ >= "2.4"': True,
    'V("1.6") <= V(torch.__version__)': True,
    'LooseVersion(torch.__version__) < LooseVersion("2.0")': False,
    'tuple(map(int, torch.__version__.split(".")[:2])) >= (1, 10)': True,
    'not torch.__version__ < "1.10"': True,
    'V(torch.__version__) > V("2.4")': None,
    'V(torch.__version__) >= V("2.6")': None,
    'V(torch.__version__) == V("1.6")': None,
    'V(torchvision.__version__) >= V("0.9")': None,
    "V(torch.__version__) >= minimum": None,
    "use_amp": None,
}


@pytest.mark.parametrize(("test", "expected"), TESTS.items(), ids=TESTS)
def test_it_is_known_where_all_agree(test: str, expected: bool | None) -> None:
    assert always(ast.parse(test, mode="eval").body) is expected
