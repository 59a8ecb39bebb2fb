"""Which lines of two steps are the same result: by module, operator and order.

In each module the lines of both runs are matched as `diff` matches lines of text. Casts and copies are left out, since
they are what precision changes. What stands between two matches in both runs, and ends in results of one size, is taken
for one computation that was put together in another way, as a fused attention and its parts are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice
from typing import TYPE_CHECKING

from dtlint.compare.difference import relative
from dtlint.compare.run import plain_path

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from dtlint.compare.run import Line

__all__ = ["Aligned", "align", "have_same_weights", "resized"]

FEW = 6
"""Results at the end of a part that was put together in another way, among which its results are looked for."""

RELATED = 0.5
"""Results that differ by more are not of the same value; where there are several, none is taken for the other."""

WINDOW = 400
"""Results of a module among which those are looked for that one run has more."""

ATTENTION = re.compile(r"_?scaled_dot_product\w*attention(?!\w*backward)\w*")
ATTENTION_BACKWARD = re.compile(r"_?scaled_dot_product\w*attention\w*backward")

SAME = {
    "_fused_rms_norm": "rms_norm",
    "cudnn_batch_norm": "native_batch_norm",
    "cudnn_batch_norm_backward": "native_batch_norm_backward",
    "_batch_norm_with_update": "native_batch_norm",
    "batch_norm_backward": "native_batch_norm_backward",
    "cudnn_convolution": "convolution",
    "_unsafe_index": "index",
}
"""Operators of one device, by the name of those of others."""


@dataclass(frozen=True, slots=True)
class Aligned:
    """The lines of a step of two runs."""

    pairs: dict[int, int]
    """Number in the second run -> number in the first."""
    only_first: list[Line]
    only_second: list[Line]
    """What has no counterpart, casts and copies aside."""
    skipped: int
    """Casts and copies."""

    @property
    def share(self) -> float:
        """The share of lines that have a counterpart."""
        both = 2 * len(self.pairs)
        return both / (both + len(self.only_first) + len(self.only_second) or 1)


def align(first: Sequence[Line], second: Sequence[Line]) -> Aligned:
    """Match the lines of a step."""
    pairs = _weights(first, second)
    taken = set(pairs.values())
    ones = _by_module(line for line in first if line.number not in taken and not line.moves)
    others = _by_module(line for line in second if line.number not in pairs and not line.moves)
    for module in ones.keys() & others.keys():
        for one, other in _matched(ones[module], others[module]):
            pairs[other.number] = one.number
    taken = set(pairs.values())
    return Aligned(
        pairs,
        [line for line in first if line.number not in taken and not line.moves],
        [line for line in second if line.number not in pairs and not line.moves],
        sum(line.moves for line in (*first, *second)),
    )


def have_same_weights(first: Sequence[Line], second: Sequence[Line]) -> bool:
    """Have both runs parameters, of the same names?"""
    names, others = (
        {plain_path(one.name) for one in lines if one.name.startswith("parameter ")} for lines in (first, second)
    )
    return bool(names) and names == others


def _weights(first: Sequence[Line], second: Sequence[Line]) -> dict[int, int]:
    """Parameters and buffers are matched by name."""
    named: dict[tuple[str, int], Line] = {}
    for line, key in _named(first):
        named[key] = line
    return {
        line.number: named[key].number
        for line, key in _named(second)
        if key in named and _values(named[key].shape) == _values(line.shape)
    }


def resized(first: Sequence[Line], second: Sequence[Line]) -> tuple[Line, Line] | None:
    """The first parameter that has another size in the other run."""
    named = {line.name: line for line in first if line.name.startswith("parameter ")}
    pairs = ((named[line.name], line) for line in second if line.name in named)
    return next(((one, other) for one, other in pairs if _values(one.shape) != _values(other.shape)), None)


def _named(lines: Sequence[Line]) -> Iterator[tuple[Line, tuple[str, int]]]:
    """With the name, and how often it came before: a buffer that a step writes is met more than once."""
    met: dict[str, int] = {}
    for line in lines:
        if line.name:
            kind, _, path = line.name.partition(" ")
            name = f"{kind} {plain_path(path)}"
            met[name] = met.get(name, 0) + 1
            yield line, (name, met[name])


def _values(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)


def _by_module(lines: Iterator[Line]) -> dict[tuple[str, bool], list[Line]]:
    found: dict[tuple[str, bool], list[Line]] = {}
    for line in lines:
        found.setdefault((line.module, line.backward), []).append(line)
    return found


def _token(line: Line) -> Hashable:
    if line.entry is None:
        return "", _values(line.shape)
    op = line.op
    if ATTENTION_BACKWARD.fullmatch(op):
        op = "attention_backward"
    elif ATTENTION.fullmatch(op):
        op = "attention"
    return SAME.get(op, op), line.output, _values(line.shape)


def _matched(ones: list[Line], others: list[Line]) -> Iterator[tuple[Line, Line]]:
    tokens = [_token(line) for line in ones], [_token(line) for line in others]
    for tag, start, end, begin, stop in _opcodes(*tokens):
        if tag == "equal":
            yield from zip(ones[start:end], others[begin:stop], strict=True)
        elif tag == "replace":
            yield from _alike(ones[start:end], others[begin:stop])


def _opcodes(ones: list[Hashable], others: list[Hashable]) -> Iterator[tuple[str, int, int, int, int]]:
    """As of a SequenceMatcher, whose time grows with the square of a length: what is equal is taken at once, and of the
    rest a WINDOW at a time."""
    at = to = 0
    while at < len(ones) and to < len(others):
        same = 0
        for one, other in zip(islice(ones, at, None), islice(others, to, None), strict=False):
            if one != other:
                break
            same += 1
        if same:
            yield "equal", at, at + same, to, to + same
            at, to = at + same, to + same
            continue
        left, right = ones[at : at + WINDOW], others[to : to + WINDOW]
        whole = len(ones) - at <= WINDOW and len(others) - to <= WINDOW
        matched = SequenceMatcher(None, left, right, autojunk=False).get_opcodes()
        if not whole:  # the end of a window is only its end
            last = max((n for n, (tag, *_) in enumerate(matched) if tag == "equal"), default=-1)
            matched = matched[: last + 1]
        for tag, start, end, begin, stop in matched:
            yield tag, at + start, at + end, to + begin, to + stop
        step = matched[-1] if matched else ("", 0, len(left), 0, len(right))
        at, to = at + step[2], to + step[4]


def _alike(ones: list[Line], others: list[Line]) -> Iterator[tuple[Line, Line]]:
    """The last results of one size, whatever dimensions are folded into one: those that agree, or else the only ones."""
    found = [
        (relative(one.sketch, other.sketch), one.number, one, other)
        for one in ones[-FEW:]
        for other in others[-FEW:]
        if one.entry is not None and other.entry is not None and one.sketch is not None and other.sketch is not None
        if one.numel == other.numel and one.shape[-1:] == other.shape[-1:]
    ]
    if len(found) == 1:
        yield found[0][2:]
        return
    taken: set[int] = set()
    for difference, _, one, other in sorted(found, key=lambda pair: pair[:2]):
        if difference < RELATED and not {id(one), id(other)} & taken:
            taken |= {id(one), id(other)}
            yield one, other
