"""What rules are told of a module."""

from __future__ import annotations

import ast
from textwrap import dedent

from dtlint.check.reader import Reader
from dtlint.dtypes.dtype import Category
from dtlint.infer.domain.values import NO_TENSOR, Const, Number, Ref, Region, Tensor, Unknown
from dtlint.infer.facts import ModuleFacts


def facts_of(text: str) -> ModuleFacts:
    return Reader().facts(ast.parse(dedent(text)), None)


def one_call(facts: ModuleFacts, *names: str) -> tuple[int, str]:
    (call,) = facts.calls(*names)
    return call.node.lineno, call.name


def test_calls_are_told_by_their_qualified_names_and_methods_by_their_receivers_class() -> None:
    facts = facts_of("""
        import torch
        from torch import nn
        from torch.nn import functional as F

        layer = nn.Linear(2, 3)
        layer.half()
        y = F.softmax(layer(torch.zeros(2).half()), -1)
    """)
    assert one_call(facts, "torch.nn.Module.half", "torch.nn.Linear.half")[0] == 7
    assert one_call(facts, "torch.Tensor.half")[0] == 8
    assert one_call(facts, "torch.nn.Linear.__call__")[0] == 8
    assert one_call(facts, "torch.nn.functional.") == (8, "torch.nn.functional.softmax")
    assert sorted(call.node.lineno for call in facts.methods("half")) == [7, 8]


def test_a_function_is_told_as_anybody_may_call_it() -> None:
    facts = facts_of("""
        import torch

        def scaled(x, factor=2):
            return x.to(torch.int8) * factor

        scaled(torch.zeros(3))
    """)
    (call,) = facts.methods("to")
    assert isinstance(call.receiver, Unknown) and call.receiver.symbol is not None
    assert isinstance(call.result, Unknown) and call.result.dtypes == {"int8"}


def test_a_context_of_a_generator_may_decorate_a_function() -> None:
    facts = facts_of("""
        import torch
        from contextlib import contextmanager

        @contextmanager
        def timed(name):
            yield name

        def wrapped(function):
            return timed("step")(function)
    """)
    assert "contextlib.contextmanager" in {call.name for call in facts.calls()}


def test_an_attribute_that_another_method_sets_may_be_there_or_not() -> None:
    facts = facts_of("""
        class Cached:
            def __init__(self, size):
                self.size = size

            def keep(self, x):
                self.kept = x

            def there(self, x):
                if not hasattr(self, "kept"):
                    return x.half()
                return x.float()

            def perhaps(self, x):
                kept = getattr(self, "kept", None)
                return x.half() if kept is None else kept.float()

            def never(self, x):
                return x.half() if hasattr(self, "other") else x.double()
    """)
    assert sorted(call.node.lineno for call in facts.methods("half")) == [11, 16]
    assert sorted(call.node.lineno for call in facts.methods("float")) == [12, 16]


def test_classes_inside_classes_and_functions_are_read_though_nobody_in_view_makes_one() -> None:
    facts = facts_of("""
        import torch

        class Builder:
            class Part:
                def weigh(self, x):
                    return torch.zeros(2).double()

        def builder(size):
            scale = torch.ones(size).half()

            class Local:
                def __init__(self):
                    self.scale = scale

                def weigh(self, x):
                    return self.scale.double()

            return Local
    """)
    assert sorted(call.node.lineno for call in facts.methods("double")) == [7, 17]
    assert {call.receiver.dtypes for call in facts.methods("double")} >= {frozenset({"float16"})}


def test_functions_inside_others_are_read_though_nobody_in_view_calls_them() -> None:
    facts = facts_of("""
        import torch

        def register(module):
            scale = torch.ones(1).double()

            def hook(grad):
                return grad * scale

            module.register_hook(hook)
    """)
    (product,) = facts.evaluations(ast.BinOp)
    assert isinstance(product.operands[1], Tensor) and product.operands[1].dtypes == {"float64"}


def test_operators_keep_their_operands_and_the_region() -> None:
    facts = facts_of("""
        import torch

        with torch.autocast("cuda", torch.float16):
            y = torch.zeros(3).half() @ torch.zeros(3)
    """)
    (product,) = facts.evaluations(ast.BinOp)
    assert [sorted(one.dtypes or ()) for one in product.operands if isinstance(one, Tensor)] == [
        ["float16"],
        ["float32"],
    ]
    assert product.region == Region("cuda", "float16", True)
    assert [region for _, region in facts.regions()] == [product.region]


