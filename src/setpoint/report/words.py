"""Sentences and number formats that people see: on the terminal, and on the page of a run.

Sentences about an ask, its certificate and a comparison of solvers are in `explained`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from setpoint.decide.samples_needed import allowed_share, needed, whole_of
from setpoint.measure.classes import CLASSES, OfClass
from setpoint.measure.constraint import Constraint, Quantity, percent
from setpoint.measure.in_first import LISTS
from setpoint.measure.labels import LABELS
from setpoint.measure.rate import Gap, Rate
from setpoint.measure.worth import plain_of
from setpoint.problem.certificate import Estimate
from setpoint.problem.check import Check
from setpoint.problem.evidence import interval, is_testable, p_if_kept
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.report.decision import decision_of
from setpoint.report.material import Material
from setpoint.run.sanity import IN_DOUBT

#: The threshold of a group, as the page shows it.
GROUP = "{value} ({group})"
#: An equality holds on rows that cannot tell its rate from the bound by an exact test of this level.
LEVEL = 0.05


def has_best_cut(problem: Problem) -> bool:
    """Whether rows have a best cut of their own; the first rows of lists are what the ask says."""
    return problem.kind != LISTS


def units(problem: Problem) -> str:
    """The independent units that a certificate counts, in a word."""
    return "lists" if problem.kind == LISTS else "samples"


def part_name(part: str) -> str:
    return part.replace("_", "-")


def is_counted(quantity: Quantity) -> bool:
    """Whether the value is k of n rows, so that it has an exact interval."""
    return isinstance(quantity, Rate) and quantity.is_share and set(quantity.part + quantity.whole) <= {0, 1}


def show_share(value: float) -> str:
    """Percent with two decimals, and two digits where that would hide a small share."""
    return f"{100 * value:.2f}%" if value == 0 or abs(value) >= 0.001 else f"{100 * value:.2g}%"


def listed_classes(names: Sequence[str], most: int = 8) -> str:
    """The names of classes, the first of them where they are many."""
    return ", ".join(map(repr, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")


def show_value(quantity: Quantity, value: float) -> str:
    return show_share(value) if quantity.is_share else f"{value:.4g}"


def show_bound(constraint: Constraint) -> str:
    return percent(constraint.bound) if constraint.quantity.is_share else f"{constraint.bound:.4g}"


def show_bounded(constraint: Constraint, rates: Mapping[str, float], *, feasible: bool) -> tuple[str, bool]:
    """A bounded rate, and whether to mark it as beyond its bound, where not all bounds hold."""
    value, bound = rates[str(constraint.quantity)], constraint.bound
    beyond = {"<=": value > bound, ">=": value < bound, "==": True}[constraint.relation]
    return show_value(constraint.quantity, value), beyond and not feasible


def show_objective(point: OperatingPoint) -> str:
    problem = point.problem
    over = "" if problem.over is None else f" over {problem.over.rate}"
    return f"{problem.objective}{over} {show_value(problem.objective, point.objective)}"


def show_estimate(estimate: Estimate, problem: Problem) -> str:
    """An estimate with its interval, in the unit of its quantity."""
    asked = {str(q): q for q in (problem.objective, *(c.quantity for c in problem.constraints))}
    quantity = asked.get(estimate.quantity, problem.objective)
    value, low, high = (show_value(quantity, number) for number in (estimate.value, estimate.low, estimate.high))
    sure = percent(estimate.confidence)
    return (
        f"{estimate.quantity} {value}, between {low} and {high} with confidence {sure}: an estimate "
        f"({estimate.method}), not a certificate"
    )


def show_points(quantity: Quantity, value: float, *, signed: bool = False) -> str:
    """A difference: in points where the quantity is a share."""
    sign = "+" if signed else ""
    if not quantity.is_share:
        return f"{value:{sign}.3g}"
    return f"{100 * value:{sign}.1f}" if value == 0 or abs(value) >= 0.001 else f"{100 * value:{sign}.2g}"


def holds_on(constraint: Constraint, counts: Tensor) -> bool:
    """Whether a bound holds on rows; an equality also where an exact test cannot tell its rate there from the bound."""
    if constraint.relation == "==" and is_testable(constraint) and not isinstance(constraint.quantity, Gap):
        return bool((p_if_kept(constraint, counts) > LEVEL).all())
    return bool(constraint.holds(counts).all())


def refuted(constraint: Constraint, counts: Tensor) -> bool:
    """Whether an exact test speaks against a bound, beyond the noise of the rows."""
    return is_testable(constraint) and bool((p_if_kept(constraint, counts) <= LEVEL).any())


def checked(point: OperatingPoint, check: Check, best: OperatingPoint) -> list[str]:
    """Sentences on whether later rows speak against the bounds of a point, and on the best cut of those rows."""
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
        lines.append("It was never certified; setpoint fit says what a certificate of its bounds takes.")
    if point.problem.kind == LISTS:
        return lines
    if not best.feasible:
        none = "No shifts were found that meet" if point.classes else f"No {best.thresholds.noun} meets"
        return [*lines, f"{none} the bounds on these rows."]
    return [
        *lines,
        f"The best {best.thresholds.noun} of these rows, {best.thresholds.describe()}, has {show_objective(best)}; it "
        f"has seen the labels, so it is a yardstick and no {best.thresholds.noun} to run at.",
    ]


def answer(material: Material) -> str:
    """The headline: the decision rule, and the objective on the first part."""
    problem, part, chosen = material.problem, material.parts[0], material.contenders[0]
    judged = material.judge(chosen, part)
    rows = f"{len(material.labels[part]):,} {part_name(part)} rows"
    if problem.over is not None:
        stretch = f"{problem.over.rate} from {percent(problem.over.low)} to {percent(problem.over.high)}"
        mean = show_value(problem.objective, judged.objective)
        return (
            f"On the {rows} {problem.objective}, averaged over {stretch}, is {mean}. "
            f"Run at one of {problem.over.points} thresholds, {chosen.thresholds.describe(GROUP)}."
        )
    rule = chosen.thresholds.rule(GROUP)
    if problem.kind in (CLASSES, LISTS, LABELS):
        return f"{rule}. On the {rows}: {show_objective(judged)}."
    objective = with_interval(problem.objective, judged, problem.pool(material.counts(chosen, part)))
    return f"{rule}. On the {rows} {problem.objective} is {objective}."


def bounds_on_rows(material: Material) -> list[tuple[Constraint, bool, str, str]]:
    """Each bound at the run's own decision on the first part: whether it holds, the value, and its 95 % interval."""
    problem, part, chosen = material.problem, material.parts[0], material.contenders[0]
    judged, counts = material.judge(chosen, part), material.counts(chosen, part)
    if problem.kind in (CLASSES, LISTS):
        held = [bool(c.holds(counts).all()) for c in problem.constraints]
        values = [show_value(c.quantity, judged.rates[str(c.quantity)]) for c in problem.constraints]
        return [(c, ok, value, "") for c, ok, value in zip(problem.constraints, held, values)]
    pooled = problem.pool(counts)
    return [
        (c, holds_on(c, counts if isinstance(c.quantity, Gap) else pooled),
         *value_and_interval(c.quantity, judged, pooled))
        for c in problem.constraints
    ]  # fmt: skip


