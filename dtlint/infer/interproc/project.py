"""Modules: the files that imports lead to, each read once, when something in it is first asked for.

Only code is followed that the project or an installed package shows as source. torch, numpy and the standard library
are known by name, not by source.
"""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dtlint.infer.interproc.parsing import parsed
from dtlint.infer.interproc.search_path import SearchPath, search_path
from dtlint.infer.models.registry import PLAIN_PARTS
from dtlint.source.definitions import classes, functions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from dtlint.infer.domain.values import Value
    from dtlint.infer.interproc.disk import Disk

__all__ = ["ModuleInfo", "Project"]

_BY_NAME = frozenset({"torch", "numpy", "scipy", "pandas", "PIL", "matplotlib", "tqdm", "wandb", "einops"})
"""Packages whose results are known from tables, or are no tensors: their source is not followed."""

_STAR = re.compile(r"^[ \t]*from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]+\*", re.MULTILINE)
_ALL = re.compile(r"^__all__\b[^=]*=\s*[\[(]([^\])]*)", re.MULTILINE)
_IMPORTED = re.compile(r"^from\s+[\w.]+\s+import\s+(?:\(([^)]*)\)|([^\n(*]+))", re.MULTILINE)
_BOUND = re.compile(r"^(?:class|(?:async )?def)\s+(\w+)|^(\w+)\s*(?::[^=\n]+)?=[^=]", re.MULTILINE)

_CALL_AT_TOP = re.compile(r"^[A-Za-z_]\w*\(", re.MULTILINE)

_REGISTERED = re.compile(
    r"\n@[\w.]*register[\w.]*(?:\([^\n]*\))?[ \t]*\n(?:@[^\n]*\n)*(?:class|(?:async )?def)\s+(\w+)", re.MULTILINE
)
"""Functions that a registry takes in, which puts them into `__all__` too, as timm's does."""

_INSTALLED = {"site-packages", "dist-packages"}
_LARGEST = 4_000_000
"""Bytes. A larger file is generated, and not followed."""


@dataclass(eq=False, slots=True)
class ModuleInfo:
    """One module: its syntax, and the names it binds.

    Attributes:
        name: its dotted name; `__main__` for the file that is given.
        package: the package that relative imports start from.
        names: every value that the module binds to a name, joined.
        stars: modules of which it imports everything.
        run: has its body been run?
        rests_on: the modules in which its body has asked for something.
        files: the paths of files that it names, and that were asked for, whether they are there or not.
    """

    name: str
    path: Path | None
    tree: ast.Module
    package: str
    names: dict[str, Value] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    run: bool = False
    rests_on: set[ModuleInfo] = field(default_factory=set)
    files: set[Path] = field(default_factory=set)


