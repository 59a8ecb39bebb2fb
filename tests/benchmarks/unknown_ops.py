"""Where knowledge ends: ops of which nothing is known though the dtype of their first operand is.

    python tests/benchmarks/unknown_ops.py SRC [SRC ...] [--assume half] [--most N]

Each SRC is a directory of Python files, such as an unpacked wheel, or a file. They are read under the assumption, so that the
dtypes of most tensors are known. Of the ops that were asked with a first operand of one dtype, and did not raise, it prints how
often the result has no dtype, the most frequent first, with the arguments that were given: `?` is what may be anything, `T` a
tensor of unknown dtype. Where these decide the dtype in torch, nothing can be known; where they do not, a model or the operator
table lacks something: `torch.sum` of a half tensor and `?` is `x.sum(dim)` for any `dim`, and half all the same.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dtlint.catalogue import catalogue
from dtlint.check.run import run
from dtlint.config import Configuration
from dtlint.dtypes.assumption import parse_assumption
from dtlint.infer.context import Context
from dtlint.infer.domain.values import Const, Tensor, Tuple, Unknown, Value
from dtlint.infer.interproc.recording import Recording
from dtlint.source.discover import discover


class Asked:
    """What was asked, and what of it gave nothing."""

    def __init__(self, assumed: str) -> None:
        self._assumed = Const(assumed)
        self.all: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()
        self.given: dict[str, Counter[str]] = {}

    def operation(
        self,
        op: str,
        args: Sequence[Value],
        keywords: Mapping[str, Value],
        result: Value | None,
        error: str | None,
        ctx: Context,
    ) -> None:
        """An op of torch was evaluated."""
        is_known = bool(args) and isinstance(args[0], Tensor) and len(args[0].dtypes or ()) == 1
        if is_known and error is None and ctx.ambient("assumed") == self._assumed:
            self.all[op] += 1
            if isinstance(result, (Tensor, Unknown)) and not result.dtypes:
                self.unknown[op] += 1
                words = [*map(in_words, args), *(f"{name}={in_words(value)}" for name, value in keywords.items())]
                self.given.setdefault(op, Counter())[", ".join(words)] += 1


def in_words(value: Value) -> str:
    """A value in a few letters."""
    if isinstance(value, (Tensor, Unknown)):
        kind = "T" if isinstance(value, Tensor) else "?"
        return kind if value.dtypes is None else f"{kind}{sorted(value.dtypes)}"
    if isinstance(value, Const):
        return repr(value.value)
    return f"({', '.join(map(in_words, value.items))})" if isinstance(value, Tuple) else type(value).__name__


def main() -> None:
    """Read, and print what nothing was known of."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", type=Path, metavar="SRC")
    parser.add_argument("--assume", default="half", help="the assumption (default: %(default)s)")
    parser.add_argument("--most", default=30, type=int, help="how many ops are printed (%(default)s)")
    options = parser.parse_args()
    assumption = parse_assumption(options.assume)
    configuration = Configuration(isolated=True, assume=(assumption,))
    asked = Asked(assumption.inputs)
    record = Recording.operation

    def operation(recording: Recording, *given: Any) -> None:
        asked.operation(*given)
        record(recording, *given)

    Recording.operation = operation  # type: ignore[method-assign, assignment]
    files = discover(options.sources, configuration.settings_for)
    run(files, configuration.settings_for, catalogue(), workers=1)
    print(f"{sum(asked.all.values())} ops asked, of {sum(asked.unknown.values())} nothing is known")
    for op, count in asked.unknown.most_common(options.most):
        print(f"{count:5} of {asked.all[op]:5}  {op}")
        for words, times in asked.given[op].most_common(3):
            print(f"        {times:5}  {words}")


if __name__ == "__main__":
    main()
