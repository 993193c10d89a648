"""Fit a model to a problem: train, judge by the true rates, keep the best, set the threshold."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from setpoint.data.batch import halves
from setpoint.decide.calibrate import calibrate_or_warn
from setpoint.decide.samples_needed import refuse_confidence
from setpoint.errors import BadSetting, SharedData
from setpoint.problem.language import read_problem
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.processes import ALONE, Processes, ProcessGroup
from setpoint.solve.baseline import CrossEntropy
from setpoint.solve.last_layer import ImplicitLastLayer
from setpoint.solve.solver import Solver
from setpoint.train.auto import Auto, fit_auto
from setpoint.train.checkpoint import Checkpoint
from setpoint.train.ensemble import fit_ensemble
from setpoint.train.epochs import Epochs, OptimizerMaker, Report
from setpoint.train.fit_linear import fit_linear
from setpoint.train.head import fit_proximal_head
from setpoint.train.history import History, score
from setpoint.train.identity import identity_of, loader_identity, module_identity
from setpoint.train.lean import lean_weight
from setpoint.train.recipes import Anchored, Ridge, is_linear
from setpoint.train.refit import refits, train_again
from setpoint.train.splits import Seeds, Splits
from setpoint.train.together import every_batch, share_state
from setpoint.train.trial import Trial

Loaders = tuple[Iterable[Any], Iterable[Any]]


@dataclass(frozen=True)
class FitResult:
    """The trained model, the point to run it at, and what happened on the way, an epoch (or a try) a row.

    `comparison` has the candidates of `Auto`, from simple to bold; it is empty for a single solver.
    """

    model: nn.Module
    point: OperatingPoint
    history: History
    solver: Solver | Anchored | Ridge | Auto
    best_epoch: int
    comparison: tuple[Trial, ...] = ()


def fit(
    model: nn.Module,
    problem: Problem | str,
    train: Iterable[Any],
    held_out: Iterable[Any],
    solver: Solver | Anchored | Ridge | Auto | None = None,
    *,
    calibration: Iterable[Any] | None = None,
    confidence: float | None = None,
    epochs: int = 30,
    warm_start: float = 0.3,
    patience: int | None = None,
    optimizer: OptimizerMaker | None = None,
    refit: bool | None = None,
    ensemble: int | Splits = 1,
    seed: int = 0,
    on_epoch: Report | None = None,
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    process_group: ProcessGroup = None,
    accumulate: int = 1,
) -> FitResult:
    """Train a model for a problem and set its threshold.

    With no `solver` the choice is made by what has been measured to work. A linear model (`nn.Linear` with one
    output) is trained full batch by the anchored recipe (`Anchored`), or where groups are compared to plain
    cross-entropy (`Ridge`). A network is trained by cross-entropy, with
    half of the weight on positives where at most 5 % of the negatives may pass, and stopped early by its loss on
    the held-out rows at the best scale and shift of its scores. When there are `calibration` data for the
    threshold, either is then trained once more, on the held-out rows too (`refit`).

    With a `solver`, the first `warm_start` share of the epochs is balanced cross-entropy, which keeps the solver
    from starting on meaningless thresholds (losses that need none, such as `CrossEntropy`, go without). After every
    epoch the model is judged on `held_out` by the exact metric at its best cut; the best epoch, feasible ones first,
    is kept; after `patience` epochs without a better one training stops. The default optimizer is Adam, 0.01 for a
    linear model and, with a weight decay of 0.0001, 0.003 for a stack of linear layers and 0.001 for other networks,
    falling to zero on a cosine.

    The threshold is set on `calibration`. When there is none, on `held_out` again, with a warning that its rates look
    better than they are; but with `confidence`, which is only honest on data of its own, every second row of
    `held_out` is kept for it. If the promise cannot be made in the end, a warning says why, and the threshold is set
    without a certificate.

    With `refit`, the model is trained again on training and held-out rows together, once these have chosen: rows that
    nothing more is chosen on need not lie idle. A linear model is made anew by the recipe that was best; a network
    starts again from where it started, for as many epochs as had the least loss, and both times it is the running
    average of its parameters that counts. History and best epoch are those of the first training. It goes with
    cross-entropy and the recipes for linear models, and takes `calibration` data, for the threshold must not be set on
    rows that were trained on. None is the default: it is done where the choice is left to the library (no solver, or
    `Auto` for a linear model) and nothing speaks against it.
    False leaves the held-out rows alone; then, with `calibration` data, the last layer of a network that no solver is
    named for is re-fitted to the problem on them, and kept only if that helps on the half it was not fitted on.

    With `ensemble` = k, k copies of the model are drawn and trained from the seeds `seed`, `seed + 1`, ..., and the
    result's model averages their logits; the given model is left as it was. With `ensemble=sp.Splits(k)` each copy is
    also trained on another random stratified split of the training and held-out rows; that takes `calibration` data,
    and no `refit`.

    With `checkpoint`, a directory, the state is kept there on the way. The same call after a kill goes on from it and
    ends, on one thread, in the very parameters of a run that was not killed; then the directory is removed. The state
    of another call is refused. `Checkpoint(path, ...)` says how often and for how long.

    When `torch.distributed` is initialised, or a `process_group` is given, every process makes the same call with
    loaders of its own rows, and all get the result of training on all rows: steps are of the batches of all processes
    together, data are judged together, and the first process alone writes the checkpoint. A model in
    DistributedDataParallel or FSDP joins gradients by itself; those of any other are averaged here. `process_group`
    False keeps to this process.

    With `accumulate` = n, n batches of the loader count as one, exactly, whatever the solver, on the memory of one of
    them and at the price of one more forward pass (`sp.accumulate`).
    """
    problem = read_problem(problem)
    processes = Processes.of(process_group)
    if isinstance(solver, str):
        raise BadSetting(f"a solver is an object such as sp.ImplicitThreshold(problem), got the text {solver!r}")
    if confidence is not None:
        refuse_confidence(confidence)
        if calibration is None:
            held_out, calibration = halves(held_out)
    made_of = ensemble if isinstance(ensemble, Splits) else Seeds(ensemble)
    if isinstance(made_of, Splits):
        if calibration is None or calibration is held_out or refit:
            lacking = "no refit, which trains every member on all rows" if refit else "calibration= data"
            raise BadSetting(f"an ensemble over splits trains on the held-out rows too, so it takes {lacking}")
        refit = False
    if calibration is None or calibration is held_out:
        warnings.warn(
            "the threshold is set on the held-out data, which also choose the model, so its rates look better than "
            "they are; pass calibration= data of its own",
            SharedData,
            stacklevel=2,
        )
        calibration = None
    if epochs < 1 or not 0 <= warm_start <= 1 or (patience is not None and patience < 1):
        raise BadSetting(
            f"fit needs epochs >= 1, a warm_start share of 0 to 1 and patience >= 1 or None, "
            f"got {epochs}, {warm_start} and {patience}"
        )

    again = refits(refit, model, solver, calibration)
    if isinstance(accumulate, bool) or not isinstance(accumulate, int) or accumulate < 1:
        raise BadSetting(f"accumulate is the number of batches that count as one, from 1 up, got {accumulate!r}")
    kept = Checkpoint.of(checkpoint)
    kept.processes = processes
    settings: dict[str, Any] = {
        "epochs": epochs, "warm_start": warm_start, "patience": patience, "ensemble": identity_of(ensemble),
        **({} if processes.alone else {"processes": processes.size}),
        **({} if accumulate == 1 else {"accumulate": accumulate}),
        **({"refit": True} if again else {}),
    }  # fmt: skip
    share_state(model, processes, parameters=True)

    def train_one(
        one: nn.Module, own: Solver | Anchored | Ridge | Auto | None, state: Checkpoint, rows: Loaders
    ) -> FitResult:
        plan = Epochs(
            problem, *rows, state, {}, epochs, warm_start, patience, optimizer, on_epoch,
            processes=processes, judged_by=processes, accumulate=accumulate,
        )  # fmt: skip
        calibrated = calibration is not None
        own, history, best, comparison = _train(
            one, own, plan, calibrated=calibrated, again=again, asked=refit is not None, settings=settings
        )
        result = FitResult(one.eval(), set_point(one), history, own, best, comparison)
        state.close()
        return result

    def set_point(trained: nn.Module) -> OperatingPoint:
        sample = score(trained, held_out if calibration is None else calibration, processes)
        return calibrate_or_warn(
            problem, sample.scores, sample.labels, confidence, weights=sample.weights, groups=sample.groups
        )

    if made_of == Seeds(1):
        return train_one(model, solver, kept, (train, held_out))
    if isinstance(solver, ImplicitLastLayer):
        raise BadSetting("ImplicitLastLayer belongs to one model's head; train the members of an ensemble by hand")
    if kept.open(identity_of({"ask": problem, "solver": solver, **settings, "seed": seed})) is None:
        kept.save({})
    result = fit_ensemble(
        lambda one, drawn: train_one(
            one, copy.deepcopy(solver), kept.part(f"seed-{drawn}"), made_of.deal(train, held_out, drawn)
        ),
        model, made_of.members, set_point, seed=seed,
    )  # fmt: skip
    kept.close()
    return result


def _train(
    model: nn.Module,
    solver: Solver | Anchored | Ridge | Auto | None,
    plan: Epochs,
    *,
    calibrated: bool,
    again: bool,
    asked: bool,
    settings: dict[str, Any],
) -> tuple[Solver | Anchored | Ridge | Auto, History, int, tuple[Trial, ...]]:
    """Train in place: the solver that was used, the history, the row of it that the model now is of, and what `Auto`
    chose from. With data to calibrate on the last layer of a network may be fitted to the held-out rows."""
    problem, processes, checkpoint = plan.problem, plan.processes, plan.checkpoint
    by_default = solver is None
    if solver is None:
        solver = _by_default(model, problem)
        plan = replace(plan, patience=plan.patience or max(5, plan.epochs // 4))
    if checkpoint.is_on:
        plan = replace(plan, identity=_identity(model, solver, plan, settings))
    if isinstance(solver, Auto | Anchored | Ridge):
        # Full-batch recipes and the choice between candidates need all rows in one place.
        plan = replace(plan, held_out=every_batch(plan.held_out, processes), judged_by=ALONE)
        whole = plan.train if isinstance(solver, Auto) and not is_linear(model) else every_batch(plan.train, processes)
    if isinstance(solver, Auto):
        if checkpoint.open(plan.identity) is None:
            checkpoint.save({})

        def train_epochs(model: nn.Module, solver: Solver, epochs: int, first: int) -> tuple[History, int]:
            def report(row: dict[str, Any]) -> None:
                row["epoch"] += first
                if plan.on_epoch is not None:
                    plan.on_epoch(row)

            one = replace(
                plan, epochs=epochs, warm_start=0.0, patience=plan.patience or max(5, epochs // 4), on_epoch=report,
                checkpoint=checkpoint.part(f"from-{first}"), identity={**plan.identity, "trial": identity_of(solver)},
            )  # fmt: skip
            return one.fit(model, solver)

        return solver, *fit_auto(
            model, problem, solver, whole, plan.held_out, train_epochs, epochs=plan.epochs, calibrated=calibrated,
            again=again, on_epoch=plan.on_epoch, processes=processes,
        )  # fmt: skip
    if isinstance(solver, Anchored | Ridge):
        if not is_linear(model):
            name = type(solver).__name__
            raise BadSetting(f"{name} trains nn.Linear models with one output; use a Solver for other models")
        history, best = fit_linear(
            model, problem, solver, whole, plan.held_out, plan.on_epoch, again=again, checkpoint=checkpoint,
            identity=plan.identity,
        )  # fmt: skip
        return solver, history, best, ()
    start = copy.deepcopy(model.state_dict()) if again else {}
    history, best = replace(plan, by_loss=by_default or again, averaged=again).fit(model, solver)
    if again:
        train_again(model, solver, plan, start, len(history), best, asked=asked)
        return solver, history, best, ()
    if by_default and calibrated and problem.group is None:
        row = fit_proximal_head(model, problem, plan.held_out, len(history), processes)
        if row is not None:
            history.append(row)
            best = len(history) - 1 if row["kept"] else best
    return solver, history, best, ()


def _by_default(model: nn.Module, problem: Problem) -> Solver | Anchored | Ridge:
    """What has been measured to work; where groups are compared, nothing did better than converged cross-entropy."""
    if is_linear(model):
        return Anchored() if problem.group is None else Ridge()
    return CrossEntropy(lean_weight(problem))


def _identity(
    model: nn.Module, solver: Solver | Anchored | Ridge | Auto, plan: Epochs, settings: dict[str, Any]
) -> dict[str, Any]:
    """What makes a checkpoint one of this very call."""
    data: dict[str, Any] = {
        "training data": loader_identity(plan.train), "held-out data": loader_identity(plan.held_out)
    }  # fmt: skip
    if not plan.processes.alone:
        parts = plan.processes.all_objects(data)
        data = {name: [part[name] for part in parts] for name in data}
    own = {"ask": str(plan.problem), "model": module_identity(model), "solver": identity_of(solver)}
    return {**own, **settings, **data}
