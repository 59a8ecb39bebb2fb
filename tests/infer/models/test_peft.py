"""What get_peft_model gives computes as the model did; read without peft."""

from __future__ import annotations

import ast
import textwrap
from typing import TYPE_CHECKING

from dtlint.infer.interproc.disk import Disk
from dtlint.infer.interproc.reading import read
from tests.infer.programs import known

if TYPE_CHECKING:
    from pathlib import Path


def test_a_model_with_adapters_gives_what_it_gave() -> None:
    program = """
        import peft
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(2, 2)
            def forward(self, x):
                return self.fc(x)
        net = peft.get_peft_model(Net().bfloat16(), peft.LoraConfig(r=2))
        net.print_trainable_parameters()
        x = torch.ones(2, dtype=torch.bfloat16)
        y = net(x)
        z = net.merge_and_unload()(x)
    """
    found = known(program)
    assert found["net(x)"] == "bfloat16"
    assert found["net.merge_and_unload()(x)"] == "bfloat16"


def test_what_is_around_a_model_is_no_object_of_its_class() -> None:
    program = """
        import copy, peft
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(2, 2)
        net = peft.get_peft_model(Net(), peft.LoraConfig(r=2))
        a = torch.ones(2).half() if isinstance(net, peft.PeftModel) else torch.ones(2)
        b = torch.ones(2).half() if isinstance(net, Net) else torch.ones(2)
        c = copy.deepcopy(net).double().merge_and_unload().fc.weight * 2
        print(a, b, c)
    """
    found = known(program)
    assert found["a"] == found["b"] == "float16|float32"
    assert found["c"] == "float64"


LIBRARY = {
    "__init__.py": "from peft.config import LoraConfig, PromptTuningConfig\nfrom peft.mapping_func import get_peft_model\n",
    "config.py": """
        class PeftConfig:
            pass
        class LoraConfig(PeftConfig):
            pass
        class PromptLearningConfig(PeftConfig):
            pass
        class PromptTuningConfig(PromptLearningConfig):
            pass
    """,
    "mapping_func.py": "def get_peft_model(model, peft_config): raise NotImplementedError\n",
}
PROGRAM = """
    import torch
    from torch import nn
    import peft
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 2)
            self.embed = nn.Embedding(2, 2)
        def forward(self, input_ids=None, attention_mask=None, inputs_embeds=None):
            if inputs_embeds is None:
                inputs_embeds = self.embed(input_ids)
            weight = attention_mask + 1
            return self.fc(inputs_embeds)
    ids = torch.ones(2, dtype=torch.long)
    net = peft.get_peft_model(Net().half(), peft.{config}())
    out = net(input_ids=ids, attention_mask=ids) + 1
    print(out)
    net.eval()
"""


def test_a_model_with_learnt_prompts_is_given_what_the_program_does_not_give(tmp_path: Path) -> None:
    for name, content in LIBRARY.items():
        path = tmp_path / "peft" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(content))
    found: dict[str, dict[str | None, frozenset[str] | None]] = {}
    for config in ("LoraConfig", "PromptTuningConfig"):
        source = textwrap.dedent(PROGRAM).format(config=config)
        program = tmp_path / "program.py"
        program.write_text(source)
        found[config] = {
            ast.get_source_segment(source, node): getattr(value, "dtypes", None)
            for node, _, value in read(program, [tmp_path], Disk()).facts.tensors()
        }
    assert found["LoraConfig"]["attention_mask + 1"] == {"int64"}
    assert found["PromptTuningConfig"]["attention_mask + 1"] == {"int64", "float32"}
    assert found["PromptTuningConfig"]["self.fc(inputs_embeds)"] == {"float16"}
    assert found["PromptTuningConfig"]["out"] == {"float16"}
