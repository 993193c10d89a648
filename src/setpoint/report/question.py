"""An ask as a headline: what is wanted, in the words of people who have not read the manual."""

from __future__ import annotations

from setpoint.measure.constraint import Constraint
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
    "npv": "of rows that are not flagged negative",
    "flagged": "of rows flagged",
    "error": "of rows decided wrongly",
    "accuracy": "of rows decided rightly",
    "review": "of rows sent to review",
}
_RELATION = {"<=": "at most", ">=": "at least", "==": "about"}


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
        'Make f_score(1) as high as possible'
    """
    name = str(problem.objective)
    usual = f"Make {name} as {'high' if problem.maximize else 'low'} as possible"
    wanted = _WANTED.get((name, problem.maximize), usual)
    if problem.over is not None:
        low, high = (f"{100 * end:.4g}%" for end in (problem.over.low, problem.over.high))
        return f"{wanted}, on average over {problem.over.rate} from {low} to {high}"
    bounds = " and ".join(map(_bound, problem.constraints))
    return f"{wanted}, with {bounds}" if bounds else wanted


def _bound(constraint: Constraint) -> str:
    relation, bound, name = _RELATION[constraint.relation], show_bound(constraint), str(constraint.quantity)
    return f"{relation} {bound} {_BOUNDED[name]}" if name in _BOUNDED else f"{name} {relation} {bound}"
