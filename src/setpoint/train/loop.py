"""The training loop: warm start, train, judge every epoch by the true rates, keep the best, calibrate."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from setpoint.errors import BadSetting
from setpoint.measure.count import count
from setpoint.measure.sample import Sample
from setpoint.measure.step import SigmoidStep
from setpoint.problem.language import ask
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.solve.baseline import CrossEntropy
from setpoint.solve.implicit import ImplicitThreshold
from setpoint.solve.solver import Solver
from setpoint.train.batch import Batch, read_batches
from setpoint.train.calibrate import calibrate, evaluate
from setpoint.train.select import preference

History = list[dict[str, Any]]


@dataclass(frozen=True)
class FitResult:
    """The trained model, the point to run it at, and what happened on the way, an epoch a row."""

    model: nn.Module
    point: OperatingPoint
    history: History
    solver: Solver
    best_epoch: int


def fit(
    model: nn.Module,
    problem: Problem | str,
    train: Iterable[Any],
    held_out: Iterable[Any],
    solver: Solver | None = None,
    *,
    calibration: Iterable[Any] | None = None,
    confidence: float | None = None,
    epochs: int = 30,
    warm_start: float = 0.3,
    optimizer: Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer] | None = None,
    on_epoch: Callable[[dict[str, Any]], None] | None = None,
) -> FitResult:
    """Train a model for a problem and set its threshold.

    The first `warm_start` share of the epochs is balanced cross-entropy, which keeps the solver from starting
    on meaningless thresholds; then `solver` (implicit thresholds, if none is given). After every epoch the
    model is judged on `held_out` by the exact metric at its best cut; the best epoch, feasible ones first, is
    kept. The threshold is then set on `calibration`, or on `held_out` again when there is none; with
    `confidence` it carries a certificate, which is only honest when `calibration` is data of its own.

    The default optimizer is Adam, 0.01 for a linear model and 0.001 for others, falling to zero on a cosine.
    """
    problem = ask(problem) if isinstance(problem, str) else problem
    if epochs < 1 or not 0 <= warm_start <= 1:
        raise BadSetting(f"fit needs epochs >= 1 and a warm_start share of 0 to 1, got {epochs} and {warm_start}")
    solver = ImplicitThreshold(problem) if solver is None else solver
    device = _device(model)
    solver.to(device)
    make = _adam(model) if optimizer is None else optimizer
    stepper = make([*model.parameters(), *solver.parameters()])
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(stepper, epochs) if optimizer is None else None
    warm_epochs = 0 if isinstance(solver, CrossEntropy) else round(warm_start * epochs)
    warm = CrossEntropy(pos_weight="balanced").to(device)

    history: History = []
    best: tuple[tuple[bool, float], int, dict[str, Tensor]] | None = None
    for epoch in range(epochs):
        criterion = warm if epoch < warm_epochs else solver
        loss, seen = _train_epoch(model, criterion, stepper, read_batches(train, device))
        if schedule is not None:
            schedule.step()
        on_train = evaluate(problem, seen.scores, seen.labels, weights=seen.weights)
        judged = score(model, held_out)
        on_held_out = evaluate(problem, judged.scores, judged.labels, weights=judged.weights)
        history.append(
            {
                "epoch": epoch,
                "solver": type(criterion).__name__,
                "loss": loss,
                "soft": _soft_objective(problem, seen, on_train, criterion),
                "train": on_train.objective,
                "held_out": on_held_out.objective,
                "bounds": {
                    str(c): {
                        "train": on_train.rates[str(c.quantity)],
                        "held_out": on_held_out.rates[str(c.quantity)],
                    }
                    for c in problem.constraints
                },
                "feasible": on_held_out.feasible,
                **criterion.status(),
            }
        )
        if best is None or preference(on_held_out) > best[0]:
            best = preference(on_held_out), epoch, copy.deepcopy(model.state_dict())
        if on_epoch is not None:
            on_epoch(history[-1])
    assert best is not None
    model.load_state_dict(best[2])
    model.eval()
    final = score(model, held_out if calibration is None else calibration)
    point = calibrate(problem, final.scores, final.labels, weights=final.weights, confidence=confidence)
    return FitResult(model, point, history, solver, best[1])


def score(model: nn.Module, loader: Iterable[Any]) -> Sample:
    """Scores of everything that a loader yields, by the model in `eval()` mode."""
    was_training = model.training
    model.eval()
    with torch.no_grad():
        parts = [_sample(_scores(model, batch), batch) for batch in read_batches(loader, _device(model))]
    model.train(was_training)
    return _join(parts)


def _train_epoch(
    model: nn.Module, criterion: Solver, optimizer: torch.optim.Optimizer, batches: Iterable[Batch]
) -> tuple[float, Sample]:
    """One pass; the mean loss, and the scores as they were when each batch was seen."""
    model.train()
    criterion.train()
    losses, parts = [], []
    for batch in batches:
        scores = _scores(model, batch)
        loss = criterion(scores, batch.labels, weights=batch.weights, groups=batch.groups, index=batch.index)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        parts.append(_sample(scores.detach(), batch))
    seen = _join(parts)
    return float(torch.stack(losses).mean()), seen


def _scores(model: nn.Module, batch: Batch) -> Tensor:
    scores: Tensor = model(batch.x)
    return scores.squeeze(-1) if scores.dim() == 2 and scores.shape[1] == 1 else scores


def _sample(scores: Tensor, batch: Batch) -> Sample:
    return Sample(scores, batch.labels, batch.weights)


def _join(parts: list[Sample]) -> Sample:
    if not parts:
        raise BadSetting(
            "the loader yielded no batch; pass a list, a DataLoader or sp.Batches, not a spent generator"
        )
    weights = [part.weights for part in parts if part.weights is not None]
    return Sample(
        torch.cat([part.scores for part in parts]),
        torch.cat([part.labels for part in parts]),
        torch.cat(weights) if weights else None,
    )


def _soft_objective(problem: Problem, seen: Sample, point: OperatingPoint, criterion: Solver) -> float:
    """The objective through the smooth step at the true threshold: what the gradient sees."""
    step = SigmoidStep(float(criterion.status().get("temperature") or 1.0))
    thresholds = torch.tensor(point.threshold, dtype=torch.float64).reshape(-1)
    counts = count(seen.scores.double(), seen.labels, thresholds, step, weights=seen.weights)
    return float(problem.objective(counts).mean())


def _device(model: nn.Module) -> torch.device:
    return next((p.device for p in model.parameters()), torch.device("cpu"))


def _adam(model: nn.Module) -> Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]:
    rate = 0.01 if isinstance(model, nn.Linear) else 0.001
    return lambda parameters: torch.optim.Adam(parameters, lr=rate)
