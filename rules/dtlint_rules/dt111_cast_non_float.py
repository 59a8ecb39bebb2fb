"""DT111: a floating cast of tensors of which some may hold integers."""

from __future__ import annotations

import ast
import re
from types import MappingProxyType
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix, Severity
from dtlint.infer.around import parents
from dtlint.infer.conditions import atoms
from dtlint.infer.names import path_of
from dtlint.infer.survey import scopes
from dtlint.infer.values import Dtype, DtypeOf, Module
from dtlint.infer.walk import SCOPES
from dtlint.rule import Finding, Rule
from dtlint_rules._assignments import assignments
from dtlint_rules._functions import own_nodes, parameters
from dtlint_rules._lengths import cast_length
from dtlint_rules._names import last_name, names_in
from dtlint_rules._needs import attributes
from dtlint_rules._parts import below, given, keyword, receiver
from dtlint_rules._statements import statements
from dtlint_rules._within import parents_at, within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dtlint.infer.events import Call, Flow, Reference
    from dtlint.source.place import Place

__all__ = ["CastNonFloat"]

_STATES = re.compile(
    r"(^|_|\.)(state_?dicts?|sd|ckpt|checkpoint|loaded_state|weights_dict)(_|$)|state_dict$", re.IGNORECASE
)
"""How dicts of a module's parameters and buffers are called."""
_BATCHES = re.compile(r"(^|_|\.)(batch|inputs|encodings?|encoded_inputs?|sample|kwargs)$|(^|\.|batch_|input_)features$")
"""How what a data loader or a tokenizer gives is called. `node_features`, of a graph, are floats."""
_LOADERS = frozenset(
    {"torch.load", "safetensors.torch.load_file", "safetensors.torch.load", "torch.nn.Module.state_dict"}
)
_MAPS = frozenset(
    {
        *("map", "tree_map", "tree_map_only", "map_structure", "apply_to_collection", "map_tensors"),
        *("recursively_apply", "apply_to_tensors", "map_aggregate"),
    }
)
"""Functions that apply another to every tensor of a nest."""
_OF_OTHERS = re.compile(r"(^|_|\.)(models|modules|layers|components|metrics|loss(es|s)|logs)(_|$)")
"""How dicts are called of what is no tensor that a model is given: of modules, and of what is told of a run."""
_NESTS = re.compile(r"(^|_|\.)(inputs?_?|args|kwargs|data|example_input\w*)$")
"""How what is handed to a model is called besides, where something is applied to every tensor of it."""
_DICTS = frozenset({"dict", "Dict", "Mapping", "abc.Mapping", "OrderedDict"})
"""What batches come in: a list may hold what a layer is given, which is floating."""
_HANDING = _MAPS | {"_apply"}
"""What a function is handed to by its name, to be called with each item."""
_CASTS = frozenset({"half", "float", "bfloat16", "double", "to", "type"})
_MOVING = frozenset({"to", "cpu", "cuda", "detach", "clone", "contiguous"})
_EXACT = frozenset({"float32", "float64"})
_LISTING = frozenset({"list", "tuple", "sorted", "tqdm"})
_TENSOR_NAME = re.compile(r"tensor|param|buffer|weight")
"""How the names of a module's tensors are called."""
_OF_PICTURES = frozenset({"images", "return_tensors", "size", "do_resize", "do_rescale", "do_normalize"})
"""What a processor is told of pictures."""
_SETTINGS = re.compile(r"^(self|args|cfg|config|opt|model|self\.model|self\.config|accelerator)\.\w*dtype$")
"""Dtypes that a program is told, unlike `other.dtype`."""
_TYPES = re.compile(r"^(?:dst|target|to|new|out)_type$")
"""How a dtype that is handed in is called, too."""
_ASKING = re.compile(r"\.dtype\b|is_floating_point|is_complex|[Ff]loat")
"""What stands in a test that asks for the dtype of a tensor."""


