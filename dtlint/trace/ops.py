"""Facts about operators, as sets with the reason beside each, and what the schema says.

The tracer asks `Op(func)` once per operator; the hot path then reads plain attributes.
"""

# ruff: noqa: SIM905 -- two hundred names read better as words than as a list of literals

from __future__ import annotations

import functools
from typing import Any

import torch

from dtlint.trace.bindings import shortest

__all__ = ["CASTS", "Op", "is_composite", "work"]

CARRIES = frozenset(
    """
    cat stack clone index index_select gather embedding slice_scatter select_scatter
    diagonal_scatter repeat roll flip rot90 relu relu_ abs abs_ neg neg_ maximum minimum fmax fmin max min amax amin
    clamp clamp_ clamp_min clamp_max hardtanh hardtanh_ sort topk kthvalue median mode _reshape_copy
    constant_pad_nd reflection_pad2d replication_pad2d where tril triu sign sgn threshold threshold_
    threshold_backward max_pool2d_with_indices scatter scatter_ select_backward slice_backward index_put_ index_put _index_put_impl_ sigmoid sigmoid_ tanh tanh_ sin cos erf atan detach_
    alias_copy t_copy view_copy masked_select masked_scatter_ round floor ceil trunc frac split_with_sizes_copy
    nan_to_num nan_to_num_ isnan bernoulli
    """.split()
)
"""Move values of their inputs, or bound them: what comes out is non-finite only if what went in was. None of them adds
up, as the backward of an embedding or of overlapping windows does; those that may are told by ADDS_UP."""

ADDS_UP = ("accumulate", "reduce")
"""Arguments by which a call adds up or multiplies what it would else move."""

FRESH = frozenset(
    """
    zeros zeros_like new_zeros zero_ ones ones_like new_ones arange linspace eye rand rand_like randn randn_like
    randint randint_like randperm uniform_ normal_ normal bernoulli_ exponential_ random_ trunc_normal_ tril_indices
    triu_indices one_hot
    """.split()
)
"""Use at most the shape and dtype of their inputs: the values, good or bad, are forgotten."""

GIVEN = frozenset(
    "full full_like new_full fill fill_ scalar_tensor masked_fill masked_fill_ index_fill index_fill_ lift_fresh".split()
)
"""May write a constant that the program gave, as in a mask of -inf: that is intent, not an accident."""

BRINGS = frozenset({"lift_fresh"})
"""Hands over data of the program's, as from_numpy does: memory that may change without an operator."""

INSERTS = frozenset("where constant_pad_nd scatter scatter_ index_put index_put_".split())
"""Carriers that also write a constant argument; an inf given to others of them, as to clamp, is only a bound."""

ALLOCATES = frozenset(
    "empty empty_like empty_strided new_empty new_empty_strided empty_permuted empty_quantized".split()
)
"""Their output holds whatever lay in memory; to judge it would be noise."""

READS = frozenset({"_local_scalar_dense"})
"""The program takes a number out of a tensor, as `.item()` does."""

UNWINDS = frozenset("t transpose permute squeeze unsqueeze alias detach".split())
"""Views whose gradient is a view again: nothing happens there, so that nobody need know the line."""

IGNORED = frozenset(
    """
    _unsafe_view _amp_update_scale_ resize_ set_ is_same_size _has_same_storage_numel record_stream _version is_pinned equal
    _assert_async
    """.split()
)
"""No values pass through them that a later operator would not show. _unsafe_view is a view by another name."""

IGNORED_NAMESPACES = frozenset({"profiler", "prim", "inductor"})
"""Bookkeeping of torch itself."""

REMOTE_NAMESPACES = frozenset({"c10d", "_c10d_functional", "_c10d_functional_autograd", "fsdp"})
"""Collectives: their outputs are written by others, later. Whoever reads them judges them."""

OVERWRITES = frozenset("copy_ fill_ set_ resize_".split())
"""Write their first argument without a look at what it held. Those of FRESH do as well."""

STATISTICS = ("running_mean", "running_var")
"""Arguments that batch_norm writes in training, which the schema of one of them does not say."""

CASTS = frozenset({"_to_copy", "copy_"})
"""How a change of dtype shows in the dispatch stream, whoever asked for it. The source is the last tensor argument."""

