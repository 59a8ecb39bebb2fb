"""DT511: a model of transformers is told its dtype by a keyword that has a new name."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Edit, Fix, Severity, Span
from dtlint.rule import Finding, Rule
from dtlint_rules._names import words
from dtlint_rules._releases import is_for_some_releases, is_tried

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts
    from dtlint.source.place import Place

__all__ = ["DeprecatedTorchDtype"]

_OLD = "torch_dtype"


class DeprecatedTorchDtype(Rule):
    """A model or a pipeline of transformers is loaded with the keyword `torch_dtype`, which is deprecated.

    ## What it does
    Reports `torch_dtype=` where a class of transformers is called by `from_pretrained` or `from_config`, and in calls of
    `transformers.pipeline`. Classes of other packages, such as those of diffusers, are left alone: they have no other
    keyword. So are files that ask for a version, and code that gives both names, or tries one after the other.

    ## Why it matters
    transformers calls the argument `dtype` since 4.56, warns of the old name in most places, and keeps it for
    compatibility alone. Where both are given the new one counts, so that a `dtype` in `**kwargs` beside it wins in
    silence. The rule is opt-in, for releases before 4.56 know the old name alone.

    ## Example
    ```python
    import torch
    from transformers import AutoModel, GPT2Config

    config = GPT2Config(vocab_size=8, n_embd=8, n_layer=1, n_head=1)
    model = AutoModel.from_config(config, torch_dtype=torch.bfloat16)
    ```

    ## Use instead
    ```python
    import torch
    from transformers import AutoModel, GPT2Config

    config = GPT2Config(vocab_size=8, n_embd=8, n_layer=1, n_head=1)
    model = AutoModel.from_config(config, dtype=torch.bfloat16)
    ```

    ## Fix safety
    The fix renames the keyword. It is unsafe: a release before 4.56 does not know the new name.

    ## References
    - [PreTrainedModel.from_pretrained](https://huggingface.co/docs/transformers/main_classes/model#transformers.PreTrainedModel.from_pretrained)
    """

    code, name = "DT511", "deprecated-torch-dtype"
    severity = Severity.INFO
    fix = Applicability.UNSAFE
    default = False
    triggers = (_OLD,)
    needs = (("transformers",),)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        if "version" in words(facts.tree):
            return
        for call in facts.calls("transformers."):
            keyword = next((keyword for keyword in call.node.keywords if keyword.arg == _OLD), None)
            if keyword is None or "dtype" in call.keywords or is_for_some_releases(facts, call.node):
                continue
            if not is_tried(facts, call.node):
                yield Finding(
                    keyword.value,
                    f"`{_OLD}` is deprecated in transformers since 4.56",
                    help="Call it `dtype`, where no older release is to be supported",
                    fix=partial(_renamed, keyword),
                )


def _renamed(keyword: ast.keyword, place: Place) -> Fix:
    start = place.source.span(keyword)
    name = Span(start.line, start.column, start.line, start.column + len(_OLD))
    return Fix("Call it `dtype`", (Edit(name, "dtype"),), Applicability.UNSAFE)
