"""An ask as a headline: what is wanted, in the words of people who have not read the manual."""

from __future__ import annotations

import re

from setpoint.measure.constraint import Constraint
from setpoint.measure.rate import Gap
from setpoint.problem.labels import LabelProblem
from setpoint.problem.problem import Problem
from setpoint.report.words import show_bound

_WANTED = {
    ("fnr", False): "Miss as few positives as possible",
    ("recall", True): "Find as many positives as possible",
    ("fpr", False): "Flag as few negatives as possible",
    ("tnr", True): "Leave as many negatives alone as possible",
    ("precision", True): "Be right as often as possible when a row is flagged",
    ("error", False): "Decide as few rows wrongly as possible",
    ("accuracy", True): "Decide as many rows rightly as possible",
    ("flagged", False): "Flag as few rows as possible",
    ("flagged", True): "Flag as many rows as possible",
    ("review", False): "Send as few rows as possible to review",
}
_BOUNDED = {
    "fpr": "of negatives flagged",
    "fnr": "of positives missed",
    "recall": "of positives found",
    "tnr": "of negatives left alone",
    "precision": "of flagged rows positive",
    "npv": "of unflagged rows negative",
    "flagged": "of rows flagged",
    "error": "of rows decided wrongly",
    "accuracy": "of rows decided rightly",
    "review": "of rows sent to review",
}
_RELATION = {"<=": "at most", ">=": "at least", "==": "about"}
#: Names of quantities with a part of their own, the words for the best of them, and the words after a bound.
_FORMS = (
    (re.compile(r"macro recall"), "Find as many rows of each class as possible, all classes counting the same", ""),
    (re.compile(r"recall of class (.+)"), r"Find as many rows of class \1 as possible", r"of class \1 found"),
    (re.compile(r"precision of class (.+)"), r"Be right as often as possible with class \1",
     r"of the rows given class \1 right"),
    (re.compile(r"coverage of class (.+)"), "", r"of rows given class \1"),
    (re.compile(r"precision in the first (\d+)"), r"Put as many positives as possible among the first \1 of each list",
     r"of the first \1 of each list positive"),
    (re.compile(r"recall in the first (\d+)"), r"Find as many positives as possible in the first \1 of each list",
     r"of the positives in the first \1 of each list"),
    (re.compile(r"recall weighted by (.+)"), r"Find positives with as much \1 as possible",
     r"of the \1 of positives found"),
    (re.compile(r"f_score\(1\)"), "Make the F1 score as high as possible", ""),
    (re.compile(r"cost\(.*\)"), "Make the cost as low as possible", ""),
)  # fmt: skip


def question(problem: Problem) -> str:
    """The ask in words, in one line.

    Args:
        problem: The problem.

    Returns:
        A sentence without a full stop.

    Example:
        >>> import setpoint as sp
        >>> from setpoint.report.question import question
        >>> question(sp.ask("minimize fnr where fpr <= 1%"))
        'Miss as few positives as possible, with at most 1% of negatives flagged'
        >>> question(sp.ask("maximize f1"))
        'Make the F1 score as high as possible'
        >>> question(sp.ask("minimize error where recall of class melanoma >= 95%"))
        'Decide as few rows wrongly as possible, with at least 95% of class melanoma found'
    """
    if isinstance(problem, LabelProblem):
        several = f"for each of {len(problem.labels)} labels"
        same = f"{question(next(iter(problem.each.values())))}, {several}"
        return same if problem.is_uniform else f"Decide {len(problem.labels)} labels per row, each by its own ask"
    name = str(problem.objective)
    usual = f"Make {name} as {'high' if problem.maximize else 'low'} as possible"
    wanted = _WANTED.get((name, problem.maximize)) or _form(name, 1, problem.maximize) or usual
    if problem.over is not None:
        low, high = (f"{100 * end:.4g}%" for end in (problem.over.low, problem.over.high))
        return f"{wanted}, on average over {problem.over.rate} from {low} to {high}"
    bounds = " and ".join(map(_bound, problem.constraints))
    return f"{wanted}, with {bounds}" if bounds else wanted


def _bound(constraint: Constraint) -> str:
    relation, bound, name = _RELATION[constraint.relation], show_bound(constraint), str(constraint.quantity)
    if isinstance(constraint.quantity, Gap):
        own = constraint.quantity
        return f"{own.rate} that differs by {relation} {bound} between the groups of {own.group}"
    words = _BOUNDED.get(name) or _form(name, 2)
    return f"{relation} {bound} {words}" if words else f"{name} {relation} {bound}"


def _form(name: str, place: int, usual_way: bool = True) -> str:
    """The words for a quantity with a part of its own, or an empty text; costs are kept low, all others high."""
    for form in _FORMS:
        found = form[0].fullmatch(name)
        if found and (place == 2 or usual_way != name.startswith("cost")):
            return found.expand(str(form[place]))
    return ""
