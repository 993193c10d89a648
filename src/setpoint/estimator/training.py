"""Train the classifier's solver, and plain cross-entropy beside it, on rows that are already split."""

from __future__ import annotations

import copy
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from torch import nn

from setpoint.data.batch import Batches
from setpoint.data.parts import Data
from setpoint.data.standardise import soften
from setpoint.decide.population import cluster_codes
from setpoint.errors import BadSetting
from setpoint.estimator.features import learn_encoding
from setpoint.estimator.module import Network
from setpoint.measure.classes import CLASSES
from setpoint.measure.sample import name_groups
from setpoint.problem.problem import Problem
from setpoint.run.run import Run
from setpoint.run.settings import SMALL, Settings
from setpoint.run.side_by_side import Entry, SideBySide, one_thread, with_settings
from setpoint.solve.solver import Solver
from setpoint.train.choose import How
from setpoint.train.default import BASELINE, Case, Choice, make_solver
from setpoint.train.method import is_method
from setpoint.train.splits import Splits
from setpoint.train.trial import Trial
from setpoint.train.work import Work

AUTO = "auto"


@dataclass(frozen=True)
class Part:
    """Some of the rows: raw features, labels of 0 and 1 or class numbers, and weights, groups, lists and values."""

    x: Any
    labels: NDArray[Any]
    weights: NDArray[np.float64] | None = None
    groups: NDArray[Any] | None = None
    lists: NDArray[Any] | None = None
    values: NDArray[np.float64] | None = None
    clusters: NDArray[Any] | None = None

    @property
    def is_sparse(self) -> bool:
        return bool(scipy.sparse.issparse(self.x))

    def take(self, rows: NDArray[Any]) -> Part:
        others = (self.weights, self.groups, self.lists, self.values, self.clusters)
        return Part(self.x[rows], self.labels[rows], *(None if each is None else each[rows] for each in others))

    def repeated(self) -> Part:
        """Repeat each row by its weight, if all weights are whole numbers and the table stays small.

        Solvers see only the ratios of weights, and for small tables the ridge depends on the number of rows. Rows of
        lists are not repeated, since that would change the lists.
        """
        if self.weights is None or self.lists is not None or (self.weights % 1).any() or self.weights.sum() > SMALL:
            return self
        part = self.take(np.repeat(np.arange(len(self.labels)), self.weights.astype(np.int64)))
        return replace(part, weights=None)

    def batches(self, encoding: Any, *, to_train: bool = False, **how: Any) -> Batches:
        """A loader of encoded features, to train on or not."""
        if self.is_sparse:
            x = self.x @ scipy.sparse.diags_array(1 / encoding.spread.numpy())
            x.data = soften(x.data)
        else:
            x = encoding.of_training(self.x, self.labels, self.weights) if to_train else encoding.features(self.x)
        weights = None if self.weights is None else torch.from_numpy(self.weights).float()
        groups = None if self.groups is None else name_groups(self.groups)[0]
        loader = Batches(x, torch.from_numpy(self.labels), weights=weights, groups=groups, **how)
        loader = loader.with_values(None if self.values is None else torch.from_numpy(self.values))
        loader = loader.with_clusters(None if self.clusters is None else torch.from_numpy(self.clusters))
        return loader if self.lists is None else loader.with_lists(torch.from_numpy(self.lists))


@dataclass(frozen=True)
class Parts:
    """The rows to train on, to choose by, and to set the threshold on.

    `apart` if no row is in two parts, and `own_calibration` if no calibration row is in another part.
    """

    train: Part
    held_out: Part
    calibration: Part
    apart: bool
    own_calibration: bool


