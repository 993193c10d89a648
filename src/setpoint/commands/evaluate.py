"""`setpoint evaluate`: a saved run against new labelled rows, every bound by an exact test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from setpoint.commands.show import (
    console,
    grid,
    objective_text,
    say,
    threshold_text,
    unlike_training,
    value_text,
    write_json,
)
from setpoint.data.exchange import frames_of
from setpoint.data.frame import Frame
from setpoint.data.seen import Notes
from setpoint.decide.calibrate import evaluate
from setpoint.decide.tally import ScoreTally, sample_of
from setpoint.errors import BadSetting
from setpoint.measure.constraint import percent
from setpoint.measure.count import count
from setpoint.measure.rate import recall
from setpoint.problem.check import Check, check_counts
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.run.artefact import SavedRun, load_run

BROKEN = 1


def main(
    *,
    run: Path,
    data: Path,
    level: float,
    stream: bool,
    ignore_extra: bool,
    strict: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    saved = load_run(run)
    point, problem = saved.point, saved.point.problem
    notes = saved.schema.notes()
    frames = frames_of(data, stream=stream)
    if stream:
        here, check, best, size = _in_chunks(saved, frames, level, ignore_extra, notes)
    else:
        (frame,) = frames
        labels, scores = saved.schema.labels(frame), saved.scores(frame, ignore_extra=ignore_extra, notes=notes)
        groups = None if problem.group is None else saved.schema.groups(frame, problem.group)
        here = point.judge(scores, labels, groups=groups)
        check = point.check(scores, labels, groups=groups, level=level)
        best = evaluate(problem, scores, labels, groups=groups)
        size = (len(labels), int(labels.sum()))
    if strict and unlike_training(notes.alarms()):
        return BROKEN
    code = 0 if check.holds else BROKEN
    say(console(stderr=True, quiet=quiet), *(f"note: {note}" for note in notes.sentences()))
    if as_json:
        write_json(
            {
                "ask": str(problem),
                "rows": size[0],
                "positives": size[1],
                "threshold": here.threshold,
                "objective": here.objective,
                "rates": here.rates,
                "holds": bool(check.holds),
                "p_value": float(check.p_value),
                "level": check.level,
                "bounds": [asdict(row) for row in check.bounds],
                "best": {"feasible": best.feasible, "objective": best.objective, "threshold": best.threshold},
                "sentence": str(check),
            }
        )
        return code
    screen = console(quiet=quiet)
    say(screen, f"{problem}, on {size[0]} rows, {size[1]} of them positive:")
    screen.print(grid(["rate", "when set", "here", "best cut\nhere"], _rates(point, here, best)))
    if check.bounds:
        screen.print(grid(["bound", "here", "samples", "p-value"], [_bound(problem, row) for row in check.bounds]))
    say(screen, *_sentences(point, check, best))
    return code


def _in_chunks(
    saved: SavedRun, frames: Iterable[Frame], level: float, ignore_extra: bool, notes: Notes
) -> tuple[OperatingPoint, Check, OperatingPoint, tuple[int, int]]:
    """The point judged and checked, the best cut, and the number of rows and positives: exact, in two passes."""
    point, problem = saved.point, saved.point.problem
    threshold = point.thresholds.single
    if threshold is None:
        raise BadSetting(f"'{problem}' has several thresholds, which --stream does not judge; leave it out")

    def scored(told: Notes | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        for frame in frames:
            yield saved.scores(frame, ignore_extra=ignore_extra, notes=told), saved.schema.labels(frame)

    tally, counts = ScoreTally(), torch.zeros(4, dtype=torch.float64)
    for scores, labels in scored(notes):
        tally.update(scores, labels)
        counts += count(scores.double(), labels, threshold)
    closer = tally.around(problem)
    for scores, labels in scored():
        closer.update(scores, labels)
    best = closer.calibrate(problem)
    here = OperatingPoint.at(problem, point.thresholds, sample_of(counts), point.certificate)
    size = (int(counts.sum()), int(counts[0] + counts[2]))
    return replace(here, feasible=problem.holds(counts[None])), check_counts(problem, counts, level=level), best, size


def _rates(*points: OperatingPoint) -> list[list[str]]:
    quantities = {str(q): q for q in (points[0].problem.objective, *(c.quantity for c in points[0].problem.bounds))}
    names = [name for name in points[0].rates if all(name in point.rates for point in points)]
    # Whatever is not named in the ask is one of the rates shown beside it, all of them shares.
    return [
        [name, *(value_text(quantities.get(name, recall), point.rates[name]) for point in points)] for name in names
    ]


def _bound(problem: Problem, row: Any) -> list[str]:
    quantity = {str(constraint): constraint.quantity for constraint in problem.constraints}[row.bound]
    place = f"{row.bound} in {row.group}" if row.group else row.bound
    p_value = "no exact test" if row.p_value is None else f"{row.p_value:.3g}"
    return [place, value_text(quantity, row.rate), " and ".join(map(str, row.samples)), p_value]


def _sentences(point: OperatingPoint, check: Any, best: OperatingPoint) -> list[str]:
    words = str(check).partition(": ")[0]
    lines = [f"{words[0].upper()}{words[1:]}."]
    if any(row.p_value is not None for row in check.bounds):
        lines.append(
            f"The level of {percent(check.level)} is per look: a promise that is kept is called broken at up to "
            f"{percent(check.level)} of looks; for k looks in all, divide --level by k."
        )
    if point.certificate is not None:
        sure = percent(point.certificate.confidence)
        lines.append(f"It was certified: {point.certificate.statement}, with confidence {sure}.")
    elif point.problem.constraints:
        lines.append("It was never certified: setpoint fit --confidence 0.95 sets a threshold that keeps its bounds.")
    if not best.feasible:
        return [*lines, "No threshold meets the bounds on these rows."]
    return [
        *lines,
        f"The best cut of these rows, threshold {threshold_text(best)}, has {objective_text(best)}; it has seen the "
        "labels, so it is a yardstick and no threshold to run at.",
    ]
