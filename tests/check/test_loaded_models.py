"""Models that diffusers loads, trained with accelerate: what is found in a training script beside a package of that name."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.check.test_project import found

PACKAGE = {
    "diffusers/__init__.py": """
        from .models.modeling_utils import ModelMixin
        from .models.unet import UNet
        from .pipelines.pipeline_utils import DiffusionPipeline
    """,
    "diffusers/models/__init__.py": "",
    "diffusers/models/modeling_utils.py": """
        import json
        import torch

        class ModelMixin(torch.nn.Module):
            @classmethod
            def from_pretrained(cls, path, **kwargs):
                with open(path) as file:
                    return cls(**json.load(file))

            def add_adapter(self, config):
                from peft import inject_adapter_in_model
                inject_adapter_in_model(config, self)
                if not any(hasattr(module, "lora") for _, module in self.named_modules()):
                    raise ValueError("no adapter")
    """,
    "diffusers/models/unet.py": """
        import torch
        from .modeling_utils import ModelMixin

        class UNet(ModelMixin):
            def __init__(self, width):
                super().__init__()
                self.layer = torch.nn.Linear(width, width)

            def forward(self, x):
                return self.layer(x)
    """,
    "diffusers/pipelines/__init__.py": "",
    "diffusers/pipelines/pipeline_utils.py": """
        class DiffusionPipeline:
            @classmethod
            def from_pretrained(cls, path, **kwargs):
                return cls(**kwargs)

            def to(self, *args, **kwargs):
                for module in vars(self).values():
                    module.to(*args, **kwargs)
                return self
    """,
}
SCRIPT = """
    import argparse
    import torch
    from accelerate import Accelerator
    from diffusers import DiffusionPipeline, UNet

    def main():
        parser = argparse.ArgumentParser()
        parser.add_argument("--model", required=True)
        parser.add_argument("--prompt", default=None)
        parser.add_argument("--mixed_precision", default=None, choices=["no", "fp16", "bf16"])
        args = parser.parse_args()
        accelerator = Accelerator(mixed_precision=args.mixed_precision)
        unet = UNet.from_pretrained(args.model)
        weight_dtype = torch.float32
        if accelerator.mixed_precision == "fp16":
            weight_dtype = torch.float16
        elif accelerator.mixed_precision == "bf16":
            weight_dtype = torch.bfloat16
        unet.requires_grad_(False)
        unet.to(accelerator.device, dtype=weight_dtype)
        unet.add_adapter({})
        {upcast}
        optimizer = torch.optim.SGD(filter(lambda p: p.requires_grad, unet.parameters()), lr=0.1)
        unet, optimizer = accelerator.prepare(unet, optimizer)
        for epoch in range(10):
            for step in range(10):
                loss = unet(torch.rand(2, 4)).mean()
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            if args.prompt is not None:
                pipeline = DiffusionPipeline.from_pretrained(args.model, unet=accelerator.unwrap_model(unet))
                pipeline.to({device})

    if __name__ == "__main__":
        main()
"""
UPCAST = """
        if args.mixed_precision == "fp16":
            for param in unet.parameters():
                if param.requires_grad:
                    param.data = param.to(torch.float32)
"""


def judged(folder: Path, upcast: str, device: str) -> set[str]:
    """The findings in a training script."""
    script = SCRIPT.replace("{upcast}", upcast.strip()).replace("{device}", device)
    for name, text in {**PACKAGE, "train.py": script}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    return {
        f"{one.split()[1]} {script.strip().splitlines()[int(one.split()[0].split(':')[1]) - 2].strip()}"
        for one in found(folder)
    }


@pytest.mark.parametrize(
    ("upcast", "device", "expected"),
    [
        ("", "accelerator.device", {"DT206 unet.add_adapter({})"}),
        (
            UPCAST,
            "accelerator.device, dtype=weight_dtype",
            {"DT112 pipeline.to(accelerator.device, dtype=weight_dtype)"},
        ),
        (UPCAST, "accelerator.device", set()),
    ],
)
def test_adapters_of_a_loaded_model(upcast: str, device: str, expected: set[str], tmp_path: Path) -> None:
    """Adapters are of the dtype that the model was cast to, until those that are trained are cast back."""
    assert judged(tmp_path, upcast, device) == expected
