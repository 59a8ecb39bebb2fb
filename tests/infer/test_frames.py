"""Functions inside functions: what they find under the names around them is what is there when they run.

As in `test_program`, each comment says what the expression before it is. All programs run, too: no claim is
contradicted.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.infer.ran import contradicted
from tests.infer.test_program import HEAD, hold

PROGRAMS = {
    "a name is bound anew before the inner function runs, behind a branch": """
        def scores(flag):
            w = torch.ones(2)

            def scaled():
                return w * 2

            x = scaled()  # float32
            if flag:
                print()
            w = w.half()
            x = scaled()  # float16
            for _ in range(2):
                x = scaled()  # float16|float64
                w = w.double()
            return x

        scores(True)
    """,
    "a function that is handed on sees it, too": """
        def called(function, x):
            return function(x)

        def scores():
            w = torch.ones(2)
            scaled = lambda x: x * w
            x = called(scaled, torch.ones(2).half())  # float32
            w = torch.ones(2).double()
            x = called(scaled, torch.ones(2).half())  # float64
            return x

        scores()
    """,
    "`nonlocal` binds a name of the function around": """
        def total(xs):
            found = torch.zeros(2)

            def add(x):
                nonlocal found
                found = found + x
                return found  # float64

            y = found + 0  # float32
            add(xs[0])
            y = found + 0  # float64
            return y

        total([torch.ones(2).double()])
    """,
    "in a loop of the inner function it may be anything": """
        def last(xs):
            found = torch.zeros(2)

            def each():
                nonlocal found
                for x in xs:
                    found = found.half() if found.dtype == torch.float32 else found.double()

            each()
            y = found + 0  # float64
            return y

        last([1, 2, 3])
    """,
    "and what a test says of it does not last": """
        def best(xs):
            found = None

            def better(x):
                nonlocal found
                if found is None:
                    found = x
                else:
                    found = found.double()
                return found * 1  # float16|float64

            for x in xs:
                better(x)
            return found

        best([torch.ones(1).half(), torch.ones(1).half()])
    """,
    "two functions that may be called bind it, of which one is": """
        def either(flag):
            w = torch.ones(2)

            def narrow():
                nonlocal w
                w = w.half()

            def widen():
                nonlocal w
                w = w.double()

            (narrow if flag else widen)()
            return w * 1  # float16|float64

        either(True)
        either(False)
    """,
    "a call that is like one before binds it again": """
        def again():
            w = torch.ones(2)

            def narrow():
                nonlocal w
                w = torch.ones(2).half()

            narrow()
            w = torch.ones(2)
            narrow()
            return w * 1  # float16

        again()
    """,
    "code that is not seen calls what binds it": """
        from somewhere import later

        def watched():
            w = torch.ones(2)

            def watch(*_):
                nonlocal w
                w = w.half()

            y = w + 0  # float32
            later(watch)
            y = w + 0  # float32
            w = torch.ones(2)
            y = w + 0  # float32
            return y

        watched()
    """,
    "a hook binds it whenever the module runs": """
        def watched():
            seen = None

            def watch(module, given, result):
                nonlocal seen
                seen = result.double()

            layer = nn.Linear(2, 2)
            layer.register_forward_hook(watch)
            layer(torch.ones(1, 2))
            return seen * 1  # float64

        watched()
    """,
    "a function that has returned leaves its names behind": """
        def chosen(flag):
            w = torch.ones(2).half()

            def scaled():
                return w * 2

            if flag:
                return scaled
            w = w.double()
            return scaled

        y = chosen(True)()  # float16
        y = chosen(False)()  # float64
    """,
    "each call has names of its own": """
        def scaling(by):
            def scaled(x):
                return x * by
            return scaled

        once = scaling(torch.ones(2).half())
        twice = scaling(torch.ones(2).double())
        y = once(torch.ones(2).half())  # float16
        y = twice(torch.ones(2).half())  # float64
    """,
    "so have the classes that it makes": """
        def scaling(dtype):
            by = torch.ones(2, dtype=dtype)

            class Scaling:
                def __call__(self):
                    return by * 2

                @property
                def by(self):
                    return by * 1

            return Scaling()

        once, twice = scaling(torch.float16), scaling(torch.float64)
        y = once()  #
        y = twice()  #
        y = once.by  #
        y = twice.by  #
    """,
    "nobody calls what each call makes: it may find what any has left": """
        def scaling(by):
            def scaled():
                return by * 2  #
            return [scaled]

        scaling(torch.ones(2).half())
        scaling(torch.ones(2).double())
    """,
    "a list of the function around grows": """
        def log():
            xs = [torch.ones(2)]

            def add(x):
                xs.append(x)

            def last():
                return xs[-1] * 1

            y = last()  # float32
            add(torch.ones(2).half())
            y = last()  # float16
            xs = [torch.ones(2).double()]
            y = last()  # float64
            return y

        log()
    """,
    "a lambda in a comprehension finds what the last turn has left": """
        def all_of():
            found = [lambda: x * 1 for x in (torch.ones(2).half(), torch.ones(2).double())]
            y = found[0]()  #
            return y

        all_of()
    """,
    "a lambda at the top of a module finds what that binds": """
        w = torch.ones(2)
        scaled = lambda: w * 2
        y = scaled()  # float32
        if y.sum() > 0:
            w = w.half()
        y = scaled()  # float16|float32
    """,
    "a global is bound anew between two calls": """
        w = torch.ones(2)

        def scaled():
            return w * 2

        def called():
            return scaled()

        y = called()  # float32
        w = w.double()
        y = called()  # float64
    """,
    "a function that calls itself binds a name around it": """
        def count():
            found = torch.ones(2).half()

            def down(n):
                nonlocal found
                if n == 0:
                    return
                found = found.double() if n == 1 else found.float()
                down(n - 1)

            down(2)
            return found * 1  # float64

        count()
    """,
}


@pytest.fixture(params=PROGRAMS)
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(HEAD + textwrap.dedent(PROGRAMS[request.param]) + "y = torch.ones(1)\ny.sum()\n")
    return path


def test_what_inner_functions_find_is_told(program: Path) -> None:
    hold(program)


def test_no_claim_is_contradicted(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    (program.parent / "somewhere.py").write_text("def later(function):\n    function()\n")
    monkeypatch.syspath_prepend(program.parent)
    assert not contradicted(program)
