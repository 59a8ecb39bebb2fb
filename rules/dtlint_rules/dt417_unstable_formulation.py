"""DT417: a formula that overflows, or loses what it computes, where an equal one does not."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Edit, Fix
from dtlint.infer.names import path_of
from dtlint.infer.values import Module
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._assignments import assignments, source_above, source_of
from dtlint_rules._edges import behind, is_kept, is_mended, keeps
from dtlint_rules._fixes import bracketed, trust_in
from dtlint_rules._layers import LAYERS, layers_of
from dtlint_rules._names import last_name, names_in
from dtlint_rules._parts import below, given, keyword, receiver, same
from dtlint_rules._returned import returned_softmax
from dtlint_rules._subjects import ABSENT, operand
from dtlint_rules._texts import short
from dtlint_rules._within import within

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call, Flow, Operation
    from dtlint.source.place import Place

__all__ = ["UnstableFormulation"]


@dataclass(frozen=True, slots=True)
class _Better:
    """What to write instead of the logarithm of a function, and what goes wrong: by the function's name."""

    function: str
    happens: str


_LOGARITHMS = {
    "softmax": _Better(
        "torch.nn.functional.log_softmax",
        "a logit 104 below the greatest gives -inf in float32, 17 in float16",
    ),
    "sigmoid": _Better(
        "torch.nn.functional.logsigmoid",
        "it is -inf below -104 in float32, -17 in float16",
    ),
    "sum": _Better("torch.logsumexp", "`exp` overflows above 88.7 in float32, 11.1 in float16"),
    "softplus": _Better(
        "torch.nn.functional.softplus",
        "`exp` overflows above 88.7 in float32, 11.1 in float16",
    ),
}
_FUNCTIONS = {
    **dict.fromkeys(("torch.softmax", "torch.nn.functional.softmax", "torch.special.softmax"), "softmax"),
    **dict.fromkeys(("torch.sigmoid", "torch.nn.functional.sigmoid", "torch.special.expit"), "sigmoid"),
    "torch.exp": "exp",
}
_LAYERS = {"torch.nn.Softmax": "softmax", "torch.nn.Sigmoid": "sigmoid"}


