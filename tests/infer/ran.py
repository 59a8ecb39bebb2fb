"""Holds claims against a run: every expression of a program is seen once it is computed."""

from __future__ import annotations

import ast
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any

from dtlint.infer.claims.reading import claims

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["contradicted"]

_SEEN = (ast.Call, ast.BinOp, ast.Attribute, ast.Subscript, ast.Name, ast.IfExp)


def contradicted(path: Path) -> list[str]:
    """The claims for a program that running it shows to be wrong.

    The program runs in another process: some patch torch, and other tests would see it.

    Raises:
        ImportError: torch is not there.
    """
    return _runner().submit(_contradicted, path).result()


@cache
def _runner() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))


def _contradicted(path: Path) -> list[str]:
    import torch

    seen: dict[tuple[int, int, int, int], set[str]] = {}

    def see(place: tuple[int, int, int, int], value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            seen.setdefault(place, set()).add(str(value.dtype).removeprefix("torch."))
        return value

    tree = ast.fix_missing_locations(_Seeing().visit(ast.parse(path.read_text())))
    usual, patched = torch.get_default_dtype(), _attributes()
    try:
        exec(compile(tree, str(path), "exec"), {"__name__": "__main__", "_see": see})
    finally:
        torch.set_default_dtype(usual)
        _put_back(patched)
        torch.set_autocast_enabled("cpu", False)
        torch.nn.modules.module._global_forward_hooks.clear()
    found = []
    for claim in claims(path, [path.parent])[path]:
        span = claim.span
        ran = seen.get((span.line, span.column, span.end_line, span.end_column), set())
        if claim.dtypes is not None and ran - claim.dtypes:
            found.append(f"{span}: {sorted(ran)} ran, claimed was {sorted(claim.dtypes)}")
    assert seen
    return found


def _attributes() -> list[tuple[Any, dict[str, Any]]]:
    """What torch's classes and modules hold: programs that patch them must not do so for other tests."""
    import torch

    layers = [one for one in vars(torch.nn).values() if isinstance(one, type)]
    owners = [
        torch,
        torch.nn.functional,
        torch.Tensor,
        torch.optim.Optimizer,
        torch.optim.SGD,
        torch.optim.Adam,
        *layers,
    ]
    return [(owner, dict(vars(owner))) for owner in owners]


def _put_back(held: list[tuple[Any, dict[str, Any]]]) -> None:
    from torch.nn.modules import module

    for name, value in vars(module).items():
        if name.startswith("_global_") and name.endswith("_hooks"):
            value.clear()
    for owner, before in held:
        for name, value in list(vars(owner).items()):
            if name not in before:
                delattr(owner, name)
            elif value is not before[name]:
                setattr(owner, name, before[name])


class _Seeing(ast.NodeTransformer):
    """Puts `_see(place, ...)` around what is computed, but for what is called or has its attribute taken."""

    def visit(self, node: ast.AST) -> Any:
        seen = isinstance(node, _SEEN) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        made = super().visit(node)
        if not seen:
            return made
        place = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
        return ast.copy_location(ast.Call(ast.Name("_see", ast.Load()), [ast.Constant(place), made], []), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.body = [self.visit(statement) for statement in node.body]
        return node
