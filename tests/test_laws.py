"""The laws of the house: who may import whom, what starts light, and what every rule must say.

Read from the syntax trees, and where it is about what really loads, from a fresh interpreter.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from dtlint import Applicability, Rule, discover
from dtlint.document import document, required

ROOT = Path(__file__).resolve().parent.parent
HEAVY = {"torch", "libcst", "rich", "numpy", "pathspec", "yaml"}
"""Packages that take tens of milliseconds or more to import."""

ARROWS: dict[str, set[str]] = {
    "atomic": set(),
    "cache": set(),
    "diagnostic": set(),
    "frames": set(),
    "unexpected": set(),
    "dtypes": set(),
    "source": {"diagnostic"},
    "rule": {"diagnostic", "unexpected"},
    "catalogue": {"diagnostic", "rule"},
    "document": {"diagnostic", "rule"},
    "families": {"catalogue"},
    "config": {"catalogue", "dtypes", "families", "source"},
    "infer": {"cache", "diagnostic", "dtypes", "frames", "source"},
    "check": {
        "atomic",
        "cache",
        "catalogue",
        "config",
        "diagnostic",
        "dtypes",
        "frames",
        "infer",
        "rule",
        "source",
        "unexpected",
    },
    "trace": {"atomic", "catalogue", "diagnostic", "dtypes", "rule", "source", "unexpected"},
    "plan": {"dtypes", "trace"},
    "compare": {"dtypes", "trace"},
    "diff": {"atomic", "dtypes", "trace"},
    "profile": {"atomic", "trace"},
    "report": {"catalogue", "compare", "diagnostic", "diff", "document", "dtypes", "plan", "profile", "rule", "trace"},
    "api": {"atomic", "diagnostic", "report", "trace"},
    "server": {
        *("catalogue", "check", "config", "diagnostic", "document", "dtypes", "infer", "rule", "source", "unexpected"),
    },
    "monitor": {"atomic", "trace"},
    "callbacks": {"monitor"},
    "pytest_plugin": {"api", "diagnostic", "report", "trace"},
    "cli": {
        "compare",
        *("atomic", "cache", "catalogue", "check", "config", "diagnostic", "document", "dtypes", "families", "infer"),
        *("diff", "plan", "profile", "report", "rule", "source", "trace", "unexpected"),
        "server",
    },
    "__main__": {"cli"},
}
"""Each part of the package and the parts it may import. The package itself, for its version, is open to all."""


@dataclass(frozen=True)
class Import:
    """One imported module, and where the import stands: at module level, in a function, or for type checkers only."""

    module: str
    level: str
    line: int


def modules(*parts: str) -> list[Path]:
    """The files of the package, or of some of its parts."""
    package = ROOT / "dtlint"
    if not parts:
        return sorted(package.rglob("*.py"))
    return [
        file
        for part in parts
        for file in (sorted((package / part).rglob("*.py")) or [package / f"{part}.py"])
        if file.exists()
    ]


LEARNING = set(modules("dtypes/learn"))
"""The development tool that learns the operator table from torch: it alone of the static half imports torch."""


def part_of(file: Path) -> str:
    relative = file.relative_to(ROOT / "dtlint")
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


@cache
def imports(file: Path) -> tuple[Import, ...]:
    return tuple(_imports(ast.parse(file.read_text(encoding="utf-8")), "module", file))


def _imports(node: ast.AST, level: str, file: Path) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, level, child.lineno) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"{file}:{child.lineno}: relative imports hide who imports whom"
            yield Import(child.module or "", level, child.lineno)
            if (child.module or "").partition(".")[0] == "dtlint":  # each name may be a module
                yield from (Import(f"{child.module}.{alias.name}", level, child.lineno) for alias in child.names)
        elif isinstance(child, ast.If) and ast.unparse(child.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            for statement in child.body:
                yield from _imports(ast.Module([statement], []), "typing", file)
            for statement in child.orelse:
                yield from _imports(ast.Module([statement], []), level, file)
        elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield from _imports(child, "function" if level == "module" else level, file)
        else:
            yield from _imports(child, level, file)


def offences(files: list[Path], forbidden: set[str], *levels: str) -> list[str]:
    return [
        f"{file.relative_to(ROOT)}:{found.line} imports {found.module}"
        for file in files
        for found in imports(file)
        if found.module.split(".")[0] in forbidden and found.level in levels
    ]


def test_the_reader_of_imports_tells_levels_apart() -> None:
    source = "import a\nif TYPE_CHECKING:\n    import b\nelse:\n    import c\ndef f():\n    import d\n    class C:\n        from e import x\n"
    found = {(i.module, i.level) for i in _imports(ast.parse(source), "module", Path("x.py"))}
    assert found == {("a", "module"), ("b", "typing"), ("c", "module"), ("d", "function"), ("e", "function")}


def test_the_static_half_never_imports_torch() -> None:
    files = [file for file in modules("check", "infer", "source", "dtypes", "config", "server") if file not in LEARNING]
    assert files
    assert offences(files, {"torch"}, "module", "function") == []


def test_nothing_imports_what_learns_from_torch() -> None:
    assert LEARNING
    for file in set(modules()) - LEARNING:
        learning = [found for found in imports(file) if re.match(r"dtlint\.dtypes\.learn\b", found.module)]
        assert learning == [], file


def test_the_dynamic_half_never_imports_libcst() -> None:
    assert offences(modules("trace"), {"libcst"}, "module", "function", "typing") == []


def test_reports_and_comparisons_import_neither_torch_nor_libcst() -> None:
    assert offences(modules("report", "compare"), {"torch", "libcst"}, "module", "function") == []


def test_dtypes_imports_nothing_else_of_dtlint() -> None:
    for file in modules("dtypes"):
        foreign = [i.module for i in imports(file) if re.match(r"dtlint\b(?!\.dtypes)", i.module)]
        assert foreign == [], file


def test_nothing_heavy_is_imported_at_module_level() -> None:
    """Not in the command line, and not in what it loads before it knows that there is work to do."""
    files = modules("__init__", "api", "cli", "config", "diagnostic", "document", "dtypes", "pytest_plugin", "report")
    files += modules("rule", "source")
    files = [file for file in files if file not in LEARNING]
    assert offences(files, HEAVY, "module") == []


def test_rules_import_nothing_heavy_at_module_level() -> None:
    """All rules are imported to know their codes and triggers."""
    assert offences(sorted((ROOT / "rules").rglob("*.py")), HEAVY, "module") == []


def test_no_rule_imports_torch() -> None:
    assert offences(sorted((ROOT / "rules").rglob("*.py")), {"torch"}, "module", "function") == []


@pytest.mark.parametrize("file", modules(), ids=lambda file: str(file.relative_to(ROOT)))
def test_arrows_run_downward(file: Path) -> None:
    part = part_of(file)
    if part == "__init__":
        return
    allowed = {part, *ARROWS[part]}
    for found in imports(file):
        if found.level != "typing" and found.module.startswith("dtlint.") and not _is_version(found):
            target = found.module.split(".")[1]
            assert target in allowed, f"{file.relative_to(ROOT)}:{found.line}: {part} may not import {target}"


def _is_version(found: Import) -> bool:
    return found.module == "dtlint.__version__"


def test_the_arrows_speak_of_parts_that_there_are() -> None:
    there = {part_of(file) for file in modules()} - {"__init__"}
    assert set(ARROWS) == there
    assert {target for targets in ARROWS.values() for target in targets} <= there


def test_the_arrows_themselves_have_no_circle() -> None:
    left = dict(ARROWS)
    while left:
        leaves = {part for part, targets in left.items() if not targets & left.keys()}
        assert leaves, f"a circle among {sorted(left)}"
        left = {part: targets for part, targets in left.items() if part not in leaves}


def test_no_module_imports_itself_in_a_circle() -> None:
    files = {_name(file): file for file in modules()}
    graph = {
        name: {_target(i.module, files) for i in imports(file) if i.level == "module"} & files.keys() - {name}
        for name, file in files.items()
    }
    while graph:
        leaves = {name for name, targets in graph.items() if not targets & graph.keys()}
        assert leaves, f"a circle among {sorted(graph)}"
        graph = {name: targets for name, targets in graph.items() if name not in leaves}


def _name(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _target(module: str, files: dict[str, Path]) -> str:
    return module if module in files else module.rpartition(".")[0]


def test_every_module_says_its_idea() -> None:
    for file in [*modules(), *(ROOT / "rules").rglob("*.py")]:
        source = file.read_text(encoding="utf-8")
        assert ast.get_docstring(ast.parse(source)), f"{file.relative_to(ROOT)} has no docstring"


def test_test_modules_have_names_of_their_own() -> None:
    """Without packages among the tests, pytest collects one module of a name."""
    names = Counter(path.name for path in Path(__file__).parent.rglob("test_*.py"))
    assert [name for name, times in names.items() if times > 1] == []


def test_no_module_is_a_drawer() -> None:
    for file in [*modules(), *(ROOT / "rules").rglob("*.py")]:
        assert not set(file.relative_to(ROOT).with_suffix("").parts) & {"utils", "util", "helpers", "common", "misc"}, (
            file
        )


# What really loads.


def loaded_by(*arguments: str, cwd: Path | None = None, heavy: set[str] = HEAVY) -> set[str]:
    """The heavy modules that a run of dtlint has loaded by its end."""
    code = (
        "import sys\nfrom dtlint.cli import main\n"
        f"try:\n    main({list(arguments)!r})\n"
        "except SystemExit as end:\n    code = end.code\n"
        f"print('loaded', code, *({heavy!r} & set(sys.modules)))"
    )
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=cwd, check=True, env=usual)
    mark, code_, *names = done.stdout.splitlines()[-1].split()
    assert (mark, code_) == ("loaded", "0"), done.stdout + done.stderr
    return set(names)


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["rule"], ["rule", "DT101"], ["check", "--help"]])
def test_what_only_talks_loads_nothing_heavy(arguments: list[str]) -> None:
    assert loaded_by(*arguments) == set()


def test_checking_a_clean_file_loads_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "clean.py").write_text("import os\n\nprint(os.sep)\n")
    assert loaded_by("check", "clean.py", cwd=tmp_path) <= {"pathspec"}


def test_checking_a_clean_torch_program_loads_neither_torch_nor_libcst(tmp_path: Path) -> None:
    (tmp_path / "clean.py").write_text("import torch\n\nx = torch.zeros(3, dtype=torch.float16)\nprint(x.float())\n")
    assert loaded_by("check", "--no-cache", "clean.py", cwd=tmp_path) & {"torch", "libcst", "rich"} == set()


def test_checking_a_clean_file_loads_no_engine(tmp_path: Path) -> None:
    """What it costs is measured by tests/benchmarks/static_speed.py; what keeps that low is what is not loaded."""
    (tmp_path / "clean.py").write_text("import torch\n\nx = torch.zeros(3)\nprint(x * 2)\n")
    loaded_by("check", "clean.py", cwd=tmp_path)  # from the second run on the rules are listed
    heavy = {"dtlint.infer.interproc.engine", "dtlint.infer.facts", "dtlint.source.concrete", "importlib.metadata"}
    assert loaded_by("check", "clean.py", cwd=tmp_path, heavy=heavy) == set()


def test_telling_what_is_known_of_a_program_loads_no_engine(tmp_path: Path) -> None:
    """Most of what a second `dtlint infer` costs is what it loads."""
    (tmp_path / "program.py").write_text("import torch\n\nx = torch.zeros(3)\nprint(x * 2)\n")
    heavy = {"dtlint.infer.interproc.engine", "dtlint.infer.claims.reading", "dtlint.dtypes.table", "rich", "libcst"}
    for arguments in (["program.py"], ["--at", "program.py:3:1"], ["program.py", "--output-format", "json"]):
        loaded_by("infer", *arguments, cwd=tmp_path)
        assert loaded_by("infer", *arguments, cwd=tmp_path, heavy=heavy) == set(), arguments


# What every rule must say.

CATALOGUE = list(discover().values())

UNREADABLE = "DT802"
"""Its example is code that does not compile: that is what it finds."""


def test_there_is_a_catalogue() -> None:
    assert len(CATALOGUE) >= 9


def by_code(rule: type[Rule]) -> str:
    return rule.code


@pytest.mark.parametrize("rule", CATALOGUE, ids=by_code)
def test_a_rule_documents_itself_wholly(rule: type[Rule]) -> None:
    text = document(rule)
    missing = required(rule.fix) - text.sections.keys()
    assert not missing, f"{rule.code} lacks {sorted(missing)}"
    assert all(text.sections.values()), f"{rule.code} has an empty section"
    assert text.summary.endswith("."), "the summary is a sentence"
    assert len(text.summary) <= 100, "the summary fits a line of a table"


@pytest.mark.parametrize("rule", CATALOGUE, ids=by_code)
def test_the_python_blocks_of_a_rule_compile(rule: type[Rule]) -> None:
    text = document(rule)
    assert text.example
    assert text.instead
    for block in (*(text.example if rule.code != UNREADABLE else ()), *text.instead):
        compile(block, rule.code, "exec")


@pytest.mark.parametrize("rule", CATALOGUE, ids=by_code)
def test_a_rule_is_named_like_its_module(rule: type[Rule]) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", rule.name)
    expected = f"{rule.code.lower()}_{rule.name.replace('-', '_')}"
    assert rule.__module__.rpartition(".")[2] == expected


def test_codes_and_names_are_each_taken_once() -> None:
    assert len({rule.name for rule in CATALOGUE}) == len(CATALOGUE)


def test_a_rule_module_holds_one_rule() -> None:
    of_module: dict[str, list[str]] = {}
    for rule in CATALOGUE:
        of_module.setdefault(rule.__module__, []).append(rule.code)
    for file in sorted((ROOT / "rules" / "dtlint_rules").glob("dt*.py")):
        assert len(of_module.get(f"dtlint_rules.{file.stem}", [])) == 1, file.name


@pytest.mark.parametrize("rule", CATALOGUE, ids=by_code)
def test_a_rule_that_promises_a_fix_shows_it(rule: type[Rule]) -> None:
    text = document(rule)
    if rule.fix in (Applicability.SAFE, Applicability.UNSAFE):
        assert len(text.instead) == len(text.example), "each example is mended by the block at the same place"


# -- the rooms of the engine -------------------------------------------------------------------------------------------------

ROOMS = ("domain", "state", "context", "models", "semantics", "facts", "interproc", "claims")
"""The rooms of `infer`, lowest first: each imports those before it, the plain names of torch, and nothing above."""
PLAIN = {"names", "surroundings", "use_def", "walk"}
"""Modules on names and syntax that all rooms share."""


def room_of(file: Path) -> str:
    relative = file.relative_to(ROOT / "dtlint" / "infer")
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def engine_files() -> list[Path]:
    return [file for file in modules("infer") if room_of(file) in ROOMS]


def test_rooms_of_the_engine_import_downward_only() -> None:
    assert {room_of(file) for file in engine_files()} == set(ROOMS)
    found = []
    for file in engine_files():
        allowed = {*ROOMS[: ROOMS.index(room_of(file)) + 1], *PLAIN}
        for imported in imports(file):
            parts = imported.module.split(".")
            if parts[:2] == ["dtlint", "infer"] and len(parts) > 2 and parts[2] not in allowed:
                found.append(f"{file.relative_to(ROOT)}:{imported.line} imports {imported.module}")
    assert found == []


def test_every_module_of_the_engine_stands_in_a_room() -> None:
    assert {room_of(file) for file in modules("infer")} == {*ROOMS, *PLAIN, "__init__"}


def test_rules_ask_the_engine_for_facts_and_what_these_hold() -> None:
    """How the facts came about is none of their business."""
    rooms = {"facts", "domain", *PLAIN}
    found = [
        f"{file.relative_to(ROOT)}:{imported.line} imports {imported.module}"
        for file in sorted((ROOT / "rules").rglob("*.py"))
        for imported in imports(file)
        if imported.module.startswith("dtlint.infer.") and imported.module.split(".")[2] not in rooms
    ]
    assert found == []


def classes_of(file: Path) -> list[ast.ClassDef]:
    return [node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.ClassDef)]


def test_no_class_of_the_engine_inherits_from_a_class_that_inherits() -> None:
    """Values and exceptions aside: composition, not a ladder."""
    bases = {
        node.name: [base.id for base in node.bases if isinstance(base, ast.Name)]
        for file in engine_files()
        for node in classes_of(file)
    }
    plain = {"Value", "Exception", "Protocol", "Generic", "NamedTuple", "Enum"}
    ladder = [
        f"{name}({base})"
        for name, given in bases.items()
        for base in given
        if base in bases and set(bases[base]) - plain
    ]
    assert bases
    assert ladder == []


def test_classes_of_the_engine_are_small_and_delegate_to_nobody() -> None:
    for file in engine_files():
        for node in classes_of(file):
            methods = [part.name for part in node.body if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef))]
            assert len(methods) <= 40, f"{file}: {node.name}"
            assert "__getattr__" not in methods, f"{file}: {node.name}"


def test_the_context_stays_a_small_container() -> None:
    from dtlint.infer.context import Context

    assert len(Context.__dataclass_fields__) <= 15
