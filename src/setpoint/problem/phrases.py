"""The phrases of an ask: quantities such as `recall of class a`, relations such as `at most`, and numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from decimal import Decimal

from setpoint.measure.band import review
from setpoint.measure.classes import Macro, Micro, OfClass
from setpoint.measure.constraint import Quantity, Relation
from setpoint.measure.in_first import InFirst, hit
from setpoint.measure.over_classes import ClassGap, Proportional
from setpoint.measure.rate import NAMED, Metric, Rate, f_score, fpr, precision, recall
from setpoint.measure.worth import Cost, Weighted, cost
from setpoint.problem.near_misses import RANKED, SHORT, of_class, of_cut, of_gap, of_ranking
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
#: Bounds are never strict: for a share of finitely many rows `<` and `<=` make no difference in practice.
RELATIONS: dict[Relation, tuple[str, ...]] = {
    "<=": ("<=", "≤", "=<", "<", "at most", "no more than", "not more than", "up to", "less than", "below", "under"),
    ">=": (">=", "≥", "=>", ">", "at least", "no less than", "not less than", "more than", "above"),
    "==": ("==", "=", "exactly", "equal to", "equals"),
}
_OVER_CLASSES: dict[str, Callable[[Rate | Metric], Quantity]] = {
    "macro": Macro,
    "micro": Micro,
    "weighted": Proportional,
}
PER = ("per", "in", "out of")
#: What may follow a rate and make it another.
OF_RATE = ("weighted by", "of class", "in the first", "gap between classes")
#: The longest name has so many words.
_LONGEST = 3


class Phrases(Tokens):
    """Reads the phrases of one ask, one after the other."""

    def __init__(self, text: str, metrics: dict[str, Metric]) -> None:
        super().__init__(text)
        self.known: dict[str, Rate | Metric] = {**NAMED, review.name: review, **metrics}
        self.plain = {name.replace(" ", "_"): quantity for name, quantity in self.known.items()}
        #: Whether the words that come belong to a bound.
        self.bounding = False

    def relation(self, quantity: Quantity) -> Relation:
        self.accept("is", "of")
        for relation, phrases in RELATIONS.items():
            if self.accept(*phrases):
                return relation
        expected = f"expected <=, >= or == after {quantity}"
        named = [phrase for own in RELATIONS.values() for phrase in own if phrase[0].isalpha()]
        found = f"{expected} but found {self.peek()!r}" if self.peek() else f"{expected} at the end"
        # No phrase that says the opposite is this near.
        raise self.error(self.unknown(self.next_words(), [*named, *OF_RATE], found, 0.75))

    def relates(self, ahead: int) -> bool:
        """Whether the word ahead begins a relation, as in `recall of at least 90%`."""
        first = {phrase.split()[0] for phrases in RELATIONS.values() for phrase in phrases}
        return self.peek(ahead).lower() in first

    def number(self) -> float:
        text = self.take("number", "a number such as 1% or 0.01")
        if text.endswith("%") or self.accept("percent", "per cent"):
            try:
                return float(Decimal(text.removesuffix("%").strip()).scaleb(-2))
            except ArithmeticError as cause:
                raise self.error(f"{text!r} is too large a number") from cause
        return self.out_of(float(text)) if self.accept(*PER) else float(text)

    def out_of(self, part: float) -> float:
        """A number of rows as a share of so many: 200 per 10000."""
        text = self.take("number", "a number of rows such as 10000")
        self.accept("rows", "row")
        if text.endswith("%") or not float(text) > 0:
            raise self.error(f"expected a number of rows such as 10000 but found {text!r}")
        return part / float(text)

    def quantity(self) -> Quantity:
        word = self.peek().lower()
        if word == "gap":
            raise self.error(of_gap(self))
        if word in _OVER_CLASSES and self.peek(1).lower() != "by":
            self.place += 1
            rate = self.rate()
            if isinstance(rate, Cost):
                raise self.error(f"{rate} is about two classes; write the costs as numbers")
            return _OVER_CLASSES[word](rate)
        if self.accept("hit rate", "hit-rate", "hits", "hit"):
            found = self.in_lists(hit)
            if found is None:
                raise self.error("hit is about lists; did you mean 'hit in the first 5', or recall?")
            return found
        rate = self.rate()
        return rate if isinstance(rate, Cost) else self.followed(rate)

    def rate(self) -> Rate | Metric | Cost:
        """A rate by its name, or a cost."""
        return self.cost() if self.peek().lower() == "cost" and "cost" not in self.plain else self.named()

    def followed(self, rate: Rate | Metric) -> Quantity:
        """A rate, with the words after it that make it one of groups, of a column, of classes or of lists."""
        if self.accept("."):
            return self.gap(rate)
        if self.accept("weighted by"):
            return Weighted(rate, self.name("the name of a column after 'weighted by'", "column"))
        if self.accept("of class", "for class", "of the class"):
            return OfClass(rate, self.label())
        if self.accept("gap between classes", "gap between the classes"):
            return ClassGap(rate)
        if self.peek().lower() == "gap":
            said = self.next_words()[2:]
            raise self.error(self.unknown(said, ["gap between classes"], of_gap(self, rate), 0.85))
        names_class = self.kind(1) in ("word", "quoted") and self.peek(1).lower() not in ("each", *self.plain)
        if self.peek().lower() in ("of", "for") and names_class and not self.relates(1):
            otherwise = of_class(rate, self.peek(1))
            misspelt = self.kind(2) in ("word", "quoted", "number") and not self.relates(2)
            raise self.error(self.unknown(self.next_words(2)[1:] * misspelt, ["of class"], otherwise, 0.85))
        return self.in_lists(rate) or rate

    def in_lists(self, rate: Rate | Metric) -> InFirst | None:
        """A rate in the first rows of lists, if words for that come next."""
        if self.accept("in the first", "in first", "in the top", "among the first"):
            return InFirst(rate, self.places())
        beyond = self.bounding and self.peek() != "@" and not self.peek(1).isdecimal()
        if self.peek(1).lower() in ("most", "least") or beyond or not self.accept("@", "at"):
            return None
        if not self.peek().isdecimal():
            raise self.error(of_cut(self, rate))
        return InFirst(rate, self.places())

    def places(self) -> int:
        text = self.take("number", "a whole number of rows, such as 5")
        if not text.isdecimal():
            raise self.error(f"expected a whole number of rows, such as 5, but found {text!r}")
        return int(text)

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

    def cost(self) -> Rate | Cost:
        """The costs of a miss and of an alarm, in either order."""
        self.need("cost")
        needed = "expected the costs of a miss and of an alarm, as in cost(miss=5, alarm=1),"
        if not self.accept("("):
            raise self.error(f"{needed} after 'cost'")
        costs: dict[str, float | str] = {}
        for place in range(2):
            if place:
                self.need(",")
            name = "miss" if self.accept("miss") else "alarm" if self.accept("alarm") else ""
            if not name or name in costs:
                raise self.error(f"{needed} but found {name or self.peek()!r}")
            self.need("=")
            costs[name] = self.number() if self.kind() == "number" else self.name("a cost or a column", "column")
        self.need(")")
        return cost(**costs)

    def longest(self, names: Container[str]) -> tuple[int, str]:
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
        said = self.next_words(_LONGEST)
        return self.scored(self.take("word", "a rate such as fpr or recall"), said)

    def scored(self, word: str, said: Sequence[str]) -> Rate:
        """An F-score, or the refusal of words that are no rate."""
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
        if self.peek() == "@" and lower in SHORT:
            raise self.error(f"{word!r} is not a rate; did you mean '{SHORT[lower]} in the first 5'?")
        if lower in RANKED:
            raise self.error(of_ranking(word, self.peek(1) if self.peek() == "@" else self.peek(3)))
        names = [*self.known, *SYNONYMS, *AREAS, "f_score", "f1", "cost", "macro", "micro", "weighted", "hit"]
        spoken = [name.replace("_", " ") if name not in self.known else name for name in names]
        otherwise = f"{word!r} is not a rate; known are {', '.join(self.known)}, f_score"
        raise self.error(self.unknown(said, spoken, otherwise))
