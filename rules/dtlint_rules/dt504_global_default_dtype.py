"""DT504: the default dtype of the whole process is changed by code that others import."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import LOW_PRECISION
from dtlint.infer.domain.values import Dtype, choices
from dtlint.rule import Finding, Rule
from dtlint_rules._releases import is_for_some_releases
from dtlint_rules._scripts import is_library

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts

__all__ = ["GlobalDefaultDtype"]


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

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for call in facts.calls("torch.set_default_tensor_type"):
            if not is_for_some_releases(facts, call.node):
                yield Finding(
                    call.node,
                    "`torch.set_default_tensor_type` is deprecated since torch 2.1",
                    help="Use `torch.set_default_dtype` and `torch.set_default_device`",
                )
        calls = [*facts.calls("torch.set_default_dtype")]
        if len({call.node for call in calls}) != 1 or any(facts.calls("torch.get_default_dtype")):
            return  # what is set more than once, or read before, is put back
        for call in calls:
            given = [one.dtypes for one in choices(call.args[0]) if isinstance(one, Dtype)] if call.args else []
            half = next((min(dtypes) for dtypes in given if dtypes and dtypes <= LOW_PRECISION), None)
            told = min(given[0]) if len(given) == 1 and given[0] and len(given[0]) == 1 else "another one"
            at_import = facts.around.function(call.node) is None and is_library(facts.tree)
            if half is not None or (at_import and told != "float32"):
                yield Finding(
                    call.node,
                    f"Every new float tensor and layer of the process is {half} from here on"
                    if half is not None
                    else f"Importing this module sets the default dtype of the process to {told}",
                    help="Pass `dtype=` where tensors are made, or restore the default in `finally`",
                )
