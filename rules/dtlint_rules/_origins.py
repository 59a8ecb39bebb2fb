"""Where the dtype of each expression of a function comes from, by its syntax: what it is given, casts, makes, calls.

Inference says what is proved of a value. Of what a model returns or a caller hands over it knows nothing; these origins
still tell that one of two operands was cast to the dtype of the other, and that its sibling was not.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.names import path_of
from dtlint.infer.values import Array, Constant, Module, Number, Tensor
from dtlint_rules._names import last_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.values import Value

__all__ = [
    "FACTORIES",
    "FLOAT32",
    "JOINING",
    "Kind",
    "Origin",
    "Origins",
    "Roots",
    "cast_to_float32",
    "counts",
    "is_device",
    "is_open",
    "origins_of",
]


class Kind:
    """The kinds of origins."""

    GIVEN = "given"
    """A parameter, an attribute, an item of a batch."""
    CAST = "cast"
    """A cast, or a factory that is told a dtype."""
    MADE = "made"
    """A factory that is told no dtype."""
    CALLED = "called"
    """What a function or a model gives that is not known."""


@dataclass(frozen=True, slots=True)
class Origin:
    """One place that an expression has its dtype from.

    Attributes:
        kind: as in Kind.
        text: of a GIVEN its path, of a CAST the dtype as it is written, of a CALLED the path that is called.
        node: the expression.
        of: of a CAST what was cast, of a CALLED what it was given.

    Two that are given are the same where the path is; two casts where they are to the same dtype; and else one node.
    """

    kind: str
    text: str
    node: ast.expr = field(compare=False, repr=False)
    of: frozenset[Origin] = field(default=frozenset(), compare=False, repr=False)
    identity: ast.expr | None = field(default=None, repr=False)

    @classmethod
    def at(cls, kind: str, text: str, node: ast.expr, of: frozenset[Origin] = frozenset()) -> Origin:
        """One that is itself only: two calls of a factory make two."""
        return cls(kind, text, node, of, node)

    def closure(self) -> Iterator[Origin]:
        """Itself, and all that it was made of."""
        yield self
        for origin in self.of:
            yield from origin.closure()


Roots = frozenset[Origin]
"""All origins of one expression, by the path taken. Numbers have none."""
_NOTHING: Roots = frozenset()
_MOST_ROOTS = 12

FACTORIES = frozenset(
    {"zeros", "ones", "empty", "full", "rand", "randn", "linspace", "logspace", "eye", "tensor", "normal"}
)
_DTYPE_FREE = frozenset({"arange", "randint", "randperm", "multinomial", "bernoulli"})
_LIKE = frozenset({"zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like"})
_CASTS = {"float": "torch.float32", "half": "torch.float16", "double": "torch.float64", "bfloat16": "torch.bfloat16"}
_NO_TENSOR = frozenset(
    {
        "shape",
        "device",
        "dtype",
        "ndim",
        "is_cuda",
        "requires_grad",
        "grad_fn",
        "layout",
        "config",
        "training",
        "itemsize",
    }
)
_SETTINGS = re.compile(r"(?:^|[._])(?:config|cfg|args|opts?|hparams|settings)\.")
"""In paths of numbers, strings and switches."""
_MEASURES = frozenset({"shape", "device"})
_NO_DTYPE = frozenset(
    {"size", "dim", "item", "tolist", "numel", "argmax", "argmin", "argsort", "long", "int", "bool", "nonzero", "len"}
    | {"range", "isinstance", "is_tensor", "min_int", "max_int", "int32", "ge", "gt", "le", "lt", "eq", "ne", "isnan"}
    | {
        "isinf",
        "isfinite",
        "all",
        "any",
        "numpy",
        "cpu_count",
        "hasattr",
        "print",
        "str",
        "enumerate",
        "is_floating_point",
    }
)
"""Calls whose result has no dtype, or one of its own that is no floating one."""
_KEEPING = frozenset(
    {"view", "reshape", "expand", "repeat", "contiguous", "cpu", "cuda", "t", "transpose", "permute", "unsqueeze"}
    | {
        "squeeze",
        "flatten",
        "chunk",
        "split",
        "unbind",
        "detach",
        "clone",
        "clamp",
        "exp",
        "log",
        "sqrt",
        "rsqrt",
        "pow",
    }
    | {"sum", "mean", "softmax", "abs", "sin", "cos", "tanh", "sigmoid", "cumsum", "cumprod", "roll", "flip", "narrow"}
    | {
        "index_select",
        "gather",
        "select",
        "requires_grad_",
        "add_",
        "sub_",
        "mul_",
        "div_",
        "copy_",
        "expand_as",
        "view_as",
        "repeat_interleave",
        "square",
        "std",
    }
    | {"var", "norm", "max", "min", "amax", "amin", "log_softmax", "relu", "round", "floor", "ceil", "tile", "movedim"}
    | {"pin_memory", "triu", "tril", "masked_fill", "masked_fill_", "clamp_", "normal_", "uniform_", "fill_", "zero_"}
    | {
        "interpolate",
        "pad",
        "normalize",
        "dropout",
        "relu_",
        "reciprocal",
        "neg",
        "log1p",
        "expm1",
        "rearrange",
        "meshgrid",
    }
)
"""Methods and functions that give the dtype of their tensor."""
JOINING = frozenset(
    {
        "add",
        "sub",
        "mul",
        "div",
        "matmul",
        "bmm",
        "mm",
        "cat",
        "concat",
        "concatenate",
        "stack",
        "where",
        "lerp",
        "einsum",
    }
    | {"hstack", "vstack", "baddbmm", "addmm", "addcmul", "addcdiv", "maximum", "minimum"}
    | {"dot", "cross", "outer", "kron", "atan2", "hypot", "true_divide", "multiply", "subtract", "divide"}
)
"""Methods and functions that give the promotion of their tensors."""
FLOAT32 = ("torch.float32", "torch.float")
"""How float32 is written."""
_TORCH = ("torch", "th", "F", "nn.functional", "torch.nn.functional", "torch.linalg", "torch.special")


class Origins:
    """The origins of every expression of one function, in the order in which it runs."""

    def __init__(self, scope: ast.AST) -> None:
        self.of: dict[ast.AST, Roots] = {}
        self.bound: dict[str, Roots] = {}
        self.dtypes: dict[str, str] = {}
        """Names of dtypes: `dtype = x.dtype`."""
        self.measures: dict[str, Roots] = {}
        """Names of shapes, sizes and devices, with the tensors that they were taken of: `n, d = x.shape`."""
        for argument in _parameters(scope):
            self.bound[argument.arg] = frozenset({Origin(Kind.GIVEN, argument.arg, _name_of(argument))})
        body = getattr(scope, "body", [])
        if isinstance(body, ast.expr):
            self.read(body)
        else:
            self._block(body)

    def __getitem__(self, node: ast.AST) -> Roots:
        return self.of.get(node, _NOTHING)

    # -- statements ---------------------------------------------------------------------------------------------------

    def _block(self, statements: Iterable[ast.stmt]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            roots = self.read(node.value)
            for target in node.targets:
                self._bind(target, roots, node.value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._bind(node.target, self.read(node.value), node.value)
        elif isinstance(node, ast.AugAssign):
            roots = self.read(node.target) | self.read(node.value)
            self._bind(node.target, self.read(node.target) or roots, node.value)
        elif isinstance(node, (ast.If, ast.While)):
            self.read(node.test)
            self._branches(node.body, node.orelse)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            self._bind(node.target, self.read(node.iter), node.iter)
            self._branches(node.body, node.orelse)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                self.read(item.context_expr)
            self._block(node.body)
        elif isinstance(node, ast.Try):
            self._block(node.body)
            for handler in node.handlers:
                self._branches(handler.body, [])
            self._block([*node.orelse, *node.finalbody])
        elif isinstance(node, (ast.Expr, ast.Return)) and node.value is not None:
            self.read(node.value)

    def _branches(self, body: list[ast.stmt], orelse: list[ast.stmt]) -> None:
        before = dict(self.bound)
        self._block(body)
        after = self.bound
        self.bound = dict(before)
        self._block(orelse)
        if _leaves(body):
            return
        if orelse and _leaves(orelse):
            self.bound = after
            return
        for name in after.keys() | self.bound.keys():
            default = before.get(name, _NOTHING)
            if not default and "." in name:
                default = frozenset({Origin(Kind.GIVEN, name, _placeless(name))})
            self.bound[name] = _few(after.get(name, default) | self.bound.get(name, default))

    def _bind(self, target: ast.expr, roots: Roots, value: ast.expr) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            items = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
            for index, item in enumerate(target.elts):
                matched = len(items) == len(target.elts)
                self._bind(item, self[items[index]] if matched else roots, items[index] if matched else value)
            return
        if isinstance(target, ast.Subscript):
            self.read(target.value)
            return
        path = path_of(target)
        if path is None:
            return
        self.bound[path] = roots
        self.of[target] = roots
        if isinstance(target, ast.Name) and (measured := self.measured(value)):
            self.measures[path] = _few(self.measures.get(path, _NOTHING) | measured)
        text = ast.unparse(value) if _names_dtype(value) else None
        if text is not None:
            self.dtypes[path] = self.dtypes.get(text, text)

    # -- expressions --------------------------------------------------------------------------------------------------

    def read(self, node: ast.expr) -> Roots:
        """The origins of an expression, kept for it."""
        roots = self._read(node)
        self.of[node] = roots = _few(roots)
        return roots

    def _read(self, node: ast.expr) -> Roots:
        path = path_of(node)
        if path is not None:
            return self._named(node, path)
        if isinstance(node, ast.BinOp):
            return _met([self.read(node.left), self.read(node.right)])
        if isinstance(node, ast.UnaryOp):
            roots = self.read(node.operand)
            return _NOTHING if isinstance(node.op, ast.Not) else roots
        if isinstance(node, ast.Subscript):
            return self._item(node)
        if isinstance(node, ast.Attribute):
            roots = self.read(node.value)
            return _NOTHING if node.attr in _NO_TENSOR else roots
        if isinstance(node, ast.IfExp):
            self.read(node.test)
            return self.read(node.body) | self.read(node.orelse)
        if isinstance(node, (ast.Tuple, ast.List)):
            return _met([self.read(item) for item in node.elts])
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.Starred):
            return self.read(node.value)
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            for part in node.generators:
                self._bind(part.target, self.read(part.iter), part.iter)
            return self.read(node.elt)
        if isinstance(node, ast.NamedExpr):
            roots = self.read(node.value)
            self._bind(node.target, roots, node.value)
            return roots
        if isinstance(node, (ast.Compare, ast.BoolOp)):
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self.read(child)
        return _NOTHING

    def _named(self, node: ast.expr, path: str) -> Roots:
        known = self.bound.get(path)
        if known is not None:
            return known
        base, _, attribute = path.rpartition(".")
        if _SETTINGS.search(path):
            return _NOTHING
        if attribute in _NO_TENSOR:
            if base and isinstance(node, ast.Attribute):
                self.read(node.value)
            return _NOTHING
        while base and base not in self.bound:
            base = base.rpartition(".")[0]
        inner = self.bound.get(base) if base else None
        if inner is not None and any(origin.kind != Kind.GIVEN for origin in inner):
            return inner
        return frozenset({Origin(Kind.GIVEN, path, node)})

    def measured(self, node: ast.expr) -> Roots:
        """The tensors and models whose shape, size, device or configuration an expression speaks of."""
        found = _NOTHING
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute) and part.attr in _MEASURES:
                found |= self[part.value]
            elif isinstance(part, ast.Call) and last_name(part) in ("size", "len", "get_device"):
                found |= self[
                    part.func.value if isinstance(part.func, ast.Attribute) else part.args[0] if part.args else part
                ]
            elif isinstance(part, ast.Name):
                found |= self.measures.get(part.id, _NOTHING)
        return found

    def _item(self, node: ast.Subscript) -> Roots:
        path = path_of(node.value)
        roots = self.read(node.value)
        if not isinstance(node.slice, (ast.Slice, ast.Constant)):
            self.read(node.slice)
        if path is not None and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            return frozenset({Origin(Kind.GIVEN, f"{path}[{node.slice.value!r}]", node)})
        return roots

    def _call(self, node: ast.Call) -> Roots:
        name = last_name(node)
        receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
        base = path_of(receiver) if receiver is not None else None
        of_torch = base in _TORCH or (receiver is None and name in FACTORIES)
        held = _NOTHING if receiver is None or of_torch else self.read(receiver)
        given = [self.read(argument) for argument in node.args]
        keywords = {keyword.arg or "": self.read(keyword.value) for keyword in node.keywords}
        every = _NOTHING.union(held, *given, *keywords.values())
        dtype = self.told(node)
        if dtype is not None and (of_torch or held or name in ("to", "type", "type_as", *_CASTS)):
            return frozenset({Origin(Kind.CAST, dtype, node, held or every)})
        if name in _NO_DTYPE:
            return _NOTHING
        if of_torch and name in FACTORIES:
            return frozenset({Origin.at(Kind.MADE, name, node)})
        if of_torch and name in _DTYPE_FREE:
            return _NOTHING
        if of_torch and name == "where" and len(node.args) == 3:
            joined = given[1] | given[2]
            return joined or frozenset({Origin.at(Kind.MADE, "where", node)})
        if of_torch and name in _LIKE:
            return given[0] if given else _NOTHING
        if not of_torch and receiver is not None and name.startswith("new_"):
            return held
        if name == "to" and receiver is not None:
            return held
        if name in JOINING:
            tensors = (
                [held, *given] if name not in ("matmul", "bmm", "mm", "einsum", "baddbmm", "addmm", "dot") else [every]
            )
            return _met(tensors) or frozenset({Origin.at(Kind.CALLED, path_of(node.func) or name, node)})
        if name in _KEEPING:
            return (given[0] if of_torch and given else held) or every
        if not of_torch and isinstance(node.func, ast.Name) and name in ("list", "tuple", "zip", "sum", "max", "min"):
            return every
        return frozenset({Origin.at(Kind.CALLED, path_of(node.func) or name, node, every)})

    def told(self, node: ast.Call) -> str | None:
        """The dtype that a call is told, as the source writes it: of a cast, or of a factory."""
        name = last_name(node)
        is_method = isinstance(node.func, ast.Attribute)
        for keyword in node.keywords:
            if keyword.arg == "dtype":
                return self._dtype(keyword.value)
        if is_method and name in _CASTS and not node.args and not node.keywords:
            return _CASTS[name]
        if is_method and name == "type_as" and node.args:
            return f"{ast.unparse(node.args[0])}.dtype"
        if is_method and name in ("to", "type"):
            for argument in node.args:
                if _names_dtype(argument) or (path_of(argument) or "") in self.dtypes:
                    return self._dtype(argument)
            if (
                name == "to"
                and len(node.args) == 1
                and not node.keywords
                and isinstance(node.args[0], (ast.Name, ast.Attribute))
            ):
                path = path_of(node.args[0]) or ""
                if not is_device(node.args[0]) and self.bound.get(path, _NOTHING):
                    return f"{path}.dtype"
        return None

    def _dtype(self, node: ast.expr) -> str:
        text = ast.unparse(node)
        text = self.dtypes.get(text, text)
        known = {
            root.text if root.kind == Kind.CAST else "" for root in self.bound.get(text.removesuffix(".dtype"), ())
        }
        return known.pop() or text if text.endswith(".dtype") and len(known) == 1 else text


def _parameters(scope: ast.AST) -> list[ast.arg]:
    arguments = getattr(scope, "args", None)
    if not isinstance(arguments, ast.arguments):
        return []
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def _name_of(argument: ast.arg) -> ast.expr:
    """A parameter, as an expression of its place."""
    return ast.copy_location(ast.Name(argument.arg, ast.Load()), argument)


def _placeless(path: str) -> ast.expr:
    """An attribute that only one branch assigned: before, it was what it is given."""
    return ast.Name(path, ast.Load(), lineno=1, col_offset=0)


def _met(operands: list[Roots]) -> Roots:
    """What operands are promoted to. What was cast to float32 lifts the others to it, but for a scalar tensor."""
    for roots in operands:
        if roots and all(_lifts(origin) for origin in roots):
            return roots
    return _NOTHING.union(*operands)


def _lifts(origin: Origin) -> bool:
    scalar = isinstance(origin.node, ast.Call) and last_name(origin.node) in (
        "tensor",
        "as_tensor",
        "sum",
        "mean",
        "item",
    )
    return origin.kind == Kind.CAST and origin.text in FLOAT32 and not scalar


def _few(roots: Roots) -> Roots:
    return roots if len(roots) <= _MOST_ROOTS else _NOTHING


def _leaves(block: list[ast.stmt]) -> bool:
    return bool(block) and isinstance(block[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))


_DTYPES = frozenset(
    {"float16", "bfloat16", "float32", "float64", "float", "half", "double", "long", "int64", "int32", "int", "bool"}
    | {"uint8", "int8", "int16", "complex64", "complex128", "short"}
)


def _names_dtype(node: ast.expr) -> bool:
    """Does an expression read as a dtype: `torch.float16`, `x.dtype`, `weight_dtype`, `next(m.parameters()).dtype`?"""
    if isinstance(node, ast.Attribute) and node.attr.endswith("dtype"):
        return True
    if isinstance(node, ast.Call) and last_name(node) in ("get_parameter_dtype", "get_dtype"):
        return True
    path = path_of(node) or ""
    base, _, name = path.rpartition(".")
    return name.endswith("dtype") or (base in ("torch", "th") and name in _DTYPES)


def is_device(node: ast.expr) -> bool:
    """Does an expression read as a device: `device`, `self.device`, `x.device`, `"cuda"`, a rank?"""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (str, int))
    name = (path_of(node) or last_name(node)).rpartition(".")[2]
    return "device" in name.lower() or name in ("rank", "local_rank", "gpu", "dev", "cuda")


@lru_cache(maxsize=8)
def origins_of(scope: ast.AST) -> Origins:
    """The origins of a function's expressions. Kept for the functions asked of last."""
    return Origins(scope)


