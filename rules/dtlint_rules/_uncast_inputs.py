"""What goes uncast into a model: what a processor returns, and in a program that casts the model, an item of the batch,
what another model computed, and an input to try the model with.

Processors and factories give float32, and so does a model that was not cast; a batch has what the data set has.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.rule import Finding
from dtlint_rules._assignments import assignments
from dtlint_rules._calls import is_called_model
from dtlint_rules._effects import SCALAR
from dtlint_rules._names import last_name
from dtlint_rules._origin import Kind, in_order
from dtlint_rules._parts import receiver
from dtlint_rules._regions import decided_here
from dtlint_rules._statements import around, statements
from dtlint_rules._training import HALVES, cast_models, trained_in
from dtlint_rules._within import statement_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Flow
    from dtlint_rules._calls import Input
    from dtlint_rules._origin import Origin
    from dtlint_rules._origins import Origins
    from dtlint_rules._training import ModelCast

__all__ = ["PREPARED", "of_processors", "of_programs"]

_PREPARING = re.compile(r"processor|feature_extractor|preprocess", re.IGNORECASE)
"""Names of what turns pictures and sound into float32 tensors."""
PREPARED = frozenset({"pixel_values", "input_features", "input_values", "pixel_values_videos"})
_NO_FLOATS = re.compile(
    r"(?:^|_)(?:ids?|mask|index|labels?|tokens?|lengths?|sizes?|crops?|paths?|names?)(?:$|_|\d)|(?:text|prompt|caption)s?$"
)
"""Names of batch items that are no floating tensors."""


def of_processors(inputs: list[Input], origins: Origins, scope: ast.AST) -> Iterator[Finding]:
    """What a processor returns, as it is: `model(**processor(image, return_tensors="pt").to(device))`."""
    for given in inputs:
        roots = origins[given.node]
        name = given.callee.rpartition(".")[2]
        if not any(map(_is_prepared, roots)) or any(root.kind == Kind.CAST for root in roots):
            continue
        if not (given.callee.startswith("self.") or is_called_model(name)) or _PREPARING.search(name):
            continue
        if not _is_floating(given.node, scope):
            continue
        place = _moved(given.node, scope) or given.node
        yield Finding(
            place,
            f"`{given.callee}` raises if its weights are half: the processor gives float32",
            help="Cast it with the move: `.to(device, dtype)`",
            notes=((given.node, f"it goes into `{given.callee}` here"),) if place is not given.node else (),
            conditional=True,
        )


def _is_prepared(root: Origin) -> bool:
    call = root.node
    return (
        root.kind == Kind.CALLED
        and _PREPARING.search(root.text) is not None
        and isinstance(call, ast.Call)
        and any(keyword.arg == "return_tensors" for keyword in call.keywords)
    )


def _is_floating(node: ast.expr, scope: ast.AST) -> bool:
    """Does an argument take pictures or sound of it: `inputs.pixel_values`?"""
    values = [node]
    if isinstance(node, ast.Name):
        values += [value for _, value in assignments(scope).get(node.id, ()) if value is not None]
    return any(
        (isinstance(part, ast.Attribute) and part.attr in PREPARED)
        or (isinstance(part, ast.Constant) and part.value in PREPARED)
        for value in values
        for part in ast.walk(value)
    )


def _moved(node: ast.expr, scope: ast.AST) -> ast.expr | None:
    """The last `x = x.to(device)` before a name is used."""
    if not isinstance(node, ast.Name):
        return None
    before = [value for line, value in assignments(scope).get(node.id, ()) if line <= node.lineno and value is not None]
    return before[-1] if before and isinstance(before[-1], ast.Call) and last_name(before[-1]) == "to" else None


def of_programs(inputs: list[Input], origins: Origins, place: Flow) -> Iterator[Finding]:
    """What goes uncast into a model that the function casts as a whole, `unet.to(device, dtype=weight_dtype)`."""
    casts = cast_models(place.scope, origins)
    if not casts:
        return
    trained = trained_in(place.scope)
    cast_roots = [root for roots in list(origins.of.values()) for root in roots if root.kind == Kind.CAST]
    batches_cast = [batches for root in cast_roots if (batches := _batches(_items_of(root.of)))]
    seen: set[ast.expr] = set()
    for given in inputs:
        cast = casts.get(given.callee)
        if cast is None or given.callee in trained:
            continue
        roots = in_order(origins[given.node])
        items = _items_of(roots)
        item = items[0].node if items else given.node
        statement, what = statement_of(given.call, place.scope), None
        if items and len(items) == len(roots):
            if not all(map(_batches(items).isdisjoint, batches_cast)):
                what = f"`{ast.unparse(item)}`"
        elif roots and all(map(_is_made_plain, roots)):
            if _is_cast_above(given.call, cast, place.scope) and not _is_within_context(statement, place.tree):
                what = f"The float32 of `{roots[0].text}`"
        elif [root.kind for root in roots] == [Kind.CALLED] and roots[0].text in trained - casts.keys():
            what = f"The output of `{roots[0].text}`"
        if what is None or item in seen or decided_here(statement, place.tree):
            continue
        seen.add(item)
        yield Finding(
            item,
            f"{what} goes into `{given.callee}` uncast, which is cast to `{cast.text}`",
            help=f"Cast it: `.to(dtype={cast.text})`",
            notes=((cast.node, f"`{given.callee}` is cast here"), (given.node, "it goes in here")),
            conditional=bool(items) or cast.text not in HALVES,
        )


def _batches(items: Iterable[Origin]) -> set[str]:
    """What items are items of: `batch` of `batch['pixel_values']`."""
    return {item.text.partition("[")[0] for item in items}


def _is_made_plain(root: Origin) -> bool:
    """Is it an input to try a model with, of the default dtype: `model(torch.zeros(1, 3, size, size))`?"""
    return root.kind == Kind.MADE and root.text not in SCALAR


def _is_within_context(statement: ast.AST, tree: ast.Module) -> bool:
    """Does a call stand in a context that may be autocast, by whatever name, and casts its input: `with context:`?"""
    return any(
        last_name(item.context_expr) not in ("no_grad", "inference_mode")
        for part in (statement, *around(statement, tree))
        if isinstance(part, (ast.With, ast.AsyncWith))
        for item in part.items
    )


def _is_cast_above(call: ast.Call, cast: ModelCast, scope: ast.AST) -> bool:
    """Is a model cast above a call, and not cast back to float32 since?"""
    path = path_of(call.func)
    back = (
        node.lineno
        for node in statements(scope)
        if isinstance(node, ast.Expr)
        and last_name(node.value) in ("float", "double")
        and (held := receiver(node.value)) is not None
        and path_of(held) == path
    )
    return cast.node.lineno < call.lineno and not any(cast.node.lineno < line < call.lineno for line in back)


def _items_of(roots: Iterable[Origin]) -> list[Origin]:
    """The floating items of a batch among some origins."""
    return [
        root
        for root in roots
        if root.kind == Kind.GIVEN
        and root.text.endswith("']")
        and root.text.startswith(("batch[", "data[", "inputs[", "sample["))
        and not _NO_FLOATS.search(root.text.partition("['")[2][:-2].lower())
    ]
