"""Functions outside the program: the few of Python's own that a program is built with, and torch's by its tables."""

from __future__ import annotations

import ast
from dataclasses import replace

from dtlint.infer.arrays import array_call
from dtlint.infer.calls import Arguments, external_result
from dtlint.infer.interproc.project import parsed
from dtlint.infer.numbers import LIMITS, NUMBER_FUNCTIONS, NUMBERS, Categories
from dtlint.infer.ops import is_op, op_result
from dtlint.infer.program.abroad import MODULE_CASTS
from dtlint.infer.program.certain import as_tensors, certain_result
from dtlint.infer.program.containers import GLOBALS
from dtlint.infer.program.defaults import DEFAULT_DTYPE
from dtlint.infer.program.fields import Field
from dtlint.infer.program.folding import folded_call, formatted
from dtlint.infer.program.held import tensors_in
from dtlint.infer.program.hooking import HOOKING_ALL
from dtlint.infer.program.iterables import TRUTH
from dtlint.infer.program.promises import Cache
from dtlint.infer.program.records import Records
from dtlint.infer.regions import is_untouched
from dtlint.infer.values import (
    NONE,
    UNKNOWN,
    Autocast,
    Class,
    Constant,
    Device,
    External,
    Function,
    GradScaler,
    Instance,
    Items,
    Module,
    NullContext,
    Optimizer,
    Partial,
    Super,
    Tensor,
    Trait,
    Value,
    join,
    options,
)

__all__ = ["Externals"]


