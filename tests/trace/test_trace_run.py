"""A traced program runs as Python would run it: arguments, path, output, exit code, signals, children."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

import pytest

from dtlint.trace.children import Children

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "train"


class Ran(Protocol):
    """What a run left behind."""

    code: int
    out: str
    err: str


Dtlint = Callable[..., Ran]


def plain(*arguments: str, cwd: Path) -> Any:
    """The same program under Python itself. It should not import torch, which takes seconds."""
    done = subprocess.run([sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, check=False)
    return SimpleNamespace(code=done.returncode, out=done.stdout, err=done.stderr)


def traced(*arguments: str, cwd: Path) -> Any:
    """`dtlint trace` in an interpreter of its own, in which torch is not imported yet."""
    return plain("-m", "dtlint", "trace", *arguments, cwd=cwd)


ABOUT_ITSELF = """
import sys, os
print(__name__, __file__, __spec__ and __spec__.name, __package__, __doc__, __builtins__.__name__)
print(sys.argv, sys.path[0], sys.modules["__main__"].__dict__ is globals())
print(sorted(globals()))
from dataclasses import dataclass
import beside
@dataclass
class C:
    x: "int"
def f(x: int) -> int: return x
print(f.__annotations__, C(1), beside.NAME, C.__module__)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "code" / "package").mkdir(parents=True)
    (tmp_path / "code" / "script.py").write_text(ABOUT_ITSELF)
    (tmp_path / "code" / "beside.py").write_text("NAME = 'beside'\n")
    (tmp_path / "code" / "package" / "__init__.py").write_text("")
    (tmp_path / "code" / "package" / "__main__.py").write_text(ABOUT_ITSELF)
    (tmp_path / "code" / "package" / "tool.py").write_text(ABOUT_ITSELF)
    return tmp_path


@pytest.mark.parametrize(
    ("where", "arguments"),
    [
        (".", ["code/script.py", "--output", "x", "-m", "--", "--fail-on", "y"]),
        ("code", ["script.py"]),
        ("code", ["-m", "package", "--quiet", "1"]),
        ("code", ["-m", "package.tool", "-m"]),
    ],
)
def test_a_program_finds_itself_as_it_would_under_python(
    where: str, arguments: list[str], project: Path, dtlint: Dtlint
) -> None:
    expected = plain(*arguments, cwd=project / where)
    ran = dtlint("trace", *arguments, cwd=project / where)
    assert ran.out == expected.out != ""
    assert ran.code == expected.code == 0
    assert "dtlint trace:" in ran.err


ENDS = {
    "falls off its end": ("print(1)", 0),
    "exits with a number": ("import sys; print(1); sys.exit(3)", 3),
    "exits with nothing": ("import sys; sys.exit()", 0),
    "exits with a text": ("import sys; sys.exit('no data')", 1),
    "raises": ("def f():\n    return 1 / 0\nf()", 1),
    "raises from another": ("try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('x') from e", 1),
    "does not compile": ("x = = 1", 1),
    "raises in its own hook": ("import sys\nsys.excepthook = lambda t, v, b: print('mine', v)\n1 / 0", 1),
    "has an exit handler": ("import atexit\natexit.register(print, 'bye', flush=True)\nraise SystemExit(2)", 2),
}


@pytest.mark.parametrize(("source", "code"), ENDS.values(), ids=ENDS)
def test_a_program_ends_as_it_would_under_python(source: str, code: int, tmp_path: Path, dtlint: Dtlint) -> None:
    (tmp_path / "script.py").write_text(source)
    expected = plain("script.py", cwd=tmp_path)
    ran = dtlint("trace", "script.py")
    assert ran.code == expected.code == code
    if "atexit" not in source:  # a forked child does not run exit handlers
        assert ran.out == expected.out
    report = ran.err.index("dtlint trace:")
    assert ran.err[:report] == expected.err, "the traceback has no frame of dtlint's"


