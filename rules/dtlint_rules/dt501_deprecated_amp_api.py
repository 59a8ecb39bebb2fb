"""DT501: autocast, GradScaler, custom_fwd and custom_bwd of torch.cuda.amp and torch.cpu.amp."""

from __future__ import annotations

import ast
import re
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Edit, Fix
from dtlint.infer.around import around
from dtlint.infer.names import path_of
from dtlint.rule import Finding, Rule
from dtlint_rules._amp_arguments import is_device
from dtlint_rules._names import last_name, said
from dtlint_rules._needs import attributes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.events import Call, Condition, End, Reference
    from dtlint.source.place import Place

__all__ = ["DeprecatedAmpApi"]

_DEVICES = {
    **dict.fromkeys(
        (f"torch.cuda.amp.{name}" for name in ("autocast", "GradScaler", "custom_fwd", "custom_bwd")), "cuda"
    ),
    **dict.fromkeys((f"torch.cpu.amp.{name}" for name in ("autocast", "GradScaler")), "cpu"),
}
"""What is deprecated, and the device that its successor in torch.amp has to be told."""

_BY_DEVICE = {
    f"torch.{before}_autocast_{device}{behind}": (f"{before}_autocast{new}", {"gpu": "cuda"}.get(device, device))
    for device in ("gpu", "cpu", "xla")
    for before, behind, new in (
        ("get", "_dtype", "_dtype"),
        ("set", "_dtype", "_dtype"),
        ("is", "_enabled", "_enabled"),
        ("set", "_enabled", "_enabled"),
    )
    if device != "gpu" or behind == "_dtype"
}
"""Functions of one device each, with the function of all devices that takes its place, and the device that is told to it.
Seen to warn on torch 2.13."""
_AUTOCAST_PARAMETERS = ("enabled", "dtype", "cache_enabled")
"""Of the old autocast, by position. The new one begins with device_type, dtype, enabled."""


_ASKED = attributes(_BY_DEVICE)
_TYPE_TESTS = frozenset({"isinstance", "issubclass", "assertIsInstance", "assertNotIsInstance"})
_ASKING = _TYPE_TESTS | {
    *("partial", "hasattr", "getattr", "callable", "signature", "patch", "object", "print", "repr", "id")
}
"""Functions that ask after what they are given, or are judged by themselves; `mock.patch.object` among them."""

_HOLDERS = (ast.BoolOp, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.keyword, ast.Starred)
"""What holds a value and is one."""
_FORMATTED = (ast.JoinedStr, getattr(ast, "TemplateStr", ast.JoinedStr))
"""Strings that hold expressions; those with `t` come with Python 3.14."""


