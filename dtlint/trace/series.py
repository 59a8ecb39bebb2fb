"""What each module did over the steps: calls by dtype, the largest magnitude, what was lost, what was not finite.

Taken at the end of a step from the counts of its signatures, so that operators cost no more. Where there are more steps
than the record keeps columns for, columns are merged in pairs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dtlint.trace.schema import CALLS, NOTHING, UNKNOWN, ModuleSeries
from dtlint.trace.schema import Series as SeriesRecord

if TYPE_CHECKING:
    from dtlint.trace.signature import Signature

__all__ = ["MOST_CELLS", "MOST_COLUMNS", "Series", "fewer"]

MOST_COLUMNS = 256

MOST_CELLS = 1 << 19
"""Columns times rows, of which there are up to two for each module."""

COLUMNS, EXPONENT, LOST, NONFINITE = range(CALLS)
"""Where a run keeps what: see `ModuleSeries.runs`."""

Run = list[int]


class _Row:
    """One module in one phase."""

    __slots__ = ("cell", "dtypes", "lost", "reach", "runs", "sampled", "width")

    def __init__(self) -> None:
        self.dtypes: dict[str, int] = {}
        """Each dtype and its position among the calls of a run."""
        self.runs: list[Run] = []
        self.width = 0
        """Columns that the runs cover."""
        self.cell: Run | None = None
        """The column that is made; None as long as the module has done nothing in it."""
        self.reach, self.sampled, self.lost = 0.0, 0, 0
        """Of that column: the largest magnitude, values sampled for loss, and those lost."""

    def begin(self) -> Run:
        """Begin a column."""
        self.cell = [1, NOTHING, UNKNOWN, 0] + [0] * len(self.dtypes)
        self.reach, self.sampled, self.lost = 0.0, 0, 0
        return self.cell

    def end(self, column: int) -> None:
        """End it, as this column."""
        assert self.cell is not None
        if 0 < self.reach < math.inf:
            self.cell[EXPONENT] = math.frexp(self.reach)[1]
        if self.sampled:
            self.cell[LOST] = math.ceil(1000 * self.lost / self.sampled)
        while len(self.cell) > CALLS and not self.cell[-1]:
            self.cell.pop()
        self.append(self.cell, column)
        self.cell = None

    def append(self, cell: Run, column: int) -> None:
        """Add what it did in a column. In the last one it has it may have done something already."""
        if column < self.width:
            last = self.runs[-1]
            if last[COLUMNS] > 1:
                last[COLUMNS] -= 1
                self.runs.append([1, *last[1:]])
            self.runs[-1] = _joined(self.runs[-1], cell)
            return
        if column > self.width:
            self._extend([column - self.width, NOTHING, UNKNOWN, 0])
        self._extend(cell)
        self.width = column + 1

    def _extend(self, cell: Run) -> None:
        if self.runs and self.runs[-1][1:] == cell[1:]:
            self.runs[-1][COLUMNS] += cell[COLUMNS]
        else:
            self.runs.append(cell)

    def halve(self) -> None:
        """Merge columns in pairs."""
        cells = [run for run in self.runs for _ in range(run[COLUMNS])]
        self.runs, self.width = [], (len(cells) + 1) // 2
        for index in range(0, len(cells), 2):
            pair = [[1, *cell[1:]] for cell in cells[index : index + 2]]
            self._extend(_joined(*pair) if len(pair) > 1 else pair[0])


class _Source:
    """A signature, and what its counts were when the last column was taken."""

    __slots__ = ("at", "bad", "count", "lost", "row", "sampled", "signature")

    def __init__(self, signature: Signature, row: _Row, at: int) -> None:
        self.signature, self.row, self.at = signature, row, at
        self.count = self.bad = self.sampled = self.lost = 0

    def give(self, cell: Run) -> None:
        """Add to a column what was counted since."""
        signature, row = self.signature, self.row
        cell[self.at] += signature.count - self.count
        self.count = signature.count
        low, high = signature.low, signature.high
        if low or high:
            row.reach = max(row.reach, -low, high)
            signature.least, signature.most = signature.span
            signature.low = signature.high = 0.0
        bad = signature.nonfinite - signature.meant
        if bad != self.bad:
            cell[NONFINITE] += bad - self.bad
            self.bad = bad
        if signature.sampled != self.sampled:
            row.sampled += signature.sampled - self.sampled
            row.lost += signature.lost - self.lost
            self.sampled, self.lost = signature.sampled, signature.lost


class Series:
    """The rows of a run that goes on."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        """The first step of each column, from 0."""
        self._rows: dict[tuple[str, bool], _Row] = {}
        self._sources: list[_Source] = []
        self._each = 1
        """Steps in a column."""
        self._open: int | None = None
        """The first step of the column that is not taken yet."""
        self._ended = 0
        """Steps that have ended in it."""

    def follow(self, signature: Signature) -> None:
        """A signature has been learned."""
        if signature.output is None:
            return
        key = signature.site.module, signature.backward
        row = self._rows.get(key) or self._rows.setdefault(key, _Row())
        at = row.dtypes.setdefault(str(signature.output).removeprefix("torch."), len(row.dtypes))
        self._sources.append(_Source(signature, row, CALLS + at))

    def step_ended(self, step: int) -> None:
        """A traced step has ended, and its values were read."""
        if self._open is None:
            self._open = step
        self._ended += 1
        if self._ended >= self._each:
            self.take(step)

    def take(self, step: int) -> None:
        """Make a column of what was done since the last one."""
        start = step if self._open is None else self._open
        self._open, self._ended = None, 0
        begun: list[_Row] = []
        for source in self._sources:
            if source.signature.count != source.count:
                cell = source.row.cell
                if cell is None:
                    cell = source.row.begin()
                    begun.append(source.row)
                source.give(cell)
        if not begun:
            return
        if not self.starts or start > self.starts[-1]:
            self.starts.append(start)
        for row in begun:
            row.end(len(self.starts) - 1)
        while len(self.starts) > 1 and (
            len(self.starts) >= MOST_COLUMNS or len(self.starts) * len(self._rows) > MOST_CELLS
        ):
            self.starts = self.starts[::2]
            self._each *= 2
            for row in self._rows.values():
                row.halve()

    def record(self) -> SeriesRecord | None:
        """As the trace record keeps it; None where nothing was done."""
        if not self.starts:
            return None
        rows = [
            ModuleSeries(module, "backward" if backward else "forward", list(row.dtypes), [*map(list, row.runs)])
            for (module, backward), row in self._rows.items()
        ]
        return SeriesRecord(starts=list(self.starts), rows=rows)


def _joined(one: Run, other: Run) -> Run:
    """Two columns as one: calls add up, of magnitudes and shares the larger one stays."""
    length = max(len(one), len(other))
    calls = [
        (run + [0] * (length - len(run)))[CALLS:]  # a dtype may have been met later
        for run in (one, other)
    ]
    return [
        1,
        max(one[EXPONENT], other[EXPONENT]),
        max(one[LOST], other[LOST]),
        one[NONFINITE] + other[NONFINITE],
        *map(sum, zip(*calls, strict=True)),
    ]


def fewer(series: SeriesRecord, most: int) -> SeriesRecord:
    """The same in so few columns that its runs are no more than `most`."""
    starts, rows = series.starts, [_row(row) for row in series.rows]
    while len(starts) > 1 and sum(len(row.runs) for row in rows) > most:
        starts = starts[::2]
        for row in rows:
            row.halve()
    return SeriesRecord(
        starts,
        [
            ModuleSeries(before.module, before.phase, before.dtypes, row.runs)
            for before, row in zip(series.rows, rows, strict=True)
        ],
    )


def _row(of: ModuleSeries) -> _Row:
    row = _Row()
    row.runs = [list(run) for run in of.runs]
    row.width = sum(run[COLUMNS] for run in of.runs)
    return row
