"""Lightning: a module that trains any model by a solver, and a callback that judges, keeps the best and calibrates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor, nn

from setpoint.data.rows import Rows, read_batch
from setpoint.decide.calibrate import calibrate
from setpoint.decide.order import preference
from setpoint.errors import BadSetting, missing
from setpoint.integrations.trackers import preference_number, scalars
from setpoint.measure.sample import Sample
from setpoint.problem.language import read_problem
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.processes import Processes
from setpoint.solve.baseline import CrossEntropy
from setpoint.solve.solver import Solver
from setpoint.train.history import History, join, record, score, scores_of
from setpoint.train.trial import judge

try:
    from lightning.pytorch import Callback, LightningModule, Trainer
except ImportError as cause:
    raise missing("lightning", "lightning", cause) from None


class SetpointModule(LightningModule):
    """A Lightning module of a model and the solver that trains it; checkpoints keep the state of both.

    Batches are those of `fit`: `(x, labels)`, `(x, labels, weights)` or a mapping.

    Args:
        model: The network, which gives one score per row.
        solver: The solver.
        warm_epochs: The number of first epochs, which are trained by `solver.warm_up`, balanced cross-entropy for most
            solvers, and fill the memory of the solver.
        optimizer: Makes, from the parameters of model and solver, whatever Lightning accepts from
            `configure_optimizers`; if None, Adam with a learning rate of 0.001.

    Example:
        ```python
        module = SetpointModule(torch.nn.Linear(8, 1), sp.ImplicitThreshold("minimize fnr where fpr <= 5%"))
        Trainer(max_epochs=3).fit(module, train_loader, validation_loader)
        ```
    """

    def __init__(
        self,
        model: nn.Module,
        solver: Solver,
        *,
        warm_epochs: int = 0,
        optimizer: Callable[[list[nn.Parameter]], Any] | None = None,
    ) -> None:
        super().__init__()
        self.model = model
        self.solver = solver
        self.warm = solver.warm_up or CrossEntropy(pos_weight="balanced")
        self.warm_epochs = warm_epochs
        self.make_optimizer = optimizer or _adam

    @property
    def criterion(self) -> Solver:
        """The solver of this epoch."""
        return self.warm if self.current_epoch < self.warm_epochs else self.solver

    def forward(self, x: Any) -> Any:
        return self.model(x)

    def training_step(self, batch: Any, batch_idx: int) -> dict[str, Any]:
        batch = read_batch(batch)
        scores = scores_of(self.model, batch)
        loss = self.criterion(scores, batch.labels, weights=batch.weights, groups=batch.groups, index=batch.index)
        if self.criterion is self.warm:
            self.solver.remember(scores.detach(), batch.labels, weights=batch.weights, groups=batch.groups)
        self.log("loss", loss, on_step=False, on_epoch=True, batch_size=len(scores))
        return {"loss": loss, **_judged(scores, batch)}

    def validation_step(self, batch: Any, batch_idx: int) -> dict[str, Any]:
        batch = read_batch(batch)
        return _judged(scores_of(self.model, batch), batch)

    def configure_optimizers(self) -> Any:
        return self.make_optimizer(list(self.parameters()))

    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any:
        if isinstance(batch, Rows):
            return batch.map(lambda part: part.to(device))
        return super().transfer_batch_to_device(batch, device, dataloader_idx)


class OperatingPointCallback(Callback):
    """A Lightning callback that judges every validation epoch, keeps the best one, and sets the threshold at the end.

    `validation_step` must return a mapping with `scores` and `labels` (and `weights`, `groups` if there are any). If
    `training_step` returns them too, beside `loss`, the values on training data are logged as well. A `SetpointModule`
    does both. The callback logs what `scalars` makes of a row of `history`, and `preference`, one number to monitor:
    larger is better, and every feasible epoch lies above every infeasible one. After `fit`, `point` is the operating
    point.

    Args:
        problem: The problem, or an ask.
        calibration: A loader of rows that choose nothing else, to set the threshold on; if None, the validation rows.
        confidence: The probability with which the bounds are to hold on new data. The certificate is only valid with
            `calibration`.
        keep_best: Whether the module gets the weights of its best epoch back at the end of `fit`.
        on_epoch: Called with each row of history.
        prefix: The beginning of every logged name.

    Raises:
        BadProblem: If the ask cannot be read.
        BadSetting: In validation, if there are several loaders, or `validation_step` returns no scores.

    Example:
        ```python
        callback = OperatingPointCallback("minimize fnr where fpr <= 5%", calibration=loader, confidence=0.95)
        Trainer(max_epochs=3, callbacks=[callback]).fit(module, train_loader, validation_loader)
        callback.point.threshold
        ```
    """

    def __init__(
        self,
        problem: Problem | str,
        *,
        calibration: Iterable[Any] | None = None,
        confidence: float | None = None,
        keep_best: bool = True,
        on_epoch: Callable[[dict[str, Any]], None] | None = None,
        prefix: str = "setpoint/",
    ) -> None:
        self.problem = read_problem(problem)
        self.calibration = calibration
        self.confidence = confidence
        self.keep_best = keep_best
        self.on_epoch = on_epoch
        self.prefix = prefix
        self.history: History = []
        self.best_epoch = -1
        self.point: OperatingPoint | None = None
        self._train: list[Sample] = []
        self._held_out: list[Sample] = []
        self._best: dict[str, Any] | None = None

    @property
    def state_key(self) -> str:
        """The name of the callback's state in a checkpoint; callbacks with different problems have different names."""
        return f"{type(self).__name__}[{self.problem}]"

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._train.clear()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if _has_scores(outputs):
            self._train.append(_read(outputs))

    def on_validation_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._held_out.clear()

    def on_validation_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        if dataloader_idx > 0:
            raise BadSetting("OperatingPointCallback judges one validation loader, but there are several; pass one")
        if not _has_scores(outputs):
            raise BadSetting(
                "OperatingPointCallback needs scores: let validation_step return "
                '{"scores": scores, "labels": labels}, one number per sample'
            )
        self._held_out.append(_read(outputs))

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if trainer.sanity_checking:
            return
        held_out = gathered(join(self._held_out))
        point = judge(self.problem, held_out)
        row = self._row(pl_module, point)
        logged = {**scalars(row), "preference": preference_number(point)}
        pl_module.log_dict(
            {self.prefix + name: value for name, value in logged.items()}, sync_dist=trainer.world_size > 1
        )
        if trainer.state.fn != "fit":
            return
        self.history.append(row)
        if not self.keep_best or self._best is None or preference(point) > tuple(self._best["preference"]):
            self.best_epoch = pl_module.current_epoch
            self._best = {"preference": list(preference(point)), "held_out": asdict(held_out)}
            if self.keep_best:
                self._best["module"] = {n: v.detach().cpu().clone() for n, v in pl_module.state_dict().items()}
        solver = _solver_of(pl_module)
        if solver is not None and solver is not getattr(pl_module, "warm", None):
            solver.step_metric(solver.progress(held_out, preference(point)[1]))
        if self.on_epoch is not None and trainer.is_global_zero:
            self.on_epoch(row)

    def _row(self, pl_module: LightningModule, on_held_out: OperatingPoint) -> dict[str, Any]:
        """A row as `fit` writes it; without the values on training data when nobody handed them over."""
        solver = _solver_of(pl_module)
        status = {} if solver is None else solver.status()
        name = "" if solver is None else type(solver).__name__
        seen = gathered(join(self._train)) if self._train else None
        self._train.clear()
        if seen is not None and seen.has_both_classes:
            on_train = judge(self.problem, seen)
            return record(self.problem, pl_module.current_epoch, name, seen, on_train, on_held_out, **status)
        return {
            "epoch": pl_module.current_epoch,
            "solver": name,
            "held_out": on_held_out.objective,
            "bounds": {
                str(c): {"held_out": on_held_out.rates[str(c.quantity)]} for c in self.problem.constraints
            },
            "feasible": on_held_out.feasible,
            **status,
        }  # fmt: skip

    def on_fit_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self._best is not None and self.keep_best:
            pl_module.load_state_dict(self._best["module"])
        if self.calibration is not None:
            sample = score(pl_module, self.calibration)
        elif self._best is not None:
            sample = Sample(**self._best["held_out"])
        else:
            return
        self.point = calibrate(
            self.problem, sample.scores.cpu(), sample.labels.cpu(), weights=sample.weights, groups=sample.groups,
            confidence=self.confidence,
        )  # fmt: skip

    def state_dict(self) -> dict[str, Any]:
        return {"history": self.history, "best_epoch": self.best_epoch, "best": self._best}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.history = list(state_dict["history"])
        self.best_epoch = state_dict["best_epoch"]
        self._best = state_dict["best"]


def gathered(sample: Sample) -> Sample:
    """The samples of all processes joined, by rank. Every process must call this, with tensors on the CPU."""
    parts = Processes.of().all_objects((sample.scores, sample.labels, sample.weights, sample.groups))
    return join([Sample(*part) for part in parts])


def _adam(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=0.001)


def _judged(scores: Tensor, batch: Rows) -> dict[str, Any]:
    return {"scores": scores.detach(), "labels": batch.labels, "weights": batch.weights, "groups": batch.groups}


def _has_scores(outputs: Any) -> bool:
    return isinstance(outputs, Mapping) and "scores" in outputs and "labels" in outputs


def _read(outputs: Mapping[str, Any]) -> Sample:
    given = {name: outputs.get(name) for name in ("scores", "labels", "weights", "groups")}
    parts: dict[str, Any] = {name: None if part is None else part.detach().cpu() for name, part in given.items()}
    return Sample(**parts)


def _solver_of(module: LightningModule) -> Solver | None:
    """The solver that the module trains by now: its criterion, or the first solver among its parts."""
    if isinstance(module, SetpointModule):
        return module.criterion
    return next((part for part in module.modules() if isinstance(part, Solver)), None)