class UnstableFormulation(Rule):
    """A formula that overflows where an equal one does not.

    ## What it does
    Reports the logarithm of a softmax, of a sigmoid, of 1 less one of these, of a sum of exponentials and of `1 +
    exp(x)`, at once or by the name the inner value was given, and of a softmax that a function of the file returns; a
    softmax by hand, `x.exp() / x.exp().sum()`, without the maximum subtracted, and an average by such weights,
    `k = self.key(x).exp()` and `(k * v).sum(1) / k.sum(1)`, of what a linear layer of the module gives; samples of
    `torch.multinomial(x.exp(), 1)`, where `x` is neither a logarithm nor clamped; and `x.exp() - 1 - x`, the estimate of
    a divergence of policies, without a clamp. One to which an epsilon is added before the logarithm is left alone, as
    is 1 less a sigmoid or softmax of what is clamped.

    Conditional, and so reported with `--preview` only: scores and log ratios that only their names tell of.

    ## Why it matters
    A softmax underflows to 0 where a logit lies 104 below the greatest in float32, and 17 in float16; the logarithm is
    -inf then and its gradient NaN; and a sigmoid of 17 is 1 in float32, so that `log(1 - p)` is -inf. `exp` overflows
    above 88.7 in float32 and above 11.1 in float16. `log_softmax`, `logsigmoid`, `logsumexp` and `softplus` compute the
    same without leaving the range, and faster. `torch.multinomial` raises where a probability is inf.
    `x.exp() - 1 - x` is inf for one token far off, and rounding for the many at which the policies nearly agree: at
    1e-4 float32 gives 1.7e-8 for 5e-9.

    ## Example
    ```python
    import torch

    def log_probabilities(logits: torch.Tensor) -> torch.Tensor:
        return torch.log(torch.softmax(logits, dim=-1))
    ```

    ## Use instead
    ```python
    import torch

    def log_probabilities(logits: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.log_softmax(logits, dim=-1)
    ```

    ## Fix safety
    The fix replaces the two functions where they stand together; they are equal but for rounding, where the first does
    not overflow. Methods of what is not known to be a tensor are replaced as an unsafe fix.

    ## References
    - [torch.nn.functional.log_softmax](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.log_softmax.html)
    - [torch.logsumexp](https://docs.pytorch.org/docs/stable/generated/torch.logsumexp.html)
    """

    code, name = "DT417", "unstable-formulation"
    fix = Applicability.SAFE
    triggers = (".log", ".log1p", ".sum", ".exp", ".multinomial")
    needs = (("softmax", "sigmoid", "exp", "expit", "Softmax", "Sigmoid"),)

    calls = frozenset(
        {
            *("__call__", "log", "log1p", "softmax", "sigmoid", "exp", "exp_", "multinomial"),
            *(name.rpartition(".")[2] for name in _FUNCTIONS),
        }
    )
    operators = frozenset({ast.Div})

    def __init__(self) -> None:
        self.kinds: dict[ast.expr, str] = {}
        """What calls compute: softmax, sigmoid or exp."""
        self.functions: set[ast.expr] = set()
        self.layers: set[ast.expr] = set()
        """Which of them call functions of torch, and which call layers."""

    def on_call(self, call: Call) -> Iterable[Finding]:
        name = last_name(call.node)
        if name in ("log", "log1p"):
            return self._logarithm(call, name)
        if name == "multinomial":
            return self._sampled(call)
        kind = _FUNCTIONS.get(call.target)
        if kind is not None:
            self.functions.add(call.node)
        if kind is None and call.target == "torch.nn.Module.__call__" and isinstance(call.receiver, Module):
            kind = _LAYERS.get(call.receiver.name)
            self.layers.add(call.node)
        if (
            kind is None
            and name in ("softmax", "sigmoid", "exp")
            and not call.target
            and isinstance(call.node.func, ast.Attribute)
        ):
            kind = (
                name
                if path_of(call.node.func.value) not in ("np", "numpy", "math", "jnp", "tf", "scipy.special")
                else None
            )
        if kind is None and call.target in ("torch.Tensor.softmax", "torch.Tensor.sigmoid", "torch.Tensor.exp"):
            kind = name
        if kind is not None:
            self.kinds[call.node] = kind
        return self._estimated(call) if kind == "exp" else ()

    def on_operation(self, operation: Operation) -> Iterable[Finding]:
        node = operation.node
        if not self.kinds or not isinstance(operation.operator, ast.Div) or not isinstance(node, ast.BinOp):
            return ()
        return self._divided(operation, node)

    def _divided(self, operation: Operation, node: ast.BinOp) -> Iterator[Finding]:
        """`e / e.sum(-1)`, where `e` is an exponential."""
        yield from self._weighted(operation, node)
        top = source_of(node.left, operation.flow) or node.left
        given = self._exponent(top)
        below = source_of(node.right, operation.flow) or node.right
        summed = _summed(below)
        if given is None or summed is None or not (same(summed, node.left) or same(summed, top)):
            return
        if _is_bounded(source_of(given, operation.flow) or given) or _is_lowered(given, operation.flow):
            return
        yield Finding(
            node,
            "A softmax by hand: `exp` overflows above 88.7 in float32, 11.1 in float16, and inf / inf is NaN",
            help="Use `torch.softmax`, which subtracts the maximum first",
        )

    def _weighted(self, operation: Operation, node: ast.BinOp) -> Iterator[Finding]:
        """`(e * v).sum(1) / e.sum(1)`, where `e` is an exponential: an average by its weights."""
        flow = operation.flow
        summed = _summed(source_of(node.right, flow) or node.right, running=True)
        weights = source_of(summed, flow) if isinstance(summed, ast.Name) else None
        given = None if weights is None else self._exponent(weights)
        if given is None or summed is None or not _is_output(given, flow):
            return
        top = node.left
        if same(summed, top) or not isinstance(summed, ast.Name) or not _is_made_of(summed.id, top, flow):
            return
        if any(keeps(part) for part in behind(given, flow, above=True)) or _is_lowered(given, flow):
            return
        yield Finding(
            weights if weights is not None else node,
            "`exp` overflows above 88.7 in float32, 11.1 in float16: the weighted mean is inf / inf, NaN",
            help="Subtract the maximum first, as `torch.softmax` does",
            notes=((node, "divided by the sum here"),),
        )

    def _sampled(self, call: Call) -> Iterator[Finding]:
        """`torch.multinomial(torch.exp(eta * z), n)`."""
        flow = call.flow
        weights, _ = operand(call) or ABSENT
        if weights is None:
            return
        made = _unchained(source_of(weights, flow) or weights)
        given = self._exponent(made)
        if given is None or not _is_scaled(given, flow):
            return
        yield Finding(
            made,
            "`exp` overflows above 88.7 in float32, 11.1 in float16: `multinomial` raises for inf",
            help="Use `torch.softmax` instead of `exp`: the samples are the same",
            notes=() if made.lineno == call.node.lineno else ((call.node, "sampled here"),),
            conditional=not isinstance(source_of(given, flow) or given, ast.BinOp),
        )

    def _estimated(self, call: Call) -> Iterator[Finding]:
        """`log_ratio.exp() - 1 - log_ratio`, in any order."""
        flow = call.flow
        given = call.node.args[0] if call.node.args else receiver(call.node)
        if given is None:
            return
        whole: ast.expr = call.node
        for part in within(call.node, flow):
            if isinstance(part, ast.BinOp) and isinstance(part.op, (ast.Add, ast.Sub)):
                whole = part
            elif isinstance(part, ast.Attribute) and part.attr in ("item", "detach", "cpu", "numpy", "clamp"):
                return
            elif part is not whole and isinstance(part, ast.BinOp):
                break
        terms = _terms(whole, given)
        if len(terms) != 3 or not any(
            sign < 0 and isinstance(term, ast.Constant) and term.value == 1 for sign, term in terms
        ):
            return
        if not any(sign < 0 and same(term, given) for sign, term in terms):
            return
        if not _is_of_policies(given, flow) or _is_kept_small(given, flow):
            return
        yield Finding(
            whole,
            f"`{short(whole)}` overflows above 88.7 in float32, 11.1 in float16, and loses its digits near 0",
            help=f"Use `torch.expm1(x) - x`, which keeps the digits of a small `{short(given)}`",
            conditional=True,
        )

    def _logarithm(self, call: Call, name: str) -> Iterator[Finding]:
        function = call.target in ("torch.log", "torch.log1p")
        if function:
            inner = call.argument_node(0, "input")
        else:
            inner = None if call.node.args else receiver(call.node)
        if inner is None or not call.complete:
            return
        made = source_of(inner, call.flow) or inner
        if (rest := _rest(made, name)) is not None:
            yield from self._remaining(call, rest)
            return
        kind = self._kind(made, name, call.flow)
        better = _LOGARITHMS.get(kind or "")
        if kind is None and name == "log":
            yield from self._returned(call, inner)
        if better is None or kind is None or (kind == "softplus" and (_is_one_branch(call) or _is_replaced(call.flow))):
            return
        last = better.function.rpartition(".")[2]
        way = self._way(made) if made is inner else None
        subject = call.argument(0, "input") if function else call.receiver
        trust = Applicability.SAFE if way == "function" else trust_in(subject)
        yield Finding(
            call.node,
            f"The logarithm of {_CALLED[kind]} in two steps: {better.happens}",
            help=f"Use `{better.function.replace('torch.nn.functional', 'F')}`",
            notes=() if made is inner else ((made, "computed here"),),
            fix=None
            if way is None or not isinstance(made, ast.Call)
            else partial(_fix, made, better.function, last, way == "method", trust),
        )

    def _returned(self, call: Call, inner: ast.expr) -> Iterator[Finding]:
        """`_, p = net.act(x)`, and behind it `p.log()`."""
        softmax = returned_softmax(inner, call.flow)
        if softmax is not None and not is_kept(inner, call.flow) and not is_mended(call.flow.scope):
            yield Finding(
                call.node,
                f"The logarithm of a softmax in two steps: {_LOGARITHMS['softmax'].happens}",
                help="Return the logits, and use `F.log_softmax`",
                notes=((softmax, "computed and returned here"),),
            )

    def _remaining(self, call: Call, rest: ast.expr) -> Iterator[Finding]:
        """`torch.log(1 - torch.sigmoid(x))`."""
        made = source_of(rest, call.flow) or rest
        kind = self.kinds.get(made)
        if kind not in ("sigmoid", "softmax") or not isinstance(made, ast.Call):
            return
        if any(_is_kept_small(given, call.flow) for given in (*made.args[:1], *filter(None, [receiver(made)]))):
            return
        yield Finding(
            call.node,
            f"The logarithm is -inf where {_CALLED[kind]} rounds to 1, {_ROUNDED[kind]}",
            help="Use `F.logsigmoid(-x)`"
            if kind == "sigmoid"
            else "Clamp it first: `torch.log1p(-p.clamp(max=1 - 1e-6))`",
            notes=() if made is rest else ((made, "computed here"),),
        )

    def _way(self, made: ast.expr) -> str | None:
        """Is a softmax or sigmoid a function or a method? None where it is neither: a layer has its arguments elsewhere."""
        if self.kinds.get(made) not in ("softmax", "sigmoid") or made in self.layers or not isinstance(made, ast.Call):
            return None
        if made in self.functions or path_of(receiver(made) or made) in _PACKAGES:
            return "function"
        # A method is given no tensor: `jax.nn.sigmoid(x)` is none.
        taken = len(given(made)) == 0 or self.kinds[made] == "softmax"
        return "method" if taken and isinstance(made.func, ast.Attribute) else None

    def _kind(self, made: ast.expr, name: str, flow: Flow) -> str | None:
        if name == "log1p":
            return (
                "softplus" if self._exponent(made) is not None and not _is_clamped(self._exponent(made), flow) else None
            )
        kind = self.kinds.get(made)
        if kind in ("softmax", "sigmoid"):
            return kind
        summed = _summed(made)
        if summed is not None:
            given = self._exponent(source_of(summed, flow) or summed)
            return "sum" if given is not None and not _is_bounded(source_of(given, flow) or given) else None
        if isinstance(made, ast.BinOp) and isinstance(made.op, ast.Add):
            for one, other in ((made.left, made.right), (made.right, made.left)):
                given = self._exponent(other)
                if (
                    isinstance(one, ast.Constant)
                    and one.value == 1
                    and given is not None
                    and not _is_clamped(given, flow)
                ):
                    return "softplus"
        return None

    def _exponent(self, node: ast.expr) -> ast.expr | None:
        """What an exponential is taken of."""
        if not isinstance(node, ast.Call) or self.kinds.get(node) != "exp":
            return None
        return node.args[0] if node.args else receiver(node)