def test_a_traceback_through_modules_and_operators_has_no_frame_of_the_tracer(tmp_path: Path, dtlint: Dtlint) -> None:
    (tmp_path / "script.py").write_text("import torch\ntorch.nn.Sequential(torch.nn.Linear(3, 3))(torch.ones(2, 4))\n")
    ran = dtlint("trace", "script.py")
    assert ran.code == 1
    assert "in _wrapped_call_impl" in ran.err
    assert "mat1 and mat2 shapes cannot be multiplied" in ran.err
    for frame in ("__torch_dispatch__", "dtlint/trace", "_ops.py"):
        assert frame not in ran.err


def test_ctrl_c_ends_with_130_and_a_report(tmp_path: Path, dtlint: Dtlint) -> None:
    (tmp_path / "script.py").write_text("import torch\ntorch.ones(2)\nraise KeyboardInterrupt\n")
    ran = dtlint("trace", "script.py")
    assert ran.code == 130
    assert "KeyboardInterrupt" in ran.err
    assert "1 operator at 1 line of source" in ran.err


def test_a_program_that_ctrl_c_ends_dies_of_the_signal_after_its_exit_handlers(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import atexit, os, signal\natexit.register(print, 'bye')\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell ignores it\n"
        "os.kill(os.getpid(), signal.SIGINT)\n"
    )
    expected, ran = plain("script.py", cwd=tmp_path), traced("script.py", cwd=tmp_path)
    assert ran.code == expected.code == -2
    assert ran.out == expected.out == "bye\n"
    assert ran.err.startswith(expected.err)
    assert "dtlint trace:" in ran.err


@pytest.mark.parametrize(("name", "number"), [("SIGTERM", 15), ("SIGHUP", 1)])
def test_a_signal_that_ends_it_kills_as_it_would_and_leaves_a_report(
    name: str, number: int, tmp_path: Path, dtlint: Dtlint
) -> None:
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip(f"{name} is ignored here, as it is under nohup")
    (tmp_path / "script.py").write_text(
        "import os, signal, torch\ntorch.zeros(2).log() * 2\nprint('before', flush=True)\n"
        f"os.kill(os.getpid(), signal.{name})\nprint('after')\n"
    )
    ran = dtlint("trace", "--output", "t.json", "script.py")
    assert ran.code == -number
    assert ran.out == "before\n"
    assert "DT903" in ran.err
    assert json.loads((tmp_path / "t.json").read_text())["exit_code"] == 128 + number


def test_a_program_that_handles_sigterm_itself_still_does(tmp_path: Path, dtlint: Dtlint) -> None:
    (tmp_path / "script.py").write_text(
        "import os, signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
    )
    ran = dtlint("trace", "script.py")
    assert ran.code == 7
    assert "dtlint trace:" in ran.err


def test_workers_of_a_data_loader_run_untraced_and_are_counted(tmp_path: Path, dtlint: Dtlint) -> None:
    (tmp_path / "script.py").write_text(
        "import torch\n"
        "from torch.utils._python_dispatch import _get_current_dispatch_mode_stack as modes\n"
        "class Data(torch.utils.data.Dataset):\n"
        "    def __len__(self): return 4\n"
        "    def __getitem__(self, i): return torch.ones(2) * i, len(modes())\n"
        "for x, n in torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=2, multiprocessing_context='fork'):\n"
        "    print(x.sum().item(), n.tolist())\n"
    )
    ran = dtlint("trace", "script.py")
    assert ran.out == "2.0 [0, 0]\n10.0 [0, 0]\n"
    assert ran.err.count("dtlint trace:") == 1
    assert "forked child processes; run `with dtlint.trace() as t:` and t.report() in one to see it (2)" in ran.err


def test_a_batch_that_a_worker_spoilt_is_told_how_to_find(tmp_path: Path, dtlint: Dtlint) -> None:
    (tmp_path / "script.py").write_text(
        "import torch\n"
        "class Data(torch.utils.data.Dataset):\n"
        "    def __len__(self): return 4\n"
        "    def __getitem__(self, i): return torch.tensor([i - 3.0]).log()\n"
        "for x in torch.utils.data.DataLoader(Data(), batch_size=4, num_workers=1, multiprocessing_context='fork'):\n"
        "    print((x * 2).sum().item())\n"
    )
    ran = dtlint("trace", "script.py")
    assert "held NaN in 4 of 4 values, first in sample 1 of 4, when `x * 2` (mul) used it" in ran.err
    assert "with num_workers=0 the trace shows the line that made it" in ran.err
    (tmp_path / "script.py").write_text(
        (tmp_path / "script.py")
        .read_text()
        .replace("num_workers=1", "num_workers=0")
        .replace(", multiprocessing_context='fork'", "")
    )
    assert "script.py:4\n    `torch.tensor([i - 3.0]).log()` (log)" in dtlint("trace", "script.py").err


