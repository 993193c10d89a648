"""The state of every random generator that a training draws from, to be saved and restored."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

Generator = torch.Generator | np.random.Generator | random.Random


class Draws:
    """The global generators of torch, NumPy and Python, and those inside loaders, samplers and datasets."""

    def __init__(self, loaders: Iterable[Any]) -> None:
        found = {id(own): own for loader in loaders for place in _places(loader) for own in _generators(place)}
        self.owned: list[Generator] = list(found.values())

    def state(self) -> dict[str, Any]:
        """The state of all generators, in plain data."""
        kind, keys, *rest = np.random.get_state()  # noqa: NPY002, because a dataset may draw from it
        return {
            "torch": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
            "python": _plain_python(random.getstate()),
            "numpy": [str(kind), torch.from_numpy(np.asarray(keys).astype(np.int64)), *rest],
            "owned": [_state_of(own) for own in self.owned],
        }

    def load(self, state: dict[str, Any]) -> None:
        """Restore the state of all generators."""
        if len(state["owned"]) != len(self.owned):
            raise ValueError(f"{len(state['owned'])} generators of loaders were saved, now there are {len(self.owned)}")
        torch.set_rng_state(state["torch"])
        if state["cuda"] and torch.cuda.is_available():
            torch.cuda.set_rng_state_all(state["cuda"])
        random.setstate(_python_state(state["python"]))
        kind, keys, *rest = state["numpy"]
        np.random.set_state((kind, keys.numpy().astype(np.uint32), *rest))  # noqa: NPY002
        for own, saved in zip(self.owned, state["owned"]):
            _set(own, saved)


def _places(loader: Any) -> list[Any]:
    """The objects of a loader that may draw: itself, its samplers, its dataset and the data inside that."""
    places = [loader]
    for name in ("sampler", "batch_sampler", "dataset", "batches", "items"):
        inner = getattr(loader, name, None)
        if inner is not None and not isinstance(inner, list | tuple):
            places += _places(inner)
    return places


def _generators(place: Any) -> list[Generator]:
    return [value for value in getattr(place, "__dict__", {}).values() if isinstance(value, Generator)]


def _state_of(own: Generator) -> Any:
    if isinstance(own, torch.Generator):
        return own.get_state()
    return own.bit_generator.state if isinstance(own, np.random.Generator) else _plain_python(own.getstate())


def _set(own: Generator, saved: Any) -> None:
    if isinstance(own, torch.Generator):
        own.set_state(saved)
    elif isinstance(own, np.random.Generator):
        own.bit_generator.state = saved
    else:
        own.setstate(_python_state(saved))


def _plain_python(state: tuple[Any, ...]) -> list[Any]:
    return [state[0], torch.tensor(state[1]), state[2]]


def _python_state(saved: list[Any]) -> tuple[Any, ...]:
    return saved[0], tuple(saved[1].tolist()), saved[2]
