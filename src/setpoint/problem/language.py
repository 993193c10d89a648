"""The language of asks, such as `minimize fnr where fpr <= 1%`, read into problems.

ask       = ("minimize" | "maximize") quantity [ where | over ]  |  ("minimize" | "maximize") area [ over ]
where     = ("where" | "subject to" | "such that" | "with" | "given") bound { ("and" | ",") bound }
over      = "over" rate "in" "[" number "," number "]" [ "with" integer "points" ]
area      = "auc" | "average precision"
bound     = quantity relation number | "flagged" relation integer "rows"
relation  = "<=" | ">=" | "==" | "<" | ">" | "at most" | "at least" | "exactly" | "no more than" | "no less than"
quantity  = rate | rate ".gap(" column ")" | cost | rate "weighted by" column
          | rate "of class" class | ("macro" | "micro" | "weighted") rate | rate "gap between classes"
rate      = name | "f_score" "(" number ")"
cost      = "cost" "(" "miss" "=" ( number | column ) "," "alarm" "=" ( number | column ) ")"
number    = decimal [ "%" | "percent" ] | decimal ("per" | "in" | "out of") decimal
column    = word | JSON string
class     = word | JSON string | integer
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from decimal import Decimal

from setpoint.errors import BadAsk, BadProblem
from setpoint.measure.band import review
from setpoint.measure.classes import Macro, Micro, OfClass
from setpoint.measure.constraint import Constraint, Quantity, Relation
from setpoint.measure.over_classes import ClassGap, Proportional
from setpoint.measure.rate import NAMED, Metric, Range, Rate, f_score, fpr, precision, recall
from setpoint.measure.worth import Weighted, cost
from setpoint.problem.near_misses import of_area, of_class, of_cut, of_gap
from setpoint.problem.problem import Problem
from setpoint.problem.tokens import Tokens

#: Other names; words of a name may be joined by spaces, underscores or hyphens.
SYNONYMS = {
    "tpr": "recall", "sensitivity": "recall", "true_positive_rate": "recall", "specificity": "tnr",
    "selectivity": "tnr", "true_negative_rate": "tnr", "ppv": "precision", "positive_predictive_value": "precision",
    "negative_predictive_value": "npv", "false_discovery_rate": "fdr", "false_omission": "for",
    "false_omission_rate": "for", "iou": "jaccard", "fall_out": "fpr", "false_positive_rate": "fpr",
    "false_alarm_rate": "fpr", "miss_rate": "fnr", "false_negative_rate": "fnr", "coverage": "flagged",
    "selected": "flagged", "error_rate": "error", "matthews": "mcc", "cohen_kappa": "kappa", "gmean": "g_mean",
    "auroc": "auc", "roc_auc": "auc", "ap": "average_precision", "auprc": "average_precision",
    "pr_auc": "average_precision",
}  # fmt: skip
#: Areas by name: the objective, and the rate over all of which it is averaged.
AREAS = {"auc": (recall, fpr), "average_precision": (precision, recall)}
_VERBS = {"minimize": False, "minimise": False, "min": False, "maximize": True, "maximise": True, "max": True}
_WHERE = ("where", "subject to", "such that", "with", "given", "s . t .")
#: Bounds are never strict: for a share of finitely many rows `<` and `<=` make no difference in practice.
_RELATIONS: dict[Relation, tuple[str, ...]] = {
    "<=": ("<=", "≤", "=<", "<", "at most", "no more than", "not more than", "up to", "less than", "below", "under"),
    ">=": (">=", "≥", "=>", ">", "at least", "no less than", "not less than", "more than", "above"),
    "==": ("==", "=", "exactly", "equal to", "equals"),
}
_OVER_CLASSES: dict[str, Callable[[Rate | Metric], Quantity]] = {
    "macro": Macro,
    "micro": Micro,
    "weighted": Proportional,
}
_PER = ("per", "in", "out of")
#: The longest name has so many words.
_LONGEST = 3


def ask(text: str, metrics: Iterable[Metric] = ()) -> Problem:
    """Read a problem from its text; `str(problem)` gives the text back.

    Percent signs, `=`, `≤`, `at most`, and the names `tpr`, `sensitivity`, `specificity` and `f1` are understood.

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


