"""DT410: positions counted in a dtype that cannot count that far."""

from __future__ import annotations

import ast
import re
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix
from dtlint.dtypes.dtype import LOW_PRECISION
from dtlint.infer.names import path_of
from dtlint.infer.survey import facts
from dtlint.infer.values import Tensor
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._asserted import is_asserted_wide
from dtlint_rules._assignments import source_of
from dtlint_rules._calls import calls_of
from dtlint_rules._counted import counted_in_half
from dtlint_rules._effects import FLOAT32
from dtlint_rules._fixes import respell
from dtlint_rules._functions import body_of, defaults, parameters
from dtlint_rules._half import half_at
from dtlint_rules._names import last_name, names_in
from dtlint_rules._needs import TORCH, attributes
from dtlint_rules._numbers import number_at
from dtlint_rules._parts import keyword, receiver, root_of
from dtlint_rules._sinks import RAISING
from dtlint_rules._subjects import ABSENT, operand
from dtlint_rules._tensors import looks_like_tensor
from dtlint_rules._texts import short
from dtlint_rules._within import parents_at, within

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dtlint.infer.events import Call, Flow
    from dtlint.infer.facts import ModuleFacts
    from dtlint.infer.values import Value
    from dtlint.source.place import Place

__all__ = ["LowPrecisionPositions"]

_EXACT = 256
"""bfloat16 has every whole number up to here, float16 those up to 2048."""
_POSITIONS = re.compile(
    r"(?:^|_)(?:sin|cos|sincos\w*|sinusoid\w*|freqs?|inv_freqs?|rope|rotary|pos|positions?|pos_?emb\w*|bands?|theta|"
    r"alibi|fourier\w*|timesteps?)(?:\d*d?)(?:_|$)"
)
"""Words of code that computes an encoding of positions."""
_WHOLE = re.compile(
    r"(?:^|_)(?:ids?|idx|index|indices|labels?|lengths?|lens?|ptr|batch|edges?|tokens?|targets?|perm|counts?)(?:_|$)"
)
"""Names of what holds whole numbers: its dtype counts as far as one likes."""
_IS_ARRAY = re.compile(r"^(?:np|numpy|torch)$|_np$|^np_|_numpy$")
_KEPT_APART = frozenset({"freqs_dtype", "pos_dtype", "position_dtype", "rope_dtype", "embed_dtype"})
"""A dtype that is asked for positions alone is float32 by default."""
_CHANNELS = re.compile(r"dims?(?:_|$)|channels?|bands?|(?:^|_)(?:half|feats?|features|heads?)(?:_|$)")
"""Names of counts of channels, which are small; what is made of them are frequencies."""
_PIXELS = re.compile(r"(?:^|_)(?:h|w|height|width|int)(?:_|$)")
_COUNTS_OF_FEW = re.compile(
    r"kernel|window|dim|channel|head|band|level|scale|ratio|factor|group|class|anchor|step|fps|rate|\bks?\b"
)
"""Names of sizes whose product need not be large, and of what is no size."""
_COMPUTING = frozenset({"sin", "cos", "exp", "pow", "outer", "einsum", "mul", "div", "matmul", "polar", "log", "ger"})
_CASTS = frozenset({"to", "type_as", "half", "bfloat16", "type"})
_INVERSE = re.compile(r"(?:^|_)(?:inv(?:erse)?_?freqs?|inv(?:erse)?_frequenc(?:y|ies)|freqs?_inv)(?:_|$)")
"""Names of inverse frequencies, which positions are multiplied with."""
_ANGLES = re.compile(
    r"(?:^|_)(?:freqs?(?:_cis)?|frequenc(?:y|ies)|sinusoids?|sinusoid_inp|rot(?:ary)?_?pos_?\w*|"
    r"(?:pos|rope|rotary)_?(?:emb\w*|enc\w*))(?:_|$)"
)
"""Names of what sines and cosines of an encoding are taken of."""
_COUNTED = re.compile(r"(?:^|_)(?:pos|positions?|timesteps?|seqlens?|grid)(?:_|$)")
_WAVES = frozenset({"sin", "cos"})
_HALVES = LOW_PRECISION | {"half"}


