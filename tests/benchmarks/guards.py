"""How much of what goes wrong is seen: code that is right, of which one guard at a time is taken away.

    python tests/benchmarks/guards.py SRC [SRC ...] [--each N] [--seed N] [--misses KIND] [--preview]

Each SRC is a directory of Python files, such as an unpacked wheel. A guard is a cast, a `dtype=`, the `x =` before a cast,
an `unscale_`: what people forget. For each kind some are drawn and taken away, each in a file of its own, and the
file is checked before and after: a finding that is new counts as seen. Much of what is taken away harms nobody, or shows
only in another file, so no kind comes near to all; what counts is which kinds are overlooked. `--misses` prints the places
of a kind that nothing was said about, to be read.
"""

from __future__ import annotations

import argparse
import ast
import random
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from dtlint.catalogue import catalogue
from dtlint.check.file import check_source
from dtlint.config import Settings
from dtlint.infer.names import path_of
from dtlint.source.file import Source

LONGEST = 6_000
"""Lines of the files that are taken."""
MOST = 2
"""Guards of a kind that are taken from one file."""
SPREAD = 6
"""How many times as many are kept to draw from."""
FLOAT32 = ("torch.float32", "torch.float")
INTEGERS = ("torch.long", "torch.int64", "torch.bool", "torch.int32")
PRODUCTS = ("linear", "matmul", "bmm", "einsum", "baddbmm")
CASTS = ("float", "half", "double", "long", "int", "bool", "bfloat16")

Change = tuple[ast.AST, str]
"""What is changed, and the text that takes its place."""


