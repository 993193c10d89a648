"""Fit a model to a problem: train, judge by the true rates, keep the best, set the threshold."""

from __future__ import annotations

import difflib
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from torch import nn
from typing_extensions import Unpack

from setpoint.data.batch import resident
from setpoint.data.parts import Data
from setpoint.data.rows import read_batch
from setpoint.data.shared_rows import shared_rows
from setpoint.data.split import halves
from setpoint.decide.samples_needed import refuse_confidence
from setpoint.decide.settle import warn_of_refusal
from setpoint.errors import BadLabels, BadSetting, SharedData
from setpoint.measure.classes import CLASSES, OfClass
from setpoint.measure.constraint import Quantity
from setpoint.problem.caution import warn_of_ask
from setpoint.problem.language import read_problem
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.problem.read_sample import about_labels
from setpoint.processes import Processes, ProcessGroup
from setpoint.run.run import run
from setpoint.shown import html_of
from setpoint.train.by_epochs import ByEpochs, OptimizerMaker
from setpoint.train.checkpoint import Checkpoint
from setpoint.train.choose import How, method_for
from setpoint.train.default import Choice
from setpoint.train.history import History
from setpoint.train.kinds import build_model, kind_of
from setpoint.train.splits import Splits
from setpoint.train.trial import Trial
from setpoint.train.work import Tell, Work


@dataclass(frozen=True)
class FitResult:
    """The result of `fit`: the trained model, the point to run it at, and the history of the training.

    Attributes:
        model: The trained model.
        point: The operating point: the threshold, its true rates, and the certificate if there is one.
        history: One dict per epoch or candidate.
        solver: The solver or recipe that trained the model.
        best_epoch: The row of `history` that was kept.
        comparison: The candidates of `Auto`, from simple to bold; empty for a single solver.

    Example:
        >>> import torch, setpoint as sp
        >>> x, labels = torch.arange(90.0).unsqueeze(-1), (torch.arange(90) >= 45).float()
        >>> train, held_out, rest = (sp.Batches(x[k::3], labels[k::3]) for k in range(3))
        >>> ask = "minimize fnr where fpr <= 10%"
        >>> result = sp.fit(torch.nn.Linear(1, 1), ask, train, held_out, sp.Ridge(), calibration=rest)
        >>> result.solver, result.best_epoch, [row["solver"] for row in result.history]
        (Ridge(pos_weight=None), 0, ['CrossEntropy'])
    """

    model: nn.Module
    point: OperatingPoint
    history: History
    solver: Choice
    best_epoch: int
    comparison: tuple[Trial, ...] = ()

    def _repr_html_(self) -> str:
        return html_of(self.point)


