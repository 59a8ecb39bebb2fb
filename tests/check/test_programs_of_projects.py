"""What a program of a project does is told, wherever it stands: small projects, and what is found in them."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from dtlint.check.run import run
from dtlint.config import Configuration
from tests.check.test_project import RULES, found

NET = """
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(10, 8)
            self.head = nn.Linear(8, 10)

        def forward(self, tokens, targets=None):
            logits = self.head(self.table(tokens))
            return logits if targets is None else F.cross_entropy(logits.view(-1, 10), targets.view(-1))
"""
DATA = """
    import numpy as np
    import torch
    from torch.utils.data.dataset import Dataset

    class Tokens(Dataset):
        def __init__(self, path):
            self.tokens = np.memmap(path, dtype=np.uint16, mode="r")

        def __len__(self):
            return len(self.tokens) - 8

        def __getitem__(self, place):
            piece = torch.from_numpy(self.tokens[place:place + 9].astype(np.{dtype}))
            return piece[:-1], piece[1:]
"""
LOOP = """
    from torch.utils.data.dataloader import DataLoader

    def train(model, data, device):
        batches = iter(DataLoader(data, batch_size=2))
        x, y = [each.to(device) for each in next(batches)]
        return model(x, y)
"""
RUN = """
    import torch
    from lib.data import Tokens
    from lib.loop import train
    from lib.net import Net

    if __name__ == "__main__":
        train(Net(), Tokens("tokens.bin"), "cuda" if torch.cuda.is_available() else "cpu")
"""


def findings(folder: Path, files: dict[str, str]) -> set[str]:
    """What is found in a project."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    return found(folder)


def library(dtype: str, *, package: bool = True) -> dict[str, str]:
    """Three modules of one package; with a plain folder around them where that is enough."""
    around = {"lib/__init__.py": ""} if package else {}
    return {**around, "lib/net.py": NET, "lib/data.py": DATA.replace("{dtype}", dtype), "lib/loop.py": LOOP}


WRONG = {"float32": "lib/net.py:13 DT306", "int32": "lib/net.py:14 DT307", "int64": None}


@pytest.mark.parametrize("dtype", WRONG)
@pytest.mark.parametrize("package", [True, False])
@pytest.mark.parametrize("place", ["run.py", "scripts/small/run.py"])
def test_a_program_is_run_with_the_packages_of_the_folders_around_it(
    tmp_path: Path, place: str, package: bool, dtype: str
) -> None:
    expected = WRONG[dtype]
    if place != "run.py" and not package:
        (tmp_path / "pyproject.toml").touch()
    files = {**library(dtype, package=package), place: RUN}
    assert findings(tmp_path, files) == (set() if expected is None else {expected})


def test_a_program_says_where_it_imports_from(tmp_path: Path) -> None:
    files = {f"code/{name}": text for name, text in library("int32").items()}
    path = "import sys\nfrom pathlib import Path\nsys.path.insert(0, str(Path(__file__).parent.parent / 'code'))\n"
    assert findings(tmp_path, {**files, "tools/run.py": path + textwrap.dedent(RUN)}) == {"code/lib/net.py:14 DT307"}


@pytest.mark.parametrize("dtype", WRONG)
def test_text_that_is_run_gives_settings_other_values(tmp_path: Path, dtype: str) -> None:
    """Modules, functions and classes stay what they are; in what dtype a region computes is not known then."""
    program = """
        import torch
        from lib.data import Tokens
        from lib.net import Net
        from torch.utils.data import DataLoader

        device = "cpu"
        dtype = "bfloat16"
        exec(open("settings.py").read())
        region = torch.autocast(device, {"float32": torch.float32, "bfloat16": torch.bfloat16}[dtype])
        model = Net().to(device)
        for x, y in DataLoader(Tokens("tokens.bin"), batch_size=2):
            with region:
                loss = model(x.to(device), y.to(device))
            loss.backward()
    """
    expected = WRONG[dtype]
    assert findings(tmp_path, {**library(dtype), "train.py": program}) == (set() if expected is None else {expected})


