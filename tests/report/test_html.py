"""The page: one file that asks for nothing, runs its own script alone, and shows strangers' texts as texts."""

from __future__ import annotations

import io
import json
import math
import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from browser import CHROMIUM, Browser

from dtlint.compare import Comparison, Finding
from dtlint.compare.comparison import Compared, Module
from dtlint.compare.precision import Precision
from dtlint.compare.run import Line
from dtlint.diagnostic import Applicability, Diagnostic, Edit, Fix, Location, Note, Severity, Span
from dtlint.report import write
from dtlint.report.html import write_comparison, write_run
from dtlint.report.html.findings import excerpt
from dtlint.report.html.page import embedded
from dtlint.trace.judge import as_rules, judge, runtime_rules
from dtlint.trace.record import TraceRecord
from dtlint.trace.schema import (
    Entry,
    Event,
    Histogram,
    Memory,
    ModuleSeries,
    Operand,
    Place,
    Range,
    ScaleChange,
    Scaler,
    Series,
    Skip,
    Unseen,
)

HOSTILE = "</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)>"

FOUND = Diagnostic(
    code="DT104",
    name="cast-result-discarded",
    severity=Severity.WARNING,
    message=f"the result of `{HOSTILE}` is thrown away",
    location=Location(f"src/{HOSTILE}.py", Span(2, 4, 2, 12)),
    help="assign it",
    notes=(Note(Location("b.py", Span(1, 0, 1, 3)), "cast here"),),
    fix=Fix("Assign the result", (Edit(Span(2, 4, 2, 4), "x = "),), Applicability.SAFE),
    lines=((1, "def f(x):"), (2, f"    x.half()  # {HOSTILE}"), (3, "    return x")),
)


def of_check(*diagnostics: Diagnostic) -> str:
    stream = io.StringIO()
    write(diagnostics, "html", stream, {})
    return stream.getvalue()


def record(modules: int = 3, steps: int = 8, name: str = "layers") -> TraceRecord:
    """A run in which each module multiplies, and the last overflows."""
    places, entries, rows = [], [], []
    for number in range(modules):
        places.append(Place("model.py", 2, 2, 8, 13, "x * 2", f"{name}.{number}"))
        operand = Operand("float32", False, None, "")
        entries.append(
            Entry(
                number, "mul", "forward", [operand], "float16", steps, "", "", None, False, 0, 0, None, 0, -1.0, 6e4, 1
            )
        )
        entries.append(
            Entry(number, "_to_copy", "forward", [operand], "float16", steps, "asked", "", None, False, 64, 0, None, 0, 0.0, 9.0, 0)
        )  # fmt: skip
        runs = [[1, step % 7 + number % 3, -1, int(step > 5), 2] for step in range(steps)]
        rows.append(ModuleSeries(f"{name}.{number}", "forward", ["float16"], runs))
        rows.append(ModuleSeries(f"{name}.{number}", "backward", ["float32"], [[steps, 0, -1, 0, 1]]))
    last = modules - 1
    event = Event(
        "overflow", 5, last, 2 * last, "", "float16", 0, 0, [Range("float16", 0, 6e4)], 1, 9, ["the loss"], False, None
    )
    return TraceRecord(
        2, "0.1.0", "2.13.0", "3.12.0", ["train.py"], 0, steps, 2 * modules * steps,
        places, entries, [event],
        scaler=Scaler(steps, 1, 0, 512.0, [], 0, 512.0, [Skip(1, 0)], [ScaleChange(0, 1024.0), ScaleChange(1, 512.0)]),
        unseen=[Unseen("operators with sparse tensors", 2, 0)],
        memory=[Memory("parameters", "float32", 1000), Memory("activations", "float16", 500)],
        sources={"model.py": {"1": "def f(x):", "2": "    y = x * 2", "3": "    return y"}},
        series=Series(list(range(steps)), rows),
        histograms=[Histogram("gradients", f"{name}.{number}", "float32", 1, -30, [3] * 8) for number in range(modules)],
    )  # fmt: skip


