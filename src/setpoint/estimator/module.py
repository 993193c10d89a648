"""The network a classifier trains: linear, an MLP, or a class of the user's own with `module__x` parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from setpoint.errors import BadSetting

#: Under these names a module's constructor is given the number of features, unless it was told.
WIDTH_NAMES = ("in_features", "n_features")


def linear(in_features: int) -> nn.Module:
    """One weight a feature."""
    return nn.Linear(in_features, 1)


def mlp(in_features: int, hidden: int | Sequence[int] = (64, 64)) -> nn.Module:
    """Layers of `hidden` units with ReLU between them, then one output."""
    sizes = (hidden,) if isinstance(hidden, int) else tuple(hidden)
    if any(isinstance(size, bool) or not isinstance(size, int) or size < 1 for size in sizes):
        raise BadSetting(f"module__hidden must be the size of a layer, or of each, from 1 up, got {hidden!r}")
    layers = [layer for pair in pairwise((in_features, *sizes)) for layer in (nn.Linear(*pair), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear((in_features, *sizes)[-1], 1))


def is_own(module: Any) -> bool:
    """Whether the network is one of setpoint's, not of the user's."""
    return module is None or isinstance(module, str)


def build_module(module: Any, width: int, parameters: Mapping[str, Any], seed: int) -> nn.Module:
    """A new network for `width` features, drawn from the seed; the global random state is left alone."""
    make, name = _maker(module)
    accepted = inspect.signature(make).parameters
    told = {word: width for word in WIDTH_NAMES if word in accepted and word not in parameters}
    arguments = {**told, **parameters}
    try:
        inspect.signature(make).bind(**arguments)
    except TypeError as cause:
        raise BadSetting(
            f"module {name} cannot be built: {cause}; its parameters are given as module__x, and it takes "
            f"{', '.join(accepted) or 'none'}"
        ) from cause
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        built = make(**arguments)
    if not isinstance(built, nn.Module):
        raise BadSetting(f"module {name} must give an nn.Module, but gave a {type(built).__name__}")
    return built


def _maker(module: Any) -> tuple[Callable[..., Any], str]:
    if module is None or module == "linear":
        return linear, "linear"
    if module == "mlp":
        return mlp, "mlp"
    if isinstance(module, nn.Module):
        kind = type(module).__name__
        raise BadSetting(f"module must be a class, so that every fit starts anew; pass {kind}, not an object of it")
    if isinstance(module, str) or not callable(module):
        raise BadSetting(f"module must be None (linear), 'mlp' or an nn.Module class, got {module!r}")
    return module, getattr(module, "__name__", repr(module))
