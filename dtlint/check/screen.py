"""The first look at a file: the rules whose words stand in it; of the others it is clean without being interpreted.

The text is split into words once, and each group of words that rules ask for is met with those. Nearly all that is
asked is in the set of words, which costs a tenth of what a search through the text for each would.
"""

from __future__ import annotations

import ast
import re
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dtlint.catalogue import AnyRule

__all__ = ["Group", "Text", "code_of", "triggered"]


def triggered(rules: Sequence[AnyRule], file: Text) -> list[AnyRule]:
    """The rules that judge code at all, and whose words stand in a file: one of the `triggers`, and one of each group
    in `needs`. The forms of words are those of `Rule.triggers`."""
    screen = _screen(rules)
    words = screen.words & file.words
    absent = {group for group in screen.groups if group.words.isdisjoint(words)}
    return [
        rule
        for rule, needs, rare in screen.rules
        if absent.isdisjoint(needs) and (not rare or all(map(file.has, rare)))
    ]


def code_of(text: str, tree: ast.Module) -> str:
    """The text of a file without the lines that stand inside its docstrings, and inside other strings that are statements
    of a module, a class or a function: what they speak of, nobody runs. They are a fifth of a library, and of the rules
    that a file is judged by one in twenty would be asked for by them alone."""
    if "\r" in text and text.count("\r") != text.count("\r\n"):
        return text  # lines that end so are counted by the tree, and not here
    inside: list[tuple[int, int]] = []
    waiting: list[ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef] = [tree]
    while waiting:
        for statement in waiting.pop().body:
            kind = type(statement)
            if kind in _WITH_DOCSTRINGS:
                waiting.append(statement)  # type: ignore[arg-type]  # it is one of these
            elif kind is ast.Expr and _is_string(string := statement.value):  # type: ignore[attr-defined]
                inside.append((string.lineno, string.end_lineno))
    lines = text.split("\n")
    kept: list[str] = []
    done = 0
    for first, last in sorted(inside):
        kept += lines[done:first]
        done = max(last - 1, first)  # code may stand before the string on its first line, and behind it on its last
    return "\n".join(kept + lines[done:])


def _is_string(node: ast.expr) -> bool:
    return type(node) is ast.Constant and type(node.value) is str


_WITH_DOCSTRINGS = frozenset({ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef})


class _Screen:
    """What some rules ask for. Groups that take more than the set of words are asked for the rules that are left."""

    def __init__(self, rules: list[AnyRule]) -> None:
        self.asked = rules
        made: dict[frozenset[str], Group] = {}
        self.rules: list[tuple[AnyRule, list[Group], list[Group]]] = []
        for rule in rules:
            if rule.asks():
                asked = [group for group in (rule.triggers, *rule.needs) if group]
                groups = [made.setdefault(frozenset(group), Group(group)) for group in asked]
                rare = sorted((group for group in groups if not group.is_cheap), key=lambda group: bool(group.spelled))
                self.rules.append((rule, [group for group in groups if group.is_cheap], rare))
        self.groups = [group for group in made.values() if group.is_cheap]
        self.words = frozenset[bytes]().union(*(group.words for group in self.groups))


_screens: list[_Screen] = []
"""Those of the rules that were asked for last."""


def _screen(rules: Sequence[AnyRule]) -> _Screen:
    """What some rules ask for, found out once. They are compared, which is done at once for the very same rules: a hash of
    them would be made of each for every file."""
    asked = list(rules)
    for known in _screens:
        if known.asked == asked:
            return known
    made = _Screen(asked)
    _screens.append(made)
    del _screens[:-_KEPT]
    return made


_KEPT = 8


class Group:
    """Words of which one must stand in a file, sorted by where they are looked for; in the order in which they are given."""

    __slots__ = ("is_cheap", "large", "parts", "small", "spelled", "words")

    def __init__(self, group: Sequence[str]) -> None:
        words: set[bytes] = set()
        parts, exponents, spelled = [], set(), []
        for text in group:
            if text.isidentifier() or text.isdecimal():
                words.update(f"{place}{text}".encode() for place in _PLACES)
            elif text.startswith(_PLACES[1:]) and text.lstrip('."').removeprefix("self.").isidentifier():
                words.add(text.encode())
            elif text.startswith("*") and text.endswith("*") and text[1:-1].replace("_", "").isalnum():
                parts.append(text[1:-1].encode())
            elif text.startswith("1e") and text[2:].removeprefix("-").isdecimal():
                exponents.add(int(text[2:]))
            else:
                spelled.append(_Spelled(text))
        self.words, self.parts, self.spelled = frozenset(words), tuple(parts), tuple(spelled)
        self.small = frozenset(exponent for exponent in exponents if exponent < 0)
        self.large = frozenset(exponents - self.small)
        self.is_cheap = not (parts or exponents or spelled)

    def stands_in(self, file: Text) -> bool:
        """Does one of the words stand in a file? `Text.has` asks it once."""
        return (
            not self.words.isdisjoint(file.words)
            or (bool(self.parts) and any(map(file.joined.__contains__, self.parts)))
            or (bool(self.small) and not self.small.isdisjoint(file.small))
            or (bool(self.large) and not self.large.isdisjoint(file.large))
            or (bool(self.spelled) and self._is_spelled_in(file))
        )

    def _is_spelled_in(self, file: Text) -> bool:
        known = file.spelled
        for each in self.spelled:
            if each.text not in known:
                known[each.text] = each.stands_in(file)
            if known[each.text]:
                return True
        return False


_PLACES = ("", ".", "self.", '"')
"""What a word may stand behind: nothing, a dot, the dot of `self`, a quote."""


