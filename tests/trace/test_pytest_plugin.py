"""The pytest plugin, as a user's own suite sees it."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dtlint.api import trace
from dtlint.pytest_plugin import OPTIONS, _too_old

MODEL = """
import pytest, torch
from torch import nn

class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(4))

    def forward(self, x):
        return x * self.scale
"""


@pytest.fixture(autouse=True)
def no_other_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)


QUIET = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
"""The plugin is imported by these tests already, which pytest warns of where dtlint was installed without its plugin."""


class Ran:
    """What a run of pytest left behind."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.ret, self.outlines = code, out.splitlines()
        self.stdout, self.stderr = (pytest.LineMatcher(text.splitlines()) for text in (out, err))

    def assert_outcomes(self, **expected: int) -> None:
        told = pytest.RunResult.parse_summary_nouns(self.outlines)
        assert {noun: count for noun, count in told.items() if noun != "warnings"} == expected, str(self.stdout)


def run(pytester: pytest.Pytester, source: str, *arguments: str) -> Ran:
    """Run pytest in a forked child: torch is imported there already, and what the run imports is gone with it."""
    pytester.makepyfile(test_it=MODEL + source)
    out, err = pytester.path / "out", pytester.path / "err"
    child = os.fork()
    if child == 0:
        code = 99
        try:
            for stream, path in ((1, out), (2, err)):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
            sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
            code = int(pytest.main(["-p", "dtlint.pytest_plugin", "-p", "no:cacheprovider", *QUIET, *arguments]))
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return Ran(os.waitstatus_to_exitcode(status), out.read_text(), err.read_text())


PARAMETRISED = """
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_forward(dtype):
    Norm()(torch.ones(2, 4, dtype=dtype))

def test_plain():
    assert 1 + 1 == 2
"""


def test_findings_are_told_once_a_place_below_the_summary(pytester: pytest.Pytester) -> None:
    result = run(pytester, PARAMETRISED + "\ndef test_fails():\n    assert not 'this'\n", "--dtlint")
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(
        [
            "FAILED test_it.py::test_fails*",
            "=* dtlint =*",
            "warning[[]DT905] test_it.py:10: float16 was raised to float32 by a float32 operand, `torch.ones(4)` at test_it.py:7, in mul in Norm, once",
            "    help: cast that operand to float16 where it is made*",
            "    in test_it.py::test_forward[[]dtype0], test_it.py::test_forward[[]dtype1]",
            "Found 1 place in 3 tests that ran torch.",
            "=* 1 failed, 4 passed*",
        ],
        consecutive=True,
    )


def test_it_is_quiet_where_all_is_well(pytester: pytest.Pytester) -> None:
    source = "\ndef test_one():\n    Norm()(torch.ones(4))\n"
    result = run(pytester, source, "--dtlint")
    assert result.outlines[-2] == "dtlint: 1 test ran torch, nothing found"
    assert "dtlint" not in run(pytester, source, "--dtlint", "-q").stdout.str()


AUTOCAST = """
def test_autocast():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        Norm()(nn.Linear(4, 4)(torch.ones(2, 4)))
"""


def test_notes_are_counted_and_listed_where_the_run_is_verbose(pytester: pytest.Pytester) -> None:
    counted = run(pytester, AUTOCAST, "--dtlint")
    assert counted.outlines[-2] == "dtlint: 1 test ran torch, nothing found but 1 note (-v lists it)"
    listed = run(pytester, AUTOCAST, "--dtlint", "-v")
    listed.stdout.fnmatch_lines(["info[[]DT905] test_it.py:10: *", "Found 1 place in 1 test that ran torch."])
    beside = run(pytester, AUTOCAST + PARAMETRISED.replace("Norm()(", "Norm().forward("), "--dtlint")
    assert "Found 1 place in 4 tests that ran torch." in beside.stdout.str()


def test_workers_send_what_they_found(pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    result = run(pytester, PARAMETRISED, "-p", "xdist.plugin", "-n", "2", "--dtlint")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["warning[[]DT905] test_it.py:10: *", "Found 1 place in 3 tests that ran torch."])


