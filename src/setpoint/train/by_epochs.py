"""Training by epochs: warm start, train, judge by the true rates after each epoch, keep the best."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.utils.data import DistributedSampler

from setpoint.data.batch import index_across
from setpoint.data.parts import Data, Pooled
from setpoint.data.rows import Rows
from setpoint.decide.order import preference
from setpoint.measure.classes import CLASSES
from setpoint.measure.labels import LABELS
from setpoint.measure.sample import Sample
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.processes import Processes
from setpoint.solve.baseline import CrossEntropy
from setpoint.solve.solver import Solver
from setpoint.train.accumulate import accumulate as accumulate_parts
from setpoint.train.accumulate import given_to
from setpoint.train.adam import Adam
from setpoint.train.average import RunningAverage
from setpoint.train.correct import correct_if_due, correctable
from setpoint.train.draws import Draws
from setpoint.train.history import device_of, join, join_all, record, score
from setpoint.train.identity import identity_of
from setpoint.train.method import Trained
from setpoint.train.progress import Progress
from setpoint.train.refined import refined_loss
from setpoint.train.together import average_gradients, nothing_of, share_state, training_scores
from setpoint.train.trial import judge
from setpoint.train.work import Work

OptimizerMaker = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]


@dataclass(frozen=True)
class ByEpochs:
    """Train a network by a solver, epoch by epoch, and keep the best epoch.

    Args:
        make: Gives the model to train, at its initial parameters.
        solver: The loss to train with.
        epochs: The largest number of passes over the training rows.
        warm_start: The share of the epochs that come before the solver and fill its memory; they are trained by
            `solver.warm_up`, balanced cross-entropy for most. Solvers with `starts_cold` skip it.
        patience: Stop after this many epochs without a better one; None never stops early.
        optimizer: Makes the optimizer from the parameters; None is Adam on a cosine schedule.
        accumulate: The number of batches that count as one.
        by_loss: Choose the epoch with the least held-out loss after the best rescaling of the scores, instead of the
            epoch with the best exact metric.
        averaged: Judge and keep the running average of the parameters.
        keep: The most epochs whose parameters are kept as `snapshots`, evenly spread after the warm start.
        last: Train until this epoch and keep it, however good it is.

    Example:
        >>> import torch, setpoint as sp
        >>> x, labels = torch.arange(90.0).unsqueeze(-1), (torch.arange(90) >= 45).float()
        >>> train, held_out, rest = (sp.Batches(x[k::3], labels[k::3]) for k in range(3))
        >>> ask = "minimize fnr where fpr <= 10%"
        >>> model = torch.nn.Linear(1, 1)
        >>> method = sp.methods.ByEpochs(lambda: model, sp.CrossEntropy(), epochs=3)
        >>> result = sp.fit(None, ask, train, held_out, method, calibration=rest)
        >>> [row["epoch"] for row in result.history]
        [0, 1, 2]
    """

    make: Callable[[], nn.Module]
    solver: Solver
    epochs: int
    warm_start: float = 0.0
    patience: int | None = None
    optimizer: OptimizerMaker | None = None
    accumulate: int = 1
    by_loss: bool = False
    averaged: bool = False
    keep: int = 0
    last: int | None = None

    @property
    def expected_rows(self) -> int:
        """One per epoch; early stopping may save some."""
        return self.epochs

    def refuses(self, problem: Problem, data: Data) -> str | None:
        """None: any data can be trained on by epochs."""
        return None

    def train(self, problem: Problem, data: Data, work: Work) -> Trained:
        """Train the model that `make` gives, in place."""
        if isinstance(data.train, Pooled):
            # Count the rows now, before any order is drawn that a resumed training has to draw again.
            _ = data.train.sizes
        model = self.make()
        with self.solver.inside(model):
            return self._train(model, problem, data, work)

    def _train(self, model: nn.Module, problem: Problem, data: Data, work: Work) -> Trained:
        solver = self.solver
        device = device_of(model)
        solver.to(device)
        stepper: torch.optim.Optimizer | Adam
        if self.optimizer is None:
            stepper = adam(model, solver, self.epochs)
        else:
            stepper = self.optimizer([*model.parameters(), *solver.parameters()])
        warm_epochs = 0 if solver.starts_cold else round(self.warm_start * self.epochs)
        plain = problem.kind in (CLASSES, LABELS)
        warm = (solver.warm_up or CrossEntropy(pos_weight=None if plain else "balanced")).to(device)

        processes, store = work.processes, work.store
        for criterion in (solver, warm):
            criterion.across(processes.group if not processes.alone or Processes.of().alone else False)
        train = index_across(data.train, processes) if solver.needs_index else data.train
        average = RunningAverage(model) if self.averaged else None
        judged_model = model if average is None else average.module
        modules: dict[str, nn.Module] = {"model": model, "solver": solver, "warm start": warm}
        if average is not None:
            modules["average"] = average
        progress = Progress(modules, stepper, Draws([train, data.held_out]), processes)
        progress.resume(store, {**work.identity, "optimizer": identity_of(stepper)})
        while not progress.stopped:
            epoch = progress.epoch
            criterion = warm if epoch < warm_epochs else solver
            sampler = getattr(train, "sampler", None)
            if isinstance(sampler, DistributedSampler):
                sampler.set_epoch(epoch)
            batches = progress.batches(train, device, store, self.accumulate)
            waiting = solver if criterion is warm else None
            loss, seen = _train_epoch(model, criterion, stepper, batches, progress, average, waiting)
            if isinstance(stepper, Adam):
                stepper.end_epoch()
            share_state(model, processes, parameters=False)
            judged = score(judged_model, data.held_out, processes)
            on_held_out = judge(problem, judged)
            on_train = _judge_like(on_held_out, seen)
            criterion.look()
            status = {"loss": loss, **criterion.status()}
            merit = preference(on_held_out)
            if self.by_loss:
                status["held_out_loss"] = refined_loss(judged)
                merit = (True, -status["held_out_loss"])
            name = type(criterion).__name__
            progress.history.append(record(problem, epoch, name, seen, on_train, on_held_out, **status))
            progress.judged(merit if self.last is None else (True, float(epoch)), judged_model)
            if self.keep and epoch >= warm_epochs and (self.epochs - 1 - epoch) % -(-self.epochs // self.keep) == 0:
                progress.keep(judged_model)
            if criterion is solver:
                solver.step_metric(solver.progress(judged, preference(on_held_out)[1]))
            work.tell(progress.history[-1])
            stale = self.patience is not None and epoch - max(progress.best_epoch, warm_epochs) >= self.patience
            progress.next_epoch(stopped=stale or epoch + 1 == self.epochs or epoch == self.last)
            if progress.stopped or store.is_due(epoch_ended=True):
                store.save(progress.state())
        model.load_state_dict(progress.best_state or {})
        settled = replace(self, warm_start=0.0, patience=None, averaged=True, last=progress.best_epoch)
        snapshots = {} if not self.keep else {**progress.snapshots, progress.best_epoch: progress.best_state or {}}
        return Trained(model, progress.history, progress.best_epoch, settled, snapshots=snapshots)


def _train_epoch(
    model: nn.Module,
    criterion: Solver,
    optimizer: torch.optim.Optimizer | Adam,
    batches: Iterable[list[Rows]],
    progress: Progress,
    average: RunningAverage | None,
    waiting: Solver | None,
) -> tuple[float, Sample]:
    """Train for one pass; give the mean loss, and the scores that each batch had in its step.

    The solver that waits for the end of the warm start remembers these scores.
    """
    model.train()
    criterion.train()
    batch: Rows | None = None
    corrected = correctable(criterion)
    for parts in batches:
        correct_if_due(model, corrected, parts, progress.ahead)
        batch = parts[-1] if parts else nothing_of(batch)
        optimizer.zero_grad()
        if len(parts) > 1:
            loss, scores = accumulate_parts(model, criterion, parts)
        else:
            scores = training_scores(model, batch)
            loss = criterion(scores, batch.labels, **given_to(criterion, batch))
            loss.backward()
        average_gradients(model, progress.processes)
        optimizer.step()
        if average is not None:
            average.update_parameters(model)
        samples = of_parts(scores, parts or [batch])
        if waiting is not None:
            own = join(samples)
            waiting.remember(own.scores, own.labels, weights=own.weights, groups=own.groups)
        progress.saw(loss, samples)
    seen = join_all(progress.seen, progress.processes)
    return float(progress.loss or 0.0) / max(progress.steps, 1), seen


def _judge_like(on_held_out: OperatingPoint, seen: Sample) -> OperatingPoint:
    """The training rows at their best threshold; several classes or labels at the decision of the held-out rows."""
    problem = on_held_out.problem
    if problem.kind not in (CLASSES, LABELS):
        return judge(problem, seen)
    return OperatingPoint.at(problem, on_held_out.thresholds, seen.double())


def of_parts(scores: Tensor, parts: list[Rows]) -> list[Sample]:
    """Cut the joined scores of several batches into one sample per batch."""
    pieces = scores.detach().split([len(part.labels) for part in parts])
    return [part.sample(own) for own, part in zip(pieces, parts)]


def adam(model: nn.Module, solver: Solver, epochs: int) -> Adam:
    """Adam with the rates of the study of networks; parameters of the solver, such as prices, have no weight decay.

    The rate of 0.003 is for stacks of linear layers only: it can make a convolutional network fail to train.
    """
    own = [*model.parameters()]
    known = {id(parameter) for parameter in own}
    others: list[Tensor] = [parameter for parameter in solver.parameters() if id(parameter) not in known]
    if isinstance(model, nn.Linear):
        return Adam([([*own, *others], 0.0)], 0.01, epochs)
    plain = all(isinstance(m, nn.Linear) for m in model.modules() if any(True for _ in m.parameters(recurse=False)))
    return Adam([([*own], 1e-4), (others, 0.0)], 0.003 if plain else 0.001, epochs)
