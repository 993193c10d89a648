"""`setpoint evaluate`: a saved run against new labelled rows, every bound by an exact test."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from setpoint.artefact import load_run
from setpoint.measure.constraint import percent
from setpoint.measure.rate import recall
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.show import console, grid, objective_text, say, threshold_text, value_text, write_json
from setpoint.table.exchange import read_anywhere
from setpoint.table.groups import group_names
from setpoint.train.calibrate import evaluate

BROKEN = 1


def main(*, run: Path, data: Path, level: float, ignore_extra: bool, as_json: bool, quiet: bool) -> int:
    saved = load_run(run)
    frame = read_anywhere(data)
    labels, scores = saved.schema.labels(frame), saved.scores(frame, ignore_extra=ignore_extra)
    point, problem = saved.point, saved.point.problem
    groups = None if problem.group is None else group_names(frame, problem.group)
    here, check = point.judge(scores, labels, groups=groups), point.check(scores, labels, groups=groups, level=level)
    best = evaluate(problem, scores, labels, groups=groups)
    code = 0 if check.holds else BROKEN
    say(console(stderr=True, quiet=quiet), *(f"note: {note}" for note in saved.schema.notes(frame)))
    if as_json:
        write_json(
            {
                "ask": str(problem),
                "rows": len(labels),
                "positives": int(labels.sum()),
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
    say(screen, f"{problem}, on {len(labels)} rows, {int(labels.sum())} of them positive:")
    screen.print(grid(["rate", "when set", "here", "best cut\nhere"], _rates(point, here, best)))
    if check.bounds:
        screen.print(grid(["bound", "here", "samples", "p-value"], [_bound(problem, row) for row in check.bounds]))
    say(screen, *_sentences(point, check, best))
    return code


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
