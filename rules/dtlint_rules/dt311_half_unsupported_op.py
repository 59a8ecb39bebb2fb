"""DT311: an operator that float16 and bfloat16 do not have is given a tensor that can be of such a dtype."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability
from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.names import path_of
from dtlint.infer.reach import Reach
from dtlint.infer.survey import facts
from dtlint.infer.values import Tensor
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._assignments import source_of
from dtlint_rules._cast_up import left_half
from dtlint_rules._effects import FLOAT32
from dtlint_rules._functions import defaults
from dtlint_rules._half import half_at, is_half
from dtlint_rules._handed import is_handed_wide
from dtlint_rules._kept import kept
from dtlint_rules._names import last_name, said
from dtlint_rules._needs import TORCH, attributes
from dtlint_rules._operands import called, tensor_op
from dtlint_rules._origin import Kind
from dtlint_rules._origins import origins_of
from dtlint_rules._parts import given, receiver, subject_of
from dtlint_rules._scripts import is_script
from dtlint_rules._subjects import operand
from dtlint_rules._texts import short
from dtlint_rules._widened import can_widen, widened
from dtlint_rules._within import within

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dtlint.infer.events import Call, Condition, Flow
    from dtlint_rules._subjects import Operand

__all__ = ["HalfUnsupportedOp"]

_NOWHERE = "has no kernel for float16 and bfloat16"
_REFUSED = "refuses float16 and bfloat16"
_FFT = "has no bfloat16 kernel, and a float16 one only on CUDA, for powers of 2"
_ON_CPU = "has no kernel for float16 and bfloat16 on the CPU"
_NO_KERNEL = (
    *("linalg.svd", "linalg.svdvals", "linalg.eigh", "linalg.eigvalsh", "linalg.eig", "linalg.eigvals", "linalg.qr"),
    *("linalg.solve", "linalg.cholesky", "linalg.cholesky_ex", "linalg.lu", "linalg.lu_factor", "linalg.det"),
    *("linalg.solve_triangular", "linalg.cond", "svd", "qr", "cholesky", "det", "svd_lowrank", "pca_lowrank", "lobpcg"),
    *("triangular_solve", "cholesky_solve", "cholesky_inverse", "cdist", "nn.functional.ctc_loss"),
)
_NOT_TAKEN = (
    *(
        "quantile",
        "nanquantile",
        "linalg.inv",
        "inverse",
        "linalg.pinv",
        "pinverse",
        "linalg.lstsq",
        "logdet",
        "slogdet",
    ),
    *("linalg.slogdet", "linalg.matrix_rank"),
)
_OPS = {
    **dict.fromkeys(_NO_KERNEL, _NOWHERE),
    **dict.fromkeys(_NOT_TAKEN, _REFUSED),
    **{f"fft.{prefix}{name}": _FFT for prefix in ("", "i", "r", "ir") for name in ("fft", "fft2", "fftn")},
    "stft": _FFT,
    "istft": _FFT,
    "view_as_complex": "refuses bfloat16, and makes complex32 of float16",
    "nn.init.orthogonal_": "runs a QR decomposition, which has no half kernel",
}
"""What lacks half kernels in torch 2.13, by the name behind `torch.`, and how. Measured on CPU; the messages of those that
refuse, and MAGMA and cuSOLVER behind the others, are the same on CUDA."""

_IN_AUTOCAST = frozenset({"nn.functional.ctc_loss", "stft", "istft", "cdist"}) | {
    name for name in _OPS if name.startswith("fft.")
}
"""CUDA's autocast gives these float32; the rest takes what it gets."""

_OF_ITS_DTYPE = frozenset(
    {
        *("linalg.inv", "inverse", "linalg.pinv", "pinverse", "linalg.cholesky", "cholesky", "cholesky_inverse"),
        *("linalg.det", "det", "logdet", "quantile", "nanquantile", "nn.functional.interpolate"),
    }
)
"""Those that give one tensor, of the dtype of their operand."""
_NOT_ALONE = frozenset(
    {
        *("linalg.solve", "linalg.lstsq", "linalg.solve_triangular", "triangular_solve", "cholesky_solve", "cdist"),
        *("lobpcg", "nn.init.orthogonal_"),
    }
)
"""Those that take another tensor of the same dtype, or write into their operand: to cast one operand mends nothing."""

