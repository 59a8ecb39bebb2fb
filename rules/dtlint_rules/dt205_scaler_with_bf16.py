"""DT205: a GradScaler scales losses though autocast computes in bfloat16."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.infer.conditions import atoms
from dtlint.infer.events import Condition
from dtlint.infer.values import Dtype, Partial, options
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._names import last_name, mentions, said

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call, End
    from dtlint.infer.values import Value

__all__ = ["ScalerWithBf16"]

_AUTOCASTS = {"torch.amp.autocast": 1, "torch.cuda.amp.autocast": 1, "torch.cpu.amp.autocast": 1}
"""Autocast, and where its dtype stands among the arguments."""
_SCALERS = frozenset({"GradScaler", "ShardedGradScaler", "NativeScaler", "NativeScalerWithGradNormCount"})
"""GradScaler of torch, and classes of other libraries that hold one: timm's NativeScaler."""
_SPEAKS_OF_DTYPE = ("16", "half", "dtype", "precision")
"""Parts of names in a test by which the author chooses the scaler by dtype."""
_BF16 = re.compile(r"bf16|bfloat16", re.IGNORECASE)


class ScalerWithBf16(Rule):
    """A GradScaler is made for training in bfloat16.

    ## What it does
    Reports a GradScaler, or a class such as timm's NativeScaler that holds one, that is made where the program trains
    in bfloat16: under a test that says so, or beside an autocast whose dtype is or may be bfloat16. A scaler that is
    made, or enabled, by a test of the dtype is left alone, unless it is bfloat16 that the test asks for.

    ## Why it matters
    bfloat16 has the exponent of float32, 8 bits: no gradient underflows in it that would not in float32. There is
    nothing to scale. The scaler still multiplies each loss by 65536, looks through all gradients for inf with a
    synchronization of the device in every step, and skips steps while it seeks its scale; a scale that doubles every
    2,000 good steps drives bfloat16 gradients towards overflow for nothing.

    ## Example
    ```python
    import torch

    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(torch.randn(4, 8)).pow(2).mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    ```

    ## Use instead
    ```python
    import torch

    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(torch.randn(4, 8)).pow(2).mean()
    loss.backward()
    optimizer.step()
    ```

    ## References
    - [Gradient scaling](https://docs.pytorch.org/docs/stable/amp.html#gradient-scaling)
    """

    code, name = "DT205", "scaler-with-bf16"
    triggers = tuple(sorted(_SCALERS))
    needs = (("*bf16*", "*Bf16*", "*BF16*", "*float16*", "*Float16*", "*FLOAT16*"),)
    calls = frozenset({"autocast", "partial", *_SCALERS})

    def __init__(self) -> None:
        self.scalers: list[_Scaler] = []
        self.regions: list[tuple[ast.Call, bool, ast.AST]] = []
        """Autocasts that may compute in bfloat16, whether they surely do, and where they stand."""
        self.scaled: set[ast.AST] = set()
        """Where autocasts stand that may compute in float16, so that a scaler has its work."""

    def on_call(self, call: Call) -> Iterable[Finding]:
        made = _called(call)
        if made in _AUTOCASTS:
            self._autocast(call, made)
        elif call.target.rpartition(".")[2] in _SCALERS and (because := _switched_by_bf16(call)) is not None:
            return (_found(call.node, "with bfloat16", (because, "switched on for bfloat16")),)
        elif call.target.rpartition(".")[2] in _SCALERS and not _is_decided(call):
            self.scalers.append(_Scaler(call.node, list(call.flow.conditions), _place(call)))
        return ()

    def on_end(self, end: End) -> Iterator[Finding]:
        if end.flow.function is not None:
            return
        for scaler in self.scalers:
            because = _for_bf16(scaler.conditions)
            if because is not None:
                yield _found(scaler.node, "with bfloat16", (because, "bfloat16 is chosen here"))
                continue
            region, surely = next(
                ((node, sure) for node, sure, place in self.regions if place is scaler.place), (None, False)
            )
            if region is None or mentions(_deciding(scaler.conditions), _SPEAKS_OF_DTYPE):
                continue
            if not self.scaled or (surely and scaler.place not in self.scaled and _stays_in(scaler)):
                when = "with bfloat16" if surely else "also with bfloat16"
                yield _found(scaler.node, when, (region, "autocast to bfloat16"))

    def _autocast(self, call: Call, name: str) -> None:
        if call.target == "functools.partial":
            given = call.keywords.get("dtype")
        else:
            given = call.argument(_AUTOCASTS[name], "dtype")
        if given is None:
            if call.constant(0, "device_type") == "cuda" and not _is_off(call):
                self.scaled.add(_place(call))
            return
        dtypes = _dtypes(given)
        if "bfloat16" in dtypes:
            self.regions.append((call.node, dtypes == {"bfloat16"}, _place(call)))
        elif dtypes == {"float16"} or None in dtypes:
            self.scaled.add(_place(call))


