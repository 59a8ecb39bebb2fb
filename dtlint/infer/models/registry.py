"""The registry of models: a function for each thing that is called and not read as source, by its qualified name.

A method's model is named after its class, `torch.Tensor.to`, and is given the receiver as its first argument. A function that
is read as source can have a model, too, under the name of the module that defines it, as `accelerate.accelerator.Accelerator.
prepare`: it wins over the source and over the function's decorators. That is for drivers, which call back.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from dtlint.infer.context import Arguments, Context
from dtlint.infer.domain.values import External, Value
from dtlint.infer.names import canonical as public_name

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ATTRIBUTES", "MODELS", "PLAIN_PARTS", "Model", "attribute", "canonical", "is_opaque", "model"]

Model = Callable[[Context, Arguments], Value]
"""What a call gives, and what it does to the state. Raises NeverReturns where the call certainly raises."""

MODELS: dict[str, Model] = {}
ATTRIBUTES: dict[str, Callable[[Context, Value], Value]] = {}
"""What an attribute of something that is not read as source is, by class and name: `torch.Tensor.dtype`."""
PLAIN_PARTS = frozenset({"torch.distributions"})
"""Packages of torch that are Python over its operators, and that others build on: their source is read where it is installed,
and the models stand for it elsewhere."""


def model(*names: str) -> Callable[[Model], Model]:
    """Register a function as the model of the things with these qualified names.

    Raises:
        ValueError: one of them has a model already.
    """

    def register(function: Model) -> Model:
        for name in names:
            if name in MODELS:
                raise ValueError(f"{name} has two models: {MODELS[name].__module__} and {function.__module__}")
            MODELS[name] = function
        return function

    return register


def is_opaque(value: Value) -> bool:
    """Is it something of a package that is not in view, nor in any model? It may be anything, as what a configuration holds."""
    return isinstance(value, External) and value.name.partition(".")[0] not in _known_packages()


@cache
def _known_packages() -> frozenset[str]:
    return frozenset(name.partition(".")[0] for name in MODELS) | sys.stdlib_module_names


def attribute(*names: str) -> Callable[[Callable[[Context, Value], Value]], Callable[[Context, Value], Value]]:
    """Register a function as the model of attributes with these qualified names: of the owner, the value."""

    def register(function: Callable[[Context, Value], Value]) -> Callable[[Context, Value], Value]:
        for name in names:
            ATTRIBUTES[name] = function
        return function

    return register


_ALIASES: Mapping[str, str] = {
    "torch.concat": "torch.cat",
    "torch.concatenate": "torch.cat",
    "torch.clip": "torch.clamp",
    "torch.slogdet": "torch.linalg.slogdet",
    "torch.Tensor.clip": "torch.Tensor.clamp",
    "torch.Tensor.clip_": "torch.Tensor.clamp_",
}
"""Second names of one thing, both public."""


def canonical(name: str) -> str:
    """The name under which torch documents something: `torch.nn.modules.linear.Linear` is `torch.nn.Linear`."""
    name = public_name(name)
    return _ALIASES.get(name, name)