class CastNonFloat(Rule):
    """A cast to a floating dtype of all tensors of a batch, a state dict or a module's buffers.

    ## What it does
    Reports a cast to a floating dtype, or to a `dtype` that is handed in, of each tensor of a state dict, of a batch
    or of a module's buffers, and of a tensor fetched from a module by its name, where nothing asks for the
    tensor's dtype first. A test of the key, which picks out the tensors that are meant, counts as asking. Also a cast to
    half, or to a `dtype` that is handed in, of whatever a function finds that calls itself for the items of dicts, and a
    cast that is handed to a function for nests, `tree_map(torch.Tensor.half, batch)`; and lengths that are cast to half,
    `lengths.to(torch.float16)`, or to the dtype of the data whose size they are. As information, labels and indices in the
    `to(self, *args, **kwargs)` of a container that casts its other tensors with them.

    Conditional, and so reported with `--preview` only: lengths, and collections that only their names tell of, such
    as `batch`.

    ## Why it matters
    Not all of these tensors are floating. Token ids that become float16 raise `Expected tensor for argument #1
    'indices' to have one of the following scalar types: Long, Int`; quantized weights lose their packing; a counter
    such as BatchNorm's `num_batches_tracked` is exact up to 2048 only, and from 65520 on is inf in the file. Lengths in
    half are rounded, and the mask that is made of them is too long or too short.

    `Module.to` and `Module.half` cast floating parameters and buffers only, for the same reason.

    ## Example
    ```python
    import torch

    def load(path, dtype):
        state_dict = torch.load(path)
        for key, value in state_dict.items():
            state_dict[key] = value.to(dtype)
        return state_dict
    ```

    ## Use instead
    ```python
    import torch

    def load(path, dtype):
        state_dict = torch.load(path)
        for key, value in state_dict.items():
            state_dict[key] = value.to(dtype) if value.is_floating_point() else value
        return state_dict
    ```

    ## Fix safety
    The fix guards the cast by `is_floating_point()`, and moves what is not floating to the same device. It is unsafe, for
    integers then keep their dtype.

    ## References
    - [torch.is_floating_point](https://docs.pytorch.org/docs/stable/generated/torch.is_floating_point.html)
    """

    code, name = "DT111", "cast-non-float"
    fix = Applicability.UNSAFE
    triggers = attributes({*_CASTS, "type_as"})
    calls = frozenset({*(name.rpartition(".")[2] for name in _LOADERS), *_CASTS, "type_as"})
    references = frozenset(f"torch.Tensor.{name}" for name in ("half", "bfloat16", "float", "double"))
    hears_where = MappingProxyType({"on_reference": tuple(sorted(_MAPS))})

    def __init__(self) -> None:
        self.loaded: set[tuple[ast.AST, str]] = set()
        """The names, with their scopes, that hold a state dict."""

    def on_reference(self, reference: Reference) -> Iterator[Finding]:
        """`tree_map(torch.Tensor.half, batch)`."""
        node, known = reference.node, parents(reference.flow.tree)
        around = known.get(node)
        source = self._mapped(known.get(around) if isinstance(around, ast.keyword) else around, node, reference.flow)
        if source is not None:
            yield Finding(
                node,
                f"Every tensor of {source} is cast by `{last_name(node)}`, integers too",
                help="Cast only where `x.is_floating_point()`",
                conditional=not self._is_seen(source, reference.flow),
            )

    def on_call(self, call: Call) -> Iterable[Finding]:
        if call.target in _LOADERS or call.method == "state_dict":
            self._state_made(call)
        if call.method == "type_as" and (found := cast_length(call)) is not None:
            return (found,)
        if call.method not in _CASTS or not isinstance(call.node.func, ast.Attribute):
            return ()
        statement = call.flow.statement
        if isinstance(statement, ast.Expr) and statement.value is call.node:
            return ()  # nothing is cast: the result is thrown away, which is the matter of DT104
        if call.method == "to" and call.node.args and isinstance(call.node.args[0], ast.Starred):
            return _with_the_rest(call, call.node.func.value)
        if call.method != "float" and (found := cast_length(call)) is not None:
            return (found,)
        if isinstance(call.receiver, Module) or not _is_floating_cast(call):
            return ()
        return self._judge(call, call.node.func.value)

    def _state_made(self, call: Call) -> None:
        statement = call.flow.statement
        if isinstance(statement, ast.Assign) and statement.value is call.node:
            for target in statement.targets:
                path = path_of(target)
                if path is not None:
                    self.loaded.add((call.flow.scope, path))

    def _judge(self, call: Call, cast: ast.expr) -> Iterator[Finding]:
        bare = _bare(cast)
        if not isinstance(bare, ast.Name) and not (
            isinstance(bare, ast.Subscript) and isinstance(bare.slice, ast.Name)
        ):
            return
        inside = list(within(call.node, call.flow))
        nested = None
        if isinstance(bare, ast.Name):
            subject, source = bare.id, self._source(call, bare.id, inside)
            if source is None and (nested := _nest(bare.id, call)) is not None:
                source = nested
        else:
            subject = last_name(bare.slice)  # `for key in state_dict: state_dict[key] = state_dict[key].half()`
            source = self._keyed(bare, inside, call.flow)
        dtypes = call.cast[1]
        if source is None or (dtypes is not None and dtypes <= _EXACT and ("state dict" in source or nested)):
            return  # float32 holds the counters of a state dict, and loading brings them back
        if nested is None and _asked(call, subject, inside):
            return
        text = ast.unparse(bare)
        to = next(iter(dtypes)) if dtypes is not None and len(dtypes) == 1 else "a floating dtype"
        parent = inside[0] if inside else call.flow.statement
        whole = isinstance(parent, (ast.Assign, ast.Return)) or getattr(parent, "value", None) is call.node
        yield Finding(
            call.node,
            f"Every tensor of {source} is cast to {to}, integers too",
            help=f"Cast only where `{text}.is_floating_point()`",
            conditional=not self._is_seen(source, call.flow),
            fix=_guarded(text, call) if whole and cast is bare else None,
        )

    def _is_seen(self, source: str, flow: Flow) -> bool:
        """Does more than its name say what a collection is: buffers, `model.state_dict()`, what `torch.load` gave?"""
        loaded = (f"the state dict `{path}`" for scope, path in self.loaded if scope is flow.scope)
        return source.startswith("the buffers of ") or source in ("the state dict", *loaded)

    def _source(self, call: Call, name: str, inside: list[ast.AST]) -> str | None:
        """Where the tensor comes from, if from a collection that holds tensors of all dtypes."""
        flow = call.flow
        for node in inside:
            if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
                for clause in node.generators:
                    if any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(clause.target)):
                        return self._items(clause.target, clause.iter, name, flow)
            if isinstance(node, ast.Lambda) and any(argument.arg == name for argument in node.args.args):
                return self._mapped(parents_at(node, flow).get(node), node, flow)
        walk = flow.walk_over(name)
        if walk is not None:
            return f"the buffers of `{ast.unparse(walk.subject)}`" if walk.kind == "buffers" and walk.subject else None
        for loop in reversed(flow.loops):
            if any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(loop.node.target)):
                return self._items(loop.node.target, loop.node.iter, name, flow)
        return _fetched(name, flow) or self._looked_up(name, inside, flow) or self._handed_on(name, flow)

    def _looked_up(self, name: str, inside: list[ast.AST], flow: Flow) -> str | None:
        """`for key in kwargs: value = kwargs[key]`: the dict, where nothing else is bound to the name above."""
        if not flow.loops:
            return None
        above = [value for line, value in assignments(flow.scope).get(name, ()) if line < flow.statement.lineno]
        item = above[-1] if above else None
        if not isinstance(item, ast.Subscript) or item.lineno < flow.loops[-1].node.lineno:
            return None
        if _OF_OTHERS.search(path_of(item.value) or "") or _OF_OTHERS.search(f"{name}s"):
            return None
        return self._keyed(item, inside, flow)

    def _keyed(self, item: ast.Subscript, inside: list[ast.AST], flow: Flow) -> str | None:
        """The dict of `d[key]`, where a loop or a comprehension goes over all its keys."""
        loops: list[tuple[ast.expr, ast.expr]] = [(loop.node.target, loop.node.iter) for loop in flow.loops]
        for node in inside:
            if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
                loops += [(clause.target, clause.iter) for clause in node.generators]
        for target, over in loops:
            while isinstance(over, ast.Call) and path_of(over.func) in _LISTING and over.args:
                over = over.args[0]
            if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and over.func.attr == "keys":
                over = over.func.value
            if path_of(target) == path_of(item.slice) and path_of(over) == path_of(item.value) is not None:
                return self._collection(over, flow)
        return None

    def _items(self, target: ast.expr, over: ast.expr, name: str, flow: Flow) -> str | None:
        """`for k, v in d.items()`, `for v in d.values()`: what `d` is."""
        while isinstance(over, ast.Call) and path_of(over.func) in _LISTING and over.args:
            over = over.args[0]
        if not isinstance(over, ast.Call) or not isinstance(over.func, ast.Attribute) or over.args:
            return None
        value = target.elts[1] if isinstance(target, ast.Tuple) and len(target.elts) == 2 else target
        if over.func.attr != ("values" if value is target else "items") or path_of(value) != name:
            return None
        return self._collection(over.func.value, flow)

    def _mapped(self, parent: ast.AST | None, function: ast.expr, flow: Flow) -> str | None:
        """`tree_map(lambda t: t.half(), batch)`: what is mapped over."""
        if not isinstance(parent, ast.Call):
            return None
        called = path_of(parent.func) or ""
        if called == "map" and isinstance(function, ast.Lambda) and _picks_tensors(function.body):
            return f"`{ast.unparse(parent.args[-1])}`"
        if called.endswith("._apply"):
            return f"`{called.removesuffix('._apply')}`"
        if called.rpartition(".")[2] not in _MAPS:
            return None
        others = [argument for argument in given(parent) if argument is not function]
        if any(_ASKING.search(ast.unparse(other)) for other in others):
            return None  # `apply_to_collection(batch, torch.FloatTensor, ...)`
        return next(filter(None, (self._collection(other, flow, _NESTS) for other in others)), None)

    def _handed_on(self, name: str, flow: Flow) -> str | None:
        """`def to_half(t): return t.half()`, mapped over a batch by its name."""
        function = flow.scope
        if not isinstance(function, ast.FunctionDef) or [argument.arg for argument in function.args.args] != [name]:
            return None
        if all(_HANDING.isdisjoint(own.called) for _, own in scopes(flow.tree)):
            return None  # nothing in the file is called that `_mapped` knows
        known = parents(flow.tree)
        for node in known:
            if isinstance(node, ast.Name) and node.id == function.name:
                parent = known[node]
                source = self._mapped(known.get(parent) if isinstance(parent, ast.keyword) else parent, node, flow)
                if source is not None:
                    return source
        return None

    def _collection(self, node: ast.expr, flow: Flow, besides: re.Pattern[str] | None = None) -> str | None:
        if isinstance(node, ast.Call):
            return "the state dict" if (path_of(node.func) or "").endswith(".state_dict") else None
        path = path_of(node)
        if path is None:
            return None
        if (flow.scope, path) in self.loaded or _STATES.search(path):
            return f"the state dict `{path}`"
        if besides is not None and besides.search(path):
            return f"`{path}`"
        return f"`{path}`" if _BATCHES.search(path) and not _is_of_pictures(path, flow) else None