_ON_ACTIVATIONS = frozenset({"quantile", "nanquantile", "fft", "interpolate", "view_as_complex"})
"""What models do to their activations, in whatever dtype they compute. The others work on statistics and weights, which
numerical code keeps in float32."""
_WIDE = frozenset({"float", "float32", "double", "float64"})
_HALF = frozenset({"float16", "half", "bfloat16"})


class HalfUnsupportedOp(Rule):
    """An operator without a half kernel is given a tensor that can be half.

    ## What it does
    Reports `torch.quantile`, most of `torch.linalg`, `torch.fft`, `view_as_complex`, `ctc_loss`, `nn.init.orthogonal_`
    and `interpolate` with `antialias=True` on a tensor that is float16 or bfloat16, and on one whose dtype the caller
    decides in code that asks for half itself; `orthogonal_` of a weight where the same file casts another weight to
    float32 for it, or other values to the dtype of a weight; an operand that is computed from what the function casts
    to float32 where that is half, and is not cast with it, or is on the CPU alone; and ops whose result is cast to
    float32, and then back to the dtype that the operand has: there the cast stands behind the op instead of before it.
    A tensor that was cast to float32 before is fine.

    Conditional, and so reported with `--preview` only: operands that are not known to be half.

    ## Why it matters
    These operators raise RuntimeError in half: `quantile() input tensor must be either float or double dtype`,
    `"linalg_svd_cpu" not implemented for 'Half'`. Autocast does not help with most of them. `torch.fft` has kernels for
    float16 on CUDA only, for powers of 2, and none for bfloat16. Antialiased interpolation has none on CPU.

    ## Example
    ```python
    import torch


    def threshold(sample: torch.Tensor, ratio: float) -> torch.Tensor:
        if sample.dtype == torch.bfloat16:
            sample = sample.half()
        return torch.quantile(sample, ratio)
    ```

    ## Use instead
    ```python
    import torch


    def threshold(sample: torch.Tensor, ratio: float) -> torch.Tensor:
        if sample.dtype == torch.bfloat16:
            sample = sample.half()
        return torch.quantile(sample.to(torch.promote_types(sample.dtype, torch.float32)), ratio).to(sample.dtype)
    ```

    ## Fix safety
    The fix casts the operand to float32, or to what float32 and its dtype promote to where that may be float64 or complex,
    and one result of the same dtype back. It is unsafe: results of other kinds stay float32, or complex. There is no fix
    for an expression of an unknown dtype, nor for what takes two tensors of one dtype or fills a weight in place.

    ## References
    - [torch.quantile](https://docs.pytorch.org/docs/stable/generated/torch.quantile.html)
    - [torch.linalg](https://docs.pytorch.org/docs/stable/linalg.html)
    """

    code, name = "DT311", "half-unsupported-op"
    fix = Applicability.UNSAFE
    triggers = (*attributes(_OPS), "antialias")
    needs = (TORCH,)
    calls = called((*_OPS, "interpolate"))

    def on_call(self, call: Call) -> Iterable[Finding]:
        why = _lacking(call)
        subject = operand(call) if why is not None else None
        if subject is None or not call.complete:
            return ()
        if any(_is_of_float32(held, subject.node) for held in call.flow.conditions):
            return ()
        if why == _FFT and _is_on_cpu(subject.node, call.flow):
            why = _ON_CPU
        level = (
            _level(call, subject) or _expected(call, subject) or _cast_too_late(call, subject) or _left(call, subject)
        )
        if level is None:
            return ()
        half = is_half(subject.value)
        raises = "this raises for" if half else "this raises for a half"
        op = tensor_op(call)
        notes = (
            ()
            if level.lineno == call.node.lineno
            else ((level, "half here" if half else "half is asked for, or expected, here"),)
        )
        return (
            Finding(
                call.node,
                f"`{op.rpartition('.')[2]}` {why}: {raises} `{short(subject.node)}`",
                help="Compute in float32: cast the operand with `.float()`, and the result back",
                notes=notes,
                conditional=not half,
                fix=None
                if op in _NOT_ALONE or not can_widen(subject)
                else partial(widened, call, subject, op in _OF_ITS_DTYPE),
            ),
        )