class FitSettings(TypedDict, total=False):
    """The settings of `fit` that have defaults; the docstring of `fit` describes each."""

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
    model: nn.Module | str | None,
    problem: Problem | str | Mapping[str, str],
    train: Iterable[Any],
    held_out: Iterable[Any],
    solver: Choice = None,
    *,
    calibration: Iterable[Any] | None = None,
    confidence: float | None = None,
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    **settings: Unpack[FitSettings],
) -> FitResult:
    """Train a model for a problem and set the threshold to run it at.

    Without a `solver` the library chooses. A linear model (`nn.Linear` with one output) is trained on the full batch by
    `Anchored`, or by `Ridge` where groups are compared. A network is trained by cross-entropy and stopped early by its
    held-out loss after the best rescaling of the scores; where at most 5 % of the negatives may pass, positives have
    half the weight. With `calibration` data the model is then retrained on the held-out rows too (see `refit`).

    With a solver the model is trained in mini-batches. After each epoch it is judged on the held-out rows by the exact
    metric at the best threshold. The best epoch is kept; epochs that meet the bounds come first.

    When `torch.distributed` is initialised, every process makes the same call with loaders of its own rows. Each step
    takes the batches of all processes together, so every process gets the result of training on all rows. Gradients are
    averaged here unless DistributedDataParallel or FSDP around the model does it. Only the first process writes the
    checkpoint.

    Args:
        model: The model, one score per row (or one per row and class or label), trained in place. None if `solver` is a
            method that makes its own model; or the name of a kind of model, such as "trees" or "auto".
        problem: The problem, or the text of an ask; for several labels per row also a mapping from each label to its
            ask. The labels of the batches are then `(n, L)`, NaN where one is not known.
        train: Batches to train on: any iterable of `(x, labels)`, `(x, labels, weights)` or mappings; see `sp.Batches`.
        held_out: Batches that choose the epoch, the recipe or the candidate.
        solver: A solver, a recipe (`Anchored`, `Ridge`), `Auto` or a method of `sp.methods`. None leaves the choice to
            the library.
        calibration: Batches to set the threshold on. Without them the threshold is set on `held_out`, with a warning
            that its rates look better than they are; with `confidence`, half of `held_out` is set aside instead. Rows
            that train or choose the model too give no certificate, and a warning.
        confidence: The probability with which the bounds are to hold on new data, such as 0.95. If the rows do not
            allow a certificate, a warning says why and the threshold is set without one.
        checkpoint: A directory, or a `Checkpoint`, in which the state is kept. The same call after a kill continues
            there and ends, on one thread, with the very parameters of a run that was not killed; then the directory is
            removed. The state of another call is refused.
        epochs: The largest number of passes over the training rows; 30 by default. Recipes ignore it.
        warm_start: The share of the epochs, 0.3 by default, that come before the solver, so that it starts with a full
            memory and not from meaningless thresholds. They are trained by balanced cross-entropy, those of
            `WithAnchor` by its anchor. Losses that need none, such as `CrossEntropy`, skip it.
        patience: Stop after this many epochs without a better one. None never stops early, except where the library
            chooses the solver: there it is a quarter of the epochs, and at least 5.
        optimizer: A function that makes the optimizer from the parameters. None is Adam on a cosine schedule, at 0.01
            for a linear model and, with a weight decay of 0.0001, at 0.003 for a stack of linear layers and at 0.001
            for other networks.
        refit: Whether to retrain on training and held-out rows together, by the recipe or for the number of epochs that
            held-out data chose; a network keeps the running average of its parameters. It needs `calibration` data, and
            cross-entropy or a recipe. None, the default, retrains where the library chooses (no solver, or `Auto` for a
            linear model) and there are such data. With False and such data, the last layer of a network without a named
            solver is re-fitted on the held-out rows, if that helps. `history` and `best_epoch` are those of the first
            training.
        ensemble: The number of copies to train, from the seeds `seed`, `seed + 1`, ...; the result averages their
            logits, and `model` stays as it was. `sp.methods.Splits(k)` also gives each copy another random split of
            training and held-out rows, and `Folds(k)` another fold; both need `calibration` data and take no `refit`.
        seed: The seed of the first copy of an ensemble; 0 by default.
        accumulate: The number of batches that count as one, exactly, for any solver, in the memory of one batch and for
            one more forward pass (`sp.methods.accumulate`); 1 by default.
        on_epoch: A function that is called with each new row of the history.
        process_group: The processes that train together. None, the default, takes all where `torch.distributed` is
            initialised; False trains in this process alone.

    Returns:
        The trained model, its operating point, and the history of the training.

    Raises:
        BadSetting: If a setting is unknown or out of range, or two settings exclude each other.
        NotEnoughMemory: If the named recipe needs more memory than is free.
        BadFile: If the checkpoint is damaged or belongs to another call.

    Example:
        >>> import torch, setpoint as sp
        >>> x, labels = torch.arange(90.0).unsqueeze(-1), (torch.arange(90) >= 45).float()
        >>> train, held_out, rest = (sp.Batches(x[k::3], labels[k::3]) for k in range(3))
        >>> result = sp.fit(torch.nn.Linear(1, 1), "minimize fnr where fpr <= 5%", train, held_out, calibration=rest)
        >>> result.point.feasible, result.point.rates["fpr"]
        (True, 0.0)
    """
    problem = read_problem(problem)
    warn_of_ask(problem)
    _refuse_unknown(settings)
    tell = settings.pop("on_epoch", None)
    processes = Processes.of(settings.pop("process_group", None))
    how = How(**settings)  # type: ignore[misc]
    if isinstance(solver, str):
        raise BadSetting(f"a solver is an object such as sp.ImplicitThreshold(problem), got the text {solver!r}")
    if isinstance(model, str):
        model, solver = named_model(model, train, solver, len(_about_several(problem, [train, held_out])[1]) or 1)
    calibration = None if calibration is held_out else calibration
    aside, others = (held_out, [train]) if calibration is None else (calibration, [train, held_out])
    if confidence is not None:
        refuse_confidence(confidence)
        known = shared_rows(aside, others, look=True)
        # Processes decide together.
        known = known if processes.alone else next(filter(None, processes.all_objects(known)), "")
        if calibration is None:
            held_out, calibration = halves(held_out)
        if known:
            warn_of_refusal(f"{known} calibration rows {_SHARED}")
            confidence = None
    elif calibration is not None and shared_rows(aside, others, look=False):
        warnings.warn(f"the calibration rows {_SHARED}", SharedData, stacklevel=2)
    if calibration is None:
        warnings.warn(
            "the threshold is set on the held-out data, which also choose the model, so its rates look better than "
            "they are; pass calibration= data of its own",
            SharedData,
            stacklevel=2,
        )
    problem, names = _about_several(problem, [train, held_out])
    store = Checkpoint.of(checkpoint)
    store.processes = processes
    data, work = Data(train, held_out, calibration, class_names=names), Work(store, processes=processes, tell=tell)
    method = method_for(model, problem, solver, how, data, processes)
    found = run(problem, data, method, confidence=confidence, work=work)
    warn_of_refusal(found.refusal)
    if found.instead:
        by = type(found.solver).__name__
        warnings.warn(f"{found.instead}; the model was trained in batches by {by} instead", stacklevel=2)
    trained, settled = found.trained, found.trained.settled
    used = settled.solver if isinstance(settled, ByEpochs) else found.solver
    return FitResult(found.model, found.point, trained.history, used, trained.best, trained.trials)


