"""A run: split a table, train the solver and, beside it, plain cross-entropy, and judge both on every part."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from setpoint.errors import BadProblem, TooFewSamples
from setpoint.measure.sample import Sample
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.settings import BASELINE, PARTS, SOLVERS, Settings, build_model, score_rows
from setpoint.table.frame import Frame
from setpoint.table.schema import Schema, Target
from setpoint.train.anchored import Ridge
from setpoint.train.batch import Batch, Batches
from setpoint.train.calibrate import calibrate, evaluate
from setpoint.train.certify import certify
from setpoint.train.history import History
from setpoint.train.loop import fit

#: The parts whose scores are kept: what a report draws.
JUDGED = ("calibration", "test")


@dataclass(frozen=True)
class Outcome:
    """What one solver reached: the point it is to be run at, and that same point judged on every part.

    `best_on_test` is the best cut of the test rows themselves: it compares models without the luck of a threshold.
    """

    solver: str
    model: nn.Module
    point: OperatingPoint
    judged: dict[str, OperatingPoint]
    best_on_test: OperatingPoint
    history: History
    best_epoch: int
    seconds: float
    scores: dict[str, Tensor] = field(default_factory=dict, compare=False, repr=False)

    @property
    def method(self) -> str:
        """What the solver came down to: the default names the method that it chose."""
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
            **parts,
        }


@dataclass(frozen=True)
class Run:
    """A finished run. The first outcome is the one that was asked for, the last is plain cross-entropy."""

    problem: Problem
    settings: Settings
    schema: Schema
    outcomes: tuple[Outcome, ...]
    sizes: dict[str, dict[str, int]]
    notes: tuple[str, ...]
    labels: dict[str, Tensor] = field(default_factory=dict, compare=False, repr=False)
    groups: dict[str, Tensor] = field(default_factory=dict, compare=False, repr=False)

    @property
    def chosen(self) -> Outcome:
        return self.outcomes[0]

    @property
    def certifiable(self) -> bool:
        """Whether there is a certificate for such a problem, given enough samples."""
        try:
            certify(self.problem, Sample(torch.zeros(2), torch.tensor([0.0, 1.0])), 0.95)
        except TooFewSamples:
            return True
        except BadProblem:
            return False
        return True

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON: everything but parameters and history."""
        return {
            "ask": str(self.problem),
            "solver": self.settings.solver,
            "point": self.chosen.point.to_dict(),
            "settings": asdict(self.settings),
            "rows": self.sizes,
            "results": {outcome.solver: outcome.to_dict() for outcome in self.outcomes},
            "schema": self.schema.to_dict(),
            "notes": list(self.notes),
        }


def fit_table(
    frame: Frame,
    target: str,
    problem: Problem,
    settings: Settings | None = None,
    *,
    positive: str | None = None,
    on_epoch: Callable[[str, int, int], None] | None = None,
) -> Run:
    """Train on a table for a problem; `on_epoch(solver, done, all)` is told of the progress.

    The rows are split by `settings.shares`, each class apart, and the schema is learned from the training rows.
    """
    classes = Target.of(frame, target, positive)
    labels = classes.labels(frame)
    settings = settings or Settings()
    rows = split(labels, settings.shares, settings.seed)
    frames = {part: frame[index.numpy()] for part, index in rows.items()}
    schema = Schema.of(frames["train"], classes)
    parts = {part: Batch(schema.encode(frames[part]), labels[rows[part]]) for part in PARTS}
    settings = settings.settled(len(rows["train"]))
    sizes = {name: {"rows": len(p.labels), "positives": int(p.labels.sum())} for name, p in parts.items()}
    dropped = [f"column {name!r} is not used: {why}" for name, why in schema.dropped]
    outcomes = fit_parts(parts, problem, settings, on_epoch=on_epoch)
    kept = {part: parts[part].labels for part in JUDGED}
    groups = {part: g for part in JUDGED if (g := parts[part].groups) is not None}
    return Run(problem, settings, schema, outcomes, sizes, (*dropped, *schema.notes(frame)), kept, groups)


