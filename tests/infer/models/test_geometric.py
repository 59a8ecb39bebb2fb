"""A layer of torch_geometric is run by the names of its methods' parameters; the library is a sketch of it here."""

from __future__ import annotations

import ast
import textwrap
from typing import TYPE_CHECKING

from dtlint.infer.interproc.disk import Disk
from dtlint.infer.interproc.reading import read

if TYPE_CHECKING:
    from pathlib import Path

LIBRARY = {
    "__init__.py": "",
    "nn/__init__.py": "",
    "nn/resolver.py": "def aggregation_resolver(query, **options): raise NotImplementedError",
    "nn/aggr/__init__.py": "",
    "nn/aggr/basic.py": """
        from torch import nn
        class SumAggregation(nn.Module):
            def forward(self, x, index, dim_size=None):
                return x * 1
    """,
    "nn/conv/__init__.py": "",
    "nn/conv/message_passing.py": """
        from torch import nn
        from ..resolver import aggregation_resolver
        class MessagePassing(nn.Module):
            def __init__(self, aggr="add", flow="source_to_target"):
                super().__init__()
                self.flow = flow
                self.aggr_module = aggregation_resolver(aggr)
                self._set_jittable_templates()
            def _set_jittable_templates(self):
                exec("...")
            def propagate(self, edge_index, size=None, **kwargs):
                raise NotImplementedError
            def edge_updater(self, edge_index, size=None, **kwargs):
                raise NotImplementedError
            def message(self, x_j):
                return x_j
            def aggregate(self, inputs, index, dim_size=None):
                return self.aggr_module(inputs, index, dim_size=dim_size)
            def update(self, inputs):
                return inputs
    """,
    "data/__init__.py": "",
    "data/batch.py": """
        class Batch:
            @classmethod
            def from_data_list(cls, data_list):
                raise NotImplementedError
    """,
}
LAYER = """
    import torch
    from torch_geometric.data.batch import Batch
    from torch_geometric.nn.conv.message_passing import MessagePassing
    class Conv(MessagePassing):
        def forward(self, x, edge_index, weight):
            scores = self.edge_updater(edge_index, x=x, weight=weight)
            return self.propagate(edge_index, x=x, scores=scores, size=None)
        def edge_update(self, x_j, x_i, weight=None):
            at_target = x_i * 2
            return x_j.sum(-1) + weight
        def message(self, x_j, scores, index, size_i):
            places = index + 1
            return x_j * scores[:, None]
    edges = torch.zeros(2, 5, dtype=torch.long)
"""


def _found(tmp_path: Path, text: str) -> dict[str | None, frozenset[str] | None]:
    for name, content in LIBRARY.items():
        path = tmp_path / "torch_geometric" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(content))
    source = textwrap.dedent(LAYER) + textwrap.dedent(text)
    program = tmp_path / "program.py"
    program.write_text(source)
    return {
        ast.get_source_segment(source, node): getattr(value, "dtypes", None)
        for node, module, value in read(program, [tmp_path], Disk()).facts.tensors()
        if getattr(module, "path", None) == program
    }


def test_each_end_of_a_pair_is_given_by_its_name(tmp_path: Path) -> None:
    text = """
        x = torch.ones(3, 2).half(), torch.ones(3, 2).double()
        out = Conv()(x, edges, torch.ones(5).half())
        print(out.sum())
        edges.sum()
    """
    found = _found(tmp_path, text)
    assert found["x_i * 2"] == {"float64"}
    assert found["x_j.sum(-1) + weight"] == {"float16"}
    assert found["index + 1"] == {"int64"}
    assert found["x_j * scores[:, None]"] == {"float16"}
    assert found["out"] == {"float16"}


def test_the_other_flow_takes_the_other_ends(tmp_path: Path) -> None:
    text = """
        x = torch.ones(3, 2).half(), torch.ones(3, 2).double()
        out = Conv(flow="target_to_source")(x, edges, torch.ones(5).half())
        edges.sum()
    """
    assert _found(tmp_path, text)["x_i * 2"] == {"float16"}


def test_nothing_is_known_of_messages_along_edges_that_are_not(tmp_path: Path) -> None:
    text = """
        import json
        out = Conv()(torch.ones(3, 2), json.loads("0"), torch.ones(5))
        edges.sum()
    """
    found = _found(tmp_path, text)
    assert not found.get("x_j * scores[:, None]")
    assert not found.get("out")


def test_a_batch_of_graphs_has_what_they_have(tmp_path: Path) -> None:
    text = """
        class Storage:
            def __init__(self):
                self._mapping = {}
        class Data:
            def __init__(self, **fields):
                self._store = Storage()
                for key, value in fields.items():
                    self._store._mapping[key] = value
            def __getattr__(self, key):
                return self._store._mapping[key]
        graphs = [Data(x=torch.ones(3).half(), y=1.5), Data(x=torch.ones(4).half(), y=2.5)]
        batch = Batch.from_data_list(graphs)
        a, b, c = batch.x, batch.batch, batch.y
        print(a, b, c)
        edges.sum()
    """
    found = _found(tmp_path, text)
    assert found["a"] == {"float16"}
    assert found["b"] == {"int64"}
    assert found["c"] == {"float32"}
