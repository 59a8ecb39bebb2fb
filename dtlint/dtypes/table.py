"""The operator table: what each of torch's ops makes of its operands' dtypes, learned from torch by `learn`.

Loaded on the first question, one file per version of torch. What was not observed is unknown; no answer is a guess.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Final

from dtlint.dtypes.form import DTYPE, NUMBER, SCALAR, TENSOR, UNKNOWN, Argument, Bound, Form, Operands, Parameter, alike
from dtlint.dtypes.pattern import ALONE, CODES, DTYPE_OF_CODE, NONE, feature_of, flat, has_letters, key_of, rendered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["DTYPE", "NUMBER", "SCALAR", "TENSOR", "UNKNOWN", "UNKNOWN_OUTCOME", "Outcome", "Result", "Table", "load"]

LATEST = "2.13"

Result = Any
"""A dtype; None for what is no tensor or is not known; a tuple of results; a list of one result: any number of these."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an op does with some operands.

    Attributes:
        known: was the question covered by what was observed?
        result: the dtypes that come out.
        error: the message that torch raises instead.
    """

    known: bool = True
    result: Result = None
    error: str | None = None

    @property
    def is_of_cpu(self) -> bool:
        """Is the error the CPU's own, for want of a kernel or by a check that other devices may not make?"""
        return self.error is not None and _OF_CPU.search(self.error) is not None

    @property
    def dtype(self) -> str | None:
        """The dtype of the one tensor that comes out."""
        return self.result if isinstance(self.result, str) else None

    @property
    def dtypes(self) -> tuple[str | None, ...]:
        """The dtypes of the outputs, one for each; None where an output is no tensor, or several."""
        if not self.known or self.error is not None:
            return ()
        if not isinstance(self.result, tuple):
            return (self.dtype,)
        return tuple(item if isinstance(item, str) else None for item in self.result)


_OF_CPU: Final = re.compile(r"not implemented for|[Nn]ot supported|Unsupported|(?i:\bcpu)")
UNKNOWN_OUTCOME: Final = Outcome(known=False)

_Rule = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _FormRule:
    form: Form
    rule: _Rule | None


MOST_KEPT: Final = 8192
"""Answers that a table keeps. A million lines ask some thousand different questions, most of them again and again."""

OPS: Final = ',\n"ops": {\n'
"""Where a table's ops begin: from here on every line is an op."""


