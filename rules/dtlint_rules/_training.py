"""What a program shows of its models: which are trained, which are cast, and who else holds them.

It is read from names and calls, for training scripts and the like take their models from libraries that are not in view.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dtlint.infer.calls import dtype_of
from dtlint.infer.names import path_of
from dtlint.infer.walk import nodes
from dtlint_rules._casts import TO_FLOATING
from dtlint_rules._effects import FLOAT32
from dtlint_rules._meanings import is_device, names_dtype
from dtlint_rules._names import last_name, names, said
from dtlint_rules._origins import origins_of
from dtlint_rules._parts import given, receiver
from dtlint_rules._statements import statements

if TYPE_CHECKING:
    from dtlint.infer.events import Call
    from dtlint.infer.values import Dtypes
    from dtlint_rules._origins import Origins

__all__ = [
    "HALVES",
    "ModelCast",
    "Models",
    "Pipeline",
    "cast_models",
    "casts_to_half",
    "may_cast_models",
    "trained_in",
    "upcasts",
]

_UPCASTING = re.compile(r"cast_training_params|upcast|cast_\w*(?:fp32|float32)|autocast_adapter_dtype", re.IGNORECASE)
"""Names of functions that make trainable parameters float32."""
_UNWRAPS = re.compile(r"unwrap|_get_module|extract_model", re.IGNORECASE)
"""Functions that give the model which a wrapper for training holds."""
HALVES = frozenset({"torch.float16", "torch.half", "torch.bfloat16"})
_PIPELINE = re.compile(r"(?:^|\.)\w*Pipeline\w*(?:\.from_(?:pretrained|pipe|single_file))?$")


@dataclass(slots=True)
class Pipeline:
    """A variable that holds a pipeline, and the models of the script that it was made of."""

    node: ast.Call
    shares: frozenset[str]
    dtypes: Dtypes
    """The `torch_dtype` that it was given."""


@dataclass(slots=True)
class Models:
    """Gathers what calls say."""

    adapted: list[tuple[ast.Call, str, ast.AST]] = field(default_factory=list)
    """`model.add_adapter(config)`: the call, the model's path, the function."""
    trained: set[str] = field(default_factory=set)
    """Paths of models whose parameters are asked for, or that got an adapter."""
    half: dict[tuple[ast.AST, str], ast.Call] = field(default_factory=dict)
    """Casts of models to what may be float16, by function and path."""
    whole: list[tuple[int, str]] = field(default_factory=list)
    """Casts to float32, by line and path, ahead of the first backward: those after training are for the file."""
    pipelines: dict[tuple[ast.AST, str], list[Pipeline]] = field(default_factory=dict)
    backward: bool = False

    def hear(self, call: Call) -> None:
        """Note what a call says of the models."""
        node, method = call.node, call.method
        if method in ("to", "half", "float", "type"):
            path = path_of(node.func.value) if isinstance(node.func, ast.Attribute) else None
            is_cast, dtypes = call.cast
            if path is not None and is_cast and dtypes:
                if "float16" in dtypes:
                    self.half[call.flow.scope, path] = node
                elif dtypes == {"float32"} and not self.backward:
                    self.whole.append((node.lineno, path))
        elif method == "backward":
            self.backward = True
        elif method == "add_adapter" or call.target.endswith("inject_adapter_in_model"):
            model = receiver(node) if method == "add_adapter" else call.argument_node(1, "model")
            path = path_of(model) if model is not None else None
            if path is not None:
                self.adapted.append((node, path, call.flow.scope))
                self.trained.add(path)
        elif method == "parameters" and isinstance(node.func, ast.Attribute):
            self.trained.add(path_of(node.func.value) or "")
        if call.keywords and _PIPELINE.search(call.target or path_of(node.func) or ""):
            self._pipeline(call)

    def _pipeline(self, call: Call) -> None:
        statement = call.flow.statement
        if (
            isinstance(statement, ast.Assign)
            and statement.value is call.node
            and isinstance(statement.targets[0], ast.Name)
        ):
            shares = frozenset(path for keyword in call.node.keywords if (path := _model(keyword.value)) is not None)
            dtypes = dtype_of(call.keywords.get("torch_dtype") or call.keywords.get("dtype"))
            made = self.pipelines.setdefault((call.flow.scope, statement.targets[0].id), [])
            made.append(Pipeline(call.node, shares, dtypes))

    def sharing(self, scope: ast.AST, name: str, line: int) -> tuple[Pipeline, str] | None:
        """The pipeline that a variable holds on a line, and a model in training that it shares; None if it shares none."""
        made = [pipeline for pipeline in self.pipelines.get((scope, name), ()) if pipeline.node.lineno <= line]
        shared = sorted(made[-1].shares & self.trained) if made else []
        return (made[-1], shared[0]) if shared else None


