"""From what an op was observed to do, the smallest rule that explains all of it.

A development tool, as `learn` is. What no rule explains is left out of the rule: unknown, never wrong.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING

from dtlint.dtypes.form import DTYPE, Operands
from dtlint.dtypes.pattern import (
    CODES,
    DTYPE_OF_CODE,
    NONE,
    PROMOTED,
    feature_of,
    flat,
    has_letters,
    key_of,
    named_dtype,
    spellings,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["Error", "Many", "Observation", "Rule", "explain"]

Rule = dict[str, object]
"""As it stands in the table; see `table`."""

Result = object
"""A dtype, None for what is no tensor, a tuple of results, or `Many` of one result."""


@dataclass(frozen=True, slots=True)
class Many:
    """A sequence of any length whose items are alike."""

    item: Result


@dataclass(frozen=True, slots=True)
class Error:
    """What an op raised: the first line of its message."""

    message: str


@dataclass(frozen=True, slots=True)
class Observation:
    """One call that was made: its operands, the constants that it was given, the default dtype, and what came of it."""

    operands: Operands
    constants: tuple[tuple[str, str | None], ...]
    default: str
    result: Result

    @property
    def failed(self) -> bool:
        """Did it raise?"""
        return isinstance(self.result, Error)


CASES = 24
"""A split into more cases than this is no rule but an enumeration."""
LIGHT = 160
"""A rule that takes fewer letters than this is taken without a look at cases."""
HEAVY = 700
"""A rule that takes more letters than this is better left without its refusals."""
GUARDS = 5
"""So many kinds of refusal may a rule tell apart."""
ENTRIES = 150
"""So many pairs of dtypes may a map have: one for each pair of twelve."""


def explain(observations: Sequence[Observation], roles: str) -> Rule | None:
    """The rule of a form, or None when nothing can be said.

    Args:
        observations: all that was seen of the form.
        roles: one letter for each slot: "t" for tensors and numbers, "d" for a dtype argument, "o" for `out=`.
    """
    seen = tuple(dict.fromkeys(observations))
    works = {(one.operands, one.constants, one.default) for one in seen if not one.failed}
    seen = tuple(one for one in seen if not one.failed or (one.operands, one.constants, one.default) not in works)
    return (
        _cased(seen, roles, tuple(f"has {slot}" for slot, role in enumerate(roles) if role in "od")) if seen else None
    )


def _cased(seen: tuple[Observation, ...], roles: str, forced: tuple[str, ...]) -> Rule | None:
    """The rule, with a case of its own for a call that gives `out=` or `dtype=`: these change what decides."""
    for place, feature in enumerate(forced):
        parts = _parts(seen, feature)
        if len(parts) > 1:
            cases = {value: _cased(part, roles, forced[place + 1 :]) for value, part in parts.items()}
            kept = {value: rule for value, rule in cases.items() if rule is not None}
            return {"by": feature, "cases": kept} if kept else None
    return _best(seen, roles)


@cache
def _best(seen: tuple[Observation, ...], roles: str) -> Rule | None:
    """The lightest rule that explains everything; or every success and the refusals that are short to say; or as much as
    can be explained.

    A rule that leaves out a refusal is not wrong: where torch raises there is no result to be wrong about.
    """
    exact = _lightest(seen, roles, loose=False)
    if exact is not None and _weight(exact) <= HEAVY:
        return exact
    loose = _lightest(seen, roles, loose=True)
    if loose is not None and (exact is None or 2 * _weight(loose) < _weight(exact)):
        return loose
    return exact if exact is not None else _mostly(seen, roles)


def _lightest(seen: Sequence[Observation], roles: str, loose: bool) -> Rule | None:
    whole = _Search(seen, roles, loose).rule()
    if whole is not None and (loose or _weight(whole) <= LIGHT):
        return whole
    found = [rule for rule in (whole, _split(seen, roles, 1, loose)) if rule is not None]
    return min(found, key=_weight) if found else _split(seen, roles, 2, loose)


def _parts(seen: Sequence[Observation], feature: str) -> dict[str, tuple[Observation, ...]]:
    parts: dict[str, list[Observation]] = defaultdict(list)
    for one in seen:
        parts[feature_of(feature, one.operands, dict(one.constants).get) or "?"].append(one)
    return {value: tuple(part) for value, part in sorted(parts.items())}


def _split(seen: Sequence[Observation], roles: str, depth: int, loose: bool) -> Rule | None:
    """The lightest rule with cases, nested up to `depth`."""
    best: Rule | None = None
    for feature in _features(seen, roles):
        parts = _parts(seen, feature)
        if not 1 < len(parts) <= CASES:
            continue
        cases: dict[str, Rule] = {}
        for value, part in parts.items():
            rule = _Search(part, roles, loose).rule() or (_split(part, roles, depth - 1, loose) if depth > 1 else None)
            if rule is None:
                break
            cases[value] = rule
        else:
            made: Rule = {"by": feature, "cases": cases}
            if best is None or _weight(made) < _weight(best):
                best = made
    return best


def _mostly(seen: Sequence[Observation], roles: str) -> Rule | None:
    """The rule that explains most of the observations, with cases or without; of the rest nothing is said."""
    best, most = _partly(seen, roles)
    for feature in _features(seen, roles):
        parts = _parts(seen, feature)
        if not 1 < len(parts) <= CASES:
            continue
        cases: dict[str, Rule] = {}
        explained = 0
        for value, part in parts.items():
            rule = _Search(part, roles).rule() or _Search(part, roles, loose=True).rule()
            count = len(part)
            if rule is None:
                rule, count = _partly(part, roles)
            if rule is not None:
                cases[value] = rule
                explained += count
        if cases and explained > most * 1.05:
            best, most = {"by": feature, "cases": cases}, explained
    return best


def _weight(rule: Rule) -> int:
    """How much a rule takes to say, its domain aside."""
    if "by" in rule:
        cases = rule["cases"]
        assert isinstance(cases, dict)
        return 20 + sum(map(_weight, cases.values()))
    return len(str([rule.get("on"), rule.get("gives"), rule.get("fails"), rule.get("unless")]))


def _features(seen: Sequence[Observation], roles: str) -> Iterator[str]:
    for slot in range(len(roles)):
        if any(one.operands[slot] is None for one in seen):
            yield f"has {slot}"
    for slot, role in enumerate(roles):
        if role == "t":
            yield f"rank {slot}"
    names = sorted({name for one in seen for name, _ in one.constants})
    for name in names:
        yield f"arg {name}"


# -- results as symbols -------------------------------------------------------------------------------------------------


_FAILED: frozenset[str | None] = frozenset({None})


@cache
def _symbols(result: Result, key: str, default: str) -> frozenset[str | None]:
    """All ways to write the result, given the key and the default dtype: "=" is the key, "d" the default dtype."""
    if result is None:
        return frozenset({"-"})
    if isinstance(result, tuple):
        return _product("(", [_symbols(item, key, default) for item in result], ")")
    if isinstance(result, Many):
        return _product("[", [_symbols(result.item, key, default)], "]")
    assert isinstance(result, str)
    found: set[str | None] = {result}
    if DTYPE_OF_CODE.get(key) == result:
        found.add("=")
    if result == default:
        found.add("d")
    return frozenset(found)


def _product(left: str, items: list[frozenset[str | None]], right: str) -> frozenset[str | None]:
    texts = [""]
    for number, item in enumerate(items):
        texts = [text + ("," if number else "") + symbol for text in texts for symbol in sorted(map(str, item))]
        if len(texts) > 512:
            return frozenset()
    return frozenset(left + text + right for text in texts)


def _is_open(symbols: frozenset[str | None], defaults: set[str]) -> bool:
    """Is it undecided between the default dtype and the one of that name, because it was seen under one default only?"""
    return (
        len(defaults) == 1
        and None not in symbols
        and any("d" in _WORDS.findall(str(text)) for text in symbols)
        and not any(_WORDS.findall(str(text)).count("=") == len(_WORDS.findall(str(text))) for text in symbols)
    )


_WORDS = re.compile(r"[\w=-]+")


def _chosen(possible: Mapping[str, frozenset[str | None]]) -> dict[str, str | None]:
    """One way to write each key's result: as few different ones as possible, those that speak of the key first."""
    counts = Counter(symbol for symbols in possible.values() for symbol in symbols)
    order = sorted(counts, key=lambda text: (-counts[text], -(text or "").count("="), len(text or ""), text or ""))
    return {value: next(symbol for symbol in order if symbol in symbols) for value, symbols in sorted(possible.items())}