POLES: dict[str, int] = {
    "log": 0, "log_": 0, "log2": 0, "log10": 0, "log1p": 0, "reciprocal": 0, "reciprocal_": 0, "rsqrt": 0, "rsqrt_": 0,
    "div": 1, "div_": 1, "pow": 0, "pow_": 0, "atanh": 0, "logit": 0,
}  # fmt: skip
"""Functions that are infinite at a point, and which tensor argument comes near it. `pow` is if its exponent is < 0."""

IMPOSSIBLE = frozenset("_ctc_loss _cudnn_ctc_loss ctc_loss".split())
"""Give inf of what cannot be: the loss of a target that no alignment of its input has. Nothing overflows."""

LINEAR = frozenset("add add_ sub sub_ rsub mul mul_".split())
"""Of a finite tensor and a number give NaN only where the number is not finite."""

ROWS = frozenset(
    """
    _softmax _log_softmax _safe_softmax logsumexp sub sub_ softmax log_softmax scaled_dot_product_attention
    _scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_attention_math
    _scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention
    _scaled_dot_product_attention_math_for_mps
    """.split()
)
"""Give NaN for a row whose every score is -inf (`sub` is the first half of a softmax written by hand)."""

PROMOTES = frozenset({"cat", "stack", "where"})
"""Mix dtypes by promotion though not all are tagged pointwise. Others that take mixed dtypes, such as layer_norm
with float32 weights or the backward of attention, do so by design."""

REFORMULATED = {"prod": "cumprod", "masked_fill": "where", "masked_fill_": "where"}
"""Whose gradient torch computes by another formula wherever a dispatch mode is active, because it takes the tensors
for such whose values cannot be looked at (areAnyTensorSubclassLike in FunctionsManual.cpp); and the operator by which
that formula shows in the backward. Found by running torch's own operator database with and without a mode: of the
operators that are differentiable, only these gave other bits. Of masked_fill it is the gradient of a value given as a
tensor."""

ADDS = frozenset("add add_ sub sub_ lerp lerp_ _foreach_add_ _foreach_sub_ _foreach_lerp_".split())
"""Operators by which a running total grows, or an average follows."""

ROOT = "ones_like"
"""`loss.backward()` begins with ones_like(loss), called by torch.autograd."""


BACKENDS = ("CPU", "CUDA", "MPS", "XPU", "CompositeExplicitAutograd")
"""Dispatch keys whose kernels go before a composite one."""

TELLING = frozenset(("Tensor", "Optional[Tensor]", "ScalarType", "Optional[ScalarType]"))
"""Types of arguments whose dtype, or absence, sets signatures apart. A `dtype=` besides stands by name."""


class Op:
    """What is known of an operator before any call of it."""

    __slots__ = (
        "adds",
        "adds_up",
        "alloc",
        "aside",
        "brings",
        "call",
        "carries",
        "cast",
        "composite",
        "each",
        "fresh",
        "func",
        "given",
        "marks",
        "matters",
        "name",
        "numbers",
        "plain",
        "positions",
        "quiet",
        "reads",
        "remote",
        "updates",
        "writes",
    )

    def __init__(self, func: Any) -> None:
        self.func = self.call = func
        if not isinstance(func, torch._ops.OpOverload):  # torch.cond and its kin: their bodies are seen op by op
            self.name, self.quiet = str(func), True
            self.alloc = self.reads = self.remote = self.brings = self.fresh = self.given = self.carries = False
            self.cast = self.each = self.writes = self.matters = self.composite = self.plain = False
            self.marks = True
            self.positions: tuple[int, ...] | None = None
            self.numbers: tuple[int, ...] = ()
            self.adds_up: tuple[tuple[int, str], ...] = ()
            self.aside: tuple[int, ...] = ()
            self.adds = False
            self.updates: tuple[int, ...] = ()
            return
        if type(func) is torch._ops.OpOverload:
            self.call = shortest(func)
        namespace, name = func._schema.name.split("::")
        self.name = name if namespace == "aten" else f"{namespace}::{name}"
        self.alloc = name in ALLOCATES
        self.reads = name in READS
        self.matters = self.alloc or self.reads
        self.marks = not (self.alloc or name in UNWINDS)
        """May autograd make a node for it, in whose backward something happens?"""
        self.remote = namespace in REMOTE_NAMESPACES
        self.fresh = name in FRESH
        self.brings = name in BRINGS
        self.given = name in GIVEN
        self.carries = name in CARRIES
        self.cast = name in CASTS
        self.each = name.startswith("_foreach_")
        self.aside = () if self.each or self.remote else _written_aside(func._schema)
        """Arguments that it writes besides its results, as batch_norm does its running statistics."""
        self.plain = not (self.remote or self.each or self.aside)
        """Is each result made of all arguments, and written by the time that the operator returns? Is that all?"""
        self.adds_up = tuple((i, a.name) for i, a in enumerate(func._schema.arguments) if a.name in ADDS_UP)
        """Where such an argument stands, and its name."""
        self.positions = _positions(func._schema)
        """Which arguments say what its signature is; None if they are lists, or stand by name."""
        self.numbers = tuple(i for i, a in enumerate(func._schema.arguments) if str(a.real_type) == "Tensor")
        """At which of them a Python number may stand in place of a tensor, as in `x / 2`."""
        self.writes = bool(func._schema.is_mutable)
        self.composite = _made_of_others(func.name())  # type: ignore[no-untyped-call]
        """Is it made of others? Only in inference mode does such a one come whole."""
        self.matters = self.matters and not self.composite
        self.quiet = (
            self.composite
            or self.alloc
            or self.reads
            or (func.is_view and not self.given)  # lift_fresh is a view too: of the data the program brings
            or name in IGNORED
            or namespace in IGNORED_NAMESPACES
            or name.startswith("sym_")
        )
        self.adds = name in ADDS
        """May a running total grow by it?"""
        overwrites = self.quiet or self.remote or self.fresh or name in OVERWRITES
        self.updates = (*(() if overwrites else _updated(func._schema)), *self.aside)
        """Arguments that it both reads and writes."""

    def only_moves(self, args: Any, kwargs: Any) -> bool:
        """Are the results of this call values of its operands, moved or bounded?"""
        asked = (args[i] if i < len(args) else (kwargs or {}).get(name) for i, name in self.adds_up)
        return self.carries and not any(asked)

    @property
    def promotes(self) -> bool:
        """Does it bring operands of several dtypes to one by promotion?"""
        return self.name in PROMOTES or torch.Tag.pointwise in self.func.tags


