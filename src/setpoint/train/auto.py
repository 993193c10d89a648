"""Several solvers from one warm start, judged on held-out data; the simplest that nothing clearly beats is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from torch import nn

from setpoint.errors import BadSetting
from setpoint.problem.problem import Problem
from setpoint.train.auto_linear import fit_auto_linear
from setpoint.train.auto_network import TrainEpochs, fit_auto_network
from setpoint.train.history import History
from setpoint.train.trial import Trial


@dataclass(frozen=True)
class Auto:
    """Try cross-entropy and what may beat it, and keep the best on held-out data, with a rule against choosing noise.

    Candidates stand in order from simple to bold, plain cross-entropy first. A bolder one replaces the one that stands
    only if it is better on the held-out rows by more than `caution` standard errors of their paired difference (or
    meets bounds that the other breaks). `tune` adds that many trials by optuna, drawn from `seed`, the best of which
    is one more candidate.
    """

    tune: int = 0
    seed: int = 0
    caution: float = 1.0

    def __post_init__(self) -> None:
        for name, value in (("tune", self.tune), ("seed", self.seed)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise BadSetting(f"Auto needs {name} to be a whole number from 0 up, got {value!r}")
        if not 0 <= self.caution < float("inf"):
            raise BadSetting(f"caution is a number of standard errors, 0 or more, got {self.caution!r}")


def fit_auto(
    model: nn.Module,
    problem: Problem,
    auto: Auto,
    train: Iterable[Any],
    held_out: Iterable[Any],
    train_epochs: TrainEpochs,
    *,
    epochs: int,
    calibrated: bool,
    on_epoch: Callable[[dict[str, Any]], None] | None = None,
) -> tuple[History, int, tuple[Trial, ...]]:
    """Set the model's parameters to those of the chosen candidate; history, its best row, and all candidates."""
    if isinstance(model, nn.Linear) and model.out_features == 1:
        return fit_auto_linear(model, problem, auto.caution, auto.tune, auto.seed, train, held_out, on_epoch)
    return fit_auto_network(
        model, problem, auto.caution, auto.tune, auto.seed, train, held_out, train_epochs,
        epochs=epochs, calibrated=calibrated,
    )  # fmt: skip