class LowPrecisionPositions(Rule):
    """Positions are counted in the dtype of the data, which may be half.

    ## What it does
    Reports `torch.arange` and `torch.linspace` in code that computes an encoding of positions, where they are made in,
    or at once cast to, a half dtype, the dtype of another tensor or a dtype that the caller hands in: `dtype=x.dtype`,
    `dtype=dtype`, `.type_as(x)`; a `torch.arange` that numbers the elements of a tensor so, up to a product of its
    sizes, `torch.arange(B * H * W, dtype=x.dtype)`; inverse frequencies that are cast so, `inv_freq.to(x.dtype)`; and
    what is named as frequencies, sinusoids or a rotary embedding and is cast so before its sine or cosine is taken,
    `freqs.to(x.dtype).cos()`. Left alone are counts of 256 and less that are written out, and of 64 and less by default,
    the dtypes of indices, dtypes that the program makes sure of, `assert dtype == torch.float32`, or that are float32 by
    default in a function whose calls in the file leave it at that, and frequencies beside random angles, from which a
    model learns its own.

    Conditional, and so reported with `--preview` only: dtypes that are not written out as half.

    ## Why it matters
    bfloat16 has every whole number up to 256 and float16 up to 2048; behind that, neighbours are the same number.
    `torch.arange(2048, dtype=torch.bfloat16)` holds 641 different values, so that the tokens of a long text share
    positions, and `torch.arange(100000, dtype=torch.float16)` holds 34,480 times inf. The frequencies of a rotary or
    sinusoidal encoding lose their digits in the same way, and so do angles: between 512 and 1024 those of bfloat16 lie
    4 radians apart. Nothing says so but the quality of what comes out.

    ## Example
    ```python
    import torch

    def rotary(x: torch.Tensor, inv_freq: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(x.shape[1], device=x.device, dtype=x.dtype)
        angles = torch.outer(positions, inv_freq)
        return angles.cos()
    ```

    ## Use instead
    ```python
    import torch

    def rotary(x: torch.Tensor, inv_freq: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(x.shape[1], device=x.device, dtype=torch.promote_types(x.dtype, torch.float32))
        angles = torch.outer(positions, inv_freq)
        return angles.cos()
    ```

    ## Fix safety
    The fix counts in float32, or in float64 where that is asked for. It is unsafe: what is computed from the positions
    becomes float32 too, and has to be cast to the dtype of the data at the end. There is no fix in functions that multiply
    matrices or call layers, which raise for float32 beside half weights.

    ## References
    - [torch.arange](https://docs.pytorch.org/docs/stable/generated/torch.arange.html)
    """

    code, name = "DT410", "low-precision-positions"
    fix = Applicability.UNSAFE
    triggers = (".arange", ".linspace", "*freq*", ".cos", "self.cos", ".sin", "self.sin")
    needs = (TORCH, ("dtype", *attributes(_CASTS, of_self=True)))
    calls = frozenset({"arange", "linspace", *_CASTS, *_WAVES})

    def __init__(self) -> None:
        self.narrowed: set[ast.Call] = set()
        """Casts of frequencies and angles that have been reported."""
        self.counting: dict[ast.AST, bool] = {}
        """By function, whether it calls `torch.arange`."""

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        return counted_in_half(facts)

    def on_call(self, call: Call) -> Iterable[Finding]:
        name = last_name(call.node)
        if name in _CASTS:
            return (*self._cast_by_name(call), *self._cast_frequencies(call))
        if name in _WAVES:
            return self._waved(call)
        return self._counted(call, name) if call.target.startswith("torch.") and name in ("arange", "linspace") else ()

    def _counted(self, call: Call, name: str) -> Iterator[Finding]:
        given = keyword(call.node, "dtype")
        cast = None if given is not None else _cast_at_once(call.node, parents_at(call.node, call.flow))
        chosen = given if given is not None else cast
        if chosen is None or _counts_far_enough(call.node) or not _may_be_half(chosen, call, given is not None):
            return
        if _are_few(call.node, call.flow) or _starts_random(call.node, call.flow) or _is_left_wide(chosen, call.flow):
            return
        labels = name == "arange" and _counts_elements(call.node)
        if not (labels or _encodes_positions(call, by_name_alone=name == "linspace")) or _is_exponent_of_two(call):
            return
        if _counts_pairs(call.node) and _is_widened_again(call.node, call.flow):
            return  # the even numbers up to 512, which bfloat16 has
        asked = path_of(chosen) is not None and not _is_half(chosen)
        if asked and (not _is_computed_with(call.flow.scope) or _is_of_pixels(call.node, chosen, call.flow.scope)):
            return  # a grid of pixels, in the dtype that somebody wants it in
        if half_at(call.flow, dtype=None) is None:
            return
        yield Finding(
            call.node,
            f"`{name}` counts in {_shown(chosen)}: {_lost(call.node)}",
            help=f"Count in float32 or int64, and cast {'at' if labels else 'the encoding at'} the end",
            conditional=not _is_half(chosen),
            fix=partial(_widened, given) if given is not None and not _multiplies(call.flow.scope) else None,
        )

    def _counts(self, scope: ast.AST) -> bool:
        known = self.counting.get(scope)
        if known is None:
            counts = "arange" in facts(scope).called and any(map(_is_whole_count, facts(scope).calls))
            known = self.counting[scope] = counts
        return known

    def _cast_by_name(self, call: Call) -> Iterator[Finding]:
        """`t = torch.arange(n)`, and behind it `t.to(x.dtype)`."""
        counted, flow = receiver(call.node), call.flow
        made = source_of(counted, flow) if isinstance(counted, ast.Name) and self._counts(flow.scope) else None
        if not isinstance(made, ast.Call) or not _is_whole_count(made) or _counts_far_enough(made):
            return
        if _are_few(made, flow):
            return
        chosen = _cast_dtype(call.node, call.method)
        if chosen is None or not _may_be_half(chosen, call, False) or not _encodes_positions(call, by_name_alone=False):
            return
        if half_at(call.flow, dtype=None) is None:
            return
        yield Finding(
            call.node,
            f"Positions are cast to {_shown(chosen)}: bfloat16 is exact to 256 only, float16 to 2048",
            help="Compute the encoding in float32, and cast it at the end",
            notes=((made, "counted here"),),
            conditional=not _is_half(chosen),
        )

    def _cast_frequencies(self, call: Call) -> Iterator[Finding]:
        """`self.inv_freq.to(x.dtype)`, in front of the product with positions."""
        table = receiver(call.node)
        if table is None or _INVERSE.search(last_name(subject := root_of(table)).lower()) is None:
            return
        chosen = _cast_dtype(call.node, call.method)
        if chosen is None or call.node in self.narrowed or not _may_be_half(chosen, call, False):
            return
        if _is_of_positions(chosen, call.flow) or _is_widened_again(call.node, call.flow) or _meets_few(call):
            return
        if half_at(call.flow, call.result, dtype=None) is None:
            return
        self.narrowed.add(call.node)
        yield Finding(
            call.node,
            f"`{short(subject)}` is cast to {_shown(chosen)}: in bfloat16 angles at position 1000 are off by 2 radians",
            help="Multiply positions and frequencies in float32, and cast the sine and cosine at the end",
            conditional=not _is_half(chosen),
        )

    def _waved(self, call: Call) -> Iterator[Finding]:
        """`freqs = freqs.to(x.dtype)`, and behind it `freqs.cos()`."""
        flow = call.flow
        angle, value = operand(call) or ABSENT
        if angle is None:
            return
        named = root_of(angle)
        cast = angle if _is_cast(angle) else source_of(named, flow)
        if not isinstance(cast, ast.Call) or cast in self.narrowed or not _is_cast(cast):
            return
        words = [last_name(root_of(cast)), last_name(named)]
        if not any(_ANGLES.search(word.lower()) is not None for word in words):
            return
        chosen = _cast_dtype(cast, last_name(cast)) or _tensor_given(cast, flow)
        if chosen is None or not _may_be_half(chosen, call, False) or _is_made_wide(value):
            return
        if half_at(flow, value, dtype=None) is None:
            return
        self.narrowed.add(cast)
        yield Finding(
            cast,
            f"Angles are cast to {_shown(chosen)} before their {_CALLED[last_name(call.node)]}: bfloat16 rounds 512 by 2 radians",
            help="Take the sine and cosine in float32, and cast them",
            notes=() if cast.lineno == call.node.lineno else ((call.node, "taken here"),),
            conditional=not _is_half(chosen),
        )