def test_python_processes_that_the_program_starts_are_told(tmp_path: Path, dtlint: Dtlint) -> None:
    (tmp_path / "script.py").write_text(
        "import subprocess, sys\n"
        "subprocess.run([sys.executable, '-S', '-c', 'print(1)'])\nsubprocess.run(['echo', '2'])\n"
    )
    ran = dtlint("trace", "script.py")
    assert ran.out == "1\n2\n"
    assert "Not seen: Python processes that the program started; write `-m dtlint trace" in ran.err
    assert "before the script in the command that starts them (1)\nNothing was traced." in ran.err


def test_children_of_a_fork_server_are_told(tmp_path: Path, dtlint: Dtlint) -> None:
    (tmp_path / "script.py").write_text(
        "import multiprocessing\n"
        "if __name__ == '__main__':\n"
        "    child = multiprocessing.get_context('forkserver').Process(target=int)\n"
        "    child.start()\n"
        "    child.join()\n"
    )
    ran = dtlint("trace", "script.py")
    assert "child processes of a fork server; run `with dtlint.trace() as t:`" in ran.err


def test_a_launcher_is_told_how_to_be_traced(tmp_path: Path, dtlint: Dtlint) -> None:
    ran = dtlint("trace", "torchrun", "--nproc-per-node", "2", "train.py")
    assert ran.code == 2
    assert "to trace these: torchrun ... -m dtlint trace -o traces/ train.py" in ran.err
    children = Children("accelerate.commands.launch")
    children.started = 2
    assert [unseen.what for unseen in children.unseen()] == [
        "Python processes that the program started; trace them with `accelerate launch ... -m dtlint trace -o traces/ train.py`"
    ]


def test_a_forked_child_that_runs_to_the_end_makes_no_report(tmp_path: Path, dtlint: Dtlint) -> None:
    (tmp_path / "script.py").write_text(
        "import os, torch\nchild = os.fork()\ntorch.ones(2)\nif child: os.waitpid(child, 0)\n"
    )
    assert dtlint("trace", "script.py").err.count("dtlint trace:") == 1


def test_other_threads_are_named_as_not_seen(tmp_path: Path, dtlint: Dtlint) -> None:
    (tmp_path / "script.py").write_text(
        "import threading, time, torch\n"
        "threading.Thread(target=time.sleep, args=(0.2,), name='loader').start()\ntorch.ones(2)\n"
    )
    assert "loader" in dtlint("trace", "script.py").err


def test_fail_on_gives_1_and_the_program_s_own_code_wins(tmp_path: Path, dtlint: Dtlint) -> None:
    (tmp_path / "ok.py").write_text("import torch\n(torch.full((3,), 1e5).half() * 1).sum()\n")
    (tmp_path / "bad.py").write_text("import torch\n(torch.full((3,), 1e5).half() * 1).sum()\nraise SystemExit(5)\n")
    assert dtlint("trace", "ok.py").code == 0
    assert dtlint("trace", "--fail-on", "overflow", "ok.py").code == 1
    assert dtlint("trace", "--fail-on", "promotion", "ok.py").code == 0
    assert dtlint("trace", "--fail-on", "any", "bad.py").code == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.py"], "there is no script 'none.py'"),
        (["-m", "none_such"], "there is no module 'none_such'"),
        (["--fail-on", "overfow", "script.py"], "did you mean 'overflow'?"),
        (["--outptu", "x", "script.py"], "--outptu"),
        (["--output", "none/t.json", "script.py"], "there is no directory none"),
        (["--report-file", "none/t.txt", "script.py"], "there is no directory none"),
        (["--output", "script.py", "script.py"], "--output script.py would overwrite the script"),
        (["--report-file", "./script.py", "script.py"], "would overwrite the script"),
        (["-o", "t.json", "--report-file", "./t.json", "script.py"], "would overwrite the record of --output"),
        (["-o", "t.json", "--report", "json:./t.json", "script.py"], "would overwrite the record of --output"),
        (["--report", "json:none/t.json", "script.py"], "there is no directory none"),
        (["--report", "yaml:t", "script.py"], "'yaml' is no format"),
    ],
)
def test_wrong_usage_is_refused_in_one_line_before_anything_runs(
    arguments: list[str], message: str, tmp_path: Path, dtlint: Dtlint
) -> None:
    (tmp_path / "script.py").write_text("print('ran')")
    ran = dtlint("trace", *arguments)
    assert ran.code == 2
    assert message in ran.err
    assert len(ran.err.splitlines()) == 1
    assert ran.out == ""