def split(labels: Tensor, shares: tuple[float, ...], seed: int) -> dict[str, Tensor]:
    """The row numbers of each part, drawn at random with the same share of either class in all of them."""
    draw = torch.Generator().manual_seed(seed)
    edges = torch.tensor(shares, dtype=torch.float64).cumsum(0)
    chosen: list[list[Tensor]] = [[] for _ in PARTS]
    for label, kind in ((1, "positive"), (0, "negative")):
        rows = (labels == label).nonzero().squeeze(-1)
        rows = rows[torch.randperm(len(rows), generator=draw)]
        ends = [0, *(edges * len(rows)).round().long().tolist()]
        for place, (start, end) in enumerate(pairwise(ends)):
            if start >= end:
                raise TooFewSamples(
                    f"{len(rows)} rows of the {kind} class are too few to split into {', '.join(PARTS)}; "
                    "each part needs at least one"
                )
            chosen[place].append(rows[start:end])
    return {part: torch.cat(rows).sort().values for part, rows in zip(PARTS, chosen)}


def fit_parts(
    parts: Mapping[str, Batch],
    problem: Problem,
    settings: Settings,
    *,
    on_epoch: Callable[[str, int, int], None] | None = None,
) -> tuple[Outcome, ...]:
    """Train the solver that was asked for, and plain cross-entropy, on features that are already split."""
    if problem.group is not None:
        raise BadProblem(f"'{problem}' compares groups, which a run on a table cannot do yet; drop that bound")
    settings = settings.settled(len(parts["train"].labels))
    set_aside = parts["calibration"].labels
    # Whether a bound can be certified depends on the number of samples alone: better told before training.
    calibrate(problem, torch.zeros(len(set_aside)), set_aside, confidence=settings.confidence)
    names = dict.fromkeys([settings.solver, BASELINE])
    # Batches of tables are small: a second thread costs more than it brings, and changes the last digits.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return tuple(_train(name, parts, problem, settings, on_epoch) for name in names)
    finally:
        torch.set_num_threads(threads)


def _train(
    name: str,
    parts: Mapping[str, Batch],
    problem: Problem,
    settings: Settings,
    on_epoch: Callable[[str, int, int], None] | None,
) -> Outcome:
    started = time.perf_counter()
    train, held_out, set_aside = parts["train"], parts["held_out"], parts["calibration"]
    size, epochs = settings.batch_size or len(train.labels), settings.epochs or 1
    whole = size >= len(train.labels)
    linear = settings.model == "linear"
    solver = SOLVERS[name](problem, linear, whole)
    # Recipes for linear models are not a matter of epochs: the default makes three tries, cross-entropy one.
    tries = 1 if isinstance(solver, Ridge) else 3 if solver is None and linear else epochs
    result = fit(
        build_model(settings.model, train.x.shape[1], settings.seed),
        problem,
        Batches(train.x, train.labels, batch_size=size, shuffle=not whole, seed=settings.seed),
        Batches(held_out.x, held_out.labels),
        solver,
        calibration=Batches(set_aside.x, set_aside.labels),
        epochs=epochs,
        ensemble=settings.ensemble,
        seed=settings.seed,
        on_epoch=on_epoch and (lambda row: on_epoch(name, row["epoch"] + 1, tries)),
    )
    if on_epoch is not None:
        on_epoch(name, tries, tries)
    scores = {part: score_rows(result.model, p.x) for part, p in parts.items()}
    point = calibrate(problem, scores["calibration"], parts["calibration"].labels, confidence=settings.confidence)
    judged = {part: point.judge(scores[part], p.labels) for part, p in parts.items()}
    best = evaluate(problem, scores["test"], parts["test"].labels)
    seconds = time.perf_counter() - started
    kept = {part: scores[part] for part in JUDGED}
    return Outcome(name, result.model, point, judged, best, result.history, result.best_epoch, seconds, kept)