def _widened(given: ast.expr, place: Place) -> Fix:
    """The fix that counts in float32, or in float64 where that may be asked for."""
    if last_name(given) in _HALVES:
        return respell(place, given, "torch.float32", "Count in float32")
    promote, first = place.spelled("torch.promote_types")
    float32, second = place.spelled("torch.float32")
    edit = place.replace(given, f"{promote}({place.text(given)}, {float32})")
    return Fix("Count in float32", (edit, *dict.fromkeys((*first, *second))), Applicability.UNSAFE)


def _multiplies(scope: ast.AST) -> bool:
    """Does the function call a product or a layer, which raise for float32 positions beside half weights?"""
    return any(
        (isinstance(part, ast.BinOp) and isinstance(part.op, ast.MatMult))
        or (isinstance(part, ast.Call) and (last_name(part) in RAISING or _is_of_self(part.func)))
        for part in nodes([scope])
    )


def _is_of_self(function: ast.expr) -> bool:
    """`self.proj(...)`: a layer, or a method that may call one."""
    return isinstance(function, ast.Attribute) and path_of(function.value) == "self"


_CALLED = {"sin": "sine", "cos": "cosine"}


def _is_half(dtype: ast.expr) -> bool:
    """Is a half dtype written out: `torch.bfloat16`, `x.half`?"""
    return last_name(dtype) in _HALVES