def _nest(name: str, call: Call) -> str | None:
    """What a function that calls itself for the items of dicts casts, where nothing has asked for its dtype:
    `return {k: to_half(v) for k, v in x.items()} if isinstance(x, dict) else x.half()`."""
    function, flow = call.flow.scope, call.flow
    if not isinstance(function, ast.FunctionDef) or name not in {each.arg for each in parameters(function)}:
        return None
    if len(assignments(function).get(name, ())) > 1 or not _is_alone(call):
        return None
    said_so = " ".join(ast.unparse(part.test) for part in atoms(flow.conditions))
    said_so += " ".join(ast.unparse(part.test) for part in within(call.node, flow) if isinstance(part, ast.IfExp))
    if _ASKING.search(said_so) or f"isinstance({name}, " not in said_so:
        return None
    calls = [node for node in own_nodes(function) if isinstance(node, ast.Call)]
    itself = any(
        path_of(node.func) in (function.name, f"self.{function.name}", f"cls.{function.name}") for node in calls
    )
    opened = any(
        last_name(node) == "isinstance"
        and len(node.args) == 2
        and path_of(node.args[0]) == name
        and _is_dict(node.args[1])
        for node in calls
    )
    return f"what `{function.name}` is given" if itself and opened else None


def _is_dict(node: ast.expr) -> bool:
    listed = node.elts if isinstance(node, ast.Tuple) else [node]
    return any((path_of(each) or "").rpartition("collections.")[2] in _DICTS for each in listed)


