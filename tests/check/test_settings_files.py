"""Settings files of frameworks: which are read, what is said of them, and at which line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from dtlint.cli import main

ACCELERATE = """\
compute_environment: LOCAL_MACHINE
deepspeed_config:
  deepspeed_config_file: configs/ds.json
distributed_type: DEEPSPEED
mixed_precision: bf16
"""
DEEPSPEED = {"train_batch_size": 8, "fp16": {"enabled": True}}
PROGRAM = 'from transformers import TrainingArguments\n\nargs = TrainingArguments("out", deepspeed="configs/ds.json")\n'


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").mkdir()
    (tmp_path / "pyproject.toml").write_text("")


def checked(*arguments: str, cached: bool = False) -> tuple[int, list[tuple[str, int, str]], str]:
    """The exit code, the findings as file, line and code, and what went to standard error."""
    options = ["--output-format", "json", "--quiet", *([] if cached else ["--no-cache"])]
    result = CliRunner().invoke(main, ["check", *options, *arguments])
    told = json.loads(result.stdout) if result.stdout.strip() else []
    found = [(Path(one["filename"]).name, one["location"]["row"], one["code"]) for one in told]
    return result.exit_code, found, result.stderr


def write(name: str, content: object) -> None:
    Path(name).write_text(content if isinstance(content, str) else json.dumps(content, indent=2))


def test_an_accelerate_file_is_held_against_the_deepspeed_file_that_it_names() -> None:
    write("accelerate.yaml", ACCELERATE)
    write("configs/ds.json", DEEPSPEED)
    assert checked() == (1, [("accelerate.yaml", 5, "DT605")], "")
    write("configs/ds.json", {**DEEPSPEED, "fp16": {"enabled": "auto"}})
    assert checked() == (0, [], "")


def test_a_deepspeed_file_is_judged_at_its_line_and_one_of_something_else_is_not() -> None:
    both = {"fp16": {"enabled": True}, "bf16": {"enabled": True}}
    write("ds.json", {"train_batch_size": 8, **both})
    write("other.json", both)
    assert checked() == (1, [("ds.json", 7, "DT601")], "")


def test_a_value_that_accelerate_refuses_is_told_and_a_comment_silences_it() -> None:
    write("a.yaml", "compute_environment: LOCAL_MACHINE\nmixed_precision: float16\n")
    write("b.yaml", "compute_environment: LOCAL_MACHINE\nmixed_precision: float16  # noqa: DT604\n")
    write("c.yaml", "compute_environment: LOCAL_MACHINE\nmixed_precision: no\n")
    assert checked() == (1, [("a.yaml", 2, "DT604")], "")
    assert checked("--ignore", "DT604") == (0, [], "")


@pytest.mark.parametrize(
    ("name", "text", "line", "what"),
    [
        ("broken.yaml", "compute_environment: [\nmixed_precision: fp16\n", 3, "YAML"),
        ("named.yml", "a: [1\nb: 2\n", 2, "YAML"),
        ("broken.json", '{"train_batch_size": 8,\n "fp16": }', 2, "JSON"),
        ("holds_itself.yaml", "a: &a [*a]\n", 1, "YAML"),
    ],
)
def test_what_is_no_yaml_or_json_is_one_line_and_exit_code_2(name: str, text: str, line: int, what: str) -> None:
    write(name, text)
    code, found, errors = checked(name)
    assert (code, found, errors.count("\n")) == (2, [], 1)
    assert f"{name}:{line}: not valid {what}: " in errors


def test_files_that_are_none_of_a_framework_are_passed_over_below_a_directory() -> None:
    write("template.yaml", "{{ values }}: [\n")
    write("data.json", "[1, 2")
    write("large.json", '{"train_batch_size": 8, "fp16": 1, "x": "' + "x" * 100_000)
    assert checked() == (0, [], "")


def test_a_program_is_held_against_the_file_that_it_names_and_again_when_that_changes() -> None:
    write("train.py", PROGRAM)
    write("configs/ds.json", DEEPSPEED)
    assert checked("train.py", cached=True) == (1, [("train.py", 3, "DT605")], "")
    write("configs/ds.json", {"train_batch_size": 8, "fp16": {"enabled": "auto"}})
    assert checked("train.py", cached=True) == (0, [], "")
    Path("configs/ds.json").unlink()
    assert checked("train.py", cached=True) == (0, [], "")


def test_a_settings_file_comes_through_standard_input() -> None:
    text = "compute_environment: LOCAL_MACHINE\nmixed_precision: half\n"
    options = ["check", "-", "--stdin-filename", "a.yaml", "--output-format", "concise", "--quiet"]
    result = CliRunner().invoke(main, options, input=text)
    assert result.stdout == "a.yaml:2:1: DT604 accelerate raises: there is no mixed precision 'half'\n"
    assert result.exit_code == 1


TRAINER = """\
training:
  output_dir: out
  per_device_train_batch_size: 8
  fp16: true
  bf16: {}
  deepspeed: configs/ds.json
