"""PyTorch and SQLite, loaded when one of their names is first used.

`setpoint predict` and `sp.load_run` import the rooms `measure`, `problem` and `data`, and most models need no PyTorch
to score rows; loading it takes longer than answering. A file of these rooms writes `from setpoint.on_use import torch`,
and imports names for annotations alone under `TYPE_CHECKING`.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    import sqlite3

    import torch
    from torch import Tensor

__all__ = ["is_tensor", "sqlite3", "torch"]


class _OnUse(ModuleType):
    """Stands for a module until one of its names is used; then each of our files gets the module itself."""

    def __getattr__(self, name: str) -> Any:
        module = importlib.import_module(self.__name__)
        for other in list(sys.modules.values()):
            held = getattr(other, "__dict__", {})
            if held.get(self.__name__) is self:
                held[self.__name__] = module
        return getattr(module, name)


if not TYPE_CHECKING:
    torch = sys.modules.get("torch") or _OnUse("torch")
    sqlite3 = sys.modules.get("sqlite3") or _OnUse("sqlite3")


def is_tensor(value: object) -> TypeGuard[Tensor]:
    """Whether a value is a tensor; there are none before PyTorch is loaded."""
    return "torch" in sys.modules and isinstance(value, torch.Tensor)
