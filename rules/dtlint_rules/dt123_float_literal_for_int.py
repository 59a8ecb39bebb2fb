"""DT123: a float given as the default of what is declared an int."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix
from dtlint.infer.around import parents
from dtlint.rule import Finding, Rule
from dtlint_rules._functions import defaults
from dtlint_rules._imports import imports
from dtlint_rules._names import last_name
from dtlint_rules._parts import keyword

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dtlint.infer.events import Assign, Call, End, Event
    from dtlint.source.place import Place

__all__ = ["FloatLiteralForInt"]

_TORCH = frozenset({"torch", "lightning", "pytorch_lightning", "transformers", "diffusers", "accelerate", "timm"})
"""Packages of programs whose numbers end up in torch."""


class FloatLiteralForInt(Rule):
    """A default such as `1e-2` or `1e6`, which is a float, where an int is declared.

    ## What it does
    Reports `add_argument("--lr", type=int, default=1e-2)`, `steps: int = 1e6` as a parameter's default or a field of
    a class, and `lr: int = 0.01` as a field of a dataclass, in files that import torch. `scale: int = 1.0` is left
    alone: there the annotation is wrong, and nothing goes wrong.

    ## Why it matters
    argparse applies `type` to what is typed on the command line, not to the default. So the program runs with 0.01 as
    long as nobody sets the option, and refuses every value but whole numbers as soon as somebody does: `invalid int
    value: '0.001'`. Where the default is whole, `1e6` is a float all the same: `range(1e6)` and `torch.zeros(1e6)`
    raise TypeError, and a tensor made of it is floating.

    ## Example
    ```python
    import argparse
    import torch

    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=int, default=1e-2)
    ```

    ## Use instead
    ```python
    import argparse
    import torch

    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=1e-2)
    ```

    ## Fix safety
    The fix declares a float where the default has a fraction, and writes a whole default as an int. It is unsafe, for
    other code may count on the one or the other.

    ## References
    - [argparse: default](https://docs.python.org/3/library/argparse.html#default)
    """

    code, name = "DT123", "float-literal-for-int"
    fix = Applicability.UNSAFE
    triggers = (":int=", "type=int", "Optional[int]=", "int|None=")
    needs = (
        ("int",),
        ("torch", *(f"{before}{name}" for name in sorted(_TORCH) for before in ("from", "import", ","))),
        ("add_argument", "add_arg", "*dataclass*", *(f"1e{exponent}" for exponent in range(2, 309))),
    )
    calls = frozenset({"add_argument", "add_arg"})
    values = frozenset({ast.Constant, ast.UnaryOp})

    def on_call(self, call: Call) -> Iterator[Finding]:
        kind, default = keyword(call.node, "type"), keyword(call.node, "default")
        if not isinstance(kind, ast.Name) or kind.id != "int" or default is None or _float(default) is None:
            return
        if _of_torch(call):
            yield _option(call.node, kind, default)

    def on_assign(self, assign: Assign) -> Iterable[Finding]:
        return self._field(assign, assign.node) if isinstance(assign.node, ast.AnnAssign) else ()

    def _field(self, assign: Assign, field: ast.AnnAssign) -> Iterator[Finding]:
        """A field of a class: those of a dataclass become options of a command line as often as not."""
        if field.value is None or not isinstance(field.target, ast.Name):
            return
        value = _float(field.value)
        if value is None or not _is_int(field.annotation) or not _of_torch(assign):
            return
        owner = parents(assign.flow.tree).get(field)
        if not isinstance(owner, ast.ClassDef):
            return
        options = any("dataclass" in ast.unparse(decorator) for decorator in owner.decorator_list)
        if _is_count(field.value) or (options and not value.is_integer()):
            yield _declared(field.target.id, field.value)

    def on_end(self, end: End) -> Iterable[Finding]:
        if not isinstance(end.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return ()
        given = end.node.args
        return self._parameters(end, given) if given.defaults or given.kw_defaults else ()

    def _parameters(self, end: End, given: ast.arguments) -> Iterator[Finding]:
        for parameter, default in defaults(given):
            if (
                parameter.annotation is not None
                and _is_int(parameter.annotation)
                and _is_count(default)
                and _of_torch(end)
            ):
                yield _declared(parameter.arg, default)


def _of_torch(event: Event) -> bool:
    return not imports(event.flow.tree).isdisjoint(_TORCH)


def _float(node: ast.expr) -> float | None:
    """The float that is written out."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        node = node.operand
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, float) else None


def _is_int(annotation: ast.expr) -> bool:
    """`int`, `Optional[int]`, `int | None`."""
    if isinstance(annotation, ast.Subscript) and last_name(annotation.value) == "Optional":
        annotation = annotation.slice
    if (
        isinstance(annotation, ast.BinOp)
        and isinstance(annotation.right, ast.Constant)
        and annotation.right.value is None
    ):
        annotation = annotation.left
    return isinstance(annotation, ast.Name) and annotation.id == "int"


def _option(node: ast.Call, kind: ast.expr, default: ast.expr) -> Finding:
    option = next((str(part.value) for part in node.args if isinstance(part, ast.Constant)), "the option")
    return Finding(
        node,
        f"The default {ast.unparse(default)} of `{option}` is a float, but `type=int` takes whole numbers only",
        help="Use `type=float`" + (f", or write {_as_int(default)}" if _whole(default) else ""),
        fix=_fixed(kind, default),
    )


def _is_count(default: ast.expr) -> bool:
    """Is it a number of things, `1e6`? `scale: int = 1.0` and `10000.0` are only declared wrongly, and mean a float."""
    value = _float(default)
    if value is None or not value.is_integer():
        return False
    return (default.end_col_offset or 0) - default.col_offset < len(repr(value)) - 1  # shorter with an exponent


def _declared(name: str, default: ast.expr) -> Finding:
    return Finding(
        default,
        f"`{name}` is declared int, but its default {ast.unparse(default)} is a float",
        help="Declare it `float`, or write " + (_as_int(default) if _whole(default) else "a whole number"),
        fix=_fixed(None, default),
    )


def _whole(default: ast.expr) -> bool:
    value = _float(default)
    return value is not None and value.is_integer()


def _as_int(default: ast.expr) -> str:
    value = _float(default)
    assert value is not None
    return f"{'-' if isinstance(default, ast.UnaryOp) and isinstance(default.op, ast.USub) else ''}{int(value):_}"


def _fixed(kind: ast.expr | None, default: ast.expr) -> Callable[[Place], Fix | None]:
    def fix(place: Place) -> Fix | None:
        if _whole(default):
            text = _as_int(default)
            return Fix(f"Write {text}", (place.replace(default, text),), Applicability.UNSAFE)
        if kind is None:
            return None
        return Fix("Use `type=float`", (place.replace(kind, "float"),), Applicability.UNSAFE)

    return fix