class Project:
    """Finds and parses the modules that a program imports.

    Args:
        roots: the folders in which modules are looked for; the first holds the program.
        beside: further folders of the program's own project, which come after that.
        runs_imports: are the program's own modules run where an import names them, for what they do to others? Else only
            those that speak of setting the default dtype, and the rest when something in them is asked for.
    """

    def __init__(
        self,
        roots: Sequence[Path],
        main: ModuleInfo,
        disk: Disk,
        *,
        runs_imports: bool = True,
        beside: Sequence[Path] = (),
    ) -> None:
        added = SearchPath() if main.path is None else search_path(main.tree, main.path)
        self.roots = [*added.before, *roots[:1], *beside, *roots[1:], *added.behind]
        self.own = [*added.before, *roots[:1], *beside, *added.behind]
        """The folders among them that hold the program, and not what is installed."""
        self.main = main
        self.disk = disk
        self.bytes_read = 0
        """Of the modules that were parsed."""
        self.runs_imports = runs_imports
        self.runs_until: int | None = None
        """The bytes behind which modules run when something in them is asked for, and not where an import names them."""
        self.starved = False
        """Did memory run out over a file, so that it was not followed? Another time it may be."""
        self.modules: dict[str, ModuleInfo | None] = {}
        self._places: dict[str, Path | None] = {}
        self._brought: dict[str, frozenset[str]] = {}
        self._listed: dict[str, tuple[frozenset[str], tuple[str, ...]]] = {}
        self._installed: dict[str, bool] = {}
        self._setting: dict[str, bool] = {}
        self._calling: dict[str, bool] = {}

    def file_beside(self, module: ModuleInfo, name: str) -> bytes | None:
        """What a file holds that a module names, in its folder or in one above it up to a root; None where there is none."""
        if module.path is None:
            return None
        folders = module.path.absolute().parents
        top = {folder.absolute() for folder in self.roots}
        for folder in folders:
            module.files.add(folder / name)
            try:
                return self.disk.read(folder / name)
            except OSError:
                if folder in top or not top.intersection(folders):
                    return None
        return None

    def module(self, name: str) -> ModuleInfo | None:
        """The module of that name, parsed; None when it is not followed, or cannot be."""
        if name in self.modules:
            return self.modules[name]
        path = self.locate(name)
        info = None if path is None else self._parsed(name, path)
        self.modules[name] = info
        return info

    def release(self, kept: ast.Module) -> None:
        """Let go of the syntax of all modules but one, which leads back to itself by what was found in it: the search for
        such garbage would go through all of it, for as long as the files are read.

        Nothing can be asked about them any more.
        """
        for info in filter(None, self.modules.values()):
            if info.tree is not kept:
                _empty_body(info.tree.body)
        self.modules.clear()

    def brings(self, module: str, name: str) -> bool:
        """Does `from module import *` bring the name? Told from the text of the module, unparsed, and of what it
        imports whole itself."""
        brought = self._brought.get(module)
        if brought is None:
            brought = self._brought[module] = self._all_star_names(module)
        return name in brought

    def is_own(self, module: str) -> bool:
        """Is it a module of the program, and of no installed package? Those are few, and run for what they do, too."""
        path = self.locate(module)
        return (
            path is not None and any(folder in path.parents for folder in self.own) and not _INSTALLED & set(path.parts)
        )

    def runs_on_import(self, module: str) -> bool:
        """Is a module run where an import names it, before something in it is asked for?"""
        at_once = self.runs_imports and (self.runs_until is None or self.bytes_read < self.runs_until)
        return self.is_own(module) and (at_once or self._sets_default(module))

    def _sets_default(self, module: str) -> bool:
        """Does a module speak of setting the default dtype? Told from its text, unparsed."""
        known = self._setting.get(module)
        if known is None:
            path = self.locate(module)
            try:
                known = path is not None and self.disk.holds(path, b"set_default_")
            except OSError:
                known = False
            self._setting[module] = known
        return known

    def calls_at_top(self, module: str) -> bool:
        """Does the body of a module call something for what it does, as `register(...)`? Told from its text, unparsed."""
        known = self._calling.get(module)
        if known is None:
            path = self.locate(module)
            try:
                known = path is not None and _CALL_AT_TOP.search(_text(self.disk.read(path))) is not None
            except OSError:
                known = False
            self._calling[module] = known
        return known

    def _all_star_names(self, module: str) -> frozenset[str]:
        """The names of a module and of all that it imports whole, however far that leads."""
        found: set[str] = set()
        seen, ahead = {module}, [module]
        while ahead:
            names, stars = self._read_star_names(ahead.pop())
            found |= names
            ahead += [star for star in stars if star not in seen]
            seen.update(stars)
        return frozenset(found)

    def _read_star_names(self, module: str) -> tuple[frozenset[str], tuple[str, ...]]:
        known = self._listed.get(module)
        if known is None:
            known = self._listed[module] = self._star_names_in_text(module)
        return known

    def _star_names_in_text(self, module: str) -> tuple[frozenset[str], tuple[str, ...]]:
        path = self.locate(module)
        try:
            text = "" if path is None else _text(self.disk.read(path))
        except OSError:
            text = ""
        if path is None or not text:
            return frozenset(), ()
        stars: tuple[str, ...] = ()
        if "import *" in text:
            package = module if path.name == "__init__.py" else module.rpartition(".")[0]
            here = ModuleInfo(module, path, ast.Module([], []), package)
            stars = tuple(self.absolute(here, len(dots), source or None) for dots, source in _STAR.findall(text))
        start = max(text.find("\n__all__"), 0)
        declared = _ALL.search(text, start) if start or text.startswith("__all__") else None
        if declared is not None:
            names = {*re.findall(r"[\"'](\w+)[\"']", declared[1]), *_REGISTERED.findall(text)}
            return frozenset(names), stars
        names = {name for pair in _BOUND.findall(text) for name in pair}
        for listed in _IMPORTED.findall(text):
            parts = re.sub(r"#[^\n]*", "", "".join(listed)).split(",")
            names.update(part.split()[-1] for part in parts if part.strip())
        names = {name for name in names if name and not name.startswith("_")}
        return frozenset(names), stars

    def locate(self, name: str) -> Path | None:
        """The file of a module that is followed, or None."""
        if name not in self._places:
            parent, _, last = name.rpartition(".")
            self._places[name] = self._inside(parent, last) if parent else self._top_level(name)
        return self._places[name]

    def _inside(self, parent: str, name: str) -> Path | None:
        if f"{parent}.{name}" in PLAIN_PARTS:
            return next(filter(None, (self._module_in(root / parent, name) for root in self.roots)), None)
        package = self.locate(parent)
        if package is not None:
            return self._module_in(package.parent, name) if package.name == "__init__.py" else None
        if _is_known_by_name(parent.partition(".")[0]):
            return None
        # A folder without an __init__ is a package too; only the program's own are worth the search.
        folders = (root / parent.replace(".", "/") for root in self.own)
        return next((self._module_in(folder, name) for folder in folders if self.disk.is_folder(folder)), None)

    def _top_level(self, name: str) -> Path | None:
        if _is_known_by_name(name):
            return None
        for folder in self.roots:
            found = self._module_in(folder, name)
            if found is not None:
                return found if folder in self.own or self._speaks_of_torch(found) else None
        return None

    def absent(self, name: str) -> bool:
        """Is a package certainly not there, so that importing it raises? Only said where torch is there: then dtlint
        looks at the environment that the program runs in, and not at one of its own."""
        package = name.partition(".")[0]
        if not package or package in sys.stdlib_module_names or package in sys.builtin_module_names:
            return False
        return not self._is_installed(package) and self._is_installed("torch")

    def present(self, name: str) -> bool:
        """Is a package certainly there?"""
        package = name.partition(".")[0]
        return package in sys.stdlib_module_names or self._is_installed(package)

    def _is_installed(self, package: str) -> bool:
        known = self._installed.get(package)
        if known is None:
            known = self._installed[package] = any(self._holds(folder, package) for folder in self.roots)
        return known

    def absolute(self, importer: ModuleInfo, level: int, module: str | None) -> str:
        """The absolute name of what `from ..module import` names."""
        if not level:
            return module or ""
        parts = importer.package.split(".") if importer.package else []
        parts = parts[: len(parts) - (level - 1)] if level > 1 else parts
        return ".".join([*parts, module] if module else parts)

    def _parsed(self, name: str, path: Path) -> ModuleInfo | None:
        try:
            data = self.disk.read(path)
            if len(data) > _LARGEST:
                return None
            tree = parsed(data)
        except MemoryError:
            self.starved = True
            return None
        except (OSError, SyntaxError, ValueError, RecursionError):
            return None
        self.bytes_read += len(data)
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        return ModuleInfo(name, path, tree, package)

    def _module_in(self, folder: Path, name: str) -> Path | None:
        places = folder / name / "__init__.py", folder / f"{name}.py"
        return next((path for path in places if self.disk.is_file(path)), None)

    def _holds(self, folder: Path, package: str) -> bool:
        """Is there anything in the folder that Python would import under that name: source, compiled, a bare folder?"""
        if self.disk.is_folder(folder / package) or self.disk.is_file(folder / f"{package}.py"):
            return True
        if self.disk.names(folder, f"{package}.*.so") or self.disk.names(folder, f"{package}*.pyd"):
            return True
        # What is installed for editing is found by a module of its own, which names the packages that it finds.
        finders = [folder / name for name in self.disk.names(folder, "__editable___*_finder.py")]
        return self._any_speaks_of(f"'{package}'", finders)

    def _speaks_of_torch(self, module: Path) -> bool:
        """Has an installed package anything to do with tensors? Told by the files at its top, and in the folders there:
        the top of some, as timm's, only says what is inside."""
        if module.name != "__init__.py":
            return self._any_speaks_of("torch", [module])
        folder = module.parent
        at_top = (folder / name for name in self.disk.names(folder, "*.py"))
        if self._any_speaks_of("torch", at_top):
            return True
        below = self.disk.names(folder, "*/*.py")[:_MOST_ASKED]
        return self._any_speaks_of("torch", (folder / name for name in below))

    def _any_speaks_of(self, word: str, files: Iterable[Path]) -> bool:
        wanted = word.encode(errors="surrogatepass")
        try:
            return any(self.disk.holds(file, wanted) for file in files)
        except OSError:
            return False


def _empty_body(body: list[ast.stmt]) -> None:
    """Take the statements out of a module, a class or a function, and of all that it defines."""
    for node in (*functions(body), *classes(body)):
        _empty_body(node.body)
    body.clear()


def _text(data: bytes) -> str:
    """As Python reads a text file, with one kind of line end, whatever else is in it."""
    text = data.decode("utf-8", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


_MOST_ASKED = 64
"""Files below a package's top that are looked into."""


def _is_known_by_name(package: str) -> bool:
    """Is the source of a package not followed, wherever it lies?"""
    return package in _BY_NAME or package in sys.stdlib_module_names
