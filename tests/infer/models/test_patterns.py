"""Regular expressions: each program's variables are compared with a run of it."""

from __future__ import annotations

import textwrap

import pytest

from tests.infer.programs import loose, mistaken

pytest.importorskip("torch")

PROGRAMS = {
    "functions of the module": """
        import re
        a = re.findall("a(.)c", "abc adc")
        b = re.findall("(a)(.)", "ab ac")
        c = re.split(r"\\.", "encoder.layer.0")
        d = re.sub("layer", "block", "encoder.layer.0")
        e = re.match("encoder", "decoder") is None
        f = re.search(r"layer\\.(\\d+)", "encoder.layer.3").group(1)
        g = bool(re.fullmatch("[a-z]+", "encoder"))
        h = re.match("enc", "encoder").group()
    """,
    "a compiled pattern": """
        import re
        LAYER = re.compile(r"layer\\.(?P<number>\\d+)\\.(\\w+)")
        a = LAYER.pattern
        found = LAYER.search("model.layer.12.query")
        b = found.group("number")
        c = found.groups()
        d = found[2]
        e = found.groupdict()
        f = found.group(1, 2)
        g = LAYER.sub("x", "layer.1.key and more")
        h = LAYER.match("model.layer.12.query")
        i = re.sub(LAYER, "y", "layer.1.key")
    """,
    "a group that takes no part": """
        import re
        a = re.match("(a)|(b)", "b").groups()
        b = re.match("(a)|(b)", "b").group(1)
        c = re.match("a", "ab").groups()
    """,
}

OPEN = {
    "flags decide what matches": """
        import re
        a = re.match("ENC", "encoder", re.IGNORECASE) is None
        b = re.compile("ENC", re.I).match("encoder") is None
        c = re.compile("ENC", flags=re.I).sub("", "encoder")
    """,
    "a place to begin at": """
        import re
        P = re.compile("b")
        a = P.match("ab", 1) is None
        b = P.search("ba", 1) is None
        c = P.findall("bab", 1)
    """,
    "a function that replaces": """
        import re
        a = re.sub("e", lambda found: found.group().upper(), "encoder")
        b = re.sub("e", "x", "encoder", count=1)
        c = re.sub("e", "x", "encoder", 1)
        d = re.split("e", "encoder", 1)
    """,
    "bytes": """
        import re
        a = re.match(b"e(.)", b"encoder").group(1)
        b = re.findall(b"e(.)", b"encoder")
    """,
    "a pattern that does not compile": """
        import re
        try:
            a = re.match("(", "x") is None
        except re.error:
            a = 5
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name: str) -> None:
    text = textwrap.dedent(PROGRAMS[name])
    assert mistaken(text) == []
    assert loose(text) <= {"LAYER", "found"}


@pytest.mark.parametrize("name", OPEN)
def test_less_is_known_where_more_is_given_than_a_pattern_and_texts(name: str) -> None:
    assert mistaken(textwrap.dedent(OPEN[name])) == []