_ENDING = ("view", "reshape", "squeeze", "unsqueeze", "flatten", "cpu", "float", "to", "detach", "contiguous")
_LOGARITHM = re.compile(r"log(?!it)|(?:^|_)lps?(?:_|$)|prob|energ|nll|norm|output|neg|max")
"""Names of logarithms of probabilities, whose exponentials are 1 at most, and of what may be one."""
_SMALL_ENOUGH = re.compile(r"^(?:clamp\w*|clip\w*|min|max|minimum|maximum|where|tanh|sigmoid|softmax|nan_to_num)$")
_MOST_NAMES = 6


def _is_made_of(name: str, node: ast.expr, flow: Flow) -> bool:
    """Does an expression, or what a name in it was assigned, speak of a name?"""
    waiting, asked = [node], set[str]()
    while waiting:
        for word in set(names_in(waiting.pop())) - asked:
            if word == name:
                return True
            asked.add(word)
            waiting += [value for _, value in assignments(flow.scope).get(word, ()) if value is not None]
    return False


def _is_output(given: ast.expr, flow: Flow) -> bool:
    """Is it what a layer that the module makes itself gives, which nothing keeps small: `k = self.key(x)`?"""
    owner = flow.function.owner if flow.function is not None else None
    made = source_above(given, given.lineno, flow) or given
    if owner is None or not isinstance(made, ast.Call) or len(made.args) != 1:
        return False
    return path_of(made.func) in layers_of(owner.node, LAYERS)


