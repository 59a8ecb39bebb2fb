"""DT315: an op or a layer gets tensors of dtypes with which it raises."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.diagnostic import Severity
from dtlint.dtypes.dtype import FLOATING, LOW_PRECISION
from dtlint.dtypes.table import load
from dtlint.infer.calls import dtype_of
from dtlint.infer.layers import AGREEING, KEEPING
from dtlint.infer.names import path_of
from dtlint.infer.refusals import refusal
from dtlint.infer.survey import facts
from dtlint.infer.values import Items, Module, Tensor
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._einsum import contracts
from dtlint_rules._names import last_name
from dtlint_rules._needs import HALF_BY_NAME, TORCH
from dtlint_rules._operands import settled
from dtlint_rules._refusals import refused
from dtlint_rules._statements import statements
from dtlint_rules._subjects import Operand

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call, Flow, Operation
    from dtlint.infer.facts import ModuleFacts
    from dtlint.infer.values import Dtypes, Key, Value

__all__ = ["RefusedDtypes"]

_LAYERS = AGREEING | {"RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell", "PReLU"}
"""Layers of torch.nn that raise where input and weight differ in dtype."""
_NORMS = frozenset({"LayerNorm", "GroupNorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d"})
"""Layers that raise there, too, but for float32 weights and a half input."""
_LISTING = frozenset({"modules", "named_modules", "children", "named_children", "apply"})
"""Methods by which a program finds the norms of a model, to cast them back: their weights are not certain then."""
_PRODUCTS = frozenset({"mm", "bmm", "matmul", "mv", "dot", "linear", "addmm", "baddbmm", "addbmm", "addmv", "solve"})
"""Ops that raise for an integer beside a floating tensor, too."""
_FLOAT32 = frozenset({"float32"})
_SCALARS = {"float16": "Half", "float32": "Float", "float64": "Double", "bfloat16": "BFloat16"} | {
    "int64": "Long",
    "int32": "Int",
    "int16": "Short",
    "int8": "Char",
    "uint8": "Byte",
    "bool": "Bool",
}
"""Dtypes, as torch's messages name them."""


