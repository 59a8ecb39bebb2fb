"""The hunt for a NaN: for each planted bug, the first lines of the report name the operator, the line and the cause."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from dtlint.report.trace_text import write_trace
from dtlint.trace.export import record_of
from dtlint.trace.judge import judge
from dtlint.trace.mode import Tracer

TRAIN = Path(__file__).resolve().parents[2] / "fixtures" / "train"

BUGS = {
    "transformer_mask": (
        "error[DT901]",
        "`scores + mask` (add) in layers.0.attention overflowed float16 in step 1, inputs reach 65504: it spread to",
        "reached the loss, gradients, weights and a number the program read",
    ),
    "rms_norm_half": (
        "warning[DT901]",
        "`x.pow(2)` (pow) in blocks.0.norm overflowed float16 in step 1, inputs reach 436.5: it spread to",
        "none of them the loss, a gradient or a weight",
    ),
    "adam_eps_half": (
        "error[DT902]",
        "parameter embedding.weight, in `optimizer.step()`, gave NaN in step 1, since the optimizer's eps of 1e-08 is 0"
        " in float16: it spread to",
        "reached the loss, gradients, weights and a number the program read",
    ),
    "exploding_logits": (
        "error[DT901]",
        "`image * scale` (mul) in TwoTowers overflowed float16 in step 5, inputs reach 1.3325e+05: it spread to",
        "reached the loss, gradients, weights and a number the program read",
    ),
    "bad_batch": (
        "error[DT909]",
        "data from outside (a batch or a constant) held NaN when `batch - mean` (sub) used it in step 4: it spread to",
        "reached the loss, gradients, weights and a number the program read",
    ),
    "harmless_log": (
        "info[DT903]",
        "`torch.log(distance.float() / exact)` (log) in attention met its pole in step 1 and gave -inf: it spread to",
        "none of them the loss, a gradient or a weight",
    ),
}


def report(fixture: str) -> list[str]:
    file = TRAIN / f"{fixture}.py"
    tracer = Tracer()
    with tracer:
        exec(compile(file.read_text(), str(file), "exec"), {"__name__": "__main__"})
    record = record_of(tracer, [str(file)], 0)
    out = io.StringIO()
    write_trace(record, judge(record), out)
    return out.getvalue().splitlines()


@pytest.mark.parametrize(("fixture", "expected"), BUGS.items(), ids=BUGS)
def test_the_first_lines_name_the_culprit(
    fixture: str, expected: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", [fixture])
    finding, what, fate = expected
    code = finding[-6:-1]
    source = (TRAIN / f"{fixture}.py").read_text().splitlines()
    (line,) = [number for number, text in enumerate(source, 1) if "# error" in text and code in text]
    head, title, where, told, *_ = report(fixture)
    assert head.startswith("dtlint trace: ")
    assert title == "Non-finite values, where they began:"
    assert where.strip().startswith(finding)
    assert where.endswith(f"{fixture}.py:{line}")
    assert told.strip().startswith(what)
    assert told.endswith(fate)
