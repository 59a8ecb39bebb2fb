"""The dtype signatures of a file's functions, for people and as JSON: `dtlint infer --signatures`."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dtlint.check.breakage import Breakage
    from dtlint.infer.claims.dtype_signatures import DtypeSignature, Signatures

__all__ = ["as_rows", "print_signatures"]

_HEAD = """\
# For floating tensors with dimensions, outside autocast. T, U: what the caller gives; self.weight: what the module was cast to;
# ?: not known."""


def as_rows(told: Signatures, broken: Mapping[object, Sequence[Breakage]]) -> list[dict[str, Any]]:
    """Signatures, with what breaks in each function where its inputs are of another dtype, as JSON has them.

    Args:
        broken: by the definition of the function.
    """
    return [
        {**_as_json(told, one, broken.get(one.node, ())), "notes": list(_notes(told, one, broken.get(one.node, ())))}
        for one in told.found
    ]


def print_signatures(path: str, rows: Sequence[Mapping[str, Any]], output_format: str) -> None:
    """Print signatures that `as_rows` has made of the file at `path`."""
    if output_format == "json":
        told = ({"path": path, **{key: row[key] for key in row if key != "notes"}} for row in rows)
        click.echo("[" + ",".join(f"\n{json.dumps(row)}" for row in told) + "\n]")
        return
    if not rows:
        click.echo("No public function, and no forward of a public class, is defined here.", err=True)
        return
    click.echo(_HEAD)
    for row in rows:
        click.echo(row["signature"])
        for note in row["notes"]:
            click.echo(f"    {note}")


def _notes(told: Signatures, one: DtypeSignature, broken: Iterable[Breakage]) -> Iterable[str]:
    broken = list(broken)
    known = {(each.node.lineno, each.node.col_offset) for each in broken if "half" in each.under}
    for each in one.overflows:
        if (each.node.lineno, each.node.col_offset) not in known:
            yield f"float16: `{each.text}` overflows above {_shown(each.above)} ({_place(told, each.node)})"
    yield from (f"{', '.join(each.under)}: {each.message} ({_place(told, each.node)}, {each.code})" for each in broken)


def _shown(number: float) -> str:
    """Rounded down: what is below does not overflow."""
    return str(math.floor(number)) if number >= 100 else f"{math.floor(number * 10) / 10:g}"


def _place(told: Signatures, node: object) -> str:
    location = told.source.location(told.source.span(node))  # type: ignore[arg-type]
    cell = "" if location.cell is None else f"cell {location.cell}, "
    return f"{cell}line {location.span.line}"


def _as_json(told: Signatures, one: DtypeSignature, broken: Iterable[Breakage]) -> dict[str, object]:
    return {
        **_where(told, one.node),
        "name": one.name,
        "parameters": [
            {"name": each.name, "dtype": each.dtype or None, "default": each.default} for each in one.parameters
        ],
        "result": one.result,
        "signature": str(one),
        "holds": list(one.holds),
        "overflows": [
            {"dtype": "float16", **_where(told, each.node), "expression": each.text, "above": round(each.above, 4)}
            for each in one.overflows
        ],
        "breaks": [
            {"under": list(each.under), **_where(told, each.node), "code": each.code, "message": each.message}
            for each in broken
        ],
    }


def _where(told: Signatures, node: object) -> dict[str, int]:
    location = told.source.location(told.source.span(node))  # type: ignore[arg-type]
    cell = {} if location.cell is None else {"cell": location.cell}
    return {**cell, "line": location.span.line, "column": location.span.column}