def _is_alone(call: Call) -> bool:
    """Is the cast all that happens to the tensor: is it returned, or bound to its name?"""
    statement = call.flow.statement
    value = statement.value if isinstance(statement, (ast.Return, ast.Assign)) else None
    return value is call.node or (isinstance(value, ast.IfExp) and call.node in (value.body, value.orelse))


def _with_the_rest(call: Call, cast: ast.expr) -> Iterator[Finding]:
    """`self.labels.to(*args, **kwargs)` in a container's `to(self, *args, **kwargs)`, which casts its coordinates so too."""
    function, path = call.flow.function, path_of(cast) or ""
    if function is None or function.owner is None or function.owner.is_module:
        return
    if (
        not isinstance(function.node, ast.FunctionDef)
        or function.node.name != "to"
        or not _hands_on(call.node, function.node)
    ):
        return
    if (
        not path.startswith("self.")
        or _WHOLE.search(path) is None
        or any(map(_ASKED_OF.search, names_in(function.node)))
    ):
        return
    calls = [node for node in own_nodes(function.node) if isinstance(node, ast.Call) and last_name(node) == "to"]
    others = {
        (node.lineno, node.col_offset): other
        for node in calls
        if _hands_on(node, function.node)
        if (other := path_of(receiver(node) or node) or "").startswith("self.") and _WHOLE.search(other) is None
    }
    if others:
        first = others[min(others)]
        yield Finding(
            call.node,
            f"A dtype given here casts the integers of `{path}` too",
            help=f"Move it only: `{path}.to({first}.device)`",
            conditional=True,
            severity=Severity.INFO,
        )


