"""The table as a file: entries that are alike are written once, and each op has a line of its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from dtlint.dtypes.table import OPS

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["aliased", "written"]


def aliased(ops: Mapping[str, Any]) -> dict[str, Any]:
    """Ops that another op's entry describes to the letter say its name instead."""
    first: dict[str, str] = {}
    result: dict[str, Any] = {}
    for name in sorted(ops, key=lambda name: (name.startswith("torch.Tensor."), name.count("."), name)):
        text = json.dumps(ops[name])
        if first.setdefault(text, name) == name:
            result[name] = ops[name]
        else:
            result[name] = first[text]
    return result


def written(table: Mapping[str, Any]) -> str:
    """The table as JSON, a line for each op: so `Table.read` finds an op without reading the others."""
    head = json.dumps({key: value for key, value in table.items() if key != "ops"}, indent=0)
    lines = [
        f"{json.dumps(name)}: {json.dumps(entry, separators=(',', ':'), ensure_ascii=False)}"
        for name, entry in sorted(table["ops"].items())
    ]
    return head.removesuffix("\n}") + OPS + ",\n".join(lines) + "\n}\n}\n"
