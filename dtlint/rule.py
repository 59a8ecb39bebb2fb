"""What a rule is, and how rules are found.

A rule is one class in one module: its code, its documentation, its promise (severity, fix) and its judgement are
one object. Nothing that can be derived from it is written down twice.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dtlint.diagnostic import Applicability, Diagnostic, Fix, Severity
from dtlint.unexpected import in_one_line

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import ModuleType

    from dtlint.diagnostic import Span
    from dtlint.infer.facts import ModuleFacts, Step
    from dtlint.source.place import Place
    from dtlint.source.settings_file import SettingsFile
    from dtlint.trace.record import TraceRecord

__all__ = [
    "ENTRY_POINT",
    "Finding",
    "InSettings",
    "Rule",
    "RulesError",
    "RuntimeRule",
    "demand",
    "discover",
    "registered",
]

ENTRY_POINT = "dtlint.rules"
"""The entry-point group. Each entry names a package; every Rule in its modules belongs to the catalogue."""

CODE = re.compile(r"DT[0-9]{3}")


class RulesError(ValueError):
    """A package of rules, or a rule of it, is not as it has to be. The message says which, and what to do."""


@dataclass(slots=True)
class Finding:
    """What a rule suspects at a node. `dtlint.check.confirm` makes a diagnostic of it."""

    node: ast.expr | ast.stmt
    message: str
    help: str = ""
    notes: tuple[tuple[ast.expr | ast.stmt, str], ...] = ()
    """Second places in the same file, each with what happens there."""
    elsewhere: tuple[tuple[Step, str], ...] = ()
    """Second places in any file, each with what happens there."""
    settings: tuple[tuple[SettingsFile, Span, str], ...] = ()
    """Second places in settings files, each with what it says."""
    severity: Severity | None = None
    """Where it differs from the rule's."""
    until: tuple[int, int] | None = None
    """The torch release from which on it is no longer so: code for this one and newer ones does not get it."""
    conditional: bool = False
    """Does it rest on what nothing in view says: that an input has some dtype, that a name means what it suggests? Then it
    is reported with `--preview` alone."""
    fix: Callable[[Place], Fix | None] | None = None
    """Makes the fix, given the finding's place in the text; None where no fix is right."""
    led_to: ast.AST | None = None
    """Where it stands at a call: the operation that the call leads to."""


@dataclass(frozen=True, slots=True)
class InSettings:
    """What a rule finds in a settings file: where, and the other places in settings files that show it."""

    span: Span
    message: str
    help: str = ""
    notes: tuple[tuple[SettingsFile, Span, str], ...] = ()


class Rule:
    """A static rule. Subclass it, give it a docstring in the fixed headings, and override `on_facts`.

    The docstring's first line is the summary. `## Example` holds a python block that the rule must flag, and
    `## Use instead` one that it must not flag; where the fix applies, the second is the exact result of fixing the
    first. Both are run as tests, and printed by `dtlint rule`.

    A rule is made anew for each file, so it may keep what it has seen in `self`.
    """

    code: ClassVar[str] = ""
    name: ClassVar[str] = ""
    severity: ClassVar[Severity] = Severity.WARNING
    fix: ClassVar[Applicability] = Applicability.NONE
    """The best applicability that any fix of this rule has."""
    assumption: ClassVar[str] = ""
    """The assumption under which its example is judged, for a rule that says nothing without one."""
    triggers: ClassVar[tuple[str, ...]] = ()
    """A file in which none of these words stands is clean by this rule, and is not read for it. Empty: every file is read.
    Each is written in one of these forms:

    - `half`, `256`: the word as a whole: a name, an attribute, a keyword, at the beginning of a string; a number;
    - `.half`: an attribute of anything but `self`, or a name that is imported from a module; `self.half`: one of `self`;
    - `"half`: a string that begins with it, in single quotes or double ones;
    - `*half*`: a part of a word;
    - `1e-8`: a number that is written with this exponent, whatever stands before that: `5e-8`, too;
    - anything else, `]=`: the text, white space aside. A comment that stands inside of it hides it.

    What a rule judges must not get past them: think of `from torch import half as h`, and of the names of functions,
    which always stand somewhere in the file. Comments and strings count like code, but for what stands inside docstrings.
    """
    needs: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """More groups of words, in the same forms: a file that lacks all words of any one of them is clean by this rule, too."""
    default: ClassVar[bool] = True
    """Is the rule on unless it is selected? A rule that is useful but chatty is not, and its documentation says why."""
    since: ClassVar[tuple[int, int]] = (0, 0)
    """The torch release from which on the rule's advice holds; older targets do not get it."""

    runtime: ClassVar[bool] = False
    """Does it judge a trace, and no source?"""

    @classmethod
    def load(cls) -> type[Rule]:
        """The rule: a class is what a listed rule is loaded as."""
        return cls

    @classmethod
    def asks(cls) -> bool:
        """Does it ask for the facts of files at all?"""
        return cls.on_facts is not Rule.on_facts

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        """What is wrong in a module, by what is known of it: override it.

        It is asked of each file by itself, whose functions anybody may call, and of the programs of a project with all that
        they lead to.
        """
        return ()

    @classmethod
    def asks_settings(cls) -> bool:
        """Does it judge settings files?"""
        return cls.on_settings is not Rule.on_settings

    def on_settings(self, file: SettingsFile, beside: Callable[[str], SettingsFile | None]) -> Iterable[InSettings]:
        """What is wrong in a settings file of a framework: override it.

        Args:
            beside: the settings file that a path in this one names; None where there is none.
        """
        return ()


