"""A run: split a table, train the solver and, beside it, plain cross-entropy, and judge both on every part."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from setpoint.capacity import amount, available_memory, refuse_beyond_memory
from setpoint.errors import TooFewSamples
from setpoint.measure.sample import name_groups
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.processes import ALONE, Processes
from setpoint.settings import PARTS, Settings, build_model, score_rows
from setpoint.solve.baseline import CrossEntropy
from setpoint.solve.solver import Solver
from setpoint.solvers import BASELINE, Case, Choice, by_steps, make_solver
from setpoint.table.fingerprint import fingerprint
from setpoint.table.frame import Frame
from setpoint.table.groups import group_names
from setpoint.table.schema import Schema, Target
from setpoint.train.anchored import Ridge
from setpoint.train.auto import Auto
from setpoint.train.batch import Batch, Batches
from setpoint.train.calibrate import calibrate, evaluate
from setpoint.train.certify import is_certifiable
from setpoint.train.checkpoint import Checkpoint
from setpoint.train.history import History
from setpoint.train.identity import identity_of
from setpoint.train.linear import recipe_bytes
from setpoint.train.loop import fit
from setpoint.train.select import preference
from setpoint.train.trial import Trial

Told = Callable[[str, int, int], None]
#: The name of each row's group, a part; None where no groups are compared.
Named = dict[str, NDArray[np.str_] | None]
#: Training rows that are not in memory: from a batch size and a seed to a loader, and how many rows there are.
Stream = tuple[Callable[[int, int], Iterable[Batch]], int]
#: Cross-entropy with the class weight that does best on held-out rows, lower ones among them: a name for comparisons.
TUNED = "tuned"
CLASS_WEIGHTS = tuple(4.0**power for power in range(-3, 4))

#: The parts whose scores are kept: what a report draws.
JUDGED = ("calibration", "test")


@dataclass(frozen=True)
class Outcome:
    """What one solver reached: the point it is to be run at, and that same point judged on every part.

    `best_on_test` is the best cut of the test rows themselves: it compares models without the luck of a threshold.
    `comparison` is what `auto` chose from, by held-out rows.
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
            "comparison": [trial.to_dict() for trial in self.comparison],
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
    data: dict[str, Any]
    labels: dict[str, Tensor] = field(default_factory=dict, compare=False, repr=False)
    groups: dict[str, Tensor] = field(default_factory=dict, compare=False, repr=False)

    @property
    def chosen(self) -> Outcome:
        return self.outcomes[0]

    @property
    def certifiable(self) -> bool:
        """Whether there is a certificate for such a problem, given enough samples."""
        return is_certifiable(self.problem)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON: everything but parameters and history."""
        return {
            "ask": str(self.problem),
            "solver": self.settings.solver,
            "point": self.chosen.point.to_dict(),
            "settings": asdict(self.settings),
            "data": self.data,
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
    solvers: Sequence[str] = (),
    on_epoch: Told | None = None,
    checkpoint: Checkpoint | None = None,
    processes: Processes = ALONE,
    data: dict[str, Any] | None = None,
) -> Run:
    """Train on a table for a problem; `on_epoch(solver, done, all)` is told of the progress.

    Further `solvers` are trained on the same rows after that of the settings, plain cross-entropy always the last.
    The rows are split by `settings.shares`, each class apart, and the schema is learned from the training rows.
    A `checkpoint` is begun once all is checked; the same call goes on from it, one for other data is refused.
    Several `processes`, each with the whole table, share out every batch; a recipe that needs all rows at once is left
    to the first of them. `data` is the fingerprint of the table, if it has been taken already.
    """
    classes = Target.of(frame, target, positive)
    labels = classes.labels(frame)
    settings = settings or Settings()
    rows = split(labels, settings.shares, settings.seed)
    frames = {part: frame[index.numpy()] for part, index in rows.items()}
    schema = Schema.of(frames["train"], classes)
    _refuse_wide_tables(frame.height, schema)
    codes: Tensor | None = None
    groups: list[str] = []
    if problem.group is not None:
        codes, groups = name_groups(group_names(frame, problem.group))
    parts = {
        part: Batch(
            schema.encode(frames[part]), labels[rows[part]], groups=None if codes is None else codes[rows[part]]
        )
        for part in PARTS
    }
    settings = settings.settled(len(rows["train"]))
    shortage = _shortage(settings, len(rows["train"]), len(schema.features))
    sizes = {name: {"rows": len(p.labels), "positives": int(p.labels.sum())} for name, p in parts.items()}
    dropped = [f"column {name!r} is not used: {why}" for name, why in schema.dropped]
    data = data or fingerprint(frame)
    asked = {"data": data, "target": target, "positive": positive, "solvers": list(solvers)}
    outcomes = fit_parts(
        parts, problem, settings, groups=groups, solvers=solvers, on_epoch=on_epoch, checkpoint=checkpoint, asked=asked,
        processes=processes,
    )  # fmt: skip
    notes = (*dropped, *schema.notes(frame, ranges=False), *shortage)
    kept = {part: parts[part].labels for part in JUDGED}
    codes_of = {part: own for part in JUDGED if (own := parts[part].groups) is not None}
    return Run(problem, settings, schema, outcomes, sizes, notes, data, kept, codes_of)


def _refuse_wide_tables(rows: int, schema: Schema) -> None:
    """Before anything is written out as numbers, four bytes a feature; a column at a time beside that."""
    widths = {column.name: len(column.features) for column in schema.columns}
    widest = max(widths, key=lambda name: widths[name])
    refuse_beyond_memory(
        f"a table of {rows} rows and {sum(widths.values())} features",
        4 * rows * (sum(widths.values()) + 2 * widths[widest]),
        f"take fewer rows, or leave out columns with many levels, such as {widest!r}",
    )


def _shortage(settings: Settings, rows: int, features: int) -> list[str]:
    """A note if a linear model has to go without its full-batch recipe, for want of memory."""
    available, needed = available_memory(), recipe_bytes(rows, features)
    if settings.model != "linear" or available is None or needed <= available:
        return []
    return [
        f"the full-batch recipe for {rows} rows of {features} features needs about {amount(needed)}, but "
        f"{amount(available)} are free; trained in batches of {settings.batch_size} instead"
    ]


def split(labels: Tensor, shares: tuple[float, ...], seed: int) -> dict[str, Tensor]:
    """The row numbers of each part, drawn at random with the same share of either class in all of them."""
    draw = torch.Generator().manual_seed(seed)
    edges = torch.tensor(shares, dtype=torch.float64).cumsum(0)
    part_of = torch.zeros(len(labels), dtype=torch.uint8)
    for label, kind in ((1, "positive"), (0, "negative")):
        rows = (labels == label).nonzero().squeeze(-1)
        rows = rows[torch.randperm(len(rows), generator=draw)]
        ends = [0, *(edges * len(rows)).round().long().tolist()]
        for place, (start, end) in enumerate(pairwise(ends)):
            if start >= end:
                held = f"the {kind} class has {len(rows)} row{'' if len(rows) == 1 else 's'}"
                raise TooFewSamples(
                    f"{held}, too few to split into {', '.join(PARTS)} with at least one in each; "
                    f"{fewest_rows(shares)} are enough"
                )
            part_of[rows[start:end]] = place
    return {part: (part_of == place).nonzero().squeeze(-1) for place, part in enumerate(PARTS)}


def fewest_rows(shares: tuple[float, ...]) -> int:
    """The number from which on every part gets a row of a class."""
    return math.ceil(1 / min(shares))


def fit_parts(
    parts: Mapping[str, Batch],
    problem: Problem,
    settings: Settings,
    *,
    groups: Sequence[str] = (),
    solvers: Sequence[str] = (),
    on_epoch: Told | None = None,
    checkpoint: Checkpoint | None = None,
    asked: Mapping[str, Any] | None = None,
    stream: Stream | None = None,
    processes: Processes = ALONE,
) -> tuple[Outcome, ...]:
    """Train the solver that was asked for, others, and plain cross-entropy, on features that are already split.

    For a problem that compares groups the parts number them, and `groups` are their names. A checkpoint has a part
    for each solver; `asked` is what else it must have been begun with. With a `stream` training rows come from there,
    and those among the parts are a sample of them to judge by.
    """
    settings = settings.settled(len(parts["train"].labels) if stream is None else stream[1])
    named = _named(parts, problem, groups)
    set_aside = parts["calibration"].labels
    # If not even perfect scores could be certified there are too few samples: better told before training.
    perfect = set_aside + torch.linspace(0, 0.5, len(set_aside))
    calibrate(problem, perfect, set_aside, confidence=settings.confidence, groups=named["calibration"])
    names = [name for name in dict.fromkeys([settings.solver, *solvers]) if name != BASELINE]
    kept = checkpoint or Checkpoint(None, processes=processes)
    if kept.open(identity_of({"ask": problem, "settings": settings, **(asked or {})})) is None:
        kept.save({})
    # Batches of tables are small: a second thread costs more than it brings, and changes the last digits.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        outcomes = tuple(
            (_train_tuned if name == TUNED else _train)(
                name, parts, named, problem, settings, on_epoch, kept.part(name), processes, stream=stream
            )
            for name in [*names, BASELINE]
        )
    finally:
        torch.set_num_threads(threads)
    kept.close()
    return outcomes


def _named(parts: Mapping[str, Batch], problem: Problem, groups: Sequence[str]) -> Named:
    """The group of every row of each part by its name; every group must be in every part."""
    if problem.group is None:
        return dict.fromkeys(parts)
    named: Named = {}
    for name, part in parts.items():
        assert part.groups is not None
        own = np.array(groups)[part.groups.numpy()]
        absent = [group for group in groups if group not in own]
        if absent:
            raise TooFewSamples(
                f"no row of {problem.group} {absent[0]!r} among the {len(own)} {name.replace('_', '-')} rows; "
                "drop so small a group or join it to another"
            )
        named[name] = own
    return named


def _train_tuned(
    name: str,
    parts: Mapping[str, Batch],
    named: Named,
    problem: Problem,
    settings: Settings,
    on_epoch: Told | None,
    checkpoint: Checkpoint,
    processes: Processes,
    stream: Stream | None = None,
) -> Outcome:
    linear = settings.model == "linear" and problem.group is None
    outcomes = []
    for place, weight in enumerate(CLASS_WEIGHTS, start=1):
        solver = Ridge(weight) if linear else CrossEntropy(weight)
        kept = checkpoint.part(f"weight-{weight:g}")
        outcomes.append(_train(name, parts, named, problem, settings, None, kept, processes, solver, stream))
        if on_epoch is not None:
            on_epoch(name, place, len(CLASS_WEIGHTS))
    held_out = parts["held_out"]
    points = [
        evaluate(problem, score_rows(o.model, held_out.x), held_out.labels, groups=named["held_out"]) for o in outcomes
    ]
    best = max(zip(points, outcomes), key=lambda pair: preference(pair[0]))[1]
    return replace(best, seconds=sum(outcome.seconds for outcome in outcomes))


def _train(
    name: str,
    parts: Mapping[str, Batch],
    named: Named,
    problem: Problem,
    settings: Settings,
    on_epoch: Told | None,
    checkpoint: Checkpoint,
    processes: Processes,
    solver: Solver | Ridge | None = None,
    stream: Stream | None = None,
) -> Outcome:
    started = time.perf_counter()
    train, held_out, set_aside = parts["train"], parts["held_out"], parts["calibration"]
    rows = len(train.labels) if stream is None else stream[1]
    size, epochs = settings.batch_size or rows, settings.epochs or 1
    whole = size >= rows
    linear = settings.model == "linear" and problem.group is None
    n_groups = None if named["train"] is None else len(set(named["train"]))
    case = Case(problem, linear, whole, rows, n_groups, settings.tune, settings.seed)
    chosen = solver or make_solver(name, case)
    short = stream is not None or bool(_shortage(settings, *train.x.shape))
    if processes.largest(float(short))[0]:
        chosen = by_steps(chosen, case)
    if linear and not isinstance(chosen, Solver) and not processes.alone:
        given = (name, parts, named, problem, settings, on_epoch, checkpoint, ALONE, solver)
        return processes.from_first(_train(*given) if processes.leads else None)  # type: ignore[return-value]
    group = None if not processes.alone else False
    tries = _tries(chosen, settings.model == "linear", epochs)
    result = fit(
        build_model(settings.model, train.x.shape[1], settings.seed),
        problem,
        Batches(
            train.x, train.labels, groups=train.groups, batch_size=size, shuffle=not whole, seed=settings.seed,
            process_group=group,
        ) if stream is None else stream[0](size, settings.seed),
        Batches(held_out.x, held_out.labels, groups=held_out.groups, process_group=group),
        chosen,
        calibration=Batches(set_aside.x, set_aside.labels, groups=set_aside.groups, process_group=group),
        epochs=epochs,
        ensemble=settings.ensemble,
        seed=settings.seed,
        checkpoint=checkpoint,
        process_group=group,
        on_epoch=on_epoch and (lambda row: on_epoch(name, min(row["epoch"] + 1, tries), tries)),
    )  # fmt: skip
    if on_epoch is not None:
        on_epoch(name, tries, tries)
    scores = {part: score_rows(result.model, p.x) for part, p in parts.items()}
    point, refusal = _set_point(
        problem, scores["calibration"], set_aside.labels, named["calibration"], settings.confidence
    )
    judged = {part: point.judge(scores[part], p.labels, groups=named[part]) for part, p in parts.items()}
    best = evaluate(problem, scores["test"], parts["test"].labels, groups=named["test"])
    seconds = checkpoint.spent_before + time.perf_counter() - started
    kept = {part: scores[part] for part in JUDGED}
    return Outcome(
        name, result.model, point, judged, best, result.history, result.best_epoch, seconds, refusal,
        result.comparison, kept,
    )  # fmt: skip


def _tries(solver: Choice, linear: bool, epochs: int) -> int:
    """How often `on_epoch` is told. Recipes for linear models are not a matter of epochs: the default makes three
    tries, cross-entropy one."""
    if isinstance(solver, Auto):
        return solver.expected_rows(linear, epochs)
    return 1 if isinstance(solver, Ridge) else 3 if solver is None and linear else epochs


def _set_point(
    problem: Problem, scores: Tensor, labels: Tensor, groups: Any, confidence: float | None
) -> tuple[OperatingPoint, str | None]:
    """The point, and, where these scores allow no certificate, why: what was trained is not thrown away for it."""
    try:
        return calibrate(problem, scores, labels, confidence=confidence, groups=groups), None
    except TooFewSamples as cause:
        return calibrate(problem, scores, labels, groups=groups), str(cause)
