"""Asks each operator of torch's own operator database for its result dtypes under CUDA's autocast, three ways.

Simulated; as torch's compiled kernels of CUDA's autocast decide, over fake CUDA tensors, which need no device; and on
a real device. The first must agree with the others.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._pytree import tree_leaves, tree_map

from dtlint.trace.simulate import simulate

Dtypes = tuple[torch.dtype, ...]
Answer = Dtypes | Exception

HALF, SINGLE = torch.float16, torch.float32

KINDS: dict[str, Callable[[int], torch.dtype]] = {
    "single": lambda n: SINGLE,
    "half": lambda n: HALF,
    "mixed": lambda n: SINGLE if n else HALF,
}
"""The dtype of the n-th operand that the database gives as float32."""

OTHER_KERNELS = {
    "native_batch_norm": "CUDA keeps the statistics of half input in float32, the CPU in half",
    "_native_batch_norm_legit": "the same",
    "_softmax_backward_data": "the fake kernel takes the dtype of the argument for its result's",
    "native_group_norm": "the fake kernel takes the dtype of the weights for the statistics'",
    "normal": "the fake kernel promotes mean and std; the CPU's takes the mean's dtype",
    "nn.functional.linear_cross_entropy": "in chunks its kernel multiplies what is not of one dtype",
}
"""Where not autocast but the operator itself answers otherwise, with the reason."""

NO_KERNEL = re.compile(
    r"not implemented for|not yet implemented|Unsupported dtype|Low precision dtypes|doesn't support tensors of type"
    r"|same (scalar type|dtype|type)|[Ee]xpected( object of)? scalar type|Could not run 'aten::_(flash|efficient)"
    r"|doesn't handle types|expected a tensor with 2 or more dimensions|out of bounds|other than float and double"
    r"|supports floating point|[Ee]xpected .* but (got|found)"
)
"""How the CPU refuses dtypes, whoever asks."""


@dataclass
class Question:
    """One operator with one sample of its arguments."""

    op: Any
    sample: Any
    kind: str

    def __str__(self) -> str:
        return " ".join(filter(None, (self.op.name, self.op.variant_test_name, self.kind)))

    def asked(self, moved: Callable[[Tensor], Tensor], within: AbstractContextManager[Any] | None = None) -> Dtypes:
        """The dtypes of all results, with the operands of this kind where `moved` puts them."""
        count = 0

        def operand(x: Any) -> Any:
            nonlocal count
            if not isinstance(x, Tensor):
                return x
            x = x.detach()
            if x.dtype is SINGLE:
                x, count = x.to(KINDS[self.kind](count)), count + 1
            return moved(x)

        of = self.sample
        values, args, kwargs = tree_map(operand, (of.input, list(of.args), dict(of.kwargs)))
        with warnings.catch_warnings(), within or nullcontext():
            warnings.simplefilter("ignore")
            results = tree_leaves(self.op(values, *args, **kwargs))
        return tuple(x.dtype for x in results if isinstance(x, Tensor))


def questions(samples: int, kinds: tuple[str, ...], of: Callable[[Any], bool] = lambda op: True) -> Iterator[Question]:
    """The whole database, or some of it: so many samples of each operator."""
    from torch.testing._internal.common_methods_invocations import op_db

    for op in op_db:
        if SINGLE not in op.dtypes or "jiterator" in op.name or not of(op):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # op.sample_inputs would look through the whole stack at each of them, for torch's own test runner
            found = list(islice(op.sample_inputs_func(op, "cpu", SINGLE, False), samples))
        for sample in found:
            for kind in kinds:
                yield Question(op, sample, kind)


def _answered(ask: Callable[[], Dtypes]) -> Answer:
    try:
        return ask()
    except Exception as error:
        return error


def by_torch(asked: list[Question]) -> list[Answer]:
    """As the compiled kernels of CUDA's autocast decide."""
    log = logging.getLogger("torch._subclasses.fake_tensor")
    level = log.level
    log.setLevel(logging.CRITICAL)
    torch.set_autocast_enabled("cuda", True)
    try:
        return [_answered(lambda q=q: _fake(q)) for q in asked]
    finally:
        torch.set_autocast_enabled("cuda", False)
        log.setLevel(level)


def _fake(question: Question) -> Dtypes:
    mode = FakeTensorMode()

    def moved(x: Tensor) -> Tensor:
        meta = torch.empty_strided(x.size(), x.stride(), dtype=x.dtype, device="meta")
        return FakeTensor(mode, meta, torch.device("cuda", 0))

    return question.asked(moved, mode)


def by_simulation(asked: list[Question]) -> list[Answer]:
    """As the simulation does."""
    with simulate("cuda"):
        return on_device(asked)


def on_device(asked: list[Question]) -> list[Answer]:
    """As the device does that is called "cuda" here."""
    with torch.autocast("cuda"):
        return [_answered(lambda q=q: q.asked(lambda x: x.to("cuda"))) for q in asked]


@dataclass
class Agreement:
    """How answers compare."""

    same: int
    both_refuse: int
    unasked: list[str]
    """That only the other could not answer: a fake tensor has no values to decide by."""
    refused: list[str]
    """That the CPU has no kernel for."""
    differ: list[str]


def compare(asked: list[Question], simulated: list[Answer], other: list[Answer]) -> Agreement:
    """Count them."""
    result = Agreement(0, 0, [], [], [])
    for question, mine, theirs in zip(asked, simulated, other, strict=True):
        name = str(question)
        if isinstance(mine, Exception) and isinstance(theirs, Exception):
            result.both_refuse += 1
        elif isinstance(theirs, Exception):
            result.unasked.append(name)
        elif isinstance(mine, Exception):
            known = NO_KERNEL.search(str(mine)) or question.op.name in OTHER_KERNELS
            (result.refused if known else result.differ).append(f"{name}: {theirs}, simulated {mine!r}")
        elif mine == theirs:
            result.same += 1
        elif question.op.name in OTHER_KERNELS:
            result.refused.append(f"{name}: {OTHER_KERNELS[question.op.name]}")
        else:
            result.differ.append(f"{name}: {theirs}, simulated {mine}")
    return result