def _is_cast(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CASTS


def _tensor_given(cast: ast.Call, flow: Flow) -> ast.expr | None:
    """`t` of `freqs.to(t)`, where that is a tensor whose dtype is taken, and no device."""
    given = cast.args[0] if last_name(cast) == "to" and len(cast.args) == 1 else None
    path = None if given is None else path_of(given)
    return given if path is not None and looks_like_tensor(path, flow.scope) else None


def _is_made_wide(value: Value) -> bool:
    """Is it known to be float32, as what is computed with a float32 factor is?"""
    dtypes = value.dtypes if isinstance(value, Tensor) else None
    return dtypes is not None and not dtypes & LOW_PRECISION


def _is_of_positions(chosen: ast.expr, flow: Flow) -> bool:
    """Is it the dtype of the positions, `t.dtype` behind `t = torch.arange(n)`, and not of the data?"""
    named = root_of(chosen)
    of = named.value if isinstance(named, ast.Attribute) and named.attr == "dtype" else named
    made = source_of(of, flow)
    counts = made is not None and any(isinstance(part, ast.Call) and _is_whole_count(part) for part in nodes([made]))
    return counts or _COUNTED.search(last_name(of).lower()) is not None


def _is_widened_again(node: ast.Call, flow: Flow) -> bool:
    """Is the cast value cast on to float32 at once?"""
    return any(isinstance(part, ast.Call) and last_name(part) in ("float", "double") for part in within(node, flow))


def _counts_pairs(count: ast.Call) -> bool:
    """`torch.arange(0, dim, 2)`, of channels."""
    if len(count.args) != 3 or not isinstance(count.args[2], ast.Constant) or count.args[2].value != 2:
        return False
    return any(_CHANNELS.search(name.lower()) is not None for name in names_in(count.args[1]))


def _lost(count: ast.Call) -> str:
    """What a count loses in half: beyond 256 its numbers, and the frequencies that are made of a count of channels."""
    if any(_CHANNELS.search(name.lower()) is not None for end in count.args for name in names_in(end)):
        return "in bfloat16 angles at position 1000 are off by 2 radians"
    return "bfloat16 is exact to 256 only, float16 to 2048"


def _is_of_pixels(count: ast.Call, chosen: ast.expr, scope: ast.AST) -> bool:
    """Is the height or width of a map of features counted, which is small, in a dtype that the caller chooses?"""
    handed = {parameter.arg for parameter in parameters(scope)}
    words = [name.lower() for end in count.args for name in names_in(end)]
    return isinstance(chosen, ast.Name) and chosen.id in handed and bool(words) and all(map(_PIXELS.search, words))


def _is_computed_with(scope: ast.AST) -> bool:
    """Does the function compute with numbers, and not only put them in order: a grid of pixels may be asked for in half?"""
    return any(
        (isinstance(part, ast.BinOp) and isinstance(part.op, (ast.Mult, ast.Div, ast.Pow, ast.MatMult)))
        or (isinstance(part, ast.Call) and last_name(part) in _COMPUTING)
        for part in nodes([scope])
    )


def _is_whole_count(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Call) and path_of(node.func) in ("torch.arange", "th.arange")


def _cast_dtype(call: ast.Call, method: str) -> ast.expr | None:
    """What names the dtype that a cast casts to."""
    if method in ("half", "bfloat16"):
        return None if call.args else call.func
    for given in (*call.args, *filter(None, [keyword(call, "dtype")])):
        path = path_of(given) or ""
        if method == "type_as" or path.endswith(("dtype", "dtype.value")) or path.rpartition(".")[2] in _HALVES:
            return given
    return None


def _cast_at_once(node: ast.Call, around: Mapping[ast.AST, ast.AST]) -> ast.expr | None:
    """The argument of a cast that the count is given at once: `torch.arange(n).type_as(x)`."""
    method = around.get(node)
    call = around.get(method) if isinstance(method, ast.Attribute) and method.attr in _CASTS else None
    if not isinstance(call, ast.Call) or not isinstance(method, ast.Attribute):
        return None
    return _cast_dtype(call, method.attr)


def _may_be_half(chosen: ast.expr, call: Call, as_argument: bool) -> bool:
    """Can the chosen dtype be half, and is it none of whole numbers?"""
    if as_argument:
        dtypes = call.result.dtypes if isinstance(call.result, Tensor) else None
        if dtypes is not None:
            return bool(dtypes & LOW_PRECISION)
    path = path_of(chosen)
    if path is None:
        return False
    if isinstance(chosen, ast.Attribute) and chosen.attr in _HALVES:
        return True
    named_dtype = path.rpartition(".")[2].endswith("dtype")
    if path in _KEPT_APART or (as_argument and not named_dtype):
        return False
    if named_dtype and is_asserted_wide(path, call.flow):
        return False
    of = path.rpartition(".")[0] if named_dtype else path
    return _WHOLE.search(of.rpartition(".")[2]) is None and not _IS_ARRAY.search(of)


def _counts_far_enough(made: ast.Call) -> bool:
    """Is the end written out, and small?"""
    ends = made.args[:2]
    numbers = [end.value for end in ends if isinstance(end, ast.Constant) and isinstance(end.value, (int, float))]
    return bool(ends) and len(numbers) == len(ends) and max(map(abs, numbers)) <= _EXACT


def _is_left_wide(chosen: ast.expr, flow: Flow) -> bool:
    """Is it a parameter that is float32 by default, and does the file call the function, and leave it at that?"""
    function = flow.function.node if flow.function is not None else None
    if not isinstance(chosen, ast.Name) or not isinstance(function, ast.FunctionDef):
        return False
    default = {parameter.arg: value for parameter, value in defaults(function.args)}.get(chosen.id)
    if default is None or path_of(default) not in FLOAT32:
        return False
    names = [parameter.arg for parameter in parameters(function)]
    position = names.index(chosen.id) - (names[0] == "self")
    calls = calls_of(function.name, flow.tree)
    return bool(calls) and not any(
        len(call.args) > position
        or any(isinstance(argument, ast.Starred) for argument in call.args)
        or any(part.arg in (chosen.id, None) for part in call.keywords)
        for call in calls
    )


_FEW = 64
"""A count that is no more by default is one of registers, waves or taps, and no length of a text."""
_VERY_FEW = 16
"""Up to here the angles of half frequencies are right to a hundredth or two."""
_TAPS = re.compile(r"(?:^|_)kernel(?:_|$)")


def _are_few(made: ast.Call, flow: Flow, most: int = _FEW) -> bool:
    """Are the numbers that a count ends at few by the default that they have, or the taps of a kernel? Not those of
    channels: frequencies are made of these."""
    ends = [*made.args[:2], *filter(None, (keyword(made, "start"), keyword(made, "end")))]
    names = [name.lower() for end in ends for name in names_in(end)]
    if not ends or any(map(_CHANNELS.search, names)):
        return False
    numbers = [number_at(end, flow) for end in ends]
    if all(number is not None and abs(number.value) <= most for number in numbers):
        return True
    return most == _FEW and any(map(_TAPS.search, names))


def _meets_few(call: Call) -> bool:
    """Are frequencies multiplied with a few positions, such as those of registers?"""
    product = next((part for part in within(call.node, call.flow) if isinstance(part, (ast.BinOp, ast.Call))), None)
    if product is None:
        return False
    factors = [product.left, product.right] if isinstance(product, ast.BinOp) else product.args
    for factor in factors:
        made = source_of(root_of(factor), call.flow) if factor is not call.node else None
        if isinstance(made, ast.Call) and _is_whole_count(made) and _are_few(made, call.flow, _VERY_FEW):
            return True
    return False


def _starts_random(made: ast.Call, flow: Flow) -> bool:
    """Are frequencies made beside random angles, to start from in training? These need no digits."""
    of_channels = any(_CHANNELS.search(name.lower()) is not None for end in made.args for name in names_in(end))
    return of_channels and not facts(flow.scope).called.isdisjoint(("rand", "randn", "uniform_", "normal_"))


def _encodes_positions(call: Call, by_name_alone: bool) -> bool:
    """Do the function, its class or what it computes with speak of positions and frequencies?"""
    function = call.flow.function
    names = [] if function is None else [function.name]
    if function is not None and function.owner is not None:
        names += re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", function.owner.node.name)
    if by_name_alone:
        return any(_POSITIONS.search(name.lower()) is not None for name in names)
    words = (word for part in body_of(call.flow.scope) for word in names_in(part))
    return any(_POSITIONS.search(name.lower()) is not None for name in (*names, *words))


def _counts_elements(made: ast.Call) -> bool:
    """Are the elements of a tensor numbered, `torch.arange(1, B * H * W + 1)`: as many as the product of its sizes?"""
    ends = made.args[:2]
    if not ends:
        return False
    end = ends[-1]
    if isinstance(end, ast.BinOp) and isinstance(end.op, (ast.Add, ast.Sub)) and isinstance(end.right, ast.Constant):
        end = end.left
    if isinstance(end, ast.Call):
        return last_name(end) == "numel"
    factors = 0
    while isinstance(end, ast.BinOp) and isinstance(end.op, ast.Mult):
        if isinstance(end.right, ast.Constant) or _COUNTS_OF_FEW.search(" ".join(names_in(end.right)).lower()):
            return False
        end, factors = end.left, factors + 1
    return (
        factors > 0 and not isinstance(end, ast.Constant) and not _COUNTS_OF_FEW.search(" ".join(names_in(end)).lower())
    )


def _is_exponent_of_two(call: Call) -> bool:
    """`2.0 ** torch.arange(n)`: small exponents, of which half has every one."""
    parent = parents_at(call.node, call.flow).get(call.node)
    if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Pow) and parent.right is call.node:
        return isinstance(parent.left, ast.Constant) and parent.left.value == 2
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name):
        name = parent.targets[0].id
        for part in nodes([call.flow.scope]):
            power = None
            if isinstance(part, ast.Call) and last_name(part) in ("pow", "exp2") and part.args:
                power = part.args[-1]
            elif isinstance(part, ast.BinOp) and isinstance(part.op, ast.Pow) and isinstance(part.left, ast.Constant):
                power = part.right
            if isinstance(power, ast.Name) and power.id == name:
                return True
    return False


def _shown(node: ast.expr) -> str:
    path = path_of(node) or "half"
    if path.endswith(("dtype", "dtype.value")):
        return f"`{path}`"
    return path.rpartition(".")[2] if path.rpartition(".")[2] in _HALVES else f"the dtype of `{path}`"