def _model(node: ast.expr) -> str | None:
    """The path of the model in `unet` and `accelerator.unwrap_model(unet)`."""
    if isinstance(node, ast.IfExp):
        return _model(node.body) or _model(node.orelse)
    if isinstance(node, ast.Call) and node.args and _UNWRAPS.search(last_name(node)):
        node = node.args[0]
    return path_of(node)


def upcasts(tree: ast.Module) -> bool:
    """Does a module make trainable parameters float32: `param.data = param.to(torch.float32)`, by a function for it?"""
    if any(_UPCASTING.search(name) for name in names(tree)):
        return True
    return any(
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Attribute)
        and node.targets[0].attr == "data"
        and not {"float32", "float"}.isdisjoint(said(node.value))
        for node in nodes([tree])
    )


class ModelCast:
    """A cast of a model as a whole, and the dtype as it is written."""

    __slots__ = ("node", "text")

    def __init__(self, node: ast.Call, text: str) -> None:
        self.node, self.text = node, text


def may_cast_models(scope: ast.AST) -> bool:
    """Does a function cast something in a statement of its own, as models are: `unet.to(device, dtype)`? Ask it before
    origins are read."""
    alone = [node.value for node in statements(scope) if isinstance(node, ast.Expr)]
    return any(isinstance(value, ast.Call) and _is_told(value) for value in alone)


def _is_told(call: ast.Call) -> bool:
    """May a method be one that casts, to a dtype that it is told, not only a move to a device?"""
    if last_name(call) in ("to", "type"):
        return any(names_dtype(node) or not is_device(node) for node in given(call))
    casts = isinstance(call.func, ast.Attribute) and call.func.attr in TO_FLOATING
    return casts or any(keyword.arg == "dtype" for keyword in call.keywords)


def cast_models(scope: ast.AST, origins: Origins) -> dict[str, ModelCast]:
    """What a function casts as a whole and calls: `unet.to(device, dtype=weight_dtype)`. Not what it casts to float32."""
    found: dict[str, ModelCast] = {}
    for node in reversed(statements(scope)):
        cast = node.value if isinstance(node, ast.Expr) else None
        if not isinstance(cast, ast.Call) or not isinstance(cast.func, ast.Attribute):
            continue
        path, dtype = path_of(cast.func.value), origins.told(cast)
        if path is not None and dtype is not None and dtype not in (*FLOAT32, "torch.float64"):
            found[path] = ModelCast(cast, dtype)
    called = {path_of(node.func) for node in nodes([scope]) if isinstance(node, ast.Call)} if found else ()
    return {path: cast for path, cast in found.items() if path in called}


def casts_to_half(scope: ast.AST) -> bool:
    """Does a function cast a model that it calls to a half dtype that is written out, whatever else the file says?"""
    return any(cast.text in HALVES for cast in cast_models(scope, origins_of(scope)).values())


def trained_in(scope: ast.AST) -> set[str]:
    """The models that a function trains or prepares: their weights stay float32, and autocast may be about them."""
    found: set[str] = set()
    for node in nodes([scope]):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        path = path_of(node.func.value)
        if node.func.attr in ("train", "parameters") and path is not None:
            found.add(path)
        elif node.func.attr == "prepare":
            found |= {path for argument in node.args if (path := path_of(argument)) is not None}
    return found
