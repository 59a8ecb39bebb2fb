"""Items: of lists, tuples, dicts, tensors and modules: reading them, writing them, iterating, and truth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.context import Arguments, NeverReturns, Unfit
from dtlint.infer.domain.lattice import join, join_all
from dtlint.infer.domain.values import (
    ABSENT,
    NO_TENSOR,
    NONE,
    TOP,
    Array,
    Bound,
    Const,
    Dtype,
    External,
    Function,
    Generator,
    Many,
    Mapping,
    Namespace,
    Number,
    ProjectClass,
    Ref,
    Tensor,
    Tuple,
    Unknown,
    Value,
    choices,
    may_be_absent,
    present,
)
from dtlint.infer.models import arrays, enumerations, indexing, instance_dicts, mutation, plain_tensors
from dtlint.infer.models.mappings import set_content, with_item
from dtlint.infer.models.module_views import content_of_view, is_view
from dtlint.infer.models.ranges import elements
from dtlint.infer.models.registry import MODELS, is_opaque
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    import ast

    from dtlint.infer.context import Context

__all__ = ["assign_item", "items", "subscript", "truth"]


def subscript(ctx: Context, value: Value, index: Value, node: ast.AST) -> Value:
    """`value[index]`.

    Raises:
        NeverReturns: there is no such item.
    """
    result: Value | None = None
    ones = choices(plain_tensors.plain(ctx, value))
    for one in ones:
        if one == NONE and len(ones) > 1:
            continue  # that would raise
        for place in choices(plain_tensors.plain(ctx, index)):
            try:
                found = _subscript(ctx, one, enumerations.plain(ctx, place), node)
            except NeverReturns:
                continue
            result = found if result is None else join(result, found)
    if result is None:
        raise Unfit
    return result


def _subscript(ctx: Context, value: Value, index: Value, node: ast.AST) -> Value:
    if isinstance(value, Tensor):
        error = indexing.refused_index(index) if ctx.recorder is not None else None
        if error is not None and ctx.recorder is not None:
            ctx.site = node
            ctx.recorder.operation("torch.Tensor.__getitem__", [value, index], {}, None, error, ctx)
        return indexing.of_tensor(ctx, value, index)
    if isinstance(value, Array):
        return arrays.item(value, index)
    if isinstance(value, (Tuple, Many)):
        return _of_sequence(value, index)
    if isinstance(value, Mapping):
        return of_mapping(value, index)
    if isinstance(value, Bound) and is_view(value):
        return of_mapping(content_of_view(ctx, value), index)
    if isinstance(value, Unknown):
        of_tensor = isinstance(index, Tuple) and any(map(_is_slice, index.items))
        return Unknown(value.dtypes) if value.dtypes and of_tensor else TOP
    if isinstance(value, Ref):
        return _of_object(ctx, value, index, node)
    if isinstance(value, Const) and isinstance(value.value, str):
        if _is_slice(index):
            cut = index.value[1:]  # type: ignore[attr-defined]
            return NO_TENSOR if cut == ("?",) else Const(value.value[slice(*cut)])
        is_place = isinstance(index, Const) and _is_place(index, len(value.value))
        return Const(value.value[index.value]) if is_place else NO_TENSOR  # type: ignore[attr-defined]
    if isinstance(value, (External, ProjectClass)):  # `List[int]`, `Generic[T]`
        if isinstance(value, ProjectClass) and enumerations.is_enumeration(value) and isinstance(index, Const):
            return ctx.semantics.attribute(ctx, value, str(index.value), node) or TOP
        return value
    return TOP


def _is_place(index: Value, length: int) -> bool:
    return isinstance(index, Const) and type(index.value) is int and -length <= index.value < length


def _of_sequence(value: Tuple | Many, index: Value) -> Value:
    if isinstance(value, Many):
        return value if _is_slice(index) else value.item
    if isinstance(index, Const) and type(index.value) in (int, bool):
        if -len(value.items) <= index.value < len(value.items):
            item: Value = value.items[index.value]
            return item
        raise Unfit
    if _is_slice(index):
        assert isinstance(index, Const)
        if index.value[1:] == ("?",):
            return Many(join_all(value.items) or TOP)
        return Tuple(value.items[slice(*index.value[1:])])
    return join_all(value.items) or TOP


def _is_slice(index: Value) -> bool:
    return isinstance(index, Const) and isinstance(index.value, tuple) and index.value[:1] == (slice,)


def of_mapping(content: Mapping, key: Value) -> Value:
    """`d[key]` of a dict that holds this.

    Raises:
        NeverReturns: there is no such key.
    """
    known = content.get(key)
    if known is not None:
        found = present(known)
        if found is not None:
            return found if content.rest is None or isinstance(key, Const) else join(found, content.rest)
    if isinstance(key, (Const, Dtype)):
        if content.rest is None:
            raise Unfit
        return content.rest
    held = [found for _, one in content.items if (found := present(one)) is not None]
    if content.rest is not None:
        held.append(content.rest)
    result = join_all(held)
    if result is None:
        raise Unfit
    return result


def _of_object(ctx: Context, value: Ref, index: Value, node: ast.AST) -> Value:
    kind = value.address.kind
    if isinstance(kind, ProjectClass):
        method = ctx.semantics.attribute(ctx, value, "__getitem__", node)
        if isinstance(method, (Function, Bound)):
            try:
                return ctx.semantics.call(ctx, method, Arguments([index], {}, True, node))
            except NeverReturns:
                raise Unfit from None
    content = ctx.store.read(value.address, CONTENT)
    if isinstance(content, Mapping):
        try:
            return of_mapping(content, index)
        except NeverReturns:
            missing = (
                ctx.semantics.attribute(ctx, value, "__missing__", node) if isinstance(kind, ProjectClass) else None
            )
            if isinstance(missing, Function):
                return ctx.semantics.call(ctx, missing, Arguments([index], {}, True, node))
            default = ctx.store.read(value.address, "default_factory")
            if default is None:
                raise
            made = ctx.semantics.call(ctx, default, Arguments([], {}, True, node))
            assign_item(ctx, value, index, made, node)
            return made
    if isinstance(content, (Tuple, Many)):
        found = _of_sequence(content, index)
        if _is_slice(index):
            return ctx.allocate(node, kind, found)
        return found
    known = MODELS.get(f"{kind}.__getitem__") if isinstance(kind, str) and not _is_slice(index) else None
    return TOP if known is None else known(ctx, Arguments([value, index], {}, True, node))


def assign_item(ctx: Context, value: Value, index: Value, given: Value, node: ast.AST) -> None:
    """`value[index] = given`; ABSENT: `del value[index]`."""
    index = enumerations.plain(ctx, index)
    ones = choices(value)
    for one in ones:
        if isinstance(one, Ref):
            _assign_item(ctx, one, index, given, node, certain=len(ones) == 1)
        elif isinstance(one, Tensor):
            written = plain_tensors.plain(ctx, given)
            if ctx.recorder is not None and given is not ABSENT:
                ctx.site = node
                place = _as_index(ctx, plain_tensors.plain(ctx, index))
                error = indexing.refused_write(one, place, written)
                operands = [one, place, written]
                result = None if error else one
                ctx.recorder.operation("torch.Tensor.__setitem__", operands, {}, result, error, ctx)
            mutation.elements_became(ctx, one, elements(written))
        elif isinstance(one, Unknown):
            ctx.modules.escape(ctx, [given])
        elif isinstance(one, Bound) and is_view(one):
            content = content_of_view(ctx, one)
            if given is ABSENT:
                content = Mapping(tuple(pair for pair in content.items if pair[0] != index), content.rest)
            else:
                content = with_item(content, index, given)
            set_content(ctx, one, content)


def _as_index(ctx: Context, index: Value) -> Value:
    """An index as torch takes it, lists in it by what they hold."""
    if isinstance(index, Tuple):
        return Tuple(tuple(_as_index(ctx, item) for item in index.items))
    if not isinstance(index, Ref) or index.address.kind != "builtins.list":
        return index
    content = ctx.store.read(index.address, CONTENT)
    held = (content.item,) if isinstance(content, Many) else content.items if isinstance(content, Tuple) else ()
    return Many(join_all(held) or TOP)


def _assign_item(ctx: Context, owner: Ref, index: Value, given: Value, node: ast.AST, certain: bool) -> None:
    kind = owner.address.kind
    if isinstance(kind, ProjectClass):
        name = "__delitem__" if given is ABSENT else "__setitem__"
        method = ctx.semantics.attribute(ctx, owner, name, node)
        if isinstance(method, (Function, Bound)):
            args = [index] if given is ABSENT else [index, given]
            ctx.semantics.call(ctx, method, Arguments(args, {}, True, node))
            return
    content = ctx.store.read(owner.address, CONTENT)
    made: Value | None = None
    if isinstance(content, Mapping):
        if given is ABSENT:
            made = Mapping(tuple((key, one) for key, one in content.items if key != index), content.rest)
            if content.get(index) is None:
                made = Mapping(tuple((key, join(one, ABSENT)) for key, one in content.items), content.rest)
        else:
            made = with_item(content, index, given)
    elif isinstance(content, Tuple):
        if given is ABSENT:
            made = Many(join_all(content.items) or TOP)
        elif _is_place(index, len(content.items)):
            assert isinstance(index, Const)
            held = list(content.items)
            held[index.value] = given
            made = Tuple(tuple(held))
        else:
            added = ctx.semantics.items(ctx, given, node) if _is_slice(index) else given
            inner = added.item if isinstance(added, Many) else added
            if _is_slice(index) and isinstance(added, Tuple):
                inner = join_all(added.items) or TOP
            made = Many(join_all([*content.items, inner]) or TOP)
    elif isinstance(content, Many) and given is not ABSENT:
        added = ctx.semantics.items(ctx, given, node) if _is_slice(index) else given
        inner = (
            added.item
            if isinstance(added, Many)
            else (join_all(added.items) or TOP)
            if _is_slice(index) and isinstance(added, Tuple)
            else added
        )
        made = Many(join(content.item, inner))
    if made is None:
        return
    if certain:
        ctx.store.write(owner.address, CONTENT, made)
    else:
        ctx.store.blend(owner.address, CONTENT, made)
    instance_dicts.stored(ctx, owner)


def items(ctx: Context, value: Value, node: ast.AST) -> Value:
    """What iterating over a value gives: a `Tuple` of items that are known one by one, or `Many`."""
    ones = choices(plain_tensors.plain(ctx, value))
    # None has no items: where it is one of several, it is not the one that is iterated over
    found = [_items(ctx, one, node) for one in ones if len(ones) == 1 or one != NONE]
    return join_all(found) or Many(TOP)


_LONGEST_TEXT = 32
"""Characters of a text that is iterated over one by one."""


def _items(ctx: Context, value: Value, node: ast.AST) -> Value:
    if isinstance(value, (Tuple, Many)):
        return value
    if isinstance(value, Generator):
        return ctx.modules.generated(ctx, value, node)
    if isinstance(value, Mapping):
        return _keys(value)
    if isinstance(value, Bound) and is_view(value):
        return _keys(content_of_view(ctx, value))
    if isinstance(value, Tensor):
        return Many(indexing.of_tensor(ctx, value, Number(indexing.INTEGER)))
    if isinstance(value, Array):
        return Many(Array(value.dtypes, None))
    if isinstance(value, Const) and isinstance(value.value, str):
        short = len(value.value) <= _LONGEST_TEXT
        return Tuple(tuple(map(Const, value.value))) if short else Many(NO_TENSOR)
    if isinstance(value, Ref):
        content = ctx.store.read(value.address, CONTENT)
        if isinstance(content, Tuple) and len(content.items) > 1 and value.address.kind == "builtins.set":
            return Many(join_all(content.items) or TOP)  # in no order
        if isinstance(content, (Tuple, Many)):
            return content
        if isinstance(content, Mapping):
            return _keys(content)
        return ctx.modules.iterated(ctx, value, node)
    if isinstance(value, ProjectClass) and enumerations.is_enumeration(value):
        return Tuple(tuple(enumerations.members(ctx, value)))
    return Many(TOP)


def _keys(content: Mapping) -> Value:
    certain = content.rest is None and not any(may_be_absent(one) for _, one in content.items)
    if certain:
        return Tuple(tuple(key for key, _ in content.items))
    return Many(Unknown(frozenset()) if all(isinstance(key, Const) for key, _ in content.items) else TOP)


def truth(ctx: Context, value: Value) -> bool | None:
    """Is a value true? None where it can be either."""
    answers = {_truth(ctx, one) for one in choices(value)}
    return answers.pop() if len(answers) == 1 else None


def _truth_of_object(ctx: Context, value: Ref, cls: ProjectClass) -> bool | None:
    """By `__bool__` or `__len__`; without either it is true."""
    for name in ("__bool__", "__len__"):
        method = ctx.modules.class_attribute(ctx, cls.definition.order, name)
        if isinstance(method, Function):
            bound = Function(method.definition, method.frame, value)
            answer = ctx.semantics.call(ctx, bound, Arguments([], {}, True, method.definition.node))
            return _truth(ctx, answer) if isinstance(answer, (Const, Number)) else None
        if method is not None:
            return None
    plain = enumerations.plain(ctx, value)
    if plain is not value:
        return _truth(ctx, plain)
    return None if cls.definition.opaque else True


def _truth(ctx: Context, value: Value) -> bool | None:
    if isinstance(value, Const):
        return bool(value.value)
    if isinstance(value, Number):
        return True if not value.range.zero and not value.range.low <= 0 <= value.range.high else None
    if isinstance(value, Tuple):
        return bool(value.items)
    if isinstance(value, Ref):
        content = ctx.store.read(value.address, CONTENT)
        if isinstance(content, Tuple) and value.address.kind not in plain_tensors.WEIGHTS:
            return bool(content.items)
        if isinstance(content, Mapping):
            if any(not may_be_absent(one) for _, one in content.items):
                return True
            return False if not content.items and content.rest is None else None
        if content is None and isinstance(value.address.kind, ProjectClass):
            return _truth_of_object(ctx, value, value.address.kind)
        return None
    if is_view(value) or (isinstance(value, Bound) and isinstance(value.receiver, Unknown)):
        return None
    if isinstance(value, Bound):
        return True if value.name in MODELS else None
    if isinstance(value, (Function, Generator, ProjectClass, Namespace, Dtype, External)):
        return None if is_opaque(value) else True
    return None
