"""DT510: a dtype by a name, or from a table, that NumPy had once, and has no more."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix, Severity
from dtlint.infer.names import path_of
from dtlint.rule import Finding, Rule
from dtlint_rules._fixes import respell
from dtlint_rules._kept import kept
from dtlint_rules._names import last_name
from dtlint_rules._needs import attributes
from dtlint_rules._releases import is_for_some_releases, is_tried

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dtlint.infer.facts import ModuleFacts
    from dtlint.source.place import Place

__all__ = ["RemovedNumpyAlias"]

_SINCE_1_24 = "from NumPy 1.24 on"
_SINCE_2 = "from NumPy 2.0 on"
_BACK_IN_2 = "in NumPy 1.24 to 1.26"
_BUILTIN = {
    **dict.fromkeys(("float", "int", "complex", "object", "str"), _SINCE_1_24),
    # NumPy 2.0 has them again, as dtypes: `bool_`, and the `long` of C.
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
_TABLES = {
    "sctypes": "Ask `np.issubdtype(x.dtype, np.integer)`, or `np.floating`",
    "issubsctype": "Use `np.issubdtype`",
    "issubclass_": "Use `issubclass`",
    "issctype": "Use `issubclass(kind, np.generic)`",
    "obj2sctype": "Use `np.dtype(obj).type`",
    "sctype2char": "Use `np.dtype(kind).char`",
    "maximum_sctype": "Name the dtype that is meant",
    "find_common_type": "Use `np.result_type`, or `np.promote_types`",
    "asfarray": "Use `np.asarray` with a floating dtype",
}
"""Tables of dtypes, and what asked or chose them, with what there is in their place. They raise as the renamed aliases do:
https://numpy.org/doc/stable/numpy_2_0_migration_guide.html#main-namespace"""
_PYTHONS = {"unicode": "str"} | {name: name for name in ("float", "int", "complex", "object", "str")}
_WHEN = dict.fromkeys((*_RENAMED, *_TABLES), _SINCE_2) | _BUILTIN
_SEVERITY = {_SINCE_1_24: Severity.ERROR, _SINCE_2: Severity.WARNING, _BACK_IN_2: Severity.INFO}
_MEANT = "`np.float32`, `np.int64`"
_ALIASES = tuple(f"numpy.{name}" for name in _WHEN)
_NEW = frozenset(
    {
        *("acos", "acosh", "asin", "asinh", "astype", "atan", "atan2", "atanh", "bitwise_count", "bitwise_invert"),
        *("bitwise_left_shift", "bitwise_right_shift", "concat", "cumulative_prod", "cumulative_sum", "isdtype"),
        *("matrix_transpose", "matvec", "permute_dims", "pow", "strings", "trapezoid", "ulong", "unique_all"),
        *("unique_counts", "unique_inverse", "unique_values", "unstack", "vecdot", "vecmat"),
        "exceptions",  # since 1.25 already; who has it thinks of new releases
    }
)
"""What NumPy has since 2.0 only. https://numpy.org/doc/stable/release/2.0.0-notes.html"""


