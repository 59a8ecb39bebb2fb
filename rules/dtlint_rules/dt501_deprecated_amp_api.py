"""DT501: autocast, GradScaler, custom_fwd and custom_bwd of torch.cuda.amp and torch.cpu.amp."""

from __future__ import annotations

import ast
import re
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Edit, Fix
from dtlint.infer.domain.values import Const, Device, External
from dtlint.infer.names import path_of
from dtlint.rule import Finding, Rule
from dtlint_rules._needs import attributes
from dtlint_rules._releases import is_for_some_releases

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts
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
    f"torch.{before}_autocast_{device}{behind}": (f"{before}_autocast{behind}", {"gpu": "cuda"}.get(device, device))
    for device in ("gpu", "cpu", "xla")
    for before, behind in (("get", "_dtype"), ("set", "_dtype"), ("is", "_enabled"), ("set", "_enabled"))
    if device != "gpu" or behind == "_dtype"
}
"""Functions of one device each, with the function of all devices that takes its place, and the device that is told to it.
Seen to warn on torch 2.13."""
_AUTOCAST_PARAMETERS = ("enabled", "dtype", "cache_enabled")
"""Of the old autocast, by position. The new one begins with device_type, dtype, enabled."""
_SETTING_DEFAULTS = re.compile(r"\bset_autocast_(?:\w*dtype|cache)")
"""The old autocast does not heed the default dtype that a program sets."""
_TEXTS = (ast.JoinedStr, getattr(ast, "TemplateStr", ast.JoinedStr))
"""Strings that hold expressions; those with `t` come with Python 3.14. A fix might end them by its quotes."""


