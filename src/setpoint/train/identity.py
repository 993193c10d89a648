"""The identity of a training in plain data: equal for the same model, settings and data."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from setpoint.data.parts import Data
from setpoint.data.rows import content_hash
from setpoint.problem.problem import Problem
from setpoint.processes import Processes
from setpoint.train.adam import Adam


def identity_of(value: Any) -> Any:
    """Settings as plain data: dataclasses and solvers by their fields, functions by their names."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Problem):
        return str(value)
    if isinstance(value, list | tuple):
        return [identity_of(part) for part in value]
    if isinstance(value, Mapping):
        return {str(name): identity_of(part) for name, part in value.items()}
    if isinstance(value, nn.Module):
        return module_identity(value)
    if isinstance(value, torch.optim.Optimizer | Adam):
        return {"kind": type(value).__name__, **identity_of(value.defaults)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {"kind": type(value).__name__, **identity_of(fields)}
    return getattr(value, "__qualname__", type(value).__name__)


def module_identity(module: nn.Module) -> dict[str, Any]:
    """The kinds of all layers, their settings, and the shapes of all parameters and buffers."""
    settings = {
        f"{place}.{name}": identity_of(value)
        for place, layer in module.named_modules()
        for name, value in vars(layer).items()
        if not name.startswith("_") and name != "training" and not isinstance(value, Tensor | nn.Module)
    }
    return {
        "layers": [f"{place}: {type(layer).__name__}" for place, layer in module.named_modules()],
        "shapes": {name: f"{value.dtype} {tuple(value.shape)}" for name, value in _tensors(module)},
        "settings": {name: value for name, value in settings.items() if _is_setting(value)},
    }


def _tensors(module: nn.Module) -> Iterable[tuple[str, Tensor]]:
    yield from module.named_parameters()
    yield from module.named_buffers()


def _is_setting(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str | list | dict)


def work_identity(
    model: nn.Module | None, solver: Any, problem: Problem, data: Data, how: Any, processes: Processes
) -> dict[str, Any]:
    """The identity of a training: problem, model, solver, settings and data."""
    rows = {"training data": loader_identity(data.train), "held-out data": loader_identity(data.held_out)}
    settings = {name: value for name, value in identity_of(how).items() if name not in ("kind", "optimizer")}
    if processes.alone:
        own: dict[str, Any] = dict(rows)
    else:
        parts = processes.all_objects(rows)
        own = {name: [part[name] for part in parts] for name in rows}
        own["processes"] = processes.size
    return {
        "ask": str(problem), "model": None if model is None else module_identity(model),
        "solver": identity_of(solver), **settings, **own,
    }  # fmt: skip


def loader_identity(loader: Iterable[Any]) -> dict[str, Any]:
    """The size of a loader, and a hash of the rows that it holds in memory."""
    kind = {"kind": type(loader).__name__, "batches": _length(loader)}
    if isinstance(loader, list | tuple):
        return {**kind, "content": content_hash(loader)}
    if isinstance(loader, DataLoader):
        held = loader.dataset.tensors if isinstance(loader.dataset, TensorDataset) else None
        size = {"batch_size": loader.batch_size, "rows": _length(loader.dataset)}
        return {**kind, **size, "sampler": type(loader.sampler).__name__, "content": content_hash(held)}
    known = {name: getattr(loader, name, None) for name in ("batch_size", "shuffle", "fingerprint")}
    return {**kind, **known} if isinstance(known["fingerprint"], str) else kind


def _length(sized: Any) -> int | None:
    try:
        return len(sized)
    except TypeError:
        return None