# -- what they say of an operand --------------------------------------------------------------------------------------

_COUNTS = re.compile(
    r"(?:^|_)(?:ids?|idx|index|indices|labels?|lengths?|lens|targets?|tokens?|steps?|timesteps?|boxes|self|args|cfg)\d*$"
)
"""Names of what is no floating tensor, mostly."""


def counts(origin: Origin) -> bool:
    """Is it no floating tensor, by its name?"""
    return (
        origin.kind == Kind.GIVEN
        and _COUNTS.search(re.sub(r"\W+", " ", origin.text).strip().rpartition(" ")[2]) is not None
    )


def cast_to_float32(value: Value, roots: Roots) -> ast.expr | None:
    """The cast or the factory by which an operand is float32 for certain, as it is written; None where it is not."""
    if isinstance(value, Tensor) and value.dtypes is not None:
        if value.dtypes != {"float32"} or value.zero_dim is True:
            return None
        if value.cast is not None:
            return value.cast.node
    if roots and all(origin.kind == Kind.CAST and origin.text in FLOAT32 for origin in roots):
        return next(iter(roots)).node
    return None


def is_open(value: Value, roots: Roots) -> bool:
    """Has an operand the dtype of what the function is given, or of weights, with no cast to a dtype that is written out?"""
    if isinstance(value, Tensor) and value.dtypes is not None and not value.dtypes >= FLOATING:
        return False
    if not roots or not all(origin.kind == Kind.GIVEN and not counts(origin) for origin in roots):
        return False
    return not isinstance(value, (Number, Constant, Array, Module))