def test_assignments_tell_the_owner_and_what_is_assigned() -> None:
    facts = facts_of("""
        import torch

        x = torch.zeros(3)
        x[0] = 1.5
    """)
    plain, item = facts.assignments()
    assert isinstance(plain.node, ast.Name) and isinstance(plain.result, Tensor)
    assert isinstance(item.node, ast.Subscript) and item.result == Const(1.5)
    assert isinstance(item.operands[0], Tensor) and item.operands[1] == Const(0)


def test_guards_are_the_tests_that_hold() -> None:
    facts = facts_of("""
        def f(x, amp):
            if x is None:
                return
            if amp and x.is_cuda:
                x.a()
            else:
                y = x.b() if x.ok else x.c()
    """)
    guards = {
        call.method: [(ast.unparse(guard.test), guard.holds) for guard in facts.around.guards(call.node)]
        for call in facts.methods("a", "b", "c")
    }
    assert guards["a"] == [("x is None", False), ("amp", True), ("x.is_cuda", True)]
    assert guards["b"] == [("x is None", False), ("amp and x.is_cuda", False), ("x.ok", True)]
    assert guards["c"][-1] == ("x.ok", False)


def definitions(text: str, name: str) -> list[str]:
    """The definitions of a variable where `use(name)` stands."""
    facts = facts_of(text)
    (node,) = (
        one.args[0]
        for one in ast.walk(facts.tree)
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id == "use"
    )
    assert isinstance(node, ast.Name) and node.id == name
    return [
        ast.unparse(one) if not isinstance(one, ast.arg) else f"parameter {one.arg}"
        for one in facts.around.definitions(node)
    ]


def test_definitions_are_those_that_reach_a_use() -> None:
    assert definitions("def f(x):\n    y = x\n    y = 2\n    use(y)", "y") == ["2"]
    assert definitions("def f(x, c):\n    if c:\n        x = 1\n    use(x)", "x") == ["1", "parameter x"]
    assert definitions(
        "def f(c):\n    if c:\n        x = 1\n        return\n    else:\n        x = 2\n    use(x)", "x"
    ) == ["2"]
    assert definitions("def f(n):\n    x = 0\n    for i in n:\n        use(x)\n        x = x + i", "x") == [
        "0",
        "x + i",
    ]
    assert definitions("x = 1\ndef f():\n    use(x)", "x") == ["1"]
    assert definitions("def f():\n    try:\n        x = 1\n    except ValueError:\n        x = 2\n    use(x)", "x") == [
        "2",
        "1",
    ]


def test_a_parameter_that_is_declared_to_be_a_module_is_no_tensor() -> None:
    facts = facts_of("""
        from torch import nn

        class Net(nn.Module):
            pass

        def cast(model: nn.Module, layer: nn.Linear | None, net: Net, other):
            return model.half(), layer.half(), net.half(), other.half()
    """)
    found = [call.receiver for call in facts.methods("half")]
    assert found[:3] == [NO_TENSOR] * 3 and found[3] != NO_TENSOR


def test_what_something_is_made_of_stands_behind_its_variables() -> None:
    facts = facts_of("""
        def f(x, flag):
            y = x.round()
            if flag:
                y = y * 2
            return y.view(-1)
    """)
    (view,) = facts.methods("view")
    made = list(facts.around.made_of(view.node))
    assert {one.func.attr for one in made if isinstance(one, ast.Call)} == {"view", "round"}  # type: ignore[attr-defined]
    assert any(isinstance(one, ast.BinOp) for one in made) and any(isinstance(one, ast.arg) for one in made)


def test_an_operation_tells_what_it_would_say_for_other_dtypes_of_the_caller() -> None:
    facts = facts_of("""
        import torch

        def scores(q: torch.Tensor, k: torch.Tensor):
            return q.float() @ k
    """)
    (product,) = (seen.what for seen in facts.operations(lambda one: one.op == "torch.matmul"))
    assert product.error is None
    assert product.refusal_as("float32") is None
    assert product.refusal_as("float16") is not None


def test_subscripts_that_torch_refuses_are_operations() -> None:
    facts = facts_of("""
        import torch

        def looked_up(x: torch.Tensor):
            return x[torch.arange(3) / 2]

        def written():
            table = torch.zeros(4, dtype=torch.float32)
            table[[0, 1]] = torch.ones(2, dtype=torch.float16)
            table[:2] = torch.ones(2, dtype=torch.float16)
    """)
    refused = {(seen.node.lineno, seen.what.op) for seen in facts.refusals()}
    assert refused == {(5, "torch.Tensor.__getitem__"), (9, "torch.Tensor.__setitem__")}