def _lacking(call: Call) -> str | None:
    """What the op that is called lacks in half, in the region in force; None for every other call."""
    op = tensor_op(call)
    if op == "nn.functional.interpolate":
        antialias = call.flow.autocast is None and _is_on(call.argument_node(7, "antialias"), call.flow)
        if "cpu" in said(call.flow.scope):
            return None  # who asks whether it is the CPU casts there
        return "with antialias has no kernel for float16 and bfloat16 on CPU" if antialias else None
    return None if call.flow.autocast is not None and op in _IN_AUTOCAST else _OPS.get(op)


def _is_of_float32(held: Condition, node: ast.expr) -> bool:
    """Is it the branch of `if x.dtype == torch.float32:`, of an `x` that the expression is made of?"""
    test = held.test
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.left, ast.Attribute):
        return False
    if test.left.attr != "dtype" or path_of(test.comparators[0]) not in FLOAT32:
        return False
    asked = path_of(test.left.value)
    of = (path_of(part) for part in ast.walk(node) if isinstance(part, (ast.Name, ast.Attribute)))
    return isinstance(test.ops[0], ast.Eq if held.holds else ast.NotEq) and asked is not None and asked in of


def _is_on_cpu(node: ast.expr, flow: Flow) -> bool:
    """Is a tensor fetched to the CPU, where it stands or where its name is bound: `y = x.cpu().detach()`?"""
    made: ast.expr | None = source_of(node, flow) or node
    while isinstance(made, ast.Call):
        if last_name(made) == "cpu" or (last_name(made) == "to" and "cpu" in said(made)):
            return True
        made = receiver(made)
    return False


def _is_on(node: ast.expr | None, flow: Flow) -> bool:
    """Is it `True`, or a parameter that is unless the caller says otherwise?"""
    if isinstance(node, ast.Constant):
        return node.value is True
    if not isinstance(node, ast.Name) or flow.function is None:
        return False
    default = {parameter.arg: value for parameter, value in defaults(flow.function.node.args)}.get(node.id)
    return isinstance(default, ast.Constant) and default.value is True


def _level(call: Call, subject: Operand) -> ast.expr | ast.stmt | None:
    """The place that shows that the operand can be half; None where nothing does."""
    value = subject.value
    if not isinstance(value, Tensor):
        return None
    if is_half(value):
        return value.origin or subject.node
    if value.dtypes is not None or is_script(call.flow.tree):
        return None
    symbol = value.symbol
    if symbol is None and not _is_given(subject.node, call.flow):
        return None
    if symbol is not None and not all(atom.parameter and "dtype" not in atom.text for atom in symbol.of):
        return None
    found = half_at(call.flow, value, dtype=None)
    if found is None or is_handed_wide(path_of(subject_of(subject.node)) or "", call.flow):
        return None
    if not _ON_ACTIVATIONS.isdisjoint(tensor_op(call).split(".")):
        return found.node or subject.node
    return found.node if symbol is not None and found.level >= Reach.ASKED and found.near else None


def _expected(call: Call, subject: Operand) -> ast.expr | None:
    """The place by which the author of initial weights shows that half comes here: another weight that is cast to float32
    for the same op, or a value that is cast to the dtype of a weight."""
    flow, known = call.flow, subject.value.dtypes if isinstance(subject.value, Tensor) else None
    if last_name(call.node) != "orthogonal_" or (path_of(subject.node) or "").rpartition(".")[2] != "weight":
        return None
    if flow.function is None or not (known is None or known >= FLOATING):
        return None
    reached = [origin for root in origins_of(flow.scope)[subject.node] for origin in root.closure()]
    if not reached or any(origin.kind != Kind.GIVEN for origin in reached):
        return None
    if any(not _ASKED.isdisjoint(said(held.test)) for held in flow.conditions):
        return None
    upcast = (other for other in _calls_of(flow.tree, "orthogonal_") if any(map(_upcast, given(other))))
    return next(upcast, None) or next(filter(_follows_weight, facts(flow.scope).calls), None)