class RefusedDtypes(Rule):
    """An op or a layer gets tensors of dtypes with which it raises.

    ## What it does
    Reports a call whose operands have dtypes that the code shows, and that torch refuses together: a matrix product,
    convolution, attention or `lerp` of a float16 and a float32 tensor, or of a float32 tensor and integers, and an `einsum`
    of them that sums over an index; a
    layer or norm that is cast to one dtype and called with another; a model that was cast, whose `forward` gives a layer
    what it is called with, or a tensor of a dtype of its own. Ops are looked up in the table of what torch does. Nothing
    is reported inside autocast, which casts the operands of most such ops, nor where one of the dtypes is not certain.

    ## Why it matters
    These ops do not promote as `+` does: "expected m1 and m2 to have the same dtype, but got: float != c10::Half". The
    program ends there, perhaps hours after it was started.

    ## Example
    ```python
    import torch

    model = torch.nn.Linear(4, 2).half()
    scores = model(torch.randn(3, 4))
    ```

    ## Use instead
    ```python
    import torch

    model = torch.nn.Linear(4, 2).half()
    scores = model(torch.randn(3, 4).half())
    ```

    ## References
    - [Module.half](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.half)
    - [Type promotion](https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc)
    """

    code, name, severity = "DT315", "refused-dtypes", Severity.ERROR
    triggers = (
        *(*HALF_BY_NAME, "float64", ".double", "self.double", "DoubleTensor"),
        *(".matmul", ".mm", ".bmm", ".mv", ".dot", ".einsum"),
    )
    needs = (TORCH,)
    calls = frozenset({"torch."})
    operators = frozenset({ast.MatMult})

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        return refused(facts, self.code)

    def __init__(self) -> None:
        self.made: dict[Key, Dtypes] = {}
        """The dtype that each layer of torch.nn was made with."""
        self.fed: dict[ast.AST, dict[str, list[tuple[ast.Call, bool]]]] = {}
        """By class, the arguments of its forward that go into a layer as they are, and the calls of those layers:
        is it a norm?"""
        self.fixed: dict[ast.AST, list[tuple[ast.Call, str, bool]]] = {}
        """By class, the calls of a layer in its forward that get a tensor of one dtype, whoever calls, and that dtype:
        is it a norm?"""
        self.named: dict[ast.AST, frozenset[Key]] = {}
        """By scope, the objects that its statements make and bind to one name."""

    def on_call(self, call: Call) -> Iterable[Finding]:
        target = call.target
        if target == "torch.nn.Module.__call__":
            return self._on_module(call) if call.flow.autocast is None else ()
        if target.startswith("torch.nn.") and (target[9:] in _LAYERS or target[9:] in _NORMS):
            self._note_layer(call)
        elif target == "torch.einsum":
            return _on_einsum(call) if call.flow.autocast is None else ()
        elif call.complete and target.startswith("torch."):
            args = [call.receiver, *call.args] if target.startswith("torch.Tensor.") else call.args
            if _hold_dtypes(args, call.keywords) and call.flow.autocast is None:
                return _on_op(call, target, args, call.keywords)
        return ()

    def on_operation(self, operation: Operation) -> Iterable[Finding]:
        if operation.flow.autocast is not None:
            return ()
        return _on_op(operation, "torch.matmul", [operation.left, operation.right], {}, "@")

    # -- layers and models

    def _note_layer(self, call: Call) -> None:
        key = f"@{call.node.lineno}:{call.node.col_offset}"
        default = None if facts(call.flow.tree).sets_default or not call.complete else _FLOAT32
        told = any(part.arg in ("affine", "elementwise_affine", None) for part in call.node.keywords)
        if call.target[9:] in _NORMS and (told or len(call.node.args) > 2):
            return  # it may have no weights
        self.made[key] = dtype_of(call.keywords["dtype"]) if "dtype" in call.keywords else default

    def _on_module(self, call: Call) -> Iterator[Finding]:
        module, flow = call.receiver, call.flow
        if not isinstance(module, Module) or not call.args or not call.node.args:
            return
        given = call.args[0]
        path = path_of(call.node.func) or ""
        if module.info is None and path.startswith("self."):
            self._note_fed(call, given, flow)
        weights = self._weights(module, flow)
        if weights is None or weights not in FLOATING or module.key not in self._named(flow.scope):
            return
        if module.info is None:
            first = _first(module)
            if first is None or not isinstance(given, Tensor):
                return
            norm = first.name[9:] in _NORMS
            if norm and first.key not in self.made:
                return
            if _refuses(weights, _dtype(given), norm):
                yield _on_weights(call, given, weights)
        elif module.key in flow.state.casts:
            yield from self._on_model(call, module, given, weights)

    def _on_model(self, call: Call, module: Module, given: Value, weights: str) -> Iterator[Finding]:
        assert module.info is not None
        forward = module.info.method("forward")
        if forward is None or forward.owner is None or len(forward.node.args.args) < 2:
            return
        owner, name = forward.owner.node, forward.node.args.args[1].arg
        for layer, norm in self.fed.get(owner, {}).get(name, ()):
            if (
                isinstance(given, Tensor)
                and _refuses(weights, _dtype(given), norm)
                and not _may_be_back(layer, norm, call)
            ):
                yield _on_weights(call, given, weights, layer)
                return
        for layer, dtype, norm in self.fixed.get(owner, ()):
            if not _refuses(weights, dtype, norm) or _may_be_back(layer, norm, call):
                continue
            yield Finding(
                call.node,
                f"`{path_of(call.node.func)}` has {weights} weights, but `{ast.unparse(layer.func)}` gets {dtype}: this raises",
                help=f"Cast the input of that layer: `.to({ast.unparse(layer.func)}.weight.dtype)`",
                notes=((layer, "the layer"),),
            )
            return

    def _note_fed(self, call: Call, given: Value, flow: Flow) -> None:
        """A layer in a forward that is called with the argument itself, or with a tensor of one dtype."""
        function, module = flow.function, call.receiver
        if function is None or function.owner is None or function.name != "forward" or flow.conditions or flow.loops:
            return
        if not isinstance(module, Module) or not module.name.startswith("torch.nn."):
            return
        norm = module.name[9:] in _NORMS and module.key in self.made
        if not norm and module.name[9:] not in _LAYERS:
            return
        symbol = given.symbol if isinstance(given, Tensor) else None
        atom = symbol.sole if symbol is not None and symbol.exact else None
        dtypes = settled(Operand(call.node.args[0], given), flow)
        dtype = next(iter(dtypes)) if dtypes is not None and len(dtypes) == 1 else None
        if atom is not None and atom.parameter:
            self.fed.setdefault(function.owner.node, {}).setdefault(atom.text, []).append((call.node, norm))
        elif dtype is not None and dtype in FLOATING:
            self.fixed.setdefault(function.owner.node, []).append((call.node, dtype, norm))

    def _weights(self, module: Module, flow: Flow) -> str | None:
        """The dtype of a module's weights now: what it was cast to, or else made with."""
        cast = flow.state.casts.get(module.key)
        if cast is not None:
            return next(iter(cast[1])) if cast[1] is not None and len(cast[1]) == 1 else None
        made = self.made.get(module.key)
        return next(iter(made)) if made is not None and len(made) == 1 else None

    def _named(self, scope: ast.AST) -> frozenset[Key]:
        if scope not in self.named:
            self.named[scope] = frozenset(_made_and_bound(scope))
        return self.named[scope]


