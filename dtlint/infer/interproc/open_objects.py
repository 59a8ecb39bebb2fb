"""What an object holds whose methods anybody may call: its weights and attributes, whose dtypes go by their paths in it, or are
those of an assumption."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.domain.lattice import join_all
from dtlint.infer.domain.values import (
    Atom,
    Const,
    Dtype,
    Instance,
    Many,
    Mapping,
    Ref,
    Symbol,
    Tensor,
    Tuple,
    Union,
    Unknown,
    Value,
    choices,
)
from dtlint.infer.interproc.misuses import WHOLE
from dtlint.infer.models.plain_tensors import PARAMETER, WEIGHTS
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dtlint.dtypes.assumption import Assumption
    from dtlint.infer.context import Context
    from dtlint.infer.domain.values import Address

__all__ = ["name_what_it_holds", "unknown_at"]


def unknown_at(text: str) -> Unknown:
    """Whatever stands at a path, with a symbol for its dtype if it is a tensor."""
    return Unknown(None, Symbol(frozenset({Atom(text, text)})))


def name_what_it_holds(ctx: Context, made: Ref, assumption: Assumption | None) -> None:
    """Give the dtypes of all that an object holds the names by which its methods know it: `self.fc.weight`."""
    store = ctx.store
    waiting: deque[tuple[Address, str | None]] = deque([(made.address, "self")])
    seen = {made.address}
    while waiting:
        address, text = waiting.popleft()
        if store.is_several(address):
            text = None
        for field, value in list(store.objects[address].items()):
            if address.kind in WEIGHTS:
                named = _weight(value, text, address.kind == PARAMETER) if field == CONTENT else value
                if assumption is not None and isinstance(named, Tensor) and _is_open_weight(named, address.kind):
                    certain = named.symbol is None or all(atom.floating for atom in named.symbol.of)
                    dtypes = frozenset({assumption.weights}) | (frozenset() if certain else WHOLE)
                    named = Tensor(dtypes, None, named.rank)
            else:
                named = _named(value, _within(text, field))
            if named != value:
                store.overwrite(address, field, named)
            for inner, path in _held(named, _within(text, field)):
                if inner not in seen and inner in store.objects and inner.kind not in ("frame", "module", "class"):
                    seen.add(inner)
                    waiting.append((inner, path))


def _is_open_weight(value: Tensor, kind: object) -> bool:
    """Is it of the dtype that its module was cast to? One that stands for several has no name."""
    return value.dtypes is None and (value.symbol is not None or kind == PARAMETER)


def _within(text: str | None, field: object) -> str | None:
    """The path of a field; the content of a container goes by the container's."""
    if field == CONTENT or text is None:
        return text
    return f"{text}.{field}" if isinstance(field, str) and field.isidentifier() else None


def _held(value: Value, text: str | None) -> Iterator[tuple[Address, str | None]]:
    """The objects in a value, with their paths."""
    if isinstance(value, Ref):
        yield value.address, text
    elif isinstance(value, Union):
        for one in value.choices:
            yield from _held(one, text)
    elif isinstance(value, Tuple):
        for place, one in enumerate(value.items):
            yield from _held(one, _item(text, place, value.names))
    elif isinstance(value, Many):
        yield from _held(value.item, None)
    elif isinstance(value, Mapping):
        for key, one in value.items:
            yield from _held(one, f"{text}[{key.value!r}]" if text is not None and isinstance(key, Const) else None)
        if value.rest is not None:
            yield from _held(value.rest, None)


def _item(text: str | None, place: int, names: Sequence[str]) -> str | None:
    if text is None:
        return None
    return f"{text}.{names[place]}" if names else f"{text}[{place}]"


def _symbol(text: str | None, floating: bool) -> Symbol | None:
    return None if text is None else Symbol(frozenset({Atom(text, text, floating)}))


def _weight(value: Value, text: str | None, parameter: bool) -> Value:
    """A weight of whatever dtype its module was cast to."""
    if not isinstance(value, Tensor) or (value.dtypes is not None and not value.dtypes & FLOATING):
        return value
    floating = value.dtypes <= FLOATING if value.dtypes is not None else parameter
    symbol = _symbol(text, floating) if floating or value.dtypes is None else None
    return Tensor(None, symbol, value.rank)


def _named(value: Value, text: str | None) -> Value:
    """A value of an attribute: what is not known of its dtype goes by its path."""
    if isinstance(value, Tensor):
        if value.dtypes is not None and len(value.dtypes) == 1:
            return value
        symbol = _symbol(text, value.dtypes is not None and value.dtypes <= FLOATING)
        return Tensor(None if symbol is not None else value.dtypes, symbol, value.rank, device=value.device)
    if isinstance(value, Instance):
        return Instance(value.dtypes, _symbol(text, floating=False), kind=value.kind)
    if isinstance(value, Unknown):
        return value if value.symbol is None else Unknown(value.dtypes, _symbol(text, floating=False))
    if isinstance(value, Dtype):
        return value if value.symbol is None else Dtype(value.dtypes)
    if isinstance(value, Tuple):
        items = (_named(one, _item(text, place, value.names)) for place, one in enumerate(value.items))
        return Tuple(tuple(items), value.names)
    if isinstance(value, Many):
        return Many(_named(value.item, None))
    if isinstance(value, Mapping):
        held = (
            (key, _named(one, f"{text}[{key.value!r}]" if text and isinstance(key, Const) else None))
            for key, one in value.items
        )
        return Mapping(tuple(held), None if value.rest is None else _named(value.rest, None))
    if isinstance(value, Union):
        return join_all(_named(one, text) for one in choices(value)) or value
    return value