def test_a_test_that_every_torch_in_use_passes_chooses_nothing() -> None:
    facts = facts_of("""
        import torch
        from packaging.version import parse

        if parse(torch.__version__) >= parse("1.6"):
            from torch.cuda.amp import autocast
        else:
            autocast = None
        newer = parse(torch.__version__) >= parse("99.0")
        with autocast():
            pass
    """)
    assert [(node.lineno, name) for node, name in facts.names("torch.cuda.amp.autocast")] == [
        (10, "torch.cuda.amp.autocast")
    ]
    values = {one.node.id: one.result for one in facts.assignments() if isinstance(one.node, ast.Name)}
    assert not isinstance(values["newer"], Const)


def test_items_are_told_of_tuples_and_of_lists_that_are_written_out() -> None:
    facts = facts_of("""
        kinds = ["half", "float"]
        print("half" in kinds, "half" in ("half",), "half" in unknown)
    """)
    asked = [facts.items(one.node.comparators[0]) for one in facts.evaluations(ast.Compare)]
    assert asked == [(Const("half"), Const("float")), (Const("half"),), None]


def test_a_file_that_is_read_again_shows_the_same() -> None:
    tree = ast.parse("import torch\n\nx = torch.zeros(3)\nx.half()\n")
    reader = Reader()
    first, second = (one_call(reader.facts(tree, None), "torch.Tensor.half") for _ in range(2))
    assert first == second == (4, "torch.Tensor.half")


def test_a_list_that_holds_itself_is_followed_so_far() -> None:
    """As data of a tensor and as an item of a batch."""
    facts = facts_of("""
        import torch
        from torch.utils.data import default_collate

        class Rows:
            def __init__(self):
                self.rows = []

            def add(self):
                self.rows.append(self.rows)
                return torch.tensor(self.rows), default_collate([self.rows])
    """)
    assert facts.broken_off is None


def test_what_methods_change_is_not_what_the_constructor_left() -> None:
    """A number that is counted up stays one; layers and tensors keep their kind."""
    facts = facts_of("""
        import torch

        class Buffer:
            def __init__(self, size):
                self.size, self.layer = 3, torch.nn.Linear(2, 2)
                self.rows, self.chosen, self.last, self.steps = [], [], None, 0
                self.reset()

            def reset(self):
                self.size = 3

            def add(self, row, scores):
                self.rows.append(row)
                self.chosen = [int(score) for score in scores]
                self.last = row
                self.steps += 1
                self.layer = self.layer.cpu()

            def read(self):
                if self.last is None:
                    return None
                self.steps
                self.layer
                self.size
                torch.tensor(self.chosen)
                return torch.cat(self.rows)
    """)
    read = next(node for node in ast.walk(facts.tree) if isinstance(node, ast.FunctionDef) and node.name == "read")
    values = {ast.unparse(node): facts.value(node) for node in ast.walk(read) if isinstance(node, ast.expr)}
    chosen = values["torch.tensor(self.chosen)"]
    assert isinstance(chosen, Tensor)
    assert chosen.dtypes is None
    assert isinstance(values["torch.cat(self.rows)"], Tensor)
    assert isinstance(values["self.layer"], Ref)
    assert values["self.steps"] == Number(Category.INTEGER)
    assert values["self.size"] == Const(3)


def test_what_functions_assign_to_global_variables_is_not_what_the_module_left() -> None:
    facts = facts_of("""
        import torch

        cache, size = None, 3

        def fill(x):
            global cache
            cache = x

        def read():
            if cache is None:
                return None
            return torch.zeros(size).half()
    """)
    assert isinstance(facts.tree.body[-1], ast.FunctionDef)
    given = facts.tree.body[-1].body[-1]
    assert isinstance(given, ast.Return)
    assert given.value is not None
    assert isinstance(facts.value(given.value), Tensor)


def test_an_iterator_is_asked_for_items_and_for_no_iterator_again() -> None:
    """Each of two classes gives the other as its iterator, as loaders and their workers may."""
    facts = facts_of("""
        import torch

        class Loader:
            def __iter__(self):
                return Worker()

        class Worker:
            def __iter__(self):
                return Loader()

            def __next__(self):
                return torch.zeros(2, dtype=torch.float64)

        for batch in Loader():
            total = batch * 2
    """)
    assert facts.broken_off is None
    loop = facts.tree.body[-1]
    assert isinstance(loop, ast.For)
    assert isinstance(loop.body[0], ast.Assign)
    doubled = facts.value(loop.body[0].value)
    assert isinstance(doubled, Tensor)
    assert doubled.dtypes == {"float64"}
