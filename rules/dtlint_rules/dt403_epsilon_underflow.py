"""DT403: a small number that guards against zero, and is zero in float16."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES
from dtlint.infer.names import path_of
from dtlint.infer.survey import facts
from dtlint.infer.values import UNKNOWN, Constant, Items, Tensor
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._assignments import source_of
from dtlint_rules._buffers import is_of_constants
from dtlint_rules._guards import is_guarded
from dtlint_rules._half import half_at, is_assumed
from dtlint_rules._idle import lost_epsilons
from dtlint_rules._names import last_name, names_in
from dtlint_rules._needs import TORCH
from dtlint_rules._numbers import HALF, number_at, spelled
from dtlint_rules._operands import certain
from dtlint_rules._parts import receiver, same
from dtlint_rules._squares import is_widened, squared
from dtlint_rules._subjects import ABSENT, is_function, operand
from dtlint_rules._tensors import is_tensor, is_used_as_tensor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Assign, Call, Flow, Operation
    from dtlint.infer.facts import ModuleFacts
    from dtlint.infer.reach import Reached
    from dtlint.infer.values import Value
    from dtlint_rules._numbers import Number

__all__ = ["EpsilonUnderflow"]

FLOAT = DTYPES["float32"]
_HALF_ALONE = frozenset({"float16"})
_TINY = tuple(f"1e-{exponent}" for exponent in range(8, 324))
"""How numbers that are 0 in float16 are written."""
_ROUNDS_TO_ZERO = HALF.smallest / 2
"""Half of the smallest subnormal number is a tie, and goes to the even one: 0. Seen on torch 2.13."""
_NO_GUARD_ABOVE = 1 - 2.0**-25
"""1 minus less than this is 1 in float32."""

_CLAMPS = {
    **dict.fromkeys(("clamp", "clamp_", "clip", "clip_"), (0, "min")),
    **dict.fromkeys(("clamp_min", "clamp_min_"), (0, "min")),
}
_NOT_IN_HALF = re.compile(
    r"^(?:stft|istft|\w*fft\w*|mel\w*|spectrogram|cholesky\w*|eigh|eigvals|eigvalsh|svd|svdvals|lstsq|pinverse|slogdet)$"
)
"""What has no half kernel, like signal processing and factorizations."""
_OF_DECIBELS = re.compile(r"(?:^|_)(?:to_?)?(?:db|decibels?)(?:_|$)", re.IGNORECASE)
"""Functions that compute with decibels: of signals, too."""


_NORMALIZES = frozenset({"torch.nn.functional.normalize", "torch.nn.functional.cosine_similarity"})
"""What clamps norms to an epsilon in the dtype of its input: zeros are NaN for one that is 0. Seen on torch 2.13."""
_GREATER = frozenset({"max", "maximum"})
_REPLACES = frozenset({"where", "masked_fill", "masked_fill_"})
_ORDERS = frozenset({ast.Lt, ast.LtE, ast.Gt, ast.GtE})


class EpsilonUnderflow(Rule):
    """An epsilon that is 0 in float16.

    ## What it does
    Reports numbers between 0 and 2.98e-8 that are added to a tensor, or that it is clamped to from below, where float16
    can reach, or that take the place of zeros, `norm[norm == 0] = 1e-8`, or that `F.normalize` and
    `F.cosine_similarity` are given outside of autocast; `clamp(max=1 - 1e-8)`, which is a clamp to 1 in float32
    already, and `x < -1 + 1e-8`, which compares with -1 there. The number is found as a default, a constant of the
    module or an attribute of the class, too. Optimizers, signal processing, decibels and linear algebra run in float32
    and are left alone, and so are data sets, functions that refuse float16, `assert x.dtype != torch.float16`, variances
    of distributions, the sum of all squares of a tensor, and constants: buffers that are not saved.

    Conditional, and so reported with `--preview` only: numbers for tensors that are not known to be half. A bound
    that rounds to 1 in float32 is reported always.

    ## Why it matters
    The smallest positive number of float16 is 5.96e-8, and whatever lies below half of it is 0. `x / (norm + 1e-8)` is
    NaN for a zero vector, `(p + 1e-12).log()` is -inf, and `clamp(min=1e-10)` clamps to 0, though all of it is right in
    float32 and bfloat16. CUDA's autocast computes sums, norms and logarithms in float32, so that it shows only in a
    model that is cast to float16 itself, or in what autocast leaves alone.

    ## Example
    ```python
    import torch

    def normalize(x: torch.Tensor) -> torch.Tensor:
        return x / (x.norm(dim=-1, keepdim=True) + 1e-8)
    ```

    ## Use instead
    ```python
    import torch

    def normalize(x: torch.Tensor) -> torch.Tensor:
        return x / (x.norm(dim=-1, keepdim=True) + torch.finfo(x.dtype).eps)
    ```

    ## References
    - [torch.finfo](https://docs.pytorch.org/docs/stable/type_info.html#torch.finfo)
    - [What autocast computes in float32](https://docs.pytorch.org/docs/stable/amp.html#cuda-ops-that-autocast-to-float32)
    """

    code, name = "DT403", "epsilon-underflow"
    triggers = (*_TINY, "finfo", "float_info", "*0000000*")
    needs = (TORCH,)
    calls = frozenset(
        {"add", "add_", *_CLAMPS, *_GREATER, *_REPLACES, *(name.rpartition(".")[2] for name in _NORMALIZES)}
    )
    targets = frozenset({ast.Subscript})
    operators = frozenset({ast.Add, *_ORDERS})

    def __init__(self) -> None:
        self.written: dict[ast.expr, bool] = {}
        """Numbers that have been reported, and whether only where half is assumed."""

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        return lost_epsilons(facts)

    def on_operation(self, operation: Operation) -> Iterator[Finding]:
        node, left, right = operation.node, operation.left, operation.right
        if isinstance(node, ast.BinOp):
            pairs = [(node.right, right, node.left, left), (node.left, left, node.right, right)]
        elif isinstance(node, ast.AugAssign):
            pairs = [(node.value, right, node.target, left)]
        else:
            if isinstance(node, ast.Compare):
                yield from self._compared(operation, node)
            return
        for given, added, subject, value in pairs:
            if isinstance(value, Constant) or isinstance(added, (Tensor, Items)):
                continue
            number = _tiny(given, operation.flow)
            if number is not None and (
                is_tensor(subject, value, operation.flow)
                or is_used_as_tensor(node, operation.flow)
                or (isinstance(node, ast.AugAssign) and _is_given_to_torch(subject, operation.flow))
            ):
                yield from self._found(
                    node, number, operation.flow, subject, value, f"adding it leaves {_shown(subject)} unchanged"
                )
                return

    def _compared(self, operation: Operation, node: ast.Compare) -> Iterator[Finding]:
        """`c < -1 + 1e-8`, which asks whether a cosine is at its end."""
        if len(node.ops) != 1:
            return
        flow = operation.flow
        for bound, subject, value in (
            (node.comparators[0], node.left, operation.left),
            (node.left, node.comparators[0], operation.right),
        ):
            if not isinstance(bound, ast.BinOp) or isinstance(value, Constant) or not is_tensor(subject, value, flow):
                continue
            number = number_at(bound, flow)
            if number is None or number.value in (-1, 1) or abs(abs(number.value) - 1) >= 2.0**-25:
                continue
            if "float64" in (getattr(value, "dtypes", None) or ()) or _runs_in_float32(flow):
                return
            yield Finding(
                node,
                f"`{ast.unparse(bound)}` rounds to {number.value:.0f} in float32",
                help="Compare with a number that float32 has, such as 1 - 1e-6",
            )
            return

    def on_call(self, call: Call) -> Iterator[Finding]:
        name = last_name(call.node)
        function = is_function(call)
        if name in _REPLACES:
            yield from self._replaced(call, name, function)
        elif name in _GREATER:
            yield from self._greater(call)
        elif call.target in _NORMALIZES:
            yield from self._normalized(call)
        elif name in ("add", "add_"):
            given = call.argument_node(int(function), "other")
            yield from self._guarded(call, given, function, "adding it changes nothing")
        elif name in _CLAMPS and (function or call.method):
            position, keyword = _CLAMPS[name]
            least = call.argument_node(position + function, keyword)
            yield from self._guarded(call, least, function, "clamping to it clamps to 0")
            yield from self._bounded(call, function)

    def on_assign(self, assign: Assign) -> Iterator[Finding]:
        """`norm[norm == 0] = 1e-8`."""
        target, number = assign.target, _tiny(assign.expression, assign.flow)
        if isinstance(target, ast.Subscript) and number is not None and _is_zero_of(target.slice) is not None:
            subject = target.value
            if same(subject, _is_zero_of(target.slice) or target) and is_tensor(subject, assign.base, assign.flow):
                yield from self._put(assign.node, number, assign.flow, subject, assign.base)

    def _replaced(self, call: Call, name: str, function: bool) -> Iterator[Finding]:
        """`norm.masked_fill(norm == 0, 1e-8)` and `torch.where(norm == 0, 1e-8, norm)`."""
        if name == "where":
            tested, given, kept = (
                call.argument_node(at, word) for at, word in enumerate(("condition", "input", "other"))
            )
        else:
            tested, given = call.argument_node(int(function), "mask"), call.argument_node(1 + function, "value")
            kept = (operand(call) or ABSENT)[0]
        number = _tiny(given, call.flow)
        zero = None if number is None or tested is None else _is_zero_of(tested)
        if number is not None and zero is not None and kept is not None and same(zero, kept):
            yield from self._put(call.node, number, call.flow, kept, UNKNOWN)

    def _greater(self, call: Call) -> Iterator[Finding]:
        """`torch.max(norm, eps * torch.ones_like(norm))`."""
        subject, value = operand(call) or ABSENT
        given = call.argument_node(int(is_function(call)), "other")
        if subject is None or not isinstance(given, (ast.BinOp, ast.Call)):
            return
        number = _tiny(_filled_with(given), call.flow)
        if number is not None:
            yield from self._found(call.node, number, call.flow, subject, value, "it guards nothing")

    def _normalized(self, call: Call) -> Iterator[Finding]:
        """`F.normalize(x, eps=1e-12)`, which clamps the norm in the dtype of `x`, and autocast takes it in float32."""
        if call.flow.autocast is not None:
            return
        number = _tiny(call.argument_node(3, "eps"), call.flow)
        subject, value = operand(call) or ABSENT
        if number is not None and subject is not None:
            happens = "a row of zeros becomes NaN"
            yield from self._put(call.node, number, call.flow, subject, value, happens)

    def _put(
        self,
        node: ast.expr | ast.stmt,
        number: Number,
        flow: Flow,
        subject: ast.expr,
        value: Value,
        happens: str = "it replaces 0 by 0",
    ) -> Iterator[Finding]:
        """The finding where a small number takes the place of 0."""
        if _runs_in_float32(flow) or is_widened(subject, flow):
            return
        half = half_at(flow, value, of=subject)
        if half is None or self._is_told(number, half) or "temperature" in last_name(subject).lower():
            return
        yield self._told(node, number, happens, "used here", half)

    def _guarded(self, call: Call, given: ast.expr | None, function: bool, happens: str) -> Iterator[Finding]:
        number = _tiny(given, call.flow)
        subject, value = operand(call) or ABSENT
        if number is None or subject is None or _is_array(subject):
            return
        if not function and "clamp" not in call.method and not is_tensor(subject, value, call.flow):
            return
        yield from self._found(call.node, number, call.flow, subject, value, happens)

    def _bounded(self, call: Call, function: bool) -> Iterator[Finding]:
        """`p.clamp(1e-8, 1 - 1e-8)`: the upper bound is 1, in float32 as well."""
        given = call.argument_node(1 + function, "max")
        number = number_at(given, call.flow)
        if number is None and isinstance(given, ast.BinOp) and isinstance(given.op, ast.Sub):
            one, less = number_at(given.left, call.flow), number_at(given.right, call.flow)
            if one is None or less is None or one.value != 1 or not 0 < less.value < 2.0**-25:
                return
            text = f"1 - {spelled(less.value)}"
        elif number is not None and _NO_GUARD_ABOVE < number.value < 1:
            text = ast.unparse(given) if given is not None else ""
        else:
            return
        subject, value = operand(call) or ABSENT
        if subject is None or half_at(call.flow) is None or "float64" in (getattr(value, "dtypes", None) or ()):
            return
        yield Finding(
            call.node,
            f"{text} rounds to 1 in float32: the upper bound does nothing",
            help="Use 1 - 1e-6 in float32, and 1 - 1e-3 in float16",
        )

    def _found(
        self, node: ast.expr | ast.stmt, number: Number, flow: Flow, subject: ast.expr, value: Value, happens: str
    ) -> Iterator[Finding]:
        if not is_guarded(node, flow):
            return
        if certain(value) != _HALF_ALONE and _runs_in_float32(flow):
            return
        half = half_at(flow) if number.value < FLOAT.tiny else half_at(flow, value, of=subject)
        if half is None or self._is_told(number, half) or (number.value >= FLOAT.tiny and is_widened(subject, flow)):
            return
        if is_of_constants(subject, flow) or _is_moment(subject) or _sums_squares(subject, flow):
            return
        yield self._told(node, number, happens, "guards against zero here", half)

    def _is_told(self, number: Number, half: Reached) -> bool:
        """Has a number been reported, for certain or where this one too assumes half?"""
        return self.written.get(number.written) in (False, is_assumed(half))

    def _told(self, node: ast.expr | ast.stmt, number: Number, happens: str, role: str, half: Reached) -> Finding:
        """The one finding for a number, where it is written; a note says where it comes into use."""
        self.written[number.written] = is_assumed(half)
        return Finding(
            node if number.literal else number.written,
            _message(number.value, happens),
            help="Use `torch.finfo(x.dtype).eps`, or compute this in float32",
            notes=() if number.literal else ((node, role),),
            conditional=is_assumed(half),
        )


def _message(value: float, happens: str) -> str:
    if value < FLOAT.tiny:
        return f"{spelled(value)} is 0 in float16, and in float32 where subnormals are flushed: {happens}"
    return f"{spelled(value)} is 0 in float16: {happens}"


_MOMENTS = frozenset({"variance", "stddev", "covariance_matrix"})


def _is_moment(subject: ast.expr) -> bool:
    """Is it the variance of a distribution, `posterior.variance`? That of a Gaussian process comes out of a factorization,
    and is kept from zero where it is computed."""
    return isinstance(subject, ast.Attribute) and subject.attr in _MOMENTS and path_of(subject.value) != "self"


def _sums_squares(subject: ast.expr, flow: Flow) -> bool:
    """Is it the sum of all squares of a tensor, or several such, `torch.sum(x**2) + torch.sum(y**2)`? Only where nothing is
    left of any of them is that 0."""
    if isinstance(subject, ast.BinOp) and isinstance(subject.op, ast.Add):
        return _sums_squares(subject.left, flow) and _sums_squares(subject.right, flow)
    made = source_of(subject, flow) or subject
    if not isinstance(made, ast.Call) or last_name(made) != "sum" or made.keywords:
        return False
    of_torch = path_of(made.func) in ("torch.sum", "th.sum")
    summed = made.args[0] if of_torch and len(made.args) == 1 else None if made.args else receiver(made)
    return summed is not None and squared(source_of(summed, flow) or summed) is not None


def _tiny(node: ast.expr | None, flow: Flow) -> Number | None:
    number = number_at(node, flow)
    return number if number is not None and 0 < number.value <= _ROUNDS_TO_ZERO else None


def _is_given_to_torch(subject: ast.expr, flow: Flow) -> bool:
    """Is a name, or what is computed with it, given to a function of torch: `torch.log(w / wa)`?"""
    path = path_of(subject)
    return path is not None and any(
        path == path_of(part)
        for call in facts(flow.scope).calls
        if (path_of(call.func) or "").startswith(("torch.", "F.", "th."))
        for given in call.args
        for part in (given, *((given.left, given.right) if isinstance(given, ast.BinOp) else ()))
    )


def _filled_with(node: ast.expr) -> ast.expr | None:
    """The number in all places of a tensor: `eps` of `eps * torch.ones_like(x)`, `torch.full_like(x, eps)` and
    `torch.tensor(eps)`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        for ones, number in ((node.left, node.right), (node.right, node.left)):
            if isinstance(ones, ast.Call) and last_name(ones) in ("ones_like", "ones", "new_ones"):
                return number
    if isinstance(node, ast.Call) and last_name(node) in ("full_like", "full", "new_full"):
        return node.args[1] if len(node.args) > 1 else None
    if isinstance(node, ast.Call) and last_name(node) in ("tensor", "as_tensor", "new_tensor") and node.args:
        given = node.args[0]
        return given.elts[0] if isinstance(given, ast.List) and len(given.elts) == 1 else given
    return None


def _is_zero_of(test: ast.expr) -> ast.expr | None:
    """`norm`, of `norm == 0` and `norm <= 0`."""
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], (ast.Eq, ast.LtE)):
        return None
    zero = test.comparators[0]
    return test.left if isinstance(zero, ast.Constant) and zero.value == 0 else None


