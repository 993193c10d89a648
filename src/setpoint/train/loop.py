"""Fit a model to a problem: train, judge by the true rates, keep the best, set the threshold."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from setpoint.errors import BadSetting
from setpoint.measure.sample import Sample
from setpoint.problem.language import ask
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.solve.baseline import CrossEntropy
from setpoint.solve.last_layer import ImplicitLastLayer
from setpoint.solve.losses import BaseLoss, MiniBatchAUC
from setpoint.solve.sample_prices import SamplePriced
from setpoint.solve.solver import Solver
from setpoint.train.anchored import Anchored, Ridge, fit_linear
from setpoint.train.auto import Auto, fit_auto
from setpoint.train.batch import Batch, read_batches
from setpoint.train.calibrate import calibrate, evaluate
from setpoint.train.ensemble import fit_ensemble
from setpoint.train.head import fit_proximal_head
from setpoint.train.history import History, device_of, join, record, score, scores_of
from setpoint.train.index import with_index
from setpoint.train.select import preference
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
    ensemble: int = 1,
    seed: int = 0,
    on_epoch: Report | None = None,
) -> FitResult:
    """Train a model for a problem and set its threshold.

    With no `solver` the choice is made by what has been measured to work. A linear model (`nn.Linear` with one
    output) is trained full batch by the anchored recipe (`Anchored`). A network is trained by cross-entropy, and
    then, when there are `calibration` data for the threshold, its last layer is re-fitted to the problem on the
    held-out rows and kept only if that helps on the half it was not fitted on.

    With a `solver`, the first `warm_start` share of the epochs is balanced cross-entropy, which keeps the solver
    from starting on meaningless thresholds (losses that need none, such as `CrossEntropy`, go without). After every
    epoch the model is judged on `held_out` by the exact metric at its best cut; the best epoch, feasible ones first,
    is kept; after `patience` epochs without a better one training stops. The default optimizer is Adam, 0.01 for a
    linear model and 0.001 for others, falling to zero on a cosine.

    The threshold is set on `calibration`, or on `held_out` again when there is none; with `confidence` it carries
    a certificate, which is only honest when `calibration` is data of its own.

    With `ensemble` = k, k copies of the model are drawn and trained from the seeds `seed`, `seed + 1`, ..., and the
    result's model averages their logits; the given model is left as it was.
    """
    problem = ask(problem) if isinstance(problem, str) else problem
    if ensemble != 1:
        if isinstance(solver, ImplicitLastLayer):
            raise BadSetting("ImplicitLastLayer belongs to one model's head; train the members of an ensemble by hand")

        def train_one(fresh: nn.Module, seed: int) -> FitResult:
            return fit(
                fresh, problem, train, held_out, copy.deepcopy(solver), calibration=calibration, epochs=epochs,
                warm_start=warm_start, patience=patience, optimizer=optimizer, on_epoch=on_epoch,
            )  # fmt: skip

        def set_point(together: nn.Module) -> OperatingPoint:
            return _calibrated(together, problem, held_out if calibration is None else calibration, confidence)

        return fit_ensemble(train_one, model, ensemble, set_point, seed=seed)
    if epochs < 1 or not 0 <= warm_start <= 1 or (patience is not None and patience < 1):
        raise BadSetting(
            f"fit needs epochs >= 1, a warm_start share of 0 to 1 and patience >= 1 or None, "
            f"got {epochs}, {warm_start} and {patience}"
        )
    is_linear = isinstance(model, nn.Linear) and model.out_features == 1
    by_default = solver is None
    if solver is None:
        solver = Anchored() if is_linear and problem.group is None else CrossEntropy()
        patience = patience or max(5, epochs // 4)
    comparison: tuple[Trial, ...] = ()
    if isinstance(solver, Auto):

        def train_epochs(model: nn.Module, solver: Solver, epochs: int, first: int) -> tuple[History, int]:
            def report(row: dict[str, Any]) -> None:
                row["epoch"] += first
                if on_epoch is not None:
                    on_epoch(row)

            return _fit_epochs(
                model, problem, solver, train, held_out, epochs=epochs, warm_start=0.0,
                patience=patience or max(5, epochs // 4), optimizer=optimizer, on_epoch=report,
            )  # fmt: skip

        history, best, comparison = fit_auto(
            model, problem, solver, train, held_out, train_epochs,
            epochs=epochs, calibrated=calibration is not None, on_epoch=on_epoch,
        )  # fmt: skip
    elif isinstance(solver, Anchored | Ridge):
        if not isinstance(model, nn.Linear) or model.out_features != 1:
            name = type(solver).__name__
            raise BadSetting(f"{name} trains nn.Linear models with one output; use a Solver for other models")
        history, best = fit_linear(model, problem, solver, train, held_out, on_epoch)
    else:
        history, best = _fit_epochs(
            model, problem, solver, train, held_out,
            epochs=epochs, warm_start=warm_start, patience=patience, optimizer=optimizer, on_epoch=on_epoch,
        )  # fmt: skip
        if by_default and calibration is not None and problem.group is None:
            row = fit_proximal_head(model, problem, held_out, len(history))
            if row is not None:
                history.append(row)
                best = len(history) - 1 if row["kept"] else best
    model.eval()
    point = _calibrated(model, problem, held_out if calibration is None else calibration, confidence)
    return FitResult(model, point, history, solver, best, comparison)


def _calibrated(model: nn.Module, problem: Problem, loader: Iterable[Any], confidence: float | None) -> OperatingPoint:
    sample = score(model, loader)
    return calibrate(
        problem, sample.scores, sample.labels, weights=sample.weights, groups=sample.groups, confidence=confidence
    )


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
) -> tuple[History, int]:
    """Warm start, train, judge every epoch, keep the best: the history and the epoch that the model now is of."""
    device = device_of(model)
    solver.to(device)
    make = optimizer or _adam(model)
    stepper = make([*model.parameters(), *solver.parameters()])
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(stepper, epochs) if optimizer is None else None
    starts_cold = isinstance(solver, CrossEntropy | BaseLoss | MiniBatchAUC | SamplePriced)
    warm_epochs = 0 if starts_cold else round(warm_start * epochs)
    warm = CrossEntropy(pos_weight="balanced").to(device)

    if isinstance(solver, SamplePriced):
        train = with_index(train)

    history: History = []
    best_epoch, best_state, best_judged = -1, model.state_dict(), None
    for epoch in range(epochs):
        criterion = warm if epoch < warm_epochs else solver
        loss, seen = _train_epoch(model, criterion, stepper, read_batches(train, device))
        if schedule is not None:
            schedule.step()
        on_train, on_held_out = _judge(problem, seen), _judge(problem, score(model, held_out))
        status = {"loss": loss, **criterion.status()}
        history.append(record(problem, epoch, type(criterion).__name__, seen, on_train, on_held_out, **status))
        if best_judged is None or preference(on_held_out) > preference(best_judged):
            best_epoch, best_state, best_judged = epoch, copy.deepcopy(model.state_dict()), on_held_out
        if criterion is solver:
            solver.step_metric(preference(on_held_out)[1])
        if on_epoch is not None:
            on_epoch(history[-1])
        if patience is not None and epoch - max(best_epoch, warm_epochs) >= patience:
            break
    model.load_state_dict(best_state)
    return history, best_epoch


def _train_epoch(
    model: nn.Module, criterion: Solver, optimizer: torch.optim.Optimizer, batches: Iterable[Batch]
) -> tuple[float, Sample]:
    """One pass; the mean loss, and the scores as they were when each batch was seen."""
    model.train()
    criterion.train()
    losses: list[Tensor] = []
    parts: list[Sample] = []
    for batch in batches:
        scores = scores_of(model, batch)
        loss = criterion(scores, batch.labels, weights=batch.weights, groups=batch.groups, index=batch.index)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        parts.append(Sample(scores.detach(), batch.labels, batch.weights, batch.groups))
    seen = join(parts)
    return float(torch.stack(losses).mean()), seen


def _judge(problem: Problem, sample: Sample) -> OperatingPoint:
    return evaluate(problem, sample.scores, sample.labels, weights=sample.weights, groups=sample.groups)


def _adam(model: nn.Module) -> OptimizerMaker:
    rate = 0.01 if isinstance(model, nn.Linear) else 0.001
    return lambda parameters: torch.optim.Adam(parameters, lr=rate)
