"""Models that transformers loads: what is known of their weights, as steps of a GradScaler show it."""

from __future__ import annotations

import pytest

from dtlint import discover
from dtlint.check.file import check_source
from dtlint.config import Settings
from dtlint.source.file import Source

PROGRAM = """
import torch
import transformers

def train(batches):
    model = transformers.{loaded}
    {then}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    for batch in batches:
        scaler.scale(model(**batch).loss).backward()
        scaler.step(optimizer)
        scaler.update()
"""


def found(loaded: str, then: str) -> list[str]:
    """The lines from which on trained weights are float16, or that step them."""
    text = PROGRAM.replace("{loaded}", loaded).replace("{then}", then)
    rules = [discover()["DT206"]]
    checked = check_source(Source.from_bytes(text.encode(), "train.py"), rules, Settings())
    assert list(checked.crashes) == []
    return [text.splitlines()[one.location.span.line - 1].strip() for one in checked.diagnostics]


@pytest.mark.parametrize(
    ("loaded", "then"),
    [
        ("BertModel.from_pretrained('x')", "model.half()"),
        ("AutoModelForCausalLM.from_pretrained('x', device_map='auto')", "model.to('cuda', dtype=torch.float16)"),
        ("CLIPTextModelWithProjection.from_pretrained('x').requires_grad_(False).half()", "model.add_adapter({})"),
    ],
)
def test_weights_that_are_cast_are_float16(loaded: str, then: str) -> None:
    assert found(loaded, then) == [then]


def test_weights_that_are_loaded_in_float16_are_trained_so_whatever_parts_stay_in_float32() -> None:
    loaded = "T5EncoderModel.from_pretrained('x', torch_dtype=torch.float16)"
    assert found(loaded, "model.train()") == [f"model = transformers.{loaded}"]


@pytest.mark.parametrize(
    ("loaded", "then"),
    [
        ("BertModel.from_pretrained('x')", "model.cuda()"),
        ("BertModel.from_pretrained('x', load_in_8bit=True)", "model.half()"),
        ("BertModel.from_pretrained('x', **settings)", "model.half()"),
        ("BertTokenizer.from_pretrained('x')", "model.half()"),
        ("BertModel.from_pretrained('x').half()", "model.requires_grad_(False)"),
        ("BertModel.from_pretrained('x').half()", "peft.get_peft_model(model, {})"),
    ],
)
def test_what_may_be_otherwise_is_not_told(loaded: str, then: str) -> None:
    """Of the checkpoint's dtype, quantised, no model at all, or frozen beside other weights."""
    assert found(loaded, f"import peft; {then}") == []
