"""Fit a model to a problem: train, judge by the true rates, keep the best, set the threshold."""

from __future__ import annotations

import copy
import math
import os
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DistributedSampler

from setpoint.errors import BadSetting, SharedData
from setpoint.measure.sample import Sample
from setpoint.problem.language import read_problem
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.processes import ALONE, Processes, ProcessGroup
from setpoint.solve.baseline import CrossEntropy
from setpoint.solve.last_layer import ImplicitLastLayer
from setpoint.solve.losses import BaseLoss, MiniBatchAUC
from setpoint.solve.sample_prices import SamplePriced
from setpoint.solve.solver import Solver
from setpoint.train.accumulate import accumulate as accumulate_parts
from setpoint.train.again import AllRows
from setpoint.train.anchored import Anchored, Ridge, fit_linear
from setpoint.train.auto import Auto, fit_auto
from setpoint.train.average import RunningAverage
from setpoint.train.batch import Batch, halves
from setpoint.train.calibrate import calibrate_or_warn, evaluate
from setpoint.train.checkpoint import Checkpoint
from setpoint.train.draws import Draws
from setpoint.train.ensemble import fit_ensemble
from setpoint.train.head import fit_proximal_head
from setpoint.train.history import History, device_of, join_all, record, score
from setpoint.train.identity import identity_of, loader_identity, module_identity
from setpoint.train.index import index_across
from setpoint.train.progress import Progress
from setpoint.train.refusal import refuse_confidence
from setpoint.train.select import preference
from setpoint.train.together import (
    average_gradients,
    averages_itself,
    every_batch,
    nothing_of,
    share_state,
    training_scores,
)
from setpoint.train.trial import Trial

