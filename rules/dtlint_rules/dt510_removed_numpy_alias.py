"""DT510: a dtype by a name that NumPy had for it once, and has no more."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix, Severity
from dtlint.infer.around import parents
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._fixes import respell
from dtlint_rules._kept import kept
from dtlint_rules._names import last_name, said
from dtlint_rules._needs import attributes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dtlint.infer.events import Flow, Reference
    from dtlint.source.place import Place

__all__ = ["RemovedNumpyAlias"]

_SINCE_1_24 = "NumPy has none since 1.24"
_SINCE_2 = "NumPy has none since 2.0"
_BACK_IN_2 = "NumPy 1.24 to 1.26 have none"
_BUILTIN = {
    **dict.fromkeys(("float", "int", "complex", "object", "str"), _SINCE_1_24),
    # NumPy 2.0 has them again, `long` for that of C.
    **dict.fromkeys(("bool", "long"), _BACK_IN_2),
    "unicode": _SINCE_1_24,
}
"""Aliases of what Python has itself. https://numpy.org/doc/stable/release/1.24.0-notes.html#expired-deprecations"""
_RENAMED = {
    "bool": "bool_",
    "bool8": "bool_",
    "int0": "intp",
    "uint0": "uintp",
    "float_": "float64",
    "complex_": "complex128",
    "cfloat": "complex128",
    "singlecomplex": "complex64",
    "longfloat": "longdouble",
    "longcomplex": "clongdouble",
    "clongfloat": "clongdouble",
    "string_": "bytes_",
    "unicode_": "str_",
    "bytes0": "bytes_",
    "str0": "str_",
    "object0": "object_",
    "void0": "void",
}
"""What the dtype is called in every release. https://numpy.org/doc/stable/numpy_2_0_migration_guide.html"""
_PYTHONS = {"unicode": "str", "long": "int"} | {name: name for name in ("float", "int", "complex", "object", "str")}
_WHY = dict.fromkeys(_RENAMED, _SINCE_2) | _BUILTIN
_ASKING = frozenset({"hasattr", "getattr", "version", "__version__", "AttributeError"})
_CAUGHT = frozenset({"AttributeError", "Exception"})
_ALIASES = frozenset(f"numpy.{name}" for name in _WHY)


class RemovedNumpyAlias(Rule):
    """A dtype is named by an alias that NumPy has removed.

    ## What it does
    Reports `np.float`, `np.int`, `np.complex`, `np.object` and `np.str`, which NumPy 1.24 took out; `np.bool` and
    `np.long`, which are missing from 1.24 to 1.26; and `np.float_`, `np.complex_`, `np.bool8`, `np.int0` and their kin,
    which 2.0 took out. Code that asks first, by `hasattr`, by the version or by catching AttributeError, and files that
    set the alias themselves are left alone.

    ## Why it matters
    Each raises AttributeError where it is reached: "module 'numpy' has no attribute 'float'". `np.float` was Python's
    `float`, and so float64: where float32 was meant for torch, the alias hid that it was not.

    ## Example
    ```python
    import numpy as np
    import torch

    means = torch.from_numpy(np.array([0.5, 0.25]).astype(np.float))
    inside = np.zeros(4, dtype=np.bool)
    ```

    ## Use instead
    ```python
    import numpy as np
    import torch

    means = torch.from_numpy(np.array([0.5, 0.25]).astype(float))
    inside = np.zeros(4, dtype=np.bool_)
    ```

    ## Fix safety
    The fix writes what the alias stood for: `float` for `np.float`, `np.bool_` for `np.bool`, `np.float64` for
    `np.float_`. It is safe, for the dtype stays the same, and it is not offered where the file has a `float` of its own.

    ## References
    - [NumPy 1.24: expired deprecations](https://numpy.org/doc/stable/release/1.24.0-notes.html#expired-deprecations)
    - [NumPy 2.0 migration guide](https://numpy.org/doc/stable/numpy_2_0_migration_guide.html)
    """

    code, name, severity = "DT510", "removed-numpy-alias", Severity.ERROR
    fix = Applicability.SAFE
    triggers = attributes(_ALIASES)
    needs = (("numpy",),)
    references = _ALIASES

    def on_reference(self, reference: Reference) -> Iterable[Finding]:
        node, name = reference.node, reference.name.removeprefix("numpy.")
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load) or node.attr != name:
            return ()
        if name in _set_by(reference.flow.tree) or _is_asked_for(node, reference.flow):
            return ()
        python, held = _PYTHONS.get(name), _RENAMED.get(name)
        return (
            Finding(
                node,
                f"`{ast.unparse(node)}` raises AttributeError: {_WHY[name]}",
                help=f"Use `{python}`, or the dtype that is meant: `np.float32`, `np.int64`"
                if python
                else f"Use `np.{held}`",
                severity=Severity.WARNING if _WHY[name] == _BACK_IN_2 else None,
                fix=partial(_pythons, node, python, _takes(reference.flow.tree, python))
                if python is not None
                else partial(respell, node=node, name=f"numpy.{held}", applicability=Applicability.SAFE),
            ),
        )