MARKED = """
@pytest.mark.dtlint(no_promotions=True)
class TestModel:
    @pytest.fixture(scope="class")
    def model(self):
        return Norm()

    @pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
    def test_forward(self, model, dtype):
        model(torch.ones(2, 4, dtype=dtype))

    @pytest.mark.dtlint(no_promotions=False, no_overflow=True)
    def test_nearer(self, model):
        model(torch.ones(4).half())

    @pytest.mark.xfail(strict=True)
    def test_known(self, model):
        model(torch.ones(4).half())
"""


def test_a_marker_holds_without_the_option_and_the_nearest_has_the_last_word(pytester: pytest.Pytester) -> None:
    result = run(pytester, MARKED)
    result.assert_outcomes(passed=2, failed=1, xfailed=1)
    result.stdout.fnmatch_lines(
        [
            "The test did not keep to @pytest.mark.dtlint(no_promotions=True)",
            "",
            "no_promotions: float16 was raised to float32 by a float32 operand, buffer Norm.scale, in mul in Norm, once",
            "  --> test_it.py:10:16",
            "*10 |         return x * self.scale",
            "help: cast that operand *",
        ]
    )
    assert "= dtlint =" not in result.stdout.str()


REFUSED = """
@pytest.mark.dtlint(no_promotion=True)
def test_misspelt(): ...

@pytest.mark.dtlint
def test_bare(): ...

@pytest.mark.dtlint("float32")
def test_by_place(): ...

@pytest.mark.dtlint(max_dtype="flaot32")
def test_dtype(): ...

@pytest.mark.dtlint(no_overflow=True, only="dtypes")
def test_never(): ...

@pytest.mark.dtlint(module=3)
def test_type(): ...
"""


def test_what_a_marker_cannot_mean_is_refused_before_the_test_runs(pytester: pytest.Pytester) -> None:
    result = run(pytester, REFUSED)
    result.assert_outcomes(errors=6)
    result.stdout.fnmatch_lines(
        [
            "@pytest.mark.dtlint knows no argument 'no_promotion'; did you mean no_promotions?",
            "@pytest.mark.dtlint takes arguments by name, and at least one: such as no_promotions=True",
            "@pytest.mark.dtlint takes arguments by name, and at least one: such as no_promotions=True",
            "*max_dtype 'flaot32' is no floating dtype to compute in; did you mean float32?",
            '*no_overflow can never fail with only="dtypes", which judges no values',
            "@pytest.mark.dtlint(module=3): *",
        ]
    )
    assert "Traceback" not in result.stdout.str() and "During handling" not in result.stdout.str()


FIXTURE = """
def test_asks(dtype_trace):
    Norm()(torch.ones(4).half())
    (promotion,) = dtype_trace.promotions
    assert promotion.module == "Norm"
    dtype_trace.expect(max_dtype="float32")

@pytest.mark.dtlint(module="0")
def test_looks_at_a_part(dtype_trace):
    nn.Sequential(nn.Identity(), Norm())(torch.ones(4).half())
    assert dtype_trace.promotions == []

def test_fails_as_asserted(dtype_trace):
    Norm()(torch.ones(4).half())
    dtype_trace.expect(no_promotions=True)
"""


def test_the_fixture_is_the_trace_of_the_body(pytester: pytest.Pytester) -> None:
    result = run(pytester, FIXTURE)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        [">       dtype_trace.expect(no_promotions=True)", "E * AssertionError: no_promotions: float16 was raised*"],
        consecutive=True,
    )


OTHERS = """
import unittest
from torch.utils._python_dispatch import TorchDispatchMode

class Counts(TorchDispatchMode):
    calls = 0
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls += 1
        return func(*args, **(kwargs or {}))

def test_own_mode():
    with Counts() as counts:
        torch.ones(2) + 1
    assert counts.calls == 2

def test_own_mode_left_on(request):
    counts = Counts()
    counts.__enter__()
    request.addfinalizer(lambda: counts.__exit__(None, None, None))
    torch.ones(2) + 1
    assert counts.calls == 2

def test_compiles():
    assert torch.compile(lambda x: x * 2, backend="eager")(torch.ones(2)).sum() == 4

class TestCase(unittest.TestCase):
    def test_method(self):
        Norm()(torch.ones(4).half())

    def test_fails(self):
        self.assertEqual(torch.ones(2).sum(), 3)

def test_own_trace():
    import dtlint
    with dtlint.trace() as t:
        Norm()(torch.ones(4).half())
    assert len(t.promotions) == 1

@pytest.fixture
def traced():
    import dtlint
    with dtlint.trace() as t:
        yield t

def test_traced_by_a_fixture(traced):
    Norm()(torch.ones(4).half())
    assert len(traced.promotions) == 1

def test_raises():
    torch.ones(2, 2).half() @ torch.ones(2, 2)

def test_skips():
    pytest.skip("as it wants")
"""


