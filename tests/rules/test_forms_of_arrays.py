"""Forms of bugs of ops that half does not have and of names that NumPy removed, as people write them, and right code.

In bad code, `# <-` stands on each line that is flagged, and no other line is.
"""

from __future__ import annotations

import pytest
from bench import Bench

from dtlint import Severity

HEAD = "import numpy as np\nimport torch\nimport torch.nn.functional as F\n"
BENCH = Bench("DT311", "DT510", HEAD)

BAD = {
    "DT311": (
        """
        def whiten(x: torch.Tensor, n: int) -> torch.Tensor:
            r = torch.randn(n, x.shape[-1], device=x.device, dtype=x.dtype)
            gram = torch.matmul(r, r.t())
            return gram.cholesky().to(torch.float32).cholesky_inverse().to(x.dtype)  # <-
        """,
        """
        def solve(x: torch.Tensor, n: int) -> torch.Tensor:
            system = torch.eye(n, device=x.device, dtype=x.dtype)
            inverse = torch.linalg.inv(system).float().to(dtype=x.dtype)  # <-
            return inverse @ x
        """,
    ),
    "DT510": (
        """
        KINDS = {4: np.int32, 5: np.int64, 6: np.float, 7: np.double}  # <-
        """,
        """
        import numpy

        def load(rows):
            means = numpy.array(rows).astype(numpy.float)  # <-
            return torch.as_tensor(means, dtype=torch.float32)
        """,
        """
        def cells(points, size):
            inside = np.zeros(len(points), dtype=np.bool)  # <-
            return inside, np.round(points / size).astype(np.int)  # <-
        """,
        """
        def is_float(kind):
            return np.issubdtype(kind, np.float_) or kind is np.bool8  # <-
        """,
    ),
}
GOOD = {
    "DT311": (
        """
        def whiten(x: torch.Tensor, n: int) -> torch.Tensor:
            r = torch.randn(n, x.shape[-1], device=x.device, dtype=x.dtype)
            gram = torch.matmul(r, r.t())
            return gram.to(torch.float32).cholesky().cholesky_inverse().to(x.dtype)
        """,
        """
        def inverse(covariance: torch.Tensor) -> torch.Tensor:
            return torch.linalg.inv(covariance).float()
        """,
        """
        def inverse(x: torch.Tensor, covariance: torch.Tensor) -> torch.Tensor:
            return torch.linalg.inv(covariance.double()).float().to(x.dtype)
        """,
        """
        def inverse(x: torch.Tensor, intrinsics: torch.Tensor, compute: torch.dtype) -> tuple[torch.Tensor, ...]:
            wide, other = x.float(), x.to(compute)
            return (
                torch.linalg.inv(wide).float().to(x.dtype),
                torch.linalg.inv(other).float().to(x.dtype),
                torch.linalg.inv(intrinsics).float().to(x.dtype),
            )
        """,
        """
        def inverse(x: torch.Tensor) -> torch.Tensor:
            assert x.dtype == torch.float32
            return torch.linalg.inv(x).float().to(x.dtype)
        """,
        """
        def inverse(x: torch.Tensor) -> torch.Tensor:
            dtype, x = x.dtype, upcast(x)
            return torch.linalg.inv(x).float().to(x.dtype).to(dtype)
        """,
    ),
    "DT510": (
        """
        import jax.numpy as np

        def cells(points):
            return points.astype(np.float)
        """,
        """
        np.float = float

        def load(rows):
            return np.array(rows, dtype=np.float)
        """,
        """
        from numpy.exceptions import AxisError

        def inside(points):
            return np.zeros(len(points), dtype=np.bool), np.zeros(3, dtype=np.long)
        """,
        """
        def inside(points):
            return np.astype(points, np.bool)
        """,
        """
        import contextlib
        import pytest

        def test_aliases_are_gone():
            with pytest.raises(AttributeError):
                np.float_
            with contextlib.suppress(AttributeError):
                kind = np.float
        """,
        """
        def whole(x):
            try:
                kind = np.int
            except AttributeError:
                kind = int
            return x.astype(kind), np.int_(3), np.float32(x), x.float(), np.random.long
        """,
    ),
}


test_bad_code_is_flagged_where_it_says, test_good_code_is_left_alone = BENCH.tests(BAD, GOOD)


@pytest.mark.parametrize(
    ("alias", "now"),
    [
        ("np.float", "float"),
        ("np.bool", "np.bool_"),
        ("np.unicode", "str"),
        ("np.float_", "np.float64"),
        ("np.int0", "np.intp"),
    ],
)
def test_an_alias_becomes_what_it_stood_for(alias: str, now: str) -> None:
    assert BENCH.fixed("DT510", f"x = np.zeros(3, dtype={alias})\n").endswith(f"x = np.zeros(3, dtype={now})\n")


def test_the_long_of_c_is_not_written_as_another_integer() -> None:
    text = "x = np.zeros(3, dtype=np.long)\n"
    assert BENCH.fixed("DT510", text) == text


@pytest.mark.parametrize(
    ("alias", "severity", "when"),
    [
        ("np.float", Severity.ERROR, "from NumPy 1.24 on"),
        ("np.float_", Severity.WARNING, "from NumPy 2.0 on"),
        ("np.bool", Severity.INFO, "in NumPy 1.24 to 1.26"),
    ],
)
def test_an_alias_raises_in_these_releases(alias: str, severity: Severity, when: str) -> None:
    (found,) = BENCH.found("DT510", f"x = np.zeros(3, dtype={alias})\n")
    assert (found.severity, found.message) == (severity, f"`{alias}` raises AttributeError {when}")


def test_an_alias_is_not_written_as_what_the_file_means_something_else_by() -> None:
    text = "from mytypes import float\nx = np.zeros(3, dtype=np.float)\n"
    assert BENCH.fixed("DT510", text).endswith(text)