@kept
def _set_by(tree: ast.Module) -> frozenset[str]:
    """The aliases that a file gives back to NumPy: `np.float = float`, `setattr(np, "int", int)`."""
    stored = {
        part.attr for part in nodes([tree]) if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store)
    }
    handed = {
        part.args[1].value
        for part in nodes([tree])
        if isinstance(part, ast.Call) and last_name(part) == "setattr" and len(part.args) == 3
        if isinstance(part.args[1], ast.Constant)
    }
    return frozenset(_WHY.keys() & (stored | handed))


def _is_asked_for(node: ast.Attribute, flow: Flow) -> bool:
    """Does the code run only where NumPy has the alias, or is the error caught?"""
    if any(not _ASKING.isdisjoint(said(held.test)) for held in flow.conditions):
        return True
    above = parents(flow.tree)
    part: ast.AST = node
    while (parent := above.get(part)) is not None:
        if isinstance(parent, ast.IfExp) and part is not parent.test and not _ASKING.isdisjoint(said(parent.test)):
            return True
        if isinstance(parent, ast.Try) and any(part is tried for tried in parent.body):
            if any(map(_is_caught, parent.handlers)):
                return True
        elif _is_never_run(part, parent, flow):
            return True
        part = parent
    return False


def _is_never_run(part: ast.AST, parent: ast.AST, flow: Flow) -> bool:
    """Is it an annotation that Python does not evaluate?"""
    if isinstance(parent, ast.AnnAssign) and flow.function is not None:
        return part is parent.annotation
    is_argument = isinstance(parent, (ast.arg, ast.AnnAssign)) and part is parent.annotation
    is_result = isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)) and part is parent.returns
    return (is_argument or is_result) and _keeps_annotations(flow.tree)


def _keeps_annotations(tree: ast.Module) -> bool:
    """Does the file say `from __future__ import annotations`?"""
    imported = [part for part in tree.body if isinstance(part, ast.ImportFrom) and part.module == "__future__"]
    return any(alias.name == "annotations" for part in imported for alias in part.names)


def _is_caught(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or not _CAUGHT.isdisjoint(said(handler.type))


def _pythons(node: ast.Attribute, python: str, taken: bool, place: Place) -> Fix | None:
    """The fix that writes Python's own type, where the file does not call something else by its name."""
    return None if taken else Fix(f"Use `{python}`", (place.replace(node, python),), Applicability.SAFE)


@kept
def _takes(tree: ast.Module, name: str) -> bool:
    """Does a file call something by that name itself?"""
    return any(
        (isinstance(part, ast.Name) and part.id == name and not isinstance(part.ctx, ast.Load))
        or (isinstance(part, ast.arg) and part.arg == name)
        or (isinstance(part, ast.alias) and name in (part.asname, part.name))
        or (isinstance(part, (ast.FunctionDef, ast.ClassDef)) and part.name == name)
        for part in nodes([tree])
    )
