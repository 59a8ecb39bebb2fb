"""The packages that a module imports, wherever the import stands."""

from __future__ import annotations

import ast

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


def is_a_test(tree: ast.Module) -> bool:
    """Does a module test others? It knows the dtypes that it gives them, and no caller brings another."""
    return not imports(tree).isdisjoint(("pytest", "unittest"))


def imports_torch(tree: ast.Module) -> bool:
    """Does a module import torch, or anything of it?"""
    return "torch" in imports(tree)
