"""The packages that a module imports, wherever the import stands."""

from __future__ import annotations

import ast
import re

from dtlint.infer.names import path_of
from dtlint_rules._kept import kept
from dtlint_rules._statements import statements

__all__ = ["imports", "imports_torch", "is_a_test", "writes_kernels"]

_OF_KERNELS = frozenset(
    {"triton", "cutlass", "cupy", "tilelang", "tvm_ffi", "pycuda", "cuda", "flash_attn", "deep_gemm"}
)
"""Packages in which kernels for GPUs are written, or that hold such kernels."""


@kept
def imports(tree: ast.Module) -> frozenset[str]:
    """The first parts of the names of what a module imports from: `torch` of `from torch.nn import Linear`."""
    found: set[str] = set()
    for node in statements(tree):
        if type(node) is ast.Import:
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif type(node) is ast.ImportFrom and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return frozenset(found)


def writes_kernels(tree: ast.Module) -> bool:
    """Does a module write kernels for GPUs, or call a package of them? What it is given fits them, or they are not called."""
    return not imports(tree).isdisjoint(_OF_KERNELS)


@kept
def is_a_test(tree: ast.Module) -> bool:
    """Does a module test others? It knows the dtypes that it gives them, and no caller brings another.

    Who has a base class of his own for tests imports neither of the packages that run them.
    """
    return not imports(tree).isdisjoint(("pytest", "unittest")) or any(
        isinstance(node, ast.ClassDef) and _holds_tests(node) for node in tree.body
    )


_OF_TESTS = re.compile(r"^Test|Tests?(?:Case)?$|Tester$")
"""How classes of tests are called, and what they inherit from: `class TestResize(BaseTester)`."""


def _holds_tests(node: ast.ClassDef) -> bool:
    """Has a class methods that a runner of tests collects?"""
    called = [node.name, *((path_of(base) or "").rpartition(".")[2] for base in node.bases)]
    return any(map(_OF_TESTS.search, called)) and any(
        isinstance(part, ast.FunctionDef) and part.name.startswith("test_") for part in node.body
    )


def imports_torch(tree: ast.Module) -> bool:
    """Does a module import torch, or anything of it?"""
    return "torch" in imports(tree)
