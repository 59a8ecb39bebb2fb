"""What a program of a project does is told, wherever it stands: small projects, and what is found in them."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.check.test_project import found

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
