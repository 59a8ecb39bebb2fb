"""DT506: whole numbers of NumPy whose dtype depends on the platform reach torch or a file."""

from __future__ import annotations

import ast
import sys
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix
from dtlint.infer.around import parents
from dtlint.infer.names import path_of
from dtlint.rule import Finding, Rule
from dtlint_rules._assignments import bound_once
from dtlint_rules._fixes import pass_dtype
from dtlint_rules._functions import parameters
from dtlint_rules._names import last_name, said
from dtlint_rules._needs import attributes
from dtlint_rules._parts import keyword, receiver

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call, End
    from dtlint.source.place import Place

__all__ = ["PlatformInt"]

_INTO_TORCH = frozenset({"torch.from_numpy", "torch.as_tensor", "torch.tensor"})
_KEEPING = frozenset({"copy", "reshape", "round", "flatten", "ravel", "repeat", "squeeze", "transpose", "clip"})
"""Methods of an array whose result has its dtype."""
_WHOLE = frozenset({"numpy.arange", "numpy.random.permutation", "numpy.random.randint"})
"""Functions that give platform integers for whole numbers. Sorting and searching give int64 on 64-bit platforms."""
_SUMS = frozenset({"numpy.sum", "numpy.cumsum", "numpy.prod", "numpy.cumprod"})
_COUNTS = ("len", "count", "size", "num", "token", "length")
"""Parts of names of what is counted, and so whole."""
_CASTS = frozenset({"long", "int", "float", "double", "half", "to", "type", "short", "byte", "bool", "type_as"})
_INT32, _INT64 = 2**31, 2**63
"""The greatest bounds, not drawn themselves, that NumPy takes for int32 and int64."""
_LARGEST = {"uint32": 2**32 - 1, "int64": 2**63 - 1}


class PlatformInt(Rule):
    """An integer array whose dtype depends on the platform goes from NumPy to torch or into a file.

    ## What it does
    Reports `torch.from_numpy` and its kin on what `np.arange`, `np.random.permutation` or `np.random.randint` gives for
    whole numbers without a dtype, and sums of counts without one that size a memory map. Also what is drawn without a
    dtype and beyond int32, `np.random.randint(0, 2**32 - 1)` for a seed, `np.random.randint(1e10)` for the name of a
    file, by a RandomState too.

    Conditional, and so reported with `--preview` only: counts that only their names tell of.

    ## Why it matters
    NumPy before 2.0 takes C's `long`, which is 32 bits on Windows and 64 elsewhere, and what `np.random.randint` and
    `np.random.permutation` draw is a `long` in newer versions, too. The tensor is int32 there: it raises where torch
    wants int64 (`one_hot`, `scatter_`, the target of `cross_entropy`), and a sum beyond 2,147,483,647 wraps around to a
    negative number. A bound of more than 2**31 raises there: `ValueError: high is out of bounds for int32`. With a dtype
    the program is the same everywhere.

    ## Example
    ```python
    import numpy as np
    import torch

    steps = 1000
    timesteps = torch.from_numpy(np.arange(0, steps)[::-1].copy())
    ```

    ## Use instead
    ```python
    import numpy as np
    import torch

    steps = 1000
    timesteps = torch.from_numpy(np.arange(0, steps, dtype=np.int64)[::-1].copy())
    ```

    ## Fix safety
    The fix gives `dtype=np.int64`, which is what the call gives on Linux and macOS already.

    ## References
    - [numpy.random.randint](https://numpy.org/doc/stable/reference/random/generated/numpy.random.randint.html)
    - [NumPy 2.0: the default integer on Windows](https://numpy.org/doc/stable/release/2.0.0-notes.html#windows-default-integer)
    """

    code, name = "DT506", "platform-int"
    fix = Applicability.SAFE
    triggers = attributes((*_INTO_TORCH, "memmap", "randint"))
    needs = (("numpy",), attributes((*_WHOLE, *_SUMS)))
    calls = frozenset({*(name.rpartition(".")[2] for name in _INTO_TORCH | _WHOLE | _SUMS), "memmap", "RandomState"})

    def __init__(self) -> None:
        self.whole: dict[ast.expr, bool] = {}
        """Calls that give platform integers, and whether that is known by names alone."""
        self.states: set[ast.expr] = set()
        """Calls that make a RandomState."""
        self.sums: set[ast.expr] = set()
        self.into: list[tuple[ast.Call, ast.AST]] = []
        """Calls that make tensors of arrays without a dtype, and the functions that they stand in."""
        self.maps: list[tuple[ast.Call, ast.AST]] = []

    def on_call(self, call: Call) -> Iterable[Finding]:
        node, target = call.node, call.target
        if target == "numpy.random.RandomState":
            self.states.add(node)
        if last_name(node) == "randint" and (target == "numpy.random.randint" or self._is_of_a_state(call)):
            found = _drawn(call)
            if found is not None:
                return (found,)
        if target in _WHOLE:
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            example = target == "numpy.arange" and all(isinstance(number, ast.Constant) for number in given)
            if (
                "dtype" not in call.keywords
                and call.complete
                and not example
                and node.args
                and all(map(_is_whole, node.args))
            ):
                self.whole[node] = not all(_is_whole(given, by_name=False) for given in node.args)
        elif target in _SUMS:
            if "dtype" not in call.keywords and len(node.args) == 1 and _is_count(node.args[0]):
                self.sums.add(node)
        elif target in _INTO_TORCH:
            if "dtype" not in call.keywords and node.args:
                self.into.append((node, call.flow.scope))
        elif target == "numpy.memmap":
            self.maps.append((node, call.flow.scope))
        return ()

    def _is_of_a_state(self, call: Call) -> bool:
        """Is it `randint` of a RandomState which is made at once or by the name?"""
        held = receiver(call.node)
        if isinstance(held, ast.Name):
            if any(parameter.arg == held.id for parameter in parameters(call.flow.scope)):
                return False
            held = bound_once(held.id, call.flow.scope) or bound_once(held.id, call.flow.tree)
        return held in self.states

    def on_end(self, end: End) -> Iterator[Finding]:
        if end.flow.function is not None or not (self.whole or self.sums) or not (self.into or self.maps):
            return
        known = parents(end.flow.tree)
        for node, scope in self.into:
            parent = known.get(node)
            if isinstance(parent, ast.Attribute) and parent.attr in _CASTS and _is_cast(known.get(parent)):
                continue
            source = _source(node.args[0], scope)
            if source in self.whole:
                notes = ((node, "made a tensor here"),) if source.lineno != node.lineno else ()
                yield _found(source, "The tensor is", notes, by_name=self.whole[source])
        for node, scope in self.maps:
            shape = keyword(node, "shape")
            for name in ast.walk(shape) if shape is not None else ():
                source = _source(name, scope) if isinstance(name, ast.Name) else None
                if source in self.sums:
                    yield _found(source, "The sum is", ((node, "sizes the file here"),), by_name=True)