class DeprecatedAmpApi(Rule):
    """`torch.cuda.amp` and `torch.cpu.amp` are deprecated in favour of `torch.amp`.

    ## What it does
    Reports uses of `torch.cuda.amp.autocast`, `GradScaler`, `custom_fwd` and `custom_bwd`, and of
    `torch.cpu.amp.autocast` and `GradScaler`: where they are called, decorate, are the base of a class, stand in an
    annotation, `isinstance` or `functools.partial`, or are returned, kept or handed on; where an `if` for the hardware
    takes the name from another package, the import. So are calls of
    `torch.get_autocast_gpu_dtype`, `torch.is_autocast_cpu_enabled` and their kin, one for each device. Code that runs
    only with an older torch, by a version test or an `except ImportError`, is left alone; a test that every torch from 2.4
    on passes, `V(torch.__version__) >= V("1.6")`, does not count.

    ## Why it matters
    Since torch 2.4 calling them gives a FutureWarning, and the names are to go. Their successors take the device as an
    argument, so the same code serves CUDA, CPU, XPU and MPS.

    The arguments are not in the same order: `torch.cuda.amp.autocast(False)` switches autocast off, while
    `torch.amp.autocast("cuda", False)` asks for the dtype `False`.

    ## Example
    ```python
    import torch
    from torch.cuda.amp import GradScaler, autocast

    scaler = GradScaler(init_scale=2.0**14)
    with autocast(True, dtype=torch.float16):
        y = torch.randn(4, 4) @ torch.randn(4, 4)
    ```

    ## Use instead
    ```python
    import torch

    scaler = torch.amp.GradScaler("cuda", init_scale=2.0**14)
    with torch.amp.autocast("cuda", enabled=True, dtype=torch.float16):
        y = torch.randn(4, 4) @ torch.randn(4, 4)
    ```

    ## Fix safety
    The fix is safe: the old names call the new ones with the same values. Positional arguments of autocast become
    keywords, `import torch` is added where the file needs it, and an import that is left without a use is removed. It
    is unsafe where the project declares an older torch than has the new name, or `target-torch` is older: `autocast`
    is in `torch.amp` since torch 1.12, `GradScaler` since 2.3, the others since 2.4; and in a file that asks for
    `torch.__version__`. In `functools.partial(autocast,
    ...)` it is unsafe, too, for the partial may be called with positional arguments. There is no fix where the
    arguments are hidden in `*args`, where a class inherits, where the name is looked up on an object or handed on,
    inside of f-strings, or where the program changes autocast's default dtype, which the old autocast does not heed.

    ## References
    - [torch.amp](https://docs.pytorch.org/docs/stable/amp.html)
    - [torch 2.4: deprecations](https://github.com/pytorch/pytorch/releases/tag/v2.4.0)
    """

    code, name = "DT501", "deprecated-amp-api"
    fix = Applicability.SAFE
    since = (2, 4)
    triggers = ("autocast", "GradScaler", "custom_fwd", "custom_bwd", *_ASKED)
    needs = (("amp", *_ASKED), ("cuda", "cpu", *_ASKED))

    def __init__(self) -> None:
        self.named: dict[ast.expr, str] = {}
        """What expressions name of torch, for those that a fix may have to know."""
        self.tree: ast.Module | None = None
        self.reported: set[str] = set()
        """The names, without what stands before a dot, by which those are spelled that are reported."""
        self.bound: list[tuple[Finding, frozenset[str]]] = []
        """Assignments, and the names that they bind."""

    def on_reference(self, reference: Reference) -> Iterator[Finding]:
        name, node = reference.name, reference.node
        if name.startswith("torch."):
            self.named[node] = name
        if name not in _DEVICES or reference.flow.version_gated:
            return
        self.tree = reference.flow.tree
        parent = next(self._around(node), None)
        if isinstance(parent, ast.ClassDef) and node in parent.bases:
            message = f"The base class `{name}` is deprecated since torch 2.4"
            yield self._found(Finding(node, message, _help(name)), node)
        elif node in getattr(parent, "decorator_list", ()):
            fix = partial(self._decorating, name=name, node=node)
            yield self._found(Finding(node, _warns(name), _help(name), fix=fix), node)
        elif self._is_type(node):
            new = f"torch.amp.{_last(name)}"
            message = f"`{name}` is deprecated since torch 2.4: a `{new}` is not an instance of it"
            fix = partial(self._renamed, name=name, node=node)
            yield self._found(Finding(node, message, f"Use `{new}`", fix=fix), node)
        else:
            yield from self._value(name, node)

    def on_call(self, call: Call) -> Iterator[Finding]:
        node = call.node
        if call.flow.version_gated:
            return
        if call.target in _DEVICES and node.func in self.named:
            fix = partial(self._called, call=call)
            yield self._found(Finding(node, _warns(call.target), _help(call.target), fix=fix), node.func)
        elif call.target == "functools.partial" and node.args and self.named.get(node.args[0]) in _DEVICES:
            name = self.named[node.args[0]]
            fix = partial(self._partial, name=name, node=node)
            yield self._found(Finding(node, _warns(name), _help(name), fix=fix), node.args[0])
        elif call.target in _BY_DEVICE and not any(map(_is_refusal, call.flow.conditions)):
            self.tree = call.flow.tree
            new, device = _BY_DEVICE[call.target]
            told = f'Use `torch.{new}("{device}"{", ..." if node.args else ""})`'
            warns = f"`{call.target}` is deprecated since torch 2.4"
            renamed = partial(_of_all_devices, call=call) if call.complete else None
            yield self._found(Finding(node, warns, told, fix=renamed), node.func)

    def on_end(self, end: End) -> Iterator[Finding]:
        if end.flow.function is None:
            # What the file calls by its new name is reported where it is called.
            yield from (finding for finding, names in self.bound if not names & self.reported)
            yield from _by_hardware(end.flow.tree, self.reported)

    def _found(self, finding: Finding, spelled: ast.expr) -> Finding:
        """The finding, noted; without its fix in an f-string, where the quotes that it brings may end the string."""
        self.reported.add(last_name(spelled))
        if any(isinstance(node, _FORMATTED) for node in self._around(spelled)):
            finding.fix = None
        return finding

    def _around(self, node: ast.AST) -> Iterator[ast.AST]:
        """What an expression stands in, innermost first."""
        assert self.tree is not None
        return around(node, self.tree)

    def _value(self, name: str, node: ast.expr) -> Iterator[Finding]:
        """The finding where a value is handed on: returned, kept, given as an argument."""
        child: ast.AST = node
        for parent in self._around(node):
            if isinstance(parent, _HOLDERS) or (isinstance(parent, ast.IfExp) and child is not parent.test):
                child = parent
                continue
            given = isinstance(parent, ast.Call) and child is not parent.func and last_name(parent) not in _ASKING
            if given or isinstance(parent, (ast.Return, ast.Yield, ast.arguments, ast.Lambda)):
                yield self._found(Finding(node, _warns(name), _help(name)), node)
            elif isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and child is parent.value:
                targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
                names = frozenset(map(last_name, targets))
                self.bound.append((Finding(node, _warns(name), _help(name)), names))
            return

    def _is_type(self, node: ast.expr) -> bool:
        """Does the expression stand for a type: in an annotation, or in `isinstance(x, node)`?"""
        child: ast.AST = node
        for parent in self._around(node):
            if isinstance(parent, ast.stmt):
                return child in (getattr(parent, "annotation", None), getattr(parent, "returns", None))
            if isinstance(parent, ast.arg):
                return True
            if isinstance(parent, ast.Call):
                asked = last_name(parent) in _TYPE_TESTS
                return asked and parent.args[1:2] == [child] and not _names_both(child)
            child = parent
        return False

    # -- fixes

    def _successor(
        self, place: Place, name: str, node: ast.expr
    ) -> tuple[str, tuple[Edit, ...], tuple[str, ...]] | None:
        """How the successor of what `node` names is written there, the import it takes, the name it leaves alone."""
        new, last = f"torch.amp.{_last(name)}", _last(name)
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return None
        place.needs(new)
        base = _below(node, (last, "amp", _DEVICES[name]))
        if base is not None:
            return f"{place.text(base)}.amp.{last}", (), ()
        if isinstance(node, ast.Attribute) and node.value not in self.named:
            return None  # looked up on an object or a class, which a subclass may override
        path = path_of(node)
        if path is None:
            return None
        spelling, edits = place.spelled(new)
        return spelling, edits, (path.partition(".")[0],)

    def _renamed(self, place: Place, name: str, node: ast.expr, behind: str = "", *more: Edit) -> Fix | None:
        """The fix that puts the successor's name, and `behind` it what it needs besides, where `node` stands."""
        successor = self._successor(place, name, node)
        if successor is None:
            return None
        spelling, edits, orphans = successor
        edits = (place.replace(node, spelling + behind), *edits, *more)
        return Fix(_help(name), edits, _trust(place), orphans)

    def _decorating(self, place: Place, name: str, node: ast.expr) -> Fix | None:
        if _last(name) not in ("custom_fwd", "custom_bwd"):
            return None  # `@autocast` without parentheses takes the function for `enabled`
        return self._renamed(place, name, node, f'(device_type="{_DEVICES[name]}")')

    def _called(self, place: Place, call: Call) -> Fix | None:
        name, node = call.target, call.node
        device = _DEVICES[name]
        if _last(name) in ("custom_fwd", "custom_bwd"):
            return self._renamed(place, name, node.func, "", place.append_argument(f'device_type="{device}"'))
        if _tells_device(call):
            return self._renamed(place, name, node.func)  # the arguments are those of the successor already
        if _last(name) == "GradScaler":
            return self._renamed(place, name, node.func, "", place.insert_argument(f'"{device}"'))
        if _starred(node) or _default_changes(place, node):
            return None
        count = len(node.args)
        more = [place.name_argument(position, _AUTOCAST_PARAMETERS[position]) for position in range(1, count)]
        first = place.insert_argument(f'"{device}"', then=_AUTOCAST_PARAMETERS[0] if count else "")
        return self._renamed(place, name, node.func, "", first, *more)

    def _partial(self, place: Place, name: str, node: ast.Call) -> Fix | None:
        device, held = _DEVICES[name], node.args[0]
        if _last(name) in ("custom_fwd", "custom_bwd"):
            return self._renamed(place, name, held, "", place.append_argument(f'device_type="{device}"'))
        if _last(name) == "GradScaler":
            return self._renamed(place, name, held, f', "{device}"')
        if _starred(node) or _default_changes(place, node):
            return None
        more = [
            place.name_argument(position, _AUTOCAST_PARAMETERS[position - 1]) for position in range(1, len(node.args))
        ]
        fix = self._renamed(place, name, held, f', "{device}"', *more)
        return None if fix is None else Fix(fix.message, fix.edits, Applicability.UNSAFE, fix.orphans)