def _positions(schema: Any) -> tuple[int, ...] | None:
    positions = []
    for index, argument in enumerate(schema.arguments):
        kind = str(argument.real_type)
        if kind in TELLING and not argument.kwarg_only:
            positions.append(index)
        elif "Tensor" in kind or ("ScalarType" in kind and argument.name != "dtype"):
            return None
    return tuple(positions)


def _written_aside(schema: Any) -> tuple[int, ...]:
    returned = {alias for r in schema.returns if r.alias_info for alias in r.alias_info.before_set}
    return tuple(
        index
        for index, a in enumerate(schema.arguments)
        if a.name in STATISTICS or (a.alias_info and a.alias_info.is_write and not returned & a.alias_info.before_set)
    )


def _updated(schema: Any) -> tuple[int, ...]:
    """The first argument of an operator in place."""
    first = schema.arguments[0].alias_info if schema.arguments else None
    return (0,) if first is not None and first.is_write else ()


def _made_of_others(name: str) -> bool:
    """Is a composite kernel what runs? silu_backward and others have one, and faster ones besides, of other rounding."""
    has, knows = torch._C._dispatch_has_kernel_for_dispatch_key, torch._C._dispatch_has_kernel
    # prim::device and its kin are no operators to the dispatcher, which raises when it is asked for a kernel of theirs
    return knows(name) and has(name, "CompositeImplicitAutograd") and not any(has(name, own) for own in BACKENDS)


@functools.cache
def is_composite(name: str) -> bool:
    """Is this the name of an operator of torch's that runs others, as `linear` or `scaled_dot_product_attention`?"""
    packet = getattr(torch.ops.aten, name, None) if name.isidentifier() and not name.startswith("__") else None
    overloads = packet.overloads() if isinstance(packet, torch._ops.OpOverloadPacket) else ()  # type: ignore[no-untyped-call]
    return any(_made_of_others(f"aten::{name}" + f".{o}" * (o != "default")) for o in overloads)


def work(func: Any, args: Any, kwargs: Any, out: Any) -> int:
    """Floating-point operations of a matrix product, convolution or attention; 0 for anything else.

    The formulas are torch's own (torch.utils.flop_counter).
    """
    from torch.utils.flop_counter import flop_registry

    packet = getattr(func, "_overloadpacket", None)
    try:
        if packet in flop_registry:
            return int(flop_registry[packet](*args, **(kwargs or {}), out_val=out))
    except (TypeError, ValueError, IndexError, AttributeError, AssertionError, RuntimeError):
        return 0  # a formula that does not fit these arguments; the share is then of the rest
    return 0
