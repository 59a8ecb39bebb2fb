"""`generate` runs the model on token ids; the library is a sketch of it here."""

from __future__ import annotations

import ast
import textwrap
from typing import TYPE_CHECKING

import pytest

from dtlint.infer.interproc.disk import Disk
from dtlint.infer.interproc.reading import read

if TYPE_CHECKING:
    from pathlib import Path

LIBRARY = {
    "__init__.py": "",
    "generation/__init__.py": "",
    "cache_utils.py": """
        import torch
        class DynamicCache:
            def __init__(self):
                self.keys = None
            def update(self, keys):
                self.keys = keys if self.keys is None else torch.cat([self.keys, keys], dim=-2)
                return self.keys
    """,
    "generation/utils.py": """
        from transformers.cache_utils import DynamicCache
        def logged(function):
            def wrapped(*args, **kwargs):
                result = function(*args, **kwargs)
                return result
            return wrapped
        class GenerationMixin:
            def prepare_inputs_for_generation(self, input_ids, **kwargs):
                return {"input_ids": input_ids, **kwargs}
            @logged
            def generate(self, inputs=None, generation_config=None, **kwargs):
                raise NotImplementedError
    """,
}
DECODER = """
    import torch
    from torch import nn
    from transformers.generation.utils import GenerationMixin
    class Net(nn.Module, GenerationMixin):
        def __init__(self):
            super().__init__()
            self.embed, self.layer = nn.Embedding(8, 2), nn.Linear(2, 2)
        def forward(self, input_ids, attention_mask=None, past_key_values=None, images=None, bias=None):
            hidden = self.embed(input_ids)
            keys = self.layer(hidden)
            if past_key_values is not None:
                keys = past_key_values.update(keys)
            masked = keys * attention_mask[..., None]
            if images is not None:
                masked = masked + images * 2
            return masked
    net = Net().to(torch.bfloat16)
    ids = torch.ones(1, 2, dtype=torch.int64)
"""
ENCODER_DECODER = """
    import torch
    from torch import nn
    from transformers.generation.utils import GenerationMixin
    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(8, 2)
        def forward(self, input_ids, attention_mask=None):
            return self.embed(input_ids)
    class Net(nn.Module, GenerationMixin):
        def __init__(self):
            super().__init__()
            self.encoder, self.embed = Encoder(), nn.Embedding(8, 2)
        def get_encoder(self):
            return self.encoder
        def forward(self, input_ids=None, decoder_input_ids=None, encoder_outputs=None, attention_mask=None):
            return self.embed(decoder_input_ids) + encoder_outputs
    net = Net().half()
    ids = torch.ones(1, 2, dtype=torch.int64)
"""


def _found(tmp_path: Path, text: str) -> dict[str | None, frozenset[str] | None]:
    for name, content in LIBRARY.items():
        path = tmp_path / "transformers" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(content))
    source = textwrap.dedent(text) + "net.eval()\n"
    program = tmp_path / "program.py"
    program.write_text(source)
    return {
        ast.get_source_segment(source, node): getattr(value, "dtypes", None)
        for node, module, value in read(program, [tmp_path], Disk()).facts.tensors()
        if getattr(module, "path", None) == program
    }


def test_the_model_is_run_with_what_is_passed_on_and_with_a_cache(tmp_path: Path) -> None:
    call = "out = net.generate(ids, attention_mask=torch.ones_like(ids), images=torch.ones(1).half(), do_sample=False)"
    found = _found(tmp_path, f"{DECODER}    {call}\n    print(out + 1)\n")
    assert found["out + 1"] == {"int64"}
    assert found["self.embed(input_ids)"] == {"bfloat16"}
    assert found["past_key_values.update(keys)"] == {"bfloat16"}
    assert found["keys * attention_mask[..., None]"] == {"bfloat16"}
    assert found["images * 2"] == {"float16"}


def test_what_an_encoder_gives_reaches_the_decoder(tmp_path: Path) -> None:
    found = _found(tmp_path, f"{ENCODER_DECODER}    out = net.generate(ids)\n    print(out + 1)\n")
    assert found["out + 1"] == {"int64"}
    assert found["self.embed(decoder_input_ids) + encoder_outputs"] == {"float16"}


@pytest.mark.parametrize("option", ["return_dict_in_generate=True", "generation_config=object()", "**settings"])
def test_what_asks_for_more_than_ids_may_give_anything(tmp_path: Path, option: str) -> None:
    text = f"{DECODER}    import json\n    settings = json.loads('')\n    out = net.generate(ids, {option})\n    print(out + 1)\n"
    assert not _found(tmp_path, text).get("out + 1")
