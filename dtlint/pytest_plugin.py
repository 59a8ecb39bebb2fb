"""The pytest plugin: `pytest --dtlint` traces each test, `@pytest.mark.dtlint` holds one to expectations, `dtype_trace` is its trace.

pytest imports this module in every run: it imports nothing of the tracer's before a test asks for a trace, and no torch; and
where pytest is too old for it, it is silent until somebody asks for it.
"""

from __future__ import annotations

import difflib
import threading
from contextlib import ExitStack
from inspect import signature
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from dtlint.api import Trace
    from dtlint.diagnostic import Diagnostic
    from dtlint.trace.expect import Expectations

__all__ = ["Asked", "dtype_trace"]

MARKER = "dtlint"

OPTIONS = ("steps", "every", "only", "watch", "module", "assume", "eager")
"""Arguments of the marker that `dtlint.trace()` takes as well: they say what to look at."""

NOTE = "info"
"""The severity of mere information."""

RANKS = {"error": 0, "warning": 1, NOTE: 2}
"""The order of severities."""

FINDINGS = "dtlint"
"""The attribute by which a test's report carries what its trace found, from xdist's workers as well."""

UNSEEN = "DT915"
"""The code of what was not seen, which finds nothing."""

MOST_TESTS = 2
"""Tests that are named with a finding; the rest is counted."""


class Asked:
    """What is asked of one test: its trace, and what it is expected to keep to."""

    def __init__(self, trace: Trace, expectations: Expectations, words: str) -> None:
        self.trace, self.expectations, self.words = trace, expectations, words
        """The words are those in which the expectations were written."""
        self.begun = False
        self.broken = ""
        """What the test did not keep to, as the text of its failure; "" while it keeps to all."""
        self.missed = ""
        """Why the test was not traced; "" if it was, or ran no torch."""
        self._thread = threading.get_ident()

    def begin(self) -> None:
        """torch is there: trace from here on, in the thread that runs the test."""
        if threading.get_ident() != self._thread:
            self.missed = "its first import of torch was in another thread"
            return
        try:
            self.trace.__enter__()
        except RuntimeError:
            self.missed = "another trace was running, as that of a fixture"
        else:
            self.begun = True

    def end(self, error: BaseException | None = None) -> None:
        """The test has ended, perhaps by an exception: judge it."""
        if self.begun:
            self.trace.__exit__(None if error is None else type(error), error, None)
        if not self.expectations.any:
            return
        if self.missed:
            self.broken = f"{self.words} could not be judged: {self.missed}"
        elif self.begun:
            from dtlint.report.unmet import text

            unmet = self.trace.unmet(self.expectations)
            self.broken = f"The test did not keep to {self.words}\n\n{text(unmet)}" if unmet else ""

    def findings(self) -> dict[str, Any]:
        """What the trace found, as plain data that xdist can send."""
        if not self.begun:
            return {"missed": self.missed}
        record = self.trace.record
        told = self.trace.diagnostics() if record.operators else []
        found = [_plain(one) for one in told if one.code != UNSEEN]
        return {"missed": "", "operators": record.operators, "found": found}


def _plain(one: Diagnostic) -> dict[str, Any]:
    return {
        "severity": one.severity.value,
        "code": one.code,
        "path": one.location.path,
        "line": one.location.span.line,
        "column": one.location.span.column,
        "message": one.message,
        "help": one.help,
    }


# -- releases of pytest ------------------------------------------------------------------------------------------------


def _too_old(marker: Any) -> str:
    """What is too old to wrap tests, in a sentence; "" where nothing is.

    Args:
        marker: pytest's `hookimpl`.
    """
    if not hasattr(pytest, "StashKey"):
        return f"dtlint needs pytest 7 or newer, and this is {pytest.__version__}: pip install -U pytest"
    if "wrapper" not in signature(marker).parameters:
        return "dtlint needs pluggy 1.2 or newer: pip install -U pluggy"
    return ""


TOO_OLD = _too_old(pytest.hookimpl)


def _wrapper(*, tryfirst: bool = False) -> Callable[[Any], Any]:
    """Marks a hook that wraps others; without it pytest would not load the plugin where that cannot be."""
    return (lambda hook: None) if TOO_OLD else pytest.hookimpl(wrapper=True, tryfirst=tryfirst)


ASKED: Any = None if TOO_OLD else pytest.StashKey[Asked]()


