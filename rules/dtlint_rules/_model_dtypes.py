"""Inputs that are cast to the own dtype of the model that they go into, `self.vae.dtype`, on one path only, or to another
dtype than at the other calls of that model."""

from __future__ import annotations

import ast
import re
from itertools import chain
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.survey import facts
from dtlint.infer.walk import nodes
from dtlint.rule import Finding
from dtlint_rules._calls import may_be_model, model_of
from dtlint_rules._casts import TOLD
from dtlint_rules._half import half_at
from dtlint_rules._meanings import is_device, names_dtype
from dtlint_rules._names import last_name
from dtlint_rules._origin import Kind, in_order
from dtlint_rules._parts import given, receiver
from dtlint_rules._provenance import follows
from dtlint_rules._statements import around, statements
from dtlint_rules._within import statement_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from dtlint.infer.events import Flow
    from dtlint.infer.survey import Facts
    from dtlint_rules._calls import Input
    from dtlint_rules._origin import Origin
    from dtlint_rules._origins import Origins

__all__ = ["ModelDtypes"]


class ModelDtypes:
    """Gathers what the inputs of models are cast to, as one function after another is read."""

    def __init__(self) -> None:
        self.own: dict[tuple[object, str], list[tuple[str, Flow]]] = {}
        """Models by class and path, with the dtypes that inputs of theirs are cast to: their own, and where."""
        self.others: list[_Cast] = []
        """The casts to other dtypes."""
        self.waiting: list[Flow] = []
        """Functions that speak of no model's own dtype: what they cast matters if another of their class does."""

    def may_be_own(self, place: Flow) -> bool:
        """May a function cast something to the own dtype of a model that it calls? Ask it before origins are read. One that
        casts to another dtype only waits."""
        own = facts(place.scope)
        following = [call for call in own.telling if follows(call)]
        models = _models_called(own) if following else ()
        if not models:
            return False
        if any(_is_part_of(node, models) for node in chain(_told(following), _noted_dtypes(place.scope))):
            return True
        self.waiting.append(place)
        return False

    def of_paths(self, inputs: list[Input], origins: Origins, place: Flow) -> Iterator[Finding]:
        """An input that is cast to the model's own dtype on one path only. One that is cast on all is kept in mind."""
        owner = _owner_of(place)
        for each in inputs:
            model = model_of(each.callee) if each.is_first else None
            if model is None:
                continue
            roots = in_order(origins[each.node])
            own = [root for root in roots if root.kind == Kind.CAST and _is_own(root.text, model)]
            others = [root for root in roots if root not in own]
            if own and not others:
                self.own.setdefault((owner, model), []).append((own[0].text, place))
            elif own and all(root.kind in (Kind.GIVEN, Kind.CALLED) for root in others):
                if any(_is_asked(root.node, place) for root in own) or not _are_paths_of_one(own, others):
                    continue
                yield Finding(
                    own[0].node,
                    f"The input of `{model}` is cast to its dtype on this path only",
                    help=f"Cast it where `{each.callee}` is called: `.to({model}.dtype)`",
                    notes=((each.node, f"it goes into `{model}` here, whatever the path"),),
                    conditional=True,
                )
            elif others and all(root.kind == Kind.CAST and not root.text.startswith("torch.") for root in others):
                self.others.append(_Cast(others[0], owner, model, each, place))

    def waited(self) -> list[Flow]:
        """The functions that waited for one of their class, and not in vain."""
        owners = {owner for owner, _ in self.own}
        return [place for place in self.waiting if _owner_of(place) in owners]

    def of_others(self) -> Iterator[Finding]:
        """An input that is cast to another dtype than at the other calls of the model. Ask it when all has been read."""
        for cast in self.others:
            casts = self.own.get((cast.owner, cast.model))
            if casts is None or _is_named_after(cast.origin.text, cast.model):
                continue
            if half_at(cast.place, dtype=None) is None:
                continue
            own = next((text for text, place in casts if half_at(place, dtype=None) is not None), None)
            if own is not None:
                yield Finding(
                    cast.origin.node,
                    f"The input of `{cast.model}` is cast to `{cast.origin.text}` here, and to `{own}` elsewhere",
                    help=f"Cast it to `{own}`",
                    notes=((cast.given.node, f"it goes into `{cast.model}` here"),),
                    conditional=True,
                )


