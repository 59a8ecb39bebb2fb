"""`dtlint check`: find dtype mistakes in source files, without running them."""

from __future__ import annotations

import re
import sys
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from dtlint.cli.outputs import outputs_of, refuse_overwriting, refuse_twice, writable, write_file
from dtlint.cli.typed import typed
from dtlint.report import FORMATS
from dtlint.report.filename import STDIN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dtlint.catalogue import AnyRule
    from dtlint.check.baseline import Baselines
    from dtlint.check.job import Mode
    from dtlint.check.run import Outcome
    from dtlint.check.verdict import Support
    from dtlint.config import Configuration
    from dtlint.diagnostic import Applicability, Diagnostic
    from dtlint.dtypes.assumption import Assumption
    from dtlint.trace.located import Located

__all__ = ["command"]

FOR_PEOPLE = frozenset({"full", "concise"})
"""Formats that a summary follows; any other must hold nothing but the report."""
_SHAPING = (
    "select",
    "ignore",
    "extend_select",
    "preview",
    "target_torch",
    "config",
    "isolated",
    "force_exclude",
    "baseline",
)
"""Options on which it depends what is found."""
MANY = 3
"""Files that are told one by one, where there is nothing to say of any."""
COUNTED = FOR_PEOPLE | {"json"}
"""Formats that statistics have."""


