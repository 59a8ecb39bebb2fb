"""DT311: an operator that float16 and bfloat16 do not have is given a tensor that is of such a dtype, or can be."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Edit, Fix, Span
from dtlint.dtypes.dtype import LOW_PRECISION
from dtlint.dtypes.table import load
from dtlint.infer.domain.values import Const, Region, Tensor
from dtlint.rule import Finding, Rule
from dtlint_rules._fixes import operand_text
from dtlint_rules._minded import atoms_of, minds
from dtlint_rules._needs import TORCH, attributes
from dtlint_rules._refusals import finding, is_refused, once, operand, short_op, tensors
from dtlint_rules._texts import short

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts, Operation
    from dtlint.source.place import Place

__all__ = ["HalfUnsupportedOp"]

_NOWHERE = "has no kernel for float16 and bfloat16"
_REFUSED = "refuses float16 and bfloat16"
_FFT = "has no bfloat16 kernel, and a float16 one only on CUDA, for powers of 2"
_COMPLEX = "refuses bfloat16"
_FEW = "has no kernel for float16 and bfloat16 where both have up to 25 rows"
_NO_KERNEL = (
    *("linalg.svd", "linalg.svdvals", "linalg.eigh", "linalg.eigvalsh", "linalg.eig", "linalg.eigvals", "linalg.qr"),
    *("linalg.solve", "linalg.cholesky", "linalg.cholesky_ex", "linalg.lu", "linalg.lu_factor", "linalg.det"),
    *("linalg.solve_triangular", "linalg.cond", "svd", "qr", "cholesky", "det", "svd_lowrank", "pca_lowrank", "lobpcg"),
    *("triangular_solve", "cholesky_solve", "cholesky_inverse", "nn.functional.ctc_loss", "polar"),
    *("geqrf", "orgqr", "ormqr", "linalg.householder_product", "linalg.ldl_factor", "linalg.ldl_factor_ex"),
    *("lu", "linalg.lu", "linalg.lu_factor_ex", "linalg.solve_ex", "linalg.tensorsolve"),
    *("special.erfcx", "special.ndtri", "special.log_ndtr", "special.zeta"),
    *("special.bessel_j0", "special.bessel_j1", "special.bessel_y0", "special.bessel_y1"),
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
    *("linalg.slogdet", "linalg.matrix_rank", "linalg.inv_ex", "linalg.tensorinv"),
)
_OPS = {
    **dict.fromkeys(_NO_KERNEL, _NOWHERE),
    **dict.fromkeys(_NOT_TAKEN, _REFUSED),
    **{f"fft.{prefix}{name}": _FFT for prefix in ("", "i", "r", "ir") for name in ("fft", "fft2", "fftn")},
    "stft": _FFT,
    "istft": _FFT,
    "view_as_complex": _COMPLEX,
    "nn.init.orthogonal_": "runs a QR decomposition, which has no half kernel",
    "cdist": _FEW,
}
"""What lacks half kernels in torch 2.13, by the name behind `torch.`, and how. Measured on CPU; the messages of those that
refuse, and MAGMA and cuSOLVER behind the others, are the same on CUDA."""

_OF_ITS_DTYPE = frozenset(
    {
        *("linalg.inv", "inverse", "linalg.pinv", "pinverse", "linalg.cholesky", "cholesky", "cholesky_inverse"),
        *("linalg.det", "det", "logdet", "quantile", "nanquantile", "nn.functional.interpolate"),
    }
)
"""Those that give one tensor, of the dtype of their operand."""
_NOT_ALONE = frozenset(
    {
        *("linalg.solve", "linalg.lstsq", "linalg.solve_triangular", "triangular_solve", "cholesky_solve"),
        *("lobpcg", "nn.init.orthogonal_", "polar", "ormqr", "orgqr", "linalg.householder_product", "special.zeta"),
        *("linalg.solve_ex", "linalg.tensorsolve", "cdist"),
    }
)
"""Those that take another tensor of the same dtype, or write into their operand: to cast one operand mends nothing."""

_CASTS = frozenset({"to", "type", "type_as", "float", "double", "half", "item", "tolist", "numpy", "backward"})


class HalfUnsupportedOp(Rule):
    """An operator without a half kernel is given a half tensor.

    ## What it does
    Reports `torch.quantile`, most of `torch.linalg`, `torch.fft`, `polar`, `view_as_complex`, `ctc_loss`, Bessel and a
    few other special functions, `nn.init.orthogonal_`, and `interpolate` with `antialias=True` on a tensor that is float16
    or bfloat16, and `matrix_power` with a negative power; under an assumption `cdist` too, which takes half from 26 points
    on if p is 2. A tensor that was cast to float32 before is fine.

    Conditional, and so reported with `--preview` only: a tensor whose dtype the caller decides, in a function that casts
    to that dtype, and so expects others than float32; and a Fourier transform of float16 that need not be on the CPU.

    ## Why it matters
    These operators raise RuntimeError in half: `quantile() input tensor must be either float or double dtype`,
    `"linalg_svd_cpu" not implemented for 'Half'`. Autocast does not help with most of them. `torch.fft` has kernels for
    float16 on CUDA only, for powers of 2, and none for bfloat16. Antialiased interpolation has none on CPU.

    ## Example
    ```python
    import torch


    def threshold(sample: torch.Tensor, ratio: float) -> torch.Tensor:
        narrow = sample.to(torch.bfloat16)
        return torch.quantile(narrow, ratio)
    ```

    ## Use instead
    ```python
    import torch


    def threshold(sample: torch.Tensor, ratio: float) -> torch.Tensor:
        narrow = sample.to(torch.bfloat16)
        return torch.quantile(narrow.float(), ratio).to(narrow.dtype)
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
    triggers = (*attributes(_OPS), "antialias", "*matrix_power")
    needs = (TORCH,)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        def is_asked(one: Operation) -> bool:
            """Without an assumption a program knows how many points it has."""
            return facts.assumption is not None or short_op(one) != "cdist"

        for seen in once(facts.operations(lambda one: is_asked(one) and (_is_half(one) or is_refused(one, self.code)))):
            op, subject = short_op(seen.what), operand(seen.what)
            given = [subject, *tensors(seen.what)] if subject is not None else tensors(seen.what)
            last, dtypes = (
                op.rpartition(".")[2],
                " or ".join(sorted(next((one.dtypes for one in given if one.dtypes), ()))),
            )
            text = f"`{last}` {_why(seen.what) or _NOWHERE}: this raises for {dtypes}"
            fix = None
            if subject is not None and subject.node is not None and op not in _NOT_ALONE:
                taken_on = _is_taken_on(facts.around.parent(facts.around.parent(seen.node) or seen.node))
                back = op in _OF_ITS_DTYPE and isinstance(subject.node, ast.Name) and not taken_on
                fix = partial(_widened, seen.node, subject.node, back)
            yield finding(seen, None, text, _HELP, fix=fix, conditional=_may_run(seen.what))
        for seen in once(facts.operations(lambda one: is_asked(one) and _may_be_half(one))):
            subject = operand(seen.what)
            if subject is not None and subject.node is not None and minds(facts, seen.node, subject.value):
                text = f"`{short_op(seen.what).rpartition('.')[2]}` {_why(seen.what)}: this raises for a half `{short(subject.node)}`"
                yield finding(seen, None, text, _HELP, conditional=True)


_HELP = "Compute in float32: cast the operand with `.float()`, and the result back"


def _why(operation: Operation) -> str | None:
    """What the op lacks in half, in the region in force; None for every other op."""
    op = short_op(operation)
    region = operation.region if isinstance(operation.region, Region) else None
    inner = "linalg.inv" if op.endswith("matrix_power") else op
    if region is not None and region.enabled is not False:
        device = region.device or "cuda"
        if load().autocast(device, f"torch.{inner}") is not None:
            return None  # autocast casts it, or what it calls
    if op == "nn.functional.interpolate":
        antialias = operand(operation, 7, "antialias")
        on = antialias is not None and antialias.value == Const(True)
        return "with antialias has no kernel for float16 and bfloat16 on CPU" if on else None
    if op in ("matrix_power", "linalg.matrix_power"):
        power = operand(operation, 1, "n")
        number = power.value.value if power is not None and isinstance(power.value, Const) else 0
        is_inverse = isinstance(number, int) and number < 0
        return "with a negative power inverts, which refuses float16 and bfloat16" if is_inverse else None
    if op == "cdist":
        return _of_distances(operation)
    return _OPS.get(op)


def _of_distances(operation: Operation) -> str | None:
    """`cdist` multiplies matrices from 26 points on, or where it is told to, if p is 2."""
    power, mode = operand(operation, 2, "p"), operand(operation, 3, "compute_mode")
    if power is not None and power.value not in (Const(2), Const(2.0)):
        return f"{_NOWHERE} where p is not 2" if isinstance(power.value, Const) else None
    return None if mode is not None and mode.value == Const("use_mm_for_euclid_dist") else _FEW


def _may_run(operation: Operation) -> bool:
    """May it be one of the transforms that CUDA has for float16, where the length is a power of 2?"""
    subject = operand(operation)
    on_cpu = subject is not None and isinstance(subject.value, Tensor) and subject.value.device == "cpu"
    return subject is not None and _why(operation) == _FFT and "float16" in (subject.dtypes or ()) and not on_cpu


def _is_half(operation: Operation) -> bool:
    subject = operand(operation)
    why = _why(operation)
    refused = frozenset({"bfloat16"}) if why == _COMPLEX else LOW_PRECISION
    return why is not None and subject is not None and bool(subject.dtypes) and subject.dtypes <= refused


def _may_be_half(operation: Operation) -> bool:
    subject = operand(operation)
    return subject is not None and bool(atoms_of(subject.value)) and _why(operation) is not None


def _is_taken_on(around: ast.AST | None) -> bool:
    """Is the result cast, or read as a number, where it stands?"""
    return isinstance(around, ast.Call) and isinstance(around.func, ast.Attribute) and around.func.attr in _CASTS


def _widened(call: ast.expr, node: ast.expr, back: bool, place: Place) -> Fix:
    """The fix that casts the operand to float32, and the result back to its dtype."""
    edits = [place.replace(node, f"{operand_text(place, node)}.float()")]
    if back:
        end = place.source.span(call)
        edits.append(
            Edit(Span(end.end_line, end.end_column, end.end_line, end.end_column), f".to({place.text(node)}.dtype)")
        )
    return Fix("Compute it in float32", tuple(edits), Applicability.UNSAFE)