_Guards = list[tuple[str, frozenset[str]]]
"""Refusals, in order: a key, and its values that make the op raise."""
_Gives = dict[str, "str | None"]
"""What each value of a key gives; None for an error."""

# -- one rule without cases ---------------------------------------------------------------------------------------------


_key_of = cache(key_of)
"""The same operands come again in every case that is tried."""


@dataclass
class _Search:
    """The search for one key, one map and a few guards that explain every observation."""

    seen: Sequence[Observation]
    roles: str
    loose: bool = False
    """Need every refusal be explained, or only what succeeds?"""
    _keys: dict[str, list[str]] = field(default_factory=dict)
    _refusing: dict[str, frozenset[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.failed = [one.failed for one in self.seen]

    def rule(self) -> Rule | None:
        """The cheapest rule, or None."""
        best: tuple[int, str, _Guards, _Gives] | None = None
        for key in self.bases():
            guards = self._guards(key)
            gives = None if guards is None else self._map(key, guards)
            if guards is None or gives is None:
                continue
            cost = 40 * len(guards) + len(key) + sum(len(refused) for _, refused in guards)
            cost += sum(map(len, gives)) + 12 * len(set(gives.values()))
            cost += 30 * len({self.values(key)[place] for place in self._unguarded(guards)} - set(gives))
            if best is None or cost < best[0]:
                best = cost, key, guards, gives
        return best and self.written(*best[1:])

    def bases(self) -> list[str]:
        """The keys to try, the simplest first."""
        tensors = [slot for slot, role in enumerate(self.roles) if role == "t"]
        keys = ["dtypes"]
        keys += [f"dtypes {slot}" for slot in range(len(self.roles))]
        groups = [group for size in range(len(tensors), 1, -1) for group in combinations(tensors, size)][:12]
        if len(tensors) == 1:
            groups = [(tensors[0],)]
        keys += ["promote " + " ".join(map(str, group)) for group in groups]
        keys += ["agree " + " ".join(map(str, group)) for group in groups if len(group) > 1]
        pairs = list(combinations(range(len(self.roles)), 2))[:10]
        return keys + [f"dtypes {left} {right}" for left, right in pairs]

    def guard_keys(self) -> list[str]:
        """The keys that a refusal may go by."""
        tensors = [slot for slot, role in enumerate(self.roles) if role == "t"]
        keys = sorted(self.bases()[1:], key=lambda key: not has_letters(key))
        for into in [slot for slot, role in enumerate(self.roles) if role == "o"] + tensors[:1]:
            others = [slot for slot in tensors if self.roles[into] == "o" or slot != into]
            groups = ([into, *others], others, *([into, other] for other in others))
            keys[:0] = [f"fit {into} " + " ".join(map(str, group)) for group in groups if group]
        if len(tensors) > 2:
            keys += [f"beside {tensors[-1]} " + " ".join(map(str, tensors[:-1]))]
        return list(dict.fromkeys(keys))

    def values(self, key: str) -> list[str]:
        """The key of each observation."""
        if key not in self._keys:
            self._keys[key] = [_key_of(key, one.operands) for one in self.seen]
        return self._keys[key]

    def refused(self, key: str) -> frozenset[str]:
        """The values of a key under which every call raised."""
        if key not in self._refusing:
            pairs = set(zip(self.values(key), self.failed, strict=True))
            self._refusing[key] = frozenset(value for value, failed in pairs if failed and (value, False) not in pairs)
        return self._refusing[key]

    def _guards(self, key: str) -> _Guards | None:
        """The refusals that the map of `key` alone cannot tell from successes, in order; None when none explain them."""
        values = self.values(key)
        works = {value for value, failed in zip(values, self.failed, strict=True) if not failed}
        left = {place for place, failed in enumerate(self.failed) if failed and values[place] in works}
        guards: _Guards = []
        while left:
            best: tuple[int, str] = (0, "")
            for candidate in self.guard_keys():
                if not has_letters(candidate) and (best[0] or self.loose):
                    continue  # pairs of dtypes only where nothing shorter says it
                of, refused = self.values(candidate), self.refused(candidate)
                count = sum(of[place] in refused for place in left) if refused else 0
                if count > best[0]:
                    best = count, candidate
            if not best[0] or len(guards) == GUARDS:
                return guards if self.loose else None
            guard = best[1]
            guards.append((guard, self.refused(guard)))
            left = {place for place in left if self.values(guard)[place] not in self.refused(guard)}
        return guards

    def _unguarded(self, guards: _Guards) -> list[int]:
        return [
            place
            for place in range(len(self.seen))
            if not any(self.values(guard)[place] in refused for guard, refused in guards)
        ]

    def _map(self, key: str, guards: _Guards, partly: bool = False) -> _Gives | None:
        """What each key gives; None for an error. `partly`: leave out the keys that give now this, now that."""
        values = self.values(key)
        works = {value for value, failed in zip(values, self.failed, strict=True) if not failed}
        possible: dict[str, frozenset[str | None]] = {}
        defaults: dict[str, set[str]] = defaultdict(set)
        for place in self._unguarded(guards):
            one, value = self.seen[place], values[place]
            if one.failed and self.loose and value in works:
                continue
            defaults[value].add(one.default)
            now: frozenset[str | None] = _FAILED if one.failed else _symbols(one.result, value, one.default)
            possible[value] = possible[value] & now if value in possible else now
        if not all(possible.values()):
            if not partly:
                return None
            possible = {value: symbols for value, symbols in possible.items() if symbols}
        if sum(len(value) > 1 for value in possible) > ENTRIES:
            return None
        return _chosen(
            {value: symbols for value, symbols in possible.items() if not _is_open(symbols, defaults[value])}
        )

    def written(self, key: str, guards: _Guards, gives: _Gives) -> Rule:
        """The rule as it stands in the table."""
        errors = _Errors()
        left = set(range(len(self.seen)))
        unless = []
        for guard, refused in guards:
            of = self.values(guard)
            here = [place for place in sorted(left) if of[place] in refused]
            for message, group in errors.grouped([(of[place], self.seen[place]) for place in here]):
                unless.append([guard, _joined(group), message])
            left -= set(here)
        values = self.values(key)
        results: dict[str, list[str]] = defaultdict(list)
        for value, symbol in gives.items():
            if symbol is not None:
                results[symbol].append(value)
        failed = [(values[place], self.seen[place]) for place in sorted(left) if gives.get(values[place], "") is None]
        fails = [[_joined(group), message] for message, group in errors.grouped(failed)]
        rule: Rule = {"on": key, "gives": {symbol: _joined(group) for symbol, group in sorted(results.items())}}
        if fails:
            rule["fails"] = fails
        if unless:
            rule["unless"] = unless
        unseen = self._unseen(key)
        if unseen:
            rule["unseen"] = unseen
        rule["over"] = [_domain(self.seen, slot) for slot in range(len(self.roles))]
        return rule

    def _unseen(self, key: str) -> list[str]:
        """The pairs of slots that never disagreed in what was observed though both varied: nothing is said of these."""
        result = []
        for left, right in combinations([slot for slot, role in enumerate(self.roles) if role != "o"], 2):
            pairs = {
                (a, b)
                for a, b in zip(self.values(f"dtypes {left}"), self.values(f"dtypes {right}"), strict=True)
                if NONE not in (a, b)
            }
            if len({a for a, _ in pairs}) > 1 and len({b for _, b in pairs}) > 1 and all(a == b for a, b in pairs):
                result.append(f"agree {left} {right}")
        return result


def _joined(keys: Iterable[str]) -> str:
    """Keys as one text: letters are run together, longer keys stand apart."""
    keys = sorted(keys)
    return ("" if all(len(key) == 1 for key in keys) else "|").join(keys)


def _domain(seen: Sequence[Observation], slot: int) -> str:
    """The dtypes and ranks that a slot was observed with: "efgd:12"; "-" among them when it was also left out."""
    given = {item for one in seen for item in flat(one.operands, (slot,))}
    absent = any(one.operands[slot] in (None, ()) for one in seen)
    codes = "".join(sorted({CODES[dtype] for dtype, _ in given})) + NONE * absent
    ranks = "".join(sorted({"d" if rank == DTYPE else str(rank) for _, rank in given}))
    return f"{codes}:{ranks}"


def _partly(seen: Sequence[Observation], roles: str) -> tuple[Rule | None, int]:
    """The rule without cases that explains most, and how many observations it explains."""
    search = _Search([one for one in seen if not one.failed], roles)
    best: tuple[Rule | None, int] = (None, 0)
    for key in search.bases():
        gives = search._map(key, [], partly=True)
        if not gives or set(gives.values()) == {None}:
            continue
        explained = sum(value in gives for value in search.values(key))
        if explained > best[1]:
            best = search.written(key, [], gives), explained
    return best


# -- messages -----------------------------------------------------------------------------------------------------------

_STYLE_OF = {word: (dtype, style) for dtype in CODES for style, word in reversed(spellings(dtype).items())}
_WORD = re.compile(
    r"(?<![\w:.<'])(?:"
    + "|".join(re.escape(word) for word in sorted(_STYLE_OF, key=len, reverse=True))
    + r")(?![\w:<])"
    r"|(?<=')(?:" + "|".join(re.escape(word) for word in sorted(_STYLE_OF, key=len, reverse=True)) + r")(?=')"
)
_SAID: str = "\0"


class _Errors:
    """Messages of one rule, with the dtypes in them traced to the operands that they name."""

    def grouped(self, failed: Iterable[tuple[str, Observation]]) -> Iterator[tuple[str, list[str]]]:
        """Each message with the keys that raise it. A key that raises now this, now that message raises the commoner."""
        by_key: dict[str, list[Observation]] = defaultdict(list)
        for value, one in failed:
            by_key[value].append(one)
        skeletons: dict[str, list[Observation]] = defaultdict(list)
        key_skeleton: dict[str, str] = {}
        for value, ones in by_key.items():
            common = Counter(_skeleton(one) for one in ones).most_common()
            skeleton = min(common, key=lambda item: (-item[1], item[0]))[0]
            key_skeleton[value] = skeleton
            skeletons[skeleton] += [one for one in ones if _skeleton(one) == skeleton]
        messages = {skeleton: _template(skeleton, ones) for skeleton, ones in skeletons.items()}
        groups: dict[str, list[str]] = defaultdict(list)
        for value, skeleton in key_skeleton.items():
            groups[messages[skeleton]].append(value)
        yield from sorted(groups.items())


def _message(one: Observation) -> str:
    assert isinstance(one.result, Error)
    return one.result.message


def _skeleton(one: Observation) -> str:
    return _WORD.sub(_SAID, _message(one))


def _template(skeleton: str, ones: Sequence[Observation]) -> str:
    """The message with a place wherever it names an operand's dtype, for all of these observations alike."""
    possible: list[set[str]] | None = None
    for one in ones:
        words = _WORD.findall(_message(one))
        now = [_readings(word, one.operands) for word in words]
        possible = now if possible is None else [a & b for a, b in zip(possible, now, strict=True)]
    texts = skeleton.split(_SAID)
    places = ["…" if not found else min(found, key=_reading_order) for found in possible or []]
    return "".join(text + place for text, place in zip(texts, [*places, ""], strict=True))


def _readings(word: str, operands: Operands) -> set[str]:
    dtype, style = _STYLE_OF[word]
    whos = [*map(str, range(len(operands))), PROMOTED]
    return {word} | {f"{{{who}.{style}}}" for who in whos if named_dtype(who, operands) == dtype}


def _reading_order(reading: str) -> tuple[int, str]:
    """A word that was the same in all observations is the word itself."""
    return int(reading.startswith("{")), reading