def verdicts(material: Material) -> list[tuple[str, str]]:
    """Each bound on the first part, at the run's own threshold: "holds", "broken" or "doubtful", and the sentence.

    A bound that holds is doubtful where the decision flags nearly nothing or everything, or the ask needs no model.
    """
    said, doubtful = [], any(caution.code in IN_DOUBT for caution in material.cautions)
    for c, held, value, ends in bounds_on_rows(material):
        verdict = "held" if held else "did not hold"
        kind = ("doubtful" if doubtful else "holds") if held else "broken"
        told = f"{c.quantity} is {value}{f' (95% interval {ends})' if ends else ''}"
        said.append((kind, f"The bound {c} {verdict} on {part_name(material.parts[0])}: {told}."))
    return said


def promise(material: Material) -> list[str]:
    """The certificate in a sentence, or what is missing for one; then what it costs, and what is estimated."""
    point, own = material.point, []
    if point.certificate is not None:
        own = [cost(point, material.cost).strip()]
    estimates = [f"Estimated on the calibration rows: {show_estimate(one, point.problem)}." for one in point.estimates]
    return [_promise(material), *filter(None, own), *estimates]


def _promise(material: Material) -> str:
    point, problem = material.point, material.problem
    if point.certificate is not None:
        c = point.certificate
        return (
            f"Certified: {c.statement} on new data like these, with confidence {percent(c.confidence)}, from "
            f"{c.samples:,} calibration {units(problem)}{f' ({c.method})' if c.method else ''}."
        )
    if material.refusal:
        return f"Not certified: {material.refusal.rstrip('.')}."
    if not problem.constraints:
        return "Not certified: the ask has no bound, so there is nothing to promise."
    if not point.feasible:
        return f"Not certified: on the calibration rows {point.outcome.removeprefix('infeasible: ')}."
    if problem.kind == LISTS:
        return (
            "Not certified: the bounds are merely met on the calibration rows. Fit with --confidence 0.95 to test them."
        )
    noun, bound = point.thresholds.noun, "its bound" if len(problem.constraints) == 1 else "its bounds"
    why = f"Not certified: the {noun} merely meets {bound} on the calibration rows, and on new rows such a {noun} "
    why += f"breaks {'it' if bound == 'its bound' else 'each of them'} {often_broken(problem)}. "
    return why + _what_it_takes(problem, material.labels.get("calibration"))


