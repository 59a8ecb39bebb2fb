"""The pictures of the documentation: what commands print on a terminal, as SVG.

`python tests/pictures.py` draws them anew; a test compares them.
"""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

__all__ = ["PICTURES", "draw"]

ROOT = Path(__file__).resolve().parent.parent
PICTURES = {
    "check.svg": ("demo", "dtlint check --select DT203 finetune.py", 112),
    "trace.svg": ("train", "dtlint trace exploding_logits.py", 112),
}
"""Each file of `docs/images` with the folder of `fixtures` and the command whose output it shows, and how many columns the terminal has."""

THEME = TerminalTheme(
    (22, 27, 34),
    (220, 226, 233),
    [
        *((72, 79, 88), (255, 123, 114), (126, 231, 135), (242, 204, 96)),
        *((121, 192, 255), (210, 168, 255), (118, 227, 234), (201, 209, 217)),
    ],
)
"""Light on dark, in colours that can be told apart on both of GitHub's backgrounds."""

FRAME = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
<style>
text {{ font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: {char_height}px; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""The window around the text, as rich has it but for the font, which is not loaded from anywhere."""


UNICODE = {"PYTHONIOENCODING": "utf-8", "PYTHONUNBUFFERED": "1"}


def draw(where: str, command: str, columns: int) -> str:
    """What a command prints in a copy of a folder, as SVG.

    Raises:
        ValueError: the command failed.
    """
    program, *arguments = shlex.split(command)
    with TemporaryDirectory() as folder:
        copy = copytree(ROOT / "fixtures" / where, Path(folder) / where)
        done = subprocess.run(
            [sys.executable, "-m", program, *arguments],
            cwd=copy,
            env={**os.environ, "FORCE_COLOR": "1", "NO_COLOR": "", "COLUMNS": str(columns)} | UNICODE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        )
    if done.returncode > 1:
        raise ValueError(f"{command!r} ended with exit code {done.returncode}: {done.stdout}")
    console = Console(width=columns, record=True, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.assemble(("$ ", "dim"), (command, "bold")))
    console.print(Text.from_ansi(done.stdout.rstrip()))
    return console.export_svg(title="", theme=THEME, code_format=FRAME, unique_id="dtlint")


def main() -> None:
    """Draw all of them."""
    folder = ROOT / "docs" / "images"
    folder.mkdir(exist_ok=True)
    for name, shown in PICTURES.items():
        (folder / name).write_text(draw(*shown), encoding="utf-8")


if __name__ == "__main__":
    main()