def test_tests_do_what_they_do_without_it(pytester: pytest.Pytester) -> None:
    result = run(pytester, OTHERS, "--dtlint")
    result.assert_outcomes(passed=6, failed=2, skipped=1)
    assert "__torch_dispatch__" not in result.stdout.str()
    result.stdout.fnmatch_lines(
        [
            "error[[]DT914] test_it.py:*",
            "warning[[]DT905] test_it.py:10: *",
            "    in test_it.py::TestCase::test_method",
            "not traced, as another trace was running, as that of a fixture: test_it.py::test_traced_by_a_fixture",
        ]
    )


FAILS_ANYWAY = """
@pytest.mark.dtlint(no_promotions=True)
def test_both():
    Norm()(torch.ones(4).half())
    assert "its own" == "reason"

@pytest.mark.dtlint(no_promotions=True)
def test_untold():
    import dtlint
    with dtlint.trace():
        Norm()(torch.ones(4).half())
"""


def test_its_own_failure_counts_and_the_expectation_stands_below(pytester: pytest.Pytester) -> None:
    result = run(pytester, FAILS_ANYWAY)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        ["E * AssertionError: assert 'its own' == 'reason'", "-* dtlint -*", "no_promotions: *"]
    )
    result.stdout.fnmatch_lines(["E * RuntimeError: dtlint is tracing already; end the outer trace*"])


def test_rules_can_fail_every_test(pytester: pytest.Pytester) -> None:
    result = run(pytester, PARAMETRISED, "--dtlint-fail-on", "promotion")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["The test did not keep to --dtlint-fail-on promotion"])
    refused = run(pytester, PARAMETRISED, "--dtlint-fail-on", "promotoin")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    refused.stderr.fnmatch_lines(
        ["ERROR: --dtlint-fail-on: no rule of a trace is called 'promotoin'; did you mean 'promotion'?"]
    )


LIGHT = """
import sys, pytest
from dtlint.pytest_plugin import ASKED

def pytest_unconfigure(config):
    print("loaded", sorted(name for name in sys.modules if name.partition(".")[0] in ("dtlint", "torch", "libcst")))
    print("registered", config.pluginmanager.hasplugin("dtlint-summary"))

@pytest.fixture(autouse=True)
def asked(request):
    yield
    assert ASKED not in request.node.stash
"""


def test_it_is_light_where_nothing_asks_for_it(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(LIGHT)
    (tmp_path / "test_it.py").write_text("def test_it(): ...\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "dtlint.pytest_plugin", "--strict-markers", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "loaded ['dtlint', 'dtlint.pytest_plugin']" in done.stdout
    assert "registered False" in done.stdout


LATE = """
import pytest

@pytest.mark.dtlint(no_promotions=True)
def test_late():
    import torch
    torch.ones(4).half() * torch.ones(4)
"""


def test_torch_may_come_within_the_test(tmp_path: Path) -> None:
    (tmp_path / "test_late.py").write_text(LATE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "dtlint.pytest_plugin", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1
    assert "no_promotions: float16 was raised to float32" in done.stdout


def test_the_marker_takes_all_that_says_what_a_trace_looks_at() -> None:
    assert set(OPTIONS) == set(inspect.signature(trace).parameters) - {"function", "time", "sketch", "shadow"}


def test_a_pytest_that_is_too_old_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def hookimpl(hookwrapper: bool = False) -> None:
        """Of pluggy 1.1."""

    assert _too_old(pytest.hookimpl) == ""
    assert _too_old(hookimpl) == "dtlint needs pluggy 1.2 or newer: pip install -U pluggy"
    monkeypatch.delattr(pytest, "StashKey")
    assert _too_old(pytest.hookimpl).startswith("dtlint needs pytest 7 or newer, and this is ")