def test_reports_go_where_they_are_sent(tmp_path: Path, dtlint: Dtlint) -> None:
    (tmp_path / "script.py").write_text("import torch\nprint('mine')\n(torch.full((3,), 1e5).half() * 1).sum()\n")
    ran = dtlint("trace", "--output-format", "json", "--report-file", "found.json", "script.py")
    assert (ran.out, ran.err) == ("mine\n", "dtlint: wrote the report found.json\n")
    (found,) = json.loads((tmp_path / "found.json").read_text())
    assert (found["code"], found["location"]["row"]) == ("DT901", 3)
    assert dtlint("trace", "--quiet", "script.py").err == ""
    assert "::" in dtlint("trace", "--output-format", "github", "script.py").err


AFTER = "stands after the script, so that the script got it"


def test_an_option_of_dtlint_after_the_script_is_told_where_the_script_refused_it(
    tmp_path: Path, dtlint: Dtlint
) -> None:
    (tmp_path / "train.py").write_text("import argparse\nargparse.ArgumentParser().parse_args()\nprint('ran')")
    ran = dtlint("trace", "-q", "train.py", "--sketch")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.splitlines()[-1] == (
        f"dtlint: --sketch {AFTER}, and ended with exit code 2; options of dtlint stand before the script"
    )
    assert AFTER not in dtlint("trace", "-q", "train.py", "--epochs", "3").err, "it is none of dtlint's"


def test_an_output_after_the_script_is_told_where_nothing_was_written(tmp_path: Path, dtlint: Dtlint) -> None:
    (tmp_path / "train.py").write_text("import sys\nprint(sys.argv[1:])")
    ran = dtlint("trace", "-q", "train.py", "--output=x.json")
    assert (ran.code, ran.out) == (0, "['--output=x.json']\n")
    assert f"dtlint: --output {AFTER}, and wrote no such file" in ran.err
    (tmp_path / "train.py").write_text("import sys\nopen(sys.argv[2], 'w')\nsys.exit(int(sys.argv[3]))")
    assert AFTER not in dtlint("trace", "-q", "train.py", "--output", "y.json", "0").err, "a script has its own"
    assert AFTER not in dtlint("trace", "-q", "train.py", "--output", "z.json", "1").err


def test_a_program_may_change_the_directory(tmp_path: Path, dtlint: Dtlint) -> None:
    (tmp_path / "away").mkdir()
    (tmp_path / "script.py").write_text("import os, torch\nos.chdir('away')\ntorch.zeros(2).log() * 2\n")
    dtlint("trace", "--output", "t.json", "--report-file", "t.txt", "--output-format", "concise", "script.py")
    assert (tmp_path / "t.txt").read_text().startswith("script.py:3:1: DT903")
    assert [file.name for file in (tmp_path / "away").iterdir()] == []


def test_the_report_of_a_record_is_the_one_the_trace_printed(tmp_path: Path, dtlint: Dtlint) -> None:
    traced = dtlint("trace", "--output", "t.json", str(FIXTURES / "transformer_mask.py"), "--steps", "2")
    assert traced.out.splitlines() == ["step 0 loss nan", "step 1 loss nan"]
    again = dtlint("report", "t.json")
    assert (again.code, f"{again.out}dtlint: wrote the record t.json\n") == (0, traced.err)
    assert len(traced.err.splitlines()) <= 40
    lines = traced.err.splitlines()
    assert lines[1] == "Non-finite values, where they began:"
    assert "DT901" in lines[2]
    assert "`scores + mask` (add) in layers.0.attention overflowed float16 in step 1" in lines[3]


