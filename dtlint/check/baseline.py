"""A baseline: the findings that a code base is known to have, so that a run reports only what is new.

A finding is known again by its rule, its file and the text of its line, whatever line that has become; of two alike in
one file, as many are known as the baseline counts.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dtlint.atomic import write_text
from dtlint.source.file import shown_path

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from dtlint.diagnostic import Diagnostic

__all__ = ["Baseline", "BaselineError", "Baselines", "Compared", "Known", "Stale"]

VERSION = 1
"""Raised when an older dtlint would misread a newer baseline."""


class BaselineError(ValueError):
    """A file that is no baseline, or cannot be read or written; the message is one line that says what to do."""


@dataclass(frozen=True, order=True, slots=True)
class Known:
    """What a finding is known by."""

    path: str
    """Relative to the folder of the baseline, with forward slashes."""
    code: str
    text: str
    """The line on which it begins, each run of white space as one blank."""
    conditional: bool = False
    """Does it rest on what nothing in view says, so that only `--preview` reports it?"""


@dataclass(frozen=True, slots=True)
class Stale:
    """An entry that nothing in the files checked answers to any more."""

    path: str
    """The file, as reports show it."""
    code: str
    text: str
    count: int
    """How many times it is too many."""


@dataclass(slots=True)
class Compared:
    """Findings held against a baseline."""

    new: list[Diagnostic]
    known: int
    stale: list[Stale]


class Baseline:
    """Counts of known findings, kept in a file."""

    def __init__(self, file: Path, counts: Counter[Known] | None = None) -> None:
        self.file = file
        self.counts: Counter[Known] = Counter() if counts is None else counts

    @classmethod
    def load(cls, file: Path) -> Baseline:
        """Read a baseline.

        Raises:
            BaselineError: there is no such file, or it holds something else.
        """
        try:
            document = json.loads(file.read_text(encoding="utf-8"))
        except OSError as error:
            advice = "; --write-baseline makes it" if isinstance(error, FileNotFoundError) else ""
            raise BaselineError(f"the baseline {file} cannot be read: {error.strerror}{advice}") from None
        except (ValueError, RecursionError):
            raise BaselineError(f"the baseline {file} is not JSON; make it anew with --write-baseline") from None
        return cls(file, _counted(document, file))

    def know(self, diagnostics: Iterable[Diagnostic]) -> None:
        """From now on just these are known."""
        folder = self.file.absolute().parent
        self.counts = Counter(_known(diagnostic, folder) for diagnostic in diagnostics)

    def write(self) -> None:
        """Write the file, whole or not at all.

        Raises:
            BaselineError: it cannot be written.
        """
        found = [
            {"path": known.path, "code": known.code, "text": known.text, "count": count}
            | ({"conditional": True} if known.conditional else {})
            for known, count in sorted(self.counts.items())
        ]
        text = json.dumps({"version": VERSION, "findings": found}, indent=1, ensure_ascii=False) + "\n"
        try:
            write_text(self.file, text)
        except OSError as error:
            raise BaselineError(f"the baseline {self.file} cannot be written: {error.strerror or error}") from None

    def compare(
        self, diagnostics: Sequence[Diagnostic], checked: Mapping[str, Sequence[str]], previewed: Collection[str]
    ) -> Compared:
        """What of these is new, and which entries are stale.

        Args:
            diagnostics: all that a run has found.
            checked: the files of the run, as they are shown, each with the codes that were enabled for it: an entry of a
                file or a rule that was left out is not stale.
            previewed: those of them whose conditional findings were reported: elsewhere no entry of one is stale.
        """
        folder = self.file.absolute().parent
        left = self.counts.copy()
        new = []
        for diagnostic in diagnostics:
            known = _known(diagnostic, folder)
            if left[known] > 0:
                left[known] -= 1
            else:
                new.append(diagnostic)
        enabled = {_relative(shown, folder): codes for shown, codes in checked.items()}
        seen = {_relative(shown, folder) for shown in previewed}
        stale = [
            Stale(shown_path(folder / known.path), known.code, known.text, count)
            for known, count in sorted(left.items())
            if count > 0 and _looked_for(known, enabled, seen, folder)
        ]
        return Compared(new, len(diagnostics) - len(new), stale)


class Baselines:
    """The baselines of a run: each file obeys that of its own settings, or all of them the one of the command line."""

    def __init__(self, files: Iterable[Path], one: Path | None = None, *, anew: bool = False) -> None:
        """`one` holds for every file; `anew`: they are to be written, so what they hold does not matter.

        Raises:
            BaselineError: one of `files` cannot be read, or holds something else.
        """
        self._one = one
        named = {one} if one is not None else set(files)
        self._by_file = {file: Baseline(file) if anew else Baseline.load(file) for file in sorted(named)}

    @property
    def all(self) -> list[Baseline]:
        """Each of them, in the order of their paths."""
        return list(self._by_file.values())

    def write(self, diagnostics: Iterable[Diagnostic], named: Mapping[str, Path]) -> None:
        """From now on just these findings are known, each by the baseline of its file, and are kept.

        Args:
            diagnostics: all that a run has found.
            named: the baselines of its files, as they are shown.

        Raises:
            BaselineError: one cannot be written, or a file with a finding has none.
        """
        found: dict[Path | None, list[Diagnostic]] = {file: [] for file in self._by_file}
        for diagnostic in diagnostics:
            found.setdefault(self._one or named.get(diagnostic.location.path), []).append(diagnostic)
        homeless = found.get(None)
        if homeless:
            shown = homeless[0].location.path
            raise BaselineError(f"the settings of {shown} name no baseline; name one for all files with --baseline")
        for file, baseline in self._by_file.items():
            baseline.know(found[file])
            baseline.write()

    def compare(
        self,
        diagnostics: Sequence[Diagnostic],
        checked: Mapping[str, Sequence[str]],
        previewed: Collection[str],
        named: Mapping[str, Path],
    ) -> Compared:
        """What is new to the baseline of its file, and which entries are stale; see `Baseline.compare`, and `write`."""
        whole = Compared([], 0, [])
        files = {shown: self._one or named.get(shown) for shown in checked}
        for file in (*self._by_file, None):
            found = [one for one in diagnostics if (self._one or named.get(one.location.path)) == file]
            if file is None:
                whole.new += found
                continue
            of_file = {shown: codes for shown, codes in checked.items() if files[shown] == file}
            compared = self._by_file[file].compare(found, of_file, previewed)
            whole.new += compared.new
            whole.known += compared.known
            whole.stale += compared.stale
        whole.new.sort(key=lambda diagnostic: diagnostic.sort_key)
        return whole


def _known(diagnostic: Diagnostic, folder: Path) -> Known:
    line = diagnostic.location.span.line
    text = next((text for number, text in diagnostic.lines if number == line), "")
    return Known(
        _relative(diagnostic.location.path, folder), diagnostic.code, " ".join(text.split()), diagnostic.conditional
    )


def _looked_for(known: Known, enabled: Mapping[str, Sequence[str]], previewed: Collection[str], folder: Path) -> bool:
    """Would the run have found it, were it still there? Of a file that is gone nothing can be."""
    codes = enabled.get(known.path)
    if codes is None:
        return not (folder / known.path).exists()
    return known.code in codes and (not known.conditional or known.path in previewed)


def _relative(shown: str, folder: Path) -> str:
    return Path(os.path.relpath(shown, folder)).as_posix()


def _counted(document: Any, file: Path) -> Counter[Known]:
    version = document.get("version") if isinstance(document, dict) else None
    if isinstance(version, int) and version > VERSION:
        raise BaselineError(f"the baseline {file} was written by a newer dtlint; update dtlint")
    try:
        return Counter(
            {
                Known(str(item["path"]), str(item["code"]), str(item["text"]), item.get("conditional") is True): int(
                    item["count"]
                )
                for item in document["findings"]
            }
        )
    except (TypeError, KeyError, ValueError, OverflowError):
        raise BaselineError(f"the baseline {file} holds something else; make it anew with --write-baseline") from None
