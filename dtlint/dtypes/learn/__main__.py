"""`python -m dtlint.dtypes.learn`: learn the operator table, and write it."""

from __future__ import annotations

import sys

from dtlint.dtypes.learn import main

if __name__ == "__main__":
    sys.exit(main())
