"""Epochs: warm start, train, judge by the true rates after each, keep the best."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DistributedSampler

from setpoint.data.batch import Batch
from setpoint.data.index import index_across
from setpoint.decide.calibrate import evaluate
from setpoint.decide.order import preference
from setpoint.measure.sample import Sample
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.processes import ALONE, Processes
from setpoint.solve.baseline import CrossEntropy
from setpoint.solve.losses import BaseLoss, MiniBatchAUC
from setpoint.solve.sample_prices import SamplePriced
from setpoint.solve.solver import Solver
from setpoint.train.accumulate import accumulate as accumulate_parts
from setpoint.train.average import RunningAverage
from setpoint.train.checkpoint import Checkpoint
from setpoint.train.correct import correct_if_due, correctable
from setpoint.train.draws import Draws
from setpoint.train.history import History, device_of, join_all, record, score
from setpoint.train.identity import identity_of
from setpoint.train.progress import Progress
from setpoint.train.refined import refined_loss
from setpoint.train.together import average_gradients, nothing_of, share_state, training_scores

Report = Callable[[dict[str, Any]], None]
OptimizerMaker = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]


@dataclass(frozen=True)
class Epochs:
    """What a training by epochs is given, whichever model and solver it is.

    `judged_by` are the processes that share the held-out rows: those that train, or each by itself if it has them
    all. The best epoch is that of the exact metric, or `by_loss` that of the least loss at the best scale and shift
    of the scores. With `averaged` the running average of the model is judged and kept; `last` names an epoch that
    is kept whatever it is worth, and training ends there.
    """

    problem: Problem
    train: Iterable[Any]
    held_out: Iterable[Any]
    checkpoint: Checkpoint
    identity: dict[str, Any]
    epochs: int
    warm_start: float = 0.0
    patience: int | None = None
    optimizer: OptimizerMaker | None = None
    on_epoch: Report | None = None
    processes: Processes = ALONE
    judged_by: Processes = ALONE
    accumulate: int = 1
    by_loss: bool = False
    averaged: bool = False
    last: int | None = None

    def fit(self, model: nn.Module, solver: Solver) -> tuple[History, int]:
        """Train in place: the history, and the epoch that the model now is of."""
        device = device_of(model)
        solver.to(device)
        make = self.optimizer or adam(model)
        stepper = make([*model.parameters(), *solver.parameters()])
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(stepper, self.epochs) if self.optimizer is None else None
        starts_cold = isinstance(solver, CrossEntropy | BaseLoss | MiniBatchAUC | SamplePriced)
        warm_epochs = 0 if starts_cold else round(self.warm_start * self.epochs)
        warm = CrossEntropy(pos_weight="balanced").to(device)

        processes, checkpoint = self.processes, self.checkpoint
        for criterion in (solver, warm):
            criterion.across(processes.group if not processes.alone or Processes.of().alone else False)
        train = index_across(self.train, processes) if isinstance(solver, SamplePriced) else self.train
        average = RunningAverage(model) if self.averaged else None
        judged_model = model if average is None else average.model
        modules: dict[str, nn.Module] = {"model": model, "solver": solver, "warm start": warm}
        if average is not None:
            modules["average"] = average
        progress = Progress(modules, stepper, schedule, Draws([train, self.held_out]), processes)
        progress.resume(checkpoint, {**self.identity, "optimizer": identity_of(stepper)})
        while not progress.stopped:
            epoch = progress.epoch
            criterion = warm if epoch < warm_epochs else solver
            sampler = getattr(train, "sampler", None)
            if isinstance(sampler, DistributedSampler):
                sampler.set_epoch(epoch)
            batches = progress.batches(train, device, checkpoint, self.accumulate)
            loss, seen = _train_epoch(model, criterion, stepper, batches, progress, average)
            if schedule is not None:
                schedule.step()
            share_state(model, processes, parameters=False)
            judged = score(judged_model, self.held_out, self.judged_by)
            on_train, on_held_out = _judge(self.problem, seen), _judge(self.problem, judged)
            criterion.look()
            status = {"loss": loss, **criterion.status()}
            merit = preference(on_held_out)
            if self.by_loss:
                status["held_out_loss"] = refined_loss(judged)
                merit = (True, -status["held_out_loss"])
            name = type(criterion).__name__
            progress.history.append(record(self.problem, epoch, name, seen, on_train, on_held_out, **status))
            progress.judged(merit if self.last is None else (True, float(epoch)), judged_model)
            if criterion is solver:
                solver.step_metric(solver.progress(judged, preference(on_held_out)[1]))
            if self.on_epoch is not None:
                self.on_epoch(progress.history[-1])
            stale = self.patience is not None and epoch - max(progress.best_epoch, warm_epochs) >= self.patience
            progress.next_epoch(stopped=stale or epoch + 1 == self.epochs or epoch == self.last)
            if progress.stopped or checkpoint.is_due(epoch_ended=True):
                checkpoint.save(progress.state())
        model.load_state_dict(progress.best_state or {})
        return progress.history, progress.best_epoch


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
    waiting = correctable(criterion)
    for parts in batches:
        correct_if_due(model, waiting, parts, progress.ahead)
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


def adam(model: nn.Module) -> OptimizerMaker:
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