NO_TORCH = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ImportError("torch is not here")
sys.meta_path.insert(0, Blocker())
import importlib.util
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "torch" else find_spec(name, *rest)
from dtlint.cli import main
main(sys.argv[1:])
"""


def test_without_torch_a_record_can_be_read_and_a_trace_says_what_to_install(tmp_path: Path, dtlint: Dtlint) -> None:
    (tmp_path / "script.py").write_text("import torch\n(torch.full((3,), 1e5).half() * 1).sum()\n")
    traced = dtlint("trace", "--output", "t.json", "script.py")
    report = plain("-c", NO_TORCH, "report", "t.json", "--fail-on", "DT901", cwd=tmp_path)
    assert (report.code, f"{report.out}dtlint: wrote the record t.json\n") == (1, traced.err)
    refused = plain("-c", NO_TORCH, "trace", "script.py", cwd=tmp_path)
    assert refused.code == 2
    assert "install it with: pip install torch" in refused.err
    assert len(refused.err.splitlines()) == 1
    block = f"{NO_TORCH.replace('from dtlint.cli import main', 'import dtlint')}".replace("main(sys.argv[1:])", "")
    refused = plain("-c", f"{block}\nwith dtlint.trace():\n    pass\n", cwd=tmp_path)
    assert refused.err.endswith("\nImportError: torch is not installed here; install it with: pip install torch\n")


def test_report_refuses_what_is_no_record(tmp_path: Path, dtlint: Dtlint) -> None:
    (tmp_path / "t.json").write_text("{")
    ran = dtlint("report", "t.json")
    assert ran.code == 2
    assert len(ran.err.splitlines()) == 1
    assert "--output t.json" not in ran.err, "who follows the advice must not lose the file"


def test_a_report_does_not_replace_its_record(tmp_path: Path, dtlint: Dtlint) -> None:
    (tmp_path / "t.json").write_text("{}")
    ran = dtlint("report", "t.json", "--report-file", "./t.json")
    assert ran.code == 2 and "would overwrite the record" in ran.err
    assert (tmp_path / "t.json").read_text() == "{}"


BEFORE_TORCH = """
import importlib.util, os, sys
os.environ["OMP_NUM_THREADS"] = "1"
importlib.util.find_spec("torch")  # to look is not to import
assert "torch" not in sys.modules
import torch
print(torch.get_num_threads(), type(torch.__spec__.loader).__name__, vars(torch.__spec__.loader).keys())
print([finder for finder in sys.meta_path if "dtlint" in str(finder)])
x = torch.zeros(2).log() * 2
"""


def test_torch_is_imported_by_the_program_and_not_before_it(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(BEFORE_TORCH)
    ran = traced("script.py", cwd=tmp_path)
    assert ran.out == "1 SourceFileLoader dict_keys(['name', 'path'])\n[]\n"
    assert "3 operators at 1 line of source" in ran.err
    assert "DT903" in ran.err


def test_a_program_without_torch_is_told_so_and_gets_none(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import sys\nprint('torch' in sys.modules)\nsys.exit(3)\n")
    ran = traced("--output", "t.json", "script.py", cwd=tmp_path)
    assert (ran.code, ran.out) == (3, "False\n")
    told = "dtlint trace: torch was not imported, so there was nothing to trace\n"
    assert ran.err == f"{told}dtlint: wrote the record t.json\n"
    assert plain("-m", "dtlint", "report", "t.json", cwd=tmp_path).out == told


FAKE_TORCH = {
    "another thread": (
        "import threading\nt = threading.Thread(target=__import__, args=('torch',))\nt.start(); t.join()",
        "another thread",
    ),
    "a torch that is none": ("import torch", "cannot start"),
}


@pytest.mark.parametrize(("source", "reason"), FAKE_TORCH.values(), ids=FAKE_TORCH)
def test_a_torch_that_cannot_be_traced_is_reported_and_the_program_runs(
    source: str, reason: str, tmp_path: Path
) -> None:
    (tmp_path / "torch.py").write_text("print('imported')\n")
    (tmp_path / "script.py").write_text(source + "\nprint('done')\n")
    ran = traced("script.py", cwd=tmp_path)
    assert (ran.code, ran.out) == (0, "imported\ndone\n")
    assert ran.err.startswith("dtlint trace: nothing was traced\n")
    assert reason in ran.err
    ran = traced("--fail-on", "overflow", "script.py", cwd=tmp_path)
    assert ran.code == 2  # nothing found would say too much
    assert "could not be judged" in ran.err


def test_a_failing_import_of_torch_fails_as_it_would_and_may_be_tried_again(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('libcudart is missing')\n")
    (tmp_path / "script.py").write_text("try:\n    import torch\nexcept ImportError:\n    pass\nimport torch\n")
    expected, ran = plain("script.py", cwd=tmp_path), traced("script.py", cwd=tmp_path)
    assert ran.code == expected.code == 1
    assert ran.err.startswith(expected.err)


SPAWNS = """
import multiprocessing
class Answer:
    pass