def _hands_on(call: ast.Call, function: ast.FunctionDef) -> bool:
    """Is a call given `*args, **kwargs` of the function, and nothing else?"""
    taken = function.args
    if taken.vararg is None or taken.kwarg is None or len(call.args) != 1 or len(call.keywords) != 1:
        return False
    first, named = call.args[0], call.keywords[0]
    return (
        isinstance(first, ast.Starred)
        and path_of(first.value) == taken.vararg.arg
        and named.arg is None
        and path_of(named.value) == taken.kwarg.arg
    )


_WHOLE = re.compile(r"(?<!soft)[._](labels?|ids?|idx|index|indices|adj|adj_t)$")
"""How tensors of integers are called, and graphs. Masks and lengths are floating as often as not."""
_ASKED_OF = re.compile(r"dtype|is_floating_point|_parse_to|^pop$")
"""What a method that heeds the dtype it is given mentions."""


def _bare(node: ast.expr) -> ast.expr:
    """What is cast, below methods that keep the dtype: `v` of `v.detach().cpu()` and of `v.data`."""
    node = below(node, _MOVING)
    return node.value if isinstance(node, ast.Attribute) and node.attr == "data" else node


def _fetched(name: str, flow: Flow) -> str | None:
    """The module that the name's tensor is fetched from by a computed name: `getattr(module, tensor_name)`, perhaps
    moved since."""
    names = {name}
    assigned = [node for node in statements(flow.scope, SCOPES) if isinstance(node, ast.Assign)]
    for _ in range(2):
        for node in reversed(assigned):
            if not any(path_of(target) in names for target in node.targets):
                continue
            value = below(node.value, _MOVING)
            if isinstance(value, ast.Name):
                names.add(value.id)
            elif isinstance(value, ast.Subscript) and (path_of(value.value) or "").endswith("._buffers"):
                return f"`{ast.unparse(value.value)}`"
            elif (
                isinstance(value, ast.Call)
                and path_of(value.func) == "getattr"
                and len(value.args) == 2
                and _TENSOR_NAME.search(last_name(value.args[1]))
            ):
                return f"`{ast.unparse(value.args[0])}`"
    return None


