"""`dtlint clean`: delete what earlier runs have kept."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["command"]


@click.command("clean")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".")
def command(folder: Path) -> None:
    """Delete the cache of the project that FOLDER (default: the current one) belongs to.

    Results of `dtlint check` and `dtlint infer` lie in `.dtlint_cache` beside the configuration. It may be deleted at any
    time: the next run reads every file again.

    \b
    Examples:
      dtlint clean
      dtlint clean path/to/project
    """
    import shutil

    from dtlint.cache import DIRECTORY, is_cache
    from dtlint.config import ConfigError, Configuration

    try:
        root = Configuration().settings_for(folder).root
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    found = [cache for parent in dict.fromkeys((folder.absolute(), root)) if is_cache(cache := parent / DIRECTORY)]
    for cache in found:
        try:
            shutil.rmtree(cache)
        except OSError as error:
            raise click.UsageError(f"{cache} cannot be deleted: {error.strerror or error}") from None
        click.echo(f"Deleted {cache}.", err=True)
    if not found:
        click.echo("There is no cache.", err=True)