class Table:
    """What was learned from one version of torch.

    Args:
        data: the table as `learn` makes it. An op may still be the JSON of its entry, read when it is asked for.
    """

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data
        self._ops: dict[str, Any] = data["ops"]
        self._forms: dict[str, tuple[_FormRule, ...]] = {}
        self._lists: dict[str, dict[str, frozenset[str]]] = {}
        self._answers: dict[object, Outcome] = {}
        self._heeding: dict[str, bool] = {}
        self._kinds: dict[tuple[str, int | str], frozenset[str] | None] = {}

    @classmethod
    def read(cls, text: str) -> Table:
        """The table of a file: the head is read, and of each op its name."""
        import json

        head, _, body = text.partition(OPS)
        lines = (line.partition(": ") for line in body.removesuffix("\n}\n}\n").split(",\n"))
        return cls({**json.loads(head + "}"), "ops": {name[1:-1]: entry for name, _, entry in lines}})

    @property
    def torch_version(self) -> str:
        """The torch it was learned from: "2.13.0"."""
        return str(self._data["torch"])

    @property
    def note(self) -> str:
        """Where it was learned, and what that leaves open."""
        return str(self._data["note"])

    @cached_property
    def ops(self) -> frozenset[str]:
        """The qualified names of all ops in the table."""
        return frozenset(self._ops)

    def forms(self, op: str) -> tuple[Form, ...]:
        """The ways to call an op; empty for an op that the table does not have."""
        return tuple(one.form for one in self._form_rules(op))

    def kinds_at(self, op: str, place: int | str) -> frozenset[str] | None:
        """The operands that an argument of an op may be in any of its forms, as of a `Form`: empty where it is never one; None
        where no form has such an argument."""
        question = op, place
        if question not in self._kinds:
            found = [kinds for form in self.forms(op) if (kinds := form.kinds_at(place)) is not None]
            self._kinds[question] = frozenset().union(*found) if found else None
        return self._kinds[question]

    def rules(self, op: str) -> tuple[_Rule | None, ...]:
        """The rule of each form, as the file has it; None where nothing was learned."""
        return tuple(one.rule for one in self._form_rules(op))

    def heeds_default(self, op: str) -> bool:
        """Does the default dtype decide what the op gives, be its operands tensors or whole numbers?"""
        known = self._heeding.get(op)
        if known is None:
            known = self._heeding[op] = any(map(_gives_default, self.rules(op)))
        return known

    def call(
        self,
        op: str,
        args: Sequence[Argument],
        kwargs: Mapping[str, Argument] | None = None,
        *,
        default: str = "float32",
    ) -> Outcome:
        """What `op(*args, **kwargs)` gives.

        Args:
            op: its qualified name, "torch.add" or "torch.Tensor.add_". A method's first argument is its receiver, a
                module's are its weights: `call("torch.nn.Linear", [("float16", 2), ("float32", 2)])` is
                `linear.half()(x)`. What a module's constructor was told of `return_indices` is a keyword argument here.
            args: for each argument an operand (dtype, rank), a list of operands, a constant, or `UNKNOWN`. A dtype
                argument is the operand (dtype, DTYPE).
            kwargs: the same by name.
            default: the default dtype.
        """
        named = kwargs or {}
        given = tuple((name, alike(value)) for name, value in named.items())
        question = (op, tuple(map(alike, args)), given, default)
        answer = self._answers.get(question)
        if answer is None:
            if len(self._answers) >= MOST_KEPT:
                self._answers.clear()
            answer = self._answers[question] = self._answer(op, args, named, default)
        return answer

    def _answer(self, op: str, args: Sequence[Argument], kwargs: Mapping[str, Argument], default: str) -> Outcome:
        outcome: Outcome | None = None
        for one in self._form_rules(op):
            bound = one.form.bind(args, kwargs)
            if bound is None:
                continue
            now = _outcome(one.rule, bound, default)
            if UNKNOWN not in args and UNKNOWN not in kwargs.values():
                return now
            if outcome is not None and now != outcome:
                return UNKNOWN_OUTCOME
            outcome = now
        return outcome or UNKNOWN_OUTCOME

    def result(
        self,
        op: str,
        operands: Sequence[Argument],
        *,
        dtype: str | None = None,
        in_place: bool = False,
        default: str = "float32",
    ) -> Outcome:
        """What an op gives for its operands in the order of its slots, every other argument left at its default.

        Args:
            op: its qualified name.
            operands: for each slot, dtype arguments and `out=` aside, an operand, a list of operands, or None.
            dtype: the `dtype=` argument.
            in_place: ask for the in-place form: that of "torch.add" is "torch.Tensor.add_".
            default: the default dtype.
        """
        if in_place:
            op = f"torch.Tensor.{op.rpartition('.')[2]}_"
        for one in self._form_rules(op):
            slots = [
                parameter for parameter in one.form.slots if "d" not in parameter.kinds and parameter.name != "out"
            ]
            if len(operands) > len(slots):
                continue
            named = {slot.name: value for slot, value in zip(slots, operands, strict=False) if value is not None}
            if dtype is not None:
                named["dtype"] = (dtype, DTYPE)
            for parameter in one.form.parameters:
                if not parameter.is_slot and parameter.default is None and parameter.seen:
                    named[parameter.name] = [1] if "#" in parameter.seen else UNKNOWN
            bound = one.form.bind((), named)
            if bound is not None:
                return _outcome(one.rule, bound, default)
        return UNKNOWN_OUTCOME

    def lacks_kernel(self, op: str, dtype: str, device: str | None = "cpu") -> bool:
        """Does the op raise "not implemented for" on this device, when its operands are of this dtype?

        Learned on the CPU. For "cuda" the answer is True only for what both lack, and so it is for None, either of the two.
        """
        return CODES[dtype] in self._data["kernels" if device == "cpu" else "kernels of neither"].get(op, "")

    def autocast(self, device: str, op: str) -> str | None:
        """What autocast does with an op on a device.

        Returns:
            "lower", "fp32", "fp32_set_opt_dtype", "fp32_append_dtype", "promote" or "banned"; "composite" for an op that
            calls such ops within, so that its result is not known from this table; "unknown" for one that takes part
            in a way that was not observed; None for one that runs in the dtypes it is given.
        """
        if op not in self._ops:
            return "unknown"
        if op in self._policies(device).get("composite", ()):
            return "composite"
        return self.autocast_of_aten(device, self._data["aten"].get(op, op.rpartition(".")[2]))

    def autocast_of_aten(self, device: str, aten: str) -> str | None:
        """The same of an op of ATen, by its name there: `linalg_vector_norm`."""
        return next((policy for policy, ops in self._policies(device).items() if aten in ops), None)

    def _policies(self, device: str) -> dict[str, frozenset[str]]:
        if device not in self._lists:
            lists = self._data["autocast"].get(device, {})
            self._lists[device] = {policy: frozenset(ops.split()) for policy, ops in lists.items()}
        return self._lists[device]

    def _entry(self, op: str) -> Any:
        """The op's entry: its forms, or the name of the op that is described alike."""
        entry = self._ops.get(op, ())
        if isinstance(entry, str) and entry[:1] in ('"', "["):
            import json

            entry = self._ops[op] = json.loads(entry)
        return entry

    def _form_rules(self, op: str) -> tuple[_FormRule, ...]:
        found = self._forms.get(op)
        if found is None:
            entry = self._entry(op)
            if isinstance(entry, str):
                found = self._form_rules(entry)
            else:
                found = tuple(
                    _FormRule(Form(tuple(map(Parameter.parse, form["takes"]))), form.get("rule")) for form in entry
                )
            self._forms[op] = found
        return found