class Code:
    """A file, and what is written in its nodes."""

    def __init__(self, text: str) -> None:
        self.tree = ast.parse(text)
        self._data = text.encode()
        self._lines = [0]
        for line in self._data.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self.parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def text(self, node: ast.AST) -> str:
        """A node as it is written, in parentheses where something may stand on its other side: a node has none of its
        own."""
        begin, end = self._span(node)
        text = self._data[begin:end].decode()
        return text if isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)) else f"({text})"

    def with_(self, change: Change) -> str:
        """The whole file with a change."""
        begin, end = self._span(change[0])
        return (self._data[:begin] + change[1].encode() + self._data[end:]).decode()

    def _span(self, node: ast.AST) -> tuple[int, int]:
        begin = self._lines[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        return begin, self._lines[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]

    def without(self, call: ast.Call, name: str) -> str:
        """A call without one of its keywords."""
        given = [self.text(part) for part in call.args]
        given += [self.text(part) for part in call.keywords if part.arg != name]
        return f"{self.text(call.func)}({', '.join(given)})"


def last(node: ast.AST) -> str:
    """The last name of what is called."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def told(call: ast.Call, name: str) -> ast.expr | None:
    """A keyword argument."""
    return next((part.value for part in call.keywords if part.arg == name), None)


def dtype_told(call: ast.Call) -> str:
    """What a `dtype=` names."""
    given = told(call, "dtype")
    return "" if given is None else path_of(given) or ""


def upcast(node: ast.AST) -> ast.expr | None:
    """What `.float()` is called on."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "float":
        return None if node.args else node.func.value
    return None


def upcast_before(code: Code, node: ast.AST, *names: str) -> Iterator[Change]:
    """`x.float().pow(2)`, of which `.float()` goes."""
    subject, around = upcast(node), code.parents.get(node)
    if subject is not None and isinstance(around, ast.Attribute) and around.attr in names:
        yield node, code.text(subject)


def is_cast(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr in CASTS:
        return not node.args and not node.keywords
    named = path_of(node.args[0]) or "" if len(node.args) == 1 and not node.keywords else ""
    return node.func.attr in ("to", "type") and (named.startswith("torch.") or named.endswith("dtype"))


def kept(code: Code, node: ast.AST) -> Iterator[Change]:
    """`x = x.float()`, of which only the cast is left."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and is_cast(node.value):
        subject = node.value.func.value  # type: ignore[attr-defined]
        if path_of(subject) is not None and path_of(subject) == path_of(node.targets[0]):
            yield node, code.text(node.value)


def index_cast(code: Code, node: ast.AST) -> Iterator[Change]:
    """`x[i.long()]`."""
    if isinstance(node, ast.Call) and last(node.func) == "long" and isinstance(code.parents.get(node), ast.Subscript):
        yield node, code.text(node.func.value)  # type: ignore[attr-defined]


def rounding(code: Code, node: ast.AST) -> Iterator[Change]:
    """`torch.div(i, n, rounding_mode="floor")`."""
    if isinstance(node, ast.Call) and path_of(node.func) == "torch.div" and told(node, "rounding_mode") is not None:
        yield node, code.without(node, "rounding_mode")


def negation(code: Code, node: ast.AST) -> Iterator[Change]:
    """`~mask`, which becomes `1 - mask`."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        yield node, f"(1 - {code.text(node.operand)})"


def accuracy(code: Code, node: ast.AST) -> Iterator[Change]:
    """`(a == b).float().mean()`."""
    if isinstance(upcast(node), ast.Compare):
        yield from upcast_before(code, node, "mean")


def is_limits(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and path_of(node.func) == "torch.finfo"


def limit(code: Code, node: ast.AST) -> Iterator[Change]:
    """`torch.finfo(x.dtype).min`, which becomes -1e9."""
    if isinstance(node, ast.Attribute) and node.attr == "min" and is_limits(node.value):
        yield node, "-1e9"


def smallest(code: Code, node: ast.AST) -> Iterator[Change]:
    """`torch.finfo(x.dtype).eps`, which becomes 1e-8."""
    if isinstance(node, ast.Attribute) and node.attr in ("eps", "tiny") and is_limits(node.value):
        yield node, "1e-8"


def made_as(code: Code, node: ast.AST) -> Iterator[Change]:
    """`torch.zeros(n, dtype=x.dtype)`."""
    if (
        isinstance(node, ast.Call)
        and (path_of(node.func) or "").startswith("torch.")
        and dtype_told(node).endswith(".dtype")
    ):
        yield node, code.without(node, "dtype")


def made_whole(code: Code, node: ast.AST) -> Iterator[Change]:
    """`torch.zeros(n, dtype=torch.long)`."""
    if isinstance(node, ast.Call) and last(node.func) in ("zeros", "ones", "empty") and dtype_told(node) in INTEGERS:
        yield node, code.without(node, "dtype")


def positions(code: Code, node: ast.AST) -> Iterator[Change]:
    """`torch.arange(n, dtype=torch.float32)`, in float16."""
    if isinstance(node, ast.Call) and path_of(node.func) == "torch.arange" and dtype_told(node) in FLOAT32:
        yield next(part.value for part in node.keywords if part.arg == "dtype"), "torch.float16"


def squares(code: Code, node: ast.AST) -> Iterator[Change]:
    """`x.float().pow(2)`."""
    return upcast_before(code, node, "pow", "square")


def product(code: Code, node: ast.AST) -> Iterator[Change]:
    """`F.linear(x.float(), weight)`, one operand of which is cast."""
    subject, around = upcast(node), code.parents.get(node)
    if subject is not None and isinstance(around, ast.Call) and last(around.func) in PRODUCTS and node in around.args:
        yield node, code.text(subject)


def unscaling(code: Code, node: ast.AST) -> Iterator[Change]:
    """`scaler.unscale_(optimizer)` before gradients are clipped."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and last(node.value.func) == "unscale_":
        yield node, "pass"


def scaling(code: Code, node: ast.AST) -> Iterator[Change]:
    """`scaler.scale(loss).backward()`."""
    if isinstance(node, ast.Call) and last(node.func) == "scale" and len(node.args) == 1:
        around = code.parents.get(node)
        if isinstance(around, ast.Attribute) and around.attr == "backward":
            yield node, code.text(node.args[0])


def numpy_cast(code: Code, node: ast.AST) -> Iterator[Change]:
    """`x.float().numpy()`."""
    return upcast_before(code, node, "numpy")


KINDS: tuple[Callable[[Code, ast.AST], Iterator[Change]], ...] = (
    *(kept, index_cast, rounding, negation, accuracy, limit, smallest, made_as, made_whole, positions, squares),
    *(product, unscaling, scaling, numpy_cast),
)


def guards(path: Path) -> Iterator[tuple[str, Code, Change]]:
    """The guards of a file: the kind, and what is to be changed where."""
    text = path.read_text(encoding="utf-8")
    if "torch" not in text or text.count("\n") > LONGEST:
        return
    code = Code(text)
    for node in ast.walk(code.tree):
        for kind in KINDS:
            for change in kind(code, node):
                yield kind.__name__, code, change


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", type=Path, help="directories of Python files")
    parser.add_argument("--each", type=int, default=25, help="guards of a kind that are taken away")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--misses", metavar="KIND", help="print the places of this kind that nothing was said about")
    parser.add_argument("--preview", action="store_true", help="opt-in rules and conditional findings, too")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    drawn = random.Random(args.seed)
    files = sorted({path for source in args.sources for path in source.rglob("*.py") if "test" not in path.stem})
    drawn.shuffle(files)
    found: dict[str, list[tuple[Path, int, str]]] = defaultdict(list)
    for path in files:
        try:
            here = list(guards(path))
        except (SyntaxError, UnicodeDecodeError, RecursionError):
            continue
        taken: Counter[str] = Counter()
        for kind, code, change in drawn.sample(here, len(here)):
            taken[kind] += 1
            if taken[kind] <= MOST and len(found[kind]) < args.each * SPREAD:
                found[kind].append((path, change[0].lineno, code.with_(change)))  # type: ignore[attr-defined]
    settings = Settings(preview=args.preview)
    rules = list(settings.enabled(catalogue()))

    def said(path: Path, data: bytes) -> Counter[tuple[str, str]]:
        source = Source.from_bytes(data, str(path))
        return Counter((one.code, one.message) for one in check_source(source, rules, settings).diagnostics)

    print(f"{'guard':12} {'seen':>5} {'of':>5}   ({len(files):,} files)")
    for kind in (each.__name__ for each in KINDS):
        seen = tried = 0
        for path, line, text in drawn.sample(found[kind], min(args.each, len(found[kind]))):
            try:
                ast.parse(text)
            except SyntaxError:  # what was taken away was all that stood there
                continue
            tried += 1
            if said(path, text.encode()) - said(path, path.read_bytes()):
                seen += 1
            elif kind == args.misses:
                print(f"  {path}:{line}")
        print(f"{kind:12} {seen:5} {tried:5}")


if __name__ == "__main__":
    main()