class Externals(Records):
    """An interpreter that knows what calls of functions outside the program give, and which of them call back."""

    def external_call(self, name: str, arguments: Arguments) -> Value:
        """A function outside the program: the few that the program's own code is made of, and torch's."""
        for known in (self.of_objects, self.of_records, self.of_iterables, self.of_contexts, self.of_tensors):
            value = known(name, arguments)
            if value is not None:
                return value
        result = NUMBER_FUNCTIONS.get(name) or LIMITS.get(name) or external_result(name, arguments)
        if isinstance(result, Optimizer):
            self.optimized += [tensor for value in arguments.args[:1] for tensor in tensors_in(value)]
        if isinstance(result, Autocast):
            return self.new_region(name, result, arguments)
        if isinstance(result, Module):
            return self.new_layer(result, arguments)
        whole = arguments.complete or name == "torch.nn.functional.scaled_dot_product_attention"
        if name.startswith("torch.") and whole and not isinstance(result, _MADE):
            found = self.from_table(name, arguments, result)
            if found is not None:
                return found
        if name in _TRACING and len(arguments.args) >= 2 and isinstance(arguments.args[0], Module):
            return self.traced(name, arguments.args[0], arguments.args[1], arguments)
        calling = name in _CALLING or name.startswith(_CALLING_BACK)
        if calling or not name.startswith(("torch.", "builtins.", *_NEVER_CALLING)):
            for value in (*arguments.args, *arguments.keywords.values()):
                self.hand_over(value)
        return result

    def from_table(self, name: str, arguments: Arguments, result: Value) -> Value | None:
        """What the operator table says of a function of torch; None where it leaves `result` as it is."""
        region = self.flow.autocast
        args = as_tensors(name, arguments.args)
        op = name if is_op(name) else name.replace("torch.", "torch.Tensor.", 1)  # `torch.unique` is there as a method
        asked = op_result(op, args, arguments.keywords, self.default, region, arguments.node)
        if asked is not None and asked != UNKNOWN:
            known = result.zero_dim if isinstance(result, Tensor) else None
            return replace(asked, zero_dim=known) if isinstance(asked, Tensor) and known is not None else asked
        certain = certain_result(name, arguments)
        if certain is not None or is_untouched(name, region, arguments.args):
            return certain
        return Tensor(origin=arguments.node) if isinstance(result, Tensor) else UNKNOWN

    def of_objects(self, name: str, arguments: Arguments) -> Value | None:
        """Functions by which a program looks at its own objects, and makes them."""
        args, keywords = arguments.args, arguments.keywords
        if name == "builtins.super" and not args:
            function = self.flow.function
            me = self.first_parameter()
            return Super(me, function.owner) if function is not None and function.owner is not None else UNKNOWN
        if name == "builtins.type" and len(args) == 1 and isinstance(args[0], (Module, Instance)):
            return self.member(args[0], "__class__") if args[0].info is not None else UNKNOWN
        if name == "builtins.super" and len(args) == 2 and isinstance(args[0], Class):
            return Super(args[1], args[0].info)
        found = self.environment(name, arguments)
        if found is None and arguments.complete and not keywords:
            found = folded_call(name, args)
        if found is not None and found != UNKNOWN:
            return found
        if name == "functools.lru_cache" and not any(isinstance(value, Function) for value in args):
            return External(name)
        if name == "dataclasses.replace" and args and isinstance(args[0], (Module, Instance)):
            for maker in map(args[0].info.method, ("__init__", "__post_init__")) if args[0].info is not None else ():
                if maker is not None:  # it makes another, of values that are not followed
                    self.loosen(maker)
        if name == "dataclasses.fields" and len(args) == 1:
            return self.fields_of(args[0])
        if name == "dataclasses.field":
            return Field(keywords.get("default", UNKNOWN), keywords.get("default_factory"))
        if name == "functools.partial" and args:
            return Partial(args[0], tuple(args[1:]), dict(keywords))
        if name == "torch.utils.checkpoint.checkpoint" and args:
            return self.checkpointed(arguments)
        if name == "builtins.isinstance" and len(args) == 2:
            return self.is_instance(*args)
        if name in ("builtins.getattr", "builtins.hasattr") and len(args) >= 2:
            return self.asked_attribute(name, *args)
        if name == "builtins.setattr" and len(args) == 3:
            return self.set_by_name(*args)
        if name == "builtins.object.__setattr__" and len(args) == 3 and isinstance(args[0], Module):
            return self.set_beside(args[0], args[1], args[2])
        if name in _SETTERS and len(args) == 3:
            return self.set_attribute(*args)
        if name in ("copy.copy", "copy.deepcopy") and args:
            return self.copy(args[0], arguments, name == "copy.deepcopy")
        if name == "builtins.eval":
            self.lose_globals()
        if name == "builtins.exec":
            code = args[0].value if args and isinstance(args[0], Constant) else None
            self.names_lost(_bound_in(code) if isinstance(code, str) else None)
            return NONE
        return GLOBALS if name == "builtins.globals" else None

    def lose_globals(self) -> None:
        """Code that is not seen finds functions and classes by their names."""
        for value in list(self.globals.values()):
            if isinstance(value, (Function, Class)):
                self.lose(value)

    def set_beside(self, module: Module, name: Value, value: Value) -> Value:
        """`object.__setattr__(module, name, value)`: by it a module has a weight, or another module, that it does not own."""
        if not isinstance(name, Constant) or not any(isinstance(one, (Module, Tensor)) for one in options(value)):
            return self.set_attribute(module, name, value)
        self.stored_by_name(module, str(name.value))
        held = value
        if isinstance(value, Tensor) and value.traits & (Trait.PARAMETER | Trait.BUFFER):
            held = replace(value, dtypes=None, traits=Trait.NONE)
        self.objects.put(module.key, str(name.value), held, owned=False)
        self.lose(value)
        return NONE

    def of_contexts(self, name: str, arguments: Arguments) -> Value | None:
        """What decides how code runs: contexts, devices, the default dtype."""
        if name.startswith(DEFAULT_DTYPE) and name.endswith(("dtype", "type")):
            return self.of_default(name, arguments)
        asked = self.of_autocast(name, arguments)
        if asked is not None:
            return asked
        if name in ("functools.wraps", "contextlib.nullcontext"):
            return NullContext(name, arguments.get(0, "enter_result") if name == "contextlib.nullcontext" else None)
        if name.endswith(_SWITCHING_OFF) and arguments.keywords.get("enabled") == Constant(False):
            return Autocast(None, None, False, arguments.node)
        if name == "torch.device":
            given = arguments.args[0] if arguments.args else arguments.keywords.get("type")
            return Device(_device_type(given))
        if name == "torch.set_default_device" and _device_type(arguments.get(0, "device")) != "cpu":
            self.places_lost()
            return NONE
        return Device() if name in _DEVICES else None

    def of_tensors(self, name: str, arguments: Arguments) -> Value | None:
        """Functions on tensors, arrays and modules that the operator table does not have."""
        args = arguments.args
        if name == "torch.nn.Module.__init__":
            return NONE
        if name == "torch.utils.swap_tensors" and len(args) == 2:
            for one, other in (args, args[::-1]):
                if isinstance(one, Tensor):
                    self.retold_everywhere(one, other)
            self.data_replaced(None, UNKNOWN)
            return NONE
        if name.startswith("torch.nn.utils.prune.") and args:
            self.parametrized(args[0], arguments.get(1, "name") or UNKNOWN)
            return args[0]
        if name.endswith(".parametrize.register_parametrization") and args:
            self.parametrized(args[0], arguments.get(1, "tensor_name") or UNKNOWN)
            return UNKNOWN
        if name.rpartition(".")[2] in HOOKING_ALL:
            self.hooked(UNKNOWN, name.rpartition(".")[2], arguments)
            return UNKNOWN
        if name == "torch.nn.parallel.data_parallel" and len(args) >= 2 and isinstance(args[0], Module):
            return self.run_forward(args[0], Arguments(arguments.node, args[1:2], {}, arguments.default))
        if name.startswith("torch.nn.init.") and name.endswith("_") and args:  # filled, and given back
            return args[0] if isinstance(args[0], Tensor) else UNKNOWN
        if name in _CATEGORICAL and len(args) == 1:
            plain = self.flow.autocast is None
            return Categories(args[0].dtypes if isinstance(args[0], Tensor) and plain else None)
        if name in _PADDING and args:  # a new tensor, made like the first of the list
            first = args[0].items[0] if isinstance(args[0], Items) and args[0].items else self.item_of(args[0])
            return Tensor(first.dtypes if isinstance(first, Tensor) else None, zero_dim=False, origin=arguments.node)
        if name.endswith(".vector_to_parameters"):
            self.data_replaced(None, UNKNOWN)
            return NONE
        if name in _CLIPPING and args:
            return self.total_norm(arguments)
        if Cache.is_made_by(name):
            return Cache()
        return array_call(name, arguments)

    def parametrized(self, module: Value, name: Value) -> None:
        """A weight is what another module makes of one that is kept elsewhere, whenever it is asked for."""
        self.set_attribute(module, name, UNKNOWN)
        for choice in options(module):
            if isinstance(choice, Module):
                self.cast_module(choice, None)

    def checkpointed(self, arguments: Arguments) -> Value:
        """`checkpoint(function, *args)`: what the function gives, which is called here and once more in the backward."""
        node = arguments.node
        own = {keyword.arg for keyword in node.keywords} & _OF_CHECKPOINT
        called = ast.Call(node.args[0], node.args[1:], [word for word in node.keywords if word.arg not in own])
        given = {name: value for name, value in arguments.keywords.items() if name not in own}
        call = ast.copy_location(called, node)
        plain = Arguments(call, arguments.args[1:], given, arguments.default, arguments.complete, arguments.region)
        return self.called(call, arguments.args[0], UNKNOWN, "", plain)[1]

    def traced(self, name: str, module: Module, given: Value, arguments: Arguments) -> Value:
        """A module is run once, with what it is given: a tensor, or a tuple of arguments."""
        args = list(given.items) if isinstance(given, Items) else [given]
        self.run_forward(module, Arguments(arguments.node, args, {}, arguments.default))
        return module if name == "torch.jit.trace" else UNKNOWN

    def total_norm(self, arguments: Arguments) -> Value:
        """`clip_grad_norm_(parameters, ...)`: the norm of all gradients, which have the dtypes of the weights."""
        weight = arguments.args[0]
        if not isinstance(weight, Tensor):
            weight = self.item_of(weight)
        dtypes = weight.dtypes if isinstance(weight, Tensor) else None
        lifted = self.flow.autocast is not None and dtypes != frozenset({"float32"})
        # of no gradients it is `torch.tensor(0.0)`
        known = dtypes is not None and len(dtypes) == 1 and not lifted and dtypes == self.default
        return Tensor(dtypes if known else None, origin=arguments.node)

    def external(self, name: str) -> Value:
        """What stands outside the program under a name: constants as they are."""
        return NUMBERS.get(name) or super().external(name)

    def asked_attribute(self, function: str, owner: Value, name: Value, default: Value | None = None) -> Value:
        """`getattr(owner, name, default)` and `hasattr(owner, name)`."""
        if not isinstance(name, Constant) or not isinstance(name.value, str):
            return TRUTH if function == "builtins.hasattr" else UNKNOWN
        answers = {self.has_attribute(choice, name.value) for choice in options(owner)}
        there = answers.pop() if len(answers) == 1 else None
        if function == "builtins.hasattr":
            return TRUTH if there is None else Constant(there)
        if there is False and default is not None:
            return default
        member = self.member(owner, name.value)
        if function == "builtins.getattr" and name.value in MODULE_CASTS:
            self.cast_in_hand(owner, member)
        return member if default is None or there else join(member, default)

    def environment(self, name: str, arguments: Arguments) -> Value | None:
        """What is asked of the environment that the program runs in; None when it is something else."""
        asked = arguments.args[0].value if arguments.args and isinstance(arguments.args[0], Constant) else None
        if name not in _ENVIRONMENT or not isinstance(asked, str):
            return None
        if self.project.absent(asked):
            if name == "importlib.util.find_spec":
                return NONE
            self.alive = False  # PackageNotFoundError, ImportError
        return (
            UNKNOWN
            if name != "importlib.util.find_spec" or not self.project.present(asked)
            else External("importlib.spec")
        )

    def each(self, node: ast.AST) -> Value:
        """An f-string of constants is a constant."""
        if isinstance(node, ast.JoinedStr) and not any(
            isinstance(part, ast.FormattedValue) and (part.format_spec or part.conversion != -1) for part in node.values
        ):
            parts = [self.value(part.value if isinstance(part, ast.FormattedValue) else part) for part in node.values]
            return formatted(parts)
        return super().each(node)

    def first_parameter(self) -> Value:
        function = self.flow.function
        if function is None or isinstance(function.node, ast.Lambda):
            return UNKNOWN
        parameters = function.node.args.posonlyargs + function.node.args.args
        return self.flow.state.names.get(parameters[0].arg, UNKNOWN) if parameters else UNKNOWN