def _drawn(call: Call) -> Finding | None:
    """`np.random.randint(0, 2**32 - 1)`, by whose bound an int32 cannot hold all that is drawn."""
    node = call.argument_node(1, "high")
    value = call.constant(1, "high")
    if value is None and (node is None or (isinstance(node, ast.Constant) and node.value is None)):
        node, value = call.argument_node(0, "low"), call.constant(0, "low")
    bound = _number(node, value)
    if bound is None or not _INT32 < bound <= _INT64:
        return None
    if "dtype" in call.keywords or len(call.node.args) > 3 or not call.complete:
        return None
    return Finding(
        call.node,
        f"This draws int32 on Windows, and raises ValueError for the bound {bound:,}",
        help="Pass `dtype=np.int64`",
        fix=partial(pass_dtype, name="numpy.int64", message="Give `dtype=np.int64`", applicability=Applicability.SAFE),
    )


def _number(node: ast.expr | None, value: object) -> int | None:
    """The whole number that is written, be it as a float, `1e10`, as one made whole, `int(1e10)`, or as the largest of a
    type."""
    if isinstance(node, ast.Call) and path_of(node.func) == "int" and len(node.args) == 1:
        inner = node.args[0]
        return _number(inner, inner.value if isinstance(inner, ast.Constant) else None)
    if node is not None and path_of(node) == "sys.maxsize":
        return sys.maxsize
    if isinstance(node, ast.Attribute) and node.attr == "max" and isinstance(node.value, ast.Call):
        asked = node.value
        if path_of(asked.func) in ("np.iinfo", "numpy.iinfo") and len(asked.args) == 1:
            return _LARGEST.get(last_name(asked.args[0]))
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _found(node: ast.expr | None, what: str, notes: tuple[tuple[ast.expr, str], ...], *, by_name: bool) -> Finding:
    assert node is not None
    drawn = last_name(node) in ("randint", "permutation")  # newer versions draw a `long`, too
    return Finding(
        node,
        f"{what} int32 on Windows{'' if drawn else ' with NumPy before 2.0'}, and int64 elsewhere",
        help="Pass `dtype=np.int64`",
        notes=notes,
        conditional=by_name,
        fix=partial(_fix, node),
    )


def _fix(node: ast.expr, place: Place) -> Fix | None:
    if not isinstance(node, ast.Call) or last_name(node) == "permutation":
        return None
    return pass_dtype(place, "numpy.int64", "Give `dtype=np.int64`", Applicability.SAFE)


def _is_cast(node: ast.AST | None) -> bool:
    """Does the method that is called behind give a dtype? `.to(device)` does not."""
    if not isinstance(node, ast.Call):
        return True
    if last_name(node) != "to":
        return True
    return any("device" not in word for argument in (*node.args, *node.keywords) for word in list(said(argument))[-1:])


def _is_whole(node: ast.expr, *, by_name: bool = True) -> bool:
    """Is it a whole number: written out, a length, or, if names count, what is called like a count?"""
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    if isinstance(node, ast.UnaryOp):
        return _is_whole(node.operand, by_name=by_name)
    if isinstance(node, ast.BinOp):
        exact = isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod))
        return exact and _is_whole(node.left, by_name=by_name) and _is_whole(node.right, by_name=by_name)
    if isinstance(node, ast.Call):
        return last_name(node.func) in ("len", "int")
    if isinstance(node, ast.Subscript):
        return last_name(node.value) == "shape"
    name = last_name(node).lower() if by_name else ""
    return name in ("n", "t") or any(part in name for part in (*_COUNTS, "steps", "epochs", "batch", "width", "height"))


def _is_count(node: ast.expr) -> bool:
    text = " ".join(said(node)).lower()
    return any(part in text for part in ("len", "num_tokens", "n_tokens", "counts")) and "loss" not in text


def _source(node: ast.AST, scope: ast.AST) -> ast.expr | None:
    """The call that an array comes from, through views, copies and one name."""
    for _ in range(12):
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPING:
            if path_of(node.func.value) in ("np", "numpy"):
                return node
            node = node.func.value
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv)):
            other = node.right if isinstance(node.left, (ast.Call, ast.Subscript, ast.Name)) else node.left
            if not _is_whole(other) and "ratio" not in last_name(other):
                return None
            node = node.left if other is node.right else node.right
        elif isinstance(node, ast.Name):
            bound = bound_once(node.id, scope)
            if bound is None:
                return None
            node = bound
        else:
            return node if isinstance(node, ast.expr) else None
    return None
