"""`python -m dtlint.dtypes.learn`: learn the operator table, and write it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from dtlint.dtypes.learn.learning import learn
from dtlint.dtypes.learn.writing import written

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Learn, and write the table."""
    version = ".".join(torch.__version__.split(".")[:2])
    parser = argparse.ArgumentParser(
        prog="python -m dtlint.dtypes.learn", description="Learn the operator table from torch."
    )
    parser.add_argument(
        "--output", type=Path, default=Path(__file__).parent.parent / "tables" / f"torch-{version}.json"
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="OP", help="learn this entry of the database only"
    )
    options = parser.parse_args(arguments)
    table = learn(options.only)
    options.output.write_text(written(table), encoding="utf-8")
    print(f"{len(table['ops'])} ops of torch {table['torch']} in {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