def _bound_in(code: str) -> frozenset[str] | None:
    """The names that code binds; None where that is not known."""
    try:
        tree = parsed(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    return frozenset(node.id for node in names)


def _device_type(given: Value | None) -> str | None:
    """The type of a device that is known."""
    if isinstance(given, Device):
        return given.type
    named = given.value if isinstance(given, Constant) else None
    return named.partition(":")[0] if isinstance(named, str) else None


_ENVIRONMENT = frozenset({"importlib.util.find_spec", "importlib.metadata.version", "importlib.import_module"})
_CATEGORICAL = frozenset(f"torch.distributions.{module}Categorical" for module in ("", "categorical."))
_PADDING = frozenset({"torch.nn.utils.rnn.pad_sequence"})
_CLIPPING = frozenset(f"torch.nn.utils.{module}clip_grad_norm_" for module in ("", "clip_grad."))
_OF_CHECKPOINT = frozenset(
    {"use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug", "early_stop"}
)
"""What `checkpoint` is told itself, and does not hand on."""
_CALLING = frozenset(f"builtins.{name}" for name in ("map", "filter", "sorted", "min", "max", "iter", "property"))
"""Builtins that call what they are given."""
_TRACING = frozenset({"torch.jit.trace", "torch.onnx.export", "torch.onnx._export", "torch.export.export"})
_CALLING_BACK = (
    *("torch.utils.", "torch.func.", "torch.vmap", "torch.jit.trace", "torch.onnx.", "torch.export.", "torch.fx."),
    *("torch.autograd.functional.", "torch.cuda.make_graphed_callables", "torch.multiprocessing.", "torch.ao."),
    *("torch.quantization.", "torch.cond", "torch.while_loop", "torch.overrides."),
)
"""Where torch calls what it is given, or makes something else of it."""
_NEVER_CALLING = tuple(
    f"{name}."
    for name in (
        "inspect",
        "warnings",
        "logging",
        "re",
        "math",
        "time",
        "json",
        "typing",
        "os",
        "sys",
        "random",
        "dataclasses",
        "types",
        "abc",
        "copy",
        "enum",
    )
)
"""Modules of the standard library whose functions look at what they are given, and call none of it."""
_DEVICES = frozenset(
    {"torch.device", "torch.accelerator.current_accelerator", "torch.get_default_device", "torch.cuda.current_device"}
)
_SETTERS = frozenset({"builtins.object.__setattr__", "torch.nn.Module.__setattr__"})
_SWITCHING_OFF = "utils.generic.maybe_autocast"
"""transformers' own: with `enabled=False` no autocast is in force inside, whether one was around it or not."""
_MADE = (Autocast, GradScaler, Optimizer, NullContext, Device)