def _by_hardware(tree: ast.Module, reported: set[str]) -> Iterator[Finding]:
    """`if is_npu(): from torch_npu.amp import GradScaler`, `else: from torch.cuda.amp import GradScaler`: of what is called
    by that name no more is known than that it is one of these."""
    for choice in tree.body:
        if not isinstance(choice, ast.If):
            continue
        branches, tests = _branches(choice)
        if len(branches) < 2 or any(_RELEASE.search(word) for test in tests for word in said(test)):
            continue
        taken = [
            [(part, alias) for part in branch if isinstance(part, ast.ImportFrom) for alias in part.names]
            for branch in branches
        ]
        for branch in taken:
            for part, alias in branch:
                name, bound = f"{part.module}.{alias.name}", alias.asname or alias.name
                if name not in _DEVICES or bound in reported:
                    continue
                others = {
                    other.module
                    for each in taken
                    if each is not branch
                    for other, beside in each
                    if (beside.asname or beside.name) == bound
                }
                if others and others.isdisjoint(("torch.amp", part.module)):
                    yield Finding(part, _warns(name), _help(name))


def _branches(choice: ast.If) -> tuple[list[list[ast.stmt]], list[ast.expr]]:
    """The branches of an `if` with all its `elif`s, and their tests."""
    branches, tests = [choice.body], [choice.test]
    rest = choice.orelse
    while len(rest) == 1 and isinstance(choice := rest[0], ast.If):  # type: ignore[assignment]
        branches.append(choice.body)
        tests.append(choice.test)
        rest = choice.orelse
    return [*branches, *([rest] if rest else [])], tests


