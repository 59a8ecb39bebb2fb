"""The dynamic half: run a program, see every operator, judge afterwards. `record` and `judge` need no torch.

The package has the name of a function of the API, so it can be called: `dtlint.trace()` is `dtlint.api.trace()`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import dtlint


class _Callable(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """See `dtlint.api.trace`."""
        return dtlint.Trace.begin(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