"""


def test_the_arguments_of_a_trainer_are_judged_in_a_file_and_against_the_deepspeed_file_that_they_name() -> None:
    write("train.yaml", TRAINER.format("true"))
    assert checked() == (1, [("train.yaml", 5, "DT601")], "")
    write("train.yaml", TRAINER.format("false"))
    assert checked() == (0, [], "")
    write("configs/ds.json", {"train_batch_size": 8, "fp16": {"enabled": False}})
    assert checked() == (1, [("train.yaml", 4, "DT605")], "")
    write("configs/ds.json", {"train_batch_size": 8, "bf16": {"enabled": "auto"}})
    assert checked() == (0, [], "")
    write("args.json", {"per_device_train_batch_size": 1, "train_batch_size": 1, "bf16": True, "fp16": True})
    assert checked() == (1, [("args.json", 5, "DT601")], "")


def test_a_settings_file_outside_of_the_working_directory_is_shown_as_the_program_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("train.py", PROGRAM)
    write("configs/ds.json", DEEPSPEED)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    result = CliRunner().invoke(main, ["check", "../train.py", "--no-cache", "--quiet"])
    assert "--> ../train.py:3:8" in result.stdout
    assert "::: ../configs/ds.json:4:5" in result.stdout


ENGINE = """\
import deepspeed
import torch
from torch import nn

engine, *_ = deepspeed.initialize(model=nn.Linear(8, 1), config="configs/ds.json")
engine(torch.ones(4, 8))
"""


def test_an_engine_is_cast_as_the_file_says_that_configures_it_and_again_when_that_changes() -> None:
    write("train.py", ENGINE)
    write("configs/ds.json", DEEPSPEED)
    told = [("train.py", 6, "DT302"), ("train.py", 6, "DT613")]
    assert checked("train.py", cached=True) == (1, told, "")
    write("configs/ds.json", {**DEEPSPEED, "fp16": {"enabled": True, "auto_cast": True}})
    assert checked("train.py", cached=True) == (0, [], "")
    Path("configs/ds.json").unlink()
    assert checked("train.py", cached=True) == (0, [], "")


LOADED = "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
ADAPTED = (
    "import torch\nfrom peft import LoraConfig, get_peft_model\n"
    + LOADED
    + 'model = AutoModelForCausalLM.from_pretrained("gpt2", torch_dtype=torch.float16)\n'
    + 'trainer = Trainer(get_peft_model(model, LoraConfig()), TrainingArguments("out", fp16=True), train_dataset=[1])\n'
)
UNSAID = (
    LOADED
    + 'trainer = Trainer(AutoModelForCausalLM.from_pretrained("gpt2"), TrainingArguments("out"), train_dataset=[1])\n'
)
HALF = (
    LOADED
    + 'model = AutoModelForCausalLM.from_pretrained("gpt2", dtype="float16")\n'
    + 'trainer = Trainer(model, TrainingArguments("out", fp16=True), train_dataset=[1])\n'
)
OLD_LIGHTNING = 'import pytorch_lightning as pl\n\ntrainer = pl.Trainer(precision="16-mixed")\n'
CAST_PIPELINE = "import torch\n\n\ndef halve(pipe):\n    pipe.to(torch_dtype=torch.float16)\n"
OLD_ACCELERATE = "from accelerate import Accelerator\n\naccelerator = Accelerator(fp16=True)\n"


@pytest.mark.parametrize(
    ("program", "rule", "declared", "found"),
    [
        (ADAPTED, "DT602", "peft==0.7.1", True),
        (ADAPTED, "DT602", "peft>=0.7", False),
        (ADAPTED, "DT602", "", False),
        (UNSAID, "DT603", "transformers>=5", True),
        (UNSAID, "DT603", "transformers>=4.50", False),
        (UNSAID, "DT603", "", False),
        (HALF, "DT602", "transformers", True),
        (HALF, "DT602", "transformers\ndeepspeed", False),
        (OLD_LIGHTNING, "DT604", "pytorch-lightning==1.9.5", True),
        (OLD_LIGHTNING, "DT604", "pytorch-lightning>=1.9", False),
        (OLD_ACCELERATE, "DT604", "accelerate>=1.0", True),
        (OLD_ACCELERATE, "DT604", "accelerate==0.12", False),
        (CAST_PIPELINE, "DT107", "diffusers<0.20", False),
        (CAST_PIPELINE, "DT107", "diffusers>=0.19", True),
        (CAST_PIPELINE, "DT107", "", True),
    ],
)
def test_what_holds_for_some_releases_is_told_where_the_project_declares_these(
    program: str, rule: str, declared: str, found: bool
) -> None:
    write("requirements.txt", declared + "\n")
    write("train.py", program)
    assert (rule in [code for _, _, code in checked("--preview", "train.py")[1]]) is found