def _codes(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    """The selectors of an option that may be repeated, and takes lists with commas."""
    codes = tuple(_spelled(code.strip()) for codes in value for code in codes.split(",") if code.strip())
    if value and not codes and param.name == "select":
        raise click.BadParameter("no rule is named; name codes, prefixes or names, such as DT101,DT2, or ALL")
    return codes


def _spelled(selector: str) -> str:
    """A code as the catalogue writes it; names are lower-case there already."""
    return selector.upper() if re.fullmatch(r"dt\d*|all", selector, re.IGNORECASE) else selector


def _release(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, int] | None:
    from dtlint.config import parse_torch

    try:
        return parse_torch(value) if value else None
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _assumed(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[Assumption, ...]:
    from dtlint.dtypes.assumption import parse_assumption

    try:
        return tuple(dict.fromkeys(parse_assumption(name) for text in value for name in text.split(",")))
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@click.command("check")
@click.argument("paths", nargs=-1, type=click.Path(readable=False))  # what cannot be read is reported as DT802
@click.option(
    "--select", callback=_codes, multiple=True, metavar="CODES", help="Rules to run instead of the configured ones."
)
@click.option("--ignore", callback=_codes, multiple=True, metavar="CODES", help="Rules to leave out.")
@click.option(
    "--extend-select", callback=_codes, multiple=True, metavar="CODES", help="Rules to run beside the configured ones."
)
@click.option("--fix", is_flag=True, help="Apply safe fixes; what remains is reported.")
@click.option(
    "--unsafe-fixes",
    is_flag=True,
    help="Count fixes that may change what code does as well; with --fix or --diff: apply them.",
)
@click.option("--diff", is_flag=True, help="Print what --fix would change, and change nothing.")
@click.option("--add-noqa", is_flag=True, help="Suppress what is found, each by `# noqa: DT101` on its line.")
@click.option(
    "--add-ignore", is_flag=True, help="The same by `# dtlint: ignore[DT101]`, which other linters do not read."
)
@click.option("--preview", is_flag=True, help="Run the opt-in rules and report conditional findings as well.")
@click.option(
    "--assume",
    callback=_assumed,
    multiple=True,
    metavar="WHAT",
    help="Hold public functions to this: half, bfloat16, double, autocast, mixed, uint8, int-targets.",
)
@click.option(
    "--baseline",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Report only what is new since this file was written.",
)
@click.option("--write-baseline", is_flag=True, help="Write what is found to the baseline, and report nothing.")
@click.option(
    "--trace",
    type=click.Path(path_type=Path),
    metavar="RECORD",
    help="Say of each finding whether this run shows it: a record of `dtlint trace --output`.",
)
@click.option("--statistics", is_flag=True, help="Print only how often each rule was broken.")
@click.option(
    "--output-format",
    type=click.Choice(FORMATS),
    default="full",
    show_default=True,
    help="With code frames (full), one line for each finding (concise), or for other programs.",
)
@click.option(
    "--output-file", "--report-file", type=click.Path(path_type=Path), help="Write the report into this file."
)
@click.option(
    "--report",
    "reports",
    callback=outputs_of(FORMATS),
    multiple=True,
    metavar="FORMAT:FILE",
    help="Write a report of this format into a file, beside the main one; may be repeated.",
)
@click.option("--exit-zero", is_flag=True, help="Exit with 0 whatever is found.")
@click.option("--quiet", "-q", is_flag=True, help="Print findings only, no summary.")
@click.option("--force-exclude", is_flag=True, help="Apply exclusions to files given by name as well.")
@click.option("--stdin-filename", metavar="PATH", help="The path to show, and to find settings for, when PATHS is `-`.")
@click.option(
    "--target-torch", callback=_release, metavar="2.4", help="The oldest torch release the code has to run on."
)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Use this dtlint.toml or pyproject.toml for all files.",
)
@click.option("--isolated", is_flag=True, help="Read no configuration file.")
@click.option("--no-cache", is_flag=True, help="Neither use nor keep results of earlier runs.")
def command(paths: tuple[str, ...], **options: Any) -> None:
    """Find dtype mistakes in Python files, stubs and notebooks, without running them.

    PATHS are files or directories (default: the current one), or `-` for standard input. Below a directory,
    .gitignore, `exclude` and directories like .venv and build are respected; a file given by name is always checked.

    Rules are selected by code, prefix or name: DT101, DT1, model-half, ALL. Silence one finding by `# noqa: DT101`
    or `# dtlint: ignore[DT101]` on any of its lines, a file by `# dtlint: file-ignore[DT101]`.

    Findings that hold only if an input has a dtype that nothing in view gives it, such as half, are reported with
    --preview alone; selecting their rule does not show them.

    With --assume the parameters of public functions and the weights of modules have the dtypes that it says, and what
    breaks then, and not in float32, is reported: `half` and `bfloat16` for both, `double`, `autocast` around float32
    (on CUDA in float16; or autocast=cpu:bfloat16), `mixed` for float32 inputs of half weights, `uint8` for images and
    masks, `int-targets` for losses. Settings: `supports`.

    \b
    Examples:
      dtlint check src/ train.ipynb
      dtlint check --assume half,autocast src/
      dtlint check --select DT1,DT201 --ignore model-half
      dtlint check --diff --unsafe-fixes .
      dtlint check --trace run.json src/
      dtlint check --report sarif:dtlint.sarif --report junit:dtlint.xml
      cat model.py | dtlint check - --stdin-filename src/model.py --fix

    \b
    Exit codes:
      0  nothing found, or nothing but information
      1  an error or a warning was found (with --diff: a file would change, or cannot be read)
      2  wrong usage, wrong settings, or a mistake of dtlint's own
    """
    from dtlint.config import ConfigError
    from dtlint.source.discover import UnfitPath
    from dtlint.source.patterns import PatternError

    _refuse_contradictions(paths, options)
    files = [options["output_file"], *(output.file for output in options["reports"])]
    for file in files:
        writable(file)
    refuse_twice(files)
    try:
        code = _check(paths or (".",), {**options, "paths": paths})
    except (ConfigError, PatternError, UnfitPath) as error:
        raise click.UsageError(str(error)) from None
    if code:
        raise click.exceptions.Exit(code)


def _refuse_contradictions(paths: tuple[str, ...], options: Mapping[str, Any]) -> None:
    if STDIN in paths and len(paths) > 1:
        raise click.UsageError("`-` stands for standard input and cannot be checked together with other paths")
    if options["stdin_filename"] and STDIN not in paths:
        raise click.UsageError("--stdin-filename needs `-` as the path")
    if options["isolated"] and options["config"]:
        raise click.UsageError("--isolated reads no configuration, so it cannot go with --config")
    if options["add_noqa"] and options["add_ignore"]:
        raise click.UsageError("--add-noqa and --add-ignore write two forms of the same comment; choose one")
    adding = next((name for name in ("add_noqa", "add_ignore") if options[name]), None)
    if adding and (options["fix"] or options["diff"] or STDIN in paths):
        raise click.UsageError(f"{_flag(adding)} writes comments into files; run it without --fix, --diff and `-`")
    if options["statistics"] and options["output_format"] not in COUNTED:
        raise click.UsageError(f"--statistics counts as text or as json, not as {options['output_format']}")
    instead = next((name for name in ("diff", "add_noqa", "add_ignore", "write_baseline") if options[name]), None)
    changing = next((name for name in ("fix", "diff", "add_noqa", "add_ignore") if options[name]), None)
    if options["write_baseline"] and (changing or STDIN in paths):
        other = _flag(changing) if changing else "`-`"
        raise click.UsageError(f"--write-baseline keeps what files hold; run it without {other}")
    if options["trace"] and STDIN in paths:
        raise click.UsageError("--trace is about files as they lie on the disk; name one instead of `-`")
    reporting = {
        "--trace": options["trace"],
        "--statistics": options["statistics"],
        "--output-file": options["output_file"],
        "--report": options["reports"],
        "--output-format": options["output_format"] != "full",
        "--baseline": options["baseline"] and instead != "write_baseline",
    }
    useless = [name for name, given in reporting.items() if given]
    if instead and useless:
        raise click.UsageError(f"{_flag(instead)} writes no report, so it cannot go with {useless[0]}")


def _flag(name: str) -> str:
    """The option as it is typed."""
    return f"--{name.replace('_', '-')}"


def _hints(options: Mapping[str, Any]) -> bool:
    """Is there somebody to be told what would break under half?"""
    doing = ("assume", "fix", "diff", "add_noqa", "add_ignore", "write_baseline", "statistics", "quiet")
    return options["output_format"] in FOR_PEOPLE and not any(options[name] for name in doing)


def _suppressing(options: Mapping[str, Any]) -> bool:
    return bool(options["add_noqa"] or options["add_ignore"])


def _check(paths: tuple[str, ...], options: Mapping[str, Any]) -> int:
    """Run, report, and say the exit code."""
    from dtlint.catalogue import catalogue
    from dtlint.check.run import run
    from dtlint.rule import demand
    from dtlint.source.discover import discover

    rules = catalogue()
    demand(rules)
    configuration = _configuration(options)
    mode = _mode(options)
    if paths == (STDIN,):
        return _check_stdin(configuration, rules, mode, options)
    files = discover(paths, configuration.settings_for)
    _keep_inputs(files, options)
    cache = None
    if files and not options["no_cache"]:
        from dtlint.cache import beside
        from dtlint.check.cache import Cache

        cache = Cache(beside(configuration.settings_for(Path()).root), rules)
    baselines = _baselines(configuration, [*map(Path, paths), *files], options)
    for baseline in baselines.all if baselines is not None else ():
        refuse_overwriting("--baseline", baseline.file, files, "a file that is to be checked")
    located = _located(options["trace"], files)
    outcome = run(files, configuration.settings_for, rules, mode=mode, cache=cache, glance=_hints(options))
    if not files and not options["quiet"]:
        for line in _why_none(paths, configuration):
            click.echo(line, err=True)
    if options["write_baseline"]:
        return _write_baselines(outcome, baselines)
    _leave_known(outcome, baselines, options)
    if located is not None:
        from dtlint.trace.verdicts import with_verdicts

        outcome.diagnostics = with_verdicts(outcome.diagnostics, located)
    return _conclude(outcome, rules, options, sys.stdout)


def _located(record: Path | None, files: Sequence[Path]) -> Located | None:
    """What the run of a record saw in the files; None where none is named."""
    if record is None:
        return None
    from dtlint.cli.report import loaded_record
    from dtlint.trace.located import Located
    from dtlint.trace.store import RecordError

    try:
        return Located(loaded_record(record), record, files)
    except RecordError as error:
        raise click.UsageError(f"--trace: {error}") from None


def _why_none(paths: Sequence[str], configuration: Configuration) -> Iterator[str]:
    """Why there is nothing to check: what was named is excluded, or holds no Python."""
    from dtlint.source.discover import exclusion

    excluded = []
    for path in paths:
        settings = configuration.settings_for(Path(path))
        if settings.force_exclude and (by := exclusion(Path(path), settings)) is not None:
            excluded.append(f"{path} is excluded by {by}; force-exclude holds that for files given by name, too.")
    yield from excluded[:MANY]
    if len(excluded) > MANY:
        yield f"So are {len(excluded) - MANY} more."
    if len(excluded) < len(paths):
        yield "No Python files or notebooks were found under the given paths."


def _baselines(configuration: Configuration, paths: Iterable[Path], options: Mapping[str, Any]) -> Baselines | None:
    """The baseline that the command line names, or else those of the settings of these files and directories."""
    one: Path | None = options["baseline"]
    files = (
        {one} if one else {file for path in paths if (file := configuration.settings_for(path).baseline) is not None}
    )
    if not files and options["write_baseline"]:
        raise click.UsageError(
            "--write-baseline needs a file: name it with --baseline, or `baseline` in the configuration"
        )
    if not files or options["diff"] or _suppressing(options):
        return None
    from dtlint.check.baseline import BaselineError, Baselines

    _keep_inputs(files, options)
    try:
        return Baselines(files, one, anew=options["write_baseline"])
    except BaselineError as error:
        raise click.UsageError(str(error)) from None


def _write_baselines(outcome: Outcome, baselines: Baselines | None) -> int:
    from dtlint.check.baseline import BaselineError

    assert baselines is not None
    for error in outcome.errors:
        click.echo(f"dtlint: {error}", err=True)
    if outcome.errors:  # it would forget what could not be found this time
        return 2
    try:
        baselines.write(outcome.diagnostics, outcome.baselines)
    except BaselineError as error:
        raise click.UsageError(str(error)) from None
    for baseline in baselines.all:
        click.echo(f"Wrote {_count(baseline.counts.total(), 'problem')} to {baseline.file}.", err=True)
    return 0


def _leave_known(outcome: Outcome, baselines: Baselines | None, options: Mapping[str, Any]) -> None:
    """Take what the baselines know out of the outcome, and tell which of their entries are stale."""
    if baselines is None:
        return
    compared = baselines.compare(outcome.diagnostics, outcome.enabled, outcome.previewed, outcome.baselines)
    outcome.diagnostics = compared.new
    if options["quiet"]:
        return
    if compared.known:
        click.echo(f"Left out {_count(compared.known, 'problem')} that the baseline knows.", err=True)
    if compared.stale:
        click.echo("In the baseline, and no longer found (--write-baseline drops them):", err=True)
    for gone in compared.stale:
        click.echo(
            f"  {gone.path}: {gone.code} {gone.text}{f' ({gone.count} times)' if gone.count > 1 else ''}", err=True
        )


def _keep_inputs(read: Iterable[Path], options: Mapping[str, Any]) -> None:
    read = list(read)
    settings = [options["config"]] if options["config"] else []
    for option, file in (
        ("--output-file", options["output_file"]),
        *(("--report", output.file) for output in options["reports"]),
    ):
        refuse_overwriting(option, file, read, "a file that is to be checked")
        refuse_overwriting(option, file, settings, "the configuration")


def _configuration(options: Mapping[str, Any]) -> Configuration:
    from dtlint.config import Configuration, Selection

    selection = Selection(options["select"] or None, options["ignore"], options["extend_select"])
    return Configuration(
        options["config"],
        isolated=options["isolated"],
        selection=selection,
        target_torch=options["target_torch"],
        force_exclude=options["force_exclude"],
        preview=options["preview"],
        assume=options["assume"],
    )


def _mode(options: Mapping[str, Any]) -> Mode:
    from dtlint.check.job import IGNORE, NOQA, Mode

    fixing = options["fix"] or options["diff"]
    form = NOQA if options["add_noqa"] else IGNORE if options["add_ignore"] else None
    return Mode(fix=_trusted(options) if fixing else None, suppress=form, write=not options["diff"])


def _trusted(options: Mapping[str, Any]) -> Applicability:
    from dtlint.diagnostic import Applicability

    return Applicability.UNSAFE if options["unsafe_fixes"] else Applicability.SAFE


def _check_stdin(
    configuration: Configuration, rules: Mapping[str, AnyRule], mode: Mode, options: Mapping[str, Any]
) -> int:
    """Check standard input. With --fix the text goes to standard output, and what remains to standard error."""
    from dtlint.check.hygiene import UNREADABLE_FILE, unreadable_diagnostic
    from dtlint.check.job import Job, Result, difference, process
    from dtlint.check.run import gather
    from dtlint.check.settings import check_settings
    from dtlint.source.discover import exclusion
    from dtlint.source.file import Source, UnreadableSource
    from dtlint.source.settings_file import is_settings

    shown = options["stdin_filename"] or STDIN
    path = Path(shown)
    _keep_inputs([path], options)
    settings = configuration.settings_for(path)
    baselines = _baselines(configuration, [path], options)
    data = sys.stdin.buffer.read()
    codes = tuple(rule.code for rule in settings.enabled(rules, path))
    result = Result()
    source: Source | None = None
    fixed = data
    is_excluded = settings.force_exclude and exclusion(path, settings) is not None
    try:
        if is_settings(shown):
            job = Job(path, shown, settings, codes)
            result = Result() if is_excluded else Result(*check_settings(job, rules, data))
        else:
            source = Source.from_bytes(data, shown, path if options["stdin_filename"] else None)
    except UnreadableSource as error:
        result.diagnostics += [unreadable_diagnostic(shown, error)] if UNREADABLE_FILE[0] in codes else []
    else:
        if source is not None and not is_excluded:
            result = process(source, Job(path, shown, settings, codes), rules, mode)
        if result.changed is not None:
            assert source is not None
            fixed = result.changed.encode()
            result.difference = difference(source, result.changed)
    outcome = gather([result])
    outcome.enabled[shown] = codes
    outcome.previewed |= {shown} if settings.preview else set()
    if settings.baseline is not None:
        outcome.baselines[shown] = settings.baseline
    _leave_known(outcome, baselines, options)
    if mode.fix is None or not mode.write:
        return _conclude(outcome, rules, options, sys.stdout)
    sys.stdout.buffer.write(fixed)
    sys.stdout.buffer.flush()
    return _conclude(outcome, rules, options, sys.stderr)


def _conclude(outcome: Outcome, rules: Mapping[str, AnyRule], options: Mapping[str, Any], stream: TextIO) -> int:
    """Print what there is to print, and say the exit code."""
    for error in outcome.errors:
        click.echo(f"dtlint: {error}", err=True)
    if options["diff"]:
        from dtlint.check.hygiene import UNREADABLE_FILE
        from dtlint.report.concise import write

        for difference in outcome.differences:
            click.echo(difference, nl=False)
        unreadable = [diagnostic for diagnostic in outcome.diagnostics if diagnostic.code == UNREADABLE_FILE[0]]
        write(unreadable, sys.stderr, rules)  # nobody knows what would change in these
        if not options["quiet"]:
            for line in _would_fix(outcome, options):
                click.echo(line, err=True)
        found = bool(outcome.differences or unreadable)
    elif _suppressing(options):
        click.echo(f"Added {_count(outcome.added, 'suppression')}.", err=True)
        return 2 if outcome.errors else 0
    else:
        _report_everywhere(outcome, rules, options, stream)
        found = any(_fails(diagnostic) for diagnostic in outcome.diagnostics)
    if outcome.errors:
        return 2
    return 1 if found and not options["exit_zero"] else 0


def _fails(diagnostic: Diagnostic) -> bool:
    return diagnostic.severity.value != "info"


def _report_everywhere(
    outcome: Outcome, rules: Mapping[str, AnyRule], options: Mapping[str, Any], stream: TextIO
) -> None:
    """The main report to the stream, or to its file, and the others to theirs."""
    from dtlint.report import write

    if options["output_file"] is None:
        _report(outcome, rules, options, stream)
    else:
        text = StringIO()
        _report(outcome, rules, options, text)
        write_file("--output-file", options["output_file"], text.getvalue())
    for output in options["reports"]:
        text = StringIO()
        write(outcome.diagnostics, output.format, text, rules)
        write_file("--report", output.file, text.getvalue())


def _report(outcome: Outcome, rules: Mapping[str, AnyRule], options: Mapping[str, Any], stream: TextIO) -> None:
    format = options["output_format"]
    if options["statistics"]:
        stream.write(_statistics(outcome, format))
        return
    if outcome.diagnostics or format not in FOR_PEOPLE:
        from dtlint.report import write

        write(outcome.diagnostics, format, stream, rules)
    if format in FOR_PEOPLE and not options["quiet"]:
        for line in _summary(outcome, options):
            stream.write(line + "\n")


def _statistics(outcome: Outcome, format: str) -> str:
    from collections import Counter

    counts = Counter((diagnostic.code, diagnostic.name) for diagnostic in outcome.diagnostics).most_common()
    if format == "json":
        import json

        rules = [{"code": code, "name": name, "count": count} for (code, name), count in counts]
        whole = {"rules": rules, "functions": list(map(_function, outcome.support))} if outcome.support else rules
        return json.dumps(whole, indent=2) + "\n"
    width = max((len(str(count)) for _, count in counts), default=0)
    text = "".join(f"{code}  {count:>{width}}  {name}\n" for (code, name), count in counts)
    return text + "".join(f"{line}\n" for line in _standing(outcome.support))


def _function(one: Support) -> dict[str, object]:
    return {
        "assumption": one.assumption,
        "filename": one.path,
        "row": one.line,
        "function": one.function,
        "verdict": one.verdict.value,
    }


def _standing(support: Sequence[Support]) -> Iterator[str]:
    """How many public functions stand how under each assumption; those that do not support it are named."""
    from dtlint.check.verdict import Verdict

    for assumption in dict.fromkeys(one.assumption for one in support):
        under = [one for one in support if one.assumption == assumption]
        yield ""
        yield f"{_count(len(under), 'public function')} with tensors under {assumption}:"
        width = len(str(len(under)))
        for verdict in Verdict:
            those = [one for one in under if one.verdict is verdict]
            if those:
                yield f"  {len(those):>{width}}  {verdict.value}"
            if verdict is not Verdict.SUPPORTS:
                yield from (f"  {'':{width}}    {one.path}:{one.line} {one.function}" for one in those)


def _left_out(support: Sequence[Support]) -> Iterator[str]:
    """How many public functions no finding speaks of because they took too long."""
    from dtlint.check.verdict import Verdict

    names = {(one.path, one.function) for one in support if one.verdict is Verdict.UNFINISHED}
    if names:
        was = "was" if len(names) == 1 else "were"
        yield f"{_count(len(names), 'public function')} {was} not analysed within the budget: `--statistics` names them."


def _summary(outcome: Outcome, options: Mapping[str, Any]) -> Iterator[str]:
    """What was fixed, what was found, and what of it could be fixed."""
    found = outcome.diagnostics
    if outcome.fixed:
        yield f"Fixed {_count(outcome.fixed, 'problem')}."
    if not found:
        if outcome.checked and not outcome.errors and not outcome.fixed:
            yield "All checks passed!"
        yield from _left_out(outcome.support)
        yield from _hint(outcome, options)
        return
    severities = [diagnostic.severity.value for diagnostic in found]
    parts = [
        _count(severities.count(severity), noun)
        for severity, noun in (("error", "error"), ("warning", "warning"), ("info", "note"))
        if severity in severities
    ]
    under = sum(bool(one.under) for one in found)
    names = dict.fromkeys(name for one in found for name in one.under)
    of_them = f", {under} of them under {' or '.join(names)}" if 0 < under < len(found) else ""
    yield f"Found {_count(len(found), 'problem')} ({', '.join(parts)}){of_them}."
    yield from _left_out(outcome.support)
    if any(one.in_run is not None for one in found):
        from dtlint.trace.verdicts import counted

        yield f"By the run: {counted(found)}."
    yield from _fixable(found, options)
    yield from _hint(outcome, options)


def _hint(outcome: Outcome, options: Mapping[str, Any]) -> Iterator[str]:
    """What nobody has asked for, where it is worth asking: what the command that asks for it reports beside the rest."""
    if outcome.would_break:
        least = "At least " if outcome.glanced_at < outcome.checked else ""
        more = " more" if outcome.diagnostics else ""
        problems = "problem" if len(outcome.would_break) == 1 else "problems"
        yield (
            f"{least}{len(outcome.would_break)}{more} {problems} if inputs and weights are float16:"
            f" `{_again(options, '--assume', 'half')}`"
        )


_MOST_PATHS = 4
"""Paths that are typed once more; pre-commit gives those of all files that have changed."""


def _again(options: Mapping[str, Any], *more: str) -> str:
    """This command with more options, as it is typed."""
    words = ["dtlint", "check", *more]
    for name in _SHAPING:
        value = options[name]
        if isinstance(value, tuple):
            value = (".".join if name == "target_torch" else ",".join)(map(str, value))
        if value:
            words += [_flag(name)] if value is True else [_flag(name), str(value)]
    paths = options["paths"]
    return typed([*words, *(paths if len(paths) <= _MOST_PATHS else ())])


def _fixable(found: Sequence[Diagnostic], options: Mapping[str, Any]) -> Iterator[str]:
    from dtlint.check.fix import applicable
    from dtlint.diagnostic import Applicability

    fixes = [diagnostic.fix for diagnostic in found if diagnostic.fix]
    safe = sum(applicable(fix, Applicability.SAFE) for fix in fixes)
    unsafe = sum(applicable(fix, Applicability.UNSAFE) for fix in fixes) - safe
    if options["fix"]:  # what it has left is not for it
        safe = 0
    elif options["unsafe_fixes"]:
        safe += unsafe
    if safe:
        yield f"[*] {safe} fixable with --fix{' --unsafe-fixes' if options['unsafe_fixes'] else ''}."
    if unsafe and not options["unsafe_fixes"]:
        yield f"{unsafe} hidden {'fix' if unsafe == 1 else 'fixes'} can be enabled with --unsafe-fixes."


def _would_fix(outcome: Outcome, options: Mapping[str, Any]) -> Iterator[str]:
    if outcome.fixed:
        yield f"Would fix {_count(outcome.fixed, 'problem')} in {_count(len(outcome.differences), 'file')}."
    else:
        yield "No file would change."
    yield from _fixable(outcome.diagnostics, {**options, "fix": True})


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