def _unchained(node: ast.expr) -> ast.expr:
    """The exponential, of `x.exp().view(-1).cpu()`."""
    return below(node, _ENDING)


def _is_scaled(given: ast.expr, flow: Flow) -> bool:
    """Is an exponent a product, `eta * z` or `logits / temperature`, and no logarithm of a probability?"""
    made = source_of(given, flow) or given
    product = isinstance(made, ast.BinOp) and isinstance(made.op, (ast.Mult, ast.Div))
    if not product and re.search(r"logits?(?:_|$)|scores?(?:_|$)", last_name(given).lower()) is None:
        return False
    return not _is_kept_small(given, flow, "log") and not any(
        isinstance(part, ast.UnaryOp)
        or (isinstance(part, (ast.Name, ast.Attribute)) and _LOGARITHM.search(last_name(part)))
        for part in nodes([made])
    )


_POLICIES = re.compile(r"log_?(?:p|ratio|prob|diff)|(?:^|_)(?:ratio|lps?|ref|kl|policy)(?:_|$)")
"""Names of log probabilities of two policies, and of their difference."""


def _is_of_policies(given: ast.expr, flow: Flow) -> bool:
    """Is it the difference of log probabilities, and no step of a solver?"""
    made = source_of(given, flow)
    words = (*names_in(given), *(names_in(made) if made is not None else ()))
    return any(_POLICIES.search(word.lower()) is not None for word in words)