MODELS = """
    import torch
    from torch import nn

    class Small(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv1d(4, 4, 3)

        def forward(self, x):
            return self.conv(x.permute(0, 2, 1)).transpose(1, 2)

    class Large(Small):
        def __init__(self):
            super().__init__()
            self.last = nn.Conv1d(4, 4, 3)

        def forward(self, x):
            return self.last(super().forward(x).permute(0, 2, 1))
"""
CHOOSING = """
    import sys
    import torch
    from torch import nn
    from models import Large, Small
    from readers import batches

    def build(name, several):
        model = {{"small": Small, "large": Large}}[name](){cast}
        return nn.DataParallel(model) if several else model

    model = build(sys.argv[1], len(sys.argv) > 2)
    model = model{cast_later}
    for batch in batches(sys.argv[-1]):
        x = batch["x"].float().detach()
        print(model(x[:, :16]))
"""
READERS = """
    import pickle

    def batches(path):
        with open(path, "rb") as file:
            yield from pickle.load(file)
"""


@pytest.mark.parametrize(
    ("cast", "cast_later", "expected"),
    [
        (".half()", "", {"models.py:11 DT302"}),
        ("", ".double()", {"models.py:11 DT302"}),
        (".half()", ".float()", set()),
        (".double()", ".to(torch.float32)", set()),
        ("", "", set()),
    ],
)
def test_one_of_several_models_is_cast_whichever_it_is(
    tmp_path: Path, cast: str, cast_later: str, expected: set[str]
) -> None:
    program = CHOOSING.replace("{cast}", cast).replace("{cast_later}", cast_later).replace("{{", "{").replace("}}", "}")
    assert findings(tmp_path, {"models.py": MODELS, "readers.py": READERS, "main.py": program}) == expected


TRAINED = """
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(4)])
            self.norms = nn.ModuleList([nn.LayerNorm(8) for _ in range(4)])
            self.wide = nn.Sequential(*[nn.Linear(8, 8) for _ in range(8)])
            self.head = nn.Linear(8, 1)

        def forward(self, x):
            for layer, norm in zip(self.layers, self.norms):
                x = norm(layer(x))
            return self.head(self.wide(x))

        def optimizer(self{settings}):
            known = {name: each for name, each in self.named_parameters() if each.requires_grad}
            decayed = [each for name, each in known.items() if each.dim() >= 2]
            others = [each for name, each in known.items() if each.dim() < 2]
            groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
            return torch.optim.{optimizer}
"""
TRAINING = """
    import sys
    import torch
    from net import Net

    def train(large, steps):
        if large:
            model = Net()
        else:
            model = Net()
        model = model{cast}
        optimizer = model.optimizer()
        for step in range(steps):
            optimizer.zero_grad()
            x = torch.randn(4, 8, dtype=next(model.parameters()).dtype)
            loss = model(x).pow(2).mean()
            loss.backward()
            optimizer.step()

    if __name__ == "__main__":
        train(len(sys.argv) > 1, 10)
"""


def trained(optimizer: str, cast: str, settings: str = "") -> dict[str, str]:
    """A program that casts a model, and the module that makes its optimizer."""
    net = TRAINED.replace("{optimizer}", optimizer).replace("{settings}", settings)
    return {"net.py": net, "main.py": TRAINING.replace("{cast}", cast)}


@pytest.mark.parametrize(
    ("optimizer", "cast", "message"),
    [
        ("AdamW(groups, lr=1e-3)", ".half()", "eps is 0"),
        ("AdamW(groups, lr=1e-3, eps=1e-4)", ".half()", "below 2e-4"),
        ("SGD(groups, lr=1e-3)", ".to(torch.bfloat16)", "below 1e-3"),
        ("AdamW(groups, lr=1e-3)", ".half().float()", None),
        ("AdamW(groups, lr=1e-3)", "", None),
        ("AdamW([*groups, {'params': extra}], lr=1e-3)", ".half()", None),
    ],
)
def test_an_optimizer_steps_half_weights_that_another_file_has_cast(
    tmp_path: Path, optimizer: str, cast: str, message: str | None
) -> None:
    settings = ", extra=sys_parameters" if "extra" in optimizer else ""
    files = trained(optimizer, cast, settings)
    files["net.py"] = files["net.py"].replace(
        "import torch\n", "import torch\n    from elsewhere import sys_parameters\n", 1
    )
    texts = [one.split(" ", 1) for one in messages(tmp_path, files) if " DT414 " in one]
    assert [message in text for _, text in texts] == ([] if message is None else [True]), texts


