"""Tells when the program has imported a module, without importing it: the tracer waits for torch in this way.

A script may set OMP_NUM_THREADS or CUDA_VISIBLE_DEVICES before `import torch`; an import of our own would come too early.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

__all__ = ["when_imported"]


@contextmanager
def when_imported(name: str, ready: Callable[[], None]) -> Iterator[None]:
    """Call `ready` once the module is imported: now if it is there already, else at the end of its first import."""
    if name in sys.modules:
        ready()
        yield
        return
    finder = _Finder(name, ready)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        finder.leave()


class _Finder:
    """Finds nothing itself: it asks the finders behind it, and has the loader of the one module tell of its end."""

    def __init__(self, name: str, ready: Callable[[], None]) -> None:
        self.name, self.ready = name, ready

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self.name:
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(name, path, target) if finder is not self and find is not None else None
            if spec is not None:
                self._listen(spec)
                return spec
        return None

    def leave(self) -> None:
        """Ask and tell nothing any more."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def _listen(self, spec: ModuleSpec) -> None:
        """Shadow the loader's method on this one object; the spec may also be thrown away by one who only looked."""
        loader = spec.loader
        execute = getattr(loader, "exec_module", None)
        if execute is None:  # a directory of that name, without code
            return

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module  # type: ignore[union-attr]
            execute(module)
            if self in sys.meta_path:  # not after the end, nor twice
                self.leave()
                self.ready()

        loader.exec_module = exec_module  # type: ignore[union-attr, method-assign]