# -- options, the marker and the fixture -------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--dtlint` and `--dtlint-fail-on`."""
    group = parser.getgroup("dtlint", "dtypes of tensors, by dtlint")
    group.addoption(
        "--dtlint",
        action="store_true",
        help="trace each test that runs torch, and report below the summary where dtypes went wrong",
    )
    group.addoption(
        "--dtlint-fail-on",
        metavar="RULES",
        default="",
        help="as --dtlint, and fail each test in which one of these rules finds something: names or codes, by commas;"
        " `any` leaves out mere information",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known, and the report where it is asked for."""
    config.addinivalue_line(
        "markers",
        "dtlint(no_promotions, max_dtype, no_overflow, no_nonfinite, fail_on, module, watch, only, assume, steps, every,"
        " eager): trace the test and fail it if it does not keep to what is expected, as in no_promotions=True or"
        ' max_dtype="float32"; what dtlint.trace() takes says what to look at. See docs/pytest.md of dtlint.',
    )
    fail_on = config.getoption("dtlint_fail_on", "")
    if TOO_OLD and _every_test(config):
        raise pytest.UsageError(f"--dtlint: {TOO_OLD}")
    if fail_on:
        from dtlint.trace.expect import ExpectationError, Expectations

        try:
            Expectations.parse(fail_on=fail_on)
        except ExpectationError as error:
            raise pytest.UsageError(f"--dtlint-{error}".replace("fail_on", "fail-on")) from None
    if _every_test(config):
        config.pluginmanager.register(Summary(config), "dtlint-summary")


@pytest.fixture
def dtype_trace(request: pytest.FixtureRequest) -> Trace:
    """The trace of this test's body, a `dtlint.Trace`: ask it for `.promotions`, `.casts`, `.overflows`, or `.expect(...)`."""
    asked: Asked = request.node.stash[ASKED]
    return asked.trace


# -- one test ----------------------------------------------------------------------------------------------------------


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Refuse what the marker cannot mean, before the test runs."""
    wanted = "dtype_trace" in getattr(item, "fixturenames", ())
    marked = item.get_closest_marker(MARKER) is not None
    if TOO_OLD and (wanted or marked):
        pytest.fail(TOO_OLD, pytrace=False)
    if wanted or marked or _every_test(item.config):
        asked = _asked(item, wanted)
        if wanted or asked.expectations.any or _every_test(item.config):
            item.stash[ASKED] = asked


@_wrapper()
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Trace the body of the test. Its fixtures are not traced: one of a wider scope would tell of the first test alone."""
    asked = item.stash.get(ASKED, None)
    if asked is None:
        return (yield)
    from dtlint.trace.arrival import when_imported
    from dtlint.trace.ending import clean

    with ExitStack() as stack:
        if "dtype_trace" in getattr(item, "fixturenames", ()):
            asked.trace.__enter__()
            asked.begun = True
        else:
            stack.enter_context(when_imported("torch", asked.begin))
        try:
            result = yield
        except BaseException as error:
            asked.end(error)
            clean(error)
            raise
    asked.end()
    if asked.broken:
        pytest.fail(asked.broken, pytrace=False)
    return result


@_wrapper()
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Give the report of the test's call what its trace found."""
    report = yield
    asked = item.stash.get(ASKED, None) if call.when == "call" else None
    if asked is not None:
        if _every_test(item.config):
            setattr(report, FINDINGS, asked.findings())
        if asked.broken and asked.broken not in report.longreprtext:  # it failed of its own, and that counts
            report.sections.append(("dtlint", asked.broken))
        del item.stash[ASKED]
    return report


def _every_test(config: pytest.Config) -> bool:
    return bool(config.getoption("dtlint", False) or config.getoption("dtlint_fail_on", ""))


def _asked(item: pytest.Item, wanted: bool) -> Asked:
    """What the test's markers and the command line ask of it. A marker nearer to the test has the last word."""
    from dtlint.api import trace as tracing
    from dtlint.trace.expect import EXPECTED, Expectations

    given: dict[str, Any] = {}
    for mark in reversed(list(item.iter_markers(MARKER))):
        _refuse_unknown(mark, (*EXPECTED, *OPTIONS))
        given |= mark.kwargs
    words = f"@pytest.mark.{MARKER}({', '.join(f'{name}={value!r}' for name, value in given.items())})"
    everywhere = item.config.getoption("dtlint_fail_on", "")
    expected = {name: value for name, value in given.items() if name in EXPECTED}
    if everywhere and not expected:
        expected, words = {"fail_on": everywhere}, f"--dtlint-fail-on {everywhere}"
    try:
        trace = tracing(**{name: value for name, value in given.items() if name in OPTIONS})
        expectations = Expectations.parse(**expected)
        refused = expectations.refused_by(trace.options)
    except (ValueError, TypeError) as error:
        refused = str(error)
    if refused:
        pytest.fail(f"{words}: {refused}", pytrace=False)
    trace.here = item.config.invocation_params.dir
    trace.gives_way = not (wanted or expectations.any)
    return Asked(trace, expectations, words)


def _refuse_unknown(mark: pytest.Mark, known: tuple[str, ...]) -> None:
    if mark.args or not mark.kwargs:
        pytest.fail(
            f"@pytest.mark.{MARKER} takes arguments by name, and at least one: such as no_promotions=True",
            pytrace=False,
        )
    for name in mark.kwargs:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1, 0.5)
            advice = f"did you mean {near[0]}?" if near else f"use {', '.join(known)}"
            pytest.fail(f"@pytest.mark.{MARKER} knows no argument {name!r}; {advice}", pytrace=False)


