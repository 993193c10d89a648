"""The language of asks, such as `minimize fnr where fpr <= 1%`, read into problems.

ask         = ("minimize" | "maximize") rate [ where | over ]
where       = "where" bound { "and" bound }
over        = "over" rate "in" "[" number "," number "]" [ "with" integer "points" ]
bound       = rate ("<=" | ">=" | "==") number | "flagged" ("<=" | ">=" | "==") integer "rows"
rate        = name | "f_score" "(" number ")" | rate ".gap(" column ")"
number      = decimal [ "%" ]
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable
from decimal import Decimal

from setpoint.errors import BadAsk, BadProblem
from setpoint.measure.band import review
from setpoint.measure.constraint import Constraint, Quantity, Relation
from setpoint.measure.rate import CATALOGUE, Metric, Range, Rate, f_score
from setpoint.problem.problem import Problem

SYNONYMS = {
    "tpr": "recall", "sensitivity": "recall", "specificity": "tnr", "ppv": "precision", "iou": "jaccard",
    "fall_out": "fpr", "miss_rate": "fnr", "coverage": "flagged", "selected": "flagged",
}  # fmt: skip
_VERBS = {"minimize": False, "minimise": False, "min": False, "maximize": True, "maximise": True, "max": True}
_RELATIONS: dict[str, Relation] = {"<=": "<=", "≤": "<=", ">=": ">=", "≥": ">=", "==": "==", "=": "=="}
_TOKEN = re.compile(
    r'\s*(?:(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\s*%?)|(?P<word>[^\W\d]\w*)|(?P<quoted>"(?:[^"\\]|\\.)*")'
    r"|(?P<symbol><=|>=|==|[=≤≥<>(),.\[\]]))"
)


def ask(text: str, metrics: Iterable[Metric] = ()) -> Problem:
    """Read a problem from its text; `str(problem)` gives the text back.

    Percent signs, `=`, `≤`, and the names `tpr`, `sensitivity`, `specificity` and `f1` are understood.

    Args:
        text: An ask such as `minimize fnr where fpr <= 1%`.
        metrics: Metrics of your own that the text may name.

    Returns:
        The problem.

    Raises:
        BadAsk: If the text cannot be read; the message says where, and which word was probably meant.
        BadProblem: If the bounds contradict each other or cannot be had.

    Example:
        >>> import setpoint as sp
        >>> problem = sp.ask("maximise sensitivity where fpr ≤ 1% and flagged <= 5%")
        >>> print(problem)
        maximize recall where fpr <= 1% and flagged <= 5%
    """
    if not isinstance(text, str):
        raise BadAsk(f"an ask is a text such as 'minimize fnr where fpr <= 1%', got {type(text).__name__}")
    return _Reader(text, {metric.name: metric for metric in metrics}).problem()


def read_problem(problem: Problem | str, *, rows: bool = False) -> Problem:
    """A problem as it is, or read from the text of an ask; bounds in rows are refused unless `rows` is set."""
    if isinstance(problem, str):
        problem = ask(problem)
    if not isinstance(problem, Problem):
        raise BadProblem(f"expected an ask such as 'minimize fnr where fpr <= 1%' or a problem, got {problem!r}")
    if not rows:
        problem.refuse_rows()
    return problem


class _Reader:
    """Reads one ask from left to right."""

    def __init__(self, text: str, metrics: dict[str, Metric]) -> None:
        self.text = text
        self.known: dict[str, Rate | Metric] = {**CATALOGUE, review.name: review, **metrics}
        self.tokens: list[tuple[str, str]] = []
        self.place = 0
        end = 0
        stripped = text.rstrip()
        while end < len(stripped):
            match = _TOKEN.match(stripped, end)
            if match is None:
                raise self.error(f"cannot read {stripped[end:].strip()[:20]!r}")
            self.tokens.append((str(match.lastgroup), match.group(str(match.lastgroup)).strip()))
            end = match.end()

    def error(self, what: str) -> BadAsk:
        return BadAsk(f"{what} in the ask {self.text!r}; an ask reads like 'minimize fnr where fpr <= 1%'")

    def peek(self) -> str:
        return self.tokens[self.place][1] if self.place < len(self.tokens) else ""

    def take(self, kind: str, expected: str) -> str:
        if self.place >= len(self.tokens):
            raise self.error(f"expected {expected} at the end")
        found, value = self.tokens[self.place]
        if found != kind:
            raise self.error(f"expected {expected} but found {value!r}")
        self.place += 1
        return value

    def accept(self, *values: str) -> bool:
        if self.peek().lower() in values:
            self.place += 1
            return True
        return False

    def need(self, *values: str) -> None:
        if not self.accept(*values):
            found = repr(self.peek()) if self.peek() else "the end"
            raise self.error(f"expected {values[0]!r} but found {found}")

    def problem(self) -> Problem:
        verb = self.take("word", "'minimize' or 'maximize'").lower()
        if verb not in _VERBS:
            raise self.error(self.unknown(verb, _VERBS, "should be 'minimize' or 'maximize'"))
        objective = self.quantity()
        over = self.range() if self.accept("over") else None
        constraints: list[Constraint] = []
        if self.accept("where"):
            constraints.append(self.bound())
            while self.accept("and", ","):
                constraints.append(self.bound())
        if self.peek():
            words = ["where", "over", "and"]
            raise self.error(self.unknown(self.peek(), words, f"is unexpected after {objective}"))
        return Problem(objective, _VERBS[verb], tuple(constraints), over)

    def range(self) -> Range:
        rate = self.quantity()
        self.need("in")
        self.need("[")
        low = self.number()
        self.need(",")
        high = self.number()
        self.need("]")
        if not isinstance(rate, Rate):
            raise self.error(f"{rate} has no range to average over; use a rate such as fpr or recall")
        if not self.accept("with"):
            return rate.between(low, high)
        points = self.take("number", "a number of points")
        self.need("points", "point")
        if not points.isdigit():
            raise self.error(f"expected a whole number of points but found {points!r}")
        return rate.between(low, high, int(points))

    def bound(self) -> Constraint:
        quantity = self.quantity()
        relation = self.take("symbol", f"<=, >= or == after {quantity}")
        if relation in "<>":
            raise self.error(f"{quantity} {relation} ...: bounds are never strict; write {relation}=")
        if relation not in _RELATIONS:
            raise self.error(f"expected <=, >= or == after {quantity} but found {relation!r}")
        bound = self.number()
        if self.accept("rows", "row"):
            if not isinstance(quantity, Rate) or self.tokens[self.place - 2][1].endswith("%"):
                raise self.error(f"rows are a number of flagged rows, as in flagged {relation} 100 rows;")
            quantity = quantity.rows
        return Constraint(quantity, _RELATIONS[relation], bound)

    def number(self) -> float:
        text = self.take("number", "a number such as 1% or 0.01")
        if text.endswith("%"):
            try:
                return float(Decimal(text[:-1].strip()).scaleb(-2))
            except ArithmeticError as cause:
                raise self.error(f"{text!r} is too large a number") from cause
        return float(text)

    def quantity(self) -> Quantity:
        word = self.take("word", "a rate such as fpr or recall")
        quantity = self.named(word)
        if not self.accept("."):
            return quantity
        self.need("gap")
        self.need("(")
        kind, column = self.tokens[self.place] if self.place < len(self.tokens) else ("", "")
        if kind not in ("word", "quoted"):
            raise self.error("expected the name of a column of groups after '.gap('")
        self.place += 1
        self.need(")")
        if not isinstance(quantity, Rate):
            raise self.error(f"{quantity} has no gap between groups; use a rate such as recall")
        if kind == "quoted":
            try:
                column = json.loads(column)
            except ValueError as cause:
                raise self.error(f"cannot read the column {column}") from cause
        return quantity.gap(column)

    def named(self, word: str) -> Rate | Metric:
        if word in self.known:
            return self.known[word]
        lower = word.lower()
        beta = re.fullmatch(r"f(\d+)", lower)
        if beta and float(beta.group(1)):
            return f_score(float(beta.group(1)))
        if lower == "f_score":
            self.need("(")
            value = self.number()
            self.need(")")
            return f_score(value)
        plain = SYNONYMS.get(lower, lower)
        if plain not in self.known:
            names = [*self.known, *SYNONYMS, "f_score", "f1"]
            raise self.error(self.unknown(word, names, f"is not a rate; known are {', '.join(self.known)}, f_score"))
        return self.known[plain]

    def unknown(self, word: str, names: Iterable[str], otherwise: str) -> str:
        near = difflib.get_close_matches(word.lower(), list(names), n=1, cutoff=0.5)
        return f"unknown word {word!r}, did you mean {near[0]!r}?" if near else f"{word!r} {otherwise}"
