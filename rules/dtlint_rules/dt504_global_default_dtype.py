"""DT504: the default dtype of the whole process is changed by code that others import."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import LOW_PRECISION
from dtlint.infer.calls import dtype_of
from dtlint.infer.values import Dtype, options
from dtlint.rule import Finding, Rule
from dtlint_rules._names import names
from dtlint_rules._scripts import is_library

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call, End

__all__ = ["GlobalDefaultDtype"]

_SETTER = "torch.set_default_dtype"
_OLD_SETTER = "torch.set_default_tensor_type"


class GlobalDefaultDtype(Rule):
    """The default dtype is changed for the whole process.

    ## What it does
    Reports `torch.set_default_dtype` in code that others import, at the level of the module or in a function that does
    not put the old default back; a default of float16 or bfloat16 anywhere that is not put back; and
    `torch.set_default_tensor_type`.

    ## Why it matters
    The default decides what every `torch.zeros`, every new layer and every Python number becomes, in all threads and
    all libraries of the process. A half default makes the accumulators, the masks and the optimizer's state of code
    that knows nothing of it half. `set_default_tensor_type` is deprecated since torch 2.1, and sets the device besides.

    ## Example
    ```python
    import torch

    def build(width: int) -> torch.nn.Module:
        torch.set_default_dtype(torch.bfloat16)
        return torch.nn.Linear(width, width)
    ```

    ## Use instead
    ```python
    import torch

    def build(width: int) -> torch.nn.Module:
        return torch.nn.Linear(width, width, dtype=torch.bfloat16)
    ```

    ## References
    - [torch.set_default_dtype](https://docs.pytorch.org/docs/stable/generated/torch.set_default_dtype.html)
    - [torch.set_default_tensor_type](https://docs.pytorch.org/docs/stable/generated/torch.set_default_tensor_type.html)
    """

    code, name = "DT504", "global-default-dtype"
    triggers = ("set_default_dtype", "set_default_tensor_type")
    calls = frozenset({"set_default_dtype", "set_default_tensor_type"})

    def __init__(self) -> None:
        self.set: list[tuple[ast.Call, str | None, bool]] = []
        """Calls that set the default, the dtype where it is known, and whether the module's own statements do."""

    def on_call(self, call: Call) -> Iterable[Finding]:
        if call.target == _SETTER:
            given = call.argument(0, "d")
            dtypes = dtype_of(given)
            known = next(iter(dtypes)) if dtypes is not None and len(dtypes) == 1 else None
            halves = given is not None and any(
                isinstance(each, Dtype) and each.name in LOW_PRECISION for each in options(given)
            )
            self.set.append((call.node, "bfloat16" if halves and known is None else known, call.flow.function is None))
        elif call.target == _OLD_SETTER and not call.flow.version_gated:
            return [_old(call.node)]
        return ()

    def on_end(self, end: End) -> Iterator[Finding]:
        tree = end.flow.tree
        if end.flow.function is not None or not self.set or _puts_back(tree, len(self.set)):
            return
        library = is_library(tree)
        for node, dtype, at_import in self.set:
            if dtype in LOW_PRECISION:
                yield _found(
                    node,
                    f"Every new float tensor and layer of the process is {dtype} from here on",
                )
            elif at_import and library and dtype != "float32":
                yield _found(
                    node, f"Importing this module sets the default dtype of the process to {dtype or 'another one'}"
                )


def _found(node: ast.Call, message: str) -> Finding:
    return Finding(node, message, help="Pass `dtype=` where tensors are made, or restore the default in `finally`")


def _old(node: ast.Call) -> Finding:
    return Finding(
        node,
        "`torch.set_default_tensor_type` is deprecated since torch 2.1",
        help="Use `torch.set_default_dtype` and `torch.set_default_device`",
    )


def _puts_back(tree: ast.Module, count: int) -> bool:
    """Does the module remember the default, or set it more than once?"""
    return count > 1 or "get_default_dtype" in names(tree)