def messages(folder: Path, files: dict[str, str]) -> list[str]:
    """What is found in a project, in words."""
    findings(folder, files)
    outcome = run(sorted(folder.rglob("*.py")), Configuration(isolated=True).settings_for, RULES)
    return [
        f"{Path(one.location.path).name}:{one.location.span.line} {one.code} {one.message}"
        for one in outcome.diagnostics
    ]


SAVED = """
    import torch

    class Keeper:
        def __init__(self, path):
            self.path = path
            self.best = None

        def __call__(self, loss, model, half):
            if self.best is None or loss < self.best:
                self.best = loss
                torch.save({saved}, self.path){after}
"""
KEEPING = """
    import sys
    import torch
    from torch import nn
    from keeper import Keeper

    def train(half):
        model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        keeper = Keeper("best.pt")
        for step in range(int(sys.argv[1])):
            loss = model(torch.randn(4, 8)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            keeper(loss.item(), model, half)
        return model

    if __name__ == "__main__":
        train(len(sys.argv) > 2)
"""


@pytest.mark.parametrize(
    ("saved", "after", "expected"),
    [
        ("model.half()", "", {"keeper.py:12 DT112"}),
        ("model.half().state_dict()", "", set()),  # that is told by DT124
        ("(model.half() if half else model).state_dict()", "", {"keeper.py:12 DT112"}),
        ("model.half().state_dict()", "; model.float()", set()),
        ("(model.half() if half else model).state_dict()", "; model.float() if half else model", set()),
        ("{name: each.half() for name, each in model.state_dict().items()}", "", set()),
        ("model.state_dict()", "", set()),
    ],
)
def test_a_model_is_cast_in_the_midst_of_its_training(
    tmp_path: Path, saved: str, after: str, expected: set[str]
) -> None:
    keeper = SAVED.replace("{saved}", saved).replace("{after}", after)
    found = findings(tmp_path, {"keeper.py": keeper, "main.py": KEEPING})
    assert {one for one in found if one.endswith("DT112")} == expected


SCALING = """
    import torch

    class Scaler:
        def __init__(self):
            self.scaler = torch.amp.GradScaler("cpu")

        def __call__(self, loss, optimizer, model, steps):
            {backward}.backward()
            if steps:
                self.scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                self.scaler.step(optimizer)
            {update}
"""
SCALED = """
    import sys
    import torch
    from torch import nn
    from scaling import Scaler

    def train(every):
        model = nn.Linear(8, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        scaler = Scaler()
        for step in range(100):
            with torch.autocast("cpu", dtype=torch.float16):
                loss = model(torch.randn(4, 8)).float().pow(2).mean()
            optimizer.zero_grad()
            scaler(loss, optimizer, model, step % every == 0)

    if __name__ == "__main__":
        train(int(sys.argv[1]))
"""


@pytest.mark.parametrize(
    ("backward", "update", "expected"),
    [
        ("self.scaler.scale(loss)", "self.scaler.update() if steps else None", set()),
        ("self.scaler.scale(loss)", "pass", {"scaling.py:11 DT204"}),
        ("loss", "self.scaler.update() if steps else None", {"scaling.py:11 DT204"}),
    ],
)
def test_a_scaler_is_followed_through_the_loop_of_another_file(
    tmp_path: Path, backward: str, update: str, expected: set[str]
) -> None:
    scaling = SCALING.replace("{backward}", backward).replace("{update}", update)
    assert findings(tmp_path, {"scaling.py": scaling, "main.py": SCALED}) == expected


HEADS = """
    import torch

    def spread(scores, index):
        table = torch.ones(4, 4) / 4
        table[index] = scores
        return table
"""
SPREADING = """
    import torch
    from torch import nn
    from heads import spread

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(4, 4)

        def forward(self, x, index):
            return spread(self.head(x){cast}, index)
"""
RUNNING = """
    import sys
    import torch
    from net import Net

    if __name__ == "__main__":
        model = Net()
        for step in range(3):
            if len(sys.argv) > 1:
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    print(model(torch.randn(4, 4), torch.arange(4)))
            else:
                print(model(torch.randn(4, 4), torch.arange(4)))
"""


@pytest.mark.parametrize(("cast", "expected"), [("", {"net.py:12 DT305"}), (".float()", set())])
def test_a_write_that_raises_for_some_calls_is_told_where_they_are(
    tmp_path: Path, cast: str, expected: set[str]
) -> None:
    files = {"heads.py": HEADS, "net.py": SPREADING.replace("{cast}", cast), "main.py": RUNNING}
    assert findings(tmp_path, files) == expected


