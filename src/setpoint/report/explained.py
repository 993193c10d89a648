"""Sentences that explain an ask, its certificate and a comparison of solvers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from setpoint.decide.by_kind import decider
from setpoint.decide.calibrate import calibrate
from setpoint.decide.certify_groups import needed_for_gap
from setpoint.decide.order import worth
from setpoint.decide.samples_needed import allowed_share, counted, refuse_the_impossible, whole_of
from setpoint.decide.settle import USUAL, demanded
from setpoint.errors import BadProblem, SetpointError
from setpoint.measure.band import BAND, BandRate, is_one_sided
from setpoint.measure.classes import CLASSES
from setpoint.measure.constraint import CUT, Constraint, percent
from setpoint.measure.in_first import LISTS
from setpoint.measure.labels import LABELS
from setpoint.measure.rate import Gap
from setpoint.measure.worth import WORTH
from setpoint.problem.caution import always_holds
from setpoint.problem.evidence import is_testable
from setpoint.problem.labels import LabelProblem
from setpoint.problem.problem import Problem
from setpoint.report.meaning import meaning_of
from setpoint.report.names import compared_names
from setpoint.report.words import has_best_cut, often_broken, show_bound
from setpoint.run.compare import Comparison
from setpoint.run.standing import Standing

CONFIDENCES = (0.9, 0.95, 0.99)
#: With fewer splits a comparison does not advise to take the simplest method: Student's t hides large differences.
ENOUGH_TRIALS = 5
#: How rows are decided, by the kind of question: without bounds, and before the bounds.
_FREE = {
    CUT: "; the threshold is free, and the best one is part of the answer",
    BAND: "; both cuts are free, and the best ones are part of the answer",
    "classes": "; the shift of each class is free, and the best ones are part of the answer",
    "lists": ", by the order of the rows in each list",
}
_WHERE = {
    CUT: "at a threshold where",
    BAND: "at two cuts where",
    "classes": "with a shift for each class so that",
    "lists": "by an order of the rows in each list where",
}
#: How rows are decided, where the ask does not say it.
_DECIDED = {BAND: " Rows above the upper cut are flagged, rows between the cuts are reviewed, the rest is not flagged."}
#: The kinds of questions whose certificate is foretold from the ask alone, and where a mistake falls.
_WRONG_SIDE = {CUT: "the threshold; more of them allow a better one", BAND: "its cut; more of them allow better cuts"}
_WRONG_SIDE[WORTH] = _WRONG_SIDE[LABELS] = _WRONG_SIDE[CUT]
_WRONG_SIDE[CLASSES] = "the shifts; more of them allow better ones"


@dataclass(frozen=True)
class Need:
    """The fewest calibration samples with which a bound can be certified, for each confidence."""

    bound: str
    of: str
    samples: dict[float, int]


def meaning(problem: Problem) -> str:
    """The ask as a sentence; of several labels with different asks one sentence each."""
    if isinstance(problem, LabelProblem):
        own = [f"For {label}: {meaning(asked)}" for label, asked in problem.each.items()]
        if problem.is_uniform:
            own = [f"For each of {', '.join(problem.labels)}: {meaning(next(iter(problem.each.values())))}"]
        return " ".join(["Each label has its own threshold, and the objective is the mean over the labels.", *own])
    text, over = f"Make {problem.objective} as {'high' if problem.maximize else 'low'} as it can be", problem.over
    if over is not None:
        return (
            f"{text}, on average over all thresholds at which {over.rate} lies between {percent(over.low)} and "
            f"{percent(over.high)}; training looks at {over.points} of them."
        )
    if not problem.constraints:
        return f"{text}{_FREE.get(problem.kind, _FREE[CUT])}."
    where = _WHERE.get(problem.kind, _WHERE[CUT])
    bounds = " and ".join(map(_bound, problem.constraints))
    return f"{text}, {where} {bounds}.{_DECIDED.get(problem.kind, '')}"


def _bound(constraint: Constraint) -> str:
    words = {"<=": "is at most", ">=": "is at least", "==": "is as near as can be to"}[constraint.relation]
    if isinstance(constraint.quantity, Gap) and constraint.relation == "==":
        words = "is, within one sample of the smallest group,"
    return f"{constraint.quantity} {words} {show_bound(constraint)}"


def rates(problem: Problem) -> dict[str, str]:
    """The meaning of each rate in the ask."""
    if isinstance(problem, LabelProblem):
        each = [rates(own) for own in problem.each.values()]
        return {str(problem.objective): meaning_of(problem.objective), **{n: m for one in each for n, m in one.items()}}
    over = () if problem.over is None else (problem.over.rate,)
    gaps = [c.quantity.rate for c in problem.constraints if isinstance(c.quantity, Gap)]
    quantities = dict.fromkeys([problem.objective, *over, *(c.quantity for c in problem.constraints), *gaps])
    return {str(quantity): meaning_of(quantity) for quantity in quantities}


def certificate(problem: Problem) -> tuple[str | None, list[Need]]:
    """The reason why there can be no certificate, if any, and the fewest samples for each bound that is a share."""
    if not problem.constraints:
        return "there is no bound to certify; the objective itself is only estimated", []
    if problem.kind not in (*_WRONG_SIDE, LISTS):
        return "no certificate can be foretold from the ask alone for this kind of question", []
    groups = None if problem.group is None else ["a", "b"]
    width = (len(problem.labels),) if isinstance(problem, LabelProblem) else ()
    labels = torch.arange(2.0).reshape(2, *(1 for _ in width)).expand(2, *width)
    lists = ["a", "b"] if problem.kind == LISTS else None
    try:
        if problem.kind == CLASSES:
            untestable = next((c for c in problem.constraints if not is_testable(c)), None)
            if untestable is not None:
                return f"no exact test is known for {untestable}; it is estimated", []
            refuse_the_impossible(problem)
        else:
            calibrate(problem, torch.zeros(2, *width), labels, confidence=0.95, groups=groups, lists=lists)
    except BadProblem as cause:
        return str(cause), []
    except SetpointError:
        # Two samples are too few for anything: that is all this tells.
        pass
    found = []
    for constraint in problem.constraints:
        of, allowed = "lists" if lists else whole_of(constraint), allowed_share(constraint)
        of = counted(constraint) if problem.kind == CLASSES else of
        if isinstance(constraint.quantity, Gap) and len(problem.constraints) == 1 and 0 < allowed < 1:
            sizes = {c: needed_for_gap(constraint, c) for c in CONFIDENCES}
            found.append(Need(str(constraint), f"{counted(constraint)} of each group", sizes))
        if of and 0 < allowed < 1:
            needed = decider(problem).needed
            found.append(Need(str(constraint), of, {c: needed(problem, constraint, c) for c in CONFIDENCES}))
    return None, found


def advice(problem: Problem, refusal: str | None, needs: list[Need]) -> list[str]:
    """Sentences on how much data the certificate takes."""
    if refusal is not None:
        reason = refusal if refusal.startswith("no certificate") else f"no certificate: {refusal}"
        return [f"{reason[0].upper()}{reason[1:]}."]
    lines = []
    if needs:
        lines.append(
            "With so few, every list must have the best value; lists as they are take more."
            if problem.kind == LISTS
            else f"With so few, none may fall on the wrong side of {_WRONG_SIDE[problem.kind]}."
        )
        most = max(needs, key=lambda need: need.samples[0.95])
        if not most.of.endswith("flagged") and "predicted" not in most.of:
            total = -(-most.samples[0.95] // 0.15)
            lines.append(
                f"setpoint fit sets 15% of the rows aside for it: for 95% the table should hold some {total:,.0f} "
                f"{most.of}."
            )
    if any(need.of == "flagged" for need in needs):
        lines.append(
            "How much data flags that many depends on the model and on how rare positives are, and not all that is "
            "flagged will be right: count on several times the number."
        )
    if any(need.of == "not flagged" for need in needs):
        lines.append("How many rows are not flagged depends on the model, and not all of them will be negative.")
    if any("predicted" in need.of for need in needs):
        lines.append("How many rows are predicted as a class depends on the model, and not all of them will be right.")
    lines += _of_band(problem)
    if problem.kind == LABELS:
        lines.append("The labels share the error probability, so that the bounds of all labels hold together.")
    if problem.group is not None:
        lines.append(
            "For a gap it depends on the data: the smaller of the compared groups decides, and the fewest samples "
            "certify cuts at which all of them pass, or none."
        )
    else:
        lines += _of_other_bounds(problem, needs)
    return lines


def _of_other_bounds(problem: Problem, needs: list[Need]) -> list[str]:
    """Sentences on the bounds for which the ask alone does not give a number of samples."""
    told = {need.bound for need in needs}
    others = [bound for bound in problem.constraints if str(bound) not in told]
    lines = [f"{bound} needs no sample, because it always holds." for bound in others if always_holds(bound)]
    if len(others) > len(lines):
        all_of_them = "How many samples a certificate needs depends on the data."
        lines.append("For the other bounds it depends on the data." if told or lines else all_of_them)
    return lines


def _of_band(problem: Problem) -> list[str]:
    """A sentence on how a band is certified; none for problems of other kinds."""
    if problem.kind != BAND:
        return []
    if not all(map(is_one_sided, problem.constraints)):
        aside = "a third of the calibration rows choose pairs of cuts to try, the other rows test them"
        return [f"Review depends on both cuts, so pairs of cuts are certified: {aside}."]
    sides = {c.quantity: _cut_of(c) for c in problem.constraints}
    if len(set(sides.values())) == 1:
        return [f"Only the {_cut_of(problem.constraints[0])} is bounded; the other cut is chosen freely."]
    bounded = _listed([f"the {cut} by {quantity}" for quantity, cut in sides.items()])
    return [
        f"Each cut is certified by itself, {bounded}; the two share the error probability, so all bounds hold together."
    ]


def _cut_of(constraint: Constraint) -> str:
    """The cut that a bound on one of two cuts is about."""
    assert isinstance(constraint.quantity, BandRate)
    return "upper cut" if constraint.quantity.sides[0] else "lower cut"


def difference(problem: Problem, standing: Standing) -> str:
    """The mean difference from plain cross-entropy with its standard error; a star where it is beyond noise."""
    if standing.difference is None:
        return ""
    size = 100 if problem.objective.is_share else 1
    text = f"{size * standing.difference:+.2f}"
    if standing.standard_error is not None:
        text += f" ± {size * standing.standard_error:.2f}"
    return f"{text}{'*' if standing.is_clear else ' '}"


def legend(found: Comparison) -> list[str]:
    """The meaning of each column of the table of a comparison."""
    seeds = f"{found.seeds[0]}" if len(found.seeds) == 1 else f"{found.seeds[0]} to {found.seeds[-1]}"
    points = "in points, " if found.problem.objective.is_share else ""
    lines = [
        f"Means over {len(found.seeds)} random splits (seeds {seeds}); {found.rows['train']:,} training and "
        f"{found.rows['test']:,} test rows each.",
        f"Shipped: on the test rows, at the threshold set on calibration rows. Difference: {points}± one standard "
        "error, corrected for rows that splits share; * is beyond noise (95%, all methods together). Best cut: at the "
        "best threshold of the test rows, which has seen their labels."
        if has_best_cut(found.problem)
        else f"Shipped: on the test rows. Difference: {points}± one standard error, corrected for rows that splits "
        "share; * is beyond noise (95%, all methods together).",
    ]
    stopped = sum(standing.stopped for standing in found.standings)
    if stopped:
        lines.append(
            f"Stopped: means over the splits that ran; nothing in the others could have told "
            f"{'this method' if stopped == 1 else 'these methods'} from cross-entropy. --all-trials runs all splits."
        )
    unequal = sum(standing.bare_splits for standing in found.standings)
    if unequal:
        lines.append(
            f"Difference: {unequal} {'time' if unequal == 1 else 'times'} only one of a method and cross-entropy could "
            "be certified; both are then compared at their bare cuts."
        )
    if found.problem.constraints:
        lines.append(f"Bounds held: on the test rows, at the shipped threshold, {_certified(found)}.")
    lost = sum(value is None for standing in found.standings for value in standing.best)
    if lost:
        lines.append(f"{lost} times no threshold met the bounds on the test rows; best cuts leave those out.")
    return lines


def _certified(found: Comparison) -> str:
    """How often the thresholds of a comparison have a certificate, in words."""
    every = [certified for standing in found.standings for certified in standing.certified]
    bare = f"a bare cut breaks its bound {often_broken(found.problem)}"
    if not any(every):
        return f"uncertified{f' ({found.refusal})' if found.refusal else ''}; {bare}"
    sure = f"{100 * (demanded(found.settings.confidence) or USUAL):g}%"
    if all(every):
        return f"certified at {sure}"
    return f"certified at {sure} in {sum(every)} of {len(every)} runs; {bare}"


def verdict(found: Comparison) -> str:
    """A sentence that names the methods that differ from plain cross-entropy, as shipped, by more than noise."""
    problem, trials = found.problem, len(found.seeds)
    others = list(zip(found.standings, compared_names([s.solver for s in found.standings])))[1:]
    if not others:
        return "Nothing was compared with cross-entropy."
    if trials < 2:
        return f"One split says nothing about noise; give --trials {ENOUGH_TRIALS} or more."
    parts, bare = [], any(standing.bare_splits for standing in found.standings)
    at = "As shipped, or at bare cuts where only one was certified" if bare else "As shipped"
    for word, better in (("better", True), ("worse", False)):
        names = [word for s, word in others if s.is_clear and (worth(problem, s.difference or 0.0) > 0) is better]
        if names:
            parts.append(f"{_listed(names)} {'was' if len(names) == 1 else 'were'} {word}")
    rest = [word for s, word in others if not s.is_clear]
    if not parts:
        # A method that decides as cross-entropy does on every split shows no noise, and proves nothing of it.
        margins = sorted(s.hidden for s, _ in others if s.hidden)
        if not margins:
            return f"{at}, no method differs from cross-entropy on any of these splits: take the simplest."
        size = _points(problem, margins[0], margins[-1])
        simplest = "take the simplest, or give more --trials or more rows"
        few = f"give {ENOUGH_TRIALS} --trials or more, since so few splits say little"
        return (
            f"{at}, no method differs from cross-entropy by more than the noise of {trials} splits, which hides "
            f"differences up to {size}: {few if trials < ENOUGH_TRIALS else simplest}."
        )
    text = f"{at}, compared with cross-entropy on {trials} splits, {' and '.join(parts)} beyond noise"
    if rest:
        text += f"; {_listed(rest)} cannot be told from it"
    return f"{text}."


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _points(problem: Problem, low: float, high: float) -> str:
    if not problem.objective.is_share:
        return " to ".join(dict.fromkeys(f"{size:.2g}" for size in (low, high)))
    texts = dict.fromkeys(f"{100 * size:.{1 if size < 0.1 else 0}f}" for size in (low, high))
    return f"{' to '.join(texts)} points"