@dataclass(slots=True)
class _Scaler:
    node: ast.Call
    conditions: list[Condition]
    place: ast.AST


def _stays_in(scaler: _Scaler) -> bool:
    """Is a scaler a name of one function, which hands it to nobody: it only calls its methods?"""
    if not isinstance(scaler.place, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    code = tuple(nodes([scaler.place]))
    names = {
        target.id
        for node in code
        if isinstance(node, ast.Assign) and node.value is scaler.node
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    asked = {node.value for node in code if isinstance(node, ast.Attribute)}
    return bool(names) and not any(
        isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load) and node not in asked
        for node in code
    )


def _place(call: Call) -> ast.AST:
    """The class, for methods, or else the function: who makes a scaler there scales the losses of its autocasts."""
    function = call.flow.function
    return call.flow.scope if function is None or function.owner is None else function.owner.node


def _found(node: ast.Call, when: str, note: tuple[ast.expr, str]) -> Finding:
    return Finding(
        node,
        f"GradScaler is used {when}, which does not need it",
        help="Pass `enabled=(dtype == torch.float16)`",
        notes=(note,),
    )


def _called(call: Call) -> str:
    """The qualified name of what is called, or of what functools.partial is made of."""
    made = call.result
    if call.target == "functools.partial" and isinstance(made, Partial):
        return getattr(made.callee, "name", "")
    return call.target


def _dtypes(value: Value) -> set[str | None]:
    return {choice.name if isinstance(choice, Dtype) else None for choice in options(value)}


def _is_off(call: Call) -> bool:
    return call.constant(2, "enabled") is False


def _is_decided(call: Call) -> bool:
    """Is the scaler off, or switched by something that speaks of a dtype?"""
    if call.constant(None, "enabled") is False:
        return True
    enabled = call.argument_node(None, "enabled")
    if enabled is None:
        return False
    if _is_of_none(enabled):
        return False
    text = " ".join(said(enabled)).lower()
    return any(part in text for part in _SPEAKS_OF_DTYPE) or _is_setting(enabled)


def _deciding(conditions: list[Condition]) -> list[Condition]:
    """The tests that may tell dtypes apart: not whether there is one, `amp_dtype is not None`."""
    return [condition for condition in atoms(conditions) if not _is_of_none(condition.test)]


def _is_of_none(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and any(
        isinstance(part, ast.Constant) and part.value is None for part in test.comparators
    )


def _switched_by_bf16(call: Call) -> ast.expr | None:
    """`GradScaler(enabled=args.bf16)`, `GradScaler(enabled=precision == "bf16")`."""
    enabled = call.argument_node(None, "enabled")
    return None if enabled is None else _for_bf16([Condition(enabled, holds=True)])


def _is_setting(node: ast.expr) -> bool:
    """A plain name may hold such a comparison; what is asked of the program's arguments may too."""
    return isinstance(node, ast.Name) and node.id not in ("amp", "use_amp", "enable_amp", "use_autocast")


def _for_bf16(conditions: list[Condition]) -> ast.expr | None:
    """The test that says that the code is for bfloat16 alone: `precision == "bf16"`, `args.bf16`."""
    for condition in atoms(conditions):
        if not condition.holds:
            continue
        test = condition.test
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.Eq, ast.Is)):
            if any(_names_bf16(side) for side in (test.left, test.comparators[0])):
                return test
        elif isinstance(test, (ast.Name, ast.Attribute)) and _names_bf16(test):
            return test
    return None


def _names_bf16(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and _BF16.search(node.value) is not None
    name = last_name(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
    return _BF16.search(name) is not None and not re.search(r"supported|available|not|no_|fp16", name, re.IGNORECASE)
