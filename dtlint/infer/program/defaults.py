"""The default dtype as the program runs: what factories give from `torch.set_default_dtype` on, until it is set again.

It belongs to the whole process, so it is kept with the casts of modules, which follow the same paths: through calls,
branches, loops and returns. Where it is not known when it is set, it is not known anywhere.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import LEGACY_TENSORS
from dtlint.infer.calls import dtype_of
from dtlint.infer.program.answering import Answering
from dtlint.infer.values import NONE, UNKNOWN, Constant, Dtype, Dtypes, Either, External, Value

if TYPE_CHECKING:
    from dtlint.infer.calls import Arguments
    from dtlint.infer.interproc.project import ModuleInfo, Project
    from dtlint.infer.program_state import Cast

__all__ = ["DEFAULT", "DEFAULT_DTYPE", "Defaults", "either_default"]

DEFAULT = "%default dtype"
"""The key among the casts: no object has it."""
DEFAULT_DTYPE = ("torch.set_default_", "torch.get_default_")
"""How the functions begin that set or ask what factories make."""
_SETTERS = frozenset({"torch.set_default_dtype", "torch.set_default_tensor_type"})
_NOT_SET: Cast = (0, None)
_GETTER = "torch.get_default_dtype"
_LIBRARIES = frozenset({"site-packages", "dist-packages"})
"""Folders of code that is not the program's own, of which most is never called."""


class Defaults(Answering):
    """An interpreter that knows the default dtype at each place of a program."""

    def __init__(self, project: Project, main: ModuleInfo) -> None:
        super().__init__(project, main)
        self.default_at_start: Dtypes = self.default
        """The default dtype that the program begins with; None when whoever imports it may have set another."""
        self.defaults_now: set[Dtypes] = set()
        self.defaults_before: set[Dtypes] = set()
        """All that it is set to, in this round and in the one before."""
        self.default_order_known = True
        """Is it known when each default dtype is set?"""

    @property
    def default(self) -> Dtypes:
        """The default dtype here: what it may be, or None when that is not known."""
        return self.flow.state.casts.get(DEFAULT, _NOT_SET)[1]

    @default.setter
    def default(self, dtypes: Dtypes) -> None:
        self.flow.state.casts[DEFAULT] = (0, dtypes)

    @property
    def default_anywhen(self) -> Dtypes:
        """The default dtype in code of which nobody knows when it runs."""
        if not self.default_order_known:
            return None
        return reduce(either_default, self.defaults_before | self.defaults_now, self.default_at_start)

    def begin_defaults(self) -> None:
        """Begin a round."""
        self.defaults_set.clear()
        self.defaults_before, self.defaults_now = self.defaults_now, set()
        self.default = self.default_at_start if self.default_order_known else None

    def default_lost(self) -> None:
        if self.default_order_known:
            self.default_order_known = False
            self.objects.changed = True
        self.default = None

    def set_default(self, dtypes: Dtypes) -> None:
        """`torch.set_default_dtype(...)` is called here, with one of these."""
        if self.supposed:
            path = self.module.path
            if path is None or self.called_unread or not _LIBRARIES.intersection(path.parts):
                self.default_lost()
            elif self.default_order_known:  # of a library's functions that nobody was seen to call, nobody does
                self.default = dtypes
            return
        self.note_default(dtypes)
        if not self.in_order and self.defaults_before | self.defaults_now != {self.default_at_start}:
            self.default_lost()
        elif self.default_order_known:
            self.default = dtypes

    def note_default(self, dtypes: Dtypes) -> None:
        """The default dtype becomes one of these, for a while at least."""
        self.defaults_now.add(dtypes)
        if dtypes not in self.defaults_before:
            self.objects.changed = True
        self.defaults_set.append(dtypes)

    def of_default(self, name: str, arguments: Arguments) -> Value | None:
        """The functions that set the default dtype, or ask for it; None for others."""
        if name in _SETTERS:
            given = arguments.get(0, "d") or arguments.get(0, "t")
            self.set_default(_meant(UNKNOWN if given is None else given))
            return NONE
        if name == _GETTER:
            known = () if self.default is None else tuple(map(Dtype, sorted(self.default)))
            return UNKNOWN if not known else known[0] if len(known) == 1 else Either(known)
        return None

    def lose(self, value: Value, depth: int = 0) -> None:
        if isinstance(value, External) and value.name in _SETTERS:  # it is called with anything, at any time
            self.default_lost()
        super().lose(value, depth)


def either_default(left: Dtypes, right: Dtypes) -> Dtypes:
    """What the default dtype may be, where it may be either."""
    return None if left is None or right is None else left | right


def _meant(given: Value) -> Dtypes:
    """The dtypes that a setter is given: torch's own, or those of the tensor classes of old, or of their names."""
    name = given.name if isinstance(given, External) else given.value if isinstance(given, Constant) else None
    if isinstance(name, str) and name.startswith("torch."):
        legacy = LEGACY_TENSORS.get(name.rpartition(".")[2])
        if legacy is not None:
            return frozenset({legacy})
    return dtype_of(given)