def work(queue):
    queue.put(Answer())
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    child = context.Process(target=work, args=(queue,))
    child.start()
    print(type(queue.get()) is Answer)
    child.join()
"""


def test_a_spawned_child_sends_back_objects_of_the_program_s_classes(tmp_path: Path, dtlint: Dtlint) -> None:
    (tmp_path / "script.py").write_text(SPAWNS)
    assert dtlint("trace", "script.py").out == "True\n"


NESTED = """
import sys
def depth(n):
    try:
        return depth(n + 1)
    except RecursionError:
        return n
print(depth(0) >= 985)
import torch
class Nested(torch.nn.Module):
    def forward(self, x, n):
        return x if n == 0 else self(x + 1, n - 1)
print(Nested()(torch.zeros(1), 240).item())
"""


def test_modules_nest_as_deeply_as_they_would_untraced(tmp_path: Path, dtlint: Dtlint) -> None:
    (tmp_path / "script.py").write_text(NESTED)
    assert dtlint("trace", "script.py").out == "True\n240.0\n"


ALL_REDUCE = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo", rank=0, world_size=1, init_method="file://" + os.path.abspath("store"))
x = torch.ones(2)
dist.all_reduce(x)
x.numpy().fill(float("nan"))  # what another rank would have sent
print((x * 2).sum().item())
"""


def test_what_a_collective_brought_came_in_and_is_not_blamed_on_its_reader(tmp_path: Path, dtlint: Dtlint) -> None:
    (tmp_path / "script.py").write_text(ALL_REDUCE)
    ran = dtlint("trace", "script.py")
    assert ran.out == "nan\n"
    assert "DT909" in ran.err
    assert "DT902" not in ran.err


def test_a_thread_that_is_gone_by_the_end_is_named_too(tmp_path: Path, dtlint: Dtlint) -> None:
    (tmp_path / "script.py").write_text(
        "import torch, threading\n"
        "def work(): print((torch.ones(3, dtype=torch.float16) * 60000 * 2).tolist())\n"
        "thread = threading.Thread(target=work, name='side'); thread.start(); thread.join()\n"
        "torch.ones(1).add(1)\n"
    )
    done = dtlint("trace", "script.py")
    assert done.out == "[inf, inf, inf]\n"
    assert "other thread (side)" in done.err


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("AssertionError('Torch not compiled with CUDA enabled')", True),
        ("RuntimeError('Found no NVIDIA driver on your system.')", True),
        ("RuntimeError('no GPU of mine')", False),
    ],
)
def test_a_program_that_misses_cuda_is_told_how_to_run_without(
    said: str, told: bool, tmp_path: Path, dtlint: Dtlint
) -> None:
    (tmp_path / "script.py").write_text(f"import torch\nraise {said}\n")
    ran = dtlint("trace", "script.py")
    traceback, _, rest = ran.err.partition("dtlint")
    assert ran.code == 1
    assert traceback.startswith("Traceback") and traceback.splitlines()[-1].startswith(said.partition("(")[0])
    assert ("`dtlint trace --simulate cuda` runs it on the CPU\n" in rest) is told


