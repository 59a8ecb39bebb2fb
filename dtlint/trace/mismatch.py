"""Operators that refuse the dtypes they are given: where each operand's dtype came from, as a note on the exception.

Nothing is kept for it as the program runs: the operand's storage knows who wrote it last.
"""

from __future__ import annotations

import ast
import re
import traceback
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from dtlint.trace.schema import WITHOUT_OVERFLOW
from dtlint.trace.signature import Input
from dtlint.trace.site import PLAIN, shown, source_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import FrameType

    from dtlint.trace.flow import Flow
    from dtlint.trace.signature import Signature
    from dtlint.trace.site import Site, Sites

__all__ = ["Mismatch", "Mismatches"]

SPEAKS_OF_DTYPES = re.compile(
    r"dtype|scalar type|not implemented for '|can't be cast|(?:input|weight|bias) type .* should be the same"
    r"|cannot be converted to type .* without overflow",
    re.I,
)
"""Messages by which torch's operators refuse a dtype; the operands' dtypes must differ as well, but for these:"""

OF_ONE = ("not implemented for '", WITHOUT_OVERFLOW)
"""It has no kernel, or a number does not fit."""

MOST = 32
"""Errors kept: a program that probes what works may meet one at each call."""

OPERANDS = 8
"""Operands told of one operator."""


class Mismatch:
    """One such error."""

    __slots__ = ("arguments", "count", "fatal", "inputs", "message", "note", "op", "site", "step")

    def __init__(self, op: str, message: str, site: Site, step: int, named: list[tuple[str, Input]]) -> None:
        self.op, self.message, self.site, self.step = op, message, site, step
        self.arguments = [name for name, _ in named]
        self.inputs = [known for _, known in named]
        self.count = 0
        self.fatal = False
        self.note = ""


class Mismatches:
    """All dtype errors of a run."""

    def __init__(self, flow: Flow, sites: Sites, here: Path) -> None:
        self.flow, self.sites, self.here = flow, sites, here
        self.all: dict[tuple[str, int, str], Mismatch] = {}

    def met(self, func: Any, args: Any, kwargs: Any, error: BaseException, site: Site) -> None:
        """An operator raised `error`. If dtypes are why, keep it, and add the note that says where they came from."""
        message = _first_line(error)
        if SPEAKS_OF_DTYPES.search(message) and not self._told(error):  # a composite operator raises its part's error
            self._keep(func._schema.name.removeprefix("aten::"), message, error, site, list(_named(func, args, kwargs)))

    def ended(self, error: BaseException | None) -> None:
        """The traced program ended by `error`, or by none."""
        if isinstance(error, RuntimeError):
            self._met_above(error)
        seen: set[int] = set()
        while error is not None and id(error) not in seen:
            seen.add(id(error))
            for mismatch in self.all.values():
                mismatch.fatal |= mismatch.note in _notes(error)
            error = error.__cause__ or error.__context__

    def _met_above(self, error: RuntimeError) -> None:
        """torch may refuse before any operator runs, as conv2d does: then the operands stand in the innermost frame."""
        message = _first_line(error)
        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
        if frames and not self._told(error) and SPEAKS_OF_DTYPES.search(message):
            call, named = _in_sight(frames[-1])
            self._keep(call, message, error, self.sites.raised(frames), named)

    def _told(self, error: BaseException) -> bool:
        return any(mismatch.note in _notes(error) for mismatch in self.all.values())

    def _keep(self, op: str, message: str, error: BaseException, site: Site, named: list[tuple[str, Tensor]]) -> None:
        if WITHOUT_OVERFLOW in message:  # a mask of bools has no part in it
            named = [(name, x) for name, x in named if x.is_floating_point()]
        if len({x.dtype for _, x in named}) < 2 and (not named or not any(words in message for words in OF_ONE)):
            return
        key = (op, id(site), message)
        mismatch = self.all.get(key)
        if mismatch is None:
            known = [(name, self._input(x)) for name, x in named[:OPERANDS]]
            mismatch = Mismatch(op, message, site, self.flow.step, known)
            mismatch.note = self._note(mismatch)
            if len(self.all) < MOST:
                self.all[key] = mismatch
        mismatch.count += 1
        if hasattr(error, "add_note"):  # Python 3.11
            error.add_note(mismatch.note)

    def _input(self, x: Tensor) -> Input:
        plain = type(x) in PLAIN
        name = self.flow.modules.name_of(x.untyped_storage()._cdata) if plain else ""
        storages = self.flow.storages
        return Input(x.dtype, x.dim() == 0, storages.maker(x), storages.origin(x), name)

    def _note(self, mismatch: Mismatch) -> str:
        told = (
            f"{name} is {str(known.dtype).removeprefix('torch.')}, {self._origin(known)}"
            for name, known in zip(mismatch.arguments, mismatch.inputs, strict=True)
        )
        return f"dtlint: in {mismatch.op}, " + "; ".join(told)

    def _origin(self, known: Input) -> str:
        if known.origin is None:
            unknown = (
                "made outside the traced operators" if known.dtype in self.flow.watched else "of an origin not followed"
            )
            return known.name or unknown
        decided: Signature = known.origin.decided_by
        source = decided.site.source()
        at = f"from `{' '.join(source.expression.split())}` at {shown(decided.site.file, self.here)}:{source.line}"
        return f"{known.name}, {at}" if known.name else at


def _named(func: Any, args: Any, kwargs: Any) -> Iterator[tuple[str, Tensor]]:
    """The tensor arguments with their names in the schema."""
    names = [argument.name for argument in func._schema.arguments]
    for name, value in (*zip(names, args, strict=False), *(kwargs or {}).items()):
        if isinstance(value, Tensor):
            yield name, value
        elif isinstance(value, (list, tuple)):
            for index, item in enumerate(value):
                if isinstance(item, Tensor):
                    yield f"{name}[{index}]", item


def _in_sight(frame: FrameType) -> tuple[str, list[tuple[str, Tensor]]]:
    """The call that runs in a frame, and the tensors that its arguments name. Nothing of the program's is run."""
    text = source_of(frame.f_code, frame.f_lasti, frame.f_lineno).expression
    try:
        call = ast.parse(text, mode="eval").body
    except SyntaxError:
        return "", []
    if not isinstance(call, ast.Call):
        return "", []
    found: dict[str, Tensor] = {}
    for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
        value = _value(argument, frame)
        if isinstance(value, Tensor):
            found[ast.unparse(argument)] = value
    return ast.unparse(call.func).rpartition(".")[2], list(found.items())


def _value(node: ast.expr, frame: FrameType) -> Any:
    """What a name, or an attribute of a module, is bound to; None for anything else."""
    if isinstance(node, ast.Name):
        return frame.f_locals.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = _value(node.value, frame)
        if isinstance(owner, nn.Module):
            return (owner.__dict__ | owner._buffers | owner._parameters).get(node.attr)
    return None


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0]


def _notes(error: BaseException) -> list[str]:
    notes: list[str] = getattr(error, "__notes__", [])
    return notes