class RemovedNumpyAlias(Rule):
    """A dtype is named by an alias, or looked up in a table, that NumPy has removed.

    ## What it does
    Reports `np.float`, `np.int`, `np.complex`, `np.object`, `np.str` and `np.unicode`, which NumPy 1.24 took out; as a
    warning `np.float_`, `np.complex_`, `np.bool8`, `np.int0` and their kin, and `np.sctypes`, `np.find_common_type`,
    `np.asfarray` and others that listed or chose dtypes, which 2.0 took out; and as information
    `np.bool` and `np.long`, which are missing from 1.24 to 1.26 alone, in files that use nothing else of NumPy 2, such
    as `np.astype`. Code that asks first, by `hasattr` or by the version, code that catches or expects AttributeError,
    and files that set the alias themselves are left alone.

    ## Why it matters
    In those releases each raises AttributeError where it is reached: "module 'numpy' has no attribute 'float'".
    `np.float` was Python's `float`, and so float64: where float32 was meant for torch, the alias hid that it was not.

    ## Example
    ```python
    import numpy as np
    import torch

    means = torch.from_numpy(np.array([0.5, 0.25]).astype(np.float))
    scales = np.ones(4, dtype=np.float_)
    ```

    ## Use instead
    ```python
    import numpy as np
    import torch

    means = torch.from_numpy(np.array([0.5, 0.25]).astype(float))
    scales = np.ones(4, dtype=np.float64)
    ```

    ## Fix safety
    The fix writes what the alias stood for: `float` for `np.float`, `np.float64` for `np.float_`. It is safe, for they
    are the same object, and it is not offered where the file has a `float` of its own. That of `np.bool` is unsafe: as
    a dtype `np.bool_` is the same, but before 1.24 `np.bool` was Python's `bool`, which `isinstance` tells apart.
    `np.long` has no fix: it was Python's `int`, and is the `long` of C now. Nor have tables and what chose dtypes.

    ## References
    - [NumPy 1.24: expired deprecations](https://numpy.org/doc/stable/release/1.24.0-notes.html#expired-deprecations)
    - [NumPy 2.0 migration guide](https://numpy.org/doc/stable/numpy_2_0_migration_guide.html)
    """

    code, name, severity = "DT510", "removed-numpy-alias", Severity.ERROR
    fix = Applicability.SAFE
    triggers = attributes(_ALIASES)
    needs = (("numpy",),)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for node, path in facts.names(*_ALIASES):
            name = path.removeprefix("numpy.")
            if not isinstance(node, ast.Attribute) or node.attr != name or not isinstance(node.ctx, ast.Load):
                continue  # an import of it fails on the spot, or is caught
            when, held, python = _WHEN[name], _RENAMED.get(name), _PYTHONS.get(name)
            if is_for_some_releases(facts, node) or is_tried(facts, node) or name in _set_by(facts.tree):
                continue
            if when == _BACK_IN_2 and _is_of_numpy_2(facts.tree):
                continue
            fix: Callable[[Place], Fix | None] | None = None
            if python is not None and not _takes(facts.tree, python):
                fix = partial(_pythons, node, python)
            elif held is not None:
                safe = Applicability.UNSAFE if when == _BACK_IN_2 else Applicability.SAFE
                fix = partial(respell, node=node, name=f"numpy.{held}", applicability=safe)
            yield Finding(
                node,
                f"`{ast.unparse(node)}` raises AttributeError {when}",
                help=_TABLES.get(name)
                or (f"Use `np.{held}`" if held else f"Use `{python or 'int'}`, or the dtype that is meant: {_MEANT}"),
                severity=_SEVERITY[when],
                fix=fix,
            )


@kept
def _is_of_numpy_2(tree: ast.Module) -> bool:
    """Does a file use what only NumPy 2 has: `np.astype`, `from numpy.exceptions import AxisError`?"""
    for part in ast.walk(tree):
        if isinstance(part, ast.Attribute) and part.attr in _NEW and path_of(part.value) in ("np", "numpy"):
            return True
        if isinstance(part, ast.ImportFrom):
            imported = {f"{part.module}.{alias.name}" for alias in part.names}
        else:
            imported = {alias.name for alias in part.names} if isinstance(part, ast.Import) else set()
        if any(name.startswith("numpy.") and name.split(".")[1] in _NEW for name in imported):
            return True
    return False


@kept
def _set_by(tree: ast.Module) -> frozenset[str]:
    """The aliases that a file gives back to NumPy: `np.float = float`, `setattr(np, "int", int)`."""
    found: set[object] = set()
    for part in ast.walk(tree):
        if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
            found.add(part.attr)
        elif isinstance(part, ast.Call) and last_name(part) == "setattr":
            found.update(one.value for one in part.args if isinstance(one, ast.Constant))
    return frozenset(name for name in _WHEN if name in found)


def _pythons(node: ast.Attribute, python: str, place: Place) -> Fix:
    return Fix(f"Use `{python}`", (place.replace(node, python),), Applicability.SAFE)


@kept
def _takes(tree: ast.Module, name: str) -> bool:
    """Does a file call something by that name itself?"""
    return any(
        (isinstance(part, ast.Name) and part.id == name and not isinstance(part.ctx, ast.Load))
        or (isinstance(part, ast.arg) and part.arg == name)
        or (isinstance(part, ast.alias) and name in (part.asname, part.name))
        or (isinstance(part, (ast.FunctionDef, ast.ClassDef)) and part.name == name)
        for part in ast.walk(tree)
    )