def often_broken(problem: Problem) -> str:
    """How often a bare cut breaks a bound on new rows.

    A rate that only rises or only falls with the cut is as often too high as too low at the cut where it meets its
    bound. One that goes up and down, such as precision, meets it at the luckiest of many cuts.
    """
    rates = [c.quantity.rate if isinstance(c.quantity, OfClass) else c.quantity for c in problem.constraints]
    one_way = all(isinstance(rate, Rate) and rate.direction != 0 for rate in rates)
    return "about half the time" if one_way else "half the time or more"


def cost(point: OperatingPoint, cost: float | None) -> str:
    """A sentence on the cost of a certificate beside the bare cut, after a space; empty where it is not known."""
    if cost is None:
        return ""
    objective, word = point.problem.objective, "less" if point.problem.maximize else "more"
    if cost <= 0:
        return f" It costs no {objective} on the calibration rows."
    unit = " points" if objective.is_share else ""
    points, (bare, that) = f"{show_points(objective, cost)}{unit} of {objective}", decision_of(point).at_bare
    return f" Its cost: {points} {word} than at {bare} of the calibration rows; --confidence none takes {that}."


def _what_it_takes(problem: Problem, calibration_labels: Any) -> str:
    """The way to a certificate: how many calibration rows it needs, where their number alone decides."""
    fit, constraint = "Fit with --confidence 0.95 for one that keeps it 95 times in 100", problem.constraints[0]
    kind, allowed = whole_of(constraint), allowed_share(constraint)
    decides = len(problem.constraints) == 1 and constraint.relation != "==" and kind in ("positives", "negatives")
    if not decides or calibration_labels is None:
        return f"{fit}, where the ask allows a certificate."
    if not 0 < allowed < 1:
        return f"No number of rows can certify {constraint}; leave a little room."
    there = int((torch.as_tensor(calibration_labels) == (kind == "positives")).sum())
    enough = needed(allowed, 0.95)
    how = "A certificate needs" if there < enough else f"{fit}: it needs"
    return f"{how} {enough:,} {kind} among the calibration rows, and there are {there:,}."


def with_interval(quantity: Quantity, judged: OperatingPoint, counts: Tensor) -> str:
    """A rate with its exact 95 % interval, where it has one."""
    value, ends = value_and_interval(quantity, judged, counts)
    return f"{value} (95% interval {ends})" if ends else value


def value_and_interval(quantity: Quantity, judged: OperatingPoint, counts: Tensor) -> tuple[str, str]:
    """A rate, and its exact 95 % interval; an empty text where it has none."""
    shown = show_value(quantity, judged.rates[str(quantity)])
    counts = counts if plain_of(quantity) is quantity else counts[..., 0, :]
    quantity = plain_of(quantity)
    if not isinstance(quantity, Rate) or not is_counted(quantity):
        return shown, ""
    part = counts[0] @ counts.new_tensor(quantity.part)
    low, high = interval(round(float(part)), round(float(quantity.size(counts[0]))), 0.95)
    return shown, f"{show_share(float(low))} to {show_share(float(high))}"