def test_a_module_in_a_bare_sequential_is_marked_as_one(tmp_path: Path, dtlint: Dtlint) -> None:
    (tmp_path / "script.py").write_text(
        "import torch\nclass Up(torch.nn.Module):\n    def forward(self, x):\n        return x * 60000\n"
        "m = torch.nn.Sequential(Up())\nm(torch.full((3,), 5.0).half())\n"
    )
    assert "`x * 60000` (mul) in module `0` overflowed float16" in dtlint("trace", "script.py").err


def test_out_of_memory_ends_with_1_and_a_report(tmp_path: Path, dtlint: Dtlint) -> None:
    (tmp_path / "script.py").write_text(
        "import torch\nx = torch.zeros(2).log() * 2\n"
        "raise torch.OutOfMemoryError('CUDA out of memory. Tried to allocate 20.00 GiB.')\n"
    )
    ran = dtlint("trace", "script.py")
    assert ran.code == 1
    assert "Tried to allocate 20.00 GiB" in ran.err
    assert "DT903" in ran.err


def test_an_allocation_that_fails_inside_an_operator_passes_through(tmp_path: Path, dtlint: Dtlint) -> None:
    (tmp_path / "script.py").write_text(
        "import torch\ntry:\n    torch.empty(1 << 60)\nexcept RuntimeError as error:\n    print('caught')\n"
        "torch.ones(2) * 2\n"
    )
    ran = dtlint("trace", "script.py")
    assert (ran.code, ran.out) == (0, "caught\n")
    assert "2 operators" in ran.err


WORKERS = """
import torch
class Data(torch.utils.data.Dataset):
    def __len__(self): return 4
    def __getitem__(self, i): return torch.ones(2) * i
if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=1, multiprocessing_context="spawn")
    print([x.sum().item() for x in loader])
"""


def test_spawned_workers_of_a_data_loader_run_untraced_and_are_counted(tmp_path: Path, dtlint: Dtlint) -> None:
    (tmp_path / "script.py").write_text(WORKERS)
    ran = dtlint("trace", "script.py")
    assert (ran.code, ran.out) == (0, "[2.0, 10.0]\n")
    assert ran.err.count("dtlint trace:") == 1
    assert "spawned child processes; run `with dtlint.trace() as t:` and t.report() in one to see it (1)" in ran.err


def test_costs_are_controlled_from_the_command_line(tmp_path: Path, dtlint: Dtlint) -> None:
    script = str(FIXTURES / "transformer_mask.py")
    ran = dtlint(
        "trace", "-o", "t.json", "--every", "2", "--watch", "fp16", "--module", "layers.*", script, "--steps", "4"
    )
    assert ran.code == 0
    record = json.loads((tmp_path / "t.json").read_text())
    assert (record["steps"], record["traced"]) == (4, 2)
    assert {place["module"].split(".")[0] for place in record["places"] if place["module"]} == {"layers"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--steps", "x"], "--steps 'x' is no span; write A:B"),
        (["--every", "0"], "--every 0 is no number of steps"),
        (["--every", "two"], "--every"),
        (["--only", "values"], "--only 'values' is not known; use dtypes"),
        (["--watch", "flaot16"], "did you mean float16?"),
        (["--module", ""], "--module '' is no path"),
        (["--assume", "int8"], "--assume 'int8' tells nothing"),
        (["--only", "dtypes", "--watch", "float16"], "--only dtypes judges no values"),
    ],
)
def test_what_to_look_at_is_checked_before_anything_runs(
    arguments: list[str], message: str, tmp_path: Path, dtlint: Dtlint
) -> None:
    (tmp_path / "script.py").write_text("print('ran')")
    ran = dtlint("trace", *arguments, "script.py")
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)
    assert message in ran.err


NESTED_TRACE = """
import torch, dtlint
try:
    with dtlint.trace(): pass
except RuntimeError as error:
    print(error)
dtlint.step()
torch.ones(2)
"""


def test_a_trace_inside_a_traced_program_is_refused_and_its_steps_count(tmp_path: Path, dtlint: Dtlint) -> None:
    (tmp_path / "script.py").write_text(NESTED_TRACE)
    ran = dtlint("trace", "script.py")
    assert ran.out == "dtlint is tracing already; end the outer trace before starting another\n"
    assert "1 optimizer step" in ran.err