def _is_kept_small(given: ast.expr, flow: Flow, besides: str | None = None) -> bool:
    """Has an exponent been clamped, or its maximum subtracted, here or where the names in it were assigned? Or is it
    made by a function whose name begins with `besides`, if that is given?"""
    waiting, asked = [given], set[str]()
    while waiting:
        for part in nodes([waiting.pop()]):
            if isinstance(part, ast.Call):
                name = last_name(part)
                if (besides is not None and name.startswith(besides)) or _SMALL_ENOUGH.search(name) is not None:
                    return True
            if isinstance(part, ast.Name) and part.id not in asked and len(asked) < _MOST_NAMES:
                asked.add(part.id)
                if (source := source_of(part, flow)) is not None:
                    waiting.append(source)
    return False


def _terms(node: ast.expr, whole: ast.expr, sign: int = 1) -> list[tuple[int, ast.expr]]:
    """What a sum is made of, with the sign of each; `whole` is not taken apart."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)) and not same(node, whole):
        turned = -sign if isinstance(node.op, ast.Sub) else sign
        return [*_terms(node.left, whole, sign), *_terms(node.right, whole, turned)]
    return [(sign, node)]


def _is_one_branch(call: Call) -> bool:
    """Is it chosen for small values alone: `torch.where(x > 20, x, torch.log(1 + torch.exp(x)))`?"""
    return any(isinstance(part, ast.Call) and last_name(part) == "where" for part in within(call.node, call.flow))


_ROUNDED = {
    "sigmoid": "above 17 in float32, 8.4 in float16",
    "softmax": "for a logit 17 above the others in float32, 8.4 in float16",
}


def _rest(made: ast.expr, name: str) -> ast.expr | None:
    """`p`, of the logarithm of `1 - p`, and of `log1p(-p)`."""
    if name == "log1p":
        return made.operand if isinstance(made, ast.UnaryOp) and isinstance(made.op, ast.USub) else None
    if not isinstance(made, ast.BinOp) or not isinstance(made.op, ast.Sub) or not isinstance(made.left, ast.Constant):
        return None
    return made.right if made.left.value == 1 else None


_CALLED = {"softmax": "a softmax", "sigmoid": "a sigmoid", "sum": "a sum of exponentials", "softplus": "1 + exp(x)"}


def _summed(node: ast.expr, *, running: bool = False) -> ast.expr | None:
    """What is summed: `x` of `x.sum(-1)` and `torch.sum(x, dim=1)`, and of `x.cumsum(1)`, if running sums count."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    if last_name(node) != "sum" and not (running and last_name(node) == "cumsum"):
        return None
    base = path_of(node.func.value)
    if base in ("torch", "th"):
        return node.args[0] if node.args else None
    return None if base in ("np", "numpy", "tf", "jnp") else node.func.value