Report = Callable[[dict[str, Any]], None]
OptimizerMaker = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]


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
    refit: bool = False,
    ensemble: int = 1,
    seed: int = 0,
    on_epoch: Report | None = None,
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    process_group: ProcessGroup = None,
    accumulate: int = 1,
) -> FitResult:
    """Train a model for a problem and set its threshold.

    With no `solver` the choice is made by what has been measured to work. A linear model (`nn.Linear` with one
    output) is trained full batch by the anchored recipe (`Anchored`). A network is trained by cross-entropy and stopped
    early by its loss on the held-out rows; then, when there are `calibration` data for the threshold, its last layer is
    re-fitted to the problem on the held-out rows and kept only if that helps on the half it was not fitted on.

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

    With `refit`, a network is trained by cross-entropy and judged by its loss on the held-out rows; then it is trained
    again from where it started, for as many epochs as were best, on training and held-out rows together: rows that
    nothing more is chosen on need not lie idle. Both times it is the running average of the parameters that counts.
    History and best epoch are those of the first training. It takes `calibration` data, for the threshold must not be
    set on rows that were trained on.

    With `ensemble` = k, k copies of the model are drawn and trained from the seeds `seed`, `seed + 1`, ..., and the
    result's model averages their logits; the given model is left as it was.

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

    if refit:
        _refuse_refit(model, solver, calibration)
    if isinstance(accumulate, bool) or not isinstance(accumulate, int) or accumulate < 1:
        raise BadSetting(f"accumulate is the number of batches that count as one, from 1 up, got {accumulate!r}")
    kept = Checkpoint.of(checkpoint)
    kept.processes = processes
    settings: dict[str, Any] = {
        "epochs": epochs, "warm_start": warm_start, "patience": patience, "ensemble": ensemble,
        **({} if processes.alone else {"processes": processes.size}),
        **({} if accumulate == 1 else {"accumulate": accumulate}),
        **({} if not refit else {"refit": True}),
    }  # fmt: skip
    share_state(model, processes, parameters=True)

    def train_one(one: nn.Module, own: Solver | Anchored | Ridge | Auto | None, state: Checkpoint) -> FitResult:
        own, history, best, comparison = _train(
            one, problem, own, train, held_out, refit_head=calibration is not None, epochs=epochs,
            warm_start=warm_start, patience=patience, optimizer=optimizer, on_epoch=on_epoch, checkpoint=state,
            settings=settings, processes=processes, accumulate=accumulate, refit=refit,
        )  # fmt: skip
        result = FitResult(one.eval(), set_point(one), history, own, best, comparison)
        state.close()
        return result

    def set_point(trained: nn.Module) -> OperatingPoint:
        sample = score(trained, held_out if calibration is None else calibration, processes)
        return calibrate_or_warn(
            problem, sample.scores, sample.labels, confidence, weights=sample.weights, groups=sample.groups
        )

    if ensemble == 1:
        return train_one(model, solver, kept)
    if isinstance(solver, ImplicitLastLayer):
        raise BadSetting("ImplicitLastLayer belongs to one model's head; train the members of an ensemble by hand")
    if kept.open(identity_of({"ask": problem, "solver": solver, **settings, "seed": seed})) is None:
        kept.save({})
    result = fit_ensemble(
        lambda one, drawn: train_one(one, copy.deepcopy(solver), kept.part(f"seed-{drawn}")),
        model, ensemble, set_point, seed=seed,
    )  # fmt: skip
    kept.close()
    return result


def _train(
    model: nn.Module,
    problem: Problem,
    solver: Solver | Anchored | Ridge | Auto | None,
    train: Iterable[Any],
    held_out: Iterable[Any],
    *,
    refit_head: bool,
    epochs: int,
    warm_start: float,
    patience: int | None,
    optimizer: OptimizerMaker | None,
    on_epoch: Report | None,
    checkpoint: Checkpoint,
    settings: dict[str, Any],
    processes: Processes,
    accumulate: int,
    refit: bool,
) -> tuple[Solver | Anchored | Ridge | Auto, History, int, tuple[Trial, ...]]:
    """Train in place: the solver that was used, the history, the row of it that the model now is of, and what `Auto`
    chose from."""
    is_linear = isinstance(model, nn.Linear) and model.out_features == 1
    by_default = solver is None
    if solver is None:
        solver = Anchored() if is_linear and problem.group is None else CrossEntropy()
        patience = patience or max(5, epochs // 4)
    identity = _identity(problem, model, solver, train, held_out, settings, processes) if checkpoint.is_on else {}
    if isinstance(solver, Auto | Anchored | Ridge):
        # Full-batch recipes and the choice between candidates need all rows in one place.
        held_out = every_batch(held_out, processes)
        whole = train if isinstance(solver, Auto) and not is_linear else every_batch(train, processes)
    if isinstance(solver, Auto):
        if checkpoint.open(identity) is None:
            checkpoint.save({})

        def train_epochs(model: nn.Module, solver: Solver, epochs: int, first: int) -> tuple[History, int]:
            def report(row: dict[str, Any]) -> None:
                row["epoch"] += first
                if on_epoch is not None:
                    on_epoch(row)

            return _fit_epochs(
                model, problem, solver, train, held_out, epochs=epochs, warm_start=0.0,
                patience=patience or max(5, epochs // 4), optimizer=optimizer, on_epoch=report,
                checkpoint=checkpoint.part(f"from-{first}"), identity={**identity, "trial": identity_of(solver)},
                processes=processes, judged_by=ALONE, accumulate=accumulate,
            )  # fmt: skip

        return solver, *fit_auto(
            model, problem, solver, whole, held_out, train_epochs, epochs=epochs, calibrated=refit_head,
            on_epoch=on_epoch, processes=processes,
        )  # fmt: skip
    if isinstance(solver, Anchored | Ridge):
        if not isinstance(model, nn.Linear) or model.out_features != 1:
            name = type(solver).__name__
            raise BadSetting(f"{name} trains nn.Linear models with one output; use a Solver for other models")
        history, best = fit_linear(
            model, problem, solver, whole, held_out, on_epoch, checkpoint=checkpoint, identity=identity
        )
        return solver, history, best, ()
    start = copy.deepcopy(model.state_dict()) if refit else {}
    history, best = _fit_epochs(
        model, problem, solver, train, held_out,
        epochs=epochs, warm_start=warm_start, patience=patience, optimizer=optimizer, on_epoch=on_epoch,
        checkpoint=checkpoint, identity=identity, processes=processes, judged_by=processes, accumulate=accumulate,
        by_loss=by_default or refit, averaged=refit,
    )  # fmt: skip
    if refit:
        model.load_state_dict(start)
        _fit_epochs(
            model, problem, solver, AllRows(train, held_out), held_out,
            epochs=epochs, warm_start=0.0, patience=None, optimizer=optimizer, on_epoch=None,
            checkpoint=checkpoint.part("again"), identity=identity, processes=processes, judged_by=processes,
            accumulate=accumulate, averaged=True, last=best,
        )  # fmt: skip
        return solver, history, best, ()
    if by_default and refit_head and problem.group is None:
        row = fit_proximal_head(model, problem, held_out, len(history), processes)
        if row is not None:
            history.append(row)
            best = len(history) - 1 if row["kept"] else best
    return solver, history, best, ()


def _identity(
    problem: Problem,
    model: nn.Module,
    solver: Solver | Anchored | Ridge | Auto,
    train: Iterable[Any],
    held_out: Iterable[Any],
    settings: dict[str, Any],
    processes: Processes,
) -> dict[str, Any]:
    """What makes a checkpoint one of this very call."""
    data: dict[str, Any] = {"training data": loader_identity(train), "held-out data": loader_identity(held_out)}
    if not processes.alone:
        parts = processes.all_objects(data)
        data = {name: [part[name] for part in parts] for name in data}
    return {"ask": str(problem), "model": module_identity(model), "solver": identity_of(solver), **settings, **data}


def _fit_epochs(
    model: nn.Module,
    problem: Problem,
    solver: Solver,
    train: Iterable[Any],
    held_out: Iterable[Any],
    *,
    epochs: int,
    warm_start: float,
    patience: int | None,
    optimizer: OptimizerMaker | None,
    on_epoch: Report | None,
    checkpoint: Checkpoint,
    identity: dict[str, Any],
    processes: Processes,
    judged_by: Processes,
    accumulate: int,
    by_loss: bool = False,
    averaged: bool = False,
    last: int | None = None,
) -> tuple[History, int]:
    """Warm start, train, judge every epoch, keep the best: the history and the epoch that the model now is of.

    `judged_by` are the processes that share the held-out rows: those that train, or each by itself if it has them all.
    The best epoch is that of the exact metric, or `by_loss` that of the least loss. With `averaged` the running average
    of the model is judged and kept; `last` names an epoch that is kept whatever it is worth, and training ends there.
    """
    device = device_of(model)
    solver.to(device)
    make = optimizer or _adam(model)
    stepper = make([*model.parameters(), *solver.parameters()])
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(stepper, epochs) if optimizer is None else None
    starts_cold = isinstance(solver, CrossEntropy | BaseLoss | MiniBatchAUC | SamplePriced)
    warm_epochs = 0 if starts_cold else round(warm_start * epochs)
    warm = CrossEntropy(pos_weight="balanced").to(device)

    for criterion in (solver, warm):
        criterion.across(processes.group if not processes.alone or Processes.of().alone else False)

    if isinstance(solver, SamplePriced):
        train = index_across(train, processes)

    average = RunningAverage(model) if averaged else None
    judged_model = model if average is None else average.model
    modules: dict[str, nn.Module] = {"model": model, "solver": solver, "warm start": warm}
    if average is not None:
        modules["average"] = average
    progress = Progress(modules, stepper, schedule, Draws([train, held_out]), processes)
    progress.resume(checkpoint, {**identity, "optimizer": identity_of(stepper)})
    while not progress.stopped:
        epoch = progress.epoch
        criterion = warm if epoch < warm_epochs else solver
        sampler = getattr(train, "sampler", None)
        if isinstance(sampler, DistributedSampler):
            sampler.set_epoch(epoch)
        batches = progress.batches(train, device, checkpoint, accumulate)
        loss, seen = _train_epoch(model, criterion, stepper, batches, progress, average)
        if schedule is not None:
            schedule.step()
        share_state(model, processes, parameters=False)
        judged = score(judged_model, held_out, judged_by)
        on_train, on_held_out = _judge(problem, seen), _judge(problem, judged)
        status = {"loss": loss, **criterion.status()}
        merit = preference(on_held_out)
        if by_loss:
            status["held_out_loss"] = _loss_on(solver, judged)
            merit = (True, -status["held_out_loss"])
        progress.history.append(record(problem, epoch, type(criterion).__name__, seen, on_train, on_held_out, **status))
        progress.judged(merit if last is None else (True, float(epoch)), judged_model)
        if criterion is solver:
            solver.step_metric(preference(on_held_out)[1])
        if on_epoch is not None:
            on_epoch(progress.history[-1])
        stale = patience is not None and epoch - max(progress.best_epoch, warm_epochs) >= patience
        progress.next_epoch(stopped=stale or epoch + 1 == epochs or epoch == last)
        if progress.stopped or checkpoint.is_due(epoch_ended=True):
            checkpoint.save(progress.state())
    model.load_state_dict(progress.best_state or {})
    return progress.history, progress.best_epoch


@torch.no_grad()
def _loss_on(solver: Solver, sample: Sample) -> float:
    solver.eval()
    loss = float(solver.loss(sample, None))
    # Where training has run away, any other epoch is better.
    return loss if math.isfinite(loss) else math.inf


def _refuse_refit(model: nn.Module, solver: Any, calibration: Any) -> None:
    if not (solver is None or isinstance(solver, CrossEntropy)) or (
        solver is None and isinstance(model, nn.Linear) and model.out_features == 1
    ):
        raise BadSetting(
            "refit trains a network again by cross-entropy on all rows; leave the solver out or pass sp.CrossEntropy()"
        )
    if averages_itself(model):
        raise BadSetting("refit keeps an average of the model's parameters; pass the model itself, without a wrapper")
    if calibration is None:
        raise BadSetting("refit trains on the held-out rows, so the threshold needs others: pass calibration= data")


def _train_epoch(
    model: nn.Module,
    criterion: Solver,
    optimizer: torch.optim.Optimizer,
    batches: Iterable[list[Batch]],
    progress: Progress,
    average: RunningAverage | None,
) -> tuple[float, Sample]:
    """One pass; the mean loss, and the scores as they were when each batch was seen."""
    model.train()
    criterion.train()
    batch: Batch | None = None
    for parts in batches:
        batch = parts[-1] if parts else nothing_of(batch)
        optimizer.zero_grad()
        if len(parts) > 1:
            loss, scores = accumulate_parts(model, criterion, parts)
        else:
            scores = training_scores(model, batch)
            loss = criterion(scores, batch.labels, weights=batch.weights, groups=batch.groups, index=batch.index)
            loss.backward()
        average_gradients(model, progress.processes)
        optimizer.step()
        if average is not None:
            average.follow(model)
        progress.saw(loss, of_parts(scores, parts or [batch]))
    seen = join_all(progress.seen, progress.processes)
    return float(progress.loss or 0.0) / max(progress.steps, 1), seen


def of_parts(scores: Tensor, parts: list[Batch]) -> list[Sample]:
    """The scores of several batches in a row, as samples."""
    pieces = scores.detach().split([len(part.labels) for part in parts])
    return [Sample(own, part.labels, part.weights, part.groups) for own, part in zip(pieces, parts)]


def _judge(problem: Problem, sample: Sample) -> OperatingPoint:
    return evaluate(problem, sample.scores, sample.labels, weights=sample.weights, groups=sample.groups)


def _adam(model: nn.Module) -> OptimizerMaker:
    """As the study of networks trains them; what a solver learns, such as prices, does not decay.

    The faster rate is for stacks of linear layers, on which it was found; it can switch a convolutional net off.
    """
    if isinstance(model, nn.Linear):
        return lambda parameters: torch.optim.Adam(parameters, lr=0.01)
    own = {id(parameter) for parameter in model.parameters()}
    plain = all(isinstance(m, nn.Linear) for m in model.modules() if any(True for _ in m.parameters(recurse=False)))

    def make(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        every = list(parameters)
        groups: list[dict[str, Any]] = [
            {"params": [p for p in every if id(p) in own], "weight_decay": 1e-4},
            {"params": [p for p in every if id(p) not in own]},
        ]
        return torch.optim.Adam([group for group in groups if group["params"]], lr=0.003 if plain else 0.001)

    return make
