"""The network that a classifier trains: a kind of model by name, or the user's class with `module__x` parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from setpoint.errors import BadSetting
from setpoint.train.kinds import KINDS
from setpoint.train.method import Method

#: Parameters of a module's constructor that are set to the number of features, unless the user sets them.
WIDTH_NAMES = ("in_features", "n_features")
#: Those that are set to the number of classes, where the ask is about classes.
OUTPUT_NAMES = ("out_features", "n_classes", "outputs")


@dataclass(frozen=True)
class Network:
    """The user's `module` (None is linear), and the `module__x` parameters of its constructor."""

    module: Any = None
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_own(self) -> bool:
        """Whether the network is a kind that setpoint knows, not the user's class."""
        return self.module is None or isinstance(self.module, str)

    @property
    def method(self) -> Callable[[], Method] | None:
        """The own method of a kind of model, or None if solvers train it."""
        return KINDS[self.module].method if isinstance(self.module, str) and self.module in KINDS else None

    def build(self, width: int, seed: int, outputs: int = 1) -> nn.Module:
        """A new network for `width` features, drawn from the seed; the global random state is left alone."""
        make, name = self._maker()
        accepted = inspect.signature(make).parameters
        told = {word: width for word in WIDTH_NAMES if word in accepted and word not in self.parameters}
        if outputs > 1:
            told |= {word: outputs for word in OUTPUT_NAMES if word in accepted and word not in self.parameters}
        arguments = {**told, **self.parameters}
        try:
            inspect.signature(make).bind(**arguments)
        except TypeError as cause:
            raise BadSetting(
                f"module {name} cannot be built: {cause}; set its parameters as module__x; it takes "
                f"{', '.join(accepted) or 'none'}"
            ) from cause
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            built = make(**arguments)
        if not isinstance(built, nn.Module):
            raise BadSetting(f"module {name} must give an nn.Module, but gave a {type(built).__name__}")
        return built

    def _maker(self) -> tuple[Callable[..., Any], str]:
        module = "linear" if self.module is None else self.module
        if isinstance(module, nn.Module):
            kind = type(module).__name__
            raise BadSetting(f"module must be a class, so that every fit starts anew; pass {kind}, not an object of it")
        make = KINDS[module].make if isinstance(module, str) and module in KINDS else module
        if isinstance(make, str) or not callable(make):
            named = ", ".join(repr(name) for name in KINDS if name != "linear")
            raise BadSetting(f"module must be None (linear), {named} or an nn.Module class, got {module!r}")
        return make, module if isinstance(module, str) else getattr(module, "__name__", repr(module))
