"""How a name is spelled at a place, which import that takes, and which imports go when nothing needs them any more."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from textwrap import dedent

import pytest

from dtlint.diagnostic import Edit
from dtlint.source.file import Source
from dtlint.source.imports import Imports, NoEdit, remove_orphans


def source_of(text: str, path: str = "module.py") -> Source:
    return Source.from_bytes(dedent(text).encode(), path)


def applied(source: Source, edits: tuple[Edit, ...] | list[Edit]) -> str:
    text = source.text
    for edit in sorted(edits, key=lambda edit: edit.span, reverse=True):
        start = source.offset(edit.span.line, edit.span.column)
        text = text[:start] + edit.text + text[source.offset(edit.span.end_line, edit.span.end_column) :]
    return text


def spelled(text: str, name: str = "torch.amp.autocast") -> tuple[str, str]:
    """The spelling at the name `HERE`, and the text with the import that it takes."""
    source = source_of(text)
    tree = ast.parse(source.text)
    at = next(node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "HERE")
    spelling, edits = Imports(source, tree).spelled(name, at)
    return spelling, applied(source, edits)


@pytest.mark.parametrize(
    ("imports", "spelling"),
    [
        ("import torch", "torch.amp.autocast"),
        ("import torch as th", "th.amp.autocast"),
        ("import torch.nn", "torch.amp.autocast"),
        ("from torch import amp", "amp.autocast"),
        ("import torch\nfrom torch import amp as mixed", "mixed.autocast"),
        ("from torch.amp import autocast as ac", "ac"),
        ("try:\n    import torch\nexcept ImportError:\n    torch = None", "torch.amp.autocast"),
    ],
)
def test_the_shortest_spelling_that_the_file_knows(imports: str, spelling: str) -> None:
    text = f"{imports}\nHERE\n"
    assert spelled(text) == (spelling, text)


@pytest.mark.parametrize(
    "imports",
    [
        "import torch\ntorch = 1",
        "import torch\ndef torch(): pass",
        "from torch.amp import autocast\nimport torch.nn as torch",
        "import torch as th\nfor torch in (): pass",
    ],
)
def test_a_name_that_is_bound_twice_is_not_relied_on(imports: str) -> None:
    text = f"{imports}\nHERE\n"
    try:
        spelling, _ = spelled(text)
    except NoEdit:
        return
    assert spelling in ("autocast", "th.amp.autocast")


def test_a_parameter_hides_the_module() -> None:
    assert spelled("import torch\nfrom torch import amp\ndef f(amp):\n    HERE\n")[0] == "torch.amp.autocast"
    with pytest.raises(NoEdit, match="torch means something else"):
        spelled("import torch\ndef f(torch):\n    HERE\n")


def test_what_a_function_binds_does_not_hide_the_module_from_its_decorator() -> None:
    assert spelled("import torch\n@HERE\ndef f(torch):\n    pass\n")[0] == "torch.amp.autocast"


def test_an_import_goes_before_the_first_of_its_package() -> None:
    text = '"""Words."""\nimport os\n\n# deep learning\nfrom torch import nn\nfrom torch.cuda import amp\n\nHERE\n'
    expected = '"""Words."""\nimport os\n\n# deep learning\nimport torch\nfrom torch import nn\nfrom torch.cuda import amp\n\nHERE\n'
    assert spelled(text) == ("torch.amp.autocast", expected)


def test_without_one_it_goes_behind_the_others() -> None:
    assert spelled("import os  # first\nHERE\n")[1] == "import os  # first\nimport torch\nHERE\n"


def test_without_any_it_goes_behind_the_docstring_and_the_shebang() -> None:
    assert spelled('"""Words."""\nHERE\n')[1] == '"""Words."""\nimport torch\nHERE\n'
    assert (
        spelled("#!/usr/bin/env python\n# words\nHERE\n")[1] == "#!/usr/bin/env python\n# words\nimport torch\nHERE\n"
    )


def test_an_import_left_until_a_function_runs_stays_that() -> None:
    text = "def f():\n    print()\n    from torch.cuda import amp\n    HERE\n"
    assert spelled(text)[1] == "def f():\n    print()\n    import torch\n    from torch.cuda import amp\n    HERE\n"
    assert spelled("def f():\n    import torch as t\n    HERE\n")[0] == "t.amp.autocast"


def test_an_optional_import_stays_optional() -> None:
    text = "try:\n    from torch.cuda import amp\nexcept ImportError:\n    amp = None\nHERE\n"
    assert (
        spelled(text)[1]
        == "try:\n    import torch\n    from torch.cuda import amp\nexcept ImportError:\n    amp = None\nHERE\n"
    )


def test_what_only_a_type_checker_imports_is_not_there() -> None:
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\nHERE\n"
    assert spelled(text)[1].startswith("from typing import TYPE_CHECKING\nimport torch\n")


def orphaned(text: str, *names: str, path: str = "module.py") -> str:
    source = source_of(text, path)
    return applied(source, remove_orphans(source, set(names)))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import os\nfrom a import b\nprint()\n", "import os\nprint()\n"),
        ("import a.b as b\nprint()\n", "print()\n"),
        ("from a import b, c\nprint(c)\n", "from a import c\nprint(c)\n"),
        ("from a import c, b\nprint(c)\n", "from a import c\nprint(c)\n"),
        ("from a import (\n    b,\n    c,  # why\n)\nprint(c)\n", "from a import (\n    c,  # why\n)\nprint(c)\n"),
        ("from a import x as b\nprint()\n", "print()\n"),
        ("from a import b  # noqa: F401\nprint()\n", "print()\n"),
        ("def f():\n    from a import b\n    return 1\n", "def f():\n    return 1\n"),
        ("import argparse\nfrom a import b\nprint('--b', 'a b')\n", "import argparse\nprint('--b', 'a b')\n"),
        ("print()\nfrom a import b", "print()\n"),
        ("class C:\n    def f():\n        from a import b\n        x()\n", "class C:\n    def f():\n        x()\n"),
    ],
)
def test_an_import_that_nothing_needs_goes(before: str, after: str) -> None:
    assert orphaned(before, "b") == after


@pytest.mark.parametrize(
    "text",
    [
        "from a import b\nprint(b)\n",
        "from a import b  # needed for its effects\nprint()\n",
        "from a import (\n    b,  # why\n    c,\n)\nprint(c)\n",
        "from a import b as b\nprint()\n",
        "from a import b\n__all__ = ['b']\n",
        "from a import b\ndef f(x: 'list[b]'): pass\n",
        "from a import b\ndef f():\n    global b\n",
        "try:\n    from a import b\n    HAS = True\nexcept ImportError:\n    HAS = False\n",
        "if x:\n    from a import b\n",
        "import os; from a import b\n",
        "from a import *\n",
        "class C:\n    from a import b\n    x = 1\n",
        "class C:\n    if x:\n        from a import b\n        y = 1\n",
    ],
)
def test_an_import_that_something_may_need_stays(text: str) -> None:
    assert orphaned(text, "b") == text


def test_packages_and_stubs_export_what_they_import() -> None:
    text = "from a import b\n"
    assert orphaned(text + "x = 1\n", "b", path="pkg/__init__.py") == text + "x = 1\n"
    assert orphaned(text + "x: int\n", "b", path="pkg/mod.pyi") == text + "x: int\n"


def test_only_the_names_given_go() -> None:
    assert orphaned("from a import b\nfrom a import c\nprint()\n", "b") == "from a import c\nprint()\n"


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("HERE\n", True),
        ("def f(b):\n    HERE\n", True),
        ("def f(*b):\n    HERE\n", True),
        ("def f():\n    with x as (a, b):\n        HERE\n", True),
        ("def f():\n    import b.c\n    HERE\n", True),
        ("def f():\n    try:\n        HERE\n    except E as b:\n        pass\n", True),
        ("def f():\n    global b\n    HERE\n", True),
        ("def f():\n    match x:\n        case [b]:\n            HERE\n", True),
        ("b = 1\ndef f():\n    HERE\n", False),
        ("def f(b):\n    def g():\n        HERE\n", False),
        ("class C:\n    b = 1\n    def g(self):\n        HERE\n", False),
        ("b = 1\nclass C:\n    HERE\n", False),
        ("def f():\n    HERE\n    [b for b in x]\n    lambda b: 1\n    def g():\n        b = 1\n", False),
    ],
)
def test_whose_name_it_is(text: str, bound: bool) -> None:
    source = source_of(text)
    tree = ast.parse(source.text)
    at = next(node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "HERE")
    assert Imports(source, tree).binds("b", at) is bound


def test_a_thousand_places_in_one_scope_are_not_a_thousand_walks(monkeypatch: pytest.MonkeyPatch) -> None:
    visited = 0
    children = ast.iter_child_nodes

    def counted(node: ast.AST) -> Iterator[ast.AST]:
        nonlocal visited
        visited += 1
        return children(node)

    source = source_of("def f(x):\n" + "    x.half()\n" * 200)
    tree = ast.parse(source.text)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    imports = Imports(source, tree)
    monkeypatch.setattr(ast, "iter_child_nodes", counted)
    for call in calls:
        assert imports.binds("x", call) and not imports.defines_property("x")
        imports.spelled("torch.amp.autocast", call)
    nodes = 5 + 200 * 6
    assert visited < 10 * nodes, "asking 200 times costs a few walks over the tree"
