"""Hugging Face: a `Trainer` that trains by a solver, judges by the exact metric, and resumes."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint.decide.calibrate import calibrate
from setpoint.errors import BadFile, BadLabels, BadSetting, ShapeMismatch, missing
from setpoint.files import write_whole
from setpoint.integrations.trackers import preference_number, scalars
from setpoint.problem.language import read_problem
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.solve.solver import Solver

try:
    from transformers import TrainerCallback
    from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR
except ImportError as cause:
    raise missing("transformers", "huggingface", cause) from None

SOLVER_FILE = "solver.pt"


class SolverLoss:
    """A solver as the loss of a `Trainer`; evaluation leaves its state untouched.

    With gradient accumulation each part of a batch counts by its share of the samples, as a mean over all would.

    Args:
        solver: The solver, whose loss takes scores and labels.

    Raises:
        BadLabels: When called, if the batch has no labels.

    Example:
        ```python
        solver = sp.losses.WithAnchor(sp.ImplicitThreshold("minimize fnr where fpr <= 10%"))
        trainer = Trainer(model, arguments, train_dataset=rows, compute_loss_func=SolverLoss(solver))
        ```
    """

    def __init__(self, solver: Solver) -> None:
        self.solver = solver

    def __call__(self, outputs: Any, labels: Tensor | None, num_items_in_batch: Any = None) -> Tensor:
        if labels is None:
            raise BadLabels("the batch holds no labels; the dataset must have a column named labels")
        scores = scores_from(_logits_of(outputs))
        labels = labels.reshape(scores.shape) if labels.numel() == scores.numel() else labels
        self.solver.to(scores.device)
        self.solver.train(scores.requires_grad)
        try:
            loss: Tensor = self.solver(scores, labels)
        finally:
            self.solver.train()
        if num_items_in_batch is None:
            return loss
        return loss * (len(scores) / torch.as_tensor(num_items_in_batch, device=loss.device).float().mean())


class SolverCheckpoint(TrainerCallback):
    """A callback that keeps the solver's state in every checkpoint of a `Trainer`, and reads it back on resuming.

    Args:
        solver: The solver of the `SolverLoss`.
        resume_from: The checkpoint that a resumed run continues, if it is not in the `output_dir` of the run.

    Raises:
        BadFile: When training begins, if the checkpoint has no state of the solver.
        BadSetting: When training begins, if the optimizer lacks parameters of the solver.

    Example:
        ```python
        trainer = Trainer(
            model, arguments, train_dataset=rows, compute_loss_func=SolverLoss(solver),
            callbacks=[SolverCheckpoint(solver)],
        )
        trainer.train(resume_from_checkpoint=True)
        ```
    """

    def __init__(self, solver: Solver, resume_from: str | os.PathLike[str] | None = None) -> None:
        self.solver = solver
        self.resume_from = resume_from

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._refuse_unlearned(kwargs.get("optimizer"))
        if state.global_step == 0:
            return
        place = Path(self.resume_from or _checkpoint(args, state)) / SOLVER_FILE
        if not place.exists():
            raise BadFile(
                f"no {place.name} in {place.parent}, so the solver cannot be resumed; "
                "pass SolverCheckpoint(solver, resume_from=...) the checkpoint that the run continues"
            )
        self.solver.load_state_dict(torch.load(place, map_location="cpu", weights_only=True))

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if not state.is_world_process_zero:
            return
        place = _checkpoint(args, state) / SOLVER_FILE
        written = io.BytesIO()
        torch.save(self.solver.state_dict(), written)
        write_whole(place, written.getvalue())

    def _refuse_unlearned(self, optimizer: Any) -> None:
        """Refuse an optimizer that holds the model only: thresholds that are to be learned would stand still."""
        own = {id(parameter) for parameter in self.solver.parameters()}
        learned = {id(p) for group in getattr(optimizer, "param_groups", []) for p in group["params"]}
        if own - learned:
            raise BadSetting(
                f"{type(self.solver).__name__} has parameters that the optimizer lacks; give the Trainer "
                "optimizers=(torch.optim.AdamW([*model.parameters(), *solver.parameters()]), None)"
            )


def metrics_for(problem: Problem | str) -> Callable[[Any], dict[str, float]]:
    """Make the `compute_metrics` of a `Trainer`: the objective and the true rates at the best cut.

    To keep the best checkpoint set `metric_for_best_model="preference"` and `greater_is_better=True`: every feasible
    model then comes before every infeasible one.

    Args:
        problem: The problem, or an ask.

    Returns:
        A function from the predictions of a `Trainer` to numbers by name.

    Raises:
        BadProblem: If the ask cannot be read.

    Example:
        >>> import numpy as np
        >>> from transformers import EvalPrediction
        >>> from setpoint.integrations.huggingface import metrics_for
        >>> logits, labels = np.array([[0.0, 0.1], [0.0, 0.4], [0.0, 0.6], [0.0, 0.9]]), np.array([0, 1, 0, 1])
        >>> metrics_for("minimize fnr where fpr <= 50%")(EvalPrediction(logits, labels))["rates/fpr"]
        0.5
    """
    problem = read_problem(problem, rows=True)

    def metrics(prediction: Any) -> dict[str, float]:
        point = point_from(problem, prediction)
        return {
            **scalars({"rates": point.rates, "threshold": point.threshold, "feasible": point.feasible}),
            "objective": point.objective,
            "preference": preference_number(point),
        }

    return metrics


def point_from(problem: Problem | str, prediction: Any, *, confidence: float | None = None) -> OperatingPoint:
    """Set the threshold from the predictions of a `Trainer`.

    Args:
        problem: The problem, or an ask.
        prediction: The result of `trainer.predict(dataset)`, on rows that chose nothing else.
        confidence: The probability with which the bounds are to hold on new data; None for no certificate.

    Returns:
        The operating point.

    Raises:
        BadLabels: If the predictions come without labels.
        TooFewSamples: If there are too few rows for the certificate.

    Example:
        >>> import numpy as np
        >>> from transformers import EvalPrediction
        >>> from setpoint.integrations.huggingface import point_from
        >>> prediction = EvalPrediction(np.array([[0.1], [0.4], [0.6], [0.9]]), np.array([0, 1, 0, 1]))
        >>> point_from("minimize fnr where fpr <= 50%", prediction).threshold
        0.25
    """
    predictions, labels = prediction.predictions, prediction.label_ids
    logits = predictions[0] if isinstance(predictions, tuple | list) else predictions
    if labels is None:
        raise BadLabels("the predictions come without labels; predict a dataset that has a column named labels")
    return calibrate(problem, scores_from(torch.as_tensor(logits)), np.reshape(labels, -1), confidence=confidence)


def scores_from(logits: Tensor) -> Tensor:
    """Turn logits into one score per row: the only logit, or the second of two less the first.

    Args:
        logits: A tensor `(n,)`, `(n, 1)` or `(n, 2)`.

    Returns:
        The scores `(n,)`, in the order of the probability of the positive class.

    Raises:
        ShapeMismatch: If the logits have another shape.

    Example:
        >>> import torch
        >>> from setpoint.integrations.huggingface import scores_from
        >>> scores_from(torch.tensor([[1.0, 3.0], [2.0, 0.0]]))
        tensor([ 2., -2.])
    """
    if logits.dim() == 2 and logits.shape[1] == 2:
        return logits[:, 1] - logits[:, 0]
    if logits.dim() == 2 and logits.shape[1] == 1:
        return logits[:, 0]
    if logits.dim() == 1:
        return logits
    raise ShapeMismatch(f"logits {tuple(logits.shape)} must be (n,), (n, 1) or (n, 2); set num_labels to 1 or 2")


def _logits_of(outputs: Any) -> Tensor:
    logits: Tensor = outputs["logits"] if isinstance(outputs, Mapping) else outputs[0]
    return logits


def _checkpoint(args: Any, state: Any) -> Path:
    return Path(args.output_dir) / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}"
