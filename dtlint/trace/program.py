"""The program that is traced: found as `python SCRIPT` or `python -m MODULE` finds it, and given a `__main__` of its own."""

from __future__ import annotations

import builtins
import importlib.machinery
import importlib.util
import os
import sys
import types
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dtlint.trace.children import LAUNCHERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Located", "Program", "ProgramError", "as_main", "compiled", "locate"]

SAFE_PATH = bool(getattr(sys.flags, "safe_path", False))
"""`python -P`: Python does not put the program's directory first, so nor does the tracer."""


class ProgramError(LookupError):
    """There is no such script or module; the message is one line."""


@dataclass(frozen=True, slots=True)
class Program:
    """What to run: a script's path, or with `module` a module's name, and its arguments."""

    name: str
    args: tuple[str, ...] = ()
    module: bool = False


@dataclass(frozen=True, slots=True)
class Located:
    """Where a program stands, and what it finds in `sys.argv[0]` and `sys.path[0]`."""

    file: str
    argv0: str
    path0: str
    spec: importlib.machinery.ModuleSpec | None


def compiled(located: Located) -> types.CodeType:
    """Its code: a module's from its loader, which may have it cached."""
    if located.spec is not None and isinstance(located.spec.loader, importlib.machinery.SourceFileLoader):
        code = located.spec.loader.get_code(located.spec.name)
        if code is not None:
            return code
    return compile(Path(located.file).read_bytes(), located.file, "exec", dont_inherit=True)


def locate(program: Program) -> Located:
    """Find it. For a module, its package is imported and `sys.path[0]` set, as Python does.

    Raises:
        ProgramError: there is no such program.
    """
    if program.module:
        return _locate_module(program.name)
    path = Path(program.name)
    if path.is_dir():
        path = path / "__main__.py"
    if not path.is_file():
        if path.name in LAUNCHERS:
            raise ProgramError(f"{path.name} starts processes of its own; to trace these: {LAUNCHERS[path.name]}")
        raise ProgramError(f"there is no script {program.name!r}; to run a module use: dtlint trace -m MODULE")
    # Python gives `__file__` of a script as an absolute path, and puts the directory it really lies in first
    return Located(os.path.abspath(path), program.name, str(path.resolve().parent), None)


def _locate_module(name: str) -> Located:
    here = os.getcwd()
    if not SAFE_PATH:
        sys.path[0] = here  # where the module, or its package, is looked for first
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except Exception as error:  # a package runs its __init__ to be found
        raise ProgramError(f"the module {name!r} cannot be found: {type(error).__name__}: {error}") from error
    if spec is None or spec.origin is None or not spec.has_location:
        raise ProgramError(f"there is no module {name!r} that can be run")
    return Located(spec.origin, spec.origin, here, spec)


@contextmanager
def as_main(located: Located, argv: Sequence[str]) -> Iterator[types.ModuleType]:
    """A `__main__` module, argv and path as the program would find them. They stay: threads may outlive the program."""
    main = types.ModuleType("__main__")
    spec = located.spec
    loader = spec.loader if spec is not None else importlib.machinery.SourceFileLoader("__main__", located.file)
    main.__dict__.update(
        __file__=located.file,
        __builtins__=builtins,
        __cached__=None,
        __loader__=loader,
        __spec__=spec,
        __package__=spec.parent if spec is not None else None,
    )
    if "__annotations__" in vars(sys.modules["__main__"]):  # Python gives it to a script, before 3.14
        main.__annotations__ = {}
    sys.modules["__main__"] = main
    if "__mp_main__" in sys.modules:  # the same module under the name that it has in spawned children
        sys.modules["__mp_main__"] = main
    sys.argv[:] = argv
    if not SAFE_PATH:
        sys.path[0] = located.path0
    yield main
