"""A rule's docstring read as a document."""

from __future__ import annotations

import pytest

from dtlint import Applicability, Rule
from dtlint.document import HEADINGS, document, parse, required

WHOLE = """\
Summary of it.

## What it does
Finds `x`.

## Why it matters
It breaks.

## Example
```python
x.half()
```

In a loop:

```python
# ## What it does
for x in xs:

    x.half()
```

## Use instead
```python
x = x.half()
```

```text
not python
```
"""


def test_summary_and_sections_in_order() -> None:
    found = parse(WHOLE)
    assert found.summary == "Summary of it."
    assert list(found.sections) == ["What it does", "Why it matters", "Example", "Use instead"]
    assert found.sections["Why it matters"] == "It breaks."


def test_examples_are_the_python_blocks() -> None:
    found = parse(WHOLE)
    assert found.example == ("x.half()\n", "# ## What it does\nfor x in xs:\n\n    x.half()\n")
    assert found.instead == ("x = x.half()\n",)


def test_markdown_reads_back_the_same() -> None:
    assert parse(parse(WHOLE).markdown()) == parse(WHOLE)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("## What it does\nx", "first line must be the summary"),
        ("", "first line must be the summary"),
        ("One.\nTwo.\n\n## Example", "the summary must be one line"),
        ("One.\n\n## Why is this bad?\n", "there is no heading 'Why is this bad\\?'; use What it does"),
        ("One.\n\n## Example\n\n## Why it matters\n", "'Why it matters' stands twice or out of order"),
        ("One.\n\n## Example\n\n## Example\n", "'Example' stands twice or out of order"),
    ],
)
def test_what_is_no_document_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse(text)


def test_a_rule_is_its_docstring_without_the_indentation() -> None:
    class Documented(Rule):
        """A cast.

        ## Example
        ```python
        if x:
            x.half()
        ```
        """

    assert document(Documented).example == ("if x:\n    x.half()\n",)


def test_the_docstring_of_a_base_class_does_not_count() -> None:
    class Bare(Rule):
        pass

    with pytest.raises(ValueError, match=r"Bare has no docstring, which documents a rule"):
        document(Bare)


def test_a_rule_that_never_edits_need_not_say_how_safe_its_fix_is() -> None:
    assert set(HEADINGS) - required(Applicability.NONE) == {"Fix safety", "References"}
    assert set(HEADINGS) - required(Applicability.SAFE) == {"References"}