def _cast_too_late(call: Call, subject: Operand) -> ast.expr | None:
    """The cast to float32 of what the op gives, where its operand has the dtype of the very tensor to whose dtype the
    result goes back: `gram.cholesky().to(torch.float32).cholesky_inverse().to(x.dtype)`."""
    symbol = subject.value.symbol if isinstance(subject.value, Tensor) else None
    decides = symbol.sole if symbol is not None and symbol.exact else None
    if decides is None or _asks_for(_WIDE, call.flow.scope):
        return None
    over = [part for part in within(call.node, call.flow) if isinstance(part, ast.Call)]
    cast = next((part for part in over if _upcast(part) and receiver(part) is call.node), None)
    return cast if any(_follows(part, decides.text) for part in over) else None


def _left(call: Call, subject: Operand) -> ast.expr | None:
    """The cast that the author makes of what the operand was computed from, where that is half."""
    op, value = tensor_op(call), subject.value
    if op not in _OPS or (isinstance(value, Tensor) and value.dtypes is not None and not value.dtypes >= FLOATING):
        return None
    return left_half(subject.node, call.flow.scope, on_cpu_too=_OPS[op] in (_NOWHERE, _REFUSED))


def _follows(cast: ast.Call, name: str) -> bool:
    """`y.to(x.dtype)`, of `x`."""
    return last_name(cast) in ("to", "type") and f"{name}.dtype" in map(path_of, given(cast))


_ASKED = frozenset({"float32", "float", "dtype"})
"""Who tests for these has a branch for float32 alone."""


@kept
def _calls_of(tree: ast.Module, name: str) -> tuple[ast.Call, ...]:
    """The calls of a function anywhere in a file, by its last name."""
    return tuple(node for node in nodes([tree]) if isinstance(node, ast.Call) and last_name(node) == name)


def _upcast(node: ast.expr) -> bool:
    """`x.float()`, `x.to(torch.float32)`, as they stand in a call."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    told = {path_of(argument) for argument in given(node)}
    return (node.func.attr == "float" and not told) or (node.func.attr in ("to", "type") and bool(told & {*FLOAT32}))


def _follows_weight(cast: ast.Call) -> bool:
    """`value.to(self.gate.dtype)`: the weights of the module may be of any dtype."""
    told = [path_of(argument) or "" for argument in given(cast)] if last_name(cast) == "to" else []
    return any(path.startswith("self.") and path.count(".") > 1 and path.endswith(".dtype") for path in told)


def _is_given(node: ast.expr, flow: Flow) -> bool:
    """Is the operand, on some path, what the caller gives, uncast: not a tensor that is made or cast here?"""
    if flow.function is None:
        return False
    names = {argument.arg for argument in ast.walk(flow.function.node.args) if isinstance(argument, ast.arg)}
    roots = origins_of(flow.scope)[node]
    casts = [origin.text for origin in roots if origin.kind == Kind.CAST]
    if casts and (
        _asks_for(_WIDE, flow.scope) or (any(cast in FLOAT32 for cast in casts) and _asks_for(_HALF, flow.scope))
    ):
        return False
    return any(
        origin.kind == Kind.GIVEN and origin.text.partition(".")[0] in names - {"self", "cls"} for origin in roots
    )


def _asks_for(dtypes: frozenset[str], scope: ast.AST) -> bool:
    """Does the function compare a dtype with one of these: with float32, and so casts all others, or with half, which it
    casts?"""
    return any(
        isinstance(part, ast.Compare)
        and (path_of(part.left) or "").endswith("dtype")
        and not dtypes.isdisjoint(said(part))
        for part in ast.walk(scope)
    )