class _Reader(Tokens):
    """Reads one ask from left to right."""

    def __init__(self, text: str, metrics: dict[str, Metric]) -> None:
        super().__init__(text)
        self.known: dict[str, Rate | Metric] = {**NAMED, review.name: review, **metrics}
        self.plain = {name.replace(" ", "_"): quantity for name, quantity in self.known.items()}

    def problem(self) -> Problem:
        verb = self.take("word", "'minimize' or 'maximize'").lower()
        if verb not in _VERBS:
            raise self.error(self.unknown(verb, _VERBS, "should be 'minimize' or 'maximize'"))
        area = self.area()
        objective: Quantity = self.quantity() if area is None else area[0]
        over = self.range() if self.accept("over") else None
        if area is not None:
            over = area[1].between(0, 1) if over is None else self.part_of_area(area[1], over)
        constraints: list[Constraint] = []
        if self.accept(*_WHERE):
            if area is not None:
                raise self.error(of_area(verb, *area))
            constraints.append(self.bound())
            while self.accept("and", ","):
                constraints.append(self.bound())
        if self.peek():
            raise self.error(self.unexpected(objective))
        return Problem(objective, _VERBS[verb], tuple(constraints), over)

    def unexpected(self, objective: Quantity) -> str:
        if self.peek().lower() == "or":
            return "all bounds hold together, so that 'or' is not possible; did you mean 'and'?"
        return self.unknown(
            self.peek(), ["where", "over", "and", "subject", "such"], f"is unexpected after {objective}"
        )

    def area(self) -> tuple[Rate, Rate] | None:
        """The objective and the rate of an area that is named, such as auc."""
        count, name = self.longest(AREAS)
        if not count or name in self.plain:
            return None
        self.place += count
        return AREAS[name]

    def part_of_area(self, rate: Rate, over: Range) -> Range:
        if not bool(over.rate == rate):
            raise self.error(f"this area is over {rate}, not over {over.rate}; write the objective as a rate")
        return over

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
        relation = self.relation(quantity)
        plain = self.kind() == "number" and not self.peek().endswith("%")
        bound = self.number()
        if self.accept("rows", "row"):
            if self.accept(*_PER):
                return Constraint(quantity, relation, self.out_of(bound))
            if not isinstance(quantity, Rate) or not plain:
                raise self.error(f"rows are a number of flagged rows, as in flagged {relation} 100 rows;")
            quantity = quantity.rows
        return Constraint(quantity, relation, bound)

    def relation(self, quantity: Quantity) -> Relation:
        self.accept("is", "of")
        for relation, phrases in _RELATIONS.items():
            if self.accept(*phrases):
                return relation
        expected = f"<=, >= or == after {quantity}"
        raise self.error(
            f"expected {expected} but found {self.peek()!r}" if self.peek() else f"expected {expected} at the end"
        )

    def relates(self, ahead: int) -> bool:
        """Whether the word ahead begins a relation, as in `recall of at least 90%`."""
        first = {phrase.split()[0] for phrases in _RELATIONS.values() for phrase in phrases}
        return self.peek(ahead).lower() in first

    def number(self) -> float:
        text = self.take("number", "a number such as 1% or 0.01")
        if text.endswith("%") or self.accept("percent", "per cent"):
            try:
                return float(Decimal(text.removesuffix("%").strip()).scaleb(-2))
            except ArithmeticError as cause:
                raise self.error(f"{text!r} is too large a number") from cause
        return self.out_of(float(text)) if self.accept(*_PER) else float(text)

    def out_of(self, part: float) -> float:
        """A number of rows as a share of so many: 200 per 10000."""
        text = self.take("number", "a number of rows such as 10000")
        self.accept("rows", "row")
        if text.endswith("%") or not float(text) > 0:
            raise self.error(f"expected a number of rows such as 10000 but found {text!r}")
        return part / float(text)

    def quantity(self) -> Quantity:
        if self.peek().lower() == "gap":
            raise self.error(of_gap(self))
        if self.peek().lower() == "cost" and self.peek(1) == "(":
            return self.cost()
        if self.peek().lower() in _OVER_CLASSES and self.peek(1).lower() != "by":
            self.place += 1
            return _OVER_CLASSES[self.peek(-1).lower()](self.named())
        rate = self.named()
        if self.accept("."):
            return self.gap(rate)
        if self.accept("weighted by"):
            return Weighted(rate, self.name("the name of a column after 'weighted by'", "column"))
        if self.accept("of class", "for class", "of the class"):
            return OfClass(rate, self.label())
        if self.accept("gap between classes", "gap between the classes"):
            return ClassGap(rate)
        if self.peek().lower() == "gap":
            raise self.error(of_gap(self, rate))
        if self.peek().lower() in ("of", "for") and self.kind(1) in ("word", "quoted") and not self.relates(1):
            raise self.error(of_class(rate, self.peek(1)))
        if self.peek(1).lower() not in ("most", "least") and self.accept("@", "at"):
            raise self.error(of_cut(self, rate))
        return rate

    def label(self) -> int | str:
        """A class, by its number or name."""
        if self.kind() == "number" and self.peek().isdecimal():
            return int(self.take("number", "a class"))
        return self.name("the name or the number of a class after 'of class'", "class")

    def gap(self, rate: Rate | Metric) -> Quantity:
        self.need("gap")
        self.need("(")
        column = self.name("the name of a column of groups after '.gap('", "column")
        self.need(")")
        if not isinstance(rate, Rate):
            raise self.error(f"{rate} has no gap between groups; use a rate such as recall")
        return rate.gap(column)

    def cost(self) -> Quantity:
        """The costs of a miss and of an alarm, in either order."""
        self.need("cost")
        self.need("(")
        costs: dict[str, float | str] = {}
        for place in range(2):
            if place:
                self.need(",")
            name = "miss" if self.accept("miss") else "alarm" if self.accept("alarm") else ""
            if not name or name in costs:
                raise self.error("expected the costs of a miss and of an alarm, as in cost(miss=5, alarm=1),")
            self.need("=")
            costs[name] = self.number() if self.kind() == "number" else self.name("a cost or a column", "column")
        self.need(")")
        return cost(**costs)

    def longest(self, names: Iterable[str]) -> tuple[int, str]:
        """The longest name of several words that comes next, as (words, name); 0 words if none does."""
        words = self.words(_LONGEST)
        for count in range(len(words), 0, -1):
            joined = "_".join(words[:count])
            name = SYNONYMS.get(joined, joined) if joined not in self.plain else joined
            if name in names:
                return count, name
        return 0, ""

    def named(self) -> Rate | Metric:
        word = self.peek()
        if self.kind() == "word" and word in self.known:
            self.place += 1
            return self.known[word]
        count, name = self.longest(self.plain)
        if count:
            self.place += count
            return self.plain[name]
        if self.longest(AREAS)[0]:
            raise self.error(f"{word} is an area over all thresholds: it can be maximized, but not bounded")
        return self.scored(self.take("word", "a rate such as fpr or recall"))

    def scored(self, word: str) -> Rate:
        """An F-score, or the refusal of a word that is no rate."""
        lower = word.lower().replace("-", "_")
        beta = re.fullmatch(r"f(\d+)(_score)?", lower)
        if beta and float(beta.group(1)):
            if not beta.group(2):
                self.accept("score")
            return f_score(float(beta.group(1)))
        if lower == "f_score":
            self.need("(")
            value = self.number()
            self.need(")")
            return f_score(value)
        names = [*self.known, *SYNONYMS, *AREAS, "f_score", "f1"]
        raise self.error(self.unknown(word, names, f"is not a rate; known are {', '.join(self.known)}, f_score"))
