"""`dtlint infer`: the dtype of every expression of a file, as inferred from the source."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dtlint.cli.typed import typed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dtlint.diagnostic import Span
    from dtlint.dtypes.assumption import Assumption
    from dtlint.infer.claims.account import Account, Claim, Step
    from dtlint.infer.claims.dtype_signatures import Signatures
    from dtlint.infer.claims.kept import Kept
    from dtlint.infer.interproc.disk import Disk
    from dtlint.source.file import Source

__all__ = ["command"]

_MOST_NAMED = 5
"""Expressions of a line that are named where another one is asked for."""


def _assumed(ctx: click.Context, param: click.Parameter, value: str | None) -> Assumption | None:
    from dtlint.dtypes.assumption import SINGLE, parse_assumption

    if value is not None and "," in value:
        raise click.BadParameter(f"has {value!r}: infer takes one assumption, check takes several")
    try:
        assumption = None if value is None else parse_assumption(value, (SINGLE,))
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    if assumption is not None and (assumption.inputs == "uint8" or assumption.other_targets):
        raise click.BadParameter(f"has {value!r}, which `dtlint check` alone takes")
    return assumption


def _file(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
    if value is not None:
        _demand_file(value, "PATH")
    return value


def _demand_file(path: Path, named_by: str) -> None:
    """Refuse what is no file, and say which may be meant."""
    if path.is_dir():
        inside = next(iter(sorted(path.glob("[!_]*.py"))), None)
        such = "" if inside is None else f", such as {inside}"
        raise click.BadParameter(
            f"{path} is a directory; name one file{such}. `dtlint check` reads directories", param_hint=named_by
        )
    if not path.exists():
        raise click.BadParameter(f"there is no file {path}", param_hint=named_by)


@click.command(name="infer")
@click.argument("path", required=False, callback=_file, type=click.Path(path_type=Path))
@click.option(
    "--at",
    metavar="FILE:LINE:COL",
    help="One expression only: its dtype and why. Lines and columns from 1; in a notebook FILE:cell 3:LINE:COL.",
)
@click.option(
    "--output-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="text: the source with its dtypes; json: a list of claims, one for each expression that is a tensor, with"
    " lines from 1 and columns from 0.",
)
@click.option(
    "--assume",
    callback=_assumed,
    metavar="ASSUMPTION",
    help="Take the floating parameters of functions, and the weights of modules, for what it says: float32, half, bfloat16,"
    " double, autocast, autocast=cpu:bfloat16, mixed.",
)
@click.option(
    "--signatures",
    is_flag=True,
    help="What the public functions of PATH, and the forward of its classes, do to dtypes; and what breaks in them in half,"
    " bfloat16 or double.",
)
@click.option(
    "--stubs",
    is_flag=True,
    help="Write the signatures into PATH, as comments above the functions: contracts that `dtlint check` holds them to.",
)
@click.option(
    "--trace",
    type=click.Path(path_type=Path),
    metavar="RECORD",
    help="Take dtypes that the source does not decide from a run: a record of `dtlint trace --output`.",
)
@click.option("--no-cache", is_flag=True, help="Neither use nor keep results of earlier runs.")
def command(
    path: Path | None,
    at: str | None,
    output_format: str,
    assume: Assumption | None,
    signatures: bool,
    stubs: bool,
    trace: Path | None,
    no_cache: bool,
) -> None:
    """Show the dtype of every tensor expression in PATH, without running it.

    Imports are followed, so a program is read as a whole: what its functions are given decides what they return. What
    cannot be known is left out.

    With --at the innermost tensor expression at that place is shown, or what is assigned to the name there, and the steps
    from its origin. Where FILE is a module of a program, name the program as PATH, so that its calls are known.

    With --assume the functions of PATH are read as called by anybody, with floating arguments of the dtype that it says.

    \b
    Examples:
      dtlint infer model.py
      dtlint infer train.py --output-format json
      dtlint infer --at train.py:31:12
      dtlint infer train.py --at model.py:80:9
      dtlint infer --assume bfloat16 layers.py
      dtlint infer train.py --trace run.json
      dtlint infer --signatures layers.py
      dtlint infer --stubs layers.py
    """
    if signatures or stubs:
        given = [f"--{name}" for name, value in (("at", at), ("assume", assume), ("trace", trace)) if value is not None]
        if signatures and stubs:
            given.append("--stubs")
        if given:
            raise click.UsageError(f"--{'signatures' if signatures else 'stubs'} does not go with {given[0]}")
        if signatures:
            _tell_signatures(path, output_format, no_cache)
        else:
            _write_stubs(path)
        return
    if at is not None:
        _tell(path, at, output_format, assume, trace, no_cache)
        return
    if path is None:
        raise click.UsageError("name a file, or a place with --at FILE:LINE:COL")
    account = _told(path, assume, no_cache)
    seen = _seen(trace, account)
    if output_format == "json":
        _print_json(
            _as_json(account, file, claim, seen.get(file, {}))
            for file, given in account.claims().items()
            for claim in _with_run_alone(given, seen.get(file, {}))
        )
    else:
        from dtlint.cli.annotated import annotate

        annotate(account, seen.get(account.path, {}))


Seen = dict[Path, dict[Any, frozenset[str]]]
"""The dtypes that expressions had in a run, by file and by place."""


def _seen(record: Path | None, account: Account) -> Seen:
    """What a run saw in the files of a program; nothing where no run is named."""
    if record is None:
        return {}
    from dtlint.cli.report import loaded_record
    from dtlint.trace.located import Located
    from dtlint.trace.store import RecordError

    try:
        located = Located(loaded_record(record), record, account.files)
    except RecordError as error:
        raise click.UsageError(f"--trace: {error}") from None
    seen = {file: located.results(file) for file in account.files}
    stale = [file for file in account.files if (inside := located.of(file)) is not None and inside.stale]
    for file in stale:
        click.echo(f"{file} has changed since the run; what ran on lines that changed is left out", err=True)
    return seen


def _tell_signatures(path: Path | None, output_format: str, no_cache: bool) -> None:
    """The dtype signatures of a file, with what breaks in its functions in other dtypes."""
    from dtlint.cli.signatures import print_signatures
    from dtlint.source.file import shown_path

    program, roots = _program(path)
    kept = None if no_cache else _kept(program, roots, "signatures")
    rows = None if kept is None else kept.find()
    print_signatures(shown_path(program), _read_signatures(path, kept) if rows is None else rows, output_format)


def _read_signatures(path: Path | None, kept: Kept | None) -> list[dict[str, Any]]:
    """The signatures of a file as they are now; kept where another reading would tell the same."""
    from dtlint.check.breakage import breakages
    from dtlint.cli.signatures import as_rows
    from dtlint.infer.interproc.disk import Disk

    disk = Disk()
    told = _signatures(path, disk)
    rows = as_rows(told, breakages(told.tree, told.source, [one.node for one in told.found], disk))
    is_said = told.broken_off or (told.source.notebook is not None and told.source.notebook.broken)
    if kept is not None and not told.starved and not is_said:  # which a reading alone says
        kept.keep(rows, disk)
    return rows


def _write_stubs(path: Path | None) -> None:
    """Write the contracts of a file's functions above them."""
    from dtlint.check.write import replace_file
    from dtlint.infer.claims.contract_texts import contract_text
    from dtlint.infer.interproc.disk import Disk
    from dtlint.source.contracts import written
    from dtlint.source.file import Source

    if path is not None and path.suffix == ".ipynb":
        raise click.UsageError(f"{path} is a notebook; contracts are written into modules")
    told = _signatures(path, Disk())
    assert path is not None
    contracts = {one.node: text for one in told.found for text in [contract_text(one)] if text is not None}
    try:
        made = written(told.source.text, told.tree, contracts, told.source.newline)
        changed = told.source.replaced(made)
        if Source.from_bytes(changed.data, told.source.path).text != made:
            raise ValueError("with the comments its encoding would be read as another")
        if changed is not told.source:
            replace_file(_absolute(path), told.source.data, changed.data)
    except (ValueError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise click.UsageError(f"{path}: could not be written: {reason}") from None
    kept = sum(one.node.type_comment is not None for one in told.found)
    new = sum(one.type_comment is None for one in contracts)
    left = len(told.found) - kept - new
    click.echo(f"{path}: {new} new contracts, {kept} were there; of {left} functions too little is known", err=True)


def _signatures(path: Path | None, disk: Disk) -> Signatures:
    from dtlint.infer.claims.dtype_signatures import signatures

    program, roots = _program(path)
    try:
        told = signatures(program, roots, disk)
    except (SyntaxError, ValueError, OSError, RecursionError) as error:
        raise click.UsageError(_why_unread(program, error)) from None
    if told.broken_off:
        click.echo(f"{path}: {told.broken_off}; some dtypes are not known for that", err=True)
    _tell_of_cells(told.source)
    return told


def _program(path: Path | None) -> tuple[Path, list[Path]]:
    """A file, and the folders in which what it imports is looked for."""
    if path is None:
        raise click.UsageError("name a file")
    if not path.is_file():
        raise click.UsageError(f"{path} is no regular file; name a file of Python source, or a notebook")
    program = _absolute(path)
    # Python, too, looks beside the script that a link leads to, and takes the links of its folder as they are.
    return program, [Path(os.path.realpath(program)).parent if program.is_symlink() else program.parent, *_installed()]


def _told(path: Path, assumption: Assumption | None, no_cache: bool) -> Account:
    """What a reading of the program tells, or told an earlier run, if nothing has changed that it depends on."""
    program, roots = _program(path)
    kept = None if no_cache else _kept(program, roots, assumption.name if assumption else "")
    known = None if kept is None else kept.account()
    if known is None:
        known, is_whole = _read(path, program, roots, assumption)
        if kept is not None and is_whole:
            kept.keep(known.data, known.disk)
    if known.broken_off:
        click.echo(f"{path}: {known.broken_off}; some dtypes are not known for that", err=True)
    _tell_of_cells(known.main)
    return known


def _tell_of_cells(source: Source) -> None:
    """Say which cells of a notebook are left out."""
    if source.notebook is None or not source.notebook.broken:
        return
    from dtlint.check.hygiene import cell_diagnostics
    from dtlint.report.legible import place

    for diagnostic in cell_diagnostics(source):
        click.echo(f"{place(diagnostic.location)}: {diagnostic.message}; it is left out", err=True)


def _kept(program: Path, roots: list[Path], asked: str) -> Kept | None:
    """What earlier runs have told, kept where `dtlint check` keeps its results; None where that cannot be known."""
    from dtlint.cache import beside
    from dtlint.config import ConfigError, Configuration
    from dtlint.infer.claims.kept import Kept

    try:
        return Kept(beside(Configuration().settings_for(Path()).root), program, roots, asked)
    except (ConfigError, OSError):
        return None


def _read(path: Path, program: Path, roots: list[Path], assumption: Assumption | None) -> tuple[Account, bool]:
    """What a reading of the program tells now, and whether another one would tell the same."""
    from dtlint.infer.claims.account import Account
    from dtlint.infer.claims.reading import read
    from dtlint.infer.claims.tables import tables
    from dtlint.infer.interproc.disk import Disk

    disk = Disk()
    try:
        reading = read(program, roots, disk, assumption)
    except (SyntaxError, ValueError, OSError, RecursionError) as error:
        raise click.UsageError(_why_unread(path, error)) from None
    return Account(program, disk, tables(reading)), not reading.starved


def _absolute(path: Path) -> Path:
    """Without `..`, so that one file has one path, however it is written. Links are kept: imports go by those."""
    return Path(os.path.abspath(path))


def _why_unread(path: Path, error: Exception) -> str:
    """The place and the reason, as `dtlint check` tells them."""
    from dtlint.check.hygiene import cell_diagnostics, syntax_diagnostic, unreadable_diagnostic
    from dtlint.report.legible import place
    from dtlint.source.file import Source, UnreadableSource, shown_path

    try:
        source = Source.read(path)
    except (UnreadableSource, OSError) as unread:
        diagnostic = unreadable_diagnostic(shown_path(path), unread)
    else:
        diagnostic = next(cell_diagnostics(source), None) or syntax_diagnostic(source, error)
    return f"{place(diagnostic.location)}: {diagnostic.message}"


def _installed() -> list[Path]:
    """The folders that Python imports installed packages from."""
    return [Path(entry) for entry in sys.path if entry]


def _with_run_alone(claims: Sequence[Claim], seen: Mapping[Span, frozenset[str]]) -> list[Claim]:
    """The claims, and those of expressions of which the source does not even tell that they are tensors."""
    from dtlint.infer.claims.account import Claim

    new = [Claim(span, None) for span in seen.keys() - {claim.span for claim in claims}]
    return sorted([*claims, *new], key=lambda claim: claim.span)


def _as_json(account: Account, path: Path, claim: Claim, seen: Mapping[Span, frozenset[str]]) -> dict[str, object]:
    from_run = seen.get(claim.span) if claim.dtypes is None else None
    dtypes = from_run or claim.dtypes
    return {
        "path": str(path),
        **_extent(account.source(path), claim.span),
        "dtypes": None if dtypes is None else sorted(dtypes),
        "symbolic": claim.symbolic,
        **({"from_run": True} if from_run else {}),
    }


def _extent(source: Source, span: Span) -> dict[str, int]:
    """Where it begins and ends, as the file's reader knows it: lines from 1, columns from 0; in a notebook by cell."""
    location = source.location(span)
    within = location.span
    cell = {} if location.cell is None else {"cell": location.cell}
    ends = {"end_line": within.end_line, "end_column": within.end_column}
    return {**cell, "line": within.line, "column": within.column, **ends}


def _print_json(values: Iterable[object]) -> None:
    """A list with one value a line, so that two of them can be compared by `diff`, and searched by `grep`."""
    import json

    click.echo("[" + ",".join(f"\n{json.dumps(value)}" for value in values) + "\n]")


# -- one place ---------------------------------------------------------------------------------------------------------


def _tell(
    program: Path | None,
    at: str,
    output_format: str,
    assumption: Assumption | None,
    trace: Path | None,
    no_cache: bool,
) -> None:
    """The dtype at one place, and the steps that led there."""
    from dtlint.infer.claims.account import shown
    from dtlint.infer.claims.bindings import assigned, targets
    from dtlint.infer.interproc.parsing import tree_of

    file, cell, line, column = _place(at, program)
    account = _told(program or file, assumption, no_cache)
    path = _absolute(file)
    name, found = "", None
    if path in account.files:
        source = account.source(path)
        line = _line_of_text(source, cell, line, at)
        found = account.at(path, line, column - 1)
        if found is None:
            name, found = assigned(account, path, targets(tree_of(source), source), line, column - 1)
    seen = _seen(trace, account)
    steps = [] if found is None else [_with_run(step, seen) for step in account.why(found)]
    if not steps:
        steps = _of_run(account, path, line, column - 1, seen)
    if not steps:
        raise click.UsageError(f"nothing at {at} is known to be a tensor; {_instead(account, path, file, line)}")
    if output_format == "json":
        _print_json(_step_as_json(account, step) for step in steps)
        return
    click.echo(f"{name or steps[0].expression}: {steps[0].symbolic or shown(steps[0].dtypes)}")
    for step in steps:
        click.echo(f"  {_in_words(account, step)}")


def _instead(account: Account, path: Path, file: Path, line: int) -> str:
    """Where to point instead, in a file of a program at a line of its text."""
    from dtlint.infer.claims.account import text

    if path not in account.files:
        return f"{account.path.name} does not import {file}: name a program that does, or {file} alone"
    source = account.source(path)
    lines = len(source.text.splitlines())
    if source.notebook is None and line > lines:
        return f"{file} ends at line {lines}"
    there = {claim.span: None for claim in account.claims().get(path, ()) if claim.span.line == line}
    if not there:
        return f"`{typed(['dtlint', 'infer', str(file)])}` shows what is"
    spans = list(there)[:_MOST_NAMED]
    known = [f"`{text(source, span)}` at column {source.location(span).span.column + 1}" for span in spans]
    return f"on this line dtypes are known of {', '.join(known)}"


def _with_run(step: Step, seen: Seen) -> Step:
    """The step with the dtypes of the run, where the source alone does not decide."""
    dtypes = seen.get(step.path, {}).get(step.span) if step.dtypes is None else None
    if dtypes is None:
        return step
    return replace(step, dtypes=dtypes, symbolic=None, reason="as the run saw it")


def _of_run(account: Account, path: Path, line: int, column: int, seen: Seen) -> list[Step]:
    """What the run alone tells: of the innermost expression at a place that ran an operator."""
    from dtlint.diagnostic import Span
    from dtlint.infer.claims.account import Step, text

    here = Span(line, column, line, column)
    around = sorted(span for span in seen.get(path, {}) if span.contains(here))
    span = next((one for one in around if all(other.contains(one) for other in around)), None)
    if span is None:
        return []
    return [Step(path, span, text(account.source(path), span), seen[path][span], "as the run saw it")]


def _in_words(account: Account, step: Step) -> str:
    from dtlint.infer.claims.account import shown
    from dtlint.report.legible import place

    known = step.dtypes is not None and step.symbolic is None
    has = f"is {shown(step.dtypes)}" if known else f"has {step.symbolic or 'a dtype that is not known'}"
    where = place(account.source(step.path).location(step.span))
    return f"{where}: `{step.expression}` {has}: {step.reason}"


def _step_as_json(account: Account, step: Step) -> dict[str, object]:
    extent = _extent(account.source(step.path), step.span)
    return {
        "path": str(step.path),
        **{key: number for key, number in extent.items() if not key.startswith("end")},
        "expression": step.expression,
        "dtypes": None if step.dtypes is None else sorted(step.dtypes),
        "symbolic": step.symbolic,
        "reason": step.reason,
    }


def _place(at: str, program: Path | None) -> tuple[Path, int | None, int, int]:
    """The file, cell, line and column of FILE:LINE:COL or FILE:cell 3:LINE:COL; the file's own name may hold colons."""
    found = re.fullmatch(r"(?P<name>.+?)(?::cell (?P<cell>\d+))?:(?P<line>\d+):(?P<column>\d+)", at)
    if found is None or not (int(found["line"]) and int(found["column"])):
        line = re.fullmatch(r"(?:(?P<name>.*[^\d:]):)?(?P<line>\d+)", at)
        name = (line and line["name"]) or program or "model.py"
        wanted = f"{name}:{line['line'] if line else 31}:12"
        raise click.BadParameter(f"{at!r} is no place: write file, line and column, like {wanted}", param_hint="--at")
    file = Path(found["name"])
    _demand_file(file, "--at")
    return file, int(found["cell"]) if found["cell"] else None, int(found["line"]), int(found["column"])


def _line_of_text(source: Source, cell: int | None, line: int, at: str) -> int:
    """The line of the text that is a line of the file, or of a cell of it."""
    numbers = [known.number for known in source.notebook.cells] if source.notebook is not None else [None]
    if cell not in numbers:
        wanted = "write the place like model.ipynb:cell 3:1:8" if numbers != [None] else "only notebooks have cells"
        raise click.BadParameter(f"{at!r} is in no cell that holds Python; {wanted}", param_hint="--at")
    from dtlint.diagnostic import Location, Span

    return source.text_line(Location(source.path, Span(line, 0, line, 0), cell), line)