FSDP = """
import os, torch, torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
dist.init_process_group("gloo", rank=0, world_size=1, init_method="file://" + os.path.abspath("store"))
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
mesh = init_device_mesh("cpu", (1,))
fully_shard(model, mesh=mesh, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    loss = model(torch.ones(2, 4)).pow(2).sum()
    loss.backward()
    optimizer.step()
    print(loss.item())
dist.destroy_process_group()
"""


def test_fsdp_on_a_cpu_gives_the_same_losses(tmp_path: Path, dtlint: Dtlint) -> None:
    (tmp_path / "script.py").write_text(FSDP)
    ran = dtlint("trace", "script.py")
    (tmp_path / "store").unlink(missing_ok=True)
    expected = plain("script.py", cwd=tmp_path)
    assert expected.code == ran.code == 0, ran.err
    assert ran.out == expected.out != ""
    assert "3 optimizer steps" in ran.err
    assert "could not be judged" not in ran.err


def test_several_reports_of_one_run(tmp_path: Path, dtlint: Dtlint) -> None:
    (tmp_path / "script.py").write_text("import torch\n(torch.full((3,), 1e5).half() * 1).sum()\n")
    wanted = ["--report", "sarif:t.sarif", "--report", "screen:t.txt", "-o", "t.json", "--output-file", "main.txt"]
    ran = dtlint("trace", *wanted, "script.py")
    assert (ran.code, ran.out) == (0, "")
    screen = (tmp_path / "t.txt").read_text()
    assert screen.startswith("dtlint trace: ") and (tmp_path / "main.txt").read_text() == screen
    (result,) = json.loads((tmp_path / "t.sarif").read_text())["runs"][0]["results"]
    assert result["ruleId"] == "DT901"
    dtlint("report", "t.json", "--quiet", "--report", "gitlab:q.json", "--report", "junit:t.xml")
    assert json.loads((tmp_path / "q.json").read_text())[0]["location"]["path"] == "script.py"
    assert "DT901" in (tmp_path / "t.xml").read_text()


def test_a_report_that_could_not_be_written_loses_no_other(tmp_path: Path, dtlint: Dtlint) -> None:
    (tmp_path / "gone").mkdir()
    (tmp_path / "script.py").write_text("import os, torch\ntorch.zeros(2).log() * 2\nos.rmdir('gone')\n")
    ran = dtlint("trace", "-o", "gone/t.json", "--report", "json:gone/r.json", "--report", "json:r.json", "script.py")
    assert ran.code == 2
    assert "the trace could not be written" in ran.err and "r.json could not be written" in ran.err
    assert "DT903" in ran.err and json.loads((tmp_path / "r.json").read_text())


def test_each_file_that_is_written_is_named_to_people(tmp_path: Path, dtlint: Dtlint) -> None:
    (tmp_path / "script.py").write_text("import torch\ntorch.ones(2).half() * 2\n")
    files = ("--output", "run.json", "--html", "run.html", "--report", "sarif:run.sarif")
    ran = dtlint("trace", *files, "script.py")
    assert ran.err.splitlines()[-3:] == [
        "dtlint: wrote the report run.sarif",
        "dtlint: wrote the report run.html",
        "dtlint: wrote the record run.json",
    ]
    assert dtlint("trace", "-q", *files, "script.py").err == ""
    json.loads(dtlint("trace", "--output-format", "json", *files, "script.py").err)
    shown = dtlint("report", "run.json", "--report-file", str(tmp_path.parent / "run.txt"))
    assert (shown.out, shown.err) == ("", f"dtlint: wrote the report {tmp_path.parent / 'run.txt'}\n")


def test_steps_beyond_the_run_are_answered_with_how_many_there_were(tmp_path: Path, dtlint: Dtlint) -> None:
    (tmp_path / "script.py").write_text(
        "import torch\nw = torch.ones(2, requires_grad=True)\no = torch.optim.SGD([w], lr=0.1)\n"
        "for _ in range(3):\n    w.sum().backward()\n    o.step()\n"
    )
    told = dtlint("trace", "--steps", "100:", "script.py").err.splitlines()[-1]
    assert told == "Nothing was traced by `--steps 100:`: the run had 3 steps."