WRAPPED = """
    import torch
    from torch import nn

    class Wrapped:
        def __init__(self, model, half):
            self.model, self.half = model, half

        def __call__(self, x):
            return self.model(x.half() if self.half else x)
"""
NETWORK = """
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(4, 4)

        def forward(self, x):
            return self.head(x)
"""
PROGRAM = """
    import torch
    from network import Net
    from wrapped import Wrapped

    if __name__ == "__main__":
        model = Net().to({dtype})
        print(Wrapped(model, {half})(torch.randn(2, 4)))
"""


def test_a_call_of_one_program_is_told_in_that_program_whatever_others_do(tmp_path: Path) -> None:
    """The others come through the same library, and the last of them is read when many contexts are known."""
    files = {"network.py": NETWORK, "wrapped.py": WRAPPED}
    for number in range(10):
        well = {"dtype": "torch.float16", "half": "True"} if number % 2 else {"dtype": "torch.float32", "half": "False"}
        files[f"a{number}.py"] = PROGRAM.format(**well)
    files["last.py"] = PROGRAM.format(dtype="torch.float32", half="True")
    assert {one for one in findings(tmp_path, files) if "DT302" in one} == {"last.py:8 DT302"}


STEPPING = """
    def train(model, loader, optimizer, scaler):
        for x in loader:
            if scaler is not None:
                scaler.scale(model(x).sum()).backward()
                for one in optimizer.values():
                    scaler.step(one)
                scaler.{last}()
"""
OPTIMIZERS = """
    import argparse
    import torch
    from lib.loop import train

    def main(args):
        model = torch.nn.Linear(3, 1)
        optimizer = {}
        for name in args.names:
            optimizer[name] = {made}
        scaler = torch.amp.GradScaler("cuda") if args.amp else None
        for epoch in range(args.epochs):
            train(model, [torch.randn(2, 3)], optimizer, scaler)

    if __name__ == "__main__":
        parser = argparse.ArgumentParser()
        parser.add_argument("--amp", action="store_true")
        parser.add_argument("--names", nargs="*")
        parser.add_argument("--epochs", type=int)
        main(parser.parse_args())
"""


@pytest.mark.parametrize("one", [True, False])
@pytest.mark.parametrize("last", ["update", "get_scale"])
def test_a_scaler_is_updated_behind_the_loop_over_its_optimizers(tmp_path: Path, last: str, one: bool) -> None:
    made = "torch.optim.AdamW(model.parameters())"
    run = OPTIMIZERS.replace("{made}", "usual" if one else made)
    if one:
        run = run.replace("optimizer = {}", f"optimizer, usual = {{}}, {made}")
    files = {"lib/__init__.py": "", "lib/loop.py": STEPPING.replace("{last}", last), "run.py": run}
    assert findings(tmp_path, files) == ({"lib/loop.py:7 DT204"} if one and last == "get_scale" else set())


PATCHED = """
    import torch
    from accelerate import Accelerator
    from lib.patch import allow_scaler_float16

    def main(batches, full):
        accelerator = Accelerator(mixed_precision="fp16")
        model = torch.nn.Linear(8, 1).half()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model, optimizer = accelerator.prepare(model, optimizer)
        if full:
            allow_scaler_float16(accelerator)
        for x in batches:
            accelerator.backward(model(x).sum())
            optimizer.step()
"""
PATCH = """
    def allow_scaler_float16(accelerator):
        usual = accelerator.scaler._unscale_grads_

        def unscale(optimizer, inv_scale, found_inf, allow_fp16):
            return usual(optimizer, inv_scale, found_inf, True)

        accelerator.scaler.{name} = unscale
"""


@pytest.mark.parametrize(("name", "lines"), [("_unscale_grads_", []), ("unscale", [8])])
def test_another_file_lets_the_scaler_unscale_float16(tmp_path: Path, name: str, lines: list[int]) -> None:
    findings(tmp_path, {"lib/__init__.py": "", "lib/patch.py": PATCH.replace("{name}", name), "train.py": PATCHED})
    rule = {"DT206": RULES["DT206"]}
    outcome = run([tmp_path / "train.py"], Configuration(isolated=True).settings_for, rule)
    assert [one.location.span.line for one in outcome.diagnostics] == lines