#: What is wrong with calibration rows that are not new to the model.
_SHARED = (
    "train or choose the model too, so its rates on them look better than they are; pass calibration= rows of their own"
)


def _about_several(problem: Problem, loaders: Sequence[Iterable[Any]]) -> tuple[Problem, tuple[str, ...]]:
    """The problem about the labels or classes that the rows have, and their names, where there are several."""
    rows = resident(loaders[0])
    labels = next((read_batch(item).labels for item in loaders[1]), None) if rows is None else rows.labels
    found = about_labels(problem, labels, None)
    return _about_classes(problem, loaders) if found is None else (found, found.labels)


def _about_classes(problem: Problem, loaders: Sequence[Iterable[Any]]) -> tuple[Problem, tuple[str, ...]]:
    """The problem with the numbers of its classes, and their names, where it is about classes or the labels are."""
    if problem.kind != CLASSES and not problem.is_of_errors:
        return problem, ()
    in_memory = [rows.labels for loader in loaders if (rows := resident(loader)) is not None]
    if not in_memory and problem.kind == CLASSES:
        in_memory = [read_batch(item).labels for item in loaders[-1]]
    n_classes = max([int(labels.max()) + 1 for labels in in_memory if len(labels)], default=0)
    if problem.kind != CLASSES and n_classes < 3:
        return problem, ()
    if problem.class_names:
        return problem, _enough(problem.class_names, n_classes)
    known = [q.k + 1 for q in problem.quantities if isinstance(q, OfClass)]
    names = tuple(map(str, range(max([2, n_classes, *known]))))
    return (problem if all(map(_is_numbered, problem.quantities)) else problem.resolved(names)), names


def _enough(names: tuple[str, ...], n_classes: int) -> tuple[str, ...]:
    """The names of the classes, which must be as many as the labels number."""
    if n_classes > len(names):
        raise BadLabels(
            f"the problem names {len(names)} classes ({', '.join(names[:8])}), but a label is {n_classes - 1}; number "
            "classes from 0 in the order of these names"
        )
    return names


def _is_numbered(quantity: Quantity) -> bool:
    return quantity.kind == CLASSES and not (isinstance(quantity, OfClass) and quantity.number is None)


def named_model(kind: str, train: Iterable[Any], solver: Choice, outputs: int = 1) -> tuple[nn.Module | None, Choice]:
    """The model of a kind, and the method that trains it if it has its own."""
    own = kind_of(kind).method
    if own is not None:
        if solver is not None:
            raise BadSetting(f"a model of kind {kind!r} is trained by its own method; leave out the solver")
        return None, own()
    rows = resident(train)
    if rows is None:
        raise BadSetting(f"{kind!r} needs the number of features from sp.Batches; pass a model instead of its name")
    return build_model(kind, rows.x.shape[1], outputs=outputs), solver


def _refuse_unknown(settings: Mapping[str, Any]) -> None:
    for name in settings.keys() - FitSettings.__annotations__.keys():
        near = difflib.get_close_matches(name, FitSettings.__annotations__, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(FitSettings.__annotations__)}"
        raise BadSetting(f"fit takes no setting {name!r}; {hint}")
