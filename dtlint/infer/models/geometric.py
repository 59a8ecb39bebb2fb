"""torch_geometric (2.3 to 2.8): `propagate` calls `message`, `aggregate` and `update` of a layer by the names of their parameters.

As https://pytorch-geometric.readthedocs.io/en/latest/tutorial/create_gnn.html has it: `x_j` is what `propagate` was given as `x`,
looked up at the sources of the edges, and `x_i` at their targets, or the other way round by the layer's `flow`; of a pair each
end has its own. Others are passed on as they are, and a few speak of the edges: `index`, `ptr`, `dim_size`. `edge_updater` calls
`edge_update` likewise. The methods themselves are written from templates when a layer is made. Sparse adjacency matrices, hooks
and explanations are not followed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import Category
from dtlint.infer.context import Arguments, NeverReturns
from dtlint.infer.domain.lattice import category_of, join, join_all
from dtlint.infer.domain.values import (
    NONE,
    TOP,
    Const,
    External,
    Function,
    Many,
    Mapping,
    Number,
    ProjectClass,
    Ref,
    Tensor,
    Tuple,
    Value,
    choices,
    present,
)
from dtlint.infer.models import plain_tensors
from dtlint.infer.models.data_loading import collated
from dtlint.infer.models.registry import model
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from dtlint.infer.context import Context

__all__: list[str] = []

_LAYER = "torch_geometric.nn.conv.message_passing.MessagePassing"
_AGGREGATIONS = {"add": "Sum", "sum": "Sum", "mean": "Mean", "max": "Max", "min": "Min", "mul": "Mul"}
"""Those that are chosen by name, by the classes that do them."""
_ENDS = ("_i", "_j")
_SIZE = Number(Category.INTEGER)


@model(f"{_LAYER}._set_jittable_templates")
def _templates(ctx: Context, arguments: Arguments) -> Value:
    """What is written from them does what the methods do that it stands for."""
    return NONE


@model("torch_geometric.nn.resolver.aggregation_resolver")
def _aggregation(ctx: Context, arguments: Arguments) -> Value:
    asked = arguments.get(0, "query")
    if isinstance(asked, Ref) and isinstance(asked.address.kind, ProjectClass):
        return asked
    name = _AGGREGATIONS.get(asked.value) if isinstance(asked, Const) and isinstance(asked.value, str) else None
    if name is None:
        return TOP
    cls = ctx.modules.imported_member(ctx, "torch_geometric.nn.aggr.basic", f"{name}Aggregation")
    return ctx.semantics.call(ctx, cls, Arguments([], arguments.keywords, arguments.complete, arguments.node))


@model(f"{_LAYER}.propagate")
def _propagate(ctx: Context, arguments: Arguments) -> Value:
    layer = arguments.args[0]
    if not isinstance(layer, Ref):
        return TOP
    found = _given(ctx, layer, arguments)
    messages = _run(ctx, layer, "message", [], found, arguments)
    gathered = _run(ctx, layer, "aggregate", [messages], found, arguments)
    return _run(ctx, layer, "update", [gathered], found, arguments)


@model(f"{_LAYER}.edge_updater")
def _update_edges(ctx: Context, arguments: Arguments) -> Value:
    layer = arguments.args[0]
    return (
        _run(ctx, layer, "edge_update", [], _given(ctx, layer, arguments), arguments) if isinstance(layer, Ref) else TOP
    )


@model("torch_geometric.data.batch.Batch.from_data_list")
def _batch(ctx: Context, arguments: Arguments) -> Value:
    """Several graphs as one: its tensors are as theirs, and `batch` says which node is whose."""
    graphs = ctx.semantics.items(ctx, arguments.get(1, "data_list") or TOP, arguments.node)
    first = join_all(graphs.items) if isinstance(graphs, Tuple) else graphs.item if isinstance(graphs, Many) else TOP
    fields: dict[str, Value] = {}
    each = choices(first or TOP)
    cls = each[0].address.kind if isinstance(each[0], Ref) else None
    for graph in each:
        content = _fields(ctx, graph, arguments)
        if content is None or not isinstance(graph, Ref) or graph.address.kind != cls:
            return TOP
        for key, value in content.items:
            one = present(value)
            if one is not None and isinstance(key, Const) and isinstance(key.value, str):
                made = _put_together(ctx, one, arguments)
                fields[key.value] = join(fields.get(key.value, made), made)
    index = Tensor(frozenset({"int64"}), None, 1)
    given = Arguments([], {"batch": index, "ptr": index, **fields}, True, arguments.node)
    return ctx.semantics.call(ctx, cls or TOP, given)


def _fields(ctx: Context, graph: Value, arguments: Arguments) -> Mapping | None:
    """What a graph holds, by name."""
    for name in ("_store", "_mapping"):
        graph = (ctx.semantics.attribute(ctx, graph, name, arguments.node) or TOP) if isinstance(graph, Ref) else TOP
    content = ctx.store.read(graph.address, CONTENT) if isinstance(graph, Ref) else None
    return content if isinstance(content, Mapping) and content.rest is None else None


def _put_together(ctx: Context, value: Value, arguments: Arguments) -> Value:
    """What a field of several graphs becomes: tensors as they are, numbers as torch.tensor makes tensors of them."""
    if isinstance(value, Tensor):
        return value
    if category_of(value) is Category.FLOAT:
        return Tensor(frozenset({"float32"}), None, 1, device="cpu")
    return collated(ctx, value, arguments)


def _given(ctx: Context, layer: Ref, arguments: Arguments) -> dict[str, Value] | None:
    """What the edges and the arguments are, by name, each end of a pair as `_i` or `_j`; None where the edges are not known to
    be pairs of numbers."""
    edges = plain_tensors.plain(ctx, arguments.get(1, "edge_index") or TOP)
    if not isinstance(edges, Tensor) or edges.dtypes != frozenset({"int64"}) or not arguments.complete:
        return None
    index = Tensor(edges.dtypes, None, 1, device=edges.device)
    found: dict[str, Value] = {"edge_index": edges, "adj_t": NONE, "ptr": NONE}
    found.update(dict.fromkeys(("index", "edge_index_i", "edge_index_j"), index))
    found.update(dict.fromkeys(("dim_size", "size_i", "size_j"), _SIZE))
    flow = ctx.semantics.attribute(ctx, layer, "flow", arguments.node)
    for name, value in arguments.keywords.items():
        if name in ("edge_index", "size"):
            continue
        found.setdefault(name, value)
        for end in _ENDS:
            place = int((end == _ENDS[0]) == (flow != Const("target_to_source")))
            found[f"{name}{end}"] = _at_edges(ctx, value, place, index, arguments)
    return found


def _at_edges(ctx: Context, value: Value, place: int, index: Value, arguments: Arguments) -> Value:
    """What belongs to the nodes, one row for each edge; of a pair what belongs to the nodes at one end."""
    content = ctx.store.read(value.address, CONTENT) if isinstance(value, Ref) else None
    pair = content if isinstance(content, Tuple) else value
    if isinstance(pair, Tuple) and len(pair.items) == 2:
        value = pair.items[place]
    looked_up = External("torch.index_select")
    made = [
        ctx.semantics.call(ctx, looked_up, Arguments([one, _SIZE, index], {}, True, arguments.node))
        if isinstance(one, Tensor)
        else one
        for one in choices(plain_tensors.plain(ctx, value))
    ]
    return join_all(made) or TOP


def _run(
    ctx: Context, layer: Ref, name: str, first: list[Value], found: dict[str, Value] | None, arguments: Arguments
) -> Value:
    """What a method of the layer gives for as much of what was found as it has parameters for."""
    method = ctx.semantics.attribute(ctx, layer, name, arguments.node)
    if not isinstance(method, Function):
        return TOP
    parameters = method.definition.node.args
    names = [one.arg for one in (*parameters.args[1:], *parameters.kwonlyargs)][len(first) :]
    given = dict.fromkeys(names, TOP) if found is None else {one: found[one] for one in names if one in found}
    try:
        return ctx.semantics.call(ctx, method, Arguments(first, given, True, arguments.node))
    except NeverReturns:
        ctx.modules.opened.add("torch_geometric")
        return TOP