class _Cast:
    """A cast to another dtype than that of the model that it goes into."""

    __slots__ = ("given", "model", "origin", "owner", "place")

    def __init__(self, origin: Origin, owner: object, model: str, given: Input, place: Flow) -> None:
        self.origin, self.owner, self.model, self.given, self.place = origin, owner, model, given, place


def _owner_of(place: Flow) -> object:
    """The class whose method the function is."""
    return place.function.owner if place.function is not None else None


def _is_own(dtype: str, model: str) -> bool:
    """Is a dtype, as it is written, one that is asked of the model: `self.vae.dtype`, `next(self.vae.parameters()).dtype`?"""
    return re.search(rf"(?<![\w.]){re.escape(model)}\b.*dtype$", dtype) is not None


def _are_paths_of_one(own: list[Origin], others: list[Origin]) -> bool:
    """Is what is cast on the one path the same thing that is not on the other, and no other part of a sum?"""
    return any(inner in others for root in own for inner in root.of)


def _is_asked(cast: ast.expr, place: Flow) -> bool:
    """Is a cast made where the dtype of the very tensor was looked at: `if x.dtype != dtype: x = x.to(dtype)`? Or where
    that of the weights was, which are whole numbers once they are quantized."""
    subject = receiver(cast)
    dtype = path_of(subject) if subject is not None else None
    statement = statement_of(cast, place.scope)
    tests = (part.test for part in (statement, *around(statement, place.tree)) if isinstance(part, ast.If))
    for part in nodes(tests):
        if last_name(part) == "is_floating_point":
            return True
        if dtype is not None and isinstance(part, ast.Attribute) and path_of(part) == f"{dtype}.dtype":
            return True
    return False


def _is_named_after(dtype: str, model: str) -> bool:
    """Is it a name that says it is the model's: `vae_dtype` for `self.vae`?"""
    return model.rpartition(".")[2].lower() in dtype.lower()


# -- before origins are read ------------------------------------------------------------------------------------------


def _models_called(own: Facts) -> set[str]:
    """The paths of the models that a function calls on something."""
    models = (model_of(path_of(call.func) or "") for call in own.calls if may_be_model(call.func) and given(call))
    return {model for model in models if model is not None}


def _told(casts: Iterable[ast.Call]) -> Iterator[ast.expr]:
    """What casts may take a dtype from: `x.dtype` of `.to(x.dtype)`, `x` of `.type_as(x)`."""
    for call in casts:
        if last_name(call) in TOLD:
            yield from (node for node in call.args if names_dtype(node) or not is_device(node))
        yield from (part.value for part in call.keywords if part.arg == "dtype")


def _noted_dtypes(scope: ast.AST) -> Iterator[ast.Attribute]:
    """What a function notes the dtype of, in a name: `self.vae.dtype` of `dtype = self.vae.dtype`."""
    parts: Iterable[ast.AST] = nodes([scope]) if facts(scope).has_walrus else _bound_values(scope)
    for node in parts:
        if isinstance(node, ast.Attribute) and node.attr.endswith("dtype"):
            yield node


def _bound_values(scope: ast.AST) -> Iterator[ast.expr]:
    for node in statements(scope):
        value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) else None
        if isinstance(value, (ast.Tuple, ast.List)):
            yield from value.elts
        elif value is not None:
            yield value


def _is_part_of(node: ast.expr, models: Collection[str]) -> bool:
    """Is an expression one of some models or an attribute of it, as far as it reads?"""
    path = path_of(node)
    while path:
        if path in models:
            return True
        path = path.rpartition(".")[0]
    return path is None and not isinstance(node, ast.Constant)
