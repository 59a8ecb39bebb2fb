"""`dtlint server`: a language server for editors, over standard input and output."""

from __future__ import annotations

import os
import sys

import click

__all__ = ["command"]

EPILOG = """\b
Examples:
  dtlint server        as the command of a language server in an editor's settings: see docs/editors.md
"""


@click.command("server", epilog=EPILOG)
def command() -> None:
    """Serve an editor over standard input and output, by the Language Server Protocol.

    It shows what `dtlint check` finds while code is written, with fixes, and what `dtlint infer` knows of an expression
    where the pointer is. Settings are those of pyproject.toml or dtlint.toml, and the editor's over them.
    """
    if sys.stdin is None or sys.stdin.isatty():
        raise click.UsageError("an editor starts this, and talks to it over standard input; see docs/editors.md")
    from dtlint.server.loop import serve

    inbox, outbox = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anything prints is no message
    try:
        code = serve(inbox, outbox)
    except KeyboardInterrupt:
        code = 1
    sys.stderr.flush()
    os._exit(code)  # a thread may still wait for the editor
