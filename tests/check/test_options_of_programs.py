"""A program is judged as it runs by default, and with each option that has few values: what is found in small programs."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.check.test_project import found

NET = """
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self, dtype):
            super().__init__()
            self.dtype = dtype
            self.body = nn.Linear(4, 4).to(dtype)
            self.norm = nn.LayerNorm(4)
            self.head = nn.Linear(4, 4)

        def forward(self, x):
            h = self.body(x.to(self.dtype)){back}
            return self.head(h)
"""
BACK = ".to(x.dtype)"


def written(folder: Path, program: str, back: str = "") -> Path:
    """A project of a net, and of a program that runs it."""
    (folder / "net.py").write_text(textwrap.dedent(NET).replace("{back}", back), encoding="utf-8")
    (folder / "run.py").write_text(textwrap.dedent(program), encoding="utf-8")
    return folder


SWITCH = """
    import argparse
    import torch
    from net import Net

    def main():
        parser = argparse.ArgumentParser()
        group = parser.add_argument_group("precision")
        group.add_argument("--fp16", action="store_true")
        args = parser.parse_args()
        Net(torch.float16 if args.fp16 else torch.float32)(torch.rand(3, 4))

    if __name__ == "__main__":
        main()
"""
CHOICE = """
    import argparse
    import torch
    from net import Net

    parser = argparse.ArgumentParser()
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    args, _ = parser.parse_known_args()

    def main():
        Net({"fp32": torch.float32, "bf16": torch.bfloat16}[args.precision])(torch.rand(3, 4))

    main()
"""
TABLE = """
    import argparse
    import torch
    from net import Net

    def defaults():
        made = dict(width=4, depth=2, heads=1, rate=0.1, name="", seed=0, steps=3, warmup=1, decay=0.0, scale=1.0)
        made.update(beta=0.9, gamma=1.0, data="", resume="", use_fp16=False, shuffle=True)
        return made

    def boolean(text):
        return text if isinstance(text, bool) else text.lower() == "true"

    def main():
        parser = argparse.ArgumentParser()
        for key, value in defaults().items():
            parser.add_argument(f"--{key}", default=value, type=boolean if isinstance(value, bool) else type(value))
        args = parser.parse_args()
        settings = {key: getattr(args, key) for key in defaults()}
        net = Net(torch.float16 if settings["use_fp16"] else torch.float32)
        net(torch.rand(3, settings["width"]))

    if __name__ == "__main__":
        main()
"""
COMPARED = """
    import argparse
    import torch
    from net import Net

    def main():
        parser = argparse.ArgumentParser()
        parser.add_argument("--precision", type=str, default="float32")
        args = parser.parse_args()
        dtype = torch.float32
        if args.precision == "half":
            dtype = torch.float16
        Net(dtype)(torch.rand(3, 4))

    if __name__ == "__main__":
        main()
"""
NEEDED = """
    import argparse
    import torch
    from net import Net

    def main():
        parser = argparse.ArgumentParser()
        parser.add_argument("--data", type=str, default=None)
        parser.add_argument("--folder", type=str, default=None)
        for name in ("shuffle", "resume", "push", "verbose", "quiet", "compile", "flip", "crop"):
            parser.add_argument("--" + name, action="store_true")
        parser.add_argument("--mixed_precision", default=None, choices=["no", "fp16"])
        args = parser.parse_args()
        if args.data is None and args.folder is None:
            raise ValueError("Need data.")
        Net(torch.float16 if args.mixed_precision == "fp16" else torch.float32)(torch.rand(3, 4))

    if __name__ == "__main__":
        main()
"""
TOGETHER = """
    import argparse
    import torch
    from net import Net

    def main():
        parser = argparse.ArgumentParser()
        parser.add_argument("--amp", action="store_true")
        parser.add_argument("--amp-dtype", type=str, default="float32")
        args = parser.parse_args()
        dtype = torch.float32
        if args.amp:
            assert args.amp_dtype in ("float32", "bfloat16")
            if args.amp_dtype == "bfloat16":
                dtype = torch.bfloat16
        Net(dtype)(torch.rand(3, 4))

    if __name__ == "__main__":
        main()
"""
PROGRAMS = {
    "a switch": SWITCH,
    "a choice": CHOICE,
    "options by a table": TABLE,
    "what the program compares an option with": COMPARED,
    "beside an option that it cannot do without": NEEDED,
    "two options together": TOGETHER,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_an_option_leads_to_is_found(name: str, tmp_path: Path) -> None:
    assert {one.split()[1] for one in found(written(tmp_path, PROGRAMS[name]))} == {"DT302"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_goes_well_with_each_option_is_silent(name: str, tmp_path: Path) -> None:
    """Weight and input depend on the same option: no run mixes the dtypes that they can have."""
    assert found(written(tmp_path, PROGRAMS[name], BACK)) == set()


def test_by_default_a_program_does_not_do_what_it_does_when_told(tmp_path: Path) -> None:
    """A checkpoint, of which nothing is known, takes the place of the weights only where one is named."""
    program = """
        import argparse
        import torch
        from net import Net

        def main():
            parser = argparse.ArgumentParser()
            parser.add_argument("--resume", default=None)
            args = parser.parse_args()
            net = Net(torch.float32).to(torch.float16)
            if args.resume:
                net = torch.load(args.resume)
            net.head(torch.rand(3, 4))

        if __name__ == "__main__":
            main()
    """
    assert "run.py:13 DT302" in found(written(tmp_path, program, BACK))
    always = program.replace("default=None", "required=True").replace("if args.resume:", "if len(args.resume) > 1:")
    assert "run.py:13 DT302" not in found(written(tmp_path, always, BACK))


@pytest.mark.parametrize("count", [1, 100])
def test_a_function_that_is_left_out_may_have_cast_its_module(count: int, tmp_path: Path) -> None:
    """More layers than a function is read for: those that it was not read for are not known to be float32."""
    program = """
        import torch
        from torch import nn

        def halve(layer):
            if isinstance(layer, nn.Linear):
                layer.weight.data = layer.weight.data.half()
                layer.bias.data = layer.bias.data.half()

        def main():
            net = nn.Sequential(LAYERS)
            net.apply(halve)
            net(torch.rand(3, 4).half())

        if __name__ == "__main__":
            main()
    """.replace("LAYERS", ", ".join(["nn.Linear(4, 4)"] * count))
    (tmp_path / "run.py").write_text("from helper import x\n" + textwrap.dedent(program), encoding="utf-8")
    (tmp_path / "helper.py").write_text("x = 1\n", encoding="utf-8")
    assert found(tmp_path) == set()