def _is_bounded(node: ast.expr | None) -> bool:
    """Is the exponent kept from large values: has the maximum been subtracted, or does it have a sign?"""
    return node is None or any(
        isinstance(part, (ast.UnaryOp, ast.Sub))
        or (isinstance(part, ast.BinOp) and isinstance(part.op, ast.Sub))
        or (
            isinstance(part, ast.Call)
            and last_name(part).startswith(("clamp", "neg", "log", "cos", "sin", "tanh", "norm", "dist", "cdist"))
        )
        for part in nodes([node])
    )


def _is_lowered(given: ast.expr, flow: Flow) -> bool:
    """Is something subtracted from a name above the exponential of it: `x = x - x.amax(-1)`, then `x = x.exp()`?"""
    if not isinstance(given, ast.Name):
        return False
    return any(
        line < given.lineno and isinstance(value, ast.BinOp) and isinstance(value.op, ast.Sub)
        for line, value in assignments(flow.scope).get(given.id, ())
    )


_IS_MAXIMUM = re.compile(r"(?:^|_)(?:max|amax|maximum|greatest|largest)(?:_|val|$)", re.IGNORECASE)


def _is_clamped(node: ast.expr | None, flow: Flow) -> bool:
    """Is the exponent kept from large values: `-x.abs()`, `x.clamp(max=20)`, `x - x.max()`, `x - maxval`; or, under a sign,
    what its name stands for?"""
    if node is None:
        return True
    if isinstance(node, ast.UnaryOp) and last_name(source_of(node.operand, flow) or node) in _ABSOLUTE:
        return True
    return any(
        (isinstance(part, ast.Call) and last_name(part).startswith(("clamp", "abs", "min", "max", "log", "tanh")))
        or (isinstance(part, ast.BinOp) and isinstance(part.op, ast.Sub) and _IS_MAXIMUM.search(last_name(part.right)))
        for part in nodes([node])
    )


_ABSOLUTE = frozenset({"abs", "absolute"})


def _is_replaced(flow: Flow) -> bool:
    """Is the result by its name compared with infinity, or asked for it: `torch.where(y == float("inf"), x, y)`?"""
    targets = flow.statement.targets if isinstance(flow.statement, ast.Assign) else []
    paths = {path_of(target) for target in targets} - {None}
    for part in nodes([flow.scope]) if paths else ():
        if isinstance(part, ast.Call):
            if last_name(part) in _ASKING and not paths.isdisjoint(map(path_of, [*part.args, receiver(part) or part])):
                return True
        elif (
            isinstance(part, ast.Compare) and path_of(part.left) in paths and "inf" in ast.unparse(part.comparators[0])
        ):
            return True
    return False


_ASKING = frozenset({"isinf", "isfinite", "nan_to_num", "isposinf"})


def _fix(inner: ast.Call, function: str, last: str, is_method: bool, trust: Applicability, place: Place) -> Fix | None:
    """One call in place of two: the inner one, by its new name, with its arguments."""
    whole = place.abstract
    if not isinstance(whole, ast.Call) or len(given(whole)) > 1:  # `torch.log(torch.softmax(x, -1), out=y)`
        return None
    text, called = place.text(inner), place.text(inner.func)
    if not text.startswith(called):
        return None
    kept, imports = text, tuple[Edit, ...]()
    subject = receiver(inner)
    if not is_method:
        if len(inner.args) > 2 or keyword(inner, "out") is not None:  # which the other function takes elsewhere, or not
            return None
        name, imports = place.spelled(function)
        replaced = name + text[len(called) :]
    elif last == "logsigmoid" and subject is not None:
        kept = place.text(subject)
        name, imports = place.spelled(function)
        replaced = f"{name}({kept})"
    else:
        # The receiver as it is written: the parentheses around it are no part of its node.
        replaced = called[: -len(last_name(inner))] + last + text[len(called) :]
    if place.text(whole).count("#") != kept.count("#"):
        return None
    edit = place.replace(whole, bracketed(replaced))
    return Fix(f"Use `{last}`", (edit, *imports), trust)


_PACKAGES = frozenset({"torch", "th", "F", "nn.functional", "torch.nn.functional", "torch.special"})
