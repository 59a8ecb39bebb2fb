"""A plan in a file: JSON, written wholly or not at all, and checked as it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.trace.precision_plan import PLAN_SCHEMA, Plan, check_plan
from dtlint.trace.store import RecordError, decoded, read_json, write_json

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["load", "save"]


def save(plan: Plan, path: Path) -> None:
    """Write the plan, wholly or not at all."""
    write_json(plan, path, indent=2)


def load(path: Path) -> Plan:
    """Read a plan.

    Raises:
        RecordError: the file is missing, damaged, of a newer schema, or no plan at all; the message is one line.
    """
    data = read_json(path, "plan")
    schema = data.get("plan") if isinstance(data, dict) else None
    if isinstance(schema, bool) or not isinstance(schema, int):
        raise RecordError(f"{path} is not a plan; make one: dtlint plan RUN.json --output {path.name}")
    if schema > PLAN_SCHEMA:
        raise RecordError(f"{path} has schema {schema}, newer than this dtlint reads ({PLAN_SCHEMA}); upgrade dtlint")
    try:
        plan: Plan = decoded(Plan, data)
        check_plan(plan)
    except (TypeError, KeyError) as error:
        raise RecordError(f"{path} is a damaged plan ({error}); make a new one: dtlint plan RUN.json") from error
    return plan
