"""Regular expressions: matched as Python does it where the pattern and the text are constants."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from dtlint.infer.domain.lattice import join_all
from dtlint.infer.domain.values import NO_TENSOR, NONE, TOP, Const, Many, Mapping, Ref, Tuple, Value, choices
from dtlint.infer.models.registry import model
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from dtlint.infer.context import Arguments, Context
    from dtlint.infer.models.registry import Model

_LONGEST = 10_000
"""Characters of a pattern and of the texts that it is looked for in."""
_SOURCE = "*pattern"


@model("re.compile")
def _compile(ctx: Context, arguments: Arguments) -> Value:
    pattern = arguments.get(0, "pattern")
    if not isinstance(pattern, Const) or len(arguments.args) + len(arguments.keywords) != 1:
        return NO_TENSOR
    made = ctx.allocate(arguments.node, "re.Pattern")
    ctx.store.write(made.address, _SOURCE, pattern)
    ctx.store.write(made.address, "pattern", pattern)
    return made


def _texts(ctx: Context, arguments: Arguments) -> list[str] | None:
    """The pattern and what else is given, where all of it is known and short."""
    if arguments.keywords or not arguments.complete:
        return None
    found: list[str] = []
    for value in arguments.args:
        if isinstance(value, Ref) and value.address.kind == "re.Pattern":
            value = ctx.store.read(value.address, _SOURCE) or TOP
        if not isinstance(value, Const) or not isinstance(value.value, str):
            return None
        found.append(value.value)
    return found if sum(map(len, found)) <= _LONGEST else None


def _of_each_text(match: Model) -> Model:
    """The same for a text that is one of several."""

    def call(ctx: Context, arguments: Arguments) -> Value:
        if not arguments.args:
            return match(ctx, arguments)
        *before, text = arguments.args
        found = (match(ctx, replace(arguments, args=[*before, one])) for one in choices(text))
        return join_all(found) or TOP

    return call


def _listing(name: str) -> None:
    function = getattr(re, name)

    @model(f"re.{name}", f"re.Pattern.{name}")
    @_of_each_text
    def call(ctx: Context, arguments: Arguments) -> Value:
        given = _texts(ctx, arguments)
        if given is None:
            return NO_TENSOR if name == "sub" else ctx.allocate(arguments.node, "builtins.list", Many(NO_TENSOR))
        try:
            found = function(*given)
        except (re.error, IndexError, TypeError):
            return TOP
        if isinstance(found, str):
            return Const(found)
        listed = [Tuple(tuple(map(Const, one))) if isinstance(one, tuple) else Const(one) for one in found]
        return ctx.allocate(arguments.node, "builtins.list", Tuple(tuple(listed)))


def _matching(name: str) -> None:
    function = getattr(re, name)

    @model(f"re.{name}", f"re.Pattern.{name}")
    @_of_each_text
    def call(ctx: Context, arguments: Arguments) -> Value:
        given = _texts(ctx, arguments)
        if given is None or len(given) != 2:
            return NO_TENSOR
        try:
            found = function(*given)
        except re.error:
            return TOP
        if found is None:
            return NONE
        groups: list[tuple[Value, Value]] = [(Const(0), Const(found.group()))]
        groups += [(Const(place), Const(text)) for place, text in enumerate(found.groups(), start=1)]
        groups += [(Const(each), Const(text)) for each, text in found.groupdict().items()]
        return ctx.allocate(arguments.node, "re.Match", Mapping(tuple(groups)))


for _name in ("findall", "split", "sub"):
    _listing(_name)
for _name in ("match", "fullmatch", "search"):
    _matching(_name)


def _groups(ctx: Context, arguments: Arguments) -> Mapping | None:
    owner = arguments.args[0]
    content = ctx.store.read(owner.address, CONTENT) if isinstance(owner, Ref) else None
    return content if isinstance(content, Mapping) else None


@model("re.Match.group", "re.Match.__getitem__")
def _group(ctx: Context, arguments: Arguments) -> Value:
    groups, keys = _groups(ctx, arguments), arguments.args[1:] or [Const(0)]
    if groups is None:
        return NO_TENSOR
    found = [groups.get(key) or NO_TENSOR for key in keys]
    return found[0] if len(found) == 1 else Tuple(tuple(found))


@model("re.Match.groups")
def _all_groups(ctx: Context, arguments: Arguments) -> Value:
    groups = _groups(ctx, arguments)
    if groups is None:
        return Many(NO_TENSOR)
    places = (key.value if isinstance(key, Const) else None for key, _ in groups.items)
    numbered = zip(places, groups.items, strict=True)
    return Tuple(tuple(text for place, (_, text) in numbered if type(place) is int and place > 0))


@model("re.Match.groupdict")
def _named_groups(ctx: Context, arguments: Arguments) -> Value:
    groups = _groups(ctx, arguments)
    items = () if groups is None else groups.items
    named = tuple((key, text) for key, text in items if isinstance(key, Const) and isinstance(key.value, str))
    rest = NO_TENSOR if groups is None else None
    return ctx.allocate(arguments.node, "builtins.dict", Mapping(named, rest))