@dataclass(frozen=True)
class Training:
    """The settings of a training, for any solver.

    Args:
        problem: The problem to solve.
        network: The network to train, as the user described it.
        settings: The epochs, the batch size, the seed and the confidence.
        device: The device to train on.
        ensemble: The number of members, or `Splits`.
        classes: The names of the classes or labels, where the ask is about several.
    """

    problem: Problem
    network: Network
    settings: Settings
    device: str
    ensemble: Any = 1
    classes: tuple[str, ...] = ()

    def run(self, solver: Any, parts: Parts) -> tuple[Any, Run]:
        """Train by the solver; cross-entropy is trained beside it unless it was one of the candidates."""
        if isinstance(self.ensemble, Splits) and not parts.apart:
            raise BadSetting("an ensemble over splits needs held_out and calibration rows; give both a share")
        if self.network.method is not None and parts.held_out is parts.train:
            raise BadSetting(
                f"module {self.network.module!r} chooses by held-out rows, and there are none; set held_out to a share "
                "such as 0.2 and bring at least 5 rows of either class for each part, or take module='linear'"
            )
        aside = parts.calibration.clusters
        if isinstance(self.ensemble, Splits) and aside is not None:
            raise BadSetting("an ensemble over splits draws rows at random and parts clusters; give a number instead")
        labels = None if self.classes else parts.train.labels
        encoding = learn_encoding(parts.train.x, labels, parts.train.weights)
        size, rows = self.settings.batch_size or len(parts.train.labels), len(parts.train.labels)
        names = () if parts.train.groups is None else tuple(name_groups(parts.train.groups)[1])

        def make_data() -> Data:
            how: dict[str, Any] = {"batch_size": size, "shuffle": size < rows, "seed": self.settings.seed}
            train = parts.train.batches(encoding, to_train=True, **how)
            held_out, calibration = parts.held_out.batches(encoding), parts.calibration.batches(encoding)
            blocks = tuple(encoding.blocks)
            return Data(
                train, held_out, calibration, group_names=names, blocks=blocks, class_names=self.classes,
                clusters=None if aside is None else cluster_codes(aside, len(aside)),
            )  # fmt: skip

        width = sum(block.width for block in encoding.blocks)
        n_groups = len(names) if self.problem.group is not None else None
        n_classes = len(self.classes) if self.problem.kind == CLASSES else 0
        case = Case(self.problem, False, size >= rows, rows, n_groups, n_classes)
        left_alone = not parts.apart or parts.train.is_sparse
        how = How(
            self.settings.epochs or 1, refit=False if left_alone else None, ensemble=self.ensemble,
            seed=self.settings.seed,
        )  # fmt: skip
        together = SideBySide(self.problem, make_data, case, how, self.settings.confidence)
        with one_thread() if self.network.is_own else nullcontext():
            return encoding, together.run(self._ways(solver, width), Work(), unless_tried=True)

    def _ways(self, solver: Any, width: int) -> list[Entry]:
        network, own = self.network, self.network.method
        if own is not None:
            if solver not in (AUTO, "default"):
                raise BadSetting(f"module {network.module!r} is trained by its own method; leave out solver={solver!r}")
            given = {**self.network.parameters, "seed": self.settings.seed}
            solver, network = with_settings(own(), given), Network()

        def build() -> nn.Module:
            return network.build(width, self.settings.seed, len(self.classes) or 1).to(self.device)

        name = self.network.module if own is not None else name_of(solver)
        first = Entry(name, build, lambda case: self._choice(solver, case))
        plain = Entry(BASELINE, build, lambda case: make_solver(BASELINE, case))
        return [first] if name == BASELINE else [first, plain]

    def _choice(self, solver: Any, case: Case) -> Choice:
        """A solver, a recipe or a method, from a name, an object or a function that makes one."""
        if isinstance(solver, str):
            return make_solver(solver, case)
        if isinstance(solver, Solver):
            return copy.deepcopy(solver)
        made: Choice = solver(case.problem) if callable(solver) and not is_method(solver) else solver
        return made


def comparison(run: Run, *, over_splits: bool) -> list[dict[str, Any]]:
    """One dict per run, or per candidate of a run that chose among candidates."""
    rows = []
    for one in (run, *run.beside):
        if one.trials:
            rows += [replace(trial, chosen=one is run and trial.chosen).to_dict() for trial in one.trials]
            continue
        # Held-out rows that were trained on cannot judge.
        point = one.best("calibration" if one.trained.again or over_splits else "held_out")
        note = str(one.history[one.trained.best]["solver"])
        rows.append(Trial(one.name, point, one.seconds, one is run, note).to_dict())
    return rows


def name_of(solver: Any) -> str:
    """The name of a solver in the comparison."""
    if isinstance(solver, str):
        return solver
    return str(getattr(solver, "__name__", type(solver).__name__))


def refuse_device(device: Any) -> None:
    """Refuse a device that is missing or cannot compute, before anything is trained."""
    try:
        float(torch.ones(1, device=device).sum())
    except (RuntimeError, AssertionError, TypeError) as cause:
        why = str(cause).partition("\n")[0][:200]
        raise BadSetting(f"device {device!r} cannot be used here ({why}); choose another, such as 'cpu'") from cause