class DeprecatedAmpApi(Rule):
    """`torch.cuda.amp` and `torch.cpu.amp` are deprecated in favour of `torch.amp`.

    ## What it does
    Reports uses of `torch.cuda.amp.autocast`, `GradScaler`, `custom_fwd` and `custom_bwd`, and of
    `torch.cpu.amp.autocast` and `GradScaler`: where they are called, by whatever name and in whatever file, decorate, are
    the base of a class, stand in `isinstance` or `functools.partial`, or are returned or handed on. So are calls of
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
    triggers = ("autocast", "GradScaler", "custom_fwd", "custom_bwd", *attributes(_BY_DEVICE))
    needs = (("amp", *attributes(_BY_DEVICE)), ("cuda", "cpu", *attributes(_BY_DEVICE)))

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for node, name in facts.names(*_DEVICES, *_BY_DEVICE):
            found = _used(facts, node, name) if isinstance(node.ctx, ast.Load) else None
            if found is not None and not is_for_some_releases(facts, node):
                if any(isinstance(one, _TEXTS) for one in facts.around.around(node)):
                    found.fix = None
                yield found


_Name = ast.Name | ast.Attribute


def _used(facts: ModuleFacts, node: _Name, name: str) -> Finding | None:
    """The finding for a name, by what is done with it. Where it is kept under another name, its uses are found there."""
    parent = facts.around.parent(node)
    warns, told, last = f"`{name}` is deprecated since torch 2.4", _help(name), name.rpartition(".")[2]
    if isinstance(parent, ast.Call) and node is parent.func:
        return Finding(parent, warns, told, fix=partial(_called, facts, name, parent, node))
    if name in _BY_DEVICE or isinstance(parent, (ast.Assign, ast.AnnAssign, ast.Attribute, ast.Expr)):
        return None
    if isinstance(parent, ast.ClassDef) and node in parent.bases:
        return Finding(node, f"The base class `{name}` is deprecated since torch 2.4", told)
    if node in getattr(parent, "decorator_list", ()):
        behind = f'(device_type="{_DEVICES[name]}")'  # `@autocast` takes the function for `enabled`
        fix = partial(_renamed, facts, name, node, behind=behind) if last.startswith("custom") else None
        return Finding(node, warns, told, fix=fix)
    call = next((one for one in facts.around.around(node) if not isinstance(one, (ast.Tuple, ast.List))), None)
    asked = next((one.name for one in facts.calls_at(call)), "") if isinstance(call, ast.Call) else ""
    if asked in ("builtins.isinstance", "builtins.issubclass"):
        if isinstance(parent, ast.Tuple) and _names_both(parent):
            return None
        new = f"torch.amp.{last}"
        message = f"`{name}` is deprecated since torch 2.4: a `{new}` is not an instance of it"
        return Finding(node, message, f"Use `{new}`", fix=partial(_renamed, facts, name, node))
    if asked == "functools.partial" and isinstance(call, ast.Call) and call.args[:1] == [node]:
        return Finding(call, warns, told, fix=partial(_partial, facts, name, call, node))
    is_asked = asked.startswith("builtins.") and asked != "builtins.staticmethod"  # `hasattr`, `callable`, `print`
    return None if is_asked else Finding(node, warns, told)


def _help(name: str) -> str:
    if name in _BY_DEVICE:
        new, device = _BY_DEVICE[name]
        return f'Use `torch.{new}("{device}"{", ..." if new.startswith("set") else ""})`'
    device = f'device_type="{_DEVICES[name]}"' if "custom" in name else f'"{_DEVICES[name]}"'
    return f"Use `torch.amp.{name.rpartition('.')[2]}({device})`"


def _names_both(classes: ast.Tuple) -> bool:
    """Does a tuple of classes name old and new: is the code made for both?"""
    lasts = [(path_of(item) or "").rpartition(".")[2] for item in classes.elts]
    return len(set(lasts)) < len(lasts)


# -- fixes


def _called(facts: ModuleFacts, name: str, call: ast.Call, node: _Name, place: Place) -> Fix | None:
    device = _DEVICES.get(name) or _BY_DEVICE[name][1]
    kind = name.rpartition(".")[2]
    if kind in ("custom_fwd", "custom_bwd"):
        return _renamed(facts, name, node, place, "", place.append_argument(f'device_type="{device}"'))
    if name in _BY_DEVICE or kind == "GradScaler":
        told = kind == "GradScaler" and _tells_device(facts, call)
        return _renamed(facts, name, node, place, "", *(() if told else (place.insert_argument(f'"{device}"'),)))
    if _tells_device(facts, call):
        return _renamed(facts, name, node, place)  # the arguments are those of the successor already
    if _is_left_to_defaults(place, call, call.args):
        return None
    more = [place.name_argument(at, _AUTOCAST_PARAMETERS[at]) for at in range(1, len(call.args))]
    first = place.insert_argument(f'"{device}"', then=_AUTOCAST_PARAMETERS[0] if call.args else "")
    return _renamed(facts, name, node, place, "", first, *more)


def _partial(facts: ModuleFacts, name: str, call: ast.Call, node: _Name, place: Place) -> Fix | None:
    """The fix of `functools.partial(autocast, False)`, which may be given positional arguments later on."""
    device, given = _DEVICES[name], call.args[1:]
    if "custom" in name:
        return _renamed(facts, name, node, place, "", place.append_argument(f'device_type="{device}"'))
    if name.endswith("GradScaler"):
        return _renamed(facts, name, node, place, f', "{device}"')
    if _is_left_to_defaults(place, call, given):
        return None
    more = [place.name_argument(at, _AUTOCAST_PARAMETERS[at - 1]) for at in range(1, len(call.args))]
    fix = _renamed(facts, name, node, place, f', "{device}"', *more)
    return None if fix is None else Fix(fix.message, fix.edits, Applicability.UNSAFE, fix.orphans)


def _renamed(facts: ModuleFacts, name: str, node: _Name, place: Place, behind: str = "", *more: Edit) -> Fix | None:
    """The fix that puts the successor's name, and `behind` it what it needs besides, where `node` stands."""
    new = f"torch.{_BY_DEVICE[name][0]}" if name in _BY_DEVICE else f"torch.amp.{name.rpartition('.')[2]}"
    path = path_of(node)
    if path is None or (isinstance(node, ast.Attribute) and not isinstance(facts.value(node.value), External)):
        return None  # looked up on an object or a class, which a subclass may override
    old = name.removeprefix("torch")
    if name in _DEVICES and path.endswith(old):
        place.needs(new)
        spelling, imports, orphan = f"{path.removesuffix(old)}.amp.{name.rpartition('.')[2]}", (), ""
    else:
        (spelling, imports), orphan = place.spelled(new), path.partition(".")[0]  # type: ignore[assignment]
    trust = Applicability.UNSAFE if "torch.__version__" in place.source.text else Applicability.SAFE
    return Fix(
        _help(name), (place.replace(node, spelling + behind), *imports, *more), trust, (orphan,) if orphan else ()
    )


def _tells_device(facts: ModuleFacts, call: ast.Call) -> bool:
    """Is it told a device, which raises as it stands: `torch.cuda.amp.autocast("cuda", enabled=False)`?"""
    if any(keyword.arg in ("device", "device_type") for keyword in call.keywords):
        return True
    first = call.args[0] if call.args else None
    value = None if first is None else facts.value(first)
    is_text = isinstance(value, Const) and isinstance(value.value, str)
    return is_text or isinstance(value, Device) or (isinstance(first, ast.Attribute) and first.attr == "type")


def _is_left_to_defaults(place: Place, call: ast.Call, given: list[ast.expr]) -> bool:
    """Is it hidden what autocast is told, or the dtype left to a default that the program sets?"""
    if any(isinstance(argument, ast.Starred) for argument in given) or len(given) > len(_AUTOCAST_PARAMETERS):
        return True
    tells = len(given) > 1 or any(keyword.arg in ("dtype", None) for keyword in call.keywords)
    return not tells and _SETTING_DEFAULTS.search(place.source.text) is not None