# -- all tests ---------------------------------------------------------------------------------------------------------


class Summary:
    """Gathers what the traces of all tests found, and tells it once for each place."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.traced = 0
        """Tests that ran operators of torch."""
        self.found: dict[tuple[Any, ...], tuple[dict[str, Any], list[str]]] = {}
        """By code and place: the first of the gravest findings there, and the tests that have one as grave."""
        self.missed: dict[str, list[str]] = {}
        """Tests that were not traced, by the reason."""
        self.verbose = config.getoption("verbose") > 0
        """Are notes listed, rather than counted?"""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take up one test's findings; with xdist they come from its worker."""
        told = getattr(report, FINDINGS, None)
        if told is None:
            return
        if told["missed"]:
            self.missed.setdefault(told["missed"], []).append(report.nodeid)
        self.traced += bool(told.get("operators"))
        for one in told.get("found", ()):
            key = (one["code"], one["path"], one["line"], one["column"])
            known = self.found.get(key)
            if known is None or RANKS[one["severity"]] < RANKS[known[0]["severity"]]:
                self.found[key] = (one, [report.nodeid])
            elif one["severity"] == known[0]["severity"]:
                known[1].append(report.nodeid)

    @_wrapper(tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Generator[None, None, None]:
        """Below pytest's own summary."""
        yield
        quiet = terminalreporter.verbosity < 0
        listed = self._listed()
        if listed or self.missed:
            terminalreporter.write_sep("=", "dtlint")
            for line in self._lines(listed):
                terminalreporter.write_line(line)
        if not listed and not quiet:
            ran = f"{_count(self.traced, 'test')} ran torch"
            notes = f" but {self._notes()}" if self.found else ""
            terminalreporter.write_line(f"dtlint: {ran}, nothing found{notes}")

    def _listed(self) -> list[tuple[dict[str, Any], list[str]]]:
        """What is told of, the gravest first: notes only where the run is verbose."""
        found = [pair for pair in self.found.values() if self.verbose or pair[0]["severity"] != NOTE]
        return sorted(found, key=lambda pair: (RANKS[pair[0]["severity"]], -len(pair[1])))

    def _notes(self) -> str:
        """`3 notes (-v lists them)`, of what is mere information."""
        number = sum(one["severity"] == NOTE for one, _ in self.found.values())
        return f"{_count(number, 'note')} (-v lists {'it' if number == 1 else 'them'})"

    def _lines(self, listed: list[tuple[dict[str, Any], list[str]]]) -> Iterator[str]:
        from dtlint.report.legible import legible
        from dtlint.trace.words import in_package

        for one, tests in listed:
            yield f"{one['severity']}[{one['code']}] {in_package(one['path'])}:{one['line']}: {legible(one['message'])}"
            if one["help"]:
                yield f"    help: {legible(one['help'])}"
            yield f"    in {_named(tests)}"
        for reason, tests in self.missed.items():
            yield f"not traced, as {reason}: {_named(tests)}"
        if listed:
            notes = f", and {self._notes()}" if len(listed) < len(self.found) else ""
            yield f"Found {_count(len(listed), 'place')} in {_count(self.traced, 'test')} that ran torch{notes}."


def _named(tests: list[str]) -> str:
    different = list(dict.fromkeys(tests))
    more = len(different) - MOST_TESTS
    return ", ".join(different[:MOST_TESTS]) + (f" and {_count(more, 'more test')}" if more > 0 else "")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