def _made_and_bound(scope: ast.AST) -> Iterator[Key]:
    """The keys of what a scope makes and binds to a name: `model = Net().half()`. Elsewhere one place may make many."""
    for statement in statements(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        if type(statement) is not ast.Assign or type(statement.targets[0]) is not ast.Name:
            continue
        node = statement.value
        while isinstance(node, ast.Call):
            yield f"@{node.lineno}:{node.col_offset}"
            node = node.func.value if isinstance(node.func, ast.Attribute) else node.func


def _first(module: Module) -> Module | None:
    """The layer that gets what a layer is called with, and has weights to hold against it: itself, or of a Sequential the
    first that is no activation. None where that is not known, or takes other dtypes than its own: an Embedding."""
    if module.name == "torch.nn.Sequential":
        for item in module.items or ():
            if not isinstance(item, Module) or item.info is not None or item.name[9:] not in KEEPING:
                return _first(item) if isinstance(item, Module) and item.info is None else None
        return None
    name = module.name[9:] if module.name.startswith("torch.nn.") else ""
    return module if name in _LAYERS or name in _NORMS else None


def _refuses(weights: str, given: str | None, norm: bool) -> bool:
    """Does a layer raise for a tensor of that dtype? A norm of float32 weights takes half."""
    if given is None or given == weights:
        return False
    return not norm or (given in FLOATING and not (weights == "float32" and given in LOW_PRECISION))


def _may_be_back(layer: ast.Call, norm: bool, call: Call) -> bool:
    """May the program have cast that norm back, as half models often have it: `model.norm.float()`, or each in a loop?"""
    if not norm:
        return False
    name = last_name(layer.func)
    return any(
        isinstance(node, ast.Attribute)
        and (node.attr in _LISTING or (node.attr in ("float", "to", "type") and last_name(node.value) == name))
        for node in nodes([call.flow.tree])
    )


def _on_weights(call: Call, given: Tensor, weights: str, layer: ast.Call | None = None) -> Finding:
    shown = path_of(call.node.func) or "it"
    inner = "" if layer is None else f"gives it to `{ast.unparse(layer.func)}` and "
    notes: list[tuple[ast.expr | ast.stmt, str]] = [] if layer is None else [(layer, "the layer")]
    if given.origin is not None and given.origin.lineno != call.node.lineno:
        notes.append((given.origin, f"{_dtype(given)} since here"))
    return Finding(
        call.node,
        f"`{shown}` has {weights} weights and gets {_article(_dtype(given))} tensor: it {inner}raises",
        help=f"Cast the input: `.to(torch.{weights})`",
        notes=tuple(notes),
    )


def _article(dtype: str | None) -> str:
    return f"{'an' if dtype in ('int8', 'int16', 'int32', 'int64') else 'a'} {dtype}"


# -- ops


def _on_einsum(call: Call) -> Iterator[Finding]:
    """An einsum that sums over an index is a matrix product of its operands."""
    if not contracts(call.node) or len(call.args) != 3:
        return
    first, second = call.args[1:]
    if not isinstance(first, Tensor) or not isinstance(second, Tensor):
        return
    pair = [dtype for tensor in (first, second) if (dtype := _dtype(tensor)) is not None]
    if len(pair) == 2 and pair[0] != pair[1] and not FLOATING.isdisjoint(pair):
        left, right = (_SCALARS.get(dtype, dtype.capitalize()) for dtype in pair)
        yield _refused(
            call, "einsum", set(pair), f"expected scalar type {left} but found {right}", _may_be_saved(call, set(pair))
        )


def _on_op(
    event: Call | Operation, op: str, args: list[Value], keywords: dict[str, Value], shown: str = ""
) -> Iterable[Finding]:
    dtypes = _floating([*args, *keywords.values()])
    if not dtypes or (len(dtypes) == 1 and op.rpartition(".")[2] not in _PRODUCTS):
        return ()
    return _on_operands(event, op, args, keywords, shown)


def _on_operands(
    event: Call | Operation, op: str, args: list[Value], keywords: dict[str, Value], shown: str
) -> Iterator[Finding]:
    message = refusal(op, args, keywords)
    if message is None:
        return
    if op.rpartition(".")[2] == "matmul":  # of two matrices, as most products are
        message = refusal("torch.mm", [*args, *keywords.values()], {}) or message
    every = {dtype for value in _tensors([*args, *keywords.values()]) if (dtype := _dtype(value)) is not None}
    name = shown or op.removeprefix("torch.nn.functional.").removeprefix("torch.Tensor.").removeprefix("torch.")
    saved = _may_be_saved(event, every) and load().autocast("cuda", op) is not None
    yield _refused(event, name, every, message, saved)


def _may_be_saved(event: Call | Operation, dtypes: set[str]) -> bool:
    """May a caller have opened an autocast region, which casts floating operands, and leaves integers as they are?"""
    return dtypes <= FLOATING and not event.flow.region_known


def _refused(event: Call | Operation, name: str, dtypes: set[str], message: str, saved: bool) -> Finding:
    said = "" if "(?)" in message else f": {message}"  # learned of an argument that is not given here
    return Finding(
        event.node,
        f"`{name}` of {' and '.join(sorted(dtypes))} raises{', unless it runs under autocast' if saved else ''}{said}",
        help="Cast one operand to the dtype of the other",
        severity=Severity.WARNING if saved else None,
    )


def _tensors(values: Iterable[Value]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, Items):
            yield from _tensors(value.items)


def _hold_dtypes(args: list[Value], keywords: dict[str, Value]) -> bool:
    """May a tensor of a known dtype be among some arguments? In most calls none is, and this is asked of all."""
    for value in args:
        if (type(value) is Tensor and value.dtypes is not None) or type(value) is Items:
            return True
    return any(type(value) is Tensor or type(value) is Items for value in keywords.values()) if keywords else False


def _floating(values: Iterable[Value]) -> set[str]:
    """The floating dtypes among those that tensors are known to have: of most calls there are none."""
    found: set[str] = set()
    for value in values:
        if type(value) is Tensor:
            dtype = _dtype(value)
            if dtype is not None and dtype in FLOATING:
                found.add(dtype)
        elif type(value) is Items:
            found |= _floating(value.items)
    return found


def _dtype(value: Tensor) -> str | None:
    """The one dtype that a tensor has."""
    return next(iter(value.dtypes)) if value.dtypes is not None and len(value.dtypes) == 1 else None
