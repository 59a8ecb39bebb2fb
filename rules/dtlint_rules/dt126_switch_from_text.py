"""DT126: a switch for half precision made of text by `bool`, for which "False" is true."""

from __future__ import annotations

import ast
import re
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Edit, Fix
from dtlint.infer.names import path_of
from dtlint.infer.values import External
from dtlint.rule import Finding, Rule
from dtlint_rules._imports import imports
from dtlint_rules._names import last_name, said
from dtlint_rules._parts import bound_to, keyword
from dtlint_rules._within import within

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call
    from dtlint.source.place import Place

__all__ = ["SwitchFromText"]

_SWITCH = re.compile(
    r"(?:^|[_.-])(?:fp16|bf16|fp8|float16|bfloat16|half|amp|tf32|autocast)(?:$|[_.-])|(?:mixed|half|full)[_-]?precision",
    re.IGNORECASE,
)
"""How a switch for half precision, or for TF32, is called."""
_OTHER_PARSERS = frozenset({"jsonargparse", "tap", "typed_argparse"})
"""Packages whose parsers read `type=bool` as yes or no."""
_TEXTS = ("sys.argv", "argv", "os.environ", "os.getenv", "environ", "getenv")


class SwitchFromText(Rule):
    """A switch for half precision is text that `bool` makes true whatever it says.

    ## What it does
    Reports `add_argument("--fp16", type=bool)` and `use_half = bool(sys.argv[2])`, `amp = bool(os.environ.get("AMP", 0))`,
    of options and variables whose name says that they choose half precision, autocast or TF32. Parsers that read
    `type=bool` as yes or no, those of jsonargparse and LightningCLI, are left alone; so is a variable of the environment
    without a default, which may well mean to be set or not.

    ## Why it matters
    `bool` of a text is True for every text but the empty one: `--fp16 False` and `AMP=0` switch half precision on. The
    program says nothing of it, and who compares a run in float32 with one in float16 compares float16 with itself.

    ## Example
    ```python
    import argparse

    parser = argparse.ArgumentParser()
    parser.add_argument("--fp16", type=bool, default=False)
    ```

    ## Use instead
    ```python
    import argparse

    parser = argparse.ArgumentParser()
    parser.add_argument("--fp16", action="store_true", default=False)
    ```

    ## Fix safety
    The fix makes a switch of the option, where it is off unless it is given. It is unsafe, for `--fp16 True` is then no
    longer understood. Where it is on unless it is given, and where `bool` is called, there is no fix.

    ## References
    - [argparse: type](https://docs.python.org/3/library/argparse.html#type)
    """

    code, name = "DT126", "switch-from-text"
    fix = Applicability.UNSAFE
    triggers = (",type=bool", "(type=bool", *(f"bool({text}" for text in _TEXTS))
    needs = (("add_argument", "add_arg", "argv", "environ", "getenv"),)
    calls = frozenset({"add_argument", "add_arg", "bool"})

    def on_call(self, call: Call) -> Iterable[Finding]:
        if call.name == "bool":
            return _made(call) if call.target == "builtins.bool" and len(call.node.args) == 1 else ()
        return _declared(call)


def _declared(call: Call) -> Iterator[Finding]:
    """`parser.add_argument("--fp16", type=bool)`."""
    kind, flow = keyword(call.node, "type"), call.flow
    if not isinstance(kind, ast.Name) or not _is_bool(call) or keyword(call.node, "action") is not None:
        return
    options = [part.value for part in call.node.args if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    option = next(filter(_SWITCH.search, (option.lstrip("-") for option in options)), None)
    if option is None or not _OTHER_PARSERS.isdisjoint(imports(flow.tree)):
        return
    function = flow.function.node if flow.function is not None else None
    if getattr(function, "name", "") == "add_arguments_to_parser":
        return  # of LightningCLI, whose parser is that of jsonargparse
    spelled = next(name for name in options if name.lstrip("-") == option)
    yield Finding(
        call.node,
        f"`bool` of a text is True for every text but the empty one: `{spelled} False` switches it on",
        help='Use `action="store_true"`, or `argparse.BooleanOptionalAction`',
        fix=partial(_as_switch, call.node),
    )


def _is_bool(call: Call) -> bool:
    kind = call.keywords.get("type")
    return isinstance(kind, External) and kind.name == "builtins.bool"


def _made(call: Call) -> Iterator[Finding]:
    """`half = bool(sys.argv[2])`, `amp = bool(os.environ.get("AMP", "0"))`."""
    text = call.node.args[0]
    if not _is_argument(text) and not _is_variable(text):
        return
    called = [*said(text), *map(last_name, bound_to(call.node, call.flow.statement))]
    parent = next(within(call.node, call.flow), None)
    if isinstance(parent, ast.keyword) and parent.arg:
        called.append(parent.arg)
    if not any(map(_SWITCH.search, called)):
        return
    yield Finding(
        call.node,
        f"`{ast.unparse(text)}` is a text, and `bool` of it is True for every one but the empty: also for `0` and `False`",
        help='Compare it: `text.lower() in ("1", "true", "yes")`',
    )


def _is_argument(node: ast.expr) -> bool:
    """`sys.argv[2]`, `os.environ["AMP"]`."""
    return isinstance(node, ast.Subscript) and path_of(node.value) in ("sys.argv", "argv", "os.environ", "environ")


def _is_variable(node: ast.expr) -> bool:
    """`os.environ.get("AMP", "0")`, with a default that says no: the text of the variable says it too."""
    if not isinstance(node, ast.Call) or len(node.args) != 2 or node.keywords:
        return False
    if path_of(node.func) not in ("os.environ.get", "os.getenv", "environ.get", "getenv"):
        return False
    default = node.args[1]
    return isinstance(default, ast.Constant) and default.value in (False, "0", "False", "false", "no", "off")


def _as_switch(node: ast.Call, place: Place) -> Fix | None:
    """`action="store_true"` for `type=bool`, where the option is off unless it is given."""
    kind = next(part for part in node.keywords if part.arg == "type")
    others = {part.arg for part in node.keywords} - {"type", "default", "help", "dest", "required"}
    default = keyword(node, "default")
    off = default is None or (isinstance(default, ast.Constant) and default.value in (False, None))
    if others or not off or keyword(node, "required") is not None:
        return None
    edit = Edit(place.source.span(kind), 'action="store_true"')
    return Fix('Use `action="store_true"`', (edit,), Applicability.UNSAFE)