def of_run(run: TraceRecord) -> str:
    stream = io.StringIO()
    write_run(run, judge(run), stream, as_rules(runtime_rules()))
    return stream.getvalue()


def comparison(name: str = "layers", wrong: bool = True, sites: int = 3) -> Comparison:
    """Two runs of which the second multiplies by 3 in one line, and is wider in the other."""
    mine, its = Place("model.py", 2, 2, 8, 13, "x * 2", name), Place("model.py", 3, 3, 11, 12, f"{name}(y)", name)
    precision = Precision("float32", "float16")
    found = Finding(0, "mul", False, its, mine, ("float32", "float16"), 0.5, 0.001, 0.0, 1.5, f"only b runs {name}", 2)
    not_finite = replace(
        found, step=1, op="exp", difference=math.inf, backward=True, place=replace(its, line=1), cause=""
    )
    compared = [
        Compared(
            "mul",
            False,
            replace(its, line=3 + n),
            mine,
            ("float32", "float16"),
            [name],
            4,
            0,
            int(wrong and not n),
            0.5 / (n + 1),
            0.001 if wrong and not n else 1.0,
            0.0,
        )
        for n in range(sites)
    ]
    made = Comparison(("a.json", f"{name}.json"), [0, 1], precision, compared=12, equal=3, not_judged=1, skipped=2)
    made.findings = [found, not_finite] if wrong else []
    made.modules = [Module(name, 0.25, 0.5, its, "mul"), Module("head", 0.01, 0.1, mine, "add")]
    made.sites = compared
    made.honest = {("float32", "float16"): [0.0, 0.001, 0.002]}
    entry = record().entries[0]
    made.unmatched = [("a.json", Line(0, entry, mine, 0, "float32", (2,), "", (), None))]
    made.losses = [(0, 1.0, 1.01), (1, 2.0, math.nan)]
    return made


def of_comparison(made: Comparison) -> str:
    one, other, stream = record(), record(), io.StringIO()
    other.sources = {"model.py": {"1": "def f(x):", "2": "    y = x * 3", "3": f"    return {HOSTILE}"}}
    write_comparison(made, [one], [other], stream)
    return stream.getvalue()


