"""One page about a run, or about the scores of any model: `sp.report(ask, scores, labels)`.

The package itself can be called, so that `sp.report` is the function and `setpoint.report.page` stays a module.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

#: Public names of the room, and the file of each.
_HOMES = {"Report": "of_scores", "OperatingPointDisplay": "display"}


class _Room(ModuleType):
    def __call__(self, *given: Any, **named: Any) -> Any:
        return importlib.import_module("setpoint.report.of_scores").report(*given, **named)

    def __getattr__(self, name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"setpoint.report.{_HOMES[name]}"), name)


sys.modules[__name__].__class__ = _Room