_RELEASE = re.compile(
    r"version|hasattr|getattr|amp|torch_?v?(\d|[gl][te])|greater|less|since|legacy|new|old", re.IGNORECASE
)
"""What stands in a test for a release of torch."""


def _is_refusal(condition: Condition) -> bool:
    """Is this `except TypeError:`, behind a call of the function of all devices that an older torch refuses?"""
    return any(path_of(part) == "TypeError" for part in ast.walk(condition.test))


def _of_all_devices(place: Place, call: Call) -> Fix | None:
    """The function that is told the device, in place of the one of that device."""
    function = call.node.func
    if not isinstance(function, (ast.Name, ast.Attribute)):
        return None
    new, device = _BY_DEVICE[call.target]
    spelling, edits = place.spelled(f"torch.{new}")
    orphans = ((path_of(function) or "").partition(".")[0],)
    edits = (place.replace(function, spelling), place.insert_argument(f'"{device}"'), *edits)
    return Fix(f"Use `torch.{new}`", edits, _trust(place), orphans)


def _trust(place: Place) -> Applicability:
    """How far the fix can be trusted: a file that asks for the release of torch may be meant for older ones, too."""
    return Applicability.UNSAFE if "torch.__version__" in place.source.text else Applicability.SAFE


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _warns(name: str) -> str:
    return f"`{name}` is deprecated since torch 2.4"


def _help(name: str) -> str:
    device = f'device_type="{_DEVICES[name]}"' if "custom" in name else f'"{_DEVICES[name]}"'
    return f"Use `torch.amp.{_last(name)}({device})`"


def _below(node: ast.expr, attributes: tuple[str, ...]) -> ast.expr | None:
    """The expression of which `node` is these attributes, last first; None when it is not."""
    for attribute in attributes:
        if not isinstance(node, ast.Attribute) or node.attr != attribute:
            return None
        node = node.value
    return node


def _tells_device(call: Call) -> bool:
    """Is it told a device, which raises as it stands: `torch.cuda.amp.autocast("cuda", enabled=False)`?"""
    if any(keyword.arg in ("device", "device_type") for keyword in call.node.keywords):
        return True
    return bool(call.node.args) and is_device(call.node.args[0], call.argument(0, ""))


def _starred(node: ast.Call) -> bool:
    return any(isinstance(argument, ast.Starred) for argument in node.args) or len(node.args) > 4


def _default_changes(place: Place, node: ast.Call) -> bool:
    """Is the dtype left to a default that the program sets, or the cache? The old autocast's are fixed."""
    given = len(node.args) > 1 or any(keyword.arg in ("dtype", None) for keyword in node.keywords)
    return not given and _sets_defaults(place.source.text)


@lru_cache(maxsize=1)
def _sets_defaults(text: str) -> bool:
    return re.search(r"\bset_autocast_(?:\w*dtype|cache)", text) is not None


def _names_both(node: ast.AST) -> bool:
    """Does a tuple of classes name old and new: is the code made for both?"""
    paths = [path_of(item) or "" for item in getattr(node, "elts", ())]
    return len({_last(path) for path in paths}) < len(paths)