def _is_array(subject: ast.expr) -> bool:
    return (path_of(subject) or "").partition(".")[0] in ("np", "numpy", "math")


def _shown(node: ast.expr) -> str:
    text = ast.unparse(node)
    return f"`{text}`" if len(text) <= 40 else "the tensor"


def _runs_in_float32(flow: Flow) -> bool:
    """Is it an optimizer, whose state is float32, a module that is being made, or what half has no kernels for?"""
    function = flow.function
    if function is None:
        return False
    if function.owner is not None and any("Optim" in last_name(base) for base in function.owner.node.bases):
        return True
    if function.name == "__init__" and not any("dtype" in name for name in names_in(function.node)):
        return True  # what a module makes of nothing is float32, until somebody casts the module
    return (
        _OF_DECIBELS.search(function.name) is not None
        or _inverts(function.node)
        or any(
            _NOT_IN_HALF.match(word) is not None
            for part in nodes([function.node])
            if isinstance(part, (ast.Call, ast.Attribute, ast.arg))
            for word in ([part.arg] if isinstance(part, ast.arg) else [last_name(part)])
        )
        or _asks_for_smallest(function.node)
        or any(word in ("float64", "double") for word in names_in(function.node))
    )


def _inverts(function: ast.AST) -> bool:
    """Does a function invert a matrix, `m.inverse()` or `torch.linalg.inv(m)`, or solve for one, which half has not?"""
    for call in facts(function).calls:
        path = path_of(call.func) or ""
        if last_name(call) == "inverse" and not call.args and not call.keywords and path != "self.inverse":
            return True
        if path in ("torch.inverse", "torch.linalg.inv", "torch.linalg.solve", "torch.linalg.qr", "torch.linalg.eig"):
            return True
    return False


def _asks_for_smallest(function: ast.AST) -> bool:
    """Does a function ask a dtype for its own smallest numbers? For its least and its greatest it asks to fill masks."""
    calls = facts(function).calls
    asked = {call for call in calls if last_name(call) == "finfo"}
    if not asked:
        return False
    filling = {
        part.value for part in nodes([function]) if isinstance(part, ast.Attribute) and part.attr in ("min", "max")
    }
    return not asked <= filling
