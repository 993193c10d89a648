"""Fit a model to a problem: train, judge by the true rates, keep the best, set the threshold."""

from __future__ import annotations

import difflib
import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from torch import nn
from typing_extensions import Unpack

from setpoint.data.parts import Data
from setpoint.data.split import halves
from setpoint.decide.calibrate import warn_of_refusal
from setpoint.decide.samples_needed import refuse_confidence
from setpoint.errors import BadSetting, SharedData
from setpoint.problem.language import read_problem
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.processes import Processes, ProcessGroup
from setpoint.run.run import run
from setpoint.train.by_epochs import ByEpochs, OptimizerMaker
from setpoint.train.checkpoint import Checkpoint
from setpoint.train.choose import How, method_for
from setpoint.train.default import Choice
from setpoint.train.history import History
from setpoint.train.splits import Splits
from setpoint.train.trial import Trial
from setpoint.train.work import Tell, Work


@dataclass(frozen=True)
class FitResult:
    """The trained model, the point to run it at, and what happened on the way, an epoch (or a try) a row.

    `comparison` has the candidates of `Auto`, from simple to bold; it is empty for a single solver.
    """

    model: nn.Module
    point: OperatingPoint
    history: History
    solver: Choice
    best_epoch: int
    comparison: tuple[Trial, ...] = ()


class Settings(TypedDict, total=False):
    """The settings of `fit` that have defaults; its docstring says what they do."""

    epochs: int
    warm_start: float
    patience: int | None
    optimizer: OptimizerMaker | None
    refit: bool | None
    ensemble: int | Splits
    seed: int
    accumulate: int
    on_epoch: Tell | None
    process_group: ProcessGroup


def fit(
    model: nn.Module | None,
    problem: Problem | str,
    train: Iterable[Any],
    held_out: Iterable[Any],
    solver: Choice = None,
    *,
    calibration: Iterable[Any] | None = None,
    confidence: float | None = None,
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    **settings: Unpack[Settings],
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
    result's model averages their logits; the given model is left as it was. With `ensemble=sp.methods.Splits(k)` each
    copy is also trained on another random stratified split of the training and held-out rows; that takes `calibration`
    data, and no `refit`.

    With `checkpoint`, a directory, the state is kept there on the way. The same call after a kill goes on from it and
    ends, on one thread, in the very parameters of a run that was not killed; then the directory is removed. The state
    of another call is refused. `Checkpoint(path, ...)` says how often and for how long.

    When `torch.distributed` is initialised, or a `process_group` is given, every process makes the same call with
    loaders of its own rows, and all get the result of training on all rows: steps are of the batches of all processes
    together, data are judged together, and the first process alone writes the checkpoint. A model in
    DistributedDataParallel or FSDP joins gradients by itself; those of any other are averaged here. `process_group`
    False keeps to this process.

    With `accumulate` = n, n batches of the loader count as one, exactly, whatever the solver, on the memory of one of
    them and at the price of one more forward pass (`sp.methods.accumulate`).
    """
    problem = read_problem(problem)
    _refuse_unknown(settings)
    tell = settings.pop("on_epoch", None)
    processes = Processes.of(settings.pop("process_group", None))
    how = How(**settings)  # type: ignore[misc]
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
    store = Checkpoint.of(checkpoint)
    store.processes = processes
    data, work = Data(train, held_out, calibration), Work(store, processes=processes, tell=tell)
    method = method_for(model, problem, solver, how, data, processes)
    found = run(problem, data, method, confidence=confidence, work=work)
    warn_of_refusal(found.refusal)
    if found.instead:
        by = type(found.solver).__name__
        warnings.warn(f"{found.instead}; the model was trained in batches by {by} instead", stacklevel=2)
    trained, settled = found.trained, found.trained.settled
    used = settled.solver if isinstance(settled, ByEpochs) else found.solver
    return FitResult(found.model, found.point, trained.history, used, trained.best, trained.trials)


def _refuse_unknown(settings: Mapping[str, Any]) -> None:
    for name in settings.keys() - Settings.__annotations__.keys():
        near = difflib.get_close_matches(name, Settings.__annotations__, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(Settings.__annotations__)}"
        raise BadSetting(f"fit takes no setting {name!r}; {hint}")
