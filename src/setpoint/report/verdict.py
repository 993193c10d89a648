"""Sentences about a run as it ships: its promise and the price of it, its rates on test rows, and its rival there."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from setpoint.data.label_columns import AnyTarget, LabelColumns
from setpoint.decide.certify import is_certifiable
from setpoint.decide.paired import Difference
from setpoint.measure.constraint import percent
from setpoint.measure.in_first import LISTS
from setpoint.problem.point import OperatingPoint
from setpoint.report.by_label import bounds_held
from setpoint.report.decision import decision_of
from setpoint.report.names import distinct_names, method_words
from setpoint.report.words import (
    cost,
    has_best_cut,
    holds_on,
    listed_classes,
    often_broken,
    part_name,
    show_bound,
    show_estimate,
    show_objective,
    show_points,
    show_value,
    units,
)
from setpoint.run.run import Run
from setpoint.run.sanity import counts_at
from setpoint.run.table import TableRun
from setpoint.train.best_kind import BestKind
from setpoint.train.contest import LOWEST
from setpoint.train.default import BASELINE

#: Longer lists of labels are cut short.
LISTED = 8


def first_line(run: TableRun) -> list[str]:
    """Whether the bounds are promised, and what that costs or what it lacks; no line where nothing can be promised."""
    own, rows = run.chosen, run.sizes["calibration"]["rows"]
    point = own.point
    if not point.feasible:
        return [f"Not certified: on the calibration rows {point.outcome.removeprefix('infeasible: ')}."]
    if point.certificate is not None:
        promise = f"{point.certificate.statement} with confidence {percent(point.certificate.confidence)}"
        said = f"Certified: {promise}, from {point.certificate.samples:,} calibration {units(point.problem)}."
        return [said + cost(point, own.cost_of_certificate)]
    if point.problem.kind == LISTS:
        return [f"Not certified: {own.refusal or 'as --confidence none asks'}."] if point.problem.constraints else []
    broken = "their bound" if len(point.problem.constraints) == 1 else "each of their bounds"
    bare = f"{decision_of(point).bare} of the {rows:,} calibration rows"
    # An equality holds on nearly no other rows; the sentence on the test rows speaks of their noise.
    if not any(c.relation == "==" for c in point.problem.constraints):
        bare += f", and such cuts break {broken} {often_broken(point.problem)}"
    if own.refusal is not None:
        return [f"Not certified: {own.refusal}; {bare}."]
    if not is_certifiable(point.problem):
        return []
    return [f"Not certified, as --confidence none asks: {bare}."]


def sentences(run: TableRun) -> list[str]:
    """The rows, the positive class, the point, whether its bounds held on test, and how the rival did."""
    own, test, sizes = run.chosen, run.chosen.judged("test"), run.sizes
    constraints, star = own.problem.constraints, "; * is beyond the bound"
    of_lists = {part: f" in {size['lists']:,} lists" if "lists" in size else "" for part, size in sizes.items()}
    rows = ", ".join(f"{size['rows']:,} {part_name(part)}{of_lists[part]}" for part, size in sizes.items())
    target = run.schema.target
    bounds = (
        []
        if own.point.labels
        else [
            f", {c.quantity} {show_value(c.quantity, test.rates[str(c.quantity)])} for a bound of {show_bound(c)}"
            for c in constraints
        ]
    )
    estimates = [] if own.point.certificate else [show_estimate(one, own.problem) for one in own.point.estimates]
    return [
        f"Rows: {rows}{star if constraints else ''}.",
        goal(target),
        *shipped_instead(own.why_shipped),
        *_kept(own),
        f"{own.point.thresholds.rule()}: {show_objective(test)} on test{''.join(bounds)}.",
        *_held(run),
        *(f"On the calibration rows: {told}." for told in estimates),
        *_rival(run),
    ]


def goal(target: AnyTarget) -> str:
    """The target in words: the positive class, all classes, or several labels."""
    if isinstance(target, LabelColumns):
        each = [f"{one.name!r} {one.positive!r}" for one in target.targets[:LISTED]]
        more = f" and {len(target.targets) - LISTED} more" if len(target.targets) > LISTED else ""
        return f"A row has a label where its column holds: {', '.join(each)}{more}. An empty cell is not known."
    if target.classes:
        return f"The {len(target.classes)} classes of {target.name!r} are {listed_classes(target.classes)}."
    change = "" if target.why == "as asked" else "; --positive changes it"
    return f"Positive is {target.positive!r} in {target.name!r}, {target.why}{change}."


def _kept(own: Run) -> list[str]:
    """Which of several kinds of models is kept, and why; nothing where there was no choice among kinds."""
    if not isinstance(own.trained.settled, BestKind):
        return []
    tried = [trial for trial in own.trials if trial.point is not None]
    kept = next(trial for trial in tried if trial.chosen)
    name = method_words(kept.name)
    why = "it has the lowest log-loss" if kept.note.startswith(LOWEST) else "it is clearly better for this ask"
    if kept is tried[0]:
        return [f"{len(tried)} kinds of models were tried. The simplest is kept ({name}): no other is better."]
    return [f"{len(tried)} kinds of models were tried. Kept: {name}, since {why} on rows that no member saw."]


def shipped_instead(why: str) -> list[str]:
    """A sentence on why plain cross-entropy is shipped in the place of the default, if it is."""
    return [f"Shipped is plain cross-entropy: {why}."] if why else []


def _held(run: TableRun) -> list[str]:
    own, test = run.chosen, run.chosen.judged("test")
    bounds = own.problem.constraints
    if not bounds or not own.point.feasible:
        return []
    held, within = test.feasible, ""
    if not held and own.problem.group is None and any(c.relation == "==" for c in bounds):
        counts = counts_at(own, "test")
        held = all(holds_on(constraint, counts) for constraint in bounds)
        within = ", within the noise of its rows" if held else ""
    one = "The bound held" if held else "The bound did not hold"
    verdict = f"{one if len(bounds) == 1 else 'All bounds held' if held else 'Not all bounds held'} on test{within}"
    if not is_certifiable(own.problem):
        return [f"{verdict}; no data can certify such a bound."]
    if held:
        return [f"{verdict}."]
    noise = f"where {run.sizes['test']['rows']:,} rows have noise of their own"
    chance = own.point.certificate or own.problem.kind == LISTS
    return [f"{verdict}, {noise if chance else f'as happens at bare cuts {often_broken(own.problem)}'}."]


def shown_runs(run: TableRun) -> tuple[list[Run], list[str]]:
    """The runs that people compare, and their names in words; a rival that is the shipped model itself is left out."""
    runs = list(run.runs[:-1] if run.rival is not None and _is_same(run.chosen, run.rival) else run.runs)
    return runs, distinct_names([one.method for one in runs])


def _is_same(one: Run, other: Run) -> bool:
    ours, theirs = one.sample("test").scores, other.sample("test").scores
    return one.point.thresholds == other.point.thresholds and torch.equal(ours, theirs)


def _rival(run: TableRun) -> list[str]:
    if run.rival is None or run.against is None:
        return []
    if _is_same(run.chosen, run.rival):
        return ["The model that ships is plain cross-entropy with a threshold for the ask; nothing else did better."]
    if not run.chosen.point.feasible:
        noun = run.chosen.point.thresholds.noun
        return [f"No {noun} meets the bounds on the calibration rows, so there is nothing to compare."]
    both, (first, *_, last) = (run.chosen, run.rival), shown_runs(run)[1]
    points, shipped = ([one.judged("test") for one in pair] for pair in (both[0].on_equal_terms(both[1]), both))
    certified = [one.point.certificate is not None for one in both]
    lines = against(run.against, (first, last), points, compared_at(certified, (first, last)), shipped=shipped)
    best = [one.best("test") for one in both]
    if has_best_cut(run.problem) and all(point.feasible for point in best):
        lines.append(best_cuts(best[0], best[1]))
    return lines


def compared_at(certified: Sequence[bool], names: tuple[str, str]) -> str:
    """The thresholds at which two models are compared, as the beginning of a sentence."""
    if certified[0] == certified[1]:
        return "As shipped"
    return f"Both at bare cuts, since only {names[certified.index(True)]} could be certified"


def against(
    found: Difference,
    names: tuple[str, str],
    points: Sequence[OperatingPoint],
    at: str,
    part: str = "test",
    shipped: Sequence[OperatingPoint] | None = None,
) -> list[str]:
    """Sentences on a rival: the numbers of both models on equal terms, whether they differ beyond noise, as shipped."""
    problem, objective = found.problem, found.problem.objective
    over, shipped = "" if problem.over is None else f" over {problem.over.rate}", shipped or points

    def numbers_of(pair: Sequence[OperatingPoint]) -> str:
        each = [f"{show_value(objective, one.objective)} for {name}{_at(one)}" for name, one in zip(names, pair)]
        return f"{objective}{over} {each[0]}, against {each[1]}."

    numbers = f"{at}, on the same {found.rows:,} {part_name(part)} rows: {numbers_of(points)}"
    value, low, high = (show_points(objective, end, signed=True) for end in (found.value, found.low, found.high))
    unit = " points" if objective.is_share else ""
    size = f"The difference is {value}{unit} ({percent(found.confidence)} interval {low} to {high}, paired)"
    lines = [numbers, f"{size}: {_in_favour(found, names, shipped)}."]
    return [*lines, f"As they ship: {numbers_of(shipped)}"] if found.bare else lines


def _in_favour(found: Difference, names: tuple[str, str], shipped: Sequence[OperatingPoint]) -> str:
    if not found.is_clear:
        return "within the noise of these rows"
    if found.is_better:
        return f"beyond noise, in favour of {names[0]}"
    broken = shipped[0].feasible and not shipped[1].feasible
    breaks = f", though it breaks its bound {'as it ships' if found.bare else 'there'}" if broken else ""
    ships = f"; --solver {BASELINE} ships it" if names[1] == BASELINE else "; these rows judge, they do not choose"
    return f"beyond noise, in favour of {names[1]}{breaks}{ships}"


def _at(point: OperatingPoint) -> str:
    """The bounded rates of a point, in brackets; for several labels how many bounds hold."""
    if point.labels:
        held, bounds = bounds_held(point)
        return f" ({held} of {bounds} bounds held)" if bounds else ""
    rates = [f"{c.quantity} {show_value(c.quantity, point.rates[str(c.quantity)])}" for c in point.problem.constraints]
    return f" ({', '.join(rates)})" if rates else ""


def best_cuts(ours: OperatingPoint, theirs: OperatingPoint, part: str = "test") -> str:
    """A sentence on the best cut of the rows for each model, which stands behind the numbers as shipped."""
    first, second = (show_value(point.problem.objective, point.objective) for point in (ours, theirs))
    return f"At the best cuts of the {part_name(part)} rows, chosen with their labels: {first} against {second}."