class Reader(HTMLParser):
    """Elements, their attributes and their texts; what is not closed is an error."""

    VOID = frozenset({"meta", "link", "img", "br", "input"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


def text_of(reader: Reader, tag: str, number: int = 0) -> str:
    return [text for where, text in reader.texts if where == tag][number]


def data_of(text: str) -> Any:
    reader = read(text)
    scripts = [attributes for tag, attributes in reader.elements if tag == "script"]
    assert scripts == [{"id": "data", "type": "application/json"}, {}], "no other script has come in"
    return json.loads(text_of(reader, "script"))


PAGES = {
    "check": of_check(FOUND),
    "run": of_run(record()),
    "nothing": of_check(),
    "compare": of_comparison(comparison(HOSTILE)),
    "alike": of_comparison(comparison(wrong=False)),
}

KINDS = {"check": "check", "nothing": "check", "run": "trace", "compare": "compare", "alike": "compare"}


@pytest.mark.parametrize("name", PAGES)
def test_it_parses_and_its_data_are_json(name: str) -> None:
    assert data_of(PAGES[name])["kind"] == KINDS[name]


@pytest.mark.parametrize("name", PAGES)
def test_it_asks_for_nothing(name: str) -> None:
    reader = read(PAGES[name])
    for tag, attributes in reader.elements:
        assert tag not in ("link", "img", "iframe", "object", "base", "form")
        assert not {"src", "style", "onclick", "onload"} & attributes.keys()
        assert (attributes.get("href") or "#").startswith("#")
    code = text_of(reader, "style") + text_of(reader, "script", 1)
    assert set(re.findall(r"https?://[^\s\"']*", code)) == {"http://www.w3.org/2000/svg"}
    for word in ("url(", "@import", "fetch(", "XMLHttpRequest", "eval(", "innerHTML", "outerHTML", "document.write"):
        assert word not in code


@pytest.mark.parametrize("name", PAGES)
def test_its_policy_allows_its_own_style_and_script_alone(name: str) -> None:
    reader = read(PAGES[name])
    (policy,) = [a["content"] for _, a in reader.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    hashes = {
        kind: f"'sha256-{b64encode(sha256(text_of(reader, tag, n).encode()).digest()).decode()}'"
        for kind, tag, n in (("style-src", "style", 0), ("script-src", "script", 1))
    }
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules == {"default-src": "'none'", "base-uri": "'none'", "form-action": "'none'", **hashes}
    tags = [tag for tag, _ in reader.elements]
    assert tags.index("meta") < tags.index("style"), "a policy holds for what comes after it"


def test_names_and_texts_from_strangers_stay_texts() -> None:
    (found,) = data_of(PAGES["check"])["findings"]
    assert found["path"] == f"src/{HOSTILE}.py"
    assert HOSTILE in found["message"]
    assert HOSTILE in "".join(text for text, _ in found["frame"][1][1])
    run = record(name=HOSTILE)
    run.argv = [HOSTILE]
    data = data_of(of_run(run))
    assert data["title"] == HOSTILE
    assert data["series"]["rows"][0][0] == f"{HOSTILE}.0"
    assert f"<title>{HOSTILE}" not in of_run(run)


def test_a_number_that_is_none_is_refused_rather_than_written() -> None:
    with pytest.raises(ValueError, match="JSON"):
        embedded({"reach": float("nan")})


def test_a_run_says_what_the_screen_says_and_links_its_findings() -> None:
    data = data_of(PAGES["run"])
    first = data["answers"][0]
    assert (first["title"], first["tone"]) == ("Non-finite values, where they began:", "error")
    code, place, number, _ = first["details"][0]
    assert (code, place) == ("DT901", "model.py:2")
    assert (data["findings"][number]["code"], data["findings"][number]["line"]) == ("DT901", 2)
    assert [event["module"] for event in data["events"]] == ["layers.2"]
    assert data["scaler"]["changes"] == [[0, 1024.0], [1, 512.0]]
    assert [row["kind"] for row in data["casts"]] == ["cast asked for by the program"]
    assert data["lines"][0]["reach"] == 6e4
    assert data["histograms"][0] == ["gradients", "layers.0", "float32", 1, -30, [3] * 8]
    assert data["memory"][0] == ["parameters", "float32", 1000]


def test_a_run_in_which_nothing_was_found_says_what_was_looked_for() -> None:
    def verdict(**changed: Any) -> Any:
        run = record()
        run.events, run.scaler = [], None
        for name, value in changed.items():
            setattr(run, name, value)
        return data_of(of_run(run))["verdict"]

    assert verdict() == ["ok", "Nothing went wrong", "Non-finite values: none that the program did not mean"]
    assert verdict(watched=[])[:2] == ["plain", "No error and no warning"]
    assert verdict(exit_code=1)[:2] == ["plain", "The program ended with exit code 1"]
    assert verdict(operators=0, torch="")[1:] == ["Nothing was traced", "nothing was traced"]


def test_numbers_that_json_lacks_are_left_out() -> None:
    run = record()
    assert run.scaler is not None
    run.scaler.scale = float("inf")
    run.scaler.changes.append(ScaleChange(5, float("inf")))
    run.entries[0].high = float("inf")
    data = data_of(of_run(run))
    assert (data["scaler"]["scale"], data["scaler"]["changes"]) == (None, [[0, 1024.0], [1, 512.0]])


def test_a_record_of_before_there_was_a_series_has_a_page_too() -> None:
    run = record()
    run.series = None
    assert data_of(of_run(run))["series"] is None


def test_an_excerpt_marks_what_the_frame_underlines() -> None:
    marks = [(Span(1, 4, 2, 6), "main", ""), (Span(2, 4, 2, 5), "note", "this")]
    assert excerpt([(1, "x = f(\n"), (2, "\té, a)"), (3, "")], marks) == [
        [1, [["x = ", ""], ["f(", "main"]], []],
        [2, [["    ", ""], ["é, a)", "main"]], [[8 - 1, "this"]]],
    ]


def test_the_largest_run_stays_small() -> None:
    """1,000 modules by 500 steps, in the worst case: hardly two columns are equal."""
    text = of_run(record(modules=1000, steps=500))
    assert len(text) < 5_000_000
    starts = data_of(text)["series"]["starts"]
    assert starts[0] == 0 and len(starts) >= 60


def test_a_comparison_has_the_lines_of_both_records() -> None:
    data = data_of(PAGES["compare"])
    assert data["title"] == f"a.json and {HOSTILE}.json"
    first, second = data["beyond"]
    mine, its = first["frames"]
    assert ["x * 2", "main"] in mine[1][1]
    assert HOSTILE in "".join(text for text, _ in its[2][1])
    assert (first["place"], first["counterpart"], first["difference"]) == ("model.py:3", "model.py:2", 0.5)
    assert (second["difference"], second["phase"]) == (None, "backward")
    assert [row["beyond"] for row in data["sites"]] == [1, 0, 0], "the farthest beyond rounding comes first"
    assert data["losses"] == [[0, 1.0, 1.01], [1, 2.0, None]]
    assert data["explained"] == [["float32", "float16", 3, 0.001, 0.002]]
    assert (data["alone"][0]["name"], data["alone"][0]["op"]) == ("a.json", "mul")
    assert dict(data["facts"])["that do not differ"] == 3


def test_a_large_comparison_stays_small() -> None:
    text = of_comparison(comparison(sites=5000))
    data = data_of(text)
    assert (len(data["sites"]), data["left_out"]) == (2000, [0, 3000, 0])
    assert len(text) < 2_500_000


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
def test_a_comparison_in_a_browser(tmp_path: Path) -> None:
    wrong, alike, large = (tmp_path / f"{name}.html" for name in ("wrong", "alike", "large"))
    wrong.write_text(PAGES["compare"], encoding="utf-8")
    alike.write_text(PAGES["alike"], encoding="utf-8")
    large.write_text(of_comparison(comparison(sites=2000)), encoding="utf-8")
    with Browser() as browser:
        browser.open(wrong)
        assert browser.said == []
        assert HOSTILE in browser.run("document.body.innerText")
        assert browser.run("document.querySelectorAll('img, body script').length") == 2
        start = browser.run("document.querySelector('.start').innerText")
        assert start.startswith("Where it is more than rounding first\n")
        assert "50%; rounding explains 0.1%, and its operands differ by 0" in start
        captions = "[...document.querySelectorAll('.start figcaption')].map((one) => one.innerText)"
        assert browser.run(captions) == ["a.json", f"{HOSTILE}.json"]
        assert browser.run("document.querySelectorAll('article.finding').length") == 2
        assert "is finite in one run only" in browser.run("document.getElementById('f1').innerText")
        assert browser.run("[...document.querySelectorAll('input, select')].every((one) => one.labels.length === 1)")
        assert browser.run(
            "[...document.querySelectorAll('section')].every((one) => one.querySelector('h2').id === one.getAttribute('aria-labelledby'))"
        )
        assert browser.run(
            "[...document.querySelectorAll('table')].every((one) => one.caption && one.querySelector('thead th[scope=col]') && one.querySelector('tbody th[scope=row]'))"
        )
        cells = "[...document.querySelectorAll('#sites tbody tr')].map((row) => row.cells[3].innerText)"
        assert browser.run(cells) == ["50%", "25%", "17%"]
        head = "document.querySelectorAll('#sites thead button')[3]"
        for order in (["50%", "25%", "17%"], ["17%", "25%", "50%"]):
            browser.run(f"{head}.focus()")
            for kind in ("keyDown", "keyUp"):
                browser.call(
                    "Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r", windowsVirtualKeyCode=13
                )
            assert browser.run(cells) == order
        browser.run("document.querySelector('#sites .opener').click()")
        assert browser.run("document.querySelectorAll('#sites .detail figure').length") >= 1
        browser.run("document.querySelectorAll('#sites .choice button')[1].click()")
        assert browser.run("document.querySelector('#sites .tally').innerText") == "1 of 3 rows"
        for scheme in ("light", "dark"):
            browser.prefer(scheme)
            browser.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            back = "getComputedStyle(document.querySelector('.start')).backgroundColor"
            assert (sum(map(int, re.findall(r"\d+", browser.run(back))[:3])) > 600) == (scheme == "light")

        browser.open(alike)
        assert browser.said == []
        start = browser.run("document.querySelector('.start.ok').innerText")
        assert start == (
            "Nothing is beyond rounding\n\nRounding explains each of 12 results, of which the farthest apart differ by 0.2%"
        )
        assert browser.run("document.querySelector('#beyond')") is None

        browser.open(large)
        assert browser.said == []
        assert browser.run("document.querySelectorAll('*').length") < 3000, "what is long is not all drawn"


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
def test_in_a_browser(tmp_path: Path) -> None:
    hostile, run, large = (tmp_path / f"{name} ü.html" for name in ("check", "run", "large"))
    hostile.write_text(PAGES["check"], encoding="utf-8")
    run.write_text(PAGES["run"], encoding="utf-8")
    large.write_text(of_run(record(modules=1000, steps=100)), encoding="utf-8")
    with Browser() as browser:
        browser.open(hostile)
        assert browser.said == []
        assert HOSTILE in browser.run("document.body.innerText")
        assert browser.run("document.querySelectorAll('img, body script').length") == 2

        browser.open(run)
        assert browser.said == []
        assert browser.run("document.querySelector('.start h2').innerText").startswith(
            "x * 2 (mul) in layers.2 overflowed"
        )
        assert "layers.2 stayed below 2², 2³, 2⁴, 2⁵, 2⁶" in browser.run("document.querySelector('.start').innerText")
        named = browser.run("[...document.querySelectorAll('input, select')].every((one) => one.labels.length === 1)")
        assert named, "each field has a label"
        assert browser.run(
            "[...document.querySelectorAll('section')].every((one) => one.querySelector('h2').id === one.getAttribute('aria-labelledby'))"
        )
        assert browser.run(
            "[...document.querySelectorAll('table')].every((one) => one.caption && one.querySelector('thead th[scope=col]') && one.querySelector('tbody th[scope=row]'))"
        )
        shares = browser.run("document.querySelector('#magnitudes table tbody tr').innerText").split("\t")
        assert shares[0] == "layers.0" and shares[4:] == ["75%", "100%", "100%", "4.0%"], (
            "2**-25 and less is 0 in float16"
        )
        press = "document.querySelector('.heat').dispatchEvent(new KeyboardEvent('keydown', {key: '%s'}))"
        for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
            browser.run(press % key)
        assert browser.run("document.getElementById('readout').innerText").startswith(
            "layers.2 step 2: 2 results in float16"
        )
        for _ in range(4):
            browser.run(press % "ArrowRight")
        assert "Born here: overflow" in browser.run("document.getElementById('readout').innerText")
        for scheme in ("light", "dark"):
            browser.prefer(scheme)
            browser.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            back = "getComputedStyle(document.body).backgroundColor"
            assert (sum(map(int, re.findall(r"\d+", browser.run(back)))) > 600) == (scheme == "light")

        ranked = record()
        ranked.ranks, ranked.world, ranked.events[0].rank = [0, 1], 2, 1
        run.write_text(of_run(ranked), encoding="utf-8")
        browser.open(run)
        assert browser.said == []
        assert "6\nrank 1" in browser.run("document.querySelector('#modules tbody tr').innerText")

        browser.open(large)
        assert browser.said == []
        assert browser.run("document.querySelectorAll('*').length") < 3000, "what is long is not all drawn"
        find = "(() => { const field = document.querySelector('#modules input'); field.value = 'layers.99'; field.dispatchEvent(new Event('input')); })()"
        browser.run(find)
        assert browser.run("document.querySelector('#modules .tally').innerText") == "11 of 1,000 modules"
        assert browser.run("document.querySelectorAll('#modules tbody')[1].rows.length") == 15