class RuntimeRule(Rule):
    """A rule that judges what a trace saw. Its code is DT9xx; the record has all it may look at."""

    runtime = True

    def judge(self, record: TraceRecord) -> Iterator[Diagnostic]:
        """The diagnostics of one run. Override it."""
        raise NotImplementedError


def discover() -> dict[str, type[Rule]]:
    """Every rule of every installed package that registers one, by code, in the order of the codes.

    Raises:
        RulesError: a package cannot be imported, two rules claim one code, or a code is not of the form DT123.
    """
    rules: dict[str, type[Rule]] = {}
    for name in sorted(registered()):
        for module in _modules(name):
            for rule in _rules_in(module):
                if not CODE.fullmatch(rule.code):
                    raise RulesError(
                        f"{rule.__module__}.{rule.__name__} has the code {rule.code!r}; use DT and three digits"
                    )
                other = rules.setdefault(rule.code, rule)
                if other is not rule:
                    raise RulesError(
                        f"{rule.code} is claimed by both {other.__module__} and {rule.__module__}; choose another code"
                    )
    return dict(sorted(rules.items()))


def demand(rules: Mapping[str, object]) -> None:
    """Refuse to go on without any rule: a check by none finds nothing, and would pass for one that is clean.

    Raises:
        RulesError: there is no rule.
    """
    if not rules:
        raise RulesError(
            f"no installed package registers rules as {ENTRY_POINT}, so nothing can be checked; install dtlint itself,"
            " which brings them: `pip install dtlint`, or `pip install -e .` in a checkout"
        )


def _modules(package: str) -> Iterator[ModuleType]:
    from importlib import import_module
    from pkgutil import iter_modules

    try:
        folders = getattr(import_module(package), "__path__", None)
        if folders is None:
            raise ImportError("it is a module, where a package is wanted")
        yield from [import_module(found.name) for found in iter_modules(folders, f"{package}.")]
    except Exception as error:  # whatever somebody else's code raises
        raise RulesError(
            f"the rules in {package}, which an installed package registers as {ENTRY_POINT}, cannot be imported:"
            f" {in_one_line(error)}; mend or uninstall that package"
        ) from error


def registered() -> set[str]:
    """The packages that installed distributions register under the entry point.

    As `importlib.metadata.entry_points` finds them, which takes 13 ms to import: an eighth of a run over one file.
    """
    names: set[str] = set()
    for directory in sys.path:
        try:
            with os.scandir(directory or os.curdir) as entries:
                metadata = [entry.path for entry in entries if entry.name.endswith((".dist-info", ".egg-info"))]
        except OSError:
            continue
        for path in metadata:
            try:
                with open(os.path.join(path, "entry_points.txt"), encoding="utf-8") as file:
                    names.update(_entries(file))
            except OSError:
                continue
    return names


def _entries(lines: Iterable[str]) -> Iterator[str]:
    """The objects under our heading of an entry_points.txt, which is an INI file."""
    ours = False
    for line in lines:
        line = line.strip()
        if line.startswith("["):
            ours = line == f"[{ENTRY_POINT}]"
        elif ours and "=" in line and not line.startswith("#"):
            yield line.partition("=")[2].strip()


def _rules_in(module: ModuleType) -> Iterator[type[Rule]]:
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, Rule) and value.code and value.__module__ == module.__name__:
            yield value
