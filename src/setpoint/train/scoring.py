"""Scores to judge and to decide by, computed in one way for every door.

A float32 model is computed in float64 and its scores are rounded to float32. In float32 alone the last digit of a score
depends on the other rows of the batch, so that rows that tie with a threshold would be decided differently in every
batch. A float64 model gives its scores as they are.

Some models run in their own precision: models on another device than the CPU, in half precision or under autocast,
sharded over processes, or with code that does not take float64.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.parallel import DistributedDataParallel

from setpoint.errors import BadFeatures, BadScores

#: The largest number of rows that are scored together, and of values in them: in float64 these stay in the cache.
AT_ONCE, NUMBERS = 65_536, 2**18


def score_rows(model: nn.Module, x: Any) -> Tensor:
    """Scores `(n,)` of the rows of `x`, by the model in `eval()` mode.

    Args:
        model: Gives one score per row, `(n,)` or `(n, 1)`. It is left in the mode it was in.
        x: The input of the model: a tensor of n rows, or anything else, which is then scored in one piece.

    Returns:
        Float32 scores for a float32 model, computed in float64 where the model can.
    """
    return scorer(model)(x)


@dataclass(frozen=True)
class ScoredByTorch:
    """A PyTorch module as a model that scores arrays; threads wait for each other.

    Scoring puts other parameters into the module for a moment, which no other thread may see.
    """

    module: nn.Module
    lock: threading.Lock = field(default_factory=threading.Lock)

    def score(self, x: NDArray[np.float32]) -> NDArray[Any]:
        """Scores of features `(n, d)`."""
        with self.lock:
            scores: NDArray[Any] = score_rows(self.module, torch.from_numpy(x)).numpy()
        return scores


def scorer(model: nn.Module) -> Callable[[Any], Tensor]:
    """`score_rows` for many batches, with the parameters converted once; make a new one after further training."""
    if isinstance(model, DistributedDataParallel):
        model = model.module
    model = uncompiled(model)
    wide = _widened_state(model)

    def scores_of(x: Any) -> Tensor:
        nonlocal wide
        was_training = model.training
        model.eval()
        try:
            with torch.no_grad():
                if wide is not None:
                    try:
                        return torch.cat([_precise(model, wide, rows) for rows in _parts(x)])
                    except Exception:
                        # Code without float64 may raise anything. If the rows are at fault, the next line raises.
                        wide = None
                return torch.cat([scores_by(model, rows) for rows in _parts(x)])
        finally:
            model.train(was_training)

    return scores_of


def uncompiled(model: nn.Module) -> nn.Module:
    """The module inside a compiled one, which needs no new compilation for float64 and allows hooks on its layers."""
    found: nn.Module = getattr(model, "_orig_mod", model)
    return found


def _precise(model: nn.Module, wide: dict[str, Tensor], x: Any) -> Tensor:
    scores = _column(functional_call(model, wide, (_widened(x),)))
    own = {parameter.dtype for parameter in model.parameters()} or {x.dtype if isinstance(x, Tensor) else torch.float32}
    return scores if torch.float64 in own else scores.float()


def scores_by(model: nn.Module, x: Any) -> Tensor:
    """The scores that a model gives; a last dimension of size one is dropped.

    Raises:
        BadScores: If it gives something else.
        BadFeatures: If it takes x of another dtype or width.
    """
    try:
        scores = model(x)
    except RuntimeError as cause:
        why = _why_not_taken(model, x, str(cause))
        if why is None:
            raise
        raise BadFeatures(why) from cause
    return _column(scores)


def _why_not_taken(model: nn.Module, x: Any, said: str) -> str | None:
    """Why a model did not take x, where it is told by the dtype or the width of x."""
    own = next((p.dtype for p in model.parameters() if p.is_floating_point()), None)
    if not isinstance(x, Tensor) or own is None:
        return None
    if x.dtype != own and re.search(r"same dtype|scalar type|type .*should be the same", said):
        ours, theirs = (str(dtype).removeprefix("torch.") for dtype in (x.dtype, own))
        return f"x is {ours}, but the parameters of the model are {theirs}; pass x.to(torch.{theirs})"
    if "shapes cannot be multiplied" in said:
        return f"the model does not take rows of shape {tuple(x.shape[1:])} ({said}); pass a model for as many features"
    return None


def _column(scores: Any) -> Tensor:
    if not isinstance(scores, Tensor):
        part = next(iter(scores), "logits") if isinstance(scores, Mapping) else 0
        example = f", such as output[{part!r}]" if isinstance(scores, Mapping | tuple | list) else ""
        raise BadScores(
            f"forward of the model returns a {type(scores).__name__}, but scores are a tensor with one score per row; "
            f"wrap the model in a module whose forward returns that tensor alone{example}"
        )
    return scores.squeeze(-1) if scores.dim() == 2 and scores.shape[1] == 1 else scores


def _widened_state(model: nn.Module) -> dict[str, Tensor] | None:
    """Parameters and buffers in float64, or None if the model is to run in its own precision."""
    state = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    known = (torch.float32, torch.float64)
    for tensor in state.values():
        plain = type(tensor) in (Tensor, nn.Parameter) and tensor.device.type == "cpu" and not tensor.is_complex()
        if not plain or (tensor.is_floating_point() and tensor.dtype not in known):
            return None
    if torch.is_autocast_enabled("cpu"):
        return None
    return {name: _widened(tensor.detach()) for name, tensor in state.items()}


def _widened(x: Any) -> Any:
    """The input with its float32 tensors in float64, also inside lists, tuples and dicts."""
    if isinstance(x, Tensor):
        return x.double() if x.dtype == torch.float32 else x
    if type(x) in (list, tuple):
        return type(x)(map(_widened, x))
    return {name: _widened(part) for name, part in x.items()} if type(x) is dict else x


def _parts(x: Any) -> list[Any]:
    if not isinstance(x, Tensor) or x.dim() == 0 or len(x) == 0:
        return [x]
    return list(x.split(max(1, min(AT_ONCE, NUMBERS * len(x) // max(x.numel(), 1)))))