def _is_floating_cast(call: Call) -> bool:
    """Is it a cast to a floating dtype, or to one that the program is told?"""
    from dtlint.dtypes.dtype import FLOATING

    is_cast, dtypes = call.cast
    if dtypes is not None:
        return is_cast and dtypes <= FLOATING
    if call.method not in ("to", "type"):
        return False
    if not call.node.args and _tells_dtype(call.node.keywords, call.flow):
        return True
    written = [*call.node.args, *filter(None, [keyword(call.node, "dtype")])]
    if not is_cast:
        return len(written) == 1 and _TYPES.search(path_of(written[0]) or "") is not None
    named = [path for node in written if (path := path_of(node) or "").endswith("dtype")]
    # `v.to(other.dtype)` follows what is there already.
    return bool(named) and all("." not in path or _SETTINGS.search(path) for path in named)


def _tells_dtype(keywords: list[ast.keyword], flow: Flow) -> bool:
    """`x.to(**kwargs)`, where `kwargs["dtype"] = dtype` was set before."""
    spread = path_of(keywords[0].value) if len(keywords) == 1 and keywords[0].arg is None else None
    return spread is not None and any(
        isinstance(target, ast.Subscript)
        and path_of(target.value) == spread
        and isinstance(target.slice, ast.Constant)
        and target.slice.value == "dtype"
        for node in statements(flow.scope, SCOPES)
        if isinstance(node, ast.Assign)
        for target in node.targets
    )


def _asked(call: Call, name: str, inside: list[ast.AST]) -> bool:
    """Does a test in force ask for the dtype, or pick tensors by their keys?"""
    tests = [part.test for part in atoms(call.flow.conditions)]
    loops: list[ast.expr] = [loop.node.target for loop in call.flow.loops]
    for node in inside:
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            tests += [test for clause in node.generators for test in clause.ifs]
            loops += [clause.target for clause in node.generators]
    keys = {part.id for target in loops for part in ast.walk(target) if isinstance(part, ast.Name)} | {name}
    told = {path for node in given(call.node) if (path := path_of(node)) is not None}
    for test in tests:
        if _asks_for_target(test, told, keys):
            continue
        if _ASKING.search(ast.unparse(test)):
            return True
        if not _is_no_question(test) and any(isinstance(part, ast.Name) and part.id in keys for part in ast.walk(test)):
            return True
    return False


