"""Dtypes that stand where torch takes something else: by position, as NumPy takes them, `torch.zeros(2, torch.float32)`;
and what is no tensor where the dtype of one is asked for, `x.type_as(3)`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import named
from dtlint.infer.conditions import atoms
from dtlint.infer.names import path_of
from dtlint.infer.values import Array, Constant, Dtype, DtypeOf, External, Number, Unknown
from dtlint.infer.walk import nodes
from dtlint.rule import Finding
from dtlint_rules._assignments import assignments
from dtlint_rules._parts import keyword

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.events import Call
    from dtlint.infer.values import Value

__all__ = ["BY_POSITION", "JUDGED", "dtype_by_position", "no_tensor"]

_BY_NAME = frozenset(
    {"zeros", "ones", "empty", "full", "rand", "randn", "randint", "randperm", "eye", "arange", "range", "linspace"}
    | {"logspace", "tensor", "as_tensor", "asarray", "from_numpy"}
    | {"zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "randint_like"}
    | {"new_zeros", "new_ones", "new_empty", "new_full", "new_tensor"}
    | {"sum", "mean", "prod", "nansum", "nanmean", "cumsum", "cumprod"}
)
"""Functions and methods that take a dtype by its name alone, or none."""
_ARGUMENTS = {
    **dict.fromkeys(("Linear", "LazyLinear"), "in_features out_features bias device dtype"),
    "Bilinear": "in1_features in2_features out_features bias device dtype",
    "Embedding": "num_embeddings embedding_dim padding_idx max_norm _ scale_grad_by_freq sparse",
    "LayerNorm": "normalized_shape eps elementwise_affine bias device dtype",
    "RMSNorm": "normalized_shape eps elementwise_affine device dtype",
    "GroupNorm": "num_groups num_channels eps affine device dtype",
    **{f"BatchNorm{n}d": "num_features eps momentum affine track_running_stats device dtype" for n in (1, 2, 3)},
    **{f"InstanceNorm{n}d": "_ eps momentum affine track_running_stats device dtype" for n in (1, 2, 3)},
    **{
        f"Conv{n}d": "in_channels out_channels kernel_size stride padding dilation groups bias _ device dtype"
        for n in (1, 2, 3)
    },
    **{
        f"ConvTranspose{n}d": "in_channels out_channels kernel_size stride padding output_padding groups bias dilation"
        for n in (1, 2, 3)
    },
    "MultiheadAttention": "embed_dim num_heads _ bias add_bias_kv add_zero_attn kdim vdim batch_first device dtype",
    **dict.fromkeys(("LSTM", "GRU", "RNN"), "input_size hidden_size num_layers bias batch_first dropout bidirectional"),
    "Parameter": "_ requires_grad",
}
"""The arguments of some layers, in their order; `_` is one where a dtype raises no TypeError, or only now and then. Where
the dtype is not among them, it is further behind."""
_NUMBERS_BEHIND = frozenset(
    {"full", "full_like", "new_full", "randint", "randint_like", "arange", "range", "linspace", "logspace"}
)
"""Functions whose second argument is a number too, which may be called `dtype` where it is the code of one."""
_OF_DATA = frozenset({"tensor", "as_tensor", "asarray", "new_tensor"})
"""Functions whose first argument is anything."""
_SWITCHES = frozenset(
    {"bias", "affine", "elementwise_affine", "track_running_stats", "batch_first", "add_bias_kv", "add_zero_attn"}
)
"""Arguments that ask only whether they are true, as a dtype is."""
_DTYPES = "float16 half bfloat16 float32 float float64 double int8 uint8 int16 int32 int int64 long bool"
BY_POSITION = tuple(
    f",{dtype}{end}"
    for dtype in (*(f"torch.{name}" for name in _DTYPES.split()), "dtype", "self.dtype", "torch_dtype")
    for end in "),"
)
"""How such a dtype is spelled, white space aside."""


JUDGED = frozenset(
    {
        *(f"torch.nn.{layer}" for layer in _ARGUMENTS),
        *(f"{package}.{name}" for package in ("torch", "torch.Tensor") for name in _BY_NAME),
    }
)
"""What `dtype_by_position` has something to say of; ask it of nothing else."""


def dtype_by_position(call: Call) -> Finding | None:
    """`torch.tensor(data, torch.float32)`, `nn.Linear(2, 2, torch.float32)`."""
    if not call.complete or len(call.args) != len(call.node.args):
        return None  # `*args` and functools.partial bring others
    package, _, last = call.target.rpartition(".")
    if package == "torch.nn":
        return _in_layer(call, last, _ARGUMENTS[last].split())
    given, how = next(_dtypes_given(call, last), None), " by position"
    if last == "from_numpy" and given is None:
        given, how = keyword(call.node, "dtype"), ""
    if given is None:
        return None
    text = ast.unparse(given)
    return Finding(
        given,
        f"`{last}()` takes no dtype{how}: `{text}` raises TypeError",
        help=f"Cast the result: `.to({text})`" if last == "from_numpy" else f"Name it: `dtype={text}`",
    )


def _in_layer(call: Call, layer: str, names: list[str]) -> Finding | None:
    for position, (node, value) in enumerate(zip(call.node.args, call.args, strict=True)):
        if position >= len(names) or names[position] in ("dtype", "_") or not _is_dtype(node, value):
            continue
        name, text = names[position], ast.unparse(node)
        if name in _SWITCHES and layer not in ("LSTM", "GRU", "RNN"):
            fate = "the switch is on, and the layer has the default dtype"
        else:
            fate = "it raises TypeError, here or where it is called"
        return Finding(
            node,
            f"`{layer}()` takes `{name}` here, and `{text}` is a dtype: {fate}",
            help=f"Cast the data: `.to({text})`" if layer == "Parameter" else f"Name it: `dtype={text}`",
        )
    return None


def _dtypes_given(call: Call, last: str) -> Iterator[ast.expr]:
    """The dtypes that a function is given. In the place of data one has to be known for a dtype: the name may be that of the
    code number of one."""
    for position, (node, value) in enumerate(zip(call.node.args, call.args, strict=True)):
        may_be_number = position == 0 or (position == 1 and last in _NUMBERS_BEHIND)
        if (position > 0 or last not in _OF_DATA) and (_is_known(value) if may_be_number else _is_dtype(node, value)):
            yield node


def _is_known(value: Value) -> bool:
    if isinstance(value, External):
        package, _, name = value.name.rpartition(".")
        return package == "numpy" and named(name) is not None
    return isinstance(value, (Dtype, DtypeOf))


def _is_dtype(node: ast.expr, value: Value) -> bool:
    if isinstance(value, Unknown):
        return (path_of(node) or "").rpartition(".")[2] in ("dtype", "torch_dtype")
    return _is_known(value)


def no_tensor(call: Call) -> Finding | None:
    """`x.type_as(3)`, and `torch.tensor(x).to(x)` of an array: what is no tensor where the dtype of one is asked for."""
    if len(call.node.args) != 1 or not (call.target.startswith("torch.Tensor.") or call.method == "type_as"):
        return None
    node, value = call.node.args[0], call.args[0]
    if isinstance(value, Array) or (isinstance(value, Unknown) and _is_asked_to_be_array(node, call)):
        what = "an array of NumPy"
    elif call.method == "type_as" and _is_known(value):
        what = "a dtype"
    elif call.method == "type_as" and (isinstance(value, Number) or _is_number(value)):
        what = "a number"
    else:
        return None
    text = ast.unparse(node)
    return Finding(
        call.node,
        f"`{text}` is {what}, not a tensor: `.{call.method}()` raises TypeError",
        help=f"Use `.to({text})`" if what == "a dtype" else "Give a tensor, or name the dtype: `.to(torch.float32)`",
    )


def _is_number(value: Value) -> bool:
    return isinstance(value, Constant) and isinstance(value.value, (int, float))


def _is_asked_to_be_array(node: ast.expr, call: Call) -> bool:
    """Does a test in force say so, `if isinstance(x, np.ndarray)`, of a name that is bound to nothing else behind it?"""
    path = path_of(node)
    return path is not None and any(
        held.holds
        and isinstance(held.test, ast.Call)
        and path_of(held.test.func) == "isinstance"
        and len(held.test.args) == 2
        and path_of(held.test.args[0]) == path
        and (path_of(held.test.args[1]) or "").endswith(".ndarray")
        and not _is_bound_since(path, held.test.lineno, call)
        for held in atoms(call.flow.conditions)
    )


def _is_bound_since(path: str, line: int, call: Call) -> bool:
    """Is the name bound anew between a test and a call, by another statement than that of the call?"""
    last = call.flow.statement.lineno
    return any(
        line <= at <= last and (value is None or all(part is not call.node for part in nodes([value])))
        for at, value in assignments(call.flow.scope).get(path.partition(".")[0], ())
    )
