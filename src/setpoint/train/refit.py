"""Whether a model is trained once more, on held-out rows too, and how a network is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import nn

from setpoint.errors import BadSetting, ShapeMismatch
from setpoint.solve.baseline import CrossEntropy
from setpoint.solve.solver import Solver
from setpoint.train.again import AllRows
from setpoint.train.auto import Auto
from setpoint.train.average import can_be_averaged
from setpoint.train.epochs import Epochs
from setpoint.train.recipes import Anchored, Ridge, is_linear
from setpoint.train.together import averages_itself


def refits(refit: bool | None, model: nn.Module, solver: Any, calibration: Any) -> bool:
    """Whether to train again on all rows; if nobody says, where the choice is left to us and nothing speaks against."""
    against = None
    left_to_us = solver is None or (isinstance(solver, Auto) and is_linear(model))
    if not (left_to_us or isinstance(solver, CrossEntropy | Anchored | Ridge)):
        against = "refit goes with cross-entropy and the recipes for linear models; leave the solver out"
    elif averages_itself(model) or not can_be_averaged(model):
        against = (
            "refit keeps an average of the model's parameters; pass a model that copy.deepcopy copies, all its "
            "parameters there, without a wrapper"
        )
    elif calibration is None:
        against = "refit trains on the held-out rows, so the threshold needs others: pass calibration= data"
    if refit and against is not None:
        raise BadSetting(against)
    return against is None and (left_to_us if refit is None else refit)


def train_again(
    model: nn.Module,
    solver: Solver,
    plan: Epochs,
    start: dict[str, Any],
    told: int,
    last: int,
    *,
    asked: bool,
) -> None:
    """From the start, on all rows, until the epoch that was best; `on_epoch` is told, in rows that are marked."""
    try:
        rows = AllRows(plan.train, plan.held_out)
    except ShapeMismatch:
        if asked:
            raise
        return

    def report(row: dict[str, Any]) -> None:
        if plan.on_epoch is not None:
            plan.on_epoch({**row, "epoch": told + row["epoch"], "again": True})

    model.load_state_dict(start)
    plan = replace(plan, train=rows, warm_start=0.0, patience=None, averaged=True, last=last)
    replace(plan, on_epoch=report, checkpoint=plan.checkpoint.part("again")).fit(model, solver)
