"""`dtlint rule`: what a rule means, why it matters and what to do instead; or the list of all rules."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from click.shell_completion import CompletionItem

    from dtlint.rule import Rule

__all__ = ["command"]

EPILOG = """\b
Examples:
  dtlint rule                        list every rule
  dtlint rule DT101                  explain one, by code
  dtlint rule model-half             or by name
  dtlint rule --output-format json   for programs
  dtlint rule DT390 --new double-cast > rules/dtlint_rules/dt390_double_cast.py
"""


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    from dtlint.rule import discover

    return [
        CompletionItem(value, help=rule.name if value == rule.code else rule.code)
        for rule in discover().values()
        for value in (rule.code, rule.name)
        if value.startswith(incomplete)
    ]


@click.command("rule", epilog=EPILOG)
@click.argument("rule", required=False, shell_complete=_complete)
@click.option(
    "--output-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Text for people (Markdown when it is piped), or JSON.",
)
@click.option(
    "--new", metavar="NAME", help="Print the module of a new rule with the code RULE and this name, to begin from."
)
def command(rule: str | None, output_format: str, new: str | None) -> None:
    """Explain RULE, a code or a name; list the rules of a prefix such as DT1. Without it, list all rules.

    A rule marked `opt-in` runs only when it is selected, or with `dtlint check --preview`.
    """
    from dtlint.rule import demand, discover

    if new is not None and output_format != "text":
        raise click.UsageError("--new prints a module of Python, so it cannot go with --output-format")
    rules = discover()
    if new is not None:
        click.echo(_scaffold(rule, new, rules), nl=False)
        return
    demand(rules)
    listed = [known for known in rules.values() if rule is None or _is_prefix(rule, known.code)]
    if rule is None or listed:
        text = _json([_facts(known) for known in listed]) if output_format == "json" else "\n".join(_table(listed))
        click.echo(text)
        return
    found = _find(rule, rules)
    if output_format == "json":
        click.echo(_json(_facts(found)))
    else:
        from dtlint.document import page

        _show(page(found))


def _scaffold(code: str | None, name: str, rules: Mapping[str, type[Rule]]) -> str:
    """A new rule's module. Its code and its name must be free."""
    from dtlint.cli.scaffold import scaffold

    if code is None:
        raise click.UsageError("--new needs a code for the rule: dtlint rule DT390 --new double-cast")
    taken = next((rule for rule in rules.values() if code.upper() == rule.code or name == rule.name), None)
    if taken is not None:
        raise click.UsageError(f"there is a rule {taken.code} {taken.name} already; choose another code and name")
    try:
        return scaffold(code.upper(), name)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _is_prefix(wanted: str, code: str) -> bool:
    """Does it name a family of rules, and this one among them?"""
    return code.startswith(wanted.upper()) and code != wanted.upper()


def _find(wanted: str, rules: Mapping[str, type[Rule]]) -> type[Rule]:
    by_name = {rule.name: rule for rule in rules.values()}
    found = rules.get(wanted.upper()) or by_name.get(wanted.lower())
    if found is None:
        from dtlint.families import meant

        raise click.UsageError(f"there is no rule {wanted!r}{meant(wanted, rules)}")
    return found


def _table(rules: Iterable[type[Rule]]) -> list[str]:
    from dtlint.document import document

    rows = [
        (rule.code, rule.name, rule.severity.value, _fix(rule), _opt_in(rule) + document(rule).summary)
        for rule in rules
    ]
    head = ("CODE", "NAME", "SEVERITY", "FIX", "WHAT IT FINDS")
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in (head, *rows)]


def _fix(rule: type[Rule]) -> str:
    from dtlint.diagnostic import Applicability

    return "-" if rule.fix is Applicability.NONE else rule.fix.value


def _opt_in(rule: type[Rule]) -> str:
    return "" if rule.default else "(opt-in) "


def _show(markdown: str) -> None:
    """Rendered on a terminal, as it is elsewhere."""
    if sys.stdout is None or not sys.stdout.isatty():
        click.echo(markdown, nl=False)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(markdown))


def _facts(rule: type[Rule]) -> dict[str, object]:
    from dtlint.document import document

    text = document(rule)
    return {
        "code": rule.code,
        "name": rule.name,
        "summary": text.summary,
        "severity": rule.severity.value,
        "fix": rule.fix.value,
        "default": rule.default,
        "since": ".".join(map(str, rule.since)) if rule.since > (0, 0) else None,
        "documentation": text.markdown(),
    }


def _json(value: object) -> str:
    import json

    return json.dumps(value, indent=2, ensure_ascii=False)
