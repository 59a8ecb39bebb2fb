"""`python -m dtlint`: the same program as the `dtlint` command."""

from __future__ import annotations

from dtlint.cli import main

if __name__ == "__main__":
    main(prog_name="dtlint")