def _asks_for_target(test: ast.expr, told: set[str], keys: set[str]) -> bool:
    """`dtype != torch.float32` and `precision == "float16"`: what the tensors are to become, not what they are."""
    if not isinstance(test, ast.Compare) or (path := path_of(test.left)) is None:
        return False
    texts = all(isinstance(each, ast.Constant) and isinstance(each.value, str) for each in test.comparators)
    return path in told or (texts and path.partition(".")[0] not in keys)


def _is_of_pictures(path: str, flow: Flow) -> bool:
    """`inputs = processor(images=images, return_tensors="pt")`: pixels alone, which are float32."""
    for _, made in assignments(flow.scope).get(path, ()):
        if isinstance(made, ast.Call) and not made.args:
            told = {part.arg for part in made.keywords}
            if "images" in told and told <= _OF_PICTURES:
                return True
    return False


def _picks_tensors(node: ast.expr) -> bool:
    """`t.half() if isinstance(t, Tensor) else t`: among things of all kinds, each tensor is meant."""
    return isinstance(node, ast.IfExp) and any(
        isinstance(part, ast.Call) and last_name(part) in ("isinstance", "is_tensor") for part in ast.walk(node.test)
    )


_ANY_TENSOR = frozenset({"Tensor", "DTensor", "FakeTensor"})
"""Classes that hold tensors of every dtype. Others, such as `NF4Tensor`, have one of their own."""


def _is_no_question(test: ast.expr) -> bool:
    """`v is not None`, `torch.is_tensor(v)`, `isinstance(v, Tensor)`: none says of what dtype a tensor is."""
    if isinstance(test, ast.Compare):
        return isinstance(test.ops[0], (ast.Is, ast.IsNot))
    if not isinstance(test, ast.Call):
        return False
    asked = last_name(test)
    return asked in ("is_tensor", "torch_is_tensor", "hasattr", "exists") or (
        asked == "isinstance"
        and len(test.args) == 2
        and (path_of(test.args[1]) or "").rpartition(".")[2] in _ANY_TENSOR
    )


def _guarded(name: str, call: Call) -> Callable[[Place], Fix] | None:
    """The fix that casts floating tensors, and takes the others where the cast takes all: to a device, if there is one."""
    moved = _moved(call)
    if moved is None:
        return None

    def fix(place: Place) -> Fix:
        kept = f"{name}.to({', '.join(place.between(place.source.span(each)) for each in moved)})" if moved else name
        text = f"{place.text(place.abstract)} if {name}.is_floating_point() else {kept}"
        return Fix("Cast floating tensors only", (place.replace(place.abstract, text),), Applicability.UNSAFE)

    return fix


def _moved(call: Call) -> list[ast.expr | ast.keyword] | None:
    """The arguments of `.to()` besides the dtype, if they do anything; None where it cannot be told which that is."""
    node = call.node
    if call.method != "to":
        by_type = call.method == "type" and not (node.args and _names_dtype(node.args[0], call))
        return None if by_type else []
    if not call.complete or any(keyword.arg is None for keyword in node.keywords):
        return None
    at = next((i for i, each in enumerate(node.args) if _names_dtype(each, call)), None)
    if (at is None) == (keyword(node, "dtype") is None):
        return None
    rest: list[ast.expr | ast.keyword] = list(node.args)
    if at is not None:
        # what stands behind the device and the dtype is `non_blocking` and `copy`, by position
        if len(node.args) > at + 1:
            return None
        del rest[at]
    named = [each for each in node.keywords if each.arg != "dtype"]
    moves = bool(rest) or any(each.arg != "non_blocking" for each in named)
    return [*rest, *named] if moves else []


def _names_dtype(node: ast.expr, call: Call) -> bool:
    """Is it a dtype: known as one, or called one?"""
    value = next((value for each, value in zip(call.node.args, call.args, strict=False) if each is node), None)
    return isinstance(value, (Dtype, DtypeOf)) or (path_of(node) or "").endswith("dtype")
