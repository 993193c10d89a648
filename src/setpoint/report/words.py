"""What a report says in sentences: the answer, whether the bounds held, and what is promised."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from setpoint.measure.constraint import Constraint, Quantity, percent
from setpoint.measure.count import count
from setpoint.measure.rate import Gap, Rate
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.report.interval import clopper_pearson
from setpoint.report.material import Contender, Material

MEANS = {
    "fpr": "negatives flagged",
    "fnr": "positives missed",
    "recall": "positives found",
    "tnr": "negatives passed over",
    "precision": "flagged rows that are positive",
    "flagged": "rows flagged",
    "accuracy": "rows decided rightly",
    "error": "rows decided wrongly",
    "jaccard": "found, among flagged or positive",
}
#: The threshold of a group, as the page shows it.
GROUP = "{value:.4g} ({group})"
PARTS = {"train": "train", "held_out": "held-out", "calibration": "calibration", "test": "test"}


def part_name(part: str) -> str:
    return PARTS.get(part, part)


def is_counted(quantity: Quantity) -> bool:
    """Whether the value is k of n rows, so that it has an exact interval."""
    return isinstance(quantity, Rate) and quantity.is_share and set(quantity.part + quantity.whole) <= {0, 1}


def show_share(value: float) -> str:
    """Percent with two decimals, and two digits where that would hide a small share."""
    return f"{100 * value:.2f}%" if value == 0 or abs(value) >= 0.001 else f"{100 * value:.2g}%"


def show_value(quantity: Quantity, value: float) -> str:
    return show_share(value) if quantity.is_share else f"{value:.4g}"


def show_bound(constraint: Constraint) -> str:
    return percent(constraint.bound) if constraint.quantity.is_share else f"{constraint.bound:.4g}"


def answer(material: Material) -> str:
    """The headline: the threshold, and the objective on the first part."""
    problem, part, chosen = material.problem, material.parts[0], material.contenders[0]
    judged = material.judge(chosen, part)
    rows = f"{len(material.labels[part]):,} {part_name(part)} rows"
    threshold = chosen.thresholds.describe(GROUP)
    if problem.over is not None:
        stretch = f"{problem.over.rate} from {percent(problem.over.low)} to {percent(problem.over.high)}"
        mean = show_value(problem.objective, judged.objective)
        return (
            f"On the {rows} {problem.objective}, averaged over {stretch}, is {mean}. "
            f"Run it at one of {problem.over.points} thresholds, {threshold}."
        )
    many = "the thresholds" if chosen.thresholds.by_group else "threshold"
    counts = problem.pool(own_counts(material, chosen, part))
    objective = _with_interval(problem.objective, judged, counts)
    return f"Run it at {many} {threshold}. On the {rows} {problem.objective} is {objective}."


def verdicts(material: Material) -> list[tuple[bool, str]]:
    """Each bound on the first part, at the run's own threshold: whether it held, and the sentence that says so."""
    problem, part, chosen = material.problem, material.parts[0], material.contenders[0]
    judged, counts = material.judge(chosen, part), own_counts(material, chosen, part)
    said = []
    for c in problem.constraints:
        held = is_held(c, problem, counts)
        value = _with_interval(c.quantity, judged, problem.pool(counts))
        verdict = "held" if held else "did not hold"
        said.append((held, f"The bound {c} {verdict} on {part_name(part)}: {c.quantity} is {value}."))
    return said


def own_counts(material: Material, contender: Contender, part: str) -> Tensor:
    """Counts of a part at the contender's own thresholds, by group where the problem compares groups."""
    sample, own = material.sample(contender, part)
    groups = None if material.problem.group is None else sample.groups
    thresholds = torch.tensor(own, dtype=torch.float64)
    return count(sample.scores, sample.labels, thresholds, groups=groups, n_groups=sample.n_groups)


def is_held(constraint: Constraint, problem: Problem, counts: Tensor) -> bool:
    return bool(constraint.holds(counts if isinstance(constraint.quantity, Gap) else problem.pool(counts)).all())


def promise(material: Material) -> str:
    """The certificate in a sentence, or what is missing for one; then what is estimated."""
    estimates = [f"Estimated on the calibration rows: {estimate}." for estimate in material.point.estimates]
    return " ".join([_promise(material), *estimates])


def _promise(material: Material) -> str:
    point, problem = material.point, material.problem
    if point.certificate is not None:
        c = point.certificate
        return (
            f"Certified: {c.statement} with confidence {percent(c.confidence)} on data like these that nobody has "
            f"seen, from {c.samples:,} calibration samples{f' ({c.method})' if c.method else ''}."
        )
    if material.refusal:
        return f"Not certified: {material.refusal.rstrip('.')}."
    if not problem.constraints:
        return "Not certified: the ask has no bound, so there is nothing to promise."
    if not point.feasible:
        return f"Not certified: on the calibration rows {point.outcome.removeprefix('infeasible: ')}."
    why = "Not certified: the threshold merely meets its bound on the calibration rows, and such thresholds break it "
    why += "on new rows about half the time. "
    return why + _what_it_takes(material)


def _what_it_takes(material: Material) -> str:
    fit = "Fit with --confidence 0.95 for one that keeps it 95 times in 100"
    constraints = material.problem.constraints
    if len(constraints) > 1 or "calibration" not in material.labels or constraints[0].relation == "==":
        return f"{fit}, where the ask allows a certificate."
    rate, bound = constraints[0].quantity, constraints[0].bound
    if not isinstance(rate, Rate) or rate.whole not in ((0, 1, 0, 1), (1, 0, 1, 0)):
        return f"{fit}, where the ask allows a certificate."
    allowed = bound if constraints[0].relation == "<=" else 1 - bound
    if not 0 < allowed < 1:
        return f"No number of rows can certify {constraints[0]}; leave a little room."
    kind, label = ("positives", 1) if rate.whole[0] else ("negatives", 0)
    # The fewest n of which not one may be on the wrong side: (1 - allowed)^n <= 5 %.
    needed = math.ceil(math.log(0.05) / math.log1p(-allowed))
    there = int((torch.as_tensor(material.labels["calibration"]) == label).sum())
    if there < needed:
        return f"A certificate needs {needed:,} {kind} among the calibration rows, and there are {there:,}."
    return f"{fit}: it needs {needed:,} {kind} among the calibration rows, and there are {there:,}."


def _with_interval(quantity: Quantity, judged: OperatingPoint, counts: Tensor) -> str:
    shown = show_value(quantity, judged.rates[str(quantity)])
    if not isinstance(quantity, Rate) or not is_counted(quantity):
        return shown
    part = counts[0] @ counts.new_tensor(quantity.part)
    low, high = clopper_pearson(round(float(part)), round(float(quantity.size(counts[0]))))
    return f"{shown} (95% interval {show_share(low)} to {show_share(high)})"
