"""What one solver reaches on a split table: trained, its threshold set on rows of their own, judged on every part."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from setpoint.capacity import amount, available_memory
from setpoint.data.batch import Batches, Loader
from setpoint.data.parts import Data
from setpoint.data.rows import Rows
from setpoint.decide.calibrate import evaluate
from setpoint.decide.order import preference
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.processes import ALONE, Processes
from setpoint.run.run import Run, run_solver
from setpoint.run.settings import PARTS, Settings, build_model
from setpoint.run.solvers import Case, Choice, by_steps, make_solver
from setpoint.solve.baseline import CrossEntropy
from setpoint.solve.solver import Solver
from setpoint.train.auto import Auto
from setpoint.train.checkpoint import Checkpoint
from setpoint.train.default import How
from setpoint.train.history import History
from setpoint.train.linear import recipe_bytes
from setpoint.train.recipes import Ridge
from setpoint.train.scoring import score_rows
from setpoint.train.splits import Splits
from setpoint.train.trial import Trial
from setpoint.train.work import Work

Told = Callable[[str, int, int], None]
#: The name of each row's group, a part; None where no groups are compared.
Named = dict[str, NDArray[np.str_] | None]
#: Training rows that are not in memory: from a batch size and a seed to a loader, and how many rows there are.
Stream = tuple[Callable[[int, int], Loader], int]
#: Cross-entropy with the class weight that does best on held-out rows, lower ones among them: a name for comparisons.
TUNED = "tuned"
CLASS_WEIGHTS = tuple(4.0**power for power in range(-3, 4))

#: The parts whose scores are kept: what a report draws.
JUDGED = ("calibration", "test")


@dataclass(frozen=True)
class Outcome:
    """What one solver reached: the point it is to be run at, and that same point judged on every part.

    `best_on_test` is the best cut of the test rows themselves: it compares models without the luck of a threshold.
    `comparison` is what `auto` chose from, by held-out rows. With `refitted` the model was trained on these as well.
    """

    solver: str
    model: nn.Module
    point: OperatingPoint
    judged: dict[str, OperatingPoint]
    best_on_test: OperatingPoint
    history: History
    best_epoch: int
    seconds: float
    refusal: str | None = None
    comparison: tuple[Trial, ...] = ()
    refitted: bool = False
    scores: dict[str, Tensor] = field(default_factory=dict, compare=False, repr=False)

    @property
    def method(self) -> str:
        """What the solver came down to: the default and auto name the method that they chose."""
        chosen = [trial.name for trial in self.comparison if trial.chosen]
        if chosen:
            return f"{self.solver}: {chosen[0]}"
        return str(self.history[self.best_epoch]["solver"]) if self.solver == "default" else self.solver

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        parts = {
            part: {"objective": p.objective, "feasible": p.feasible, "rates": p.rates}
            for part, p in self.judged.items()
        }
        return {
            "method": self.method,
            "threshold": self.point.threshold,
            "best_on_test": self.best_on_test.objective,
            "best_epoch": self.best_epoch,
            "seconds": round(self.seconds, 3),
            "refusal": self.refusal,
            "refitted": self.refitted,
            "comparison": [trial.to_dict() for trial in self.comparison],
            **parts,
        }


@dataclass(frozen=True)
class Training:
    """Everything that the trainings of a run share: the rows, the problem, the settings, and who takes part."""

    parts: Mapping[str, Rows]
    named: Named
    problem: Problem
    settings: Settings
    processes: Processes = ALONE
    stream: Stream | None = None
    #: The names of the groups that the rows number, where groups are compared.
    group_names: tuple[str, ...] = ()
    #: Whether the checkpoint of the run knows the table and how it was split, so that the parts need no hash of theirs.
    named_by_run: bool = False

    @property
    def rows(self) -> int:
        return len(self.parts["train"].labels) if self.stream is None else self.stream[1]

    @property
    def is_linear(self) -> bool:
        """Whether there are recipes for the model."""
        return self.settings.model == "linear"

    def outcome(self, name: str, on_epoch: Told | None, checkpoint: Checkpoint) -> Outcome:
        """The outcome of a solver, or of the best class weight, by name."""
        train = self._tuned if name == TUNED else self._one
        return train(name, on_epoch, checkpoint)

    def _tuned(self, name: str, on_epoch: Told | None, checkpoint: Checkpoint) -> Outcome:
        outcomes = []
        for place, weight in enumerate(CLASS_WEIGHTS, start=1):
            solver = Ridge(weight) if self.is_linear else CrossEntropy(weight)
            outcomes.append(self._one(name, None, checkpoint.part(f"weight-{weight:g}"), solver))
            if on_epoch is not None:
                on_epoch(name, place, len(CLASS_WEIGHTS))
        held_out, groups = self.parts["held_out"], self.named["held_out"]
        points = [
            evaluate(self.problem, score_rows(o.model, held_out.x), held_out.labels, groups=groups) for o in outcomes
        ]
        best = max(zip(points, outcomes), key=lambda pair: preference(pair[0]))[1]
        return replace(best, seconds=sum(outcome.seconds for outcome in outcomes))

    def _one(
        self, name: str, on_epoch: Told | None, checkpoint: Checkpoint, solver: Solver | Ridge | None = None
    ) -> Outcome:
        started, settings, processes = time.perf_counter(), self.settings, self.processes
        size, epochs = settings.batch_size or self.rows, settings.epochs or 1
        whole = size >= self.rows
        n_groups = None if self.named["train"] is None else len(set(self.named["train"]))
        case = Case(self.problem, self.is_linear, whole, self.rows, n_groups, settings.tune, settings.seed)
        chosen = solver or make_solver(name, case)
        # Beside the solver too: rows that one alone has would pass for its merit.
        refit = settings.refits and settings.refittable(name)
        short = self.stream is not None or bool(shortage(settings, self.parts))
        if processes.largest(float(short))[0]:
            chosen, refit = by_steps(chosen, case), False
        if self.is_linear and not isinstance(chosen, Solver) and not processes.alone:
            alone = replace(self, processes=ALONE)
            own = alone._one(name, on_epoch, checkpoint, solver) if processes.leads else None
            return processes.from_first(own)  # type: ignore[return-value]
        tries = _tries(chosen, settings.model == "linear", epochs, refit)
        data = Data(
            self._batches("train", batch_size=size, shuffle=not whole, seed=settings.seed)
            if self.stream is None
            else self.stream[0](size, settings.seed),
            self._batches("held_out"), self._batches("calibration"), self._batches("test"), self.group_names,
        )  # fmt: skip
        model = build_model(settings.model, self.parts["train"].x.shape[1], settings.seed)
        members = Splits(settings.ensemble) if settings.over_splits else settings.ensemble
        how = How(epochs, refit=refit, ensemble=members, seed=settings.seed)

        def tell(row: dict[str, Any]) -> None:
            if on_epoch is not None:
                on_epoch(name, min(row["epoch"] + 1, tries), tries)

        work = Work(checkpoint, processes=processes, tell=tell)
        found = run_solver(model, self.problem, data, chosen, how, work, confidence=settings.confidence)
        if on_epoch is not None:
            on_epoch(name, tries, tries)
        judged = {part: found.judged(part) if part != "train" else self._on_train(found) for part in PARTS}
        seconds = checkpoint.spent_before + time.perf_counter() - started
        kept = {part: found.sample(part).scores for part in JUDGED}
        trained = found.trained
        return Outcome(
            name, found.model, found.point, judged, found.best("test"), trained.history, trained.best, seconds,
            found.refusal, trained.trials, refit, kept,
        )  # fmt: skip

    def _on_train(self, found: Run) -> OperatingPoint:
        """The point on the training rows; of a stream, on those that are kept to judge by."""
        part = self.parts["train"]
        return found.point.judge(score_rows(found.model, part.x), part.labels, groups=self.named["train"])

    @property
    def _group(self) -> bool | None:
        return None if not self.processes.alone else False

    def _batches(self, part: str, **how: Any) -> Batches:
        rows = self.parts[part]
        content = part if self.named_by_run else None
        return Batches(rows.x, rows.labels, groups=rows.groups, process_group=self._group, content=content, **how)


def shortage(settings: Settings, parts: Mapping[str, Rows]) -> list[str]:
    """A note if a linear model has to go without its full-batch recipe, for want of memory."""
    (rows, features), held_out = parts["train"].x.shape, len(parts["held_out"].x)
    rows += held_out if settings.refits else 0
    available, needed = available_memory(), recipe_bytes(rows, features)
    if settings.model != "linear" or available is None or needed <= available:
        return []
    return [
        f"the full-batch recipe for {rows} rows of {features} features needs about {amount(needed)}, but "
        f"{amount(available)} are free; trained in batches of {settings.batch_size} instead"
    ]


def _tries(solver: Choice, linear: bool, epochs: int, refit: bool) -> int:
    """How often `on_epoch` is told. Recipes for linear models are not a matter of epochs: the default makes three
    tries, cross-entropy one."""
    if isinstance(solver, Auto):
        return solver.expected_rows(linear, epochs)
    return 1 if isinstance(solver, Ridge) else 3 if solver is None and linear else epochs * (1 + refit)
