"""The command line's shell. Each command is a module that is imported when its command is called, and not before.

An exit code says: 0 nothing found, 1 something found, 2 wrong usage or a mistake of dtlint's own.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import contextmanager
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any, NoReturn

import click

from dtlint import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["COMMANDS", "main"]

COMMANDS = {
    "check": "Find dtype mistakes in source files, without running them.",
    "trace": "Run a script and report which dtypes its tensors really have.",
    "report": "Show or convert a record that `dtlint trace` has written.",
    "plan": "Plan which modules stay in float32 while the others run in float16.",
    "diff": "Say what changed in the dtypes of a program between two runs.",
    "profile": "Show device time by dtype from a file of torch.profiler.",
    "compare": "Compare two traces of one program, as of float32 and bfloat16.",
    "rule": "Explain a rule, or list all of them.",
    "infer": "Show the dtype of every expression, as inferred.",
    "server": "Serve an editor: diagnostics, fixes and dtypes while code is written.",
    "clean": "Delete the cache of earlier runs.",
}
"""Each command and its line in the help. The command itself is `dtlint.cli.<name>.command`."""

EPILOG = """\b
Examples:
  dtlint check                          every Python file and notebook below here
  dtlint check --fix src/ train.ipynb   mend what can be mended safely
  dtlint trace train.py --epochs 1      run a script, then report its dtypes
  dtlint rule DT101                     what a rule means, and what to do instead

\b
Exit codes: 0 nothing found, 1 something found, 2 wrong usage or internal error.
Completion: eval "$(_DTLINT_COMPLETE=bash_source dtlint)"   (or zsh_source, fish_source)
"""

INTERRUPTED = 130
"""The exit code that shells give to a program which Ctrl-C ended."""


class Shell(click.Group):
    """A group that knows its commands by name, and imports only the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, imported now; None where there is none."""
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"dtlint.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, from the table above instead of from the commands."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; a misspelt one is answered with the nearest."""
        if args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"there is no command {args[0]!r}; {_nearest(args[0])}")
        return super().resolve_command(ctx, args)

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Read dtlint's own options."""
        with _one_line():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. An exception that nobody expected ends in one line, not in a page."""
        try:
            try:
                with _one_line():
                    return super().invoke(ctx)
            finally:
                # A reader that has gone away shows here, where click can still answer it, and not when Python ends.
                if sys.stdout is not None:
                    sys.stdout.flush()
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except Exception as error:
            _fail(ctx, error)


class _Refusal(click.ClickException):
    """A usage error in one line, without the synopsis that click puts before it."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(self.format_message(), file=file, err=file is None)


@contextmanager
def _one_line() -> Iterator[None]:
    try:
        yield
    except getattr(click.exceptions, "NoArgsIsHelpError", ()):
        raise
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "dtlint"
        raise _Refusal(f"{command}: " + " ".join(error.format_message().split())) from None


def _nearest(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, COMMANDS, n=1)
    return f"did you mean {close[0]!r}?" if close else f"use one of {', '.join(COMMANDS)}"


def _fail(ctx: click.Context, error: Exception) -> NoReturn:
    """Say in one line whose mistake it is: that of a package of rules, or dtlint's own."""
    if os.environ.get("DTLINT_DEBUG", "0") != "0":
        import traceback

        traceback.print_exception(error)
    from dtlint.rule import RulesError
    from dtlint.unexpected import in_one_line

    if isinstance(error, RulesError):
        click.echo(f"dtlint: {error}", err=True)
        ctx.exit(2)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        what = error.filename or "what dtlint prints"
        click.echo(f"dtlint: {what} cannot be written: {error.strerror}; make room, and run dtlint again", err=True)
        ctx.exit(2)
    click.echo(
        f"dtlint: internal error: {in_one_line(error)}; please report it, with the command and the file."
        " Run again with DTLINT_DEBUG=1 for the traceback",
        err=True,
    )
    ctx.exit(2)


def _print_anything() -> None:
    """Let a character that the terminal's encoding lacks print as its escape, instead of ending the run."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


@click.group(
    "dtlint",
    cls=Shell,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "-V", "--version", prog_name="dtlint", message="%(prog)s %(version)s")
def main() -> None:
    """Know the dtype of every tensor in a PyTorch program, and whether it is safe."""
    _print_anything()
