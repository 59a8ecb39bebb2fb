"""All models: importing this registers them."""

from __future__ import annotations

from dtlint.infer.models import (
    abstract_containers,
    accelerate,
    amp,
    autograd_functions,
    builtin_functions,
    builtin_methods,
    casts,
    code_objects,
    data_loading,
    einops,
    factories,
    hooks,
    inspection,
    instance_dicts,
    lightning,
    module_methods,
    module_views,
    numpy_methods,
    numpy_models,
    numpy_random,
    optimizers,
    pictures,
    scaling,
    standard_library,
    tensor_methods,
    torch_functions,
)

__all__ = ["MODULES"]

MODULES = (
    abstract_containers,
    accelerate,
    amp,
    autograd_functions,
    builtin_functions,
    builtin_methods,
    casts,
    code_objects,
    data_loading,
    einops,
    factories,
    hooks,
    inspection,
    lightning,
    instance_dicts,
    module_views,
    module_methods,
    numpy_methods,
    numpy_models,
    numpy_random,
    optimizers,
    pictures,
    scaling,
    standard_library,
    tensor_methods,
    torch_functions,
)
"""The modules that hold models."""