# -- reading a rule -----------------------------------------------------------------------------------------------------


def _outcome(rule: _Rule | None, bound: Bound, default: str) -> Outcome:
    operands = bound.operands(default)
    if rule is None or operands is None or not bound.is_observed():
        return UNKNOWN_OUTCOME
    while "by" in rule:
        value = feature_of(rule["by"], operands, bound.constant)
        if value is None:  # an argument that is not known: it decides nothing where all cases agree
            first, *others = {_outcome(case, bound, default) for case in rule["cases"].values()}
            return UNKNOWN_OUTCOME if others else first
        rule = rule["cases"].get(value)
        if rule is None:
            return UNKNOWN_OUTCOME
    if not all(_covered(domain, operands, slot) for slot, domain in enumerate(rule["over"])):
        return UNKNOWN_OUTCOME
    dtypes = {dtype for dtype, rank in flat(operands, range(len(operands))) if rank > NUMBER}
    if len(dtypes) > 1 and dtypes & ALONE:
        return UNKNOWN_OUTCOME
    for guard in rule.get("unseen", ()):
        if key_of(guard, operands) == "!":
            return UNKNOWN_OUTCOME
    for guard, refused, message in rule.get("unless", ()):
        if key_of(guard, operands) in _keys(guard, refused):
            return Outcome(error=rendered(message, operands))
    key = key_of(rule["on"], operands)
    for symbol, keys in rule["gives"].items():
        if key in _keys(rule["on"], keys):
            return Outcome(result=_Symbols(symbol, DTYPE_OF_CODE.get(key), default).result())
    for keys, message in rule.get("fails", ()):
        if key in _keys(rule["on"], keys):
            return Outcome(error=rendered(message, operands))
    return UNKNOWN_OUTCOME


def _gives_default(rule: _Rule | None) -> bool:
    """Is there a case in which the rule gives the default dtype?"""
    if rule is None:
        return False
    if "by" in rule:
        return any(map(_gives_default, rule["cases"].values()))
    return any("d" in re.split(r"[()\[\],]", text) for text in rule["gives"])


def _covered(domain: str, operands: Operands, slot: int) -> bool:
    codes, _, ranks = domain.partition(":")
    given = list(flat(operands, (slot,)))
    if not given:
        return NONE in codes
    return all(CODES[dtype] in codes and ("d" if rank == DTYPE else str(rank)) in ranks for dtype, rank in given)


@cache
def _keys(key: str, text: str) -> frozenset[str]:
    """The keys of one text; those of a single slot, or of a promotion, are letters."""
    return frozenset(text if has_letters(key) else text.split("|"))


class _Symbols:
    """Reads a result as the table writes it: "=", "(=,int64)", "[=]"; "=" is the key's dtype, "d" the default."""

    def __init__(self, text: str, key: str | None, default: str) -> None:
        self._text, self._at = text, 0
        self._named = {"=": key, "d": default, "-": None}

    def result(self) -> Result:
        opener = self._text[self._at]
        if opener in "([":
            self._at += 1
            items = []
            while self._text[self._at] not in ")]":
                items.append(self.result())
                if self._text[self._at] == ",":
                    self._at += 1
            self._at += 1
            return tuple(items) if opener == "(" else items
        start = self._at
        while self._at < len(self._text) and self._text[self._at] not in ",)]":
            self._at += 1
        word = self._text[start : self._at]
        return self._named.get(word, word)


@cache
def load(version: str = LATEST) -> Table:
    """The table of a version of torch, read on the first call.

    Raises:
        ValueError: there is no table of this version.
    """
    from importlib.resources import files

    file = files("dtlint.dtypes") / "tables" / f"torch-{version}.json"
    try:
        return Table.read(file.read_bytes().decode())
    except FileNotFoundError:
        raise ValueError(f"There is no operator table for torch {version}; choose {LATEST}.") from None
