"""argparse: what the options of a program are, given in any way, or as a run of the program gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import Category
from dtlint.infer.domain.lattice import join
from dtlint.infer.domain.values import NO_TENSOR, NONE, TOP, Const, External, Many, Number, Ref, Tuple, Value
from dtlint.infer.models.registry import model

if TYPE_CHECKING:
    from dtlint.infer.context import Arguments, Context
    from dtlint.infer.domain.values import Address

__all__ = ["AS_GIVEN", "OTHERS_GIVEN"]

AS_GIVEN = "options"
"""What holds everywhere: the options on the command line, as pairs; None where they may be any."""
OTHERS_GIVEN = Const("others given")
"""Among the pairs: options that are None where they are not given may be given, too. A program may ask for one of them."""
_PARSER = "argparse.ArgumentParser"
_TYPES = {"builtins.int": Category.INTEGER, "builtins.float": Category.FLOAT}
_ANY, _USUAL, _OTHERS = "*option ", "*default ", "*others "
"""Fields of a parser, before the name of an option: what it may be, what it is where it is not given, and a tuple of
constants that it may be instead."""


@model(_PARSER)
def _parser(ctx: Context, arguments: Arguments) -> Value:
    return ctx.allocate(arguments.node, _PARSER)


@model(f"{_PARSER}.add_argument_group", f"{_PARSER}.add_mutually_exclusive_group")
def _group(ctx: Context, arguments: Arguments) -> Value:
    """Options of a group are the parser's."""
    return arguments.args[0]


@model(f"{_PARSER}.add_argument")
def _add_argument(ctx: Context, arguments: Arguments) -> Value:
    parser = arguments.args[0]
    names = [value.value for value in arguments.args[1:] if isinstance(value, Const) and isinstance(value.value, str)]
    if not isinstance(parser, Ref) or not names:
        return NO_TENSOR
    name = next((one for one in names if one.startswith("--")), names[0]).lstrip("-").replace("-", "_")
    dest = arguments.keywords.get("dest")
    if isinstance(dest, Const):
        name = str(dest.value)
    value = _anything(arguments)
    usual = _when_not_given(arguments, value) if names[0].startswith("-") and arguments.complete else value
    ctx.store.write(parser.address, _ANY + name, value)
    ctx.store.write(parser.address, _USUAL + name, usual)
    ctx.store.write(parser.address, _OTHERS + name, Tuple(tuple(_others(ctx, arguments, usual))))
    return NO_TENSOR


def _anything(arguments: Arguments) -> Value:
    """What an option may be."""
    action, kind, default = (arguments.keywords.get(one) for one in ("action", "type", "default"))
    if action in _SWITCHES:
        return Number(Category.BOOL)
    if isinstance(kind, External) and kind.name in _TYPES and "nargs" not in arguments.keywords:
        value: Value = Number(_TYPES[kind.name])
        return join(value, NONE) if default is None or default == NONE else value
    return NO_TENSOR if kind is None or kind == External("builtins.str") else TOP


_SWITCHES: dict[Value | None, Value] = {Const("store_true"): Const(False), Const("store_false"): Const(True)}
"""What options without a value are where they are not given, by their action."""


def _when_not_given(arguments: Arguments, value: Value) -> Value:
    """What an option is that is not on the command line. Strings go through the type, as those on the command line do."""
    action, kind, default, required = (arguments.keywords.get(one) for one in ("action", "type", "default", "required"))
    if required not in (None, Const(False)) or default == External("argparse.SUPPRESS"):
        return value
    if default is None:
        return _SWITCHES.get(action, NONE)
    is_text = isinstance(default, Const) and isinstance(default.value, str)
    return value if is_text and kind not in (None, External("builtins.str")) else default


def _others(ctx: Context, arguments: Arguments, usual: Value) -> list[Value]:
    """What else an option can be, of few: the other truth value, or another of its choices."""
    if isinstance(usual, Const) and isinstance(usual.value, bool):
        return [Const(not usual.value)]
    choices = arguments.keywords.get("choices")
    items = None if choices is None else ctx.semantics.items(ctx, choices, arguments.node)
    return [one for one in items.items if isinstance(one, Const) and one != usual] if isinstance(items, Tuple) else []


@model(f"{_PARSER}.set_defaults")
def _set_defaults(ctx: Context, arguments: Arguments) -> Value:
    parser = arguments.args[0]
    if isinstance(parser, Ref):
        for name, value in arguments.keywords.items():
            known = ctx.store.read(parser.address, _ANY + name)
            ctx.store.write(parser.address, _ANY + name, value if known is None else join(known, value))
            ctx.store.write(parser.address, _USUAL + name, value)
    return NONE


@model(f"{_PARSER}.parse_args")
def _parse_args(ctx: Context, arguments: Arguments) -> Value:
    parser = arguments.args[0]
    made = ctx.allocate(arguments.node, "types.SimpleNamespace")
    if not isinstance(parser, Ref):
        return made
    given = ctx.ambient(AS_GIVEN) if len(arguments.args) == 1 and not arguments.keywords else NONE
    pairs = [pair.items for pair in given.items if isinstance(pair, Tuple)] if isinstance(given, Tuple) else []
    turned = {pair[0]: pair[1] for pair in pairs}
    for field in ctx.store.fields(parser.address):
        if isinstance(field, str) and field.startswith(_ANY):
            name = field.removeprefix(_ANY)
            value = turned.get(Const(name)) or _value(ctx, parser.address, name, given)
            ctx.store.write(made.address, name, value)
            others = ctx.store.read(parser.address, _OTHERS + name)
            if isinstance(others, Tuple):
                ctx.modules.options.setdefault(name, {}).update(dict.fromkeys(others.items))
    ctx.semantics.tells()
    return made


def _value(ctx: Context, parser: Address, name: str, given: Value) -> Value:
    """What an option is that the command line is not said to name."""
    anything = ctx.store.read(parser, _ANY + name) or TOP
    usual = ctx.store.read(parser, _USUAL + name) or TOP
    if given == NONE:
        return anything
    is_open = usual == NONE and isinstance(given, Tuple) and OTHERS_GIVEN in given.items
    return join(anything, NONE) if is_open else usual


@model(f"{_PARSER}.parse_known_args")
def _parse_known_args(ctx: Context, arguments: Arguments) -> Value:
    rest = ctx.allocate((arguments.node, "rest"), "builtins.list", Many(NO_TENSOR))
    return Tuple((_parse_args(ctx, arguments), rest))