class _Spelled:
    """A text to look for, white space aside. Most files lack a word of it, or a character that few files have: both are
    found out in no time, a twentieth of what the search for the text itself takes."""

    __slots__ = ("mark", "text", "words")

    def __init__(self, text: str) -> None:
        self.text = _squeezed(text.encode())
        self.mark = next((mark for mark in _RARE if mark in self.text), self.text)
        self.words = [_forms(behind, word) for behind, word in _WHOLE.findall(text.encode())]

    def stands_in(self, file: Text) -> bool:
        return (
            (self.mark is self.text or self.mark in file.marks)
            and not any(map(file.words.isdisjoint, self.words))
            and self.text in file.squeezed
        )


_RARE = tuple(bytes((code,)) for code in b"^~|&%<!*@+")
_WHOLE = re.compile(rb"(\W)(\w+)(?=\W)")
"""The words of which a text has both ends: `int` of `:int=`, and not of `:int`, for that may be `:integer`. Each with what
it stands behind."""


def _forms(behind: bytes, word: bytes) -> frozenset[bytes]:
    """A word, as it is among those of a file that has it behind a certain character, perhaps with white space between."""
    places = {b".": (b".", b"self."), b'"': (b'"', b""), b"'": (b'"', b"")}.get(behind, (b"",))
    return frozenset(place + word for place in places)


def _blank(*kept: str) -> bytes:
    """The table that leaves the characters of words as they are, and these, and makes one quote of two."""
    table = bytearray(
        code if code > 127 or chr(code).isalnum() or chr(code) in ("_", *kept) else 32 for code in range(256)
    )
    if '"' in kept:
        table[ord("'")] = ord('"')
    return bytes(table)


_SEPARATED, _PLAIN = _blank(".", '"'), _blank()

# Each of these begins with letters or marks that are rare: only then is it fast to look for.
_LOOSE = re.compile(rb"\.(?:[\s\\]|#[^\n]*\n)+(\w+)")
"""`x.half` as it may be written where nobody formats code: with white space or a comment behind the dot."""
_FROM = re.compile(
    rb"from[\s\\]*(?P<module>[.\w][.\w\s\\]*?)(?<=[\s\\.])import\b[\s\\]*"
    rb"(?:\((?P<several>(?:[^()#]+|#[^\n]*)*)|(?P<one>(?:[^\n\\]+|\\\n)*))"
)
_SMALL = {b"e-": re.compile(rb"e(-[0-9]{1,3})"), b"E-": re.compile(rb"E(-[0-9]{1,3})")}
_LARGE = {b"e+": re.compile(rb"e\+([0-9]{1,3})"), b"E+": re.compile(rb"E\+([0-9]{1,3})")}
_UNSIGNED = re.compile(rb"[0-9.][eE]([0-9]{1,3})(?= |$)")
"""The exponents of numbers, and what looks like them; those with a sign by how they begin."""
_SHAPE = bytes.maketrans(b"E123456789", b"e000000000")


class Text:
    """The text of a file, with what is looked for in it."""

    def __init__(self, text: str) -> None:
        self.data = text.encode("utf-8", "replace")
        separated = self.data.translate(_SEPARATED).replace(b".", b" .")
        separated = b" self.".join(separated.split(b" self ."))  # which `replace` takes half as long again for
        self.words = set(separated.replace(b'"', b' "').split())
        """The words, with what they stand behind, be it a dot, the dot of `self` or a quote."""
        self.words.update(self._attributes())
        self._held: dict[Group, bool] = {}
        self.spelled: dict[bytes, bool] = {}
        """What has been looked for in the text without its white space, and whether it is there."""

    def _attributes(self) -> Iterator[bytes]:
        """The attributes that do not stand right behind their dot, and those of modules that names are imported from."""
        yield from (b"." + name for name in _LOOSE.findall(self.data))
        for module, several, one in _FROM.findall(self.data):
            yield from (b"." + name for name in (several or one).translate(_PLAIN).split())
            if one.startswith(b"*") and not module.startswith(b"."):
                yield from [b"." + name for name in self.words]

    @cached_property
    def joined(self) -> bytes:
        """All words, each of them once."""
        return b" ".join(self.words)

    @cached_property
    def small(self) -> set[int]:
        """The negative exponents of the numbers that are written with one."""
        return self._signed(_SMALL)

    @cached_property
    def large(self) -> set[int]:
        """The other exponents."""
        found = self._signed(_LARGE)
        if b"0e0" in self._shapes or b".e0" in self._shapes:
            found.update(map(int, _UNSIGNED.findall(self.joined)))
        return found

    def _signed(self, numbers: dict[bytes, re.Pattern[bytes]]) -> set[int]:
        if not (b"0e " in self._shapes or b".e " in self._shapes):
            return set()
        return {int(found) for begin, one in numbers.items() if begin in self.data for found in one.findall(self.data)}

    @cached_property
    def _shapes(self) -> bytes:
        """All words, with one digit for all: most files have no number with an exponent, and show it here at once."""
        return (self.joined + b" ").translate(_SHAPE)

    @cached_property
    def squeezed(self) -> bytes:
        """The text without its white space."""
        return _squeezed(self.data)

    @cached_property
    def marks(self) -> frozenset[bytes]:
        """The characters that few files have, of those that this one has."""
        return frozenset(mark for mark in _RARE if mark in self.data)

    def has(self, group: Group) -> bool:
        """Does one word of a group stand in the file? Asked once for each group."""
        known = self._held.get(group)
        if known is None:
            known = self._held[group] = group.stands_in(self)
        return known


def _squeezed(text: bytes) -> bytes:
    """A text without its white space and backslashes and with quotes of one kind: `x == 'a'` and `x=="a"` are the same."""
    return text.translate(_ONE_QUOTE, b" \t\n\r\f\v\\")


_ONE_QUOTE = bytes.maketrans(b"'", b'"')
